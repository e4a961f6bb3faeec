"""Loss scaling: scalers to call by hand, and managers for Model. The cells that update a scale inside
a training step are in gradcell.nn.

A loss times a scale s has gradients times s, through nested gradients too, since differentiation is
linear in the outermost loss: small gradients leave the range where half types underflow, and are
divided by s before they are used. (Micikevicius et al. 2018, section 3.2.)

A power of two changes no digit of what does not overflow or underflow; any other positive scale is
accepted and costs a rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from gradcell._core import Tensor, float32, int32, ops as _ops
from gradcell.base import arguments, bad_type, tree
from gradcell.nn.cell import Cell
from gradcell.tensors.parameter import Parameter

from gradcell.nn.wrap.scale_update import (  # isort: skip
    FLOOR, DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell, FloorGuard, check_scale, next_scale,
    not_finite,
)  # fmt: skip

__all__ = [
    "DynamicLossScaleManager", "DynamicLossScaler", "FixedLossScaleManager", "LossScaleManager",
    "LossScaler", "StaticLossScaler", "all_finite", "init_status",
]  # fmt: skip

_HALF = ("float16", "bfloat16")


def _times(t: Tensor, factor: Tensor) -> Tensor:
    """t * factor in t's dtype; half types multiply in float32, where the factor is exact."""
    if not t.dtype.is_floating:
        bad_type(f"loss scaling: a tensor of {t.dtype} can be neither scaled nor unscaled")
    if t.dtype.name in _HALF:
        return _ops.cast(_ops.cast(t, float32) * factor, t.dtype)
    return t * _ops.cast(factor, t.dtype)


def all_finite(inputs: Any, status: Any = None) -> Tensor:
    """Return whether every element of a tuple, list or other tree of tensors is finite: a 0-d bool
    Tensor.

    status: what init_status gave; not needed here, where the elements themselves are checked.
    inputs: tensors, in tuples, lists or dicts. Raises ValueError for an empty tree, TypeError for
    anything that is not a tensor.
    """
    return _ops.logical_not(not_finite(inputs))


def init_status() -> Tensor:
    """The start of an overflow check, for all_finite: zeros. It has no effect here."""
    return _ops.full([8], 0.0, float32)


# Scalers ------------------------------------------------------------------------------------------


class LossScaler(ABC):
    """The base class of the loss scalers."""

    @abstractmethod
    def scale(self, inputs: Any) -> Any:
        """A tensor, or a tree of tensors, times the scale."""

    @abstractmethod
    def unscale(self, inputs: Any) -> Any:
        """A tensor, or a tree of tensors, divided by the scale."""

    @abstractmethod
    def adjust(self, grads_finite: Any) -> bool:
        """Adapts the scale to whether the gradients were finite. Returns whether it adapts at all."""


class _Scaler(LossScaler):
    """Scaling by what `scale_value` holds."""

    scale_value: Tensor

    def scale(self, inputs: Any) -> Any:
        """A tensor, or a tree of floating tensors, times the scale, in their dtypes."""
        scale = self.scale_value.value()
        return tree.map_leaves(lambda t: _times(t, scale), inputs)

    def unscale(self, inputs: Any) -> Any:
        """A tensor, or a tree of floating tensors, divided by the scale, in their dtypes."""
        inverse = 1.0 / self.scale_value.value()
        return tree.map_leaves(lambda t: _times(t, inverse), inputs)


class StaticLossScaler(_Scaler):
    """Multiplies losses by a scale that never changes.

    scale_value: at least 1. Raises ValueError below that, for inf and nan, TypeError for anything that is not
    a number.
    """

    def __init__(self, scale_value: float) -> None:
        self._scale = check_scale("StaticLossScaler", "scale_value", scale_value, 1.0)
        self.scale_value: Tensor = Tensor(self._scale, float32)

    def adjust(self, grads_finite: Any) -> bool:
        """False: the scale stays."""
        return False


