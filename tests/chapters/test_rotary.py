"""The rotary chapter's functions against hand computations, slow loops, complex numbers and PyTorch."""

import cmath
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from solutions.rotary import (
    dinov3_coordinates,
    packed_attention_mask,
    rope_2d_attention,
    rope_2d_axial,
    rope_2d_mixed,
)

few = settings(max_examples=25, deadline=None, derandomize=True)
sides = st.integers(1, 7)
seeds = st.integers(0, 99)


def raster(H_p, W_p):
    """(row, column) of each patch, in the order in which one reads."""
    return [(r, c) for r in range(H_p) for c in range(W_p)]


# ---------------------------------------------------------------------------------------- rotary positions


def turned_by_loops(x, angles, n_prefix):
    """Each pair is a complex number, turned by multiplying it. x: (T, d_h), angles: (T - n_prefix, d_h / 2)"""
    out = np.array(x, dtype=np.float64)
    for t in range(n_prefix, len(x)):
        for j in range(x.shape[1] // 2):
            z = complex(x[t, 2 * j], x[t, 2 * j + 1]) * cmath.exp(1j * angles[t - n_prefix][j])
            out[t, 2 * j : 2 * j + 2] = z.real, z.imag
    return out


def axial_angles(rows, cols, d_h, base):
    theta = [base ** (-2 * i / (d_h / 2)) for i in range(d_h // 4)]
    return [[c * w for w in theta] + [r * w for w in theta] for r, c in zip(rows, cols, strict=True)]


def test_axial_by_hand():
    # Column 2, row 1, base 100: the angles are 2, 0.2, 1 and 0.1. Pairs (1, 0) and (0, 1) show both signs.
    out = rope_2d_axial(np.array([[1.0, 0, 0, 1, 1, 0, 0, 1]]), [1], [2])
    hand = [np.cos(2), np.sin(2), -np.sin(0.2), np.cos(0.2), np.cos(1), np.sin(1), -np.sin(0.1), np.cos(0.1)]
    np.testing.assert_allclose(out, [hand], atol=1e-15)


@few
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(0, 3), st.floats(2, 20000), seeds)
def test_axial_is_the_loop(H_p, W_p, quarter, n_prefix, base, seed):
    x = np.random.default_rng(seed).normal(size=(n_prefix + H_p * W_p, 4 * quarter))
    rows, cols = zip(*raster(H_p, W_p), strict=True)
    expected = turned_by_loops(x, axial_angles(rows, cols, 4 * quarter, base), n_prefix)
    np.testing.assert_allclose(rope_2d_axial(x, rows, cols, n_prefix, base), expected, atol=1e-12)


@few
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 3), seeds)
def test_mixed_is_the_loop(T, pairs, n_prefix, seed):
    rng = np.random.default_rng(seed)
    x, (rows, cols) = rng.normal(size=(n_prefix + T, 2 * pairs)), rng.uniform(-9, 9, size=(2, T))
    theta_x, theta_y = rng.normal(size=(2, pairs))
    angles = [
        [tx * c + ty * r for tx, ty in zip(theta_x, theta_y, strict=True)] for r, c in zip(rows, cols, strict=True)
    ]
    expected = turned_by_loops(x, angles, n_prefix)
    np.testing.assert_allclose(rope_2d_mixed(x, rows, cols, theta_x, theta_y, n_prefix), expected, atol=1e-12)


def test_axial_is_a_special_case_of_mixed():
    rng = np.random.default_rng(0)
    x, rows, cols = rng.normal(size=(2, 3, 7, 12)), rng.uniform(-5, 5, size=6), rng.uniform(-5, 5, size=6)
    theta, none = [1, 100 ** (-1 / 3), 100 ** (-2 / 3)], [0, 0, 0]
    mixed = rope_2d_mixed(x, rows, cols, theta + none, none + theta, 1)
    np.testing.assert_allclose(rope_2d_axial(x, rows, cols, 1), mixed, atol=1e-14)


