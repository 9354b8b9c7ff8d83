"""The system calls that a submission may make, and the program by which the kernel refuses all others.

The list was measured (`benchmarks/system_calls.py`): what the course's notebooks, NumPy, SciPy, Matplotlib and PyTorch
ask of the kernel, with threads and processes of their own. A call that is not on it fails as on a kernel that does not
know it, which is what the C library falls back from. The program is made here, outside, and handed to the sandbox as
bytes.
"""

import errno
import platform
import struct

# Each call with its number on x86-64 and on arm64; None where there is no such call.
ALLOWED = {
    # files
    "read": (0, 63), "write": (1, 64), "open": (2, None), "openat": (257, 56), "creat": (85, None), "close": (3, 57),
    "close_range": (436, 436), "stat": (4, None), "lstat": (6, None), "fstat": (5, 80), "newfstatat": (262, 79),
    "statx": (332, 291), "statfs": (137, 43), "fstatfs": (138, 44), "lseek": (8, 62), "pread64": (17, 67),
    "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66), "preadv": (295, 69), "pwritev": (296, 70),
    "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "dup": (32, 23), "dup2": (33, None),
    "dup3": (292, 24), "truncate": (76, 45),
    "ftruncate": (77, 46), "fallocate": (285, 47), "getdents": (78, None), "getdents64": (217, 61),
    "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "rename": (82, None), "renameat": (264, 38),
    "renameat2": (316, 276), "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "link": (86, None),
    "linkat": (265, 37), "unlink": (87, None), "unlinkat": (263, 35), "symlink": (88, None), "symlinkat": (266, 36),
    "readlink": (89, None), "readlinkat": (267, 78), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53),
    "umask": (95, 166), "utime": (132, None), "utimes": (235, None), "futimesat": (261, None),
    "utimensat": (280, 88), "mknod": (133, None), "mknodat": (259, 33), "getxattr": (191, 8), "lgetxattr": (192, 9),
    "fgetxattr": (193, 10), "listxattr": (194, 11), "llistxattr": (195, 12), "flistxattr": (196, 13),
    # memory
    "munmap": (11, 215), "brk": (12, 214), "mprotect": (10, 226), "mremap": (25, 216),
    # time
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153), "alarm": (37, None),
    "getitimer": (36, 102), "setitimer": (38, 103), "timer_create": (222, 107), "timer_settime": (223, 110),
    "timer_gettime": (224, 108), "timer_getoverrun": (225, 109), "timer_delete": (226, 111),
    "timerfd_create": (283, 85), "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87),
    # waiting, and what is waited for
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72), "epoll_create": (213, None),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441), "eventfd": (284, None), "eventfd2": (290, 19), "signalfd": (282, None),
    "signalfd4": (289, 74), "pipe": (22, None), "pipe2": (293, 59), "pause": (34, None), "futex": (202, 98),
    "restart_syscall": (219, 128), "sched_yield": (24, 124),
    # sockets between its own processes
    "bind": (49, 200), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242), "connect": (42, 203),
    "getsockname": (51, 204), "getpeername": (52, 205), "shutdown": (48, 210),
    # signals
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "rt_sigqueueinfo": (129, 138),
    "sigaltstack": (131, 132), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    # processes and threads
    "fork": (57, None), "vfork": (58, None), "exit": (60, 93), "exit_group": (231, 94), "wait4": (61, 260),
    "waitid": (247, 95), "set_tid_address": (218, 96), "set_robust_list": (273, 99), "get_robust_list": (274, 100),
    "rseq": (334, 293), "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178),
    "getpgrp": (111, None), "getpgid": (121, 155), "setpgid": (109, 154), "getsid": (124, 156),
    # who and where it is, what it may use
    "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
    "getresgid": (120, 150), "getgroups": (115, 158), "uname": (63, 160), "sysinfo": (99, 179), "getcpu": (309, 168),
    "getrandom": (318, 278), "getrusage": (98, 165), "getrlimit": (97, 163), "getpriority": (140, 141),
    "sched_getaffinity": (204, 123), "sched_getscheduler": (145, 120), "sched_getparam": (143, 121),
    "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126), "sched_getattr": (315, 275),
}  # fmt: skip

