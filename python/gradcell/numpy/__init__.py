"""NumPy's names for tensors: mindspore.numpy.

The functions are rows of table.py, made when they are first asked for. They take tensors, numbers and
nested lists; Python integers are int32 and floats float32, as in MindSpore, and dtype=None stands
for the dtype of the result.
"""

from __future__ import annotations

import math as _math
from importlib import import_module as _import_module

from gradcell.dtype import bool_, float16, float32, float64, int8, int16, int32, int64, uint8

int_, float_ = int32, float32
pi, inf, nan, PINF, NINF = _math.pi, _math.inf, _math.nan, _math.inf, -_math.inf


def __getattr__(name: str) -> object:
    table = _import_module("gradcell.numpy.table")
    if name.startswith("__") or (name not in table.FORMS and not hasattr(table.arrays, name)):
        raise AttributeError(f"module 'gradcell.numpy' has no attribute {name!r}")
    value = table.FORMS.make(name) if name in table.FORMS else getattr(table.arrays, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    table = _import_module("gradcell.numpy.table")
    return sorted({*globals(), *table.FORMS.rows, *table.arrays.__all__})


def _public() -> list[str]:
    return [name for name in __dir__() if not name.startswith("_") and name != "annotations"]
