"""The resolution chapter's functions against hand computations, slow loops, PyTorch and their own laws."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from solutions.resolution import bilinear_resize_matrix, pi_resize, resize_pos_embed, vit_input_sequence

few = settings(max_examples=25, deadline=None, derandomize=True)
sides = st.integers(1, 9)


def resized_by_loops(img, h, w):
    """Bilinear, half-pixel, clamped, one value at a time. (H, W, d) -> (h, w, d)"""
    H, W, d = img.shape
    out = np.zeros((h, w, d))
    for r in range(h):
        for c in range(w):
            y = min(max((r + 0.5) * H / h - 0.5, 0), H - 1)
            x = min(max((c + 0.5) * W / w - 0.5, 0), W - 1)
            for i in range(H):
                for j in range(W):
                    out[r, c] += max(0, 1 - abs(y - i)) * max(0, 1 - abs(x - j)) * img[i, j]
    return out


def torch_resize(img, h, w, **options):
    """PyTorch's own. (H, W, d) -> (h, w, d)"""
    options = {"mode": "bilinear", "align_corners": False} | options
    return F.interpolate(torch.tensor(img).permute(2, 0, 1)[None], (h, w), **options)[0].permute(1, 2, 0).numpy()


# -------------------------------------------------------------------------------- bilinear_resize_matrix


def test_matrix_by_hand():
    assert bilinear_resize_matrix(1, 2).tolist() == [[1.0]] * 4
    axis = np.array([[1, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]])
    assert bilinear_resize_matrix(2, 4).tolist() == np.kron(axis, axis).tolist()
    # Four a side to two: each new pixel is the mean of a block of four.
    blocks = bilinear_resize_matrix(4, 2).reshape(2, 2, 4, 4)
    for r in range(2):
        for c in range(2):
            block = np.zeros((4, 4))
            block[2 * r : 2 * r + 2, 2 * c : 2 * c + 2] = 0.25
            assert blocks[r, c].tolist() == block.tolist()
    # Three a side to one: the middle pixel alone.
    assert bilinear_resize_matrix(3, 1).tolist() == [[0, 0, 0, 0, 1, 0, 0, 0, 0]]


@few
@given(sides, sides, st.integers(0, 99))
def test_matrix_is_the_loop_and_pytorch(p, p_new, seed):
    x = np.random.default_rng(seed).normal(size=(p, p, 1))
    ours = (bilinear_resize_matrix(p, p_new) @ x.ravel()).reshape(p_new, p_new, 1)
    np.testing.assert_allclose(ours, resized_by_loops(x, p_new, p_new), atol=1e-12)
    np.testing.assert_allclose(ours, torch_resize(x, p_new, p_new), atol=1e-12)


@few
@given(sides, sides)
def test_matrix_is_a_mean(p, p_new):
    B = bilinear_resize_matrix(p, p_new)
    assert B.shape == (p_new**2, p**2) and B.dtype == np.float64
    np.testing.assert_allclose(B.sum(axis=1), 1, atol=1e-12)
    assert B.min() >= 0 and (np.count_nonzero(B, axis=1) <= 4).all()
    np.testing.assert_allclose(B[::-1, ::-1], B, atol=1e-12)  # no side is preferred
    assert np.linalg.matrix_rank(B) == min(p, p_new) ** 2  # what PI-resize rests on


def test_matrix_of_the_same_side_is_the_identity():
    for p in (1, 2, 7, 14, 16):
        assert np.array_equal(bilinear_resize_matrix(p, p), np.eye(p * p))


def test_corner_aligned_would_differ():
    x = np.arange(4.0).reshape(2, 2, 1)
    ours = (bilinear_resize_matrix(2, 3) @ x.ravel()).reshape(3, 3, 1)
    assert np.abs(ours - torch_resize(x, 3, 3, align_corners=True)).max() < 1e-12  # 2 to 3: the two rules agree
    ours = (bilinear_resize_matrix(2, 4) @ x.ravel()).reshape(4, 4, 1)
    assert np.abs(ours - torch_resize(x, 4, 4, align_corners=True)).max() > 0.1


