"""pyproject.toml and constraints.txt name what the code needs, and a wheel brings it."""

import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from importlib.metadata import distribution, distributions, packages_distributions
from pathlib import Path

import jsonschema
import pytest
from build import hand_in, submit
from build import notebook as notebook_of
from course_run import course as browsers_course
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from autograder.course import PACKAGE

ROOT = Path(__file__).parents[1]
SCHEMAS = """
import json
from importlib.resources import files
names = "inspect", "verdict"
schemas = files("autograder") / "grading" / "schemas"
print(json.dumps({name: json.loads((schemas / f"{name}.schema.json").read_text()) for name in names}))
"""
EXTRAS = ("grade", "author", "test")
FOLDERS = ("autograder", "benchmarks", "book", "solutions", "tests")
# Their own environment; submissions, which import what they like
ELSEWHERE = ("benchmarks/peers.py", "tests/classroom/students")

# Not installed with the course: book/gpu/data.py says so where a data set needs it
OPTIONAL = {"torchvision", "timm", "vit_pytorch"}  # by torch chapters on Colab; by the benchmark beside them

# The first release of each Python that is promised; Debian 12 stays with 3.11.2
PROMISED = ("3.11.0", "3.11.2", "3.12.0", "3.13.0", "3.14.0")


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned():
    """Package -> its line of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {normal(re.match(r"[\w.-]+", line)[0]): line for line in lines if re.match(r"\w", line)}


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def required(*extras):
    """The packages that the course needs with these extras: name -> as pyproject.toml has it."""
    lists = project()["optional-dependencies"]
    lines = project()["dependencies"] + [line for extra in extras for line in lists[extra]]
    return {normal(re.match(r"[\w.-]+", line)[0]): line for line in lines}


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
    distributions, known = packages_distributions(), required(*EXTRAS)
    missing = {
        (module, str(path.relative_to(ROOT)))
        for path in files
        for module in set(imported(path)) - ours - OPTIONAL
        if not {normal(name) for name in distributions.get(module, ())} & known.keys()
    }
    assert missing == set()


def test_every_requirement_says_why_and_has_one_exact_version():
    known, exact = required(*EXTRAS), pinned()
    text = (ROOT / "pyproject.toml").read_text()
    explained = set(re.findall(r'^    "(.+)", +# \S', text, re.MULTILINE))
    assert set(known.values()) - explained == set()
    assert known.keys() - exact.keys() == set()
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
    found, asked = refused(pinned(), PROMISED)
    assert found == set()
    if asked < len(pinned()) / 2:
        pytest.skip(f"only {asked} packages are installed in the pinned version")


def test_a_pin_that_an_old_python_cannot_have_is_found():
    found, asked = refused(pinned(), ("3.9.0",))
    assert {"numpy", "scipy"} <= {name for name, _ in found}  # neither has had a release for 3.9 since 2024
    assert asked > 0


def test_the_oldest_promised_python_is_the_one_that_readme_and_pip_name():
    assert project()["requires-python"] == ">=" + PROMISED[0].removesuffix(".0")
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
    pins = {name: line.partition("==")[2] for name, line in pinned().items()}
    others = {name for name, exact in found.items() if pins.get(name) != exact.partition("+")[0]}  # 2.13.0+cpu
    allowed = (PACKAGE, "cuda-", "nvidia-", "triton", "setuptools", "wheel")
    assert [name for name in others if not name.startswith(allowed)] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the course, built from a copy."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("autograder", "exercises", "solutions"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    for file in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT", "nbgrader_config.py"):
        shutil.copy(ROOT / file, folder)
    build = [sys.executable, "-c", "from setuptools import build_meta; print(build_meta.build_wheel('.'))"]
    done = subprocess.run(build, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


def test_a_wheel_carries_the_whole_package_and_what_a_class_begins_with(wheel):
    """Of the folders' files none is left out: a new folder of the package is to be named in pyproject.toml."""
    with zipfile.ZipFile(wheel) as built:
        held = {name for name in built.namelist() if ".dist-info/" not in name}
    held_by_git = ["git", "ls-files", "autograder", "solutions"]
    files = subprocess.run(held_by_git, cwd=ROOT, capture_output=True, text=True)
    begins = [ROOT / "nbgrader_config.py", *ROOT.glob("exercises/*/*.ipynb")]
    handout = {f"autograder/handout/{path.relative_to(ROOT)}" for path in begins}
    assert held == {*files.stdout.split(), *handout}
    with zipfile.ZipFile(io.BytesIO(browsers_course())) as browsers:
        assert set(browsers.namelist()) < held


