"""Losses.

reduction: 'mean', 'sum' or 'none' (the loss of each element); any other word is a ValueError.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, place_type, where
from gradcell.ops.decorators import one_plan, wide_plan
from gradcell.ops.elements.activations import _softplus, log_softmax

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "huber_loss",
    "kl_div", "l1_loss", "mse_loss", "nll_loss", "smooth_l1_loss",
    "softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits",
]  # fmt: skip

_REDUCTIONS = ("mean", "sum", "none")


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    return _ops.mean(loss) if reduction == "mean" else _ops.reduce_sum(loss)


def _pair(input: Any, target: Any, op: str, reduction: str) -> tuple[Tensor, Tensor]:
    arguments.one_of(reduction, _REDUCTIONS, op, "reduction")
    x = arguments.floating(arguments.tensor(input, op))
    return x, arguments.tensor(target, op, "target")


def _broadcast_pair(input: Any, target: Any, op: str, reduction: str) -> tuple[Tensor, Tensor]:
    """As _pair; warns where the differences have another shape than the input."""
    x, y = _pair(input, target, op, reduction)
    if list(x.shape) != list(y.shape):
        try:
            dims = np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return x, y  # what is subtracted says it
        if dims != tuple(x.shape):
            warnings.warn(
                f"{op}: an input of shape {list(x.shape)} and a target of shape {list(y.shape)} broadcast "
                f"to {list(dims)}: reshape one of them if that is not meant{where()}",
                RuntimeWarning,
                stacklevel=2,
            )
    return x, y


# Regression ---------------------------------------------------------------------------------------


@wide_plan
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """$(input - target)^2$. The two broadcast."""
    x, y = _broadcast_pair(input, target, "mse_loss", reduction)
    return _reduced(_ops.square(x - y), reduction)


@one_plan
def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """|input - target|. The two broadcast."""
    x, y = _broadcast_pair(input, target, "l1_loss", reduction)
    return _reduced(_ops.abs(x - y), reduction)


@wide_plan
def smooth_l1_loss(input: Any, target: Any, beta: Any = 1.0, reduction: str = "none") -> Tensor:
    """$d^2 / (2 beta)$ where $d = |input - target|$ is below beta, and $d - beta / 2$ elsewhere.

    beta 0: $d$ everywhere. Raises ValueError for a beta below 0, or for two shapes.
    """
    x, y = _same_shape(*_pair(input, target, "SmoothL1Loss", reduction), "SmoothL1Loss")
    if not arguments.option(beta, "SmoothL1Loss", "beta") >= 0:
        bad_value(f"SmoothL1Loss: beta must not be negative, got {beta}")
    d = x - y
    size = _ops.abs(d)
    if beta == 0:
        return _reduced(size, reduction)
    near = _ops.square(d) * (0.5 / beta)
    return _reduced(_ops.where(_ops.less(size, beta), near, size - 0.5 * beta), reduction)


@wide_plan
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: Any = 1.0) -> Tensor:
    """$d^2 / 2$ where $d = |input - target|$ is at most delta, and $delta (d - delta / 2)$ elsewhere.

    Huber, "Robust estimation of a location parameter" (1964), section 5. Raises ValueError unless
    delta is positive.
    """
    x, y = _broadcast_pair(input, target, "huber_loss", reduction)
    if not arguments.option(delta, "huber_loss", "delta") > 0:
        bad_value(f"huber_loss: delta must be positive, got {delta}")
    d = x - y
    size = _ops.abs(d)
    far = (size - 0.5 * delta) * delta
    near = _ops.square(d) * 0.5
    return _reduced(_ops.where(_ops.less_equal(size, delta), near, far), reduction)


def _same_shape(x: Tensor, y: Tensor, op: str) -> tuple[Tensor, Tensor]:
    if x.shape != y.shape:
        bad_value(f"{op}: input has shape {list(x.shape)}, target {list(y.shape)}")
    return x, y


# Classification -----------------------------------------------------------------------------------


def _classes_last(x: Tensor) -> Tensor:
    """[C] as [1, C], [N, C, ...] as [N * ..., C]."""
    if x.ndim == 1:
        return _ops.reshape(x, [1, x.size])
    moved = _ops.transpose(x, [0, *range(2, x.ndim), 1])
    rows = math.prod(moved.shape[:-1])
    return _ops.reshape(moved, [rows, x.shape[1]])


def _check_weight(weight: Any, classes: int, like: Tensor, op: str) -> Tensor | None:
    if weight is None:
        return None
    w = _ops.cast(arguments.tensor(weight, op, "weight"), like.dtype)
    if tuple(w.shape) != (classes,):
        bad_value(f"{op}: weight has shape {list(w.shape)}, but there are {classes} classes")
    return w


#: Up to so many classes, comparing a label with all of them costs less than leaving the pass over
#: the rows to look up one of them: the comparison is part of that pass, and so is its gradient.
_COMPARED_CLASSES = 512


def _picked(rows: Tensor, at: Tensor) -> Tensor:
    """rows[i, at[i]] for each i. rows: [N, C]; at: int32 [N] of valid indices."""
    count, classes = rows.shape
    if classes <= _COMPARED_CLASSES:
        number = _ops.iota([1, classes], _core.int32, 1)
        chosen = _ops.equal(_ops.reshape(at, [count, 1]), number)
        return _ops.reduce_sum(_ops.where(chosen, rows, 0), [1])
    at = _ops.cast(at, _core.int64)
    first = _ops.iota([count], _core.int64, 0) * classes
    return _ops.gather(_ops.reshape(rows, [count * classes]), at + first, 0)


_PROBABILITIES = (
    "; probabilities of each class are of a floating dtype: target.astype(gradcell.float32)"
)


def _nll(
    logp: Tensor, target: Tensor, weight: Any, ignore: int, reduction: str, smoothing: float,
    op: str, made: bool,
) -> Tensor:  # fmt: skip
    """The loss of classes by index. logp: [C] or [N, C, ...]; target: without the dimension C.

    made: logp is the result of a pass over the rows, which _picked may be part of.
    """
    classes = logp.shape[1] if logp.ndim > 1 else logp.size
    wanted = (logp.shape[0], *logp.shape[2:]) if logp.ndim > 1 else ()
    if tuple(target.shape) != wanted:
        bad_value(
            f"{op}: input of shape {list(logp.shape)} needs a target of shape {list(wanted)}, got "
            f"{list(target.shape)}{_PROBABILITIES * (target.shape == logp.shape)}"
        )
    if target.dtype.is_floating or target.dtype == _core.bool:
        bad_type(f"{op}: the target must be of integers, got {target.dtype}")
    w = _check_weight(weight, classes, logp, op)
    rows = _classes_last(logp)
    count = rows.shape[0]
    narrow = target.dtype.name not in ("int64", "uint32", "uint64") and abs(ignore) < 2**31
    at = _ops.reshape(_ops.cast(target, _core.int32 if narrow else _core.int64), [count])
    counted = _ops.not_equal(at, ignore)
    known = _ops.iota([classes], place_type(classes), 0)
    at = _ops.label(known, _ops.where(counted, at, 0), 0)
    if made:
        picked = _picked(rows, at)
    else:
        picked = _ops.reshape(_ops.take_along(rows, _ops.reshape(at, [count, 1])), [count])
    row_weight = _ops.cast(counted, logp.dtype)
    if w is not None:
        row_weight = row_weight * _ops.gather(w, at, 0)
    loss = _ops.where(counted, picked, 0) * row_weight
    if smoothing:
        each = rows if w is None else rows * w
        even = _ops.where(counted, _ops.reduce_sum(each, [1]), 0)
        loss = loss * (1.0 - smoothing) + even * (smoothing / classes)
    loss = -loss
    if reduction == "none":
        return _ops.reshape(loss, list(wanted))
    total = _ops.reduce_sum(loss)
    return total / _ops.reduce_sum(row_weight) if reduction == "mean" else total


@wide_plan
def nll_loss(
    inputs: Any, target: Any, weight: Any = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """The negative log likelihood: minus the logarithmic probability of each target class.

    inputs: logarithms of probabilities, [N, C], [N, C, ...] or [C]; target: class indices, without
    the dimension C. weight: [C], multiplies each class's loss; the mean is over the sum of weights.
    Targets equal to ignore_index do not count. reduction: 'mean', 'sum' or 'none'. label_smoothing:
    the fraction of each label that is spread over all classes. Raises ValueError for incompatible
    shapes, IndexError for a class out of range.
    """
    x, y = _pair(inputs, target, "nll_loss", reduction)
    if x.ndim == 0:
        bad_value("nll_loss: inputs need a class dimension")
    smoothing = arguments.number(label_smoothing, "nll_loss", "label_smoothing", least=0, most=1)
    return _nll(x, y, weight, ignore_index, reduction, smoothing, "nll_loss", False)


def _soft_cross_entropy(
    logp: Tensor, p: Tensor, weight: Any, reduction: str, smoothing: float
) -> Tensor:
    axis = 1 if logp.ndim > 1 else 0
    classes = logp.shape[axis]
    w = _check_weight(weight, classes, logp, "cross_entropy")
    if smoothing:
        p = p * (1.0 - smoothing) + smoothing / classes
    terms = logp * p
    if w is not None:
        terms = terms * _ops.reshape(w, [classes] + [1] * (logp.ndim - 1 - axis))
    loss = -_ops.reduce_sum(terms, [axis])
    return _reduced(loss, reduction)


@wide_plan
def cross_entropy(
    input: Any, target: Any, weight: Any = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Minus the logarithm of the softmax probability of the target classes.

    input: scores, [N, C], [N, C, ...] or [C]. target: class indices (integers, without the
    dimension C) or probabilities (input's shape and a floating dtype). weight: [C], multiplies each
    class's loss; with class indices the mean is over the sum of weights, with probabilities over
    the number of targets. Targets equal to ignore_index do not count. label_smoothing: that
    fraction of each target is spread evenly over all classes; Szegedy et al., "Rethinking the
    Inception architecture" (CVPR 2016), section 7. Raises ValueError for incompatible shapes,
    IndexError for a class out of range.
    """
    x, y = _pair(input, target, "cross_entropy", reduction)
    if x.ndim == 0:
        bad_value("cross_entropy: input needs a class dimension")
    smoothing = arguments.number(
        label_smoothing, "cross_entropy", "label_smoothing", least=0, most=1
    )
    logp = log_softmax(x, 1 if x.ndim > 1 else 0)
    if y.dtype.is_floating:
        if y.shape != x.shape:
            bad_value(
                f"cross_entropy: probabilities of shape {list(y.shape)} for an input of shape "
                f"{list(x.shape)}; class indices must be integers"
            )
        return _soft_cross_entropy(logp, y, weight, reduction, smoothing)
    return _nll(logp, y, weight, ignore_index, reduction, smoothing, "cross_entropy", True)


