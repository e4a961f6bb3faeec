"""Python's numbers and tuples where MindSpore has ops for them, and flags of functions."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments, tree
from gradcell.base.convert import to_dtype
from gradcell.base.location import where

_ops = _core.ops


def tuple_to_array(input_x: Any) -> Tensor:
    """A tuple of numbers as a vector: int32, or float32 if the first is a float."""
    if not isinstance(input_x, (tuple, list)) or not input_x:
        raise TypeError(f"tuple_to_array: a tuple of numbers is needed, got {input_x!r}{where()}")
    dtype = _core.default_dtype() if isinstance(input_x[0], float) else _core.int32
    return Tensor(list(input_x), dtype)


def scalar_to_array(input_x: Any) -> Tensor:
    """A number as a tensor of no dimensions: int64 or float32."""
    return Tensor(input_x)


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A number as Python's number of a dtype's kind."""
    dtype = to_dtype(input_y)
    value = input_x.item() if isinstance(input_x, Tensor) else input_x
    if dtype.is_floating:
        return float(value)
    return bool(value) if dtype == _core.bool else int(value)


def make_range(start: int, limit: int | None = None, delta: int = 1) -> tuple[int, ...]:
    """The integers from start (0) on below limit, delta apart, as a tuple."""
    return tuple(range(start) if limit is None else range(start, limit, delta))


def tuple_len(x: Any) -> int:
    """The number of members."""
    return len(x)


list_len = tuple_len


def tuple_getitem(x: Any, index: Any) -> Any:
    """A member."""
    return x[index]


def tuple_setitem(x: Any, index: int, value: Any) -> tuple[Any, ...]:
    """The tuple with another member."""
    return (*x[:index], value, *x[index:][1:])


def tuple_reversed(x: Any) -> tuple[Any, ...]:
    """The members in reverse order."""
    return tuple(reversed(x))


def make_tuple(*args: Any) -> tuple[Any, ...]:
    """A tuple."""
    return args


def make_list(*args: Any) -> list[Any]:
    """A list."""
    return list(args)


def tensor_shape(x: Any) -> Tensor:
    """The shape as a tensor, int64."""
    return Tensor(np.array(arguments.tensor(x, "TensorShape", "x").shape, np.int64))


def mixed_precision_cast(dst_dtype: Any, x: Any) -> Any:
    """The real floating tensors of a tree in another dtype."""
    dtype = to_dtype(dst_dtype)

    def cast(t: Any) -> Any:
        return _ops.cast(t, dtype) if t.dtype.is_floating and not t.dtype.is_complex else t

    return tree.map_leaves(cast, x)


def add_flags(fn: Any = None, **flags: Any) -> Any:
    """The function or cell with flags, which get_flags lists."""
    if fn is None:
        return lambda function: add_flags(function, **flags)
    known = {**getattr(fn, "_func_graph_flags", {}), **flags}
    if hasattr(fn, "add_flags"):
        fn.add_flags(**flags)
    else:
        fn._func_graph_flags = known
    return fn


def _of_numbers(function: Any) -> Any:
    def scalar(*numbers: Any) -> Any:
        return function(*numbers)

    scalar.__doc__ = f"Of Python's numbers: {(function.__doc__ or '').splitlines()[0]}"
    return scalar


scalar_add, scalar_sub, scalar_mul = map(_of_numbers, (operator.add, operator.sub, operator.mul))
scalar_div, scalar_floordiv = map(_of_numbers, (operator.truediv, operator.floordiv))
scalar_mod, scalar_pow, scalar_log = map(_of_numbers, (operator.mod, operator.pow, math.log))
scalar_eq, scalar_ne, scalar_lt = map(_of_numbers, (operator.eq, operator.ne, operator.lt))
scalar_le, scalar_gt, scalar_ge = map(_of_numbers, (operator.le, operator.gt, operator.ge))
scalar_uadd, scalar_usub = map(_of_numbers, (operator.pos, operator.neg))
scalar_max, scalar_min = map(_of_numbers, (max, min))
