# %% [markdown]
# # A small Vision Transformer
#
# The exercises of the chapter *A small ViT, whole*. You write the parts of a
# Transformer block in PyTorch: heads, attention, the block itself, and the
# choice of the weights that decay in training. $B$ is the number of images in
# a batch, $T$ the number of tokens of each, $d$ their width, $h$ the number of
# heads and $d_h = d / h$ the width of a head. Inputs are tensors, and so are
# your answers.
#
# Fill in each function, run its cell, then run the check under it. A check
# that fails says what it called, what should have come back and what did.

# %% tags=["active-py"]
import functools

# %%
import torch
import torch.nn.functional as F
from torch import nn

# %% tags=["active-py"]
from solutions.resolution import bilinear_resize_matrix

# %% [markdown]
# ## Split the width into heads
#
# Write `split_heads`. It takes tokens of shape $(B, T, d)$ and gives every head
# its share of each token: shape $(B, h, T, d_h)$. Heads are contiguous: head 0
# gets the first $d_h$ numbers of a token, head 1 the next $d_h$, and so on.
#
# Hint: A reshape moves no number, it only puts brackets elsewhere. Which axis
# has to be split, and into which two?
#
# Hint: After `reshape(B, T, n_heads, -1)` the heads have an axis of their own,
# in the third place. They belong in the second.


# %%
def split_heads(x, n_heads):
    """Give each attention head its share of every token.

    Parameters
    ----------
    x : tensor, shape (B, T, d)
        Queries, keys or values of a batch. It is not changed.
    n_heads : int
        Number of heads h; it divides d.

    Returns
    -------
    tensor, shape (B, h, T, d / h)
        Head j holds the numbers j d / h to (j + 1) d / h - 1 of each token.

    Raises
    ------
    ValueError
        If x does not have three axes or n_heads does not divide d.
    """
    ### BEGIN SOLUTION
    if x.ndim != 3:
        raise ValueError(f"x must have shape (B, T, d), not {tuple(x.shape)}")
    B, T, d = x.shape
    if n_heads < 1 or d % n_heads:
        raise ValueError(f"n_heads must divide d = {d}, not {n_heads}")
    x = x.reshape(B, T, n_heads, d // n_heads)  # (B, T, h, d_h)
    return x.transpose(1, 2)  # (B, h, T, d_h)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(split_heads)
# ### BEGIN HIDDEN TESTS
# check(split_heads, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Put the heads side by side again
#
# Write `merge_heads`, the way back: from $(B, h, T, d_h)$ to $(B, T, d)$, with
# the numbers of head 0 first in each token, then those of head 1.
#
# Hint: Undo the two steps of `split_heads` from last to first.
#
# Hint: A tensor whose axes you have exchanged no longer lies in memory in the
# order of its axes, and `view` refuses it. `reshape` copies where it must.


# %%
def merge_heads(x):
    """Put the heads of every token side by side.

    Parameters
    ----------
    x : tensor, shape (B, h, T, d_h)
        What each head found for each token. It is not changed.

    Returns
    -------
    tensor, shape (B, T, h * d_h)
        Undoes `split_heads`.

    Raises
    ------
    ValueError
        If x does not have four axes.
    """
    ### BEGIN SOLUTION
    if x.ndim != 4:
        shape = tuple(x.shape)
        raise ValueError(f"x must have shape (B, h, T, d_h), not {shape}")
    return x.transpose(1, 2).flatten(2)  # (B, T, h, d_h) -> (B, T, h * d_h)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(merge_heads)
# ### BEGIN HIDDEN TESTS
# check(merge_heads, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Attend
#
# Write `attention`. In each head every query meets every key; a score is their
# inner product divided by $\sqrt{d_h}$. The softmax runs over the keys, so the
# weights of one query add up to 1. Return, for each query, the mean of the
# values with these weights. Scores may be in the thousands, and the answer must
# stay finite.
#
# Hint: `@` multiplies the matrices in the last two axes and leaves the axes
# before them alone. Which of the three has to be transposed?
#
# Hint: `scores.softmax(dim=...)` is stable for large scores. In
# `scores[b, j, t, s]`, which index counts the keys?


# %%
def attention(q, k, v):
    """Scaled dot-product attention of every head.

    Parameters
    ----------
    q, k, v : tensor, shape (B, h, T, d_h)
        Queries, keys and values. They are not changed.

    Returns
    -------
    tensor, shape (B, h, T, d_h)
        For each query a mean of the values, weighted by the softmax over the
        keys of q k^T / sqrt(d_h).

    Raises
    ------
    ValueError
        If q, k and v differ in shape.

    Notes
    -----
    Equation 1 of Vaswani et al. (2017). It stores B h T^2 scores, which
    `torch.nn.functional.scaled_dot_product_attention` need not.
    """
    ### BEGIN SOLUTION
    shapes = [tuple(x.shape) for x in (q, k, v)]
    if len(set(shapes)) > 1 or q.ndim != 4:
        raise ValueError(f"q, k and v must be (B, h, T, d_h), not {shapes}")
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, h, T, T)
    return scores.softmax(dim=-1) @ v  # (B, h, T, d_h)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(attention)
