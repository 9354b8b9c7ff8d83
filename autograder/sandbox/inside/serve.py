"""The sandboxed side: a warm interpreter that forks one child for each submission.

`host.py` starts this file in bubblewrap, and of the course this folder alone is there. It never runs a
submission's code itself: it forks a child, which shuts itself into namespaces of its own, gives up every right
and then runs the cells. Needs nothing but NumPy.
"""

import __future__

import ast
import builtins
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import linecache
import os
import re
import resource
import select
import signal
import socket
import struct
import sys
import time
import types

from .calls import Odd, Outcome, run
from .cells import is_stub, python
from .wire import BODY_LIMIT, HEADER_LIMIT, WireError, outcome_message, receive, send

LIBC = ctypes.CDLL(None, use_errno=True)
FUTURE_FLAGS = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
POLL = 0.03  # seconds between two looks at the memory of a session
SIGNALS = 128  # that may wait, timers among them
ADDRESSES = 8 << 30  # bytes of addresses beside those that may hold something
PIECES = 1 << 17  # that a session's memory may be cut into: the kernel notes each, and for each process again
PIECES_EVERY = 10  # looks at the memory, for counting them takes longer


# ---------------------------------------------------------------- the warm process


def main(settings):
    """Import what the chapters need, then start and end sessions by the grader's word on the control socket."""
    control = socket.socket(fileno=settings["control"])
    grouped = settings["group"] is not None and _join(settings["group"])
    missing = []
    for name in settings["preload"]:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page
    control.sendall(json.dumps({"missing": missing, "grouped": grouped}).encode())
    if settings["isolated"]:
        own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)
    else:
        own_pids = None
        if sys.platform == "linux":
            LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # processes left behind become ours, to be ended
    while True:
        command, fds, _, _ = socket.recv_fds(control, 4096, 1)
        if not command:  # the grader has gone; with this process everything in the sandbox ends
            return
        child = _fork(json.loads(command) | settings, fds[0], own_pids)
        os.close(fds[0])
        how = _watch(child, control, settings["memory_mb"]) if child else None
        control.sendall(json.dumps({"how": how}).encode())


def _join(door):
    """Join the group in which memory is counted; sessions are in it from their birth."""
    try:
        os.write(door, b"0")
        return True
    except OSError:
        return False
    finally:
        os.close(door)


def _fork(settings, session, own_pids):
    """Fork the child of a session, the first process of a pid namespace of its own; None where that fails."""
    if own_pids is not None:
        _syscall("unshare", CLONE_NEWPID)
    try:
        child = os.fork()
    except OSError:
        child = None
    if child == 0:
        try:
            _child(settings, session)
        finally:
            os._exit(0)
    if own_pids is not None:
        _syscall("setns", own_pids, CLONE_NEWPID)
    return child


def _watch(child, control, memory_mb):
    """Wait until the session ends by itself, by its memory or by the grader's word; say how, and end it."""
    free = _memory("self")  # they have as much from this process
    sockets = _sockets()
    limit = memory_mb * 5 // 4 << 20  # a single process meets its own limit first, with a MemoryError
    how, looks = None, 0
    while not select.select([control], [], [], POLL)[0]:
        if how is not None:
            continue
        looks += 1
        pids = _descendants()
        if _exceeds(pids, limit, free, sockets):
            how = f"it used more than {memory_mb} MB of memory"
        elif looks % PIECES_EVERY == 0 and _pieces(pids) > PIECES:
            how = f"it cut its memory into more than {PIECES} pieces"
        if how is not None:
            os.kill(child, signal.SIGKILL)
    word = control.recv(4096)
    patience = time.monotonic() + (json.loads(word)["patience"] if word else 0)
    while True:  # a process that has just closed its socket may still be on its way out
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid or time.monotonic() >= patience:
            break
        time.sleep(0.001)
    if not pid:
        how = how or "it was stopped"
        os.kill(child, signal.SIGKILL)
        pid, status = os.waitpid(child, 0)  # returns when the whole pid namespace is empty
    while stragglers := _descendants():  # only where there are no namespaces
        for straggler in stragglers:
            with contextlib.suppress(OSError):
                os.kill(straggler, signal.SIGKILL)
                os.waitpid(straggler, 0)
    code = os.waitstatus_to_exitcode(status)
    return how or (f"it was killed by {_signal_name(-code)}" if code < 0 else f"it ended itself (exit {code})")


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:  # one of those that have no name
        return f"signal {number}"


