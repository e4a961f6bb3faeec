"""Networks: cells, layers, losses, optimisers, training cells."""

from __future__ import annotations

from gradcell.nn.activations import ReLU, Sigmoid, Tanh, get_activation
from gradcell.nn.basic import Dense, Embedding, Flatten, Identity
from gradcell.nn.cell import Cell
from gradcell.nn.containers import CellDict, CellList, SequentialCell
from gradcell.nn.convolution import Conv1d, Conv2d
from gradcell.nn.losses import LossBase, MSELoss
from gradcell.nn.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm
from gradcell.nn.pooling import AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d

__all__ = [
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Cell",
    "CellDict",
    "CellList",
    "Conv1d",
    "Conv2d",
    "Dense",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Identity",
    "LayerNorm",
    "LossBase",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "ReLU",
    "SequentialCell",
    "Sigmoid",
    "Tanh",
    "get_activation",
]

# What trains them: optimisers, schedules, training cells.
from gradcell.nn import training as _training  # noqa: E402
from gradcell.nn.training import *  # noqa: E402, F403

__all__ += _training.__all__  # noqa: PLE0605
