"""One writer at a time in the folder of a class, and the log of what it does."""

import contextlib
import fcntl
import logging

from autograder import clean
from autograder.grading.classroom import LOG, CommandError

log = logging.getLogger("autograder")


@contextlib.contextmanager
def only_writer(classroom):
    """Keep a second run off the same class."""
    for folder in (classroom.folder("autograded"), classroom.folder("feedback")):
        folder.mkdir(parents=True, exist_ok=True)
        classroom.close(folder)
    with open(classroom.folder("autograded") / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandError("another run is grading this course: wait for it, or end it") from None
        yield


class _OneLine(logging.Formatter):
    def format(self, record):
        return clean.line(super().format(record))


@contextlib.contextmanager
def logging_to(classroom):
    """Keep a log that a teacher can send on: `autograded/grading.log`."""
    handler = logging.FileHandler(classroom.folder("autograded") / LOG, encoding="utf-8")
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    except BaseException as error:
        log.error("%s: %s", type(error).__name__, error)
        raise
    finally:
        log.removeHandler(handler)
        handler.close()