@few
@given(st.tuples(*[st.integers(-20, 20)] * 6), seeds)
def test_score_depends_on_the_offset_alone(places, seed):
    r, c, s, t, down, right = places
    q, k = np.random.default_rng(seed).normal(size=(2, 1, 16))

    def score(query, key):
        return (rope_2d_axial(q, [query[0]], [query[1]]) @ rope_2d_axial(k, [key[0]], [key[1]]).T).item()

    assert score((r, c), (s, t)) == pytest.approx(score((r + down, c + right), (s + down, t + right)), abs=1e-11)


def test_scores_of_other_offsets_differ():
    q, k = np.random.default_rng(1).normal(size=(2, 1, 16))
    turned = [rope_2d_axial(k, [r], [c])[0] for r, c in raster(4, 5)]
    scores = np.array(turned) @ rope_2d_axial(q, [0], [0])[0]
    assert np.diff(np.sort(scores)).min() > 1e-3


@few
@given(seeds)
def test_turning_keeps_lengths_and_prefix(seed):
    rng = np.random.default_rng(seed)
    x, (rows, cols) = rng.normal(size=(2, 9, 12)), rng.uniform(-50, 50, size=(2, 7))
    theta = rng.normal(size=(2, 6))
    for out in (rope_2d_axial(x, rows, cols, 2), rope_2d_mixed(x, rows, cols, *theta, 2)):
        np.testing.assert_allclose(np.linalg.norm(out, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-13)
        assert np.array_equal(out[:, :2], x[:, :2])  # to the last bit
        assert not np.isclose(out[:, 2:], x[:, 2:]).all(axis=-1).any()


def test_half_split_is_a_permutation_away():
    # rotate_half with one pair in each half of a half: channels permuted, turned, permuted back.
    x, angle = np.random.default_rng(2).normal(size=8), np.array([2.0, 0.2, 1.0, 0.1])
    half_split = x * np.cos(np.tile(angle, 2)) + np.concatenate([-x[4:], x[:4]]) * np.sin(np.tile(angle, 2))
    order = [0, 4, 1, 5, 2, 6, 3, 7]
    np.testing.assert_allclose(rope_2d_axial(x[None, order], [1], [2])[0], half_split[order], atol=1e-15)


def test_rotary_dtypes_and_leading_axes():
    rows, cols = [0, 0, 1], [0, 1, 0]
    x = np.random.default_rng(3).normal(size=(2, 3, 4, 8))
    theta = [0.5, 0.25, 1, 2]
    for function in (
        lambda x: rope_2d_axial(x, rows, cols, 1),
        lambda x: rope_2d_mixed(x, rows, cols, theta, theta, 1),
    ):
        every = [[function(one) for one in several] for several in x]
        assert np.array_equal(function(x), every)
        assert function(x.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(function(x.astype(np.float32)), every, atol=1e-6)
        whole = np.arange(32).reshape(4, 8)
        assert function(whole).dtype == np.float64
        assert np.array_equal(function(whole), function(whole.astype(float)))


def test_rotary_leaves_its_inputs():
    rng = np.random.default_rng(4)
    x, rows, cols = rng.normal(size=(5, 8)), rng.normal(size=4), rng.normal(size=4)
    theta = rng.normal(size=(2, 4))
    before = [a.copy() for a in (x, rows, cols, theta)]
    rope_2d_axial(x, rows, cols, 1)
    rope_2d_mixed(x, rows, cols, *theta, 1)
    rope_2d_attention(x, x, x, rows, cols, 1)
    out = rope_2d_axial(x, rows, cols, 1)
    out[:] = 0  # the prefix rows are a copy too
    assert all(np.array_equal(a, b) for a, b in zip((x, rows, cols, theta), before, strict=True))


def test_rotary_without_patches():
    x = np.ones((2, 8))
    assert np.array_equal(rope_2d_axial(x, [], [], 2), x)


# ----------------------------------------------------------------------------------------- rope_2d_attention


def test_attention_by_hand():
    # One frequency; the scaled scores are 1 and cos 1 for patch (0, 0), -sin 1 and 0 for patch (0, 1).
    Q, K = np.array([[2.0, 0, 0, 0], [0, 2.0, 0, 0]]), np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0]])
    V = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    first, second = 1 / (1 + math.exp(math.cos(1) - 1)), 1 / (1 + math.exp(math.sin(1)))
    hand = [[first, 1 - first, 0, 0], [second, 1 - second, 0, 0]]
    np.testing.assert_allclose(rope_2d_attention(Q, K, V, [0, 0], [0, 1]), hand, atol=1e-15)


