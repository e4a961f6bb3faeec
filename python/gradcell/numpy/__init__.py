"""NumPy's names for tensors: mindspore.numpy.

The functions are rows of table.py, made when they are first asked for. They take tensors, numbers and
nested lists; Python integers are int32 and floats float32, as in MindSpore, and dtype=None stands
for the dtype of the result.
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
from gradcell.numpy import table as _table

int_, uint, float_ = int32, uint32, float32
pi, inf, nan, PINF, NINF = _math.pi, _math.inf, _math.nan, _math.inf, -_math.inf

__all__ = [
    "NINF", "PINF", "bool_", "float16", "float32", "float64", "float_", "inf", "int8", "int16", "int32",
    "int64", "int_", "nan", "pi", "uint", "uint16", "uint32", "uint64", "uint8",
    *_table.FORMS.rows, *_table.OWN,
]  # fmt: skip

if _typing.TYPE_CHECKING:
    from gradcell.numpy._tables import *  # noqa: F403

from gradcell.base.signposts import missing as _missing  # noqa: E402

if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> _Any:
        if name == "fft":
            return _import_module("gradcell.numpy.fft")
        if name in _table.FORMS:
            value = _table.FORMS.make(name)
        elif name in _table.OWN:
            value = _table.own(name)
        else:
            raise _missing("gradcell.numpy", name, __all__)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
