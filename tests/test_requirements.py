"""requirements.txt, constraints.txt and pyproject.toml name what the code needs."""

import ast
import io
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest
from course_run import course as browsers_course
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
FOLDERS = ("autograder", "benchmarks", "book", "solutions", "tests")
# Their own environment; submissions, which import what they like
ELSEWHERE = ("benchmarks/peers.py", "tests/classroom/students")

# Not installed with the course: solutions/training.py says so where a data set needs it
OPTIONAL = {"torchvision", "timm", "vit_pytorch"}  # by torch chapters on Colab; by the benchmark beside them

# The first release of each Python that is promised; Debian 12 stays with 3.11.2
PROMISED = ("3.11.0", "3.11.2", "3.12.0", "3.13.0", "3.14.0")


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def listed(file):
    lines = (ROOT / file).read_text().splitlines()
    return {normal(re.match(r"[\w.-]+", line)[0]): line for line in lines if re.match(r"\w", line)}


def imported(path):
    """The packages that a file imports, without the standard library's."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module]
        else:
            continue
        yield from {name.partition(".")[0] for name in names} - sys.stdlib_module_names


def test_every_import_is_listed():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    files = [path for path in files if not str(path.relative_to(ROOT)).startswith(ELSEWHERE)]
    ours = {path.stem for path in files} | set(FOLDERS)
    distributions, required = packages_distributions(), listed("requirements.txt")
    missing = {
        (module, str(path.relative_to(ROOT)))
        for path in files
        for module in set(imported(path)) - ours - OPTIONAL
        if not {normal(name) for name in distributions.get(module, ())} & required.keys()
    }
    assert missing == set()


def test_every_requirement_says_why_and_has_one_exact_version():
    required, exact = listed("requirements.txt"), listed("constraints.txt")
    assert {name for name, line in required.items() if "#" not in line} == set()
    assert required.keys() - exact.keys() == set()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in exact.values())


def refused(pins, versions):
    """The pins that a Python cannot have, as the installed packages say; and how many could be asked."""
    installed = {normal(package.name): package for package in distributions()}
    asked = [installed[name] for name, line in pins.items()
             if name in installed and installed[name].version == line.partition("==")[2]]  # fmt: skip
    wants = {package.name: package.metadata.get("Requires-Python") or "" for package in asked}
    found = {
        (name, version) for name, want in wants.items() for version in versions if version not in SpecifierSet(want)
    }
    return found, len(asked)


def test_every_promised_python_can_have_every_pinned_version():
    found, asked = refused(listed("constraints.txt"), PROMISED)
    assert found == set()
    if asked < len(listed("constraints.txt")) / 2:
        pytest.skip(f"only {asked} packages are installed in the pinned version")


def test_a_pin_that_an_old_python_cannot_have_is_found():
    found, asked = refused(listed("constraints.txt"), ("3.9.0",))
    assert {"numpy", "scipy"} <= {name for name, _ in found}  # neither has had a release for 3.9 since 2024
    assert asked > 0


def test_the_oldest_promised_python_is_the_one_that_readme_and_pip_name():
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert metadata["requires-python"] == ">=" + PROMISED[0].removesuffix(".0")
    assert "with Python 3.11 or newer" in (ROOT / "README.md").read_text()
    assert "(3, 11)" in (ROOT / "Makefile").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("version", PROMISED)
def test_pip_finds_what_a_promised_python_needs(version, tmp_path):
    """Wheels for this machine, of the pinned versions; beside them torch's own for a GPU, and what builds packages."""

    def pip(*arguments):
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--progress-bar=off",
                   "--python-version", version, "--only-binary=:all:", "--target", tmp_path / "none"]  # fmt: skip
        return subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)

    if pip("--no-deps", "packaging").returncode:
        pytest.skip("pip reaches no package index")
    done = pip("-r", "requirements.txt", "-c", "constraints.txt")
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Would install "))
    found = {normal(name): exact for name, _, exact in (package.rpartition("-") for package in line.split()[2:])}
    pins = {name: line.partition("==")[2] for name, line in listed("constraints.txt").items()}
    others = {name for name, exact in found.items() if pins.get(name) != exact.partition("+")[0]}  # 2.13.0+cpu
    allowed = ("cuda-", "nvidia-", "triton", "setuptools", "wheel")
    assert [name for name in others if not name.startswith(allowed)] == []


def test_a_wheel_carries_what_the_checks_need_and_nothing_else(tmp_path):
    """That is what a browser loads and the exercises in PyTorch, which a browser cannot run."""
    for folder in ("autograder", "solutions"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT"):
        shutil.copy(ROOT / file, tmp_path)
    build = [sys.executable, "-c", "from setuptools import build_meta; print(build_meta.build_wheel('.'))"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / done.stdout.split()[-1]) as built:
        held = {name for name in built.namelist() if ".dist-info/" not in name}
        built.extractall(tmp_path / "installed")
    with zipfile.ZipFile(io.BytesIO(browsers_course())) as browsers:
        checks = {name for name in browsers.namelist() if ".dist-info/" not in name}
    torch = {"autograder/cases/small_vit.py", "solutions/small_vit.py", "solutions/training.py"}
    assert held == checks | torch

    script = "import sys; sys.path.insert(0, 'installed')\n"
    script += "from autograder import check\nfrom solutions.small_vit import merge_heads\ncheck(merge_heads)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("merge_heads: ") and done.stderr == ""
