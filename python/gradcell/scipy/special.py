"""scipy.special's functions of tensors, differentiable to any order in all real arguments but orders.

Those that gradcell.ops has are these ops under SciPy's names; the others are computed in float64. Bessel
functions are of one order, a number.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value
from gradcell.ops.decorators import one_plan
from gradcell.ops.elements import bessels, gammas
from gradcell.ops.matrices.factorisations import _differentiable

__all__ = [
    "beta", "betainc", "betaln", "digamma", "erf", "erfc", "erfcinv", "erfinv", "expit", "gamma", "gammainc",
    "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jn", "k0", "k0e", "k1", "k1e",
    "logit", "logsumexp", "multigammaln", "polygamma", "psi", "rgamma", "xlogy", "y0", "y1", "yn", "zeta",
]  # fmt: skip
__dir__ = sorted(__all__).copy


digamma = psi = ops.digamma
erf, erfc, erfinv = ops.erf, ops.erfc, ops.erfinv
expit, logit, logsumexp, xlogy = ops.sigmoid, ops.logit, ops.logsumexp, ops.xlogy
gammainc, gammaincc, gammaln = ops.igamma, ops.igammac, ops.lgamma
multigammaln, polygamma, zeta = ops.mvlgamma, ops.polygamma, ops.zeta
i0, i0e, i1, i1e = ops.bessel_i0, ops.bessel_i0e, ops.bessel_i1, ops.bessel_i1e
k0, k0e, k1, k1e = ops.bessel_k0, ops.bessel_k0e, ops.bessel_k1, ops.bessel_k1e
j0, j1, y0, y1 = ops.bessel_j0, ops.bessel_j1, ops.bessel_y0, ops.bessel_y1


def _wide(x: Any, name: str) -> tuple[Tensor, Any]:
    """x in float64, and the dtype of the result."""
    given = arguments.floating(arguments.tensor(x, name, "x"))
    return _ops.cast(given, _core.float64), given.dtype


# Gamma and beta -----------------------------------------------------------------------------------


def _gamma_from_half(y: Tensor, power: float) -> Tensor:
    """Gamma(y)^power, of which it is 1 or -1, for y >= 1/2: the recurrence from 2 on, Stirling's series
    beyond 12."""
    far = _ops.greater(y, 12.5)
    near = _ops.where(far, 2.0, y)
    whole = _ops.floor(near + 0.5)
    product = _ops.full([], 1.0, y.dtype)
    for k in range(1, 12):
        factor = _ops.where(_ops.greater(whole, k + 1.5), near - float(k), 1.0)
        product = product * factor
    first = _ops.less(whole, 1.5)
    product = _ops.where(first, near, product)
    product = _ops.where(
        first if power > 0 else _ops.logical_not(first), _ops.reciprocal(product), product
    )
    close = _ops.exp(gammas._log_gamma_from_2(near - whole) * power)
    large = _ops.where(far, y, 13.0)
    # The square of this root, and the root's derivative, may overflow earlier than the result.
    root = _ops.pow(large, (large * 0.5 - 0.25) * power)
    exponent = (gammas._stirling_rest(large) - large) * power
    scale = _ops.exp(exponent) * math.sqrt(2 * math.pi) ** power
    return _ops.where(far, root * scale * root, close * product)


def _gamma(x: Any, name: str, power: float) -> Tensor:
    """By reflection below 1/2 (Abramowitz and Stegun 6.1.17)."""
    t, dtype = _wide(x, name)
    low, part = _ops.less(t, 0.5), gammas._from_integer(t)
    endless = _ops.greater(t, 171.7)
    y = _ops.where(endless, 1.0, t)
    odd = _ops.logical_and(low, _ops.equal(_ops.mod(_ops.round(t), 2.0), 1))
    turn = _ops.sin(_ops.where(low, part, 0.5) * math.pi) / math.pi
    turn = _ops.where(odd, -turn, turn)
    turn = turn if power < 0 else _ops.reciprocal(turn)
    mirrored = turn * _gamma_from_half(_ops.where(low, 1.0 - t, 1.0), -power)
    found = _ops.where(low, mirrored, _gamma_from_half(_ops.where(low, 1.0, y), power))
    if power > 0:
        pole = _ops.logical_and(_ops.equal(part, 0), _ops.less(t, 0))
        found = _ops.where(pole, math.nan, found)
    return _ops.cast(_ops.where(endless, math.inf if power > 0 else 0.0, found), dtype)


@one_plan
def gamma(x: Any) -> Tensor:
    """The gamma function; NaN at negative integers, infinite at 0 with its sign."""
    return _gamma(x, "gamma", 1.0)


@one_plan
def rgamma(x: Any) -> Tensor:
    """1 / gamma(x), 0 at its poles."""
    return _gamma(x, "rgamma", -1.0)


def _stirling(x: Tensor) -> Tensor:
    """log Gamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2 for x > 0."""
    large = _ops.greater(x, 8.0)
    y = _ops.where(large, 1.0, x)
    close = ops.lgamma(y) - (y - 0.5) * _ops.log(y) + (y - 0.5 * math.log(2 * math.pi))
    return _ops.where(large, gammas._stirling_rest(_ops.where(large, x, 8.0)), close)


def _ordered(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The smaller and the larger; of two equal ones a: second derivatives stay right."""
    below = _ops.less_equal(a, b)
    return _ops.where(below, a, b), _ops.where(below, b, a)


