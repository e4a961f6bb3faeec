"""Buckets of gradients, and shares of an optimiser's state, for exchanges between processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value
from gradcell.communication import collectives
from gradcell.communication.comm_func import part_of
from gradcell.communication.management import GlobalComm, member_of
from gradcell.communication.sharing import get_auto_parallel_context

#: Gradients are summed in buckets of so many bytes, the last layers' first: while one is under way
#: the adjoint makes the next.
BUCKET_BYTES = 8 << 20


def _bucket_bytes() -> int:
    """Return the bucket size that comm_fusion sets for all-reduces, else BUCKET_BYTES. Raises
    ValueError."""
    fusion = (get_auto_parallel_context("comm_fusion") or {}).get("allreduce") or {}
    mode = fusion.get("mode", "auto")
    if mode == "size":
        return arguments.integer(fusion.get("config"), "comm_fusion", "config", 1) << 20
    if mode not in ("auto", "index"):
        bad_value(f"comm_fusion: the mode must be auto, size or index, got {mode!r}")
    return BUCKET_BYTES


def _cuts() -> list[int]:
    """The indices of the last gradient of each bucket, where they have been set."""
    fusion = (get_auto_parallel_context("comm_fusion") or {}).get("allreduce") or {}
    if fusion.get("mode") == "index":
        return list(fusion.get("config", ()))
    for name in ("all_reduce_fusion_config", "allreduce_fusion_config"):
        if get_auto_parallel_context(name):
            return list(get_auto_parallel_context(name))
    return []


def buckets(sizes: Sequence[int], dtypes: Sequence[Any]) -> list[list[int]]:
    """Group tensors that are exchanged together: lists of indices, the last tensors first.

    sizes: bytes of each. A bucket has one dtype, and ends where it would grow beyond its size, or at
    the indices that were set. A tensor that fills one is alone, so that it is not copied.
    """
    limit, cuts = _bucket_bytes(), set(_cuts())
    made: list[list[int]] = []
    open_: dict[str, tuple[list[int], int]] = {}  # by dtype: a bucket and its bytes
    for k in reversed(range(len(sizes))):
        name = str(dtypes[k])
        if cuts and k in cuts:
            open_.clear()
        bucket, full = open_.get(name, ([], 0))
        if not bucket or (not cuts and full + sizes[k] > limit):
            bucket, full = [], 0
            made.append(bucket)
        bucket.append(k)
        open_[name] = (bucket, full + sizes[k])
    return made


def joined(tensors: list[Tensor], rows: int) -> Tensor:
    """Tensors as one matrix of so many rows, side by side; one alone as it is, if rows is 1."""
    if rows == 1 and len(tensors) == 1:
        return tensors[0]
    flat = [_ops.reshape(t, [rows, t.size // rows]) for t in tensors]
    return flat[0] if len(flat) == 1 else _ops.concat(flat, 1)


def taken_apart(matrix: Tensor, shapes: list[list[int]], rows: int) -> list[Tensor]:
    """Split the matrix that `joined` made into tensors of the given shapes."""
    if len(shapes) == 1:
        return [_ops.reshape(matrix, shapes[0])]
    parts, at = [], 0
    for shape in shapes:
        width = math.prod(shape) // rows
        parts.append(_ops.reshape(_ops.slice(matrix, [0, at], [rows, width], [1, 1]), shape))
        at += width
    return parts


class StateShards:
    """Shares of an optimiser's parameters among processes: process r keeps and updates part r of
    the first dimension of those that have equal parts and are no smaller than the threshold.

    sharded: a flag for each parameter.
    """

    def __init__(self, parameters: Sequence[Any]) -> None:
        group = member_of(GlobalComm.WORLD_COMM_GROUP)
        self.size: int = group.size
        self.rank: int = group.rank
        config = get_auto_parallel_context("parallel_optimizer_config") or {}
        least = 1024 * int(config.get("parallel_optimizer_threshold", 64))
        self.sharded: list[bool] = [
            bool(p.shape)
            and p.parallel_optimizer
            and p.shape[0] % self.size == 0
            and p.size * p.dtype.itemsize >= max(least, 1)
            for p in parameters
        ]

    def shape(self, k: int, shape: Sequence[int]) -> list[int]:
        """The shape of this process's part of parameter k."""
        return [shape[0] // self.size, *shape[1:]] if self.sharded[k] else list(shape)

    def part(self, k: int, x: Tensor) -> Tensor:
        """This process's part of a tensor of parameter k's shape."""
        return part_of(x, self.size, self.rank) if self.sharded[k] else x

    def scattered(self, reducer: Any, grads: Sequence[Tensor]) -> Any:
        """The gradients over all processes: of parameters that are shared out, this process's
        parts."""
        whole = [g for g, cut in zip(grads, self.sharded, strict=True) if not cut]
        rest = iter(reducer(tuple(whole)) if whole else ())
        out = [None if cut else next(rest) for cut in self.sharded]
        mine = [k for k, cut in enumerate(self.sharded) if cut]
        wide = [reducer.wide(grads[k]) for k in mine]
        sizes = [g.size * g.dtype.itemsize for g in wide]
        for bucket in buckets(sizes, [g.dtype for g in wide]):
            flat = joined([wide[b] for b in bucket], self.size)
            total = reducer.averaged(collectives.reduce_scatter(flat))
            shapes = [self.shape(mine[b], wide[b].shape) for b in bucket]
            for b, part in zip(bucket, taken_apart(total, shapes, 1), strict=True):
                out[mine[b]] = _ops.cast(part, grads[mine[b]].dtype)
        return tuple(out)

    def gathered(self, parts: list[Tensor], shapes: list[list[int]]) -> list[Tensor]:
        """Whole tensors, of these shapes, from all processes' parts of them."""
        out: list[Any] = [None] * len(parts)
        sizes = [p.size * p.dtype.itemsize * self.size for p in parts]
        for bucket in buckets(sizes, [p.dtype for p in parts]):
            flat = _ops.reshape(joined([_row(parts[b]) for b in bucket], 1), [1, -1])
            matrix = collectives.all_gather(flat)
            wholes = taken_apart(matrix, [shapes[b] for b in bucket], self.size)
            for b, whole in zip(bucket, wholes, strict=True):
                out[b] = whole
        return out


def _row(x: Tensor) -> Tensor:
    return _ops.reshape(x, [1, x.size])
