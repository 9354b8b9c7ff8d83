"""The exercises of the chapter *Resolution*."""

import numpy as np

from autograder.judging.compare import SHORT
from autograder.judging.exercise import Case, Exercise, Raises
from solutions import resolution as chapter


def uneven(*shape):
    """Small whole numbers without a pattern that a resize would hide."""
    number = np.arange(np.prod(shape))
    return ((number * number + 3 * number) % 11 - 4.0).reshape(shape)


# Matrices that resize one axis, right and wrong: the misconceptions are built from them.


def half_pixel(n, n_new):
    return (np.arange(n_new) + 0.5) * n / n_new - 0.5


def corner_aligned(n, n_new):
    return np.linspace(0, n - 1, n_new)


def asymmetric(n, n_new):
    return np.minimum(np.arange(n_new) * n / n_new, n - 1)


def mix(s, n, border="clamp"):
    """Matrix (n_new, n) that reads an axis of n cells at the coordinates s, linearly."""
    if border == "clamp":
        s = np.clip(s, 0, n - 1)
    low = np.floor(s).astype(int)
    if border == "extrapolate":
        low = np.clip(low, 0, max(n - 2, 0))
    t = s - low
    axis = np.zeros((len(s), n))
    for i, (j, weight) in enumerate(zip(low, t, strict=True)):
        for cell, share in ((j, 1 - weight), (j + 1, weight)):
            if border == "zero" and not 0 <= cell < n:
                continue
            axis[i, cell % n if border == "wrap" else min(cell, n - 1)] += share
    return axis


def right_axis(n, n_new):
    return mix(half_pixel(n, n_new), n)


def nearest_axis(n, n_new):
    return np.eye(n)[np.clip(np.round(half_pixel(n, n_new)), 0, n - 1).astype(int)]


def antialiased_axis(n, n_new):
    reach = max(1.0, n / n_new)
    axis = np.maximum(0, 1 - np.abs(np.arange(n) - half_pixel(n, n_new)[:, None]) / reach)
    return axis / axis.sum(axis=1, keepdims=True)


def cubic_axis(n, n_new, a=-0.75):
    s = half_pixel(n, n_new)
    axis = np.zeros((n_new, n))
    for i, j in enumerate(np.floor(s).astype(int)):
        for cell in range(j - 1, j + 3):
            x = abs(s[i] - cell)
            near, far = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * (x**3 - 5 * x**2 + 8 * x - 4)
            axis[i, min(max(cell, 0), n - 1)] += near if x <= 1 else far
    return axis


def both(axis):
    return np.kron(axis, axis)


def resized(P_pos, n_prefix, old_grid, new_grid, axis=right_axis):
    """Resize a table with the matrices `axis(n, n_new)`, without a word about its number of rows."""
    grid = P_pos[n_prefix:].reshape(*old_grid, -1)
    rows, columns = axis(old_grid[0], new_grid[0]), axis(old_grid[1], new_grid[1])
    patches = np.einsum("ir,jc,rcd->ijd", rows, columns, grid)
    return np.concatenate([P_pos[:n_prefix], patches.reshape(-1, P_pos.shape[1])])


def counted(P_pos, n_prefix, old_grid):
    """Raise where the table does not fit its grid, so that a misconception is wrong in one thing only."""
    if len(P_pos) != n_prefix + old_grid[0] * old_grid[1]:
        raise ValueError("wrong number of rows")


# -------------------------------------------------------------------------------- bilinear_resize_matrix

bilinear_resize_matrix = Exercise(
    chapter.bilinear_resize_matrix, points=3, difficulty=2, minutes=20, section="The resize as a matrix"
)


@bilinear_resize_matrix.where
def weight_of(index, p, p_new):
    new = f"new pixel {divmod(index[0], p_new)}"
    if p * p <= SHORT:  # the message shows the whole row
        return f"the weights for {new}"
    return f"the weight of old pixel {divmod(index[1], p)} for {new}"


@bilinear_resize_matrix.visible
def one_pixel():
    "One pixel becomes four"
    yield Case(1, 2, why="every new pixel copies the only old one")


@bilinear_resize_matrix.visible
def two_to_four():
    "Two pixels a side become four"
    yield Case(2, 4, why="along an axis the weights are 1, 3/4, 1/4, 0 and back")


@bilinear_resize_matrix.visible
def unchanged():
    "The same size"
    yield Case(2, 2, why="a resize to the same size changes nothing")
    yield Case(3, 3)