def _log_beta(a: Tensor, b: Tensor) -> Tensor:
    """log B(a, b) for positive numbers, in which nothing large cancels."""
    (least, most), total = _ordered(a, b), a + b
    rests = _stirling(least) + _stirling(most) - _stirling(total)
    share = (least - 0.5) * _ops.log(least / total)
    other = (most - 0.5) * _ops.log1p(least / most)
    ends = 0.5 * math.log(2 * math.pi) - _ops.log(total) * 0.5
    return rests + ends + (share - other)


def _sign_of_gamma(x: Tensor) -> Tensor:
    odd = _ops.equal(_ops.mod(_ops.floor(x), 2.0), 1)
    return _ops.where(_ops.logical_and(_ops.less(x, 0), odd), -1.0, 1.0)


def _betaln(a: Tensor, b: Tensor) -> Tensor:
    (least, most), total = _ordered(a, b), a + b
    positive = _ops.greater(least, 0)
    inside = (_ops.where(positive, t, 1.0) for t in (a, b))
    # log Gamma(most) - log Gamma(total) where these are large, by Stirling's series.
    large = _ops.logical_and(_ops.greater(total, 8.0), _ops.less_equal(least, 0))
    low, high, both = (
        _ops.where(large, t, w) for t, w in ((least, -0.5), (most, 9.0), (total, 8.5))
    )
    apart = gammas._stirling_rest(high) - gammas._stirling_rest(both)
    bend = (both - 0.5) * _ops.log1p(low / high)
    apart = apart + low - (bend + low * _ops.log(high))
    first, second, third = (ops.lgamma(_ops.where(positive, 1.0, t)) for t in (least, most, total))
    outside = first + _ops.where(large, apart, second - third)
    return _ops.where(positive, _log_beta(*inside), outside)


@one_plan
def betaln(a: Any, b: Any) -> Tensor:
    """The logarithm of |beta(a, b)|."""
    dtype, a, b = gammas._pair(a, b, "betaln", ("a", "b"))
    return _ops.cast(_betaln(a, b), dtype)


@one_plan
def beta(a: Any, b: Any) -> Tensor:
    """The beta function, gamma(a) gamma(b) / gamma(a + b)."""
    dtype, a, b = gammas._pair(a, b, "beta", ("a", "b"))
    sign = _sign_of_gamma(a) * _sign_of_gamma(b) * _sign_of_gamma(a + b)
    return _ops.cast(_ops.exp(_betaln(a, b)) * sign, dtype)


