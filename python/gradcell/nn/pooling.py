"""Poolings: the largest or the mean element of each window, over one slice a kernel position."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell._core import ops as _ops
from gradcell._location import where
from gradcell.nn import windows
from gradcell.nn.cell import Cell


class _Pool(Cell):
    """What poolings share. Sizes are (rows, columns)."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any,
        pad_mode: str,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self._kernel = windows.pair(owner, "kernel_size", kernel_size)
        self._stride = windows.pair(owner, "stride", stride)
        self._dilation = windows.pair(owner, "dilation", dilation)
        self._padding = windows.pair(owner, "padding", padding, least=0)
        mode = pad_mode.upper() if isinstance(pad_mode, str) else pad_mode
        self.pad_mode = arguments.one_of(mode, ["VALID", "SAME", "PAD"], owner, "pad_mode")
        self.ceil_mode = arguments.boolean(ceil_mode, owner, "ceil_mode")
        if mode != "PAD" and any(self._padding):
            raise ValueError(
                f"For '{owner}', the 'padding' must be zero when 'pad_mode' is not 'pad', but got "
                f"'padding': {padding} and 'pad_mode': {pad_mode}.{where()}"
            )
        if any(2 * p > k for p, k in zip(self._padding, self._kernel, strict=True)):
            raise ValueError(
                f"For '{owner}', the 'padding' must be at most half of 'kernel_size', but got "
                f"'padding': {padding} and 'kernel_size': {kernel_size}.{where()}"
            )

    def _axes(self, x: Tensor) -> tuple[windows.Axis, windows.Axis]:
        made = [
            windows.axis(
                type(self).__name__,
                x.shape[i - 2],
                self._kernel[i],
                self._stride[i],
                self._dilation[i],
                self.pad_mode.lower(),
                (self._padding[i], self._padding[i]),
                self.ceil_mode and self.pad_mode != "SAME",
            )
            for i in range(2)
        ]
        return made[0], made[1]

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


def _largest(parts: list[Tensor]) -> Tensor:
    """The elementwise maximum; among equal ones the first takes the gradient, NaN wins."""
    best = parts[0]
    for part in parts[1:]:
        best = _ops.where(_beats(part, best), part, best)
    return best


def _beats(part: Tensor, best: Tensor) -> Tensor:
    return _ops.logical_or(_ops.greater(part, best), _ops.isnan(part))


class _MaxPool(_Pool):
    return_indices = False

    def _pool(self, x: Tensor) -> Any:
        rows, columns = self._axes(x)
        parts = windows.taps(windows.pad(x, rows, columns, -np.inf), rows, columns)
        if not self.return_indices:
            return _largest(parts)
        best, index = parts[0], _ops.full(list(parts[0].shape), 0, _core.int64)
        places = self._places(rows, columns)
        index = _ops.add(index, Tensor(places[0]))
        for part, place in zip(parts[1:], places[1:], strict=True):
            wins = _beats(part, best)
            best = _ops.where(wins, part, best)
            index = _ops.where(wins, Tensor(place), index)
        return best, index

    @staticmethod
    def _places(rows: windows.Axis, columns: windows.Axis) -> list[np.ndarray]:
        """For each kernel position, where in the flat image each window's element lies."""
        i = np.arange(rows.number) * rows.stride - rows.before
        j = np.arange(columns.number) * columns.stride - columns.before
        return [
            (i[:, None] + u * rows.dilation) * columns.size + j + v * columns.dilation
            for u in range(rows.kernel)
            for v in range(columns.kernel)
        ]


