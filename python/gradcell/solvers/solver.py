"""Runs of all solvers, their ends, what callbacks get and what results say."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from gradcell._core import Tensor, float64
from gradcell.base import bad_value
from gradcell.solvers.first import FirstSteps, adam_steps
from gradcell.tensors.parameter import Parameter

__all__ = ["SolverState"]

Vector = np.ndarray[Any, Any]

#: Why a step or a run was the last one, or that it was not.
_REASONS = {
    "stepped": "a step lowered the loss",
    "adam": "a step of Adam; the loss is that before it",
    "descended": "a step of the optimiser; the loss is that before it",
    "rejected": "no step lowers the loss: the damping grows, and the parameters stay",
    "not finite": "the loss or its derivatives are not finite; the parameters are those of the last "
    "good step",
    "singular": "the damped system could not be factored up to the largest damping; the parameters stay",
    "small loss": "the loss is at most loss_tolerance",
    "small gradient": "the gradient is at most gradient_tolerance",
    "small decrease": "steps lowered the loss by less than value_tolerance of it",
    "no lower point": "no step lowers the loss: it is at a minimum, or floating-point precision is exhausted",
    "stalled": "no step was found that lowers the loss, although its derivatives foretell it: roundings hide "
    "what is left, too few points were tried, or the gradient or Jacobian is not that of the values",
    "steps": "the limit max_steps was reached",
    "evaluations": "max_evaluations have been made",
    "seconds": "max_seconds have passed",
    "stopped": "the callback returned True",
    "interrupted": "it was interrupted; the parameters are those of the best point, after whole steps",
}
_REACHED = ("small loss", "small gradient", "small decrease", "no lower point")
_HOPELESS = ("not finite", "singular")
_ENDS = (*_REACHED, *_HOPELESS, "stalled")
_BEFORE = ("adam", "descended", "not finite")  # states with the loss before their step


@dataclass(frozen=True)
class SolverState:
    """Describes what a step of a solver did, as callbacks get it, or how a run ended.

    loss: at the parameters as they are now. steps: how many this solver has taken, in all runs. nit: those
    of this run. nfev: how often this run has computed the loss and its gradient, or the residuals and their
    Jacobian. reason: what it was, in a word ("stepped" if there may be more).
    """

    loss: float
    steps: int
    nit: int = field(compare=False)
    nfev: int = field(compare=False)
    reason: str
    _point: Vector | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def message(self) -> str:
        """The reason in a sentence."""
        return _REASONS[self.reason]

    @property
    def finished(self) -> bool:
        """Return whether more steps at the same points would change nothing or are impossible."""
        return self.reason in _ENDS

    @property
    def success(self) -> bool:
        """Return whether a minimum is reached, within the tolerances and the precision of the dtype."""
        return self.reason in _REACHED

    @property
    def fun(self) -> float:
        """The loss, by the name that SciPy has for it."""
        return self.loss

    @property
    def x(self) -> Vector:
        """All parameters' elements at the end of a run, a vector of float64. Raises ValueError in a callback,
        where the parameters themselves have them."""
        if self._point is None:
            bad_value("x: the end of a run has it; in a callback the parameters are at the point")
        return self._point

    @property
    def _told(self) -> str:
        """The part of a line of progress that says more than the loss."""
        return ""


S = TypeVar("S", bound=SolverState)


class Solver(Generic[S]):
    """Base class of solvers."""

    _name: ClassVar[str] = ""
    _state_kind: ClassVar[type[SolverState]] = SolverState
    _window: ClassVar[int] = (
        0  #: over how many steps value_tolerance holds; 0 if steps see to it themselves
    )

    steps: int  #: how many it has taken, in all runs
    evaluations: int  #: how often the loss and its gradient were computed, in all runs
    _mark: tuple[int, ...] = (0, 0, 0)  # what was counted when the run began

    def __init__(
        self,
        parameters: list[Parameter],
        loss_tolerance: float | None,
        gradient_tolerance: float,
        value_tolerance: float,
    ) -> None:
        given = [t for t in (loss_tolerance, gradient_tolerance, value_tolerance) if t is not None]
        if not all(t >= 0 for t in given[-2:]) or any(math.isnan(t) for t in given):
            bad_value(
                f"{self._name}: the tolerances must not be negative, got gradient_tolerance "
                f"{gradient_tolerance} and value_tolerance {value_tolerance}, loss_tolerance {loss_tolerance}"
            )
        self._fitted = parameters
        self.loss_tolerance: float | None = loss_tolerance
        self.gradient_tolerance: float = gradient_tolerance
        self.value_tolerance: float = value_tolerance

    # What a solver defines ------------------------------------------------------------------------

    def _arguments(self, points: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of `_objective` for a run's points."""
        raise NotImplementedError

    def _objective(self, *args: Any) -> Tensor:
        """The loss, recorded."""
        raise NotImplementedError

    def _begin(self, points: tuple[Any, ...]) -> None:
        """Steps will be at these points, from the parameters as they are."""
        raise NotImplementedError

    def _advance(self, most: int, evaluations: int) -> S:
        """Takes at most so many steps, with so many evaluations (0: any number); what the last one did."""
        raise NotImplementedError

    def _value(self) -> float:
        """Return the loss at the parameters as they are."""
        raise NotImplementedError

    def _settle(self) -> None:
        """Leaves the parameters at the best point."""

    #: Adds over the processes that have parts of the points; None for one process.
    _summed: Callable[[Tensor], Tensor] | None = None

    def _agreed(self, seconds: float) -> float:
        """The seconds by which all processes end a run: the largest."""
        if self._summed is None:
            return seconds
        from gradcell.communication.collectives import all_reduce

        return float(all_reduce(Tensor(seconds, float64), "max"))

    def _counts(self) -> tuple[int, ...]:
        return self.steps, self.evaluations

    # Runs -----------------------------------------------------------------------------------------

    def run(
        self,
        max_steps: int = 1000,
        *points: Any,
        resample: Callable[[int], Any] | None = None,
        every: int = 1,
        max_evaluations: int | None = None,
        max_seconds: float | None = None,
        callback: Callable[[S], Any] | None = None,
        progress: int = 0,
        adam: int = 0,
        rate: float | Sequence[float] = 1e-3,
    ) -> S:
        """Takes up to max_steps steps, leaves the parameters at the best point, and returns how it ended: the
        state of the last step with the reason, whose `x` are all parameters' elements. Another run goes on
        from there, with other points too.

        points: the arguments of the loss or of the residuals; left out, those of before. resample(step) gives
        new ones `every` steps, as a tuple or one. max_evaluations, max_seconds: when it ends, whatever is
        reached. callback: a function of each step's state, with the parameters at its point; ends the run by
        returning True. progress: prints a line after so many steps, and one at the end. adam: so many steps
        of Adam come first, whose learning rate falls from `rate` to a hundredth of it along a cosine, or is
        one for each step; their states' reason is "adam". With new points by resample no run ends because
        nothing is left to gain at the old ones. Ctrl-C ends it after the last whole step, "interrupted".
        Raises ValueError for negative numbers.
        """
        if max_steps < 0 or every < 1 or progress < 0:
            bad_value(
                f"{self._name}: every must be at least 1, max_steps and progress must not be negative, got "
                f"{every}, {max_steps} and {progress}"
            )
        first = adam_steps(self._name, self._objective, self._fitted, adam, rate, self._summed)
        begun, self._mark = time.perf_counter(), self._counts()
        alone = (callback, resample, max_seconds, self.loss_tolerance) == (None,) * 4
        last, taken, reason = adam + max_steps, 0, "" if adam + max_steps else "steps"
        state: S | None = None
        losses: list[float] = []
        fresh = True  # no step has been at these points
        try:
            while not reason:
                if resample is not None and taken % every == 0:
                    found = resample(taken)
                    points = tuple(found) if isinstance(found, (tuple, list)) else (found,)
                    fresh = True
                before = self.steps
                if taken < adam:
                    state = self._of_first(first, points, "adam")
                else:
                    if fresh:
                        self._begin(points)
                        fresh = False
                    most = min(last - taken, progress - taken % progress if progress else last)
                    left = max_evaluations - self._made() if max_evaluations else 0
                    state = self._advance(most if alone else 1, left)
                    losses.append(state.loss)
                    if not alone:
                        self._settle()
                taken += max(1, self.steps - before)
                seconds = time.perf_counter() - begun
                if max_seconds is not None:
                    seconds = self._agreed(seconds)
                idle = state.finished and self.steps == before
                if progress and taken % progress == 0 and not idle:
                    self._print(state, taken, seconds, last)
                reason = state.reason if state.finished and resample is None else ""
                reason = reason or (state.reason if state.reason in _HOPELESS else "")
                if self.loss_tolerance is not None and state.loss <= self.loss_tolerance:
                    reason = "small loss"
                elif resample is None and self._stalls(losses):
                    reason = "small decrease"
                if callback is not None and not idle and callback(state) is True:
                    reason = reason or "stopped"
                if taken >= last:
                    reason = reason or "steps"
                if max_evaluations and self._made() >= max_evaluations:
                    reason = reason or "evaluations"
                if max_seconds is not None and seconds >= max_seconds:
                    reason = reason or "seconds"
        except KeyboardInterrupt:
            reason = "interrupted"
        except BaseException:
            if not fresh:
                self._settle()
            raise
        if fresh:
            self._begin(points)
        self._settle()
        ended = self._ended(state, reason)
        if progress:
            print(
                f"{self._name}: {ended.nit} steps, {ended.nfev} evaluations, loss {ended.loss:.6g}: "
                f"{ended.message}"
            )
        return ended

    def _made(self) -> int:
        return self.evaluations - self._mark[1]

    def _print(self, state: S, taken: int, seconds: float, last: int) -> None:
        left = seconds / taken * (last - taken)
        print(
            f"{self._name}: step {taken}, loss {state.loss:.6g}{state._told}, {seconds:.1f} s, "
            f"at most {left:.0f} s left"
        )

    def _of_first(self, first: FirstSteps, points: tuple[Any, ...], reason: str) -> S:
        loss = first.step(*self._arguments(points))
        return self._state(reason if math.isfinite(loss) else "not finite", loss)

    def _state(self, reason: str, loss: float, **more: Any) -> S:
        steps, nfev = self.steps, self._made()
        state = self._state_kind(loss, steps, steps - self._mark[0], nfev, reason, **more)
        return state  # type: ignore[return-value]

    def _ended(self, state: S | None, reason: str) -> S:
        """Return the state of a run's end from that of its last step."""
        if state is None or state.reason in _BEFORE:
            state = self._state(reason, self._value())
        parts = [p.asnumpy().astype(np.float64).reshape(-1) for p in self._fitted]
        state = replace(state, reason=reason)
        object.__setattr__(state, "_point", np.concatenate(parts))
        return state

    def _stalls(self, losses: Sequence[float]) -> bool:
        n, tolerance = self._window, self.value_tolerance
        return 0 < n < len(losses) and losses[-n - 1] - losses[-1] < tolerance * abs(losses[-1])
