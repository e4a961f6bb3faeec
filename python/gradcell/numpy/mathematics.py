"""Sums, norms, statistics, differences, convolutions, polynomials, and questions about arrays."""

from __future__ import annotations

import builtins
import functools
import math
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, to_dtype
from gradcell.base.spelling import spelling
from gradcell.ops.decorators import one_plan
from gradcell.ops.elements.complex_numbers import real_valued

from gradcell.numpy.conversion import (  # isort: skip
    _plain, array, floating, floats, operands, tensor, tensors, typed,
)  # fmt: skip


def isscalar(element: Any) -> bool:
    """Return whether the argument is a Python number, string or bytes.

    element: any value.
    """
    return isinstance(element, (int, float, complex, str, bytes, bool, np.generic))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or of those along an axis or several."""
    x = tensor(a)
    if axis is None:
        return x.size
    return math.prod(x.shape[i] for i in arguments.axes_of(axis, x.ndim, "size"))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Tensor:
    """Return whether both have one shape and the same elements; NaN equals NaN with equal_nan."""
    a, b = tensors(a1, a2)
    if tuple(a.shape) != tuple(b.shape):
        return Tensor(False)
    same = _ops.equal(a, b)
    if equal_nan:
        same = _ops.logical_or(same, _ops.logical_and(_ops.isnan(a), _ops.isnan(b)))
    return ops.all(same)


def array_equiv(a1: Any, a2: Any) -> Tensor:
    """Return whether both have the same elements after broadcasting."""
    a, b = tensors(a1, a2)
    try:
        np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    except ValueError:
        return Tensor(False)
    return ops.all(_ops.equal(a, b))


def promote_types(type1: Any, type2: Any) -> _core.DType:
    """The smallest dtype to which both can be converted.

    type1, type2: dtypes.
    """
    return _core.promote(to_dtype(type1), to_dtype(type2))


def _named(kind: Any) -> _core.DType:
    """A dtype by its name here, or by NumPy's short ones."""
    try:
        return to_dtype(kind)
    except TypeError:
        return to_dtype(np.dtype(kind))


def result_type(*arrays_and_dtypes: Any) -> _core.DType:
    """The smallest dtype to which all of these can be converted.

    arrays_and_dtypes: tensors, numbers and dtypes.
    """
    kinds = [
        a if isinstance(a, _core.DType) else a.dtype if isinstance(a, Tensor) else array(a).dtype
        if not isinstance(a, (str, type)) else _named(a)
        for a in arrays_and_dtypes
    ]  # fmt: skip
    out = kinds[0]
    for kind in kinds[1:]:
        out = _core.promote(out, kind)
    return out


@spelling(ops.matmul, together=tensors, then=typed)
def matmul(x1: Any, x2: Any, dtype: Any = None) -> Tensor: ...


