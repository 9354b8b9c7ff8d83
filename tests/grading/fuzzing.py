"""Classes made up at random, and what must hold of each: the real functions from finding to export, whatever is in it.

Execution is left out, for it is not what is tried: what a function would have been told about stands for it.
"""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

from build import STUDENTS, notebook
from hypothesis import strategies as st

from autograder.grading import grade as grading
from autograder.grading.classroom import Classroom
from autograder.grading.run import grade_class
from autograder.judging.exercise import CHAPTERS
from autograder.lms.export import export
from autograder.reports.feedback import feedback
from autograder.reports.report import as_page, collect

RIGHT = notebook(STUDENTS["ada"])
STATUSES = ("graded", "not readable")  # "partly graded" is a fault of ours
NASTY = [
    "\x1b[2J\x1b]0;title\x07", "\x9b31m", "\u202e\u2066", "\u2028\u2029\x85", "\ud800", "\udfff\ud800", "\u200b\ufeff",
    "</script><script>alert(1)</script>", "=cmd|' /C calc'!A0", "\nada  patchify  graded  12.00 / 12", "\0", "\r",
    "{{7*7}}",
    "check_patchify", "patchify", "a" * 300, "é", "",
]  # fmt: skip
texts = st.one_of(
    st.sampled_from(NASTY), st.text(st.characters(), max_size=20), st.lists(st.sampled_from(NASTY)).map("".join)
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)
sources = st.one_of(
    texts,
    st.lists(texts, max_size=3),
    st.sampled_from(
        ["def patchify(img, P):\n    return 1", "def patchify(", "%%bash\nls", "check(patchify)", "x = 1\n" * 50]
    ),
    values,
)
grade_ids = st.one_of(texts, values)
extras = st.dictionaries(texts, values, max_size=2)
named = st.builds(lambda grade_id, more: {"nbgrader": {"grade_id": grade_id} | more}, grade_ids, extras)
metadata = st.one_of(named, values)
cells = st.one_of(
    st.fixed_dictionaries(
        {
            "cell_type": st.one_of(st.sampled_from(["code", "markdown", "raw"]), values),
            "source": sources,
            "metadata": metadata,
        },
        optional={"id": values, "outputs": values, "attachments": values, "input": values},
    ),
    values,
)


@st.composite
def notebooks(draw):
    """The bytes of a file: a right notebook that was changed here and there, JSON of any kind, or anything."""
    kind = draw(st.sampled_from(["changed", "changed", "changed", "cells", "json", "bytes"]))
    if kind == "bytes":
        return draw(st.binary(max_size=60))
    if kind == "json":
        return json.dumps(draw(values)).encode()
    made = {"cells": [], "metadata": draw(values), "nbformat": draw(values)}
    if kind == "changed":
        made = json.loads(json.dumps(RIGHT))
        twice = draw(grade_ids)  # a name that stands twice is told
        for cell in draw(st.lists(st.sampled_from(made["cells"]), max_size=3)):
            cell["metadata"] = draw(st.one_of(metadata, st.just({"nbgrader": {"grade_id": twice}})))
    made["cells"] += draw(st.lists(cells, max_size=4))
    if kind == "changed" and draw(st.booleans()):
        made["cells"] += [{"cell_type": "code", "source": "x", "metadata": {"nbgrader": {"grade_id": twice}}}] * 2
    data = json.dumps(made).encode()
    return data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 9)) == 0 else data


names = st.one_of(
    st.sampled_from(
        [b"patchify.ipynb", b"patchify (1).ipynb", b"x.txt", b"timestamp.txt", b".ipynb", b"a/patchify.ipynb"]
    ),
    st.binary(min_size=1, max_size=40).map(lambda name: name + b".ipynb"),
    texts.map(lambda name: name[:50].encode("utf-8", "surrogatepass") + b".ipynb"),
).filter(lambda name: b"\0" not in name and b".." not in name)
times = st.one_of(
    st.sampled_from(
        [
            b"2030-01-02 12:00:00 UTC",
            b"2030-01-02T" + b"1" * 30,
            b"2030-01-02 " + b"9" * 30 + b":00",
            b"99999-1-1",
            b"2030-01-02 " + b"9" * 40 + b"h",
        ]
    ),
    st.from_regex(rb"\A\d{4}-\d\d-\d\d[T ]\d{1,40}(:\d{1,3}){0,2}( [A-Z]{1,5})?\Z"),
    st.binary(max_size=40),
    texts.map(lambda text: text.encode("utf-8", "surrogatepass")),
)
submissions = st.fixed_dictionaries(
    {
        "files": st.dictionaries(names, notebooks(), max_size=3),
        "time": st.one_of(times, st.none()),
        "depth": st.sampled_from([0] * 9 + [3, 1100]),
        "odd": st.sampled_from([None] * 6 + ["link", "pipe", "folder", "linked folder", "linked home", "many"]),
        "chapter": st.sampled_from(["patchify", "patchify", "patchify", "tokens", "nothing", "\x1b[2J"]),
    }
)
as_bytes = texts.map(lambda text: text[:60].encode("utf-8", "surrogatepass"))
homes = st.one_of(st.just(b"mal"), st.binary(min_size=1, max_size=20), as_bytes)
homes = homes.filter(lambda name: name and b"\0" not in name and b"/" not in name and name not in (b".", b"..", b"ada"))
classes = st.dictionaries(homes, submissions, min_size=1, max_size=5)


