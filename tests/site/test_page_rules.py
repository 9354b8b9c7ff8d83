"""What every page keeps to, read from its source."""

import ast
import builtins
from pathlib import Path

import jupytext
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT / "book").with_suffix("").as_posix()
               for folder in ("", "gpu") for path in (ROOT / "book" / folder).glob("*.md"))  # fmt: skip
HIDDEN = {"remove-input", "hide-input", "remove-cell", "hide-cell"}


def names_in(code):
    """The names that code gives a value anywhere, and those that it uses."""
    given, used = set(), set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else given).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            given.add(node.name)
        elif isinstance(node, ast.arg):
            given.add(node.arg)
        elif isinstance(node, ast.alias):
            given.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            given.add(node.name)
    return given, used


def unexplained(cells):
    """The names that a shown cell uses, that no shown cell before it gives a value, and that no text has told of.

    Parameters
    ----------
    cells : list of (str, str, iterable of str)
        Kind, source and tags.
    """
    known, told, found = set(dir(builtins)), "", []
    for kind, source, tags in cells:
        if kind != "code":
            told += source
        elif not HIDDEN & set(tags):
            given, used = names_in(source)
            known |= given
            found += [name for name in sorted(used - known) if not any(f"`{name}{end}" in told for end in "`(.[")]
    return found


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ([("code", "x = 1", ["hide-input"]), ("code", "print(x)", [])], ["x"]),
        ([("code", "x = 1", ["hide-input"]), ("markdown", "`x` is one.", []), ("code", "print(x)", [])], []),
        ([("code", "x = 1", ["remove-cell"]), ("code", "x = 2\nprint(x)", [])], []),
        ([("code", "import a.b as c\nfrom d import e\ndef f(g): return c, e, g", []), ("code", "f(a)", [])], ["a"]),
        ([("markdown", "x is one", []), ("code", "[x for _ in y]", [])], ["x", "y"]),
    ],
)
def test_what_is_not_explained_is_found(cells, found):
    assert unexplained(cells) == found


@pytest.mark.parametrize("page", PAGES)
def test_shown_cells_use_what_a_reader_has_seen(page):
    """A name that a folded or removed cell makes is told of in the text before it is used."""
    cells = jupytext.read(ROOT / "book" / f"{page}.md", fmt="md:myst").cells
    assert unexplained([(cell.cell_type, cell.source, cell.metadata.get("tags", ())) for cell in cells]) == []
