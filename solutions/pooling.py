# %% [markdown]
# # Pooling
#
# The exercises of the chapter *Pooling*. A Vision Transformer returns one vector for each token, and a classifier
# wants one for the image. You write the three ways to get it that leave the class token alone: the mean before
# the LayerNorm, the mean after it, and attention with a learned query. $T$ is the number of rows, $d$ their width.
# The first `n_prefix` rows belong to the class token and the registers; the patches follow.
#
# Fill in each function, run its cell, then run the check under it. A check that fails says what it called,
# what should have come back and what did.

# %%
import math

import numpy as np


def erf(x):
    """The error function of each entry, as `scipy.special.erf`; single precision stays single."""
    return np.vectorize(math.erf, otypes=[np.result_type(x, np.float32)])(x)


# %% [markdown]
# ## Average, then normalize
#
# Write `mean_then_norm`: the mean of the patch rows, and then the LayerNorm of that one vector. The LayerNorm of a
# vector $\mathbf{y}$ of width $d$ is
#
# $$\frac{\mathbf{y} - \mu}{\sqrt{\sigma^2 + \varepsilon}} \odot \mathbf{g} + \mathbf{s}, \qquad
# \mu = \frac{1}{d} \sum_j y_j, \qquad \sigma^2 = \frac{1}{d} \sum_j (y_j - \mu)^2,$$
#
# with the gain $\mathbf{g}$ and the shift $\mathbf{s}$. The product with the gain is entry by entry.
#
# Hint: Two means go in two directions. The first runs over the rows and leaves a vector of width $d$, the second
# over the entries of that vector and leaves a number.
#
# Hint: `np.var` divides by $d$ unless you ask otherwise. $\varepsilon$ is added to the variance, under the root.


# %%
def mean_then_norm(X, n_prefix, gain, shift, eps=1e-6):
    """Pool the patch tokens by their mean, then apply LayerNorm to it.

    Parameters
    ----------
    X : array, shape (T, d)
        The last block's output, prefix rows first. It is not changed.
    n_prefix : int
        Number of rows in front that are not patches; they are left out.
    gain, shift : array, shape (d,)
        The LayerNorm's parameters.
    eps : float
        Added to the variance, inside the root.

    Returns
    -------
    array, shape (d,)

    Raises
    ------
    ValueError
        If a shape does not fit, no patch row is left, or `eps` is negative.

    Notes
    -----
    The order of MAE's fine-tuning code, and of timm with `global_pool="avg"` and
    `fc_norm=None`.
    """
    ### BEGIN SOLUTION
    X, gain, shift = np.asarray(X), np.asarray(gain), np.asarray(shift)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have shape (T, d), not {X.shape}")
    T = len(X)
    if not isinstance(n_prefix, (int, np.integer)) or not 0 <= n_prefix < T:
        raise ValueError(f"n_prefix must be from 0 to {T - 1}, not {n_prefix!r}")
    for name, vector in (("gain", gain), ("shift", shift)):
        if vector.shape != X.shape[1:]:
            shape = vector.shape
            raise ValueError(f"{name} must have shape {X.shape[1:]}, not {shape}")
    mean = X[n_prefix:].mean(axis=0)  # (d,)
    variance = mean.var()
    if not eps >= 0 or variance + eps == 0:
        raise ValueError(f"eps must be positive where nothing varies, not {eps!r}")
    return (mean - mean.mean()) / np.sqrt(variance + eps) * gain + shift
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(mean_then_norm)
# ### BEGIN HIDDEN TESTS
# check(mean_then_norm, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Normalize, then average
#
# Write `norm_then_mean`: the LayerNorm of each patch row by itself, and then the mean of the results. The arguments
# are those of `mean_then_norm`, the answer is not.
#
# Hint: Each row has its own mean and its own variance. With `keepdims=True` they stay columns, and a column
# subtracts from every entry of its row.
#
# Hint: The gain and the shift are the same for all rows, so it does not matter whether they come before the mean
# or after it.


