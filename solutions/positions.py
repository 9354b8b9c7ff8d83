# %% [markdown]
# # Positions on a grid
#
# The exercises of the chapter *Positions on a grid*. You tell a Vision Transformer where each patch came from:
# by a table with one part for each axis, by fixed sines and cosines, and by numbers that are added to the scores. The
# grid has $H_p$ rows and $W_p$ columns of patches, $r$ and $c$ are a patch's row and column, counted from 0, and $d$
# is the width of a token. Patches come in raster order: row 0 from left to right, then row 1.
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

# %% [markdown]
# ## Number the offsets
#
# Write `relative_bias_index`. A head has learned one number for each offset that can lie between two patches of the
# grid, and keeps them in a list. An offset is the query's place minus the key's, $(r - r', c - c')$; rows go from
# $-(H_p - 1)$ to $H_p - 1$ and columns from $-(W_p - 1)$ to $W_p - 1$. The list has the offsets in raster order, the
# smallest first: first by rows, and in each row of offsets by columns. Return, for each query and each key, the place
# in the list. A side that is not a positive integer raises a `ValueError`.
#
# Hint: The smallest offset, $(-(H_p - 1), -(W_p - 1))$, has the number 0. Shift both offsets so that they count from 0.
#
# Hint: A row of offsets holds $2 W_p - 1$ of them. By how much does the number grow from one row to the next?
#
# Hint: With `r` the row of each patch, `r[:, None] - r` has the query down its rows and the key along its columns.


# %%
def relative_bias_index(H_p, W_p):
    """Number the offsets between the patches of a grid.

    Parameters
    ----------
    H_p, W_p : int
        Rows and columns of the grid.

    Returns
    -------
    array of int, shape (H_p * W_p, H_p * W_p)
        For query i and key j, both in raster order, the place of the offset
        "query minus key" in a list of all (2 H_p - 1) (2 W_p - 1) offsets, rows
        first, from the smallest.

    Raises
    ------
    ValueError
        If a size is not a positive integer.

    Notes
    -----
    `relative_position_index` of Swin (Liu et al. 2021), for any grid. A table
    of shape (offsets, heads) gives the biases as `table[index]`.
    """
    ### BEGIN SOLUTION
    for name, size in (("H_p", H_p), ("W_p", W_p)):
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f"{name} must be a positive integer, not {size!r}")
    r, c = np.divmod(np.arange(H_p * W_p), W_p)  # raster order
    rows = r[:, None] - r + H_p - 1  # (N_p, N_p), from 0 to 2 H_p - 2
    cols = c[:, None] - c + W_p - 1
    return rows * (2 * W_p - 1) + cols
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(relative_bias_index)
# ### BEGIN HIDDEN TESTS
# check(relative_bias_index, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Let the query choose
#
# Write `decomposed_bias`. There is a learned vector for each row offset, row $\rho + H_p - 1$ of `row_table` for
# the offset $\rho$, and one for each column offset, row $\gamma + W_p - 1$ of `col_table` for $\gamma$. The bias
# between the query at $(r, c)$ and the key at $(r', c')$ is the dot product of the query with the row vector of
# $r - r'$, plus that with the column vector of $c - c'$. Take the queries as they are: nothing is divided by
# $\sqrt{d_h}$. All heads share the two tables. Queries or tables that do not go with the grid raise a `ValueError`.
#
# Hint: `row_table[r[:, None] - r + H_p - 1]` with the rows $0, \dots, H_p - 1$ has the vector for each row of a query
# and each row of a key, shape $(H_p, H_p, d_h)$.
#
# Hint: Give the queries the axes of the grid, $(\dots, H_p, W_p, d_h)$. The row's part does not depend on the key's
# column, and the column's part not on the key's row: broadcasting adds them.


# %%
def decomposed_bias(q, row_table, col_table, H_p, W_p):
    """Let each query weigh the offset to each key, axis by axis.

    Parameters
    ----------
    q : array, shape (..., H_p * W_p, d_h)
        Queries of the patches in raster order, as a rule with an axis of heads
        in front, not divided by sqrt(d_h). They are not changed.
    row_table : array, shape (2 * H_p - 1, d_h)
        A vector for each row offset "query minus key", from -(H_p - 1).
    col_table : array, shape (2 * W_p - 1, d_h)
        The same for columns.
    H_p, W_p : int
        Rows and columns of the grid.

    Returns
    -------
    array of float, shape (..., H_p * W_p, H_p * W_p)
        What is added to the scores, row query, column key.

    Raises
    ------
    ValueError
        If the queries or a table do not go with the grid or with each other.

    Notes
    -----
    The decomposed relative positions of MViTv2 (Li et al. 2022), as SAM has
    them (`add_decomposed_rel_pos`).
    """
    ### BEGIN SOLUTION
    *heads, N_p, d_h = q.shape
    if N_p != H_p * W_p:
        raise ValueError(f"q must have {H_p} * {W_p} queries, not {N_p}")
    for name, table, size in (("row_table", row_table, H_p), ("col_table", col_table, W_p)):
        if table.shape != (2 * size - 1, d_h):
            raise ValueError(f"{name} must be ({2 * size - 1}, {d_h}), not {table.shape}")
    r, c = np.arange(H_p), np.arange(W_p)
    row_vectors = row_table[r[:, None] - r + H_p - 1]  # (H_p, H_p, d_h): query's row, key's row
    col_vectors = col_table[c[:, None] - c + W_p - 1]  # (W_p, W_p, d_h)
    q = q.reshape(*heads, H_p, W_p, d_h)
    by_row = np.einsum("...rcd,rkd->...rck", q, row_vectors)  # (..., H_p, W_p, H_p)
    by_col = np.einsum("...rcd,ckd->...rck", q, col_vectors)  # (..., H_p, W_p, W_p)
    bias = by_row[..., :, None] + by_col[..., None, :]  # (..., H_p, W_p, H_p, W_p)
    return bias.reshape(*heads, N_p, N_p)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(decomposed_bias)
# ### BEGIN HIDDEN TESTS
# check(decomposed_bias, hidden=True)
# ### END HIDDEN TESTS
