"""The course of a run: seconds, loss, error and the time left while it runs, and a picture of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gradcell.base import bad_value
from gradcell.solvers.solver import SolverState

__all__ = ["Course"]


class Course:
    """A callback for runs of solvers: course = Course(...);
    solver.run(steps, *points, callback=course).

    error: a function without arguments that gives the error of the parameters as they are now; the time
    that it takes is not counted. every: seconds between two calls of it, and two lines. steps,
    seconds: when the run will end, to estimate the time left. target: an error that ends the run.
    progress: whether lines are printed. `points` is a list of (seconds, loss, error), with nan for
    the error without a function.

    Raises ValueError for negative numbers.
    """

    def __init__(
        self,
        error: Callable[[], float] | None = None,
        *,
        every: float = 1.0,
        steps: int | None = None,
        seconds: float | None = None,
        target: float | None = None,
        progress: bool = True,
    ) -> None:
        numbers = [x for x in (every, steps, seconds, target) if x is not None]
        if any(x < 0 for x in numbers) or (target is not None and error is None):
            bad_value(
                "Course: every, steps, seconds and target must not be negative, and a target needs an "
                f"error, got {every}, {steps}, {seconds} and {target}"
            )
        self.error: Callable[[], float] | None = error
        self.every: float = every
        self.steps: int | None = steps
        self.most: float | None = seconds
        self.target: float | None = target
        self.progress: bool = progress
        self.points: list[tuple[float, float, float]] = []
        self._begun = time.perf_counter()
        self._aside = self._next = 0.0
        self._taken = 0

    @property
    def seconds(self) -> float:
        """The time since it was made, without that for errors."""
        return time.perf_counter() - self._begun - self._aside

    def __call__(self, state: SolverState) -> bool:
        """Notes a step by its state. Returns True where the target is reached."""
        self._taken += 1
        now = self.seconds
        if now < self._next and self._taken != self.steps:
            return False
        value = state.loss
        before = time.perf_counter()
        error = float("nan") if self.error is None else float(self.error())
        self._aside += time.perf_counter() - before
        self._next = now + self.every
        self.points.append((now, value, error))
        if self.progress:
            told = f", error {error:.2e}" if self.error is not None else ""
            print(
                f"step {self._taken:6d}, loss {value:.2e}{told}, {now:.1f} s{self._left(now)}",
                flush=True,
            )
        return self.target is not None and error <= self.target

    def _left(self, now: float) -> str:
        left = [now / self._taken * (self.steps - self._taken)] if self.steps else []
        left += [self.most - now] if self.most else []
        return f", {max(min(left), 0.0):.0f} s left" if left else ""

    def plot(self, path: Any, title: str = "") -> None:
        """Draws loss and error over seconds into a file. Needs Matplotlib. Raises ValueError before the
        first step."""
        if not self.points:
            bad_value("Course.plot: no step has been noted yet")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        seconds, losses, errors = zip(*self.points, strict=True)
        axes.semilogy(seconds, losses, lw=0.9, color="0.5", label="loss")
        if self.error is not None:
            axes.semilogy(seconds, errors, lw=1.5, color="C3", label="error")
        axes.set(xlabel="seconds", title=title)
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
        figure.savefig(path, dpi=120)
