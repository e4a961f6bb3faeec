"""Gradients added up over several steps before a network is updated."""

from __future__ import annotations

from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.nn.cell import Cell
from gradcell.nn.optim import Optimizer
from gradcell.ops.composite import MultitypeFuncGraph
from gradcell.tensors.parameter import Parameter, ParameterTuple

__all__ = ["GradientAccumulation", "gradient_accumulation_op", "gradient_clear_op"]

#: (steps, sum so far, gradient): adds gradient / steps to the sum. Returns the sum.
gradient_accumulation_op: MultitypeFuncGraph = MultitypeFuncGraph("gradient_accumulation_op")
#: Sets a sum to zero. Returns it.
gradient_clear_op: MultitypeFuncGraph = MultitypeFuncGraph("gradient_clear_op")


@gradient_accumulation_op.register("Int64", "Tensor", "Tensor")
def _accumulate(steps: int, total: Parameter, gradient: Tensor) -> Tensor:
    ops.assign_add(total, ops.cast(gradient, total.dtype) / steps)
    return total


@gradient_clear_op.register("Tensor")
def _clear(total: Parameter) -> Tensor:
    return ops.assign(total, ops.zeros_like(total))


class GradientAccumulation(Cell):
    """Called with (loss, gradients): updates the network by the gradients' mean at every
    max_accumulation_step-th call.

    max_accumulation_step: a positive int. optimizer: an Optimizer of the network's parameters.
    Returns the loss.
    """

    def __init__(self, max_accumulation_step: int, optimizer: Optimizer) -> None:
        super().__init__()
        name = "max_accumulation_step"
        self._steps = arguments.integer(max_accumulation_step, self.cls_name, name, 1)
        self.optimizer = optimizer
        self.weights: ParameterTuple = optimizer.parameters
        self._grad_accumulation = self.weights.clone(prefix="grad_accumulation", init="zeros")
        self._accumulation_step = Parameter(Tensor(0, _core.int32), name="accumulation_step")

    def construct(self, loss: Any, grads: Any) -> Any:
        for total, gradient in zip(self._grad_accumulation, grads, strict=True):
            gradient_accumulation_op(self._steps, total, gradient)
        ops.assign_add(self._accumulation_step, 1)
        if self._accumulation_step >= self._steps:
            self.optimizer(tuple(self._grad_accumulation))
            for total in self._grad_accumulation:
                gradient_clear_op(total)
            ops.assign(self._accumulation_step, 0)
        return loss
