"""From a page of the book to a notebook: what only the site can show becomes Markdown that JupyterLab and Colab show.

`make exercises` makes the notebooks of the GPU pages so. Exercises become a pointer
to the notebook in which they are graded, quizzes a question with a folded answer, references links to the site.
"""

import ast
import functools
import re
from itertools import pairwise

import autograder.no_rfc3987  # noqa: F401

# isort: split
import jupytext
import nbformat
import yaml
from docutils.nodes import make_id
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from pybtex.database import parse_file

from autograder.course import GPU_PAGES, PACKAGE, ROOT
from autograder.judging.exercise import names
from autograder.notebooks.site import colab, settings
from autograder.notebooks.solution import exercise_texts

PLACE = f"""# The cells work where the page does, beside its results and the book's figures
import os

import autograder

book = Path(autograder.__file__).parents[1] / "book"
if not (book / "{GPU_PAGES}").is_dir():
    raise SystemExit("These cells need the course's folder and not its package alone: see README.md")
sys.path.append(str(book))
os.chdir(book / "{GPU_PAGES}")
drive = Path("/content/drive/MyDrive")
if drive.is_dir() and not Path("checkpoints").exists():
    (drive / "{PACKAGE}").mkdir(exist_ok=True)
    Path("checkpoints").symlink_to(drive / "{PACKAGE}")"""
INTRODUCTION = """\
> This notebook is the page [{title}]({address}) of the course *{course}*. Run its cells from top to
> bottom, with no edits. On Colab choose *Runtime > Change runtime type > GPU* first; without a GPU each run is smaller
> and says so. `%env COURSE_SIZE=full` in a cell before the first asks for the full size on any machine, and
> `%env COURSE_SIZE=reduced` for the smaller one on a GPU. Long runs leave checkpoints and go on from them when you run
> their cell again. To keep them when Colab takes the machine away, run
> `from google.colab import drive; drive.mount("/content/drive")` before the next cell."""

_FENCE = re.compile(r"^(`{3,}|:{3,})(?:\{([\w:-]+)\})?\s*(.*)$")
_LABEL = re.compile(r"^\(([\w-]+)\)=\s*$\n?", re.MULTILINE)
_EQUATION = re.compile(r"^\$\$\n?(.*?)\n?\$\$ *\(([\w-]+)\)[ \t]*$", re.MULTILINE | re.DOTALL)
_ROLE_OR_CODE = re.compile(r"\{([\w:]+)\}`([^`]+)`|(`+)[^`]+\3")
_LETTERS = "ABCDEFGHIJ"


def page_notebook(name, first_cell):
    """The notebook of a page.

    Parameters
    ----------
    name : str
        Path of the page in the book, without `.md`: `gpu/small_vit`.
    first_cell : NotebookNode
        The cell that finds the course; it stands before the page's own code.

    Returns
    -------
    NotebookNode
        It depends on the book's sources alone.

    Raises
    ------
    ValueError
        If the page uses a directive, a role or a label that is not known here.
    """
    page = _Page(name)
    cells = []
    for number, cell in enumerate(jupytext.read(ROOT / "book" / f"{name}.md", fmt="md:myst").cells):
        if cell.cell_type == "markdown":
            cells.append(nbformat.v4.new_markdown_cell(page.markdown(cell.source), id=f"markdown-{number}"))
            continue
        if len(cells) == 1:
            title, address = page.labels[page.name]
            introduction = INTRODUCTION.format(title=title, address=address, course=settings(ROOT)["title"])
            cells.append(nbformat.v4.new_markdown_cell(introduction, id="introduction"))
            cells.append(first_cell)
            cells.append(nbformat.v4.new_code_cell(PLACE, id="place"))
        cells.append(nbformat.v4.new_code_cell(cell.source, id=f"code-{number}"))
        figure = cell.metadata.get("mystnb", {}).get("figure")
        if figure:
            caption = f"*Figure {page.figures.index(figure['name']) + 1}.* {figure.get('caption', '')}"
            cells.append(nbformat.v4.new_markdown_cell(page.markdown(caption), id=f"caption-{number}"))
    return nbformat.v4.new_notebook(cells=cells)


