"""Everything right, with loops, lists and einsum; it prints, warns and draws on stderr."""

import sys
import warnings

import numpy as np


def patchify(img, P):
    print("patchify", img.shape)
    print("half way", file=sys.stderr)
    warnings.warn("this is slow", stacklevel=2)
    rows = []
    for r in range(img.shape[0] // P):
        for c in range(img.shape[1] // P):
            patch = []
            for u in range(P):
                for v in range(P):
                    patch += [float(number) for number in img[r * P + u, c * P + v]]
            rows.append(patch)
    assert rows, "the image is too small"
    return rows


def unpatchify(patches, H, W, P):
    if H % P != 0 or W % P != 0:
        raise RuntimeError("P does not fit")
    if patches.shape[0] != H * W // P**2:
        raise RuntimeError("wrong number of patches")
    C = patches.shape[1] // P**2
    image = np.empty((H, W, C), patches.dtype)
    for i, patch in enumerate(patches):
        r, c = divmod(i, W // P)
        image[r * P : r * P + P, c * P : c * P + P] = patch.reshape(P, P, C)
    return image


def conv_weight_to_linear(W_conv):
    d, C, P, _ = W_conv.shape
    matrix = np.zeros((P * P * C, d), W_conv.dtype)
    for u in range(P):
        for v in range(P):
            for c in range(C):
                matrix[(u * P + v) * C + c] = W_conv[:, c, u, v]
    return matrix


def patch_embed_conv(img_chw, W_conv, b):
    d, C, P, _ = W_conv.shape
    rows, columns = img_chw.shape[1] // P, img_chw.shape[2] // P
    grid = img_chw[:, : rows * P, : columns * P].reshape(C, rows, P, columns, P)
    return np.einsum("krusv,dkuv->rsd", grid, W_conv).reshape(-1, d) + b
