"""Recording: the gradebook, the graded notebook, the page of feedback and the verdict of one submission."""

import contextlib
import errno
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from autograder import clean
from autograder.course import ROOT
from autograder.grading.classroom import CommandError
from autograder.grading.find import NBGRADERS_OWN, file_bytes, timestamp
from autograder.grading.grade import fault, not_graded, told_once
from autograder.grading.writer import log
from autograder.judging.exercise import exercises, former_names, moved_from
from autograder.notebooks.read import NotReadable
from autograder.notebooks.restore import restored

ABOUT_ALL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # a disk that takes nothing takes it from nobody


@dataclass
class Recorder:
    """Records the submissions of one run.

    Attributes
    ----------
    classroom : Classroom
    book : Gradebook
    limits : Limits
    feedback : function
        `feedback(verdict, student, *, graded_at, penalty, book)`, a student's page as text.
    """

    classroom: Any
    book: Any
    limits: Any
    feedback: Any

    def record(self, handed, verdict, submission, seconds):
        """Record a verdict, or else that it could not be recorded; what is about all submissions is raised."""
        try:
            return self._write_down(handed, verdict, submission, seconds)
        except Exception as error:
            if self._is_about_all(error):
                raise
            about = {"assignment": handed.assignment, "seed": handed.seed, "limits": self.limits}
            bare = not_graded(fault("recording it", error), **about)
        try:
            return self._write_down(handed, bare, None, seconds)
        except Exception as error:
            if self._is_about_all(error):
                raise
            log.error("%s %s: %s, and neither could that be recorded (%s)", handed.student, handed.assignment,
                      bare["reason"], fault("it", error))  # fmt: skip
        return bare | {"student": handed.student}

    def record_again(self, held):
        """Record the verdicts that this gradebook lacks: it may be another one than that of the run before."""
        recorded = {name: self.book.scores(name) for name in {verdict["assignment"] for verdict in held}}
        told = []
        for verdict in held:
            try:
                scores = recorded[verdict["assignment"]].get(verdict["student"], {})
                new = [row["name"] for row in verdict["exercises"] if row["score"] is not None]
                if not scores or any(name not in scores or scores[name].auto is None for name in new):
                    self.book.record(verdict["student"], verdict, verdict["submitted_at"])
            except Exception as error:
                if self._is_about_all(error):
                    raise
                verdict = verdict | {"status": "partly graded", "reason": fault("recording it again", error)}
                log.error("%s %s: %s", verdict["student"], verdict["assignment"], verdict["reason"])
            told.append(verdict)
        return told

    def _is_about_all(self, error):
        about_all = isinstance(error, OSError) and error.errno in ABOUT_ALL
        return about_all or isinstance(error, CommandError) or self.book.is_broken_by(error)

    def _write_down(self, handed, verdict, submission, seconds):
        """The gradebook first, and last the file by which the next run knows that it was done."""
        files = outputs(self.classroom, handed)
        verdict = verdict | {
            "repairs": [*map(clean.line, handed.notes), *verdict["repairs"]],
            "student": handed.student,
            "file": {
                "name": clean.name(handed.path) if handed.path else None,
                "sha256": handed.sha256,
                "problem": handed.problem,
            },
            "submitted_at": timestamp(handed),
            "graded_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(seconds, 3),
            "retired": _retired(files["verdict"], verdict),
        }
        if verdict["submitted_at"] and not self.book.is_time(verdict["submitted_at"]):
            verdict["repairs"].append("timestamp.txt holds no time: it was not looked whether the work is late")
        penalty = self.book.record(handed.student, verdict, verdict["submitted_at"])
        released = _released_with(submission, self.classroom.folder("release"), handed.assignment)
        printed = {row["name"]: _printed(row) for row in verdict["exercises"] if row["status"]}
        _write(files["notebook"], json.dumps(restored(submission, released, printed), ensure_ascii=False))
        if verdict["submitted_at"]:
            _write(files["notebook"].with_name("timestamp.txt"), verdict["submitted_at"] + "\n")
        graded_at, book = verdict["graded_at"][:10], self.classroom.book
        page = self.feedback(verdict, handed.student, graded_at=graded_at, penalty=penalty, book=book)
        _write(files["feedback"], page)
        files["feedback"].chmod(0o644)  # in a closed folder; `nbgrader release_feedback` copies it with its rights
        for name in NBGRADERS_OWN:  # by which `nbgrader release_feedback` finds whom a page is for
            with contextlib.suppress(NotReadable, UnicodeDecodeError):
                own = file_bytes(handed.folder / name, handed.folder).decode("utf-8")[:1000]
                _write(files["feedback"].with_name(name), clean.text(own))
        _write(files["verdict"], json.dumps(verdict, ensure_ascii=False))
        log.info("%s %s: %s, %s of %s, %.2f s%s", handed.student, handed.assignment, verdict["status"],
                 verdict["score"], verdict["max_score"], seconds,
                 f" ({verdict['reason']})" if verdict["reason"] else "")  # fmt: skip
        return verdict


