"""An exercise in the reader's browser: runs the code of its editor and, if asked, checks it.

The page's worker calls `solve`. This file and what it imports need nothing but NumPy (and SciPy where a chapter does).
"""

import ast
import builtins
import contextlib
import json
import linecache
import re
import sys
import traceback

import numpy as np

from autograder.judging.judge import CheckFailed, check, checked

DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@contextlib.contextmanager
def _as_they_were():
    """What a reader's code does to NumPy and to the builtins ends with the run: Python stays for the next one."""
    spaces = [vars(builtins), vars(np)]
    kept, errors = [dict(space) for space in spaces], np.geterr()
    builtins.input = _no_input
    try:
        yield
    finally:
        for space, before in zip(spaces, kept, strict=True):
            space.update(before)
        np.seterr(**errors)


def _no_input(prompt=""):
    raise RuntimeError("input() does not work on the page: write the value into your code")


@_as_they_were()
def solve(name, code, setup=(), before=(), checking=False):
    """Run a reader's code as the cells of a notebook would, and check its function.

    Parameters
    ----------
    name : str
        The exercise.
    code : str
        What stands in its editor.
    setup : sequence of str
        The notebook's own cells: imports.
    before : sequence of str
        The code of the chapter's other exercises. Only what it defines is taken over.
    checking : bool
        Whether to check the function after the code has run.

    Returns
    -------
    str
        JSON: `kind` ("ran", "passed", "failed" or "error"), `message`, and `line`, the line of the
        code where an error stands, or null. What the code prints goes to stdout and stderr.
    """
    space = {"__name__": "__main__", "check": check}
    for cell in setup:
        exec(cell, space)
    for number, other in enumerate(before, 1):
        _define(other, f"<another exercise, {number}>", space)
    file = f"{name}.py"
    _keep_lines(code, file)
    try:
        _run_cell(code, file, space)
    except BaseException as error:  # SystemExit too is the reader's
        return _error(error, code, file)
    if not checking:
        return _answer("ran", "")
    if not callable(space.get(name)):
        return _answer("failed", f"There is no function {name} in your code.")
    try:
        return _answer("passed", checked(space[name], name))
    except CheckFailed as failed:
        return _answer("failed", str(failed))
    except BaseException as error:  # KeyboardInterrupt, which is never an answer
        return _error(error, code, file)


def _error(error, code, file):
    said = _traceback(error, file)
    if isinstance(error, SyntaxError) and re.search(r"^\s*[%!]", code, re.MULTILINE):
        said += "\nLines that begin with % or ! are for notebooks: take them out here."
    return _answer("error", said, _line(error, file))


def _answer(kind, message, line=None):
    sys.stdout.flush()
    sys.stderr.flush()
    return json.dumps({"kind": kind, "message": message, "line": line})


def _keep_lines(code, file):
    """Have the lines of a cell at hand when an error is described."""
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)


def _define(code, file, space):
    """Take over functions and imports, not what else the code does; a fault in it is its own exercise's matter."""
    _keep_lines(code, file)
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.parse(code).body:
            if isinstance(node, DEFINITIONS):
                with contextlib.suppress(BaseException):  # a default argument may call sys.exit
                    exec(compile(ast.Module([node], []), file, "exec"), space)


def _run_cell(code, file, space):
    """Run the code; the value of a last line that is an expression is shown, as in a notebook."""
    body = ast.parse(code, file).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), file, "exec"), space)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), file, "eval"), space)
        if value is not None:
            print(repr(value))


def _traceback(error, file):
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename != file:  # our own frames stand above the reader's
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()


def _line(error, file):
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return lines[-1] if lines else None
