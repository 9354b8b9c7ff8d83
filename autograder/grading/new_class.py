"""A folder for a class: the notebooks to hand out, and a configuration with a secret seed and the course's version."""

import re
import secrets
import shutil

from autograder.course import ROOT, version
from autograder.grading.classroom import CommandError, remember


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
        If there is something in the folder, or this is not a clone of the course.
    """
    config = ROOT / "nbgrader_config.py"
    if not config.exists():
        raise CommandError("a class is made from a clone of the course, and this is an installed package")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} is not empty: name a new folder")
    settings = {"seed": secrets.randbits(128), "course_version": version()}
    text = config.read_text("utf-8")
    for name, value in settings.items():
        text, found = re.subn(rf"(?m)^c\.Autograder\.{name} = \S+", f"c.Autograder.{name} = {value!r}", text)
        assert found == 1, name
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # what students hand in is between them and you
    shutil.copytree(ROOT / "exercises", folder / "exercises", dirs_exist_ok=True)
    (folder / "nbgrader_config.py").write_text(text, encoding="utf-8")
    (folder / "nbgrader_config.py").chmod(0o600)  # the seed is a secret
    remember(folder)
