"""Checks of constructor arguments, with MindSpore's error types and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell._location import where


def check_int(owner: str, name: str, value: Any, above: int = 0) -> int:
    """An int > above. Raises TypeError, ValueError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(
            f"For '{owner}', the '{name}' must be int, but got '{type(value).__name__}'{where()}"
        )
    if value <= above:
        raise ValueError(
            f"For '{owner}', the '{name}' must be int and must > {above}, but got '{value}' with "
            f"type 'int'.{where()}"
        )
    return value


def check_bool(owner: str, name: str, value: Any) -> bool:
    """A bool. Raises TypeError."""
    if not isinstance(value, bool):
        raise TypeError(
            f"For '{owner}', the '{name}' must be bool, but got '{type(value).__name__}'{where()}"
        )
    return value


def check_float(owner: str, name: str, value: Any) -> float:
    """A number. Raises TypeError."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(
            f"For '{owner}', the '{name}' must be float, but got '{type(value).__name__}'{where()}"
        )
    return value


def check_choice(owner: str, name: str, value: Any, choices: Sequence[Any]) -> Any:
    """One of some values. Raises ValueError."""
    if not any(value is c or (type(value) is type(c) and value == c) for c in choices):
        raise ValueError(
            f"For '{owner}', the '{name}' must be in {list(choices)}, but got {value}.{where()}"
        )
    return value


def check_tensor(owner: str, name: str, value: Any) -> Tensor:
    """A Tensor. Raises TypeError."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"For '{owner}', the '{name}' must be Tensor, but got '{type(value).__name__}'{where()}"
        )
    return value


def check_dtype(owner: str, value: Any) -> _core.DType:
    """A floating dtype. Raises TypeError."""
    if not isinstance(value, _core.DType) or not value.is_floating:
        raise TypeError(
            f"For '{owner}', the 'dtype' must be a floating dtype, got {value!r}{where()}"
        )
    return value


def check_rank(owner: str, x: Any, ranks: Sequence[int]) -> Tensor:
    """A Tensor with one of some numbers of dimensions. Raises TypeError, ValueError."""
    check_tensor(owner, "input", x)
    if x.ndim not in ranks:
        raise ValueError(
            f"For '{owner}', the input must have {' or '.join(map(str, ranks))} dimensions, but "
            f"got shape {list(x.shape)}.{where()}"
        )
    return x  # type: ignore[no-any-return]


def same_dtype(owner: str, x: Tensor, weight: Tensor) -> None:
    """Raises TypeError where x and the weight differ in dtype: matrices are not promoted."""
    if x.dtype != weight.dtype:
        raise TypeError(
            f"For '{owner}', the type of 'x2' should be same as 'x1', but got 'x1' with type "
            f"Tensor[{x.dtype}] and 'x2' with type Tensor[{weight.dtype}].{where()}"
        )
