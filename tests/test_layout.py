"""The engine's rooms: each imports only from those before it, and nothing in a circle."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from autograder.authoring.rooms import imports, modules, way

ROOT = Path(__file__).parents[1]
# From the ground up. What is bound into the sandbox stands on nothing; a course's cases stand on judging alone.
FLOORS = (
    ("autograder.clean", "autograder.course", "autograder.no_rfc3987"),
    ("autograder.sandbox.inside",),
    ("autograder.judging",),
    ("autograder.cases",),
    ("autograder.notebooks",),
    ("autograder.sandbox",),
    ("autograder.grading",),
    ("autograder.lms",),
    ("autograder.reports",),
    ("autograder.authoring",),
    ("autograder.__main__",),
)
MODULES = modules()


def floor(module):
    """The floor of a module: that of the longest of the names above which it lies under."""
    under = {
        name: number
        for number, names in enumerate(FLOORS)
        for name in names
        if module == name or module.startswith(f"{name}.")
    }
    return under[max(under, key=len)]


ROOMS = sorted(set(MODULES) - {"autograder"} - {"autograder.sandbox"})


@pytest.mark.parametrize("module", ROOMS)
def test_imports_go_one_way(module):
    up = [name for name in imports(module, MODULES) if floor(name) > floor(module)]
    assert not up, f"{module} stands below {', '.join(up)}"


def test_imports_make_no_circle():
    graph = {module: imports(module, MODULES) - {"autograder"} for module in ROOMS}
    while free := [module for module, needs in graph.items() if not needs & graph.keys()]:
        for module in free:
            del graph[module]
    assert not graph, f"these import one another: {', '.join(graph)}"


def test_what_is_bound_into_the_sandbox_imports_nothing_of_the_engine():
    for module in MODULES:
        if module.startswith("autograder.sandbox.inside."):
            assert all(name.startswith("autograder.sandbox.inside") for name in imports(module, MODULES)), module


def test_every_module_has_a_room():
    assert {
        module.count(".") for module in ROOMS if module.split(".")[1] in ("clean", "course", "no_rfc3987", "__main__")
    } == {1}
    assert all(floor(module) is not None for module in ROOMS)


def test_the_engine_names_nothing_of_this_course():
    """Its chapters, functions, pages, packages and name stand in `cases/`, and are read from there."""
    from autograder.course import GPU_PAGES, HEAVY, PACKAGE
    from autograder.judging.exercise import CHAPTERS, names

    title = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["title"]
    own = {title, PACKAGE, *names(), *CHAPTERS, *HEAVY}
    common = {"tokens", "attention"}  # words of Python and of everyday
    word = re.compile("|".join(rf"(?<![\w/]){re.escape(name)}(?!\w)" for name in own - common))
    folders = [
        *(ROOT / "autograder").rglob("*"),
        *(ROOT / "book/_ext").rglob("*"),
        *(ROOT / "book/_theme").rglob("*"),
    ]
    files = [path for path in folders if path.suffix in (".py", ".html", ".css", ".js", ".json", ".yml")]
    files += [ROOT / path for path in ("book/build.py", "book/figures.py", "nbgrader_config.py")]
    widgets = ("store", "progress", "quiz", "solve", "solve-worker", "editor", "near")
    files += [ROOT / f"book/widgets/{name}.js" for name in widgets]
    found = {
        str(path.relative_to(ROOT)): word.findall(path.read_text("utf-8"))
        for path in files
        if "cases" not in path.parts
    }
    assert {path: names for path, names in found.items() if names} == {}
    assert word.search("from autograder.cases import patchify") and len(own) > 30 and GPU_PAGES


def test_all_imports_are_read():
    """Python's own word on what is loaded: nothing that the reading of the code does not know."""
    script = "import sys, autograder.__main__, autograder.grading.run, autograder.reports.report\n"
    script += "print(*(name for name in sys.modules if name.startswith('autograder.')))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    read = way("autograder.__main__", "autograder.grading.run", "autograder.reports.report", "autograder")
    packages = {name for name in MODULES if MODULES[name].name == "__init__.py"}
    assert {*loaded} - packages <= read.keys() and "autograder.sandbox.inside.wire" in loaded
