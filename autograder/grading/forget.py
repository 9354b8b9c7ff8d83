"""Removing a student's data: files, gradebook, lines of the log."""

import re
import subprocess

from autograder import clean
from autograder.grading.classroom import LOG, CommandError
from autograder.grading.writer import only_writer


def forget(classroom, url, student, *, really):
    """Remove what a class keeps of a student: files, gradebook, lines of the log.

    Parameters
    ----------
    classroom : Classroom
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
    text = student.encode("utf-8", "replace").decode()  # without bytes that are none
    if student != text.strip() or student in (".", "..") or "/" in student or "\0" in student:
        raise CommandError(f"{student!r} is no student's id")
    with only_writer(classroom):
        found = [
            *_rows(classroom, url, student, really=really),
            *_files(classroom, student, really=really),
            *_log_lines(classroom, student, really=really),
        ]
    if not found:
        raise CommandError(f"there is nothing of {student} in {classroom.root} or in the gradebook")
    return found


def _files(classroom, student, *, really):
    for step in ("submitted", "autograded", "feedback"):
        folder = classroom.folder(step) / student
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


def _log_lines(classroom, student, *, really):
    path = classroom.folder("autograded") / LOG
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


def _rows(classroom, url, student, *, really):
    from autograder.grading.gradebook import Gradebook, NoGradebook  # imports nbgrader

    try:
        with Gradebook(classroom, url, make=False) as book:
            count = book.submissions_of(student)
            if count is not None:
                yield f"the gradebook: the student and {count} submission{'s' * (count != 1)}"
                if really:
                    book.forget(student)
    except NoGradebook:
        return
