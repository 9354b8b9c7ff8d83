"""A learner's functions called in a sandbox, as the judge calls them in this process.

    with Sandbox() as box, box.session(cells, ["mean"]) as session:
        outcome = session.call("mean", (array, 0), {})

One bubblewrap process holds a warm interpreter (`inside/serve.py`), which forks a child for each session. Of the
course only the folder `inside/` is there, and nothing comes out but what its `wire.py` lets through.
"""

import contextlib
import json
import os
import platform
import secrets
import shutil
import signal
import site
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from autograder.course import ROOT, SOLUTIONS
from autograder.sandbox import filter
from autograder.sandbox.cgroup import MemoryGroup
from autograder.sandbox.inside import wire
from autograder.sandbox.inside.calls import Outcome

INSIDE = Path(__file__).with_name("inside")
PACKAGES = (SOLUTIONS.name, "autograder")  # must not be found inside
STATUSES = ("defined", "stub", "not found")
START_LIMIT = 60.0  # seconds for what our own side does
DONE_LIMIT = 256  # bytes of JSON that say that a cell is done
HOME = "/tmp/home"
ENVIRONMENT = {  # all of it: nothing of the teacher's is passed on
    "PATH": "/usr/bin:/bin",
    "HOME": HOME,
    "USER": "learner",
    "LOGNAME": "learner",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
# What the warm interpreter needs to shut sessions in and to end them (SETFCAP: to map uid 0); they lose it all.
RIGHTS = (
    *("CAP_SYS_ADMIN", "CAP_KILL", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETFCAP"),
    "CAP_SYS_PTRACE",  # to see how much memory they share
)
NAMESPACES = [
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", "sandbox", "--cap-drop", "ALL"),
    *(option for right in RIGHTS for option in ("--cap-add", right)),
]
OPTIONS = ("-I", "-S", "-B", "-X", "utf8", "-c")  # no environment, no start-up files, no writing of bytecode
BOOT = """
import json, sys
settings = json.loads(sys.argv.pop())
sys.path[:] = [settings["course"], *sys.path, *settings["paths"]]
from inside import serve, stand_in
sys.modules["autograder"] = stand_in
serve.main(settings)
"""
INSTALL = "Install it: apt install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora)."
ALLOW = (
    "The system must allow user namespaces: on Ubuntu from 24.04 on write "
    "'profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }' to /etc/apparmor.d/bwrap and run "
    "'sudo systemctl reload apparmor'; elsewhere look at 'sysctl kernel.unprivileged_userns_clone' and "
    "'sysctl user.max_user_namespaces'; a container must be started with namespaces allowed."
)
NO_FILTER = (
    "Which system calls a submission may make is not known for this machine's processor ({machine}), only for x86-64 "
    "and arm64. To let submissions make all of them, write c.Autograder.allowed_system_calls = 'all' in "
    "nbgrader_config.py; every verdict then says so."
)


class SandboxUnavailable(RuntimeError):
    """Code cannot be isolated on this machine; the text says why and what helps."""


class SandboxFailed(RuntimeError):
    """The sandbox itself broke, through no fault of the code in it."""


class _Ended(Exception):
    """The process of a session has ended, or was ended."""

    def __init__(self, kind, reason):
        super().__init__(reason)
        self.outcome = Outcome(kind, error=reason)


class Sandbox:
    """A warm interpreter in bubblewrap that serves one session after the other.

    Parameters
    ----------
    preload : sequence of str
        Modules that are imported once, before any session; those that the machine lacks are left out.
    isolation : str
        "bubblewrap", or "none": processes with limits, which nothing keeps from the files of their user.
        `warning` then says so.
    time_limit : float
        Seconds for one call.
    cell_limit, notebook_limit : float
        Seconds for one cell, and for a whole session; running its cells may take half of that.
    memory_mb, disk_mb, processes, files : int
        What all processes of a session may hold together in memory and in files; how many processes and
        threads there may be; how many open files one of them may have.
    system_calls : sequence of str or "all"
        System calls that are allowed beside those of `filter.ALLOWED`; with "all" there is no filter, and
        `warning` says so.

    Raises
    ------
    SandboxUnavailable
        On entering, where bubblewrap is missing or the system does not let it work.
    """

    def __init__(
        self,
        preload: Sequence[str] = ("numpy",),
        isolation: str = "bubblewrap",
        *,
        time_limit: float = 5.0,
        cell_limit: float = 20.0,
        notebook_limit: float = 120.0,
        memory_mb: int = 1024,
        disk_mb: int = 64,
        processes: int = 32,
        files: int = 128,
        system_calls: Collection[str] = (),
    ) -> None:
        if isolation not in ("bubblewrap", "none"):
            raise ValueError(f"isolation is bubblewrap or none, not {isolation}")
        self.isolated = isolation == "bubblewrap"
        self.filtered = self.isolated and system_calls != filter.ALL
        if self.filtered:
            filter.check_request(system_calls)
        self.system_calls = system_calls
        self.time_limit, self.notebook_limit, self.cell_limit = time_limit, notebook_limit, cell_limit
        self.settings = {
            "preload": list(preload),
            "isolated": self.isolated,
            "root": os.name == "posix" and os.geteuid() == 0,
            "cell_limit": cell_limit,
            "notebook_limit": notebook_limit,
            "memory_mb": memory_mb,
            "disk_mb": disk_mb,
            "processes": processes,
            "files": files,
        }
        self.process = self.inner = self.group = None
        self.busy = False

    @property
    def warning(self) -> str | None:
        """What the record of a grading has to say about its isolation, or None."""
        if not self.isolated:
            return "run without isolation: the submission could read and write files"
        return None if self.filtered else "run without a filter of system calls: the submission could use all of them"

    def __enter__(self) -> Self:
        self.start()
        try:
            with self.session([], []):  # only a session shows whether one can be shut in
                pass
        except SandboxFailed as error:
            self.close()
            raise SandboxUnavailable(_remedy(str(error))) from error
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def session(self, cells: Sequence[str], names: Sequence[str]) -> "Session":
        """Run the code cells of a submission; returns the `Session` in which `names` can be called."""
        return Session(self, cells, names)

    def start(self):
        """Start the warm interpreter, where it does not run."""
        if self.process is not None and self.process.poll() is None:
            return
        self.close()
        if os.name != "posix":
            raise SandboxUnavailable("Submissions are run on Linux; on Windows use its Linux subsystem.")
        if self.isolated and shutil.which("bwrap") is None:
            raise SandboxUnavailable(f"Submissions are run in bubblewrap, which is not installed. {INSTALL}")
        program = filter.program(self.system_calls) if self.filtered else b""
        if program is None:
            raise SandboxUnavailable(NO_FILTER.format(machine=platform.machine()))
        self.folder = tempfile.TemporaryDirectory(prefix="sandbox-")
        course = _copy_inside(Path(self.folder.name))
        command, paths = [], [str(path) for path in _site_packages()]
        self.control, theirs = socket.socketpair()
        passed = [theirs.fileno()]
        self.group = MemoryGroup.make() if sys.platform == "linux" else None
        if self.group:
            passed.append(self.group.door)
        if self.isolated:
            info, info_end = os.pipe()
            passed.append(info_end)
            command, (course, *paths) = _bubblewrap(course, info_end)
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        settings = self.settings | {
            "course": str(course),
            "paths": paths,
            "control": theirs.fileno(),
            "filter": program.hex(),
            "group": self.group and self.group.door,
        }
        command += [os.path.realpath(sys.executable), *OPTIONS, BOOT, json.dumps(settings)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            pass_fds=passed,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
        theirs.close()
        if self.isolated:
            # To be killed is the first process inside: bubblewrap's outer one would leave the others alive.
            os.close(info_end)
            report = b""
            while b"}" not in report and (part := os.read(info, 4096)):
                report += part
            os.close(info)
            if report:
                with contextlib.suppress(ProcessLookupError):
                    self.inner = os.pidfd_open(json.loads(report)["child-pid"])
        self.control.settimeout(START_LIMIT)
        try:
            ready = json.loads(self.control.recv(65536))
            self.missing = ready["missing"]
            if self.group and not (ready["grouped"] and self._bounded()):
                self.group.close()
                self.group = None
        except (OSError, ValueError):
            reason = self.last_words()
            self.close()
            raise SandboxUnavailable(_remedy(reason)) from None

    def _bounded(self):
        with contextlib.suppress(OSError, ValueError):
            self.group.bound(self.settings["memory_mb"] * 5 // 4 << 20)
            return True
        return False

    def last_words(self):
        """The last line that the warm interpreter or bubblewrap wrote; both are ended."""
        self.kill()
        self.errors.seek(0)
        lines = self.errors.read()[-2000:].decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "no reason was given")

    def kill(self):
        """Kill the warm interpreter and everything below it."""
        with contextlib.suppress(ProcessLookupError):
            if self.inner is not None:
                signal.pidfd_send_signal(self.inner, signal.SIGKILL)
            else:
                self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End the warm interpreter, and with it whatever is left of a session."""
        if self.process is not None:
            self.kill()
            self.control.close()
            if self.inner is not None:
                os.close(self.inner)
            self.process = self.inner = None
            self.errors.close()
            self.folder.cleanup()
        if self.group:
            self.group.close()
            self.group = None
        self.busy = False


class Session:
    """One submission in a sandbox.

    Attributes
    ----------
    errors : list of str
        What went wrong in which cell, in words.
    lost : str or None
        Why the submission could not be run at all.
    """

    def __init__(self, box: Sandbox, cells: Sequence[str], names: Sequence[str]) -> None:
        self.box, self.cells, self.names = box, list(cells), list(names)
        self.statuses = dict.fromkeys(self.names, "not found")
        self.errors: list[str] = []
        self.lost = None
        self.sock = None
        self.light, self.skipped, self.notes = set(), set(), []
        self.end = time.monotonic() + box.notebook_limit
        try:
            self._begin()
        except _Ended as ended:
            self.lost = str(ended)
            self.statuses = dict.fromkeys(self.names, "crashed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def status(self, name: str) -> str:
        """Whether a name is "defined", a "stub" or "not found"; "crashed" where the session is lost."""
        return self.statuses[name]

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Outcome:
        """Call a function of the submission; returns its `Outcome`.

        Whatever happens to the process in one call, the next call finds a process in which the cells have run.
        """
        if self.lost:
            return Outcome("crashed", error=self.lost)
        try:
            if self.sock is None:
                self._begin()
            if self.statuses[name] == "not found":
                return Outcome("not found", error=f"there is no function {name}")
            if time.monotonic() >= self.end:
                raise _Ended("timed out", self._used_up())
            number = secrets.token_hex(8)  # an answer sent ahead of its question cannot know it
            deadline = min(time.monotonic() + self.box.time_limit, self.end)
            wire.send(self.sock, {"id": number, "name": name, "args": tuple(args), "kwargs": dict(kwargs)}, deadline)
            reply = wire.receive(self.sock, deadline)
            if type(reply) is not dict or type(reply.get("id")) is not str or reply["id"] != number:
                raise wire.WireError("it answers another question")
            return wire.outcome_of(reply)
        except _Ended as ended:
            return ended.outcome
        except TimeoutError:
            self._stop()
            late = self._used_up() if time.monotonic() >= self.end else f"no answer within {self.box.time_limit:g} s"
            return Outcome("timed out", error=late)
        except (wire.WireError, OSError, EOFError) as error:
            return Outcome("crashed", error=self._post_mortem(error))

    def close(self) -> None:
        """End every process of the session."""
        if self.sock is not None:
            self._stop()

    def _begin(self):
        """Start a process and run the cells; again, without what ended it, where that ended the process."""
        for attempt in range(len(self.cells) + 5):  # from the fifth on, each leaves out one cell more
            now = time.monotonic()
            if now >= self.end:
                raise _Ended("timed out", self._used_up())
            if attempt >= 3:  # of a notebook that goes on breaking, only what it defines is run
                self.light |= set(range(len(self.cells)))
            cell = None
            try:
                self._fork()
                limit = (self.end - now) / 2
                wire.send(
                    self.sock,
                    {
                        "cells": ["" if number in self.skipped else text for number, text in enumerate(self.cells)],
                        "names": self.names,
                        "light": sorted(self.light),
                        "cells_limit": limit,
                    },
                    self.end,
                )
                # A cell is stopped by its own clock; ours is for code that swallows that, and for code that says of
                # one cell after the other that it is done.
                patience, last = min(self.box.cell_limit, limit) + 1, min(now + limit + 1, self.end)
                for cell in range(len(self.cells)):
                    deadline = min(time.monotonic() + patience, last)
                    done = wire.receive(self.sock, deadline, header_limit=DONE_LIMIT, body_limit=0)
                    if type(done) is not int or done != cell:
                        raise wire.WireError("it speaks of another cell")
                cell = None
                self._read_statuses(wire.receive(self.sock, min(time.monotonic() + patience, last), body_limit=0))
                return
            except TimeoutError:
                self._stop()
                reason = "it does not end"
            except (wire.WireError, OSError, EOFError) as error:
                reason = self._post_mortem(error)
            if cell is not None:
                again = cell in self.light
                (self.skipped if again else self.light).add(cell)
                remedy = "it is left out" if again else "only its definitions are used"
                self.notes.append(f"cell {cell + 1}: {reason}; {remedy}")
        self.lost = reason
        raise _Ended("crashed", reason)

    def _used_up(self):
        return f"the notebook has used up its {self.box.notebook_limit:g} s"

    def _read_statuses(self, message):
        """Take over what the submission's process says about the names, as far as it is what it should be."""
        if type(message) is not dict or not isinstance(message.get("statuses"), dict):
            raise wire.WireError("no statuses")
        for name in self.names:
            status = message["statuses"].get(name)
            self.statuses[name] = status if type(status) is str and status in STATUSES else "not found"
        errors = message.get("errors")
        errors = [wire.text(line, 400) for line in errors if type(line) is str] if type(errors) is list else []
        self.errors = [*self.notes, *errors[:50]]

    def _fork(self):
        """Have the warm interpreter fork the process of this session, and wait until that has shut itself in."""
        self.box.start()
        if self.box.busy:
            raise RuntimeError("a sandbox serves one session at a time")
        self.kills = self.box.group.kills() if self.box.group else 0
        self.home = None if self.box.isolated else tempfile.mkdtemp(dir=self.box.folder.name)
        # As root, each session gets a uid that nobody else has; an ordinary user has only one to give.
        uid = 1 << 30 | secrets.randbelow(1 << 30) if self.box.settings["root"] else 1000
        order = {"uid": uid, "home": self.home or HOME}
        self.sock, theirs = socket.socketpair()
        with theirs:
            self.box.busy = True
            try:
                socket.send_fds(self.box.control, [json.dumps(order).encode()], [theirs.fileno()])
            except OSError as error:
                self._broken(error)
        try:
            answer = wire.receive(self.sock, time.monotonic() + START_LIMIT)
        except (wire.WireError, OSError, EOFError) as error:
            self._broken(error)
        if answer != "ready":  # no code of the submission has run yet: this is our own side speaking
            self._stop()
            raise SandboxUnavailable(_remedy(str(answer)))

    def _stop(self, patience=0.0):
        """End the processes of the session; returns how they came to end."""
        self.sock.close()
        self.sock = None
        control = self.box.control
        try:
            control.settimeout(START_LIMIT)
            control.sendall(json.dumps({"patience": patience}).encode())
            how = json.loads(control.recv(4096))["how"]
        except (OSError, ValueError) as error:
            self._broken(error)
        self.box.busy = False
        if self.home:
            shutil.rmtree(self.home, ignore_errors=True)
        if self.box.group and self.box.group.kills() > self.kills:
            how = f"it used more than {self.box.settings['memory_mb']} MB of memory"
        return how

    def _post_mortem(self, error):
        """End the session after a false answer or none; returns the reason in words."""
        if isinstance(error, wire.WireError):
            self._stop()
            return f"it sent something that is no answer: {error}"
        return self._stop(patience=0.5)

    def _broken(self, error):
        """Give up a sandbox that no longer answers; the next session starts another."""
        self.sock = None
        reason = self.box.last_words()
        self.box.close()
        raise SandboxFailed(f"the sandbox itself has ended: {reason}") from error


def _copy_inside(folder):
    """A copy of `inside/`, which any account can read: a session of root's has another uid."""
    copy = shutil.copytree(INSIDE, folder / "course" / "inside", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (copy.parent, copy, *copy.iterdir()):
        path.chmod(0o755)  # whatever the umask
    return copy.parent


def _site_packages():
    """The folders of installed packages that this interpreter uses."""
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return [Path(folder).resolve() for folder in dict.fromkeys(folders) if os.path.isdir(folder)]


def _bubblewrap(course, info):
    """The command that builds the sandbox, and where in it the course's package and the others are found."""
    # The interpreter, its libraries and the system's at their own places; installed packages and the course's
    # stand-in at places that say nothing of whose they are.
    base = Path(sys.base_prefix)
    libraries = [base / "lib", base / "lib64", Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/lib32")]
    libraries = [path for path in dict.fromkeys(libraries) if path.is_dir() and not path.is_symlink()]
    linker = [path for path in (Path("/etc/ld.so.cache"), Path("/etc/alternatives")) if path.exists()]
    binds = {path: path for path in (*libraries, *linker, Path(sys.executable).resolve())}
    links = []
    for path in (Path("/lib"), Path("/lib64"), Path("/lib32")):
        if path.is_symlink():
            links += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            binds[path] = path
    places = [Path("/course"), *(Path(f"/packages/{number}") for number, _ in enumerate(_site_packages()))]
    binds |= dict(zip(places, (course, *_site_packages()), strict=True))

    command = [shutil.which("bwrap"), "--info-fd", str(info), *NAMESPACES]
    if os.geteuid() != 0:
        command += ["--unshare-user", "--uid", "0", "--gid", "0"]
    command += ["--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev"]
    command += ["--tmpfs", "/dev/pts", "--remount-ro", "/dev/pts"]  # the machine has few terminals
    command += ["--ro-bind", "/dev/null", "/dev/zero"]  # mapped, it is memory that nobody counts: it cannot be opened
    # Folders on the way to a mount are made by name, for bubblewrap would make them unreadable to other uids.
    for folder in sorted({parent for place in binds for parent in place.parents if parent != parent.parent}):
        command += ["--dir", str(folder)]
    for place, path in binds.items():
        command += ["--ro-bind", str(path), str(place)]
    command += links
    # Cover what must not be seen: the course, where it is installed or lies in a folder that is bound above.
    hidden = [place / name for place, path in binds.items() for name in PACKAGES if (path / name).is_dir()]
    for folder in libraries:
        hidden += [found for name in PACKAGES for found in folder.glob(f"python3*/*-packages/{name}")]
        hidden += [path for path in (ROOT, Path.cwd(), Path(os.path.expanduser("~"))) if folder in path.parents]
    for path in dict.fromkeys(hidden):
        command += ["--tmpfs", str(path), "--remount-ro", str(path)]
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return command, [str(place) for place in places]


def _remedy(reason):
    reason = reason.removeprefix("bwrap: ")
    return f"Submissions cannot be shut in on this machine: {reason}. {ALLOW}"
