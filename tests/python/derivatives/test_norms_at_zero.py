"""Norms have a kink at 0, where derivatives are taken to be 0: a distance from itself has a gradient."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, mint, nn, numpy as gnp, ops

X = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, -2.0]])

NORMS = {
    "ops.norm": lambda x: ops.norm(x, dim=-1),
    "ops.vector_norm": lambda x: ops.vector_norm(x, axis=-1),
    "ops.vector_norm, 3": lambda x: ops.vector_norm(x, 3, axis=-1),
    "ops.norm, fro": lambda x: ops.norm(x[:, None], "fro", (1, 2)),
    "ops.LpNorm": ops.LpNorm(-1, 2),
    "mint.norm": lambda x: mint.norm(x, dim=-1),
    "numpy.norm": lambda x: gnp.norm(x, axis=-1),
    "nn.Norm": nn.Norm(-1),
    "ops.cdist": lambda x: ops.cdist(x[:, None], ops.zeros_like(x)[:, None]).sum((1, 2)),
}


def slopes(order: float) -> np.ndarray:
    size = (np.abs(X) ** order).sum(1, keepdims=True) ** (1 / order)
    return np.sign(X) * (np.abs(X) / np.where(size == 0, 1, size)) ** (order - 1)


@pytest.mark.parametrize("name", NORMS)
def test_the_gradient_at_zero_is_zero(name: str) -> None:
    norm, x = NORMS[name], Tensor(X)
    np.testing.assert_allclose(norm(x).asnumpy()[0], 0)
    want = slopes(3 if "3" in name else 2)
    np.testing.assert_allclose(gc.grad(lambda t: norm(t).sum())(x).asnumpy(), want, atol=1e-12)
    np.testing.assert_allclose(
        gc.jvp(norm, x, ops.ones_like(x))[1].asnumpy(), want.sum(1), atol=1e-12
    )
    second = gc.hessian(lambda t: norm(t)[0])(x).asnumpy()
    np.testing.assert_array_equal(second, np.zeros_like(second))
    assert np.isfinite(gc.hessian(lambda t: norm(t).sum())(x).asnumpy()).all()


def test_nan_stays() -> None:
    assert np.isnan(ops.norm(Tensor([0.0, np.nan])).asnumpy())
    assert np.isposinf(ops.norm(Tensor([0.0, np.inf])).asnumpy())
    zero = ops.vector_norm(Tensor([0.0, 2.0]), -1)  # 1 / (1 / 0 + 1 / 2)
    assert float(zero) == 0


def test_distances_of_all_points_from_each_other() -> None:
    points = np.random.default_rng(0).standard_normal((6, 3))
    found = gc.grad(lambda p: (ops.cdist(p, p) ** 2).sum())(Tensor(points)).asnumpy()
    np.testing.assert_allclose(found, 4 * (6 * points - points.sum(0)), rtol=1e-12)
