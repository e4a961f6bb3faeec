"""What the tests of ops share: tensors, comparisons, derivatives against central differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor


def T(value: Any, dtype: Any = None) -> Tensor:
    return Tensor(np.asarray(value), dtype) if dtype is None else Tensor(value, dtype)


def ramp(*shape: int) -> Tensor:
    return T(np.arange(math.prod(shape), dtype=np.float32).reshape(shape))


def close(actual: Tensor, expected: Any, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    assert tuple(actual.shape) == np.shape(expected)
    np.testing.assert_allclose(actual.asnumpy(), expected, rtol=rtol, atol=atol)


def of(a: Any, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.asarray(a, dtype))


def all_close(got: Any, want: Any, tolerance: float = 1e-6) -> None:
    """Of tensors, or tuples and lists of them."""
    if isinstance(got, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            all_close(g, w, tolerance)
    else:
        np.testing.assert_allclose(got.asnumpy(), want, rtol=tolerance, atol=tolerance)


def check_derivatives(fn: Callable[[Tensor], Tensor], x: np.ndarray, order: int = 3) -> None:
    """Each derivative of sum(w * fn(x)) along a fixed direction against central differences."""
    rng = np.random.default_rng(1)
    v = T(rng.uniform(-1.0, 1.0, x.shape))
    w = T(rng.uniform(0.5, 1.5, fn(T(x)).shape))

    def level(n: int) -> Callable[[Tensor], Tensor]:
        if n == 0:
            return lambda t: (fn(t) * w).sum()
        below = ms.grad(level(n - 1))
        return lambda t: (below(t) * v).sum()

    h = 1e-5
    for n in range(1, order + 1):
        f = level(n - 1)
        step = h * v.asnumpy()
        numeric = (float(f(T(x + step))) - float(f(T(x - step)))) / (2 * h)
        exact = float(level(n)(T(x)))
        assert exact == pytest.approx(numeric, rel=2e-6, abs=2e-7), f"derivative {n}"
