"""The rule by which a loss scale follows overflows, and the cells that apply it inside a training
step."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, tree, where as _where, with_tensors
from gradcell.nn.cell import Cell
from gradcell.tensors.parameter import Parameter

#: No dynamic scale goes below this.
FLOOR = 1.0


def check_scale(owner: str, name: str, value: Any, least: float = 0.0) -> float:
    """value as a float. Raises TypeError if it is not a number, ValueError unless it is finite,
    positive, not below `least` and a normal number of float32, whose reciprocal is finite."""
    limits = np.finfo(np.float32)
    found = arguments.number(value, owner, name, least=max(least, float(limits.tiny)))
    with np.errstate(over="ignore"):
        single = float(np.float32(found))
    arguments.number(single, owner, name, most=float(limits.max))
    return found


def not_finite(inputs: Any) -> Tensor:
    """Return whether a tree of tensors contains inf or nan: a 0-d bool tensor, a node inside a
    trace.

    Raises ValueError for a tree without tensors, TypeError for one that is not of tensors.
    """
    leaves = tree.leaves(with_tensors(inputs))
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


class FloorGuard:
    """Counts overflows at the smallest scale, where no smaller one is left to try.

    `count` is a node of the training step; `check` and `look` read the value that steps have
    stored, which no trace takes notice of.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.warned: bool = False
        self.watch = _core.Watch()
        self.stuck: Parameter = Parameter(Tensor(0, _core.int32), "overflows_at_floor", False)

    def count(self, overflow: Tensor, scale: Tensor) -> None:
        """Records whether this step overflowed at the floor."""
        at_floor = _ops.logical_and(overflow, _ops.less_equal(scale, FLOOR))
        self.stuck._set_array(self.stuck + _ops.cast(_ops.reshape(at_floor, []), _core.int32))

    def check(self) -> None:
        """Warns, once, if a step has overflowed at the floor. Waits for the last one."""
        if not self.warned and self.stuck._stored().asnumpy() > 0:
            self._warn()

    def look(self) -> None:
        """The same without waiting for a GPU: of its steps it knows at the latest 64 looks later."""
        if not self.warned and self.watch.look(self.stuck) > 0:
            self._warn()

    def _warn(self) -> None:
        self.warned = True
        warnings.warn(
            f"{self.owner}: the gradients overflow even at the smallest loss scale, {FLOOR:g}, so "
            "the step is skipped: inf or nan come from the network, its loss or its input, not "
            "from the scale. gradcell.amp.locate_overflow(fn, *args) names the op."
            f"{_where()}",
            RuntimeWarning,
            stacklevel=4,
        )


def next_scale(scale: Tensor, factor: float, overflow: Tensor, grow: Tensor) -> Tensor:
    """The scale after a step: divided by the factor, at least FLOOR, on an overflow; multiplied by
    it when it is to grow and stays finite; else unchanged."""
    larger = scale * factor
    grown = _ops.where(_ops.logical_and(grow, _ops.isfinite(larger)), larger, scale)
    return _ops.where(overflow, _ops.maximum(scale * (1.0 / factor), FLOOR), grown)


class FixedLossScaleUpdateCell(Cell):
    """A loss scale that never changes, for TrainOneStepWithLossScaleCell.

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
    overflows even there, it is skipped, and the next call of the training cell warns, once: on a
    GPU, for which it does not wait, a call up to 64 steps later.
    """

    def __init__(self, loss_scale_value: float, scale_factor: float, scale_window: int) -> None:
        super().__init__()
        check_scale(self.cls_name, "loss_scale_value", loss_scale_value, FLOOR)
        self.loss_scale_value = loss_scale_value
        factor = arguments.number(scale_factor, self.cls_name, "scale_factor", above=1)
        self.scale_factor: float = factor
        self.scale_window: int = arguments.integer(scale_window, self.cls_name, "scale_window", 1)
        self.cur_iter: Parameter = Parameter(Tensor(1, _core.int32), name="current_iterator_step")
        self.last_overflow_iter: Parameter = Parameter(
            Tensor(0, _core.int32), name="last_overflow_iterator_step"
        )
        object.__setattr__(self, "_guard", FloorGuard(self.cls_name))

    def get_loss_scale(self) -> float:
        """The scale to start with."""
        return self.loss_scale_value

    def check_floor(self) -> None:
        """Warns, once, if a step has overflowed at the smallest scale. Waits for the last one."""
        self._guard.check()

    def look_at_floor(self) -> None:
        """The same without waiting for a GPU, of whose steps it knows up to 64 calls later."""
        self._guard.look()

    def construct(self, loss_scale: Parameter, overflow: Any) -> Tensor:
        """Updates loss_scale, a Parameter, by whether the step overflowed. Returns overflow."""
        self._guard.look()
        given = overflow if isinstance(overflow, Tensor) else Tensor(bool(overflow))
        happened = _ops.cast(given, _core.bool)
        scale = loss_scale.value()
        now, last = self.cur_iter.value(), self.last_overflow_iter.value()
        self._guard.count(happened, scale)
        grow = _ops.greater_equal(now - last, self.scale_window)
        loss_scale._set_array(next_scale(scale, self.scale_factor, happened, grow))
        restart = _ops.logical_or(_ops.reshape(happened, []), grow)
        self.last_overflow_iter._set_array(_ops.where(restart, now, last))
        self.cur_iter._set_array(now + 1)
        return given
