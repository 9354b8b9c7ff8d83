# %% [markdown]
# # Sine and cosine positions
#
# The exercises of the chapter *Sine and cosine positions*. You write the
# position vectors of the first Transformer, the rotation that a fixed offset
# amounts to, and the two numbers that say how alike two positions are.
# Positions are counted from 0, $d$ is the width of a vector, and pair
# $k = 0, 1, \ldots, d/2 - 1$ turns with the frequency
# $\omega_k = \mathrm{base}^{-2k/d}$, in radians for each step.
#
# Fill in each function, run its cell, then run the check under it. A check
# that fails says what it called, what should have come back and what did.

# %%
import numpy as np

# %% [markdown]
# ## The vector of a position
#
# Write `sincos_1d`. For a position $p$ it returns the $d$ numbers
#
# $$\big(\sin p\omega_0,\ \cos p\omega_0,\ \sin p\omega_1,\
# \cos p\omega_1,\ \ldots\big), \qquad \omega_k = \mathrm{base}^{-2k/d}.$$
#
# Sine and cosine of one frequency stand next to each other. Positions may be
# one number, a list, or an array of any shape, and need not start at 0 or be
# whole; the answer has one more axis, of length $d$. There is no vector of odd
# width: an odd $d$ must raise.
#
# Hint: There are $d/2$ frequencies, not $d$. Compute them first; the exponents
# start at 0 and go up in steps of $2/d$.
#
# Hint: `positions[..., None]` gives an array of any shape one more axis, and
# broadcasting multiplies it with every frequency. Turn a list or a number into
# an array before you index it.
#
# Hint: Make the empty answer first, of floats. Even entries `[..., 0::2]` take
# the sines, odd entries `[..., 1::2]` the cosines of the same angles.


# %%
def sincos_1d(positions, d, base=10000.0):
    """Encode positions as sines and cosines at d / 2 frequencies.

    Parameters
    ----------
    positions : float or array, shape (...)
        Positions in steps, usually counted from 0. Whole or not, negative too.
        They are not changed.
    d : int
        Width of a vector, even.
    base : float
        Frequencies fall from 1 to base ** (-1 + 2 / d) radians for each step.

    Returns
    -------
    array, shape (..., d)
        sin, cos, sin, cos, ... from the fastest pair to the slowest; float64,
        or the dtype of `positions` where that is a float.

    Raises
    ------
    ValueError
        If d is odd or not positive, base is not positive, or a position is
        not a finite number.

    Notes
    -----
    Entries 2k and 2k + 1 are the sine and the cosine of p * base ** (-2 k / d)
    (Vaswani et al. 2017, section 3.5).
    """
    ### BEGIN SOLUTION
    positions = np.asarray(positions)
    if positions.dtype.kind not in "iuf" or not np.isfinite(positions).all():
        raise ValueError(f"positions must be finite numbers, not {positions}")
    if not isinstance(d, (int, np.integer)) or d < 2 or d % 2:
        raise ValueError(f"d must be a positive even integer, not {d!r}")
    if not 0 < base < np.inf:
        raise ValueError(f"base must be a positive number, not {base!r}")
    dtype = positions.dtype if positions.dtype.kind == "f" else np.float64
    omega = float(base) ** (-np.arange(0, d, 2) / d)  # radians for each step
    # Angles in float64 whatever comes out: in low precision a large position
    # loses its last digits.
    angles = positions[..., None].astype(np.float64) * omega  # (..., d / 2)
    pe = np.empty((*positions.shape, d), dtype=dtype)
    pe[..., 0::2] = np.sin(angles)
    pe[..., 1::2] = np.cos(angles)
    return pe
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(sincos_1d)
# ### BEGIN HIDDEN TESTS
# check(sincos_1d, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## An offset as a rotation
#
# Write `offset_rotation`: the one matrix $R$ of shape $(d, d)$ that moves
# every position by the same offset,
#
# $$\mathrm{PE}(p + \Delta) = R\,\mathrm{PE}(p)\qquad\text{for every } p,$$
#
# with $\mathrm{PE}(p)$ a column, as `sincos_1d` lists it. The offset is one
# number, of any sign.
#
# Hint: Look at one pair. Write out $\sin(a + b)$ and $\cos(a + b)$, with
# $a = p\omega_k$ and $b = \Delta\omega_k$, and read off the four numbers that
# do not contain $a$.
#
# Hint: No pair needs the numbers of another, so $R$ has a block of two by two
# on the diagonal for each pair and zeros everywhere else.
#
# Hint: The pair is (sine, cosine), not (cosine, sine): the minus sign stands
# where a textbook's rotation matrix does not have it. Try your matrix on
# $p = 0$.


