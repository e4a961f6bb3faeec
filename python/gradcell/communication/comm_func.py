"""Collective operations among the processes of a group: here a group of one.

In a group of one a sum, a maximum or a gathering of all parts is the part itself. What needs a partner
(send, receive) says that there is none.
"""

from __future__ import annotations

from typing import Any, NoReturn

from gradcell import _core
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.communication.management import GlobalComm, _check_group

__all__ = [
    "all_gather_into_tensor", "all_reduce", "all_to_all_single_with_output_shape", "barrier",
    "broadcast", "gather_into_tensor", "irecv", "isend", "recv", "reduce", "reduce_scatter_tensor",
    "scatter_tensor", "send",
]  # fmt: skip

_WORLD = GlobalComm.WORLD_COMM_GROUP


def _alone(tensor: Any, group: str) -> Tensor:
    _check_group(group)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"For collectives, the input must be Tensor, got {type(tensor)}{where()}")
    return _core.ops.reshape(tensor, list(tensor.shape))


def _answer(out: Tensor, async_op: bool) -> Any:
    """The result and a handle: None, as everything is done."""
    return out, None


def all_reduce(tensor: Tensor, op: str = "sum", group: str = _WORLD, async_op: bool = False) -> Any:
    """(the sum, maximum or the like over all processes, a handle): the tensor's own elements, None."""
    return _answer(_alone(tensor, group), async_op)


def all_gather_into_tensor(tensor: Tensor, group: str = _WORLD, async_op: bool = False) -> Any:
    """(the tensors of all processes along the first dimension, a handle)."""
    return _answer(_alone(tensor, group), async_op)


def reduce_scatter_tensor(
    tensor: Tensor, op: str = "sum", group: str = _WORLD, async_op: bool = False
) -> Any:
    """(this process's part of the sum over all processes, a handle): all of it."""
    return _answer(_alone(tensor, group), async_op)


def reduce(tensor: Tensor, dst: int, op: str = "sum", group: str = _WORLD) -> Tensor:
    """The sum over all processes, in process dst."""
    return _alone(tensor, group)


def broadcast(tensor: Tensor, src: int = 0, group: str = _WORLD) -> Tensor:
    """The tensor of process src."""
    return _alone(tensor, group)


def scatter_tensor(tensor: Tensor, src: int = 0, group: str = _WORLD) -> Tensor:
    """This process's part of the tensor of process src: all of it."""
    return _alone(tensor, group)


def gather_into_tensor(tensor: Tensor, dst: int = 0, group: str = _WORLD) -> Tensor:
    """The tensors of all processes along the first dimension, in process dst."""
    return _alone(tensor, group)


def all_to_all_single_with_output_shape(
    output_shape: Any, tensor: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None,
    group: str = _WORLD, async_op: bool = False,
) -> Any:  # fmt: skip
    """(parts exchanged among all processes, a handle)."""
    return _answer(_core.ops.reshape(_alone(tensor, group), list(output_shape)), async_op)


def barrier(group: str = _WORLD) -> None:
    """Waits until all processes are here."""
    _check_group(group)


def _no_partner(what: str) -> NoReturn:
    raise RuntimeError(f"{what}: there is one process, and nobody to talk to{where()}")


def send(tensor: Tensor, dst: int = 0, group: str = _WORLD, tag: int = 0) -> NoReturn:
    """Raises RuntimeError: there is no other process."""
    _no_partner("send")


def recv(tensor: Tensor, src: int = 0, group: str = _WORLD, tag: int = 0) -> NoReturn:
    """Raises RuntimeError: there is no other process."""
    _no_partner("recv")


def isend(tensor: Tensor, dst: int = 0, group: str = _WORLD, tag: int = 0) -> NoReturn:
    """Raises RuntimeError: there is no other process."""
    _no_partner("isend")


def irecv(tensor: Tensor, src: int = 0, group: str = _WORLD, tag: int = 0) -> NoReturn:
    """Raises RuntimeError: there is no other process."""
    _no_partner("irecv")


def __dir__() -> list[str]:
    return sorted(__all__)
