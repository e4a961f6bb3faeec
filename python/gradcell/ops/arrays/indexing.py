"""Ops that pick or place elements by index or mask: gather, scatter, one_hot, masks, clamp."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeVar, overload

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_index, bad_type, bad_value
from gradcell.base.spelling import spelling
from gradcell.ops.decorators import in_place, method, one_plan
from gradcell.ops.elements.complex_numbers import size_of
from gradcell.tensors.indexing import replaced

__all__ = [
    "argsort", "clamp", "clip", "clip_by_value", "gather", "gather_d", "gather_elements",
    "gather_nd", "index_add", "index_select", "isclose", "masked_fill", "masked_select", "nonzero",
    "one_hot", "scatter_nd", "select", "sort", "take", "tensor_scatter_add",
    "tensor_scatter_elements", "tensor_scatter_update", "top_k", "topk",
]  # fmt: skip

T = TypeVar("T")


def select(condition: Any, input: Any, other: Any) -> Tensor:
    """input where condition is true, else other; TypeError unless condition is a bool tensor."""
    c = arguments.tensor(condition, "Select", "condition")
    if c.dtype != _core.bool:
        bad_type(f"Select: condition must be bool, got {c.dtype}")
    return _ops.where(condition, input, other)


# Picking ------------------------------------------------------------------------------------------


def _indices(value: Any, op: str, name: str = "indices") -> Tensor:
    index = arguments.tensor(value, op, name)
    if index.dtype in (_core.int32, _core.int64):
        return index
    if index.dtype.is_floating or index.dtype == _core.bool:
        bad_type(f"{op}: {name} must be of integers, got {index.dtype}")
    return _ops.cast(index, _core.int64)


def _check_known(index: Tensor, sizes: list[int]) -> bool:
    """Raises IndexError that names the index, if its value is known; whether it is, and not below 0.
    sizes: of the dimension that is indexed, or of one for each element along the index's last
    dimension."""
    if not _core.is_plain(index) or not index.size:
        return False
    low, high = _core.bounds(index)
    if low >= -min(sizes) and high < min(sizes):
        return bool(low >= 0)
    values = index.asnumpy()
    bounds = np.array(sizes)
    wrong = (values < -bounds) | (values >= bounds)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        size = np.broadcast_to(bounds, values.shape)[at]
        bad_index(f"index {values[at]} is out of bounds for dimension with size {size}")
    return False


def _from_front(index: Tensor, size: int, invalid: int, dtype: _core.DType = _core.int64) -> Tensor:
    """Indices counted from the front in that dtype; those out of range become `invalid`."""
    if _core.is_plain(index):
        low, high = _core.bounds(index)
        if low >= 0 and high < size:
            return _ops.cast(index, dtype)
    index = _ops.cast(index, _core.int64)
    counted = _ops.where(_ops.less(index, 0), _ops.add(index, size), index)
    bad = _ops.logical_or(_ops.less(counted, 0), _ops.greater_equal(counted, size))
    return _ops.cast(_ops.where(bad, invalid, counted), dtype)


@one_plan
def gather(input_params: Any, input_indices: Any, axis: Any, batch_dims: int = 0) -> Tensor:
    """Elements along axis by index: of shape input_params.shape[:axis] +
    input_indices.shape[batch_dims:] + input_params.shape[axis + 1:].

    Negative indices count from the end. batch_dims: this many leading dimensions are shared by both.
    Raises IndexError for an index out of range, TypeError for indices that are not integers.
    """
    x = arguments.tensor(input_params, "Gather", "input_params")
    index = _indices(input_indices, "Gather", "input_indices")
    a = arguments.axis_in(x, axis, "Gather")
    if batch_dims == 0:
        return _ops.gather(x, index, a)
    b = batch_dims + (index.ndim if batch_dims < 0 else 0)
    batch = list(x.shape[:b])
    if not 0 <= b <= min(a, index.ndim) or batch != list(index.shape[:b]):
        bad_value(
            f"Gather: batch_dims {batch_dims} does not fit shapes {list(x.shape)} and {list(index.shape)} "
            f"with axis {axis}"
        )
    n, groups = x.shape[a], math.prod(batch)
    _check_known(index, [n])
    middle, rest = list(range(b, a)), list(range(a + 1, x.ndim))
    moved = _ops.transpose(x, [*range(b), a, *middle, *rest])
    flat = _ops.reshape(moved, [groups * n, *(x.shape[i] for i in middle + rest)])
    lead = _ops.reshape(_ops.iota([groups], _core.int64, 0), batch + [1] * (index.ndim - b))
    counted = _from_front(index, n, groups * n)
    picked = _ops.gather(flat, _ops.add(counted, _ops.mul(lead, n)), 0)
    k = index.ndim
    order = [*range(b), *range(k, k + len(middle)), *range(b, k)]
    return _ops.transpose(picked, [*order, *range(k + len(middle), picked.ndim)])


#: Places up to here are int32.
_LONGEST_ROW = 2**31 - 2


def _along(x: Tensor, index: Tensor, axis: int, op: str) -> Tensor:
    """The positions in the flattened x of the elements that `index` names along axis."""
    _fits_along(x, index, axis, op)
    dims = list(index.shape)
    stride = math.prod(x.shape[axis + 1 :])
    # (An index out of range is x.size on its axis, so its place is at most that often its stride.)
    most = x.size * (stride + 1)
    dtype = _core.int32 if most <= _LONGEST_ROW else _core.int64
    place = _ops.mul(_from_front(index, x.shape[axis], x.size, dtype), stride)
    for i in range(x.ndim):
        if i != axis and dims[i] > 1:
            step = math.prod(x.shape[i + 1 :])
            place = _ops.add(place, _ops.mul(_ops.iota(dims, dtype, i), step))
    return place


def _places_in_rows(index: Tensor, axis: int, size: int, known: bool) -> Tensor:
    """Indices along an axis of that size as positions [rows, k] of int32, counted from the front (known:
    as they are); those out of range are `size`, which is none."""
    if not known:
        index = _from_front(index, size, size)
    return _as_rows(_ops.cast(index, _core.int32), axis)


def _as_rows(x: Tensor, axis: int) -> Tensor:
    """[rows, n]: the elements along axis beside each other."""
    order = [i for i in range(x.ndim) if i != axis] + [axis]
    moved = x if axis == x.ndim - 1 else _ops.transpose(x, order)
    n = x.shape[axis]
    return _ops.reshape(moved, [x.size // n if n else 0, n])


def _from_rows(rows: Tensor, shape: list[int], axis: int) -> Tensor:
    """The inverse of _as_rows: a tensor of that shape."""
    order = [i for i in range(len(shape)) if i != axis] + [axis]
    moved = _ops.reshape(rows, [shape[i] for i in order])
    if axis == len(shape) - 1:
        return moved
    return _ops.transpose(moved, [order.index(i) for i in range(len(shape))])


def _fits_along(x: Tensor, index: Tensor, axis: int, op: str) -> bool:
    """Raises ValueError or IndexError unless index can be one along axis; as _check_known."""
    if index.ndim != x.ndim or any(index.shape[i] > x.shape[i] for i in range(x.ndim) if i != axis):
        bad_value(
            f"{op}: an index of shape {list(index.shape)} does not fit a tensor of shape {list(x.shape)}"
        )
    return _check_known(index, [x.shape[axis]])


@method()
def gather_elements(input: Any, dim: Any, index: Any) -> Tensor:
    """The elements at index along dim, the other coordinates being those of the index's own place.

    index: integers, with input's rank. Raises IndexError for an index out of range.
    """
    x, at = arguments.tensor(input, "GatherD"), _indices(index, "GatherD", "index")
    if _known(x, at) and x.ndim and x.ndim == at.ndim:
        a = arguments.axis_of(dim, x.ndim, "GatherD", "dim")
        if all(at.shape[i] == n for i, n in enumerate(x.shape) if i != a):
            return _core.elements_along(x, a, at)
    return _gathered_along(x, dim, at)


@one_plan
def _gathered_along(x: Tensor, dim: Any, at: Tensor) -> Tensor:
    a = arguments.axis_of(dim, x.ndim, "GatherD", "dim")
    if x.ndim == 0 and at.ndim <= 1:
        return _ops.gather(arguments.vector(x), at, 0)
    known = _fits_along(x, at, a, "GatherD")
    n, shape = x.shape[a], list(at.shape)
    if n > _LONGEST_ROW or at.size == 0 or x.size == 0:
        return _ops.gather(_ops.reshape(x, [x.size]), _along(x, at, a, "GatherD"), 0)
    covered = [*shape[:a], n, *shape[a + 1 :]]
    if covered != list(x.shape):  # the index's own coordinates
        x = _ops.slice(x, [0] * x.ndim, covered, [1] * x.ndim)
    taken = _ops.take_along(_as_rows(x, a), _places_in_rows(at, a, n, known))
    return _from_rows(taken, shape, a)


@spelling(gather_elements)
def gather_d(x: Any, dim: Any, index: Any) -> Tensor: ...


def _coordinates(indices: Tensor, shape: tuple[int, ...], op: str) -> tuple[Tensor, int]:
    """Rows of coordinates over the first dimensions of shape as positions: (them, their number)."""
    k = indices.shape[-1] if indices.ndim else 0
    if indices.ndim == 0 or k > len(shape):
        bad_value(f"{op}: indices of shape {list(indices.shape)} do not fit shape {list(shape)}")
    known = _check_known(indices, list(shape[:k]))
    total, lead = math.prod(shape[:k]), list(indices.shape[:-1])
    place = _ops.full(lead, 0, _core.int64)
    for i in range(k):
        start, size = [0] * len(lead) + [i], [*lead, 1]
        column = _ops.reshape(_ops.slice(indices, start, size, [1] * indices.ndim), lead)
        step = math.prod(shape[i + 1 : k])
        counted = _ops.cast(column, _core.int64) if known else _from_front(column, shape[i], total)
        place = _ops.add(place, _ops.mul(counted, step))
    return place, total


@method(one_plan)
def gather_nd(input_x: Any, indices: Any) -> Tensor:
    """The elements or slices at the coordinates in the rows of indices, [..., k]."""
    x, at = arguments.tensor(input_x, "GatherNd", "input_x"), _indices(indices, "GatherNd")
    place, total = _coordinates(at, x.shape, "GatherNd")
    k = at.shape[-1]
    return _ops.gather(_ops.reshape(x, [total, *x.shape[k:]]), place, 0)


@method(dim="axis")
def index_select(input: Any, axis: Any, index: Any) -> Tensor:
    """The slices of input along axis at index, a vector of integers."""
    at = _indices(index, "index_select", "index")
    if at.ndim > 1:
        bad_value(f"index_select: index must be a vector, got shape {list(at.shape)}")
    return gather(input, at if at.ndim else _ops.reshape(at, [1]), axis)


@method(one_plan, dim="axis", indices="index")
def take(input: Any, index: Any, axis: Any = None, mode: str = "clip") -> Tensor:
    """Elements along axis by index; None: of the flattened tensor.

    Negative indices count from the end. mode: of those out of range, 'clip' takes the nearest, 'wrap' goes
    around, 'raise' raises IndexError.
    """
    x, index = arguments.tensor(input, "take"), _indices(index, "take")
    arguments.one_of(mode, ("clip", "wrap", "raise"), "take", "mode")
    a = 0 if axis is None else arguments.axis_of(axis, x.ndim, "take")
    if axis is None or x.ndim == 0:
        x = _ops.reshape(x, [x.size])
    n = x.shape[a]
    if _core.is_plain(index) and index.size:
        low, high = _core.bounds(index)
        mode = "raise" if low >= 0 and high < n else mode
    if mode == "clip":
        index = _ops.where(_ops.less(index, 0), _ops.add(index, n), index)
        index = _ops.maximum(_ops.minimum(index, n - 1), 0)
    elif mode == "wrap":
        index = _ops.mod(index, n)
    return gather(x, index, a)


@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@method()
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The coordinates of the elements that are not zero, int64 [count, rank]; or a tensor for each
    dimension. Reads values, so a compiled function that calls it is retraced.

    as_tuple: whether the result is a tuple, with a tensor for each dimension.
    """
    x = arguments.tensor(input, "nonzero")
    found = _core.places_not_zero(x != 0 if x.dtype.is_complex else x)
    if as_tuple:
        return tuple(_core.copy(found[:, i]) for i in range(x.ndim))
    return found


