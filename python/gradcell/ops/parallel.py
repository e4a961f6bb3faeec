"""Collective operations as ops: in a group of one process, each is its input."""

from __future__ import annotations

from typing import Any

from gradcell import arguments
from gradcell._core import Tensor
from gradcell._core import ops as _ops
from gradcell._location import where
from gradcell.communication.management import GlobalComm, _check_group
from gradcell.ops.primitive import Primitive


class ReduceOp:
    """How a collective operation puts parts together."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


class _Collective(Primitive):
    """A collective operation: `group` has one process, so that all parts together are the input."""

    def __init__(self, group: str = GlobalComm.WORLD_COMM_GROUP, **attributes: Any) -> None:
        _check_group(group)
        super().__init__(type(self).__name__, group=group, **attributes)
        self.group = group

    def __call__(self, input_x: Any) -> Any:
        """The input itself, or a tuple of tensors as it is."""
        if isinstance(input_x, (tuple, list)):
            return tuple(arguments.tensors(input_x, self.name, "input_x"))
        x = arguments.tensor(input_x, self.name, "input_x")
        return _ops.reshape(x, list(x.shape))


class _Reduction(_Collective):
    def __init__(self, op: str = ReduceOp.SUM, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        arguments.one_of(op, ("sum", "max", "min", "prod"), type(self).__name__, "op")
        super().__init__(group, op=op)


class AllReduce(_Reduction):
    """The sum (or what op says) over all processes."""


class ReduceScatter(_Reduction):
    """This process's part of the sum over all processes."""


class AllGather(_Collective):
    """The inputs of all processes, along the first dimension."""


class Broadcast(_Collective):
    """The input of process root_rank."""

    def __init__(self, root_rank: int, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        if arguments.integer(root_rank, "Broadcast", "root_rank") != 0:
            raise ValueError(f"Broadcast: root_rank must be 0, the only process{where()}")
        super().__init__(group, root_rank=root_rank)


class AlltoAll(_Collective):
    """Parts along split_dim exchanged among split_count processes: one."""

    def __init__(
        self, split_count: int, split_dim: int, concat_dim: int,
        group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:  # fmt: skip
        if arguments.integer(split_count, "AlltoAll", "split_count") != 1:
            raise ValueError(f"AlltoAll: split_count must be 1, the number of processes{where()}")
        super().__init__(group, split_count=split_count, split_dim=split_dim, concat_dim=concat_dim)


class _VirtualDataset(_Collective):
    """What MindSpore divides a batch at: inputs as they are."""

    def __call__(self, *inputs: Tensor) -> Any:
        """The inputs."""
        return inputs[0] if len(inputs) == 1 else inputs