# What a class may allow besides, for packages of its own, each with what it costs.
ON_REQUEST = {
    **dict.fromkeys(("execve", "execveat"), "other programs can be started"),
    **dict.fromkeys(("memfd_create", "shmget", "shmat", "shmctl", "shmdt"), "memory that only a cgroup counts"),
    **dict.fromkeys(("sendfile", "splice", "tee", "copy_file_range"), "memory that is kept in pipes and not counted"),
    **dict.fromkeys(("mlock", "mlock2", "munlock", "mlockall", "munlockall"), "memory that cannot be swapped out"),
    **dict.fromkeys(("semget", "semop", "semctl", "semtimedop"), "semaphores, of which the machine has few"),
    **dict.fromkeys(("io_setup", "io_submit", "io_getevents", "io_destroy", "io_cancel"),
                    "contexts for asynchronous files, of which the machine has few"),
    **dict.fromkeys(("inotify_init1", "inotify_add_watch", "inotify_rm_watch"),
                    "watches of files, of which the machine has few"),
    **dict.fromkeys(("mincore", "fadvise64", "readahead", "preadv2", "pwritev2"),
                    "submissions that are graded at one time can signal each other what is in memory"),
    "flock": "submissions that are graded at one time can signal each other by locks on files of Python",
    **dict.fromkeys(("sched_setaffinity", "sched_setscheduler", "setpriority", "setsid"),
                    "more of the processors than its share"),
    **dict.fromkeys(("mbind", "set_mempolicy", "set_mempolicy_home_node", "migrate_pages", "move_pages"),
                    "a choice of where memory lies"),
    **dict.fromkeys(("setxattr", "fsetxattr", "chown", "fchown", "fchownat"), "more about files, uncounted"),
}  # fmt: skip
_REQUESTED = {
    "execve": (59, 221), "execveat": (322, 281), "memfd_create": (319, 279), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "shmdt": (67, 197), "sendfile": (40, 71), "splice": (275, 76), "tee": (276, 77),
    "copy_file_range": (326, 285), "mlock": (149, 228), "mlock2": (325, 284), "munlock": (150, 229),
    "mlockall": (151, 230), "munlockall": (152, 231), "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191),
    "semtimedop": (220, 192), "io_setup": (206, 0), "io_submit": (209, 2), "io_getevents": (208, 4),
    "io_destroy": (207, 1), "io_cancel": (210, 3), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "inotify_rm_watch": (255, 28), "flock": (73, 32), "mincore": (27, 232),
    "fadvise64": (221, 223), "readahead": (187, 213),
    "preadv2": (327, 286), "pwritev2": (328, 287), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "setpriority": (141, 140), "setsid": (112, 157), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "setxattr": (188, 5), "fsetxattr": (190, 7), "chown": (92, None), "fchown": (93, 55), "fchownat": (260, 54),
}  # fmt: skip

