"""Style, format, spelling and types are those of `make lint`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(sys.executable).parent
LINES = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split("\n")[:-1]
COMMANDS = [line.strip().removeprefix("$(BIN)/").split() for line in LINES]
# What each must find: a file that only it objects to
WRONG = {
    ("ruff", "check"): "import os\n",
    ("ruff", "format"): "x = ( 1)\n",
    ("codespell",): "# rec" + "ieve\n",
    ("mypy",): "def double(x):\n    return 2 * x\n",
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_lint_finds_nothing(command):
    done = subprocess.run([PROGRAMS / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("command", WRONG, ids=" ".join)
def test_lint_finds_what_is_wrong(command, tmp_path):
    """With the settings of the course."""
    assert command in {tuple(line[: len(command)]) for line in COMMANDS}
    file = tmp_path / "wrong.py"
    file.write_text(WRONG[command])
    more = ["--check"] if "format" in command else []
    done = subprocess.run([PROGRAMS / command[0], *command[1:], *more, file], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0 and "wrong.py" in done.stdout + done.stderr
