"""Windows that move over the last dimensions of a tensor: padding, and one strided slice for each
kernel position.

What comes in: a tensor and one `Axis` for each dimension that a window moves along, in order. A
composite of these and of differentiable ops is itself differentiable to any order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value

#: How docstrings name the last dimensions, by their number.
DIMENSIONS = {1: "dimension", 2: "two dimensions", 3: "three dimensions"}


class Axis(NamedTuple):
    """The movement of a window along one dimension."""

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
        """Count the positions of each window that lie in the input, or in it and its padding."""
        starts = np.arange(self.number) * self.stride - self.before
        taps = starts[:, None] + np.arange(self.kernel) * self.dilation
        low, high = (-self.before, self.after) if count_padding else (0, 0)
        inside = (taps >= low) & (taps < self.size + high)
        return inside.sum(axis=1)  # type: ignore[no-any-return]


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
        bad_value(
            f"For '{owner}', input shape's h and w after padding must be greater than or equal to "
            f"kernel_size's h and w respectively, but got size {size}, padding {before} and {after}, and a "
            f"kernel that reaches over {extent}."
        )
    count = room // stride + 1
    if ceil_mode and room % stride and count * stride < size + before:
        count += 1
    return Axis(size, kernel, stride, dilation, before, after, count)


def pad(x: Tensor, axes: Sequence[Axis], fill: float) -> Tensor:
    """x with what the windows need around its last dimensions."""
    if not any(a.before or a.missing for a in axes):
        return x
    outer = x.ndim - len(axes)
    if fill == 0:
        dims = [*x.shape[:outer], *(a.before + a.size + a.missing for a in axes)]
        return _ops.slice_scatter(x, dims, [0] * outer + [a.before for a in axes], [1] * x.ndim)
    for i, a in enumerate(axes, outer):
        ends = [[*x.shape[:i], n, *x.shape[i + 1 :]] for n in (a.before, a.missing)]
        parts = [_ops.full(dims, fill, x.dtype) for dims in ends]
        kept = [p for p in (parts[0], x, parts[1]) if p is x or p.shape[i]]
        x = _ops.concat(kept, i) if len(kept) > 1 else x
    return x


def positions(axes: Sequence[Axis]) -> list[tuple[int, ...]]:
    """Return the offset of each kernel element in its window, in row-major order."""
    return list(itertools.product(*(range(0, a.kernel * a.dilation, a.dilation) for a in axes)))


def taps(x: Tensor, axes: Sequence[Axis]) -> list[Tensor]:
    """For each kernel position: the element of every window of the padded x that lies there."""
    outer = x.ndim - len(axes)
    size = [*x.shape[:outer], *(a.number for a in axes)]
    step = [1] * outer + [a.stride for a in axes]
    return [_ops.slice(x, [0] * outer + list(at), size, step) for at in positions(axes)]


def steps(axes: Sequence[Axis]) -> tuple[list[int], list[int], list[int]]:
    """(strides, dilations, paddings before), as the core's ops take them."""
    return [a.stride for a in axes], [a.dilation for a in axes], [a.before for a in axes]


def sizes(value: Any, rank: int, owner: str, name: str, least: int = 1) -> tuple[int, ...]:
    """One number for each dimension, from an int or as many of them. Raises TypeError, ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value,) * rank
    if not isinstance(value, (tuple, list)):
        bad_type(
            f"For '{owner}', the type of '{name}' should be one of '['int', 'tuple']', but got type "
            f"'{type(value).__name__}'."
        )
    if len(value) != rank:
        bad_value(
            f"For '{owner}', the '{name}' must be an int or a tuple of {rank}, but got {value}."
        )
    return tuple(arguments.integer(item, owner, f"{name} item", least) for item in value)


def no_padding(owner: str, amounts: Iterable[int], padding: Any, pad_mode: Any) -> None:
    """Raises ValueError for a padding, of these amounts, beside a mode other than 'pad'."""
    if str(pad_mode).lower() != "pad" and any(amounts):
        bad_value(
            f"For '{owner}', the 'padding' must be zero when 'pad_mode' is not 'pad', but got 'padding': "
            f"{padding} and 'pad_mode': {pad_mode}."
        )


def margins(padding: Any, rank: int, owner: str) -> list[tuple[int, int]]:
    """(before, after) for each dimension, from an int, one for each dimension, or all of them in
    order. Raises TypeError, ValueError."""
    if isinstance(padding, int) and not isinstance(padding, bool):
        padding = (padding,) * (2 * rank)
    if not isinstance(padding, (tuple, list)):
        bad_type(
            f"For '{owner}', the type of 'padding' must be int or tuple, but got {type(padding).__name__}."
        )
    if len(padding) == rank:
        padding = [n for n in padding for _ in range(2)]
    if len(padding) != 2 * rank:
        bad_value(
            f"For '{owner}', a tuple 'padding' must have {2 * rank} elements, but got {padding}."
        )
    found = [arguments.integer(item, owner, "padding item", 0) for item in padding]
    return list(zip(found[::2], found[1::2], strict=True))


def last_sizes(values: Any, rank: int, owner: str, name: str) -> tuple[int, ...]:
    """The numbers of the windowed dimensions; of four also those of batch and channels are taken."""
    if isinstance(values, (tuple, list)) and len(values) == rank + 2:
        values = tuple(values)[2:]
    return sizes(values, rank, owner, name)


def axes_of(
    x: Tensor, owner: str, kernel: Any, stride: Any, pad_mode: str, padding: Any = 0,
    dilation: Any = 1, ceil_mode: bool = False, rank: int | None = None,
) -> list[Axis]:  # fmt: skip
    """Return the movement of windows along the last `rank` dimensions; None: all behind the channels."""
    rank = x.ndim - 2 if rank is None else rank
    mode = arguments.one_of(str(pad_mode).lower(), ("valid", "same", "pad"), owner, "pad_mode")
    moves = zip(
        x.shape[x.ndim - rank :], last_sizes(kernel, rank, owner, "kernel_size"),
        last_sizes(stride, rank, owner, "stride"), last_sizes(dilation, rank, owner, "dilation"),
        margins(padding, rank, owner), strict=True,
    )  # fmt: skip
    return [axis(owner, n, k, s, d, mode, p, ceil_mode) for n, k, s, d, p in moves]
