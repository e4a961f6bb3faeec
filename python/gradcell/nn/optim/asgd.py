"""ASGD: gradient descent that also keeps the mean of its parameters."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from gradcell._core import Tensor, float32, ops as _ops
from gradcell.base import fields
from gradcell.nn.optim.optimizer import Optimizer, assign
from gradcell.tensors.parameter import Parameter, ParameterTuple


@fields.declared
class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992; Bottou 2012, section 5.3).

        p = p * (1 - lambd * eta) - eta * g      (eta is the learning rate at the first step)
        ax = p at first, then ax + mu * (p - ax)
        eta = lr / (1 + lambd * lr * t) ** alpha;   mu = 1 / max(1, t - t0)

    The means are in the parameters ax_. params, learning_rate, weight_decay: see Optimizer. lambd:
    the decay of the parameters. alpha: the power of the learning rate's decay. t0: the step after
    which means begin. Raises TypeError for anything that is not a number.
    """

    params: InitVar[Any] = fields.of_base("parameters")
    learning_rate: InitVar[Any] = fields.of_base(default=0.1)
    lambd: float = fields.number(default=1e-4)
    alpha: float = fields.number(default=0.75)
    t0: float = fields.number(default=1e6)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)

    def _build(self) -> None:
        self.mu: ParameterTuple = self._scalars("mu_", 1.0)
        self.eta: ParameterTuple = self._scalars("eta_", 0.0)
        self.ax: ParameterTuple = self.state("ax_")

    def _scalars(self, prefix: str, value: float) -> ParameterTuple:
        return ParameterTuple(
            Parameter(Tensor(value, float32), name=prefix + p.name) for p in self.parameters
        )

    def step_scalars(self, step: Tensor) -> Any:
        return step

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        step, mu = scalars, self.mu[k]
        eta = _ops.where(_ops.equal(step, 1.0), lr, self.eta[k])
        new = p * (1.0 - self.lambd * eta) - eta * g
        ax = self.ax[k]
        assign(ax, _ops.where(_ops.equal(mu, 1.0), new, ax + (new - ax) * mu))
        assign(self.eta[k], lr / _ops.pow(1.0 + self.lambd * lr * step, self.alpha))
        assign(mu, 1.0 / _ops.maximum(step - self.t0, 1.0))
        return new
