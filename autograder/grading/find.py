"""Finding what was handed in, and in each folder the notebook that counts.

It is `<assignment>.ipynb`, unless that is missing, cannot be read or holds nothing written while another notebook in
the folder does; of several others the one with most functions written counts, then the newest, then the first by name.
"""

import contextlib
import errno
import hashlib
import os
import stat
import time
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path

from autograder import clean
from autograder.grading.classroom import LOG, CommandError
from autograder.grading.grade import fault
from autograder.judging.exercise import CHAPTERS
from autograder.notebooks.read import MAX_FILE, TOO_LARGE, NotReadable, bounded, inspect

MAX_ID = 128  # characters of a student's id, as nbgrader has it
NO_ID = set('<>"\\')  # formgrader writes an id as it is into its pages and, between these quotes, into their scripts
MAX_NOTEBOOKS = 20  # looked at in one folder
MAX_ENTRIES = 5000  # files and folders in one submission
MAX_DEPTH = 20  # folders within one another
LOOKING = 5.0  # seconds that choosing among several notebooks may take
NBGRADERS_OWN = ("timestamp.txt", "submission_secret.txt")  # what `nbgrader collect` puts beside a notebook


@dataclass(frozen=True)
class Handed:
    """What a student handed in for an assignment.

    Attributes
    ----------
    student : str
    assignment : str or None
        None where the student's own folder cannot be looked into, so that nobody knows.
    folder : Path
    path : Path or None
        The notebook; None where none can be graded.
    sha256 : str
        Of its bytes.
    size : int
        How many there are.
    seed : int
        The student's.
    problem : str
        Why there is no notebook, or "".
    fault : str
        What of ours failed while it was looked for, or "".
    notes : tuple of str
        How it was chosen, where that was not plain.
    moved : bool
        Whether the class has released the chapter with exercises that are in another one today.
    """

    student: str
    assignment: str | None
    folder: Path
    seed: int
    path: Path | None = None
    sha256: str = ""
    size: int = 0
    problem: str = ""
    fault: str = ""
    notes: tuple = ()
    moved: bool = False


def find(classroom, submitted, assignment, student, seed):
    """The submissions in nbgrader's folders, `submitted/<student>/<assignment>/`."""
    if not submitted.is_dir():
        raise CommandError(f"there is no folder {submitted}")
    handed_in, passed_over = [], []
    moved = {chapter for chapter in CHAPTERS if classroom.released_moved(chapter)}
    for home in sorted(submitted.iterdir()):
        if home.name.startswith(".") or (student and home.name != student):
            continue
        try:
            found, passed = _look(classroom, home, assignment, seed)
        except NotReadable as reason:
            found, passed = [_unopened(home, assignment, seed, problem=str(reason))], []
        except OSError as error:
            found, passed = [_unopened(home, assignment, seed, problem=_why(error))], []
        except Exception as error:
            found, passed = [_unopened(home, assignment, seed, fault=fault("looking into it", error))], []
        handed_in += found
        passed_over += passed
    if passed_over:
        clean.say("Passed over (what is graded lies in <student>/<chapter>/):",
                  *(f"  {told}" for told in passed_over), error=True)  # fmt: skip
    if not handed_in:
        whose = f" of {student}" if student else ""
        what = f" for {assignment}" if assignment else ""
        raise CommandError(f"no submission{whose}{what} in {submitted}")
    return [replace(handed, moved=handed.assignment in moved) for handed in handed_in]


def _look(classroom, home, assignment, seed):
    """What a student handed in, and what in the folder is passed over."""
    mode = home.lstat().st_mode
    shown = clean.name(home)
    if not (stat.S_ISDIR(mode) or (stat.S_ISLNK(mode) and home.is_dir())):
        return [], [f"{shown}: no student's folder"]
    if home.name != shown.strip() or len(home.name) > MAX_ID or home.name == LOG or NO_ID & set(home.name):
        return [], [f"{shown}: its name cannot be a student's id; rename it"]
    if stat.S_ISLNK(mode):
        problem = "the folder is a link: put the folder itself here"
        return [_unopened(home, assignment, seed, problem=problem)], []
    entries = [entry for entry in sorted(_entries(home, MAX_ENTRIES)) if entry.name[0] != "."]
    if not entries:
        return [], [f"{shown}: the folder is empty"]
    folders = [entry for entry in entries if entry.name in CHAPTERS and entry.is_dir()]
    passed = [
        f"{shown}/{clean.name(entry)}: no chapter's folder"
        for entry in entries
        if entry not in folders and (not folders or entry.suffix.lower() == ".ipynb" or entry.is_dir())
    ]
    if len(passed) > MAX_NOTEBOOKS:
        passed[MAX_NOTEBOOKS:] = [f"{shown}: and {len(passed) - MAX_NOTEBOOKS} more"]
    seed = classroom.seed_for(home.name, seed)
    return [_chosen(home.name, one, seed) for one in folders if assignment in (None, one.name)], passed


