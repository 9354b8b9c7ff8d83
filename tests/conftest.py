"""The built site, for the tests of its pages: made once, and only when its sources have changed."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

# The models of the tests are small, and the site is built beside them: a second thread of torch would wait for its core
os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))


HTML = ROOT / "_build" / "html"


def is_stale():
    """Whether the site that lies there was made of other sources, or not at all."""
    from course_site import sources_digest

    signature = HTML / ".sources"
    return not signature.exists() or signature.read_text() != sources_digest()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: "site" in item.fixturenames)  # the others run while the site is built


@pytest.fixture(scope="session", autouse=True)
def building(request):
    """The site's build, if one is needed, beside the first tests: it keeps one core busy for minutes."""
    needed = any("site" in item.fixturenames for item in request.session.items)
    if not needed or not is_stale():
        yield None
        return
    command = [sys.executable, ROOT / "book" / "build.py", "build", "--all", "-n", "-W", "--keep-going", ROOT]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT)
        process.log = log
        yield process
        process.kill()  # where the tests were stopped before it was through
        process.wait()


@pytest.fixture(scope="session")
def site(building):
    if building and building.wait():
        building.log.seek(0)
        pytest.fail(f"the site was not built:\n{building.log.read()[-6000:]}")
    return HTML


@pytest.fixture(scope="session")
def npm():
    """`npm("html-validate@9.7.1")`: a folder with that package of npm and what it needs; fetched once."""

    def fetched(package):
        if not shutil.which("npm"):
            pytest.skip(f"npm, which brings {package}, is not here")
        folder = ROOT / "_build" / "npm" / package
        if not (folder / "node_modules").exists():
            folder.mkdir(parents=True, exist_ok=True)
            command = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", folder, package]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                shutil.rmtree(folder)
                pytest.skip(f"npm did not bring {package}: {done.stderr.strip()[-300:]}")
        return folder

    return fetched
