"""The standard's extension linalg: ops of matrices, and pairs and triples with names."""

from __future__ import annotations

import builtins
from typing import Any

from gradcell import ops
from gradcell._core import Tensor
from gradcell.array_api.data_types import finfo, result_type
from gradcell.array_api.functions import (
    count_nonzero,
    matmul,
    matrix_transpose,
    max,
    real,
    sum,
    tensordot,
    vecdot,
)
from gradcell.base import bad_value
from gradcell.base.spelling import spelling
from gradcell.numpy import linalg as _linalg
from gradcell.numpy.linalg import EighResult, QRResult, SlogdetResult, SVDResult
from gradcell.ops import det, matrix_power

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd",
    "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
__dir__ = sorted(__all__).copy


@spelling(ops.cholesky)
def cholesky(x: Any, /, *, upper: bool = False) -> Tensor: ...
@spelling(ops.diagonal, fixed={"dim1": -2, "dim2": -1})
def diagonal(x: Any, /, *, offset: int = 0) -> Tensor: ...
@spelling(ops.inverse)
def inv(x: Any, /) -> Tensor: ...
@spelling(ops.pinv)
def pinv(x: Any, /, *, rtol: Any = None) -> Tensor: ...


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The vector products along axis, of size 3 in both; the other dimensions broadcast.

    Raises ValueError for other sizes.
    """
    for x in (x1, x2):
        if x.shape[axis] != 3:
            bad_value(f"cross: axis {axis} of shape {list(x.shape)} is not of size 3")
    return ops.cross(x1, x2, axis)


def eigh(x: Any, /) -> EighResult:
    """(eigenvalues, eigenvectors) of symmetric matrices, as ops.eigh gives them; the values are real."""
    values, vectors = ops.eigh(x)
    return EighResult(real(values), vectors)


def eigvalsh(x: Any, /) -> Tensor:
    """The eigenvalues of symmetric matrices, in ascending order."""
    return eigh(x).eigenvalues


@spelling(_linalg.qr)
def qr(x: Any, /, *, mode: str = "reduced") -> QRResult: ...
@spelling(_linalg.slogdet)
def slogdet(x: Any, /) -> SlogdetResult: ...


def solve(x1: Any, x2: Any, /) -> Tensor:
    """The solutions of x1 x = x2, of a vector x2 or of matrices; leading dimensions broadcast."""
    dtype = result_type(x1, x2)
    a, b = x1.astype(dtype), x2.astype(dtype)
    return ops.matrix_solve(a, b) if b.ndim > 1 else ops.matrix_solve(a, b[:, None])[..., 0]


@spelling(_linalg.svd)
def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """(U, S, Vh) with U diag(S) Vh = x; without full_matrices, as many columns and rows as S has numbers."""


@spelling(_linalg.svdvals)
def svdvals(x: Any, /) -> Tensor: ...


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Count the singular values above rtol times the largest, int64.

    rtol: a number, or a tensor with a number for each matrix; None: the larger size times the dtype's
    epsilon.
    """
    values = svdvals(x)
    if rtol is None:
        rtol = float(builtins.max(x.shape[-2:])) * finfo(values.dtype).eps
    limit = rtol[..., None] if isinstance(rtol, Tensor) else rtol
    return count_nonzero(values > max(values, axis=-1, keepdims=True) * limit, axis=-1)


@spelling(_linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor: ...
@spelling(_linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor: ...


def outer(x1: Any, x2: Any, /) -> Tensor:
    """The products of each element of a vector with each of another."""
    return ops.mul(x1[:, None], x2)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums over a diagonal of matrices; integers are added up with 64 bits, unless dtype says
    otherwise."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)
