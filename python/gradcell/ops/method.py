"""Ops as methods of Tensor: said where the op is defined, attached when all of them are there.

    @method(dim="axis", keepdim="keep_dims")
    def mean(x, axis=None, keep_dims=False): ...

MindSpore's methods come in two spellings, (axis, keepdims) and (dim, keepdim); both are taken. Ops of
modules that are imported later are in `_index.py`, which is written from their decorators.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.errors import bad_type, bad_value

F = TypeVar("F", bound=Callable[..., Any])


class Method(NamedTuple):
    """What a method does, and what its keywords may be called: {another spelling: the function's}."""

    function: Callable[..., Any]
    spellings: dict[str, str]


#: The methods by their names.
METHODS: dict[str, Method] = {}


def method(*names: str, **spellings: str) -> Callable[[F], F]:
    """A decorator: the function, of a tensor, is a method of Tensor too; under its own name or these."""

    def record(function: F) -> F:
        for name in names or (function.__name__,):
            METHODS[name] = Method(function, spellings)
        return function

    return record


def in_place(*names: str, **spellings: str) -> Callable[[F], F]:
    """A decorator: with _ behind its name, or under these names, the tensor takes the result over."""

    def record(function: F) -> F:
        for name in names or (f"{function.__name__}_",):
            METHODS[name] = Method(_in_place(name, function), spellings)
        return function

    return record


def _in_place(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The op with its result taken over by the tensor itself, in the tensor's dtype."""

    @functools.wraps(function)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        new = function(self, *args, **kwargs)
        if tuple(new.shape) != tuple(self.shape):
            bad_value(
                f"{name}: the result's shape {list(new.shape)} is not that of the tensor, {list(self.shape)}"
            )
        return self.assign_value(new)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{name[:-1]} in place. Returns the tensor."
    return method


def _spelled(function: Callable[..., Any], spellings: dict[str, str]) -> Callable[..., Any]:
    """The function as a method whose keywords may have other names."""

    @functools.wraps(function)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            renamed = {spellings.get(k, k): v for k, v in kwargs.items()}
            if len(renamed) < len(kwargs):
                bad_type(
                    f"{function.__name__}: an argument is given under two names: {', '.join(kwargs)}"
                )
            kwargs = renamed
        return function(self, *args, **kwargs)

    method._spellings = spellings  # type: ignore[attr-defined]  # for type checkers' stubs
    return method


def imported_later(name: str, ops: Any) -> Callable[..., Any]:
    """An op as a method, imported when it is first called."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(ops, name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"ops.{name} of this tensor."
    method._callee = lambda: getattr(ops, name)  # type: ignore[attr-defined]
    return method


def _explained(name: str, method: Callable[..., Any], ops: Any) -> Callable[..., Any]:
    """The method, whose TypeError for arguments that it does not take says so and where.

    The core's methods have the signatures of the op's functions.
    """
    known = METHODS.get(name)
    spellings = known.spellings if known else {}
    function: Any = known.function if known else method
    if not isinstance(function, FunctionType):
        function = getattr(ops, name)

    @functools.wraps(method if isinstance(method, FunctionType) else function)
    def explained(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except TypeError:
            renamed = {spellings.get(k, k): v for k, v in kwargs.items()}
            callee = getattr(method, "_callee", lambda: function)()
            arguments.explain_misfit(f"Tensor.{name}", callee, (self, *args), renamed)
            raise

    return explained


def later(entry: str) -> tuple[str, dict[str, str]]:
    """The name and the spellings of a method in `_index.py`: 'median|dim=axis|keepdim=keepdims'."""
    name, *spellings = entry.split("|")
    return name, dict(s.split("=") for s in spellings)


def attach(ops: Any) -> None:
    """Gives Tensor the methods that have been recorded."""
    for name, (function, spellings) in METHODS.items():
        setattr(Tensor, name, _spelled(function, spellings) if spellings else function)
    for name, method in list(vars(Tensor).items()):
        if not name.startswith("_") and callable(method) and not isinstance(method, staticmethod):
            setattr(Tensor, name, _explained(name, method, ops))
