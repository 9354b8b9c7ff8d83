"""The folder of a class, which nbgrader calls a course: its `nbgrader_config.py`, its folders, its settings."""

import contextlib
import functools
import grp
import hashlib
import json
import os
import pwd
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self, TypeGuard

from traitlets import Bool, Enum, Int, List, Set, TraitError, Unicode, Union, validate
from traitlets.config import Config, Configurable
from traitlets.config.loader import PyFileConfigLoader
from traitlets.utils.bunch import Bunch

from autograder import clean
from autograder.course import ROOT
from autograder.judging.exercise import moved_from
from autograder.sandbox.filter import ALL, ON_REQUEST


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def _group_id(name: str) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid
    except (KeyError, TypeError, ValueError):
        return None


CONFIG = "nbgrader_config.py"
TRUST = "AUTOGRADER_TRUST"  # an account whose configuration is run as if it were one's own
LOG = "grading.log"  # in autograded/, among the students' folders
STEPS = ("source", "release", "submitted", "autograded", "feedback")
NBGRADERS: dict[
    str, tuple[Callable[[object], bool], str]
] = {  # those of nbgrader's settings that are read here: what is right, and in words
    "CourseDirectory.course_id": (_is_text, "text"),
    "CourseDirectory.db_url": (
        lambda value: _is_text(value) and "://" in value,
        "a URL such as sqlite:///gradebook.db",
    ),
    **{f"CourseDirectory.{step}_directory": (_is_text, "the name of a folder") for step in STEPS},
}


class CommandError(Exception):
    """Something cannot be done; the text says why, in one line."""


class Autograder(Configurable):
    """The settings `c.Autograder` of `nbgrader_config.py`. What is right for each stands in its help."""

    seed = Int(0, min=0, help="a whole number, 0 or more").tag(config=True)
    seed_per_student = Bool(False, help="True or False, without quotation marks").tag(config=True)
    group = Unicode("", help="a group of this machine, or ''").tag(config=True)
    course_version = Unicode("", help="a version of the course as text, or ''").tag(config=True)
    book = Unicode("", help="an address that begins with https:// or http://, or ''").tag(config=True)
    allowed_system_calls = Union(
        [Enum([ALL]), List(Enum(sorted(ON_REQUEST))), Set(Enum(sorted(ON_REQUEST)))],
        default_value=[],
        help=f"a list of names from {', '.join(sorted(ON_REQUEST))}; or 'all'",
    ).tag(config=True)

    @validate("seed")
    def _no_truth_value(self, proposal: Bunch) -> Any:
        if isinstance(proposal.value, bool):
            raise TraitError
        return proposal.value

    @validate("group")
    def _of_this_machine(self, proposal: Bunch) -> Any:
        if proposal.value and _group_id(proposal.value) is None:
            raise TraitError
        return proposal.value

    @validate("book")
    def _on_the_web(self, proposal: Bunch) -> Any:
        if proposal.value and not proposal.value.startswith(("https://", "http://")):
            raise TraitError
        return proposal.value

    @classmethod
    def read(cls, config: Config) -> Self:
        """The settings that a configuration makes.

        Raises
        ------
        CommandError
            One has a name that is not known, or a value that is not right.
        """
        known = cls.class_trait_names(config=True)
        for section, made in config.items():
            ours = [f"c.Autograder.{name}" for name in known if isinstance(made, Config) and name in made]
            alike = get_close_matches(section.casefold(), ["autograder"], cutoff=0.8)
            # nbgrader has an Autograde of its own, with other settings.
            if section != "Autograder" and alike and (ours or section not in ("Autograde", "AutogradeApp")):
                meant = " and ".join(ours) or "c.Autograder"
                raise CommandError(f"{CONFIG}: c.{section} is not where settings are read; did you mean {meant}?")
        settings = cls()
        for name, value in config.Autograder.items():
            if name not in known:
                alike = get_close_matches(name.casefold(), known, n=1)
                helps = f"did you mean c.Autograder.{alike[0]}?" if alike else f"there are {', '.join(sorted(known))}"
                raise CommandError(f"{CONFIG}: c.Autograder.{name} = {value!r}: there is no such setting; {helps}")
            try:
                setattr(settings, name, value)
            except TraitError:
                wanted = cls.class_traits()[name].help
                raise CommandError(f"{CONFIG}: c.Autograder.{name} = {value!r}, which must be {wanted}") from None
        return settings