class DynamicLossScaler(_Scaler):
    """A scale that is divided by scale_factor when gradients overflow, and multiplied by it after
    scale_window steps in a row without an overflow.

    scale_value: the first scale, at least 1, a float32 Parameter from then on. scale_factor:
    greater than 1. scale_window: a positive int. Raises ValueError and TypeError for other values.
    The scale does not fall below 1; when gradients overflow even there, the next call of adjust
    warns, once: on a GPU, for which it does not wait, a call up to 64 later. A compiled function
    that needs no value does not run this code again: call check() after it.
    """

    scale_value: Parameter

    def __init__(self, scale_value: float, scale_factor: float, scale_window: int) -> None:
        owner = "DynamicLossScaler"
        value = check_scale(owner, "scale_value", scale_value, 1.0)
        self.scale_factor: float = arguments.number(scale_factor, owner, "scale_factor", above=1)
        self.scale_window: int = arguments.integer(scale_window, owner, "scale_window", 1)
        self.scale_value: Parameter = Parameter(Tensor(value, float32), "scale_value", False)
        self.counter: Parameter = Parameter(Tensor(0, int32), "counter", False)
        self._guard = FloorGuard(owner)

    def check(self) -> None:
        """Warns, once, if a step has overflowed at a scale of 1. Waits for the last one."""
        self._guard.check()

    def adjust(self, grads_finite: Any) -> bool:
        """Adapts the scale. grads_finite: a bool, or a 0-d bool Tensor as all_finite gives.

        Warns, once, if the gradients overflowed at a scale of 1 in a call before.
        """
        self._guard.look()
        finite = grads_finite if isinstance(grads_finite, Tensor) else Tensor(bool(grads_finite))
        finite = _ops.reshape(finite, [])
        overflow = _ops.logical_not(finite)
        scale, counter = self.scale_value.value(), self.counter.value()
        self._guard.count(overflow, scale)
        grow = _ops.equal(counter, self.scale_window - 1)
        self.scale_value._set_array(next_scale(scale, self.scale_factor, overflow, grow))
        count = ((counter + 1) % self.scale_window) * _ops.cast(finite, int32)
        self.counter._set_array(count)
        return True


# Managers -----------------------------------------------------------------------------------------


class LossScaleManager:
    """The base of what tells Model how to scale the loss."""

    def get_loss_scale(self) -> float:
        """The scale now."""
        raise NotImplementedError

    def update_loss_scale(self, overflow: bool) -> None:
        """Adapts the scale."""
        raise NotImplementedError

    def get_update_cell(self) -> Cell | None:
        """The cell that adapts the scale inside a training step; None: the optimiser divides by the
        scale, and no step is skipped."""
        raise NotImplementedError


class FixedLossScaleManager(LossScaleManager):
    """A loss scale that never changes, for Model. drop_overflow_update: whether steps that overflow
    are skipped; if not, the optimiser must be given the same loss_scale.

    Raises ValueError for a scale that is not at least 1 and finite, TypeError for wrong types.
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        owner = "FixedLossScaleManager"
        arguments.boolean(drop_overflow_update, owner, "drop_overflow_update")
        check_scale(owner, "loss_scale", loss_scale, 1.0)
        self._loss_scale = loss_scale
        self._drop_overflow_update = drop_overflow_update

    def get_loss_scale(self) -> float:
        """The scale."""
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Return whether steps that overflow are skipped."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow: bool) -> None:
        """Does nothing."""

    def get_update_cell(self) -> Cell | None:
        """A FixedLossScaleUpdateCell, or None where no step is to be skipped."""
        if not self._drop_overflow_update:
            return None
        return FixedLossScaleUpdateCell(self._loss_scale)


class DynamicLossScaleManager(LossScaleManager):
    """A scale that adapts as DynamicLossScaleUpdateCell's does; its arguments and errors.

    init_loss_scale: the scale at the beginning. scale_factor: the factor by which the scale grows
    or falls. scale_window: after how many steps without overflow it grows.
    """

    def __init__(
        self, init_loss_scale: float = 2**24, scale_factor: float = 2, scale_window: int = 2000
    ) -> None:
        owner = "DynamicLossScaleManager"
        self.loss_scale: float = check_scale(owner, "init_loss_scale", init_loss_scale, FLOOR)
        arguments.number(scale_factor, owner, "scale_factor", above=1)
        self.scale_window: int = arguments.integer(scale_window, owner, "scale_window", 1)
        self.increase_ratio = scale_factor
        self.cur_iter: int = 1
        self.last_overflow_iter: int = 0

    def get_loss_scale(self) -> float:
        """The scale now."""
        return self.loss_scale

    def get_drop_overflow_update(self) -> bool:
        """True: steps that overflow are skipped."""
        return True

    def update_loss_scale(self, overflow: bool) -> None:
        """Adapts the scale on the host, by the rule of the update cell."""
        if overflow:
            self.loss_scale = max(self.loss_scale / self.increase_ratio, FLOOR)
            self.last_overflow_iter = self.cur_iter
        elif self.cur_iter - self.last_overflow_iter >= self.scale_window:
            self.loss_scale *= self.increase_ratio
            self.last_overflow_iter = self.cur_iter
        self.cur_iter += 1

    def get_update_cell(self) -> Cell:
        """A DynamicLossScaleUpdateCell that starts with the scale now."""
        return DynamicLossScaleUpdateCell(self.loss_scale, self.increase_ratio, self.scale_window)
