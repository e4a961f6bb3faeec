"""Indexing of tensors: Python's basic indexing, tensors of integers, boolean masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell._core import ops as _ops


def _where() -> str:
    return f" ({_core.user_location()})"


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
            raise IndexError(f"an index must be of integers or bools, got {array.dtype}{_where()}")
    return Tensor(array)


def _is_int(key: Any) -> bool:
    return isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_))


def _is_array(key: Any) -> bool:
    return isinstance(key, (list, np.ndarray)) or (isinstance(key, Tensor))


def _expand(x: Tensor, key: Any) -> list[Any]:
    """The key as a list with an entry for each dimension of x, and None for each new axis."""
    keys = list(key) if isinstance(key, tuple) else [key]
    for i, k in enumerate(keys):
        if hasattr(k, "__cuda_array_interface__") and not isinstance(k, Tensor):
            keys[i] = Tensor(k)
    used = 0
    for k in keys:
        if k is None or k is Ellipsis or isinstance(k, (bool, np.bool_)):
            continue
        mask = isinstance(k, (Tensor, np.ndarray)) and str(k.dtype).lower() == "bool"
        used += max(k.ndim, 1) if mask else 1
    if used > x.ndim:
        raise IndexError(
            f"too many indices for tensor of dimension{x.ndim}: {used} were given{_where()}"
        )
    ellipses = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(f"an index can have only one Ellipsis{_where()}")
    fill = [slice(None)] * (x.ndim - used)
    if ellipses:
        at = ellipses[0]
        return keys[:at] + fill + keys[at + 1 :]
    return keys + fill


def _normal_int(k: int, size: int) -> int:
    if not -size <= k < size:
        raise IndexError(f"index {k} is out of bounds for dimension with size {size}{_where()}")
    return k + size if k < 0 else k


class _Basic:
    """What the ints, slices and new axes of a key come to: one slice and one reshape."""

    def __init__(self, x: Tensor, keys: list[Any]) -> None:
        self.start: list[int] = []
        self.size: list[int] = []
        self.step: list[int] = []
        self.shape: list[int] = []
        self.advanced: list[tuple[int, Any]] = []  # (axis of the result, index)
        axis = 0
        for k in keys:
            if k is None or (isinstance(k, (bool, np.bool_)) and k):
                self.shape.append(1)
                continue
            if isinstance(k, (bool, np.bool_)):
                raise IndexError(f"False cannot be an index{_where()}")
            n = x.shape[axis]
            if _is_int(k):
                self._add(_normal_int(int(k), n), 1, 1)
            elif isinstance(k, slice):
                parts = [None if p is None else int(p) for p in (k.start, k.stop, k.step)]
                if parts[2] == 0:
                    raise ValueError(f"slice step cannot be zero{_where()}")
                start, stop, step = slice(*parts).indices(n)
                size = len(range(start, stop, step))
                self._add(start if size else 0, size, step)
                self.shape.append(size)
            elif _is_array(k):
                index = _as_tensor(k)
                if index.ndim == 0 and index.dtype != _core.bool and _core.known(index):
                    self._add(_normal_int(int(index), n), 1, 1)
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
                raise IndexError(
                    f"an index must be an integer, a slice, None, Ellipsis, a tensor or a list, "
                    f"got {type(k).__name__}{_where()}"
                )
            axis += 1

    def _add(self, start: int, size: int, step: int) -> None:
        self.start.append(start)
        self.size.append(size)
        self.step.append(step)


def _mask_indices(mask: Tensor, shape: tuple[int, ...]) -> list[Tensor]:
    """The positions of True, one tensor for each dimension. Asks for the mask's value."""
    values = mask.asnumpy()
    if tuple(values.shape) != tuple(shape):
        raise IndexError(
            f"a boolean index of shape {list(values.shape)} does not match the indexed dimensions "
            f"{list(shape)}{_where()}"
        )
    return [Tensor(i.astype(np.int64)) for i in np.nonzero(values)]


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
                if index.dtype.is_floating:
                    raise IndexError(f"an index must be of integers, got {index.dtype}{_where()}")
                index = _ops.cast(index, _core.int64)
            indices.append(index)
    return axes, indices


