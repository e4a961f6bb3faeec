"""The steps of a dataset: what shuffle, map, batch and the others do with the rows before them.

MindSpore's names of their classes (BatchDataset, ...) are theirs here too: programs ask for them.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcell.base import arguments, bad_type, bad_value, fail
from gradcell.dataset.datasets import Dataset
from gradcell.dataset.rows import Row, as_value, called, column_names, place, stacked
from gradcell.dataset.workers import in_order

__all__ = ["BatchDataset", "BatchInfo", "MapDataset", "RepeatDataset"]

_Order = tuple[Sequence[np.ndarray], np.ndarray]


class ShuffleDataset(Dataset, step="shuffle"):
    """Rows in random order, each from the next buffer_size."""

    def __init__(self, child: Dataset, buffer_size: int) -> None:
        super().__init__(child)
        self.buffer_size: int = arguments.integer(buffer_size, "shuffle", "buffer_size", 1)
        if self.buffer_size < 2:
            bad_value("shuffle: 'buffer_size' must be at least 2")

    def _order(self, epoch: int) -> _Order | None:
        found = self.children[0]._order(epoch)
        if found is None or len(found[1]) > self.buffer_size:
            return None
        arrays, indices = found
        return arrays, indices[self._random(epoch).permutation(len(indices))]

    def _rows(self, epoch: int) -> Iterator[Row]:
        random = self._random(epoch)
        rows = self.children[0]._rows(epoch)
        buffer = list(itertools.islice(rows, self.buffer_size))
        for row in rows:
            k = int(random.integers(len(buffer)))
            yield buffer[k]
            buffer[k] = row
        for k in random.permutation(len(buffer)):
            yield buffer[k]


class _Replacing(Dataset):
    """A step that replaces columns by a function's results."""

    def _replace(self, owner: str, inputs: list[str], outputs: Any) -> None:
        """Says which columns, and the names of what takes their place: by default the same."""
        names = self.children[0].get_col_names()
        self.places: list[int] = [place(owner, names, c) for c in inputs]
        made = inputs if outputs is None else column_names(owner, outputs)
        self.made: int = len(made)
        self.in_place: bool = len(made) == len(inputs)
        self.names: list[str] = column_names(owner, self._put(names, made))

    def _put(self, columns: Sequence[Any], new: Sequence[Any]) -> list[Any]:
        """All columns: as many new ones as before in their places, others at the beginning."""
        if not self.in_place:
            return [*new, *(c for i, c in enumerate(columns) if i not in self.places)]
        every = list(columns)
        for i, column in zip(self.places, new, strict=True):
            every[i] = column
        return every


class MapDataset(_Replacing, step="map"):
    """The dataset that .map() returns: functions replace some of its columns.

    operations: a function or a list of them, called one after the other. inputs: names of the
    columns that they get; by default the first. outputs: names of the columns that they give; by
    default the same. workers: how many threads. processes: whether they are processes.
    """

    def __init__(
        self, child: Dataset, operations: Any, inputs: Any, outputs: Any, workers: int | None,
        processes: bool,
    ) -> None:  # fmt: skip
        super().__init__(child)
        several = isinstance(operations, (list, tuple))
        self.operations: list[Any] = list(operations) if several else [operations]
        if not self.operations or not all(callable(o) for o in self.operations):
            bad_type("map: the operations must be functions")
        count = 1 if workers is None else workers
        self.workers: int = arguments.integer(count, "map", "num_parallel_workers", 1)
        self.processes: bool = bool(processes) and self.workers > 1
        first = child.get_col_names()[:1]
        self._replace("map", first if inputs is None else column_names("map", inputs), outputs)

    def _mapped(self, row: Row) -> Row:
        values: tuple[Any, ...] = tuple(row[i] for i in self.places)
        for operation in self.operations:
            try:
                values = called("map", operation, values)
            except Exception as error:
                if sys.version_info >= (3, 11):
                    name = getattr(operation, "__name__", type(operation).__name__)
                    error.add_note(f"raised by the operation {name} of map")
                raise
        if len(values) != self.made:
            bad_value(f"map: the operations gave {len(values)} values for {self.made} columns")
        return tuple(self._put(row, [as_value(v) for v in values]))

    def _rows(self, epoch: int) -> Iterator[Row]:
        rows = self.children[0]._rows(epoch)
        return in_order(self._mapped, rows, self._entropy(epoch), self.workers, self.processes)