@real_valued
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors or matrices, real; of all elements if neither ord nor axis is given."""
    found = ops.norm(floating(x), ord, axis, keepdims)
    return ops.real(found) if found.dtype.is_complex else found


def without_nan(x: Any, dtype: Any) -> Tensor:
    """0 in place of NaN."""
    t = typed(tensor(x), dtype)
    return _ops.where(_ops.isnan(t), 0, t)


def _observations(m: Any, y: Any, rowvar: bool) -> Tensor:
    """The matrix whose rows are variables."""
    parts = []
    for x in floats(*(part for part in (m, y) if part is not None)):
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
    x, y = tensors(a, b)
    x, y = ops.movedim(x, axisa, -1), ops.movedim(y, axisb, -1)
    if builtins.any(tuple(t.shape[-1:]) not in ((2,), (3,)) for t in (x, y)):
        bad_value(
            f"cross: vectors of 2 or 3 elements are needed, got shapes {list(x.shape)} and {list(y.shape)}"
        )
    flat = x.shape[-1] == y.shape[-1] == 2
    x, y = (_ops.slice_scatter(t, [*t.shape[:-1], 3], [0] * t.ndim, [1] * t.ndim) for t in (x, y))
    out = ops.cross(x, y, -1)
    return ops.gather(out, Tensor(2), -1) if flat else ops.movedim(out, -1, axisc)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Tensor:
    """The piecewise linear function through the points (xp, fp) at x, left and right beyond them
    (by default the first and last fp).

    xp: where the function is known, a rising vector. fp: its values there. left: the value below
    xp. right: the value above it. period: of x and xp, which may then be in any order.
    """
    t, points, values = floats(x, xp, fp)
    if period is not None:
        t, points = _ops.mod(t, period), _ops.mod(points, period)
        order = ops.argsort(points)
        points, values = (_ops.gather(v, order, 0) for v in (points, values))
        ends = [(-1, -period), (0, period)]
        (before, after) = (_ops.add(points[i : i + 1 or None], by) for i, by in ends)
        points = _ops.concat([before, points, after], 0)
        values = _ops.concat([values[-1:], values, values[:1]], 0)
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
    _, lowest, highest = operands(values, lowest, highest)
    out = _ops.where(_ops.less(t, first), lowest, out)
    return _ops.reshape(_ops.where(_ops.greater(t, last), highest, out), list(t.shape))


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Differences over distances, of second order inside and of edge_order, 1 or 2, at the ends, as
    numpy.gradient has them: a tensor for one axis, else a list.

    f: the values of a function on a grid. varargs: the distance of neighbours along all axes, or for
    each axis its distance or the coordinates along it, a vector. edge_order: 1 or 2.
    """
    order = arguments.one_of(edge_order, (1, 2), "gradient", "edge_order")
    x = floating(f)
    axes = arguments.axes_of(axis, x.ndim, "gradient")
    steps = list(varargs) or [1.0]
    steps = steps * len(axes) if len(steps) == 1 and not np.ndim(steps[0]) else steps
    if len(steps) != len(axes):
        bad_type(f"gradient: {len(steps)} distances do not fit {len(axes)} axes")
    out = [_slopes(x, a, h, order) for a, h in zip(axes, steps, strict=True)]
    return out[0] if len(axes) == 1 else out


def _slopes(x: Tensor, axis: int, step: Any, order: int) -> Tensor:
    n = x.shape[axis]
    if n < order + 1:
        bad_value(f"gradient: axis {axis} needs at least {order + 1} elements, has {n}")
    f = functools.partial(ops.narrow, x, axis)
    places = step if isinstance(step, Tensor) else Tensor(np.asarray(step), x.dtype)
    if places.ndim:
        if places.ndim != 1 or places.size != n:
            bad_value(f"gradient: axis {axis} has {n} places, not {list(places.shape)}")
        apart = _ops.reshape(ops.diff(places), [n - 1] + [1] * (x.ndim - 1 - axis))
    else:
        apart = _ops.broadcast_to(places, [n - 1] + [1] * (x.ndim - 1 - axis))
    h = functools.partial(ops.narrow, apart, 0)

    def three(i: int, count: int, place: int) -> Tensor:
        """The slope of the parabola through count triples from the i-th element on, at one of each."""
        one, two = h(i, count), h(i + 1, count)
        first = (f(i + 1, count) - f(i, count)) / one
        second = (f(i + 2, count) - f(i + 1, count)) / two
        bend = (second - first) / (one + two)
        return first + bend * (-one, one, one + two + two)[place]

    first = (f(1, 1) - f(0, 1)) / h(0, 1) if order == 1 else three(0, 1, 0)
    last = (f(n - 1, 1) - f(n - 2, 1)) / h(n - 2, 1) if order == 1 else three(n - 3, 1, 2)
    if places.ndim:
        inner = three(0, n - 2, 1)
    else:
        inner = (f(2, n - 2) - f(0, n - 2)) / (h(0, n - 2) + h(1, n - 2))
    return _ops.concat([first, inner, last], axis)


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """The place of each element between bins, a vector that rises or falls, int32: i where
    bins[i - 1] <= x < bins[i], or where bins[i - 1] > x >= bins[i] if they fall.

    right: whether an element that equals a bin belongs to the interval on its other side. Raises
    ValueError for bins in no order.
    """
    t, line = (v if isinstance(v, Tensor) else Tensor(np.asarray(v)) for v in (x, bins))
    n = line.size
    if n < 2:
        return ops.bucketize(t, line, right=right)
    if _core.is_plain(line):
        steps = np.diff(line.asnumpy())
        if (steps < 0).any() and (steps > 0).any():
            bad_value("digitize: the bins must rise or fall, each beyond the one before")
    falls = _ops.less(ops.narrow(line, 0, n - 1, 1), ops.narrow(line, 0, 0, 1))
    place = ops.bucketize(t, _ops.where(falls, ops.flip(line, (0,)), line), right=right)
    return _ops.where(_ops.reshape(falls, []), _ops.sub(n, place), place)