def _linear(y: Tensor, axes: list[int], indices: list[Tensor]) -> tuple[Tensor, list[int], int]:
    """One index over the given axes taken as one: (it, those axes' sizes, their product)."""
    sizes = [y.shape[a] for a in axes]
    total: Any = None
    for size, index in zip(sizes, indices, strict=True):
        if _core.known(index):
            values = index.asnumpy()
            if values.size and (values.max() >= size or values.min() < -size):
                bad = values[(values >= size) | (values < -size)].flat[0]
                raise IndexError(
                    f"index {bad} is out of bounds for dimension with size {size}{_where()}"
                )
        if len(sizes) > 1:
            index = _ops.mod(_ops.cast(index, _core.int64), size)
        total = index if total is None else _ops.add(_ops.mul(total, size), index)
    return total, sizes, int(np.prod(sizes, dtype=np.int64))


def get(x: Tensor, key: Any) -> Tensor:
    """x[key]."""
    if x.ndim == 0 and not (key is None or key is Ellipsis or isinstance(key, (tuple, bool))):
        if not (isinstance(key, Tensor) and key.dtype == _core.bool):
            raise TypeError(f"Cannot iterate over a scalar tensor.{_where()}")
    basic = _Basic(x, _expand(x, key))
    y = _ops.reshape(_ops.slice(x, basic.start, basic.size, basic.step), basic.shape)
    if not basic.advanced:
        return y
    axes, indices = _flatten_advanced(y, basic.advanced)
    if len(axes) == 1:
        total, _, _ = _linear(y, axes, indices)
        return _ops.gather(y, total, axes[0])
    # Several index tensors: bring their axes together, take them as one, and gather along it. As in
    # NumPy, the result's axes stand where they stood if they were neighbours, else in front.
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    front = axes[0] if adjacent else 0
    rest = [a for a in range(y.ndim) if a not in axes]
    perm = rest[:front] + axes + rest[front:]
    total, _, product = _linear(y, axes, indices)
    moved = _ops.transpose(y, perm)
    shape = list(moved.shape)
    joined = _ops.reshape(moved, [*shape[:front], product, *shape[front + len(axes) :]])
    return _ops.gather(joined, total, front)


def put(x: Tensor, key: Any, value: Any) -> None:
    """x[key] = value: x becomes a new tensor; what was computed from the old one is untouched."""
    basic = _Basic(x, _expand(x, key))
    new = value if isinstance(value, Tensor) else Tensor(value, x.dtype)
    new = _ops.cast(new, x.dtype)
    if basic.advanced:
        places = get(_ops.reshape(_ops.iota([x.size], _core.int64, 0), list(x.shape)), key)
        flat_places = _ops.reshape(places, [-1])
        flat_new = _ops.reshape(_ops.broadcast_to(new, list(places.shape)), [-1])
        ones = _ops.full(list(flat_new.shape), 1, x.dtype)
        flat = _ops.scatter_add(flat_places, flat_new, 0, x.size)
        hits = _ops.scatter_add(flat_places, ones, 0, x.size)
        count = _ops.maximum(hits, 1)
        flat = _ops.div(flat, count) if x.dtype.is_floating else _ops.floor_div(flat, count)
        written = _ops.reshape(flat, list(x.shape))
        mask = _ops.reshape(_ops.greater(hits, 0), list(x.shape))
    else:
        shape = list(x.shape)
        placed = _ops.reshape(_ops.broadcast_to(new, basic.shape), basic.size)
        written = _ops.slice_scatter(placed, shape, basic.start, basic.step)
        ones = _ops.full(basic.size, 1, _core.int32)
        mask = _ops.greater(_ops.slice_scatter(ones, shape, basic.start, basic.step), 0)
    result = _ops.where(mask, written, x)
    if x._is_variable:
        x._set_array(result)  # type: ignore[attr-defined]
    else:
        x._rebind(result)
