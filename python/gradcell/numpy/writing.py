"""NumPy's functions that write into a tensor: they return None, or what they say."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import arguments, publish
from gradcell.numpy.conversion import _plain, tensor, vector


def copyto(dst: Tensor, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Writes src into dst, where `where` is true.

    dst: the tensor that is written to. src: what broadcasts to it. casting has no effect.
    """
    dst[...] = src if where is True else ops.where(tensor(where), src, dst)


def putmask(a: Tensor, mask: Any, values: Any) -> None:
    """Writes values into a where mask is true: at each place the element of values, repeated, that is
    there.

    mask: of a's shape.
    """
    copyto(a, _repeated(values, a.size).reshape(a.shape), where=mask)


def place(arr: Tensor, mask: Any, vals: Any) -> None:
    """Writes the first elements of vals, repeated, into arr where mask is true. Reads values.

    mask: of arr's shape. vals: a vector.
    """
    where = np.flatnonzero(_plain(mask))
    put(arr, where, _repeated(vals, len(where)))


def put(a: Tensor, ind: Any, v: Any, mode: str = "raise") -> None:
    """Writes v, repeated, into the elements of a that are at ind in the flattened tensor.

    ind: integers. v: a number or a vector. mode: 'raise', 'wrap' or 'clip' indices out of range.
    """
    arguments.one_of(mode, ("raise", "wrap", "clip"), "put", "mode")
    index: np.ndarray = np.asarray(_plain(ind)).reshape(-1)
    if mode != "raise":
        index = index % a.size if mode == "wrap" else np.clip(index, 0, a.size - 1)
    flat = vector(a).copy()
    flat[Tensor(index)] = _repeated(v, len(index))
    a[...] = flat.reshape(a.shape)


def _repeated(values: Any, count: int) -> Tensor:
    line = vector(values)
    return line[Tensor(np.arange(count) % builtins.max(line.size, 1))]


def fill_diagonal(a: Tensor, val: Any, wrap: bool = False) -> None:
    """Writes val into the main diagonal of a.

    val: a number, or a vector, repeated. wrap: whether the diagonal of a tall matrix begins again below.
    """
    marked = np.zeros(tuple(a.shape), bool)
    np.fill_diagonal(marked, True, wrap)
    place(a, marked, val)


def put_along_axis(arr: Tensor, indices: Any, values: Any, axis: Any) -> None:
    """Writes values into arr at indices along axis, the other coordinates being those of the index's own
    place; None: into the flattened tensor.

    values: what broadcasts to indices.
    """
    at = tensor(indices)
    grid = [Tensor(i) for i in np.indices(tuple(at.shape), sparse=True)]
    if axis is None:
        put(arr, at, values)
        return
    grid[arguments.axis_in(arr, axis, "put_along_axis")] = at
    arr[tuple(grid)] = values


publish(globals())
