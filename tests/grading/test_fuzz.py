"""Classes made up at random, through the real functions from finding to export; and proof that this finds faults.

FUZZ_EXAMPLES says how many classes: by default few in `make test`, many in `make test-all`.
"""

import os
import subprocess

import pytest
from fuzzing import classes, holds, judged
from hypothesis import HealthCheck, Phase, given, settings
from nbgrader.utils import parse_utc

from autograder import clean
from autograder.grading import find, run
from autograder.grading import grade as grading
from autograder.grading.gradebook import Gradebook
from autograder.grading.record import Recorder
from autograder.notebooks import read, restore

FEW, MANY = (int(os.environ.get("FUZZ_EXAMPLES", default)) for default in (15, 1000))
SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}


@pytest.fixture
def root(course, monkeypatch):
    """A course whose submissions are not run."""
    monkeypatch.setattr(grading, "_judge_all", judged)
    monkeypatch.setattr(run, "prove_sandbox", lambda limits: None)
    monkeypatch.setattr(find, "MAX_ENTRIES", 60)  # so that a folder of too many is soon made
    yield course.folder
    subprocess.run(["rm", "-rf", course.folder / "submitted"], check=True)  # too deep for pytest's own cleaning


def search(root, examples, **how):
    @settings(max_examples=examples, **SETTINGS, **how)
    @given(classes)
    def each(made):
        holds(root, made)

    each()


def test_whatever_is_handed_in_everybody_is_graded(root):
    search(root, FEW, derandomize=True)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_whatever_is_handed_in_everybody_is_graded_for_long(root):
    search(root, MANY, derandomize=False)


# ------------------------------------------------------------------------------------------ each mending taken out


def unguarded(self, one, verdict, submission, seconds):
    return self._write_down(one, verdict, submission, seconds)


def any_grade_id(cell):
    data = cell.get("metadata")
    data = data.get("nbgrader") if isinstance(data, dict) else None
    found = data.get("grade_id") if isinstance(data, dict) else None
    return found if isinstance(found, str) and len(found) <= 200 else ""


def as_it_is(value):
    return str(value)


def is_time_as_before(text):
    try:
        return parse_utc(text) is not None
    except (ValueError, OverflowError):
        return False


def all_notebooks(folder):
    found = sorted(path for path in folder.rglob("*.ipynb"))
    return found[:20], []


UNDONE = {
    "1: names of cells that are no text": [(Recorder, "record", unguarded), (read, "grade_id_of", any_grade_id),
                                           (restore, "grade_id_of", any_grade_id),
                                           (clean, "text", as_it_is), (clean, "line", as_it_is)],
    "7: a time of thirty digits": [(Recorder, "record", unguarded),
                                   (Gradebook, "is_time", staticmethod(is_time_as_before))],
    "10: the terminal": [(clean, "text", lambda value: str(value).encode("utf-8", "replace").decode()),
                         (clean, "line", lambda value: str(value).encode("utf-8", "replace").decode()),
                         (read, "grade_id_of", any_grade_id), (restore, "grade_id_of", any_grade_id)],
    "14: folders within folders": [(find, "_chosen", find._choose), (find, "_notebooks", all_notebooks)],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("item", UNDONE)
def test_a_mending_that_is_taken_out_is_missed(root, item, monkeypatch):
    for holder, name, before in UNDONE[item]:
        monkeypatch.setattr(holder, name, before)
    with pytest.raises((Exception, BaseExceptionGroup)) as found:
        search(root, 150, derandomize=True, phases=[Phase.generate])
    print(item, "is found:", type(found.value).__name__, str(found.value)[:300])
