"""Functions of one example made into functions of a batch: vmap.

The function is recorded once, on tensors that stand for one example; what depends on them is then
made again over all examples, op by op (csrc/ad/batching.cpp). What does not stays as it is.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.compilation.compiled import cache_for, function_name
from gradcell.derivatives.differentiating import P, R, in_places

from gradcell.base import (  # isort: skip
    CellBase, Made, bad_type, explains_arguments, fail, transform, tree, with_tensors,
)  # fmt: skip

__all__ = ["vmap"]


def over_examples(
    fn: Callable[[list[Tensor]], list[Tensor]], batches: Sequence[Tensor]
) -> list[Tensor | None]:
    """fn's outputs for one example of the batches, [N, ...], over all of them; None for those that no
    example enters."""
    examples: list[Tensor] = []
    _state.batches.append((examples, batches))
    try:
        examples += [_core.example(b) for b in batches]
        # fn may write into what it is given, so that gets tensors of its own.
        return _core.batch(fn([_core.record(e) for e in examples]), examples, batches)
    finally:
        _state.batches.pop()
        _core.end_examples(examples)


def of_any_example(x: Tensor) -> Tensor:
    """Return whether a bool tensor is true for any example of the batches that are mapped over now."""
    for examples, batches in reversed(_state.batches):
        (over,) = _core.batch([x], examples, batches)
        if over is not None:
            x = _ops.greater(_ops.reduce_max(_ops.cast(over, _core.int32), [0], False), 0)
    return x


def differs(x: Tensor) -> bool:
    """Return whether a tensor may differ between the examples that a function is being recorded for."""
    return any(
        _core.batch([x], examples, batches)[0] is not None for examples, batches in _state.batches
    )


class _State(threading.local):
    depth = 0

    def __init__(self) -> None:
        #: (examples, batches) that functions are being recorded for, the innermost last.
        self.batches: list[tuple[list[Tensor], Sequence[Tensor]]] = []


_state = _State()


@contextlib.contextmanager
def _one_example() -> Iterator[None]:
    _state.depth += 1
    try:
        yield
    finally:
        _state.depth -= 1


def in_vmap() -> bool:
    """Return whether a function is being recorded for one example."""
    return _state.depth > 0


def moved_axis(x: Tensor, start: int, end: int) -> Tensor:
    """x with dimension `start` at `end`."""
    if start == end:
        return x
    order = [k for k in range(x.ndim) if k != start]
    order.insert(end, start)
    return _ops.transpose(x, order)


def _axis_of(axis: Any, rank: int, name: str) -> int:
    if isinstance(axis, (bool, np.bool_)) or not isinstance(axis, (int, np.integer)):
        fail(
            f"The axis in vmap's '{name}' can only be of type int or None, but got {type(axis).__name__} "
            f"{axis!r}"
        )
    if not -rank <= axis < rank:
        fail(
            f"The axis: {axis} in '{name}' is out of bounds for array of dimension [{-rank},{rank})"
        )
    return int(axis) % rank


def _parts(x: Any, axes: Any, name: str) -> list[tuple[Any, Any]]:
    """The members of a container, each with its axes."""
    items = tree.parts(x) or []
    if isinstance(axes, dict) and isinstance(x, dict):
        if set(axes) != set(x):
            fail(f"vmap's '{name}' {axes} does not have the keys {sorted(x)}")
        return list(zip(items, [axes[k] for k in x], strict=True))
    given = tree.parts(axes)
    if given is None:
        return [(item, axes) for item in items]
    if isinstance(axes, dict) or isinstance(x, dict) or len(given) != len(items):
        fail(
            f"When vmap's '{name}' is a tuple or list, its size must be equal to the number of arguments "
            f"or results of 'fn': {len(items)}, but got {axes}"
        )
    return list(zip(items, given, strict=True))


def _mapped(fn: Callable[[Any, Any], Any], x: Any, axes: Any, name: str) -> Any:
    """The tree x with fn(leaf, its axis) for each leaf."""
    if not tree.is_container(x):
        if tree.is_container(axes):
            fail(f"vmap's '{name}' {axes} does not fit a {type(x).__name__}: it needs one axis")
        return fn(x, axes)
    return tree.rebuilt(x, [_mapped(fn, part, a, name) for part, a in _parts(x, axes, name)])


class _Inputs:
    """The arguments of one call: the tensors that are mapped over, with their axis in front, and the tree
    that tree.refill puts examples of them into."""

    def __init__(self, args: tuple[Any, ...], in_axes: Any) -> None:
        self.batches: list[Tensor] = []
        self.tree = _mapped(self._enter, args, in_axes, "in_axes")

    def _enter(self, x: Any, axis: Any) -> Any:
        if axis is None or x is None:
            return x
        if not isinstance(x, Tensor):
            fail(
                f"vmap: only a Tensor has an axis {axis} to map over, but an argument is of type "
                f"{type(x).__name__}; its axis in 'in_axes' must be None"
            )
        if x.ndim == 0:
            fail(f"The axis: {axis} in 'in_axes' is out of bounds: an argument has no dimensions")
        self.batches.append(moved_axis(x, _axis_of(axis, x.ndim, "in_axes"), 0))
        return tree.Place(len(self.batches) - 1)


def _size_of(batches: Sequence[Tensor]) -> int:
    sizes = {b.shape[0] for b in batches}
    if not sizes:
        fail("vmap: there is nothing to map over: every axis in 'in_axes' is None")
    if len(sizes) > 1:
        fail(
            "The 'axis_size' of each argument in the scope of 'vmap' should be equal, but got "
            f"{' and '.join(map(str, sorted(sizes)))}"
        )
    return int(sizes.pop())


def _result(over: Tensor | None, one: Tensor, size: int, axis: Any) -> Tensor:
    """An output over the batch, with the batch's dimension where it is to be."""
    if axis is None:
        if over is not None:
            fail(
                "vmap: an output that differs from example to example has None in 'out_axes'; only what is "
                "the same for all of them can"
            )
        return one
    place = _axis_of(axis, one.ndim + 1, "out_axes")
    if over is None:
        over = _ops.broadcast_to(one, [size, *one.shape])
    return moved_axis(over, 0, place)