@few
@given(st.integers(0, 3), seeds)
def test_attention_is_pytorchs(n_prefix, seed):
    rng = np.random.default_rng(seed)
    Q, K, V = rng.normal(size=(3, 2, 4, n_prefix + 6, 8))
    rows, cols = zip(*raster(2, 3), strict=True)
    angles = axial_angles(rows, cols, 8, 100.0)
    turned = [np.array([[turned_by_loops(h, angles, n_prefix) for h in image] for image in x]) for x in (Q, K)]
    expected = F.scaled_dot_product_attention(*(torch.tensor(x) for x in (*turned, V))).numpy()
    np.testing.assert_allclose(rope_2d_attention(Q, K, V, rows, cols, n_prefix), expected, atol=1e-12)


def test_attention_survives_large_scores():
    Q, K, V = np.random.default_rng(5).normal(size=(3, 6, 8))
    rows, cols = zip(*raster(3, 2), strict=True)
    for dtype in (np.float32, np.float64):
        out = rope_2d_attention(*(x.astype(dtype) for x in (1e4 * Q, 1e4 * K, V)), rows, cols)
        assert out.dtype == dtype and np.isfinite(out).all()
        # With such scores each query takes the value of its best key.
        turned = [rope_2d_axial(x, rows, cols) for x in (Q, K)]
        np.testing.assert_allclose(out, V[np.argmax(turned[0] @ turned[1].T, axis=1)], atol=1e-6)


def test_attention_without_prefix_does_not_notice_a_shift():
    Q, K, V = np.random.default_rng(6).normal(size=(3, 7, 8))
    rows, cols = np.array(raster(2, 3)).T
    here, there = (rope_2d_attention(Q, K, V, r, c, 1) for r, c in ((rows, cols), (rows + 4, cols + 9)))
    assert np.abs(here - there).max() > 1e-2  # the prefix token stays at the origin
    Q, K, V = Q[1:], K[1:], V[1:]
    here, there = (rope_2d_attention(Q, K, V, r, c) for r, c in ((rows, cols), (rows + 4, cols + 9)))
    np.testing.assert_allclose(here, there, atol=1e-12)


# ---------------------------------------------------------------------------------------- dinov3_coordinates


def test_coordinates_by_hand():
    assert dinov3_coordinates(1, 1).tolist() == [[0, 0]]
    assert dinov3_coordinates(2, 4).tolist() == [[r, c] for r in (-0.5, 0.5) for c in (-0.75, -0.25, 0.25, 0.75)]


@few
@given(sides, sides)
def test_coordinates_are_centres(H_p, W_p):
    # The centre of a patch is the mean of its pixels' centres, however many pixels it has.
    P = 6
    centres = [[(i + 0.5) / (n * P) * 2 - 1 for i in range(n * P)] for n in (H_p, W_p)]
    expected = [
        [np.mean(centres[0][r * P : r * P + P]), np.mean(centres[1][c * P : c * P + P])] for r, c in raster(H_p, W_p)
    ]
    np.testing.assert_allclose(dinov3_coordinates(H_p, W_p), expected, atol=1e-14)


def test_steps_of_dinov3():
    # Its fastest pair turns by 2 pi for each unit, so the step from patch to patch depends on the grid.
    for n, step in ((14, 0.898), (24, 0.524)):
        place = dinov3_coordinates(n, n)[:2, 1]
        assert round(2 * math.pi * (place[1] - place[0]), 3) == step