# %%
def offset_rotation(offset, d, base=10000.0):
    """Give the matrix that moves every sine-cosine position by the same offset.

    Parameters
    ----------
    offset : float
        How far to move, in steps; negative moves back.
    d : int
        Width of a position vector, even.
    base : float
        As for `sincos_1d`.

    Returns
    -------
    array, shape (d, d)
        R with sincos_1d(p + offset) = R @ sincos_1d(p) for every p: orthogonal,
        one block of two by two for each pair. float64, or the dtype of `offset`
        where that is a float.

    Raises
    ------
    ValueError
        If offset is not one finite number, or d or base make no sense.

    Notes
    -----
    Block k is [[cos, sin], [-sin, cos]] of offset * base ** (-2 k / d): the
    addition theorems (the linear map that Vaswani et al. 2017, section 3.5,
    mention).
    """
    ### BEGIN SOLUTION
    offset = np.asarray(offset)
    if offset.ndim or offset.dtype.kind not in "iuf" or not np.isfinite(offset):
        raise ValueError(f"offset must be one finite number, not {offset}")
    moved = sincos_1d(offset, d, base)  # sine and cosine of each pair's angle
    sine, cosine = moved[0::2], moved[1::2]
    R = np.zeros((d, d), dtype=moved.dtype)
    first = np.arange(0, d, 2)  # where each pair begins
    R[first, first] = R[first + 1, first + 1] = cosine
    R[first, first + 1] = sine
    R[first + 1, first] = -sine
    return R
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(offset_rotation)
# ### BEGIN HIDDEN TESTS
# check(offset_rotation, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## How alike two positions are
#
# Write `position_similarity`: the inner product of the vectors of any two
# positions that are `offset` apart. It is the same wherever the two stand, so
# you need no position at all. The offset is one number (then a number comes
# back), or a list or an array of any shape (then an array of that shape).
#
# Hint: One of the two positions may be 0. What does its vector look like?
#
# Hint: Multiply one pair of $p$ with the same pair of $p + \Delta$ and
# simplify: one cosine for each pair is left. Sum over the pairs, and over
# nothing else.


# %%
def position_similarity(offset, d, base=10000.0):
    """Inner product of any two sine-cosine positions that are so far apart.

    Parameters
    ----------
    offset : float or array, shape (...)
        Distance of the two positions in steps; the sign does not matter.
        It is not changed.
    d : int
        Width of a position vector, even.
    base : float
        As for `sincos_1d`.

    Returns
    -------
    float or array, shape (...)
        The sum over the d / 2 pairs of cos(offset * omega_k), between -d / 2
        and d / 2; float64, or the dtype of `offset` where that is a float.

    Raises
    ------
    ValueError
        If an offset is not a finite number, or d or base make no sense.

    Notes
    -----
    sin a sin b + cos a cos b = cos(a - b), summed over the pairs.
    """
    ### BEGIN SOLUTION
    offset = np.asarray(offset)
    if offset.dtype.kind not in "iuf" or not np.isfinite(offset).all():
        raise ValueError(f"offset must be finite numbers, not {offset}")
    # Position 0 is (0, 1, 0, 1, ...): its inner product with position `offset`
    # picks out the cosines.
    return sincos_1d(offset, d, base)[..., 1::2].sum(axis=-1)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(position_similarity)
# ### BEGIN HIDDEN TESTS
# check(position_similarity, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## The angle between two positions
#
# Write `position_angle`: the angle in radians, from 0 to $\pi$, between the
# vectors of any two positions that are `offset` apart. Both vectors have the
# length $\sqrt{d/2}$. Again the offset is one number, a list, or an array of
# any shape.
#
# Hint: For any two vectors the inner product is the product of the two lengths
# and the cosine of the angle.
#
# Hint: Rounding can push a cosine just past 1, and `np.arccos` answers that
# with NaN. Clip it to $[-1, 1]$ first.


# %%
def position_angle(offset, d, base=10000.0):
    """Angle between any two sine-cosine positions that are so far apart.

    Parameters
    ----------
    offset : float or array, shape (...)
        Distance of the two positions in steps; the sign does not matter.
        It is not changed.
    d : int
        Width of a position vector, even.
    base : float
        As for `sincos_1d`.

    Returns
    -------
    float or array, shape (...)
        Radians from 0 to pi; float64, or the dtype of `offset` where that is
        a float.

    Raises
    ------
    ValueError
        If an offset is not a finite number, or d or base make no sense.

    Notes
    -----
    The inner product (`position_similarity`) divided by the product of the two
    lengths, d / 2, is the cosine. Near 1 the arc cosine turns an error of 1e-16
    into one of 1e-8, so do not expect more digits than that.
    """
    ### BEGIN SOLUTION
    offset = np.asarray(offset)
    # In low precision arccos would eat the last digits that there are.
    wide = offset.astype(np.float64) if offset.dtype.kind == "f" else offset
    cosine = position_similarity(wide, d, base) / (d / 2)
    angle = np.arccos(np.clip(cosine, -1, 1))
    return angle.astype(offset.dtype) if offset.dtype.kind == "f" else angle
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(position_angle)
# ### BEGIN HIDDEN TESTS
# check(position_angle, hidden=True)
# ### END HIDDEN TESTS
