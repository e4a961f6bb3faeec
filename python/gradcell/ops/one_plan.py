"""Ops made of several others run as one plan."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from gradcell import _core
from gradcell.compiled import run_traced

P = ParamSpec("P")
R = TypeVar("R")


def one_plan(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others: called outside a transform, it runs as one plan.

    Where there is nothing to do it gives a copy, not its argument.
    """

    @functools.wraps(function)
    def op(*args: P.args, **kwargs: P.kwargs) -> R:
        out = run_traced(function, args, kwargs)
        if any(out is a for a in (*args, *kwargs.values())) and isinstance(out, _core.Tensor):
            return _core.copy(out)  # type: ignore[return-value]
        return out  # type: ignore[no-any-return]

    return op
