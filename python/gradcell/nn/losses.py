"""Loss functions as cells: each is the function of the same name in ops, with its arguments kept.

reduction, where there is one: 'mean', 'sum' or 'none' (the loss of each element); any other raises
ValueError. Inputs are tensors, or TypeError; incompatible shapes raise ValueError.
"""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any, ClassVar

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, fields, publish, unsupported
from gradcell.nn.cell import Cell, Layer
from gradcell.nn.of_functions import cell_of
from gradcell.ops.networks import losses as _functions


class LossBase(Cell):
    """The base class of losses: `get_loss` reduces elementwise losses.

    reduction: 'mean', 'sum' or 'none' (also None). Raises ValueError for anything else.
    """

    _reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")

    def __init__(self, reduction: str | None = "mean") -> None:
        super().__init__()
        LossBase._build(self, reduction)

    def _build(self, reduction: str | None = "mean") -> None:
        self.reduction: str = "none" if reduction is None else reduction
        arguments.one_of(self.reduction, self._reductions, type(self).__name__, "reduction")
        self.average: bool = self.reduction == "mean"
        self.reduce: bool = self.reduction != "none"

    def get_axis(self, x: Tensor) -> tuple[int, ...]:
        """All axes of x."""
        return tuple(range(x.ndim))

    def get_loss(self, x: Tensor, weights: Any = 1.0) -> Tensor:
        """x times weights, reduced: a scalar, or x's shape for 'none'."""
        if isinstance(weights, Tensor) or weights != 1.0:
            x = _ops.mul(x, weights)
        if self.reduction == "mean":
            return _ops.mean(x)
        return _ops.reduce_sum(x) if self.reduction == "sum" else x

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """To be defined by each loss."""
        unsupported(f"For '{type(self).__name__}', the method 'construct' is not defined.")

    def _check(self, **inputs: Any) -> None:
        for name, value in inputs.items():
            arguments.tensor(value, type(self).__name__, name)


class _Pair(LossBase):
    """A loss of logits and labels."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self._computed(logits, labels)


_Loss = LossBase  #: its name in older programs


@cell_of(_functions.mse_loss)
class MSELoss(_Pair, Layer):
    """$(logits - labels)^2$, reduced. Shapes broadcast; dtypes are promoted."""

    reduction: InitVar[str | None] = fields.anything(default="mean")


class RMSELoss(LossBase, Layer):
    """The square root of the mean squared error: a scalar. Shapes broadcast."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check(logits=logits, labels=labels)
        return _ops.sqrt(_functions.mse_loss(logits, labels))


@cell_of(_functions.l1_loss)
class L1Loss(_Pair, Layer):
    """$|logits - labels|$, reduced. Shapes broadcast; dtypes are promoted."""

    reduction: InitVar[str | None] = fields.anything(default="mean")


class MAELoss(L1Loss):
    """The mean absolute error: L1Loss under another name."""


@cell_of(_functions.smooth_l1_loss)
class SmoothL1Loss(_Pair, Layer):
    """$d^2 / (2 beta)$ where $d = |logits - labels|$ is below beta, and $d - beta / 2$ elsewhere; by
    default not reduced.

    Girshick, Fast R-CNN (2015), equation 3. Inputs of one shape. Raises ValueError unless beta > 0.
    """

    beta: float = fields.number(above=0, default=1.0)
    reduction: InitVar[str | None] = fields.anything(default="none")


@cell_of(_functions.huber_loss)
class HuberLoss(_Pair, Layer):
    """$d^2 / 2$ where $d = |logits - labels|$ is at most delta, and $delta (d - delta / 2)$ elsewhere,
    reduced.

    Huber, Robust estimation of a location parameter (1964). Shapes broadcast. Raises ValueError
    unless delta > 0.
    """

    reduction: InitVar[str | None] = fields.anything(default="mean")
    delta: float = fields.number(above=0, default=1.0)


@cell_of(_functions.cross_entropy)
class CrossEntropyLoss(_Pair):
    """Minus the logarithm of the softmax probability of the labels.

    weight: (C,) or None, multiplies each class's loss. ignore_index: labels that do not count.
    label_smoothing: that fraction of each label is spread over all classes.

    logits: (N, C), (N, C, ...) or (C,). labels: class indices, integers of that shape without C, or
    probabilities of logits' shape and a floating dtype. The mean is over the sum of the weights for
    indices, over the number of labels for probabilities.

    Raises IndexError for a label out of range, ValueError for a label_smoothing outside [0, 1].
    """

    weight: Tensor | None = fields.tensor(default=None)
    ignore_index: int = fields.anything(default=-100)
    reduction: InitVar[str | None] = fields.anything(default="mean")
    label_smoothing: float = fields.number(least=0, most=1, default=0.0)


@cell_of(_functions.nll_loss)
class NLLLoss(_Pair):
    """Minus the logarithmic probability of the labels: CrossEntropyLoss of what log_softmax gave.

    logits: logarithms of probabilities. Arguments, shapes and errors are those of CrossEntropyLoss,
    labels always class indices.
    """

    weight: Tensor | None = fields.tensor(default=None)
    ignore_index: int = fields.anything(default=-100)
    reduction: InitVar[str | None] = fields.anything(default="mean")


@fields.declared
class SoftmaxCrossEntropyWithLogits(LossBase):
    """Minus the logarithm of the softmax probability of the labels, row by row; by default not
    reduced.

    sparse: labels are class indices (N,), else probabilities (N, C). logits: (N, C).

    Raises TypeError for probabilities that are not floating or indices that are not integers,
    IndexError for an index out of range.
    """

    sparse: bool = fields.boolean(default=False)
    reduction: InitVar[str | None] = fields.anything(default="none")

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check(logits=logits, labels=labels)
        if self.sparse == labels.dtype.is_floating:
            wanted = "class indices, integers" if self.sparse else "probabilities, floating"
            bad_type(
                f"For 'SoftmaxCrossEntropyWithLogits', the 'labels' must be {wanted}, but got {labels.dtype}."
            )
        if self.sparse:
            return _functions.cross_entropy(logits, labels, reduction=self.reduction)
        return self.get_loss(_functions.softmax_cross_entropy_with_logits(logits, labels))


@cell_of(_functions.binary_cross_entropy)
class BCELoss(_Pair, Layer):
    """$-(y log(p) + (1 - y) log(1 - p))$ for probabilities p and labels y of one shape, reduced.

    weight: None, or multiplies each element's loss (broadcasts).
    """

    weight: Tensor | None = fields.tensor(default=None)
    reduction: InitVar[str | None] = fields.anything(default="mean")


@cell_of(_functions.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(_Pair, Layer):
    """The binary cross entropy of sigmoid(logits), computed without overflow.

    weight: None, or multiplies each element's loss. pos_weight: None, or multiplies the part of
    label 1. Both broadcast to the shape of logits and labels, which is one.
    """

    reduction: InitVar[str | None] = fields.anything(default="mean")
    weight: Tensor | None = fields.tensor(default=None)
    pos_weight: Tensor | None = fields.tensor(default=None)


@cell_of(_functions.kl_div)
class KLDivLoss(_Pair, Layer):
    """$labels (log(labels) - logits)$, 0 where labels is 0, reduced; inputs of one shape.

    logits: logarithms of probabilities. labels: probabilities. reduction: also 'batchmean', the sum
    over the size of the first dimension.
    """

    _reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none", "batchmean")

    reduction: InitVar[str | None] = fields.anything(default="mean")


publish(globals())
