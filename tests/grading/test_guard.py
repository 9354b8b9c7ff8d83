"""One submission is never another's matter: faults in every step, of theirs and of ours, and who is graded still."""

import contextlib
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from build import STUDENTS, notebook, submit

from autograder.grading import find, fresh, kept, record, run, workers
from autograder.grading import grade as grading
from autograder.grading.classroom import Classroom as Settings
from autograder.grading.gradebook import Gradebook
from autograder.judging.judge import Trial
from autograder.lms import export
from autograder.reports import feedback, similar
from autograder.sandbox.host import Sandbox, SandboxFailed, SandboxUnavailable

OTHERS = ("ada", "zoe")
STATUSES = {"graded", "partly graded", "not readable"}


def three(course):
    """Two who are right, and between them the one whom something happens to."""
    for student in (*OTHERS, "mal"):
        submit(course.folder, student, notebook(STUDENTS["ada"]))
    submit(course.folder, "mal", notebook(STUDENTS["emil"]), name="patchify-1.ipynb")
    (course.folder / "submitted/mal/patchify/timestamp.txt").write_text("2030-01-02 12:00:00 UTC")
    return course


def others_are_unharmed(course):
    for student in OTHERS:
        assert (course.verdict(student)["status"], course.verdict(student)["score"]) == ("graded", 12), student
        assert "12 of 12 points" in course.page(student)
    rows = list(csv.DictReader(io.StringIO(course.run("export").stdout)))
    assert {row["student_id"]: row["score"] for row in rows if row["student_id"] in OTHERS} == dict.fromkeys(
        OTHERS, "12.0"
    )
    (report,) = json.loads(course.run("report", "--json").stdout)["assignments"]
    assert report["statuses"]["graded"] >= 2
    course.run("report")
    course.run("similar")
    assert {line.split()[0] for line in course.run("list").stdout.splitlines()} >= set(OTHERS)


def only_for_mal(function, whose, error):
    """The function, which fails where it is about mal."""

    def failing(*args, **kwargs):
        if "mal" in repr(whose(*args, **kwargs)):
            raise error
        return function(*args, **kwargs)

    return failing


def first(*args, **kwargs):
    return args[0]


def anything(*args, **kwargs):
    return args, kwargs


# Where in the run it fails: (holder, name of the function, which of its arguments say whose it is).
STEPS = {
    "looking": (find, "_look", lambda course, home, *_: home),
    "choosing": (find, "_choose", first),
    "the notebooks of a folder": (find, "_notebooks", first),
    "ranking": (find, "_rank", first),
    "reading the file": (find, "file_bytes", first),
    "the student's seed": (Settings, "seed_for", lambda self, student, seed: student),
    "comparing with the last run": (fresh, "_still_holds", lambda course, one, limits: one.student),
    "making the task": (run, "_task", lambda one: one.student),
    "the time stamp": (record, "timestamp", lambda one: one.student),
    "recording": (Gradebook, "record", lambda self, student, *_: student),
    "restoring": (record, "restored", lambda submission, *_: "mal" if "strange" in repr(submission) else ""),
    "what a check prints": (record, "_printed", lambda row: "mal" if row["status"] == "not written" else ""),
    "feedback": (feedback, "feedback", lambda verdict, student, **_: student),
    "writing": (record, "_write", first),
    "what is no longer there": (record, "_retired", first),
    "reading the notebook": (grading, "read", lambda data, *_, **__: "mal" if b"strange" in data else ""),
    "judging": (Trial, "run", lambda self, **_: "mal" if "strange" in repr(self.call.args[1]) else ""),
    "the sandbox": (Sandbox, "session", lambda self, cells, names: "mal" if "strange" in repr(cells) else ""),
}  # fmt: skip
ERRORS = (
    ZeroDivisionError("ours"),
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "lone \ud800\x1b[2J"),
    OSError(5, "Input/output error"),
    RecursionError("deep"),
    MemoryError(),
    KeyError("x"),
    SandboxFailed("broke"),
    SandboxUnavailable("gone"),
)


@pytest.fixture(scope="module")
def shared(module_course):
    return three(module_course)


