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


# ----------------------------------------------------------------------------------- relative_bias_index

relative_bias_index = Exercise(
    chapter.relative_bias_index, points=3, difficulty=2, minutes=15, section="A number for each offset"
)


@relative_bias_index.where
def index_entry(index, H_p, W_p):
    query, key = (divmod(i, W_p) for i in index)
    return f"query at {query}, key at {key}"


@relative_bias_index.visible
def two_rows_of_three():
    "Two rows of three patches: the table of the page"
    yield Case(2, 3, why="there are 3 row offsets and 5 column offsets; from a patch to itself it is number 7 of 15")


@relative_bias_index.visible
def a_tall_grid():
    "Four rows of two patches"
    yield Case(4, 2, why="there are more rows than columns")


@relative_bias_index.visible
def no_grid():
    "Sizes that make no grid"
    yield Raises(0, 3, why="there are no patches")
    yield Raises(2, -3, why="a side is not negative")
    yield Case(1, 2, why="a single row is a grid")


@relative_bias_index.hidden(weight=2)
def index_of_any_grid(rng):
    "Grids of any size"
    yield Case(3, 5)
    yield Case(int(rng.integers(5, 8)), int(rng.integers(2, 5)))
    yield Case(int(rng.integers(2, 5)), int(rng.integers(5, 8)))


@relative_bias_index.hidden
def index_of_a_window(rng):
    "A square grid, as Swin's windows are"
    side = int(rng.integers(3, 8))
    yield Case(side, side)


@relative_bias_index.hidden
def index_of_one_line(rng):
    "Grids of a single row or a single column"
    yield Case(1, int(rng.integers(3, 9)))
    yield Case(int(rng.integers(3, 9)), 1)
    yield Case(1, 1)


@relative_bias_index.hidden
def no_grid_at_all(rng):
    "Any sizes that make no grid"
    yield Raises(int(rng.integers(2, 5)), 0)
    yield Raises(-int(rng.integers(2, 5)), 4)
    yield Raises(2.5, 4, why="half a row is none")
    yield Raises(2, 4.0)
    yield Case(3, 2)


def _need_grid(H_p, W_p):
    """What the reference refuses, for misconceptions that go wrong elsewhere."""
    if not all(isinstance(size, int) and size > 0 for size in (H_p, W_p)):
        raise ValueError("H_p and W_p must be positive integers")


def _index(H_p, W_p, number, places=None):
    """An index from a numbering of offsets of one's own."""
    _need_grid(H_p, W_p)
    r, c = np.divmod(np.arange(H_p * W_p), W_p) if places is None else places
    return number(r[:, None] - r, c[:, None] - c)


@relative_bias_index.misconception("key minus query")
def index_key_minus_query(H_p, W_p):
    """You took the key's place minus the query's. Here an offset is the query's place minus the key's, so your list is
    read from its end: a trained table would have left and right, above and below exchanged."""
    return _index(H_p, W_p, lambda rows, cols: (H_p - 1 - rows) * (2 * W_p - 1) + W_p - 1 - cols)


@relative_bias_index.misconception("columns first")
def index_columns_first(H_p, W_p):
    """You numbered the offsets down the columns. They come in raster order: the column offset changes from one number
    to the next, and the row offset every 2 * W_p - 1 numbers."""
    return _index(H_p, W_p, lambda rows, cols: (cols + W_p - 1) * (2 * H_p - 1) + rows + H_p - 1)


@relative_bias_index.misconception("not shifted")
def index_not_shifted(H_p, W_p):
    """Your numbers go below 0. A negative index counts from the end of the table, so no error tells you, and the
    entries stand in other places than in a trained table. Shift rows by H_p - 1 and columns by W_p - 1 first."""
    return _index(H_p, W_p, lambda rows, cols: rows * (2 * W_p - 1) + cols)


@relative_bias_index.misconception("shifted after multiplying")
def index_shifted_late(H_p, W_p):
    """You multiplied the row offset by 2 * W_p - 1 before you shifted it. Shift it first, so that it counts from 0:
    the shift has to be multiplied too."""
    return _index(H_p, W_p, lambda rows, cols: rows * (2 * W_p - 1) + H_p - 1 + cols + W_p - 1)


