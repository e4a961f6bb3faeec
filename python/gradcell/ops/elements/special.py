"""Elementwise functions composed of the op table's: signs, angles, logarithms of sums, gamma
functions."""

from __future__ import annotations

import math
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.convert import gap_at_one, limits
from gradcell.ops.elements import complex_numbers
from gradcell.ops.method import method
from gradcell.ops.one_plan import in_float32, one_plan

__all__ = [
    "addcdiv", "addcmul", "approximate_equal", "cbrt", "deg2rad", "digamma", "fix", "float_power",
    "frac", "heaviside", "is_floating_point", "isposinf", "lgamma", "logaddexp",
    "logaddexp2", "nan_to_num", "positive", "pows", "rad2deg", "sgn", "signbit", "sinc",
    "truncate_div", "truncate_mod", "xdivy",
]  # fmt: skip

_ops = _core.ops


def _float(value: Any, op: str, name: str = "input") -> Tensor:
    return arguments.floating(arguments.operand(value, op, name))


# Signs --------------------------------------------------------------------------------------------


@method()
@one_plan
def signbit(input: Any) -> Tensor:
    """Whether the sign of each element is minus; -0 counts as negative."""
    x = arguments.operand(input, "signbit")
    if not x.dtype.is_floating:
        return _ops.less(x, 0)
    return _ops.logical_or(
        _ops.less(x, 0), _ops.logical_and(_ops.equal(x, 0), _ops.less(_ops.div(1.0, x), 0))
    )


@method()
def isposinf(input: Any) -> Tensor:
    """Whether each element is inf."""
    x = arguments.tensor(input, "isposinf")
    return _ops.logical_and(_ops.isinf(x), _ops.greater(x, 0))


@method()
@one_plan
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


@method()
@one_plan
def frac(x: Any) -> Tensor:
    """The fractional part of each element, with the sign of x."""
    return _ops.sub(x, fix(x))


@one_plan
def truncate_div(x: Any, y: Any) -> Tensor:
    """x / y without the fraction, towards zero, in the inputs' dtype."""
    a, b = arguments.operands(x, y, "truncate_div", ("x", "y"))
    if a.dtype.is_floating or b.dtype.is_floating:
        return fix(_ops.div(a, b))
    down, rest = _ops.floor_div(a, b), _ops.mod(a, b)
    inexact = _ops.logical_and(
        _ops.not_equal(rest, 0), _ops.not_equal(_ops.less(a, 0), _ops.less(b, 0))
    )
    return _ops.where(inexact, _ops.add(down, 1), down)


@one_plan
def truncate_mod(x: Any, y: Any) -> Tensor:
    """x - y truncate_div(x, y): the remainder with the sign of x."""
    a, b = arguments.operands(x, y, "truncate_mod", ("x", "y"))
    return _ops.sub(a, _ops.mul(b, truncate_div(a, b)))


@method()
@one_plan
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


@one_plan
@in_float32
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


@method()
@one_plan
@in_float32
def logaddexp(input: Any, other: Any) -> Tensor:
    """log(exp(input) + exp(other)), without overflow."""
    return log_sum(_float(input, "logaddexp"), _float(other, "logaddexp", "other"))


@method()
@one_plan
@in_float32
def logaddexp2(input: Any, other: Any) -> Tensor:
    """log2(2^input + 2^other), without overflow."""
    return log_sum(_float(input, "logaddexp2"), _float(other, "logaddexp2", "other"), 2.0)


@method()
@one_plan
def xdivy(x: Any, y: Any) -> Tensor:
    """The quotient x / y, and 0 where both are 0."""
    a, b = arguments.operands(x, y, "xdivy", ("x", "y"))
    zero = _ops.logical_and(_ops.equal(a, 0), _ops.equal(b, 0))
    return _ops.where(zero, 0, _ops.div(a, _ops.where(zero, 1, b)))


