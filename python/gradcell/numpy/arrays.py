"""What NumPy's names need beyond the ops: making arrays, joining and cutting them, statistics."""

from __future__ import annotations

import builtins
import itertools
import math
from typing import Any

import numpy as np

from gradcell import _core, arguments, ops
from gradcell._convert import to_dtype
from gradcell._core import Tensor
from gradcell._location import where as _where

__all__ = [
    "apply_along_axis", "apply_over_axes", "arange", "array", "array_equal", "array_equiv",
    "array_split", "average", "choose", "concatenate", "convolve", "corrcoef", "correlate", "cov",
    "cross", "diag_indices", "full", "geomspace", "gradient", "histogram", "histogram2d",
    "histogramdd", "indices", "interp", "intersect1d", "isscalar", "ix_", "linspace", "logspace",
    "matmul", "mgrid", "nanmax", "nanmin", "nanvar", "norm", "ogrid", "pad", "piecewise",
    "polyder", "polyint", "polymul", "polyval", "promote_types", "ptp", "randint",
    "ravel_multi_index", "result_type", "select", "setdiff1d", "size", "split", "unravel_index",
    "unwrap",
]  # fmt: skip

_ops = _core.ops


# Making -------------------------------------------------------------------------------------------


def array(obj: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor of a tensor, a number, an array or nested lists of them.

    Python integers become int32 and floats float32 unless dtype says otherwise. ndmin: at least so many
    dimensions. Raises TypeError for anything else.
    """
    if isinstance(obj, (list, tuple)) and _holds_tensors(obj):
        out = ops.stack([array(item) for item in obj], 0)
    elif isinstance(obj, Tensor):
        out = obj.copy() if copy else obj
    else:
        out = Tensor(obj)
        if not isinstance(obj, (np.ndarray, np.generic)) and out.dtype == _core.int64:
            out = _ops.cast(out, _core.int32)
    out = typed(out, dtype)
    return (
        out if out.ndim >= ndmin else _ops.reshape(out, [1] * (ndmin - out.ndim) + list(out.shape))
    )


def _holds_tensors(obj: Any) -> bool:
    if isinstance(obj, (list, tuple)):
        return any(_holds_tensors(item) for item in obj)
    return isinstance(obj, Tensor)


def typed(x: Any, dtype: Any) -> Any:
    """x in another dtype; as it is for None."""
    if dtype is None:
        return x
    return (
        tuple(typed(part, dtype) for part in x)
        if isinstance(x, tuple)
        else _ops.cast(x, to_dtype(dtype))
    )


def operand(x: Any) -> Any:
    """Lists as tensors; a tensor or number as it is."""
    return array(x) if isinstance(x, (list, tuple, np.ndarray)) else x


def pair(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands, of which a number takes the dtype of the other; two numbers become tensors."""
    numbers = not any(isinstance(x, (Tensor, list, tuple, np.ndarray)) for x in (x1, x2))
    return (array(x1), array(x2)) if numbers else (operand(x1), operand(x2))


def tensor(x: Any) -> Tensor:
    """Whatever it is as a tensor."""
    return x if isinstance(x, Tensor) else array(x)


def vector(x: Any) -> Tensor:
    """All elements of whatever it is, in one dimension."""
    return tensor(x).ravel()  # type: ignore[no-any-return]


def along(x: Any, axis: Any) -> tuple[Tensor, int]:
    """(x, axis), or for None (x flattened, 0)."""
    return (vector(x), 0) if axis is None else (tensor(x), axis)


def optional(*xs: Any) -> list[Tensor | None]:
    """Tensors of what is not None."""
    return [None if x is None else tensor(x) for x in xs]


def like(x: Any, value: Any, dtype: Any, shape: Any) -> Tensor:
    """A tensor of one number, with x's shape and dtype unless others are given."""
    t = tensor(x)
    return full(t.shape if shape is None else shape, value, t.dtype if dtype is None else dtype)


def joined(*parts: Any) -> Tensor:
    """What is not None, flattened and joined."""
    return ops.concat([vector(p) for p in parts if p is not None], 0)


def floating(x: Any) -> Tensor:
    """Whatever it is as a floating tensor: float32 for integers."""
    return arguments.floating(tensor(x))


def shape_of(shape: Any) -> list[int]:
    """A shape given as an integer, a tuple or a tensor."""
    return arguments.integers(shape, "numpy", "shape")


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """A tensor of one number or of an array that broadcasts; the dtype is fill_value's by default."""
    return typed(_ops.broadcast_to(array(fill_value), shape_of(shape)), dtype)  # type: ignore[no-any-return]


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """The numbers from start on, step apart, short of stop: int32, or float32 if one is a float."""
    numbers = [_number(v) for v in (start, stop, step) if v is not None]
    if dtype is None:
        dtype = _core.float32 if any(isinstance(v, float) for v in numbers) else _core.int32
    first, last = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    empty = _number(by) != 0 and (_number(last) - _number(first)) / _number(by) <= 0
    return (
        ops.zeros((0,), to_dtype(dtype))
        if empty
        else ops.arange(first, last, by, dtype=to_dtype(dtype))
    )


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """num numbers evenly spaced from start to stop, which is left out without endpoint; for tensors
    along axis. retstep: (numbers, the step)."""
    count = arguments.integer(num, "linspace", "num")
    a, b = floating(start), floating(stop)
    parts = builtins.max(count - 1 if endpoint else count, 1)
    weight = Tensor(np.arange(count) / parts, _core.promote(a.dtype, b.dtype))
    dims = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    column = _ops.reshape(weight, [count] + [1] * len(dims))
    out = _ops.add(_ops.mul(a, _ops.sub(1.0, column)), _ops.mul(b, column))
    out = typed(ops.movedim(out, 0, axis) if out.ndim > 1 else out, dtype)
    return (out, _ops.div(_ops.sub(b, a), float(parts))) if retstep else out


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None,
    axis: int = 0,
) -> Tensor:  # fmt: skip
    """base to the power of linspace's numbers."""
    return typed(_ops.pow(base, linspace(start, stop, num, endpoint, axis=axis)), dtype)  # type: ignore[no-any-return]


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """num numbers from start to stop, each the same multiple of the one before."""
    a, b = floating(start), floating(stop)
    share = linspace(0.0, 1.0, num, endpoint)
    share = _ops.reshape(share, [num] + [1] * builtins.max(a.ndim, b.ndim))
    out = _ops.mul(a, _ops.pow(_ops.div(b, a), share))
    return typed(ops.movedim(out, 0, axis) if out.ndim > 1 else out, dtype)  # type: ignore[no-any-return]


