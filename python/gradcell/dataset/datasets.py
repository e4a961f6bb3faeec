"""The base of datasets: the steps that can be chained behind one, and its iterators.

Order is a function of the seed (config.set_seed, else set_seed, else one drawn for the process, which
the random state holds) and the epoch's number, so a resumed run sees the batches that an
uninterrupted one would.
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from gradcell.base import arguments, bad_type, bad_value, fail
from gradcell.dataset.config import order_seed
from gradcell.dataset.rows import Row, column_names, given, place


def _kept(column: Any) -> np.ndarray:
    """Return the array by which a column's shape and dtype are reported."""
    return np.empty(0, object) if isinstance(column, dict) else column


class Dataset:
    """The base class of datasets: a chain, or a tree, of steps that ends with this one.

    A step's class is found by the name that it gives itself (`class Batch(Dataset, step="batch")`).

    children: the datasets that this one reads.
    """

    _steps: ClassVar[dict[str, Callable[..., Dataset]]] = {}
    names: list[str]  #: the columns', where they are not those of the dataset before

    def __init_subclass__(cls, step: str | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if step is not None:
            Dataset._steps[step] = cls

    def __init__(self, *children: Dataset) -> None:
        for child in children:
            if not isinstance(child, Dataset):
                bad_type(f"{type(self).__name__}: expected a dataset, got {type(child).__name__}")
        self.children: list[Dataset] = list(children)
        self._depth: int = 1 + max((child._depth for child in children), default=-1)
        self._epoch = 0
        self._fixed = False

    # What a step defines --------------------------------------------------------------------------

    def _rows(self, epoch: int) -> Iterator[Row]:
        raise NotImplementedError

    def _order(self, epoch: int) -> tuple[Sequence[np.ndarray], np.ndarray] | None:
        """Arrays and the indices of the rows in them, where that is all there is to the rows."""
        return None

    def get_dataset_size(self) -> int:
        """Return the number of rows, or batches, of an epoch."""
        return self.children[0].get_dataset_size()

    def get_col_names(self) -> list[str]:
        """The names of the columns."""
        own = vars(self).get("names")
        return self.children[0].get_col_names() if own is None else list(own)

    def get_batch_size(self) -> int:
        """Rows in a batch; 1 before batch()."""
        return self.children[0].get_batch_size() if self.children else 1

    def get_repeat_count(self) -> int:
        """Return the count of repeat()."""
        return self.children[0].get_repeat_count() if self.children else 1

    def get_class_indexing(self) -> dict[str, Any]:
        """From a class's name to its label, where the source has classes; else empty."""
        return self.children[0].get_class_indexing() if self.children else {}

    def num_classes(self) -> int | None:
        """Return the number of classes of the source, None if it has none."""
        return self.children[0].num_classes() if self.children else None

    # ----------------------------------------------------------------------------------------------

    @functools.cached_property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return self.get_col_names()

    def output_types(self) -> list[np.dtype[Any]]:
        """The columns' dtypes, by the first row; of a dict that of objects."""
        return [_kept(column).dtype for column in self._first()]

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """The columns' shapes, by the first row; estimate: by all rows, None where they differ; of a
        dict [0]."""
        rows = self._rows(0) if estimate else []
        shapes = [[list(_kept(c).shape) for c in row] for row in rows]
        if not estimate:
            return [list(_kept(column).shape) for column in self._first()]
        return [
            [n[0] if len(set(n)) == 1 else None for n in zip(*column, strict=True)]
            for column in zip(*shapes, strict=True)
        ]

    def _first(self) -> Row:
        for row in self._rows(0):
            return row
        bad_value("the dataset has no rows")

    def _entropy(self, epoch: int) -> list[int]:
        return [order_seed(), epoch, self._depth]

    def _order_epoch(self, epoch: int) -> int:
        return 0 if self._fixed else epoch

    def _random(self, epoch: int) -> np.random.Generator:
        """Return the generator of an epoch's order."""
        return np.random.default_rng(self._entropy(self._order_epoch(epoch)))

    def _in_fixed_order(self) -> Dataset:
        """The same dataset, its rows in each epoch in the first one's order."""
        made = copy.copy(self)
        made._fixed = True
        made.children = [child._in_fixed_order() for child in self.children]
        return made

    # Steps ----------------------------------------------------------------------------------------

    def batch(
        self, batch_size: int | Callable[..., int], drop_remainder: bool = False,
        num_parallel_workers: int | None = None, per_batch_map: Callable[..., Any] | None = None,
        input_columns: Any = None, output_columns: Any = None, pad_info: dict[str, Any] | None = None,
        **unused: Any,
    ) -> Dataset:  # fmt: skip
        """Stacks batch_size rows; a last batch of fewer rows is kept unless drop_remainder.

        batch_size: a number, or a function of the batch's BatchInfo. per_batch_map: called with the
        batch's values of each of input_columns (all of them by default), a list of arrays a column,
        and with its BatchInfo; returns as many columns as output_columns names. pad_info: as in
        padded_batch. Raises ValueError unless batch_size is positive, and for rows of different
        shapes.
        """
        made = self._steps["batch"](self, batch_size, drop_remainder, pad_info)
        if per_batch_map is None:
            return made
        arguments.function(per_batch_map, "batch", "per_batch_map")
        return self._steps["per_batch_map"](made, per_batch_map, input_columns, output_columns)

    def padded_batch(
        self, batch_size: int | Callable[..., int], drop_remainder: bool = False,
        num_parallel_workers: int | None = None, pad_info: dict[str, Any] | None = None,
    ) -> Dataset:  # fmt: skip
        """Batches of rows that are first padded at their ends.

        pad_info: from a column's name to (shape, value); a shape of None, or None in it, is the
        longest of the batch. Without pad_info all columns are padded, with zeros.
        """
        info = dict.fromkeys(self.get_col_names(), (None, None)) if not pad_info else pad_info
        return self._steps["batch"](self, batch_size, drop_remainder, info)

    def bucket_batch_by_length(
        self, column_names: Any, bucket_boundaries: list[int], bucket_batch_sizes: list[int],
        element_length_function: Callable[..., int] | None = None,
        pad_info: dict[str, Any] | None = None, pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:  # fmt: skip
        """Batches of rows of similar length.

        A row goes to the first bucket whose boundary is above its length: that of the first axis of
        column_names' first, or element_length_function of those columns. A bucket of as many rows
        as bucket_batch_sizes says (one more than there are boundaries) is a batch. pad_info: as in
        padded_batch; pad_to_bucket_boundary: None in it is the bucket's greatest length.
        """
        return self._steps["bucket_batch_by_length"](
            self, column_names, bucket_boundaries, bucket_batch_sizes, element_length_function,
            pad_info, pad_to_bucket_boundary, drop_remainder,
        )  # fmt: skip

    def shuffle(self, buffer_size: int) -> Dataset:
        """Shuffles the rows, differently in each epoch: each row is drawn at random from the next
        buffer_size rows.

        Raises ValueError unless buffer_size is at least 2.
        """
        return self._steps["shuffle"](self, buffer_size)

    def map(
        self, operations: Any, input_columns: Any = None, output_columns: Any = None,
        num_parallel_workers: int | None = None, python_multiprocessing: bool = False,
        column_order: Any = None, **unused: Any,
    ) -> Dataset:  # fmt: skip
        """Calls operations, one function or a list of them in turn, with the values of
        input_columns (the first one by default); its results take their place, under the names
        output_columns.

        num_parallel_workers: the number of threads, or processes if python_multiprocessing is set; one
        by default. The rows keep their order, and the transforms of gradcell.dataset draw the same
        random numbers however many there are.
        """
        made = self._steps["map"](
            self, operations, input_columns, output_columns, num_parallel_workers,
            python_multiprocessing,
        )  # fmt: skip
        return made if column_order is None else made.project(column_order)

    def flat_map(self, func: Callable[..., Dataset]) -> Dataset:
        """The rows of the datasets that func returns for each row."""
        return self._steps["flat_map"](self, func)

    def filter(
        self, predicate: Callable[..., Any], input_columns: Any = None,
        num_parallel_workers: int | None = None,
    ) -> Dataset:  # fmt: skip
        """The rows for which predicate(input_columns) is true; by default it gets all columns."""
        return self._steps["filter"](self, predicate, input_columns)

    def sync_wait(
        self, condition_name: str, num_batch: int = 1, callback: Callable[..., Any] | None = None
    ) -> Dataset:
        """Names a place that sync_update speaks to. Steps here compute a row when it is asked for, so that
        rows after an update see it, and nothing has to wait.

        condition_name: the place's name. num_batch: as MindSpore has it; rows do not wait. callback: what
        sync_update calls. Raises RuntimeError for a name that is in use.
        """
        return self._steps["sync_wait"](self, condition_name, num_batch, callback)

    def sync_update(
        self, condition_name: str, num_batch: int | None = None, data: Any = None
    ) -> None:
        """Calls the callback of the sync_wait of that name with data, if it is not None.

        num_batch: a positive int or None, as MindSpore has it. Raises RuntimeError for another name.
        """
        if num_batch is not None and (not isinstance(num_batch, int) or num_batch < 1):
            fail(f"sync_update: 'num_batch' must be a positive int, got {num_batch!r}")
        kind: Any = self._steps["sync_wait"]
        steps = [s for s in self._of_kind(kind) if s.condition == condition_name]
        if not steps:
            fail(f"sync_update: there is no sync_wait of the name {condition_name!r}")
        if steps[0].callback is not None:
            steps[0].callback(data)

    def _of_kind(self, kind: Any) -> Iterator[Any]:
        """The steps of a kind up to this one."""
        if isinstance(self, kind):
            yield self
        for child in self.children:
            yield from child._of_kind(kind)

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """apply_func(this dataset). Raises TypeError unless the result is a dataset."""
        made = arguments.function(apply_func, "apply", "apply_func")(self)
        if not isinstance(made, Dataset):
            bad_type("apply: the function must return a dataset")
        return made

    def repeat(self, count: int | None = None) -> Dataset:
        """The rows count times in an epoch; None or -1: without limit."""
        return self._steps["repeat"](self, count)

    def take(self, count: int = -1) -> Dataset:
        """At most the first count rows; -1: all."""
        if count == -1:
            return self
        return self._steps["take"](self, 0, arguments.integer(count, "take", "count", 1))

    def skip(self, count: int) -> Dataset:
        """All rows but the first count."""
        if isinstance(count, int) and count == 0:
            return self
        return self._steps["take"](self, arguments.integer(count, "skip", "count", 1), None)

    def split(self, sizes: Sequence[int | float], randomize: bool = True) -> tuple[Dataset, ...]:
        """Parts with these numbers, or fractions, of rows.

        randomize: the rows are mixed before; which rows a part has is the same in each epoch.
        Raises ValueError unless the sizes sum up to the dataset's, or the shares to 1.
        """
        size = self.get_dataset_size()
        counts = _part_sizes(size, sizes)
        rows = self._in_fixed_order()
        if randomize and size > 1:
            rows = rows.shuffle(size)._in_fixed_order()
        starts = itertools.accumulate(counts, initial=0)
        return tuple(
            self._steps["take"](rows, start, count)
            for start, count in zip(starts, counts, strict=False)
        )

    def zip(self, datasets: Any) -> Dataset:
        """Joins the columns of this dataset and of others, row by row, until the shortest ends."""
        listed = [datasets] if isinstance(datasets, Dataset) else list(datasets)
        return self._steps["zip"](self, *listed)

    def concat(self, datasets: Any) -> Dataset:
        """The rows of this dataset, then those of others of as many columns."""
        listed = [datasets] if isinstance(datasets, Dataset) else list(datasets)
        return self._steps["concat"](self, *listed)

    def __add__(self, other: Dataset) -> Dataset:
        return self.concat(other)

    def project(self, columns: Any) -> Dataset:
        """These columns only, in this order."""
        wanted = [columns] if isinstance(columns, str) else list(columns)
        have = self.get_col_names()
        places = [place("project", have, c) for c in wanted]
        return self._steps["project"](self, places, wanted)

    def rename(self, input_columns: Any, output_columns: Any) -> Dataset:
        """The same columns, some under other names."""
        old = [input_columns] if isinstance(input_columns, str) else list(input_columns)
        new = [output_columns] if isinstance(output_columns, str) else list(output_columns)
        if len(old) != len(new):
            bad_value(f"rename: {len(old)} columns and {len(new)} names")
        names = self.get_col_names()
        for a, b in zip(old, new, strict=True):
            names[place("rename", names, a)] = b
        return self._steps["project"](self, list(range(len(names))), column_names("rename", names))

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Writes an epoch's rows to MindRecord files, which MindDataset reads.

        Raises ValueError for another file_type.
        """
        if file_type != "mindrecord":
            bad_value(f"save: 'file_type' must be 'mindrecord', got {file_type!r}")
        from gradcell.mindrecord import write_rows

        write_rows(file_name, num_files, self.get_col_names(), self._rows(0))

    # Iterating ------------------------------------------------------------------------------------

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass the epoch with this number, counted from 0."""
        self._epoch = epoch

    def reset(self) -> None:
        """Makes the next pass the first epoch again."""
        self._epoch = 0

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self.create_tuple_iterator(num_epochs=1))

    def create_tuple_iterator(
        self, columns: Any = None, num_epochs: int = -1, output_numpy: bool = False,
        do_copy: bool = False,
    ) -> Passes:  # fmt: skip
        """An iterator over an epoch's rows: lists with one Tensor (or array) for each column;
        strings and bytes come as arrays.

        num_epochs: how many epochs it gives, -1: without end.
        """
        source = self if columns is None else self.project(columns)
        return Passes(self, source, num_epochs, output_numpy, None)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> Passes:
        """The same, with dicts from column name to Tensor (or array)."""
        return Passes(self, self, num_epochs, output_numpy, self.get_col_names())


def _part_sizes(size: int, sizes: Sequence[int | float]) -> list[int]:
    """Return the number of rows of each part of a split."""
    if not isinstance(sizes, (list, tuple)) or not sizes:
        bad_type("split: 'sizes' must be a list of numbers")
    if all(isinstance(n, int) and not isinstance(n, bool) for n in sizes):
        counts = [arguments.integer(n, "split", "sizes", 1) for n in sizes]
        if sum(counts) != size:
            bad_value(f"split: {list(sizes)} do not sum up to the {size} rows")
        return counts
    if not all(isinstance(n, float) and 0 < n <= 1 for n in sizes) or abs(sum(sizes) - 1) > 1e-9:
        given = list(sizes)
        bad_value(f"split: 'sizes' must be ints, or floats in (0, 1] that sum up to 1, got {given}")
    counts = [round(size * n) for n in sizes]
    if 0 in counts:
        bad_value(f"split: {list(sizes)} of {size} rows leaves an empty part")
    rest = size - sum(counts)
    at = next(i for i, n in enumerate(counts) if n + rest > 0)
    counts[at] += rest
    return counts


class Passes:
    """Each iteration over it is one epoch of a dataset; next() goes through the epochs row by row."""

    def __init__(
        self, owner: Dataset, source: Dataset, epochs: int, arrays: bool, names: list[str] | None
    ) -> None:
        if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs == 0 or epochs < -1:
            bad_value(f"'num_epochs' must be positive or -1, got {epochs}")
        self.owner: Dataset = owner
        self.source: Dataset = source
        self.left: int = epochs
        self.arrays: bool = arrays
        self.names: list[str] | None = names
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
            fail("the dataset's iterator gave all its epochs already")
        self.left -= self.left > 0
        epoch = self.owner._epoch
        self.owner._epoch += 1
        for row in self.source._rows(epoch):
            values = [given(value, self.arrays) for value in row]
            yield values if self.names is None else dict(zip(self.names, values, strict=True))

    def get_dataset_size(self) -> int:
        """Return the number of elements of an epoch."""
        return self.source.get_dataset_size()

    def __len__(self) -> int:
        return self.get_dataset_size()
