"""Arrays joined, cut, padded and chosen from."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, unsupported
from gradcell.base.places import place_type, places
from gradcell.base.spelling import spelling
from gradcell.numpy.conversion import _plain, array, operand, shape_of, tensor, tensors


def concatenate(arrays: Any, axis: Any = 0) -> Tensor:
    """Arrays joined along an axis; None: flattened first."""
    xs = tensors(*arrays)
    return ops.concat([x.ravel() for x in xs], 0) if axis is None else ops.concat(xs, axis)


def _cuts(sections: Any) -> Any:
    """A number of parts, or a list of where to cut."""
    if isinstance(sections, (list, tuple)) or np.ndim(sections):
        return arguments.integers(sections, "split", "indices_or_sections")
    return arguments.integer(sections, "split", "indices_or_sections")


@spelling(ops.tensor_split, x=tensor, indices_or_sections=_cuts)
def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]: ...


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Cut along axis, into that many equal parts or before the given indices.

    Raises ValueError if equal parts are not possible.
    """
    t, cuts = tensor(x), _cuts(indices_or_sections)
    n = t.shape[arguments.axis_in(t, axis, "split")]
    if isinstance(cuts, int) and (cuts <= 0 or n % cuts):
        bad_value(f"split: {n} elements do not make {cuts} equal parts")
    return ops.tensor_split(t, cuts, axis)


def _of_ends(value: Any, x: Tensor, name: str) -> np.ndarray:
    """A number, (before, after), or such a pair for each dimension, as [rank, 2]."""
    given = np.asarray(value)
    if given.shape not in ((), (1,), (2,), (1, 2), (x.ndim, 1), (x.ndim, 2)):
        bad_value(
            f"pad: {name} must be a number, a pair or {x.ndim} pairs, but got {value} for shape "
            f"{list(x.shape)}"
        )
    return np.broadcast_to(given, (x.ndim, 2))


def pad(
    arr: Any, pad_width: Any, mode: Any = "constant", stat_length: Any = None, constant_values: Any = 0,
    end_values: Any = 0, reflect_type: str = "even", **kwargs: Any,
) -> Tensor:  # fmt: skip
    """Pads each dimension at both ends, by pad_width: a number, (before, after), or such a pair for
    each dimension.

    mode: 'constant', 'edge', 'reflect', 'symmetric', 'wrap', 'empty', or 'linear_ramp', 'maximum',
    'mean', 'minimum' over stat_length elements. Raises ValueError for another mode.
    """
    x = tensor(arr)
    widths = _of_ends(pad_width, x, "pad_width")
    if mode in ("constant", "empty"):
        fills = _of_ends(constant_values, x, "constant_values")
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
            unsupported("pad: reflect_type 'odd' is not supported")
        for a, (before, after) in enumerate(widths):
            if not x.shape[a] and before + after:
                bad_value(f"pad: nothing to repeat along axis {a} of shape {list(x.shape)}")
            index = np.pad(np.arange(x.shape[a]), (int(before), int(after)), mode)
            x = _ops.gather(x, Tensor(index), a)
        return x
    if mode not in ("linear_ramp", "maximum", "mean", "minimum"):
        bad_value(f"pad: unknown mode {mode!r}")
    reductions: dict[str, Any] = {"maximum": ops.amax, "minimum": ops.amin, "mean": ops.mean}
    reduce = reductions.get(mode)
    lengths = None if stat_length is None else _of_ends(stat_length, x, "stat_length")
    ramps = _of_ends(end_values, x, "end_values")
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


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """The element of the first choice whose condition is true, else default.

    choicelist: a tensor for each condition. default: a number or a tensor.
    """
    choices = tensors(*choicelist)
    out: Any = array(default, choices[0].dtype)
    for condition, choice in zip(reversed(list(condlist)), reversed(choices), strict=True):
        out = _ops.where(operand(condition), choice, out)
    return out  # type: ignore[no-any-return]