# ------------------------------------------------------------------------------------- packed_attention_mask


def test_mask_by_hand():
    assert packed_attention_mask([2, 1, 2]).astype(int).tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 1, 1],
        [0, 0, 0, 1, 1],
    ]


@few
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_mask_is_a_block_for_each_image(lengths):
    blocks = torch.block_diag(*(torch.ones(n, n) for n in lengths)).bool().numpy()
    for given_as in (lengths, tuple(lengths), np.array(lengths)):
        mask = packed_attention_mask(given_as)
        assert mask.dtype == bool and np.array_equal(mask, blocks)


def test_masked_attention_is_attention_image_by_image():
    lengths = [3, 5, 3]
    Q, K, V = (torch.tensor(x) for x in np.random.default_rng(7).normal(size=(3, 11, 8)))
    packed = F.scaled_dot_product_attention(Q, K, V, attn_mask=torch.tensor(packed_attention_mask(lengths)))
    alone = [F.scaled_dot_product_attention(*(x.split(lengths)[i] for x in (Q, K, V))) for i in range(3)]
    np.testing.assert_allclose(packed, torch.cat(alone), atol=1e-14)


# ----------------------------------------------------------------------------------------------- refusals

X, GRID = np.ones((5, 8)), ([0, 0, 1, 1], [0, 1, 0, 1])
THETA = [1.0, 0.5, 0.25, 0.1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rope_2d_axial(np.ones((5, 6)), *GRID, 1), r"x must.*\(5, 6\)"),
        (lambda: rope_2d_axial(np.ones(8), [0], [0]), r"x must.*\(8,\)"),
        (lambda: rope_2d_axial(X, *GRID), r"rows.*5 entries.*\(4,\)"),
        (lambda: rope_2d_axial(X, GRID[0], [1], 1), r"cols.*4 entries.*\(1,\)"),
        (lambda: rope_2d_axial(X, *GRID, 6), "n_prefix.*6"),
        (lambda: rope_2d_axial(X, *GRID, -1), "n_prefix.*-1"),
        (lambda: rope_2d_axial(X, *GRID, 1, base=0.0), "base.*0"),
        (lambda: rope_2d_attention(X, X, X[:4], *GRID, 1), r"\(5, 8\), \(5, 8\), \(4, 8\)"),
        (lambda: rope_2d_attention(X, X, X, *GRID), "rows.*5 entries"),
        (lambda: rope_2d_attention(X[:0], X[:0], X[:0], [], []), r"\(0, 8\)"),
        (lambda: rope_2d_mixed(np.ones((5, 7)), *GRID, THETA, THETA, 1), r"x must.*\(5, 7\)"),
        (lambda: rope_2d_mixed(X, *GRID, THETA, THETA), "rows.*5 entries"),
        (lambda: rope_2d_mixed(X, GRID[0], [1], THETA, THETA, 1), "cols.*4 entries"),
        (lambda: rope_2d_mixed(X, *GRID, THETA[:1], THETA, 1), r"theta_x.*4 entries.*\(1,\)"),
        (lambda: rope_2d_mixed(X, *GRID, THETA, THETA[:2], 1), r"theta_y.*4 entries.*\(2,\)"),
        (lambda: rope_2d_mixed(X, *GRID, THETA, THETA, 9), "n_prefix.*9"),
        (lambda: dinov3_coordinates(0, 2), "H_p.*0"),
        (lambda: dinov3_coordinates(2, 1.5), "W_p.*1.5"),
        (lambda: packed_attention_mask([2, 0]), r"lengths.*\[2, 0\]"),
        (lambda: packed_attention_mask([2, -1]), r"lengths.*\[2, -1\]"),
        (lambda: packed_attention_mask([2.5]), r"lengths.*\[2.5\]"),
        (lambda: packed_attention_mask([[2, 3]]), "lengths"),
    ],
)
def test_refusals_name_the_argument_and_its_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