def _chosen(student, folder, seed):
    """`_choose`, whatever comes of it."""
    try:
        return _choose(student, folder, seed)
    except NotReadable as reason:
        return Handed(student, folder.name, folder, seed, problem=str(reason))
    except OSError as error:
        return Handed(student, folder.name, folder, seed, problem=_why(error))
    except Exception as error:
        return Handed(student, folder.name, folder, seed, fault=fault("choosing its notebook", error))


def _unopened(home, assignment, seed, *, problem="", fault=""):
    """A student whose folder cannot be looked into."""
    return Handed(home.name, assignment, home, seed, problem=problem, fault=fault)


def _why(error):
    return f"the folder cannot be read ({error.strerror or error}): look at its permissions"


def _choose(student, folder, seed):
    """The notebook of a submission, by the rule above."""
    if folder.is_symlink():  # to the folder of another student, perhaps
        raise NotReadable("the folder is a link: hand in the notebook itself")
    found, others = _notebooks(folder)
    if not found:
        raise NotReadable(f"there is no notebook in the folder{': only ' if others else ''}{', '.join(others)}")
    notes, path = (), found[0]
    if len(found) > 1:
        end = time.monotonic() + LOOKING
        path = min(found, key=lambda path: _rank(path, folder, end))
        rest = ", ".join(clean.name(other) for other in found if other != path)
        notes = (f"several notebooks in the folder: {clean.name(path)} was read, not {rest}",)
    data = file_bytes(path, folder)
    return Handed(student, folder.name, folder, seed, path, hashlib.sha256(data).hexdigest(), len(data), notes=notes)


def _notebooks(folder):
    """The notebooks of a submission, those in its own folder before those in folders below, and some other names."""
    left, found, others, count = deque([(folder, 0)]), [], [], 0
    while left and not found:
        level, left = left, deque()  # level by level
        for inside, depth in level:
            for entry in sorted(_entries(inside, MAX_ENTRIES - count)):
                count += 1
                if entry.is_dir() and not entry.is_symlink() and entry.suffix.lower() != ".ipynb":
                    if depth < MAX_DEPTH and entry.name != ".ipynb_checkpoints":
                        left.append((entry, depth + 1))
                elif entry.suffix.lower() == ".ipynb" and entry.name[0] != ".":
                    found.append(entry)
                if inside == folder and entry.name not in NBGRADERS_OWN:
                    others.append(clean.name(entry))
    found.sort(key=lambda path: (path.name != f"{folder.name}.ipynb", path))
    return found[:MAX_NOTEBOOKS], others[:5]


def _entries(folder, most):
    """What a folder holds, no link followed on the way and no more than may be there."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found.append(folder / entry.name)
            if len(found) > most:
                raise NotReadable(f"there are more than {MAX_ENTRIES:,} files in it: hand in the notebook alone")
    return found


def _rank(path, folder, end):
    """How far a notebook is from being the one that counts; those that time does not suffice for come last."""
    written, readable, looked_at = 0, False, time.monotonic() < end
    if looked_at:
        with contextlib.suppress(NotReadable):
            found = inspect(file_bytes(path, folder), folder.name, clean.name(path))
            written = sum(exercise["written"] for exercise in found["exercises"])
            readable = found["status"] == "readable"
    named = path.name == f"{folder.name}.ipynb"
    return (not (named and written), -written, not readable, not named, -path.lstat().st_mtime, path.name)


def file_bytes(path, folder):
    """A file of a submission: no pipe, no link on the way to it, and no more than a notebook may have.

    The way begins at the student's folder, of which `folder` is a part: where students make their own folders, that
    can have become a link, too.
    """
    home = folder.parent
    try:
        handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        for part in path.relative_to(home).parts:
            above = handle
            try:
                handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above)
            finally:
                os.close(above)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise NotReadable(f"{clean.name(path)} cannot be opened ({reason})") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotReadable(f"{clean.name(path)} is no file")
    try:
        with open(handle, "rb") as file:
            data = bounded(file)
    except OSError as error:
        raise NotReadable(f"{clean.name(path)} cannot be read ({error.strerror})") from error
    if len(data) > MAX_FILE:
        raise NotReadable(f"{clean.name(path)} {TOO_LARGE}")
    return data


def timestamp(one):
    """When it was handed in, by the `timestamp.txt` that nbgrader's collect leaves, or None."""
    with contextlib.suppress(NotReadable, UnicodeDecodeError):
        return clean.line(file_bytes(one.folder / "timestamp.txt", one.folder).decode("utf-8")[:100]) or None
    return None
