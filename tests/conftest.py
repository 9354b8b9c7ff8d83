"""The built site, for the tests of its pages: made once, and only when its sources have changed."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

# The models of the tests are small, and the site is built beside them: a second thread of torch would wait for its core
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The classes of the tests are not among those of whoever runs them.
STATE = tempfile.TemporaryDirectory(prefix="autograder-state-")
os.environ["XDG_STATE_HOME"] = STATE.name
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))


HTML = ROOT / "_build" / "html"


def is_stale():
    """Whether the site that lies there was made of other sources, or not at all."""
    from course_site import sources_digest

    signature = HTML / ".sources"
    return not signature.exists() or signature.read_text() != sources_digest()


# These take longest, so none of them may come last; two of them wait for the site, while the others have the cores
LONG = ("test_ordinary_user.py", "test_pages.py", "test_solve.py", "test_guard.py", "test_runs.py", "test_training.py")


def pytest_collection_modifyitems(items):
    """Long files come first and those that need the site last, for it is built meanwhile; among their kind, those of
    most tests come first."""
    tests = Counter(item.path for item in items)

    def place(item):
        name = item.path.name
        return name not in LONG, LONG.index(name) if name in LONG else "site" in item.fixturenames, -tests[item.path]

    items.sort(key=place)


CELLS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "patches-and-positions" / "cells"
# Run in the kernel of each page: what it opens is noted
NOTE = """
import os, sys
def note(event, arguments, file=open({folder!r} + f"/{{os.getpid()}}", "a", buffering=1)):
    if event == "open" and isinstance(arguments[0], str):
        file.write(os.path.abspath(arguments[0]) + "\\n")
sys.addaudithook(note)
"""


def opened():
    """The folder whose files name what the cells have opened whose outputs are kept."""
    from course_site import cells_folder

    return cells_folder(CELLS) / "opened"


def settings_of_kernels(folder):
    """Write IPython's settings for the kernels of the site into a folder; returns the environment that names it."""
    startup = Path(folder, "profile_default", "startup")
    opened().mkdir(parents=True, exist_ok=True)
    startup.mkdir(parents=True)
    (startup / "note.py").write_text(NOTE.format(folder=str(opened())))
    return {"IPYTHONDIR": str(folder), "CELLS": str(CELLS)}


class Build:
    """The site's build, beside the first tests: it keeps a core busy for minutes, or for a part of one where the cells
    of most pages have been run before.

    Parameters
    ----------
    afresh : bool
        Whether every cell is run. Else its output may come from a run that had the same course, packages and machine.

    Attributes
    ----------
    folder : path
        `log` in it is what it says, `status` its exit status once it has ended: other processes wait for it.
    """

    def __init__(self, afresh):
        self.folder = tempfile.mkdtemp()
        if afresh:
            shutil.rmtree(CELLS, ignore_errors=True)
        environment = os.environ | settings_of_kernels(Path(self.folder, "ipython"))
        build = [sys.executable, ROOT / "book" / "build.py", "build", "--all", "-n", "-W", "--keep-going", ROOT]
        script = 'cd "$0"; "$@" >log 2>&1; echo $? >status.new; mv status.new status'
        command = ["sh", "-c", script, self.folder, *build]
        self.process = subprocess.Popen(command, start_new_session=True, env=environment)

    def end(self):
        with contextlib.suppress(ProcessLookupError):  # where the tests were stopped before it was through
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder)


BUILD = pytest.StashKey()
ASKING = ("site", "browser")  # the folders of tests that look at the site


def begin(config):
    if is_stale():
        config.stash[BUILD] = Build(afresh=not config.getoption("markexpr"))  # as `make test-all` does


def may_need_the_site(argument):
    """Whether tests in what pytest was given can ask for the site; which of them will be run is not known yet."""
    asked, tests = Path(argument.partition("::")[0]).resolve(), ROOT / "tests"
    return any(asked in (folder, *folder.parents) or folder in asked.parents for folder in map(tests.joinpath, ASKING))


def pytest_sessionstart(session):
    if session.config.getoption("numprocesses", None) and any(map(may_need_the_site, session.config.args)):
        begin(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Half of their time the tests wait: for limits of time, for a browser, for one process to hear from another."""
    return 2 * (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def pytest_collection_finish(session):
    alone = not hasattr(session.config, "workerinput") and not session.config.getoption("numprocesses", None)
    if alone and any("site" in item.fixturenames for item in session.items):
        begin(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    build = node.config.stash.get(BUILD, None)
    node.workerinput["build"] = build and build.folder


def pytest_unconfigure(config):
    if BUILD in config.stash:
        config.stash[BUILD].end()


@pytest.fixture(scope="session")
def site(pytestconfig):
    """The folder of the built site."""
    build = pytestconfig.stash.get(BUILD, None)
    folder = build.folder if build else getattr(pytestconfig, "workerinput", {}).get("build")
    if folder:
        status = Path(folder, "status")
        while not status.exists():
            time.sleep(0.2)
        if status.read_text().strip() != "0":
            pytest.fail(f"the site was not built:\n{Path(folder, 'log').read_text(errors='replace')[-6000:]}")
    return HTML


@pytest.fixture(scope="session")
def opened_by_cells(site):
    """The files that the cells of the site's pages have opened, when these were last run."""
    if not any(opened().glob("*")):  # or a build of theirs was cut off before it ran a cell
        pytest.skip("the site that is here was not built by the tests")
    return {Path(line) for file in opened().iterdir() for line in file.read_text().splitlines()}


@pytest.fixture
def kept_as_cells(pytestconfig):
    """`kept_as_cells(files, run)`: what `run()` gives, JSON, or gave before nothing has changed of what pages and these
    files say. `make test-all` runs it in any case."""
    from course_site import cells_folder

    def kept(files, run):
        content = b"".join(hashlib.sha256(Path(file).read_bytes()).digest() for file in files)
        path = cells_folder(CELLS) / "runs" / f"{hashlib.sha256(content).hexdigest()[:16]}.json"
        if path.exists() and pytestconfig.getoption("markexpr"):
            return json.loads(path.read_text())
        found = run()
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_suffix(".new")
        whole.write_text(json.dumps(found))
        whole.rename(path)
        return found

    return kept


@pytest.fixture(scope="session")
def npm():
    """`npm("html-validate@9.7.1")`: a folder with that package of npm and what it needs; fetched once."""

    def fetched(package):
        if not shutil.which("npm"):
            pytest.skip(f"npm, which brings {package}, is not here")
        folder = ROOT / "_build" / "npm" / package
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.parent / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the tests run in several processes
            return install(package, folder)

    def install(package, folder):
        if not (folder / "node_modules").exists():
            folder.mkdir(parents=True, exist_ok=True)
            command = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", folder, package]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                shutil.rmtree(folder)
                pytest.skip(f"npm did not bring {package}: {done.stderr.strip()[-300:]}")
        return folder

    return fetched
