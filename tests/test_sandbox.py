"""The sandbox with honest submissions: what notebooks hold, which definition counts, what is said of failures."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from autograder.sandbox.host import Sandbox, SandboxFailed, SandboxUnavailable

STUB = 'def f(x):\n    """Twice x."""\n    raise NotImplementedError'
GOOD = "def f(x):\n    return 2 * x"


@pytest.fixture(scope="module", params=["bubblewrap", "none"])
def box(request):
    with Sandbox(("numpy",), request.param, cell_limit=1, time_limit=10) as box:
        yield box


def run(box, *cells, name="f", args=(21.0,)):
    with box.session(cells, [name]) as session:
        return session.call(name, args, {}), session.status(name), session.errors


@pytest.mark.parametrize(
    "cells",
    [
        [GOOD],
        ["import numpy as np", "from autograder import check, CheckFailed", GOOD, "check(f)", "check(f, hidden=True)"],
        ["%matplotlib inline\n%pip install numpy\n!ls\nfiles = !ls\n?print\nprint?\n" + GOOD],
        ["%%time\n" + GOOD],
        ["%%capture out\n" + GOOD],
        ["if True:\n    %load_ext autoreload\n    !pip install x \\\n        y\n" + GOOD],
        ["%time " + "f = lambda x: 2 * x"],
        ["text = '''\n%matplotlib\n!ls\n'''\nassert '%matplotlib' in text and '!ls' in text\n" + GOOD],
        ["%%bash\nls -l", GOOD],
        ["get_ipython().run_line_magic('matplotlib', 'inline')\ndisplay(1)\n" + GOOD],
        ["name = input('Your name? ')", GOOD],
        ["1 / 0\n", GOOD],
        ["1 / 0\n" + GOOD],
        ["this is no Python", GOOD],
        ["import sys\nsys.exit(1)", GOOD],
        ["exit()", GOOD],
        ["raise KeyboardInterrupt", GOOD],
        ["import missing_module", GOOD],
        ["import warnings, sys\nwarnings.warn('x')\nprint('x', file=sys.stderr)\n" + GOOD],
        ["while True: pass", GOOD],
        ["while True: pass\n" + GOOD],
        [GOOD, "while True: pass"],
        ["import time\nwhile True:\n    try: time.sleep(9)\n    except BaseException: pass\n" + GOOD],
        [GOOD, "import os\nos._exit(0)"],
        ["import os\nos._exit(0)\n" + GOOD],
        ["import os\nif os.fork() == 0: x = 1", GOOD],
        ["from __future__ import annotations", "def f(x: undefined) -> nothing:\n    return 2 * x"],
        ["\ufeff" + GOOD.replace("\n", "\r\n")],
        [STUB, GOOD],
        [GOOD, STUB],
        [STUB, "1 / 0\n" + GOOD],
        ["def f(x):\n    return 0", GOOD],
        [GOOD, "f = f(3)"],
        ["def twice(x):\n    raise NotImplementedError('write it')", "def twice(x):\n    return 2 * x", "f = twice"],
        ["import functools\n@functools.cache\ndef f(x):\n    return 2 * x"],
        ["class Twice:\n    def __call__(self, x): return 2 * x\nf = Twice()"],
        ["def helper(x):\n    return 2 * x\ndef f(x):\n    return helper(x)"],
        ["from dataclasses import dataclass\n@dataclass\nclass A:\n    x: float\ndef f(x): return 2 * A(x).x"],
        [
            "import pathlib\npathlib.Path('data.txt').write_text('2')",
            "def f(x): return int(open('data.txt').read()) * x",
        ],
        ["def f(x):\n    import warnings\n    print('progress', flush=True)\n    warnings.warn('x')\n    return 2 * x"],
        [""] * 50 + [GOOD],
    ],
)
def test_right_in_spite_of(box, cells):
    outcome, status, _ = run(box, *cells)
    assert status == "defined" and outcome.kind == "returned" and outcome.value == 42.0, outcome


def test_the_last_definition_counts(box):
    assert run(box, GOOD, "def f(x):\n    return 0")[0].value == 0
    assert run(box, GOOD, "1 / 0\ndef f(x):\n    return 0")[0].value == 42  # never reached in Jupyter


def test_other_functions_get_the_definition_that_counts(box):
    cells = [GOOD, STUB, "def g(x):\n    return f(x) + 1"]
    with box.session(cells, ["f", "g"]) as session:
        assert session.call("g", (1,), {}).value == 3


def test_stubs(box):
    for text in (STUB, "def f(x):\n    # your turn\n    raise NotImplementedError()"):
        outcome, status, _ = run(box, text)
        assert (status, outcome.kind, outcome.bases[0]) == ("stub", "raised", "NotImplementedError")


def test_not_found(box):
    for cells in ([], ["f = 3"], ["def g(x): return x"], ["def f(x) return x"], ["class A:\n    def f(x): pass"]):
        outcome, status, _ = run(box, *cells)
        assert outcome.kind == status == "not found"


def test_errors_name_the_cell(box):
    errors = run(box, "x = 1", "y = undefined", "def f(:", "while True: pass", GOOD)[2]
    assert [line.split(":")[0] for line in errors] == ["cell 2", "cell 3", "cell 4"]
    assert "NameError" in errors[0] and "SyntaxError" in errors[1] and "1 s" in errors[2]


def test_errors_are_bounded(box):
    errors = run(box, *["raise ValueError('x' * 10**6)"] * 100)[2]
    assert len(errors) == 50 and all(len(line) < 500 for line in errors)


def test_raised(box):
    outcome = run(box, "def f(x):\n    if x > 0:\n        raise KeyError('P must divide')\n")[0]
    assert outcome.kind == "raised" and outcome.bases[:3] == ("KeyError", "LookupError", "Exception")
    assert "P must divide" in outcome.error and "line 3" in outcome.error and "raise KeyError" in outcome.error


def test_arguments_of_every_kind(box):
    cell = """
