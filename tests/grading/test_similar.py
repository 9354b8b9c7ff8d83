"""Pairs that are nearly the same, in classes whose copies are known."""

import ast
import json
import math
import random
import re
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import pytest
from build import STUDENTS, notebook

from autograder.notebooks.solution import exercise_texts
from autograder.reports import similar
from autograder.reports.similar import sequences

RENAMED = (
    STUDENTS["dana"]
    .replace("windows", "w")
    .replace("strips", "parts")
    .replace("strip ", "one ")
    .replace("(strip)", "(one)")
    .replace("tokens", "result")
    .replace("H_p, W_p =", "a, b_ =")
    .replace("H_p", "a")
    .replace("W_p", "b_")
)


@pytest.fixture
def handed(course):
    """Write graded notebooks of a class: student -> code."""

    def handed(codes):
        for student, code in codes.items():
            path = course.folder / "autograded" / student / "patchify" / "patchify.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(notebook(code)), "utf-8")
        return course

    return handed


def found(course, *arguments):
    lines = course.run("similar", *arguments).stdout.splitlines()
    return [tuple(re.match(r"patchify: (.*) and (.*), \d+%", line).groups()) for line in lines[:-1]]


def test_a_copy_under_other_names_is_found_alone(handed):
    """The sample class, where eight share the course's own way of writing: only the copy stands out."""
    course = handed(STUDENTS | {"eve": RENAMED})
    assert "windows" not in RENAMED
    assert found(course) == [("dana", "eve")]
    page = (course.folder / "similar.html").read_text("utf-8")
    assert "never a verdict" in page and "sliding_window_view" in page
    assert "<script" not in page and not re.search(r"(src|href)=[\"']?(https?:)?//", page)


@pytest.mark.parametrize(
    "decoy", ["def {name}(*args):\n        return 0", "class Inner:\n        def {name}(self):\n            pass"]
)
def test_a_decoy_of_the_same_name_within_a_copy_hides_nothing(handed, decoy):
    tree, code = ast.parse(RENAMED), RENAMED.split("\n")
    for node in reversed([node for node in tree.body if isinstance(node, ast.FunctionDef)]):
        code.insert(node.body[-1].lineno - 1, "    " + decoy.format(name=node.name))
    assert found(handed(STUDENTS | {"eve": "\n".join(code)})) == [("dana", "eve")]


def test_lines_that_are_equal_do_not_hold_it_up(handed):
    """Two copies that are padded with lines that stand twenty-five thousand times."""
    padded = STUDENTS["dana"].replace("    P = W_conv.shape[-1]", "    P = W_conv.shape[-1]\n" + "    P = P\n" * 25_000)
    codes = {"a": padded, "b": padded.replace("    P = P\n", "", 1)} | {f"s{n}": STUDENTS["ada"] for n in range(6)}
    course, start = handed(codes), time.process_time()
    assert found(course) == [("a", "b")]
    assert time.process_time() - start < 20


def test_many_pairs_of_long_functions_do_not_hold_it_up():
    """Fifteen who agree to pad their answers make a hundred pairs: the page holds 50,000 lines, and says so."""
    source = "def f():\n" + "".join(f"    x{n} = {n}\n" for n in range(1200))
    passage = {"name": "f", "bits": 100.0, "sources": [source, source]}
    pairs = [
        {"assignment": "patchify", "students": [a, b], "similarity": 1.0, "bits": 100.0, "passages": [passage]}
        for a, b in list(combinations([f"s{n}" for n in range(15)], 2))[:100]
    ]
    shown = similar.as_page(pairs, left_out=5)
    assert shown.count("<h2>") == 50 and "55 more pairs are left out" in shown


def test_the_same_right_answer_of_a_whole_class_is_no_pair(handed):
    course = handed({f"s{number:02}": STUDENTS["ada"] for number in range(12)})
    assert found(course) == []
    assert "No pair stands out." in (course.folder / "similar.html").read_text("utf-8")


def test_what_many_share_weighs_little(handed):
    """Ten have one strange answer in common (a lecture's, say), two another: the two come first."""
    codes = {f"s{number}": STUDENTS["bo"] for number in range(10)}
    codes |= {"x": STUDENTS["dana"], "y": RENAMED} | {"z": STUDENTS["chen"]}
    assert found(handed(codes)) == [("x", "y")]


def test_stubs_and_the_unreadable_are_no_pairs(handed):
    course = handed({"a": "", "b": "", "c": STUDENTS["dana"]})
    (course.folder / "autograded/c/patchify/patchify.ipynb").write_text("{")
    assert found(course) == []


def test_markup_in_code_is_text(handed):
    code = STUDENTS["dana"].replace("    P = W_conv.shape[-1]", "    P = W_conv.shape[-1]  # <script>alert(1)</script>")
    course = handed({"a<b": code, "c": code, **{f"s{n}": STUDENTS["ada"] for n in range(6)}})
    assert found(course) == [("a<b", "c")]
    page = (course.folder / "similar.html").read_text("utf-8")
    assert "<script" not in page and "&lt;script&gt;" in page and "<b " not in page


