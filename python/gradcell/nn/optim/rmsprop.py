"""RMSProp: learning rates from the mean of squared gradients."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from gradcell._core import Tensor, ops as _ops
from gradcell.base import fields
from gradcell.nn.optim.optimizer import Optimizer, assign, averaged
from gradcell.tensors.parameter import ParameterTuple


@fields.declared
class RMSProp(Optimizer):
    """RMSProp (Tieleman and Hinton 2012); centered: with the variance (Graves 2013, eq. 38-45).

        s = decay * s + (1 - decay) * g * g;   centered: a = decay * a + (1 - decay) * g
        d = momentum * d + lr * g / sqrt(s + epsilon);   centered: sqrt(s - a * a + epsilon)
        p = p - d

    s starts at 1, as in MindSpore, which keeps the first steps small. params, learning_rate,
    weight_decay, loss_scale: see Optimizer. decay, momentum: at least 0; epsilon: positive. Raises
    ValueError for values out of range.
    """

    _fixed = ("centered",)

    params: InitVar[Any] = fields.of_base("parameters")
    learning_rate: InitVar[Any] = fields.of_base(default=0.1)
    decay: float = fields.number(least=0, default=0.9)
    momentum: float = fields.number(least=0, default=0.0)
    epsilon: float = fields.number(above=0, default=1e-10)
    use_locking: InitVar[bool] = fields.boolean(default=False)
    centered: bool = fields.boolean(default=False)
    loss_scale: InitVar[float] = fields.of_base(default=1.0)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)

    def _build(self) -> None:
        if self.centered:
            self.mg: ParameterTuple = self.state("mean_grad")
        self.ms: ParameterTuple = self.state("mean_square", 1.0)
        self.moment: ParameterTuple = self.state("moment")

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        d = self.decay
        square = averaged(self.ms[k], g * g, d)
        if self.centered:
            mean = averaged(self.mg[k], g, d)
            square = square - mean * mean
        step = lr * g * _ops.rsqrt(square + self.epsilon)
        return p - assign(self.moment[k], self.momentum * self.moment[k] + step)
