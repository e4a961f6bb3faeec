"""Inverses, determinants and factorisations of matrices.

The factorisations are ops of the graph, which LAPACK computes in float64 or complex128 and rounds once;
eigenvectors of float32 matrices, and what their triangles solve, in float32. Around each is a call with a
derivative of its own, which is made of products, inverses and solutions again: exact for every order, and of
one factorisation.

Conventions of the rules: A^H is the conjugate transpose, a bar the cotangent of a real loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, unsupported
from gradcell.derivatives.own_derivatives import Pullback, call, fitted
from gradcell.ops.arrays import arrangement, shaping
from gradcell.ops.decorators import method, one_plan, wide_plan
from gradcell.ops.elements import complex_numbers
from gradcell.ops.reductions import reductions

__all__ = [
    "cholesky", "cholesky_inverse", "cholesky_solve", "det", "eigh", "inverse", "logdet",
    "matrix_power", "matrix_solve", "pinv", "qr", "slogdet", "svd", "tensor_solve",
]  # fmt: skip


def _square(value: Any, op: str, name: str = "input") -> Tensor:
    return arguments.floating(_any_square(value, op, name))


def _any_square(value: Any, op: str, name: str = "input") -> Tensor:
    x = arguments.tensor(value, op, name)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        bad_value(f"{op}: square matrices are needed, got shape {list(x.shape)}")
    return x


def _both(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both in their common dtype."""
    joint = _core.promote(a.dtype, b.dtype)
    return _ops.cast(a, joint), _ops.cast(b, joint)


class _Numbers:
    """Matrices as LAPACK's ops take them, in float64 and complex ones as pairs; and its results back in
    the matrices' dtype."""

    def __init__(self, dtype: _core.DType, singles: bool = False) -> None:
        self.dtype = dtype
        self.pairs = dtype.is_complex
        narrow = singles and dtype.name not in ("float64", "complex128")
        self.real = _core.float32 if narrow and not self.pairs else _core.float64

    def of(self, x: Tensor) -> Tensor:
        x = _ops.stop_gradient(x)
        if self.pairs:
            return _ops.view_as_real(_ops.cast(x, _core.complex128))
        return _ops.cast(x, self.real)

    def back(self, y: Tensor) -> Tensor:
        return _ops.cast(_ops.view_as_complex(y) if self.pairs else y, self.dtype)

    def part(self, y: Tensor, start: int, dims: Sequence[int]) -> Tensor:
        """An array of matrices' results of these dimensions, from the numbers of each matrix in y
        [..., numbers], or [..., numbers, 2]."""
        axis = y.ndim - (2 if self.pairs else 1)
        cut = shaping._window(y, axis, start, int(np.prod(dims)))
        return _ops.reshape(cut, [*y.shape[:axis], *dims, *y.shape[axis + 1 :]])

    def values(self, y: Tensor, count: int) -> Tensor:
        """The first numbers of each matrix in y, which are real, in the matrices' dtype."""
        return self.back(self.part(y, 0, [count]))


def _differentiable(
    op: str,
    values: Sequence[Tensor],
    inputs: Sequence[Tensor],
    adjoint: Callable[..., Sequence[Tensor | None]],
    *keep: Tensor,
) -> list[Tensor]:
    """The values as functions of inputs, by adjoint(inputs, outputs, their cotangents, *keep): the
    inputs' cotangents, which may be broadcast over more matrices than an input has."""
    if not any(x._traced for x in inputs):
        return list(values)

    def pull(xs: Any, outputs: Any, cotangents: Any, _: Any, kept: Any) -> Any:
        if all(c is None for c in cotangents):
            return [None] * len(xs)
        found = adjoint(xs, outputs, cotangents, *kept)
        return [fitted(g, x, op, k) for k, (g, x) in enumerate(zip(found, xs, strict=True))]

    recorded = [_core.record(x) for x in inputs]
    return call([_core.record(v) for v in values], recorded, Pullback(op, pull, keep))


