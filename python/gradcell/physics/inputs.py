"""Inputs of networks in place of coordinates, and solutions made of networks and given functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import Made, bad_value, transform

__all__ = ["constrained", "enriched", "fourier", "periodic", "vanishing"]


def periodic(x: Tensor, period: float, waves: int = 1) -> Tensor:
    """cos(2 pi k x / period) for k = 1 to waves, then the same of sin: [n, m] to [n, 2 m waves].

    A network of these is periodic with all its derivatives. x: coordinates [n, m]. period: the
    length after which the result repeats. waves: the number of frequencies. Raises ValueError for a
    period that is not positive or waves below 1.
    """
    if not 0 < period < math.inf or waves < 1:
        bad_value(
            f"periodic: period must be positive and waves at least 1, got {period} and {waves}"
        )
    angles = [x * (2 * math.pi * k / period) for k in range(1, waves + 1)]
    return ops.concat((*map(ops.cos, angles), *map(ops.sin, angles)), 1)


def fourier(x: Tensor, frequencies: Any) -> Tensor:
    """cos(x B) and sin(x B), [n, d] to [n, 2 m], for frequencies B [d, m]: most often normal random
    numbers times the largest wave number that the solution has, fixed or a Parameter (M. Tancik and
    others, NeurIPS 2020).

    x: points [n, d]. frequencies: a tensor [d, m], or a Parameter of that shape. Raises ValueError
    for frequencies of another shape.
    """
    b = frequencies if isinstance(frequencies, Tensor) else Tensor(np.asarray(frequencies), x.dtype)
    if b.ndim != 2 or x.ndim != 2 or b.shape[0] != x.shape[1]:
        bad_value(
            f"fourier: expected x [n, d] and frequencies [d, m], got {list(x.shape)} and {list(b.shape)}"
        )
    angles = ops.matmul(x, b)
    return ops.concat((ops.cos(angles), ops.sin(angles)), 1)


def vanishing(
    x: Tensor,
    low: Sequence[float],
    high: Sequence[float],
    sides: Sequence[tuple[int, int]] | None = None,
) -> Tensor:
    """A polynomial that is 0 on faces of a box and positive inside, [n, d] to [n, 1]: the product
    of (x_k - low_k) / (high_k - low_k), and one minus it, over the sides, pairs of an axis and 0
    for its low or 1 for its high end; all without `sides`.

    x: points [n, d]. sides: pairs (axis, end), end 0 for the low and 1 for the high face. Raises
    ValueError for points or sides of other dimensions.
    """
    d = len(low)
    chosen = [(k, e) for k in range(d) for e in (0, 1)] if sides is None else list(sides)
    fits = (
        x.ndim == 2
        and x.shape[1] == d == len(high)
        and all(map(float.__lt__, map(float, low), map(float, high)))
    )
    if not fits or not chosen or any(not 0 <= k < d or e not in (0, 1) for k, e in chosen):
        bad_value(
            f"vanishing: expected points [n, {d}], {d} ends on both sides, each low one below its high one, "
            f"and sides as pairs of an axis and 0 or 1; got {list(x.shape)}, {low}, {high} and {sides}"
        )
    product: Any = None
    for k, end in chosen:
        share = (x[:, k : k + 1] - low[k]) / (high[k] - low[k])
        factor = 1 - share if end else share
        product = factor if product is None else product * factor
    return product  # type: ignore[no-any-return]


@transform()
def constrained(
    net: Callable[[Tensor], Tensor],
    values: Callable[[Tensor], Tensor],
    distance: Callable[[Tensor], Tensor],
) -> Callable[[Tensor], Tensor]:
    """The function values(x) + distance(x) net(x): where distance is 0 (as `vanishing` is on faces) it has
    the values, whatever the network is. With a distance that is zero twice, it has their slopes too
    (I. Lagaris, A. Likas, D. Fotiadis, IEEE Trans. Neural Networks 9, 1998).

    net: the network, a function of points [n, d]. values: a function of points that gives the
    values at the boundary. distance: a function of points, 0 at the boundary.
    """

    def solution(x: Tensor) -> Tensor:
        return values(x) + distance(x) * net(x)

    return Made(solution)


@transform()
def enriched(
    u: Callable[[Tensor], Tensor], given: Callable[[Tensor], Tensor]
) -> Callable[[Tensor], Tensor]:
    """The function u_0 + g_1 u_1 + ... + g_k u_k of points, for k given functions g and smooth u: the g have
    what no smooth function has, as powers of the distance from a corner (`singular`) or the angle around a
    point where a condition jumps, and u says how much of it (I. Babuska, J. Melenk, Int. J. Numer. Meth. Eng.
    40, 1997). In an equation for `solve` it takes the place of u.

    u: a function of points [n, d] that gives [n, m (k + 1)], the m numbers of u_0 first. given: a function
    of points that gives [n, k]. The result gives [n, m]. Raises ValueError if k + 1 does not divide the
    number of columns of u.
    """

    def solution(x: Tensor) -> Tensor:
        factors, parts = given(x), u(x)
        k = factors.shape[1] + 1
        if parts.shape[1] % k:
            bad_value(
                f"enriched: with {k - 1} given functions u must give a multiple of {k} numbers at a point, "
                f"got {parts.shape[1]}"
            )
        m = parts.shape[1] // k
        terms = [factors[:, j - 1 : j] * parts[:, j * m : (j + 1) * m] for j in range(1, k)]
        return sum(terms, parts[:, :m])

    return Made(solution)