@pytest.mark.parametrize("sides", [(0, 3), (3, 0), (-2, 3), (2, 3.5), (2.0, 3), ("2", 3)])
def test_matrix_needs_two_sides(sides):
    with pytest.raises(ValueError, match=r"p(_new)? must be a positive integer") as caught:
        bilinear_resize_matrix(*sides)
    bad = next(side for side in sides if not isinstance(side, int) or side < 1)
    assert repr(bad) in str(caught.value)


# -------------------------------------------------------------------------------------- resize_pos_embed


def test_table_by_hand():
    table = np.array([[5.0], [0.0], [8.0]])
    assert resize_pos_embed(table, 1, (1, 2), (1, 4)).ravel().tolist() == [5, 0, 2, 6, 8]
    assert resize_pos_embed(table, 1, (2, 1), (4, 1)).ravel().tolist() == [5, 0, 2, 6, 8]
    # Six cells to two: s = 1 and 4.
    assert resize_pos_embed(np.arange(6.0)[:, None], 0, (1, 6), (1, 2)).ravel().tolist() == [1, 4]


@few
@given(st.tuples(sides, sides), st.tuples(sides, sides), st.integers(0, 5), st.integers(1, 4), st.integers(0, 99))
def test_table_is_the_loop_and_pytorch(old, new, n_prefix, d, seed):
    table = np.random.default_rng(seed).normal(size=(n_prefix + old[0] * old[1], d))
    ours = resize_pos_embed(table, n_prefix, old, new)
    grid = table[n_prefix:].reshape(*old, d)
    assert np.array_equal(ours[:n_prefix], table[:n_prefix])
    np.testing.assert_allclose(ours[n_prefix:], resized_by_loops(grid, *new).reshape(-1, d), atol=1e-12)
    np.testing.assert_allclose(ours[n_prefix:], torch_resize(grid, *new).reshape(-1, d), atol=1e-12)


def test_table_to_the_same_grid_is_the_same_table():
    table = np.random.default_rng(0).normal(size=(1 + 14 * 11, 6))
    assert np.array_equal(resize_pos_embed(table, 1, (14, 11), (14, 11)), table)


def test_equal_counts_in_another_shape():
    table = np.random.default_rng(1).normal(size=(17, 3))
    resized = resize_pos_embed(table, 1, (2, 8), (4, 4))
    assert resized.shape == table.shape and np.abs(resized - table).max() > 0.5


@few
@given(st.tuples(sides, sides), st.tuples(sides, sides), st.integers(0, 99))
def test_turning_the_image_turns_the_table(old, new, seed):
    grid = np.random.default_rng(seed).normal(size=(*old, 2))
    upright = resize_pos_embed(grid.reshape(-1, 2), 0, old, new).reshape(*new, 2)
    turned = resize_pos_embed(grid.transpose(1, 0, 2).reshape(-1, 2), 0, old[::-1], new[::-1])
    np.testing.assert_allclose(turned.reshape(*new[::-1], 2), upright.transpose(1, 0, 2), atol=1e-12)


def test_prefix_rows_are_copied_to_the_bit():
    table = np.random.default_rng(2).normal(size=(5 + 6, 3))
    table[0] = [-0.0, 1e-310, 0.1]
    for dtype in (np.float64, np.float32, np.float16):
        rows = table.astype(dtype)
        assert resize_pos_embed(rows, 5, (2, 3), (7, 4))[:5].tobytes() == rows[:5].tobytes()