def _transposed(x: Tensor) -> Tensor:
    """The conjugate transpose of complex matrices, the transpose of real ones."""
    return arrangement.adjoint(x)


def _product(*factors: Tensor) -> Tensor:
    out = factors[-1]
    for x in reversed(factors[:-1]):
        out = _ops.matmul(x, out)
    return out


def _identity(x: Tensor) -> Tensor:
    return Tensor(np.eye(x.shape[-1]), x.dtype)


def _ones_below(n: int, dtype: _core.DType, diagonal: float) -> Tensor:
    """[n, n]: 1 below the diagonal, 0 above."""
    return Tensor(np.tril(np.ones((n, n)), -1) + diagonal * np.eye(n), dtype)


# Inverses -----------------------------------------------------------------------------------------


def _factors(x: Tensor) -> Tensor:
    """The LU factors of matrices' values, which a value and all its derivatives share."""
    numbers = _Numbers(x.dtype)
    return _ops.lu_factors(numbers.of(x), numbers.pairs)


@method(one_plan)
def inverse(input: Any) -> Tensor:
    """The inverses of matrices [..., n, n]. Raises ValueError for a singular one."""
    x = _square(input, "inverse")
    return _inverse(x, _factors(x))


def _inverse(x: Tensor, factors: Tensor) -> Tensor:
    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        turned = _transposed(outputs[0])
        return [_ops.neg(_product(turned, cotangents[0], turned))]

    numbers = _Numbers(x.dtype)
    found = numbers.back(_ops.lu_inverse(factors, numbers.pairs))
    return _differentiable("inverse", [found], [x], adjoint)[0]


@one_plan
def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False) -> Tensor:
    """The solutions x of matrix x = rhs, or with the adjoint of the matrix if adjoint is set; [...,
    n, n], [..., n, k].

    Raises ValueError for a singular matrix.
    """
    a = _square(matrix, "matrix_solve", "matrix")
    b = arguments.floating(arguments.tensor(rhs, "matrix_solve", "rhs"))
    n = a.shape[-1]
    if b.ndim == 1 and b.size == n:
        return _ops.reshape(matrix_solve(a, _ops.reshape(b, [n, 1]), adjoint), [n])
    if b.ndim < 2 or b.shape[-2] != n:
        bad_value(
            f"matrix_solve: a rhs of shape {list(b.shape)} does not fit matrices of shape {list(a.shape)}"
        )
    a, b = _both(a, b)
    return _solution(a, b, adjoint, _factors(a))


def _solution(a: Tensor, b: Tensor, turned: bool, factors: Tensor) -> Tensor:
    """The solution of a x = b, of a^H x = b if turned."""

    def adjoint(xs: Any, outputs: Any, cotangents: Any, factors: Tensor) -> list[Tensor]:
        (a, _), (x,), (dx,) = xs, outputs, cotangents
        db = _solution(a, dx, not turned, factors)
        left, right = (x, db) if turned else (db, x)
        return [_ops.neg(_ops.matmul(left, _transposed(right))), db]

    numbers = _Numbers(b.dtype)
    factors, rows = _spread(factors, numbers.of(b), numbers.pairs)
    found = numbers.back(_ops.lu_solve(factors, rows, numbers.pairs, turned))
    return _differentiable("matrix_solve", [found], [a, b], adjoint, factors)[0]


def _spread(factors: Tensor, b: Tensor, pairs: bool) -> tuple[Tensor, Tensor]:
    """Both over the same leading dimensions."""
    rank = 3 if pairs else 2
    lead = np.broadcast_shapes(factors.shape[:-rank], b.shape[:-rank])
    return (
        _ops.broadcast_to(factors, [*lead, *factors.shape[-rank:]]),
        _ops.broadcast_to(b, [*lead, *b.shape[-rank:]]),
    )


