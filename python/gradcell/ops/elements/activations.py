"""Activation functions. Composites that overflow nowhere, and right to any order of derivative.

Unless noted, each works elementwise on a tensor of any shape and gives that shape and dtype; integers
count as float32. TypeError for anything other than a tensor.
"""

from __future__ import annotations

import math
from typing import Any

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, to_dtype
from gradcell.base.spelling import spelling
from gradcell.ops.decorators import in_float32, method, one_plan, wide_plan

__all__ = [
    "celu", "elu", "gelu", "glu", "hardshrink", "hardtanh",
    "leaky_relu", "log_softmax", "logsigmoid", "mish", "prelu", "relu6", "selu", "silu", "softmax",
    "softmin", "softplus", "softshrink", "softsign", "squareplus", "swish", "tanhshrink", "threshold",
]  # fmt: skip


def _float(x: Any, op: str) -> Tensor:
    return arguments.floating(arguments.tensor(x, op))


def _softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)).

    The two sides are distinguished by one condition, so that at 0 every derivative is that of
    log1p(exp(x)), not that of a kink.
    """
    positive = _ops.greater(x, 0)
    tail = _ops.log1p(_ops.exp(_ops.where(positive, _ops.neg(x), x)))
    return _ops.add(_ops.where(positive, x, 0), tail)


def _negative_part(x: Tensor) -> Tensor:
    return _ops.where(_ops.greater(x, 0), 0, x)


@method(wide_plan)
def softplus(input: Any, beta: Any = 1, threshold: Any = 20) -> Tensor:
    """$log(1 + exp(beta input)) / beta$ for each element.

    threshold: where beta * input is larger, the result is input itself. At the default the two
    agree to 2e-9, so the formula, which cannot overflow here, is kept.
    """
    x = _float(input, "softplus")
    plain = not isinstance(beta, Tensor) and beta == 1  # a tensor may be differentiated by
    scaled = x if plain else _ops.mul(x, beta)
    y = _softplus(scaled)
    y = y if plain else _ops.div(y, beta)
    arguments.option(threshold, "softplus", "threshold")
    return y if threshold >= 20 else _ops.where(_ops.greater(scaled, threshold), x, y)


@wide_plan
def squareplus(x: Any, b: float = 4.0) -> Tensor:
    """$(x + sqrt(x^2 + b)) / 2$, a smooth max(x, 0) without exponentials. Barron, "Squareplus: a
    softplus-like algebraic rectifier" (2021), equation 1.

    b: how wide the bend is, above 0; at 0 the result is sqrt(b) / 2.
    """
    t = _float(x, "squareplus")
    bend = arguments.number(b, "squareplus", "b", above=0)
    below = _ops.less(t, 0)
    # Below 0 the sum cancels; times the difference it is b.
    large = _ops.add(_ops.hypot(t, math.sqrt(bend)), _ops.where(below, _ops.neg(t), t))
    return _ops.where(below, _ops.div(bend / 2, large), _ops.mul(large, 0.5))


@method(wide_plan)
def logsigmoid(x: Any) -> Tensor:
    """$log(sigmoid(x))$ for each element x, without overflow."""
    return _ops.neg(_softplus(_ops.neg(_float(x, "logsigmoid"))))


@method(wide_plan)
def silu(input: Any) -> Tensor:
    """$x sigmoid(x)$ for each element x, also called swish."""
    x = _float(input, "silu")
    return _ops.mul(x, _ops.sigmoid(x))


@spelling(silu)
def swish(x: Any) -> Tensor: ...


@method(wide_plan)
def mish(x: Any) -> Tensor:
    """x * tanh(softplus(x)). Misra, "Mish: a self regularized non-monotonic activation function"
    (BMVC 2020)."""
    x = _float(x, "mish")
    return _ops.mul(x, _ops.tanh(_softplus(x)))


@method(wide_plan)
def gelu(input: Any, approximate: str = "none") -> Tensor:
    """x times the distribution function of the standard normal distribution, for each element x.

    approximate: 'none', or 'tanh' for $0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))$. D.
    Hendrycks and Gimpel, "Gaussian error linear units" (2016), section 2.
    """
    arguments.one_of(approximate, ("none", "tanh"), "gelu", "approximate")
    x = _float(input, "gelu")
    if approximate == "none":  # ndtr keeps its relative precision for very negative x
        return _ops.mul(x, _ops.ndtr(x))
    cubic = _ops.mul(x, _ops.add(_ops.mul(_ops.square(x), 0.044715), 1.0))
    return _ops.mul(x, _ops.sigmoid(_ops.mul(cubic, 2.0 * math.sqrt(2.0 / math.pi))))


def _elu(x: Tensor, alpha: Any, above: Tensor) -> Tensor:
    """x where it is above 0, and $alpha (exp(x) - 1)$ elsewhere."""
    below = _ops.mul(_ops.expm1(_negative_part(x)), alpha)
    return _ops.where(above, x, below)


@method(wide_plan)
def elu(input_x: Any, alpha: Any = 1.0) -> Tensor:
    """x where it is positive, and $alpha (exp(x) - 1)$ elsewhere."""
    x = _float(input_x, "elu")
    return _elu(x, alpha, _ops.greater(x, 0))


@method(wide_plan)
def selu(input_x: Any) -> Tensor:
    """scale * elu(x, alpha), the constants for which mean 0 and variance 1 are a fixed point. The
    derivative at 0 is scale.

    Klambauer et al., "Self-normalizing neural networks" (NIPS 2017), equation 2 and section 2.
    """
    x = _float(input_x, "selu")
    return _ops.mul(_elu(x, 1.6732632423543772848, _ops.greater_equal(x, 0)), 1.0507009873554804934)


@wide_plan
def celu(x: Any, alpha: Any = 1.0) -> Tensor:
    """x where it is positive, and $alpha (exp(x / alpha) - 1)$ elsewhere."""
    x = _float(x, "celu")
    below = _ops.mul(_ops.expm1(_ops.div(_negative_part(x), alpha)), alpha)
    return _ops.where(_ops.greater(x, 0), x, below)


@method(one_plan)
def leaky_relu(input: Any, alpha: Any = 0.2) -> Tensor:
    """x where positive, else alpha * x. The derivative at 0 is (1 + alpha) / 2."""
    x = _float(input, "leaky_relu")
    if isinstance(alpha, (int, float)):
        below = 0 if alpha == 0 else _ops.mul(x, alpha)  # 0 times inf is no 0
        return (_ops.maximum if alpha <= 1 else _ops.minimum)(x, below)
    return _ops.add(_ops.maximum(x, 0), _ops.mul(_ops.minimum(x, 0), alpha))


@one_plan
def prelu(input: Any, weight: Any) -> Tensor:
    """x where it is positive, and weight * x elsewhere.

    weight: one element, or one for each of the channels, input's second dimension (its only one for
    a vector). Raises ValueError if it is neither.
    """
    x, w = _float(input, "PReLU"), arguments.tensor(weight, "PReLU", "weight")
    if w.size == 1:
        w = _ops.reshape(w, [])
    else:
        channel = 1 if x.ndim > 1 else 0
        if w.ndim != 1 or x.ndim == 0 or w.size != x.shape[channel]:
            bad_value(
                f"PReLU: a weight of shape {list(w.shape)} does not fit an input of shape {list(x.shape)}"
            )
        w = _ops.reshape(w, [w.size] + [1] * (x.ndim - 1 - channel))
    return _ops.where(_ops.greater(x, 0), x, _ops.mul(x, w))


def _relu6(x: Tensor) -> Tensor:
    return _ops.where(_ops.greater(x, 6), 6, _ops.relu(x))


@method(one_plan)
def hardtanh(input: Any, min_val: Any = -1.0, max_val: Any = 1.0) -> Tensor:
    """x between min_val and max_val. The derivative is 1/2 at the bounds, 0 beyond."""
    return _ops.minimum(_ops.maximum(_float(input, "hardtanh"), min_val), max_val)


@method(one_plan)
def relu6(x: Any) -> Tensor:
    """x between 0 and 6. The derivative is 0 at 0 and 1 at 6."""
    return _relu6(_float(x, "ReLU6"))


def hardsigmoid(input: Any) -> Tensor:
    """(x + 3) / 6 between 0 and 1. The derivative is 0 at -3 and 3."""
    return _ops.hardsigmoid(_float(input, "hardsigmoid"))


def hardswish(input: Any) -> Tensor:
    """x * (x + 3) / 6 from -3 to 3, 0 below, x above. The derivative is -1/2 at -3 and 3/2 at 3."""
    return _ops.hardswish(_float(input, "hardswish"))


@method(wide_plan)
def softsign(x: Any) -> Tensor:
    """$x / (1 + |x|)$ for each element x."""
    x = _float(x, "softsign")
    return _ops.div(x, _ops.add(_ops.abs(x), 1.0))


@wide_plan
def tanhshrink(input: Any) -> Tensor:
    """$x - tanh(x)$ for each element x."""
    x = _float(input, "tanhshrink")
    return _ops.sub(x, _ops.tanh(x))


@method(one_plan)
def hardshrink(input: Any, lambd: Any = 0.5) -> Tensor:
    """x where |x| > lambd, and 0 elsewhere."""
    x = _float(input, "hardshrink")
    return _ops.where(_ops.less_equal(_ops.abs(x), lambd), 0, x)


@method(one_plan, "soft_shrink")
def softshrink(input: Any, lambd: Any = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and 0 where |x| <= lambd."""
    x = _float(input, "softshrink")
    arguments.option(lambd, "softshrink", "lambd")
    low = _ops.where(_ops.greater_equal(x, -lambd), 0, _ops.add(x, lambd))
    return _ops.where(_ops.greater(x, lambd), _ops.sub(x, lambd), low)


