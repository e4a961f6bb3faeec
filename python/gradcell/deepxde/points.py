"""Values that residuals and conditions read besides their arguments. NumPy arrays become inputs of
the plan if DeepXDE's classes say how they read them; the others, and globals, are part of the key
of a compiled form."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcell._core import Tensor

#: DeepXDE's conditions that read the points by nothing but these functions of them, and the problems
#: that use the points for nothing else.
CONDITIONS: dict[str, tuple[str, ...] | None] = {
    "DirichletBC": ("func",),
    "IC": ("func",),
    "NeumannBC": ("func", "boundary_normal"),
    "RobinBC": None,  # its func gets them
    "PeriodicBC": (),
    "PointSetBC": (),
}
PROBLEMS = ("PDE", "TimePDE")

_PLAIN = (int, float, str, bool, complex, type(None))


class Numbers:
    """A number for each object, the same as long as it lives on here; a new one for another."""

    def __init__(self) -> None:
        self._of: dict[Any, tuple[Any, int]] = {}
        self._count = 0

    def __call__(self, place: Any, value: Any) -> int:
        kept = self._of.get(place)
        if kept is None or kept[0] is not value:
            self._count += 1
            kept = self._of[place] = (value, self._count)
        return kept[1]


class Reading:
    """The values that the losses of a model read besides the network's inputs."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._numbers = Numbers()
        self._values: dict[tuple[int, str], tuple[Any, Any]] = {}
        self.globals: Globals = Globals(
            getattr(model.data, "pde", None), model.net, *self._conditions
        )

    @property
    def _conditions(self) -> list[Any]:
        data = self.model.data
        found = getattr(data, "bcs", None)
        if found is None:
            found = getattr(getattr(data, "pde", None), "bcs", None)
        return list(found or ())

    def _functions(self, condition: Any) -> tuple[str, ...] | None:
        """The functions by which a condition reads the points; None: in ways of its own."""
        if type(self.model.data).__name__ not in PROBLEMS or not _is_deepxdes(self.model.data):
            return None
        if not _is_deepxdes(condition):
            return None
        found = CONDITIONS.get(type(condition).__name__)
        if found and any(not hasattr(getattr(condition, f), "__wrapped__") for f in found):
            return None
        return found

    def key(self) -> tuple[Any, ...]:
        """Return the key of a compiled form: sizes, arrays that are read while it is recorded,
        globals."""
        data, conditions = self.model.data, self._conditions
        sizes = getattr(data, "num_bcs", None)
        parts: list[Any] = [tuple(map(int, sizes)) if sizes is not None else None]
        functions = [self._functions(c) for c in conditions]
        if None in functions or type(data).__name__ not in PROBLEMS or not _is_deepxdes(data):
            parts += [self._numbers(n, getattr(data, n, None)) for n in ("train_x", "test_x")]
        for i, (condition, found) in enumerate(zip(conditions, functions, strict=True)):
            if found is None:
                parts.append(self._numbers(i, getattr(condition, "batch_indices", None)))
        parts += self.globals()
        return tuple(parts)

    def arrays(self, tensors: Callable[[Any], Any]) -> tuple[Any, ...]:
        """The values at the points, as inputs of a plan."""
        data = self.model.data
        found: list[Any] = []
        for i, condition in enumerate(self._conditions):
            functions = self._functions(condition)
            if functions is None:
                continue
            end = int(sum(data.num_bcs[: i + 1]))
            begin = end - int(data.num_bcs[i])
            for name in functions:
                found.append(
                    self._value(i, name, getattr(condition, name), data.train_x, begin, end)
                )
            if getattr(condition, "batch_size", None) is not None:
                found.append(tensors(condition.batch_indices))
        return tuple(found)

    def _value(self, i: int, name: str, function: Any, x: Any, begin: int, end: int) -> Any:
        kept = self._values.get((i, name))
        if kept is None or kept[0] is not x:
            if isinstance(function, _Given):
                function = function.function
            kept = self._values[i, name] = (x, function.__wrapped__(x[begin:end]))
        return kept[1]

    @contextmanager
    def replaced(self, values: tuple[Any, ...]) -> Iterator[None]:
        """While losses are recorded: the conditions' functions give the plan's inputs."""
        given, undo = iter(values), []
        try:
            for condition in self._conditions:
                functions = self._functions(condition)
                if functions is None:
                    continue
                for name in functions:
                    undo.append((condition, name, getattr(condition, name)))
                    setattr(condition, name, _Given(next(given), undo[-1][2]))
                if getattr(condition, "batch_size", None) is not None:
                    undo.append((condition, "batch_indices", condition.batch_indices))
                    condition.batch_indices = next(given)
            yield
        finally:
            for condition, name, before in reversed(undo):
                setattr(condition, name, before)


class _Given:
    """A function of points whose value is an input of the plan."""

    def __init__(self, value: Tensor, function: Any) -> None:
        self.value, self.function = value, function
        self.__wrapped__ = function.__wrapped__

    def __call__(self, *_: Any) -> Tensor:
        return self.value


def _is_deepxdes(thing: Any) -> bool:
    return str(type(thing).__module__).split(".")[0] == "deepxde"


class Globals:
    """The numbers, texts and arrays that functions, and those that they call, read from their globals
    and closures. Their values are read at each call, their names once."""

    def __init__(self, *things: Any) -> None:
        self._places: list[tuple[Any, str]] = []  # (a namespace or a cell, the name)
        self._numbers = Numbers()
        self._seen: set[int] = set()
        for thing in things:
            for function in _functions_of(thing):
                self._read(function)

    def __call__(self) -> list[Any]:
        found: list[Any] = []
        for i, (space, name) in enumerate(self._places):
            value = space.cell_contents if not name else space.get(name)
            if isinstance(value, np.ndarray):
                value = ("array", self._numbers(i, value))
            elif isinstance(value, np.generic):
                value = value.item()
            found.append(value if isinstance(value, (*_PLAIN, tuple)) else None)
        return found

    def _read(self, function: types.FunctionType) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        code, space = function.__code__, function.__globals__
        cells: list[Any] = [c for c in function.__closure__ or () if _is_filled(c)]
        own = (function.__module__ or "").split(".")[0] not in ("deepxde", "gradcell")
        names = [n for n in _names(code) if n in space] if own else []
        places: list[tuple[Any, str]] = [*((c, "") for c in cells), *((space, n) for n in names)]
        for place, name in places:
            value = place.cell_contents if not name else place[name]
            if isinstance(value, types.FunctionType):
                self._read(value)
            elif own and isinstance(value, (*_PLAIN, np.generic, np.ndarray)):
                self._places.append((place, name))


def _names(code: types.CodeType) -> list[str]:
    """The globals that code may read, with the functions and lambdas in it."""
    inner = [n for c in code.co_consts if isinstance(c, types.CodeType) for n in _names(c)]
    return [*code.co_names, *inner]


def _functions_of(thing: Any) -> Iterator[types.FunctionType]:
    if isinstance(thing, types.MethodType):
        thing = thing.__func__
    values = [thing, *getattr(thing, "__dict__", {}).values()]
    for value in values:
        while hasattr(value, "__wrapped__"):
            value = value.__wrapped__
        if isinstance(value, types.FunctionType):
            yield value


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
