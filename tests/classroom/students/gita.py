"""Height and width swapped, the matrix not transposed, the bias forgotten."""

import numpy as np


def patchify(img, P):
    H, W, C = img.shape
    rows, columns = H // P, W // P
    if rows == 0 or columns == 0:
        raise ValueError("no patch fits")
    img = img[: rows * P, : columns * P]
    return img.reshape(rows, P, columns, P, C).transpose(0, 2, 1, 3, 4).reshape(rows * columns, P * P * C)


def unpatchify(patches, H, W, P):
    if H % P or W % P or len(patches) != (H // P) * (W // P):
        raise ValueError("these sizes do not go together")
    grid = patches.reshape(W // P, H // P, P, P, -1)
    return grid.transpose(0, 2, 1, 3, 4).reshape(W, H, -1)


def conv_weight_to_linear(W_conv):
    return np.moveaxis(W_conv, (2, 3, 1, 0), (0, 1, 2, 3)).reshape(-1, len(W_conv)).T


def patch_embed_conv(img_chw, W_conv, b):
    patches = patchify(img_chw.transpose(1, 2, 0), W_conv.shape[-1])
    return patches @ conv_weight_to_linear(W_conv).T