def betainc(a: Any, b: Any, x: Any) -> Tensor:
    """The regularised incomplete beta function: the integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, over
    beta(a, b) (Abramowitz and Stegun 6.6.2). NaN unless a > 0, b > 0 and 0 <= x <= 1."""
    return _incomplete_beta(a, b, x)[0]


@one_plan
def _incomplete_beta(a: Any, b: Any, x: Any, y: Any = None) -> tuple[Tensor, Tensor]:
    """betainc and 1 - betainc; y: 1 - x, if it is known better than x says."""
    x, dtype = _wide(x, "betainc")
    kind, a, b = gammas._pair(a, b, "betainc", ("a", "b"))
    dtype = (_ops.full([], 0, kind) + _ops.full([], 0, dtype)).dtype
    shape = list(np.broadcast_shapes(*(tuple(t.shape) for t in (a, b, x))))
    y = 1.0 - x if y is None else _ops.cast(y, _core.float64)
    a, b, x, y = (_ops.broadcast_to(t, shape) for t in (a, b, x, y))
    good = _ops.logical_and(_ops.greater(a, 0), _ops.greater(b, 0))
    good = _ops.logical_and(
        good, _ops.logical_and(_ops.greater_equal(x, 0), _ops.greater_equal(y, 0))
    )
    good = _ops.logical_and(good, _ops.logical_and(_ops.isfinite(a), _ops.isfinite(b)))
    first, last = (_ops.logical_and(good, _ops.equal(t, 0)) for t in (x, y))
    edge = _ops.logical_or(_ops.logical_not(good), _ops.logical_or(first, last))
    # x^a (1 - a (b - 1) x / (a + 1)) / (a B), of which derivatives at 0 are those of powers.
    ends = []
    for at, p, q, t in ((first, a, b, x), (last, b, a, y)):
        p, q, t = (_ops.where(at, v, w) for v, w in ((p, 1.0), (q, 1.0), (t, 0.0)))
        bend = p * (q - 1.0) * t / (p + 1.0)
        size = p * _ops.exp(_log_beta(p, q))
        ends.append(_ops.pow(t, p) * (1.0 - bend) / size)
    a, b, x, y = (_ops.where(edge, v, t) for v, t in ((1.0, a), (1.0, b), (0.5, x), (0.5, y)))
    # I(a, b) = I(a + 1, b) + x^a y^b / (a B(a, b)), and its mirror image, where a tail falls slower than
    # e^-z or has a long flat part.
    left = _ops.greater(a * y, b * x)
    more_a = _ops.logical_or(left, _ops.less(b * x, 0.5))
    more_a = _ops.logical_and(_ops.less(a, 1.0), more_a)
    more_b = _ops.logical_or(_ops.logical_not(left), _ops.less(a * y, 0.5))
    more_b = _ops.logical_and(_ops.less(b, 1.0), more_b)
    a1, b1 = (_ops.where(c, t + 1.0, t) for c, t in ((more_a, a), (more_b, b)))
    p, q = _beta_tails(a1, b1, x, y, 40 if dtype == _core.float64 else 24)
    log_x = _ops.where(_ops.less(y, 0.5), _ops.log1p(-y), _ops.log(x))
    log_y = _ops.where(_ops.less(x, 0.5), _ops.log1p(-x), _ops.log(y))
    for more, t, v, w, sign in ((more_a, a, a, b, 1.0), (more_b, b, a1, b, -1.0)):
        exponent = v * log_x + w * log_y - _log_beta(v, w)
        step = _ops.exp(exponent) / t * _ops.where(more, sign, 0.0)
        p, q = p + step, q - step
    p = _ops.where(first, ends[0], _ops.where(last, 1.0 - ends[1], p))
    q = _ops.where(first, 1.0 - ends[0], _ops.where(last, ends[1], q))
    p, q = (_ops.cast(_ops.where(good, t, math.nan), dtype) for t in (p, q))
    return p, q


