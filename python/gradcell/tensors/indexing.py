"""Indexing of tensors: Python's basic indexing, tensors of integers, boolean masks."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops, views as _views
from gradcell.base import arguments, bad_index, bad_type, bad_value, where as _where


def _as_tensor(key: Any) -> Tensor:
    if isinstance(key, Tensor):
        return key
    array = (
        np.asarray([int(k) if isinstance(k, Tensor) else k for k in key])
        if isinstance(key, (list, tuple))
        else np.asarray(key)
    )
    if array.dtype.kind not in "biu":
        if array.size == 0:
            array = array.astype(np.int64)
        else:
            bad_index(f"an index must be of integers or bools, got {array.dtype}")
    return Tensor(array)


def _is_int(key: Any) -> bool:
    return isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_))


def _is_array(key: Any) -> bool:
    return isinstance(key, (list, tuple, range, np.ndarray, Tensor))


def _is_truth(key: Any) -> bool:
    """A single bool: a new axis, of size 1 for True, 0 for False."""
    if isinstance(key, (Tensor, np.ndarray)):
        return key.ndim == 0 and str(key.dtype).lower() == "bool"
    return isinstance(key, (bool, np.bool_))


def _expand(x: Tensor, key: Any) -> list[Any]:
    """The key as a list with an entry for each dimension of x; None (a new axis) and Ellipsis,
    which index tensors on either side of are no neighbours, come besides."""
    keys = list(key) if isinstance(key, tuple) else [key]
    for i, k in enumerate(keys):
        if hasattr(k, "__cuda_array_interface__") and not isinstance(k, Tensor):
            keys[i] = Tensor(k)
        elif _is_truth(k):
            keys[i] = bool(k)  # asks for the value
    used = 0
    for k in keys:
        if k is None or k is Ellipsis or isinstance(k, bool):
            continue
        mask = isinstance(k, (Tensor, np.ndarray)) and str(k.dtype).lower() == "bool"
        used += max(k.ndim, 1) if mask else 1
    if used > x.ndim:
        bad_index(f"too many indices for a tensor of {x.ndim} dimensions: {used} were given")
    ellipses = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(ellipses) > 1:
        bad_index("an index can have only one Ellipsis")
    fill = [slice(None)] * (x.ndim - used)
    if ellipses:
        at = ellipses[0]
        return keys[: at + 1] + fill + keys[at + 1 :]
    return keys + fill


def _normal_int(k: int, size: int) -> int:
    if not -size <= k < size:
        bad_index(f"index {k} is out of bounds for dimension with size {size}")
    return k + size if k < 0 else k


class _Basic:
    """The ints, slices and new axes of a key, as one slice and one reshape.

    As in NumPy, the axes that index tensors give stand where these stood if they were neighbours
    (ints and bools among them count), else in front; bools without index tensors give one axis.
    """

    def __init__(self, x: Tensor, keys: list[Any]) -> None:
        self.start: list[int] = []
        self.size: list[int] = []
        self.step: list[int] = []
        self.shape: list[int] = []
        self.advanced: list[tuple[int, Any]] = []  # (axis of the result, index)
        self.empty = False  # there is a False: nothing is indexed
        self.copies = False  # there is an index tensor: its elements may be known or not
        self.front = 0  # where the axes of the index tensors go
        picks: list[int] = []  # where ints, bools and index tensors stand in the key
        truth = False  # there is a bool
        axis = 0
        for at, k in enumerate(keys):
            if _is_int(k) or _is_array(k) or isinstance(k, bool):
                if not picks:
                    self.front = len(self.shape)
                picks.append(at)
            if k is Ellipsis:
                continue
            if k is None:
                self.shape.append(1)
                continue
            if isinstance(k, bool):
                self.empty |= not k
                truth = True
                continue
            n = x.shape[axis]
            if _is_int(k):
                self._add(_normal_int(int(k), n), 1, 1)
            elif isinstance(k, slice):
                parts = [None if p is None else int(p) for p in (k.start, k.stop, k.step)]
                if parts[2] == 0:
                    bad_value("slice step cannot be zero")
                start, stop, step = slice(*parts).indices(n)
                size = len(range(start, stop, step))
                self._add(start if size else 0, size, step)
                self.shape.append(size)
            elif _is_array(k):
                index = _as_tensor(k)
                if index.dtype.is_floating or index.dtype.is_complex:
                    bad_index(f"an index must be of integers, got {index.dtype}")
                if index.ndim == 0 and index.dtype != _core.bool and _core.is_plain(index):
                    self._add(_normal_int(int(index), n), 1, 1)
                    self.copies = True
                    axis += 1
                    continue
                self.advanced.append((len(self.shape), index))
                width = max(index.ndim, 1) if index.dtype == _core.bool else 1
                for d in range(width):
                    self._add(0, x.shape[axis + d], 1)
                    self.shape.append(x.shape[axis + d])
                axis += width
                continue
            else:
                bad_index(
                    "an index must be an integer, a slice, None, Ellipsis, a tensor, a list or a tuple, got "
                    f"{type(k).__name__}"
                )
            axis += 1
        if picks and picks[-1] - picks[0] >= len(picks):
            self.front = 0
        if truth and not self.advanced:
            self.shape.insert(self.front, 0 if self.empty else 1)

    def _add(self, start: int, size: int, step: int) -> None:
        self.start.append(start)
        self.size.append(size)
        self.step.append(step)


def _mask_values(mask: Tensor, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Asks for the mask's value. Raises IndexError unless it has the shape of what it indexes."""
    values = mask.asnumpy()
    if tuple(values.shape) != tuple(shape):
        bad_index(
            f"a boolean index of shape {list(values.shape)} does not match the indexed dimensions "
            f"{list(shape)}"
        )
    return values


