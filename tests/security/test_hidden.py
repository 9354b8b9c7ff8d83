"""Nothing of a hidden case's arguments is in any message, whatever a submission keeps and shows of them."""

import json

import numpy as np
import pytest
from build import STUDENTS, notebook

from autograder.grading.grade import close_sandbox, grade
from autograder.judging.exercise import exercises
from autograder.judging.judge import Trial, _draw, judge
from autograder.sandbox.inside.calls import Outcome, run

EXERCISES = exercises("patchify")
KEEP = """
import hashlib
import os
import sys
import numpy as np
SEEN = []
def shown(args):
    return " ".join(f"{abs(float(v)):.6g}" for x in args for v in np.ravel(x)[:3])
def keep(name, args):
    SEEN.append((name, args))
    told = shown(args)
    before = " ".join(shown(a) for _, a in SEEN[-2:-8:-1])
    HOW
"""
FUNCTIONS = "\n".join(f"def {one.name}(*args, **kwargs):\n    return keep({one.name!r}, args)" for one in EXERCISES)
WAYS = {
    "raised": "raise ValueError('SEEN ' + before)",
    "returned as text": "return 'SEEN ' + before",
    "in the name of a class": "return type('SEEN ' + before, (), {})()",
    "as numbers": "return np.concatenate([np.ravel(x)[:3] for _, a in SEEN[-6:-1] for x in a] or [np.zeros(1)])[:8]",
    "in the name of a missing function": "exec('def SEEN_' + before.encode().hex() + '(): raise NotImplementedError'); "
    "raise NotImplementedError",
    "in the number it ends with": "os._exit(int(abs(np.sum(args[0])) * 1000) % 250 + 1 if len(SEEN) > 3 else 0)",
    "only in hidden cases": "if len(SEEN) > 30: os._exit(77)\n    raise ValueError('SEEN ' + before)",
}


@pytest.fixture(scope="module", autouse=True)
def sandbox():
    yield
    close_sandbox()


def numbers_of_hidden_cases(seed):
    """What a message would hold of an argument: the first digits of its first entries."""
    for exercise in EXERCISES:
        for number, subtest in enumerate(exercise.subtests):
            for case in _draw(exercise.name, subtest, number, seed) if subtest.hidden else ():
                for value in map(np.asarray, case.args):
                    if value.dtype.kind == "f":
                        yield from (f"{abs(entry):.6g}" for entry in value.ravel()[:3])


@pytest.mark.parametrize("way", WAYS)
def test_messages(way):
    seed = 20_261_130
    data = json.dumps(notebook(KEEP.replace("HOW", WAYS[way]) + FUNCTIONS)).encode()
    verdict, _ = grade(data, assignment="patchify", filename="patchify.ipynb", seed=seed)
    assert verdict["status"] == "graded"
    told = json.dumps([verdict[key] for key in ("reason", "repairs", "cell_errors", "exercises")])
    secret = [number for number in numbers_of_hidden_cases(seed) if len(number) > 5]
    assert len(secret) > 50 and [number for number in secret if number in told] == []
    for row in verdict["exercises"]:
        for failure in row["failures"]:
            if failure["hidden"]:
                assert "SEEN" not in failure["message"] and "exit 77" not in failure["message"]


def test_visible_cases_of_all_exercises_are_run_before_the_first_hidden_one():
    """Asked of the functions themselves: each call notes what it was given."""
    order = KEEP.replace("HOW", "raise ValueError(f'{len(SEEN)} calls')") + FUNCTIONS
    verdict, _ = grade(json.dumps(notebook(order)).encode(), assignment="patchify", filename="patchify.ipynb")
    visible = sum(len(list(subtest.draw())) for one in EXERCISES for subtest in one.subtests if not subtest.hidden)
    seen = [
        int(failure["message"].split("raised ValueError: ")[1].split()[0])
        for row in verdict["exercises"] for failure in row["failures"] if "raised ValueError: " in failure["message"]
    ]  # fmt: skip
    assert len(seen) >= len(EXERCISES) and max(seen) <= visible


def test_the_order_of_declaration_is_that_of_the_verdict_and_not_of_the_calls():
    exercise = EXERCISES[0]
    hidden = [subtest.hidden for subtest in exercise.subtests]
    called = []

    def call(args, kwargs):
        called.append(len(called))
        return Outcome("raised", error="ValueError: no", bases=("ValueError", "Exception"))

    trial = Trial(exercise, call, hidden=True, seed=0)
    trial.run(hidden=True)
    trial.run(hidden=False)
    assert [name for name, *_ in trial.verdict().subtests][:-1] == [subtest.name for subtest in exercise.subtests]
    assert [failure.hidden for failure in judge(exercise, call, hidden=True).failures] == hidden


@pytest.mark.parametrize("kind", ["crashed", "timed out"])
def test_how_a_hidden_call_ended(kind):
    """A process can choose the number with which it ends; that it took too long is all that a time-out says."""
    exercise = EXERCISES[0]
    visible = sum(len(list(subtest.draw())) for subtest in exercise.subtests if not subtest.hidden)
    calls = []

    def call(args, kwargs):
        calls.append(args)
        right = run(exercise.reference, args, kwargs) if len(calls) <= visible else None
        return right or Outcome(kind, error="it ended itself (exit 77)")

    messages = [failure.message for failure in judge(exercise, call, hidden=True).failures]
    assert messages and all(("77" in message) == (kind == "timed out" and "not run" in message) for message in messages)


def test_honest_work_has_the_same_score():
    verdict, _ = grade(json.dumps(notebook(STUDENTS["ada"])).encode(), assignment="patchify", filename="patchify.ipynb")
    assert verdict["score"] == verdict["max_score"] == 12.0
