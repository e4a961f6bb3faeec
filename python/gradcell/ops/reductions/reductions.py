"""Reductions along axes: sums, means, extrema, moments; and cumulative sums.

axis (dim): an integer, a tuple or list of them, or None or () for all. Reduced dimensions go, or
stay with size 1 where keepdims (keep_dims, keepdim) is set. An axis out of range is a ValueError.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import Axis, DTypeLike, arguments, bad_value, place_type, to_dtype
from gradcell.ops.arrays import indexing
from gradcell.ops.decorators import method, one_plan, spelled, wide_plan
from gradcell.ops.elements.complex_numbers import part

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "mean",
    "min", "prod", "reduce_max", "reduce_mean", "reduce_min", "reduce_sum", "std", "sum", "var",
]  # fmt: skip


def _axes(axis: Axis) -> Any:
    if axis is None or type(axis) in (int, tuple, list):
        return axis  # the core looks into them
    return arguments.integers(axis, "reduction", "axis")


def _reduced_count(x: Tensor, axis: Axis, op: str) -> int:
    return math.prod(x.shape[a] for a in arguments.axes_of(_axes(axis), x.ndim, op))


def _wide(x: Tensor, dtype: Any) -> Tensor:
    """In `dtype`; without one integers and bools as int64, those from uint16 on as uint64."""
    if dtype is not None:
        return _ops.cast(x, to_dtype(dtype))
    if x.dtype.is_floating:
        return x
    wide = x.dtype.name in ("uint16", "uint32", "uint64")
    return _ops.cast(x, _core.uint64 if wide else _core.int64)


@spelled()
def sum(
    input: Any, dim: Axis = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The sum. Integers and bools are added up as int64 unless dtype says otherwise."""
    x = input if isinstance(input, Tensor) else arguments.tensor(input, "sum")
    if dtype is not None or not x.dtype.is_floating:
        x = _wide(x, dtype)
    return _ops.reduce_sum(x, dim if dim is None else _axes(dim), keepdim)


@spelled()
def reduce_sum(x: Any, axis: Axis = (), *, keepdims: bool = False) -> Tensor:
    """The sum along axis, in the dtype of x."""
    return _ops.reduce_sum(x, _axes(axis), keepdims)


