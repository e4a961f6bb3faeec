"""Parameters as a cell reads them that computes in another dtype (to_float): cast, and still known.

What construct reads, self.w, self.weights[1] or self.named["w"], is a tensor of that dtype; where a Parameter is
needed, to assign to or to differentiate by, the tensor stands for the Parameter that it was read from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from gradcell import _core
from gradcell._core import DType, Tensor
from gradcell.parameter import Parameter


def read(value: Any, dtype: DType) -> Any:
    """A Parameter, or a tuple, list or dict with some in it, as construct reads it."""
    if isinstance(value, Parameter):
        if value.dtype == dtype or value.dtype.is_complex or not value.dtype.is_floating:
            return value
        cast = _core.ops.cast(value, dtype)
        cast.__dict__["_parameter"] = value
        return cast
    if isinstance(value, _READ):
        return value
    kind = next((k for k in (tuple, list, dict) if isinstance(value, k)), None)
    return value if kind is None or not holds_parameters(value) else _KINDS[kind](value, dtype)


def holds_parameters(value: Any) -> bool:
    """Whether there is one in a tuple, list or dict, or in one inside of it."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return False
    return any(isinstance(v, Parameter) or holds_parameters(v) for v in value)


class _ReadTuple(tuple):  # type: ignore[type-arg]
    """A tuple whose members are read."""

    def __new__(cls, values: Any, dtype: DType) -> Any:
        made = super().__new__(cls, values)
        made._dtype = dtype  # type: ignore[attr-defined]
        return made

    def __getitem__(self, place: Any) -> Any:
        return read(super().__getitem__(place), self._dtype)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        return (read(v, self._dtype) for v in super().__iter__())  # type: ignore[attr-defined]


class _ReadList(list):  # type: ignore[type-arg]
    """The same of a list."""

    def __init__(self, values: Any, dtype: DType) -> None:
        super().__init__(values)
        self._dtype = dtype

    def __getitem__(self, place: Any) -> Any:
        return read(super().__getitem__(place), self._dtype)

    def __iter__(self) -> Iterator[Any]:
        return (read(v, self._dtype) for v in super().__iter__())


class _ReadDict(dict):  # type: ignore[type-arg]
    """The same of a dict."""

    def __init__(self, values: Any, dtype: DType) -> None:
        super().__init__(values)
        self._dtype = dtype

    def __getitem__(self, key: Any) -> Any:
        return read(super().__getitem__(key), self._dtype)

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default

    def values(self) -> Any:
        return [self[key] for key in self]

    def items(self) -> Any:
        return [(key, self[key]) for key in self]


_KINDS: dict[type, Any] = {tuple: _ReadTuple, list: _ReadList, dict: _ReadDict}
_READ = (_ReadTuple, _ReadList, _ReadDict)


@contextlib.contextmanager
def reads(own: dict[str, Any], dtype: DType) -> Iterator[None]:
    """Has a cell's tuples, lists and dicts of Parameters, in its __dict__, give them as read."""
    held = {name: v for name, v in own.items() if name[0] != "_" and holds_parameters(v)}
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
