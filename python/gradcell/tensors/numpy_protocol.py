"""NumPy's own functions of tensors.

An operator between an array and a tensor is the tensor's. Any other NumPy function works on the
tensors' numbers and gives arrays, as it does for whatever else is like an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import tree
from gradcell.base.convert import has_numpy_dtype, values_of
from gradcell.tensors import taken

#: A ufunc that is an operator: the names of the method of its left operand and of its right one.
_OPERATORS: dict[Any, tuple[str, str]] = {
    **{ufunc: (f"__{name}__", f"__r{name}__") for ufunc, name in (
        (np.add, "add"), (np.subtract, "sub"), (np.multiply, "mul"), (np.true_divide, "truediv"),
        (np.floor_divide, "floordiv"), (np.remainder, "mod"), (np.power, "pow"), (np.matmul, "matmul"),
        (np.bitwise_and, "and"), (np.bitwise_or, "or"), (np.bitwise_xor, "xor"),
    )},
    np.equal: ("__eq__", "__eq__"), np.not_equal: ("__ne__", "__ne__"), np.less: ("__lt__", "__gt__"),
    np.less_equal: ("__le__", "__ge__"), np.greater: ("__gt__", "__lt__"),
    np.greater_equal: ("__ge__", "__le__"),
}  # fmt: skip

#: What asks for shapes and dtypes alone, so that no number is taken.
_WITHOUT_NUMBERS: set[Any] = {
    np.shape, np.ndim, np.size, np.result_type, np.common_type, np.iscomplexobj, np.isrealobj,
    np.zeros_like, np.ones_like, np.empty_like,
}  # fmt: skip


def _numbers(function: Any, values: Any) -> Any:
    name = function.__name__
    how = f"numpy.{name}" if getattr(np, name, None) is function else name

    def array(t: Tensor) -> np.ndarray:
        if function in _WITHOUT_NUMBERS:
            kind = t.dtype.name if has_numpy_dtype(t.dtype) else "float32"
            return np.broadcast_to(np.zeros((), kind), t.shape)
        taken.array_of(t, how)
        return values_of(t._shared_numpy(), t.dtype)

    return tree.map_leaves(array, values)


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Apply an operator to tensors; for other ufuncs return NumPy's arrays."""
    if ufunc in _OPERATORS and method == "__call__" and not kwargs:
        of_left, of_right = _OPERATORS[ufunc]
        left, right = inputs
        if isinstance(left, Tensor):
            return getattr(left, of_left)(right)
        return getattr(right, of_right)(left)
    return getattr(ufunc, method)(*_numbers(ufunc, inputs), **_numbers(ufunc, kwargs))


def array_function(
    self: Tensor, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    """Call NumPy's function with the tensors' numbers."""
    return function(*_numbers(function, args), **_numbers(function, kwargs))
