"""What the Makefile does, on a course of empty files: the programs it calls do nothing here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def make(tmp_path):
    """Run make in a course whose environment is there and up to date; returns what it prints."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for file in ("requirements.txt", "constraints.txt", "pyproject.toml", "benchmarks/check.py", "benchmarks/peers.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for program in ("python", "jupyter", "jupyter-book"):
        (programs / program).write_text('#!/bin/sh\necho "$0 $@"\n')
        (programs / program).chmod(0o755)
    (tmp_path / ".venv" / ".ready").touch()

    def make(*arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        done = subprocess.run(["make", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return make


@pytest.mark.parametrize(
    "target", ["book", "lab", "exercises", "grade", "test", "test-all", "bench", "peers", "clean", "lint"]
)
def test_every_target_can_be_made(make, target):
    make("--dry-run", target)


def test_lab_opens_copies_and_keeps_what_is_written_in_them(make, tmp_path):
    (tmp_path / "exercises" / "tokens").mkdir(parents=True)
    original, copy = tmp_path / "exercises" / "tokens" / "tokens.ipynb", tmp_path / "work" / "tokens.ipynb"
    original.write_text("stub")
    assert make("lab").splitlines()[-1].endswith("jupyter lab --notebook-dir work")
    assert copy.read_text() == "stub"
    copy.write_text("solved")
    make("lab")
    make("clean")
    assert (original.read_text(), copy.read_text()) == ("stub", "solved")


def test_bench_measures_and_does_not_record_peers(make):
    """benchmarks/peers.py writes tests/golden/ and needs an environment of its own."""
    printed = make("bench")
    assert "python benchmarks/check.py" in printed
    assert "peers" not in printed


def test_torch_comes_alone_from_its_index(make):
    """Such an index holds some of torch's requirements in some versions, not those of constraints.txt."""
    lines = make("--dry-run", "--always-make", ".venv/.ready", "TORCH_INDEX=https://example.org/cpu").splitlines()
    torch = next(line for line in lines if "--index-url https://example.org/cpu" in line)
    assert "--no-deps" in torch and "-c constraints.txt" in torch and torch.endswith(" torch")
    assert lines.index(torch) < next(number for number, line in enumerate(lines) if "-r requirements.txt" in line)
    assert "--index-url" not in make("--dry-run", "--always-make", ".venv/.ready")
