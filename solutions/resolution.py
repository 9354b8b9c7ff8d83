# %% [markdown]
# # Resolution
#
# The exercises of the chapter *Resolution*. You resize a grid of position vectors and the filters of a patch
# embedding, so that a trained model can read images of another size or cut them into other patches, and put
# the sequence together that the Transformer reads. $H_p$ and $W_p$ are the rows and columns of the patch grid,
# $p$ is the side of a patch, $d$ the width of a token.
#
# Fill in each function, run its cell, then run the check under it. A check that fails says what it called,
# what should have come back and what did.

# %%
import numpy as np

# %% [markdown]
# ## Bilinear resizing as a matrix
#
# Write `bilinear_resize_matrix`. It returns the matrix $\mathbf{B}$ that resizes a $p \times p$ patch of one
# channel to $p_* \times p_*$: if `x` is the patch, flattened in reading order, then `B @ x` is the resized patch,
# flattened in reading order. Centres are half-pixel: new index $i'$ reads the old axis at
# $s = (i' + \frac{1}{2}) \cdot p / p_* - \frac{1}{2}$. Where $s$ falls outside $[0, p - 1]$ it is moved to the
# nearer end. Between two old indices the value is a mix of both, each weighted by how near it is. There is no
# antialiasing: when the patch shrinks, a new pixel still reads at most two old ones along each axis.
#
# Hint: Do one axis first. You want a matrix of shape $(p_*, p)$ whose row $i'$ has at most two entries that are
# not zero, and they add up to 1.
#
# Hint: With `low = floor(s)` and `t = s - low`, index `low` gets the weight $1 - t$ and `low + 1` gets $t$. At the
# upper end `low + 1` would be one too far, but there $t = 0$.
#
# Hint: In two dimensions the weight of old pixel $(u, v)$ for new pixel $(u', v')$ is the weight along the rows
# times the weight along the columns. For two matrices of one axis each, `np.kron` makes all these products, in
# reading order.


# %%
def bilinear_resize_matrix(p, p_new):
    """Write the bilinear resize of a square patch as a matrix.

    Parameters
    ----------
    p : int
        Old side in pixels.
    p_new : int
        New side in pixels, larger or smaller.

    Returns
    -------
    array, shape (p_new**2, p**2)
        Float64. Times a flattened patch from the left it gives the flattened
        resized patch, both in reading order. Every row sums to 1.

    Notes
    -----
    Half-pixel centres, clamped at the border, no antialiasing: what PyTorch's
    `interpolate` does with `mode="bilinear", align_corners=False`.
    """
    ### BEGIN SOLUTION
    for name, side in (("p", p), ("p_new", p_new)):
        if not isinstance(side, (int, np.integer)) or side < 1:
            raise ValueError(f"{name} must be a positive integer, not {side!r}")
    s = np.clip((np.arange(p_new) + 0.5) * p / p_new - 0.5, 0, p - 1)
    low = s.astype(int)
    high = np.minimum(low + 1, p - 1)
    t = s - low
    axis = np.zeros((p_new, p))
    np.add.at(axis, (np.arange(p_new), low), 1 - t)
    np.add.at(axis, (np.arange(p_new), high), t)  # adds, because at the upper end high is low
    return np.kron(axis, axis)  # (p_new, p) twice -> (p_new * p_new, p * p)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(bilinear_resize_matrix)
# ### BEGIN HIDDEN TESTS
# check(bilinear_resize_matrix, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Resize the position table
#
# Write `resize_pos_embed`. The first `n_prefix` rows of the table belong to prefix tokens: they have no place on
# the grid and come back bit for bit as they are. The other rows are an image of `old_grid` = (rows, columns)
# with $d$ channels, in raster order. Resize it to `new_grid`, bilinear along each axis, with half-pixel centres
# and clamped at the border as in `bilinear_resize_matrix`, without antialiasing. Neither grid has to be square.
#
# Hint: Take off the prefix rows, reshape the rest to (rows, columns, $d$), resize, reshape back, and put the
# prefix rows in front again. No transpose is needed: the channels may stay last.
#
# Hint: The two axes can be resized one after the other, each with its own old and new length.
#
# Hint: Along the rows, `low` and `low + 1` are indices into the first axis, and `t` needs the shape
# $(h_{new}, 1, 1)$ to weigh whole rows of the grid.


