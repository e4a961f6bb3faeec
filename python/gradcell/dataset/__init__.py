"""Data for training: datasets over arrays, Python sources and files, and the steps between."""

from __future__ import annotations

from typing import Any

from gradcell.base import publish as _publish

from gradcell.dataset import (  # isort: skip
    config as config, files, records, samplers, sources, steps, text as text, transforms as transforms,
    vision as vision,
)  # fmt: skip
from gradcell.dataset.datasets import Dataset as Dataset
from gradcell.dataset.files import *  # noqa: F403
from gradcell.dataset.records import *  # noqa: F403
from gradcell.dataset.samplers import *  # noqa: F403
from gradcell.dataset.sources import *  # noqa: F403
from gradcell.dataset.steps import *  # noqa: F403


def zip(datasets: Any) -> Dataset:
    """Joins the columns of several datasets, row by row, until the shortest ends.

    datasets: a tuple of Datasets.
    """
    first, *others = datasets
    return steps.ZipDataset(first, *others)


_publish(globals(), "Dataset", "config", "text", "transforms", "vision")
