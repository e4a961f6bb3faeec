"""Loops as one op: a step is recorded once, and run as often as there are steps (csrc/ops/loop.h).

Scan, ForiLoop and WhileLoop are MindSpore's loops over functions. With unroll=False the first two are
one op, so that planning takes as long for 1,000 steps as for 10; else they are loops of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments, tree
from gradcell.base.errors import bad_type, bad_value
from gradcell.compilation.compiled import run_traced
from gradcell.ops.primitive import Primitive

__all__ = ["ForiLoop", "Scan", "WhileLoop"]

_ops = _core.ops

#: (the state before a step, the slices of that step) to (the state after it, what is kept of it).
Step = Callable[[list[Tensor], list[Tensor]], tuple[Sequence[Tensor], Sequence[Tensor]]]


def loop(
    step: Step,
    first: Sequence[Tensor],
    sliced: Sequence[Tensor],
    steps: int,
    *,
    reverse: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    """(the last state, what the steps kept, each [steps, ...]).

    first: the state before the first step. sliced: tensors [steps, ...], of which each step gets x[t].
    reverse: from the last t to the first. What step reads besides is the same in all steps, and
    derivatives pass to it.

    Raises ValueError where a step changes the state's shape or dtype, asks for a value, draws random
    numbers or assigns parameters: it is recorded once, for all steps.
    """

    def recorded() -> tuple[list[Tensor], list[Tensor]]:
        states = [_core.example(_ops.reshape(s, [1, *s.shape])) for s in first]
        slices = [_core.example(x) for x in sliced]
        before = _core.assigned_nodes()
        try:
            after, kept = step([_core.record(s) for s in states], [_core.record(x) for x in slices])
            if _core.assigned_nodes() != before:
                bad_value(
                    "a step of a loop is recorded once, for all steps: it cannot assign parameters or draw "
                    "random numbers. Return the values, and draw outside the loop"
                )
            last, all_steps = _core.loop(states, first, after, slices, sliced, kept, steps, reverse)
        finally:
            _core.end_examples([*states, *slices])
        return last, all_steps

    return run_traced(recorded, (), {})  # type: ignore[no-any-return]


# MindSpore's loops over functions ----------------------------------------------------------------


def _check_function(fn: Any, owner: str, name: str) -> None:
    if not callable(fn):
        bad_type(f"For '{owner}', the '{name}' must be a function, but got {type(fn).__name__}")


@contextmanager
def _calls(owner: str) -> Iterator[None]:
    """Turn errors of the user's functions into ValueError, as in MindSpore."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"For '{owner}', invalid loop_func, please check input arguments and return value, error "
            f"info: {error}"
        ) from error


def _as_tensors(value: Any) -> Any:
    """A tree of tensors and numbers as one of tensors."""
    return tree.map_all(lambda v: v if v is None or isinstance(v, Tensor) else Tensor(v), value)


def _looped(
    fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, steps: int
) -> tuple[Any, Any]:
    """fn(carry, x) -> (carry, y) over trees: the last carry, and a list of y."""
    init, xs = _as_tensors(init), _as_tensors(xs)
    shape, items, kept = tree.outline(init), tree.outline(xs), None

    def step(state: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        nonlocal kept
        carry, y = fn(tree.refill(shape, state), tree.refill(items, slices))
        y = _as_tensors(y)
        kept = tree.outline(y)
        return tree.matched("loop_func", _as_tensors(carry), shape), tree.leaves(y)

    def both() -> tuple[Any, Any]:
        last, all_steps = loop(step, tree.leaves(init), tree.leaves(xs), steps)
        ys = [tree.refill(kept, [y[t] for y in all_steps]) for t in range(steps)]
        return tree.refill(shape, last), ys

    return run_traced(both, (), {})  # type: ignore[no-any-return]


class Scan(Primitive):
    """A function over the elements of a list, with what is carried from one to the next.

    Called with loop_func(carry, x) -> (carry, y), init, xs (a list or tuple; or None and `length`),
    length, unroll. Returns (carry, list of y). unroll=False: one op, whose step is recorded once; xs
    are tensors or numbers of one shape and dtype, and carry keeps its shapes and dtypes.

    Raises TypeError for anything that is not a function, list, int or bool, ValueError for what goes wrong in
    loop_func.
    """

    def __call__(
        self, loop_func: Any, init: Any, xs: Any, length: int | None = None, unroll: bool = True
    ) -> tuple[Any, list[Any]]:
        _check_function(loop_func, "Scan", "loop_func")
        arguments.boolean(unroll, "Scan", "unroll")
        if xs is None:
            steps = arguments.integer(length, "Scan", "length", 0)
            xs = [None] * steps
        elif not isinstance(xs, (list, tuple)):
            bad_type(
                f"For 'Scan', the 'xs' must be a list, a tuple or None, but got {type(xs).__name__}"
            )
        if not xs:
            return init, []
        with _calls("Scan"):
            if unroll:
                ys = []
                for x in xs:
                    init, y = loop_func(init, x)
                    ys.append(y)
                return init, ys
            given = [tree.leaves(_as_tensors(x)) for x in xs]
            stacked = [
                _ops.concat([_ops.reshape(t, [1, *t.shape]) for t in parts], 0)
                for parts in zip(*given, strict=True)
            ]
            over = tree.refill(tree.outline(_as_tensors(xs[0])), stacked)
            return _looped(loop_func, init, over, len(xs))


class ForiLoop(Primitive):
    """loop_func(i, value) -> value for i from lower to upper - 1.

    Called with lower, upper (ints, or tensors of one), loop_func, init_val, unroll. Returns the last
    value. unroll=False: one op, whose step is recorded once, for an i that is a tensor; the value
    keeps its shapes and dtypes.

    Raises TypeError if a bound is not an integer or the body not a function, ValueError for what goes
    wrong in loop_func.
    """

    def __call__(
        self, lower: Any, upper: Any, loop_func: Any, init_val: Any, unroll: bool = True
    ) -> Any:
        _check_function(loop_func, "ForiLoop", "loop_func")
        arguments.boolean(unroll, "ForiLoop", "unroll")
        low, high = (
            arguments.integer(int(x) if isinstance(x, Tensor) else x, "ForiLoop", name)
            for name, x in (("lower", lower), ("upper", upper))
        )
        if high <= low:
            return init_val
        with _calls("ForiLoop"):
            if unroll:
                for i in range(low, high):
                    init_val = loop_func(i, init_val)
                return init_val
            numbers = Tensor(np.arange(low, high, dtype=np.int64))
            last, _ = _looped(lambda v, i: (loop_func(i, v), ()), init_val, numbers, high - low)
            return last


class WhileLoop(Primitive):
    """loop_func(value) -> value as long as cond_func(value) holds.

    Called with cond_func, loop_func, init_val; returns the last value. How often it runs depends on
    values, so it is a Python loop. Raises TypeError if it is not a function, ValueError for what
    goes wrong in the functions.
    """

    def __call__(self, cond_func: Any, loop_func: Any, init_val: Any) -> Any:
        _check_function(cond_func, "WhileLoop", "cond_func")
        _check_function(loop_func, "WhileLoop", "loop_func")
        with _calls("WhileLoop"):
            while cond_func(init_val):
                init_val = loop_func(init_val)
        return init_val
