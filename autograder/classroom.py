"""Grading a class: finding what is new, spreading it over processes, recording it in one.

The notebook of a submission is `<assignment>.ipynb`, unless it is missing, cannot be read or holds nothing
written while another notebook in the folder does; of several others the one with most functions written counts,
then the newest, then the first by name.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import signal
import stat
import sys
import threading
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tqdm import tqdm

from autograder.course import CommandError
from autograder.exercise import CHAPTERS, exercises, former_names, names
from autograder.feedback import feedback, told_once
from autograder.grade import HERE, close_sandbox, grade, not_graded, not_readable, version
from autograder.notebook import MAX_FILE, TOO_LARGE, NotReadable, inspect, restored
from autograder.sandbox import SandboxUnavailable

FEW = 60  # so many are graded in this process sooner than a cluster starts
MAX_ID = 128  # characters of a student's id, as nbgrader has it
MAX_NOTEBOOKS = 20  # looked at in one folder
NBGRADERS_OWN = ("timestamp.txt", "submission_secret.txt")  # what `nbgrader collect` puts beside a notebook

log = logging.getLogger("autograder")


@dataclass(frozen=True)
class Handed:
    """What a student handed in for an assignment.

    Attributes
    ----------
    student, assignment : str
    folder : Path
    path : Path or None
        The notebook; None where none can be graded.
    sha256 : str
        Of its bytes.
    size : int
        How many there are.
    seed : int
        The student's.
    problem : str
        Why there is no notebook, or "".
    notes : tuple of str
        How it was chosen, where that was not plain.
    """

    student: str
    assignment: str
    folder: Path
    path: Path | None
    sha256: str
    size: int
    seed: int
    problem: str = ""
    notes: tuple = ()


def grade_class(course, url, *, limits, seed, assignment=None, student=None, submitted=None, workers=None,
                scheduler=None, force=False):  # fmt: skip
    """Grade what is new in a course and record it.

    Parameters
    ----------
    course : Course
    url : str
        The gradebook's.
    limits : Limits
    seed : int
        The class's.
    assignment, student : str, optional
        Only these.
    submitted : Path, optional
        Where the submissions lie.
    workers : int, optional
        Processes of a local Dask cluster. By default as many as cores, or none for a few submissions.
    scheduler : str, optional
        Address of a running Dask scheduler.
    force : bool
        Grade what has not changed, too. A forced run that was stopped goes on when the same is started again.

    Returns
    -------
    list of dict
        The verdicts, each with `fresh`: whether it was made in this run.

    Raises
    ------
    CommandError
        Nothing could be graded, or the run was stopped.
    """
    handed = _find(course, submitted or course.folder("submitted"), assignment, student, seed)
    assignments = sorted({one.assignment for one in handed})
    with only_writer(course), _logging(course), contextlib.ExitStack() as stack:
        # nbgrader takes seconds to load: that happens while the first submission is graded.
        opening = stack.enter_context(ThreadPoolExecutor(1)).submit(_open_gradebook, course, url, assignments)
        forced = _begin_forced(course, [url, assignment, student, str(submitted), seed]) if force else None
        held, todo = _sort_out(course, handed, limits, force, forced)
        log.info("%d submissions, %d to be graded, version %s", len(handed), len(todo),
                 {name: version(name) for name in assignments})  # fmt: skip
        results = stack.enter_context(contextlib.closing(_graded(todo, limits, workers, scheduler)))
        verdicts, book = [], None
        try:
            for one, verdict, submission, seconds in results:
                book = book or stack.enter_context(opening.result())
                verdicts.append(_record(course, book, one, verdict, submission, seconds) | {"fresh": True})
        except KeyboardInterrupt:
            raise CommandError(
                f"stopped: {len(verdicts)} of {len(todo)} graded and recorded; the same command goes on from there"
            ) from None
        if len(verdicts) != len(todo):
            raise CommandError(f"{len(todo) - len(verdicts)} submissions got no verdict: grade again")
        book = book or stack.enter_context(opening.result())
        _record_again(book, held)
        _forced_mark(course).unlink(missing_ok=True)
    return _in_order([*verdicts, *(verdict | {"fresh": False} for verdict in held)])


def rehearse(course, url, *, limits, seed, assignment=None, student=None, submitted=None, workers=None,
             scheduler=None, force=False):  # fmt: skip
    """Grade what `grade_class` would grade, and write nothing.

    Returns
    -------
    verdicts : list of dict
        As `grade_class` gives them, those of this run with no more than the judgement.
    changes : list of dict
        What recording them would change in the gradebook: `student`, `assignment`, `exercise` ("all" for who has no
        score yet), `before`, `after` (None: no score), and `manual`, the score that a person gave, which stays.

    Raises
    ------
    CommandError
        Nothing could be graded.
    """
    handed = _find(course, submitted or course.folder("submitted"), assignment, student, seed)
    held, todo = _sort_out(course, handed, limits, force)
    with contextlib.closing(_graded(todo, limits, workers, scheduler)) as results:
        verdicts = [verdict | {"student": one.student, "fresh": True} for one, verdict, *_ in results]
    verdicts = _in_order([*verdicts, *(verdict | {"fresh": False} for verdict in held)])
    return verdicts, _changes(course, url, verdicts)


def _graded(todo, limits, workers, scheduler):
    """What the spreader gives, under a bar of progress."""
    results = _spreader(len(todo), workers, scheduler)(todo, limits)
    try:
        with _stops() as stop_if_asked:
            for result in tqdm(results, "grading", len(todo), disable=not todo):
                yield result
                stop_if_asked()
    except SandboxUnavailable as error:
        raise CommandError(str(error)) from error
    finally:
        results.close()


@contextlib.contextmanager
def _stops():
    """Give a function that raises KeyboardInterrupt when Ctrl-C or `kill` asked for it and their own one was lost.

    Python drops an exception that is raised while a destructor or the callback of a weak reference runs, and
    SQLAlchemy has thousands of those. A signal that is ignored stays so: Ctrl-C, for a job in the background.
    """
    asked = []

    def stop_if_asked():
        if asked:
            raise KeyboardInterrupt

    def noting(interrupt):
        def note(*arguments):
            asked.append(True)
            interrupt(*arguments)

        return note

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: interrupt for number, interrupt in before.items() if callable(interrupt)}
    if threading.current_thread() is not threading.main_thread():
        before = {}  # only the main thread may, and is asked
    for number, interrupt in before.items():
        signal.signal(number, noting(interrupt))
    try:
        yield stop_if_asked
    finally:
        for number, interrupt in before.items():
            signal.signal(number, interrupt)


def _in_order(verdicts):
    return sorted(verdicts, key=lambda verdict: (verdict["assignment"], verdict["student"]))


def _changes(course, url, verdicts):
    from autograder.gradebook import Gradebook, NoGradebook  # imports nbgrader

    recorded = {}
    with contextlib.suppress(NoGradebook), Gradebook(course, url, make=False) as book:
        recorded = {name: book.scores(name) for name in {verdict["assignment"] for verdict in verdicts}}
    changes = []
    for verdict in verdicts:
        about = {"student": verdict["student"], "assignment": verdict["assignment"]}
        scores = recorded.get(verdict["assignment"], {}).get(verdict["student"])
        if scores is None:
            changes.append(about | {"exercise": "all", "before": None, "after": verdict["score"], "manual": None})
            continue
        rows = {row["name"]: row for row in verdict["exercises"]}
        for name in sorted(names().keys() & scores.keys()):  # of a retired exercise the score stays
            score, after = scores[name], scores[name].of(rows.get(name))
            if after != score.auto:
                changes.append(about | {"exercise": name, "before": score.auto, "after": after, "manual": score.manual})
    return changes


def _open_gradebook(course, url, assignments):
    from autograder.gradebook import Gradebook  # imports nbgrader

    with contextlib.ExitStack() as undo:
        book = undo.enter_context(Gradebook(course, url))
        for name in assignments:
            book.ensure(name, {exercise.name: exercise.points for exercise in exercises(name)})
        book.db.remove()  # the session of this thread
        undo.pop_all()
    return book


# ------------------------------------------------------------------------------------------ finding


def _find(course, submitted, assignment, student, seed):
    """The submissions in nbgrader's folders, `submitted/<student>/<assignment>/`."""
    if not submitted.is_dir():
        raise CommandError(f"there is no folder {submitted}")
    handed, passed_over = [], []
    for home in sorted(submitted.iterdir()):
        if home.name.startswith(".") or not home.is_dir() or (student and home.name != student):
            continue
        if home.name != _shown(home) or len(home.name) > MAX_ID:
            passed_over.append(f"{_shown(home)}: its name cannot be a student's id; rename it")
            continue
        entries = [entry for entry in sorted(home.iterdir()) if entry.name[0] != "."]
        folders = [entry for entry in entries if entry.name in CHAPTERS and entry.is_dir()]
        for entry in entries:
            if entry not in folders and (entry.is_dir() or entry.suffix.lower() == ".ipynb"):
                passed_over.append(f"{home.name}/{_shown(entry)}: no chapter's folder")
        if not entries:
            passed_over.append(f"{home.name}: the folder is empty")
        for folder in folders:
            if assignment in (None, folder.name):
                handed.append(_choose(home.name, folder, course.seed_for(home.name, seed)))
    if passed_over:
        print("Passed over (what is graded lies in <student>/<chapter>/):", *passed_over, sep="\n  ", file=sys.stderr)
    if not handed:
        whose = f" of {student}" if student else ""
        what = f" for {assignment}" if assignment else ""
        raise CommandError(f"no submission{whose}{what} in {submitted}")
    return handed


