"""Judging a function: `judge` for anyone who can call it, `evaluate` and `check` for one in this process."""

import contextlib
import functools
import os
import sys
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from autograder.judging.compare import KINDS, LOW_PRECISION, difference, narrow, pattern, same
from autograder.judging.exercise import Exercise, Raises, find, names
from autograder.sandbox.inside.calls import Odd, Outcome, plain, run

Call = Callable[[Sequence[Any], Mapping[str, Any]], Outcome]  # of the function under test
INPUTS = "inputs unchanged"  # the sub-test that every exercise has
KEPT = 1 << 20  # bytes of an answer that are remembered
SINGLE = 4  # times as far off as the reference a right function may be in single precision


class CheckFailed(AssertionError):
    """A check did not pass; the text says what is wrong."""

    def _render_traceback_(self):
        """Show the message alone in a notebook: the frames between are ours, not the learner's."""
        return [str(self)]


@dataclass(frozen=True)
class Failure:
    """One sub-test that did not pass.

    Attributes
    ----------
    subtest : str
        Its name.
    message : str
        What was called, what should have come back and what did. Of a hidden sub-test only a hint.
    misconception : str or None
        The known mistake that gives the same answers.
    hidden : bool
        Whether learners see the sub-test.
    """

    subtest: str
    message: str
    misconception: str | None
    hidden: bool


@dataclass
class Verdict:
    """The judgement of one exercise; `score` is the weighted share of sub-tests passed."""

    name: str
    status: str
    score: float
    max_points: float
    failures: list[Failure] = field(default_factory=list)
    # (name, title, weight, hidden, passed) for each one
    subtests: list[tuple[str, str, float, bool, bool]] = field(default_factory=list)

    @property
    def points(self) -> float:
        return self.score * self.max_points

    @property
    def passed(self) -> bool:
        return self.score == 1.0


@dataclass
class _Answered:
    """A case with its outcome, and what is wrong with it (None: nothing).

    Attributes
    ----------
    slip : str or None
        What is wrong with it but for its precision.
    changed : int or str or None
        The first argument that the call changed: its number or name.
    tolerance : float
        What it was compared with.
    """

    case: object
    outcome: Outcome
    wrong: str | None
    slip: str | None = None
    changed: object = None
    tolerance: float = 0.0


def judge(exercise: Exercise, call: Call, *, hidden: bool = False, seed: int = 0) -> Verdict:
    """Judge a function by its exercise's sub-tests.

    Parameters
    ----------
    exercise : Exercise
    call : function
        `call(args, kwargs) -> Outcome`, the function under test.
    hidden : bool
        Run the hidden sub-tests too.
    seed : int
        What the hidden inputs are drawn from.

    Returns
    -------
    Verdict
    """
    trial = Trial(exercise, call, hidden=hidden, seed=seed)
    trial.run(hidden=False)
    trial.run(hidden=True)
    return trial.verdict()


