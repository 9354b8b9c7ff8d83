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
from autograder.judging.exercise import moved_from, names
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
    handed_in = find(classroom, submitted or classroom.folder("submitted"), assignment, student, seed)
    lost, handed_in = _without_assignment(handed_in, limits)
    assignments = sorted({handed.assignment for handed in handed_in})
    with only_writer(classroom), logging_to(classroom), contextlib.ExitStack() as stack:
        # nbgrader takes seconds to load: that happens while the first submission is graded.
        opening = stack.enter_context(ThreadPoolExecutor(1)).submit(open_gradebook, classroom, url, assignments)
        forced = begin_forced(classroom, [url, assignment, student, str(submitted), seed]) if force else None
        held, todo = sort_out(classroom, handed_in, limits, force, forced)
        log.info("%d submissions, %d to be graded, version %s", len(handed_in), len(todo),
                 {name: version(name) for name in assignments})  # fmt: skip
        for verdict in lost:
            log.warning("%s: %s (%s)", verdict["student"], verdict["status"], verdict["reason"])
        results = stack.enter_context(contextlib.closing(_graded(todo, limits, workers, scheduler)))
        verdicts, recorder = [], None
        try:
            for handed, verdict, submission, seconds in results:
                recorder = recorder or Recorder(classroom, stack.enter_context(opening.result()), limits, feedback)
                verdicts.append(recorder.record(handed, verdict, submission, seconds) | {"fresh": True})
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
    handed_in = find(classroom, submitted or classroom.folder("submitted"), assignment, student, seed)
    lost, handed_in = _without_assignment(handed_in, limits)
    held, todo = sort_out(classroom, handed_in, limits, force)
    with contextlib.closing(_graded(todo, limits, workers, scheduler)) as results:
        verdicts = [verdict | {"student": handed.student, "fresh": True} for handed, verdict, *_ in results]
    verdicts = _in_order([*verdicts, *(verdict | {"fresh": False} for verdict in held)])
    return _in_order([*lost, *verdicts]), _changes(classroom, url, verdicts)


def _graded(todo, limits, workers, scheduler):
    """What the spreader gives, under a bar of progress; first those in which there is nothing to run."""
    bare = [handed for handed in todo if handed.problem or handed.fault]
    whole = [handed for handed in todo if not (handed.problem or handed.fault)]
    results = _spreader(len(whole), workers, scheduler)(whole, limits)
    unread = ((handed, _unread(handed, limits), None, 0.0) for handed in bare)
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


def _without_assignment(handed_in, limits):
    """The verdicts on students whose folder cannot be looked into, and the submissions that were found."""
    lost = [handed for handed in handed_in if handed.assignment is None]
    verdicts = [_unread(handed, limits) | {"student": clean.name(handed.folder), "fresh": True} for handed in lost]
    return verdicts, [handed for handed in handed_in if handed.assignment is not None]


def _unread(handed, limits):
    """The verdict where there is no notebook to grade."""
    about = {"assignment": handed.assignment, "seed": handed.seed, "limits": limits}
    return not_graded(handed.fault, **about) if handed.fault else not_readable(handed.problem, **about)


def _changes(classroom, url, verdicts):
    from autograder.grading.gradebook import Gradebook, NoGradebook, Score  # imports nbgrader

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
        left = moved_from(verdict["assignment"]).keys() - rows.keys() if rows else ()
        scores |= {name: Score(None, None, row["max_score"]) for name, row in rows.items() if name not in scores}
        for name in sorted((names().keys() & scores.keys()).difference(left)):  # of the others the score stays
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
        for handed in todo:
            try:
                task = _task(handed)
            except Exception as error:
                yield handed, _unread(replace(handed, fault=fault("reading it", error)), limits), None, 0.0
            else:
                yield handed, *grade_task(task, limits)
    finally:
        close_sandbox()


def _task(handed):
    """What a worker needs of a submission."""
    data, problem = None, ""
    try:
        data = file_bytes(handed.path, handed.folder)
    except NotReadable as reason:  # it has gone since we looked
        problem = str(reason)
    name = clean.name(handed.path)
    tests = version(handed.assignment)
    return Task(handed.assignment, handed.seed, data, handed.sha256, name, tests, handed.moved, problem)
