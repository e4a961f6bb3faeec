"""Tensors put together and taken apart in NumPy's ways: stacks of columns, quarter turns, sections."""

from __future__ import annotations

import itertools
from typing import Any, overload

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, to_dtype, where
from gradcell.base.spelling import spelling
from gradcell.ops.arrays import indexing, shaping
from gradcell.ops.decorators import method, one_plan
from gradcell.ops.elements import complex_numbers

__all__ = [
    "adjoint", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "column_stack", "diagflat",
    "dsplit", "dstack", "hsplit", "mirror_pad", "moveaxis", "multi_dot", "numel", "ravel",
    "reverse_sequence", "rot90", "row_stack", "sequence_mask", "tensor_split", "tril_indices",
    "triu_indices", "type_as", "view_as", "vsplit",
]  # fmt: skip


@one_plan
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, broadcast to one shape. Raises ValueError if they do not fit."""
    xs = arguments.tensors(tensors, "broadcast_tensors")
    try:
        dims = list(np.broadcast_shapes(*(tuple(x.shape) for x in xs)))
    except ValueError:
        shapes = ", ".join(str(list(x.shape)) for x in xs)
        raise ValueError(f"broadcast_tensors: shapes {shapes} do not fit{where()}") from None
    return tuple(_ops.broadcast_to(x, dims) for x in xs)


def _widened(inputs: tuple[Any, ...], name: str, widen: Any) -> Any:
    several = len(inputs) != 1 or isinstance(inputs[0], (tuple, list))
    given = inputs[0] if several and len(inputs) == 1 else inputs
    xs = [arguments.tensor(x, name) for x in given]
    out = tuple(_ops.reshape(x, widen(list(x.shape))) for x in xs)
    return out if several else out[0]


@overload
def atleast_1d(input: Tensor, /) -> Tensor: ...
@overload
def atleast_1d(*inputs: Any) -> tuple[Tensor, ...]: ...
def atleast_1d(*inputs: Any) -> Any:
    """Tensors with at least one dimension: a scalar becomes a vector."""
    return _widened(inputs, "atleast_1d", lambda s: s or [1])


@overload
def atleast_2d(input: Tensor, /) -> Tensor: ...
@overload
def atleast_2d(*inputs: Any) -> tuple[Tensor, ...]: ...
def atleast_2d(*inputs: Any) -> Any:
    """Tensors with at least two dimensions: a vector becomes a row."""
    return _widened(inputs, "atleast_2d", lambda s: [1] * (2 - len(s)) + s)


@overload
def atleast_3d(input: Tensor, /) -> Tensor: ...
@overload
def atleast_3d(*inputs: Any) -> tuple[Tensor, ...]: ...
def atleast_3d(*inputs: Any) -> Any:
    """Tensors with at least three dimensions: a vector [n] becomes [1, n, 1], a matrix [m, n, 1]."""
    return _widened(
        inputs, "atleast_3d", lambda s: s if len(s) > 2 else [*([1] * (len(s) < 2)), *(s or [1]), 1]
    )


@one_plan
def column_stack(tensors: Any) -> Tensor:
    """Stacks vectors as the columns of a matrix; matrices are placed side by side."""
    xs = arguments.tensors(tensors, "column_stack")
    return shaping.concat([x if x.ndim > 1 else _ops.reshape(x, [x.size, 1]) for x in xs], 1)


@spelling(shaping.vstack)
def row_stack(tensors: Any) -> Tensor: ...


@one_plan
def dstack(tensors: Any) -> Tensor:
    """Joins tensors along the third dimension; vectors and matrices get one first."""
    return shaping.concat(list(atleast_3d(arguments.tensors(tensors, "dstack"))), 2)


@method(one_plan)
def rot90(input: Any, k: int, dims: Any) -> Tensor:
    """Rotates a tensor by k quarter turns in the plane of two dimensions, from the first towards
    the second.

    k: the number of quarter turns, which may be negative. dims: two different dimensions.
    """
    x = arguments.tensor(input, "rot90")
    plane = arguments.differing(dims, x.ndim, "rot90", "dims")
    if len(plane) != 2:
        bad_value(f"rot90: two dimensions are needed, got {dims} of shape {list(x.shape)}")
    a, b = plane
    turns = arguments.integer(k, "rot90", "k") % 4
    if turns == 2:
        return shaping.flip(x, (a, b))
    if turns == 1:
        return shaping.swapaxes(shaping.flip(x, b), a, b)
    return shaping.flip(shaping.swapaxes(x, a, b), b) if turns else x


@method()
def diagflat(input: Any, offset: int = 0) -> Tensor:
    """All elements on the offset-th diagonal of a matrix of zeros."""
    x = arguments.tensor(input, "diagflat")
    return shaping.diagonal_or_matrix(_ops.reshape(x, [x.size]), offset)


#: Of fewer elements: the rest would be empty.
_MOST_PARTS = 1 << 16


@method()
def tensor_split(input: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits a tensor along axis before the given indices, or into a number of parts, of which the
    first ones are longer by one where they cannot be equal."""
    x = arguments.tensor(input, "tensor_split")
    a = arguments.axis_in(x, axis, "tensor_split")
    n = x.shape[a]
    if isinstance(indices_or_sections, (list, tuple)):
        ends = [0, *(min(max(c + n if c < 0 else c, 0), n) for c in indices_or_sections), n]
        spans = [(i, max(j - i, 0)) for i, j in itertools.pairwise(ends)]
    else:
        count = arguments.integer(indices_or_sections, "tensor_split", "indices_or_sections")
        if not 0 < count <= max(n, _MOST_PARTS):
            bad_value(f"tensor_split: {count} parts of {n} elements")
        sizes = [n // count + (i < n % count) for i in range(count)]
        spans = list(zip(itertools.accumulate([0, *sizes[:-1]]), sizes, strict=True))
    return tuple(shaping._window(x, a, i, n, by=_core.views) for i, n in spans)


@method()
def vsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits a tensor along the first dimension, as tensor_split."""
    return tensor_split(input, indices_or_sections, 0)


@method()
def hsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits a tensor along the second dimension, a vector along its only one, as tensor_split."""
    x = arguments.tensor(input, "hsplit")
    return tensor_split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


@method()
def dsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits a tensor along the third dimension, as tensor_split."""
    return tensor_split(input, indices_or_sections, 2)


@method()
@spelling(shaping.movedim)
def moveaxis(x: Any, source: Any, destination: Any) -> Tensor: ...


def ravel(input: Any) -> Tensor:
    """All elements of a tensor as a vector."""
    x = arguments.tensor(input, "ravel")
    return _core.views.reshape(x, [x.size])


def view_as(input: Any, other: Any) -> Tensor:
    """The tensor, reshaped to the shape of other."""
    return _core.views.reshape(input, list(arguments.tensor(other, "view_as", "other").shape))


@method()
def type_as(input: Any, other: Any) -> Tensor:
    """The tensor, cast to the dtype of other."""
    return _ops.cast(input, arguments.tensor(other, "type_as", "other").dtype)


def numel(input: Any) -> int:
    """The number of elements of a tensor."""
    return arguments.tensor(input, "numel").size


def _triangle(name: str, row: int, col: int, offset: int, dtype: Any, below: bool) -> Tensor:
    rows, columns = arguments.integer(row, name, "row"), arguments.integer(col, name, "col")
    away = arguments.integer(offset, name, "offset")
    arguments.addressable([2, max(rows, 0), max(columns, 0)], name)
    places = _core.places_in_triangle(rows, columns, away, below)
    return _ops.cast(places, to_dtype(dtype))


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = _core.int64) -> Tensor:
    """The coordinates of the elements on and below a diagonal, [2, count].

    row: the number of rows. col: the number of columns.
    """
    return _triangle("tril_indices", row, col, offset, dtype, True)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = _core.int64) -> Tensor:
    """The coordinates of the elements on and above a diagonal, [2, count].

    row: the number of rows. col: the number of columns.
    """
    return _triangle("triu_indices", row, col, offset, dtype, False)


@one_plan
def multi_dot(arrays: Any) -> Tensor:
    """The product of several matrices, from left to right; a first or last vector as row or column.

    arrays: a sequence of tensors.
    """
    xs = arguments.tensors(arrays, "multi_dot", "arrays")
    first, last = xs[0].ndim == 1, xs[-1].ndim == 1
    xs[0] = _ops.reshape(xs[0], [1, -1]) if first else xs[0]
    xs[-1] = _ops.reshape(xs[-1], [-1, 1]) if last else xs[-1]
    out = xs[0]
    for x in xs[1:]:
        out = _ops.matmul(out, x)
    dims = [n for n, drop in zip(out.shape, (first, last), strict=True) if not drop]
    return _ops.reshape(out, dims)


@one_plan
def mirror_pad(input_x: Any, paddings: Any, mode: str = "REFLECT") -> Tensor:
    """Pads each dimension at both ends by mirroring: 'REFLECT' without the edge, 'SYMMETRIC' with it.

    paddings: [rank, 2], before and after. mode: 'REFLECT' or 'SYMMETRIC'.
    """
    t = arguments.tensor(input_x, "MirrorPad", "input_x")
    arguments.one_of(mode, ("REFLECT", "SYMMETRIC"), "MirrorPad", "mode")
    pairs = np.asarray(paddings.asnumpy() if isinstance(paddings, Tensor) else paddings)
    if pairs.shape != (t.ndim, 2):
        bad_value(
            f"For 'MirrorPad', the 'paddings' must have shape [{t.ndim}, 2], but got {list(pairs.shape)}"
        )
    for a, (before, after) in enumerate(pairs):
        if not t.shape[a] and before + after:
            bad_value(f"MirrorPad: there is nothing to mirror along axis {a} of {list(t.shape)}")
        index = np.pad(np.arange(t.shape[a]), (before, after), mode.lower())  # type: ignore[call-overload]
        t = _ops.gather(t, Tensor(index), a)
    return t


def sequence_mask(lengths: Any, maxlen: Any = None) -> Tensor:
    """For each length, that many times True, then False, up to maxlen.

    maxlen: the length of the result's last dimension, by default the largest length. lengths: the
    length of each sequence.
    """
    x = arguments.tensor(lengths, "sequence_mask", "lengths")
    largest = int(x.asnumpy().max(initial=0)) if maxlen is None else maxlen
    count = arguments.integer(largest, "sequence_mask", "maxlen")
    return _ops.less(_ops.iota([count], _core.int64, 0), _ops.reshape(x, [*x.shape, 1]))


@one_plan
def reverse_sequence(x: Any, seq_lengths: Any, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """The first seq_lengths[b] elements along seq_dim in reverse order, for each b along batch_dim.

    seq_dim: the dimension to reverse along. batch_dim: the dimension that seq_lengths belongs to.
    """
    t = arguments.tensor(x, "ReverseSequence", "x")
    s, b = (
        arguments.axis_of(d, t.ndim, "ReverseSequence", "seq_dim") for d in (seq_dim, batch_dim)
    )
    lengths = arguments.tensor(seq_lengths, "ReverseSequence", "seq_lengths")
    shape = [1] * t.ndim
    shape[b] = t.shape[b]
    length = _ops.reshape(_ops.cast(lengths, _core.int64), shape)
    place = _ops.iota(list(t.shape), _core.int64, s)
    index = _ops.where(_ops.less(place, length), _ops.sub(_ops.sub(length, 1), place), place)
    return indexing.gather_elements(t, s, index)


@method()
def adjoint(x: Any) -> Tensor:
    """The last two dimensions exchanged, and complex numbers conjugate."""
    turned = shaping.swapaxes(x, -2, -1)
    return complex_numbers.conj(turned) if turned.dtype.is_complex else turned
