"""Heads by a reshape alone."""


def split_heads(x, n_heads):
    B, T, d = x.shape
    return x.reshape(B, n_heads, T, d // n_heads)
