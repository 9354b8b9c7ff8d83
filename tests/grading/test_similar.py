"""Pairs that are nearly the same, in classes whose copies are known."""

import ast
import json
import re
import time

import pytest
from build import STUDENTS, notebook

from autograder.similar import sequences

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
