"""Poolings and convolutions in the forms of MindSpore's functions and primitives: kernel sizes, strides
and paddings as they are spelled there, over ops.pooling and ops.convolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.errors import bad_type, bad_value
from gradcell.ops.networks import convolution, interpolation, pooling, windows
from gradcell.ops.one_plan import one_plan

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip

_ops = _core.ops


def _last(values: Any, rank: int, owner: str, name: str) -> tuple[int, ...]:
    """The numbers of the windowed dimensions; of four also those of batch and channels are taken."""
    if isinstance(values, (tuple, list)) and len(values) == rank + 2:
        values = tuple(values)[2:]
    return windows.sizes(values, rank, owner, name)


def axes_of(
    x: Tensor, owner: str, kernel: Any, stride: Any, pad_mode: str, padding: Any = 0,
    dilation: Any = 1, ceil_mode: bool = False,
) -> list[windows.Axis]:  # fmt: skip
    """How windows move along all dimensions behind the channels."""
    rank = x.ndim - 2
    mode = arguments.one_of(str(pad_mode).lower(), ("valid", "same", "pad"), owner, "pad_mode")
    steps = zip(
        x.shape[2:], _last(kernel, rank, owner, "kernel_size"), _last(stride, rank, owner, "stride"),
        _last(dilation, rank, owner, "dilation"), windows.margins(padding, rank, owner), strict=True,
    )  # fmt: skip
    return [windows.axis(owner, n, k, s, d, mode, p, ceil_mode) for n, k, s, d, p in steps]


def _channels(x: Any, owner: str, ranks: Sequence[int], data_format: str) -> Tensor:
    """The tensor with its channels second."""
    t = arguments.of_rank(x, ranks, owner)
    arguments.one_of(data_format, ("NCHW", "NHWC", "NCDHW"), owner, "data_format")
    return _ops.transpose(t, [0, 3, 1, 2]) if data_format == "NHWC" else t


def _back(x: Tensor, data_format: str) -> Tensor:
    return _ops.transpose(x, [0, 2, 3, 1]) if data_format == "NHWC" else x


# Primitives' forms ----------------------------------------------------------------------------------


@one_plan
def pooled(
    x: Any, *, owner: str, rank: int, mean: bool, kernel_size: Any, strides: Any, pad_mode: str,
    padding: Any = 0, data_format: str = "NCHW", ceil_mode: Any = False, count_padding: bool = False,
    divisor: int = 0,
) -> Tensor:  # fmt: skip
    """The largest elements, or means, of windows over the last dimensions."""
    t = _channels(x, owner, (rank + 2,), data_format)
    axes = axes_of(t, owner, kernel_size, strides, pad_mode, padding, ceil_mode=bool(ceil_mode))
    if mean:
        return _back(pooling.avg_pool(t, axes, count_padding, divisor or None), data_format)
    return _back(pooling.max_pool(t, axes, False), data_format)


@one_plan
def max_pool_with_argmax(
    x: Any, *, kernel_size: Any, strides: Any, pad_mode: str, data_format: str
) -> tuple[Tensor, Tensor]:
    """(the largest elements of windows, their places in each image's flattened channels, int32)."""
    t = _channels(x, "MaxPoolWithArgmax", (4,), data_format)
    out, index = pooling.max_pool(
        t, axes_of(t, "MaxPoolWithArgmax", kernel_size, strides, pad_mode), True
    )
    first = _ops.mul(_ops.iota(list(index.shape), _core.int64, 1), t.shape[2] * t.shape[3])
    index = _ops.cast(_ops.add(index, first), _core.int32)
    return _back(out, data_format), _back(index, data_format)


def convolved(
    x: Any, weight: Any, *, rank: int, out_channel: int, kernel_size: Any, mode: int, pad_mode: str,
    pad: Any, stride: Any, dilation: Any, group: int, data_format: str,
) -> Tensor:  # fmt: skip
    """A convolution over the last dimensions, of x and weight (out_channel, channels / group, ...)."""
    owner = f"Conv{rank}D"
    t = _channels(x, owner, (rank + 2,), data_format)
    w = _channels(weight, owner, (rank + 2,), data_format)
    sizes = windows.sizes(kernel_size, rank, owner, "kernel_size")
    if list(w.shape[2:]) != list(sizes) or w.shape[0] != out_channel:
        bad_value(
            f"For '{owner}', the weight must have {out_channel} output channels and a kernel of "
            f"{list(sizes)}, but got shape {list(w.shape)}"
        )
    function: Any = (convolution.conv1d, convolution.conv2d, convolution.conv3d)[rank - 1]
    steps = [_last(v, rank, owner, n) for v, n in ((stride, "stride"), (dilation, "dilation"))]
    # A padding of zeros is allowed with every pad_mode.
    out = function(t, w, None, steps[0], pad_mode.lower(), pad, steps[1], group)
    return _back(out, data_format)


@one_plan
def convolved_back(
    out_backprop: Any, weight: Any, input_size: Any, *, out_channel: int, kernel_size: Any,
    pad_mode: str, pad: Any, pad_list: Any, mode: int, stride: Any, dilation: Any, group: int,
    data_format: str,
) -> Tensor:  # fmt: skip
    """The adjoint of Conv2D in its input, of shape input_size."""
    owner = "Conv2DBackpropInput"
    t, w = (
        _channels(out_backprop, owner, (4,), data_format),
        _channels(weight, owner, (4,), data_format),
    )
    sizes = arguments.integers(input_size, owner, "input_size")
    sizes = [sizes[i] for i in (0, 3, 1, 2)] if data_format == "NHWC" else sizes
    target = _ops.full(sizes, 0, t.dtype)
    axes = axes_of(target, owner, tuple(w.shape[2:]), stride, pad_mode, pad_list or pad, dilation)
    if [a.number for a in axes] != list(t.shape[2:]):
        bad_value(
            f"For '{owner}', an input of shape {sizes} does not give an output of shape {list(t.shape)}"
        )
    return _back(convolution.convolve_back(t, w, None, axes, group), data_format)


@one_plan
def resized(
    x: Any, size: Any, *, kind: str, align_corners: bool, half_pixel_centers: bool
) -> Tensor:
    """Images (N, C, H, W) of another size: 'nearest' or 'linear' between pixels."""
    owner = f"Resize {kind}"
    t = arguments.of_rank(x, (4,), owner)
    places = "half_pixel" if half_pixel_centers else "asymmetric"
    sizes = arguments.integers(size, owner, "size")
    if 0 in t.shape[2:]:
        bad_value(f"{owner}: images of shape {list(t.shape)} have no pixels")
    return interpolation.resize(t, sizes, kind, "align_corners" if align_corners else places)


# Functions' forms -----------------------------------------------------------------------------------


def _max_pool(rank: int) -> Any:
    owner = f"max_pool{rank}d"

    @one_plan
    def function(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        t = arguments.of_rank(x, (rank + 2,), owner)
        step = kernel_size if stride is None else stride
        axes = axes_of(t, owner, kernel_size, step, "pad", padding, dilation, ceil_mode)
        return pooling.max_pool(t, axes, return_indices)

    function.__name__ = function.__qualname__ = owner
    function.__doc__ = (
        f"The largest elements of windows over the last {windows.DIMENSIONS[rank]} of (N, C, ...); with "
        "return_indices also their places in those dimensions flattened, int64. stride None: the kernel's "
        "size. ceil_mode: also windows that stick out."
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
    size. ceil_mode: also windows that stick out."""
    return _max_pool3d(x, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def _avg_pool(rank: int) -> Any:
    owner = f"avg_pool{rank}d"

    @one_plan
    def function(
        input_x: Any, kernel_size: Any = 1, stride: Any = 1, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int = 0,
    ) -> Tensor:  # fmt: skip
        t = arguments.of_rank(input_x, (rank + 2,), owner)
        axes = axes_of(t, owner, kernel_size, stride, "pad", padding, 1, ceil_mode)
        return pooling.avg_pool(t, axes, count_include_pad, divisor_override or None)

    function.__name__ = function.__qualname__ = owner
    function.__doc__ = (
        f"The means of windows over the last {windows.DIMENSIONS[rank]} of (N, C, ...), or their sums over "
        "divisor_override. count_include_pad: zeros of the padding count."
    )
    return function


avg_pool1d: Callable[..., Tensor]
avg_pool2d: Callable[..., Tensor]
avg_pool3d: Callable[..., Tensor]
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(rank) for rank in (1, 2, 3))


def _numbers(output_size: Any, rank: int) -> list[Any]:
    return list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * rank


def _adaptive(rank: int, mean: bool) -> Any:
    owner = f"adaptive_{'avg' if mean else 'max'}_pool{rank}d"

    @one_plan
    def average(input: Any, output_size: Any) -> Tensor:
        t = arguments.of_rank(input, (rank + 1, rank + 2), owner)
        return pooling.adaptive_avg_pool(t, _numbers(output_size, rank))

    @one_plan
    def largest(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        t = arguments.of_rank(input, (rank + 1, rank + 2), owner)
        out, index = pooling.adaptive_max_pool(t, _numbers(output_size, rank))
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
    _adaptive(r, True) for r in (1, 2, 3)
)
adaptive_max_pool1d: Callable[..., Any]
adaptive_max_pool2d: Callable[..., Any]
adaptive_max_pool3d: Callable[..., Any]
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive(r, False) for r in (1, 2, 3)
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
    return pooling.unpool(t, at, list(output_size)[-rank:] if output_size else sizes)


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


def convolved_up(
    x: Any, weight: Any, *, in_channel: int, out_channel: int, kernel_size: Any, mode: int, pad_mode: str,
    pad: Any, stride: Any, dilation: Any, group: int, output_padding: Any, data_format: str,
) -> Tensor:  # fmt: skip
    """The adjoint of Conv3D in its input, as large as x and output_padding make it."""
    owner = "Conv3DTranspose"
    t, w = arguments.of_rank(x, (5,), owner), arguments.of_rank(weight, (5,), owner)
    kernel = windows.sizes(kernel_size, 3, owner, "kernel_size")
    steps, gaps = (_last(v, 3, owner, n) for v, n in ((stride, "stride"), (dilation, "dilation")))
    more = [output_padding] * 3 if isinstance(output_padding, int) else list(output_padding)[-3:]
    mode_of = pad_mode.lower()
    if any(more) and (mode_of != "pad" or any(m >= s for m, s in zip(more, steps, strict=True))):
        bad_value(
            f"For '{owner}', 'output_padding' must be below the stride, with pad_mode 'pad', but got "
            f"{output_padding} with {pad_mode!r} and a stride of {steps}"
        )
    sizes = []
    for n, k, s, d, m, p in zip(
        t.shape[2:], kernel, steps, gaps, more, windows.margins(pad, 3, owner), strict=True
    ):
        extent = d * (k - 1) + 1
        lengths = {"same": n * s, "valid": n * s + max(extent - s, 0)}
        sizes.append(lengths.get(mode_of, (n - 1) * s + extent + m - sum(p)))
    target = _ops.full([t.shape[0], w.shape[1] * group, *sizes], 0, t.dtype)
    axes = axes_of(target, owner, tuple(kernel), steps, pad_mode, pad, gaps)
    return convolution.convolve_back(t, w, None, axes, group)