def test_table_types():
    table = np.arange(14.0).reshape(7, 2)
    assert resize_pos_embed(table.astype(np.float32), 1, (2, 3), (4, 4)).dtype == np.float32
    assert resize_pos_embed(table.astype(int), 1, (2, 3), (4, 4)).dtype == np.float64
    assert np.array_equal(
        resize_pos_embed(table, 1, [2, 3], np.array([4, 4])), resize_pos_embed(table, 1, (2, 3), (4, 4))
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.zeros((6, 2)), 1, (2, 3), (4, 6)), ["P_pos", "7 rows", "(6, 2)"]),
        ((np.zeros((8, 2)), 1, (2, 3), (4, 6)), ["P_pos", "7 rows", "(8, 2)"]),
        ((np.zeros(7), 1, (2, 3), (4, 6)), ["P_pos", "(7,)"]),
        ((np.zeros((7, 2)), -1, (2, 4), (4, 6)), ["n_prefix", "-1"]),
        ((np.zeros((7, 2)), 1, (2, 3), (0, 6)), ["new_grid", "(0, 6)"]),
        ((np.zeros((7, 2)), 1, 6, (4, 6)), ["old_grid", "6"]),
        ((np.zeros((7, 2)), 1, (2, 3), (4.5, 6)), ["new_grid", "4.5"]),
    ],
)
def test_table_that_does_not_fit(arguments, words):
    with pytest.raises(ValueError) as caught:
        resize_pos_embed(*arguments)
    for word in words:
        assert word in str(caught.value)


# --------------------------------------------------------------------------------------------- pi_resize


def test_filter_by_hand():
    np.testing.assert_allclose(pi_resize(np.array([6.0]), np.ones((4, 1))), [1.5] * 4)
    np.testing.assert_allclose(pi_resize(np.array([1.0, 5.0]), np.array([[0.5, 0.5]])), [6.0])


@few
@given(st.integers(1, 6), st.integers(0, 5), st.integers(0, 99))
def test_growing_keeps_every_token(p, more, seed):
    rng = np.random.default_rng(seed)
    B = bilinear_resize_matrix(p, p + more)
    w, x = rng.normal(size=(p * p, 3)), rng.normal(size=(5, p * p))
    np.testing.assert_allclose((x @ B.T) @ pi_resize(w, B), x @ w, atol=1e-9)


@few
@given(st.integers(2, 7), st.data(), st.integers(0, 99))
def test_shrinking_gives_the_least_squares_filter(p, data, seed):
    rng = np.random.default_rng(seed)
    B = bilinear_resize_matrix(p, data.draw(st.integers(1, p - 1)))
    w = rng.normal(size=p * p)
    best = pi_resize(w, B)
    np.testing.assert_allclose(best, np.linalg.lstsq(B.T, w, rcond=None)[0], atol=1e-9)
    np.testing.assert_allclose(B @ (B.T @ best - w), 0, atol=1e-9)  # what is missed is out of reach of every filter
    other = best + 0.1 * rng.normal(size=best.shape)
    assert np.linalg.norm(B.T @ other - w) > np.linalg.norm(B.T @ best - w)


def test_growing_gives_the_shortest_exact_filter():
    B = bilinear_resize_matrix(3, 5)
    w = np.random.default_rng(3).normal(size=9)
    best = pi_resize(w, B)
    unseen = np.linalg.svd(B.T)[2][9:]  # directions that no resized patch has
    for direction in unseen:
        assert abs(best @ direction) < 1e-12


def test_halving_is_four_times_the_resized_filter():
    for p in (2, 4, 8):
        B = bilinear_resize_matrix(2 * p, p)
        assert np.array_equal(B @ B.T, np.eye(p * p) / 4)
        w = np.random.default_rng(p).normal(size=(4 * p * p, 2))
        np.testing.assert_allclose(pi_resize(w, B), 4 * B @ w, atol=1e-12)


def test_columns_are_filters():
    B = bilinear_resize_matrix(4, 3)
    w = np.random.default_rng(4).normal(size=(16, 16))
    together = pi_resize(w, B)
    assert together.shape == (9, 16)
    for k in range(16):
        np.testing.assert_allclose(together[:, k], pi_resize(w[:, k], B), atol=1e-12)


