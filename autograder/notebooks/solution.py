"""Reading a chapter's exercises from its solutions module, the one place where they are written."""

import re
import textwrap
from dataclasses import dataclass

import autograder.no_rfc3987  # noqa: F401

# isort: split
import jupytext

from autograder.course import SOLUTIONS

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = "raise NotImplementedError"
_SOLUTION = re.compile(rf"^( *){BEGIN}\n(.*?)^ *{END}\n?", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r"^def (\w+)\(", re.MULTILINE)


@dataclass(frozen=True)
class ExerciseText:
    """An exercise as its author wrote it.

    Attributes
    ----------
    name : str
        The function's.
    title : str
        Heading of the text.
    text : str
        Markdown, without heading and hints.
    hints : tuple of str
        Markdown, to be opened one after the other.
    solution : str
        The whole function, without the solution marks.
    stub : str
        The function as a learner gets it: signature, docstring, `raise NotImplementedError`.
    """

    name: str
    title: str
    text: str
    hints: tuple
    solution: str
    stub: str


def module_path(chapter):
    """Where the solutions of a chapter lie."""
    return SOLUTIONS / f"{chapter}.py"


def notebook(chapter):
    """The solved notebook of a chapter, as jupytext reads it."""
    return jupytext.read(module_path(chapter), fmt="py:percent")


def solution_name(source):
    """The function that a solution cell defines, or None for another cell."""
    return _FUNCTION.search(source)[1] if BEGIN in source else None


def exercise_texts(chapter):
    """The exercises of a chapter by name, in the order of the module.

    Raises
    ------
    ValueError
        If a solution cell does not follow a Markdown cell with a heading.
    """
    texts, before = {}, None
    for cell in notebook(chapter).cells:
        name = solution_name(cell.source) if cell.cell_type == "code" else None
        if name:
            if before is None or not before.startswith("#"):
                raise ValueError(
                    f"solutions/{chapter}.py: the cell of {name} must follow a Markdown cell with a heading"
                )
            texts[name] = _exercise_text(name, before, cell.source)
        before = cell.source if cell.cell_type == "markdown" else None
    return texts


def _exercise_text(name, markdown, code):
    heading, _, body = markdown.partition("\n")
    paragraphs = [paragraph.strip() for paragraph in re.split(r"\n\s*\n", body.strip())]
    hints = tuple(p.removeprefix("Hint:").strip() for p in paragraphs if p.startswith("Hint:"))
    text = "\n\n".join(p for p in paragraphs if not p.startswith("Hint:"))
    solution = re.sub(r"^ *### (BEGIN|END) SOLUTION\n?", "", code, flags=re.MULTILINE).rstrip()
    stub = _SOLUTION.sub(lambda match: f"{match[1]}{STUB}\n", code).rstrip()
    return ExerciseText(name, heading.lstrip("# "), text, hints, solution, textwrap.dedent(stub))
