"""The Python in a notebook cell, without IPython's own syntax. Needs nothing but Python: the sandbox loads it too."""

import ast
import re
import warnings

PYTHON_MAGICS = ("time", "timeit", "capture", "prun", "python", "python3")  # the body of any other is not Python
MAX_STUMBLES = 20  # each costs a reading of the whole cell
MAX_READ_AGAIN = 1 << 16  # characters, all readings of a cell but the first: in some, Python takes 0.1 ms for each
MAX_FIELDS = 2 * 10**6  # an f-string's fields times its length, of a cell: so many steps Python 3.11 takes, and more
MAX_NOT_ASCII = 1000  # in one piece: Python puts the marks over a letter of a name in order, two by two
_LONG, _SHORT = r"{0}(?s:[^\\]|\\.)*?(?:{0}|\\?\Z)", r"{0}(?:[^{0}\\\n]|\\(?s:.))*+{0}?"  # to the end where none is
_QUOTED = (*(_LONG.replace("{0}", 3 * quote) for quote in "'\""), *(_SHORT.replace("{0}", quote) for quote in "'\""))
_LITERAL = re.compile(rf"\#.*|(?P<f>\b(?i:fr?|rf))?+(?:{'|'.join(_QUOTED)})")
_NOT_ASCII = re.compile(rf"[^\x00-\x7f]{{{MAX_NOT_ASCII + 1}}}")
_MAGIC = re.compile(r"[%!?]|(?P<target>\w[\w., ]*?)\s*=\s*[%!]|[\w.]+\?+$")
_TIMED = re.compile(r"%time\s+(?!-)(.*)")
_TOKEN = re.compile(r"""'''|\"\"\"|'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?|\#.*|[([{)\]}]""")
_CLOSING = {fence: re.compile(rf"(?:[^\\]|\\.)*?{fence}") for fence in ("'''", '"""')}


def python(source):
    """What Python can read of a notebook cell: magics and shell lines are left out.

    Where Python can read all of it, nothing is taken for a magic.

    Returns
    -------
    code : str
        With as many lines as `source`.
    tree : ast.Module or None
        None where Python still cannot read it.
    error : str
        Why it cannot, or "".
    left_out : str
        How many lines were left out, in words, or "".
    """
    lines = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    count, error = 0, ""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        count = 1
        if (lines[first][2:].split() or [""])[0] not in PYTHON_MAGICS:
            return "", ast.Module([], []), "", "a cell"
        lines[first] = ""
    size = len(source) * (1 + source.count("{") // 100)  # many fields take as long as much text
    for stumbles in range(min(MAX_STUMBLES, 2 + MAX_READ_AGAIN // (size + 1))):
        code = "\n".join(lines)
        try:
            return code, parse(code), "", _lines(count)
        except SyntaxError as stumble:
            error = f"{stumble.msg} (line {stumble.lineno})"
            left_out = (not stumbles and _drop_magics(lines)) or _drop_one(lines, (stumble.lineno or 0) - 1)
        if not left_out:
            break
        count += left_out
    return "\n".join(lines), None, error, _lines(count)


def _lines(count):
    return f"{count} line{'s' * (count > 1)}" if count else ""


def parse(source):
    """The syntax tree. Whatever a learner wrote, the only exception is a SyntaxError."""
    _refuse_slow(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a string
            return ast.parse(source)
    except SyntaxError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:  # null characters; brackets without end
        raise SyntaxError(str(error) or "nested too deeply") from error


def _refuse_slow(source):
    """Raise a SyntaxError for what Python would read for seconds or minutes: nothing else can stop it there."""
    if not source.isascii() and (found := _NOT_ASCII.search(source)):
        raise _refused(source, found, f"more than {MAX_NOT_ASCII:,} characters beyond ASCII without a space")
    if source.count("{") * len(source) <= MAX_FIELDS:
        return
    steps = 0
    for found in _LITERAL.finditer(source):
        steps += len(found[0]) * found[0].replace("{{", "").count("{") if found["f"] else 0
        if steps > MAX_FIELDS:
            raise _refused(source, found, "f-strings with too many fields")


def _refused(source, found, why):
    line = source.count("\n", 0, found.start()) + 1
    return SyntaxError(f"{why}: the grader does not read them", ("<cell>", line, 0, None))


def is_stub(node):
    """Whether a definition is the untouched one: a docstring and `raise NotImplementedError`."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if len(body) != 1 or not isinstance(body[0], ast.Raise):
        return False
    raised = body[0].exc.func if isinstance(body[0].exc, ast.Call) else body[0].exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _drop_magics(lines):
    """Take out every magic that begins a statement, in one go; returns how many lines it took."""
    count, fence, depth, goes_on = 0, "", 0, False
    for number in range(len(lines)):
        line = lines[number]
        if not (fence or depth or goes_on) and _is_magic(line):
            count += _drop(lines, number)
            continue
        at, goes_on = 0, line.endswith("\\")
        while True:
            found = _CLOSING[fence].match(line, at) if fence else _TOKEN.search(line, at)
            if found is None:
                break
            at, token = found.end(), found[0]
            if fence:
                fence = ""
            elif token in _CLOSING:
                fence = token
            elif token in "([{":
                depth += 1
            elif token in ")]}":
                depth = max(0, depth - 1)
    return count


def _drop_one(lines, number):
    """Take out the magic that Python stumbles over: one within brackets, or a question in words."""
    if 0 <= number < len(lines) and (_is_magic(lines[number]) or lines[number].rstrip().endswith("?")):
        return _drop(lines, number)
    return 0


def _is_magic(line):
    return _MAGIC.match(line.strip()[:200]) is not None


def _drop(lines, number):
    """Put in the place of a magic, and of the lines that continue it, what Python can read; returns how many."""
    line = lines[number].strip()
    indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
    timed, magic = _TIMED.match(line), _MAGIC.match(line[:200])
    target = magic and magic["target"]
    last = number
    while lines[last].endswith("\\") and last + 1 < len(lines):
        last += 1
    lines[number : last + 1] = [f"{indent}pass"] * (last + 1 - number)
    if timed:
        lines[number] = indent + timed[1]
    elif target:
        lines[number] = f"{indent}{target.strip()} = None"
    return last + 1 - number
