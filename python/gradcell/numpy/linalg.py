"""numpy.linalg over gradcell.ops: the last two dimensions are matrices, the others are over several."""

from __future__ import annotations

import builtins
import math
from typing import Any, NamedTuple

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, publish
from gradcell.base.spelling import spelling
from gradcell.numpy.conversion import floating, floats, tensor

from gradcell.numpy.functions import (  # isort: skip
    matrix_power as matrix_power, matrix_transpose as matrix_transpose, multi_dot as multi_dot,
    outer as outer, tensordot as tensordot,
)  # fmt: skip
from gradcell.numpy.mathematics import matmul as matmul, norm as norm
from gradcell.ops.elements.complex_numbers import real_valued
from gradcell.ops.matrices.factorisations import of_triangle

#: What factorisations raise for a matrix that has none.
LinAlgError = ValueError


class EighResult(NamedTuple):
    """The result of eigh.

    eigenvalues: in ascending order. eigenvectors: as columns.
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The result of qr.

    Q: orthonormal columns. R: an upper triangle.
    """

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of slogdet.

    sign: of the determinant. logabsdet: the logarithm of its size.
    """

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The result of svd.

    U: orthonormal columns. S: the singular values, the largest first. Vh: orthonormal rows.
    """

    U: Tensor
    S: Tensor
    Vh: Tensor


@spelling(ops.inverse, a=floating)
def inv(a: Any) -> Tensor: ...
@spelling(ops.det, a=floating)
def det(a: Any) -> Tensor: ...
@spelling(ops.cross, x1=tensor, x2=tensor, fixed={})
def cross(x1: Any, x2: Any, *, axis: int = -1) -> Tensor: ...
@spelling(ops.diagonal, x=tensor, fixed={"dim1": -2, "dim2": -1})
def diagonal(x: Any, *, offset: int = 0) -> Tensor: ...
@spelling(ops.vecdot, x1=tensor, x2=tensor)
def vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Tensor: ...
@real_valued
@spelling(ops.vector_norm, x=floating)
def vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor: ...
@real_valued
@spelling(ops.norm, x=floating, fixed={"dim": (-2, -1)})
def matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices, by default the root of the sum of squares.

    ord: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.
    """


def trace(x: Any, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of matrices."""
    return ops.sum(diagonal(x, offset=offset), -1, dtype=dtype)


def solve(a: Any, b: Any) -> Tensor:
    """The solutions of a x = b.

    a: square matrices. b: a vector, or matrices of columns. Raises ValueError for a singular a.
    """
    return ops.tensor_solve(*floats(a, b))


def cholesky(a: Any, *, upper: bool = False) -> Tensor:
    """L with L L' = a for symmetric (Hermitian) positive definite matrices, of which the lower triangle is
    read; if upper U with U' U = a, of which the upper one is. Raises ValueError for other matrices."""
    x = floating(a)
    return ops.cholesky(ops.adjoint(x), True) if upper else ops.cholesky(x)


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """(eigenvalues in ascending order, eigenvectors as columns) of symmetric (Hermitian) matrices, of which
    one triangle is read; the derivative is by its elements.
    """
    lower = arguments.one_of(UPLO, ("L", "U", "l", "u"), "eigh", "UPLO") in "Ll"
    values, vectors = ops.eigh(of_triangle(floating(a), lower))
    return EighResult(ops.real(values) if values.dtype.is_complex else values, vectors)


def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    """The eigenvalues that eigh gives."""
    return eigh(a, UPLO).eigenvalues


def qr(a: Any, mode: str = "reduced") -> Any:
    """(Q, R) with Q R = a, Q of orthonormal columns, R an upper triangle; R alone for mode 'r'.

    mode: 'reduced', 'complete' or 'r'.
    """
    found = QRResult(*ops.qr(floating(a), "reduced" if mode == "r" else mode))
    return found.R if mode == "r" else found


def slogdet(a: Any) -> SlogdetResult:
    """(the sign of the determinant, the logarithm of its size) of square matrices."""
    sign, size = ops.slogdet(floating(a))
    return SlogdetResult(sign, ops.real(size) if size.dtype.is_complex else size)


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """(U, S, Vh) with U diag(S) Vh = a; the singular values alone without compute_uv. Derivatives of the
    vectors need full_matrices=False of matrices that are not square.

    compute_uv: whether vectors are wanted.
    """
    x = floating(a)
    x = of_triangle(x, True) if hermitian else x
    if not compute_uv:
        return svdvals(x)
    values, left, right = ops.svd(x, full_matrices and x.shape[-1] != x.shape[-2])
    values = ops.real(values) if values.dtype.is_complex else values
    return SVDResult(left, values, ops.adjoint(right))


