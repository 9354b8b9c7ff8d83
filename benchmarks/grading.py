"""What grading a class costs: ours with isolation on, beside stock nbgrader on the same submissions.

    python benchmarks/grading.py [--chapters patchify small_vit] [--few 24] [--many 240] [--sizes 30 100 300 1000]
                                 [--repeats 3] [--output benchmarks/results/grading.json]

Both are timed as a teacher runs them, from the command's start to its end, on a course without a gradebook; for
nbgrader the assignment is recorded before the clock starts, because it refuses to grade without. The few of nbgrader
and the many of ours take turns, and of the repeats the one with the median time counts. CPU seconds are those of all
processes; unlike the others they hardly depend on what else the machine does. Chapters that are not asked for stay as
they are in the output.
"""

import argparse
import contextlib
import datetime
import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "classroom"))

import nbformat  # noqa: E402
from build import STUDENTS, notebook, submit  # noqa: E402

from autograder.notebooks.generate import source_notebook  # noqa: E402
from autograder.notebooks.solution import exercise_texts  # noqa: E402


def course(folder, chapter, count):
    """A course with so many submissions: the sample class over and over, or the solutions of another chapter."""
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    shutil.copytree(ROOT / "exercises" / chapter, folder / "exercises" / chapter)
    source = folder / "_build" / "source" / chapter / f"{chapter}.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(source_notebook(chapter), source)
    if chapter == "patchify":
        codes = [STUDENTS[name] for name in ("ada", "bo", "dana", "emil", "fatou", "gita", "ines", "jonas")]
    else:
        codes = ["\n\n\n".join(text.solution for text in exercise_texts(chapter).values())]
    for number in range(count):
        submit(folder, f"s{number:05}", notebook(codes[number % len(codes)], chapter), name=f"{chapter}.ipynb",
               assignment=chapter)  # fmt: skip


def machine():
    """Where and when something is measured."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    return {
        "date": datetime.date.today().isoformat(),
        "cores": os.cpu_count(),
        "cpu": cpu or platform.machine(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 1),
    }


def run(folder, *arguments):
    """Run a command; returns its `seconds`, `cpu_seconds` and `memory_mb`, the last two of all its processes."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    peak = {"cpu_seconds": 0.0, "memory_mb": 0.0}
    watch = threading.Thread(target=_watch, args=(process, peak))
    watch.start()
    output, _ = process.communicate()
    seconds = time.perf_counter() - start
    watch.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{output[-3000:]}")
    return {"seconds": round(seconds, 2)} | {key: round(value, 1) for key, value in peak.items()}


def _watch(process, peak):
    while process.poll() is None:
        tree = _tree(process.pid)
        peak["memory_mb"] = max(peak["memory_mb"], sum(map(_memory, tree)) / 1024)
        peak["cpu_seconds"] = max(peak["cpu_seconds"], sum(map(_cpu, tree)))
        time.sleep(0.25)


def _cpu(pid):
    """CPU seconds of a process and of its children that have ended."""
    try:
        fields = Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _tree(pid):
    """A process and all below it."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(entry))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def _memory(pid):
    """kB of a process, shared pages divided among those who share them."""
    try:
        lines = Path("/proc", str(pid), "smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def scores(folder, chapter):
    return [
        json.loads(path.read_text())["score"] for path in sorted(folder.glob(f"autograded/*/{chapter}/verdict.json"))
    ]


def measure(chapter, few, many, sizes, repeats):
    """The rows of one chapter, printed as they come."""
    rows, runs = [], {"nbgrader": [], "isolated": []}
    for _ in range(repeats):
        for grader, count in (("nbgrader", few), ("isolated", many)):
            runs[grader].append(once(grader, chapter, count))
            print(f"{grader:<13}{count:>6} submissions{runs[grader][-1]['seconds']:8.1f} s", flush=True)
    ordered = {grader: sorted(its_runs, key=lambda run: run["seconds"]) for grader, its_runs in runs.items()}
    median = {
        grader: its_runs[len(its_runs) // 2] | {"repeats": [run["seconds"] for run in runs[grader]]}
        for grader, its_runs in ordered.items()
    }
    stock = _row("nbgrader", few, median["nbgrader"], rows)
    ours = _row("isolated", many, median["isolated"], rows, stock)
    bare = _row("not isolated", many, once("not isolated", chapter, many), rows, stock)
    print(f"{'':16}isolation takes {1 - bare['cpu_seconds'] / ours['cpu_seconds']:.0%} of the CPU time", flush=True)
    for count in (few, *sizes):
        _row("isolated", count, once("isolated", chapter, count), rows, stock)
    return rows


def once(grader, chapter, count):
    """One run on a class of its own."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        course(folder, chapter, count)
        if grader == "nbgrader":
            run(folder, "nbgrader", "generate_assignment", chapter, "--force")
            return run(folder, "nbgrader", "autograde", chapter)
        options = ["--isolation", "none"] if grader == "not isolated" else []
        measured = run(folder, "autograder", "grade", *options)
        assert len(scores(folder, chapter)) == count
        return measured


