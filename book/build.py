"""`jupyter-book`, less what costs a build of one page a third of its time and brings it nothing."""

import gc
import os
import sys
from pathlib import Path

gc.disable()  # the trees of the pages live until the end

import autograder.no_rfc3987  # noqa: E402, F401

# isort: split
sys.path.insert(0, str(Path(__file__).parent / "_ext"))
from course_run import runtime_files  # noqa: E402
from jupyter_book.cli.main import main  # noqa: E402

if os.environ.get("PYODIDE"):
    try:  # before minutes of building, not after
        runtime_files(os.environ["PYODIDE"])
    except ValueError as error:
        sys.exit(str(error))
main(prog_name="jupyter-book")
