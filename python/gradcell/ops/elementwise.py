"""Elementwise ops, one for each row of the core's op table: a function, a Primitive, a Tensor method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.ops.primitive import primitive_of

__all__ = []

_SHAPES = {
    "unary": "input: a tensor. The result has its shape.",
    "predicate": "input: a tensor. The result has its shape and dtype bool.",
    "binary": "input, other: tensors or numbers, broadcast against each other.",
    "compare": "input, other: tensors or numbers, broadcast against each other. The result is bool.",
    "ternary": "condition: a bool tensor; input, other: tensors or numbers; all broadcast.",
}


def _function(row: dict[str, Any]) -> Callable[..., Tensor]:
    function = getattr(_core.ops, row["function"])
    kind = row["kind"]
    if kind in ("unary", "predicate"):

        def op(input: Any) -> Tensor:
            return function(input)  # type: ignore[no-any-return]
    elif kind == "ternary":

        def op(condition: Any, input: Any, other: Any) -> Tensor:  # type: ignore[misc]
            return function(condition, input, other)  # type: ignore[no-any-return]
    else:

        def op(input: Any, other: Any) -> Tensor:  # type: ignore[misc]
            return function(input, other)  # type: ignore[no-any-return]

    op.__name__ = op.__qualname__ = row["function"]
    op.__doc__ = f"{row['name']}: {row['forward']}, elementwise.\n\n{_SHAPES[kind]}"
    return op


for _row in _core.op_table():
    if _row["kind"] == "structured":
        continue
    _op = _function(_row)
    globals()[_row["function"]] = _op
    globals()[_row["name"]] = primitive_of(_row["name"], _op)
    __all__ += [_row["function"], _row["name"]]

_SYNONYMS = {
    "negative": "neg",
    "absolute": "abs",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "true_divide": "div",
    "remainder": "mod",
    "floor_mod": "mod",
    "floor_divide": "floor_div",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "tensor_add": "add",
}
for _alias, _name in _SYNONYMS.items():
    globals()[_alias] = globals()[_name]
    __all__.append(_alias)
    if not hasattr(Tensor, _alias):
        setattr(Tensor, _alias, getattr(Tensor, _name))

for _alias, _name in {"RealDiv": "Div", "FloorMod": "Mod", "Inv": "Reciprocal", "ACos": "Acos"}.items():
    globals()[_alias] = primitive_of(_alias, globals()[_name.lower() if _name != "FloorDiv" else "floor_div"])
    __all__.append(_alias)
