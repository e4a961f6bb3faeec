"""Ops made of several others run as one plan."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from gradcell import _core
from gradcell.transform import run_traced

P = ParamSpec("P")
R = TypeVar("R")


def one_plan(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others: called outside a transform, it runs as one plan."""

    @functools.wraps(function)
    def op(*args: P.args, **kwargs: P.kwargs) -> R:
        if _core.in_trace():
            return function(*args, **kwargs)
        return run_traced(function, args, kwargs)  # type: ignore[no-any-return]

    return op