@one_plan
def threshold(input: Any, thr: Any, value: Any) -> Tensor:
    """x where it exceeds thr, and value elsewhere."""
    x = _float(input, "threshold")
    return _ops.where(_ops.less_equal(x, thr), value, x)


@one_plan
def glu(x: Any, axis: int = -1) -> Tensor:
    """The first half along axis times the sigmoid of the second. An odd size is a ValueError."""
    x = _float(x, "glu")
    a = arguments.axis_of(axis, x.ndim, "glu")
    if x.ndim == 0 or x.shape[a] % 2:
        bad_value(f"glu: dimension {axis} of shape {list(x.shape)} cannot be halved")
    size, start = list(x.shape), [0] * x.ndim
    size[a] //= 2
    first = _ops.slice(x, start, size, [1] * x.ndim)
    start[a] = size[a]
    return _ops.mul(first, _ops.sigmoid(_ops.slice(x, start, size, [1] * x.ndim)))


# Softmax ------------------------------------------------------------------------------------------


def _shifted(x: Tensor, axis: Any, op: str) -> tuple[Tensor, list[int]]:
    """x less its largest element along axis, which is a constant for the derivative."""
    axes = [arguments.axis_of(a, x.ndim, op) for a in arguments.integers(axis, op, "axis")]
    if x.ndim == 0:
        return _ops.sub(x, _ops.stop_gradient(x)), []
    if any(x.shape[a] == 0 for a in axes):
        return x, axes
    return _ops.sub(x, _ops.stop_gradient(_ops.reduce_max(x, axes, True))), axes