def _choose(student, folder, seed):
    """The notebook of a submission, by the rule above."""
    if folder.is_symlink():  # to the folder of another student, perhaps
        return Handed(
            student, folder.name, folder, None, "", 0, seed, "the folder is a link: hand in the notebook itself"
        )
    found = [path for path in folder.iterdir() if path.suffix.lower() == ".ipynb" and path.name[0] != "."]
    if not found:
        found = [path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts]
    found = sorted(found)[:MAX_NOTEBOOKS]
    if not found:
        others = sorted(_shown(path) for path in folder.iterdir() if path.name not in NBGRADERS_OWN)[:5]
        problem = f"there is no notebook in the folder{': only ' if others else ''}{', '.join(others)}"
        return Handed(student, folder.name, folder, None, "", 0, seed, problem)
    notes, path = (), found[0]
    if len(found) > 1:
        path = min(found, key=lambda path: _rank(path, folder.name))
        rest = ", ".join(_shown(other) for other in found if other != path)
        notes = (f"several notebooks in the folder: {_shown(path)} was read, not {rest}",)
    try:
        data = _bytes(path)
    except NotReadable as reason:
        return Handed(student, folder.name, folder, None, "", 0, seed, str(reason))
    return Handed(student, folder.name, folder, path, hashlib.sha256(data).hexdigest(), len(data), seed, "", notes)


