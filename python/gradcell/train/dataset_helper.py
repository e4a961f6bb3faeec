"""DatasetHelper: the batches of a dataset for a training loop of your own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradcell.base import arguments, publish
from gradcell.nn.cell import Cell
from gradcell.train.data import Batches


class DatasetHelper:
    """Iterates over a dataset once for each epoch: tuples of tensors, the inputs of a network.

    dataset: a Dataset or an iterable of batches. dataset_sink_mode has no effect: data is not sent
    to a device ahead of the step. epoch_num: how many epochs are to come, -1: not known. sink_size
    has no effect.
    """

    def __init__(
        self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1
    ) -> None:
        arguments.boolean(dataset_sink_mode, "DatasetHelper", "dataset_sink_mode")
        arguments.integer(epoch_num, "DatasetHelper", "epoch_num", -1)
        self.dataset: Any = dataset
        self.epoch_num: int = epoch_num
        self._batches = Batches("DatasetHelper", dataset)
        self._epoch = 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        epoch, self._epoch = self._epoch, self._epoch + 1
        return self._batches.epoch(epoch)

    def sink_size(self) -> int:
        """Batches in an epoch; -1 if it is not known."""
        size = self._batches.size()
        return -1 if size is None else size

    def types_shapes(self) -> tuple[list[Any], list[Any]]:
        """The dtypes and shapes of the first batch's tensors."""
        first = next(iter(Batches("DatasetHelper", self.dataset).epoch(self._epoch)))
        return [x.dtype for x in first], [tuple(x.shape) for x in first]

    def stop_send(self) -> None:
        """Nothing is sent ahead, so there is nothing to stop."""

    def release(self) -> None:
        """Does nothing: there is nothing to release."""


def connect_network_with_dataset(network: Cell, dataset_helper: DatasetHelper) -> Cell:
    """The network as it is: a helper's batches are its inputs, in MindSpore's sink mode too.

    network: a Cell. dataset_helper: a DatasetHelper.
    """
    if not isinstance(dataset_helper, DatasetHelper):
        raise TypeError(
            "connect_network_with_dataset: expected a DatasetHelper, got "
            f"{type(dataset_helper).__name__}"
        )
    return network


publish(globals())
