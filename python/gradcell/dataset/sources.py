"""Sources of rows: arrays in memory, Python objects, and what sources of indexed rows share."""

from __future__ import annotations

import enum
import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcell._core import DType
from gradcell.base import arguments, bad_type, bad_value, where
from gradcell.dataset.config import get_seed
from gradcell.dataset.datasets import Dataset
from gradcell.dataset.rows import Row, as_array, as_value, column_names, stacked
from gradcell.dataset.samplers import DistributedSampler, Sampler, _sampler_of
from gradcell.dataset.workers import in_order

__all__ = ["DatasetCache", "GeneratorDataset", "NumpySlicesDataset", "PaddedDataset", "Shuffle"]


class Shuffle(str, enum.Enum):
    """Levels of shuffling of a dataset of files: all rows, the files, or the rows within each file."""

    GLOBAL = "global"
    FILES = "files"
    PARTIAL = "partial"
    INFILE = "infile"
    ADAPTIVE = "adaptive"


class IndexedDataset(Dataset):
    """Rows that can be read in any order: `_count` of them, `_row(i)` each.

    sampler, shuffle (None: yes), num_shards with shard_id, num_samples: which rows an epoch has, in
    which order; num_shards: rows are repeated from the beginning until each shard has as many.
    """

    _count: int

    def __init__(
        self, sampler: Any = None, shuffle: Any = None, num_shards: int | None = None,
        shard_id: int | None = None, num_samples: int | None = None,
        num_parallel_workers: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        owner = type(self).__name__
        which = sampler, shuffle, num_shards, shard_id, num_samples
        self.sampler: Sampler = _sampler_of(owner, *which)
        count = 1 if num_parallel_workers is None else num_parallel_workers
        self.workers: int = arguments.integer(count, owner, "num_parallel_workers", 1)

    def _row(self, i: int) -> Row:
        raise NotImplementedError

    def _labels(self, column: str) -> np.ndarray:
        k = self.names.index(column) if column in self.names else None
        if k is None:
            bad_value(f"{type(self).__name__}: there is no column {column!r}")
        return np.array([self._row(i)[k] for i in range(self._count)])

    def _indices(self, epoch: int) -> np.ndarray:
        random = self._random(epoch)
        if isinstance(self.sampler, DistributedSampler):
            # all processes draw one order
            seed = [get_seed() or 0, self._order_epoch(epoch), self._depth]
            random = np.random.default_rng(seed)
        return self.sampler.indices(self._count, random, self._labels)

    def _rows(self, epoch: int) -> Iterator[Row]:
        indices = self._indices(epoch).tolist()
        return in_order(self._row, indices, self._entropy(epoch), self.workers)

    def add_sampler(self, new_sampler: Sampler) -> None:
        """Has new_sampler choose among the rows that the one before chose."""
        new_sampler.add_child(self.sampler)
        self.sampler = new_sampler

    def use_sampler(self, new_sampler: Sampler) -> None:
        """Puts new_sampler in the place of the one before."""
        self.sampler = new_sampler

    def get_dataset_size(self) -> int:
        """Return the number of rows of an epoch."""
        return len(self._indices(0))


class NumpySlicesDataset(IndexedDataset):
    """A dataset whose rows are slices of arrays along the first axis.

    data: a dict from column name to array, a tuple of arrays (a column each), or one array or list.
    column_names: the names; by default the dict's keys, or column_0, column_1, ... num_samples: at
    most this many rows. shuffle: a new order in each epoch; None: yes. sampler: a Sampler or
    indices. num_shards, shard_id: only this part of the rows.

    Raises ValueError if there are no rows, columns of different lengths or a wrong number of names,
    TypeError for anything that is not an array.
    """

    def __init__(
        self, data: Any, column_names: Any = None, num_samples: int | None = None,
        num_parallel_workers: int = 1, shuffle: bool | None = None, sampler: Any = None,
        num_shards: int | None = None, shard_id: int | None = None,
    ) -> None:  # fmt: skip
        owner = "NumpySlicesDataset"
        if isinstance(data, dict):
            column_names = list(data) if column_names is None else column_names
            columns = [_column(v) for v in data.values()]
        elif isinstance(data, tuple):
            columns = [_column(v) for v in data]
        else:
            columns = [_column(data)]
        if not columns or any(c.ndim == 0 for c in columns):
            bad_value(f"{owner}: every column needs at least one axis")
        lengths = [len(c) for c in columns]
        if len(set(lengths)) != 1:
            bad_value(f"{owner}: the columns have different lengths: {lengths}")
        if lengths[0] == 0:
            bad_value(f"{owner}: there are no rows")
        super().__init__(sampler, shuffle, num_shards, shard_id, num_samples)
        self.columns: list[np.ndarray] = columns
        self._count = lengths[0]
        self.names: list[str] = _numbered(owner, column_names, len(columns))

    def _order(self, epoch: int) -> tuple[Sequence[np.ndarray], np.ndarray] | None:
        dicts = any(c.dtype == object for c in self.columns)
        return None if dicts else (self.columns, self._indices(epoch))

    def _row(self, i: int) -> Row:
        return tuple(c[i] if c.dtype == object else c[i, ...] for c in self.columns)


def _column(values: Any) -> np.ndarray:
    """An array, or one of the dicts in a list."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, dict) for v in values):
        return as_array(values)
    column = np.empty(len(values), object)
    column[:] = values
    return column


def _numbered(owner: str, names: Any, count: int) -> list[str]:
    if names is None:
        return [f"column_{i}" for i in range(count)]
    return column_names(owner, names, count)


class GeneratorDataset(IndexedDataset):
    """A dataset whose rows come from a Python generator or sequence.

    source: an object with __getitem__ and __len__; an iterable; or a function that returns an
    iterator, called once for each epoch. A row is a tuple of values, or one value. column_names:
    the names of the columns. column_types: their dtypes; numbers and lists of them become it.
    num_samples: at most this many rows. num_parallel_workers: that many threads read from a source with
    __getitem__. shuffle: a new order in each epoch; None: yes for a source with __getitem__.
    sampler, num_shards, shard_id: for a source with __getitem__. batch_sampler: gives a list of
    indices for each batch; collate_fn: makes the columns of a list of rows.

    schema: a Schema, or the path of its file, for the columns in place of their names.
    python_multiprocessing and max_rowsize have no effect. Raises TypeError for another kind of
    source, ValueError for shuffling one without __getitem__ and for rows of another number of
    values than there are names.
    """

    def __init__(
        self, source: Any, column_names: Any = None, column_types: Any = None, schema: Any = None,
        num_samples: int | None = None, num_parallel_workers: int = 1, shuffle: bool | None = None,
        sampler: Any = None, num_shards: int | None = None, shard_id: int | None = None,
        python_multiprocessing: bool = True, max_rowsize: Any = None, batch_sampler: Any = None,
        collate_fn: Any = None,
    ) -> None:  # fmt: skip
        owner = "GeneratorDataset"
        self.indexable: bool = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not self.indexable and not callable(source) and not isinstance(source, Iterable):
            bad_type(
                f"{owner}: the source must be iterable, callable or have __getitem__ and __len__, but is "
                f"{type(source).__name__}"
            )
        if shuffle and not self.indexable:
            bad_value(
                f"{owner}: a source without __getitem__ and __len__ cannot be shuffled here; use "
                ".shuffle(buffer_size)"
            )
        if not self.indexable and (sampler is not None or num_shards is not None):
            bad_value(f"{owner}: 'sampler' and 'num_shards' need a source with __getitem__")
        if column_names is None and schema is not None:
            column_names = [column["name"] for column in schema.columns]
        if column_names is None:
            bad_value(f"{owner}: column_names is needed")
        super().__init__(sampler, shuffle, num_shards, shard_id, num_samples, num_parallel_workers)
        self.source: Any = source
        self.names: list[str] = _numbered(owner, column_names, len(_listed(column_names)))
        self.types: list[np.dtype[Any]] | None = _dtypes(owner, column_types, len(self.names))
        self.limit = num_samples
        if batch_sampler is not None and not self.indexable:
            bad_value(f"{owner}: 'batch_sampler' needs a source with __getitem__")
        self.batch_sampler: Any = batch_sampler
        self.collate_fn: Any = collate_fn
        self._size: int | None = None

    @property
    def _count(self) -> int:  # type: ignore[override]
        return len(self.source)

    def _row(self, i: int) -> Row:
        return self._as_row(self.source[i])

    def _as_row(self, value: Any) -> Row:
        row = value if isinstance(value, (tuple, list)) else (value,)
        if len(row) != len(self.names):
            bad_value(f"GeneratorDataset: a row of {len(row)} values for the columns {self.names}")
        arrays = tuple(as_value(v) for v in row)
        if self.types is None:
            return arrays
        return tuple(self._typed(k, v, a) for k, (v, a) in enumerate(zip(row, arrays, strict=True)))

    def _typed(self, k: int, value: Any, array: np.ndarray) -> np.ndarray:
        assert self.types is not None
        if isinstance(array, dict) or array.dtype == self.types[k]:
            return array
        if hasattr(value, "dtype"):
            bad_type(
                f"GeneratorDataset: the column {self.names[k]!r} should be {self.types[k]}, a row has "
                f"{array.dtype}"
            )
        return array.astype(self.types[k])

    def _rows(self, epoch: int) -> Iterator[Row]:
        if self.batch_sampler is not None:
            return in_order(self._batch, self._batches(), self._entropy(epoch), self.workers)
        if self.indexable:
            return super()._rows(epoch)
        made = self.source() if callable(self.source) else self.source
        if epoch > 0 and iter(made) is made and not callable(self.source):
            bad_value(
                "GeneratorDataset: the source is an iterator, which can be read only once; pass a function "
                "that makes it"
            )
        return map(self._as_row, itertools.islice(iter(made), self.limit))

    def _batches(self) -> Iterator[list[int]]:
        return (list(chosen) for chosen in self.batch_sampler)

    def _batch(self, chosen: list[int]) -> Row:
        if self.collate_fn is not None:
            return self._as_row(self.collate_fn([self.source[i] for i in chosen]))
        rows = [self._row(i) for i in chosen]
        columns = zip(self.names, zip(*rows, strict=True), strict=True)
        return tuple(stacked("GeneratorDataset", name, values) for name, values in columns)

    def get_dataset_size(self) -> int:
        """Return the number of rows of an epoch; a source without __len__ is read through once."""
        if self.batch_sampler is not None:
            return sum(1 for _ in self._batches())
        if self.indexable:
            return super().get_dataset_size()
        if self._size is None:
            made = self.source() if callable(self.source) else self.source
            if not hasattr(made, "__len__") and iter(made) is self.source:
                bad_value("GeneratorDataset: the source has no length and can be read only once")
            size = len(made) if hasattr(made, "__len__") else sum(1 for _ in made)
            self._size = size if self.limit is None else min(size, self.limit)
        return self._size


def _listed(names: Any) -> list[Any]:
    return [names] if isinstance(names, str) else list(names)


def _dtypes(owner: str, types: Any, count: int) -> list[np.dtype[Any]] | None:
    if types is None:
        return None
    listed = list(types) if isinstance(types, (list, tuple)) else [types]
    if len(listed) != count:
        bad_value(f"{owner}: {len(listed)} column_types for {count} columns")
    return [np.dtype(t.name) if isinstance(t, DType) else np.dtype(t) for t in listed]


class PaddedDataset(GeneratorDataset):
    """Rows given as a list of dicts from column name to array: to fill up another dataset.

    padded_samples: the rows.
    """

    def __init__(self, padded_samples: list[dict[str, Any]]) -> None:
        if not isinstance(padded_samples, list) or not padded_samples:
            bad_type("PaddedDataset: expected a list of dicts")
        if not all(isinstance(row, dict) and row for row in padded_samples):
            bad_type("PaddedDataset: every row must be a dict")
        names = list(padded_samples[0])
        rows = [tuple(row[name] for name in names) for row in padded_samples]
        super().__init__(rows, names, shuffle=False)


class DatasetCache:
    """A cache of a dataset on MindSpore's cache server. There is none here: rows are read again.

    session_id, size, spilling: stored as attributes. unused: options of MindSpore that have no
    effect in gradcell.
    """

    def __init__(
        self, session_id: int, size: int = 0, spilling: bool = False, **unused: Any
    ) -> None:
        self.session_id: int = session_id
        self.size: int = size
        self.spilling: bool = spilling
        warnings.warn(
            f"DatasetCache: gradcell does not cache datasets; rows are read again{where()}",
            stacklevel=2,
        )

    def get_stat(self) -> dict[str, int]:
        """Return the size of the cache: it is empty."""
        return {"avg_cache_sz": 0, "num_mem_cached": 0, "num_disk_cached": 0}
