"""Steps of optimisers as ops: they change parameters, and give their new values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, place_type
from gradcell.ops.arrays import assignments
from gradcell.ops.control.loops import ForiLoop
from gradcell.ops.decorators import one_plan


def _of(gradient: Any, state: Any) -> Any:
    """The gradient. Raises ValueError unless it has the shape of what it changes."""
    return arguments.of_shape(gradient, state.shape, "a step", "gradient", "the parameter's")


@one_plan
def momentum_step(
    variable: Any, accumulation: Any, learning_rate: Any, gradient: Any, momentum: Any, *,
    use_nesterov: bool, use_locking: bool, gradient_scale: float,
) -> Tensor:  # fmt: skip
    """accumulation <- momentum accumulation + gradient; variable less learning_rate times that, or
    times (gradient + momentum accumulation) for Nesterov's. Returns the variable."""
    g = _of(gradient, variable)
    g = g if gradient_scale == 1.0 else _ops.mul(g, gradient_scale)
    speed = assignments.assign(accumulation, _ops.add(_ops.mul(accumulation, momentum), g))
    move = _ops.add(g, _ops.mul(speed, momentum)) if use_nesterov else speed
    return assignments.assign(variable, _ops.sub(variable, _ops.mul(move, learning_rate)))


@one_plan
def decayed_momentum_step(
    weight_decay: Any, loss_scale: Any, variable: Any, accumulation: Any, learning_rate: Any,
    gradient: Any, momentum: Any,
) -> Tensor:  # fmt: skip
    """A step of ApplyMomentum, with the gradient times loss_scale plus weight_decay times the variable."""
    g = _ops.add(_ops.mul(_of(gradient, variable), loss_scale), _ops.mul(variable, weight_decay))
    return momentum_step(
        variable, accumulation, learning_rate, g, momentum, use_nesterov=False, use_locking=False,
        gradient_scale=1.0,
    )  # fmt: skip


