"""check_grads: nested derivatives against finite differences, along one random direction.

In: a function of tensors and the float64 arrays to differentiate it at. The function is weighted
with random numbers into one scalar f(x); for a random direction v, the derivative of order k
D_k = d/dt D_(k-1)(x + t v) at t = 0, is asked of the package and compared with a central difference
of D_(k-1). An error in any one element of any gradient shows, but on a set of measure zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradcell as ms
from gradcell import Tensor

Function = Callable[..., Any]

#: Of the fourth-order central difference: f(x - 2h), f(x - h), f(x + h), f(x + 2h), over h.
STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))


def outputs(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def weighted(fn: Function, weights: Sequence[Tensor]) -> Function:
    """The scalar sum of fn's outputs, each times its weights."""

    def scalar(*xs: Any) -> Any:
        total: Any = 0.0
        for y, w in zip(outputs(fn(*xs)), weights, strict=True):
            total = total + (y * w).sum()
        return total

    return scalar


def reverse_along(fn: Function, direction: Sequence[Tensor]) -> Function:
    """The derivative of scalar fn along `direction`, from its gradient."""
    gradient = ms.grad(fn, tuple(range(len(direction))))

    def along(*xs: Any) -> Any:
        total: Any = 0.0
        for g, v in zip(outputs(gradient(*xs)), direction, strict=True):
            total = total + (g * v).sum()
        return total

    return along


def forward_along(fn: Function, direction: Sequence[Tensor]) -> Function:
    """The derivative of scalar fn along `direction`, by the forward mode."""

    def along(*xs: Any) -> Any:
        if len(xs) == 1:
            return ms.jvp(fn, xs[0], direction[0])[1]
        return ms.jvp(fn, xs, tuple(direction))[1]

    return along


MODES: dict[str, Callable[[Function, Sequence[Tensor]], Function]] = {
    "rev": reverse_along,
    "fwd": forward_along,
}


def check_grads(
    fn: Function,
    args: Sequence[np.ndarray],
    order: int = 3,
    modes: Sequence[str] = ("rev",),
    tolerance: float = 1e-8,
    step: float = 1e-3,
    seed: int = 0,
) -> None:
    """Raises AssertionError where a derivative of fn, up to `order`, is wrong.

    `modes` are cycled through, the innermost derivative first: ("rev", "fwd") checks forward over
    reverse at order 2. The tolerance is relative to the largest of the two derivatives, the lower
    derivative they come from, and 1.
    """
    rng = np.random.default_rng(seed)
    arrays = [np.asarray(x, dtype=np.float64) for x in args]
    direction = [rng.choice([-1.0, 1.0], x.shape) * rng.uniform(0.5, 1.0, x.shape) for x in arrays]
    results = outputs(fn(*(Tensor(x) for x in arrays)))
    weights = [Tensor(np.asarray(rng.uniform(0.5, 1.5, y.shape))) for y in results]
    towards = [Tensor(v) for v in direction]

    lower = weighted(fn, weights)
    for k in range(1, order + 1):
        mode = modes[(k - 1) % len(modes)]
        higher = MODES[mode](lower, towards)
        got = float(value_at(higher, arrays, direction, 0.0))
        base = float(value_at(lower, arrays, direction, 0.0))
        numeric = sum(c * value_at(lower, arrays, direction, n * step) for n, c in STENCIL) / step
        scale = max(abs(got), abs(numeric), abs(base), 1.0)
        assert abs(got - numeric) <= tolerance * scale, (
            f"derivative {k} ({mode}): {got!r}, by finite differences {numeric!r}"
        )
        lower = higher


def value_at(
    fn: Function, arrays: Sequence[np.ndarray], direction: Sequence[np.ndarray], t: float
) -> float:
    points = [Tensor(np.asarray(x + t * v)) for x, v in zip(arrays, direction, strict=True)]
    return float(np.asarray(fn(*points).asnumpy()))


def differences(along: Callable[[float], float]) -> tuple[float, float, float] | None:
    """(slope, curvature, how exact the curvature is) at 0 of a function of a number; None where differences
    do not settle: a kink or a jump is near."""
    with np.errstate(all="ignore"):
        at = along(0.0)
        ends = {}
        for h in (2e-3, 1e-3, 5e-4):
            up, down = along(h), along(-h)
            ends[h] = ((up - down) / (2 * h), (up - 2 * at + down) / h**2)
        first = [(4 * ends[h / 2][0] - ends[h][0]) / 3 for h in (2e-3, 1e-3)]
        second = [(4 * ends[h / 2][1] - ends[h][1]) / 3 for h in (2e-3, 1e-3)]
    scale = max(1.0, abs(at), abs(first[0]), abs(second[0]))
    if not np.isfinite([*first, *second]).all() or abs(first[0] - first[1]) > 1e-6 * scale:
        return None
    return first[1], second[1], abs(second[0] - second[1]) + 1e-5 * scale