@dataclass(frozen=True)
class Classroom:
    """Folders and settings of a class.

    Attributes
    ----------
    root : Path
    config : traitlets Config
        All of `nbgrader_config.py`; nbgrader's own parts are given it.
    """

    root: Path
    config: Config

    @classmethod
    def here(cls) -> Self:
        """The class in the current folder.

        Raises
        ------
        CommandError
            Its `nbgrader_config.py`, which is a program, may be somebody else's, or is broken.
        """
        root = Path.cwd()
        if not (root / CONFIG).exists():
            return cls(root, Config())
        _see_that_it_is_ours(root)
        remember(root)
        try:
            with _modules_of(root):
                config = PyFileConfigLoader(CONFIG, path=str(root)).load_config()
        except Exception as error:  # it is a program, and may do anything
            raise CommandError(f"nbgrader_config.py: {type(error).__name__}: {error}") from error
        for setting, (right, wanted) in NBGRADERS.items():
            section, name = setting.split(".")
            if name in config[section] and not right(config[section][name]):
                value = config[section][name]
                raise CommandError(f"nbgrader_config.py: c.{setting} = {value!r}, which must be {wanted}")
        classroom = cls(root, config)
        classroom.settings  # noqa: B018, what is wrong is told before anything is done
        return classroom

    @classmethod
    def known(cls) -> Self:
        """The class in the current folder, if this account made or graded one here before.

        Any other folder may be somebody's who made it look like a class: nothing in it is run.
        """
        root = Path.cwd()
        if (root / CONFIG).exists() and not _is_known(root):
            clean.say(
                f"warning: no class of yours was made or graded in this folder; its {CONFIG} is not read, and the seed "
                "is --seed or 0. Is it yours? `grade --dry-run` here says so",
                error=True,
            )
            return cls(root, Config())
        return cls.here()

    def plugins(self) -> AbstractContextManager[None]:
        """A context in which a plugin is found that lies in the class's folder, as one for late penalties may."""
        return _modules_of(self.root)

    @functools.cached_property
    def settings(self) -> Autograder:
        """The settings `c.Autograder`, as `Autograder.read` checks them."""
        return Autograder.read(self.config)

    def folder(self, step: str) -> Path:
        """The folder of one of nbgrader's steps, which are STEPS."""
        name: str = self.config.CourseDirectory.get(f"{step}_directory", step)
        return self.root / name

    def released_moved(self, chapter: str) -> bool:
        """Whether the class's own notebook of a chapter has exercises that are in another one today.

        What a class has released is asked of the class: else one student's notebook would change what all can earn.
        """
        checks = {f"check_{name}" for name in moved_from(chapter)}
        for step in ("source", "release") if checks else ():
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # none is there, or it is damaged
                cells = json.loads((self.folder(step) / chapter / f"{chapter}.ipynb").read_text("utf-8"))["cells"]
                if checks & {
                    cell["metadata"]["nbgrader"]["grade_id"] for cell in cells if "nbgrader" in cell["metadata"]
                }:
                    return True
        return False

    @property
    def course_id(self) -> str:
        return self.config.CourseDirectory.get("course_id", "") or "default_course"

    @property
    def gradebook(self) -> str:
        """The URL of the gradebook."""
        url: str = self.config.CourseDirectory.get("db_url", f"sqlite:///{self.root / 'gradebook.db'}")
        return url

    @property
    def seed(self) -> int:
        """What hidden cases are drawn from. A class keeps its own secret: `c.Autograder.seed`."""
        return self.settings.seed

    def seed_for(self, student: str, seed: int) -> int:
        """The seed of a student: the class's, or one of their own where `c.Autograder.seed_per_student` is set."""
        if not self.settings.seed_per_student:
            return seed
        size = 4 if seed < 1 << 32 else 16  # as large as the class's: those of old classes stay what they were
        return int.from_bytes(hashlib.sha256(f"{seed} {student}".encode()).digest()[:size])

    @property
    def allowed_system_calls(self) -> tuple[str, ...] | str:
        """What submissions may ask of the kernel beside the usual: `c.Autograder.allowed_system_calls`."""
        calls = self.settings.allowed_system_calls
        return calls if calls == ALL else tuple(sorted(calls))

    @property
    def course_version(self) -> str:
        """The version of the course that a class keeps to, or "" for any: `c.Autograder.course_version`."""
        return self.settings.course_version

    @property
    def book(self) -> str:
        """Where the book lies on the web, for the links in the feedback, or "": `c.Autograder.book`."""
        return self.settings.book

    @property
    def group(self) -> int | None:
        """The id of the group that may read and write the class's files, or None: `c.Autograder.group`."""
        return _group_id(self.settings.group)

    @contextlib.contextmanager
    def private(self) -> Iterator[None]:
        """What is written meanwhile is for its owner, and for the class's group where it has one."""
        before = os.umask(0o077 if self.group is None else 0o007)
        try:
            yield
        finally:
            os.umask(before)

    def close(self, *paths: Path) -> None:
        """Close files and folders to other accounts, with what lies in them: no one comes through a closed folder.

        What belongs to a colleague stays as it is.
        """
        for path in paths:
            with contextlib.suppress(FileNotFoundError, PermissionError):
                if self.group is None:
                    path.chmod(0o700 if path.is_dir() else 0o600)
                elif path.stat().st_gid != self.group or path.stat().st_mode & 0o007:
                    for one in (path, *(path.rglob("*") if path.is_dir() else ())):
                        if not one.is_symlink():
                            os.chown(one, -1, self.group)
                            one.chmod(0o2770 if one.is_dir() else 0o660)


