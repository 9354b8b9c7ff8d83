"""The exercises of the chapter *A small ViT, whole*."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.cases import _optimizer_groups
from autograder.judging.exercise import Case, Exercise
from autograder.sandbox.inside.calls import Adapted
from solutions import small_vit as chapter

PAGE = "gpu/small_vit"


def counting(*shape):
    """0, 1, 2, … in that shape: every entry is its own address."""
    count = 1
    for n in shape:
        count *= n
    return torch.arange(count, dtype=torch.float64).reshape(shape)


def normal(rng, *shape):
    return torch.from_numpy(rng.normal(size=shape))


# ------------------------------------------------------------------------------------------- split_heads

split_heads = Exercise(chapter.split_heads, points=2, difficulty=1, minutes=10, section="Heads")


@split_heads.where
def head_entry(index, x, n_heads):
    image, head, token = index[:3]
    return f"head {head} of token {token}" + (f" of image {image}" if len(x) > 1 else "")


@split_heads.visible
def two_tokens():
    "Two tokens of width 6, three heads"
    yield Case(counting(1, 2, 6), 3, why="the numbers are 0, 1, 2, …, so each one says where it came from")


@split_heads.visible
def a_batch():
    "Two images of three tokens, two heads"
    yield Case(counting(2, 3, 4), 2, why="images must not get mixed up")


@split_heads.visible
def one_head():
    "One head"
    yield Case(counting(2, 3, 4), 1, why="one head takes everything and still gets an axis of its own")


@split_heads.hidden(weight=2)
def any_heads(rng):
    "Any batch, any number of tokens and heads"
    yield Case(normal(rng, 3, 5, 12), 4)
    yield Case(normal(rng, 2, 7, 10), 5)
    yield Case(normal(rng, 4, 1, 6), 2)


@split_heads.hidden
def blind_heads(rng):
    "Sizes where a wrong order of the axes keeps the shape"
    yield Case(normal(rng, 3, 3, 9), 3, why="as many heads as tokens, as images and as numbers in a head")
    yield Case(normal(rng, 2, 4, 16), 4)


@split_heads.hidden
def single_precision_heads(rng):
    "float32 tokens, one number for each head"
    yield Case(normal(rng, 2, 3, 5).float(), 5)
    yield Case(normal(rng, 2, 3, 8).float(), 2)


@split_heads.misconception("reshape alone")
def heads_by_reshape(x, n_heads):
    """You reshaped straight to (B, h, T, d_h). A reshape moves no number, so your head 0 has the first tokens whole
    instead of a share of every token: reshape to (B, T, h, d_h), then exchange the two axes in the middle."""
    B, T, d = x.shape
    return x.reshape(B, n_heads, T, d // n_heads)


@split_heads.misconception("heads after the tokens")
def heads_third(x, n_heads):
    """You left the axes as (B, T, h, d_h). Attention compares tokens within a head, so the heads come before them:
    exchange the axes 1 and 2."""
    B, T, d = x.shape
    return x.reshape(B, T, n_heads, d // n_heads)


@split_heads.misconception("heads interleaved")
def heads_interleaved(x, n_heads):
    """You gave every h-th number to the same head. Heads are contiguous, head 0 takes the first d_h numbers: the
    last axis splits into (n_heads, d_h), in that order."""
    B, T, d = x.shape
    return x.reshape(B, T, d // n_heads, n_heads).permute(0, 3, 1, 2)


@split_heads.misconception("heads before the batch")
def heads_first(x, n_heads):
    """You put the heads before the images. The batch stays in front: (B, h, T, d_h)."""
    return torch.stack(x.chunk(n_heads, dim=-1))


@split_heads.misconception("heads folded into the batch")
def heads_in_batch(x, n_heads):
    """You folded the heads into the batch, (B h, T, d_h), as some code does for `torch.bmm`. Here they have an axis of
    their own."""
    return chapter.split_heads(x, n_heads).flatten(0, 1)


@split_heads.misconception("head width and tokens exchanged")
def heads_transposed(x, n_heads):
    """You exchanged the last two axes, as attention needs it for the keys. That happens in the product; here every
    head lists its tokens: (B, h, T, d_h)."""
    return chapter.split_heads(x, n_heads).transpose(-2, -1)


@split_heads.misconception("number of heads taken for their width")
def heads_of_width(x, n_heads):
    """You made heads of width n_heads. n_heads is how many there are; each is d / n_heads wide."""
    return chapter.split_heads(x, x.shape[-1] // n_heads)


@split_heads.misconception("channels first, then a reshape")
def heads_channels_first(x, n_heads):
    """You moved the width before the tokens and then reshaped to (B, h, T, d_h), which tears the tokens apart: after
    that exchange the axes are (B, h, d_h, T), and the last two must be exchanged back."""
    B, T, d = x.shape
    return x.transpose(1, 2).reshape(B, n_heads, T, d // n_heads)


@split_heads.misconception("tokens cut into heads")
def heads_read_as_columns(x, n_heads):
    """You reshaped to (B, h, d_h, T) and exchanged the last two axes. A reshape moves no number: split the last axis
    of (B, T, d) alone, into (h, d_h)."""
    B, T, d = x.shape
    return x.reshape(B, n_heads, d // n_heads, T).transpose(-2, -1)


@split_heads.misconception("batch and tokens exchanged")
def heads_batch_second(x, n_heads):
    """You took x for (T, B, d), the old order of PyTorch's attention. Here the batch comes first."""
    return chapter.split_heads(x.transpose(0, 1), n_heads)


