"""Functions of trees of tensors and of several types, HyperMap and MultitypeFuncGraph, and what graph mode
asks for: prints, names of types, an order."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value
from gradcell.compilation import prints
from gradcell.ops.decorators import one_plan
from gradcell.tensors.parameter import Parameter

__all__ = [
    "HyperMap", "Map", "MultitypeFuncGraph", "addn", "depend", "is_tensor", "partial", "print_", "typeof",
]  # fmt: skip

T = TypeVar("T")


def depend(value: T, expr: Any) -> T:
    """value. The order of updates is always the program's, so nothing needs to wait for expr.

    expr has no effect.
    """
    return value


def print_(*input_x: Any) -> Any:
    """Prints its arguments, tensors in their long form, and returns the first.

    In a compiled function it prints at every call.
    """
    for x in input_x:
        prints.emit(x, text=repr if isinstance(x, Tensor) else str)
    return input_x[0] if input_x else None


def is_tensor(obj: Any) -> bool:
    """Return whether an object is a Tensor.

    obj: any object.
    """
    return isinstance(obj, Tensor)


def typeof(x: Any) -> str:
    """The type of a value as text: 'Tensor[Float32]' for tensors.

    x: any value.
    """
    return f"Tensor[{x.dtype}]" if isinstance(x, Tensor) else type(x).__name__


@one_plan
def addn(x: Any) -> Tensor:
    """The sum of several tensors, given as a tuple or list.

    x: a tuple or list of tensors that broadcast. Raises ValueError for none.
    """
    xs = arguments.tensors(x, "AddN", "x")
    if not xs:
        bad_value("AddN: needs at least one tensor")
    return functools.reduce(_ops.add, xs[1:], _core.copy(xs[0]))


def partial(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """fn with its first arguments given.

    fn: a function. args, kwargs: its first arguments. Raises TypeError unless fn can be called.
    """
    return functools.partial(arguments.function(fn, "partial"), *args, **kwargs)


# Trees --------------------------------------------------------------------------------------------


class _Mapping:
    """Base class of Map and HyperMap: the function is given now or at the call."""

    _name = "Map"

    def __init__(self, ops: Callable[..., Any] | None = None, reverse: bool = False) -> None:
        if ops is not None:
            arguments.function(ops, self._name, "ops")
        arguments.boolean(reverse, self._name, "reverse")
        self.ops: Callable[..., Any] | None = ops
        self.reverse: bool = reverse

    def __call__(self, *args: Any) -> Any:
        if self.ops is None:
            fn, args = arguments.function(args[0] if args else None, self._name), args[1:]
        else:
            fn = self.ops
        if not args:
            bad_type(f"{self._name}: needs at least one sequence")
        return _run_mapping(self._apply, fn, args)

    def _zip(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        lengths = {len(a) for a in args if isinstance(a, (tuple, list))}
        if len(lengths) != 1 or not all(isinstance(a, (tuple, list)) for a in args):
            bad_value(
                f"{self._name}: the arguments must be tuples or lists of one length, got "
                f"{[len(a) if isinstance(a, (tuple, list)) else type(a).__name__ for a in args]}"
            )
        rows = list(zip(*args, strict=True))
        return rows[::-1] if self.reverse else rows

    def _collect(self, items: list[Any]) -> tuple[Any, ...]:
        return tuple(items[::-1] if self.reverse else items)

    def _apply(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return self._collect([fn(*row) for row in self._zip(args)])


@one_plan
def _run_mapping(apply: Callable[..., Any], fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return apply(fn, args)


class Map(_Mapping):
    """Applies a function to the members of tuples or lists, one of each at a time.

    Map(fn)(xs, ys) or Map()(fn, xs, ys) gives (fn(xs[0], ys[0]), ...); reverse: from the last to
    the first. The result is a tuple, also of lists. ops: the function, or None. Raises ValueError
    for different lengths.
    """


class HyperMap(_Mapping):
    """Applies a function to the leaves of nested tuples and lists of one structure.

    HyperMap(fn)(xs, ys) or HyperMap()(fn, xs, ys); reverse: from the last to the first. The result
    is of tuples, also where the arguments are lists. ops: the function, or None. Raises ValueError
    for different lengths.
    """

    _name = "HyperMap"

    def _apply(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if not any(isinstance(a, (tuple, list)) for a in args):
            return fn(*args)
        return self._collect([self._apply(fn, row) for row in self._zip(args)])


def _type_names(value: Any) -> tuple[str, ...]:
    """The names under which a value's type can be registered, the most special first."""
    if isinstance(value, Parameter):
        return ("Parameter", "Ref", "Tensor")
    if isinstance(value, Tensor):
        return ("Tensor",)
    if isinstance(value, bool):
        return ("Bool", "Number")
    if isinstance(value, np.generic):
        return (
            value.dtype.name.capitalize(),
            value.dtype.name.rstrip("0123456789").capitalize(),
            "Number",
        )
    if isinstance(value, int):
        return ("Int", "Int64", "Number")
    if isinstance(value, float):
        return ("Float", "Float64", "Float32", "Number")
    if isinstance(value, str):
        return ("String",)
    if isinstance(value, tuple):
        return ("Tuple",)
    if isinstance(value, list):
        return ("List",)
    if isinstance(value, dict):
        return ("Dictionary", "Dict")
    if value is None:
        return ("None", "NoneType")
    if isinstance(value, _core.DType):
        return ("TypeType", "Type")
    return ("Function", "Func") if callable(value) else (type(value).__name__,)


class MultitypeFuncGraph:
    """A function with one body for each combination of argument types.

    name: for messages. Bodies are registered by the names of the types: Tensor, Number, Int, Int64, Float,
    Float32, Float64, Bool, String, Tuple, List, Dictionary, None, Function, Parameter:

        @add.register("Tensor", "Number")
        def _add(x, y): ...

    A call takes the body whose types fit most specially, argument by argument. read_value has no
    effect. Raises TypeError if none does.
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        self.name = name
        self.entries: dict[tuple[str, ...], Callable[..., Any]] = {}

    def register(self, *type_names: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Registers the function that it decorates for arguments of these types."""
        key = tuple(n if isinstance(n, str) else getattr(n, "__name__", str(n)) for n in type_names)

        def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.entries[key] = fn
            return fn

        return decorate

    def _score(
        self, key: tuple[str, ...], names: Sequence[tuple[str, ...]]
    ) -> tuple[int, ...] | None:
        """Return a score of the fit of registered types, argument by argument (lower is more
        specific), or None."""
        if len(key) != len(names):
            return None
        places = []
        for wanted, has in zip(key, names, strict=True):
            if wanted == "Any":
                places.append(len(has))
            elif wanted in has:
                places.append(has.index(wanted))
            else:
                return None
        return tuple(places)

    def __call__(self, *args: Any) -> Any:
        names = [_type_names(a) for a in args]
        scored = [(s, key) for key in self.entries if (s := self._score(key, names)) is not None]
        if not scored:
            known = ", ".join(f"({', '.join(k)})" for k in self.entries)
            bad_type(
                f"The '{self.name}' operation does not support the type [{', '.join(n[0] for n in names)}]; "
                f"it is defined for {known or 'none'}"
            )
        return self.entries[min(scored)[1]](*args)

    def __repr__(self) -> str:
        return f"MultitypeFuncGraph<{self.name}>"
