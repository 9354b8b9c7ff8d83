"""The exercises of the chapter *Pooling*."""

import numpy as np

from autograder.judging.exercise import Case, Exercise
from solutions import pooling as chapter


def layer_norm(y, gain=1.0, shift=0.0, eps=1e-6):
    """LayerNorm over the last axis, for the misconceptions that do this part right."""
    centred = y - y.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(y.var(axis=-1, keepdims=True) + eps) * gain + shift


def draw(rng, T, d):
    """Rows that share an offset, as a last layer's do, and a gain and a shift of order 1."""
    return rng.normal(size=d) + rng.normal(size=(T, d)), rng.normal(size=d), rng.normal(size=d)


# The hand example of the page: behind a class token two patches with the means 1 and 3 and the variances 7² and 24².
# Their mean has the variance 12.5², so with eps = 0 every number comes out in two decimals.
HAND = np.array([[9.0, -5.0, 0.0, 40.0], [8.0, -6.0, -6.0, 8.0], [27.0, 27.0, -21.0, -21.0]])
ONES, ZEROS = np.ones(4), np.zeros(4)


# ---------------------------------------------------------------------------------------- mean_then_norm

mean_then_norm = Exercise(chapter.mean_then_norm, points=2, difficulty=1, minutes=10, section="Average, then normalize")


@mean_then_norm.visible
def by_hand():
    "The hand example of the page"
    yield Case(HAND, 1, ONES, ZEROS, eps=0.0, why="the mean of the two patches has mean 2 and variance 12.5 squared")
    yield Case(HAND, 1, ONES, ZEROS, eps=243.75, why="variance and eps make 400, whose root is 20")


@mean_then_norm.visible
def gain_and_shift():
    "A gain, a shift, and several prefix rows"
    X = np.array([[9.0, -9.0, 0.0], [8.0, 8.0, -8.0], [1.0, 2.0, 6.0], [3.0, 0.0, 6.0]])
    gain, shift = np.array([1.0, -2.0, 0.5]), np.array([10.0, 20.0, 30.0])
    yield Case(X, 2, gain, shift, why="two rows are left out, and the shift comes in once")


@mean_then_norm.visible
def no_prefix():
    "No prefix rows"
    yield Case(np.array([[1.0, 2.0, 6.0], [3.0, 0.0, 6.0]]), 0, np.ones(3), np.zeros(3))


@mean_then_norm.visible
def as_many_patches_as_numbers():
    "As many patches as numbers in a row"
    X = np.array([[7.0, 7.0, -7.0], [1.0, 2.0, 6.0], [3.0, 0.0, 9.0], [5.0, 1.0, 0.0]])
    gain, shift = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, -1.0])
    yield Case(X, 1, gain, shift, why="with three patches of width 3 a wrong axis keeps the shape")


@mean_then_norm.hidden(weight=2)
def any_rows(rng):
    "Any rows, with one prefix row, several and none"
    for T, d, n_prefix in ((12, 7, 1), (9, 16, 5), (6, 5, 0), (8, 3, 7)):
        X, gain, shift = draw(rng, T, d)
        yield Case(X, n_prefix, gain, shift)


@mean_then_norm.hidden
def blind_shapes(rng):
    "Shapes in which a wrong axis goes unseen"
    X, gain, shift = draw(rng, 10, 8)
    yield Case(X, 2, gain, shift, why="N_p equals d")
    X, gain, shift = draw(rng, 8, 8)
    yield Case(X, 1, gain, shift, why="T equals d")


@mean_then_norm.hidden
def any_eps(rng):
    "Any eps, and a mean without variance"
    X, gain, shift = draw(rng, 7, 6)
    yield Case(X, 1, gain, shift, 1e-5)
    yield Case(X, 1, gain, shift, eps=0.3)
    yield Case(np.array([[4.0, 1.0], [2.0, 1.0], [3.0, 4.0]]), 1, gain[:2], shift[:2], why="the mean is constant")
    even = np.array([[9.0, 8.0, 7.0, 6.0], [1.0, -1.0, 0.0, 0.0]])
    yield Case(even, 1, gain[:4], shift[:4], 0.5, why="eps is as large as the variance")
    yield Case(X[:1], 0, gain, shift, why="there is a single row")


@mean_then_norm.hidden
def single_precision(rng):
    "float32, and a row much larger than the rest"
    X, gain, shift = draw(rng, 11, 12)
    X[3] *= 30
    yield Case(X, 1, gain, shift)
    yield Case(X.astype(np.float32), 1, gain.astype(np.float32), shift.astype(np.float32))