def ordered(value: Any, op: str, name: str = "input") -> Tensor:
    """The tensor. Raises TypeError for complex numbers."""
    x = arguments.tensor(value, op, name)
    if x.dtype.is_complex:
        bad_type(f"{op}: complex numbers have no order, got {x.dtype}")
    return x


@method(one_plan, dim="axis")
def argsort(input: Any, axis: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort along axis, int32; equal elements keep their order, stable or not.

    descending: whether large elements come first.
    """
    return _order(ordered(input, "argsort"), axis, descending)


def _order(x: Tensor, axis: int, descending: bool) -> Tensor:
    """Positions that sort along axis, int32; NaN counts as larger than any number."""
    a = arguments.axis_of(axis, x.ndim, "sort")
    if x.ndim == 0:
        return _ops.full([], 0, _core.int32)
    order = _ops.order(_as_rows(_ops.stop_gradient(x), a), descending)
    return _from_rows(order, list(x.shape), a)


def _known(*tensors: Tensor) -> bool:
    """Return whether a result can be computed now: all values are known, and nothing is being
    recorded."""
    return not _core.in_trace() and all(map(_core.is_plain, tensors))


def _adds(x: Tensor) -> bool:
    """Return whether the core adds elements of this dtype in place."""
    return not x.dtype.is_complex and x.dtype != _core.bool


def _at_places(x: Tensor, axis: int, places: Tensor) -> Tensor:
    """x's elements at positions along axis, of which there are none out of range."""
    dims = list(places.shape)
    if not (x.size and places.size):
        return _ops.full(dims, 0, x.dtype)
    few = axis != x.ndim - 1 and 4 * places.size < x.size  # then x is not transposed
    rows = x if few else _as_rows(x, axis)
    if few or rows.shape[1] > _LONGEST_ROW:
        return _ops.gather(_ops.reshape(x, [x.size]), _along(x, places, axis, "sort"), 0)
    return _from_rows(
        _ops.take_along(rows, _as_rows(_ops.cast(places, _core.int32), axis)), dims, axis
    )


@method(dim="axis")
def sort(
    input_x: Any, axis: int = -1, descending: bool = False, stable: bool = False
) -> tuple[Tensor, Tensor]:
    """(the elements in order along axis, their indices as int32). Equal elements keep their order, stable
    or not; the order is a constant of the derivative.

    descending: whether large elements come first.
    """
    x = ordered(input_x, "sort", "input_x")
    if x.ndim == 0:
        return x, _order(x, axis, descending)
    return _sorted(x, arguments.axis_of(axis, x.ndim, "sort"), bool(descending))


@one_plan
def _sorted(x: Tensor, axis: int, descending: bool) -> tuple[Tensor, Tensor]:
    order = _order(x, axis, descending)
    return _at_places(x, axis, order), order


@method(axis="dim")
def topk(
    input: Any, k: Any, dim: Any = None, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """(the k largest or smallest elements along dim, their indices as int32).

    sorted: in order, of equal elements the first first; if not, in the order in which they are
    selected, which is MindSpore's, or, on a GPU, in order too. NaN counts as larger than any number.

    Raises ValueError if there are fewer than k.
    """
    x = ordered(input, "topk")
    a = arguments.axis_of(-1 if dim is None else dim, x.ndim, "topk", "dim")
    count = arguments.integer(k, "topk", "k")
    if not 0 <= count <= x.shape[a] if x.ndim else count != 1:
        bad_value(
            f"topk: there are no {count} elements along dimension {a} of shape {list(x.shape)}"
        )
    if not x.ndim:
        return sort(x)
    return _first(x, a, count, bool(largest), bool(sorted))


@spelling(topk)
def top_k(input_x: Any, k: Any, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """(the k largest elements along the last dimension, their indices as int32); see ops.topk.

    sorted: in order; if not, in that in which they are selected.
    """
    raise NotImplementedError  # it has no body: calls go to topk


@one_plan
def _first(x: Tensor, axis: int, count: int, largest: bool, sorted: bool) -> tuple[Tensor, Tensor]:
    dims = [count if i == axis else n for i, n in enumerate(x.shape)]
    rows = _as_rows(_ops.stop_gradient(x), axis)
    places = _from_rows(_ops.first_in_order(rows, count, largest, sorted), dims, axis)
    return _at_places(x, axis, places), places


# Placing ------------------------------------------------------------------------------------------


def _scatter(place: Tensor, updates: Tensor, total: int, tail: list[int]) -> Tensor:
    flat = _ops.reshape(updates, [place.size, *tail])
    return _ops.scatter_add(_ops.reshape(place, [place.size]), flat, 0, total)


def _updates_shape(at: Tensor, updates: Tensor, shape: tuple[int, ...], op: str) -> list[int]:
    tail = list(shape[at.shape[-1] :])
    if list(updates.shape) != list(at.shape[:-1]) + tail:
        bad_value(
            f"{op}: updates of shape {list(updates.shape)} do not fit indices of shape {list(at.shape)} into "
            f"shape {list(shape)}"
        )
    return tail


@one_plan
def scatter_nd(indices: Any, updates: Any, shape: Any) -> Tensor:
    """Zeros of a shape, with updates added at the coordinates in the rows of indices, [..., k]."""
    at, new = _indices(indices, "ScatterNd"), arguments.tensor(updates, "ScatterNd", "updates")
    dims = tuple(arguments.integers(shape, "ScatterNd", "shape"))
    place, total = _coordinates(at, dims, "ScatterNd")
    tail = _updates_shape(at, new, dims, "ScatterNd")
    return _ops.reshape(_scatter(place, new, total, tail), list(dims))


@method(one_plan)
def tensor_scatter_add(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """input_x with updates added at the coordinates in the rows of indices, [..., k]."""
    x = arguments.tensor(input_x, "TensorScatterAdd", "input_x")
    new = _ops.cast(arguments.tensor(updates, "TensorScatterAdd", "updates"), x.dtype)
    return _ops.add(x, scatter_nd(indices, new, x.shape))


@one_plan
def tensor_scatter_update(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """input_x with the elements at the coordinates in the rows of indices, [..., k], replaced by
    updates; if updates share a position, the last one stays.
    """
    x = arguments.tensor(input_x, "TensorScatterUpdate", "input_x")
    new = _ops.cast(arguments.tensor(updates, "TensorScatterUpdate", "updates"), x.dtype)
    at = _indices(indices, "TensorScatterUpdate")
    place, total = _coordinates(at, x.shape, "TensorScatterUpdate")
    tail = _updates_shape(at, new, x.shape, "TensorScatterUpdate")
    rows = _ops.reshape(x, [total, *tail])
    result = replaced(rows, place, _ops.reshape(new, [place.size, *tail]))
    return _ops.reshape(result, list(x.shape))


def _added_along(x: Tensor, at: Tensor, new: Tensor, axis: int, counted: bool) -> Tensor:
    """Zeros of x's shape with `new` added at indices along axis."""
    n, shape = x.shape[axis], list(at.shape)
    sums = _ops.put_along(_places_in_rows(at, axis, n, counted), _as_rows(new, axis), n)
    covered = [*shape[:axis], n, *shape[axis + 1 :]]
    sums = _from_rows(sums, covered, axis)
    if covered == list(x.shape):
        return sums
    return _ops.slice_scatter(sums, list(x.shape), [0] * x.ndim, [1] * x.ndim)


def tensor_scatter_elements(
    input_x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """input_x with updates placed at indices along axis, at the index's own other coordinates.

    reduction 'add': added to what is there; 'none': in its place, where if updates share a
    position, the last one stays.
    """
    arguments.one_of(reduction, ("none", "add"), "tensor_scatter_elements", "reduction")
    x = arguments.tensor(input_x, "tensor_scatter_elements", "input_x")
    at = _indices(indices, "tensor_scatter_elements")
    new = _ops.cast(arguments.tensor(updates, "tensor_scatter_elements", "updates"), x.dtype)
    if list(new.shape) != list(at.shape):
        bad_value(
            f"tensor_scatter_elements: updates of shape {list(new.shape)} for indices of shape "
            f"{list(at.shape)}"
        )
    a = arguments.axis_of(axis, x.ndim, "tensor_scatter_elements")
    if x.ndim == 0 and at.ndim <= 1:
        x, at, new = (arguments.vector(t) for t in (x, at, new))
        return _ops.reshape(tensor_scatter_elements(x, at, new, 0, reduction), [])
    covers = at.ndim == x.ndim and all(at.shape[i] == n for i, n in enumerate(x.shape) if i != a)
    if covers and at.size and _known(x, at, new) and (reduction == "none" or _adds(x)):
        return _core.with_elements(x, a, at, new, reduction == "add")
    counted = _fits_along(x, at, a, "tensor_scatter_elements")
    return _scattered_along(x, at, new, a, reduction == "add", counted)


@one_plan
def _scattered_along(
    x: Tensor, at: Tensor, new: Tensor, a: int, added: bool, counted: bool
) -> Tensor:
    if added and at.size and x.shape[a] <= _LONGEST_ROW:
        return _ops.add(x, _added_along(x, at, new, a, counted))
    place = _along(x, at, a, "tensor_scatter_elements")
    if added:
        return _ops.add(x, _ops.reshape(_scatter(place, new, x.size, []), list(x.shape)))
    result = replaced(_ops.reshape(x, [x.size]), place, _ops.reshape(new, [new.size]))
    return _ops.reshape(result, list(x.shape))


def index_add(
    x: Any, indices: Any, y: Any, axis: Any, use_lock: bool = True, check_index_bound: bool = True
) -> Tensor:
    """x with the slices of y added along axis at indices, a vector of integers.

    y: a tensor of x's shape, but as long along axis as indices.
    use_lock, check_index_bound: for compatibility with MindSpore; indices are always checked.
    """
    base, at = arguments.tensor(x, "index_add", "x"), _indices(indices, "index_add")
    a = arguments.axis_of(axis, base.ndim, "index_add")
    new = _ops.cast(arguments.tensor(y, "index_add", "y"), base.dtype)
    if not base.ndim:
        base, at, new = (arguments.vector(t) for t in (base, at, new))
        return _ops.reshape(index_add(base, at, new, 0), [])
    taken = [*base.shape[:a], at.size, *base.shape[a + 1 :]]
    arguments.of_shape(new, taken, "index_add", "y", "x's, with as many slices as indices,")
    if _known(base, at, new) and at.ndim == 1 and list(new.shape) == taken:
        if _adds(base):
            return _core.with_slices_added(base, a, at, new)
    return _slices_added(base, at, new, a)


@one_plan
def _slices_added(base: Tensor, at: Tensor, new: Tensor, a: int) -> Tensor:
    return _ops.add(base, _ops.scatter_add(at, new, a, base.shape[a]))


@one_plan
def one_hot(
    indices: Any, depth: Any, on_value: Any = 1, off_value: Any = 0, axis: Any = -1
) -> Tensor:
    """on_value at each index along a new dimension of size depth at axis, off_value elsewhere.

    int64 for the default values. An index out of range gives off_value everywhere. Raises TypeError
    for indices that are not integers, ValueError for a negative depth.
    """
    index = _indices(indices, "OneHot")
    size = arguments.integer(depth, "OneHot", "depth")
    if size < 0:
        bad_value(f"OneHot: depth must not be negative, got {size}")
    a = arguments.axis_of(axis, index.ndim + 1, "OneHot")
    dims = list(index.shape)
    standard = type(on_value) is int and type(off_value) is int and (on_value, off_value) == (1, 0)
    if a == index.ndim and size and standard:
        if size <= _LONGEST_ROW:  # zeros, and a one added in each row; 0 where the index is outside
            low, high = _core.bounds(index) if _core.is_plain(index) and index.size else (-1, 0)
            column = [index.size, 1]
            if low >= 0 and high < size:
                one = _ops.full(column, 1, _core.int64)
            else:
                outside = _ops.logical_or(_ops.less(index, 0), _ops.greater_equal(index, size))
                one = _ops.reshape(_ops.cast(_ops.where(outside, 0, 1), _core.int64), column)
                index = _ops.where(outside, 0, index)
            place = _ops.reshape(_ops.cast(index, _core.int32), column)
            rows = _ops.put_along(place, one, size)
            return _ops.reshape(rows, [*dims, size])
    index = _ops.reshape(index, [*dims[:a], 1, *dims[a:]])
    classes = _ops.reshape(
        _ops.iota([size], index.dtype, 0), [1] * a + [size] + [1] * (len(dims) - a)
    )
    return _ops.where(_ops.equal(index, classes), on_value, off_value)


# Masks and bounds ---------------------------------------------------------------------------------


@method()
@in_place()
@one_plan
def masked_fill(input_x: Any, mask: Any, value: Any) -> Tensor:
    """value where mask is true, else input_x, in the dtype of input_x."""
    x = arguments.tensor(input_x, "masked_fill", "input_x")
    m = arguments.tensor(mask, "masked_fill", "mask")
    if m.dtype != _core.bool:
        bad_type(f"masked_fill: the mask must be bool, got {m.dtype}")
    number = isinstance(value, (bool, int, float, np.generic))
    new = _ops.full([], value, x.dtype) if number else _ops.cast(value, x.dtype)
    return _ops.where(m, new, x)


@method(one_plan)
def masked_select(input: Any, mask: Any) -> Tensor:
    """The elements where mask is true, as a vector; both broadcast. Reads the mask, so a compiled
    function that calls it is retraced."""
    x, m = arguments.tensor(input, "masked_select"), arguments.tensor(mask, "masked_select", "mask")
    if m.dtype != _core.bool:
        bad_type(f"masked_select: the mask must be bool, got {m.dtype}")
    dims = list(x.shape)
    if x.shape != m.shape:
        dims = list(_ops.logical_or(_ops.cast(x, _core.bool), m).shape)
    spread = _ops.reshape(_ops.broadcast_to(x, dims), [-1] if math.prod(dims) else [0])
    found = np.flatnonzero(np.broadcast_to(m.asnumpy(), dims))
    return _ops.gather(spread, Tensor(found.astype(np.int64)), 0)


@method("clip", xmin="min", xmax="max")
@method()
@in_place()
@one_plan
def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """No less than min, no more than max (tensors or numbers; None: no bound); max wins.

    The derivative is 1 at the bounds, 0 beyond. Raises ValueError if both are None.
    """
    if min is None and max is None:
        bad_value("clamp: at least one of min and max must be given")
    if isinstance(input, (tuple, list)):
        return type(input)(clamp(x, min, max) for x in input)  # type: ignore[return-value]
    x = arguments.tensor(input, "clamp")
    if min is not None:
        x = _ops.where(_or_nan(_ops.less(x, min), min), min, x)
    if max is not None:
        x = _ops.where(_or_nan(_ops.greater(x, max), max), max, x)
    return x


def _or_nan(beyond: Tensor, bound: Any) -> Tensor:
    """Extend a condition that x is beyond the bound to bounds that are NaN, which then is the
    result."""
    if isinstance(bound, Tensor) and bound.dtype.is_floating:
        return _ops.logical_or(beyond, _ops.isnan(bound))
    if isinstance(bound, float) and math.isnan(bound):
        return _ops.full(list(beyond.shape), True, _core.bool)
    return beyond


@spelling(clamp)
def clip(input: Any, min: Any = None, max: Any = None) -> Tensor: ...


@one_plan
def clip_by_value(x: T, clip_value_min: Any = None, clip_value_max: Any = None) -> T:
    """No less than clip_value_min, no more than clip_value_max (tensors or numbers; None: no
    bound), which wins; also of the tensors of a tuple or list.

    The derivative at a bound is 1/2 by x and 1/2 by the bound. Raises ValueError if both are None.
    """
    if clip_value_min is None and clip_value_max is None:
        bad_value("clip_by_value: at least one bound must be given")
    if isinstance(x, (tuple, list)):
        return type(x)(clip_by_value(t, clip_value_min, clip_value_max) for t in x)  # type: ignore[return-value]
    y = arguments.tensor(x, "clip_by_value", "x")
    if clip_value_min is not None:
        y = _ops.maximum(y, clip_value_min)
    return y if clip_value_max is None else _ops.minimum(y, clip_value_max)  # type: ignore[return-value]


@method(one_plan, x2="other")
def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return where |input - other| <= atol + rtol * |other|, or both are the same infinity; or,
    with equal_nan, both NaN."""
    a, b = arguments.tensor(input, "isclose"), arguments.tensor(other, "isclose", "other")
    a, b = arguments.floating(a), arguments.floating(b)
    bound = _ops.add(_ops.mul(size_of(b), rtol), atol)
    near = _ops.logical_and(_ops.less_equal(size_of(_ops.sub(a, b)), bound), _ops.isfinite(b))
    near = _ops.logical_or(near, _ops.equal(a, b))
    if equal_nan:
        near = _ops.logical_or(near, _ops.logical_and(_ops.isnan(a), _ops.isnan(b)))
    return near
