"""mindspore.mint.special: special functions with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from gradcell import ops
from gradcell._core import Tensor
from gradcell.mint.functions import typed
from gradcell.ops import erfc, exp2, expm1, log1p, round, sinc

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]


def log_softmax(input: Any, dim: Any = None, *, dtype: Any = None) -> Tensor:
    """log(softmax(x)), without overflow or the logarithm of 0."""
    return ops.log_softmax(typed(input, dtype), dim)


def __dir__() -> list[str]:
    return sorted(__all__)
