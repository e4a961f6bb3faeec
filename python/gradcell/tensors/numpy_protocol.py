"""What NumPy's own functions do with tensors.

An operator between an array and a tensor is the tensor's. Any other NumPy function works on the
tensors' numbers and gives arrays, as it does for whatever else is like an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import tree
from gradcell.base.errors import bad_type

#: A ufunc that is an operator: the names of the method of its left operand and of its right one.
_OPERATORS: dict[Any, tuple[str, str]] = {
    np.add: ("__add__", "__radd__"),
    np.subtract: ("__sub__", "__rsub__"),
    np.multiply: ("__mul__", "__rmul__"),
    np.true_divide: ("__truediv__", "__rtruediv__"),
    np.floor_divide: ("__floordiv__", "__rfloordiv__"),
    np.remainder: ("__mod__", "__rmod__"),
    np.power: ("__pow__", "__rpow__"),
    np.matmul: ("__matmul__", "__rmatmul__"),
    np.bitwise_and: ("__and__", "__rand__"),
    np.bitwise_or: ("__or__", "__ror__"),
    np.bitwise_xor: ("__xor__", "__rxor__"),
    np.equal: ("__eq__", "__eq__"),
    np.not_equal: ("__ne__", "__ne__"),
    np.less: ("__lt__", "__gt__"),
    np.less_equal: ("__le__", "__ge__"),
    np.greater: ("__gt__", "__lt__"),
    np.greater_equal: ("__ge__", "__le__"),
}

#: What needs no numbers, so that it works on tensors that only record, too.
_SHAPES: dict[Any, str] = {np.shape: "shape", np.ndim: "ndim"}


def _numbers(name: str, values: Any) -> Any:
    def array(t: Tensor) -> np.ndarray:
        if t._traced or (
            _core.in_trace() and t._is_variable and getattr(t, "requires_grad", False)
        ):
            bad_type(
                f"numpy.{name} cannot be differentiated: inside a transform its result would be a constant. "
                "Use gradcell.ops, or asnumpy() where a constant is meant"
            )
        return np.asarray(t)

    return tree.map_leaves(array, values)


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """The operator on tensors; of other ufuncs the arrays that NumPy makes of the numbers."""
    if ufunc in _OPERATORS and method == "__call__" and not kwargs:
        of_left, of_right = _OPERATORS[ufunc]
        left, right = inputs
        if isinstance(left, Tensor):
            return getattr(left, of_left)(right)
        return getattr(right, of_right)(left)
    return getattr(ufunc, method)(
        *_numbers(ufunc.__name__, inputs), **_numbers(ufunc.__name__, kwargs)
    )


def array_function(
    self: Tensor, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    """What NumPy's function makes of the numbers."""
    if function in _SHAPES and len(args) == 1 and not kwargs:
        return getattr(args[0], _SHAPES[function])
    name = function.__name__
    return function(*_numbers(name, args), **_numbers(name, kwargs))
