"""Every command with what is missing, wrong or hostile: one clear line, a status that is not 0, and nothing lost."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from build import STUDENTS, notebook, submit
from traitlets.config import Config

from autograder.grading import record
from autograder.grading.classroom import Classroom

ROOT = Path(__file__).parents[2]
NOT_UTF8 = os.fsdecode(b"h\xff.ipynb")


@pytest.fixture(scope="module")
def kept(module_course):
    """A course with one graded submission; what is asked of it must leave it as it is."""
    course = module_course
    submit(course.folder, "ada", notebook(STUDENTS["emil"]))
    course.run("grade")
    (course.folder / "a file").write_text("x")
    (course.folder / "a folder").mkdir()
    (course.folder / "not.ipynb").write_bytes(bytes(range(256)))
    (course.folder / NOT_UTF8).write_text(json.dumps(notebook(STUDENTS["ada"])))
    course.content = content(course)
    return course


def content(course):
    """All files of a course but those that a run may touch."""
    passing = {"report.html", "similar.html", "grading.log", ".lock"}
    files = [path for path in course.folder.rglob("*") if path.is_file() and path.name not in passing]
    return {path: path.read_bytes() for path in files}


def fails(course, arguments, status, words):
    done = course.run(*arguments, status=status)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()
    assert words in last[-1], done.stderr
    if status == 1:
        assert len(last) == 1 and last[0].startswith(f"autograder {arguments[0]}: "), done.stderr
    assert content(course) == course.content


COMMANDS = ("grade", "grade-file", "inspect", "export", "report", "similar", "doctor")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "option",
    [
        ("--seed", "-1"),
        ("--seed", "one"),
        ("--seed", "1.5"),
        ("--seed", ""),
        ("--assignment", ""),
        ("--assignment", "../patchify"),
        ("--gradebook", ""),
        ("--gradebook", "grades.db"),
        ("--gradebook", "sqlite:///"),
        ("--isolation", "BUBBLEWRAP"),
        ("--nonsense",),
        ("two", "too", "many"),
    ],
    ids=" ".join,
)
def test_wrong_options_of_all(kept, command, option):
    fails(kept, (command, *(["x.ipynb"] * command.endswith(("file", "inspect"))), *option), 2, "error: ")


@pytest.mark.parametrize(
    "arguments",
    [
        "grade --time-limit 0",
        "grade --time-limit -1",
        "grade --time-limit 1e99",
        "grade --memory-limit 1",
        "grade --memory-limit -100",
        "grade --memory-limit 99999999999",
        "grade --workers -1",
        "grade --workers 0.5",
        "grade-file",
        "grade-file x.ipynb --time-limit nan",
        "inspect",
        "inspect x.ipynb --time-limit 1",
        "export --format pdf",
        "similar --threshold 2",
        "similar --threshold -0.1",
        "similar --threshold nan",
    ],
)
def test_wrong_options_of_one(kept, arguments):
    fails(kept, arguments.split(), 2, "error: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("grade", "--submitted", "none"), "there is no folder"),
        (("grade", "--submitted", "a file"), "there is no folder"),
        (("grade", "--submitted", "a folder"), "no submission"),
        (("grade", "--submitted", "x" * 5000), "File name too long"),
        (("grade", "--student", "../ada"), "no submission of ../ada"),
        (("grade", "--student", "ADA"), "no submission of ADA"),
        (("grade-file", "none.ipynb"), "cannot be read: No such file"),
        (("grade-file", "a folder"), "cannot be read: Is a directory"),
        (("grade-file", "a file/x.ipynb"), "cannot be read: Not a directory"),
        (("grade-file", "x" * 5000), "cannot be read: File name too long"),
        (("grade-file", os.fsdecode(b"\xff\xfe")), "cannot be read: No such file"),
        (("grade-file", "a\nb\x1b[2J"), "cannot be read: No such file"),
        (("inspect", "none.ipynb"), "cannot be read: No such file"),
        (("inspect", "a folder"), "cannot be read: Is a directory"),
        (("export", "--output", "a folder"), "a folder cannot be written: Is a directory"),
        (("export", "--output", "none/x.csv"), "cannot be written: No such file"),
        (("export", "--output", "a file/x.csv"), "cannot be written: Not a directory"),
        (("export", "--output", "/proc/x.csv"), "/proc/x.csv cannot be written"),
        (("export", "--output", "/dev/full"), "/dev/full cannot be written: No space left"),
        (("export", "--assignment", "tokens"), "no assignment tokens"),
        (("report", "--output", "a folder"), "a folder cannot be written: Is a directory"),
        (("report", "--output", "/dev/full"), "/dev/full cannot be written: No space left"),
        (("report", "--json", "--output", "/dev/full"), "/dev/full cannot be written: No space left"),
        (("report", "--assignment", "tokens"), "nothing has been graded yet for tokens"),
        (("similar", "--output", "a folder"), "a folder cannot be written: Is a directory"),
        (("similar", "--output", "/dev/full"), "/dev/full cannot be written: No space left"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done(kept, arguments, words):
    fails(kept, arguments, 1, words)


@pytest.mark.parametrize("command", ["grade", "export", "report"])
@pytest.mark.parametrize(
    "url",
    [
        "nonsense://x",
        "sqlite:////none/x.db",
        "sqlite:///a folder",
        "sqlite:///a file/x.db",
        "sqlite:///not.ipynb",
        "postgresql://teacher@127.0.0.1:1/grades",
        "postgresql://teacher@127.0.0.1:99999999/grades",
        "postgresql://[::1/grades",
        "http://example.org/grades",
        "sqlite+nonsense:///x.db",
    ],
)
def test_gradebooks_that_are_none(kept, command, url):
    done = kept.run(command, "--gradebook", url, status=1)
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"autograder {command}: ") and "gradebook" in last, done.stderr
    assert content(kept) == kept.content


@pytest.mark.parametrize("command", ["grade-file", "inspect"])
@pytest.mark.parametrize("name", [NOT_UTF8, "not.ipynb", "a file", "/dev/null", "/dev/zero"])
def test_files_of_any_kind_have_a_status(kept, command, name):
    """Whatever can be read is judged, and that it is no notebook is the judgement."""
    found = json.loads(kept.run(command, "--json", name).stdout)
    assert found["status"] in (("graded", "readable") if name == NOT_UTF8 else ("not readable",))
    kept.run(command, name).stdout.encode()
    assert content(kept) == kept.content


@pytest.mark.parametrize(
    "setting",
    [
        "CourseDirectory.db_url = 5",
        "CourseDirectory.db_url = 'grades.db'",
        "CourseDirectory.submitted_directory = 5",
        "CourseDirectory.autograded_directory = None",
    ],
)
def test_settings_that_are_none_are_named(course, setting):
    submit(course.folder, "ada", notebook())
    with open(course.folder / "nbgrader_config.py", "a") as file:
        file.write(f"\nc.{setting}\n")
    done = course.run("grade", status=1)
    assert "Traceback" not in done.stderr
    assert setting.partition(" ")[0] in done.stderr.strip().splitlines()[-1], done.stderr


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("seed", ["secret", "5", -1, None, 1.5, True, [1]], "a whole number, 0 or more"),
        ("seed_per_student", ["False", "True", "", 2, None, []], "True or False"),
        ("group", ["no such group", 5, None, ["users"]], "a group of this machine"),
        ("course_version", [0.1, None, ["0.1.0"]], "a version of the course"),
        ("book", [5, None, "example.org/book", "ftp://example.org", "javascript:alert(1)"], "https://"),
        ("allowed_system_calls", ["memfd_create", ["memfd_creat"], True, None, [5], {"mbind": 1}], "memfd_create"),
    ],
)
def test_a_value_that_a_setting_cannot_have(course, name, values, wanted):
    """The message has the setting, the value and what would be right, and nothing is done."""
    submit(course.folder, "ada", notebook())
    path = course.folder / "nbgrader_config.py"
    text = path.read_text()
    for value in values:
        path.write_text(f"{text}\nc.Autograder.{name} = {value!r}\n")
        said = course.run("grade", status=1).stderr.strip().splitlines()[-1]
        assert f"c.Autograder.{name} = {value!r}, which must be " in said and wanted in said
        assert not (course.folder / "autograded").exists() and not (course.folder / "gradebook.db").exists()


@pytest.mark.parametrize(
    ("line", "helps"),
    [
        ("c.Autograder.sead = 5", "did you mean c.Autograder.seed?"),
        ("c.Autograder.seed_per_students = True", "did you mean c.Autograder.seed_per_student?"),
        ("c.Autograder.allow_system_calls = []", "did you mean c.Autograder.allowed_system_calls?"),
        ("c.Autograder.penalty = 5", "allowed_system_calls, book, course_version, group, seed, seed_per_student"),
        ("c.Autogarder.seed = 5", "did you mean c.Autograder.seed?"),
        ("c.Autogrder.sead = 5", "did you mean c.Autograder?"),
        ("c.autograder.seed = 5", "did you mean c.Autograder"),
        ("c.AutoGrader.seed = 5", "did you mean c.Autograder.seed?"),
        ("c.Autograde.group = 'users'", "did you mean c.Autograder.group?"),
    ],
)
def test_a_setting_that_there_is_not(course, line, helps):
    submit(course.folder, "ada", notebook())
    with open(course.folder / "nbgrader_config.py", "a") as file:
        file.write(f"\n{line}\n")
    said = course.run("grade", status=1).stderr.strip().splitlines()[-1]
    assert said.startswith("autograder grade: nbgrader_config.py: ") and helps in said
    assert line.partition(" =")[0].rpartition(".")[0] in said
    assert not (course.folder / "autograded").exists()


def test_settings_that_are_right_are_taken(tmp_path):
    """And those of nbgrader's own programs are left to them."""
    made = {"seed": 1 << 127, "seed_per_student": True, "course_version": "9.9", "book": "https://example.org/book"}
    course = Classroom(tmp_path, Config({"Autograder": made, "Autograde": {"force": True}, "AutogradeApp": {"x": 5}}))
    assert {name: getattr(course.settings, name) for name in made} == made
    assert course.group is None
    for calls in (["mbind"], {"mbind"}, ("mbind",)):
        allowing = Classroom(tmp_path, Config({"Autograder": {"allowed_system_calls": calls}}))
        assert allowing.allowed_system_calls == ("mbind",)
    plain = Classroom(tmp_path, Config())
    assert (plain.seed, plain.book, plain.group, plain.allowed_system_calls) == (0, "", None, ())
    assert plain.seed_for("ada", 7) == 7 != course.seed_for("ada", 7)


