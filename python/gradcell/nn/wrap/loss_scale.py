"""The training step with loss scaling."""

from __future__ import annotations

from typing import Any

from gradcell import _core, context
from gradcell._core import Tensor, ops as _ops
from gradcell.base import bad_type, bad_value
from gradcell.communication import collectives
from gradcell.derivatives.overflow import locate_overflow, values_of, warn_of
from gradcell.nn.cell import Cell
from gradcell.nn.optim import Optimizer
from gradcell.nn.wrap.cell_wrapper import TrainOneStepCell
from gradcell.nn.wrap.scale_update import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    check_scale,
    not_finite,
)
from gradcell.ops.random.state import random_state, set_random_state
from gradcell.tensors.parameter import Parameter

__all__ = [
    "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "TrainOneStepWithLossScaleCell",
]  # fmt: skip


def unless(skip: Tensor, cell: Cell, *inputs: Any) -> Any:
    """cell(*inputs), with its parameters left as they were where skip, a 0-d bool tensor, is true.

    A select for each parameter assigned: nothing is read on the host.
    """
    before = [(p, p.value()) for p in cell.get_parameters()]
    out = cell(*inputs)
    for p, old in before:
        p._set_array(_ops.where(skip, old, p.value()))
    return out


def overflow_anywhere(overflow: Tensor) -> Tensor:
    """Return whether a process overflows, where each has looked at its part of the gradients."""
    counted = collectives.all_reduce(_ops.cast(overflow, _core.int32), "max")
    return _ops.cast(counted, _core.bool)


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One training step with loss scaling: a step whose gradients overflow changes no parameter.

    scale_sense: a FixedLossScaleUpdateCell or DynamicLossScaleUpdateCell, or a Tensor of one
    element with the scale. The scale is a float32 Parameter, `scale_sense`.

    Called with the network's inputs; returns (loss, overflow, scale after the step). The decision
    is a select of the step's own plan: no value is read on the host. Subclasses may define
    construct from start_overflow_check, grad, hyper_map, get_overflow_status and
    process_loss_scale.

    Raises TypeError for wrong types, ValueError for a scale that is not positive, finite and a
    normal number of float32. Warns, once, of an overflow at the smallest dynamic scale, on a GPU up
    to 64 calls later.
    """

    def __init__(self, network: Cell, optimizer: Optimizer, scale_sense: Any) -> None:
        super().__init__(network, optimizer)
        self.loss_scaling_manager: Any = None
        if isinstance(scale_sense, Cell) and hasattr(scale_sense, "get_loss_scale"):
            self.loss_scaling_manager = scale_sense
            value = Tensor(float(scale_sense.get_loss_scale()), _core.float32)
        elif isinstance(scale_sense, Tensor):
            value = self._checked(scale_sense)
        else:
            bad_type(
                f"For '{self.cls_name}', the 'scale_sense' must be Cell or Tensor, but got 'scale_sense' "
                f"type: {type(scale_sense)}."
            )
        self.scale_sense: Parameter = Parameter(value, name="scale_sense", requires_grad=False)

    def _checked(self, scale: Tensor) -> Tensor:
        if tuple(scale.shape) not in ((), (1,)):
            bad_value(
                f"For '{self.cls_name}', the shape of 'scale_sense' must be (1,) or (), but got "
                f"{tuple(scale.shape)}"
            )
        check_scale(self.cls_name, "scale_sense", float(scale.asnumpy().reshape(())))
        return _ops.cast(scale, _core.float32)

    def set_sense_scale(self, sens: Tensor) -> None:
        """Sets the scale. Raises TypeError unless sens is a Tensor, ValueError for a bad scale."""
        if not isinstance(sens, Tensor):
            bad_type(f"For '{self.cls_name}', the input type must be Tensor, but got {type(sens)}")
        value = sens if _core.in_trace() else self._checked(sens)
        self.scale_sense.set_data(_ops.reshape(value, list(self.scale_sense.shape)))

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """(status, compute_input): where overflow detection starts; the gradients themselves are
        checked, so nothing has to be cleared."""
        return None, compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Return whether compute_output, gradients, contains inf or nan: a 0-d bool tensor."""
        return not_finite(compute_output)

    def process_loss_scale(self, overflow: Tensor) -> Tensor:
        """Lets the update cell adapt the scale. Returns overflow."""
        if self.loss_scaling_manager is not None:
            return self.loss_scaling_manager(self.scale_sense, overflow)  # type: ignore[no-any-return]
        return overflow

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        look = getattr(self.loss_scaling_manager, "look_at_floor", None)
        if look is not None:
            look()
        if not context.get_context("locate_overflow") or _core.in_trace():
            return super().__call__(*args, **kwargs)
        return self._watched(args, kwargs)

    def _watched(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step; if it overflows, it is run again to name the op, in a warning."""
        before = values_of(self.get_parameters())
        random = random_state()
        out = super().__call__(*args, **kwargs)
        if isinstance(out, tuple) and len(out) > 1 and bool(out[1]):
            after, random_after = values_of(self.get_parameters()), random_state()
            for p, value in before:
                p.set_data(value)
            set_random_state(random)
            try:
                warn_of(locate_overflow(self._gradients_only, *args, **kwargs))
            finally:
                for p, value in after:
                    p.set_data(value)
                set_random_state(random_after)
        return out

    def _gradients_only(self, *inputs: Any) -> Any:
        scale = _ops.reshape(self.scale_sense.value(), [])
        return self.value_and_gradients(scale, inputs)

    def construct(self, *inputs: Any) -> Any:
        """Makes the step, unless it overflows."""
        scale = self.scale_sense.value()
        loss, grads = self.value_and_gradients(_ops.reshape(scale, []), inputs)
        inverse = 1.0 / _ops.reshape(scale, [])
        # In float32 at least: what the scale kept from underflowing must not do so now.
        grads = tuple(_unscaled(g, inverse) for g in grads)
        grads = self.reduced(grads)
        overflow = self.get_overflow_status(None, grads)
        if self.reducer_flag and getattr(self.optimizer, "shards", None) is not None:
            overflow = overflow_anywhere(overflow)
        overflow = self.process_loss_scale(overflow)
        unless(overflow, self.optimizer, grads)
        return loss, overflow, self.scale_sense.value()


def _unscaled(g: Tensor, inverse: Tensor) -> Tensor:
    return g * inverse  # float16 times float32 is float32