def where_it_goes(chapter, count):
    """What the milliseconds of a submission are spent on, in one process: {what: ms}.

    Each clock stops while another one, of a step within, is running.
    """
    from autograder.grading import find, grade, record, run
    from autograder.grading.classroom import Classroom
    from autograder.grading.gradebook import Gradebook
    from autograder.judging import judge
    from autograder.reports.feedback import feedback
    from autograder.sandbox import host as sandbox

    steps = {
        "reading the notebook": [(grade, "read")],
        "a process of its own": [(sandbox.Session, "_begin"), (sandbox.Session, "_fork"), (sandbox.Session, "close")],
        "calls in the sandbox": [(sandbox.Session, "call")],
        "judging and explaining": [(judge.Trial, "run"), (judge.Trial, "verdict")],
        "writing the gradebook": [(Gradebook, "record")],
        "writing three files": [(record, "_write"), (record, "restored")],
    }
    seconds, running = dict.fromkeys([*steps, "the rest"], 0.0), ["the rest"]
    since = time.perf_counter()

    def switch():
        nonlocal since
        now = time.perf_counter()
        seconds[running[-1]] += now - since
        since = now

    def clocked(function, step):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            switch()
            running.append(step)
            try:
                return function(*args, **kwargs)
            finally:
                switch()
                running.pop()

        return wrapper

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.ExitStack() as stack:
        course(Path(folder), chapter, count + 1)
        own, url = Classroom.here(), f"sqlite:///{folder}/gradebook.db"
        limits = grade.Limits()
        run.grade_class(
            own, url, feedback=feedback, limits=limits, seed=0, student="s00000", workers=1
        )  # what is paid once
        stack.callback(grade.close_sandbox)
        for step, functions in steps.items():
            for owner, name in functions:
                stack.enter_context(mock.patch.object(owner, name, clocked(getattr(owner, name), step)))
        handed = [one for one in find.find(own, own.folder("submitted"), None, None, 0) if one.student != "s00000"]
        with record.open_gradebook(own, url, [chapter]) as book:
            recorder = record.Recorder(own, book, limits, clocked(feedback, "writing three files"))
            since, seconds = time.perf_counter(), dict.fromkeys(seconds, 0.0)
            for one, verdict, submission, taken in run._in_this_process(handed, limits):
                recorder.record(one, verdict, submission, taken)
            switch()
    return {step: round(taken / count * 1e3, 2) for step, taken in seconds.items()}


def _row(grader, count, measured, rows, stock=None):
    row = {"grader": grader, "submissions": count, "date": datetime.date.today().isoformat()} | measured
    rows.append(row)
    each, cpu = row["seconds"] / count, row["cpu_seconds"] / count
    ratio = f"{stock['seconds'] / stock['submissions'] / each:7.1f} times as fast as nbgrader" if stock else ""
    print(
        f"{grader:<13}{count:>6} submissions{row['seconds']:8.1f} s{each:8.3f} s each{cpu:8.3f} s CPU"
        f"{1 / each:7.1f} a second{row['memory_mb']:6.0f} MB{ratio}",
        flush=True,
    )
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--chapters", nargs="+", default=["patchify", "small_vit"])
    parser.add_argument("--few", type=int, default=24)
    parser.add_argument("--many", type=int, default=240)
    parser.add_argument("--sizes", type=int, nargs="*", default=[30, 100, 300, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ["PYTHONPATH"] = str(ROOT)
    kept = options.output and options.output.exists()
    found = (json.loads(options.output.read_text()) if kept else {"chapters": {}}) | machine()
    for chapter in options.chapters:
        print(f"{chapter}, {os.cpu_count()} cores", flush=True)
        found["chapters"][chapter] = measure(chapter, options.few, options.many, options.sizes, options.repeats)
        found.setdefault("where", {})[chapter] = where = where_it_goes(chapter, options.many)
        print("  ".join(f"{step} {ms:.1f} ms" for step, ms in where.items()), flush=True)
        if options.output:
            options.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
