# %% [markdown]
# # Rotary positions
#
# The exercises of the chapter *Rotary positions*. You tell a Vision Transformer where each patch came from
# by turning queries and keys. The last exercise packs images of many sizes into one sequence. The grid has $H_p$
# rows and $W_p$ columns of patches, $r$ and $c$ are a patch's row and column, counted from 0, and $d_h$ is the width
# of one attention head. Patches come in raster order: row 0 from left to right, then row 1. Prefix tokens (class
# token, registers) come before them and have no place on the grid.
#
# Fill in each function, run its cell, then run the check under it. A check that fails says what it called,
# what should have come back and what did.

# %%
import numpy as np

# %% [markdown]
# ## Turn by column and by row
#
# Write `rope_2d_axial`, which turns the queries or the keys of one attention head, $\mathbf{x}$ of shape
# $(\dots, T, d_h)$. The first half of the channels turns by the patch's column, the second half by its row.
# In each half, channels 0 and 1 are pair 0, channels 2 and 3 are pair 1, and so on, counted afresh. Pair $i$
# turns by the angle $p\,\theta_i$, where $p$ is the column or the row and $\theta_i = \text{base}^{-2i/(d_h/2)}$:
#
# $$(a, b) \mapsto (a\cos\alpha - b\sin\alpha,\ a\sin\alpha + b\cos\alpha), \qquad \alpha = p\,\theta_i.$$
#
# The first `n_prefix` tokens are not on the grid and stay as they are; `rows` and `cols` have one entry for each
# of the $T - n_{\text{pre}}$ other tokens. A head width that 4 does not divide, or a list of the wrong length,
# raises a `ValueError`. Any number of axes may come before the last two, and `x` itself must not change.
#
# Hint: One array of angles of shape $(T - n_{\text{pre}}, d_h/2)$ holds a number for each pair. Its first half is
# an outer product of `cols` and the frequencies, its second half one of `rows` and the same frequencies.
#
# Hint: In the array as a whole, pair $j$ is channels $2j$ and $2j + 1$, in both halves. So `x[..., 0::2]` holds the
# first number of every pair and `x[..., 1::2]` the second.
#
# Hint: Start from a copy of `x` as floats and write into its patch rows: the ellipsis in
# `out[..., n_prefix:, 0::2]` stands for however many axes come first. Both new numbers need both old ones.


