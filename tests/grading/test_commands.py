"""One file in, one verdict out; what the commands say to wrong arguments."""

import contextlib
import itertools
import json
import os
import shutil
import sqlite3

import pytest
from build import STUDENTS, colab, notebook, submit

KEYS = {"assignment", "status", "reason", "repairs", "score", "max_score", "seed", "version", "exercises"}
KEYS |= {"isolation", "warning"}


@pytest.fixture
def write(tmp_path):
    def write(content, name="patchify.ipynb"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return write


def test_grade_file_prints_one_object(course, write):
    done = course.command("grade-file", "--json", write(notebook(STUDENTS["emil"])))
    verdict = json.loads(done.stdout)
    assert set(verdict) == KEYS
    assert (verdict["assignment"], verdict["status"], verdict["reason"]) == ("patchify", "graded", None)
    assert verdict["score"] == pytest.approx(8 + 4 * 2 / 9)
    assert verdict["max_score"] == 12
    assert [row["name"] for row in verdict["exercises"]][-1] == "patch_embed_conv"
    assert set(verdict["exercises"][0]) == {"name", "status", "score", "max_score", "failures"}
    failure = verdict["exercises"][-1]["failures"][0]
    assert set(failure) == {"subtest", "message", "misconception", "hidden"}
    assert failure["misconception"] == "two flatten orders mixed"
    assert not (course.folder / "gradebook.db").exists()
    assert not (course.folder / "autograded").exists()


def test_grade_file_without_json_is_for_people(course, write):
    done = course.run("grade-file", write(notebook(STUDENTS["emil"])), "--seed", "3")
    assert done.stdout.startswith("patchify: graded, 8.89 / 12 points\n")
    assert "You mixed the two flatten orders" in done.stdout


@pytest.mark.parametrize("content", [b"", b"\x00\x01", json.dumps(notebook())[:900].encode()])
def test_what_has_no_points_is_printed_without(course, write, content):
    printed = course.run("grade-file", write(content)).stdout
    assert printed.splitlines()[0] == "patchify.ipynb: not readable"
    assert "points" not in printed and "–" not in printed


def test_an_explanation_is_printed_once(course, write):
    printed = course.run("grade-file", write(notebook(STUDENTS["emil"]))).stdout
    assert printed.count("You mixed the two flatten orders") == 1
    assert printed.count("patch_embed_conv(") >= 2  # the checks that failed are all there


def test_grade_file_that_cannot_be_read(course, write):
    verdict = json.loads(course.run("grade-file", "--json", write(b"\x00\x01")).stdout)
    assert set(verdict) == KEYS
    assert (verdict["status"], verdict["score"], verdict["exercises"]) == ("not readable", None, [])
    assert verdict["reason"]


def test_inspect_a_stub(course, write):
    found = json.loads(course.run("inspect", "--json", write(notebook())).stdout)
    assert found["status"] == "readable"
    assert found["repairs"] == []
    assert [(row["found"], row["written"]) for row in found["exercises"]] == [(True, False)] * 4


def test_inspect_a_renamed_and_stripped_notebook(course, write):
    found = json.loads(
        course.run("inspect", "--json", write(colab(notebook(STUDENTS["ada"])), "hw 3 (1).ipynb")).stdout
    )
    assert found["assignment"] == "patchify"
    assert [(row["found"], row["written"]) for row in found["exercises"]] == [(True, True)] * 4
    assert any("hw 3 (1).ipynb" in repair for repair in found["repairs"])


def test_inspect_says_what_to_do(course, write):
    made = notebook(STUDENTS["ada"].replace("def unpatchify", "def unpatchfy"))
    for cell in made["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "unpatchify":
            cell["source"] = "def unpatchfy(patches, H, W, P):\n    return patches"
    done = course.run("inspect", write(made))
    assert "unpatchify: not found: there is no function unpatchify in the notebook; there is unpatchfy" in done.stdout
    done = course.run("inspect", write(json.dumps(notebook())[:5000].encode()))
    assert "breaks off" in done.stdout and "download it again" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("mark",),
        ("grade-file",),
        ("grade", "--assignment", "nosuch"),
        ("grade", "--workers", "0"),
        ("grade", "--workers", "two"),
        ("grade", "--isolation", "docker"),
        ("grade", "--gradebook", "gradebook.db"),
        ("grade", "--time-limit", "nan"),
        ("grade", "--time-limit", "inf"),
        ("grade", "--workers", "1000000"),
        ("grade", "--memory-limit", "1e9"),
        ("grade", "--gradebook", "sqlite://"),
        ("grade", "--gradebook", "sqlite:///:memory:"),
        ("grade", "--submitted", ""),
        ("grade", "--student", ""),
        ("export", "--format", "xlsx"),
    ],
)
def test_wrong_arguments(course, arguments):
    done = (course.command if arguments in ((), ("mark",)) else course.run)(*arguments, status=2)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("grade",), "there is no folder"),
        (("grade", "--submitted", "_empty"), "no submission"),
        (("grade-file", "missing.ipynb"), "cannot be read"),
        (("grade-file", "."), "cannot be read"),
        (("inspect", "missing.ipynb"), "cannot be read"),
        (("export",), "grade first"),
        (("report",), "nothing has been graded"),
        (("export", "--gradebook", "postgresql://nobody@127.0.0.1:1/none"), "cannot be opened"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(course, arguments, words):
    (course.folder / "_empty").mkdir()
    done = course.run(*arguments, status=1)
    assert done.stdout == ""
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_unknown_student_and_unwritable_output(course):
    submit(course.folder, "ada", notebook())
    assert "no submission of bob" in course.run("grade", "--student", "bob", status=1).stderr
    course.run("grade")
    assert "no assignment tokens" in course.run("export", "--assignment", "tokens", status=1).stderr
    assert "for tokens" in course.run("report", "--assignment", "tokens", status=1).stderr
    assert "cannot be written" in course.run("export", "--output", "nowhere/x.csv", status=1).stderr


@pytest.mark.parametrize("content", ["nothing", "another's", "a folder"])
def test_a_gradebook_that_is_none_is_said_in_one_line(course, content):
    submit(course.folder, "ada", notebook())
    path = course.folder / "gradebook.db"
    if content == "nothing":
        path.write_text("not a database, though long enough that SQLite looks into it" * 20)
    elif content == "another's":
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE assignment (colour TEXT)")
    else:
        path.mkdir()
    for command in ("grade", "export"):
        done = course.run(command, status=1)
        assert "Traceback" not in done.stderr
        assert "the gradebook" in done.stderr.strip().splitlines()[-1]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to somebody else")
@pytest.mark.parametrize(
    "closed",
    ["submitted", "submitted/ada", "submitted/ada/patchify", "submitted/ada/patchify/patchify.ipynb",
     "autograded/ada/patchify", "feedback/ada/patchify", "gradebook.db"],
)  # fmt: skip
def test_what_belongs_to_somebody_else_is_said_in_one_line(course, closed):
    """A teacher who may not read a part of what was handed in, or not write what is to be written."""
    submit(course.folder, "ada", notebook())
    course.run("grade")
    one = course.folder / closed
    one.chmod(0o700 if closed.startswith("submitted") else 0o755)
    os.chown(one, 65534, 65534)
    rights = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner")  # root is like any other
    done = course.command("grade", "--force", under=rights, status=None)
    assert "Traceback" not in done.stderr
    if closed.startswith("submitted/ada"):
        assert "ada" in done.stdout and "not readable" in done.stdout and "Permission denied" in done.stdout
        if closed != "submitted/ada":
            assert course.verdict("ada")["status"] == "not readable"
            assert "Permission denied" in course.verdict("ada")["reason"]
    else:
        assert done.returncode == 1
        assert done.stderr.strip().splitlines()[-1].startswith("autograder grade: "), done.stderr


def test_doctor(course):
    done = course.run("doctor")
    assert "grading     works" in done.stdout
    assert "bubblewrap works" in done.stdout
    assert "mend it" not in done.stdout


def test_doctor_names_what_mends(course, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    shutil.rmtree(course.folder / "exercises" / "sincos")
    lines = course.run("doctor", status=1).stdout.splitlines()
    said = {line.split()[0]: following for line, following in itertools.pairwise(lines)}
    assert said["browser"] == "            mend it: make system"
    assert said["exercises"] == "            mend it: make exercises, or new-class for a folder"
    assert "apt install bubblewrap" in "\n".join(lines)
    assert lines[-1] == "grading     does not work: see above"


def test_a_broken_configuration_is_named(course):
    (course.folder / "nbgrader_config.py").write_text("c = get_config(\n")
    assert "nbgrader_config.py: SyntaxError" in course.run("grade", status=1).stderr


def test_scores_that_standard_output_cannot_write_are_not_written_wrong(course, monkeypatch):
    """Of two ids with one other letter each, a question mark would make one."""
    for student in ("m\u00fcller", "m\u00f6ller"):
        submit(course.folder, student, notebook(STUDENTS["ada"]))
    course.run("grade")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = course.command("export", status=1)
    assert done.stdout == "" and done.stderr.endswith("name a file with --output\n")
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    assert "m\u00fcller" in course.command("export").stdout
