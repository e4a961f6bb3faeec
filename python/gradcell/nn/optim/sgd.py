"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.errors import bad_value
from gradcell.nn.optim.optimizer import Optimizer, assign
from gradcell.tensors.parameter import Parameter

_ops = _core.ops


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, dampening and Nesterov's variant (Sutskever et al.
    2013, in the form that multiplies by the learning rate last).

        v = momentum * v + (1 - dampening) * g      (v = g at the first step)
        p = p - lr * v;   nesterov: p - lr * (g + momentum * v);   momentum 0: p - lr * g

    params, learning_rate, weight_decay, loss_scale: see Optimizer. momentum: at least 0; dampening:
    in [0, 1]. Raises ValueError for nesterov without momentum or with dampening, and for values
    out of range.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: Any = 0.0,
        nesterov: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        arguments.boolean(nesterov, self.cls_name, "nesterov")
        self._momentum = arguments.number(momentum, self.cls_name, "momentum", least=0)
        self.dampening = arguments.number(dampening, self.cls_name, "dampening", least=0)
        if self.dampening > 1:
            bad_value("For 'SGD', the 'dampening' must be in [0, 1]")
        if nesterov and (self._momentum <= 0 or self.dampening != 0):
            bad_value(
                "For 'SGD', nesterov requires a momentum greater than 0 and a dampening of 0, but got "
                f"{momentum} and {dampening}"
            )
        self.nesterov = nesterov
        self.momentum = Parameter(Tensor(self._momentum, _core.float32), name="momentum")
        self.accum = self.state("accum")
        self.stat = self.state("stat", 1.0)

    def step_scalars(self, step: Tensor) -> Any:
        if not self._momentum:
            return None
        damped: Any = 1.0
        if self.dampening:
            damped = _ops.where(_ops.equal(step, 1.0), 1.0, Tensor(1.0 - self.dampening))
        return self.momentum, damped

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        if scalars is None:
            return p - lr * g
        momentum, damped = scalars
        v = assign(self.accum[k], momentum * self.accum[k] + (g * damped if self.dampening else g))
        return p - lr * (g + momentum * v if self.nesterov else v)
