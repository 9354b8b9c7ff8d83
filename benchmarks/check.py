"""How long a learner waits for `check`: each exercise, right and wrong, and the import. The goal is 100 ms."""

import contextlib
import io
import subprocess
import sys
import time
from functools import partial

from autograder import CheckFailed, check
from autograder.judging.exercise import exercises, names


def seconds(function, repeat=5):
    """The best of a few runs: what the code costs, without what else the machine does."""
    return min(_once(function) for _ in range(repeat))


def _once(function):
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(CheckFailed):
        function()
    return time.perf_counter() - start


def in_new_process(code):
    return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), repeat=3)


def main():
    print(f"{'exercise':<24}{'right':>9}{'wrong':>9}   milliseconds")
    slowest = 0.0
    for chapter in dict.fromkeys(names().values()):
        for exercise in exercises(chapter):
            right = seconds(partial(check, exercise.reference))
            mistakes = exercise.misconceptions
            wrong = max(seconds(partial(check, mistake.function, exercise.name)) for mistake in mistakes)
            slowest = max(slowest, right, wrong)
            print(f"{exercise.name:<24}{right * 1e3:9.1f}{wrong * 1e3:9.1f}")
    print(f"slowest: {slowest * 1e3:.1f} ms")
    numpy, ours = in_new_process("import numpy"), in_new_process("import autograder")
    print(f"import numpy: {numpy * 1e3:.0f} ms, import autograder: {ours * 1e3:.0f} ms")
    return 0 if slowest < 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())
