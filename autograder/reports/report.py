"""How the class did: from the `verdict.json` files and the gradebook."""

import statistics
from collections import Counter

from autograder.grading.gradebook import Gradebook
from autograder.grading.kept import verdicts as kept_verdicts
from autograder.judging.exercise import CHAPTERS
from autograder.reports.feedback import page

BINS = 10  # of the distribution of scores
JUDGED = ("failed", "partly passed")  # of any other status no check says anything


def collect(classroom, url, assignment=None):
    """What there is to say about a class, as plain JSON.

    Parameters
    ----------
    classroom : Classroom
    url : str
        The gradebook's.
    assignment : str, optional
        Only this one.

    Returns
    -------
    dict
        `assignments`: for each its name, `submissions`, `statuses`, `scores` (what the gradebook has, a person's
        changes included), `distribution`, `exercises` (success rate, mean share, statuses, misconceptions with
        their counts, the sub-tests most often failed), `attention` (who could not be graded, and why), `mended`
        and `seconds`.
    """
    verdicts = {}
    for verdict in kept_verdicts(classroom, assignment):
        verdicts.setdefault(verdict["assignment"], []).append(verdict)
    names = [name for name in CHAPTERS if name in verdicts]
    with Gradebook(classroom, url, make=False) as book:
        return {"assignments": [_assignment(name, verdicts[name], book) for name in names]}


def as_page(report):
    """The report as an HTML page of its own."""
    return page("Class report", "report.html", report=report)


def _assignment(name, verdicts, book):
    scored = book.totals(name)
    graded = [verdict for verdict in verdicts if verdict["student"] in scored and verdict["score"] is not None]
    scores = [scored[verdict["student"]] for verdict in graded]
    maximum = max((verdict["max_score"] or 0.0 for verdict in verdicts), default=0.0)
    seconds = [verdict["seconds"] for verdict in verdicts]
    attention = [v for v in verdicts if v["status"] != "graded"]
    return {
        "name": name,
        "submissions": len(verdicts),
        "statuses": dict(Counter(verdict["status"] for verdict in verdicts)),
        "max_score": maximum,
        "scores": _spread(scores),
        "distribution": _distribution(scores, maximum),
        "exercises": _exercises(verdicts),
        "attention": [{"student": v["student"], "status": v["status"], "reason": v["reason"]} for v in attention],
        "mended": sum(bool(verdict["repairs"]) for verdict in verdicts),
        "seconds": _spread(seconds) | {"total": round(sum(seconds), 2)},
    }


def _spread(numbers):
    if not numbers:
        return {"mean": None, "median": None, "least": None, "most": None}
    return {
        "mean": round(statistics.fmean(numbers), 3),
        "median": round(statistics.median(numbers), 3),
        "least": min(numbers),
        "most": max(numbers),
    }


def _distribution(scores, maximum):
    counts = Counter(min(int(BINS * score / maximum), BINS - 1) if maximum else 0 for score in scores)
    width = maximum / BINS
    return [{"from": round(n * width, 3), "to": round((n + 1) * width, 3), "students": counts[n]} for n in range(BINS)]


def _exercises(verdicts):
    rows = {}
    for verdict in verdicts:
        for row in verdict["exercises"]:
            if row["status"] is not None:
                rows.setdefault(row["name"], []).append(row)
    return [_exercise(name, its_rows) for name, its_rows in rows.items()]


def _exercise(name, rows):
    misconceptions, failed = Counter(), Counter()
    for row in rows:
        misconceptions.update({failure["misconception"] for failure in row["failures"]} - {None})
        if row["status"] in JUDGED:
            missed = {failure["subtest"] for failure in row["failures"]}
            failed.update(check["title"] for check in row["subtests"] if check["name"] in missed)
    return {
        "name": name,
        "passed": sum(row["status"] == "passed" for row in rows),
        "of": len(rows),
        "mean_share": round(statistics.fmean(row["score"] / row["max_score"] for row in rows), 3),
        "statuses": dict(Counter(row["status"] for row in rows)),
        "misconceptions": [{"name": n, "students": count} for n, count in misconceptions.most_common()],
        "failed_checks": [{"title": title, "students": count} for title, count in failed.most_common(5)],
    }
