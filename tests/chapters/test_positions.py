"""The positions chapter's functions against hand computations and slow loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solutions.positions import decomposed_bias, factorized_table, relative_bias_index, sincos_2d

few = settings(max_examples=25, deadline=None, derandomize=True)
sides = st.integers(1, 7)
seeds = st.integers(0, 99)


def raster(H_p, W_p):
    """(row, column) of each patch, in the order in which one reads."""
    return [(r, c) for r in range(H_p) for c in range(W_p)]


def cosine(table, i, j):
    return table[i] @ table[j] / np.linalg.norm(table[i]) / np.linalg.norm(table[j])


# -------------------------------------------------------------------------------------- factorized_table


def test_factorized_by_hand():
    rows, cols = np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8], [9, 0]])
    assert factorized_table(rows, cols).tolist() == [
        [5, 6, 1, 2], [7, 8, 1, 2], [9, 0, 1, 2],
        [5, 6, 3, 4], [7, 8, 3, 4], [9, 0, 3, 4],
    ]  # fmt: skip


@few
@given(sides, sides, st.integers(1, 5), seeds)
def test_factorized_is_the_loop(H_p, W_p, half, seed):
    rng = np.random.default_rng(seed)
    rows, cols = rng.normal(size=(H_p, half)), rng.normal(size=(W_p, half))
    assert factorized_table(rows, cols).tolist() == [[*cols[c], *rows[r]] for r, c in raster(H_p, W_p)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_factorized_keeps_the_dtype(dtype):
    assert factorized_table(np.ones((2, 3), dtype), np.ones((4, 3), dtype)).dtype == dtype


def test_sincos_is_a_factorized_table():
    # The sine-cosine table of one line of patches has the column's half; that of one column has the row's.
    cols, rows = sincos_2d(1, 5, 16)[:, :8], sincos_2d(3, 1, 16)[:, 8:]
    assert np.array_equal(factorized_table(rows, cols), sincos_2d(3, 5, 16))


# --------------------------------------------------------------------------------------------- sincos_2d


def test_sincos_by_hand():
    # Patch (r, c) = (1, 3) of the page, to the four places that it prints.
    expected = [0.1411, 0.0300, -0.9900, 0.9996, 0.8415, 0.0100, 0.5403, 1.0000]
    position = sincos_2d(3, 4, 8)[1 * 4 + 3]
    assert np.round(position, 4).tolist() == expected
    assert position @ position == pytest.approx(4, abs=1e-14)


def test_sincos_of_the_article():
    # Its example has column 2, row 1 and frequencies 1 and 0.1 (base 100), and interleaves sine and cosine.
    interleaved = [0.909, -0.416, 0.199, 0.980, 0.841, 0.540, 0.100, 0.995]
    position = sincos_2d(3, 4, 8, base=100.0)[1 * 4 + 2]
    assert position[[0, 2, 1, 3, 4, 6, 5, 7]].tolist() == pytest.approx(interleaved, abs=5e-4)


@few
@given(sides, sides, st.integers(1, 6), st.floats(2, 20000))
def test_sincos_is_the_loop(H_p, W_p, quarter, base):
    omega = [base ** (-i / quarter) for i in range(quarter)]
    table = [
        [f(place * w) for place, f in ((c, math.sin), (c, math.cos), (r, math.sin), (r, math.cos)) for w in omega]
        for r, c in raster(H_p, W_p)
    ]
    np.testing.assert_allclose(sincos_2d(H_p, W_p, 4 * quarter, base), table, atol=1e-13)


@few
@given(sides, sides, st.integers(1, 6))
def test_sincos_similarity_is_a_row_term_and_a_column_term(H_p, W_p, quarter):
    table = sincos_2d(H_p, W_p, 4 * quarter)
    omega = [10000 ** (-i / quarter) for i in range(quarter)]
    for i, (r, c) in enumerate(raster(H_p, W_p)):
        for j, (s, t) in enumerate(raster(H_p, W_p)):
            terms = sum(math.cos((r - s) * w) + math.cos((c - t) * w) for w in omega)
            assert table[i] @ table[j] == pytest.approx(terms, abs=1e-12)
    np.testing.assert_allclose((table**2).sum(axis=1), 2 * quarter, atol=1e-12)


def test_sincos_figures_of_the_page():
    table = sincos_2d(14, 14, 768)
    here = 5 * 14 + 9
    similarities = [cosine(table, here, other) for other in range(196)]
    assert round(min(similarities), 4) == 0.7107
    assert divmod(int(np.argmin(similarities)), 14) == (13, 0)
    omega = [10000 ** (-i / 192) for i in range(192)]
    assert sum(13 * w < 0.5 for w in omega) == 124


def test_sincos_of_other_code():
    # MAE builds the grid with the width first and encodes what it calls h first: the same table as ours.
    w, h = np.meshgrid(np.arange(5), np.arange(3))
    omega = 1 / 10000 ** (np.arange(4) / 4)
    halves = [f(np.outer(place.ravel(), omega)) for place in (w, h) for f in (np.sin, np.cos)]
    np.testing.assert_allclose(sincos_2d(3, 5, 16), np.concatenate(halves, axis=1), atol=1e-14)


def test_sincos_width():
    assert sincos_2d(2, 3, 4).shape == (6, 4)
    assert sincos_2d(np.int64(2), 3, 8, base=100).dtype == np.float64
    for d in (1, 2, 6, 10, 766):
        with pytest.raises(ValueError, match=f"d must be a multiple of 4.*{d}"):
            sincos_2d(2, 3, d)


# ----------------------------------------------------------------------------------- relative_bias_index


def test_index_by_hand():
    # Offsets of a 2 x 3 grid, numbered from (-1, -2) to (1, 2): 0 … 4 above, 5 … 9 in one row, 10 … 14 below.
    assert relative_bias_index(2, 3).tolist() == [
        [7, 6, 5, 2, 1, 0], [8, 7, 6, 3, 2, 1], [9, 8, 7, 4, 3, 2],
        [12, 11, 10, 7, 6, 5], [13, 12, 11, 8, 7, 6], [14, 13, 12, 9, 8, 7],
    ]  # fmt: skip


@few
@given(sides, sides)
def test_index_is_the_place_in_a_list_of_offsets(H_p, W_p):
    offsets = [(rows, cols) for rows in range(1 - H_p, H_p) for cols in range(1 - W_p, W_p)]
    expected = [[offsets.index((r - s, c - t)) for s, t in raster(H_p, W_p)] for r, c in raster(H_p, W_p)]
    index = relative_bias_index(H_p, W_p)
    assert index.tolist() == expected and index.dtype.kind == "i"


# --------------------------------------------------------------------------------------- decomposed_bias


def test_decomposed_by_hand():
    # A 1 x 2 grid: the row offset is 0, column offsets are -1, 0, 1. Patch 0 looks right at patch 1 by offset -1.
    q = np.array([[1.0, 2.0], [3.0, 4.0]])
    row_table, col_table = np.array([[10.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 5.0], [7.0, 0.0]])
    assert decomposed_bias(q, row_table, col_table, 1, 2).tolist() == [[10 + 10, 10 + 2], [30 + 21, 30 + 20]]


@few
@given(sides, sides, st.integers(1, 4), seeds)
def test_decomposed_is_the_loop(H_p, W_p, d_h, seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(2, H_p * W_p, d_h))
    by_row = {rho: rng.normal(size=d_h) for rho in range(1 - H_p, H_p)}
    by_col = {gamma: rng.normal(size=d_h) for gamma in range(1 - W_p, W_p)}
    expected = [
        [
            [sum(a * b for a, b in zip(query, by_row[r - s] + by_col[c - t], strict=True)) for s, t in raster(H_p, W_p)]
            for query, (r, c) in zip(head, raster(H_p, W_p), strict=True)
        ]
        for head in q
    ]
    tables = np.array(list(by_row.values())), np.array(list(by_col.values()))
    np.testing.assert_allclose(decomposed_bias(q, *tables, H_p, W_p), expected, atol=1e-12)


def test_a_bias_of_one_channel_is_a_table_of_sums():
    """With queries of 1 both forms are one: the number of an offset is that of its row plus that of its column."""
    rng = np.random.default_rng(0)
    rows, cols = rng.normal(size=(5, 1)), rng.normal(size=(7, 1))
    table = (rows + cols.T).ravel()
    assert np.allclose(table[relative_bias_index(3, 4)], decomposed_bias(np.ones((12, 1)), rows, cols, 3, 4))


# ----------------------------------------------------------------------------------------------- refusals

TABLE = np.ones((3, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: factorized_table(TABLE, np.ones((3, 2))), r"one width.*\(4, 2\)"),
        (lambda: factorized_table(TABLE, np.ones(4)), r"col_table.*\(4,\)"),
        (lambda: factorized_table(np.ones((0, 4)), TABLE), r"row_table.*\(0, 4\)"),
        (lambda: sincos_2d(0, 3, 8), "H_p.*0"),
        (lambda: sincos_2d(3, -1, 8), "W_p.*-1"),
        (lambda: sincos_2d(3, 2.0, 8), "W_p.*2.0"),
        (lambda: sincos_2d(3, 2, 0), "d must be a positive integer, not 0"),
        (lambda: sincos_2d(3, 2, 8, base=0), "base.*0"),
        (lambda: sincos_2d(3, 2, 8, base=-100.0), "base.*-100"),
        (lambda: sincos_2d(3, 2, 8, base=math.nan), "base.*nan"),
        (lambda: relative_bias_index(0, 3), "H_p.*0"),
        (lambda: relative_bias_index(3, 2.0), "W_p.*2.0"),
        (lambda: decomposed_bias(np.ones((5, 4)), TABLE, np.ones((5, 4)), 2, 3), r"2 \* 3 queries, not 5"),
        (lambda: decomposed_bias(np.ones((6, 4)), np.ones((5, 4)), np.ones((5, 4)), 2, 3), r"row_table.*\(3, 4\)"),
        (lambda: decomposed_bias(np.ones((6, 4)), TABLE, np.ones((5, 3)), 2, 3), r"col_table.*\(5, 4\).*\(5, 3\)"),
    ],
)
def test_refusals_name_the_argument_and_its_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