@bilinear_resize_matrix.visible
def shrunk():
    "Fewer pixels than before"
    yield Case(4, 2, why="each new pixel averages a block of two by two")
    yield Case(3, 1, why="without antialiasing the only new pixel reads the middle one alone")
    yield Case(5, 3)


@bilinear_resize_matrix.hidden(weight=2)
def any_growth(rng):
    "Any enlargement"
    for p, p_new in ((2, 5), (3, 8), (4, 6)):
        yield Case(p, p_new)
    p = int(rng.integers(4, 7))
    yield Case(p, p + int(rng.integers(1, 8)))


@bilinear_resize_matrix.hidden(weight=2)
def any_shrinking(rng):
    "Any reduction"
    for p, p_new in ((7, 4), (6, 2), (8, 7)):
        yield Case(p, p_new)
    p_new = int(rng.integers(2, 5))
    yield Case(p_new + int(rng.integers(2, 7)), p_new)


@bilinear_resize_matrix.misconception("corner-aligned")
def matrix_corner_aligned(p, p_new):
    """You laid the first and the last centre of both grids on each other (align_corners=True). Here the borders of
    the patch coincide, not the centres: new index i reads at (i + 1/2) p / p_new - 1/2."""
    return both(mix(corner_aligned(p, p_new), p))


@bilinear_resize_matrix.misconception("asymmetric")
def matrix_asymmetric(p, p_new):
    """You read at i p / p_new, which lays the upper left corners on each other and shifts the picture by part of a
    pixel. Pixels have centres: add 1/2 before you scale and take 1/2 off after."""
    return both(mix(asymmetric(p, p_new), p))


@bilinear_resize_matrix.misconception("extrapolated at the border")
def matrix_extrapolated(p, p_new):
    """At the border you went on along the line through the last two pixels, so some weights are below 0 or above 1.
    Here the coordinate is clamped to [0, p - 1]: outside, the border pixel is repeated."""
    return both(mix(half_pixel(p, p_new), p, "extrapolate"))


@bilinear_resize_matrix.misconception("index −1 wraps round")
def matrix_wrapped(p, p_new):
    """At the upper and left border you read index -1, which in Python is the last pixel, from the other side of the
    patch. Clamp the coordinate to [0, p - 1] before you take its floor."""
    return both(mix(half_pixel(p, p_new), p, "wrap"))


@bilinear_resize_matrix.misconception("zeros outside the patch")
def matrix_zero_padded(p, p_new):
    """At the border your rows sum to less than 1, as if there were zeros around the patch. Clamp the coordinate to
    [0, p - 1]: outside, the border pixel is repeated."""
    return both(mix(half_pixel(p, p_new), p, "zero"))


@bilinear_resize_matrix.misconception("border weight overwritten")
def matrix_overwritten(p, p_new):
    """Where the coordinate is the last pixel, its two neighbours are the same pixel, and you wrote the second weight,
    0, over the first. Add the weights instead of setting them."""
    s = np.clip(half_pixel(p, p_new), 0, p - 1)
    low = s.astype(int)
    axis = np.zeros((p_new, p))
    axis[np.arange(p_new), low] = 1 - (s - low)
    axis[np.arange(p_new), np.minimum(low + 1, p - 1)] = s - low
    return both(axis)


@bilinear_resize_matrix.misconception("weights exchanged")
def matrix_weights_exchanged(p, p_new):
    """You gave the fraction t to the lower neighbour. The nearer of the two gets more: 1 - t for floor(s), t for the
    next one."""
    s = np.clip(half_pixel(p, p_new), 0, p - 1)
    low = s.astype(int)
    axis = np.zeros((p_new, p))
    np.add.at(axis, (np.arange(p_new), low), s - low)
    np.add.at(axis, (np.arange(p_new), np.minimum(low + 1, p - 1)), 1 - (s - low))
    return both(axis)


@bilinear_resize_matrix.misconception("nearest pixel")
def matrix_nearest(p, p_new):
    """Each of your new pixels copies one old one (nearest neighbour). Bilinear means a mix of the two neighbours
    along each axis, weighted by nearness."""
    return both(nearest_axis(p, p_new))


@bilinear_resize_matrix.misconception("transposed")
def matrix_transposed(p, p_new):
    """Your matrix has one row for each old pixel. It multiplies the patch from the left: one row for each new pixel,
    one column for each old one."""
    return both(right_axis(p, p_new)).T


@bilinear_resize_matrix.misconception("one axis only")
def matrix_of_one_axis(p, p_new):
    """You built the matrix of one axis. A patch has two: the weight of pixel (u, v) is the product of the weights
    along both, and `np.kron` makes all these products."""
    return right_axis(p, p_new)


