"""Elementwise functions composed of the op table's: signs, angles, quotients, logarithms of sums."""

from __future__ import annotations

import math
from typing import Any

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments
from gradcell.base.convert import gap_at_one, limits
from gradcell.ops.decorators import method, one_plan, wide_plan
from gradcell.ops.elements import complex_numbers, elementwise

__all__ = [
    "addcdiv", "addcmul", "approximate_equal", "cbrt", "deg2rad", "fix", "float_power", "frac",
    "heaviside", "is_floating_point", "isposinf", "logaddexp", "logaddexp2", "nan_to_num",
    "positive", "pows", "rad2deg", "sgn", "signbit", "sinc", "truncate_div", "truncate_mod",
    "xdivy",
]  # fmt: skip


def _float(value: Any, op: str, name: str = "input") -> Tensor:
    return arguments.floating(arguments.operand(value, op, name))


def _beside(value: Any, *others: Any) -> Any:
    like = next((x for x in others if isinstance(x, Tensor)), None)
    return value if like is None else arguments.beside(value, like)


def _floats(a: Any, b: Any, op: str) -> tuple[Tensor, Tensor]:
    x, y = map(arguments.floating, arguments.operands(a, b, op))
    return x, y


# Signs --------------------------------------------------------------------------------------------


@method(one_plan)
def signbit(input: Any) -> Tensor:
    """Return whether the sign of each element is minus; -0 counts as negative."""
    x = arguments.operand(input, "signbit")
    if not x.dtype.is_floating:
        return _ops.less(x, 0)
    return _ops.logical_or(
        _ops.less(x, 0), _ops.logical_and(_ops.equal(x, 0), _ops.less(_ops.div(1.0, x), 0))
    )


@method()
def isposinf(input: Any) -> Tensor:
    """Return whether each element is inf."""
    x = arguments.tensor(input, "isposinf")
    return _ops.logical_and(_ops.isinf(x), _ops.greater(x, 0))


@method(one_plan)
def heaviside(input: Any, values: Any) -> Tensor:
    """The Heaviside step function: 0 below zero, 1 above, values at zero."""
    x = arguments.operand(input, "heaviside")
    step = _ops.cast(_ops.greater(x, 0), x.dtype)
    return _ops.where(_ops.equal(x, 0), values, _ops.where(_ops.isnan(x), x, step))


@method()
def sgn(input: Any) -> Tensor:
    """The sign of each element: -1, 0 or 1."""
    return _ops.sign(input)


@method()
def positive(input: Any) -> Tensor:
    """A copy of the tensor, as Python's +x. Raises TypeError for bool."""
    x = arguments.tensor(input, "positive")
    if x.dtype == _core.bool:
        raise TypeError("positive: a bool has no sign")
    return _core.copy(x)


# Whole parts --------------------------------------------------------------------------------------


@one_plan
def fix(input: Any) -> Tensor:
    """Each element rounded towards zero."""
    x = arguments.operand(input, "fix")
    if not x.dtype.is_floating:
        return x
    return _ops.trunc(x)


@method(one_plan)
def frac(x: Any) -> Tensor:
    """The fractional part of each element, with the sign of x."""
    return _ops.sub(x, fix(x))


@one_plan
def truncate_div(x: Any, y: Any) -> Tensor:
    """x / y without the fraction, towards zero, in the inputs' dtype."""
    return elementwise.div(
        *arguments.operands(x, y, "truncate_div", ("x", "y")), rounding_mode="trunc"
    )


@one_plan
def truncate_mod(x: Any, y: Any) -> Tensor:
    """x - y truncate_div(x, y): the remainder with the sign of x."""
    a, b = arguments.operands(x, y, "truncate_mod", ("x", "y"))
    return _ops.sub(a, _ops.mul(b, truncate_div(a, b)))


