"""Steps of optimisers, as solvers take them: alone, or Adam's before their own, whose learning rate falls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcell._core import Tensor, float64, ops as _ops
from gradcell.base import bad_value
from gradcell.compilation.compiled import jit
from gradcell.derivatives.transform import value_and_grad
from gradcell.tensors.parameter import Parameter


class FirstSteps:
    """Steps of an optimiser, each one plan: the loss, its gradient and the update. A step whose loss or
    gradient is not finite leaves the parameters. relative: whether gradients are taken relative to the
    largest component of the first one, so that Adam's eps, which is added to their size, has no unit.
    summed: adds gradients over processes."""

    def __init__(
        self, loss: Callable[..., Tensor], optimizer: Any, relative: bool = False,
        summed: Callable[[Tensor], Tensor] | None = None,
    ) -> None:  # fmt: skip
        self._summed = summed
        self._parameters: list[Parameter] = list(optimizer.parameters)
        self._gradients: Callable[..., Any] = value_and_grad(loss, None, self._parameters)
        self._optimizer = optimizer
        self._unit = Parameter(Tensor(0.0, self._parameters[0].dtype), requires_grad=False)
        self._relative = relative
        self._step = jit(self._recorded)

    def _recorded(self, *points: Any) -> Tensor:
        before = [_ops.add(p, 0.0) for p in self._parameters]
        value, found = self._gradients(*points)
        if self._summed is not None:
            found = [self._summed(g) for g in found]
        value = _ops.reshape(_ops.cast(value, float64), [])
        largest = _largest(found)
        finite = _ops.logical_and(_ops.isfinite(largest), _ops.isfinite(value))
        if self._relative:
            first = _ops.logical_and(_ops.equal(self._unit, 0.0), finite)
            one = _ops.where(first, largest, self._unit)
            self._unit.set_data(one)
            one = _ops.where(_ops.greater(one, 0.0), one, 1.0)
            found = [_ops.div(g, one) for g in found]
        self._optimizer(tuple(found))
        for p, old in zip(self._parameters, before, strict=True):
            p.set_data(_ops.where(finite, p, old))
        return _ops.where(finite, value, _ops.full([], math.nan, float64))

    def step(self, *points: Any) -> float:
        """Return the loss before the step, NaN if no step was taken."""
        return float(self._step(*points))


def adam_steps(
    name: str,
    loss: Callable[..., Tensor],
    parameters: list[Parameter],
    steps: int,
    rate: float | Sequence[float],
    summed: Callable[[Tensor], Tensor] | None = None,
) -> Any:
    """Return so many steps of Adam; None for 0. rate: the learning rate of the first one, from which a cosine
    leads to a hundredth of it, or one for each step."""
    rates = _schedule(steps, rate)
    if steps < 0 or len(rates) != steps or not all(0 < r < math.inf for r in rates):
        bad_value(
            f"{name}: adam must not be negative, and rate positive, one number or one for each of Adam's "
            f"steps, got {steps} and {rate}"
        )
    if not steps:
        return None
    from gradcell import nn

    return FirstSteps(loss, nn.Adam(parameters, learning_rate=rates), True, summed)


def _largest(gradients: Sequence[Tensor]) -> Tensor:
    """The largest size of all elements, NaN if there is one."""
    flat = [_ops.reshape(_ops.abs(g), [g.size]) for g in gradients]
    return _ops.reduce_max(flat[0] if len(flat) == 1 else _ops.concat(flat, 0), [0], False)


def _schedule(steps: int, rate: float | Sequence[float]) -> list[float]:
    if not isinstance(rate, (int, float)):
        return [float(r) for r in rate]
    last = max(steps - 1, 1)
    return [rate * (0.505 + 0.495 * math.cos(math.pi * k / last)) for k in range(steps)]
