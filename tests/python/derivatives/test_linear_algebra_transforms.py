"""Linear algebra under every transform: one matrix and matrices of a batch, sizes where rows are few
and many, against float64 differences of NumPy's values; and no trace that asks for a value."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

RNG = np.random.default_rng(17)
Function = Callable[[Any], Any]


def regular(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape) * 0.4 + np.eye(*shape[-2:]) * np.arange(2, 2 + shape[-1])


def positive(a: Any) -> Any:
    """Symmetric, positive definite, of different eigenvalues."""
    turned = ops.swapaxes(a, -2, -1) if isinstance(a, Tensor) else np.swapaxes(a, -2, -1)
    return a @ turned


B = {n: RNG.standard_normal((n, 2)) for n in range(1, 6)}


def right(a: Any) -> Any:
    b = B[a.shape[-2]]
    return Tensor(b) if isinstance(a, Tensor) else b


def numpy_pinv_factor(a: np.ndarray) -> np.ndarray:
    return np.linalg.pinv(a[..., :, : max(1, a.shape[-1] - 1)])


#: name: (the function, what NumPy gives), of regular matrices; results of one sign of vectors.
FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "inverse": (ops.inverse, np.linalg.inv),
    "matrix_solve": (lambda a: ops.matrix_solve(a, right(a)), lambda a: np.linalg.solve(a, right(a))),
    "matrix_solve, adjoint": (
        lambda a: ops.matrix_solve(a, right(a), True),
        lambda a: np.linalg.solve(np.swapaxes(a, -2, -1), right(a)),
    ),
    "pinv": (
        lambda a: ops.pinv(a[..., :, : max(1, a.shape[-1] - 1)]), numpy_pinv_factor,
    ),
    "det": (ops.det, np.linalg.det),
    "slogdet": (lambda a: ops.slogdet(a)[1], lambda a: np.linalg.slogdet(a)[1]),
    "logdet": (lambda a: ops.logdet(positive(a)), lambda a: np.linalg.slogdet(positive(a))[1]),
    "cholesky": (lambda a: ops.cholesky(positive(a)), lambda a: np.linalg.cholesky(positive(a))),
    "cholesky_inverse": (
        lambda a: ops.cholesky_inverse(ops.tril(a)),
        lambda a: np.linalg.inv(np.tril(a) @ np.swapaxes(np.tril(a), -2, -1)),
    ),
    "cholesky_solve": (
        lambda a: ops.cholesky_solve(ops.broadcast_to(right(a), (*a.shape[:-1], 2)), ops.tril(a)),
        lambda a: np.linalg.solve(np.tril(a) @ np.swapaxes(np.tril(a), -2, -1), right(a)),
    ),
    "qr": (
        lambda a: functools.reduce(ops.matmul, ops.qr(a)) + ops.qr(a)[1] ** 2,
        lambda a: a + np.linalg.qr(a)[1] ** 2,
    ),
    "eigvalsh": (
        lambda a: ops.eigh(positive(a))[0], lambda a: np.linalg.eigvalsh(positive(a)),
    ),
    "eigh": (
        lambda a: ops.eigh(positive(a))[1] ** 2, lambda a: np.linalg.eigh(positive(a))[1] ** 2,
    ),
    "svd values": (
        lambda a: ops.svd(a, compute_uv=False), lambda a: np.linalg.svd(a)[1],
    ),
    "svd": (
        lambda a: ops.svd(a)[1] ** 2 + ops.svd(a)[2] ** 2,
        lambda a: np.linalg.svd(a)[0] ** 2 + np.swapaxes(np.linalg.svd(a)[2], -2, -1) ** 2,
    ),
    "matrix_power": (
        lambda a: ops.matrix_power(a, -2), lambda a: np.linalg.matrix_power(a, -2),
    ),
}  # fmt: skip
SIZES = [(1, 1), (2, 2), (5, 5), (3, 4, 4), (5, 2, 2)]


def difference(f: Function, x: np.ndarray, v: np.ndarray, h: float = 2e-3) -> np.ndarray:
    """The derivative of f along v, of order 6."""
    ends = [f(x + k * h * v) - f(x - k * h * v) for k in (1, 2, 3)]
    return (45 * ends[0] - 9 * ends[1] + ends[2]) / (60 * h)  # type: ignore[no-any-return]


def close(got: Any, wanted: np.ndarray, tolerance: float = 2e-6) -> None:
    got = got.asnumpy()
    assert got.shape == wanted.shape
    np.testing.assert_allclose(
        got, wanted, rtol=tolerance, atol=tolerance * (1 + np.abs(wanted).max())
    )


def silent(f: Function) -> Function:
    """f compiled, without a warning that it asks for a value."""

    def call(*args: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return gc.jit(f)(*args)

    return call


@pytest.mark.one_in(12)
@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_derivatives(name: str, shape: tuple[int, ...]) -> None:
    f, reference = FUNCTIONS[name]
    x = regular(*shape)
    v = RNG.standard_normal(shape)
    y, t = reference(x), Tensor(x)
    close(f(t), y, 1e-10)
    close(silent(f)(t), y, 1e-10)
    wanted = difference(reference, x, v)
    weights = RNG.standard_normal(y.shape)
    along = float((weights * wanted).sum())
    total = lambda a: (f(a) * Tensor(weights)).sum()  # noqa: E731

    gradient = gc.grad(total)(t).asnumpy()
    assert float((gradient * v).sum()) == pytest.approx(along, rel=2e-6, abs=2e-6)
    close(silent(gc.grad(total))(t), gradient, 1e-10)
    close(gc.grad(lambda a: gc.recompute(total, a))(t), gradient, 1e-10)
    close(gc.jvp(f, t, Tensor(v))[1], wanted)
    _, linear = gc.linearize(f, t)
    for scale in (1.0, -2.0):
        close(linear(Tensor(scale * v)), scale * wanted)
    _, pull = gc.vjp(f, t)
    for scale in (1.0, -2.0):
        close(pull(Tensor(scale * weights))[0], scale * gradient, 1e-9)
    first = ops.derivative(lambda s: total(t + Tensor(v) * s), Tensor(0.0, gc.float64), 1)[1]
    assert float(first) == pytest.approx(along, rel=2e-6, abs=2e-6)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_and_batches(name: str, shape: tuple[int, ...]) -> None:
    f, reference = FUNCTIONS[name]
    x = regular(*shape)
    t, n = Tensor(x), x.size
    weights = RNG.standard_normal(reference(x).shape)
    total = lambda a: (f(a) * Tensor(weights)).sum()  # noqa: E731
    gradient = lambda a: gc.grad(total)(Tensor(a)).asnumpy()  # noqa: E731

    directions = np.eye(n).reshape(n, *shape)
    second = np.stack([difference(gradient, x, d) for d in directions])
    close(gc.hessian(total)(t).reshape(n, *shape), second, 1e-5)
    trace = np.einsum("aa->", second.reshape(n, n))
    assert float(gc.laplacian(total)(t)) == pytest.approx(trace, rel=1e-5, abs=1e-4)
    hvp = gc.grad(lambda a: (gc.grad(total)(a) * Tensor(directions[-1])).sum())(t)
    close(hvp, second[-1], 1e-5)
    jacobian = np.stack([difference(reference, x, d) for d in directions], -1)
    for transform in (gc.jacrev, gc.jacfwd):
        close(transform(f)(t).reshape(*jacobian.shape), jacobian)

    for count in (1, 2, 5, 17):
        many = np.stack([regular(*shape) for _ in range(count)])
        close(gc.vmap(f)(Tensor(many)), np.stack([reference(m) for m in many]), 1e-10)
        each = np.stack([gradient(m) for m in many])
        close(gc.vmap(gc.grad(total))(Tensor(many)), each, 1e-9)
        summed = gc.grad(lambda a: (gc.vmap(f)(a) * Tensor(weights)).sum())
        close(summed(Tensor(many)), each, 1e-9)


def test_rows_of_a_matrix_are_no_points() -> None:
    a = Tensor(np.array([[2.0, 0.3], [0.1, 1.5]]))
    assert float(gc.laplacian(ops.logdet)(a)) == pytest.approx(-0.7199, abs=1e-4)
    with pytest.raises(ValueError, match="row"):
        gc.partials(ops.logdet, [(0,), (0, 0)])(a)


def test_equal_eigenvalues() -> None:
    """Sums over eigenvalues have gradients at equal ones; what turns vectors there has none."""
    a = Tensor(np.eye(3))
    np.testing.assert_allclose(
        gc.grad(lambda x: (ops.eigh(x)[0] ** 2).sum())(a).asnumpy(), 2 * np.eye(3)
    )
    values = gc.grad(lambda x: ops.svd(x, compute_uv=False).sum())(a)
    np.testing.assert_allclose(values.asnumpy(), np.eye(3), atol=1e-14)
    assert np.isnan(gc.grad(lambda x: (ops.eigh(x)[1] ** 2).sum())(a).asnumpy()).any()


def test_pinv_of_lower_rank() -> None:
    """Derivatives along matrices of the same rank: A(t) = (u + t u') (v + t v')^T."""
    u, v, du, dv = (RNG.standard_normal((n, 1)) for n in (4, 3, 4, 3))
    curve = lambda t: (u + t * du) @ (v + t * dv).T  # noqa: E731
    a, tangent = curve(0.0), du @ v.T + u @ dv.T
    close(ops.pinv(Tensor(a)), np.linalg.pinv(a), 1e-12)
    step = 1e-4
    wanted = (np.linalg.pinv(curve(step)) - np.linalg.pinv(curve(-step))) / (2 * step)
    close(gc.jvp(ops.pinv, Tensor(a), Tensor(tangent))[1], wanted, 1e-6)


def test_qr_of_wide_matrices() -> None:
    x = RNG.standard_normal((2, 5))
    v = RNG.standard_normal((2, 5))
    for mode in ("reduced", "complete"):
        for k in range(2):
            reference = lambda a: np.linalg.qr(a, mode)[k]  # noqa: B023, E731
            f = lambda a: ops.qr(a, mode)[k]  # noqa: B023, E731
            close(f(Tensor(x)), reference(x), 1e-12)
            close(gc.jvp(f, Tensor(x), Tensor(v))[1], difference(reference, x, v))
    with pytest.raises(NotImplementedError, match="complete"):
        gc.grad(lambda a: ops.qr(a, "complete")[1].sum())(Tensor(x.T.copy()))
