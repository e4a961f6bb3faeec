"""Data for training: datasets over NumPy arrays and Python sources."""

from __future__ import annotations

from gradcell.dataset.datasets import Dataset, GeneratorDataset, NumpySlicesDataset

__all__ = ["Dataset", "GeneratorDataset", "NumpySlicesDataset"]


def __dir__() -> list[str]:
    return sorted(__all__)
