"""Linear algebra, products and running products of complex tensors: values against NumPy, derivatives
against finite differences of the parts, and what has no meaning for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from check_grads import check_grads

import gradcell as ms
from gradcell import Tensor, nn, ops
from gradcell.ops.elements.complex_numbers import complex_of, part

RNG = np.random.default_rng(5)


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


SQUARE, LARGE = numbers(2, 3, 3) + 2 * np.eye(3), numbers(5, 5) + 3 * np.eye(5)
RIGHT, TALL, WIDE, THREE = numbers(3, 2), numbers(4, 2), numbers(2, 4), numbers(2, 3, 3)


def hermitian(a: Any) -> Any:
    turned = ops.adjoint(a) if isinstance(a, Tensor) else np.conj(np.swapaxes(a, -2, -1))
    both = a @ turned
    return both + (ops.eye(3, 3, both.dtype) if isinstance(a, Tensor) else np.eye(3))


#: (function, what NumPy gives, of what)
ROWS: dict[str, tuple[Any, Any, np.ndarray]] = {
    "inverse": (ops.inverse, np.linalg.inv, SQUARE),
    "solve": (
        lambda a: ops.matrix_solve(a, Tensor(RIGHT)), lambda a: np.linalg.solve(a, RIGHT), SQUARE[0],
    ),
    "solve adjoint": (
        lambda a: ops.matrix_solve(a, Tensor(RIGHT), True),
        lambda a: np.linalg.solve(a.conj().T, RIGHT), SQUARE[0],
    ),
    "pinv tall": (ops.pinv, np.linalg.pinv, TALL),
    "pinv wide": (ops.pinv, np.linalg.pinv, WIDE),
    "det": (ops.det, np.linalg.det, SQUARE),
    "det of five": (ops.det, np.linalg.det, LARGE),
    "sign": (lambda a: ops.slogdet(a)[0], lambda a: np.linalg.slogdet(a)[0], LARGE),
    "size": (lambda a: ops.slogdet(a)[1], lambda a: np.linalg.slogdet(a)[1] + 0j, LARGE),
    "logdet": (ops.logdet, lambda a: np.log(np.linalg.det(a)), SQUARE),
    "cholesky": (
        lambda a: ops.cholesky(hermitian(a)), lambda a: np.linalg.cholesky(hermitian(a)), SQUARE,
    ),
    "cholesky upper": (
        lambda a: ops.cholesky(hermitian(a), True),
        lambda a: np.conj(np.swapaxes(np.linalg.cholesky(hermitian(a)), -2, -1)), SQUARE,
    ),
    "cholesky_inverse": (
        lambda a: ops.cholesky_inverse(ops.cholesky(hermitian(a))),
        lambda a: np.linalg.inv(hermitian(a)), SQUARE,
    ),
    "cholesky_solve": (
        lambda a: ops.cholesky_solve(Tensor(RIGHT), ops.cholesky(hermitian(a))),
        lambda a: np.linalg.solve(hermitian(a), RIGHT), SQUARE[0],
    ),
    "qr": (lambda a: ops.matmul(*ops.qr(a)), lambda a: a, TALL),
    "q": (lambda a: ops.adjoint(ops.qr(a)[0]) @ ops.qr(a)[0], lambda a: np.eye(2) + 0j, TALL),
    "matrix_power": (
        lambda a: ops.matrix_power(a, -2), lambda a: np.linalg.matrix_power(a, -2), SQUARE,
    ),
    "prod": (ops.prod, np.prod, THREE),
    "prod of one axis": (lambda x: x.prod(1), lambda x: x.prod(1), THREE),
    "prod of two": (
        lambda x: ops.prod(x, (0, 2), True), lambda x: x.prod((0, 2), keepdims=True), THREE,
    ),
    "cumprod": (lambda x: ops.cumprod(x, 2), lambda x: x.cumprod(2), THREE),
    "cumprod exclusive": (
        lambda x: ops.CumProd(exclusive=True)(x, 1),
        lambda x: np.concatenate([np.ones((2, 1, 3)), x[:, :2].cumprod(1)], 1), THREE,
    ),
    "cumprod reversed": (
        lambda x: ops.CumProd(reverse=True)(x, 1), lambda x: x[:, ::-1].cumprod(1)[:, ::-1], THREE,
    ),
    "sinc": (ops.sinc, np.sinc, np.append(THREE.ravel(), [0, 1e-9 + 1e-9j])),
    "diag": (ops.diag, lambda x: np.einsum("ij,ik,jl->ijkl", x, np.eye(4), np.eye(2)), TALL),
    "outer": (lambda x: ops.outer(x, x * 2j), lambda x: np.outer(x, x * 2j), TALL[0]),
    "norm": (ops.norm, lambda x: np.linalg.norm(x) + 0j, THREE),
    "norm of rows": (lambda x: ops.norm(x, 3, 1), lambda x: np.linalg.norm(x, 3, 1) + 0j, TALL),
    "norm of columns": (lambda x: ops.norm(x, 1, (0, 1)), lambda x: np.linalg.norm(x, 1) + 0j, TALL),
    "vector_norm": (lambda x: ops.vector_norm(x, 2, 0), lambda x: np.linalg.norm(x, axis=0) + 0j, TALL),
    "vecdot": (
        lambda x: ops.vecdot(x, x * 2j, axis=0), lambda x: np.sum(x.conj() * x * 2j, 0), TALL,
    ),
    "cov": (ops.cov, np.cov, WIDE),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_values(name: str) -> None:
    function, exact, z = ROWS[name]
    for dtype, tolerance in (("complex128", 1e-11), ("complex64", 2e-4)):
        found = function(Tensor(z.astype(dtype)))
        expected = np.asarray(exact(z.astype(dtype).astype(np.complex128)))
        assert found.asnumpy().shape == expected.shape
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=tolerance, atol=tolerance)
    traced = ms.jit(function)(Tensor(z)).asnumpy()
    np.testing.assert_allclose(traced, exact(z), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", [n for n in ROWS if not n.startswith(("cholesky", "q"))])
def test_complex_matrices_have_derivatives_to_second_order(name: str) -> None:
    """To order 2, reverse and forward, of both parts by both parts."""
    function, _, z = ROWS[name]

    def parts(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        w = function(complex_of(x, y))
        return part(w, 0), part(w, 1)

    check_grads(parts, [np.ascontiguousarray(z.real), np.ascontiguousarray(z.imag)], order=2)


@pytest.mark.parametrize("name", ["cholesky", "cholesky_solve", "qr", "q"])
def test_first_derivatives(name: str) -> None:
    function, _, z = ROWS[name]

    def parts(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        w = function(complex_of(x, y))
        return part(w, 0), part(w, 1)

    check_grads(parts, [np.ascontiguousarray(z.real), np.ascontiguousarray(z.imag)], order=1)


@pytest.mark.parametrize("z", [SQUARE, TALL, WIDE])
def test_svd(z: np.ndarray) -> None:
    """U diag(s) V^H, V and not its adjoint; the singular values complex, as MindSpore's are."""
    s, u, v = ops.svd(Tensor(z))
    assert s.dtype == ms.complex128
    np.testing.assert_allclose(s.asnumpy(), np.linalg.svd(z, compute_uv=False), rtol=1e-12)
    back = (u.asnumpy() * s.asnumpy()[..., None, :]) @ np.conj(np.swapaxes(v.asnumpy(), -2, -1))
    np.testing.assert_allclose(back, z, rtol=1e-12, atol=1e-12)
    alone = ops.svd(Tensor(z), compute_uv=False).asnumpy()
    np.testing.assert_allclose(alone, s.asnumpy(), rtol=1e-12)
    got = ms.grad(lambda a: ops.real(ops.svd(a, compute_uv=False)).sum())(Tensor(z)).asnumpy()
    polar = u.asnumpy() @ np.swapaxes(v.asnumpy(), -2, -1).conj()  # of the sum of singular values
    np.testing.assert_allclose(got, polar, atol=1e-12)
    with pytest.raises(NotImplementedError, match="complex matrices"):
        ms.grad(lambda a: ops.real(ops.svd(a)[1]).sum())(Tensor(z))


