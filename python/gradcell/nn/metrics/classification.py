"""Metrics of class predictions: accuracy, precision, recall, F-scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell.base import arguments, bad_type, bad_value, fields
from gradcell.nn.metrics.metric import Mean, OfPairs, none_seen, same_shape

__all__ = [
    "F1", "Accuracy", "Fbeta", "Precision", "Recall", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "TopKCategoricalAccuracy",
]  # fmt: skip


def _classes(owner: str, y_pred: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(scores [samples, classes], class numbers [samples]) of predictions [N, C, ...] and labels
    [N, ...] or one-hot [N, C, ...]. Raises ValueError for wrong shapes and labels out of range."""
    if y_pred.ndim < 2:
        bad_value(f"{owner}: predictions must have shape [batch, classes], got {y_pred.shape}")
    if y.ndim > 1 and y.shape == y_pred.shape:
        if not (np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all()):
            bad_value(f"{owner}: labels of the predictions' shape must be one-hot")
        y = y.argmax(axis=1)
    if y.shape != y_pred.shape[:1] + y_pred.shape[2:]:
        bad_value(f"{owner}: predictions of shape {y_pred.shape} and labels of shape {y.shape}")
    classes = y_pred.shape[1]
    wrong = (y < 0) | (y >= classes)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        bad_value(
            f"{owner}: the label {y[at]} at {list(at)} is out of range: there are {classes} classes, 0 to "
            f"{classes - 1}"
        )
    return np.moveaxis(y_pred, 1, -1).reshape(-1, classes), y.reshape(-1).astype(np.int64)


def _eval_type(value: Any, owner: str, name: str) -> str:
    if value not in ("classification", "multilabel"):
        bad_type(
            f"For '{owner}', the argument '{name}' must be in ['classification', 'multilabel'], but got "
            f"{value!r}"
        )
    return value  # type: ignore[no-any-return]


def _labels(owner: str, y_pred: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both [N, C, ...] of 0 and 1 as [C, samples]. Raises ValueError for anything else."""
    same_shape(owner, y_pred, y)
    if y.ndim < 2 or not (np.isin(y_pred, (0, 1)).all() and np.isin(y, (0, 1)).all()):
        bad_value(
            f"{owner}: multilabel predictions and labels must be [batch, classes] of 0 and 1, got shape "
            f"{y.shape}"
        )
    classes = y.shape[1]
    return y_pred.swapaxes(1, 0).reshape(classes, -1), y.swapaxes(1, 0).reshape(classes, -1)


@fields.declared
class Accuracy(Mean):
    """The fraction of correct predictions.

    eval_type 'classification': predictions [N, C, ...], labels [N, ...] of class numbers or one-hot
    [N, C, ...]; 'multilabel': both [N, C, ...] of 0 and 1, a sample is correct if all its labels are.
    eval_type: 'classification' or 'multilabel'. Raises TypeError for other types, ValueError for
    incompatible shapes and labels out of range.
    """

    eval_type: str = fields.checked(_eval_type, default="classification")

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        if self.eval_type == "classification":
            y_pred, y = _classes("Accuracy", y_pred, y)
            right = y_pred.argmax(axis=1) == y
        else:
            y_pred, y = _labels("Accuracy", y_pred, y)
            right = (y_pred == y).all(axis=0)
        self._add(float(right.sum()), len(right))


@fields.declared
class TopKCategoricalAccuracy(Mean):
    """The fraction of samples whose label is among the k largest predictions: [N, C] and [N]."""

    k: int = fields.integer(1)

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        y_pred, y = _classes(type(self).__name__, y_pred, y)
        best = np.argsort(-y_pred, axis=1, kind="stable")[:, : self.k]
        self._add(float((best == y[:, None]).any(axis=1).sum()), len(y))


@fields.declared
class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """The fraction of samples whose largest output belongs to the correct class."""

    k: int = fields.fixed(1)


@fields.declared
class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """The fraction of samples whose correct class is among the five largest outputs."""

    k: int = fields.fixed(5)


class _PerClass(OfPairs):
    """Counts for each class; the mean over classes, or one value each."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """Forgets all batches."""
        self._right: Any = 0
        self._predicted: Any = 0
        self._actual: Any = 0
        self._class_num = 0

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        owner = type(self).__name__
        y_pred, y = _classes(owner, y_pred, y)
        classes, guess = y_pred.shape[1], y_pred.argmax(axis=1)
        if self._class_num not in (0, classes):
            bad_value(f"{owner}: predictions of {classes} classes after ones of {self._class_num}")
        self._class_num = classes
        self._right = self._right + np.bincount(y[guess == y], minlength=classes)
        self._predicted = self._predicted + np.bincount(guess, minlength=classes)
        self._actual = self._actual + np.bincount(y, minlength=classes)

    def _share(self, of: np.ndarray, average: Any) -> Any:
        """Right predictions over `of`, 0 where there is none."""
        shares = np.where(of > 0, self._right / np.where(of > 0, of, 1), 0.0)
        mean = arguments.boolean(average, type(self).__name__, "average")
        return float(shares.mean()) if mean else shares

    def _seen(self) -> None:
        if not self._class_num:
            raise none_seen(type(self).__name__)


@fields.declared
class _Sided(_PerClass):
    """Precision and recall: with 'multilabel', one value for each sample, and their mean."""

    eval_type: str = fields.checked(_eval_type, default="classification")

    def _base(self) -> Any:
        """Return the count by which the right predictions are divided."""
        raise NotImplementedError

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        if self.eval_type == "classification":
            super()._take(y_pred, y)
            return
        y_pred, y = _labels(type(self).__name__, y_pred, y)
        sums = [(y * y_pred).sum(axis=0), y_pred.sum(axis=0), y.sum(axis=0)]
        old = [self._right, self._predicted, self._actual]
        if self._class_num:
            sums = [np.concatenate(parts) for parts in zip(old, sums, strict=True)]
        self._class_num = len(y)
        self._right, self._predicted, self._actual = sums

    def eval(self, average: bool = False) -> Any:
        """One value for each class, or their mean. Raises RuntimeError if there were no batches."""
        self._seen()
        return self._share(self._base(), average)


class Precision(_Sided):
    """Correct predictions of a class divided by all predictions of it; one value for each class.

    eval_type: 'classification' or 'multilabel'; with 'multilabel' one value for each sample.
    """

    def _base(self) -> Any:
        return self._predicted


class Recall(_Sided):
    """Correct predictions of a class divided by all samples of it; one value for each class.

    eval_type: 'classification' or 'multilabel'; with 'multilabel' one value for each sample.
    """

    def _base(self) -> Any:
        return self._actual


@fields.declared
class Fbeta(_PerClass):
    """(1 + beta²) right / (beta² samples + predictions) of a class; one value for each class.

    van Rijsbergen, Information retrieval (1979), chapter 7. beta: the weight of the recall against
    the precision, positive. Raises ValueError unless beta > 0.
    """

    beta: float = fields.number(above=0)

    def eval(self, average: bool = False) -> Any:
        """One value for each class, or their mean. Raises RuntimeError if there were no batches."""
        self._seen()
        square = self.beta**2
        return self._share((square * self._actual + self._predicted) / (1 + square), average)


@fields.declared
class F1(Fbeta):
    """The harmonic mean of precision and recall; one value for each class."""

    beta: float = fields.fixed(1.0)
