"""Data for Model: a Dataset, or any Python iterable of batches."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, is_tensor, tree
from gradcell.dataset.datasets import Dataset
from gradcell.nn.cell import Cell


def as_tensor(value: Any) -> Any:
    """Arrays, numbers and lists of numbers as Tensors; Tensors and trees of them as they are.

    Raises TypeError for anything else.
    """
    if isinstance(value, Tensor):
        return value
    if is_tensor(value):
        return Tensor(value)
    held = tree.parts(value)
    if held is not None and (
        not isinstance(value, (tuple, list))
        or any(is_tensor(v) or isinstance(v, (dict, tuple)) for v in held)
    ):
        return tree.rebuilt(value, [as_tensor(v) for v in held])
    if value is None or isinstance(value, (str, bytes)):
        bad_type(f"a batch holds {type(value).__name__}, which is not an array")
    return Tensor(value if isinstance(value, (bool, int, float)) else np.asarray(value))


def inputs_of(batch: Any) -> tuple[Any, ...]:
    """A batch as the inputs of a cell: a tuple's elements, a dict's values, or the one array."""
    if isinstance(batch, dict):
        return tuple(as_tensor(v) for v in batch.values())
    if isinstance(batch, (tuple, list)):
        return tuple(as_tensor(v) for v in batch)
    return (as_tensor(batch),)


@contextlib.contextmanager
def evaluating(network: Cell) -> Iterator[None]:
    """Evaluation mode of a network, while it lasts; then each cell is in its own again: a frozen one stays
    frozen."""
    modes = [(cell, cell.training) for cell in network._walk()]
    network.set_train(False)
    try:
        yield
    finally:
        for cell, training in modes:
            if cell.training is not training:
                cell.training = training


class Batches:
    """The batches of one dataset or iterable, epoch by epoch.

    Raises TypeError for data that cannot be iterated over.
    """

    def __init__(self, owner: str, data: Any) -> None:
        if isinstance(data, (Tensor, np.ndarray, str, bytes)) or not (
            isinstance(data, Iterable) or callable(data)
        ):
            bad_type(
                f"{owner}: the data must be a dataset or an iterable of batches, got {type(data).__name__}"
            )
        self.owner: str = owner
        self.data: Any = data
        self._passes = 0

    def size(self) -> int | None:
        """Batches in an epoch, None if it is not known."""
        if hasattr(self.data, "get_dataset_size"):
            return int(self.data.get_dataset_size())
        return len(self.data) if hasattr(self.data, "__len__") else None

    def epoch(self, number: int, skip: int = 0) -> Iterator[tuple[Any, ...]]:
        """The batches of an epoch, counted from 0, but for the first `skip`.

        Raises ValueError if there is none.
        """
        if isinstance(self.data, Dataset):
            self.data.set_epoch(number)
        makes = callable(self.data) and not isinstance(self.data, Iterable)
        source = self.data() if makes else self.data
        made = iter(source)
        used_up = self._passes > 0 and made is source
        self._passes += 1
        count = skip
        for batch in itertools.islice(made, skip, None):
            count += 1
            yield inputs_of(batch)
        if count == 0 or (used_up and count == skip):
            once = (
                ": it is an iterator, which can be read only once; pass a list, a dataset or a "
                "function that makes the iterator"
            )
            bad_value(f"{self.owner}: the data contains no batch{once * used_up}")
