"""Submissions that crash, hang, hog, outlive the grading or reach for other processes."""

import os
import threading
import time
from pathlib import Path

import pytest

from autograder.sandbox.host import Sandbox


def processes_with(text):
    """The processes of this machine whose command line or name contains a text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if text in (entry / "cmdline").read_text() + (entry / "comm").read_text():
                    found.append(entry.name)
            except OSError:
                continue
    return found


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("os._exit(0)", "exit 0"),
        ("os._exit(137)", "exit 137"),
        ("ctypes.string_at(0)", "SIGSEGV"),
        ("os.abort()", "SIG"),
        ("resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n    while True: pass", "SIG"),
        ("sys.setrecursionlimit(10**9)\n    f = lambda g: eval('g(g)', {'g': g})\n    f(f)", ""),
        ("os.close(3)\n    time.sleep(60)", "stopped"),
        ("os.closerange(0, 64)\n    os.execv('/nowhere', ['x'])", ""),
    ],
)
def test_crash(attack, code, said):
    outcome = attack(f"import os, ctypes, resource, sys, time\ndef attack():\n    {code}\n    return 1.0")
    assert outcome.kind == "crashed" and said in outcome.error, outcome


@pytest.mark.parametrize("code", ["sys.exit(0)", "exit()", "quit()", "raise KeyboardInterrupt", "raise GeneratorExit"])
def test_exceptions_that_end_programs(attack, code):
    outcome = attack(f"import sys\ndef attack():\n    {code}")
    assert outcome.kind == "raised", outcome


def test_crash_of_one_function_leaves_the_others(box):
    cells = ["import os\ndef bad(x):\n    os._exit(1)", "def good(x):\n    return x + 1"]
    with box.session(cells, ["bad", "good"]) as session:
        assert session.call("bad", (1,), {}).kind == "crashed"
        assert session.call("good", (1,), {}).value == 2
        assert session.call("bad", (1,), {}).kind == "crashed"
        assert session.call("good", (2,), {}).value == 3


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "while True:\n        try:\n            time.sleep(9)\n        except BaseException: pass",
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\n    while True: pass",
        "sum(iter(int, 1))",
        "threading.Event().wait()",
        "os.kill(os.getpid(), signal.SIGSTOP)\n    time.sleep(99)",
        "10 ** 10 ** 10",
    ],
)
def test_endless_loop(attack, hasty, loop):
    started = time.monotonic()
    outcome = attack(f"import os, signal, threading, time\ndef attack():\n    {loop}\n    return 1.0", box=hasty)
    assert outcome.kind == "timed out" and "0.25 s" in outcome.error, outcome
    assert time.monotonic() - started < 10


def test_memory_hog(attack):
    outcome = attack("def attack():\n    x = bytearray(10**9)\n    return len(x)")
    assert outcome.kind == "raised" and "MemoryError" in outcome.bases, outcome


def test_memory_hog_in_small_pieces(attack):
    outcome = attack("def attack():\n    x = []\n    while True:\n        x.append(bytearray(10**5))")
    assert outcome.kind == "raised" and "MemoryError" in outcome.bases, outcome


def test_memory_hog_of_many_processes(attack):
    outcome = attack(
        """
import os, time
def attack():
    for _ in range(8):
        if os.fork() == 0:
            x = bytearray(b"x") * (100 * 2**20)
            time.sleep(60)
    time.sleep(60)
"""
    )
    assert outcome.kind == "crashed" and "300 MB" in outcome.error, outcome


@pytest.mark.parametrize("call", ["os.memfd_create('x')", "ctypes.CDLL(None).shmget(0, 1 << 30, 0o1600) + 1 or 1 / 0"])
def test_memory_that_nobody_counts(attack, call):
    outcome = attack(f"import os, ctypes\ndef attack():\n    {call}\n    return 1.0")
    assert outcome.kind == "raised", outcome


@pytest.mark.parametrize(
    "area",
    ["mmap.mmap(-1, size)", "mmap.mmap(zero, size)", "mmap.mmap(zero, size, mmap.MAP_SHARED, mmap.PROT_READ)"],
)
def test_memory_that_is_shared_and_not_mapped(attack, area):
    """Pages of shared memory stay when a process lets go of them, and no process has them then."""
    outcome = attack(
        f"""
