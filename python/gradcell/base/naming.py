"""Functions with other names of their parameters: the same code, called by MindSpore's keywords; and what
else the inputs of layers are called."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

from gradcell.base.errors import bad_type

#: Names by which MindSpore's layers, and those here, know the same input.
_INPUTS = [
    set(names.split())
    for names in (
        "x input input_x input_data", "logits input", "labels label target", "gradients grads",
        "logits_x1 input1", "logits_x2 input2", "loss_scale _",
    )
]  # fmt: skip


@functools.cache
def other_names(construct: Callable[..., Any]) -> dict[str, str]:
    """Keywords that the construct of a layer of this package takes besides its own: {another name: its}."""
    own = inspect.signature(construct).parameters
    return {
        other: name
        for name in own
        for group in _INPUTS
        if name in group
        for other in group - {*own}
    }


def by_own_names(construct: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments by the names of the construct; of a program's own layers as they are.

    Raises TypeError for an input that is given twice.
    """
    if not str(getattr(construct, "__module__", "")).startswith("gradcell."):
        return given
    names = other_names(construct)
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = names.get(name, name)
        if own in found:
            first = next(n for n in given if names.get(n, n) == own)
            bad_type(
                f"construct() got the same input twice, as {first!r} and as {name!r}: give one"
            )
        found[own] = value
    return found


def with_names(function: Any, names: str) -> Any:
    """A function of the same code whose first parameters have the given names, in order. A call of it
    costs what a call of the function does. Its docstring names them too."""
    code = function.__code__
    new = names.split()
    old = code.co_varnames[: len(new)]
    if len(new) > code.co_argcount or {*old, *new} & {*code.co_cellvars, *code.co_freevars}:
        raise ValueError(f"{function.__name__}{old} cannot have the parameters {names}")
    to = dict(zip(old, new, strict=True))
    named = FunctionType(
        code.replace(co_varnames=(*new, *code.co_varnames[len(new) :])),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    named.__kwdefaults__ = function.__kwdefaults__
    named.__annotations__ = {to.get(k, k): v for k, v in function.__annotations__.items()}
    named.__qualname__, named.__module__ = function.__qualname__, function.__module__
    about, _, arguments = (function.__doc__ or "").partition("\n\n")
    for before, after in to.items():
        about = re.sub(rf"\b{before}\b", after, about)
        arguments = arguments.replace(before, after, 1)
    named.__doc__ = f"{about}\n\n{arguments}" if arguments else about
    return named


def named(function: Any, name: str) -> None:
    """Gives a function that a table makes its name, also in its code: by that errors call it."""
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name)
