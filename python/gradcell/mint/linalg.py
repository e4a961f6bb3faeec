"""mindspore.mint.linalg: ops of matrices with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from gradcell import ops
from gradcell._core import Tensor

__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]


def inv(input: Any) -> Tensor:
    """The inverses of matrices [..., n, n]."""
    return ops.inverse(input)


def qr(A: Any, mode: Any = "reduced") -> tuple[Tensor, Tensor]:
    """(Q with orthonormal columns, R upper triangular) with Q R = A, for [..., m, n]."""
    return ops.qr(A, mode)


def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of vectors or matrices."""
    return ops.norm(A, ord, dim, keepdim, dtype=dtype)


def matrix_norm(
    A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices, by default the root of the sum of squares."""
    return ops.norm(A, ord, dim, keepdim, dtype=dtype)


def vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm (sum |x|^ord)^(1/ord) of all elements, or along dim; inf, -inf and 0 as usual."""
    return ops.vector_norm(x, ord, dim, keepdim, dtype=dtype)


def __dir__() -> list[str]:
    return sorted(__all__)