@mean_then_norm.misconception("normalized first")
def other_order(X, n_prefix, gain, shift, eps=1e-6):
    """You normalized each row and averaged then. That is `norm_then_mean`, another vector: here the mean comes first
    and the LayerNorm sees one vector only."""
    return chapter.norm_then_mean(X, n_prefix, gain, shift, eps)


@mean_then_norm.misconception("prefix rows averaged too")
def prefix_too(X, n_prefix, gain, shift, eps=1e-6):
    """You averaged all rows. The first `n_prefix` belong to the class token and the registers, not to patches: leave
    them out."""
    return chapter.mean_then_norm(X, 0, gain, shift, eps)


@mean_then_norm.misconception("one prefix row whatever n_prefix is")
def one_prefix_row(X, n_prefix, gain, shift, eps=1e-6):
    """You always leave out one row. A model may have no class token, or registers beside it: use `n_prefix`."""
    return chapter.mean_then_norm(X, 1, gain, shift, eps)


@mean_then_norm.misconception("rows left out at the end")
def last_rows(X, n_prefix, gain, shift, eps=1e-6):
    """You left rows out at the end. The prefix rows stand in front."""
    return chapter.mean_then_norm(X[: len(X) - n_prefix], 0, gain, shift, eps)


@mean_then_norm.misconception("the class token alone")
def class_token(X, n_prefix, gain, shift, eps=1e-6):
    """You took row 0, the class token. Mean pooling reads the patch rows."""
    return chapter.mean_then_norm(X[:1], 0, gain, shift, eps)


@mean_then_norm.misconception("LayerNorm left out")
def mean_only(X, n_prefix, gain, shift, eps=1e-6):
    """You returned the mean as it is. Normalize it: subtract its mean and divide by the root of variance plus eps."""
    return X[n_prefix:].mean(axis=0) * gain + shift


@mean_then_norm.misconception("gain and shift left out")
def no_affine(X, n_prefix, gain, shift, eps=1e-6):
    """You left out the gain and the shift. LayerNorm multiplies the normalized entries by the gain and adds the
    shift."""
    return chapter.mean_then_norm(X, n_prefix, np.ones_like(gain), np.zeros_like(shift), eps)


@mean_then_norm.misconception("shift before gain")
def shift_first(X, n_prefix, gain, shift, eps=1e-6):
    """You added the shift before you multiplied by the gain. The gain comes first."""
    return (chapter.mean_then_norm(X, n_prefix, np.ones_like(gain), np.zeros_like(shift), eps) + shift) * gain


@mean_then_norm.misconception("sample variance")
def sample_variance(X, n_prefix, gain, shift, eps=1e-6):
    """You divided the squares by d − 1. LayerNorm divides by d (`np.var` as it is; `torch.var` divides by d − 1
    unless told otherwise)."""
    mean = X[n_prefix:].mean(axis=0)
    return (mean - mean.mean()) / np.sqrt(mean.var(ddof=1) + eps) * gain + shift


@mean_then_norm.misconception("eps outside the root")
def eps_outside(X, n_prefix, gain, shift, eps=1e-6):
    """You added eps to the standard deviation. It is added to the variance, under the root."""
    mean = X[n_prefix:].mean(axis=0)
    return (mean - mean.mean()) / (mean.std() + eps) * gain + shift


@mean_then_norm.misconception("eps left as it was")
def eps_ignored(X, n_prefix, gain, shift, eps=1e-6):
    """You used 1e-6 whatever eps was given. Libraries differ in it, so it is an argument."""
    return chapter.mean_then_norm(X, n_prefix, gain, shift)


@mean_then_norm.misconception("variance not rooted")
def no_root(X, n_prefix, gain, shift, eps=1e-6):
    """You divided by the variance. Divide by its root."""
    mean = X[n_prefix:].mean(axis=0)
    return (mean - mean.mean()) / (mean.var() + eps) * gain + shift


@mean_then_norm.misconception("mean not subtracted")
def rms_norm(X, n_prefix, gain, shift, eps=1e-6):
    """You did not subtract the mean of the entries: that is RMSNorm. LayerNorm centres the vector first."""
    mean = X[n_prefix:].mean(axis=0)
    return mean / np.sqrt((mean**2).mean() + eps) * gain + shift


@mean_then_norm.misconception("divided by the length")
def unit_length(X, n_prefix, gain, shift, eps=1e-6):
    """You scaled the centred vector to length 1. LayerNorm scales it to variance 1, which is a length of the root
    of d."""
    mean = X[n_prefix:].mean(axis=0)
    centred = mean - mean.mean()
    return centred / np.sqrt((centred**2).sum() + eps) * gain + shift


