"""Derivatives of tanh(x) sin(x), nested to any order, against exact ones.

Each order differentiates the graph of the one before; common parts are shared, so the graph grows
slowly.

    python high_order.py --order 10
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.polynomial import Polynomial

import gradcell as gc
from gradcell import ops


def function(x):
    return ops.tanh(x) * ops.sin(x)


def nth_derivative(f, order: int):
    for _ in range(order):
        f = gc.grad(f)
    return f


def exact(x: np.ndarray, order: int) -> np.ndarray:
    """By Leibniz' rule. The derivatives of tanh are polynomials in it: p' = (1 - y^2) dp/dy."""
    y, p = np.tanh(x), Polynomial([0.0, 1.0])
    total, choose = np.zeros_like(x), 1
    for k in range(order + 1):
        total += choose * p(y) * np.sin(x + (order - k) * np.pi / 2)
        p = p.deriv() * Polynomial([1.0, 0.0, -1.0])
        choose = choose * (order - k) // (k + 1)
    return total


def largest_error(order: int, points: int = 10_000) -> float:
    """Relative to the derivative's largest magnitude, in float64 on [-3, 3]."""
    x = np.linspace(-3, 3, points)
    want = exact(x, order)
    got = nth_derivative(function, order)(gc.Tensor(x)).asnumpy()
    return float(np.abs(got - want).max() / np.abs(want).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--order", type=int, default=10)
    x = gc.Tensor(np.linspace(-3, 3, 10_000))
    print("order   nodes   first call       error")
    for order in range(1, parser.parse_args().order + 1):
        derivative = nth_derivative(function, order)
        start = time.perf_counter()
        derivative(x)
        first = time.perf_counter() - start
        nodes = gc.graph_text(derivative, x).count(" = ")
        print(f"{order:5d} {nodes:7d} {1e3 * first:9.1f} ms   {largest_error(order):9.1e}")


if __name__ == "__main__":
    main()
