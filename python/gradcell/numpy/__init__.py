"""NumPy's names for tensors: mindspore.numpy.

The functions take tensors, numbers and nested lists; Python integers are int32 and floats float32, as in
MindSpore, and dtype=None stands for the dtype of the result. A program written for NumPy has NumPy's digits
after gradcell.set_default_dtype(gradcell.float64). What it has to write in another way: z.real and z.imag
are methods here (np.real(z) is the same in both), and places and counts are int32.
"""

from __future__ import annotations

import math as _math

from gradcell._core import Tensor as ndarray
from gradcell.base import explain as _explain, later as _later

from gradcell.dtype import (  # isort: skip
    bool_, complex64, complex128, float16, float32, float64, int8, int16, int32, int64, uint8,
    uint16, uint32, uint64,
)  # fmt: skip
from gradcell.numpy.conversion import array, full
from gradcell.numpy.elementwise import *  # noqa: F403
from gradcell.numpy.functions import *  # noqa: F403
from gradcell.numpy.inspection import *  # noqa: F403
from gradcell.numpy.keywords import widened as _widened
from gradcell.numpy.order import *  # noqa: F403
from gradcell.numpy.polynomials import *  # noqa: F403
from gradcell.numpy.reductions import *  # noqa: F403
from gradcell.numpy.writing import *  # noqa: F403

from gradcell.numpy.making import (  # isort: skip
    arange, c_, diag_indices, geomspace, indices, ix_, linspace, logspace, mgrid, ogrid, r_, randint,
)  # fmt: skip
from gradcell.numpy.mathematics import (  # isort: skip
    array_equal, array_equiv, convolve, corrcoef, correlate, cov, cross, digitize, gradient,
    histogram, histogram2d, histogramdd, interp, isscalar, matmul, norm,
    promote_types, result_type, size, unwrap,
)  # fmt: skip
from gradcell.numpy.shaping import (  # isort: skip
    apply_along_axis, apply_over_axes, array_split, choose, concatenate, intersect1d, pad,
    piecewise, ravel_multi_index, select, setdiff1d, split, unravel_index,
)  # fmt: skip

from gradcell.numpy import (  # isort: skip
    elementwise as _elementwise, functions as _functions, inspection as _inspection, order as _order,
    polynomials as _polynomials, reductions as _reductions, writing as _writing,
)  # fmt: skip

int_ = int32
uint = uint32
float_ = float32
pi: float = _math.pi
e: float = _math.e
euler_gamma: float = 0.5772156649015329
newaxis: None = None
inf: float = _math.inf
nan: float = _math.nan
PINF, NINF = _math.inf, -_math.inf
bool = bool_
half, single, double, csingle, cdouble = float16, float32, float64, complex64, complex128
byte, short, intc, intp, longlong = int8, int16, int32, int64, int64
ubyte, ushort, uintc, uintp, ulonglong = uint8, uint16, uint32, uint64, uint64

_MODULES = (_elementwise, _functions, _inspection, _order, _polynomials, _reductions, _writing)
__all__ = [
    "NINF", "PINF", "bool_", "float16", "float32", "float64", "float_", "inf", "int8", "int16", "int32",
    "int64", "int_", "nan", "pi", "uint", "uint16", "uint32", "uint64", "uint8",
    *(name for module in _MODULES for name in vars(module)["__all__"]),
    "apply_along_axis", "apply_over_axes", "arange", "array", "array_equal", "array_equiv", "array_split",
    "bool", "byte", "c_", "cdouble", "choose", "complex128", "complex64", "concatenate", "convolve",
    "corrcoef", "correlate", "cov", "cross", "csingle", "diag_indices", "digitize", "double", "e",
    "euler_gamma", "full", "geomspace", "gradient", "half", "histogram", "histogram2d", "histogramdd",
    "indices", "intc", "interp", "intersect1d", "intp", "isscalar", "ix_", "linspace", "logspace",
    "longlong", "matmul", "mgrid", "ndarray", "newaxis", "norm", "ogrid", "pad", "piecewise",
    "promote_types", "r_", "randint", "ravel_multi_index", "result_type", "select", "setdiff1d", "short",
    "single", "size", "split", "ubyte", "uintc", "uintp", "ulonglong", "unravel_index", "unwrap",
    "ushort",
]  # fmt: skip
__dir__ = sorted(__all__).copy

_explain(globals())
for _name in __all__:  # which take NumPy's further keywords too
    globals()[_name] = _widened(globals()[_name])

#: What is no function of arrays and no dtype is NumPy's own.
_OF_NUMPY = """
    base_repr binary_repr broadcast_shapes dtype errstate get_printoptions geterr index_exp ndindex
    printoptions s_ set_printoptions seterr
    complexfloating floating generic inexact integer number signedinteger unsignedinteger
""".split()

_later(globals(), "fft linalg random", dict.fromkeys(_OF_NUMPY, "numpy"))