@relative_bias_index.misconception("only the columns shifted")
def index_columns_shifted(H_p, W_p):
    """You shifted the columns alone. Row offsets begin at -(H_p - 1), so they need a shift as well."""
    return _index(H_p, W_p, lambda rows, cols: rows * (2 * W_p - 1) + cols + W_p - 1)


@relative_bias_index.misconception("shifted by the side")
def index_shifted_by_side(H_p, W_p):
    """You shifted by H_p and W_p. The smallest offsets are -(H_p - 1) and -(W_p - 1), and their number is 0."""
    return _index(H_p, W_p, lambda rows, cols: (rows + H_p) * (2 * W_p - 1) + cols + W_p)


@relative_bias_index.misconception("twice as many columns as the grid")
def index_stride_doubled(H_p, W_p):
    """Your number grows by 2 * W_p from one row of offsets to the next. There are 2 * W_p - 1 column offsets: 0 is
    there once."""
    return _index(H_p, W_p, lambda rows, cols: (rows + H_p - 1) * 2 * W_p + cols + W_p - 1)


@relative_bias_index.misconception("as many columns as row offsets")
def index_stride_of_the_rows(H_p, W_p):
    """Your number grows by 2 * H_p - 1 from one row of offsets to the next. A row of offsets holds 2 * W_p - 1 of them,
    one for each column offset."""
    return _index(H_p, W_p, lambda rows, cols: (rows + H_p - 1) * (2 * H_p - 1) + cols + W_p - 1)


@relative_bias_index.misconception("a square grid")
def index_square(H_p, W_p):
    """You took H_p for both sides. Windows are square in Swin, but grids need not be: columns are shifted by W_p - 1,
    and a row of offsets holds 2 * W_p - 1 of them."""
    return _index(H_p, W_p, lambda rows, cols: (rows + H_p - 1) * (2 * H_p - 1) + cols + H_p - 1)


@relative_bias_index.misconception("offsets added")
def index_added(H_p, W_p):
    """You added the two shifted offsets, so one step down and one to the right get the same number. Multiply that of
    the rows by 2 * W_p - 1 first."""
    return _index(H_p, W_p, lambda rows, cols: rows + H_p - 1 + cols + W_p - 1)


@relative_bias_index.misconception("without the sign")
def index_without_sign(H_p, W_p):
    """You took distances, so left and right get one number, and so do above and below. Offsets have a sign: the table
    has (2 H_p - 1) (2 W_p - 1) entries."""
    return _index(H_p, W_p, lambda rows, cols: abs(rows) * W_p + abs(cols))


@relative_bias_index.misconception("without the sign, not renumbered")
def index_without_sign_far(H_p, W_p):
    """You took distances, so left and right get one number, and so do above and below. Offsets have a sign: shift them
    instead, by H_p - 1 and W_p - 1."""
    return _index(H_p, W_p, lambda rows, cols: abs(rows) * (2 * W_p - 1) + abs(cols))


@relative_bias_index.misconception("offset in the list")
def index_in_the_list(H_p, W_p):
    """Your numbers are differences of raster numbers: they grow by W_p from one row of offsets to the next, so (0, 1)
    and (1, 1 - W_p) share one. A row of offsets holds 2 * W_p - 1 of them, from -(W_p - 1) on."""
    return _index(H_p, W_p, lambda rows, cols: rows * W_p + cols + H_p * W_p - 1)


@relative_bias_index.misconception("patches column by column")
def index_column_major(H_p, W_p):
    """Your patches run down the columns of the grid. In raster order the column changes from one patch to the next."""
    _need_grid(H_p, W_p)
    c, r = np.divmod(np.arange(H_p * W_p), H_p)
    return _index(H_p, W_p, lambda rows, cols: (rows + H_p - 1) * (2 * W_p - 1) + cols + W_p - 1, (r, c))


@relative_bias_index.misconception("rows and columns exchanged")
def index_grid_exchanged(H_p, W_p):
    """You took W_p for the number of rows: that is the index of the transposed grid. H_p is the number of rows."""
    return chapter.relative_bias_index(W_p, H_p)


