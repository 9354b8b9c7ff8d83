"""The built site, for the tests of its pages: made once, and only when its sources have changed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))


@pytest.fixture(scope="session")
def site():
    from course_site import sources_digest

    html = ROOT / "_build" / "html"
    signature = html / ".sources"
    if not signature.exists() or signature.read_text() != sources_digest():
        done = subprocess.run(
            [Path(sys.executable).parent / "jupyter-book", "build", "--all", "-n", "-W", "--keep-going", ROOT],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return html


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