def closure(names):
    """These packages, with all that they need: the installed distributions by name."""
    found, left = {}, [(name, ()) for name in names]
    while left:
        name, extras = left.pop()
        if (normal(name), extras) in found:
            continue
        found[normal(name), extras] = package = distribution(name)
        for line in package.requires or ():
            wanted = Requirement(line)
            if not wanted.marker or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                left.append((wanted.name, tuple(sorted(wanted.extras))))
    return {name: package for (name, _), package in found.items()}


@pytest.fixture
def environment(wheel):
    """Make a new environment, which has the wheel and what its extras need; returns its folder of programs.

    Packages are links to the files of this environment, so that no network is asked. `without` leaves some out.
    """
    folder = ROOT / "_build" / "environments"  # on the disk of the packages
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as made:

        def make(*extras, without=()):
            venv.create(made, clear=True, with_pip=False)
            programs = Path(made, "bin")
            place = next(Path(made, "lib").glob("python*/site-packages"))
            for package in closure(required(*extras).keys() - set(without)).values():
                for file in package.files or ():
                    source = Path(package.locate_file(file))
                    if ".." not in file.parts and source.suffix != ".pyc" and source.exists():
                        (place / file).parent.mkdir(parents=True, exist_ok=True)
                        if not (place / file).exists():
                            os.link(source, place / file)
            install = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet", "--no-deps"]
            subprocess.run([*install, "--no-index", wheel], check=True)
            return programs

        yield make


@pytest.mark.slow
def test_a_teacher_needs_the_wheel_alone(environment, tmp_path):
    """From an empty environment to grades, without a clone. The exercises in PyTorch are left out for its size."""
    programs, folder = environment("grade", without=["torch"]), tmp_path / "class"

    def autograder(*arguments, cwd=folder, status=0):
        done = subprocess.run([programs / "autograder", *arguments], cwd=cwd, capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    autograder("new-class", folder, cwd=tmp_path)
    hand_in(folder)
    assert "grading     works" in autograder("doctor")
    notebook = folder / "submitted" / "ada" / "patchify" / "patchify.ipynb"
    python = subprocess.run(
        [programs / "python", "-I", "-c", SCHEMAS], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    schemas = json.loads(python.stdout)
    jsonschema.validate(json.loads(autograder("inspect", "--json", notebook)), schemas["inspect"])
    verdict = json.loads(autograder("grade-file", "--json", notebook))
    jsonschema.validate(verdict, schemas["verdict"])
    assert (verdict["score"], verdict["isolation"]) == (12, "bubblewrap")
    autograder("grade", "--student", "ada")
    assert json.loads((folder / "autograded/ada/patchify/verdict.json").read_text())["score"] == 12
    assert (folder / "feedback" / "ada").is_dir()
    for command in ("export", "report", "similar", "list"):
        autograder(command)

    # The solutions lie among the packages that a submission may import.
    copied = "def patchify(img, P):\n    from solutions import patchify as theirs\n    return theirs.patchify(img, P)"
    verdict = json.loads(autograder("grade-file", "--json", submit(folder, "mallory", notebook_of(copied))))
    (row,) = (row for row in verdict["exercises"] if row["name"] == "patchify")
    assert row["score"] == 0 and "ImportError" in row["failures"][0]["message"]


@pytest.mark.slow
def test_a_learner_needs_no_more_than_three_packages(environment, tmp_path):
    programs = environment()
    notebook = next(ROOT.glob("exercises/patchify/patchify.ipynb"))
    code = "from autograder import check\nfrom solutions.tokens import embed\ncheck(embed)"
    for command, said in (
        ([programs / "python", "-I", "-c", code], "embed: "),
        ([programs / "autograder", "inspect", notebook], "patchify.ipynb: "),
        ([programs / "python", "-m", "autograder", "inspect", notebook], "patchify.ipynb: "),
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.startswith(said) and done.stderr == "", done.stdout + done.stderr
    done = subprocess.run([programs / "autograder", "grade"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "extra `grade`" in done.stderr and len(done.stderr.splitlines()) == 1
