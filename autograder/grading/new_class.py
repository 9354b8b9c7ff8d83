"""A folder for a class: the notebooks to hand out, and a configuration with a secret seed and the course's version."""

import re
import secrets
import shutil

from autograder.course import ROOT, version
from autograder.grading.classroom import CommandError, remember


def handout():
    """The folder with what a class begins with: its configuration and the notebooks in `exercises/`."""
    installed = ROOT / "autograder" / "handout"
    return installed if installed.is_dir() else ROOT  # a clone, of which the wheel has a copy


def new_class(folder):
    """Make the folder of a class.

    Its `nbgrader_config.py` is the course's own, with a seed that nobody else knows and the version of the course
    that the class begins with, so that no update changes grades unasked.

    Parameters
    ----------
    folder : Path
        It must not exist, or be empty.

    Raises
    ------
    CommandError
        If there is something in the folder.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} is not empty: name a new folder")
    settings = {"seed": secrets.randbits(128), "course_version": version()}
    text = (handout() / "nbgrader_config.py").read_text("utf-8")
    for name, value in settings.items():
        text, found = re.subn(rf"(?m)^c\.Autograder\.{name} = \S+", f"c.Autograder.{name} = {value!r}", text)
        assert found == 1, name
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # what students hand in is between them and you
    shutil.copytree(handout() / "exercises", folder / "exercises", dirs_exist_ok=True)
    (folder / "nbgrader_config.py").write_text(text, encoding="utf-8")
    (folder / "nbgrader_config.py").chmod(0o600)  # the seed is a secret
    remember(folder)
