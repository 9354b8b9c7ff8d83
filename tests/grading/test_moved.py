"""A notebook that was released before exercises moved to another chapter: graded whole, and no grade is lost.

Nor is one when a chapter gets exercises that a class's notebooks and gradebook do not have.

`classroom/positions/before_rotary.json` is the notebook of the chapter *positions* as it was released when the
exercises of *rotary* were in it, without its texts.
"""

import csv
import io
import json
from pathlib import Path

import pytest
from build import colab, grade_id, notebook, submit

from autograder.grading.grade import close_sandbox, grade, version
from autograder.notebooks.read import inspect
from autograder.notebooks.solution import exercise_texts

RELEASED = Path(__file__).parents[1] / "classroom" / "positions" / "before_rotary.json"
# What the released notebook says under each check.
STAYED = {"factorized_table": 2.0, "sincos_2d": 3.0}
MOVED = {"rope_2d_axial": 4.0, "rope_2d_attention": 4.0, "rope_2d_mixed": 3.0, "dinov3_coordinates": 2.0,
         "packed_attention_mask": 2.0}  # fmt: skip
# What the chapter has got since: no notebook of then has it.
ADDED = {"relative_bias_index": 3.0, "decomposed_bias": 4.0}
TODAY, NOT_THERE = STAYED | ADDED, dict.fromkeys(ADDED, 0.0)
TEXTS = {chapter: exercise_texts(chapter) for chapter in ("positions", "rotary")}
SOLUTIONS = {name: text.solution for texts in TEXTS.values() for name, text in texts.items()}


def old(*unwritten):
    """The notebook of then, solved but for some functions."""
    made = json.loads(RELEASED.read_text("utf-8"))
    for cell in made["cells"]:
        if grade_id(cell) in SOLUTIONS.keys() - set(unwritten):
            cell["source"] = SOLUTIONS[grade_id(cell)]
    return made


def new(chapter, *more):
    """A notebook of today, solved, with some functions of another chapter besides."""
    made = notebook("\n".join(SOLUTIONS[name] for name in TEXTS[chapter]), chapter)
    for name in more:
        cell = {"cell_type": "code", "id": f"more-{name}", "metadata": {}, "outputs": [], "execution_count": None}
        made["cells"].append(cell | {"source": SOLUTIONS[name]})
    return made


def points(verdict):
    return {row["name"]: row["score"] for row in verdict["exercises"]}


def recorded(course, student, assignment="positions"):
    """What nbgrader has: exercise -> its score, and whether a person is asked to look."""
    with course.gradebook() as book:
        submission = book.find_submission(assignment, student)
        grades = submission.notebooks[0].grades
        return {grade.name.removeprefix("check_"): (grade.score, grade.needs_manual_grade) for grade in grades}


def give_old_gradebook(course):
    """What a class has whose gradebook was begun with the notebook of then: its source, which made the cells."""
    source = course.folder / "_build" / "source" / "positions" / "positions.ipynb"
    source.parent.mkdir(parents=True)
    source.write_bytes(RELEASED.read_bytes())


def give_old_release(course):
    """What a class has handed out before there was a chapter for what moved."""
    (course.folder / "exercises" / "positions" / "positions.ipynb").write_bytes(RELEASED.read_bytes())
    (course.folder / "exercises" / "rotary" / "rotary.ipynb").unlink()


@pytest.fixture(scope="module", autouse=True)
def one_sandbox():
    yield
    close_sandbox()


# ---------------------------------------------------------------------------------------------- one notebook


def test_the_released_notebook_is_that_of_then():
    cells = json.loads(RELEASED.read_text("utf-8"))["cells"]
    told = [cell["metadata"].get("nbgrader", {}) for cell in cells]
    told = {about["grade_id"]: about["points"] for about in told if about.get("grade")}
    assert told == {f"check_{name}": score for name, score in (STAYED | MOVED).items()}