@mean_then_norm.misconception("divided by all rows")
def divided_by_all(X, n_prefix, gain, shift, eps=1e-6):
    """You divided the sum of the patch rows by the number of all rows. Divide by the number of rows you added up.
    (The LayerNorm takes the factor out again, but for eps.)"""
    return layer_norm(X[n_prefix:].sum(axis=0) / len(X), gain, shift, eps)


@mean_then_norm.misconception("summed")
def summed(X, n_prefix, gain, shift, eps=1e-6):
    """You summed the rows. LayerNorm takes nearly all of the difference away again, but not eps: divide by the
    number of patches."""
    total = X[n_prefix:].sum(axis=0)
    return layer_norm(total, gain, shift, eps)


@mean_then_norm.misconception("the largest entry in place of the mean")
def maximum(X, n_prefix, gain, shift, eps=1e-6):
    """You took the largest value of each column (max pooling). Take the mean."""
    return layer_norm(X[n_prefix:].max(axis=0), gain, shift, eps)


@mean_then_norm.misconception("mean over the wrong axis")
def wrong_axis(X, n_prefix, gain, shift, eps=1e-6):
    """You averaged the entries of each patch, which gives a number for each patch. Average over the patches: a number
    for each of the d columns."""
    means = layer_norm(X[n_prefix:].mean(axis=1), eps=eps)
    return means * gain + shift if len(means) == len(gain) else means


# ---------------------------------------------------------------------------------------- norm_then_mean

norm_then_mean = Exercise(chapter.norm_then_mean, points=2, difficulty=2, minutes=10, section="Normalize, then average")


@norm_then_mean.visible
def by_hand_too():
    "The hand example of the page"
    yield Case(HAND, 1, ONES, ZEROS, eps=0.0, why="the patches normalize to [1, -1, -1, 1] and [1, 1, -1, -1]")
    X = np.array([[4.0, -2.0, -2.0, 4.0], [5.0, 5.0, 5.0, 5.0]])
    yield Case(X, 0, ONES, ZEROS, eps=16.0, why="the variances are 9 and 0, so the roots are 5 and 4")


@norm_then_mean.visible
def gain_and_shift_too():
    "A gain, a shift, and several prefix rows"
    X = np.array([[9.0, -9.0, 0.0], [8.0, 8.0, -8.0], [1.0, 2.0, 6.0], [3.0, 0.0, 6.0]])
    gain, shift = np.array([1.0, -2.0, 0.5]), np.array([10.0, 20.0, 30.0])
    yield Case(X, 2, gain, shift, why="two rows are left out, and the shift comes in once")


@norm_then_mean.visible
def no_prefix_too():
    "No prefix rows"
    yield Case(np.array([[1.0, 2.0, 6.0], [3.0, 0.0, 6.0]]), 0, np.ones(3), np.zeros(3))


@norm_then_mean.visible
def as_many_patches_as_numbers_too():
    "As many patches as numbers in a row"
    X = np.array([[7.0, 7.0, -7.0], [1.0, 2.0, 6.0], [3.0, 0.0, 9.0], [5.0, 1.0, 0.0]])
    gain, shift = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, -1.0])
    yield Case(X, 1, gain, shift, why="with three patches of width 3 a wrong axis keeps the shape")


@norm_then_mean.hidden(weight=2)
def any_rows_too(rng):
    "Any rows, with one prefix row, several and none"
    for T, d, n_prefix in ((12, 7, 1), (9, 16, 5), (6, 5, 0), (8, 3, 7)):
        X, gain, shift = draw(rng, T, d)
        yield Case(X, n_prefix, gain, shift)


@norm_then_mean.hidden
def blind_shapes_too(rng):
    "Shapes in which a wrong axis goes unseen"
    X, gain, shift = draw(rng, 10, 8)
    yield Case(X, 2, gain, shift, why="N_p equals d")
    X, gain, shift = draw(rng, 8, 8)
    yield Case(X, 1, gain, shift, why="T equals d")


@norm_then_mean.hidden
def any_eps_too(rng):
    "Any eps, and a row without variance"
    X, gain, shift = draw(rng, 7, 6)
    yield Case(X, 1, gain, shift, 1e-5)
    yield Case(X, 1, gain, shift, eps=0.3)
    yield Case(np.where(np.arange(7)[:, None] == 4, 2.0, X), 1, gain, shift, why="one row is constant")
    even = np.array([[9.0, 8.0, 7.0, 6.0], [1.0, -1.0, 0.0, 0.0]])
    yield Case(even, 1, gain[:4], shift[:4], 0.5, why="eps is as large as the variance")
    yield Case(X[:1], 0, gain, shift, why="there is a single row")


