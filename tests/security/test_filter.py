"""The filter of system calls: both processors' tables, run through by a small interpreter, and the kernel's answer."""

import errno
import functools
import json
import platform
import struct
import sys
from pathlib import Path

import pytest

from autograder.sandbox import filter
from autograder.sandbox.host import Sandbox, SandboxUnavailable

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from system_calls import USES  # noqa: E402

HEADERS = json.loads(Path(__file__).with_name("system_calls.json").read_text())
COLUMN = {"x86_64": 0, "aarch64": 1}
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
I386, ARM, RISCV64 = 0x40000003, 0x40000028, 0xC00000F3
ALLOW, KILL = 0x7FFF0000, 0x80000000

# What reaches further into the kernel than an exercise needs, or uses up what the machine has few of.
FORBIDDEN = """
acct add_key adjtimex arch_prctl bpf cachestat capset chown chroot clock_adjtime clock_settime clone3 copy_file_range
create_module delete_module execve execveat fadvise64 fanotify_init fanotify_mark flock fchown fchownat fchmodat2
file_setattr finit_module fremovexattr fsconfig fsetxattr fsmount fsopen fspick futex_waitv get_mempolicy init_module
inotify_add_watch inotify_init inotify_init1 io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit
io_uring_enter io_uring_register io_uring_setup ioperm iopl ioprio_set kcmp kexec_file_load kexec_load keyctl
landlock_create_ruleset lchown listmount lookup_dcookie lsetxattr lsm_set_self_attr map_shadow_stack mbind
memfd_create memfd_secret migrate_pages mincore mlock mlock2 mlockall modify_ldt mount mount_setattr move_mount
move_pages mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mseal msgctl msgget msgrcv msgsnd
name_to_handle_at nfsservctl open_by_handle_at open_tree open_tree_attr openat2 perf_event_open personality pidfd_getfd
pivot_root pkey_alloc pkey_free pkey_mprotect preadv2 process_madvise process_mrelease process_vm_readv
process_vm_writev ptrace pwritev2 quotactl quotactl_fd readahead reboot recvmmsg remap_file_pages removexattr
request_key rt_tgsigqueueinfo sched_setaffinity sched_setattr sched_setparam sched_setscheduler seccomp semctl semget
semop semtimedop sendfile sendmmsg set_mempolicy set_mempolicy_home_node setdomainname setfsgid setfsuid setgid
setgroups sethostname setns setpriority setregid setresgid setresuid setreuid setsid settimeofday setuid setxattr
setxattrat shmat shmctl shmdt shmget splice statmount swapoff swapon sync sync_file_range syncfs syslog tee umount2
unshare userfaultfd uselib ustat vhangup vmsplice _sysctl
""".split()  # noqa: SIM905

# Asked for by Python, NumPy, SciPy, Matplotlib and PyTorch when they load and compute (strace).
NEEDED = """
bind brk chdir clock_nanosleep close close_range connect dup epoll_create1 epoll_ctl eventfd2 exit exit_group
faccessat2 fallocate fstat fstatfs ftruncate futex getcwd getdents64 getegid geteuid getgid
getpid getppid getrandom getrusage getsockname gettid getuid kill listen listxattr lseek mprotect
munmap newfstatat openat pipe2 ppoll pread64 pselect6 pwrite64 read restart_syscall rseq rt_sigaction
rt_sigprocmask rt_sigreturn sched_getaffinity set_robust_list set_tid_address setitimer sigaltstack
statfs sysinfo truncate umask uname unlinkat utimensat wait4 waitid write writev
""".split()  # noqa: SIM905

IDLE = {"fsync", "fdatasync", "msync"}
TABLES = {"list": filter.ALLOWED, "checked": filter._CHECKED, "idle": filter._IDLE, "more": filter._REQUESTED}
SUCCESS = 0  # where an errno is asked for that is none
each_machine = pytest.mark.parametrize("machine", COLUMN)


def answer(program, number, *arguments, architecture):
    """What the kernel would answer: the program run over `struct seccomp_data`, as linux/filter.h describes it."""
    arguments = [argument & (1 << 64) - 1 for argument in (*arguments, *[0] * 6)][:6]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *arguments)
    steps = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at, word = 0, 0
    while True:
        code, if_true, if_false, k = steps[at]
        at += 1
        if code == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            assert k % 4 == 0 and k < 64
            word = struct.unpack_from("<I", data, k)[0]
        elif code == 0x05:  # BPF_JMP | BPF_JA
            at += k
        elif code == 0x06:  # BPF_RET | BPF_K
            return k
        else:  # BPF_JMP | BPF_JEQ, BPF_JGE, BPF_JSET
            at += if_true if {0x15: word == k, 0x35: word >= k, 0x45: bool(word & k)}[code] else if_false


