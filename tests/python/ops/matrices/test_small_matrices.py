"""Factorisations of matrices of few rows, which LAPACK does not compute, beside NumPy; and of the first
that it does."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

SIZES = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 18]


def matrices(n: int, kind: str, scale: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((5, n, n))
    if kind == "complex":
        a = a + 1j * rng.standard_normal((5, n, n))
    return a * scale


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("n", SIZES)
def test_beside_numpy(n, kind):
    a = matrices(n, kind)
    b = matrices(n, kind)[:, :, : max(1, n // 2)] + 1
    x = Tensor(a)
    np.testing.assert_allclose(ops.det(x).asnumpy(), np.linalg.det(a), rtol=1e-10)
    np.testing.assert_allclose(ops.inverse(x).asnumpy(), np.linalg.inv(a), rtol=1e-8, atol=1e-10)
    found = ops.matrix_solve(x, Tensor(b)).asnumpy()
    np.testing.assert_allclose(found, np.linalg.solve(a, b), rtol=1e-8, atol=1e-10)
    turned = ops.matrix_solve(x, Tensor(b), adjoint=True).asnumpy()
    wanted = np.linalg.solve(np.conj(a.swapaxes(1, 2)), b)
    np.testing.assert_allclose(turned, wanted, rtol=1e-8, atol=1e-10)
    if kind == "real":
        sign, size = ops.slogdet(x)
        wanted_sign, wanted_size = np.linalg.slogdet(a)
        np.testing.assert_array_equal(sign.asnumpy(), wanted_sign)
        np.testing.assert_allclose(size.asnumpy(), wanted_size, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-120, 1e120, 1e300])
@pytest.mark.parametrize("n", [1, 4, 16, 17])
def test_far_from_one(n, scale):
    """The determinant leaves the range, its logarithm does not."""
    a = matrices(n, "real", scale)
    sign, size = ops.slogdet(Tensor(a))
    wanted_sign, wanted = np.linalg.slogdet(a)
    np.testing.assert_array_equal(sign.asnumpy(), wanted_sign)
    np.testing.assert_allclose(size.asnumpy(), wanted, rtol=1e-12)
    mixed = np.diag([scale, 1 / scale] * 4) @ np.eye(8)[::-1]
    np.testing.assert_allclose(ops.det(Tensor(mixed)).asnumpy(), 1.0, rtol=1e-12)
    back = ops.inverse(Tensor(a[0])).asnumpy() @ a[0]
    np.testing.assert_allclose(back, np.eye(n), atol=1e-9)


@pytest.mark.parametrize("n", [1, 4, 16, 17])
def test_singular_and_not_finite(n):
    a = matrices(n, "real")[0]
    a[:, -1] = 0
    sign, size = ops.slogdet(Tensor(a))
    assert (float(sign), float(size)) == (0.0, -np.inf)
    if n > 3:
        assert float(ops.det(Tensor(a))) == 0
    with pytest.raises(ValueError, match="Singular matrix"):
        ops.inverse(Tensor(a))
    with pytest.raises(ValueError, match="Singular matrix"):
        ops.matrix_solve(Tensor(a), Tensor(np.ones((n, 1))))
    a = matrices(n, "real")[0]
    a[0, 0] = np.nan
    assert np.isnan(float(ops.det(Tensor(a))))
    assert np.isnan(ops.inverse(Tensor(a)).asnumpy()).any()


def test_denormal_pivots():
    """1 / pivot is not a number there, what is divided by it is."""
    a = np.array([[1e-310, 1e-310, 0, 0], [0, 1e-310, 0, 0], [5e-311, 0, 1, 0], [0, 0, 0, 1.0]])
    sign, size = ops.slogdet(Tensor(a))
    wanted_sign, wanted = np.linalg.slogdet(a)
    assert float(sign) == wanted_sign
    np.testing.assert_allclose(float(size), wanted, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 4, 16, 17])
def test_gradients(n):
    a = matrices(n, "real") + 3 * np.eye(n)
    found = gc.grad(lambda x: ops.slogdet(x)[1].sum())(Tensor(a)).asnumpy()
    np.testing.assert_allclose(found, np.linalg.inv(a).swapaxes(1, 2), rtol=1e-8, atol=1e-10)
    found = gc.grad(lambda x: ops.det(x).sum())(Tensor(a)).asnumpy()
    wanted = np.linalg.det(a)[:, None, None] * np.linalg.inv(a).swapaxes(1, 2)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8 * abs(wanted).max())
