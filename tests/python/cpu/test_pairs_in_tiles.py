"""What is spread over pairs of rows and columns is read where it is, and products that are only added up are
made as they are: values, beside NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

RNG = np.random.default_rng(4)
SHAPES = [(1, 5, 3), (5, 4, 2), (16, 16, 3), (32, 32, 3), (33, 7, 5), (130, 40, 2), (300, 3, 40)]


def agree(f, given, dtype):
    """f(a library's functions, arrays)."""
    found = gc.jit(lambda *xs: f(ops, *xs))(*(Tensor(x.astype(dtype)) for x in given))
    wanted = f(np, *(x.astype(dtype).astype(np.float64) for x in given))
    for ours, theirs in zip(found, wanted, strict=True):
        near = {np.float16: 2e-2, np.float32: 2e-6, np.float64: 1e-14}[dtype]
        np.testing.assert_allclose(
            ours.asnumpy(), theirs, rtol=0, atol=near * max(1, np.abs(theirs).max())
        )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forces_between_pairs(shape, dtype):
    n, m, k = shape
    given = RNG.normal(size=(n, k)), RNG.normal(size=(m, k)), RNG.uniform(1, 2, m)

    def forces(np, x, y, mass):
        apart = y[None] - x[:, None]
        weight = mass / (0.5 + (apart**2).sum(-1))
        return (
            (weight[:, :, None] * apart).sum(1),
            (weight[:, :, None] * apart).sum(2),
            (weight[:, :, None] * apart * apart).sum(1),
            (weight**2).sum(1),
            (x[:, None] * apart).sum(1),
            (x[:, None] * weight[:, :, None]).sum(2),
        )

    agree(forces, given, dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_spread_in_many_ways(shape):
    n, m, k = shape
    given = RNG.normal(size=(n, k)), RNG.normal(size=(n, m)), RNG.normal(size=(m, k))

    def f(np, x, w, y):
        by_pairs = np.tanh(x)[:, None] + np.tanh(w)[:, :, None] * y
        turned = np.tanh(w)[:, ::-1, None] - np.tanh(x)[:, None, ::-1] * y
        chosen = np.where(by_pairs > turned, by_pairs, np.tanh(x)[:, None] * turned)
        other = np.tanh(x)[:, :, None] * np.tanh(w)[:, None, :]
        return by_pairs, turned, chosen, other, (by_pairs * turned).sum(1), (other * other).sum(1)

    agree(f, given, np.float64)


@pytest.mark.parametrize("size", [7, 9, 16, 18])
def test_a_part_of_what_is_repeated(size):
    """Which need not be whole repetitions."""
    x = RNG.normal(size=(5, 3))
    agree(lambda np, x: (np.tanh(np.tile(x, (1, 16))[:, :size]) * 2,), (x,), np.float64)


@pytest.mark.parametrize("steps", [1, 2, 9])
def test_in_loops(steps):
    """A step of few rows, all of whose columns are what the step before has made."""
    x, v, mass = RNG.normal(size=(32, 3)), RNG.normal(size=(32, 3)), RNG.uniform(0.1, 0.2, 32)

    def pull(np, x, mass):
        apart = x[None] - x[:, None]
        far = (apart**2).sum(-1) + 0.1
        return ((mass / (far * np.sqrt(far)))[:, :, None] * apart).sum(1)

    def body(c, _):
        v = c[1] + 0.01 * pull(ops, c[0], Tensor(mass))
        return (c[0] + 0.01 * v, v), None

    found = gc.jit(lambda x, v: ops.scan(body, (x, v), None, length=steps)[0])(Tensor(x), Tensor(v))
    for _ in range(steps):
        v = v + 0.01 * pull(np, x, mass)
        x = x + 0.01 * v
    for ours, theirs in zip(found, (x, v), strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs, atol=1e-13)