@norm_then_mean.hidden
def single_precision_too(rng):
    "float32, and a row much larger than the rest"
    X, gain, shift = draw(rng, 11, 12)
    X[3] *= 30
    yield Case(X, 1, gain, shift)
    yield Case(X.astype(np.float32), 1, gain.astype(np.float32), shift.astype(np.float32))


@norm_then_mean.misconception("averaged first")
def averaged_first(X, n_prefix, gain, shift, eps=1e-6):
    """You averaged first and normalized the mean. That is `mean_then_norm`, another vector: here each row is
    normalized by itself, with its own mean and variance."""
    return chapter.mean_then_norm(X, n_prefix, gain, shift, eps)


@norm_then_mean.misconception("normalized once more")
def twice(X, n_prefix, gain, shift, eps=1e-6):
    """You normalized the mean once more. After the mean comes nothing: the pooled vector may be shorter than its
    parts."""
    return layer_norm(layer_norm(X[n_prefix:], eps=eps).mean(axis=0), gain, shift, eps)


@norm_then_mean.misconception("prefix rows averaged too")
def prefix_rows_too(X, n_prefix, gain, shift, eps=1e-6):
    """You averaged all rows. The first `n_prefix` belong to the class token and the registers, not to patches: leave
    them out."""
    return chapter.norm_then_mean(X, 0, gain, shift, eps)


@norm_then_mean.misconception("one prefix row whatever n_prefix is")
def one_row(X, n_prefix, gain, shift, eps=1e-6):
    """You always leave out one row. A model may have no class token, or registers beside it: use `n_prefix`."""
    return chapter.norm_then_mean(X, 1, gain, shift, eps)


@norm_then_mean.misconception("rows left out at the end")
def rows_at_the_end(X, n_prefix, gain, shift, eps=1e-6):
    """You left rows out at the end. The prefix rows stand in front."""
    return chapter.norm_then_mean(X[: len(X) - n_prefix], 0, gain, shift, eps)


@norm_then_mean.misconception("the class token alone")
def class_row(X, n_prefix, gain, shift, eps=1e-6):
    """You took row 0, the class token. Mean pooling reads the patch rows."""
    return chapter.norm_then_mean(X[:1], 0, gain, shift, eps)


@norm_then_mean.misconception("statistics of columns")
def batch_norm(X, n_prefix, gain, shift, eps=1e-6):
    """You took mean and variance down the columns, over the patches, as BatchNorm does. LayerNorm takes them along
    each row, over its d entries. (Over the patches every mean becomes 0, so all images would look alike.)"""
    patches = X[n_prefix:]
    return ((patches - patches.mean(axis=0)) / np.sqrt(patches.var(axis=0) + eps) * gain + shift).mean(axis=0)


@norm_then_mean.misconception("one mean and variance for all rows")
def whole_matrix(X, n_prefix, gain, shift, eps=1e-6):
    """You took one mean and one variance for all patches together. Each row has its own: that is how a large row is
    kept from outweighing the rest."""
    patches = X[n_prefix:]
    return ((patches - patches.mean()) / np.sqrt(patches.var() + eps) * gain + shift).mean(axis=0)


@norm_then_mean.misconception("divided by all rows")
def divided_by_T(X, n_prefix, gain, shift, eps=1e-6):
    """You divided the sum of the patch rows by the number of all rows. Divide by the number of rows you added up."""
    return layer_norm(X[n_prefix:], gain, shift, eps).sum(axis=0) / len(X)


@norm_then_mean.misconception("summed")
def summed_rows(X, n_prefix, gain, shift, eps=1e-6):
    """You summed the normalized rows. Their mean does not grow with the number of patches, their sum does."""
    return layer_norm(X[n_prefix:], gain, shift, eps).sum(axis=0)


@norm_then_mean.misconception("not pooled")
def not_pooled(X, n_prefix, gain, shift, eps=1e-6):
    """You normalized the rows and did not average them. The answer is one vector of width d."""
    return layer_norm(X[n_prefix:], gain, shift, eps)


@norm_then_mean.misconception("gain and shift left out")
def affine_left_out(X, n_prefix, gain, shift, eps=1e-6):
    """You left out the gain and the shift. LayerNorm multiplies the normalized entries by the gain and adds the
    shift."""
    return layer_norm(X[n_prefix:], eps=eps).mean(axis=0)


