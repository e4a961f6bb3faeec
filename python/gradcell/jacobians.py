"""Jacobians of functions, column by column or row by row."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.transform import _check_positions, jvp, run_traced, vjp

__all__ = ["jacfwd", "jacrev"]

_ops = _core.ops


def _units(x: Tensor) -> list[Tensor]:
    """The unit vectors of x's space, in x's shape."""
    eye = np.eye(x.size, dtype=np.float64).reshape(x.size, *x.shape)
    return [Tensor(row, x.dtype) for row in eye]


def _stacked(parts: list[Tensor], at_end: bool, tail: list[int]) -> Tensor:
    """Parts joined along a new first or last dimension, which is then cut into `tail`."""
    shape = list(parts[0].shape)
    column = _ops.concat([_ops.reshape(p, [1, p.size]) for p in parts], 0)
    if at_end:
        return _ops.reshape(_ops.transpose(column, [1, 0]), shape + tail)
    return _ops.reshape(column, tail + shape)


def _jacobian(
    fn: Any, grad_position: Any, has_aux: bool, parts: Callable[..., Any]
) -> Callable[..., Any]:
    positions = _check_positions(grad_position)
    arguments.boolean(has_aux, "jacobian", "has_aux")

    @functools.wraps(fn, updated=())
    def jacobian(*args: Any) -> Any:
        return run_traced(record, args, {})

    def record(*args: Any) -> Any:
        for p in positions:
            if p >= len(args):
                raise ValueError(f"grad_position {p} is exceed the {len(args)} arguments{where()}")
        aux: list[Any] = []

        def of_chosen(*chosen: Tensor) -> Any:
            full = list(args)
            for p, x in zip(positions, chosen, strict=True):
                full[p] = x
            out = fn(*full)
            if not has_aux:
                return out
            aux[:] = out[1:]
            return out[0]

        chosen = [arguments.tensor(args[p], "jacobian", f"argument {p}") for p in positions]
        found = parts(of_chosen, chosen)
        return (found, tuple(aux)) if has_aux else found

    return jacobian


def jacfwd(fn: Any, grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives fn's Jacobian, column by column in forward mode: fast for few inputs.

    The result has the shape of the output, then that of the input. For several positions it is a tuple
    of them, for several outputs a tuple of that. has_aux: fn's further outputs come back as a tuple.
    """

    def parts(function: Any, xs: list[Tensor]) -> Any:
        columns: list[list[Any]] = []
        for i, x in enumerate(xs):
            still = [_ops.full(list(y.shape), 0, y.dtype) for y in xs]
            moved = [
                jvp(function, tuple(xs), (*still[:i], unit, *still[i + 1 :]))[1]
                for unit in _units(x)
            ]
            columns.append(moved)

        def block(output: int | None, i: int) -> Tensor:
            outs = [m if output is None else m[output] for m in columns[i]]
            return _stacked(outs, True, list(xs[i].shape))

        return _arranged(block, columns[0][0], len(xs), grad_position)

    return _jacobian(fn, grad_position, has_aux, parts)


def jacrev(fn: Any, grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives fn's Jacobian, row by row in reverse mode: fast for few outputs.

    The result's shape and structure are jacfwd's.
    """

    def parts(function: Any, xs: list[Tensor]) -> Any:
        out, pull_back = vjp(function, *xs)
        outputs = list(out) if isinstance(out, (tuple, list)) else [out]
        rows: list[list[Any]] = []
        for k, y in enumerate(outputs):
            still = [_ops.full(list(z.shape), 0, z.dtype) for z in outputs]
            rows.append([pull_back(*still[:k], unit, *still[k + 1 :]) for unit in _units(y)])

        def block(output: int | None, i: int) -> Tensor:
            k = output or 0
            return _stacked([row[i] for row in rows[k]], False, list(outputs[k].shape))

        return _arranged(block, out, len(xs), grad_position)

    return _jacobian(fn, grad_position, has_aux, parts)


def _arranged(block: Callable[[Any, int], Tensor], out: Any, count: int, grad_position: Any) -> Any:
    """Blocks by output, then by input; without a tuple where there is one of them."""

    def row(output: int | None) -> Any:
        blocks = tuple(block(output, i) for i in range(count))
        return blocks[0] if isinstance(grad_position, int) or count == 1 else blocks

    if isinstance(out, (tuple, list)):
        return tuple(row(k) for k in range(len(out)))
    return row(None)
