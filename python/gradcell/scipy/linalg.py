"""mindspore.scipy.linalg, over gradcell.ops. overwrite_* and check_finite change nothing."""

from __future__ import annotations

from typing import Any

from gradcell import ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base.spelling import spelling
from gradcell.ops.matrices.factorisations import of_triangle

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "inv", "solve_triangular",
]  # fmt: skip


def triangular(a: Tensor, lower: bool, unit_diagonal: bool) -> Tensor:
    """The triangle of a, with ones on the diagonal if unit_diagonal."""
    part = ops.tril(a) if lower else ops.triu(a)
    if not unit_diagonal:
        return part
    eye = ops.eye(a.shape[-1], a.shape[-1], a.dtype)
    return _ops.add(_ops.mul(part, _ops.sub(1.0, eye)), eye)


@spelling(ops.inverse, ignored="overwrite_a check_finite")
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor: ...
@spelling(ops.det, ignored="overwrite_a check_finite")
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor: ...


def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Tensor:
    """U with U' U = a for symmetric (Hermitian) positive definite matrices, of which the upper triangle is
    read; if lower L with L L' = a, of which the lower one is."""
    return ops.cholesky(a if lower else ops.adjoint(a), not lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """Return (the factor that cholesky gives, lower), for cho_solve.

    overwrite_a and check_finite have no effect.
    """
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """The solution of a x = b from what cho_factor gives for a."""
    factor, lower = c_and_lower
    columns = b if b.ndim > 1 else b.reshape(-1, 1)
    return ops.cholesky_solve(columns, factor, not lower).reshape(b.shape)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, debug: Any = None, check_finite: bool = True,
) -> Tensor:  # fmt: skip
    """The solution of a x = b for a triangular a, of the transposed system for trans 1, 'T' or 'C'.

    overwrite_b, debug and check_finite have no effect.
    """
    part = triangular(a, lower, unit_diagonal)
    return ops.tensor_solve(part if trans in (0, "N") else ops.swapaxes(part, -2, -1), b)


def eigh(
    a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, turbo: bool = True, eigvals: Any = None, type: int = 1,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """(eigenvalues, eigenvectors) of the symmetric (Hermitian) matrix of which a triangle of a is one
    half; the derivative is by the elements of that triangle, and 0 by the others."""
    if b is not None:
        raise NotImplementedError("eigh: a second matrix is not supported")
    values, vectors = ops.eigh(of_triangle(a, lower))
    return values if eigvals_only else (values, vectors)


def block_diag(*arrs: Any) -> Tensor:
    """Matrices one after the other along the diagonal, zeros around them; vectors as rows."""
    return ops.block_diag(*arrs)


def __dir__() -> list[str]:
    return sorted(__all__)
