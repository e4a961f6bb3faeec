"""The standard's dtypes: which kinds they are of, how they combine, what their limits are; and what the
package can do."""

from __future__ import annotations

import builtins
import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradcell import _core, context
from gradcell._core import DType, Tensor
from gradcell.base import bad_type, bad_value

from gradcell.dtype import (  # isort: skip
    bool_, complex64, complex128, complex_type, float32, float64, int8, int16, int32, int64,
    int_type, uint8, uint16, uint32, uint64, uint_type,
)  # fmt: skip

__all__ = [
    "astype", "bool", "can_cast", "complex64", "complex128", "finfo", "float32", "float64", "iinfo",
    "int8", "int16", "int32", "int64", "isdtype", "result_type", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip

bool = bool_

#: {a kind: the standard's dtypes of it}
KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool_,),
    "signed integer": int_type,
    "unsigned integer": uint_type,
    "integral": (*int_type, *uint_type),
    "real floating": (float32, float64),
    "complex floating": complex_type,
    "numeric": (*int_type, *uint_type, float32, float64, *complex_type),
}


def _of_kind(dtype: DType, kind: Any) -> builtins.bool:
    if isinstance(kind, DType):
        return dtype == kind
    if kind not in KINDS:
        bad_value(f"isdtype: a kind is a dtype or one of {', '.join(KINDS)}, got {kind!r}")
    half = kind in ("real floating", "numeric") and dtype.is_narrow_float
    return half or dtype in KINDS[kind]


def isdtype(dtype: DType, kind: Any) -> builtins.bool:
    """Return whether a dtype is of a kind.

    kind: another dtype, 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex
    floating' or 'numeric'; or a tuple, of which one must do. Raises ValueError for other kinds.
    """
    return any(_of_kind(dtype, k) for k in (kind if isinstance(kind, tuple) else (kind,)))


def _joined(dtype: DType, number: Any) -> DType:
    if isinstance(number, complex):
        return _core.promote(dtype, complex64)
    return _core.promote_number(dtype, number)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the common dtype of tensors, dtypes and Python's numbers, which take the dtype of the
    others.

    Raises TypeError where there is neither a tensor nor a dtype, or no common dtype.
    """
    given = [a.dtype if isinstance(a, Tensor) else a for a in arrays_and_dtypes]
    kinds = [a for a in given if isinstance(a, DType)]
    numbers = [a for a in given if not isinstance(a, DType)]
    if not kinds:
        bad_type("result_type: a tensor or a dtype is needed")
    return functools.reduce(_joined, numbers, functools.reduce(_core.promote, kinds))


def can_cast(from_: Any, to: DType, /) -> builtins.bool:
    """Return whether a dtype, or that of a tensor, is promoted to another: among integers, among
    floats and complex numbers, from bool to bool."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    alike = all(isdtype(source, k) == isdtype(to, k) for k in ("bool", "integral"))
    try:
        return alike and _core.promote(source, to) == to
    except TypeError:  # no common dtype
        return False


def on_device(x: Tensor, device: Any) -> Tensor:
    """x, on a device if one is named."""
    return x if device is None else x.to_device(device)


def astype(x: Tensor, dtype: DType, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    """The elements in another dtype; without copy x itself where it is of that dtype."""
    if x.dtype == dtype:
        return on_device(x.copy() if copy else x, device)
    return on_device(x.astype(dtype), device)


def _limits(found: Any, of: Any, *names: str) -> SimpleNamespace:
    dtype = of.dtype if isinstance(of, Tensor) else of
    known = found(dtype.name)
    limits = {name: getattr(known, name).item() for name in names}
    return SimpleNamespace(bits=known.bits, dtype=getattr(_core, known.dtype.name), **limits)


def finfo(type: Any, /) -> SimpleNamespace:
    """Return the limits of a floating dtype, or of that of a tensor: bits, eps, max, min,
    smallest_normal, dtype; of a complex one, what its parts can.

    Raises ValueError for other dtypes.
    """
    return _limits(np.finfo, type, "eps", "max", "min", "smallest_normal")


def iinfo(type: Any, /) -> SimpleNamespace:
    """Return the limits of an integer dtype, or of that of a tensor: bits, max, min, dtype.

    Raises ValueError for other dtypes.
    """
    dtype = type.dtype if isinstance(type, Tensor) else type
    known = np.iinfo(dtype.name)
    return SimpleNamespace(bits=known.bits, max=known.max, min=known.min, dtype=dtype)


def default_complex() -> DType:
    """The complex dtype whose parts are of the default dtype."""
    return complex128 if context.get_default_dtype() == float64 else complex64


class Info:
    """The result of __array_namespace_info__: the package's capabilities and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """Indices may be bool tensors, shapes may depend on values; the most dimensions of a tensor."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device of tensors, as the context says: 'CPU' or 'GPU'."""
        return "CPU" if _core.device_in_use() < 0 else "GPU"

    def devices(self) -> list[str]:
        """Return the devices that tensors can be on: 'CPU', and 'GPU' if the context says so."""
        return list(dict.fromkeys(["CPU", self.default_device()]))

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of what is made of Python's numbers: set_default_dtype chooses the floating ones."""
        real = context.get_default_dtype()
        return {
            "real floating": real, "complex floating": default_complex(), "integral": int64,
            "indexing": int64,
        }  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes by name, all or those of a kind or of several in a tuple, as in isdtype."""
        return {
            d.name: d
            for d in (*KINDS["bool"], *KINDS["numeric"])
            if kind is None or isdtype(d, kind)
        }
