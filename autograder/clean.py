"""What comes from a submission, made fit for the place where it is shown: one function for each kind of place.

`line` and `text` are for a terminal, a log, a verdict and the values of a page (which are escaped besides), `cell` is
for a table, `code` and `markdown` are for a notebook that is opened again. What must not be shown becomes U+FFFD, so
that a reader sees that there was something.
"""

import os
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

UNSEEN = "\ufffd"
# Of Unicode's categories: control characters, formats (they turn the direction of text, or take no room), halves of
# surrogate pairs, private and unassigned ones, separators of lines and paragraphs.
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # letters and marks that show nothing
# At the beginning of a cell, or of what is one where a spreadsheet separates cells by semicolons; there quotes are left
# out where a cell begins with them, and CSV doubles each.
_FORMULA = re.compile(r"(?:^|;)[\s\"]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_ID = re.compile(r"[\w.@+=-]*")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")  # what HTML reads as the beginning of one
# Where a link leads without running a program; elsewhere a scheme may hide behind entities, backslashes or length. An
# attachment is elsewhere, too: it is not kept, and nbconvert, which formgrader shows notebooks by, ends without it.
_HARMLESS = r"(?i:(?:https?|mailto):|data:image/(?:png|jpeg|gif|webp)[;,])|[^:&\\/?#<()>\s]{0,200}+(?:[/?#)>\s]|\Z)"
_RUNNING = re.compile(rf"\](?=[(:][\s>]*+(?!{_HARMLESS}))")
_CHARACTER = re.compile(r"&(?=#|(?:dollar|bsol);)")  # by its number or its name: a formula, or a macro in one
# An image is fetched when the notebook is opened, from wherever it says; one that brings its bytes along is not.
_IMAGE = re.compile(r"!(?=\[)(?!\[[^\[\]]*\]\(data:image/(?:png|jpeg|gif|webp);base64,[\w+/=]*\))")
_FENCE = re.compile(r"(?<=```|~~~)[^\n`~][^\n]*")  # says what the code below it is; JupyterLab draws Mermaid's
_BLANKS = re.compile(r"(?<=[ \t]{200})[ \t]+")  # each is looked at again for each, when a notebook is shown
_MACRO = re.compile(r"\\(?=(?:href|require|html|mmlToken|style|class|cssId|bbox)(?![A-Za-z]))")


def text(value: object) -> str:
    """Text of several lines that leaves a terminal and the lines around it as they are.

    Parameters
    ----------
    value : str
        Line breaks and tabs in it stay.
    """
    shown = str(value)
    if shown.isascii() and shown.isprintable():
        return shown
    return shown.replace("\r\n", "\n").translate(_SHOWN)


def line(value: object) -> str:
    """Text as one line: as `text`, and all that breaks a line is a space."""
    return text(" ".join(str(value).split()))


def name(path: Path) -> str:
    """The name of a file or a folder as one line; it may hold bytes that are no text."""
    shown = os.fsencode(path.name).decode("utf-8", "replace")
    return text(shown).replace("\n", UNSEEN).replace("\t", UNSEEN)


def values(tree: Any) -> Any:
    """The same for all text in JSON: keys and values."""
    if isinstance(tree, str):
        return text(tree)
    if isinstance(tree, dict):
        return {values(key): values(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [values(value) for value in tree]
    return tree


def cell(value: Any) -> Any:
    """A value as a spreadsheet shall read it: text that could act as a formula is kept from being one.

    Canvas ("SIS Login ID") and Moodle ("username", "email") find the student by the exact text, so an id must stay
    as it is. Of the characters that ids and addresses are made of no formula can be written that does anything: it
    takes a bracket, a quote, a bar or an exclamation mark to call or fetch something.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return ""
    value = text("".join(" " if character in "\t\r\n" else character for character in value))
    return f"'{value}" if _FORMULA.search(value) and not _ID.fullmatch(value) else value


def code(value: str) -> str:
    """The code of a cell. What Python can read stays so: letters that show nothing are underscores."""
    return text(value.replace("\f", "").translate(dict.fromkeys(map(ord, _BLANK), "_")))


def markdown(value: str) -> str:
    """Markdown or a raw cell of a notebook, so that nothing in it runs where it is opened.

    No tag is left, of whatever kind: it is shown as it was typed. Nor is a link that leads into a program
    (`javascript:`), nor a macro by which a formula reaches out of itself or changes its looks. Nothing asks an address
    before it is clicked: an image that lies elsewhere is a link to it, and a diagram its code.
    """
    value = _CHARACTER.sub("&amp;", _BLANKS.sub("", text(value)))
    value = _TAG.sub("&lt;", value)
    value = _FENCE.sub(_language, _IMAGE.sub("&#33;", value))
    value = _RUNNING.sub("&#93;", value)
    return _MACRO.sub(r"\\text{macro }", value)


def _language(match: re.Match[str]) -> str:
    """What follows the fence of a code block, so that it names no diagram, in whatever spelling."""
    shown = match[0].replace("&", "&amp;").replace("\\", "\\\\")
    return re.sub("(?i)mermaid", "mermaid-code", shown)


def say(*lines: object, error: bool = False) -> None:
    """Print to the terminal, each argument on a line of its own. All that the commands say goes this way."""
    print(*map(text, lines), sep="\n", file=sys.stderr if error else sys.stdout)


class _Shown(dict[int, str]):
    """What each character is shown as, by its number; looked up once, for a file may hold millions."""

    def __missing__(self, number: int) -> str:
        character = chr(number)
        hidden = character not in "\n\t" and (unicodedata.category(character) in _HIDDEN or character in _BLANK)
        return self.setdefault(number, UNSEEN if hidden else character)


_SHOWN = _Shown()
