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
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from autograder import clean
from autograder.course import LOG, CommandError
from autograder.exercise import CHAPTERS, exercises, former_names, names
from autograder.feedback import feedback, told_once
from autograder.grade import (
    HERE,
    Task,
    close_sandbox,
    fault,
    grade_task,
    not_graded,
    not_readable,
    prove_sandbox,
    version,
)
from autograder.notebook import MAX_FILE, TOO_LARGE, NotReadable, inspect, restored
from autograder.sandbox import SandboxUnavailable

FEW = 10  # submissions for which one worker is enough
MAX_ID = 128  # characters of a student's id, as nbgrader has it
MAX_NOTEBOOKS = 20  # looked at in one folder
MAX_ENTRIES = 5000  # files and folders in one submission
MAX_DEPTH = 20  # folders within one another
LOOKING = 5.0  # seconds that choosing among several notebooks may take
ABOUT_ALL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # a disk that takes nothing takes it from nobody
NBGRADERS_OWN = ("timestamp.txt", "submission_secret.txt")  # what `nbgrader collect` puts beside a notebook

log = logging.getLogger("autograder")


@dataclass(frozen=True)
class Handed:
    """What a student handed in for an assignment.

    Attributes
    ----------
    student : str
    assignment : str or None
        None where the student's own folder cannot be looked into, so that nobody knows.
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
    fault : str
        What of ours failed while it was looked for, or "".
    notes : tuple of str
        How it was chosen, where that was not plain.
    """

    student: str
    assignment: str | None
    folder: Path
    seed: int
    path: Path | None = None
    sha256: str = ""
    size: int = 0
    problem: str = ""
    fault: str = ""
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
        Processes that grade, by default as many as cores. With 1 it is done in this process.
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
    lost, handed = _without_assignment(handed, limits)
    assignments = sorted({one.assignment for one in handed})
    with only_writer(course), _logging(course), contextlib.ExitStack() as stack:
        # nbgrader takes seconds to load: that happens while the first submission is graded.
        opening = stack.enter_context(ThreadPoolExecutor(1)).submit(_open_gradebook, course, url, assignments)
        forced = _begin_forced(course, [url, assignment, student, str(submitted), seed]) if force else None
        held, todo = _sort_out(course, handed, limits, force, forced)
        log.info("%d submissions, %d to be graded, version %s", len(handed), len(todo),
                 {name: version(name) for name in assignments})  # fmt: skip
        for verdict in lost:
            log.warning("%s: %s (%s)", verdict["student"], verdict["status"], verdict["reason"])
        results = stack.enter_context(contextlib.closing(_graded(todo, limits, workers, scheduler)))
        verdicts, book = [], None
        try:
            for one, verdict, submission, seconds in results:
                book = book or stack.enter_context(opening.result())
                verdict = _record(course, book, one, verdict, submission, seconds, limits)
                verdicts.append(verdict | {"fresh": True})
        except KeyboardInterrupt:
            raise CommandError(
                f"stopped: {len(verdicts)} of {len(todo)} graded and recorded; the same command goes on from there"
            ) from None
        if len(verdicts) != len(todo):
            raise CommandError(f"{len(todo) - len(verdicts)} submissions got no verdict: grade again")
        book = book or stack.enter_context(opening.result())
        held = _record_again(course, book, held)
        _forced_mark(course).unlink(missing_ok=True)
    return _in_order([*lost, *verdicts, *(verdict | {"fresh": False} for verdict in held)])


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
    lost, handed = _without_assignment(handed, limits)
    held, todo = _sort_out(course, handed, limits, force)
    with contextlib.closing(_graded(todo, limits, workers, scheduler)) as results:
        verdicts = [verdict | {"student": one.student, "fresh": True} for one, verdict, *_ in results]
    verdicts = _in_order([*verdicts, *(verdict | {"fresh": False} for verdict in held)])
    return _in_order([*lost, *verdicts]), _changes(course, url, verdicts)


def _graded(todo, limits, workers, scheduler):
    """What the spreader gives, under a bar of progress; first those in which there is nothing to run."""
    bare = [one for one in todo if one.problem or one.fault]
    whole = [one for one in todo if not (one.problem or one.fault)]
    results = _spreader(len(whole), workers, scheduler)(whole, limits)
    unread = ((one, _unread(one, limits), None, 0.0) for one in bare)
    try:
        with _stops() as stop_if_asked:
            for result in tqdm(chain(unread, results), "grading", len(todo), disable=not todo):
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
    return sorted(verdicts, key=lambda verdict: (verdict["assignment"] or "", verdict["student"]))


