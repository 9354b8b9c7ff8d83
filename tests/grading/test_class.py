"""The sample class through `python -m autograder grade`, in the real sandbox."""

import csv
import io
import json
import re
from fractions import Fraction

import nbformat
import pytest
from build import EXPECTED, STUDENTS

POINTS = {"patchify": 3, "unpatchify": 2, "conv_weight_to_linear": 3, "patch_embed_conv": 4}


def hand_counted(student):
    return {name: float(Fraction(share) * POINTS[name]) for name, share in EXPECTED[student].items()}


@pytest.mark.parametrize("student", [student for student in EXPECTED if EXPECTED[student]])
def test_known_scores(graded, student):
    verdict = graded.verdict(student)
    assert verdict["status"] == "graded"
    assert {row["name"]: row["score"] for row in verdict["exercises"]} == pytest.approx(hand_counted(student))
    assert verdict["score"] == pytest.approx(sum(hand_counted(student).values()))


def test_scores_are_in_nbgraders_gradebook(graded):
    with graded.gradebook() as book:
        for student in EXPECTED:
            notebook = book.find_submission("patchify", student).notebooks[0]
            grades = {grade.name.removeprefix("check_"): grade for grade in notebook.grades}
            assert {name: grade.max_score for name, grade in grades.items()} == POINTS
            if EXPECTED[student] is None:
                assert all(grade.auto_score is None and grade.needs_manual_grade for grade in grades.values())
            else:
                scores = {name: grade.auto_score for name, grade in grades.items()}
                assert scores == pytest.approx(hand_counted(student))
                assert not notebook.needs_manual_grade


@pytest.mark.parametrize(
    ("student", "name", "misconception"),
    [
        ("emil", "patch_embed_conv", "two flatten orders mixed"),
        ("fatou", "patchify", "plain reshape"),
        ("gita", "unpatchify", "height and width swapped"),
        ("gita", "conv_weight_to_linear", "not transposed"),
        ("gita", "patch_embed_conv", "bias forgotten"),
        ("jonas", "patchify", "no error for an image without a patch"),
    ],
)
def test_misconceptions_are_named(graded, student, name, misconception):
    row = next(row for row in graded.verdict(student)["exercises"] if row["name"] == name)
    assert misconception in {failure["misconception"] for failure in row["failures"]}
    assert misconception.lower() in graded.page(student).lower()


def test_a_changed_argument_is_told(graded):
    row = graded.verdict("jonas")["exercises"][0]
    assert any(failure["subtest"] == "inputs unchanged" for failure in row["failures"])
    assert "changed its argument img" in graded.page("jonas")


def test_a_stub_is_not_written(graded):
    assert {row["status"] for row in graded.verdict("henk")["exercises"]} == {"not written"}


def test_one_broken_function_leaves_the_others(graded):
    statuses = [row["status"] for row in graded.verdict("ines")["exercises"]]
    assert statuses == ["failed", "passed", "passed", "passed"]


def test_what_cannot_be_read_is_no_silent_zero(graded):
    verdict = graded.verdict("karl")
    assert (verdict["status"], verdict["score"], verdict["exercises"]) == ("not readable", None, [])
    assert "no notebook" in verdict["reason"]
    assert "not readable" in graded.page("karl").lower()
    assert re.search(r"^karl .*not readable", graded.done.stdout, re.MULTILINE)
    with graded.gradebook() as book:
        assert "no notebook" in book.find_submission("patchify", "karl").notebooks[0].comments[0].auto_comment


def test_colab_notebook_is_mended(graded):
    repairs = " ".join(graded.verdict("zoë")["repairs"])
    assert "had no id" in repairs
    assert "metadata is gone" in repairs
    assert "patchify (1).ipynb" in repairs


def test_summary_names_every_status(graded):
    lines = graded.done.stdout.splitlines()
    assert len([line for line in lines if re.search(r"\b(graded|not readable)\b", line)]) >= len(EXPECTED)
    assert lines[-1] == "12 submissions: 11 graded, 1 not readable; 12 in this run"
    assert "grading" in graded.done.stderr  # progress


def test_record_says_how_it_was_made(graded):
    verdict = graded.verdict("ada")
    assert verdict["student"] == "ada"
    assert verdict["isolation"] == "bubblewrap"
    assert verdict["warning"] is None
    assert re.fullmatch(r"[0-9a-f]{12}", verdict["version"])
    assert len(verdict["file"]["sha256"]) == 64
    assert verdict["graded_at"].endswith("+00:00")


