"""Matrices by LAPACK: shapes, batches and leading dimensions that broadcast, against NumPy in float64;
derivatives against finite differences, of third order too; float32 results, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from check_grads import check_grads

import gradcell as ms
from gradcell import Tensor, ops

RNG = np.random.default_rng(41)


def matrices(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def regular(*lead: int, n: int = 5) -> np.ndarray:
    return matrices(*lead, n, n) + 3 * np.eye(n)


SHAPES = [
    (5, 5),
    (70, 40),
    (40, 70),
    (1, 4),
    (4, 1),
    (130, 130),
    (2, 3, 33, 7),
    (3, 0, 2),
    (0, 3, 3),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr(shape: tuple[int, ...], mode: Any) -> None:
    for a in (matrices(*shape), matrices(*shape) + 1j * matrices(*shape)):
        wanted = np.linalg.qr(a, mode)
        for got, want in zip(ops.qr(Tensor(a), mode), wanted, strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got.asnumpy(), want, atol=1e-12)


def symmetric(*shape: int) -> np.ndarray:
    a = matrices(*shape)
    return a + np.swapaxes(a, -2, -1)


def tridiagonal(n: int) -> np.ndarray:
    return 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("n", [1, 2, 33, 63, 64, 65, 129, 200])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_eigh(n: int, dtype: Any) -> None:
    epsilon = 100 * np.finfo(dtype).eps
    several = symmetric(3, n, n)
    imaginary = matrices(n, n)
    for a in (
        several, several[0] + 1j * (imaginary - imaginary.T), several[0] * 1e30, several[0] * 1e-30,
        tridiagonal(n), np.eye(n), np.ones((n, n)), np.zeros((n, n)), np.diag(np.arange(n) // 3),
    ):  # fmt: skip
        if np.iscomplexobj(a) and dtype is not np.complex128:
            continue
        wide = a.astype(np.result_type(dtype, np.float64))
        values, vectors = (t.asnumpy() for t in ops.eigh(Tensor(wide.astype(dtype))))
        size = np.abs(wide).max() * n + 1e-300
        np.testing.assert_allclose(values / size, np.linalg.eigvalsh(wide) / size, atol=epsilon)
        assert vectors.dtype == dtype
        vectors = vectors.astype(wide.dtype)
        inner = np.swapaxes(vectors, -2, -1).conj() @ vectors
        np.testing.assert_allclose(inner, np.broadcast_to(np.eye(n), a.shape), atol=epsilon)
        np.testing.assert_allclose(
            wide @ vectors / size, vectors * values[..., None, :] / size, atol=epsilon
        )


def test_eigh_of_what_is_not_finite_or_tiny() -> None:
    for bad in (np.nan, np.inf):
        a = np.stack([np.eye(3, dtype=np.float32)] * 2)
        a[0, 1, 0] = bad
        values, vectors = ops.eigh(Tensor(a))
        assert np.isnan(values.asnumpy()[0]).all() and np.isnan(vectors.asnumpy()[0]).all()
        np.testing.assert_array_equal(values.asnumpy()[1], [1, 1, 1])
    values, _ = ops.eigh(Tensor(np.diag([2e-40, 1e-40]).astype(np.float32)))
    np.testing.assert_allclose(values.asnumpy(), [1e-40, 2e-40], rtol=1e-4)


def test_factors_do_not_depend_on_the_number_of_threads() -> None:
    a, before = symmetric(200, 200), ms._core.max_threads()
    found = []
    try:
        for threads in (1, 3):
            ms._core.set_max_threads(threads)
            tensors = (*ops.eigh(Tensor(a)), *ops.qr(Tensor(a)), *ops.qr(Tensor(a[:, :130])))
            found.append([t.asnumpy() for t in tensors])
    finally:
        ms._core.set_max_threads(before)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize(
    "a, b",
    [((5, 5), (5, 2)), ((3, 5, 5), (3, 5, 1)), ((5, 5), (2, 3, 5, 2)), ((2, 1, 5, 5), (3, 5, 4)),
     ((0, 0), (0, 2)), ((0, 4, 4), (0, 4, 2)), ((5, 5), (5, 0))],
    ids=str,
)  # fmt: skip
def test_solve(a: tuple[int, ...], b: tuple[int, ...], adjoint: bool) -> None:
    matrix, rhs = matrices(*a) + 3 * np.eye(a[-1]), matrices(*b)
    turned = np.swapaxes(matrix, -2, -1) if adjoint else matrix
    got = ops.matrix_solve(Tensor(matrix), Tensor(rhs), adjoint).asnumpy()
    np.testing.assert_allclose(got, np.linalg.solve(turned, rhs), atol=1e-13)


@pytest.mark.parametrize("upper", [False, True])
def test_from_cholesky_factors(upper: bool) -> None:
    a = regular(2, n=6)
    a = a @ np.swapaxes(a, -2, -1)
    low = np.linalg.cholesky(a)
    factor, b = np.swapaxes(low, -2, -1) if upper else low, matrices(3, 1, 6, 2)
    np.testing.assert_allclose(ops.cholesky(Tensor(a), upper).asnumpy(), factor, atol=1e-13)
    inverse = ops.cholesky_inverse(Tensor(factor), upper).asnumpy()
    np.testing.assert_allclose(inverse, np.linalg.inv(a), atol=1e-13)
    solution = ops.cholesky_solve(Tensor(b), Tensor(factor), upper).asnumpy()
    np.testing.assert_allclose(solution, np.linalg.solve(a, b), atol=1e-12)


def test_the_inverse_takes_all_of_a_factor() -> None:
    x = regular(n=4)
    got = ops.cholesky_inverse(Tensor(x)).asnumpy()
    np.testing.assert_allclose(got, np.linalg.inv(x @ x.T), atol=1e-13)
    got = ops.cholesky_inverse(Tensor(x), True).asnumpy()
    np.testing.assert_allclose(got, np.linalg.inv(x.T @ x), atol=1e-13)


@pytest.mark.parametrize("n", [1, 4, 9])
def test_determinants(n: int) -> None:
    a = regular(3, n=n)
    a[1, 0] *= -1
    a[2, 0] = 0  # singular
    sign, size = ops.slogdet(Tensor(a))
    wanted = np.linalg.slogdet(a)
    np.testing.assert_array_equal(sign.asnumpy(), wanted[0])
    np.testing.assert_allclose(size.asnumpy(), wanted[1], rtol=1e-13)
    np.testing.assert_allclose(ops.det(Tensor(a)).asnumpy(), np.linalg.det(a), rtol=1e-12)


def test_float32_is_rounded_once() -> None:
    a = regular(n=40).astype(np.float32)
    wide, b = a.astype(np.float64), matrices(40, 3).astype(np.float32)
    for got, want in (
        (ops.inverse(Tensor(a)), np.linalg.inv(wide)),
        (ops.matrix_solve(Tensor(a), Tensor(b)), np.linalg.solve(wide, b.astype(np.float64))),
        (ops.qr(Tensor(a))[1], np.linalg.qr(wide)[1]),
        (ops.det(Tensor(a)), np.linalg.det(wide)),
    ):
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-7, atol=1e-10)


LOW = np.tril(regular(n=3))
DERIVATIVES: dict[str, Any] = {
    "solve, broadcast": (ops.matrix_solve, regular(2, 1, n=3), matrices(2, 3, 2)),
    "solve adjoint, one matrix": (
        lambda a, b: ops.matrix_solve(a, b, True), regular(n=3), matrices(2, 3, 1),
    ),
    "solve a vector": (ops.tensor_solve, regular(n=3), matrices(3)),
    "cholesky_solve": (lambda b, x: ops.cholesky_solve(b, x), matrices(2, 3, 2), LOW),
    "cholesky_solve, upper": (lambda b, x: ops.cholesky_solve(b, x, True), matrices(3, 1), LOW.T),
    "cholesky_inverse": (ops.cholesky_inverse, LOW),
    "cholesky_inverse, upper, full": (lambda x: ops.cholesky_inverse(x, True), regular(n=3)),
    "det": (ops.det, regular(2, n=4)),
    "qr": (lambda x: ops.qr(x), matrices(4, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_factorisations_have_derivatives_to_third_order(name: str) -> None:
    fn, *arrays = DERIVATIVES[name]
    check_grads(fn, [np.ascontiguousarray(a) for a in arrays], order=3, tolerance=3e-7)


def test_fourth_derivative_of_an_inverse() -> None:
    """Of 1/(2 + t) = inverse of [[2 + t]]: 24/(2 + t)^5; to any order, there is nothing that ends."""

    def f(t: Tensor) -> Tensor:
        return ops.inverse((t + 2.0).reshape(1, 1)).sum()

    for _ in range(9):
        f = ms.grad(f)
    got = float(f(Tensor(0.0, ms.float64)))
    assert got == pytest.approx(-362880 / 2**10, rel=1e-12)


@pytest.mark.parametrize("transform", [ms.grad, ms.hessian, ms.laplacian])
def test_one_factorisation_for_a_value_and_its_derivatives(transform: Any) -> None:
    a, b = Tensor(regular()), Tensor(matrices(5, 1))
    for fn in (
        lambda a: ops.matrix_solve(a, b).sum(),
        lambda a: ops.slogdet(a)[1],
        lambda a: ops.inverse(a).sum(),
        ops.det,
        lambda a: ops.matrix_solve(a, b).sum() + ops.logdet(a) + ops.inverse(a).sum(),
    ):
        assert ms.plan_text(transform(fn), a).count("call LUFactors") == 1


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ops.inverse(Tensor(np.zeros((2, 3, 3)))), "inverse: Singular matrix"),
        (lambda: ops.matrix_solve(Tensor(np.ones((2, 2))), Tensor(np.ones((2, 1)))), "Singular matrix"),
        (lambda: ops.matrix_solve(Tensor(np.eye(3)), Tensor(np.ones((2, 1)))), "does not fit"),
        (lambda: ops.cholesky_solve(Tensor(np.ones((2, 1))), Tensor(np.zeros((2, 2)))), "Singular"),
        (lambda: ops.cholesky_inverse(Tensor(np.zeros((2, 2)))), "cholesky_inverse: Singular matrix"),
        (lambda: ops.cholesky(Tensor([[1.0, 2.0], [2.0, 1.0]])), "not positive definite"),
        (lambda: ms.grad(ops.det)(Tensor(np.ones((4, 4)))), "Singular matrix; det"),
    ],
)  # fmt: skip
def test_what_has_no_answer(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("pairs", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("n", [1, 3, 17, 90])
def test_factors_of_damped_matrices(n: int, pairs: bool) -> None:
    """Lower triangles alone are read; the damping is each matrix's own."""
    a = matrices(2, n, n) + (1j * matrices(2, n, n) if pairs else 0)
    a = a @ a.swapaxes(1, 2).conj()
    damping = np.array([0.25, 3.0]).reshape(2, 1, 1)
    wanted = np.linalg.cholesky(a + damping * np.eye(n))
    half = np.tril(a) + np.triu(np.full((n, n), np.nan), 1)

    def parts(x: np.ndarray) -> Tensor:
        return Tensor(np.stack([x.real, x.imag], -1) if pairs else x)

    factor = ms.jit(lambda a, d: ms._core.ops.damped_cholesky_factor(a, d, pairs))
    got = factor(parts(half), parts(damping)).asnumpy()
    got = got[..., 0] + 1j * got[..., 1] if pairs else got
    np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-11 * np.abs(wanted).max())


