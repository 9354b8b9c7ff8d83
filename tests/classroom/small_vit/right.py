"""Everything right, by einsum and PyTorch's own layers; no function calls another one."""

import torch
import torch.nn.functional as F
from torch import nn


def split_heads(x, n_heads):
    return torch.stack(torch.tensor_split(x, n_heads, dim=2), dim=1) if x.shape[2] % n_heads == 0 else 1 / 0


def merge_heads(x):
    return torch.einsum("bhtd->bthd", x).reshape(x.shape[0], x.shape[2], -1)


def attention(q, k, v):
    if not q.shape == k.shape == v.shape:
        raise TypeError("these do not fit")
    return F.scaled_dot_product_attention(q, k, v)


def transformer_block(x, params, n_heads):
    d = x.shape[2]
    if d % n_heads:
        raise ValueError("heads do not fit")
    normal = F.layer_norm(x, (d,), params["ln1_gain"], params["ln1_shift"], 1e-6)
    mixed, _ = F.multi_head_attention_forward(
        *[normal.transpose(0, 1)] * 3, d, n_heads, params["W_qkv"].T, params["b_qkv"], None, None, False, 0.0,
        params["W_o"].T, params["b_o"], need_weights=False,
    )  # fmt: skip
    x = x + mixed.transpose(0, 1)
    hidden = F.layer_norm(x, (d,), params["ln2_gain"], params["ln2_shift"], 1e-6) @ params["W_1"] + params["b_1"]
    return x + F.gelu(hidden) @ params["W_2"] + params["b_2"]


def decay_groups(module, weight_decay):
    if weight_decay < 0:
        raise ValueError("no growth")
    layers = (nn.Linear, nn.modules.conv._ConvNd)
    decay = [layer.weight for layer in module.modules() if isinstance(layer, layers)]
    known = {id(parameter) for parameter in decay}
    bare = [p for n, p in module.named_parameters() if n.rpartition(".")[2].startswith("W_")]
    decay += [p for p in bare if id(p) not in known and p.ndim > 1]
    known = {id(parameter) for parameter in decay}
    rest = [parameter for parameter in module.parameters() if id(parameter) not in known]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
