"""Running a cell in another floating dtype.

What comes in: a cell, a dtype, arguments. Floating tensors among the arguments are cast, and so is
each of the cell's own parameters where construct reads it; the parameters themselves keep their
dtype. Gradients flow back through the casts, so they have the parameters' dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcell import _core, tree
from gradcell._core import Tensor

if TYPE_CHECKING:
    from gradcell.nn.cell import Cell


def cast_floating(value: Any, dtype: _core.DType) -> Any:
    """A tree of tensors with the floating ones in another dtype."""

    def cast(t: Tensor) -> Tensor:
        return _core.ops.cast(t, dtype) if t.dtype.is_floating and t.dtype != dtype else t

    return tree.map_leaves(cast, value)


def run_in(cell: Cell, dtype: _core.DType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """cell.construct(*args, **kwargs) computed in dtype; outputs stay as they come."""
    own = cell.__dict__
    before = own["_computes_in"]
    own["_computes_in"] = dtype
    try:
        return cell.construct(*cast_floating(args, dtype), **cast_floating(kwargs, dtype))
    finally:
        own["_computes_in"] = before
