"""scipy.integrate: differential equations by an explicit method of order 5, and integrals of samples.

The derivative is that of the steps that were taken, by the values at the beginning and by args.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import arguments, bad_value, fail, publish

#: Dormand and Prince's pair (1980, J. Comp. Appl. Math. 6, 19): places, weights of the slopes so far, and
#: those of the difference to the embedded method of order 4.
_PLACES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_WEIGHTS: tuple[tuple[float, ...], ...] = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_DIFFERENCE = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def _sum(weights: tuple[float, ...], slopes: list[Tensor]) -> Any:
    total: Any = 0.0
    for weight, slope in zip(weights, slopes, strict=True):
        total = total + slope * weight if weight else total
    return total


class _Path:
    """A solution that goes on from time to time, with steps whose error is below atol + rtol |y|."""

    def __init__(
        self, slope: Callable[[Any, Tensor], Any], t: float, y: Any, rtol: float, atol: float, most: int,
        longest: float,
    ) -> None:  # fmt: skip
        self.y = arguments.floating(
            y if isinstance(y, Tensor) else Tensor(np.asarray(y, np.float64))
        )
        self.t, self.rtol, self.atol, self.most, self.longest = t, rtol, atol, most, longest
        self.evaluations, self.h = 0, 0.0
        self._of = slope
        self.slope = self._at(t, self.y)

    def _at(self, t: float, y: Tensor) -> Tensor:
        self.evaluations += 1
        found = self._of(t, y)
        if isinstance(found, (tuple, list)):
            found = ops.stack(
                [v if isinstance(v, Tensor) else ops.full_like(y[0], v) for v in found], 0
            )
        if not isinstance(found, Tensor) or found.shape != self.y.shape:
            bad_value(
                f"odeint: the slopes must be as many as the values, {list(self.y.shape)}, got "
                f"{list(np.shape(found))}"
            )
        return found

    def _size(self, x: Tensor, new: Tensor) -> float:
        scale = self.atol + self.rtol * ops.maximum(ops.abs(self.y), ops.abs(new))
        return float(ops.sqrt(ops.mean(ops.square(x / scale))).item()) if x.size else 0.0

    def _first(self, end: float) -> float:
        """A first step, as Hairer, Norsett and Wanner (1993), section II.4, find it."""
        by, slope = self._size(self.y, self.y), self._size(self.slope, self.y)
        return min(abs(end - self.t), 0.01 * by / slope if min(by, slope) > 1e-5 else 1e-6)

    def to(self, end: float, visit: Callable[[], None] = lambda: None) -> Tensor:
        """The solution at end; visit is called after each step."""
        way = 1.0 if end >= self.t else -1.0
        self.h = self.h or self._first(end)
        for _ in range(self.most):
            left = abs(end - self.t)
            if not left:
                return self.y
            h = min(self.h, left, self.longest)
            last = h >= left * (1 - 1e-12)
            slopes, step = [self.slope], way * (left if last else h)
            for place, weights in zip(_PLACES[1:], _WEIGHTS[1:], strict=True):
                y = self.y + _sum(weights, slopes) * step
                slopes.append(self._at(self.t + place * step, y))
            error = self._size(_sum(_DIFFERENCE, slopes) * step, y)
            grown = 10.0 if error == 0 else min(10.0, 0.9 * error**-0.2)
            if not error <= 1:
                self.h = h * (max(0.2, grown) if np.isfinite(error) else 0.1)
                if self.t + way * self.h == self.t:
                    break
                continue
            self.t = end if last else self.t + step
            self.y, self.slope = y, slopes[-1]
            self.h = max(self.h, h * grown) if last else h * grown
            visit()
        fail(
            f"odeint: {self.most} steps do not lead to t = {end}; they ended at {self.t}. The equations may "
            "be stiff, which this explicit method is not made for, or the solution does not reach so far; or "
            "allow more steps or larger errors"
        )


def _times(t: Any) -> list[float]:
    given = np.asarray(t.asnumpy() if isinstance(t, Tensor) else t, np.float64)
    if given.ndim != 1 or not given.size:
        bad_value(f"odeint: t must be a vector of times, got shape {list(given.shape)}")
    return [float(v) for v in given]


def odeint(
    func: Callable[..., Any], y0: Any, t: Any, args: tuple[Any, ...] = (), *, tfirst: bool = False,
    rtol: float = 1.49012e-8, atol: float = 1.49012e-8, hmax: float = 0.0, mxstep: int = 0,
) -> Tensor:  # fmt: skip
    """The solution of y' = func(y, t, *args) from y0 at t[0] on, at all times, [times, values].

    func: a function that gives the slopes. y0: a vector. t: times in order, numbers, by which there is no
    derivative. args: further arguments, differentiated where they are tensors. tfirst: whether func takes t
    first. rtol, atol: the error of a step is below atol + rtol |y|. hmax: the longest step, 0 for any.
    mxstep: the most steps between two times, 0 for 10,000. Raises RuntimeError if they are not enough.
    """
    times = _times(t)

    def slope(t: Any, y: Tensor) -> Any:
        return func(t, y, *args) if tfirst else func(y, t, *args)

    path = _Path(slope, times[0], y0, rtol, atol, mxstep or 10_000, hmax or np.inf)
    return ops.stack([path.y, *(path.to(end) for end in times[1:])], 0)


class Solution(NamedTuple):
    """The result of solve_ivp.

    t: the times. y: the solution [values, times]. nfev: how often the function was called. status: 0.
    success: True, since what fails is raised. message: a text.
    """

    t: Tensor
    y: Tensor
    nfev: int
    status: int = 0
    success: bool = True
    message: str = "The solver successfully reached the end of the integration interval."


def solve_ivp(
    fun: Callable[..., Any], t_span: Any, y0: Any, method: str = "RK45", t_eval: Any = None, *,
    args: tuple[Any, ...] = (), rtol: float = 1e-3, atol: float = 1e-6, max_step: float = np.inf,
) -> Solution:  # fmt: skip
    """The solution of y' = fun(t, y, *args) over a span of time, from y0 on.

    fun: a function that gives the slopes. t_span: (the first, the last time). y0: a vector. method: 'RK45'.
    t_eval: at which times; None for the ends of the steps. args: further arguments, differentiated where they
    are tensors. rtol, atol: the error of a step is below atol + rtol |y|. max_step: the longest step.
    """
    arguments.one_of(method, ("RK45",), "solve_ivp", "method")
    first, end = (float(v) for v in t_span)
    path = _Path(lambda t, y: fun(t, y, *args), first, y0, rtol, atol, 100_000, max_step)
    times, found = [first], [path.y]

    def visit() -> None:
        times.append(path.t)
        found.append(path.y)

    if t_eval is None:
        path.to(end, visit)
    else:
        times = _times(t_eval)
        found = [path.to(at) for at in times]
    return Solution(Tensor(np.array(times)), ops.stack(found, 1), path.evaluations)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """The integral of y along axis by the trapezoidal rule.

    y: values. x: their places; by default they are dx apart. dx: how far.
    """
    return ops.trapz(*_samples(y, x), dx=dx, dim=axis)


def _samples(y: Any, x: Any) -> list[Tensor | None]:
    return [
        v if v is None or isinstance(v, Tensor) else Tensor(np.asarray(v, np.float64))
        for v in (y, x)
    ]


def _apart(y: Tensor, x: Tensor | None, dx: Any, axis: int) -> Any:
    """The distances of neighbours along the last axis."""
    if x is None:
        return dx
    return ops.diff(x if x.ndim == 1 else ops.movedim(x, axis, -1))


def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Tensor:
    """The integrals of y from the first place to each of the others by the trapezoidal rule.

    y: values. x: their places; by default they are dx apart. dx: how far. initial: 0 to begin with that.
    """
    values, places = _samples(y, x)
    assert values is not None
    line = ops.movedim(values, axis, -1) if values.ndim > 1 else values
    pieces = (line[..., 1:] + line[..., :-1]) * 0.5 * _apart(values, places, dx, axis)
    found = ops.cumsum(pieces, -1)
    if initial is not None:
        found = ops.concat([ops.full_like(line[..., :1], initial), found], -1)
    return ops.movedim(found, -1, axis) if found.ndim > 1 else found


publish(globals())
