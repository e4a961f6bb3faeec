"""Callback, the objects that it is called with, and its reading of the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_type, tree


class CallbackParameters(dict[str, Any]):
    """The state of a run for callbacks, as attributes: cur_epoch_num and cur_step_num (from 1,
    steps counted over all epochs), epoch_num, batch_num (steps in an epoch), net_outputs (what the
    training cell returned), network, train_network, eval_network, optimizer, loss_fn, metrics,
    eval_results, train_dataset, train_dataset_element, mode. Missing ones are None."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """The run for callbacks: its parameters, and a way to stop it.

    original_args: the CallbackParameters of the run.
    """

    def __init__(self, original_args: CallbackParameters) -> None:
        self._args = original_args
        self._stop_requested = False

    def original_args(self) -> CallbackParameters:
        """The run's parameters."""
        return self._args

    def request_stop(self) -> None:
        """Ends training after the present step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Return whether a stop was requested."""
        return self._stop_requested


_Event = Callable[["Callback", RunContext], None]


def _event(other: str, text: str) -> _Event:
    """A method of Callback, which calls the one of the other name where that is redefined."""

    def on_event(self: Callback, run_context: RunContext) -> None:
        self._if_redefined(other, run_context)

    on_event.__doc__ = text
    return on_event


class Callback:
    """The base class of callbacks: define the methods you need. An exception in one ends the run
    with the parameters of the last finished step; then close is called, but not on_train_end.

    The older names begin, epoch_begin, step_begin, step_end, epoch_end and end are called by the
    on_... methods that are not redefined, and call on_train_... where they are not: a training
    loop of your own may use either.
    """

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def _if_redefined(self, name: str, run_context: RunContext) -> None:
        if name in vars(self) or getattr(type(self), name) is not getattr(Callback, name):
            getattr(self, name)(run_context)

    begin: ClassVar[_Event] = _event("on_train_begin", "Before training or evaluation.")
    epoch_begin: ClassVar[_Event] = _event("on_train_epoch_begin", "Before an epoch.")
    epoch_end: ClassVar[_Event] = _event("on_train_epoch_end", "After an epoch.")
    step_begin: ClassVar[_Event] = _event("on_train_step_begin", "Before a step.")
    step_end: ClassVar[_Event] = _event("on_train_step_end", "After a step.")
    end: ClassVar[_Event] = _event("on_train_end", "After training or evaluation.")

    def close(self) -> None:
        """At the end of a run, also of one that failed."""

    on_train_begin: ClassVar[_Event] = _event("begin", "Before training.")
    on_train_epoch_begin: ClassVar[_Event] = _event("epoch_begin", "Before an epoch of training.")
    on_train_epoch_end: ClassVar[_Event] = _event("epoch_end", "After an epoch of training.")
    on_train_step_begin: ClassVar[_Event] = _event("step_begin", "Before a step of training.")
    on_train_step_end: ClassVar[_Event] = _event("step_end", "After a step of training.")
    on_train_end: ClassVar[_Event] = _event("end", "After training.")
    on_eval_begin: ClassVar[_Event] = _event("begin", "Before an evaluation.")
    on_eval_epoch_begin: ClassVar[_Event] = _event("epoch_begin", "Before an evaluation's epoch.")
    on_eval_epoch_end: ClassVar[_Event] = _event("epoch_end", "After an evaluation's epoch.")
    on_eval_step_begin: ClassVar[_Event] = _event("step_begin", "Before a batch of an evaluation.")
    on_eval_step_end: ClassVar[_Event] = _event("step_end", "After a batch of an evaluation.")
    on_eval_end: ClassVar[_Event] = _event("end", "After an evaluation.")


class CallbackManager(Callback):
    """Several callbacks as one: each event is passed on to all of them, in their order."""

    def __init__(self, callbacks: Any) -> None:
        listed = [] if callbacks is None else callbacks
        self.callbacks: list[Callback] = [listed] if isinstance(listed, Callback) else list(listed)
        for callback in self.callbacks:
            if not isinstance(callback, Callback):
                bad_type(f"{type(callback).__name__} is not a Callback")

    def __enter__(self) -> CallbackManager:
        for callback in self.callbacks:
            callback.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        for callback in reversed(self.callbacks):
            callback.__exit__(*error)

    def close(self) -> None:
        for callback in self.callbacks:
            callback.close()


def _passed_on(event: str) -> Any:
    def pass_on(self: CallbackManager, run_context: RunContext) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(run_context)

    pass_on.__doc__ = getattr(Callback, event).__doc__
    return pass_on


for _name in [n for n in vars(Callback) if n.startswith("on_") or n.endswith(("begin", "end"))]:
    _method = vars(Callback)[_name]
    _method.__name__, _method.__qualname__ = _name, f"Callback.{_name}"
    setattr(CallbackManager, _name, _passed_on(_name))


def loss_of(net_outputs: Any) -> float | None:
    """The loss among what a training cell returned, as a number: the mean of its first tensor."""
    found = tree.leaves(net_outputs)
    if not found:
        return float(net_outputs) if isinstance(net_outputs, (int, float)) else None
    return float(np.mean(found[0].asnumpy().astype(np.float64)))


def overflowed(net_outputs: Any) -> bool:
    """Return whether a loss-scaling cell's step overflowed and was skipped."""
    found = net_outputs[1] if isinstance(net_outputs, tuple) and len(net_outputs) > 1 else None
    flag = isinstance(found, Tensor) and found.dtype == _core.bool and found.size == 1
    return flag and bool(found)


def step_in_epoch(p: CallbackParameters) -> int:
    """The step's number in its epoch, from 1."""
    if p.cur_step_in_epoch is not None:
        return int(p.cur_step_in_epoch)
    return (p.cur_step_num - 1) % (p.batch_num or 1) + 1  # type: ignore[no-any-return]
