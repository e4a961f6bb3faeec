"""Products of a vector with a matrix that stands in memory: a call reads it as it lies, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

pytestmark = pytest.mark.one_in(4)  # kernels at many sizes

ROWS, COLUMNS = 300, 520
RNG = np.random.default_rng(0)
X = RNG.standard_normal((ROWS, COLUMNS))
Y = RNG.standard_normal((ROWS, 1))
W = RNG.standard_normal((COLUMNS, 1)) / 20


def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ops.mean((ops.tanh(ops.matmul(x, w)) - y) ** 2)


def of_joined(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The matrix is the result of a call."""
    return loss(w, ops.concat((x[100:], x[:100])), ops.concat((y[100:], y[:100])))


def slope() -> np.ndarray:
    t = np.tanh(X @ W)
    return X.T @ (2 / ROWS * (t - Y) * (1 - t * t))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [loss, of_joined])
def test_gradients_by_a_vector(function: Any, dtype: str) -> None:
    arguments = [Tensor(a.astype(dtype)) for a in (W, X, Y)]
    got = gc.jit(gc.grad(function, 0))(*arguments).asnumpy()
    bound = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(got, slope(), rtol=0, atol=bound * np.abs(slope()).max())


@pytest.mark.parametrize("function", [loss, of_joined])
def test_no_region_multiplies_with_the_matrix(function: Any) -> None:
    arguments = [Tensor(a.astype(np.float32)) for a in (W, X, Y)]
    lines = gc.plan_text(gc.grad(function, 0), *arguments).splitlines()
    products = [line for line in lines if "matmul" in line.lower() or "weight_grad" in line.lower()]
    assert len(products) == 2 and all("call" in line for line in products), products


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows, columns", [(1, 300), (77, 2571), (75, 257), (40, 255), (300, 1024)])
def test_rows_of_any_length_are_added_up(rows: int, columns: int, dtype: str) -> None:
    rng = np.random.default_rng(1)
    matrix, vector = rng.standard_normal((rows, columns)), rng.standard_normal((rows, 1))
    given = [Tensor(a.astype(dtype)) for a in (matrix, vector)]
    matrix, vector = (t.asnumpy().astype(np.float64) for t in given)
    run = gc.jit(lambda a, x: ops.matmul(a.T, x))
    first = run(*given).asnumpy().copy()
    bound = np.finfo(dtype).eps * rows * (np.abs(matrix).T @ np.abs(vector))
    assert (np.abs(first - matrix.T @ vector) <= bound).all()
    for threads in (1, 2, 3):
        gc.set_context(max_threads=threads)
        try:
            np.testing.assert_array_equal(run(*given).asnumpy(), first)
        finally:
            gc.set_context(max_threads=None)
