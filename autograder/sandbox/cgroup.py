"""A control group in which the kernel itself counts and bounds the memory of a sandbox, where one can be had.

That is version 2 of control groups, with a folder that this user may write: root's, or one that systemd has delegated
to a user's session. Elsewhere `inside.py` counts what it can see.
"""

import contextlib
import os
import re
import secrets
import time
from pathlib import Path

PATIENCE = 2.0  # seconds until the last process of a group is gone


class MemoryGroup:
    """A group of this process's kind, empty at first.

    Attributes
    ----------
    door : int
        An open file: who writes "0" to it is in the group, and so is whatever it starts from then on.
    """

    def __init__(self, folder):
        self.folder = folder
        self.door = os.open(folder / "cgroup.procs", os.O_WRONLY)

    @classmethod
    def make(cls, proc=Path("/proc/self")):
        """A new group; None where none can be had."""
        for parent in _parents(proc):
            folder = parent / f"autograder-{os.getpid()}-{secrets.token_hex(4)}"
            with contextlib.suppress(OSError):
                if "memory" not in (parent / "cgroup.subtree_control").read_text().split():
                    continue
                folder.mkdir()
                with contextlib.suppress(OSError):  # a kernel without swap
                    (folder / "memory.swap.max").write_text("0")
                try:
                    (folder / "memory.max").write_text("max")
                    return cls(folder)
                except OSError:
                    folder.rmdir()
        return None

    def bound(self, size):
        """Let the group hold so many bytes more than it does."""
        held = int((self.folder / "memory.current").read_text())
        (self.folder / "memory.max").write_text(str(held + size))

    def kills(self):
        """How many processes of the group the kernel has ended because of their memory."""
        with contextlib.suppress(OSError, TypeError):
            events = (self.folder / "memory.events").read_text()
            return int(re.search(r"^oom_kill (\d+)", events, re.MULTILINE)[1])
        return 0

    def close(self):
        """Remove the group, once its processes have ended."""
        os.close(self.door)
        end = time.monotonic() + PATIENCE
        while self.folder.exists() and time.monotonic() < end:
            try:
                self.folder.rmdir()
            except OSError:
                time.sleep(0.01)


def _parents(proc):
    """Where a group could be made: below the one of this process, and beside it."""
    with contextlib.suppress(OSError, TypeError):
        own = re.search(r"^0::(/.*)$", (proc / "cgroup").read_text(), re.MULTILINE)[1]
        mounted = re.search(r"^\S+ \S+ \S+ / (\S+) .* - cgroup2 ", (proc / "mountinfo").read_text(), re.MULTILINE)[1]
        folder = Path(mounted, own.lstrip("/"))
        return [folder, folder.parent] if own != "/" else [folder]
    return []
