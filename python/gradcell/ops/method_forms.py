"""Methods of Tensor that take several forms of arguments, or others than the op of their name."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments, bad_type, has_numpy_dtype, is_tensor, to_dtype
from gradcell.ops.decorators import in_place, method


def listed(op: str, values: tuple[Any, ...]) -> list[int]:
    """Integers given one by one, or as one tuple or list."""
    if len(values) == 1 and not isinstance(values[0], int):
        return arguments.integers(values[0], op, "argument")
    return arguments.integers(values, op, "argument")


# Shapes -------------------------------------------------------------------------------------------


@method()
def reshape(self: Tensor, *shape: Any) -> Tensor:
    """The elements, in order, in another shape: integers, or one tuple or list; -1 once."""
    return _core.views.reshape(self, listed("Reshape", shape))


@method()
def view(self: Tensor, *shape: Any, dtype: Any = None) -> Tensor:
    """The elements in another shape, as reshape. view(dtype): the bytes read as elements of another
    dtype, a copy; the size of the last dimension changes with that of an element. Raises ValueError if
    a row's size is not a multiple of the element's, TypeError for bfloat16."""
    if dtype is None and not (len(shape) == 1 and isinstance(shape[0], _core.DType)):
        return reshape(self, *shape)
    kind = to_dtype(shape[0] if dtype is None else dtype)
    if not (has_numpy_dtype(kind) and has_numpy_dtype(self.dtype)):
        bad_type("Tensor.view: the bytes of bfloat16 are not read")
    return Tensor(np.ascontiguousarray(self.asnumpy()).view(kind.numpy_code))


@method()
def transpose(self: Tensor, *axes: Any, dim0: Any = None, dim1: Any = None) -> Tensor:
    """The dimensions reversed; or in the order of axes, a tuple or integers; or, for two integers, those
    two dimensions exchanged: transpose(dim0, dim1)."""
    if dim0 is not None or dim1 is not None:
        axes = (*axes, *(a for a in (dim0, dim1) if a is not None))
    order = listed("Transpose", axes) if axes and axes[0] is not None else []
    if not order:
        return _core.views.transpose(self, list(range(self.ndim))[::-1])
    if len(axes) == 2:
        return ops.swapaxes(self, *order)
    return _core.views.transpose(self, order)


# Elements by index --------------------------------------------------------------------------------


@method()
def where(self: Tensor, condition: Any, y: Any) -> Tensor:
    """self where condition is true, else y."""
    return _core.ops.where(condition, self, y)


@method()
def gather(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """gather(dim, index): the elements at index along dim, as ops.gather_elements;
    gather(input_indices, axis, batch_dims=0): the slices along axis, as ops.gather."""
    slices = "input_indices" in kwargs or (args and is_tensor(args[0]))
    return (ops.gather if slices else ops.gather_elements)(self, *args, **kwargs)


@method()
def select(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """select(dim, index): the slice at index along dim, without that dimension;
    select(condition, y): this tensor where condition is true, else y."""
    if "condition" in kwargs or (args and is_tensor(args[0])):
        return where(self, *args, **kwargs)
    return _selected(self, *args, **kwargs)


def _selected(self: Tensor, dim: int, index: int) -> Tensor:
    return ops.squeeze(ops.narrow(self, dim, index, 1), dim)


@in_place()
@method()
def index_add(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """index_add(dim, index, source, alpha=1): this tensor with alpha source added along dim at index;
    index_add(indices, y, axis, use_lock=True, check_index_bound=True): as ops.index_add."""
    if "indices" in kwargs or (args and is_tensor(args[0])):
        return ops.index_add(self, *args, **kwargs)
    return _source_added(self, *args, **kwargs)


def _source_added(self: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    return ops.index_add(self, index, source if alpha == 1 else _core.ops.mul(source, alpha), dim)


@method()
def scatter_add(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """scatter_add(dim, index, src): this tensor with src added at index along dim, at the index's own
    other coordinates; scatter_add(indices, updates): as ops.tensor_scatter_add."""
    if "indices" in kwargs or (args and is_tensor(args[0])):
        return ops.tensor_scatter_add(self, *args, **kwargs)
    return _source_scattered(self, *args, **kwargs)


def _source_scattered(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return ops.tensor_scatter_elements(self, index, src, dim, "add")


@in_place("scatter_", axis="dim")
def scattered(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
    reduce: str | None = None,
) -> Tensor:  # fmt: skip
    """The tensor with src, or value, put at index along dim, added or multiplied."""
    arguments.one_of(reduce, (None, "add", "multiply"), "scatter_", "reduce")
    new = src if value is None else value
    index = arguments.tensor(index, "scatter_", "index")
    if not is_tensor(new):
        new = ops.full(index.shape, new, dtype=self.dtype)
    if reduce is None:
        return ops.scatter(self, dim, index, new)
    if reduce == "add":
        return ops.tensor_scatter_elements(self, index, new, dim, "add")
    axis = arguments.axis_of(dim, self.ndim, "scatter_", "dim")
    grid = [Tensor(g.astype(np.int64)) for g in np.indices(tuple(index.shape))]
    grid[axis] = ops.cast(index, _core.int64)
    kept = new[tuple(slice(n) for n in index.shape)]
    return ops.tensor_scatter_mul(self, ops.stack(grid, -1), kept)


# Other arguments than the op's --------------------------------------------------------------------


@method()
def round(self: Tensor, decimals: int = 0) -> Tensor:
    """Rounded to the nearest multiple of 10^-decimals, and halves to the even one."""
    return ops.round(self, decimals=decimals)


@method(dim="axis")
def softmax(self: Tensor, axis: Any = -1, dtype: Any = None) -> Tensor:
    """exp(x) divided by its sum along axis."""
    return ops.softmax(self, axis, dtype=dtype)


@method()
def trace(
    self: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Tensor:
    """The sum of the offset-th diagonal over two dimensions, in dtype if that is given."""
    return ops.trace(self if dtype is None else ops.cast(self, dtype), offset, axis1, axis2)


@method()
def addr(self: Tensor, vec1: Any, vec2: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta this tensor + alpha the outer product of two vectors."""
    return ops.addr(self, vec1, vec2, beta=beta, alpha=alpha)


@method()
def qr(self: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """The QR decomposition (Q, R): with some, Q of as many columns as R has rows."""
    return ops.qr(self, "reduced" if some else "complete")


@method()
def reverse_sequence(
    self: Tensor, seq_lengths: Any, seq_dim: int = 0, batch_dim: int = 0
) -> Tensor:
    """As ops.reverse_sequence."""
    return ops.reverse_sequence(self, seq_lengths, seq_dim, batch_dim)
