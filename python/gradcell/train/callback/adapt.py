"""Callbacks that adapt training: the learning rate, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.errors import bad_type, bad_value
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


class _Watch(Callback):
    """Compares a monitored value, once an epoch, with the best so far."""

    def __init__(
        self, owner: str, monitor: str, min_delta: float, patience: int, mode: str
    ) -> None:
        if not isinstance(monitor, str):
            bad_type(f"{owner}: 'monitor' must be a string")
        arguments.one_of(mode, ("auto", "min", "max"), owner, "mode")
        self.monitor = monitor
        self.min_delta = arguments.number(min_delta, owner, "min_delta", least=0)
        self.patience = arguments.integer(patience, owner, "patience", 0)
        rising = any(word in monitor.lower() for word in ("acc", "precision", "recall", "f1"))
        self.rising = mode == "max" or (mode == "auto" and rising)
        self.owner = owner
        self.reset()

    def reset(self) -> None:
        """Forgets the epochs so far."""
        self.best: float = -math.inf if self.rising else math.inf
        self.wait: int = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        self.reset()

    def value(self, p: CallbackParameters) -> float | None:
        """The monitored value of this epoch, None if there was no evaluation in it."""
        if self.monitor == "loss":
            return loss_of(p.net_outputs)
        results = p.eval_results or {}
        if not results:
            return None
        if self.monitor in results:
            return float(results[self.monitor])
        short = self.monitor.removeprefix("eval_")
        if short in results:
            return float(results[short])
        bad_value(
            f"{self.owner}: there is no {self.monitor!r} among the results of the evaluation: "
            f"{', '.join(results)}"
        )

    def better(self, value: float) -> bool:
        if self.rising:
            return value > self.best + self.min_delta
        return value < self.best - self.min_delta


class EarlyStopping(_Watch):
    """Ends training when the monitored value has not improved for `patience` epochs.

    monitor: 'loss', or 'eval_' and a metric's name, or the name. min_delta: what counts as an
    improvement. mode: 'min', 'max', or 'auto' by the name. baseline: the value to beat from the
    start. restore_best_weights: put the parameters of the best epoch back.
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: bool = False,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        self.baseline = baseline
        super().__init__("EarlyStopping", monitor, min_delta, patience, mode)
        self.verbose: bool = verbose
        self.restore_best_weights: bool = restore_best_weights
        self.stopped_epoch: int = 0
        self._best_weights: list[tuple[Parameter, Tensor]] = []

    def reset(self) -> None:
        super().reset()
        if self.baseline is not None:
            self.best: float = self.baseline

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        value = self.value(p)
        if value is None:
            return
        if self.better(value):
            self.wait: int = 0
            self.best = value
            if self.restore_best_weights:
                self._best_weights = [
                    (q, q.value().copy()) for q in p.train_network.get_parameters()
                ]
            return
        self.wait += 1
        if self.wait < self.patience:
            return
        self.stopped_epoch = p.cur_epoch_num
        run_context.request_stop()
        if self.verbose:
            print(f"Epoch {p.cur_epoch_num}: early stopping", flush=True)
        for q, best in self._best_weights:
            q.set_data(best)


class ReduceLROnPlateau(_Watch):
    """Multiplies the learning rate by `factor` when the monitored value has not improved for
    `patience` epochs; then waits for `cooldown` epochs; never below min_lr."""

    def __init__(
        self,
        monitor: str = "eval_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        arguments.number(factor, "ReduceLROnPlateau", "factor", above=0, below=1)
        self.cooldown: int = arguments.integer(cooldown, "ReduceLROnPlateau", "cooldown", 0)
        super().__init__("ReduceLROnPlateau", monitor, min_delta, patience, mode)
        self.factor: float = factor
        self.verbose: bool = verbose
        self.min_lr: float = min_lr

    def reset(self) -> None:
        super().reset()
        self.cooling: int = 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        value = self.value(p)
        if value is None:
            return
        if self.cooling > 0:
            self.cooling -= 1
            self.wait: int = 0
        if self.better(value):
            self.best: float = value
            self.wait = 0
            return
        if self.cooling > 0:
            return
        self.wait += 1
        if self.wait < self.patience:
            return
        for rate in _rates(p.optimizer):
            now = float(rate.asnumpy())
            new = max(now * self.factor, self.min_lr)
            if new < now:
                rate.set_data(Tensor(new, rate.dtype))
                if self.verbose:
                    print(f"Epoch {p.cur_epoch_num}: learning rate {new:g}", flush=True)
        self.cooling, self.wait = self.cooldown, 0
