"""Pooling: against PyTorch, hand computations, properties, and the figures of the chapter."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from solutions.pooling import map_head, mean_then_norm, norm_then_mean

few = settings(max_examples=25, deadline=None, derandomize=True)
both_orders = pytest.mark.parametrize("pool", [mean_then_norm, norm_then_mean])


def rows_and_norm(seed, T, d):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(T, d)), rng.normal(size=d), rng.normal(size=d)


def torch_orders(X, n_prefix, gain, shift, eps):
    X, gain, shift = (torch.tensor(a) for a in (X, gain, shift))
    first = F.layer_norm(X[n_prefix:].mean(0), gain.shape, gain, shift, eps)
    after = F.layer_norm(X[n_prefix:], gain.shape, gain, shift, eps).mean(0)
    return first.numpy(), after.numpy()


def draw_params(rng, d, d_ff, n_heads):
    shapes = {"q": d, "b_q": d, "b_k": d, "b_v": d, "b_o": d, "ln_gain": d, "ln_shift": d, "b_1": d_ff, "b_2": d}
    shapes |= dict.fromkeys(("W_q", "W_k", "W_v", "W_o"), (d, d)) | {"W_1": (d, d_ff), "W_2": (d_ff, d)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()} | {"n_heads": n_heads}


def torch_map_head(X, n_prefix, params):
    """The head out of PyTorch's own multi-head attention, whose weights are transposed."""
    p = {name: torch.tensor(value) for name, value in params.items() if name != "n_heads"}
    d, patches = X.shape[1], torch.tensor(X[n_prefix:])[:, None]
    weight = torch.cat([p["W_q"].T, p["W_k"].T, p["W_v"].T])
    bias = torch.cat([p["b_q"], p["b_k"], p["b_v"]])
    z, _ = F.multi_head_attention_forward(
        p["q"][None, None], patches, patches, d, params["n_heads"], weight, bias, None, None, False, 0.0,
        p["W_o"].T.contiguous(), p["b_o"], need_weights=False,
    )  # fmt: skip
    z = z[0, 0]
    y = F.layer_norm(z, (d,), p["ln_gain"], p["ln_shift"], 1e-6)
    return (z + F.gelu(y @ p["W_1"] + p["b_1"]) @ p["W_2"] + p["b_2"]).numpy()


@few
@given(st.integers(0, 99), st.integers(1, 9), st.integers(2, 9), st.integers(0, 5), st.sampled_from([1e-6, 1e-5, 0.5]))
def test_both_orders_agree_with_torch(seed, N_p, d, n_prefix, eps):
    X, gain, shift = rows_and_norm(seed, n_prefix + N_p, d)
    first, after = torch_orders(X, n_prefix, gain, shift, eps)
    assert np.allclose(mean_then_norm(X, n_prefix, gain, shift, eps), first, rtol=1e-10, atol=1e-10)
    assert np.allclose(norm_then_mean(X, n_prefix, gain, shift, eps), after, rtol=1e-10, atol=1e-10)


def test_both_orders_by_hand():
    """The variances are 7², 24² and, of the mean, 12.5²; the row means 1 and 3."""
    X = np.array([[9, -5, 0, 40], [8, -6, -6, 8], [27, 27, -21, -21]])
    assert np.allclose(mean_then_norm(X, 1, np.ones(4), np.zeros(4), eps=0), [1.24, 0.68, -1.24, -0.68], atol=1e-15)
    assert np.allclose(norm_then_mean(X, 1, np.ones(4), np.zeros(4), eps=0), [1, 0, -1, 0], atol=1e-15)


def test_the_two_orders_part_as_the_chapter_says():
    rng = np.random.default_rng(5)
    X = rng.normal(size=64) + 0.45 * rng.normal(size=(196, 64))
    X[:4] += 30 * rng.normal(size=(4, 64))
    first, after = (pool(X, 0, np.ones(64), np.zeros(64)) for pool in (mean_then_norm, norm_then_mean))
    lengths = np.linalg.norm(first), np.linalg.norm(after)
    assert np.allclose(lengths, (8.000, 7.073), atol=5e-4)
    assert abs(first @ after / np.prod(lengths) - 0.9496) < 5e-5