@bilinear_resize_matrix.misconception("scale upside down")
def matrix_scale_inverted(p, p_new):
    """You scaled by p_new / p. Each new pixel asks where it lies in the old patch, so the factor is p / p_new."""
    return both(mix((np.arange(p_new) + 0.5) * p_new / p - 0.5, p))


@bilinear_resize_matrix.misconception("antialiased")
def matrix_antialiased(p, p_new):
    """When the patch shrinks you average over a wider window (antialiasing). Here a new pixel
    reads at most two old ones along each axis, however much the patch shrinks."""
    return both(antialiased_axis(p, p_new))


@bilinear_resize_matrix.misconception("half added, not taken off")
def matrix_half_once(p, p_new):
    """You added 1/2 before scaling and did not take 1/2 off after. The 1/2 turns an index into a place; to read an
    old index you have to turn the place back."""
    return both(mix((np.arange(p_new) + 0.5) * p / p_new, p))


# -------------------------------------------------------------------------------------- resize_pos_embed

resize_pos_embed = Exercise(
    chapter.resize_pos_embed, points=4, difficulty=3, minutes=25, section="A table is a picture"
)


@resize_pos_embed.where
def table_entry(index, P_pos, n_prefix, old_grid, new_grid):
    if index[0] < n_prefix:
        return f"prefix row {index[0]}"
    return f"patch {divmod(index[0] - n_prefix, new_grid[1])}"


@resize_pos_embed.visible
def by_hand():
    "Two cells in a row become four"
    yield Case(np.array([[5.0], [0.0], [8.0]]), 1, (1, 2), (1, 4), why="you can check it by hand: 5 stays, 0, 2, 6, 8")


@resize_pos_embed.visible
def a_wide_grid():
    "Two rows of three become three of five"
    yield Case(uneven(7, 2), 1, (2, 3), (3, 5), why="neither grid is square, and the axes grow by different factors")


@resize_pos_embed.visible
def as_many_cells():
    "As many cells in another shape"
    yield Case(uneven(17, 3), 1, (2, 8), (4, 4), why="16 patches before and after, but not in the same places")


@resize_pos_embed.visible
def any_prefix():
    "No prefix rows, and three"
    yield Case(uneven(6, 2), 0, (3, 2), (2, 5))
    yield Case(uneven(9, 2), 3, (3, 2), (4, 3), why="three rows belong to no patch")


@resize_pos_embed.visible
def fewer_cells():
    "A smaller grid"
    yield Case(uneven(13, 2), 1, (2, 6), (1, 2), why="without antialiasing each new cell reads two old ones a side")


@resize_pos_embed.visible
def a_table_that_does_not_fit():
    "A table with too few or too many rows"
    yield Raises(uneven(6, 2), 1, (2, 3), (4, 6), why="one prefix row and 2 by 3 patches make 7 rows, not 6")
    yield Raises(uneven(8, 2), 1, (2, 3), (4, 6), why="one prefix row and 2 by 3 patches make 7 rows, not 8")
    yield Case(uneven(7, 2), 1, (2, 3), (2, 4))


@resize_pos_embed.hidden(weight=3)
def any_grids(rng):
    "Any two grids, any prefix"
    yield Case(rng.normal(size=(13, 5)), 1, (3, 4), (7, 6))
    yield Case(rng.normal(size=(35, 6)), 5, (6, 5), (9, 11))
    yield Case(rng.normal(size=(12, 3)), 0, (3, 4), (5, 3), why="as many channels as grid rows")
    yield Case(rng.normal(size=(17, 4)), 1, (4, 4), (3, 7), why="as many channels as rows and columns")
    yield Case(rng.normal(size=(29, 3)), 1, (7, 4), (3, 2))
    h, w = (int(n) for n in rng.integers(2, 8, size=2))
    yield Case(rng.normal(size=(2 + 15, 3)), 2, (3, 5), (h, w + 7))


@resize_pos_embed.hidden
def any_shape_of_the_same_count(rng):
    "Equal counts, other shapes"
    yield Case(rng.normal(size=(17, 3)), 1, (2, 8), (4, 4))
    yield Case(rng.normal(size=(17, 3)), 1, (4, 4), (8, 2))
    yield Case(rng.normal(size=(12, 2)), 0, (3, 4), (4, 3))


@resize_pos_embed.hidden
def single_precision(rng):
    "A float32 table"
    yield Case(rng.normal(size=(14, 3)).astype(np.float32), 2, (3, 4), (5, 6))


