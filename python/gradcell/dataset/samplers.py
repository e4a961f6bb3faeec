"""Samplers: which rows of a source, in which order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gradcell.base import arguments, bad_index, bad_type, bad_value, fail, publish, unsupported


class Sampler:
    """The base of samplers: define __iter__, which yields the indices of an epoch's rows.

    dataset_size is set to the source's number of rows before. num_samples: at most this many rows.
    """

    def __init__(self, num_samples: int | None = None) -> None:
        if num_samples is not None:
            arguments.integer(num_samples, type(self).__name__, "num_samples", 1)
        self.num_samples: int | None = num_samples
        self.dataset_size: int = 0
        self.child_sampler: Sampler | None = None

    def __iter__(self) -> Iterator[int]:
        unsupported(f"{type(self).__name__}: __iter__ is not defined")

    def get_num_samples(self) -> int | None:
        """At most this many rows, None: all."""
        return self.num_samples

    def add_child(self, sampler: Sampler) -> None:
        """Has this sampler choose among what another one chose."""
        self.child_sampler = sampler

    def get_child(self) -> Sampler | None:
        """The sampler among whose rows this one chooses."""
        return self.child_sampler

    def indices(self, size: int, random: np.random.Generator, labels: _Labels) -> np.ndarray:
        """The rows of an epoch, of a source of `size` rows.

        random: the epoch's generator. labels: gives the values of a column. Raises IndexError for a row that
        does not exist.
        """
        rows = None
        if self.child_sampler is not None:
            rows = self.child_sampler.indices(size, random, labels)
            size = len(rows)
        self.dataset_size = size
        chosen = np.asarray(self._choose(size, random, labels))[: self.num_samples]
        if chosen.size == 0:
            chosen = chosen.astype(np.int64)
        if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
            bad_type(f"{type(self).__name__}: the indices must be ints")
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < size:
            bad = chosen.min() if chosen.min() < 0 else chosen.max()
            bad_index(f"{type(self).__name__}: there is no row {bad} of {size}")
        return chosen if rows is None else rows[chosen]

    def _choose(self, size: int, random: np.random.Generator, labels: _Labels) -> Any:
        return np.array(list(self))


_Labels = Callable[[str], np.ndarray]


class BuiltinSampler(Sampler):
    """The base class of the samplers of this module."""


class IterSampler(Sampler):
    """Takes the indices from any iterable."""

    def __init__(self, sampler: Iterable[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.sampler = sampler

    def __iter__(self) -> Iterator[int]:
        return iter(self.sampler)


class SequentialSampler(BuiltinSampler):
    """Takes the rows in their order, from start_index on."""

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.start_index: int = start_index or 0
        if self.start_index < 0:
            bad_value("SequentialSampler: 'start_index' must be at least 0")

    def _choose(self, size: int, random: np.random.Generator, labels: _Labels) -> Any:
        return np.arange(self.start_index, size)


class RandomSampler(BuiltinSampler):
    """The rows in random order, or drawn with replacement; a new order in each epoch."""

    def __init__(
        self, replacement: bool = False, num_samples: int | None = None, shuffle: Any = None
    ) -> None:
        super().__init__(num_samples)
        self.replacement = replacement

    def _choose(self, size: int, random: np.random.Generator, labels: _Labels) -> Any:
        if not self.replacement:
            return random.permutation(size)
        return random.integers(size, size=self.num_samples or size)


class SubsetSampler(BuiltinSampler):
    """Takes the rows with these indices, in this order."""

    def __init__(self, indices: Iterable[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self._indices = np.array(list(indices), dtype=None)

    def _choose(self, size: int, random: np.random.Generator, labels: _Labels) -> Any:
        return self._indices


class SubsetRandomSampler(SubsetSampler):
    """Takes the rows with these indices in random order."""

    def _choose(self, size: int, random: np.random.Generator, labels: _Labels) -> Any:
        return random.permutation(self._indices)


class WeightedRandomSampler(BuiltinSampler):
    """Rows drawn with probabilities in proportion to weights, one a row.

    weights: a number of at least 0 for each row. replacement: whether a row can be drawn again.
    """

    def __init__(
        self, weights: Any, num_samples: int | None = None, replacement: bool = True
    ) -> None:
        super().__init__(num_samples)
        self.weights: np.ndarray = np.asarray(weights, np.float64)
        self.replacement: bool = replacement
        if self.weights.ndim != 1 or not (self.weights >= 0).all() or not self.weights.sum() > 0:
            bad_value("WeightedRandomSampler: the weights must be at least 0, not all 0")

    def _choose(self, size: int, random: np.random.Generator, labels: _Labels) -> Any:
        count = len(self.weights)
        share = self.weights / self.weights.sum()
        drawn = self.num_samples or min(size, count)
        return random.choice(count, drawn, replace=self.replacement, p=share)


class PKSampler(BuiltinSampler):
    """num_val rows of each class, which may repeat; the classes in random order if shuffle is set.

    num_val: rows of a class. num_class: must be None, else NotImplementedError is raised.
    class_column: the name of the column of labels.
    """

    def __init__(
        self, num_val: int, num_class: int | None = None, shuffle: bool = False,
        class_column: str = "label", num_samples: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_samples)
        self.num_val: int = arguments.integer(num_val, "PKSampler", "num_val", 1)
        if num_class is not None:
            unsupported("PKSampler: 'num_class' is not implemented")
        self.shuffle: bool = shuffle
        self.class_column: str = class_column

    def _choose(self, size: int, random: np.random.Generator, labels: _Labels) -> Any:
        values = labels(self.class_column)
        classes = np.unique(values)
        if self.shuffle:
            classes = random.permutation(classes)
        rows = [random.choice(np.flatnonzero(values == c), self.num_val) for c in classes]
        return np.concatenate(rows)


class DistributedSampler(BuiltinSampler):
    """The part shard_id of num_shards, each of the same size: rows are repeated from the beginning
    to fill the last. Every process draws the same order, also where no seed is set. offset: the part
    that gets the first row, the parts being as large as the rows go; -1 for parts of the same size.
    """

    def __init__(
        self, num_shards: int, shard_id: int, shuffle: bool = True, num_samples: int | None = None,
        offset: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(num_samples)
        owner = "DistributedSampler"
        self.num_shards: int = arguments.integer(num_shards, owner, "num_shards", 1)
        if isinstance(shard_id, bool) or not isinstance(shard_id, (int, np.integer)):
            bad_type(f"{owner}: 'shard_id' must be an int")
        if not 0 <= shard_id < num_shards:
            bad_value(
                f"DistributedSampler: 'shard_id' must be in [0, {num_shards}), got {shard_id}"
            )
        self.offset: int = arguments.integer(offset, owner, "offset", -1)
        if self.offset > self.num_shards:
            fail(f"{owner}: 'offset' must be at most num_shards, {num_shards}")
        self.shard_id: int = int(shard_id)
        self.shuffle: bool = bool(shuffle)

    def _choose(self, size: int, random: np.random.Generator, labels: _Labels) -> Any:
        order = random.permutation(size) if self.shuffle else np.arange(size)
        if self.offset >= 0:
            return order[(self.shard_id - self.offset) % self.num_shards :: self.num_shards]
        count = math.ceil(size / self.num_shards)
        places = self.shard_id + self.num_shards * np.arange(count)
        return order[places % size] if size else order


def _sampler_of(
    owner: str, sampler: Any, shuffle: Any, num_shards: Any, shard_id: Any, num_samples: Any
) -> Sampler:
    """The sampler that a source's arguments say. Raises ValueError where they do not go together."""
    if num_samples is not None:
        arguments.integer(num_samples, owner, "num_samples", 1)
    if (num_shards is None) != (shard_id is None):
        bad_value(f"{owner}: 'num_shards' and 'shard_id' go together")
    if sampler is not None:
        if num_shards is not None or shuffle is not None:
            bad_value(f"{owner}: 'sampler' cannot go with 'shuffle' or 'num_shards'")
        if not isinstance(sampler, Sampler):
            if not isinstance(sampler, Iterable) and not hasattr(sampler, "__getitem__"):
                given = type(sampler).__name__
                bad_type(f"{owner}: 'sampler' must be a Sampler or indices, got {given}")
            sampler = IterSampler(sampler)
        if num_samples is None:
            return sampler  # type: ignore[no-any-return]
        made = SequentialSampler(num_samples=num_samples)
        made.add_child(sampler)
        return made
    if num_shards is not None:
        return DistributedSampler(num_shards, shard_id, shuffle is not False, num_samples)
    kind = SequentialSampler if shuffle is False else RandomSampler
    return kind(num_samples=num_samples)


publish(globals())