def is_open(path: Path) -> bool:
    """Whether every account of the machine can read a file or a folder."""
    with contextlib.suppress(OSError):
        ways = all(parent.stat().st_mode & stat.S_IXOTH for parent in path.absolute().parents)
        return ways and bool(path.stat().st_mode & stat.S_IROTH)
    return False


def _known_classes() -> Path:
    """The file that names the folders of this account's classes, a line for each."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():  # as the specification has it: else each folder could bring a list of its own
        state = Path.home() / ".local" / "state"
    return state / "autograder" / "classes"


def remember(root: Path) -> None:
    """Note that a folder is a class of this account's: from now on all commands run its configuration."""
    if not _is_known(root):
        with contextlib.suppress(OSError, RuntimeError):  # no home, or not to be written: then it stays unknown
            _known_classes().parent.mkdir(parents=True, exist_ok=True)
            with open(os.open(_known_classes(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w") as file:
                file.write(json.dumps(str(root.resolve())) + "\n")


def _is_known(root: Path) -> bool:
    if root.resolve() == ROOT:  # the clone of the course: what would read it lies there, too
        return True
    with contextlib.suppress(OSError, RuntimeError):
        return json.dumps(str(root.resolve())) in _known_classes().read_text("ascii", "replace").splitlines()
    return False


@contextlib.contextmanager
def _modules_of(folder: Path) -> Iterator[None]:
    """Find the modules of a folder meanwhile, after all others: they stand for nothing installed.

    Nor for what is not, and is looked for all the same: packages try many that would make them faster.
    """
    before = sys.path[:]
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path[:] = before


def _see_that_it_is_ours(root: Path) -> None:
    """Refuse a configuration that somebody else may have written, or that lies among what students handed in."""
    about, folder = (root / CONFIG).stat(), root.stat()
    # A link to a program of ours, among modules of whoever made it, would run theirs; so would a folder of theirs.
    for what, one in ((CONFIG, about), (CONFIG, (root / CONFIG).lstat()), ("its folder", folder)):
        owner = _account(one.st_uid)
        if one.st_uid not in (os.geteuid(), 0) and owner != os.environ.get(TRUST):
            raise CommandError(
                f"{what} belongs to {owner}, and {CONFIG} is a program: it is run when it is yours, or when you say "
                f"that you trust whoever wrote it ({TRUST}={owner})"
            )
    if about.st_mode & stat.S_IWOTH or (folder.st_mode & (stat.S_IWOTH | stat.S_ISVTX)) == stat.S_IWOTH:
        raise CommandError(f"every account can write {CONFIG} or its folder, and it is a program: chmod o-w . {CONFIG}")
    for above in root.parents:
        if (above / CONFIG).exists() and root.relative_to(above).parts[0] in (*STEPS[2:], "downloaded"):
            raise CommandError(f"this folder is part of the class in {above}, and its {CONFIG} is not run: go there")


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