class Trial:
    """The judging of one function, in two parts: the visible sub-tests are run first, and then the hidden ones.

    A function can keep an argument that it was given and show it in a later answer. What it is shown before the
    visible sub-tests of all exercises are through is no secret, and of a later answer nothing is shown.
    """

    def __init__(self, exercise: Exercise, call: Call, *, hidden: bool, seed: int) -> None:
        self.exercise, self.call, self.seed = exercise, call, seed
        self.subtests = [subtest for subtest in exercise.subtests if hidden or not subtest.hidden]
        self.answered = {}  # name of a sub-test -> its cases as far as they were run
        self.last = None  # the one that has no answer, and its sub-test; after it nothing is run

    def run(self, *, hidden: bool) -> None:
        """Run the visible or the hidden sub-tests."""
        for number, subtest in enumerate(self.subtests):
            if subtest.hidden != hidden or self.last:
                continue
            self.answered[subtest.name] = answers = []
            for case in _draw(self.exercise.name, subtest, number, self.seed):
                answers.append(_judged(self.exercise, case, self.call(case.args, case.kwargs)))
                if answers[-1].outcome.kind in ("timed out", "crashed", "not found"):
                    self.last = subtest, answers[-1]
                    break

    def verdict(self) -> Verdict:
        """The verdict on what was run."""
        exercise = self.exercise
        everything = [answer for subtest in self.subtests for answer in self.answered.get(subtest.name, ())]
        if self.last is None and all(answer.outcome.unwritten and not answer.outcome.lacks for answer in everything):
            return _nothing(exercise, self.subtests, "not written", f"{exercise.name} is not written yet")
        misconception = _explain(exercise, everything) if self.last is None else None
        if misconception:
            for answer in everything:
                answer.wrong = answer.wrong or _slipped(exercise, misconception, answer)
        failures, results = [], []
        for subtest in self.subtests:
            answers = self.answered.get(subtest.name, [])
            lost = self.last is not None and (not answers or answers[-1] is self.last[1])
            first = next((answer for answer in answers if answer.wrong), None)
            results.append((subtest, first is None and not lost))
            if first is not None:
                failures.append(_failure(exercise, subtest, first, misconception))
            elif lost:
                failures.append(Failure(subtest.name, self._not_run(), None, subtest.hidden))
        changed = next((answer.changed for answer in everything if answer.changed is not None), None)
        if self.last is None and changed is not None:
            failures.append(_mutation(exercise, changed))
        # Credit for leaving the inputs alone is only for a function that does something right with them.
        unchanged = (self.last is not None or changed is None) and any(passed for _, passed in results)
        status = self.last and self.last[1].outcome.kind
        return _verdict(exercise, results, unchanged, failures, status)

    def _not_run(self):
        subtest, answer = self.last
        # How a call crashed can be told by its arguments: it is said of visible ones.
        secret = subtest.hidden and answer.outcome.kind != "timed out"
        why = answer.outcome.kind if secret else f"{answer.outcome.kind}: {answer.outcome.error}"
        return f"{self.exercise.name}: not run, because an earlier call {why}."


def evaluate(name: str, function: Callable[..., Any], *, hidden: bool = False, seed: int = 0) -> Verdict:
    """Judge a function in this process.

    Parameters
    ----------
    name : str
        The exercise.
    function : function
        The learner's.
    hidden : bool
        Run the hidden sub-tests too.
    seed : int
        What the hidden inputs are drawn from.

    Returns
    -------
    Verdict

    Raises
    ------
    KeyError
        If there is no exercise of that name. Nothing else is raised on account of the function.
    """
    exercise = find(name)
    with (
        open(os.devnull, "w", encoding="utf-8", errors="replace") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        return judge(exercise, functools.partial(run, function), hidden=hidden, seed=seed)


def check(function: Callable[..., Any], name: str | None = None, *, hidden: bool = False) -> None:
    """Check your function against the visible cases of its exercise.

    Prints one line when all is right.

    Parameters
    ----------
    function : function
        Yours.
    name : str, optional
        The exercise, if your function goes by another name.
    hidden : bool
        Run the hidden cases too.

    Raises
    ------
    CheckFailed
        With the message of the first check that fails.
    """
    print(checked(function, name, hidden=hidden))


def checked(function: Callable[..., Any], name: str | None = None, *, hidden: bool = False) -> str:
    """Check a function as `check` does, and return the line that `check` prints.

    Returns
    -------
    str

    Raises
    ------
    CheckFailed
        With the message of the first check that fails.
    """
    name = str(name or getattr(function, "__name__", function))
    if not name.isidentifier():  # a lambda, a partial
        raise CheckFailed("name the exercise too, as in check(function, 'name')")
    try:
        exercise = find(name)
    except KeyError:
        near = get_close_matches(name, names(), n=3, cutoff=0.5)
        meant = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(names()))}"
        raise CheckFailed(f"there is no exercise named {name}; {meant}") from None
    # What the function writes to stderr is shown, but on stdout: nbgrader reads any stderr as zero points.
    with contextlib.redirect_stderr(sys.stdout):
        verdict = judge(exercise, functools.partial(run, function), hidden=hidden)
    if not verdict.passed:
        first = verdict.failures[0]
        raise CheckFailed(first.message)
    return f"{name}: {len(verdict.subtests)} of {len(verdict.subtests)} checks pass"


