# %% [markdown]
# # Positions on a grid
#
# The exercises of the chapter *Positions on a grid*. You tell a Vision Transformer where each patch came from:
# by a table with one part for each axis, and by fixed sines and cosines. The grid has $H_p$ rows and $W_p$ columns
# of patches, $r$ and $c$ are a patch's row and column, counted from 0, and $d$ is the width of a token. Patches come
# in raster order: row 0 from left to right, then row 1.
#
# Fill in each function, run its cell, then run the check under it. A check that fails says what it called,
# what should have come back and what did.

# %%
import numpy as np

# %% [markdown]
# ## A table for each axis
#
# Write `factorized_table`. A model has learned one vector for each row of the grid and one for each column, all
# of width $d/2$. Put them together into a table with one vector of width $d$ for each patch: for the patch in
# row $r$ and column $c$ that is $[\mathbf{p}^{\text{col}}_c;\ \mathbf{p}^{\text{row}}_r]$, the column's vector
# first. The rows of the table come in raster order.
#
# Hint: Walk through a grid of 2 rows and 3 columns in raster order. Write down the row of each of the six
# patches, then the column of each. One list repeats every entry, the other repeats the whole list.
#
# Hint: `np.repeat(table, n, axis=0)` writes each row $n$ times before it goes on; `np.tile(table, (n, 1))` writes the
# whole table $n$ times.


# %%
def factorized_table(row_table, col_table):
    """Build the position table of a grid from a table for each axis.

    Parameters
    ----------
    row_table : array, shape (H_p, d / 2)
        One vector for each row of the grid. It is not changed.
    col_table : array, shape (W_p, d / 2)
        One vector for each column. It is not changed.

    Returns
    -------
    array, shape (H_p * W_p, d)
        One position for each patch in raster order: the column's vector, then
        the row's, in the dtype of the tables.

    Raises
    ------
    ValueError
        If a table does not have two axes or has no vectors, or if their vectors
        differ in width.

    Notes
    -----
    The "2-D" learned positions of Dosovitskiy et al. (2021), appendix D.4.
    There are (H_p + W_p) d / 2 numbers to learn, where one table for all
    patches has H_p W_p d.
    """
    ### BEGIN SOLUTION
    for name, table in (("row_table", row_table), ("col_table", col_table)):
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(f"{name} must be (n, d / 2), not {table.shape}")
    widths = row_table.shape[1], col_table.shape[1]
    if widths[0] != widths[1]:
        raise ValueError(f"both tables must have one width, not {widths}")
    H_p, W_p = len(row_table), len(col_table)
    columns = np.tile(col_table, (H_p, 1))  # for each row all columns
    rows = np.repeat(row_table, W_p, axis=0)  # the same row for W_p patches
    return np.concatenate([columns, rows], axis=1)  # (H_p * W_p, d)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(factorized_table)
# ### BEGIN HIDDEN TESTS
# check(factorized_table, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Sines and cosines of two coordinates
#
# Write `sincos_2d`, a position table that nothing has to learn. Each patch gets four blocks of $d/4$ numbers:
# $\sin(c\,\omega_i)$, $\cos(c\,\omega_i)$, $\sin(r\,\omega_i)$, $\cos(r\,\omega_i)$, in this order, the column
# first. The frequencies are $\omega_i = \text{base}^{-i/(d/4)}$ for $i = 0, \dots, d/4 - 1$, the same ones for both
# axes. Patches come in raster order, rows and columns count from 0, and a width $d$ that 4 does not divide raises a
# `ValueError`.
#
# Hint: First the list of frequencies, then the row and the column of every patch as two lists of length
# $H_p W_p$. The angles of one axis are an outer product: one row for each patch, one column for each frequency.
#
# Hint: `np.arange(H_p * W_p) // W_p` is the row of each patch in raster order. What is the column?
#
# Hint: Concatenate four arrays of shape `(H_p * W_p, d // 4)` along the last axis.


# %%
def sincos_2d(H_p, W_p, d, base=10000.0):
    """Build the fixed sine-cosine position table of a grid of patches.

    Parameters
    ----------
    H_p, W_p : int
        Rows and columns of the grid.
    d : int
        Width of a token, a multiple of 4.
    base : float, optional
        The frequencies run from 1 radian for each patch down towards 1 / base.

    Returns
    -------
    array of float64, shape (H_p * W_p, d)
        One position for each patch in raster order: sin c, cos c, sin r, cos r,
        in blocks of d / 4.

    Raises
    ------
    ValueError
        If d is not a multiple of 4, or if a size or the base is not positive.

    Notes
    -----
    Frequency i is base ** (-i / (d / 4)), the layout of MAE (He et al. 2022).
    """
    ### BEGIN SOLUTION
    for name, size in (("H_p", H_p), ("W_p", W_p), ("d", d)):
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f"{name} must be a positive integer, not {size!r}")
    if d % 4:
        raise ValueError(f"d must be a multiple of 4, not {d}")
    if not 0 < base < np.inf:
        raise ValueError(f"base must be a positive number, not {base!r}")
    omega = float(base) ** (-np.arange(d // 4) / (d // 4))
    r, c = np.divmod(np.arange(H_p * W_p), W_p)  # raster order
    column, row = np.outer(c, omega), np.outer(r, omega)  # (N_p, d / 4) each
    blocks = [np.sin(column), np.cos(column), np.sin(row), np.cos(row)]
    return np.concatenate(blocks, axis=1)  # (H_p * W_p, d)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(sincos_2d)
# ### BEGIN HIDDEN TESTS
# check(sincos_2d, hidden=True)
# ### END HIDDEN TESTS
