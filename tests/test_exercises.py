"""What must hold of every exercise, whoever declares it."""

import copy
import functools
import inspect
import re
import time

import numpy as np
import pytest

from autograder import CheckFailed, check, evaluate
from autograder.judging.exercise import CHAPTERS, Case, Exercise, Raises, exercises, moved_from, names
from autograder.judging.judge import INPUTS, judge
from autograder.notebooks.solution import BEGIN, exercise_texts, module_path
from autograder.sandbox.inside.calls import run
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


@each_exercise
def test_reference_gets_full_marks_whatever_the_seed(exercise):
    for seed in range(10):
        verdict = evaluate(exercise.name, exercise.reference, hidden=True, seed=seed)
        assert verdict.passed, f"the solution itself fails: {verdict.failures}"


@each_exercise
def test_every_subtest_has_a_case_of_each_kind(exercise):
    assert {subtest.hidden for subtest in exercise.subtests} == {True, False}, "it needs visible and hidden sub-tests"
    for subtest in exercise.subtests:
        cases = list(subtest.draw(np.random.default_rng(0)) if subtest.hidden else subtest.draw())
        # A sub-test of errors alone would be passed by a function that always raises.
        assert any(not isinstance(case, Raises) for case in cases), f"{subtest.name} has no ordinary case"


@each_exercise
def test_no_error_is_asked_for_that_the_text_does_not_name(exercise):
    """What the solution raises in a case stands in its docstring, under Raises."""
    promised = inspect.getdoc(exercise.reference).partition("\nRaises\n")[2]
    for subtest in exercise.subtests:
        for case in subtest.draw(np.random.default_rng(0)) if subtest.hidden else subtest.draw():
            if isinstance(case, Raises):
                with pytest.raises(Exception) as raised:
                    exercise.reference(*case.args, **case.kwargs)
                name = raised.type.__name__
                assert re.search(rf"^{name}$", promised, re.MULTILINE), f"{name} is asked for, and no Raises names it"


def is_of_floats(value):
    return isinstance(value, (float, np.ndarray, np.floating)) and np.asarray(value).dtype.kind == "f"


JUDGED = {}


def judged(exercise, mistake, seed):
    """A misconception's verdict, and whether any of its answers could be rounded; found once."""
    key, seen = (id(exercise), mistake.name, seed), [False]

    def answer(*args, **kwargs):
        value = mistake.function(*args, **kwargs)
        seen[0] |= is_of_floats(value)
        return value

    if key not in JUDGED:
        JUDGED[key] = judge(exercise, functools.partial(run, answer), hidden=True, seed=seed), seen[0]
    return JUDGED[key]


def uncaught(exercise, mistake, seeds=range(4)):
    """What goes wrong with a misconception, for each seed with which something does."""
    slips = []
    for seed in seeds:
        verdict, _ = judged(exercise, mistake, seed)
        given = {failure.misconception for failure in verdict.failures}
        explained = all(mistake.explanation in failure.message for failure in verdict.failures)
        if verdict.passed:
            slips.append("gets full marks")
        elif given != {mistake.name} or not explained:
            slips.append(f"is called by another name: {given}")
    return slips


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # mistakes divide by zero
@each_misconception
def test_misconception_is_caught_and_named(exercise, mistake):
    slips = uncaught(exercise, mistake)
    assert slips == [], f"the mistake {mistake.name!r} {slips[0]}"


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


@each_exercise
def test_a_function_that_does_nothing_right_gets_nothing(exercise):
    def always_raises(*args, **kwargs):
        raise ValueError("no")

    def echo(*args, **kwargs):
        return args[0]

    for idle in (lambda *args, **kwargs: None, lambda *args, **kwargs: np.zeros(()), always_raises, echo):
        verdict = evaluate(exercise.name, idle, hidden=True)
        assert verdict.score == 0.0, [name for name, *_, passed in verdict.subtests if passed]


@each_exercise
def test_stub_is_not_written_and_says_so(exercise):
    namespace = {}
    exec(exercise_texts(exercise.chapter)[exercise.name].stub, namespace)
    stub = namespace[exercise.name]
    assert inspect.getdoc(stub) == inspect.getdoc(exercise.reference)
    assert inspect.signature(stub) == exercise.signature
    verdict = evaluate(exercise.name, stub, hidden=True)
    assert (verdict.status, verdict.score) == ("not written", 0.0)
    with pytest.raises(CheckFailed, match="not written yet"):
        check(stub)


@each_exercise
def test_an_answer_is_judged_by_its_values_and_not_by_its_container(exercise):
    """Lists, single precision and torch tensors are answers too."""
    torch = pytest.importorskip("torch")

    def converted(convert):
        def answer(*args, **kwargs):
            value = exercise.reference(*args, **kwargs)
            return value if value is None or isinstance(value, (bool, int, float, str, list)) else convert(value)

        return answer

    def narrow(value):
        return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value

    for convert in (np.ndarray.tolist, narrow, lambda value: torch.as_tensor(value)):
        if convert is np.ndarray.tolist and exercise.chapter == "small_vit":
            continue
        verdict = evaluate(exercise.name, converted(convert), hidden=True)
        assert verdict.passed, verdict.failures


