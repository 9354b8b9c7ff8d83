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
from autograder.judging.exercise import names
from autograder.notebooks.from_page import page_notebook
from autograder.notebooks.site import settings
from autograder.notebooks.solution import graded_notebook

KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def source_notebook(chapter):
    """nbgrader's source notebook of a chapter: the graded one, with the cell that finds the course."""
    made = graded_notebook(chapter)
    made.cells.insert(1, first_cell())
    made.metadata = KERNEL
    return made


def first_cell():
    """The first code cell of every notebook: finds the course, or fetches it on Colab."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    code = (Path(__file__).parent / "templates" / "first_cell.py").read_text(encoding="utf-8")
    code = code.replace("REPOSITORY", settings(ROOT)["repository"]).replace("VERSION", project["version"])
    return nbformat.v4.new_code_cell(
        code.strip(), id="setup", metadata={"cellView": "form", "jupyter": {"source_hidden": True}}
    )


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