import numpy as np
def f(a, n, x, text, flag, none, items, pair, table, *, eps):
    assert type(a) is np.ndarray and a.dtype == np.float32 and type(n) is int and type(x) is float
    assert text == "h\\u00e9" and flag is True and none is None and items == [1, 2.5] and pair == (1, (2,))
    assert table["W"].shape == (2, 3) and table["n_heads"] == 2 and eps == 1e-6
    return a
"""
    a = np.arange(4, dtype=np.float32)
    args = (a, 3, 2.0, "hé", True, None, [1, 2.5], (1, (2,)), {"W": np.ones((2, 3)), "n_heads": 2})
    with box.session([cell], ["f"]) as session:
        outcome = session.call("f", args, {"eps": 1e-6})
    assert outcome.kind == "returned" and outcome.value.tolist() == a.tolist(), outcome
    assert repr(outcome.after) == repr((args, {"eps": 1e-6}))


def test_time_limit_of_a_call():
    with Sandbox(("numpy",), time_limit=0.5) as box:
        cells = ["def f(x):\n    while x: pass\n    return 1", "def g(x): return x"]
        with box.session(cells, ["f", "g"]) as session:
            outcome = session.call("f", (1,), {})
            assert outcome.kind == "timed out" and outcome.error == "no answer within 0.5 s"
            assert session.call("g", (5,), {}).value == 5
            assert session.call("f", (0,), {}).value == 1


def test_time_limit_of_a_notebook():
    with Sandbox(("numpy",), cell_limit=1, notebook_limit=3) as box:
        started = time.monotonic()
        with box.session(["while True: pass"] * 20 + [GOOD], ["f"]) as session:
            assert session.call("f", (21.0,), {}).value == 42
        assert time.monotonic() - started < 5
        with box.session([GOOD], ["f"]) as session:
            session.end = time.monotonic()
            assert session.call("f", (1,), {}).kind == "timed out"


STRETCH = """
import json, os, signal, struct, time
signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
for number in range({first}, 10_000):
    time.sleep({pause})
    header = json.dumps({{"arrays": [], "value": number}}).encode()
    os.write(3, struct.pack("<II", len(header), 0) + header)
