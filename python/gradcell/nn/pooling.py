"""Pooling layers of one, two and three dimensions: over fixed windows, adaptive ones, and back.

Each kind is one class with a rank; the mathematics is in gradcell.ops.networks.pooling.
"""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any, ClassVar

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, fields, place_type, publish
from gradcell.nn.cell import Layer
from gradcell.ops.networks import pooling, windows


class _Windowed(Layer):
    """Base class of poolings over fixed windows."""

    rank: ClassVar[int]

    def _build(
        self,
        kernel_size: Any,
        stride: Any,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> None:
        owner = type(self).__name__
        stride = kernel_size if stride is None else stride
        self._kernel = self._sizes("kernel_size", kernel_size)
        self._stride = self._sizes("stride", stride)
        self._dilation = self._sizes("dilation", dilation)
        self._padding = self._sizes("padding", padding, 0)
        self.kernel_size: Any = kernel_size
        self.stride: Any = stride
        self.padding: Any = padding
        if self.rank == 1:
            self.kernel_size, self.stride = (1, *self._kernel), (1, *self._stride)
        mode = pad_mode.upper() if isinstance(pad_mode, str) else pad_mode
        self.pad_mode: Any = arguments.one_of(mode, ["VALID", "SAME", "PAD"], owner, "pad_mode")
        self.ceil_mode: bool = arguments.boolean(ceil_mode, owner, "ceil_mode")
        windows.no_padding(owner, self._padding, padding, pad_mode)
        if any(2 * p > k for p, k in zip(self._padding, self._kernel, strict=True)):
            bad_value(
                f"For '{owner}', the 'padding' must be at most half of 'kernel_size', but got 'padding': "
                f"{padding} and 'kernel_size': {kernel_size}."
            )

    def _sizes(self, name: str, value: Any, least: int = 1) -> tuple[int, ...]:
        if isinstance(value, (tuple, list)) and len(value) == 1:
            value = value[0]
        if self.rank == 1:
            return (arguments.integer(value, type(self).__name__, name, least),)
        return windows.sizes(value, self.rank, type(self).__name__, name, least)

    def _axes(self, x: Tensor) -> list[windows.Axis]:
        owner, mode = type(self).__name__, self.pad_mode.lower()
        x = arguments.of_rank(x, [self.rank + 1, self.rank + 2], owner)
        parts = (x.shape[-self.rank :], self._kernel, self._stride, self._dilation, self._padding)
        ceil = self.ceil_mode and mode != "same"
        return [
            windows.axis(owner, n, k, s, d, mode, (p, p), ceil)
            for n, k, s, d, p in zip(*parts, strict=True)
        ]

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


@fields.declared
class _MaxPool(_Windowed):
    kernel_size: InitVar[Any] = fields.anything(default=1)
    stride: InitVar[Any] = fields.anything(default=1)
    pad_mode: InitVar[str] = fields.anything(default="valid")
    padding: InitVar[Any] = fields.anything(default=0)
    dilation: InitVar[Any] = fields.anything(default=1)
    return_indices: bool = fields.boolean(default=False)
    ceil_mode: InitVar[bool] = fields.anything(default=False)
    data_format: InitVar[str] = fields.one_of("NCHW", default="NCHW")

    def construct(self, x: Tensor) -> Any:
        return pooling.max_pool(x, self._axes(x), self.return_indices)


class MaxPool1d(_MaxPool, rank=1):
    """The largest element of each window along the last dimension. Arguments are those of MaxPool2d.

    kernel_size, stride, dilation, padding: an int; a stride of None is the kernel's size.

    Input (N, C, L) or (C, L), output of the same rank and dtype.
    """


class MaxPool2d(_MaxPool, rank=2):
    """The largest element of each window of an image.

    kernel_size, stride, dilation, padding: an int or (rows, columns); a stride of None is the
    kernel's size. pad_mode: 'valid', 'same' or 'pad' (padding, with minus infinity, for 'pad' only
    and at most half the kernel). ceil_mode: also windows that stick out at the end. return_indices:
    also the positions in the flattened H x W, int64.

    Input (N, C, H, W) or (C, H, W), any floating dtype; output of the same rank and dtype. Among
    equal elements the first takes the gradient.

    Raises TypeError for arguments of a wrong type, ValueError for invalid values or incompatible shapes.
    """


class MaxPool3d(_MaxPool, rank=3):
    """The largest element of each window. Arguments are those of MaxPool2d.

    kernel_size, stride, dilation, padding: an int or (depth, rows, columns); a stride of None is
    the kernel's size. return_indices: also the positions in the flattened D x H x W, int64.

    Input (N, C, D, H, W) or (C, D, H, W), output of the same rank and dtype.
    """


@fields.declared
class _AvgPool(_Windowed):
    kernel_size: InitVar[Any] = fields.anything(default=1)
    stride: InitVar[Any] = fields.anything(default=1)
    pad_mode: InitVar[str] = fields.anything(default="valid")
    padding: InitVar[Any] = fields.anything(default=0)
    ceil_mode: InitVar[bool] = fields.anything(default=False)
    count_include_pad: bool = fields.boolean(default=True)
    divisor_override: int | None = fields.integer(1, default=None)
    data_format: InitVar[str] = fields.one_of("NCHW", default="NCHW")

    def construct(self, x: Tensor) -> Tensor:
        # As in MindSpore, where in three dimensions the zeros of 'same' count too.
        modes = ("PAD", "SAME") if self.rank == 3 else ("PAD",)
        count_padding = self.count_include_pad and self.pad_mode in modes
        return pooling.avg_pool(x, self._axes(x), count_padding, self.divisor_override)


class AvgPool1d(_AvgPool, rank=1):
    """The mean of each window along the last dimension. Arguments are those of AvgPool2d.

    kernel_size, stride, padding: an int; a stride of None is the kernel's size.

    Input (N, C, L) or (C, L), output of the same rank and dtype.
    """


class AvgPool2d(_AvgPool, rank=2):
    """The mean of each window of an image.

    kernel_size, stride, padding: an int or (rows, columns); a stride of None is the kernel's size.
    pad_mode: 'valid', 'same' or 'pad' (padding, with zeros, for 'pad' only and at most half the
    kernel). ceil_mode: also windows that stick out at the end. count_include_pad: whether the zeros
    of 'pad' count. divisor_override: divides each sum by this instead.

    Input (N, C, H, W) or (C, H, W), any floating dtype; output of the same rank and dtype.

    Raises TypeError for arguments of a wrong type, ValueError for invalid values or incompatible shapes.
    """


class AvgPool3d(_AvgPool, rank=3):
    """The mean of each window. Arguments are those of AvgPool2d.

    kernel_size, stride, padding: an int or (depth, rows, columns); a stride of None is the kernel's
    size. count_include_pad: whether the zeros of 'pad' and of 'same' count.

    Input (N, C, D, H, W) or (C, D, H, W), output of the same rank and dtype.
    """


@fields.declared
class _LPPool(_Windowed):
    """(sum of x^p over the window)^(1 / p)."""

    norm_type: float = fields.number()
    kernel_size: InitVar[Any] = fields.anything()
    stride: InitVar[Any] = fields.anything(default=None)
    ceil_mode: InitVar[bool] = fields.anything(default=False)

    def _build(self, *args: Any, **given: Any) -> None:
        super()._build(*args, **given)
        if self.norm_type == 0:
            bad_value(f"For '{type(self).__name__}', the 'norm_type' must not be 0")

    def construct(self, x: Tensor) -> Tensor:
        return pooling.lp_norms(x, float(self.norm_type), self._axes(x))


class LPPool1d(_LPPool, rank=1):
    """(the sum of x^norm_type over each window)^(1 / norm_type), along the last dimension.

    kernel_size, stride: ints; a stride of None is the kernel's size. ceil_mode: also a window that
    sticks out at the end. Input (N, C, L) or (C, L). Raises ValueError for a norm_type of 0.
    """


class LPPool2d(_LPPool, rank=2):
    """(the sum of x^norm_type over each window)^(1 / norm_type). Arguments are those of LPPool1d.

    kernel_size, stride: an int or (rows, columns); a stride of None is the kernel's size.
    Input (N, C, H, W) or (C, H, W).
    """


@fields.declared
class _Adaptive(Layer):
    rank: ClassVar[int]

    output_size: Any = fields.anything(shown=True)

    def _build(self) -> None:
        owner, output_size = type(self).__name__, self.output_size
        numbers = output_size if isinstance(output_size, (tuple, list)) else (output_size,)
        if len(numbers) == 1:
            numbers = tuple(numbers) * self.rank
        if len(numbers) != self.rank:
            bad_value(
                f"For '{owner}', the 'output_size' must be an int or a tuple of {self.rank}, but got "
                f"{output_size}."
            )
        for n in numbers:
            if n is not None:
                arguments.integer(n, owner, "output_size", 1)
        self._numbers = tuple(numbers)

    def _input(self, x: Any) -> Tensor:
        owner = type(self).__name__
        x = arguments.of_rank(x, [self.rank + 1, self.rank + 2], owner)
        if 0 in x.shape[-self.rank :]:
            bad_value(
                f"For '{owner}', the input has no element to pool: its shape is {list(x.shape)}."
            )
        return x  # type: ignore[no-any-return]


class _AdaptiveAvgPool(_Adaptive):
    def construct(self, input: Tensor) -> Tensor:
        return pooling.adaptive_avg_pool(self._input(input), self._numbers)


class AdaptiveAvgPool1d(_AdaptiveAvgPool, rank=1):
    """The means of output_size windows, as AdaptiveAvgPool2d. Input (N, C, L) or (C, L)."""


class AdaptiveAvgPool2d(_AdaptiveAvgPool, rank=2):
    """The means of as many windows as asked for.

    Window i of m over n elements reaches from floor(i n / m) to ceil((i + 1) n / m). output_size:
    an int or (rows, columns), None for a dimension that stays. Input (N, C, H, W) or (C, H, W), any
    floating dtype; output of the same rank and dtype. Raises TypeError, ValueError.
    """


class AdaptiveAvgPool3d(_AdaptiveAvgPool, rank=3):
    """The means of output_size windows, as AdaptiveAvgPool2d, with three sizes.

    Input (N, C, D, H, W) or (C, D, H, W).
    """


@fields.declared
class _AdaptiveMaxPool(_Adaptive):
    return_indices: bool = fields.boolean(default=False)

    def construct(self, input: Tensor) -> Any:
        value, index = pooling.adaptive_max_pool(self._input(input), self._numbers)
        if not self.return_indices:
            return value
        return value, _ops.cast(index, place_type(input.size)) if self.rank == 3 else index


@fields.declared
class AdaptiveMaxPool1d(_AdaptiveMaxPool, rank=1):
    """The largest elements of output_size windows, as AdaptiveMaxPool2d. Input (N, C, L) or (C, L)."""

    return_indices: bool = fields.fixed(False)


class AdaptiveMaxPool2d(_AdaptiveMaxPool, rank=2):
    """The largest elements of as many windows as asked for, laid out as in AdaptiveAvgPool2d.

    return_indices: also their places in the flattened H x W, int64. Among equal elements the first
    takes the gradient. output_size: the size of the result: one number, or several.
    """


class AdaptiveMaxPool3d(_AdaptiveMaxPool, rank=3):
    """The largest elements of output_size windows, as AdaptiveMaxPool2d, with three sizes; positions
    are int32.

    return_indices: whether the places of the elements come too.
    """


@fields.declared
class _MaxUnpool(_Windowed):
    kernel_size: InitVar[Any] = fields.anything()
    stride: InitVar[Any] = fields.anything(default=None)
    pad_mode: InitVar[str] = fields.fixed("pad")
    padding: InitVar[Any] = fields.anything(default=0)

    def construct(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        sizes = self._kernel, self._stride, self._padding
        return pooling.unpooled(x, indices, *sizes, output_size, self.rank, type(self).__name__)


class MaxUnpool1d(_MaxUnpool, rank=1):
    """Zeros, with each element of the input where MaxPool1d found it, as its indices say.

    kernel_size, stride, padding: the pooling's. Input and indices (N, C, L) or (C, L); output of
    (L - 1) * stride - 2 * padding + kernel_size elements, or of output_size if given. Raises
    ValueError for shapes that differ, IndexError for an index out of range.
    """


class MaxUnpool2d(_MaxUnpool, rank=2):
    """MaxUnpool1d for MaxPool2d: inputs (N, C, H, W) or (C, H, W).

    kernel_size: the size of the window: a number, or one for each dimension. stride: the step of
    the window: a number, or one for each dimension. padding: how many elements are added at both
    ends of each dimension.
    """


class MaxUnpool3d(_MaxUnpool, rank=3):
    """MaxUnpool1d for MaxPool3d: inputs (N, C, D, H, W) or (C, D, H, W).

    kernel_size: the size of the window: a number, or one for each dimension. stride: the step of
    the window: a number, or one for each dimension. padding: how many elements are added at both
    ends of each dimension.
    """


publish(globals())
