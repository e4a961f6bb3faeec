"""Mixed precision, under MindSpore's path."""

from gradcell.amp import mixed_precision
from gradcell.amp.mixed_precision import *  # noqa: F403
from gradcell.amp.train import build_train_network

__all__ = [*mixed_precision.__all__, "build_train_network"]
__dir__ = sorted(__all__).copy