# ------------------------------------------------------------------------------------------- merge_heads

merge_heads = Exercise(chapter.merge_heads, points=2, difficulty=1, minutes=5, section="Heads")


@merge_heads.where
def merged_entry(index, x):
    image, token, place = index
    return f"number {place} of token {token}" + (f" of image {image}" if len(x) > 1 else "")


@merge_heads.visible
def three_heads():
    "Three heads, two tokens"
    yield Case(chapter.split_heads(counting(1, 2, 6), 3), why="the right answer counts 0, 1, 2, …")


@merge_heads.visible
def merged_batch():
    "Two images, two heads, three tokens"
    yield Case(counting(2, 2, 3, 4), why="each token is the numbers of head 0, then those of head 1")


@merge_heads.hidden(weight=2)
def any_merge(rng):
    "Any batch, any number of heads and tokens"
    yield Case(normal(rng, 3, 4, 5, 2))
    yield Case(normal(rng, 2, 5, 3, 4))
    yield Case(normal(rng, 2, 1, 4, 3))


@merge_heads.hidden
def blind_merge(rng):
    "Sizes where a wrong order of the axes keeps the shape"
    yield Case(normal(rng, 3, 3, 3, 3))
    yield Case(normal(rng, 2, 4, 4, 4))


@merge_heads.hidden
def merge_in_memory(rng):
    "Heads in single precision that do not lie in memory as their axes say"
    yield Case(normal(rng, 2, 5, 3, 4).float().transpose(1, 2))
    yield Case(normal(rng, 2, 3, 4, 5).float().transpose(2, 3))


@merge_heads.misconception("reshape alone")
def merged_by_reshape(x):
    """You reshaped straight to (B, T, d). A reshape moves no number, so your first tokens hold all that head 0 found
    for several tokens: exchange the axes of heads and tokens first."""
    B, h, T, d_h = x.shape
    return x.reshape(B, T, h * d_h)


@merge_heads.misconception("heads interleaved")
def merged_interleaved(x):
    """You took one number of each head in turn. The heads stand side by side: all numbers of head 0, then all of
    head 1."""
    return x.permute(0, 2, 3, 1).flatten(2)


@merge_heads.misconception("heads added up")
def merged_by_sum(x):
    """You added the heads up. They are put side by side, so that the token is h times as wide as one head."""
    return x.sum(dim=1)


@merge_heads.misconception("mean of the heads")
def merged_by_mean(x):
    """You took the mean of the heads. They are put side by side, so that the token is h times as wide as one head."""
    return x.mean(dim=1)


@merge_heads.misconception("axes exchanged, not merged")
def merged_halfway(x):
    """You exchanged heads and tokens and stopped there. The last two axes, (h, d_h), become one."""
    return x.transpose(1, 2)


@merge_heads.misconception("heads one below the other")
def merged_along_tokens(x):
    """You put the heads one below the other, as more tokens. They belong side by side within each token."""
    return x.flatten(1, 2)


@merge_heads.misconception("tokens side by side")
def merged_tokens(x):
    """You put a head's tokens side by side. Exchange heads and tokens first; then the last two axes become one."""
    return x.flatten(2)


@merge_heads.misconception("tokens as columns")
def merged_transposed(x):
    """Your tokens are columns. Each token is a row: (B, T, d)."""
    return chapter.merge_heads(x).transpose(1, 2)


@merge_heads.misconception("tokens as columns, then a reshape")
def merged_from_columns(x):
    """You put the width before the tokens and then reshaped to (B, T, d). A reshape moves no number: exchange the axes
    of heads and tokens, and join the last two."""
    B, h, T, d_h = x.shape
    return x.transpose(2, 3).reshape(B, T, h * d_h)


@merge_heads.misconception("batch folded in")
def merged_batch_lost(x):
    """You joined the tokens of all images into one list. The batch keeps its axis: (B, T, d)."""
    return chapter.merge_heads(x).flatten(0, 1)


# --------------------------------------------------------------------------------------------- attention

attention = Exercise(chapter.attention, points=3, difficulty=2, minutes=15, section="Attention, once more")


@attention.where
def attention_entry(index, q, k, v):
    image, head, token = index[:3]
    return f"what token {token} gathers in head {head}" + (f" of image {image}" if len(q) > 1 else "")


def fixed(*shape):
    """Queries, keys and values without chance, of order 1."""
    count = counting(*shape)
    return count.sin(), (2 * count).cos(), (count * 7 % 11) / 5


