"""locate_overflow: finds the op that overflowed first."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import tree

#: Values of at most so many bytes are computed at once.
_BATCH_BYTES = 1 << 30
_SOURCES = ("Leaf", "Const")


@dataclass(frozen=True)
class Operand:
    """A tensor that an op read or wrote: shape, dtype, the range of its finite elements and how
    many are not finite."""

    shape: tuple[int, ...]
    dtype: _core.DType
    smallest: float
    largest: float
    not_finite: int = 0

    def __str__(self) -> str:
        bad = f", {self.not_finite} not finite" if self.not_finite else ""
        size = f"[{self.smallest:.6g}, {self.largest:.6g}]"
        return f"{self.dtype}{list(self.shape)} in {size}{bad}"


@dataclass(frozen=True)
class Overflow:
    """The first op, in order of execution, whose output is not finite while its inputs are.

    op: its name; "Leaf" if an argument, parameter or captured tensor is not finite itself. order: 0
    for an op of the function, n for one made by the n-th differentiation. location: the user's file
    and line; an op of a derivative has that of the op it differentiates. reaches_outputs: whether
    values that are not finite lead from it to an output; reaches_parameters: to an assigned
    parameter. output: shape, dtype and range of what the op wrote. inputs: the same of what it
    read, one for each input.
    """

    op: str
    order: int
    output: Operand
    inputs: tuple[Operand, ...] = field(default=())
    location: str = ""
    reaches_outputs: bool = False
    reaches_parameters: bool = False

    @property
    def is_adjoint(self) -> bool:
        """Return whether the op belongs to a derivative."""
        return self.order > 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The output's shape."""
        return self.output.shape

    @property
    def dtype(self) -> _core.DType:
        """The output's dtype."""
        return self.output.dtype

    def __str__(self) -> str:
        kind = "forward" if self.order == 0 else f"adjoint of order {self.order}"
        place = self.location or "unknown line"
        if self.op == "Leaf":
            first = f"an input of the function is not finite itself ({place})"
        else:
            first = f"{self.op} ({kind}) at {place}"
        lines = [f"first overflow: {first}", f"  output: {self.output}"]
        lines += [f"  input {k}: {operand}" for k, operand in enumerate(self.inputs)]
        reached = [
            name
            for name, hit in (
                ("the outputs", self.reaches_outputs),
                ("the assigned parameters", self.reaches_parameters),
            )
            if hit
        ]
        lines.append(f"  reaches {' and '.join(reached)}" if reached else "  reaches no output")
        return "\n".join(lines)


def locate_overflow(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Overflow | None:
    """Runs fn(*args) and finds the first op whose output is not finite while its inputs are.

    fn: a function, a Cell, or a gradient function; no parameter is changed by the run. kwargs:
    keyword arguments of fn. Returns None if every value is finite. What fn computes but neither
    returns nor assigns is ignored.

    Raises RuntimeError when called inside a function that is being traced.
    """
    if _core.in_trace():
        raise RuntimeError(
            f"locate_overflow: call it outside of traced functions ({_core.user_location()})"
        )

    def body(trace: _core.Trace) -> Overflow | None:
        try:
            outputs = {_core.node_id(t) for t in tree.leaves(fn(*args, **kwargs))}
            assigned = set(_core.assigned_nodes())
            nodes = _core.live_nodes(sorted(outputs | assigned))
            return _search(nodes, outputs, assigned)
        finally:
            trace.abandon()

    return _core.with_trace(body)  # type: ignore[no-any-return]


def _batches(nodes: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    out: list[list[dict[str, Any]]] = [[]]
    size = 0
    for n in nodes:
        bytes_ = int(np.prod(n["shape"], dtype=np.int64)) * n["dtype"].itemsize
        if size + bytes_ > _BATCH_BYTES and out[-1]:
            out.append([])
            size = 0
        out[-1].append(n)
        size += bytes_
    return out


def _search(nodes: list[dict[str, Any]], outputs: set[int], assigned: set[int]) -> Overflow | None:
    floating = [n for n in nodes if n["dtype"].is_floating]
    bad: set[int] = set()
    first: dict[str, Any] | None = None
    leaf: dict[str, Any] | None = None
    for batch in _batches(floating):
        for n, value in zip(batch, _core.node_values([n["id"] for n in batch]), strict=True):
            if np.isfinite(value.asnumpy()).all():
                continue
            bad.add(n["id"])
            if n["op"] == "Leaf":
                leaf = leaf or n
            elif first is None and n["op"] not in _SOURCES and not bad & set(n["inputs"]):
                first = n
    found = first or leaf
    if found is None:
        return None
    reached = _reached(nodes, found["id"], bad)
    by_id = {n["id"]: n for n in nodes}
    return Overflow(
        op=found["op"],
        order=found["order"],
        output=_operand(found),
        inputs=tuple(_operand(by_id[i]) for i in found["inputs"]),
        location=found["location"],
        reaches_outputs=bool(reached & outputs),
        reaches_parameters=bool(reached & assigned),
    )


def _reached(nodes: list[dict[str, Any]], start: int, bad: set[int]) -> set[int]:
    """The nodes that are not finite and depend on `start` by others that are not."""
    reached = {start}
    for n in nodes:
        if n["id"] in bad and reached & set(n["inputs"]):
            reached.add(n["id"])
    return reached


def _operand(node: dict[str, Any]) -> Operand:
    (value,) = _core.node_values([node["id"]])
    array = np.asarray(value.asnumpy(), np.float64)
    finite = array[np.isfinite(array)]
    smallest, largest = (finite.min(), finite.max()) if finite.size else (np.nan, np.nan)
    return Operand(
        tuple(node["shape"]),
        node["dtype"],
        float(smallest),
        float(largest),
        array.size - finite.size,
    )


def warn_of(found: Overflow | None) -> None:
    """Reports the overflow that was found, as a warning at the user's line."""
    text = str(found) if found is not None else "the overflow did not show again"
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    warnings.warn(text, RuntimeWarning, stacklevel=_depth_outside(package))


def _depth_outside(package: str) -> int:
    depth, frame = 1, sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(package):
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    return depth + 1


def values_of(parameters: Any) -> list[tuple[Any, Tensor]]:
    """Return pairs (parameter, copy of its elements), by which a run can be repeated."""
    return [(p, p.value().copy()) for p in parameters]
