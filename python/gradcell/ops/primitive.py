"""Primitive: an op as an object, ops.Sin()(x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Primitive:
    """An op as an object: constructed with its attributes, called with its inputs."""

    def __init__(self, name: str | None = None, **attributes: Any) -> None:
        self.name = name or type(self).__name__
        self.attributes = attributes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{self.name} has no function")

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v}" for k, v in self.attributes.items())
        return f"Prim[{self.name}]" + (f"<{inside}>" if inside else "")

    __str__ = __repr__


def primitive_of(name: str, function: Callable[..., Any]) -> type[Primitive]:
    """The class of an op without attributes, over its function."""

    def call(self: Primitive, *args: Any) -> Any:
        return function(*args)

    members = {"__call__": call, "__doc__": function.__doc__, "__module__": "gradcell.ops"}
    return type(name, (Primitive,), members)
