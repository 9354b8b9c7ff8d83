"""What the version of a verdict covers, and the system calls that a class allows."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from build import STUDENTS, hand_in, notebook, submit

ROOT = Path(__file__).parents[2]
# Which versions change with each file of the course.
ASK = """
import json, sys
from pathlib import Path
sys.path.insert(0, ".")
from autograder.grading.grade import version
def versions():
    version.cache_clear()
    return {chapter: version(chapter) for chapter in ("patchify", "sincos")}
before, found = versions(), {}
for path in map(Path, sys.argv[1:]):
    kept = path.read_bytes()
    path.write_bytes(kept + b"\\n# changed\\n")
    now = versions()
    found[str(path)] = [chapter for chapter in now if now[chapter] != before[chapter]]
    path.write_bytes(kept)
assert versions() == before
print(json.dumps(found))
"""
# The same for one file, without and with a line that may import it in the cases of patchify.
FOLLOW = (
    ASK.partition("before, found")[0]
    + """
def changed(path):
    kept, before = path.read_bytes(), versions()
    path.write_bytes(kept + b"\\n# changed\\n")
    now = versions()
    path.write_bytes(kept)
    return [chapter for chapter in now if now[chapter] != before[chapter]]
cases, found = Path("autograder/cases/patchify.py"), []
kept = cases.read_text()
for line, counts in json.loads(sys.argv[1]):
    without = changed(Path(counts))
    cases.write_text(f"{kept}\\n{line}\\n")
    found.append([without, changed(Path(counts))])
    cases.write_text(kept)
