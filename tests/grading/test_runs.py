"""Runs one after the other: what is graded again, what a person wrote stays, what is refused."""

import datetime
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from build import EXPECTED, STUDENTS, notebook, submit

from autograder.grading import grade as grading
from autograder.grading.grade import _open as sandboxes
from autograder.grading.grade import close_sandbox, grade
from autograder.grading.record import Recorder
from autograder.notebooks.read import MAX_FILE


def small_class(course):
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    submit(course.folder, "emil", notebook(STUDENTS["emil"]))


def last_line(done):
    return done.stdout.splitlines()[-1]


def test_only_what_changed_is_graded_again(course):
    small_class(course)
    assert last_line(course.run("grade")) == "2 submissions: 2 graded; 2 in this run"
    assert last_line(course.run("grade")) == "2 submissions: 2 graded; 0 in this run"
    submit(course.folder, "emil", notebook(STUDENTS["ada"]))
    assert last_line(course.run("grade")) == "2 submissions: 2 graded; 1 in this run"
    assert course.verdict("emil")["score"] == 12
    assert last_line(course.run("grade", "--force", "--student", "ada")) == "1 submission: 1 graded; 1 in this run"
    # A verdict of other tests is made again; so is one whose feedback was thrown away.
    path = course.folder / "autograded" / "ada" / "patchify" / "verdict.json"
    path.write_text(json.dumps(course.verdict("ada") | {"version": "0123456789ab"}))
    (course.folder / "feedback" / "emil" / "patchify" / "patchify.html").unlink()
    assert last_line(course.run("grade")) == "2 submissions: 2 graded; 2 in this run"
    # Another gradebook gets what is known without grading.
    done = course.run("grade", "--gradebook", f"sqlite:///{course.folder}/other.db")
    assert last_line(done) == "2 submissions: 2 graded; 0 in this run"
    assert "ada,,,,12.0" in course.run("export", "--gradebook", f"sqlite:///{course.folder}/other.db").stdout


def test_what_a_person_wrote_stays(course):
    small_class(course)
    course.run("grade")
    with course.gradebook() as book:
        book.find_grade("check_patch_embed_conv", "patchify", "patchify", "emil").manual_score = 3.5
        book.find_comment("patch_embed_conv", "patchify", "patchify", "emil").manual_comment = "Nearly."
        book.db.commit()
    course.run("grade", "--force")
    with course.gradebook() as book:
        grade = book.find_grade("check_patch_embed_conv", "patchify", "patchify", "emil")
        assert (grade.manual_score, grade.score) == (3.5, 3.5)
        assert grade.auto_score == pytest.approx(4 * 2 / 9)
        assert grade.needs_manual_grade  # as with nbgrader: the person should look again
        comment = book.find_comment("patch_embed_conv", "patchify", "patchify", "emil")
        assert comment.comment == "Nearly."
        assert "two flatten orders" in comment.auto_comment