@pytest.mark.parametrize("assignment", [None, "positions"])
@pytest.mark.parametrize("saved_by", [dict, colab])
def test_it_is_graded_whole(saved_by, assignment):
    data = json.dumps(saved_by(old("sincos_2d", "rope_2d_mixed"))).encode()
    verdict, _ = grade(data, assignment=assignment, filename="positions.ipynb")
    assert (verdict["assignment"], verdict["status"]) == ("positions", "graded")
    assert points(verdict) == STAYED | NOT_THERE | MOVED | {"sincos_2d": 0.0, "rope_2d_mixed": 0.0}
    assert list(points(verdict)) == [*TODAY, *MOVED]
    assert (verdict["score"], verdict["max_score"]) == (14.0, 27.0)
    found = inspect(data, assignment, "positions.ipynb")
    assert found["assignment"] == "positions"
    assert [one["name"] for one in found["exercises"] if one["written"]] == [
        name for name in STAYED | MOVED if name not in ("sincos_2d", "rope_2d_mixed")
    ]


def test_what_was_deleted_in_it_counts_as_before():
    made = old()
    made["cells"] = [cell for cell in made["cells"] if grade_id(cell) not in ("rope_2d_mixed", "check_rope_2d_mixed")]
    verdict, _ = grade(json.dumps(made).encode(), filename="positions.ipynb")
    assert points(verdict) == STAYED | NOT_THERE | MOVED | {"rope_2d_mixed": 0.0}
    assert (verdict["score"], verdict["max_score"]) == (17.0, 27.0)


@pytest.mark.parametrize("saved_by", [dict, colab])
@pytest.mark.parametrize(
    ("chapter", "more", "expected"),
    [("positions", ["rope_2d_axial"], TODAY), ("rotary", ["sincos_2d"], MOVED), ("positions", [], TODAY)],
)
def test_a_notebook_of_today_has_its_own_exercises(chapter, more, expected, saved_by):
    verdict, _ = grade(json.dumps(saved_by(new(chapter, *more))).encode(), filename="work.ipynb")
    assert (verdict["assignment"], points(verdict)) == (chapter, expected)
    assert verdict["max_score"] == sum(expected.values())


def test_a_notebook_for_the_wrong_chapter_is_told_as_ever():
    verdict, _ = grade(json.dumps(new("rotary")).encode(), assignment="positions", filename="positions.ipynb")
    assert verdict["status"] == "not readable" and "there are functions of rotary" in verdict["reason"]


def test_its_version_covers_what_has_moved(monkeypatch):
    read = Path.read_bytes
    before = {chapter: version(chapter) for chapter in ("positions", "rotary", "sincos")}
    changed = ("cases/rotary.py", "solutions/rotary.py")
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * str(path).endswith(changed))
    version.cache_clear()
    try:
        now = {chapter: version(chapter) for chapter in before}
    finally:
        version.cache_clear()
    assert [chapter for chapter in before if now[chapter] != before[chapter]] == ["positions", "rotary"]


# --------------------------------------------------------------------------------------------------- a class