def asking(machine, requested=()):
    """`ask(name or number, *arguments)` gives "allow", "kill" or an errno."""
    program = filter.program(requested, machine)
    assert len(program) // 8 <= 4096  # BPF_MAXINSNS

    def ask(call, *arguments, architecture=ARCHITECTURE[machine]):
        number = HEADERS["calls"][call][COLUMN[machine]] if isinstance(call, str) else call
        result = answer(program, number, *arguments, architecture=architecture)
        return {ALLOW: "allow", KILL: "kill"}.get(result) or (result - 0x50000)

    return ask


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_numbers_are_those_of_the_kernel(table):
    assert {name: list(numbers) for name, numbers in table.items()} == {name: HEADERS["calls"][name] for name in table}


@each_machine
def test_what_reaches_further_is_refused_whatever_its_arguments(machine):
    ask = asking(machine)
    for name in FORBIDDEN:
        if HEADERS["calls"][name][COLUMN[machine]] is not None:
            for argument in (0, 1, 3, 1 << 31, (1 << 32) - 2, (1 << 64) - 2):
                assert ask(name, *[argument] * 6) in (errno.ENOSYS, errno.EPERM), name


@each_machine
def test_what_is_needed_is_allowed(machine):
    ask = asking(machine)
    assert [name for name in NEEDED if ask(name, *[7] * 6) != "allow"] == []


@each_machine
def test_every_number(machine):
    """Of all numbers there are, those on the list are let through; a call that nobody knows yet is refused."""
    ask = asking(machine)
    known = {numbers[COLUMN[machine]]: name for name, numbers in HEADERS["calls"].items()}
    listed = {name for name, numbers in filter.ALLOWED.items() if numbers[COLUMN[machine]] is not None}
    checked = filter._CHECKED.keys()
    for number in [*range(2000), *range(1 << 14, 1 << 14 | 600), (1 << 31) - 1, 1 << 31, (1 << 32) - 1]:
        name = known.get(number)
        if name not in checked:
            right = "allow" if name in listed else SUCCESS if name in IDLE else errno.ENOSYS
            assert ask(number, *[1] * 6) == right, (number, name)


@each_machine
def test_numbers_of_other_ways_into_the_kernel(machine):
    ask = asking(machine)
    for number in range(600):
        assert ask(0x40000000 | number) == errno.ENOSYS  # x32
        for architecture in {I386, ARM, RISCV64, *ARCHITECTURE.values()} - {ARCHITECTURE[machine]}:
            assert ask(number, architecture=architecture) == "kill"