class SyncWaitDataset(Dataset, step="sync_wait"):
    """The rows as they are; sync_update of the same name calls its function."""

    def __init__(
        self, child: Dataset, name: str, count: int, callback: Callable[..., Any] | None
    ) -> None:
        super().__init__(child)
        if not isinstance(name, str):
            bad_type(f"sync_wait: 'condition_name' must be a string, got {name!r}")
        if any(step.condition == name for step in child._of_kind(SyncWaitDataset)):
            fail(f"sync_wait: the name {name!r} is in use already")
        self.condition = name
        self.count: int = arguments.integer(count, "sync_wait", "num_batch", 1)
        self.callback = callback

    def _rows(self, epoch: int) -> Iterator[Row]:
        return self.children[0]._rows(epoch)


class FlatMapDataset(Dataset, step="flat_map"):
    """The rows of the datasets that a function returns for each row."""

    def __init__(self, child: Dataset, function: Callable[..., Dataset]) -> None:
        super().__init__(child)
        self.function: Callable[..., Dataset] = arguments.function(function, "flat_map", "function")

    def _datasets(self, epoch: int) -> Iterator[Dataset]:
        for row in self.children[0]._rows(epoch):
            made = self.function(*row)
            if not isinstance(made, Dataset):
                bad_type("flat_map: the function must return a dataset")
            yield made

    def _rows(self, epoch: int) -> Iterator[Row]:
        for made in self._datasets(epoch):
            yield from made._rows(epoch)

    def get_dataset_size(self) -> int:
        return sum(made.get_dataset_size() for made in self._datasets(0))

    def get_col_names(self) -> list[str]:
        return next(self._datasets(0)).get_col_names()


class FilterDataset(Dataset, step="filter"):
    """The rows that a predicate takes."""

    def __init__(self, child: Dataset, predicate: Callable[..., Any], inputs: Any) -> None:
        super().__init__(child)
        arguments.function(predicate, "filter", "predicate")
        names = child.get_col_names()
        wanted = names if inputs is None else column_names("filter", inputs)
        self.places: list[int] = [place("filter", names, c) for c in wanted]
        self.predicate = predicate

    def _rows(self, epoch: int) -> Iterator[Row]:
        for row in self.children[0]._rows(epoch):
            if bool(np.all(self.predicate(*(row[i] for i in self.places)))):
                yield row

    def get_dataset_size(self) -> int:
        return sum(1 for _ in self._rows(0))


class ProjectDataset(Dataset, step="project"):
    """Some of the columns, under these names."""

    def __init__(self, child: Dataset, places: list[int], names: list[str]) -> None:
        super().__init__(child)
        self.places: list[int] = places
        self.names: list[str] = list(names)

    def _order(self, epoch: int) -> _Order | None:
        found = self.children[0]._order(epoch)
        return found and ([found[0][i] for i in self.places], found[1])

    def _rows(self, epoch: int) -> Iterator[Row]:
        return (tuple(row[i] for i in self.places) for row in self.children[0]._rows(epoch))


class TakeDataset(Dataset, step="take"):
    """The rows from start on, at most count of them."""

    def __init__(self, child: Dataset, start: int, count: int | None) -> None:
        super().__init__(child)
        self.start: int = start
        self.stop: int | None = None if count is None else start + count

    def _order(self, epoch: int) -> _Order | None:
        found = self.children[0]._order(epoch)
        return found and (found[0], found[1][self.start : self.stop])

    def _rows(self, epoch: int) -> Iterator[Row]:
        return itertools.islice(self.children[0]._rows(epoch), self.start, self.stop)

    def get_dataset_size(self) -> int:
        size = self.children[0].get_dataset_size()
        return len(range(size)[self.start : self.stop])


