"""The exercises of the chapter *Patchify*."""

import numpy as np

from autograder.judging.exercise import Case, Exercise, Raises
from solutions import patchify as chapter


def counting(*shape):
    """0, 1, 2, … in that shape: every entry is its own address."""
    return np.arange(float(np.prod(shape))).reshape(shape)


def pixel(index, C, P):
    """Words for an address inside a channels-last patch."""
    place, c = divmod(index, C)
    return f"channel {c} of pixel {divmod(place, P)}"


# ---------------------------------------------------------------------------------------------- patchify

patchify = Exercise(chapter.patchify, points=3, difficulty=2, minutes=15, section="Cut and put back")


@patchify.where
def patchify_entry(index, img, P):
    return f"{pixel(index[1], img.shape[2], P)} of patch {index[0]}"


@patchify.visible
def one_patch():
    "A single patch in three colours"
    yield Case(counting(2, 2, 3), 2, why="the pixels hold 0, 1, 2, …, so each number says where it came from")


@patchify.visible
def a_wide_grid():
    "Two rows of three patches in three colours, one row of two in grey"
    yield Case(counting(4, 6, 3), 2, why="the grid is not square, so the order of the patches shows")
    yield Case(counting(2, 4, 1), 2, why="a grey image has one channel")


@patchify.visible
def cropped():
    "Sides that P does not divide"
    yield Case(counting(5, 8, 3), 3, why="the last two rows and columns fill no patch, so they are dropped")


@patchify.visible
def too_small():
    "An image smaller than a patch"
    yield Raises(counting(2, 9, 3), 4, why="an image of 2 by 9 pixels holds no patch of side 4")
    yield Case(counting(4, 4, 3), 4, why="one whole patch just fits")


@patchify.hidden(weight=2)
def any_image(rng):
    "Any grid, any patch side, three channels"
    yield Case(rng.normal(size=(6, 15, 3)), 3)
    yield Case(rng.normal(size=(20, 8, 3)), 4)
    yield Case(rng.normal(size=(7, 3, 3)), 1)
    yield Case(rng.normal(size=(3, 5, 2)).astype(np.float32), 2)


@patchify.hidden
def any_crop(rng):
    "Pixels left over at the bottom and at the right"
    yield Case(rng.normal(size=(11, 14, 3)), 4)
    yield Case(rng.normal(size=(15, 9, 3)), 8)


@patchify.hidden
def any_too_small(rng):
    "Images that hold no patch, in either direction"
    P = int(rng.integers(3, 8))
    yield Raises(rng.normal(size=(P - 1, 3 * P, 3)), P)
    yield Raises(rng.normal(size=(2 * P, P - 1, 3)), P)
    yield Case(rng.normal(size=(P, 2 * P, 3)), P)


@patchify.misconception("plain reshape")
def plain_reshape(img, P):
    """You reshaped the image straight into rows. A row of memory runs through all patches of a row of the grid,
    so your rows hold strips of the image, not squares: split the axes and swap them before you join them."""
    H_p, W_p = img.shape[0] // P, img.shape[1] // P
    return img[: H_p * P, : W_p * P].reshape(H_p * W_p, -1)


@patchify.misconception("channels first")
def patches_channels_first(img, P):
    """You listed each colour's pixels together (channels first). Patches here list each pixel's colours together,
    so the channel axis must stay last."""
    rows = chapter.patchify(img, P)
    return rows.reshape(len(rows), P * P, -1).transpose(0, 2, 1).reshape(len(rows), -1)


@patchify.misconception("patches column by column")
def column_major(img, P):
    """Your patches run down the columns of the grid. Raster order goes along the rows: left to right, then down."""
    H_p, W_p = img.shape[0] // P, img.shape[1] // P
    return chapter.patchify(img, P).reshape(H_p, W_p, -1).transpose(1, 0, 2).reshape(H_p * W_p, -1)


@patchify.misconception("pixels transposed")
def pixels_transposed(img, P):
    """Inside each patch you listed the pixels column by column. They go row by row: u before v."""
    rows = chapter.patchify(img, P)
    return rows.reshape(len(rows), P, P, -1).transpose(0, 2, 1, 3).reshape(len(rows), -1)


@patchify.misconception("rows and columns exchanged")
def transposed(img, P):
    """You exchanged the rows and the columns of the image: the patches run down its columns, and so do the pixels
    inside each. Both go along the rows."""
    return chapter.patchify(img.transpose(1, 0, 2), P)