def _beta_tails(a: Tensor, b: Tensor, x: Tensor, y: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """I and 1 - I, for a >= 1 or b >= 1 of the tail that is integrated.

    By Gauss and Legendre's rule over z = log(t / (1 - t)), from x away from where t^a (1 - t)^b is largest;
    with t at s from x, the integrand over that at x is e^-d, d = s (a y - b x) + (a + b) h(s), h >= 0.
    """
    lean = a * y - b * x
    left = _ops.greater(lean, 0)
    x, y = _ops.where(left, x, y), _ops.where(left, y, x)
    a, b, lean = (
        _ops.where(left, a, b),
        _ops.where(left, b, a),
        _ops.where(left, lean, -lean),
    )
    total, small = a + b, _ops.less_equal(x, y)
    least, sign = _ops.where(small, x, y), _ops.where(small, -1.0, 1.0)

    def fall(s: Tensor, given: tuple[Tensor, ...] | list[Tensor]) -> Tensor:
        lean, total, least, sign = given
        r = s * sign
        w = least * _ops.expm1(r)
        near = _ops.less(s, 0.5)
        close = least * _exp_rest(_ops.where(near, r, 0.0))
        close = close + gammas._log_rest(_ops.where(near, w, 0.0))
        away = _ops.log1p(_ops.where(near, 0.0, w)) - least * r
        return s * lean + total * _ops.where(near, close, away)

    flat = lean, total, least, sign
    bend = total * x * (y * (2 * gammas._TOP))
    end = 2 * gammas._TOP / (lean + _ops.sqrt(_ops.square(lean) + bend))
    for _ in range(3):  # Newton's steps, from below or above to above
        there = x * _ops.exp(-end)
        speed = a - total * (there / (there + y))
        end = end + (gammas._TOP - fall(end, flat)) / speed
    end = _ops.stop_gradient(end)
    nodes, weights = gammas._RULES[count]
    shape = [*x.shape, 1]
    s = _ops.reshape(end, shape) * Tensor(nodes**2, x.dtype)
    values = _ops.exp(-fall(s, [_ops.reshape(t, shape) for t in flat]))
    values = values * Tensor(2 * nodes * weights, x.dtype)
    density = _ops.exp(_log_beta_density(a, b, x, y, lean))
    tail = _ops.reduce_sum(values, [x.ndim], False) * end * density
    rest = 1.0 - tail
    return _ops.where(left, tail, rest), _ops.where(left, rest, tail)


def _exp_rest(r: Tensor) -> Tensor:
    """e^r - 1 - r for |r| < 1/2."""
    series: Tensor | float = 0.0
    for n in range(14, 1, -1):
        series = r * series + 1 / math.factorial(n)
    return _ops.square(r) * series


def _log_beta_density(a: Tensor, b: Tensor, x: Tensor, y: Tensor, lean: Tensor) -> Tensor:
    """log(x^a y^b / B(a, b)) by Stirling's formula; lean: a y - b x."""
    total = a + b
    exponent = _stirling(total) - (_stirling(a) + _stirling(b))
    for t, at, change in ((a, x, -lean), (b, y, lean)):
        ratio = at / t * total
        exponent = exponent + t * gammas._log_rest(change / t, ratio)
    share = _ops.log(a / total) + _ops.log(b * (0.5 / math.pi))
    return exponent + share * 0.5


@one_plan
def erfcinv(y: Any) -> Tensor:
    """The x whose erfc is y; infinite at 0 and 2, NaN outside. Newton's method for log(erfc(x)), from the
    first term of its asymptotic series."""
    t, dtype = _wide(y, "erfcinv")
    mirror = _ops.greater(t, 1.0)
    low = _ops.where(mirror, 2.0 - t, t)
    inside = _ops.greater(low, 0)
    middle = _ops.greater(low, 0.4)
    log = _ops.log(_ops.where(_ops.logical_and(inside, _ops.logical_not(middle)), low, 0.1))
    x = _ops.sqrt(-log - _ops.log(log * -math.pi) * 0.5)
    for _ in range(4):
        value = _ops.erfc(x)
        slope = _ops.exp(-_ops.square(x)) * (2 / math.sqrt(math.pi)) / value
        x = x + (_ops.log(value) - log) / slope
    x = _ops.where(middle, _ops.erfinv(_ops.where(middle, 1.0 - low, 0.0)), x)
    x = _ops.where(inside, x, _ops.where(_ops.equal(low, 0), math.inf, math.nan))
    x = _ops.stop_gradient(_ops.where(mirror, -x, x))

    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        grown = _ops.exp(_ops.square(outputs[0]))
        return [cotangents[0] * (grown * (-math.sqrt(math.pi) / 2))]

    return _ops.cast(_differentiable("erfcinv", [x], [t], adjoint)[0], dtype)


# Bessel functions of any order --------------------------------------------------------------------


def _steps_down(order: int, x: Tensor) -> Tensor:
    """J_order(x) for x > 0 and an order above 1: up to x by the recurrence in its order, beyond by the ratios
    of neighbours, a continued fraction (Abramowitz and Stegun 9.1.27 and 9.1.73)."""
    inverse, ratio = 2.0 / x, _ops.full([], 0.0, x.dtype)
    ratios = {}
    for k in range(order + 8 + math.ceil(8 * order ** (1 / 3)), 1, -1):
        ratio = _ops.reciprocal(inverse * float(k) - ratio)
        ratios[k] = ratio
    before, now = ops.bessel_j0(x), ops.bessel_j1(x)
    for k in range(2, order + 1):
        up = inverse * float(k - 1) * now - before
        before, now = now, _ops.where(_ops.less_equal(float(k), x), up, now * ratios[k])
    return now


def _steps_up(order: int, x: Tensor) -> Tensor:
    before, now = ops.bessel_y0(x), ops.bessel_y1(x)
    for k in range(1, order):
        up = 2.0 * k / x * now - before
        before, now = now, _ops.where(_ops.isinf(now), now, up)
    return now


def _first(order: int, x: Tensor) -> Tensor:
    if order < 2:
        return (ops.bessel_j0, ops.bessel_j1)[order](x)
    size = _ops.abs(x)
    found = _ops.where(_ops.equal(size, 0), 0.0, _steps_down(order, size))
    return _ops.where(_ops.less(x, 0), -found, found) if order % 2 else found


def _second(order: int, x: Tensor) -> Tensor:
    return (ops.bessel_y0, ops.bessel_y1)[order](x) if order < 2 else _steps_up(order, x)


@functools.cache
def _debye(count: int) -> list[np.ndarray]:
    """The polynomials u_k(p), k = 0, 1, ... (Abramowitz and Stegun 9.3.10)."""
    found, p = [np.polynomial.Polynomial([1.0])], np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(count - 1):
        last = found[-1]
        found.append(p**2 * (1 - p**2) * last.deriv() / 2 + ((1 - 5 * p**2) * last).integ() / 8)
    return [u.coef for u in found]


def _scaled(order: float, x: Tensor) -> Tensor:
    """e^-x I_order(x) for x > 0: its series, and its asymptotic series for large x or orders (Abramowitz and
    Stegun 9.6.10, 9.7.1, 9.7.7)."""
    if order > 15:
        z = x / order
        root = _ops.sqrt(_ops.square(z) + 1.0)
        exponent = _ops.reciprocal(root + z) - _ops.asinh(_ops.reciprocal(z))
        p, total = _ops.reciprocal(root), _ops.full([], 0.0, x.dtype)
        for u in _debye(14)[::-1]:
            total = total / order + bessels._polynomial(list(u), p)
        scale = _ops.sqrt(p * (1 / (2 * math.pi * order)))
        return _ops.exp(exponent * order) * scale * total
    limit = max(25.0, 0.6 * order * order)
    beyond = _ops.greater(x, limit)
    far, near = _ops.where(beyond, x, limit), _ops.where(beyond, 1.0, x)
    numbers = [1.0]
    for k in range(1, 26):
        numbers.append(numbers[-1] * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k))
    y = _ops.reciprocal(far)
    large = _ops.sqrt(y * (0.5 / math.pi)) * bessels._polynomial(numbers, y)
    square, total = _ops.square(near * 0.5), _ops.full([], 1.0, x.dtype)
    for k in range(math.ceil(1.0 * limit) + 22, 0, -1):
        total = total * square * (1 / (k * (k + order))) + 1.0
    power = _ops.pow(near * 0.5, order) * (1 / math.gamma(order + 1))
    return _ops.where(beyond, large, power * total * _ops.exp(-near))


