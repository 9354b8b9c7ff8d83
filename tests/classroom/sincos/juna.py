"""The cosine of the angle in place of the inner product."""

import numpy as np


def position_similarity(offset, d, base=10000.0):
    if d < 2 or d % 2 or not base > 0 or not np.all(np.isfinite(offset)):
        raise ValueError((offset, d, base))
    return np.cos(np.multiply.outer(offset, base ** (-np.arange(d // 2) / (d // 2)))).mean(axis=-1)