@pytest.mark.parametrize("give", [give_old_release, give_old_gradebook])
def test_a_class_keeps_every_point(course, give):
    """That began when the exercises were in the other chapter, whatever its students hand in."""
    give(course)
    book = "https://example.org/course/book"
    config = course.folder / "nbgrader_config.py"
    config.write_text(f"{config.read_text()}\nc.Autograder.book = {book!r}\n")
    submit(course.folder, "ada", old("rope_2d_mixed"), name="positions.ipynb", assignment="positions")
    submit(course.folder, "bo", new("positions"), name="positions.ipynb", assignment="positions")
    submit(course.folder, "bo", new("rotary"), name="rotary.ipynb", assignment="rotary")
    course.run("grade", "--workers", 1)
    whole = STAYED | NOT_THERE | MOVED | {"rope_2d_mixed": 0.0}
    assert points(course.verdict("ada", "positions")) == whole
    assert recorded(course, "ada") == {name: (score, False) for name, score in whole.items()}
    assert recorded(course, "bo") == {name: (score, False) for name, score in TODAY.items()}
    assert recorded(course, "bo", "rotary") == {name: (score, False) for name, score in MOVED.items()}

    told = [line.split() for line in course.run("list").stdout.splitlines()[1:]]
    assert [line[:6] for line in told] == [
        ["ada", "positions", "graded", "17.00", "/", "27"],
        ["bo", "positions", "graded", "12.00", "/", "12"],
        ["bo", "rotary", "graded", "15.00", "/", "15"],
    ]
    rows = csv.DictReader(io.StringIO(course.run("export", "--format", "nbgrader").stdout))
    assert {(row["student_id"], row["assignment"]): float(row["score"]) for row in rows} == {
        ("ada", "positions"): 17.0,
        ("bo", "positions"): 12.0,
        ("ada", "rotary"): 0.0,
        ("bo", "rotary"): 15.0,
    }
    report = json.loads(course.run("report", "--json").stdout)
    assert [(one["name"], one["max_score"], one["scores"]["most"]) for one in report["assignments"]] == [
        ("positions", 27.0, 17.0),
        ("rotary", 15.0, 15.0),
    ]

    # What is written for the learner and for nbgrader's formgrader.
    assert f'href="{book}/rotary.html#diagonals"' in course.page("ada", "positions")
    released = STAYED if give is give_old_release else TODAY
    for student, functions in (("ada", STAYED | MOVED), ("bo", released)):
        path = course.folder / "autograded" / student / "positions" / "positions.ipynb"
        graded = {grade_id(cell): cell for cell in json.loads(path.read_text("utf-8"))["cells"]}
        assert {name for name in graded if name} - {f"check_{name}" for name in ADDED.keys() - functions} == {
            *functions, *(f"check_{name}" for name in functions)
        }  # fmt: skip
        assert all(graded[f"check_{name}"]["outputs"][0]["text"].startswith(f"{name}: ") for name in functions)

    assert course.run("grade").stdout.splitlines()[-1].endswith("3 graded; 0 in this run")
    assert "nothing would change" in course.run("grade", "--dry-run", "--force").stdout


def test_a_notebook_of_today_takes_no_grade_of_then_away(course):
    give_old_gradebook(course)
    submit(course.folder, "ada", old(), name="positions.ipynb", assignment="positions")
    course.run("grade")
    with course.gradebook() as book:
        book.find_grade("check_rope_2d_axial", "positions", "positions", "ada").manual_score = 1.5
        book.db.commit()
    submit(course.folder, "ada", new("positions"), name="positions.ipynb", assignment="positions")
    told = [line.split() for line in course.run("grade", "--dry-run").stdout.splitlines()]
    assert [line for line in told if line[:2] == ["ada", "positions"]][1:] == [
        ["ada", "positions", name, "0.00", f"{ADDED[name]:.2f}"] for name in sorted(ADDED)
    ]
    course.run("grade")
    scores = {name: score for name, (score, _) in recorded(course, "ada").items()}
    assert scores == TODAY | MOVED | {"rope_2d_axial": 1.5}
    verdict = course.verdict("ada", "positions")
    assert points(verdict) == TODAY
    assert {row["name"]: row["score"] for row in verdict["retired"]} == MOVED
    # The one of then again: what was put by is no longer.
    submit(course.folder, "ada", old(), name="positions.ipynb", assignment="positions")
    course.run("grade")
    assert points(course.verdict("ada", "positions")) == STAYED | NOT_THERE | MOVED
    assert course.verdict("ada", "positions")["retired"] == []


def full_marks(course):
    """What the export for Canvas says that can be had."""
    rows = csv.DictReader(io.StringIO(course.run("export", "--format", "canvas").stdout))
    return {chapter: float(points) for chapter, points in next(rows).items() if chapter in TEXTS}