def _mask_indices(mask: Tensor, shape: tuple[int, ...]) -> list[Tensor]:
    """The positions of True, one tensor for each dimension."""
    return [Tensor(i.astype(np.int64)) for i in np.nonzero(_mask_values(mask, shape))]


def _where_true(x: Tensor, mask: Tensor, axis: int) -> Tensor:
    """The slices of x where a mask of its dimensions from axis on is true."""
    end = axis + mask.ndim
    values = _mask_values(mask, x.shape[axis:end])
    joined = _ops.reshape(x, [*x.shape[:axis], values.size, *x.shape[end:]])
    return _ops.gather(joined, Tensor(np.flatnonzero(values)), axis)


def _flatten_advanced(
    y: Tensor, advanced: list[tuple[int, Tensor]]
) -> tuple[list[int], list[Tensor]]:
    axes: list[int] = []
    indices: list[Tensor] = []
    for axis, index in advanced:
        if index.dtype == _core.bool:
            found = _mask_indices(index, y.shape[axis : axis + index.ndim])
            axes += range(axis, axis + len(found))
            indices += found
        else:
            axes.append(axis)
            if index.dtype not in (_core.int32, _core.int64):
                index = _ops.cast(index, _core.int64)
            indices.append(index)
    return axes, indices


_FEW = 16384


def _linear(y: Tensor, axes: list[int], indices: list[Tensor]) -> tuple[Tensor, int]:
    """One index over the given axes taken as one: (it, that one's size)."""
    if len(indices) > 1:
        try:
            np.broadcast_shapes(*(index.shape for index in indices))
        except ValueError:
            shapes = ", ".join(str(list(index.shape)) for index in indices)
            raise IndexError(f"indices of shapes {shapes} do not broadcast{_where()}") from None
    sizes = [y.shape[a] for a in axes]
    product = int(np.prod(sizes, dtype=np.int64))
    if len(sizes) > 1 and all(_core.is_plain(i) for i in indices):
        joined = _core.joined_index(indices, sizes)
        if joined is not None:
            return joined, product
    known = len(sizes) > 1 and all(_core.is_plain(i) and i.size <= _FEW for i in indices)
    total: Any = None
    wrong: Any = None
    for size, index in zip(sizes, indices, strict=True):
        low = None  # of what is known to be inside
        if _core.is_plain(index) and index.dtype in (_core.int32, _core.int64) and index.size:
            low, high = _core.bounds(index)
            if high >= size or low < -size:
                values = index.asnumpy()
                bad = values[(values >= size) | (values < -size)].flat[0]
                bad_index(f"index {bad} is out of bounds for dimension with size {size}")
        if len(sizes) == 1:
            return index, product
        if known:  # a few numbers are sooner added up than planned for
            place = index.asnumpy().astype(np.int64)
            place = np.where(place < 0, place + size, place)
            total = place if total is None else total * size + place
            continue
        index = _ops.cast(index, _core.int64)
        if low is None or low < 0:
            index = _ops.where(_ops.less(index, 0), _ops.add(index, size), index)
        if low is None:
            outside = _ops.logical_or(_ops.less(index, 0), _ops.greater_equal(index, size))
            wrong = outside if wrong is None else _ops.logical_or(wrong, outside)
        total = index if total is None else _ops.add(_ops.mul(total, size), index)
    if known:
        return Tensor(np.asarray(total)), product
    # An index that is not known yet and outside its own axis must not name another row.
    return total if wrong is None else _ops.where(wrong, product, total), product