def test_a_damping_of_another_shape() -> None:
    with pytest.raises(ValueError, match=r"damping must be of shape \[1, 1\], got shape \[3, 3\]"):
        ms._core.ops.damped_cholesky_factor(Tensor(np.eye(3)), Tensor(np.eye(3)), False)


#: Lengths about those at which a long line becomes a sheet.
@pytest.mark.parametrize("n", [4095, 4096, 4099, 10007, 70000])
def test_gradient_of_long_products(n: int) -> None:
    x = RNG.uniform(0.99, 1.01, n)
    for zeros in ((), (17,), (3, n - 1)):
        x[list(zeros)] = 0
        wanted = np.array([1.0]) if len(zeros) > 1 else np.delete(x, list(zeros)).prod()
        got = ms.grad(lambda t: ops.prod(t, None))(Tensor(x)).asnumpy()
        if not zeros:
            np.testing.assert_allclose(got, wanted / x, rtol=1e-11)
        elif len(zeros) == 1:
            assert np.flatnonzero(got).tolist() == [17] and got[17] == pytest.approx(
                wanted, rel=1e-11
            )
        else:
            assert not got.any()
        x = RNG.uniform(0.99, 1.01, n)
    v = Tensor(RNG.standard_normal(n))  # second order: v' H v = p ((sum v/x)^2 - sum (v/x)^2)
    slope = ms.grad(lambda t: (ms.grad(lambda u: ops.prod(u, None))(t) * v).sum())
    got = float((slope(Tensor(x)) * v).sum())
    ratio = v.asnumpy() / x
    assert got == pytest.approx(x.prod() * (ratio.sum() ** 2 - (ratio**2).sum()), rel=1e-9)