def hand_in(folder, made):
    """Write a class."""
    subprocess.run(["rm", "-rf", folder], check=True)
    for student, work in {b"ada": None, **made}.items():
        chapter = "patchify" if work is None else work["chapter"]
        place = os.path.join(os.fsencode(folder), student, chapter.encode())
        os.makedirs(place)
        if work is None:
            Path(os.fsdecode(place), "patchify.ipynb").write_text(json.dumps(RIGHT))
            continue
        below = os.open(place, os.O_RDONLY)
        for _ in range(work["depth"]):
            os.mkdir("d", dir_fd=below)
            above, below = below, os.open("d", os.O_RDONLY, dir_fd=below)
            os.close(above)
        for name, data in work["files"].items():
            with contextlib.suppress(OSError):  # a name that no file can have
                *parents, last = name.split(b"/")
                for parent in parents:
                    os.makedirs(os.path.join(f"/proc/self/fd/{below}".encode(), parent), exist_ok=True)
                last = b"/".join([*parents, last])
                with open(os.open(last, os.O_CREAT | os.O_WRONLY, dir_fd=below), "wb") as file:
                    file.write(data)
        os.close(below)
        with contextlib.suppress(OSError):
            if work["time"] is not None:
                Path(os.fsdecode(place), "timestamp.txt").write_bytes(work["time"])
            make_odd(Path(os.fsdecode(place)), work["odd"], folder)


def make_odd(place, odd, folder):
    if odd == "link":
        (place / "z.ipynb").symlink_to(folder / "ada/patchify/patchify.ipynb")
    elif odd == "pipe":
        os.mkfifo(place / "y.ipynb")
    elif odd == "folder":
        (place / "patchify.ipynb").mkdir()
    elif odd == "linked folder":
        place.parent.joinpath("tokens").symlink_to(folder / "ada/patchify")
    elif odd == "linked home":
        place.parent.with_name("zz").symlink_to(folder / "ada")
    elif odd == "many":
        for number in range(70):
            os.symlink("nowhere", place / f"{number}.ipynb")


def judged(submission, seed, limits):
    """In place of running it: every exercise failed, with words of the submission's own in the message."""
    words = "".join(cell.source for cell in submission.cells[-3:])[:400]
    rows = []
    for exercise in grading.exercises(submission.assignment):
        row = grading._row(exercise, None, 0.0)
        failure = {"subtest": "a", "message": f"{exercise.name}: {words}", "misconception": None, "hidden": False}
        check = {"name": "a", "title": "A", "weight": 1.0, "hidden": False, "passed": False}
        rows.append(row | {"status": "failed", "score": 0.0, "failures": [failure], "subtests": [check]})
    return rows, [f"cell 1: {words}"], []


def hidden_in(text, breaks="\n"):
    """The characters of a text that nobody sees, or that turn, move or overwrite others."""
    return {c for c in text if c not in breaks and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def holds(root, made):
    """Grade, give back, report and export a class; AssertionError, or whatever is raised, where it does not hold."""
    for step in ("autograded", "feedback"):
        shutil.rmtree(root / step, ignore_errors=True)
    hand_in(root / "submitted", made)
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.chdir(root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        course = Classroom.here()
        verdicts = grade_class(course, course.gradebook, feedback=feedback, limits=grading.Limits(), seed=1, workers=1)
        from autograder.__main__ import _summary, main

        summary = _summary(verdicts)
        report = as_page(collect(course, course.gradebook))
        tables = [export(course, course.gradebook, form) for form in ("nbgrader", "canvas", "moodle")]
        main(["list"])
        main(["grade", "--dry-run", "--workers", "1"])
    for verdict in verdicts:
        assert verdict["status"] in STATUSES, verdict["reason"]
        assert verdict["reason"] or verdict["status"] == "graded"
    (ada,) = (verdict for verdict in verdicts if verdict["student"] == "ada")
    assert ada["status"] == "graded" and ada["fresh"]
    named = {verdict["student"] for verdict in verdicts}
    for student, work in made.items():  # each is in a status, or told to be passed over
        shown = student.decode("utf-8", "replace")
        assert shown in named or student[:1] == b"." or "Passed over" in errors.getvalue(), (student, work)
    assert summary.count("\n") == len(verdicts) + 2  # no line is forged
    assert not hidden_in(summary + out.getvalue())
    assert not hidden_in(errors.getvalue(), "\n\r")  # a bar of progress begins its line anew
    for text in (report, *tables):
        assert not hidden_in(text)
        assert "<script" not in text.lower() or text is not report
    for table in tables:
        rows = list(csv.reader(io.StringIO(table)))
        assert len({len(row) for row in rows}) == 1
        assert not [
            cell
            for row in rows
            for cell in row
            if re.match(r"[=@+\t]|-(?!\d)", cell) and not re.fullmatch(r"[\w.@+=-]*", cell)
        ]
    for verdict in verdicts:
        if verdict["assignment"] is None:
            continue
        folder = root / "autograded" / verdict["student"] / verdict["assignment"]
        kept = json.loads((folder / "verdict.json").read_text("utf-8"))
        restored = json.loads((folder / f"{verdict['assignment']}.ipynb").read_text("utf-8"))
        page = (
            root / "feedback" / verdict["student"] / verdict["assignment"] / f"{verdict['assignment']}.html"
        ).read_text("utf-8")
        assert kept["status"] == verdict["status"]
        assert not hidden_in(
            json.dumps(kept, ensure_ascii=False) + json.dumps(restored, ensure_ascii=False) + page, "\n\t"
        )
        assert "<script" not in page.lower()
        for cell in restored["cells"]:
            assert cell["cell_type"] == "code" or "<script" not in cell["source"].lower()
            assert "attachments" not in cell
        assert verdict["assignment"] in CHAPTERS
    assert not hidden_in((root / "autograded" / "grading.log").read_text("utf-8"))
