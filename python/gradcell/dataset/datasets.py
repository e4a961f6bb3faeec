"""Datasets: rows of NumPy arrays, shuffled, mapped, batched and repeated.

Order is a function of the seed (set_seed, else one drawn for the process, which the random state
holds) and the epoch's number, so a resumed run sees the batches that an uninterrupted one would.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcell import arguments
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.common.seed import data_seed

Row = tuple[np.ndarray, ...]


def _names(owner: str, names: Any, count: int | None) -> list[str] | None:
    if names is None:
        return None
    listed = [names] if isinstance(names, str) else list(names)
    if not all(isinstance(n, str) and n for n in listed):
        raise TypeError(f"{owner}: column names must be non-empty strings{where()}")
    if len(set(listed)) != len(listed):
        raise ValueError(f"{owner}: a column name appears twice in {listed}{where()}")
    if count is not None and len(listed) != count:
        raise ValueError(f"{owner}: {len(listed)} names for {count} columns{where()}")
    return listed


def _as_array(value: Any) -> np.ndarray:
    if isinstance(value, Tensor):
        value = value.asnumpy()
    array = np.asarray(value)
    if array.dtype == object:
        raise TypeError(f"dataset: a value of type {type(value).__name__} is no array{where()}")
    return array


class Dataset:
    """The base: a chain of steps that ends in this one."""

    def __init__(self, child: Dataset | None = None) -> None:
        self.children = [child] if child is not None else []
        self._depth: int = child._depth + 1 if child is not None else 0
        self._epoch = 0

    # What a step defines --------------------------------------------------------------------------

    def _rows(self, epoch: int) -> Iterator[Row]:
        raise NotImplementedError

    def _order(self, epoch: int) -> tuple[_Arrays, np.ndarray] | None:
        """Arrays and the indices of the rows in them, where that is all there is to the rows."""
        return None

    def get_dataset_size(self) -> int:
        """How many rows, or batches, an epoch has."""
        return self.children[0].get_dataset_size()

    def get_col_names(self) -> list[str]:
        """The names of the columns."""
        return self.children[0].get_col_names()

    def get_batch_size(self) -> int:
        """Rows in a batch; 1 before batch()."""
        return self.children[0].get_batch_size() if self.children else 1

    def get_repeat_count(self) -> int:
        """How often repeat() repeats."""
        return self.children[0].get_repeat_count() if self.children else 1

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return self.get_col_names()

    def _random(self, epoch: int) -> np.random.Generator:
        return np.random.default_rng([data_seed(), epoch, self._depth])

    # Steps ----------------------------------------------------------------------------------------

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., Any] | None = None,
        **unused: Any,
    ) -> Dataset:
        """Stacks batch_size rows; a last batch of fewer rows is kept unless drop_remainder.

        per_batch_map: called with one stacked array for each column, returns as many. Raises
        ValueError unless batch_size is positive.
        """
        return _Batch(self, batch_size, drop_remainder, per_batch_map)

    def shuffle(self, buffer_size: int) -> Dataset:
        """Mixes the rows, anew in each epoch: each comes at random from the next buffer_size.

        Raises ValueError unless buffer_size is at least 2.
        """
        return _Shuffle(self, buffer_size)

    def map(
        self,
        operations: Any,
        input_columns: Any = None,
        output_columns: Any = None,
        num_parallel_workers: int | None = None,
        **unused: Any,
    ) -> Dataset:
        """Calls operations, one function or a list of them in turn, with the values of
        input_columns (all, or the first if there is but one function of one argument); its results
        take their place, under the names output_columns."""
        return _Map(self, operations, input_columns, output_columns)

    def repeat(self, count: int = 1) -> Dataset:
        """The rows count times in an epoch."""
        return _Repeat(self, count)

    def take(self, count: int = -1) -> Dataset:
        """At most the first count rows; -1: all."""
        return self if count == -1 else _Part(self, 0, arguments.integer(count, "take", "count", 1))

    def skip(self, count: int) -> Dataset:
        """All rows but the first count."""
        return (
            self if count == 0 else _Part(self, arguments.integer(count, "skip", "count", 1), None)
        )

    def project(self, columns: Any) -> Dataset:
        """These columns only, in this order."""
        wanted = [columns] if isinstance(columns, str) else list(columns)
        have = self.get_col_names()
        places = [_place("project", have, c) for c in wanted]
        return _Columns(self, lambda row: tuple(row[i] for i in places), wanted)

    def rename(self, input_columns: Any, output_columns: Any) -> Dataset:
        """The same columns, some under other names."""
        old = [input_columns] if isinstance(input_columns, str) else list(input_columns)
        new = [output_columns] if isinstance(output_columns, str) else list(output_columns)
        if len(old) != len(new):
            raise ValueError(f"rename: {len(old)} columns and {len(new)} names{where()}")
        names = self.get_col_names()
        for a, b in zip(old, new, strict=True):
            names[_place("rename", names, a)] = b
        return _Columns(self, lambda row: row, names)

    # Iterating ------------------------------------------------------------------------------------

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass the epoch with this number, counted from 0."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[list[Tensor]]:
        return iter(self.create_tuple_iterator(num_epochs=1))

    def create_tuple_iterator(
        self,
        columns: Any = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = True,
    ) -> _Passes:
        """Something to iterate over once for each epoch: lists of one Tensor (or array) a column.

        num_epochs: how many epochs it gives, -1: without end.
        """
        source = self if columns is None else self.project(columns)
        return _Passes(self, source, num_epochs, output_numpy, None)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = True
    ) -> _Passes:
        """The same, with dicts from column name to Tensor (or array)."""
        return _Passes(self, self, num_epochs, output_numpy, self.get_col_names())


class _Passes:
    """Each iteration over it is one epoch of a dataset; next() goes through the epochs row by row."""

    def __init__(
        self, owner: Dataset, source: Dataset, epochs: int, arrays: bool, names: list[str] | None
    ) -> None:
        if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs == 0 or epochs < -1:
            raise ValueError(f"'num_epochs' must be positive or -1, got {epochs}{where()}")
        self.owner, self.source, self.left = owner, source, epochs
        self.arrays, self.names = arrays, names
        self._running: Iterator[Any] | None = None

    def __next__(self) -> Any:
        if self._running is None:
            self._running = iter(self)
        try:
            return next(self._running)
        except StopIteration:
            self._running = None
            raise

    def __iter__(self) -> Iterator[Any]:
        if self.left == 0:
            raise RuntimeError(f"the dataset's iterator gave all its epochs already{where()}")
        self.left -= self.left > 0
        epoch = self.owner._epoch
        self.owner._epoch += 1
        for row in self.source._rows(epoch):
            values: list[Any] = list(row) if self.arrays else [Tensor(a) for a in row]
            yield values if self.names is None else dict(zip(self.names, values, strict=True))

    def get_dataset_size(self) -> int:
        """How many elements an epoch has."""
        return self.source.get_dataset_size()

    def __len__(self) -> int:
        return self.get_dataset_size()


def _place(owner: str, names: list[str], name: Any) -> int:
    if name not in names:
        raise ValueError(f"{owner}: there is no column {name!r}; the columns are {names}{where()}")
    return names.index(name)


# Sources ------------------------------------------------------------------------------------------


class _Arrays(Dataset):
    """Rows of arrays in memory."""

    def __init__(self, columns: list[np.ndarray], names: list[str], shuffled: bool) -> None:
        super().__init__()
        self.columns, self.names, self.shuffled = columns, names, shuffled

    def _indices(self, epoch: int) -> np.ndarray:
        count = len(self.columns[0])
        return self._random(epoch).permutation(count) if self.shuffled else np.arange(count)

    def _order(self, epoch: int) -> tuple[_Arrays, np.ndarray]:
        return self, self._indices(epoch)

    def _rows(self, epoch: int) -> Iterator[Row]:
        return (tuple(c[i] for c in self.columns) for i in self._indices(epoch))

    def get_dataset_size(self) -> int:
        """How many rows there are."""
        return len(self.columns[0])

    def get_col_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.names)


class NumpySlicesDataset(_Arrays):
    """Rows along the first axis of arrays in memory.

    data: a dict from column name to array, a tuple of arrays (a column each), or one array or list.
    column_names: the names; by default the dict's keys, or column_0, column_1, ... num_samples: at
    most so many rows. shuffle: a new order in each epoch; None: yes.

    Raises ValueError for no rows, columns of different lengths or a wrong number of names,
    TypeError for what is no array.
    """

    def __init__(
        self,
        data: Any,
        column_names: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        owner = "NumpySlicesDataset"
        if isinstance(data, dict):
            column_names = list(data) if column_names is None else column_names
            columns = [_as_array(v) for v in data.values()]
        elif isinstance(data, tuple):
            columns = [_as_array(v) for v in data]
        else:
            columns = [_as_array(data)]
        if not columns or any(c.ndim == 0 for c in columns):
            raise ValueError(f"{owner}: every column needs at least one axis{where()}")
        lengths = [len(c) for c in columns]
        if len(set(lengths)) != 1:
            raise ValueError(f"{owner}: the columns have different lengths: {lengths}{where()}")
        if lengths[0] == 0:
            raise ValueError(f"{owner}: there are no rows{where()}")
        if num_samples is not None:
            columns = [
                c[: arguments.integer(num_samples, owner, "num_samples", 1)] for c in columns
            ]
        if sampler is not None:
            picked = np.fromiter(sampler, np.int64)
            columns, shuffle = [c[picked] for c in columns], False
        if num_shards is not None:
            if shard_id is None or not 0 <= shard_id < arguments.integer(
                num_shards, owner, "num_shards", 1
            ):
                raise ValueError(f"{owner}: 'shard_id' must be in [0, num_shards){where()}")
            columns = [c[shard_id::num_shards] for c in columns]
        names = _names(owner, column_names, len(columns))
        if names is None:
            names = [f"column_{i}" for i in range(len(columns))]
        super().__init__(columns, names, shuffle is None or bool(shuffle))


class GeneratorDataset(Dataset):
    """Rows from a Python source.

    source: an object with __getitem__ and __len__; an iterable; or a function that returns an
    iterator, called once for each epoch. A row is a tuple of values, or one value. column_names:
    the names of the columns. num_samples: at most so many rows. shuffle: a new order in each epoch;
    None: yes for a source with __getitem__.

    Raises TypeError for another kind of source, ValueError for shuffling one without __getitem__
    and for rows of another number of values than there are names.
    """

    def __init__(
        self,
        source: Any,
        column_names: Any = None,
        column_types: Any = None,
        schema: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        **unused: Any,
    ) -> None:
        super().__init__()
        owner = "GeneratorDataset"
        self.indexable = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not self.indexable and not callable(source) and not isinstance(source, Iterable):
            raise TypeError(
                f"{owner}: the source must be iterable, callable or have __getitem__ and __len__, "
                f"but is {type(source).__name__}{where()}"
            )
        if shuffle and not self.indexable:
            raise ValueError(
                f"{owner}: a source without __getitem__ and __len__ cannot be shuffled here; use "
                f".shuffle(buffer_size){where()}"
            )
        names = _names(owner, column_names, None)
        if names is None:
            raise ValueError(f"{owner}: column_names is needed{where()}")
        self.source, self.names = source, names
        self.shuffled = self.indexable and sampler is None and (shuffle is None or shuffle)
        self.sampler = None if sampler is None else [int(i) for i in sampler]
        self.limit = (
            None if num_samples is None else arguments.integer(num_samples, owner, "num_samples", 1)
        )
        self._size: int | None = None

    def _values(self, epoch: int) -> Iterator[Any]:
        if self.sampler is not None:
            return (self.source[i] for i in self.sampler)
        if self.indexable:
            count = len(self.source)
            order = self._random(epoch).permutation(count) if self.shuffled else range(count)
            return (self.source[int(i)] for i in order)
        made = self.source() if callable(self.source) else self.source
        if epoch > 0 and iter(made) is made and not callable(self.source):
            raise ValueError(
                "GeneratorDataset: the source is an iterator, which can be read only once; pass a "
                f"function that makes it{where()}"
            )
        return iter(made)

    def _rows(self, epoch: int) -> Iterator[Row]:
        for value in itertools.islice(self._values(epoch), self.limit):
            row = value if isinstance(value, (tuple, list)) else (value,)
            if len(row) != len(self.names):
                raise ValueError(
                    f"GeneratorDataset: a row of {len(row)} values for the columns "
                    f"{self.names}{where()}"
                )
            yield tuple(_as_array(v) for v in row)

    def get_dataset_size(self) -> int:
        """How many rows an epoch has; a source without __len__ is read through once."""
        if self._size is None:
            if self.sampler is not None:
                size = len(self.sampler)
            elif hasattr(self.source, "__len__"):
                size = len(self.source)
            elif callable(self.source):
                size = sum(1 for _ in self.source())
            else:
                raise ValueError(
                    f"GeneratorDataset: the source has no length and can be read only once{where()}"
                )
            self._size = size if self.limit is None else min(size, self.limit)
        return self._size

    def get_col_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.names)


# Steps --------------------------------------------------------------------------------------------


class _Shuffle(Dataset):
    def __init__(self, child: Dataset, buffer_size: int) -> None:
        super().__init__(child)
        self.buffer_size = arguments.integer(buffer_size, "shuffle", "buffer_size", 1)
        if self.buffer_size < 2:
            raise ValueError(f"shuffle: 'buffer_size' must be at least 2{where()}")

    def _order(self, epoch: int) -> tuple[_Arrays, np.ndarray] | None:
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


class _Map(Dataset):
    def __init__(self, child: Dataset, operations: Any, inputs: Any, outputs: Any) -> None:
        super().__init__(child)
        self.operations = (
            list(operations) if isinstance(operations, (list, tuple)) else [operations]
        )
        if not self.operations or not all(callable(o) for o in self.operations):
            raise TypeError(f"map: the operations must be functions{where()}")
        names = child.get_col_names()
        wanted = names[:1] if inputs is None else _names("map", inputs, None)
        assert wanted is not None
        self.places = [_place("map", names, c) for c in wanted]
        made = wanted if outputs is None else _names("map", outputs, None)
        assert made is not None
        self.made = len(made)
        if len(made) == len(wanted):
            for i, name in zip(self.places, made, strict=True):
                names[i] = name
        else:
            names = [n for i, n in enumerate(names) if i not in self.places]
            names = made + names
        self.names, self.in_place = names, len(made) == len(wanted)

    def _rows(self, epoch: int) -> Iterator[Row]:
        for row in self.children[0]._rows(epoch):
            values: tuple[Any, ...] = tuple(row[i] for i in self.places)
            for operation in self.operations:
                out = operation(*values)
                values = out if isinstance(out, tuple) else (out,)
            if len(values) != self.made:
                raise ValueError(
                    f"map: the operations gave {len(values)} values for {self.made} "
                    f"columns{where()}"
                )
            arrays = [_as_array(v) for v in values]
            if self.in_place:
                new = list(row)
                for i, a in zip(self.places, arrays, strict=True):
                    new[i] = a
                yield tuple(new)
            else:
                rest = [r for i, r in enumerate(row) if i not in self.places]
                yield (*arrays, *rest)

    def get_col_names(self) -> list[str]:
        return list(self.names)


class _Columns(Dataset):
    def __init__(self, child: Dataset, pick: Callable[[Row], Row], names: Sequence[str]) -> None:
        super().__init__(child)
        self.pick, self.names = pick, list(names)

    def _rows(self, epoch: int) -> Iterator[Row]:
        return (self.pick(row) for row in self.children[0]._rows(epoch))

    def get_col_names(self) -> list[str]:
        return list(self.names)


class _Part(Dataset):
    def __init__(self, child: Dataset, start: int, count: int | None) -> None:
        super().__init__(child)
        self.start, self.stop = start, None if count is None else start + count

    def _order(self, epoch: int) -> tuple[_Arrays, np.ndarray] | None:
        found = self.children[0]._order(epoch)
        return found and (found[0], found[1][self.start : self.stop])

    def _rows(self, epoch: int) -> Iterator[Row]:
        return itertools.islice(self.children[0]._rows(epoch), self.start, self.stop)

    def get_dataset_size(self) -> int:
        size = self.children[0].get_dataset_size()
        return len(range(size)[self.start : self.stop])


class _Repeat(Dataset):
    def __init__(self, child: Dataset, count: int) -> None:
        super().__init__(child)
        self.count = arguments.integer(count, "repeat", "count", 1)

    def _rows(self, epoch: int) -> Iterator[Row]:
        for i in range(self.count):
            yield from self.children[0]._rows(epoch * self.count + i)

    def get_dataset_size(self) -> int:
        return self.count * self.children[0].get_dataset_size()

    def get_repeat_count(self) -> int:
        return self.count * self.children[0].get_repeat_count()


class _Batch(Dataset):
    def __init__(
        self, child: Dataset, batch_size: int, drop_remainder: bool, per_batch_map: Any
    ) -> None:
        super().__init__(child)
        self.batch_size = arguments.integer(batch_size, "batch", "batch_size", 1)
        if not isinstance(drop_remainder, bool):
            raise TypeError(f"batch: 'drop_remainder' must be a bool{where()}")
        if per_batch_map is not None and not callable(per_batch_map):
            raise TypeError(f"batch: 'per_batch_map' must be a function{where()}")
        self.drop_remainder, self.per_batch_map = drop_remainder, per_batch_map

    def _rows(self, epoch: int) -> Iterator[Row]:
        for batch in self._stacked(epoch):
            if self.per_batch_map is not None:
                out = self.per_batch_map(*batch)
                batch = tuple(_as_array(a) for a in (out if isinstance(out, tuple) else (out,)))
            yield batch

    def _stacked(self, epoch: int) -> Iterator[Row]:
        ordered = self.children[0]._order(epoch)
        if ordered is not None:
            arrays, indices = ordered
            for at in range(0, len(indices), self.batch_size):
                chosen = indices[at : at + self.batch_size]
                if len(chosen) == self.batch_size or not self.drop_remainder:
                    yield tuple(c[chosen] for c in arrays.columns)
            return
        rows = self.children[0]._rows(epoch)
        while part := list(itertools.islice(rows, self.batch_size)):
            if len(part) == self.batch_size or not self.drop_remainder:
                yield tuple(self._stack(k, [row[k] for row in part]) for k in range(len(part[0])))

    def _stack(self, k: int, values: list[np.ndarray]) -> np.ndarray:
        shapes = {v.shape for v in values}
        if len(shapes) > 1:
            raise ValueError(
                f"batch: the rows of column {self.get_col_names()[k]!r} have different shapes: "
                f"{sorted(shapes)}{where()}"
            )
        return np.stack(values)

    def get_dataset_size(self) -> int:
        size = self.children[0].get_dataset_size()
        whole, rest = divmod(size, self.batch_size)
        return whole + (rest > 0 and not self.drop_remainder)

    def get_batch_size(self) -> int:
        return self.batch_size
