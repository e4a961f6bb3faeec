"""NumPy's names for tensors: mindspore.numpy.

The functions take tensors, numbers and nested lists; Python integers are int32 and floats float32, as in
MindSpore, and dtype=None stands for the dtype of the result.
"""

from __future__ import annotations

import math as _math
import typing as _typing
from importlib import import_module as _import_module
from typing import Any as _Any

from gradcell.dtype import (
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from gradcell.numpy import elementwise as _elementwise, functions as _functions
from gradcell.numpy.elementwise import *  # noqa: F403
from gradcell.numpy.functions import *  # noqa: F403

from gradcell.numpy.conversion import (  # isort: skip
    array, full,
)  # fmt: skip
from gradcell.numpy.making import (  # isort: skip
    arange, diag_indices, geomspace, indices, ix_, linspace, logspace, mgrid, ogrid, randint,
)  # fmt: skip
from gradcell.numpy.mathematics import (  # isort: skip
    array_equal, array_equiv, average, convolve, corrcoef, correlate, cov, cross, digitize, gradient,
    histogram, histogram2d, histogramdd, interp, isscalar, matmul, nanmax, nanmin, nanvar, norm,
    polyder, polyint, polymul, polyval, promote_types, ptp, result_type, size, unwrap,
)  # fmt: skip
from gradcell.numpy.shaping import (  # isort: skip
    apply_along_axis, apply_over_axes, array_split, choose, concatenate, intersect1d, pad,
    piecewise, ravel_multi_index, select, setdiff1d, split, unravel_index,
)  # fmt: skip

int_ = int32
uint = uint32
float_ = float32
pi: float = _math.pi
inf: float = _math.inf
nan: float = _math.nan
PINF, NINF = _math.inf, -_math.inf

__all__ = [
    "NINF", "PINF", "bool_", "float16", "float32", "float64", "float_", "inf", "int8", "int16", "int32",
    "int64", "int_", "nan", "pi", "uint", "uint16", "uint32", "uint64", "uint8",
    *_elementwise.__all__, *_functions.__all__,
    "apply_along_axis", "apply_over_axes", "arange", "array", "array_equal", "array_equiv", "array_split",
    "average", "choose", "concatenate", "convolve", "corrcoef", "correlate", "cov", "cross",
    "diag_indices", "digitize", "full", "geomspace", "gradient", "histogram", "histogram2d",
    "histogramdd", "indices", "interp", "intersect1d", "isscalar", "ix_", "linspace", "logspace",
    "matmul", "mgrid", "nanmax", "nanmin", "nanvar", "norm", "ogrid", "pad", "piecewise", "polyder",
    "polyint", "polymul", "polyval", "promote_types", "ptp", "randint", "ravel_multi_index",
    "result_type", "select", "setdiff1d", "size", "split", "unravel_index", "unwrap",
]  # fmt: skip

from gradcell.base.signposts import missing as _missing  # noqa: E402

if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> _Any:
        if name == "fft":
            return _import_module("gradcell.numpy.fft")
        raise _missing("gradcell.numpy", name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