@overload
def vmap(fn: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, R]: ...
@overload
def vmap(fn: Sequence[CellBase], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]: ...
@transform()
@explains_arguments
def vmap(fn: Any, in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Maps a function of one example over a batch, without a loop.

    fn: a function or Cell of one example; or an ensemble, a CellList or list of cells of one
    structure: then each cell computes one example, and in_axes None gives all of them the same
    arguments. in_axes: the dimension of each argument that counts the examples: one number for all
    arguments, or a tuple or list nested as the arguments are. None gives every example the whole
    argument. out_axes: the place of that dimension in the results, one for all or nested as they
    are; None for an output that is the same for all examples. Negative numbers count from the end.
    Arguments by name count at their places in fn's signature; those that have none are mapped over
    in_axes if that is one number, else over their first dimension.

    Numbers that fn returns become tensors, and results that do not depend on the examples are
    repeated for each. vmap composes with all other transforms and with itself. Random numbers are
    the same for every example. Asking for a value that differs from example to example (`if x > 0`)
    raises a ValueError.

    Raises RuntimeError for axes that do not match the arguments or outputs, for sizes that differ,
    or if there is nothing to map over.
    """
    cells = _ensemble(fn)
    if not cells and not callable(fn):
        fail(
            f"vmap: 'fn' must be a function, a Cell or a list of Cells, but got {type(fn).__name__}"
        )
    if isinstance(in_axes, Tensor):
        bad_type(
            "vmap: 'in_axes' must be an int, None or a tuple of them, but got Tensor: the function's "
            "arguments come in a second call, vmap(f)(x)"
        )
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    one = cells[0] if cells else fn

    def record(named: dict[str, Any] | None, *args: Any) -> Any:
        # Arguments that have a name alone have no place in a tuple of axes: theirs is the first.
        by_name = in_axes if isinstance(in_axes, (int, type(None))) else 0
        axes = in_axes if named is None else (_spread(in_axes, len(args)), by_name)
        inputs = _Inputs(args if named is None else (args, named), axes)
        weights = _Weights(cells)
        batches = inputs.batches + weights.batches
        size = _size_of(batches)
        shape: Any = None
        outputs: list[Tensor] = []

        def of_one(examples: list[Tensor]) -> list[Tensor]:
            nonlocal shape
            count = len(inputs.batches)
            with weights.standing_in(examples[count:]), _one_example():
                given = tree.refill(inputs.tree, examples[:count])
                shape = one(*given) if named is None else one(*given[0], **given[1])
            shape = _mapped(_as_tensor, shape, None, "out_axes")
            outputs.extend(tree.leaves(shape))
            return outputs + [x for _, x in weights.assigned]

        over = over_examples(of_one, batches)
        if not outputs:
            fail(f"vmap: {function_name(fn)} returned no tensor, but {type(shape).__name__}")
        weights.assign(over[len(outputs) :])
        found = iter(over)

        def place(x: Any, axis: Any) -> Any:
            return _result(next(found), x, size, axis) if isinstance(x, Tensor) else x

        single = isinstance(out_axes, (tuple, list)) and not tree.is_container(shape)
        axes = out_axes[0] if single and len(out_axes) == 1 else out_axes
        return _mapped(place, shape, axes, "out_axes")

    of = ("vmap", repr(in_axes), repr(out_axes))
    run = cache_for(fn, of)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        if cells:
            args, kwargs = with_tensors(args, one), with_tensors(kwargs, one)
        if kwargs:
            args, kwargs = in_places(one, args, kwargs, len(args) + len(kwargs))
        return run(record, kwargs, *args) if kwargs else run(record, None, *args)

    made: Any = functools.update_wrapper(Made(mapped), one, updated=())
    made._transform = (fn, of, id(made))
    return made  # type: ignore[no-any-return]


def _spread(axes: Any, count: int) -> Any:
    return axes if tree.is_container(axes) else (axes,) * count


def _as_tensor(x: Any, _: Any) -> Any:
    return Tensor(x) if isinstance(x, (bool, int, float, np.generic, np.ndarray)) else x


# Ensembles ------------------------------------------------------------------------------------------


def _ensemble(fn: Any) -> list[Any]:
    """The cells of a CellList or a list of Cells; [] for anything else."""
    if not isinstance(fn, (list, tuple)) and not (isinstance(fn, CellBase) and fn._lists_cells):
        return []
    cells = list(fn)  # type: ignore[arg-type]
    if not cells or not all(isinstance(c, CellBase) for c in cells):
        fail("vmap: a list must hold Cells, at least one of them")
    return cells


class _Weights:
    """The parameters of an ensemble's cells, one after the other: a batch for each of the first's."""

    def __init__(self, cells: list[Any]) -> None:
        self.of_cells = [list(c.get_parameters()) for c in cells]
        self.first = self.of_cells[0] if cells else []
        self.batches: list[Tensor] = []
        self.assigned: list[tuple[int, Tensor]] = []  # which parameter, and what, for one example
        shapes = [[(tuple(p.shape), p.dtype) for p in found] for found in self.of_cells]
        for i, other in enumerate(shapes[1:], 1):
            if other != shapes[0] or type(cells[i]) is not type(cells[0]):
                fail(
                    f"vmap: the cells of a list must have one structure; cell {i} has other parameters than "
                    "cell 0"
                )
        if cells and not self.first:
            fail("vmap: the cells of the list have no parameters")
        for same in zip(*self.of_cells, strict=True):
            parts = [_ops.reshape(p, [1, *p.shape]) for p in same]
            self.batches.append(_ops.concat(parts, 0))

    @contextlib.contextmanager
    def standing_in(self, examples: list[Tensor]) -> Iterator[None]:
        """While it lasts, one example's tensors stand for the first cell's parameters."""
        pairs = list(zip(self.first, examples, strict=True))
        before = [_core.stand_in(p, e) for p, e in pairs]
        try:
            yield
        finally:
            now = [_core.stand_in(p, b) for (p, _), b in zip(pairs, before, strict=True)]
            self.assigned = [
                (k, x) for k, x in enumerate(now) if not _core.same_node(x, examples[k])
            ]

    def assign(self, over: Sequence[Tensor | None]) -> None:
        """Gives each cell's parameters what its example was assigned."""
        for (k, one), values in zip(self.assigned, over, strict=True):
            for i, parameters in enumerate(self.of_cells):
                value = one
                if values is not None:
                    start = [i] + [0] * one.ndim
                    value = _ops.slice(values, start, [1, *one.shape], [1] * (one.ndim + 1))
                parameters[k]._set_array(_ops.reshape(value, list(one.shape)))
