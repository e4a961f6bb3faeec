"""Loss scaling: scalers to call by hand, the cells that update a scale inside a training step, and
managers for Model.

A loss times a scale s has gradients times s, through nested gradients too, since differentiation is
linear in the outermost loss: small gradients leave the range where half types underflow, and are
divided by s before they are used. (Micikevicius et al. 2018, section 3.2.)

A power of two changes no digit of what does not overflow or underflow; any other positive scale is
accepted and costs a rounding.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

from gradcell import _core, tree
from gradcell._core import Tensor
from gradcell._location import where as _where
from gradcell.nn.cell import Cell
from gradcell.parameter import Parameter

_ops = _core.ops
_HALF = ("float16", "bfloat16")
#: No dynamic scale goes below this.
FLOOR = 1.0


def check_scale(owner: str, name: str, value: Any, least: float = 0.0) -> float:
    """value as a float. Raises TypeError if it is no number, ValueError unless it is finite,
    positive, not below `least` and within float32."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(
            f"For '{owner}', the '{name}' must be a number, but got "
            f"{type(value).__name__}{_where()}"
        )
    if not (math.isfinite(value) and value > 0 and value >= least and value < 3.4e38):
        wanted = f"finite and at least {least:g}" if least else "finite and greater than 0"
        raise ValueError(
            f"For '{owner}', the argument '{name}' must be {wanted}, but got {value}{_where()}"
        )
    return float(value)


def check_window(owner: str, value: Any) -> int:
    """A number of steps. Raises TypeError if it is no int, ValueError unless it is positive."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(
            f"For '{owner}', the 'scale_window' must be an int, but got "
            f"{type(value).__name__}{_where()}"
        )
    if value <= 0:
        raise ValueError(
            f"For '{owner}', the argument 'scale_window' must be > 0, but got {value}{_where()}"
        )
    return value


def check_factor(owner: str, value: Any) -> float:
    """What a scale is multiplied and divided by. Raises ValueError unless it is greater than 1."""
    factor = check_scale(owner, "scale_factor", value)
    if factor <= 1:
        raise ValueError(
            f"For '{owner}', the argument 'scale_factor' must be > 1, but got {value}{_where()}"
        )
    return factor


def _times(t: Tensor, factor: Tensor) -> Tensor:
    """t * factor in t's dtype; half types multiply in float32, where the factor is exact."""
    if not t.dtype.is_floating:
        raise TypeError(
            f"loss scaling: a tensor of {t.dtype} can be neither scaled nor unscaled{_where()}"
        )
    if t.dtype.name in _HALF:
        return _ops.cast(_ops.cast(t, _core.float32) * factor, t.dtype)
    return t * _ops.cast(factor, t.dtype)


def not_finite(inputs: Any) -> Tensor:
    """Whether a tree of tensors holds inf or nan: a 0-d bool tensor, a node inside a trace.

    Raises ValueError for a tree without tensors, TypeError for one that is not of tensors.
    """
    leaves = tree.leaves(inputs)
    if not leaves:
        kind = ValueError if isinstance(inputs, (tuple, list, dict)) else TypeError
        raise kind(f"all_finite: expected tensors, got {inputs!r}{_where()}")
    bad: Tensor | None = None
    for t in leaves:
        if not t.dtype.is_floating:
            continue
        mask = _ops.logical_not(_ops.isfinite(t))
        count = _ops.reduce_sum(_ops.cast(mask, _core.float32))
        bad = count if bad is None else bad + count
    if bad is None:
        return Tensor(False)
    return _ops.greater(bad, 0.0)


def all_finite(inputs: Any, status: Any = None) -> Tensor:
    """Whether every element of a tuple, list or other tree of tensors is finite: a 0-d bool Tensor.

    status: what init_status gave; not needed here, where the elements themselves are looked at.
    Raises ValueError for an empty tree, TypeError for what is no tensor.
    """
    return _ops.logical_not(not_finite(inputs))


def init_status() -> Tensor:
    """The start of an overflow check, for all_finite: zeros. On this engine it holds nothing."""
    return _ops.full([8], 0.0, _core.float32)


