"""What every part shares: dtypes, initialisers, the seed."""

from __future__ import annotations

from gradcell import dtype
from gradcell._core import Tensor
from gradcell.common import initializer
from gradcell.common.seed import get_seed, set_seed
from gradcell.parameter import Parameter, ParameterTuple
from gradcell.transform import jit

__all__ = [
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "dtype",
    "get_seed",
    "initializer",
    "jit",
    "set_seed",
]


def __dir__() -> list[str]:
    return sorted(__all__)
