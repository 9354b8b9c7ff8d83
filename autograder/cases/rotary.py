"""The exercises of the chapter *Rotary positions*."""

import numpy as np

from autograder.judging.exercise import Case, Exercise, Raises
from solutions import rotary as chapter


def counting(*shape):
    """0, 1, 2, … in that shape: every entry is its own address."""
    return np.arange(float(np.prod(shape))).reshape(shape)


def grid(H_p, W_p):
    """The row and the column of every patch, in raster order."""
    rows, cols = np.divmod(np.arange(H_p * W_p), W_p)
    return rows.astype(float), cols.astype(float)


# ----------------------------------------------------------------------------------------- rope_2d_axial

rope_2d_axial = Exercise(
    chapter.rope_2d_axial,
    points=4,
    difficulty=3,
    minutes=25,
    section="Rotary positions on a grid",
    formerly_in="positions",
)


@rope_2d_axial.where
def axial_entry(index, x, rows, cols, n_prefix=0, base=100.0):
    token, channel = index[-2:]
    if token < n_prefix:
        return f"prefix token {token}"
    axis = "column" if channel < x.shape[-1] // 2 else "row"
    place = f"({rows[token - n_prefix]:g}, {cols[token - n_prefix]:g})"
    return f"patch {place}" if x.shape[-1] <= 8 else f"patch {place} turned by its {axis}"


@rope_2d_axial.visible
def one_patch():
    "A single patch in row 1, column 2"
    yield Case(
        np.array([[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]]), np.array([1.0]), np.array([2.0]),
        why="each pair starts as (1, 0) and ends as cosine and sine of its angle: 2, 0.2, 1 and 0.1",
    )  # fmt: skip


@rope_2d_axial.visible
def a_grid_with_prefix():
    "Two prefix tokens, then two rows of three patches"
    yield Case(counting(8, 8), *grid(2, 3), 2, why="the prefix tokens stay as they are")


@rope_2d_axial.visible
def heads_and_base():
    "Two heads, one prefix token, another base"
    yield Case(counting(2, 5, 12) % 7, *grid(2, 2), 1, 50.0, why="there are heads, and three pairs in each half")


@rope_2d_axial.visible
def whole_numbers():
    "Integers"
    yield Case(np.arange(16).reshape(2, 8), np.array([1, 1]), np.array([0, 2]), why="the answer is made of floats")


@rope_2d_axial.visible
def what_does_not_fit():
    "Head widths and lists of positions that do not fit"
    yield Raises(counting(2, 6), np.array([0.0, 1.0]), np.array([0.0, 1.0]), why="4 does not divide a head width of 6")
    yield Raises(counting(4, 8), *grid(1, 3), why="there are 4 patches and 3 positions")
    yield Raises(counting(4, 8), *grid(2, 2), 1, why="there are 3 patches after the prefix and 4 positions")
    yield Raises(counting(4, 8), np.array([1.0]), np.array([2.0]), why="there are 4 patches and a single position")
    yield Case(counting(3, 8), *grid(1, 2), 1)


@rope_2d_axial.hidden(weight=2)
def any_grid(rng):
    "Any grid, any width, any number of axes and prefix tokens"
    yield Case(rng.normal(size=(15, 16)), *grid(3, 5))
    yield Case(rng.normal(size=(2, 13, 8)), *grid(4, 3), 1)
    yield Case(rng.normal(size=(2, 3, 12, 20)), *grid(2, 4), 4, float(rng.uniform(20, 20000)))
    yield Case(rng.normal(size=(11, 4)), *grid(5, 2), 1)


@rope_2d_axial.hidden
def any_places(rng):
    "Positions that are no whole numbers, in any order"
    yield Case(rng.normal(size=(3, 9, 12)), rng.uniform(-9, 9, size=8), rng.uniform(-9, 9, size=8), 1)
    yield Case(rng.normal(size=(6, 8)), rng.uniform(0, 40, size=6), rng.uniform(0, 40, size=6))
    yield Case(rng.normal(size=(6, 8)), rng.uniform(0, 9, size=6), rng.uniform(0, 9, size=6), 0, 0.5)


@rope_2d_axial.hidden
def single_precision(rng):
    "float32"
    yield Case(rng.normal(size=(2, 7, 16)).astype(np.float32), *grid(2, 3), 1)


@rope_2d_axial.hidden
def any_integers(rng):
    "Integers, with and without prefix tokens"
    yield Case(rng.integers(-9, 9, size=(7, 8)), *(place.astype(int) for place in grid(2, 3)), 1)
    yield Case(rng.integers(-9, 9, size=(2, 6, 12)), *(place.astype(int) for place in grid(3, 2)))


@rope_2d_axial.hidden
def any_misfits(rng):
    "Widths and lengths that do not fit"
    for d_h in (6, 10, 7):
        yield Raises(rng.normal(size=(6, d_h)), *grid(2, 3))
    rows, cols = grid(2, 3)
    yield Raises(rng.normal(size=(7, 8)), rows, cols)
    yield Raises(rng.normal(size=(6, 8)), rows, cols, 1)
    yield Raises(rng.normal(size=(6, 8)), rows[:1], cols, why="one entry would be spread over all patches")
    yield Raises(rng.normal(size=(6, 8)), rows, cols[:1])
    yield Raises(rng.normal(size=(7, 8)), rows[1:2], cols[1:2], 1)
    yield Case(rng.normal(size=(7, 8)), rows, cols, 1)


def _check_axial(x, rows, cols, n_prefix):
    """What the reference refuses, for misconceptions that go wrong elsewhere."""
    if x.shape[-1] % 4 or not len(rows) == len(cols) == x.shape[-2] - n_prefix:
        raise ValueError("d_h must be a multiple of 4, and rows and cols have T - n_prefix entries")


