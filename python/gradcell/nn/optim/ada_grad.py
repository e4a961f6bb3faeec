"""Adagrad and its relatives: learning rates from the sum or the mean of squared gradients."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from gradcell._core import Tensor, ops as _ops
from gradcell.base import fields
from gradcell.nn.optim.optimizer import Optimizer, assign, averaged
from gradcell.tensors.parameter import ParameterTuple


@fields.declared
class Adagrad(Optimizer):
    """The Adagrad optimiser (Duchi et al. 2011, section 1.3).

        a = a + g * g  (a starts at accum; kept as it is without update_slots)
        p = p - lr * g / sqrt(a)

    params, learning_rate, weight_decay, loss_scale: see Optimizer. accum: at least 0. update_slots:
    whether the sums of squares grow. Raises ValueError for values out of range.
    """

    params: InitVar[Any] = fields.of_base("parameters")
    accum: InitVar[float] = fields.number(least=0, default=0.1)
    learning_rate: InitVar[Any] = fields.of_base(default=1e-3)
    update_slots: bool = fields.boolean(default=True)
    loss_scale: InitVar[float] = fields.of_base(default=1.0)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)

    def _build(self, accum: float) -> None:
        self.accum = self.state("accum", accum)

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        a: Tensor = self.accum[k]
        if self.update_slots:
            a = assign(self.accum[k], a + g * g)
        return p - lr * g / _ops.sqrt(a)


@fields.declared
class ProximalAdagrad(Optimizer):
    """Adagrad with proximal steps for l1 and l2 penalties (Duchi and Singer 2009, section 3).

        a = a + g * g  (a starts at accum);   r = lr / sqrt(a);   v = p - r * g
        p = sign(v) * max(|v| - r * l1, 0) / (1 + r * l2)

    params, learning_rate, weight_decay, loss_scale: see Optimizer. accum, l1, l2: at least 0.
    Raises ValueError for values out of range.
    """

    params: InitVar[Any] = fields.of_base("parameters")
    accum: InitVar[float] = fields.number(least=0, default=0.1)
    learning_rate: InitVar[Any] = fields.of_base(default=1e-3)
    l1: float = fields.number(least=0, default=0.0)
    l2: float = fields.number(least=0, default=0.0)
    use_locking: InitVar[bool] = fields.boolean(default=False)
    loss_scale: InitVar[float] = fields.of_base(default=1.0)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)

    def _build(self, accum: float) -> None:
        self.accum = self.state("accum", accum)

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        rate = lr * _ops.rsqrt(assign(self.accum[k], self.accum[k] + g * g))
        v = p - rate * g
        if self.l1:
            v = _ops.sign(v) * _ops.maximum(_ops.abs(v) - rate * self.l1, 0.0)
        return v / (1.0 + rate * self.l2)


@fields.declared
class Adadelta(Optimizer):
    """The Adadelta optimiser (Zeiler 2012, algorithm 1).

        a = rho * a + (1 - rho) * g * g;   d = sqrt(b + epsilon) / sqrt(a + epsilon) * g
        b = rho * b + (1 - rho) * d * d;   p = p - lr * d

    params, learning_rate, weight_decay, loss_scale: see Optimizer. rho: the share of the old means
    that a step keeps. Raises ValueError for a rho out of [0, 1] or a negative epsilon.
    """

    params: InitVar[Any] = fields.of_base("parameters")
    learning_rate: InitVar[Any] = fields.of_base(default=1.0)
    rho: float = fields.number(least=0, most=1, default=0.9)
    epsilon: float = fields.number(least=0, default=1e-6)
    loss_scale: InitVar[float] = fields.of_base(default=1.0)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)

    def _build(self) -> None:
        self.accum: ParameterTuple = self.state("accum")
        self.accum_update: ParameterTuple = self.state("accum_update")

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        rho, eps, old = self.rho, self.epsilon, self.accum_update[k]
        a = averaged(self.accum[k], g * g, rho)
        d = _ops.sqrt(old + eps) * _ops.rsqrt(a + eps) * g
        averaged(old, d * d, rho)
        return p - lr * d