@functools.lru_cache(maxsize=300)  # a class is asked the same: enough for all chapters at one seed
def _draw(name, subtest, number, seed):
    rng = [np.random.default_rng([seed, zlib.crc32(name.encode()), number])] if subtest.hidden else []
    with _undisturbed():
        return tuple(subtest.draw(*rng))


def _ours(function, case):
    """What a reference or a misconception answers to a case; each is asked once."""
    if function not in case.answers:
        with _undisturbed():
            case.answers[function] = run(function, case.args, case.kwargs)
    return case.answers[function]


@contextlib.contextmanager
def _undisturbed():
    """What our own code warns of is nothing for the learner to see, and no error if theirs makes errors of warnings."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _judged(exercise, case, outcome):
    """A case with what is to be known of its outcome: what may be large is not kept."""
    tolerance = exercise.tolerance
    wrong = slip = _wrong(exercise, case, outcome, tolerance)
    if wrong and isinstance(outcome.value, np.ndarray) and narrow(outcome.value):
        tolerance = _single(exercise, case)
        wrong = _wrong(exercise, case, outcome, tolerance)
    changed = _changed(case, outcome)
    value = outcome.value
    if isinstance(value, np.ndarray) and value.nbytes > KEPT:  # larger than any answer of ours
        value = Odd(f"an array of shape {value.shape}")
    return _Answered(case, replace(outcome, value=value, after=None), wrong, slip, changed, tolerance)


def _wrong(exercise, case, outcome, tolerance):
    """What is wrong with an outcome, in words that follow the call, or None."""
    if outcome.kind in ("timed out", "crashed", "not found"):
        return outcome.error
    if isinstance(case, Raises):
        return _not_raised(case, outcome)
    if outcome.lacks:
        return f"calls {outcome.lacks}, which is not written yet"
    if outcome.kind == "raised":
        return f"raised {outcome.error}"
    if exercise.returns and isinstance(outcome.value, Odd):
        return f"should return {exercise.returns}; yours returned {outcome.value.what}"
    expected = _ours(exercise.reference, case).value
    label = exercise.label and (lambda index: exercise.label(index, *case.args))
    return difference(outcome.value, expected, tolerance, label)


def _slipped(exercise, misconception, answer):
    """What is wrong with an answer that only its precision hides, if the misconception gives the like, or None."""
    theirs = _ours(misconception.function, answer.case)
    if answer.slip is None or theirs.kind != "returned":
        return None
    return answer.slip if _wrong(exercise, answer.case, theirs, exercise.tolerance) else None


def _single(exercise, case):
    """The tolerance for an answer in single precision: what that can do with these arguments, and no more.

    The reference is asked what it answers in single precision, and to numbers that were rounded to it. A right
    function of another make may be a few times as far off.
    """
    if case.single is None:
        expected = _ours(exercise.reference, case).value
        noise = float(np.finfo(np.float32).eps)
        for args, kwargs in _in_single(case):
            with _undisturbed():
                other = run(exercise.reference, args, kwargs).value
            if isinstance(other, np.ndarray) and other.shape == expected.shape and other.dtype.kind == "f":
                with _undisturbed():
                    off = np.max(np.abs(other - expected) / (1 + np.abs(expected)), initial=0.0)
                if off < LOW_PRECISION:  # else the argument was none that can be rounded: a size, an index
                    noise = max(noise, float(off))
        case.single = max(exercise.tolerance, exercise.single, SINGLE * noise)
    return case.single


def _in_single(case):
    """The arguments of a case in single precision, and rounded to it, upwards here and downwards there."""
    yield _each(case.args, _as_single), _each(case.kwargs, _as_single)
    rng = np.random.default_rng(0)

    def rounded(value, kinds="f"):
        array = np.asarray(value)
        if array.dtype.kind not in kinds:
            return value
        array = array * (1 + np.finfo(np.float32).eps / 2 * rng.choice([-1.0, 1.0], size=array.shape))
        return array if array.ndim else float(array)

    for _ in range(3):
        yield _each(case.args, rounded), _each(case.kwargs, rounded)
    for place, value in enumerate(case.args):  # whole numbers one by one: few of them are quantities
        if np.asarray(value).dtype.kind in "iu":
            yield (*case.args[:place], rounded(value, "iu"), *case.args[place + 1 :]), case.kwargs


def _as_single(value):
    wide = isinstance(value, (np.ndarray, np.number)) and value.dtype == np.float64
    return value.astype(np.float32) if wide else value


def _each(value, change):
    """A value with a change made to all that is in it."""
    if isinstance(value, (list, tuple)):
        return type(value)(_each(item, change) for item in value)
    if type(value) is dict:
        return {key: _each(item, change) for key, item in value.items()}
    return change(value)


def _not_raised(case, outcome):
    if outcome.kind == "returned":
        return f"should raise an error{_because(case)}; yours returned {_returned(outcome.value)}"
    if outcome.unwritten or "Exception" not in outcome.bases:
        return f"should raise an ordinary exception such as ValueError{_because(case)}; yours raised {outcome.error}"
    if case.naming not in _without_line(outcome.error):
        return f"should name {case.naming!r} in the error; yours raised {outcome.error}"
    return None


def _returned(value):
    if isinstance(value, Odd):
        return value.what
    return f"an array of shape {value.shape}" if value.ndim else f"{value[()]}"


def _because(case):
    return f", because {case.why}" if case.why else ""


def _explain(exercise, everything):
    """The misconception that gives the learner's answers, best over all the cases that were run."""
    wrong = [answer for answer in everything if answer.wrong]
    best, most = None, 0
    for misconception in exercise.misconceptions if wrong else ():
        if not _agrees(misconception, wrong[0]):
            continue  # the first failing check is the one whose message the learner reads
        hits = [_agrees(misconception, answer) for answer in everything]
        explained = sum(hit for hit, answer in zip(hits, everything, strict=True) if answer.wrong)
        # It must explain every wrong answer, or else most of all the answers.
        enough = explained == len(wrong) or 2 * sum(hits) > len(everything)
        if enough and sum(hits) > most and any(_telling(misconception, answer) for answer in wrong):
            best, most = misconception, sum(hits)
    return best


