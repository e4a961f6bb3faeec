"""Losses of pairs and triplets, margins, counts, masks and sequences as cells: most are the function
of the same name in ops, with its arguments kept. Reductions as in gradcell.nn.losses.
"""

from __future__ import annotations

import math
from dataclasses import InitVar
from typing import Any

from gradcell._core import Tensor, int32, ops as _ops
from gradcell.base import arguments, bad_value, fields, publish
from gradcell.nn.activations import _activation_of
from gradcell.nn.losses import LossBase, _Pair
from gradcell.nn.of_functions import cell_of
from gradcell.ops.decorators import in_float32
from gradcell.ops.elements.activations import log_softmax
from gradcell.ops.networks import ctc, margins as _functions
from gradcell.ops.reductions.reductions import length


@cell_of(_functions.cosine_embedding_loss)
class CosineEmbeddingLoss(LossBase):
    """1 - cos(x1, x2) where the label is 1, max(0, cos - margin) where it is -1: (N, features) each,
    labels (N,). Raises ValueError for a margin out of [-1, 1]."""

    margin: float = fields.number(least=-1, most=1, default=0.0)
    reduction: InitVar[str | None] = fields.anything(default="mean")

    def construct(self, logits_x1: Tensor, logits_x2: Tensor, labels: Tensor) -> Tensor:  # type: ignore[override]
        return self._computed(logits_x1, logits_x2, labels)