"""


@pytest.mark.parametrize("pause", [0.1, 0.9])
def test_time_limit_of_a_notebook_that_goes_on_saying_that_cells_are_done(pause):
    """Each cell has a time of its own, but all of them have no more than the notebook."""
    with Sandbox(cell_limit=1, notebook_limit=4) as box:
        started = time.monotonic()
        cells = [STRETCH.format(first=0, pause=pause), *["x = 1"] * 1000, GOOD]
        with box.session(cells, ["f"]) as session:
            assert time.monotonic() - started < 5
            session.call("f", (21.0,), {})
        assert time.monotonic() - started < 6


@pytest.mark.parametrize("left", [0.3, 0.0])
def test_time_limit_of_a_call_at_the_end_of_the_notebook(left):
    with (
        Sandbox(time_limit=20, notebook_limit=20) as box,
        box.session(["def f():\n    while True: pass"], ["f"]) as session,
    ):
        session.end = time.monotonic() + left
        started = time.monotonic()
        outcome = session.call("f", (), {})
        assert time.monotonic() - started < 2
        assert (outcome.kind, outcome.error) == ("timed out", "the notebook has used up its 20 s")


def test_time_limit_of_a_notebook_that_breaks_again_and_again():
    """However often a process is started again, the notebook's time is not."""
    with Sandbox(time_limit=0.2, cell_limit=1, notebook_limit=3) as box:
        started = time.monotonic()
        cells = ["import time\ntime.sleep(0.4)", "import os\ndef f():\n    os._exit(1)"]
        with box.session(cells, ["f"]) as session:
            outcomes = [session.call("f", (), {}) for _ in range(200)]
        assert time.monotonic() - started < 5
        assert {outcome.kind for outcome in outcomes} == {"crashed", "timed out"}


@pytest.mark.parametrize("number", [35, 64, signal.SIGKILL])
@pytest.mark.parametrize("isolation", ["bubblewrap", "none"])
def test_ended_by_any_signal(isolation, number):
    with Sandbox(isolation=isolation) as box:
        with box.session(["import os\ndef f(n):\n    os.kill(os.getpid(), n)\n    os._exit(1)"], ["f"]) as session:
            outcome = session.call("f", (int(number),), {})
        assert outcome.kind == "crashed", outcome
        if isolation == "none":
            name = {35: "signal 35", 64: "SIGRTMAX"}.get(number, "SIGKILL")
            assert outcome.error == f"it was killed by {name}"
        assert run(box, GOOD)[0].value == 42


def test_notebook_that_breaks_everything():
    """However many cells end the process, what the others define is judged."""
    cells = [*["import os\nos._exit(0)\nx = 1"] * 10, GOOD]
    with Sandbox(("numpy",)) as box, box.session(cells, ["f"]) as session:
        assert session.call("f", (21.0,), {}).value == 42
        assert "only its definitions" in session.errors[0]


def test_notebook_that_breaks_even_by_its_definitions():
    cells = [*["import os\nclass A:\n    os._exit(0)"] * 8, GOOD]
    with Sandbox(("numpy",)) as box, box.session(cells, ["f"]) as session:
        assert session.call("f", (21.0,), {}).value == 42
        assert "left out" in session.errors[-1]


def test_notebook_that_cannot_be_run():
    with Sandbox(("numpy",), notebook_limit=0) as box, box.session([GOOD], ["f"]) as session:
        assert "0 s" in session.lost and session.status("f") == "crashed"
        assert session.call("f", (21.0,), {}).kind == "crashed"


def test_missing_modules_are_left_out():
    with Sandbox(("numpy", "no_such_module")) as box:
        assert box.missing == ["no_such_module"]


def test_what_the_first_cell_of_a_notebook_imports_is_warm():
    """Else each submission spends more time on that than on all its calls."""
    from build import notebook

    from autograder.grading.grade import Limits, _sandbox, close_sandbox
    from autograder.notebooks.read import read

    submission = read(json.dumps(notebook()).encode(), "patchify", "patchify.ipynb")
    begin, end = "import sys\nbefore = set(sys.modules)", "def f():\n    return len(set(sys.modules) - before)"
    try:
        with _sandbox(submission.code, Limits()).session([begin, *submission.code, end], ["f"]) as session:
            assert session.call("f", (), {}).value < 5
    finally:
        close_sandbox()