def _modified(order: float, x: Tensor) -> Tensor:
    """e^-|x| I_order(x)."""
    size, whole = _ops.abs(x), order == round(order)
    order = abs(order) if whole else order
    at_zero = (
        1.0 if order == 0 else 0.0 if order > 0 else math.copysign(math.inf, math.gamma(order + 1))
    )
    zero, endless = _ops.equal(size, 0), _ops.isinf(size)
    found = _scaled(order, _ops.where(_ops.logical_or(zero, endless), 1.0, size))
    found = _ops.where(zero, at_zero, _ops.where(endless, 0.0, found))
    if whole:
        return _ops.where(_ops.less(x, 0), -found, found) if order % 2 else found
    return _ops.where(_ops.less(x, 0), math.nan, found)


def _unscaled(order: float, x: Tensor) -> Tensor:
    size = _ops.exp(_ops.abs(x) * 0.5)
    found = _modified(order, x) * size * size
    return _ops.where(_ops.isinf(x), _ops.sign(_modified(order, _ops.sign(x))) * math.inf, found)


#: A family's values, and the sign in its derivative (f of order - 1 and f of order + 1) / 2; whether times
#: e^-|x|; and whether of any real order.
_FAMILIES: dict[str, tuple[Any, float, bool, bool]] = {
    "jn": (_first, -1.0, False, False),
    "yn": (_second, -1.0, False, False),
    "iv": (_unscaled, 1.0, False, True),
    "ive": (_modified, 1.0, True, True),
}