# ### BEGIN HIDDEN TESTS
# check(attention, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## A Transformer block
#
# Write `transformer_block`, a block with its norms first (pre-norm). It gives
# $\mathbf{X}' + \text{MLP}(\text{LN}_2(\mathbf{X}'))$, where
# $\mathbf{X}' = \mathbf{X} + \text{attention}(\text{LN}_1(\mathbf{X}))$.
#
# `params` is a dictionary of tensors. Weights multiply from the right.
#
# - `ln1_gain`, `ln1_shift`, `ln2_gain`, `ln2_shift`, shape $(d,)$, with
#   $\varepsilon = 10^{-6}$;
# - `W_qkv` $(d, 3d)$, `b_qkv` $(3d,)$: the first $d$ columns give the queries
#   of all heads, the next $d$ the keys, the last $d$ the values;
# - `W_o` $(d, d)$, `b_o` $(d,)$, after the heads are merged;
# - `W_1` $(d, d_{\text{ff}})$, `b_1`, `W_2` $(d_{\text{ff}}, d)$, `b_2`, with
#   the exact (erf) GELU between them.
#
# Hint: Use the three functions above. Each of them needs its argument in one
# particular shape; write the shapes beside your lines.
#
# Hint: `F.layer_norm(x, x.shape[-1:], gain, shift, eps)` is the LayerNorm of
# every token, and `F.gelu` is exact unless you ask for less.
#
# Hint: Both residuals add what came in before the norm, not the normalized
# tokens. The second one adds what the first one gave.


