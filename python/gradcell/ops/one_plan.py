"""Ops made of several others: they run as one plan, and round half types once.

Outside a transform the plan is found without tracing from the second call with such arguments on: a
form of the op is kept for them, as jit keeps forms of a function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar

from gradcell import _core
from gradcell._core import Tensor
from gradcell.compilation.compiled import keep_form, traced

P = ParamSpec("P")
R = TypeVar("R")


#: How many forms of an op are kept.
_MOST_FORMS = 64


def one_plan(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others: called outside a transform, it runs as one plan.

    Where there is nothing to do it gives a copy, not its argument.
    """

    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        return _not_an_argument(function(*args, **kwargs), args, kwargs)  # type: ignore[no-any-return]

    def once(*args: P.args, **kwargs: P.kwargs) -> R:
        return _not_an_argument(traced(function, args, kwargs), args, kwargs)  # type: ignore[no-any-return]

    def again(*args: P.args, **kwargs: P.kwargs) -> R:
        return keep_form(forms, function, once, args, kwargs)  # type: ignore[no-any-return]

    forms = _core.Dispatcher(_MOST_FORMS, inside, once=once, again=again)

    @functools.wraps(function)
    def op(*args: P.args, **kwargs: P.kwargs) -> R:
        return forms(*args, **kwargs)  # type: ignore[no-any-return]

    return op


def _not_an_argument(out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = isinstance(out, Tensor) and any(out is a for a in (*args, *kwargs.values()))
    return _core.copy(out) if given else out


#: Integers that have no half type in common with halves.
_BEYOND_HALVES = (_core.uint16, _core.uint32, _core.uint64)


def in_float32(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others that computes half types in float32 and rounds the result once.

    Without it every op inside would round.
    """

    @functools.wraps(function)
    def op(*args: P.args, **kwargs: P.kwargs) -> R:
        kinds = {
            a.dtype
            for a in (*args, *kwargs.values())
            if isinstance(a, _core.Tensor) and (a.dtype.is_floating or a.dtype in _BEYOND_HALVES)
        }
        if len(kinds) != 1 or not next(iter(kinds)).is_narrow_float:
            return function(*args, **kwargs)  # no halves, or a wider type beside them
        wide, narrow = [_in(a, kinds, _core.float32) for a in args], kinds.pop()
        named = {k: _in(a, (narrow,), _core.float32) for k, a in kwargs.items()}
        return _in(function(*wide, **named), (_core.float32,), narrow)  # type: ignore[no-any-return]

    return op


def wide_plan(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others that runs as one plan, half types in float32."""
    return one_plan(in_float32(function))


def _in(value: Any, kinds: Collection[_core.DType], target: _core.DType) -> Any:
    """Tensors of these dtypes cast, in tuples too; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(_in(v, kinds, target) for v in value)
    cast = isinstance(value, _core.Tensor) and value.dtype in kinds
    return _core.ops.cast(value, target) if cast else value
