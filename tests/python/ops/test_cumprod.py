"""CumProd where elements are zero: derivatives are those of a polynomial, of every order.

A product is linear in each of its factors, so differences over any step are exact.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from structured_rows import numpy_cumprod

import gradcell as ms
from gradcell import Tensor, ops

RNG = np.random.default_rng(0)
ZEROS = RNG.normal(size=(3, 5))
ZEROS[[0, 0, 1], [1, 3, 2]] = 0
WEIGHTS, DIRECTION = RNG.normal(size=(2, 3, 5))


def partials(f: Any, x: np.ndarray) -> np.ndarray:
    """The derivatives of a function that is linear in each element alone."""
    out = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[at] = 1
        out[at] = (f(x + step) - f(x - step)) / 2
    return out


@pytest.mark.parametrize(
    ("axis", "exclusive", "reverse"), list(itertools.product((0, 1), (False, True), (False, True)))
)
def test_derivatives_at_zeros(axis: int, exclusive: bool, reverse: bool) -> None:
    op = ops.CumProd(exclusive, reverse)

    def reference(x: np.ndarray) -> float:
        return float((numpy_cumprod(x, axis, exclusive, reverse) * WEIGHTS).sum())

    def value(x: Tensor) -> Tensor:
        return (op(x, axis) * Tensor(WEIGHTS)).sum()

    def along(x: Tensor) -> Tensor:
        return (ms.grad(value)(x) * Tensor(DIRECTION)).sum()

    x = Tensor(ZEROS)
    np.testing.assert_allclose(ms.grad(value)(x).asnumpy(), partials(reference, ZEROS), atol=1e-14)
    _, tangent = ms.jvp(value, x, Tensor(DIRECTION))
    expected = (partials(reference, ZEROS) * DIRECTION).sum()
    np.testing.assert_allclose(tangent.asnumpy(), expected, atol=1e-13)

    def reference_along(x: np.ndarray) -> float:
        return float((partials(reference, x) * DIRECTION).sum())

    second = ms.grad(along)(x).asnumpy()
    np.testing.assert_allclose(second, partials(reference_along, ZEROS), atol=1e-12)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 33, 70])
@pytest.mark.parametrize(("exclusive", "reverse"), list(itertools.product((False, True), repeat=2)))
def test_derivatives_along_longer_axes(n: int, exclusive: bool, reverse: bool) -> None:
    """They recur by blocks, whose ends recur in turn."""
    rng = np.random.default_rng(n)
    factors = rng.normal(1.0, 0.3, size=(n, 2))
    factors[rng.integers(0, n, 2), [0, 1]] = 0
    weights, direction = rng.normal(size=(2, n, 2))
    op = ops.CumProd(exclusive, reverse)

    def reference(x: np.ndarray) -> float:
        return float((numpy_cumprod(x, 0, exclusive, reverse) * weights).sum())

    def value(x: Tensor) -> Tensor:
        return (op(x, 0) * Tensor(weights)).sum()

    x = Tensor(factors)
    expected = partials(reference, factors)
    np.testing.assert_allclose(ms.grad(value)(x).asnumpy(), expected, rtol=1e-9, atol=1e-11)
    _, tangent = ms.jvp(value, x, Tensor(direction))
    np.testing.assert_allclose(tangent.asnumpy(), (expected * direction).sum(), rtol=1e-9)
    if n > 33:
        return

    def reference_along(x: np.ndarray) -> float:
        return float((partials(reference, x) * direction).sum())

    second = ms.grad(lambda x: (ms.grad(value)(x) * Tensor(direction)).sum())(x).asnumpy()
    np.testing.assert_allclose(second, partials(reference_along, factors), rtol=1e-8, atol=1e-9)


def test_a_scalar_and_an_axis_that_is_not_there() -> None:
    assert ops.cumprod(Tensor(3.0), 0).item() == 3
    with pytest.raises(ValueError, match=r"cumprod.*dim.*2 dimensions"):
        ops.cumprod(Tensor(ZEROS), 2)
    with pytest.raises(ValueError, match="CumProd: axis 2 is out of range"):
        ops.CumProd()(Tensor(ZEROS), 2)
