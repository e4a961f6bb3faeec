"""Bessel functions of the orders 0 and 1: integrals up to 25, asymptotic series beyond (Abramowitz and
Stegun, chapter 9). Computed in float64; composed of ops, so that they have derivatives of any order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.ops.one_plan import one_plan

__all__: list[str] = []

_ops = _core.ops

_FAR = 25.0  #: where the asymptotic series begin
_ORDERS = 16  #: terms of them
_ANGLES = (np.arange(40) + 0.5) * (math.pi / 40)  #: of the trapezoidal rule from 0 to pi
_EVEN = np.full(40, 1 / 40)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_LONG = np.polynomial.legendre.leggauss(200)


def _over(x: Tensor, nodes: np.ndarray) -> tuple[Tensor, Tensor]:
    """x with a dimension more at the end, and what an integral is taken over along it."""
    return _ops.reshape(x, [*x.shape, 1]), Tensor(nodes)


def _summed(values: Tensor, weights: np.ndarray) -> Tensor:
    return _ops.reduce_sum(_ops.mul(values, Tensor(weights)), [values.ndim - 1], False)


def _coefficients(order: int) -> list[float]:
    """a_k = (4 v^2 - 1) (4 v^2 - 9) ... (4 v^2 - (2 k - 1)^2) / (k! 8^k) (9.2.9, 9.7.1)."""
    found = [1.0]
    for k in range(1, _ORDERS):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return found


def _polynomial(numbers: list[float], y: Tensor) -> Tensor:
    total: Any = numbers[-1]
    for number in numbers[-2::-1]:
        total = _ops.add(_ops.mul(y, total), number)
    return total  # type: ignore[no-any-return]


def _turning(x: Tensor, order: int, first: Any, second: Any, sign: float) -> Tensor:
    """sqrt(2 / pi x) (P first(chi) + sign Q second(chi)), chi = x - (order / 2 + 1 / 4) pi (9.2.5, 6)."""
    a, y = _coefficients(order), _ops.reciprocal(x)
    square = _ops.neg(_ops.square(y))
    chi = _ops.sub(x, (order / 2 + 0.25) * math.pi)
    p, q = _polynomial(a[::2], square), _ops.mul(_polynomial(a[1::2], square), y)
    both = _ops.add(_ops.mul(p, first(chi)), _ops.mul(_ops.mul(q, second(chi)), sign))
    return _ops.mul(_ops.sqrt(_ops.mul(y, 2 / math.pi)), both)


def _grown(x: Tensor, order: int, sign: float, scale: float) -> Tensor:
    """sqrt(scale / x) times the sum of sign^k a_k / x^k (9.7.1 and 2)."""
    y = _ops.reciprocal(x)
    numbers = [a * sign**k for k, a in enumerate(_coefficients(order))]
    return _ops.mul(_ops.sqrt(_ops.mul(y, scale)), _polynomial(numbers, y))


def _j_near(x: Tensor, order: int) -> Tensor:
    """(9.1.18, 9.1.21)."""
    z, t = _over(x, np.sin(_ANGLES))
    inside = _ops.mul(z, t)
    return _summed(_ops.mul(t, _ops.sin(inside)) if order else _ops.cos(inside), _EVEN)


def _y_near(x: Tensor, order: int) -> Tensor:
    """(9.1.22)."""
    angles = (_NODES + 1) * (math.pi / 2)
    z, sine = _over(x, np.sin(angles))
    turns = _summed(_ops.sin(_ops.sub(_ops.mul(z, sine), Tensor(order * angles))), _WEIGHTS / 2)
    end = _ops.stop_gradient(_ops.asinh(_ops.div(45.0, z)))
    sinh = _ops.sinh(_ops.mul(end, Tensor((_LONG[0] + 1) / 2)))
    weight = _ops.mul(sinh, 2.0) if order else 2.0
    tail = _ops.mul(_ops.mul(_ops.exp(_ops.neg(_ops.mul(z, sinh))), weight), end)
    return _ops.sub(turns, _ops.div(_summed(tail, _LONG[1] / 2), math.pi))


def _i_near(x: Tensor, order: int) -> Tensor:
    """e^-x times (9.6.16, 9.6.18)."""
    z, cosine = _over(x, np.cos(_ANGLES))
    values = _ops.exp(_ops.mul(z, _ops.sub(cosine, 1.0)))
    return _summed(
        _ops.mul(_ops.mul(values, z), Tensor(np.sin(_ANGLES) ** 2)) if order else values, _EVEN
    )


def _k_near(x: Tensor, order: int) -> Tensor:
    """e^x times (9.6.24)."""
    z, part = _over(x, (_LONG[0] + 1) / 2)
    end = _ops.stop_gradient(_ops.acosh(_ops.add(_ops.div(45.0, z), 1.0)))
    cosh = _ops.cosh(_ops.mul(end, part))
    values = _ops.mul(_ops.exp(_ops.mul(z, _ops.sub(1.0, cosh))), end)
    return _summed(_ops.mul(values, cosh) if order else values, _LONG[1] / 2)


#: By kind: near zero and far from it, scaled by e^-|x| or e^x for i and k; and the limit at zero, below which
#: there is NaN, or None for an even or odd function.
_KINDS: dict[str, tuple[Any, Any, float | None, str]] = {
    "j": (_j_near, lambda x, n: _turning(x, n, _ops.cos, _ops.sin, -1.0), None, ""),
    "y": (
        _y_near,
        lambda x, n: _turning(x, n, _ops.sin, _ops.cos, 1.0),
        -math.inf,
        ", NaN below zero",
    ),
    "i": (_i_near, lambda x, n: _grown(x, n, -1.0, 0.5 / math.pi), None, ", modified"),
    "k": (
        _k_near,
        lambda x, n: _grown(x, n, 1.0, math.pi / 2),
        math.inf,
        ", modified, NaN below zero",
    ),
}


def _made(kind: str, order: int, scaled: bool) -> Any:
    near, far, at_zero, words = _KINDS[kind]
    name = f"bessel_{kind}{order}{'e' * scaled}"

    def function(x: Any) -> Tensor:
        given = arguments.floating(arguments.tensor(x, name, "x"))
        t = _ops.cast(given, _core.float64)
        # Even and odd functions are smooth at 0: no |x|, whose derivative is 0 there.
        below = _ops.less(t, 0) if at_zero is None else _ops.less_equal(t, 0)
        size = _ops.where(below, _ops.neg(t) if at_zero is None else 1.0, t)
        beyond = _ops.greater(size, _FAR)
        y = _ops.where(
            beyond,
            far(_ops.where(beyond, size, _FAR), order),
            near(_ops.where(beyond, 1.0, size), order),
        )
        if kind in "ik" and not scaled:
            y = _ops.mul(y, _ops.exp(size if kind == "i" else _ops.neg(size)))
        if at_zero is not None:
            y = _ops.where(_ops.greater(t, 0), y, _ops.where(_ops.equal(t, 0), at_zero, math.nan))
            return _ops.cast(y, given.dtype)
        if scaled:  # times 1; the factor e^-|x| has the derivative 0 at 0, as |x| has
            rest = _ops.where(beyond, 0.0, _ops.sub(size, _ops.abs(t)))
            y = _ops.mul(y, _ops.exp(rest))
        if order:
            y = _ops.where(below, _ops.neg(y), y)
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
