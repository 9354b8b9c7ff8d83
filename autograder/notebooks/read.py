"""Reading a submitted notebook, whatever was done to it on the way, and mending what can be mended.

Nothing here runs a learner's code: functions are found in the syntax tree. What was mended is told in words,
for the learner and the teacher.
"""

import ast
import functools
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches

from autograder import clean
from autograder.judging.exercise import former_names, moved_from, names
from autograder.sandbox.inside.cells import is_stub, parse, python

MAX_FILE = 16 << 20  # bytes; read as JSON, a hostile file takes some thirty times its size
TOO_LARGE = f"has more than {MAX_FILE >> 20} MB: clear the outputs and hand it in again"
MAX_CELLS = 2000
MAX_CODE = 1 << 18  # characters of code, and of text that may hold some
MAX_JOINED = 20  # cells that go on with the one before

_GRADE_ID = re.compile(r"[\w-]{1,200}", re.ASCII)  # as nbgrader has them
_CHECK = re.compile(r"check[_(](\w+)\)?", re.ASCII)  # its name for nbgrader, or its code
_BLOCK = re.compile(r"(?:async )?def |class |@|import |from ")


class NotReadable(Exception):
    """Nothing can be graded; the text is the reason, and what to do about it."""


@dataclass
class Cell:
    """A cell as it was handed in.

    Attributes
    ----------
    kind : str
        "code", "markdown" or "raw".
    source : str
    grade_id : str
        nbgrader's name for it, or "".
    code : str
        What Python is given of it. Empty where it is no code.
    error : str
        Why Python cannot read it, or "".
    """

    kind: str
    source: str
    grade_id: str = ""
    code: str = ""
    error: str = ""


@dataclass
class Submission:
    """A notebook that was read.

    Attributes
    ----------
    assignment : str
        The chapter.
    cells : list of Cell
    names : list of str
        Its exercises: those of the chapter, and those that were in it when the notebook was released.
    homes : dict
        Name of an exercise -> number of the cell whose definition counts.
    written : set
        The exercises whose definition is not the stub.
    lost : dict
        Name of an exercise that was not found -> why, in words.
    repairs : list of str
        What was mended, in words.
    """

    assignment: str
    cells: list[Cell]
    names: list[str]
    homes: dict[str, int] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    lost: dict[str, str] = field(default_factory=dict)
    repairs: list[str] = field(default_factory=list)

    @property
    def code(self) -> list[str]:
        """What Python runs, cell by cell; empty for those that are no code, so that the numbers stay."""
        return [cell.code for cell in self.cells]


def read(data: bytes, assignment: str | None = None, filename: str = "", *, moved: bool = True) -> Submission:
    """Read a notebook and mend it.

    Parameters
    ----------
    data : bytes
        The file.
    assignment : str, optional
        The chapter; by default it is recognised by the functions in the notebook, then by the file's name.
    filename : str
        Its name, without folders.
    moved : bool
        Whether exercises count that were in the chapter when the notebook was released and are in another today.

    Returns
    -------
    Submission

    Raises
    ------
    NotReadable
    """
    try:
        return _read(data, assignment, filename, moved)
    finally:
        _bound.cache_clear()


def _read(data, assignment, filename, moved):
    repairs = []
    cells = _cells(_document(data, repairs), repairs)
    _rename(cells, repairs)
    if sum(len(cell.source) for cell in cells if cell.kind == "code") > MAX_CODE:
        raise NotReadable(f"its code cells hold more than {MAX_CODE:,} characters: delete what is no code of yours")
    for number, cell in enumerate(cells, start=1):
        if cell.kind == "code":
            cell.code, _, cell.error, left_out = python(cell.source)
            if left_out:
                repairs.append(f"cell {number}: {left_out} of notebook magic or shell left out")
    assignment = assignment or _recognise(cells, filename)
    its_names = [name for name, chapter in names().items() if chapter == assignment]
    if elsewhere := _moved(cells, assignment):
        if moved:
            its_names += elsewhere
        else:
            chapters = " and ".join(sorted({names()[name] for name in elsewhere}))
            repairs.append(f"{', '.join(elsewhere)}: exercises of {chapters} today; hand this notebook in there, too")
    if filename and filename != f"{assignment}.ipynb":
        repairs.append(f"the file is named {filename!r}; it was read as {assignment}.ipynb")
    if not set(its_names) & set(_votes(cells)):
        others = {names()[name] for name in _votes(cells)}
        instead = f", but there are functions of {' and '.join(sorted(others))}" if others else ""
        raise NotReadable(f"no function of {assignment} is in it{instead}: is it the right notebook?")
    submission = Submission(assignment, cells, its_names, repairs=repairs)
    _join_split_cells(cells, repairs)
    _recover_code(cells, its_names, repairs)
    _find_homes(submission, its_names)
    _compare_with_release(submission, its_names)
    return submission


