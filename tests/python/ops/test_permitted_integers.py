"""Integers divided by zero or raised to negative powers: an error in plain calls, in compiled ones and in
every transform alike, and never a number."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

GOOD, BAD = np.array([2, 3, 1]), np.array([2, 0, 1])
X = np.array([7, -7, 9])
OPS = {
    "floor division": (lambda x, y: x // y, GOOD, BAD, "FloorDiv: integer division by zero"),
    "remainder": (lambda x, y: x % y, GOOD, BAD, "Mod: integer division by zero"),
    "power": (lambda x, y: x**y, GOOD, -GOOD, "Pow: integers to negative powers"),
}
TRANSFORMS = {
    "plain": lambda f: f,
    "jit": gc.jit,
    "vmap": gc.vmap,
    "jit of vmap": lambda f: gc.jit(gc.vmap(f)),
    "vmap by one": lambda f: lambda x, y: gc.vmap(f, (0, None))(ops.stack([x, x]), y)[0],
    "value_and_grad": lambda f: lambda x, y: gc.value_and_grad(f)(x, y)[0],
    "recompute": lambda f: lambda x, y: gc.recompute(f, x, y),
}


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", OPS)
def test_alike(name, transform, dtype):
    fn, good, bad, message = OPS[name]
    f = TRANSFORMS[transform](fn)
    x, y = X.astype(dtype), good.astype(dtype)
    wanted = {"floor division": x // y, "remainder": x % y, "power": x**y}[name]
    for _ in range(2):
        found = f(Tensor(x), Tensor(y))
        np.testing.assert_array_equal(found.asnumpy(), wanted)
        assert found.dtype == Tensor(x).dtype
        with pytest.raises(ValueError, match=message):
            f(Tensor(x), Tensor(bad.astype(dtype)))


def test_unused_results_fail_nothing():
    """As in plain code, where nothing is computed that nobody asks for."""
    f = gc.jit(lambda x, y: (x // y, x + y)[1])
    np.testing.assert_array_equal(f(Tensor(X), Tensor(BAD)).asnumpy(), X + BAD)


def test_numbers_made_inside_are_known():
    with pytest.raises(ValueError, match="integer division by zero"):
        gc.jit(lambda x: x // 0)(Tensor(X))
    with pytest.raises(ValueError, match="integer division by zero"):
        gc.jit(lambda x: x // Tensor(0))(Tensor(X))
    np.testing.assert_array_equal(gc.jit(lambda x: x // Tensor(2))(Tensor(X)).asnumpy(), X // 2)


def test_derivatives_pass():
    x, y = Tensor(X), Tensor(GOOD)
    by_x, by_y = gc.grad(lambda x, y: x % y, (0, 1))(x, y)
    np.testing.assert_array_equal(by_x.asnumpy(), [1, 1, 1])
    np.testing.assert_array_equal(by_y.asnumpy(), -(X // GOOD))
    by_x = gc.jit(gc.grad(lambda x, y: x**y))(x, y)
    np.testing.assert_array_equal(by_x.asnumpy(), GOOD * X ** (GOOD - 1))
