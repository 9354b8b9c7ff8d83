"""What honest learners hand in, and what happens to notebooks on the way: each must get its right grade."""

import copy
import json
import re

import pytest
from build import STUDENTS, colab, grade_id, notebook

from autograder.grading.grade import Limits, close_sandbox, grade

NAMES = ("patchify", "unpatchify", "conv_weight_to_linear", "patch_embed_conv")
USUAL = Limits()
SHORT = Limits(time_limit=0.5)  # for what never ends


@pytest.fixture(scope="module", autouse=True)
def sandbox():
    yield
    close_sandbox()


@pytest.fixture
def right():
    return notebook(STUDENTS["ada"])


def verdict_on(content, filename="patchify.ipynb", limits=USUAL):
    data = content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode()
    return grade(data, filename=filename, limits=limits)[0]


def is_right(content, filename="patchify.ipynb", limits=USUAL):
    verdict = verdict_on(content, filename, limits)
    assert (verdict["status"], verdict["reason"], verdict["score"]) == ("graded", None, 12.0), verdict
    return verdict


def statuses(verdict):
    """Of the functions that the sample class writes; the chapter may have more."""
    return [row["status"] for row in verdict["exercises"] if row["name"] in NAMES]


def told(verdict, pattern):
    return any(re.search(pattern, repair) for repair in verdict["repairs"])


def place(made, wanted):
    return next(number for number, cell in enumerate(made["cells"]) if grade_id(cell) == wanted)


def cell(made, wanted):
    return made["cells"][place(made, wanted)]


def code(source, **more):
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None} | more


# ------------------------------------------------------------------------------- what tools do to notebooks


def test_a_plain_notebook_needs_no_repair(right):
    assert is_right(right)["repairs"] == []


def test_saved_by_colab(right):
    assert told(is_right(colab(right)), "no id")


def test_saved_by_vs_code(right):
    for one in right["cells"]:
        one.pop("id")
        one["metadata"].pop("deletable", None)
        one["metadata"].pop("editable", None)
        one["metadata"]["vscode"] = {"languageId": "python"}
    assert told(is_right(right | {"nbformat_minor": 2}), "no id")


def test_metadata_stripped(right):
    for one in right["cells"]:
        one["metadata"] = {}
    assert told(is_right(right | {"metadata": {}}), "metadata is gone")


@pytest.mark.parametrize("name", ["patchify (1).ipynb", "patchify-Copy1.ipynb", "Übung 3 – 李.ipynb", "x.json"])
def test_renamed_file(right, name):
    assert told(is_right(right, name), re.escape(name))


def test_old_format(right):
    for one in right["cells"]:
        if one["cell_type"] == "code":
            one["input"] = one.pop("source")
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": right["cells"]}]}
    assert told(is_right(old), "nbformat 3")


