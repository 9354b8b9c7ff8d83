"""What the isolation of one submission costs: a session that runs nothing, by what the interpreter has loaded.

To aim for, as root: 3.4 ms a session with NumPy loaded and 21 ms with torch, what a warm interpreter costs that shuts
each child in by the same means (a measurement of ours, before this was written). As root this runs a second time as
an ordinary user, whose sandbox is built in another way.

The CPU time is that of the warm interpreter and the sessions it forks; unlike the others it hardly depends on what
else the machine does. Most of it is the fork.
"""

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "security"))

from test_ordinary_user import as_an_ordinary_user  # noqa: E402

from autograder.sandbox.host import Sandbox  # noqa: E402

LOADED = {
    "NumPy": ("numpy",),
    "NumPy, SciPy": ("numpy", "scipy.special"),
    "NumPy, SciPy, Matplotlib": ("numpy", "scipy.special", "matplotlib.pyplot"),
    "NumPy, torch": ("numpy", "torch"),
}


def cpu_below(pid):
    """CPU seconds of all processes below one, and of their children that have ended."""
    total = 0.0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        fields = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + cpu_below(child)
    return total


def median(times):
    return sorted(times)[len(times) // 2] * 1e3


def main(count=100):
    print("as root" if os.geteuid() == 0 else "as an ordinary user", flush=True)
    print(f"{'loaded':<26}{'start':>7}{'begin':>9}{'end':>9}{'CPU':>9}{'a call':>9}   seconds; milliseconds")
    for name, preload in LOADED.items():
        start = time.perf_counter()
        with Sandbox(preload, memory_mb=4096) as box:
            started = time.perf_counter() - start
            if box.missing:
                print(f"{name:<26} not installed: {', '.join(box.missing)}")
                continue
            begin, end = [], []
            cpu = cpu_below(os.getpid())
            for _ in range(count):
                times = [time.perf_counter()]
                session = box.session([], [])
                times.append(time.perf_counter())
                session.close()
                times.append(time.perf_counter())
                begin.append(times[1] - times[0])
                end.append(times[2] - times[1])
            cpu = (cpu_below(os.getpid()) - cpu) / count
            with box.session(["def double(x):\n    return 2 * x"], ["double"]) as session:
                calls = []
                for _ in range(count):
                    start = time.perf_counter()
                    session.call("double", (1.0,), {})
                    calls.append(time.perf_counter() - start)
        row = f"{median(begin):9.1f}{median(end):9.1f}{cpu * 1e3:9.1f}{median(calls):9.2f}"
        print(f"{name:<26}{started:7.2f}{row}", flush=True)
    if os.geteuid() == 0:
        as_an_ordinary_user([sys.executable, "-B", __file__, str(count)])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
