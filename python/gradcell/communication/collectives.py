"""Collective operations as nodes: what ops, comm_func, cells and optimisers call.

x is a Tensor, `group` the name of a group that this process belongs to. In a group of one each is its
input. Derivatives, of any order, are those of the sum of what all processes differentiate.
"""

from __future__ import annotations

from gradcell._core import Tensor, ops as _ops
from gradcell.communication.engine import Group
from gradcell.communication.management import GlobalComm, member_of

WORLD = GlobalComm.WORLD_COMM_GROUP
#: The core's numbers of the ways to put parts together.
REDUCTIONS = {"sum": 0, "prod": 1, "max": 2, "min": 3}


def _same(x: Tensor) -> Tensor:
    return _ops.reshape(x, list(x.shape))


def _of(group: Group) -> tuple[int, int, int]:
    return group.number, group.size, group.rank


def all_reduce(x: Tensor, op: str = "sum", group: str = WORLD) -> Tensor:
    """The sum, maximum, minimum or product over all processes."""
    g = member_of(group)
    if g.size == 1:
        return _same(x)
    if op == "prod" and x.dtype.is_floating:
        return _product(_ops.all_gather(_ops.reshape(x, [1, *x.shape]), *_of(g)), list(x.shape))
    return _ops.all_reduce(x, *_of(g), REDUCTIONS[op])


def _product(rows: Tensor, shape: list[int]) -> Tensor:
    """The product along the first dimension, with derivatives that are right at zeros."""
    running = _ops.cumprod(rows, 0)
    last = [rows.shape[0] - 1, *[0] * (rows.ndim - 1)]
    return _ops.reshape(_ops.slice(running, last, [1, *rows.shape[1:]], [1] * rows.ndim), shape)


def all_gather(x: Tensor, group: str = WORLD) -> Tensor:
    """The tensors of all processes, one after the other along the first dimension."""
    g = member_of(group)
    return _same(x) if g.size == 1 else _ops.all_gather(x, *_of(g))


def reduce_scatter(x: Tensor, op: str = "sum", group: str = WORLD) -> Tensor:
    """This process's part, along the first dimension, of the reduction over all processes."""
    g = member_of(group)
    if g.size == 1:
        return _same(x)
    if op == "prod" and x.dtype.is_floating:
        parts = all_to_all(x, group)
        part = [x.shape[0] // g.size, *x.shape[1:]]
        return _product(_ops.reshape(parts, [g.size, *part]), part)
    return _ops.reduce_scatter(x, *_of(g), REDUCTIONS[op])


def broadcast(x: Tensor, root: int, group: str = WORLD) -> Tensor:
    """The tensor of process `root`, by its number in the group."""
    g = member_of(group)
    return _same(x) if g.size == 1 else _ops.broadcast(x, *_of(g), root)


def reduce(x: Tensor, root: int, op: str = "sum", group: str = WORLD) -> Tensor:
    """The reduction over all processes in process `root`; zeros in the others."""
    g = member_of(group)
    if g.size == 1:
        return _same(x)
    if op == "sum":
        return _ops.collective_reduce(x, *_of(g), root)
    whole = all_reduce(x, op, group)
    return whole if g.rank == root else _ops.full(list(x.shape), 0, x.dtype)


def all_to_all(x: Tensor, group: str = WORLD) -> Tensor:
    """Part j of the first dimension goes to process j; what comes back lies in the processes'
    order."""
    g = member_of(group)
    return _same(x) if g.size == 1 else _ops.all_to_all(x, *_of(g))


def barrier(group: str = WORLD) -> None:
    """Waits until all processes of the group are here."""
    g = member_of(group)
    if g.size > 1:
        _ops.barrier(*_of(g))
