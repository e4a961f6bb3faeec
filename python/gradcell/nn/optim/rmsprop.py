"""RMSProp: learning rates from the mean of squared gradients."""

from __future__ import annotations

from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.nn.optim.optimizer import Optimizer, assign

_ops = _core.ops


class RMSProp(Optimizer):
    """RMSProp (Tieleman and Hinton 2012); centered: with the variance (Graves 2013, eq. 38-45).

        s = decay * s + (1 - decay) * g * g;   centered: a = decay * a + (1 - decay) * g
        d = momentum * d + lr * g / sqrt(s + epsilon);   centered: sqrt(s - a * a + epsilon)
        p = p - d

    s starts at 1, as in MindSpore, which keeps the first steps small. params, learning_rate,
    weight_decay, loss_scale: see Optimizer. decay, momentum: at least 0; epsilon: positive. Raises
    ValueError for values out of range.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        arguments.boolean(use_locking, self.cls_name, "use_locking")
        arguments.boolean(centered, self.cls_name, "centered")
        self.decay = arguments.number(decay, self.cls_name, "decay", least=0)
        self.momentum = arguments.number(momentum, self.cls_name, "momentum", least=0)
        self.epsilon = arguments.number(epsilon, self.cls_name, "epsilon", above=0)
        self.centered = centered
        if centered:
            self.mg = self.state("mean_grad")
        self.ms = self.state("mean_square", 1.0)
        self.moment = self.state("moment")

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        d = self.decay
        square = assign(self.ms[k], d * self.ms[k] + (1.0 - d) * (g * g))
        if self.centered:
            mean = assign(self.mg[k], d * self.mg[k] + (1.0 - d) * g)
            square = square - mean * mean
        step = lr * g * _ops.rsqrt(square + self.epsilon)
        return p - assign(self.moment[k], self.momentum * self.moment[k] + step)
