"""What the one writer does in a second: verdicts recorded in SQLite and in PostgreSQL, alone and with their files.

    python benchmarks/recording.py [--count 1000] [--output benchmarks/results/recording.json]

Nothing is graded while the clock runs. Both databases wait until the disk has what was written.
"""

import argparse
import contextlib
import itertools
import json
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "classroom"), str(ROOT / "benchmarks")]

from build import hand_in  # noqa: E402
from grading import machine  # noqa: E402
from server import postgresql, program  # noqa: E402

from autograder.grading import run  # noqa: E402
from autograder.grading.classroom import Classroom  # noqa: E402
from autograder.grading.find import find  # noqa: E402
from autograder.grading.grade import Limits, close_sandbox, grade_task  # noqa: E402
from autograder.grading.record import Recorder, open_gradebook  # noqa: E402
from autograder.reports.feedback import feedback  # noqa: E402


def measure(course, url, graded, count):
    """Verdicts a second (wall time) and CPU ms for each: in the gradebook alone, and with the three files."""
    book = open_gradebook(course, url, ["patchify"])
    recorder, rates = Recorder(course, book, Limits(), feedback), {}
    with book:
        for what in ("gradebook", "gradebook and files"):
            start, cpu = time.perf_counter(), time.process_time()
            for number, (one, verdict, submission, seconds) in zip(range(count), itertools.cycle(graded), strict=False):
                student = f"{what[-5:]}{number:06}"
                if what == "gradebook":
                    book.record(student, verdict)
                else:
                    recorder.record(replace(one, student=student), verdict, submission, seconds)
            rates[what] = {
                "a_second": round(count / (time.perf_counter() - start), 1),
                "cpu_ms": round((time.process_time() - cpu) / count * 1e3, 2),
            }
    return rates


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch), contextlib.ExitStack() as stack:
        shutil.copy(ROOT / "nbgrader_config.py", scratch)
        shutil.copytree(ROOT / "exercises" / "patchify", Path(scratch, "exercises", "patchify"))
        hand_in(scratch)
        course = Classroom.here()
        handed = find(course, course.folder("submitted"), None, None, 0)
        handed = [one for one in handed if one.student not in ("chen", "karl")]  # torch; a file that is no notebook
        graded = [(one, *grade_task(run._task(one), Limits())) for one in handed]
        close_sandbox()
        urls = {"SQLite": f"sqlite:///{scratch}/gradebook.db"}
        if program("initdb"):
            urls["PostgreSQL"] = f"postgresql://{stack.enter_context(postgresql())}"
        for name, url in urls.items():
            rows[name] = measure(course, url, graded, options.count)
            for what, rate in rows[name].items():
                print(f"{name:<11} {what:<20} {rate['a_second']:8.1f} a second {rate['cpu_ms']:7.2f} ms CPU each")
    if options.output:
        options.output.write_text(json.dumps(machine() | {"count": options.count, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
