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
    for program in ("python", "jupyter"):
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
    "target", ["book", "lab", "exercises", "grade", "test", "test-all", "bench", "peers", "clean", "lint", "preview"]
)
def test_every_target_can_be_made(make, target):
    make("--dry-run", target)


def test_lab_opens_copies_and_keeps_what_is_written_in_them(make, tmp_path):
    (tmp_path / "exercises" / "tokens").mkdir(parents=True)
    original, copy = tmp_path / "exercises" / "tokens" / "tokens.ipynb", tmp_path / "work" / "tokens.ipynb"
    original.write_text("stub")
    (tmp_path / "exercises" / "gpu").mkdir()
    (tmp_path / "exercises" / "gpu" / "tokens.ipynb").write_text("a page of that name")
    assert make("lab").splitlines()[-1].endswith("jupyter lab --notebook-dir work")
    assert copy.read_text() == "stub"
    assert (tmp_path / "work" / "gpu" / "tokens.ipynb").read_text() == "a page of that name"
    copy.write_text("solved")
    make("lab")
    make("clean")
    assert (original.read_text(), copy.read_text()) == ("stub", "solved")


def test_bench_measures_and_does_not_record_peers(make):
    """benchmarks/peers.py writes tests/golden/ and needs an environment of its own."""
    printed = make("bench")
    assert "python benchmarks/check.py" in printed
    assert "benchmarks/peers.py" not in printed


def test_torch_comes_alone_from_its_index(make):
    """Such an index holds some of torch's requirements in some versions, not those of constraints.txt."""
    lines = make("--dry-run", "--always-make", ".venv/.ready", "TORCH_INDEX=https://example.org/cpu").splitlines()
    torch = next(line for line in lines if "--index-url https://example.org/cpu" in line)
    assert "--no-deps" in torch and "-c constraints.txt" in torch and torch.endswith(" torch")
    assert lines.index(torch) < next(number for number, line in enumerate(lines) if "-r requirements.txt" in line)
    assert "--index-url" not in make("--dry-run", "--always-make", ".venv/.ready")


NEEDED, USEFUL = ("bubblewrap", "chromium"), ("postgresql", "dataset-fashion-mnist")


@pytest.fixture
def system(make, tmp_path):
    """Run `make system` on a machine with these commands, whose apt has these packages; returns it and what apt did."""
    programs, log = tmp_path / "programs", tmp_path / "apt.log"
    programs.mkdir()
    for name in ("bash", "ls", "test", "true"):
        (programs / name).symlink_to(shutil.which(name))

    def system(commands=(), packages=None, root=True):
        scripts = dict.fromkeys(commands, "") | {"id": f"echo {0 if root else 1000}"}
        if packages is not None:
            known = "|".join(packages) or "none"
            scripts["apt-get"] = (
                f'echo "$@" >> {log}; for last; do :; done\ncase $last in -qq|{known}) ;; *) exit 100;; esac'
            )
        for name, script in scripts.items():
            (programs / name).write_text(f"#!{shutil.which('bash')}\n{script}\n")
            (programs / name).chmod(0o755)
        environment = {"PATH": str(programs), "FASHION_MNIST": str(tmp_path / "none")}
        done = subprocess.run(
            [shutil.which("make"), "system"], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        installed = [line.split()[-1] for line in log.read_text().splitlines()[1:]] if log.exists() else []
        return done, installed

    return system


def test_system_has_everything_already(system, tmp_path):
    (tmp_path / "none").mkdir()
    done, installed = system(["bwrap", "google-chrome", "initdb"], [])
    assert (done.returncode, done.stderr, installed) == (0, "", [])


@pytest.mark.skipif(os.path.isdir("/usr/lib/postgresql"), reason="PostgreSQL is here")
def test_system_installs_all_that_is_missing(system):
    done, installed = system([], [*NEEDED, *USEFUL])
    assert (done.returncode, done.stderr, installed) == (0, "", [*NEEDED, *USEFUL])


def test_system_does_without_what_is_only_useful(system):
    """Ubuntu has no dataset-fashion-mnist: that is said, and fails nothing."""
    done, installed = system(["initdb"], NEEDED)
    assert (done.returncode, installed) == (0, [*NEEDED, "dataset-fashion-mnist"])
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["dataset-fashion-mnist"]
    assert "skipped" in done.stderr


def test_system_names_what_is_needed_and_cannot_be_had(system):
    """As on Ubuntu, where chromium is a snap: the line says what to do there."""
    done, _ = system(["initdb"], ["bubblewrap", "dataset-fashion-mnist"])
    assert done.returncode != 0
    assert done.stderr.startswith("chromium is needed and not here: ")
    assert "Ubuntu" in done.stderr.splitlines()[0]


@pytest.mark.parametrize("apt", [None, [*NEEDED, *USEFUL]])
def test_system_installs_nothing_as_an_ordinary_user(system, apt):
    done, installed = system(["initdb"], apt, root=False)
    assert done.returncode != 0 and installed == []
    named = [line.split()[0] for line in done.stderr.splitlines() if "not here" in line]
    assert named == [*NEEDED, "dataset-fashion-mnist"]
    assert "sudo apt-get install bubblewrap" in done.stderr