@pytest.mark.parametrize("unwritten", [(), ("rope_2d_mixed",)])
def test_a_class_of_today_gets_no_other_full_marks_by_a_notebook_of_then(course, unwritten):
    """What it does not count there counts where the exercises are today, once it is handed in there."""
    submit(course.folder, "bo", new("positions"), name="positions.ipynb", assignment="positions")
    submit(course.folder, "ada", old(*unwritten), name="positions.ipynb", assignment="positions")
    submit(course.folder, "ada", old(*unwritten), name="positions.ipynb", assignment="rotary")
    stray = new("positions", "rope_2d_axial")
    stray["cells"].append(stray["cells"][-1] | {"id": "stray", "source": "check(rope_2d_axial)"})
    submit(course.folder, "cy", stray, name="positions.ipynb", assignment="positions")
    course.run("grade")
    assert full_marks(course) == {"positions": 12.0, "rotary": 15.0}
    expected = {"ada": STAYED | NOT_THERE, "bo": TODAY, "cy": TODAY}
    assert {student: points(course.verdict(student, "positions")) for student in expected} == expected
    assert points(course.verdict("ada", "rotary")) == MOVED | dict.fromkeys(unwritten, 0.0)
    (told,) = (line for line in course.verdict("ada", "positions")["repairs"] if "rope_2d_axial" in line)
    assert "exercises of rotary today; hand this notebook in there, too" in told


@pytest.mark.parametrize("give", [give_old_release, give_old_gradebook])
@pytest.mark.parametrize("order", [("positions", "rotary"), ("rotary", "positions"), (None,)])
def test_nothing_counts_twice(course, give, order):
    """What is handed in under both chapters counts in that of today, in whatever order they are graded."""
    give(course)
    submit(course.folder, "ada", old(), name="positions.ipynb", assignment="positions")
    submit(course.folder, "ada", new("rotary"), name="rotary.ipynb", assignment="rotary")
    for assignment in order:
        course.run("grade", *(["--assignment", assignment] if assignment else []))
    course.run("grade", "--force")
    scores = [score for chapter in TEXTS for score, _ in recorded(course, "ada", chapter).values()]
    assert sum(scores) == sum((STAYED | MOVED).values()) and len(scores) == len(TODAY | MOVED)
    rows = csv.DictReader(io.StringIO(course.run("export", "--format", "nbgrader").stdout))
    assert {row["assignment"]: float(row["score"]) for row in rows} == {"positions": 5.0, "rotary": 15.0}


def test_what_a_person_gave_stays_beside_the_other_chapter(course):
    give_old_gradebook(course)
    submit(course.folder, "ada", old(), name="positions.ipynb", assignment="positions")
    course.run("grade")
    with course.gradebook() as book:
        book.find_grade("check_rope_2d_axial", "positions", "positions", "ada").manual_score = 1.5
        book.db.commit()
    submit(course.folder, "ada", new("rotary"), name="rotary.ipynb", assignment="rotary")
    course.run("grade", "--force")
    assert recorded(course, "ada")["rope_2d_axial"][0] == 1.5


def test_a_rotary_notebook_that_cannot_be_read_takes_nothing_away(course):
    give_old_gradebook(course)
    submit(course.folder, "ada", old(), name="positions.ipynb", assignment="positions")
    submit(course.folder, "ada", "%PDF-1.7\n", name="rotary.ipynb", assignment="rotary")
    course.run("grade")
    course.run("grade", "--force")
    assert {name: score for name, (score, _) in recorded(course, "ada").items()} == STAYED | NOT_THERE | MOVED


def test_one_that_cannot_be_read_has_no_score_as_ever(course):
    give_old_release(course)
    submit(course.folder, "ada", old(), name="positions.ipynb", assignment="positions")
    course.run("grade")
    submit(course.folder, "ada", "%PDF-1.7\n", name="positions.ipynb", assignment="positions")
    course.run("grade")
    with course.gradebook() as book:
        grades = book.find_submission("positions", "ada").notebooks[0].grades
        assert {grade.name: grade.auto_score for grade in grades} == dict.fromkeys(
            (f"check_{name}" for name in TODAY | MOVED), None
        )
