"""What the course is. The engine learns it from `cases/course.toml` alone."""

import importlib.metadata
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # of the clone, or the folder of installed packages
CASES = ROOT / "autograder" / "cases"
SOLUTIONS = ROOT / "solutions"
_DECLARED = tomllib.loads((CASES / "course.toml").read_text(encoding="utf-8"))
PACKAGE = _DECLARED["package"]
HEAVY = tuple(_DECLARED.get("heavy", ()))
GPU_PAGES = _DECLARED.get("gpu_pages", "gpu")  # a course without that folder has none


def version() -> str:
    """The version of the course that is installed."""
    return importlib.metadata.version(PACKAGE)
