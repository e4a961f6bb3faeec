"""Gradient descent with momentum."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from gradcell._core import Tensor, float32
from gradcell.base import fields
from gradcell.nn.optim.optimizer import Optimizer, assign
from gradcell.tensors.parameter import Parameter, ParameterTuple


@fields.declared
class Momentum(Optimizer):
    """Gradient descent with momentum (Sutskever et al. 2013).

        v = momentum * v + g
        p = p - lr * v;   use_nesterov: p - lr * (g + momentum * v)

    params, learning_rate, weight_decay, loss_scale: see Optimizer. momentum: at least 0. Raises
    ValueError for values out of range.
    """

    params: InitVar[Any] = fields.of_base("parameters")
    learning_rate: InitVar[Any] = fields.of_base()
    momentum: InitVar[float] = fields.number(least=0)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)
    loss_scale: InitVar[float] = fields.of_base(default=1.0)
    use_nesterov: bool = fields.boolean(default=False)

    def _build(self, momentum: float) -> None:
        self.momentum = Parameter(Tensor(momentum, float32), name="momentum")
        self.moments: ParameterTuple = self.state("moments")

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        v = assign(self.moments[k], self.momentum * self.moments[k] + g)
        return p - lr * (g + self.momentum * v if self.use_nesterov else v)