def in_single(value):
    """Numbers of double precision in single, also in lists and the like."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(in_single, value))
    if type(value) is dict:
        return {key: in_single(item) for key, item in value.items()}
    wide = isinstance(value, (np.ndarray, np.floating)) and value.dtype == np.float64
    return value.astype(np.float32) if wide else value


class Single:
    """NumPy whose functions compute in single precision and return nothing wider."""

    def __init__(self, module=np):
        self.module = module

    def __getattr__(self, name):
        found = getattr(self.module, name)
        if inspect.ismodule(found):
            return Single(found)
        if found is np.float64:
            return np.float32
        if isinstance(found, type) or not callable(found):
            return found

        def function(*args, **kwargs):
            return in_single(found(*map(in_single, args), **kwargs))

        function.at = getattr(found, "at", None)
        return function


@pytest.mark.parametrize("exercise", [one for one in EXERCISES if one.chapter != "small_vit"], ids=lambda one: one.name)
def test_a_function_that_computes_in_single_precision_is_right(exercise, monkeypatch):
    module = inspect.getmodule(exercise.reference)
    reference = exercise.reference

    def single(*args, **kwargs):
        with monkeypatch.context() as patch:
            patch.setattr(module, "np", Single())
            return reference(*map(in_single, args), **{key: in_single(value) for key, value in kwargs.items()})

    for seed in range(3):
        verdict = judge(exercise, functools.partial(run, single), hidden=True, seed=seed)
        assert verdict.passed, verdict.failures


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@each_misconception
def test_casting_gains_nothing(exercise, mistake):
    """A wrong answer that is rounded to single precision is as wrong as before."""

    def cast(*args, **kwargs):
        value = mistake.function(*args, **kwargs)
        return np.asarray(value).astype(np.float32) if is_of_floats(value) else value

    for seed in range(2):
        verdict, is_rounded = judged(exercise, mistake, seed)
        if is_rounded:  # else there is nothing to cast
            assert judge(exercise, functools.partial(run, cast), hidden=True, seed=seed).score <= verdict.score


def test_a_wrong_function_that_no_mistake_names_gains_nothing_by_casting():
    """What it is off by is more than single precision explains, and less than once was allowed."""
    exercise = next(one for one in EXERCISES if one.name == "sincos_1d")

    def off(positions, d, base=10000.0):
        return (exercise.reference(positions, d, base) + 3e-5).astype(np.float32)

    assert evaluate("sincos_1d", off, hidden=True).score < 0.2


@each_exercise
def test_a_changed_input_costs_one_subtest(exercise):
    def spoiling(*args, **kwargs):
        value = exercise.reference(*copy.deepcopy(args), **kwargs)
        for arg in args:
            if hasattr(arg, "dtype") and "float" in str(arg.dtype):  # an array or a tensor
                arg += 1
            elif isinstance(arg, list):
                arg.append(0)
        return value

    arguments = [case.args for subtest in exercise.subtests if not subtest.hidden for case in subtest.draw()]
    if not any(isinstance(arg, list) or hasattr(arg, "dtype") for args in arguments for arg in args):
        pytest.skip("this exercise takes no argument that can be changed")
    verdict = evaluate(exercise.name, spoiling, hidden=True)
    assert [failure.subtest for failure in verdict.failures] == [INPUTS]
    assert "changed its argument" in verdict.failures[0].message


@each_exercise
def test_check_answers_within_a_tenth_of_a_second(exercise, capfd):
    check(exercise.reference)  # the first call imports the chapter
    best = min(_seconds(lambda: check(exercise.reference)) for _ in range(3))
    out, err = capfd.readouterr()
    assert best < 0.1
    assert err == ""
    assert out.splitlines()[0].startswith(f"{exercise.name}: ")
    assert out.splitlines()[0].endswith("checks pass")


def _seconds(function):
    """Of this thread's processor time: the machine may be busy with something else."""
    start = time.thread_time()
    function()
    return time.thread_time() - start


@each_exercise
def test_reference_warns_of_nothing(exercise, recwarn):
    for subtest in exercise.subtests:
        for case in subtest.draw(np.random.default_rng(1)) if subtest.hidden else subtest.draw():
            outcome = run(exercise.reference, case.args, case.kwargs)
            assert outcome.kind == ("raised" if isinstance(case, Raises) else "returned"), outcome.error
            if isinstance(case, Raises):
                assert "ValueError" in outcome.bases
    assert [str(warning.message) for warning in recwarn] == []


@each_exercise
def test_docstring_and_hints(exercise):
    text = exercise_texts(exercise.chapter)[exercise.name]
    assert "Parameters\n" in text.stub, "its docstring has no Parameters"
    assert "Returns\n" in text.stub, "its docstring has no Returns"
    assert 1 <= len(text.hints) <= 3, "it needs one to three hints"
    assert len(exercise.misconceptions) >= 4, "it needs at least four misconceptions"
    assert 1 <= exercise.difficulty <= 3


@each_exercise
def test_an_explanation_speaks_of_nothing_that_a_learner_does_not_see(exercise):
    explanations = [mistake.explanation for mistake in exercise.misconceptions]
    assert not re.findall(r"\b(chapter|solutions|autograder)\.\w", "\n".join(explanations))