def test_a_configuration_that_is_a_folder(course):
    (course.folder / "nbgrader_config.py").unlink()
    (course.folder / "nbgrader_config.py").mkdir()
    assert "nbgrader_config.py: " in course.run("doctor", status=1).stderr


def test_a_folder_that_has_gone(course):
    gone = course.folder / "gone"
    gone.mkdir()
    command = [sys.executable, "-m", "autograder", "report"]
    done = subprocess.run(
        ["bash", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', gone, *command],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("arguments", [("export",), ("report", "--json"), ("inspect", "a file")])
def test_a_full_disk_behind_stdout(kept, arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "autograder", *arguments],
            cwd=kept.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1, done.stderr
    assert "No space left" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_a_run_on_a_full_disk_loses_nothing(course, monkeypatch):
    """Where nothing more can be written the run says so, and goes on from there once there is room."""
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    course.run("grade")
    before = course.verdict("ada")
    submit(course.folder, "ada", notebook(STUDENTS["emil"]))
    write = record._write

    def full(path, text):
        if path.suffix == ".html":
            Path("/dev/full").write_text(text)
        write(path, text)

    with monkeypatch.context() as patched:
        patched.setattr(record, "_write", full)
        done = course.run("grade", status=1)
    assert "No space left" in done.stderr and "Traceback" not in done.stderr
    assert course.verdict("ada") == before
    course.run("grade")
    assert course.verdict("ada")["score"] == pytest.approx(8 + 4 * 2 / 9)


@pytest.mark.parametrize("command", ["grade-file", "inspect"])
@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_is_no_file_is_said_to_be_none(kept, tmp_path, command, kind):
    path = tmp_path / "n.ipynb"
    if kind == "pipe":
        os.mkfifo(path)  # nobody writes into it: opened as a file is, it waits for ever
    listening = socket.socket(socket.AF_UNIX)
    if kind == "socket":
        listening.bind(str(path))
    with listening:
        fails(kept, (command, path), 1, f"{path} is no file")
