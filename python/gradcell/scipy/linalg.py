"""mindspore.scipy.linalg: rows over gradcell.ops. overwrite_* and check_finite change nothing."""

from __future__ import annotations

from typing import Any

from gradcell import ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base.forms import Forms


def triangular(a: Tensor, lower: bool, unit_diagonal: bool) -> Tensor:
    """The triangle of a, with ones on the diagonal if unit_diagonal."""
    part = ops.tril(a) if lower else ops.triu(a)
    if not unit_diagonal:
        return part
    eye = ops.eye(a.shape[-1], a.shape[-1], a.dtype)
    return _ops.add(_ops.mul(part, _ops.sub(1.0, eye)), eye)


def solved(a: Tensor, b: Tensor, trans: Any) -> Tensor:
    """The solution of a x = b, of the transposed system for trans 1, 'T' or 'C'."""
    matrix = a if trans in (0, "N") else ops.swapaxes(a, -2, -1)
    return ops.tensor_solve(matrix, b)


_FLAGS = "overwrite_a=False, check_finite=True"
_ROWS = (
    ("a, " + _FLAGS, "ops.inverse(a)", "inv"),
    ("a, " + _FLAGS, "ops.det(a)", "det"),
    ("a, lower=False, " + _FLAGS, "ops.cholesky(a, not lower)", "cholesky"),
    ("a, lower=False, " + _FLAGS, "(ops.cholesky(a, not lower), lower)", "cho_factor"),
    ("c_and_lower, b, overwrite_b=False, check_finite=True",
     "ops.cholesky_solve(b if b.ndim > 1 else b.reshape(-1, 1), *_factor(c_and_lower)).reshape(b.shape)",
     "cho_solve"),
    ("A, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, debug=None, check_finite=True",
     "solved(triangular(A, lower, unit_diagonal), b, trans)", "solve_triangular"),
    ("a, b=None, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, turbo=True, "
     "eigvals=None, type=1, check_finite=True", "eigh_of(a, b, lower, eigvals_only)", "eigh"),
    ("*arrs", "ops.block_diag(*arrs)", "block_diag"),
)  # fmt: skip


def _factor(c_and_lower: Any) -> tuple[Tensor, bool]:
    """(the factor, whether it is the upper one)."""
    return c_and_lower[0], not c_and_lower[1]


def eigh_of(a: Tensor, b: Any, lower: bool, eigvals_only: bool) -> Any:
    """(eigenvalues, eigenvectors) of the symmetric matrix that a triangle of a stands for."""
    if b is not None:
        raise NotImplementedError("eigh: a second matrix is not supported")
    part = ops.tril(a) if lower else ops.triu(a)
    across = ops.swapaxes(ops.tril(a, -1) if lower else ops.triu(a, 1), -2, -1)
    values, vectors = ops.eigh(_ops.add(part, across))
    return values if eigvals_only else (values, vectors)


FORMS = Forms("gradcell.scipy.linalg", _ROWS, globals())
__all__ = sorted(FORMS.rows)


def __getattr__(name: str) -> Any:
    if name not in FORMS:
        raise AttributeError(f"module 'gradcell.scipy.linalg' has no attribute {name!r}")
    value = FORMS.make(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
