"""The folder of a class."""

import contextlib

from build import hand_in

from autograder.grading.classroom import Classroom
from autograder.notebooks.generate import ROOT


def settings(folder):
    with contextlib.chdir(folder):
        return Classroom.here()


def test_a_new_class_has_the_notebooks_and_a_seed_of_its_own(course, tmp_path):
    for name in ("one", "two"):
        course.run("new-class", tmp_path / name)
    one, two = settings(tmp_path / "one"), settings(tmp_path / "two")
    assert one.seed != two.seed
    assert 0 not in (one.seed, two.seed)
    assert one.course_version == two.course_version == "0.1.0"
    assert (tmp_path / "one" / "nbgrader_config.py").stat().st_mode & 0o077 == 0
    ours = {path.relative_to(ROOT) for path in ROOT.glob("exercises/*/*.ipynb")}
    assert ours == {path.relative_to(tmp_path / "one") for path in (tmp_path / "one").glob("exercises/*/*.ipynb")}


def test_nothing_is_written_into_a_folder_that_is_used(course, tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").write_text("mine")
    for used in (tmp_path / "used", tmp_path / "used" / "notes.txt"):
        assert "is not empty" in course.run("new-class", used, status=1).stderr
    assert [path.name for path in (tmp_path / "used").iterdir()] == ["notes.txt"]


def test_a_new_class_is_made_without_the_one_in_the_current_folder(course, tmp_path):
    """Which may be what somebody handed in: nothing in it is run, and it becomes no class of ours."""
    mark = course.folder / "mark"
    (course.folder / "nbgrader_config.py").write_text(f"open({str(mark)!r}, 'w')")
    course.run("new-class", tmp_path / "class")
    assert settings(tmp_path / "class").seed > 0 and not mark.exists()


def test_another_version_of_the_course_grades_nothing(course, tmp_path, monkeypatch):
    course.run("new-class", tmp_path / "class")
    course.folder = tmp_path / "class"
    hand_in(course.folder)
    monkeypatch.setattr("autograder.course.version", lambda: "0.2.0")
    refused = course.run("grade", "--student", "ada", status=1).stderr
    assert "keeps to version 0.1.0" in refused
    assert "this is 0.2.0" in refused
    assert not (course.folder / "gradebook.db").exists()
    monkeypatch.undo()
    course.run("grade", "--student", "ada")
    assert course.verdict("ada")["seed"] == settings(course.folder).seed
