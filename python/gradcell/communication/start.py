"""The start of processes that share the data: they get the same parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from gradcell._core import Tensor, int32, ops as _ops
from gradcell.base import fail
from gradcell.communication import collectives
from gradcell.communication.engine import processes
from gradcell.communication.sharing import get_auto_parallel_context


def broadcast_parameters(parameters: Iterable[Any], root: int = 0) -> None:
    """Gives all processes the parameters of process `root`: each calls this."""
    for p in parameters:
        if getattr(p, "shards", None) is None:
            p.set_data(collectives.broadcast(p.value(), root))


def _digest(parameters: list[Any]) -> Tensor:
    """A few numbers that distinguish what parameters hold, a row each."""
    rows = []
    for p in parameters:
        data = p.name.encode() + str(p.shape).encode() + p.asnumpy().tobytes()
        rows.append(list(hashlib.blake2b(data, digest_size=6).digest()))
    return Tensor(rows, int32)


def same_parameters(parameters: Iterable[Any]) -> None:
    """Makes sure that all processes begin with the same parameters.

    With parameter_broadcast they take over rank 0's. Else raises RuntimeError, on all processes,
    where one has others: each drew its own, since no seed was set.
    """
    own = [p for p in parameters if getattr(p, "shards", None) is None]
    if get_auto_parallel_context("parameter_broadcast"):
        broadcast_parameters(own)
        return
    mine = _digest(own)
    all_of = collectives.all_gather(_ops.reshape(mine, [1, *mine.shape])).asnumpy()
    for rank in range(processes.world.size):
        differs = (all_of[rank] != all_of[0]).any(-1)
        if differs.any():
            name = own[int(differs.argmax())].name
            fail(
                f"rank {rank} begins with another {name!r} than rank 0: call set_seed with the same number "
                "on all, or set_auto_parallel_context(parameter_broadcast=True)"
            )
