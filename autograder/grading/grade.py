"""From the bytes of a notebook to its verdict.

A submission's code runs in the sandbox; the references, the cases and the judgement stay in this process.
Nothing here touches a gradebook or a file of the course, so a Dask worker can do it.
"""

import ast
import functools
import hashlib
import importlib.util
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from autograder import clean
from autograder.course import HEAVY, ROOT
from autograder.grading.verdict import Failure, Recorded, Row, Verdict
from autograder.judging.exercise import Exercise, exercises, moved_from, names
from autograder.judging.judge import Trial
from autograder.judging.judge import Verdict as Judgement
from autograder.notebooks.read import NotReadable, Submission, read
from autograder.sandbox.host import INSIDE, Sandbox, SandboxFailed, SandboxUnavailable, Session
from autograder.sandbox.inside.calls import Outcome

T = TypeVar("T")
# What `grade-file --json` gives; verdict.json holds more.
KEYS = (
    "assignment", "status", "reason", "repairs", "score", "max_score", "seed", "version", "isolation", "warning",
    "exercises",
)  # fmt: skip
EXERCISE_KEYS = ("name", "status", "score", "max_score", "failures")


@dataclass(frozen=True)
class Limits:
    """How submissions are run.

    Attributes
    ----------
    isolation : str
        "bubblewrap" or "none".
    time_limit : float
        Seconds for one call. A cell has four times as long, a notebook twenty-four times.
    memory_limit : int
        MB for all processes of a submission.
    system_calls : tuple of str or "all"
        What submissions may ask of the kernel besides, as `sandbox.Sandbox` has it.
    """

    isolation: str = "bubblewrap"
    time_limit: float = 5.0
    memory_limit: int = 1024
    system_calls: tuple[str, ...] | str = ()

    @property
    def recorded(self) -> Recorded:
        """The part that a verdict keeps under "limits"."""
        limits: Recorded = {"time_limit": self.time_limit, "memory_limit": self.memory_limit}
        if self.system_calls:
            limits["system_calls"] = "all" if isinstance(self.system_calls, str) else sorted(self.system_calls)
        return limits


class About(TypedDict):
    """What every verdict on a submission says of it."""

    assignment: str | None
    seed: int
    limits: Limits


@dataclass(frozen=True)
class Task:
    """What grading a submission needs, in whatever process.

    Attributes
    ----------
    assignment : str
        The chapter.
    seed : int
    data : bytes or None
        The notebook.
    sha256 : str
        Of the bytes that were chosen.
    filename : str
    version : str
        Of the tests that are to be used.
    moved : bool
        Whether exercises count that were in the chapter before.
    problem : str
        Why it cannot be read, or "".
    """

    assignment: str
    seed: int
    data: bytes | None
    sha256: str
    filename: str
    version: str
    moved: bool
    problem: str = ""


@functools.cache
def version(chapter: str) -> str:
    """What a verdict depends on beside the submission: a hash of all code of the course that runs and judges it."""
    cases = {f"autograder.cases.{one}" for one in (chapter, *moved_from(chapter).values())}
    inside = {f"autograder.sandbox.inside.{path.stem}" for path in INSIDE.glob("*.py")}
    paths, left = set(), _files("autograder.grading.grade", *inside, *cases)
    while left:
        path = left.pop()
        paths.add(path)
        left |= _imported(path) - paths
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.relative_to(ROOT)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _imported(path: Path) -> set[Path]:
    """The files of the course that a file imports."""
    package, names = ".".join(path.relative_to(ROOT).parent.parts), []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names += [f"{source}.{alias.name}" for alias in node.names]
    return _files(*names)


def _files(*names: str) -> set[Path]:
    """The files of the course's modules of these names, with the packages that they lie in."""
    files = set()
    for name in names:
        words = name.split(".")
        if words[0] in ("autograder", "solutions"):
            stems = [ROOT.joinpath(*words[:count]) for count in range(1, len(words) + 1)]
            files |= {file for stem in stems for file in (stem / "__init__.py", stem.with_suffix(".py"))}
    return {file for file in files if file.exists()}


def grade(
    data: bytes,
    *,
    assignment: str | None = None,
    filename: str = "",
    seed: int = 0,
    limits: Limits = Limits(),
    moved: bool = True,
) -> tuple[Verdict, Submission | None]:
    """Grade a notebook.

    Parameters
    ----------
    data : bytes
        The file.
    assignment : str, optional
        The chapter; by default it is recognised.
    filename : str
        The file's name, without folders.
    seed : int
        What the hidden cases are drawn from.
    limits : Limits
    moved : bool
        Whether exercises count that were in the chapter when the notebook was released and are in another today.

    Returns
    -------
    verdict : dict
        As `verdict.json` holds it: plain JSON.
    submission : Submission or None
        The notebook as it was read, or None.

    Raises
    ------
    SandboxUnavailable
        Nothing can be graded on this machine. Where a sandbox has worked before, and whatever else goes wrong, is
        told by the verdict.
    """
    about: About = {"assignment": assignment, "seed": seed, "limits": limits}
    try:
        submission = read(data, assignment, filename, moved=moved)
        about["assignment"] = submission.assignment
        rows, errors, troubles = _judge_all(submission, seed, limits)
    except NotReadable as reason:
        return not_readable(str(reason), **about), None
    except SandboxUnavailable:
        raise
    except Exception as error:  # a fault of ours must not end a whole class's run
        return not_graded(fault("the grader", error), **about), None
    verdict = _verdict(
        **about,
        status="partly graded" if troubles else "graded",
        reason="; ".join(dict.fromkeys(troubles)) or None,
        repairs=submission.repairs,
        rows=rows,
        cell_errors=errors,
    )
    return verdict, submission


