"""NumPy's sums, products, extrema, means and variances, with its where= and initial=."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, publish
from gradcell.base.spelling import named, spelling
from gradcell.numpy.conversion import floating, floats, operand, operands, tensor, typed
from gradcell.ops.decorators import in_float32
from gradcell.ops.reductions.reductions import length, square_sizes


def _kept(x: Any, where: Any, neutral: float, nan: bool = False) -> Tensor:
    """x with the number that changes nothing where `where` is false, and in place of NaN if it is skipped."""
    t = tensor(x)
    if nan and t.dtype.is_floating:
        t = _ops.where(_ops.isnan(t), neutral, t)
    return t if where is True else _ops.where(operand(where), t, neutral)


def _with(found: Tensor, initial: Any, op: Callable[..., Tensor]) -> Tensor:
    return found if initial is None else op(found, initial)


def sum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None,
    *, where: Any = True,
) -> Tensor:  # fmt: skip
    """The sum, with initial added; of the elements where `where` is true."""
    return _with(ops.sum(_kept(a, where, 0), axis, keepdims, dtype=dtype), initial, _ops.add)


def prod(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None,
    *, where: Any = True,
) -> Tensor:  # fmt: skip
    """The product, times initial; of the elements where `where` is true."""
    return _with(ops.prod(_kept(a, where, 1), axis, keepdims, dtype), initial, _ops.mul)


def nansum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, initial: Any = None,
    where: Any = True,
) -> Tensor:  # fmt: skip
    """The sum of the elements that are not NaN, with initial added."""
    return sum(_kept(a, True, 0, True), axis, dtype, keepdims, initial, where=where)


def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, initial: Any = None,
    where: Any = True,
) -> Tensor:  # fmt: skip
    """The product of the elements that are not NaN, times initial."""
    return prod(_kept(a, True, 1, True), axis, dtype, keepdims, initial, where=where)


@spelling(ops.amax, a=tensor, where=operand)
def max(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor: ...
@spelling(ops.amax, a=tensor, where=operand)
def amax(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor: ...
@spelling(ops.amin, a=tensor, where=operand)
def min(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor: ...
@spelling(ops.amin, a=tensor, where=operand)
def amin(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor: ...


def _number_extremum(
    op: Any, pair: Any, worst: float, name: str, text: str
) -> Callable[..., Tensor]:
    def function(
        a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, initial: Any = None,
        where: Any = True,
    ) -> Tensor:  # fmt: skip
        t = tensor(a)
        if not t.dtype.is_floating:
            return typed(op(t, axis, keepdims, initial=initial, where=where), dtype)  # type: ignore[no-any-return]
        t = t if where is True else _ops.where(operand(where), t, math.nan)
        nan = _ops.isnan(t)
        found = op(_ops.where(nan, worst, t), axis, keepdims)
        found = _ops.where(ops.all(nan, axis, keepdims), math.nan, found)
        if initial is not None:
            found = pair(_ops.where(_ops.isnan(found), initial, found), initial)
        return typed(found, dtype)  # type: ignore[no-any-return]

    function.__doc__ = f"""{text} NaN where all are.

    axis: the dimension or dimensions, all if None. dtype: the dtype of the result. keepdims:
    whether dimensions that are reduced stay, with size 1. initial: another element.
    """
    return named(function, name)


nanmax: Callable[..., Tensor] = _number_extremum(
    ops.amax, _ops.maximum, -math.inf, "nanmax", "The largest element that is not NaN."
)
nanmin: Callable[..., Tensor] = _number_extremum(
    ops.amin, _ops.minimum, math.inf, "nanmin", "The smallest element that is not NaN."
)


def any(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """Return whether any element is true (not zero); false for none."""
    return ops.any(_kept(a, where, 0), axis, keepdims)


def all(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """Return whether all elements are true (not zero); true for none."""
    return ops.all(_kept(a, where, 1), axis, keepdims)


@spelling(any)
def sometrue(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor: ...


def _counted(x: Tensor, where: Any) -> Tensor | None:
    """Return a mask of the elements that count, of x's shape; None for all."""
    return None if where is True else ops.broadcast_to(tensor(where), tuple(x.shape))


def _mean(x: Tensor, counts: Tensor | None, axis: Any, keepdims: bool) -> Tensor:
    if counts is None:
        return ops.mean(x, axis, keepdims)
    total = ops.sum(_ops.where(counts, x, 0), axis, keepdims)
    return _ops.div(total, _ops.cast(ops.sum(counts, axis, keepdims), total.dtype))


