"""Learning rates for each layer: LAMB and LARS."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.nn.optim.optimizer import (
    Optimizer,
    assign,
    check_flag,
    check_fraction,
    check_positive,
    half_to_float,
    where,
)
from gradcell.parameter import Parameter

_ops = _core.ops


def _norm(x: Tensor) -> Tensor:
    return _ops.sqrt(_ops.reduce_sum(x * x))


class Lamb(Optimizer):
    """LAMB (You et al. 2020, algorithm 2), the trust ratio not clipped.

        m, v and their corrections as in Adam
        r = m' / (sqrt(v') + eps) + weight_decay * p
        p = p - lr * r * |p| / |r|   (the ratio is 1 where a norm is 0)

    params, learning_rate, weight_decay: see Optimizer. Raises ValueError for betas out of (0, 1)
    and an eps that is not positive.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.beta1 = check_fraction(self.cls_name, "beta1", beta1)
        self.beta2 = check_fraction(self.cls_name, "beta2", beta2)
        self.eps = check_positive(self.cls_name, "eps", eps)
        self.moments1 = self.state("lamb_m")
        self.moments2 = self.state("lamb_v")

    def decay_weight(self, gradients: Any) -> tuple[Tensor, ...]:
        """The gradients: the decay is part of the update."""
        return tuple(gradients)

    def step_scalars(self, step: Tensor) -> Any:
        rest1 = -_ops.expm1(step * math.log(self.beta1))
        rest2 = -_ops.expm1(step * math.log(self.beta2))
        return 1.0 / rest1, 1.0 / rest2

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        b1, b2 = self.beta1, self.beta2
        m = assign(self.moments1[k], b1 * self.moments1[k] + (1.0 - b1) * g)
        v = assign(self.moments2[k], b2 * self.moments2[k] + (1.0 - b2) * (g * g))
        r = m * scalars[0] / (_ops.sqrt(v * scalars[1]) + self.eps)
        factor = self._decay_factor(k)
        if factor is not None:
            r = r + factor * p
        norm_p, norm_r = _norm(p), _norm(r)
        usable = _ops.logical_and(norm_p > 0.0, norm_r > 0.0)
        ratio = _ops.where(usable, norm_p / _ops.where(usable, norm_r, 1.0), 1.0)
        return p - (lr * ratio) * r


class LARS(Optimizer):
    """Layer-wise rates around another optimiser (You et al. 2017, eq. 6).

        r = coefficient * |p| / (|g| + weight_decay * |p| + epsilon)
        use_clip: r = min(r / lr, 1)
        the optimiser gets r * (g + weight_decay * p)

    optimizer: its weight decay is taken over. lars_filter: given a Parameter, whether the rule
    applies to it; by default unless its name has LayerNorm or bias in it. Raises TypeError if
    optimizer is no Optimizer, ValueError for values out of range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        epsilon: float = 1e-5,
        coefficient: float = 1e-3,
        use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = lambda x: (
            "LayerNorm" not in x.name and "bias" not in x.name
        ),
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"For 'LARS', the 'optimizer' must be an Optimizer, but got "
                f"{type(optimizer).__name__}{where()}"
            )
        super(Optimizer, self).__init__(auto_prefix=False)
        check_flag(self.cls_name, use_clip=use_clip)
        self.opt = optimizer
        self.epsilon = check_positive(self.cls_name, "epsilon", epsilon)
        self.coefficient = check_positive(self.cls_name, "coefficient", coefficient)
        self.use_clip = use_clip
        self.parameters = self._parameters = optimizer.parameters
        self.lars_flag = tuple(bool(lars_filter(p)) for p in optimizer.parameters)
        self._factors = optimizer._decay_factor
        self.loss_scale, self.need_scale = optimizer.loss_scale, optimizer.need_scale
        optimizer.need_scale = False
        # The rule does the decaying, on the parameters that the filter leaves in.
        self.decay_flags = optimizer.decay_flags
        optimizer.exec_weight_decay = False

    @property
    def global_step(self) -> Parameter:
        """The wrapped optimiser's step count."""
        return self.opt.global_step

    def get_lr(self) -> Any:
        """The wrapped optimiser's learning rate."""
        return self.opt.get_lr()

    def construct(self, gradients: Any) -> tuple[bool, ...]:
        """Scales the gradients and hands them on."""
        gradients = self.scale_grad(self.check_gradients(gradients))
        lr = self.opt.get_lr()
        rates = lr if isinstance(lr, tuple) else (lr,) * len(self.parameters)
        made = []
        for k, g in enumerate(gradients):
            if not self.lars_flag[k]:
                made.append(g)
                continue
            p = half_to_float(self.parameters[k])
            factor = self._factors(k)
            norm_p, norm_g = _norm(p), _norm(g)
            decayed = norm_g if factor is None else norm_g + factor * norm_p
            ratio = self.coefficient * norm_p / (decayed + self.epsilon)
            if self.use_clip:
                ratio = _ops.minimum(ratio / rates[k], 1.0)
            made.append(ratio * (g if factor is None else g + factor * p))
        return self.opt(tuple(made))  # type: ignore[no-any-return]