@pytest.mark.parametrize("student", EXPECTED)
def test_graded_notebook_is_one_that_nbgrader_takes(graded, student):
    path = graded.folder / "autograded" / student / "patchify" / "patchify.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    checks = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    assert [cell.metadata.nbgrader.grade_id for cell in checks] == [f"check_{name}" for name in POINTS]
    assert all(cell.source == f"check({name})" for cell, name in zip(checks, POINTS, strict=True))
    if student in STUDENTS:
        assert all(f"{name}: " in cell.outputs[0].text for cell, name in zip(checks, POINTS, strict=True))


@pytest.mark.parametrize("student", EXPECTED)
def test_feedback_is_small_and_asks_for_nothing(graded, student):
    page = graded.page(student)
    assert len(page.encode()) < 30_000
    assert "<script" not in page
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|@import|url\(", page)
    assert "width=device-width" in page
    assert "prefers-color-scheme: dark" in page


def test_hidden_checks_get_only_a_hint(graded):
    for student in EXPECTED:
        for row in graded.verdict(student)["exercises"]:
            for failure in row["failures"]:
                if failure["hidden"]:
                    assert failure["message"].startswith(f"{row['name']}: a hidden check, “")
                    assert "; yours" not in failure["message"]  # of the case itself nothing is said


def test_report_counts_the_class(graded, tmp_path):
    report = json.loads(graded.run("report", "--json").stdout)["assignments"][0]
    assert report["submissions"] == 12
    assert report["statuses"] == {"graded": 11, "not readable": 1}
    rows = {row["name"]: row for row in report["exercises"]}
    assert rows["patchify"]["passed"] == 7  # of ada, bo, chen, dana, emil, gita, zoë
    assert {"name": "plain reshape", "students": 1} in rows["patchify"]["misconceptions"]
    assert report["attention"][0]["student"] == "karl"
    graded.run("report", "--output", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "two flatten orders mixed" in page
    assert "<script" not in page


def test_report_counts_only_what_was_judged(graded):
    """Of a stub, and of a function that is not there, no check says anything; they are counted by their status."""
    for row in json.loads(graded.run("report", "--json").stdout)["assignments"][0]["exercises"]:
        assert row["statuses"]["not written"] == 1  # henk
        judged = sum(row["statuses"].get(status, 0) for status in ("failed", "partly passed"))
        assert all(check["students"] <= judged for check in row["failed_checks"]), row
        changed = [c["students"] for c in row["failed_checks"] if c["title"] == "The arguments are as they were"]
        assert sum(changed) <= (row["name"] == "patchify")  # jonas, where it is among the five commonest


@pytest.mark.parametrize("form", ["nbgrader", "canvas", "moodle"])
def test_ids_come_through_as_they_are(course, form):
    """The LMS finds a student by the exact text; only what could act as a formula is kept from being one."""
    formula = "=cmd|'C calc'!A0"
    ids = ["=ada", "-17", "+49", "@bo", "chen@example.org", "a, b", 'say "x"', "zoë 李", "-", "=1+1", "'d'", formula]
    with course.gradebook() as book:
        book.add_assignment("patchify")
        for one in ids:
            book.add_student(one, first_name="=HYPERLINK(1)", last_name=" Ō'Neil, ", email=f"{one}@x")
            book.add_submission("patchify", one)
    rows = list(csv.DictReader(io.StringIO(course.run("export", "--format", form).stdout)))
    column = {"nbgrader": "student_id", "canvas": "SIS Login ID", "moodle": "username"}[form]
    found = [row[column] for row in rows if row.get("Student") != "Points Possible"]
    assert sorted(found) == sorted([*ids[:-1], f"'{formula}"])
    if form != "canvas":
        assert {row[next(key for key in row if "first" in key)] for row in rows} == {"'=HYPERLINK(1)"}
        assert {row["email"] for row in rows} == {f"{'' if one != formula else chr(39)}{one}@x" for one in ids}


def test_exports(graded, tmp_path):
    nbgrader = graded.run("export").stdout.splitlines()
    assert nbgrader[0].startswith("assignment,duedate,timestamp,student_id,")
    assert any(line.startswith("patchify,,,emil,") and ",8.8889,12.0" in line for line in nbgrader)
    canvas = graded.run("export", "--format", "canvas").stdout.splitlines()
    assert canvas[0] == "Student,ID,SIS User ID,SIS Login ID,Section,patchify"
    assert "ada,,,ada,,12.0" in canvas
    assert "karl,,,karl,," in canvas  # no score is no zero
    graded.run("export", "--format", "moodle", "--output", tmp_path / "moodle.csv")
    moodle = (tmp_path / "moodle.csv").read_text("utf-8").splitlines()
    assert moodle[0] == "username,firstname,lastname,email,patchify"
    assert "zoë,,,,12.0" in moodle
