"""What grading a class costs: ours with isolation on, beside stock nbgrader on the same submissions.

    python benchmarks/grading.py [--chapter patchify] [--few 24] [--many 240] [--sizes 30 100 300 1000]

Both are timed as a teacher runs them, from the command's start to its end, on a course without a gradebook; for
nbgrader the assignment is recorded before the clock starts, because it refuses to grade without.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "classroom"))

import nbformat  # noqa: E402
from build import STUDENTS, notebook, submit  # noqa: E402

from autograder.generate import source_notebook  # noqa: E402
from autograder.source import exercise_texts  # noqa: E402


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


def run(folder, *arguments):
    """Run a command; returns (seconds, peak memory of all its processes in MB)."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    peak = [0]
    watch = threading.Thread(target=_watch, args=(process, peak))
    watch.start()
    output, _ = process.communicate()
    seconds = time.perf_counter() - start
    watch.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{output[-3000:]}")
    return seconds, peak[0] / 1024


def _watch(process, peak):
    while process.poll() is None:
        peak[0] = max(peak[0], sum(map(_memory, _tree(process.pid))))
        time.sleep(0.25)


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--chapter", default="patchify")
    parser.add_argument("--few", type=int, default=24)
    parser.add_argument("--many", type=int, default=240)
    parser.add_argument("--sizes", type=int, nargs="*", default=[])
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ["PYTHONPATH"] = str(ROOT)
    chapter = options.chapter
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "nbgrader")
        folder.mkdir()
        course(folder, chapter, options.few)
        run(folder, "nbgrader", "generate_assignment", chapter, "--force")
        seconds, memory = run(folder, "nbgrader", "autograde", chapter)
        stock = seconds / options.few
        print(f"{chapter}, {os.cpu_count()} cores")
        print(f"nbgrader       {options.few:>6} submissions {seconds:8.1f} s {stock:8.3f} s each {memory:7.0f} MB")
        for count in (options.few, options.many, *options.sizes):
            folder = Path(scratch, f"ours{count}")
            folder.mkdir()
            course(folder, chapter, count)
            seconds, memory = run(folder, "autograder", "grade")
            each = seconds / count
            print(
                f"ours, isolated {count:>6} submissions {seconds:8.1f} s {each:8.3f} s each {memory:7.0f} MB"
                f" {1 / each:7.1f} a second, {stock / each:5.1f} times nbgrader's speed",
                flush=True,
            )
            assert len(scores(folder, chapter)) == count
            if count == options.many:
                bare, _ = run(folder, "autograder", "grade", "--force", "--isolation", "none")
                print(f"                 without isolation {bare:8.1f} s: isolation takes {1 - bare / seconds:.0%}")
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
