"""Comparisons of images in NumPy, window by window."""

from __future__ import annotations

import numpy as np


def ssim(x, y, size, sigma, largest=1.0, k1=0.01, k2=0.03):
    """(similarity, contrast and structure), means over one channel, window by window."""
    at = np.arange(size) - (size - 1) / 2 if size % 2 else np.arange(-size // 2 + 1, size // 2 + 1)
    bell = np.exp(-(at**2) / (2 * sigma**2))
    window = np.outer(bell, bell) / np.outer(bell, bell).sum()
    c1, c2 = (k1 * largest) ** 2, (k2 * largest) ** 2
    # [rows, columns, size, size]: every window at once.
    a, b = (np.lib.stride_tricks.sliding_window_view(v, (size, size)) for v in (x, y))

    def mean(values):
        return (window * values).sum((2, 3))

    ma, mb = mean(a), mean(b)
    a, b = a - ma[..., None, None], b - mb[..., None, None]
    cs = (2 * mean(a * b) + c2) / (mean(a**2) + mean(b**2) + c2)
    similarity = cs * (2 * ma * mb + c1) / (ma**2 + mb**2 + c1)
    return np.array([similarity.mean(), cs.mean()])


def halved(x):
    """Means of two by two neighbours."""
    return x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2).mean((1, 3))
