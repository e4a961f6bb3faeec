"""Loops as one op: a step is recorded once, and run as often as there are steps (csrc/ops/loop.h).

scan is a loop over the leading axes of trees. Scan, ForiLoop and WhileLoop are MindSpore's loops over
functions. With unroll=False the first two are one op, so that planning takes as long for 1,000 steps as
for 10; else they are loops of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, tree, with_tensors
from gradcell.compilation.compiled import run_traced
from gradcell.derivatives.batching import of_any_example
from gradcell.ops.control.choices import as_tensors, chosen, has_value
from gradcell.ops.primitive import Primitive

__all__ = ["ForiLoop", "Scan", "WhileLoop", "scan"]


C = TypeVar("C")
Y = TypeVar("Y")

#: (the state before a step, the slices of that step) to (the state after it, what is kept of it).
Step = Callable[[list[Tensor], list[Tensor]], tuple[Sequence[Tensor], Sequence[Tensor]]]


def loop(
    step: Step,
    first: Sequence[Tensor],
    sliced: Sequence[Tensor],
    steps: int,
    *,
    reverse: bool = False,
    again: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    """(the last state, what the steps kept, each [steps, ...]).

    first: the state before the first step. sliced: tensors [steps, ...], of which each step gets x[t].
    reverse: from the last t to the first. again: derivatives keep the states alone, and compute the rest
    of a step again. What step reads besides is the same in all steps, and derivatives pass to it.

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
            last, all_steps = _core.loop(
                states, first, after, slices, sliced, kept, steps, reverse, again
            )
        finally:
            _core.end_examples([*states, *slices])
        return last, all_steps

    return run_traced(recorded, (), {})  # type: ignore[no-any-return]


# MindSpore's loops over functions ----------------------------------------------------------------


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


