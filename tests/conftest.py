"""The built site, for the tests of its pages: made once, and only when its sources have changed."""

import contextlib
import fcntl
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


LONG = "test_ordinary_user.py"  # one test that runs a hundred others


def pytest_collection_modifyitems(items):
    """Files that need the site come last, for it is built meanwhile; among their kind, the long ones come first."""
    tests = Counter(item.path for item in items)
    slow = {item.path for item in items if "solving" in item.fixturenames or item.path.name == LONG}
    items.sort(key=lambda item: ("site" in item.fixturenames, item.path not in slow, -tests[item.path]))


class Build:
    """The site's build, beside the first tests: it keeps one core busy for minutes.

    Attributes
    ----------
    folder : path
        `log` in it is what it says, `status` its exit status once it has ended: other processes wait for it.
    """

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        build = [sys.executable, ROOT / "book" / "build.py", "build", "--all", "-n", "-W", "--keep-going", ROOT]
        script = 'cd "$0"; "$@" >log 2>&1; echo $? >status.new; mv status.new status'
        command = ["sh", "-c", script, self.folder, *build]
        self.process = subprocess.Popen(command, start_new_session=True)

    def end(self):
        with contextlib.suppress(ProcessLookupError):  # where the tests were stopped before it was through
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder)


BUILD = pytest.StashKey()


def begin(config):
    if is_stale():
        config.stash[BUILD] = Build()


def pytest_sessionstart(session):
    if session.config.getoption("numprocesses", None):  # what its workers will run is not known here: the whole suite
        begin(session.config)


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
