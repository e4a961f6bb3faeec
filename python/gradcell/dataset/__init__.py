"""Data for training: datasets over arrays, Python sources and files, and the steps between."""

from __future__ import annotations

import typing as _typing
from typing import Any

from gradcell.dataset import config, steps, text, transforms, vision
from gradcell.dataset.datasets import Dataset
from gradcell.dataset.files import (
    Cifar10Dataset,
    Cifar100Dataset,
    FashionMnistDataset,
    ImageFolderDataset,
    MindDataset,
    MnistDataset,
)
from gradcell.dataset.records import Schema, TFRecordDataset
from gradcell.dataset.samplers import (
    BuiltinSampler,
    DistributedSampler,
    IterSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from gradcell.dataset.sources import (
    DatasetCache,
    GeneratorDataset,
    NumpySlicesDataset,
    PaddedDataset,
    Shuffle,
)
from gradcell.dataset.steps import BatchDataset, BatchInfo, MapDataset, RepeatDataset


def zip(datasets: Any) -> Dataset:
    """Joins the columns of several datasets, row by row, until the shortest ends.

    datasets: a tuple of Datasets.
    """
    first, *others = datasets
    return steps.ZipDataset(first, *others)


__all__ = [
    "BatchDataset",
    "BatchInfo",
    "BuiltinSampler",
    "Cifar10Dataset",
    "Cifar100Dataset",
    "Dataset",
    "DatasetCache",
    "DistributedSampler",
    "FashionMnistDataset",
    "GeneratorDataset",
    "ImageFolderDataset",
    "IterSampler",
    "MapDataset",
    "MindDataset",
    "MnistDataset",
    "NumpySlicesDataset",
    "PKSampler",
    "PaddedDataset",
    "RandomSampler",
    "RepeatDataset",
    "Sampler",
    "Schema",
    "SequentialSampler",
    "Shuffle",
    "SubsetRandomSampler",
    "SubsetSampler",
    "TFRecordDataset",
    "WeightedRandomSampler",
    "config",
    "text",
    "transforms",
    "vision",
    "zip",
]


from gradcell.base.signposts import missing as _missing  # noqa: E402

if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> object:
        raise _missing("gradcell.dataset", name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
