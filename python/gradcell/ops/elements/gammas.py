"""Functions about the gamma function: its logarithm and that one's derivatives, Hurwitz's zeta, incomplete
gamma functions.

All but the logarithm are computed in float64; composed of ops, so that they have derivatives of any order
with respect to all arguments.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.errors import bad_value
from gradcell.ops.control.loops import ForiLoop
from gradcell.ops.method import method
from gradcell.ops.one_plan import in_float32, one_plan

__all__ = [
    "digamma", "igamma", "igammac", "lgamma", "mvlgamma", "polygamma", "zeta",
]  # fmt: skip

_ops = _core.ops

#: Bernoulli's numbers B_2k / (2k)!, k from 1 on (Abramowitz and Stegun 23.1.3 gives the B_2k).
_BERNOULLI = tuple(
    b / math.factorial(2 * k)
    for k, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
                           43867 / 798, -174611 / 330), 1)
)  # fmt: skip
_TERMS = 10  #: that are added one by one before Euler and Maclaurin's sum
_STEPS = (
    160  #: of a series or a continued fraction, enough up to the a from which an integral is taken
)
_LARGE = 100.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


def _pair(x: Any, y: Any, op: str, names: tuple[str, str]) -> tuple[Any, Tensor, Tensor]:
    """The dtype of the result, and both arguments in float64 and in one shape."""
    a, b = (arguments.floating(t) for t in arguments.operands(x, y, op, names))
    dtype = _ops.add(a, b).dtype
    shape = list(np.broadcast_shapes(tuple(a.shape), tuple(b.shape)))
    a, b = (_ops.broadcast_to(_ops.cast(t, _core.float64), shape) for t in (a, b))
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
    power = _ops.mul(_ops.where(endless, 2.0, s), kept)
    base = _ops.mul(_ops.where(endless, 1.0, q), kept)
    total: Any = 0.0
    for k in range(_TERMS):
        total = _ops.add(_power(_ops.add(base, float(k)), power), total)
    n = _ops.add(base, float(_TERMS))
    last = _power(n, power)
    # n^(1 - s) / (s - 1), at s = 1 but for what is small beside 1 / (s - 1).
    at_one = _ops.sub(_ops.reciprocal(_ops.sub(power, 1.0)), _ops.log(_ops.abs(n)))
    rest = _ops.mul(last, _ops.div(n, _ops.sub(_ops.where(one, 2.0, power), 1.0)))
    total = _ops.add(total, _ops.add(_ops.where(one, at_one, rest), _ops.mul(last, 0.5)))
    factor, square = _ops.div(power, n), _ops.square(n)
    for k, number in enumerate(_BERNOULLI):
        total = _ops.add(total, _ops.mul(_ops.mul(last, factor), number))
        step = _ops.mul(_ops.add(power, 2.0 * k + 1), _ops.add(power, 2.0 * k + 2))
        factor = _ops.div(_ops.mul(factor, step), square)
    # 0, and its reciprocal infinite: by q falling, by s growing, as q^-s is above 0.
    apart = _ops.sub(_ops.sub(q, _ops.floor(q)), _ops.sub(s, _ops.stop_gradient(s)))
    found = _ops.where(endless, _ops.reciprocal(_ops.where(endless, apart, 1.0)), total)
    found = _ops.where(_ops.logical_or(broken, _ops.less(s, 1)), _ops.add(total, math.nan), found)
    return _ops.cast(found, dtype)


def _power(base: Any, s: Any) -> Tensor:
    """base^-s for a base that may be negative where s is an integer."""
    size = _ops.exp(_ops.mul(_ops.neg(s), _ops.log(_ops.abs(base))))
    odd = _ops.equal(_ops.mod(s, 2.0), 1)
    return _ops.where(_ops.logical_and(_ops.less(base, 0), odd), _ops.neg(size), size)


def polygamma(n: Any, input: Any) -> Tensor:
    """The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, input); n: an integer or a tensor of one.

    Raises ValueError for a negative n.
    """
    order = int(n)
    if order < 0:
        bad_value(f"polygamma: n must not be negative, got {order}")
    x = arguments.floating(arguments.tensor(input, "polygamma"))
    if order == 0:
        return digamma(x)
    sign = -1.0 if order % 2 == 0 else 1.0
    return _ops.mul(zeta(float(order + 1), x), sign * math.factorial(order))


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
        total = _ops.add(lgamma(_ops.sub(x, j / 2)), total)
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
    dtype, a, x = _pair(input, other, op, ("input", "other"))
    bad = _ops.logical_or(_ops.less_equal(a, 0), _ops.less(x, 0))
    bad = _ops.logical_or(bad, _ops.logical_or(_ops.isnan(a), _ops.isnan(x)))
    none, all_ = _ops.less_equal(x, 0), _ops.isinf(x)
    usual = _ops.logical_not(_ops.logical_or(bad, _ops.logical_or(none, all_)))
    start = _ops.logical_and(none, _ops.logical_not(bad))  # 0, where a series about x has no terms
    a0, x0 = _ops.where(start, a, 1.0), _ops.where(start, x, 0.0)
    first = _ops.mul(_ops.lower_gamma(x0, _ops.sub(a0, 1.0)), _ops.exp(_ops.neg(lgamma(a0))))
    a, x = _ops.where(usual, a, 1.0), _ops.where(usual, x, 1.0)
    large = _ops.greater(a, _LARGE)
    below = _ops.less(x, _ops.add(a, 1.0))
    series = _ops.logical_and(below, _ops.logical_not(large))
    fraction = _ops.logical_not(_ops.logical_or(below, large))
    # e^(a log x - x - lgamma(a)), of which all three are parts.
    scale = _ops.exp(_ops.sub(_ops.sub(_ops.mul(a, _ops.log(x)), x), lgamma(a)))
    lower = _ops.mul(scale, _series(*(_ops.where(series, t, 1.0) for t in (a, x))))
    upper = _ops.mul(scale, _fraction(_ops.where(fraction, a, 1.0), _ops.where(fraction, x, 3.0)))
    tail = _tail(_ops.where(large, a, _LARGE), _ops.where(large, x, _LARGE))
    far = _ops.logical_and(large, _ops.greater(x, _ops.sub(a, 1.0)))
    lower, upper = (_ops.where(large, tail, part) for part in (lower, upper))
    by_p = _ops.logical_or(series, _ops.logical_and(large, _ops.logical_not(far)))
    p = _ops.where(by_p, lower, _ops.sub(1.0, upper))
    q = _ops.where(by_p, _ops.sub(1.0, lower), upper)
    q = _ops.where(none, _ops.sub(1.0, first), _ops.where(all_, 0.0, q))
    p = _ops.where(none, first, _ops.where(all_, 1.0, p))
    p, q = (_ops.cast(_ops.where(bad, math.nan, t), dtype) for t in (p, q))
    return p, q


def _series(a: Tensor, x: Tensor) -> Tensor:
    """The sum of x^n / (a (a + 1) ... (a + n)) over n = 0, 1, ... (Abramowitz and Stegun 6.5.29)."""

    def step(n: Any, state: Any) -> Any:
        total, term = state
        term = _ops.mul(term, _ops.div(x, _ops.add(a, _ops.cast(n, a.dtype))))
        return _ops.add(total, term), term

    first = _ops.reciprocal(a)
    return ForiLoop()(1, _STEPS, step, (first, first), unroll=False)[0]  # type: ignore[no-any-return]


def _fraction(a: Tensor, x: Tensor) -> Tensor:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)), by its convergents' differences (Abramowitz and
    Stegun 6.5.31; Press et al., Numerical Recipes, section 5.2, Lentz's way)."""
    b = _ops.sub(_ops.add(x, 1.0), a)

    def step(n: Any, state: Any) -> Any:
        total, above, below = state
        k = _ops.cast(n, a.dtype)
        numerator = _ops.mul(k, _ops.sub(a, k))
        at = _ops.add(b, _ops.mul(k, 2.0))
        below = _ops.reciprocal(_ops.add(at, _ops.mul(numerator, below)))
        above = _ops.add(at, _ops.div(numerator, above))
        return _ops.mul(total, _ops.mul(above, below)), above, below

    below = _ops.reciprocal(b)
    above = _ops.full(list(b.shape), 1e30, b.dtype)
    return ForiLoop()(1, _STEPS, step, (below, above, below), unroll=False)[0]  # type: ignore[no-any-return]


