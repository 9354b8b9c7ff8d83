"""A course in a folder of its own, and the commands on it as a teacher runs them."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.__main__ import main
from autograder.grading.classroom import remember

ROOT = Path(__file__).parents[2]


class Course:
    """A folder with `nbgrader_config.py` and the exercises, in which commands are run."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "nbgrader_config.py", self.folder)
        shutil.copytree(ROOT / "exercises", self.folder / "exercises", dirs_exist_ok=True)
        remember(self.folder)  # as new-class does

    def run(self, *arguments, status=0):
        """Run a command of ours in this process; returns its output. Its exit status must be the given one, or any."""
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            try:
                returned = main([*map(str, arguments)])
            except SystemExit as exit:
                returned = exit.code
        assert status is None or returned == status, f"{out.getvalue()}\n{errors.getvalue()}"
        return SimpleNamespace(stdout=out.getvalue(), stderr=errors.getvalue())

    def command(self, *arguments, module="autograder", status=0, path="/usr/bin:/bin", under=()):
        """Run a command as a user does, in a process of its own.

        The environment is not on the PATH: `.venv/bin/python -m autograder` must do without. `under` is a command
        that runs it; a status of None is any.
        """
        done = subprocess.run(
            [*under, sys.executable, "-m", module, *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert status is None or done.returncode == status, f"{done.stdout}\n{done.stderr}"
        return done

    def verdict(self, student, assignment="patchify"):
        return json.loads((self.folder / "autograded" / student / assignment / "verdict.json").read_text("utf-8"))

    def page(self, student, assignment="patchify"):
        return (self.folder / "feedback" / student / assignment / f"{assignment}.html").read_text("utf-8")

    def gradebook(self):
        """nbgrader's own view of the gradebook, to be used in a `with`."""
        from autograder.grading.gradebook import api  # which finds `alembic` where the environment is not activated

        return api.Gradebook(f"sqlite:///{self.folder}/gradebook.db", "patches-and-positions")


@pytest.fixture
def interruptible():
    """SIGINT as a terminal has it, here and in what the test starts: a job in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def module_course(tmp_path_factory):
    """An empty course for all tests of a module."""
    return Course(tmp_path_factory.mktemp("module") / "course")


@pytest.fixture
def course(tmp_path):
    """An empty course."""
    return Course(tmp_path / "course")


@pytest.fixture(scope="session")
def graded(tmp_path_factory):
    """The sample class, graded; only to be looked at."""
    from build import hand_in

    course = Course(tmp_path_factory.mktemp("class") / "course")
    hand_in(course.folder)
    course.done = course.command("grade")
    return course
