"""One function is broken among right ones: it calls what does not exist."""

import numpy as np


def patchify(img, P):
    H, W, C = img.shape
    rows, columns = floor(H / P), floor(W / P)  # noqa: F821, never imported
    if rows == 0 or columns == 0:
        raise ValueError("no patch fits")
    img = img[: rows * P, : columns * P]
    return img.reshape(rows, P, columns, P, C).transpose(0, 2, 1, 3, 4).reshape(rows * columns, P * P * C)


def unpatchify(patches, H, W, P):
    if H % P or W % P or len(patches) != (H // P) * (W // P):
        raise ValueError("these sizes do not go together")
    grid = patches.reshape(H // P, W // P, P, P, -1)
    return grid.transpose(0, 2, 1, 3, 4).reshape(H, W, -1)


def conv_weight_to_linear(W_conv):
    return np.moveaxis(W_conv, (2, 3, 1, 0), (0, 1, 2, 3)).reshape(-1, len(W_conv))


def patch_embed_conv(img_chw, W_conv, b):
    P = W_conv.shape[-1]
    rows, columns = img_chw.shape[1] // P, img_chw.shape[2] // P
    tokens = [
        (W_conv * img_chw[:, r * P : r * P + P, c * P : c * P + P]).sum(axis=(1, 2, 3)) + b
        for r in range(rows)
        for c in range(columns)
    ]
    return np.array(tokens)