def test_eigh() -> None:
    a = hermitian(SQUARE)
    values, vectors = ops.eigh(Tensor(a))
    np.testing.assert_allclose(values.asnumpy(), np.linalg.eigvalsh(a), rtol=1e-11)
    found = a @ vectors.asnumpy()
    np.testing.assert_allclose(
        found, vectors.asnumpy() * values.asnumpy()[:, None, :], rtol=1e-9, atol=1e-9
    )
    got = ms.grad(lambda x: ops.real(ops.eigh(x)[0] ** 3).sum())(Tensor(a)).asnumpy()
    np.testing.assert_allclose(got, 3 * a @ a, rtol=1e-9, atol=1e-9)
    with pytest.raises(NotImplementedError, match="complex matrices"):
        ms.grad(lambda x: ops.real(ops.eigh(x)[1]).sum())(Tensor(a))


def test_no_order() -> None:
    """Counting in intervals needs an order: an error, and not the real parts' counts."""
    z = Tensor(numbers(4).astype(np.complex64))
    for count in (
        lambda: ops.histc(z, 3),
        lambda: ms.numpy.histogram(z, 3),
        lambda: ops.unsorted_segment_max(z, Tensor([0, 1, 0, 1]), 2),
    ):
        with pytest.raises(TypeError, match="Complex64"):
            count()
    half = ops.mixed_precision_cast(ms.float16, (z, Tensor([1.0])))
    assert [t.dtype for t in half] == [ms.complex64, ms.float16]
    assert ops.float_power(z, 2).dtype == ms.complex128
    assert ops.prod(Tensor(np.zeros((2, 0), np.complex64)), 1).asnumpy().tolist() == [1, 1]


