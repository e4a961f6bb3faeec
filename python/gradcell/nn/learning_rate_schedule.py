"""Learning rates as functions of the step count, computed inside the training step."""

from __future__ import annotations

import math
from dataclasses import InitVar

from gradcell._core import Tensor, float32, ops as _ops, user_location
from gradcell.base import fields, publish
from gradcell.nn.cell import Cell


class LearningRateSchedule(Cell):
    """The base: construct takes the step count (int32, 0 at the first step), returns the rate."""

    def construct(self, global_step: Tensor) -> Tensor:
        raise NotImplementedError("a learning rate schedule defines construct(global_step)")


@fields.declared
class _Decay(LearningRateSchedule):
    """A decay by p = step / decay_steps, rounded down if is_stair."""

    learning_rate: float = fields.number(above=0)
    decay_rate: float = fields.number(above=0)
    decay_steps: int = fields.integer(1)
    is_stair: bool = fields.boolean(default=False)

    def _p(self, global_step: Tensor) -> Tensor:
        p = _ops.cast(global_step, float32) / float(self.decay_steps)
        return _ops.floor(p) if self.is_stair else p


class ExponentialDecayLR(_Decay):
    """learning_rate * decay_rate ** p, p = step / decay_steps, rounded down if is_stair.

    Raises ValueError unless learning_rate, decay_rate and decay_steps are positive, TypeError for
    wrong types.
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate * _ops.exp(self._p(global_step) * math.log(self.decay_rate))


class NaturalExpDecayLR(_Decay):
    """learning_rate times $exp(-decay_rate p)$ with p = step, rounded down to a multiple of decay_steps if
    is_stair: what MindSpore computes, whose documentation divides p by decay_steps.

    Raises as ExponentialDecayLR.
    """

    def construct(self, global_step: Tensor) -> Tensor:
        fall = self.decay_rate * self.decay_steps
        return self.learning_rate * _ops.exp(self._p(global_step) * -fall)


class InverseDecayLR(_Decay):
    """learning_rate / (1 + decay_rate * p), p = step / decay_steps, rounded down if is_stair.

    Raises as ExponentialDecayLR.
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate / (1.0 + self._p(global_step) * self.decay_rate)


@fields.declared
class CosineDecayLR(LearningRateSchedule):
    """From max_lr down to min_lr along half a cosine in decay_steps, then min_lr (Loshchilov and
    Hutter 2017, eq. 5, without restarts).

    Raises ValueError unless 0 <= min_lr < max_lr and decay_steps > 0, TypeError for wrong types.
    """

    min_lr: float = fields.number(least=0)
    max_lr: float = fields.number(above=0)
    decay_steps: int = fields.integer(1)

    def _build(self) -> None:
        if self.min_lr >= self.max_lr:
            raise ValueError(
                f"For '{self.cls_name}', the 'max_lr' must be greater than the 'min_lr', but got "
                f"{self.max_lr} and {self.min_lr} ({user_location()})"
            )

    def construct(self, global_step: Tensor) -> Tensor:
        p = _ops.minimum(_ops.cast(global_step, float32) / float(self.decay_steps), 1.0)
        half = 0.5 * (self.max_lr - self.min_lr)
        return self.min_lr + half * (1.0 + _ops.cos(p * math.pi))


@fields.declared
class PolynomialDecayLR(LearningRateSchedule):
    """(learning_rate - end) * (1 - min(step, s) / s) ** power + end, with s = decay_steps, or with
    update_decay_steps the first multiple of it that is not below the step.

    update_decay_steps: whether the decay begins again with a longer period, when one has ended.
    end_learning_rate: the rate at the end. Raises ValueError unless learning_rate and power are
    positive, end is not negative and less than learning_rate, and decay_steps > 0; TypeError for
    wrong types.
    """

    learning_rate: InitVar[float] = fields.number(above=0)
    end: float = fields.number(least=0, alias="end_learning_rate")
    decay_steps: int = fields.integer(1)
    power: float = fields.number(above=0)
    update_decay_steps: bool = fields.boolean(default=False)

    def _build(self, learning_rate: float) -> None:
        if self.end >= learning_rate:
            raise ValueError(
                f"For '{self.cls_name}', the 'end_learning_rate' must be less than the "
                f"'learning_rate' ({user_location()})"
            )
        self.span: float = learning_rate - self.end

    def construct(self, global_step: Tensor) -> Tensor:
        p = _ops.cast(global_step, float32) / float(self.decay_steps)
        if self.update_decay_steps:
            p = p / _ops.maximum(_ops.ceil(p), 1.0)
        else:
            p = _ops.minimum(p, 1.0)
        return self.span * _ops.pow(1.0 - p, float(self.power)) + self.end


@fields.declared
class WarmUpLR(LearningRateSchedule):
    """A rate that grows from 0 in proportion to the step: learning_rate * min(step, warmup_steps) /
    warmup_steps.

    Raises ValueError unless learning_rate >= 0 and warmup_steps > 0, TypeError for wrong types.
    """

    learning_rate: float = fields.number(least=0)
    warmup_steps: int = fields.integer(1)

    def construct(self, global_step: Tensor) -> Tensor:
        p = _ops.cast(global_step, float32) / float(self.warmup_steps)
        return self.learning_rate * _ops.minimum(p, 1.0)


publish(globals())