def _adam(
    m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, g: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """(first moment, second moment, rate) of Adam (Kingma and Ba 2015, algorithm 1, the efficient order)."""
    first = _ops.add(_ops.mul(m, beta1), _ops.mul(_of(g, m), _ops.sub(1.0, beta1)))
    second = _ops.add(_ops.mul(v, beta2), _ops.mul(_ops.square(g), _ops.sub(1.0, beta2)))
    rate = _ops.div(_ops.sqrt(_ops.sub(1.0, beta2_power)), _ops.sub(1.0, beta1_power))
    return first, second, _ops.mul(lr, rate)


def _adam_moved(
    var: Any, first: Any, second: Any, rate: Any, beta1: Any, epsilon: Any, g: Any,
    nesterov: bool = False,
) -> Tensor:  # fmt: skip
    if nesterov:
        first = _ops.add(_ops.mul(first, beta1), _ops.mul(g, _ops.sub(1.0, beta1)))
    return _ops.sub(var, _ops.div(_ops.mul(first, rate), _ops.add(_ops.sqrt(second), epsilon)))


@one_plan
def adam_step(
    var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
    epsilon: Any, gradient: Any, *, use_locking: bool, use_nesterov: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A step of Adam: (var, m, v) after it."""
    first, second, rate = _adam(m, v, beta1_power, beta2_power, lr, beta1, beta2, gradient)
    moved = _adam_moved(var, first, second, rate, beta1, epsilon, gradient, use_nesterov)
    return _taken((var, m, v), (moved, first, second))


@one_plan
def adam_change(
    m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any,
    gradient: Any, *, use_locking: bool, use_nesterov: bool,
) -> Tensor:  # fmt: skip
    """Return the change of the parameter in a step of Adam; m and v take their new values."""
    first, second, rate = _adam(m, v, beta1_power, beta2_power, lr, beta1, beta2, gradient)
    _taken((m, v), (first, second))
    return _adam_moved(0.0, first, second, rate, beta1, epsilon, gradient, use_nesterov)


@one_plan
def adam_weight_decay_step(
    var: Any, m: Any, v: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any,
    gradient: Any, *, use_locking: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """A step of Adam with decoupled weight decay and no bias correction (Loshchilov and Hutter 2019):
    (var, m, v) after it."""
    g = _of(gradient, var)
    first = assignments.assign(m, _ops.add(_ops.mul(m, beta1), _ops.mul(g, _ops.sub(1.0, beta1))))
    squares = _ops.mul(_ops.square(g), _ops.sub(1.0, beta2))
    second = assignments.assign(v, _ops.add(_ops.mul(v, beta2), squares))
    step = _ops.add(_ops.div(first, _ops.add(_ops.sqrt(second), epsilon)), _ops.mul(var, decay))
    return assignments.assign(var, _ops.sub(var, _ops.mul(step, lr))), first, second


def _powered(lr_power: Any, x: Tensor) -> Tensor:
    return _ops.exp(_ops.neg(_ops.mul(_ops.log(x), lr_power)))


def _ftrl(w: Any, accum: Any, linear: Any, g: Any, lr: Any, l1: Any, l2: Any, power: Any) -> Any:
    """(weights, accumulators, linear terms) after a step (McMahan et al. 2013, Ad click prediction, section
    3.1, algorithm 1), where l2 counts twice."""
    summed = _ops.add(accum, _ops.square(g))
    new, old = _powered(power, summed), _powered(power, accum)
    sigma = _ops.div(_ops.sub(new, old), lr)
    line = _ops.sub(_ops.add(linear, g), _ops.mul(sigma, w))
    curve = _ops.add(_ops.div(new, lr), _ops.mul(l2, 2.0))
    beyond = _ops.greater(_ops.abs(line), l1)
    found = _ops.div(_ops.sub(_ops.mul(_ops.sign(line), l1), line), curve)
    return _ops.where(beyond, found, 0.0), summed, line


def _taken(states: Sequence[Any], values: Sequence[Any], touched: Any = None) -> tuple[Tensor, ...]:
    """The parameters take the values, in the rows that are touched."""
    if touched is not None:
        values = [_ops.where(touched, v, s) for v, s in zip(values, states, strict=True)]
    return tuple(assignments.assign(s, v) for s, v in zip(states, values, strict=True))


def _row_gradient(like: Any, grad: Any, indices: Any) -> tuple[Tensor, Tensor]:
    """(the sum of the gradient's rows at their places in zeros, which rows there are)."""
    rows = like.shape[arguments.axis_in(like, 0, "a sparse step")]
    count = _ops.scatter_add(
        indices, _ops.full([indices.size], 1, place_type(indices.size)), 0, rows
    )
    touched = _ops.reshape(_ops.greater(count, 0), [rows] + [1] * (like.ndim - 1))
    return _ops.scatter_add(indices, grad, 0, rows), touched


@one_plan
def ftrl_step(
    var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any
) -> Tensor:
    """A step of Ftrl. Returns var after it."""
    return _taken(
        (var, accum, linear), _ftrl(var, accum, linear, _of(grad, var), lr, l1, l2, lr_power)
    )[0]


@one_plan
def sparse_ftrl_step(
    var: Any, accum: Any, linear: Any, grad: Any, indices: Any, *, lr: float, l1: float, l2: float,
    lr_power: float, use_locking: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Steps of Ftrl of the rows at indices, one after the other. Returns (var, accum, linear)."""
    if var.ndim == 0:
        bad_value("SparseApplyFtrl: a var of at least one dimension is needed, with rows")
    n = indices.size
    whole = arguments.tensor(indices, "SparseApplyFtrl", "indices")

    def step(k: Any, state: Any) -> Any:
        at = _ops.gather(whole, k, 0)
        here = _ops.equal(_ops.iota([var.shape[0]], whole.dtype, 0), at)
        mask = _ops.reshape(here, [var.shape[0]] + [1] * (var.ndim - 1))
        w, kept, line = state
        new = _ftrl(w, kept, line, _ops.gather(grad, k, 0), lr, l1, l2, float(lr_power))
        return tuple(_ops.where(mask, v, s) for v, s in zip(new, state, strict=True))

    start = tuple(_ops.add(s, 0.0) for s in (var, accum, linear))
    return _taken((var, accum, linear), ForiLoop()(0, n, step, start, unroll=False))


@one_plan
def fused_sparse_ftrl_step(
    var: Any, accum: Any, linear: Any, grad: Any, indices: Any, *, lr: float, l1: float, l2: float,
    lr_power: float, use_locking: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A step of Ftrl of the rows at indices, whose gradients are added up. Returns (var, accum, linear)."""
    g, touched = _row_gradient(var, grad, indices)
    return _taken((var, accum, linear), _ftrl(var, accum, linear, g, lr, l1, l2, lr_power), touched)


@one_plan
def sparse_adam_step(
    var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
    epsilon: Any, gradient: Any, indices: Any, *, lazy: bool, use_locking: bool, use_nesterov: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A step of Adam with the gradients of the rows at indices, added up; lazy: of those rows alone.
    Returns (var, m, v)."""
    g, touched = _row_gradient(var, gradient, indices)
    first, second, rate = _adam(m, v, beta1_power, beta2_power, lr, beta1, beta2, g)
    moved = _adam_moved(var, first, second, rate, beta1, epsilon, g, use_nesterov)
    return _taken((var, m, v), (moved, first, second), touched if lazy else None)


@one_plan
def amsgrad_step(
    var: Any, m: Any, v: Any, vhat: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any,
    beta2: Any, epsilon: Any, grad: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A step of Adam with the largest second moment so far (Reddi et al. 2018, On the convergence of Adam and
    beyond): (var, m, v, vhat) after it."""
    first, second, rate = _adam(m, v, beta1_power, beta2_power, lr, beta1, beta2, grad)
    largest = _ops.maximum(vhat, second)
    moved = _adam_moved(var, first, largest, rate, beta1, epsilon, grad)
    return _taken((var, m, v, vhat), (moved, first, second, largest))


@one_plan
def adadelta_step(
    var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> tuple[Tensor, ...]:
    """A step of Adadelta (Zeiler 2012, algorithm 1): (var, accum, accum_update) after it."""
    kept = _ops.sub(1.0, rho)
    summed = _ops.add(_ops.mul(accum, rho), _ops.mul(_ops.square(_of(grad, var)), kept))
    ratio = _ops.div(_ops.add(accum_update, epsilon), _ops.add(summed, epsilon))
    update = _ops.mul(_ops.sqrt(ratio), grad)
    updates = _ops.add(_ops.mul(accum_update, rho), _ops.mul(_ops.square(update), kept))
    moved = _ops.sub(var, _ops.mul(update, lr))
    return _taken((var, accum, accum_update), (moved, summed, updates))