def svdvals(x: Any) -> Tensor:
    """The singular values of matrices, the largest first."""
    values = ops.svd(floating(x), compute_uv=False)
    return ops.real(values) if values.dtype.is_complex else values


def _epsilon(x: Tensor) -> float:
    wide = x.dtype.name in ("float64", "complex128")
    return float(np.finfo("float64" if wide else "float32").eps)


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse of matrices of any rank.

    rcond, rtol: the share of the largest singular value up to which another counts as zero, one
    number or one for each matrix; by default the larger size times the dtype's epsilon, and 1e-15
    with neither (as NumPy has it).
    """
    limit = rcond if rtol is None else rtol
    x = floating(a)
    limit = max(1e-15, _epsilon(x)) if limit is None else limit
    return ops.pinv(x, rtol=limit, hermitian=hermitian)


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """The number of singular values above tol, int32; of a vector, 1 if it has an element but 0.

    tol: a number, or one for each matrix; by default rtol times the largest value, with rtol the larger
    size times the dtype's epsilon. hermitian: whether the lower triangle stands for all of A.
    """
    x = floating(A)
    if x.ndim < 2:
        return _ops.cast(ops.any(x), _core.int32)
    values = svd(x, compute_uv=False, hermitian=hermitian)
    if tol is None:
        rtol = builtins.max(x.shape[-2:]) * _epsilon(x) if rtol is None else rtol
        share = ops.expand_dims(tensor(rtol), -1) if np.ndim(rtol) else rtol
        limit = ops.amax(values, -1, True) * share
    else:
        limit = ops.expand_dims(tensor(tol), -1) if np.ndim(tol) else tol
    return ops.sum(_ops.greater(values, limit), -1, dtype=_core.int32)


def cond(x: Any, p: Any = None) -> Tensor:
    """The condition of matrices: the norm times that of the inverse.

    p: the order of the norm; None for 2, the largest over the smallest singular value.
    """
    return ops.cond(floating(x), p)


class LstsqResult(NamedTuple):
    """The result of lstsq, NumPy's tuple.

    x: the solutions. residuals: the sums of squares that are left, none where the rank is less than the
    columns. rank: the number of singular values that count. singular_values: of a.
    """

    x: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(a: Any, b: Any, rcond: Any = None) -> LstsqResult:
    """The x for which the squares of b - a x have the least sum, of several the shortest.

    a: a matrix [m, n]. b: a vector [m] or columns [m, k]. rcond: the share of the largest singular value up
    to which another counts as zero; by default the larger size times the dtype's epsilon. Reads the rank.
    """
    x, y = floats(a, b)
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        bad_value(f"lstsq: shapes {list(x.shape)} and {list(y.shape)} do not fit")
    limit = builtins.max(x.shape) * _epsilon(x) if rcond is None else 0.0 if rcond < 0 else rcond
    found = ops.matmul(ops.pinv(x, rtol=float(limit)), y)
    values, rank = svdvals(x), matrix_rank(x, rtol=limit)
    rest = ops.sum(ops.square(ops.abs(y - ops.matmul(x, found))), 0)
    whole = rank.item() == x.shape[1] < x.shape[0]
    rest = ops.reshape(rest, (-1,)) if whole else _ops.full([0], 0, values.dtype)
    return LstsqResult(found, rest, rank, values)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    """The x with tensordot(a, x, x.ndim) = b.

    axes: dimensions of a that are moved to its end first.
    """
    x, y = floats(a, b)
    if axes is not None:
        x = ops.movedim(x, list(axes), list(builtins.range(-len(axes), 0)))
    dims = list(x.shape[y.ndim :])
    return _ops.reshape(solve(_ops.reshape(x, [y.size, -1]), _ops.reshape(y, [-1])), dims)


def tensorinv(a: Any, ind: int = 2) -> Tensor:
    """The tensor that tensordot over ind dimensions multiplies to the identity.

    ind: how many of the first dimensions are the rows.
    """
    x = floating(a)
    ind = arguments.integer(ind, "tensorinv", "ind")
    rows = math.prod(x.shape[:ind])
    back = inv(_ops.reshape(x, [rows, -1]))
    return _ops.reshape(back, [*x.shape[ind:], *x.shape[:ind]])


publish(
    globals(),
    *"LinAlgError matmul matrix_power matrix_transpose multi_dot norm outer tensordot".split(),
)
