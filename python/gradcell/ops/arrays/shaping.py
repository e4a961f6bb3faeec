"""Ops that move elements and change shapes: reshape, transpose, concat, split, pad and so on."""

from __future__ import annotations

import builtins
import itertools
import math
from typing import Any, TypeVar

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, to_dtype, with_tensors
from gradcell.base.spelling import spelling
from gradcell.ops.decorators import method, one_plan

__all__ = [
    "broadcast_to", "cast", "cat", "chunk", "concat", "diag", "diagonal", "dtype", "expand_dims",
    "flatten", "flip", "hstack", "identity", "meshgrid", "movedim", "narrow", "pad", "permute",
    "rank", "repeat_elements", "repeat_interleave", "reshape", "roll", "shape", "size", "slice",
    "split", "squeeze", "stack", "stop_gradient", "stop_gradient_", "strided_slice", "swapaxes", "swapdims",
    "t", "tile", "trace", "transpose", "tril", "triu", "unbind", "unsqueeze", "unstack", "vstack",
]  # fmt: skip

T = TypeVar("T")
#: Ops of the same names whose results are views; what is made of _ops alone is a copy.
_views = _core.views


# What a tensor is ---------------------------------------------------------------------------------


def shape(input_x: Any) -> tuple[int, ...]:
    """The shape of a tensor, a tuple of integers."""
    return arguments.tensor(input_x, "Shape").shape


def rank(input_x: Any) -> int:
    """The number of dimensions of a tensor."""
    return arguments.tensor(input_x, "Rank").ndim


def size(input_x: Any) -> int:
    """The number of elements."""
    return arguments.tensor(input_x, "Size").size


def dtype(x: Any) -> _core.DType:
    """The dtype of a tensor."""
    return arguments.tensor(x, "DType").dtype


def cast(input: Any, dtype: Any) -> Tensor:
    """The tensor in another dtype. From floating to integer types the fraction is cut off."""
    return _ops.cast(input, to_dtype(dtype))


def identity(x: T) -> T:
    """The argument itself, or a copy of a tensor."""
    x = with_tensors(x)
    return _core.copy(x) if isinstance(x, Tensor) else x  # type: ignore[return-value]


def stop_gradient(value: T) -> T:
    """The same values as constants: no derivative goes through. Tuples and lists elementwise.

    value: a tensor, or a tuple or list of tensors.
    """
    if isinstance(value, (tuple, list)):
        return type(value)(stop_gradient(v) for v in value)  # type: ignore[return-value]
    value = with_tensors(value)
    if not isinstance(value, Tensor):
        return value
    return _ops.stop_gradient(value)  # type: ignore[return-value]


def stop_gradient_(input: Tensor) -> Tensor:
    """stop_gradient in place: from here on the tensor is a constant of derivatives. Returns it."""
    _core.write(arguments.tensor(input, "stop_gradient_"), _ops.stop_gradient(input))
    return input


# One tensor ---------------------------------------------------------------------------------------


def reshape(input: Any, shape: Any) -> Tensor:
    """The elements, in order, in another shape; at most one dimension may be -1.

    Raises ValueError if the number of elements differs.
    """
    return _views.reshape(input, arguments.integers(shape, "Reshape", "shape"))


def squeeze(input: Any, axis: Any = None) -> Tensor:
    """The tensor without its dimensions of size 1, or without those of `axis` that have size 1."""
    x = arguments.tensor(input, "Squeeze")
    axes = set(arguments.axes_of(axis if axis != () else None, x.ndim, "Squeeze"))
    return _views.reshape(x, [n for i, n in enumerate(x.shape) if n != 1 or i not in axes])


@method(dim="axis")
def expand_dims(input_x: Any, axis: Any) -> Tensor:
    """The tensor with a new dimension of size 1 at axis, or at several axes, counted in the result."""
    x = arguments.tensor(input_x, "ExpandDims")
    rank = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    new = arguments.differing(axis, rank, "ExpandDims")
    sizes = iter(x.shape)
    return _views.reshape(x, [1 if i in new else next(sizes) for i in range(rank)])


@method(axis="dim")
@spelling(expand_dims)
def unsqueeze(input: Any, dim: Any) -> Tensor: ...


def transpose(input: Any, dims: Any = None, *, input_perm: Any = None) -> Tensor:
    """The tensor with its dimensions in the order of dims.

    input_perm: what MindSpore before 2.10 calls dims. Raises ValueError if that is not a
    permutation, TypeError unless one of both is given.
    """
    order = input_perm if dims is None else dims
    return _views.transpose(input, arguments.integers(order, "Transpose", "dims"))


