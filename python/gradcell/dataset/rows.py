"""Rows as tuples of arrays, and checks of arguments, for all steps of a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, tree

#: The values of a row: arrays, and dicts of what the program has put into them.
Row = tuple[Any, ...]


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
    """Return the position of a column; raises ValueError for an unknown name."""
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
        bad_type(f"dataset: a value is not an array: {error}")
    if array.dtype == object:
        bad_type(f"dataset: a value of type {type(value).__name__} is not an array")
    return array


def as_value(value: Any) -> Any:
    """A value of a row as it goes from step to step: an array, or a dict as it is."""
    return value if isinstance(value, dict) else as_array(value)


def given(value: Any, arrays: bool) -> Any:
    """A value as the iterators give it: a Tensor, or an array; what a dict holds is made the same."""

    def leaf(part: Any) -> Any:
        if part is None:
            return None
        return as_array(part) if arrays else as_tensor(as_array(part))

    if isinstance(value, dict):
        return tree.map_all(leaf, value)
    return value if arrays else as_tensor(value)


def stacked(owner: str, name: str, values: Any) -> Any:
    """The values of a column in a batch as one: arrays of one shape as an array, dicts of the same keys as
    a dict of arrays; a dict, which is the batch's already, as it is."""
    if isinstance(values, dict):
        return values
    if isinstance(values[0], dict):
        keys = list(values[0])
        for value in values:
            if not isinstance(value, dict) or set(value) != set(keys):
                other = list(value) if isinstance(value, dict) else type(value).__name__
                bad_value(
                    f"{owner}: the rows of column {name!r} have different keys: {keys} and {other}"
                )
        return {k: _array_of(owner, f"{name}[{k!r}]", [v[k] for v in values]) for k in keys}
    shapes = {v.shape for v in values}
    if len(shapes) > 1:
        bad_value(f"{owner}: the rows of column {name!r} have different shapes: {sorted(shapes)}")
    return np.stack(values)


def _array_of(owner: str, name: str, values: list[Any]) -> np.ndarray:
    try:
        return as_array([as_array(v) for v in values])
    except TypeError as error:
        bad_type(
            f"{owner}: {name} of the rows is not made an array: {error}; 'per_batch_map' can make one"
        )


def as_tensor(array: np.ndarray) -> Tensor | np.ndarray:
    """An array as a Tensor, but for strings and bytes."""
    return array if array.dtype.kind in "US" else Tensor(array)


def called(owner: str, operation: Any, values: Iterable[Any]) -> tuple[Any, ...]:
    """operation(*values) as a tuple of values."""
    out = operation(*values)
    return out if isinstance(out, tuple) else (out,)
