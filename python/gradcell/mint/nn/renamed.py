"""Layers and losses of gradcell.nn, constructed as in mint."""

from __future__ import annotations

from typing import Any

from gradcell import nn, ops
from gradcell.base import arguments, fields, notice, publish, unsupported


def _dtype(dtype: Any) -> dict[str, Any]:
    return {} if dtype is None else {"dtype": dtype}


def _new(inplace: bool) -> dict[str, Any]:
    """Warns once where the input is to be overwritten."""
    if inplace:
        notice.once("mint.nn: inplace=True", "a layer gives a new tensor")
    return {}


def _padding(padding: Any, padding_mode: str) -> dict[str, Any]:
    """nn's pad_mode and padding for mint's: numbers, 'valid' or 'same'."""
    if padding_mode != "zeros":
        unsupported(f"mint.nn: padding_mode {padding_mode!r} is not supported")
    if isinstance(padding, str):
        return {"pad_mode": padding}
    if isinstance(padding, (tuple, list)):
        padding = tuple(n for n in padding for _ in (0, 1))
    return {"pad_mode": "pad", "padding": padding}


class Linear(nn.Dense):
    """A fully connected layer: activation(x Wᵀ + b)."""

    def __init__(
        self, in_features: Any, out_features: Any, bias: bool = True, weight_init: Any = None,
        bias_init: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features, weight_init, bias_init, bias, **_dtype(dtype))


class _Convolution(nn.Cell):
    """Base class of convolutions; behind it comes the layer's class, whose __init__ it calls."""

    def __init__(
        self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any =
        0, dilation: Any = 1, groups: Any = 1, bias: bool = True, padding_mode: Any = 'zeros',
        dtype: Any = None,
    ) -> None:  # fmt: skip
        how = {"dilation": dilation, "group": groups, "has_bias": bias, **_dtype(dtype)}
        how |= _padding(padding, padding_mode)
        super().__init__(in_channels, out_channels, kernel_size, stride, **how)  # type: ignore[call-arg]

    def construct(self, input: Any) -> Any:
        x = arguments.tensor(input, type(self).__name__)
        if x.ndim != len(self.weight.shape) - 1:
            return super().construct(x)
        return ops.squeeze(super().construct(ops.expand_dims(x, 0)), 0)  # without a batch


class Conv2d(_Convolution, nn.Conv2d):
    """A two-dimensional convolution (cross-correlation)."""


class Conv3d(_Convolution, nn.Conv3d):
    """A three-dimensional convolution (cross-correlation)."""


class ReLU6(nn.ReLU6):
    """min(max(x, 0), 6)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(**_new(inplace))


class SiLU(nn.SiLU):
    """x sigmoid(x)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(**_new(inplace))


@fields.declared
class ReLU(nn.ReLU):
    """max(x, 0); 0 for the derivative at 0."""


@fields.declared
class Sigmoid(nn.Sigmoid):
    """1 / (1 + exp(-x))."""


@fields.declared
class Tanh(nn.Tanh):
    """tanh(x)."""


@fields.declared
class LogSigmoid(nn.LogSigmoid):
    """log(1 / (1 + exp(-x))), without overflow."""


@fields.declared
class Mish(nn.Mish):
    """x tanh(log(1 + exp(x)))."""


@fields.declared
class SELU(nn.SeLU):
    """scale * (x where x > 0, alpha * (exp(x) - 1) elsewhere)."""


@fields.declared
class Hardsigmoid(nn.HSigmoid):
    """min(max(x + 3, 0), 6) / 6."""


@fields.declared
class Hardswish(nn.HSwish):
    """x min(max(x + 3, 0), 6) / 6."""


class GELU(nn.GELU):
    """x times the normal distribution function of x."""

    def __init__(self, approximate: Any = "none") -> None:
        super().__init__(approximate == "tanh")


class ELU(nn.ELU):
    """x where x > 0, alpha (exp(x) - 1) elsewhere."""

    def __init__(self, alpha: Any = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha, **_new(inplace))


class Hardshrink(nn.HShrink):
    """x where |x| > lambd, 0 elsewhere."""


class Softshrink(nn.SoftShrink):
    """x moved towards 0 by lambd, 0 where |x| <= lambd."""


