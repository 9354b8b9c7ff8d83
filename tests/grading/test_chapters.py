"""A few submissions to other chapters, one of them in torch, with scores counted by hand."""

import json
from pathlib import Path

import pytest
from build import grade_id, notebook

from autograder.grading.grade import close_sandbox, grade

CLASSROOM = Path(__file__).parents[1] / "classroom"
POINTS = {
    "sincos": {"sincos_1d": 3, "offset_rotation": 3, "position_similarity": 2, "position_angle": 2},
    "small_vit": {"split_heads": 2, "merge_heads": 2, "attention": 3, "transformer_block": 5, "decay_groups": 3},
}
# What is not right: (chapter, student) -> exercise -> (share of its points, status, what the first message says).
EXPECTED = {
    ("sincos", "right"): {},
    # At width 4 the inner product of a vector with itself is 2, its cosine 1; every other case is wrong too.
    ("sincos", "juna"): {"position_similarity": (0, "failed", "You divided by the squared length")},
    ("small_vit", "right"): {},
    # One head is right by a reshape, and the arguments are unchanged: 2 of 8.
    ("small_vit", "noel"): {"split_heads": (2 / 8, "partly passed", "You reshaped straight to (B, h, T, d_h)")},
    ("small_vit", "pia"): {"attention": (0, "failed", "name 'math' is not defined")},
    ("small_vit", "ola"): {"attention": (0, "not found", "not valid Python")},
}


@pytest.fixture(scope="module", autouse=True)
def sandbox():
    yield
    close_sandbox()


def handed_in(chapter, student):
    """The notebook: what a student did not write is as in right.py."""
    right, own = CLASSROOM / chapter / "right.py", CLASSROOM / chapter / f"{student}.py"
    made = notebook(right.read_text("utf-8") + (own.read_text("utf-8") if own.exists() else ""), chapter)
    if student == "ola":  # a bracket that nobody closes
        cell = next(cell for cell in made["cells"] if grade_id(cell) == "attention")
        cell["source"] = "def attention(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v\n"
    return made


def graded(chapter, made):
    verdict, _ = grade(json.dumps(made).encode(), filename=f"{chapter}.ipynb")
    assert (verdict["assignment"], verdict["status"], verdict["reason"]) == (chapter, "graded", None)
    return {row["name"]: row for row in verdict["exercises"]}


@pytest.mark.parametrize(("chapter", "student"), EXPECTED)
def test_known_scores(chapter, student):
    rows, expected = graded(chapter, handed_in(chapter, student)), EXPECTED[chapter, student]
    for name, points in POINTS[chapter].items():
        share, status, words = expected.get(name, (1, "passed", ""))
        row = rows[name]
        assert (row["status"], row["score"]) == (status, pytest.approx(share * points)), row
        assert words in "".join(failure["message"] for failure in row["failures"][:1])


@pytest.mark.parametrize("chapter", POINTS)
def test_stubs(chapter):
    rows = graded(chapter, notebook("", chapter))
    assert {name: (row["status"], row["score"]) for name, row in rows.items()} == dict.fromkeys(
        POINTS[chapter], ("not written", 0.0)
    )