@both_orders
def test_one_patch_is_its_layer_norm(pool):
    X, gain, shift = rows_and_norm(0, 3, 6)
    alone = F.layer_norm(*(torch.tensor(a) if a is not None else (6,) for a in (X[2], None, gain, shift)), eps=1e-6)
    assert np.allclose(pool(X, 2, gain, shift), alone.numpy(), atol=1e-12)


@few
@given(st.integers(0, 99), st.integers(0, 3), st.integers(1, 8))
def test_order_of_the_patches_and_content_of_the_prefix_do_not_count(seed, n_prefix, N_p):
    rng = np.random.default_rng(seed)
    X, gain, shift = rows_and_norm(seed, n_prefix + N_p, 6)
    params = draw_params(rng, 6, 5, 3)
    Y = np.concatenate([rng.normal(size=(n_prefix, 6)), rng.permutation(X[n_prefix:])])
    for pool in (mean_then_norm, norm_then_mean):
        assert np.allclose(pool(X, n_prefix, gain, shift), pool(Y, n_prefix, gain, shift), atol=1e-10)
    ours, shuffled = map_head(X, n_prefix, params), map_head(Y, n_prefix, params)
    assert np.allclose(ours, shuffled, rtol=1e-9, atol=1e-9)


@both_orders
def test_a_shift_of_all_entries_of_a_row_does_not_count(pool):
    X, gain, shift = rows_and_norm(1, 7, 8)
    moved = X + np.arange(7.0)[:, None]
    assert np.allclose(pool(X, 1, gain, shift), pool(moved, 1, gain, shift), atol=1e-10)


def test_a_scaled_row_counts_in_one_order_only():
    X, gain, shift = rows_and_norm(2, 7, 8)
    large = X.copy()
    large[3] *= 1000
    assert np.allclose(norm_then_mean(X, 1, gain, shift, 0), norm_then_mean(large, 1, gain, shift, 0), atol=1e-10)
    assert not np.allclose(mean_then_norm(X, 1, gain, shift), mean_then_norm(large, 1, gain, shift), atol=0.1)


@both_orders
def test_rows_without_variance_leave_the_shift(pool):
    gain, shift = np.arange(1.0, 5), np.arange(4.0)
    assert np.array_equal(pool(np.full((3, 4), 7.0), 1, gain, shift), shift)
    with pytest.raises(ValueError, match=r"eps must be positive.* not 0"):
        pool(np.full((3, 4), 7.0), 1, gain, shift, eps=0)


@few
@given(st.integers(0, 99), st.integers(1, 9), st.sampled_from([(4, 1), (6, 3), (6, 6), (8, 2)]), st.integers(0, 5))
def test_map_head_agrees_with_torch(seed, N_p, sizes, n_prefix):
    d, h = sizes
    rng = np.random.default_rng(seed)
    X, params = rng.normal(size=(n_prefix + N_p, d)), draw_params(rng, d, 7, h)
    assert np.allclose(map_head(X, n_prefix, params), torch_map_head(X, n_prefix, params), rtol=1e-9, atol=1e-9)


def test_a_query_that_finds_nothing_takes_the_mean():
    """W_k = 0 makes all scores equal; then z is the mean of the projected values."""
    rng = np.random.default_rng(3)
    X, params = rng.normal(size=(9, 6)), draw_params(rng, 6, 5, 2)
    params |= {"W_k": np.zeros((6, 6)), "W_2": np.zeros((5, 6)), "b_2": np.zeros(6)}
    mean = X[1:].mean(axis=0) @ params["W_v"] + params["b_v"]
    assert np.allclose(map_head(X, 1, params), mean @ params["W_o"] + params["b_o"], atol=1e-12)


def test_a_sharp_query_picks_one_patch():
    rng = np.random.default_rng(4)
    X, params = rng.normal(size=(9, 6)), draw_params(rng, 6, 5, 1)
    keys = X @ params["W_k"] + params["b_k"]
    best = (keys @ (params["q"] @ params["W_q"] + params["b_q"])).argmax()
    sharp = params | {"W_k": 1e5 * params["W_k"], "b_k": 1e5 * params["b_k"]}
    assert np.allclose(map_head(X, 0, sharp), map_head(X[best : best + 1], 0, params), atol=1e-9)


