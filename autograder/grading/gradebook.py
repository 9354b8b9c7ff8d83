"""nbgrader's gradebook: the system of record. One process writes it."""

import os
from dataclasses import dataclass
from pathlib import Path

import autograder.no_rfc3987  # noqa: F401

# isort: split
import nbformat
from alembic.script import ScriptDirectory
from nbgrader import api, preprocessors
from nbgrader.dbutil import ALEMBIC_DIR
from nbgrader.utils import parse_utc
from sqlalchemy import Boolean, bindparam, case, delete, insert, select, update
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError

from autograder.grading.classroom import CommandError
from autograder.judging.exercise import CHAPTERS, former_names, moved_from, names

# nbgrader asks for it in a process of its own, which loads nbgrader again (4 s) and wants `alembic` on the PATH.
api.get_alembic_version = ScriptDirectory(ALEMBIC_DIR).get_current_head


class NoGradebook(CommandError):
    """There is none yet."""


class Gradebook:
    """A class's gradebook, made when there is none.

    Parameters
    ----------
    classroom : Classroom
    url : str
        SQLite or PostgreSQL, as SQLAlchemy reads it.
    make : bool
        Make it when there is none.

    Raises
    ------
    CommandError
        It cannot be opened.
    """

    def __init__(self, classroom, url, *, make=True):
        self.classroom = classroom
        if not make and url.startswith("sqlite:///") and not os.path.exists(url.removeprefix("sqlite:///")):
            raise NoGradebook(f"there is no gradebook {url} yet: grade first")
        if url.startswith(("postgresql://", "postgres://")):  # the driver that is installed
            url = "postgresql+psycopg://" + url.partition("://")[2]
        self.url = url
        try:
            self.book = api.Gradebook(url, classroom.course_id)
        except (SQLAlchemyError, ImportError, ValueError) as error:
            raise CommandError(f"the gradebook cannot be opened: {_one_line(error)}") from error
        if url.startswith("sqlite:///"):
            classroom.close(Path(url.removeprefix("sqlite:///")))
        self.db = self.book.db
        self.assignments = {}  # name -> _Assignment, once `ensure` has looked it up

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.book.close()
        if isinstance(error, SQLAlchemyError):  # a full disk, a file that is read-only, a connection that broke
            raise CommandError(f"the gradebook failed: {_one_line(error)}") from error

    # ------------------------------------------------------------------------------------ assignments

    def ensure(self, assignment, points):
        """Make an assignment when there is none, as nbgrader's `generate_assignment` records it.

        An exercise that the gradebook has under a former name is renamed in it: its grades and comments stay.
        One that is no longer declared stays as it is. One that was declared after the gradebook was begun is added,
        also to what was handed in before, where it has no score until that is graded again.

        Parameters
        ----------
        assignment : str
            The chapter.
        points : dict
            Name of an exercise -> its points.
        """
        self.book.update_or_create_assignment(assignment)
        try:
            notebook = self.book.find_notebook(assignment, assignment)
        except api.MissingEntry:
            self._save_cells(assignment)
            notebook = self.book.find_notebook(assignment, assignment)
        self._rename(notebook)
        found = self._look_up(notebook, points)
        added = {name for name in points if f"check_{name}" not in found.points}
        if added:
            self._make_cells(assignment, self._prepared(assignment, own=False), added)
            found = self._look_up(self.book.find_notebook(assignment, assignment), points)
            for _, handed_in in found.submissions.values():
                self._make_places(found, handed_in, added)
            self.db.commit()
        self.assignments[assignment] = found

    def _look_up(self, notebook, points):
        found = _Assignment(notebook, points, moved_from(notebook.name))
        rows = self.db.execute(
            select(api.SubmittedAssignment.student_id, api.SubmittedAssignment.id, api.SubmittedNotebook.id)
            .join(api.SubmittedNotebook, api.SubmittedNotebook.assignment_id == api.SubmittedAssignment.id)
            .where(api.SubmittedNotebook.notebook_id == found.notebook)
        )
        found.submissions = {student: ids for student, *ids in rows}
        return found

    def _rename(self, notebook):
        cells = [*notebook.grade_cells, *notebook.solution_cells, *notebook.source_cells]
        known = {cell.name for cell in cells}
        for old, new in former_names().items():
            for cell in cells:
                if cell.name in (old, f"check_{old}") and not {new, f"check_{new}"} & known:
                    cell.name = cell.name.replace(old, new)
        self.db.commit()

    def _save_cells(self, assignment):
        notebook, resources = self._prepared(assignment)
        preprocessors.SaveCells(config=self.classroom.config).preprocess(notebook, resources)
        self.db.remove()  # nbgrader wrote through a connection of its own

    def _prepared(self, assignment, own=True):
        """The source notebook as nbgrader records it: the class's own, if it has one and it is asked for."""
        source = self.classroom.folder("source") / assignment / f"{assignment}.ipynb"
        if own and source.exists():
            notebook = nbformat.read(source, as_version=4)
        else:
            from autograder.notebooks.solution import graded_notebook  # imports jupytext

            notebook = graded_notebook(assignment)
        resources = {"nbgrader": {"notebook": assignment, "assignment": assignment, "db_url": self.url}}
        resources["metadata"] = {"name": assignment, "path": str(source.parent)}
        for name in ("LockCells", "ClearSolutions", "ClearOutput", "ComputeChecksums"):
            step = getattr(preprocessors, name)(config=self.classroom.config)
            notebook, resources = step.preprocess(notebook, resources)
        return notebook, resources

    def _with_room_for(self, verdict):
        """The assignment, with cells for what has moved to another chapter since the notebook was released."""
        name = verdict["assignment"]
        assignment = self.assignments[name]
        lacking = {row["name"] for row in verdict["exercises"] if f"check_{row['name']}" not in assignment.points}
        if not lacking:
            return assignment
        chapters = names()
        for chapter in {chapters[one] for one in lacking}:
            self._make_cells(name, self._prepared(chapter), lacking)
        assignment = self.assignments[name] = self._look_up(self.book.find_notebook(name, name), assignment.exercises)
        return assignment

    def _make_cells(self, name, prepared, lacking):
        """Give an assignment the cells of exercises that it lacks, as they stand in a prepared notebook."""
        for cell in prepared[0].cells:
            about = cell.metadata.get("nbgrader", {})
            grade_id = about.get("grade_id", "")
            if grade_id.removeprefix("check_") not in lacking:
                continue
            if about["grade"]:
                points = {"max_score": about["points"], "cell_type": cell.cell_type}
                self.book.update_or_create_grade_cell(grade_id, name, name, **points)
            else:
                self.book.update_or_create_solution_cell(grade_id, name, name)
            text = {"cell_type": cell.cell_type, "locked": about["locked"], "source": cell.source}
            self.book.update_or_create_source_cell(grade_id, name, name, checksum=about["checksum"], **text)

    # ------------------------------------------------------------------------------------ scores

    def scores(self, assignment):
        """What is recorded: student -> name of the exercise -> `Score`."""
        today = former_names()
        rows = self.db.execute(
            select(
                api.Student.id,
                api.GradeCell.name,
                api.Grade.auto_score,
                api.Grade.manual_score,
                api.GradeCell.max_score,
            )
            .join(api.SubmittedAssignment, api.SubmittedAssignment.student_id == api.Student.id)
            .join(api.Assignment, api.Assignment.id == api.SubmittedAssignment.assignment_id)
            .join(api.SubmittedNotebook, api.SubmittedNotebook.assignment_id == api.SubmittedAssignment.id)
            .join(api.Grade, api.Grade.notebook_id == api.SubmittedNotebook.id)
            .join(api.GradeCell, api.GradeCell.id == api.Grade.cell_id)
            .where(api.Assignment.name == assignment)
        )
        found = {}
        for student, cell, *score in rows:
            name = cell.removeprefix("check_")
            found.setdefault(student, {})[today.get(name, name)] = Score(*score)
        return found

    def totals(self, assignment):
        """What each student has for an assignment, a person's changes included and lateness taken off."""
        try:
            submissions = self.book.find_assignment(assignment).submissions
        except api.MissingEntry:
            return {}
        return {one.student_id: max(0.0, one.score - one.late_submission_penalty) for one in submissions}

    def submissions_of(self, student):
        """How many submissions a student has; None where the gradebook does not know the student."""
        try:
            return len(self.book.find_student(student).submissions)
        except api.MissingEntry:
            return None

    def forget(self, student):
        """Remove a student with all submissions, grades and comments."""
        self.book.remove_student(student)

    def record(self, student, verdict, timestamp=None):
        """Record a verdict, all of it or nothing.

        Scores and comments that a person gave stay; as with nbgrader, a cell with a manual score is marked for
        another look. A cell without a verdict has no score and waits for a person: it is no zero. Of an exercise
        that is no longer declared, or never was, the score stays as it is, and so does that of one which has moved
        to another chapter when the notebook is one of today. One that is handed in under both chapters counts in that
        of today.

        Parameters
        ----------
        student : str
        verdict : dict
        timestamp : str, optional
            When it was handed in, as `timestamp.txt` says; what is no time is left out.

        Returns
        -------
        float
            The penalty for lateness.
        """
        rows = {row["name"]: row for row in verdict["exercises"]}
        try:
            assignment = self._with_room_for(verdict)
            submission, notebook = assignment.submissions.get(student) or self._hand_in(assignment, student)
            left = {name for name in assignment.moved if rows and name not in rows}
            left |= self._counted_once(student, verdict["assignment"], assignment.in_two_chapters & rows.keys())
            self._make_places(assignment, notebook, assignment.moved & (rows.keys() - left))
            if timestamp and self.is_time(timestamp):
                when = {"timestamp": parse_utc(timestamp)}
                self.db.execute(update(_SUBMITTED).where(_SUBMITTED.c.id == submission), when)
            self.db.execute(
                _SET_SCORE,
                [
                    {"of": notebook, "cell": cell, "score": score, "lacks": score is None}
                    for name, (cell, max_score) in assignment.points.items()
                    if name.removeprefix("check_") not in left
                    for score in [_points(rows.get(name.removeprefix("check_")), max_score)]
                ],
            )
            if assignment.others:
                self.db.execute(_LEAVE_SCORE, [{"of": notebook, "cell": cell} for cell in assignment.others])
            self.db.execute(
                _SET_COMMENT,
                [
                    {"of": notebook, "cell": cell, "text": _comment(rows.get(name), verdict)}
                    for name, cell in assignment.comments.items()
                    if name not in left
                ],
            )
            penalty = self._penalise(submission, notebook, student)
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise
        assignment.submissions[student] = submission, notebook
        return penalty

    @staticmethod
    def is_broken_by(error):
        """Whether an error says that the gradebook itself fails (a full disk, a connection that broke)."""
        return isinstance(error, (OperationalError, InterfaceError)) or getattr(error, "connection_invalidated", False)

    @staticmethod
    def is_time(text):
        """Whether nbgrader can read a text as a date and a time."""
        try:
            return parse_utc(text) is not None
        except Exception:  # whatever was written there: a year that is too far away, an hour of thirty digits
            return False

    def _hand_in(self, assignment, student):
        """Make a submission's entry with a place for each grade and comment, as nbgrader does."""
        if self.db.get(api.Student, student) is None:
            self.db.execute(insert(api.Student), {"id": student})
        submission = {"id": api.new_uuid(), "assignment_id": assignment.id, "student_id": student}
        self.db.execute(insert(api.SubmittedAssignment), submission)
        notebooks = {notebook: api.new_uuid() for notebook in assignment.cells}
        self.db.execute(
            insert(api.SubmittedNotebook),
            [{"id": id, "notebook_id": n, "assignment_id": submission["id"]} for n, id in notebooks.items()],
        )
        for table, kinds in ((api.Grade, ("GradeCell", "TaskCell")), (api.Comment, ("SolutionCell", "TaskCell"))):
            places = [
                {"id": api.new_uuid(), "cell_id": cell, "notebook_id": notebooks[notebook]}
                for notebook, cells in assignment.cells.items()
                for cell, kind in cells
                if kind in kinds and cell not in assignment.of_moved
            ]
            if places:
                self.db.execute(insert(table), places)
        return submission["id"], notebooks[assignment.notebook]

    def _make_places(self, assignment, notebook, exercises):
        """Make the places for grades and comments of exercises that a submitted notebook lacks."""
        checks = {assignment.points[f"check_{name}"][0] for name in exercises}
        comments = {assignment.comments[name] for name in exercises & assignment.comments.keys()}
        for table, cells in ((_GRADE, checks), (_COMMENT, comments)):
            if cells:
                cells -= set(self.db.scalars(select(table.c.cell_id).where(table.c.notebook_id == notebook)))
            for cell in cells:
                self.db.execute(insert(table), {"id": api.new_uuid(), "cell_id": cell, "notebook_id": notebook})

    def _counted_once(self, student, assignment, shared):
        """Which of the exercises that two chapters have had the student has under another chapter, that of today.

        In the assignment of today they take the place of what the grader gave under the other one.
        """
        if not shared:
            return set()
        elsewhere = self.db.execute(
            select(api.Assignment.name, api.GradeCell.name, api.Grade.id, api.Grade.auto_score, api.Grade.manual_score)
            .join(api.SubmittedAssignment, api.SubmittedAssignment.assignment_id == api.Assignment.id)
            .join(api.SubmittedNotebook, api.SubmittedNotebook.assignment_id == api.SubmittedAssignment.id)
            .join(api.Grade, api.Grade.notebook_id == api.SubmittedNotebook.id)
            .join(api.GradeCell, api.GradeCell.id == api.Grade.cell_id)
            .where(api.SubmittedAssignment.student_id == student, api.Assignment.name != assignment)
            .where(api.GradeCell.name.in_([f"check_{name}" for name in shared]))
        ).all()
        of_today, counted = names(), set()
        for other, cell, grade, auto_score, manual_score in elsewhere:
            name = cell.removeprefix("check_")
            if other == of_today[name] and (auto_score is not None or manual_score is not None):
                counted.add(name)
            elif assignment == of_today[name] and manual_score is None:
                self.db.execute(delete(_GRADE).where(_GRADE.c.id == grade))
        return counted

    def _penalise(self, submission, notebook, student):
        """Take off for lateness what nbgrader's plugin of this course says; returns the penalty."""
        seconds = self.db.get(api.SubmittedAssignment, submission).total_seconds_late
        penalty = None
        if seconds > 0:
            score = self.db.scalar(select(api.SubmittedNotebook.score).where(api.SubmittedNotebook.id == notebook))
            with self.classroom.plugins():
                late = preprocessors.AssignLatePenalties(config=self.classroom.config)
                late.init_plugin()
                penalty = late.plugin_inst.late_submission_penalty(student, score, seconds)
            penalty = None if penalty is None else min(max(penalty, 0), score)
        table = api.SubmittedNotebook.__table__
        self.db.execute(update(table).where(table.c.id == notebook), {"late_submission_penalty": penalty})
        return penalty or 0.0


