"""FTRL: follow the regularised leader."""

from __future__ import annotations

from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.errors import bad_value
from gradcell.nn.optim.optimizer import Optimizer, assign

_ops = _core.ops


class FTRL(Optimizer):
    """FTRL-proximal (McMahan et al. 2013, algorithm 1, with an exponent for the learning rate).

        b = a + g * g  (a starts at initial_accum);   s = (b ** -lr_power - a ** -lr_power) / lr
        z = z + g - s * p;   a = b
        p = (l1 * sign(z) - z) / (b ** -lr_power / lr + 2 * l2) where |z| > l1, else 0

    params, weight_decay, loss_scale: see Optimizer; all parameters decay. learning_rate: one
    number. initial_accum, l1, l2: at least 0; lr_power: at most 0. use_locking has no effect. Raises
    ValueError for values out of range and learning rates that change or differ by group.
    """

    def __init__(
        self,
        params: Any,
        initial_accum: float = 0.1,
        learning_rate: float = 1e-3,
        lr_power: float = -0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        owner = self.cls_name
        if self.dynamic_lr or self.is_group_lr:
            bad_value("For 'FTRL', learning rates that change or differ by group are not supported")
        arguments.number(learning_rate, owner, "learning_rate", above=0)
        arguments.boolean(use_locking, owner, "use_locking")
        self.lr_power = arguments.number(lr_power, owner, "lr_power", most=0)
        self.l1 = arguments.number(l1, owner, "l1", least=0)
        self.l2 = arguments.number(l2, owner, "l2", least=0)
        start = arguments.number(initial_accum, owner, "initial_accum", least=0)
        self.moments = self.state("moments", start)
        self.linear = self.state("linear")
        if not self.is_group:
            self.decay_flags = (True,) * len(self.parameters)

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        before = _ops.pow(self.moments[k], -self.lr_power)
        after = _ops.pow(assign(self.moments[k], self.moments[k] + g * g), -self.lr_power)
        z = assign(self.linear[k], self.linear[k] + g - (after - before) / lr * p)
        new = (self.l1 * _ops.sign(z) - z) / (after / lr + 2.0 * self.l2)
        return _ops.where(_ops.greater(_ops.abs(z), self.l1), new, 0.0)
