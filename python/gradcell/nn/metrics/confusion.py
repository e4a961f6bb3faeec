"""Confusion matrices, what is computed of them, and curves over thresholds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell.base import bad_type, bad_value, fields, unsupported
from gradcell.nn.metrics.metric import OfPairs, none_seen, same_shape

__all__ = ["ROC", "ConfusionMatrix", "ConfusionMatrixMetric", "auc"]


@fields.declared
class ConfusionMatrix(OfPairs):
    """The number of samples of class i that were predicted as class j: [num_classes, num_classes].

    normalize: 'target' (rows sum to 1), 'prediction' (columns do), 'all' or 'no_norm'. threshold:
    in the binary case, predictions from this number on are class 1. Predictions [N, C, ...] or
    labels [N, ...]. Raises ValueError for incompatible shapes or classes out of range.
    """

    num_classes: int = fields.integer(1)
    normalize: str = fields.one_of("target", "prediction", "all", "no_norm", default="no_norm")
    threshold: float = fields.number(default=0.5)

    def _build(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all batches."""
        self.confusion_matrix: np.ndarray = np.zeros((self.num_classes, self.num_classes))
        self._is_update = False

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        n = self.num_classes
        if y_pred.ndim == y.ndim + 1:
            y_pred = y_pred.argmax(axis=1)
        elif np.issubdtype(y_pred.dtype, np.floating):
            y_pred = y_pred >= self.threshold
        same_shape("ConfusionMatrix", y_pred, y)
        y_pred, y = y_pred.reshape(-1).astype(np.int64), y.reshape(-1).astype(np.int64)
        for values in (y_pred, y):
            if values.size and not (0 <= values.min() and values.max() < n):
                bad_value(
                    f"ConfusionMatrix: the classes must be in [0, {n}), but they go from {values.min()} to "
                    f"{values.max()}"
                )
        self.confusion_matrix += np.bincount(y * n + y_pred, minlength=n * n).reshape(n, n)
        self._is_update = True

    def eval(self) -> np.ndarray:
        """The matrix. Raises RuntimeError if there were no batches."""
        if not self._is_update:
            raise none_seen("ConfusionMatrix")
        matrix = self.confusion_matrix
        if self.normalize == "no_norm":
            whole: np.ndarray = matrix.copy()
            return whole
        axis = {"target": 1, "prediction": 0}.get(self.normalize)
        total = matrix.sum(axis=axis, keepdims=True)
        return np.where(total > 0, matrix / np.where(total > 0, total, 1), 0.0)


def _over(a: Any, b: Any) -> np.ndarray:
    a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
    return np.where(b != 0, a / np.where(b != 0, b, 1), np.nan)


def _prevalence_threshold(tp: Any, fp: Any, tn: Any, fn: Any) -> np.ndarray:
    tpr, tnr = _over(tp, tp + fn), _over(tn, tn + fp)
    return _over(np.sqrt(tpr * (1 - tnr)) + tnr - 1, tpr + tnr - 1)


def _matthews(tp: Any, fp: Any, tn: Any, fn: Any) -> np.ndarray:
    root = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return _over(tp * tn - fp * fn, root)


