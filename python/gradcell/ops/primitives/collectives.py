"""Collective operations as ops: AllReduce()(x) and the like, with derivatives of any order."""

from __future__ import annotations

from typing import Any

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value
from gradcell.communication import collectives
from gradcell.communication.management import GlobalComm, _check_group, member_of
from gradcell.ops.primitive import Primitive

__all__ = [
    "AllGather", "AllReduce", "AlltoAll", "Barrier", "Broadcast", "Reduce", "ReduceOp",
    "ReduceScatter", "_VirtualDataset",
]  # fmt: skip

_WORLD = GlobalComm.WORLD_COMM_GROUP


class ReduceOp:
    """The ways in which a collective operation combines the parts."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


class _Collective(Primitive):
    """A collective operation among the processes of `group`."""

    def __init__(self, group: str = _WORLD, **attributes: Any) -> None:
        _check_group(group)
        super().__init__(type(self).__name__, group=group, **attributes)
        self.group = group

    def __call__(self, input_x: Any) -> Any:
        """The collective of a tensor, or of each of a tuple of tensors."""
        if isinstance(input_x, (tuple, list)):
            return tuple(self._one(x) for x in arguments.tensors(input_x, self.name, "input_x"))
        return self._one(arguments.tensor(input_x, self.name, "input_x"))

    def _one(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class _Reduction(_Collective):
    def __init__(self, op: str = ReduceOp.SUM, group: str = _WORLD) -> None:
        arguments.one_of(op, ("sum", "max", "min", "prod"), type(self).__name__, "op")
        super().__init__(group, op=op)
        self.op = op


class AllReduce(_Reduction):
    """The sum (or another op) over all processes. Of half types the parts are added in float32 and
    rounded once; a NaN in any process's part gives a NaN in the result.

    Adjoints: the sum of all processes' cotangents; for max and min where the input is the result
    (everywhere it is, if several are), for prod times the product of the others' inputs, which are
    gathered.
    """

    def _one(self, x: Tensor) -> Tensor:
        return collectives.all_reduce(x, self.op, self.group)


class ReduceScatter(_Reduction):
    """This process's part, along the first dimension, of the sum (or another op) over all
    processes. Raises ValueError where that dimension is not a multiple of their number.
    """

    def _one(self, x: Tensor) -> Tensor:
        return collectives.reduce_scatter(x, self.op, self.group)


class AllGather(_Collective):
    """Joins the inputs of all processes along the first dimension."""

    def _one(self, x: Tensor) -> Tensor:
        return collectives.all_gather(x, self.group)


class _Rooted(_Collective):
    def __init__(self, root: Any, name: str, group: str, **attributes: Any) -> None:
        owner = type(self).__name__
        size = member_of(group).size
        if not 0 <= arguments.integer(root, owner, name) < size:
            bad_value(
                f"{owner}: {name} must be from 0 to {size - 1}, the last of {size} processes, but got {root}"
            )
        super().__init__(group, **{name: root}, **attributes)
        self.root = root


class Broadcast(_Rooted):
    """The input of process root_rank, by its number in the group. A tuple gives a tuple."""

    def __init__(self, root_rank: int, group: str = _WORLD) -> None:
        super().__init__(root_rank, "root_rank", group)

    def _one(self, x: Tensor) -> Tensor:
        return collectives.broadcast(x, self.root, self.group)


class Reduce(_Rooted):
    """The sum (or another op) over all processes, in process dest_rank; zeros in the others."""

    def __init__(self, dest_rank: int, op: str = ReduceOp.SUM, group: str = _WORLD) -> None:
        arguments.one_of(op, ("sum", "max", "min", "prod"), "Reduce", "op")
        super().__init__(dest_rank, "dest_rank", group, op=op)
        self.op = op

    def _one(self, x: Tensor) -> Tensor:
        return collectives.reduce(x, self.root, self.op, self.group)


class AlltoAll(_Collective):
    """Sends one part along split_dim to each process, and joins the parts received along concat_dim.

    split_count: the number of processes. split_dim: the dimension along which the input is cut.
    concat_dim: the dimension along which parts are joined. Raises ValueError for another, and where
    the dimension is not a multiple of it.
    """

    def __init__(
        self, split_count: int, split_dim: int, concat_dim: int, group: str = _WORLD
    ) -> None:
        size = member_of(group).size
        if arguments.integer(split_count, "AlltoAll", "split_count") != size:
            bad_value(
                f"AlltoAll: split_count must be {size}, the number of processes, but got {split_count}"
            )
        super().__init__(group, split_count=split_count, split_dim=split_dim, concat_dim=concat_dim)
        self.split_count = split_count
        self.split_dim: int = arguments.integer(split_dim, "AlltoAll", "split_dim")
        self.concat_dim: int = arguments.integer(concat_dim, "AlltoAll", "concat_dim")

    def _one(self, x: Tensor) -> Tensor:
        split = arguments.axis_of(self.split_dim, x.ndim, "AlltoAll", "split_dim")
        joined = arguments.axis_of(self.concat_dim, x.ndim, "AlltoAll", "concat_dim")
        if self.split_count == 1:
            return collectives.all_to_all(x, self.group)
        if x.shape[split] % self.split_count:
            bad_value(
                f"AlltoAll: dimension {split} of shape {list(x.shape)} is not a multiple of "
                f"{self.split_count}, the number of processes"
            )
        parts = _ops.concat(_pieces(x, self.split_count, split), 0)
        back = collectives.all_to_all(parts, self.group)
        return _ops.concat(_pieces(back, self.split_count, 0), joined)


def _pieces(x: Tensor, count: int, axis: int) -> list[Tensor]:
    """Equal parts along an axis."""
    size = list(x.shape)
    size[axis] //= count
    made = []
    for k in range(count):
        start = [0] * x.ndim
        start[axis] = k * size[axis]
        made.append(_ops.slice(x, start, size, [1] * x.ndim))
    return made


class Barrier(_Collective):
    """Waits until all processes of the group have arrived."""

    def __call__(self) -> None:  # type: ignore[override]
        """Returns when they are; in a graph, its place among the collectives."""
        collectives.barrier(self.group)


class _VirtualDataset(_Collective):
    """The place at which MindSpore divides a batch: inputs as they are."""

    def __call__(self, *inputs: Tensor) -> Any:
        """The inputs."""
        return inputs[0] if len(inputs) == 1 else inputs
