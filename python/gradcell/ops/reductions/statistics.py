"""Medians, quantiles, sums that skip NaN, moments in pairs, covariances, counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import DTypeLike, arguments, bad_type, bad_value, has_numpy_dtype, to_dtype
from gradcell.ops.arrays import arrangement, indexing, shaping
from gradcell.ops.decorators import method, one_plan, spelled, wide_plan
from gradcell.ops.reductions import reductions

__all__ = [
    "aminmax", "bincount", "corrcoef", "cov", "histc", "median", "nanmean", "nanmedian",
    "nanquantile", "nansum", "quantile", "std_mean", "var_mean",
]  # fmt: skip


# Without NaN --------------------------------------------------------------------------------------


@method(one_plan)
def nansum(
    input: Any, axis: Any = None, keepdims: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The sum of the elements that are not NaN."""
    x = arguments.tensor(input, "nansum")
    return reductions.sum(_ops.where(_ops.isnan(x), 0, x), axis, keepdims, dtype=dtype)


@method(one_plan)
def nanmean(
    input: Any, axis: Any = None, keepdims: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The mean of the elements that are not NaN; NaN where there are none."""
    x = arguments.floating(arguments.tensor(input, "nanmean"))
    x = x if dtype is None else _ops.cast(x, to_dtype(dtype))
    there = _ops.cast(_ops.logical_not(_ops.isnan(x)), x.dtype)
    count = _ops.reduce_sum(there, reductions._axes(axis), keepdims)
    return _ops.div(nansum(x, axis, keepdims), count)


# Order statistics ---------------------------------------------------------------------------------


def _between(ordered: Tensor, axis: int, place: Tensor) -> Tensor:
    """The elements at a fractional place along axis, between neighbours in proportion."""
    low = _ops.floor(place)
    high = _ops.minimum(_ops.add(low, 1.0), float(ordered.shape[axis] - 1))
    early, late = (indexing._at_places(ordered, axis, i) for i in (low, high))
    part = _ops.cast(_ops.sub(place, low), ordered.dtype)
    return _ops.add(early, _ops.mul(_ops.sub(late, early), part))


def _nan_along(x: Tensor, axis: int) -> Tensor:
    """Count NaN along axis, int32; the axis is kept."""
    dims = [1 if i == axis else n for i, n in enumerate(x.shape)]
    if not x.dtype.is_floating:
        return _ops.full(dims, 0, _core.int32)
    nan = _ops.isnan(_ops.stop_gradient(x))
    return _ops.reduce_sum(_ops.cast(nan, _core.int32), [axis], True)


@one_plan
def _quantiles(t: Tensor, shares: tuple[float | Tensor, ...], a: int, skip: bool) -> list[Tensor]:
    n, ordered, nan = t.shape[a], indexing.sort(t, a)[0], _nan_along(t, a)
    count = _ops.sub(n, nan) if skip else _ops.full(list(nan.shape), n, _core.int32)
    spoiled = _ops.equal(count, 0) if skip else _ops.greater(nan, 0)
    reach = _ops.cast(_ops.sub(_ops.maximum(count, 1), 1), _core.float64)
    found = []
    for share in shares:
        wrong = spoiled
        if isinstance(share, Tensor):
            within = _ops.logical_and(_ops.greater_equal(share, 0), _ops.less_equal(share, 1))
            wrong = _ops.logical_or(spoiled, _ops.logical_not(within))
            share = _ops.where(within, share, 0.5)
        part = _between(ordered, a, _ops.mul(reach, share))
        found.append(_ops.where(wrong, float("nan"), part))
    return found


def _quantile(input: Any, q: Any, axis: Any, keepdims: bool, name: str, skip: bool) -> Tensor:
    x = arguments.floating(arguments.tensor(input, name))
    traced = isinstance(q, Tensor) and q._traced
    share = q if traced else q.asnumpy() if isinstance(q, Tensor) else np.asarray(q, np.float64)
    if share.ndim > 1 or (not traced and ((share < 0) | (share > 1)).any()):
        bad_value(f"{name}: q must be a number or a vector within 0 and 1, got {q}")
    shares: list[Any] = (
        [float(s) for s in np.atleast_1d(share)]
        if not traced
        else [
            _ops.cast(_core.views.reshape(s, []), _core.float64)
            for s in (shaping.unstack(q) if q.ndim else [q])
        ]
    )
    flat = axis is None
    t = _ops.reshape(x, [x.size]) if flat else x
    a = 0 if flat else arguments.axis_in(x, axis, name)
    if t.shape[a] == 0:
        bad_value(f"{name}: axis {a} of shape {tuple(t.shape)} has no elements")
    found = _quantiles(t, tuple(shares), a, skip)
    dims = list(found[0].shape)
    if flat:
        dims = [1] * x.ndim if keepdims else []
    elif not keepdims:
        del dims[a]
    parts = [_ops.reshape(part, dims) for part in found]
    return shaping.stack(parts, 0) if share.ndim else parts[0]


@method()
def quantile(input: Any, q: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The q-quantiles along axis (of all elements for None), interpolated linearly; for several q
    they are along a new first dimension. NaN if an element is NaN. The derivative by a tensor q is the
    slope between the neighbours; within a transform a q out of 0 and 1 gives NaN."""
    return _quantile(input, q, axis, keepdims, "quantile", False)


@method()
def nanquantile(input: Any, q: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The quantile of the elements that are not NaN.

    q: the share, from 0 to 1, or a tensor of them.
    """
    return _quantile(input, q, axis, keepdims, "nanquantile", True)


@one_plan
def _middle(x: Tensor, a: int, keepdims: bool, skip: bool) -> tuple[Tensor, Tensor]:
    n, order, nan = x.shape[a], indexing._order(x, a, False), _nan_along(x, a)  # NaN comes last
    count = _ops.sub(n, nan) if skip else _ops.full(list(nan.shape), n, _core.int32)
    middle = _ops.floor_div(_ops.maximum(_ops.sub(count, 1), 0), 2)
    at = indexing._at_places(order, a, middle)
    if x.dtype.is_floating and not skip:
        first = _ops.argmax(_ops.cast(_ops.isnan(_ops.stop_gradient(x)), _core.int32), a)
        first = _ops.cast(_ops.reshape(first, list(nan.shape)), _core.int32)
        at = _ops.where(_ops.greater(nan, 0), first, at)
    out, at = indexing._at_places(x, a, at), _ops.cast(at, _core.int64)
    return (out, at) if keepdims else (shaping.squeeze(out, a), shaping.squeeze(at, a))


def _median(input: Any, axis: Any, keepdims: bool, name: str, skip: bool) -> tuple[Tensor, Tensor]:
    x = arguments.tensor(input, name)
    a = arguments.axis_of(axis, x.ndim, name)
    if x.ndim == 0:
        return _ops.reshape(x, []), _ops.full([], 0, _core.int64)
    if x.shape[a] == 0:
        bad_value(f"{name}: axis {a} of shape {tuple(x.shape)} has no elements")
    return _middle(x, a, bool(keepdims), skip)


@method()
def median(input: Any, axis: Any = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """(the median along axis, the lower one of two middle elements; its index)."""
    return _median(input, axis, keepdims, "median", False)


@method()
def nanmedian(input: Any, axis: Any = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The median of the elements that are not NaN."""
    return _median(input, axis, keepdims, "nanmedian", True)


@method(one_plan)
def aminmax(input: Any, *, axis: Any = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """(the smallest, the largest element) along axis; of all for None."""
    return reductions.amin(input, axis, keepdims), reductions.amax(input, axis, keepdims)


# Moments ------------------------------------------------------------------------------------------


@spelled(correction="ddof")
@wide_plan
def var_mean(
    input: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """The variance and the mean. Integers are taken as floats."""
    x = arguments.floating(arguments.tensor(input, "var_mean"))
    return reductions.var(x, axis, ddof, keepdims), reductions.mean(x, axis, keepdims)


@spelled(correction="ddof")
@wide_plan
def std_mean(
    input: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean. Integers are taken as floats."""
    x = arguments.floating(arguments.tensor(input, "std_mean"))
    return reductions.std(x, axis, ddof, keepdims), reductions.mean(x, axis, keepdims)


@method(wide_plan)
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariances of the rows of a matrix: sum w (x - mean)(y - mean) / norm.

    fweights: how often each column counts; aweights: its importance. norm is sum w - correction,
    where aweights are given sum w - correction * sum(w * aweights) / sum w (as in numpy.cov).
    """
    x = arguments.floating(arguments.tensor(input, "cov"))
    if x.ndim > 2:
        bad_value(f"cov: at most two dimensions, got shape {list(x.shape)}")
    x = x if x.ndim == 2 else _ops.reshape(x, [1, x.size])
    real = reductions.square_sizes(x).dtype  # weights and counts are not complex
    weight = _ops.full([x.shape[1]], 1, real)
    for w in (fweights, aweights):
        weight = weight if w is None else _ops.mul(weight, _ops.cast(w, real))
    total = _ops.reduce_sum(weight)
    mean = _ops.div(_ops.reduce_sum(_ops.mul(x, weight), 1, True), total)
    centred = _ops.sub(x, mean)
    lost = _ops.full([], correction, real)
    if aweights is not None:
        share = _ops.div(_ops.reduce_sum(_ops.mul(weight, _ops.cast(aweights, real))), total)
        lost = _ops.mul(lost, share)
    product = _ops.matmul(_ops.mul(centred, weight), arrangement.adjoint(centred))
    out = _ops.div(product, _ops.maximum(_ops.sub(total, lost), 0))
    return out if out.size != 1 else _ops.reshape(out, [])


@wide_plan
def corrcoef(input: Any) -> Tensor:
    """The correlations of the rows of a matrix: cov over the standard deviations of both, within
    -1 and 1."""
    c = cov(input)
    if c.ndim == 0:
        return _ops.div(c, c)
    deviation = _ops.sqrt(shaping.diagonal(c))
    out = _ops.div(_ops.div(c, _ops.reshape(deviation, [c.shape[0], 1])), deviation)
    return indexing.clamp(out, -1.0, 1.0)


# Counts -------------------------------------------------------------------------------------------


@method()
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """Count each integer from 0 on in a vector, as float32; with weights, sum these.

    minlength: the smallest length of the result.
    """
    x = arguments.tensor(input, "bincount")
    whole = not (x.dtype.is_floating or x.dtype.is_complex or x.dtype == _core.bool)
    numbers = x if not whole or x.dtype == _core.int32 else _ops.cast(x, _core.int64)
    low, high = _core.bounds(numbers) if whole and x.ndim == 1 else (-1, -1)
    if low < 0:
        bad_value(f"bincount: a vector of numbers not below 0 is needed, got {x}")
    length = max(high + 1, arguments.integer(minlength, "bincount", "minlength"))
    if weights is None:
        return _core.counts_of(numbers, length)
    w = arguments.tensor(weights, "bincount", "weights")
    return indexing.index_add(_ops.full([length], 0, w.dtype), numbers, w, 0)


@method()
def histc(input: Any, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """Count the elements in each of `bins` equal intervals from min to max (by default the range of
    the elements), in input's dtype.
    """
    x = indexing.ordered(input, "histc")
    if x.dtype == _core.bool:
        bad_type("histc: the counts have the input's dtype, which is bool: cast it first")
    count = arguments.integer(bins, "histc", "bins", 1)
    low, high = (float(arguments.option(v, "histc", n)) for v, n in ((min, "min"), (max, "max")))
    if high < low:
        bad_value(f"histc: max must be larger than min, got {min} and {max}")
    return _counted(x, count, low, high)


def _narrow(dtype: _core.DType) -> _core.DType:
    """Return the dtype to which edges between elements of a dtype are rounded, as NumPy does."""
    if not has_numpy_dtype(dtype):
        return _core.float32
    return dtype if dtype.is_floating else _core.float64


@one_plan
def _counted(x: Tensor, bins: int, low: float, high: float) -> Tensor:
    values, narrow = _ops.reshape(_ops.stop_gradient(x), [x.size]), _narrow(x.dtype)
    if low == high == 0 and x.size:
        wide = _ops.cast(values, _core.float64)
        least, most = _ops.reduce_min(wide), _ops.reduce_max(wide)
        apart = _ops.where(_ops.equal(least, most), 0.5, 0.0)
        least, most = _ops.sub(least, apart), _ops.add(most, apart)
        steps = _ops.mul(
            _ops.iota([bins], _core.float64, 0), _ops.div(_ops.sub(most, least), float(bins))
        )
        edges = _ops.concat([_ops.add(steps, least), _ops.reshape(most, [1])], 0)
        edges = _ops.cast(_ops.cast(edges, narrow), _core.float64)
    else:
        found = np.histogram_bin_edges(np.zeros(0, narrow.name), bins, (low, high))
        edges = Tensor(found.astype(np.float64))
    return _ops.cast(_ops.count_between(values, edges), x.dtype)