def tensor_solve(a: Any, b: Any) -> Tensor:
    """Solves linear systems as matrix_solve does; b may also be a vector."""
    right = arguments.tensor(b, "solve", "b")
    if right.ndim > 1:
        return matrix_solve(a, right)
    return shaping.squeeze(matrix_solve(a, _ops.reshape(right, [right.size, 1])), -1)


@one_plan
def pinv(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse of matrices [..., m, n] of any rank.

    Singular values up to max(atol, rtol times the largest), numbers or one for each matrix, count as
    zero; without both rtol is max(m, n) times the dtype's epsilon. hermitian: the matrices are those
    whose lower triangle is x's. The derivative (Golub, Pereyra 1973, SIAM J. Numer. Anal. 10, equation
    4.12) is that among matrices of the same rank.
    """
    t = arguments.floating(arguments.tensor(x, "pinv", "x"))
    if t.ndim < 2:
        bad_value(f"pinv: matrices are needed, got shape {list(t.shape)}")
    if hermitian:
        t = of_triangle(t, True)
    left, values, right = _singular(_ops.stop_gradient(t), False)
    values = complex_numbers.real(values)
    if atol is None and rtol is None:
        rtol = max(t.shape[-2:]) * float(np.finfo(_real_name(t.dtype)).eps)
    atol, rtol = (
        0.0 if limit is None else limit if isinstance(limit, float) else _column(limit)
        for limit in (atol, rtol)
    )
    least = _ops.maximum(_ops.mul(reductions.largest(values, [-1], True), rtol), atol)
    kept = _ops.greater(values, least)
    scales = _ops.where(kept, _ops.div(1.0, _ops.where(kept, values, 1.0)), 0.0)
    scaled = _ops.mul(right, _ops.cast(_row(scales), right.dtype))
    found = _ops.matmul(scaled, _transposed(left))

    whole = _of_matrices(_ops.equal(_ops.reduce_sum(_ops.logical_not(kept), [-1]), 0))

    def adjoint(xs: Any, outputs: Any, cotangents: Any, whole: Tensor) -> list[Tensor]:
        (a,), (p,), (d,) = xs, outputs, cotangents
        turned, back = _transposed(p), _transposed(d)

        def rest(x: Tensor, least: bool) -> Tensor:
            """1 - x; 0 where x is 1 for all matrices nearby: of full rank, on its shorter side."""
            y = _ops.sub(_identity(x), x)
            return _ops.where(whole, 0.0, y) if least else y

        m, n = a.shape[-2:]
        found = _ops.neg(_product(turned, d, turned))
        found = _ops.add(found, _product(rest(_ops.matmul(a, p), m <= n), back, p, turned))
        return [_ops.add(found, _product(turned, p, back, rest(_ops.matmul(p, a), n <= m)))]

    return _differentiable("pinv", [found], [t], adjoint, whole)[0]


def _column(limits: Any) -> Any:
    """Numbers, one for each matrix, as [..., 1]; a number as it is."""
    given = limits if isinstance(limits, Tensor) else Tensor(np.asarray(limits))
    return _ops.reshape(given, [*given.shape, 1]) if given.ndim else limits


def of_triangle(x: Tensor, lower: bool) -> Tensor:
    """The symmetric (Hermitian) matrices of which x's lower or upper triangle is one half."""
    half, strict = (shaping.tril(x), shaping.tril(x, -1)) if lower else (
        shaping.triu(x), shaping.triu(x, 1)
    )  # fmt: skip
    return _ops.add(half, _transposed(strict))


def _real_name(dtype: _core.DType) -> str:
    """NumPy's name of the real numbers whose epsilon a matrix of this dtype has."""
    return "float64" if dtype.name in ("float64", "complex128") else "float32"


def _row(values: Tensor) -> Tensor:
    """[..., 1, n]."""
    return _ops.reshape(values, [*values.shape[:-1], 1, values.shape[-1]])


def _real_row(values: Tensor) -> Tensor:
    """The same of complex numbers whose imaginary parts mean nothing."""
    real = (
        _ops.cast(complex_numbers.real(values), values.dtype) if values.dtype.is_complex else values
    )
    return _row(real)