class _Page:
    """A page, with what its references need to know of it and of the others."""

    def __init__(self, name):
        text = (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8")
        self.name, self.labels = f"book/{name}", labels()
        self.equations = [match[2] for match in _EQUATION.finditer(text)]
        self.figures = re.findall(r"^ +name: (fig-[\w-]+)$", text, re.MULTILINE)

    def markdown(self, text):
        """MyST to Markdown: directives line by line, then labels, equations and roles of the rest."""
        done, plain, lines = [], [], text.splitlines()
        while lines:
            fence = _FENCE.match(lines[0])
            if not fence:
                plain.append(lines.pop(0))
                continue
            end = next(n for n, line in enumerate(lines[1:], 1) if re.match(rf"^{fence[1]}{fence[1][0]}*\s*$", line))
            inside, lines = lines[: end + 1], lines[end + 1 :]
            done.append(self.inline("\n".join(plain)))
            plain = []
            done.append(self.directive(fence[2], fence[3], inside[1:-1]) if fence[2] else "\n".join(inside))
        done.append(self.inline("\n".join(plain)))
        return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part.strip("\n") for part in done if part.strip()))

    def inline(self, text):
        text = _EQUATION.sub(lambda m: f"$$\n{m[1]}\n\\tag{{{self.equations.index(m[2]) + 1}}}\n$$", text)
        text = _LABEL.sub("", text)
        return _ROLE_OR_CODE.sub(lambda m: self.role(m[1], m[2]) if m[1] else m[0], _expand(text))

    # ------------------------------------------------------------------ directives

    def directive(self, name, argument, lines):
        options, body = _options("\n".join(lines))
        kind, _, theorem = name.partition(":")
        if name == "notebook":
            return ""
        if name == "admonition" or name in ("note", "tip", "warning"):
            title = argument if name == "admonition" else name.capitalize()
            return _quote(f"**{title}.** {self.markdown(body)}")
        if name == "dropdown":
            return _folded(argument, self.markdown(body))
        if kind == "prf":
            head = "*Proof.*" if theorem == "proof" else f"**{theorem.capitalize()}**"
            head += f" ({argument})." if argument else "" if theorem == "proof" else "."
            return _quote(f"{self.inline(head)} {self.markdown(body)}")
        if name == "quiz":
            return self.quiz(yaml.safe_load(body))
        if name == "task":
            return self.task(argument)
        if name in ("widget", "figure"):
            what = options.get("label") or options.get("alt") or argument
            return f"*On [the page]({self.labels[self.name][1]}) there is a figure here: {self.inline(what)}*"
        if name == "literalinclude":
            return f"```python\n{self.definition(argument, options['pyobject'])}\n```"
        if name == "math":
            return f"$$\n{_expand(body)}\n$$"
        raise ValueError(f"{self.name}.md: a notebook cannot show the directive {name!r} yet (from_page.py)")

    def definition(self, path, name):
        """A function or class of a module, as it stands there."""
        code = (ROOT / self.name).parent.joinpath(path).read_text(encoding="utf-8")
        node = next(node for node in ast.parse(code).body if getattr(node, "name", None) == name)
        return ast.get_source_segment(code, node)

    def task(self, name):
        chapter = names()[name]
        text, path = exercise_texts(chapter)[name], f"exercises/{chapter}/{chapter}.ipynb"
        opened = f"[open in Colab]({colab(settings(ROOT), path)})"
        words = f"**Exercise: {text.title}.** Write `{name}` in the notebook `{path}` ({opened}), "
        return _quote(words + "where the checks are.")

    def quiz(self, data):
        lines, answer = [f"**Question.** {self.markdown(str(data['question']))}"], []
        if data["kind"] == "numeric":
            answer.append(f"**{data['answer']}**")
        else:
            choices = list(zip(_LETTERS, data["choices"], strict=False))
            lines.append("\n".join(f"- **{letter}.** {self.markdown(str(one['text']))}" for letter, one in choices))
            answer.append("**" + ", ".join(letter for letter, one in choices if one.get("right")) + "**")
            answer += [f"{letter}: {self.markdown(one['why'])}" for letter, one in choices if "why" in one]
        answer.append(self.markdown(data["solution"]))
        if "hint" in data:
            lines.append(_folded("Hint", self.markdown(data["hint"])))
        return "\n\n".join([*lines, _folded("Answer", "\n\n".join(answer))])

    # ----------------------------------------------------------------------- roles

    def role(self, name, text):
        if name in ("cite:t", "cite:p"):
            return self.cite(name, [key.strip() for key in text.split(",")])
        words, target = re.fullmatch(r"(?:(.*?)\s*<)?([^<>]*)>?", text, re.DOTALL).groups()
        if name == "numref" and target in self.figures:
            return f"Figure {self.figures.index(target) + 1}"
        if name == "eq" and target in self.equations:
            return f"({self.equations.index(target) + 1})"
        if name not in ("ref", "prf:ref", "eq", "numref", "doc"):
            raise ValueError(f"{self.name}.md: a notebook cannot show the role {name!r} yet (from_page.py)")
        if target not in self.labels:
            raise ValueError(f"{self.name}.md: there is no label {target!r} in the book")
        title, address = self.labels[target]
        if words is None and address.partition("#")[0] == self.labels[self.name][1]:
            return f"*{title}*"
        return f"[{words or title}]({address})"

    def cite(self, name, keys):
        told = []
        for key in keys:
            entry = _bibliography()[key]
            people = [person.last_names[-1] for person in entry.persons.get("author", [])]
            who = people[0] + (f" and {people[1]}" if len(people) == 2 else " et al." if len(people) > 2 else "")
            fields = entry.fields
            paper = f"https://arxiv.org/abs/{fields['eprint']}" if "eprint" in fields else fields.get("url")
            address = paper or f"{settings(ROOT)['html_baseurl']}book/references.html"
            year = fields["year"]
            told.append(f"[{who} ({year})]({address})" if name == "cite:t" else f"[{who}, {year}]({address})")
        return ", ".join(told) if name == "cite:t" else f"({'; '.join(told)})"


