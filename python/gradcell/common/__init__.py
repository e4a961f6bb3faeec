"""MindSpore's `common`: dtypes, initialisers, the seed."""

import typing as _typing

from gradcell import dtype
from gradcell._core import Tensor
from gradcell.base import later as _later
from gradcell.base.seed import get_seed, set_seed
from gradcell.common import initializer
from gradcell.compilation.compiled import jit
from gradcell.tensors.parameter import Parameter, ParameterTuple

if _typing.TYPE_CHECKING:
    from gradcell.common.api import JitConfig, jit_class, lazy_inline, mutable, no_inline
    from gradcell.common.generator import Generator, default_generator
    from gradcell.common.sparse_tensor import COOTensor, CSRTensor, RowTensor, SparseTensor
    from gradcell.dtype import *  # noqa: F403

#: Names that are imported when they are first asked for, and where they are.
_LATER = {
    **dict.fromkeys(("JitConfig", "jit_class", "lazy_inline", "mutable", "no_inline"), "api"),
    **dict.fromkeys(("COOTensor", "CSRTensor", "RowTensor", "SparseTensor"), "sparse_tensor"),
    **dict.fromkeys(("Generator", "default_generator"), "generator"),
    "_Function": "_grad_function",
    "_no_grad": "no_grad",
}

__all__ = [
    *(name for name in _LATER if not name.startswith("_")), "Parameter", "ParameterTuple", "Tensor",
    "dtype", "get_seed", "initializer", "jit", "set_seed",
]  # fmt: skip
__dir__ = sorted(__all__).copy
_later(globals(), places={
    **{name: f"gradcell.common.{place}" for name, place in _LATER.items()},
    **dict.fromkeys([*dtype.__all__, *dtype._PYTHON_NAMES], "gradcell.dtype"),
})  # fmt: skip