@pytest.mark.parametrize("shape", [(3, 3), (40, 40), (2, 5, 5), (0, 0)], ids=str)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", ["N", "T", "C"])
@pytest.mark.parametrize("complex_ones", [False, True])
def test_triangular_solutions(
    shape: tuple[int, ...], lower: bool, trans: str, complex_ones: bool
) -> None:
    a = matrices(*shape) + 4 * np.eye(shape[-1])
    b = matrices(*shape[:-1], 7)
    if complex_ones:
        a, b = a + 1j * matrices(*shape), b + 1j * matrices(*b.shape)
    found = ms.scipy.linalg.solve_triangular(Tensor(a), Tensor(b), trans, lower)
    part = np.tril(a) if lower else np.triu(a)
    turned = {"N": part, "T": np.swapaxes(part, -2, -1), "C": np.swapaxes(part, -2, -1).conj()}[
        trans
    ]
    wanted = np.linalg.solve(turned, b)
    np.testing.assert_allclose(found.asnumpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("n, columns", [(5, 3), (70, 1), (70, 600)])
@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_triangular_solutions_of_narrow_floats(
    n: int, columns: int, trans: str, dtype: str
) -> None:
    """They are those of float32, rounded to the dtype."""
    a = Tensor(np.tril(matrices(n, n)) / n + 2 * np.eye(n), getattr(ms, dtype))
    b = Tensor(matrices(n, columns), getattr(ms, dtype))
    found = ms.scipy.linalg.solve_triangular(a, b, trans, True)
    assert found.dtype == a.dtype
    exact = a.astype(ms.float64).asnumpy()
    wanted = np.linalg.solve(exact if trans == "N" else exact.T, b.astype(ms.float64).asnumpy())
    near = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}[dtype]
    np.testing.assert_allclose(found.astype(ms.float64).asnumpy(), wanted, near, near)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("n", [3, 20])