def grade_task(task: Task, limits: Limits) -> tuple[Verdict, Submission | None, float]:
    """Grade one submission of a class: (verdict, submission, seconds). Nothing that it does ends the class's run."""
    start = time.perf_counter()
    about: About = {"assignment": task.assignment, "seed": task.seed, "limits": limits}
    submission = None
    try:
        if task.data is None:
            verdict = not_readable(task.problem, **about)
        elif hashlib.sha256(task.data).hexdigest() != task.sha256:
            verdict = not_graded("the file was changed while the class was graded", **about)
        elif task.version != version(task.assignment):
            reason = f"a worker has another version of the tests ({version(task.assignment)}, not {task.version})"
            verdict = not_graded(reason, **about)
        else:
            verdict, submission = grade(task.data, filename=task.filename, moved=task.moved, **about)
    except SandboxUnavailable as error:  # it was there when the run began (`prove_sandbox`)
        close_sandbox()
        verdict = not_graded(f"the sandbox could not be had: {error}", **about)
    except Exception as error:
        verdict = not_graded(fault("the grader", error), **about)
    return verdict, submission, time.perf_counter() - start


def prove_sandbox(limits: Limits) -> None:
    """See that a submission that does nothing can be shut in. Where that works, what fails is one submission's matter.

    Raises
    ------
    SandboxUnavailable
        Nothing can be graded here.
    """
    _sandbox((), limits)


def fault(what: str, error: BaseException) -> str:
    """A fault of ours in words, for a verdict's reason."""
    return f"{what} failed ({type(error).__name__}: {clean.line(error)[:300]})"


def not_readable(reason: str, *, assignment: str | None, seed: int, limits: Limits) -> Verdict:
    """The verdict on a file that could not be read."""
    return _verdict(assignment=assignment, seed=seed, limits=limits, status="not readable", reason=reason)


def not_graded(reason: str, *, assignment: str | None, seed: int, limits: Limits) -> Verdict:
    """The verdict where something of ours failed before anything was judged."""
    rows = [_row(exercise, None, 0.0) for exercise in exercises(assignment)] if assignment else []
    return _verdict(assignment=assignment, seed=seed, limits=limits, status="partly graded", reason=reason, rows=rows)