import mmap, os, time
def attack():
    zero = os.open("/dev/zero", os.O_RDONLY if "READ" in {area!r} else os.O_RDWR) if "zero" in {area!r} else None
    size, keep = 64 << 20, []
    for _ in range(8):
        keep.append({area})
        for place in range(0, size, 4096):
            if "READ" in {area!r}:
                keep[-1][place]
            else:
                keep[-1][place] = 1
        keep[-1].madvise(mmap.MADV_DONTNEED)
    time.sleep(1)
    return len(keep) * size / 2**20
"""
    )
    assert outcome.kind == "raised" and "PermissionError" in outcome.error, outcome


@pytest.mark.parametrize("rights", ["PROT_READ", "PROT_READ | mmap.PROT_WRITE"])
def test_memory_in_page_tables(attack, rights):
    """Pages of zeros cost nothing but the tables that lead to them: 4 kB for each 2 MB."""
    outcome = attack(
        f"""
import ctypes, mmap, os, time
def attack():
    for _ in range(20):
        if os.fork() == 0:
            try:
                for _ in range(100):
                    area = mmap.mmap(-1, 1 << 32, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.{rights})
                    keep.append(area)
                    for place in range(0, 1 << 32, 1 << 21):
                        area[place]
            except (OSError, MemoryError, ValueError):
                pass
            time.sleep(60)
    time.sleep(3)
    tables = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        line = next(line for line in open(f"/proc/{{pid}}/status") if line.startswith("VmPTE"))
        tables += int(line.split()[1])
    return tables
keep = []
"""
    )
    assert outcome.kind == "crashed" or outcome.value < 400_000, outcome  # kB


def test_memory_in_sockets():
    source = """
import contextlib, os, socket, time
def attack():
    sent = []
    for _ in range(20):
        reader, writer = os.pipe()
        if os.fork() == 0:
            pairs, total = [], 0
            try:
                while True:
                    pairs.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
                    for end in pairs[-1]:
                        end.setblocking(False)
                        with contextlib.suppress(BlockingIOError):
                            while True:
                                total += end.send(bytes(60_000))
            except OSError:
                pass
            os.write(writer, str(total).encode())
            time.sleep(60)
        sent.append(reader)
    return sum(int(os.read(reader, 20)) for reader in sent) / 2**20
"""
    with Sandbox(memory_mb=100) as box, box.session([source], ["attack"]) as session:
        outcome = session.call("attack", (), {})
    assert outcome.kind == "crashed" and "100 MB" in outcome.error, outcome


def test_memory_in_sockets_of_two_large_messages():
    """A message may be as large as all that a socket may hold, and the kernel takes one more when it is nearly full."""
    source = """
import contextlib, os, socket, time
def attack():
    for _ in range(6):
        if os.fork() == 0:
            pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(25)]
            for end in sum(pairs, ()):
                end.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    end.send(bytes(196_000)), end.send(bytes(212_900))
            time.sleep(60)
    time.sleep(1)
    return 1.0
"""
    with Sandbox(memory_mb=70) as box, box.session([source], ["attack"]) as session:
        outcome = session.call("attack", (), {})
    assert outcome.kind == "crashed" and "70 MB" in outcome.error, outcome


def test_memory_of_a_process_without_its_first_thread(attack):
    """What /proc says of a process it says of its first thread: when that has ended, of no memory at all."""
    outcome = attack(
        """
import ctypes, os, threading, time
def hold():
    keep = bytearray(b"x") * (40 * 2**20)
    time.sleep(1)
    os._exit(0)
def attack():
    children = []
    while len(children) < 3 and 0 not in children:
        children.append(os.fork())
    if 0 in children:
        threading.Thread(target=hold).start()
        ctypes.CDLL(None).pthread_exit(None)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
"""
    )
    assert outcome.kind == "returned" and outcome.value.tolist() == [-9, -9, -9], outcome


def test_memory_in_small_pieces_of_many_processes(attack):
    """Of each piece the kernel keeps a note, which no process has: for 65,000 in each of thirty that is gigabytes."""
    outcome = attack(
        """
