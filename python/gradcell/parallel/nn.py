"""Cells that divide a batch over the stages of a pipeline: in one process, one part after the other."""

from __future__ import annotations

from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments, publish
from gradcell.nn.cell import Cell


class _Parts(Cell):
    """The mean of the network's results for equal parts of the batch."""

    def __init__(self, network: Cell, parts: int) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.parts: int = arguments.integer(parts, type(self).__name__, "parts", 1)

    def construct(self, *inputs: Any) -> Any:
        """The sum of the results of all parts of the inputs' first dimension, over their number."""
        cut = [
            ops.chunk(x, self.parts, 0) if isinstance(x, Tensor) else (x,) * self.parts
            for x in inputs
        ]
        out: Any = None
        for part in zip(*cut, strict=True):
            value = self.network(*part)
            out = value if out is None else _core.ops.add(out, value)
        return _core.ops.div(out, float(self.parts))


class Pipeline(_Parts):
    """A network on micro_size parts of the batch, one after the other, as the stages of a pipeline see
    them: the mean of its results. network: a cell that gives a loss."""

    def __init__(
        self, network: Cell, micro_size: int, stage_config: Any = None, segment_config: Any = None
    ) -> None:
        super().__init__(network, micro_size)
        self.micro_size = micro_size


class GradAccumulation(_Parts):
    """A network on micro_size parts of the batch, whose gradients come together: the mean of its
    results."""

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__(network, micro_size)


class MicroBatchInterleaved(_Parts):
    """A network on interleave_num parts of the batch, one after the other: the mean of its results."""

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(network, interleave_num)


class PipelineGradReducer(Cell):
    """Gradients as they are: there is no other stage to wait for."""

    def __init__(self, parameters: Any, scale_sense: float = 1.0, opt_shard: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.scale_sense = scale_sense

    def construct(self, grads: Any) -> Any:
        """The gradients over the scale."""
        if self.scale_sense == 1.0:
            return grads
        return tuple(_core.ops.div(g, self.scale_sense) for g in grads)


publish(globals())
