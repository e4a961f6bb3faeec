"""What every part shares: dtypes, initialisers, the seed."""

from __future__ import annotations

from gradcell import dtype
from gradcell._core import Tensor
from gradcell.common import initializer as initializer_module
from gradcell.common.initializer import initializer
from gradcell.common.seed import get_seed, set_seed
from gradcell.parameter import Parameter, ParameterTuple

__all__ = [
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "dtype",
    "get_seed",
    "initializer",
    "initializer_module",
    "set_seed",
]