# %%
def rope_2d_axial(x, rows, cols, n_prefix=0, base=100.0):
    """Turn queries or keys, half of their channels by column and half by row.

    Parameters
    ----------
    x : array, shape (..., T, d_h)
        Queries or keys, prefix tokens first. It is not changed.
    rows, cols : sequence of numbers, length T - n_prefix
        Row and column of each patch, in patches; need not be whole numbers.
    n_prefix : int, optional
        So many tokens at the start have no place and are not turned.
    base : float, optional
        Pair i of each half turns by base ** (-2 i / (d_h / 2)) radians a patch.

    Returns
    -------
    array, shape (..., T, d_h)
        float32 for float32, float64 for float64 and for integers.

    Raises
    ------
    ValueError
        If d_h is not a multiple of 4, or if `rows` and `cols` do not have
        T - n_prefix entries.

    Notes
    -----
    The axial form of Heo et al. (2024), in the layout of their code: pairs are
    neighbours (2i, 2i + 1) and the columns come first.
    """
    ### BEGIN SOLUTION
    if x.ndim < 2 or x.shape[-1] == 0 or x.shape[-1] % 4:
        raise ValueError(f"x must have shape (..., T, 4 n), not {x.shape}")
    T, d_h = x.shape[-2:]
    if not isinstance(n_prefix, (int, np.integer)) or not 0 <= n_prefix <= T:
        raise ValueError(f"n_prefix must be from 0 to {T}, not {n_prefix!r}")
    n = T - n_prefix
    rows, cols = (np.asarray(place, dtype=float) for place in (rows, cols))
    for name, place in (("rows", rows), ("cols", cols)):
        if place.shape != (n,):
            raise ValueError(f"{name} must have {n} entries, not {place.shape}")
    if not 0 < base < np.inf:
        raise ValueError(f"base must be a positive number, not {base!r}")
    theta = float(base) ** (-2 * np.arange(d_h // 4) / (d_h // 2))
    by_column, by_row = np.outer(cols, theta), np.outer(rows, theta)
    angle = np.concatenate([by_column, by_row], axis=1)  # one for each pair
    cos, sin = np.cos(angle), np.sin(angle)  # (n, d_h / 2)
    out = x.astype(x.dtype if x.dtype.kind == "f" else np.float64)  # a copy
    a, b = x[..., n_prefix:, 0::2], x[..., n_prefix:, 1::2]
    out[..., n_prefix:, 0::2] = a * cos - b * sin
    out[..., n_prefix:, 1::2] = a * sin + b * cos
    return out
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(rope_2d_axial)
# ### BEGIN HIDDEN TESTS
# check(rope_2d_axial, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Attend with turned queries and keys
#
# Write `rope_2d_attention`: attention in which every score between two patches depends on their content and
# on how many rows and columns lie between them. Turn the queries and the keys with your `rope_2d_axial`, leave the
# values alone, divide the scores by $\sqrt{d_h}$, take the softmax over the keys and mix the values. Scores may
# be in the thousands, and the answer must stay finite. Any number of axes, such as batch and heads, may come
# before the last two.
#
# Hint: Only the scores should know about places. What does a token hand over when it is looked at, and should
# that be turned?
#
# Hint: `K.swapaxes(-1, -2)` transposes the last two axes, however many come before them.
#
# Hint: The softmax does not change when the largest score of each row is subtracted first, and then no
# exponential is larger than 1.


# %%
def rope_2d_attention(Q, K, V, rows, cols, n_prefix=0, base=100.0):
    """Scaled dot-product attention with axial rotary positions.

    Parameters
    ----------
    Q, K, V : array, shape (..., T, d_h)
        Queries, keys and values, prefix tokens first. They are not changed.
    rows, cols : sequence of numbers, length T - n_prefix
        Row and column of each patch.
    n_prefix : int, optional
        So many tokens at the start have no place and are not turned.
    base : float, optional
        Base of the frequencies, as in `rope_2d_axial`.

    Returns
    -------
    array, shape (..., T, d_h)
        For each query a mean of the values, weighted by the softmax of its
        scores.

    Raises
    ------
    ValueError
        If Q, K and V differ in shape, and whenever `rope_2d_axial` raises.

    Notes
    -----
    Equation 1 of Vaswani et al. (2017), with queries and keys turned as Heo et
    al. (2024) do.
    """
    ### BEGIN SOLUTION
    shapes = Q.shape, K.shape, V.shape
    if len(set(shapes)) > 1 or Q.ndim < 2 or Q.shape[-2] == 0:
        raise ValueError(f"Q, K, V must have one shape (..., T, d_h): {shapes}")
    Q, K = (rope_2d_axial(x, rows, cols, n_prefix, base) for x in (Q, K))
    scores = Q @ K.swapaxes(-1, -2) / Q.shape[-1] ** 0.5  # (..., T, T)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ V
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(rope_2d_attention)
# ### BEGIN HIDDEN TESTS
# check(rope_2d_attention, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Turn along any direction
#
# Write `rope_2d_mixed`. Every pair of channels now has two frequencies of its own, and turns by
# $\alpha_j = \theta^x_j\,c + \theta^y_j\,r$. A pair with $\theta^x_j = \theta^y_j$ turns along a diagonal. In a model
# these frequencies are learned; here they are given, one of each for every pair of neighbouring channels
# $(2j, 2j + 1)$ across the whole width. The rotation and the prefix tokens are as in `rope_2d_axial`. An odd head
# width, or a list of the wrong length, raises a `ValueError`.
#
# Hint: The angles are a sum of two outer products, one for each axis, of shape $(T - n_{\text{pre}}, d_h/2)$.
#
# Hint: Once you have the angles, nothing else differs from `rope_2d_axial`.


# %%
def rope_2d_mixed(x, rows, cols, theta_x, theta_y, n_prefix=0):
    """Turn queries or keys, each pair of channels along a direction of its own.

    Parameters
    ----------
    x : array, shape (..., T, d_h)
        Queries or keys, prefix tokens first. It is not changed.
    rows, cols : sequence of numbers, length T - n_prefix
        Row and column of each patch, in patches.
    theta_x, theta_y : sequence of numbers, length d_h / 2
        Radians by which each pair turns for each column and for each row.
    n_prefix : int, optional
        So many tokens at the start have no place and are not turned.

    Returns
    -------
    array, shape (..., T, d_h)
        float32 for float32, float64 for float64 and for integers.

    Raises
    ------
    ValueError
        If d_h is odd, if `rows` and `cols` do not have T - n_prefix entries, or
        if `theta_x` and `theta_y` do not have d_h / 2.

    Notes
    -----
    The mixed form of Heo et al. (2024). It is `rope_2d_axial` when theta_y is
    zero in the first half, theta_x is zero in the second, and the rest are its
    frequencies.
    """
    ### BEGIN SOLUTION
    if x.ndim < 2 or x.shape[-1] == 0 or x.shape[-1] % 2:
        raise ValueError(f"x must have shape (..., T, 2 n), not {x.shape}")
    T, d_h = x.shape[-2:]
    if not isinstance(n_prefix, (int, np.integer)) or not 0 <= n_prefix <= T:
        raise ValueError(f"n_prefix must be from 0 to {T}, not {n_prefix!r}")
    n = T - n_prefix
    rows, cols = (np.asarray(place, dtype=float) for place in (rows, cols))
    for name, place in (("rows", rows), ("cols", cols)):
        if place.shape != (n,):
            raise ValueError(f"{name} must have {n} entries, not {place.shape}")
    pairs = d_h // 2
    theta_x, theta_y = (np.asarray(t, dtype=float) for t in (theta_x, theta_y))
    for name, t in (("theta_x", theta_x), ("theta_y", theta_y)):
        if t.shape != (pairs,):
            raise ValueError(f"{name} must have {pairs} entries, not {t.shape}")
    angle = np.outer(cols, theta_x) + np.outer(rows, theta_y)
    cos, sin = np.cos(angle), np.sin(angle)  # (n, d_h / 2)
    out = x.astype(x.dtype if x.dtype.kind == "f" else np.float64)  # a copy
    a, b = x[..., n_prefix:, 0::2], x[..., n_prefix:, 1::2]
    out[..., n_prefix:, 0::2] = a * cos - b * sin
    out[..., n_prefix:, 1::2] = a * sin + b * cos
    return out
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(rope_2d_mixed)
# ### BEGIN HIDDEN TESTS
# check(rope_2d_mixed, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Coordinates between −1 and 1
#
# Write `dinov3_coordinates`. DINOv3 does not count patches. It lays the grid into a box from $-1$ to $1$ on each axis,
# whatever the number of patches, and gives each patch the coordinates of its centre: place $i$ of $n$ is at
# $2(i + 1/2)/n - 1$. Return one pair (row coordinate, column coordinate) for each patch, in raster order.
#
# Hint: Cut the interval from $-1$ to $1$ into two equal parts. Where are their centres? The formula must say
# $-1/2$ and $1/2$.
#
# Hint: `np.meshgrid(..., indexing="ij")` gives two arrays of shape $(H_p, W_p)$, the row coordinate of every patch and
# the column coordinate of every patch. Flatten both.


# %%
def dinov3_coordinates(H_p, W_p):
    """Give each patch the coordinates of its centre, in a box from -1 to 1.

    Parameters
    ----------
    H_p, W_p : int
        Rows and columns of the grid.

    Returns
    -------
    array of float64, shape (H_p * W_p, 2)
        (row, column) coordinates of each patch in raster order, from -1 to 1.

    Raises
    ------
    ValueError
        If a size is not positive.

    Notes
    -----
    Place i of n is at 2 (i + 1/2) / n - 1, each axis scaled by its own size
    (the released code of Siméoni et al. 2025).
    """
    ### BEGIN SOLUTION
    for name, size in (("H_p", H_p), ("W_p", W_p)):
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f"{name} must be a positive integer, not {size!r}")
    row, column = (2 * (np.arange(n) + 0.5) / n - 1 for n in (H_p, W_p))
    grid = np.meshgrid(row, column, indexing="ij")
    return np.stack(grid, axis=-1).reshape(H_p * W_p, 2)  # (N_p, 2)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(dinov3_coordinates)
# ### BEGIN HIDDEN TESTS
# check(dinov3_coordinates, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Keep packed images apart
#
# Write `packed_attention_mask`. Several images, cut into different numbers of tokens, lie one after the other in a
# single sequence of $T$ tokens. `lengths` says how many tokens each image has. Return the $T \times T$ array of
# booleans that is `True` where the query's token and the key's token belong to the same image, and `False` elsewhere.
#
# Hint: Give each token the number of its image. For lengths 2 and 3 that list is 0, 0, 1, 1, 1.
#
# Hint: Compare that list as a column with the same list as a row; NumPy compares every entry with every other.


# %%
def packed_attention_mask(lengths):
    """Say which tokens of a packed sequence may attend to which.

    Parameters
    ----------
    lengths : sequence of int
        The number of tokens of each image, in the order of packing.

    Returns
    -------
    array of bool, shape (T, T)
        With T the sum of the lengths: True where query (row) and key (column)
        belong to one image.

    Raises
    ------
    ValueError
        If the lengths are not positive integers in one list.

    Notes
    -----
    The self-attention mask of NaViT (Dehghani et al. 2023, section 2.1).
    """
    ### BEGIN SOLUTION
    counts = np.asarray(lengths)
    whole = counts.size == 0 or counts.dtype.kind in "iu"
    if counts.ndim != 1 or not whole or (counts < 1).any():
        raise ValueError(f"lengths must be positive integers, not {lengths!r}")
    image = np.repeat(np.arange(counts.size), counts.astype(np.intp))  # (T,)
    return image[:, None] == image
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(packed_attention_mask)
# ### BEGIN HIDDEN TESTS
# check(packed_attention_mask, hidden=True)
# ### END HIDDEN TESTS
