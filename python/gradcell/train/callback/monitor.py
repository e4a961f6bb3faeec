"""Callbacks that print or keep the loss, the time and the results of evaluations."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from gradcell.base import arguments, bad_value, fields
from gradcell.communication.engine import say
from gradcell.train.callback.base import Callback, RunContext, loss_of, overflowed, step_in_epoch


@fields.declared
class LossMonitor(Callback):
    """Prints the loss every per_print_times steps (0: never).

    per_print_times: an int of at least 0. Raises ValueError, from on_train_step_end, for a loss
    that is inf or nan in a step that was not skipped as an overflow.
    """

    _per_print_times: int = fields.integer(0, alias="per_print_times", default=1)

    def on_train_step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        loss = loss_of(p.net_outputs)
        if loss is None:
            return
        step = step_in_epoch(p)
        if not math.isfinite(loss) and not overflowed(p.net_outputs):
            bad_value(
                f"In epoch: {p.cur_epoch_num} step: {step}, loss is {loss}, training process cannot "
                "continue, terminating training."
            )
        if self._per_print_times and p.cur_step_num % self._per_print_times == 0:
            say(f"epoch: {p.cur_epoch_num} step: {step}, loss is {loss}")

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        if p.eval_results:
            say(f"Eval result: epoch {p.cur_epoch_num}, metrics: {p.eval_results}")


class TimeMonitor(Callback):
    """Prints how long each epoch took, and a step on average, in milliseconds.

    data_size: steps in an epoch, where it is not known from the data. data_time has no effect.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        if data_size is not None:
            arguments.integer(data_size, "TimeMonitor", "data_size", 1)
        self.data_size: int | None = data_size
        self.epoch_time: float = 0.0
        self._steps_before = 0

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        self.epoch_time = time.perf_counter()
        self._steps_before = run_context.original_args().cur_step_num or 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        total = (time.perf_counter() - self.epoch_time) * 1000
        steps = self.data_size or max(1, p.cur_step_num - self._steps_before)
        say(f"Train epoch time: {total:5.3f} ms, per step time: {total / steps:5.3f} ms")


class History(Callback):
    """Keeps each epoch's loss and evaluation results: history['net_output'], history[metric]."""

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] = {}

    def on_train_begin(self, run_context: RunContext) -> None:
        self.epoch = {"epoch": []}

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        self.epoch.setdefault("epoch", []).append(p.cur_epoch_num)
        self.history.setdefault("net_output", []).append(loss_of(p.net_outputs))
        for name, value in (p.eval_results or {}).items():
            self.history.setdefault(name, []).append(value)


Event = Callable[[RunContext], Any] | None


class LambdaCallback(Callback):
    """A callback made of functions of the run context.

    on_train_epoch_begin, on_train_epoch_end, on_train_step_begin, on_train_begin, on_train_end,
    on_eval_epoch_begin, on_eval_epoch_end, on_eval_step_begin, on_eval_step_end, on_eval_begin,
    on_eval_end: a function of the run context, or None.

    functions: by the names of a Callback's methods, such as on_train_step_end. Raises TypeError for
    another name.
    """

    def __init__(
        self, on_train_epoch_begin: Event = None, on_train_epoch_end: Event = None,
        on_train_step_begin: Event = None, on_train_step_end: Event = None,
        on_train_begin: Event = None, on_train_end: Event = None,
        on_eval_epoch_begin: Event = None, on_eval_epoch_end: Event = None,
        on_eval_step_begin: Event = None, on_eval_step_end: Event = None,
        on_eval_begin: Event = None, on_eval_end: Event = None,
    ) -> None:  # fmt: skip
        for name, function in locals().items():
            if name.startswith("on_") and function is not None:
                setattr(self, name, function)
