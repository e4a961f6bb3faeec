"""Inverses, determinants and factorisations of matrices.

What has to look at the numbers (which row is the pivot) is done by LAPACK on their value, in float64 or
complex128, and rounded once; eigenvectors of float32 matrices in float32. Inverses, solutions, determinants
and Cholesky's factors are then calls with a derivative of their own, which are products with inverses and
solutions again: exact for every order, and of one factorisation. Singular values and eigenvectors come from
steps of an iteration that starts at LAPACK's: a step at the solution changes nothing but rounding errors, and
squares what is missing in the dependence on the matrix, so that after three of them derivatives are exact up
to order 7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.ops import complex_numbers, shaping
from gradcell.ops.one_plan import one_plan
from gradcell.own_derivatives import Pullback, call, fitted

_ops, _lapack = _core.ops, _core.lapack

#: Steps of an iteration: derivatives are exact up to order 2^steps - 1.
_STEPS = 3


def _square(value: Any, op: str, name: str = "input") -> Tensor:
    x = arguments.floating(arguments.tensor(value, op, name))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{op}: square matrices are needed, got shape {list(x.shape)}{where()}")
    return x


def _found(op: str, function: Any, *arguments: Any) -> Any:
    """What LAPACK makes of float64 or complex128 copies. Raises ValueError where it finds no answer."""
    try:
        return function(*(_wide(a) for a in arguments))
    except (np.linalg.LinAlgError, ValueError) as error:
        raise ValueError(f"{op}: {error}{where()}") from None


def _wide(a: Any) -> np.ndarray:
    return np.ascontiguousarray(a, np.result_type(a, np.float64))


def _no_half(x: Tensor) -> np.ndarray:
    numbers = x.asnumpy()
    return numbers.astype(np.float32) if numbers.dtype.itemsize == 2 else numbers


def _turned(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.swapaxes(a, -2, -1))


def _differentiable(
    op: str, value: Tensor, inputs: Sequence[Tensor], adjoint: Callable[..., Sequence[Tensor]]
) -> Tensor:
    """The value as a function of inputs, by adjoint(*inputs, output, its cotangent): their cotangents,
    which may be broadcast over more matrices than an input has."""
    if not any(x._traced for x in inputs):
        return value

    def pull(xs: Any, outputs: Any, cotangents: Any, _: Any) -> Any:
        if cotangents[0] is None:
            return [None] * len(xs)
        found = adjoint(*xs, outputs[0], cotangents[0])
        return [fitted(g, x, op, k) for k, (g, x) in enumerate(zip(found, xs, strict=True))]

    recorded = [_core.record(x) for x in inputs]
    return call([_core.record(value)], recorded, Pullback(op, pull))[0]


def _transposed(x: Tensor) -> Tensor:
    """The conjugate transpose of complex matrices, the transpose of real ones."""
    return complex_numbers.adjoint(x)


def _values_alone(x: Tensor, op: str) -> None:
    """Raises NotImplementedError where a derivative is asked for and the numbers are complex."""
    if x._traced and x.dtype.is_complex:
        raise NotImplementedError(
            f"{op}: there are no derivatives for complex matrices, whose vectors have no phase of their "
            f"own; for values alone call it outside{where()}"
        )


def _identity(x: Tensor) -> Tensor:
    return Tensor(np.eye(x.shape[-1]), x.dtype)


# Inverses -----------------------------------------------------------------------------------------


class _Factors:
    """The LU factors of matrices' values, which a value and all its derivatives share."""

    def __init__(self, op: str, x: Tensor) -> None:
        self.op, self.dtype = op, x.dtype
        self.factors, self.pivots = _found(op, _lapack.lu, x.asnumpy())
        self.diagonal = np.diagonal(self.factors, 0, -2, -1)

    def check(self) -> None:
        """Raises ValueError for a singular matrix."""
        if (self.diagonal == 0).any():
            raise ValueError(f"{self.op}: Singular matrix{where()}")

    def inverse(self) -> np.ndarray:
        self.check()
        return _lapack.lu_inverse(self.factors, self.pivots)  # type: ignore[no-any-return]

    def solve(self, b: np.ndarray, adjoint: bool) -> np.ndarray:
        """[..., n, k] for right-hand sides b; leading dimensions broadcast."""
        self.check()
        factors, pivots, b = self.factors, self.pivots, _wide(b)
        if np.iscomplexobj(factors) != np.iscomplexobj(b):
            factors, b = (a.astype(np.complex128) for a in (factors, b))
        lead = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
        if lead != factors.shape[:-2]:
            factors = np.ascontiguousarray(np.broadcast_to(factors, lead + factors.shape[-2:]))
            pivots = np.ascontiguousarray(np.broadcast_to(pivots, lead + pivots.shape[-1:]))
        b = np.broadcast_to(b, lead + b.shape[-2:])
        rows = _turned(b.conj() if adjoint else b)
        x = np.swapaxes(_lapack.lu_solve(factors, pivots, rows, adjoint), -2, -1)
        return x.conj() if adjoint else x

    def sign_and_log(self) -> tuple[np.ndarray, np.ndarray]:
        """(the sign of the determinant, log of its size)."""
        size = np.abs(self.diagonal)
        n = self.pivots.shape[-1]
        swaps = np.count_nonzero(self.pivots != np.arange(1, n + 1), -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            sign = np.prod(self.diagonal / size, -1) * (1 - 2 * (swaps % 2))
            return np.where((size == 0).any(-1), 0, sign), np.log(size).sum(-1)


def inverse(input: Any) -> Tensor:
    """The inverses of matrices [..., n, n]. Asks for the value. Raises ValueError for a singular one."""
    x = _square(input, "inverse")
    return _inverse(x, _Factors("inverse", x))


def _inverse(x: Tensor, factors: _Factors) -> Tensor:
    def adjoint(x: Tensor, y: Tensor, dy: Tensor) -> list[Tensor]:
        turned = _transposed(y)
        return [_ops.neg(_ops.matmul(turned, _ops.matmul(dy, turned)))]

    return _differentiable("inverse", Tensor(factors.inverse(), x.dtype), [x], adjoint)


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False) -> Tensor:
    """The solutions x of matrix x = rhs, of the transposed matrix if adjoint; [..., n, n], [..., n, k].

    Asks for the value. Raises ValueError for a singular matrix.
    """
    a = _square(matrix, "matrix_solve", "matrix")
    b = arguments.floating(arguments.tensor(rhs, "matrix_solve", "rhs"))
    n = a.shape[-1]
    if b.ndim == 1 and b.size == n:
        return _ops.reshape(matrix_solve(a, _ops.reshape(b, [n, 1]), adjoint), [n])
    if b.ndim < 2 or b.shape[-2] != n:
        raise ValueError(
            f"matrix_solve: a rhs of shape {list(b.shape)} does not fit matrices of shape "
            f"{list(a.shape)}{where()}"
        )
    return _solution(a, b, adjoint, _Factors("matrix_solve", a))


