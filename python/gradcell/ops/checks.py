"""What the ops written in Python share: argument checks, and running as one plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gradcell import _core
from gradcell._convert import to_dtype
from gradcell._core import DType, Tensor
from gradcell._location import where
from gradcell.transform import run_traced

P = ParamSpec("P")
R = TypeVar("R")


def fused(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others: called outside a transform, it runs as one plan."""

    @functools.wraps(function)
    def op(*args: P.args, **kwargs: P.kwargs) -> R:
        if _core.in_trace():
            return function(*args, **kwargs)
        return run_traced(function, args, kwargs)  # type: ignore[no-any-return]

    return op


def tensor(value: Any, op: str, name: str = "input") -> Tensor:
    """The value. Raises TypeError if it is no tensor."""
    if isinstance(value, Tensor):
        return value
    raise TypeError(f"{op}: {name} must be a Tensor, got {type(value).__name__}{where()}")


def operand(value: Any, op: str, name: str = "input") -> Tensor:
    """The value, a number made into a tensor. Raises TypeError for anything else."""
    if isinstance(value, (bool, int, float, np.generic)):
        return Tensor(value)
    return tensor(value, op, name)


def tensors(values: Any, op: str, name: str = "tensors") -> list[Tensor]:
    """The members of a list or tuple of tensors. Raises TypeError for anything else."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(
            f"{op}: {name} must be a tuple or list of Tensors, got {type(values).__name__}{where()}"
        )
    return [tensor(v, op, f"{name}[{i}]") for i, v in enumerate(values)]


def boolean(value: Any, op: str, name: str) -> bool:
    """The flag. Raises TypeError if it is no bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"For '{op}', the '{name}' should be bool, but got {value!r}{where()}")
    return bool(value)


def integer(value: Any, op: str, name: str) -> int:
    """The integer; an integer tensor of one element is asked for its value. Raises TypeError."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{op}: {name} must be an integer, got {value!r}{where()}")
    return int(value.__index__())


def integers(value: Any, op: str, name: str) -> list[int]:
    """The integers of a list, tuple or integer tensor, or of one integer."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if not isinstance(value, Iterable) or isinstance(value, str):
        return [integer(value, op, name)]
    return [integer(v, op, name) for v in value]


def axis_of(axis: Any, rank: int, op: str, name: str = "axis") -> int:
    """The axis counted from the front. Raises TypeError or, out of range, ValueError."""
    a = integer(axis, op, name)
    limit = max(rank, 1)
    if not -limit <= a < limit:
        raise ValueError(
            f"{op}: {name} {a} is out of range for a tensor of {rank} dimensions{where()}"
        )
    return a % limit


def axes_of(axis: Any, rank: int, op: str, name: str = "axis") -> list[int]:
    """The axes counted from the front, in the given order; None and () stand for all of them."""
    if axis is None:
        return list(range(rank))
    axes = [axis_of(a, rank, op, name) for a in integers(axis, op, name)]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{op}: {name} {axis} names a dimension twice{where()}")
    return axes if axes else list(range(rank))


def dtype_or(dtype: Any, default: DType) -> DType:
    """The dtype, or the default for None."""
    return default if dtype is None else to_dtype(dtype)


def floating(x: Tensor) -> Tensor:
    """The tensor, integers and bools cast to float32."""
    return x if x.dtype.is_floating else _core.ops.cast(x, _core.float32)


def one_of(value: Any, allowed: Sequence[str], op: str, name: str) -> None:
    """Raises ValueError unless the value is one of the allowed words."""
    if value not in allowed:
        raise ValueError(
            f"For '{op}', the '{name}' must be in {list(allowed)}, but got {value}.{where()}"
        )
