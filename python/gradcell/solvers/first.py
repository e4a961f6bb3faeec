"""Steps of Adam before a solver's own: the same loss, a learning rate that falls by a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base.errors import bad_value
from gradcell.compilation.compiled import jit
from gradcell.derivatives.transform import value_and_grad
from gradcell.tensors.parameter import Parameter

_ops = _core.ops


class AdamFirst:
    """So many steps of Adam, each one plan. rate: the learning rate of the first one, from which a cosine
    leads to a hundredth of it, or one for each step. A step whose loss or gradient is not finite
    changes nothing."""

    def __init__(
        self,
        name: str,
        loss: Callable[..., Tensor],
        parameters: list[Parameter],
        steps: int,
        rate: float | Sequence[float],
    ) -> None:
        from gradcell import nn

        rates = _schedule(steps, rate)
        if steps < 0 or len(rates) != steps or not all(0 < r < math.inf for r in rates):
            bad_value(
                f"{name}: adam must not be negative, and rate positive, one number or one for each of Adam's "
                f"steps, got {steps} and {rate}"
            )
        self.steps = steps
        if not steps:
            return
        optimizer = nn.Adam(parameters, learning_rate=rates)
        gradients = value_and_grad(loss, None, parameters)

        def step(*points: Any) -> Tensor:
            before = [_ops.add(p, 0.0) for p in parameters]
            value, found = gradients(*points)
            square = [_ops.reduce_sum(_ops.square(g), list(range(g.ndim)), False) for g in found]
            finite = _ops.isfinite(sum(square, _ops.cast(value, square[0].dtype)))
            optimizer(found)
            for p, old in zip(parameters, before, strict=True):
                p.set_data(_ops.where(finite, p, old))
            nan = _ops.full([], math.nan, _core.float64)
            return _ops.where(finite, _ops.reshape(_ops.cast(value, _core.float64), []), nan)

        self._step = jit(step)

    def step(self, *points: Any) -> float:
        """The loss before the step, nan where it has been none."""
        return float(self._step(*points))


def _schedule(steps: int, rate: float | Sequence[float]) -> list[float]:
    if not isinstance(rate, (int, float)):
        return [float(r) for r in rate]
    last = max(steps - 1, 1)
    return [rate * (0.505 + 0.495 * math.cos(math.pi * k / last)) for k in range(steps)]