def _axial_angle(d_h, rows, cols, base):
    theta = base ** (-2 * np.arange(d_h // 4) / (d_h // 2))
    return np.concatenate([np.outer(cols, theta), np.outer(rows, theta)], axis=1)


def _turn(x, angle, n_prefix, sign=1):
    """Turn neighbouring pairs by angles of one's own."""
    out = x.astype(float)
    a, b = x[..., n_prefix:, 0::2], x[..., n_prefix:, 1::2]
    out[..., n_prefix:, 0::2] = a * np.cos(angle) - sign * b * np.sin(angle)
    out[..., n_prefix:, 1::2] = sign * a * np.sin(angle) + b * np.cos(angle)
    return out


def _turn_halves(x, angle, n_prefix):
    """Turn the pairs (j, j + half of the width)."""
    out, half = x.astype(float), x.shape[-1] // 2
    a, b = x[..., n_prefix:, :half], x[..., n_prefix:, half:]
    out[..., n_prefix:, :half] = a * np.cos(angle) - b * np.sin(angle)
    out[..., n_prefix:, half:] = a * np.sin(angle) + b * np.cos(angle)
    return out


def _turn_one_by_one(x, angle, n_prefix):
    """Overwrite the first number of a pair before the second is computed."""
    out = x.astype(float)
    a, b = out[..., n_prefix:, 0::2], out[..., n_prefix:, 1::2]  # views
    a[...] = a * np.cos(angle) - b * np.sin(angle)
    b[...] = a * np.sin(angle) + b * np.cos(angle)
    return out


@rope_2d_axial.misconception("row first")
def axial_row_first(x, rows, cols, n_prefix=0, base=100.0):
    """You turned the first half of the channels by the row. Here the first half belongs to the column, the second to
    the row."""
    return chapter.rope_2d_axial(x, cols, rows, n_prefix, base)


@rope_2d_axial.misconception("half-split pairs")
def axial_half_split(x, rows, cols, n_prefix=0, base=100.0):
    """You paired channel j with channel j + d_h/2 (half-split, `rotate_half`). Here the two numbers of a pair are
    neighbours, 2i and 2i + 1. Norms and offsets come out right either way; a checkpoint's queries and keys do not."""
    _check_axial(x, rows, cols, n_prefix)
    return _turn_halves(x, _axial_angle(x.shape[-1], rows, cols, base), n_prefix)


@rope_2d_axial.misconception("half-split pairs in each half")
def axial_half_split_each(x, rows, cols, n_prefix=0, base=100.0):
    """In each half of the channels you paired channel j with channel j + d_h/4 (half-split, `rotate_half`). Here the
    two numbers of a pair are neighbours, 2i and 2i + 1."""
    _check_axial(x, rows, cols, n_prefix)
    half, theta = x.shape[-1] // 2, base ** (-2 * np.arange(x.shape[-1] // 4) / (x.shape[-1] // 2))
    column = _turn_halves(x[..., :half], np.outer(cols, theta), n_prefix)
    return np.concatenate([column, _turn_halves(x[..., half:], np.outer(rows, theta), n_prefix)], axis=-1)


@rope_2d_axial.misconception("tables interleaved, pairs half-split")
def axial_mixed_conventions(x, rows, cols, n_prefix=0, base=100.0):
    """You mixed two conventions: your angles are laid out for neighbouring pairs, but `rotate_half` swaps channel j
    with channel j + d_h/2. That is no rotation: it changes the length of the vectors. Take neighbours as pairs."""
    _check_axial(x, rows, cols, n_prefix)
    out, half = x.astype(float), x.shape[-1] // 2
    angle = np.repeat(_axial_angle(x.shape[-1], rows, cols, base), 2, axis=1)
    patches = x[..., n_prefix:, :]
    swapped = np.concatenate([-patches[..., half:], patches[..., :half]], axis=-1)
    out[..., n_prefix:, :] = patches * np.cos(angle) + swapped * np.sin(angle)
    return out


@rope_2d_axial.misconception("tables half-split, pairs interleaved")
def axial_mixed_the_other_way(x, rows, cols, n_prefix=0, base=100.0):
    """You mixed two conventions: your angles are laid out for the pairs (j, j + d_h/2), but you turn neighbours. The
    two numbers of a pair get different angles, and the vector changes its length. Write each angle twice in a row."""
    _check_axial(x, rows, cols, n_prefix)
    out = x.astype(float)
    angle = np.tile(_axial_angle(x.shape[-1], rows, cols, base), 2)
    patches = x[..., n_prefix:, :]
    swapped = np.stack([-patches[..., 1::2], patches[..., 0::2]], axis=-1).reshape(patches.shape)
    out[..., n_prefix:, :] = patches * np.cos(angle) + swapped * np.sin(angle)
    return out


@rope_2d_axial.misconception("turned the other way")
def axial_other_way(x, rows, cols, n_prefix=0, base=100.0):
    """You turned the pairs the other way round. A pair (a, b) becomes (a cos - b sin, a sin + b cos)."""
    _check_axial(x, rows, cols, n_prefix)
    return _turn(x, _axial_angle(x.shape[-1], rows, cols, base), n_prefix, sign=-1)


@rope_2d_axial.misconception("second number from the turned first")
def axial_one_by_one(x, rows, cols, n_prefix=0, base=100.0):
    """You overwrote the first number of each pair before you computed the second from it. Both new numbers need both
    old ones: keep them, or read from x and write into another array."""
    _check_axial(x, rows, cols, n_prefix)
    return _turn_one_by_one(x, _axial_angle(x.shape[-1], rows, cols, base), n_prefix)


@rope_2d_axial.misconception("ladder over the whole width")
def axial_ladder_over_all(x, rows, cols, n_prefix=0, base=100.0):
    """Your frequencies fall too slowly: your exponent is -2i / d_h. Each axis has half of the channels, so pair i turns
    by base ** (-2i / (d_h/2)) for each patch."""
    _check_axial(x, rows, cols, n_prefix)
    theta = base ** (-2 * np.arange(x.shape[-1] // 4) / x.shape[-1])
    return _turn(x, np.concatenate([np.outer(cols, theta), np.outer(rows, theta)], axis=1), n_prefix)


@rope_2d_axial.misconception("ladder not started afresh")
def axial_ladder_continued(x, rows, cols, n_prefix=0, base=100.0):
    """Your row half goes on where the frequencies of the column half stopped. The frequencies are counted afresh in
    each half, so that both axes have the same ones."""
    _check_axial(x, rows, cols, n_prefix)
    quarter = x.shape[-1] // 4
    theta = base ** (-2 * np.arange(2 * quarter) / x.shape[-1])
    angle = np.concatenate([np.outer(cols, theta[:quarter]), np.outer(rows, theta[quarter:])], axis=1)
    return _turn(x, angle, n_prefix)


@rope_2d_axial.misconception("ladder shared out in turn")
def axial_ladder_shared(x, rows, cols, n_prefix=0, base=100.0):
    """You shared one ladder of frequencies out, one to the column and the next to the row in turn. Here both axes have
    the same frequencies, counted afresh in each half."""
    _check_axial(x, rows, cols, n_prefix)
    theta = base ** (-2 * np.arange(x.shape[-1] // 2) / x.shape[-1])
    return _turn(x, np.concatenate([np.outer(cols, theta[::2]), np.outer(rows, theta[1::2])], axis=1), n_prefix)


@rope_2d_axial.misconception("exponent doubled")
def axial_exponent_doubled(x, rows, cols, n_prefix=0, base=100.0):
    """Your frequencies fall too fast: your exponent is -2i / (d_h/4). The 2 is in it already, so pair i turns by
    base ** (-2i / (d_h/2)) for each patch."""
    return chapter.rope_2d_axial(x, rows, cols, n_prefix, base**2)


@rope_2d_axial.misconception("sign of the exponent")
def axial_exponent_positive(x, rows, cols, n_prefix=0, base=100.0):
    """Your frequencies rise from pair to pair. They should fall: the exponent is -2i / (d_h/2), with a minus."""
    return chapter.rope_2d_axial(x, rows, cols, n_prefix, 1 / base)


@rope_2d_axial.misconception("axes in turn")
def axial_axes_in_turn(x, rows, cols, n_prefix=0, base=100.0):
    """You gave pairs to the column and to the row in turn. Here the first half of the pairs belongs to the column, the
    second half to the row."""
    _check_axial(x, rows, cols, n_prefix)
    angle = _axial_angle(x.shape[-1], rows, cols, base)
    return _turn(x, angle.reshape(len(rows), 2, -1).swapaxes(1, 2).reshape(angle.shape), n_prefix)


@rope_2d_axial.misconception("pairs taken apart")
def axial_taken_apart(x, rows, cols, n_prefix=0, base=100.0):
    """You turned the right pairs and then put all first numbers before all second ones. Write each number back into
    the channel from which it came: first numbers into 0::2, second ones into 1::2."""
    turned = chapter.rope_2d_axial(x, rows, cols, n_prefix, base)
    apart = np.concatenate([turned[..., 0::2], turned[..., 1::2]], axis=-1)
    return np.concatenate([turned[..., :n_prefix, :], apart[..., n_prefix:, :]], axis=-2)


@rope_2d_axial.misconception("base fixed at 100")
def axial_base_fixed(x, rows, cols, n_prefix=0, base=100.0):
    """Your frequencies ignore the argument base."""
    return chapter.rope_2d_axial(x, rows, cols, n_prefix)


@rope_2d_axial.misconception("base 10000")
def axial_base_of_text(x, rows, cols, n_prefix=0, base=100.0):
    """You used base 10000, which is that of language models. The base is an argument, and its default is 100."""
    return chapter.rope_2d_axial(x, rows, cols, n_prefix, 10000.0)


@rope_2d_axial.misconception("counted from 1")
def axial_from_one(x, rows, cols, n_prefix=0, base=100.0):
    """You added 1 to every row and column. Scores between patches do not notice, but those with prefix tokens do:
    take the positions as they come."""
    return chapter.rope_2d_axial(x, np.asarray(rows) + 1, np.asarray(cols) + 1, n_prefix, base)


@rope_2d_axial.misconception("prefix tokens at the end")
def axial_prefix_last(x, rows, cols, n_prefix=0, base=100.0):
    """You left the last tokens alone. The prefix tokens (class token, registers) come first: the first n_prefix rows
    of x stay as they are, and the positions belong to the rest."""
    turned = chapter.rope_2d_axial(np.roll(x, n_prefix, axis=-2), rows, cols, n_prefix, base)
    return np.roll(turned, -n_prefix, axis=-2)


@rope_2d_axial.misconception("prefix tokens dropped")
def axial_prefix_dropped(x, rows, cols, n_prefix=0, base=100.0):
    """Your answer has lost the prefix tokens. They are not turned, but they belong to the sequence."""
    return chapter.rope_2d_axial(x, rows, cols, n_prefix, base)[..., n_prefix:, :]


@rope_2d_axial.misconception("one prefix token, always")
def axial_one_prefix(x, rows, cols, n_prefix=0, base=100.0):
    """You left the first token alone, whatever n_prefix says. There may be no prefix token, or several."""
    return chapter.rope_2d_axial(x, rows, cols, 1, base)


@rope_2d_axial.misconception("integers cut off")
def axial_integers(x, rows, cols, n_prefix=0, base=100.0):
    """Your answer has the integers' type, so every turned number lost its decimals. Turn x into floats first."""
    return chapter.rope_2d_axial(x, rows, cols, n_prefix, base).astype(x.dtype)


@rope_2d_axial.misconception("leftover channels not turned")
def axial_leftover(x, rows, cols, n_prefix=0, base=100.0):
    """When 4 does not divide the head width, the last channels are left as they are, without a word: raise a
    ValueError."""
    whole = x.shape[-1] // 4 * 4
    return np.concatenate([chapter.rope_2d_axial(x[..., :whole], rows, cols, n_prefix, base), x[..., whole:]], axis=-1)


@rope_2d_axial.misconception("one position spread over all patches")
def axial_broadcast(x, rows, cols, n_prefix=0, base=100.0):
    """A list with a single position gives it to every patch: NumPy spreads an axis of length 1. Compare the lengths
    of rows and cols with T - n_prefix and raise a ValueError."""
    n = x.shape[-2] - n_prefix
    rows, cols = (np.broadcast_to(place, n) if len(place) == 1 else place for place in (rows, cols))
    return chapter.rope_2d_axial(x, rows, cols, n_prefix, base)


@rope_2d_axial.misconception("no error for a wrong number of positions")
def axial_zip(x, rows, cols, n_prefix=0, base=100.0):
    """When the lists of positions are too short or too long, you turn as many patches as there are positions for.
    Something is wrong with the grid then: raise a ValueError."""
    n = min(x.shape[-2] - n_prefix, len(rows), len(cols))
    head, tail = x[..., : n_prefix + n, :], x[..., n_prefix + n :, :]
    return np.concatenate([chapter.rope_2d_axial(head, rows[:n], cols[:n], n_prefix, base), tail], axis=-2)


# ------------------------------------------------------------------------------------- rope_2d_attention

rope_2d_attention = Exercise(
    chapter.rope_2d_attention,
    points=4,
    difficulty=3,
    minutes=20,
    section="Attention with turned queries and keys",
    formerly_in="positions",
)


@rope_2d_attention.where
def attention_entry(index, Q, K, V, rows, cols, n_prefix=0, base=100.0):
    token = index[-2]
    if token < n_prefix:
        return f"what prefix token {token} gathers"
    return f"what patch ({rows[token - n_prefix]:g}, {cols[token - n_prefix]:g}) gathers"


def _pictures(rng, *shape):
    """Queries, keys and values."""
    return tuple(rng.normal(size=shape) for _ in range(3))


def _fixed(*shape):
    """Queries, keys and values without chance, of order 1."""
    count = counting(*shape)
    return np.sin(count), np.cos(2 * count), (count * 7 % 11) / 5


@rope_2d_attention.visible
def two_patches():
    "Two patches side by side, one frequency"
    query = np.array([[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])
    key = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    value = np.array([[1.0, 0.0, 10.0, 0.0], [0.0, 1.0, 0.0, 20.0]])
    yield Case(
        query, key, value, *grid(1, 2),
        why="the scaled scores are 1 and cos 1 for the first patch, -sin 1 and 0 for the second",
    )  # fmt: skip


@rope_2d_attention.visible
def several_heads():
    "Two heads, two rows of three patches"
    yield Case(*_fixed(2, 6, 8), *grid(2, 3), why="heads come before the last two axes")


@rope_2d_attention.visible
def prefix_and_base():
    "One prefix token, three rows of two patches, another base"
    yield Case(*_fixed(7, 8), *grid(3, 2), 1, 20.0, why="prefix tokens are not turned, but they take part")


@rope_2d_attention.visible
def large_scores():
    "Scores in the thousands"
    Q, K, V = _fixed(4, 8)
    yield Case(100 * Q, 100 * K, V, *grid(2, 2), why="the exponential of 800 is no number any more")


@rope_2d_attention.hidden(weight=2)
def any_grid_of_patches(rng):
    "Any grid, any width, any number of axes and prefix tokens"
    yield Case(*_pictures(rng, 15, 16), *grid(3, 5))
    yield Case(*_pictures(rng, 3, 9, 8), *grid(4, 2), 1)
    yield Case(*_pictures(rng, 2, 3, 10, 12), *grid(2, 3), 4, float(rng.uniform(20, 20000)))


@rope_2d_attention.hidden
def as_many_tokens_as_channels(rng):
    "Sizes where a wrong axis keeps the shape"
    yield Case(*_pictures(rng, 8, 8), *grid(2, 4), why="T = d_h")
    yield Case(*_pictures(rng, 6, 6, 12), *grid(2, 3), why="as many heads as tokens")
    yield Case(*_pictures(rng, 2, 1, 8), *grid(1, 1), why="there is a single token")


@rope_2d_attention.hidden
def any_large_scores(rng):
    "Scores in the thousands, of either sign"
    Q, K, V = _pictures(rng, 2, 7, 8)
    yield Case(300 * Q, 300 * K, V, *grid(2, 3), 1)


@rope_2d_attention.hidden
def attention_in_single_precision(rng):
    "float32"
    Q, K, V = (x.astype(np.float32) for x in _pictures(rng, 2, 7, 8))
    yield Case(Q, K, V, *grid(3, 2), 1)


def _attend(Q, K, V, scale, axis=-1, stable=True):
    """Attention whose details can be wrong."""
    scores = Q @ K.swapaxes(-1, -2) * scale
    if stable:
        scores = scores - scores.max(axis=axis, keepdims=True)
    weights = np.exp(scores)
    return weights / weights.sum(axis=axis, keepdims=True) @ V


def _root(Q):
    return Q.shape[-1] ** -0.5


@rope_2d_attention.misconception("values turned too")
def values_turned(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You turned the values too. Values are what is handed over: turned, the content of a patch would depend on where
    it lies. Only queries and keys are turned."""
    V = chapter.rope_2d_axial(V, rows, cols, n_prefix, base)
    return chapter.rope_2d_attention(Q, K, V, rows, cols, n_prefix, base)


@rope_2d_attention.misconception("only queries turned")
def only_queries(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You turned the queries but not the keys. Then a score depends on where the query is, not on how far the key is
    from it: turn both."""
    return _attend(chapter.rope_2d_axial(Q, rows, cols, n_prefix, base), K, V, _root(Q))


@rope_2d_attention.misconception("only keys turned")
def only_keys(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You turned the keys but not the queries. Then a score depends on where the key is, not on how far it is from
    the query: turn both."""
    return _attend(Q, chapter.rope_2d_axial(K, rows, cols, n_prefix, base), V, _root(Q))


@rope_2d_attention.misconception("nothing turned")
def nothing_turned(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You turned neither queries nor keys: this attention knows no places."""
    return _attend(Q, K, V, _root(Q))


@rope_2d_attention.misconception("not scaled")
def not_scaled(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You did not scale the scores. Divide them by the square root of d_h."""
    Q, K = (chapter.rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    return _attend(Q, K, V, 1.0)


@rope_2d_attention.misconception("scaled by d_h")
def scaled_by_width(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You divided the scores by d_h. Divide them by its square root."""
    Q, K = (chapter.rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    return _attend(Q, K, V, 1 / Q.shape[-1])


@rope_2d_attention.misconception("scaled by the number of tokens")
def scaled_by_tokens(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You divided the scores by the square root of the number of tokens. Divide them by the square root of the head
    width d_h, the last axis."""
    Q, K = (chapter.rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    return _attend(Q, K, V, Q.shape[-2] ** -0.5)


@rope_2d_attention.misconception("softmax over the queries")
def softmax_over_queries(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You took the softmax over the queries. The weights with which one query mixes the values must add up to 1: take
    it over the keys, the last axis of the scores."""
    Q, K = (chapter.rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    return _attend(Q, K, V, _root(Q), axis=-2)


@rope_2d_attention.misconception("softmax over the second axis")
def softmax_over_axis_one(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You took the softmax over axis 1. That is the keys for a single head only; with more axes in front it is the
    queries or the heads. The keys are always the last axis: use axis=-1."""
    Q, K = (chapter.rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    return _attend(Q, K, V, _root(Q), axis=1)


@rope_2d_attention.misconception("softmax that overflows")
def overflowing(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """Your softmax overflows when scores are large: exp(800) is infinite, and infinity divided by infinity is nan.
    Subtract the largest score of each row first; the softmax stays the same."""
    Q, K = (chapter.rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    with np.errstate(all="ignore"):
        return _attend(Q, K, V, _root(Q), stable=False)


@rope_2d_attention.misconception("largest of all scores subtracted")
def one_maximum(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You subtracted the largest of all scores. In a row whose own largest is far below it every exponential is 0, and
    0 divided by 0 is nan. Subtract the largest of each row: max(axis=-1, keepdims=True)."""
    Q, K = (chapter.rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    scores = Q @ K.swapaxes(-1, -2) * _root(Q)
    weights = np.exp(scores - scores.max())
    with np.errstate(invalid="ignore"):
        return weights / weights.sum(axis=-1, keepdims=True) @ V


@rope_2d_attention.misconception("softmax over all scores")
def softmax_over_all(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You divided by the sum of all exponentials. The weights of each query must add up to 1: sum over the keys, with
    axis=-1 and keepdims=True."""
    Q, K = (chapter.rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    return _attend(Q, K, V, _root(Q), axis=None)


@rope_2d_attention.misconception("weights returned")
def weights_returned(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You returned the weights. Mix the values with them: weights @ V."""
    Q, K = (chapter.rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    return _attend(Q, K, np.eye(Q.shape[-2], dtype=Q.dtype), _root(Q))


@rope_2d_attention.misconception("queries and keys exchanged")
def queries_for_keys(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You exchanged queries and keys. Row i of the scores is what token i asks: Q times the transpose of K."""
    return chapter.rope_2d_attention(K, Q, V, rows, cols, n_prefix, base)


@rope_2d_attention.misconception("keys turned backwards")
def keys_backwards(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You turned the keys the other way. Turn queries and keys alike: the dot product takes the difference of the two
    angles by itself."""
    Q = chapter.rope_2d_axial(Q, rows, cols, n_prefix, base)
    K = chapter.rope_2d_axial(K, -np.asarray(rows), -np.asarray(cols), n_prefix, base)
    return _attend(Q, K, V, _root(Q))


@rope_2d_attention.misconception("all axes transposed")
def all_axes_transposed(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You transposed the keys with `.T`, which reverses all axes. With heads in front only the last two may change
    places: use swapaxes(-1, -2)."""
    Q, K = (chapter.rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    scores = Q @ K.T * _root(Q)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ V


@rope_2d_attention.misconception("prefix not passed on")
def prefix_not_passed(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You did not hand n_prefix on to rope_2d_axial, so there are fewer positions than tokens to turn."""
    return chapter.rope_2d_attention(Q, K, V, rows, cols, 0, base)


@rope_2d_attention.misconception("base not passed on")
def base_not_passed(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You did not hand base on to rope_2d_axial."""
    return chapter.rope_2d_attention(Q, K, V, rows, cols, n_prefix)


@rope_2d_attention.misconception("rows and columns exchanged")
def places_exchanged(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """You handed rows and columns to rope_2d_axial in the wrong order."""
    return chapter.rope_2d_attention(Q, K, V, cols, rows, n_prefix, base)


@rope_2d_attention.misconception("prefix tokens left out")
def patches_only(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """Your patches do not see the prefix tokens, and the prefix tokens are missing from the answer. They are not
    turned, but they take part: all tokens attend to all tokens."""
    return chapter.rope_2d_attention(*(x[..., n_prefix:, :] for x in (Q, K, V)), rows, cols, 0, base)


# ----------------------------------------------------------------------------------------- rope_2d_mixed

rope_2d_mixed = Exercise(
    chapter.rope_2d_mixed, points=3, difficulty=2, minutes=15, section="Diagonals", formerly_in="positions"
)


@rope_2d_mixed.where
def mixed_entry(index, x, rows, cols, theta_x, theta_y, n_prefix=0):
    token = index[-2]
    if token < n_prefix:
        return f"prefix token {token}"
    return f"patch ({rows[token - n_prefix]:g}, {cols[token - n_prefix]:g})"


@rope_2d_mixed.visible
def one_diagonal_pair():
    "One patch in row 1, column 2, three pairs: a column, a row, a diagonal"
    yield Case(
        np.array([[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]]), np.array([1.0]), np.array([2.0]),
        np.array([1.0, 0.0, 0.1]), np.array([0.0, 1.0, 0.1]),
        why="each pair starts as (1, 0) and ends as cosine and sine of its angle: 2, 1 and 0.3",
    )  # fmt: skip


@rope_2d_mixed.visible
def two_prefix_tokens():
    "Two prefix tokens, then two rows of three patches, two heads"
    theta_x, theta_y = np.array([1.0, 0.5, -0.3, 0.1]), np.array([0.2, -0.4, 0.7, 0.1])
    yield Case(counting(2, 8, 8) % 13, *grid(2, 3), theta_x, theta_y, 2)


@rope_2d_mixed.visible
def lists_that_do_not_fit():
    "Head widths, positions and frequencies that do not fit"
    one, two = np.array([0.5]), np.array([0.5, 0.25])
    yield Raises(counting(2, 5), *grid(1, 2), two, two, why="a head width of 5 has a channel without a partner")
    yield Raises(counting(2, 4), *grid(1, 3), two, two, why="there are 2 patches and 3 positions")
    yield Raises(counting(2, 4), *grid(1, 2), one, two, why="two pairs need two frequencies for each axis")
    yield Case(counting(3, 4), *grid(1, 2), two, -two, 1)


@rope_2d_mixed.hidden(weight=2)
def any_frequencies(rng):
    "Any grid, any frequencies, any number of axes and prefix tokens"
    yield Case(rng.normal(size=(15, 8)), *grid(3, 5), rng.normal(size=4), rng.normal(size=4))
    yield Case(rng.normal(size=(2, 9, 6)), *grid(2, 4), rng.normal(size=3), rng.normal(size=3), 1)
    yield Case(rng.normal(size=(2, 3, 12, 10)), *grid(4, 2), rng.normal(size=5), rng.normal(size=5), 4)


@rope_2d_mixed.hidden
def places_between(rng):
    "Positions that are no whole numbers, in any order"
    places = rng.uniform(-9, 9, size=(2, 7))
    yield Case(rng.normal(size=(8, 12)), *places, rng.normal(size=6), rng.normal(size=6), 1)


@rope_2d_mixed.hidden
def mixed_in_single_precision(rng):
    "float32"
    yield Case(rng.normal(size=(2, 7, 8)).astype(np.float32), *grid(3, 2), rng.normal(size=4), rng.normal(size=4), 1)


@rope_2d_mixed.hidden
def any_lists_that_do_not_fit(rng):
    "Any width or length that does not fit"
    rows, cols = grid(2, 3)
    theta = rng.normal(size=4)
    x = rng.normal(size=(6, 8))
    yield Raises(rng.normal(size=(6, 7)), rows, cols, theta[:3], theta[:3])
    yield Raises(x, rows[:1], cols, theta, theta)
    yield Raises(x, rows, cols[:1], theta, theta)
    yield Raises(x, rows, cols, theta, theta, 1)
    yield Raises(x, rows, cols, theta[:1], theta)
    yield Raises(x, rows, cols, theta, theta[:1])
    yield Raises(x, rows, cols, theta[:2], theta[:2])
    yield Case(x, rows, cols, theta, -theta)


def _check_mixed(x, rows, cols, theta_x, theta_y, n_prefix):
    pairs = x.shape[-1] / 2
    if not len(theta_x) == len(theta_y) == pairs or not len(rows) == len(cols) == x.shape[-2] - n_prefix:
        raise ValueError("lengths do not fit")


def _mixed_angle(rows, cols, theta_x, theta_y):
    return np.outer(cols, theta_x) + np.outer(rows, theta_y)


@rope_2d_mixed.misconception("x taken for rows")
def x_for_rows(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """You multiplied theta_x by the row. x runs along a row of the grid: it is the column that theta_x belongs to."""
    return chapter.rope_2d_mixed(x, cols, rows, theta_x, theta_y, n_prefix)


@rope_2d_mixed.misconception("half-split pairs")
def mixed_half_split(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """You paired channel j with channel j + d_h/2 (half-split, `rotate_half`). Here the two numbers of a pair are
    neighbours, 2i and 2i + 1."""
    _check_mixed(x, rows, cols, theta_x, theta_y, n_prefix)
    return _turn_halves(x, _mixed_angle(rows, cols, theta_x, theta_y), n_prefix)


@rope_2d_mixed.misconception("turned the other way")
def mixed_other_way(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """You turned the pairs the other way round. A pair (a, b) becomes (a cos - b sin, a sin + b cos)."""
    _check_mixed(x, rows, cols, theta_x, theta_y, n_prefix)
    return _turn(x, _mixed_angle(rows, cols, theta_x, theta_y), n_prefix, sign=-1)


@rope_2d_mixed.misconception("second number from the turned first")
def mixed_one_by_one(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """You overwrote the first number of each pair before you computed the second from it. Both new numbers need both
    old ones."""
    _check_mixed(x, rows, cols, theta_x, theta_y, n_prefix)
    return _turn_one_by_one(x, _mixed_angle(rows, cols, theta_x, theta_y), n_prefix)


@rope_2d_mixed.misconception("axes not mixed")
def axes_not_mixed(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """You turned the first half of the pairs by the column and the second half by the row, as the axial form does.
    Here every pair turns by both: theta_x * c + theta_y * r."""
    _check_mixed(x, rows, cols, theta_x, theta_y, n_prefix)
    first = np.arange(len(theta_x)) < len(theta_x) // 2
    return _turn(x, _mixed_angle(rows, cols, np.where(first, theta_x, 0), np.where(first, 0, theta_y)), n_prefix)


@rope_2d_mixed.misconception("rows subtracted")
def rows_subtracted(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """You subtracted the angle of the row. The two angles add up: theta_x * c + theta_y * r."""
    return chapter.rope_2d_mixed(x, rows, cols, theta_x, -np.asarray(theta_y), n_prefix)


@rope_2d_mixed.misconception("turned by the columns only")
def columns_only(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """You turned by the column only. The angle of the row, theta_y * r, is missing."""
    _check_mixed(x, rows, cols, theta_x, theta_y, n_prefix)
    return chapter.rope_2d_mixed(x, rows, cols, theta_x, 0 * np.asarray(theta_y), n_prefix)


@rope_2d_mixed.misconception("mean of the two rotations")
def mean_of_rotations(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """You turned by the column and by the row separately and put the results together. Turning twice adds angles, not
    vectors: turn once, by theta_x * c + theta_y * r."""
    _check_mixed(x, rows, cols, theta_x, theta_y, n_prefix)
    by_column = _turn(x, np.outer(cols, theta_x), n_prefix)
    return (by_column + _turn(x, np.outer(rows, theta_y), n_prefix)) / 2


@rope_2d_mixed.misconception("prefix tokens at the end")
def mixed_prefix_last(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """You left the last tokens alone. The prefix tokens come first: the first n_prefix rows of x stay as they are."""
    turned = chapter.rope_2d_mixed(np.roll(x, n_prefix, axis=-2), rows, cols, theta_x, theta_y, n_prefix)
    return np.roll(turned, -n_prefix, axis=-2)


@rope_2d_mixed.misconception("prefix tokens dropped")
def mixed_prefix_dropped(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """Your answer has lost the prefix tokens. They are not turned, but they belong to the sequence."""
    return chapter.rope_2d_mixed(x, rows, cols, theta_x, theta_y, n_prefix)[..., n_prefix:, :]


@rope_2d_mixed.misconception("counted from 1")
def mixed_from_one(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """You added 1 to every row and column. Take the positions as they come."""
    return chapter.rope_2d_mixed(x, np.asarray(rows) + 1, np.asarray(cols) + 1, theta_x, theta_y, n_prefix)


@rope_2d_mixed.misconception("one entry spread over all")
def mixed_broadcast(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """A list with a single entry serves all patches or all pairs: NumPy spreads an axis of length 1. Compare the
    lengths and raise a ValueError."""
    n, pairs = x.shape[-2] - n_prefix, x.shape[-1] // 2
    rows, cols = (np.broadcast_to(place, n) if len(place) == 1 else place for place in (rows, cols))
    theta_x, theta_y = (np.broadcast_to(t, pairs) if len(t) == 1 else t for t in (theta_x, theta_y))
    return chapter.rope_2d_mixed(x, rows, cols, theta_x, theta_y, n_prefix)


@rope_2d_mixed.misconception("an odd channel left over")
def mixed_leftover(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """When the head width is odd, the last channel is left as it is, without a word: raise a ValueError."""
    whole = x.shape[-1] // 2 * 2
    turned = chapter.rope_2d_mixed(x[..., :whole], rows, cols, theta_x, theta_y, n_prefix)
    return np.concatenate([turned, x[..., whole:]], axis=-1)


# ------------------------------------------------------------------------------------ dinov3_coordinates

dinov3_coordinates = Exercise(
    chapter.dinov3_coordinates,
    points=2,
    difficulty=1,
    minutes=10,
    section="Coordinates in a box",
    formerly_in="positions",
)


@dinov3_coordinates.where
def coordinate_entry(index, H_p, W_p):
    return f"patch {divmod(index[0], W_p)}"


@dinov3_coordinates.visible
def two_by_four():
    "Two rows of four patches"
    yield Case(2, 4, why="the rows lie at -1/2 and 1/2, the columns at -3/4, -1/4, 1/4 and 3/4")


@dinov3_coordinates.visible
def one_patch_in_the_middle():
    "A single patch, and a square grid"
    yield Case(1, 1, why="one patch fills the box, and its centre is (0, 0)")
    yield Case(2, 2)


@dinov3_coordinates.hidden(weight=2)
def any_box(rng):
    "Grids of any size"
    yield Case(3, 5)
    yield Case(int(rng.integers(8, 15)), int(rng.integers(2, 7)))
    yield Case(int(rng.integers(2, 7)), int(rng.integers(8, 15)))


@dinov3_coordinates.hidden
def a_line_of_patches(rng):
    "A single row, a single column, a square"
    yield Case(1, int(rng.integers(3, 9)))
    yield Case(int(rng.integers(3, 9)), 1)
    yield Case(4, 4)


def _box(H_p, W_p, place):
    """(row, column) pairs for a rule that places i of n."""
    row, column = (place(np.arange(n), n) for n in (H_p, W_p))
    return np.stack(np.meshgrid(row, column, indexing="ij"), axis=-1).reshape(-1, 2)


@dinov3_coordinates.misconception("borders instead of centres")
def from_edge_to_edge(H_p, W_p):
    """Your first and last patches lie at -1 and 1. Those are the borders of the image; a patch has the coordinates of
    its centre, half a patch further in."""
    return _box(H_p, W_p, lambda i, n: np.linspace(-1, 1, n))


@dinov3_coordinates.misconception("corners instead of centres")
def from_corners(H_p, W_p):
    """You took the upper left corner of each patch. Its centre is half a patch further: i + 1/2, not i."""
    return _box(H_p, W_p, lambda i, n: 2 * i / n - 1)


@dinov3_coordinates.misconception("column first")
def column_coordinate_first(H_p, W_p):
    """Your pairs are (column, row). Here the row comes first."""
    return chapter.dinov3_coordinates(H_p, W_p)[:, ::-1]


@dinov3_coordinates.misconception("patches column by column")
def box_column_major(H_p, W_p):
    """Your patches run down the columns of the grid. In raster order the column changes from one patch to the next:
    meshgrid needs indexing="ij"."""
    return chapter.dinov3_coordinates(H_p, W_p).reshape(H_p, W_p, 2).transpose(1, 0, 2).reshape(-1, 2)


@dinov3_coordinates.misconception("height and width swapped")
def box_swapped(H_p, W_p):
    """Your grid has W_p rows and H_p columns. H_p, the number of rows, comes first."""
    return chapter.dinov3_coordinates(W_p, H_p)


@dinov3_coordinates.misconception("from 0 to 1")
def from_zero_to_one(H_p, W_p):
    """Your coordinates run from 0 to 1. Stretch them to the box from -1 to 1: times 2, minus 1."""
    return _box(H_p, W_p, lambda i, n: (i + 0.5) / n)


@dinov3_coordinates.misconception("scaled by the longer side")
def longer_side(H_p, W_p):
    """You divided both axes by the longer side. Here each axis is scaled by its own size, so both fill the box."""
    return _box(H_p, W_p, lambda i, n: 2 * (i + 0.5) / max(H_p, W_p) - 1)


@dinov3_coordinates.misconception("scaled by the shorter side")
def shorter_side(H_p, W_p):
    """You divided both axes by the shorter side, so the longer one leaves the box. Here each axis is scaled by its own
    size."""
    return _box(H_p, W_p, lambda i, n: 2 * (i + 0.5) / min(H_p, W_p) - 1)


@dinov3_coordinates.misconception("divided by n - 1")
def one_less(H_p, W_p):
    """You divided by n - 1. With centres there are n patches of equal width in the box: divide by n."""
    return _box(H_p, W_p, lambda i, n: 2 * (i + 0.5) / max(n - 1, 1) - 1)


@dinov3_coordinates.misconception("times 2π")
def angles_already(H_p, W_p):
    """You multiplied by 2π already. That comes later, when angles are made of coordinates."""
    return 2 * np.pi * chapter.dinov3_coordinates(H_p, W_p)


@dinov3_coordinates.misconception("grid not flattened")
def box_not_flattened(H_p, W_p):
    """Your coordinates still have the axes of the grid. The patches are a list: the answer has two axes."""
    return chapter.dinov3_coordinates(H_p, W_p).reshape(H_p, W_p, 2)


@dinov3_coordinates.misconception("reshaped into pairs")
def reshaped_into_pairs(H_p, W_p):
    """You reshaped two grids into pairs. Reshape keeps the order of the numbers, so each pair comes from one grid.
    Stack the grids along a new last axis first: `np.stack(..., axis=-1)`."""
    return np.ascontiguousarray(chapter.dinov3_coordinates(H_p, W_p).T).reshape(-1, 2)


@dinov3_coordinates.misconception("all rows, then all columns")
def two_lists(H_p, W_p):
    """You returned the list of rows and the list of columns. Return one pair for each patch: the transpose."""
    return chapter.dinov3_coordinates(H_p, W_p).T


# --------------------------------------------------------------------------------- packed_attention_mask

packed_attention_mask = Exercise(
    chapter.packed_attention_mask,
    points=2,
    difficulty=1,
    minutes=10,
    section="Many images in one sequence",
    formerly_in="positions",
)


@packed_attention_mask.where
def mask_entry(index, lengths):
    image = np.repeat(np.arange(len(lengths)), lengths)
    if len(index) < 2:
        return f"of image {image[index[0]]}"
    return f"a token of image {image[index[0]]} looking at one of image {image[index[1]]}"


@packed_attention_mask.visible
def two_images():
    "An image of two tokens and one of three"
    yield Case([2, 3], why="the answer is a block of 2 by 2 and a block of 3 by 3")


@packed_attention_mask.visible
def equal_images():
    "Four images, two of them of one length"
    yield Case([2, 1, 4, 2], why="there are more than two images, and two of one length are still two")


@packed_attention_mask.hidden(weight=2)
def any_lengths(rng):
    "Any number of images of any length"
    lengths = [int(n) for n in rng.permutation([1, 2, 3, 5, 8])]
    yield Case(lengths)
    yield Case([*lengths, lengths[0], lengths[1]])


@packed_attention_mask.hidden
def one_image(rng):
    "A single image, and images of a single token"
    yield Case([int(rng.integers(2, 6))])
    yield Case([1] * int(rng.integers(3, 6)))
    yield Case([int(rng.integers(4, 7)), 1, int(rng.integers(2, 4))])


@packed_attention_mask.misconception("inverted")
def inverted(lengths):
    """Your mask is True where attention is forbidden, as `nn.MultiheadAttention` wants it. Here True allows, as in
    `F.scaled_dot_product_attention`."""
    return ~chapter.packed_attention_mask(lengths)


@packed_attention_mask.misconception("causal")
def causal(lengths):
    """Your tokens look back only, as in a language model. Inside an image every token may look at every other."""
    return np.tril(chapter.packed_attention_mask(lengths))


@packed_attention_mask.misconception("earlier images too")
def earlier_images(lengths):
    """Your images see the images packed before them. Each image sees itself only: the numbers must be equal."""
    image = np.repeat(np.arange(len(lengths)), lengths)
    return image[:, None] >= image


@packed_attention_mask.misconception("everything allowed")
def everything(lengths):
    """Your mask forbids nothing. True belongs inside the blocks only."""
    return np.ones((sum(lengths), sum(lengths)), dtype=bool)


@packed_attention_mask.misconception("images told apart by their length")
def by_length(lengths):
    """You compared the lengths of the images, so two images of one length see each other. Number the images and
    compare the numbers."""
    image = np.repeat(lengths, lengths)
    return image[:, None] == image


@packed_attention_mask.misconception("not oneself")
def not_oneself(lengths):
    """Your tokens do not see themselves. The diagonal is True: a token may attend to itself."""
    return chapter.packed_attention_mask(lengths) & ~np.eye(sum(lengths), dtype=bool)


@packed_attention_mask.misconception("boundary off by one")
def off_by_one(lengths):
    """Your first token of an image belongs to the image before. Image k ends before position
    lengths[0] + … + lengths[k]: that position is the first of the next (`searchsorted(..., side="right")`)."""
    image = np.searchsorted(np.cumsum(lengths), np.arange(sum(lengths)))
    return image[:, None] == image


@packed_attention_mask.misconception("starts not added up")
def starts_not_added(lengths):
    """Your block starts at the length of the image before it, not at the sum of all before it: start += n."""
    mask, start = np.zeros((sum(lengths), sum(lengths)), dtype=bool), 0
    for n in lengths:
        mask[start : start + n, start : start + n] = True
        start = n
    return mask


@packed_attention_mask.misconception("row compared with row")
def row_with_row(lengths):
    """You compared the list with itself, entry by entry. Make one of the two a column: image[:, None] == image."""
    return np.ones(sum(lengths), dtype=bool)


@packed_attention_mask.misconception("blocks of equal size")
def equal_blocks(lengths):
    """You made all blocks as large as the first. Each image has its own length."""
    image = np.arange(sum(lengths)) // lengths[0]
    return image[:, None] == image


@packed_attention_mask.misconception("numbers instead of booleans")
def as_numbers(lengths):
    """Your mask is made of 0 and 1. Return booleans: a library adds numbers to the scores and reads booleans as
    allowed or not."""
    return chapter.packed_attention_mask(lengths).astype(float)


@packed_attention_mask.misconception("minus infinity")
def additive(lengths):
    """You made the mask that is added to scores, with 0 and minus infinity. Return booleans: True where attention is
    allowed."""
    return np.where(chapter.packed_attention_mask(lengths), 0.0, -np.inf)


@packed_attention_mask.misconception("a padding mask")
def padding_mask(lengths):
    """You made a padding mask: one row for each image, up to the longest. In a packed sequence there is no padding;
    the answer has one row and one column for each token."""
    return np.arange(max(lengths)) < np.array(lengths)[:, None]


@packed_attention_mask.misconception("one row for each image")
def row_for_each_image(lengths):
    """You have one row for each image. Return one row for each token, the query."""
    return np.arange(len(lengths))[:, None] == np.repeat(np.arange(len(lengths)), lengths)
