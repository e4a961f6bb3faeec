"""What a dataset's steps have in common: rows as tuples of arrays, and checks of arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base.errors import bad_type, bad_value
from gradcell.base.location import where

Row = tuple[np.ndarray, ...]


def column_names(owner: str, names: Any, count: int | None = None) -> list[str]:
    """One name or several as a list; raises TypeError and ValueError for bad ones, and where there
    are not `count` of them."""
    listed = [names] if isinstance(names, str) else list(names)
    if not all(isinstance(n, str) and n for n in listed):
        arrays = any(isinstance(n, (np.ndarray, np.generic, Tensor)) for n in listed)
        hint = "; several arrays are given as a tuple, (x, y)" if arrays else ""
        bad_type(f"{owner}: column names must be non-empty strings{hint}")
    if len(set(listed)) != len(listed):
        bad_value(f"{owner}: a column name appears twice in {listed}")
    if count is not None and len(listed) != count:
        bad_value(f"{owner}: {len(listed)} names for {count} columns")
    return listed


def place(owner: str, names: list[str], name: Any) -> int:
    """Where a column is; raises ValueError if there is none of this name."""
    if name not in names:
        bad_value(f"{owner}: there is no column {name!r}; the columns are {names}")
    return names.index(name)


def as_array(value: Any) -> np.ndarray:
    """A value of a row: arrays, Tensors, numbers, strings, bytes and nested lists of them.

    Raises TypeError for anything else.
    """
    if isinstance(value, Tensor):
        value = value.asnumpy()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(f"dataset: a value is not an array: {error}{where()}") from None
    if array.dtype == object:
        bad_type(f"dataset: a value of type {type(value).__name__} is not an array")
    return array


def as_tensor(array: np.ndarray) -> Tensor | np.ndarray:
    """A value as the iterators give it: a Tensor, but for strings and bytes. Unsigned integers of
    more than 8 bits (labels are uint32) become signed ones of twice the width, which ops take."""
    if array.dtype.kind in "US":
        return array
    if array.dtype.kind == "u" and 1 < array.dtype.itemsize < 8:
        array = array.astype(f"i{2 * array.dtype.itemsize}")
    return Tensor(array)


def called(owner: str, operation: Any, values: Iterable[Any]) -> tuple[Any, ...]:
    """operation(*values) as a tuple of values."""
    out = operation(*values)
    return out if isinstance(out, tuple) else (out,)
