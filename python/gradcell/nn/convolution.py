"""Convolutions: the windows laid out as the columns of one matrix, times the weights."""

from __future__ import annotations

import math
from typing import Any

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell._core import ops as _ops
from gradcell._location import where
from gradcell.common.initializer import HeUniform, Uniform, initializer
from gradcell.nn import windows
from gradcell.nn.cell import Cell
from gradcell.parameter import Parameter


class _Convolution(Cell):
    """What Conv1d and Conv2d share. Sizes are (rows, columns); padding top, bottom, left, right."""

    weight: Parameter

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, int],
        stride: tuple[int, int],
        pad_mode: str,
        padding: tuple[int, int, int, int],
        dilation: tuple[int, int],
        group: int,
        has_bias: bool,
        weight_init: Any,
        bias_init: Any,
        dtype: _core.DType,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.in_channels = arguments.integer(in_channels, owner, "in_channels", 1)
        self.out_channels = arguments.integer(out_channels, owner, "out_channels", 1)
        self.group = arguments.integer(group, owner, "group", 1)
        if in_channels % group or out_channels % group:
            raise ValueError(
                "The argument 'group' should be divisible by 'in_channels' and 'out_channels', but "
                f"got group:{group}, in_channels:{in_channels}, out_channels:{out_channels}."
                f"{where()}"
            )
        self.kernel_size, self.stride, self.dilation = kernel_size, stride, dilation
        self.pad_mode = arguments.one_of(pad_mode, ["valid", "same", "pad"], owner, "pad_mode")
        self._padding = padding
        if pad_mode != "pad" and any(padding):
            raise ValueError(
                f"For '{owner}', the 'padding' must be zero when 'pad_mode' is not 'pad', but got "
                f"'padding': {padding} and 'pad_mode': {pad_mode}.{where()}"
            )
        self.has_bias = arguments.boolean(has_bias, owner, "has_bias")
        arguments.floating_dtype(dtype, owner)
        if weight_init is None:
            weight_init = HeUniform(math.sqrt(5))
        shape = (out_channels, in_channels // group, *kernel_size)
        self.weight = Parameter(initializer(weight_init, shape, dtype), name="weight")
        self.bias: Any = None
        if has_bias:
            if bias_init is None:
                bias_init = Uniform(1 / math.sqrt(math.prod(shape[1:])))
            self.bias = Parameter(initializer(bias_init, (out_channels,), dtype), name="bias")
        self.weight_init, self.bias_init = weight_init, bias_init

    def _convolve(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, O, rows, columns)."""
        owner = type(self).__name__
        weight = self.weight
        arguments.same_dtype(x, weight, owner)
        n, channels, h, w = x.shape
        if channels != self.in_channels:
            raise ValueError(
                f"For '{owner}', the input must have in_channels {self.in_channels} channels, but "
                f"got {channels}.{where()}"
            )
        steps = list(zip(self.kernel_size, self.stride, self.dilation, strict=True))
        p = self._padding
        rows = windows.axis(owner, h, *steps[0], self.pad_mode, (p[0], p[1]))
        columns = windows.axis(owner, w, *steps[1], self.pad_mode, (p[2], p[3]))
        product = self._product(windows.pad(x, rows, columns, 0), weight, rows, columns)
        out = _ops.reshape(product, [self.out_channels, n, rows.number, columns.number])
        if self.has_bias:
            out = _ops.add(out, _ops.reshape(self.bias, [-1, 1, 1, 1]))
        return _ops.transpose(out, [1, 0, 2, 3])

    def _product(
        self, x: Tensor, weight: Tensor, rows: windows.Axis, columns: windows.Axis
    ) -> Tensor:
        # Channels first, so that the windows of all images are columns of one matrix and the
        # weights' gradient is one product too.
        n, channels, h, w = x.shape
        g = self.group
        features, outputs = channels // g, self.out_channels // g
        taps = rows.kernel * columns.kernel
        x = _ops.reshape(_ops.transpose(x, [1, 0, 2, 3]), [g, features, n, h, w])
        parts = windows.taps(x, rows, columns)
        matrix = _ops.concat(parts, 1) if taps > 1 else parts[0]
        matrix = _ops.reshape(matrix, [g, taps * features, n * rows.number * columns.number])
        kernel = _ops.reshape(weight, [g, outputs, features, taps])
        kernel = _ops.reshape(_ops.transpose(kernel, [0, 1, 3, 2]), [g, outputs, taps * features])
        if g == 1:
            matrix = _ops.reshape(matrix, list(matrix.shape[1:]))
            kernel = _ops.reshape(kernel, list(kernel.shape[1:]))
        return _ops.matmul(kernel, matrix)

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}, "
            f"padding={self.padding}, dilation={self.dilation}, group={self.group}, "
            f"has_bias={self.has_bias}, weight_init={_short(self.weight_init)}, "
            f"bias_init={_short(self.bias_init)}, format=NCHW"
        )


def _short(init: Any) -> str:
    return f"Tensor{list(init.shape)}" if isinstance(init, Tensor) else str(init)


def _four(owner: str, padding: Any) -> tuple[int, int, int, int]:
    if isinstance(padding, int) and not isinstance(padding, bool):
        padding = (padding,) * 4
    if not isinstance(padding, (tuple, list)):
        raise TypeError(
            f"For '{owner}', the type of 'padding' must be int or tuple, but got "
            f"{type(padding).__name__}.{where()}"
        )
    if len(padding) != 4:
        raise ValueError(
            f"For '{owner}', a tuple 'padding' must have 4 elements, but got {padding}.{where()}"
        )
    for item in padding:
        arguments.integer(item, owner, "padding", 0)
    return tuple(padding)  # type: ignore[return-value]


class Conv2d(_Convolution):
    """A two-dimensional convolution (cross-correlation).

    out[n, o, i, j] = bias[o] + sum over c, u, v of
    weight[o, c, u, v] x[n, c, i * stride + u * dilation, j * stride + v * dilation], x padded.

    kernel_size, stride, dilation: an int or (rows, columns). pad_mode: 'same' (output ceil(size /
    stride)), 'valid' or 'pad'; padding: an int or (top, bottom, left, right), for 'pad' only.
    group: input and output channels fall into so many separate convolutions. weight_init,
    bias_init: anything that `initializer` takes; by default uniform within ±1/sqrt(fan_in).

    Input (N, in_channels, H, W), output (N, out_channels, rows, columns), of the parameters' dtype.
    Parameters: weight (out_channels, in_channels / group, *kernel_size), bias (out_channels,).

    Raises TypeError for arguments of a wrong type or an input of another dtype, ValueError for
    values or input shapes that do not fit.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        pad_mode: str = "same",
        padding: int | tuple[int, int, int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCHW",
        dtype: _core.DType = _core.float32,
    ) -> None:
        arguments.one_of(data_format, ["NCHW"], "Conv2d", "data_format")
        super().__init__(
            in_channels,
            out_channels,
            windows.pair("Conv2d", "kernel_size", kernel_size),
            windows.pair("Conv2d", "stride", stride),
            pad_mode,
            _four("Conv2d", padding),
            windows.pair("Conv2d", "dilation", dilation),
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype,
        )
        self.padding = padding
        self.data_format = data_format

    def construct(self, x: Tensor) -> Tensor:
        return self._convolve(arguments.of_rank(x, [4], "Conv2d"))


class Conv1d(_Convolution):
    """A one-dimensional convolution (cross-correlation). Arguments as for Conv2d, all ints.

    Input (N, in_channels, L), output (N, out_channels, length). Parameters: weight (out_channels,
    in_channels / group, 1, kernel_size), bias (out_channels,). Raises as Conv2d does.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        pad_mode: str = "same",
        padding: int = 0,
        dilation: int = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: _core.DType = _core.float32,
    ) -> None:
        arguments.integer(padding, "Conv1d", "padding", 0)
        self.padding = (0, 0, padding, padding)
        if isinstance(weight_init, Tensor) and weight_init.ndim == 3:
            outputs, inputs, size = weight_init.shape
            weight_init = _ops.reshape(weight_init, [outputs, inputs, 1, size])
        super().__init__(
            in_channels,
            out_channels,
            (1, arguments.integer(kernel_size, "Conv1d", "kernel_size", 1)),
            (1, arguments.integer(stride, "Conv1d", "stride", 1)),
            pad_mode,
            (0, 0, padding, padding),
            (1, arguments.integer(dilation, "Conv1d", "dilation", 1)),
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype,
        )

    def construct(self, x: Tensor) -> Tensor:
        n, channels, length = arguments.of_rank(x, [3], "Conv1d").shape
        out = self._convolve(_ops.reshape(x, [n, channels, 1, length]))
        return _ops.reshape(out, [n, self.out_channels, out.shape[3]])
