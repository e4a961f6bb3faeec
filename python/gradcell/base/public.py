"""A module's public names: all that it defines, without an underscore in front. Type checkers take them
for that where they see no `__all__`; at run time it is made of them.
"""

from __future__ import annotations

from importlib import import_module
from inspect import unwrap
from types import FunctionType, ModuleType
from typing import Any

from gradcell._core import Spelling
from gradcell.base.signposts import missing
from gradcell.base.vocabulary import complete, completed


class _Docstring:
    """The docstring of a class, to which the vocabulary adds what it leaves out: when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, instance: object, owner: type) -> str:
        return completed(self.text, owner)


def explain(space: dict[str, Any]) -> None:
    """Has help() of a module's public classes and functions speak of the arguments that their docstrings
    leave out."""
    for name in space["__all__"]:
        value = space.get(name)
        if not str(getattr(value, "__module__", "")).startswith(space["__name__"]):
            continue
        if isinstance(value, (FunctionType, Spelling)) and isinstance(unwrap(value), FunctionType):
            complete(value)
        elif isinstance(value, type) and isinstance(text := vars(value).get("__doc__"), str):
            value.__doc__ = _Docstring(text)  # type: ignore[assignment]


def publish(space: dict[str, Any], *others: str) -> None:
    """Makes the `__all__` of a module, whose globals these are: the classes and functions that it defines,
    others, and a package's the public names of the modules that it has imported, but for modules that are
    named as others. dir of the module lists them, and a package answers other names by what is like them.
    """
    place = space["__name__"]
    found = {*others}
    for name, value in space.items():
        if isinstance(value, ModuleType):
            if value.__name__ == f"{place}.{name}" and name not in others:
                found.update(getattr(value, "__all__", ()))
        elif name[0] != "_" and getattr(value, "__module__", "") == place:
            found.add(name)
    names = space["__all__"] = sorted(found)
    space["__dir__"] = names.copy
    explain(space)
    if "__path__" in space and "__getattr__" not in space:
        later(space)


def later(space: dict[str, Any], modules: str = "", places: dict[str, str] | None = None) -> None:
    """Makes the `__getattr__` of a module, whose globals these are: modules in it, and names {a name: its
    module}, are imported when they are first asked for, any other is answered by what is like it. A type
    checker does not see it, so that a misspelt name is an error to one."""
    place, inside, names = space["__name__"], modules.split(), places or {}

    def found(name: str) -> object:
        if name in inside:
            return import_module(f"{place}.{name}")
        if name in names:
            return getattr(import_module(names[name]), name)
        raise missing(place, name, [*space["__all__"], *(n for n in names if n[0] != "_")])

    space["__getattr__"] = found
