"""Medians, quantiles, sums that skip NaN, moments in pairs, covariances, counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core, arguments
from gradcell._convert import to_dtype
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.ops import complex_numbers, indexing, reductions, shaping
from gradcell.ops.one_plan import in_float32, one_plan

_ops = _core.ops


# Without NaN --------------------------------------------------------------------------------------


@one_plan
def nansum(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of the elements that are not NaN."""
    x = arguments.tensor(input, "nansum")
    return reductions.sum(_ops.where(_ops.isnan(x), 0, x), axis, keepdims, dtype=dtype)


@one_plan
def nanmean(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of the elements that are not NaN; NaN where there are none."""
    x = arguments.floating(arguments.tensor(input, "nanmean"))
    x = x if dtype is None else _ops.cast(x, to_dtype(dtype))
    there = _ops.cast(_ops.logical_not(_ops.isnan(x)), x.dtype)
    count = _ops.reduce_sum(there, reductions._axes(axis), keepdims)
    return _ops.div(nansum(x, axis, keepdims), count)


# Order statistics ---------------------------------------------------------------------------------


def _at(ordered: Tensor, axis: int, place: Any) -> Tensor:
    """The elements at a fractional place along axis, between neighbours in proportion."""
    low = np.clip(np.floor(place), 0, None)
    high = np.minimum(low + 1, ordered.shape[axis] - 1)
    early, late = (
        indexing.gather_elements(ordered, axis, Tensor(i.astype(np.int64))) for i in (low, high)
    )
    return _ops.add(early, _ops.mul(_ops.sub(late, early), Tensor((place - low), ordered.dtype)))


def _quantile(input: Any, q: Any, axis: Any, keepdims: bool, name: str, skip: bool) -> Tensor:
    x = arguments.tensor(input, name)
    share = q.asnumpy() if isinstance(q, Tensor) else np.asarray(q, np.float64)
    if share.ndim > 1 or ((share < 0) | (share > 1)).any():
        raise ValueError(f"{name}: q must be a number or a vector within 0 and 1, got {q}{where()}")
    flat = axis is None
    t = _ops.reshape(x, [x.size]) if flat else x
    a = 0 if flat else arguments.axis_of(axis, x.ndim, name)
    ordered = indexing.sort(t, a)[0]
    nan = np.isnan(t.asnumpy())
    count = (~nan if skip else np.ones_like(nan)).sum(a, keepdims=True)
    parts = []
    for s in np.atleast_1d(share):
        part = _at(ordered, a, s * (np.maximum(count, 1) - 1))
        spoiled = count == 0 if skip else nan.any(a, keepdims=True)
        part = _ops.where(Tensor(spoiled), float("nan"), part)
        dims = [1] * x.ndim if flat else list(part.shape)
        parts.append(
            _ops.reshape(part, dims if keepdims else dims[:a] + dims[a + 1 :] if not flat else [])
        )
    return shaping.stack(parts, 0) if share.ndim else parts[0]


def quantile(input: Any, q: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The q-quantiles along axis (of all elements for None), linear between neighbours; those of
    several q along a new first dimension. Asks for the value; NaN where there is one."""
    return _quantile(input, q, axis, keepdims, "quantile", False)


def nanquantile(input: Any, q: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """As quantile, of the elements that are not NaN."""
    return _quantile(input, q, axis, keepdims, "nanquantile", True)


def _median(input: Any, axis: Any, keepdims: bool, name: str, skip: bool) -> tuple[Tensor, Tensor]:
    x = arguments.tensor(input, name)
    a = arguments.axis_of(axis, x.ndim, name)
    if x.shape[a] == 0:
        raise ValueError(f"{name}: axis {a} of shape {tuple(x.shape)} has no elements{where()}")
    values = x.asnumpy()
    order = indexing._order(x, a, False).asnumpy()
    nan = np.isnan(values)
    count = (
        (~nan).sum(a, keepdims=True)
        if skip
        else np.full_like(nan.sum(a, keepdims=True), values.shape[a])
    )
    index = np.take_along_axis(order, np.maximum(count - 1, 0) // 2, a)
    if not skip:
        first = np.expand_dims(nan.argmax(a), a)
        index = np.where(nan.any(a, keepdims=True), first, index)
    at = Tensor(np.ascontiguousarray(index.astype(np.int64)))
    out = indexing.gather_elements(x, a, at)
    return (out, at) if keepdims else (shaping.squeeze(out, a), shaping.squeeze(at, a))


def median(input: Any, axis: Any = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """(the median along axis, of two middle elements the lower; its index). Asks for the value."""
    return _median(input, axis, keepdims, "median", False)


def nanmedian(input: Any, axis: Any = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """As median, of the elements that are not NaN."""
    return _median(input, axis, keepdims, "nanmedian", True)


@one_plan
def aminmax(input: Any, *, axis: Any = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """(the smallest, the largest element) along axis; of all for None."""
    return reductions.amin(input, axis, keepdims), reductions.amax(input, axis, keepdims)


# Moments ------------------------------------------------------------------------------------------


@one_plan
@in_float32
def var_mean(
    input: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """(the variance, the mean): ops.var and ops.mean."""
    return reductions.var(input, axis, ddof, keepdims), reductions.mean(input, axis, keepdims)


@one_plan
@in_float32
def std_mean(
    input: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """(the standard deviation, the mean): ops.std and ops.mean."""
    return reductions.std(input, axis, ddof, keepdims), reductions.mean(input, axis, keepdims)


@one_plan
@in_float32
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariances of the rows of a matrix: sum w (x - mean)(y - mean) / norm.

    fweights: how often each column counts; aweights: its importance. norm is sum w - correction,
    where aweights are given sum w - correction * sum(w * aweights) / sum w (as numpy.cov's).
    """
    x = arguments.floating(arguments.tensor(input, "cov"))
    if x.ndim > 2:
        raise ValueError(f"cov: at most two dimensions, got shape {list(x.shape)}{where()}")
    x = x if x.ndim == 2 else _ops.reshape(x, [1, x.size])
    weight = _ops.full([x.shape[1]], 1, x.dtype)
    for w in (fweights, aweights):
        weight = weight if w is None else _ops.mul(weight, _ops.cast(w, x.dtype))
    total = _ops.reduce_sum(weight)
    mean = _ops.div(_ops.reduce_sum(_ops.mul(x, weight), 1, True), total)
    centred = _ops.sub(x, mean)
    lost = _ops.full([], correction, x.dtype)
    if aweights is not None:
        share = _ops.div(_ops.reduce_sum(_ops.mul(weight, _ops.cast(aweights, x.dtype))), total)
        lost = _ops.mul(lost, share)
    product = _ops.matmul(_ops.mul(centred, weight), complex_numbers.adjoint(centred))
    out = _ops.div(product, _ops.sub(total, lost))
    return out if out.size != 1 else _ops.reshape(out, [])


@one_plan
@in_float32
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


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on is in a vector of them, float32; with weights, their sums."""
    x = arguments.tensor(input, "bincount")
    whole = not (x.dtype.is_floating or x.dtype.is_complex or x.dtype == _core.bool)
    numbers = x if not whole or x.dtype == _core.int32 else _ops.cast(x, _core.int64)
    low, high = _core.bounds(numbers) if whole and x.ndim == 1 else (-1, -1)
    if low < 0:
        raise ValueError(f"bincount: a vector of numbers not below 0 is needed, got {x}{where()}")
    length = max(high + 1, minlength)
    if weights is None:
        return _core.counts_of(numbers, length)
    w = arguments.tensor(weights, "bincount", "weights")
    return indexing.index_add(_ops.full([length], 0, w.dtype), _ops.cast(x, _core.int32), w, 0)


def histc(input: Any, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """How many elements lie in each of `bins` equal intervals from min to max (both 0: of the
    elements' own range), in input's dtype."""
    x = arguments.tensor(input, "histc")
    if x.dtype.is_complex:
        raise TypeError(f"histc: needs real numbers, got {x.dtype}{where()}")
    if min != max and x.dtype in (_core.float32, _core.float64, _core.int32):
        edges = np.histogram_bin_edges(np.zeros(0, x.dtype.name), bins, (min, max))
        found = _core.counts_between(x, Tensor(edges.astype(np.float64)))
        return _ops.cast(found, x.dtype)
    values = x.asnumpy()
    low, high = (values.min(), values.max()) if min == max == 0 else (min, max)
    counts = np.histogram(values, bins, (low, high))[0]
    return Tensor(counts.astype(values.dtype))


def reduce_mean(x: Any, axis: Any = ()) -> Tensor:
    """The mean, in the dtype of x."""
    return _ops.mean(x, axis)


def reduce_max(x: Any, axis: Any = ()) -> Tensor:
    """The largest element."""
    return reductions.amax(x, axis)


def reduce_min(x: Any, axis: Any = ()) -> Tensor:
    """The smallest element."""
    return reductions.amin(x, axis)
