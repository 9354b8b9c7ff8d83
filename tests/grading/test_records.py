"""Trying a run without recording it, who was graded how, and a student whose data are to go."""

import json
import os
import subprocess

import pytest
from build import STUDENTS, notebook, submit

from autograder.judging.exercise import exercises

FULL = f"{sum(exercise.points for exercise in exercises('patchify')):g}"  # whatever the chapter has by now


def everything(folder):
    """Every file of a folder with its content."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def two(course):
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    submit(course.folder, "bo", notebook(STUDENTS["emil"]))
    course.run("grade")
    return course


def test_a_dry_run_on_a_new_course_writes_nothing(course):
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    before = everything(course.folder)
    done = course.run("grade", "--dry-run")
    assert everything(course.folder) == before
    assert "1 submission: 1 graded; 1 in this run" in done.stdout
    assert done.stdout.splitlines()[-1].split() == ["ada", "patchify", "all", "–", "12.00"]


def test_a_dry_run_says_whose_grade_would_change(two):
    right = next(row["score"] for row in two.verdict("bo")["exercises"] if row["name"] == "patch_embed_conv")
    with two.gradebook() as book:
        # As if the tests had been milder, and a person had looked at one of the exercises.
        book.find_grade("check_unpatchify", "patchify", "patchify", "ada").auto_score = 1.0
        book.find_grade("check_patch_embed_conv", "patchify", "patchify", "bo").auto_score = 4.0
        book.find_grade("check_patch_embed_conv", "patchify", "patchify", "bo").manual_score = 3.5
        book.db.commit()
    for path in two.folder.glob("autograded/*/patchify/verdict.json"):
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"version": "0123456789ab"}))
    before = everything(two.folder)
    told = [line.split() for line in two.run("grade", "--dry-run").stdout.splitlines()]
    assert everything(two.folder) == before
    assert ["2", "submissions:", "2", "graded;", "2", "in", "this", "run"] in told
    assert told[-2:] == [
        ["ada", "patchify", "unpatchify", "1.00", "2.00"],
        [
            "bo",
            "patchify",
            "patch_embed_conv",
            "4.00",
            f"{right:.2f}",
            *["a", "person", "gave", "3.50:", "that", "stays"],
        ],
    ]
    two.run("grade")
    assert "nothing would change" in two.run("grade", "--dry-run", "--force").stdout


def test_an_exercise_that_came_later_is_added_to_a_gradebook(two):
    """What the class has stays, a person's change too; the new one has its score once it is graded again."""
    cells = "check_unpatchify", "unpatchify"
    with two.gradebook() as book:
        # As if the gradebook had been begun before there was the exercise.
        book.find_grade("check_patch_embed_conv", "patchify", "patchify", "bo").manual_score = 3.5
        source = book.find_notebook("patchify", "patchify")
        for cell in (*source.grade_cells, *source.solution_cells, *source.source_cells):
            if cell.name in cells:
                for place in (*getattr(cell, "grades", ()), *getattr(cell, "comments", ())):
                    book.db.delete(place)
                book.db.delete(cell)
        book.db.commit()

        def scores(student):
            grades = book.find_submission("patchify", student).notebooks[0].grades
            return {grade.name.removeprefix("check_"): grade.score for grade in grades}

        before = {student: scores(student) for student in ("ada", "bo")}
        assert all("unpatchify" not in of for of in before.values())
        submit(two.folder, "ada", notebook())  # one of two hands in again
        two.run("grade")
        book.db.expire_all()
        row = next(row for row in two.verdict("bo")["exercises"] if row["name"] == "unpatchify")
        assert scores("bo") == before["bo"] | {"unpatchify": row["score"]}
        assert scores("ada") == dict.fromkeys(before["ada"] | {"unpatchify": 0.0}, 0.0)
        names = [cell.name for cell in book.find_notebook("patchify", "patchify").source_cells]
        assert sorted(name for name in names if name in cells) == sorted(cells)


