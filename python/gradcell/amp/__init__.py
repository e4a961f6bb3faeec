"""Mixed precision and loss scaling."""

from gradcell.amp import loss_scale, mixed_precision
from gradcell.amp.loss_scale import *  # noqa: F403
from gradcell.amp.mixed_precision import *  # noqa: F403
from gradcell.amp.train import build_train_network
from gradcell.derivatives.overflow import Overflow, locate_overflow

__all__ = [
    *loss_scale.__all__, *mixed_precision.__all__, "Overflow", "build_train_network",
    "locate_overflow",
]  # fmt: skip
__dir__ = sorted(__all__).copy
