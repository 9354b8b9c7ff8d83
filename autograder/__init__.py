"""Checks and grades for the exercises of *Patches and Positions*."""

from autograder.judge import CheckFailed, check, evaluate

__all__ = ["CheckFailed", "check", "evaluate"]
