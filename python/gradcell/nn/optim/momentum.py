"""Gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.nn.optim.optimizer import Optimizer, assign
from gradcell.tensors.parameter import Parameter

_ops = _core.ops


class Momentum(Optimizer):
    """Gradient descent with momentum (Sutskever et al. 2013).

        v = momentum * v + g
        p = p - lr * v;   use_nesterov: p - lr * (g + momentum * v)

    params, learning_rate, weight_decay, loss_scale: see Optimizer. momentum: at least 0. Raises
    ValueError for values out of range.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        momentum: float,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        arguments.boolean(use_nesterov, self.cls_name, "use_nesterov")
        value = arguments.number(momentum, self.cls_name, "momentum", least=0)
        self.use_nesterov = use_nesterov
        self.momentum = Parameter(Tensor(value, _core.float32), name="momentum")
        self.moments = self.state("moments")

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        v = assign(self.moments[k], self.momentum * self.moments[k] + g)
        return p - lr * (g + self.momentum * v if self.use_nesterov else v)
