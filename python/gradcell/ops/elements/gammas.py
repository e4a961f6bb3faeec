"""Functions about the gamma function: its logarithm and that one's derivatives, Hurwitz's zeta, incomplete
gamma functions.

All but the logarithm are computed in float64; composed of ops, so that they have derivatives of any order
with respect to all arguments.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcell._core import Tensor, float64, ops as _ops
from gradcell.base import arguments, bad_type, bad_value
from gradcell.ops.decorators import method, one_plan, wide_plan

__all__ = [
    "digamma", "igamma", "igammac", "lgamma", "mvlgamma", "polygamma", "zeta",
]  # fmt: skip


#: Bernoulli's numbers B_2, B_4, ... (Abramowitz and Stegun, table 23.2).
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
    854513 / 138, -236364091 / 2730,
)  # fmt: skip
_TERMS = 10  #: that are added one by one before Euler and Maclaurin's sum
#: Gauss and Legendre's nodes and weights from 0 to 1, for float64 and less.
_RULES = {
    n: ((nodes + 1) / 2, weights / 2)
    for n in (40, 24)
    for nodes, weights in [np.polynomial.legendre.leggauss(n)]
}
_LARGE = 10.0  #: the a beyond which Stirling's series holds
_TOP = 40.0  #: e^-_TOP is nothing beside 1


def _real(x: Tensor, op: str) -> Tensor:
    """The tensor, integers as floats. Raises TypeError for complex numbers."""
    if x.dtype.is_complex:
        bad_type(f"{op}: not defined for complex numbers, got {x.dtype}")
    return arguments.floating(x)


def _pair(x: Any, y: Any, op: str, names: tuple[str, str]) -> tuple[Any, Tensor, Tensor]:
    """The dtype of the result, and both arguments in float64 and in one shape."""
    a, b = (_real(t, op) for t in arguments.operands(x, y, op, names))
    dtype = (a + b).dtype
    shape = list(np.broadcast_shapes(tuple(a.shape), tuple(b.shape)))
    a, b = (_ops.broadcast_to(_ops.cast(t, float64), shape) for t in (a, b))
    return dtype, a, b


@one_plan
def zeta(input: Any, other: Any) -> Tensor:
    """Hurwitz's zeta function, the sum of (other + k)^-input over k = 0, 1, ... (Abramowitz and Stegun
    23.2): Euler and Maclaurin's formula after ten terms.

    inf at input 1 and at other 0, -1, ... for even input; NaN below input 1, at negative integers for odd
    input and below zero unless input is an integer. Derivatives are those of the formula for any input
    above 0; at 1 and at poles they are those from above, infinite ones among them; NaN where it does not
    hold.
    """
    dtype, s, q = _pair(input, other, "zeta", ("input", "other"))
    pole = _ops.logical_and(_ops.less_equal(q, 0), _ops.equal(q, _ops.floor(q)))
    whole, one = _ops.equal(s, _ops.floor(s)), _ops.equal(s, 1)
    even = _ops.equal(_ops.mod(s, 2.0), 0)
    broken = _ops.logical_and(_ops.less(q, 0), _ops.logical_not(whole))
    endless = _ops.logical_or(one, _ops.logical_or(even, _ops.equal(q, 0)))
    endless = _ops.logical_and(_ops.logical_and(pole, endless), _ops.greater_equal(s, 1))
    one = _ops.logical_and(one, _ops.logical_not(endless))
    nowhere = _ops.logical_or(_ops.logical_or(pole, broken), _ops.less_equal(s, 0))
    nowhere = _ops.logical_and(nowhere, _ops.logical_not(endless))
    kept = _ops.where(nowhere, math.nan, 1.0)  # a factor, so that derivatives are NaN too
    power = _ops.where(endless, 2.0, s) * kept
    base = _ops.where(endless, 1.0, q) * kept
    below = _ops.logical_and(_ops.less(q, 0), _ops.logical_not(pole))
    total = _euler_maclaurin(power, _ops.where(below, 1.0 - base, base), one)
    # All of (q + k)^-s, k from minus to plus infinity, but those before q; all are for q between 0 and 1 too.
    after = _ops.where(below, base - _ops.floor(base), 0.5)
    before = _ops.where(below, _ops.ceil(base) - base, 0.5)
    sign = _ops.where(_ops.equal(_ops.mod(power, 2.0), 1), -1.0, 1.0)
    both = _euler_maclaurin(power, after, one) + sign * _euler_maclaurin(power, before, one)
    total = _ops.where(below, both - sign * total, total)
    # 0, and its reciprocal infinite: by q falling, by s growing, as q^-s is above 0.
    apart = q - _ops.floor(q) - (s - _ops.stop_gradient(s))
    found = _ops.where(endless, _ops.reciprocal(_ops.where(endless, apart, 1.0)), total)
    found = _ops.where(_ops.logical_or(broken, _ops.less(s, 1)), total + math.nan, found)
    far = _ops.logical_and(_ops.equal(q, math.inf), _ops.greater(s, 1))
    return _ops.cast(_ops.where(far, 0.0, found), dtype)


def _euler_maclaurin(s: Tensor, q: Tensor, one: Tensor) -> Tensor:
    """The sum for q > 0: ten terms and the formula of the rest. At s = 1, what is small beside
    1 / (s - 1) with it.

    one: where s is 1.
    """

    def power(base: Tensor) -> Tensor:
        return _ops.exp(-s * _ops.log(base))

    total: Any = 0.0
    for k in range(_TERMS):
        total = power(q + float(k)) + total
    n = q + float(_TERMS)
    last = power(n)
    # n^(1 - s) / (s - 1)
    at_one = _ops.reciprocal(s - 1.0) - _ops.log(n)
    rest = last * (n / (_ops.where(one, 2.0, s) - 1.0))
    total = total + (_ops.where(one, at_one, rest) + last * 0.5)
    factor, square = s / n, _ops.square(n)
    for k, number in enumerate(_BERNOULLI[:10]):
        total = total + last * factor * (number / math.factorial(2 * k + 2))
        step = (s + (2.0 * k + 1)) * (s + (2.0 * k + 2))
        factor = factor * step / square
    return total  # type: ignore[no-any-return]


def polygamma(n: Any, input: Any) -> Tensor:
    """The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, input); n: an integer, or a one-element
    tensor.

    Raises ValueError for a negative n.
    """
    order = int(n)
    if order < 0:
        bad_value(f"polygamma: n must not be negative, got {order}")
    x = arguments.floating(arguments.tensor(input, "polygamma"))
    if order == 0:
        return digamma(x)
    sign = -1.0 if order % 2 == 0 else 1.0
    return zeta(float(order + 1), x) * (sign * math.factorial(order))


@method()
def mvlgamma(input: Any, p: int) -> Tensor:
    """The logarithm of the gamma function of p dimensions: p (p - 1) / 4 log(pi) and the sum of
    lgamma(input - j / 2) for j from 0 to p - 1 (James 1964); NaN unless input > (p - 1) / 2.

    p: the dimension, a positive int. Raises ValueError for p below 1.
    """
    count = arguments.integer(p, "mvlgamma", "p", 1)
    x = arguments.floating(arguments.tensor(input, "mvlgamma"))
    total: Any = count * (count - 1) / 4 * math.log(math.pi)
    for j in range(count):
        total = lgamma(x - j / 2) + total
    return _ops.where(_ops.greater(x, (count - 1) / 2), total, math.nan)


@method()
def igamma(input: Any, other: Any) -> Tensor:
    """The regularised lower incomplete gamma function P(input, other): the integral of t^(input - 1) e^-t
    from 0 to other, over Gamma(input) (Abramowitz and Stegun 6.5.1). NaN unless input > 0, other >= 0."""
    return _incomplete(input, other, "igamma")[0]


@method()
def igammac(input: Any, other: Any) -> Tensor:
    """1 - igamma, exact where that is small: Q(input, other) (Abramowitz and Stegun 6.5.3)."""
    return _incomplete(input, other, "igammac")[1]


@one_plan
def _incomplete(input: Any, other: Any, op: str) -> tuple[Tensor, Tensor]:
    """(P, Q): by the series about x = 0 below 1 (Abramowitz and Stegun 6.5.29), else by an integral from
    x away from where the integrand is largest."""
    dtype, a, x = _pair(input, other, op, ("input", "other"))
    bad = _ops.logical_or(_ops.less_equal(a, 0), _ops.less(x, 0))
    bad = _ops.logical_or(bad, _ops.logical_or(_ops.isnan(a), _ops.isnan(x)))
    none, all_, never = _ops.less_equal(x, 0), _ops.isinf(x), _ops.isinf(a)
    bad = _ops.logical_or(bad, _ops.logical_and(all_, never))
    edge = _ops.logical_or(_ops.logical_or(bad, none), _ops.logical_or(all_, never))
    start = _ops.logical_and(none, _ops.logical_not(bad))  # 0, where a series about x has no terms
    a0, x0 = _ops.where(start, a, 1.0), _ops.where(start, x, 0.0)
    first = _ops.lower_gamma(x0, a0 - 1.0) * _ops.exp(-lgamma(a0))
    a, x = _ops.where(edge, 1.0, a), _ops.where(edge, 1.0, x)
    small = _ops.logical_and(_ops.less(x, 1.0), _ops.less_equal(a, _LARGE))
    p_small, q_small = _near_zero(*(_ops.where(small, t, 0.5) for t in (a, x)))
    a, x = (_ops.where(small, 3.0, t) for t in (a, x))
    below = _ops.logical_and(_ops.less(x, a - 1.0), _ops.greater_equal(a, 3.0))
    part = _tail(a, x, below, 40 if dtype == float64 else 24)
    p = _ops.where(small, p_small, _ops.where(below, part, 1.0 - part))
    q = _ops.where(small, q_small, _ops.where(below, 1.0 - part, part))
    p = _ops.where(none, first, _ops.where(all_, 1.0, _ops.where(never, 0.0, p)))
    q = _ops.where(none, 1.0 - first, _ops.where(all_, 0.0, _ops.where(never, 1.0, q)))
    p, q = (_ops.cast(_ops.where(bad, math.nan, t), dtype) for t in (p, q))
    return p, q


def _near_zero(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """P and Q for x < 1: P = x^a / Gamma(a + 1) (1 + s), s = the sum of a (-x)^n / ((a + n) n!); Q without
    taking P from 1."""
    total: Any = 0.0
    for n in range(20, 0, -1):
        total = total * x + (-1) ** n / math.factorial(n) / (a + float(n))
    rest = total * x * a
    exponent = a * _ops.log(x) - _log_factorial(a)
    scale = _ops.exp(exponent)
    p = scale * (rest + 1.0)
    return p, -(_ops.expm1(exponent) + scale * rest)


def _log_factorial(a: Tensor) -> Tensor:
    """log Gamma(a + 1), exact for small a too."""
    near = _ops.less(a, 0.5)
    d = _ops.where(near, a, 0.0)
    close = _log_gamma_from_2(d) - _ops.log1p(d)
    return _ops.where(near, close, lgamma(_ops.where(near, 2.0, a + 1.0)))


def _log_rest(w: Tensor, ratio: Any = None, terms: int = 13) -> Tensor:
    """log(1 + w) - w, exact where w is small: with v = w / (2 + w), 2 artanh(v) - 2 v - v w.

    ratio: 1 + w where w may be so close to -1 that it does not say it.
    """
    near = _ops.less(_ops.abs(w), 0.5)
    least = _ops.where(near, w, 0.0)
    v = least / (least + 2.0)
    square, series = _ops.square(v), _ops.full([], 0.0, w.dtype)
    for n in range(terms, 0, -1):
        series = square * (series + 2 / (2 * n + 1))
    small = v * (series - least)
    ratio = w + 1.0 if ratio is None else ratio
    return _ops.where(near, small, _ops.log(_ops.where(near, 1.0, ratio)) - w)


def _stirling_rest(x: Tensor) -> Tensor:
    """log Gamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2 for x >= 8 (6.1.41), exact in its third derivative
    too."""
    inverse = _ops.reciprocal(x)
    square, tail = _ops.square(inverse), _ops.full([], 0.0, x.dtype)
    for n in range(12 if x.dtype == float64 else 4, 0, -1):
        tail = _BERNOULLI[n - 1] / (2 * n * (2 * n - 1)) + square * tail
    return inverse * tail


def _tail(a: Tensor, x: Tensor, below: Tensor, count: int) -> Tensor:
    """P where below, else Q, for x not between its side and the largest integrand, far from 0 if a is small:
    x^(a - 1) e^-x / Gamma(a) times the integral over d of (1 + d / x)^(a - 1) e^-d, by Gauss and Legendre's
    rule of count nodes u up to where there is nothing, d growing as 3 u^2 - 2 u^3, which powers or roots at
    the ends do not slow down."""
    u, weights = _RULES[count]
    top = a - 1.0
    sign = _ops.where(below, -1.0, 1.0)
    drop = x - top  # of the integrand's logarithm, times x
    slope, bend = _ops.abs(drop) / x, _ops.maximum(top, 0.0) / x / x
    root = _ops.sqrt(_ops.square(slope) + bend * (2 * _TOP))
    end = 2 * _TOP / (slope + root)
    for _ in range(2):  # where above it falls less than this: Newton's steps, from below to above
        fallen = end - top * _ops.log1p(end / x)
        speed = 1.0 - top / (x + end)
        more = (fallen - _TOP) / _ops.maximum(speed, 1e-300)
        end = _ops.where(below, end, end - more)
    end = _ops.where(below, _ops.minimum(end, x), end)
    step = _ops.stop_gradient(end * sign)
    shape = [*x.shape, 1]
    each = _ops.reshape(step, shape) * Tensor(u * u * (3 - 2 * u), x.dtype)
    w = each / _ops.reshape(x, shape)
    inside = _ops.reshape(top, shape) * _log_rest(w, terms=count // 3 + 2)
    inside = inside - _ops.reshape(drop, shape) * w
    values = _ops.exp(inside) * Tensor(6 * u * (1 - u) * weights, x.dtype)
    total = _ops.reduce_sum(values, [x.ndim], False)
    return total * (step * sign) * _density(a, x)


def _density(a: Tensor, x: Tensor) -> Tensor:
    """x^(a - 1) e^-x / Gamma(a), exact for large a too."""
    large = _ops.greater(a, _LARGE)
    least, y = _ops.where(large, 1.0, a), _ops.where(large, 1.0, x)
    power = _ops.pow(y, least - 1.0) * _ops.exp(-y)
    close = power * least * _ops.exp(-_log_factorial(least))
    far = _far_density(_ops.where(large, a, _LARGE), _ops.where(large, x, _LARGE))
    return _ops.where(large, _ops.exp(far), close)


def _log_density(a: Tensor, x: Tensor) -> Tensor:
    """The logarithm of _density, for x > 0."""
    large = _ops.greater(a, _LARGE)
    least, y = _ops.where(large, 1.0, a), _ops.where(large, 1.0, x)
    close = (least - 1.0) * _ops.log(y) - y + _ops.log(least) - _log_factorial(least)
    far = _far_density(_ops.where(large, a, _LARGE), _ops.where(large, x, _LARGE))
    return _ops.where(large, far, close)


def _far_density(a: Tensor, x: Tensor) -> Tensor:
    """log(x^(a - 1) e^-x / Gamma(a)) for a large a, by Stirling's series."""
    top = a - 1.0
    rest = _log_rest((x - top) / top, x / top)
    exponent = top * rest - _stirling_rest(top)
    return exponent - _ops.log(top * (2 * math.pi)) * 0.5