@method(one_plan)
def nan_to_num(input: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
    """NaN replaced by nan (0 by default), infinities by posinf and neginf (by default the dtype's
    largest and smallest number)."""
    x = arguments.tensor(input, "nan_to_num")
    if not x.dtype.is_floating:
        return x
    top = limits(x.dtype)[1]
    high, low = top if posinf is None else posinf, -top if neginf is None else neginf
    out = _ops.where(_ops.isnan(x), 0 if nan is None else nan, x)
    out = _ops.where(_ops.equal(x, math.inf), high, out)
    return _ops.where(_ops.equal(x, -math.inf), low, out)


# Powers, angles, logarithms -----------------------------------------------------------------------


@wide_plan
def cbrt(x: Any) -> Tensor:
    """The cube root: a power, and a step of Newton's for the digits that 1/3 lacks."""
    t = _float(x, "cbrt", "x")
    whole = _ops.where(_ops.less(t, 0), _ops.neg(t), t)  # abs has derivative 0 at 0
    size = _ops.pow(whole, 1 / 3)
    plain = _ops.logical_and(_ops.greater(size, 0), _ops.isfinite(size))
    root = _ops.where(plain, size, 1.0)
    step = _ops.div(_ops.sub(root, _ops.div(whole, _ops.square(root))), 3.0)
    size = _ops.where(plain, _ops.sub(root, step), size)
    return _ops.where(_ops.less(t, 0), _ops.neg(size), size)


@method(other="exponent")
def float_power(input: Any, exponent: Any) -> Tensor:
    """input to the power of exponent, in float64, or complex128 if one of them is complex."""
    wide = Tensor(0.0, _core.float64)
    a = arguments.operand(input, "float_power", like=wide)
    b = arguments.operand(exponent, "float_power", "exponent", like=wide)
    dtype = _core.complex128 if a.dtype.is_complex or b.dtype.is_complex else _core.float64
    return _ops.pow(_ops.cast(a, dtype), _ops.cast(b, dtype))


@method()
def deg2rad(x: Any) -> Tensor:
    """Converts degrees to radians: x pi / 180."""
    return _ops.mul(_float(x, "deg2rad", "x"), math.pi / 180)


@method()
def rad2deg(x: Any) -> Tensor:
    """Converts radians to degrees: 180 x / pi."""
    return _ops.mul(_float(x, "rad2deg", "x"), 180 / math.pi)


def log_sum(a: Tensor, b: Tensor, base: float = math.e) -> Tensor:
    """The logarithm of base^a + base^b.

    The two sides are distinguished by one condition, so that where a and b are equal every derivative
    is that of b + log1p(exp(a - b)), not that of a kink.
    """
    endless = _ops.logical_and(_ops.isinf(a), _ops.equal(a, b))
    gap = _ops.where(endless, 0, _ops.sub(a, b))
    above = _ops.greater(gap, 0)
    tail = _ops.where(above, _ops.neg(gap), gap)
    tail = _ops.log1p(_ops.exp(tail if base == math.e else _ops.mul(tail, math.log(base))))
    tail = tail if base == math.e else _ops.mul(tail, 1 / math.log(base))
    return _ops.add(_ops.where(above, a, b), tail)


@method(wide_plan)
def logaddexp(input: Any, other: Any) -> Tensor:
    """log(exp(input) + exp(other)), without overflow."""
    return log_sum(*_floats(input, other, "logaddexp"))


@method(wide_plan)
def logaddexp2(input: Any, other: Any) -> Tensor:
    """log2(2^input + 2^other), without overflow."""
    a, b = _floats(input, other, "logaddexp2")
    return log_sum(a, b, 2.0)


@method(one_plan)
def xdivy(x: Any, y: Any) -> Tensor:
    """The quotient x / y, and 0 where both are 0."""
    a, b = arguments.operands(x, y, "xdivy", ("x", "y"))
    zero = _ops.logical_and(_ops.equal(a, 0), _ops.equal(b, 0))
    return _ops.where(zero, 0, _ops.div(a, _ops.where(zero, 1, b)))


@method(wide_plan)
def addcmul(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """input + value * tensor1 * tensor2, elementwise."""
    return _ops.add(input, _ops.mul(value, _ops.mul(_beside(tensor1, tensor2, input), tensor2)))


@method(wide_plan)
def addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """input + value tensor1 / tensor2, elementwise."""
    return _ops.add(input, _ops.mul(value, _ops.div(_beside(tensor1, tensor2, input), tensor2)))


@method(wide_plan)
def sinc(input: Any) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0; close to 0 by its series, so that derivatives are right there too;
    of real numbers with the sine of the way to the next integer, so that zeros are zeros."""
    x = _float(input, "sinc")
    angle = _ops.mul(x, math.pi)
    size = complex_numbers.complex_abs(x) if x.dtype.is_complex else _ops.abs(x)
    near = _ops.less(size, 0.25)
    apart = _ops.where(near, 1, angle)
    square = _ops.square(_ops.where(near, angle, 0))
    series = _ops.full([], 1.0, x.dtype)
    for k in range(12, 0, -1):  # 1 - s/6 (1 - s/20 (1 - s/42 (...)))
        series = _ops.sub(1.0, _ops.mul(_ops.div(square, float(2 * k * (2 * k + 1))), series))
    if x.dtype.is_complex:
        return _ops.where(near, series, _ops.div(_ops.sin(apart), apart))
    whole = _ops.round(x)
    sine = _ops.sin(_ops.mul(_ops.sub(x, whole), math.pi))
    odd = _ops.not_equal(_ops.mod(whole, 2.0), 0)
    return _ops.where(near, series, _ops.div(_ops.where(odd, _ops.neg(sine), sine), apart))


def pows(input: Any, exponent: Any) -> Tensor:
    """input to the power of exponent, elementwise."""
    return _ops.pow(input, exponent)


def eps(x: Any) -> Tensor:
    """The gap between 1 and the next number of x's dtype, in x's shape."""
    t = arguments.tensor(x, "Eps", "x")
    return _ops.full(list(t.shape), gap_at_one(t.dtype), t.dtype)


@method(other="y")
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-05) -> Tensor:
    """Return whether two elements differ by less than the tolerance.

    y: a tensor or a number.
    """
    return _ops.less(_ops.abs(_ops.sub(x, y)), tolerance)


@method()
def is_floating_point(input: Any) -> bool:
    """Return whether the dtype of a tensor is a real floating type."""
    dtype = arguments.tensor(input, "is_floating_point").dtype
    return dtype.is_floating and not dtype.is_complex
