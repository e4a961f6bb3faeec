"""The types of what many functions take, under one name each, for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np

from gradcell._core import DType, Tensor


class SupportsArray(Protocol):
    """An object that NumPy reads as an array, as those of PyTorch and JAX and columns of pandas are."""

    def __array__(self) -> Any: ...


class SupportsDLPack(Protocol):
    """An array that can be read through DLPack."""

    def __dlpack__(self) -> Any: ...


#: What is a tensor, or becomes one where one is needed.
Array: TypeAlias = Tensor | SupportsArray | SupportsDLPack
#: What an operand may be beside a tensor: numbers, arrays and nested sequences of them.
TensorLike: TypeAlias = Array | bool | int | float | complex | Sequence[Any]
#: One axis, several, or all for None. A tensor or an array counts where it holds integers.
Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
#: The sizes of a tensor, or its only one.
Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
#: An element type: gradcell's, NumPy's or Python's, or its name.
DTypeLike: TypeAlias = DType | np.dtype[Any] | type[Any] | str