def _solution(a: Tensor, b: Tensor, turned: bool, factors: _Factors) -> Tensor:
    """The solution of a x = b, of a^H x = b if turned."""

    def adjoint(a: Tensor, b: Tensor, x: Tensor, dx: Tensor) -> list[Tensor]:
        db = _solution(a, dx, not turned, factors)
        left, right = (x, db) if turned else (db, x)
        return [_ops.neg(_ops.matmul(left, _transposed(right))), db]

    found = Tensor(np.ascontiguousarray(factors.solve(b.asnumpy(), turned)), b.dtype)
    return _differentiable("matrix_solve", found, [a, b], adjoint)


def tensor_solve(a: Any, b: Any) -> Tensor:
    """As matrix_solve, where b may also be a vector."""
    right = arguments.tensor(b, "solve", "b")
    if right.ndim > 1:
        return matrix_solve(a, right)
    return shaping.squeeze(matrix_solve(a, _ops.reshape(right, [right.size, 1])), -1)


def pinv(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse of matrices of full rank: (A' A)^-1 A' or A' (A A')^-1.

    Raises ValueError for a matrix of lower rank, to which the formula does not apply.
    """
    t = arguments.floating(arguments.tensor(x, "pinv", "x"))
    rank = np.linalg.matrix_rank(t.asnumpy().astype(np.float64))
    if (np.asarray(rank) < min(t.shape[-2:])).any():
        raise ValueError(f"pinv: a matrix of shape {list(t.shape)} has not full rank{where()}")
    flipped = _transposed(t)
    if t.shape[-2] >= t.shape[-1]:
        return matrix_solve(_ops.matmul(flipped, t), flipped)
    return _transposed(matrix_solve(_ops.matmul(t, flipped), t))


# Determinants -------------------------------------------------------------------------------------


def slogdet(input: Any) -> tuple[Tensor, Tensor]:
    """(the sign of the determinant, log of its size) of matrices [..., n, n]. Asks for the value.

    The sign of a complex determinant is a number of size 1; both are complex then.
    """
    x = _square(input, "slogdet")
    factors = _Factors("slogdet", x)
    sign, size = factors.sign_and_log()

    def adjoint(x: Tensor, y: Tensor, dy: Tensor) -> list[Tensor]:
        return [_ops.mul(_of_matrices(dy), _transposed(_inverse(x, factors)))]

    if not x.dtype.is_complex:
        log = _differentiable("slogdet", Tensor(size, x.dtype), [x], adjoint)
        return Tensor(np.asarray(sign), x.dtype), log
    log = Tensor(np.asarray(size + 1j * np.angle(sign)), x.dtype)
    if not x._traced:
        return Tensor(np.asarray(sign), x.dtype), _ops.cast(complex_numbers.part(log, 0), x.dtype)
    log = _differentiable("slogdet", log, [x], adjoint)
    turn = complex_numbers.part(log, 1)
    return (
        complex_numbers.made(_ops.cos(turn), _ops.sin(turn)),
        _ops.cast(complex_numbers.part(log, 0), x.dtype),
    )


def _of_matrices(numbers: Tensor) -> Tensor:
    """[..., 1, 1]."""
    return _ops.reshape(numbers, [*numbers.shape, 1, 1])


def det(input: Any) -> Tensor:
    """The determinants of matrices [..., n, n]. Asks for the value.

    Differentiable at regular matrices; of up to 3 x 3, at all.
    """
    x = _square(input, "det")
    n = x.shape[-1]
    if n <= 3:
        return _small_det(x, n)
    factors = _Factors("det", x)

    def adjoint(x: Tensor, y: Tensor, dy: Tensor) -> list[Tensor]:
        scale = _ops.mul(complex_numbers.conj(y), dy)
        return [_ops.mul(_of_matrices(scale), _transposed(_inverse(x, factors)))]

    sign, log = factors.sign_and_log()
    return _differentiable("det", Tensor(np.asarray(sign * np.exp(log)), x.dtype), [x], adjoint)


@one_plan
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


def logdet(input: Any) -> Tensor:
    """log of the determinants of matrices [..., n, n]: NaN where a real one is negative."""
    sign, size = slogdet(input)
    if sign.dtype.is_complex:
        return complex_numbers.made(complex_numbers.part(size, 0), complex_numbers.angle(sign))
    return _ops.where(_ops.less(sign, 0), float("nan"), size)


# Factorisations -----------------------------------------------------------------------------------


def cholesky(input_x: Any, upper: bool = False) -> Tensor:
    """L with L L' = A for symmetric (Hermitian) positive definite matrices A [..., n, n]; L' if upper.

    Asks for the value. Raises ValueError for a matrix that is not positive definite. The derivative
    (Murray 2016, arXiv:1602.07527, equation 10) is symmetric.
    """
    x = _square(input_x, "cholesky", "input_x")
    n = x.shape[-1]

    def adjoint(x: Tensor, root: Tensor, d: Tensor) -> list[Tensor]:
        half = Tensor(np.tril(np.ones((n, n)), -1) + 0.5 * np.eye(n), x.dtype)
        inner = _ops.mul(_ops.matmul(_transposed(root), d), half)
        back = inverse(root)
        found = _ops.matmul(_ops.matmul(_transposed(back), inner), back)
        return [_ops.mul(_ops.add(found, _transposed(found)), 0.5)]

    value = _found("cholesky", _lapack.cholesky, x.asnumpy())
    root = _differentiable("cholesky", Tensor(value, x.dtype), [x], adjoint)
    return _transposed(root) if upper else root


def _lower(op: str, factor: Tensor) -> np.ndarray:
    """L with L L' what a factor stands for by all its elements, whether it is triangular or not."""
    value = _wide(factor.asnumpy())
    if not np.triu(value, 1).any():
        return value
    return _found(op, _lapack.cholesky, value @ np.swapaxes(value, -2, -1).conj())  # type: ignore[no-any-return]


def cholesky_inverse(input_x: Any, upper: bool = False) -> Tensor:
    """The inverse of L L' (of L' L if upper) from its factor L, all of input_x, as in MindSpore.

    Raises ValueError for a singular one.
    """
    x = _square(input_x, "cholesky_inverse", "input_x")
    x = _transposed(x) if upper else x
    low = _regular("cholesky_inverse", _lower("cholesky_inverse", x))

    def adjoint(x: Tensor, y: Tensor, dy: Tensor) -> list[Tensor]:
        both = _ops.add(dy, _transposed(dy))
        return [_ops.neg(_ops.matmul(_ops.matmul(_ops.matmul(y, both), y), x))]

    found = Tensor(_lapack.cholesky_inverse(low), x.dtype)
    return _differentiable("cholesky_inverse", found, [x], adjoint)


def _regular(op: str, low: np.ndarray) -> np.ndarray:
    if (np.diagonal(low, 0, -2, -1) == 0).any():
        raise ValueError(f"{op}: Singular matrix{where()}")
    return low


def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Tensor:
    """The solutions of L L' x = input (of L' L x if upper) from the factor L, one triangle of input2.

    Raises ValueError for a singular one.
    """
    x = _square(input2, "cholesky_solve", "input2")
    b = arguments.floating(arguments.tensor(input, "cholesky_solve", "input"))
    if b.ndim < 2 or b.shape[-2] != x.shape[-1]:
        raise ValueError(
            f"cholesky_solve: an input of shape {list(b.shape)} does not fit factors of shape "
            f"{list(x.shape)}{where()}"
        )
    low = shaping.tril(_transposed(x) if upper else x)
    return _factor_solution(b, low, _regular("cholesky_solve", _wide(low.asnumpy())))


def _factor_solution(b: Tensor, low: Tensor, factors: np.ndarray) -> Tensor:
    """The solution of L L' x = b."""

    def adjoint(b: Tensor, low: Tensor, x: Tensor, dx: Tensor) -> list[Tensor]:
        db = _factor_solution(dx, low, factors)
        both = _ops.matmul(db, _transposed(x))
        both = _ops.add(both, _transposed(both))
        return [db, _ops.neg(_ops.matmul(both, low))]

    value = _wide(b.asnumpy())
    if np.iscomplexobj(factors) != np.iscomplexobj(value):
        factors, value = (a.astype(np.complex128) for a in (factors, value))
    lead = np.broadcast_shapes(factors.shape[:-2], value.shape[:-2])
    rows = _turned(np.broadcast_to(value, lead + value.shape[-2:]))
    every = np.ascontiguousarray(np.broadcast_to(factors, lead + factors.shape[-2:]))
    found = _turned(_lapack.cholesky_solve(every, rows))
    return _differentiable("cholesky_solve", Tensor(found, b.dtype), [b, low], adjoint)


def qr(input: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """(Q with orthonormal columns, R upper triangular) with Q R = A, for [..., m, n].

    Asks for the value. Differentiable for full rank and m >= n, mode 'reduced': R'R = A'A. Raises
    NotImplementedError for derivatives of other forms.
    """
    x = arguments.floating(arguments.tensor(input, "qr"))
    arguments.one_of(mode, ("reduced", "complete"), "qr", "mode")
    q, r = _lapack.qr(_no_half(x), mode == "complete")
    if not x._traced:
        return Tensor(q, x.dtype), Tensor(r, x.dtype)
    if mode == "complete" or x.shape[-2] < x.shape[-1]:
        raise NotImplementedError(
            f"qr: derivatives are there for mode 'reduced' of matrices with at least as many rows as "
            f"columns, got {mode!r} and {list(x.shape)}; for values alone call it outside{where()}"
        )
    upper = cholesky(_ops.matmul(_transposed(x), x), True)
    sign = np.sign(np.diagonal(r, 0, -2, -1).real)[..., None]  # LAPACK's diagonal is real
    upper = _ops.mul(upper, Tensor(np.where(sign == 0, 1.0, sign), x.dtype))
    return _ops.matmul(x, inverse(upper)), upper


def svd(input: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """(singular values, U, V) with U diag(s) V' = A, for [..., m, n]; the values alone without
    compute_uv.

    Asks for the value. Differentiable where the singular values are different and not zero, for
    reduced matrices: the eigenvectors of the smaller of A'A and AA' are refined by the iteration of
    Ogita and Aishima (2018), the rest follows. Raises NotImplementedError for derivatives of full
    matrices.
    """
    x = arguments.floating(arguments.tensor(input, "svd"))
    _values_alone(x, "svd")
    if not (compute_uv or x._traced):
        alone = _found("svd", lambda a: np.linalg.svd(a, compute_uv=False), x.asnumpy())
        return Tensor(np.ascontiguousarray(alone), x.dtype)
    u, s, vt = _found("svd", lambda a: np.linalg.svd(a, full_matrices), x.asnumpy())
    left, right = (
        Tensor(np.ascontiguousarray(a), x.dtype) for a in (u, np.swapaxes(vt, -2, -1).conj())
    )
    values = Tensor(np.ascontiguousarray(s), x.dtype)
    if x._traced:
        if full_matrices and x.shape[-2] != x.shape[-1] and compute_uv:
            raise NotImplementedError(
                f"svd: derivatives need full_matrices=False; for values alone call it outside{where()}"
            )
        tall = x.shape[-2] >= x.shape[-1]
        gram = _ops.matmul(x, x, tall, not tall)
        vectors, squares = _refined_eigen(gram, right if tall else left)
        derived = _ops.sqrt(squares)
        values = _ops.add(values, _ops.sub(derived, _ops.stop_gradient(derived)))
        other = _ops.matmul(x, vectors, not tall, False)
        other = _ops.div(other, _ops.reshape(values, [*values.shape[:-1], 1, values.shape[-1]]))
        left, right = (other, vectors) if tall else (vectors, other)
    return (values, left, right) if compute_uv else values


def eigh(input: Any) -> tuple[Tensor, Tensor]:
    """(eigenvalues in ascending order, eigenvectors as columns) of symmetric matrices [..., n, n].

    Asks for the value. Differentiable where the eigenvalues are different.
    """
    x = _square(input, "eigh")
    _values_alone(x, "eigh")
    values, vectors = _lapack.eigh(_no_half(x))
    start = Tensor(vectors, x.dtype)
    if x._traced:
        vectors, values = _refined_eigen(_ops.mul(_ops.add(x, _transposed(x)), 0.5), start)
        return values, vectors
    return Tensor(values, x.dtype), start


def _refined_eigen(a: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """(eigenvectors, eigenvalues) of symmetric a, from eigenvectors of its value."""
    n = a.shape[-1]
    eye, vectors = _identity(a), start
    off = _ops.sub(1.0, eye)
    row, column = [*a.shape[:-2], 1, n], [*a.shape[:-2], n, 1]
    values = _ops.full(row, 0, a.dtype)
    for step in range(_STEPS + 1):
        rest = _ops.sub(eye, _ops.matmul(vectors, vectors, True, False))
        inner = _ops.matmul(vectors, _ops.matmul(a, vectors), True, False)
        scale = _ops.sub(1.0, shaping.diagonal(rest, 0, -2, -1))
        values = _ops.reshape(_ops.div(shaping.diagonal(inner, 0, -2, -1), scale), row)
        if step == _STEPS:
            break
        gap = _ops.add(_ops.sub(values, _ops.reshape(values, column)), eye)
        mixed = _ops.div(_ops.add(inner, _ops.mul(values, rest)), gap)
        change = _ops.add(_ops.mul(mixed, off), _ops.mul(_ops.mul(rest, eye), 0.5))
        vectors = _ops.add(vectors, _ops.matmul(vectors, change))
    return vectors, _ops.reshape(values, [*a.shape[:-2], n])


@one_plan
def matrix_power(input: Any, n: int) -> Tensor:
    """The n-th power of matrices, by squaring; of the inverse for a negative n."""
    x, count = _square(input, "matrix_power"), arguments.integer(n, "matrix_power", "n")
    x, count = (inverse(x), -count) if count < 0 else (x, count)
    out = None
    while count:
        if count & 1:
            out = x if out is None else _ops.matmul(out, x)
        count >>= 1
        x = _ops.matmul(x, x) if count else x
    return _ops.broadcast_to(_identity(x), list(x.shape)) if out is None else out
