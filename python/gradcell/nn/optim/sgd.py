"""Stochastic gradient descent."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from gradcell._core import Tensor, float32, ops as _ops
from gradcell.base import bad_value, fields
from gradcell.nn.optim.optimizer import Optimizer, assign
from gradcell.tensors.parameter import Parameter, ParameterTuple


@fields.declared
class SGD(Optimizer):
    """Stochastic gradient descent with momentum, dampening and Nesterov's variant (Sutskever et al.
    2013, in the form that multiplies by the learning rate last).

        v = momentum * v + (1 - dampening) * g      (v = g at the first step)
        p = p - lr * v;   nesterov: p - lr * (g + momentum * v);   momentum 0: p - lr * g

    params, learning_rate, weight_decay, loss_scale: see Optimizer. momentum: at least 0; dampening:
    in [0, 1]. Raises ValueError for nesterov without momentum or with dampening, and for values
    out of range.
    """

    params: InitVar[Any] = fields.of_base("parameters")
    learning_rate: InitVar[Any] = fields.of_base(default=0.1)
    momentum: InitVar[float] = fields.number(least=0, default=0.0)
    dampening: float = fields.number(least=0, default=0.0)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)
    nesterov: bool = fields.boolean(default=False)
    loss_scale: InitVar[float] = fields.of_base(default=1.0)

    def _build(self, momentum: float) -> None:
        self._momentum: float = momentum
        self.momentum = Parameter(Tensor(momentum, float32), name="momentum")
        self._agree()
        self.accum: ParameterTuple = self.state("accum")
        self.stat: ParameterTuple = self.state("stat", 1.0)

    def _agree(self) -> None:
        momentum = self._momentum
        if self.dampening > 1:
            bad_value("For 'SGD', the 'dampening' must be in [0, 1]")
        if self.nesterov and (momentum <= 0 or self.dampening != 0):
            bad_value(
                "For 'SGD', nesterov requires a momentum greater than 0 and a dampening of 0, but got "
                f"{momentum} and {self.dampening}"
            )

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