# Log gamma and its derivative ---------------------------------------------------------------------

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
    *(sum(float(m)**-k for m in range(5, 1, -1)) for k in range(30, 36)),
)  # fmt: skip


def _log_gamma_from_2(d: Tensor) -> Tensor:
    """log Gamma(2 + d) for |d| <= 1/2 (Abramowitz and Stegun 6.1.33), exact in its third derivative too."""
    series = _ops.full([], 0.0, d.dtype)
    for n in range(34 if d.dtype == float64 else 13, 1, -1):
        series = _ZETA[n - 2] / n - d * series
    return d * (1 - _EULER + d * series)


def _from_integer(t: Tensor) -> Tensor:
    """t minus the next integer, exactly; t itself close to 0, whose sign stays."""
    return _ops.where(_ops.less(_ops.abs(t), 0.5), t, t - _ops.round(t))


@method(wide_plan)
def lgamma(input: Any) -> Tensor:
    """log |Gamma(x)|, infinite at 0 and the negative integers.

    Close to 1 and 2, where it is 0, its series (Abramowitz and Stegun, 6.1.33), from there to 8 by
    the recurrence, beyond Stirling's series (6.1.41); for x < 1/2 by reflection (6.1.17).
    """
    x = arguments.floating(arguments.operand(input, "lgamma", "input"))
    low = _ops.less(x, 0.5)
    y = _ops.where(low, 1.0 - x, x)
    far = _ops.greater(y, 8.5)
    near = _ops.where(far, 2.0, y)
    whole = _ops.floor(near + 0.5)
    d = near - whole
    series = _log_gamma_from_2(d)
    product = _ops.full([], 1.0, x.dtype)
    for k in range(1, 8):  # Gamma(y) / Gamma(2 + d)
        factor = _ops.where(_ops.greater(whole, k + 1.5), near - float(k), 1.0)
        product = product * factor
    first = _ops.less(whole, 1.5)
    log = _ops.log(_ops.where(_ops.logical_or(far, first), y, product))
    close = series + _ops.where(first, -log, log)
    tail = _stirling_rest(y) + 0.5 * math.log(2 * math.pi)
    stirling = (y - 0.5) * log - y + tail
    above = _ops.where(far, stirling, close)
    turn = _ops.abs(_ops.sin(_ops.where(low, _from_integer(x), 0.5) * math.pi))
    reflected = math.log(math.pi) - _ops.log(turn) - above
    out = _ops.where(low, reflected, above)
    endless = _ops.logical_or(_ops.isinf(x), _ops.equal(turn, 0))
    return _ops.where(endless, math.inf, out)