def indices(dimensions: Any, dtype: Any = _core.int32, sparse: bool = False) -> tuple[Tensor, ...]:
    """For each dimension of a grid, the coordinates of its points; sparse: as vectors that broadcast."""
    lines = [ops.arange(n, dtype=to_dtype(dtype)) for n in dimensions]
    return _grids(lines, sparse, "ij")


def _grids(lines: list[Tensor], sparse: bool, indexing: str) -> tuple[Tensor, ...]:
    if not sparse:
        return ops.meshgrid(*lines, indexing=indexing)
    rank = len(lines)
    places = list(builtins.range(rank))
    if indexing == "xy" and rank > 1:
        places[:2] = [1, 0]
    return tuple(
        _ops.reshape(x, [x.size if j == i else 1 for j in builtins.range(rank)])
        for i, x in zip(places, lines, strict=True)
    )


class _Grid:
    """mgrid[0:3, 0:1:5j]: coordinates of a grid's points, given as slices; an imaginary step is a
    number of points, both ends included."""

    def __init__(self, sparse: bool) -> None:
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        lines = [self._line(s) for s in (key if isinstance(key, tuple) else (key,))]
        if not isinstance(key, tuple):
            return lines[0]
        if any(x.dtype.is_floating for x in lines):
            lines = [arguments.floating(x) for x in lines]
        grids = _grids(lines, self.sparse, "ij")
        return list(grids) if self.sparse else ops.stack(grids, 0)

    @staticmethod
    def _line(s: builtins.slice) -> Tensor:
        start = 0 if s.start is None else s.start
        if isinstance(s.step, complex):
            return linspace(start, s.stop, int(builtins.abs(s.step)))  # type: ignore[no-any-return]
        return arange(start, s.stop, s.step)


