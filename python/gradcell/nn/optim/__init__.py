"""Optimisers."""

from __future__ import annotations

from gradcell.nn.optim.adam import Adam, AdamWeightDecay
from gradcell.nn.optim.lamb import LARS, Lamb
from gradcell.nn.optim.optimizer import Optimizer
from gradcell.nn.optim.rmsprop import Adagrad, RMSProp
from gradcell.nn.optim.sgd import SGD, Momentum

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
