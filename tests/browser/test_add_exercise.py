"""The page *Add an exercise*, done word for word in a copy of the course: page, notebook, browser, gradebook."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, served, visits
from test_solve import Box

from autograder.judging.exercise import CHAPTERS

PAGE = (ROOT / "book/teach/add_an_exercise.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TEXT = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(BLOCK,) = re.findall(r"^````markdown\n(.*?)^````$", PAGE, re.MULTILINE | re.DOTALL)
FUNCTION, DECLARATION, BETTER = PYTHON
COMMAND, UNDECLARED, COMMAND_FOR_ONE, HOLES, GOOD = TEXT
# The exercise's page without its other sections, whose cells take a minute
SHORT = """---
kernelspec:
  name: python3
  display_name: Python 3
---
(patchify)=
# Patchify

(cut-and-put-back)=
## Cut and put back

{ref}`tokens` come before.

"""
RIGHT = FUNCTION.partition("# %%\n")[2].partition("\n\n\n# %%")[0]
WRONG = "def patch_centre(i, W_p, P):\n    r, c = divmod(i, P)\n    return np.array([r + 0.5, c + 0.5]) * P\n"


class Tree:
    """A copy of the course, and what an author and a teacher do with it."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("_config.yml", "pyproject.toml", "nbgrader_config.py", "README.md", "LICENSE", "LICENSE-TEXT"):
            shutil.copy(ROOT / name, folder)
        other = [f"{chapter}.*" for chapter in CHAPTERS if chapter not in ("patchify", "tokens")]  # one brings torch
        ignored = shutil.ignore_patterns("__pycache__", "students", "gpu", *other)
        for name in ("autograder", "solutions", "exercises", "tests"):
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        shutil.copytree(ROOT / "book", folder / "book")
        self.page = self.folder / "book" / "patchify.md"
        self.page.write_text(SHORT + BLOCK, encoding="utf-8")

    def add(self, path, text):
        with open(self.folder / path, "a", encoding="utf-8") as file:
            file.write("\n\n" + text)

    def change(self, path, old, new):
        text = (self.folder / path).read_text(encoding="utf-8")
        assert old in text
        (self.folder / path).write_text(text.replace(old, new), encoding="utf-8")

    def run(self, *arguments, course=None):
        """Run Python on the copy; returns what it printed and its exit status."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=course or self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
        )
        return done.stdout + done.stderr, done.returncode

    def preview(self, *arguments):
        return self.run("-m", "autograder.authoring.preview", "book/patchify", *arguments)

    def generate(self):
        printed, status = self.run("-m", "autograder.notebooks.generate", "patchify")
        assert status == 0, printed

    def grade(self, **codes):
        """Hand in what each student wrote for `patch_centre`, grade it, and look into the gradebook."""
        course = self.folder / "course"
        released = json.loads((self.folder / "exercises/patchify/patchify.ipynb").read_text(encoding="utf-8"))
        for student, code in codes.items():
            for cell in released["cells"]:
                if cell["id"] == "patch_centre":
                    cell["source"] = code
            path = course / "submitted" / student / "patchify" / "patchify.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(released), encoding="utf-8")
        shutil.copy(self.folder / "nbgrader_config.py", course)
        shutil.copytree(self.folder / "exercises", course / "exercises", dirs_exist_ok=True)
        printed, status = self.run("-m", "autograder", "grade", course=course)
        assert status == 0, printed
        return self.scores()

    def scores(self):
        """(student, cell) -> (the autograder's score, a person's)."""
        with sqlite3.connect(self.folder / "course" / "gradebook.db") as gradebook:
            rows = gradebook.execute(
                "select student_id, base_cell.name, auto_score, manual_score from grade"
                " join base_cell on base_cell.id = cell_id"
                " join submitted_notebook on submitted_notebook.id = grade.notebook_id"
                " join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id"
            )
            return {(student, cell): scores for student, cell, *scores in rows if "centre" in cell or "middle" in cell}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("course"))


def better(declaration):
    """The declaration with the sub-tests of `BETTER` in the place of those of the same names."""
    for subtest in BETTER.strip().split("\n\n\n"):
        (name,) = re.findall(r"^def (\w+)", subtest, re.MULTILINE)
        pattern = rf"^@patch_centre\.\w+\ndef {name}\(.*?(?=\n\n\n)"
        declaration, count = re.subn(pattern, lambda _, new=subtest: new, declaration, flags=re.MULTILINE | re.DOTALL)
        assert count == 1, name
    return declaration


@pytest.fixture(scope="module")
def added(tree):
    """The copy with the exercise in it, added step by step as the page says; what the command printed at the end."""
    assert COMMAND == "make preview PAGE=book/patchify\n"
    assert tree.preview() == (UNDECLARED, 1)
    tree.add("solutions/patchify.py", FUNCTION)
    cases = tree.folder / "autograder/cases/patchify.py"
    before = cases.read_text(encoding="utf-8")
    tree.add("autograder/cases/patchify.py", DECLARATION)
    assert COMMAND_FOR_ONE == "make preview PAGE=book/patchify EXERCISE=patch_centre\n"
    first = (
        "from autograder.authoring import preview as p; p.build = lambda page: []; p._write_notebooks = print; p.main()"
    )
    printed, _ = tree.run("-c", first, "book/patchify", "patch_centre")
    assert HOLES in printed
    cases.write_text(before + "\n\n" + better(DECLARATION), encoding="utf-8")
    printed, status = tree.preview("patch_centre")
    assert printed.endswith(GOOD) and status == 0, printed
    return printed


def test_the_page_shows_the_exercise(tree, added):
    """As what the page of the book says; no other list has to be extended."""
    path = re.search(r"^The page: (.+)$", added, re.MULTILINE)[1]
    soup = BeautifulSoup((tree.folder / path).read_text(encoding="utf-8"), "html.parser")
    box = soup.select_one("[data-exercise=patch_centre]")
    assert box["data-chapter"] == "patchify" and "Find the middle of a patch" in box.text
    assert box.select_one(".exercise-stub").text.count("raise NotImplementedError") == 1
    assert "divmod" in box.select_one(".solution").text
    assert "WARNING" not in added


def test_a_submission_is_graded_into_the_gradebook(tree, added):
    scores = tree.grade(right=RIGHT, wrong=WRONG)
    assert scores["right", "check_patch_centre"] == [2.0, None]
    # Wrong in every sub-test: the middle of patch 0 is right, but patch 5 is not
    assert scores["wrong", "check_patch_centre"][0] == 0.0
    feedback = tree.folder / "course/feedback/wrong/patchify/patchify.html"
    assert "You divided i by the patch side." in feedback.read_text(encoding="utf-8")


@pytest.mark.slow
def test_it_is_solved_on_the_page(tree, added, browser, runtime):
    html = tree.folder / "_build/preview/_build/html"
    write = "import sys; sys.path.append('book/_ext'); from course_run import write_run; write_run(*sys.argv[1:])"
    assert tree.run("-c", write, html, "", runtime) == ("", 0)
    with served(html) as address, visits(browser, address) as visit:
        box = Box(visit("book/patchify.html"), "patch_centre")
        assert "You divided i by the patch side." in box.check(WRONG)
        assert box.check(RIGHT) == "patch_centre: 2 of 2 checks pass"


@pytest.mark.slow
def test_renamed_and_then_retired_it_keeps_its_grades(tree, added):
    tree.grade(right=RIGHT, wrong=WRONG)
    with sqlite3.connect(tree.folder / "course" / "gradebook.db") as gradebook:
        of_wrong = (
            "select grade.id from grade join base_cell on base_cell.id = cell_id"
            " join submitted_notebook on submitted_notebook.id = grade.notebook_id"
            " join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id"
            " where student_id = 'wrong' and base_cell.name = 'check_patch_centre'"
        )
        gradebook.execute(f"update grade set manual_score = 1.5 where id in ({of_wrong})")
    gradebook.close()
    files = ("solutions/patchify.py", "autograder/cases/patchify.py", "book/patchify.md")
    for file in files:
        tree.change(file, "patch_centre", "patch_middle")
    tree.change("autograder/cases/patchify.py", "patch_middle,\n", 'patch_middle,\n    formerly=("patch_centre",),\n')
    tree.generate()
    kept = {("right", "check_patch_middle"): [2.0, None], ("wrong", "check_patch_middle"): [0.0, 1.5]}
    assert tree.grade() == kept
    verdict = json.loads((tree.folder / "course/autograded/right/patchify/verdict.json").read_text(encoding="utf-8"))
    assert "patch_centre is called patch_middle now: renamed" in verdict["repairs"]
    for file in files[:2]:
        shutil.copy(ROOT / file, tree.folder / file)
    tree.generate()
    assert tree.grade() == kept
    verdict = json.loads((tree.folder / "course/autograded/right/patchify/verdict.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in verdict["retired"]] == ["patch_middle"]


@pytest.mark.slow
def test_no_test_has_to_be_changed(tmp_path):
    """Those that look at all exercises of a chapter, or grade it, take the new one as it comes."""
    ignored = shutil.ignore_patterns("__pycache__", "_build", ".venv", ".git", "node_modules")
    shutil.copytree(ROOT, tmp_path / "course", ignore=ignored)
    tree = Tree.__new__(Tree)
    tree.folder = tmp_path / "course"
    tree.add("solutions/patchify.py", FUNCTION)
    tree.add("autograder/cases/patchify.py", better(DECLARATION))
    tree.add("book/patchify.md", BLOCK)
    tree.generate()
    tests = ("tests/test_exercises.py", "tests/oddities", "tests/grading/test_records.py", "tests/test_layout.py")
    tests += ("tests/grading/test_chapters.py", "tests/grading/test_moved.py", "tests/test_generate.py")
    printed, status = tree.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert status == 0, printed[-6000:]