mgrid, ogrid = _Grid(False), _Grid(True)


def eye(rows: int, columns: int, k: int, dtype: Any) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere."""
    ones = full((rows, columns), 1, dtype)
    return ops.triu(ops.tril(ones, k), k)


def randint(minval: Any, maxval: Any = None, shape: Any = None, dtype: Any = _core.int32) -> Tensor:
    """Random integers from minval on below maxval; from 0 on below minval without it."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    return ops.randint(
        low, high, tuple(shape_of(1 if shape is None else shape)), dtype=to_dtype(dtype)
    )


def window(length: Any, kind: str) -> Tensor:
    """NumPy's window of that name, float32."""
    return Tensor(getattr(np, kind)(int(_number(length))).astype(np.float32))


def tri_indices(rows: Any, columns: Any, k: int, upper: bool) -> tuple[Tensor, Tensor]:
    """(rows, columns) of the elements on and below (above, if upper) the k-th diagonal, int32."""
    found = (np.triu_indices if upper else np.tril_indices)(rows, k, columns)
    return Tensor(found[0].astype(np.int32)), Tensor(found[1].astype(np.int32))


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of an array of ndim dimensions of size n."""
    return (arange(n),) * ndim


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Vectors reshaped so that together they index a grid."""
    return _grids([tensor(a) for a in args], True, "ij")


# Joining and cutting ------------------------------------------------------------------------------


def concatenate(arrays: Any, axis: Any = 0) -> Tensor:
    """Arrays joined along an axis; None: flattened first."""
    xs = [tensor(x) for x in arrays] if isinstance(arrays, (list, tuple)) else list(arrays)
    return ops.concat([x.ravel() for x in xs], 0) if axis is None else ops.concat(xs, axis)