@relative_bias_index.misconception("counted from 1")
def index_from_one(H_p, W_p):
    """You counted the offsets from 1. The smallest has number 0, the first row of the table."""
    return chapter.relative_bias_index(H_p, W_p) + 1


@relative_bias_index.misconception("no error for a grid without patches")
def index_without_error(H_p, W_p):
    """You return an index for a grid without patches. Raise a ValueError unless both sides are positive integers."""
    r, c = np.divmod(np.arange(max(0, int(H_p * W_p))), W_p or 1)
    return ((r[:, None] - r + H_p - 1) * (2 * W_p - 1) + c[:, None] - c + W_p - 1).astype(int)


@relative_bias_index.misconception("grid not flattened")
def index_not_flattened(H_p, W_p):
    """Your index still has the axes of the grid. Patches are a list: the answer has a row for each query and a column
    for each key."""
    return chapter.relative_bias_index(H_p, W_p).reshape(H_p, W_p, H_p, W_p)


@relative_bias_index.misconception("pairs of offsets")
def index_pairs(H_p, W_p):
    """You returned both offsets. The table is a list: make one number of the two."""
    return _index(H_p, W_p, lambda rows, cols: np.stack([rows + H_p - 1, cols + W_p - 1], axis=-1))


# --------------------------------------------------------------------------------------- decomposed_bias

decomposed_bias = Exercise(
    chapter.decomposed_bias, points=4, difficulty=3, minutes=25, section="A number that the query chooses"
)


@decomposed_bias.where
def bias_entry(index, q, row_table, col_table, H_p, W_p):
    query, key = (divmod(i, W_p) for i in index[-2:])
    head = f"head {index[-3]}, " if len(index) > 2 else ""
    return f"{head}query at {query}, key at {key}"


def one_hot_queries(N_p, d_h):
    """Query i is one in channel i mod d_h: each reads its own channel of the tables."""
    return np.eye(d_h)[np.arange(N_p) % d_h]


@decomposed_bias.visible
def each_query_reads_one_channel():
    "One head, two rows of four patches; every query is 1 in a single channel"
    yield Case(
        one_hot_queries(8, 5)[None], 100 * (1 + counting(3, 5)), 1 + counting(7, 5), 2, 4,
        why="the hundreds come from the row's table, what is left from the column's",
    )  # fmt: skip


@decomposed_bias.visible
def heads_of_a_tall_grid():
    "Six heads, four rows of two patches"
    q = counting(6, 8, 5) % 7 - 3
    yield Case(
        q, counting(7, 5) % 4 - 1, counting(3, 5) % 6 - 2, 4, 2, why="there are more rows than columns, and heads"
    )


@decomposed_bias.visible
def tables_of_another_grid():
    "Tables and queries that do not go with the grid"
    q, row_table, col_table = one_hot_queries(8, 5)[None], counting(3, 5), counting(7, 5)
    yield Raises(q, counting(5, 5), col_table, 2, 4, why="a grid of 2 rows has 3 row offsets, not 5")
    yield Raises(q, row_table, counting(9, 5), 2, 4, why="a grid of 4 columns has 7 column offsets, not 9")
    yield Raises(q[:, :6], row_table, col_table, 2, 4, why="there are 6 queries and 8 patches")
    yield Case(q, row_table, col_table, 2, 4)


@decomposed_bias.hidden(weight=2)
def any_queries(rng):
    "Any grid, any width, any number of heads"
    for heads, H_p, W_p, d_h in ((3, 2, 5, 8), (2, 5, 3, 4), (4, 6, 2, 3)):
        tables = rng.normal(size=(2 * H_p - 1, d_h)), rng.normal(size=(2 * W_p - 1, d_h))
        yield Case(rng.normal(size=(heads, H_p * W_p, d_h)), *tables, H_p, W_p)


@decomposed_bias.hidden
def a_batch_and_none(rng):
    "Queries with a batch of images in front, and without heads"
    tables = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
    yield Case(rng.normal(size=(2, 5, 6, 4)), *tables, 3, 2)
    yield Case(rng.normal(size=(6, 4)), *tables, 3, 2)


