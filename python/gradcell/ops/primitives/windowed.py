"""Poolings, convolutions and resizing as MindSpore's primitives spell them, kernel sizes, strides and
paddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcell._core import Tensor, int64, ops as _ops
from gradcell.base import arguments, bad_value, place_type
from gradcell.ops.decorators import one_plan
from gradcell.ops.networks import convolution, interpolation, pooling, windows


def _channels(x: Any, owner: str, ranks: Sequence[int], data_format: str) -> Tensor:
    """The tensor with its channels second."""
    t = arguments.of_rank(x, ranks, owner)
    arguments.one_of(data_format, ("NCHW", "NHWC", "NCDHW"), owner, "data_format")
    return _ops.transpose(t, [0, 3, 1, 2]) if data_format == "NHWC" else t


def _back(x: Tensor, data_format: str) -> Tensor:
    return _ops.transpose(x, [0, 2, 3, 1]) if data_format == "NHWC" else x


@one_plan
def pooled(
    x: Any, *, owner: str, rank: int, mean: bool, kernel_size: Any, strides: Any, pad_mode: str,
    padding: Any = 0, data_format: str = "NCHW", ceil_mode: Any = False, count_padding: bool = False,
    divisor: int = 0,
) -> Tensor:  # fmt: skip
    """The largest elements, or means, of windows over the last dimensions."""
    t = _channels(x, owner, (rank + 2,), data_format)
    axes = windows.axes_of(
        t, owner, kernel_size, strides, pad_mode, padding, ceil_mode=bool(ceil_mode)
    )
    if mean:
        return _back(pooling.avg_pool(t, axes, count_padding, divisor or None), data_format)
    return _back(pooling.max_pool(t, axes, False), data_format)


@one_plan
def max_pool_with_argmax(
    x: Any, *, kernel_size: Any, strides: Any, pad_mode: str, data_format: str
) -> tuple[Tensor, Tensor]:
    """(the largest elements of windows, their places in each image's flattened channels, int32)."""
    t = _channels(x, "MaxPoolWithArgmax", (4,), data_format)
    axes = windows.axes_of(t, "MaxPoolWithArgmax", kernel_size, strides, pad_mode)
    out, index = pooling.max_pool(t, axes, True)
    first = _ops.mul(_ops.iota(list(index.shape), int64, 1), t.shape[2] * t.shape[3])
    index = _ops.cast(_ops.add(index, first), place_type(t.size))
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
    steps = [
        windows.last_sizes(v, rank, owner, n)
        for v, n in ((stride, "stride"), (dilation, "dilation"))
    ]
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
    t, w = (_channels(x, owner, (4,), data_format) for x in (out_backprop, weight))
    sizes = arguments.integers(input_size, owner, "input_size")
    sizes = [sizes[i] for i in (0, 3, 1, 2)] if data_format == "NHWC" else sizes
    target = _ops.full(sizes, 0, t.dtype)
    around = pad_list or pad
    axes = windows.axes_of(target, owner, tuple(w.shape[2:]), stride, pad_mode, around, dilation)
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


def convolved_up(
    x: Any, weight: Any, *, in_channel: int, out_channel: int, kernel_size: Any, mode: int, pad_mode: str,
    pad: Any, stride: Any, dilation: Any, group: int, output_padding: Any, data_format: str,
) -> Tensor:  # fmt: skip
    """The adjoint of Conv3D in its input, as large as x and output_padding make it."""
    owner = "Conv3DTranspose"
    t, w = arguments.of_rank(x, (5,), owner), arguments.of_rank(weight, (5,), owner)
    kernel = windows.sizes(kernel_size, 3, owner, "kernel_size")
    steps = windows.last_sizes(stride, 3, owner, "stride")
    gaps = windows.last_sizes(dilation, 3, owner, "dilation")
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
    axes = windows.axes_of(target, owner, tuple(kernel), steps, pad_mode, pad, gaps)
    return convolution.convolve_back(t, w, None, axes, group)
