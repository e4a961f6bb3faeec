"""Losses of pairs and triplets, margins and counts.

reduction: 'mean', 'sum' or 'none' (the loss of each element); any other word is a ValueError.
"""

from __future__ import annotations

import math
from typing import Any

from gradcell._core import Tensor, int32, int64, ops as _ops
from gradcell.base import arguments, bad_value
from gradcell.ops.decorators import wide_plan
from gradcell.ops.elements.activations import _softplus
from gradcell.ops.networks.losses import _pair, _reduced
from gradcell.ops.reductions.reductions import length

__all__ = [
    "cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss",
    "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "poisson_nll_loss", "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip

_REDUCTIONS = ("mean", "sum", "none")


def _shapes(op: str, names: str, *values: Tensor) -> None:
    """Raises ValueError for shapes that differ."""
    if any(v.shape != values[0].shape for v in values):
        found = " and ".join(str(list(v.shape)) for v in values)
        bad_value(f"For '{op}', {names} must be of one shape, but got {found}.")


def _norm(x: Tensor, p: float, eps: float) -> Tensor:
    """The p-norm along the last axis of |x + eps|."""
    x = x + eps
    if p == 2:
        return length(_ops.reduce_sum(_ops.square(x), -1))
    return length(_ops.reduce_sum(_ops.pow(_ops.abs(x), float(p)), -1), float(p))


# Pairs and triplets -------------------------------------------------------------------------------


@wide_plan
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: Any = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1.

    Inputs (N, features) of one shape, target (N,). margin: from -1 to 1. Raises ValueError.
    """
    op = "cosine_embedding_loss"
    x, y = _pair(input1, input2, op, reduction)
    t = arguments.tensor(target, op, "target")
    _shapes(op, "the inputs", x, y)
    margin = arguments.number(margin, op, "margin", least=-1, most=1)
    if x.ndim != 2 or list(t.shape) != [x.shape[0]]:
        bad_value(
            f"For '{op}', the inputs must be (N, features) and the target (N,), but got {list(x.shape)} and "
            f"{list(t.shape)}."
        )
    lengths = _ops.reduce_sum(_ops.square(x), 1) * _ops.reduce_sum(_ops.square(y), 1)
    cosine = _ops.reduce_sum(x * y, 1) * _ops.rsqrt(lengths)
    apart = _ops.where(_ops.equal(t, -1), _ops.relu(cosine - margin), 0)
    return _reduced(_ops.where(_ops.equal(t, 1), 1.0 - cosine, apart), reduction)


@wide_plan
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: Any = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, -target (input1 - input2) + margin), target 1 or -1; inputs of one shape."""
    op = "margin_ranking_loss"
    x, y = _pair(input1, input2, op, reduction)
    t = arguments.tensor(target, op, "target")
    _shapes(op, "inputs and target", x, y, t)
    margin = arguments.number(margin, op, "margin")
    step = t * (y - x)
    return _reduced(_ops.relu(step + margin), reduction)


@wide_plan
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: Any = 1.0,
    p: Any = 2,
    eps: Any = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of the difference
    plus eps along the last axis.

    Balntas et al. 2016; swap: with d(positive, negative) instead where that is less. Inputs
    broadcast. Raises TypeError, ValueError.
    """
    op = "triplet_margin_loss"
    arguments.one_of(reduction, _REDUCTIONS, op, "reduction")
    parts = [
        arguments.floating(arguments.tensor(v, op, n))
        for n, v in (("anchor", anchor), ("positive", positive), ("negative", negative))
    ]
    if min(x.ndim for x in parts) == 0:
        bad_value(f"For '{op}', the inputs must have a dimension.")
    order = arguments.number(p, op, "p", above=0)
    eps, margin = arguments.number(eps, op, "eps"), arguments.number(margin, op, "margin")
    a, b, c = parts
    near, far = _norm(a - b, order, eps), _norm(a - c, order, eps)
    if arguments.boolean(swap, op, "swap"):
        far = _ops.minimum(far, _norm(b - c, order, eps))
    return _reduced(_ops.relu(near - far + margin), reduction)


# Margins ------------------------------------------------------------------------------------------


@wide_plan
def hinge_embedding_loss(
    inputs: Any, targets: Any, margin: Any = 1.0, reduction: str = "mean"
) -> Tensor:
    """inputs where targets is 1, max(0, margin - inputs) where it is -1; of one shape.

    inputs: a tensor, most often of distances. reduction: 'mean', 'sum' or 'none'.
    """
    op = "hinge_embedding_loss"
    x, t = _pair(inputs, targets, op, reduction)
    _shapes(op, "inputs and targets", x, t)
    margin = arguments.number(margin, op, "margin")
    apart = _ops.where(_ops.equal(t, -1), _ops.relu(margin - x), 0)
    return _reduced(_ops.where(_ops.equal(t, 1), x, apart), reduction)


@wide_plan
def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """$log(1 + exp(-target input))$, target 1 or -1; of one shape."""
    x, t = _pair(input, target, "soft_margin_loss", reduction)
    _shapes("soft_margin_loss", "input and target", x, t)
    return _reduced(_softplus(-arguments.floating(t) * x), reduction)


@wide_plan
def multi_margin_loss(
    input: Any,
    target: Any,
    p: Any = 1,
    margin: Any = 1,
    weight: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes i other than target of weight[target] max(0, margin - x[target] +
    x[i])^p, over the number of all classes.

    input (N, C), target (N,) of class numbers, weight (C,) or None. p: 1 or 2. Raises ValueError,
    IndexError for a class out of range.
    """
    op = "multi_margin_loss"
    x, t = _pair(input, target, op, reduction)
    if x.ndim != 2 or list(t.shape) != [x.shape[0]]:
        bad_value(
            f"For '{op}', the input must be (N, C) and the target (N,), but got {list(x.shape)} and "
            f"{list(t.shape)}."
        )
    arguments.one_of(p, (1, 2), op, "p")
    margin = arguments.number(margin, op, "margin")
    n, classes = x.shape
    rows = _ops.iota([n], int64, 0)
    at = rows * classes + _ops.cast(t, int64)
    own = _ops.reshape(_ops.gather(_ops.reshape(x, [n * classes]), at, 0), [n, 1])
    loss = _ops.relu(x - own + margin)
    loss = _ops.square(loss) if p == 2 else loss
    if weight is not None:
        scale = _ops.gather(arguments.tensor(weight, op, "weight"), t, 0)
        loss = loss * _ops.reshape(scale, [n, 1])
    other = _ops.not_equal(_ops.iota([n, classes], int64, 1), _ops.reshape(t, [n, 1]))
    return _reduced(_ops.mean(_ops.where(other, loss, 0), 1), reduction)


@wide_plan
def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The sum over labels j and other classes i of max(0, 1 - x[j] + x[i]), over the number of
    classes.

    input (N, C) or (C,), target of its shape: class numbers, as many as there are in front of the
    first -1. Raises TypeError, ValueError; IndexError for a number that is not a class.
    """
    op = "multilabel_margin_loss"
    x, t = _pair(input, target, op, reduction)
    _shapes(op, "input and target", x, t)
    if x.ndim not in (1, 2):
        bad_value(f"For '{op}', the input must be (N, C) or (C,), got {list(x.shape)}")
    single = x.ndim == 1
    x, t = (_ops.reshape(v, [1, -1]) if single else v for v in (x, t))
    n, classes = x.shape
    before_end = _ops.cast(_ops.less(t, 0), int32)
    valid = _ops.equal(_ops.cumsum(before_end, 1), 0)  # [N, C]: target k of row n counts
    classes_at = _ops.iota([n, classes, classes], int64, 2)
    chosen = _ops.equal(classes_at, _ops.reshape(_ops.cast(t, int64), [n, classes, 1]))
    chosen = _ops.logical_and(chosen, _ops.reshape(valid, [n, classes, 1]))
    # own[n, k]: x at target k; labels[n, i]: whether class i is a label
    own = _ops.take_along(x, _ops.cast(_ops.where(valid, t, 0), int32))
    labels = _ops.greater(_ops.reduce_sum(_ops.cast(chosen, int32), 1), 0)
    loss = _ops.reshape(x, [n, 1, classes]) - _ops.reshape(own, [n, classes, 1])
    loss = _ops.relu(loss + 1.0)
    other = _ops.logical_not(_ops.reshape(labels, [n, 1, classes]))
    counts = _ops.logical_and(other, _ops.reshape(valid, [n, classes, 1]))
    total = _ops.reduce_sum(_ops.where(counts, loss, 0), [1, 2]) * (1.0 / classes)
    if single and reduction == "none":
        return _ops.reshape(total, [])
    return _reduced(total, reduction)


@wide_plan
def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """The mean over classes of $-(t log(sigmoid(x)) + (1 - t) log(sigmoid(-x)))$, times weight.

    input (N, C), target of its shape, 0 or 1; weight broadcasts. Raises ValueError.
    """
    op = "multilabel_soft_margin_loss"
    x, t = _pair(input, target, op, reduction)
    _shapes(op, "input and target", x, t)
    loss = _softplus(x) - t * x
    if weight is not None:
        loss = loss * arguments.tensor(weight, op, "weight")
    return _reduced(_ops.mean(loss, -1), reduction)


# Likelihoods --------------------------------------------------------------------------------------


@wide_plan
def gaussian_nll_loss(
    x: Any, target: Any, var: Any, full: bool = False, eps: Any = 1e-6, reduction: str = "mean"
) -> Tensor:
    """$(log(v) + (x - target)^2 / v) / 2$ with $v = max(var, eps)$; full: plus $log(2 pi) / 2$.

    The derivative with respect to var is 0 where var is below eps. Shapes broadcast. Raises
    ValueError unless eps > 0.
    """
    op = "gaussian_nll_loss"
    mean, t = _pair(x, target, op, reduction)
    v = arguments.tensor(var, op, "var")
    eps = arguments.number(eps, op, "eps", above=0)
    v = _ops.maximum(v, eps)
    loss = (_ops.log(v) + _ops.square(mean - t) / v) * 0.5
    if arguments.boolean(full, op, "full"):
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


@wide_plan
def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    eps: Any = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target input, or without log_input input - target log(input + eps); full: plus
    Stirling's approximation of log(target!) where target > 1. Shapes broadcast."""
    op = "poisson_nll_loss"
    x, t = _pair(input, target, op, reduction)
    eps = arguments.number(eps, op, "eps")
    t = _ops.cast(t, x.dtype)
    if arguments.boolean(log_input, op, "log_input"):
        loss = _ops.exp(x) - t * x
    else:
        loss = x - t * _ops.log(x + eps)
    if arguments.boolean(full, op, "full"):
        many = _ops.greater(t, 1)
        n = _ops.where(many, t, 2)
        stirling = (n + 0.5) * _ops.log(n) - n + 0.5 * math.log(2 * math.pi)
        loss = loss + _ops.where(many, stirling, 0)
    return _reduced(loss, reduction)