#: From the numbers of true and false positives and negatives.
_RATES: dict[str, Callable[..., np.ndarray]] = {
    "tpr": lambda tp, fp, tn, fn: _over(tp, tp + fn),
    "tnr": lambda tp, fp, tn, fn: _over(tn, tn + fp),
    "ppv": lambda tp, fp, tn, fn: _over(tp, tp + fp),
    "npv": lambda tp, fp, tn, fn: _over(tn, tn + fn),
    "fnr": lambda tp, fp, tn, fn: _over(fn, tp + fn),
    "fpr": lambda tp, fp, tn, fn: _over(fp, tn + fp),
    "fdr": lambda tp, fp, tn, fn: _over(fp, tp + fp),
    "for": lambda tp, fp, tn, fn: _over(fn, tn + fn),
    "pt": _prevalence_threshold,
    "ts": lambda tp, fp, tn, fn: _over(tp, tp + fn + fp),
    "acc": lambda tp, fp, tn, fn: _over(tp + tn, tp + fp + tn + fn),
    "ba": lambda tp, fp, tn, fn: (_over(tp, tp + fn) + _over(tn, tn + fp)) / 2,
    "f1": lambda tp, fp, tn, fn: _over(2 * tp, 2 * tp + fn + fp),
    "mcc": _matthews,
    "fm": lambda tp, fp, tn, fn: np.sqrt(_over(tp, tp + fp) * _over(tp, tp + fn)),
    "bm": lambda tp, fp, tn, fn: _over(tp, tp + fn) + _over(tn, tn + fp) - 1,
    "mk": lambda tp, fp, tn, fn: _over(tp, tp + fp) + _over(tn, tn + fn) - 1,
}
_ALIASES = {
    "tpr": "sensitivity recall hit_rate true_positive_rate",
    "tnr": "specificity selectivity true_negative_rate",
    "ppv": "precision positive_predictive_value",
    "npv": "negative_predictive_value",
    "fnr": "miss_rate false_negative_rate",
    "fpr": "fall_out false_positive_rate",
    "fdr": "false_discovery_rate",
    "for": "false_omission_rate",
    "pt": "prevalence_threshold",
    "ts": "threat_score critical_success_index csi",
    "acc": "accuracy",
    "ba": "balanced_accuracy",
    "f1": "f1_score",
    "mcc": "matthews_correlation_coefficient",
    "fm": "fowlkes_mallows_index",
    "bm": "informedness bookmaker_informedness",
    "mk": "markedness deltap",
}
_SHORT = {name: key for key, names in _ALIASES.items() for name in [key, *names.split()]}
_DECREASES = ["none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel"]


def _short_name(name: str) -> str:
    return _SHORT.get(name.lower().replace(" ", "_"), "")


def _rate_name(value: Any, owner: str, name: str) -> str:
    if not isinstance(value, str):
        bad_type(f"{owner}: {name} must be a string, got {value!r}")
    if not _short_name(value):
        unsupported(f"{owner}: {name} {value!r} is not one of {', '.join(sorted(_SHORT))}")
    return value


@fields.declared
class ConfusionMatrixMetric(OfPairs):
    """A rate of true and false positives and negatives.

    metric_name: 'sensitivity', 'specificity', 'precision', 'negative predictive value', 'miss
    rate', 'fall out', 'false discovery rate', 'false omission rate', 'prevalence threshold',
    'threat score', 'accuracy', 'balanced accuracy', 'f1 score', 'matthews correlation coefficient',
    'fowlkes mallows index', 'informedness', 'markedness', or another of their names. skip_channel:
    False leaves out channel 0, the background. calculation_method: the mean of the samples' rates,
    not the rate of all samples' counts; decrease: how the former are reduced over batch and
    channels, 'mean' or 'sum'.

    Predictions and labels [N, C, ...] of 0 and 1. Raises ValueError for anything else.
    """

    skip_channel: bool = fields.boolean(default=True)
    metric_name: str = fields.checked(_rate_name, default="sensitivity")
    calculation_method: bool = fields.boolean(default=False)
    decrease: str = fields.one_of(*_DECREASES, default="mean")

    def _build(self) -> None:
        self._rate = _RATES[_short_name(self.metric_name)]
        self.clear()

    def clear(self) -> None:
        """Forgets all batches."""
        self._counts = np.zeros(4)
        self._total, self._number = 0.0, 0

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        rank = y_pred.ndim
        same_shape("ConfusionMatrixMetric", y_pred, y)
        if y.ndim < 2 or not np.isin(y, (0, 1)).all():
            bad_value(
                f"ConfusionMatrixMetric: labels must be [batch, classes, ...] of 0 and 1, got shape {y.shape}"
            )
        if not self.skip_channel and y.shape[1] > 1:
            y_pred, y = y_pred[:, 1:], y[:, 1:]
        y_pred, y = (x.reshape(*x.shape[:2], -1).astype(float) for x in (y_pred, y))
        tp, tn = ((y_pred + y) == 2).sum(axis=2), ((y_pred + y) == 0).sum(axis=2)
        actual = y.sum(axis=2)
        counts = np.stack([tp, y.shape[2] - actual - tn, tn, actual - tp])
        if self.calculation_method and rank > 2:
            self._add_rates(self._rate(*counts))
        else:
            self._counts += counts.sum(axis=(1, 2))

    def _add_rates(self, rates: np.ndarray) -> None:
        valid = ~np.isnan(rates)
        rates = np.where(valid, rates, 0.0)
        if self.decrease == "sum":
            count = int(valid.sum())  # each batch's sum counts by its rates, as in MindSpore
            self._total, self._number = self._total + rates.sum() * count, self._number + count
            return
        if self.decrease != "mean":
            bad_value(
                f"ConfusionMatrixMetric: decrease {self.decrease!r} gives several values; only 'mean' and "
                "'sum' give one"
            )
        each = valid.sum(axis=1)
        means = np.where(each > 0, rates.sum(axis=1) / np.maximum(each, 1), 0.0)
        count = int((each > 0).sum())
        self._total, self._number = self._total + means.sum(), self._number + count

    def eval(self) -> Any:
        """The rate. Raises RuntimeError if there were no batches."""
        if self._number:
            return self._total / self._number
        if not self._counts.any():
            raise none_seen("ConfusionMatrixMetric")
        return self._rate(*self._counts.reshape(4, 1))