@method()
def mean(
    x: Any, axis: Axis = None, keep_dims: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The mean, in the dtype of x; for integers it is rounded down. Raises TypeError for bool."""
    if dtype is not None:
        x = _ops.cast(x, to_dtype(dtype))
    return _ops.mean(x, axis if axis is None else _axes(axis), keep_dims)


@method(one_plan)
def prod(
    input: Any, axis: Axis = None, keep_dims: bool = False, dtype: DTypeLike | None = None
) -> Tensor:
    """The product. Integers and bools are multiplied as int64 unless dtype says otherwise.

    Derivatives of any order are exact where elements are zero too.
    """
    return _prod(_wide(arguments.tensor(input, "prod"), dtype), axis, keep_dims)


def _prod(x: Tensor, axis: Axis, keep_dims: bool) -> Tensor:
    axes = arguments.axes_of(_axes(axis), x.ndim, "ReduceProd")
    if x.dtype.is_complex:
        return _complex_prod(x, axes, keep_dims)
    half = x.dtype.is_narrow_float
    product = _ops.reduce_prod(_ops.cast(x, _core.float32) if half else x, axes, keep_dims)
    return _ops.cast(product, x.dtype)


@one_plan
def _complex_prod(x: Tensor, axes: list[int], keep_dims: bool) -> Tensor:
    """By halves: the front of the elements times their back, until one is left."""
    kept = [i for i in range(x.ndim) if i not in axes]
    sizes = [x.shape[i] for i in kept]
    n = int(np.prod([x.shape[i] for i in axes], dtype=np.int64))
    t = _ops.reshape(_ops.transpose(x, kept + axes), [*sizes, n])

    def window(start: int, size: int) -> Tensor:
        first = [0] * len(sizes)
        return _ops.slice(t, [*first, start], [*sizes, size], [1] * t.ndim)

    if n == 0:
        t = Tensor(np.ones([*sizes, 1]), x.dtype)
    while n > 1:
        half = n // 2
        both = _ops.mul(window(0, half), window(half, half))
        t = _ops.concat([both, window(2 * half, 1)], t.ndim - 1) if n % 2 else both
        n -= half
    return _ops.reshape(
        t, [1 if i in axes else d for i, d in enumerate(x.shape)] if keep_dims else sizes
    )


def _truth(x: Tensor) -> Tensor:
    return x if x.dtype == _core.bool else _ops.not_equal(x, 0)


@method(one_plan)
def all(input: Any, axis: Axis = None, keep_dims: bool = False) -> Tensor:
    """Return whether all elements are true (not zero); true for none. The result is bool."""
    false = _ops.logical_not(_truth(arguments.tensor(input, "all")))
    return _ops.equal(_ops.reduce_sum(false, _axes(axis), keep_dims), 0)


@method(one_plan)
def any(input: Any, axis: Axis = None, keep_dims: bool = False) -> Tensor:
    """Return whether any element is true (not zero); false for none. The result is bool."""
    true = _truth(arguments.tensor(input, "any"))
    return _ops.greater(_ops.reduce_sum(true, _axes(axis), keep_dims), 0)


def float_status(x: Any) -> Tensor:
    """[1.0] if an element is infinite or NaN, else [0.0]."""
    t = arguments.tensor(x, "FloatStatus", "x")
    bad = any(_ops.logical_not(_ops.isfinite(t)))
    return _ops.reshape(_ops.cast(bad, _core.float32), [1])


@method()
def count_nonzero(
    x: Any, axis: Axis = (), keep_dims: bool = False, dtype: Any = _core.int32
) -> Tensor:
    """The number of elements that are not zero: int32 unless dtype says otherwise, int64 of a tensor of more
    elements than int32 counts."""
    t = arguments.tensor(x, "count_nonzero")
    return sum(_truth(t), axis, keep_dims, dtype=place_type(t.size, dtype))


# Extrema ------------------------------------------------------------------------------------------


def _extremum(
    largest: bool, x: Tensor, axis: Axis, keepdims: bool, initial: Any, mask: Any
) -> Tensor:
    name = "Max" if largest else "Min"
    if mask is not None and mask is not True:
        if initial is None:
            bad_value(f"{name.lower()}: `where` needs a value for `initial`")
        x = _ops.where(mask, x, initial)
    if initial is None and _reduced_count(x, axis, f"Reduce{name}") == 0:
        bad_value(f"{name} cannot deal with empty input: shape {list(x.shape)} has no element")
    if x.dtype == _core.bool:
        return _ops.cast(
            _extremum(largest, _ops.cast(x, _core.int32), axis, keepdims, initial, None), _core.bool
        )
    y: Tensor
    if _reduced_count(x, axis, f"Reduce{name}") == 0:
        shape = _ops.reduce_sum(x, _axes(axis), keepdims).shape
        return _ops.full(list(shape), initial, x.dtype)
    y = (_ops.reduce_max if largest else _ops.reduce_min)(x, _axes(axis), keepdims)
    if initial is not None:
        y = (_ops.maximum if largest else _ops.minimum)(y, initial)
    return y


@method(one_plan)
def amax(
    input: Any, axis: Axis = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """The largest element. Equal largest elements share the derivative equally.

    initial: the result is at least this. where: a bool tensor of the elements that count; it needs
    initial. Raises ValueError if there is no element.
    """
    return _extremum(True, arguments.tensor(input, "amax"), axis, keepdims, initial, where)


@method(one_plan)
def amin(
    input: Any, axis: Axis = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """The smallest element along axis. Otherwise like amax."""
    return _extremum(False, arguments.tensor(input, "amin"), axis, keepdims, initial, where)


def _with_index(
    largest: bool, x: Tensor, axis: Axis, keepdims: bool, initial: Any, mask: Any
) -> tuple[Tensor, Tensor]:
    name = "max" if largest else "min"
    if axis is not None:
        axis = arguments.axis_of(axis, x.ndim, name)
    if axis is None or x.ndim == 0:
        value = _extremum(largest, x, None, False, initial, mask)
        return value, _ops.full([], 0, _core.int64)
    if mask is not None or initial is not None:
        if initial is None:
            bad_value(f"{name}: `where` needs a value for `initial`")
        x = (
            (_ops.maximum if largest else _ops.minimum)(x, initial)
            if mask is None
            else _ops.where(mask, x, initial)
        )
    if x.shape[axis] == 0:
        bad_value(
            f"{name.capitalize()} cannot deal with empty input: shape {list(x.shape)} has no element"
        )
    kept = _argument(largest, x, axis, True)
    value = indexing.gather_elements(x, axis, kept)
    if keepdims:
        return value, kept
    shape = [n for i, n in enumerate(x.shape) if i != axis]
    return _ops.reshape(value, shape), _ops.reshape(kept, shape)


def _argument(largest: bool, x: Tensor, axis: int, keepdims: bool) -> Tensor:
    if x.dtype == _core.bool:
        x = _ops.cast(x, _core.int32)
    index = (_ops.argmax if largest else _ops.argmin)(x, axis, keepdims)
    return _ops.cast(index, _core.int64)


@spelled()
@one_plan
def max(
    input: Any, axis: Axis = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> tuple[Tensor, Tensor]:
    """(the largest elements, their indices as int64) along an axis.

    The derivative goes to the first of several equal elements. With axis None, (the largest of all,
    0), and ties share the derivative. initial: the result is at least this. where: a bool tensor of
    the elements that count; it needs initial. Raises ValueError if there is no element.
    """
    return _with_index(True, arguments.tensor(input, "max"), axis, keepdims, initial, where)


@spelled()
@one_plan
def min(
    input: Any, axis: Axis = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> tuple[Tensor, Tensor]:
    """(the smallest elements, their indices as int64) along an axis.

    The derivative goes to the first of several equal elements. With axis None, (the smallest of
    all, 0), and ties share the derivative. initial: the result is at most this. where: a bool
    tensor of the elements that count; it needs initial. Raises ValueError if there is no element.
    """
    return _with_index(False, arguments.tensor(input, "min"), axis, keepdims, initial, where)


def _flat_argument(largest: bool, input: Any, axis: Axis, keepdims: bool) -> Tensor:
    x = arguments.tensor(input, "argmax" if largest else "argmin")
    a = None if axis is None else arguments.axis_of(axis, x.ndim, "argmax")
    if a is not None and x.ndim:
        return _argument(largest, x, a, keepdims)
    index = _argument(largest, _ops.reshape(x, [x.size]), 0, False)
    return _ops.reshape(index, [1] * x.ndim) if keepdims else index


def places_along(x: Any, axis: Axis) -> int:
    """The number of places that an index along axis, or in the flattened x for None, may be."""
    return x.size if axis is None else x.shape[axis] if x.shape else 1


@method(one_plan)
def argmax(input: Any, dim: Axis = None, keepdim: bool = False) -> Tensor:
    """The index of the (first) largest element along dim, int64; None: in the flattened tensor."""
    return _flat_argument(True, input, dim, keepdim)


@method(one_plan)
def argmin(input: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The index of the (first) smallest element along axis; None: in the flattened tensor. int32, and int64
    of a tensor of so many elements that int32 does not count them."""
    x = arguments.tensor(input, "argmin")
    found = _flat_argument(False, x, axis, keepdims)
    return _ops.cast(found, place_type(places_along(x, axis)))


# Moments and norms --------------------------------------------------------------------------------


def _var(x: Tensor, axis: Axis, ddof: Any, keepdims: bool) -> Tensor:
    ddof = float(arguments.option(ddof, "var", "ddof"))
    axes = arguments.axes_of(_axes(axis), x.ndim, "var")
    count = _reduced_count(x, axes, "var")
    squares = square_sizes(_ops.sub(x, _ops.mean(x, axes, True)))
    if ddof == 0:
        return _ops.mean(squares, axes, keepdims)
    total = _ops.reduce_sum(squares, axes, keepdims)
    return _ops.div(total, float(count - ddof if count > ddof else 0))


def square_sizes(x: Tensor) -> Tensor:
    """|x|^2, real also for complex x."""
    if not x.dtype.is_complex:
        return _ops.square(x)
    return _ops.reduce_sum(_ops.square(_ops.view_as_real(x)), [x.ndim], False)


@method(wide_plan, correction="ddof")
def var(input: Any, axis: Axis = None, ddof: Any = 0, keepdims: bool = False) -> Tensor:
    """The variance: the sum of squared deviations from the mean, divided by (count - ddof); real, also of
    complex numbers.

    ddof True is 1, False 0. Integers are taken as float32.
    """
    return _var(arguments.floating(arguments.tensor(input, "var")), axis, ddof, keepdims)


@method(wide_plan, correction="ddof")
def std(input: Any, axis: Axis = None, ddof: Any = 0, keepdims: bool = False) -> Tensor:
    """The standard deviation, the square root of var. Of equal elements, where it has a kink, derivatives
    are taken to be 0."""
    return length(_var(arguments.floating(arguments.tensor(input, "std")), axis, ddof, keepdims))


def length(powers: Tensor, order: float = 2.0) -> Tensor:
    """The norm of which powers is the sum: its root. At 0, where a norm has a kink, derivatives are taken to
    be 0, so that the distance of a point from itself has a gradient."""
    if order == 2:
        return _ops.root(powers)
    zero = _ops.equal(powers, 0)
    return _ops.where(zero, 0, _ops.pow(_ops.where(zero, 1, powers), 1.0 / order))


def largest(sizes: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    """The largest of numbers not below 0 along axes; 0 of none."""
    some = math.prod(sizes.shape[a] for a in axes)
    return (_ops.reduce_max if some else _ops.reduce_sum)(sizes, axes, keepdims)


def _finite_shift(x: Tensor, axis: Axis) -> Tensor:
    """The largest element along axis (of complex ones the largest real part), kept, as a constant; 0 where
    it is infinite or NaN."""
    x = part(x, 0) if x.dtype.is_complex else x
    top = _ops.stop_gradient(_ops.reduce_max(x, axis, True))
    return _ops.where(_ops.isfinite(top), top, 0)


@method(wide_plan)
def logsumexp(input: Any, dim: Axis = None, keepdim: bool = False) -> Tensor:
    """$log(sum(exp(input)))$, without overflow: the largest element is taken out first."""
    x = arguments.floating(arguments.tensor(input, "logsumexp"))
    axes = arguments.axes_of(_axes(dim), x.ndim, "logsumexp", "dim")
    if _reduced_count(x, axes, "logsumexp") == 0:
        return _ops.log(_ops.reduce_sum(x, axes, keepdim))
    top = _finite_shift(x, axes)
    total = _ops.reduce_sum(_ops.exp(_ops.sub(x, top)), axes, True)
    y = _ops.add(_ops.log(total), top)
    return y if keepdim else _ops.reshape(y, [n for i, n in enumerate(x.shape) if i not in axes])


@spelled()
def reduce_mean(x: Any, axis: Any = (), *, keepdims: bool = False) -> Tensor:
    """The mean along axis, in the dtype of x."""
    return _ops.mean(x, axis, keepdims)


@spelled()
def reduce_max(x: Any, axis: Any = (), *, keepdims: bool = False) -> Tensor:
    """The largest element along axis."""
    return amax(x, axis, keepdims)


@spelled()
def reduce_min(x: Any, axis: Any = (), *, keepdims: bool = False) -> Tensor:
    """The smallest element along axis."""
    return amin(x, axis, keepdims)