class FloorGuard:
    """Counts overflows at the smallest scale, where no smaller one is left to try.

    `count` is a node of the training step; `check` looks at the value that the last finished step
    stored, which no trace takes notice of.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.stuck = Parameter(
            Tensor(0, _core.int32), name="overflows_at_floor", requires_grad=False
        )

    def count(self, overflow: Tensor, scale: Tensor) -> None:
        """Records whether this step overflowed at the floor."""
        at_floor = _ops.logical_and(overflow, _ops.less_equal(scale, FLOOR))
        at_floor = _ops.cast(_ops.reshape(at_floor, []), _core.int32)
        self.stuck._set_array((self.stuck + at_floor) * at_floor)

    def check(self) -> None:
        """Raises RuntimeError if the last step overflowed at the floor."""
        if self.stuck._stored().asnumpy() > 0:
            if not _core.in_trace():
                self.stuck.set_data(0)
            raise RuntimeError(
                f"{self.owner}: the gradients overflow even at the smallest loss scale, {FLOOR:g}, "
                "so that no step can be made: inf or nan come from the network, its loss or its "
                "input, not from the scale. gradcell.amp.locate_overflow(fn, *args) names the op."
                f"{_where()}"
            )


def next_scale(scale: Tensor, factor: float, overflow: Tensor, grow: Tensor) -> Tensor:
    """The scale after a step: divided by the factor, at least FLOOR, on an overflow; multiplied by
    it when it is to grow and stays finite; else as it was."""
    larger = scale * factor
    grown = _ops.where(_ops.logical_and(grow, _ops.isfinite(larger)), larger, scale)
    return _ops.where(overflow, _ops.maximum(scale * (1.0 / factor), FLOOR), grown)


# Scalers ------------------------------------------------------------------------------------------


class LossScaler(ABC):
    """The base of scalers."""

    @abstractmethod
    def scale(self, inputs: Any) -> Any:
        """A tensor, or a tree of tensors, times the scale."""

    @abstractmethod
    def unscale(self, inputs: Any) -> Any:
        """A tensor, or a tree of tensors, divided by the scale."""

    @abstractmethod
    def adjust(self, grads_finite: Any) -> bool:
        """Adapts the scale to whether the gradients were finite; whether it adapts at all."""


class StaticLossScaler(LossScaler):
    """A scale that stays.

    scale_value: at least 1. Raises ValueError below that, for inf and nan, TypeError for what is no
    number.
    """

    def __init__(self, scale_value: float) -> None:
        self._scale = check_scale("StaticLossScaler", "scale_value", scale_value, 1.0)
        self.scale_value = Tensor(self._scale, _core.float32)

    def scale(self, inputs: Any) -> Any:
        """A tensor, or a tree of floating tensors, times the scale, in their dtypes."""
        return tree.map_leaves(lambda t: _times(t, self.scale_value), inputs)

    def unscale(self, inputs: Any) -> Any:
        """A tensor, or a tree of floating tensors, divided by the scale, in their dtypes."""
        inverse = 1.0 / self.scale_value
        return tree.map_leaves(lambda t: _times(t, inverse), inputs)

    def adjust(self, grads_finite: Any) -> bool:
        """False: the scale stays."""
        return False


class DynamicLossScaler(LossScaler):
    """A scale that is divided by scale_factor when gradients overflow, and multiplied by it after
    scale_window steps in a row without an overflow.

    scale_value: the first scale, at least 1, a float32 Parameter from then on. scale_factor:
    greater than 1. scale_window: a positive int. Raises ValueError and TypeError for other values.
    The scale does not fall below 1; when gradients overflow even there, the next call of adjust
    raises RuntimeError. A compiled function that asks for no value does not come by here again:
    check() does the same.
    """

    def __init__(self, scale_value: float, scale_factor: float, scale_window: int) -> None:
        owner = "DynamicLossScaler"
        value = check_scale(owner, "scale_value", scale_value, 1.0)
        self.scale_factor = check_factor(owner, scale_factor)
        self.scale_window = check_window(owner, scale_window)
        self.scale_value = Parameter(
            Tensor(value, _core.float32), name="scale_value", requires_grad=False
        )
        self.counter = Parameter(Tensor(0, _core.int32), name="counter", requires_grad=False)
        self._guard = FloorGuard(owner)

    def scale(self, inputs: Any) -> Any:
        """A tensor, or a tree of floating tensors, times the scale, in their dtypes."""
        scale = self.scale_value.value()
        return tree.map_leaves(lambda t: _times(t, scale), inputs)

    def unscale(self, inputs: Any) -> Any:
        """A tensor, or a tree of floating tensors, divided by the scale, in their dtypes."""
        inverse = 1.0 / self.scale_value.value()
        return tree.map_leaves(lambda t: _times(t, inverse), inputs)

    def check(self) -> None:
        """Raises RuntimeError if the last finished step overflowed at a scale of 1."""
        self._guard.check()

    def adjust(self, grads_finite: Any) -> bool:
        """Adapts the scale. grads_finite: a bool, or a 0-d bool Tensor as all_finite gives.

        Raises RuntimeError if the gradients overflowed at a scale of 1 in the call before.
        """
        self._guard.check()
        finite = grads_finite if isinstance(grads_finite, Tensor) else Tensor(bool(grads_finite))
        finite = _ops.reshape(finite, [])
        overflow = _ops.logical_not(finite)
        scale, counter = self.scale_value.value(), self.counter.value()
        self._guard.count(overflow, scale)
        grow = _ops.equal(counter, self.scale_window - 1)
        self.scale_value._set_array(next_scale(scale, self.scale_factor, overflow, grow))
        count = ((counter + 1) % self.scale_window) * _ops.cast(finite, _core.int32)
        self.counter._set_array(count)
        return True


# Cells that update a scale ------------------------------------------------------------------------


class FixedLossScaleUpdateCell(Cell):
    """Leaves the scale as it is.

    loss_scale_value: positive. Raises ValueError for zero, negative, inf and nan.
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        check_scale(self.cls_name, "loss_scale_value", loss_scale_value)
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self) -> float:
        """The scale to start with."""
        return self.loss_scale_value

    def construct(self, loss_scale: Tensor, overflow: Tensor) -> Tensor:
        """Returns overflow."""
        return overflow


