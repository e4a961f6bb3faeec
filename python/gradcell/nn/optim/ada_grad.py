"""Adagrad: learning rates from the sum of squared gradients."""

from __future__ import annotations

from typing import Any

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell.nn.optim.optimizer import Optimizer, assign

_ops = _core.ops


class Adagrad(Optimizer):
    """Adagrad (Duchi et al. 2011, section 1.3).

        a = a + g * g  (a starts at accum; kept as it is without update_slots)
        p = p - lr * g / sqrt(a)

    params, learning_rate, weight_decay, loss_scale: see Optimizer. accum: at least 0. Raises
    ValueError for values out of range.
    """

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 1e-3,
        update_slots: bool = True,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        arguments.boolean(update_slots, self.cls_name, "update_slots")
        self.update_slots = update_slots
        self.accum = self.state("accum", arguments.number(accum, self.cls_name, "accum", least=0))

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        a: Tensor = self.accum[k]
        if self.update_slots:
            a = assign(self.accum[k], a + g * g)
        return p - lr * g / _ops.sqrt(a)