def _rank(path, assignment):
    try:
        found = inspect(_bytes(path), assignment, path.name)
        written = sum(exercise["written"] for exercise in found["exercises"])
        readable = found["status"] == "readable"
    except NotReadable:
        written, readable = 0, False
    named = path.name == f"{assignment}.ipynb"
    return (not (named and written), -written, not readable, not named, -path.lstat().st_mtime, path.name)


def _bytes(path):
    """A file of a submission: no link, no pipe, and not more of it than a notebook may have."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise NotReadable(f"{_shown(path)} cannot be opened ({reason})") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotReadable(f"{_shown(path)} is no file")
    with open(handle, "rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise NotReadable(f"{_shown(path)} {TOO_LARGE}")
    return data


def _shown(path):
    """A file's name as text: it may hold bytes that are none, and characters that take over a terminal."""
    name = os.fsencode(path.name).decode("utf-8", "replace")
    return "".join("\ufffd" if unicodedata.category(character) == "Cc" else character for character in name)


def _sort_out(course, handed, limits, force, forced=None):
    """The verdicts that still hold, and the submissions that are to be graded.

    Of a forced run those hold that were made since `forced`, the time in ns at which it began.
    """
    held, todo = [], []
    for one in sorted(handed, key=lambda one: one.assignment):  # one chapter after the other
        verdict = None
        if not force or (forced and _written_at(_outputs(course, one)["verdict"]) > forced):
            verdict = _still_holds(course, one, limits)
        if verdict is None:
            todo.append(one)
        else:
            held.append(verdict)
    if held and forced:
        print(f"Going on with the forced run that was stopped: {len(held)} were graded in it.", file=sys.stderr)
    return held, todo


