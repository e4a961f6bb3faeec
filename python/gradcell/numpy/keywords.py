"""NumPy's keywords of functions that MindSpore's ones call otherwise or do not have.

A call that has none of them goes to the function as before; of one that has, further names are turned
into the function's, and what holds for all functions alike is done here: out=, where= of elementwise
functions, and what says only how NumPy keeps its memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value
from gradcell.base.spelling import Parameters, label_of, own_names, refuse_misfit
from gradcell.numpy.conversion import typed

#: {a function: NumPy's names of its parameters=its own}. `x` is what NumPy calls `a` everywhere.
NAMES = {
    "array": "object=obj", "arange": "start_or_stop=start", "real": "val=x", "imag": "val=x",
    "clip": "a_min=xmin a_max=xmax min=xmin max=xmax", "reshape": "shape=new_shape", "rot90": "m=a",
    "tile": "A=a", "unique": "ar=x", "pad": "array=arr", "std": "correction=ddof",
    "var": "correction=ddof", "nanstd": "correction=ddof", "nanvar": "correction=ddof",
    **dict.fromkeys(("split", "array_split", "hsplit", "vsplit", "dsplit"), "ary=x"),
}  # fmt: skip

#: Keywords about memory, copies and hints: what is given changes no number.
_IDLE = {
    "subok": (True, False), "device": (None, "cpu"), "order": (None, "K", "A", "C", "F"), "like": (None,),
    "copy": (None, True, False), "kind": (None, "sort", "table"),
    "casting": ("same_kind", "safe", "unsafe"), "assume_unique": (True, False), "optimize": None,
    "overwrite_input": (True, False),
}  # fmt: skip

#: The functions that join arrays, which take the dtype of the result.
_JOINS = {"concatenate", "hstack", "stack", "vstack", "dstack", "column_stack"}


def widened(function: Any) -> Any:
    """The function, which takes NumPy's keywords too, also where it is defined; other things as they are."""
    place = getattr(function, "__module__", None) or ""
    if not place.startswith("gradcell.numpy.") or not isinstance(
        function, (_core.Spelling, FunctionType)
    ):
        return function
    if hasattr(function, "_takes"):
        return function
    own, home = Parameters(function), vars(sys.modules[place])
    name = str(function.__name__)  # type: ignore[union-attr]
    if getattr(home.get(name), "__wrapped__", None) is function and hasattr(home[name], "_takes"):
        return home[name]  # it was given under another of its names before
    others = dict(pair.split("=") for pair in NAMES.get(name, "").split())
    if "x" in own.names and "a" not in own.names:
        others.setdefault("a", "x")
    beyond = {"out", *_IDLE}
    if isinstance(getattr(np, name, None), np.ufunc):
        beyond |= {"where", "dtype"}
    elif name in _JOINS:
        beyond |= {"dtype"}
    beyond -= {*own.names}
    inner = getattr(function, "_planned", None)

    def planned(count: int, names: tuple[str, ...]) -> tuple[Any, ...]:
        more = beyond & {*names}
        if more:
            said = tuple(names)
            function_and_rest = ((call,), *range(count + len(said)))
            return _beyond, function_and_rest, count + 1, said, (), ()
        mine = own_names(label_of(function), others, names)
        if inner is not None:
            return inner(count, mine)  # type: ignore[no-any-return]
        refuse_misfit(label_of(function), function, count, mine)
        return function, tuple(range(count + len(mine))), count, mine, (), ()

    call: Any = _core.Spelling(planned)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(call, attribute, getattr(function, attribute))
    call.__dict__.update(function.__dict__)
    call.__wrapped__, call._planned = function, planned
    call._takes = frozenset({*own.names, *others, *beyond})
    home.update({n: call for n, value in home.items() if value is function})
    return call


def _beyond(call: Callable[..., Any], /, *args: Any, **given: Any) -> Any:
    """Return the result of a call with keywords that the function does not have."""
    name = call.__name__
    for key, allowed in _IDLE.items():
        if key in given and not _has(call, key):
            value = given.pop(key)
            if allowed is not None and value not in allowed:
                bad_value(f"numpy.{name}: {key} must be one of {allowed}, got {value!r}")
    out = given.pop("out", None)
    out = out[0] if isinstance(out, tuple) else out
    where = given.pop("where", True) if not _has(call, "where") else True
    dtype = given.pop("dtype", None) if not _has(call, "dtype") else None
    found = typed(call(*args, **given), dtype)
    if out is None and where is True:
        return found
    if out is None:
        bad_type(f"numpy.{name}: where= needs out=, which has the other elements")
    if not isinstance(out, Tensor):
        bad_type(f"numpy.{name}: out must be a Tensor, got {type(out).__name__}")
    out[...] = found if where is True else ops.where(where, found, out)
    return out


def _has(call: Any, key: str) -> bool:
    return key in Parameters(call).names