def _bessel(name: str, order: Any, x: Any) -> Tensor:
    t, dtype = _wide(x, name)
    _, _, _, real = _FAMILIES[name]
    v = arguments.number(order, name, "v" if real else "n")
    if not real and v != round(v):
        bad_value(f"{name}: the order n must be a whole number, got {order}")
    if v < -15 and v != round(v):
        bad_value(f"{name}: an order v below -15 must be a whole number, got {order}")
    return _ops.cast(_of_order(name, v if real else int(v), t), dtype)


def _of_order(name: str, order: Any, x: Tensor) -> Tensor:
    values, sign, scaled, real = _FAMILIES[name]
    if not real and order < 0:
        found = _of_order(name, -order, x)
        return -found if order % 2 else found

    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        above, below = (_of_order(name, order + k, xs[0]) for k in (1, -1))
        slope = (below + above * sign) * 0.5
        if scaled:
            slope = slope - _ops.sign(xs[0]) * outputs[0]
        return [cotangents[0] * slope]

    return _differentiable(name, [_ops.stop_gradient(values(order, x))], [x], adjoint)[0]


@one_plan
def jn(n: Any, x: Any) -> Tensor:
    """The Bessel function of the first kind of the whole order n."""
    return _bessel("jn", n, x)


@one_plan
def yn(n: Any, x: Any) -> Tensor:
    """The Bessel function of the second kind of the whole order n; NaN below zero."""
    return _bessel("yn", n, x)


@one_plan
def iv(v: Any, x: Any) -> Tensor:
    """The modified function of the first kind, of the real order v; NaN below zero unless v is whole."""
    return _bessel("iv", v, x)


@one_plan
def ive(v: Any, x: Any) -> Tensor:
    """iv(v, x) e^-|x|."""
    return _bessel("ive", v, x)