@method()
@one_plan
@in_float32
def addcmul(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """input + value tensor1 tensor2, elementwise."""
    return _ops.add(input, _ops.mul(value, _ops.mul(tensor1, tensor2)))


@method()
@one_plan
@in_float32
def addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """input + value tensor1 / tensor2, elementwise."""
    return _ops.add(input, _ops.mul(value, _ops.div(tensor1, tensor2)))


@method()
@one_plan
@in_float32
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


# Gamma functions ----------------------------------------------------------------------------------

#: Bernoulli numbers B_2, B_4, ... (Abramowitz and Stegun, table 23.2).
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_EULER = 0.57721566490153286
#: zeta(k) - 1 for k = 2, 3, ... (Abramowitz and Stegun, table 23.3).
_ZETA = (
    0.6449340668482264, 0.2020569031595943, 0.08232323371113819, 0.03692775514336993,
    0.01734306198444914, 0.008349277381922827, 0.004077356197944339, 0.002008392826082214,
    0.0009945751278180853, 0.0004941886041194646, 0.0002460865533080483, 0.0001227133475784891,
    6.124813505870483e-05, 3.058823630702049e-05, 1.528225940865187e-05, 7.637197637899762e-06,
    3.817293264999840e-06, 1.908212716553939e-06, 9.539620338727961e-07, 4.769329867878065e-07,
    2.384505027277330e-07, 1.192199259653111e-07, 5.960818905125948e-08, 2.980350351465228e-08,
    1.490155482836504e-08, 7.450711789835429e-09, 3.725334024788457e-09, 1.862659723513049e-09,
)  # fmt: skip


def _from_integer(t: Tensor) -> Tensor:
    """t minus the next integer, exactly; t itself close to 0, whose sign stays."""
    return _ops.where(_ops.less(_ops.abs(t), 0.5), t, _ops.sub(t, _ops.round(t)))


@method()
@one_plan
@in_float32
def lgamma(input: Any) -> Tensor:
    """log |Gamma(x)|, infinite at 0 and the negative integers.

    Close to 1 and 2, where it is 0, its series (Abramowitz and Stegun, 6.1.33), from there to 8 or 12
    by the recurrence, beyond Stirling's series (6.1.41); for x < 1/2 by reflection (6.1.17).
    """
    x = _float(input, "lgamma")
    last, terms, stirling_terms = (12, 26, 8) if x.dtype == _core.float64 else (8, 13, 4)
    low = _ops.less(x, 0.5)
    y = _ops.where(low, _ops.sub(1.0, x), x)
    far = _ops.greater(y, last + 0.5)
    near = _ops.where(far, 2.0, y)
    whole = _ops.floor(_ops.add(near, 0.5))
    d = _ops.sub(near, whole)
    series = _ops.full([], 0.0, x.dtype)
    for n in range(terms, 1, -1):
        series = _ops.sub(_ZETA[n - 2] / n, _ops.mul(d, series))
    series = _ops.mul(d, _ops.add(1 - _EULER, _ops.mul(d, series)))  # log Gamma(2 + d)
    product = _ops.full([], 1.0, x.dtype)
    for k in range(1, last):  # Gamma(y) / Gamma(2 + d)
        factor = _ops.where(_ops.greater(whole, k + 1.5), _ops.sub(near, float(k)), 1.0)
        product = _ops.mul(product, factor)
    first = _ops.less(whole, 1.5)
    log = _ops.log(_ops.where(_ops.logical_or(far, first), y, product))
    close = _ops.add(series, _ops.where(first, _ops.neg(log), log))
    inverse = _ops.reciprocal(y)
    square, tail = _ops.square(inverse), _ops.full([], 0.0, x.dtype)
    for n in range(stirling_terms, 0, -1):
        tail = _ops.add(_BERNOULLI[n - 1] / (2 * n * (2 * n - 1)), _ops.mul(square, tail))
    tail = _ops.add(_ops.mul(inverse, tail), 0.5 * math.log(2 * math.pi))
    stirling = _ops.add(_ops.sub(_ops.mul(_ops.sub(y, 0.5), log), y), tail)
    above = _ops.where(far, stirling, close)
    turn = _ops.abs(_ops.sin(_ops.mul(_ops.where(low, _from_integer(x), 0.5), math.pi)))
    reflected = _ops.sub(_ops.sub(math.log(math.pi), _ops.log(turn)), above)
    out = _ops.where(low, reflected, above)
    endless = _ops.logical_or(_ops.isinf(x), _ops.equal(turn, 0))
    return _ops.where(endless, math.inf, out)


@method()
@one_plan
def digamma(input: Any) -> Tensor:
    """The derivative of log Gamma(x): infinite at 0, NaN at the negative integers.

    Its asymptotic series (Abramowitz and Stegun, 6.3.18) beyond x, brought back by the recurrence; for
    x < 1/2 by reflection (6.3.7). In float64, whatever x is.
    """
    x = _float(input, "digamma")
    # shorter types are computed in float64 too, and need fewer of its digits
    steps, terms = (10, 8) if x.dtype == _core.float64 else (6, 5)
    t = _ops.cast(x, _core.float64)
    low = _ops.less(t, 0.5)
    y = _ops.where(low, _ops.sub(1.0, t), t)
    total = _ops.reciprocal(y)
    for k in range(1, steps):
        total = _ops.add(total, _ops.reciprocal(_ops.add(y, float(k))))
    z = _ops.add(y, float(steps))
    square, series = _ops.square(_ops.reciprocal(z)), _ops.full([], 0.0, _core.float64)
    for n in range(terms, 0, -1):
        series = _ops.mul(square, _ops.add(_BERNOULLI[n - 1] / (2 * n), series))
    above = _ops.sub(_ops.sub(_ops.sub(_ops.log(z), _ops.div(0.5, z)), series), total)
    part = _from_integer(t)
    angle = _ops.mul(_ops.where(low, part, 0.25), math.pi)
    cotangent = _ops.div(_ops.cos(angle), _ops.sin(angle))  # (a tangent is too large at 1/2)
    out = _ops.where(low, _ops.sub(above, _ops.mul(math.pi, cotangent)), above)
    pole = _ops.logical_and(_ops.equal(part, 0), _ops.less(t, 0))
    return _ops.cast(_ops.where(pole, math.nan, out), x.dtype)


def pows(input: Any, exponent: Any) -> Tensor:
    """input to the power of exponent, elementwise."""
    return _ops.pow(input, exponent)


def eps(x: Any) -> Tensor:
    """The gap between 1 and the next number of x's dtype, in x's shape."""
    t = arguments.tensor(x, "Eps", "x")
    return _ops.full(list(t.shape), gap_at_one(t.dtype), t.dtype)


@method(other="y")
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-05) -> Tensor:
    """Whether two elements differ by less than the tolerance."""
    return _ops.less(_ops.abs(_ops.sub(x, y)), tolerance)


@method()
def is_floating_point(input: Any) -> bool:
    """Whether the dtype of a tensor is a real floating type."""
    dtype = arguments.tensor(input, "is_floating_point").dtype
    return dtype.is_floating and not dtype.is_complex