def _tail(a: Tensor, x: Tensor) -> Tensor:
    """Q(a, x) for x > a - 1, else P(a, x), for a large a: Gauss and Legendre's rule from x to where the
    integrand is nothing, or from there to x (Press et al., Numerical Recipes, third edition, section 6.2)."""
    top, spread = _ops.sub(a, 1.0), _ops.sqrt(a)
    above = _ops.greater(x, top)
    end = _ops.where(
        above,
        _ops.maximum(_ops.add(top, _ops.mul(spread, 11.5)), _ops.add(x, _ops.mul(spread, 6.0))),
        _ops.maximum(
            0.0,
            _ops.minimum(_ops.sub(top, _ops.mul(spread, 7.5)), _ops.sub(x, _ops.mul(spread, 5.0))),
        ),
    )
    end = _ops.stop_gradient(end)
    half = _ops.mul(_ops.sub(end, x), 0.5)
    shape = [*x.shape, 1]
    middle = _ops.reshape(_ops.mul(_ops.add(end, x), 0.5), shape)
    t = _ops.add(_ops.mul(_ops.reshape(half, shape), Tensor(_NODES, x.dtype)), middle)
    first = _ops.reshape(top, shape)
    lead = _ops.sub(_ops.mul(top, _ops.log(top)), top)
    # e^(-(t - top) + top (log t - log top)), times e^(top log top - top - lgamma(a)).
    inside = _ops.sub(_ops.mul(first, _ops.sub(_ops.log(t), _ops.log(first))), _ops.sub(t, first))
    total = _ops.reduce_sum(_ops.mul(_ops.exp(inside), Tensor(_WEIGHTS, x.dtype)), [x.ndim], False)
    signed = _ops.where(above, half, _ops.neg(half))
    return _ops.mul(_ops.mul(total, signed), _ops.exp(_ops.sub(lead, lgamma(a))))


