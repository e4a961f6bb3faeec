"""Updates at indices: of parameters in place, of tensors, of segments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_index, bad_type, bad_value, is_tensor, place_type
from gradcell.base.convert import limits
from gradcell.base.spelling import named
from gradcell.derivatives.own_derivatives import Pushforward, call
from gradcell.ops.arrays import assignments, indexing, shaping
from gradcell.ops.decorators import in_place, method, one_plan
from gradcell.ops.elements import composed
from gradcell.tensors.indexing import replaced

__all__: list[str] = [
    "diagonal_scatter", "index_fill", "inplace_add", "inplace_index_add", "inplace_sub", "inplace_update",
    "scatter",
    "scatter_nd_add", "scatter_nd_sub", "scatter_nd_update", "select_scatter", "slice_scatter",
    "tensor_scatter_sub", "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_sum",
]  # fmt: skip


@one_plan
def scatter_nd_update(input_x: Any, indices: Any, updates: Any, use_locking: bool = True) -> Tensor:
    """Replaces elements or slices of a parameter at indices [..., depth]; returns the new value.

    use_locking has no effect.
    """
    return assignments.assign(input_x, indexing.tensor_scatter_update(input_x, indices, updates))


@method(one_plan)
def scatter_nd_add(input_x: Any, indices: Any, updates: Any, use_locking: bool = False) -> Tensor:
    """Adds to elements or slices of a parameter at indices [..., depth]; returns the new value.

    use_locking has no effect.
    """
    return assignments.assign(input_x, indexing.tensor_scatter_add(input_x, indices, updates))


@one_plan
def scatter_nd_sub(input_x: Any, indices: Any, updates: Any, use_locking: bool = False) -> Tensor:
    """Subtracts from elements or slices of a parameter at indices; returns the new value.

    use_locking has no effect.
    """
    return scatter_nd_add(input_x, indices, _ops.neg(updates))


@method(one_plan)
def tensor_scatter_sub(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """input_x with updates subtracted at indices [..., depth]."""
    return indexing.tensor_scatter_add(input_x, indices, _ops.neg(updates))


@method(dim="axis")
def scatter(input: Any, axis: Any, index: Any, src: Any) -> Tensor:
    """input with src placed at index along axis, at the index's own other coordinates; if positions
    repeat, the last one stays.
    """
    at = arguments.tensor(index, "scatter", "index")
    if not is_tensor(src):
        src = _ops.full(list(at.shape), src, arguments.tensor(input, "scatter").dtype)
    return indexing.tensor_scatter_elements(input, at, src, axis)


@method(dim="axis")
@in_place(dim="axis")
@one_plan
def index_fill(x: Any, axis: Any, index: Any, value: Any) -> Tensor:
    """x with value in the slices along axis at index, integers counted from the end if negative.

    Raises IndexError for an index out of range, TypeError for indices that are not integers.
    """
    whole = arguments.tensor(x, "index_fill", "x")
    a = arguments.axis_of(axis, whole.ndim, "index_fill")
    t = arguments.vector(whole)
    at = _ops.reshape(indexing._indices(index, "index_fill", "index"), [-1])
    n = t.shape[a]
    hits = _ops.scatter_add(at, _ops.full([at.size], 1, place_type(at.size)), 0, n)
    hit = _ops.reshape(_ops.greater(hits, 0), [n] + [1] * (t.ndim - 1 - a))
    new = value if isinstance(value, Tensor) else Tensor(value, t.dtype)
    return _ops.reshape(_ops.where(hit, _ops.cast(new, t.dtype), t), list(whole.shape))


def inplace_add(x: Any, v: Any, indices: Any) -> Tensor:
    """A copy of x with the rows of v added at indices."""
    at = np.asarray(indices if isinstance(indices, (list, tuple)) else [[]])
    if at.ndim != 1 or at.dtype.kind != "i":
        at = np.array(arguments.integers(indices, "InplaceAdd", "indices"))
    return indexing.index_add(x, Tensor(at), v, 0)


@one_plan
def inplace_sub(x: Any, v: Any, indices: Any) -> Tensor:
    """A copy of x with the rows of v subtracted at indices."""
    return inplace_add(x, _ops.neg(v), indices)


@method(one_plan)
def inplace_update(x: Any, v: Any, indices: Any) -> Tensor:
    """x with its rows at indices replaced by those of v."""
    at = np.array(arguments.integers(indices, "InplaceUpdate", "indices"))
    return indexing.tensor_scatter_update(x, Tensor(at.reshape(-1, 1)), v)


@one_plan
def inplace_index_add(var: Any, indices: Any, updates: Any, axis: int) -> Tensor:
    """Adds the slices of updates to a parameter along axis at indices; returns the new value.

    var: the parameter.
    """
    return assignments.assign(var, indexing.index_add(var, indices, updates, axis))


# Updates combined with what is there --------------------------------------------------------------


def _of_runs(place: Tensor, new: Tensor, combine: Any) -> tuple[Tensor, Tensor]:
    """(positions in order, the updates combined with all before for the same place): the last of each run of
    equal positions has them all. A scan in doubling steps."""
    order = indexing.argsort(place, 0)
    keys, values = _ops.gather(place, order, 0), _ops.gather(new, order, 0)
    n, step = place.size, 1
    while step < n:
        before = _ops.concat(
            [_ops.full([step], -1, keys.dtype), shaping._window(keys, 0, 0, n - step)], 0
        )
        earlier = _ops.concat(
            [shaping._window(values, 0, 0, step), shaping._window(values, 0, 0, n - step)], 0
        )
        same = _ops.reshape(_ops.equal(keys, before), [n] + [1] * (new.ndim - 1))
        values = _ops.where(same, combine(values, earlier), values)
        step *= 2
    return keys, values


_COMBINED: dict[str, tuple[Any, Any]] = {
    "mul": (_ops.mul, _ops.mul),
    "div": (
        _ops.mul,
        lambda x, y: (_ops.div if x.dtype.is_floating else composed.truncate_div)(x, y),
    ),
    "max": (_ops.maximum, _ops.maximum),
    "min": (_ops.minimum, _ops.minimum),
}


def _combined(kind: str, rows: Tensor, place: Tensor, new: Tensor) -> Tensor:
    """rows with updates multiplied with, divided by, or the larger or smaller of both."""
    if not new.size:
        return rows
    combine, join = _COMBINED[kind]
    keys, values = _of_runs(_ops.cast(place, _core.int64), new, combine)
    start = _ops.full(list(rows.shape), 1, rows.dtype) if combine is _ops.mul else rows
    return join(rows, replaced(start, keys, values))  # type: ignore[no-any-return]


def _tensor_scatter(kind: str) -> Any:
    owner = f"TensorScatter{kind.capitalize()}"

    @one_plan
    def function(input_x: Any, indices: Any, updates: Any) -> Tensor:
        x = arguments.tensor(input_x, owner, "input_x")
        new = _ops.cast(arguments.tensor(updates, owner, "updates"), x.dtype)
        at = indexing._indices(indices, owner)
        place, total = indexing._coordinates(at, x.shape, owner)
        tail = indexing._updates_shape(at, new, x.shape, owner)
        rows = _ops.reshape(x, [total, *tail])
        flat = _ops.reshape(place, [place.size])
        found = _combined(kind, rows, flat, _ops.reshape(new, [place.size, *tail]))
        return _ops.reshape(found, list(x.shape))

    return _named(function, f"tensor_scatter_{kind}", _WORDS[kind].format("input_x"))


def _scatter_nd(kind: str) -> Any:
    update = globals()[f"tensor_scatter_{kind}"]

    def function(input_x: Any, indices: Any, updates: Any, use_locking: bool = False) -> Tensor:
        return assignments.assign(input_x, update(input_x, indices, updates))

    return _named(function, f"scatter_nd_{kind}", f"{_of_parameter(kind)}, in place")


def _scatter_rows(kind: str) -> Any:
    owner = f"Scatter{kind.capitalize()}"

    @one_plan
    def function(input_x: Any, indices: Any, updates: Any) -> Tensor:
        at, new = assignments._rows(owner, input_x, indices, updates)
        if new.dtype.is_complex and kind in ("max", "min"):
            bad_type(f"{owner}: complex numbers have no order, got {new.dtype}")
        place, rows = indexing._coordinates(_ops.reshape(at, [at.size, 1]), input_x.shape, owner)
        held = _ops.reshape(input_x, [rows, *input_x.shape[1:]])
        return assignments.assign(input_x, _combined(kind, held, place, new))

    return _named(
        function,
        f"scatter_{kind}",
        f"{_of_parameter(kind)}, by rows, in place",
    )


_WORDS = {
    "mul": "{} multiplied with updates", "div": "{} divided by updates",
    "max": "The larger of {} and updates", "min": "The smaller of {} and updates",
}  # fmt: skip


def _of_parameter(kind: str) -> str:
    text = _WORDS[kind].format("a parameter")
    return text[0].upper() + text[1:]


def _named(function: Any, name: str, text: str) -> Any:
    function.__doc__ = (
        f"{text} at indices, which may repeat. Raises IndexError for an index out of range."
    )
    return named(function, name)


for _kind in _COMBINED:
    for _name, _make in (
        ("tensor_scatter", _tensor_scatter), ("scatter_nd", _scatter_nd), ("scatter", _scatter_rows),
    ):  # fmt: skip
        globals()[f"{_name}_{_kind}"] = _make(_kind)
        __all__.append(f"{_name}_{_kind}")


def scatter_sub(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """Subtracts updates from the rows of a parameter at indices; returns the new value."""
    return assignments.scatter_add(input_x, indices, _ops.neg(updates))


# Parts replaced -----------------------------------------------------------------------------------


@method(one_plan)
def select_scatter(input: Any, src: Any, axis: int, index: int) -> Tensor:
    """input with its slice at index along axis replaced by src.

    Raises IndexError for an index out of range.
    """
    t = arguments.tensor(input, "select_scatter")
    a = arguments.axis_in(t, axis, "select_scatter")
    n, at = t.shape[a], arguments.integer(index, "select_scatter", "index")
    if not -n <= at < n:
        bad_index(f"select_scatter: index {at} is out of range for an axis of size {n}")
    at %= n
    part = shaping.expand_dims(arguments.tensor(src, "select_scatter", "src"), a)
    pieces = [
        shaping._window(t, a, 0, at),
        part,
        shaping._window(t, a, at + 1, t.shape[a] - at - 1),
    ]
    return _ops.concat(pieces, a)


@method(one_plan)
def slice_scatter(
    input: Any, src: Any, axis: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    """A copy of input whose slice start:end:step along axis is src."""
    t = arguments.tensor(input, "slice_scatter")
    a = arguments.axis_in(t, axis, "slice_scatter")
    step = arguments.integer(step, "slice_scatter", "step")
    places = np.arange(t.shape[a])[slice(start, end, step)]
    new = arguments.tensor(src, "slice_scatter", "src")
    if new.shape[a] != len(places):
        bad_value(f"slice_scatter: src of shape {list(new.shape)} is not for {len(places)} slices")
    if not len(places):
        return t
    if step == 1:
        first, behind = int(places[0]), int(places[-1]) + 1
        before = shaping._window(t, a, 0, first)
        after = shaping._window(t, a, behind, t.shape[a] - behind)
        return _ops.concat([before, _ops.cast(new, t.dtype), after], a)
    source = np.full(t.shape[a], -1)
    source[places] = np.arange(len(places))
    shape = [t.shape[a]] + [1] * (t.ndim - 1 - a)
    taken = _ops.gather(new, Tensor(np.maximum(source, 0)), a)
    return _ops.where(Tensor((source >= 0).reshape(shape)), _ops.cast(taken, t.dtype), t)


@method()
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """input with its offset-th diagonal over two dimensions replaced by src."""
    t = arguments.tensor(input, "diagonal_scatter")
    out = _core.copy(t)
    diagonal = shaping.diagonal(out, offset, dim1, dim2)
    new = arguments.tensor(src, "diagonal_scatter", "src")
    if list(new.shape) != list(diagonal.shape):
        bad_value(
            f"diagonal_scatter: src of shape {list(new.shape)} is not for a diagonal of shape "
            f"{list(diagonal.shape)}"
        )
    _core.write(diagonal, new)
    return out


# Segments -----------------------------------------------------------------------------------------


def _segments(x: Tensor, segment_ids: Any, count: int, name: str) -> tuple[Tensor, int]:
    """(The ids of x's first dimensions, the least of them, or -1 if it is not known). Raises ValueError
    for other shapes, IndexError for an id above those of the segments, if it is known."""
    ids = indexing._indices(segment_ids, name, "segment_ids")
    if list(ids.shape) != list(x.shape[: ids.ndim]):
        bad_value(
            f"{name}: segment_ids of shape {list(ids.shape)} are not of the first dimensions of shape "
            f"{list(x.shape)}"
        )
    if not ids.size or not _core.is_plain(ids):
        return ids, -1
    low, high = _core.bounds(ids)
    if high >= count:
        bad_index(f"{name}: segment id {high} is out of range for {count} segments")
    return ids, low


@method(one_plan)
def unsorted_segment_sum(input_x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    """The sums of the slices with the same id; ids below zero do not count.

    input_x: a tensor. segment_ids: the segment of each slice along the first
    dimension. num_segments: the number of segments. Raises IndexError for an id that is not
    below it.
    """
    x = arguments.tensor(input_x, "unsorted_segment_sum", "input_x")
    count = arguments.integer(num_segments, "unsorted_segment_sum", "num_segments")
    ids, low = _segments(x, segment_ids, count, "unsorted_segment_sum")
    flat = _ops.reshape(x, [ids.size, *x.shape[ids.ndim :]])
    at = _ops.reshape(ids, [ids.size])
    if low >= 0:
        return _ops.scatter_add(at, flat, 0, count)
    counts = _ops.reshape(_ops.greater_equal(at, 0), [ids.size] + [1] * (flat.ndim - 1))
    return _ops.scatter_add(_ops.maximum(at, 0), _ops.where(counts, flat, 0), 0, count)


def _segment_extremum(name: str, largest: bool) -> Callable[..., Tensor]:
    @one_plan
    def best(t: Tensor, ids: Tensor, count: int) -> Tensor:
        dims = [count, *t.shape[ids.ndim :]]
        none = Tensor(np.array(limits(t.dtype)[0 if largest else 1]), t.dtype)
        if not t.size or not count:
            return _ops.broadcast_to(none, dims)
        rows = _ops.reshape(t, [ids.size, math.prod(dims[1:])])
        segments = _ops.reshape(_ops.cast(ids, _core.int64), [ids.size])
        values = _ops.segment_best(_ops.stop_gradient(rows), segments, count, largest, True)
        if t.dtype.is_floating:

            def push(xs: Any, outputs: Any, tangents: Any, _: None) -> list[Tensor]:
                at = _ops.segment_best(_ops.stop_gradient(xs[0]), segments, count, largest)
                taken = indexing._at_places(tangents[0], 0, _ops.maximum(at, 0))
                return [_ops.where(_ops.greater_equal(at, 0), taken, 0.0)]

            rule = Pushforward(name, push, None)
            (values,) = call([_core.record(values)], [_core.record(rows)], rule)
        return _ops.reshape(values, dims)

    def op(x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
        t = indexing.ordered(x, name, "x")
        if t.dtype == _core.bool:
            bad_type(f"{name}: not defined for bool")
        count = arguments.integer(num_segments, name, "num_segments")
        return best(t, _segments(t, segment_ids, count, name)[0], count)

    op.__doc__ = (
        f"The {'largest' if 'max' in name else 'smallest'} elements of the slices with the same id; "
        "an id without slices gets the limit of the dtype. Ids below zero do not count; raises IndexError "
        "for one that is not below num_segments."
    )
    return named(op, name)


unsorted_segment_max: Callable[..., Tensor] = method()(
    _segment_extremum("unsorted_segment_max", True)
)
unsorted_segment_min: Callable[..., Tensor] = method()(
    _segment_extremum("unsorted_segment_min", False)
)
