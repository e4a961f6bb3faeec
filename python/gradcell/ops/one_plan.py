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
from gradcell.base import tree
from gradcell.compilation.compiled import run_traced, settled

P = ParamSpec("P")
R = TypeVar("R")


#: How many forms of an op are kept, and the largest constants of its own that one may hold.
_MOST_FORMS = 64
_MOST_CAPTURED = 1 << 18


class _NoForm(Exception):
    """An op that no form does the work of."""


def one_plan(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others: called outside a transform, it runs as one plan.

    Where there is nothing to do it gives a copy, not its argument.
    """

    def traced(*args: P.args, **kwargs: P.kwargs) -> R:
        out = run_traced(function, args, kwargs)
        if any(out is a for a in (*args, *kwargs.values())) and isinstance(out, Tensor):
            return _core.copy(out)  # type: ignore[return-value]
        return out  # type: ignore[no-any-return]

    def again(*args: P.args, **kwargs: P.kwargs) -> R:
        recorded: list[bool] = []
        try:
            return _with_form(forms, function, args, kwargs, recorded)  # type: ignore[no-any-return]
        except _NoForm:
            out = traced(*args, **kwargs)
            forms._stop()
            return out
        except Exception:  # of the op's own code: none of it is kept
            if not recorded:  # what has begun to run does not run again
                traced(*args, **kwargs)  # wrong arguments are refused here, in the op's words
            raise

    forms = _core.Dispatcher(traced, _MOST_FORMS, again)

    @functools.wraps(function)
    def op(*args: P.args, **kwargs: P.kwargs) -> R:
        return forms(*args, **kwargs)  # type: ignore[no-any-return]

    return op


def _with_form(
    forms: _core.Dispatcher,
    function: Callable[..., Any],
    args: Any,
    kwargs: dict[str, Any],
    recorded: list[bool],
) -> Any:
    """function(*args, **kwargs), and a form of it for such arguments. Raises _NoForm for an op with
    more effects, or more to depend on, than a form knows. Says in `recorded` when it begins to run."""
    structure = _core.structure_version()

    def body(trace: _core.Trace) -> tuple[Any, _core.Compiled | None]:
        symbols: list[Tensor] = []

        def symbol(t: Tensor) -> Tensor:
            symbols.append(trace.argument(t))
            return symbols[-1]

        own_args, own_kwargs = tree.map_leaves(symbol, args), tree.map_leaves(symbol, kwargs)
        before = [_core.record(s) for s in symbols]
        out = function(*own_args, **own_kwargs)
        results = tree.leaves(out)
        single = isinstance(out, Tensor)
        if (
            _core.lifted_variables()
            or not all(map(_core.same_node, before, symbols))
            or any(
                _core.same_base(r, s) for r in results for s in symbols if not (single and r is s)
            )
        ):
            raise _NoForm
        del own_args, own_kwargs, before, results, symbols[:]  # what lives on is not repeatable
        out = settled(out, True)
        recorded.append(True)
        return out, trace.finish_compiled(tree.leaves(out))

    out, compiled = _core.with_trace(body, structure)
    if compiled is None:
        forms._stop()
    elif compiled.captured_bytes <= _MOST_CAPTURED:
        is_tuple = type(out) is tuple and all(isinstance(t, Tensor) for t in out)
        single = isinstance(out, Tensor)
        fill = None
        if not (single or is_tuple):
            fill = functools.partial(tree.refill, tree.outline(out))
        forms._add(structure, args, compiled, fill, is_tuple, kwargs)
    return out


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
        if len(kinds) != 1 or not next(iter(kinds)).is_narrow_float:
            return function(*args, **kwargs)  # no halves, or a wider type beside them
        wide, narrow = [_in(a, kinds, _core.float32) for a in args], kinds.pop()
        named = {k: _in(a, (narrow,), _core.float32) for k, a in kwargs.items()}
        return _in(function(*wide, **named), (_core.float32,), narrow)  # type: ignore[arg-type]

    return op


def _in(value: Any, kinds: Collection[_core.DType], target: _core.DType) -> Any:
    """Tensors of these dtypes cast, in tuples too; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(_in(v, kinds, target) for v in value)
    cast = isinstance(value, _core.Tensor) and value.dtype in kinds
    return _core.ops.cast(value, target) if cast else value