def bindings(tree):
    """The names that the code binds when it runs, each with its node, in order; not inside functions."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from ((n.id, node) for n in ast.walk(target) if isinstance(n, ast.Name))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (((alias.asname or alias.name).partition(".")[0], node) for alias in node.names)
        for part in ("body", "orelse", "finalbody", "handlers"):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                for inner in getattr(node, part, []):
                    body = inner if isinstance(inner, ast.ExceptHandler) else ast.Module([inner], [])
                    yield from bindings(body)


# ------------------------------------------------------------------------------------------ from bytes to cells


def _document(data, repairs):
    if not data.strip(b"\0 \r\n\t"):
        raise NotReadable("the file is empty: save the notebook and hand it in again")
    if len(data) > MAX_FILE:
        raise NotReadable(f"the file {TOO_LARGE}")
    text = _text(data, repairs)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        if text.lstrip()[:1] not in ("{", "["):
            raise NotReadable("it is no notebook (not JSON): download it as .ipynb and hand it in again") from error
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            raise NotReadable(
                f"the file breaks off after {len(text):,} characters: save it again, or download it again"
            ) from error
        raise NotReadable(f"it is damaged (not JSON: {error}): download it as .ipynb again") from error
    except (RecursionError, ValueError) as error:
        raise NotReadable("it is no notebook (JSON that no notebook has)") from error
    if not isinstance(document, dict):
        raise NotReadable("it is no notebook (JSON, but not a notebook's)")
    return document


def _text(data, repairs):
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            repairs.append(f"a byte order mark ({encoding.upper()}) at the start of the file left out")
            return data[len(mark) :].decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        repairs.append("the file is not UTF-8; it was read as Windows-1252")
        return data.decode("cp1252", "replace")


def _cells(document, repairs):
    cells = document.get("cells")
    if cells is None and isinstance(document.get("worksheets"), list):  # nbformat 3
        sheets = [sheet.get("cells") for sheet in document["worksheets"] if isinstance(sheet, dict)]
        cells = [cell for sheet in sheets if isinstance(sheet, list) for cell in sheet]
        repairs.append("an old notebook format (nbformat 3) brought up to date")
    if not isinstance(cells, list):
        raise NotReadable("it is no notebook (it has no list of cells)")
    if len(cells) > MAX_CELLS:
        raise NotReadable(f"it has more than {MAX_CELLS:,} cells: delete what is not yours")
    found, ids, without_id, odd = [], [], 0, 0
    for cell in cells:
        source = source_of(cell) if isinstance(cell, dict) else None
        if source is None:
            odd += 1
            continue
        if isinstance(cell.get("id"), str):
            ids.append(cell["id"])
        else:
            without_id += 1
        kind = cell.get("cell_type")
        found.append(Cell(kind if kind in ("code", "markdown") else "raw", source, grade_id_of(cell)))
    if not found:
        raise NotReadable("the notebook has no cells: open it, look whether your work is there, and save it again")
    if odd:
        repairs.append(f"{odd} thing{'s' * (odd > 1)} among the cells that are no cells left out")
    if without_id:
        repairs.append(f"{without_id} cell{'s' * (without_id > 1)} had no id")
    if len(set(ids)) < len(ids) or any(not re.fullmatch(r"[\w-]{1,64}", cell_id, re.ASCII) for cell_id in ids):
        repairs.append("cell ids that stand twice or are no ids replaced")
    return found


def source_of(cell):
    """The text of a cell as the file has it, or None where it has none."""
    source = cell.get("source", cell.get("input", ""))  # nbformat 3 says "input"
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    # Half of a surrogate pair is legal in JSON and nowhere else.
    return source.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")


def grade_id_of(cell):
    """nbgrader's name for a cell as the file has it, or ""."""
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    return grade_id if isinstance(grade_id, str) and _GRADE_ID.fullmatch(grade_id) else ""