# %%
def transformer_block(x, params, n_heads):
    """Apply one pre-norm Transformer block.

    Parameters
    ----------
    x : tensor, shape (B, T, d)
        The tokens of a batch. It is not changed.
    params : dict of tensors
        `ln1_gain`, `ln1_shift` (d,), `W_qkv` (d, 3 d), `b_qkv` (3 d,), `W_o`
        (d, d), `b_o` (d,), `ln2_gain`, `ln2_shift` (d,), `W_1` (d, d_ff), `b_1`
        (d_ff,), `W_2` (d_ff, d), `b_2` (d,).
    n_heads : int
        Number of attention heads; it divides d.

    Returns
    -------
    tensor, shape (B, T, d)

    Raises
    ------
    ValueError
        If a parameter is missing, or whenever `split_heads` raises.

    Notes
    -----
    The encoder block of Dosovitskiy et al. (2021), equations 2 and 3.
    """
    ### BEGIN SOLUTION
    norms = ["ln1_gain", "ln1_shift", "ln2_gain", "ln2_shift"]
    weights = ["W_qkv", "b_qkv", "W_o", "b_o", "W_1", "b_1", "W_2", "b_2"]
    missing = [name for name in norms + weights if name not in params]
    if missing:
        raise ValueError(f"params lacks {', '.join(missing)}")
    p, d = params, x.shape[-1:]

    y = F.layer_norm(x, d, p["ln1_gain"], p["ln1_shift"], eps=1e-6)
    qkv = y @ p["W_qkv"] + p["b_qkv"]  # (B, T, 3 d)
    q, k, v = (split_heads(part, n_heads) for part in qkv.chunk(3, dim=-1))
    y = merge_heads(attention(q, k, v))  # (B, T, d)
    x = x + y @ p["W_o"] + p["b_o"]

    y = F.layer_norm(x, d, p["ln2_gain"], p["ln2_shift"], eps=1e-6)
    y = F.gelu(y @ p["W_1"] + p["b_1"])  # (B, T, d_ff)
    return x + y @ p["W_2"] + p["b_2"]
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(transformer_block)
# ### BEGIN HIDDEN TESTS
# check(transformer_block, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## Which weights decay
#
# Weight decay pulls numbers towards 0. That is meant for the matrices of linear
# layers and the filters of convolutions. Biases, the gains and shifts of norms,
# the class token, registers and position tables are left alone.
#
# Write `decay_groups`. It takes any `nn.Module` and returns two dictionaries in
# a list, as `torch.optim.AdamW` takes them. `{"params": [...], "weight_decay":
# weight_decay}` holds what decays, `{"params": [...], "weight_decay": 0.0}` the
# rest. Every parameter stands in one of the two, once.
#
# The number of axes alone does not tell: registers have shape $(R, d)$, like a
# matrix, and a position table may be an `nn.Parameter` or an `nn.Embedding`.
# Tokens and tables that are an `nn.Parameter` have the word *token*,
# *registers* or *pos* in their own name, such as `cls_token` or `pos_embed`.
#
# Hint: `module.named_parameters()` gives every parameter once, with a name such
# as `blocks.0.norm1.weight`. What stands after the last dot is the parameter's
# own name, what stands before it the name of its layer.
#
# Hint: Two ways lead there. Ask what kind of layer owns a parameter
# (`module.get_submodule(path)`), or ask for its axes and its own name.


# %%
def decay_groups(module, weight_decay):
    """Split a model's parameters into those that decay and those that do not.

    Parameters
    ----------
    module : nn.Module
        The model. It is not changed.
    weight_decay : float
        For the first group.

    Returns
    -------
    list of two dict
        Optimizer groups with the keys `params`, a list of the model's own
        parameters, and `weight_decay`: first matrices and convolution filters,
        then biases, norms, class token, registers and position tables, with 0.

    Raises
    ------
    ValueError
        If weight_decay is negative.
    """
    ### BEGIN SOLUTION
    if not weight_decay >= 0:
        raise ValueError(f"weight_decay must be 0 or more, not {weight_decay}")
    words = ("bias", "cls", "token", "register", "pos", "table")
    decaying, others = [], []
    for path, parameter in module.named_parameters():
        layer, _, name = path.rpartition(".")
        table = isinstance(module.get_submodule(layer), nn.Embedding)
        table = table or any(word in name for word in words)
        matrix = parameter.ndim > 1 and not table  # or a bank of filters
        (decaying if matrix else others).append(parameter)
    decay = {"params": decaying, "weight_decay": weight_decay}
    return [decay, {"params": others, "weight_decay": 0.0}]
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(decay_groups)
# ### BEGIN HIDDEN TESTS
# check(decay_groups, hidden=True)
# ### END HIDDEN TESTS

# %% tags=["active-py"]
# The whole model. The functions are the batched PyTorch twins of the NumPy
# functions of earlier chapters and give the same numbers: tests/chapters.

POSITIONS = ("none", "learned", "factorized", "sincos", "axial", "mixed")
POOLINGS = ("cls", "mean_then_norm", "norm_then_mean", "map")

# Up to so many tokens `attention` is faster on a CPU than PyTorch's fused way, up
# to ten times in bfloat16, whose way back is slow there.
SHORT = {torch.float32: 32, torch.bfloat16: 256}