def get(x: Tensor, key: Any) -> Tensor:
    """x[key]: a view, unless there are index tensors, lists or masks in the key."""
    view = _views.at(x, key)
    if view is not None:
        return view
    if x.ndim == 0 and not (key is None or key is Ellipsis or isinstance(key, tuple)):
        if not _is_truth(key):
            bad_type("Cannot iterate over a scalar tensor.")
    basic = _Basic(x, _expand(x, key))
    if basic.empty:
        if basic.advanced:
            bad_index("False cannot be an index beside index tensors")
        return _ops.full(basic.shape, 0, x.dtype)
    y = _views.index(x, basic.start, basic.size, basic.step, basic.shape)
    if not basic.advanced:
        return _core.copy(y) if basic.copies else y
    front = basic.front
    at, mask = basic.advanced[0]
    if len(basic.advanced) == 1 and mask.dtype == _core.bool and at == front:
        return _where_true(y, mask, at)
    axes, indices = _flatten_advanced(y, basic.advanced)
    if len(axes) == 1 or all(index.size <= _FEW for index in indices):
        return _gathered(y, axes, indices, front)
    from gradcell.compilation.compiled import run_traced

    picked: Tensor = run_traced(_gathered, (y, axes, indices, front), {})
    return picked


def _gathered(y: Tensor, axes: list[int], indices: list[Tensor], front: int) -> Tensor:
    """The elements at indices along axes, which stand at axis `front` of the result."""
    index, size = _linear(y, axes, indices)
    if axes == [front]:
        return _ops.gather(y, index, front)
    # Bring the axes together where the result has them, take them as one, and gather along it.
    rest = [a for a in range(y.ndim) if a not in axes]
    moved = _ops.transpose(y, rest[:front] + axes + rest[front:])
    shape = list(moved.shape)
    joined = _ops.reshape(moved, [*shape[:front], size, *shape[front + len(axes) :]])
    return _ops.gather(joined, index, front)


def replaced(x: Tensor, places: Tensor, new: Tensor, axis: int = 0) -> Tensor:
    """x with its slices along axis at places (integers of any shape) replaced by those of new.

    new: broadcasts with x but along axis, where it has places.size slices, or one for all places. Of
    several slices for one place the last stays, and alone has a gradient.
    """
    if places.size == 0:
        return x
    n = x.shape[axis]
    writer = _ops.last_writer(places, n)
    shape = [n] + [1] * (x.ndim - 1 - axis)
    written = _ops.reshape(_ops.greater_equal(writer, 0), shape)
    back = axis - x.ndim  # new may have fewer dimensions
    if new.ndim >= -back and new.shape[back] > 1:
        # Where nothing is written the writer is -1: that picks the last slice of new, to no effect.
        new = _ops.gather(new, writer, new.ndim + back)
    return _ops.where(written, new, x)


def _broadcasts(shape: Any, to: list[int]) -> bool:
    """Return whether a tensor of a shape broadcasts to the shape `to`."""
    wanted = to[len(to) - len(shape) :]
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape, wanted, strict=True))


def _with_mask(x: Tensor, mask: Tensor, new: Tensor) -> Tensor | None:
    """x with new where the mask of its leading dimensions is true; None where new has more than one
    slice for the places of the mask."""
    rest = list(x.shape[mask.ndim :])
    if tuple(mask.shape) != tuple(x.shape[: mask.ndim]) or not _broadcasts(new.shape, [1, *rest]):
        return None
    if new.ndim > len(rest):
        new = _ops.reshape(new, list(new.shape[1:]))
    return _ops.where(_ops.reshape(mask, list(mask.shape) + [1] * len(rest)), new, x)


def _with_slices(x: Tensor, index: Tensor, axis: int, new: Tensor) -> Tensor | None:
    """x with its slices along axis at index replaced by those of new; None where that is for the
    general way to say."""
    after = list(x.shape[axis + 1 :])
    shape = [*x.shape[:axis], *index.shape, *after]
    if not _broadcasts(new.shape, shape):
        return None
    index, _ = _linear(x, [axis], [index])
    if index.ndim != 1:  # its dimensions as one
        new = _ops.broadcast_to(new, shape)
        new = _ops.reshape(new, [*x.shape[:axis], index.size, *after])
        index = _ops.reshape(index, [index.size])
    return replaced(x, index, new, axis)


def _with_coordinates(x: Tensor, advanced: list[tuple[int, Tensor]], new: Tensor) -> Tensor | None:
    """x with its slices at coordinates along its first dimensions replaced; None for others."""
    axes, indices = _flatten_advanced(x, advanced)
    if axes != list(range(len(axes))):
        return None
    index, size = _linear(x, axes, indices)
    rest = list(x.shape[len(axes) :])
    if not _broadcasts(new.shape, [*index.shape, *rest]):
        return None
    slices = _ops.reshape(_ops.broadcast_to(new, [*index.shape, *rest]), [index.size, *rest])
    joined = _ops.reshape(x, [size, *rest])
    written = replaced(joined, _ops.reshape(index, [index.size]), slices)
    return _ops.reshape(written, list(x.shape))


