"""The door of all that takes tensors: what becomes of other libraries' arrays in the arguments of a call.

An array, alone or in a tree, becomes a Tensor of its own dtype, as Tensor(array) is one. An array is what has
`__array__`, `__dlpack__`, `__array_interface__` or `__cuda_array_interface__`: NumPy's, those of PyTorch, JAX
and CuPy, columns of pandas. At the door of a cell, or of a transform of one, an array of real floats takes
the dtype of the cell's first floating Parameter, or that of to_float. NumPy's scalars are numbers, as
Python's are, and an array of what no Tensor can hold stays what it is: who needs a tensor refuses it.

The core asks here wherever a call goes through a Dispatcher (jit, transforms, cells, composed ops), and has
the same rule for the operands of its own ops (csrc/bind/bind.h).
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import DType, Tensor
from gradcell.base import tree
from gradcell.base.cells import CellBase

#: NumPy's kinds of elements that no Tensor has: objects, texts, bytes, dates, times.
_NO_NUMBERS = set("OUSMm")


def is_tensor(x: Any) -> bool:
    """Return whether it is a Tensor or becomes one at the door."""
    return isinstance(x, Tensor) or _core.is_array(x)


def with_tensors(value: Any, fn: Any = None) -> Any:
    """The value, or a tree like it, with Tensors in the place of arrays. fn: the function that gets it, maybe
    a cell."""
    if not _core.may_hold_arrays(value):
        return value
    dtype = fn._dtype_of_arrays() if isinstance(fn, CellBase) else None
    return tree.map_all(lambda x: _tensor(x, dtype) if _core.is_array(x) else x, value)


def numbers_too(value: Any, fn: Any = None) -> Any:
    """The same with NumPy's scalars as Tensors: for what derivatives are taken by."""
    if isinstance(value, Tensor) or (type(value) is tuple and {*map(type, value)} == {Tensor}):
        return value
    return tree.map_all(lambda x: Tensor(x) if _is_number(x) else x, with_tensors(value, fn))


def _is_number(x: Any) -> bool:
    return isinstance(x, (np.number, np.bool_))


def of(dispatcher: _core.Dispatcher, fn: Any) -> None:
    """Gives the dispatcher of a transform of a cell the cell's door."""
    if isinstance(fn, CellBase):
        dispatcher._cell_at_door = weakref.ref(fn)  # type: ignore[attr-defined]


def _at(dispatcher: _core.Dispatcher, owner: Any, value: Any) -> Any:
    """An argument of a call through a dispatcher, of an owner, if it has one."""
    cell = getattr(dispatcher, "_cell_at_door", None)
    return with_tensors(value, cell() if cell else owner)


def _tensor(array: Any, dtype: DType | None) -> Any:
    if getattr(getattr(array, "dtype", None), "kind", "") in _NO_NUMBERS:
        return array
    made = Tensor(array)
    floats = made.dtype.is_floating and not made.dtype.is_complex
    return Tensor(made, dtype) if floats and dtype is not None else made


_core.set_door(_at, tree.KINDS)  # type: ignore[arg-type]
