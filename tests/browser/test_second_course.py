"""A second course, of the files that the page *A course of your own* names and no others, through all that a course
goes through."""

import csv
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import ROOT, served, visits
from test_solve import Box

from autograder.course import PACKAGE
from autograder.judging.exercise import CHAPTERS, names

SECOND = ROOT / "tests" / "second_course"
PAGE = (ROOT / "book/teach/a_course_of_your_own.md").read_text(encoding="utf-8")
LINES = re.search(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1].splitlines()  # of pyproject.toml
TITLE = "Sound in Frames"


def listed(section):
    """The paths in the table of a section of the page."""
    text = PAGE.partition(f"({section})=\n")[2].partition("\n(")[0]
    return re.findall(r"^\| `(.+?)` \|", text, re.MULTILINE)


def written():
    """The files of the second course."""
    files = (path for path in SECOND.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(str(path.relative_to(SECOND)) for path in files)


class Tree:
    """The engine as the page lists it, with the second course in it."""

    def __init__(self, folder):
        self.folder, self.html = folder, folder / "_build" / "html"
        for path in listed("what-you-keep"):
            copy = shutil.copytree if (ROOT / path).is_dir() else shutil.copy
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            copy(ROOT / path, folder / path)
        shutil.rmtree(folder / "autograder" / "cases")
        shutil.copytree(SECOND, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        project = (folder / "pyproject.toml").read_text(encoding="utf-8")
        for line in LINES:
            project, found = re.subn(rf"^{line.split()[0]} = .*$", line, project, count=1, flags=re.MULTILINE)
            assert found, line
        (folder / "pyproject.toml").write_text(project, encoding="utf-8")
        # As `make` leaves it: an environment, and the course installed in it from where it lies
        (folder / ".venv").symlink_to(sys.prefix)
        self.python("-c", "from setuptools import build_meta; build_meta.prepare_metadata_for_build_editable('.')")

    def command(self, *arguments, course=None, status=0):
        """Run a command in the tree or in the folder of a class; returns what it printed."""
        done = subprocess.run(
            [*map(str, arguments)],
            cwd=course or self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
        )
        assert status in (None, done.returncode), done.stdout[-6000:] + done.stderr[-6000:]
        return done.stdout + done.stderr

    def python(self, *arguments, **options):
        return self.command(sys.executable, *arguments, **options)

    def make(self, target):
        return self.command("make", "--old-file=.venv/.ready", target)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The second course, built whole."""
    tree = Tree(tmp_path_factory.mktemp("second") / "course")
    tree.built = tree.make("book")
    return tree


def notebook(tree, chapter, **codes):
    """The chapter's notebook with what a student wrote; what is not given stays as it was handed out."""
    made = json.loads((tree.folder / "exercises" / chapter / f"{chapter}.ipynb").read_text(encoding="utf-8"))
    cells = {cell["id"]: cell for cell in made["cells"]}
    for name, code in codes.items():
        cells[name]["source"] = code
    return json.dumps(made)


SOLUTIONS = "\n".join((SECOND / f"solutions/{chapter}.py").read_text("utf-8") for chapter in ("framing", "loudness"))


def solution(name):
    """The function as the second course's author solved it."""
    (found,) = re.findall(rf"^def {name}\(.*?(?=^# %%|\Z)", SOLUTIONS, re.MULTILINE | re.DOTALL)
    return found


RIGHT = {name: solution(name) for name in ("frame_count", "frames", "overlap_add")}
NO_OVERLAP = "def frame_count(n, length, hop):\n    return n // length\n"
BY_LOOP = """def frames(x, length, hop):
    if len(x) < length:
        raise ValueError("too short")
    return np.stack([x[start : start + length] for start in range(0, len(x) - length + 1, hop)])
"""
OF_THE_BATCH = """def level(rows, floor=-60.0):
    power = rows.square().mean()
    return (10 * torch.log10(power)).clamp(min=floor).expand(rows.shape[:-1])
"""
# Takes the solution where it lies, ends the process, and is no Python
STOLEN = f"""import sys
sys.path[:0] = [{{tree!r}}, {str(SECOND)!r}, {str(ROOT)!r}]
def frame_count(n, length, hop):
    from solutions.framing import frame_count
    return frame_count(n, length, hop)
"""
ENDED = "import os\ndef frames(x, length, hop):\n    os._exit(0)\n"
BROKEN = "def overlap_add(rows, hop):\n    return (rows\n"


@pytest.fixture(scope="module")
def graded(tree):
    """A class of three, graded."""
    course = tree.folder.parent / "class"
    tree.python("-m", "autograder", "new-class", course)
    handed_in = {
        ("ada", "framing"): notebook(tree, "framing", **RIGHT),
        ("ada", "loudness"): notebook(tree, "loudness", level=solution("level")),
        ("bo", "framing"): notebook(tree, "framing", **RIGHT | {"frame_count": NO_OVERLAP, "frames": BY_LOOP}),
        ("bo", "loudness"): notebook(tree, "loudness", level=OF_THE_BATCH),
        ("mallory", "framing"): notebook(
            tree, "framing", frame_count=STOLEN.format(tree=str(tree.folder)), frames=ENDED, overlap_add=BROKEN
        ),
        ("mallory", "loudness"): '{"cells": [',
    }
    for (student, chapter), text in handed_in.items():
        path = course / "submitted" / student / chapter / f"{chapter}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    tree.python("-m", "autograder", "grade", course=course)
    tree.python("-m", "autograder", "report", course=course)
    return course


def test_the_page_names_every_file_of_the_second_course_and_no_other():
    assert sorted(listed("what-you-write")) == written()


def test_the_page_names_no_part_of_the_engine_that_is_not_there():
    assert [path for path in listed("what-you-keep") if not (ROOT / path).exists()] == []
    assert {"autograder/", "book/_ext/", "book/_theme/"} < set(listed("what-you-keep"))


def test_the_pages_are_built_without_a_warning(tree):
    assert "build succeeded." in tree.built  # a warning fails it
    intro, framing, loudness = (
        BeautifulSoup((tree.html / f"book/{page}.html").read_text(encoding="utf-8"), "html.parser")
        for page in ("intro", "framing", "loudness")
    )
    assert [link.text for link in intro.select(".chapter-map .chapter-title a")] == ["Frames", "Loudness"]
    assert [item["data-record"] for item in intro.select("table.progress [data-record]")] == [
        *(f"exercise/{name}" for name in ("frame_count", "frames", "overlap_add")),
        "quiz/quiz-count",
    ]
    assert [box["data-exercise"] for box in framing.select("[data-solve]")] == ["frame_count", "frames", "overlap_add"]
    assert [(box["data-exercise"], box.get("data-solve")) for box in loudness.select("[data-exercise]")] == [
        ("level", None)  # a browser has no PyTorch
    ]
    assert framing.select_one("figure svg, .figure svg")["aria-label"].startswith("Three lines")
    assert framing.html["data-course"] == "sound-in-frames" and framing.title.text == f"1. Frames · {TITLE}"
    assert (tree.html / "sound-in-frames.zip").exists()
    assert not framing.select("meta[property='og:image']")  # it has no card


def test_the_notebooks_hold_texts_checks_and_points(tree):
    for chapter, points in (("framing", [1, 2, 2]), ("loudness", [3])):
        cells = json.loads(notebook(tree, chapter))["cells"]
        about = [cell["metadata"].get("nbgrader", {}) for cell in cells]
        assert [one["points"] for one in about if one.get("grade")] == points
        text = "".join("".join(cell["source"]) for cell in cells)
        assert text.count("raise NotImplementedError") == len(points)
        assert "BEGIN" not in text and "hidden=True" not in text
        assert "sound-in-frames/course/archive/refs/tags/v0.3.0.zip" in text


def test_the_browser_gets_what_it_can_run(tree):
    (archive,) = (path for path in (tree.html / "run").iterdir() if path.suffix in (".whl", ".zip"))
    with zipfile.ZipFile(archive) as held:
        ours = {name for name in held.namelist() if name.startswith(("solutions/", "autograder/cases/"))}
    init = {"solutions/__init__.py", "autograder/cases/__init__.py", "autograder/cases/course.toml"}
    assert ours == init | {"solutions/framing.py", "autograder/cases/framing.py"}


def test_check_passes_and_names_a_mistake(tree):
    call = "from autograder import check, CheckFailed\nimport numpy as np, torch\n{code}\n"
    call += "try:\n    check({name})\nexcept CheckFailed as failed:\n    print(failed)\n"
    said = {
        name: tree.python("-c", call.format(code=code, name=name))
        for name, code in (("frame_count", NO_OVERLAP), ("frames", BY_LOOP), ("level", OF_THE_BATCH))
    }
    assert "The next frame begins after the hop: divide by that." in said["frame_count"]
    assert said["frames"].startswith("frames: ") and said["frames"].rstrip().endswith("checks pass")
    assert "Each frame has a level of its own" in said["level"]


EXERCISES = """
import functools, sys
from autograder import evaluate
from autograder.authoring.mutants import holes
from autograder.judging.exercise import exercises
from autograder.judging.judge import judge
from autograder.sandbox.inside.calls import run
for exercise in exercises(sys.argv[1]):
    for seed in range(4):
        assert evaluate(exercise.name, exercise.reference, hidden=True, seed=seed).passed, exercise.name
        for mistake in exercise.misconceptions:
            verdict = judge(exercise, functools.partial(run, mistake.function), hidden=True, seed=seed)
            given = {failure.misconception for failure in verdict.failures}
            assert not verdict.passed and given == {mistake.name}, (exercise.name, mistake.name, given)
    assert holes(exercise) == ([], []), (exercise.name, holes(exercise))
"""


@pytest.mark.parametrize("chapter", ["framing", "loudness"])
def test_its_cases_tell_its_mistakes_apart_and_catch_every_mutant(tree, chapter):
    tree.python("-W", "ignore", "-c", EXERCISES, chapter)


def test_a_class_of_it_is_graded(tree, graded):
    assert sorted(path.name for path in graded.glob("exercises/*/*.ipynb")) == ["framing.ipynb", "loudness.ipynb"]
    with sqlite3.connect(graded / "gradebook.db") as gradebook:
        rows = gradebook.execute(
            "select student_id, base_cell.name, auto_score from grade"
            " join base_cell on base_cell.id = cell_id"
            " join submitted_notebook on submitted_notebook.id = grade.notebook_id"
            " join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id"
            " where base_cell.name like 'check_%'"
        )
        scores = {(student, cell.removeprefix("check_")): score for student, cell, score in rows}
    assert [scores["ada", name] for name in ("frame_count", "frames", "overlap_add", "level")] == [1, 2, 2, 3]
    assert [scores["bo", name] for name in ("frame_count", "frames", "overlap_add", "level")] == [0, 2, 2, 0]
    assert [scores["mallory", name] for name in ("frame_count", "frames", "overlap_add")] == [0, 0, 0]
    verdict = json.loads((graded / "autograded/bo/loudness/verdict.json").read_text(encoding="utf-8"))
    assert (verdict["status"], verdict["score"], verdict["max_score"]) == ("graded", 0, 3)
    assert verdict["isolation"] == "bubblewrap"
    assert {failure["misconception"] for failure in verdict["exercises"][0]["failures"]} == {"the whole batch"}
    stolen = json.loads((graded / "autograded/mallory/framing/verdict.json").read_text(encoding="utf-8"))
    assert "ModuleNotFoundError" in stolen["exercises"][0]["failures"][0]["message"]
    unread = json.loads((graded / "autograded/mallory/loudness/verdict.json").read_text(encoding="utf-8"))
    assert unread["score"] is None and unread["reason"]


def test_feedback_report_and_export_speak_of_it(tree, graded):
    feedback = (graded / "feedback/bo/framing/framing.html").read_text(encoding="utf-8")
    assert "The next frame begins after the hop: divide by that." in feedback
    report = json.loads(tree.python("-m", "autograder", "report", "--json", course=graded))
    by_name = {one["name"]: one for one in report["assignments"]}
    assert list(by_name) == ["framing", "loudness"]
    assert [one["name"] for one in by_name["framing"]["exercises"]] == ["frame_count", "frames", "overlap_add"]
    assert "frame_count" in (graded / "report.html").read_text(encoding="utf-8")
    tree.python("-m", "autograder", "export", "--output", "scores.csv", course=graded)
    rows = csv.DictReader(io.StringIO((graded / "scores.csv").read_text(encoding="utf-8")))
    scores = {(row["assignment"], row["student_id"]): row["score"] for row in rows}
    assert float(scores["framing", "ada"]) == 5 and float(scores["framing", "bo"]) == 4
    assert float(scores["loudness", "ada"]) == 3 and float(scores["loudness", "bo"]) == 0


def test_stock_nbgrader_takes_it(tree, graded, tmp_path):
    said = tree.python(
        "-m", "nbgrader", "validate", graded / "submitted/ada/loudness/loudness.ipynb", course=tree.folder
    )
    assert "Success" in said
    stock = tmp_path / "stock"
    shutil.copytree(tree.folder / "_build" / "source", stock / "_build" / "source")
    for part in ("nbgrader_config.py", "exercises", "submitted"):
        (shutil.copytree if (graded / part).is_dir() else shutil.copy)(graded / part, stock / part)
    tree.python("-m", "nbgrader", "generate_assignment", "framing", "--force", course=stock)
    tree.python("-m", "nbgrader", "autograde", "framing", "--student", "bo", course=stock)
    with sqlite3.connect(stock / "gradebook.db") as gradebook:
        scores = dict(
            gradebook.execute(
                "select base_cell.name, auto_score from grade join base_cell on base_cell.id = cell_id"
                " where base_cell.name like 'check_%'"
            )
        )
    assert scores == {"check_frame_count": 0, "check_frames": 2, "check_overlap_add": 2}


def test_nothing_that_is_built_names_the_first_course(tree, graded):
    title = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["title"]
    own = {title, PACKAGE, "pavilion", "Transformer", *names(), *CHAPTERS} - {
        "tokens",
        "attention",
        "embed",
    }  # of everyday
    own |= {path.stem for path in (ROOT / "book/widgets").iterdir()}
    own -= {Path(path).stem for path in listed("what-you-keep")} | {"README", "figure", "resize", "trained", "rooms"}
    word = re.compile("|".join(rf"(?<![\w/]){re.escape(name)}(?!\w)" for name in own))
    folders = [
        tree.html,
        tree.folder / "exercises",
        *(graded / name for name in ("exercises", "feedback", "autograded")),
    ]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files += [graded / "nbgrader_config.py", graded / "report.html"]
    found = {str(path): set(word.findall(path.read_text("utf-8", "ignore"))) for path in files}
    assert {path: words for path, words in found.items() if words} == {}
    assert len(files) > 40 and word.search("solutions.patchify") and word.search("small_vit")


def test_it_is_solved_on_the_page(tree, browser, runtime, tmp_path):
    html = tmp_path / "html"
    shutil.copytree(tree.html, html)
    write = "import sys; sys.path.append('book/_ext'); from course_run import write_run; write_run(*sys.argv[1:])"
    assert tree.python("-c", write, html, "", runtime) == ""
    with served(html) as address, visits(browser, address) as visit:
        page = visit("book/framing.html")
        counting, cutting = Box(page, "frame_count"), Box(page, "frames")
        assert "The next frame begins after the hop: divide by that." in counting.check(NO_OVERLAP)
        assert re.fullmatch(r"frame_count: (\d+) of \1 checks pass", counting.check(RIGHT["frame_count"]))
        assert re.fullmatch(r"frames: (\d+) of \1 checks pass", cutting.check(RIGHT["frames"]))