def documented(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """A verdict with the keys that `grade-file --json` documents."""
    rows = [{key: row[key] for key in EXERCISE_KEYS} for row in verdict["exercises"]]
    return {key: verdict[key] for key in KEYS} | {"exercises": rows}


def _verdict(
    *,
    assignment: str | None,
    seed: int,
    limits: Limits,
    status: str,
    reason: str | None,
    repairs: Iterable[str] = (),
    rows: Sequence[Row] = (),
    cell_errors: Iterable[str] = (),
) -> Verdict:
    scores = [row["score"] for row in rows if row["score"] is not None]
    known = rows or [_row(exercise, None, 0.0) for exercise in (exercises(assignment) if assignment else [])]
    return {
        "assignment": assignment,
        "status": status,
        "reason": reason and clean.line(reason),
        "repairs": list(map(clean.line, repairs)),
        "score": float(sum(scores)) if scores else None,
        "max_score": float(sum(row["max_score"] for row in known)) if known else None,
        "seed": seed,
        "version": version(assignment) if assignment else None,
        "isolation": limits.isolation,
        "warning": Sandbox(isolation=limits.isolation, system_calls=limits.system_calls).warning,
        "limits": limits.recorded,
        "cell_errors": list(map(clean.line, cell_errors)),
        "exercises": clean.values(rows),
    }


def _judge_all(submission: Submission, seed: int, limits: Limits) -> tuple[list[Row], list[str], list[str]]:
    """Each exercise's row, the errors of the cells, and what of ours went wrong."""
    chapters = dict.fromkeys(names()[name] for name in submission.names)
    its_exercises = [one for chapter in chapters for one in exercises(chapter) if one.name in submission.names]
    rows: dict[str, Row] = {}
    troubles: list[str] = []
    errors: list[str] = []
    for _ in range(2):  # a sandbox that broke is worth a second try
        troubles, left = [], [exercise for exercise in its_exercises if exercise.name not in rows]
        try:
            with _sandbox(submission.code, limits).session(submission.code, [e.name for e in left]) as session:
                errors = list(session.errors)
                _judge(submission, session, left, seed, rows, troubles)
                break
        except (SandboxFailed, SandboxUnavailable, OSError) as error:
            if isinstance(error, SandboxUnavailable) and limits not in _worked:
                raise
            close_sandbox()
            troubles = [f"the sandbox failed: {error}"]
    return [rows.get(e.name) or _row(e, None, 0.0) for e in its_exercises], errors, troubles


def _judge(
    submission: Submission,
    session: Session,
    left: list[Exercise],
    seed: int,
    rows: dict[str, Row],
    troubles: list[str],
) -> None:
    """Judge exercises, the visible sub-tests of all of them before the first hidden one."""
    trials: dict[str, Trial] = {}
    seconds: dict[str, float] = defaultdict(float)

    def step(name: str, do: Callable[[], T]) -> T | None:
        start = time.perf_counter()
        try:
            return do()
        except (SandboxFailed, SandboxUnavailable):
            raise
        except Exception as error:  # a fault in our cases or in the judge, never the learner's
            del trials[name]
            troubles.append(fault(f"judging {name}", error))
            return None
        finally:
            seconds[name] += time.perf_counter() - start

    for exercise in left:
        call = functools.partial(_call, session, submission, exercise.name)
        trials[exercise.name] = Trial(exercise, call, hidden=True, seed=seed)
    for hidden in (False, True):
        for name, trial in list(trials.items()):
            step(name, functools.partial(trial.run, hidden=hidden))
    for name, trial in list(trials.items()):
        verdict = step(name, trial.verdict)
        if verdict is not None:
            rows[name] = _row(trial.exercise, verdict, seconds[name])


def _call(
    session: Session, submission: Submission, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Outcome:
    if session.status(name) == "not found":
        why = submission.lost.get(name) or f"there is no function {name} once the cells have run"
        if name in submission.homes:
            cell = f"cell {submission.homes[name] + 1}"
            failed = [error for error in session.errors if error.startswith(f"{cell}:")]
            why += f"; {failed[0]}" if failed else ""
        return Outcome("not found", error=why)
    return session.call(name, args, kwargs)


def _row(exercise: Exercise, verdict: Judgement | None, seconds: float) -> Row:
    row: Row = {
        "name": exercise.name,
        "status": None,
        "score": None,
        "max_score": float(exercise.points),
        "failures": [],
        "subtests": [],
        "section": exercise.section,
        "anchor": exercise.anchor,
        "seconds": round(seconds, 4),
    }
    if verdict is not None:
        row["status"], row["score"] = verdict.status, verdict.points
        row["failures"] = [
            {"subtest": one.subtest, "message": one.message, "misconception": one.misconception, "hidden": one.hidden}
            for one in verdict.failures
        ]
        row["subtests"] = [
            {"name": name, "title": title, "weight": weight, "hidden": hidden, "passed": passed}
            for name, title, weight, hidden, passed in verdict.subtests
        ]
    return row


def told_once(failures: list[Failure]) -> list[Failure]:
    """An exercise's failures with everything said only where it first stands.

    An explanation holds for each of the checks that failed for its reason; once read, it is known.

    Parameters
    ----------
    failures : list of dict
        As in a verdict.

    Returns
    -------
    list of dict
        The same, without the misconceptions and the lines of messages that stood in an earlier one. The first line
        of each stays: it tells what was called.
    """
    said: set[str | None] = set()
    told: list[Failure] = []
    for failure in failures:
        first, *rest = failure["message"].split("\n")
        message = "\n".join([first, *(line for line in rest if line not in said)])
        known = failure["misconception"] in said
        told.append(failure | {"message": message, "misconception": None if known else failure["misconception"]})
        said.update(rest, [failure["misconception"]])
    return told


# ------------------------------------------------------------------------------------------ warm sandboxes

# What takes longer to import than all else that a submission does, by what the import names; the first cell of every
# notebook has urllib and zipfile.
WARM = {
    "scipy": "scipy.special",
    "matplotlib": "matplotlib.pyplot",
    **{package: package for package in HEAVY},
    "urllib": "urllib.request",
    "zipfile": "zipfile",
}
_worked: set[Limits] = set()  # the limits with which a sandbox of this process has worked
_open = threading.local()  # `box`: one warm sandbox for each thread that grades


def _sandbox(cells: Sequence[str], limits: Limits) -> Sandbox:
    """This thread's sandbox, warm with what the cells import and those before them imported."""
    text = "\n".join(cells)
    imported = re.findall(rf"^[ \t]*(?:from|import) +({'|'.join(WARM)})\b", text, re.MULTILINE)
    preload = {"numpy", *(WARM[package] for package in imported)}
    box, its_limits, loaded = getattr(_open, "box", (None, None, set()))
    if box is None or its_limits != limits or not preload <= loaded:
        close_sandbox()
        preload |= loaded
        box = Sandbox(
            sorted(preload),
            limits.isolation,
            time_limit=limits.time_limit,
            cell_limit=4 * limits.time_limit,
            notebook_limit=24 * limits.time_limit,
            memory_mb=limits.memory_limit,
            system_calls=limits.system_calls,
        )
        _open.box = box.__enter__(), limits, preload
        _worked.add(limits)
    return box


def close_sandbox() -> None:
    """End this thread's warm sandbox."""
    if hasattr(_open, "box"):
        _open.box[0].close()
        del _open.box