def _sections(x: Any, sections: Any, axis: int, equal: bool) -> tuple[Tensor, ...]:
    t = tensor(x)
    n = t.shape[arguments.axis_of(axis, t.ndim, "split")]
    if isinstance(sections, (list, tuple)):
        cuts = [builtins.min(builtins.max(c + n if c < 0 else c, 0), n) for c in sections]
        ends = [0, *cuts, n]
        sizes = [builtins.max(b - a, 0) for a, b in itertools.pairwise(ends)]
        starts = ends[:-1]
        return tuple(ops.narrow(t, axis, a, m) for a, m in zip(starts, sizes, strict=True))
    count = arguments.integer(sections, "split", "indices_or_sections")
    if count <= 0 or (equal and n % count):
        raise ValueError(f"split: {n} elements do not make {count} equal parts{_where()}")
    sizes = [n // count + (i < n % count) for i in builtins.range(count)]
    return tuple(ops.split(t, sizes, axis))


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Cut along axis, into so many equal parts or before the given indices.

    Raises ValueError if equal parts are not possible.
    """
    return _sections(x, indices_or_sections, axis, True)


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """As split; parts need not be equal, the first ones are longer by one."""
    return _sections(x, indices_or_sections, axis, False)


def pad(
    arr: Any, pad_width: Any, mode: Any = "constant", stat_length: Any = None, constant_values: Any = 0,
    end_values: Any = 0, reflect_type: str = "even", **kwargs: Any,
) -> Tensor:  # fmt: skip
    """Longer at both ends of each dimension, by pad_width: a number, (before, after), or such a pair for
    each dimension.

    mode: 'constant', 'edge', 'reflect', 'symmetric', 'wrap', 'empty', or 'linear_ramp', 'maximum',
    'mean', 'minimum' over stat_length elements. Raises ValueError for another mode.
    """
    x = tensor(arr)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2))
    if mode in ("constant", "empty"):
        fills = np.broadcast_to(np.asarray(constant_values), (x.ndim, 2))
        for a, ((before, after), (low, high)) in enumerate(zip(widths, fills, strict=True)):
            ends = []
            for count, value in ((before, low), (after, high)):
                dims = list(x.shape)
                dims[a] = int(count)
                ends.append(_ops.full(dims, value.item(), x.dtype))
            x = _ops.concat([ends[0], x, ends[1]], a)
        return x
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        odd = reflect_type == "odd"
        if odd:
            raise NotImplementedError(f"pad: reflect_type 'odd' is not there{_where()}")
        for a, (before, after) in enumerate(widths):
            index = np.pad(np.arange(x.shape[a]), (int(before), int(after)), mode)
            x = _ops.gather(x, Tensor(index), a)
        return x
    if mode not in ("linear_ramp", "maximum", "mean", "minimum"):
        raise ValueError(f"pad: unknown mode {mode!r}{_where()}")
    reductions: dict[str, Any] = {"maximum": ops.amax, "minimum": ops.amin, "mean": ops.mean}
    reduce = reductions.get(mode)
    lengths = None if stat_length is None else np.broadcast_to(np.asarray(stat_length), (x.ndim, 2))
    ramps = np.broadcast_to(np.asarray(end_values), (x.ndim, 2))
    for a, (before, after) in enumerate(widths):
        ends, n = [], x.shape[a]
        for side, count in enumerate((int(before), int(after))):
            if reduce is not None:
                m = n if lengths is None else builtins.min(int(lengths[a, side]), n)
                part = ops.narrow(x, a, 0 if side == 0 else n - m, m)
                dims = list(x.shape)
                dims[a] = count
                ends.append(_ops.broadcast_to(reduce(part, a, True), dims))
            else:
                edge = ops.narrow(x, a, 0 if side == 0 else n - 1, 1)
                share = np.arange(count) / builtins.max(count, 1)
                share = share if side == 0 else (share[::-1] if count else share)
                line = _ops.reshape(Tensor(share.copy(), x.dtype), [count] + [1] * (x.ndim - 1 - a))
                end = ramps[a, side].item()
                ends.append(_ops.add(end, _ops.mul(_ops.sub(edge, end), line)))
        x = _ops.concat([ends[0], x, ends[1]], a)
    return x


# Questions ----------------------------------------------------------------------------------------


def isscalar(element: Any) -> bool:
    """Whether it is a Python number, string or bytes."""
    return isinstance(element, (int, float, complex, str, bytes, bool, np.generic))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or of those along an axis or several."""
    x = tensor(a)
    return (
        x.size
        if axis is None
        else math.prod(x.shape[i] for i in arguments.integers(axis, "size", "axis"))
    )


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Tensor:
    """Whether both have one shape and the same elements; NaN equals NaN with equal_nan."""
    a, b = tensor(a1), tensor(a2)
    if tuple(a.shape) != tuple(b.shape):
        return Tensor(False)
    same = _ops.equal(a, b)
    if equal_nan:
        same = _ops.logical_or(same, _ops.logical_and(_ops.isnan(a), _ops.isnan(b)))
    return ops.all(same)


def array_equiv(a1: Any, a2: Any) -> Tensor:
    """Whether both have the same elements after broadcasting."""
    a, b = tensor(a1), tensor(a2)
    try:
        np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    except ValueError:
        return Tensor(False)
    return ops.all(_ops.equal(a, b))


def promote_types(type1: Any, type2: Any) -> _core.DType:
    """The dtype that both go into."""
    return _core.promote(to_dtype(type1), to_dtype(type2))  # type: ignore[no-any-return]


def result_type(*arrays_and_dtypes: Any) -> _core.DType:
    """The dtype that all of these together go into."""
    kinds = [
        a if isinstance(a, _core.DType) else a.dtype if isinstance(a, Tensor) else array(a).dtype
        if not isinstance(a, (str, type)) else to_dtype(a)
        for a in arrays_and_dtypes
    ]  # fmt: skip
    out = kinds[0]
    for kind in kinds[1:]:
        out = _core.promote(out, kind)
    return out


# Mathematics --------------------------------------------------------------------------------------


def matmul(x1: Any, x2: Any, dtype: Any = None) -> Tensor:
    """The matrix product; leading dimensions broadcast."""
    return typed(ops.matmul(tensor(x1), tensor(x2)), dtype)  # type: ignore[no-any-return]


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors or matrices; of all elements if neither ord nor axis is given."""
    return ops.norm(floating(x), ord, axis, keepdims)


def average(x: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """The mean, or the sum of weights times elements over that of the weights; (mean, that sum) if
    returned."""
    t = floating(x)
    if weights is None:
        mean = ops.mean(t, axis)
        total = _ops.full(list(mean.shape), t.size / builtins.max(mean.size, 1), t.dtype)
    else:
        w = floating(weights)
        if w.ndim != t.ndim and axis is not None:
            w = _ops.reshape(w, [n if i == axis % t.ndim else 1 for i, n in enumerate(t.shape)])
            w = _ops.broadcast_to(w, list(t.shape))
        total = ops.sum(w, axis)
        mean = _ops.div(ops.sum(_ops.mul(t, w), axis), total)
    return (mean, total) if returned else mean


def _extreme_without_nan(
    x: Any, axis: Any, dtype: Any, keepdims: bool, worst: float, reduce: Any
) -> Tensor:
    t = floating(x)
    nan = _ops.isnan(t)
    out = reduce(_ops.where(nan, worst, t), axis, keepdims)
    return typed(_ops.where(ops.all(nan, axis, keepdims), math.nan, out), dtype)  # type: ignore[no-any-return]


def total(x: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any) -> Tensor:
    """The sum, with initial added."""
    out = ops.sum(tensor(x), axis, keepdims, dtype=dtype)
    return out if initial is None else _ops.add(out, initial)


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest less the smallest element."""
    low, high = ops.aminmax(tensor(x), axis=axis, keepdims=keepdims)
    return _ops.sub(high, low)


def without_nan(x: Any, dtype: Any) -> Tensor:
    """0 in place of NaN."""
    t = typed(tensor(x), dtype)
    return _ops.where(_ops.isnan(t), 0, t)


def _observations(m: Any, y: Any, rowvar: bool) -> Tensor:
    """The matrix whose rows are variables."""
    parts = []
    for x in (floating(part) for part in (m, y) if part is not None):
        x = _ops.reshape(x, [1, x.size]) if x.ndim < 2 else x
        parts.append(x if rowvar or x.shape[0] == 1 else x.T)
    return parts[0] if len(parts) == 1 else ops.concat(parts, 0)


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None, dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The covariances of variables, the rows of m and y (columns, unless rowvar), over the number of
    observations less ddof (by default 1, or 0 for bias)."""
    lost = (0 if bias else 1) if ddof is None else ddof
    rows = _observations(m, y, rowvar)
    return typed(ops.cov(rows, correction=lost, fweights=fweights, aweights=aweights), dtype)  # type: ignore[no-any-return]


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Tensor:
    """The correlations of variables, the rows of x and y (columns, unless rowvar)."""
    return typed(ops.corrcoef(_observations(x, y, rowvar)), dtype)  # type: ignore[no-any-return]


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Tensor:
    """The vector products; of vectors with two elements, the third element of the product."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = ops.movedim(tensor(a), axisa, -1), ops.movedim(tensor(b), axisb, -1)
    flat = x.shape[-1] == y.shape[-1] == 2
    x, y = (_ops.slice_scatter(t, [*t.shape[:-1], 3], [0] * t.ndim, [1] * t.ndim) for t in (x, y))
    out = ops.cross(x, y, -1)
    return ops.gather(out, Tensor(2), -1) if flat else ops.movedim(out, -1, axisc)


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The elements of ar1 that are not in ar2, in order and each once unless assume_unique."""
    found = ops.masked_select(vector(ar1), ops.isin(vector(ar1), ar2, True))
    return found if assume_unique else ops.unique(found)[0]


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The elements of both, in order and each once; with the indices of their first occurrences."""
    a, b = vector(ar1), vector(ar2)
    _, i, j = np.intersect1d(a.asnumpy(), b.asnumpy(), assume_unique, return_indices=True)
    found = _ops.gather(a, Tensor(i), 0)
    return (
        (found, Tensor(i.astype(np.int32)), Tensor(j.astype(np.int32))) if return_indices else found
    )


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "clip", order: str = "C") -> Tensor:
    """The places, counted in order, of coordinates in an array of shape dims; int32."""
    rows = _plain(multi_index)
    options: Any = (mode, order)
    found = np.ravel_multi_index(tuple(np.asarray(r) for r in rows), tuple(dims), *options)
    return Tensor(np.asarray(found, np.int32))