@pytest.mark.filterwarnings("error")
def test_scores_in_the_thousands_do_not_overflow():
    rng = np.random.default_rng(5)
    X, params = rng.normal(size=(9, 6)), draw_params(rng, 6, 5, 2)
    assert np.isfinite(map_head(X, 1, params | {"W_k": 1e6 * params["W_k"]})).all()


@pytest.mark.parametrize(
    ("given_dtype", "dtype"), [("float64", "float64"), ("float32", "float32"), ("int64", "float64")]
)
def test_width_of_the_answer(given_dtype, dtype):
    rng = np.random.default_rng(6)
    X = (10 * rng.normal(size=(5, 6))).astype(given_dtype)
    params = draw_params(rng, 6, 4, 2)
    params |= {name: value.astype(dtype) for name, value in params.items() if name != "n_heads"}
    for pool in (mean_then_norm, norm_then_mean):
        assert pool(X, 1, np.ones(6, given_dtype), np.zeros(6, given_dtype)).dtype == dtype
    assert map_head(X, 1, params).dtype == dtype


def test_inputs_are_not_changed():
    rng = np.random.default_rng(7)
    X, params = rng.normal(size=(5, 6)), draw_params(rng, 6, 4, 2)
    before, params_before = X.copy(), {name: np.copy(value) for name, value in params.items()}
    mean_then_norm(X, 1, params["ln_gain"], params["ln_shift"])
    norm_then_mean(X, 1, params["ln_gain"], params["ln_shift"])
    map_head(X, 1, params)
    assert np.array_equal(X, before)
    assert params.keys() == params_before.keys()
    assert all(np.array_equal(params[name], params_before[name]) for name in params)


@both_orders
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"X": np.ones(4)}, r"X must have shape \(T, d\), not \(4,\)"),
        ({"X": np.ones((0, 4))}, r"X must have shape \(T, d\), not \(0, 4\)"),
        ({"n_prefix": 3}, "n_prefix must be from 0 to 2, not 3"),
        ({"n_prefix": -1}, "n_prefix must .* not -1"),
        ({"n_prefix": 1.0}, "n_prefix must .* not 1.0"),
        ({"gain": np.ones(3)}, r"gain must have shape \(4,\), not \(3,\)"),
        ({"shift": 0.0}, r"shift must have shape \(4,\), not \(\)"),
        ({"eps": -1e-6}, "eps must be positive.* not -1e-06"),
        ({"eps": float("nan")}, "eps must be positive.* not nan"),
    ],
)
def test_what_does_not_fit_raises(pool, change, says):
    fits = {"X": np.arange(12.0).reshape(3, 4), "n_prefix": 1, "gain": np.ones(4), "shift": np.zeros(4)}
    pool(**fits)
    with pytest.raises(ValueError, match=says):
        pool(**fits | change)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"q": np.ones(5)}, r"params\['q'\] must have shape \(6,\), not \(5,\)"),
        ({"W_1": np.ones((5, 6))}, r"params\['W_1'\] must have shape \(6, 5\), not \(5, 6\)"),
        ({"n_heads": 4}, r"params\['n_heads'\] must divide d = 6, not 4"),
        ({"n_heads": 0}, r"params\['n_heads'\] must .* not 0"),
    ],
)
def test_a_head_that_does_not_fit_raises(change, says):
    rng = np.random.default_rng(8)
    X, params = rng.normal(size=(4, 6)), draw_params(rng, 6, 5, 2)
    with pytest.raises(ValueError, match=says):
        map_head(X, 1, params | change)


def test_a_head_without_patches_or_parameters_raises():
    rng = np.random.default_rng(9)
    X, params = rng.normal(size=(4, 6)), draw_params(rng, 6, 5, 2)
    with pytest.raises(ValueError, match="n_prefix must be from 0 to 3, not 4"):
        map_head(X, 4, params)
    with pytest.raises(ValueError, match=r"X must have shape \(T, d\)"):
        map_head(X[0], 0, params)
    del params["b_1"], params["W_k"]
    with pytest.raises(ValueError, match="params lacks W_k, b_1"):
        map_head(X, 1, params)
