"""Files made to hold up or break the process that reads them, which is the grader's own.

Each of them once took minutes or for ever, or is of a kind that did.
"""

import json
import time

import pytest
from build import STUDENTS, notebook

from autograder import clean
from autograder.notebooks.read import MAX_FILE, NotReadable, inspect, read
from autograder.notebooks.restore import restored

LIMIT = 10.0  # seconds; all take less than two on a machine with nothing else to do
CELLS = notebook(STUDENTS["ada"])["cells"]


def holding(*cells):
    """A right notebook that holds these cells too, at its end."""
    return json.dumps({"cells": [*CELLS, *cells]}).encode()


def code(source, **more):
    return {"cell_type": "code", "source": source, "metadata": {}} | more


def text(source, kind="markdown"):
    return {"cell_type": kind, "source": source, "metadata": {}}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * MAX_FILE, id="brackets without end"),
        pytest.param(b'{"cells":' + b"[" * 10**6 + b"]" * 10**6 + b"}", id="lists in lists"),
        pytest.param(b'{"cells":[' + b"{}," * 999_999 + b"{}]}", id="a million cells"),
        pytest.param(b'{"cells":[' + b"1," * 5_000_000 + b"1]}", id="five million numbers"),
        pytest.param(b'{"cells":[' + b"9" * 5000 + b"]}", id="a number of 5000 digits"),
    ],
)
def test_json_that_no_notebook_has(data):
    start = time.process_time()
    with pytest.raises(NotReadable):
        read(data)
    assert time.process_time() - start < LIMIT


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param([text("```" * 10**6)], id="fences in a line"),
        pytest.param([text("````\n~~~~\n" * 300_000)], id="fences that open"),
        pytest.param([text("\n" * 3_000_000)], id="empty lines"),
        pytest.param([text(" " * 5_000_000)], id="spaces"),
        pytest.param([text("](&a" * 1_000_000)], id="links without end"),
        pytest.param([text("](" * 2_000_000)], id="links within links"),
        pytest.param([text("é" * 2_500_000)], id="letters that are not ASCII"),
        pytest.param([text("def patchify(img, P):\n" * 200_000)], id="many definitions"),
        pytest.param([text("x = 1\n" * 1_000_000, "raw")], id="much code that is none"),
        pytest.param([text("x = 1\n" * 30_000, "raw")] * 40, id="much code in many pieces"),
        pytest.param([code("\n" * 200_000)], id="empty lines of code"),
        pytest.param([code("(" * 100_000)], id="parentheses"),
        pytest.param([code("x = 1" + "+ 1" * 70_000)], id="a long sum"),
        pytest.param([code("f'" + "{1}" * 80_000 + "' b c")], id="fields of an f-string"),
        pytest.param([code("!ls\nf'" + "{1}" * 40_000 + "'\n" + "is it so?\n" * 30)], id="fields among magics"),
        pytest.param([code("!ls\nf'" + "{1}" * 2000 + "'\n" + "is it?\n" * 5)] * 38, id="f-strings in many cells"),
        pytest.param([text("```\nf'" + "{1}" * 40_000 + "'\n```\n")] * 2, id="fields in Markdown"),
        pytest.param([code("x = a" + "\u0315\u0300" * 120_000)], id="marks over a letter"),
        pytest.param([code("x = " + "not " * 60_000 + "1")], id="not not"),
        pytest.param([code("x = " + "lambda: " * 30_000 + "1")], id="lambda in lambda"),
        pytest.param([code("x = a" + ".b" * 120_000)], id="a long chain"),
        pytest.param([code("x = " + "9" * 250_000)], id="a long number"),
        pytest.param([code("@a\n" * 80_000 + "def f(): pass")], id="decorators"),
        pytest.param([code(f"f'{'{é}' * 800}'\n" + "is it so?\n" * 18)] * 50, id="fields, and each cell read again"),
        pytest.param([code("x = 1" + "\\\n" * 120_000 + "+1")], id="lines that go on"),
        pytest.param([code("f(a=" * 190 + "a b" + ")" * 190)], id="calls in calls"),
        pytest.param([code("match x:\n case " + "a(" * 190 + ")" * 190 + " b: pass")], id="patterns in patterns"),
        pytest.param([code("if 0: pass\n" + "elif 0: pass\n" * 900)], id="branches in branches"),
        pytest.param([code("def f():\n" + " pass\n" * 30_000)] + [code(" x = 1")] * 1900, id="a function in pieces"),
        pytest.param([code("x", metadata={"nbgrader": {"grade_id": "x" * 10**6}})] * 2, id="a long name"),
        pytest.param([code("x = '\udc00\0'", id="\ud800")], id="half of a surrogate pair"),
        pytest.param([code(float("nan")), code({}), code([1]), code(None), text(3)], id="no text"),
        pytest.param([{"cell_type": [], "metadata": [], "source": ["x", "y"], "id": {}}], id="lists everywhere"),
    ],
)
def test_cells_that_no_notebook_has(cells):
    start = time.process_time()
    submission = read(holding(*cells), filename="patchify.ipynb")
    made = restored(submission, {"cells": CELLS, "metadata": {}}, {})
    assert time.process_time() - start < LIMIT
    assert len(submission.written) == 4  # what is right in it is found all the same
    assert sum(map(len, submission.repairs)) < 5000
    json.dumps(made, ensure_ascii=False).encode()  # and it can be written


def test_keys_that_stand_twice():
    found = inspect(b'{"cells": [], "cells": ' + json.dumps(CELLS).encode() + b"}")
    assert all(exercise["written"] for exercise in found["exercises"])


def test_a_pasted_picture_leaves_the_text_after_it_readable():
    function = CELLS[[cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in CELLS].index("patchify")]
    others = [cell for cell in CELLS if cell is not function]
    picture = text("![](data:image/png;base64," + "A" * 3_000_000 + ")")
    submission = read(json.dumps({"cells": [*others, picture, text(function["source"])]}).encode())
    assert "patchify" in submission.written


@pytest.mark.parametrize("start", ["](", "a", '[a](x "'])
@pytest.mark.parametrize("blank", [" ", "\t"])
def test_blanks_without_end_do_not_hold_who_shows_the_notebook(start, blank):
    """nbconvert, which formgrader shows notebooks by, looks at each blank for each: 600,000 take it hours."""
    from nbconvert.filters.markdown_mistune import markdown2html_mistune

    source = clean.markdown(start + blank * 600_000 + "end")
    begin = time.process_time()
    assert "end" in markdown2html_mistune(source)
    assert time.process_time() - begin < LIMIT