def nanmax(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element that is not NaN."""
    return _extreme_without_nan(a, axis, dtype, keepdims, -math.inf, ops.amax)


def nanmin(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element that is not NaN."""
    return _extreme_without_nan(a, axis, dtype, keepdims, math.inf, ops.amin)


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False
) -> Tensor:
    """The variance of the elements that are not NaN, over their number less ddof."""
    x = typed(floating(a), dtype)
    deviation = _ops.sub(x, ops.nanmean(x, axis, True))
    count = ops.sum(_ops.cast(_ops.logical_not(_ops.isnan(x)), x.dtype), axis, keepdims)
    return _ops.div(
        ops.nansum(_ops.square(deviation), axis, keepdims), _ops.sub(count, float(ddof))
    )


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor:
    """The piecewise linear function through the points (xp, fp) at x, left and right beyond them
    (by default the first and last fp)."""
    t, points, values = floating(x), floating(xp), floating(fp)
    n = points.size
    cut = ops.searchsorted(points, t, right=True)
    high = _ops.maximum(_ops.minimum(cut, n - 1), 1)
    low = _ops.sub(high, 1)
    x0, x1 = (_ops.gather(points, i, 0) for i in (low, high))
    y0, y1 = (_ops.gather(values, i, 0) for i in (low, high))
    out = _ops.add(y0, _ops.mul(_ops.div(_ops.sub(y1, y0), _ops.sub(x1, x0)), _ops.sub(t, x0)))
    first, last = ops.narrow(points, 0, 0, 1), ops.narrow(points, 0, n - 1, 1)
    lowest = ops.narrow(values, 0, 0, 1) if left is None else left
    highest = ops.narrow(values, 0, n - 1, 1) if right is None else right
    out = _ops.where(_ops.less(t, first), lowest, out)
    return _ops.reshape(_ops.where(_ops.greater(t, last), highest, out), list(t.shape))


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Differences over distances: central inside, one-sided at the ends (numpy.gradient, edge_order 1).

    varargs: the distance of all dimensions, or one for each. A tensor for one axis, else a list.
    """
    if edge_order != 1:
        raise ValueError(f"gradient: edge_order must be 1, got {edge_order}{_where()}")
    x = floating(f)
    axes = arguments.axes_of(axis, x.ndim, "gradient")
    steps = list(varargs) or [1.0]
    steps = steps * len(axes) if len(steps) == 1 else steps
    out = []
    for a, h in zip(axes, steps, strict=True):
        n = x.shape[a]
        if n < 2:
            raise ValueError(f"gradient: axis {a} needs at least 2 elements, has {n}{_where()}")
        first = _ops.sub(ops.narrow(x, a, 1, 1), ops.narrow(x, a, 0, 1))
        last = _ops.sub(ops.narrow(x, a, n - 1, 1), ops.narrow(x, a, n - 2, 1))
        inner = _ops.mul(_ops.sub(ops.narrow(x, a, 2, n - 2), ops.narrow(x, a, 0, n - 2)), 0.5)
        out.append(_ops.div(_ops.concat([first, inner, last], a), h))
    return out[0] if len(axes) == 1 else out


def unwrap(p: Any, discont: float = math.pi, axis: int = -1) -> Tensor:
    """Angles with jumps of more than discont along axis taken back by multiples of 2 pi."""
    x = floating(p)
    a = arguments.axis_of(axis, x.ndim, "unwrap")
    step = ops.diff(x, 1, a)
    folded = _ops.sub(_ops.mod(_ops.add(step, math.pi), 2 * math.pi), math.pi)
    edge = _ops.logical_and(_ops.equal(folded, -math.pi), _ops.greater(step, 0))
    change = _ops.sub(_ops.where(edge, math.pi, folded), step)
    change = _ops.where(_ops.less(_ops.abs(step), discont), 0, change)
    first = ops.narrow(x, a, 0, 1)
    rest = _ops.add(ops.narrow(x, a, 1, x.shape[a] - 1), ops.cumsum(change, a))
    return _ops.concat([first, rest], a)


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """The convolution of two vectors: 'full', 'same' or 'valid'."""
    x, k = tensor(a), tensor(v)
    if x.ndim != 1 or k.ndim != 1 or not x.size or not k.size:
        raise ValueError(f"convolve: two vectors with elements are needed{_where()}")
    x, k = (x, k) if x.size >= k.size else (k, x)
    full_size = x.size + k.size - 1
    # The matrix whose columns are k moved on by one each.
    index = np.arange(full_size)[:, None] - np.arange(x.size)[None, :]
    there = (index >= 0) & (index < k.size)
    taken = _ops.gather(k, Tensor(np.clip(index, 0, k.size - 1)), 0)
    out = ops.mv(_ops.where(Tensor(there), taken, 0), x)
    if mode == "full":
        return out
    arguments.one_of(mode, ("full", "same", "valid"), "convolve", "mode")
    count = x.size if mode == "same" else x.size - k.size + 1
    return ops.narrow(out, 0, (full_size - count) // 2, count)


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """The correlation of two vectors: sum_n a[n + k] v[n]."""
    x, k = tensor(a), tensor(v)
    out = convolve(x, ops.flip(k, (0,)), mode)
    even = mode == "same" and k.size > x.size and k.size % 2 == 0
    return (
        out
        if not even
        else ops.narrow(convolve(x, ops.flip(k, (0,)), "full"), 0, x.size // 2, k.size)
    )


# Choices ------------------------------------------------------------------------------------------


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """The element of the first choice whose condition is true, else default."""
    choices = [tensor(c) for c in choicelist]
    out: Any = _ops.cast(array(default), choices[0].dtype)
    for condition, choice in zip(reversed(list(condlist)), reversed(choices), strict=True):
        out = _ops.where(operand(condition), choice, out)
    return out  # type: ignore[no-any-return]


def choose(a: Any, choices: Any, mode: str = "clip") -> Tensor:
    """From the a-th of choices each element; mode for a out of range: 'clip', 'wrap' or 'raise'."""
    index = tensor(a)
    parts = [tensor(c) for c in choices]
    *parts, index = ops.broadcast_tensors(*parts, index)
    stacked = ops.stack(parts, 0)
    flat = _ops.reshape(stacked, [len(parts), -1])
    at = _ops.reshape(index, [1, -1])
    n = len(parts)
    if mode == "raise" and builtins.bool(((index.asnumpy() < 0) | (index.asnumpy() >= n)).any()):
        raise ValueError(f"choose: an index is not within {n} choices{_where()}")
    at = _ops.mod(at, n) if mode == "wrap" else _ops.maximum(_ops.minimum(at, n - 1), 0)
    return _ops.reshape(ops.gather_elements(flat, 0, at), list(stacked.shape[1:]))


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Where a condition is true the value of its function (or number): the last one counts, one more
    function is for the rest, else 0."""
    t = tensor(x)
    conditions = [
        tensor(c) for c in (condlist if isinstance(condlist, (list, tuple)) else [condlist])
    ]
    values = [f(t, *args, **kw) if callable(f) else f for f in funclist]
    out: Any = _ops.cast(values.pop() if len(values) > len(conditions) else 0, t.dtype)
    for condition, value in zip(conditions, values, strict=True):
        out = _ops.where(condition, _ops.cast(value, t.dtype), out)
    return _ops.broadcast_to(out, list(t.shape))


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """func1d of each vector along axis, its result in the vector's place."""
    x = tensor(arr)
    a = arguments.axis_of(axis, x.ndim, "apply_along_axis")
    moved = ops.movedim(x, a, -1)
    rows = _ops.reshape(moved, [-1, x.shape[a]])
    results = [tensor(func1d(row, *args, **kwargs)) for row in ops.unstack(rows, 0)]
    out = _ops.reshape(ops.stack(results, 0), [*moved.shape[:-1], *results[0].shape])
    own = list(builtins.range(out.ndim - results[0].ndim, out.ndim))
    return ops.movedim(out, own, list(builtins.range(a, a + len(own)))) if own else out