def test_who_was_graded_how(two):
    submit(two.folder, "bo", notebook())
    two.run("grade", "--student", "bo", "--seed", 77, "--isolation", "none")
    path = two.folder / "autograded" / "ada" / "patchify" / "verdict.json"
    path.write_text(json.dumps(two.verdict("ada") | {"version": "0123456789ab"}))
    rows = [line.split() for line in two.run("list").stdout.splitlines()]
    verdicts = two.verdict("ada"), two.verdict("bo")
    assert rows[1][:7] == ["ada", "patchify", "graded", "12.00", "/", FULL, "0"]
    assert rows[1][7:9] == ["0123456789ab", verdicts[0]["graded_at"]]
    assert rows[1][9:] == ["the", "tests", "have", "changed", "since"]
    assert rows[2][:9] == ["bo", "patchify", "graded", "0.00", "/", FULL, "77", verdicts[1]["version"],
                           verdicts[1]["graded_at"]]  # fmt: skip
    assert "without isolation" in " ".join(rows[2])
    assert len(two.run("list", "--student", "bo").stdout.splitlines()) == 2
    assert "nothing has been graded" in two.run("list", "--assignment", "tokens", status=1).stderr


def test_a_student_is_forgotten_and_nobody_else(two):
    submit(two.folder, "b", notebook())  # whose name begins as the other's
    submit(two.folder, "bo patchify", notebook())
    two.run("grade")
    before = everything(two.folder)
    done = two.run("forget", "bo", status=1)
    assert "add --yes" in done.stderr and "submitted/bo: 1 file" in done.stdout
    assert everything(two.folder) == before
    done = two.run("forget", "bo", "--yes")
    for words in ("gradebook: the student and 1 submission", "autograded/bo: 2 files", "feedback/bo: 1 file", "1 line"):
        assert words in done.stdout
    after = everything(two.folder)
    theirs = {path for path in before if "bo" in path.relative_to(two.folder).parts}
    assert len(theirs) == 4 and set(before) - set(after) == theirs
    changed = {path.name for path in after if after[path] != before.get(path)}
    assert changed == {"gradebook.db", "grading.log"}
    log = (two.folder / "autograded" / "grading.log").read_text("utf-8")
    assert " bo patchify: graded" not in log.replace(" bo patchify patchify: graded", "")
    assert all(f" {name} patchify: graded" in log for name in ("ada", "b", "bo patchify"))
    with two.gradebook() as book:
        assert {student.id for student in book.students} == {"ada", "b", "bo patchify"}
        counts = [book.db.connection().exec_driver_sql(f"SELECT count(*) FROM {table}").scalar()
                  for table in ("submitted_assignment", "submitted_notebook", "grade", "comment")]  # fmt: skip
        assert counts == [3, 3, 3 * len(exercises("patchify")), 3 * len(exercises("patchify"))]
    assert "nothing of bo" in two.run("forget", "bo", "--yes", status=1).stderr
    assert two.run("grade").stdout.splitlines()[-1] == "3 submissions: 3 graded; 0 in this run"


@pytest.mark.parametrize("name", ["..", ".", "../course", "ada/patchify", "", " ada", "l\udce9a"])
def test_only_a_student_is_forgotten(two, name):
    before = everything(two.folder)
    two.run("forget", name, "--yes", status=2 if not name else 1)
    assert everything(two.folder) == before


def test_what_a_link_leads_to_is_not_removed(two):
    outside = two.folder.parent / "outside"
    outside.mkdir()
    (outside / "precious").write_text("")
    os.symlink(outside, two.folder / "submitted" / "eve")
    two.run("forget", "eve", "--yes")
    assert (outside / "precious").exists() and not (two.folder / "submitted" / "eve").is_symlink()


def test_whoever_has_a_thousand_folders_in_one_another_can_be_forgotten(two):
    place = os.open(two.folder / "submitted/bo/patchify", os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=place)
        above, place = place, os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(above)
    os.close(place)
    try:
        assert "submitted/bo: 1 file\n" in two.run("forget", "bo", status=1).stdout
        two.run("forget", "bo", "--yes")
    finally:  # pytest's own cleaning ends there, too
        subprocess.run(["rm", "-rf", two.folder / "submitted/bo"], check=True)
    for step in ("submitted", "autograded", "feedback"):
        assert "ada" in os.listdir(two.folder / step) and "bo" not in os.listdir(two.folder / step)
    assert "bo" not in two.run("export").stdout
