"""Collective operations among the processes of a group, and messages from one to another.

Collectives are nodes: they have derivatives, and run inside transforms. With async_op they give a
handle too, whose wait() has nothing left to do: outside a transform a call waits, and in a plan a
collective runs beside whatever does not need it. Messages (send, recv) have no derivative.
"""

from __future__ import annotations

import math
from typing import Any

from gradcell._core import Tensor, in_trace, int32, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, fail, with_tensors
from gradcell.communication import collectives
from gradcell.communication.collectives import REDUCTIONS
from gradcell.communication.management import GlobalComm, member_of

__all__ = [
    "all_gather_into_tensor", "all_reduce", "all_to_all_single_with_output_shape", "barrier",
    "broadcast", "gather_into_tensor", "irecv", "isend", "recv", "reduce", "reduce_scatter_tensor",
    "scatter_tensor", "send",
]  # fmt: skip
__dir__ = sorted(__all__).copy

_WORLD = GlobalComm.WORLD_COMM_GROUP


class Handle:
    """Of a collective that was asked for with async_op."""

    def wait(self) -> None:
        """Returns when it is done: at once."""


def _tensor(tensor: Any) -> Tensor:
    tensor = with_tensors(tensor)
    if not isinstance(tensor, Tensor):
        bad_type(f"For collectives, the input must be Tensor, got {type(tensor)}")
    return tensor


def _answer(out: Tensor, async_op: bool) -> Any:
    return out, Handle() if async_op else None


def _op(op: str, owner: str) -> str:
    return str(arguments.one_of(op, tuple(REDUCTIONS), owner, "op"))


def _rank(rank: Any, owner: str, name: str, group: str) -> int:
    """A process by its number in the group. Raises TypeError, ValueError."""
    size = member_of(group).size
    if arguments.integer(rank, owner, name, 0) >= size:
        bad_value(f"{owner}: {name} is {rank}, but the group has {size} processes")
    return int(rank)


def all_reduce(tensor: Tensor, op: str = "sum", group: str = _WORLD, async_op: bool = False) -> Any:
    """(the sum, maximum, minimum or product over all processes, a handle)."""
    return _answer(collectives.all_reduce(_tensor(tensor), _op(op, "all_reduce"), group), async_op)


def all_gather_into_tensor(tensor: Tensor, group: str = _WORLD, async_op: bool = False) -> Any:
    """(the tensors of all processes along the first dimension, a handle)."""
    return _answer(collectives.all_gather(_tensor(tensor), group), async_op)


def reduce_scatter_tensor(
    tensor: Tensor, op: str = "sum", group: str = _WORLD, async_op: bool = False
) -> Any:
    """(this process's part of the sum over all processes, a handle)."""
    op = _op(op, "reduce_scatter_tensor")
    return _answer(collectives.reduce_scatter(_tensor(tensor), op, group), async_op)


def reduce(tensor: Tensor, dst: int, op: str = "sum", group: str = _WORLD) -> Tensor:
    """The sum over all processes, in process dst; zeros in the others."""
    dst = _rank(dst, "reduce", "dst", group)
    return collectives.reduce(_tensor(tensor), dst, _op(op, "reduce"), group)


def broadcast(tensor: Tensor, src: int = 0, group: str = _WORLD) -> Tensor:
    """The tensor of process src."""
    return collectives.broadcast(_tensor(tensor), _rank(src, "broadcast", "src", group), group)


def scatter_tensor(tensor: Tensor, src: int = 0, group: str = _WORLD) -> Tensor:
    """This process's part, along the first dimension, of the tensor of process src."""
    g = member_of(group)
    whole = broadcast(tensor, src, group)
    if not whole.ndim or whole.shape[0] % g.size:
        bad_value(
            f"scatter_tensor: the first dimension of shape {list(whole.shape)} is not a multiple of "
            f"{g.size}, the number of processes"
        )
    return part_of(whole, g.size, g.rank)


def part_of(x: Tensor, size: int, rank: int) -> Tensor:
    """The part of a tensor's first dimension that is process `rank`'s of `size`."""
    rows = x.shape[0] // size
    start, extent = [0] * x.ndim, [rows, *x.shape[1:]]
    start[0] = rank * rows
    return _ops.slice(x, start, extent, [1] * x.ndim)


def gather_into_tensor(tensor: Tensor, dst: int = 0, group: str = _WORLD) -> Tensor:
    """The tensors of all processes along the first dimension, in process dst; its shape in zeros in
    the others."""
    dst = _rank(dst, "gather_into_tensor", "dst", group)
    whole = collectives.all_gather(_tensor(tensor), group)
    mine = member_of(group).rank == dst
    return whole if mine else _ops.full(list(whole.shape), 0, whole.dtype)


