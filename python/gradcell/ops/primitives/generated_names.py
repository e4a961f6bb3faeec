"""Names that MindSpore generates for its ops, by their rules: sum_ext and SumExt are mint.sum, InplaceAddExt
is Tensor.add_, TransposeView is Transpose, and sum_ext_op and arg_max_with_value_ are objects of SumExt and
ArgMaxWithValue."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from gradcell import ops
from gradcell._core import Tensor
from gradcell.ops.primitives.rows import primitive, row

_SPACES = ("mint", "mint.nn.functional", "mint.linalg", "ops")


def _among(home: Any, name: str, kinds: Callable[[str], bool]) -> Any:
    """Find a name in a module or class, whatever its case and underscores."""
    key = name.replace("_", "").lower()
    known = (n for n in dir(home) if n.replace("_", "").lower() == key and kinds(n))
    return next((getattr(home, n) for n in known), None)


def _function(name: str) -> Any:
    homes = (importlib.import_module(f"gradcell.{space}") for space in _SPACES)
    return next((f for h in homes if (f := _among(h, name, str.islower))), None)


def _by_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with all its arguments by place, as an op has them."""
    parameters = list(inspect.signature(function).parameters.values())
    alone = [p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters]

    def op(*args: Any) -> Any:
        given = list(zip(parameters, alone, args, strict=False))
        by_name = {p.name: value for p, keyword, value in given if keyword}
        return function(*args[: len(args) - len(by_name)], **by_name)

    op.__doc__ = function.__doc__
    return op


def _row(name: str) -> Any:
    """The primitive of a row, however its name is written."""
    table = importlib.import_module("gradcell.ops.primitives.table")
    key = name.replace("_", "").lower()
    return next((getattr(table, n) for n in table.NAMES if n.lower() == key), None)


def _primitive(name: str) -> Any:
    known = _among(ops, name, lambda n: n[0].isupper()) or _row(name)
    if known is not None:
        return known
    plain = name.removesuffix("_ext").removesuffix("Ext")
    if plain.lower().startswith("inplace"):
        kept = plain[len("inplace") :]
        function = _among(Tensor, kept, lambda n: n.endswith("_") and n[0] != "_")
    else:
        function = _function(plain) if plain != name else None
    return None if function is None else primitive(name, row(_by_place(function)))


def named(name: str) -> Any:
    """Return the object that a name stands for. Raises AttributeError for an unknown name."""
    found: Any = getattr(importlib.import_module("gradcell.ops.primitives.table"), name, None)
    if name.endswith("_ext"):
        found = _function(name.removesuffix("_ext"))
    elif name.endswith(("_", "_op")):
        kind = _primitive(name.removesuffix("_op").rstrip("_"))
        found = None if kind is None else kind()
    elif name.endswith("Ext") or name.startswith("Inplace"):
        found = _primitive(name)
    elif name.endswith("View"):
        found = _primitive(name.removesuffix("View"))
    if found is None:
        raise AttributeError(name)
    return found
