"""Convolution layers and their transposes, of one, two and three dimensions.

One class holds what they share; the mathematics is in gradcell.ops.networks.convolution.
"""

from __future__ import annotations

import math
from dataclasses import InitVar
from typing import Any, ClassVar

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, fields, publish
from gradcell.common.initializer import HeUniform, Uniform, initializer
from gradcell.nn.cell import Layer
from gradcell.ops.networks import windows
from gradcell.ops.networks.convolution import convolve, convolve_back
from gradcell.tensors.parameter import Parameter

_FORMATS = {1: "NCL", 2: "NCHW", 3: "NCDHW"}


class _Convolution(Layer):
    """Base class of all convolutions. One dimension is kept as two, of which the first has size 1."""

    rank: ClassVar[int]
    transposed: ClassVar[bool] = False
    padding: Any
    weight_init: Any
    bias_init: Any

    def _build(self, dtype: _core.DType | None, data_format: str | None = None) -> None:
        owner = type(self).__name__
        if self.in_channels % self.group or self.out_channels % self.group:
            bad_value(
                "The argument 'group' should be divisible by 'in_channels' and 'out_channels', but got "
                f"group:{self.group}, in_channels:{self.in_channels}, out_channels:{self.out_channels}."
            )
        for name in ("kernel_size", "stride", "dilation"):
            setattr(self, name, self._sizes(name, getattr(self, name)))
        self._padding = self._margins(self.padding)
        windows.no_padding(owner, map(any, self._padding), self.padding, self.pad_mode)
        if self.rank == 1:
            self.padding = tuple(n for pair in self._padding for n in pair)
        self.data_format: str = data_format or _FORMATS[self.rank]
        arguments.one_of(self.data_format, [_FORMATS[self.rank]], owner, "data_format")
        self._start(dtype)

    def _start(self, dtype: _core.DType | None) -> None:
        """The parameters."""
        weight_init, bias_init = self.weight_init, self.bias_init
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        shape = (first, second // self.group, *self.kernel_size)
        if weight_init is None:
            weight_init = HeUniform(math.sqrt(5))
        if self.rank == 1 and isinstance(weight_init, Tensor) and weight_init.ndim == 3:
            weight_init = _ops.reshape(weight_init, list(shape))
        self.weight: Parameter = Parameter(initializer(weight_init, shape, dtype), name="weight")
        self.bias: Any = None
        if self.has_bias:
            if bias_init is None:
                bias_init = Uniform(1 / math.sqrt(math.prod(shape[1:])))
            start = initializer(bias_init, (self.out_channels,), dtype)
            self.bias = Parameter(start, name="bias")
        self.weight_init, self.bias_init = weight_init, bias_init

    def _sizes(self, name: str, value: Any) -> tuple[int, ...]:
        owner = type(self).__name__
        if self.rank == 1:
            return (1, arguments.integer(value, owner, name, 1))
        return windows.sizes(value, self.rank, owner, name)

    def _margins(self, padding: Any) -> list[tuple[int, int]]:
        owner, count = type(self).__name__, 2 * self.rank
        if isinstance(padding, (tuple, list)) and len(padding) != count:
            bad_value(
                f"For '{owner}', a tuple 'padding' must have {count} elements, but got {padding}."
            )
        found = windows.margins(padding, self.rank, owner)
        return [(0, 0), *found] if self.rank == 1 else found

    def construct(self, x: Tensor) -> Tensor:
        owner = type(self).__name__
        x = arguments.of_rank(x, [self.rank + 2], owner)
        if x.shape[1] != self.in_channels:
            bad_value(
                f"For '{owner}', the input must have in_channels {self.in_channels} channels, but got shape "
                f"{list(x.shape)}."
            )
        weight, bias = self.weight, self.bias if self.has_bias else None
        arguments.same_dtype(x, weight, owner)
        if self.rank == 1:
            x = _ops.reshape(x, [*x.shape[:2], 1, x.shape[2]])
        axes = [self._axis(size, i) for i, size in enumerate(x.shape[2:])]
        out = (convolve_back if self.transposed else convolve)(x, weight, bias, axes, self.group)
        return _ops.reshape(out, [*out.shape[:2], out.shape[3]]) if self.rank == 1 else out

    def _axis(self, size: int, i: int) -> windows.Axis:
        k, s, d = self.kernel_size[i], self.stride[i], self.dilation[i]
        return windows.axis(type(self).__name__, size, k, s, d, self.pad_mode, self._padding[i])

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}, "
            f"padding={self.padding}, dilation={self.dilation}, group={self.group}, "
            f"has_bias={self.has_bias}, weight_init={_short(self.weight_init)}, "
            f"bias_init={_short(self.bias_init)}, format={_FORMATS[max(self.rank, 2)]}"
        )