@resize_pos_embed.hidden
def any_misfit(rng):
    "Rows and grid that do not belong together"
    d = int(rng.integers(2, 6))
    yield Raises(rng.normal(size=(12, d)), 1, (3, 4), (6, 8))
    yield Raises(rng.normal(size=(25, d)), 1, (3, 4), (6, 8), why="25 is a prefix row and twice 12")
    yield Raises(rng.normal(size=(13, d)), 0, (3, 4), (3, 4))
    yield Case(rng.normal(size=(13, d)), 1, (3, 4), (4, 4))


def with_axis(axis):
    """A misconception that differs in how an axis is read."""

    def resize(P_pos, n_prefix, old_grid, new_grid):
        counted(P_pos, n_prefix, old_grid)
        return resized(P_pos, n_prefix, old_grid, new_grid, axis)

    return resize


@resize_pos_embed.misconception("corner-aligned")
def table_corner_aligned(P_pos, n_prefix, old_grid, new_grid):
    """You laid the centres of the corner cells of both grids on each other (align_corners=True). Here the borders of
    the image coincide: new index i reads at (i + 1/2) n / n_new - 1/2."""
    return with_axis(lambda n, n_new: mix(corner_aligned(n, n_new), n))(P_pos, n_prefix, old_grid, new_grid)


@resize_pos_embed.misconception("asymmetric")
def table_asymmetric(P_pos, n_prefix, old_grid, new_grid):
    """You read at i n / n_new, which lays the upper left corners on each other and shifts every position by part of
    a cell. Cells have centres: add 1/2 before you scale and take 1/2 off after."""
    return with_axis(lambda n, n_new: mix(asymmetric(n, n_new), n))(P_pos, n_prefix, old_grid, new_grid)


@resize_pos_embed.misconception("extrapolated at the border")
def table_extrapolated(P_pos, n_prefix, old_grid, new_grid):
    """At the border you went on along the line through the last two cells. Here the coordinate is clamped to
    [0, n - 1]: outside, the border cell is repeated."""
    return with_axis(lambda n, n_new: mix(half_pixel(n, n_new), n, "extrapolate"))(P_pos, n_prefix, old_grid, new_grid)


@resize_pos_embed.misconception("index −1 wraps round")
def table_wrapped(P_pos, n_prefix, old_grid, new_grid):
    """At the upper and left border you read index -1, which in Python is the last cell, from the other side of the
    image. Clamp the coordinate to [0, n - 1] before you take its floor."""
    return with_axis(lambda n, n_new: mix(half_pixel(n, n_new), n, "wrap"))(P_pos, n_prefix, old_grid, new_grid)


@resize_pos_embed.misconception("nearest cell")
def table_nearest(P_pos, n_prefix, old_grid, new_grid):
    """Each of your new cells copies one old one (nearest neighbour), so neighbours get the same position. Bilinear
    means a mix of the two neighbours along each axis."""
    return with_axis(nearest_axis)(P_pos, n_prefix, old_grid, new_grid)


@resize_pos_embed.misconception("bicubic")
def table_bicubic(P_pos, n_prefix, old_grid, new_grid):
    """You resized with cubic pieces, as many libraries do for position tables. Here the resize is bilinear: two
    neighbours along each axis, not four."""
    return with_axis(cubic_axis)(P_pos, n_prefix, old_grid, new_grid)


@resize_pos_embed.misconception("antialiased")
def table_antialiased(P_pos, n_prefix, old_grid, new_grid):
    """When the grid shrinks you average over a wider window (antialiasing). Here a new cell reads at most two old
    ones along each axis, however much the grid shrinks."""
    return with_axis(antialiased_axis)(P_pos, n_prefix, old_grid, new_grid)


@resize_pos_embed.misconception("unchanged when the counts are equal")
def table_early_return(P_pos, n_prefix, old_grid, new_grid):
    """You return the table as it is when the number of patches stays the same. Two rows of eight are not four rows
    of four: compare the grids, not the counts."""
    counted(P_pos, n_prefix, old_grid)
    if old_grid[0] * old_grid[1] == new_grid[0] * new_grid[1]:
        return P_pos
    return resized(P_pos, n_prefix, old_grid, new_grid)


@resize_pos_embed.misconception("rows and columns swapped")
def table_axes_swapped(P_pos, n_prefix, old_grid, new_grid):
    """You read the grids as (columns, rows). They are (rows, columns), like the shape of an image, and the table runs
    along the rows."""
    counted(P_pos, n_prefix, old_grid)
    return resized(P_pos, n_prefix, old_grid[::-1], new_grid[::-1])