@patchify.misconception("padded")
def padded(img, P):
    """You padded the image up to whole patches. Here pixels that do not fill a patch are dropped, as a strided
    convolution drops them."""
    H, W, _ = img.shape
    return chapter.patchify(np.pad(img, ((0, -H % P), (0, -W % P), (0, 0))), P)


@patchify.misconception("cropped at the top left")
def cropped_at_the_start(img, P):
    """You dropped the pixels left over at the top and at the left. A convolution starts at the corner (0, 0) and
    drops them at the bottom and at the right."""
    return chapter.patchify(img[img.shape[0] % P :, img.shape[1] % P :], P)


@patchify.misconception("cropped around the centre")
def cropped_around_the_centre(img, P):
    """You cropped around the centre of the image. A convolution starts at the corner (0, 0) and drops what is left
    over at the bottom and at the right."""
    top, left = img.shape[0] % P // 2, img.shape[1] % P // 2
    H_p, W_p = img.shape[0] // P, img.shape[1] // P
    return chapter.patchify(img[top : top + H_p * P, left : left + W_p * P], P)


@patchify.misconception("overlapping windows")
def overlapping(img, P):
    """You took a window at every pixel. Patches tile the image: the window moves P pixels at a time."""
    H, W, _ = img.shape
    return np.array([img[r : r + P, c : c + P].ravel() for r in range(H - P + 1) for c in range(W - P + 1)])


@patchify.misconception("no error for an image without a patch")
def silent_when_small(img, P):
    """An image smaller than one patch gives you no patches, without a word. Whatever comes after would then work
    on nothing: raise a ValueError."""
    H_p, W_p = img.shape[0] // P, img.shape[1] // P
    return chapter.patchify(img, P) if H_p and W_p else np.empty((0, P * P * img.shape[2]))


@patchify.misconception("patches left as squares")
def not_flattened(img, P):
    """Each of your patches is still a square with channels. Flatten it: the answer has two axes."""
    rows = chapter.patchify(img, P)
    return rows.reshape(len(rows), P, P, -1)


# -------------------------------------------------------------------------------------------- unpatchify

unpatchify = Exercise(chapter.unpatchify, points=2, difficulty=2, minutes=10, section="Cut and put back")


@unpatchify.where
def unpatchify_entry(index, patches, H, W, P):
    return f"pixel {index[:2]}"


@unpatchify.visible
def one_patch_back():
    "A single patch in three colours"
    yield Case(counting(1, 12), 2, 2, 2, why="the row holds 0, 1, 2, …, so each number says where it came from")


@unpatchify.visible
def a_wide_image():
    "Two rows of three patches, in three colours and in grey"
    yield Case(counting(6, 12), 4, 6, 2, why="the grid is not square, so the order of the patches shows")
    yield Case(counting(6, 4), 4, 6, 2, why="the number of channels follows from the length of a row, here 1")


@unpatchify.visible
def sides_that_do_not_fit():
    "A side that P does not divide, and a wrong number of patches"
    yield Raises(counting(6, 12), 5, 6, 2, why="2 does not divide a height of 5")
    yield Raises(counting(5, 12), 4, 6, 2, why="a grid of 2 by 3 patches has 6 rows, not 5")
    yield Raises(counting(7, 12), 4, 6, 2, why="a grid of 2 by 3 patches has 6 rows, not 7")
    yield Case(counting(2, 12), 2, 4, 2)


@unpatchify.hidden(weight=2)
def any_grid(rng):
    "Any grid, any patch side, any channels"
    yield Case(rng.normal(size=(10, 27)), 6, 15, 3)
    yield Case(rng.normal(size=(10, 32)), 20, 8, 4)
    yield Case(rng.normal(size=(12, 12)), 4, 12, 2, why="12 patches could be 3 by 4 just as well")
    yield Case(rng.normal(size=(6, 3)).astype(np.float32), 2, 3, 1)
    yield Case(rng.normal(size=(6, 1)), 2, 3, 1, why="each patch is a single number")


