"""Processes of our own that grade, each one submission after the other.

Each is reached by a pair of sockets that only it and we hold: no port, no file, nothing that another account of the
machine could speak to. One that dies or does not answer takes no other submission with it.
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from multiprocessing.connection import Connection

from autograder.grading.grade import close_sandbox, fault, grade_task, not_graded, prove_sandbox
from autograder.sandbox.host import SandboxUnavailable

AHEAD = 2  # submissions for each worker that are at hand, so that none is idle
GRACE = 120.0  # seconds beyond what a notebook may take twice: then the grader itself is stuck
PR_SET_PDEATHSIG = 1  # Linux's number for it
TRIES = 2  # for a submission whose worker is lost


class Lost(Exception):
    """A worker has ended, or was ended; the text says how."""


def spread(todo, task, limits, count):
    """Grade submissions on worker processes.

    Parameters
    ----------
    todo : list of Handed
    task : function
        `task(handed)` gives the `Task`.
    limits : Limits
    count : int
        Of the workers.

    Yields
    ------
    handed, verdict, submission, seconds
        In the order in which they are done.

    Raises
    ------
    SandboxUnavailable
        Nothing can be graded here.
    """
    crew = _Crew(limits)
    left, doing = iter(todo), {}
    with contextlib.closing(crew), ThreadPoolExecutor(count) as threads:
        try:
            while True:
                while len(doing) < AHEAD * count and (handed := next(left, None)) is not None:
                    doing[threads.submit(crew.grade, handed, task)] = handed
                if not doing:
                    return
                for done in wait(doing, return_when=FIRST_COMPLETED).done:
                    yield doing.pop(done), *done.result()
        finally:  # where the run was stopped, too
            for waiting in doing:
                waiting.cancel()
            crew.close()


class _Crew:
    """The workers, one for each thread that asks; each is started when it is first needed."""

    def __init__(self, limits):
        self.limits, self.mine = limits, threading.local()
        self.scratch = tempfile.TemporaryDirectory(prefix="grading-", ignore_cleanup_errors=True)
        self.all, self.lock, self.closed = [], threading.Lock(), False
        self.proved = False

    def grade(self, handed, task):
        try:
            made = task(handed)
            for _ in range(TRIES):
                try:
                    return self._worker().grade(made)
                except Lost as error:
                    lost = error
            reason = f"its process was lost each time it was graded: {lost}"
        except SandboxUnavailable as error:
            if not self.proved:
                raise
            reason = f"the sandbox could not be had: {error}"
        except Exception as error:
            reason = fault("the grader", error)
        return not_graded(reason, assignment=handed.assignment, seed=handed.seed, limits=self.limits), None, 0.0

    def _worker(self):
        worker = getattr(self.mine, "worker", None)
        if worker is None or worker.process.poll() is not None:
            with self.lock:
                if self.closed:
                    raise Lost("the run was stopped")
                worker = self.mine.worker = Worker(self.limits, self.scratch.name)
                self.all.append(worker)
            worker.begin()
            self.proved = True
        return worker

    def close(self):
        with self.lock:
            self.closed = True
        for worker in self.all:
            worker.kill()
        self.scratch.cleanup()


class Worker:
    """A process that grades, and how it is asked.

    Parameters
    ----------
    limits : Limits
    scratch : str
        A folder for what it makes: it is killed in the end, and leaves that behind.
    """

    def __init__(self, limits, scratch):
        self.limits = limits
        ours, theirs = socket.socketpair()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({theirs.fileno()})"
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                pass_fds=[theirs.fileno()],
                env=os.environ | {"TMPDIR": scratch},
                start_new_session=True,  # Ctrl-C is ours
            )
        self.connection = Connection(ours.detach())

    def begin(self):
        """Wait until it has shown that it can grade.

        Raises
        ------
        SandboxUnavailable
        """
        unavailable = self._ask(self.limits, GRACE)
        if unavailable:
            self.kill()
            raise SandboxUnavailable(unavailable)

    def grade(self, task):
        """Grade a `Task`: (verdict, submission, seconds).

        Raises
        ------
        Lost
            It ended or did not answer; it is killed then.
        """
        return self._ask(task, 2 * 24 * self.limits.time_limit + GRACE)

    def _ask(self, question, patience):
        try:
            self.connection.send(question)
            if not self.connection.poll(patience):
                raise Lost(f"it did not answer within {patience:g} s")
            return self.connection.recv()
        except Lost:
            self.kill()
            raise
        except (OSError, EOFError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
            self.errors.seek(0)
            words = self.errors.read()[-2000:].decode(errors="replace").strip().split("\n")[-1]
            status = self.process.poll()
            self.kill()
            raise Lost(words or f"it ended with status {status}: has the machine enough memory?") from error

    def kill(self):
        """End it, and with it the sandbox that it holds."""
        self.process.kill()
        self.process.wait()


def serve(handle):
    """Grade what is asked for, until nobody asks: the program of a worker."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("500")  # when memory runs out, it is a worker that goes, and not who writes the grades down
    # A command that is killed takes its workers along: one may be busy for minutes before it sees that nobody asks.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    connection = Connection(handle)
    try:
        limits = connection.recv()
        try:
            prove_sandbox(limits)
        except SandboxUnavailable as error:
            return connection.send(str(error))
        connection.send(None)
        while True:
            connection.send(grade_task(connection.recv(), limits))
    except (EOFError, BrokenPipeError):  # whoever asked has ended
        pass
    finally:
        close_sandbox()
        os._exit(0)