def choose(a: Any, choices: Any, mode: str = "clip") -> Tensor:
    """From the a-th of choices each element; mode for a out of range: 'clip', 'wrap' or 'raise'.

    choices: a sequence of tensors that broadcast. mode: 'clip', 'wrap' or 'raise'.
    """
    index = tensor(a)
    parts = tensors(*choices)
    *parts, index = ops.broadcast_tensors(*parts, index)
    stacked = ops.stack(parts, 0)
    flat = _ops.reshape(stacked, [len(parts), index.size])
    at = _ops.reshape(index, [1, index.size])
    n = len(parts)
    if mode == "raise" and builtins.bool(((index.asnumpy() < 0) | (index.asnumpy() >= n)).any()):
        bad_value(f"choose: an index is not within {n} choices")
    at = _ops.mod(at, n) if mode == "wrap" else _ops.maximum(_ops.minimum(at, n - 1), 0)
    return _ops.reshape(ops.gather_elements(flat, 0, at), list(stacked.shape[1:]))


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Evaluate a function (or a number) where its condition is true: the last true condition
    counts, one more function is for the rest, else 0.

    funclist: functions or numbers, one for each condition, and one more for the rest. args, kw:
    further arguments of the functions.
    """
    t = tensor(x)
    listed = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    conditions = [tensor(c) for c in listed]
    values = [f(t, *args, **kw) if callable(f) else f for f in funclist]
    out: Any = _ops.cast(values.pop() if len(values) > len(conditions) else 0, t.dtype)
    for condition, value in zip(conditions, values, strict=True):
        out = _ops.where(condition, _ops.cast(value, t.dtype), out)
    return _ops.broadcast_to(out, list(t.shape))


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """func1d of each vector along axis, its result in the vector's place.

    func1d: a function of a vector. args, kwargs: its further arguments.
    """
    arguments.function(func1d, "apply_along_axis", "func1d")
    x = tensor(arr)
    a = arguments.axis_in(x, axis, "apply_along_axis")
    moved = ops.movedim(x, a, -1)
    count = math.prod(moved.shape[:-1])
    if not count:
        bad_value(f"apply_along_axis: there is no vector along axis {a} of shape {list(x.shape)}")
    rows = _ops.reshape(moved, [count, x.shape[a]])
    results = [tensor(func1d(row, *args, **kwargs)) for row in ops.unstack(rows, 0)]
    out = _ops.reshape(ops.stack(results, 0), [*moved.shape[:-1], *results[0].shape])
    own = list(builtins.range(out.ndim - results[0].ndim, out.ndim))
    return ops.movedim(out, own, list(builtins.range(a, a + len(own)))) if own else out


def apply_over_axes(func: Any, a: Any, axes: Any) -> Tensor:
    """func(array, axis) for one axis after the other, dimensions that it drops put back with size 1."""
    arguments.function(func, "apply_over_axes", "func")
    x = tensor(a)
    for axis in arguments.axes_of(axes, x.ndim, "apply_over_axes"):
        out = func(x, axis)
        x = out if out.ndim == x.ndim else ops.expand_dims(out, axis)
    return x


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "clip", order: str = "C") -> Tensor:
    """The positions, counted in order, of coordinates in an array of shape dims; float32, as in MindSpore.

    multi_index: a tuple of tensors, one for each dimension. dims: the shape of the array, a tuple.
    mode: for coordinates out of range, 'clip', 'wrap' or 'raise'. order: 'C' counts the last
    dimension fastest, 'F' the first.
    """
    sizes = arguments.integers(dims, "ravel_multi_index", "dims")
    rows = [
        tensor(r)
        for r in (
            multi_index if isinstance(multi_index, (tuple, list)) else tuple(tensor(multi_index))
        )
    ]
    if len(rows) != len(sizes) or mode not in ("clip", "wrap", "raise") or order not in ("C", "F"):
        bad_value(
            f"ravel_multi_index: {len(rows)} coordinates, dims {sizes}, mode {mode!r} and order {order!r} do "
            "not fit"
        )
    strides = np.cumprod([1, *sizes[:-1]] if order == "F" else [1, *sizes[:0:-1]])
    strides = strides if order == "F" else strides[::-1]
    place: Any = 0
    for r, n, stride in zip(rows, sizes, strides, strict=True):
        whole = _ops.cast(r, _core.int64)
        if mode == "clip":
            whole = _ops.maximum(_ops.minimum(whole, n - 1), 0)
        elif mode == "wrap":
            whole = _ops.mod(whole, n)
        else:
            whole = _ops.gather(Tensor(np.arange(n)), whole, 0)  # IndexError for what lies outside
        place = _ops.add(_ops.mul(whole, int(stride)), place)
    return _ops.cast(place, _core.float32 if math.prod(sizes) <= 2**24 else _core.float64)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """The coordinates, in an array of that shape, of positions in it counted in order.

    indices: a tensor of integers. order: 'C' counts the last dimension fastest, 'F' the first.
    """
    dims = tuple(shape_of(shape))
    found = np.unravel_index(_plain(tensor(indices)), dims, "F" if order == "F" else "C")
    return tuple(Tensor(np.asarray(i), place_type(builtins.max(dims, default=0))) for i in found)


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The elements of ar1 that are not in ar2, in order and each once unless assume_unique."""
    a, b = tensors(ar1, ar2)
    found = ops.masked_select(a.ravel(), ops.isin(a.ravel(), b, True))
    return found if assume_unique else ops.unique(found)[0]


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The elements of both, in order and each once; with the indices of their first occurrences.

    return_indices: whether two vectors of indices, into ar1 and into ar2, come too.
    """
    a, b = (x.ravel() for x in tensors(ar1, ar2))
    _, i, j = np.intersect1d(a.asnumpy(), b.asnumpy(), assume_unique, return_indices=True)
    found = _ops.gather(a, Tensor(i), 0)
    return (found, places(i), places(j)) if return_indices else found
