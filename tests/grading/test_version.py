"""What the version of a verdict covers, and the system calls that a class allows."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from build import STUDENTS, hand_in, notebook, submit

ROOT = Path(__file__).parents[2]
ASK = (
    "import sys; sys.path.insert(0, '.'); from autograder.grade import version; print(version('{}'), version('sincos'))"
)


def versions(folder, chapter="patchify"):
    command = [sys.executable, "-B", "-c", ASK.format(chapter)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clone")
    for name in ("autograder", "solutions"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder, versions(folder)


RUN_AND_JUDGE = ["calls", "cells", "compare", "exercise", "filter", "grade", "inside", "judge", "notebook", "sandbox",
                 "wire"]  # fmt: skip


@pytest.mark.parametrize("name", RUN_AND_JUDGE)
def test_code_that_runs_and_judges_is_in_every_version(clone, name):
    folder, before = clone
    path = folder / "autograder" / f"{name}.py"
    text = path.read_text()
    path.write_text(text + "\n# changed\n")
    try:
        assert all(now != then for now, then in zip(versions(folder), before, strict=True))
    finally:
        path.write_text(text)


@pytest.mark.parametrize("name", ["autograder/cases/patchify.py", "solutions/patchify.py"])
def test_what_belongs_to_a_chapter_is_in_its_version(clone, name):
    folder, before = clone
    path = folder / name
    text = path.read_text()
    path.write_text(text + "\n# changed\n")
    try:
        now = versions(folder)
        assert now[0] != before[0] and now[1] == before[1]
    finally:
        path.write_text(text)


@pytest.mark.parametrize("name", ["autograder/feedback.py", "autograder/classroom.py", "autograder/export.py"])
def test_what_only_shows_a_verdict_is_in_none(clone, name):
    folder, before = clone
    path = folder / name
    text = path.read_text()
    path.write_text(text + "\n# changed\n")
    try:
        assert versions(folder) == before
    finally:
        path.write_text(text)


@pytest.mark.parametrize(
    "line",
    ["from solutions import (\n    tokens,\n)", "import solutions.tokens", "from solutions.tokens import embed as e"],
)
def test_imports_are_followed_however_they_are_written(clone, line):
    folder, _ = clone
    cases, solution = folder / "autograder/cases/patchify.py", folder / "solutions/tokens.py"
    kept = cases.read_text(), solution.read_text()
    cases.write_text(f"{kept[0]}\n{line}\n")
    try:
        before = versions(folder)
        solution.write_text(kept[1] + "\n# changed\n")
        now = versions(folder)
        assert now[0] != before[0] and now[1] == before[1]
    finally:
        cases.write_text(kept[0])
        solution.write_text(kept[1])


def allow(course, value):
    path = course.folder / "nbgrader_config.py"
    path.write_text(f"{path.read_text()}\nc.Autograder.allowed_system_calls = {value}\n")


def test_a_class_allows_a_system_call(course):
    """Its verdicts say so, and it is graded again when that changes."""
    ada = STUDENTS["ada"] + "\n\nimport os\nos.memfd_create('x')\n"
    submit(course.folder, "ada", notebook(ada))
    course.run("grade")
    assert course.verdict("ada")["limits"] == {"time_limit": 5.0, "memory_limit": 1024}
    allow(course, "['memfd_create', 'mbind']")
    assert "1 in this run" in course.run("grade").stdout
    verdict = course.verdict("ada")
    assert verdict["limits"]["system_calls"] == ["mbind", "memfd_create"] and verdict["warning"] is None
    assert "0 in this run" in course.run("grade").stdout
    allow(course, "'all'")
    assert "1 in this run" in course.run("grade").stdout
    verdict = course.verdict("ada")
    assert verdict["limits"]["system_calls"] == "all" and "without a filter" in verdict["warning"]


@pytest.mark.parametrize("value", ["['mount']", "['memfd_creat']", "'memfd_create'", "True", "[5]", "None"])
def test_what_a_class_cannot_allow(course, value):
    hand_in(course.folder)
    allow(course, value)
    said = course.run("grade", status=1).stderr
    assert "c.Autograder.allowed_system_calls = " in said and "memfd_create" in said and "or 'all'" in said
    assert not (course.folder / "autograded").exists()


def test_a_sandbox_that_cannot_be_made_any_more_ends_no_class(monkeypatch):
    """It has worked before in this run: only the submission at hand is left for another."""
    from autograder import grade as grading
    from autograder.sandbox import Sandbox, SandboxUnavailable

    data, limits = json.dumps(notebook(STUDENTS["ada"])).encode(), grading.Limits(time_limit=4.0)

    def unavailable(self):
        raise SandboxUnavailable("no more namespaces")

    with monkeypatch.context() as patch:
        patch.setattr(Sandbox, "start", unavailable)
        with pytest.raises(SandboxUnavailable):
            grading.grade(data, assignment="patchify", limits=limits)
    assert grading.grade(data, assignment="patchify", limits=limits)[0]["score"] == 12.0
    grading.close_sandbox()
    with monkeypatch.context() as patch:
        patch.setattr(Sandbox, "start", unavailable)
        verdict, _ = grading.grade(data, assignment="patchify", limits=limits)
    assert (verdict["status"], verdict["score"]) == ("partly graded", None)
    assert "no more namespaces" in verdict["reason"]
    assert grading.grade(data, assignment="patchify", limits=limits)[0]["score"] == 12.0
    grading.close_sandbox()