def _without_assignment(handed, limits):
    """The verdicts on students whose folder cannot be looked into, and the submissions that were found."""
    lost = [one for one in handed if one.assignment is None]
    verdicts = [_unread(one, limits) | {"student": clean.name(one.folder), "fresh": True} for one in lost]
    return verdicts, [one for one in handed if one.assignment is not None]


def _unread(one, limits):
    """The verdict where there is no notebook to grade."""
    about = {"assignment": one.assignment, "seed": one.seed, "limits": limits}
    return not_graded(one.fault, **about) if one.fault else not_readable(one.problem, **about)


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
        if home.name.startswith(".") or (student and home.name != student):
            continue
        try:
            found, passed = _look(course, home, assignment, seed)
        except NotReadable as reason:
            found, passed = [_unopened(home, assignment, seed, problem=str(reason))], []
        except OSError as error:
            found, passed = [_unopened(home, assignment, seed, problem=_why(error))], []
        except Exception as error:
            found, passed = [_unopened(home, assignment, seed, fault=fault("looking into it", error))], []
        handed += found
        passed_over += passed
    if passed_over:
        clean.say("Passed over (what is graded lies in <student>/<chapter>/):",
                  *(f"  {told}" for told in passed_over), error=True)  # fmt: skip
    if not handed:
        whose = f" of {student}" if student else ""
        what = f" for {assignment}" if assignment else ""
        raise CommandError(f"no submission{whose}{what} in {submitted}")
    return handed


def _look(course, home, assignment, seed):
    """What a student handed in, and what in the folder is passed over."""
    mode = home.lstat().st_mode
    if not (stat.S_ISDIR(mode) or (stat.S_ISLNK(mode) and home.is_dir())):
        return [], []
    shown = clean.name(home)
    if home.name != shown.strip() or len(home.name) > MAX_ID or home.name == LOG:
        return [], [f"{shown}: its name cannot be a student's id; rename it"]
    if stat.S_ISLNK(mode):
        problem = "the folder is a link: put the folder itself here"
        return [_unopened(home, assignment, seed, problem=problem)], []
    entries = [entry for entry in sorted(_entries(home, MAX_ENTRIES)) if entry.name[0] != "."]
    if not entries:
        return [], [f"{shown}: the folder is empty"]
    folders = [entry for entry in entries if entry.name in CHAPTERS and entry.is_dir()]
    passed = [
        f"{shown}/{clean.name(entry)}: no chapter's folder"
        for entry in entries
        if entry not in folders and (entry.suffix.lower() == ".ipynb" or entry.is_dir())
    ]
    if len(passed) > MAX_NOTEBOOKS:
        passed[MAX_NOTEBOOKS:] = [f"{shown}: and {len(passed) - MAX_NOTEBOOKS} more"]
    seed = course.seed_for(home.name, seed)
    return [_chosen(home.name, one, seed) for one in folders if assignment in (None, one.name)], passed


def _chosen(student, folder, seed):
    """`_choose`, whatever comes of it."""
    try:
        return _choose(student, folder, seed)
    except NotReadable as reason:
        return Handed(student, folder.name, folder, seed, problem=str(reason))
    except OSError as error:
        return Handed(student, folder.name, folder, seed, problem=_why(error))
    except Exception as error:
        return Handed(student, folder.name, folder, seed, fault=fault("choosing its notebook", error))


def _unopened(home, assignment, seed, *, problem="", fault=""):
    """A student whose folder cannot be looked into."""
    return Handed(home.name, assignment, home, seed, problem=problem, fault=fault)


def _why(error):
    return f"the folder cannot be read ({error.strerror or error}): look at its permissions"


def _choose(student, folder, seed):
    """The notebook of a submission, by the rule above."""
    if folder.is_symlink():  # to the folder of another student, perhaps
        raise NotReadable("the folder is a link: hand in the notebook itself")
    found, others = _notebooks(folder)
    if not found:
        raise NotReadable(f"there is no notebook in the folder{': only ' if others else ''}{', '.join(others)}")
    notes, path = (), found[0]
    if len(found) > 1:
        end = time.monotonic() + LOOKING
        path = min(found, key=lambda path: _rank(path, folder, end))
        rest = ", ".join(clean.name(other) for other in found if other != path)
        notes = (f"several notebooks in the folder: {clean.name(path)} was read, not {rest}",)
    data = _bytes(path, folder)
    return Handed(student, folder.name, folder, seed, path, hashlib.sha256(data).hexdigest(), len(data), notes=notes)