@dataclass(frozen=True)
class Score:
    """What the gradebook has for an exercise: the autograder's score, a person's, and full marks."""

    auto: float | None
    manual: float | None
    full: float

    def of(self, row):
        """What an exercise's row of a verdict would be recorded as."""
        return _points(row, self.full)


class _Assignment:
    """What recording needs to know of an assignment, looked up once.

    `points` are the checks of its exercises, `others` the graded cells that belong to none. `moved` are exercises of
    another chapter that were in this one before: only a notebook of that time has places in their cells.
    `in_two_chapters` are these, and those that this one has got from another.
    """

    def __init__(self, notebook, exercises, moved):
        self.exercises, self.moved = exercises, moved.keys()
        gained = {name for chapter in CHAPTERS for name, today in moved_from(chapter).items() if today == notebook.name}
        self.in_two_chapters = moved.keys() | gained
        exercises = {*exercises, *moved}
        self.id, self.notebook = notebook.assignment.id, notebook.id
        # Every notebook of the assignment -> its cells, for a submission has a place for each.
        self.cells = {
            one.id: [(cell.id, cell.type) for cell in (*one.grade_cells, *one.solution_cells, *one.task_cells)]
            for one in notebook.assignment.notebooks
        }
        checks = {f"check_{name}" for name in exercises}
        self.points = {cell.name: (cell.id, cell.max_score) for cell in notebook.grade_cells if cell.name in checks}
        self.others = [cell.id for cell in notebook.grade_cells if cell.name not in checks]
        self.comments = {cell.name: cell.id for cell in notebook.solution_cells if cell.name in exercises}
        found = (*notebook.grade_cells, *notebook.solution_cells)
        self.of_moved = {cell.id for cell in found if cell.name.removeprefix("check_") in moved}
        self.submissions = {}  # student -> (id of the submission, id of its notebook)


