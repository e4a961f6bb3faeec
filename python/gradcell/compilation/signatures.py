"""Signatures of arguments: the cache key of all that matters to a compiled function but the elements of
tensors, by value.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import Remade, tree

__all__ = ["Unhashable", "signature"]


class Unhashable(Exception):
    """Raised for an argument that cannot be a cache key."""


def signature(value: Any, tensors: list[Tensor], objects: list[Any]) -> Any:
    """Return the cache key of a value: all that matters but the elements of tensors. Lists the
    tensors, and the objects that the signature names by id."""
    if isinstance(value, Tensor):
        if value._is_variable:
            return ("variable", value._variable_id())
        if value.__dict__.get("_gradient_hooks"):
            raise Unhashable  # the hooks are this tensor's
        tensors.append(value)
        return (value.dtype.name, value.shape)
    if isinstance(value, (tuple, list)):
        kind = _kind(value, objects)
        return (kind, *(signature(v, tensors, objects) for v in value))
    if isinstance(value, dict):
        kind = _kind(value, objects)
        return (
            kind,
            *((type(k), k, signature(v, tensors, objects)) for k, v in value.items()),
        )
    if value is None or isinstance(value, (bool, int, float, str, complex, np.generic)):
        return (type(value).__name__, repr(value))
    if isinstance(value, np.ndarray):
        raise Unhashable
    given_by = ("__array__", "__cuda_array_interface__")
    if not isinstance(value, type) and any(hasattr(value, name) for name in given_by):
        raise Unhashable
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, frozenset(signature(v, tensors, objects) for v in value))
    if tree.is_container(value) and tree.leaves(value):
        kind = _kind(value, objects)
        return (kind, *(signature(v, tensors, objects) for v in tree.parts(value) or ()))
    objects.append(value)
    return ("object", id(value), _state(value, objects, set()))


def _kind(value: Any, objects: list[Any]) -> Any:
    """Return the part of the cache key for a container's type; one of a class of its own may have
    attributes, and what it is made with (a defaultdict's function). Those that it also holds are
    only named: tensors there may be others."""
    kind = type(value)
    if kind in (tuple, list, dict):
        return kind
    objects.append(kind)
    places = {id(part): i for i, part in enumerate(tree.parts(value) or ())}
    made = () if isinstance(value, tuple) else _reduced(value)[1:2]
    held = [(n, v) for n, v in _attributes(value).items() if not tree.is_computed(value, n)]
    about = [*held, *((None, v) for given in made for v in given)]
    named = tuple((n, ("part", places[id(v)]) if id(v) in places else v) for n, v in about)
    return (id(kind), _state(named, objects, set()))


def _state(value: Any, objects: list[Any], seen: set[int]) -> Any:
    """Return the contents of an object by value: attributes, elements, numbers, what a function
    closes over. Tensors are those that they are (what is written to them is seen), and so are
    modules, and cells, which count their changes themselves. Raises Unhashable for an iterator
    whose place nothing tells."""
    if value is None or isinstance(value, (bool, int, float, str, complex, bytes, np.generic)):
        return (type(value).__name__, repr(value))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return (value.dtype.str, value.shape, hash(value.tobytes()))
    if isinstance(value, Tensor) and value._is_variable:
        return ("variable", value._variable_id())
    objects.append(value)
    made = isinstance(value, Remade)  # of a function, which may have a state
    if id(value) in seen or isinstance(value, Tensor) or (_is_opaque(value) and not made):
        return id(value)
    seen.add(id(value))

    def of(*parts: Any) -> tuple[Any, ...]:
        return tuple(_state(part, objects, seen) for part in parts)

    if made:
        return (id(value), *of(*value._made_of[1:3]))
    if isinstance(value, types.MethodType):
        return ("method", *of(value.__func__, value.__self__))
    attributes = _attributes(value)  # (asking makes the dict that some reduce to)
    held: Any = ()
    if isinstance(value, (tuple, list)):
        held = (type(value).__name__, *of(*value))
    elif isinstance(value, (set, frozenset)):
        held = (type(value).__name__, frozenset(of(*value)))
    elif isinstance(value, dict):
        held = ("dict", *((id(k), *of(k, v)) for k, v in value.items()))
    elif isinstance(value, types.FunctionType):
        held = of(value.__defaults__, value.__kwdefaults__, *_closed_over(value))
    elif isinstance(value, types.BuiltinFunctionType):
        held = of(value.__self__)
    elif not isinstance(value, type):
        held = (*of(*_reduced(value)), *of(type(value)))
    name = () if isinstance(value, (tuple, list, dict, set, frozenset)) else (id(value),)
    return (*name, held, *((n, *of(v)) for n, v in attributes.items()))


def _attributes(value: Any) -> dict[str, Any]:
    """An object's own attributes; of a class its data."""
    if isinstance(value, type):
        own = [vars(c) for c in reversed(value.__mro__) if not _is_opaque(c)]
        return {
            n: v
            for names in own
            for n, v in names.items()
            if n[:2] != "__" and not callable(v) and not hasattr(v, "__get__")
        }
    slots = [n for c in type(value).__mro__ for n in _slots_of(c)]
    held = {n: getattr(value, n) for n in slots if hasattr(value, n)}
    return held | getattr(value, "__dict__", {})


def _slots_of(cls: type) -> list[str]:
    slots = cls.__dict__.get("__slots__", ())
    return [n for n in ([slots] if isinstance(slots, str) else slots) if n[:2] != "__"]


def _closed_over(function: types.FunctionType) -> list[Any]:
    """Return the values that a function closes over, without empty cells."""
    return [c.cell_contents for c in function.__closure__ or () if c != types.CellType()]


def _reduced(value: Any) -> tuple[Any, ...]:
    """Return the state by which pickle would rebuild an object: a deque's elements, a generator's
    place."""
    kind: Any = type(value)
    if kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__:
        if isinstance(value, Iterator) and not _attributes(value):
            raise Unhashable
        return ()
    try:
        found = value.__reduce_ex__(2)
    except Exception:  # not to be kept: a file, a lock
        if isinstance(value, Iterator):
            raise Unhashable from None
        return ()
    if isinstance(found, str):
        return (found,)
    function, given, state, items, pairs = (*found, None, None, None)[:5]
    return (function, given, state, list(items or ()), list(pairs or ()))


def _is_opaque(value: Any) -> bool:
    kind = value if isinstance(value, type) else type(value)
    # Not always a string: the class of Cython's functions has a descriptor there on Python 3.10.
    if str(kind.__module__).partition(".")[0] == "gradcell":
        return True
    if isinstance(value, type):
        return not kind.__flags__ & _HEAP_TYPE
    own = getattr(kind, "_counts_its_changes", False)
    return own or isinstance(value, (types.ModuleType, enum.Enum))


#: CPython's flag of classes that a class statement makes, whose attributes can be set.
_HEAP_TYPE = 1 << 9
