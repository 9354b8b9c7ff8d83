"""Stock nbgrader on the same course, before ours and after."""

import nbformat
import pytest
from build import EXPECTED, STUDENTS, notebook, submit

from autograder.notebooks.generate import source_notebook

FEW = ("ada", "bo", "emil", "henk", "ines")
POINTS = {"patchify": 3, "unpatchify": 2, "conv_weight_to_linear": 3, "patch_embed_conv": 4}


@pytest.fixture
def with_source(course):
    path = course.folder / "_build/source/patchify/patchify.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(source_notebook("patchify"), path)
    for student in FEW:
        submit(course.folder, student, notebook(STUDENTS.get(student, "")))
    return course


def scores(course, student):
    with course.gradebook() as book:
        grades = book.find_submission("patchify", student).notebooks[0].grades
        return {grade.name.removeprefix("check_"): grade.auto_score for grade in grades}


def all_or_nothing(student):
    shares = EXPECTED[student]
    return {name: POINTS[name] if top == bottom else 0 for name, (top, bottom) in
            ((name, share.split("/")) for name, share in shares.items())}  # fmt: skip


def test_nbgrader_first_then_ours_then_nbgrader(with_source):
    course = with_source
    released = (course.folder / "exercises/patchify/patchify.ipynb").read_bytes()
    course.command("generate_assignment", "patchify", "--force", module="nbgrader")
    assert (course.folder / "exercises/patchify/patchify.ipynb").read_bytes() == released
    course.command("autograde", "patchify", module="nbgrader")
    for student in FEW:
        assert scores(course, student) == all_or_nothing(student), student
    course.run("grade")
    assert scores(course, "emil")["patch_embed_conv"] == pytest.approx(4 * 2 / 9)
    assert sum(scores(course, "bo").values()) == 12
    # nbgrader reads what ours has left: its feedback, then its own grading over it.
    course.command("generate_feedback", "patchify", "--force", module="nbgrader")
    assert "hidden=True" not in course.page("emil")
    course.command("autograde", "patchify", "--force", "--student", "emil", module="nbgrader")
    assert scores(course, "emil") == all_or_nothing("emil")


def test_ours_first_then_nbgrader(with_source):
    course = with_source
    course.run("grade", "--student", "emil")
    course.command("autograde", "patchify", "--force", "--student", "emil", module="nbgrader")
    assert scores(course, "emil") == all_or_nothing("emil")
    course.command("generate_assignment", "patchify", "--force", module="nbgrader")


def test_validate_says_what_fails(with_source):
    done = with_source.command("validate", "submitted/ada/patchify/patchify.ipynb", module="nbgrader")
    assert "Success" in done.stdout
    done = with_source.command("validate", "submitted/emil/patchify/patchify.ipynb", module="nbgrader")
    assert "You mixed the two flatten orders" in done.stdout + done.stderr
