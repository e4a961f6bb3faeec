"""Poolings over windows of any number of dimensions, fixed or adaptive: one slice a kernel position."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value
from gradcell.ops.decorators import one_plan
from gradcell.ops.networks import windows
from gradcell.tensors.indexing import replaced

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "lp_pool1d", "lp_pool2d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def _beats(part: Tensor, best: Tensor) -> Tensor:
    return _ops.logical_or(_ops.greater(part, best), _ops.isnan(part))


def largest_with_index(parts: Sequence[Tensor], indices: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The elementwise maximum and, of the indices, the one that belongs to it; among equal ones the
    first takes the gradient, NaN wins."""
    best, index = parts[0], _ops.broadcast_to(indices[0], list(parts[0].shape))
    for part, place in zip(parts[1:], indices[1:], strict=True):
        wins = _beats(part, best)
        best = _ops.where(wins, part, best)
        index = _ops.where(wins, place, index)
    return best, index


def max_pool(x: Tensor, axes: Sequence[windows.Axis], with_index: bool) -> Any:
    """The largest element of each window: among equal ones the first takes the gradient, NaN wins.
    with_index: also its place in the flattened windowed dimensions, int64."""
    windowed = ([a.kernel for a in axes], *windows.steps(axes), [a.number for a in axes])
    best = _ops.window_max(x, *windowed)
    if not with_index:
        return best
    return best, _ops.cast(_ops.window_argmax(x, *windowed), _core.int64)


def sum_pool(x: Tensor, axes: Sequence[windows.Axis]) -> Tensor:
    """The sum of each window, padding taken as zeros: a convolution of each channel with ones."""
    sizes, outer = [a.number for a in axes], list(x.shape[: x.ndim - len(axes)])
    if all(a.number == 1 and a.kernel == a.size and a.dilation == 1 and not a.before for a in axes):
        return _ops.reduce_sum(x, list(range(len(outer), x.ndim)), True)
    images = _ops.reshape(x, [math.prod(outer), 1, *(a.size for a in axes)])
    ones = _ops.full([1, 1, *(a.kernel for a in axes)], 1, x.dtype)
    total = _ops.convolution(images, ones, *windows.steps(axes), sizes, 1)
    return _ops.reshape(total, [*outer, *sizes])


def avg_pool(
    x: Tensor, axes: Sequence[windows.Axis], count_padding: bool, divisor: int | None = None
) -> Tensor:
    """The mean of each window, or its sum over the divisor. count_padding: the zeros count too."""
    total = sum_pool(arguments.floating(x), axes)
    if divisor is not None:
        return _ops.div(total, divisor)
    counts = np.ones([1] * len(axes))
    for i, axis in enumerate(axes):
        shape = [-1 if k == i else 1 for k in range(len(axes))]
        counts = counts * axis.covered(count_padding).reshape(shape)
    if counts.size and (counts == counts.flat[0]).all():
        return _ops.mul(total, 1 / float(counts.flat[0]))
    return _ops.mul(total, Tensor(1 / counts, total.dtype))


# Adaptive: window i of m over n elements reaches from floor(i n / m) to ceil((i + 1) n / m) ----------


def _check_pooled(x: Tensor, numbers: Sequence[int | None]) -> None:
    if any(not n and m for n, m in zip(x.shape[-len(numbers) :], numbers, strict=True)):
        bad_value(f"adaptive pooling: an input of shape {list(x.shape)} has nothing to pool")


