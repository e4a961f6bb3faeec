"""Networks: cells, layers, losses, optimisers, training cells."""

from __future__ import annotations

from gradcell.nn.activations import ReLU, Sigmoid, Tanh, get_activation
from gradcell.nn.basic import Dense, Flatten, Identity
from gradcell.nn.cell import Cell
from gradcell.nn.containers import CellDict, CellList, SequentialCell
from gradcell.nn.losses import LossBase, MSELoss

__all__ = [
    "Cell",
    "CellDict",
    "CellList",
    "Dense",
    "Flatten",
    "Identity",
    "LossBase",
    "MSELoss",
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