@resize_pos_embed.misconception("new grid swapped")
def table_new_grid_swapped(P_pos, n_prefix, old_grid, new_grid):
    """You made the new grid as high as it should be wide. Both grids are (rows, columns)."""
    counted(P_pos, n_prefix, old_grid)
    return resized(P_pos, n_prefix, old_grid, new_grid[::-1])


@resize_pos_embed.misconception("flattened column by column")
def table_column_major(P_pos, n_prefix, old_grid, new_grid):
    """Your new rows run down the columns of the grid. Raster order goes along the rows: left to right, then down."""
    counted(P_pos, n_prefix, old_grid)
    table = resized(P_pos, n_prefix, old_grid, new_grid)
    patches = table[n_prefix:].reshape(*new_grid, -1).transpose(1, 0, 2).reshape(-1, table.shape[1])
    return np.concatenate([table[:n_prefix], patches])


@resize_pos_embed.misconception("a square grid assumed")
def table_square(P_pos, n_prefix, old_grid, new_grid):
    """You took the old grid to be a square, from the root of the number of patches. `old_grid` says what it is."""
    counted(P_pos, n_prefix, old_grid)
    side = int(np.sqrt(old_grid[0] * old_grid[1]))
    return resized(P_pos, n_prefix, (side, side), new_grid)


@resize_pos_embed.misconception("channels first without a transpose")
def table_not_permuted(P_pos, n_prefix, old_grid, new_grid):
    """You reshaped the table straight to (d, rows, columns). A reshape moves no number, so your channels are mixed
    with the grid: reshape to (rows, columns, d) and transpose if you want the channels first."""
    counted(P_pos, n_prefix, old_grid)
    grid = P_pos[n_prefix:].reshape(-1, *old_grid).transpose(1, 2, 0)
    return resized(np.concatenate([P_pos[:n_prefix], grid.reshape(-1, grid.shape[2])]), n_prefix, old_grid, new_grid)


@resize_pos_embed.misconception("resized along the list")
def table_one_dimensional(P_pos, n_prefix, old_grid, new_grid):
    """You resized the list of patches as one long row. The end of one grid row and the start of the next are
    neighbours in the list and far apart in the image: resize both axes of the grid."""
    counted(P_pos, n_prefix, old_grid)
    n, n_new = old_grid[0] * old_grid[1], new_grid[0] * new_grid[1]
    return np.concatenate([P_pos[:n_prefix], right_axis(n, n_new) @ P_pos[n_prefix:]])


@resize_pos_embed.misconception("always one prefix row")
def table_prefix_fixed(P_pos, n_prefix, old_grid, new_grid):
    """You took exactly one row to be the prefix. `n_prefix` says how many there are: none, or one for the class token
    and one for each register."""
    counted(P_pos, n_prefix, old_grid)
    return resized(P_pos, 1, old_grid, new_grid)


@resize_pos_embed.misconception("prefix rows lost")
def table_prefix_lost(P_pos, n_prefix, old_grid, new_grid):
    """The prefix rows are gone. They have no place on the grid, but the sequence still has their tokens: put them
    back in front, as they were."""
    counted(P_pos, n_prefix, old_grid)
    return resized(P_pos, n_prefix, old_grid, new_grid)[n_prefix:]


@resize_pos_embed.misconception("prefix rows set to zero")
def table_prefix_zeroed(P_pos, n_prefix, old_grid, new_grid):
    """Your prefix rows are zero. That is right for a fixed sine-cosine table, whose prefix rows are zero already; a
    learned table has learned them: copy them."""
    counted(P_pos, n_prefix, old_grid)
    table = resized(P_pos, n_prefix, old_grid, new_grid)
    table[:n_prefix] = 0
    return table


@resize_pos_embed.misconception("prefix rows at the end")
def table_prefix_last(P_pos, n_prefix, old_grid, new_grid):
    """You put the prefix rows after the patches. They come first, in the table as in the sequence."""
    counted(P_pos, n_prefix, old_grid)
    return np.roll(resized(P_pos, n_prefix, old_grid, new_grid), -n_prefix, axis=0)


@resize_pos_embed.misconception("rows too many are cut off")
def table_not_counted(P_pos, n_prefix, old_grid, new_grid):
    """Rows too many vanish without a word. A table that does not fit its grid means that the grid or the prefix is
    wrong: raise a ValueError."""
    return resized(P_pos[: n_prefix + old_grid[0] * old_grid[1]], n_prefix, old_grid, new_grid)


