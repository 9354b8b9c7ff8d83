"""An exercise in the reader's browser: runs the code of its editor and, if asked, checks it.

The page's worker calls `solve`. This file and what it imports need nothing but NumPy (and SciPy where a chapter does).
"""

import ast
import contextlib
import json
import linecache
import sys
import traceback

from autograder.judge import CheckFailed, check

DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


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
        return _answer("error", _traceback(error, file), _line(error, file))
    if not checking:
        return _answer("ran", "")
    if not callable(space.get(name)):
        return _answer("failed", f"There is no function {name} in your code.")
    try:
        check(space[name], name)
    except CheckFailed as failed:
        return _answer("failed", str(failed))
    return _answer("passed", "")


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
    with contextlib.suppress(Exception):
        for node in ast.parse(code).body:
            if isinstance(node, DEFINITIONS):
                with contextlib.suppress(Exception):
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
