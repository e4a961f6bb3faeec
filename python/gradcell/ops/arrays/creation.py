"""Ops that make tensors: of constants, ranges and diagonals."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import DTypeLike, Shape, arguments, bad_type, bad_value, to_dtype, where
from gradcell.ops.decorators import method, one_plan

__all__ = [
    "arange", "eye", "fill", "full", "full_like", "linspace", "ones", "ones_like", "range",
    "scalar_to_tensor", "zeros", "zeros_like",
]  # fmt: skip


def _number_dtype(*values: Any) -> _core.DType:
    if any(isinstance(v, (float, np.floating)) for v in values):
        return _core.default_dtype()
    if all(isinstance(v, (bool, np.bool_)) for v in values):
        return _core.bool
    return _core.int64


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def full(size: Shape, fill_value: Any, *, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of one number; int64 without dtype, as in MindSpore, whatever the number is.

    fill_value: the number to fill in.

    Raises TypeError unless size is a tuple or list of integers, ValueError for a negative one.
    """
    if not isinstance(size, (tuple, list)):
        bad_type(f"For 'ops.full', 'size' must be a tuple or list of ints, but got {type(size)}")
    if dtype is None and isinstance(fill_value, float) and not fill_value.is_integer():
        warnings.warn(
            f"ops.full: {fill_value} loses its fraction, since without dtype the result is int64, as in "
            f"MindSpore{where()}",
            RuntimeWarning,
            stacklevel=2,
        )
    return filled(size, fill_value, _core.int64 if dtype is None else dtype)


def filled(size: Shape, fill_value: Any, dtype: DTypeLike | None = None) -> Tensor:
    """As full; by default int64, float32 or bool after the number's type."""
    dims = arguments.shape(size, "full", "size")
    if isinstance(fill_value, Tensor):
        value = fill_value if dtype is None else _ops.cast(fill_value, to_dtype(dtype))
        return _ops.broadcast_to(_ops.reshape(value, []), dims)
    beyond = isinstance(fill_value, int) and not -(2**63) <= fill_value < 2**63
    if beyond or isinstance(fill_value, (complex, np.complexfloating)):
        value = Tensor(fill_value, None if dtype is None else to_dtype(dtype))
        return _ops.broadcast_to(value, dims)
    if not isinstance(fill_value, (bool, int, float, np.generic)):
        bad_type(f"full: fill_value must be a number, got {fill_value!r}")
    return _ops.full(dims, fill_value, arguments.dtype_or(dtype, _number_dtype(fill_value)))


def fill(type: Any, shape: Shape, value: Any) -> Tensor:
    """A tensor filled with one number, of dtype `type`.

    value: the number to fill in.
    """
    return filled(shape, value, type)


