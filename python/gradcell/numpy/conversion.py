"""Conversions for NumPy's names: numbers, lists and tensors to tensors, dtypes, shapes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments
from gradcell.base.convert import dtype_of_numbers, dtype_of_numpy, to_dtype
from gradcell.tensors.indexing import tensor_of_list


def array(obj: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor of a tensor, a number, an array or nested lists of them.

    Python integers become int32 and floats float32 unless dtype says otherwise.

    obj: what becomes a tensor. copy: whether a tensor is copied. ndmin: at least this many
    dimensions. Raises TypeError for anything else, OverflowError for a number that an
    integer dtype does not hold.
    """
    if isinstance(obj, Tensor):
        out = typed(obj.copy() if copy else obj, dtype)
    else:
        want = dtype_of(obj) if dtype is None else to_dtype(dtype)
        out = tensor_of_list(obj, want)
    missing = arguments.integer(ndmin, "array", "ndmin") - out.ndim
    return out if missing <= 0 else _ops.reshape(out, [1] * missing + list(out.shape))


def dtype_of(x: Any) -> Any:
    """The dtype that something has as a tensor by itself; None if it has to be made to say."""
    if isinstance(x, Tensor):
        return x.dtype
    if isinstance(x, (np.ndarray, np.generic)):
        return dtype_of_numpy(x.dtype)
    if not isinstance(x, (bool, int, float, complex, list, tuple)):
        return None
    found = dtype_of_numbers(x)
    if found is None and isinstance(x, (list, tuple)):
        return functools.reduce(_core.promote, [dtype_of(item) for item in x])
    return _core.int32 if found == _core.int64 else found


def typed(x: Any, dtype: Any) -> Any:
    """x in another dtype; as it is for None."""
    if dtype is None:
        return x
    if isinstance(x, tuple):
        return tuple(typed(part, dtype) for part in x)
    return _ops.cast(x, to_dtype(dtype))


def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic)


def tensors(*xs: Any) -> Any:
    """All as tensors, what is none yet in the dtype that it has beside the others: so numbers, which take
    the others' dtype, and lists are rounded once."""
    for x in xs:
        if not isinstance(x, Tensor):
            return _together(xs)
    return xs


def all_tensors(xs: Any) -> Any:
    """Return what `tensors` makes of the elements of a sequence."""
    return tensors(*xs)


def _together(xs: tuple[Any, ...]) -> list[Tensor]:
    xs = tuple(tensor(x) if dtype_of(x) is None else x for x in xs)
    kinds = [dtype_of(x) for x in xs if not _is_number(x)] or [dtype_of(x) for x in xs]
    common = functools.reduce(_core.promote, kinds)
    return [
        x if isinstance(x, Tensor)
        else tensor_of_list(x, arguments.dtype_beside(common, x) if _is_number(x) else common)
        for x in xs
    ]  # fmt: skip


def operands(*xs: Any) -> Any:
    """As tensors, but numbers beside others stay what they are."""
    alone = True
    for x in xs:
        if isinstance(x, (list, tuple, np.ndarray)):
            made = iter(tensors(*(x for x in xs if not _is_number(x) and x is not None)))
            return [x if _is_number(x) or x is None else next(made) for x in xs]
        alone = alone and not isinstance(x, Tensor)
    return tensors(*xs) if alone else xs


def operand(x: Any) -> Any:
    """Lists as tensors; a tensor or number as it is."""
    return array(x) if isinstance(x, (list, tuple, np.ndarray)) else x


def tensor(x: Any) -> Tensor:
    """Whatever it is as a tensor."""
    return x if isinstance(x, Tensor) else array(x)


def vector(x: Any) -> Tensor:
    """All elements of whatever it is, in one dimension."""
    return tensor(x).ravel()


def along(x: Any, axis: Any) -> tuple[Tensor, int]:
    """(x, axis), or for None (x flattened, 0)."""
    return (vector(x), 0) if axis is None else (tensor(x), axis)


def optional(*xs: Any) -> list[Any]:
    """Tensors of what is not None."""
    made = iter(tensors(*(x for x in xs if x is not None)))
    return [None if x is None else next(made) for x in xs]


def joined(*parts: Any) -> Tensor:
    """Flatten the parts that are not None, and join them."""
    return ops.concat([t.ravel() for t in optional(*parts) if t is not None], 0)


def floating(x: Any) -> Tensor:
    """Whatever it is as a floating tensor: float32 for integers."""
    return arguments.floating(tensor(x))


def floats(*xs: Any) -> list[Tensor]:
    """All as floating tensors, made as `tensors` makes them."""
    return [arguments.floating(x) for x in tensors(*xs)]


def shape_of(shape: Any) -> list[int]:
    """A shape given as an integer, a tuple or a tensor."""
    return arguments.integers(shape, "numpy", "shape")


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """A tensor of one number or of an array that broadcasts; the dtype is fill_value's by default."""
    dims = arguments.addressable(shape_of(shape), "full")
    return _ops.broadcast_to(array(fill_value, dtype), dims)


def like(x: Any, value: Any, dtype: Any, shape: Any) -> Tensor:
    """A tensor of one number, with x's shape and dtype unless others are given."""
    t = tensor(x)
    return full(t.shape if shape is None else shape, value, t.dtype if dtype is None else dtype)


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _plain(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.asnumpy()
    return [_plain(item) for item in x] if isinstance(x, (list, tuple)) else x