import ctypes, mmap, os, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def attack():
    area = libc.mmap(None, 25_000 * 8192, 1, 0x22, -1, 0)
    for place in range(25_000):
        libc.mprotect(area + place * 8192, 4096, 0)
    for _ in range(3):
        if os.fork() == 0:
            time.sleep(60)
    time.sleep(2)
    return 1.0
"""
    )
    assert outcome.kind == "crashed" and "pieces" in outcome.error, outcome


def test_memory_that_was_shared():
    """What a process has from the warm interpreter is free until it writes there: then it is a copy of its own."""
    source = """
import ctypes, os, time
def attack():
    heap = next(line for line in open("/proc/self/maps").readlines() if "[heap]" in line)
    first, last = (int(end, 16) for end in heap.split()[0].split("-"))
    for _ in range(30):
        if os.fork() == 0:
            for place in range(first, last, 4096):
                ctypes.memset(place, ctypes.string_at(place, 1)[0], 1)
            time.sleep(60)
    time.sleep(2)
    return 30 * (last - first) / 2**20
"""
    with Sandbox(memory_mb=100) as box, box.session([source], ["attack"]) as session:
        outcome = session.call("attack", (), {})
    assert outcome.kind == "crashed" and "100 MB" in outcome.error, outcome


def test_many_processes_that_share_are_not_counted_twice(attack):
    """Thirty that each have the same 60 MB hold 60 MB."""
    outcome = attack(
        """
import os, time
def attack():
    x = bytearray(b"x") * (60 * 2**20)
    for _ in range(30):
        if os.fork() == 0:
            time.sleep(60)
    time.sleep(1)
    return len(x) / 2**20
"""
    )
    assert outcome.kind == "returned" and outcome.value == 60.0, outcome


@pytest.mark.parametrize(
    "call",
    [
        "fcntl(1, 1031, 1 << 20)",  # F_SETPIPE_SZ: a pipe may hold sixteen times as much
        "vmsplice(1, (ctypes.c_void_p * 2)(), 1, 0)",
        "mlockall(1)",
        "splice(0, None, 1, None, 1, 0)",
        "mmap(None, 1 << 21, 3, 0x40022, -1, 0)",  # MAP_HUGETLB
    ],
)
def test_memory_that_is_held_on_to(attack, call):
    outcome = attack(
        f"""
import ctypes, os
def attack():
    os.pipe(), os.pipe()
    libc = ctypes.CDLL(None, use_errno=True)
    return [libc.{call}, ctypes.get_errno() in (1, 12, 22, 38)]
"""
    )
    assert outcome.kind == "returned" and outcome.value.tolist() == [-1, 1], outcome


@pytest.mark.parametrize("name", ["oom_score_adj", "oom_adj", "coredump_filter", "clear_refs", "comm", "timerslack_ns"])
def test_what_the_kernel_notes_of_it_stays(attack, name):
    """The first to be ended where memory is short: it cannot change that, nor anything else in /proc."""
    outcome = attack(f"def attack():\n    open('/proc/self/{name}', 'w').write('0')\n    return 1.0")
    assert outcome.kind == "raised" and "OSError" in outcome.bases, outcome
    outcome = attack("def attack():\n    return int(open('/proc/self/oom_score_adj').read())")
    assert outcome.value == 1000, outcome


def test_no_core_dumps(attack):
    """Neither to a file nor to a program that the machine names: it is not dumpable, and cannot change that."""
    outcome = attack(
        """
import ctypes, os, resource
def attack():
    prctl = ctypes.CDLL(None).prctl
    refused = [prctl(4, 1, 0, 0, 0), prctl(3, 0, 0, 0, 0)]
    for limit in ((0, 0), (0, 1), (1, 1)):
        try:
            resource.setrlimit(resource.RLIMIT_CORE, limit)
        except (OSError, ValueError):
            refused.append(-1)
    return [*refused, *resource.getrlimit(resource.RLIMIT_CORE)]
