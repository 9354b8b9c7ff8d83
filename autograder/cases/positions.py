"""The exercises of the chapter *Positions on a grid*."""

import numpy as np

from autograder.judging.exercise import Case, Exercise, Raises
from solutions import positions as chapter


def counting(*shape):
    """0, 1, 2, … in that shape: every entry is its own address."""
    return np.arange(float(np.prod(shape))).reshape(shape)


# -------------------------------------------------------------------------------------- factorized_table

factorized_table = Exercise(
    chapter.factorized_table, points=2, difficulty=1, minutes=10, section="One table, or one for each axis"
)


@factorized_table.where
def factorized_entry(index, row_table, col_table):
    return f"patch {divmod(index[0], len(col_table))}"


@factorized_table.visible
def a_small_grid():
    "Two rows of three patches"
    yield Case(-1 - counting(2, 2), 10 + counting(3, 2), why="the numbers below 0 come from the rows of the grid")


@factorized_table.visible
def a_square_grid():
    "A square grid, where the shape says nothing"
    yield Case(-1 - counting(2, 3), 10 + counting(2, 3), why="a transposed grid would have the right shape")


@factorized_table.hidden(weight=2)
def any_tables(rng):
    "Grids of any size"
    yield Case(rng.normal(size=(4, 6)), rng.normal(size=(7, 6)))
    yield Case(rng.normal(size=(6, 2)), rng.normal(size=(4, 2)), why="6 and 4 have a common factor")
    yield Case(rng.normal(size=(3, 1)), rng.normal(size=(5, 1)))


@factorized_table.hidden
def one_line(rng):
    "Grids of a single row or a single column"
    yield Case(rng.normal(size=(1, 4)), rng.normal(size=(5, 4)))
    yield Case(rng.normal(size=(5, 4)), rng.normal(size=(1, 4)))
    yield Case(rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=(4, 3)).astype(np.float32))


@factorized_table.misconception("row first")
def row_first(row_table, col_table):
    """You put the row's vector first. Here a position is the column's vector followed by the row's."""
    return np.roll(chapter.factorized_table(row_table, col_table), row_table.shape[1], axis=1)


@factorized_table.misconception("patches column by column")
def table_column_major(row_table, col_table):
    """Your patches run down the columns of the grid. In raster order the column changes from one patch to the next,
    and the row stays the same for a whole line: tile the columns, repeat the rows."""
    H_p, W_p = len(row_table), len(col_table)
    return np.concatenate([np.repeat(col_table, H_p, axis=0), np.tile(row_table, (W_p, 1))], axis=1)


@factorized_table.misconception("rows and columns exchanged")
def tables_exchanged(row_table, col_table):
    """You took the table of the rows for that of the columns: your grid is transposed, and the row's vector stands
    first. The first argument has one vector for each row of the grid."""
    return chapter.factorized_table(col_table, row_table)


@factorized_table.misconception("added")
def tables_added(row_table, col_table):
    """You added the two vectors, as NaViT does with vectors of full width. Here each has half of the width, and they
    stand side by side."""
    return (row_table[:, None] + col_table).reshape(-1, row_table.shape[1])


@factorized_table.misconception("channels interleaved")
def tables_interleaved(row_table, col_table):
    """You took one number of the column and one of the row in turn. The column's vector comes whole, then the row's."""
    table = chapter.factorized_table(row_table, col_table)
    return table.reshape(len(table), 2, -1).transpose(0, 2, 1).reshape(table.shape)


@factorized_table.misconception("paired by number")
def paired_by_number(row_table, col_table):
    """You joined row 0 with column 0, row 1 with column 1 and so on: that is the diagonal of a grid. Every row
    meets every column, H_p * W_p times in all."""
    return np.concatenate([col_table, row_table], axis=1)


@factorized_table.misconception("both tiled")
def both_tiled(row_table, col_table):
    """You tiled both tables, so row and column change together from one patch to the next. In raster order the row
    stays the same for W_p patches: repeat each row W_p times before the next one."""
    H_p, W_p = len(row_table), len(col_table)
    return np.concatenate([np.tile(col_table, (H_p, 1)), np.tile(row_table, (W_p, 1))], axis=1)


@factorized_table.misconception("both repeated")
def both_repeated(row_table, col_table):
    """You repeated the entries of both tables, so row and column change together. In raster order the column changes
    from one patch to the next: tile the columns."""
    H_p, W_p = len(row_table), len(col_table)
    return np.concatenate([np.repeat(col_table, H_p, axis=0), np.repeat(row_table, W_p, axis=0)], axis=1)


