"""mindspore.mint.special: special functions with PyTorch's arguments."""

from __future__ import annotations

from gradcell.mint.nn.functional import log_softmax
from gradcell.ops import erfc, exp2, expm1, log1p, round, sinc

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]


def __dir__() -> list[str]:
    return sorted(__all__)