@method()
def full_like(input: Any, fill_value: Any, *, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of one number, with input's shape and, by default, its dtype.

    fill_value: the number to fill in.
    """
    x = arguments.tensor(input, "full_like")
    return filled(list(x.shape), fill_value, arguments.dtype_or(dtype, x.dtype))


def zeros(size: Shape, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of zeros, float32 by default. size: an integer or a tuple of them."""
    return filled(size, 0, arguments.dtype_or(dtype, _core.default_dtype()))


def ones(shape: Shape, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of ones, float32 by default. shape: an integer or a tuple of them."""
    return filled(shape, 1, arguments.dtype_or(dtype, _core.default_dtype()))


def zeros_like(input: Any, *, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of zeros with input's shape and, by default, its dtype."""
    return full_like(input, 0, dtype=dtype)


def ones_like(input: Any, *, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of ones with input's shape and, by default, its dtype."""
    return full_like(input, 1, dtype=dtype)


@one_plan
def eye(n: Any, m: Any = None, dtype: DTypeLike | None = None) -> Tensor:
    """An n by m matrix (m = n by default) with ones on the diagonal, float32 by default."""
    rows = arguments.integer(n, "eye", "n")
    dims = [rows, rows if m is None else arguments.integer(m, "eye", "m")]
    if min(dims) < 0:
        bad_value(f"eye: a shape cannot be negative, got {dims}")
    arguments.addressable(dims, "eye")
    if min(dims) == 0:
        return _ops.full(dims, 0, arguments.dtype_or(dtype, _core.default_dtype()))
    ones = _ops.full([min(dims)], 1, arguments.dtype_or(dtype, _core.default_dtype()))
    flat = _ops.slice_scatter(ones, [dims[0] * dims[1]], [0], [dims[1] + 1])
    return _ops.reshape(flat, dims)


@one_plan
def arange(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The numbers from start on, step apart, short of end; arange(n): those from 0 short of n.

    int64 if all are integers, else float32, unless dtype says otherwise. Raises ValueError for a
    step of zero, or one that leads away from end.
    """
    first, last, by = (_plain(v) for v in ((0, start, step) if end is None else (start, end, step)))
    for v in (first, last, by):
        if isinstance(v, bool) or not isinstance(v, (int, float, np.number)):
            bad_type(f"arange: start, end and step must be numbers, got {v!r}")
    if by == 0:
        bad_value("arange: step must not be zero")
    integers = all(isinstance(v, (int, np.integer)) for v in (first, last, by))
    count = -int((first - last) // by) if integers else math.ceil((last - first) / by)
    if count < 0:
        bad_value(f"arange: with a step of {by}, {first} does not lead to {last}")
    arguments.addressable([count], "arange")
    wanted = arguments.dtype_or(dtype, _number_dtype(first, last, by))
    if count and not wanted.is_floating:
        Tensor(
            [first, first + by * (count - 1)], wanted
        )  # raises OverflowError, if one does not fit
    if integers:
        numbers = _ops.iota([count], _core.int64, 0)
        numbers = numbers if by == 1 else _ops.mul(numbers, int(by))
        return _ops.cast(numbers if first == 0 else _ops.add(numbers, int(first)), wanted)
    return Tensor(first + by * np.arange(count), wanted)


def range(start: Any, end: Any, step: Any, maxlen: int = 1000000) -> Tensor:
    """Numbers from start to end, without end, in steps of step: like arange. Raises ValueError for
    more than maxlen numbers."""
    out = arange(start, end, step)
    if out.size > arguments.integer(maxlen, "range", "maxlen"):
        bad_value(f"range: {out.size} numbers are more than maxlen {maxlen}")
    return out


def scalar_to_tensor(input_x: Any, dtype: DTypeLike | None = None) -> Tensor:
    """A number as a tensor, of the default dtype unless dtype is given."""
    return filled((), input_x, _core.default_dtype() if dtype is None else dtype)


def linspace(start: Any, end: Any, steps: Any) -> Tensor:
    """`steps` numbers, evenly spaced from start to end, both included; float32 for numbers."""
    return spaced(start, end, steps)


@one_plan
def spaced(start: Any, end: Any, steps: Any, dtype: Any = None) -> Tensor:
    """The numbers of linspace in a dtype, by default float32 or that of the tensors."""
    count = arguments.integer(steps, "linspace", "steps")
    if count < 0:
        bad_value(f"linspace: steps must not be negative, got {count}")
    arguments.addressable([count], "linspace")
    want = None if dtype is None else to_dtype(dtype)
    if not isinstance(start, Tensor) and not isinstance(end, Tensor):
        want = want or _core.default_dtype()
        if not want.is_floating:
            Tensor([start, end], want)  # raises OverflowError, if one does not fit
        if count < 2:
            return _ops.full([count], start, want)
        place = _ops.iota([count], _core.float64, 0)
        numbers = _ops.add(_ops.mul(place, (end - start) / (count - 1)), float(start))
        last = _ops.equal(place, float(count - 1))
        return _ops.cast(_ops.where(last, float(end), numbers), want)
    a, b = map(arguments.floating, arguments.operands(start, end, "linspace", ("start", "end")))
    if want is not None and want.is_floating:
        a, b = (_ops.cast(x, _core.promote(x.dtype, want)) for x in (a, b))
    if count == 1:
        out = _ops.reshape(a, [1])
    else:
        weight = Tensor(np.linspace(0.0, 1.0, count), _core.promote(a.dtype, b.dtype))
        out = _ops.add(_ops.mul(a, _ops.sub(1.0, weight)), _ops.mul(b, weight))
    return out if want is None else _ops.cast(out, want)