def _quote(text):
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _folded(title, text):
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def _expand(text):
    """Write out the site's macros, which no notebook knows."""
    for name, meaning in settings(ROOT)["math_macros"].items():
        text = re.sub(rf"\\{name}(?![A-Za-z])", lambda _, meaning=meaning: meaning, text)
    return text


@functools.cache
def _bibliography():
    return parse_file(ROOT / "book" / "references.bib").entries


@functools.cache
def labels():
    """What each label of the book stands for: its words, and its address on the site."""
    found, chapters = {}, names()
    for path in sorted((ROOT / "book").rglob("*.md")):
        page = str(path.relative_to(ROOT).with_suffix(""))
        address = f"{settings(ROOT)['html_baseurl']}{page}.html"
        title, targets = "", []
        for kind, name, words, options in _blocks(path.read_text(encoding="utf-8")):
            if kind == "target":
                targets.append(name)
                continue
            if kind == "heading":
                title = title or words
                for target in targets:
                    found[target] = words, address if words == title else f"{address}#{make_id(target)}"
            elif kind == "equation":
                found[name] = f"an equation of “{title}”", f"{address}#equation-{make_id(name)}"
            elif kind.startswith("prf:") and "label" in options:
                theorem = kind.removeprefix("prf:")
                words = f"{theorem} “{name}”" if name else f"a {theorem}"
                found[options["label"]] = words, f"{address}#{options['label']}"
            elif kind == "quiz":
                found[make_id(name)] = found[name] = "Question", f"{address}#{make_id(name)}"
            elif kind == "task" and name in chapters:
                label = f"exercise-{make_id(name)}"
                words = exercise_texts(chapters[name])[name].title
                found[label] = f"Exercise: {words}", f"{address}#{label}"
            figure = options.get("name") or options.get("mystnb", {}).get("figure", {}).get("name")
            if figure:
                found[figure] = f"a figure of “{title}”", f"{address}#{figure}"
            targets = []
        found[page] = title or page, address
    return found


@functools.cache
def _parser():
    return create_md_parser(MdParserConfig(enable_extensions={"colon_fence", "dollarmath"}), RendererHTML)


def _blocks(text):
    """The targets, headings, equations and directives of a text, from the top: (kind, name, words, options)."""
    for token, after in pairwise([*_parser().parse(text), None]):
        if token.type == "myst_target":
            yield "target", token.content, "", {}
        elif token.type == "heading_open":
            yield "heading", "", after.content, {}
        elif token.type == "math_block_label":
            yield "equation", token.info, "", {}
        elif token.type in ("fence", "colon_fence") and (directive := re.match(r"\{([\w:-]+)\} ?(.*)", token.info)):
            options, body = _options(token.content)
            yield directive[1], directive[2], "", options
            if directive[1] not in ("code-cell", "math", "quiz"):
                yield from _blocks(body)


def _options(content):
    """The options at the head of a directive, written as YAML or line by line, and the rest."""
    if content.startswith("---\n"):
        head, _, body = content[4:].partition("\n---")
        return yaml.safe_load(head) or {}, body
    options, lines = {}, content.split("\n")
    while option := re.match(r":([\w-]+):\s*(.*)$", lines[0]):
        options[option[1]], lines = option[2], lines[1:] or [""]
    return options, "\n".join(lines)
