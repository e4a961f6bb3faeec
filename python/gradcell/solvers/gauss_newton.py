"""Gauss-Newton steps with Levenberg-Marquardt damping: residuals, their Jacobian, the damped system, its
solution and the search for a step are one plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.compiled import jit
from gradcell.parameter import Parameter
from gradcell.solvers.jacobian import Blocks

__all__ = ["GaussNewton", "GaussNewtonState"]

_ops = _core.ops

#: The multiples of a direction that are tried.
STEPS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-5)

#: Why a step or a run was the last one, or that it was not.
_REASONS = {
    "stepped": "a step lowered the loss",
    "no lower point": "no step lowers the loss: the damping grows, and the parameters stay",
    "not finite": "the loss or its Jacobian is not finite; the parameters are those of the last good step",
    "singular": "the damped system could not be factored up to the largest damping; the parameters stay",
    "small loss": "the loss is at most loss_tolerance",
    "small decrease": "steps lowered the loss by less than value_tolerance of it",
    "minimum": "no step lowers the loss at any damping: it is at a minimum, or the digits are used up",
    "steps": "max_steps have been taken",
    "seconds": "max_seconds have passed",
    "stopped": "the callback returned True",
    "interrupted": "it was interrupted; the parameters are those of the last whole step",
}


@dataclass(frozen=True)
class GaussNewtonState:
    """What one step did, or how a run ended.

    loss: at the parameters as they are now; before: before the step; step: the multiple of the direction
    that was taken, 0 where none lowered the loss; damping: what was added to the matrix's diagonal; ratio:
    the decrease over the one that the linearised residuals foretold; gradient: the largest component of
    the loss's gradient before the step; steps: how many this solver has taken; reason: what it was, in a
    word ("stepped" if there may be more), message: in a sentence.
    """

    loss: float
    before: float
    step: float
    damping: float
    ratio: float
    gradient: float
    steps: int
    reason: str

    @property
    def message(self) -> str:
        """The reason in a sentence."""
        return _REASONS[self.reason]

    @property
    def finished(self) -> bool:
        """Whether more steps at the same points would change nothing, or cannot be taken."""
        return self.reason in ("not finite", "singular", "minimum", "small loss", "small decrease")


class GaussNewton:
    """Least squares by Gauss-Newton steps: (J' J + d I) s = -J' r for the residuals r and their
    Jacobian J by the parameters, each step one compiled call.

    residuals: a function of points that gives one number for each, [N], or k, [N, k]; or a list of such
    functions, each with points of its own. The loss is the sum over them of weight times mean square.
    Rows of J are gradients of single points, so a residual should depend on its own point alone; one
    that combines points (an integral) may give [m] of any other length, and costs a pass back for each.
    parameters: float32 or float64, one dtype. weights: one for each function, 1 without.

    The system is that of the smaller space: P x P for fewer parameters than residuals, else N x N of
    J J' + d I (Woodbury), solved by Cholesky's factorisation in float64. The damping d (K. Levenberg
    1944, D. W. Marquardt 1963) begins at `damping`, or at 1e-3 of the matrix's largest diagonal element;
    it falls where the loss falls as the linearised residuals say, and grows where it does not. The step
    is the best of the multiples `steps` of s; if none lowers the loss, the parameters stay and the
    damping grows. momentum: the share of the last direction that the new one is close to, as SPRING has
    it (G. Goldshlager, N. Abrahamsen, L. Lin, J. Comput. Phys. 516, 2024): less noise where points are
    new in each step.

    Raises ValueError for residuals that are no vectors, parameters of other dtypes, weights that are not
    positive, points of unequal counts in one function.
    """

    def __init__(
        self,
        residuals: Any,
        parameters: Any,
        *,
        weights: Sequence[float] | None = None,
        damping: float | None = None,
        momentum: float = 0.0,
        steps: Sequence[float] = STEPS,
    ) -> None:
        self.blocks = Blocks("GaussNewton", residuals, parameters, weights)
        grid = [float(a) for a in steps]
        if not grid or not all(0 < a < np.inf for a in grid):
            raise ValueError(f"GaussNewton: steps must be positive numbers, got {steps}{where()}")
        if not 0 <= momentum < 1 or (damping is not None and not 0 < damping < np.inf):
            raise ValueError(
                "GaussNewton: momentum must be from 0 to less than 1, and damping positive or None, got "
                f"{momentum} and {damping}{where()}"
            )
        self.momentum, self._grid = momentum, grid
        self.damping = damping
        self.steps = 0
        self._failures = 0
        self._direction = Parameter(Tensor(np.zeros(self.blocks.size), self.blocks.dtype))
        self._plans: dict[tuple[bool, ...], Any] = {}
        self._loss = jit(lambda points: _square_sum(self.blocks.vector(points)))

    # One step -------------------------------------------------------------------------------------

    def step(self, *points: Any) -> GaussNewtonState:
        """One step at these points: the arguments of the residual function; of several functions, for
        each its points, or a tuple of its arguments."""
        given = self.blocks.given(points)
        apart = tuple(self.blocks.rows_apart(given))
        for _ in range(40):
            try:
                return self._taken(*self._numbers(apart, given))
            except ValueError as error:
                if "not positive definite" not in str(error):
                    raise
            loss = float(self._loss(given))
            if not np.isfinite(loss) or not np.isfinite(self._gradient(apart, given)):
                return self._state(loss, loss, 0.0, 0.0, np.nan, "not finite")
            self.damping = 10 * (self.damping or 1e-12)
        return self._state(loss, loss, 0.0, 0.0, np.nan, "singular")

    def _numbers(self, apart: tuple[bool, ...], given: list[tuple[Any, ...]]) -> list[float]:
        if apart not in self._plans:
            self._plans[apart] = jit(lambda d, points: self._recorded(apart, d, points))
        damping = Tensor(np.float64(self.damping or 0.0), _core.float64)
        found = self._plans[apart](damping, given)
        return [float(x) for x in found.asnumpy()]

    def _recorded(self, apart: Sequence[bool], damping: Tensor, points: Any) -> Tensor:
        """The step as nodes: what it did, [loss, before, step, damping, foretold loss, gradient]."""
        blocks, dtype = self.blocks, self.blocks.dtype
        start = blocks.elements()
        residual = blocks.vector(points)
        parts = blocks.jacobian(points, apart)
        jacobian = parts[0] if len(parts) == 1 else _ops.concat(parts, 0)
        column = _ops.reshape(residual, [residual.size, 1])
        slope = _ops.matmul(jacobian, column, True)
        last = _ops.reshape(_ops.add(self._direction, 0.0), [blocks.size, 1])
        direction, damping = self._solution(jacobian, column, slope, last, damping)
        moved = _ops.reshape(_ops.matmul(jacobian, direction), [residual.size])
        flat = _ops.reshape(direction, [blocks.size])
        before = _square_sum(residual)
        losses, foretold = [before], [before]
        for a in self._grid:
            blocks.assign(_ops.add(start, _ops.mul(flat, a)))
            losses.append(_square_sum(blocks.vector(points)))
            foretold.append(_square_sum(_ops.add(residual, _ops.mul(moved, a))))
        taken, (loss, expected, step) = _best(losses, foretold, [0.0, *self._grid])
        blocks.assign(_ops.where(taken, _ops.add(start, _ops.mul(flat, _ops.cast(step, dtype))), start))
        self._direction.set_data(_ops.where(taken, flat, _ops.mul(flat, 0.0)))
        gradient = _ops.mul(_wide(_ops.reduce_max(_ops.abs(slope), [0, 1], False)), 2.0)
        numbers = [loss, before, step, damping, expected, gradient]
        return _ops.concat([_ops.reshape(_wide(n), [1]) for n in numbers], 0)

    def _solution(
        self, jacobian: Tensor, column: Tensor, slope: Tensor, last: Tensor, damping: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(The direction [P, 1], the damping that there is), from the smaller of both systems."""
        count, size = jacobian.shape
        wide = count < size
        matrix = _ops.matmul(jacobian, jacobian, not wide, wide)
        n = min(count, size)
        unit = _ops.equal(
            _ops.iota([n, n], _core.int32, 0), _ops.iota([n, n], _core.int32, 1)
        )
        largest = _wide(_ops.reduce_max(_ops.where(unit, matrix, 0.0), [0, 1], False))
        least = _ops.mul(largest, 4 * float(np.finfo(_numpy(jacobian)).eps))
        begun = _ops.where(_ops.greater(damping, 0.0), damping, _ops.mul(largest, 1e-3))
        damping = _ops.maximum(_ops.maximum(begun, least), 1e-300)
        damped = _ops.add(_wide(matrix), _ops.where(unit, damping, 0.0))
        factor = _ops.cholesky_factor(damped, False)
        ahead = _ops.mul(last, self.momentum) if self.momentum else None
        if wide:
            right = column if ahead is None else _ops.add(column, _ops.matmul(jacobian, ahead))
            weights = _ops.cast(_ops.cholesky_solve(factor, _wide(right), False), jacobian.dtype)
            found = _ops.neg(_ops.matmul(jacobian, weights, True))
            return (found if ahead is None else _ops.add(found, ahead)), damping
        right = _ops.neg(_wide(slope))
        if ahead is not None:
            right = _ops.add(right, _ops.mul(_wide(ahead), damping))
        return _ops.cast(_ops.cholesky_solve(factor, right, False), jacobian.dtype), damping

    def _gradient(self, apart: tuple[bool, ...], given: list[tuple[Any, ...]]) -> float:
        """The sum of the Jacobian's sizes, to see whether it is finite."""

        def total(points: Any) -> Tensor:
            parts = [_square_sum(j) for j in self.blocks.jacobian(points, apart)]
            return _ops.concat([_ops.reshape(p, [1]) for p in parts], 0)

        return float(np.sum(jit(total)(given).asnumpy()))

    # The damping ----------------------------------------------------------------------------------

    def _taken(
        self, loss: float, before: float, step: float, damping: float, expected: float, gradient: float
    ) -> GaussNewtonState:
        """What the numbers say, and the damping of the next step."""
        if not np.isfinite(before):
            return self._state(before, before, 0.0, 0.0, gradient, "not finite")
        ratio = (before - loss) / max(before - expected, np.finfo(np.float64).tiny)
        used, self.damping = damping, damping * _factor(step, ratio)
        if step == 0.0:
            self._failures += 1
            reason = "minimum" if self._failures >= 8 else "no lower point"
            return self._state(loss, before, step, ratio, gradient, reason, used)
        self._failures = 0
        self.steps += 1
        return self._state(loss, before, step, ratio, gradient, "stepped", used)

    def _state(
        self, loss: float, before: float, step: float, ratio: float, gradient: float,
        reason: str, damping: float | None = None,
    ) -> GaussNewtonState:  # fmt: skip
        used = (self.damping or 0.0) if damping is None else damping
        return GaussNewtonState(loss, before, step, used, ratio, gradient, self.steps, reason)

    # Runs -----------------------------------------------------------------------------------------

    def run(
        self,
        max_steps: int,
        *points: Any,
        resample: Callable[[int], Any] | None = None,
        every: int = 1,
        max_seconds: float | None = None,
        loss_tolerance: float = 0.0,
        value_tolerance: float = 0.0,
        callback: Callable[[GaussNewtonState], Any] | None = None,
        progress: int = 0,
    ) -> GaussNewtonState:
        """Up to max_steps steps; the state of the last one, with the reason why there are no more.

        resample(step) gives new points every `every` steps, as a tuple of what `step` takes. It ends when
        the loss is at most loss_tolerance, when ten steps together lowered it by less than value_tolerance
        of it (not with new points), after max_seconds, or when the callback, called with each step's state,
        returns True. Ctrl-C ends it after the last whole step, "interrupted". progress: prints a line every
        so many steps, and one at the end.
        """
        if max_steps < 1 or every < 1:
            raise ValueError(
                f"GaussNewton: max_steps and every must be at least 1, got {max_steps} and {every}{where()}"
            )
        begun, losses = time.perf_counter(), []
        state, reason = None, ""
        try:
            for k in range(max_steps):
                if resample is not None and k % every == 0:
                    found = resample(k)
                    points = tuple(found) if isinstance(found, (tuple, list)) else (found,)
                state = self.step(*points)
                losses.append(state.loss)
                seconds = time.perf_counter() - begun
                if progress and (k + 1) % progress == 0:
                    left = seconds / (k + 1) * (max_steps - k - 1)
                    print(
                        f"Gauss-Newton: step {k + 1}, loss {state.loss:.6g}, damping {state.damping:.1e}, "
                        f"{seconds:.1f} s, at most {left:.0f} s left"
                    )
                reason = state.reason if state.finished and resample is None else ""
                reason = reason or (state.reason if state.reason in _HOPELESS else "")
                if state.loss <= loss_tolerance:
                    reason = "small loss"
                elif resample is None and _stalls(losses, value_tolerance):
                    reason = "small decrease"
                elif callback is not None and callback(state) is True:
                    reason = reason or "stopped"
                elif max_seconds is not None and seconds >= max_seconds:
                    reason = reason or "seconds"
                if reason:
                    break
        except KeyboardInterrupt:
            reason = "interrupted"
        if state is None:
            state = self._state(np.nan, np.nan, 0.0, 0.0, np.nan, reason)
        ended = GaussNewtonState(
            **{**state.__dict__, "reason": reason or "steps", "steps": self.steps}
        )
        if progress:
            print(f"Gauss-Newton: {len(losses)} steps, loss {ended.loss:.6g}: {ended.message}")
        return ended

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What the next step depends on besides the parameters and the points, as numbers and arrays:
        damping, steps, failures, direction."""
        return {
            "damping": self.damping,
            "steps": self.steps,
            "failures": self._failures,
            "direction": self._direction.asnumpy().copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what state_dict gave. Raises ValueError for that of other parameters."""
        missing = {"damping", "steps", "failures", "direction"} - set(state)
        direction = np.asarray(state.get("direction"), np.float64)
        if missing or direction.shape != (self.blocks.size,):
            raise ValueError(
                f"GaussNewton: the state must have damping, steps, failures and a direction of "
                f"{self.blocks.size} elements, got {sorted(state)} and a direction of shape "
                f"{list(direction.shape)}{where()}"
            )
        damping = state["damping"]
        self.damping = None if damping is None else float(damping)
        self.steps, self._failures = int(state["steps"]), int(state["failures"])
        self._direction.set_data(Tensor(direction, self.blocks.dtype))


_HOPELESS = ("not finite", "singular")


def _factor(step: float, ratio: float) -> float:
    """What the damping is multiplied by, after a step that was the whole direction or less."""
    if step == 0.0:
        return 10.0
    if step < 0.1 or ratio < 0.1:
        return 4.0
    if step < 1.0 or ratio < 0.5:
        return 1.0
    return 1 / 3 if ratio < 0.9 else 0.1


def _stalls(losses: Sequence[float], tolerance: float, window: int = 10) -> bool:
    return len(losses) > window and losses[-window - 1] - losses[-1] < tolerance * losses[-1]


def _numpy(x: Tensor) -> Any:
    return np.dtype(x.dtype.name.lower())


def _wide(x: Tensor) -> Tensor:
    return _ops.cast(x, _core.float64)


def _square_sum(x: Tensor) -> Tensor:
    """The sum of all squares, in float64."""
    return _ops.reduce_sum(_ops.square(_wide(x)), list(range(x.ndim)), False)


def _best(
    losses: Sequence[Tensor], foretold: Sequence[Tensor], steps: Sequence[float]
) -> tuple[Tensor, list[Tensor]]:
    """(Whether one is below the first, [loss, foretold loss, step] of the smallest one)."""
    best = [losses[0], foretold[0], _ops.full([], 0.0, _core.float64)]
    for loss, expected, step in zip(losses[1:], foretold[1:], steps[1:], strict=True):
        lower = _ops.less(loss, best[0])  # false for NaN
        candidate = [loss, expected, _ops.full([], step, _core.float64)]
        best = [_ops.where(lower, c, b) for c, b in zip(candidate, best, strict=True)]
    return _ops.greater(best[2], 0.0), best