@resize_pos_embed.misconception("prefix taken from what is left over")
def table_prefix_guessed(P_pos, n_prefix, old_grid, new_grid):
    """You take every row that the grid does not need for a prefix row. Then a table with a row too many passes, and
    all positions shift by one: compare with `n_prefix` and raise a ValueError."""
    return resized(P_pos, len(P_pos) - old_grid[0] * old_grid[1], old_grid, new_grid)


# --------------------------------------------------------------------------------------------- pi_resize

pi_resize = Exercise(
    chapter.pi_resize, points=2, difficulty=2, minutes=10, section="A filter that gives the same token", tolerance=1e-8
)

ONE_TO_FOUR = np.ones((4, 1))  # one pixel becomes four
TWO_TO_ONE = np.array([[0.5, 0.5]])  # two pixels become their mean
HALVED = both(right_axis(4, 2))
LOPSIDED = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 4.0]])


@pi_resize.visible
def one_pixel_by_hand():
    "One pixel becomes four"
    yield Case(np.array([6.0]), ONE_TO_FOUR, why="four equal pixels share the weight: 1.5 each")


@pi_resize.visible
def grown():
    "Two pixels a side become three"
    yield Case(
        np.array([1.0, -2.0, 0.5, 4.0]), both(right_axis(2, 3)), why="the filter that leaves every token as it is"
    )


@pi_resize.visible
def shrunk_by_hand():
    "Two pixels become one, and four a side become two"
    yield Case(np.array([1.0, 5.0]), TWO_TO_ONE, why="by hand: the least squares answer is 6")
    yield Case(np.arange(16.0), HALVED, why="for halving the answer is 4 B w")


@pi_resize.visible
def several_filters():
    "Three filters as columns"
    filters = np.array([[1.0, 0.0, 2.0], [3.0, -1.0, 0.0], [0.0, 5.0, 1.0], [2.0, 2.0, -3.0]])
    yield Case(filters, both(right_axis(2, 3)), why="each column is a filter, and each filter is resized by itself")


@pi_resize.visible
def square_matrix():
    "As many new pixels as old ones"
    yield Case(np.array([2.0, 4.0, 8.0]), LOPSIDED, why="B is square, so a forgotten transpose keeps the shape")


@pi_resize.hidden(weight=2)
def any_growth_of_a_filter(rng):
    "Any enlargement"
    yield Case(rng.normal(size=9), both(right_axis(3, 5)))
    yield Case(rng.normal(size=(16, 6)), both(right_axis(4, 7)))
    yield Case(rng.normal(size=(9, 9)), both(right_axis(3, 6)), why="as many filters as old pixels")
    p = int(rng.integers(2, 6))
    yield Case(rng.normal(size=p * p), both(right_axis(p, p + int(rng.integers(1, 5)))))


@pi_resize.hidden(weight=2)
def any_shrinking_of_a_filter(rng):
    "Any reduction"
    yield Case(rng.normal(size=25), both(right_axis(5, 3)))
    yield Case(rng.normal(size=(36, 5)), both(right_axis(6, 4)))
    yield Case(rng.normal(size=(36, 36)), both(right_axis(6, 3)), why="as many filters as old pixels")


@pi_resize.hidden
def single_precision_filters(rng):
    "float32 filters"
    yield Case(rng.normal(size=(9, 4)).astype(np.float32), both(right_axis(3, 4)))


@pi_resize.misconception("resized like an image")
def filter_resized(w, B):
    """You resized the filter like an image. Then every old pixel is counted once for each new pixel it covers, and
    the token grows with the area: four times for a doubled side. Use the pseudoinverse of B transposed."""
    return B @ w


@pi_resize.misconception("divided by the area")
def filter_over_area(w, B):
    """You resized the filter like an image and divided by the growth of the area. That mends the scale (exactly for
    one pixel and for halving), but every interpolated pixel still carries the wrong weight. Use the pseudoinverse
    of B transposed."""
    return B @ w * (B.shape[1] / B.shape[0])


@pi_resize.misconception("multiplied by the area")
def filter_times_area(w, B):
    """You multiplied the resized filter by the growth of the area. More pixels have to share the weight, so each gets
    less, and even the right factor only mends the scale. Use the pseudoinverse of B transposed."""
    return B @ w * (B.shape[0] / B.shape[1])


@pi_resize.misconception("length kept")
def filter_same_length(w, B):
    """You scaled the resized filter to its old length. What must stay is the token, the inner product with a patch,
    and the patch has been resized too. Use the pseudoinverse of B transposed."""
    return B @ w * (np.linalg.norm(w, axis=0) / np.linalg.norm(B @ w, axis=0))