def _rename(cells, repairs):
    """Give an exercise that goes by a former name today's, unless there is a function of that name too."""
    for old, new in former_names().items():
        definition = re.compile(rf"^[ \t]*def ({old}|{new})\(", re.MULTILINE)
        if {name for cell in cells for name in definition.findall(cell.source)} == {old}:
            for cell in cells:
                cell.source = re.sub(rf"(?<![\w.]){old}(?!\w)", new, cell.source)
                cell.grade_id = {old: new, f"check_{old}": f"check_{new}"}.get(cell.grade_id, cell.grade_id)
            repairs.append(f"{old} is called {new} now: renamed")


def _votes(cells):
    """The exercises, of any chapter, that the cells define in whatever form or are named after."""
    for cell in cells:
        text = re.findall(r"^[ \t]*def (\w+)\(", cell.source, re.MULTILINE)
        for name in {*text, cell.grade_id, *(name for name, _ in _bound(cell.code))}:
            if name in names():
                yield name


def _recognise(cells, filename):
    """The chapter with most of its functions in the notebook, or else the one that the file's name begins with."""
    votes = Counter(names()[name] for name in _votes(cells))
    if votes:
        found = votes.most_common(1)[0][0]
        before = [one for one in votes if found in {names()[name] for name in _moved(cells, one)}]
        return (before or [found])[0]
    for chapter in sorted(set(names().values()), key=len, reverse=True):
        if filename.lower().startswith(chapter):
            return chapter
    raise NotReadable("no function of any chapter is in it: is it the right notebook?")


def _moved(cells, chapter):
    """The exercises that were in a chapter when the notebook was released and are in another one today.

    The checks tell what was released; where none is left, the functions do. Such a notebook has something of both
    chapters: what is of the other one alone was handed in for the wrong one.
    """
    moved = moved_from(chapter)
    if not moved:
        return []
    checks = [_CHECK.fullmatch(cell.grade_id) or _CHECK.fullmatch(cell.source.strip()) for cell in cells]
    released = {check[1] for check in checks if check and check[1] in names()} or set(_votes(cells))
    if not any(names()[name] == chapter for name in released):
        return []
    return [name for name, today in moved.items() if today in {moved.get(one) for one in released}]


# ------------------------------------------------------------------------------------------------ mending


@functools.lru_cache(maxsize=1000)  # emptied after each notebook
def _bound(code):
    try:
        return list(bindings(parse(code)))
    except (SyntaxError, RecursionError):  # a thousand branches of one `if` lie within one another
        return []


def _join_split_cells(cells, repairs):
    """A function split over two cells: the second goes on where the first stops, indented."""
    last, count = None, 0
    for number, cell in enumerate(cells, start=1):
        if cell.kind != "code" or not cell.source.strip():
            continue
        if last is not None and count < MAX_JOINED and cell.source.lstrip("\n")[:1].isspace():
            count += 1
            joined, _, error, _ = python(f"{last.code}\n{cell.source}")
            if not error:
                last.code, last.error, cell.code, cell.error = joined, "", "", ""
                repairs.append(f"cell {number} goes on with the function of the cell before it: joined")
                continue
        last = cell


def _recover_code(cells, its_names, repairs):
    """Take a definition out of a cell that would not run, where the notebook has no other of that function."""
    written = {name for cell in cells for name, node in _bound(cell.code) if not is_stub(node)}
    text = 0  # characters looked at outside of code cells, where a pasted picture may stand
    for number, cell in enumerate(cells, start=1):
        if cell.kind == "code" and not cell.error:
            continue
        if cell.kind != "code":
            if text + len(cell.source) > MAX_CODE:
                continue
            text += len(cell.source)
        code = _readable_part(cell)
        fresh = [n for n, node in _bound(code) if n in its_names and n not in written and not is_stub(node)]
        if not fresh and not (cell.kind != "code" and cell.grade_id in its_names and _bound(code)):
            continue
        found = " and ".join(dict.fromkeys(fresh)) or cell.grade_id
        if cell.kind == "code":
            repairs.append(f"cell {number} is not valid Python ({cell.error}); {found} in it can be read all the same")
        else:
            kind = "Markdown" if cell.kind == "markdown" else cell.kind
            repairs.append(f"cell {number} is a {kind} cell; {found} in it was read as code")
        cell.code = code
        written.update(fresh)


def _readable_part(cell):
    if cell.kind == "code":
        lines = cell.code.split("\n")
        starts = [0, *(i for i, line in enumerate(lines) if i and _BLOCK.match(line) and lines[i - 1][:1] != "@")]
        blocks = ["\n".join(lines[i:j]) for i, j in zip(starts, [*starts[1:], None], strict=True)]
        return "\n".join(block if not python(block)[2] else "\n" * block.count("\n") for block in blocks)
    code, tree, *_ = python(cell.source)
    if tree:
        return code
    blocks = [python(block)[:2] for block in _fenced(cell.source)]
    return "\n".join(code for code, tree in blocks if tree)


