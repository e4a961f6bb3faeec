"""Means 0 and variances 1: of layers, of batches, by root mean squares, across channels."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradcell._core import ParameterBase, Tensor, float32, float64, ops as _ops, promote
from gradcell.base import arguments, bad_value
from gradcell.ops.arrays import assignments
from gradcell.ops.decorators import one_plan, wide_plan

__all__ = ["batch_norm", "layer_norm", "lrn", "rms_norm"]


def moments(x: Tensor, axes: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """(mean, x - mean, variance), the moments with axes of size 1. Integers are taken as floats."""
    x = arguments.floating(x)
    mean = _ops.mean(x, axes, True)
    centred = _ops.sub(x, mean)
    return mean, centred, _ops.mean(_ops.square(centred), axes, True)


def scaled(centred: Tensor, variance: Tensor, eps: float) -> Tensor:
    """Divide centred values by the root of their variance plus eps."""
    return _ops.mul(centred, _ops.rsqrt(_ops.add(variance, eps)))


def _normalized(x: Tensor, axes: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """((x - mean) / sqrt(variance + eps), the mean, the variance), over axes, which are kept.

    Half types are computed in float32.
    """
    if x.dtype.is_narrow_float:
        return tuple(  # type: ignore[return-value]
            _ops.cast(y, x.dtype) for y in _normalized(_ops.cast(x, float32), axes, eps)
        )
    mean, centred, variance = moments(x, axes)
    return scaled(centred, variance, eps), mean, variance


@one_plan
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05
) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions, then times weight, plus bias.

    normalized_shape: the sizes of those dimensions, which are also weight's and bias's shape; an
    integer for the last one alone. eps: keeps denominators and logarithms finite. Raises ValueError
    if they are not input's. Ba, Kiros and Hinton, "Layer normalization" (2016), equation 4.
    """
    x = arguments.floating(arguments.tensor(input, "LayerNorm"))
    dims = arguments.integers(normalized_shape, "LayerNorm", "normalized_shape")
    if not dims or list(x.shape[-len(dims) :]) != dims:
        bad_value(
            f"LayerNorm: normalized_shape {dims} is not the end of the input's shape {list(x.shape)}"
        )
    y = _normalized(x, list(range(x.ndim - len(dims), x.ndim)), eps)[0]
    return _scaled(y, dims, weight, bias, ("weight", "bias"))


def _scaled(y: Tensor, dims: list[int], weight: Any, bias: Any, names: tuple[str, str]) -> Tensor:
    """y times weight plus bias, each of the shape of y's last dimensions `dims`, a number, or None."""
    factor, added = (
        arguments.of_shape(t, dims, "LayerNorm", name, "the normalised") if np.ndim(t) else t
        for t, name in zip((weight, bias), names, strict=True)
    )
    y = y if factor is None else _ops.mul(y, factor)
    return y if added is None else _ops.add(y, added)


def _along_channels(v: Any, x: Tensor, owner: str, name: str) -> Tensor:
    t = arguments.tensor(v, owner, name)
    if t.ndim != 1 or x.ndim < 2 or t.size != x.shape[1]:
        bad_value(
            f"For '{owner}', the '{name}' of shape {list(t.shape)} does not fit the channels of shape "
            f"{list(x.shape)}"
        )
    return _ops.reshape(arguments.single(t), [t.size] + [1] * (x.ndim - 2))