def _short(init: Any) -> str:
    return f"Tensor{list(init.shape)}" if isinstance(init, Tensor) else str(init)


@fields.declared
class _First(_Convolution):
    """The arguments that all begin with."""

    in_channels: int = fields.integer(1)
    out_channels: int = fields.integer(1)
    kernel_size: Any = fields.anything()
    stride: Any = fields.anything(default=1)
    pad_mode: str = fields.one_of("valid", "same", "pad", default="same")
    padding: Any = fields.anything(default=0)


@fields.declared
class _Usual(_First):
    """The arguments that follow in most."""

    dilation: Any = fields.anything(default=1)
    group: int = fields.integer(1, default=1)
    has_bias: bool = fields.boolean(default=False)
    weight_init: Any = fields.anything(default=None)
    bias_init: Any = fields.anything(default=None)


@fields.declared
class Conv1d(_Usual, rank=1):
    """A one-dimensional convolution (cross-correlation). Arguments are those of Conv2d.

    kernel_size, stride, dilation: an int. padding: an int or (before, after), for 'pad' only.

    Input (N, in_channels, L), output (N, out_channels, length). Parameters: weight (out_channels,
    in_channels / group, 1, kernel_size), bias (out_channels,). Raises as Conv2d does.
    """

    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)


@fields.declared
class _Plain(_Usual):
    """Base class of Conv2d and Conv3d."""

    data_format: InitVar[str | None] = fields.anything(default=None)
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)


class Conv2d(_Plain, rank=2):
    """A two-dimensional convolution (cross-correlation).

    out[n, o, i, j] = bias[o] + sum over c, u, v of
    weight[o, c, u, v] x[n, c, i * stride + u * dilation, j * stride + v * dilation], x padded.

    kernel_size, stride, dilation: an int or (rows, columns). pad_mode: 'same' (output ceil(size /
    stride)), 'valid' or 'pad'; padding: an int or (top, bottom, left, right), for 'pad' only.
    group: input and output channels fall into that many separate convolutions. weight_init,
    bias_init: anything that `initializer` takes; by default uniform within ±1/sqrt(fan_in).

    Input (N, in_channels, H, W), output (N, out_channels, rows, columns), of the parameters' dtype.
    Parameters: weight (out_channels, in_channels / group, rows, columns), bias (out_channels,).

    Raises TypeError for arguments of a wrong type or an input of another dtype, ValueError for
    values out of range, incompatible channel counts, or a kernel larger than the padded input.
    """


class Conv3d(_Plain, rank=3):
    """A three-dimensional convolution (cross-correlation). Arguments are those of Conv2d.

    kernel_size, stride, dilation: an int or (depth, rows, columns). padding: an int or six numbers,
    (head, tail, top, bottom, left, right), for 'pad' only.

    Input (N, in_channels, D, H, W), output (N, out_channels, depth, rows, columns). Parameters:
    weight (out_channels, in_channels / group, depth, rows, columns), bias (out_channels,). Raises
    as Conv2d does.
    """