"""
    )
    # PR_SET_DUMPABLE is refused, PR_GET_DUMPABLE says 0; of the three limits none is set
    assert outcome.kind == "returned" and outcome.value.tolist() == [-1, 0, -1, -1, -1, 1, 1], outcome


@pytest.mark.parametrize("program", ["sys.executable", "'/proc/self/exe'", "'/lib64/ld-linux-x86-64.so.2'"])
def test_no_other_programs(attack, program):
    outcome = attack(f"import os, sys\ndef attack():\n    os.execv({program}, ['x', '-c', ''])")
    assert outcome.kind == "raised" and "OSError" in outcome.bases, outcome


@pytest.mark.parametrize(
    "take",
    [
        "os.open('/dev/ptmx', os.O_RDWR)",
        "os.open('/dev/pts/ptmx', os.O_RDWR)",
        "os.openpty()",
        "libc.inotify_init() + 1 or 1 / 0",
        "libc.syscall(206, 1, (ctypes.c_void_p * 1)()) + 1 or 1 / 0",  # io_setup
        "libc.semget(0, 1, 0o1600) + 1 or 1 / 0",
        "libc.msgget(0, 0o1600) + 1 or 1 / 0",
        "libc.mq_open(b'/x', 0o102, 0o600, None) + 1 or 1 / 0",
        "libc.syscall(248, b'user', b'x', b'x', 1, -3) + 1 or 1 / 0",  # add_key
        "libc.syscall(323, 0) + 1 or 1 / 0",  # userfaultfd
        "libc.syscall(425, 1, bytes(120)) + 1 or 1 / 0",  # io_uring_setup
        "libc.fanotify_init(0, 0) + 1 or 1 / 0",
        "fcntl.lockf(open('/tmp/x', 'w'), fcntl.LOCK_EX)",
    ],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the calls are named by their numbers on x86-64")
def test_what_the_machine_has_few_of(attack, take):
    outcome = attack(f"import ctypes, fcntl, os\nlibc = ctypes.CDLL(None)\ndef attack():\n    {take}\n    return 1.0")
    assert outcome.kind == "raised", outcome


def test_fork_bomb(attack):
    outcome = attack(
        """
import os, time
def attack():
    count = 0
    try:
        while count < 10000:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            count += 1
    except OSError:
        return count
"""
    )
    assert outcome.kind == "returned" and outcome.value < 40, outcome


def test_fork_bomb_that_doubles(attack, hasty):
    outcome = attack(
        "import os\ndef attack():\n    while True:\n        try: os.fork()\n        except OSError: pass", box=hasty
    )
    assert outcome.kind in ("timed out", "crashed"), outcome


def test_threads(attack):
    outcome = attack(
        """
import threading, time
def attack():
    try:
        for count in range(10000):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        return count
"""
    )
    assert outcome.kind == "returned" and outcome.value < 40, outcome


def test_open_files(attack):
    outcome = attack("def attack():\n    return len([open('/dev/null') for _ in range(1000)])")
    assert outcome.kind == "raised" and "OSError" in outcome.bases, outcome


@pytest.mark.parametrize(
    "stream", ["sys.stdout.write", "sys.stderr.write", "(lambda text: os.write(1, text.encode()))"]
)
def test_flood_of_output(attack, stream):
    outcome = attack(
        f"import os, sys\ndef attack():\n    for _ in range(100):\n        {stream}('x' * 10**6)\n    return 1.0"
    )
    assert outcome.kind == "returned", outcome


AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


@pytest.fixture
def a_second():
    """A sandbox in which a call has a second."""
    with Sandbox(("numpy",), time_limit=1, cell_limit=1, notebook_limit=60, memory_mb=300) as box:
        yield box


@pytest.mark.skipif(
    not (AUTOGROUP.exists() and AUTOGROUP.read_text().strip() == "1"),
    reason="the kernel does not share processors out by session",
)
def test_processor_hog_does_not_starve_others(attack, box, a_second):
    """Thirty busy processes beside an honest submission: that has its share, though there are few processors."""
    source = "import os\ndef attack():\n    for _ in range(5): os.fork()\n    while True: pass"
    hog = threading.Thread(target=attack, args=(source,), kwargs={"box": a_second})
    work = "import time\ndef f():\n    while time.process_time() < 0.3: pass\n    return 1"
    with box.session([work], ["f"]) as session:
        hog.start()
        started = time.monotonic()
        outcome = session.call("f", (), {})
        took = time.monotonic() - started
        hog.join()
    assert outcome.kind == "returned" and took < 3, (outcome, took)


def test_process_that_outlives(attack, secret):
    """Forked twice, in a session of its own, deaf to signals: it ends with the grading all the same."""
    mark = f"left{os.getpid()}"
    outcome = attack(
        f"""