print(json.dumps(found))
"""
)
# What Python has loaded when a submission has been graded, and what is bound into the sandbox.
GRADE = """
import json, sys, tempfile
from pathlib import Path
sys.path.insert(0, ".")
from autograder.grading import grade
from autograder.sandbox import host as sandbox
verdict, _ = grade.grade(Path("ada.ipynb").read_bytes(), assignment="patchify")
grade.close_sandbox()
assert verdict["score"] == 12.0, verdict
bound = [*sandbox._copy_inside(Path(tempfile.mkdtemp(dir="."))).glob("inside/*")]
files = [module.__file__ for name, module in sys.modules.items() if name.split(".")[0] in ("autograder", "solutions")]
here = Path.cwd()
inside = [f"autograder/sandbox/inside/{path.name}" for path in bound]
print(json.dumps([*inside, *(str(Path(f).relative_to(here)) for f in files)]))
"""
SHOWN = [
    "authoring/preview",
    "grading/classroom",
    "grading/gradebook",
    "grading/run",
    "lms/export",
    "notebooks/generate",
]
SHOWN += ["reports/feedback", "reports/report", "reports/similar"]


def ask(folder, script, *paths):
    command = [sys.executable, "-B", "-c", script, *paths]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clone")
    for name in ("autograder", "solutions"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def changing(clone):
    patterns = ("autograder/**/*.py", "solutions/__init__.py", "solutions/patchify.py")
    paths = [path for pattern in patterns for path in clone.glob(pattern)]
    return ask(clone, ASK, *(str(path.relative_to(clone)) for path in paths))


def test_whatever_grading_loads_is_in_the_version(clone, changing):
    (clone / "ada.ipynb").write_text(json.dumps(notebook(STUDENTS["ada"])))
    loaded = ask(clone, GRADE)
    assert {"autograder/sandbox/inside/serve.py", "autograder/sandbox/filter.py", "solutions/patchify.py"} <= {*loaded}
    assert [path for path in loaded if "patchify" not in changing[path]] == []
    # And what is no chapter's own is in every chapter's.
    own = ("autograder/cases/patchify.py", "solutions/patchify.py")
    assert [path for path in loaded if len(changing[path]) < 2 and path not in own] == []


def test_what_belongs_to_a_chapter_is_in_its_version(changing):
    assert changing["autograder/cases/patchify.py"] == changing["solutions/patchify.py"] == ["patchify"]


@pytest.mark.parametrize("name", SHOWN)
def test_what_only_shows_a_verdict_is_in_none(changing, name):
    assert changing[f"autograder/{name}.py"] == []


IMPORTS = [
    ("from solutions import (\n    tokens,\n)", "solutions/tokens.py"),
    ("import solutions.tokens", "solutions/tokens.py"),
    ("import numpy, solutions.tokens as t", "solutions/tokens.py"),
    ("from solutions.tokens import embed as e", "solutions/tokens.py"),
    ("def later():\n    from solutions import tokens", "solutions/tokens.py"),
    ("from . import tokens", "autograder/cases/tokens.py"),
    ("from .tokens import embed", "autograder/cases/tokens.py"),
    ("from ..lms import export", "autograder/lms/export.py"),
    ("from ..lms.export import (\n    export as e,\n)", "autograder/lms/export.py"),
    ("from solutions import helpers", "solutions/helpers/__init__.py"),
    ("import solutions.helpers.width", "solutions/helpers/__init__.py"),
    ("import solutions.helpers.width", "solutions/helpers/width.py"),
    ("from solutions.helpers.width import *", "solutions/helpers/width.py"),
]


@pytest.fixture(scope="module")
def following(clone):
    """For each of the imports, asked in one process: which versions its file changes without it, and with it."""
    (clone / "solutions/helpers").mkdir()
    for name in ("__init__", "width"):
        (clone / f"solutions/helpers/{name}.py").write_text("")
    yield ask(clone, FOLLOW, json.dumps(IMPORTS))
    shutil.rmtree(clone / "solutions/helpers")


@pytest.mark.parametrize("number", range(len(IMPORTS)), ids=[line for line, _ in IMPORTS])
def test_imports_are_followed_however_they_are_written(following, number):
    assert following[number] == [[], ["patchify"]]


def allow(course, value):
    path = course.folder / "nbgrader_config.py"
    path.write_text(f"{path.read_text()}\nc.Autograder.allowed_system_calls = {value}\n")


def test_a_class_allows_a_system_call(course):
    """Its verdicts say so, and it is graded again when that changes."""
    ada = STUDENTS["ada"] + "\n\nimport os\nos.memfd_create('x')\n"
    submit(course.folder, "ada", notebook(ada))
    course.run("grade")
    assert course.verdict("ada")["limits"] == {"time_limit": 5.0, "memory_limit": 1024}
    allow(course, "['memfd_create', 'mbind']")
    assert "1 in this run" in course.run("grade").stdout
    verdict = course.verdict("ada")
    assert verdict["limits"]["system_calls"] == ["mbind", "memfd_create"] and verdict["warning"] is None
    assert "0 in this run" in course.run("grade").stdout
    allow(course, "'all'")
    assert "1 in this run" in course.run("grade").stdout
    verdict = course.verdict("ada")
    assert verdict["limits"]["system_calls"] == "all" and "without a filter" in verdict["warning"]


@pytest.mark.parametrize("value", ["['mount']", "['memfd_creat']", "'memfd_create'", "True", "[5]", "None"])
def test_what_a_class_cannot_allow(course, value):
    hand_in(course.folder)
    allow(course, value)
    said = course.run("grade", status=1).stderr
    assert "c.Autograder.allowed_system_calls = " in said and "memfd_create" in said and "or 'all'" in said
    assert not (course.folder / "autograded").exists()


def test_a_sandbox_that_cannot_be_made_any_more_ends_no_class(monkeypatch):
    """It has worked before in this run: only the submission at hand is left for another."""
    from autograder.grading import grade as grading
    from autograder.sandbox.host import Sandbox, SandboxUnavailable

    data, limits = json.dumps(notebook(STUDENTS["ada"])).encode(), grading.Limits(time_limit=4.0)

    def unavailable(self):
        raise SandboxUnavailable("no more namespaces")

    with monkeypatch.context() as patch:
        patch.setattr(Sandbox, "start", unavailable)
        with pytest.raises(SandboxUnavailable):
            grading.grade(data, assignment="patchify", limits=limits)
    assert grading.grade(data, assignment="patchify", limits=limits)[0]["score"] == 12.0
    grading.close_sandbox()
    with monkeypatch.context() as patch:
        patch.setattr(Sandbox, "start", unavailable)
        verdict, _ = grading.grade(data, assignment="patchify", limits=limits)
    assert (verdict["status"], verdict["score"]) == ("partly graded", None)
    assert "no more namespaces" in verdict["reason"]
    assert grading.grade(data, assignment="patchify", limits=limits)[0]["score"] == 12.0
    grading.close_sandbox()
