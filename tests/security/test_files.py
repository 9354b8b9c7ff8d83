"""Submissions that read or write what is not theirs."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", ["solutions", "solutions.patchify", "autograder.judging.judge", "autograder.cases"])
def test_reference_cannot_be_imported(attack, module):
    outcome = attack(f"def attack():\n    import {module}\n    return 1.0")
    assert outcome.kind == "raised" and "ModuleNotFoundError" in outcome.bases, outcome


def test_reference_cannot_be_found(attack):
    outcome = attack(
        """
import os
def attack():
    found = []
    for folder, folders, files in os.walk("/"):
        if folder.count("/") > 6 or folder == "/proc":
            folders.clear()
        names = ("patchify.py", "judge.py", "sincos.py")
        found += [os.path.join(folder, name) for name in folders + files if name in names]
    found += [name for name in os.listdir("/course") if name[0] != "_"]
    found += [name for name in os.listdir("/course/inside") if name[0] != "_"]
    if sorted(found) != ["calls.py", "cells.py", "inside", "serve.py", "stand_in.py", "wire.py"]:
        raise RuntimeError(found)
"""
    )
    assert outcome.kind == "returned", outcome


def test_files_outside_cannot_be_read(attack, secret):
    source = "def attack(path):\n    return len(open(path).read())"
    for path in (secret, ROOT / "solutions" / "patchify.py", ROOT / "pyproject.toml", "/etc/passwd", "/etc/shadow"):
        outcome = attack(source, str(path))
        assert outcome.kind == "raised" and "OSError" in outcome.bases, (path, outcome)


def test_files_outside_cannot_be_written(attack, secret):
    source = """
import os, pathlib
def attack(path):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError:
        pass
    pathlib.Path(path).write_text("full marks")
    return 1.0
"""
    attack(source, str(secret))  # a folder of that name can be made in its own /tmp: the fixture looks at ours
    for path in (
        "/home/teacher/.bashrc",
        "/root/.bashrc",
        "/etc/profile",
        "/course/inside/calls.py",
    ):
        outcome = attack(source, str(path))
        assert outcome.kind == "raised" and "OSError" in outcome.bases, (path, outcome)


def test_only_its_own_folders_can_be_written(attack):
    """Not the installed packages, not the interpreter, not the root: else the next submission could be infected."""
    outcome = attack(
        """
import os
def attack():
    written = []
    for folder, folders, files in os.walk("/"):
        if folder.count("/") > 4 or folder == "/proc":
            folders.clear()
        try:
            with open(os.path.join(folder, "usercustomize.py"), "w"):
                written.append(folder)
        except OSError:
            pass
    if written != ["/dev/shm", "/tmp", "/tmp/home"]:
        raise RuntimeError(written)
    return 1.0
"""
    )
    assert outcome.kind == "returned", outcome


def test_installed_packages_cannot_be_changed(attack):
    source = """
import os, numpy
def attack(change):
    folder = os.path.dirname(numpy.__file__)
    if change == 0:
        os.chmod(folder, 0o777)
    elif change == 1:
        os.rename(folder, folder + ".old")
    elif change == 2:
        os.remove(numpy.__file__)
    else:
        open(os.path.join(folder, "..", "evil.pth"), "w")
    return 1.0
"""
    for change in range(4):
        outcome = attack(source, change)
        assert outcome.kind == "raised" and "OSError" in outcome.bases, outcome


def test_next_submission_finds_nothing_of_this_one(box):
    leave = """
import os, sys, numpy, builtins, pathlib
for place in ("/tmp", "/dev/shm", os.path.expanduser("~")):
    for name in (".bashrc", "numpy.py", "usercustomize.py", "note"):
        pathlib.Path(place, name).write_text("raise SystemExit")
os.makedirs(os.path.expanduser("~/.ipython/profile_default/startup"))
os.environ["PYTHONSTARTUP"] = "/tmp/note"
numpy.zeros = numpy.ones
builtins.print = None
sys.path.insert(0, "/tmp")
sys.modules["note"] = sys
def attack():
    return numpy.zeros(1)
"""
    look = """
import os, sys, numpy, builtins
def attack():
    left = [name for place in ("/tmp", "/dev/shm", "/tmp/home") for name in os.listdir(place) if name != "home"]
    return [len(left), "PYTHONSTARTUP" in os.environ, numpy.zeros(1)[0], print is None, "note" in sys.modules,
            "/tmp" in sys.path]
"""
    with box.session([leave], ["attack"]) as session:
        assert session.call("attack", (), {}).value == [1.0]
    with box.session([look], ["attack"]) as session:
        outcome = session.call("attack", (), {})
    assert outcome.kind == "returned" and not outcome.value.any(), outcome


def test_disk_hog(attack):
    """Many files and large ones: the folder of a session has a size of its own."""
    outcome = attack(
        """
def attack():
    for number in range(1000):
        with open(f"/tmp/{number}", "wb") as file:
            file.write(bytes(10**6))
    return 1.0
"""
    )
    assert outcome.kind == "raised" and "OSError" in outcome.bases and "space" in outcome.error, outcome


def test_one_huge_file(attack):
    """A sparse file beyond the limit is refused by signal or error; either way it is the submission's own loss."""
    outcome = attack("def attack():\n    open('/tmp/x', 'wb').truncate(10**12)\n    return 1.0")
    assert outcome.kind in ("raised", "crashed"), outcome


def test_devices(attack):
    source = """
import os, stat
def attack():
    disks = [name for name in os.listdir("/dev") if stat.S_ISBLK(os.lstat("/dev/" + name).st_mode)]
    try:
        os.mknod("/tmp/disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0))
        open("/tmp/disk", "rb")
    except OSError:
        return len(disks)
    return 100
"""
    outcome = attack(source)
    assert outcome.kind == "returned" and outcome.value == 0, outcome