import os, signal, time, ctypes
def attack():
    if os.fork() == 0:
        try: os.setsid()
        except OSError: os.setpgid(0, 0)
        if os.fork() == 0:
            for number in range(1, 32):
                try: signal.signal(number, signal.SIG_IGN)
                except OSError: pass
            ctypes.CDLL(None).prctl(15, b"{mark}", 0, 0, 0)
            while True: time.sleep(1)
        os._exit(0)
    time.sleep(0.3)
    return 1.0
"""
    )
    assert outcome.kind == "returned", outcome
    assert not processes_with(mark)


def test_other_processes_are_out_of_sight(attack):
    """Neither the warm interpreter nor the grader is there to be seen, signalled or traced."""
    outcome = attack(
        """
import os
def attack():
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [len(seen), os.getppid()]
"""
    )
    assert outcome.kind == "returned" and outcome.value.tolist() == [1, 0], outcome


@pytest.mark.parametrize("target", ["-1", "0", "2", "os.getppid()"])
def test_signals_reach_nobody_else(attack, box, target):
    attack(f"import os, signal\ndef attack():\n    os.kill({target}, signal.SIGKILL)\n    return 1.0")
    warm = box.process.pid
    attack(f"import os, signal\ndef attack():\n    os.kill({target}, signal.SIGSTOP)\n    return 1.0")
    assert box.process.pid == warm and box.process.poll() is None


@pytest.mark.parametrize(
    "call",
    [
        "ptrace(16, 1, 0, 0)",
        "unshare(0x10000000)",
        "unshare(0x20000)",
        "setns(3, 0)",
        "mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "umount2(b'/proc', 2)",
        "chroot(b'/tmp')",
        "setuid(0)",
        "setresuid(0, 0, 0)",
        "setgroups(1, (ctypes.c_int * 1)(0))",
        "sethostname(b'evil', 4)",
        "prctl(24, 0, 0, 0, 0)",
        "syscall(56, 0x10000011, 0, 0, 0, 0)" if os.uname().machine == "x86_64" else "unshare(0)",
        "setpriority(0, 0, -20)",
        "prlimit(1, 7, (ctypes.c_long * 2)(9, 9), None)",
    ],
)
def test_rights(attack, call):
    """Each of these system calls is refused (they return -1)."""
    outcome = attack(f"import ctypes\ndef attack():\n    return ctypes.CDLL(None).{call}")
    assert outcome.kind == "returned" and outcome.value == -1, outcome


def test_no_capabilities(attack):
    outcome = attack(
        """
import os, re
def attack():
    status = open("/proc/self/status").read()
    rights = [int(mask, 16) for mask in re.findall(r"Cap\\w+:\\s+(\\w+)", status)]
    return [sum(rights), int(re.search(r"NoNewPrivs:\\s+(\\d)", status)[1]), os.getuid() == 0]
"""
    )
    assert outcome.kind == "returned" and outcome.value.tolist() == [0, 1, 0], outcome


def test_setuid_programs(attack):
    outcome = attack(
        "import os\ndef attack():\n    return sum(os.path.exists(f'/usr/bin/{n}') for n in ('su', 'sudo'))"
    )
    assert outcome.value == 0, outcome


def test_environment_is_ours_alone(attack, monkeypatch):
    monkeypatch.setenv("GRADEBOOK_PASSWORD", "x")
    outcome = attack("import os\ndef attack():\n    raise RuntimeError(' '.join(sorted(os.environ)))")
    known = "HOME LANG LOGNAME MKL_NUM_THREADS MPLBACKEND MPLCONFIGDIR OMP_NUM_THREADS OPENBLAS_NUM_THREADS PATH"
    assert outcome.error.startswith(f"RuntimeError: {known} PWD TZ USER (line"), outcome
