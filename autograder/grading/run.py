"""Grading a class: finding what is new, spreading it over processes, recording it in one."""

import contextlib
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain

from tqdm import tqdm

from autograder import clean
from autograder.grading.classroom import CommandError
from autograder.grading.find import file_bytes, find
from autograder.grading.fresh import begin_forced, forced_mark, sort_out
from autograder.grading.grade import (
    Task,
    close_sandbox,
    fault,
    grade_task,
    not_graded,
    not_readable,
    prove_sandbox,
    version,
)
from autograder.grading.record import Recorder, open_gradebook
from autograder.grading.writer import log, logging_to, only_writer
from autograder.judging.exercise import names
from autograder.notebooks.read import NotReadable
from autograder.sandbox.host import SandboxUnavailable

FEW = 10  # submissions for which one worker is enough


def grade_class(classroom, url, *, feedback, limits, seed, assignment=None, student=None, submitted=None, workers=None,
                scheduler=None, force=False):  # fmt: skip
    """Grade what is new in a class and record it.

    Parameters
    ----------
    classroom : Classroom
    url : str
        The gradebook's.
    feedback : function
        What writes a student's page, as `Recorder` has it.
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
    handed = find(classroom, submitted or classroom.folder("submitted"), assignment, student, seed)
    lost, handed = _without_assignment(handed, limits)
    assignments = sorted({one.assignment for one in handed})
    with only_writer(classroom), logging_to(classroom), contextlib.ExitStack() as stack:
        # nbgrader takes seconds to load: that happens while the first submission is graded.
        opening = stack.enter_context(ThreadPoolExecutor(1)).submit(open_gradebook, classroom, url, assignments)
        forced = begin_forced(classroom, [url, assignment, student, str(submitted), seed]) if force else None
        held, todo = sort_out(classroom, handed, limits, force, forced)
        log.info("%d submissions, %d to be graded, version %s", len(handed), len(todo),
                 {name: version(name) for name in assignments})  # fmt: skip
        for verdict in lost:
            log.warning("%s: %s (%s)", verdict["student"], verdict["status"], verdict["reason"])
        results = stack.enter_context(contextlib.closing(_graded(todo, limits, workers, scheduler)))
        verdicts, recorder = [], None
        try:
            for one, verdict, submission, seconds in results:
                recorder = recorder or Recorder(classroom, stack.enter_context(opening.result()), limits, feedback)
                verdicts.append(recorder.record(one, verdict, submission, seconds) | {"fresh": True})
        except KeyboardInterrupt:
            raise CommandError(
                f"stopped: {len(verdicts)} of {len(todo)} graded and recorded; the same command goes on from there"
            ) from None
        if len(verdicts) != len(todo):
            raise CommandError(f"{len(todo) - len(verdicts)} submissions got no verdict: grade again")
        recorder = recorder or Recorder(classroom, stack.enter_context(opening.result()), limits, feedback)
        held = recorder.record_again(held)
        forced_mark(classroom).unlink(missing_ok=True)
    return _in_order([*lost, *verdicts, *(verdict | {"fresh": False} for verdict in held)])


def rehearse(classroom, url, *, limits, seed, assignment=None, student=None, submitted=None, workers=None,
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
    handed = find(classroom, submitted or classroom.folder("submitted"), assignment, student, seed)
    lost, handed = _without_assignment(handed, limits)
    held, todo = sort_out(classroom, handed, limits, force)
    with contextlib.closing(_graded(todo, limits, workers, scheduler)) as results:
        verdicts = [verdict | {"student": one.student, "fresh": True} for one, verdict, *_ in results]
    verdicts = _in_order([*verdicts, *(verdict | {"fresh": False} for verdict in held)])
    return _in_order([*lost, *verdicts]), _changes(classroom, url, verdicts)


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


def _changes(classroom, url, verdicts):
    from autograder.grading.gradebook import Gradebook, NoGradebook  # imports nbgrader

    recorded = {}
    with contextlib.suppress(NoGradebook), Gradebook(classroom, url, make=False) as book:
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


def _spreader(count, workers, scheduler):
    if scheduler:
        from autograder.grading.cluster import spread  # imports Dask

        return lambda todo, limits: spread(todo, _task, limits, scheduler)
    if count == 0 or workers == 1:
        return _in_this_process

    from autograder.grading.workers import spread

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
        data = file_bytes(one.path, one.folder)
    except NotReadable as reason:  # it has gone since we looked
        problem = str(reason)
    name = clean.name(one.path)
    return Task(one.assignment, one.seed, data, one.sha256, name, version(one.assignment), problem)
