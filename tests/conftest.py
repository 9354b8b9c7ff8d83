"""The built site, for the tests of its pages: made once, and only when its sources have changed."""

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