class Hardtanh(nn.Hardtanh):
    """x kept within [min_val, max_val]."""

    def __init__(self, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> None:
        super().__init__(min_val, max_val, **_new(inplace))


class Threshold(nn.Threshold):
    """x where x > threshold, value elsewhere."""

    def __init__(self, threshold: Any, value: Any, inplace: bool = False) -> None:
        super().__init__(threshold, value, **_new(inplace))


class Softmax(nn.Softmax):
    """exp(x) / sum(exp(x)) along an axis, without overflow."""

    def __init__(self, dim: Any = None) -> None:
        super().__init__(-1 if dim is None else dim)


class LogSoftmax(nn.LogSoftmax):
    """log(Softmax(x)), without overflow."""

    def __init__(self, dim: Any = None) -> None:
        super().__init__(-1 if dim is None else dim)


class GLU(nn.GLU):
    """The first half along an axis times the sigmoid of the second."""

    def __init__(self, dim: Any = -1) -> None:
        super().__init__(dim)


class Dropout(nn.Dropout):
    """In training each element becomes 0 with probability p, and the others are divided by 1 - p."""

    def __init__(self, p: Any = 0.5, inplace: bool = False) -> None:
        super().__init__(p=p, **_new(inplace))


class Dropout2d(nn.Dropout2d):
    """Dropout of whole channels of (N, C, H, W) or (C, H, W)."""

    def __init__(self, p: Any = 0.5, inplace: bool = False) -> None:
        super().__init__(p=p, **_new(inplace))


class Flatten(nn.Flatten):
    """The dimensions from start_dim to end_dim as one, in row-major order."""


class Identity(nn.Identity):
    """Returns a copy of its input."""


class MSELoss(nn.MSELoss):
    """(logits - labels)², reduced."""


class L1Loss(nn.L1Loss):
    """|logits - labels|, reduced."""


class SmoothL1Loss(nn.SmoothL1Loss):
    """d² / (2 beta) where d = |logits - labels| < beta, else d - beta / 2; by default not reduced."""

    def __init__(self, reduction: Any = "mean", beta: Any = 1.0) -> None:
        super().__init__(beta, reduction)


class BCELoss(nn.BCELoss):
    """-(y log(p) + (1 - y) log(1 - p)) for probabilities p and labels y of one shape, reduced."""


class BCEWithLogitsLoss(nn.BCEWithLogitsLoss):
    """BCELoss of sigmoid(logits), without overflow."""

    def __init__(self, weight: Any = None, reduction: Any = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction, weight, pos_weight)


class CrossEntropyLoss(nn.CrossEntropyLoss):
    """Minus the logarithm of the softmax probability of the labels."""


class NLLLoss(nn.NLLLoss):
    """Minus the logarithmic probability of the labels: CrossEntropyLoss of what log_softmax gave."""


class MaxPool2d(nn.MaxPool2d):
    """The largest element of each window."""

    def __init__(
        self, kernel_size: Any = 1, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        steps = kernel_size if stride is None else stride
        super().__init__(kernel_size, steps, "pad", padding, dilation, return_indices, ceil_mode)


class _AvgPool(nn.Cell):
    """Base class of poolings by means, as _Convolution is one."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> None:  # fmt: skip
        counts = (ceil_mode, count_include_pad, divisor_override)
        steps = kernel_size if stride is None else stride
        super().__init__(kernel_size, steps, "pad", padding, *counts)  # type: ignore[call-arg]


class AvgPool2d(_AvgPool, nn.AvgPool2d):
    """The mean of each window."""


class AvgPool3d(_AvgPool, nn.AvgPool3d):
    """The mean of each window."""


class AdaptiveAvgPool1d(nn.AdaptiveAvgPool1d):
    """The means of output_size windows, as AdaptiveAvgPool2d."""


class AdaptiveAvgPool2d(nn.AdaptiveAvgPool2d):
    """The means of as many windows as asked for."""


class AdaptiveAvgPool3d(nn.AdaptiveAvgPool3d):
    """The means of output_size windows, as AdaptiveAvgPool2d, with three sizes."""


class PixelShuffle(nn.PixelShuffle):
    """(..., C r², H, W) to (..., C, H r, W r), r = upscale_factor: channels become pixels."""


class AvgPool1d(nn.AvgPool1d):
    """The mean over each window of kernel_size positions; stride None: kernel_size."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        steps = kernel_size if stride is None else stride
        super().__init__(kernel_size, steps, "pad", padding, ceil_mode, count_include_pad)


class KLDivLoss(nn.KLDivLoss):
    """The Kullback-Leibler divergence of logarithms of probabilities from the target, probabilities or, with
    log_target, their logarithms."""

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def construct(self, input: Any, target: Any) -> Any:
        return super().construct(input, ops.exp(target) if self.log_target else target)


class ZeroPad1d(nn.ConstantPad1d):
    """Zeros before and behind the last dimension.

    padding: their number, or (before, behind).
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0)


class ZeroPad3d(nn.ConstantPad3d):
    """Zeros around the last three dimensions.

    padding: their number, or six, a pair for each dimension, the last one's first.
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0)


publish(globals())