@wide_plan
def softmax_cross_entropy_with_logits(logits: Any, labels: Any) -> Tensor:
    """The cross entropy of each row: [N, C] scores and [N, C] probabilities give [N].

    logits: the output of the network. labels: the wanted values or classes.
    """
    x, y = _same_shape(*_pair(logits, labels, "SoftmaxCrossEntropyWithLogits", "none"),
                       "SoftmaxCrossEntropyWithLogits")  # fmt: skip
    if x.ndim != 2:
        bad_value(f"SoftmaxCrossEntropyWithLogits: [N, C] is needed, got {list(x.shape)}")
    return -_ops.reduce_sum(log_softmax(x, 1) * y, [1])


@one_plan
def sparse_softmax_cross_entropy_with_logits(logits: Any, labels: Any) -> Tensor:
    """The mean cross entropy of [N, C] scores and [N] class indices.

    logits: the output of the network. labels: the wanted values or classes.
    """
    return cross_entropy(logits, labels)


# Probabilities ------------------------------------------------------------------------------------

#: Keeps the logarithm of a probability of 0 finite: at least -27.6.
_TINY = 1e-12


@wide_plan
def binary_cross_entropy(
    logits: Any, labels: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """$-(y log(p) + (1 - y) log(1 - p))$ for probabilities p = logits and labels y of one shape.

    1e-12 is added inside the logarithms. weight: multiplies each element's loss.
    """
    p, y = _same_shape(
        *_pair(logits, labels, "BinaryCrossEntropy", reduction), "BinaryCrossEntropy"
    )
    yes = y * _ops.log(p + _TINY)
    no = (1.0 - y) * _ops.log(1.0 - p + _TINY)
    loss = -(yes + no)
    return _reduced(loss if weight is None else loss * weight, reduction)


@wide_plan
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """The binary cross entropy of sigmoid(input), computed without overflow.

    weight: multiplies each element's loss; pos_weight: multiplies the target's part of it. Both
    broadcast. reduction: 'mean', 'sum' or 'none'.
    """
    x, y = _same_shape(*_pair(input, target, "BCEWithLogitsLoss", reduction), "BCEWithLogitsLoss")
    if pos_weight is None:
        loss = _softplus(x) - x * y
    else:  # y w softplus(-x) + (1 - y) softplus(x), where softplus(x) = x + softplus(-x)
        weight_1 = arguments.operand(pos_weight, "BCEWithLogitsLoss", "pos_weight", x)
        factor = (weight_1 - 1.0) * y + 1.0
        tail = factor * _softplus(-x)
        loss = (1.0 - y) * x + tail
    return _reduced(loss if weight is None else loss * weight, reduction)


@wide_plan
def kl_div(logits: Any, labels: Any, reduction: str = "mean") -> Tensor:
    """$labels (log(labels) - logits)$, 0 where labels is 0: the divergence from probabilities whose
    logarithms are logits. reduction 'batchmean': the sum over the first dimension's size.

    The slope by a label of 0 is taken to be 0. Its limit is infinite, but that of the slope by what a
    softmax makes the label of is 0, which an infinite one would turn into NaN.
    """
    arguments.one_of(reduction, (*_REDUCTIONS, "batchmean"), "kl_div", "reduction")
    batch_mean = reduction == "batchmean"
    x, y = _same_shape(*_pair(logits, labels, "kl_div", "sum"), "kl_div")
    none = _ops.less_equal(y, 0)  # but not where y is NaN, which stays
    log_y = _ops.log(_ops.where(none, 1, y))
    loss = _ops.where(none, 0, y * (log_y - x))
    if batch_mean:
        return _ops.reduce_sum(loss) / float(x.shape[0] if x.ndim else 1)
    return _reduced(loss, reduction)


@one_plan
def nll_loss_and_weight(
    logits: Any, labels: Any, weight: Any, *, reduction: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """(nll_loss, the sum of the weights of the classes that count)."""
    loss = nll_loss(logits, labels, weight, ignore_index, reduction)
    y = arguments.tensor(labels, "NLLLoss", "labels")
    counts = _ops.not_equal(y, ignore_index)
    taken = _ops.gather(weight, _ops.where(counts, y, np.int32(0)), 0)
    return loss, _ops.reduce_sum(_ops.where(counts, taken, 0))
