"""The same attacks on a sandbox that an ordinary user has built, when the tests run as root."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What is computed outside the sandbox is the same whoever runs it: bytes of the channel, what an answer costs, and the
# filter's rules by themselves
SAME = ("test_wire.py", "test_bounds.py", "test_filter.py")
WITH_A_SANDBOX = "refuses or class_that_allows or written_out or no_table or honest"
NOBODY = "65534"


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as an ordinary user already")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv to become an ordinary user")
@pytest.mark.parametrize("left_out", [SAME, pytest.param((), marks=pytest.mark.slow)])
def test_attacks_as_an_ordinary_user(left_out):
    here = Path(__file__)
    files = [path for path in sorted(here.parent.glob("test_*.py")) if path.name not in (here.name, *left_out)]
    for chosen in (files, [here.with_name("test_filter.py"), "-k", WITH_A_SANDBOX]):
        tests = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *map(str, chosen)]
        done = as_an_ordinary_user(tests, capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def as_an_ordinary_user(command, **options):
    """Run a command as an ordinary user; only root can."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
        return subprocess.run(
            ["unshare", "--mount", "bash", "-ec", f'{_open_the_way(folder)}\nexec "$@"', "bash", *command],
            cwd=ROOT,
            env=os.environ | {"HOME": folder, "TMPDIR": folder, "PYTHONPATH": str(ROOT)},
            **options,
        )


def _open_the_way(folder):
    """Shell commands that put what the tests read where others can reach it, in a mount namespace of its own.

    An interpreter in the home folder of root is closed to everybody else. A folder on the way that is closed is
    covered with an empty one, and what is needed from below it is mounted there again.
    """
    closed = {}
    for needed in dict.fromkeys((Path(sys.base_prefix), Path(sys.prefix), ROOT)):
        for parent in reversed(needed.parents):
            if not parent.stat().st_mode & 0o001:
                closed.setdefault(parent, []).append(needed)
                break
    lines = []
    for number, (parent, needs) in enumerate(closed.items()):
        kept = f"{folder}/kept{number}"
        lines += [f"mkdir {kept}", f"mount --bind '{parent}' {kept}", f"mount -t tmpfs -o mode=755 tmpfs '{parent}'"]
        for needed in needs:
            lines += [f"mkdir -p '{needed}'", f"mount --bind '{kept}/{needed.relative_to(parent)}' '{needed}'"]
        lines += [f"umount -l {kept}"]
    return "\n".join(lines)