def _agrees(misconception, answer):
    theirs = _ours(misconception.function, answer.case)
    if theirs.kind != answer.outcome.kind:
        return False
    if theirs.kind == "raised":
        return theirs.bases[:1] == answer.outcome.bases[:1]
    return same(answer.outcome.value, theirs.value, answer.tolerance)


def _telling(misconception, answer):
    """Whether they agree in more than the class of an error: many a mistake ends in a ValueError."""
    if answer.outcome.kind != "raised":
        return _agrees(misconception, answer)
    return _without_line(answer.outcome.error) == _without_line(_ours(misconception.function, answer.case).error)


def _without_line(error):
    """What an exception says, without the line of code that `calls.run` puts after it."""
    return error.rpartition(" (line ")[0] or error


def _failure(exercise, subtest, first, misconception):
    if subtest.hidden:
        # A hint that does not give the case away: what the sub-test is about, and the kind of failure.
        how = "raised an error" if first.outcome.kind == "raised" else "gave a wrong answer"
        message = f"{exercise.name}: a hidden check, “{subtest.title}”: yours {how}."
    else:
        message = f"{_call(exercise, first.case)}: {first.wrong}."
        if misconception is None and not isinstance(first.case, Raises):
            message += _clue(exercise, first)
    if misconception:
        message += f"\n{misconception.explanation}"
    message += f"\nSee: {exercise.section}"
    return Failure(subtest.name, message, misconception and misconception.name, subtest.hidden)


