"""Whole submissions that attack, graded as any other: each has what it deserves, and nothing else is touched."""

import json
import time
from pathlib import Path

import pytest
from build import STUDENTS, notebook
from hostile import ATTACKS, ITEMS, World

from autograder.grading.grade import Limits, close_sandbox, grade
from autograder.reports.feedback import feedback

KEPT = Path(__file__).parents[2] / "benchmarks" / "results" / "attacks.json"
LIMITS = Limits(time_limit=1.0, memory_limit=512)
FILES = {"nbgrader_config.py": b"# the course", "gradebook.db": b"SQLite format 3\0"}


@pytest.fixture(scope="module", autouse=True)
def sandbox():
    yield
    close_sandbox()


def graded(made):
    return grade(json.dumps(made).encode(), assignment="patchify", filename="patchify.ipynb", limits=LIMITS)[0]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attack(attack, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADEBOOK_PASSWORD", "x")
    with World(tmp_path, FILES) as world:
        started = time.monotonic()
        verdict = graded(world.notebook(attack))
        assert time.monotonic() - started < 30
        assert verdict["status"] == "graded", verdict["reason"]
        assert attack.least - 1e-9 <= verdict["score"] <= attack.most + 1e-9, verdict
        assert world.gains(json.dumps(verdict, ensure_ascii=False), feedback(verdict, "attacker")) == []
        assert (world.course / "gradebook.db").read_bytes() == FILES["gradebook.db"]


def test_the_next_student_is_unharmed():
    """After all of the above, in the same warm sandbox."""
    verdict = graded(notebook(STUDENTS["ada"]))
    assert (verdict["score"], verdict["cell_errors"]) == (12.0, [])


def test_what_an_attack_would_gain_is_seen(tmp_path):
    """Each thing that is looked for, done by hand: the tests above could not fail otherwise."""
    with World(tmp_path, FILES) as world:
        (world.home / world.mark).touch()
        (world.course / "submitted/next/patchify/numpy.py").touch()
        found = world.gains("RuntimeError: GAINED the gradebook", f"<script>alert('{world.mark}')</script>")
    assert found == [
        "had the gradebook",
        "its script is in the feedback",
        "wrote submitted/next/patchify/numpy.py",
        "its code ran in the grader",
    ]


def test_every_item_of_the_list_is_attacked():
    assert {attack.item for attack in ATTACKS} == set(ITEMS)
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 35


def test_the_kept_table_is_of_these_attacks_and_ours_held():
    """`benchmarks/attacks.py` writes it; the page for teachers shows it."""
    rows = json.loads(KEPT.read_text("utf-8"))["attacks"]
    assert [(row["item"], row["attack"]) for row in rows] == [(attack.item, attack.name) for attack in ATTACKS]
    assert {row["ours"]["verdict"] for row in rows} == {"held"}