@decomposed_bias.hidden
def bias_of_a_square_grid(rng):
    "A square grid, where tables can be exchanged"
    yield Case(rng.normal(size=(2, 9, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 4)), 3, 3)


@decomposed_bias.hidden
def bias_of_one_line(rng):
    "Grids of a single row or a single column"
    yield Case(rng.normal(size=(2, 5, 4)), rng.normal(size=(1, 4)), rng.normal(size=(9, 4)), 1, 5)
    yield Case(rng.normal(size=(2, 5, 4)), rng.normal(size=(9, 4)), rng.normal(size=(1, 4)), 5, 1)


@decomposed_bias.hidden
def bias_in_single_precision(rng):
    "float32"
    q, row_table, col_table = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 8, 5), (3, 5), (7, 5)))
    yield Case(q, row_table, col_table, 2, 4)


@decomposed_bias.hidden
def any_tables_that_do_not_fit(rng):
    "Any tables and queries that do not go with the grid"
    q, row_table, col_table = (rng.normal(size=shape) for shape in ((3, 15, 4), (5, 4), (9, 4)))
    yield Raises(q, rng.normal(size=(7, 4)), col_table, 3, 5, why="the table is larger, and nothing falls out of it")
    yield Raises(q, rng.normal(size=(3, 4)), col_table, 3, 5)
    yield Raises(q, row_table, rng.normal(size=(11, 4)), 3, 5)
    yield Raises(q, row_table, rng.normal(size=(9, 5)), 3, 5)
    yield Raises(q[:, 1:], row_table, col_table, 3, 5)
    yield Case(q, row_table, col_table, 3, 5)


def _fits(q, row_table, col_table, H_p, W_p):
    """What the reference refuses, for misconceptions that go wrong elsewhere."""
    if (q.shape[-2], len(row_table), len(col_table)) != (H_p * W_p, 2 * H_p - 1, 2 * W_p - 1):
        raise ValueError("queries and tables must go with the grid")


def _products(q, row_table, col_table, H_p, W_p, place=lambda offset, size: offset + size - 1):
    """The row's part and the column's, (..., N_p, N_p) each, with places in the tables of one's own."""
    _fits(q, row_table, col_table, H_p, W_p)
    r, c = np.divmod(np.arange(H_p * W_p), W_p)
    by_row = np.einsum("...id,ijd->...ij", q, row_table[place(r[:, None] - r, H_p)])
    return by_row, np.einsum("...id,ijd->...ij", q, col_table[place(c[:, None] - c, W_p)])


@decomposed_bias.misconception("key minus query")
def bias_key_minus_query(q, row_table, col_table, H_p, W_p):
    """You took the key's place minus the query's. Here an offset is the query's place minus the key's, so you read both
    tables from their ends."""
    return chapter.decomposed_bias(q, row_table[::-1], col_table[::-1], H_p, W_p)


@decomposed_bias.misconception("the key's vector")
def bias_of_the_key(q, row_table, col_table, H_p, W_p):
    """You multiplied the table with the vector in place j, where the key stands. It is the query that asks: row i of
    your answer belongs to query i alone."""
    _fits(q, row_table, col_table, H_p, W_p)
    r, c = np.divmod(np.arange(H_p * W_p), W_p)
    vectors = row_table[r[:, None] - r + H_p - 1] + col_table[c[:, None] - c + W_p - 1]
    return np.einsum("...jd,ijd->...ij", q, vectors)


@decomposed_bias.misconception("transposed")
def bias_transposed(q, row_table, col_table, H_p, W_p):
    """Your answer has the key down its rows and the query along its columns. As in the scores, a row belongs to a
    query."""
    return chapter.decomposed_bias(q, row_table, col_table, H_p, W_p).swapaxes(-1, -2)


@decomposed_bias.misconception("divided by the root of the width")
def bias_scaled(q, row_table, col_table, H_p, W_p):
    """You divided by sqrt(d_h). In MViT's and SAM's code only the product of query and key is divided: the bias takes
    the query as it is."""
    return chapter.decomposed_bias(q, row_table, col_table, H_p, W_p) / np.sqrt(q.shape[-1])