def test_factors() -> None:
    """Of a solution's factor one triangle counts, of an inverse's the whole; MindSpore's numbers."""
    a, right = Tensor([[2.0, 7.0], [1.0, 3.0]]), Tensor([[2.0, 1.0], [0.0, 3.0]])
    lower, upper = (
        [[5 / 9, 1 / 9], [-1 / 9, 5 / 18]],
        [[3.2222226, 0.4444445], [-0.7777779, -0.0555556]],
    )
    np.testing.assert_allclose(right.cholesky_solve(a).asnumpy(), lower, rtol=1e-5)
    np.testing.assert_allclose(right.cholesky_solve(a, upper=True).asnumpy(), upper, rtol=1e-5)
    np.testing.assert_allclose(ops.cholesky_inverse(a).asnumpy(), [[10, -23], [-23, 53]], rtol=1e-3)


def test_half_precision_leaves_them() -> None:
    """What casts inputs and parameters to float16 takes no imaginary part away."""

    class Turn(nn.Cell):
        def construct(self, z: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return z * 1j, x * 2

    z, x = Turn().to_float(ms.float16)(Tensor([1 + 2j], ms.complex64), Tensor([1.0]))
    assert z.asnumpy().tolist() == [-2 + 1j] and x.dtype == ms.float16


@pytest.mark.parametrize("asked", ["alone", "reduced", "full", "eigh"])
@pytest.mark.parametrize("shape", [(3, 3), (3, 2), (2, 3)])
def test_second_derivatives_of_singular_and_eigenvalues(asked: str, shape: tuple[int, int]) -> None:
    """In which the phases of the vectors cancel."""
    if asked == "eigh" and shape != (3, 3):
        return

    def values(x: Tensor, y: Tensor) -> Tensor:
        z = complex_of(x, y)
        if asked == "eigh":
            found = ops.eigh((z + ops.adjoint(z)) * 0.5)[0]
        else:
            found = (
                ops.svd(z, compute_uv=False) if asked == "alone" else ops.svd(z, asked == "full")[0]
            )
        return ops.real(found)

    z = np.random.default_rng(2).standard_normal((2, *shape))
    check_grads(lambda x, y: values(x, y)[0] * ops.sin(values(x, y)[1]), [z[0], z[1]], order=2)
    real = np.random.default_rng(3).standard_normal(shape)
    if asked != "eigh":
        check_grads(lambda a: ops.svd(a, asked == "full")[0][0], [real], order=2)