@pi_resize.misconception("sum kept")
def filter_same_sum(w, B):
    """You scaled the resized filter so that its weights add up to what they did. Then patches of one colour have the
    right token, and no others. Use the pseudoinverse of B transposed."""
    return B @ w * (w.sum(axis=0) / (B @ w).sum(axis=0))


@pi_resize.misconception("transpose forgotten")
def filter_wrong_side(w, B):
    """You used the pseudoinverse of B. That one undoes the resize of a patch. The filter stands on the other side of
    the inner product, so it is B transposed that must be undone: pinv(B.T)."""
    return np.linalg.pinv(B) @ w


@pi_resize.misconception("multiplied from the other side")
def filter_from_the_left(w, B):
    """w @ pinv(B) is right for a single filter. Filters that stand in columns need pinv(B.T) @ w."""
    return w @ np.linalg.pinv(B)


@pi_resize.misconception("inverse of B transposed")
def filter_inverse(w, B):
    """B transposed has no inverse unless the patch keeps its size, because it is not square: use the pseudoinverse."""
    return np.linalg.inv(B.T) @ w


@pi_resize.misconception("inverse of B transposed times B")
def filter_normal_equations(w, B):
    """B (BᵀB)⁻¹ w is right when the patch grows. When it shrinks, BᵀB has no inverse, and you get an error or noise:
    use the pseudoinverse."""
    return B @ np.linalg.inv(B.T @ B) @ w


@pi_resize.misconception("inverse of B times B transposed")
def filter_other_equations(w, B):
    """(B Bᵀ)⁻¹ B w is right when the patch shrinks. When it grows, B Bᵀ has no inverse, and you get an error or
    noise: use the pseudoinverse."""
    return np.linalg.inv(B @ B.T) @ B @ w


@pi_resize.misconception("regularized")
def filter_ridge(w, B):
    """You added something to the diagonal before solving. That pulls the filter towards zero, and the token is no
    longer exact: the pseudoinverse needs no such help."""
    return B @ np.linalg.solve(B.T @ B + 1e-4 * np.eye(B.shape[1]), w)


@pi_resize.misconception("filters as rows")
def filters_as_rows(w, B):
    """You returned one row for each filter. The filters are columns, in `w` and in the answer."""
    return (np.linalg.pinv(B.T) @ w).T


@pi_resize.misconception("all filters in one list")
def filters_flattened(w, B):
    """You flattened the answer. With k filters as columns of w, it has k columns too."""
    return (np.linalg.pinv(B.T) @ w).ravel()


@pi_resize.misconception("always a column")
def filter_as_column(w, B):
    """For a single filter you returned a matrix with one column. The answer has as many axes as `w`."""
    return np.linalg.pinv(B.T) @ w.reshape(B.shape[1], -1)


# ------------------------------------------------------------------------------------ vit_input_sequence

vit_input_sequence = Exercise(
    chapter.vit_input_sequence, points=2, difficulty=1, minutes=10, section="The input sequence"
)


@vit_input_sequence.where
def sequence_entry(index, patch_tokens, cls, registers, pos_embed):
    i = index[0] - 1 - len(registers)
    if index[0] == 0:
        return "the class token"
    return f"register {index[0] - 1}" if i < 0 else f"patch {i}"


def parts(N_p, R, d, start=0):
    """Patches, class token, registers and positions whose digits say where each number comes from."""
    channel = np.arange(float(d)) / 10
    patches = 10.0 * np.arange(1, N_p + 1)[:, None] + channel
    registers = -10.0 * np.arange(1, R + 1)[:, None] - channel
    return patches, 500 + channel, registers, 1000.0 * np.arange(1, N_p + 2)[:, None] + 0 * channel


@vit_input_sequence.visible
def two_registers():
    "Three patches, two registers"
    yield Case(*parts(3, 2, 2), why="each number says what it is: 500 is the class token, thousands are positions")


@vit_input_sequence.visible
def no_registers():
    "No registers"
    yield Case(*parts(4, 0, 3), why="the first sequences of 2021 had none")


@vit_input_sequence.visible
def more_registers_than_patches():
    "More registers than patches"
    yield Case(*parts(2, 5, 4))


@vit_input_sequence.hidden(weight=2)
def any_sequence(rng):
    "Any number of patches and registers"
    for N_p, R, d in ((6, 4, 5), (12, 1, 3), (1, 2, 4)):
        yield Case(*(rng.normal(size=size) for size in ((N_p, d), (d,), (R, d), (1 + N_p, d))))