@attention.visible
def by_hand():
    "One head, two tokens, by hand"
    q = torch.zeros(1, 1, 2, 4, dtype=torch.float64)
    k, v = q.clone(), q.clone()
    q[0, 0, 0, 0] = 2 * torch.log(torch.tensor(3.0, dtype=torch.float64))
    k[0, 0, 0, 0] = 1
    v[0, 0] = torch.tensor([[4.0, 0.0, 8.0, 0.0], [0.0, 4.0, 0.0, 0.0]])
    yield Case(q, k, v, why="the scaled scores of the first query are log 3 and 0, so its weights are 3/4 and 1/4")


@attention.visible
def several():
    "Two images, three heads, four tokens"
    yield Case(*fixed(2, 3, 4, 2), why="images and heads keep to themselves")


@attention.visible
def large_scores():
    "Scores in the thousands"
    q, k, v = fixed(1, 2, 3, 4)
    yield Case(100 * q, 100 * k, v, why="the exponential of 800 is no number any more")


@attention.hidden(weight=2)
def any_attention(rng):
    "Any batch, heads, tokens and widths"
    yield Case(*(normal(rng, 2, 3, 5, 4) for _ in range(3)))
    yield Case(*(normal(rng, 3, 2, 7, 6) for _ in range(3)))
    yield Case(*(normal(rng, 1, 4, 1, 3) for _ in range(3)))


@attention.hidden
def blind_attention(rng):
    "Sizes where a product over the wrong axes keeps the shape"
    yield Case(*(normal(rng, 3, 3, 3, 3) for _ in range(3)))
    yield Case(*(normal(rng, 2, 4, 4, 4) for _ in range(3)))


@attention.hidden
def any_large_scores(rng):
    "Large scores in single precision"
    q, k, v = (normal(rng, 2, 2, 5, 4) for _ in range(3))
    yield Case((60 * q).float(), (60 * k).float(), v.float())
    yield Case(q.float(), k.float(), v.float())


def attend(q, k, v, weigh=None, scale=None):
    """Attention with one step exchanged, for the misconceptions."""
    scores = q @ k.transpose(-2, -1) / (q.shape[-1] ** 0.5 if scale is None else scale)
    return (weigh(scores) if weigh else scores.softmax(dim=-1)) @ v


@attention.misconception("no scale")
def unscaled(q, k, v):
    """You did not divide the scores by the root of the head's width, d_h."""
    return attend(q, k, v, scale=1.0)


@attention.misconception("multiplied by the root")
def multiplied(q, k, v):
    """You multiplied the scores by the root of d_h. Divide by it."""
    return attend(q, k, v, scale=q.shape[-1] ** -0.5)


@attention.misconception("divided by the width")
def divided_by_width(q, k, v):
    """You divided the scores by d_h. Divide by its square root."""
    return attend(q, k, v, scale=q.shape[-1])


@attention.misconception("scaled by the root of d")
def scaled_by_all(q, k, v):
    """You divided by the root of the whole width d = h d_h. Each head compares vectors of width d_h: divide by the root
    of that."""
    return attend(q, k, v, scale=(q.shape[1] * q.shape[-1]) ** 0.5)


@attention.misconception("scaled by the number of tokens")
def scaled_by_tokens(q, k, v):
    """You divided by the root of the number of tokens. Divide by the root of the head's width, the last axis of q."""
    return attend(q, k, v, scale=q.shape[-2] ** 0.5)


@attention.misconception("softmax over the queries")
def over_queries(q, k, v):
    """Your softmax runs over the queries. Each query shares its attention out among the keys: `dim=-1`."""
    return attend(q, k, v, lambda scores: scores.softmax(dim=-2))


@attention.misconception("softmax over the heads")
def over_heads(q, k, v):
    """Your softmax runs over the heads (`dim=1`). Each query shares its attention out among the keys: `dim=-1`."""
    return attend(q, k, v, lambda scores: scores.softmax(dim=1))


@attention.misconception("softmax over all scores of a head")
def over_everything(q, k, v):
    """You took one softmax over all queries and keys of a head. Each query has its own: `dim=-1`."""
    return attend(q, k, v, lambda scores: scores.flatten(-2).softmax(dim=-1).reshape(scores.shape))


@attention.misconception("softmax that overflows")
def overflowing(q, k, v):
    """Your exponential overflows: a score of 1000 is ordinary, and its exponential is infinite. Use
    `scores.softmax(dim=-1)`, or subtract the largest score of each row first."""
    return attend(q, k, v, lambda scores: scores.exp() / scores.exp().sum(dim=-1, keepdim=True))


@attention.misconception("no softmax")
def no_softmax(q, k, v):
    """You mixed the values with the scores themselves. The softmax turns a query's scores into weights that add up to
    1."""
    return attend(q, k, v, lambda scores: scores)


@attention.misconception("queries and keys exchanged")
def exchanged(q, k, v):
    """You exchanged queries and keys. A row of the scores belongs to one query: q @ k.transpose(-2, -1)."""
    return attend(k, q, v)


@attention.misconception("weights transposed")
def weights_transposed(q, k, v):
    """You multiplied the values by the transposed weights, so each value was handed out instead of each query
    collecting: weights @ v."""
    return attend(q, k, v, lambda scores: scores.softmax(dim=-1).transpose(-2, -1))


@attention.misconception("keys as values")
def keys_mixed(q, k, v):
    """You mixed the keys. The weights belong to the values: weights @ v."""
    return attend(q, k, k)


