"""What is kept of a class's grading: who has been graded and how."""

import json
from typing import Any

from autograder.grading.classroom import Classroom, CommandError
from autograder.grading.grade import version
from autograder.grading.verdict import Verdict
from autograder.judging.exercise import CHAPTERS


def verdicts(classroom: Classroom, assignment: str | None = None, student: str | None = None) -> list[dict[str, Any]]:
    """The verdicts that are kept beside the graded notebooks.

    Parameters
    ----------
    classroom : Classroom
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
    for path in sorted(classroom.folder("autograded").glob(f"*/{assignment or '*'}/verdict.json")):
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


def _report_on(verdict: Verdict) -> None:
    """Use all that a report uses of a verdict: what is damaged raises an error."""
    for row in (*verdict["exercises"], verdict):
        if row["score"] is not None:
            assert row["score"] >= 0 and row["max_score"] is not None and row["max_score"] > 0
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


def _damaged(student: str, assignment: str, error: Exception) -> dict[str, Any]:
    reason = f"its verdict.json is damaged ({type(error).__name__}): grade again"
    return {
        "status": "not readable", "reason": reason, "score": None, "max_score": None, "exercises": [], "repairs": [],
        "seconds": 0.0, "seed": "–", "version": None, "graded_at": "–", "warning": None,
    }  # fmt: skip