# Calls that are allowed with some arguments and not with others; `_rules` says with which.
_CHECKED = {
    "clone": (56, 220), "execve": (59, 221), "execveat": (322, 281), "socket": (41, 198), "socketpair": (53, 199),
    "setsockopt": (54, 208), "fcntl": (72, 25), "ioctl": (16, 29), "madvise": (28, 233), "mmap": (9, 222),
    "prctl": (157, 167), "prlimit64": (302, 261), "setrlimit": (160, 164), "personality": (135, 92),
    "getsockopt": (55, 209), "sendto": (44, 206), "recvfrom": (45, 207), "sendmsg": (46, 211), "recvmsg": (47, 212),
}  # fmt: skip
# Calls that do nothing and say that they have succeeded. What a submission can write lies in memory; of a file of the
# machine, each of them would have its disk written out.
_IDLE = {"fsync": (74, 82), "fdatasync": (75, 83), "msync": (26, 227)}
CLONE_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
AF_UNIX, SOL_SOCKET = 1, 1
SOCKET_OPTIONS = (2, 4, 9, 16, 20, 21)  # SO_REUSEADDR, ERROR, KEEPALIVE, PASSCRED, RCVTIMEO, SNDTIMEO: not the sizes
# What Python and multiprocessing ask of a socket: SO_REUSEADDR, TYPE, ERROR, SNDBUF, RCVBUF, KEEPALIVE, PASSCRED,
# PEERCRED, RCVTIMEO, SNDTIMEO, ACCEPTCONN, PROTOCOL, DOMAIN; not a handle of the process at its other end
SOCKET_QUERIES = (2, 3, 4, 7, 8, 9, 16, 17, 20, 21, 30, 38, 39)
MSG_OOB = 1
FCNTL = (0, 1, 2, 3, 4, 1030, 1032, 1034)  # F_DUPFD, GETFD, SETFD, GETFL, SETFL, DUPFD_CLOEXEC, GETPIPE_SZ, GET_SEALS
IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
# MADV_NORMAL, RANDOM, SEQUENTIAL, WILLNEED, DONTNEED, FREE, DONTFORK, DOFORK, HUGEPAGE, NOHUGEPAGE, DONTDUMP, DODUMP
MADVISE = (0, 1, 2, 3, 4, 8, 10, 11, 14, 15, 16, 17)
MAP_LOCKED, MAP_HUGETLB, MAP_SHARED, MAP_ANONYMOUS = 0x2000, 0x40000, 0x1, 0x20
# PR_SET_PDEATHSIG, GET_PDEATHSIG, GET_DUMPABLE, SET_NAME, GET_NAME, CAPBSET_READ, GET_TIMERSLACK, GET_NO_NEW_PRIVS
PRCTL = (1, 2, 3, 15, 16, 23, 30, 39)
PERSONALITY_QUERY = 0xFFFFFFFF
RLIMIT_CORE = 4

# The machine's name for itself: the kernel's name of its calls, and the column in the tables.
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # where they stand in what the kernel shows to the program
LOAD, RETURN = 0x20, 0x06
EQUAL, AT_LEAST, COMMON_BITS = 0x15, 0x35, 0x45  # jumps, on the word that was loaded
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x50000


ALL = "all"  # in the place of names: no filter


class UnknownCall(ValueError):
    """A class asks for a system call that cannot be allowed."""


def check_request(names):
    """Raise `UnknownCall` unless each of the names can be allowed besides the list."""
    for name in names:
        if name not in {**ON_REQUEST, **ALLOWED, **_CHECKED, **_IDLE}:
            raise UnknownCall(f"the system call {name!r} cannot be allowed; what can: {', '.join(sorted(ON_REQUEST))}")