def test_late_penalty_is_nbgraders(course):
    small_class(course)
    with open(course.folder / "nbgrader_config.py", "a") as file:
        file.write("\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    (course.folder / "submitted/emil/patchify/timestamp.txt").write_text("2030-02-02 12:00:00 UTC\n")
    (course.folder / "submitted/ada/patchify/timestamp.txt").write_text("2030-01-02 12:00:00 UTC\n")
    with course.gradebook() as book:
        book.add_assignment("patchify", duedate=datetime.datetime(2030, 2, 1))
    course.run("grade")
    with course.gradebook() as book:
        late = book.find_submission("patchify", "emil")
        assert late.late_submission_penalty == pytest.approx(late.score)
        assert book.find_submission("patchify", "ada").late_submission_penalty == 0
    assert "for lateness" in course.page("emil")
    assert "patchify,2030-02-01 00:00:00,2030-02-02 12:00:00,emil" in course.run("export").stdout


@pytest.mark.parametrize("ignored, by", [(False, signal.SIGINT), (False, signal.SIGTERM), (True, signal.SIGTERM)])
def test_a_stopped_run_goes_on(course, interruptible, ignored, by):
    """Ctrl-C is not for a run in the background, which ignores it; `kill` stops that one too."""
    for number in range(12):
        submit(course.folder, f"student{number:02}", notebook(STUDENTS["ada"]))
    slow = notebook(STUDENTS["ada"])  # so that the stop comes in the middle, however busy the machine is
    slow["cells"].append({"cell_type": "code", "id": "slow", "metadata": {}, "outputs": [], "execution_count": None,
                          "source": "import time\ntime.sleep(8)"})  # fmt: skip
    submit(course.folder, "student02", slow)
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run inherits it
    run = subprocess.Popen(
        [sys.executable, "-m", "autograder", "grade"],
        cwd=course.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(list(course.folder.glob("autograded/*/patchify/verdict.json"))) < 2:  # in whatever order
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    if ignored:
        run.send_signal(signal.SIGINT)
        time.sleep(0.1)
        assert run.poll() is None
    run.send_signal(by)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert "the same command goes on from there" in errors.splitlines()[-1]
    done = len(list(course.folder.glob("autograded/*/patchify/verdict.json")))
    assert 2 <= done < 12
    submit(course.folder, "student02", notebook(STUDENTS["ada"]))  # the stop has come: no more need to be slow
    # One whose verdict was just written may not have been recorded yet: it is graded again
    lines = [f"12 submissions: 12 graded; {number} in this run" for number in (12 - done, 13 - done)]
    assert last_line(course.run("grade")) in lines


class Destroyed:
    """A stop comes while this is destroyed, where Python drops the exception."""

    def __init__(self, by):
        self.by = by

    def __del__(self):
        signal.raise_signal(self.by)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_python_drops_is_not_forgotten(course, monkeypatch, interruptible, by):
    for student in ("ada", "ben", "cleo"):
        submit(course.folder, student, notebook(STUDENTS["ada"]))
    record = Recorder.record

    def recorded(*arguments):
        Destroyed(by)
        return record(*arguments)

    monkeypatch.setattr(Recorder, "record", recorded)
    assert "stopped: 1 of 3 graded and recorded" in course.run("grade", status=1).stderr
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    assert last_line(course.run("grade")) == "3 submissions: 3 graded; 2 in this run"


@pytest.mark.slow
def test_the_stops_are_tested_where_they_are_ignored(tmp_path):
    """As in a job of a script in the background: the tests above, with SIGINT ignored from the start."""
    only = ["-k", "stop and not where_they", f"--basetemp={tmp_path}/inner"]
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-m", "pytest", "-q", __file__, *only]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_killed_run_leaves_the_gradebook_whole(course):
    for number in range(12):
        submit(course.folder, f"student{number:02}", notebook(STUDENTS["ada"]))
    run = subprocess.Popen([sys.executable, "-m", "autograder", "grade"], cwd=course.folder, stderr=subprocess.DEVNULL)
    while not (course.folder / "autograded/student02/patchify/verdict.json").exists():
        assert run.poll() is None
        time.sleep(0.01)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    with course.gradebook() as book:
        assert book.db.connection().exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        for submission in book.find_assignment("patchify").submissions:
            scores = [grade.auto_score for grade in submission.notebooks[0].grades]
            assert len(scores) == 4 and None not in scores
    assert "12 graded" in last_line(course.run("grade"))
    with course.gradebook() as book:
        assert [submission.score for submission in book.find_assignment("patchify").submissions] == [12] * 12


def test_two_runs_at_once_are_refused(course):
    import fcntl

    small_class(course)
    (course.folder / "autograded").mkdir()
    with open(course.folder / "autograded" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another run" in course.run("grade", status=1).stderr


def test_without_bubblewrap_grading_is_refused(course):
    small_class(course)
    (course.folder / "empty").mkdir()
    done = course.command("grade", path=course.folder / "empty", status=1)
    assert "bubblewrap" in done.stderr.splitlines()[-1]
    assert not list(course.folder.glob("autograded/*/*/verdict.json"))


def test_grading_without_isolation_is_on_record(course):
    small_class(course)
    done = course.run("grade", "--isolation", "none")
    assert "warning" in done.stderr
    assert course.verdict("ada")["isolation"] == "none"
    assert "without isolation" in course.verdict("ada")["warning"]
    assert course.verdict("ada")["score"] == 12
    # A verdict that was made without is made again with it.
    assert last_line(course.run("grade")) == "2 submissions: 2 graded; 2 in this run"
    assert course.verdict("ada")["warning"] is None


def test_several_processes_give_the_same(course):
    names = [name for name in EXPECTED if name not in ("chen", "karl")]  # torch is slow to load
    for number in range(2 * len(names)):
        student = names[number % len(names)]
        submit(course.folder, f"{student}{number}", notebook(STUDENTS.get(student, "")))
    submit(course.folder, "karl", "no notebook")
    large = notebook(STUDENTS["ada"])  # a picture in it
    large["cells"][-1]["outputs"] = [
        {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * 12_000_000}}
    ]
    submit(course.folder, "ada0", large)
    done = course.command("grade", "--workers", 2)
    assert "Warning" not in done.stderr
    assert last_line(done) == "21 submissions: 20 graded, 1 not readable; 21 in this run"
    spread = {path: json.loads(path.read_text()) for path in course.folder.glob("autograded/*/*/verdict.json")}
    assert len(spread) == 21
    course.run("grade", "--force", "--workers", 1)
    for path, verdict in spread.items():
        alone = json.loads(path.read_text())
        for key in ("student", "status", "reason", "score", "repairs", "version"):
            assert alone[key] == verdict[key]


def test_a_forced_run_that_was_stopped_goes_on(course, monkeypatch):
    for number in range(4):
        submit(course.folder, f"student{number}", notebook())
    course.run("grade")
    record, count = Recorder.record, 0

    def interrupted(*args):
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return record(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "record", interrupted)
        assert "2 of 4 graded and recorded" in course.run("grade", "--force", status=1).stderr
    # Another forced run is another matter, and ends the first.
    done = course.run("grade", "--force")
    assert "2 were graded in it" in done.stderr
    assert last_line(done) == "4 submissions: 4 graded; 2 in this run"
    assert last_line(course.run("grade", "--force")) == "4 submissions: 4 graded; 4 in this run"


def test_a_forced_run_grades_what_a_wrong_clock_dated_into_the_future(course):
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    course.run("grade")
    path = course.folder / "autograded/ada/patchify/verdict.json"
    os.utime(path, (2**31, 2**31))
    done = course.run("grade", "--force")
    assert "1 graded; 1 in this run" in done.stdout and "Going on" not in done.stderr


def test_a_forced_run_that_was_stopped_is_not_gone_on_with_by_another(course, monkeypatch):
    for number in range(2):
        submit(course.folder, f"student{number}", notebook())
    course.run("grade")
    record = Recorder.record

    def interrupted(*args):
        record(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "record", interrupted)
        course.run("grade", "--force", status=1)
    assert last_line(course.run("grade", "--force", "--seed", 5)).endswith("2 in this run")
    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "record", interrupted)
        course.run("grade", "--force", status=1)
    course.run("grade")
    assert last_line(course.run("grade", "--force")).endswith("2 in this run")


def test_a_file_that_is_too_large_goes_no_further(course, monkeypatch):
    path = submit(course.folder, "ada", b"{" + b" " * MAX_FILE)
    submit(course.folder, "bo", notebook())
    monkeypatch.setattr(grading, "grade", lambda data, **about: pytest.fail("read") if len(data) > 10**6
                        else grade(data, **about))  # fmt: skip
    done = course.run("grade", "--workers", 1)
    assert course.verdict("ada")["status"] == "not readable"
    assert "patchify.ipynb has more than 16 MB: clear the outputs" in course.verdict("ada")["reason"]
    assert last_line(done) == "2 submissions: 1 not readable, 1 graded; 2 in this run"
    path.write_text(json.dumps(notebook()))
    assert last_line(course.run("grade")) == "2 submissions: 2 graded; 1 in this run"


def test_two_courses_in_one_process_are_apart(course, tmp_path):
    """Another release of the notebook in the same folder, too."""
    submit(course.folder, "ada", notebook())
    released = course.folder / "exercises" / "patchify" / "patchify.ipynb"
    for title in ("Monday's", "Tuesday's"):
        made = json.loads(released.read_text("utf-8"))
        made["metadata"]["title"] = title
        released.write_text(json.dumps(made))
        course.run("grade", "--force")
        graded = json.loads((course.folder / "autograded/ada/patchify/patchify.ipynb").read_text("utf-8"))
        assert graded["metadata"]["title"] == title


def test_sandboxes_are_warm_with_what_notebooks_import_one_for_each_thread():
    """As on a Dask worker that has several threads."""
    plain, drawing = (json.dumps(notebook(code)).encode() for code in ("", "import matplotlib.pyplot as plt"))

    def in_a_thread(_):
        loaded = []
        for data in (plain, drawing, plain):
            assert grade(data, assignment="patchify")[0]["status"] == "graded"
            loaded.append(sandboxes.box[2])
        close_sandbox()
        return loaded

    with ThreadPoolExecutor(2) as pool:
        for first, second, third in pool.map(in_a_thread, range(2)):
            assert first == {"numpy", "urllib.request", "zipfile"}  # the last two are in every notebook's first cell
            assert second == third == first | {"matplotlib.pyplot"}


def test_a_seed_of_its_own_for_each_student(course):
    small_class(course)
    with open(course.folder / "nbgrader_config.py", "a") as file:
        file.write("\nc.Autograder.seed = 7\nc.Autograder.seed_per_student = True\n")
    course.run("grade")
    seeds = {course.verdict(student)["seed"] for student in ("ada", "emil")}
    assert len(seeds) == 2 and 7 not in seeds
    assert course.verdict("ada")["score"] == 12


def test_nothing_is_read_through_links_and_pipes(course, tmp_path):
    secret = tmp_path / "secret.ipynb"
    secret.write_text(json.dumps(notebook(STUDENTS["ada"])))
    path = submit(course.folder, "link", "x")
    path.unlink()
    path.symlink_to(secret)
    path = submit(course.folder, "pipe", "x")
    path.unlink()
    os.mkfifo(path)
    path = submit(course.folder, "folder", "x")
    path.unlink()
    path.mkdir()
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    (course.folder / "submitted" / "thief").mkdir()
    (course.folder / "submitted" / "thief" / "patchify").symlink_to("../ada/patchify")
    course.run("grade")
    for student in ("link", "pipe", "folder", "thief"):
        assert course.verdict(student)["status"] == "not readable", student


@pytest.mark.parametrize("names", [("patchify.ipynb", "patchify-Copy1.ipynb"), ("a.ipynb", "b.ipynb")])
def test_several_notebooks_in_a_folder(course, names):
    stub = submit(course.folder, "ada", notebook(""), name=names[0])
    submit(course.folder, "ada", notebook(STUDENTS["ada"]), name=names[1])
    (stub.parent / ".ipynb_checkpoints").mkdir()
    (stub.parent / ".ipynb_checkpoints" / "patchify-checkpoint.ipynb").write_text("{}")
    course.run("grade")
    assert course.verdict("ada")["score"] == 12
    assert any("several notebooks" in repair for repair in course.verdict("ada")["repairs"])


def test_an_empty_folder(course):
    (course.folder / "submitted/lea/patchify").mkdir(parents=True)
    (course.folder / "submitted/lea/patchify/homework.docx").write_text("")
    course.run("grade")
    assert course.verdict("lea")["status"] == "not readable"
    assert "homework.docx" in course.verdict("lea")["reason"]


def test_what_is_passed_over_is_told(course):
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    submit(course.folder, "bob", notebook(STUDENTS["ada"]), assignment="patchfy")
    submit(course.folder, "eve", notebook(STUDENTS["ada"]), assignment=".")
    (course.folder / "submitted" / "nobody").mkdir()
    for path in ("loose.ipynb", "ida.zip", "ian/patchify", "jim/patchify.ipynb.txt", "kim/work.zip"):  # work, perhaps
        (course.folder / "submitted" / path).parent.mkdir(exist_ok=True)
        (course.folder / "submitted" / path).write_text("work")
    os.mkfifo(course.folder / "submitted" / "pipe")
    for name in (b"caf\xe9", b"a\nb", b"red \x1b[31m", b"x" * 200):
        (course.folder / "submitted" / os.fsdecode(name) / "patchify").mkdir(parents=True)
    done = course.run("grade")
    assert last_line(done) == "1 submission: 1 graded; 1 in this run"
    told = [
        "bob/patchfy: no",
        "eve/patchify.ipynb: no",
        "nobody: the folder is empty",
        "loose.ipynb: no student's folder",
        "ida.zip: no student's folder",
        "pipe: no student's folder",
        "ian/patchify: no chapter's folder",
        "jim/patchify.ipynb.txt: no chapter's folder",
        "kim/work.zip: no chapter's folder",
        "caf\ufffd: its",
        "a\ufffdb: its",
    ]
    assert all(f"\n  {words}" in done.stderr for words in (*told, "red \ufffd[31m: its", f"{'x' * 200}: its"))


def test_names_of_files_that_are_no_text(course):
    """They may hold bytes that are no UTF-8, and characters that take over a terminal."""
    names = [os.fsdecode(b"L\xf6sung.ipynb"), "red \x1b[31m.ipynb", "two\nlines.ipynb"]
    for number, name in enumerate(names):
        submit(course.folder, f"one{number}", notebook(STUDENTS["ada"]), name=name)
        submit(course.folder, f"none{number}", "x", name=name.replace(".ipynb", ".txt"))
        for other in names:
            submit(course.folder, f"all{number}", notebook(STUDENTS["ada"]), name=other)
    done = course.run("grade")
    assert last_line(done) == "9 submissions: 6 graded, 3 not readable; 9 in this run"
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) == 12
    course.run("report")