@attention.misconception("only earlier tokens")
def causal(q, k, v):
    """You let a token look only at itself and at those before it, as a language model does. A Vision Transformer has no
    mask: every patch looks at every patch."""
    T = q.shape[-2]
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    return attend(q, k, v, lambda scores: scores.masked_fill(later, -torch.inf).softmax(dim=-1))


@attention.misconception("weights returned")
def weights_alone(q, k, v):
    """You returned the weights. They still have to mix the values: weights @ v."""
    return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(dim=-1)


@attention.misconception("scaled after the softmax")
def scaled_late(q, k, v):
    """You divided by the root of d_h after the softmax, so your weights no longer add up to 1. Divide the scores."""
    return attend(q, k, v, lambda scores: scores.softmax(dim=-1) / q.shape[-1] ** 0.5, scale=1.0)


@attention.misconception("heads compared instead of tokens")
def across_heads(q, k, v):
    """You compared the heads of one token with each other, as happens when the axes are (B, T, h, d_h). The tokens of
    one head meet: the product is over the last two axes of (B, h, T, d_h)."""
    return attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2)


@attention.misconception("heads merged already")
def merged_already(q, k, v):
    """You merged the heads too. That is the work of `merge_heads`; the answer here has the shape of v."""
    return chapter.merge_heads(chapter.attention(q, k, v))


# ------------------------------------------------------------------------------------- transformer_block

transformer_block = Exercise(
    chapter.transformer_block, points=5, difficulty=3, minutes=25, section="A block, line by line"
)


@transformer_block.where
def block_entry(index, x, params, n_heads):
    image, token, place = index
    return f"number {place} of token {token}" + (f" of image {image}" if len(x) > 1 else "")


SHAPES = {
    "ln1_gain": "d", "ln1_shift": "d", "W_qkv": "dq", "b_qkv": "q", "W_o": "dd", "b_o": "d",
    "ln2_gain": "d", "ln2_shift": "d", "W_1": "df", "b_1": "f", "W_2": "fd", "b_2": "d",
}  # fmt: skip


def block_params(draw, d, d_ff):
    """Parameters of order 1, none of them zero or equal to another."""
    sizes = {"d": d, "q": 3 * d, "f": d_ff}
    params = {name: draw(*(sizes[letter] for letter in letters)) for name, letters in SHAPES.items()}
    return params | {name: 1 + params[name] / 2 for name in ("ln1_gain", "ln2_gain")}


def fixed_params(d, d_ff):
    """Parameters without chance."""
    number = iter(range(1, 100))
    return block_params(lambda *shape: (counting(*shape) * next(number) + next(number)).sin(), d, d_ff)


@transformer_block.visible
def one_image():
    "One image of three tokens, two heads"
    yield Case(counting(1, 3, 4).cos(), fixed_params(4, 6), 2)


@transformer_block.visible
def two_images():
    "Two images of two tokens, three heads, an MLP as wide as the tokens"
    yield Case(counting(2, 2, 6).cos(), fixed_params(6, 6), 3, why="square weights multiply from the right too")


@transformer_block.visible
def small_tokens():
    "Tokens that hardly vary"
    x = counting(1, 2, 4).cos() / 500
    yield Case(x, fixed_params(4, 5), 1, why="the LayerNorm's epsilon, 1e-6, shows when the variance is small")


@transformer_block.hidden(weight=2)
def any_block(rng):
    "Any batch, widths and number of heads"
    draw = lambda *shape: normal(rng, *shape)  # noqa: E731
    yield Case(normal(rng, 2, 5, 12), block_params(draw, 12, 20), 3)
    yield Case(normal(rng, 3, 4, 10), block_params(draw, 10, 7), 5)


@transformer_block.hidden
def blind_block(rng):
    "Sizes where a wrong order keeps the shape"
    draw = lambda *shape: normal(rng, *shape)  # noqa: E731
    yield Case(normal(rng, 4, 4, 16), block_params(draw, 16, 16), 4)
    yield Case(normal(rng, 2, 3, 8), block_params(draw, 8, 24), 2)


@transformer_block.hidden
def small_and_single(rng):
    "Tokens that hardly vary, and single precision"
    draw = lambda *shape: normal(rng, *shape)  # noqa: E731
    yield Case(normal(rng, 2, 3, 6) / 300, block_params(draw, 6, 8), 2)
    params = {name: value.float() / 2 for name, value in block_params(draw, 8, 12).items()}
    yield Case(normal(rng, 2, 3, 8).float(), params, 4)


def norm(x, p, which, eps=1e-6):
    return F.layer_norm(x, x.shape[-1:], p[f"ln{which}_gain"], p[f"ln{which}_shift"], eps)


def attention_part(y, p, n_heads, order=(0, 1, 2), split=chapter.split_heads, merge=chapter.merge_heads, scale=None):
    """From normalized tokens to what W_o gives."""
    parts = (y @ p["W_qkv"] + p["b_qkv"]).chunk(3, dim=-1)
    q, k, v = (split(parts[number], n_heads) for number in order)
    return merge(attend(q, k, v, scale=scale)) @ p["W_o"] + p["b_o"]


