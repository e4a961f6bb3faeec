"""mindspore.mint.linalg: ops of matrices with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import publish
from gradcell.base.spelling import spelling
from gradcell.ops.elements.complex_numbers import real_valued


@spelling(ops.inverse)
def inv(input: Any) -> Tensor: ...
@spelling(ops.qr)
def qr(A: Any, mode: Any = "reduced") -> tuple[Tensor, Tensor]: ...
@real_valued
@spelling(ops.norm)
def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor: ...
@real_valued
@spelling(ops.norm)
def matrix_norm(
    A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices, by default the root of the sum of squares."""


@real_valued
@spelling(ops.vector_norm)
def vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor: ...


publish(globals())
