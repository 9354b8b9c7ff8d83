# %% [markdown]
# # Patchify
#
# The exercises of the chapter *Patchify*. You cut an image into patches, put
# it back together, and show that the patch embedding of a Vision Transformer
# is a convolution. Images here are NumPy arrays; $H$ and $W$ are height and
# width in pixels, $C$ the number of channels, $P$ the patch side, $d$ the
# width of a token.
#
# Fill in each function, run its cell, then run the check under it. A check
# that fails says what it called, what should have come back and what did.

# %%
import numpy as np

# %% [markdown]
# ## Cut an image into patches
#
# Write `patchify`. It takes an image of shape $(H, W, C)$ and returns one row
# for each patch, in raster order: the top row of patches from left to right,
# then the next row. Inside a patch the numbers are listed channels last, so
# pixel $(u, v)$ of channel $c$ lands at index $(uP + v)C + c$. Rows and
# columns of pixels that do not fill a whole patch are dropped from the bottom
# and the right.
#
# Hint: Crop first. Then every remaining height is a number of patch rows times
# $P$, and a reshape may split that axis in two.
#
# Hint: After `reshape(H_p, P, W_p, P, C)` the axes say: which patch row, which
# pixel row in it, which patch column, which pixel column in it, which channel.
# Both patch axes must come before both pixel axes.
#
# Hint: `transpose(0, 2, 1, 3, 4)` swaps the two middle axes. One more reshape
# joins them up.


# %%
def patchify(img, P):
    """Cut an image into square patches and flatten each one.

    Parameters
    ----------
    img : array, shape (H, W, C)
        The image, channels last. It is not changed.
    P : int
        Patch side in pixels. Up to P - 1 rows at the bottom and columns at the
        right are dropped.

    Returns
    -------
    array, shape (N_p, P * P * C)
        One row for each of the N_p = floor(H / P) * floor(W / P) patches, in
        raster order, in the dtype of `img`.

    Raises
    ------
    ValueError
        If the image is smaller than one patch.

    Notes
    -----
    Pixel (u, v) of a patch, channel c, stands at index (u P + v) C + c (the
    flattening of Dosovitskiy et al. 2021, section 3.1, channels last).
    """
    ### BEGIN SOLUTION
    if img.ndim != 3:
        raise ValueError(f"img must have shape (H, W, C), not {img.shape}")
    if not isinstance(P, (int, np.integer)) or P < 1:
        raise ValueError(f"P must be a positive integer, not {P!r}")
    H, W, C = img.shape
    H_p, W_p = H // P, W // P
    if H_p == 0 or W_p == 0:
        raise ValueError(f"no patch of side {P} fits an image of {H} by {W}")
    grid = img[: H_p * P, : W_p * P].reshape(H_p, P, W_p, P, C)
    grid = grid.transpose(0, 2, 1, 3, 4)  # (H_p, W_p, P, P, C)
    return grid.reshape(H_p * W_p, P * P * C)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(patchify)
# ### BEGIN HIDDEN TESTS
# check(patchify, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Put the patches back
#
# Write `unpatchify`, the way back: from the rows that `patchify` made to the
# image. You need the height and the width, because a list of 12 patches could
# be a grid of 3 by 4 or of 2 by 6.
#
# Hint: Undo the steps of `patchify` from last to first. The number of channels
# follows from the length of a row.
#
# Hint: Reshape to `(H_p, W_p, P, P, C)`, swap the two middle axes back, and
# reshape to `(H, W, C)`.


# %%
def unpatchify(patches, H, W, P):
    """Put flattened patches back together into an image.

    Parameters
    ----------
    patches : array, shape (N_p, P * P * C)
        One row for each patch, in raster order, channels last, as `patchify`
        makes them. They are not changed.
    H, W : int
        Height and width of the image in pixels, both multiples of P.
    P : int
        Patch side in pixels.

    Returns
    -------
    array, shape (H, W, C)
        The image, in the dtype of `patches`.

    Raises
    ------
    ValueError
        If P does not divide H and W, or if there are not exactly
        (H / P) * (W / P) patches.
    """
    ### BEGIN SOLUTION
    for name, size in (("P", P), ("H", H), ("W", W)):
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f"{name} must be a positive integer, not {size!r}")
    if H % P or W % P:
        raise ValueError(f"P = {P} must divide H = {H} and W = {W}")
    H_p, W_p = H // P, W // P
    if patches.ndim != 2 or len(patches) != H_p * W_p:
        raise ValueError(f"{H_p * W_p} rows are needed, not {patches.shape}")
    length = patches.shape[1]
    if length == 0 or length % P**2:
        raise ValueError(f"a row must hold a multiple of {P**2}, not {length}")
    grid = patches.reshape(H_p, W_p, P, P, -1)
    grid = grid.transpose(0, 2, 1, 3, 4)  # (H_p, P, W_p, P, C)
    return grid.reshape(H, W, -1)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(unpatchify)