def _notebooks(folder):
    """The notebooks of a submission, those in its own folder before those in folders below, and some other names."""
    left, found, others, count = deque([(folder, 0)]), [], [], 0
    while left and not found:
        level, left = left, deque()  # level by level
        for inside, depth in level:
            for entry in sorted(_entries(inside, MAX_ENTRIES - count)):
                count += 1
                if entry.is_dir() and not entry.is_symlink() and entry.suffix.lower() != ".ipynb":
                    if depth < MAX_DEPTH and entry.name != ".ipynb_checkpoints":
                        left.append((entry, depth + 1))
                elif entry.suffix.lower() == ".ipynb" and entry.name[0] != ".":
                    found.append(entry)
                if inside == folder and entry.name not in NBGRADERS_OWN:
                    others.append(clean.name(entry))
    found.sort(key=lambda path: (path.name != f"{folder.name}.ipynb", path))
    return found[:MAX_NOTEBOOKS], others[:5]


def _entries(folder, most):
    """What a folder holds, no link followed on the way and no more than may be there."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found.append(folder / entry.name)
            if len(found) > most:
                raise NotReadable(f"there are more than {MAX_ENTRIES:,} files in it: hand in the notebook alone")
    return found


def _rank(path, folder, end):
    """How far a notebook is from being the one that counts; those that time does not suffice for come last."""
    written, readable, looked_at = 0, False, time.monotonic() < end
    if looked_at:
        with contextlib.suppress(NotReadable):
            found = inspect(_bytes(path, folder), folder.name, clean.name(path))
            written = sum(exercise["written"] for exercise in found["exercises"])
            readable = found["status"] == "readable"
    named = path.name == f"{folder.name}.ipynb"
    return (not (named and written), -written, not readable, not named, -path.lstat().st_mtime, path.name)


def _bytes(path, folder):
    """A file of a submission: no pipe, no link on the way to it from `folder`, and no more than a notebook may have."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        for part in path.relative_to(folder).parts:
            above = handle
            try:
                handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above)
            finally:
                os.close(above)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise NotReadable(f"{clean.name(path)} cannot be opened ({reason})") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotReadable(f"{clean.name(path)} is no file")
    try:
        with open(handle, "rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise NotReadable(f"{clean.name(path)} cannot be read ({error.strerror})") from error
    if len(data) > MAX_FILE:
        raise NotReadable(f"{clean.name(path)} {TOO_LARGE}")
    return data


def _sort_out(course, handed, limits, force, forced=None):
    """The verdicts that still hold, and the submissions that are to be graded.

    Of a forced run those hold that were made since `forced`, the time in ns at which it began; not those that a wrong
    clock dated into the future.
    """
    held, todo, now = [], [], time.time_ns()
    for one in sorted(handed, key=lambda one: one.assignment):  # one chapter after the other
        verdict = None
        if not force or (forced and forced < _written_at(_outputs(course, one)["verdict"]) <= now):
            verdict = _still_holds(course, one, limits)
        if verdict is None:
            todo.append(one)
        else:
            held.append(verdict)
    if held and forced:
        clean.say(f"Going on with the forced run that was stopped: {len(held)} were graded in it.", error=True)
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


def _record_again(course, book, held):
    """Record the verdicts that this gradebook lacks: it may be another one than that of the run before."""
    recorded = {name: book.scores(name) for name in {verdict["assignment"] for verdict in held}}
    told = []
    for verdict in held:
        try:
            scores = recorded[verdict["assignment"]].get(verdict["student"], {})
            new = [row["name"] for row in verdict["exercises"] if row["score"] is not None]
            if not scores or any(name not in scores or scores[name].auto is None for name in new):
                book.record(verdict["student"], verdict, verdict["submitted_at"])
        except Exception as error:
            if _is_about_all(book, error):
                raise
            verdict = verdict | {"status": "partly graded", "reason": fault("recording it again", error)}
            log.error("%s %s: %s", verdict["student"], verdict["assignment"], verdict["reason"])
        told.append(verdict)
    return told


def _still_holds(course, one, limits):
    """The verdict of an earlier run, if nothing that it depends on has changed."""
    outputs = _outputs(course, one)
    try:
        verdict = json.loads(outputs["verdict"].read_text("utf-8"))
        same = (
            verdict["status"] != "partly graded"
            and (verdict["student"], verdict["assignment"]) == (one.student, one.assignment)
            and verdict["file"]["sha256"] == one.sha256
            and verdict["file"]["problem"] == one.problem
            and verdict["version"] == version(one.assignment)
            and verdict["seed"] == one.seed
            and verdict["isolation"] == limits.isolation
            and verdict["limits"] == limits.recorded
            and verdict["submitted_at"] == _timestamp(one)
        )
    except Exception:  # there is none, or it is damaged
        return None
    return verdict if same and all(path.exists() for path in outputs.values()) else None


# ------------------------------------------------------------------------------------------ spreading


def _spreader(count, workers, scheduler):
    if scheduler:
        from autograder.cluster import spread  # imports Dask

        return lambda todo, limits: spread(todo, _task, limits, scheduler)
    if count == 0 or workers == 1:
        return _in_this_process

    from autograder.workers import spread

    cores = workers or min(os.cpu_count(), -(-count // FEW))
    return lambda todo, limits: spread(todo, _task, limits, cores)


def _in_this_process(todo, limits):
    try:
        if todo:
            prove_sandbox(limits)
        for one in todo:
            try:
                task = _task(one)
            except Exception as error:
                yield one, _unread(replace(one, fault=fault("reading it", error)), limits), None, 0.0
            else:
                yield one, *grade_task(task, limits)
    finally:
        close_sandbox()


def _task(one):
    """What a worker needs of a submission."""
    data, problem = None, ""
    try:
        data = _bytes(one.path, one.folder)
    except NotReadable as reason:  # it has gone since we looked
        problem = str(reason)
    name = clean.name(one.path)
    return Task(one.assignment, one.seed, data, one.sha256, name, version(one.assignment), problem)


# ------------------------------------------------------------------------------------------ recording


def _record(course, book, one, verdict, submission, seconds, limits):
    """Record a verdict, or else that it could not be recorded; what is about all submissions is raised."""
    try:
        return _write_down(course, book, one, verdict, submission, seconds)
    except Exception as error:
        if _is_about_all(book, error):
            raise
        bare = not_graded(fault("recording it", error), assignment=one.assignment, seed=one.seed, limits=limits)
    try:
        return _write_down(course, book, one, bare, None, seconds)
    except Exception as error:
        if _is_about_all(book, error):
            raise
        log.error("%s %s: %s, and neither could that be recorded (%s)", one.student, one.assignment, bare["reason"],
                  fault("it", error))  # fmt: skip
    return bare | {"student": one.student}


def _is_about_all(book, error):
    about_all = isinstance(error, OSError) and error.errno in ABOUT_ALL
    return about_all or isinstance(error, CommandError) or book.is_broken_by(error)


def _write_down(course, book, one, verdict, submission, seconds):
    """Record a verdict: the gradebook first, and last the file by which the next run knows that it was done."""
    verdict = verdict | {
        "repairs": [*map(clean.line, one.notes), *verdict["repairs"]],
        "student": one.student,
        "file": {"name": clean.name(one.path) if one.path else None, "sha256": one.sha256, "problem": one.problem},
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
    outputs["feedback"].chmod(0o644)  # in a closed folder; `nbgrader release_feedback` copies it with its rights
    for name in NBGRADERS_OWN:  # by which `nbgrader release_feedback` finds whom a page is for
        with contextlib.suppress(NotReadable, UnicodeDecodeError):
            own = _bytes(one.folder / name, one.folder).decode("utf-8")[:1000]
            _write(outputs["feedback"].with_name(name), clean.text(own))
    _write(outputs["verdict"], json.dumps(verdict, ensure_ascii=False))
    log.info("%s %s: %s, %s of %s, %.2f s%s", one.student, one.assignment, verdict["status"], verdict["score"],
             verdict["max_score"], seconds, f" ({verdict['reason']})" if verdict["reason"] else "")  # fmt: skip
    return verdict


def _retired(path, assignment):
    """What an earlier verdict says of exercises that are no longer declared: nothing judges them again."""
    with contextlib.suppress(Exception):  # whatever stands there
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
    beside.unlink(missing_ok=True)  # a link would lead elsewhere
    beside.write_text(text, "utf-8")
    os.replace(beside, path)


def _timestamp(one):
    """When it was handed in, by the `timestamp.txt` that nbgrader's collect leaves, or None."""
    with contextlib.suppress(NotReadable, UnicodeDecodeError):
        return clean.line(_bytes(one.folder / "timestamp.txt", one.folder).decode("utf-8")[:100]) or None
    return None


@contextlib.contextmanager
def only_writer(course):
    """Keep a second run off the same course."""
    for folder in (course.folder("autograded"), course.folder("feedback")):
        folder.mkdir(parents=True, exist_ok=True)
        course.close(folder)
    with open(course.folder("autograded") / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandError("another run is grading this course: wait for it, or end it") from None
        yield


class _OneLine(logging.Formatter):
    def format(self, record):
        return clean.line(super().format(record))


@contextlib.contextmanager
def _logging(course):
    """Keep a log that a teacher can send on: `autograded/grading.log`."""
    handler = logging.FileHandler(course.folder("autograded") / LOG, encoding="utf-8")
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(message)s"))
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
