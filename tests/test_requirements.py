"""requirements.txt, constraints.txt and pyproject.toml name what the code needs."""

import ast
import io
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

from course_run import wheel as browsers_wheel

ROOT = Path(__file__).parents[1]
FOLDERS = ("autograder", "benchmarks", "book", "solutions", "tests")
# Their own environment; submissions, which import what they like
ELSEWHERE = ("benchmarks/peers.py", "tests/classroom/students")

# Not installed with the course: solutions/training.py says so where a data set needs it
OPTIONAL = {"torchvision", "timm", "vit_pytorch"}  # by torch chapters on Colab; by the benchmark beside them


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


def test_a_wheel_carries_what_the_checks_need_and_nothing_else(tmp_path):
    """That is the browser's wheel and the exercises in PyTorch, which a browser cannot run."""
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
    with zipfile.ZipFile(io.BytesIO(browsers_wheel()[1])) as browsers:
        checks = {name for name in browsers.namelist() if ".dist-info/" not in name}
    torch = {"autograder/cases/small_vit.py", "solutions/small_vit.py", "solutions/training.py"}
    assert held == checks | torch

    script = "import sys; sys.path.insert(0, 'installed')\n"
    script += "from autograder import check\nfrom solutions.small_vit import merge_heads\ncheck(merge_heads)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("merge_heads: ") and done.stderr == ""