def _fenced(text):
    """The blocks of code in a Markdown text, line by line: a regular expression can take for ever over it."""
    fence, block = "", []
    for line in text.split("\n"):
        if fence and line.startswith(fence):
            yield "\n".join(block)
            fence = ""
        elif fence:
            block.append(line)
        elif line.startswith(("```", "~~~")):
            fence, block = line[: len(line) - len(line.lstrip(line[0]))], []


def _find_homes(submission, its_names):
    """Which definition of each exercise counts: the last one, unless it is the untouched stub and another is not.

    The sandbox goes by the same rule, which is a run's from top to bottom but for the stub.
    """
    bound = [(n, name, node) for n, cell in enumerate(submission.cells) for name, node in _bound(cell.code)]
    for name in its_names:
        nodes = [(number, node) for number, its_name, node in bound if its_name == name]
        written = [(number, node) for number, node in nodes if not is_stub(node)]
        if nodes:
            submission.homes[name] = (written or nodes)[-1][0]
        if written:
            submission.written.add(name)
        definitions = sum(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) for _, node in nodes)
        if definitions > 1:
            which = "the untouched one does not count" if 0 < len(written) < len(nodes) else "the last one counts"
            submission.repairs.append(f"{name} is defined {definitions} times: {which}")
        if not nodes:
            submission.lost[name] = _why_lost(submission, name, {n for _, n, _ in bound} - set(its_names))


def _why_lost(submission, name, others):
    broken = next((c for c in submission.cells if c.error and re.search(rf"\bdef\s+{name}\b", c.source)), None)
    if broken:
        return f"the cell that defines it is not valid Python: {broken.error}"
    near = get_close_matches(name, others, n=1, cutoff=0.75)
    return f"there is no function {name} in the notebook" + (f"; there is {near[0]}: is it the same?" if near else "")


def _compare_with_release(submission, its_names):
    """Say what became of the cells that nbgrader would look for."""
    cells, repairs = submission.cells, submission.repairs
    ids = [cell.grade_id for cell in cells if cell.grade_id]
    if not ids:
        repairs.append("nbgrader's metadata is gone; the functions were found by their names")
        return
    twice = sorted({grade_id for grade_id in ids if ids.count(grade_id) > 1})
    if twice:
        repairs.append(f"cells that stand more than once: {', '.join(twice)}")
    stray = [name for name in its_names if name in submission.homes and name not in ids]
    if stray:
        repairs.append(f"found by name, without nbgrader's metadata: {', '.join(stray)}")
    missing = [name for name in its_names if f"check_{name}" not in ids]
    if missing:
        repairs.append(f"missing checks put back: {', '.join(missing)}")
    changed = [
        name
        for name in its_names
        for cell in cells
        if cell.grade_id == f"check_{name}" and (cell.kind != "code" or cell.source.strip() != f"check({name})")
    ]
    if changed:
        repairs.append(f"changed checks put back: {', '.join(dict.fromkeys(changed))}")
    places = [submission.homes[name] for name in its_names if name in submission.homes]
    if places != sorted(places):
        repairs.append("the functions stand in another order")


# ------------------------------------------------------------------------------------------------ inspect


def bounded(file):
    """What an open file holds; of one that is too large, so much that `read` says so."""
    return file.read(MAX_FILE + 1) or b""  # None: a terminal


def inspect(data, assignment=None, filename=""):
    """What a grader would find, without running anything.

    Returns
    -------
    dict
        `assignment`, `status` ("readable" or "not readable"), `reason`, `repairs`, and `exercises`: for each its
        `name`, `found`, `written`, and `note`, what to do about it or None.
    """
    try:
        submission = read(data, assignment, filename)
    except NotReadable as reason:
        return {
            "assignment": assignment,
            "status": "not readable",
            "reason": clean.line(reason),
            "repairs": [],
            "exercises": [],
        }
    exercises = []
    for name in submission.names:
        found, written = name in submission.homes, name in submission.written
        note = submission.lost.get(name) or (None if written else "it is not written yet")
        exercises.append({"name": name, "found": found, "written": written, "note": note})
    return {
        "assignment": submission.assignment,
        "status": "readable",
        "reason": None,
        "repairs": clean.values(submission.repairs),
        "exercises": clean.values(exercises),
    }