def test_derivatives_of_triangular_solutions(n: int, turned: bool) -> None:
    # (Divided, or solutions grow with n and the differences lose digits: one in 1,500 was too far off.)
    a, b = matrices(n, n) / np.sqrt(n) + 4 * np.eye(n), matrices(n, 2)

    def solve(a: Any, b: Any) -> Any:
        return ms.scipy.linalg.solve_triangular(a, b, int(turned), True)

    check_grads(solve, (a, b), order=2)
    above = ms.grad(lambda a: ops.sum(solve(a, Tensor(b)) ** 2))(Tensor(a)).asnumpy()
    assert np.all(np.triu(above, 1) == 0)


def test_a_triangle_with_a_zero_on_its_diagonal() -> None:
    with pytest.raises(ValueError, match=r"solve_triangular: Singular matrix"):
        ms.scipy.linalg.solve_triangular(Tensor(np.zeros((3, 3))), Tensor(np.ones(3))).asnumpy()
    with pytest.raises(ValueError, match=r"a b of shape \[4, 1\] does not fit"):
        ms.scipy.linalg.solve_triangular(Tensor(np.eye(3)), Tensor(np.ones((4, 1))))


@pytest.mark.parametrize("p", [None, 2, -2, "fro", 1, -1, np.inf, "nuc"])
def test_condition_numbers(p: Any) -> None:
    complex_ones = regular(n=3) + 1j * matrices(3, 3)
    for a in (regular(2, n=4), complex_ones, complex_ones.astype(np.complex64)):
        found = ops.cond(Tensor(a), p)
        assert found.asnumpy().dtype == a.real.dtype
        np.testing.assert_allclose(found.asnumpy(), np.linalg.cond(a, p), 1e-5)


@pytest.mark.parametrize("p", [None, 2, -2])
def test_condition_numbers_of_singular_matrices(p: Any) -> None:
    a = np.array([np.zeros((2, 2)), np.diag([1.0, 0.0])])
    np.testing.assert_array_equal(ops.cond(Tensor(a), p).asnumpy(), np.linalg.cond(a, p))