class RepeatDataset(Dataset, step="repeat"):
    """The dataset that .repeat() returns: several passes in one epoch; count None: without limit.

    count: the number of passes, or None.
    """

    def __init__(self, child: Dataset, count: int | None) -> None:
        super().__init__(child)
        self.count: int | None = None if count == -1 else count
        if self.count is not None:
            arguments.integer(self.count, "repeat", "count", 1)

    def _rows(self, epoch: int) -> Iterator[Row]:
        passes = itertools.count() if self.count is None else range(self.count)
        for i in passes:
            found = False
            for row in self.children[0]._rows(epoch * (self.count or 0) + i):
                found = True
                yield row
            if not found:
                return

    def get_dataset_size(self) -> int:
        return (self.count or 1) * self.children[0].get_dataset_size()

    def get_repeat_count(self) -> int:
        return (self.count or -1) * self.children[0].get_repeat_count()


class ZipDataset(Dataset, step="zip"):
    """The columns of several datasets, side by side."""

    def __init__(self, *children: Dataset) -> None:
        super().__init__(*children)
        names = [n for child in children for n in child.get_col_names()]
        self.names: list[str] = column_names("zip", names)

    def _rows(self, epoch: int) -> Iterator[Row]:
        for rows in zip(*(child._rows(epoch) for child in self.children), strict=False):
            yield tuple(itertools.chain(*rows))

    def get_dataset_size(self) -> int:
        return min(child.get_dataset_size() for child in self.children)


class ConcatDataset(Dataset, step="concat"):
    """The rows of several datasets, one after the other."""

    def __init__(self, *children: Dataset) -> None:
        super().__init__(*children)
        counts = [len(child.get_col_names()) for child in children]
        if len(set(counts)) > 1:
            bad_value(f"concat: the datasets have {counts} columns")

    def _rows(self, epoch: int) -> Iterator[Row]:
        return itertools.chain.from_iterable(child._rows(epoch) for child in self.children)

    def get_dataset_size(self) -> int:
        return sum(child.get_dataset_size() for child in self.children)


# Batches ------------------------------------------------------------------------------------------


class BatchInfo:
    """The numbers of the batch and of the epoch, for functions of batches.

    epoch: its number, from 0. batch: its number within the epoch, from 0.
    """

    def __init__(self, epoch: int, batch: int) -> None:
        self._epoch, self._batch = epoch, batch

    def get_batch_num(self) -> int:
        """The batch's number in its epoch."""
        return self._batch

    def get_epoch_num(self) -> int:
        """The epoch's number."""
        return self._epoch


class _Padding:
    """Columns padded at their ends to a shape, or to the longest of a batch."""

    def __init__(self, owner: str, names: list[str], info: dict[str, Any]) -> None:
        if not isinstance(info, dict):
            bad_type(f"{owner}: 'pad_info' must be a dict")
        self.owner: str = owner
        self.names: list[str] = names
        places = {place(owner, names, name): pair for name, pair in info.items()}
        self.columns: dict[int, Any] = places

    def __call__(self, k: int, values: list[np.ndarray], longest: int | None) -> list[np.ndarray]:
        if k not in self.columns or isinstance(values[0], dict):
            return values
        shape, value = self.columns[k]
        wanted = list(shape) if shape is not None else [None] * values[0].ndim
        if len({v.ndim for v in values} | {len(wanted)}) > 1:
            bad_value(
                f"{self.owner}: the column {self.names[k]!r} cannot be padded to {wanted}: it has the shapes "
                f"{sorted({v.shape for v in values})}"
            )
        most = [max(n) for n in zip(*(v.shape for v in values), strict=True)]
        if longest is not None and most:
            most[0] = longest
        target = [m if w is None else int(w) for w, m in zip(wanted, most, strict=True)]
        return [self._padded(k, v, target, value) for v in values]

    def _padded(self, k: int, array: np.ndarray, target: list[int], value: Any) -> np.ndarray:
        if any(n > t for n, t in zip(array.shape, target, strict=True)):
            bad_value(
                f"{self.owner}: a row of {self.names[k]!r} has the shape {array.shape}, which is more than "
                f"{target}"
            )
        made = np.full(target, 0 if value is None else value, array.dtype)
        made[tuple(slice(n) for n in array.shape)] = array
        return made