def test_there_and_back_loses_most_of_a_filter():
    rng = np.random.default_rng(5)
    w = rng.normal(size=1024)
    there = pi_resize(w, bilinear_resize_matrix(32, 8))
    back = pi_resize(there, bilinear_resize_matrix(8, 32))
    assert np.linalg.norm(back - w) > 0.5 * np.linalg.norm(w)


def test_filter_types_and_shapes():
    B = bilinear_resize_matrix(2, 3)
    assert pi_resize(np.ones(4, np.float32), B).dtype == np.float32
    assert pi_resize(np.ones((4, 1), int), B).dtype == np.float64
    for w, bad_B, words in (
        (np.ones(5), B, ["w", "4 rows", "(5,)"]),
        (np.ones((4, 2, 2)), B, ["w", "(4, 2, 2)"]),
        (np.ones(4), np.ones(4), ["B", "(4,)"]),
    ):
        with pytest.raises(ValueError) as caught:
            pi_resize(w, bad_B)
        for word in words:
            assert word in str(caught.value)


# ------------------------------------------------------------------------------------ vit_input_sequence


def test_sequence_by_hand():
    sequence = vit_input_sequence(
        np.array([[10.0, 11.0], [20.0, 21.0]]),
        np.array([5.0, 6.0]),
        np.array([[-1.0, -2.0]]),
        np.array([[100.0, 0.0], [200.0, 0.0], [300.0, 0.0]]),
    )
    assert sequence.tolist() == [[105, 6], [-1, -2], [210, 11], [320, 21]]


@few
@given(st.integers(1, 6), st.integers(0, 5), st.integers(1, 6), st.integers(0, 99))
def test_sequence_is_built_token_by_token(N_p, R, d, seed):
    rng = np.random.default_rng(seed)
    patches, cls, registers, pos = (rng.normal(size=size) for size in ((N_p, d), (d,), (R, d), (1 + N_p, d)))
    sequence = vit_input_sequence(patches, cls, registers, pos)
    tokens = [cls + pos[0]]
    tokens += list(registers)
    tokens += [patches[i] + pos[1 + i] for i in range(N_p)]
    assert np.array_equal(sequence, np.array(tokens))


def test_sequence_types_and_shapes():
    patches, cls, registers, pos = np.ones((3, 2)), np.ones(2), np.zeros((0, 2)), np.ones((4, 2))
    single = [part.astype(np.float32) for part in (patches, cls, registers, pos)]
    assert vit_input_sequence(*single).dtype == np.float32
    assert vit_input_sequence(*(part.astype(int) for part in (patches, cls, registers, pos))).dtype == np.float64
    for arguments, words in (
        ((patches, np.ones(3), registers, pos), ["cls", "(3,)"]),
        ((patches, cls[None], registers, pos), ["cls", "(1, 2)"]),
        ((patches, cls, np.ones((4, 3)), pos), ["registers", "(4, 3)"]),
        ((patches, cls, registers, np.ones((3, 2))), ["pos_embed", "(4, 2)", "(3, 2)"]),
        ((np.ones(3), cls, registers, pos), ["patch_tokens", "(3,)"]),
    ):
        with pytest.raises(ValueError) as caught:
            vit_input_sequence(*arguments)
        for word in words:
            assert word in str(caught.value)


def test_nothing_is_changed():
    rng = np.random.default_rng(6)
    B, table = bilinear_resize_matrix(3, 4), rng.normal(size=(7, 2))
    w, parts = rng.normal(size=9), [rng.normal(size=size) for size in ((3, 2), (2,), (4, 2), (4, 2))]
    for function, arguments in (
        (pi_resize, [w, B]),
        (resize_pos_embed, [table, 1, (2, 3), (4, 5)]),
        (resize_pos_embed, [table, 1, (2, 3), (2, 3)]),
        (vit_input_sequence, parts),
    ):
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        before = [array.copy() for array in arrays]
        for array in arrays:
            array.setflags(write=False)  # a write would raise
        function(*arguments)
        assert all(np.array_equal(one, other) for one, other in zip(arrays, before, strict=True))
