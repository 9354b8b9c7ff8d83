"""What must hold of every exercise, whoever declares it."""

import warnings

import numpy as np
import pytest

from autograder import check, evaluate
from autograder.authoring import rules
from autograder.authoring.rules import RULES, uncaught
from autograder.judging.exercise import CHAPTERS, Case, Exercise, Raises, exercises, moved_from, names
from autograder.notebooks.solution import BEGIN, exercise_texts, module_path
from solutions import patchify

WRITTEN = list(dict.fromkeys(names().values()))
EXERCISES = [exercise for chapter in WRITTEN for exercise in exercises(chapter)]
MISCONCEPTIONS = [(exercise, mistake) for exercise in EXERCISES for mistake in exercise.misconceptions]

each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
each_misconception = pytest.mark.parametrize(
    ("exercise", "mistake"),
    MISCONCEPTIONS,
    ids=[f"{exercise.name}-{mistake.name}" for exercise, mistake in MISCONCEPTIONS],
)


@pytest.mark.parametrize("chapter", WRITTEN)
def test_what_is_declared_is_what_is_written(chapter):
    assert [exercise.name for exercise in exercises(chapter)] == list(exercise_texts(chapter))


def test_what_has_moved_was_in_another_chapter():
    moved = {exercise.name: exercise for exercise in EXERCISES if exercise.formerly_in}
    assert all(one.formerly_in in CHAPTERS and one.formerly_in != one.chapter for one in moved.values())
    read = {name: today for chapter in CHAPTERS for name, today in moved_from(chapter).items()}
    assert read == {name: one.chapter for name, one in moved.items()}  # as the engine reads it, without an import


def test_every_module_with_exercises_is_declared():
    modules = module_path("patchify").parent.glob("*.py")
    assert {path.stem for path in modules if BEGIN in path.read_text(encoding="utf-8")} == set(WRITTEN)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@each_exercise
def test_rules_hold(exercise, rule):
    """What `make preview` tells an author, too."""
    assert rule(exercise) == []


@each_exercise
def test_a_check_says_so_in_one_line(exercise, capfd):
    check(exercise.reference)
    out, err = capfd.readouterr()
    assert err == ""
    assert out.splitlines()[0].startswith(f"{exercise.name}: ")
    assert out.splitlines()[0].endswith("checks pass")


# ------------------------------------------------------------------------------------------ each rule sees its fault


def declared(reference, *cases, hidden=(), **about):
    """An exercise with one visible sub-test and one hidden."""
    exercise = Exercise(reference, **({"points": 1, "difficulty": 1, "minutes": 1, "section": ""} | about))
    for drawn, declare in ((cases, exercise.visible), (hidden, exercise.hidden)):
        if drawn:

            def some(rng=None, drawn=drawn):
                "Some cases"
                return iter(drawn)

            declare(some)
    return exercise


def warning(x):
    warnings.warn("careful", stacklevel=1)
    return x


def nothing(x):
    return 0.0


ONES = np.ones((2, 1, 2, 2))
GOOD, BAD = Case(ONES), Raises(ONES)
WEIGHT = patchify.conv_weight_to_linear
FAULTS = [
    ("reference_gets_full_marks_whatever_the_seed", declared(WEIGHT, GOOD, hidden=[BAD]), "the solution itself fails"),
    ("every_subtest_has_a_case_of_each_kind", declared(WEIGHT, GOOD), "visible and hidden"),
    ("every_subtest_has_a_case_of_each_kind", declared(WEIGHT, BAD, hidden=[GOOD]), "no ordinary case"),
    ("errors_that_are_asked_for_stand_in_the_text", declared(WEIGHT, Raises(None), hidden=[GOOD]), "no Raises names"),
    ("who_does_nothing_right_gets_nothing", declared(nothing, GOOD, hidden=[GOOD]), "passes"),
    ("reference_warns_of_nothing", declared(warning, GOOD, hidden=[GOOD]), "careful"),
    ("reference_warns_of_nothing", declared(WEIGHT, Case(None), hidden=[GOOD]), "the solution raised"),
    ("text_is_whole", declared(WEIGHT, GOOD, difficulty=4), "its difficulty is 1, 2 or 3"),
    ("text_is_whole", declared(WEIGHT, GOOD), "at least four misconceptions"),
]


@pytest.mark.parametrize(("name", "exercise", "words"), FAULTS, ids=[f"{n}-{w}" for n, _, w in FAULTS])
def test_a_rule_sees_its_fault(name, exercise, words):
    (rule,) = (rule for rule in RULES if rule.__name__ == name)
    assert any(words in line for line in rule(exercise)), rule(exercise)


def test_a_slow_check_and_a_rule_that_fails_are_told(monkeypatch):
    monkeypatch.setattr(rules, "SECONDS", 0.0)
    assert any("its check takes" in line for line in rules.broken(EXERCISES[0]))
    monkeypatch.setattr(rules, "RULES", [lambda exercise: 1 / 0])
    assert "ZeroDivisionError" in rules.broken(EXERCISES[0])[0]


def test_a_misconception_that_no_case_catches_is_seen():
    """Cases on square patches of one colour cannot tell the two flatten orders apart: the test above must say so."""
    blind = Exercise(patchify.conv_weight_to_linear, points=1, difficulty=1, minutes=1, section="")

    @blind.visible
    def grey():
        "One colour"
        yield Case(np.arange(8.0).reshape(2, 1, 2, 2))

    @blind.misconception("channels first")
    def channels_first(W_conv):
        "Channels first."
        return W_conv.reshape(len(W_conv), -1).T

    assert uncaught(blind, blind.misconceptions[0]) == ["gets full marks"] * 4


def test_a_wrong_function_that_no_mistake_names_gains_nothing_by_casting():
    """What it is off by is more than single precision explains, and less than once was allowed."""
    exercise = next(one for one in EXERCISES if one.name == "sincos_1d")

    def off(positions, d, base=10000.0):
        return (exercise.reference(positions, d, base) + 3e-5).astype(np.float32)

    assert evaluate("sincos_1d", off, hidden=True).score < 0.2
