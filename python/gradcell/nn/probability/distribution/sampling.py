"""Draws of the gamma and the Poisson distribution, in shapes that are known beforehand.

Both ways reject candidates; all candidates are drawn at once and the first that is accepted counts. That
none of them is has a probability below 1e-15; the last one stands then. Numbers are float64.
"""

from __future__ import annotations

import functools
from typing import Any

from gradcell._core import Tensor, float64, ops as _ops
from gradcell.derivatives.transform import grad
from gradcell.nn.derivatives import custom_vjp
from gradcell.ops.elements.gammas import igamma, lgamma
from gradcell.ops.random.draws import _draw, _draw_normal


def _fixed(parameter: Tensor, shape: list[int]) -> Tensor:
    wide = _ops.broadcast_to(_ops.cast(parameter, float64), shape)
    return _ops.stop_gradient(wide)


def _uniform(shape: list[int], seed: Any) -> Tensor:
    """float64 numbers in (0, 1]."""
    return _ops.sub(1.0, _ops.cast(_draw(shape, seed), float64))


def _first(values: Tensor, accepted: Tensor) -> Tensor:
    """Of the candidates along the first axis, the first that is accepted."""
    found = values[-1]
    for i in reversed(range(values.shape[0] - 1)):
        found = _ops.where(accepted[i], values[i], found)
    return found


@functools.cache
def _moved() -> Any:
    """(concentration, draws) -> the draws, which move with the concentration as quantiles do: along
    F(a, x) = constant, so dx / da = -F_a / F_x (Figurnov et al., Implicit reparameterization, 2018)."""

    @custom_vjp
    def moved(a: Tensor, x: Tensor) -> Tensor:
        return _ops.mul(x, 1.0)

    def back(a: Tensor, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, Tensor]:
        inside = _ops.greater(out, 0.0)
        at = _ops.where(inside, out, 1.0)
        by_a = grad(lambda a: _ops.reduce_sum(igamma(a, at), []))(a)
        log_density = (a - 1.0) * _ops.log(at) - at - lgamma(a)
        slope = _ops.where(inside, -by_a * _ops.exp(-log_density), 0.0)
        return dout * slope, dout

    moved.defbwd(back)
    return moved


def gamma(shape: list[int], concentration: Tensor, seed: Any) -> Tensor:
    """Draws of rate 1 (Marsaglia and Tsang, A simple method for generating gamma variables, 2000)."""
    a = _fixed(concentration, shape)
    small = _ops.less(a, 1.0)
    d = _ops.where(small, a + 1.0, a) - 1.0 / 3.0
    tries = [12, *shape]
    z = _ops.cast(_draw_normal(tries, seed), float64)
    root = 1.0 + z * _ops.rsqrt(9.0 * d)
    positive = _ops.greater(root, 0.0)
    v = _ops.where(positive, root * root * root, 1.0)
    bound = 0.5 * z * z + d * (1.0 - v + _ops.log(v))
    accepted = _ops.logical_and(positive, _ops.less(_ops.log(_uniform(tries, seed)), bound))
    less = _ops.exp(_ops.log(_uniform(shape, seed)) / a)
    drawn = _first(d * v, accepted) * _ops.where(small, less, 1.0)
    wide = _ops.broadcast_to(_ops.cast(concentration, float64), shape)
    return _moved()(wide, _ops.stop_gradient(drawn))  # type: ignore[no-any-return]


def poisson(shape: list[int], rate: Tensor, seed: Any) -> Tensor:
    """Draws: arrivals are counted where they are few, else by Hoermann's way (The transformed rejection
    method for generating Poisson random variables, 1993, algorithm PTRS without its short cuts)."""
    rate = _fixed(rate, shape)
    few = _ops.less(rate, 10.0)
    arrivals = _ops.cumsum(-_ops.log(_uniform([64, *shape], seed)), 0)
    in_time = _ops.less_equal(arrivals, _ops.where(few, rate, 1.0))
    counted = _ops.reduce_sum(_ops.cast(in_time, float64), [0])
    rate = _ops.where(few, 10.0, rate)
    tries = [24, *shape]
    u, v = _uniform(tries, seed) - 0.5, _uniform(tries, seed)
    b = 0.931 + 2.53 * _ops.sqrt(rate)
    a = -0.059 + 0.02483 * b
    apart = 0.5 - _ops.abs(u)
    apart = _ops.where(_ops.greater(apart, 0.0), apart, 2.0**-25)
    k = _ops.floor((2.0 * a / apart + b) * u + rate + 0.43)
    there = _ops.greater_equal(k, 0.0)
    n = _ops.where(there, k, 0.0)
    hat = _ops.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (apart * apart) + b))
    below = _ops.less_equal(hat, n * _ops.log(rate) - rate - lgamma(n + 1.0))
    return _ops.where(few, counted, _first(n, _ops.logical_and(there, below)))
