"""What is kept of a class's grading: who has been graded and how, and a student's data when they are to go."""

import json
import re
import subprocess

from autograder import clean
from autograder.course import LOG, CommandError
from autograder.exercise import CHAPTERS
from autograder.grade import version


def verdicts(course, assignment=None, student=None):
    """The verdicts that are kept beside the graded notebooks.

    Parameters
    ----------
    course : Course
    assignment, student : str, optional
        Only these.

    Returns
    -------
    list of dict
        As `verdict.json` holds them, each with `current`: whether the tests are still those of then. One that is
        damaged is "not readable", and the reason says so.

    Raises
    ------
    CommandError
        There is none.
    """
    found = []
    for path in sorted(course.folder("autograded").glob(f"*/{assignment or '*'}/verdict.json")):
        whose, chapter = path.parts[-3:-1]
        if student not in (None, whose) or chapter not in CHAPTERS:
            continue
        try:
            verdict = json.loads(path.read_text("utf-8"))
            _report_on(verdict)
        except Exception as error:  # whatever stands there, the others are listed
            verdict = _damaged(whose, chapter, error)
        verdict = verdict | {"student": whose, "assignment": chapter}
        found.append(verdict | {"current": verdict["version"] in (None, version(chapter))})
    if not found:
        whose = f" of {student}" if student else ""
        raise CommandError(f"nothing has been graded yet{whose}{f' for {assignment}' if assignment else ''}")
    return found


def _report_on(verdict):
    """Use all that a report uses of a verdict: what is damaged raises an error."""
    for row in (*verdict["exercises"], {"score": verdict["score"], "max_score": verdict["max_score"]}):
        if row["score"] is not None:
            assert row["score"] >= 0 and row["max_score"] > 0
    for row in verdict["exercises"]:
        texts = [row["name"], row["status"] or ""]
        for failure in row["failures"]:
            texts += [failure["subtest"], failure["message"], failure["misconception"] or ""]
        for check in row["subtests"]:
            texts += [check["name"], check["title"]]
        assert all(type(text) is str for text in texts)
    texts = [verdict["status"], verdict["reason"] or "", verdict["graded_at"], verdict["warning"] or ""]
    assert all(type(text) is str for text in [*texts, *verdict["repairs"], verdict["version"] or ""])
    assert verdict["seconds"] >= 0 and type(verdict["seed"]) is int


def _damaged(student, assignment, error):
    reason = f"its verdict.json is damaged ({type(error).__name__}): grade again"
    return {
        "status": "not readable", "reason": reason, "score": None, "max_score": None, "exercises": [], "repairs": [],
        "seconds": 0.0, "seed": "–", "version": None, "graded_at": "–", "warning": None,
    }  # fmt: skip


def forget(course, url, student, *, really):
    """Remove what a course keeps of a student: files, gradebook, lines of the log.

    Parameters
    ----------
    course : Course
    url : str
        The gradebook's.
    student : str
    really : bool
        Remove it; else it is only said what would be.

    Returns
    -------
    list of str
        What was found, in words.

    Raises
    ------
    CommandError
        There is nothing of that student, or it is no student's id.
    """
    if student != student.strip() or student in (".", "..") or "/" in student or "\0" in student:
        raise CommandError(f"{student!r} is no student's id")
    from autograder.classroom import only_writer  # imports what grading needs

    with only_writer(course):
        found = [
            *_rows(course, url, student, really=really),
            *_files(course, student, really=really),
            *_log_lines(course, student, really=really),
        ]
    if not found:
        raise CommandError(f"there is nothing of {student} in {course.root} or in the gradebook")
    return found


def _files(course, student, *, really):
    for step in ("submitted", "autograded", "feedback"):
        folder = course.folder(step) / student
        if folder.is_symlink() or folder.is_dir():
            files = 1 if folder.is_symlink() else len(_listed("find", folder, "-type", "f", "-printf", "."))
            yield f"{folder}: {files} file{'s' * (files != 1)}"
            if really:
                _listed("rm", "-rf", "--", folder)


def _listed(*command):
    """What a program says that goes through folders: Python's own ways end in a thousand folders within one another."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise CommandError(clean.line(done.stderr)[:300])
    return done.stdout


def _log_lines(course, student, *, really):
    path = course.folder("autograded") / LOG
    if not path.exists():
        return
    lines = path.read_text("utf-8", errors="replace").splitlines(keepends=True)
    theirs = re.compile(rf"\S+ \S+ [A-Z]+ {re.escape(student)} \w+: ")
    left = [line for line in lines if not theirs.match(line)]
    if len(left) < len(lines):
        count = len(lines) - len(left)
        yield f"{path}: {count} line{'s' * (count != 1)}"
        if really:
            path.write_text("".join(left), "utf-8")


def _rows(course, url, student, *, really):
    from autograder.gradebook import Gradebook, NoGradebook  # imports nbgrader

    try:
        with Gradebook(course, url, make=False) as book:
            count = book.submissions_of(student)
            if count is not None:
                yield f"the gradebook: the student and {count} submission{'s' * (count != 1)}"
                if really:
                    book.forget(student)
    except NoGradebook:
        return
