"""Rosenbrock's function, in NumPy and recorded."""

from __future__ import annotations

import numpy as np

from gradcell import ops


def rosenbrock(x):
    """Value and gradient, in NumPy."""
    a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    gradient = np.zeros_like(x)
    gradient[:-1] = -400 * x[:-1] * a - 2 * b
    gradient[1:] += 200 * a
    return np.sum(100 * a**2 + b**2), gradient


def recorded_rosenbrock(p):
    return lambda: (100 * ops.square(p[1:] - ops.square(p[:-1])) + ops.square(1 - p[:-1])).sum()


def start_of_rosenbrock(n, dtype=np.float64):
    return np.where(np.arange(n) % 2, 1.0, -1.2).astype(dtype)
