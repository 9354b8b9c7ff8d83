"""nbgrader's gradebook: the system of record. One process writes it."""

import contextlib
import os
import sys

from autograder.course import CommandError

# jsonschema loads this one if it finds it: two seconds, for a check of addresses that no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)
# nbgrader calls `alembic` by name; this finds it where the environment is not activated.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath)

import nbformat  # noqa: E402
from nbgrader import api, preprocessors  # noqa: E402
from nbgrader.utils import parse_utc  # noqa: E402
from sqlalchemy import select  # noqa: E402
from sqlalchemy.exc import SQLAlchemyError  # noqa: E402


class Gradebook:
    """A course's gradebook, made when there is none.

    Parameters
    ----------
    course : Course
    url : str
        SQLite or PostgreSQL, as SQLAlchemy reads it.
    make : bool
        Make it when there is none.

    Raises
    ------
    CommandError
        It cannot be opened.
    """

    def __init__(self, course, url, *, make=True):
        self.course = course
        if not make and url.startswith("sqlite:///") and not os.path.exists(url.removeprefix("sqlite:///")):
            raise CommandError(f"there is no gradebook {url} yet: grade first")
        if url.startswith(("postgresql://", "postgres://")):  # the driver that is installed
            url = "postgresql+psycopg://" + url.partition("://")[2]
        self.url = url
        try:
            self.book = api.Gradebook(url, course.course_id)
        except (SQLAlchemyError, ImportError, ValueError) as error:
            raise CommandError(f"the gradebook cannot be opened: {_one_line(error)}") from error
        self.db = self.book.db
        self.cells = {}  # (assignment, kind) -> {name of the cell: the cell}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.book.close()

    # ------------------------------------------------------------------------------------ assignments

    def ensure(self, assignment, points):
        """Make an assignment when there is none, as nbgrader's `generate_assignment` records it.

        Parameters
        ----------
        assignment : str
            The chapter.
        points : dict
            Name of an exercise -> its points.

        Raises
        ------
        CommandError
            The gradebook's assignment is not this one.
        """
        self.book.update_or_create_assignment(assignment)
        try:
            notebook = self.book.find_notebook(assignment, assignment)
        except api.MissingEntry:
            self._save_cells(assignment)
            notebook = self.book.find_notebook(assignment, assignment)
        self.cells[assignment] = {cell.name: (cell.id, cell.max_score) for cell in notebook.grade_cells}
        missing = [name for name in points if f"check_{name}" not in self.cells[assignment]]
        if missing:
            raise CommandError(
                f"the gradebook's assignment {assignment} has no check of {', '.join(missing)}: "
                f"run nbgrader generate_assignment {assignment} --force, or begin a new gradebook"
            )

    def _save_cells(self, assignment):
        source = self.course.folder("source") / assignment / f"{assignment}.ipynb"
        if source.exists():
            notebook = nbformat.read(source, as_version=4)
        else:
            from autograder.generate import source_notebook

            notebook = source_notebook(assignment)
        resources = {"nbgrader": {"notebook": assignment, "assignment": assignment, "db_url": self.url}}
        resources["metadata"] = {"name": assignment, "path": str(source.parent)}
        for name in ("LockCells", "ClearSolutions", "ClearOutput", "ComputeChecksums", "SaveCells"):
            step = getattr(preprocessors, name)(config=self.course.config)
            notebook, resources = step.preprocess(notebook, resources)
        self.db.remove()  # nbgrader wrote through a connection of its own

    # ------------------------------------------------------------------------------------ scores

    def scores(self, assignment):
        """What is recorded: student -> name of the check cell -> the autograder's score, or None."""
        rows = self.db.execute(
            select(api.Student.id, api.GradeCell.name, api.Grade.auto_score)
            .join(api.SubmittedAssignment, api.SubmittedAssignment.student_id == api.Student.id)
            .join(api.Assignment, api.Assignment.id == api.SubmittedAssignment.assignment_id)
            .join(api.SubmittedNotebook, api.SubmittedNotebook.assignment_id == api.SubmittedAssignment.id)
            .join(api.Grade, api.Grade.notebook_id == api.SubmittedNotebook.id)
            .join(api.GradeCell, api.GradeCell.id == api.Grade.cell_id)
            .where(api.Assignment.name == assignment)
        )
        found = {}
        for student, cell, score in rows:
            found.setdefault(student, {})[cell] = score
        return found

    def totals(self, assignment):
        """What each student has for an assignment, a person's changes included and lateness taken off."""
        try:
            submissions = self.book.find_assignment(assignment).submissions
        except api.MissingEntry:
            return {}
        return {one.student_id: max(0.0, one.score - one.late_submission_penalty) for one in submissions}

    def record(self, student, verdict, timestamp=None):
        """Record a verdict, all of it or nothing.

        Scores and comments that a person gave stay; as with nbgrader, a cell with a manual score is marked for
        another look. A cell without a verdict has no score and waits for a person: it is no zero.

        Parameters
        ----------
        student : str
        verdict : dict
        timestamp : str, optional
            When it was handed in, as `timestamp.txt` says.

        Returns
        -------
        float
            The penalty for lateness.
        """
        assignment = verdict["assignment"]
        rows = {row["name"]: row for row in verdict["exercises"]}
        try:
            submission = self._submission(assignment, student)
            if timestamp:
                submission.timestamp = parse_utc(timestamp)
            notebook = next(one for one in submission.notebooks if one.name == assignment)
            for grade in notebook.grades:
                row = rows.get(grade.name.removeprefix("check_"))
                grade.auto_score = row and _points(row, self.cells[assignment][grade.name][1])
                grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
            for comment in notebook.comments:
                comment.auto_comment = _comment(rows.get(comment.name), verdict)
            self.db.flush()
            self._penalise(submission, notebook, student)
            penalty = notebook.late_submission_penalty
            self.db.commit()
        except Exception:
            self.db.rollback()
            raise
        return penalty or 0.0

    def _submission(self, assignment, student):
        """The submission's entry with a place for each grade and comment, as nbgrader makes it."""
        with contextlib.suppress(api.MissingEntry):
            return self.book.find_submission(assignment, student)
        if self.db.get(api.Student, student) is None:
            self.db.add(api.Student(id=student))
        master = self.book.find_assignment(assignment)
        submission = api.SubmittedAssignment(assignment_id=master.id, student_id=student)
        for notebook in master.notebooks:
            theirs = api.SubmittedNotebook(notebook_id=notebook.id, assignment=submission)
            for cell in (*notebook.grade_cells, *notebook.task_cells):
                api.Grade(cell_id=cell.id, notebook=theirs)
            for cell in (*notebook.solution_cells, *notebook.task_cells):
                api.Comment(cell_id=cell.id, notebook=theirs)
        self.db.add(submission)
        self.db.flush()
        return submission

    def _penalise(self, submission, notebook, student):
        """Take off for lateness what nbgrader's plugin of this course says."""
        notebook.late_submission_penalty = None
        if submission.total_seconds_late > 0:
            late = preprocessors.AssignLatePenalties(config=self.course.config)
            late.init_plugin()
            score = self.db.scalar(select(api.SubmittedNotebook.score).where(api.SubmittedNotebook.id == notebook.id))
            penalty = late.plugin_inst.late_submission_penalty(student, score, submission.total_seconds_late)
            if penalty is not None:
                notebook.late_submission_penalty = min(max(penalty, 0), score)


def _points(row, max_score):
    """An exercise's score in the points that the gradebook gives it; None where it has no verdict."""
    if row["score"] is None or row["max_score"] == max_score:
        return row["score"]
    return row["score"] / row["max_score"] * max_score


def _comment(row, verdict):
    if row is None or row["status"] is None:
        return verdict["reason"]
    if row["status"] == "not written":
        return "No response."  # nbgrader's own words
    return "\n\n".join(failure["message"] for failure in row["failures"]) or None


def _one_line(error):
    return str(error).strip().splitlines()[0]