def _steps_of(
    fn: Callable[[Any, Any], Any], shape: Any, items: Any, owner: str
) -> tuple[Step, Callable[[], Any]]:
    """fn(carry, x) -> (carry, y) over trees as a step over tensors; and the outline of y, known after a step.

    shape, items: the outlines of carry and x.
    """
    kept = None

    def step(state: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        nonlocal kept
        out = fn(tree.refill(shape, state), tree.refill(items, slices))
        if not isinstance(out, tuple) or len(out) != 2:
            bad_type(f"{owner} must return a pair (carry, y), but got {type(out).__name__}")
        y = as_tensors(out[1])
        kept = tree.outline(y)
        return tree.matched(owner, as_tensors(out[0]), shape), tree.leaves(y)

    return step, lambda: kept


def _looped(
    fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, steps: int
) -> tuple[Any, Any]:
    """fn(carry, x) -> (carry, y) over trees: the last carry, and a list of y."""
    init, xs = as_tensors(init), as_tensors(xs)
    shape = tree.outline(init)
    step, kept = _steps_of(fn, shape, tree.outline(xs), "loop_func")

    def both() -> tuple[Any, Any]:
        last, all_steps = loop(step, tree.leaves(init), tree.leaves(xs), steps)
        ys = [tree.refill(kept(), [y[t] for y in all_steps]) for t in range(steps)]
        return tree.refill(shape, last), ys

    return run_traced(both, (), {})  # type: ignore[no-any-return]


# The same over trees with a leading axis ------------------------------------------------------------


def scan(
    f: Callable[[C, Any], tuple[C, Y]],
    init: C,
    xs: Any = None,
    length: int | None = None,
    *,
    reverse: bool = False,
    unroll: int = 1,
    checkpoint: bool | int = False,
) -> tuple[C, Y]:
    """Passes a carry through f from one slice of xs to the next: (the last carry, all y).

    f: a function of the carry and of x that returns the next carry and a y to keep. init: the carry of the
    first step; it keeps its shapes and dtypes, and a number in it gets the dtype that f makes of it. xs:
    tensors [T, ...], of which f gets the slices x[t]; with None f gets None, `length` times. length: how
    many steps there are, where xs does not say it. carry, xs and y are trees: nested tuples, lists, dicts
    and dataclasses of tensors and numbers. Each tensor of the y returned is [T, ...]. Tensors that f reads
    besides are the same in all steps; derivatives pass to them too.

    It is one op: f is recorded once, and planning takes as long for 1,000 steps as for 10. Derivatives of
    all orders are loops again.

    reverse: from the last slice to the first. unroll: so many steps are recorded as one. checkpoint:
    derivatives keep the carry before every so many steps (True: sqrt(T)) and compute what lies between
    again, which takes much less memory and the time of one more pass.

    Raises TypeError if f is not a function or does not return a pair, ValueError if the leading axes
    differ, if the carry changes its structure, shapes or dtypes, or if f asks for a value, draws random
    numbers or assigns parameters.
    """
    arguments.function(f, "scan", "f")
    numbers: list[bool] = []
    init = tree.map_all(lambda v: _noted(v, numbers), with_tensors(init))
    xs = as_tensors(xs)
    first, sliced = tree.leaves(init), tree.leaves(xs)
    steps = _length(sliced, length)
    unroll = arguments.integer(unroll, "scan", "unroll", 1)
    part = round(steps**0.5) if checkpoint is True else checkpoint
    part = arguments.integer(part, "scan", "checkpoint", 0) if part else 0
    shape = tree.outline(init)
    step, kept = _steps_of(f, shape, tree.outline(xs), "For 'scan', f")

    def both() -> tuple[Any, Any]:
        start = first
        if any(numbers) and steps:  # a number has the dtype that a step makes of it
            after, _ = step(first, [x[0] for x in sliced])
            each = zip(first, after, numbers, strict=True)
            start = [_ops.cast(x, y.dtype) if number else x for x, y, number in each]
        last, ys = _in_parts(step, start, sliced, steps, reverse, unroll, part)
        return tree.refill(shape, last), tree.refill(kept(), ys)

    return run_traced(both, (), {})  # type: ignore[no-any-return]


def _noted(value: Any, numbers: list[bool]) -> Any:
    """The value as a tensor, unless it is None; whether it was a number is added to the list."""
    if value is None:
        return None
    numbers.append(not isinstance(value, Tensor))
    return Tensor(value) if numbers[-1] else value


def _length(sliced: Sequence[Tensor], length: int | None) -> int:
    """Return the number of slices of these tensors, which must agree with the length if it is given."""
    shapes = [list(x.shape) for x in sliced]
    if length is None and not sliced:
        bad_value("For 'scan', 'length' is needed where 'xs' has no tensors")
    steps = next((s[0] for s in shapes if s), 0) if length is None else length
    arguments.integer(steps, "scan", "length", 0)
    if any(s[:1] != [steps] for s in shapes):
        given = "" if length is None else f" and 'length' {length}"
        bad_value(
            "For 'scan', all tensors of 'xs' must have as many slices along their first axis, but got "
            f"shapes {', '.join(map(str, shapes))}{given}"
        )
    return steps


#: Runs so many steps: (state, slices, how many) to (state, what the steps kept, each [how many, ...]).
Steps = Callable[
    [Sequence[Tensor], Sequence[Tensor], int], tuple[Sequence[Tensor], Sequence[Tensor]]
]


def _in_parts(
    step: Step,
    first: Sequence[Tensor],
    sliced: Sequence[Tensor],
    steps: int,
    reverse: bool,
    unroll: int,
    part: int,
) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """A loop of steps, `unroll` of them recorded as one, whose derivatives keep the states before every
    `part` of them (0: all that they read)."""

    def unrolled(state: Any, slices: Any, n: int) -> Any:
        rows = {}
        for t in reversed(range(n)) if reverse else range(n):
            state, rows[t] = step([*state], [x[t] for x in slices])
        kept = zip(*(rows[t] for t in range(n)), strict=True)
        return state, [_ops.concat([_ops.reshape(y, [1, *y.shape]) for y in of], 0) for of in kept]

    def looped(state: Any, slices: Any, n: int, again: bool = False) -> Any:
        return loop(step, state, slices, n, reverse=reverse, again=again)

    def grouped(run: Steps, size: int, again: bool = False) -> Steps:
        """Steps in groups of that size, each by run, and those that are left over at the end."""

        def runs(state: Any, slices: Any, n: int) -> Any:
            groups, rest = divmod(n, size)
            if groups == 0:
                return run(state, slices, n)
            most, others = slice(n - rest), slice(n - rest, n)
            if reverse:
                most, others = slice(rest, n), slice(rest)
            whole = [_ops.reshape(x[most], [groups, size, *x.shape[1:]]) for x in slices]
            state, kept = loop(
                lambda s, x: run(s, x, size), state, whole, groups, reverse=reverse, again=again
            )
            kept = [_ops.reshape(y, [groups * size, *y.shape[2:]]) for y in kept]
            if not rest:
                return state, kept
            state, more = run(state, [x[others] for x in slices], rest)
            pairs = zip(more, kept, strict=True) if reverse else zip(kept, more, strict=True)
            return state, [_ops.concat([*pair], 0) for pair in pairs]

        return runs

    if steps == 0:  # a step over zeros tells what would be kept
        zeros = [Tensor(np.zeros((1, *x.shape[1:])), x.dtype) for x in sliced]
        return first, [y[:0] for y in looped(first, zeros, 1)[1]]
    run: Steps = grouped(unrolled, unroll) if unroll > 1 else looped
    if part > 1:
        run = grouped(run, part, again=True)
    elif part == 1:
        run = grouped(unrolled, unroll, again=True)
    return run(first, sliced, steps)


class Scan(Primitive):
    """A function over the elements of a list, with what is carried from one to the next.

    name, attributes: stored, as Primitive does; the result is the same.

    Called with loop_func(carry, x) -> (carry, y), init, xs (a list or tuple; or None and `length`),
    length, unroll. Returns (carry, list of y). unroll=False: one op, whose step is recorded once; xs
    are tensors or numbers of one shape and dtype, and carry keeps its shapes and dtypes.

    Raises TypeError for anything that is not a function, list, int or bool, ValueError for what goes wrong in
    loop_func.
    """

    def __call__(
        self, loop_func: Any, init: Any, xs: Any, length: int | None = None, unroll: bool = True
    ) -> tuple[Any, list[Any]]:
        arguments.function(loop_func, "Scan", "loop_func")
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
            given = [tree.leaves(as_tensors(x)) for x in xs]
            stacked = [
                _ops.concat([_ops.reshape(t, [1, *t.shape]) for t in parts], 0)
                for parts in zip(*given, strict=True)
            ]
            over = tree.refill(tree.outline(as_tensors(xs[0])), stacked)
            return _looped(loop_func, init, over, len(xs))


class ForiLoop(Primitive):
    """loop_func(i, value) -> value for i from lower to upper - 1.

    name, attributes: stored, as Primitive does; the result is the same.

    Called with lower, upper (ints, or tensors of one), loop_func, init_val, unroll. Returns the last
    value. unroll=False: one op, whose step is recorded once, for an i that is a tensor; the value
    keeps its shapes and dtypes.

    Raises TypeError if a bound is not an integer or the body not a function, ValueError for what goes
    wrong in loop_func.
    """

    def __call__(
        self, lower: Any, upper: Any, loop_func: Any, init_val: Any, unroll: bool = True
    ) -> Any:
        arguments.function(loop_func, "ForiLoop", "loop_func")
        arguments.boolean(unroll, "ForiLoop", "unroll")
        low, high = (
            arguments.integer(int(x) if isinstance(x, Tensor) else x, "ForiLoop", name)
            for name, x in (("lower", lower), ("upper", upper))
        )
        init_val = with_tensors(init_val)
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

    name, attributes: stored, as Primitive does; the result is the same.

    Called with cond_func, loop_func, init_val; returns the last value. How often it runs depends on
    values, so it is a Python loop; under jit each number of steps is compiled once. In vmap the condition may
    differ from example to example: it runs as often as the longest of them needs, and a value stays what it
    is from where its condition fails on; it keeps its shapes and dtypes then. Raises TypeError if it is not a
    function, ValueError for what goes wrong in the functions.
    """

    def __call__(self, cond_func: Any, loop_func: Any, init_val: Any) -> Any:
        arguments.function(cond_func, "WhileLoop", "cond_func")
        arguments.function(loop_func, "WhileLoop", "loop_func")
        value = with_tensors(init_val)
        with _calls("WhileLoop"):
            while (going := cond_func(value)) is not False:
                if not isinstance(going, Tensor) or has_value(going):
                    if not going:
                        break
                    value = loop_func(value)
                    continue
                if not of_any_example(_ops.not_equal(going, 0)):
                    break
                value = chosen("WhileLoop", going, loop_func, lambda v: v, (as_tensors(value),))
        return value
