"""Reading a chapter's exercises from its solutions module, the one place where they are written."""

import re
import textwrap
from dataclasses import dataclass

import autograder.no_rfc3987  # noqa: F401

# isort: split
import jupytext
import nbformat

from autograder.course import SOLUTIONS
from autograder.judging.exercise import exercises

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


def graded_notebook(chapter):
    """The notebook of a chapter as nbgrader has it: texts, solutions, checks with their points.

    Parameters
    ----------
    chapter : str

    Returns
    -------
    NotebookNode
        Cell ids and metadata depend on the source alone.

    Raises
    ------
    ValueError
        If the declared exercises are not those of the module, or one of them has no check cell.
    """
    solved, texts = notebook(chapter), exercise_texts(chapter)
    declared = {exercise.name: exercise for exercise in exercises(chapter)}
    if list(declared) != list(texts):
        raise ValueError(f"{chapter}: declared are {list(declared)}, written in the module are {list(texts)}")
    cells, name = [], None
    for number, cell in enumerate(solved.cells):
        if cell.cell_type == "raw":  # active-py: only the module has it
            continue
        following = solved.cells[number + 1].source if number + 1 < len(solved.cells) else ""
        source, metadata, cell_id = cell.source, {}, f"{cell.cell_type}-{number}"
        if cell.cell_type == "markdown" and solution_name(following):
            name = solution_name(following)
            source, cell_id = _exercise_cell(texts[name], declared[name]), f"text_{name}"
        elif solution_name(source):
            cell_id, metadata = name, _nbgrader(name, grade=False)
        elif "active-ipynb" in cell.metadata.get("tags", []):
            cell_id, metadata = (
                f"check_{name}",
                _nbgrader(f"check_{name}", grade=True, points=declared.pop(name).points),
            )
        make = nbformat.v4.new_markdown_cell if cell.cell_type == "markdown" else nbformat.v4.new_code_cell
        cells.append(make(source, id=cell_id, metadata=metadata))
    if declared:
        raise ValueError(f"{chapter}: no check cell follows {', '.join(declared)}")
    return nbformat.v4.new_notebook(cells=cells)


def _exercise_cell(text, exercise):
    head = f"Difficulty {exercise.dots} · up to {exercise.minutes} minutes · {exercise.worth}"
    hints = ""
    for number, hint in reversed(list(enumerate(text.hints, start=1))):  # each stands inside the one before it
        hints = f"<details><summary>Hint {number}</summary>\n\n{hint}\n\n{hints}</details>\n"
    return "\n\n".join(part for part in (f"## {text.title}", f"*{head}*", text.text, hints.strip()) if part)


def _nbgrader(grade_id, *, grade, points=None):
    cell = {"cell_type": "code", "grade": grade, "grade_id": grade_id, "locked": grade, "schema_version": 3}
    cell |= {"solution": not grade, "task": False}
    return {"nbgrader": cell | ({"points": float(points)} if grade else {})}


def _exercise_text(name, markdown, code):
    heading, _, body = markdown.partition("\n")
    paragraphs = [paragraph.strip() for paragraph in re.split(r"\n\s*\n", body.strip())]
    hints = tuple(p.removeprefix("Hint:").strip() for p in paragraphs if p.startswith("Hint:"))
    text = "\n\n".join(p for p in paragraphs if not p.startswith("Hint:"))
    solution = re.sub(r"^ *### (BEGIN|END) SOLUTION\n?", "", code, flags=re.MULTILINE).rstrip()
    stub = _SOLUTION.sub(lambda match: f"{match[1]}{STUB}\n", code).rstrip()
    return ExerciseText(name, heading.lstrip("# "), text, hints, solution, textwrap.dedent(stub))