@decomposed_bias.misconception("rows alone")
def bias_rows_alone(q, row_table, col_table, H_p, W_p):
    """You took the rows alone. Add what the query has in common with the column's vector."""
    return _products(q, row_table, col_table, H_p, W_p)[0]


@decomposed_bias.misconception("columns alone")
def bias_columns_alone(q, row_table, col_table, H_p, W_p):
    """You took the columns alone. Add what the query has in common with the row's vector."""
    return _products(q, row_table, col_table, H_p, W_p)[1]


@decomposed_bias.misconception("multiplied")
def bias_multiplied(q, row_table, col_table, H_p, W_p):
    """You multiplied the row's part by the column's. They are added."""
    by_row, by_col = _products(q, row_table, col_table, H_p, W_p)
    return by_row * by_col


@decomposed_bias.misconception("not shifted")
def bias_not_shifted(q, row_table, col_table, H_p, W_p):
    """You used the offset itself as an index. Offset 0 stands in the middle of a table, in row H_p - 1 or W_p - 1, and
    a negative index counts from the end without an error. Add H_p - 1 and W_p - 1."""
    by_row, by_col = _products(q, row_table, col_table, H_p, W_p, lambda offset, size: offset)
    return by_row + by_col


@decomposed_bias.misconception("without the sign")
def bias_without_sign(q, row_table, col_table, H_p, W_p):
    """You used the distance as an index, so left and right get one vector, and half of each table is never read. Shift
    the offset instead, by H_p - 1 and W_p - 1."""
    by_row, by_col = _products(q, row_table, col_table, H_p, W_p, lambda offset, size: abs(offset))
    return by_row + by_col


@decomposed_bias.misconception("keys column by column")
def bias_keys_column_major(q, row_table, col_table, H_p, W_p):
    """Your keys run down the columns of the grid, your queries along its rows. When you add the two parts, the key's
    row must come before its column: `by_row[..., :, None] + by_col[..., None, :]`."""
    bias = chapter.decomposed_bias(q, row_table, col_table, H_p, W_p)
    return bias.reshape(*bias.shape[:-1], H_p, W_p).swapaxes(-1, -2).reshape(bias.shape)


@decomposed_bias.misconception("patches column by column")
def bias_column_major(q, row_table, col_table, H_p, W_p):
    """Your patches run down the columns of the grid. In raster order the column changes from one patch to the next."""
    _fits(q, row_table, col_table, H_p, W_p)
    c, r = np.divmod(np.arange(H_p * W_p), H_p)
    vectors = row_table[r[:, None] - r + H_p - 1] + col_table[c[:, None] - c + W_p - 1]
    return np.einsum("...id,ijd->...ij", q, vectors)


@decomposed_bias.misconception("heads summed")
def bias_heads_summed(q, row_table, col_table, H_p, W_p):
    """You added up the heads. All heads share the tables, but each has queries of its own, so each has its own bias."""
    bias = chapter.decomposed_bias(q, row_table, col_table, H_p, W_p)
    return bias.sum(axis=tuple(range(q.ndim - 2)))


@decomposed_bias.misconception("no error for a table of another grid")
def bias_of_a_larger_table(q, row_table, col_table, H_p, W_p):
    """You take a table of any length. One that was made for another grid has its offset 0 in another place, so it would
    be read wrongly without a word. Raise a ValueError."""
    if q.shape[-2] != H_p * W_p:
        raise ValueError("there must be a query for each patch")
    r, c = np.divmod(np.arange(H_p * W_p), W_p)
    vectors = row_table[r[:, None] - r + H_p - 1] + col_table[c[:, None] - c + W_p - 1]
    return np.einsum("...id,ijd->...ij", q, vectors)


@decomposed_bias.misconception("grid not flattened")
def bias_not_flattened(q, row_table, col_table, H_p, W_p):
    """Your answer still has the axes of the grid. Patches are a list: it has a row for each query and a column for each
    key."""
    bias = chapter.decomposed_bias(q, row_table, col_table, H_p, W_p)
    return bias.reshape(*q.shape[:-2], H_p, W_p, H_p, W_p)
