"""Bessel functions of the orders 0 and 1: series, an integral and asymptotic series (Abramowitz and Stegun,
chapter 9). Computed in float64; composed of ops, so that they have derivatives of any order."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from gradcell._core import Tensor, float64, ops as _ops
from gradcell.base import arguments
from gradcell.ops.decorators import one_plan

__all__: list[str] = []


_ORDERS = 16  #: terms of asymptotic series
_FAR = 25.0  #: from there on they are taken
_TERMS = 36  #: of J up to there: the last is below 1e-25
_EULER = 0.57721566490153286
_STEPS = np.arange(21) * 0.3  #: s of the integrals of functions of the second kind
_SHARES = [np.where(_STEPS > 0, 2.0, 1.0) * 0.3 * np.exp(-(_STEPS**2)) / math.sqrt(math.pi)]
_SHARES.append(2 * _STEPS**2 * _SHARES[0])


def _over(x: Tensor, nodes: np.ndarray) -> tuple[Tensor, Tensor]:
    """x with a dimension more at the end, and what an integral is taken over along it."""
    return _ops.reshape(x, [*x.shape, 1]), Tensor(nodes)


def _summed(values: Tensor, weights: np.ndarray) -> Tensor:
    return _ops.reduce_sum(values * Tensor(weights), [values.ndim - 1], False)


def _coefficients(order: int) -> list[float]:
    """a_k = (4 v^2 - 1) (4 v^2 - 9) ... (4 v^2 - (2 k - 1)^2) / (k! 8^k) (9.2.9, 9.7.1)."""
    found = [1.0]
    for k in range(1, _ORDERS):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return found


def _polynomial(numbers: list[float], y: Tensor) -> Tensor:
    total: Any = numbers[-1]
    for number in numbers[-2::-1]:
        total = y * total + number
    return total  # type: ignore[no-any-return]


def _phase(x: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """The cosine and the sine of x - (order / 2 + 1 / 4) pi, which is not rounded."""
    cosine, sine = (f(x) * math.sqrt(0.5) for f in (_ops.cos, _ops.sin))
    total, apart = sine + cosine, sine - cosine
    return (apart, -total) if order else (total, apart)


def _turning(x: Tensor, order: int) -> Tensor:
    """sqrt(2 / pi x) (P cos(chi) - Q sin(chi)), chi = x - (order / 2 + 1 / 4) pi (9.2.5)."""
    a, y = _coefficients(order), _ops.reciprocal(x)
    square = -_ops.square(y)
    cosine, sine = _phase(x, order)
    p, q = _polynomial(a[::2], square), _polynomial(a[1::2], square) * y
    both = p * cosine - q * sine
    return _ops.sqrt(y * (2 / math.pi)) * both


def _grown(x: Tensor, order: int, sign: float, scale: float) -> Tensor:
    """sqrt(scale / x) times the sum of sign^k a_k / x^k (9.7.1 and 2)."""
    y = _ops.reciprocal(x)
    numbers = [a * sign**k for k, a in enumerate(_coefficients(order))]
    return _ops.sqrt(y * scale) * _polynomial(numbers, y)


def _products(order: int) -> list[float]:
    """The coefficients of J_order(25 t) in the polynomials T_order(t), T_order+2(t), ...: by Neumann's
    addition theorem (9.1.75, of 2 z cos(angle)) they are +-2 J_k(z) J_k+order(z), z = 25 / 2."""
    z, j = _FAR / 2, [0.0, 1e-250]  # of order 81, 80, ...: downwards, up to a factor (Miller, 9.12)
    for k in range(80, 0, -1):
        j.append(2 * k / z * j[-1] - j[-2])
    whole = j[-1] + 2 * math.fsum(j[-3::-2])  # is 1 (9.1.46)
    j = [value / whole for value in j[::-1]]
    found = [2 * (-1) ** k * j[k] * j[k + order] for k in range(_TERMS)]
    if order == 0:  # all polynomials are 1 or -1 at 0, and the sum is to be 1 there to the last bit
        found[0] = 1 + functools.reduce(lambda pair, number: number - pair, found[:0:-1])
    return found


def _j_near(x: Tensor, order: int) -> Tensor:
    """By Clenshaw's recurrence, in Reinsch's form for small t (Oliver 1977, J. Inst. Maths Appl. 20, 379)."""
    t = x * (1 / _FAR)
    square = _ops.square(t) * 4.0  # 2 T_2 + 2, T_2 leads from each to the next
    first, *numbers = _products(order)
    total: Any = numbers[-1]
    pair = total  # of two neighbouring totals
    for number in numbers[-2::-1]:
        pair = square * total + number - pair
        total = pair - total
    if order:  # the sum is t (total_0 - total_1)
        pair = square * total + first - pair
        return _ops.mul(t, pair - total * 2.0)
    return _ops.sub(square * 0.5 * total + first, pair)


def _second_near(x: Tensor, order: int, sign: float) -> Tensor:
    """log(x / 2) f(x) - half of its series with digammas, f = J for sign -1 (9.1.11, 9.1.13), I for 1
    (9.6.11)."""
    plain, weighted, term = [], [], 1.0
    for k in range(22):
        psi = sum(1 / m for m in range(1, k + 1)) + sum(1 / m for m in range(1, k + order + 1))
        plain.append(term)
        weighted.append(term * (psi - 2 * _EULER))
        term *= sign / ((k + 1) * (k + 1 + order))
    half = x * 0.5
    square = _ops.square(half)
    first = _ops.log(half) * _polynomial(plain, square)
    found = first - _polynomial(weighted, square) * 0.5
    return found * half if order else found


def _y_near(x: Tensor, order: int) -> Tensor:
    """(9.1.11, 9.1.13)."""
    found = _second_near(x, order, -1.0) * (2 / math.pi)
    return found - 2 / math.pi / x if order else found


def _y_far(x: Tensor, order: int) -> Tensor:
    """sqrt(2 / pi x) (P sin(chi) + Q cos(chi)), P + iQ the integral of e^-s^2 s^2n (1 + i s^2 / 2x)^(n - 1/2)
    over all s (Watson 1944, section 6.12), by the trapezoidal rule."""
    z, half = _over(x, _STEPS**2 / 2)
    y = half / z
    size = _ops.sqrt(_ops.square(y) + 1.0)
    real = _ops.sqrt((size + 1.0) * 0.5)  # of the root of 1 + i y
    imag = y * 0.5 / real
    if not order:
        real, imag = real / size, -(imag / size)
    p, q = (_summed(part, _SHARES[order]) for part in (real, imag))
    cosine, sine = _phase(x, order)
    both = p * sine + q * cosine
    return _ops.sqrt(2 / math.pi / x) * both


def _k_near(x: Tensor, order: int) -> Tensor:
    """(9.6.11)."""
    found = _second_near(x, order, 1.0)
    return found + _ops.reciprocal(x) if order else -found


def _k_far(x: Tensor, order: int) -> Tensor:
    """e^x times it, by the same integral of 1 + s^2 / 2x (Watson 1944, section 6.15)."""
    z, half = _over(x, _STEPS**2 / 2)
    y = half / z + 1.0
    values = _ops.sqrt(y) if order else _ops.rsqrt(y)
    return _ops.sqrt(math.pi / 2 / x) * _summed(values, _SHARES[order])


def _i_near(x: Tensor, order: int) -> Tensor:
    """(9.6.10), whose terms are all positive."""
    numbers = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(52)]
    half = x * 0.5
    found = _polynomial(numbers, _ops.square(half))
    return found * half if order else found


#: By kind: near zero, and far from it, there times e^-x or e^x for i and k; the limit at zero, below which
#: there is NaN, or None for an even or odd function; and from where on it is far.
_KINDS: dict[str, tuple[Any, Any, float | None, str, float]] = {
    "j": (_j_near, _turning, None, "", _FAR),
    "y": (_y_near, _y_far, -math.inf, ", NaN below zero", 4.0),
    "i": (_i_near, lambda x, n: _grown(x, n, -1.0, 0.5 / math.pi), None, ", modified", _FAR),
    "k": (_k_near, _k_far, math.inf, ", modified, NaN below zero", 2.0),
}


def _made(kind: str, order: int, scaled: bool) -> Any:
    near, far, at_zero, words, limit = _KINDS[kind]
    name = f"bessel_{kind}{order}{'e' * scaled}"

    def function(x: Any) -> Tensor:
        given = arguments.floating(arguments.tensor(x, name, "x"))
        t = _ops.cast(given, float64)
        # Even and odd functions are smooth at 0: no |x|, whose derivative is 0 there.
        below = _ops.less(t, 0) if at_zero is None else _ops.less_equal(t, 0)
        size = _ops.where(below, -t if at_zero is None else 1.0, t)
        beyond = _ops.greater(size, limit)
        inner, outer = _ops.where(beyond, 1.0, size), _ops.where(beyond, size, limit)
        close, remote = near(inner, order), far(outer, order)
        if kind in "ik":
            sign = -1.0 if kind == "i" else 1.0
            if scaled:  # e^-|x| has the derivative 0 at 0, as |x| has
                close = close * _ops.exp(_ops.abs(inner) * sign)
            else:
                remote = remote * _ops.exp(outer * -sign)
        y = _ops.where(beyond, remote, close)
        if at_zero is not None:
            y = _ops.where(_ops.greater(t, 0), y, _ops.where(_ops.equal(t, 0), at_zero, math.nan))
            return _ops.cast(y, given.dtype)
        if order:
            y = _ops.where(below, -y, y)
        return _ops.cast(y, given.dtype)

    function.__name__ = function.__qualname__ = name
    times = f", times e^{'-|x|' if kind == 'i' else 'x'}" if scaled else ""
    number = "first" if kind in "ji" else "second"
    function.__doc__ = f"The Bessel function of the {number} kind of order {order}{words}{times}."
    return one_plan(function)


for _kind in _KINDS:
    for _order in (0, 1):
        for _scaled in (False, True)[: 1 + (_kind in "ik")]:
            _name = f"bessel_{_kind}{_order}{'e' * _scaled}"
            globals()[_name] = _made(_kind, _order, _scaled)
            __all__.append(_name)
