"""Tokens: against counting by hand, slow loops, PyTorch, and the figures of the chapter."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from solutions.tokens import attention_score_bytes, embed, patch_token_count, token_ids

few = settings(max_examples=40, deadline=None, derandomize=True)


def test_ids_follow_the_text():
    assert token_ids("the cat chased the dog", {"dog": 4, "the": 1, "cat": 9, "chased": 2}) == [1, 9, 2, 1, 4]


def test_ids_are_plain_integers_in_a_list():
    ids = token_ids("b a", {"a": 0, "b": 1})
    assert type(ids) is list
    assert [type(i) for i in ids] == [int, int]


@pytest.mark.parametrize("text", ["", "   ", "\n\t "])
def test_nothing_but_white_space_has_no_tokens(text):
    assert token_ids(text, {"a": 0}) == []


@pytest.mark.parametrize(("text", "missing"), [("a wombat", "wombat"), ("A a", "A"), ("a a.", "a."), ("a\u00a0é", "é")])
def test_a_missing_word_is_named(text, missing):
    with pytest.raises(ValueError, match="vocabulary") as error:
        token_ids(text, {"a": 0})
    assert repr(missing) in str(error.value)


@few
@given(st.lists(st.sampled_from(["a", "b", "A", "a."]), max_size=12), st.permutations(range(4)))
def test_ids_lead_back_to_the_words(words, numbers):
    vocabulary = dict(zip(["a", "b", "A", "a."], numbers, strict=True))
    words_of = {number: word for word, number in vocabulary.items()}
    assert [words_of[i] for i in token_ids("\n".join(words), vocabulary)] == words


def test_rows_are_looked_up():
    table = np.array([[0, 1], [10, 11], [20, 21]])
    assert embed([2, 0, 2], table).tolist() == [[20, 21], [0, 1], [20, 21]]


@few
@given(st.integers(1, 8), st.integers(1, 8), st.lists(st.integers(0, 100), max_size=9))
def test_lookup_is_a_product_with_one_hot_rows(V, d, numbers):
    table = np.arange(float(V * d)).reshape(V, d) ** 2
    ids = [number % V for number in numbers]
    product = np.zeros((len(ids), d))
    for t, i in enumerate(ids):
        for word in range(V):
            product[t] += (1.0 if word == i else 0.0) * table[word]
    assert np.array_equal(embed(ids, table), product)


def test_lookup_is_that_of_an_embedding_layer():
    rng = np.random.default_rng(0)
    table, ids = rng.normal(size=(11, 6)).astype(np.float32), rng.integers(11, size=8)
    theirs = torch.nn.functional.embedding(torch.tensor(ids), torch.tensor(table))
    ours = embed(ids, table)
    assert ours.dtype == np.float32
    assert np.array_equal(ours, theirs.numpy())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.float16])
def test_lookup_keeps_the_width_and_the_table(dtype):
    table, ids = np.arange(12).reshape(4, 3).astype(dtype), np.array([3, 3, 0])
    before, ids_before = table.copy(), ids.copy()
    out = embed(ids, table)
    out[:] = -1
    assert out.dtype == dtype
    assert np.array_equal(table, before) and np.array_equal(ids, ids_before)


def test_no_ids_are_no_tokens():
    assert embed([], np.ones((3, 5))).shape == (0, 5)


@pytest.mark.parametrize("bad", [-1, 3, 300])
def test_ids_without_a_row_raise(bad):
    with pytest.raises(ValueError, match=rf"ids must be from 0 to 2, not {bad}"):
        embed([0, bad, 1], np.ones((3, 2)))


@pytest.mark.parametrize("ids", [[0.0, 1.0], [[0, 1]], 1, [True, False], ["a"]])
def test_what_is_no_list_of_integers_raises(ids):
    with pytest.raises(ValueError, match="ids must be a list of integers"):
        embed(ids, np.ones((3, 2)))


def test_a_table_has_two_axes():
    with pytest.raises(ValueError, match=r"table must have shape \(V, d\), not \(3,\)"):
        embed([0], np.ones(3))


@pytest.mark.parametrize(
    ("side", "P", "crop", "pad"),
    # cropped: the table of the chapter Patchify; padded: 28 * 28 + 1 for 384 / 14
    [(224, 32, 50, 50), (224, 16, 197, 197), (224, 14, 257, 257), (384, 14, 730, 785), (384, 4, 9217, 9217)],
)
def test_counts_of_real_models(side, P, crop, pad):
    assert patch_token_count(side, side, P) == crop
    assert patch_token_count(side, side, P, mode="pad") == pad


@few
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 20), st.integers(0, 5))
def test_counts_agree_with_cutting(H, W, P, n_prefix):
    """A window belongs to a cropped image if it ends inside, to a padded one if it starts inside."""
    starts = [(r, c) for r in range(0, H, P) for c in range(0, W, P)]
    whole = [(r, c) for r, c in starts if r + P <= H and c + P <= W]
    assert patch_token_count(H, W, P, n_prefix, "pad") == len(starts) + n_prefix
    if whole:
        assert patch_token_count(H, W, P, n_prefix, "crop") == len(whole) + n_prefix
    else:
        with pytest.raises(ValueError, match=rf"H = {H}, W = {W}"):
            patch_token_count(H, W, P, n_prefix, "crop")


def test_count_agrees_with_a_convolution():
    out = torch.nn.functional.conv2d(torch.zeros(1, 3, 50, 75), torch.zeros(2, 3, 14, 14), stride=14)
    assert patch_token_count(50, 75, 14, n_prefix=0) == out[0, 0].numel()


def test_count_is_a_plain_integer_also_for_numpy_sizes():
    count = patch_token_count(np.uint8(50), np.uint8(70), np.uint8(16), np.int64(2), mode="pad")
    assert type(count) is int
    assert count == 4 * 5 + 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0, 8, 4), "H must .* not 0"),
        ((8, -8, 4), "W must .* not -8"),
        ((8, 8, 0), "P must .* not 0"),
        ((8, 8, 4, -1), "n_prefix must .* not -1"),
        ((8.0, 8, 4), "H must .* not 8.0"),
        ((8, 8, 4, 1, "stretch"), "mode must be .* not 'stretch'"),
        ((8, 3, 4), "W = 3 leave no whole patch of side P = 4"),
    ],
)
def test_counts_that_make_no_sense_raise(arguments, says):
    with pytest.raises(ValueError, match=says):
        patch_token_count(*arguments)


def test_scores_of_pixels_and_of_patches():
    assert attention_score_bytes(50_176) == 5_035_261_952  # 5.035 GB
    assert attention_score_bytes(196) == 2 * 38_416
    assert attention_score_bytes(50_176) // attention_score_bytes(196) == 65_536


@few
@given(st.integers(1, 40), st.integers(1, 6), st.sampled_from([np.float16, np.float32, np.float64]))
def test_scores_are_as_large_as_the_array_that_holds_them(T, n_heads, dtype):
    scores = np.empty((n_heads, T, T), dtype)
    assert attention_score_bytes(T, n_heads, scores.itemsize) == scores.nbytes


def test_score_bytes_do_not_overflow():
    out = attention_score_bytes(np.int32(400_000), np.int32(16), np.int8(4))
    assert type(out) is int
    assert out == 10_240_000_000_000


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0,), "T"), ((-4,), "T"), ((4.0,), "T"), ((4, 0), "n_heads"), ((4, 1, 0), "bytes_per_score")],
)
def test_score_bytes_want_positive_integers(arguments, name):
    with pytest.raises(ValueError, match=f"{name} must be a positive integer, not {arguments[-1]}"):
        attention_score_bytes(*arguments)