# Log gamma and its derivative ---------------------------------------------------------------------

#: Bernoulli numbers B_2, B_4, ... (Abramowitz and Stegun, table 23.2).
_BERNOULLI_NUMBERS = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
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
    x = arguments.floating(arguments.operand(input, "lgamma", "input"))
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
        tail = _ops.add(_BERNOULLI_NUMBERS[n - 1] / (2 * n * (2 * n - 1)), _ops.mul(square, tail))
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
    x = arguments.floating(arguments.operand(input, "digamma", "input"))
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
        series = _ops.mul(square, _ops.add(_BERNOULLI_NUMBERS[n - 1] / (2 * n), series))
    above = _ops.sub(_ops.sub(_ops.sub(_ops.log(z), _ops.div(0.5, z)), series), total)
    part = _from_integer(t)
    angle = _ops.mul(_ops.where(low, part, 0.25), math.pi)
    cotangent = _ops.div(_ops.cos(angle), _ops.sin(angle))  # (a tangent is too large at 1/2)
    out = _ops.where(low, _ops.sub(above, _ops.mul(math.pi, cotangent)), above)
    pole = _ops.logical_and(_ops.equal(part, 0), _ops.less(t, 0))
    return _ops.cast(_ops.where(pole, math.nan, out), x.dtype)
