"""Functions with other names of their parameters: the same code, called by MindSpore's keywords."""

from __future__ import annotations

import re
from types import FunctionType
from typing import Any


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