def _descendants():
    """The processes below this one, from /proc; all of them belong to the one session.

    One whose first thread has ended before the others is killed: /proc shows none of the memory that it has. The
    interpreter never ends so, but by the call that ends all threads.
    """
    parents, headless = {}, set()
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    fields = file.read().rsplit(b")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry)] = int(fields[1])
            if fields[0] == b"Z" and int(fields[17]) > 1:  # how many threads
                headless.add(int(entry))
    found, left = [], [os.getpid()]
    while left:
        parent = left.pop()
        below = [pid for pid, its_parent in parents.items() if its_parent == parent]
        found += below
        left += below
    for pid in headless.intersection(found):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return found


def _exceeds(pids, limit, free, sockets):
    """Whether the session holds more than so many bytes, beside what was there before."""
    limit += free
    in_sockets = (_sockets() - sockets) * _socket()
    if sum(map(_memory, pids)) + in_sockets <= limit:
        return False
    # That counts what processes share once for each of them: now exactly, which takes longer.
    return sum(map(_share_of_memory, pids)) + in_sockets > limit


def _memory(pid):
    """Bytes that a process holds beside its files' pages, page tables included; 0 where it has just ended."""
    return _kilobytes(pid, "status", rb"(?:RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+)")


def _share_of_memory(pid):
    """The same, with what it shares divided among those who share it."""
    share = _kilobytes(pid, "smaps_rollup", rb"(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+)")
    return share + _kilobytes(pid, "status", rb"VmPTE:\s+(\d+)") if share else _memory(pid)


def _kilobytes(pid, name, pattern):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return 1024 * sum(map(int, re.findall(pattern, file.read())))
    except OSError:
        return 0


def _pieces(pids):
    """How many pieces the memory of processes is in; counted no further than matters."""
    count = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb", buffering=0) as file:
            while count <= PIECES and (part := file.read(1 << 16)):
                count += part.count(b"\n")
    return count


@functools.cache
def _socket():
    """Bytes that one socket may hold for its reader.

    The last message may be as large as all that is allowed, and what the kernel takes for a message is up to twice
    its size.
    """
    with socket.socket(socket.AF_UNIX) as one:
        return 4 * one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def _sockets():
    """How many sockets there are in the sandbox."""
    try:
        with open("/proc/self/net/sockstat", "rb") as file:
            return int(file.readline().split()[2])
    except (OSError, IndexError):
        return 0


# ---------------------------------------------------------------- shutting the child in

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x8000000, 0x10000000, 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 36, 38, 47, 4
SECCOMP_MODE_FILTER, CAPABILITY_VERSION = 2, 0x20080522
BPF_STEP = 8  # bytes


def _shut_in(settings):
    """Leave this process no files, processes, network or rights but its own."""
    uid, disk = settings["uid"], settings["disk_mb"]
    # Its own /proc cannot be written, so that its place in the queue of the out-of-memory killer stays as it is put
    # here, by the way of the sandbox's.
    itself = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY)
    _syscall("unshare", CLONE_NEWNS | CLONE_NEWIPC)
    _syscall("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    _syscall("mount", b"proc", b"/proc", b"proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, None)
    root = settings["root"]
    owner = f"uid={uid},gid={uid}," if root else ""
    for place in (b"/tmp", b"/dev/shm"):
        options = f"{owner}mode=700,size={disk}m,nr_inodes=10000".encode()
        _syscall("mount", b"tmpfs", place, b"tmpfs", MS_NOSUID | MS_NODEV, options)
    _write(itself, "oom_score_adj", "1000")
    if not root:
        # One uid is all that an ordinary user has. A user namespace of its own, made after the mounts, has no
        # power over them, and its processes are counted by themselves.
        _syscall("unshare", CLONE_NEWUSER)
        for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} 0 1"), ("gid_map", f"{uid} 0 1")):
            _write(itself, name, line)
    os.close(itself)
    for capability in range(64):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails beyond the last one
    if root:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    _syscall("capset", struct.pack("<Ii", CAPABILITY_VERSION, 0), bytes(24))
    _syscall("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)  # it leaves no dump, wherever the machine sends them
    _syscall("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _write(folder, name, text):
    """Write a file in an open folder."""
    file = os.open(name, os.O_WRONLY, dir_fd=folder)
    os.write(file, text.encode())
    os.close(file)


def _limit(settings):
    """Set the limits that the kernel keeps for each process."""
    seconds = int(settings["notebook_limit"]) + 60
    limits = {
        "RLIMIT_CORE": 1,  # with 0 the kernel would still hand a dump to a program, where the machine names one
        "RLIMIT_CPU": seconds,
        "RLIMIT_FSIZE": settings["disk_mb"] << 20,
        "RLIMIT_NOFILE": settings["files"],
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_SIGPENDING": SIGNALS,
    }
    with open("/proc/self/status") if os.path.isdir("/proc/self") else open(os.devnull) as file:
        sizes = dict(re.findall(r"(VmData|VmSize):\s+(\d+)", file.read()))
    if sizes:  # a hog is refused by its own interpreter, with a MemoryError, before anything need be killed
        limits["RLIMIT_DATA"] = (int(sizes["VmData"]) << 10) + (settings["memory_mb"] << 20)
        # Of addresses there may be more: threads reserve them. But each 2 MB of them can cost a page of tables.
        limits["RLIMIT_AS"] = (int(sizes["VmSize"]) << 10) + (settings["memory_mb"] << 20) + ADDRESSES
    if settings["isolated"]:  # without namespaces the user's other processes would count too
        limits["RLIMIT_NPROC"] = settings["processes"]
    for name, limit in limits.items():
        if hasattr(resource, name):
            hard = resource.getrlimit(getattr(resource, name))[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(getattr(resource, name), (limit, limit))


def _filter(program):
    """Have the kernel refuse the system calls that the filter does not allow, the setting of some limits among them."""
    steps = ctypes.create_string_buffer(program, len(program))
    where = struct.pack("@HP", len(program) // BPF_STEP, ctypes.addressof(steps))
    _syscall("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, where, 0, 0)


def _syscall(name, *args):
    """A function of the C library; OSError where it fails."""
    args = [ctypes.c_long(arg) if type(arg) is int else arg for arg in args]
    if getattr(LIBC, name)(*args) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


# ---------------------------------------------------------------- the child


def _child(settings, session):
    """The life of one session: shut in, run the cells, answer calls until the grader closes."""
    os.dup2(session, 3)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # output goes nowhere: a flood of it costs its author time and nothing else
        os.dup2(null, standard)
    os.close(null)
    sock = socket.socket(fileno=3)
    try:
        # A signal to its group would reach the warm process too. And where the kernel shares processors out by
        # session (autogroup), a hundred threads here get no more of them than one elsewhere.
        os.setsid()
        if settings["isolated"]:
            _shut_in(settings)
        elif sys.platform == "linux":
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _limit(settings)
        os.environ["HOME"] = settings["home"]
        os.makedirs(settings["home"], exist_ok=True)
        os.chdir(settings["home"])
        if settings["filter"]:
            _filter(bytes.fromhex(settings["filter"]))
    except Exception as error:
        send(sock, str(error))
        return
    send(sock, "ready")
    request = receive(sock, header_limit=1 << 26)
    tensor = next(
        filter(None, (getattr(module, "from_numpy", None) for module in map(sys.modules.get, settings["preload"]))),
        None,
    )
    notebook = Notebook(request["names"], settings["cell_limit"], request["cells_limit"])
    for number, cell in enumerate(request["cells"]):
        notebook.run_cell(number, cell, number in request["light"])
        send(sock, number)
    statuses = notebook.choose()
    send(sock, {"statuses": statuses, "errors": notebook.errors[:50]})
    while True:
        request = receive(sock, header_limit=1 << 30, body_limit=1 << 31, tensor=tensor)
        outcome = _call(notebook.functions.get(request["name"]), request)
        reply = {"id": request["id"]}
        try:
            send(sock, reply | outcome_message(outcome), header_limit=HEADER_LIMIT, body_limit=BODY_LIMIT)
        except WireError as error:
            large = Outcome("returned", Odd(f"a value of {error}"))
            send(sock, reply | outcome_message(large))


def _call(function, request):
    pid = os.getpid()
    try:
        outcome = run(function, request["args"], request["kwargs"])
    except BaseException as error:  # the interrupt that `run` lets through
        outcome = Outcome("raised", error=type(error).__name__, bases=(type(error).__name__,))
    if os.getpid() != pid:  # the function forked, and this is the copy
        os._exit(0)
    return outcome


class CellTimeout(BaseException):
    """A cell has had its time."""


class Notebook:
    """The cells of a submission and the names that they leave behind."""

    def __init__(self, names, cell_limit, cells_limit):
        self.names = names
        self.cell_limit = cell_limit
        self.end = time.monotonic() + cells_limit
        self.errors = []
        self.functions = {}
        self.history = {name: [] for name in names}  # every function that stood under the name after a statement
        self.stubs = set()  # (file, line) of the definitions that are nothing but a stub
        self.flags = 0
        self.running = False
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        sys.argv[:] = ["notebook"]
        self.space = vars(module)
        shell = Shell(self)
        self.space.update(get_ipython=lambda: shell, display=_nothing, In=[""], Out={})
        for name in ("exit", "quit"):
            setattr(builtins, name, sys.exit)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, self._alarm)

    def run_cell(self, number, source, light):
        """Run a cell as Jupyter would; one that fails is noted and the next one runs.

        With `light` only what defines something is run.
        """
        file = f"<cell {number + 1}>"
        source, tree, error, _ = python(source)
        if tree is None:
            self.errors.append(f"cell {number + 1}: SyntaxError: {error}")
            return
        body = tree.body
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        self.stubs |= {(file, line) for line in _stub_lines(tree)}
        left = min(self.cell_limit, self.end - time.monotonic())
        if light or left <= 0:
            self._run_definitions(body, file)
            return
        pid = os.getpid()
        done = 0
        try:
            try:
                self.running = True
                signal.setitimer(signal.ITIMER_REAL, left, 0.05)  # again and again, for code that swallows the first
                for statement in body:
                    self._run_statement(statement, file)
                    done += 1
            finally:
                self._stop_clock()
        except CellTimeout:
            self._stop_clock()
            self.errors.append(f"cell {number + 1}: stopped after {left:.0f} s")
        except BaseException as error:
            self._stop_clock()
            self._note(number, error)
        if os.getpid() != pid:  # the cell forked, and this is the copy
            os._exit(0)
        # What the learner defined below the failure is there to be read, so it counts unless it was defined before.
        self._run_definitions([statement for statement in body[done:] if self._lacks(statement)], file)

    def choose(self):
        """Settle which definition of each name counts; returns the status of each name."""
        statuses = {}
        for name in self.names:
            last = self.space.get(name)
            candidates = [*self.history[name], *([last] if callable(last) else [])]
            written = [function for function in candidates if not self._is_stub(function)]
            if candidates:
                # Other functions of the notebook call it by its name, so they get this one too.
                self.functions[name] = self.space[name] = (written or candidates)[-1]
            statuses[name] = "defined" if written else "stub" if candidates else "not found"
        return statuses

    def _run_statement(self, statement, file):
        module = ast.Module([statement], [])
        code = compile(module, file, "exec", self.flags, dont_inherit=True)
        self.flags |= code.co_flags & FUTURE_FLAGS
        exec(code, self.space)
        self._remember()

    def _run_definitions(self, body, file):
        for statement in body:
            if _defines(statement):
                try:
                    self._run_statement(statement, file)
                except BaseException:
                    continue

    def _remember(self):
        for name, past in self.history.items():
            function = self.space.get(name)
            if callable(function) and not (past and past[-1] is function):
                past.append(function)

    def _lacks(self, statement):
        """Whether something that a statement defines is still missing, or a stub."""
        names = [getattr(statement, "name", None)]
        names += [target.id for target in getattr(statement, "targets", ()) if isinstance(target, ast.Name)]
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            names = [(alias.asname or alias.name).split(".")[0] for alias in statement.names]
        return any(name and (name not in self.space or self._is_stub(self.space[name])) for name in names)

    def _is_stub(self, function):
        if type(function) is not types.FunctionType:  # another callable may do anything when it is looked at
            return False
        return (function.__code__.co_filename, function.__code__.co_firstlineno) in self.stubs

    def _stop_clock(self):
        self.running = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _alarm(self, *_):
        if self.running:
            raise CellTimeout

    def _note(self, number, error):
        try:
            words = f"{type(error).__name__}: {error}"
        except BaseException:
            words = type(error).__name__
        self.errors.append(f"cell {number + 1}: {words[:300]}")


class Shell:
    """What `get_ipython()` gives: nothing that it is asked to do is done."""

    def __init__(self, notebook):
        self.user_ns = notebook.space

    def __getattr__(self, name):
        return _nothing


def _nothing(*args, **kwargs):
    return None


# ---------------------------------------------------------------- reading a cell


def _stub_lines(tree):
    """The lines on which stubs begin, inside functions and classes too."""
    for node in ast.walk(tree):
        if is_stub(node):
            yield min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _defines(statement):
    """Whether a statement does nothing but define: an import, a function, a class, a constant."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        calls = (ast.Call, ast.Await, ast.comprehension, ast.Yield)
        return statement.value is not None and not any(isinstance(node, calls) for node in ast.walk(statement.value))
    return isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