@pytest.mark.parametrize("step", STEPS)
def test_a_fault_in_one_step_is_one_submissions_matter(shared, step, monkeypatch):
    """Every step from finding to recording fails for one student, with this error and that."""
    code = "strange = 1\n" + STUDENTS["emil"].replace("def patchify", "def patchi")
    submit(shared.folder, "mal", notebook(code))
    holder, name, whose = STEPS[step]
    for error in ERRORS[:2] if step != "the sandbox" else ERRORS:
        with monkeypatch.context() as patch:
            patch.setattr(holder, name, only_for_mal(getattr(holder, name), whose, error))
            done = shared.run("grade", "--force", "--workers", 1, status=None)
        (line,) = (line for line in done.stdout.splitlines() if line.startswith("mal "))
        assert any(status in line for status in STATUSES), line
        assert done.stdout.splitlines()[-1].startswith("3 submissions: ")
        if step not in ("comparing with the last run", "the time stamp"):
            assert "partly graded" in line or "not readable" in line, (step, line)
        assert "\x1b" not in done.stdout + done.stderr
        others_are_unharmed(shared)


AFTERWARDS = {
    "exporting": (export, "_scored", lambda submission: submission.student_id, "export"),
    "listing": (kept, "_report_on", lambda verdict: verdict["student"], "list"),
    "reporting": (kept, "_report_on", lambda verdict: verdict["student"], "report"),
    "comparing": (similar, "_function", lambda code, name: "mal" if "strange" in code else "", "similar"),
}


@pytest.mark.parametrize("step", AFTERWARDS)
def test_a_fault_afterwards_is_one_submissions_matter(course, step, monkeypatch):
    three(course)
    submit(course.folder, "mal", notebook("def patchify(img, P):\n    strange = 1"))
    course.run("grade", status=None)
    holder, name, whose, command = AFTERWARDS[step]
    monkeypatch.setattr(holder, name, only_for_mal(getattr(holder, name), whose, ZeroDivisionError("ours")))
    done = course.run(command)
    told = done.stdout + done.stderr
    if command == "report":
        told = (course.folder / "report.html").read_text("utf-8")
    assert "mal" in told and ("damaged" in told or "left out" in told)
    others_are_unharmed(course)


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"exercises": [1]}', "\ud800", "[" * 10**5])
def test_a_verdict_that_is_damaged_stops_no_report(course, content):
    three(course)
    course.run("grade")
    path = course.folder / "autograded/mal/patchify/verdict.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    others_are_unharmed(course)
    assert "damaged" in course.run("list").stdout
    course.run("grade")
    assert course.verdict("mal")["status"] == "graded"


@pytest.mark.parametrize("change", [{"score": "x"}, {"exercises": [{"name": 1}]}, {"reason": 7}, {"seconds": None},
                                    {"repairs": 3}, {"student": "ada"}, {"assignment": "tokens"}])  # fmt: skip
def test_a_verdict_of_the_wrong_shape_stops_no_report(graded, tmp_path, change):
    path = graded.folder / "autograded/emil/patchify/verdict.json"
    shutil.copy(path, tmp_path / "kept")
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change))
    try:
        (report,) = json.loads(graded.run("report", "--json").stdout)["assignments"]
        assert report["submissions"] == 12
        assert len(graded.run("list").stdout.splitlines()) == 13
    finally:
        shutil.copy(tmp_path / "kept", path)


def test_a_disk_that_is_full_is_nobodys_fault(course, monkeypatch):
    three(course)

    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record, "_write", full)
    done = course.run("grade", status=1)
    assert done.stderr.splitlines()[-1] == "autograder grade: No space left on device"


# ------------------------------------------------------------------------------------------ folders


def deep(folder, levels):
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    return here


@pytest.fixture
def remove_deep(course):
    yield
    subprocess.run(["rm", "-rf", course.folder / "submitted"], check=True)


def test_folders_that_hold_up_a_run(course, remove_deep):
    three(course)
    slow = json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "source": "f(\n" * 4000}] * 20}).encode()
    places = {}
    for name in ("deep", "many", "wide", "slow", "linkhome", "loop"):
        places[name] = course.folder / "submitted" / name / "patchify"
        places[name].mkdir(parents=True)
    bottom = deep(places["deep"], 1200)
    os.close(os.open("patchify.ipynb", os.O_CREAT | os.O_WRONLY, dir_fd=bottom))
    os.close(bottom)
    for number in range(6000):
        (places["many"] / f"{number}.ipynb").touch()
    for number in range(300):
        (places["wide"] / f"{number}" / "a").mkdir(parents=True)
    for number in range(40):
        (places["slow"] / f"{number}.ipynb").write_bytes(slow)
    (places["loop"] / "self").symlink_to(places["loop"])
    (course.folder / "submitted" / "thief").symlink_to("ada")
    start = time.monotonic()
    done = course.run("grade")
    assert time.monotonic() - start < 60
    others_are_unharmed(course)
    for name in ("deep", "many", "wide", "loop"):
        assert course.verdict(name)["status"] == "not readable"
    assert "more than 5,000 files" in course.verdict("many")["reason"]
    assert course.verdict("slow")["status"] in STATUSES
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("thief "))
    assert "not readable" in line and "is a link" in line
    assert not (course.folder / "autograded/thief").exists()