def _begin_forced(course, arguments):
    """When a forced run began: now, or when the same one began that was stopped. In ns."""
    mark, arguments = _forced_mark(course), json.dumps(arguments)
    if not (mark.exists() and mark.read_text("utf-8") == arguments):
        mark.write_text(arguments, "utf-8")
    return _written_at(mark)


def _forced_mark(course):
    """A file that is there as long as a forced run is not through."""
    return course.folder("autograded") / ".forced"


def _written_at(path):
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _record_again(book, held):
    """Record the verdicts that this gradebook lacks: it may be another one than that of the run before."""
    recorded = {name: book.scores(name) for name in {verdict["assignment"] for verdict in held}}
    for verdict in held:
        scores = recorded[verdict["assignment"]].get(verdict["student"], {})
        new = [row["name"] for row in verdict["exercises"] if row["score"] is not None]
        if not scores or any(name not in scores or scores[name].auto is None for name in new):
            book.record(verdict["student"], verdict, verdict["submitted_at"])


def _still_holds(course, one, limits):
    """The verdict of an earlier run, if nothing that it depends on has changed."""
    outputs = _outputs(course, one)
    try:
        verdict = json.loads(outputs["verdict"].read_text("utf-8"))
        same = (
            verdict["status"] != "partly graded"
            and verdict["file"]["sha256"] == one.sha256
            and verdict["file"]["problem"] == one.problem
            and verdict["version"] == version(one.assignment)
            and verdict["seed"] == one.seed
            and verdict["isolation"] == limits.isolation
            and verdict["limits"] == limits.recorded
            and verdict["submitted_at"] == _timestamp(one)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return verdict if same and all(path.exists() for path in outputs.values()) else None


# ------------------------------------------------------------------------------------------ spreading


def _spreader(count, workers, scheduler):
    if count == 0 or (scheduler is None and (workers == 1 or (workers is None and count < FEW))):
        return _in_this_process

    def spread(todo, limits):
        from autograder.cluster import spread  # imports Dask

        return spread(todo, _task, limits, workers or os.cpu_count(), scheduler)

    return spread


def _in_this_process(todo, limits):
    try:
        for one in todo:
            yield one, *grade_handed(*_task(one), limits)
    finally:
        close_sandbox()


def _task(one):
    """What a worker needs of a submission: (bytes or None, problem, assignment, filename, seed, version)."""
    data, problem = None, one.problem
    if not problem:
        try:
            data = _bytes(one.path)
        except NotReadable as reason:  # it has gone since we looked
            problem = str(reason)
    return data, problem, one.assignment, _shown(one.path) if one.path else "", one.seed, version(one.assignment)


def grade_handed(data, problem, assignment, filename, seed, tests, limits):
    """Grade one submission, in whatever process: (verdict, submission, seconds)."""
    start = time.perf_counter()
    about = {"assignment": assignment, "seed": seed, "limits": limits}
    submission = None
    if problem:
        verdict = not_readable(problem, **about)
    elif tests != version(assignment):
        verdict = not_graded(f"a worker has another version of the tests ({version(assignment)}, not {tests})", **about)
    else:
        verdict, submission = grade(data, filename=filename, **about)
    return verdict, submission, time.perf_counter() - start


# ------------------------------------------------------------------------------------------ recording


def _record(course, book, one, verdict, submission, seconds):
    """Record a verdict: the gradebook first, and last the file by which the next run knows that it was done."""
    verdict = verdict | {
        "repairs": [*one.notes, *verdict["repairs"]],
        "student": one.student,
        "file": {"name": _shown(one.path) if one.path else None, "sha256": one.sha256, "problem": one.problem},
        "submitted_at": _timestamp(one),
        "graded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "retired": _retired(_outputs(course, one)["verdict"], one.assignment),
    }
    if verdict["submitted_at"] and not book.is_time(verdict["submitted_at"]):
        verdict["repairs"].append("timestamp.txt holds no time: it was not looked whether the work is late")
    penalty = book.record(one.student, verdict, verdict["submitted_at"])
    outputs = _outputs(course, one)
    released = _released(course.folder("release"), one.assignment)
    printed = {row["name"]: _printed(row) for row in verdict["exercises"] if row["status"]}
    _write(outputs["notebook"], json.dumps(restored(submission, released, printed), ensure_ascii=False))
    if verdict["submitted_at"]:
        _write(outputs["notebook"].with_name("timestamp.txt"), verdict["submitted_at"] + "\n")
    page = feedback(verdict, one.student, graded_at=verdict["graded_at"][:10], penalty=penalty, book=course.book)
    _write(outputs["feedback"], page)
    for name in NBGRADERS_OWN:  # by which `nbgrader release_feedback` finds whom a page is for
        with contextlib.suppress(NotReadable, UnicodeDecodeError):
            _write(outputs["feedback"].with_name(name), _bytes(one.folder / name).decode("utf-8")[:1000])
    _write(outputs["verdict"], json.dumps(verdict, ensure_ascii=False))
    log.info("%s %s: %s, %s of %s, %.2f s%s", one.student, one.assignment, verdict["status"], verdict["score"],
             verdict["max_score"], seconds, f" ({verdict['reason']})" if verdict["reason"] else "")  # fmt: skip
    return verdict


def _retired(path, assignment):
    """What an earlier verdict says of exercises that are no longer declared: nothing judges them again."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        earlier = json.loads(path.read_text("utf-8"))
        known = {exercise.name for exercise in exercises(assignment)} | former_names().keys()
        return [row for row in [*earlier["exercises"], *earlier.get("retired", [])] if row["name"] not in known]
    return []


def _outputs(course, one):
    autograded = course.folder("autograded") / one.student / one.assignment
    return {
        "notebook": autograded / f"{one.assignment}.ipynb",
        "verdict": autograded / "verdict.json",
        "feedback": course.folder("feedback") / one.student / one.assignment / f"{one.assignment}.html",
    }


def _released(release, assignment):
    """The exercise notebook: the course's, or else the one beside this package."""
    for folder in (release, HERE.parent / "exercises"):
        path = folder / assignment / f"{assignment}.ipynb"
        if path.exists():
            return json.loads(path.read_text("utf-8"))
    raise CommandError(f"there is no exercise notebook {path}: run make exercises")


def _printed(row):
    """What stands under an exercise's check in the graded notebook."""
    lines = [f"{row['name']}: {row['status']}, {row['score']:g} of {row['max_score']:g} points"]
    lines += [failure["message"] for failure in told_once(row["failures"])]
    return "\n\n".join(lines) + "\n"


def _write(path, text):
    """Write a file whole or not at all; nbgrader leaves read-only ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, "utf-8")
    os.replace(beside, path)


def _timestamp(one):
    """When it was handed in, by the `timestamp.txt` that nbgrader's collect leaves, or None."""
    with contextlib.suppress(NotReadable, UnicodeDecodeError):
        return _bytes(one.folder / "timestamp.txt").decode("utf-8")[:100].strip() or None
    return None


@contextlib.contextmanager
def only_writer(course):
    """Keep a second run off the same course."""
    course.folder("autograded").mkdir(parents=True, exist_ok=True)
    with open(course.folder("autograded") / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandError("another run is grading this course: wait for it, or end it") from None
        yield


@contextlib.contextmanager
def _logging(course):
    """Keep a log that a teacher can send on: `autograded/grading.log`."""
    handler = logging.FileHandler(course.folder("autograded") / "grading.log", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    except BaseException as error:
        log.error("%s: %s", type(error).__name__, error)
        raise
    finally:
        log.removeHandler(handler)
        handler.close()
