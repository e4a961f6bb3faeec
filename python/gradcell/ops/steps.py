"""Steps of optimisers as ops: they change parameters, and give their new values."""

from __future__ import annotations

from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.ops import composition
from gradcell.ops.one_plan import one_plan

_ops = _core.ops


@one_plan
def momentum_step(
    variable: Any, accumulation: Any, learning_rate: Any, gradient: Any, momentum: Any, *,
    use_nesterov: bool, use_locking: bool, gradient_scale: float,
) -> Tensor:  # fmt: skip
    """accumulation <- momentum accumulation + gradient; variable less learning_rate times that, or
    times (gradient + momentum accumulation) for Nesterov's. Returns the variable."""
    g = gradient if gradient_scale == 1.0 else _ops.mul(gradient, gradient_scale)
    speed = composition.assign(accumulation, _ops.add(_ops.mul(accumulation, momentum), g))
    move = _ops.add(g, _ops.mul(speed, momentum)) if use_nesterov else speed
    return composition.assign(variable, _ops.sub(variable, _ops.mul(move, learning_rate)))


@one_plan
def decayed_momentum_step(
    weight_decay: Any, loss_scale: Any, variable: Any, accumulation: Any, learning_rate: Any,
    gradient: Any, momentum: Any,
) -> Tensor:  # fmt: skip
    """momentum_step with the gradient times loss_scale, and weight_decay times the variable added."""
    g = _ops.add(_ops.mul(gradient, loss_scale), _ops.mul(variable, weight_decay))
    return momentum_step(
        variable, accumulation, learning_rate, g, momentum, use_nesterov=False, use_locking=False,
        gradient_scale=1.0,
    )  # fmt: skip


@one_plan
def adam_step(
    var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
    epsilon: Any, gradient: Any, *, use_locking: bool, use_nesterov: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """A step of Adam (Kingma and Ba 2015, algorithm 1, the efficient order): (var, m, v) after it."""
    g = gradient
    first = composition.assign(m, _ops.add(_ops.mul(m, beta1), _ops.mul(g, _ops.sub(1.0, beta1))))
    squares = _ops.mul(_ops.square(g), _ops.sub(1.0, beta2))
    second = composition.assign(v, _ops.add(_ops.mul(v, beta2), squares))
    rate = _ops.mul(lr, _ops.div(_ops.sqrt(_ops.sub(1.0, beta2_power)), _ops.sub(1.0, beta1_power)))
    move = first
    if use_nesterov:
        move = _ops.add(_ops.mul(first, beta1), _ops.mul(g, _ops.sub(1.0, beta1)))
    step = _ops.div(_ops.mul(move, rate), _ops.add(_ops.sqrt(second), epsilon))
    return composition.assign(var, _ops.sub(var, step)), first, second


@one_plan
def adam_weight_decay_step(
    var: Any, m: Any, v: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any,
    gradient: Any, *, use_locking: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """A step of Adam with decoupled weight decay and no bias correction (Loshchilov and Hutter 2019):
    (var, m, v) after it."""
    g = gradient
    first = composition.assign(m, _ops.add(_ops.mul(m, beta1), _ops.mul(g, _ops.sub(1.0, beta1))))
    squares = _ops.mul(_ops.square(g), _ops.sub(1.0, beta2))
    second = composition.assign(v, _ops.add(_ops.mul(v, beta2), squares))
    step = _ops.add(_ops.div(first, _ops.add(_ops.sqrt(second), epsilon)), _ops.mul(var, decay))
    return composition.assign(var, _ops.sub(var, _ops.mul(step, lr))), first, second