@fields.declared
class ROC(OfPairs):
    """The receiver operating characteristic: (false positive rates, true positive rates,
    thresholds), for falling thresholds; lists of them, one for each class, if there are several.

    class_num: None or 1 for predictions and labels of one shape, else the number of classes of
    predictions [N, class_num] with labels [N]. pos_label: the label that counts as positive, 1 by
    default. Only the last batch counts, as in MindSpore. Raises ValueError for incompatible
    shapes and labels of one kind only.
    """

    class_num: int | None = fields.integer(default=None)
    pos_label: int | None = fields.integer(default=None)

    def _build(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all batches."""
        self._scores: Any = None

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        if y_pred.ndim == y.ndim:
            same_shape("ROC", y_pred, y)
            if self.class_num not in (None, 1):
                bad_value(
                    "For 'ROC', when predictions and labels have the same shape, the 'class_num' must be 1, "
                    f"but got {self.class_num}."
                )
            y_pred = y_pred.reshape(-1, 1)
        elif y_pred.ndim != 2 or y.ndim != 1 or len(y) != len(y_pred):
            bad_value(f"ROC: predictions of shape {y_pred.shape} and labels of shape {y.shape}")
        elif self.pos_label is not None or self.class_num != y_pred.shape[1]:
            bad_value(
                f"ROC: predictions of {y_pred.shape[1]} classes need class_num = {y_pred.shape[1]} and no "
                f"pos_label, got {self.class_num} and {self.pos_label}"
            )
        self._scores, self._labels = y_pred, y.reshape(-1)

    def eval(self) -> Any:
        """The curves. Raises RuntimeError if there was no batch."""
        if self._scores is None:
            raise none_seen("ROC")
        if self._scores.shape[1] == 1:
            positive = 1 if self.pos_label is None else self.pos_label
            return _curve(self._scores[:, 0], self._labels == positive)
        curves = [_curve(s, self._labels == c) for c, s in enumerate(self._scores.T)]
        return tuple(list(part) for part in zip(*curves, strict=True))


def _curve(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if positive.all() or not positive.any():
        kind = "negative" if positive.all() else "positive"
        bad_value(f"For 'ROC.eval', there is no {kind} samples in true value.")
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    right = np.cumsum(positive)[ends]
    wrong = ends + 1 - right
    thresholds = np.concatenate([scores[:1] + 1, scores[ends]])
    return np.append(0, wrong) / wrong[-1], np.append(0, right) / right[-1], thresholds


def auc(x: Any, y: Any, reorder: bool = False) -> Any:
    """The area under the curve y(x), by trapezoids; x rises or falls, or reorder sorts by it.

    x, y: arrays of one length, at least 2. reorder: whether points are sorted by x first. Raises
    TypeError for anything that is not an array, ValueError for other shapes or an x that neither
    rises nor falls.
    """
    if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
        bad_type(
            f"For 'auc', the argument 'x' and 'y' must all be np.ndarray, but got {type(x)}, {type(y)}"
        )
    for part in (x, y):
        if part.ndim not in (1, 2) or part.size != len(part):
            bad_value(f"For 'auc', the arrays must be flat, but got {part.shape}")
    if len(x) != len(y) or len(x) < 2:
        bad_value(
            f"For 'auc', the arrays must have one length of at least 2, but got {len(x)} and {len(y)}"
        )
    x, y = x.ravel(), y.ravel()
    if reorder:
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    steps = np.diff(x)
    if (steps < 0).any() and not (steps <= 0).all():
        bad_value(
            "For 'auc', 'x' must be increasing or decreasing throughout, or reorder is needed"
        )
    sign = -1 if (steps < 0).any() else 1
    return np.float64(sign * (steps * (y[1:] + y[:-1])).sum() / 2)
