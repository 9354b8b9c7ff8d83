"""The other versions of Python that the course promises, where they are installed.

What is tested under them needs no torch: `check`, the six NumPy chapters and their exercises. `versions.yml` runs the
whole suite once a week, with the pinned packages and with the newest.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHAPTERS = ("tokens", "sincos", "patchify", "pooling", "positions", "rotary", "resolution")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
CODE = """
import sys
from pathlib import Path
for path in map(Path, sys.argv[1:]):
    compile(path.read_bytes(), str(path), "exec")
print(*sys.version_info[:2], sep=".")
"""


def interpreter(version):
    """An interpreter of that version: on the PATH, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)]
    for candidate in filter(None, candidates):
        # A shim of pyenv is there for versions that are not
        asked = subprocess.run([candidate, "-c", CODE], capture_output=True, text=True)
        if asked.stdout.strip() == version:
            return str(candidate)
    pytest.skip(f"no Python {version} here")


@pytest.mark.parametrize("version", PYTHONS)
def test_the_code_is_python_of_every_version(version):
    files = sorted([*ROOT.glob("solutions/*.py"), *ROOT.glob("autograder/**/*.py"), *ROOT.glob("book/**/*.py")])
    assert len(files) > 40
    done = subprocess.run(
        [interpreter(version), "-I", "-W", "error", "-c", CODE, *files], capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == (version, "")


@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
def test_the_exercises_work_in_every_version_with_the_newest_numpy(version, tmp_path):
    if version == "{}.{}".format(*sys.version_info):
        pytest.skip("the rest of the suite runs in it")
    subprocess.run([interpreter(version), "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    packages = ("numpy", "scipy", "pytest", "pytest-timeout", "hypothesis", "jupytext")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
    tests = ["tests/test_judge.py", "tests/test_exercises.py"]
    tests += [f"tests/chapters/test_{chapter}.py" for chapter in CHAPTERS]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not small_vit",
         *(test for test in tests if (ROOT / test).exists())],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