class MaxPool2d(_MaxPool):
    """The largest element of each window.

    kernel_size, stride, dilation, padding: an int or (rows, columns). pad_mode: 'valid', 'same' or
    'pad' (padding, with minus infinity, for 'pad' only and at most half the kernel). ceil_mode:
    also windows that stick out at the end. return_indices: also the places in the flattened H x W,
    int64.

    Input (N, C, H, W) or (C, H, W), any floating dtype; output of the same rank and dtype. Among
    equal elements the first takes the gradient.

    Raises TypeError for arguments of a wrong type, ValueError for values or shapes that do not fit.
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, ceil_mode)
        arguments.one_of(data_format, ["NCHW"], "MaxPool2d", "data_format")
        self.return_indices = arguments.boolean(return_indices, "MaxPool2d", "return_indices")

    def construct(self, x: Tensor) -> Any:
        return self._pool(arguments.of_rank(x, [3, 4], "MaxPool2d"))


class MaxPool1d(_MaxPool):
    """The largest element of each window along the last dimension. Arguments as for MaxPool2d.

    Input (N, C, L) or (C, L), output of the same rank and dtype.
    """

    def __init__(
        self,
        kernel_size: int = 1,
        stride: int = 1,
        pad_mode: str = "valid",
        padding: int = 0,
        dilation: int = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        arguments.integer(kernel_size, "MaxPool1d", "kernel_size", 1)
        arguments.integer(stride, "MaxPool1d", "stride", 1)
        arguments.integer(padding, "MaxPool1d", "padding", 0)
        arguments.integer(dilation, "MaxPool1d", "dilation", 1)
        super().__init__(
            (1, kernel_size), (1, stride), pad_mode, (0, padding), (1, dilation), ceil_mode
        )
        self.return_indices = arguments.boolean(return_indices, "MaxPool1d", "return_indices")

    def construct(self, x: Tensor) -> Any:
        arguments.of_rank(x, [2, 3], "MaxPool1d")
        out = self._pool(_ops.reshape(x, [*x.shape[:-1], 1, x.shape[-1]]))
        if self.return_indices:
            return tuple(_without_rows(part) for part in out)
        return _without_rows(out)


def _without_rows(x: Tensor) -> Tensor:
    return _ops.reshape(x, [*x.shape[:-2], x.shape[-1]])


class _AvgPool(_Pool):
    count_include_pad = True
    divisor_override: int | None = None

    def _pool(self, x: Tensor) -> Tensor:
        rows, columns = self._axes(x)
        parts = windows.taps(windows.pad(x, rows, columns, 0), rows, columns)
        total = parts[0]
        for part in parts[1:]:
            total = _ops.add(total, part)
        return self._divide(total, rows, columns)

    def _divide(self, total: Tensor, rows: windows.Axis, columns: windows.Axis) -> Tensor:
        if self.divisor_override is not None:
            return _ops.div(total, self.divisor_override)
        with_padding = self.count_include_pad and self.pad_mode == "PAD"
        counts = np.multiply.outer(rows.covered(with_padding), columns.covered(with_padding))
        if counts.size and (counts == counts.flat[0]).all():
            return _ops.mul(total, 1 / float(counts.flat[0]))
        return _ops.mul(total, Tensor(1 / counts, total.dtype))


class AvgPool2d(_AvgPool):
    """The mean of each window.

    kernel_size, stride, padding: an int or (rows, columns). pad_mode: 'valid', 'same' or 'pad'
    (padding, with zeros, for 'pad' only and at most half the kernel). ceil_mode: also windows that
    stick out at the end. count_include_pad: whether the zeros of 'pad' count. divisor_override:
    divides each sum by this instead.

    Input (N, C, H, W) or (C, H, W), any floating dtype; output of the same rank and dtype.

    Raises TypeError for arguments of a wrong type, ValueError for values or shapes that do not fit.
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, 1, ceil_mode)
        arguments.one_of(data_format, ["NCHW"], "AvgPool2d", "data_format")
        self.count_include_pad = arguments.boolean(
            count_include_pad, "AvgPool2d", "count_include_pad"
        )
        if divisor_override is not None:
            arguments.integer(divisor_override, "AvgPool2d", "divisor_override", 1)
        self.divisor_override = divisor_override

    def construct(self, x: Tensor) -> Tensor:
        return self._pool(arguments.of_rank(x, [3, 4], "AvgPool2d"))


class AvgPool1d(_AvgPool):
    """The mean of each window along the last dimension. Arguments as for AvgPool2d.

    Input (N, C, L) or (C, L), output of the same rank and dtype.
    """

    def __init__(
        self,
        kernel_size: int = 1,
        stride: int = 1,
        pad_mode: str = "valid",
        padding: int = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        arguments.integer(kernel_size, "AvgPool1d", "kernel_size", 1)
        arguments.integer(stride, "AvgPool1d", "stride", 1)
        arguments.integer(padding, "AvgPool1d", "padding", 0)
        super().__init__((1, kernel_size), (1, stride), pad_mode, (0, padding), 1, ceil_mode)
        self.count_include_pad = arguments.boolean(
            count_include_pad, "AvgPool1d", "count_include_pad"
        )

    def construct(self, x: Tensor) -> Tensor:
        arguments.of_rank(x, [2, 3], "AvgPool1d")
        return _without_rows(self._pool(_ops.reshape(x, [*x.shape[:-1], 1, x.shape[-1]])))