@pytest.mark.parametrize("kernel", [{}, {"kernelspec": {"name": "julia-1.9"}}, {"kernelspec": "python"}])
def test_wrong_or_missing_kernel(right, kernel):
    is_right(right | {"metadata": kernel})


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_other_encodings(encoding):
    made = notebook(STUDENTS["ada"])
    made["cells"] = [one for one in made["cells"] if one["cell_type"] == "code"]
    made["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "Größe: 3 × 3"})
    text = json.dumps(made, ensure_ascii=False).replace("…", "...")
    assert is_right(text.encode(encoding, "replace"))["repairs"]


def test_line_ends_of_windows(right):
    for one in right["cells"]:
        one["source"] = "".join(one["source"]).replace("\n", "\r\n")
    is_right(right)


def test_sources_as_lists_of_lines(right):
    for one in right["cells"]:
        one["source"] = "".join(one["source"]).splitlines(keepends=True)
    is_right(right)


def test_ids_that_are_none(right):
    for number, one in enumerate(right["cells"]):
        one["id"] = "ü" if number % 2 else "twice"
    assert told(is_right(right), "ids")


# ------------------------------------------------------------------------------- what happens to cells


def test_duplicated_cells(right):
    right["cells"] += copy.deepcopy(right["cells"])
    assert told(is_right(right), "more than once")


@pytest.mark.parametrize("where", ["before", "after"])
def test_the_stub_beside_the_written_one(right, where):
    stub = copy.deepcopy(cell(notebook(), "patchify"))
    right["cells"].insert(0 if where == "before" else len(right["cells"]), stub)
    assert told(is_right(right), "patchify is defined 2 times: the untouched one does not count")


def test_the_last_definition_counts(right):
    right["cells"].append(code("def patchify(img, P):\n    return 0"))
    statuses = {row["name"]: row["status"] for row in verdict_on(right)["exercises"]}
    assert statuses["patchify"] == "failed"
    assert statuses["unpatchify"] == "passed"


def test_checks_deleted(right):
    right["cells"] = [one for one in right["cells"] if not (grade_id(one) or "").startswith("check_")]
    assert told(is_right(right), "missing checks put back: patchify, unpatchify")


def test_checks_changed(right):
    cell(right, "check_patchify")["source"] = "# check(patchify)"
    cell(right, "check_unpatchify")["cell_type"] = "markdown"
    assert told(is_right(right), "changed checks put back: patchify, unpatchify")


def test_a_function_deleted(right):
    del right["cells"][place(right, "unpatchify")]
    verdict = verdict_on(right)
    rows = {row["name"]: row for row in verdict["exercises"]}
    assert (verdict["status"], verdict["score"]) == ("graded", 10.0)
    assert rows["unpatchify"]["status"] == "not found"
    assert "there is no function unpatchify" in rows["unpatchify"]["failures"][0]["message"]


def test_reordered_cells(right):
    right["cells"].reverse()
    assert told(is_right(right), "another order")


def test_split_cell(right):
    number = place(right, "patchify")
    lines = right["cells"][number]["source"].split("\n")
    right["cells"][number]["source"] = "\n".join(lines[:3])
    right["cells"].insert(number + 1, code("\n".join(lines[3:])))
    assert told(is_right(right), "goes on with")


def test_all_in_one_cell(right):
    right["cells"] = [code("import numpy as np\n" + "\n\n".join(cell(right, name)["source"] for name in NAMES))]
    is_right(right)


def test_cells_renamed(right):
    for one in right["cells"]:
        if grade_id(one):
            one["metadata"]["nbgrader"]["grade_id"] = "cell-" + grade_id(one)
    is_right(right)


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_a_function_in_a_text_cell(right, kind):
    cell(right, "patchify")["cell_type"] = kind
    assert told(is_right(right), "read as code")


def test_a_function_in_a_fence(right):
    wanted = cell(right, "patchify")
    wanted["cell_type"] = "markdown"
    wanted["source"] = f"My solution:\n\n```python\n{wanted['source']}\n```\n\nI hope it is right."
    assert told(is_right(right), "read as code")


def test_a_note_does_not_replace_the_function(right):
    note = "Not like this:\n\n```python\ndef patchify(img, P):\n    return img\n```"
    right["cells"].append({"cell_type": "markdown", "metadata": {}, "source": note})
    is_right(right)


def test_things_that_are_no_cells(right):
    right["cells"] += [None, 3, {"cell_type": "code", "source": 5}, {}]
    is_right(right)


# ------------------------------------------------------------------------------- what stands in cells


@pytest.mark.parametrize(
    "line",
    [
        "%pip install einops",
        "!ls -la 'it",
        "files = !ls",
        "%matplotlib inline",
        "%load_ext autoreload\n%autoreload 2",
        "name = input('Your name? ')",
        "np.reshape?",
        "from google.colab import drive",
        "1 / 0",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
        "exit()",
        "display(np.zeros(3))",
    ],
)
def test_lines_left_in_the_cell_of_a_function(right, line):
    wanted = cell(right, "patchify")
    wanted["source"] = f"import numpy as np\n{line}\n{wanted['source']}\n{line}"
    is_right(right)


@pytest.mark.parametrize("magic", ["%%time", "%%capture", "%%timeit -n1 -r1"])
def test_cell_magic_over_a_function(right, magic):
    cell(right, "patchify")["source"] = f"{magic}\n{cell(right, 'patchify')['source']}"
    is_right(right)


def test_cells_in_other_languages(right):
    right["cells"].insert(2, code("%%bash\nrm -rf $HOME/x; if [ 1 ]; then echo 'it'; fi"))
    right["cells"].insert(2, code("%%html\n<b>hello</b>"))
    is_right(right)


def test_magic_inside_a_string_stays(right):
    wanted = cell(right, "patchify")
    wanted["source"] = 'TEXT = """\n%d is no magic\n"""\n%pip list\n' + wanted["source"].replace(
        "H, W, C = img.shape", 'assert TEXT == "\\n%d is no magic\\n"\n    H, W, C = img.shape'
    )
    is_right(right)


def test_a_syntax_error_costs_its_own_function(right):
    cell(right, "unpatchify")["source"] = "def unpatchify(patches, H, W, P):\n    return (patches"
    verdict = verdict_on(right)
    assert verdict["score"] == 10.0
    message = verdict["exercises"][1]["failures"][0]["message"]
    assert "not valid Python" in message and "never closed" in message


def test_a_syntax_error_among_right_functions_in_one_cell(right):
    sources = [cell(right, name)["source"] for name in NAMES]
    sources[1] = "def unpatchify(patches, H, W, P):\n    return patches patches\n"
    right["cells"] = [code("import numpy as np\n" + "\n\n".join(sources))]
    verdict = verdict_on(right)
    assert statuses(verdict) == ["passed", "not found", "passed", "passed"]
    assert told(verdict, "can be read all the same")


# ------------------------------------------------------------------------------- how functions are written


@pytest.mark.parametrize("student", ["bo", "chen", "dana"])
def test_other_styles(student):
    is_right(notebook(STUDENTS[student]))


@pytest.mark.parametrize(
    "written",
    [
        "def mine(img, P):\n    return np.array(_old(img, P)) * (1 + 1e-12)\npatchify = mine",  # Apple's BLAS
        "patchify = lambda img, P: _old(img, P).tolist()",
        "import functools\n@functools.lru_cache\ndef five():\n    return 5\npatchify = functools.partial(_old)",
        "class Patchify:\n    def __call__(self, img, P):\n        return _old(img, P)\npatchify = Patchify()",
        "def patchify(*args, **kwargs):\n    return _old(*args, **kwargs)",
        "def patchify(img: 'np.ndarray', P: 'int' = 16) -> 'np.ndarray':\n    return np.asfortranarray(_old(img, P))",
        "def patchify(img, P):\n    return _old(img, P).astype(np.longdouble)",
        "def patchify(img, P):\n    return list(_old(img, P))",
        "if True:\n    def patchify(img, P):\n        return _old(img, P)",
        "def patchify(img, P):\n    import sys\n    print('x' * 10**6, file=sys.stderr)\n    return _old(img, P)",
        "def patchify(img, P):\n    with open('scratch.npy', 'wb') as f:\n        np.save(f, _old(img, P))\n"
        "    return np.load('scratch.npy')",
        "from tqdm import tqdm\ndef patchify(img, P):\n    return [row for row in tqdm(_old(img, P))]",
    ],
)
def test_other_ways_to_write_a_function(right, written):
    wanted = cell(right, "patchify")
    wanted["source"] = wanted["source"].replace("def patchify", "def _old") + "\n\n" + written
    is_right(right)


def test_a_near_name_is_pointed_out(right):
    cell(right, "unpatchify")["source"] = cell(right, "unpatchify")["source"].replace("unpatchify", "un_patchify")
    verdict = verdict_on(right)
    assert verdict["exercises"][1]["status"] == "not found"
    assert "there is un_patchify: is it the same?" in verdict["exercises"][1]["failures"][0]["message"]


# ------------------------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"\0" * 500, "empty"),
        (json.dumps(notebook(STUDENTS["ada"])).encode()[:3000], "breaks off"),
        (json.dumps(notebook(STUDENTS["ada"])).encode()[:-1], "breaks off"),
        (b"PK\x03\x04 a zip", "no notebook"),
        (b"<html>Sign in</html>", "no notebook"),
        (b"null", "no notebook"),
        (b'{"a": 1}', "no list of cells"),
        (b'{"cells": []}', "no cells"),
        (b'{"cells": [{"cell_type": "code", "source": "x = 1"}]}', "right notebook"),
        (b"[" * 10**6, "no notebook"),
        (b'{"cells": ' + b"9" * 10**5 + b"}", "no notebook"),
    ],
)
def test_what_cannot_be_read_says_why(data, reason):
    verdict = verdict_on(data, "homework.ipynb")
    assert verdict["status"] == "not readable"
    assert verdict["score"] is None
    assert reason in verdict["reason"]


@pytest.mark.parametrize(
    "source", ["-" * 10**5 + "1", "(" * 1000, "\0", "\ud800", "x" * 200_000, "if 1:\n" * 500, "%a\n" * 500]
)
def test_strange_code_harms_nothing_else(right, source):
    data = json.dumps({**right, "cells": [*right["cells"], code(source)]}).encode()
    assert verdict_on(data)["score"] == 12.0


# ------------------------------------------------------------------------------- what never ends


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_cell_that_never_ends(right, where):
    right["cells"].insert(2 if where == "before" else len(right["cells"]), code("while True:\n    pass"))
    verdict = is_right(right, limits=SHORT)
    assert any("stopped" in error for error in verdict["cell_errors"])


def test_a_function_that_never_ends_is_named(right):
    cell(right, "unpatchify")["source"] = "def unpatchify(patches, H, W, P):\n    while True:\n        pass"
    verdict = verdict_on(right, limits=SHORT)
    assert statuses(verdict) == ["passed", "timed out", "passed", "passed"]
    assert (verdict["status"], verdict["score"]) == ("graded", 10.0)
