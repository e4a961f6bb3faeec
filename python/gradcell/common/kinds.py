"""Kinds of dtypes, as MindSpore's _c_expression.typing has them: isinstance(float32, Float) is true."""

from __future__ import annotations

from typing import Any

from gradcell import _core
from gradcell._core import DType, Tensor


class _Kind(type):
    """A class whose instances are the dtypes whose name begins with one of its words."""

    words: tuple[str, ...] = ()

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, DType) and value.name.startswith(cls.words)


def _kind(name: str, text: str, *words: str) -> Any:
    return _Kind(name, (), {"__doc__": text, "__module__": __name__, "words": words})


Type: Any = _kind("Type", "Any dtype.", "")
Number: Any = _kind("Number", "Any dtype of numbers, bool included.", "")
Float: Any = _kind("Float", "A floating dtype.", "float")
BFloat: Any = _kind("BFloat", "bfloat16.", "bfloat")
Int: Any = _kind("Int", "An integer dtype with a sign.", "int")
UInt: Any = _kind("UInt", "An integer dtype without a sign.", "uint")
Bool: Any = _kind("Bool", "bool.", "bool")


class TensorType:
    """The type of a tensor with elements of a dtype."""

    def __init__(self, element: DType | None = None) -> None:
        self.element = element

    def element_type(self) -> DType | None:
        """The dtype of the elements."""
        return self.element

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and self.element == other.element

    def __hash__(self) -> int:
        return hash(str(self.element))


def type_to_type_id(dtype: DType) -> int:
    """A number for a dtype: its place in the order of names."""
    return sorted(str(v) for v in vars(_core).values() if isinstance(v, DType)).index(str(dtype))


def is_tensor(value: Any) -> bool:
    """Return whether the value is a tensor."""
    return isinstance(value, Tensor)


def enable_security() -> bool:
    """Return False: no build leaves out functions for security."""
    return False
