# %% [markdown]
# # Frames
#
# The exercises of the chapter *Frames*. You count the frames of a signal, cut
# it into them, and put them together again. A signal is an array of $N$
# samples, a frame has $L$ of them, and the next frame begins $H$ samples
# later.
#
# Fill in each function, run its cell, then run the check under it.

# %%
import numpy as np

# %% [markdown]
# ## Count the frames
#
# Write `frame_count`. It takes the number $N$ of samples, the length $L$ of a
# frame and the hop $H$, and returns how many whole frames there are. A frame
# that would reach beyond the last sample does not count.
#
# Hint: Frame $k$ ends before sample $kH + L$. For which $k$ is that at most
# $N$? Count from 0.


# %%
def frame_count(n, length, hop):
    """Count the whole frames of a signal.

    Parameters
    ----------
    n : int
        Samples of the signal.
    length : int
        Samples of a frame, at least 1.
    hop : int
        Samples from the start of a frame to the start of the next, at least 1.

    Returns
    -------
    int
        The number of frames; 0 if the signal is shorter than one.
    """
    ### BEGIN SOLUTION
    return max(0, 1 + (n - length) // hop)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(frame_count)
# ### BEGIN HIDDEN TESTS
# check(frame_count, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Cut a signal into frames
#
# Write `frames`. It takes a signal, the length of a frame and the hop, and
# returns one row for each whole frame. Row $k$ holds the samples $kH$ to
# $kH + L - 1$. Samples after the last whole frame are dropped.
#
# Hint: `np.arange(count)[:, None] * hop` says where each row begins.
#
# Hint: Add `np.arange(length)`, and you have the index of every entry.


# %%
def frames(x, length, hop):
    """Cut a signal into frames.

    Parameters
    ----------
    x : array, shape (n,)
        The signal. It is not changed.
    length : int
        Samples of a frame, at least 1.
    hop : int
        Samples from the start of a frame to the start of the next, at least 1.

    Returns
    -------
    array, shape (count, length)
        One row for each whole frame.

    Raises
    ------
    ValueError
        If the signal is shorter than one frame.
    """
    ### BEGIN SOLUTION
    count = frame_count(len(x), length, hop)
    if not count:
        raise ValueError(f"{len(x)} samples hold no frame of {length}")
    return x[np.arange(count)[:, None] * hop + np.arange(length)]
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(frames)
# ### BEGIN HIDDEN TESTS
# check(frames, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Put the frames together
#
# Write `overlap_add`. It takes frames, one in each row, and the hop, and
# returns a signal: every frame is put where it was cut, and where frames
# overlap, their samples are added.
#
# Hint: The last frame begins at $(K - 1) H$ and has $L$ samples. Begin with
# as many zeros as the signal has samples.


# %%
def overlap_add(rows, hop):
    """Put frames together, adding where they overlap.

    Parameters
    ----------
    rows : array, shape (count, length)
        The frames, at least one. They are not changed.
    hop : int
        Samples from the start of a frame to the start of the next, at least 1.

    Returns
    -------
    array, shape ((count - 1) * hop + length,)
        The sum of all frames, each at its place.
    """
    ### BEGIN SOLUTION
    count, length = rows.shape
    x = np.zeros((count - 1) * hop + length)
    for k, row in enumerate(rows):
        x[k * hop : k * hop + length] += row
    return x
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(overlap_add)
# ### BEGIN HIDDEN TESTS
# check(overlap_add, hidden=True)
# ### END HIDDEN TESTS
