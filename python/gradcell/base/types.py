"""The types of what many functions take, under one name each, for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from gradcell._core import DType, Tensor

#: What an operand may be beside a tensor: numbers, arrays and nested sequences of them.
TensorLike: TypeAlias = (
    Tensor | np.ndarray | np.generic | bool | int | float | complex | Sequence[Any]
)
#: One axis, several, or all for None. A tensor or an array counts where it holds integers.
Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
#: The sizes of a tensor, or its only one.
Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
#: An element type: gradcell's, NumPy's or Python's, or its name.
DTypeLike: TypeAlias = DType | np.dtype[Any] | type[Any] | str