# Determinants -------------------------------------------------------------------------------------


def _determinant(factors: Tensor, numbers: _Numbers, *parts: int) -> list[Tensor]:
    """Parts of what the factors say, [...]: 0 the sign, 2 the logarithm of the size, 3 the whole."""
    every = _ops.lu_determinant(factors, numbers.pairs)
    dims = list(every.shape[:-1])

    def piece(start: int) -> Tensor:
        one = shaping._window(every, len(dims), start, 1)
        if not numbers.pairs or start == 2:
            return _ops.reshape(one, dims)
        pair = shaping._window(every, len(dims), start, 2)
        return _ops.view_as_complex(_ops.reshape(pair, [*dims, 2]))

    return [_ops.cast(piece(k), numbers.dtype) for k in parts]


@method(one_plan)
def slogdet(input: Any) -> tuple[Tensor, Tensor]:
    """(the sign of the determinant, the logarithm of its absolute value) of matrices [..., n, n].

    The sign of a complex determinant is a number of modulus 1; both results are complex then.
    """
    x = _square(input, "slogdet")
    numbers, factors = _Numbers(x.dtype), _factors(x)
    sign, size = _determinant(factors, numbers, 0, 2)

    def adjoint(xs: Any, outputs: Any, cotangents: Any, factors: Tensor) -> list[Tensor]:
        turned = _transposed(_inverse(xs[0], factors))
        return [_ops.mul(_of_matrices(cotangents[0]), turned)]

    if not x.dtype.is_complex:
        return sign, _differentiable("slogdet", [size], [x], adjoint, factors)[0]
    log = complex_numbers.made(complex_numbers.part(size, 0), complex_numbers.angle(sign))
    if not x._traced:
        return sign, size
    log = _differentiable("slogdet", [log], [x], adjoint, factors)[0]
    turn = complex_numbers.part(log, 1)
    return (
        complex_numbers.made(_ops.cos(turn), _ops.sin(turn)),
        _ops.cast(complex_numbers.part(log, 0), x.dtype),
    )


def _of_matrices(numbers: Tensor) -> Tensor:
    """[..., 1, 1]."""
    return _ops.reshape(numbers, [*numbers.shape, 1, 1])


@method(one_plan)
def det(input: Any) -> Tensor:
    """The determinants of matrices [..., n, n].

    Differentiable at invertible matrices; up to 3 x 3, at all matrices.
    """
    x = _square(input, "det")
    n = x.shape[-1]
    if n <= 3:
        return _small_det(x, n)
    factors = _factors(x)

    def adjoint(xs: Any, outputs: Any, cotangents: Any, factors: Tensor) -> list[Tensor]:
        scale = _ops.mul(complex_numbers.conj(outputs[0]), cotangents[0])
        return [_ops.mul(_of_matrices(scale), _transposed(_inverse(xs[0], factors)))]

    found = _determinant(factors, _Numbers(x.dtype), 3)
    return _differentiable("det", found, [x], adjoint, factors)[0]


@wide_plan
def _small_det(x: Tensor, n: int) -> Tensor:
    """By the first row (Laplace)."""
    if n == 0:
        return _ops.full(list(x.shape[:-2]), 1, x.dtype)
    if n == 1:
        return _ops.reshape(x, list(x.shape[:-2]))
    first = _ops.reshape(shaping._window(x, x.ndim - 2, 0, 1), [*x.shape[:-2], n])
    below = shaping._window(x, x.ndim - 2, 1, n - 1)
    columns = shaping._cut(below, x.ndim - 1, [1] * n)
    out = None
    for j, head in enumerate(shaping._cut(first, first.ndim - 1, [1] * n)):
        minor = _ops.concat([c for i, c in enumerate(columns) if i != j], x.ndim - 1)
        term = _ops.mul(_ops.reshape(head, list(x.shape[:-2])), _small_det(minor, n - 1))
        out = term if out is None else (_ops.sub if j % 2 else _ops.add)(out, term)
    assert out is not None
    return out