# %%
def norm_then_mean(X, n_prefix, gain, shift, eps=1e-6):
    """Apply LayerNorm to each patch token, then pool them by their mean.

    Parameters
    ----------
    X : array, shape (T, d)
        The last block's output, prefix rows first. It is not changed.
    n_prefix : int
        Number of rows in front that are not patches; they are left out.
    gain, shift : array, shape (d,)
        The LayerNorm's parameters.
    eps : float
        Added to each row's variance, inside the root.

    Returns
    -------
    array, shape (d,)

    Raises
    ------
    ValueError
        If a shape does not fit, no patch row is left, or `eps` is negative.

    Notes
    -----
    The order of big_vision, of vit-pytorch, and of timm with `fc_norm=False`.
    """
    ### BEGIN SOLUTION
    X, gain, shift = np.asarray(X), np.asarray(gain), np.asarray(shift)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have shape (T, d), not {X.shape}")
    T = len(X)
    if not isinstance(n_prefix, (int, np.integer)) or not 0 <= n_prefix < T:
        raise ValueError(f"n_prefix must be from 0 to {T - 1}, not {n_prefix!r}")
    for name, vector in (("gain", gain), ("shift", shift)):
        if vector.shape != X.shape[1:]:
            shape = vector.shape
            raise ValueError(f"{name} must have shape {X.shape[1:]}, not {shape}")
    patches = X[n_prefix:]
    means = patches.mean(axis=1, keepdims=True)  # (N_p, 1)
    variances = patches.var(axis=1, keepdims=True)
    if not eps >= 0 or (variances + eps == 0).any():
        raise ValueError(f"eps must be positive where nothing varies, not {eps!r}")
    normalized = (patches - means) / np.sqrt(variances + eps)  # (N_p, d)
    return normalized.mean(axis=0) * gain + shift
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(norm_then_mean)
# ### BEGIN HIDDEN TESTS
# check(norm_then_mean, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Pool by attention
#
# Write `map_head`, multihead attention pooling. One learned query asks every patch how much it has to say; the
# prefix rows are not asked. `params` is a dictionary:
#
# - `q`, shape $(d,)$, the query, and `n_heads`, the number $h$ of heads of width $d_h = d / h$;
# - `W_q`, `W_k`, `W_v`, `W_o`, shape $(d, d)$, with the biases `b_q`, `b_k`, `b_v`, `b_o`;
# - `ln_gain`, `ln_shift`, shape $(d,)$; `W_1` $(d, d_{\text{ff}})$, `b_1` $(d_{\text{ff}},)$, `W_2`
#   $(d_{\text{ff}}, d)$, `b_2` $(d,)$.
#
# Weights multiply from the right. The query is projected by `W_q` like any other query. Head number 0 takes the
# first $d_h$ numbers of the projected vectors, head 1 the next ones, and so on. Scores are divided by
# $\sqrt{d_h}$, and the softmax runs over the patches. The heads' results, side by side, go through `W_o`; that
# gives $\mathbf{u}$. Return $\mathbf{u} + \text{MLP}(\text{LN}(\mathbf{u}))$. The LayerNorm has
# $\varepsilon = 10^{-6}$, and the MLP is the linear layer `W_1`, the exact GELU
# $x \mapsto \frac{x}{2} \left(1 + \operatorname{erf} \frac{x}{\sqrt 2}\right)$, and the linear layer `W_2`.
#
# Hint: There is one query, so no matrix of scores is needed for each head, only a list with one score for each
# patch. Reshape queries, keys and values so that the heads have an axis of their own.
#
# Hint: Subtract the largest score of each head before `np.exp`. The softmax stays the same, and large scores no
# longer overflow.
#
# Hint: `np.einsum("hd,nhd->hn", q, K)` gives the scores of all heads. The same letters in another order take the
# weights and the values to one vector for each head.


# %%
def map_head(X, n_prefix, params):
    """Pool the patch tokens by attention with one learned query (MAP).

    Parameters
    ----------
    X : array, shape (T, d)
        The encoder's output, prefix rows first. It is not changed.
    n_prefix : int
        Number of rows in front that are not patches; they are left out.
    params : dict
        `q` (d,), `n_heads`, `W_q`, `W_k`, `W_v`, `W_o` (d, d), `b_q`, `b_k`, `b_v`,
        `b_o` (d,), `ln_gain`, `ln_shift` (d,), `W_1` (d, d_ff), `b_1` (d_ff,),
        `W_2` (d_ff, d), `b_2` (d,).

    Returns
    -------
    array, shape (d,)

    Raises
    ------
    ValueError
        If a parameter is missing or has the wrong shape, no patch row is left, or
        `n_heads` does not divide d.

    Notes
    -----
    The MAP head of Zhai et al. (2022), as in big_vision, with the exact GELU in
    place of its tanh approximation.
    """
    ### BEGIN SOLUTION
    X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have shape (T, d), not {X.shape}")
    T, d = X.shape
    if not isinstance(n_prefix, (int, np.integer)) or not 0 <= n_prefix < T:
        raise ValueError(f"n_prefix must be from 0 to {T - 1}, not {n_prefix!r}")
    d_ff = np.size(params.get("b_1", 0))
    shapes = dict.fromkeys(("q", "b_q", "b_k", "b_v", "b_o", "b_2"), (d,))
    shapes |= dict.fromkeys(("W_q", "W_k", "W_v", "W_o"), (d, d))
    shapes |= {"ln_gain": (d,), "ln_shift": (d,), "n_heads": ()}
    shapes |= {"W_1": (d, d_ff), "b_1": (d_ff,), "W_2": (d_ff, d)}
    missing = sorted(shapes.keys() - params.keys())
    if missing:
        raise ValueError(f"params lacks {', '.join(missing)}")
    p = {name: np.asarray(params[name]) for name in shapes}
    for name, shape in shapes.items():
        found = p[name].shape
        if found != shape:
            what = f"params[{name!r}]"
            raise ValueError(f"{what} must have shape {shape}, not {found}")
    h = params["n_heads"]
    if not isinstance(h, (int, np.integer)) or h < 1 or d % h:
        raise ValueError(f"params['n_heads'] must divide d = {d}, not {h!r}")

    patches = X[n_prefix:]  # (N_p, d)
    q = (p["q"] @ p["W_q"] + p["b_q"]).reshape(h, -1)  # (h, d_h)
    K = (patches @ p["W_k"] + p["b_k"]).reshape(-1, h, d // h)  # (N_p, h, d_h)
    V = (patches @ p["W_v"] + p["b_v"]).reshape(-1, h, d // h)

    scores = np.einsum("hd,nhd->hn", q, K) / (d // h) ** 0.5  # (h, N_p)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = weights / weights.sum(axis=1, keepdims=True)
    heads = np.einsum("hn,nhd->hd", weights, V)  # (h, d_h)
    u = heads.reshape(d) @ p["W_o"] + p["b_o"]

    # LayerNorm of u: the mean of one row is that row.
    y = mean_then_norm(u[None], 0, p["ln_gain"], p["ln_shift"])
    y = y @ p["W_1"] + p["b_1"]  # (d_ff,)
    y = y / 2 * (1 + erf(y / 2**0.5))
    return u + y @ p["W_2"] + p["b_2"]
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(map_head)
# ### BEGIN HIDDEN TESTS
# check(map_head, hidden=True)
# ### END HIDDEN TESTS