@vit_input_sequence.hidden
def blind_sizes(rng):
    "Sizes where a wrong row or axis keeps the shape"
    for N_p, R, d in ((4, 4, 4), (5, 1, 5), (3, 4, 4)):
        yield Case(*(rng.normal(size=size) for size in ((N_p, d), (d,), (R, d), (1 + N_p, d))))


@vit_input_sequence.hidden
def single_precision_tokens(rng):
    "float32 tokens"
    yield Case(*(rng.normal(size=size).astype(np.float32) for size in ((6, 4), (4,), (3, 4), (7, 4))))


@vit_input_sequence.misconception("registers last")
def registers_last(patch_tokens, cls, registers, pos_embed):
    """You put the registers after the patches, as some libraries do. Here they stand between the class token and the
    patches, so that all prefix tokens are at the front."""
    return np.concatenate([(cls + pos_embed[0])[None], patch_tokens + pos_embed[1:], registers])


@vit_input_sequence.misconception("registers first")
def registers_first(patch_tokens, cls, registers, pos_embed):
    """You put the registers before the class token. The class token is row 0: whatever reads it looks there."""
    return np.concatenate([registers, (cls + pos_embed[0])[None], patch_tokens + pos_embed[1:]])


@vit_input_sequence.misconception("class token last")
def cls_last(patch_tokens, cls, registers, pos_embed):
    """You put the class token at the end. It is row 0: whatever reads it looks there."""
    return np.concatenate([registers, patch_tokens + pos_embed[1:], (cls + pos_embed[0])[None]])


@vit_input_sequence.misconception("positions from the front")
def positions_from_the_front(patch_tokens, cls, registers, pos_embed):
    """You added the table to the first rows of the whole sequence. The registers stand between the class token and
    the patches, so they got the positions of the first patches, and every patch got another's. Add the positions
    before you insert the registers."""
    sequence = np.concatenate([cls[None], registers, patch_tokens])
    sequence[: len(pos_embed)] += pos_embed
    return sequence


@vit_input_sequence.misconception("positions from the back")
def positions_from_the_back(patch_tokens, cls, registers, pos_embed):
    """You added the table to the last rows of the whole sequence. The patches are right, but the row of the class
    token went to the last register. Add the positions before you insert the registers."""
    sequence = np.concatenate([cls[None], registers, patch_tokens])
    sequence[len(registers) :] += pos_embed
    return sequence


@vit_input_sequence.misconception("class token without a position")
def cls_without_position(patch_tokens, cls, registers, pos_embed):
    """Your class token has no position. Row 0 of the table is for it."""
    return np.concatenate([cls[None], registers, patch_tokens + pos_embed[1:]])


@vit_input_sequence.misconception("registers with a position")
def registers_with_position(patch_tokens, cls, registers, pos_embed):
    """You added the class token's row of the table to the registers too. Registers have no position here: they go in
    as they are."""
    return np.concatenate([(cls + pos_embed[0])[None], registers + pos_embed[0], patch_tokens + pos_embed[1:]])


@vit_input_sequence.misconception("positions shifted by one")
def positions_shifted(patch_tokens, cls, registers, pos_embed):
    """Your patches take their positions from row 0 on, so each has its left neighbour's, and the class token has the
    last. Row 0 is for the class token, row 1 + i for patch i."""
    return np.concatenate([(cls + pos_embed[-1])[None], registers, patch_tokens + pos_embed[:-1]])


@vit_input_sequence.misconception("class token's row at the patches")
def first_row_twice(patch_tokens, cls, registers, pos_embed):
    """The class token is right, but your patches take their positions from row 0 on, so each has its left
    neighbour's. Row 1 + i is for patch i."""
    return np.concatenate([(cls + pos_embed[0])[None], registers, patch_tokens + pos_embed[:-1]])


@vit_input_sequence.misconception("no positions")
def without_positions(patch_tokens, cls, registers, pos_embed):
    """You did not add the positions. Without them the Transformer reads a bag of patches."""
    return np.concatenate([cls[None], registers, patch_tokens])


@vit_input_sequence.misconception("registers left out")
def without_registers(patch_tokens, cls, registers, pos_embed):
    """Your sequence has no registers. They stand between the class token and the patches."""
    return np.concatenate([cls[None], patch_tokens]) + pos_embed


@vit_input_sequence.misconception("tokens scaled")
def tokens_scaled(patch_tokens, cls, registers, pos_embed):
    """You multiplied the tokens by the root of the width before adding positions. The Transformer for text does that
    with its word vectors; a ViT does not."""
    scale = np.sqrt(patch_tokens.shape[1])
    return chapter.vit_input_sequence(patch_tokens * scale, cls * scale, registers * scale, pos_embed)