def test_a_file_that_is_exchanged_while_the_class_is_graded(course, monkeypatch):
    three(course)
    task = run._task

    def exchanged(one):
        if one.student == "mal":
            one.path.write_text(json.dumps(notebook(STUDENTS["ada"]), indent=3))
        return task(one)

    monkeypatch.setattr(run, "_task", exchanged)
    course.run("grade", "--workers", 1, status=1)
    assert course.verdict("mal")["status"] == "partly graded"
    assert "changed while" in course.verdict("mal")["reason"]
    monkeypatch.undo()
    course.run("grade")
    assert course.verdict("mal")["status"] == "graded"


@pytest.mark.parametrize("step", [(find, "_choose"), (run, "_task")], ids=["chosen", "read again"])
@pytest.mark.parametrize("whose", ["student", "chapter"])
def test_a_folder_that_becomes_a_link_is_not_followed(course, monkeypatch, whose, step):
    """Who makes folders in `submitted/` can exchange their own for a link to another's, at any time."""
    three(course)
    before = getattr(*step)
    mine, another = course.folder / "submitted/mal", course.folder / "submitted/ada"
    if whose == "chapter":
        mine, another = mine / "patchify", another / "patchify"

    def exchanged(one, *more):
        if "mal" in repr(one) and not mine.is_symlink():
            os.rename(mine, mine.with_name(".away"))
            mine.symlink_to(another)
        return before(one, *more)

    monkeypatch.setattr(*step, exchanged)
    course.run("grade", "--workers", 1)
    assert mine.is_symlink()
    assert course.verdict("mal")["status"] == "not readable"
    assert course.verdict("ada")["status"] == "graded"


# ------------------------------------------------------------------------------------------ processes


def test_a_grader_that_dies_takes_nobody_along(course, monkeypatch):
    """A fault that no `except` can catch: the process is gone each time mal is graded."""
    three(course)
    for number in range(12):
        submit(course.folder, f"s{number}", notebook(STUDENTS["ada"]))
    ask = workers.Worker._ask

    def killed(self, question, patience):
        if getattr(question, "filename", "") == "kill.ipynb":
            self.process.kill()
        return ask(self, question, patience)

    submit(course.folder, "killer", notebook(STUDENTS["ada"]), name="kill.ipynb")
    monkeypatch.setattr(workers.Worker, "_ask", killed)
    course.run("grade", "--workers", 2, status=1)
    assert course.verdict("killer")["status"] == "partly graded"
    assert "was lost each time" in course.verdict("killer")["reason"]
    assert course.verdict("s11")["score"] == 12
    others_are_unharmed(course)


def test_a_grader_that_hangs_is_ended(course, monkeypatch):
    three(course)
    submit(course.folder, "hang", notebook("import time\nwhile True:\n    time.sleep(1)"), name="hang.ipynb")
    ask = workers.Worker._ask
    monkeypatch.setattr(
        workers.Worker,
        "_ask",
        lambda self, question, patience: ask(
            self, question, 0.5 if getattr(question, "filename", "") == "hang.ipynb" else patience
        ),
    )
    course.run("grade", status=1)
    assert "did not answer within" in course.verdict("hang")["reason"]
    others_are_unharmed(course)


def test_a_sandbox_that_cannot_be_had_for_one_ends_nobody_elses_grading(course, monkeypatch):
    three(course)
    monkeypatch.setitem(grading.WARM, "strange", "numpy")
    submit(course.folder, "mal", notebook("strange = 1\n" + STUDENTS["emil"]))
    session = Sandbox.session
    monkeypatch.setattr(Sandbox, "session", only_for_mal(session, STEPS["the sandbox"][2], SandboxUnavailable("no")))
    course.run("grade", "--workers", 1, status=1)
    assert course.verdict("mal")["status"] == "partly graded"
    assert "sandbox" in course.verdict("mal")["reason"]
    others_are_unharmed(course)