@method(one_plan)
def digamma(input: Any) -> Tensor:
    """The derivative of log Gamma(x): infinite at 0, NaN at the negative integers.

    Its asymptotic series (Abramowitz and Stegun, 6.3.18) beyond x, brought back by the recurrence; for
    x < 1/2 by reflection (6.3.7). In float64, whatever x is.
    """
    x = _real(arguments.operand(input, "digamma", "input"), "digamma")
    # shorter types are computed in float64 too, and need fewer of its digits
    steps, terms = (10, 8) if x.dtype == float64 else (6, 5)
    t = _ops.cast(x, float64)
    low = _ops.less(t, 0.5)
    y = _ops.where(low, 1.0 - t, t)
    total = _ops.reciprocal(y)
    for k in range(1, steps):
        total = total + _ops.reciprocal(y + float(k))
    z = y + float(steps)
    square, series = _ops.square(_ops.reciprocal(z)), _ops.full([], 0.0, float64)
    for n in range(terms, 0, -1):
        series = square * (_BERNOULLI[n - 1] / (2 * n) + series)
    above = _ops.log(z) - 0.5 / z - series - total
    part = _from_integer(t)
    angle = _ops.where(low, part, 0.25) * math.pi
    cotangent = _ops.cos(angle) / _ops.sin(angle)  # (a tangent is too large at 1/2)
    out = _ops.where(low, above - math.pi * cotangent, above)
    pole = _ops.logical_and(_ops.equal(part, 0), _ops.less(t, 0))
    return _ops.cast(_ops.where(pole, math.nan, out), x.dtype)
