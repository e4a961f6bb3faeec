"""Learning rates that change with the step, in a word: `gc.schedules.cosine(1e-2, 1e-5, 2000)`.

Step 0 has the rate `start`, step number `steps` and all later ones the rate `end`. With `warmup=n` the rate
grows first: step k has (k + 1) / n of it, and what the schedule says begins at step n. Rates are computed
within the training step, so that a compiled one reads nothing on the host. A schedule is a function, too:
`rate(100)`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from gradcell._core import Tensor, float32, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, kind_of
from gradcell.nn.learning_rate_schedule import LearningRateSchedule

__all__ = ["constant", "cosine", "exponential", "linear", "piecewise"]
__dir__ = sorted(__all__).copy


class _Schedule(LearningRateSchedule):
    """A rate of the steps since the warm-up, in float32, with the warm-up before it."""

    def __init__(self, name: str, rate: Callable[[Tensor], Tensor], warmup: int) -> None:
        super().__init__()
        self.rate = rate
        self.warmup: int = arguments.integer(warmup, f"schedules.{name}", "warmup", 0)

    def construct(self, global_step: Any) -> Tensor:
        given = global_step if isinstance(global_step, Tensor) else Tensor(global_step)
        step = _ops.cast(given, float32)
        if not self.warmup:
            return self.rate(step)
        grown = _ops.minimum((step + 1.0) / float(self.warmup), 1.0)
        return grown * self.rate(_ops.maximum(step - float(self.warmup), 0.0))


def _share(step: Tensor, steps: int) -> Tensor:
    """The part of the way from start to end that is done."""
    return _ops.minimum(step / float(steps), 1.0)


def _linear(start: float, end: float, steps: int, step: Tensor) -> Tensor:
    return start + (end - start) * _share(step, steps)


def _cosine(start: float, end: float, steps: int, step: Tensor) -> Tensor:
    left = 0.5 + 0.5 * _ops.cos(_share(step, steps) * math.pi)
    return end + (start - end) * left


def _exponential(start: float, end: float, steps: int, step: Tensor) -> Tensor:
    return start * _ops.exp(_share(step, steps) * math.log(end / start))


def _piecewise(rates: dict[int, float], step: Tensor) -> Tensor:
    found = _ops.full(list(step.shape), 0.0, float32)
    for begin, rate in rates.items():
        found = _ops.where(_ops.greater_equal(step, float(begin)), rate, found)
    return found


def _from_to(
    rule: Callable[..., Tensor], start: float, end: float, steps: int, warmup: int, **bound: float
) -> LearningRateSchedule:
    name = rule.__name__[1:]
    owner = f"schedules.{name}"
    arguments.number(start, owner, "start", **bound)
    arguments.number(end, owner, "end", **bound)
    arguments.integer(steps, owner, "steps", 1)
    return _Schedule(name, functools.partial(rule, float(start), float(end), steps), warmup)


def linear(start: float, end: float, steps: int, *, warmup: int = 0) -> LearningRateSchedule:
    """Return a rate that changes evenly: start + (end - start) * min(step / steps, 1).

    start, end: the rates, at least 0. steps: how many steps it takes. warmup: steps before them in which
    the rate grows up to start. Raises TypeError, ValueError for other values.
    """
    return _from_to(_linear, start, end, steps, warmup, least=0)


def cosine(start: float, end: float, steps: int, *, warmup: int = 0) -> LearningRateSchedule:
    """Return a rate that follows half a cosine: end + (start - end) * (1 + cos(pi p)) / 2 with
    p = min(step / steps, 1) (Loshchilov and Hutter 2017, eq. 5, without restarts).

    start, end: the rates, at least 0. steps: how many steps it takes. warmup: steps before them in which
    the rate grows up to start. Raises TypeError, ValueError for other values.
    """
    return _from_to(_cosine, start, end, steps, warmup, least=0)


def exponential(start: float, end: float, steps: int, *, warmup: int = 0) -> LearningRateSchedule:
    """Return a rate that changes by the same factor in each step: start * (end / start) ** p with
    p = min(step / steps, 1).

    start, end: the rates, positive. steps: how many steps it takes. warmup: steps before them in which the
    rate grows up to start. Raises TypeError, ValueError for other values.
    """
    return _from_to(_exponential, start, end, steps, warmup, above=0)


def constant(rate: float, *, warmup: int = 0) -> LearningRateSchedule:
    """Return a rate that stays as it is once the warm-up is over.

    rate: at least 0. warmup: the number of steps in which it grows. Raises TypeError, ValueError for other
    values.
    """
    return piecewise({0: rate}, warmup=warmup)


def piecewise(rates: Mapping[int, float], *, warmup: int = 0) -> LearningRateSchedule:
    """Return a rate that jumps: {0: 1e-2, 1000: 1e-3} is 1e-2 up to step 999 and 1e-3 from step 1000 on.

    rates: {the step at which it begins: the rate}, in order, from step 0 on. warmup: steps before them in
    which the rate grows up to the first. Raises TypeError, ValueError for others.
    """
    owner = "schedules.piecewise"
    if not isinstance(rates, Mapping):
        bad_type(f"{owner}: expected a dict from steps to rates, got {kind_of(rates)}")
    begins = [arguments.integer(begin, owner, "rates", 0) for begin in rates]
    if not begins or begins[0] != 0 or begins != sorted(begins):
        bad_value(
            f"{owner}: the first rate begins at step 0, and the others in order, got {begins}"
        )
    checked = {n: arguments.number(r, owner, "rates", least=0) for n, r in rates.items()}
    return _Schedule("piecewise", functools.partial(_piecewise, checked), warmup)
