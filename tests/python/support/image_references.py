"""Comparisons of images in NumPy, window by window."""

from __future__ import annotations

import itertools

import numpy as np


def ssim(x, y, size, sigma, largest=1.0, k1=0.01, k2=0.03):
    """(similarity, contrast and structure), means over one channel, window by window."""
    at = np.arange(size) - (size - 1) / 2 if size % 2 else np.arange(-size // 2 + 1, size // 2 + 1)
    bell = np.exp(-(at**2) / (2 * sigma**2))
    window = np.outer(bell, bell) / np.outer(bell, bell).sum()
    c1, c2 = (k1 * largest) ** 2, (k2 * largest) ** 2
    found = []
    for i, j in itertools.product(range(x.shape[0] - size + 1), range(x.shape[1] - size + 1)):
        a, b = x[i : i + size, j : j + size], y[i : i + size, j : j + size]
        ma, mb = (window * a).sum(), (window * b).sum()
        va, vb = (window * (a - ma) ** 2).sum(), (window * (b - mb) ** 2).sum()
        cov = (window * (a - ma) * (b - mb)).sum()
        cs = (2 * cov + c2) / (va + vb + c2)
        found.append((cs * (2 * ma * mb + c1) / (ma**2 + mb**2 + c1), cs))
    return np.mean(found, axis=0)


def halved(x):
    """Means of two by two neighbours."""
    return x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2).mean((1, 3))