# %% tags=["active-py"]
def grid_coordinates(grid, trained_grid=None):
    """Row and column of each patch, in raster order.

    Parameters
    ----------
    grid : (int, int)
        Rows and columns of patches.
    trained_grid : (int, int), optional
        Stretch the grid over this one: row i of n stands at
        (i + 1/2) n_trained / n - 1/2, as in `resize_pos_embed`.

    Returns
    -------
    tensor of float64, shape (2, H_p * W_p)
        Rows, then columns, in patches of the trained grid.
    """
    axes = [torch.arange(n, dtype=torch.float64) for n in grid]
    if trained_grid is not None:
        sizes = zip(axes, grid, trained_grid, strict=True)
        axes = [(axis + 0.5) * old / n - 0.5 for axis, n, old in sizes]
    return torch.stack(torch.meshgrid(*axes, indexing="ij")).flatten(1)


def sincos_positions(rows, cols, d, base=10000.0):
    """Twin of `positions.sincos_2d` at any coordinates: (N_p, d)."""
    ladder = torch.arange(d // 4, dtype=torch.float64, device=rows.device)
    omega = base ** (-ladder / (d // 4))
    col, row = torch.outer(cols, omega), torch.outer(rows, omega)
    return torch.cat([col.sin(), col.cos(), row.sin(), row.cos()], dim=1)


def factorized_positions(row_table, col_table):
    """Twin of `positions.factorized_table`: (N_p, d)."""
    H_p, W_p = len(row_table), len(col_table)
    rows = row_table.repeat_interleave(W_p, dim=0)
    return torch.cat([col_table.repeat(H_p, 1), rows], dim=1)


def cut(images, P):
    """Twin of `patchify`, channels first: (B, N_p, C * P * P), and the grid."""
    B, C, H, W = images.shape
    H_p, W_p = H // P, W // P
    images = images[:, :, : H_p * P, : W_p * P]
    patches = images.reshape(B, C, H_p, P, W_p, P).permute(0, 2, 4, 1, 3, 5)
    return patches.reshape(B, H_p * W_p, C * P * P), (H_p, W_p)


def resize_positions(table, n_prefix, old_grid, new_grid):
    """Twin of `resolution.resize_pos_embed`: (n_prefix + h * w, d)."""
    if tuple(old_grid) == tuple(new_grid):
        return table
    patches = table[n_prefix:].T.reshape(1, -1, *old_grid)  # (1, d, H_p, W_p)
    patches = F.interpolate(patches, tuple(new_grid), mode="bilinear")
    return torch.cat([table[:n_prefix], patches[0].flatten(1).T])


def resize_filters(weight, P):
    """Twin of `resolution.pi_resize`: (d, C, p, p) -> (d, C, P, P)."""
    p = weight.shape[-1]
    if p == P:
        return weight
    inverse = pi_matrix(p, P).to(weight)  # (P * P, p * p)
    return (weight.flatten(2) @ inverse.T).unflatten(2, (P, P))


@torch.compiler.disable
@functools.cache
def pi_matrix(p, P):
    """The pseudoinverse of `pi_resize`, made once: (P * P, p * p)."""
    return torch.linalg.pinv(torch.from_numpy(bilinear_resize_matrix(p, P)).T)


def axial_angles(rows, cols, d_h, base=100.0):
    """The angles by which `rotary.rope_2d_axial` turns: (N_p, d_h / 2)."""
    ladder = torch.arange(d_h // 4, dtype=torch.float64, device=rows.device)
    theta = base ** (-2 * ladder / (d_h // 2))
    by_column, by_row = torch.outer(cols, theta), torch.outer(rows, theta)
    return torch.cat([by_column, by_row], dim=1)


def mixed_angles(rows, cols, theta):
    """Those of `rotary.rope_2d_mixed`, for each head: (h, N_p, d_h / 2).

    theta, of shape (2, h, d_h / 2), holds theta_x and theta_y of every head.
    """
    theta_x, theta_y = theta[:, :, None]  # (h, 1, d_h / 2) each
    return theta_x * cols[:, None] + theta_y * rows[:, None]


def turn(x, cos, sin):
    """Turn pairs of neighbouring channels, as both rotary functions do.

    x is (B, h, T, d_h), cos and sin are (T, d_h / 2) or (h, T, d_h / 2). Prefix
    tokens have the angle 0, which leaves them as they are, bit for bit.
    """
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)
    return pairs.flatten(-2).to(x.dtype)


def attend(q, k, v, mask=None):
    """`attention`, in the way that is fastest there: (B, h, T, d_h)."""
    short = q.device.type == "cpu" and q.shape[2] <= SHORT.get(q.dtype, 0)
    if short and mask is None and q.shape == k.shape:
        return attention(q, k, v)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


# %% tags=["active-py"]
class Block(nn.Module):
    """`transformer_block` with parameters to learn.

    Parameters
    ----------
    d, n_heads, d_ff : int
        Width of a token, number of heads, width inside the MLP.
    mixed : bool
        Learn rotary frequencies, a direction for each pair of each head.
    """

    def __init__(self, d, n_heads, d_ff, mixed=False):
        super().__init__()
        self.n_heads = n_heads
        self.norm1 = nn.LayerNorm(d, eps=1e-6)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d, eps=1e-6)
        self.fc1 = nn.Linear(d, d_ff)
        self.fc2 = nn.Linear(d_ff, d)
        if mixed:
            pairs = d // n_heads // 2
            self.pos_theta = nn.Parameter(torch.empty(2, n_heads, pairs))

    def heads(self, x, rotation=None):
        """Queries, keys, values, (B, h, T, d_h) each, turned to their place."""
        qkv = self.qkv(self.norm1(x)).chunk(3, dim=-1)  # three times (B, T, d)
        q, k, v = (split_heads(part, self.n_heads) for part in qkv)
        if rotation is not None:  # rope_2d_axial or rope_2d_mixed
            q, k = turn(q, *rotation), turn(k, *rotation)
        return q, k, v

    def one_query(self, y):
        """What token 0 finds among normalized tokens: (B, T, d) -> (B, 1, d).

        For one query no key is worked out: q . (W_k y + b_k) is (W_k^T q) . y, and
        q . b_k, which is the same for every key and falls out of the softmax. Nor
        is a value, for weights sum to 1: the mean of W_v y + b_v is W_v times the
        mean of y, plus b_v.
        """
        W_q, W_k, W_v = self.qkv.weight.unflatten(0, (3, self.n_heads, -1))
        b_q, _, b_v = self.qkv.bias.unflatten(0, (3, self.n_heads, 1, -1))
        q = y[:, 0] @ W_q.mT + b_q  # (h, B, d_h)
        q = (q / q.shape[-1] ** 0.5) @ W_k  # (h, B, d)
        scores = q.transpose(0, 1) @ y.mT  # (B, h, T)
        mean = scores.softmax(dim=-1) @ y  # (B, h, d)
        y = mean.transpose(0, 1) @ W_v.mT + b_v  # (h, B, d_h)
        return merge_heads(y.transpose(0, 1)[:, :, None])  # (B, 1, d)

    def forward(self, x, rotation=None, mask=None, keep=None):
        """(B, T, d) -> (B, T, d), or of the first `keep` tokens (B, keep, d)."""
        if keep == 1 and rotation is None and mask is None:
            y = self.one_query(self.norm1(x))
        else:
            q, k, v = self.heads(x, rotation)
            y = merge_heads(attend(q[:, :, :keep], k, v, mask))
        x = x[:, :keep] + self.proj(y)  # (B, T, d)
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class MapHead(nn.Module):
    """`pooling.map_head` with parameters to learn: (B, N_p, d) -> (B, d)."""

    def __init__(self, d, n_heads, d_ff):
        super().__init__()
        self.n_heads = n_heads
        self.query_token = nn.Parameter(torch.empty(1, d))
        self.query = nn.Linear(d, d)
        self.key_value = nn.Linear(d, 2 * d)
        self.proj = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d, eps=1e-6)
        self.fc1 = nn.Linear(d, d_ff)
        self.fc2 = nn.Linear(d_ff, d)

    def forward(self, patches):
        query = self.query(self.query_token).expand(len(patches), 1, -1)
        k, v = self.key_value(patches).chunk(2, dim=-1)  # (B, N_p, d) each
        q, k, v = (split_heads(x, self.n_heads) for x in (query, k, v))
        y = F.scaled_dot_product_attention(q, k, v)  # (B, h, 1, d_h)
        u = self.proj(merge_heads(y)[:, 0])  # (B, d)
        return u + self.fc2(F.gelu(self.fc1(self.norm(u))))


# %% tags=["active-py"]
class SmallViT(nn.Module):
    """A Vision Transformer of which every step is a function of this course.

    Parameters
    ----------
    image_size : (int, int)
        Height and width in pixels of the images it is trained on.
    patch_size : int
        Side P of a patch; pixels that do not fill one are cropped.
    channels, classes : int
        Of the images, and of the answer.
    d, depth, n_heads, d_ff : int
        Width of a token, number of blocks, of heads, width inside the MLP.
    positions : str
        One of POSITIONS.
    pooling : str
        One of POOLINGS. There is a class token for "cls" alone.
    registers : int
        Number of register tokens.

    Attributes
    ----------
    settings : dict
        What it was made with: `SmallViT(**model.settings)` is one like it.
    coordinates : str
        Of sincos, axial and mixed positions on another grid than that of
        training: "absolute" counts patches, "relative" stretches the grid over
        that of training. It may be changed at any time.

    Raises
    ------
    ValueError
        If positions or pooling is unknown, or the sizes do not go together.
    """

    def __init__(
        self,
        image_size=(28, 28),
        patch_size=4,
        channels=1,
        classes=10,
        d=64,
        depth=4,
        n_heads=4,
        d_ff=256,
        positions="sincos",
        pooling="cls",
        registers=0,
    ):
        settings = locals().copy()  # the arguments, and two names more
        super().__init__()
        del settings["self"], settings["__class__"]
        self.settings = settings
        if positions not in POSITIONS:
            raise ValueError(f"positions: {positions!r} is not in {POSITIONS}")
        if pooling not in POOLINGS:
            raise ValueError(f"pooling: {pooling!r} is not in {POOLINGS}")
        if d % 4 or d % n_heads:
            raise ValueError(f"d must be a multiple of 4 and n_heads, not {d}")
        if positions in ("axial", "mixed") and d // n_heads % 4:
            raise ValueError(f"a head must be 4 n wide, not {d} / {n_heads}")
        self.grid = H_p, W_p = tuple(side // patch_size for side in image_size)
        if not H_p * W_p:
            raise ValueError(f"no patch of side {patch_size} fits {image_size}")
        self.positions, self.pooling = positions, pooling
        self.coordinates = "absolute"
        self.d, self.n_heads = d, n_heads
        self.n_cls = int(pooling == "cls")
        self.n_prefix = self.n_cls + registers

        self.patch_embed = nn.Conv2d(channels, d, patch_size, stride=patch_size)
        if self.n_cls:
            self.cls_token = nn.Parameter(torch.empty(1, d))
        if registers:
            self.registers = nn.Parameter(torch.empty(registers, d))
        if positions == "learned":
            rows = self.n_cls + H_p * W_p
            self.pos_embed = nn.Parameter(torch.empty(rows, d))
        if positions == "factorized":
            self.row_table = nn.Parameter(torch.empty(H_p, d // 2))
            self.col_table = nn.Parameter(torch.empty(W_p, d // 2))
        places = grid_coordinates(self.grid)
        self.register_buffer("places", places, persistent=False)
        mixed = positions == "mixed"
        blocks = (Block(d, n_heads, d_ff, mixed) for _ in range(depth))
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(d, eps=1e-6)
        if pooling == "map":
            self.map_head = MapHead(d, n_heads, d_ff)
        self.head = nn.Linear(d, classes)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self, table_std=0.02):
        """Draw all weights anew.

        Parameters
        ----------
        table_std : float
            Spread of learned position tables. 0.02 is usual; a patch's token has
            a spread of 1, and a larger table is sooner heard beside it.

        Notes
        -----
        Layers keep the variance of what they read: the variance of a weight is
        1 / inputs. Class token, registers and the head start near 0.
        """
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)):
                inputs = module.weight[0].numel()
                nn.init.trunc_normal_(module.weight, std=inputs**-0.5)
                nn.init.zeros_(module.bias)
        nn.init.trunc_normal_(self.head.weight, std=0.02)
        for path, parameter in self.named_parameters():
            name = path.rpartition(".")[2]
            if name == "pos_theta":
                parameter.copy_(first_frequencies(*parameter.shape[1:]))
            elif name not in ("weight", "bias"):  # tokens and tables
                table = name in ("pos_embed", "row_table", "col_table")
                nn.init.trunc_normal_(parameter, std=table_std if table else 0.02)

    def forward(self, images, patch_size=None):
        """Classify images of any size, cut into patches of any size.

        Parameters
        ----------
        images : tensor, shape (B, C, H, W)
        patch_size : int, optional
            Cut them into other patches than the model's own (PI-resize).

        Returns
        -------
        tensor, shape (B, classes)
        """
        x, rotations = self.embed(images, patch_size)
        x = self.encode(x, rotations, keep=self.n_cls or None)
        return self.head(self.pool(x))

    def embed(self, images, patch_size=None):
        """What the first block reads, (B, T, d), and each block's rotation."""
        weight, bias = self.patch_embed.weight, self.patch_embed.bias
        if patch_size is not None:
            weight = resize_filters(weight, patch_size)
        patches, grid = cut(images, weight.shape[-1])  # (B, N_p, C P P)
        # patch_embed_conv, as the product that it is: (B, N_p, d)
        patches = F.linear(patches, weight.flatten(1), bias)
        patches = patches.to(weight.dtype)  # what blocks add up stays precise
        # vit_input_sequence: class token, registers, patches
        prefix = [self.cls_token] if self.n_cls else []
        table = self.position_table(grid)
        if table is not None:  # (n_cls + N_p, d)
            prefix = [token + table[:1] for token in prefix]
            patches = patches + table[self.n_cls :]
        if self.n_prefix > self.n_cls:  # registers get no position
            prefix.append(self.registers)
        prefix = [tokens.expand(len(patches), -1, -1) for tokens in prefix]
        return torch.cat([*prefix, patches], dim=1), self.rotations(grid)

    def encode(self, x, rotations, mask=None, keep=None):
        """All blocks, (B, T, d) -> (B, T, d).

        A mask, such as `packed_attention_mask`, is True where a query may look.
        With `keep` the last block works out its first so many tokens alone:
        (B, keep, d). They are the same, since nobody reads the others.
        """
        steps = list(zip(self.blocks, rotations, strict=True))
        for block, rotation in steps[:-1]:
            x = block(x, rotation, mask)
        for block, rotation in steps[-1:]:
            x = block(x, rotation, mask, keep)
        return x

    def pool(self, x):
        """One vector for each image: (B, T, d) -> (B, d)."""
        patches = x[:, self.n_prefix :]
        if self.pooling == "mean_then_norm":
            return self.norm(patches.mean(dim=1))
        if self.pooling == "norm_then_mean":
            return self.norm(patches).mean(dim=1)
        if self.pooling == "map":
            return self.map_head(self.norm(patches))
        return self.norm(x[:, 0])

    def position_table(self, grid):
        """What is added to cls and patches, (n_cls + N_p, d), or None."""
        if self.positions == "learned":
            table, n_cls = self.pos_embed, self.n_cls
            return resize_positions(table, n_cls, self.grid, grid)
        if self.positions == "factorized":
            table = factorized_positions(self.row_table, self.col_table)
            table = resize_positions(table, 0, self.grid, grid)
        elif self.positions == "sincos":
            table = sincos_positions(*self.coordinates_of(grid), self.d)
            table = table.to(self.head.weight.dtype)
        else:
            return None
        return F.pad(table, (0, 0, self.n_cls, 0))  # cls stands nowhere: zeros

    def rotations(self, grid):
        """Cosine and sine of the angles of each block, or None for each."""
        if self.positions not in ("axial", "mixed"):
            return [None] * len(self.blocks)
        places = self.coordinates_of(grid)
        if self.positions == "axial":
            angles = [axial_angles(*places, self.d // self.n_heads)]
        else:
            thetas = [block.pos_theta for block in self.blocks]
            angles = [mixed_angles(*places, theta) for theta in thetas]
        # (N_p, d_h / 2) -> (T, d_h / 2): prefix tokens are not turned
        angles = [F.pad(angle, (0, 0, self.n_prefix, 0)) for angle in angles]
        pairs = [(angle.cos(), angle.sin()) for angle in angles]
        pairs = [[x.to(self.head.weight.dtype) for x in pair] for pair in pairs]
        return pairs * (len(self.blocks) // len(pairs))  # axial: one for all

    def coordinates_of(self, grid):
        """Rows and columns of patches, (2, N_p), in the chosen coordinates."""
        if grid == self.grid:
            return self.places
        stretched = self.grid if self.coordinates == "relative" else None
        return grid_coordinates(grid, stretched).to(self.places.device)


def first_frequencies(n_heads, pairs, base=10.0):
    """Rotary frequencies to start from, (2, h, d_h / 2).

    Half of a head's pairs turn along one direction, drawn for the head, the
    others across it, both with the same ladder (Heo et al. 2024).
    """
    ladder = base ** (-torch.arange(pairs // 2) / (pairs // 2))
    direction = 2 * torch.pi * torch.rand(n_heads, 1)
    angle = torch.cat([direction, direction + torch.pi / 2], dim=1)  # (h, 2)
    angle = angle.repeat_interleave(pairs // 2, dim=1)  # (h, d_h / 2)
    return torch.stack([angle.cos(), angle.sin()]) * ladder.repeat(2)


# %% tags=["active-py"]
@torch.no_grad()
def attention_maps(model, images):
    """The weights with which every token looks at every other, in every block.

    Parameters
    ----------
    model : SmallViT
    images : tensor, shape (B, C, H, W)

    Returns
    -------
    tensor, shape (depth, B, h, T, T)
        Rows are queries and sum to 1; prefix tokens come first.
    """
    x, rotations = model.embed(images)
    maps = []
    for block, rotation in zip(model.blocks, rotations, strict=True):
        q, k, _ = block.heads(x, rotation)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        maps.append(scores.softmax(dim=-1))
        x = block(x, rotation)
    return torch.stack(maps)


def flops(model, grid=None):
    """Floating-point operations of one image's way through a model.

    Products and sums of all matrix products and convolutions, as
    `torch.utils.flop_counter` counts them.

    Parameters
    ----------
    model : SmallViT
    grid : (int, int), optional
        Rows and columns of patches; those of training by default.

    Returns
    -------
    dict of str to int
        `embedding`, `projections` (T d^2), `scores` (T^2 d), `head`, `total`.
    """
    H_p, W_p = grid or model.grid
    N_p, d = H_p * W_p, model.d
    T, depth = model.n_prefix + N_p, len(model.blocks)
    d_ff = model.blocks[0].fc1.out_features if depth else 0
    head = 2 * d * model.head.out_features
    if model.pooling == "map":
        head += N_p * (4 * d * d + 4 * d)  # keys, values, attention
        head += 4 * d * d + 4 * d * d_ff  # the query, proj; the MLP
    # In the last block only the class token asks, if there is one
    queries = depth and (depth - 1) * T + (model.n_cls or T)
    keys, scores = depth * T, queries * 4 * T * d
    if depth and model.n_cls and model.positions not in ("axial", "mixed"):
        keys += 1 - T  # `one_query`: each head meets whole tokens
        scores += 4 * T * d * (model.n_heads - 1)
    count = {
        "embedding": 2 * N_p * model.patch_embed.weight.numel(),
        "projections": keys * 6 * d * d + queries * (2 * d * d + 4 * d * d_ff),
        "scores": scores,
        "head": head,
    }
    return count | {"total": sum(count.values())}
