"""Python's numbers and tuples where MindSpore has ops for them, and flags of functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, publish, to_dtype, tree, with_tensors


def tuple_to_array(input_x: Any) -> Tensor:
    """A tuple of numbers as a vector: int32, or float32 if the first is a float."""
    if not isinstance(input_x, (tuple, list)) or not input_x:
        bad_type(f"tuple_to_array: a tuple of numbers is needed, got {input_x!r}")
    dtype = _core.default_dtype() if isinstance(input_x[0], float) else _core.int32
    return Tensor(list(input_x), dtype)


def scalar_to_array(input_x: Any) -> Tensor:
    """A number as a tensor of no dimensions: int64 or float32."""
    return Tensor(input_x)


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A number as Python's number of a dtype's kind.

    input_y: a dtype.
    """
    dtype = to_dtype(input_y)
    value = input_x.item() if isinstance(input_x, Tensor) else input_x
    if dtype.is_floating:
        return float(value)
    return bool(value) if dtype == _core.bool else int(value)


def make_range(start: int, limit: int | None = None, delta: int = 1) -> tuple[int, ...]:
    """The integers from start (0) on below limit, delta apart, as a tuple.

    start: the first integer, or the end where limit is None. limit: the end, which is left out.
    delta: the distance of neighbours, not 0.
    """
    return tuple(range(start) if limit is None else range(start, limit, delta))


def tuple_len(x: Any) -> int:
    """The number of members."""
    return len(x)


list_len = tuple_len


def tuple_getitem(x: Any, index: Any) -> Any:
    """A member.

    index: an int or a slice.
    """
    return x[index]


def tuple_setitem(x: Any, index: int, value: Any) -> tuple[Any, ...]:
    """The tuple with another member.

    index: an int. value: the new member.
    """
    return (*x[:index], value, *x[index:][1:])


def tuple_reversed(x: Any) -> tuple[Any, ...]:
    """The members in reverse order."""
    return tuple(reversed(x))


def make_tuple(*args: Any) -> tuple[Any, ...]:
    """A tuple.

    args: its members.
    """
    return args


def make_list(*args: Any) -> list[Any]:
    """A list.

    args: its members.
    """
    return list(args)


def _tensor_shape(x: Any) -> Tensor:
    """The shape as a tensor, int64."""
    return Tensor(np.array(arguments.tensor(x, "TensorShape", "x").shape, np.int64))


def mixed_precision_cast(dst_dtype: Any, x: Any) -> Any:
    """The real floating tensors of a tree in another dtype.

    dst_dtype: a dtype. x: a tensor, or tuples, lists and dicts of them.
    """
    dtype = to_dtype(dst_dtype)

    def cast(t: Any) -> Any:
        return _ops.cast(t, dtype) if t.dtype.is_floating and not t.dtype.is_complex else t

    return tree.map_leaves(cast, with_tensors(x))


def add_flags(fn: Any = None, **flags: Any) -> Any:
    """The function or cell with flags, which get_flags lists.

    fn: a function or Cell; without it a decorator is returned. flags: values by name.
    """
    if fn is None:
        return lambda function: add_flags(function, **flags)
    known = {**getattr(fn, "_func_graph_flags", {}), **flags}
    if hasattr(fn, "add_flags"):
        fn.add_flags(**flags)
    else:
        fn._func_graph_flags = known
    return fn


def _of_one(function: Any, formula: str) -> Callable[[Any], Any]:
    def scalar(x: Any) -> Any:
        return function(x)

    scalar.__doc__ = f"{formula} of Python's numbers.\n\nx: a number."
    return scalar


def _of_two(function: Any, formula: str) -> Callable[[Any, Any], Any]:
    def scalar(x: Any, y: Any) -> Any:
        return function(x, y)

    scalar.__doc__ = f"{formula} of Python's numbers.\n\nx, y: numbers."
    return scalar


scalar_add: Callable[[Any, Any], Any] = _of_two(operator.add, "x + y")
scalar_sub: Callable[[Any, Any], Any] = _of_two(operator.sub, "x - y")
scalar_mul: Callable[[Any, Any], Any] = _of_two(operator.mul, "x y")
scalar_div: Callable[[Any, Any], Any] = _of_two(operator.truediv, "x / y, a float,")
scalar_floordiv: Callable[[Any, Any], Any] = _of_two(operator.floordiv, "x / y, rounded down,")
scalar_mod: Callable[[Any, Any], Any] = _of_two(operator.mod, "x modulo y, with y's sign,")
scalar_pow: Callable[[Any, Any], Any] = _of_two(operator.pow, "x to the power y")
scalar_log: Callable[[Any], Any] = _of_one(math.log, "The natural logarithm")
scalar_eq: Callable[[Any, Any], Any] = _of_two(operator.eq, "Return whether x = y,")
scalar_ne: Callable[[Any, Any], Any] = _of_two(operator.ne, "Return whether x differs from y,")
scalar_lt: Callable[[Any, Any], Any] = _of_two(operator.lt, "Return whether x < y,")
scalar_le: Callable[[Any, Any], Any] = _of_two(operator.le, "Return whether x <= y,")
scalar_gt: Callable[[Any, Any], Any] = _of_two(operator.gt, "Return whether x > y,")
scalar_ge: Callable[[Any, Any], Any] = _of_two(operator.ge, "Return whether x >= y,")
scalar_uadd: Callable[[Any], Any] = _of_one(operator.pos, "The same number, +x,")
scalar_usub: Callable[[Any], Any] = _of_one(operator.neg, "The negative, -x,")
scalar_max: Callable[[Any, Any], Any] = _of_two(max, "The larger")
scalar_min: Callable[[Any, Any], Any] = _of_two(min, "The smaller")

publish(globals(), "list_len")
