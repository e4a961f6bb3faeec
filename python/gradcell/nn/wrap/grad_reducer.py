"""Gradients of all processes put together."""

from __future__ import annotations

from typing import Any

from gradcell._core import Tensor, float32, in_trace, ops as _ops
from gradcell.base import arguments
from gradcell.communication import collectives
from gradcell.communication.buckets import buckets, joined, taken_apart
from gradcell.communication.management import GlobalComm, member_of
from gradcell.communication.sharing import (
    _get_device_num,
    _get_gradients_mean,
    get_auto_parallel_context,
)
from gradcell.communication.start import same_parameters
from gradcell.nn.cell import Cell
from gradcell.tensors.parameter import Parameter


class DistributedGradReducer(Cell):
    """Adds gradients up over all processes; mean: their mean.

    parameters: what the gradients belong to; the first call outside of a transform makes sure that
    all processes have the same. mean: by default gradients_mean of the parallel
    context. degree: what sums are divided by for a mean, by default the number of processes. group:
    the processes.

    Called with a tuple of gradients of any floating dtypes, the same shapes on all processes;
    returns them summed. Gradients of half types are added, and divided, in float32 and rounded
    once, so that sums do not overflow (unless gradient_fp32_sync is False). Small ones are
    exchanged together, in buckets of 8 MB or what comm_fusion says, and the last first, beside the
    adjoint that makes the rest. fusion_type has no effect. Raises TypeError and ValueError for
    incompatible arguments.
    """

    def __init__(
        self, parameters: Any, mean: bool | None = None, degree: int | None = None,
        fusion_type: int = 1, group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:  # fmt: skip
        super().__init__(auto_prefix=False)
        if degree is not None:
            arguments.integer(degree, "DistributedGradReducer", "degree", 1)
        self.mean: bool = _get_gradients_mean() if mean is None else bool(mean)
        self.degree: int = _get_device_num() if degree is None else degree
        self.group = group
        self.size: int = member_of(group).size
        unsure = self.size > 1 and all(isinstance(p, Parameter) for p in parameters)
        object.__setattr__(self, "_unsure", tuple(parameters) if unsure else ())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._unsure and not in_trace():
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
            return _ops.cast(g, float32)
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
