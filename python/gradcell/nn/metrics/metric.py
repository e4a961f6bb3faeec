"""Metric, the base of metrics: what a user's own derive from."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, where, with_tensors


def rearrange_inputs(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for `update`, which then gets only those inputs that `set_indexes` names.

    func: the method `update` of a Metric.
    """

    @functools.wraps(func)
    def wrapper(self: Any, *inputs: Any) -> Any:
        indexes = self.indexes
        return func(self, *inputs) if not indexes else func(self, *(inputs[i] for i in indexes))

    return wrapper


def array(value: Any) -> np.ndarray:
    """A tensor, list or array as an array."""
    if isinstance(value, np.ndarray):
        return value
    value = with_tensors(value)
    return value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)


def pair(owner: str, inputs: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The predictions and the labels. Raises ValueError unless there are two inputs."""
    if len(inputs) != 2:
        bad_value(
            f"{owner}.update: expected the predictions and the labels, got {len(inputs)} values"
        )
    return array(inputs[0]), array(inputs[1])


def same_shape(owner: str, y_pred: np.ndarray, y: np.ndarray) -> None:
    """Raises ValueError for shapes that differ."""
    if y_pred.shape != y.shape:
        bad_value(f"{owner}: predictions of shape {y_pred.shape} and labels of shape {y.shape}")


class Metric(ABC):
    """The base: clear before an evaluation, update with each batch, eval at the end.

    Called, it does all three.
    """

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Choose which of (loss, prediction, label, ...) update gets. Returns itself. Raises
        ValueError."""
        if not isinstance(indexes, list) or not all(isinstance(i, int) for i in indexes):
            bad_value(
                f"For 'set_indexes', the argument 'indexes' must be a list of ints, but got {indexes!r}."
            )
        self._indexes = list(indexes)
        return self

    @property
    def indexes(self) -> list[int] | None:
        """Return the indexes given to set_indexes, or None."""
        return getattr(self, "_indexes", None)

    def _convert_data(self, data: Any) -> np.ndarray:
        """A tensor, list or array as an array. Raises TypeError for anything else."""
        if not isinstance(data, (Tensor, list, np.ndarray)):
            bad_type(
                "For 'Metric' and its derived classes, the input data type must be tensor, list or "
                f"numpy.ndarray, but got {type(data)}."
            )
        return array(data)

    def __call__(self, *inputs: Any) -> Any:
        """The value for these inputs alone."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    @abstractmethod
    def clear(self) -> None:
        """Forgets all batches."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Adds a batch: by default (predictions, labels)."""

    @abstractmethod
    def eval(self) -> Any:
        """The value over all batches. Raises RuntimeError if there were none."""


def none_seen(owner: str) -> RuntimeError:
    """The error of an evaluation without a batch."""
    return RuntimeError(
        f"The '{owner}' can not be calculated, because the number of samples is 0.{where()}"
    )


class OfPairs(Metric):
    """A metric of predictions and labels."""

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Adds a batch of (predictions, labels)."""
        self._take(*pair(type(self).__name__, inputs))

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        """Adds a batch of arrays."""
        raise NotImplementedError


class Mean(OfPairs):
    """A sum over samples by their number."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """Forgets all batches."""
        self._sum, self._count = 0.0, 0

    def _add(self, total: float, count: int) -> None:
        self._sum += total
        self._count += count

    def eval(self) -> float:
        """The mean. Raises RuntimeError if there were no batches."""
        if self._count == 0:
            raise none_seen(type(self).__name__)
        return np.float64(self._sum / self._count)
