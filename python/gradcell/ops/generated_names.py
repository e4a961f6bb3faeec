"""Names that MindSpore generates for its ops, by their rules.

sum_ext and SumExt are mint.sum, InplaceAddExt is Tensor.add_, and sum_ext_op and arg_max_with_value_ are
objects of SumExt and ArgMaxWithValue.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from gradcell import ops
from gradcell._core import Tensor
from gradcell.ops.primitive import Primitive, primitive_of

_SPACES = ("mint", "mint.nn.functional", "mint.linalg", "ops")


def _key(name: str) -> str:
    return name.replace("_", "").lower()


def _function(name: str) -> Callable[..., Any] | None:
    """mint's function of this name, however it is written."""
    for space in _SPACES:
        home = importlib.import_module(f"gradcell.{space}")
        for known in dir(home):
            if _key(known) == _key(name) and not isinstance(getattr(home, known), type):
                return getattr(home, known)  # type: ignore[no-any-return]
    return None


def _method(name: str) -> Callable[..., Any] | None:
    """Tensor's method that writes into the tensor."""
    known = (n for n in dir(Tensor) if n.endswith("_") and not n.startswith("_"))
    found = next((n for n in known if _key(n) == _key(name)), None)
    return None if found is None else getattr(Tensor, found)  # type: ignore[no-any-return]


def _by_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with all its arguments by place, as an op has them."""
    names = list(inspect.signature(function).parameters)

    def op(*args: Any) -> Any:
        keywords = {
            name: value for name, value in zip(names, args, strict=False) if name in keyword_only
        }
        return function(*args[: len(args) - len(keywords)], **keywords)

    kinds = inspect.signature(function).parameters.values()
    keyword_only = {p.name for p in kinds if p.kind is inspect.Parameter.KEYWORD_ONLY}
    op.__doc__ = function.__doc__
    return op


def _primitive(name: str) -> type[Primitive] | None:
    """The class of an op, however it is written."""
    known = next((n for n in dir(ops) if _key(n) == _key(name) and n[:1].isupper()), None)
    if known is not None:
        return getattr(ops, known)  # type: ignore[no-any-return]
    if name.lower().startswith("inplace"):
        function = _method(name[len("inplace") :].removesuffix("_ext").removesuffix("Ext"))
    else:
        key = name.removesuffix("_ext").removesuffix("Ext")
        function = _function(key) if key != name else None
    return None if function is None else primitive_of(name, _by_place(function))


def named(name: str) -> Any:
    """What the name stands for. Raises AttributeError for one that stands for nothing here."""
    found: Any = getattr(importlib.import_module("gradcell.ops.primitive_table"), name, None)
    if name.endswith("_ext"):
        found = _function(name.removesuffix("_ext"))
    elif name.endswith("_") or name.endswith("_op"):
        kind = _primitive(name.removesuffix("_op").rstrip("_"))
        found = None if kind is None else kind()
    elif name.endswith("Ext") or name.startswith("Inplace"):
        found = _primitive(name)
    if found is None:
        raise AttributeError(name)
    return found
