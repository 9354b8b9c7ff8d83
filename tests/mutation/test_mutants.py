"""Every mutant of every solution is caught by the cases, or spared for a reason (autograder/authoring/spared.toml)."""

import tomllib

import pytest

from autograder.authoring import mutants
from autograder.judging.exercise import Case, Exercise, Raises, find, names
from autograder.notebooks.solution import ExerciseText
from solutions import patchify

CHEAP = ("patchify", "attention_score_bytes")  # the others take minutes together

WRITTEN = '''def add(items, start=0):
    """Add up, as "a + b" does."""
    if start < 0:
        raise ValueError(f"start must be {0} or more" + "!")
    total, name = start, "items"
    for item in items:
        total += item * 2
    return total
'''


def written(code, monkeypatch):
    """An exercise whose solution is this code."""
    space = {}
    exec(code, space)
    function = next(value for name, value in space.items() if callable(value) and name != "__builtins__")
    function.__module__ = patchify.__name__
    text = ExerciseText(function.__name__, "", "", (), code, "")
    monkeypatch.setattr(mutants, "exercise_texts", lambda chapter: {function.__name__: text})
    return Exercise(function, points=1, difficulty=1, minutes=1, section="")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # mutants divide by zero
@pytest.mark.parametrize(
    "name", [name if name in CHEAP else pytest.param(name, marks=pytest.mark.slow) for name in names()]
)
def test_every_mutant_is_caught_or_spared(name):
    unseen, idle = mutants.holes(find(name))
    assert unseen == [], "no case sees the difference: add one (see the page Add an exercise)"
    assert idle == [], "spared, but caught: take it out of spared.toml"


def test_what_is_spared_has_a_reason_and_an_exercise():
    spared = tomllib.loads(mutants.SPARED.read_text(encoding="utf-8"))
    assert spared.keys() <= names().keys()
    for entries in spared.values():
        assert all(entry.keys() == {"why", "line", "becomes"} and entry["why"].endswith(".") for entry in entries)


def test_what_is_changed(monkeypatch):
    """An operator, a number, a value: one at a time, by hand. Not the docstring, not what is raised, not the word
    "items", which is a parameter's name."""
    changes = [(mutant.before, mutant.after) for mutant in mutants.mutants(written(WRITTEN, monkeypatch))]
    assert sorted(changes) == sorted(
        [
            ("if start < 0:", "if start <= 0:"),
            ("if start < 0:", "if start < 1:"),
            ('total, name = start, "items"', "total, name = None"),
            ("total += item * 2", "total = item * 2"),
            ("total += item * 2", "total -= item * 2"),
            ("total += item * 2", "total += item / 2"),
            ("total += item * 2", "total += item * 3"),
        ]
    )


def test_a_hole_in_the_cases_is_seen(monkeypatch):
    exercise = written(WRITTEN, monkeypatch)

    @exercise.visible
    def one_item():
        "One item"
        yield Case([0], 5)
        yield Raises([1], -1)

    assert ("total += item * 2", "total -= item * 2") in mutants.holes(exercise)[0]

    @exercise.hidden
    def items(rng):
        "Items"
        yield Case([3, 4, 5], 0)

    assert mutants.holes(exercise) == ([], [])


def test_a_spared_mutant_that_is_caught_is_seen(monkeypatch, tmp_path):
    spared = tmp_path / "spared.toml"
    entry = 'why = "It need not."\nline = "H_p, W_p = H // P, W // P"\nbecomes = ["H_p, W_p = H / P, W // P"]\n'
    spared.write_text("[[patchify]]\n" + entry)
    monkeypatch.setattr(mutants, "SPARED", spared)
    assert mutants.holes(find("patchify"))[1] == [("H_p, W_p = H // P, W // P", "H_p, W_p = H / P, W // P")]


def test_a_mutant_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr(mutants, "SECONDS", 0.1)
    code = 'def count(n):\n    """Count down."""\n    while n > 0:\n        n -= 1\n    return n\n'
    exercise = written(code, monkeypatch)

    @exercise.visible
    def down():
        "From three"
        yield Case(3)
        yield Case(0)

    assert ("n -= 1", "n += 1") not in [(mutant.before, mutant.after) for mutant in mutants.survivors(exercise)]