def _clue(exercise, first):
    """What else can be said of a wrong answer that no known mistake explains."""
    clue = f"\nThis case is here because {first.case.why}." if first.case.why else ""
    if first.outcome.kind == "returned":
        expected = _ours(exercise.reference, first.case).value
        clue = pattern(first.outcome.value, expected, exercise.tolerance) + clue
    return clue


def _changed(case, outcome):
    """The first argument that the call changed: its number or name, or None."""
    if outcome.after is None:
        return None
    args, kwargs = outcome.after
    before = {**dict(enumerate(case.args)), **case.kwargs}
    after = {**dict(enumerate(args)), **kwargs}
    return next((key for key in before if not _as_it_was(before[key], after.get(key))), None)


def _as_it_was(before, after):
    try:
        return _equal(before, after)
    except KeyboardInterrupt:
        raise
    except BaseException:  # the learner has put an object into it that raises when it is looked at
        return False


def _equal(before, after):
    if isinstance(before, (list, tuple)):
        return isinstance(after, (list, tuple)) and len(before) == len(after) and all(map(_equal, before, after))
    if isinstance(before, dict):
        return (
            isinstance(after, dict)
            and before.keys() == after.keys()
            and all(map(_equal, before.values(), after.values()))
        )
    if before is None or isinstance(before, str):
        return type(before) is type(after) and before == after
    if isinstance(after, (list, tuple, dict)):  # not the argument any more, and what an array of it takes is unknown
        return False
    before, after = plain(before), plain(after)
    if isinstance(before, Odd) or isinstance(after, Odd):
        return type(before) is type(after) and before == after
    floats = before.dtype.kind == "f"
    return KINDS[before.dtype.kind] == KINDS[after.dtype.kind] and np.array_equal(before, after, equal_nan=floats)


def _mutation(exercise, key):
    name = key if isinstance(key, str) else list(exercise.signature.parameters)[key]
    message = (
        f"{exercise.name} changed its argument {name}. Whoever called it still needs {name}: "
        f"work on a copy, or write the result into a new array."
    )
    return Failure(INPUTS, message, None, False)


def _nothing(exercise, subtests, status, message):
    results = [(subtest, False) for subtest in subtests]
    return _verdict(exercise, results, False, [Failure("written", message, None, False)], status)


def _verdict(exercise, results, unchanged, failures, status=None):
    """The verdict on sub-tests, each with whether it was passed, and on the arguments."""
    subtests = [(s.name, s.title, s.weight, s.hidden, passed) for s, passed in results]
    subtests.append((INPUTS, "The arguments are as they were", 1.0, False, unchanged))
    total = sum(weight for _, _, weight, _, _ in subtests)
    score = float(sum(weight for _, _, weight, _, passed in subtests if passed) / total)
    status = status or ("passed" if score == 1.0 else "failed" if score == 0.0 else "partly passed")
    return Verdict(exercise.name, status, score, float(exercise.points), failures, subtests)


def _call(exercise, case):
    """The call in words: `f(x of shape (2, 3, 3), n=2)`."""
    parameters = list(exercise.signature.parameters)
    given = [*zip(parameters, case.args, strict=False), *case.kwargs.items()]
    return f"{exercise.name}({', '.join(f'{_argument(name, value)}' for name, value in given)})"


def _argument(name, value):
    shape = getattr(value, "shape", None)
    if shape is not None and len(shape):
        small = len(shape) == 1 and shape[0] <= 8
        return f"{name}={np.asarray(value).tolist()}" if small else f"{name} of shape {tuple(shape)}"
    if isinstance(value, dict):
        return name
    return f"{name}={value!r}"