def mlp_part(y, p, gelu=F.gelu):
    return gelu(y @ p["W_1"] + p["b_1"]) @ p["W_2"] + p["b_2"]


@transformer_block.misconception("norms after (post-norm)")
def post_norm(x, params, n_heads):
    """You normalized after each residual (post-norm, as the first Transformer did). Here the norm stands before:
    x + attention(LN(x)), then x + MLP(LN(x))."""
    x = norm(x + attention_part(x, params, n_heads), params, 1)
    return norm(x + mlp_part(x, params), params, 2)


@transformer_block.misconception("no residual around attention")
def no_first_residual(x, params, n_heads):
    """You did not add x to what attention gave."""
    x = attention_part(norm(x, params, 1), params, n_heads)
    return x + mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("no residual around the MLP")
def no_second_residual(x, params, n_heads):
    """You returned the MLP's output alone. What came out of the first residual is added to it."""
    x = x + attention_part(norm(x, params, 1), params, n_heads)
    return mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("no residuals")
def no_residuals(x, params, n_heads):
    """You left out both residuals: x + attention(LN(x)), then x + MLP(LN(x))."""
    x = attention_part(norm(x, params, 1), params, n_heads)
    return mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("residual from the normalized tokens")
def normalized_residual(x, params, n_heads):
    """You added the normalized tokens. What is added is x as it came in, before the norm."""
    y = norm(x, params, 1)
    x = y + attention_part(y, params, n_heads)
    y = norm(x, params, 2)
    return y + mlp_part(y, params)


@transformer_block.misconception("the MLP added to the first x")
def first_x_again(x, params, n_heads):
    """You added the MLP's output to the x that came in, so what attention found is lost but for the MLP. Add it to what
    the first residual gave."""
    first = x + attention_part(norm(x, params, 1), params, n_heads)
    return x + mlp_part(norm(first, params, 2), params)


@transformer_block.misconception("attention and MLP side by side")
def parallel(x, params, n_heads):
    """Your MLP reads the x that came in (a parallel block). It reads what the first residual gave."""
    return x + attention_part(norm(x, params, 1), params, n_heads) + mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("one norm for both")
def one_norm(x, params, n_heads):
    """You used `ln1_gain` and `ln1_shift` twice. The second norm has parameters of its own."""
    return chapter.transformer_block(
        x, params | {"ln2_gain": params["ln1_gain"], "ln2_shift": params["ln1_shift"]}, n_heads
    )


@transformer_block.misconception("norms exchanged")
def norms_exchanged(x, params, n_heads):
    """You exchanged the two norms. The first stands before attention."""
    x = x + attention_part(norm(x, params, 2), params, n_heads)
    return x + mlp_part(norm(x, params, 1), params)


@transformer_block.misconception("gain and shift left out")
def bare_norms(x, params, n_heads):
    """Your LayerNorms have no gain and no shift. Pass `ln1_gain` and `ln1_shift`, then `ln2_gain` and `ln2_shift`."""
    ones = {name: torch.ones_like(params[name]) for name in ("ln1_gain", "ln2_gain")}
    zeros = {name: torch.zeros_like(params[name]) for name in ("ln1_shift", "ln2_shift")}
    return chapter.transformer_block(x, params | ones | zeros, n_heads)


@transformer_block.misconception("no norm before the MLP")
def no_second_norm(x, params, n_heads):
    """Your MLP reads the tokens as they are. It reads their LayerNorm."""
    x = x + attention_part(norm(x, params, 1), params, n_heads)
    return x + mlp_part(x, params)


@transformer_block.misconception("no norm before attention")
def no_first_norm(x, params, n_heads):
    """Your attention reads the tokens as they are. It reads their LayerNorm."""
    x = x + attention_part(x, params, n_heads)
    return x + mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("epsilon 1e-5")
def torch_eps(x, params, n_heads):
    """Your LayerNorm has PyTorch's default epsilon, 1e-5. Vision Transformers, and this exercise, have 1e-6."""
    x = x + attention_part(norm(x, params, 1, 1e-5), params, n_heads)
    return x + mlp_part(norm(x, params, 2, 1e-5), params)


@transformer_block.misconception("tanh GELU")
def tanh_gelu(x, params, n_heads):
    """You used the tanh approximation of the GELU. It differs in the third decimal: leave `approximate` alone."""
    x = x + attention_part(norm(x, params, 1), params, n_heads)
    return x + mlp_part(norm(x, params, 2), params, lambda y: F.gelu(y, approximate="tanh"))


@transformer_block.misconception("ReLU")
def relu(x, params, n_heads):
    """You used a ReLU. The MLP of a Vision Transformer has a GELU."""
    x = x + attention_part(norm(x, params, 1), params, n_heads)
    return x + mlp_part(norm(x, params, 2), params, F.relu)


@transformer_block.misconception("no GELU")
def linear_mlp(x, params, n_heads):
    """There is nothing between your two linear layers, which makes them one. Put the GELU between W_1 and W_2."""
    x = x + attention_part(norm(x, params, 1), params, n_heads)
    return x + mlp_part(norm(x, params, 2), params, lambda y: y)


