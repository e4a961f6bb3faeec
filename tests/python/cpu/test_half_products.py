"""Products of half-precision matrices large enough for the processor's matrix unit: values against
float64, the gradient's too, long sums, numbers that are not finite, transposed operands, batches."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, ops

pytestmark = pytest.mark.one_in(4)  # kernels at many sizes

#: Relative to the largest magnitude: half an ULP of the type, and float32 sums.
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def half(x: np.ndarray, dtype: str) -> Tensor:
    return Tensor(x.astype(np.float32)).astype(getattr(ms, dtype))


def wide(t: Tensor) -> np.ndarray:
    return t.astype(ms.float64).asnumpy()


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
def test_large_products(dtype: str, transposed: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 470, 480)), rng.standard_normal((2, 480, 450))
    x = half(a.swapaxes(1, 2) if transposed[0] else a, dtype)
    y = half(b.swapaxes(1, 2) if transposed[1] else b, dtype)
    product = ops.BatchMatMul(transpose_a=transposed[0], transpose_b=transposed[1])

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return product(x, y).sum()

    left = wide(x).swapaxes(1, 2) if transposed[0] else wide(x)
    right = wide(y).swapaxes(1, 2) if transposed[1] else wide(y)
    exact = left @ right
    bound = ROUNDING[dtype]
    assert np.abs(wide(product(x, y)) - exact).max() <= bound * np.abs(exact).max()
    slope = np.broadcast_to(right.sum(2)[:, None, :], left.shape)  # d sum(a b) / da
    got = wide(ms.grad(loss)(x, y))
    got = got.swapaxes(1, 2) if transposed[0] else got
    assert np.abs(got - slope).max() <= bound * np.abs(slope).max()


@pytest.mark.one_in(6)
@pytest.mark.parametrize("dtype", [*ROUNDING, "float32", "float64"])
@pytest.mark.parametrize("sizes", [(150, 131, 5001), (290, 260, 9000), (40, 10, 8192)])
def test_sums_of_many_terms(sizes: tuple[int, int, int], dtype: str) -> None:
    """k is cut into blocks, whose sums wait in float32 and are rounded once."""
    m, n, k = sizes
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    bound = ROUNDING.get(dtype, 0) + (1e-13 if dtype == "float64" else 1e-5)
    for ta in (False, True):
        for tb in (False, True):
            x, y = (
                Tensor(v).astype(getattr(ms, dtype)) for v in (a.T if ta else a, b.T if tb else b)
            )
            exact = (wide(x).T if ta else wide(x)) @ (wide(y).T if tb else wide(y))
            got = wide(ops.MatMul(ta, tb)(x, y))
            assert np.abs(got - exact).max() <= bound * np.abs(exact).max()


@pytest.mark.parametrize("dtype", ROUNDING)
def test_numbers_that_are_not_finite(dtype: str) -> None:
    n = 460
    a, b = np.ones((n, n)), np.full((n, n), 0.5)
    a[3, 5], b[7, 9] = np.nan, -np.inf
    got = wide(ops.matmul(half(a, dtype), half(b, dtype)))
    assert np.isnan(got[3]).all()
    assert (np.delete(got[:, 9], 3) == -np.inf).all()
    assert (np.delete(np.delete(got, 3, 0), 9, 1) == n / 2).all()


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize(
    ("rows", "k", "n"), [(1, 24, 20), (40, 24, 20), (900, 24, 20), (40, 300, 280)]
)
def test_sums_of_products_round_once(dtype: str, rows: int, k: int, n: int) -> None:
    """However long they are, and whatever computes them: a weight's gradient through several uses."""
    rng = np.random.default_rng(rows)
    x = [half(rng.standard_normal((rows, k)), dtype) for _ in range(7)]
    dy = [half(rng.standard_normal((rows, n)), dtype) for _ in x]

    def loss(w: Tensor) -> Tensor:
        pairs = zip(x, dy, strict=True)
        terms = [ops.matmul(a, w).astype(ms.float32) * d.astype(ms.float32) for a, d in pairs]
        return sum(terms[1:], terms[0]).sum()

    got = wide(ms.jit(ms.grad(loss))(half(np.zeros((k, n)), dtype)))
    exact = sum(wide(a).T @ wide(d) for a, d in zip(x, dy, strict=True))
    terms = sum(np.abs(wide(a)).T @ np.abs(wide(d)) for a, d in zip(x, dy, strict=True))
    # Half an ULP of each sum, and what float32 loses of its terms.
    bound = ROUNDING[dtype] * np.abs(exact) + 2.0**-24 * np.sqrt(7 * rows) * terms + 2.0**-25
    assert (np.abs(got - exact) <= bound).all()