@spelling(transpose)
def permute(input: Any, axis: Any) -> Tensor:
    """The tensor with its dimensions in the order of axis."""


@method()
def swapaxes(input: Any, axis0: Any, axis1: Any) -> Tensor:
    """The tensor with two of its dimensions exchanged."""
    x = arguments.tensor(input, "swapaxes")
    perm = list(range(x.ndim))
    a = arguments.axis_of(axis0, x.ndim, "swapaxes", "axis0")
    b = arguments.axis_of(axis1, x.ndim, "swapaxes", "axis1")
    if perm:
        perm[a], perm[b] = perm[b], perm[a]
    return _views.transpose(x, perm)


@method()
@spelling(swapaxes)
def swapdims(input: Any, dim0: Any, dim1: Any) -> Tensor: ...


@method()
def t(input: Any) -> Tensor:
    """The transposed matrix; vectors and scalars stay as they are. Raises ValueError for more
    dimensions."""
    x = arguments.tensor(input, "t")
    if x.ndim > 2:
        bad_value(f"t: at most two dimensions, got shape {list(x.shape)}")
    return _views.transpose(x, list(range(x.ndim))[::-1])


@method()
def movedim(x: Any, source: Any, destination: Any) -> Tensor:
    """The tensor with the dimensions of source moved to the positions of destination, the others in
    order.
    """
    x = arguments.tensor(x, "movedim")
    from_ = arguments.axes_of(source, x.ndim, "movedim", "source")
    to = arguments.axes_of(destination, x.ndim, "movedim", "destination")
    if len(from_) != len(to):
        bad_value(f"movedim: {source} and {destination} have different lengths")
    perm = [i for i in range(x.ndim) if i not in from_]
    for d, s in sorted(zip(to, from_, strict=True)):
        perm.insert(d, s)
    return _views.transpose(x, perm)