def open_gradebook(classroom, url, assignments):
    """The gradebook, with the assignments and their exercises in it."""
    from autograder.grading.gradebook import Gradebook  # imports nbgrader

    with contextlib.ExitStack() as undo:
        book = undo.enter_context(Gradebook(classroom, url))
        for name in assignments:
            book.ensure(name, {exercise.name: exercise.points for exercise in exercises(name)})
        book.db.remove()  # the session of this thread
        undo.pop_all()
    return book


def outputs(classroom, handed):
    """The files that are written of a submission, by what they are."""
    autograded = classroom.folder("autograded") / handed.student / handed.assignment
    return {
        "notebook": autograded / f"{handed.assignment}.ipynb",
        "verdict": autograded / "verdict.json",
        "feedback": classroom.folder("feedback") / handed.student / handed.assignment / f"{handed.assignment}.html",
    }


def _retired(path, verdict):
    """What an earlier verdict says of exercises that are no longer declared, or here: nothing judges them again."""
    with contextlib.suppress(Exception):  # whatever stands there
        earlier = json.loads(path.read_text("utf-8"))
        known = {exercise.name for exercise in exercises(verdict["assignment"])} | former_names().keys()
        known |= {row["name"] for row in verdict["exercises"]} or moved_from(verdict["assignment"]).keys()
        return [row for row in [*earlier["exercises"], *earlier.get("retired", [])] if row["name"] not in known]
    return []


def _released(release, assignment):
    """The exercise notebook: the course's, or else the one beside this package."""
    for folder in (release, ROOT / "exercises"):
        path = folder / assignment / f"{assignment}.ipynb"
        if path.exists():
            return json.loads(path.read_text("utf-8"))
    raise CommandError(f"there is no exercise notebook {path}: run make exercises")


def _released_with(submission, release, assignment):
    """The exercise notebook, as a submission of another time had it: with what has moved since, or without."""
    notebook = _released(release, assignment)
    if submission is None:
        return notebook
    moved = moved_from(assignment)
    other = moved.keys() - set(submission.names)
    cells = [cell for cell in notebook["cells"] if _exercise_of(cell) not in other]
    lacking = moved.keys() - other - set(map(_exercise_of, cells))
    for chapter in sorted({moved[name] for name in lacking}):
        cells += [cell for cell in _released(release, chapter)["cells"] if _exercise_of(cell) in lacking]
    return notebook | {"cells": cells}


def _exercise_of(cell):
    """The exercise that a cell of a released notebook belongs to, by its name for nbgrader or, of a text, its id."""
    name = cell["metadata"].get("nbgrader", {}).get("grade_id") or cell.get("id", "")
    return name.removeprefix("text_").removeprefix("check_")


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