def _batch_norm(
    x: Tensor, mean: Any, variance: Any, weight: Any, bias: Any, training: bool, momentum: float,
    eps: float, owner: str,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(x normalised over all but the channels, the mean and the unbiased variance that were used)."""
    if x.ndim < 2:
        bad_value(
            f"For '{owner}', the input must have a dimension of channels behind its first one, but got "
            f"shape {list(x.shape)}"
        )
    x = arguments.floating(x)
    axes, narrow = [0, *range(2, x.ndim)], x.dtype
    given = [narrow] + [v.dtype for v in (weight, bias) if isinstance(v, Tensor)]
    result = functools.reduce(promote, given)
    x = arguments.single(x)
    if training:
        m, centred, v = moments(x, axes)
        count = x.size // max(x.shape[1], 1)
        unbiased = _ops.mul(v, count / max(count - 1, 1))
        seen = _ops.reshape(m, [-1]), _ops.reshape(unbiased, [-1])
        for moving, new in zip((mean, variance), seen, strict=True):
            if isinstance(moving, ParameterBase):
                kept = _ops.mul(arguments.single(moving), 1 - momentum)
                now = _ops.add(kept, _ops.mul(new, momentum))
                assignments.assign(moving, _ops.cast(now, moving.dtype))
        used = _ops.cast(seen[0], narrow), _ops.cast(seen[1], narrow)
    else:
        m = _along_channels(mean, x, owner, "mean")
        v = _along_channels(variance, x, owner, "variance")
        centred, used = _ops.sub(x, m), (mean, variance)
    y = scaled(centred, v, eps)
    y = y if weight is None else _ops.mul(y, _along_channels(weight, x, owner, "scale"))
    y = y if bias is None else _ops.add(y, _along_channels(bias, x, owner, "bias"))
    return (_ops.cast(y, result), *used)


@one_plan
def batch_norm(
    input_x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """input_x (N, C, ...) with mean 0 and variance 1 in each channel, times weight, plus bias (Ioffe and
    Szegedy 2015, algorithm 1): by its own moments if training, which the running ones, where they are
    parameters, then follow with momentum; by the running ones otherwise.

    running_mean, running_var: Parameters, which change in training. eps: keeps denominators and
    logarithms finite.
    """
    x = arguments.tensor(input_x, "batch_norm", "input_x")
    arguments.boolean(training, "batch_norm", "training")
    return _batch_norm(
        x, running_mean, running_var, weight, bias, training, momentum, eps, "batch_norm"
    )[0]


@one_plan
def batch_norm_and_moments(
    input_x: Any, scale: Any, bias: Any, mean: Any, variance: Any, *, is_training: bool,
    epsilon: float, momentum: float, data_format: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """(input_x normalised, the channels' means and variances, the means again, the variances without
    Bessel's correction if training)."""
    x = arguments.tensor(input_x, "BatchNorm", "input_x")
    arguments.one_of(data_format, ("NCHW", "NHWC", "NCDHW"), "BatchNorm", "data_format")
    last = data_format == "NHWC"
    order = [0, x.ndim - 1, *range(1, x.ndim - 1)]
    t = _ops.transpose(x, order) if last else x
    y, m, v = _batch_norm(
        t, mean, variance, scale, bias, is_training, momentum, epsilon, "BatchNorm"
    )
    y = _ops.transpose(y, [0, *range(2, x.ndim), 1]) if last else y
    count = x.size // max(v.size, 1)
    return y, m, v, m, _ops.mul(v, 1 - 1 / count) if is_training and count > 1 else v


@one_plan
def rms_norm(x: Any, gamma: Any, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """(x over the root of the mean square of its last dimensions, which are gamma's, times gamma; the
    inverse of that root) (Zhang and Sennrich 2019, equation 4).

    epsilon: added to the mean square.
    """
    t = arguments.floating(arguments.tensor(x, "rms_norm", "x"))
    g = arguments.tensor(gamma, "rms_norm", "gamma")
    axes = list(range(t.ndim - g.ndim, t.ndim))
    wide = t if t.dtype == float64 else _ops.cast(t, float32)
    inverse = _ops.rsqrt(_ops.add(_ops.mean(_ops.square(wide), axes, True), epsilon))
    return _ops.mul(_ops.cast(_ops.mul(wide, inverse), t.dtype), g), inverse


@wide_plan
def lrn(
    x: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> Tensor:  # fmt: skip
    """x over (bias + alpha times the sum of squares of the channels within depth_radius)^beta
    (Krizhevsky et al. 2012, section 3.3); x [n, c, h, w].

    depth_radius: how many channels on each side count. alpha: the factor of the sum of squares.
    beta: the exponent. norm_region: 'ACROSS_CHANNELS', the only one there is.
    """
    t = arguments.floating(arguments.of_rank(x, (4,), "LRN"))
    c = t.shape[1]
    reach = arguments.integer(depth_radius, "LRN", "depth_radius")
    near = np.abs(np.arange(c)[:, None] - np.arange(c)) <= reach
    squares = _ops.reshape(_ops.square(t), [t.shape[0], c, t.shape[2] * t.shape[3]])
    total = _ops.matmul(Tensor(near.astype(np.float32), t.dtype), squares)
    scale = _ops.add(_ops.mul(_ops.reshape(total, list(t.shape)), alpha), bias)
    return _ops.mul(t, _ops.pow(scale, -arguments.option(beta, "LRN", "beta")))
