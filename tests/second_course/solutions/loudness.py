# %% [markdown]
# # Loudness
#
# The exercise of the chapter *Loudness*, in PyTorch: how loud is each frame,
# in decibels?
#
# Fill in the function, run its cell, then run the check under it.

# %%
import torch

# %% [markdown]
# ## Measure every frame
#
# Write `level`. It takes a batch of frames, a tensor whose last axis counts
# the samples, and returns the level of each frame in decibels: ten times the
# decimal logarithm of the mean of the squared samples. What is quieter than
# `floor` is set to `floor`, silence too.
#
# Hint: `mean` and `log10` are methods of a tensor; the first takes the axis.
# The logarithm of 0 is minus infinity, and `clamp` can deal with that.


# %%
def level(rows, floor=-60.0):
    """Measure the level of frames in decibels.

    Parameters
    ----------
    rows : tensor, shape (..., length)
        The frames. They are not changed.
    floor : float
        The lowest level that is told apart.

    Returns
    -------
    tensor, shape (...)
        10 log10 of the mean square of each frame, at least `floor`.
    """
    ### BEGIN SOLUTION
    power = rows.square().mean(dim=-1)
    return (10 * torch.log10(power)).clamp(min=floor)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(level)
# ### BEGIN HIDDEN TESTS
# check(level, hidden=True)
# ### END HIDDEN TESTS