class DynamicLossScaleUpdateCell(Cell):
    """Divides the scale by scale_factor when the step overflowed, and multiplies it after
    scale_window steps in a row without an overflow.

    loss_scale_value: at least 1; scale_factor: greater than 1; scale_window: a positive int. Raises
    ValueError and TypeError for other values. The scale does not fall below 1; when a step
    overflows even there, the next call of the training cell raises RuntimeError.
    """

    def __init__(self, loss_scale_value: float, scale_factor: float, scale_window: int) -> None:
        super().__init__()
        check_scale(self.cls_name, "loss_scale_value", loss_scale_value, FLOOR)
        self.loss_scale_value = loss_scale_value
        self.scale_factor = check_factor(self.cls_name, scale_factor)
        self.scale_window = check_window(self.cls_name, scale_window)
        self.cur_iter = Parameter(Tensor(1, _core.int32), name="current_iterator_step")
        self.last_overflow_iter = Parameter(
            Tensor(0, _core.int32), name="last_overflow_iterator_step"
        )
        object.__setattr__(self, "_guard", FloorGuard(self.cls_name))

    def get_loss_scale(self) -> float:
        """The scale to start with."""
        return self.loss_scale_value

    def check_floor(self) -> None:
        """Raises RuntimeError if the last step overflowed at the smallest scale."""
        self._guard.check()

    def construct(self, loss_scale: Parameter, overflow: Any) -> Tensor:
        """Updates loss_scale, a Parameter, by whether the step overflowed. Returns overflow."""
        self._guard.check()
        given = overflow if isinstance(overflow, Tensor) else Tensor(bool(overflow))
        happened = _ops.cast(given, _core.bool)
        scale, now, last = (
            loss_scale.value(),
            self.cur_iter.value(),
            self.last_overflow_iter.value(),
        )
        self._guard.count(happened, scale)
        grow = _ops.greater_equal(now - last, self.scale_window)
        loss_scale._set_array(next_scale(scale, self.scale_factor, happened, grow))
        restart = _ops.logical_or(_ops.reshape(happened, []), grow)
        self.last_overflow_iter._set_array(_ops.where(restart, now, last))
        self.cur_iter._set_array(now + 1)
        return given


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
    """A scale that stays. drop_overflow_update: whether steps that overflow are skipped; if not,
    the optimiser must be given the same loss_scale.

    Raises ValueError for a scale that is not at least 1 and finite, TypeError for wrong types.
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        if not isinstance(drop_overflow_update, bool):
            raise TypeError(
                f"FixedLossScaleManager: 'drop_overflow_update' must be a bool, got "
                f"{type(drop_overflow_update).__name__}{_where()}"
            )
        check_scale("FixedLossScaleManager", "loss_scale", loss_scale, 1.0)
        self._loss_scale = loss_scale
        self._drop_overflow_update = drop_overflow_update

    def get_loss_scale(self) -> float:
        """The scale."""
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Whether steps that overflow are skipped."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow: bool) -> None:
        """Does nothing."""

    def get_update_cell(self) -> Cell | None:
        """A FixedLossScaleUpdateCell, or None where no step is to be skipped."""
        if not self._drop_overflow_update:
            return None
        return FixedLossScaleUpdateCell(self._loss_scale)


class DynamicLossScaleManager(LossScaleManager):
    """A scale that adapts as DynamicLossScaleUpdateCell's does; its arguments and errors."""

    def __init__(
        self, init_loss_scale: float = 2**24, scale_factor: float = 2, scale_window: int = 2000
    ) -> None:
        owner = "DynamicLossScaleManager"
        self.loss_scale = check_scale(owner, "init_loss_scale", init_loss_scale, FLOOR)
        check_factor(owner, scale_factor)
        self.scale_window = check_window(owner, scale_window)
        self.increase_ratio = scale_factor
        self.cur_iter, self.last_overflow_iter = 1, 0

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
