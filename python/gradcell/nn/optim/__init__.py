"""Optimisers."""

from __future__ import annotations

from gradcell.nn.optim.ada_grad import Adagrad
from gradcell.nn.optim.adam import Adam, AdamWeightDecay
from gradcell.nn.optim.lamb import Lamb
from gradcell.nn.optim.lars import LARS
from gradcell.nn.optim.momentum import Momentum
from gradcell.nn.optim.optimizer import Optimizer
from gradcell.nn.optim.rmsprop import RMSProp
from gradcell.nn.optim.sgd import SGD

__all__ = [
    "LARS",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamWeightDecay",
    "Lamb",
    "Momentum",
    "Optimizer",
    "RMSProp",
]


def __dir__() -> list[str]:
    return sorted(__all__)