def test_times_that_are_none(course):
    """A file that a learner may have handed in: a link, a pipe, or text that is no time."""
    paths = [submit(course.folder, f"student{n}", notebook()).with_name("timestamp.txt") for n in range(7)]
    secret = course.folder / "secret"
    secret.write_text("2030-01-02 12:00:00 UTC")
    paths[0].symlink_to(secret)
    os.mkfifo(paths[1])
    paths[2].write_text("yesterday at eight")
    paths[3].write_text("99999-01-01")
    paths[4].write_bytes(b"\xff\xfe")
    paths[5].write_text("2030-01-02 " + "9" * 40 + "h")
    paths[6].write_text("2030-01-02 12:00:" + "1" * 30)
    course.run("grade")
    none = [course.verdict(f"student{n}")["submitted_at"] is None for n in range(7)]
    assert none == [True, True, False, False, True, False, False]
    for number in (2, 3, 5, 6):
        assert "holds no time" in course.verdict(f"student{number}")["repairs"][-1]
    assert not (course.folder / "autograded/student0/patchify/timestamp.txt").exists()
    assert last_line(course.run("grade")) == "7 submissions: 7 graded; 0 in this run"
    course.run("grade", "--gradebook", f"sqlite:///{course.folder}/another.db")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_leaves_nothing_in_the_temporary_folder(workers, course, tmp_path, monkeypatch):
    small_class(course)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    course.command("grade", "--workers", workers)
    assert os.listdir(scratch) == []
