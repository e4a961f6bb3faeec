"""Windows of convolutions and poolings: padding, and one strided slice for each kernel position.

All work on the last two dimensions of a tensor. A composite of these and of differentiable ops is
itself differentiable to any order.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gradcell import arguments
from gradcell._core import Tensor
from gradcell._core import ops as _ops
from gradcell._location import where


class Axis(NamedTuple):
    """How a window moves along one dimension."""

    size: int  #: of the input
    kernel: int
    stride: int
    dilation: int
    before: int  #: padding
    after: int
    number: int  #: of windows

    @property
    def missing(self) -> int:
        """Padding behind the input that the last window reaches into."""
        reach = (self.number - 1) * self.stride + (self.kernel - 1) * self.dilation + 1
        return max(reach - self.size - self.before, 0)

    def covered(self, count_padding: bool) -> np.ndarray:
        """How many positions of each window lie in the input, or in it and its padding."""
        starts = np.arange(self.number) * self.stride - self.before
        taps = starts[:, None] + np.arange(self.kernel) * self.dilation
        low, high = (-self.before, self.after) if count_padding else (0, 0)
        inside = (taps >= low) & (taps < self.size + high)
        return inside.sum(axis=1)


def axis(
    owner: str,
    size: int,
    kernel: int,
    stride: int,
    dilation: int,
    pad_mode: str,
    padding: tuple[int, int],
    ceil_mode: bool = False,
) -> Axis:
    """Counts the windows along one dimension.

    pad_mode 'same': ceil(size / stride) of them, padding split with the odd one behind; 'valid': no
    padding; 'pad': `padding` before and behind. ceil_mode: also a last window that sticks out.
    Raises ValueError if the kernel is larger than the padded input.
    """
    extent = (kernel - 1) * dilation + 1
    if pad_mode == "same":
        count = math.ceil(size / stride)
        total = max((count - 1) * stride + extent - size, 0)
        return Axis(size, kernel, stride, dilation, total // 2, total - total // 2, count)
    before, after = padding if pad_mode == "pad" else (0, 0)
    room = size + before + after - extent
    if room < 0:
        raise ValueError(
            f"For '{owner}', input shape's h and w after padding must be greater than or equal to "
            f"kernel_size's h and w respectively, but got size {size}, padding {before} and "
            f"{after}, and a kernel that reaches over {extent}.{where()}"
        )
    count = room // stride + 1
    if ceil_mode and room % stride and count * stride < size + before:
        count += 1
    return Axis(size, kernel, stride, dilation, before, after, count)


def pad(x: Tensor, rows: Axis, columns: Axis, fill: float) -> Tensor:
    """x with what the windows need around its last two dimensions."""
    h0, h1, w0, w1 = rows.before, rows.missing, columns.before, columns.missing
    if not (h0 or h1 or w0 or w1):
        return x
    *outer, h, w = x.shape
    if fill == 0:
        rest = [0] * len(outer)
        dims = [*outer, h0 + h + h1, w0 + w + w1]
        return _ops.slice_scatter(x, dims, [*rest, h0, w0], [1] * len(dims))
    x = _beside(x, [*outer, h0, w], [*outer, h1, w], len(outer), fill)
    h += h0 + h1
    return _beside(x, [*outer, h, w0], [*outer, h, w1], len(outer) + 1, fill)


def _beside(x: Tensor, before: list[int], after: list[int], axis: int, fill: float) -> Tensor:
    parts = [_ops.full(dims, fill, x.dtype) for dims in (before, after)]
    kept = [p for p in (parts[0], x, parts[1]) if p is x or p.shape[axis]]
    return _ops.concat(kept, axis) if len(kept) > 1 else x


def taps(x: Tensor, rows: Axis, columns: Axis) -> list[Tensor]:
    """For each kernel position, row by row: the element of every window that lies there."""
    outer = list(x.shape[:-2])
    zeros, ones = [0] * len(outer), [1] * len(outer)
    size = [*outer, rows.number, columns.number]
    step = [*ones, rows.stride, columns.stride]
    return [
        _ops.slice(x, [*zeros, i * rows.dilation, j * columns.dilation], size, step)
        for i in range(rows.kernel)
        for j in range(columns.kernel)
    ]


def pair(owner: str, name: str, value: Any, least: int = 1) -> tuple[int, int]:
    """(rows, columns) from an int or two of them. Raises TypeError, ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value, value)
    if not isinstance(value, (tuple, list)):
        raise TypeError(
            f"For '{owner}', the type of '{name}' should be one of '['int', 'tuple']', but got "
            f"type '{type(value).__name__}'.{where()}"
        )
    if len(value) != 2:
        raise ValueError(
            f"For '{owner}', the '{name}' must be an int or a tuple of two, but got {value}."
            f"{where()}"
        )
    for item in value:
        arguments.integer(item, owner, f"{name} item", least)
    return value[0], value[1]