def _written(x: Tensor, basic: _Basic, key: Any, new: Tensor) -> Tensor:
    """x with new at a key with index tensors, as a new tensor."""
    whole = list(basic.size) == list(x.shape) and all(step == 1 for step in basic.step)
    if whole and len(basic.advanced) == 1 and len(basic.shape) == x.ndim:
        axis, index = basic.advanced[0]
        result = None
        if index.dtype != _core.bool:
            if not index.dtype.is_floating:
                if index.dtype not in (_core.int32, _core.int64):
                    index = _ops.cast(index, _core.int64)
                result = _with_slices(x, index, axis, new)
        elif axis == 0:
            result = _with_mask(x, index, new)
        if result is not None:
            return result
    if whole and not any(k.dtype == _core.bool for _, k in basic.advanced):
        result = _with_coordinates(x, basic.advanced, new)
        if result is not None:
            return result
    places = get(_ops.reshape(_ops.iota([x.size], _core.int64, 0), list(x.shape)), key)
    flat_new = _ops.reshape(_ops.broadcast_to(new, list(places.shape)), [places.size])
    flat_x = _ops.reshape(x, [x.size])
    flat_places = _ops.reshape(places, [places.size])
    return _ops.reshape(replaced(flat_x, flat_places, flat_new), list(x.shape))


def _write_at_once(x: Tensor, basic: _Basic, new: Tensor) -> bool:
    """Writes slices at index tensors into x's own memory, if all is known; False: nothing is
    written."""
    if _core.in_trace() or not all(map(_core.is_plain, (x, new, *(k for _, k in basic.advanced)))):
        return False
    if list(basic.size) != list(x.shape) or any(step != 1 for step in basic.step):
        return False
    if len(basic.shape) != x.ndim or any(k.dtype == _core.bool for _, k in basic.advanced):
        return False
    axes, indices = _flatten_advanced(x, basic.advanced)
    first = axes[0]
    if axes != list(range(first, first + len(axes))):
        return False
    index, _ = _linear(x, axes, indices)
    before, after = list(x.shape[:first]), list(x.shape[first + len(axes) :])
    shape = [*before, *index.shape, *after]
    if not _broadcasts(new.shape, shape):
        return False
    if index.ndim != 1:  # its dimensions as one
        new = _ops.reshape(_ops.broadcast_to(new, shape), [*before, index.size, *after])
        index = _ops.reshape(index, [index.size])
    return bool(_core.write_slices(x, first, len(axes), index, new))


def tensor_of_list(value: Any, dtype: _core.DType | None = None) -> Tensor:
    """A tensor, or numbers and tensors in lists, as one tensor of that dtype, through which derivatives go.

    dtype: by default the common one of all of them; a number keeps its digits until it is known.
    """
    if not _core.holds_tensors(value):
        return Tensor(value, dtype)
    if dtype is None:
        dtype = _common_dtype(value)
    if isinstance(value, Tensor):
        return _ops.cast(value, dtype)
    parts = [tensor_of_list(part, dtype) for part in value]
    return _ops.concat([_ops.reshape(part, [1, *part.shape]) for part in parts], 0)


def _parts(value: Any) -> Iterator[Any]:
    """The tensors in lists, and what else is beside them."""
    if _core.holds_tensors(value) and not isinstance(value, Tensor):
        for part in value:
            yield from _parts(part)
    else:
        yield value


def _common_dtype(value: Any) -> _core.DType:
    """That of the tensors in a list, and what numbers beside them make of it."""
    parts = list(_parts(value))
    dtype = functools.reduce(_core.promote, (t.dtype for t in parts if isinstance(t, Tensor)))
    for part in parts:
        if isinstance(part, (bool, int, float, complex, np.generic)):
            dtype = arguments.dtype_beside(dtype, part)
        elif not isinstance(part, Tensor):
            dtype = _core.promote(dtype, Tensor(part).dtype)
    return dtype


def put(x: Tensor, key: Any, value: Any) -> None:
    """x[key] = value, in x's base if x is a view; what was computed from the old elements stays."""
    view = _views.at(x, key)
    if view is not None:
        _core.write(view, value if isinstance(value, Tensor) else tensor_of_list(value, x.dtype))
        return
    basic = _Basic(x, _expand(x, key))
    new = value if isinstance(value, Tensor) else tensor_of_list(value, x.dtype)
    if basic.empty:
        return
    if basic.advanced:
        new = _ops.cast(new, x.dtype)
        if _write_at_once(x, basic, new):
            return
        _core.write(x, _written(x, basic, key, new))
    else:
        _core.write(_views.index(x, basic.start, basic.size, basic.step, basic.shape), new)