@norm_then_mean.misconception("sample variance")
def sample_variances(X, n_prefix, gain, shift, eps=1e-6):
    """You divided the squares by d − 1. LayerNorm divides by d (`np.var` as it is; `torch.var` divides by d − 1
    unless told otherwise)."""
    patches = X[n_prefix:]
    centred = patches - patches.mean(axis=1, keepdims=True)
    rows = centred / np.sqrt(patches.var(axis=1, keepdims=True, ddof=1) + eps)
    return (rows * gain + shift).mean(axis=0)


@norm_then_mean.misconception("eps outside the root")
def eps_outside_root(X, n_prefix, gain, shift, eps=1e-6):
    """You added eps to the standard deviation. It is added to the variance, under the root."""
    patches = X[n_prefix:]
    rows = (patches - patches.mean(axis=1, keepdims=True)) / (patches.std(axis=1, keepdims=True) + eps)
    return (rows * gain + shift).mean(axis=0)


@norm_then_mean.misconception("eps left as it was")
def eps_fixed(X, n_prefix, gain, shift, eps=1e-6):
    """You used 1e-6 whatever eps was given. Libraries differ in it, so it is an argument."""
    return chapter.norm_then_mean(X, n_prefix, gain, shift)


@norm_then_mean.misconception("mean not subtracted")
def rms(X, n_prefix, gain, shift, eps=1e-6):
    """You did not subtract the mean of each row: that is RMSNorm. LayerNorm centres the row first."""
    patches = X[n_prefix:]
    return (patches / np.sqrt((patches**2).mean(axis=1, keepdims=True) + eps) * gain + shift).mean(axis=0)


@norm_then_mean.misconception("divided by the length")
def unit_rows(X, n_prefix, gain, shift, eps=1e-6):
    """You scaled each centred row to length 1. LayerNorm scales it to variance 1, which is a length of the root of
    d."""
    patches = X[n_prefix:]
    centred = patches - patches.mean(axis=1, keepdims=True)
    rows = centred / np.sqrt((centred**2).sum(axis=1, keepdims=True) + eps)
    return (rows * gain + shift).mean(axis=0)


# ---------------------------------------------------------------------------------------------- map_head

map_head = Exercise(chapter.map_head, points=5, difficulty=3, minutes=30, section="Let a query ask the patches")


def weights(rng, d, d_ff, n_heads):
    """A MAP head's parameters, of order 1: no bias is zero, no matrix symmetric."""
    shapes = {"q": (d,), "W_q": (d, d), "b_q": (d,), "W_k": (d, d), "b_k": (d,), "W_v": (d, d), "b_v": (d,)}
    shapes |= {"W_o": (d, d), "b_o": (d,), "ln_gain": (d,), "ln_shift": (d,)}
    shapes |= {"W_1": (d, d_ff), "b_1": (d_ff,), "W_2": (d_ff, d), "b_2": (d,)}
    # Square roots keep what a product hands on of order 1 too, so that no head looks at one patch alone.
    params = {name: rng.normal(size=shape) / len(shape) ** 0.5 for name, shape in shapes.items()}
    for name in ("W_q", "W_k", "W_v", "W_o"):
        params[name] = params[name] * 2**0.5 / d**0.5
    return params | {"n_heads": n_heads}


def fixed(seed, d, d_ff, n_heads):
    """The same parameters every time, in three decimals so that a learner can print them."""
    params = weights(np.random.default_rng(seed), d, d_ff, n_heads)
    return {name: np.round(value, 3) if name != "n_heads" else value for name, value in params.items()}


def rows(seed, T, d):
    return np.round(np.random.default_rng(seed).normal(size=(T, d)), 2)


@map_head.visible
def one_patch():
    "A single patch: every head must look at it"
    params = fixed(7, 4, 3, 2)
    no_mlp = params | {"W_2": np.zeros((3, 4)), "b_2": np.zeros(4)}
    yield Case(rows(6, 2, 4), 1, no_mlp, why="for one patch and an MLP of 0 the answer is (x W_v + b_v) W_o + b_o")
    yield Case(rows(6, 2, 4), 1, params, why="one patch shows the LayerNorm and the MLP alone")


@map_head.visible
def two_heads():
    "Two heads and a class token"
    yield Case(rows(0, 5, 4), 1, fixed(1, 4, 6, 2), why="several patches show the scores, the softmax and the heads")


@map_head.visible
def prefix_rows():
    "No prefix rows, and several"
    yield Case(rows(2, 5, 4), 0, fixed(3, 4, 6, 2), why="there is no prefix row")
    yield Case(rows(4, 8, 6), 5, fixed(5, 6, 4, 3), why="a class token and four registers are not asked")


@map_head.visible
def large_scores():
    "Scores in the thousands"
    params = fixed(8, 4, 6, 2)
    yield Case(rows(9, 6, 4), 1, params | {"W_k": 4000 * params["W_k"]}, why="np.exp of a large score is infinite")


