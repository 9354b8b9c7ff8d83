"""A course as nbgrader has it: the folder that the commands are run in, with `nbgrader_config.py`."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from traitlets.config import Config, PyFileConfigLoader

from autograder.filter import ALL, ON_REQUEST


def _is_text(value):
    return isinstance(value, str)


def _are_calls(value):
    return value == ALL or (isinstance(value, (list, tuple, set)) and all(name in ON_REQUEST for name in value))


STEPS = ("source", "release", "submitted", "autograded", "feedback")
SETTINGS = {  # those that are read here: what is right, and in words
    "Autograder.seed": (lambda value: type(value) is int and value >= 0, "a whole number, 0 or more"),
    "Autograder.book": (_is_text, "text"),
    "Autograder.course_version": (_is_text, "text"),
    "Autograder.allowed_system_calls": (_are_calls, f"a list of names from {', '.join(sorted(ON_REQUEST))}; or 'all'"),
    "CourseDirectory.course_id": (_is_text, "text"),
    "CourseDirectory.db_url": (
        lambda value: _is_text(value) and "://" in value,
        "a URL such as sqlite:///gradebook.db",
    ),
    **{f"CourseDirectory.{step}_directory": (_is_text, "the name of a folder") for step in STEPS},
}


class CommandError(Exception):
    """Something cannot be done; the text says why, in one line."""


@dataclass(frozen=True)
class Course:
    """Folders and settings of a course.

    Attributes
    ----------
    root : Path
    config : traitlets Config
        All of `nbgrader_config.py`; nbgrader's own parts are given it.
    """

    root: Path
    config: Config

    @classmethod
    def here(cls):
        """The course in the current folder."""
        root = Path.cwd()
        if not (root / "nbgrader_config.py").exists():
            return cls(root, Config())
        try:
            config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
        except Exception as error:  # it is a program, and may do anything
            raise CommandError(f"nbgrader_config.py: {type(error).__name__}: {error}") from error
        for setting, (right, wanted) in SETTINGS.items():
            section, name = setting.split(".")
            if name in config[section] and not right(config[section][name]):
                value = config[section][name]
                raise CommandError(f"nbgrader_config.py: c.{setting} = {value!r}, which must be {wanted}")
        return cls(root, config)

    def folder(self, step):
        """The folder of one of nbgrader's steps, which are STEPS."""
        return self.root / self.config.CourseDirectory.get(f"{step}_directory", step)

    @property
    def course_id(self):
        return self.config.CourseDirectory.get("course_id", "") or "default_course"

    @property
    def gradebook(self):
        """The URL of the gradebook."""
        return self.config.CourseDirectory.get("db_url", f"sqlite:///{self.root / 'gradebook.db'}")

    @property
    def seed(self):
        """What hidden cases are drawn from. A class keeps its own secret: `c.Autograder.seed`."""
        return self.config.Autograder.get("seed", 0)

    def seed_for(self, student, seed):
        """The seed of a student: the class's, or one of their own where `c.Autograder.seed_per_student` is set."""
        if not self.config.Autograder.get("seed_per_student", False):
            return seed
        return int.from_bytes(hashlib.sha256(f"{seed} {student}".encode()).digest()[:4])

    @property
    def allowed_system_calls(self):
        """What submissions may ask of the kernel beside the usual: `c.Autograder.allowed_system_calls`."""
        calls = self.config.Autograder.get("allowed_system_calls", ())
        return calls if calls == ALL else tuple(sorted(calls))

    @property
    def course_version(self):
        """The version of the course that a class keeps to, or "" for any: `c.Autograder.course_version`."""
        return self.config.Autograder.get("course_version", "")

    @property
    def book(self):
        """Where the book lies on the web, for the links in the feedback, or "": `c.Autograder.book`."""
        return self.config.Autograder.get("book", "")
