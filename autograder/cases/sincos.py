"""The exercises of the chapter *Sine and cosine positions*."""

import numpy as np

from autograder.judging.exercise import Case, Exercise, Raises
from solutions import sincos as chapter


def pairs(d):
    """0, 1, 2, … as far as there are pairs in width d."""
    return np.arange(d // 2)


def interleave(sines, cosines):
    """sin, cos, sin, cos, … from arrays of shape (…, d / 2)."""
    return np.stack([sines, cosines], axis=-1).reshape(*np.shape(sines)[:-1], -1)


def encode(positions, omega):
    """Sine-cosine vectors at the frequencies `omega`."""
    angles = np.asarray(positions, dtype=float)[..., None] * omega
    return interleave(np.sin(angles), np.cos(angles))


def ladder_to_the_end(d, base):
    """Frequencies whose last is 1 / base."""
    return base ** (-pairs(d) / max(d // 2 - 1, 1))


# -------------------------------------------------------------------------------------------- sincos_1d

sincos_1d = Exercise(chapter.sincos_1d, points=3, difficulty=2, minutes=15, section="The position vector, exactly")


@sincos_1d.where
def vector_entry(index, positions, d, base=10000.0):
    place = f"position {np.asarray(positions)[index[:-1]]:g}"
    pair, cosine = divmod(index[-1], 2)
    # A short vector is shown whole; in a long one, say which entry is meant
    return place if d <= 8 else f"the {'cosine' if cosine else 'sine'} of pair {pair} at {place}"


@sincos_1d.visible
def by_hand():
    "The table of the page"
    yield Case([0, 1, 2], 4, why="you can check every number by hand")


@sincos_1d.visible
def any_start():
    "Positions that do not count up from 0"
    yield Case(np.array([5.0, 2.0, 2.5]), 6, why="the vector depends on the position, not on its place in the list")


@sincos_1d.visible
def any_shape():
    "One number, and a grid of positions"
    yield Case(3, 6, why="a single position has a vector of shape (d,)")
    yield Case(np.array([[0, 1, 2], [10, 20, 40]]), 8, why="positions of shape (2, 3) give vectors of shape (2, 3, d)")


@sincos_1d.visible
def another_base():
    "A base that is not 10,000"
    yield Case([1, 2], 6, 100.0)


@sincos_1d.visible
def odd_width():
    "A width that is odd"
    yield Raises([0, 1, 2], 5, why="five numbers are no whole number of pairs")
    yield Raises([1.5], 1, why="one number is no whole number of pairs")
    yield Case([0, 1, 2], 2, why="one pair is enough")


@sincos_1d.hidden(weight=2)
def any_width(rng):
    "Any width, positions whole and not, negative and large"
    yield Case(rng.integers(0, 500, size=7), 10)
    yield Case(rng.normal(scale=50, size=6), 16)
    yield Case(rng.uniform(-300, 300, size=4), 64)
    yield Case(float(rng.uniform(1, 9)), 12)


@sincos_1d.hidden
def any_base(rng):
    "Any base"
    yield Case(rng.integers(1, 40, size=5), 12, float(rng.uniform(20, 500)))
    yield Case(rng.normal(scale=9, size=(2, 3)), 6, float(rng.uniform(2e4, 9e5)))
    yield Case(rng.normal(size=3), 4, 0.5, why="any positive base will do")


@sincos_1d.hidden
def more_shapes(rng):
    "Positions in one, two and three axes, in single precision too"
    yield Case(rng.normal(scale=20, size=(3, 1, 4)), 6)
    yield Case(rng.uniform(1, 30, size=(4, 2)).astype(np.float32), 8)
    yield Case([[int(p) for p in row] for row in rng.integers(0, 99, size=(2, 5))], 6)


@sincos_1d.hidden
def any_odd_width(rng):
    "Odd widths"
    d = 2 * int(rng.integers(2, 20)) + 1
    yield Raises(rng.normal(size=3), d)
    yield Raises(int(rng.integers(1, 9)), d + 2)
    yield Case(rng.normal(size=3), d + 1)


@sincos_1d.misconception("cosines at frequencies of their own")
def cosines_of_their_own(positions, d, base=10000.0):
    """You gave each entry a frequency of its own, with its index in the exponent. The sine and the cosine of a pair
    turn together: both exponents are 2k/d, where k is the number of the pair."""
    if d % 2:
        raise ValueError("d must be even")
    angles = np.asarray(positions, dtype=float)[..., None] * base ** (-np.arange(d) / d)
    return interleave(np.sin(angles[..., 0::2]), np.cos(angles[..., 1::2]))


@sincos_1d.misconception("2i / d for entry i")
def doubled_for_entries(positions, d, base=10000.0):
    """You put twice the index of the entry into the exponent. In 2k/d, k counts pairs, not entries, so yours runs
    down the ladder twice as fast as it should, and the two of a pair do not agree."""
    if d % 2:
        raise ValueError("d must be even")
    angles = np.asarray(positions, dtype=float)[..., None] * base ** (-2 * np.arange(d) / d)
    return interleave(np.sin(angles[..., 0::2]), np.cos(angles[..., 1::2]))


@sincos_1d.misconception("pairs counted from 1")
def pairs_from_one(positions, d, base=10000.0):
    """You counted the pairs from 1. Pair 0 comes first, with the exponent 0 and the frequency 1."""
    if d % 2:
        raise ValueError("d must be even")
    return encode(positions, base ** (-2 * (pairs(d) + 1) / d))


@sincos_1d.misconception("frequencies in equal steps")
def equal_steps(positions, d, base=10000.0):
    """Your frequencies fall in equal steps from 1 to 1/base. They fall by equal factors: the exponents go up in equal
    steps, 2k/d."""
    if d % 2:
        raise ValueError("d must be even")
    return encode(positions, np.linspace(1, 1 / base, d // 2))


@sincos_1d.misconception("turns instead of radians")
def turns(positions, d, base=10000.0):
    """You multiplied the angles by 2 pi. The frequencies are in radians for each step: the first hand turns by 1, not
    by a whole turn."""
    return chapter.sincos_1d(2 * np.pi * np.asarray(positions), d, base)


@sincos_1d.misconception("2i / d with i already even")
def doubled_exponent(positions, d, base=10000.0):
    """Your exponents go up in steps of 4/d. Somewhere the 2 was counted twice: `np.arange(0, d, 2)` is 2k already,
    so divide it by d and do not double it again."""
    if d % 2:
        raise ValueError("d must be even")
    return encode(positions, base ** (-4 * pairs(d) / d))


@sincos_1d.misconception("k / d")
def halved_exponent(positions, d, base=10000.0):
    """Your exponents go up in steps of 1/d and end half way down the ladder. There are d/2 pairs, so pair k has the
    exponent 2k/d."""
    if d % 2:
        raise ValueError("d must be even")
    return encode(positions, base ** (-pairs(d) / d))


@sincos_1d.misconception("a ladder that reaches 1 / base")
def last_frequency_reached(positions, d, base=10000.0):
    """You spread the frequencies from 1 to exactly 1/base, by k/(d/2 - 1). Some libraries do that; the formula here
    is k/(d/2), whose last frequency stays a little above 1/base."""
    if d % 2:
        raise ValueError("d must be even")
    return encode(positions, ladder_to_the_end(d, base))


@sincos_1d.misconception("all sines, then all cosines")
def blocks(positions, d, base=10000.0):
    """You listed all sines first and all cosines after them. Many libraries do, and it is the same code in another
    order; here each sine is followed by its cosine."""
    pe = chapter.sincos_1d(positions, d, base)
    return np.concatenate([pe[..., 0::2], pe[..., 1::2]], axis=-1)


@sincos_1d.misconception("blocks with a ladder that reaches 1 / base")
def first_public_code(positions, d, base=10000.0):
    """That is how the paper's authors coded it: all sines, then all cosines, and frequencies down to exactly 1/base.
    Their formula, which is asked for here, lists sine and cosine in turn with the exponents 2k/d."""
    pe = last_frequency_reached(positions, d, base)
    return np.concatenate([pe[..., 0::2], pe[..., 1::2]], axis=-1)


@sincos_1d.misconception("cosine first")
def cosine_first(positions, d, base=10000.0):
    """You put the cosine before the sine. Even entries, counted from 0, hold the sines."""
    pe = chapter.sincos_1d(positions, d, base)
    return interleave(pe[..., 1::2], pe[..., 0::2])


@sincos_1d.misconception("counted from 1")
def counted_from_one(positions, d, base=10000.0):
    """Your vectors belong to the next position: you added 1. The positions are given, so use them as they are; the
    vector of position 0 is (0, 1, 0, 1, …)."""
    return chapter.sincos_1d(np.asarray(positions) + 1, d, base)


@sincos_1d.misconception("place in the list instead of position")
def places(positions, d, base=10000.0):
    """You encoded 0, 1, 2, … whatever positions were given. The vector depends on the position, not on its place in
    the list."""
    shape = np.shape(positions)
    return chapter.sincos_1d(np.arange(np.size(positions)).reshape(shape), d, base)


@sincos_1d.misconception("frequencies that grow")
def growing(positions, d, base=10000.0):
    """Your frequencies grow from pair to pair: the sign of the exponent is missing. The first pair is the fastest
    and turns 1 radian for each step; all others are slower."""
    if d % 2:
        raise ValueError("d must be even")
    return encode(positions, base ** (2 * pairs(d) / d))


@sincos_1d.misconception("slowest pair first")
def slowest_first(positions, d, base=10000.0):
    """You listed the pairs from the slowest to the fastest. Pair 0 has the frequency 1."""
    pe = chapter.sincos_1d(positions, d, base)
    return interleave(pe[..., 0::2][..., ::-1], pe[..., 1::2][..., ::-1])


@sincos_1d.misconception("base ignored")
def base_ignored(positions, d, base=10000.0):
    """You wrote 10,000 where the argument `base` belongs."""
    return chapter.sincos_1d(positions, d)


@sincos_1d.misconception("exponent rounded down to 0")
def integer_division(positions, d, base=10000.0):
    """All your pairs turn at the same speed: the exponents have been rounded down to 0. Divide with `/`, not `//`."""
    if d % 2:
        raise ValueError("d must be even")
    return encode(positions, base ** (-(2.0 * pairs(d) // d)))


@sincos_1d.misconception("nothing at position 0")
def padding_row(positions, d, base=10000.0):
    """You left the vector of position 0 at zero, as code does that keeps row 0 for padding. Position 0 has a vector
    like any other: (0, 1, 0, 1, …)."""
    positions = np.asarray(positions)
    return chapter.sincos_1d(positions, d, base) * (positions != 0)[..., None]


@sincos_1d.misconception("an array of integers for the answer")
def integer_answer(positions, d, base=10000.0):
    """Whole positions make your whole vectors whole: the array for the answer took its dtype from the positions, and
    every sine was cut off to an integer. Make the answer an array of floats."""
    positions = np.asarray(positions)
    return chapter.sincos_1d(positions, d, base).astype(positions.dtype)


@sincos_1d.misconception("positions in one axis only")
def one_axis(positions, d, base=10000.0):
    """Yours needs the positions in one axis. Write `positions[..., None]`, which gives an array of any shape one more
    axis, after `np.asarray`, which makes an array of a number or a list."""
    if np.ndim(positions) != 1:
        raise IndexError("too many indices for array")
    return chapter.sincos_1d(positions, d, base)


@sincos_1d.misconception("a list not made into an array")
def list_indexed(positions, d, base=10000.0):
    """A list or a number has no axes to index. Turn the positions into an array first, with `np.asarray`."""
    if d % 2:
        raise ValueError("d must be even")
    angles = positions[..., None] * base ** (-2 * pairs(d) / d)
    return interleave(np.sin(angles), np.cos(angles))


@sincos_1d.misconception("positions flattened")
def flattened(positions, d, base=10000.0):
    """You returned one row for each position in one long list. Keep the shape of the positions and add one axis of
    length d at its end."""
    return chapter.sincos_1d(np.ravel(positions), d, base)


@sincos_1d.misconception("odd width accepted")
def odd_accepted(positions, d, base=10000.0):
    """An odd d gives you a vector with a pair cut in half. Nothing later can tell: raise a ValueError."""
    return chapter.sincos_1d(positions, d + d % 2, base)[..., :d] if d % 2 else chapter.sincos_1d(positions, d, base)


@sincos_1d.misconception("odd width rounded down")
def odd_rounded_down(positions, d, base=10000.0):
    """For an odd d your vector comes out one number short, because d // 2 pairs fill only d - 1 entries. Nothing fits
    such a width: raise a ValueError."""
    return encode(positions, base ** (-2 * pairs(d) / d))


# -------------------------------------------------------------------------------------- offset_rotation

offset_rotation = Exercise(
    chapter.offset_rotation, points=3, difficulty=3, minutes=20, section="An offset is a rotation"
)


@offset_rotation.where
def rotation_entry(index, offset, d, base=10000.0):
    if index[0] // 2 != index[1] // 2:
        return f"between pair {index[0] // 2} and pair {index[1] // 2}"
    return f"in the block of pair {index[0] // 2}"


def blockwise(d, block):
    """A matrix of width d with `block(k)` for pair k on its diagonal."""
    R = np.zeros((d, d))
    for k in range(d // 2):
        R[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = block(k)
    return R


def turn(angle):
    """What moves (sin a, cos a) to (sin(a + angle), cos(a + angle))."""
    return [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]


@offset_rotation.visible
def one_pair():
    "A single pair"
    yield Case(1.0, 2, why="the four numbers of a block show alone")


@offset_rotation.visible
def two_pairs():
    "Two pairs, forwards and backwards"
    yield Case(3.0, 4, why="the second pair turns a hundred times more slowly")
    yield Case(-2.0, 4, why="a negative offset moves back")


@offset_rotation.visible
def small_steps():
    "A thousandth of a step, and half a step"
    yield Case(0.001, 6, why="who hardly moves hardly changes: this is close to the identity")
    yield Case(0.5, 6)


@offset_rotation.visible
def smaller_base():
    "A base that is not 10,000"
    yield Case(2.0, 6, 100.0)


@offset_rotation.hidden(weight=2)
def any_offset(rng):
    "Any offset, any width"
    yield Case(float(rng.uniform(1, 30)), 8)
    yield Case(float(rng.uniform(-400, -30)), 14)
    yield Case(float(rng.uniform(0.1, 0.9)), 32)


@offset_rotation.hidden
def rotation_any_base(rng):
    "Any base"
    yield Case(float(rng.uniform(1, 9)), 6, float(rng.uniform(20, 500)))
    yield Case(float(rng.uniform(-9, -1)), 12, float(rng.uniform(2e4, 9e5)))


@offset_rotation.misconception("turned the other way")
def turned_back(offset, d, base=10000.0):
    """Your matrix moves back by the offset. The pairs are (sine, cosine), so the block is [[cos, sin], [-sin, cos]];
    the textbook's matrix, with its minus at the top, is for (cosine, sine)."""
    return chapter.offset_rotation(offset, d, base).T


@offset_rotation.misconception("reflection")
def reflection(offset, d, base=10000.0):
    """Your blocks mirror each pair instead of turning it: two signs do not fit. sin(a + b) = sin a cos b + cos a sin b
    and cos(a + b) = cos a cos b - sin a sin b, so only one of the four numbers carries a minus."""
    omega = base ** (-2 * pairs(d) / d)
    return blockwise(d, lambda k: np.array(turn(offset * omega[k])) * [[1, 1], [-1, -1]])


@offset_rotation.misconception("no minus")
def no_minus(offset, d, base=10000.0):
    """All your signs are plus. In cos(a + b) = cos a cos b - sin a sin b the second term is taken away."""
    omega = base ** (-2 * pairs(d) / d)
    return blockwise(d, lambda k: np.array(turn(offset * omega[k])) * [[1, 1], [-1, 1]])


@offset_rotation.misconception("sine and cosine swapped")
def swapped(offset, d, base=10000.0):
    """You swapped sine and cosine in the blocks. Without an offset nothing moves, so the diagonal must be cos 0 = 1."""
    omega = base ** (-2 * pairs(d) / d)
    return blockwise(d, lambda k: turn(np.pi / 2 - offset * omega[k]))


@offset_rotation.misconception("all sines, then all cosines")
def block_layout(offset, d, base=10000.0):
    """Your matrix is for vectors that list all sines first and all cosines after them: it mixes entry k with entry
    k + d/2. Here the two of a pair are neighbours, so the blocks stand on the diagonal."""
    order = np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])
    return chapter.offset_rotation(offset, d, base)[np.ix_(order, order)]


@offset_rotation.misconception("one angle for all pairs")
def one_angle(offset, d, base=10000.0):
    """You turn every pair by the same angle. Pair k turns by the offset times its own frequency."""
    return blockwise(d, lambda k: turn(offset))


@offset_rotation.misconception("base ignored")
def rotation_base_ignored(offset, d, base=10000.0):
    """You wrote 10,000 where the argument `base` belongs."""
    return chapter.offset_rotation(offset, d)


@offset_rotation.misconception("k / d")
def rotation_halved_exponent(offset, d, base=10000.0):
    """Your exponents go up in steps of 1/d. Pair k has the frequency base ** (-2k/d)."""
    return blockwise(d, lambda k: turn(offset * base ** (-k / d)))


@offset_rotation.misconception("2i / d with i already even")
def rotation_doubled_exponent(offset, d, base=10000.0):
    """Your exponents go up in steps of 4/d: the 2 was counted twice. If i runs over 0, 2, 4, … the exponent is -i/d."""
    return blockwise(d, lambda k: turn(offset * base ** (-4 * k / d)))


@offset_rotation.misconception("sign of the offset lost")
def forward_only(offset, d, base=10000.0):
    """Your matrix moves forward whatever the sign of the offset. Keep the sign: a negative offset moves back."""
    return chapter.offset_rotation(abs(offset), d, base)


@offset_rotation.misconception("a ladder that reaches 1 / base")
def rotation_last_reached(offset, d, base=10000.0):
    """You spread the frequencies from 1 to exactly 1/base, by k/(d/2 - 1). The formula here is k/(d/2)."""
    omega = ladder_to_the_end(d, base)
    return blockwise(d, lambda k: turn(offset * omega[k]))


@offset_rotation.misconception("frequencies that grow")
def rotation_growing(offset, d, base=10000.0):
    """Your frequencies grow from pair to pair: the sign of the exponent is missing."""
    return blockwise(d, lambda k: turn(offset * base ** (2 * k / d)))


@offset_rotation.misconception("blocks in a list")
def blocks_in_a_list(offset, d, base=10000.0):
    """You returned the blocks one after the other. One matrix of shape (d, d) is asked for, with the blocks on its
    diagonal and zeros elsewhere."""
    return np.array([turn(offset * base ** (-2 * k / d)) for k in range(d // 2)])


@offset_rotation.misconception("diagonal only")
def diagonal_only(offset, d, base=10000.0):
    """You scale each entry by itself. The sine of the sum needs the cosine of the pair too, and the cosine needs the
    sine: each block has four numbers."""
    return np.diag(np.diag(chapter.offset_rotation(offset, d, base)))


@offset_rotation.misconception("the offset's vector on the diagonal")
def offset_vector(offset, d, base=10000.0):
    """You put the vector of the offset on the diagonal, as if positions were added by multiplying their entries. Write
    out sin(a + b) and cos(a + b): each needs both entries of the pair."""
    return np.diag(chapter.sincos_1d(offset, d, base))


@offset_rotation.misconception("right for position 0 only")
def outer_product(offset, d, base=10000.0):
    """Your matrix takes position 0 to the offset and every other position astray. It must work for every p: the four
    numbers of a block may not depend on p."""
    start, end = chapter.sincos_1d(0.0, d, base), chapter.sincos_1d(offset, d, base)
    return np.outer(end, start) / (start @ start)


# ---------------------------------------------------------------------------------- position_similarity

position_similarity = Exercise(
    chapter.position_similarity, points=2, difficulty=2, minutes=10, section="Only the offset counts"
)


@position_similarity.where
def offset_entry(index, offset, d, base=10000.0):
    return f"offset {np.asarray(offset)[index]:g}"


@position_similarity.visible
def similarity_by_hand():
    "The numbers of the page"
    yield Case(0, 4, why="a vector with itself gives its squared length, d / 2")
    yield Case(1, 4, why="cos 1 + cos 0.01, by hand")


@position_similarity.visible
def several_offsets():
    "Several offsets at once, in either direction"
    yield Case(np.array([0.0, 1.0, -1.0, 2.5]), 8, why="each offset has its own number, and the sign does not matter")
    yield Case([[1, 2, 3], [10, 20, 30]], 6, why="the answer has the shape of the offsets")


@position_similarity.visible
def similarity_other_base():
    "A base that is not 10,000"
    yield Case(2.0, 6, 100.0)


@position_similarity.hidden(weight=2)
def any_offsets(rng):
    "Any offsets, any width"
    yield Case(float(rng.uniform(1, 90)), 12)
    yield Case(rng.integers(-300, 300, size=5), 16)
    yield Case(rng.normal(scale=30, size=(2, 3)), 64)
    yield Case(rng.uniform(1, 20, size=4), 8, why="as many offsets as pairs, so a sum over the wrong axis fits")


@position_similarity.hidden
def similarity_any_base(rng):
    "Any base, and single precision"
    yield Case(rng.uniform(1, 20, size=3), 10, float(rng.uniform(20, 500)))
    yield Case(rng.uniform(1, 20, size=3).astype(np.float32), 6, float(rng.uniform(2e4, 9e5)))


@position_similarity.misconception("divided by d / 2")
def as_cosine(offset, d, base=10000.0):
    """You divided by the squared length: that is the cosine of the angle. The inner product itself is asked for."""
    return chapter.position_similarity(offset, d, base) / (d / 2)


@position_similarity.misconception("each pair twice")
def each_pair_twice(offset, d, base=10000.0):
    """You added a cosine for each of the d entries. A pair gives one cosine for its two entries together, so there are
    d/2 of them."""
    return 2 * chapter.position_similarity(offset, d, base)


@position_similarity.misconception("a frequency for each entry")
def frequency_for_each_entry(offset, d, base=10000.0):
    """You added d cosines, with a frequency for each entry. The two entries of a pair share one frequency and give one
    cosine, so there are d/2 of them."""
    return np.cos(np.asarray(offset, dtype=float)[..., None] * base ** (-np.arange(d) / d)).sum(axis=-1)


@position_similarity.misconception("a vector with itself")
def with_itself(offset, d, base=10000.0):
    """You multiplied the vector of the offset with itself: that is its squared length, always d/2. Take two positions
    that are so far apart, such as 0 and the offset."""
    return (chapter.sincos_1d(offset, d, base) ** 2).sum(axis=-1)


@position_similarity.misconception("2i / d with i already even")
def similarity_doubled_exponent(offset, d, base=10000.0):
    """Your exponents go up in steps of 4/d: the 2 was counted twice. If i runs over 0, 2, 4, … the exponent is -i/d."""
    return np.cos(np.asarray(offset, dtype=float)[..., None] * base ** (-4 * pairs(d) / d)).sum(axis=-1)


@position_similarity.misconception("all entries of the offset's vector")
def all_entries(offset, d, base=10000.0):
    """You added the sines too. Position 0 is (0, 1, 0, 1, …), so its inner product with the offset's vector takes only
    the cosines."""
    return chapter.sincos_1d(offset, d, base).sum(axis=-1)


@position_similarity.misconception("sines added up")
def sines(offset, d, base=10000.0):
    """You added the sines. sin a sin b + cos a cos b is the cosine of a - b, and for an offset of 0 the answer must be
    the squared length d/2."""
    return chapter.sincos_1d(offset, d, base)[..., 0::2].sum(axis=-1)


@position_similarity.misconception("squared distance")
def squared_distance(offset, d, base=10000.0):
    """You returned the squared distance, d - 2 times the inner product. The inner product itself is asked for."""
    return d - 2 * chapter.position_similarity(offset, d, base)


@position_similarity.misconception("one cosine of the summed angles")
def cosine_of_the_sum(offset, d, base=10000.0):
    """You added the angles and took one cosine. Take the cosine of each pair's angle first, then add."""
    return np.cos(np.asarray(offset, dtype=float) * (base ** (-2 * pairs(d) / d)).sum())


@position_similarity.misconception("summed over the offsets too")
def one_sum(offset, d, base=10000.0):
    """You added up everything, the offsets too. Sum over the last axis only, so that each offset keeps its number."""
    return np.sum(chapter.position_similarity(offset, d, base))


@position_similarity.misconception("summed over the offsets instead of the pairs")
def wrong_axis(offset, d, base=10000.0):
    """You summed over the offsets and kept the pairs. Sum over the axis of the pairs, which is the last one."""
    return np.cos(np.asarray(offset, dtype=float)[..., None] * base ** (-2 * pairs(d) / d)).sum(axis=0)


@position_similarity.misconception("a list for a number")
def list_for_a_number(offset, d, base=10000.0):
    """For one offset you returned a list of one number. One number in, one number out: let `offset[..., None]` add the
    only axis there is."""
    return np.atleast_1d(chapter.position_similarity(offset, d, base))


@position_similarity.misconception("base ignored")
def similarity_base_ignored(offset, d, base=10000.0):
    """You wrote 10,000 where the argument `base` belongs."""
    return chapter.position_similarity(offset, d)


@position_similarity.misconception("k / d")
def similarity_halved_exponent(offset, d, base=10000.0):
    """Your exponents go up in steps of 1/d. Pair k has the frequency base ** (-2k/d)."""
    return np.cos(np.asarray(offset, dtype=float)[..., None] * base ** (-pairs(d) / d)).sum(axis=-1)


@position_similarity.misconception("a ladder that reaches 1 / base")
def similarity_last_reached(offset, d, base=10000.0):
    """You spread the frequencies from 1 to exactly 1/base, by k/(d/2 - 1). The formula here is k/(d/2)."""
    return np.cos(np.asarray(offset, dtype=float)[..., None] * ladder_to_the_end(d, base)).sum(axis=-1)


# --------------------------------------------------------------------------------------- position_angle

position_angle = Exercise(
    chapter.position_angle, points=2, difficulty=2, minutes=10, section="Distance and angle", tolerance=1e-7,
    single=1e-5,  # near 1 an arccosine makes much of the last digit
)  # fmt: skip


@position_angle.where
def angle_entry(index, offset, d, base=10000.0):
    return f"offset {np.asarray(offset)[index]:g}"


@position_angle.visible
def known_angles():
    "One pair, whose hand turns 1 radian for each step, and two pairs"
    yield Case(4.0, 2, why="a single pair turns 1 radian for each step, here past half a circle: 2 pi - 4 is left")
    yield Case(3 * np.pi, 2, why="the vectors point in opposite directions")
    yield Case(1, 4)


@position_angle.visible
def several_angles():
    "Several offsets at once, in either direction"
    yield Case(np.array([0.0, 1.0, -1.0, 2.5]), 8, why="the sign does not matter")
    yield Case([[1, 2, 3], [10, 20, 30]], 6, why="the answer has the shape of the offsets")


@position_angle.visible
def same_place():
    "A position and itself, and its neighbour"
    yield Case(np.array([0.0, 1.0]), 6, why="a cosine that rounding has pushed past 1 makes arccos return NaN")


@position_angle.visible
def angle_other_base():
    "A base that is not 10,000"
    yield Case(2.0, 6, 100.0)


@position_angle.hidden(weight=2)
def any_angles(rng):
    "Any offsets, any width"
    yield Case(float(rng.uniform(1, 90)), 12)
    yield Case(rng.integers(-300, 300, size=5), 16)
    yield Case(rng.normal(scale=30, size=(2, 3)), 64)


@position_angle.hidden
def angle_any_base(rng):
    "Any base"
    yield Case(rng.uniform(1, 20, size=3), 10, float(rng.uniform(20, 500)))
    yield Case(rng.uniform(1, 20, size=2), 6, float(rng.uniform(2e4, 9e5)))


@position_angle.hidden
def same_place_any_width(rng):
    "Offset 0 at several widths, and offsets close to it"
    yield Case(np.array([0.0, float(rng.uniform(1, 3))]), 6)
    yield Case(np.array([0.0, 0.05]), 2 * int(rng.integers(3, 30)))


def cosine(offset, d, base):
    """The cosine of the angle."""
    return chapter.position_similarity(offset, d, base) / (d / 2)


@position_angle.misconception("not divided by the lengths")
def not_divided(offset, d, base=10000.0):
    """You took the inner product for the cosine. Divide it by the two lengths, sqrt(d/2) each: together d/2."""
    return np.arccos(np.clip(chapter.position_similarity(offset, d, base), -1, 1))


@position_angle.misconception("divided by d")
def divided_by_d(offset, d, base=10000.0):
    """You divided by d. The squared length is d/2, because a pair adds 1 and there are d/2 pairs."""
    return np.arccos(cosine(offset, d, base) / 2)


@position_angle.misconception("divided by one length")
def divided_once(offset, d, base=10000.0):
    """You divided by one length. The inner product holds both: divide by sqrt(d/2) twice."""
    return np.arccos(np.clip(cosine(offset, d, base) * np.sqrt(d / 2), -1, 1))


@position_angle.misconception("not clipped")
def not_clipped(offset, d, base=10000.0):
    """Rounding pushed your cosine past 1, and `np.arccos` answers that with NaN. Clip the cosine to [-1, 1] first."""
    here, there = chapter.sincos_1d(0.0, d, base), chapter.sincos_1d(offset, d, base)
    return np.arccos(there @ here / (np.linalg.norm(here) * np.linalg.norm(there, axis=-1)))


@position_angle.misconception("clipped at 0")
def clipped_at_zero(offset, d, base=10000.0):
    """You clipped the cosine at 0, which turns every angle above 90 degrees into 90. A cosine goes down to -1."""
    return np.arccos(np.clip(cosine(offset, d, base), 0, 1))


@position_angle.misconception("the distance")
def the_distance(offset, d, base=10000.0):
    """You returned the distance of the two vectors. The angle is asked for."""
    return np.sqrt(np.maximum(d - 2 * chapter.position_similarity(offset, d, base), 0))


@position_angle.misconception("angle of the sum of the hands")
def arctangent(offset, d, base=10000.0):
    """You took the arctangent of two sums, of sines and of cosines. The angle between two vectors of d numbers comes
    from their inner product: its cosine is the inner product over d/2."""
    vector = chapter.sincos_1d(offset, d, base)
    return np.arctan2(vector[..., 0::2].sum(axis=-1), vector[..., 1::2].sum(axis=-1))


@position_angle.misconception("sign kept")
def signed_angle(offset, d, base=10000.0):
    """You gave a negative offset a negative angle. The angle between two vectors has no sign: it goes from 0 to pi."""
    return np.sign(offset) * chapter.position_angle(offset, d, base)


@position_angle.misconception("degrees")
def degrees(offset, d, base=10000.0):
    """Your angle is in degrees. Radians are asked for, from 0 to pi."""
    return np.degrees(chapter.position_angle(offset, d, base))


@position_angle.misconception("the cosine of the angle")
def the_cosine(offset, d, base=10000.0):
    """You returned the cosine of the angle. Take its `np.arccos`."""
    return cosine(offset, d, base)


@position_angle.misconception("arcsine")
def arcsine(offset, d, base=10000.0):
    """You took the arcsine of the cosine, which is 90 degrees less the angle. The inverse of the cosine is
    `np.arccos`."""
    return np.arcsin(np.clip(cosine(offset, d, base), -1, 1))


@position_angle.misconception("the rescaled squared distance")
def rescaled_distance(offset, d, base=10000.0):
    """You returned the squared distance over 2d, which is (1 - cos) / 2. It grows with the angle but is not the angle:
    solve it for the cosine and take `np.arccos`."""
    return (1 - cosine(offset, d, base)) / 2


@position_angle.misconception("half the angle")
def half_angle(offset, d, base=10000.0):
    """You found half the angle. The distance of two vectors of length r is 2 r sin(angle / 2): double what the arcsine
    gives."""
    return chapter.position_angle(offset, d, base) / 2


@position_angle.misconception("squared distance read as 2d (1 - cos)")
def wrong_radius(offset, d, base=10000.0):
    """You solved the squared distance with a squared length of d. It is d/2, so the squared distance is d (1 - cos)."""
    return np.arccos((1 + cosine(offset, d, base)) / 2)


@position_angle.misconception("mean of the pairs' angles")
def mean_of_angles(offset, d, base=10000.0):
    """You averaged the angles by which the pairs turn. The angle between the two whole vectors has the average of the
    pairs' cosines for its cosine."""
    return np.abs(np.asarray(offset, dtype=float)[..., None] * base ** (-2 * pairs(d) / d)).mean(axis=-1)


@position_angle.misconception("angle of the fastest pair")
def fastest_pair(offset, d, base=10000.0):
    """You took the angle of the fastest pair alone. All d/2 pairs count: average their cosines first."""
    return np.arccos(np.cos(np.asarray(offset, dtype=float)))


@position_angle.misconception("base ignored")
def angle_base_ignored(offset, d, base=10000.0):
    """You wrote 10,000 where the argument `base` belongs."""
    return chapter.position_angle(offset, d)


@position_angle.misconception("k / d")
def angle_halved_exponent(offset, d, base=10000.0):
    """Your exponents go up in steps of 1/d. Pair k has the frequency base ** (-2k/d)."""
    angles = np.asarray(offset, dtype=float)[..., None] * base ** (-pairs(d) / d)
    return np.arccos(np.clip(np.cos(angles).mean(axis=-1), -1, 1))


@position_angle.misconception("2i / d with i already even")
def angle_doubled_exponent(offset, d, base=10000.0):
    """Your exponents go up in steps of 4/d: the 2 was counted twice. If i runs over 0, 2, 4, … the exponent is -i/d."""
    angles = np.asarray(offset, dtype=float)[..., None] * base ** (-4 * pairs(d) / d)
    return np.arccos(np.clip(np.cos(angles).mean(axis=-1), -1, 1))


@position_angle.misconception("a list for a number")
def list_for_an_angle(offset, d, base=10000.0):
    """For one offset you returned a list of one number. One number in, one number out."""
    return np.atleast_1d(chapter.position_angle(offset, d, base))