def program(requested=(), machine=None):
    """The filter for this machine's processor, as the kernel takes it.

    Parameters
    ----------
    requested : sequence of str
        Calls of `ON_REQUEST` that are allowed, too.
    machine : str, optional
        Another processor's name.

    Returns
    -------
    bytes or None
        None where the processor's calls do not stand in the tables.

    Raises
    ------
    UnknownCall
        If a requested call cannot be allowed.
    """
    check_request(requested)
    machine = machine or platform.machine()
    if machine not in MACHINES:
        return None
    architecture, column = MACHINES[machine]
    calls = {numbers[column]: _back(ALLOW) for numbers in ALLOWED.values()}
    calls |= {numbers[column]: _back(FAIL) for numbers in _IDLE.values()}
    calls |= {_CHECKED[name][column]: steps for name, steps in _rules().items()}
    calls |= {_REQUESTED[name][column]: _back(ALLOW) for name in requested if name in _REQUESTED}
    calls.pop(None, None)
    steps = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, architecture), *_back(KILL), (LOAD, 0, 0, NUMBER)]
    steps += _search(_pieces(calls))
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def _rules():
    """Steps for the calls whose arguments are looked at."""
    nothing = _back(FAIL | errno.EPERM)
    unix = _if_any(0, [AF_UNIX], FAIL | errno.ENETUNREACH)
    itself = [*_argument(0), *_unless(EQUAL, 0, nothing)]
    reads = [*_argument(2), *_unless(EQUAL, 0, nothing), *_argument(2, upper=True), *_unless(EQUAL, 0, nothing)]
    # What is shared and has no file stays when nothing maps it any more, and then no process counts it.
    shared = _if(COMMON_BITS, MAP_ANONYMOUS, _if(COMMON_BITS, MAP_SHARED, nothing))
    # Nothing needs messages out of turn, and the kernel's code for them had a hole that led out of a sandbox.
    in_turn = {flags: [*_argument(flags), *_if(COMMON_BITS, MSG_OOB, nothing), *_back(ALLOW)] for flags in (2, 3)}
    return {
        "clone": [*_argument(0), *_if(COMMON_BITS, CLONE_NAMESPACES, nothing), *_back(ALLOW)],
        # A program that is started anew has the size of its own that no other shares, and may leave a dump.
        "execve": nothing,
        "execveat": nothing,
        "socket": unix,
        "socketpair": unix,
        "setsockopt": [*_argument(1), *_unless(EQUAL, SOL_SOCKET, nothing), *_if_any(2, SOCKET_OPTIONS)],
        "getsockopt": [*_argument(1), *_unless(EQUAL, SOL_SOCKET, nothing), *_if_any(2, SOCKET_QUERIES)],
        "sendto": in_turn[3],
        "recvfrom": in_turn[3],
        "sendmsg": in_turn[2],
        "recvmsg": in_turn[2],
        "fcntl": _if_any(1, FCNTL, FAIL | errno.EINVAL),
        "ioctl": _if_any(1, IOCTL, FAIL | errno.ENOTTY),
        "madvise": _if_any(2, MADVISE, FAIL | errno.EINVAL),
        "mmap": [*_argument(3), *_if(COMMON_BITS, MAP_LOCKED | MAP_HUGETLB, nothing), *shared, *_back(ALLOW)],
        "prctl": _if_any(0, PRCTL, FAIL | errno.EINVAL),
        "prlimit64": [*itself, *_argument(1), *_if(EQUAL, RLIMIT_CORE, reads), *_back(ALLOW)],
        "setrlimit": [*_argument(0), *_if(EQUAL, RLIMIT_CORE, nothing), *_back(ALLOW)],
        "personality": _if_any(0, [PERSONALITY_QUERY]),
    }


def _argument(number, upper=False):
    """Load half of an argument: the lower 32 bits, which are all that the kernel reads of an int."""
    return [(LOAD, 0, 0, ARGUMENTS + 8 * number + 4 * upper)]


def _if(test, value, steps):
    return [(test, 0, len(steps), value), *steps]


def _unless(test, value, steps):
    return [(test, len(steps), 0, value), *steps]


def _if_any(argument, values, otherwise=FAIL | errno.EPERM):
    """Allow a call whose argument is one of some values."""
    tests = [(EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [*_argument(argument), *tests, *_back(otherwise), *_back(ALLOW)]


def _back(result):
    return [(RETURN, 0, 0, result)]


def _pieces(calls):
    """All numbers there are, cut where the answer changes: the first number of each piece and its steps."""
    unknown = _back(FAIL | errno.ENOSYS)
    pieces = [(0, calls.get(0, unknown))]
    for number in sorted({place for call in calls for place in (call, call + 1)}):
        steps = calls.get(number, unknown)
        if steps != pieces[-1][1]:
            pieces.append((number, steps))
    return pieces


def _search(pieces):
    """Steps that find the piece in which the loaded number lies, by halves: the kernel goes through them often."""
    if len(pieces) == 1:
        return pieces[0][1]
    middle = len(pieces) // 2
    below, above = _search(pieces[:middle]), _search(pieces[middle:])
    if len(below) < 256:
        return [(AT_LEAST, len(below), 0, pieces[middle][0]), *below, *above]
    return [(AT_LEAST, 0, 1, pieces[middle][0]), (0x05, 0, 0, len(below)), *below, *above]
