"""Writes to parameters: assign, and sums or updates of their rows."""

from __future__ import annotations

from typing import Any

from gradcell import _core
from gradcell._core import ParameterBase, Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value
from gradcell.ops.decorators import one_plan
from gradcell.tensors.indexing import replaced
from gradcell.tensors.parameter import Parameter, parameter_behind

__all__ = ["assign", "assign_add", "assign_sub", "scatter_add", "scatter_update"]


def _assign(op: str, variable: Any, value: Any, combine: Any) -> Tensor:
    variable = parameter_behind(variable)
    if not isinstance(variable, Tensor):
        bad_type(f"For '{op}', 'variable' must be a Parameter, got {type(variable).__name__}")
    new = value if isinstance(value, (Tensor, int, float)) else arguments.tensor(value, op, "value")
    shape = list(new.shape) if isinstance(new, Tensor) else []
    if shape != list(variable.shape) and (combine is None or isinstance(new, Tensor)):
        bad_value(
            f"For '{op}','value' must have the same shape as 'variable'. But got 'value' shape: {shape}, "
            f"'variable' shape: {list(variable.shape)}."
        )
    if combine is not None:
        new = combine(variable, new)
    elif not isinstance(new, Tensor):
        new = _ops.full([], new, variable.dtype)
    new = _ops.cast(new, variable.dtype)
    if isinstance(variable, ParameterBase):
        variable._set_array(new)
    else:
        _core.write(variable, new)
    return new


def assign(variable: Tensor, value: Any) -> Tensor:
    """Gives a parameter (or tensor) a new value, cast to its dtype; returns that value.

    Raises TypeError unless variable is a Parameter or Tensor, ValueError if the shapes differ.
    """
    return _assign("Assign", variable, value, None)


@one_plan
def assign_add(variable: Tensor, value: Any) -> Tensor:
    """Adds value, of the same shape or a number, to a parameter; returns the new value.

    variable: a Parameter.
    """
    return _assign("AssignAdd", variable, value, _ops.add)


@one_plan
def assign_sub(variable: Tensor, value: Any) -> Tensor:
    """Subtracts value, of the same shape or a number, from a parameter; returns the new
    value.

    variable: a Parameter.
    """
    return _assign("AssignSub", variable, value, _ops.sub)


def _rows(op: str, x: Any, indices: Any, updates: Any) -> tuple[Tensor, Tensor]:
    """Indices as a vector, and their updates [indices.size, ...] in x's dtype."""
    if not isinstance(x, ParameterBase):
        bad_type(f"For '{op}', 'input_x' must be a Parameter, got {type(x).__name__}")
    at, new = arguments.tensor(indices, op, "indices"), arguments.tensor(updates, op, "updates")
    if x.ndim == 0 or list(new.shape) != list(at.shape) + list(x.shape[1:]):
        bad_value(
            f"{op}: updates of shape {list(new.shape)} do not fit indices of shape {list(at.shape)} into "
            f"shape {list(x.shape)}"
        )
    flat = _ops.reshape(_ops.cast(new, x.dtype), [at.size, *x.shape[1:]])
    return _ops.reshape(at, [at.size]), flat


@one_plan
def scatter_add(input_x: Parameter, indices: Any, updates: Any) -> Tensor:
    """Adds updates to the rows of a parameter at indices; returns the new value.

    updates: shape indices.shape + input_x.shape[1:]. Raises IndexError for an index out of range.
    """
    input_x = parameter_behind(input_x)
    at, new = _rows("ScatterAdd", input_x, indices, updates)
    added = _ops.scatter_add(at, new, 0, input_x.shape[0])
    return _assign("ScatterAdd", input_x, added, _ops.add)


@one_plan
def scatter_update(input_x: Parameter, indices: Any, updates: Any) -> Tensor:
    """Replaces the rows of a parameter at indices by updates; returns the new value.

    updates: shape indices.shape + input_x.shape[1:]; if several are for one row, the last one
    stays. Raises IndexError for an index out of range.
    """
    input_x = parameter_behind(input_x)
    at, new = _rows("ScatterUpdate", input_x, indices, updates)
    return _assign("ScatterUpdate", input_x, replaced(input_x, at, new), None)