def below(process):
    """A process and all that it started."""
    ours, before = {process}, 0
    while len(ours) != before:
        before = len(ours)
        for other in (path for path in os.listdir("/proc") if path.isdigit()):
            with contextlib.suppress(OSError):
                parent = Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()[1]
                if int(parent) in ours:
                    ours.add(int(other))
    return ours


def test_a_command_that_is_killed_leaves_no_process(course):
    submit(course.folder, "mal", notebook("import time\nwhile True:\n    time.sleep(1)"))
    command = [sys.executable, "-m", "autograder", "grade", "--time-limit", "60"]
    run = subprocess.Popen(command, cwd=course.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        if len(ours := below(run.pid)) >= 6:
            break
        time.sleep(0.1)
    assert len(ours) >= 6
    run.kill()
    run.wait()
    for _ in range(100):
        if not [process for process in ours if os.path.exists(f"/proc/{process}")]:
            return
        time.sleep(0.1)
    pytest.fail("there are processes left")


def test_the_processes_that_grade_listen_nowhere(course):
    """While a class is graded, none of its processes has a port, and 8787 does not answer."""
    for number in range(8):
        submit(course.folder, f"s{number}", notebook("import time\ntime.sleep(2)"))
    command = [sys.executable, "-m", "autograder", "grade", "--workers", "2"]
    run = subprocess.Popen(command, cwd=course.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not list(course.folder.glob("autograded/*/*/verdict.json")):
            assert run.poll() is None
            time.sleep(0.05)
        ours = below(run.pid)
        assert len(ours) > 3
        inodes = set()
        for process in ours:
            with contextlib.suppress(OSError):
                for handle in os.listdir(f"/proc/{process}/fd"):
                    inodes.add(os.readlink(f"/proc/{process}/fd/{handle}"))
        for table in ("tcp", "tcp6", "udp", "udp6"):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                assert f"socket:[{line.split()[9]}]" not in inodes, line
    finally:
        run.send_signal(signal.SIGINT)
        run.wait()


def test_dask_stops_for_no_submission(course, monkeypatch):
    """A sandbox that cannot be had once it has worked, and a file that cannot be read, are one submission's matter."""
    from distributed import LocalCluster

    from autograder.grading import cluster

    for name in ("ada", "bo", "dana", "emil"):
        submit(course.folder, name, notebook(STUDENTS["ada"]))
    looked = []

    def prove(limits):
        looked.append(limits)
        if len(looked) == 3:
            raise SandboxUnavailable("no room")

    whole = run._task

    def task(one):
        if one.student == "bo":
            raise KeyError("nobody thought of it")
        return whole(one)

    monkeypatch.setattr(cluster, "prove_sandbox", prove)
    monkeypatch.setattr(cluster, "BATCH", 1)
    monkeypatch.setattr(run, "_task", task)
    with LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=None) as local:
        course.run("grade", "--scheduler", local.scheduler_address, status=1)
    reasons = [course.verdict(name)["reason"] for name in ("ada", "bo", "dana", "emil")]
    assert sorted(map(str, reasons)) == [
        "None",
        "None",
        "reading it failed (KeyError: 'nobody thought of it')",
        "the sandbox could not be had: no room",
    ]


def test_a_students_folder_of_too_many_files_is_not_readable(course, monkeypatch):
    monkeypatch.setattr(find, "MAX_ENTRIES", 50)
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    home = course.folder / "submitted" / "many"
    home.mkdir()
    for number in range(find.MAX_ENTRIES + 1):
        (home / f"f{number}").touch()
    done = course.run("grade")
    assert done.stdout.splitlines()[-1] == "2 submissions: 1 not readable, 1 graded; 2 in this run"
    assert "more than 50 files" in (course.folder / "autograded" / "grading.log").read_text()


@pytest.mark.parametrize(
    "name",
    ["ada ", " ada", "grading.log", "<img src=x onerror=alert(1)>", '";alert(1);"', "ada\\", "a>b"],
)
def test_a_folder_whose_name_is_no_id_is_named_and_passed_over(course, name):
    """A blank at an end is not seen in any table; the log lies among the students' folders.

    nbgrader's formgrader writes an id into the page of a student as it is, and into a string of a script there.
    """
    for student in ("ada", name):
        submit(course.folder, student, notebook(STUDENTS["ada"]))
    done = course.run("grade")
    assert done.stdout.splitlines()[-1] == "1 submission: 1 graded; 1 in this run"
    assert f"{name}: its name cannot be a student's id; rename it" in done.stderr