@method()
def logdet(input: Any) -> Tensor:
    """log of the determinants of matrices [..., n, n]: NaN where a real one is negative."""
    sign, size = slogdet(input)
    if sign.dtype.is_complex:
        return complex_numbers.made(complex_numbers.part(size, 0), complex_numbers.angle(sign))
    return _ops.where(_ops.less(sign, 0), float("nan"), size)


# Factorisations -----------------------------------------------------------------------------------


@method(one_plan)
def cholesky(input_x: Any, upper: bool = False) -> Tensor:
    """L with L L' = A for symmetric (Hermitian) positive definite matrices A [..., n, n]; L' if upper.

    Raises ValueError for a matrix that is not positive definite. The derivative (Murray 2016,
    arXiv:1602.07527, equation 10) is symmetric.
    """
    x = _square(input_x, "cholesky", "input_x")

    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        (root,), (d,) = outputs, cotangents
        half = _ones_below(root.shape[-1], root.dtype, 0.5)
        inner = _ops.mul(_ops.matmul(_transposed(root), d), half)
        left = _triangular_solution(inner, root, True)
        found = _triangular_solution(_transposed(left), root, True)
        return [_ops.mul(_ops.add(found, _transposed(found)), 0.5)]

    numbers = _Numbers(x.dtype)
    found = numbers.back(_ops.cholesky_factor(numbers.of(x), numbers.pairs))
    root = _differentiable("cholesky", [found], [x], adjoint)[0]
    return _transposed(root) if upper else root


@method(one_plan)
def cholesky_inverse(input_x: Any, upper: bool = False) -> Tensor:
    """The inverse of L L' (of L' L if upper) from its factor L, all of input_x, as in MindSpore.

    Raises ValueError for a singular one.
    """
    x = _square(input_x, "cholesky_inverse", "input_x")
    x = _transposed(x) if upper else x

    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        (x,), (y,), (dy,) = xs, outputs, cotangents
        both = _ops.add(dy, _transposed(dy))
        return [_ops.neg(_product(y, both, _ops.matmul(y, x)))]

    numbers = _Numbers(x.dtype)
    found = numbers.back(_ops.cholesky_inverse(numbers.of(x), numbers.pairs))
    return _differentiable("cholesky_inverse", [found], [x], adjoint)[0]


@method(one_plan)
def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Tensor:
    """The solutions of L L' x = input (of L' L x if upper) from the factor L, one triangle of input2.

    input2: the factor [n, n]. Raises ValueError for a singular one.
    """
    x = _square(input2, "cholesky_solve", "input2")
    b = arguments.floating(arguments.tensor(input, "cholesky_solve", "input"))
    if b.ndim < 2 or b.shape[-2] != x.shape[-1]:
        bad_value(
            f"cholesky_solve: an input of shape {list(b.shape)} does not fit factors of shape {list(x.shape)}"
        )
    b, x = _both(b, x)
    return _factor_solution(b, shaping.tril(_transposed(x) if upper else x))


def _factor_solution(b: Tensor, low: Tensor) -> Tensor:
    """The solution of L L' x = b."""

    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        (_, low), (x,), (dx,) = xs, outputs, cotangents
        db = _factor_solution(dx, low)
        both = _ops.matmul(db, _transposed(x))
        both = _ops.add(both, _transposed(both))
        return [db, _ops.neg(_ops.matmul(both, low))]

    numbers = _Numbers(b.dtype)
    factors, rows = _spread(numbers.of(low), numbers.of(b), numbers.pairs)
    found = numbers.back(_ops.cholesky_solve(factors, rows, numbers.pairs))
    return _differentiable("cholesky_solve", [found], [b, low], adjoint)[0]


