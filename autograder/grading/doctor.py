"""What works on this machine, and what mends the rest."""

import contextlib
import importlib
import importlib.metadata
import os
import platform
import shutil
import sys

from autograder import clean
from autograder.course import HEAVY
from autograder.grading.classroom import CommandError, is_open
from autograder.judging.exercise import CHAPTERS, heavy
from autograder.sandbox.host import Sandbox, SandboxFailed, SandboxUnavailable

PACKAGES = ("numpy", "scipy", "nbgrader", "dask", "distributed", *HEAVY)
BROWSERS = ("chromium", "google-chrome", "chromium-browser")


def doctor(options, classroom):
    """Print a line for each thing that grading needs, with what mends it; returns 1 if nothing can be graded here."""
    pip = f"{sys.executable} -m pip install"
    recent = sys.version_info >= (3, 11)
    line("python", f"{platform.python_version()} ({sys.executable})", not recent and "install Python 3.11 or newer")
    for package in PACKAGES:
        try:
            line(package, importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            needed = [chapter for chapter in CHAPTERS if package in heavy(chapter)]
            only = f" (only {' and '.join(needed)} needs it)" if needed else ""
            line(package, f"not installed{only}", f"{pip} {package}")
    line("device", _device())
    line("cores", os.cpu_count())
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    line("browser", browser or "none (only the tests need one)", not browser and "make system")
    missing = [name for name in CHAPTERS if not (classroom.folder("release") / name / f"{name}.ipynb").exists()]
    where = f"missing in {classroom.folder('release')}: {', '.join(missing)}"
    line("exercises", where if missing else "all there", missing and "make exercises, or new-class for a folder")
    parts = [classroom.root / "nbgrader_config.py", *map(classroom.folder, ("submitted", "autograded", "feedback"))]
    read = ", ".join(clean.name(part) for part in parts if is_open(part))
    line("files", f"every account can read {read}" if read else "closed to other accounts", read and "chmod go-rwx .")
    works = _isolation(classroom) and _gradebook(options, classroom)
    line("grading", "works" if works else "does not work: see above")
    return 0 if works else 1


def line(what, found, mend=None):
    """Print what was found and, where something is amiss, what mends it."""
    clean.say(f"{what:<12}{clean.line(found)}")
    if mend:
        clean.say(f"{'':<12}mend it: {mend}")


def _device():
    for package in HEAVY:
        with contextlib.suppress(ImportError):
            cuda = getattr(importlib.import_module(package), "cuda", None)  # to load it takes seconds
            return cuda.get_device_name() if cuda and cuda.is_available() else f"CPU, no GPU that {package} can use"
    return "CPU"


def _isolation(classroom):
    try:
        with Sandbox(system_calls=classroom.allowed_system_calls):
            line("isolation", f"bubblewrap works, as {'root' if os.geteuid() == 0 else 'an ordinary user'}")
            return True
    except (SandboxUnavailable, SandboxFailed) as error:  # it says what mends it
        line("isolation", error)
        return False


def _gradebook(options, classroom):
    url = options.gradebook or classroom.gradebook
    if url.startswith("sqlite:///") and not os.path.exists(url.removeprefix("sqlite:///")):
        line("gradebook", f"{url} will be made")
        return True
    try:
        from autograder.grading.gradebook import Gradebook

        with Gradebook(classroom, url) as book:
            line("gradebook", f"{len(book.book.assignments)} assignments, {len(book.book.students)} students")
        return True
    except (CommandError, ImportError) as error:
        line("gradebook", error)
        return False
