"""What the Makefile does, on a course of empty files: the programs it calls do nothing here."""

import html
import os
import shutil
import subprocess
import sys
import zipfile
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
    "target",
    ["book", "lab", "exercises", "grade", "quick", "test", "test-all", "bench", "peers", "clean", "lint", "preview"],
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
    pip = [line.partition(" >")[0] for line in lines if "python -m pip" in line]
    (torch,) = (line for line in pip if "--index-url https://example.org/cpu" in line)
    assert "--no-deps" in torch and "-c constraints.txt" in torch and torch.endswith(" torch")
    assert pip.index(torch) < next(number for number, line in enumerate(pip) if "-r requirements.txt" in line)
    assert "--index-url" not in make("--dry-run", "--always-make", ".venv/.ready")


def package(index, name, python, needs=()):
    """Put a package of nothing but what pip reads, in version 1.0, into a folder that pip takes for an index."""
    file, about = f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Python: {python}\n"
    (index / name).mkdir(parents=True)
    with zipfile.ZipFile(index / name / file, "w") as made:
        made.writestr(f"{about}/METADATA", metadata + "".join(f"Requires-Dist: {other}\n" for other in needs))
        made.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{about}/RECORD", "")
    page = f'<!DOCTYPE html><html><body><a href="{file}" data-requires-python="{html.escape(python)}">{file}</a>'
    (index / name / "index.html").write_text(f"{page}</body></html>")


@pytest.fixture
def set_up(make, tmp_path):
    """Set up the environment with the real pip, which has two packages and no network: soup, which needs sieve.

    The function takes the Python that sieve wants and returns what make said. Nothing is installed, only found.
    """
    (tmp_path / ".venv" / ".ready").unlink()
    (tmp_path / ".venv" / "bin" / "pip").symlink_to(sys.executable)
    (tmp_path / ".venv" / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "requirements.txt").write_text("soup\n")
    (tmp_path / "constraints.txt").write_text("soup==1.0\nsieve==1.0\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "course"\nversion = "1.0"\n')

    def set_up(python):
        package(tmp_path / "index", "soup", ">=3.11", ["sieve>=0.5"])
        package(tmp_path / "index", "sieve", python)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PIP_"))}
        environment |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": (tmp_path / "index").as_uri(),
                        "PIP_DRY_RUN": "1", "PIP_NO_BUILD_ISOLATION": "false"}  # fmt: skip
        command = ["make", ".venv/.ready", f"PYTHON={sys.executable}"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return set_up


STEPS = ["pip install --upgrade pip", "pip install -r requirements.txt -c constraints.txt"]


def test_where_pip_fails_its_reason_is_seen(set_up, tmp_path):
    """A pin that wants another Python: what --quiet leaves out is that "the conflict is caused by" it."""
    done = set_up(">=3.99")
    assert done.returncode != 0 and done.stdout.splitlines() == STEPS
    assert "The conflict is caused by" in done.stderr and "sieve==1.0" in done.stderr
    (ours,) = (line for line in done.stderr.splitlines() if line.startswith('make: "pip'))
    assert f'"{STEPS[1]}" failed' in ours
    assert "than Python 3." in ours and "rm -r .venv" in ours and "PYTHON=" in ours
    assert not (tmp_path / ".venv" / ".ready").exists()


def test_where_pip_succeeds_it_says_no_more_than_what_is_done(set_up, tmp_path):
    done = set_up(">=3.11")
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, STEPS, "")
    assert (tmp_path / ".venv" / ".ready").exists()


def test_an_environment_without_pip_is_made_again(make, tmp_path):
    """Debian's Python without python3-venv leaves one behind when it fails."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncase "$2" in venv) touch .venv/bin/pip; chmod +x .venv/bin/pip; esac\n')
    python.chmod(0o755)
    for expected in ([f"{python} -m venv .venv"], []):
        printed = make("--always-make", ".venv/.ready", f"PYTHON={python}").splitlines()
        assert [line for line in printed if "venv .venv" in line] == expected


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
