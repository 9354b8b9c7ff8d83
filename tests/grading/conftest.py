"""A course in a folder of its own, and the commands on it as a teacher runs them."""

import atexit
import contextlib
import functools
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.__main__ import main
from autograder.grading.classroom import remember

ROOT = Path(__file__).parents[2]


# A Python that has loaded nbgrader, which takes seconds each time, and runs each of its commands in a copy of itself.
# For each new gradebook nbgrader would start one more, to be told a version that is always the same.
LOADED = """
import json, os, runpy, sys
import nbgrader.apps
from alembic.script import ScriptDirectory
from nbgrader import api, dbutil
api.get_alembic_version = ScriptDirectory(dbutil.ALEMBIC_DIR).get_current_head
for line in sys.stdin:
    task = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(task["folder"])
        os.environ.clear()
        os.environ.update(task["environment"])
        for number, place in enumerate((os.devnull, "out", "errors")):
            os.dup2(os.open(os.path.join(task["said"], place), os.O_RDWR | os.O_CREAT), number)
        sys.path[0], sys.argv[1:] = task["folder"], task["arguments"]
        runpy.run_module("nbgrader", run_name="__main__", alter_sys=True)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@functools.cache
def loaded():
    process = subprocess.Popen(
        [sys.executable, "-c", LOADED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    atexit.register(process.communicate)  # it ends where nothing more comes
    return process


def run_nbgrader(folder, arguments, environment):
    """Run a command of nbgrader as `python -m nbgrader` does; returns the finished process."""
    with tempfile.TemporaryDirectory() as said:
        task = {"folder": str(folder), "arguments": arguments, "environment": environment, "said": said}
        print(json.dumps(task), file=loaded().stdin, flush=True)
        status = int(loaded().stdout.readline())
        out, errors = (Path(said, name).read_text("utf-8") for name in ("out", "errors"))
    return SimpleNamespace(returncode=status, stdout=out, stderr=errors)


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
        environment, arguments = {**os.environ, "PATH": str(path), "PYTHONPATH": str(ROOT)}, [*map(str, arguments)]
        if module == "nbgrader" and not under:
            done = run_nbgrader(self.folder, arguments, environment)
        else:
            command = [*under, sys.executable, "-m", module, *arguments]
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
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