def unwrap(
    p: Any, discont: Any = math.pi, axis: int = -1, *, period: float = 2 * math.pi
) -> Tensor:
    """Angles with jumps of more than discont along axis taken back by multiples of the period.

    p: angles, in radians unless another period is given. discont: at least half the period, which it is
    if less. period: after which they are the same.
    """
    half = arguments.option(period, "unwrap", "period") / 2
    jump = 0.0 if discont is None else arguments.option(discont, "unwrap", "discont")
    discont = builtins.max(half, jump)
    x = floating(p)
    a = arguments.axis_in(x, axis, "unwrap")
    if not x.shape[a]:
        return x
    step = ops.diff(x, 1, a)
    folded = _ops.sub(_ops.mod(_ops.add(step, half), period), half)
    edge = _ops.logical_and(_ops.equal(folded, -half), _ops.greater(step, 0))
    change = _ops.sub(_ops.where(edge, half, folded), step)
    change = _ops.where(_ops.less(_ops.abs(step), discont), 0, change)
    first = ops.narrow(x, a, 0, 1)
    rest = _ops.add(ops.narrow(x, a, 1, x.shape[a] - 1), ops.cumsum(change, a))
    return _ops.concat([first, rest], a)


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """The convolution of two vectors: 'full', 'same' or 'valid'.

    mode: 'full', every overlap; 'same', as long as the longer vector; 'valid', whole overlaps only.
    """
    x, k = map(arguments.vector, tensors(a, v))
    if x.ndim != 1 or k.ndim != 1 or not x.size or not k.size:
        bad_value("convolve: two vectors with elements are needed")
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
    """The correlation of two vectors: sum_n a[n + k] times the conjugate of v[n].

    mode: 'full', 'same' or 'valid', as in convolve.
    """
    x, k = map(arguments.vector, tensors(a, v))
    k = ops.conj(k)
    out = convolve(x, ops.flip(k, (0,)), mode)
    if mode == "same" and k.size > x.size and k.size % 2 == 0:
        return ops.narrow(convolve(x, ops.flip(k, (0,)), "full"), 0, x.size // 2, k.size)
    return out


def _edges(x: Tensor, asked: Any, limits: Any) -> Tensor:
    """The edges of bins along one coordinate, float64; equal parts of x's own range follow its ends."""
    if isinstance(asked, str):  # a rule that looks at the numbers
        return Tensor(np.histogram_bin_edges(x.asnumpy(), asked, limits).astype(np.float64))
    if not isinstance(asked, (int, np.integer)):
        line = _ops.cast(_ops.stop_gradient(tensors(x, asked)[1]), _core.float64)
        if _core.is_plain(line) and (np.diff(line.asnumpy()) < 0).any():
            bad_value("histogram: the edges of bins must be in ascending order")
        return line
    if limits is not None or not x.size:
        return Tensor(np.histogram_bin_edges(np.zeros(0), int(asked), limits))
    count = arguments.integer(asked, "histogram", "bins", 1)
    low, high = (_ops.cast(end(x), _core.float64) for end in (ops.amin, ops.amax))
    apart = _ops.where(_ops.equal(low, high), 0.5, 0.0)
    low, high = _ops.sub(low, apart), _ops.add(high, apart)
    step = _ops.div(_ops.sub(high, low), float(count))
    steps = _ops.mul(_ops.iota([count], _core.float64, 0), step)
    return _ops.concat([_ops.add(steps, low), _ops.reshape(high, [1])], 0)


def _histogram(
    columns: list[Tensor], bins: Any, range: Any, weights: Any, density: bool
) -> tuple[Tensor, list[Tensor]]:
    """(counts of points by their coordinates, the edges of the bins along each), float32."""
    if builtins.any(c.dtype.is_complex for c in columns):
        bad_type(f"histogram: needs real numbers, got {columns[0].dtype}")
    limits = [_plain(range)] * len(columns) if range is None else list(_plain(range))
    each = bins if isinstance(bins, (list, tuple)) else [bins] * len(columns)
    weight = None if weights is None else tensors(columns[0], weights)[1]
    total, *edges = _counted(tuple(columns), tuple(each), tuple(limits), weight, bool(density))
    return total, edges


@one_plan
def _counted(
    columns: tuple[Tensor, ...], bins: Any, limits: Any, weights: Tensor | None, density: bool
) -> list[Tensor]:
    points = [_ops.reshape(c, [c.size]) for c in columns]
    edges = [_edges(*given) for given in zip(points, bins, limits, strict=True)]
    count = points[0].size
    place = _ops.full([count], 0, _core.int64)
    inside = _ops.full([count], True, _core.bool)
    for x, line in zip(points, edges, strict=True):
        wide, fixed = (_ops.cast(_ops.stop_gradient(t), _core.float64) for t in (x, line))
        n = fixed.size - 1
        at = _ops.sub(_ops.cast(_ops.place_in_line(fixed, wide, True), _core.int64), 1)
        # Always: counting raises for edges that are not finite.
        some = _ops.greater_equal(_ops.reduce_sum(_ops.count_between(wide, fixed)), 0)
        last = _ops.equal(wide, _ops.reshape(ops.narrow(fixed, 0, n, 1), []))
        at = _ops.where(last, n - 1, at)  # the last bin has both of its edges
        within = _ops.logical_and(_ops.greater_equal(at, 0), _ops.less(at, n))
        inside = _ops.logical_and(_ops.logical_and(inside, within), some)
        place = _ops.add(_ops.mul(place, n), _ops.maximum(_ops.minimum(at, n - 1), 0))
    dims = [line.size - 1 for line in edges]
    each = _ops.full([count], 1.0, _core.float64)
    if weights is not None:
        each = _ops.cast(_ops.reshape(weights, [weights.size]), _core.float64)
    sums = _ops.scatter_add(place, _ops.where(inside, each, 0.0), 0, math.prod(dims))
    out = _ops.reshape(sums, dims)
    if density:
        volume = functools.reduce(
            lambda a, b: _ops.mul(_ops.reshape(a, [*a.shape, 1]), b),
            [
                _ops.sub(ops.narrow(e, 0, 1, e.size - 1), ops.narrow(e, 0, 0, e.size - 1))
                for e in edges
            ],
        )
        out = _ops.div(_ops.div(out, _ops.reduce_sum(out)), _ops.stop_gradient(volume))
    return [_ops.cast(t, _core.float32) for t in (out, *edges)]


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """(the number of elements, or their weights, in each bin; the bins' edges), float32."""
    limits = None if range is None else [range]
    counts, edges = _histogram([tensor(a)], [bins], limits, weights, density)
    return counts, edges[0]


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """(counts, the edges along x, those along y) of points (x, y).

    y: the second coordinates, a vector as long as x. bins: the number of intervals, or their edges.
    """
    pair = isinstance(bins, (list, tuple)) and len(bins) == 2
    both = list(bins) if pair else [bins, bins]
    counts, edges = _histogram(list(tensors(x, y)), both, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """(counts, the edges along each dimension) of points, the rows of sample or a list of coordinates."""
    columns = sample if isinstance(sample, (list, tuple)) else ops.unbind(tensor(sample), 1)
    if not columns:
        bad_value("histogramdd: the points have no coordinates")
    return _histogram(list(tensors(*columns)), bins, range, weights, density)
