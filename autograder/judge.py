"""Judging a function: `judge` for anyone who can call it, `evaluate` and `check` for one in this process."""

import contextlib
import functools
import os
import sys
import warnings
import zlib
from dataclasses import dataclass, field
from difflib import get_close_matches

import numpy as np

from autograder.calls import Odd, Outcome, plain, run
from autograder.compare import difference, pattern, same
from autograder.exercise import Raises, find, names

INPUTS = "inputs unchanged"  # the sub-test that every exercise has


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
    failures: list = field(default_factory=list)
    subtests: list = field(default_factory=list)  # (name, title, weight, hidden, passed) for each one

    @property
    def points(self):
        return self.score * self.max_points

    @property
    def passed(self):
        return self.score == 1.0


@dataclass
class _Answered:
    """A case with its outcome and what is wrong with it (None: nothing)."""

    case: object
    outcome: Outcome
    wrong: str | None


def judge(exercise, call, *, hidden=False, seed=0):
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
    subtests = [subtest for subtest in exercise.subtests if hidden or not subtest.hidden]
    answered = {}  # name of a sub-test -> its cases as far as they were run
    for number, subtest in enumerate(subtests):
        answered[subtest.name] = []
        for case in _draw(exercise.name, subtest, number, seed):
            outcome = call(case.args, case.kwargs)
            answered[subtest.name].append(_Answered(case, outcome, _wrong(exercise, case, outcome)))
            if outcome.kind in ("timed out", "crashed", "not found"):
                return _broken_off(exercise, subtests, answered, outcome)
    everything = [one for several in answered.values() for one in several]
    if all(one.outcome.unwritten and not one.outcome.lacks for one in everything):
        return _nothing(exercise, subtests, "not written", f"{exercise.name} is not written yet")
    misconception = _explain(exercise, everything)
    failures, results = [], []
    for subtest in subtests:
        first = next((one for one in answered[subtest.name] if one.wrong), None)
        results.append((subtest, first is None))
        if first is not None:
            failures.append(_failure(exercise, subtest, first, misconception))
    changed = next((one for one in everything if _changed(one) is not None), None)
    # Credit for leaving the inputs alone is only for a function that does something right with them.
    unchanged = changed is None and any(passed for _, passed in results)
    if changed is not None:
        failures.append(_mutation(exercise, changed))
    return _verdict(
        exercise,
        [
            *((s.name, s.title, s.weight, s.hidden, passed) for s, passed in results),
            (INPUTS, "The arguments are as they were", 1.0, False, unchanged),
        ],
        failures,
    )


def evaluate(name, function, *, hidden=False, seed=0):
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


def check(function, name=None, *, hidden=False):
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


def checked(function, name=None, *, hidden=False):
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
    known = names()
    if not name.isidentifier():  # a lambda, a partial
        raise CheckFailed("name the exercise too, as in check(function, 'patchify')")
    if name not in known:
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        meant = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
        raise CheckFailed(f"there is no exercise named {name}; {meant}")
    # What the function writes to stderr is shown, but on stdout: nbgrader reads any stderr as zero points.
    with contextlib.redirect_stderr(sys.stdout):
        verdict = judge(find(name), functools.partial(run, function), hidden=hidden)
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


def _wrong(exercise, case, outcome):
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
    return difference(outcome.value, expected, exercise.tolerance, label)


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
    wrong = [one for one in everything if one.wrong]
    best, most = None, 0
    for misconception in exercise.misconceptions if wrong else ():
        if not _agrees(exercise, misconception, wrong[0]):
            continue  # the first failing check is the one whose message the learner reads
        hits = [_agrees(exercise, misconception, one) for one in everything]
        explained = sum(hit for hit, one in zip(hits, everything, strict=True) if one.wrong)
        # It must explain every wrong answer, or else most of all the answers.
        enough = explained == len(wrong) or 2 * sum(hits) > len(everything)
        if enough and sum(hits) > most and any(_telling(exercise, misconception, one) for one in wrong):
            best, most = misconception, sum(hits)
    return best


def _agrees(exercise, misconception, one):
    theirs = _ours(misconception.function, one.case)
    if theirs.kind != one.outcome.kind:
        return False
    if theirs.kind == "raised":
        return theirs.bases[:1] == one.outcome.bases[:1]
    return same(one.outcome.value, theirs.value, exercise.tolerance)


def _telling(exercise, misconception, one):
    """Whether they agree in more than the class of an error: many a mistake ends in a ValueError."""
    if one.outcome.kind != "raised":
        return _agrees(exercise, misconception, one)
    return _without_line(one.outcome.error) == _without_line(_ours(misconception.function, one.case).error)


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


def _changed(one):
    """The first argument that the call changed: its number or name, or None."""
    if one.outcome.after is None:
        return None
    args, kwargs = one.outcome.after
    before = {**dict(enumerate(one.case.args)), **one.case.kwargs}
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
    return same(plain(before), plain(after), 0.0)


def _mutation(exercise, one):
    key = _changed(one)
    name = key if isinstance(key, str) else list(exercise.signature.parameters)[key]
    message = (
        f"{exercise.name} changed its argument {name}. Whoever called it still needs {name}: "
        f"work on a copy, or write the result into a new array."
    )
    return Failure(INPUTS, message, None, False)


def _broken_off(exercise, subtests, answered, outcome):
    """The verdict when a call has no answer: what was judged before stays judged."""
    results, failures = [], []
    for subtest in subtests:
        ones = answered.get(subtest.name, [])
        lost = not ones or ones[-1].outcome is outcome
        first = next((one for one in ones if one.wrong), None)
        results.append((subtest.name, subtest.title, subtest.weight, subtest.hidden, not lost and first is None))
        if first is not None:
            failures.append(_failure(exercise, subtest, first, None))
        elif lost:
            message = f"{exercise.name}: not run, because an earlier call {outcome.kind}: {outcome.error}."
            failures.append(Failure(subtest.name, message, None, subtest.hidden))
    results.append((INPUTS, "The arguments are as they were", 1.0, False, any(passed for *_, passed in results)))
    verdict = _verdict(exercise, results, failures)
    verdict.status = outcome.kind
    return verdict


def _nothing(exercise, subtests, status, message):
    results = [(subtest.name, subtest.title, subtest.weight, subtest.hidden, False) for subtest in subtests]
    results.append((INPUTS, "The arguments are as they were", 1.0, False, False))
    failures = [Failure("written", message, None, False)]
    return Verdict(exercise.name, status, 0.0, float(exercise.points), failures, results)


def _verdict(exercise, results, failures):
    total = sum(weight for _, _, weight, _, _ in results)
    score = float(sum(weight for _, _, weight, _, passed in results if passed) / total)
    status = "passed" if score == 1.0 else "failed" if score == 0.0 else "partly passed"
    return Verdict(exercise.name, status, score, float(exercise.points), failures, results)


def _call(exercise, case):
    """The call in words: `patchify(img of shape (2, 3, 3), P=2)`."""
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
