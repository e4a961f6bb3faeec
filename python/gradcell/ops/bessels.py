"""Bessel functions of the orders 0 and 1: integrals up to 25, asymptotic series beyond (Abramowitz and Stegun,
chapter 9). Computed in float64; composed of ops, so that they have derivatives of any order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell.ops.one_plan import one_plan

_ops = _core.ops

_FAR = 25.0  #: where the asymptotic series begin
_ORDERS = 16  #: terms of them
_ANGLES = (np.arange(40) + 0.5) * (math.pi / 40)  #: of the trapezoidal rule from 0 to pi
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


def _joined(x: Tensor, near: Callable[[Tensor], Tensor], far: Callable[[Tensor], Tensor]) -> Tensor:
    """near for x up to 25, far beyond; x is not negative."""
    beyond = _ops.greater(x, _FAR)
    return _ops.where(beyond, far(_ops.where(beyond, x, _FAR)), near(_ops.where(beyond, 1.0, x)))


def _phase(x: Tensor, order: int, first: Any, second: Any, sign: float) -> Tensor:
    """sqrt(2 / (pi x)) (P first(chi) + sign Q second(chi)), chi = x - (order / 2 + 1 / 4) pi (9.2.5 and 6)."""
    a, y = _coefficients(order), _ops.reciprocal(x)
    square = _ops.neg(_ops.square(y))
    chi = _ops.sub(x, (order / 2 + 0.25) * math.pi)
    p, q = _polynomial(a[::2], square), _ops.mul(_polynomial(a[1::2], square), y)
    both = _ops.add(_ops.mul(p, first(chi)), _ops.mul(_ops.mul(q, second(chi)), sign))
    return _ops.mul(_ops.sqrt(_ops.mul(y, 2 / math.pi)), both)


def _grown(x: Tensor, order: int, signs: float, scale: float) -> Tensor:
    """sqrt(scale / x) times the sum of signs^k a_k / x^k (9.7.1 and 2)."""
    y = _ops.reciprocal(x)
    numbers = [a * signs**k for k, a in enumerate(_coefficients(order))]
    return _ops.mul(_ops.sqrt(_ops.mul(y, scale)), _polynomial(numbers, y))


def _j_near(x: Tensor, order: int) -> Tensor:
    """(9.1.18, 9.1.21)."""
    z, t = _over(x, np.sin(_ANGLES))
    inside = _ops.mul(z, t)
    values = _ops.mul(t, _ops.sin(inside)) if order else _ops.cos(inside)
    return _summed(values, np.full(len(_ANGLES), 1 / len(_ANGLES)))


def _y_near(x: Tensor, order: int) -> Tensor:
    """(9.1.22)."""
    angles = (_NODES + 1) * (math.pi / 2)
    z, sine = _over(x, np.sin(angles))
    turns = _summed(_ops.sin(_ops.sub(_ops.mul(z, sine), Tensor(order * angles))), _WEIGHTS / 2)
    end = _ops.stop_gradient(_ops.asinh(_ops.div(45.0, z)))
    t = _ops.mul(end, Tensor((_LONG[0] + 1) / 2))
    sinh = _ops.sinh(t)
    weight = _ops.mul(sinh, 2.0) if order else 2.0
    tail = _summed(
        _ops.mul(_ops.mul(_ops.exp(_ops.neg(_ops.mul(z, sinh))), weight), end), _LONG[1] / 2
    )
    return _ops.sub(turns, _ops.div(tail, math.pi))


def _i_near(x: Tensor, order: int) -> Tensor:
    """e^-x times (9.6.16, 9.6.18)."""
    z, cosine = _over(x, np.cos(_ANGLES))
    values = _ops.exp(_ops.mul(z, _ops.sub(cosine, 1.0)))
    values = _ops.mul(_ops.mul(values, z), Tensor(np.sin(_ANGLES) ** 2)) if order else values
    return _summed(values, np.full(len(_ANGLES), 1 / len(_ANGLES)))


def _k_near(x: Tensor, order: int) -> Tensor:
    """e^x times (9.6.24)."""
    z, part = _over(x, (_LONG[0] + 1) / 2)
    end = _ops.stop_gradient(_ops.acosh(_ops.add(_ops.div(45.0, z), 1.0)))
    cosh = _ops.cosh(_ops.mul(end, part))
    values = _ops.mul(_ops.exp(_ops.mul(z, _ops.sub(1.0, cosh))), end)
    return _summed(_ops.mul(values, cosh) if order else values, _LONG[1] / 2)


def _j(x: Tensor, order: int) -> Tensor:
    size = _ops.abs(x)
    found = _joined(
        size, lambda t: _j_near(t, order), lambda t: _phase(t, order, _ops.cos, _ops.sin, -1.0)
    )
    return _ops.mul(found, _ops.sign(x)) if order else found


def _y(x: Tensor, order: int) -> Tensor:
    return _above_zero(
        x,
        -math.inf,
        lambda t: _y_near(t, order),
        lambda t: _phase(t, order, _ops.sin, _ops.cos, 1.0),
    )


def _i(x: Tensor, order: int, scaled: bool) -> Tensor:
    size = _ops.abs(x)
    found = _joined(
        size, lambda t: _i_near(t, order), lambda t: _grown(t, order, -1.0, 0.5 / math.pi)
    )
    found = _ops.mul(found, _ops.sign(x)) if order else found
    return found if scaled else _ops.mul(found, _ops.exp(size))


def _k(x: Tensor, order: int, scaled: bool) -> Tensor:
    found = _above_zero(
        x, math.inf, lambda t: _k_near(t, order), lambda t: _grown(t, order, 1.0, math.pi / 2)
    )
    return found if scaled else _ops.mul(found, _ops.exp(_ops.neg(_ops.maximum(x, 0.0))))


def _above_zero(x: Tensor, at_zero: float, near: Any, far: Any) -> Tensor:
    """NaN below zero."""
    usual = _ops.greater(x, 0)
    found = _joined(_ops.where(usual, x, 1.0), near, far)
    return _ops.where(usual, found, _ops.where(_ops.equal(x, 0), at_zero, math.nan))


def _made(name: str, text: str, compute: Callable[[Tensor], Tensor]) -> Callable[[Any], Tensor]:
    def function(x: Any) -> Tensor:
        t = arguments.floating(arguments.tensor(x, name, "x"))
        return _ops.cast(compute(_ops.cast(t, _core.float64)), t.dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return one_plan(function)


_KINDS = {
    "j": ("The Bessel function of the first kind of order {}.", _j),
    "y": ("The Bessel function of the second kind of order {}, NaN below zero.", _y),
}
for _order in (0, 1):
    for _kind, (_text, _function) in _KINDS.items():
        _name = f"bessel_{_kind}{_order}"
        globals()[_name] = _made(
            _name, _text.format(_order), lambda x, f=_function, n=_order: f(x, n)
        )
    for _kind, _words, _scaled_f in (("i", "first", _i), ("k", "second", _k)):
        for _end in ("", "e"):
            _name = f"bessel_{_kind}{_order}{_end}"
            _text = f"The modified Bessel function of the {_words} kind of order {_order}"
            if _end:
                _text += ", times e^-|x|" if _kind == "i" else ", times e^x"
            globals()[_name] = _made(
                _name,
                f"{_text}{', NaN below zero' if _kind == 'k' else ''}.",
                lambda x, f=_scaled_f, n=_order, e=bool(_end): f(x, n, e),
            )
