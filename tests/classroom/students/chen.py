"""Everything right, as torch tensors, some of them with a gradient."""

import torch


def patchify(img, P):
    img = torch.as_tensor(img)
    C = img.shape[2]
    windows = img.unfold(0, P, P).unfold(1, P, P)  # (H_p, W_p, C, P, P)
    return windows.permute(0, 1, 3, 4, 2).reshape(-1, P * P * C)


def unpatchify(patches, H, W, P):
    assert H % P == 0 and W % P == 0 and len(patches) == H * W // P**2
    grid = torch.as_tensor(patches).reshape(H // P, W // P, P, P, -1)
    return torch.einsum("rcuvk->rucvk", grid).reshape(H, W, -1)


def conv_weight_to_linear(W_conv):
    weight = torch.nn.Parameter(torch.as_tensor(W_conv))
    return weight.permute(2, 3, 1, 0).flatten(0, 2)


def patch_embed_conv(img_chw, W_conv, b):
    img, weight, bias = (torch.as_tensor(x) for x in (img_chw, W_conv, b))
    maps = torch.nn.functional.conv2d(img[None], weight, bias, stride=weight.shape[-1])[0]
    return maps.flatten(1).T