_SUBMITTED = api.SubmittedAssignment.__table__
_GRADE, _COMMENT = api.Grade.__table__, api.Comment.__table__
# A score that a person gave stays, and marks the cell for another look, as with nbgrader.
_SET_SCORE = (
    update(_GRADE)
    .where(_GRADE.c.notebook_id == bindparam("of"), _GRADE.c.cell_id == bindparam("cell"))
    .values(
        auto_score=bindparam("score"),
        needs_manual_grade=case((_GRADE.c.manual_score.is_not(None), True), else_=bindparam("lacks", type_=Boolean)),
    )
)
_LEAVE_SCORE = (
    update(_GRADE)
    .where(_GRADE.c.notebook_id == bindparam("of"), _GRADE.c.cell_id == bindparam("cell"))
    .where(_GRADE.c.auto_score.is_(None))
    .values(needs_manual_grade=True)
)
_SET_COMMENT = (
    update(_COMMENT)
    .where(_COMMENT.c.notebook_id == bindparam("of"), _COMMENT.c.cell_id == bindparam("cell"))
    .values(auto_comment=bindparam("text"))
)


def _points(row, max_score):
    """An exercise's score in the points that the gradebook gives it; None where it has no verdict."""
    if row is None or row["score"] is None:
        return None
    if row["max_score"] == max_score:
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
