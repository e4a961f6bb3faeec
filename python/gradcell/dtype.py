"""Element types, under MindSpore's names."""

from __future__ import annotations

from gradcell._core import (
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from gradcell._core import (
    bool as bool_,
)

half = float16
single = float_ = float32
double = float64
byte = int8
short = int16
intc = int_ = int32
long = int64
tensor_type = DType

__all__ = [
    "bfloat16",
    "bool_",
    "double",
    "float16",
    "float32",
    "float64",
    "float_",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "intc",
    "long",
    "short",
    "single",
    "uint8",
]


def __dir__() -> list[str]:
    return sorted(__all__)
