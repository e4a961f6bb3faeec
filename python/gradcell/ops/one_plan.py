"""Ops made of several others: they run as one plan, and round half types once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar

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


_HALVES = (_core.float16, _core.bfloat16)


def in_float32(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others that computes half types in float32 and rounds the result once.

    Without it every op inside would round.
    """

    @functools.wraps(function)
    def op(*args: P.args, **kwargs: P.kwargs) -> R:
        kinds = {
            a.dtype
            for a in (*args, *kwargs.values())
            if isinstance(a, _core.Tensor) and a.dtype.is_floating
        }
        if len(kinds) != 1 or not kinds <= set(_HALVES):
            return function(*args, **kwargs)  # no halves, or a wider type beside them
        wide, narrow = [_in(a, kinds, _core.float32) for a in args], kinds.pop()
        named = {k: _in(a, (narrow,), _core.float32) for k, a in kwargs.items()}
        return _in(function(*wide, **named), (_core.float32,), narrow)  # type: ignore[arg-type]

    return op


def _in(value: Any, kinds: Collection[_core.DType], target: _core.DType) -> Any:
    """Tensors of these dtypes cast; anything else as it is."""
    cast = isinstance(value, _core.Tensor) and value.dtype in kinds
    return _core.ops.cast(value, target) if cast else value
