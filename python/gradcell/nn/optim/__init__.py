"""Optimisers."""

from gradcell.nn.optim.ada_grad import Adadelta, Adagrad, ProximalAdagrad
from gradcell.nn.optim.adafactor import AdaFactor
from gradcell.nn.optim.adam import Adam, AdaMax, AdamOffload, AdamWeightDecay, LazyAdam
from gradcell.nn.optim.asgd import ASGD
from gradcell.nn.optim.ftrl import FTRL
from gradcell.nn.optim.functional import FunctionalOptimizer
from gradcell.nn.optim.lamb import Lamb
from gradcell.nn.optim.lars import LARS
from gradcell.nn.optim.momentum import Momentum
from gradcell.nn.optim.optimizer import Optimizer
from gradcell.nn.optim.rmsprop import RMSProp
from gradcell.nn.optim.rprop import Rprop
from gradcell.nn.optim.sgd import SGD

__all__ = [
    "ASGD", "FTRL", "LARS", "SGD", "AdaFactor", "AdaMax", "Adadelta", "Adagrad", "Adam",
    "AdamOffload", "AdamWeightDecay", "FunctionalOptimizer", "Lamb", "LazyAdam", "Momentum", "Optimizer",
    "ProximalAdagrad", "RMSProp", "Rprop",
]  # fmt: skip
__dir__ = sorted(__all__).copy