CORE, NOFILE = 4, 7
ARGUMENTS = [  # a call with its arguments, and the answer
    ("clone", (0x01200011,), "allow"),  # fork
    ("clone", (0x003D0F00,), "allow"),  # a thread
    *(("clone", (flag | 0x11,), errno.EPERM) for flag in (
        0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)),
    ("clone3", (), errno.ENOSYS),
    ("socket", (1, 1), "allow"), ("socketpair", (1, 5), "allow"),
    *((call, (family, 1), errno.ENETUNREACH) for call in ("socket", "socketpair")
      for family in (0, 2, 10, 16, 17, 30, 38, 40, 44)),
    ("setsockopt", (3, 1, 2), "allow"), ("setsockopt", (3, 1, 20), "allow"),
    *(("setsockopt", (3, level, option), errno.EPERM) for level, option in (
        (1, 7), (1, 8), (1, 32), (1, 33), (1, 26), (1, 50), (1, 60), (6, 2), (0, 2), (41, 2))),
    # SO_TYPE, ERROR, SNDBUF, PEERCRED, PROTOCOL, DOMAIN
    *(("getsockopt", (3, 1, option), "allow") for option in (3, 4, 7, 17, 38, 39)),
    # SO_PEERSEC, SO_PEERGROUPS, SO_COOKIE, SO_PEERPIDFD; options of UDP, IP and IPv6
    *(("getsockopt", (3, level, option), errno.EPERM) for level, option in (
        (1, 31), (1, 59), (1, 57), (1, 77), (17, 3), (0, 3), (41, 3))),
    # MSG_OOB among the flags
    *((call, (3, 5, 1, 0x4040), "allow") for call in ("sendto", "recvfrom")),
    *((call, (3, 5, 1, flags), errno.EPERM) for call in ("sendto", "recvfrom") for flags in (1, 0x4041)),
    *((call, (3, 5, 0x4040), "allow") for call in ("sendmsg", "recvmsg")),
    *((call, (3, 5, flags), errno.EPERM) for call in ("sendmsg", "recvmsg") for flags in (1, 0x4041)),
    *(("fcntl", (3, command), "allow") for command in (0, 1, 2, 3, 4, 1030, 1032)),
    # F_SETLK, F_SETOWN, F_SETSIG, F_OFD_SETLK, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ, F_ADD_SEALS
    *(("fcntl", (3, command), errno.EINVAL) for command in (6, 7, 8, 10, 37, 38, 1024, 1026, 1031, 1033)),
    ("ioctl", (0, 0x5401), "allow"), ("ioctl", (0, 0x5421), "allow"), ("ioctl", (0, 0x1_0000_5401), "allow"),
    # TIOCSTI, TIOCLINUX, TIOCSETD, FIOASYNC, FS_IOC_SETFLAGS, FICLONE, TUNSETIFF
    *(("ioctl", (0, command), errno.ENOTTY) for command in (
        0x5412, 0x541C, 0x5423, 0x5452, 0x40086602, 0x40049409, 0x400454CA)),
    ("ioctl", (0, 0x1_0000_5412), errno.ENOTTY),  # of which the kernel reads the lower half
    *(("madvise", (0, 0, advice), "allow") for advice in (0, 4, 8, 14)),
    # MADV_REMOVE, MERGEABLE, COLD, PAGEOUT, POPULATE_READ, POPULATE_WRITE, HWPOISON, SOFT_OFFLINE
    *(("madvise", (0, 0, advice), errno.EINVAL) for advice in (9, 12, 20, 21, 22, 23, 100, 101)),
    ("mmap", (0, 4096, 3, 0x22), "allow"), ("mmap", (0, 4096, 3, 0x1), "allow"), ("mmap", (0, 1, 3, 0x4022), "allow"),
    # MAP_SHARED and MAP_SHARED_VALIDATE, with MAP_ANONYMOUS
    *(("mmap", (0, 4096, 3, flags), errno.EPERM) for flags in (0x21, 0x23, 0x4021, 1 << 32 | 0x21)),
    ("mmap", (0, 4096, 3, 0x3), "allow"),
    ("mmap", (0, 4096, 3, 0x40022), errno.EPERM), ("mmap", (0, 4096, 3, 0x2022), errno.EPERM),
    ("prctl", (15,), "allow"), ("prctl", (1,), "allow"),
    # DUMPABLE, KEEPCAPS, SECCOMP, CAPBSET_DROP, SECUREBITS, MCE_KILL, MM, SUBREAPER, NO_NEW_PRIVS, AMBIENT, PTRACER
    *(("prctl", (option,), errno.EINVAL) for option in (
        4, 8, 22, 24, 28, 29, 33, 35, 36, 38, 41, 47, 53, 62, 0x59616D61, 0x53564D41)),
    ("prlimit64", (0, NOFILE, 5, 0), "allow"), ("prlimit64", (0, CORE, 0, 5), "allow"),
    ("prlimit64", (1, NOFILE, 0, 5), errno.EPERM), ("prlimit64", (-1, NOFILE, 0, 5), errno.EPERM),
    ("prlimit64", (0, CORE, 5, 0), errno.EPERM), ("prlimit64", (0, CORE, 5 << 32, 0), errno.EPERM),
    ("prlimit64", (0, CORE | 1 << 32, 5, 0), errno.EPERM),
    ("setrlimit", (NOFILE, 5), "allow"), ("setrlimit", (CORE, 5), errno.EPERM),
    ("personality", (0xFFFFFFFF,), "allow"), ("personality", (0x0040000,), errno.EPERM),
    ("execve", (5, 5, 5), errno.EPERM), ("execveat", (5, 5, 5), errno.EPERM),
]  # fmt: skip


@each_machine
@pytest.mark.parametrize(("call", "arguments", "right"), ARGUMENTS, ids=lambda value: str(value).replace("-", "m"))
def test_arguments(machine, call, arguments, right):
    assert asking(machine)(call, *arguments) == right


