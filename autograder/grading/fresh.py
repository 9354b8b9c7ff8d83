"""What an earlier run found that still holds, so that a run grades only what is new."""

import json
import time

from autograder import clean
from autograder.grading.find import timestamp
from autograder.grading.grade import version
from autograder.grading.record import outputs
from autograder.judging.exercise import moved_from


def sort_out(classroom, handed_in, limits, force, forced=None):
    """The verdicts that still hold, and the submissions that are to be graded.

    Of a forced run those hold that were made since `forced`, the time in ns at which it began; not those that a wrong
    clock dated into the future.
    """
    held, todo, now = [], [], time.time_ns()
    for handed in sorted(handed_in, key=lambda handed: handed.assignment):  # one chapter after the other
        verdict = None
        if not force or (forced and forced < _written_at(outputs(classroom, handed)["verdict"]) <= now):
            verdict = _still_holds(classroom, handed, limits)
        if verdict is None:
            todo.append(handed)
        else:
            held.append(verdict)
    if held and forced:
        clean.say(f"Going on with the forced run that was stopped: {len(held)} were graded in it.", error=True)
    return held, todo


def begin_forced(classroom, arguments):
    """When a forced run began: now, or when the same one began that was stopped. In ns."""
    mark, arguments = forced_mark(classroom), json.dumps(arguments)
    if not (mark.exists() and mark.read_text("utf-8") == arguments):
        mark.write_text(arguments, "utf-8")
    return _written_at(mark)


def forced_mark(classroom):
    """A file that is there as long as a forced run is not through."""
    return classroom.folder("autograded") / ".forced"


def _written_at(path):
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _still_holds(classroom, handed, limits):
    """The verdict of an earlier run, if nothing that it depends on has changed."""
    files = outputs(classroom, handed)
    try:
        verdict = json.loads(files["verdict"].read_text("utf-8"))
        same = (
            verdict["status"] != "partly graded"
            and (verdict["student"], verdict["assignment"]) == (handed.student, handed.assignment)
            and verdict["file"]["sha256"] == handed.sha256
            and verdict["file"]["problem"] == handed.problem
            and verdict["version"] == version(handed.assignment)
            and (
                handed.moved or not moved_from(handed.assignment).keys() & {row["name"] for row in verdict["exercises"]}
            )
            and verdict["seed"] == handed.seed
            and verdict["isolation"] == limits.isolation
            and verdict["limits"] == limits.recorded
            and verdict["submitted_at"] == timestamp(handed)
        )
    except Exception:  # there is none, or it is damaged
        return None
    return verdict if same and all(path.exists() for path in files.values()) else None