def flatten(input: Any, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """A copy of the tensor with the dimensions from start_dim to end_dim joined; order 'F' joins
    them reversed.

    order: 'C' or 'F'.
    """
    return _core.copy(flattened(input, order, start_dim, end_dim))


def flattened(input: Any, order: str, start_dim: int, end_dim: int) -> Tensor:
    """The same as a view, where the elements lie in that order."""
    x = arguments.tensor(input, "Flatten")
    arguments.one_of(order, ("C", "F"), "flatten", "order")
    first = arguments.axis_of(start_dim, max(x.ndim, 2), "flatten", "start_dim")
    last = arguments.axis_of(end_dim, x.ndim, "flatten", "end_dim")
    if x.ndim < 2:
        return _views.reshape(x, [x.size])
    if first > last:
        bad_value(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    dims = list(x.shape)
    if order == "F":
        joined = list(range(first, last + 1))[::-1]
        x = _views.transpose(x, [*range(first), *joined, *range(last + 1, x.ndim)])
    return _views.reshape(x, [*dims[:first], math.prod(dims[first : last + 1]), *dims[last + 1 :]])


def broadcast_to(input: Any, shape: Any) -> Tensor:
    """The tensor broadcast to the given shape, along dimensions of size 1 and new leading ones; -1
    keeps a size.

    Raises ValueError if the shapes do not fit.
    """
    return _views.broadcast_to(input, arguments.integers(shape, "BroadcastTo", "shape"))


@method(one_plan, reps="dims")
def tile(input: Any, dims: Any) -> Tensor:
    """The tensor repeated dims[i] times along dimension i; if dims is shorter than the shape, it
    counts from the last dimension.

    Raises TypeError unless dims is a tuple or list, ValueError for a negative count.
    """
    x = arguments.tensor(input, "Tile")
    if not isinstance(dims, (tuple, list, Tensor)):
        bad_type(f"Tile: dims must be a tuple of integers, got {dims!r}")
    counts = arguments.integers(dims, "Tile", "dims")
    if any(c < 0 for c in counts):
        bad_value(f"Tile: a count of {dims} is negative")
    rank = max(len(counts), x.ndim)
    counts = [1] * (rank - len(counts)) + counts
    sizes = [1] * (rank - x.ndim) + list(x.shape)
    apart = [n for size in sizes for n in (1, size)]
    spread = [n for c, size in zip(counts, sizes, strict=True) for n in (c, size)]
    joined = [c * size for c, size in zip(counts, sizes, strict=True)]
    return _ops.reshape(_ops.broadcast_to(_ops.reshape(x, apart), spread), joined)


@method(one_plan, dim="axis")
def repeat_interleave(
    input: Any, repeats: Any, axis: Any = None, *, output_size: int | None = None
) -> Tensor:
    """Each element repeated `repeats` times in a row along axis; None: of the flattened tensor.

    repeats: an integer, or as many as axis has elements. output_size: the size of the result along axis,
    which follows from repeats; ValueError for another.
    """
    x = arguments.tensor(input, "repeat_interleave")
    if axis is None:
        axis = 0
        x = _ops.reshape(x, [x.size])
    a = arguments.axis_of(axis, x.ndim, "repeat_interleave")
    x = arguments.vector(x)
    counts = arguments.integers(repeats, "repeat_interleave", "repeats")
    if any(c < 0 for c in counts):
        bad_value(f"repeat_interleave: a count of {counts} is negative")
    size = sum(counts) if len(counts) > 1 else counts[0] * x.shape[a]
    if output_size not in (None, size):
        bad_value(f"repeat_interleave: output_size is {output_size}, not {size}")
    if len(counts) == 1:
        dims = list(x.shape)
        apart = [*dims[: a + 1], 1, *dims[a + 1 :]]
        spread = [*dims[: a + 1], counts[0], *dims[a + 1 :]]
        joined = [*dims[:a], dims[a] * counts[0], *dims[a + 1 :]]
        return _ops.reshape(_ops.broadcast_to(_ops.reshape(x, apart), spread), joined)
    if len(counts) != x.shape[a]:
        bad_value(f"repeat_interleave: {len(counts)} counts for a dimension of size {x.shape[a]}")
    return _ops.gather(x, Tensor(np.repeat(np.arange(x.shape[a]), counts)), a)


@spelling(repeat_interleave)
def repeat_elements(x: Any, rep: int, axis: int = 0) -> Tensor:
    """Repeats each element rep times in a row along axis."""


def _window(x: Tensor, axis: int, start: int, size: int, step: int = 1, by: Any = _ops) -> Tensor:
    starts, sizes, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], sizes[axis], steps[axis] = start, size, step
    return by.slice(x, starts, sizes, steps)  # type: ignore[no-any-return]


@method(dim="axis")
def narrow(input: Any, axis: Any, start: Any, length: Any) -> Tensor:
    """`length` elements along axis from `start` on. Raises ValueError if they reach beyond the end."""
    x = arguments.tensor(input, "narrow")
    a = arguments.axis_in(x, axis, "narrow")
    first = arguments.integer(start, "narrow", "start")
    count = arguments.integer(length, "narrow", "length")
    first += x.shape[a] if first < 0 else 0
    if first < 0 or count < 0 or first + count > x.shape[a]:
        bad_value(
            f"narrow: {length} elements from {start} on are not within a dimension of size {x.shape[a]}"
        )
    return _window(x, a, first, count, by=_views)


def slice(input_x: Any, begin: Any, size: Any) -> Tensor:
    """`size` elements from `begin` on in each dimension; a size of -1 reaches to the end.

    size: the number of elements in each dimension, a tuple. Raises ValueError if they reach
    beyond the end.
    """
    x = arguments.tensor(input_x, "Slice", "input_x")
    first, count = (
        arguments.integers(begin, "Slice", "begin"),
        arguments.integers(size, "Slice", "size"),
    )
    if not len(first) == len(count) == x.ndim:
        bad_value(f"Slice: begin {first} and size {count} do not fit shape {list(x.shape)}")
    count = [n - b if c == -1 else c for n, b, c in zip(x.shape, first, count, strict=True)]
    for n, b, c in zip(x.shape, first, count, strict=True):
        if b < 0 or c < 0 or b + c > n:
            bad_value(f"Slice: begin {first} and size {count} are not within shape {list(x.shape)}")
    return _views.slice(x, first, count, [1] * x.ndim)


@one_plan
def flip(input: Any, dims: Any) -> Tensor:
    """The tensor with the order of its elements reversed along dims."""
    x = arguments.tensor(input, "flip")
    for a in arguments.axes_of(dims, x.ndim, "flip", "dims") if dims not in ((), []) else []:
        if x.shape[a]:
            x = _window(x, a, x.shape[a] - 1, x.shape[a], -1)
    return x


@method(one_plan, axis="dims")
def roll(input: Any, shifts: Any, dims: Any = None) -> Tensor:
    """The tensor with its elements shifted along dims; those that leave at one end come in at the other.

    dims: None shifts the flattened tensor.
    """
    x = arguments.tensor(input, "roll")
    if dims is None:
        flat = roll(_ops.reshape(x, [x.size]), shifts, 0)
        return _ops.reshape(flat, list(x.shape))
    amounts = arguments.integers(shifts, "roll", "shifts")
    axes = [arguments.axis_of(d, x.ndim, "roll") for d in arguments.integers(dims, "roll", "dims")]
    amounts *= len(axes) if len(amounts) == 1 else 1
    if len(amounts) != len(axes):
        bad_value(f"roll: {len(amounts)} shifts for {len(axes)} dims")
    for amount, a in zip(amounts, axes, strict=True):
        n = x.shape[a] if x.ndim else 1
        cut = amount % n if n else 0
        if cut:
            x = _ops.concat([_window(x, a, n - cut, cut), _window(x, a, 0, n - cut)], a)
    return x


# Several tensors ----------------------------------------------------------------------------------


def concat(tensors: Any, axis: Any = 0) -> Tensor:
    """A tuple or list of tensors, joined along an axis. All other dimensions must be the same.

    Raises TypeError unless it is a tuple or list, ValueError for none or for other shapes.
    """
    return _ops.concat(
        arguments.tensors(tensors, "Concat"), arguments.integer(axis, "Concat", "axis")
    )


@spelling(concat)
def cat(tensors: Any, axis: Any = 0) -> Tensor: ...


@one_plan
def stack(tensors: Any, axis: Any = 0) -> Tensor:
    """Joins tensors of one shape along a new axis.

    Raises TypeError unless it is a tuple or list, ValueError for none or for different shapes.
    """
    xs = arguments.tensors(tensors, "Stack")
    if not xs:
        bad_value("Stack: needs at least one tensor")
    if any(x.shape != xs[0].shape for x in xs):
        shapes = ", ".join(str(list(x.shape)) for x in xs)
        bad_value(f"Stack: all shapes must be the same, got {shapes}")
    a = arguments.axis_of(axis, xs[0].ndim + 1, "Stack")
    return _ops.concat([expand_dims(x, a) for x in xs], a)


@one_plan
def vstack(inputs: Any) -> Tensor:
    """Stacks tensors along the first dimension; vectors become rows."""
    xs = arguments.tensors(inputs, "vstack", "inputs")
    return concat([x if x.ndim > 1 else _ops.reshape(x, [1, x.size]) for x in xs], 0)


@one_plan
def hstack(tensors: Any) -> Tensor:
    """Joins tensors along the second dimension; vectors along their only one."""
    xs = [x if x.ndim else _ops.reshape(x, [1]) for x in arguments.tensors(tensors, "hstack")]
    return concat(xs, 0 if xs and xs[0].ndim == 1 else 1)


def _cut(x: Tensor, axis: int, sizes: list[int]) -> tuple[Tensor, ...]:
    """x in pieces of those sizes along an axis."""
    ends = list(itertools.accumulate(sizes, initial=0))
    return tuple(_window(x, axis, at, n, by=_views) for at, n in zip(ends, sizes, strict=False))


@method(dim="axis", split_size="split_size_or_sections")
def split(tensor: Any, split_size_or_sections: Any, axis: Any = 0) -> tuple[Tensor, ...]:
    """Splits a tensor along an axis, into pieces of one size (the last may be smaller) or of given sizes.

    split_size_or_sections: the size of a part, or a list of sizes.

    Raises ValueError unless the sizes are positive and add up to the dimension.
    """
    x = arguments.tensor(tensor, "split", "tensor")
    a = arguments.axis_in(x, axis, "split")
    n = x.shape[a]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = arguments.integers(split_size_or_sections, "split", "split_size_or_sections")
        if any(s < 0 for s in sizes) or sum(sizes) != n:
            bad_value(f"split: sections {sizes} do not add up to the dimension's size {n}")
        return _cut(x, a, sizes)
    step = arguments.integer(split_size_or_sections, "split", "split_size_or_sections")
    if step <= 0:
        bad_value(f"split: the size must be positive, got {step}")
    return _cut(x, a, [min(step, n - i) for i in range(0, n, step)] or [0])


@method(dim="axis")
def chunk(input: Any, chunks: Any, axis: Any = 0) -> tuple[Tensor, ...]:
    """Splits a tensor along an axis into at most `chunks` pieces, all but the last of one size."""
    x = arguments.tensor(input, "chunk")
    count = arguments.integer(chunks, "chunk", "chunks")
    if count <= 0:
        bad_value(f"chunk: the number of chunks must be positive, got {count}")
    n = x.shape[arguments.axis_in(x, axis, "chunk")]
    return split(x, max(-(-n // count), 1), axis)


def unstack(input_x: Any, axis: Any = 0) -> tuple[Tensor, ...]:
    """The slices of a tensor along an axis, which the slices no longer have."""
    x = arguments.tensor(input_x, "Unstack")
    return _views.unstack(x, arguments.axis_in(x, axis, "Unstack"))


@method(axis="dim")
@spelling(unstack)
def unbind(input: Any, dim: Any = 0) -> tuple[Tensor, ...]: ...


def meshgrid(*inputs: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinate grids of vectors; indexing 'xy': the first two dimensions exchanged.

    inputs: n vectors, or one tuple or list of them. indexing: 'ij', result k varies along dimension
    k; 'xy', with the first two dimensions of each result exchanged.
    """
    arguments.one_of(indexing, ("xy", "ij"), "meshgrid", "indexing")
    if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
        inputs = tuple(inputs[0])
    xs = arguments.tensors(inputs, "meshgrid", "inputs")
    dims = [x.size for x in xs]
    grids = []
    for i, x in enumerate(xs):
        line = _views.reshape(x, [x.size if j == i else 1 for j in range(len(xs))])
        grid = _views.broadcast_to(line, dims)
        grids.append(swapaxes(grid, 0, 1) if indexing == "xy" and len(xs) > 1 else grid)
    return tuple(grids)


# Triangles, diagonals, padding --------------------------------------------------------------------


def _offsets(dims: list[int]) -> Tensor:
    """Column minus row over the last two dimensions."""
    rank = len(dims)
    return _ops.sub(_ops.iota(dims, _core.int64, rank - 1), _ops.iota(dims, _core.int64, rank - 2))


def _triangle(x: Tensor, op: str) -> Tensor:
    if x.ndim < 2:
        bad_value(f"{op}: at least two dimensions are needed, got {list(x.shape)}")
    return _offsets(list(x.shape))


@method(one_plan)
def tril(input: Any, diagonal: int = 0) -> Tensor:
    """The lower triangle: zero above the diagonal-th diagonal of the last two dimensions."""
    x = arguments.tensor(input, "tril")
    return _ops.where(_ops.less_equal(_triangle(x, "tril"), diagonal), x, False)


@method(one_plan)
def triu(input: Any, diagonal: int = 0) -> Tensor:
    """The upper triangle: zero below the diagonal-th diagonal of the last two dimensions."""
    x = arguments.tensor(input, "triu")
    return _ops.where(_ops.greater_equal(_triangle(x, "triu"), diagonal), x, False)


@one_plan
def _on_diagonal(x: Tensor) -> Tensor:
    square = diagonal_or_matrix(_ops.reshape(x, [x.size]), 0)
    return _ops.reshape(square, [*x.shape, *x.shape])


def diag(input: Any) -> Tensor:
    """The elements on the diagonal of a tensor of zeros: an input of shape [m, n] gives [m, n, m, n].
    The diagonal of a matrix is ops.diagonal(x).

    Raises ValueError for a number, MemoryError for a result that does not fit into memory.
    """
    x = arguments.tensor(input, "diag")
    if x.ndim == 0:
        bad_value("For primitive[Diag], the input rank must be at least 1, but got 0")
    try:
        return _on_diagonal(x)
    except MemoryError as error:
        raise MemoryError(
            f"diag: of shape {list(x.shape)} the result has the shape {[*x.shape, *x.shape]}"
            f"{', and ops.diagonal(x) takes the diagonal of a matrix' * (x.ndim > 1)}: {error}"
        ) from None


def diagonal_or_matrix(input: Any, diagonal: int = 0) -> Tensor:
    """A vector as a diagonal of a matrix of zeros; of a matrix, a diagonal (as NumPy's diag)."""
    x, diagonal = arguments.tensor(input, "diag"), arguments.integer(diagonal, "diag", "diagonal")
    if x.ndim == 2:
        return _core.copy(_views.diagonal(x, diagonal, 0, 1))
    if x.ndim != 1:
        bad_value(f"diag: a vector or a matrix is needed, got {list(x.shape)}")
    n = x.size + abs(diagonal)
    first = diagonal if diagonal >= 0 else -diagonal * n
    return _ops.reshape(_ops.slice_scatter(x, [n * n], [first], [n + 1]), [n, n])


@method(axis1="dim1", axis2="dim2")
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The offset-th diagonal over two dimensions, which the result does not have; it has the
    diagonal as its last dimension.
    """
    x = arguments.tensor(input, "diagonal")
    a = arguments.axis_of(dim1, x.ndim, "diagonal", "dim1")
    b = arguments.axis_of(dim2, x.ndim, "diagonal", "dim2")
    return _views.diagonal(x, arguments.integer(offset, "diagonal", "offset"), a, b)


@one_plan
def trace(input: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of the elements on the diagonal."""
    return _ops.reduce_sum(diagonal(input, offset, axis1, axis2), -1)


def _pad_constant(x: Tensor, axis: int, before: int, after: int, value: Any) -> Tensor:
    n = x.shape[axis]
    dims, start = list(x.shape), [0] * x.ndim
    dims[axis], start[axis] = n + before + after, before
    if value == 0:
        return _ops.slice_scatter(x, dims, start, [1] * x.ndim)
    ends = []
    for count in (before, after):
        dims[axis] = count
        ends.append(_ops.full(dims, value, x.dtype))
    return _ops.concat([ends[0], x, ends[1]], axis)


def _pad_index(mode: str, n: int, before: int, after: int) -> np.ndarray:
    i = np.arange(-before, n + after)
    if mode == "replicate":
        return np.clip(i, 0, n - 1)
    if mode == "circular":
        return i % n
    return np.abs((i + n - 1) % (2 * n - 2) - (n - 1)) if n > 1 else np.zeros_like(i)


@one_plan
def pad(input_x: Any, padding: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Pads the last dimensions at both ends.

    padding: (before, after) of the last dimension, then of the one in front of it, and so on;
    negative numbers cut off. mode: 'constant', 'reflect', 'replicate' or 'circular'. value: what
    'constant' fills in, by default 0. Raises ValueError for an odd number of paddings or ones too
    large to reflect.
    """
    x = arguments.tensor(input_x, "pad", "input_x")
    arguments.one_of(mode, ("constant", "reflect", "replicate", "circular"), "pad", "mode")
    amounts = arguments.integers(padding, "pad", "padding")
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        bad_value(f"pad: padding {amounts} does not fit a tensor of shape {list(x.shape)}")
    for k in range(0, len(amounts), 2):
        a, before, after = x.ndim - 1 - k // 2, amounts[k], amounts[k + 1]
        if before < 0 or after < 0:
            x = narrow(x, a, max(-before, 0), x.shape[a] - max(-before, 0) - max(-after, 0))
            before, after = max(before, 0), max(after, 0)
        if not before and not after:
            continue
        n = x.shape[a]
        if mode == "constant":
            x = _pad_constant(x, a, before, after, 0 if value is None else value)
            continue
        if n == 0 or (mode == "reflect" and max(before, after) >= n):
            bad_value(f"pad: {mode} padding {amounts} is too large for size {n}")
        x = _ops.gather(x, Tensor(_pad_index(mode, n, before, after)), a)
    return x


def strided_slice(
    input_x: Any, begin: Any, end: Any, strides: Any, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
) -> Tensor:  # fmt: skip
    """input_x[begin:end:strides], a slice for each dimension.

    Where bit i of a mask is set: begin_mask, end_mask: begin[i], end[i] is not used; ellipsis_mask:
    position i stands for as many whole dimensions as are left; new_axis_mask: it is a new dimension
    of size 1; shrink_axis_mask: it is the one element at begin[i], and the dimension goes.
    """
    x = arguments.tensor(input_x, "StridedSlice", "input_x")
    first, last, steps = (
        arguments.integers(v, "StridedSlice", n)
        for v, n in ((begin, "begin"), (end, "end"), (strides, "strides"))
    )
    if not len(first) == len(last) == len(steps):
        bad_value(
            f"StridedSlice: begin, end and strides must have one length, got {len(first)}, {len(last)} and "
            f"{len(steps)}"
        )
    key: list[Any] = []
    for i in range(len(first)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(first[i])
        else:
            begin_i = None if begin_mask & bit else first[i]
            key.append(builtins.slice(begin_i, None if end_mask & bit else last[i], steps[i]))
    return x[tuple(key)]
