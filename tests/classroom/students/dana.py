"""Everything right, in single precision throughout."""

import numpy as np


def patchify(img, P):
    H_p, W_p = img.shape[0] // P, img.shape[1] // P
    if not (H_p and W_p):
        raise IndexError("image smaller than a patch")
    windows = np.lib.stride_tricks.sliding_window_view(img, (P, P), axis=(0, 1))[::P, ::P]
    return windows.transpose(0, 1, 3, 4, 2).reshape(H_p * W_p, -1).astype(np.float32)


def unpatchify(patches, H, W, P):
    if H % P or W % P or len(patches) * P * P != H * W:
        raise ValueError((H, W, P))
    strips = np.split(patches.astype(np.float32).reshape(-1, P, P, patches.shape[1] // P**2), H // P)
    return np.concatenate([np.concatenate(list(strip), axis=1) for strip in strips])


def conv_weight_to_linear(W_conv):
    return np.stack([filter.transpose(1, 2, 0).ravel() for filter in W_conv], axis=1).astype(np.float32)


def patch_embed_conv(img_chw, W_conv, b):
    P = W_conv.shape[-1]
    _, H, W = img_chw.shape
    tokens = [
        np.tensordot(W_conv, img_chw[:, r : r + P, c : c + P], axes=3) + b
        for r in range(0, H - P + 1, P)
        for c in range(0, W - P + 1, P)
    ]
    return np.float32(tokens)