def all_to_all_single_with_output_shape(
    output_shape: Any, tensor: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None,
    group: str = _WORLD, async_op: bool = False,
) -> Any:  # fmt: skip
    """(parts of the first dimension exchanged among all processes, a handle).

    Without split sizes the parts are equal. With them, part j of input_split_sizes[j] rows goes to
    process j, and output_split_sizes[j] rows come from it. Raises ValueError for sizes that do not
    add up to the rows, or do not give output_shape.
    """
    owner, x, g = "all_to_all_single_with_output_shape", _tensor(tensor), member_of(group)
    shape = list(output_shape.shape if isinstance(output_shape, Tensor) else output_shape)
    if g.size == 1 or (input_split_sizes is None and output_split_sizes is None):
        return _answer(_ops.reshape(collectives.all_to_all(x, group), shape), async_op)
    given = _sizes(input_split_sizes, x.shape[0], g.size, owner, "input_split_sizes")
    had = _sizes(output_split_sizes, shape[0], g.size, owner, "output_split_sizes")
    # Equal parts, the longest of any process, with what is too much left out behind.
    most = Tensor(max(*given, *had), int32)
    longest = int(collectives.all_reduce(most, "max", group).asnumpy())
    rest, parts, at = list(x.shape[1:]), [], 0
    for rows in given:
        part = _ops.slice(x, [at, *[0] * len(rest)], [rows, *rest], [1] * x.ndim)
        parts.append(_ops.slice_scatter(part, [longest, *rest], [0] * x.ndim, [1] * x.ndim))
        at += rows
    back = collectives.all_to_all(_ops.concat(parts, 0), group)
    pieces = [
        _ops.slice(back, [j * longest, *[0] * len(rest)], [rows, *rest], [1] * x.ndim)
        for j, rows in enumerate(had)
    ]
    return _answer(_ops.reshape(_ops.concat(pieces, 0), shape), async_op)


def _sizes(given: Any, rows: int, size: int, owner: str, name: str) -> list[int]:
    if given is None:
        if rows % size:
            bad_value(f"{owner}: {rows} rows are not a multiple of {size} processes")
        return [rows // size] * size
    sizes = [arguments.integer(n, owner, name, 0) for n in given]
    if len(sizes) != size or sum(sizes) != rows:
        bad_value(
            f"{owner}: {name} {sizes} must be one number for each of {size} processes, {rows} rows in all"
        )
    return sizes


def barrier(group: str = _WORLD) -> None:
    """Waits until all processes of the group are here."""
    collectives.barrier(group)


# Messages ----------------------------------------------------------------------------------------


def _partner(owner: str, rank: Any, name: str, group: str) -> tuple[Any, int]:
    """(mpi4py's communicator, the process). Raises RuntimeError where there is nobody else."""
    g = member_of(group)
    if g.size == 1:
        fail(f"{owner}: there is only one process, no other process to talk to")
    if in_trace():
        fail(
            f"{owner}: messages cannot be part of a graph; exchange in collectives, or outside of the "
            "function that is transformed"
        )
    other = _rank(rank, owner, name, group)
    if other == g.rank:
        bad_value(f"{owner}: {name} is this process itself")
    return g.comm[0], other


class MessageHandle(Handle):
    """Of a message under way."""

    def __init__(self, request: Any, array: Any, into: Tensor | None) -> None:
        self._request, self._array, self._into = request, array, into

    def wait(self) -> None:
        """Returns when the message has arrived, or its memory may be used again."""
        self._request.Wait()
        if self._into is not None:
            self._into.assign_value(Tensor(self._array, self._into.dtype))


def _message(owner: str, tensor: Any, rank: Any, name: str, group: str, tag: int) -> MessageHandle:
    comm, other = _partner(owner, rank, name, group)
    array = _tensor(tensor).asnumpy().copy()
    shape = list(array.shape)
    data = array.reshape(-1).view("uint8") if math.prod(shape) else array.astype("uint8")
    arguments.integer(tag, owner, "tag", 0)
    tag += 32768  # (lower ones are the engine's own)
    if "send" in owner:
        return MessageHandle(comm.Isend(data, other, tag), array, None)
    return MessageHandle(comm.Irecv(data, other, tag), array, tensor)


def isend(tensor: Tensor, dst: int = 0, group: str = _WORLD, tag: int = 0) -> MessageHandle:
    """Begins to send a tensor to process dst; the handle's wait() returns when it is on its way."""
    return _message("isend", tensor, dst, "dst", group, tag)


def irecv(tensor: Tensor, src: int = 0, group: str = _WORLD, tag: int = 0) -> MessageHandle:
    """Begins to receive from process src into `tensor`, which has the message's shape and dtype."""
    return _message("irecv", tensor, src, "src", group, tag)


def send(tensor: Tensor, dst: int = 0, group: str = _WORLD, tag: int = 0) -> None:
    """Sends a tensor to process dst. Raises RuntimeError where there is no other process."""
    _message("send", tensor, dst, "dst", group, tag).wait()


def recv(tensor: Tensor, src: int = 0, group: str = _WORLD, tag: int = 0) -> Tensor:
    """Receives from process src into `tensor`, and returns it. Raises RuntimeError where there is no
    other process."""
    _message("recv", tensor, src, "src", group, tag).wait()
    return tensor
