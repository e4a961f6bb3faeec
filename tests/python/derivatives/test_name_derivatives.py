"""Derivatives of composed ops against finite differences, to order 3, in both modes; and values against
NumPy where MindSpore's CPU has no kernel."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from check_grads import check_grads

import gradcell as gc
from gradcell import Tensor, ops

RNG = np.random.default_rng(7)
X = RNG.uniform(0.2, 0.9, (3, 4))
Y = RNG.uniform(0.2, 0.9, (3, 4))
SQUARE = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
LARGE = RNG.normal(size=(5, 5)) + 4 * np.eye(5)
IMAGE = RNG.normal(size=(1, 2, 5, 6))


def positive(x):
    """A symmetric positive definite matrix."""
    return ops.matmul(x, x.T) + ops.eye(x.shape[0], x.shape[0], gc.float64)


ROWS = {
    "cumprod": (lambda x: ops.cumprod(x, 1), X),
    "cumprod reversed": (lambda x: ops.CumProd(True, True)(x, 0), X),
    "cummax": (lambda x: ops.cummax(x, 1)[0], X),
    "cummin": (lambda x: ops.cummin(x, 0)[0], X),
    "logcumsumexp": (lambda x: ops.logcumsumexp(x, 1), X),
    "diff": (lambda x: ops.diff(x, 2), X),
    "trapz": (lambda y, x: ops.trapz(y, x, dim=1), X, np.cumsum(Y, 1)),
    "quantile": (lambda x: ops.quantile(x, [0.3, 0.6], 1), X),
    "median": (lambda x: ops.median(x, 1)[0], X),
    "nanmean": (lambda x: ops.nanmean(x, 0), X),
    "cov": (lambda x: ops.cov(x), X),
    "corrcoef": (lambda x: ops.corrcoef(x), X),
    "var_mean": (lambda x: ops.var_mean(x, 1, 1), X),
    "inverse": (ops.inverse, SQUARE),
    "matrix_solve": (ops.matrix_solve, SQUARE, X[:3, :2]),
    "matrix_solve adjoint": (lambda a, b: ops.matrix_solve(a, b, True), LARGE, RNG.normal(size=(5, 2))),
    "det": (ops.det, SQUARE),
    "det of five": (ops.det, LARGE),
    "slogdet": (lambda x: ops.slogdet(x)[1], LARGE),
    "cholesky": (lambda x: ops.cholesky(positive(x)), LARGE),
    "cholesky_solve": (
        lambda x, b: ops.cholesky_solve(b, ops.cholesky(positive(x))), SQUARE, X[:3, :2],
    ),
    "qr": (lambda x: ops.qr(x), RNG.normal(size=(4, 3))),
    "svd": (lambda x: ops.svd(x), RNG.normal(size=(4, 3))),
    "svd wide": (lambda x: ops.svd(x, compute_uv=False), RNG.normal(size=(2, 4))),
    "eigh": (lambda x: ops.eigh(x + x.T), LARGE),
    "pinv": (ops.pinv, X),
    "matrix_power": (lambda x: ops.matrix_power(x, -2), SQUARE),
    "kron": (ops.kron, X, Y),
    "cross": (lambda x, y: ops.cross(x, y, 0), X, Y),
    "einsum": (lambda x, y: ops.einsum("ij,kj->ik", x, y), X, Y),
    "einsum with a diagonal": (lambda x: ops.einsum("ii->i", x), SQUARE),
    "einsum of three": (lambda x, y: ops.einsum("ij,kj,kl->il", x, y, y), X, Y),
    "vander": (lambda x: ops.vander(x, 4), X[0]),
    "block_diag": (lambda x, y: ops.block_diag(x, y), X, Y),
    "matrix_diag": (lambda x: ops.matrix_diag(x, (-1, 1)), RNG.normal(size=(3, 4))),
    "batch_dot": (lambda x, y: ops.batch_dot(x, y, (1, 1)), X, Y),
    "logaddexp": (ops.logaddexp, X, Y),
    "logaddexp2": (ops.logaddexp2, X, Y),
    "copysign": (ops.copysign, X, -Y),
    "sinc at 0 and near it": (ops.sinc, np.array([0.0, 1e-3, 0.2, 0.3, -1.7])),
    "lgamma": (ops.lgamma, np.array([0.3, 1.0, 2.5, 11.0, -0.4])),
    "digamma": (ops.digamma, np.array([0.3, 1.0, 2.5, 11.0, -0.4])),
    "erfinv": (ops.erfinv, np.array([-0.95, -0.3, 0.01, 0.6])),
    "logit": (ops.logit, X),
    "cbrt": (ops.cbrt, np.array([-2.0, 0.5, 3.0])),
    "lrn": (lambda x: ops.LRN(1, 1.0, 0.5, 0.75)(x), IMAGE),
    "scatter": (lambda x, y: ops.scatter(x, 1, Tensor([[0, 2], [1, 3], [3, 0]]), y), X, Y[:, :2]),
    "select_scatter": (lambda x, y: ops.select_scatter(x, y, 1, 2), X, Y[:, 0]),
    "slice_scatter": (lambda x, y: ops.slice_scatter(x, y, 1, 0, 4, 2), X, Y[:, :2]),
    "diagonal_scatter": (lambda x, y: ops.diagonal_scatter(x, y, 1), X, Y[:, 0]),
    "unsorted_segment_max": (lambda x: ops.unsorted_segment_max(x, Tensor([1, 0, 1]), 2), X),
    "max_pool2d": (lambda x: ops.max_pool2d(x, 3, 2, 1), IMAGE),
    "avg_pool2d": (lambda x: ops.avg_pool2d(x, 3, 2, 1), IMAGE),
    "grid_sample": (lambda x, g: ops.grid_sample(x, g), IMAGE, RNG.uniform(-0.9, 0.9, (1, 2, 2, 2))),
    "iou": (lambda x, y: ops.iou(x, y), np.array([[0.0, 0, 5, 6]]), np.array([[1.0, 2, 7, 4]])),
    "bounding boxes": (
        lambda a, d: ops.bounding_box_decode(a, d, (99, 99)), np.array([[3.0, 4, 9, 12]]), 0.3 * X[:1],
    ),
    "convolve": (gc.numpy.convolve, X[0], Y[0, :3]),
    "interp": (
        lambda x, f: gc.numpy.interp(x, gc.numpy.array([0.0, 0.5, 1.0]), f), X[0], Y[0, :3],
    ),
    "gradient": (lambda x: gc.numpy.gradient(x), X),
    "pad": (lambda x: gc.numpy.pad(x, 2, "linear_ramp", end_values=1), X),
    "unwrap": (lambda x: gc.numpy.unwrap(9 * x), X),
    "geomspace": (lambda x, y: gc.numpy.geomspace(x, y, 4), X[0], Y[0]),
    "batch_norm": (
        lambda x, w: ops.batch_norm(x, None, None, w, None, True), IMAGE, np.array([0.5, 2.0]),
    ),
    "rms_norm": (lambda x, w: ops.rms_norm(x, w)[0], X, Y[0]),
    "mint.nn.functional.normalize": (lambda x: gc.mint.nn.functional.normalize(x), X),
}  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("modes", [("rev",), ("fwd",)], ids=["reverse", "forward"])
@pytest.mark.parametrize("name", ROWS)
def test_names_have_derivatives_to_third_order(name, modes):
    fn, *arrays = ROWS[name]
    check_grads(fn, arrays, order=3, modes=modes, tolerance=3e-7)


@pytest.mark.parametrize("name", ["inverse", "cholesky", "slogdet", "eigh"])
def test_jit_records_factorisations(name):
    """For every value, without a second trace."""
    fn, array = ROWS[name]
    compiled = gc.jit(fn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (1.0, 1.5):
            for a, b in zip(
                flat(compiled(Tensor(scale * array))), flat(fn(Tensor(scale * array))), strict=True
            ):
                np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-11, atol=1e-12)


def flat(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


VALUES = {
    "svd": (lambda x: ops.svd(x)[0], lambda x: np.linalg.svd(x)[1], X),
    "eigh": (lambda x: ops.eigh(x)[0], lambda x: np.linalg.eigvalsh(x), SQUARE + SQUARE.T),
    "pinv": (ops.pinv, np.linalg.pinv, X),
    "qr": (lambda x: ops.matmul(*ops.qr(x)), lambda x: x, X),
    "quantile": (
        lambda x: ops.quantile(x, [0.25, 0.5, 0.9], 1),
        lambda x: np.quantile(x, [0.25, 0.5, 0.9], 1), X,
    ),
    "nanquantile": (
        lambda x: ops.nanquantile(x, 0.4), lambda x: np.nanquantile(x, 0.4), np.where(X > 0.8, np.nan, X),
    ),
    "lgamma": (
        ops.lgamma, np.vectorize(math.lgamma), np.array([1e-3, 0.5, 1.0, 1.5, 2.0, 30.0, 1e5, -2.5]),
    ),
    "cov weighted": (
        lambda x: ops.cov(x, fweights=Tensor([1, 2, 1, 3]), aweights=Tensor([1.0, 2.0, 0.5, 1.0])),
        lambda x: np.cov(x, fweights=[1, 2, 1, 3], aweights=[1.0, 2.0, 0.5, 1.0]), X,
    ),
    "einsum": (
        lambda x: ops.einsum("...ij,...kj->...ik", x, x),
        lambda x: np.einsum("...ij,...kj->...ik", x, x), RNG.normal(size=(2, 3, 4)),
    ),
    "einsum without an arrow": (
        lambda x: ops.einsum("ji,jk", x, x), lambda x: np.einsum("ji,jk", x, x), X,
    ),
    "unwrap": (gc.numpy.unwrap, np.unwrap, np.cumsum(RNG.uniform(-4, 4, 20))),
    "pad ramp": (
        lambda x: gc.numpy.pad(x, ((1, 2), (0, 3)), "linear_ramp", end_values=5),
        lambda x: np.pad(x, ((1, 2), (0, 3)), "linear_ramp", end_values=5), X,
    ),
    "pad mean": (
        lambda x: gc.numpy.pad(x, 2, "mean", 2), lambda x: np.pad(x, 2, "mean", stat_length=2), X,
    ),
    "correlate": (
        lambda x: gc.numpy.correlate(x[0], x[1], "same"), lambda x: np.correlate(x[0], x[1], "same"), X,
    ),
    "mint.var": (lambda x: gc.mint.var(x, 1), lambda x: x.var(1, ddof=1), X),
    "mint.flatten": (lambda x: gc.mint.flatten(x), np.ravel, X),
    "mint.topk": (lambda x: gc.mint.topk(x, 2)[0], lambda x: -np.sort(-x, 1)[:, :2], X),
    "mint.roll": (lambda x: gc.mint.roll(x, 1, 0), lambda x: np.roll(x, 1, 0), X),
    "mint.sub": (lambda x: gc.mint.sub(x, x, alpha=3), lambda x: x - 3 * x, X),
    "mint.median": (lambda x: gc.mint.median(x), lambda x: np.sort(x, None)[5], X),
    "logspace": (lambda x: gc.numpy.logspace(x, 2 * x, 3), lambda x: np.logspace(x, 2 * x, 3), X[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_as_numpy_has_them(name):
    fn, reference, array = VALUES[name]
    found, expected = fn(Tensor(array)), reference(array)
    assert found.dtype == gc.float64 and tuple(found.shape) == np.shape(expected)
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-12, atol=1e-13)


def test_jacobians():
    def f(x, y):
        return ops.stack([x[0] * y[1], ops.sin(x[1]), x[2] * y[0]]), ops.sum(x) * y

    x, y = Tensor(X[0, :3]), Tensor(Y[0, :2])
    forward, reverse = gc.jacfwd(f, (0, 1))(x, y), gc.jacrev(f, (0, 1))(x, y)
    a, b = X[0, :3], Y[0, :2]
    by_x = np.diag([b[1], np.cos(a[1]), b[0]])
    by_y = np.array([[0, a[0]], [0, 0], [a[2], 0]])
    for found in (forward, reverse):
        np.testing.assert_allclose(found[0][0].asnumpy(), by_x, rtol=1e-14)
        np.testing.assert_allclose(found[0][1].asnumpy(), by_y, rtol=1e-14)
        np.testing.assert_allclose(found[1][0].asnumpy(), np.outer(b, np.ones(3)), rtol=1e-14)
        np.testing.assert_allclose(found[1][1].asnumpy(), a.sum() * np.eye(2), rtol=1e-14)
    hessian = gc.jacfwd(gc.jacrev(lambda x: ops.sum(ops.exp(x) * x[0])))(x)
    e = np.exp(a)
    expected = np.diag(e * a[0])
    expected[0] += e
    expected[:, 0] += e
    np.testing.assert_allclose(hessian.asnumpy(), expected, rtol=1e-14)


def test_jacobian_with_further_outputs():
    found, rest = gc.jacrev(lambda x: (ops.square(x), x + 1), has_aux=True)(Tensor(X[0]))
    np.testing.assert_allclose(found.asnumpy(), np.diag(2 * X[0]), rtol=1e-15)
    np.testing.assert_allclose(rest.asnumpy(), X[0] + 1)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: ops.inverse(Tensor(np.ones((2, 2)))), ValueError, "inverse: Singular matrix"),
        (lambda: ops.cholesky(Tensor(-np.eye(2))), ValueError, "not positive definite"),
        (lambda: ops.det(Tensor(X)), ValueError, "square matrices are needed"),
        (lambda: ops.pinv(Tensor(np.ones(3))), ValueError, "matrices are needed"),
        (lambda: ops.einsum("ij,jk->iz", Tensor(X), Tensor(X.T)), ValueError, "after the arrow that repeat"),
        (lambda: ops.einsum("ij", Tensor(X[0])), ValueError, "does not fit an operand"),
        (lambda: ops.einsum("ij,jk->ik", Tensor(X), Tensor(X)), ValueError, "'j' of sizes"),
        (lambda: ops.einsum("i,i,i", *map(Tensor, ([1], [2, 3], [4, 5, 6]))), ValueError, "'i' of sizes"),
        (lambda: ops.einsum("ii->i", Tensor(X)), ValueError, "'i' of sizes"),
        (lambda: ops.quantile(Tensor(X), 1.5), ValueError, "within 0 and 1"),
        (lambda: ops.multinomial(Tensor([0.0, 0.0]), 1), ValueError, "not all zero"),
        (lambda: ops.bitwise_and(Tensor(1.0), 1), TypeError, "integers or bools are needed"),
        (lambda: gc.numpy.split(Tensor(X), 3, 1), ValueError, "do not make 3 equal parts"),
        (lambda: gc.numpy.array(object()), TypeError, "cannot make a tensor"),
        (lambda: ops.grid_sample(Tensor(IMAGE), Tensor(X)), ValueError, "must have 4 dimensions"),
        (lambda: ops.NPUGetFloatStatus()(Tensor(1.0)), RuntimeError, "for Ascend alone"),
        (lambda: ops.Custom(lambda x: x, func_type="aot"), NotImplementedError, "MindSpore's own"),
        (lambda: gc.jacfwd(ops.sin, 1)(Tensor(1.0)), ValueError, "grad_position 1"),
    ],
)  # fmt: skip
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "test_name_derivatives.py" in str(caught.value)
