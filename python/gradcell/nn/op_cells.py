"""Ops as cells, their arguments kept."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, fields, publish
from gradcell.nn.cell import Cell
from gradcell.ops.decorators import in_float32
from gradcell.ops.reductions.reductions import length


@fields.declared
class ClipByNorm(Cell):
    """x, scaled so that its Euclidean norm is at most clip_norm.

    axis: the dimensions of the norm, an int or a tuple; None for all. Called with x and clip_norm,
    a number or a tensor that broadcasts to x. Raises TypeError, ValueError.
    """

    axis: Any = fields.anything(default=None)

    def construct(self, x: Tensor, clip_norm: Any) -> Tensor:
        x = arguments.tensor(x, "ClipByNorm", "x")
        limit = arguments.operand(clip_norm, "ClipByNorm", "clip_norm")
        return _clipped(x, limit, arguments.axes_of(self.axis, x.ndim, "ClipByNorm"))


@in_float32
def _clipped(x: Tensor, limit: Tensor, axes: list[int]) -> Tensor:
    x = arguments.single(x)  # beside a limit in float32
    norm = length(_ops.reduce_sum(_ops.square(x), axes, True))
    return _ops.div(_ops.mul(x, limit), _ops.maximum(norm, limit))


@fields.declared
class L1Regularizer(Cell):
    """scale times the sum of the absolute values of all elements, float32 for integers.

    scale: a positive number. Raises TypeError, ValueError.
    """

    scale: float = fields.number(above=0)

    def construct(self, weights: Tensor) -> Tensor:
        x = arguments.floating(arguments.tensor(weights, "L1Regularizer", "weights"))
        return _ops.mul(_ops.reduce_sum(_ops.abs(x)), self.scale)


@fields.declared
class MatMul(Cell):
    """The product of x1 and x2, with transpose_x1 and transpose_x2 of their last two dimensions
    swapped; leading dimensions broadcast.

    transpose_x1: whether the last two dimensions of x1 are swapped. transpose_x2: the same of x2.
    Raises TypeError, ValueError.
    """

    transpose_x1: bool = fields.boolean(default=False)
    transpose_x2: bool = fields.boolean(default=False)

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        def turned(x: Tensor, turn: bool) -> Tensor:
            return ops.swapaxes(x, -1, -2) if turn and x.ndim > 1 else x

        for name, x in (("x1", x1), ("x2", x2)):
            arguments.tensor(x, "MatMul", name)
        return ops.matmul(turned(x1, self.transpose_x1), turned(x2, self.transpose_x2))


class Moments(Cell):
    """(the mean, the variance) along axis: an int, a tuple, or None for all of them.

    keep_dims: whether reduced dimensions stay with size 1. Raises TypeError, ValueError.
    """

    def __init__(self, axis: Any = None, keep_dims: bool | None = None) -> None:
        super().__init__()
        self.axis: Any = axis
        self.keep_dims: bool = bool(keep_dims)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        axes = arguments.axes_of(self.axis, arguments.tensor(x, "Moments", "x").ndim, "Moments")
        wide = _ops.cast(x, _core.float32) if x.dtype.itemsize < 4 else x
        mean = _ops.mean(wide, axes, True)
        variance = _ops.mean(_ops.square(_ops.sub(wide, mean)), axes, self.keep_dims)
        if not self.keep_dims:
            mean = _ops.reshape(mean, list(variance.shape))
        return _ops.cast(mean, x.dtype), _ops.cast(variance, x.dtype)


@in_float32
def _euclidean(x: Tensor, axes: list[int], keep_dims: bool) -> Tensor:
    return length(_ops.reduce_sum(_ops.square(x), axes, keep_dims))


@fields.declared
class Norm(Cell):
    """The Euclidean norm along axis: an int, a tuple, or () for all of them. Raises TypeError,
    ValueError.

    keep_dims: whether dimensions that are reduced stay, with size 1.
    """

    axis: Any = fields.anything(default=(), shown=True)
    keep_dims: bool = fields.boolean(default=False, shown=True)

    def construct(self, x: Tensor) -> Tensor:
        axes = arguments.axes_of(self.axis, arguments.tensor(x, "Norm", "x").ndim, "Norm")
        return _euclidean(x, axes, self.keep_dims)


@fields.declared
class OneHot(Cell):
    """Class numbers as rows of depth elements: on_value at the class, off_value elsewhere.

    axis: where the new dimension stands. Raises TypeError, ValueError.
    """

    axis: int = fields.anything(default=-1)
    depth: int = fields.integer(0, default=1)
    on_value: float = fields.anything(default=1.0)
    off_value: float = fields.anything(default=0.0)
    dtype: InitVar[_core.DType | None] = fields.anything(default=None)

    def _build(self, dtype: _core.DType | None) -> None:
        self.dtype = arguments.dtype_or(dtype, _core.default_dtype())

    def construct(self, indices: Tensor) -> Tensor:
        on, off = (Tensor(v, self.dtype) for v in (self.on_value, self.off_value))
        return ops.one_hot(indices, self.depth, on, off, self.axis)


class Range(Cell):
    """The numbers from start on, by delta, below limit: called without arguments, float32 or int32.

    With one argument, from 0 to below it. Raises ValueError for a delta of 0.
    """

    def __init__(self, start: float, limit: float | None = None, delta: float = 1) -> None:
        super().__init__()
        if delta == 0:
            bad_value("For 'Range', the 'delta' can not be zero.")
        values = np.arange(start, delta) if limit is None else np.arange(start, limit, delta)
        kind = np.float32 if values.dtype == np.float64 else np.int32
        self.result_tensor: Tensor = Tensor(values.astype(kind))

    def construct(self) -> Tensor:
        return self.result_tensor


@fields.declared
class ReduceLogSumExp(Cell):
    """$log(sum(exp(x)))$ along axis, computed without overflow. keep_dims: whether reduced
    dimensions stay with size 1. Raises TypeError, ValueError."""

    axis: Any = fields.anything()
    keep_dims: bool = fields.boolean(default=False)

    def construct(self, x: Tensor) -> Tensor:
        return ops.logsumexp(x, self.axis, self.keep_dims)


@fields.declared
class Roll(Cell):
    """x shifted along axis; elements that leave at one end come in at the other.

    shift, axis: ints, or as many of one as of the other. Raises TypeError, ValueError.
    """

    shift: Any = fields.checked(arguments.integers)
    axis: Any = fields.checked(arguments.integers)

    def _build(self) -> None:
        if len(self.shift) != len(self.axis):
            bad_value(
                f"For 'Roll', there must be as many of 'shift' as of 'axis', but got {len(self.shift)} and "
                f"{len(self.axis)}."
            )

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.roll(input_x, tuple(self.shift), tuple(self.axis))


class Tril(Cell):
    """x with zeros above diagonal k of its last two dimensions. Called with x and k, 0 by default."""

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        return ops.tril(x, k)


class Triu(Cell):
    """x with zeros below diagonal k of its last two dimensions. Called with x and k, 0 by default."""

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        return ops.triu(x, k)


@fields.declared
class Unflatten(Cell):
    """Splits one dimension, axis, into several: those of unflattened_size.

    unflattened_size: a tuple of the new sizes, at most one of them -1. Raises TypeError,
    ValueError.
    """

    axis: int = fields.integer()
    unflattened_size: Any = fields.checked(arguments.integers)

    def _build(self) -> None:
        self.unflattened_size = tuple(self.unflattened_size)

    def construct(self, input_x: Tensor) -> Tensor:
        x = arguments.tensor(input_x, "Unflatten", "input_x")
        a = arguments.axis_of(self.axis, x.ndim, "Unflatten")
        return ops.reshape(x, (*x.shape[:a], *self.unflattened_size, *x.shape[a + 1 :]))


publish(globals())