# %%
def resize_pos_embed(P_pos, n_prefix, old_grid, new_grid):
    """Resize a table of position vectors to another patch grid.

    Parameters
    ----------
    P_pos : array, shape (n_prefix + H_p * W_p, d)
        The table: prefix rows first, then one row for each patch in raster order.
        It is not changed.
    n_prefix : int
        How many rows belong to no patch (class token, registers). May be 0.
    old_grid, new_grid : (int, int)
        Rows and columns of the patch grid, before and after.

    Returns
    -------
    array, shape (n_prefix + h * w, d)
        The table for `new_grid` = (h, w). Its first n_prefix rows equal the old
        ones exactly.

    Raises
    ------
    ValueError
        If the table does not have n_prefix + H_p * W_p rows.

    Notes
    -----
    Dosovitskiy et al. 2021, section 3.2, with half-pixel centres, clamped at the
    border, bilinear, no antialiasing.
    """
    ### BEGIN SOLUTION
    P_pos = np.asarray(P_pos)
    if P_pos.dtype.kind != "f":
        P_pos = P_pos.astype(np.float64)
    if not isinstance(n_prefix, (int, np.integer)) or n_prefix < 0:
        raise ValueError(f"n_prefix must be 0 or a positive integer, not {n_prefix!r}")
    for name, grid in (("old_grid", old_grid), ("new_grid", new_grid)):
        if np.shape(grid) != (2,) or not all(isinstance(n, (int, np.integer)) and n > 0 for n in grid):
            raise ValueError(f"{name} must be two positive integers (rows, columns), not {grid!r}")
    n_rows = n_prefix + old_grid[0] * old_grid[1]
    if P_pos.ndim != 2 or len(P_pos) != n_rows:
        raise ValueError(
            f"P_pos must have {n_rows} rows for n_prefix = {n_prefix} and old_grid = {tuple(map(int, old_grid))}, "
            f"not shape {P_pos.shape}"
        )

    def weights(n, n_new):
        s = np.clip((np.arange(n_new) + 0.5) * n / n_new - 0.5, 0, n - 1)
        low = s.astype(int)
        return low, np.minimum(low + 1, n - 1), s - low

    d = P_pos.shape[1]
    grid = P_pos[n_prefix:].reshape(*old_grid, d)  # (H_p, W_p, d)
    low, high, t = weights(old_grid[0], new_grid[0])
    grid = (1 - t)[:, None, None] * grid[low] + t[:, None, None] * grid[high]  # (h, W_p, d)
    low, high, t = weights(old_grid[1], new_grid[1])
    grid = (1 - t)[:, None] * grid[:, low] + t[:, None] * grid[:, high]  # (h, w, d)
    patches = grid.reshape(new_grid[0] * new_grid[1], d).astype(P_pos.dtype)
    return np.concatenate([P_pos[:n_prefix], patches])  # (n_prefix + h * w, d)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(resize_pos_embed)
# ### BEGIN HIDDEN TESTS
# check(resize_pos_embed, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Resize a filter so that the tokens stay
#
# Write `pi_resize`. A filter $\mathbf{w}$ gives the token $\langle \mathbf{x}, \mathbf{w} \rangle$ on a patch
# $\mathbf{x}$. The patch is resized to $\mathbf{B}\mathbf{x}$. Return the filter $\hat{\mathbf{w}}$ for the new
# size whose token $\langle \mathbf{B}\mathbf{x}, \hat{\mathbf{w}} \rangle$ is the old one for every patch, or, where
# none can be, the one that misses by least: $\hat{\mathbf{w}} = (\mathbf{B}^\top)^+ \mathbf{w}$, with the
# pseudoinverse. `w` may be one filter or one filter in each column.
#
# Hint: Move $\mathbf{B}$ to the other side of the inner product. Which equation must $\hat{\mathbf{w}}$ solve for
# the two tokens to be equal whatever $\mathbf{x}$ is?
#
# Hint: NumPy has the pseudoinverse. Mind what is transposed: $\mathbf{B}$ has shape $(p_*^2, p^2)$ and the answer
# has $p_*^2$ rows.