@unpatchify.hidden
def any_misfit(rng):
    "Sizes and counts that do not belong together"
    P = int(rng.integers(2, 6))
    yield Raises(rng.normal(size=(6, P * P * 3)), 2 * P, 3 * P + 1, P)
    yield Raises(rng.normal(size=(6, P * P * 3)), 2 * P + 1, 3 * P, P)
    yield Raises(rng.normal(size=(7, P * P * 3)), 2 * P, 3 * P, P)
    yield Raises(rng.normal(size=(12, P * P * 3)), 2 * P, 3 * P, P, why="12 rows would fill the image with 6 channels")
    yield Raises(rng.normal(size=(6, 20)), 5, 6, 2, why="the 120 numbers would fill an image with 4 channels")
    yield Raises(rng.normal(size=(6, 20)), 6, 5, 2)
    yield Case(rng.normal(size=(6, P * P * 3)), 2 * P, 3 * P, P)


@unpatchify.misconception("plain reshape")
def plain_reshape_back(patches, H, W, P):
    """You reshaped the rows straight into an image. That lays each patch out as a strip: bring the pixel rows of
    neighbouring patches next to each other before you join the axes."""
    return patches.reshape(H, W, -1)


@unpatchify.misconception("channels first")
def image_channels_first(patches, H, W, P):
    """You read each row as one colour after the other (channels first). The rows list each pixel's colours
    together, so the channel axis comes last when you take a row apart."""
    rows = patches.reshape(len(patches), -1, P * P).transpose(0, 2, 1).reshape(len(patches), -1)
    return chapter.unpatchify(rows, H, W, P)


