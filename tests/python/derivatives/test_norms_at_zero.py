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


GAUSSIANS = {
    "norm": lambda x: ops.norm(x) ** 2,
    "vector_norm": lambda x: ops.square(ops.vector_norm(x)),
    "cdist": lambda x: (ops.cdist(x[None], ops.zeros_like(x)[None]) ** 2).sum(),
    "hypot": lambda x: ops.square(ops.hypot(x[0], x[1])),
    "complex": lambda x: ops.real(ops.square(ops.abs(ops.Complex()(x[0], x[1])))),
}


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussians_of_lengths(name: str) -> None:
    """exp(-|x|^2 / 2) is smooth, with minus the identity as its Hessian at 0."""
    square = GAUSSIANS[name]
    hessian = gc.hessian(lambda x: ops.exp(square(x) * -0.5))
    np.testing.assert_array_equal(hessian(Tensor([0.0, 0.0], gc.float64)).asnumpy(), -np.eye(2))
    x = np.array([0.3, -0.4])
    want = np.exp(-0.125) * (np.outer(x, x) - np.eye(2))
    np.testing.assert_allclose(hessian(Tensor(x)).asnumpy(), want, rtol=1e-13)


def test_spread_of_equal_elements() -> None:
    x = Tensor([2.0, 2.0, 2.0], gc.float64)
    for f in (ops.std, gnp.nanstd, lambda x: ops.std_mean(x)[0], lambda x: ops.std(x, ddof=1)):
        np.testing.assert_array_equal(gc.grad(lambda x, f=f: f(x).sum())(x).asnumpy(), np.zeros(3))
        np.testing.assert_array_equal(
            gc.hessian(lambda x, f=f: f(x).sum())(x).asnumpy(), np.zeros((3, 3))
        )


def test_norms_of_low_order_at_a_zero_element() -> None:
    """As PyTorch has them: the others' slopes are (sum |x|^p)^(1/p - 1) |x|^(p - 1)."""
    x = Tensor([0.0, 2.0, 3.0], gc.float64)
    roots = 2**0.5 + 3**0.5
    got = gc.grad(lambda x: ops.vector_norm(x, 0.5))(x).asnumpy()
    np.testing.assert_allclose(got, [0.0, roots / 2**0.5, roots / 3**0.5], rtol=1e-14)
    assert np.isfinite(gc.hessian(lambda x: ops.vector_norm(x, 1.5))(x).asnumpy()).all()
    assert float(ops.vector_norm(x, -1.0)) == 0.0
