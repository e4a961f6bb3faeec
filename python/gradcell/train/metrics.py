"""Metrics over the batches of an evaluation. Arrays are read on the host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from gradcell import arguments
from gradcell._core import Tensor
from gradcell._location import where as _where


def _array(value: Any) -> np.ndarray:
    return value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)


def _pair(owner: str, inputs: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    if len(inputs) != 2:
        raise ValueError(
            f"{owner}.update: expected the predictions and the labels, got {len(inputs)} "
            f"values{_where()}"
        )
    return _array(inputs[0]), _array(inputs[1])


class Metric(ABC):
    """The base: clear before an evaluation, update with each batch, eval at the end."""

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Which of (loss, prediction, label, ...) update gets. Returns itself."""
        self._indexes = list(indexes)
        return self

    @property
    def indexes(self) -> list[int] | None:
        """What set_indexes was given."""
        return self._indexes

    @abstractmethod
    def clear(self) -> None:
        """Forgets all batches."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Takes in a batch: by default (predictions, labels)."""

    @abstractmethod
    def eval(self) -> Any:
        """The value over all batches. Raises RuntimeError if there were none."""


class _Mean(Metric):
    """A sum over samples by their number."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum, self._count = 0.0, 0

    def _add(self, total: float, count: int) -> None:
        self._sum += total
        self._count += count

    def eval(self) -> float:
        if self._count == 0:
            raise RuntimeError(
                f"The '{type(self).__name__}' can not be calculated, because the number of samples "
                f"is 0.{_where()}"
            )
        return self._sum / self._count


def _classes(owner: str, y_pred: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Labels as class numbers. Raises ValueError for wrong shapes and labels out of range."""
    if y_pred.ndim != 2:
        raise ValueError(
            f"{owner}: predictions must have shape [batch, classes], got {y_pred.shape}{_where()}"
        )
    if y.ndim == 2 and y.shape == y_pred.shape:
        y = y.argmax(axis=1)
    if y.shape != y_pred.shape[:1]:
        raise ValueError(
            f"{owner}: predictions of shape {y_pred.shape} and labels of shape {y.shape}{_where()}"
        )
    _check_labels(owner, y, y_pred.shape[1])
    return y


def _check_labels(owner: str, y: np.ndarray, classes: int) -> None:
    """Raises ValueError for a label that is not one of `classes` class numbers."""
    wrong = (y < 0) | (y >= classes)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"{owner}: the label {y[at]} at {list(at)} is out of range: there are {classes} "
            f"classes, 0 to {classes - 1}{_where()}"
        )


class Accuracy(_Mean):
    """The share of right predictions.

    eval_type 'classification': predictions [N, C], labels [N] of class numbers or [N, C] one-hot;
    'multilabel': both [N, C] of 0 and 1, a sample is right if all its labels are. Raises ValueError
    for other types, shapes that do not fit and labels out of range.
    """

    def __init__(self, eval_type: str = "classification") -> None:
        if eval_type not in ("classification", "multilabel"):
            raise TypeError(
                "The argument 'eval_type' must be in ['classification', 'multilabel'], but got "
                f"{eval_type!r}{_where()}"
            )
        super().__init__()
        self.eval_type = eval_type

    def update(self, *inputs: Any) -> None:
        y_pred, y = _pair("Accuracy", inputs)
        if self.eval_type == "classification":
            y = _classes("Accuracy", y_pred, y)
            self._add(float((y_pred.argmax(axis=1) == y).sum()), len(y))
            return
        if y_pred.shape != y.shape or y.ndim < 2:
            raise ValueError(f"Accuracy: shapes {y_pred.shape} and {y.shape}{_where()}")
        flat = (y_pred == y).reshape(len(y), -1).all(axis=1)
        self._add(float(flat.sum()), len(flat))