@factorized_table.misconception("tiled along the last axis")
def tiled_along_last(row_table, col_table):
    """`np.tile(table, n)` repeats along the last axis and makes the vectors wider. To get the whole table n times,
    one under the other, write `np.tile(table, (n, 1))`."""
    return np.concatenate([np.tile(col_table, len(row_table)), np.repeat(row_table, len(col_table), axis=0)], axis=1)


@factorized_table.misconception("tables stacked")
def tables_stacked(row_table, col_table):
    """You put one table under the other: one vector for each row and each column. The model needs one for each patch,
    with both parts side by side."""
    return np.concatenate([col_table, row_table])


@factorized_table.misconception("grid not flattened")
def table_not_flattened(row_table, col_table):
    """Your table still has the axes of the grid. The tokens are a list: the answer has two axes."""
    return chapter.factorized_table(row_table, col_table).reshape(len(row_table), len(col_table), -1)


# --------------------------------------------------------------------------------------------- sincos_2d

sincos_2d = Exercise(chapter.sincos_2d, points=3, difficulty=2, minutes=15, section="Sines and cosines on a grid")


@sincos_2d.where
def sincos_entry(index, H_p, W_p, d, base=10000.0):
    return f"patch {divmod(index[0], W_p)}"


@sincos_2d.visible
def two_frequencies():
    "Two rows of four patches, width 8: the example of the page is the last patch"
    yield Case(2, 4, 8, why="you can check every number by hand: the frequencies are 1 and 0.01")


@sincos_2d.visible
def another_base():
    "Three rows of two patches, width 12, base 100"
    yield Case(3, 2, 12, 100.0, why="there are three frequencies, and the base is not the default")


@sincos_2d.visible
def widths_that_do_not_fit():
    "A width that 4 does not divide"
    yield Raises(2, 3, 10, why="10 channels cannot be cut into a sine and a cosine for each axis")
    yield Raises(2, 3, 7, why="7 is not a multiple of 4")
    yield Case(2, 3, 4)


@sincos_2d.hidden(weight=2)
def any_size(rng):
    "Grids of any size and any width"
    yield Case(5, 7, 16)
    yield Case(int(rng.integers(6, 9)), int(rng.integers(2, 5)), int(4 * rng.integers(5, 9)))
    yield Case(int(rng.integers(2, 5)), int(rng.integers(6, 9)), 20, float(rng.uniform(20, 2000)))


@sincos_2d.hidden
def square_grid(rng):
    "A square grid, where the shape says nothing"
    yield Case(6, 6, int(4 * rng.integers(3, 7)))


@sincos_2d.hidden
def one_line_of_patches(rng):
    "Grids of a single row or a single column"
    yield Case(1, int(rng.integers(3, 9)), 8)
    yield Case(int(rng.integers(3, 9)), 1, 12)


@sincos_2d.hidden
def any_misfit(rng):
    "Any width that does not fit, and one that does"
    d = int(4 * rng.integers(2, 9))
    for extra in (1, 2, 3):
        yield Raises(3, 5, d + extra)
    yield Case(3, 5, d)
    yield Case(2, 3, 8, 0.5, why="any positive base will do")


def _quarters(H_p, W_p, omega, *, first=0):
    """sin c, cos c, sin r, cos r of every patch, with frequencies of one's own."""
    r, c = np.divmod(np.arange(H_p * W_p), W_p)
    column, row = np.outer(c + first, omega), np.outer(r + first, omega)
    return np.sin(column), np.cos(column), np.sin(row), np.cos(row)


def _need_four(d):
    if d % 4:
        raise ValueError("d must be a multiple of 4")


