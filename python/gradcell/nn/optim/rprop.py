"""Rprop: steps that go by the gradients' signs alone."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any, ClassVar

from gradcell._core import Tensor, ops as _ops
from gradcell.base import bad_type, bad_value, fields
from gradcell.nn.optim.optimizer import Optimizer, assign
from gradcell.tensors.parameter import ParameterTuple


def _two(value: Any, owner: str, name: str) -> Any:
    if not isinstance(value, tuple):
        bad_type(f"For '{owner}', the '{name}' must be a tuple, but got {type(value).__name__}")
    if len(value) != 2:
        bad_value(f"For '{owner}', the '{name}' must be two, but got {value}")
    return value


@fields.declared
class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun 1993; where the sign of a gradient changes,
    the element stays and its gradient is forgotten: Igel and Huesken 2000, iRprop-).

        s = s * etas[1] where g has its old sign, s * etas[0] where another, within step_sizes
        p = p - sign(g) * s      (s starts at the learning rate)

    params, learning_rate, weight_decay: see Optimizer. etas: (0 < below 1, above 1). step_sizes: the
    smallest and the largest step. Raises TypeError, ValueError for values out of range.
    """

    _checks: ClassVar[dict[str, Any]] = {
        **Optimizer._checks,
        "etaminus": fields.number(above=0, below=1),
        "etaplus": fields.number(above=1),
        "step_size_min": fields.number(),
        "step_size_max": fields.number(),
    }
    etaminus: ClassVar[float]
    etaplus: ClassVar[float]
    step_size_min: ClassVar[float]
    step_size_max: ClassVar[float]

    params: InitVar[Any] = fields.of_base("parameters")
    learning_rate: InitVar[Any] = fields.of_base(default=0.1)
    etas: InitVar[tuple[float, float]] = fields.checked(_two, default=(0.5, 1.2))
    step_sizes: InitVar[tuple[float, float]] = fields.checked(_two, default=(1e-6, 50.0))
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)

    def _agree(self) -> None:
        if self.step_size_min > self.step_size_max:
            sizes = self.step_size_min, self.step_size_max
            bad_value(f"For 'Rprop', the 'step_sizes' must increase, but got {sizes}")

    def _build(self, etas: tuple[float, float], step_sizes: tuple[float, float]) -> None:
        given = (*zip(("etaminus", "etaplus"), etas, strict=True),)
        given += (*zip(("step_size_min", "step_size_max"), step_sizes, strict=True),)
        for name, value in given:
            setattr(self, name, self._checks[name].check(value, "Rprop", name))
        self._agree()
        self.prev: ParameterTuple = self.state("prev")
        self.step_size: ParameterTuple = self.state("step_size")

    def _set_learning_rate(self, value: Any) -> None:
        if int(self.global_step):
            bad_value(
                "For 'Rprop', the learning rate is that of the first step, which has been made: steps have "
                "sizes of their own, optimizer.step_size"
            )
        super()._set_learning_rate(value)

    def step_scalars(self, step: Tensor) -> Any:
        return _ops.equal(step, 1.0)

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        agree = _ops.sign(g) * _ops.sign(self.prev[k])  # (g * g may overflow, or be too small)
        other = _ops.less(agree, 0.0)
        slower = _ops.where(other, self.etaminus, 1.0)
        factor = _ops.where(_ops.greater(agree, 0.0), self.etaplus, slower)
        size = _ops.where(scalars, lr, self.step_size[k]) * factor
        size = _ops.minimum(_ops.maximum(size, self.step_size_min), self.step_size_max)
        size = assign(self.step_size[k], size)
        kept = assign(self.prev[k], _ops.where(other, 0.0, g))
        return p - _ops.sign(kept) * size