class TopKCategoricalAccuracy(_Mean):
    """The share of samples whose label is among the k largest predictions: [N, C] and [N]."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = arguments.integer(k, "TopKCategoricalAccuracy", "k", 1)

    def update(self, *inputs: Any) -> None:
        y_pred, y = _pair(type(self).__name__, inputs)
        y = _classes(type(self).__name__, y_pred, y)
        best = np.argsort(-y_pred, axis=1, kind="stable")[:, : self.k]
        self._add(float((best == y[:, None]).any(axis=1).sum()), len(y))


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """TopKCategoricalAccuracy with k = 1."""

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """TopKCategoricalAccuracy with k = 5."""

    def __init__(self) -> None:
        super().__init__(5)


class MSE(_Mean):
    """The sum of squared differences by the number of samples (rows of the first axis)."""

    def update(self, *inputs: Any) -> None:
        y_pred, y = _pair("MSE", inputs)
        _same_shape("MSE", y_pred, y)
        difference = y_pred.astype(np.float64) - y.astype(np.float64)
        self._add(float((difference**2).sum()), len(y) if y.ndim else 1)


class MAE(_Mean):
    """The sum of absolute differences by the number of samples (rows of the first axis)."""

    def update(self, *inputs: Any) -> None:
        y_pred, y = _pair("MAE", inputs)
        _same_shape("MAE", y_pred, y)
        difference = y_pred.astype(np.float64) - y.astype(np.float64)
        self._add(float(np.abs(difference).sum()), len(y) if y.ndim else 1)


def _same_shape(owner: str, y_pred: np.ndarray, y: np.ndarray) -> None:
    if y_pred.shape != y.shape:
        raise ValueError(
            f"{owner}: predictions of shape {y_pred.shape} and labels of shape {y.shape}{_where()}"
        )


class Loss(_Mean):
    """The mean of the batches' losses."""

    def update(self, *inputs: Any) -> None:
        if len(inputs) != 1:
            raise ValueError(f"Loss.update: expected the loss, got {len(inputs)} values{_where()}")
        loss = _array(inputs[0])
        self._add(float(loss.astype(np.float64).mean()), 1)


class _PerClass(Metric):
    """Counts of each class; the mean over classes, or one value each."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._right: Any = 0
        self._predicted: Any = 0
        self._actual: Any = 0
        self._seen = False

    def update(self, *inputs: Any) -> None:
        owner = type(self).__name__
        y_pred, y = _pair(owner, inputs)
        y = _classes(owner, y_pred, y)
        classes, guess = y_pred.shape[1], y_pred.argmax(axis=1)
        self._right = self._right + np.bincount(y[guess == y], minlength=classes)
        self._predicted = self._predicted + np.bincount(guess, minlength=classes)
        self._actual = self._actual + np.bincount(y, minlength=classes)
        self._seen = True

    def _shares(self) -> tuple[np.ndarray, np.ndarray]:
        if not self._seen:
            raise RuntimeError(f"{type(self).__name__}: the number of samples is 0{_where()}")
        return self._right / np.maximum(self._predicted, 1), self._right / np.maximum(
            self._actual, 1
        )


class Precision(_PerClass):
    """Right predictions of a class by all predictions of it; one value a class."""

    def eval(self, average: bool = False) -> Any:
        precision, _ = self._shares()
        return float(precision.mean()) if average else precision


class Recall(_PerClass):
    """Right predictions of a class by all samples of it; one value a class."""

    def eval(self, average: bool = False) -> Any:
        _, recall = self._shares()
        return float(recall.mean()) if average else recall


class F1(_PerClass):
    """The harmonic mean of precision and recall; one value a class."""

    def eval(self, average: bool = False) -> Any:
        precision, recall = self._shares()
        both = precision + recall
        f1 = np.where(both > 0, 2 * precision * recall / np.where(both > 0, both, 1), 0.0)
        return float(f1.mean()) if average else f1


_BY_NAME: dict[str, Any] = {
    "accuracy": Accuracy,
    "acc": Accuracy,
    "precision": Precision,
    "recall": Recall,
    "F1": F1,
    "topk": TopKCategoricalAccuracy,
    "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy,
    "mse": MSE,
    "mae": MAE,
    "loss": Loss,
}


def names() -> list[str]:
    """The names that get_metric_fn knows."""
    return list(_BY_NAME)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Metric:
    """The metric of a name. Raises KeyError for an unknown one."""
    if name not in _BY_NAME:
        raise KeyError(f"{name!r} is no metric; the metrics are {', '.join(_BY_NAME)}{_where()}")
    return _BY_NAME[name](*args, **kwargs)  # type: ignore[no-any-return]


def get_metrics(metrics: Any) -> dict[str, Metric]:
    """Metrics by name, from a set or list of names or a dict from name to Metric."""
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                raise TypeError(
                    f"Model: metrics must map names to Metrics, got {type(metric).__name__} for "
                    f"{name!r}{_where()}"
                )
        return dict(metrics)
    if isinstance(metrics, (set, list, tuple)):
        ordered = sorted(metrics) if isinstance(metrics, set) else metrics
        return {name: get_metric_fn(name) for name in ordered}
    raise TypeError(
        f"Model: metrics must be a dict or a set of names, got {type(metrics).__name__}{_where()}"
    )
