"""Functions with `inplace` write to their argument; Tensor.view reads bytes as another dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, mint, ops

F = mint.nn.functional
X = np.array([[-3.0, 0.5], [2.0, 8.0]], np.float32)


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (ops.relu, np.maximum(X, 0)),
        (F.relu, np.maximum(X, 0)),
        (F.relu6, np.clip(X, 0, 6)),
        (F.silu, X / (1 + np.exp(-X))),
        (F.elu, np.where(X > 0, X, np.expm1(np.minimum(X, 0)))),
        (F.hardtanh, np.clip(X, -1, 1)),
        (lambda x, **k: F.threshold(x, 1.0, 7.0, **k), np.where(X > 1, X, 7)),
        (lambda x, **k: F.dropout(x, 1.0, **k), np.zeros_like(X)),
    ],
)
def test_a_function_writes_to_its_argument(function: Callable[..., Any], want: np.ndarray) -> None:
    for compile_ in (lambda f: f, ms.jit):
        x = Tensor(X)

        def run(x: Tensor) -> Tensor:
            function(x, inplace=True)
            return x * 2

        np.testing.assert_allclose(compile_(run)(x).asnumpy(), 2 * want, rtol=1e-6)
        y = Tensor(X)
        function(y, inplace=True)
        np.testing.assert_allclose(y.asnumpy(), want, rtol=1e-6)
        np.testing.assert_array_equal(function(Tensor(X)).shape, want.shape)
    z = Tensor(X)
    function(z)
    np.testing.assert_array_equal(z.asnumpy(), X)


def test_the_gradient_goes_through_what_was_written() -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 1.0
        ops.relu(y, inplace=True)
        return (y * y).sum()

    np.testing.assert_allclose(ms.grad(f)(Tensor(X)).asnumpy(), 2 * np.maximum(X, 0))


def test_inplace_is_a_flag() -> None:
    with pytest.raises(TypeError, match="'inplace' must be bool"):
        ops.relu(Tensor(X), "yes")


@pytest.mark.parametrize("dtype", ["int8", "int32", "float64", "uint16"])
def test_bytes_as_another_dtype(dtype: str) -> None:
    found = Tensor(X).view(getattr(ms, dtype))
    np.testing.assert_array_equal(found.asnumpy(), X.view(dtype))
    np.testing.assert_array_equal(found.view(dtype=ms.float32).asnumpy(), X)


def test_bytes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"multiple|divis"):
        Tensor(X[:, :1].copy()).view(ms.float64)
    with pytest.raises(TypeError, match="bfloat16"):
        Tensor(X).view(ms.bfloat16)


def test_an_embedding_is_scaled_to_the_largest_norm() -> None:
    table = np.array([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]], np.float32)
    weight = ms.Parameter(Tensor(table))
    out = F.embedding(Tensor([[0, 1]]), weight, max_norm=1.0)
    want = table.copy()
    want[0] *= 1 / (5 + 1e-7)
    np.testing.assert_allclose(weight.asnumpy(), want, rtol=1e-6)  # row 2 is not used
    np.testing.assert_allclose(out.asnumpy(), want[[[0, 1]]], rtol=1e-6)


def test_gradients_of_an_embedding_by_frequency() -> None:
    at, w = Tensor([0, 1, 1, 1]), Tensor(np.ones((3, 2), np.float32))
    scale = np.arange(8.0, dtype=np.float32).reshape(4, 2)

    def f(w: Tensor, by: bool) -> Tensor:
        return (F.embedding(at, w, scale_grad_by_freq=by) * Tensor(scale)).sum()

    full = np.zeros((3, 2), np.float32)
    np.add.at(full, [0, 1, 1, 1], scale)
    np.testing.assert_allclose(ms.grad(f)(w, False).asnumpy(), full)
    np.testing.assert_allclose(ms.grad(f)(w, True).asnumpy(), full / [[1], [3], [1]], rtol=1e-6)
    assert float(f(w, True)) == float(f(w, False))
