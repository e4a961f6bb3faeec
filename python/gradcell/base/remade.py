"""Objects that transforms return, which are pickled and copied as what they were made of: the transform, the
function and the options. Where one is loaded, it is made anew.

A closure cannot be pickled, so a transform gives its closure to `Made`, a callable that adds no frame.
"""

from __future__ import annotations

import copy
import copyreg
import functools
import operator
import sys
import types
from collections.abc import Callable
from pickle import PicklingError
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def name_of(value: Any) -> str | None:
    """Return the name by which a value is found in its module; None if it is not."""
    name = getattr(value, "__qualname__", None)
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    try:
        found = operator.attrgetter(name or "")(module)
    except AttributeError:
        return None
    return name if found is value else None


def _sent(value: Any) -> Any:
    """A function that is not found by its name goes in a cell: picklers that take functions by value, as
    joblib's, know cells, and for others there is `_refuse`."""
    by_value = isinstance(value, types.FunctionType) and name_of(value) is None
    return types.CellType(value) if by_value else value


def _received(value: Any) -> Any:
    return value.cell_contents if isinstance(value, types.CellType) else value


def _refuse(cell: types.CellType) -> Any:
    """Raises what pickle says of a cell; of a function's, why it cannot be pickled."""
    function = cell.cell_contents
    if not isinstance(function, types.FunctionType):
        raise TypeError("cannot pickle 'cell' object")
    code = function.__code__
    raise PicklingError(
        f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno}) cannot be pickled: it is not "
        f"found by that name in {function.__module__}. Define it with def at the top of a module, or use "
        "cloudpickle"
    )


copyreg.pickle(types.CellType, _refuse)


def _remade(make: Callable[..., Any], part: int | None, kwargs: dict[str, Any], *args: Any) -> Any:
    given = {name: _received(v) for name, v in kwargs.items()}
    made = make(*map(_received, args), **given)
    return made if part is None else made[part]


class Remade:
    """Base class of such objects. `_made_of` is (what makes it, its arguments, those by name, which part of
    the result it is or None)."""

    _made_of: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], int | None]

    def __reduce__(self) -> str | tuple[Any, ...]:
        name = name_of(self)
        if name is not None:
            return name
        make, args, kwargs, part = self._made_of
        return _remade, (make, part, {k: _sent(v) for k, v in kwargs.items()}, *map(_sent, args))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Itself, as a function's copy is, unless it is of objects that are copied."""
        make, args, kwargs, part = self._made_of
        own = copy.deepcopy(args, memo), {k: copy.deepcopy(v, memo) for k, v in kwargs.items()}
        if own[0] is args and all(own[1][k] is v for k, v in kwargs.items()):
            return self
        return _remade(make, part, own[1], *own[0])


class Made(Remade, functools.partial):
    """A function that a transform has made."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<function {getattr(self, '__qualname__', self.func.__qualname__)}>"


def transform(part: int | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of a transform, which returns a Remade, or a tuple whose `part` is one: that remembers what
    it was made of."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def make(*args: P.args, **kwargs: P.kwargs) -> R:
            result: Any = function(*args, **kwargs)
            made = result if part is None else result[part]
            made._made_of = (make, args, kwargs, part)
            return result  # type: ignore[no-any-return]

        return make

    return decorate
