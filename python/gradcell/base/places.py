"""Integers that count elements, or say where one is: int32, as in MindSpore, or int64 if they are large."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell._core import DType, Tensor, int32, int64


def place_type(most: int, dtype: Any = None) -> DType:
    """The dtype of numbers up to `most`: int64 in place of int32 (or of no dtype) if it cannot hold them."""
    return int64 if dtype in (None, int32) and most >= 2**31 else dtype or int32


def places(found: Any) -> Tensor:
    """An array of places or counts as a tensor."""
    whole = np.asarray(found)
    return Tensor(whole, place_type(int(whole.max(initial=0))))
