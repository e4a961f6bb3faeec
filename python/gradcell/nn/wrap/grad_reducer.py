"""Gradients of all processes put together: DistributedGradReducer, and the parts of an optimiser that
shares out its state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.communication import collectives
from gradcell.communication.comm_func import part_of
from gradcell.communication.management import GlobalComm, member_of
from gradcell.nn.cell import Cell
from gradcell.parallel._auto_parallel_context import get_auto_parallel_context
from gradcell.parallel._utils import _get_device_num, _get_gradients_mean
from gradcell.parallel.start import same_parameters
from gradcell.parameter import Parameter

_ops = _core.ops
#: Gradients are summed in buckets of so many bytes, the last layers' first: while one is under way
#: the adjoint makes the next.
BUCKET_BYTES = 8 << 20


def _bucket_bytes() -> int:
    """What comm_fusion says of all-reduces, else BUCKET_BYTES. Raises ValueError."""
    fusion = (get_auto_parallel_context("comm_fusion") or {}).get("allreduce") or {}
    mode = fusion.get("mode", "auto")
    if mode == "size":
        return arguments.integer(fusion.get("config"), "comm_fusion", "config", 1) << 20
    if mode not in ("auto", "index"):
        raise ValueError(
            f"comm_fusion: the mode must be auto, size or index, got {mode!r}{where()}"
        )
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
    """Which tensors are exchanged together: lists of indices, the last tensors first.

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


class DistributedGradReducer(Cell):
    """Adds gradients up over all processes; mean: their mean.

    parameters: what the gradients belong to; the first call outside of a transform makes sure that
    all processes have the same. mean: by default gradients_mean of the parallel
    context. degree: what sums are divided by for a mean, by default the number of processes. group:
    the processes.

    Called with a tuple of gradients of any floating dtypes, the same shapes on all processes; returns
    them summed. Gradients of half types are added, and divided, in float32 and rounded once, so that
    sums do not overflow (unless gradient_fp32_sync is False). Small ones are exchanged together, in
    buckets of 8 MB or what comm_fusion says, and the last first, beside the adjoint that makes the
    rest. Raises TypeError and ValueError for arguments that do not fit.
    """

    def __init__(
        self,
        parameters: Any,
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        if degree is not None:
            arguments.integer(degree, "DistributedGradReducer", "degree", 1)
        self.mean = _get_gradients_mean() if mean is None else bool(mean)
        self.degree = _get_device_num() if degree is None else degree
        self.group = group
        self.size = member_of(group).size
        unsure = self.size > 1 and all(isinstance(p, Parameter) for p in parameters)
        object.__setattr__(self, "_unsure", tuple(parameters) if unsure else ())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._unsure and not _core.in_trace():
            same_parameters(self._unsure)
            object.__setattr__(self, "_unsure", ())
        return super().__call__(*args, **kwargs)

    def construct(self, grads: Any) -> Any:
        """The gradients over all processes, as a tuple; one tensor as one."""
        if self.size == 1:
            return grads
        if isinstance(grads, Tensor):
            return self._reduced([grads])[0]
        return tuple(self._reduced(arguments.tensors(grads, "DistributedGradReducer", "grads")))

    def wide(self, g: Tensor) -> Tensor:
        """The gradient in the dtype that it is added up in."""
        half = g.dtype.is_floating and g.dtype.itemsize < 4
        if half and get_auto_parallel_context("gradient_fp32_sync"):
            return _ops.cast(g, _core.float32)
        return g

    def averaged(self, total: Tensor) -> Tensor:
        """The sum, or the mean."""
        return total * (1.0 / self.degree) if self.mean else total

    def _reduced(self, grads: list[Tensor]) -> list[Tensor]:
        wide = [self.wide(g) for g in grads]
        out = list(grads)
        sizes = [g.size * g.dtype.itemsize for g in wide]
        for bucket in buckets(sizes, [g.dtype for g in wide]):
            flat = joined([wide[k] for k in bucket], 1)
            total = self.averaged(collectives.all_reduce(flat, "sum", self.group))
            shapes = [list(wide[k].shape) for k in bucket]
            for k, part in zip(bucket, taken_apart(total, shapes, 1), strict=True):
                out[k] = _ops.cast(part, grads[k].dtype)
        return out


def joined(tensors: list[Tensor], rows: int) -> Tensor:
    """Tensors as one matrix of so many rows, side by side; one alone as it is, if rows is 1."""
    if rows == 1 and len(tensors) == 1:
        return tensors[0]
    flat = [_ops.reshape(t, [rows, t.size // rows]) for t in tensors]
    return flat[0] if len(flat) == 1 else _ops.concat(flat, 1)


def taken_apart(matrix: Tensor, shapes: list[list[int]], rows: int) -> list[Tensor]:
    """What `joined` was made of, by the tensors' shapes."""
    if len(shapes) == 1:
        return [_ops.reshape(matrix, shapes[0])]
    parts, at = [], 0
    for shape in shapes:
        width = math.prod(shape) // rows
        parts.append(_ops.reshape(_ops.slice(matrix, [0, at], [rows, width], [1, 1]), shape))
        at += width
    return parts


class StateShards:
    """How an optimiser's parameters are shared out: process r keeps and updates part r of the first
    dimension of those that have equal parts and are no smaller than the threshold.

    sharded: a flag for each parameter.
    """

    def __init__(self, parameters: Sequence[Any]) -> None:
        group = member_of(GlobalComm.WORLD_COMM_GROUP)
        self.size, self.rank = group.size, group.rank
        config = get_auto_parallel_context("parallel_optimizer_config") or {}
        least = 1024 * int(config.get("parallel_optimizer_threshold", 64))
        self.sharded = [
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

    def scattered(self, reducer: DistributedGradReducer, grads: Sequence[Tensor]) -> Any:
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