def _batch(names: list[str], columns: list[list[np.ndarray]], pad: _Padding | None) -> Row:
    if pad is not None:
        columns = [pad(k, values, None) for k, values in enumerate(columns)]
    return tuple(stacked("batch", names[k], values) for k, values in enumerate(columns))


class BatchDataset(Dataset, step="batch"):
    """The dataset that .batch() returns: its rows are stacked into batches.

    batch_size: rows in a batch, or a function of a BatchInfo that gives them. drop_remainder:
    whether a last batch of fewer rows is left out. pad_info: for columns of unequal shapes, a dict
    from name to (shape, value to fill in).
    """

    def __init__(
        self, child: Dataset, batch_size: int | Callable[..., int], drop_remainder: bool = False,
        pad_info: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(child)
        if not callable(batch_size):
            batch_size = arguments.integer(batch_size, "batch", "batch_size", 1)
        self.batch_size: int | Callable[..., int] = batch_size
        if not isinstance(drop_remainder, bool):
            bad_type("batch: 'drop_remainder' must be a bool")
        self.drop_remainder = drop_remainder
        names = child.get_col_names()
        self.pad: _Padding | None = _Padding("batch", names, pad_info) if pad_info else None

    def _sizes(self, epoch: int) -> Iterator[int]:
        for number in itertools.count():
            if callable(self.batch_size):
                made = self.batch_size(BatchInfo(epoch, number))
                yield arguments.integer(made, "batch", "batch_size", 1)
            else:
                yield self.batch_size

    def _rows(self, epoch: int) -> Iterator[Row]:
        ordered = None if self.pad else self.children[0]._order(epoch)
        if ordered is not None:
            arrays, indices = ordered
            at = 0
            for size in self._sizes(epoch):
                chosen = indices[at : at + size]
                if len(chosen) == 0 or (len(chosen) < size and self.drop_remainder):
                    return
                yield tuple(c[chosen] for c in arrays)
                at += size
        names = self.get_col_names()
        for part in self._parts(epoch):
            yield _batch(names, [[row[k] for row in part] for k in range(len(names))], self.pad)

    def _parts(self, epoch: int) -> Iterator[list[Row]]:
        """The rows of each batch."""
        rows = self.children[0]._rows(epoch)
        for size in self._sizes(epoch):
            part = list(itertools.islice(rows, size))
            if not part or (len(part) < size and self.drop_remainder):
                return
            yield part

    def get_dataset_size(self) -> int:
        size = self.children[0].get_dataset_size()
        count = left = 0
        if not callable(self.batch_size):
            whole, left = divmod(size, self.batch_size)
            return whole + (left > 0 and not self.drop_remainder)
        for batch in self._sizes(0):
            if size <= 0 or (size < batch and self.drop_remainder):
                break
            size, count = size - batch, count + 1
        return count

    def get_batch_size(self) -> int:
        if not callable(self.batch_size):
            return self.batch_size
        return next(self._sizes(0))


class PerBatchMapDataset(_Replacing, step="per_batch_map"):
    """A function of the rows of each batch."""

    def __init__(
        self, child: BatchDataset, function: Callable[..., Any], inputs: Any, outputs: Any
    ) -> None:
        super().__init__(child)
        self.batches: BatchDataset = child
        self.function: Callable[..., Any] = function
        names = child.get_col_names()
        self._replace("batch", names if inputs is None else column_names("batch", inputs), outputs)

    def _rows(self, epoch: int) -> Iterator[Row]:
        names = self.batches.get_col_names()
        for number, part in enumerate(self.batches._parts(epoch)):
            columns: list[Any] = [[row[k] for row in part] for k in range(len(names))]
            info = BatchInfo(epoch, number)
            out = called("batch", self.function, [*(columns[i] for i in self.places), info])
            if len(out) != self.made:
                bad_value(f"batch: 'per_batch_map' gave {len(out)} columns where {self.made} fit")
            new = [v if isinstance(v, dict) else [as_value(row) for row in v] for v in out]
            yield _batch(self.names, self._put(columns, new), self.batches.pad)


class BucketBatchByLengthDataset(Dataset, step="bucket_batch_by_length"):
    """Batches of rows of similar length."""

    def __init__(
        self, child: Dataset, columns: Any, boundaries: list[int], sizes: list[int],
        length: Callable[..., int] | None, pad_info: dict[str, Any] | None, pad_to_boundary: bool,
        drop_remainder: bool,
    ) -> None:  # fmt: skip
        super().__init__(child)
        owner = "bucket_batch_by_length"
        self.bounds: list[int]
        self.sizes: list[int]
        self.bounds = [arguments.integer(b, owner, "bucket_boundaries", 1) for b in boundaries]
        if not self.bounds or sorted(set(self.bounds)) != self.bounds:
            bad_value(f"{owner}: 'bucket_boundaries' must be increasing")
        self.sizes = [arguments.integer(n, owner, "bucket_batch_sizes", 1) for n in sizes]
        if len(self.sizes) != len(self.bounds) + 1:
            bad_value(
                f"{owner}: {len(self.bounds)} boundaries need {len(self.bounds) + 1} batch sizes, got "
                f"{len(self.sizes)}"
            )
        names = child.get_col_names()
        self.places: list[int] = [place(owner, names, c) for c in column_names(owner, columns)]
        if length is None and len(self.places) > 1:
            bad_value(f"{owner}: several columns need 'element_length_function'")
        self.length: Callable[..., int] | None = length
        self.drop_remainder: bool = drop_remainder
        info = dict.fromkeys(names, (None, None)) if pad_info is None else pad_info
        self.pad: _Padding = _Padding(owner, names, info)
        self.pad_to_boundary: bool = pad_to_boundary

    def _bucket(self, row: Row) -> int:
        values = [row[i] for i in self.places]
        length = len(values[0]) if self.length is None else int(self.length(*values))
        return int(np.searchsorted(self.bounds, length, side="right"))

    def _rows(self, epoch: int) -> Iterator[Row]:
        waiting: list[list[Row]] = [[] for _ in self.sizes]
        for row in self.children[0]._rows(epoch):
            b = self._bucket(row)
            waiting[b].append(row)
            if len(waiting[b]) == self.sizes[b]:
                yield self._batch(b, waiting[b])
                waiting[b] = []
        if not self.drop_remainder:
            for b, part in enumerate(waiting):
                if part:
                    yield self._batch(b, part)

    def _batch(self, b: int, part: list[Row]) -> Row:
        names = self.get_col_names()
        longest = None
        if self.pad_to_boundary:
            if b == len(self.bounds):
                bad_value(
                    "bucket_batch_by_length: a row is longer than the last boundary, so "
                    "'pad_to_bucket_boundary' cannot pad it"
                )
            longest = self.bounds[b] - 1
        columns = [[row[k] for row in part] for k in range(len(names))]
        lengths = [longest if k in self.places else None for k in range(len(names))]
        padded = [self.pad(k, v, n) for k, (v, n) in enumerate(zip(columns, lengths, strict=True))]
        return tuple(map(partial(stacked, "bucket_batch_by_length"), names, padded))

    def get_dataset_size(self) -> int:
        counts = [0] * len(self.sizes)
        for row in self.children[0]._rows(0):
            counts[self._bucket(row)] += 1
        if self.drop_remainder:
            return sum(n // size for n, size in zip(counts, self.sizes, strict=True))
        return sum(math.ceil(n / size) for n, size in zip(counts, self.sizes, strict=True))