def test_torch():
    pytest.importorskip("torch")
    import torch

    cell = "import torch\ndef f(x, n):\n    assert isinstance(x, torch.Tensor)\n    return (x * n).requires_grad_()"
    with Sandbox(("numpy", "torch"), memory_mb=2048) as box, box.session([cell], ["f"]) as session:
        outcome = session.call("f", (torch.ones(2, 3), 4), {})
    assert (
        outcome.kind == "returned" and outcome.value.dtype == np.float32 and outcome.value.tolist() == [[4.0] * 3] * 2
    )


def test_many_sessions_leave_nothing_behind():
    with Sandbox(("numpy",)) as box:
        open_files = len(os.listdir("/proc/self/fd"))
        for number in range(30):
            with box.session([f"def f(x): return x + {number}"], ["f"]) as session:
                assert session.call("f", (1,), {}).value == number + 1
        assert len(os.listdir("/proc/self/fd")) == open_files
        folder = Path(box.folder.name)
    assert not folder.exists()


def test_one_session_at_a_time():
    with Sandbox(("numpy",)) as box, box.session([], []), pytest.raises(RuntimeError, match="one session"):
        box.session([], [])


def test_a_sandbox_that_dies_is_replaced():
    with Sandbox(("numpy",)) as box:
        with box.session([GOOD], ["f"]) as session:
            box.kill()
            with pytest.raises(SandboxFailed):
                session.call("f", (1,), {})
        assert run(box, GOOD)[0].value == 42


def test_isolation_none_is_said():
    with Sandbox(("numpy",), "none") as box:
        assert "without isolation" in box.warning
    assert Sandbox().warning is None
    with pytest.raises(ValueError, match="bubblewrap or none"):
        Sandbox(isolation="docker")


def test_without_bubblewrap(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="apt install bubblewrap"), Sandbox(("numpy",)):
        pass


@pytest.mark.parametrize(
    "line", ["bwrap: setting up uid map: Permission denied", "bwrap: No permissions to create new namespace"]
)
def test_where_namespaces_are_forbidden(monkeypatch, tmp_path, line):
    program = tmp_path / "bwrap"
    program.write_text(f"#!{shutil.which('sh')}\necho '{line}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailable) as caught, Sandbox(("numpy",)):
        pass
    assert line.removeprefix("bwrap: ") in str(caught.value) and "/etc/apparmor.d/bwrap" in str(caught.value)


def test_where_the_first_session_breaks_the_sandbox(monkeypatch):
    """As where the system allows no more process namespaces: that is known before anything is graded."""

    start = Sandbox.start

    def breaks(box):
        start(box)
        box.control.sendall(b"no order")  # what it does not survive; one that has died of it is started again

    monkeypatch.setattr(Sandbox, "start", breaks)
    box = Sandbox(("numpy",))
    with pytest.raises(SandboxUnavailable, match=r"JSONDecodeError.*user namespaces"), box:
        pass
    assert box.process is None


def test_killed_grader_leaves_nothing_behind():
    mark = f"left-by-{os.getpid()}"
    code = f"""
from autograder.sandbox.host import Sandbox
with Sandbox(("numpy",)) as box:
    cell = "import ctypes\\ndef f():\\n    ctypes.CDLL(None).prctl(15, b'{mark}', 0, 0, 0)\\n    while True: pass"
    with box.session([cell], ["f"]) as session:
        print("started", flush=True)
        session.call("f", (), {{}})
"""
    grader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    grader.stdout.readline()
    wait_until(lambda: any_process(mark))
    grader.kill()
    grader.wait()
    wait_until(lambda: not any_process(mark))


def any_process(name):
    for file in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if file.read_text().strip() == name:
                return True
    return False


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_sandboxes_side_by_side():
    def grade(number):
        with Sandbox(("numpy",)) as box:
            return [run(box, f"def f(x): return x * {number + turn}")[0].value for turn in range(5)]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(grade, range(4)))
    assert results == [[21.0 * (number + turn) for turn in range(5)] for number in range(4)]
