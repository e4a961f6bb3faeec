"""Conversions for NumPy's names: numbers, lists and tensors to tensors, dtypes, shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.convert import to_dtype

_ops = _core.ops


def array(obj: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor of a tensor, a number, an array or nested lists of them.

    Python integers become int32 and floats float32 unless dtype says otherwise. ndmin: at least
    this many dimensions. Raises TypeError for anything else.
    """
    if isinstance(obj, (list, tuple)) and _holds_tensors(obj):
        out = ops.stack([array(item) for item in obj], 0)
    elif isinstance(obj, Tensor):
        out = obj.copy() if copy else obj
    else:
        out = Tensor(obj)
        if not isinstance(obj, (np.ndarray, np.generic)) and out.dtype == _core.int64:
            out = _ops.cast(out, _core.int32)
    out = typed(out, dtype)
    return (
        out if out.ndim >= ndmin else _ops.reshape(out, [1] * (ndmin - out.ndim) + list(out.shape))
    )


def _holds_tensors(obj: Any) -> bool:
    if isinstance(obj, (list, tuple)):
        return any(_holds_tensors(item) for item in obj)
    return isinstance(obj, Tensor)


def typed(x: Any, dtype: Any) -> Any:
    """x in another dtype; as it is for None."""
    if dtype is None:
        return x
    return (
        tuple(typed(part, dtype) for part in x)
        if isinstance(x, tuple)
        else _ops.cast(x, to_dtype(dtype))
    )


def operand(x: Any) -> Any:
    """Lists as tensors; a tensor or number as it is."""
    return array(x) if isinstance(x, (list, tuple, np.ndarray)) else x


def pair(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands, of which a number takes the dtype of the other; two numbers become tensors."""
    numbers = not any(isinstance(x, (Tensor, list, tuple, np.ndarray)) for x in (x1, x2))
    return (array(x1), array(x2)) if numbers else (operand(x1), operand(x2))


def tensor(x: Any) -> Tensor:
    """Whatever it is as a tensor."""
    return x if isinstance(x, Tensor) else array(x)


def vector(x: Any) -> Tensor:
    """All elements of whatever it is, in one dimension."""
    return tensor(x).ravel()


def along(x: Any, axis: Any) -> tuple[Tensor, int]:
    """(x, axis), or for None (x flattened, 0)."""
    return (vector(x), 0) if axis is None else (tensor(x), axis)


def optional(*xs: Any) -> list[Tensor | None]:
    """Tensors of what is not None."""
    return [None if x is None else tensor(x) for x in xs]


def joined(*parts: Any) -> Tensor:
    """Flatten the parts that are not None, and join them."""
    return ops.concat([vector(p) for p in parts if p is not None], 0)


def floating(x: Any) -> Tensor:
    """Whatever it is as a floating tensor: float32 for integers."""
    return arguments.floating(tensor(x))


def shape_of(shape: Any) -> list[int]:
    """A shape given as an integer, a tuple or a tensor."""
    return arguments.integers(shape, "numpy", "shape")


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """A tensor of one number or of an array that broadcasts; the dtype is fill_value's by default."""
    return typed(  # type: ignore[no-any-return]
        _ops.broadcast_to(array(fill_value), arguments.addressable(shape_of(shape), "full")), dtype
    )


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
