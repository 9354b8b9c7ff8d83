"""The scores as CSV, for nbgrader's habits, Canvas or Moodle."""

import csv
import io

from autograder import clean
from autograder.grading.classroom import CommandError
from autograder.grading.gradebook import Gradebook

NBGRADER = ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email")
NBGRADER += ("raw_score", "late_submission_penalty", "score", "max_score")


def export(classroom, url, form, assignment=None):
    """The scores of a class as CSV.

    What has no score yet (a notebook that could not be read, a student who handed in nothing) is an empty field,
    which Canvas and Moodle leave alone; only nbgrader's own form has a zero where nothing was handed in.

    Parameters
    ----------
    classroom : Classroom
    url : str
        The gradebook's.
    form : str
        "nbgrader", "canvas" or "moodle".
    assignment : str, optional
        Only this one.

    Returns
    -------
    str
    """
    with Gradebook(classroom, url, make=False) as book:
        assignments = [one for one in book.book.assignments if assignment in (None, one.name)]
        if not assignments:
            raise CommandError(
                f"the gradebook has no assignment{f' {assignment}' if assignment else ''} yet: grade first"
            )
        students = sorted(book.book.students, key=lambda student: student.id)
        scores = {
            assignment.name: {s.student_id: _score(s) for s in assignment.submissions} for assignment in assignments
        }
        make = {"nbgrader": _nbgrader, "canvas": _canvas, "moodle": _moodle}[form]
        rows = make(assignments, students, scores)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[clean.cell(value) for value in row] for row in rows])
    return text.getvalue()


def _score(submission):
    """(score, penalty, timestamp); the score is None where neither a person nor the grader gave one."""
    try:
        return _scored(submission)
    except Exception as error:  # the others' scores are exported
        clean.say(f"{submission.student_id} is left out: {clean.line(error)[:300]}", error=True)
        return None, 0.0, None


def _scored(submission):
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    given = any(grade.auto_score is not None or grade.manual_score is not None for grade in grades)
    return submission.score if given else None, submission.late_submission_penalty, submission.timestamp


def _net(score):
    points, penalty, _ = score
    return "" if points is None else round(max(0.0, points - penalty), 4)


def _nbgrader(assignments, students, scores):
    yield NBGRADER
    for assignment in assignments:
        for student in students:
            score = scores[assignment.name].get(student.id, (0.0, 0.0, None))
            points, penalty, timestamp = score
            person = (student.id, student.last_name, student.first_name, student.email)
            yield (
                assignment.name,
                assignment.duedate,
                timestamp,
                *person,
                points,
                penalty,
                _net(score),
                assignment.max_score,
            )


def _canvas(assignments, students, scores):
    """The form of Canvas' gradebook import: a row of points possible, then the students by their login."""
    yield ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", *(assignment.name for assignment in assignments))
    yield ("Points Possible", "", "", "", "", *(assignment.max_score for assignment in assignments))
    for student in students:
        yield (_full_name(student), "", "", student.id, "", *_nets(student, assignments, scores))


def _moodle(assignments, students, scores):
    """For Moodle's grade import, which maps columns by their titles: the user by name, each column a grade item."""
    yield ("username", "firstname", "lastname", "email", *(assignment.name for assignment in assignments))
    for student in students:
        person = (student.id, student.first_name, student.last_name, student.email)
        yield (*person, *_nets(student, assignments, scores))


def _nets(student, assignments, scores):
    return [_net(scores[assignment.name].get(student.id, (None, 0.0, None))) for assignment in assignments]


def _full_name(student):
    names = (student.last_name, student.first_name)
    return ", ".join(name for name in names if name) or student.id
