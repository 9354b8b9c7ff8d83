"""What must hold of every exercise, whoever declares it: `make preview` and the tests ask the same.

Each rule takes an exercise and returns what is wrong with it, in words for its author; nothing where all is right.
"""

import contextlib
import copy
import functools
import importlib
import inspect
import re
import time
import warnings
from collections.abc import Callable
from unittest import mock

import numpy as np

from autograder.course import HEAVY
from autograder.judging.exercise import Exercise, Raises, heavy
from autograder.judging.judge import INPUTS, CheckFailed, checked, judge
from autograder.notebooks.solution import exercise_texts
from autograder.sandbox.inside.calls import run

SECONDS = 0.1  # of processor time that a check may take
RULES: list[Callable[[Exercise], list[str]]] = []


def rule(function):
    """Declare a rule."""
    RULES.append(function)
    return function


def broken(exercise):
    """What is wrong with an exercise, by all rules; where a rule itself fails, that is told."""
    wrong = []
    for holds in RULES:
        try:
            wrong += holds(exercise)
        except Exception as error:  # an author's code can fail in any way
            wrong.append(f"{holds.__name__.replace('_', ' ')}: {type(error).__name__}: {error}")
    return wrong


def _verdict(exercise, function, seed=0):
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # mistakes divide by zero
        warnings.simplefilter("ignore")
        return judge(exercise, functools.partial(run, function), hidden=True, seed=seed)


def _cases(exercise, seed=0):
    """The sub-tests, each with its cases."""
    for subtest in exercise.subtests:
        yield subtest, list(subtest.draw(np.random.default_rng(seed)) if subtest.hidden else subtest.draw())


@rule
def reference_gets_full_marks_whatever_the_seed(exercise):
    verdicts = (_verdict(exercise, exercise.reference, seed) for seed in range(10))
    return [f"the solution itself fails: {verdict.failures}" for verdict in verdicts if not verdict.passed][:1]


@rule
def every_subtest_has_a_case_of_each_kind(exercise):
    if {subtest.hidden for subtest in exercise.subtests} != {True, False}:
        return ["it needs visible and hidden sub-tests"]
    # A sub-test of errors alone would be passed by a function that always raises.
    return [
        f"{subtest.name} has no ordinary case"
        for subtest, cases in _cases(exercise)
        if all(isinstance(case, Raises) for case in cases)
    ]


@rule
def errors_that_are_asked_for_stand_in_the_text(exercise):
    """What the solution raises in a case stands in its docstring, under Raises."""
    promised = (inspect.getdoc(exercise.reference) or "").partition("\nRaises\n")[2]
    names = set()
    for _, cases in _cases(exercise):
        for case in cases:
            if isinstance(case, Raises):
                try:
                    exercise.reference(*case.args, **case.kwargs)
                except Exception as error:
                    names.add(type(error).__name__)
    unnamed = [name for name in sorted(names) if not re.search(rf"^{name}$", promised, re.MULTILINE)]
    return [f"{name} is asked for, and no Raises names it" for name in unnamed]


@rule
def misconceptions_are_caught_and_named(exercise):
    wrong = []
    for mistake in exercise.misconceptions:
        slips = uncaught(exercise, mistake)
        wrong += [f"the mistake {mistake.name!r} {slips[0]}"] if slips else []
    return wrong


def uncaught(exercise, mistake, seeds=range(4)):
    """What goes wrong with a misconception, for each seed with which something does."""
    slips = []
    for seed in seeds:
        verdict, _ = _judged(exercise, mistake, seed)
        given = {failure.misconception for failure in verdict.failures}
        explained = all(mistake.explanation in failure.message for failure in verdict.failures)
        if verdict.passed:
            slips.append("gets full marks")
        elif given != {mistake.name} or not explained:
            slips.append(f"is called by another name: {given}")
    return slips


_known: dict = {}


