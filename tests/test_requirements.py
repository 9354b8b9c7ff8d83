"""requirements.txt, constraints.txt and pyproject.toml name what the code needs."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("autograder", "benchmarks", "book", "solutions", "tests")
# Their own environment; submissions, which import what they like; run by hand, says itself what it needs
ELSEWHERE = ("benchmarks/peers.py", "tests/classroom/students", "book/_theme/subset_fonts.py")

# Not installed with the course: solutions/training.py says so where a data set needs it
OPTIONAL = {"torchvision"}


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
    ours = {path.stem for path in files} | {"autograder", "solutions"}
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


def test_files_that_are_no_python_are_packaged():
    package_data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    packaged = {path for pattern in package_data["autograder"] for path in (ROOT / "autograder").glob(pattern)}
    others = {
        path for path in (ROOT / "autograder").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert packaged == others
    assert others