@transformer_block.misconception("keys before queries")
def keys_first(x, params, n_heads):
    """You took the first third of the columns of `W_qkv` for the keys. The order is queries, keys, values."""
    x = x + attention_part(norm(x, params, 1), params, n_heads, order=(1, 0, 2))
    return x + mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("values first")
def values_first(x, params, n_heads):
    """You took the thirds of `W_qkv` in the wrong order. It is queries, keys, values."""
    x = x + attention_part(norm(x, params, 1), params, n_heads, order=(2, 1, 0))
    return x + mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("W_qkv cut by heads first")
def qkv_by_head(x, params, n_heads):
    """You cut the columns of `W_qkv` by heads first, and each head's share into three (some language models store them
    so). Here the first d columns are the queries of all heads."""
    B, T, d = x.shape
    qkv = norm(x, params, 1) @ params["W_qkv"] + params["b_qkv"]
    q, k, v = qkv.reshape(B, T, n_heads, 3, d // n_heads).permute(3, 0, 2, 1, 4)
    y = chapter.merge_heads(attend(q, k, v))
    x = x + y @ params["W_o"] + params["b_o"]
    return x + mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("W_qkv cut into triples")
def qkv_triples(x, params, n_heads):
    """You took the columns of `W_qkv` in triples of one query, one key and one value number. The first d columns are
    the queries, the next d the keys, the last d the values."""
    B, T, d = x.shape
    qkv = norm(x, params, 1) @ params["W_qkv"] + params["b_qkv"]
    q, k, v = (chapter.split_heads(part, n_heads) for part in qkv.reshape(B, T, d, 3).unbind(-1))
    y = chapter.merge_heads(attend(q, k, v))
    x = x + y @ params["W_o"] + params["b_o"]
    return x + mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("W_o left out")
def no_output(x, params, n_heads):
    """You left out W_o and b_o. The merged heads go through it before they are added."""
    eye = torch.eye(x.shape[-1], dtype=x.dtype)
    return chapter.transformer_block(x, params | {"W_o": eye, "b_o": torch.zeros_like(params["b_o"])}, n_heads)


@transformer_block.misconception("biases left out")
def no_biases(x, params, n_heads):
    """You left out the biases. Each of the four linear layers has one."""
    zeros = {name: torch.zeros_like(params[name]) for name in ("b_qkv", "b_o", "b_1", "b_2")}
    return chapter.transformer_block(x, params | zeros, n_heads)


@transformer_block.misconception("W_o transposed")
def linear_output(x, params, n_heads):
    """You multiplied by the transpose of W_o, as `F.linear` does with the weight of an `nn.Linear`. Here weights
    multiply from the right as they are: y @ W_o."""
    return chapter.transformer_block(x, params | {"W_o": params["W_o"].T}, n_heads)


@transformer_block.misconception("heads merged by a reshape")
def block_merged_by_reshape(x, params, n_heads):
    """You merged the heads by a reshape alone. Exchange the axes of heads and tokens first: `merge_heads`."""
    x = x + attention_part(norm(x, params, 1), params, n_heads, merge=merged_by_reshape)
    return x + mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("heads split by a reshape")
def block_split_by_reshape(x, params, n_heads):
    """You split the heads by a reshape alone. Split the width, then exchange the axes of tokens and heads:
    `split_heads`."""
    x = x + attention_part(norm(x, params, 1), params, n_heads, split=heads_by_reshape)
    return x + mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("one head")
def single_head(x, params, n_heads):
    """You used one head of the full width. Split queries, keys and values into n_heads."""
    return chapter.transformer_block(x, params, 1)


@transformer_block.misconception("scaled by the root of d")
def block_scaled_by_all(x, params, n_heads):
    """You divided the scores by the root of d. Each head compares vectors of width d / n_heads: divide by the root of
    that."""
    x = x + attention_part(norm(x, params, 1), params, n_heads, scale=x.shape[-1] ** 0.5)
    return x + mlp_part(norm(x, params, 2), params)


@transformer_block.misconception("attention alone")
def no_mlp(x, params, n_heads):
    """You stopped after attention. The MLP follows: x + MLP(LN(x))."""
    return x + attention_part(norm(x, params, 1), params, n_heads)


# ------------------------------------------------------------------------------------------ decay_groups

decay_groups = Exercise(
    chapter.decay_groups,
    points=3,
    difficulty=2,
    minutes=15,
    section="What decays",
    returns="a list of two optimizer groups with every parameter of the module in one of them",
)


def module(layers):
    return Adapted.by(_optimizer_groups, layers)


@decay_groups.where
def decay_entry(index, layers, weight_decay):
    names = [name for name, _ in _optimizer_groups.argument(layers["data"]).named_parameters()]
    return f"the decay of {names[index[0]]}"


@decay_groups.visible
def layers_alone():
    "A convolution, a norm and linear layers"
    layers = {
        "patch_embed": ("Conv2d", 3, 8, 4), "norm": ("LayerNorm", 8), "mlp.0": ("Linear", 8, 16),
        "mlp.2": ("Linear", 16, 8), "head": ("Linear", 8, 2),
    }  # fmt: skip
    yield Case(module(layers), 0.05, why="matrices and filters decay, biases and norms do not")


@decay_groups.visible
def tokens_and_tables():
    "Class token, registers and a position table of their own"
    layers = {
        "cls_token": ("Parameter", 1, 1, 8), "registers": ("Parameter", 4, 8), "pos_embed": ("Parameter", 17, 8),
        "patch_embed.proj": ("Conv2d", 3, 8, 4), "blocks.0.pre": ("LayerNorm", 8), "blocks.0.qkv": ("Linear", 8, 24),
        "blocks.0.proj": ("Linear", 8, 8),
    }  # fmt: skip
    yield Case(
        Adapted.by(_optimizer_groups, layers), 0.1, why="registers and position tables have two axes, as matrices have"
    )


@decay_groups.visible
def embedded_table():
    "A position table that is an nn.Embedding"
    layers = {
        "cls_token": ("Parameter", 1, 8), "pos": ("Embedding", 16, 8), "stem": ("Conv2d", 1, 8, 2),
        "norms.0": ("LayerNorm", 8), "norms.1": ("LayerNorm", 8), "cls_head": ("Linear", 8, 3),
    }  # fmt: skip
    yield Case(
        Adapted.by(_optimizer_groups, layers), 0.3, why="a table of positions is looked up, whatever it is stored in"
    )


@decay_groups.hidden(weight=2)
def whole_model(rng):
    "Whole models"
    for _ in range(2):
        d, depth = 4 * int(rng.integers(1, 4)), int(rng.integers(1, 3))
        layers = {
            "cls_token": ("Parameter", 1, 1, d),
            "reg_token": ("Parameter", 1, int(rng.integers(1, 5)), d),
            "pos_embed": ("Parameter", 1, int(rng.integers(5, 20)), d),
            "patch_embed.proj": ("Conv2d", 3, d, 4),
        }
        for number in range(depth):
            for name, layer in (("ln_1", ("LayerNorm", d)), ("attn.qkv", ("Linear", d, 3 * d))):
                layers[f"blocks.{number}.{name}"] = layer
            for name, layer in (("attn.proj", ("Linear", d, d)), ("ln_2", ("LayerNorm", d))):
                layers[f"blocks.{number}.{name}"] = layer
            layers |= {f"blocks.{number}.fc1": ("Linear", d, 2 * d), f"blocks.{number}.fc2": ("Linear", 2 * d, d)}
        layers |= {"fc_norm": ("LayerNorm", d), "head": ("Linear", d, 10)}
        yield Case(module(layers), round(float(rng.uniform(0.01, 0.5)), 3))


@decay_groups.hidden
def other_layers(rng):
    "Tables as nn.Embedding, other norms, layers without a bias"
    d = 4 * int(rng.integers(1, 4))
    layers = {
        "class_token": ("Parameter", 1, d), "registers": ("Parameter", int(rng.integers(1, 5)), d),
        "pos_embed": ("Embedding", int(rng.integers(5, 20)), d), "stem.0": ("Conv2d", 3, d, 3),
        "stem.1": ("BatchNorm2d", d), "stem.2": ("GroupNorm", 2, d), "token_mixer": ("Linear", d, d, False),
        "cls_head.0": ("LayerNorm", d), "cls_head.1": ("Linear", d, 5),
    }  # fmt: skip
    yield Case(module(layers), round(float(rng.uniform(0.01, 0.5)), 3))
    yield Case(module(layers), 0.0, why="no decay at all is two groups, too")


def two_groups(module, weight_decay, decays):
    """Groups by a rule on the name and the parameter."""
    groups = [{"params": [], "weight_decay": weight_decay}, {"params": [], "weight_decay": 0.0}]
    for name, parameter in module.named_parameters():
        groups[0 if decays(name, parameter) else 1]["params"].append(parameter)
    return groups


def is_table(module, name):
    """The rule of the course for tokens and tables."""
    owner, _, own = name.rpartition(".")
    embedded = isinstance(module.get_submodule(owner), nn.Embedding)
    return embedded or any(word in own for word in ("token", "registers", "pos"))


@decay_groups.misconception("everything decays")
def all_decay(module, weight_decay):
    """You let every parameter decay. Biases, norms, tokens and position tables belong in the group with weight decay
    0."""
    return two_groups(module, weight_decay, lambda name, parameter: True)


@decay_groups.misconception("nothing decays")
def none_decay(module, weight_decay):
    """None of your parameters decays. Matrices and convolution filters belong in the group with `weight_decay`."""
    return two_groups(module, weight_decay, lambda name, parameter: False)


@decay_groups.misconception("groups exchanged")
def groups_exchanged(module, weight_decay):
    """You exchanged the two groups: biases, norms, tokens and tables decay, matrices do not."""
    right = chapter.decay_groups(module, weight_decay)
    return [right[0] | {"weight_decay": 0.0}, right[1] | {"weight_decay": weight_decay}]


@decay_groups.misconception("by the number of axes alone")
def by_axes(module, weight_decay):
    """You went by the number of axes alone. Class token, registers and position tables have two or three axes too:
    look at their names, or at the kind of layer."""
    return two_groups(module, weight_decay, lambda name, parameter: parameter.ndim > 1)


@decay_groups.misconception("all but the biases")
def all_but_biases(module, weight_decay):
    """You spared the biases alone. The gains of norms, the tokens and the position tables do not decay either."""
    return two_groups(module, weight_decay, lambda name, parameter: not name.endswith("bias"))


@decay_groups.misconception("all that is called weight")
def by_weight(module, weight_decay):
    """You let all decay that is called `weight`. The gain of a LayerNorm is called so too: it has one axis."""
    return two_groups(module, weight_decay, lambda name, parameter: name.endswith("weight"))


@decay_groups.misconception("norms by their names")
def norms_by_name(module, weight_decay):
    """You knew the norms by the word "norm" in their names. They may be called anything: their parameters have one
    axis."""
    return two_groups(
        module,
        weight_decay,
        lambda name, parameter: not (name.endswith("bias") or "norm" in name or is_table(module, name)),
    )


@decay_groups.misconception("words anywhere in the path")
def words_in_path(module, weight_decay):
    """You looked for words such as "cls", "token" and "pos" in the whole path. A linear layer in `cls_head` is a matrix
    and decays: look at the parameter's own name, behind the last dot, or at the kind of layer."""
    return two_groups(
        module,
        weight_decay,
        lambda name, parameter: parameter.ndim > 1 and not any(w in name for w in ("cls", "token", "registers", "pos")),
    )


@decay_groups.misconception("all that embeds")
def embed_in_path(module, weight_decay):
    """You spared everything with "embed" in its path. The filters of the patch embedding decay like any other
    filters."""
    return two_groups(
        module,
        weight_decay,
        lambda name, parameter: parameter.ndim > 1 and not is_table(module, name) and "embed" not in name,
    )


@decay_groups.misconception("filters left out")
def linear_only(module, weight_decay):
    """You let only linear layers decay. The filters of a convolution decay too."""
    return two_groups(
        module,
        weight_decay,
        lambda name, parameter: (
            parameter.ndim > 1 and isinstance(module.get_submodule(name.rpartition(".")[0]), nn.Linear)
        ),
    )


@decay_groups.misconception("embedded tables decay")
def embedding_decays(module, weight_decay):
    """Your rule takes an `nn.Embedding` for a matrix. Here it is a table of positions, and tables do not decay."""
    return two_groups(module, weight_decay, lambda name, parameter: name.endswith("weight") and parameter.ndim > 1)


@decay_groups.misconception("biases of matrices decay")
def with_biases(module, weight_decay):
    """The biases of your linear layers and convolutions decay with their weights. Biases do not decay."""
    return two_groups(
        module,
        weight_decay,
        lambda name, parameter: isinstance(module.get_submodule(name.rpartition(".")[0]), (nn.Linear, nn.Conv2d)),
    )


@decay_groups.misconception("parameters outside of layers forgotten")
def layers_only(module, weight_decay):
    """You went through the layers and forgot the parameters that stand outside of any, such as `cls_token`: no
    optimizer would ever train them."""
    groups = two_groups(module, weight_decay, lambda name, parameter: parameter.ndim > 1)
    inside = {
        id(parameter)
        for layer in module.modules()
        if type(layer) is not nn.Module
        for parameter in layer.parameters(recurse=False)
    }
    embedded = {id(p) for layer in module.modules() if isinstance(layer, nn.Embedding) for p in layer.parameters()}
    kept = [p for p in groups[0]["params"] if id(p) in inside and id(p) not in embedded]
    spared = [p for p in groups[1]["params"] if id(p) in inside]
    spared += [p for p in groups[0]["params"] if id(p) in embedded]
    return [groups[0] | {"params": kept}, groups[1] | {"params": spared}]


@decay_groups.misconception("no weight decay given for the second group")
def default_decay(module, weight_decay):
    """Your second group has no `weight_decay`, so the optimizer fills in its own default, 0.01 for AdamW. Write 0
    there."""
    decaying, others = chapter.decay_groups(module, weight_decay)
    return [decaying, {"params": others["params"]}]


@decay_groups.misconception("a fixed weight decay")
def fixed_decay(module, weight_decay):
    """Your first group has a weight decay of 0.05, whatever is asked for. Use the argument."""
    return chapter.decay_groups(module, 0.05)


@decay_groups.misconception("names in place of parameters")
def names_only(module, weight_decay):
    """Your groups hold the parameters' names. An optimizer needs the parameters themselves."""
    decaying, others = chapter.decay_groups(module, weight_decay)
    held = {id(parameter) for parameter in decaying["params"]}
    names = [[], []]
    for name, parameter in module.named_parameters():
        names[0 if id(parameter) in held else 1].append(name)
    return [decaying | {"params": names[0]}, others | {"params": names[1]}]


@decay_groups.misconception("lists without dictionaries")
def bare_lists(module, weight_decay):
    """You returned two lists of parameters. An optimizer needs to be told the weight decay of each: a dictionary with
    the keys `params` and `weight_decay`."""
    return [group["params"] for group in chapter.decay_groups(module, weight_decay)]
