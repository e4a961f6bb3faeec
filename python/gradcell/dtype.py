"""Element types, under MindSpore's names."""

from __future__ import annotations

import builtins
import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcell._core import (  # isort: skip
    DType, bfloat16, bool as bool_, complex64, complex128, float16, float32, float64, int8, int16,
    int32, int64, uint8, uint16, uint32, uint64,
)  # fmt: skip
from gradcell.base import has_numpy_dtype, missing

half = float16
single = float32
float_ = float32
double = float64
byte = int8
short = int16
intc = int32
int_ = int32
long = int64
intp = int64
ubyte = uint8
ushort = uint16
uintc = uint32
uintp = uint64
cfloat = complex64
cdouble = complex128
tensor_type = DType
type_none: type[None] = type(None)

#: Names that Python has too: of the module, but not by name in it.
_PYTHON_NAMES: dict[str, DType] = {"bool": bool_, "int": int32, "float": float32}


if TYPE_CHECKING:
    bool: DType = bool_
    int: DType = int32
    float: DType = float32
else:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> DType:
        if name in _PYTHON_NAMES:
            return _PYTHON_NAMES[name]
        raise missing("gradcell.dtype", name, __all__)


def _numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """NumPy's dtype of it. Raises TypeError for bfloat16, which NumPy does not have."""
    if not has_numpy_dtype(dtype):
        raise TypeError(f"NumPy has no {dtype.name}: asnumpy gives float32")
    return np.dtype(dtype.name)


# NumPy reads it: np.dtype(gradcell.float32), np.zeros(3, gradcell.float32).
DType.dtype = property(_numpy_dtype)  # type: ignore[method-assign, assignment]


def dtype_to_nptype(type_: DType) -> Any:
    """NumPy's type for a dtype: that of the arrays asnumpy gives, float32 for bfloat16."""
    return np.dtype(type_.name if has_numpy_dtype(type_) else "float32").type


# SciPy makes numbers of what a function gives with it.
DType.type = property(dtype_to_nptype)  # type: ignore[method-assign, assignment]


def dtype_to_pytype(type_: DType) -> type:
    """The Python type of the elements of a dtype: bool, int, float or complex."""
    if type_.is_complex:
        return builtins.complex
    if type_.is_floating:
        return builtins.float
    return builtins.bool if type_.name == "bool" else builtins.int


def pytype_to_dtype(obj: Any) -> DType:
    """The dtype of Python's bool, int (int64), float (float64) and complex (complex128), and of NumPy's
    types.

    obj: a type, such as float or numpy.float32. Raises NotImplementedError for other types.
    """
    if isinstance(obj, DType):
        return obj
    plain = {
        builtins.bool: bool_, builtins.int: int64, builtins.float: float64,
        builtins.complex: complex128,
    }  # fmt: skip
    if obj in plain:
        return plain[obj]
    name = np.dtype(obj).name if isinstance(obj, type) and issubclass(obj, np.generic) else ""
    found = {d.name: d for d in _NUMPY}.get(name)
    if found is None:
        raise NotImplementedError(f"Unsupported convert python type {obj} to a dtype.")
    return found


def get_py_obj_dtype(obj: Any) -> Any:
    """The dtype of a tensor, a number or a Python type.

    obj: a tensor, a number, or a type.
    """
    if hasattr(obj, "dtype") and isinstance(obj.dtype, DType):
        return obj.dtype
    return pytype_to_dtype(obj if isinstance(obj, type) else type(obj))


def _issubclass_(type_: Any, dtype: Any) -> builtins.bool:
    """Return whether a dtype is another, or of its kind."""
    return builtins.bool(type_ == dtype or (isinstance(dtype, type) and isinstance(type_, dtype)))


class QuantDtype(enum.Enum):
    """Names of the integer types that MindSpore's quantised networks have: nothing here computes in
    them but INT8 and UINT8."""

    INT1, INT2, INT3, INT4, INT5, INT6, INT7, INT8 = range(8)
    UINT1, UINT2, UINT3, UINT4, UINT5, UINT6, UINT7, UINT8 = range(8, 16)
    FLOAT16, FLOAT32 = 16, 17


uint_type: tuple[DType, ...] = (uint8, uint16, uint32, uint64)
complex_type: tuple[DType, ...] = (complex64, complex128)
float_type: tuple[DType, ...] = (float16, float32, float64)
int_type: tuple[DType, ...] = (int8, int16, int32, int64)
number_type: tuple[DType, ...] = (*int_type, *uint_type, *float_type, bfloat16, *complex_type)
_NUMPY = (bool_, *int_type, *uint_type, *float_type, *complex_type)
all_types: tuple[DType, ...] = (bool_, *number_type)

__all__ = [
    "QuantDtype", "bfloat16", "bool_", "byte", "cdouble", "cfloat", "complex64", "complex128",
    "double", "dtype_to_nptype", "dtype_to_pytype", "float16", "float32", "float64", "float_",
    "get_py_obj_dtype", "half", "int8", "int16", "int32", "int64", "int_", "intc", "intp", "long",
    "pytype_to_dtype", "short", "single", "ubyte", "uint8", "uint16", "uint32", "uint64", "uintc",
    "uintp", "ushort",
]  # fmt: skip
__dir__ = sorted(__all__).copy