def test_all_rules_are_tried_both_ways():
    tried = {call: {right for name, _, right in ARGUMENTS if name == call} for call in filter._CHECKED}
    assert all("allow" in rights for call, rights in tried.items() if not call.startswith("exec"))
    assert all(rights - {"allow"} for rights in tried.values())


NUMBERS = range(500)


@functools.cache
def unasked(machine):
    """What becomes of each number where a class allows nothing more."""
    ask = asking(machine)
    return [ask(number, 1, 1, 1) for number in NUMBERS]


@each_machine
@pytest.mark.parametrize("name", filter.ON_REQUEST)
def test_a_class_may_allow_more(machine, name):
    if HEADERS["calls"][name][COLUMN[machine]] is None:
        pytest.skip(f"{machine} has no {name}")
    assert asking(machine)(name, 1) != "allow"
    ask = asking(machine, (name,))
    assert ask(name, 1) == "allow"
    changed = [number for number in NUMBERS if ask(number, 1, 1, 1) != unasked(machine)[number]]
    assert changed == [HEADERS["calls"][name][COLUMN[machine]]]


@pytest.mark.parametrize("name", ["mount", "unshare", "ptrace", "bpf", "io_uring_setup", "nonsense", "", "Execve"])
def test_what_no_class_can_allow(name):
    with pytest.raises(filter.UnknownCall, match=r"cannot be allowed; what can: .*execve.*memfd_create"):
        Sandbox(system_calls=("memfd_create", name))


def test_a_class_that_allows_more():
    cell = "import os\ndef f(): os.memfd_create('x'); return 1.0\ndef g(): os.sync(); os.setsid(); return 1.0"
    with Sandbox(system_calls=("memfd_create",)) as box, box.session([cell], ["f", "g"]) as session:
        assert session.call("f", (), {}).kind == "returned" and box.warning is None
        assert session.call("g", (), {}).kind == "raised"


@pytest.mark.skipif(platform.machine() not in COLUMN, reason="no table for this machine's processor")
def test_the_kernel_refuses_what_the_tables_do(attack):
    """Every number but those on the list, asked for inside; the rest of this file only simulates."""
    listed = {numbers[COLUMN[platform.machine()]] for table in (filter.ALLOWED, filter._CHECKED, filter._IDLE)
              for numbers in table.values()}  # fmt: skip
    # The kernel sends SIGILL to who calls 335 and 336, uretprobe and uprobe, and lets no filter judge them.
    asked = [number for number in range(600) if number not in {*listed, 335, 336}]
    outcome = attack(
        """
import ctypes
def attack(numbers):
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    return [0 if syscall(number, -1, -1, -1, -1, -1, -1) == -1 and ctypes.get_errno() == 38 else number
            for number in numbers]
""",
        asked,
    )
    assert outcome.kind == "returned" and set(outcome.value.tolist()) == {0} and len(asked) > 300, outcome


def test_no_disk_is_written_out(attack):
    """Not by what is done to a file of the machine; and a file of one's own is there all the same."""
    outcome = attack(
        """
import mmap, os
import numpy as np
def attack():
    for place in (os.__file__, os.path.dirname(os.__file__)):
        file = os.open(place, os.O_RDONLY)
        for call in (os.fsync, os.fdatasync):
            call(file)
    os.fsync(99)  # the kernel would say that there is no such file
    kept = np.memmap("kept", float, "w+", shape=3)
    kept[:] = 7
    kept.flush()
    return np.fromfile("kept")
"""
    )
    assert outcome.kind == "returned" and outcome.value.tolist() == [7, 7, 7], outcome


def test_where_the_processor_has_no_table(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(SandboxUnavailable, match=r"processor \(riscv64\).*allowed_system_calls = 'all'"), Sandbox():
        pass
    look = "import re\ndef f(): return int(re.search(r'Seccomp:\\s+(\\d)', open('/proc/self/status').read())[1])"
    with Sandbox(system_calls=filter.ALL) as box, box.session([look], ["f"]) as session:
        assert session.call("f", (), {}).value == 0
        assert "without a filter of system calls" in box.warning
    monkeypatch.undo()
    with Sandbox() as box, box.session([look], ["f"]) as session:
        assert session.call("f", (), {}).value == 2 and box.warning is None


@pytest.mark.parametrize("name", USES)
def test_honest_work_goes_on(name):
    """What was traced when the list was made, within the filter."""
    if name == "PyTorch":
        pytest.importorskip("torch")
    with Sandbox(memory_mb=4096, cell_limit=60) as box, box.session([USES[name]], []) as session:
        assert session.errors == [] and session.lost is None
