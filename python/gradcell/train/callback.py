"""Callbacks: what Model calls at the beginnings and ends of training, epochs and steps."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

from gradcell import _core, tree
from gradcell._core import Tensor
from gradcell.dataset.datasets import Dataset
from gradcell.nn.cell import Cell
from gradcell.parameter import Parameter
from gradcell.train.serialization import save_checkpoint


def _where() -> str:
    return f" ({_core.user_location()})"


class CallbackParameters(dict):  # type: ignore[type-arg]
    """What a run tells its callbacks, as attributes: cur_epoch_num and cur_step_num (from 1, steps
    counted over all epochs), epoch_num, batch_num (steps in an epoch), net_outputs (what the
    training cell returned), network, train_network, eval_network, optimizer, loss_fn, metrics,
    eval_results, train_dataset, train_dataset_element, mode. Missing ones are None."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """What callbacks get: the run's parameters, and a way to stop it."""

    def __init__(self, original_args: CallbackParameters) -> None:
        self._args = original_args
        self._stop_requested = False

    def original_args(self) -> CallbackParameters:
        """The run's parameters."""
        return self._args

    def request_stop(self) -> None:
        """Ends training behind the present step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether a stop was requested."""
        return self._stop_requested


class Callback:
    """The base: define the methods of interest. An exception in one ends the run, the parameters
    holding the last finished step; on_train_end is not called then, close is.

    The older names begin, epoch_begin, step_begin, step_end, epoch_end and end are called by the
    on_... methods that are not redefined.
    """

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def begin(self, run_context: RunContext) -> None:
        """Before training or evaluation."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Before an epoch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """Behind an epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Before a step."""

    def step_end(self, run_context: RunContext) -> None:
        """Behind a step."""

    def end(self, run_context: RunContext) -> None:
        """Behind training or evaluation."""

    def close(self) -> None:
        """At the end of a run, also of one that failed."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Before training."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Before an epoch of training."""
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Behind an epoch of training."""
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Before a step of training."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Behind a step of training."""
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Behind training."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Before an evaluation."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Before an evaluation's pass over the data."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Behind an evaluation's pass over the data."""
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Before a batch of an evaluation."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Behind a batch of an evaluation."""
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """Behind an evaluation."""
        self.end(run_context)


def loss_of(net_outputs: Any) -> float | None:
    """The loss among what a training cell returned, as a number: the mean of its first tensor."""
    found = tree.leaves(net_outputs)
    if not found:
        return float(net_outputs) if isinstance(net_outputs, (int, float)) else None
    return float(np.mean(found[0].asnumpy().astype(np.float64)))


def overflowed(net_outputs: Any) -> bool:
    """Whether the step was one of a loss-scaling cell that overflowed and was skipped."""
    return (
        isinstance(net_outputs, tuple)
        and len(net_outputs) > 1
        and isinstance(net_outputs[1], Tensor)
        and net_outputs[1].dtype == _core.bool
        and net_outputs[1].size == 1
        and bool(net_outputs[1])
    )


def _step_in_epoch(p: CallbackParameters) -> int:
    if p.cur_step_in_epoch is not None:
        return int(p.cur_step_in_epoch)
    return (p.cur_step_num - 1) % (p.batch_num or 1) + 1


