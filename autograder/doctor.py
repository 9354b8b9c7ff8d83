"""What works on this machine."""

import importlib.metadata
import os
import platform
import sys

from autograder.course import CommandError
from autograder.exercise import CHAPTERS
from autograder.sandbox import Sandbox, SandboxFailed, SandboxUnavailable


def doctor(options, course):
    """Print a line for each thing that grading needs; returns 1 if submissions cannot be graded here."""
    print(f"python      {platform.python_version()} ({sys.executable})")
    for package in ("numpy", "scipy", "nbgrader", "dask", "distributed", "torch"):
        try:
            print(f"{package:<11} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            print(f"{package:<11} not installed{' (only small_vit needs it)' if package == 'torch' else ''}")
    print(f"cores       {os.cpu_count()}")
    missing = [name for name in CHAPTERS if not (course.folder("release") / name / f"{name}.ipynb").exists()]
    where = f"missing in {course.folder('release')}: {', '.join(missing)}"
    print(f"exercises   {where if missing else 'all there'}")
    works = _isolation() and _gradebook(options, course)
    print("grading     works" if works else "grading     does not work: see above")
    return 0 if works else 1


def _isolation():
    try:
        with Sandbox(preload=("numpy",)):
            print(f"isolation   bubblewrap works, as {'root' if os.geteuid() == 0 else 'an ordinary user'}")
            return True
    except (SandboxUnavailable, SandboxFailed) as error:
        print(f"isolation   {error}")
        return False


def _gradebook(options, course):
    url = options.gradebook or course.gradebook
    if url.startswith("sqlite:///") and not os.path.exists(url.removeprefix("sqlite:///")):
        print(f"gradebook   {url} will be made")
        return True
    try:
        from autograder.gradebook import Gradebook

        with Gradebook(course, url) as book:
            print(f"gradebook   {len(book.book.assignments)} assignments, {len(book.book.students)} students")
        return True
    except (CommandError, ImportError) as error:
        print(f"gradebook   {error}")
        return False