class _Transposed(_First):
    """A convolution's adjoint in its input. `output_padding` zeros stand behind the result."""

    transposed = True

    _added: tuple[int, ...] = ()

    output_padding: Any

    def _build(self, dtype: _core.DType | None, data_format: str | None = None) -> None:
        super()._build(dtype, data_format)
        if self.rank > 1:
            self._pad_output(self.output_padding)

    def _pad_output(self, output_padding: Any) -> None:
        owner = type(self).__name__
        self._added = windows.sizes(output_padding, self.rank, owner, "output_padding", 0)
        for n, s, d in zip(self._added, self.stride, self.dilation, strict=True):
            if n >= max(s, d):
                bad_value(
                    f"For '{owner}', 'output_padding' must be in range of [0, max(stride, dilation)), but "
                    f"got {output_padding}."
                )
        if any(self._added) and self.pad_mode != "pad":
            bad_value(
                f"For '{owner}', when 'output_padding' is not zero, 'pad_mode' must be 'pad', but got "
                f"{self.pad_mode!r}."
            )

    def _axis(self, size: int, i: int) -> windows.Axis:
        """The axis, along the result, of the convolution that this is the adjoint of."""
        k, s, d = self.kernel_size[i], self.stride[i], self.dilation[i]
        extent, (before, after) = (k - 1) * d + 1, self._padding[i]
        if self.pad_mode == "same":
            length = size * s
        elif self.pad_mode == "valid":
            length = size * s + max(extent - s, 0)
        else:
            length = (size - 1) * s + extent - before - after
        if length < 1:
            bad_value(
                f"For '{type(self).__name__}', an input of size {size} with kernel size {k}, stride {s}, "
                f"dilation {d} and padding {before} and {after} has no output."
            )
        return super()._axis(length, i)._replace(number=size)

    def construct(self, x: Tensor) -> Tensor:
        out = super().construct(x)
        if any(self._added):
            dims = [n + more for n, more in zip(out.shape, (0, 0, *self._added), strict=True)]
            out = _ops.slice_scatter(out, dims, [0] * out.ndim, [1] * out.ndim)
        return out


@fields.declared
class Conv2dTranspose(_Transposed, rank=2):
    """The adjoint of Conv2d in its input ("deconvolution"). Arguments are those of Conv2d.

    pad_mode: 'same', for an output of size * stride; 'valid', of size * stride + max(extent -
    stride, 0), where extent = (kernel_size - 1) * dilation + 1; 'pad', of (size - 1) * stride +
    extent - padding + output_padding. output_padding: zeros at the end of each dimension, for 'pad'
    only.

    Input (N, in_channels, H, W), output (N, out_channels, rows, columns). Parameters: weight
    (in_channels, out_channels / group, rows, columns), bias (out_channels,). Raises as Conv2d does,
    ValueError also for an output_padding of max(stride, dilation) or more.
    """

    output_padding: Any = fields.anything(default=0)
    dilation: Any = fields.anything(default=1)
    group: int = fields.integer(1, default=1)
    has_bias: bool = fields.boolean(default=False)
    weight_init: Any = fields.anything(default=None)
    bias_init: Any = fields.anything(default=None)
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)


@fields.declared
class Conv1dTranspose(_Transposed, _Usual, rank=1):
    """The adjoint of Conv1d in its input. Arguments are those of Conv2dTranspose.

    kernel_size, stride, dilation: an int. padding: an int or (before, after), for 'pad' only.

    Input (N, in_channels, L), output (N, out_channels, length). Parameters: weight (in_channels,
    out_channels / group, 1, kernel_size), bias (out_channels,). Raises as Conv2d does.
    """

    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)


@fields.declared
class Conv3dTranspose(_Transposed, rank=3):
    """The adjoint of Conv3d in its input. Arguments are those of Conv2dTranspose.

    kernel_size, stride, dilation: an int or (depth, rows, columns). padding: an int or six numbers,
    (head, tail, top, bottom, left, right), for 'pad' only.

    Input (N, in_channels, D, H, W), output (N, out_channels, depth, rows, columns). Parameters:
    weight (in_channels, out_channels / group, depth, rows, columns), bias (out_channels,). Raises
    as Conv2dTranspose does.
    """

    dilation: Any = fields.anything(default=1)
    group: int = fields.integer(1, default=1)
    output_padding: Any = fields.anything(default=0)
    has_bias: bool = fields.boolean(default=False)
    weight_init: Any = fields.anything(default=None)
    bias_init: Any = fields.anything(default=None)
    data_format: InitVar[str | None] = fields.anything(default="NCDHW")
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)


publish(globals())