def _positive(owner: str, name: str, value: Any, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{owner}: '{name}' must be an int, got {type(value).__name__}{_where()}")
    if value < least:
        raise ValueError(f"{owner}: '{name}' must be at least {least}, got {value}{_where()}")
    return value


class LossMonitor(Callback):
    """Prints the loss every per_print_times steps (0: never).

    Raises ValueError, from on_train_step_end, for a loss that is inf or nan in a step that was not
    skipped as an overflow.
    """

    def __init__(self, per_print_times: int = 1) -> None:
        self._per_print_times = _positive("LossMonitor", "per_print_times", per_print_times)

    def on_train_step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        loss = loss_of(p.net_outputs)
        if loss is None:
            return
        step = _step_in_epoch(p)
        if not math.isfinite(loss) and not overflowed(p.net_outputs):
            raise ValueError(
                f"In epoch: {p.cur_epoch_num} step: {step}, loss is {loss}, training process "
                f"cannot continue, terminating training.{_where()}"
            )
        if self._per_print_times and p.cur_step_num % self._per_print_times == 0:
            print(f"epoch: {p.cur_epoch_num} step: {step}, loss is {loss}", flush=True)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        if p.eval_results:
            print(f"Eval result: epoch {p.cur_epoch_num}, metrics: {p.eval_results}", flush=True)


class TimeMonitor(Callback):
    """Prints how long each epoch took, and a step on average, in milliseconds.

    data_size: steps in an epoch, where it is not known from the data.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        self.data_size = (
            None if data_size is None else _positive("TimeMonitor", "data_size", data_size, 1)
        )
        self.epoch_time = self._steps_before = 0.0

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        self.epoch_time = time.perf_counter()
        self._steps_before = run_context.original_args().cur_step_num or 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        total = (time.perf_counter() - self.epoch_time) * 1000
        steps = self.data_size or max(1, p.cur_step_num - self._steps_before)
        print(
            f"Train epoch time: {total:5.3f} ms, per step time: {total / steps:5.3f} ms", flush=True
        )


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


class LambdaCallback(Callback):
    """Functions of the run context in place of methods."""

    def __init__(self, **functions: Callable[[RunContext], Any]) -> None:
        for name, function in functions.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback: {name!r} is no event{_where()}")
            setattr(self, name, function)


# Learning rate --------------------------------------------------------------------------------------


def _rates(optimizer: Any) -> list[Parameter]:
    """The parameters that hold an optimiser's fixed learning rates. Raises ValueError for others."""
    found: dict[int, Parameter] = {}
    for rate in getattr(optimizer, "_rates", ()) or (optimizer.learning_rate,):
        if not isinstance(rate, Parameter):
            raise ValueError(
                "a callback can change the learning rate only where it is a number, not a "
                f"schedule{_where()}"
            )
        found[id(rate)] = rate
    return list(found.values())


class LearningRateScheduler(Callback):
    """Sets the learning rate before each step: learning_rate_function(rate, step number from 0)."""

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        if not callable(learning_rate_function):
            raise TypeError(f"LearningRateScheduler: expected a function{_where()}")
        self.learning_rate_function = learning_rate_function

    def on_train_step_begin(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        for rate in _rates(p.optimizer):
            now = float(rate.asnumpy())
            new = self.learning_rate_function(now, (p.cur_step_num or 1) - 1)
            if new != now:
                rate.set_data(Tensor(float(new), rate.dtype))


class _Watch(Callback):
    """Compares a monitored value, once an epoch, with the best so far."""

    def __init__(self, owner: str, monitor: str, min_delta: float, patience: int, mode: str) -> None:
        if not isinstance(monitor, str):
            raise TypeError(f"{owner}: 'monitor' must be a string{_where()}")
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{owner}: 'mode' must be 'auto', 'min' or 'max', got {mode!r}{_where()}")
        if not isinstance(min_delta, (int, float)) or min_delta < 0:
            raise ValueError(f"{owner}: 'min_delta' must be at least 0, got {min_delta}{_where()}")
        self.monitor, self.min_delta = monitor, float(min_delta)
        self.patience = _positive(owner, "patience", patience)
        rising = any(word in monitor.lower() for word in ("acc", "precision", "recall", "f1"))
        self.rising = mode == "max" or (mode == "auto" and rising)
        self.owner = owner
        self.reset()

    def reset(self) -> None:
        self.best = -math.inf if self.rising else math.inf
        self.wait = 0

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
        raise ValueError(
            f"{self.owner}: there is no {self.monitor!r} among the results of the evaluation: "
            f"{', '.join(results)}{_where()}"
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
        self.verbose, self.restore_best_weights = verbose, restore_best_weights
        self.stopped_epoch = 0
        self._best_weights: list[tuple[Parameter, Tensor]] = []

    def reset(self) -> None:
        super().reset()
        if self.baseline is not None:
            self.best = self.baseline

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        value = self.value(p)
        if value is None:
            return
        if self.better(value):
            self.best, self.wait = value, 0
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
        if not isinstance(factor, float) or not 0 < factor < 1:
            raise ValueError(f"ReduceLROnPlateau: 'factor' must be in (0, 1), got {factor}{_where()}")
        self.cooldown = _positive("ReduceLROnPlateau", "cooldown", cooldown)
        super().__init__("ReduceLROnPlateau", monitor, min_delta, patience, mode)
        self.factor, self.verbose, self.min_lr = factor, verbose, min_lr

    def reset(self) -> None:
        super().reset()
        self.cooling = 0

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


# Checkpoints ----------------------------------------------------------------------------------------


class CheckpointConfig:
    """When ModelCheckpoint saves and how many files it keeps.

    save_checkpoint_steps: every so many steps; save_checkpoint_seconds: or at the first step behind
    so many seconds, if it is not 0. keep_checkpoint_max: the oldest files beyond it are removed, 0:
    none. saved_network: what to save, by default the training cell with optimiser and loss-scale
    state. append_info: 'epoch_num', 'step_num', or dicts of more to save. Raises ValueError and
    TypeError for bad values.
    """

    def __init__(
        self,
        save_checkpoint_steps: int = 1,
        save_checkpoint_seconds: int = 0,
        keep_checkpoint_max: int = 5,
        keep_checkpoint_per_n_minutes: int = 0,
        integrated_save: bool = True,
        async_save: bool = False,
        saved_network: Cell | None = None,
        append_info: Any = None,
        **unused: Any,
    ) -> None:
        owner = "CheckpointConfig"
        self.save_checkpoint_steps = _positive(owner, "save_checkpoint_steps", save_checkpoint_steps)
        self.save_checkpoint_seconds = _positive(
            owner, "save_checkpoint_seconds", save_checkpoint_seconds
        )
        self.keep_checkpoint_max = _positive(owner, "keep_checkpoint_max", keep_checkpoint_max)
        if not self.save_checkpoint_steps and not self.save_checkpoint_seconds:
            raise ValueError(f"{owner}: it would never save{_where()}")
        if saved_network is not None and not isinstance(saved_network, Cell):
            raise TypeError(f"{owner}: 'saved_network' must be a Cell{_where()}")
        self.saved_network = saved_network
        self.append_info = list(append_info or ())


class ModelCheckpoint(Callback):
    """Saves the run to directory/prefix-epoch_step.ckpt.

    A file is whole or not there. With the random generators' state and the epoch's and step's
    number it is enough to go on bit for bit: see Model.resume.
    """

    def __init__(
        self,
        prefix: str = "CKP",
        directory: str | None = None,
        config: CheckpointConfig | None = None,
    ) -> None:
        if not isinstance(prefix, str) or not prefix or "/" in prefix:
            raise ValueError(f"ModelCheckpoint: 'prefix' must be a plain name, got {prefix!r}{_where()}")
        if config is not None and not isinstance(config, CheckpointConfig):
            raise TypeError(f"ModelCheckpoint: 'config' must be a CheckpointConfig{_where()}")
        self._prefix = prefix
        self._directory = os.path.abspath(os.fspath(directory or "."))
        self._config = config or CheckpointConfig()
        self._latest = ""
        self._last_step = 0
        self._last_time = 0.0

    @property
    def latest_ckpt_file_name(self) -> str:
        """The path of the file saved last, empty before the first."""
        return self._latest

    def on_train_begin(self, run_context: RunContext) -> None:
        os.makedirs(self._directory, exist_ok=True)
        self._last_time = time.monotonic()
        self._last_step = run_context.original_args().cur_step_num or 0

    def _due(self, step: int) -> bool:
        c = self._config
        if c.save_checkpoint_seconds:
            return time.monotonic() - self._last_time >= c.save_checkpoint_seconds
        return step >= self._last_step + c.save_checkpoint_steps

    def on_train_step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        if self._due(p.cur_step_num):
            self.save(p)

    def on_train_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        if p.cur_step_num and p.cur_step_num != self._last_step:
            self.save(p)

    def save(self, p: CallbackParameters) -> None:
        """Saves now."""
        name = f"{self._prefix}-{p.cur_epoch_num}_{_step_in_epoch(p)}.ckpt"
        path = os.path.join(self._directory, name)
        info: dict[str, Any] = {
            "epoch_num": p.cur_epoch_num,
            "step_num": p.cur_step_num,
            "step_in_epoch": _step_in_epoch(p),
        }
        if isinstance(p.train_dataset, Dataset):
            info["data_seed"] = p.train_dataset._drawn
        for extra in self._config.append_info:
            if isinstance(extra, dict):
                info.update(extra)
        save_checkpoint(self._config.saved_network or p.train_network, path, append_dict=info)
        self._latest, self._last_step, self._last_time = path, p.cur_step_num, time.monotonic()
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        if not self._config.keep_checkpoint_max:
            return
        pattern = re.compile(re.escape(self._prefix) + r"-\d+_\d+\.ckpt")
        paths = [
            os.path.join(self._directory, f)
            for f in os.listdir(self._directory)
            if pattern.fullmatch(f)
        ]
        paths.sort(key=lambda f: (os.stat(f).st_mtime_ns, f))
        for path in paths[: -self._config.keep_checkpoint_max]:
            if path != self._latest:
                os.unlink(path)


# Progress -------------------------------------------------------------------------------------------


class ProgressBar(Callback):
    """Shows how far an epoch is and its mean loss: a bar in a terminal or a notebook, one line an
    epoch in a log file. The bar needs tqdm; without it there are lines.

    every: the loss is read and shown every so many steps. file: where to write, by default stderr.
    """

    def __init__(self, every: int = 10, file: TextIO | None = None) -> None:
        self.every = _positive("ProgressBar", "every", every, 1)
        self.file = file
        self._bar: Any = None
        self._losses: list[float] = []
        self._start = 0.0

    def _new_bar(self, p: CallbackParameters) -> Any:
        file = self.file or sys.stderr
        notebook = "ipykernel" in sys.modules
        if not notebook and not (hasattr(file, "isatty") and file.isatty()):
            return None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        return tqdm(
            total=p.batch_num,
            desc=f"epoch {p.cur_epoch_num}/{p.epoch_num}",
            unit="step",
            file=None if notebook else file,
            leave=True,
            dynamic_ncols=True,
        )

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        self._losses, self._start = [], time.perf_counter()
        self._bar = self._new_bar(run_context.original_args())

    def on_train_step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        step = _step_in_epoch(p)
        if step % self.every == 0 or step == p.batch_num:
            loss = loss_of(p.net_outputs)
            if loss is not None and not overflowed(p.net_outputs):
                self._losses.append(loss)
            if self._bar is not None and self._losses:
                self._bar.set_postfix(loss=f"{np.mean(self._losses):.4g}", refresh=False)
        if self._bar is not None:
            self._bar.update(1)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        shown = {"loss": np.mean(self._losses)} if self._losses else {}
        shown.update(
            {k: v for k, v in (p.eval_results or {}).items() if isinstance(v, (int, float))}
        )
        text = ", ".join(f"{k} {v:.4g}" for k, v in shown.items())
        if self._bar is not None:
            self._bar.set_postfix_str(text)
            self.close()
            return
        seconds = time.perf_counter() - self._start
        print(
            f"epoch {p.cur_epoch_num}/{p.epoch_num}: {_step_in_epoch(p)} steps in {seconds:.1f} s"
            + (f", {text}" if text else ""),
            file=self.file or sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        """Ends the bar's line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