# ### BEGIN HIDDEN TESTS
# check(unpatchify, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## From a convolution's weight to a matrix
#
# A checkpoint stores the patch embedding as a convolution. You want the matrix
# that does the same to the rows of `patchify`. Write `conv_weight_to_linear`.
# The convolution lists each filter as $(C, P, P)$; your rows are channels
# last. A wrong order can have the right shape, so the values have to tell.
#
# Hint: Say it in words first: row $(uP + v)C + c$ of the matrix holds what
# each of the $d$ filters does to pixel $(u, v)$ in channel $c$.
#
# Hint: The axes must come in the order pixel row, pixel column, channel,
# filter. Which permutation takes `(d, C, P, P)` there?


# %%
def conv_weight_to_linear(W_conv):
    """Turn a patch convolution's weight into the matrix for flattened patches.

    Parameters
    ----------
    W_conv : array, shape (d, C, P, P)
        One filter for each output channel, PyTorch's layout. It is not changed.

    Returns
    -------
    array, shape (P * P * C, d)
        Multiplies channels-last patches from the right, as `patchify` makes
        them; in the dtype of `W_conv`.

    Notes
    -----
    Row (u P + v) C + c holds what every filter does to pixel (u, v), channel c
    (Dosovitskiy et al. 2021, eq. 1, written as a convolution).
    """
    ### BEGIN SOLUTION
    if W_conv.ndim != 4 or W_conv.shape[2] != W_conv.shape[3]:
        raise ValueError(f"W_conv must be (d, C, P, P), not {W_conv.shape}")
    W_E = W_conv.transpose(2, 3, 1, 0)  # (P, P, C, d)
    return W_E.reshape(-1, W_conv.shape[0])
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(conv_weight_to_linear)
# ### BEGIN HIDDEN TESTS
# check(conv_weight_to_linear, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## The patch embedding, as a convolution does it
#
# Write `patch_embed_conv`: the tokens that a convolution with kernel $P$ and
# stride $P$ gives, for an image with its channels first, as PyTorch stores it.
# You may slide the filters window by window, or cut the image with `patchify`
# and multiply once. Both give the same tokens.
#
# Hint: $P$ stands in the shape of `W_conv`. The image must be turned to
# channels last before `patchify` reads it.
#
# Hint: The bias belongs to the filters: one number for each of the $d$
# columns, added to every token.


# %%
def patch_embed_conv(img_chw, W_conv, b):
    """Embed an image's patches by a convolution whose stride equals its kernel.

    Parameters
    ----------
    img_chw : array, shape (C, H, W)
        The image, channels first. It is not changed.
    W_conv : array, shape (d, C, P, P)
        One filter for each output channel. As in every deep learning library
        the filter is not flipped.
    b : array, shape (d,)
        One bias for each output channel.

    Returns
    -------
    array, shape (N_p, d)
        One token for each patch, in raster order. Pixels that do not fill a
        whole patch are dropped.

    Notes
    -----
    Token i is the sum over c, u, v of W_conv[:, c, u, v] times pixel (u, v),
    channel c, of patch i, plus b (Dosovitskiy et al. 2021, eq. 1).
    """
    ### BEGIN SOLUTION
    if img_chw.ndim != 3:
        raise ValueError(f"img_chw must be (C, H, W), not {img_chw.shape}")
    W_E = conv_weight_to_linear(W_conv)  # (P * P * C, d)
    if img_chw.shape[0] != W_conv.shape[1]:
        raise ValueError("img_chw and W_conv must have the same channels")
    if b.shape != W_conv.shape[:1]:
        raise ValueError(f"b must have shape {W_conv.shape[:1]}, not {b.shape}")
    if img_chw.dtype.kind != "f":
        img_chw = img_chw.astype(np.float64)  # whole pixels would overflow
    img = img_chw.transpose(1, 2, 0)  # (H, W, C)
    return patchify(img, W_conv.shape[-1]) @ W_E + b  # (N_p, d)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(patch_embed_conv)
# ### BEGIN HIDDEN TESTS
# check(patch_embed_conv, hidden=True)
# ### END HIDDEN TESTS