def triangular_solution(matrix: Any, rhs: Any, turned: bool = False) -> Tensor:
    """The solutions of L x = rhs, of L^H x = rhs if turned, for the lower triangle L of a matrix [..., n, n];
    rhs [..., n, k] or [n]. Raises ValueError for a zero on the diagonal."""
    low = _square(matrix, "solve_triangular", "a")
    b = arguments.floating(arguments.tensor(rhs, "solve_triangular", "b"))
    if b.ndim == 1:
        return shaping.squeeze(triangular_solution(low, _ops.reshape(b, [b.size, 1]), turned), -1)
    if b.ndim == 0 or b.shape[-2] != low.shape[-1]:
        bad_value(
            f"solve_triangular: a b of shape {list(b.shape)} does not fit matrices of shape {list(low.shape)}"
        )
    b, low = _both(b, low)
    return _triangular_solution(b, low, turned)


def _triangular_solution(b: Tensor, low: Tensor, turned: bool) -> Tensor:
    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        (_, low), (x,), (dx,) = xs, outputs, cotangents
        db = _triangular_solution(dx, low, not turned)
        left, right = (x, db) if turned else (db, x)
        return [db, shaping.tril(_ops.neg(_ops.matmul(left, _transposed(right))))]

    numbers = _Numbers(b.dtype, singles=True)
    factors, rows = _spread(numbers.of(low), numbers.of(b), numbers.pairs)
    found = numbers.back(_ops.triangular_solve(factors, rows, numbers.pairs, turned))
    return _differentiable("solve_triangular", [found], [b, low], adjoint)[0]


