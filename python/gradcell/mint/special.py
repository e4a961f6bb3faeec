"""mindspore.mint.special: special functions with PyTorch's arguments."""

from gradcell.mint.nn.functional import log_softmax
from gradcell.ops import erfc, exp2, expm1, log1p, round, sinc

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]
__dir__ = sorted(__all__).copy
