"""Parameters that are cast when a cell under to_float reads them, and still known as Parameters.

What construct reads, self.w, self.weights[1] or self.named["w"], is a tensor of that dtype; where a
Parameter is needed, to assign to or to differentiate by, it stands for the one that it was read from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from gradcell._core import DType, ops as _ops
from gradcell.tensors.parameter import Parameter


def read(value: Any, dtype: DType) -> Any:
    """A Parameter, or a tuple, list or dict with some in it, as construct reads it."""
    if isinstance(value, Parameter):
        if value.dtype == dtype or value.dtype.is_complex or not value.dtype.is_floating:
            return value
        cast = _ops.cast(value, dtype)
        cast.__dict__["_parameter"] = value
        return cast
    if isinstance(value, _Read) or not _holds_parameters(value):
        return value
    kind = next(k for k in _KINDS if isinstance(value, k))
    made = _KINDS[kind](value)
    made.read_in = dtype
    return made


def _holds_parameters(value: Any) -> bool:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return False
    return any(isinstance(v, Parameter) or _holds_parameters(v) for v in value)


class _Read:
    """A container whose members are read when they are taken out."""

    read_in: DType

    def __getitem__(self, place: Any) -> Any:
        return read(super().__getitem__(place), self.read_in)  # type: ignore[misc]

    def __iter__(self) -> Iterator[Any]:
        return (read(v, self.read_in) for v in super().__iter__())  # type: ignore[misc]

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default

    def values(self) -> Any:
        return [self[key] for key in self]

    def items(self) -> Any:
        return [(key, self[key]) for key in self]


_KINDS: dict[type, Any] = {
    kind: type(f"Read{kind}", (_Read, kind), {}) for kind in (tuple, list, dict)
}


@contextlib.contextmanager
def reads(own: dict[str, Any], dtype: DType) -> Iterator[None]:
    """Has a cell's tuples, lists and dicts of Parameters, in its __dict__, give them as read."""
    held = {name: v for name, v in own.items() if name[0] != "_" and _holds_parameters(v)}
    given = {name: read(v, dtype) for name, v in held.items()}
    own.update(given)
    try:
        yield
    finally:
        for name, value in held.items():
            if own.get(name) is given[name]:
                own[name] = value
                if isinstance(value, list):  # construct may have changed it
                    value[:] = list.__iter__(given[name])
                elif isinstance(value, dict):
                    value.update(dict.items(given[name]))