@map_head.hidden(weight=3)
def any_head(rng):
    "Any sizes, any number of heads"
    for T, d, d_ff, h, n_prefix in ((9, 8, 12, 2, 1), (7, 12, 5, 3, 5), (6, 6, 24, 6, 0), (10, 8, 8, 4, 1)):
        yield Case(rng.normal(size=(T, d)), n_prefix, weights(rng, d, d_ff, h))


@map_head.hidden(weight=2)
def heads_that_fit_both_ways(rng):
    "Sizes where a wrong order keeps the shape"
    yield Case(rng.normal(size=(10, 9)), 1, weights(rng, 9, 9, 3), why="d = N_p = d_ff, and h = d_h")
    yield Case(rng.normal(size=(5, 16)), 1, weights(rng, 16, 16, 4), why="N_p = h = d_h")
    yield Case(rng.normal(size=(6, 5)), 2, weights(rng, 5, 7, 1), why="one head")
    yield Case(rng.normal(size=(1, 6)), 0, weights(rng, 6, 7, 2), why="there is a single row")


@map_head.hidden
def any_large_scores(rng):
    "Scores that overflow when they are not shifted"
    params = weights(rng, 8, 10, 2)
    yield Case(rng.normal(size=(7, 8)), 1, params | {"W_k": 3000 * params["W_k"]})
    yield Case(rng.normal(size=(7, 8)), 1, params | {"b_k": 1500 * params["b_k"]}, why="every score is far from zero")


@map_head.hidden
def any_single_precision(rng):
    "float32 weights and rows"
    params = weights(rng, 8, 12, 2)
    yield Case(
        rng.normal(size=(9, 8)).astype(np.float32),
        1,
        {name: np.float32(value) if name != "n_heads" else value for name, value in params.items()},
    )


