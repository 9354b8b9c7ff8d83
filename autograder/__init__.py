"""Checks and grades for the exercises of a course."""

import sys

# `python -m autograder` in a folder of students' files: what lies there is not to be taken for a module of Python's.
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path and not __file__.startswith(f"{sys.path[0]}/autograder/"):
    del sys.path[0]

from autograder.judging.judge import CheckFailed, check, evaluate

__all__ = ["CheckFailed", "check", "evaluate"]