@cell_of(_functions.margin_ranking_loss)
class MarginRankingLoss(LossBase):
    """max(0, -target (input1 - input2) + margin), target 1 or -1; all of one shape."""

    margin: float = fields.number(default=0.0)
    reduction: InitVar[str | None] = fields.anything(default="mean")

    def construct(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        return self._computed(input1, input2, target)


@fields.declared
class TripletMarginLoss(LossBase):
    """max(0, d(x, positive) - d(x, negative) + margin), d the p-norm of the difference plus eps; swap:
    with d(positive, negative) instead where that is less. See ops.triplet_margin_loss."""

    p: float = fields.number(above=0, default=2)
    swap: bool = fields.boolean(default=False)
    eps: float = fields.number(default=1e-6)
    reduction: InitVar[str | None] = fields.anything(default="mean")
    margin: float = fields.number(default=1.0)

    def construct(  # type: ignore[override]
        self, x: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0
    ) -> Tensor:
        margin = self.margin if self.margin != 1.0 else margin
        return _functions.triplet_margin_loss(
            x, positive, negative, margin, self.p, self.eps, self.swap, self.reduction
        )


@fields.declared
class TripletMarginWithDistanceLoss(LossBase):
    """TripletMarginLoss with a distance function of your own.

    distance_function: a function of two tensors [N, ...]; None for the Euclidean norm along axis 1.
    swap: whether the distance of positive and negative counts where it is smaller than that of x
    and negative. margin: the margin. Raises TypeError, ValueError.
    """

    distance_function: Any = fields.checked(arguments.function, default=None)
    swap: bool = fields.boolean(default=False)
    reduction: InitVar[str | None] = fields.anything(default="mean")
    margin: float = fields.number(default=1.0)

    def _build(self, reduction: str | None = "mean") -> None:
        super()._build(reduction)
        self.distance_function = self.distance_function or self._euclidean

    @staticmethod
    def _euclidean(x: Tensor, y: Tensor) -> Tensor:
        difference = _ops.sub(x, y)
        axis = arguments.axis_of(1, difference.ndim, "TripletMarginWithDistanceLoss")
        return length(_ops.reduce_sum(_ops.square(difference), axis))

    @in_float32
    def construct(self, x: Tensor, positive: Tensor, negative: Tensor) -> Tensor:  # type: ignore[override]
        self._check(x=x, positive=positive, negative=negative)
        near, far = self.distance_function(x, positive), self.distance_function(x, negative)
        if self.swap:
            far = _ops.minimum(far, self.distance_function(positive, negative))
        return self.get_loss(_ops.relu(_ops.add(_ops.sub(near, far), self.margin)))


@cell_of(_functions.hinge_embedding_loss)
class HingeEmbeddingLoss(_Pair):
    """logits where the label is 1, max(0, margin - logits) where it is -1; of one shape."""

    margin: float = fields.number(default=1.0)
    reduction: InitVar[str | None] = fields.anything(default="mean")


@cell_of(_functions.soft_margin_loss)
class SoftMarginLoss(_Pair):
    """$log(1 + exp(-labels logits))$, labels 1 or -1; of one shape."""

    reduction: InitVar[str | None] = fields.anything(default="mean")


@fields.declared
class MultiMarginLoss(LossBase):
    """max(0, margin - x[target] + x[i])^p, the mean over classes i; see ops.multi_margin_loss.

    weight: a weight for each class, or None.
    """

    p: int = fields.one_of(1, 2, default=1)
    margin: float = fields.number(default=1.0)
    reduction: InitVar[str | None] = fields.anything(default="mean")
    weight: Tensor | None = fields.tensor(default=None)

    def construct(self, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        weight = weight if self.weight is None else self.weight
        return _functions.multi_margin_loss(x, target, self.p, self.margin, weight, self.reduction)


@cell_of(_functions.multilabel_margin_loss)
class MultilabelMarginLoss(LossBase):
    """max(0, 1 - x[j] + x[i]) for labels j and other classes i; see ops.multilabel_margin_loss."""

    reduction: InitVar[str | None] = fields.anything(default="mean")

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        return self._computed(x, target)


@cell_of(_functions.multilabel_soft_margin_loss)
class MultiLabelSoftMarginLoss(LossBase):
    """The mean over classes of BCEWithLogitsLoss: (N, C) each; weight broadcasts."""

    weight: Tensor | None = fields.tensor(default=None)
    reduction: InitVar[str | None] = fields.anything(default="mean")

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        return self._computed(x, target)


@cell_of(_functions.gaussian_nll_loss)
class GaussianNLLLoss(LossBase):
    """(log(v) + (logits - labels)² / v) / 2 for v = max(var, eps); see ops.gaussian_nll_loss.

    full: whether the constant log(2 pi) / 2 is added.
    """

    full: bool = fields.boolean(default=False, kw_only=True)
    eps: float = fields.number(above=0, default=1e-6, kw_only=True)
    reduction: InitVar[str | None] = fields.anything(default="mean", kw_only=True)

    def construct(self, logits: Tensor, labels: Tensor, var: Tensor) -> Tensor:  # type: ignore[override]
        return self._computed(logits, labels, var)


@cell_of(_functions.poisson_nll_loss)
class PoissonNLLLoss(LossBase):
    """exp(input) - target input, or without log_input input - target log(input + eps); full: plus
    Stirling's approximation. See ops.poisson_nll_loss."""

    log_input: bool = fields.boolean(default=True)
    full: bool = fields.boolean(default=False)
    eps: float = fields.number(default=1e-8)
    reduction: InitVar[str | None] = fields.anything(default="mean")

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return self._computed(input, target)


@fields.declared
class CTCLoss(LossBase):
    """Minus the logarithmic probability of label sequences, however they are spread over time.

    log_probs (T, N, C) or (T, C), targets (N, S) or (S,), lengths (N,); blank: the class that
    stands for no label. zero_infinity: whether impossible sequences have a loss of 0. See ops.ctc_loss.
    """

    blank: int = fields.integer(0, default=0)
    reduction: InitVar[str | None] = fields.anything(default="mean")
    zero_infinity: bool = fields.boolean(default=False)

    def construct(  # type: ignore[override]
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        self._check(log_probs=log_probs, targets=targets)
        single = log_probs.ndim == 2
        if single:
            log_probs = _ops.reshape(log_probs, [log_probs.shape[0], 1, log_probs.shape[1]])
            targets = _ops.reshape(targets, [1, -1])
        how = (self.blank, self.reduction, self.zero_infinity)
        loss, _ = ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, *how)
        return _ops.reshape(loss, []) if single else loss


@fields.declared
class DiceLoss(LossBase):
    """1 - 2 <p, y> / (<p, p> + <y, y> + smooth): of one shape, a scalar.

    Milletari et al., V-Net (2016), section 3. Raises ValueError unless smooth > 0.
    """

    smooth: float = fields.number(above=0, default=1e-5)

    @in_float32
    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check(logits=logits, labels=labels)
        if logits.shape != labels.shape:
            bad_value(
                f"For 'DiceLoss', logits and labels must be of one shape, but got {list(logits.shape)} and "
                f"{list(labels.shape)}."
            )
        shared = _ops.reduce_sum(_ops.mul(logits, labels))
        both = _ops.reduce_sum(_ops.add(_ops.square(logits), _ops.square(labels)))
        return _ops.sub(1.0, _ops.div(_ops.mul(shared, 2.0), _ops.add(both, self.smooth)))


@fields.declared
class MultiClassDiceLoss(LossBase):
    """The mean over channels of DiceLoss: (N, C, ...) each.

    weights: (C, 1), multiplies each channel's loss. ignore_indiex: a channel that does not count.
    activation: of the logits, a name, a Cell or None. Raises TypeError, ValueError.
    """

    weights: Tensor | None = fields.tensor(default=None)
    ignore_indiex: int | None = fields.integer(default=None)
    activation: InitVar[Any] = fields.checked(_activation_of, default="softmax")

    def _build(self, reduction: str | None = "mean", activation: Any = None) -> None:
        self.binarydiceloss: DiceLoss = DiceLoss()
        self.activation = activation
        if self.weights is not None and self.weights.ndim != 2:
            bad_value(
                "For 'MultiClassDiceLoss', the dimension of 'weights' must be 2, but got "
                f"{self.weights.ndim}."
            )

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        self._check(logits=logits, labels=label)
        if logits.shape != label.shape or label.ndim < 2:
            bad_value(
                "For 'MultiClassDiceLoss', logits and labels must be (N, C, ...) of one shape, but got "
                f"{list(logits.shape)} and {list(label.shape)}."
            )
        channels = label.shape[1]
        if self.weights is not None and self.weights.shape[0] != channels:
            bad_value(
                f"For 'MultiClassDiceLoss', there are {self.weights.shape[0]} weights for {channels} "
                "channels."
            )
        if self.activation is not None:
            logits = self.activation(logits)
        total: Any = 0.0
        for i in range(channels):
            if i == self.ignore_indiex:
                continue
            loss = self.binarydiceloss(self._channel(logits, i), self._channel(label, i))
            total = total + (loss if self.weights is None else loss * self.weights[i])
        return total / channels  # type: ignore[no-any-return]

    @staticmethod
    def _channel(x: Tensor, i: int) -> Tensor:
        return _ops.slice(
            x, [0, i] + [0] * (x.ndim - 2), [x.shape[0], 1, *x.shape[2:]], [1] * x.ndim
        )


@fields.declared
class FocalLoss(LossBase):
    """$-(1 - p)^gamma log(p)$ for the probability p of each label.

    Lin et al., Focal loss (2017), equation 4. logits (N, C, ...); labels (N, 1, ...) of class
    numbers, or (N, C, ...) of probabilities. weight: (C,) or None. What is reduced, or returned for
    'none', is the mean over the dimensions behind C: (N,) for class numbers, (N, C) for
    probabilities. Raises TypeError, ValueError, IndexError for a class out of range.
    """

    weight: Tensor | None = fields.tensor(default=None)
    gamma: float = fields.number(default=2.0)
    reduction: InitVar[str | None] = fields.anything(default="mean")

    def _build(self, reduction: str | None = "mean") -> None:
        super()._build(reduction)
        if self.weight is not None and self.weight.ndim != 1:
            bad_value(
                f"For 'FocalLoss', the dimension of 'weight' must be 1, but got {self.weight.ndim}."
            )

    @in_float32
    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check(logits=logits, labels=labels)
        n, classes = logits.shape[:2] if logits.ndim > 1 else (0, 0)
        fits = labels.ndim == logits.ndim and logits.ndim > 1
        if not fits or labels.shape[1] not in (1, classes) or labels.shape[2:] != logits.shape[2:]:
            bad_value(
                "For 'FocalLoss', logits (N, C, ...) and labels (N, 1 or C, ...) are needed, but got "
                f"{list(logits.shape)} and {list(labels.shape)}."
            )
        places = math.prod(logits.shape[2:])
        logp = _ops.reshape(log_softmax(logits, 1), [n, classes, places])
        shares = _ops.reshape(labels, [n, labels.shape[1], places])
        by_class = labels.shape[1] == 1
        if by_class:
            # Looked up in the identity, so that a class out of range is an IndexError.
            rows = _ops.gather(_identity(classes, logp), _ops.cast(shares, int32), 0)
            rows = _ops.reshape(rows, [n, logp.shape[2], classes])
            shares = _ops.transpose(rows, [0, 2, 1])
        part = _ops.pow(_ops.sub(1.0, _ops.exp(logp)), self.gamma)
        loss = _ops.mul(_ops.neg(part), _ops.mul(logp, shares))
        if self.weight is not None:
            loss = _ops.mul(loss, _ops.reshape(self.weight, [1, -1, 1]))
        loss = _ops.reduce_sum(loss, [1]) if by_class else loss
        return self.get_loss(_ops.mean(loss, [loss.ndim - 1]))


def _identity(n: int, like: Tensor) -> Tensor:
    rows, columns = (_ops.iota([n, n], int32, k) for k in range(2))
    return _ops.cast(_ops.equal(rows, columns), like.dtype)


publish(globals())
