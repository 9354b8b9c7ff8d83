"""A real Dask scheduler and worker processes on loopback, and what happens when they are killed."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from build import EXPECTED, STUDENTS, notebook, submit

from autograder.grading import cluster as spreader

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENT = {**os.environ, "PYTHONPATH": ROOT}
CLASS = 40

pytestmark = pytest.mark.slow


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes = []
        self.scheduler = self.start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-show")

    def start(self, program, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{program}", "--no-dashboard", *arguments],
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def worker(self):
        return self.start("dask_worker", self.address, "--nthreads", "1", "--host", "127.0.0.1")

    def close(self):
        for process in self.processes:
            kill(process)


def kill(process):
    """End a process and all that it started, as a machine does that fails."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def cluster():
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.fixture
def many(course):
    names = [name for name in EXPECTED if name not in ("chen", "karl")]
    for number in range(CLASS):
        name = names[number % len(names)]
        submit(course.folder, f"{name}{number:02}", notebook(STUDENTS.get(name, "")))
    course.run("grade", "--workers", "1")
    course.alone = {path.parent.parent.name: path.read_text() for path in course.folder.glob("autograded/*/*/*.json")}
    (course.folder / "autograded" / "grading.log").unlink()
    return course


def begin(course, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "autograder", "grade", "--force", *arguments],
        cwd=course.folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(course, count, run):
    """Wait until so many submissions are recorded."""
    while graded(course) < count:
        assert run.poll() is None, run.communicate()
        time.sleep(0.02)


def graded(course):
    path = course.folder / "autograded" / "grading.log"
    return len(re.findall(r"patchify: graded", path.read_text())) if path.exists() else 0


def each_once_and_the_same(course):
    import json

    log = (course.folder / "autograded" / "grading.log").read_text()
    for student, text in course.alone.items():
        assert len(re.findall(rf"INFO {student} patchify: graded", log)) == 1, student
        assert course.verdict(student)["score"] == json.loads(text)["score"]
    with course.gradebook() as book:
        for submission in book.find_assignment("patchify").submissions:
            verdict = course.verdict(submission.student_id)
            assert submission.score == pytest.approx(verdict["score"])


def test_a_worker_killed_in_the_middle(many, cluster):
    victim, _ = cluster.worker(), cluster.worker()
    run = begin(many, "--scheduler", cluster.address)
    wait_for(many, 8, run)
    kill(victim)
    out, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors
    assert out.splitlines()[-1] == f"{CLASS} submissions: {CLASS} graded; {CLASS} in this run"
    each_once_and_the_same(many)


def test_the_scheduler_started_again_in_the_middle(many, cluster):
    workers = [cluster.worker(), cluster.worker()]
    run = begin(many, "--scheduler", cluster.address)
    wait_for(many, 8, run)
    for process in (cluster.scheduler, *workers):
        kill(process)
    cluster.scheduler = cluster.start("dask_scheduler", "--host", "127.0.0.1", "--port", str(cluster.port), "--no-show")
    cluster.worker()
    out, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors
    assert out.splitlines()[-1] == f"{CLASS} submissions: {CLASS} graded; {CLASS} in this run"
    each_once_and_the_same(many)


def test_interrupted_and_resumed(many, cluster, interruptible):
    cluster.worker()
    run = begin(many, "--scheduler", cluster.address)
    wait_for(many, 8, run)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=120)
    assert run.returncode == 1
    assert "the same command goes on from there" in errors.splitlines()[-1]
    out = many.command("grade", "--scheduler", cluster.address).stdout
    assert f"{CLASS} graded" in out.splitlines()[-1]


def test_no_scheduler_there(course):
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    done = course.command("grade", "--scheduler", "tcp://127.0.0.1:1", status=1)
    assert "no Dask scheduler answers" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("says", [b"", b"GET / HTTP/1.0\r\n\r\n" * 99, b"\xff" * 99, None])
def test_what_answers_as_no_scheduler_does_is_none(course, monkeypatch, says):
    """A program that takes the connection and says nothing, or something else; and an address of no known kind."""
    monkeypatch.setattr(spreader, "PATIENCE", 3)
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    start = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    connections.append(listening.accept()[0])
                    connections[-1].sendall(says)

        connections = []
        threading.Thread(target=answer, daemon=True).start()
        port = listening.getsockname()[1]
        address = "nothing://here" if says is None else f"tcp://127.0.0.1:{port}"
        done = course.run("grade", "--scheduler", address, status=1)
        listening.shutdown(socket.SHUT_RDWR)
    assert f"no Dask scheduler answers at {address}" in done.stderr
    assert time.monotonic() - start < 25  # the connection is tried again for some seconds; it hung