@one_plan
def qr(input: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """(Q with orthonormal columns, R upper triangular) with Q R = A, for [..., m, n].

    Differentiable where the first min(m, n) columns are independent, but for mode 'complete' of more
    rows than columns, whose derivative raises NotImplementedError (Roberts, Roberts 2020,
    arXiv:2009.10071, section 2).

    mode: 'reduced', Q [..., m, min(m, n)] and R [..., min(m, n), n]; or 'complete', Q [..., m, m]
    and R [..., m, n].
    """
    x = arguments.floating(arguments.tensor(input, "qr"))
    arguments.one_of(mode, ("reduced", "complete"), "qr", "mode")
    if x.ndim < 2:
        bad_value(f"qr: matrices are needed, got shape {list(x.shape)}")
    m, n = x.shape[-2:]
    if x._traced and m < n:  # the first columns say what Q is
        head = shaping._window(x, x.ndim - 1, 0, m)
        q, first = qr(head, mode)
        tail = shaping._window(x, x.ndim - 1, m, n - m)
        return q, _ops.concat([first, _ops.matmul(_transposed(q), tail)], x.ndim - 1)
    numbers, columns = _Numbers(x.dtype, singles=True), m if mode == "complete" else min(m, n)
    found = _ops.qr_factors(numbers.of(x), numbers.pairs, mode == "complete", True)
    parts = [
        numbers.back(numbers.part(found, 0, [m, columns])),
        numbers.back(numbers.part(found, m * columns, [columns, n])),
    ]

    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        if columns > n:
            unsupported(
                "qr: mode 'complete' has no derivative for matrices of more rows than columns, got "
                f"{list(x.shape)}; use mode 'reduced'"
            )
        (q, r), (dq, dr) = outputs, cotangents
        inner = _ops.neg(_ops.matmul(_transposed(dq), q)) if dq is not None else None
        if dr is not None:
            other = _ops.matmul(r, _transposed(dr))
            inner = other if inner is None else _ops.add(inner, other)
        assert inner is not None
        below = _ops.mul(inner, _ones_below(n, inner.dtype, 0.5))
        found = _ops.matmul(q, _ops.add(below, _transposed(below)))
        found = found if dq is None else _ops.add(found, dq)
        return [_transposed(matrix_solve(r, _transposed(found)))]

    q, r = _differentiable("qr", parts, [x], adjoint)
    return q, r


@overload
def svd(
    input: Tensor, full_matrices: bool = False, compute_uv: Literal[True] = True
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def svd(input: Tensor, full_matrices: bool = False, *, compute_uv: Literal[False]) -> Tensor: ...
@overload
def svd(input: Tensor, full_matrices: bool, compute_uv: Literal[False]) -> Tensor: ...
@method()
def svd(input: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """(singular values, U, V) with U diag(s) V' = A, for [..., m, n]; the values alone without
    compute_uv.

    full_matrices: whether u and v are square.

    Values are differentiable where they are not zero and no two are equal or only they are asked for
    once; vectors where all values are different and not zero, of real matrices and reduced factors.
    Other derivatives of the vectors raise NotImplementedError. (Townsend 2016, Differentiating the
    singular value decomposition, section 3.)
    """
    x = arguments.floating(arguments.tensor(input, "svd"))
    if x.ndim < 2:
        bad_value(f"svd: matrices are needed, got shape {list(x.shape)}")
    if not compute_uv:
        return _singular_values(x)
    left, values, right = _singular(x, bool(full_matrices))
    return values, left, right


@one_plan
def _singular_values(x: Tensor) -> Tensor:
    numbers = _Numbers(x.dtype)
    found = _ops.singular_factors(numbers.of(x), numbers.pairs, False, False)

    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        return [_from_values(xs[0], cotangents[0])]

    values = numbers.values(found, min(x.shape[-2:]))
    return _differentiable("svd", [values], [x], adjoint)[0]


def _from_values(x: Tensor, ds: Tensor) -> Tensor:
    """U diag(ds) V', in which phases of the vectors cancel."""
    u, _, v = _singular(x, False, True)
    return _ops.matmul(_ops.mul(u, _real_row(ds)), _transposed(v))


@one_plan
def _singular(x: Tensor, full: bool, any_phase: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """(U, singular values, V).

    any_phase: whether what is computed of the vectors is the same for all phases of complex ones.
    """
    (m, n), numbers = x.shape[-2:], _Numbers(x.dtype)
    k = min(m, n)
    found = _ops.singular_factors(numbers.of(x), numbers.pairs, full, True)
    columns, rows = (m, n) if full else (k, k)
    parts = [
        numbers.back(numbers.part(found, k, [m, columns])),
        numbers.values(found, k),
        _transposed(numbers.back(numbers.part(found, k + m * columns, [rows, n]))),
    ]

    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        (u, s, v), (du, ds, dv) = outputs, cotangents
        if full and m != n:
            u, v = (shaping._window(y, y.ndim - 1, 0, k) for y in (u, v))
        alone = du is None and dv is None
        if alone and (full or (x.dtype.is_complex and not any_phase)):
            return [_from_values(xs[0], ds)]
        if alone:
            return [_ops.matmul(_ops.mul(u, _real_row(ds)), _transposed(v))]
        if (x.dtype.is_complex and not any_phase) or (full and m != n):
            what = "complex matrices" if x.dtype.is_complex else "full_matrices=True"
            unsupported(f"svd: vectors of {what} have no derivative")
        return [_singular_adjoint(u, s, v, du, ds, dv)]

    u, values, v = _differentiable("svd", parts, [x], adjoint)
    return u, values, v


def _singular_adjoint(
    u: Tensor, s: Tensor, v: Tensor, du: Tensor | None, ds: Tensor | None, dv: Tensor | None
) -> Tensor:
    row, column = _row(s), _ops.reshape(s, [*s.shape, 1])
    eye = _identity(u)
    gaps, sums = _ops.add(_ops.sub(row, column), eye), _ops.add(_ops.add(row, column), eye)
    below, off = _ops.div(1.0, row), _ops.sub(1.0, eye)

    def turned(x: Tensor, dx: Tensor, scale: Tensor) -> Tensor:
        inner = _ops.matmul(_transposed(x), dx)
        share = _ops.div(
            _ops.div(scale, sums), gaps
        )  # no product of singular values: it may overflow
        return _ops.mul(_ops.mul(_ops.sub(inner, _transposed(inner)), off), share)

    inner = None if ds is None else _ops.mul(eye, _real_row(ds))
    for x, dx, scale in ((u, du, row), (v, dv, column)):
        if dx is not None:
            part = turned(x, dx, scale)
            inner = part if inner is None else _ops.add(inner, part)
    assert inner is not None
    if u.dtype.is_complex and du is not None:  # a turn of both vectors' phases, which cancels in V
        phase = _ops.matmul(_transposed(u), du)
        phase = _ops.mul(_ops.sub(phase, _transposed(phase)), _ops.mul(eye, 0.5))
        inner = _ops.add(inner, _ops.mul(phase, below))
    found = _product(u, inner, _transposed(v))
    for x, dx in ((u, du), (v, dv)):
        if dx is None or x.shape[-2] == x.shape[-1]:
            continue
        scaled = _ops.mul(dx, below)
        outside = _ops.sub(scaled, _ops.matmul(x, _ops.matmul(_transposed(x), scaled)))
        parts = (outside, v) if x is u else (u, outside)
        more = _ops.matmul(parts[0], _transposed(parts[1]))
        found = _ops.add(found, more)
    return found


@one_plan
def eigh(input: Any) -> tuple[Tensor, Tensor]:
    """(eigenvalues in ascending order, eigenvectors as columns) of symmetric matrices [..., n, n].

    The lower triangle is what is read. The derivative is that among symmetric matrices, and itself
    symmetric: of two elements that mirror each other each gets half of what moving both changes.

    Eigenvalues always have a first derivative; higher derivatives, and those of eigenvectors, need
    distinct eigenvalues; derivatives of complex vectors raise NotImplementedError: they have no
    phase of their own. (Giles 2008, Collected matrix derivative results, section 3.1.)
    """
    return _eigen(_square(input, "eigh"), False)


@one_plan
def _eigen(x: Tensor, any_phase: bool) -> tuple[Tensor, Tensor]:
    """eigh; any_phase: whether what is computed of the vectors is the same for all their phases."""
    n, numbers = x.shape[-1], _Numbers(x.dtype, singles=True)
    found = _ops.eigen_factors(numbers.of(x), numbers.pairs)
    flat = _ops.reshape(found, [*x.shape[:-2], (n + 1) * n, *([2] if numbers.pairs else [])])
    parts = [numbers.values(flat, n), numbers.back(numbers.part(flat, n, [n, n]))]

    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        (values, vectors), (dw, dv) = outputs, cotangents
        free = x.dtype.is_complex and not any_phase
        if free and dv is None:
            values, vectors = _eigen(xs[0], True)
        turned, inner = _transposed(vectors), None
        if dv is not None:
            if free:
                unsupported("eigh: vectors of complex matrices have no derivative")
            eye = _identity(vectors)
            gaps = _ops.sub(_row(values), _ops.reshape(values, [*values.shape, 1]))
            inner = _ops.mul(_ops.matmul(turned, dv), _ops.sub(1.0, eye))
            inner = _ops.div(inner, _ops.add(gaps, eye))
            inner = _ops.mul(_ops.add(inner, _transposed(inner)), 0.5)
            if dw is not None:
                inner = _ops.add(inner, _ops.mul(eye, _real_row(dw)))
            return [_product(vectors, inner, turned)]
        scaled = _ops.mul(vectors, _real_row(dw))
        return [_ops.matmul(scaled, turned)]

    values, vectors = _differentiable("eigh", parts, [x], adjoint)
    return values, vectors


@method(one_plan)
def matrix_power(input: Any, n: int) -> Tensor:
    """The n-th power of matrices, by squaring; of the inverse for a negative n. Integers stay integers
    unless n is negative."""
    x, count = _any_square(input, "matrix_power"), arguments.integer(n, "matrix_power", "n")
    x, count = (inverse(x), -count) if count < 0 else (x, count)
    out = None
    while count:
        if count & 1:
            out = x if out is None else _ops.matmul(out, x)
        count >>= 1
        x = _ops.matmul(x, x) if count else x
    return _ops.broadcast_to(_identity(x), list(x.shape)) if out is None else out
