"""`make exercises`: from solutions/<chapter>.py to nbgrader's source notebook and the learner's notebook.

The source notebook (`_build/source/`) is not committed; the learner's (`exercises/`) is, and a test fails
when it is out of date. The GPU chapters' pages become notebooks whole, `exercises/<folder>/<page>.ipynb`. Every run
gives the same bytes.
"""

import argparse
import shutil
import tempfile
import tomllib
from pathlib import Path

import autograder.no_rfc3987  # noqa: F401

# isort: split
import nbformat
from nbgrader.apps import NbGraderAPI
from traitlets.config import PyFileConfigLoader

from autograder.course import GPU_PAGES, ROOT
from autograder.judging.exercise import exercises, names
from autograder.notebooks.from_page import page_notebook
from autograder.notebooks.site import settings
from autograder.notebooks.solution import exercise_texts, notebook, solution_name

KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def source_notebook(chapter):
    """nbgrader's source notebook of a chapter: texts, solutions, checks with their points.

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
        if number == 0:
            cells.append(first_cell())
    if declared:
        raise ValueError(f"{chapter}: no check cell follows {', '.join(declared)}")
    return nbformat.v4.new_notebook(cells=cells, metadata=KERNEL)


def first_cell():
    """The first code cell of every notebook: finds the course, or fetches it on Colab."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    code = (Path(__file__).parent / "templates" / "first_cell.py").read_text(encoding="utf-8")
    code = code.replace("REPOSITORY", settings(ROOT)["repository"]).replace("VERSION", project["version"])
    return nbformat.v4.new_code_cell(
        code.strip(), id="setup", metadata={"cellView": "form", "jupyter": {"source_hidden": True}}
    )


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


def generate(chapter, root=ROOT):
    """Write a chapter's source notebook and, through nbgrader's own `generate_assignment`, its exercise notebook.

    Parameters
    ----------
    chapter : str
    root : path
        The course: `_build/source/` and `exercises/` are written under it.
    """
    root = Path(root)
    path = root / "_build" / "source" / chapter / f"{chapter}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(source_notebook(chapter), path)
    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()
    config.CourseDirectory.root = str(root)
    with tempfile.TemporaryDirectory() as scratch:
        config.CourseDirectory.db_url = f"sqlite:///{scratch}/gradebook.db"  # a class's own is not ours to touch
        result = NbGraderAPI(config=config).generate_assignment(chapter, force=True)
    if not result["success"]:
        raise RuntimeError(
            f"{chapter}: nbgrader could not make the exercise notebook\n{result.get('error') or result.get('log')}"
        )
    out = root / "exercises" / chapter
    shutil.rmtree(out / ".ipynb_checkpoints", ignore_errors=True)


def gpu_pages():
    """The names of the GPU chapters' pages."""
    return sorted(path.stem for path in (ROOT / "book" / GPU_PAGES).glob("*.md"))


def generate_from_page(page, root=ROOT):
    """Write the notebook of a GPU chapter's page.

    Parameters
    ----------
    page : str
    root : path
        `exercises/` is written under it.
    """
    made = page_notebook(f"{GPU_PAGES}/{page}", first_cell())
    made.metadata = KERNEL | {"accelerator": "GPU"}  # Colab takes a machine with one
    path = Path(root) / "exercises" / GPU_PAGES / f"{page}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m autograder.notebooks.generate", description="Write the exercise notebooks."
    )
    parser.add_argument("chapter", nargs="*", help="default: all, and the notebooks of the GPU pages")
    chapters = parser.parse_args().chapter
    for chapter in chapters or dict.fromkeys(names().values()):
        generate(chapter)
        print(f"exercises/{chapter}/{chapter}.ipynb")
    for page in [] if chapters else gpu_pages():
        generate_from_page(page)
        print(f"exercises/{GPU_PAGES}/{page}.ipynb")


if __name__ == "__main__":
    main()