def _adaptive(x: Tensor, axis: int, number: int) -> tuple[list[Tensor], np.ndarray, np.ndarray]:
    """(for each position in the longest window the elements there, their indices, windows' sizes).

    A shorter window's last element comes again where it has no more.
    """
    n = x.shape[axis]
    starts = np.arange(number) * n // number
    ends = -(-(np.arange(1, number + 1) * n) // number)
    longest = int((ends - starts).max())
    index = np.minimum(starts + np.arange(longest)[:, None], ends - 1)
    return [_ops.gather(x, Tensor(row), axis) for row in index], index, ends - starts


def adaptive_avg_pool(x: Tensor, numbers: Sequence[int | None]) -> Tensor:
    """The means of as many windows along each of the last dimensions; None keeps one as it is."""
    _check_pooled(x, numbers)
    x = arguments.floating(x)
    for axis, number in enumerate(numbers, x.ndim - len(numbers)):
        n = x.shape[axis]
        if number is None or number == n:
            continue
        if n % number == 0:
            shape = [*x.shape[:axis], number, n // number, *x.shape[axis + 1 :]]
            x = _ops.mean(_ops.reshape(x, shape), axis + 1)
            continue
        parts, _, counts = _adaptive(x, axis, number)
        shape = [-1 if k == axis else 1 for k in range(x.ndim)]
        total = parts[0]
        for k, part in enumerate(parts[1:], 1):
            inside = Tensor((counts > k).reshape(shape))
            total = _ops.add(total, _ops.where(inside, part, 0))
        x = _ops.mul(total, Tensor(1 / counts.reshape(shape), total.dtype))
    return x


def adaptive_max_pool(x: Tensor, numbers: Sequence[int | None]) -> tuple[Tensor, Tensor]:
    """(the largest elements of as many windows along each of the last dimensions, their places in
    those dimensions flattened, int64)."""
    _check_pooled(x, numbers)
    outer = x.ndim - len(numbers)
    sizes = [(n, n if m is None else m) for n, m in zip(x.shape[outer:], numbers, strict=True)]
    if all(m > 0 and n % m == 0 for n, m in sizes) and x.size:  # windows of one size, side by side
        even = [
            windows.axis("pool", n, n // m, n // m, 1, "valid", (0, 0), False) for n, m in sizes
        ]
        return max_pool(x, even, True)  # type: ignore[no-any-return]
    flat = np.arange(math.prod(x.shape[outer:])).reshape(x.shape[outer:])
    index = _ops.broadcast_to(Tensor(flat), list(x.shape))
    # The last dimension first: among equal elements the first in row-major order is kept.
    for axis in range(x.ndim - 1, outer - 1, -1):
        number = numbers[axis - outer]
        if number is None or number == x.shape[axis]:
            continue
        parts, _, _ = _adaptive(x, axis, number)
        places, _, _ = _adaptive(index, axis, number)
        x, index = largest_with_index(parts, places)
    return x, index


def unpool(x: Tensor, indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """Zeros of those last dimensions, with x's elements at the flat positions that indices name.

    Where a place is named twice, the last one in row-major order is kept.
    """
    outer = list(x.shape[: x.ndim - len(sizes)])
    rows, count, places = math.prod(outer), math.prod(sizes), math.prod(x.shape[len(outer) :])
    first = Tensor(np.arange(rows).reshape(-1, 1) * count)
    at = _ops.add(_ops.reshape(_ops.cast(indices, _core.int64), [rows, places]), first)
    zeros = _ops.full([rows * count], 0.0, x.dtype)
    out = replaced(zeros, _ops.reshape(at, [-1]), _ops.reshape(x, [-1]))
    return _ops.reshape(out, [*outer, *sizes])


# As functions -------------------------------------------------------------------------------------


def _max_pool(rank: int) -> Any:
    owner = f"max_pool{rank}d"

    @one_plan
    def function(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        t = arguments.of_rank(x, (rank + 1, rank + 2), owner)
        step = kernel_size if stride is None else stride
        axes = windows.axes_of(
            t, owner, kernel_size, step, "pad", padding, dilation, ceil_mode, rank
        )
        return max_pool(t, axes, return_indices)

    function.__name__ = function.__qualname__ = owner
    function.__doc__ = (
        f"The largest elements of windows over the last {windows.DIMENSIONS[rank]} of (N, C, ...) or "
        "(C, ...); with return_indices also their places in those dimensions flattened, int64. stride None: "
        "the kernel's size. ceil_mode: also windows that stick out."
    )
    return function


max_pool2d: Callable[..., Any] = _max_pool(2)
_max_pool3d = _max_pool(3)


def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest elements of windows over the last three dimensions of (N, C, ...); with
    return_indices also their places in those dimensions flattened, int64. stride None: the kernel's
    size. ceil_mode: also windows that stick out.

    kernel_size: the size of the window: a number, or one for each dimension. padding: how many
    elements are added at both ends of each dimension. dilation: the distance of neighbours within a
    window.
    """
    return _max_pool3d(x, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def _avg_pool(rank: int) -> Any:
    owner = f"avg_pool{rank}d"

    @one_plan
    def function(
        input_x: Any, kernel_size: Any = 1, stride: Any = 1, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int = 0,
    ) -> Tensor:  # fmt: skip
        t = arguments.of_rank(input_x, (rank + 1, rank + 2), owner)
        axes = windows.axes_of(t, owner, kernel_size, stride, "pad", padding, 1, ceil_mode, rank)
        return avg_pool(t, axes, count_include_pad, divisor_override or None)

    function.__name__ = function.__qualname__ = owner
    function.__doc__ = (
        f"The means of windows over the last {windows.DIMENSIONS[rank]} of (N, C, ...) or (C, ...), or their "
        "sums over divisor_override. count_include_pad: zeros of the padding count."
    )
    return function


avg_pool1d: Callable[..., Tensor]
avg_pool2d: Callable[..., Tensor]
avg_pool3d: Callable[..., Tensor]
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(rank) for rank in (1, 2, 3))


def lp_norms(x: Tensor, p: float, axes: Sequence[windows.Axis]) -> Tensor:
    """(the sum of x^p over each window)^(1 / p); of a window that sticks out, the mean of the elements
    that are there stands for each of the others, as in MindSpore and PyTorch."""
    mean = avg_pool(_ops.pow(x, p), axes, True, None)
    return _ops.pow(_ops.mul(mean, math.prod(a.kernel for a in axes)), 1.0 / p)


def _lp_pool(rank: int) -> Any:
    owner = f"lp_pool{rank}d"

    @one_plan
    def function(
        x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        t = arguments.of_rank(x, (rank + 1, rank + 2), owner)
        p = arguments.number(norm_type, owner, "norm_type")
        if p == 0:
            bad_value(f"For '{owner}', the 'norm_type' must not be 0.")
        step = kernel_size if stride is None else stride
        axes = windows.axes_of(t, owner, kernel_size, step, "pad", 0, 1, ceil_mode, rank)
        return lp_norms(t, p, axes)

    function.__name__ = function.__qualname__ = owner
    function.__doc__ = (
        "(the sum of x^norm_type over each window)^(1 / norm_type), of windows over the last "
        f"{windows.DIMENSIONS[rank]} of (N, C, ...) or (C, ...). stride None: the kernel's size. ceil_mode: "
        "also windows that stick out, in which the mean of what is there stands for each of the others.\n\n"
        "    norm_type: the power, not 0."
    )
    return function


lp_pool1d: Callable[..., Tensor] = _lp_pool(1)
lp_pool2d: Callable[..., Tensor] = _lp_pool(2)


def _numbers(output_size: Any, rank: int) -> list[Any]:
    return list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * rank


def _adaptive_pool(rank: int, mean: bool) -> Any:
    owner = f"adaptive_{'avg' if mean else 'max'}_pool{rank}d"

    @one_plan
    def average(input: Any, output_size: Any) -> Tensor:
        t = arguments.of_rank(input, (rank + 1, rank + 2), owner)
        return adaptive_avg_pool(t, _numbers(output_size, rank))

    @one_plan
    def largest(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        t = arguments.of_rank(input, (rank + 1, rank + 2), owner)
        out, index = adaptive_max_pool(t, _numbers(output_size, rank))
        return (out, index) if return_indices else out

    function: Any = average if mean else largest
    function.__name__ = function.__qualname__ = owner
    function.__doc__ = (
        f"The {'means' if mean else 'largest elements'} of as many windows over the last "
        f"{windows.DIMENSIONS[rank]} as output_size says; None keeps a dimension as it is."
    )
    return function


adaptive_avg_pool1d: Callable[..., Tensor]
adaptive_avg_pool2d: Callable[..., Tensor]
adaptive_avg_pool3d: Callable[..., Tensor]
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _adaptive_pool(r, True) for r in (1, 2, 3)
)
adaptive_max_pool1d: Callable[..., Any]
adaptive_max_pool2d: Callable[..., Any]
adaptive_max_pool3d: Callable[..., Any]
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive_pool(r, False) for r in (1, 2, 3)
)


def unpooled(
    x: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any, rank: int,
    owner: str,
) -> Tensor:  # fmt: skip
    """Zeros with the elements of x at their places."""
    t = arguments.of_rank(x, (rank + 1, rank + 2), owner)
    at = arguments.of_rank(indices, (t.ndim,), owner)
    if list(at.shape) != list(t.shape):
        bad_value(
            f"For '{owner}', the indices must have the input's shape {list(t.shape)}, but got "
            f"{list(at.shape)}."
        )
    if at.dtype.is_floating or at.dtype == _core.bool:
        bad_type(f"For '{owner}', the indices must be integers, but got {at.dtype}.")
    kernel = windows.sizes(kernel_size, rank, owner, "kernel_size")
    steps = windows.sizes(stride, rank, owner, "stride") if stride else kernel
    pads = windows.sizes(padding, rank, owner, "padding", 0)
    sizes = [
        (n - 1) * s - 2 * p + k
        for n, s, p, k in zip(t.shape[-rank:], steps, pads, kernel, strict=True)
    ]
    return unpool(t, at, list(output_size)[-rank:] if output_size else sizes)


def _unpool(rank: int, images: str) -> Any:
    name = f"max_unpool{rank}d"

    def function(
        x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:  # fmt: skip
        return unpooled(x, indices, kernel_size, stride, padding, output_size, rank, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The opposite of a max pool of {images} with return_indices: its elements at their places among "
        "zeros.\n\n    stride None: kernel_size. output_size: of the result, where several are possible. "
        "Raises ValueError for incompatible shapes, IndexError for places that are not there."
    )
    return function


max_unpool1d: Callable[..., Tensor] = _unpool(1, "(N, C, L)")
max_unpool2d: Callable[..., Tensor] = _unpool(2, "images (N, C, H, W)")
max_unpool3d: Callable[..., Tensor] = _unpool(3, "volumes (N, C, D, H, W)")
