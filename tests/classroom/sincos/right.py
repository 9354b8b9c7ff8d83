"""Everything right, by complex numbers, one exponential for sine and cosine."""

import numpy as np
from scipy.linalg import block_diag


def _turns(offset, d, base):
    """exp(i offset omega_k), shape (..., d / 2)."""
    if d < 2 or d % 2 or not base > 0 or not np.all(np.isfinite(offset)):
        raise ValueError((offset, d, base))
    return np.exp(1j * np.multiply.outer(offset, base ** (-np.arange(d // 2) / (d // 2))))


def sincos_1d(positions, d, base=10000.0):
    turns = _turns(positions, d, base)
    return np.stack([turns.imag, turns.real], axis=-1).reshape(*np.shape(positions), d)


def offset_rotation(offset, d, base=10000.0):
    return block_diag(*[[[z.real, z.imag], [-z.imag, z.real]] for z in _turns(float(offset), d, base)])


def position_similarity(offset, d, base=10000.0):
    return _turns(offset, d, base).real.sum(axis=-1)


def position_angle(offset, d, base=10000.0):
    return np.arccos(np.clip(_turns(offset, d, base).real.mean(axis=-1), -1, 1))