@unpatchify.misconception("patches column by column")
def column_major_back(patches, H, W, P):
    """You laid the patches down the columns of the grid. They come in raster order: left to right, then down."""
    rows = patches.reshape(W // P, H // P, -1).transpose(1, 0, 2).reshape(len(patches), -1)
    return chapter.unpatchify(rows, H, W, P)


@unpatchify.misconception("taken apart like an image")
def image_axes(patches, H, W, P):
    """You took the list apart as `patchify` takes an image apart. A list has whole patches one after the other: its
    axes are (H_p, W_p, P, P, C) before you swap the two in the middle."""
    if H % P or W % P or len(patches) != (H // P) * (W // P):
        raise ValueError("H, W, P and the number of patches do not belong together")
    return patches.reshape(H // P, P, W // P, P, -1).transpose(0, 2, 1, 3, 4).reshape(H, W, -1)


@unpatchify.misconception("rows of the grid counted with H_p")
def wrong_number(patches, H, W, P):
    """You looked for patch (r, c) at number r H_p + c. A row of the grid has W_p patches, so it is r W_p + c."""
    chapter.unpatchify(patches, H, W, P)  # refuses what does not fit
    H_p, W_p = H // P, W // P
    numbers = np.add.outer(np.arange(H_p) * H_p, np.arange(W_p)).ravel()
    return chapter.unpatchify(patches[numbers], H, W, P)


@unpatchify.misconception("pixels transposed")
def pixels_transposed_back(patches, H, W, P):
    """Inside each patch you laid the pixels down its columns. They are listed row by row: u before v."""
    rows = patches.reshape(len(patches), P, P, -1).transpose(0, 2, 1, 3).reshape(len(patches), -1)
    return chapter.unpatchify(rows, H, W, P)


@unpatchify.misconception("height and width swapped")
def sides_swapped(patches, H, W, P):
    """Your image is as wide as it should be high. H is the number of rows of pixels and comes first."""
    return chapter.unpatchify(patches, W, H, P)


@unpatchify.misconception("patches swapped with pixels")
def no_swap(patches, H, W, P):
    """You swapped the pixel axes with the wrong ones. From (H_p, W_p, P, P, C), patch row and pixel row must end up
    next to each other, and so must patch column and pixel column."""
    return patches.reshape(H // P, W // P, P, P, -1).transpose(2, 0, 3, 1, 4).reshape(H, W, -1)


@unpatchify.misconception("a count that does not fit is cut off")
def extra_patches_ignored(patches, H, W, P):
    """Patches that are too many vanish without a word. A count that does not fit means that H, W or P is wrong:
    raise a ValueError."""
    return chapter.unpatchify(patches[: (H // P) * (W // P)], H, W, P)


@unpatchify.misconception("a count that does not fit becomes channels")
def extra_patches_as_channels(patches, H, W, P):
    """When twice as many patches come as the image holds, yours has twice as many channels. A count that does not
    fit means that H, W or P is wrong: raise a ValueError."""
    if H % P or W % P:
        raise ValueError("P must divide H and W")
    return patches.reshape(H // P, W // P, P, P, -1).transpose(0, 2, 1, 3, 4).reshape(H, W, -1)


@unpatchify.misconception("a side that P does not divide is cropped")
def cropped_back(patches, H, W, P):
    """When P does not divide a side, your image comes out smaller than H by W. Nothing can fill the missing pixels:
    raise a ValueError."""
    return chapter.unpatchify(patches, H // P * P, W // P * P, P)


# --------------------------------------------------------------------------------- conv_weight_to_linear

conv_weight_to_linear = Exercise(
    chapter.conv_weight_to_linear, points=3, difficulty=2, minutes=10, section="One pixel, two addresses"
)


@conv_weight_to_linear.where
def weight_entry(index, W_conv):
    return pixel(index[0], W_conv.shape[1], W_conv.shape[2])


@conv_weight_to_linear.visible
def small():
    "Two filters, three colours, patches of side 2"
    yield Case(counting(2, 3, 2, 2), why="the weights are 0, 1, 2, …, so each number says where it came from")


@conv_weight_to_linear.visible
def as_many_filters_as_numbers():
    "As many filters as a patch has numbers"
    yield Case(counting(12, 3, 2, 2), why="d equals P * P * C, so a forgotten transpose keeps the shape")


@conv_weight_to_linear.hidden(weight=2)
def any_kernel(rng):
    "Filters of any number, side and colours"
    yield Case(rng.normal(size=(7, 3, 4, 4)))
    yield Case(rng.normal(size=(5, 2, 3, 3)))
    yield Case(rng.normal(size=(1, 3, 2, 2)).astype(np.float32))


@conv_weight_to_linear.hidden
def square_matrix(rng):
    "A square matrix, where the shape says nothing"
    yield Case(rng.normal(size=(27, 3, 3, 3)))


@conv_weight_to_linear.misconception("channels first")
def channels_first(W_conv):
    """You listed each colour's pixels together (channels first). Patches here list each pixel's colours together,
    so the channel axis must come last before you reshape."""
    return W_conv.reshape(len(W_conv), -1).T


@conv_weight_to_linear.misconception("not transposed")
def not_transposed(W_conv):
    """Your matrix has one row for each filter, as `nn.Linear` stores it. Here it multiplies patches from the right:
    one row for each number of a patch, one column for each filter."""
    return W_conv.transpose(0, 2, 3, 1).reshape(len(W_conv), -1)


@conv_weight_to_linear.misconception("reshape without a transpose")
def reshaped_only(W_conv):
    """You reshaped to the right shape without moving an axis. A reshape never moves a number: the filter axis is
    still the slowest in memory, so your columns mix the filters."""
    return W_conv.reshape(-1, len(W_conv))


@conv_weight_to_linear.misconception("channels first, not transposed")
def flat_filters(W_conv):
    """You flattened each filter into a row. The patch must run down the rows, channels last, and the filters along
    the columns."""
    return W_conv.reshape(len(W_conv), -1)


@conv_weight_to_linear.misconception("pixels transposed")
def pixel_axes_swapped(W_conv):
    """You listed each filter's pixels column by column. They go row by row: u before v, so axis 2 before axis 3."""
    return W_conv.transpose(3, 2, 1, 0).reshape(-1, len(W_conv))


@conv_weight_to_linear.misconception("kernel flipped")
def flipped(W_conv):
    """You flipped the kernel, as the convolution of mathematics does. The convolution of deep learning libraries is
    a cross-correlation: the filter is laid on the patch as it is."""
    return chapter.conv_weight_to_linear(W_conv[:, :, ::-1, ::-1])


@conv_weight_to_linear.misconception("channels reversed")
def bgr(W_conv):
    """You reversed the order of the channels (blue, green, red). The filters and the patches use the same order:
    leave the channels as they are."""
    return chapter.conv_weight_to_linear(W_conv[:, ::-1])


@conv_weight_to_linear.misconception("rows of the patch after its channels")
def channel_between(W_conv):
    """You put the channel between the two pixel axes. The order of a patch is pixel row, pixel column, channel."""
    return W_conv.transpose(2, 1, 3, 0).reshape(-1, len(W_conv))


# -------------------------------------------------------------------------------------- patch_embed_conv

patch_embed_conv = Exercise(
    chapter.patch_embed_conv, points=4, difficulty=3, minutes=20, section="A convolution in disguise"
)


@patch_embed_conv.where
def token_entry(index, img_chw, W_conv, b):
    columns = img_chw.shape[2] // W_conv.shape[3]
    return f"patch {divmod(index[0], columns)}"


DETECTORS = np.array([[[[1.0, 1.0], [1.0, 1.0]]], [[[1.0, -1.0], [-1.0, 1.0]]]])  # (2, 1, 2, 2)
PICTURE = np.array([[[1.0, 0.0, 2.0, 2.0], [0.0, 1.0, 2.0, 2.0], [3.0, 3.0, 0.0, 1.0], [3.0, 3.0, 1.0, 0.0]]])


@patch_embed_conv.visible
def by_hand():
    "The hand example of the page"
    yield Case(PICTURE, DETECTORS, np.zeros(2), why="you can check every number by hand")


@patch_embed_conv.visible
def in_colour():
    "Three colours, two rows of three patches, a bias"
    yield Case(counting(3, 4, 6) ** 2 % 11, counting(2, 3, 2, 2) ** 2 % 7, np.array([100.0, -30.0]))


@patch_embed_conv.visible
def leftover_pixels():
    "Pixels that fill no patch"
    yield Case(
        counting(3, 5, 7) ** 2 % 11,
        counting(4, 3, 3, 3) ** 2 % 7,
        np.array([1.0, 2.0, 3.0, 4.0]),
        why="the last two rows and the last column fill no window, so they are dropped",
    )


@patch_embed_conv.hidden(weight=2)
def any_image_and_filters(rng):
    "Any image, any filters, any bias"
    yield Case(rng.normal(size=(3, 8, 12)), rng.normal(size=(5, 3, 4, 4)), rng.normal(size=5))
    yield Case(rng.normal(size=(3, 13, 7)), rng.normal(size=(7, 3, 3, 3)), rng.normal(size=7))
    yield Case(rng.normal(size=(2, 2, 6)), rng.normal(size=(3, 2, 1, 1)), rng.normal(size=3))


@patch_embed_conv.hidden(weight=2)
def blind_shapes(rng):
    "Sizes where a wrong order keeps the shape"
    yield Case(rng.normal(size=(3, 4, 6)), rng.normal(size=(12, 3, 2, 2)), rng.normal(size=12), why="d = P * P * C")
    yield Case(
        rng.normal(size=(3, 4, 6)), rng.normal(size=(6, 3, 2, 2)), rng.normal(size=6), why="as many patches as d"
    )
    yield Case(rng.normal(size=(3, 9, 9)), rng.normal(size=(9, 3, 3, 3)), rng.normal(size=9))


@patch_embed_conv.hidden
def single_precision(rng):
    "float32 weights and pixels"
    yield Case(*(rng.normal(size=size).astype(np.float32) for size in ((3, 6, 10), (4, 3, 2, 2), (4,))))


@patch_embed_conv.misconception("two flatten orders mixed")
def mixed_orders(img_chw, W_conv, b):
    """You mixed the two flatten orders: your patches are channels last, your matrix is channels first. Both have
    the same length, so nothing crashes and every token is wrong. Use the matrix of `conv_weight_to_linear`."""
    patches = chapter.patchify(img_chw.transpose(1, 2, 0), W_conv.shape[-1])
    return patches @ W_conv.reshape(len(W_conv), -1).T + b


@patch_embed_conv.misconception("two flatten orders mixed the other way")
def mixed_orders_back(img_chw, W_conv, b):
    """You mixed the two flatten orders: your patches are channels first, your matrix is channels last. Both have
    the same length, so nothing crashes and every token is wrong. Turn the image to channels last first."""
    patches = patches_channels_first(img_chw.transpose(1, 2, 0), W_conv.shape[-1])
    return patches @ chapter.conv_weight_to_linear(W_conv) + b


@patch_embed_conv.misconception("image not turned to channels last")
def wrong_axes(img_chw, W_conv, b):
    """You gave the image to a function that wants its channels last, by reshaping it. A reshape moves no number:
    turn the axes with `transpose(1, 2, 0)`."""
    C, H, W = img_chw.shape
    return chapter.patchify(img_chw.reshape(H, W, C), W_conv.shape[-1]) @ chapter.conv_weight_to_linear(W_conv) + b


@patch_embed_conv.misconception("rows and columns exchanged")
def all_axes_reversed(img_chw, W_conv, b):
    """You exchanged the rows and the columns of the image, as `img_chw.T` does: it reverses all axes, to (W, H, C).
    Channels last is (H, W, C), `transpose(1, 2, 0)`."""
    return chapter.patch_embed_conv(img_chw.transpose(0, 2, 1), W_conv, b)


@patch_embed_conv.misconception("the weight reshaped without a transpose")
def weight_reshaped(img_chw, W_conv, b):
    """You reshaped the weight to the right shape without moving an axis, so the filters are mixed up. Use the matrix of
    `conv_weight_to_linear`."""
    return chapter.patchify(img_chw.transpose(1, 2, 0), W_conv.shape[-1]) @ reshaped_only(W_conv) + b


@patch_embed_conv.misconception("pixels of the filters transposed")
def filters_transposed(img_chw, W_conv, b):
    """You laid each filter on its patch with rows and columns exchanged. Entry (u, v) of a filter belongs to pixel
    (u, v)."""
    return chapter.patch_embed_conv(img_chw, W_conv.swapaxes(2, 3), b)


@patch_embed_conv.misconception("bias forgotten")
def no_bias(img_chw, W_conv, b):
    """You left out the bias. A convolution adds b to every token."""
    return chapter.patch_embed_conv(img_chw, W_conv, np.zeros_like(b))


@patch_embed_conv.misconception("bias along the tokens")
def bias_along_tokens(img_chw, W_conv, b):
    """You added one number of the bias to each token. The bias belongs to the filters: number j goes to column j of
    every token. Where there are as many patches as filters, nothing crashes."""
    return chapter.patch_embed_conv(img_chw, W_conv, np.zeros_like(b)) + b[:, None]


@patch_embed_conv.misconception("kernel flipped")
def flipped_kernel(img_chw, W_conv, b):
    """You flipped the kernel, as `scipy.signal.convolve` does. The convolution of deep learning libraries is a
    cross-correlation: the filter is laid on the patch as it is."""
    return chapter.patch_embed_conv(img_chw, W_conv[:, :, ::-1, ::-1], b)


@patch_embed_conv.misconception("stride of one pixel")
def stride_one(img_chw, W_conv, b):
    """You moved the window one pixel at a time. A patch embedding has a stride of P: the windows do not overlap."""
    P = W_conv.shape[-1]
    _, H, W = img_chw.shape
    windows = [img_chw[:, r : r + P, c : c + P] for r in range(H - P + 1) for c in range(W - P + 1)]
    return np.array([np.tensordot(W_conv, window, axes=3) for window in windows]) + b


@patch_embed_conv.misconception("tokens column by column")
def tokens_column_major(img_chw, W_conv, b):
    """Your tokens run down the columns of the grid. Raster order goes along the rows: left to right, then down."""
    P = W_conv.shape[-1]
    H_p, W_p = img_chw.shape[1] // P, img_chw.shape[2] // P
    return chapter.patch_embed_conv(img_chw, W_conv, b).reshape(H_p, W_p, -1).transpose(1, 0, 2).reshape(H_p * W_p, -1)


@patch_embed_conv.misconception("one feature map for each filter")
def feature_maps(img_chw, W_conv, b):
    """You returned one row for each filter, the layout of a convolution's output. A Transformer reads one row for
    each token: transpose it."""
    return chapter.patch_embed_conv(img_chw, W_conv, b).T


@patch_embed_conv.misconception("feature maps reshaped")
def feature_maps_reshaped(img_chw, W_conv, b):
    """You reshaped the output of a convolution, (d, H_p, W_p), straight to (N_p, d). A reshape moves no number, so
    each of your rows holds one filter on many patches: flatten the grid first, then transpose."""
    tokens = chapter.patch_embed_conv(img_chw, W_conv, b)
    return tokens.T.reshape(tokens.shape)


@patch_embed_conv.misconception("padded")
def padded_image(img_chw, W_conv, b):
    """You padded the image up to whole patches. A convolution drops the pixels that do not fill a patch."""
    P = W_conv.shape[-1]
    _, H, W = img_chw.shape
    return chapter.patch_embed_conv(np.pad(img_chw, ((0, 0), (0, -H % P), (0, -W % P))), W_conv, b)
