"""What every part shares: dtypes, initialisers, the seed."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from gradcell import dtype
from gradcell._core import Tensor
from gradcell.base.seed import get_seed, set_seed
from gradcell.common import initializer
from gradcell.compilation.compiled import jit
from gradcell.tensors.parameter import Parameter, ParameterTuple

#: Names that are imported when they are first asked for, and where they are.
_LATER = {
    **dict.fromkeys(("JitConfig", "jit_class", "lazy_inline", "mutable", "no_inline"), "api"),
    **dict.fromkeys(("COOTensor", "CSRTensor", "RowTensor", "SparseTensor"), "sparse_tensor"),
    **dict.fromkeys(("Generator", "default_generator"), "generator"),
    "_Function": "_grad_function",
    "_no_grad": "no_grad",
}

__all__ = [
    *(name for name in _LATER if not name.startswith("_")),
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "dtype",
    "get_seed",
    "initializer",
    "jit",
    "set_seed",
]


def __getattr__(name: str) -> _Any:
    if name in dtype.__all__ or name in dtype._PYTHON_NAMES:
        return getattr(dtype, name)
    place = _LATER.get(name)
    if place is None:
        raise AttributeError(f"module 'gradcell.common' has no attribute {name!r}")
    return getattr(_import_module(f"gradcell.common.{place}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
