"""nbgrader's own ways in and out: the exchange folder, downloads of an LMS, formgrader. Its real commands, each."""

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile

import pytest
from build import STUDENTS, hand_in, notebook

from autograder.generate import ROOT


def configured(course, *lines):
    """A course whose configuration has these lines more."""
    with open(course.folder / "nbgrader_config.py", "a", encoding="utf-8") as config:
        config.writelines(f"{line}\n" for line in lines)
    return course


def test_released_fetched_submitted_collected_graded_and_given_back(course, tmp_path):
    exchange = tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    configured(course, f"c.Exchange.root = {str(exchange)!r}")
    course.command("release_assignment", "patchify", module="nbgrader")

    ada = configured(type(course)(tmp_path / "ada"), f"c.Exchange.root = {str(exchange)!r}",
                     'c.CourseDirectory.student_id = "ada"')  # fmt: skip
    ada.command("fetch_assignment", "patchify", module="nbgrader")
    fetched = ada.folder / "patchify" / "patchify.ipynb"
    assert fetched.read_bytes() == (ROOT / "exercises" / "patchify" / "patchify.ipynb").read_bytes()
    fetched.write_text(json.dumps(notebook(STUDENTS["ada"])), encoding="utf-8")
    ada.command("submit", "patchify", module="nbgrader")

    course.command("collect", "patchify", module="nbgrader")
    course.run("grade")
    assert course.verdict("ada")["score"] == 12
    course.command("release_feedback", "patchify", module="nbgrader")
    ada.command("fetch_feedback", "patchify", module="nbgrader")
    (page,) = (ada.folder / "patchify" / "feedback").rglob("patchify.html")
    assert page.read_text("utf-8") == course.page("ada")


@pytest.mark.parametrize(
    "name",
    [
        "lovelaceada_41_9001_patchify.ipynb",
        "lovelaceada_LATE_41_9001_patchify-1.ipynb",
        "van_der_waals_41_9001_patchify (2).ipynb",
        "Ada Lovelace_41_assignsubmission_file_/patchify.ipynb",
        "Ada King_Lovelace_41_assignsubmission_file_patchify.ipynb",
    ],
)
def test_the_name_that_an_lms_gives_tells_student_and_notebook(name, course):
    from nbgrader.plugins.zipcollect import FileNameCollectorPlugin

    from autograder.course import Course

    with contextlib.chdir(course.folder):
        plugin = FileNameCollectorPlugin(config=Course.here().config)
    found = plugin.collect(f"/courses/2026_1/downloaded/patchify/extracted/submissions/{name}")
    assert found == {"student_id": "41", "file_id": "patchify"}


def test_downloads_of_an_lms_are_collected_and_graded(course):
    archive = course.folder / "downloaded" / "patchify" / "archive"
    archive.mkdir(parents=True)
    with zipfile.ZipFile(archive / "submissions.zip", "w") as made:
        made.writestr("lovelaceada_41_9001_patchify-1.ipynb", json.dumps(notebook(STUDENTS["ada"])))
        made.writestr("Emil Noether_42_assignsubmission_file_/patchify.ipynb", json.dumps(notebook(STUDENTS["emil"])))
    course.command("zip_collect", "patchify", module="nbgrader")
    course.run("grade")
    assert course.verdict("41")["score"] == 12
    assert course.verdict("42")["score"] == pytest.approx(8 + 4 * 2 / 9)


@contextlib.contextmanager
def formgrader(course):
    """A Jupyter server with nbgrader's formgrader on a course; yields a function that asks it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyter", "server", "--allow-root", "--no-browser", f"--port={port}",
         "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True",
         f"--ServerApp.root_dir={course.folder}",
         '--ServerApp.jpserver_extensions={"nbgrader.server_extensions.formgrader": True}'],
        cwd=course.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def ask(path, data=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/formgrader/{path}", data and json.dumps(data).encode(), method=data and "PUT"
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.read().decode()

    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            assert server.poll() is None, server.stderr.read()
            time.sleep(0.1)
        yield ask
    finally:
        server.terminate()
        server.communicate()


def test_formgrader_shows_our_grades_and_ours_keeps_what_is_given_there(course):
    hand_in(course.folder)
    for student in ("ada", "emil"):
        course.run("grade", "--student", student)
    with formgrader(course) as ask:
        shown = {one["student"]: one for one in json.loads(ask("api/submitted_notebooks/patchify/patchify"))}
        assert set(shown) == {"ada", "emil"}
        assert (shown["ada"]["score"], shown["ada"]["max_score"]) == (12, 12)
        assert shown["emil"]["score"] == pytest.approx(8 + 4 * 2 / 9)
        page = ask(f"submissions/{shown['emil']['id']}/")
        assert "patch_embed_conv" in page
        grades = json.loads(ask(f"api/grades?submission_id={shown['emil']['id']}"))
        (grade,) = (one for one in grades if one["name"] == "check_patch_embed_conv")
        assert grade["auto_score"] == pytest.approx(4 * 2 / 9)
        ask(f"api/grade/{grade['id']}", {"manual_score": 3.5})
    course.run("grade", "--force", "--student", "emil")
    with course.gradebook() as book:
        assert book.find_submission("patchify", "emil").score == pytest.approx(8 + 3.5)
