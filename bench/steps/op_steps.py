"""A case of op_cases as a step: its expression in a framework's names, or its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inputs import Array
from op_cases import CASES, INPUTS, OpCase
from steps import Step


def case(name: str, group: str) -> OpCase:
    return next(c for c in CASES if c.name == name and c.group == group)


def build(
    params: dict[str, Any],
    text: Callable[[OpCase], str],
    names: dict[str, Any],
    tensor: Callable[[Array], Any],
    gradient: Callable[[Callable[..., Any], list[Any], list[int]], Callable[[], Any]],
    values: Callable[[Any], Array],
) -> Step:
    """names: what the expression may use. gradient(function, arguments, positions): a call that
    gives the derivatives of the sum of the function, weighted by `weights` of its result."""
    this = case(params["case"], params["group"])
    scope = dict(names)
    function = eval(f"lambda {', '.join(this.inputs)}: {text(this)}", scope)
    arguments = [tensor(cast(INPUTS[n](), params)) for n in this.inputs]
    call = (
        gradient(function, arguments, [this.inputs.index(n) for n in this.by])
        if params["gradient"]
        else lambda: function(*arguments)
    )

    def arrays(result: Any) -> list[Array]:
        return [values(r) for r in (result if isinstance(result, (tuple, list)) else [result])]

    return Step(call, arrays)


def cast(array: Array, params: dict[str, Any]) -> Array:
    """In float64 where the result is to be a reference."""
    return array.astype(np.float64) if params.get("exact") and array.dtype.kind == "f" else array


def weights(shape: tuple[int, ...]) -> Array:
    """What a result is weighted with before its gradient is taken: no two neighbours alike."""
    n = int(np.prod(shape, dtype=np.int64))
    return (1.0 + 0.25 * (np.arange(n) % 7)).astype(np.float32).reshape(shape)
