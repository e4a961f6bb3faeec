"""Callbacks that adapt training: the learning rate, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, fields
from gradcell.tensors.parameter import Parameter
from gradcell.train.callback.base import Callback, CallbackParameters, RunContext, loss_of


def _rates(optimizer: Any) -> list[Parameter]:
    """The parameters that hold an optimiser's fixed learning rates. Raises ValueError for
    others."""
    found: dict[int, Parameter] = {}
    for rate in getattr(optimizer, "_rates", ()) or (optimizer.learning_rate,):
        if not isinstance(rate, Parameter):
            bad_value(
                "a callback can change the learning rate only where it is a number, not a schedule"
            )
        found[id(rate)] = rate
    return list(found.values())


class LearningRateScheduler(Callback):
    """Sets the learning rate after each step to learning_rate_function(rate, step), with the number
    of the step that is done, from 1.

    learning_rate_function: a function of (rate, step) that gives the new rate, a float.
    """

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        if not callable(learning_rate_function):
            bad_type("LearningRateScheduler: expected a function")
        self.learning_rate_function = learning_rate_function

    def on_train_step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        for rate in _rates(p.optimizer):
            now = float(rate.asnumpy())
            new = self.learning_rate_function(now, p.cur_step_num)
            if new != now:
                rate.set_data(Tensor(float(new), rate.dtype))


def _monitor(value: Any, owner: str, name: str) -> str:
    if not isinstance(value, str):
        bad_type(f"{owner}: '{name}' must be a string")
    return value


class _Watch(Callback):
    """Compares a monitored value, once an epoch, with the best so far; `_improved` and `_stuck` say what
    follows. Its fields are those of its subclasses, in MindSpore's order."""

    monitor: str
    min_delta: float
    patience: int
    mode: str

    def _build(self) -> None:
        rising = any(word in self.monitor.lower() for word in ("acc", "precision", "recall", "f1"))
        self.rising: bool = self.mode == "max" or (self.mode == "auto" and rising)
        self.reset()

    def reset(self) -> None:
        """Forgets the epochs so far."""
        self.best: float = -math.inf if self.rising else math.inf
        self.wait: int = 0
        self.cooling: int = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        self.reset()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        value = self.value(p)
        if value is None:
            return
        if self.cooling > 0:
            self.cooling -= 1
            self.wait = 0
        if self.better(value):
            self.best, self.wait = value, 0
            self._improved(p)
        elif self.cooling == 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._stuck(run_context, p)

    def _improved(self, p: CallbackParameters) -> None:
        """After an epoch with a new best value."""

    def _stuck(self, run_context: RunContext, p: CallbackParameters) -> None:
        """After `patience` epochs without one."""

    def value(self, p: CallbackParameters) -> float | None:
        """The monitored value of this epoch, None if there was no evaluation in it."""
        if self.monitor == "loss":
            return loss_of(p.net_outputs)
        results = p.eval_results or {}
        if not results:
            return None
        for name in (self.monitor, self.monitor.removeprefix("eval_")):
            if name in results:
                return float(results[name])
        bad_value(
            f"{type(self).__name__}: there is no {self.monitor!r} among the results of the evaluation: "
            f"{', '.join(results)}"
        )

    def better(self, value: float) -> bool:
        if self.rising:
            return value > self.best + self.min_delta
        return value < self.best - self.min_delta


@fields.declared
class EarlyStopping(_Watch):
    """Ends training when the monitored value has not improved for `patience` epochs.

    monitor: 'loss', or 'eval_' and a metric's name, or the name. min_delta: what counts as an
    improvement. mode: 'min', 'max', or 'auto' by the name. baseline: the value to beat from the
    start. restore_best_weights: put the parameters of the best epoch back.
    """

    monitor: str = fields.checked(_monitor, default="eval_loss")
    min_delta: float = fields.number(least=0, default=0)
    patience: int = fields.integer(0, default=0)
    verbose: bool = fields.anything(default=False)
    mode: str = fields.one_of("auto", "min", "max", default="auto")
    baseline: float | None = fields.anything(default=None)
    restore_best_weights: bool = fields.anything(default=False)

    def _build(self) -> None:
        super()._build()
        self.stopped_epoch: int = 0
        self._best_weights = list[tuple[Parameter, Tensor]]()

    def reset(self) -> None:
        super().reset()
        if self.baseline is not None:
            self.best: float = self.baseline

    def _improved(self, p: CallbackParameters) -> None:
        if self.restore_best_weights:
            self._best_weights = [(q, q.value().copy()) for q in p.train_network.get_parameters()]

    def _stuck(self, run_context: RunContext, p: CallbackParameters) -> None:
        self.stopped_epoch = p.cur_epoch_num
        run_context.request_stop()
        if self.verbose:
            print(f"Epoch {p.cur_epoch_num}: early stopping", flush=True)
        for q, best in self._best_weights:
            q.set_data(best)


@fields.declared
class ReduceLROnPlateau(_Watch):
    """Multiplies the learning rate by `factor` when the monitored value has not improved for
    `patience` epochs; then waits for `cooldown` epochs; never below min_lr.

    monitor: the name of the figure that is watched. mode: 'min', 'max' or 'auto': whether small
    figures are good. min_delta: the smallest change that counts.
    """

    monitor: str = fields.checked(_monitor, default="eval_loss")
    factor: float = fields.number(above=0, below=1, default=0.1)
    patience: int = fields.integer(0, default=10)
    verbose: bool = fields.anything(default=False)
    mode: str = fields.one_of("auto", "min", "max", default="auto")
    min_delta: float = fields.number(least=0, default=1e-4)
    cooldown: int = fields.integer(0, default=0)
    min_lr: float = fields.anything(default=0)

    def _stuck(self, run_context: RunContext, p: CallbackParameters) -> None:
        for rate in _rates(p.optimizer):
            now = float(rate.asnumpy())
            new = max(now * self.factor, self.min_lr)
            if new < now:
                rate.set_data(Tensor(new, rate.dtype))
                if self.verbose:
                    print(f"Epoch {p.cur_epoch_num}: learning rate {new:g}", flush=True)
        self.cooling: int = self.cooldown
        self.wait: int = 0