def mean(
    a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None, *, where: Any = True
) -> Tensor:
    """The mean, of the elements where `where` is true; of integers in float32."""
    x = floating(a) if dtype is None else typed(tensor(a), dtype)
    if where is True:
        return ops.mean(x, axis, keepdims)
    return _mean(x, _counted(x, where), axis, keepdims)


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = True
) -> Tensor:
    """The mean of the elements that are not NaN; NaN where there are none."""
    x = typed(floating(a), dtype)
    return _mean(x, _there(x, where), axis, keepdims)


def _there(x: Tensor, where: Any) -> Tensor:
    there = _ops.logical_not(_ops.isnan(x))
    if where is True:
        return there
    return _ops.logical_and(there, _ops.cast(operand(where), _core.bool))


@in_float32
def _variance(
    x: Tensor, axis: Any, ddof: Any, keepdims: bool, counts: Tensor | None, mean: Any
) -> Tensor:
    """The squares of the distances to the mean of those that count, over their number less ddof."""
    axes, off = tuple(arguments.axes_of(axis, x.ndim, "var")), arguments.option(ddof, "var", "ddof")
    middle = _mean(x, counts, axes, True) if mean is None else operands(x, mean)[1]
    distance = _ops.sub(x, middle)
    if counts is None:
        count: Any = float(math.prod(x.shape[i] for i in axes))
    else:
        distance = _ops.where(counts, distance, 0)
        count = ops.sum(counts, axes, keepdims)
    squares = square_sizes(distance)
    left = _ops.maximum(_ops.sub(_ops.cast(tensor(count), squares.dtype), float(off)), 0.0)
    return _ops.div(ops.sum(squares, axes, keepdims), left)


def var(
    x: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False, *, dtype: Any = None,
    where: Any = True, mean: Any = None,
) -> Tensor:  # fmt: skip
    """The variance, over the number of elements less ddof; real, also of complex numbers."""
    t = typed(floating(x), dtype)
    if where is True and mean is None:
        return ops.var(t, axis, ddof, keepdims)
    return _variance(t, axis, ddof, keepdims, _counted(t, where), mean)


def std(
    x: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False, *, dtype: Any = None,
    where: Any = True, mean: Any = None,
) -> Tensor:  # fmt: skip
    """The standard deviation, the root of the variance."""
    if where is True and mean is None:
        return ops.std(typed(floating(x), dtype), axis, ddof, keepdims)
    return length(var(x, axis, ddof, keepdims, dtype=dtype, where=where, mean=mean))


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: bool = False,
    *, where: Any = True, mean: Any = None,
) -> Tensor:  # fmt: skip
    """The variance of the elements that are not NaN, over their number less ddof; NaN where that is not
    above 0.
    """
    x = typed(floating(a), dtype)
    counts = _there(x, where)
    found = _variance(x, axis, ddof, keepdims, counts, mean)
    enough = _ops.greater(ops.sum(counts, axis, keepdims), float(ddof))
    return _ops.where(enough, found, math.nan)


@in_float32
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: bool = False,
    *, where: Any = True, mean: Any = None,
) -> Tensor:  # fmt: skip
    """The standard deviation of the elements that are not NaN."""
    return length(nanvar(a, axis, dtype, ddof, keepdims, where=where, mean=mean))


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The number of elements that are not zero, int32, or int64 of more elements than that counts."""
    return ops.count_nonzero(tensor(x), axis, keepdims)


@spelling(ops.argmax, a=tensor)
def argmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor: ...
@spelling(ops.argmin, a=tensor)
def argmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor: ...


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest less the smallest element."""
    low, high = ops.aminmax(tensor(x), axis=axis, keepdims=keepdims)
    return _ops.sub(high, low)


def average(
    x: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """The mean, or the sum of weights times elements over that of the weights; (mean, that sum) if
    returned.

    returned: whether the sum of the weights comes too.
    """
    t, *given = floats(x, *(() if weights is None else (weights,)))
    w = given[0] if given else ops.ones_like(t)
    if w.ndim != t.ndim and axis is not None:
        w = _ops.reshape(w, [n if i == axis % t.ndim else 1 for i, n in enumerate(t.shape)])
    w = _ops.broadcast_to(w, list(t.shape))
    total = ops.sum(w, axis, keepdims)
    mean = _ops.div(ops.sum(_ops.mul(t, w), axis, keepdims), total)
    return (mean, total) if returned else mean


publish(globals())