def head(
    X, n_prefix, params, *, attend=None, combine=None, project=None, gelu=None, split=None, eps=1e-6, residual=True
):
    """A MAP head with one step exchanged, for the misconceptions."""
    p, h, d = params, params["n_heads"], X.shape[1]
    project = project or (lambda v, name: v @ p[f"W_{name}"] + p[f"b_{name}"])
    split = split or (lambda v: v.reshape(*v.shape[:-1], h, -1))
    patches = X[n_prefix:]
    q, K, V = split(project(p["q"], "q")), split(project(patches, "k")), split(project(patches, "v"))
    scores = np.einsum("hd,nhd->hn", q, K)
    attend = attend or (lambda s: softmax(s / (d // h) ** 0.5))
    mixed = np.einsum("hn,nhd->hd", attend(scores), V)
    z = project((combine or (lambda m: m.reshape(d)))(mixed), "o")
    y = layer_norm(z, p["ln_gain"], p["ln_shift"], eps) @ p["W_1"] + p["b_1"]
    y = (gelu or exact_gelu)(y) @ p["W_2"] + p["b_2"]
    return z + y if residual else y


def softmax(scores, axis=-1):
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def exact_gelu(x):
    return x / 2 * (1 + chapter.erf(x / 2**0.5))


def width(params):
    return len(params["q"]) // params["n_heads"]


@map_head.misconception("prefix rows asked too")
def prefix_asked(X, n_prefix, params):
    """Your query asks the prefix rows too. Keys and values come from the patches alone: leave out the first
    `n_prefix` rows."""
    return chapter.map_head(X, 0, params)


@map_head.misconception("one prefix row whatever n_prefix is")
def one_left_out(X, n_prefix, params):
    """You always leave out one row. A model may have no class token, or registers beside it: use `n_prefix`."""
    return chapter.map_head(X, 1, params)


@map_head.misconception("query not projected")
def raw_query(X, n_prefix, params):
    """You used the learned query as it is. It goes through W_q and b_q like any other query."""
    d = X.shape[1]
    return chapter.map_head(X, n_prefix, params | {"W_q": np.eye(d), "b_q": np.zeros(d)})


@map_head.misconception("no scale")
def unscaled(X, n_prefix, params):
    """You did not divide the scores by the root of the head's width."""
    return head(X, n_prefix, params, attend=softmax)


@map_head.misconception("scaled by the root of d")
def scaled_by_width(X, n_prefix, params):
    """You divided the scores by the root of d. Each head compares vectors of width d / n_heads: divide by the root of
    that."""
    return head(X, n_prefix, params, attend=lambda s: softmax(s / X.shape[1] ** 0.5))


@map_head.misconception("multiplied by the root")
def multiplied(X, n_prefix, params):
    """You multiplied the scores by the root of the head's width. Divide by it."""
    return head(X, n_prefix, params, attend=lambda s: softmax(s * width(params) ** 0.5))


@map_head.misconception("softmax over the heads")
def over_heads(X, n_prefix, params):
    """Your softmax runs over the heads. Each head shares its attention out among the patches: the weights of one head
    add up to 1."""
    return head(X, n_prefix, params, attend=lambda s: softmax(s / width(params) ** 0.5, axis=0))


@map_head.misconception("softmax over everything")
def over_everything(X, n_prefix, params):
    """You took one softmax over all heads and patches together. Each head has its own: the weights of one head add up
    to 1."""
    return head(X, n_prefix, params, attend=lambda s: softmax(s / width(params) ** 0.5, axis=(0, 1)))


@map_head.misconception("softmax that overflows")
def overflows(X, n_prefix, params):
    """Your `np.exp` overflows: a score of 1000 is ordinary, and its exponential is infinite. Subtract the largest score
    of each head first; the softmax does not change."""

    def attend(scores):
        exponentials = np.exp(scores / width(params) ** 0.5)
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    return head(X, n_prefix, params, attend=attend)


@map_head.misconception("heads interleaved")
def interleaved(X, n_prefix, params):
    """You gave every n_heads-th number to the same head. Heads are contiguous: head 0 takes the first d / n_heads
    numbers. Reshape to (n_heads, d / n_heads), in that order."""
    h = params["n_heads"]
    return head(
        X,
        n_prefix,
        params,
        split=lambda v: v.reshape(*v.shape[:-1], -1, h).swapaxes(-1, -2),
        combine=lambda mixed: mixed.T.reshape(-1),
    )


@map_head.misconception("heads cut along the patches")
def cut_along_patches(X, n_prefix, params):
    """You reshaped keys and values straight to (n_heads, N_p, d_h). That gives a head some of the patches. Each head
    takes a part of every row: reshape to (N_p, n_heads, d_h), then move the axis of the heads."""
    h = params["n_heads"]
    return head(
        X,
        n_prefix,
        params,
        split=lambda v: v.reshape(h, -1) if v.ndim == 1 else v.reshape(h, len(v), -1).swapaxes(0, 1),
    )


@map_head.misconception("heads joined across")
def joined_across(X, n_prefix, params):
    """You joined the heads' results number by number. They stand side by side: all of head 0, then all of head 1."""
    return head(X, n_prefix, params, combine=lambda mixed: mixed.T.reshape(-1))


@map_head.misconception("one head")
def single_head(X, n_prefix, params):
    """You used one head of the full width. Split the projected vectors into `n_heads` parts, each with a softmax of
    its own."""
    return chapter.map_head(X, n_prefix, params | {"n_heads": 1})


@map_head.misconception("W_o left out")
def no_output_projection(X, n_prefix, params):
    """You left out W_o and b_o. The heads' results go through it before anything else."""
    d = X.shape[1]
    return chapter.map_head(X, n_prefix, params | {"W_o": np.eye(d), "b_o": np.zeros(d)})


@map_head.misconception("values not projected")
def raw_values(X, n_prefix, params):
    """You averaged the patch rows themselves. Values are the rows after W_v and b_v."""
    d = X.shape[1]
    return chapter.map_head(X, n_prefix, params | {"W_v": np.eye(d), "b_v": np.zeros(d)})


@map_head.misconception("keys and values exchanged")
def keys_as_values(X, n_prefix, params):
    """You exchanged keys and values. The keys, from W_k, meet the query; the values, from W_v, are averaged."""
    exchanged = {"W_k": "W_v", "b_k": "b_v", "W_v": "W_k", "b_v": "b_k"}
    return chapter.map_head(X, n_prefix, params | {name: params[other] for name, other in exchanged.items()})


@map_head.misconception("biases left out")
def no_biases(X, n_prefix, params):
    """You left out the biases. Each of the six linear layers has one."""
    zeros = {name: np.zeros_like(params[name]) for name in ("b_q", "b_k", "b_v", "b_o", "b_1", "b_2")}
    return chapter.map_head(X, n_prefix, params | zeros)


@map_head.misconception("weights transposed")
def transposed_weights(X, n_prefix, params):
    """You multiplied by the transposed attention weights, as one does with the weight of an `nn.Linear`. Here weights
    multiply from the right as they are."""
    turned = {name: params[name].T for name in ("W_q", "W_k", "W_v", "W_o")}
    return chapter.map_head(X, n_prefix, params | turned)


@map_head.misconception("no residual")
def no_residual(X, n_prefix, params):
    """You returned the MLP's output alone. u, what W_o gives, is added to it: u + MLP(LN(u))."""
    return head(X, n_prefix, params, residual=False)


@map_head.misconception("the query added")
def query_added(X, n_prefix, params):
    """You added the query to what the heads found, as a Transformer block would. A MAP head has no residual around its
    attention."""
    return chapter.map_head(X, n_prefix, params | {"b_o": params["b_o"] + params["q"]})


@map_head.misconception("MLP left out")
def no_mlp(X, n_prefix, params):
    """You stopped at u, what W_o gives. The head has an MLP: return u + MLP(LN(u))."""
    zeros = {name: np.zeros_like(params[name]) for name in ("W_2", "b_2")}
    return chapter.map_head(X, n_prefix, params | zeros)


@map_head.misconception("normalized residual")
def normalized_residual(X, n_prefix, params):
    """You added the MLP's output to LN(u). The residual is u itself: u + MLP(LN(u))."""
    d = X.shape[1]
    alone = head(X, n_prefix, params, residual=False)
    zeros = {name: np.zeros_like(params[name]) for name in ("W_2", "b_2")}
    z = chapter.map_head(X, n_prefix, params | zeros)
    return layer_norm(z.reshape(d), params["ln_gain"], params["ln_shift"]) + alone


@map_head.misconception("LayerNorm left out")
def no_norm(X, n_prefix, params):
    """The MLP read u, what W_o gives, as it is. It reads the LayerNorm of u: u + MLP(LN(u))."""
    zeros = {name: np.zeros_like(params[name]) for name in ("W_2", "b_2")}
    z = chapter.map_head(X, n_prefix, params | zeros)
    return z + exact_gelu(z @ params["W_1"] + params["b_1"]) @ params["W_2"] + params["b_2"]


@map_head.misconception("gain and shift left out")
def no_gain(X, n_prefix, params):
    """Your LayerNorm has no gain and no shift: multiply by `ln_gain` and add `ln_shift`."""
    d = X.shape[1]
    return chapter.map_head(X, n_prefix, params | {"ln_gain": np.ones(d), "ln_shift": np.zeros(d)})


@map_head.misconception("LayerNorm at the end")
def norm_last(X, n_prefix, params):
    """You normalized the sum, as the first Transformers did. Here the LayerNorm stands before the MLP and nothing
    after it: u + MLP(LN(u))."""
    zeros = {name: np.zeros_like(params[name]) for name in ("W_2", "b_2")}
    u = chapter.map_head(X, n_prefix, params | zeros)
    y = u + exact_gelu(u @ params["W_1"] + params["b_1"]) @ params["W_2"] + params["b_2"]
    return layer_norm(y, params["ln_gain"], params["ln_shift"])


@map_head.misconception("GELU left out")
def no_gelu(X, n_prefix, params):
    """You left out the GELU between W_1 and W_2. Without it the two are one linear layer."""
    return head(X, n_prefix, params, gelu=lambda x: x)


@map_head.misconception("sigmoid GELU")
def sigmoid_gelu(X, n_prefix, params):
    """You used x · sigmoid(1.702 x), an approximation of GELU. Here it is the exact one, with erf."""
    return head(X, n_prefix, params, gelu=lambda x: x / (1 + np.exp(-1.702 * x)))


@map_head.misconception("tanh GELU")
def tanh_gelu(X, n_prefix, params):
    """You used the tanh approximation of GELU, as big_vision does. Here it is the exact one, with erf. The two are
    close, but not equal."""
    return head(X, n_prefix, params, gelu=lambda x: x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))))


@map_head.misconception("ReLU")
def relu(X, n_prefix, params):
    """You used ReLU. The MLP's nonlinearity is GELU."""
    return head(X, n_prefix, params, gelu=lambda x: np.maximum(x, 0))


@map_head.misconception("erf without the root of 2")
def erf_unscaled(X, n_prefix, params):
    """You forgot the root of 2 inside erf. The normal distribution function is (1 + erf(x / √2)) / 2."""
    return head(X, n_prefix, params, gelu=lambda x: x / 2 * (1 + chapter.erf(x)))


@map_head.misconception("eps of 1e-5")
def torch_eps(X, n_prefix, params):
    """Your LayerNorm has eps = 1e-5, PyTorch's default. ViTs mostly use 1e-6, and so does this one."""
    return head(X, n_prefix, params, eps=1e-5)


@map_head.misconception("every patch alike")
def uniform(X, n_prefix, params):
    """Every patch counts the same in yours: that is mean pooling. The softmax of the scores decides how much each
    counts."""
    return head(X, n_prefix, params, attend=lambda s: np.full(s.shape, 1 / s.shape[1]))