def _judged(exercise, mistake, seed):
    """A misconception's verdict, and whether any of its answers could be rounded; found once."""
    key, seen = (id(exercise), mistake.name, seed), [False]

    def answer(*args, **kwargs):
        value = mistake.function(*args, **kwargs)
        seen[0] |= _is_of_floats(value)
        return value

    if key not in _known:
        _known[key] = _verdict(exercise, answer, seed), seen[0]
    return _known[key]


def _is_of_floats(value):
    return isinstance(value, (float, np.ndarray, np.floating)) and np.asarray(value).dtype.kind == "f"


@rule
def casting_gains_nothing(exercise):
    """A wrong answer that is rounded to single precision is as wrong as before."""
    wrong = []
    for mistake in exercise.misconceptions:

        def cast(*args, mistake=mistake, **kwargs):
            value = mistake.function(*args, **kwargs)
            return np.asarray(value).astype(np.float32) if _is_of_floats(value) else value

        for seed in range(2):
            verdict, is_rounded = _judged(exercise, mistake, seed)
            if is_rounded and _verdict(exercise, cast, seed).score > verdict.score:
                wrong.append(f"the mistake {mistake.name!r} gains points when its answers are rounded")
    return wrong


@rule
def who_does_nothing_right_gets_nothing(exercise):
    def always_raises(*args, **kwargs):
        raise ValueError("no")

    def echo(*args, **kwargs):
        return args[0]

    wrong = []
    for idle in (lambda *args, **kwargs: None, lambda *args, **kwargs: np.zeros(()), always_raises, echo):
        verdict = _verdict(exercise, idle)
        passed = ", ".join(name for name, *_, passed in verdict.subtests if passed)
        wrong += [f"a function that does nothing right passes {passed}"] if verdict.score else []
    return wrong


@rule
def stub_is_not_written_and_says_so(exercise):
    namespace: dict = {}
    exec(exercise_texts(exercise.chapter)[exercise.name].stub, namespace)
    stub, wrong = namespace[exercise.name], []
    if inspect.getdoc(stub) != inspect.getdoc(exercise.reference):
        wrong.append("the stub has another docstring than the solution")
    if inspect.signature(stub) != exercise.signature:
        wrong.append("the stub has another signature than the solution")
    verdict = _verdict(exercise, stub)
    if (verdict.status, verdict.score) != ("not written", 0.0):
        wrong.append(f"the stub is {verdict.status!r} with {verdict.score:g} points")
    try:
        checked(stub)
        wrong.append("the stub passes its check")
    except CheckFailed as failed:
        wrong += [] if "not written yet" in str(failed) else [f"the stub's check says: {failed}"]
    return wrong


@rule
def an_answer_is_judged_by_its_values_and_not_by_its_container(exercise):
    """Lists, single precision and tensors are answers too."""

    def converted(convert):
        def answer(*args, **kwargs):
            value = exercise.reference(*args, **kwargs)
            return value if value is None or isinstance(value, (bool, int, float, str, list)) else convert(value)

        return answer

    def narrow(value):
        return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value

    # Whoever answers with a tensor has no reason to make a list of it
    ways = {"in single precision": narrow} | ({} if heavy(exercise.chapter) else {"as a list": np.ndarray.tolist})
    for package in HEAVY:
        with contextlib.suppress(ImportError, AttributeError):
            ways[f"as a tensor of {package}"] = importlib.import_module(package).as_tensor
    wrong = []
    for words, convert in ways.items():
        verdict = _verdict(exercise, converted(convert))
        wrong += [] if verdict.passed else [f"a right answer {words} fails: {verdict.failures}"]
    return wrong


@rule
def a_function_that_computes_in_single_precision_is_right(exercise):
    if heavy(exercise.chapter):
        return []
    module = inspect.getmodule(exercise.reference)

    def single(*args, **kwargs):
        with mock.patch.object(module, "np", _Single()):
            return exercise.reference(*map(_in_single, args), **{k: _in_single(value) for k, value in kwargs.items()})

    verdicts = (_verdict(exercise, single, seed) for seed in range(3))
    return [f"the solution in single precision fails: {v.failures}" for v in verdicts if not v.passed][:1]