def apply_over_axes(func: Any, a: Any, axes: Any) -> Tensor:
    """func(array, axis) for one axis after the other, dimensions that it drops put back with size 1."""
    x = tensor(a)
    for axis in arguments.axes_of(axes, x.ndim, "apply_over_axes"):
        out = func(x, axis)
        x = out if out.ndim == x.ndim else ops.expand_dims(out, axis)
    return x


# Counting -----------------------------------------------------------------------------------------


def _plain(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.asnumpy()
    return [_plain(item) for item in x] if isinstance(x, (list, tuple)) else x


def _histogram(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    counts, *edges = function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})
    flat = edges[0] if len(edges) == 1 and isinstance(edges[0], (list, tuple)) else edges
    made = [Tensor(np.asarray(e, np.float32)) for e in flat]
    return Tensor(np.asarray(counts, np.float32)), made


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """(the number of elements, or their weights, in each bin; the bins' edges), float32."""
    counts, edges = _histogram(np.histogram, a, bins, range, weights=weights, density=density)
    return counts, edges[0]


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """(counts, the edges along x, those along y) of points (x, y)."""
    counts, edges = _histogram(np.histogram2d, x, y, bins, range, weights=weights, density=density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """(counts, the edges along each dimension) of points, the rows of sample or a list of coordinates."""
    return _histogram(np.histogramdd, sample, bins, range, weights=weights, density=density)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """The coordinates, in an array of that shape, of places in it counted in order."""
    found = np.unravel_index(
        _plain(tensor(indices)), tuple(shape_of(shape)), "F" if order == "F" else "C"
    )
    return tuple(Tensor(np.asarray(i, np.int32)) for i in found)


# Polynomials --------------------------------------------------------------------------------------


def polysum(a1: Any, a2: Any, sign: int) -> Tensor:
    """a1 + sign a2, coefficients of polynomials with the highest power first."""
    a, b = tensor(a1), tensor(a2)
    n = builtins.max(a.size, b.size)
    a, b = (_ops.slice_scatter(x, [n], [n - x.size], [1]) for x in (a, b))
    return _ops.add(a, b) if sign > 0 else _ops.sub(a, b)


def polymul(a1: Any, a2: Any) -> Tensor:
    """The product of two polynomials given by coefficients, the highest power first."""
    return convolve(ops.atleast_1d(tensor(a1)), ops.atleast_1d(tensor(a2)))


def polyval(p: Any, x: Any) -> Tensor:
    """The polynomial with coefficients p, the highest power first, at x (Horner)."""
    t = operand(x)
    out: Any = 0
    for c in ops.unstack(tensor(p), 0):
        out = _ops.add(_ops.mul(out, t), c)
    return out  # type: ignore[no-any-return]


def polyder(p: Any, m: int = 1) -> Tensor:
    """The coefficients of the m-th derivative."""
    c = tensor(p)
    for _ in builtins.range(m):
        n = c.size - 1
        if n <= 0:
            return _ops.full([0], 0, c.dtype)
        c = _ops.mul(ops.narrow(c, 0, 0, n), arange(n, 0, -1))
    return c


def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """The coefficients of the m-th antiderivative, with the constants k (0 by default)."""
    c = floating(p)
    constants = (
        [0.0] * m
        if k is None
        else np.broadcast_to(np.asarray(_plain(k), np.float64), (m,)).tolist()
    )
    for constant in constants:
        c = _ops.concat([_ops.div(c, arange(c.size, 0, -1)), _ops.full([1], constant, c.dtype)], 0)
    return c