@sincos_2d.misconception("row first")
def sincos_row_first(H_p, W_p, d, base=10000.0):
    """You encoded the row first. Here the first half of a position encodes the column, the second half the row.
    Both orders are in use, and mixing them up gives every patch the place of its mirror image in the diagonal."""
    return np.roll(chapter.sincos_2d(H_p, W_p, d, base), d // 2, axis=1)


@sincos_2d.misconception("cosine first")
def cosine_first(H_p, W_p, d, base=10000.0):
    """You put the cosines before the sines. The order is sin c, cos c, sin r, cos r."""
    table = chapter.sincos_2d(H_p, W_p, d, base)
    return table.reshape(len(table), 2, 2, -1)[:, :, ::-1].reshape(table.shape)


@sincos_2d.misconception("sine and cosine interleaved")
def sincos_interleaved(H_p, W_p, d, base=10000.0):
    """You wrote sine and cosine in turn, as the 1-D encoding does. Here they stand in blocks: all sines of the column,
    then all its cosines, then the same for the row."""
    table = chapter.sincos_2d(H_p, W_p, d, base)
    return table.reshape(len(table), 2, 2, -1).swapaxes(2, 3).reshape(table.shape)


@sincos_2d.misconception("row first, interleaved")
def row_first_interleaved(H_p, W_p, d, base=10000.0):
    """You encoded the row first, and wrote sine and cosine in turn, as `sincos_1d` does. Here the column comes first,
    and sines and cosines stand in blocks: sin c, cos c, sin r, cos r."""
    return np.roll(sincos_interleaved(H_p, W_p, d, base), d // 2, axis=1)


@sincos_2d.misconception("both sines first")
def both_sines_first(H_p, W_p, d, base=10000.0):
    """You put the sines of both axes before the cosines of both. Each axis has its own half: sin c, cos c, then
    sin r, cos r."""
    table = chapter.sincos_2d(H_p, W_p, d, base)
    return table.reshape(len(table), 2, 2, -1).swapaxes(1, 2).reshape(table.shape)


@sincos_2d.misconception("row first, both sines first")
def timm_order(H_p, W_p, d, base=10000.0):
    """Your blocks are sin r, sin c, cos r, cos c, which is timm's order. Here each axis has its own half, the column
    first: sin c, cos c, sin r, cos r."""
    return both_sines_first(H_p, W_p, d, base).reshape(H_p * W_p, 2, 2, -1)[:, :, ::-1].reshape(H_p * W_p, d)


@sincos_2d.misconception("ladder that ends at 1 / base")
def ladder_to_the_end(H_p, W_p, d, base=10000.0):
    """Your slowest frequency is exactly 1 / base: you divided by d/4 - 1, as big_vision does. Here frequency i is
    base ** (-i / (d/4)), which stops one step earlier, and at d = 4 does not divide by zero."""
    _need_four(d)
    with np.errstate(all="ignore"):
        omega = base ** (-np.arange(d // 4) / np.float64(d // 4 - 1))
    return np.concatenate(_quarters(H_p, W_p, omega), axis=1)


@sincos_2d.misconception("ladder over half of the width")
def ladder_over_half(H_p, W_p, d, base=10000.0):
    """Your frequencies fall too slowly: your exponent is -i / (d/2), which is the -2i/d of the 1-D formula. An axis
    has d/4 frequencies, so frequency i is base ** (-i / (d/4))."""
    _need_four(d)
    return np.concatenate(_quarters(H_p, W_p, base ** (-np.arange(d // 4) / (d // 2))), axis=1)


@sincos_2d.misconception("ladder over the whole width")
def ladder_over_all(H_p, W_p, d, base=10000.0):
    """Your frequencies fall too slowly: your exponent is -i / d. An axis has d/4 frequencies, so frequency i is
    base ** (-i / (d/4))."""
    _need_four(d)
    return np.concatenate(_quarters(H_p, W_p, base ** (-np.arange(d // 4) / d)), axis=1)


@sincos_2d.misconception("exponent doubled")
def exponent_doubled(H_p, W_p, d, base=10000.0):
    """Your frequencies fall too fast. The 2 in the exponent of the 1-D formula counts channels; here the exponent is
    -i / (d/4)."""
    _need_four(d)
    return np.concatenate(_quarters(H_p, W_p, base ** (-2 * np.arange(d // 4) / (d // 4))), axis=1)


@sincos_2d.misconception("sign of the exponent")
def exponent_positive(H_p, W_p, d, base=10000.0):
    """Your frequencies rise from 1. They should fall: the exponent is -i / (d/4), with a minus."""
    _need_four(d)
    return np.concatenate(_quarters(H_p, W_p, base ** (np.arange(d // 4) / (d // 4))), axis=1)


@sincos_2d.misconception("exponent rounded down")
def exponent_rounded(H_p, W_p, d, base=10000.0):
    """Your frequencies are 1 and then 1/base throughout, because `//` rounded the exponents down. Divide with `/`."""
    _need_four(d)
    return np.concatenate(_quarters(H_p, W_p, base ** (-np.arange(d // 4) // (d / 4))), axis=1)


@sincos_2d.misconception("frequencies counted from 1")
def frequencies_from_one(H_p, W_p, d, base=10000.0):
    """You counted the frequencies from 1. They count from 0, so the fastest is base ** 0 = 1 and the slowest is a step
    above 1 / base."""
    _need_four(d)
    return np.concatenate(_quarters(H_p, W_p, base ** (-np.arange(1, d // 4 + 1) / (d // 4))), axis=1)


@sincos_2d.misconception("counted from 1")
def sincos_from_one(H_p, W_p, d, base=10000.0):
    """You counted rows and columns from 1. They count from 0, so the first patch has sines 0 and cosines 1."""
    _need_four(d)
    return np.concatenate(_quarters(H_p, W_p, base ** (-np.arange(d // 4) / (d // 4)), first=1), axis=1)


@sincos_2d.misconception("patches column by column")
def sincos_column_major(H_p, W_p, d, base=10000.0):
    """Your patches run down the columns of the grid. In raster order the column changes from one patch to the next.
    If you used meshgrid: the rows must be its first argument and indexing must be "ij"."""
    table = chapter.sincos_2d(H_p, W_p, d, base)
    return table.reshape(H_p, W_p, d).transpose(1, 0, 2).reshape(-1, d)


@sincos_2d.misconception("row first and column by column")
def both_swaps(H_p, W_p, d, base=10000.0):
    """You made the table of the transposed grid. On a square grid its rows are all there, in the wrong order; H_p is
    the number of rows, and in raster order the column changes first."""
    return chapter.sincos_2d(W_p, H_p, d, base)


@sincos_2d.misconception("one position for each patch number")
def raster_number(H_p, W_p, d, base=10000.0):
    """You encoded the number of the patch in raster order. Then the last patch of one line and the first of the next
    are neighbours. Encode its column and its row separately."""
    _need_four(d)
    return np.concatenate(_quarters(1, H_p * W_p, base ** (-np.arange(d // 2) / (d // 2)))[:2], axis=1)


@sincos_2d.misconception("added")
def sincos_added(H_p, W_p, d, base=10000.0):
    """You added an encoding of the column and one of the row, each of full width. Here each axis has half of the
    channels to itself, and the halves stand side by side."""
    _need_four(d)
    sin_c, cos_c, sin_r, cos_r = _quarters(H_p, W_p, base ** (-np.arange(d // 2) / (d // 2)))
    return np.concatenate([sin_c + sin_r, cos_c + cos_r], axis=1)


@sincos_2d.misconception("base fixed at 10000")
def base_fixed(H_p, W_p, d, base=10000.0):
    """Your frequencies ignore the argument base."""
    return chapter.sincos_2d(H_p, W_p, d)


@sincos_2d.misconception("coordinates scaled to 0 … 1")
def sincos_scaled(H_p, W_p, d, base=10000.0):
    """You divided rows and columns by the size of the grid. Here they are counted in patches: 0, 1, 2 and so on,
    whatever the size."""
    _need_four(d)
    r, c = np.divmod(np.arange(H_p * W_p), W_p)
    omega = base ** (-np.arange(d // 4) / (d // 4))
    column, row = np.outer(c / W_p, omega), np.outer(r / H_p, omega)
    return np.concatenate([np.sin(column), np.cos(column), np.sin(row), np.cos(row)], axis=1)


@sincos_2d.misconception("no error for a width that does not fit")
def width_rounded(H_p, W_p, d, base=10000.0):
    """When 4 does not divide d, your positions come out narrower than the tokens that they are added to. Raise a
    ValueError."""
    return chapter.sincos_2d(H_p, W_p, d // 4 * 4, base)


@sincos_2d.misconception("only odd widths raise")
def only_odd_raises(H_p, W_p, d, base=10000.0):
    """You refuse odd widths only. Each of the two axes has sines and cosines, so d must be a multiple of 4."""
    if d % 2:
        raise ValueError("d must be even")
    return chapter.sincos_2d(H_p, W_p, d // 4 * 4, base)


@sincos_2d.misconception("a row for the class token")
def with_class_row(H_p, W_p, d, base=10000.0):
    """You put a row of zeros for a class token on top. Here the table has patches only: one row for each."""
    return np.concatenate([np.zeros((1, d)), chapter.sincos_2d(H_p, W_p, d, base)])


@sincos_2d.misconception("grid not flattened")
def sincos_not_flattened(H_p, W_p, d, base=10000.0):
    """Your table still has the axes of the grid. The tokens are a list: the answer has two axes."""
    return chapter.sincos_2d(H_p, W_p, d, base).reshape(H_p, W_p, d)