def _in_single(value):
    """Numbers of double precision in single, also in lists and the like."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(_in_single, value))
    if type(value) is dict:
        return {key: _in_single(item) for key, item in value.items()}
    wide = isinstance(value, (np.ndarray, np.floating)) and value.dtype == np.float64
    return value.astype(np.float32) if wide else value


class _Single:
    """NumPy whose functions compute in single precision and return nothing wider."""

    def __init__(self, module=np):
        self.module = module

    def __getattr__(self, name):
        attribute = getattr(self.module, name)
        if inspect.ismodule(attribute):
            return _Single(attribute)
        if attribute is np.float64:
            return np.float32
        if isinstance(attribute, type) or not callable(attribute):
            return attribute

        def function(*args, **kwargs):
            return _in_single(attribute(*map(_in_single, args), **kwargs))

        function.at = getattr(attribute, "at", None)
        return function


@rule
def a_changed_input_costs_one_subtest(exercise):
    def spoiling(*args, **kwargs):
        value = exercise.reference(*copy.deepcopy(args), **kwargs)
        for arg in args:
            if hasattr(arg, "dtype") and "float" in str(arg.dtype):  # an array or a tensor
                arg += 1
            elif isinstance(arg, list):
                arg.append(0)
        return value

    visible = [case for subtest, cases in _cases(exercise) if not subtest.hidden for case in cases]
    if not any(isinstance(arg, list) or hasattr(arg, "dtype") for case in visible for arg in case.args):
        return []  # it takes no argument that can be changed
    failures = _verdict(exercise, spoiling).failures
    if [failure.subtest for failure in failures] != [INPUTS] or "changed its argument" not in failures[0].message:
        return [f"a function that changes its arguments fails {[failure.subtest for failure in failures]}"]
    return []


@rule
def check_answers_within_a_tenth_of_a_second(exercise):
    checked(exercise.reference)  # the first call imports the chapter
    best = min(_seconds(lambda: checked(exercise.reference)) for _ in range(3))
    return [f"its check takes {best:.2f} s"] if best >= SECONDS else []


def _seconds(function):
    """Of this thread's processor time: the machine may be busy with something else."""
    start = time.thread_time()
    function()
    return time.thread_time() - start


@rule
def reference_warns_of_nothing(exercise):
    wrong = []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for _, cases in _cases(exercise, seed=1):
            for case in cases:
                outcome = run(exercise.reference, case.args, case.kwargs)
                if outcome.kind != ("raised" if isinstance(case, Raises) else "returned"):
                    wrong.append(f"the solution {outcome.kind} {outcome.error}")
                elif isinstance(case, Raises) and "ValueError" not in outcome.bases:
                    wrong.append(f"the solution raises {outcome.bases[0]}, which is no ValueError")
    return wrong + [f"the solution warns: {warning.message}" for warning in heard]


@rule
def text_is_whole(exercise):
    text = exercise_texts(exercise.chapter)[exercise.name]
    hidden = [
        m.name for m in exercise.misconceptions if re.search(r"\b(chapter|solutions|autograder)\.\w", m.explanation)
    ]
    told = {
        "its docstring has no Parameters": "Parameters\n" in text.stub,
        "its docstring has no Returns": "Returns\n" in text.stub,
        "it needs one to three hints": 1 <= len(text.hints) <= 3,
        "it needs at least four misconceptions": len(exercise.misconceptions) >= 4,
        "its difficulty is 1, 2 or 3": exercise.difficulty in (1, 2, 3),
        f"what explains {', '.join(hidden)} speaks of code that a learner does not see": not hidden,
    }
    return [words for words, holds in told.items() if not holds]