def test_names_spaces_and_docstrings_do_not_count_and_comments_do():
    one = 'def f(a):\n    """Say."""\n    total = a.sum(axis=0)\n    return total + 1\n'
    same = "def f(image):\n    t = image.sum( axis = 0 )\n\n    return t+1\n"
    assert sequences(one) == sequences(same)
    assert sequences(one) != sequences(one.replace("axis=0", "axis=1"))
    assert sequences(one) != sequences(one.replace("+ 1", "+ 1  # and so"))


def test_nothing_graded(course):
    assert "nothing has been graded" in course.run("similar", status=1).stderr
    assert "nothing has been graded yet for tokens" in course.run("similar", "--assignment", "tokens", status=1).stderr


def made_up(count, seed=0):
    """A class: each writes lines of its own among lines of a lecture; every fiftieth copies from the one before."""
    rng, works = random.Random(seed), {}
    lecture = [f"    a = np.roll(a, {number}) * {number} + a[{number}]\n" for number in range(20)]
    for number in range(count):
        own = [f"    a = a + np.sum(a[{rng.randrange(9**6)}:] * {rng.randrange(9**6)}, axis=0)\n" for _ in range(8)]
        works[f"s{number}"] = {"patchify": "def patchify(a):\n" + "".join([*rng.sample(lecture, 5), *own])}
        if number % 50 == 49:
            works[f"s{number}"] = dict(works[f"s{number - 1}"])
    return works


def by_hand(works, threshold):
    """The pairs by a loop over all pairs and all that they share."""
    known = {name: sequences(text.solution) | sequences(text.stub) for name, text in exercise_texts("patchify").items()}
    own = {s: {(n, one) for n in w for one in sequences(w[n]) - known[n]} for s, w in works.items()}
    weights = {
        item: max(0.0, math.log2((len(own) + 1) / (2 * sum(item in has for has in own.values()))))
        for item in set().union(*own.values())
    }
    pairs = {}
    for one, other in combinations(own, 2):
        shared = sum(weights[item] for item in own[one] & own[other])
        of_all = sum(weights[item] for item in own[one] | own[other])
        if shared >= 80 and shared / of_all >= threshold:
            names = {name for name in works[one] if sum(weights[i] for i in own[one] & own[other] if i[0] == name) >= 1}
            pairs[one, other] = (shared, shared / of_all, names)
    return pairs


def sample():
    """The sample class and a copy of each, with a few lines of its own."""
    works = {}
    for student, code in (STUDENTS | {"eve": RENAMED}).items():
        nodes = [node for node in ast.parse(code).body if getattr(node, "name", "") in exercise_texts("patchify")]
        functions = {node.name: ast.get_source_segment(code, node) for node in nodes}
        works[student] = functions
        works[f"{student}'s"] = {name: f"{text}\n    {name} = {len(student)}" for name, text in functions.items()}
    return works


@pytest.mark.parametrize("at_once", [1, 100, 1 << 22])
@pytest.mark.parametrize("works", [made_up(120), sample()], ids=["made up", "sample"])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5])
def test_pairs_are_those_of_a_plain_loop(monkeypatch, works, at_once, threshold):
    monkeypatch.setattr(similar, "AT_ONCE", at_once)
    found, left_out = similar._pairs("patchify", works, threshold)
    wanted = by_hand(works, threshold)
    assert wanted and left_out == 0
    assert {tuple(pair["students"]) for pair in found} == wanted.keys()
    for pair in found:
        bits, similarity, names = wanted[tuple(pair["students"])]
        assert (pair["bits"], pair["similarity"]) == pytest.approx((bits, similarity))
        assert {passage["name"] for passage in pair["passages"]} == names


def test_the_best_pairs_of_too_many_are_kept(monkeypatch):
    works = made_up(200)
    wanted = sorted(by_hand(works, 0.5))
    assert len(wanted) == 4
    monkeypatch.setattr(similar, "KEPT_PAIRS", 3)
    found, left_out = similar._pairs("patchify", works, 0.5)
    assert (len(found), left_out) == (3, 1)
    assert {pair["similarity"] for pair in found} == {1.0}
    assert "1 more pairs are left out" in similar.as_page(found, left_out)


MEASURE = """
import resource, sys
sys.path[:0] = sys.argv[2:]
from test_similar import made_up
from autograder.reports.similar import _pairs
count = int(sys.argv[1])
works = made_up(count)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found, _ = _pairs("patchify", works, 0.5)
assert [pair["students"] for pair in sorted(found, key=lambda pair: int(pair["students"][0][1:]))] == [
    [f"s{n - 1}", f"s{n}"] for n in range(49, count, 50)]
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_memory_of_a_large_class(count):
    """In MB, beside the class itself. All against all at once took 2.4 GB for 10,000; this takes 0.2 GB."""
    folders = [str(Path(__file__).parents[2]), str(Path(__file__).parent), *sys.path]
    done = subprocess.run([sys.executable, "-c", MEASURE, str(count), *folders], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 400