# %%
def pi_resize(w, B):
    """Resize the filters of a patch embedding by pseudoinverse (PI-resize).

    Parameters
    ----------
    w : array, shape (p**2,) or (p**2, k)
        One filter of one channel, flattened in reading order, or k of them as
        columns. It is not changed.
    B : array, shape (p_new**2, p**2)
        The matrix that resizes a flattened patch, as `bilinear_resize_matrix` makes
        it.

    Returns
    -------
    array, shape (p_new**2,) or (p_new**2, k)
        The resized filter or filters, with as many axes as `w`.

    Notes
    -----
    Beyer et al. 2023 (FlexiViT), section 3.4. Exact for every patch when the
    columns of B are independent (bilinear resizing with p_new >= p); otherwise the
    least squares solution, best on average for white-noise patches.
    """
    ### BEGIN SOLUTION
    w, B = np.asarray(w), np.asarray(B)
    if B.ndim != 2 or B.size == 0:
        raise ValueError(f"B must have shape (p_new**2, p**2), not {B.shape}")
    if w.ndim not in (1, 2) or len(w) != B.shape[1]:
        raise ValueError(f"w must have {B.shape[1]} rows, one for each column of B, not shape {w.shape}")
    dtype = w.dtype if w.dtype.kind == "f" else np.float64
    return (np.linalg.pinv(B.astype(np.float64).T) @ w).astype(dtype)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(pi_resize)
# ### BEGIN HIDDEN TESTS
# check(pi_resize, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## The sequence a ViT reads
#
# Write `vit_input_sequence`. The class token comes first, then the registers, then the patch tokens. Positions are
# added to the class token and to the patches, not to the registers, which belong nowhere in the image. The
# position table has one row for the class token (row 0) and one for each patch. There may be no registers at all.
#
# Hint: The position table is shorter than the sequence by the number of registers. Which of its rows belong to
# which tokens?
#
# Hint: Add first and insert the registers after, as DINOv2 does. Then no row of the table can slip to a wrong token.


# %%
def vit_input_sequence(patch_tokens, cls, registers, pos_embed):
    """Put together what the first block of a ViT reads.

    Parameters
    ----------
    patch_tokens : array, shape (N_p, d)
        The embedded patches in raster order. They are not changed.
    cls : array, shape (d,)
        The class token.
    registers : array, shape (R, d)
        The register tokens; R may be 0.
    pos_embed : array, shape (1 + N_p, d)
        Row 0 is the position of the class token, row 1 + i that of patch i.

    Returns
    -------
    array, shape (1 + R + N_p, d)
        Class token, registers, patches. Positions are added to all but the
        registers.

    Notes
    -----
    Dosovitskiy et al. 2021, eq. 1; the registers as in Darcet et al. 2024 and the
    code of DINOv2.
    """
    ### BEGIN SOLUTION
    patch_tokens, cls, registers, pos_embed = map(np.asarray, (patch_tokens, cls, registers, pos_embed))
    if patch_tokens.ndim != 2:
        raise ValueError(f"patch_tokens must have shape (N_p, d), not {patch_tokens.shape}")
    N_p, d = patch_tokens.shape
    if cls.shape != (d,):
        raise ValueError(f"cls must have shape ({d},), not {cls.shape}")
    if registers.ndim != 2 or registers.shape[1] != d:
        raise ValueError(f"registers must have shape (R, {d}), not {registers.shape}")
    if pos_embed.shape != (1 + N_p, d):
        raise ValueError(
            f"pos_embed must have shape ({1 + N_p}, {d}), one row for cls and each patch, not {pos_embed.shape}"
        )
    first = cls + pos_embed[0]
    patches = patch_tokens + pos_embed[1:]
    sequence = np.concatenate([first[None], registers, patches])  # (1 + R + N_p, d)
    return sequence if sequence.dtype.kind == "f" else sequence.astype(np.float64)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(vit_input_sequence)
# ### BEGIN HIDDEN TESTS
# check(vit_input_sequence, hidden=True)
# ### END HIDDEN TESTS