def _total(x: Tensor, axes: list[int]) -> Tensor:
    return _ops.reduce_sum(x, axes, True) if axes else x


@one_plan
def softmax(input: Any, axis: Any = -1, *, dtype: Any = None) -> Tensor:
    """$exp(x) / sum(exp(x))$ along axis. Raises ValueError for an axis out of range."""
    x = arguments.tensor(input, "Softmax")
    return _softmax(_float(x if dtype is None else _ops.cast(x, to_dtype(dtype)), "Softmax"), axis)


@in_float32
def _softmax(x: Tensor, axis: Any) -> Tensor:
    shifted, axes = _shifted(x, axis, "Softmax")
    e = _ops.exp(shifted)
    return _ops.div(e, _total(e, axes))


def softmin(x: Any, axis: Any = -1, *, dtype: Any = None) -> Tensor:
    """softmax(-x): the larger an element, the smaller its share. The shares along axis add up to 1."""
    x = arguments.floating(arguments.tensor(x, "softmin", "x"))
    return softmax(_ops.neg(x), axis, dtype=dtype)


@method(wide_plan, dim="axis")
def log_softmax(logits: Any, axis: Any = -1) -> Tensor:
    """$log(softmax(x))$, without overflow or the logarithm of 0."""
    shifted, axes = _shifted(_float(logits, "LogSoftmax"), axis, "LogSoftmax")
    return _ops.sub(shifted, _ops.log(_total(_ops.exp(shifted), axes)))
