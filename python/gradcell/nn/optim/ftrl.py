"""FTRL: follow the regularised leader."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from gradcell._core import Tensor, ops as _ops
from gradcell.base import bad_value, fields
from gradcell.nn.cell import Cell
from gradcell.nn.optim.optimizer import Optimizer, assign
from gradcell.tensors.parameter import ParameterTuple


@fields.declared
class FTRL(Optimizer):
    """FTRL-proximal (McMahan et al. 2013, algorithm 1, with an exponent for the learning rate).

        b = a + g * g  (a starts at initial_accum);   s = (b ** -lr_power - a ** -lr_power) / lr
        z = z + g - s * p;   a = b
        p = (l1 * sign(z) - z) / (b ** -lr_power / lr + 2 * l2) where |z| > l1, else 0

    params, weight_decay, loss_scale: see Optimizer; all parameters decay. learning_rate: one
    number. initial_accum, l1, l2: at least 0; lr_power: at most 0. Raises ValueError for values out
    of range and learning rates that change or differ by group.
    """

    _all_decay = True

    params: InitVar[Any] = fields.of_base("parameters")
    initial_accum: InitVar[float] = fields.number(least=0, default=0.1)
    learning_rate: InitVar[Any] = fields.of_base(default=1e-3)
    lr_power: float = fields.number(most=0, default=-0.5)
    l1: float = fields.number(least=0, default=0.0)
    l2: float = fields.number(least=0, default=0.0)
    use_locking: InitVar[bool] = fields.boolean(default=False)
    loss_scale: InitVar[float] = fields.of_base(default=1.0)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)

    def _build(self, initial_accum: float) -> None:
        if self.dynamic_lr or self.is_group_lr:
            bad_value("For 'FTRL', learning rates that change or differ by group are not supported")
        self.moments: ParameterTuple = self.state("moments", initial_accum)
        self.linear: ParameterTuple = self.state("linear")

    def _set_learning_rate(self, value: Any) -> None:
        if isinstance(self._build_rate(value, "learning_rate"), Cell):
            bad_value("For 'FTRL', learning rates that change or differ by group are not supported")
        super()._set_learning_rate(value)

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        before = _ops.pow(self.moments[k], -self.lr_power)
        after = _ops.pow(assign(self.moments[k], self.moments[k] + g * g), -self.lr_power)
        z = assign(self.linear[k], self.linear[k] + g - (after - before) / lr * p)
        new = (self.l1 * _ops.sign(z) - z) / (after / lr + 2.0 * self.l2)
        return _ops.where(_ops.greater(_ops.abs(z), self.l1), new, 0.0)
