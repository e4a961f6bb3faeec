"""LAMB: Adam with a learning rate for each layer."""

from __future__ import annotations

import math
from dataclasses import InitVar
from typing import Any

from gradcell._core import Tensor, ops as _ops
from gradcell.base import fields
from gradcell.nn.optim.adam import Decoupled


def _norm(x: Tensor) -> Tensor:
    return _ops.sqrt(_ops.reduce_sum(x * x))


@fields.declared
class Lamb(Decoupled):
    """LAMB (You et al. 2020, algorithm 2), the trust ratio not clipped.

        m, v and their corrections as in Adam
        r = m' / (sqrt(v') + eps) + weight_decay * p
        p = p - lr * r * |p| / |r|   (the ratio is 1 where a norm is 0)

    params, learning_rate, weight_decay: see Optimizer. Raises ValueError for betas out of (0, 1)
    and an eps that is not positive.
    """

    by_elements = False

    params: InitVar[Any] = fields.of_base("parameters")
    learning_rate: InitVar[Any] = fields.of_base()
    beta1: float = fields.number(above=0, below=1, default=0.9)
    beta2: float = fields.number(above=0, below=1, default=0.999)
    eps: float = fields.number(above=0, default=1e-6)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)

    def _build(self) -> None:
        self._set_moments("lamb")

    def step_scalars(self, step: Tensor) -> Any:
        rest1 = -_ops.expm1(step * math.log(self.beta1))
        rest2 = -_ops.expm1(step * math.log(self.beta2))
        return 1.0 / rest1, 1.0 / rest2

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        m, v = self._next_moments(k, g)
        r = m * scalars[0] / (_ops.sqrt(v * scalars[1]) + self.eps)
        factor = self._decay_factor(k)
        if factor is not None:
            r = r + factor * p
        norm_p, norm_r = _norm(p), _norm(r)
        usable = _ops.logical_and(norm_p > 0.0, norm_r > 0.0)
        ratio = _ops.where(usable, norm_p / _ops.where(usable, norm_r, 1.0), 1.0)
        return p - (lr * ratio) * r  # type: ignore[no-any-return]
