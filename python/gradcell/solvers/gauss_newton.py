"""Gauss-Newton steps with Levenberg-Marquardt damping: residuals, their Jacobian, the damped system, its
solution and the search for a step are one plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcell._core import Tensor, float64, ops as _ops
from gradcell.base import bad_value, explain
from gradcell.compilation.compiled import jit
from gradcell.solvers.covariance import Covariance, covariance
from gradcell.solvers.dense import DenseSystem, Stored, relative_rounding, wide
from gradcell.solvers.iterative import IterativeSystem, linearised
from gradcell.solvers.jacobian import Blocks
from gradcell.solvers.solver import Solver, SolverState
from gradcell.tensors.parameter import Parameter

__all__ = ["GaussNewton", "GaussNewtonState"]


#: The multiples of a direction that are tried.
STEPS = (1.0, 0.5, 0.2, 0.05, 0.01, 1e-3)

#: After how many steps in a row that lower nothing, each with ten times the damping, it has ended.
MOST_FAILURES = 8


@dataclass(frozen=True)
class GaussNewtonState(SolverState):
    """Describes what one step did, or how a run ended: a SolverState with more numbers.

    loss, steps, nit, nfev, reason: as in SolverState. before: the loss before the step; step: the multiple of
    the direction that was taken, 0 where none lowered the loss; damping: what was added to the matrix's
    diagonal; ratio: the decrease over the one that the linearised residuals foretold; gradient: the largest
    component of the loss's gradient before the step.
    """

    before: float = math.nan
    step: float = 0.0
    damping: float = 0.0
    ratio: float = math.nan
    gradient: float = math.nan

    @property
    def _told(self) -> str:
        return f", damping {self.damping:.1e}"


class GaussNewton(Solver[GaussNewtonState]):
    """Least squares by Gauss-Newton steps: $(J' J + d I) s = -J' r$ for the residuals r and their
    Jacobian J by the parameters, each step one compiled call.

    The system is solved in float64 by Cholesky's factorisation, in the smaller of two spaces: P x P for P
    parameters, or N x N with $J J' + d I$ for fewer residuals than parameters (Woodbury). The damping d (K.
    Levenberg 1944, D. W. Marquardt 1963) falls after steps of at least half the direction, and grows after
    small ones. If no trial step lowers the loss, the parameters stay and the damping grows.

    residuals: a function of points that gives one number for each, [N], or k, [N, k]; or a list of such
    functions, each with points of its own. The loss is the sum over them of weight times mean square. Rows
    of J are gradients of single points, so a residual should depend on its own point alone; one that
    combines points (an integral) may give [m] of any other length, and costs a backward pass for each.
    parameters: Parameters of one dtype, float32 or float64. weights: a positive number for each function;
    by default 1. damping: the damping at the beginning; by default 1e-3 of the matrix's largest diagonal
    element. momentum: the share of the last direction to which the new one stays close, which lowers the
    noise if points are new in each step (SPRING: G. Goldshlager, N. Abrahamsen, L. Lin, J. Comput. Phys.
    516, 2024). steps: the multiples a of the direction s that are tried. acceleration: whether trial
    steps follow the curve $a s + a^2 c$, where c comes from the second derivative of the residuals along
    s (M. Transtrum, J. Sethna, arXiv:1201.5885). method: "dense", or "cg" for conjugate gradients without
    a matrix, for thousands of parameters and more. rows: of how many points of a function rows of J are
    in memory at once, for millions of points, N far more than P; by default of all. rank: for "cg", the
    number of products in the sketch that preconditions it (Nystroem). iterations: for "cg", the largest
    number of its steps, each of two products with J. value_tolerance: a run ends when ten steps together
    lowered the loss by less than this share of it.

    Where processes share the data (`set_auto_parallel_context(parallel_mode="data_parallel")` before the
    solver is made), each gives its part of the points, the loss is the mean of theirs, and all take the same
    steps; callbacks must end runs in all of them.

    Raises ValueError for residuals that are not vectors, parameters of other dtypes, weights that are not
    positive, points of unequal counts in one function.
    """

    _name, _state_kind, _window = "Gauss-Newton", GaussNewtonState, 10
    steps: int = 0
    evaluations: int = 0

    def __init__(
        self,
        residuals: Any,
        parameters: Any,
        *,
        weights: Sequence[float] | None = None,
        damping: float | None = None,
        momentum: float = 0.0,
        steps: Sequence[float] = STEPS,
        acceleration: bool = True,
        method: str = "dense",
        rows: int | None = None,
        rank: int = 20,
        iterations: int = 30,
        loss_tolerance: float | None = 0.0,
        gradient_tolerance: float = 0.0,
        value_tolerance: float = 0.0,
    ) -> None:
        self.blocks: Blocks = Blocks("GaussNewton", residuals, parameters, weights)
        super().__init__(
            self.blocks.parameters, loss_tolerance, gradient_tolerance, value_tolerance
        )
        self._summed = self.blocks.summed if self.blocks.processes > 1 else None
        grid = [float(a) for a in steps]
        if not grid or not all(0 < a < np.inf for a in grid):
            bad_value(f"GaussNewton: steps must be positive numbers, got {steps}")
        if not 0 <= momentum < 1 or (damping is not None and not 0 < damping < np.inf):
            bad_value(
                "GaussNewton: momentum must be from 0 to less than 1, and damping positive or None, got "
                f"{momentum} and {damping}"
            )
        if method not in ("dense", "cg") or rank < 1 or iterations < 1:
            bad_value(
                'GaussNewton: method must be "dense" or "cg", rank and iterations at least 1, got '
                f"{method!r}, {rank} and {iterations}"
            )
        if rows is not None and (rows < 1 or method == "cg"):
            bad_value(
                'GaussNewton: rows must be at least 1, and "cg" has no rows in memory, got '
                f"{rows} and {method!r}"
            )
        self.momentum: float = momentum
        self.rows: int | None = rows
        self._grid = grid
        self.iterations: int = iterations
        self.method = method
        self.acceleration = acceleration
        self.damping = damping
        self._failures = 0
        self._direction = Parameter(Tensor(np.zeros(self.blocks.size), self.blocks.dtype))
        self._sketch = _sketch(min(rank, self.blocks.size), self.blocks) if method == "cg" else None
        self._plans: dict[tuple[bool, ...] | None, Any] = {}
        self._loss = jit(self._objective)
        self._given: list[tuple[Any, ...]] | None = None  # the points of the last step
        self._points: tuple[Any, ...] = ()  # those of the run

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plans": {}}

    # One step -------------------------------------------------------------------------------------

    def step(self, *points: Any) -> GaussNewtonState:
        """One step at these points: the arguments of the residual function; of several functions, for
        each its points, or a tuple of its arguments."""
        self._mark = self._counts()
        self._begin(points)
        return self._advance(1, 0)

    def _begin(self, points: tuple[Any, ...]) -> None:
        self._points = points or self._points

    def _arguments(self, points: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.blocks.given(points or self._points),)

    def _value(self) -> float:
        return float(self._loss(*self._arguments(())))

    def _advance(self, most: int, evaluations: int) -> GaussNewtonState:
        points = self._points
        given = self._given = self.blocks.given(points)
        apart = None if self.method == "cg" else tuple(self.blocks.rows_apart(given))
        raised = 1.0
        for _ in range(40):
            try:
                return self._taken(*self._numbers(apart, raised, given))
            except ValueError as error:
                if not any(text in str(error) for text in _NO_SOLUTION):
                    raise
            loss, damping = float(self._loss(given)), self.damping or 0.0
            if not np.isfinite(loss) or not np.isfinite(self._gradient(given)):
                return self._state("not finite", loss, before=loss, damping=damping)
            raised *= 10
        return self._state("singular", loss, before=loss, damping=damping)

    def _numbers(
        self, apart: tuple[bool, ...] | None, raised: float, given: list[tuple[Any, ...]]
    ) -> list[float]:
        if apart not in self._plans:

            def recorded(damping: Tensor, points: list[tuple[Any, ...]]) -> Tensor:
                return self._recorded(apart, damping, points)

            self._plans[apart] = jit(recorded)
        damping = Tensor(np.array([self.damping or 0.0, raised]), float64)
        self.evaluations += 1
        found = self._plans[apart](damping, given)
        return [float(x) for x in found.asnumpy()]

    def _recorded(self, apart: Any, damping: Tensor, points: Any) -> Tensor:
        """The step as nodes: what it did, [loss, before, predicted loss, step, damping, gradient,
        hidden].
        damping: the one that is asked for, and what it is raised by."""
        blocks = self.blocks
        start = blocks.elements()
        residual = blocks.vector(points)
        path = self._of_matrix if apart is not None else self._of_products
        direction, bend, moved, slope, damping = path(residual, apart, damping, points)
        before = self._square_sum(residual)
        best = _Best(before, start)
        for a in self._grid:
            change = _ops.mul(direction, a)
            if bend is not None:
                change = _ops.add(change, _ops.mul(bend, a * a))
            there = _ops.add(start, change)
            blocks.assign(there)
            loss = self._square_sum(blocks.vector(points))
            best.consider(loss, there, a, self._square_sum(_ops.add(residual, _ops.mul(moved, a))))
        blocks.assign(best.point)
        nothing = _ops.full([blocks.size], 0, blocks.dtype)
        self._direction.set_data(_ops.where(best.lower, direction, nothing))
        gradient = _ops.mul(wide(_ops.reduce_max(_ops.abs(slope), [0], False)), 2.0)
        promised = _ops.sub(before, self._square_sum(_ops.add(residual, moved)))
        hidden = wide(self._hidden(start, direction, before, promised))
        numbers = [best.loss, before, best.foretold, best.step, damping, gradient, hidden]
        return _ops.concat([_ops.reshape(wide(n), [1]) for n in numbers], 0)

    def _hidden(self, start: Tensor, direction: Tensor, before: Tensor, promised: Tensor) -> Tensor:
        """Return whether the predicted decrease is below the loss's rounding, or the step below the
        parameters'."""
        rounding = relative_rounding(self.blocks.dtype)
        reach, size = (_ops.reduce_max(_ops.abs(x), [0], False) for x in (direction, start))
        return _ops.logical_or(
            _ops.less_equal(promised, _ops.mul(before, 16 * rounding)),
            _ops.less_equal(reach, _ops.mul(size, rounding)),
        )

    def _of_matrix(
        self, residual: Tensor, apart: Sequence[bool], damping: Tensor, points: Any
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]:
        blocks, (asked, raised) = self.blocks, _both(damping)
        rows = self.rows
        if rows is None:
            stored = Stored(blocks.jacobian(points, apart), blocks.summed)
            count, size = stored.matrix.shape
            of_rows = blocks.processes == 1 and count < size
            return self._along(DenseSystem(residual, stored, of_rows, asked, raised), points)
        with linearised(blocks, points) as linear:
            linear.gram = lambda _: blocks.gram(points, apart, rows)
            return self._along(DenseSystem(residual, linear, False, asked, raised), points)

    def _of_products(
        self, residual: Tensor, _: None, damping: Tensor, points: Any
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]:
        with linearised(self.blocks, points) as linear:
            assert self._sketch is not None
            sketch, (asked, raised) = _ops.add(self._sketch, 0.0), _both(damping)
            system = IterativeSystem(linear, residual, asked, raised, sketch, self.iterations)
            return self._along(system, points)

    def _along(
        self, system: Any, points: Any
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]:
        """(The direction s, how the path bends, J s, J' r, the damping)."""
        last = _ops.mul(self._direction, self.momentum) if self.momentum else None
        direction = system.direction(last)
        bend = None
        if self.acceleration:
            second = self.blocks.second(direction, points)
            bend = _ops.mul(system.least_squares(second), -0.5)
        return direction, bend, system.moved(direction), system.slope, system.damping

    def _gradient(self, given: list[tuple[Any, ...]]) -> float:
        """The gradient's size, to see whether it is finite."""

        def size(points: Any) -> Tensor:
            with linearised(self.blocks, points) as linear:
                return _square_sum(linear.back(linear.vector))

        return float(jit(size)(given))

    # The damping ----------------------------------------------------------------------------------

    def _taken(
        self, loss: float, before: float, foretold: float, step: float, used: float, gradient: float,
        hidden: float,
    ) -> GaussNewtonState:  # fmt: skip
        """Return the state of a step from its numbers, and set the damping of the next step."""
        more = {"before": before, "step": step, "damping": used, "gradient": gradient}
        if not np.isfinite(before):
            return self._state("not finite", before, **{**more, "step": 0.0})
        self.damping = used * _growth(step)
        reason = "small gradient" if gradient <= self.gradient_tolerance > 0 else ""
        if step == 0.0:
            self._failures += 1
            ended = "no lower point" if hidden else "stalled"
            reason = reason or ("rejected" if self._failures < MOST_FAILURES else ended)
            return self._state(reason, loss, **more)
        self._failures = 0
        self.steps += 1
        ratio = (before - loss) / max(before - foretold, float(np.finfo(np.float64).tiny))
        return self._state(reason or "stepped", loss, ratio=ratio, **more)

    def _square_sum(self, x: Tensor) -> Tensor:
        return self.blocks.summed(_square_sum(x))

    def _objective(self, points: Any) -> Tensor:
        return self._square_sum(self.blocks.vector(points))

    # Certainty ------------------------------------------------------------------------------------

    def covariance(
        self,
        parameters: Any,
        *,
        data: Callable[..., Any] | Sequence[Callable[..., Any]] | None = None,
        noise: float | Sequence[float] | None = None,
    ) -> Covariance:
        """Return how certain parameters are after a run: their covariance at the points of the last step,
        from the noise of the measurements (G. Seber, C. Wild, Nonlinear Regression, 1989, chapter 2).

        It is $s^2 J_d^+ J_d^+'$ for the pseudo-inverse $J^+$ of the residuals' Jacobian, its columns for
        the measurements and their noise s; of measurements alone $s^2 (J' J)^-1$. Residuals that are no
        measurements, as those of an equation, have no noise. Directions in which no residual changes, of
        which a network's weights have many, are left out: singular values below the square root of the
        dtype's rounding, of columns divided by their lengths. This is linear: right for noise so small
        that residuals are nearly linear within it.

        parameters: those to know about, a Parameter or a list of them, of those that the solver fits.
        data: the residual function, or functions, that compare with measurements, the measured value or
        the computed one minus the other; may be left out if there is one function. noise: the standard
        deviation of the measurements, one for all or one for each function of `data`; by default it is
        estimated from their residuals, whose sum of squares is divided by the degrees of freedom that the
        fit leaves.

        Warns if the run has not come to a minimum. Raises ValueError before the first step, for a
        parameter that the residuals do not determine, where no degrees of freedom are left to estimate
        the noise, and for parameters or functions that are not this solver's.
        """
        if self._given is None:
            bad_value("covariance: no step has been taken yet: run the solver first")
        if self.blocks.processes > 1:
            bad_value(
                "covariance: processes have parts of the points: give all to a solver in one process"
            )
        return covariance(self.blocks, self._given, parameters, data, noise)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the next step besides the parameters and the points, as numbers and
        arrays: damping, steps, failures, direction."""
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
            bad_value(
                "GaussNewton: the state must have damping, steps, failures and a direction of "
                f"{self.blocks.size} elements, got {sorted(state)} and a direction of shape "
                f"{list(direction.shape)}"
            )
        damping = state["damping"]
        self.damping = None if damping is None else float(damping)
        self.steps, self._failures = int(state["steps"]), int(state["failures"])
        self._direction.set_data(Tensor(direction, self.blocks.dtype))


class _Best:
    """The lowest of the points that have been considered; the first one as long as none is lower."""

    def __init__(self, loss: Tensor, point: Tensor) -> None:
        self.loss, self.point, self.step, self.foretold = loss, point, _number(0.0), loss

    def consider(self, loss: Tensor, point: Tensor, step: float, foretold: Tensor) -> None:
        """loss and point at a step, and the loss that the linearised residuals have there."""
        lower = _ops.less(loss, self.loss)  # false for NaN
        self.loss = _ops.where(lower, loss, self.loss)
        self.point = _ops.where(lower, point, self.point)
        self.step = _ops.where(lower, _number(step), self.step)
        self.foretold = _ops.where(lower, foretold, self.foretold)

    @property
    def lower(self) -> Tensor:
        """Return whether a point lower than the first was found."""
        return _ops.greater(self.step, 0.0)


#: What the factorisations say of matrices that have none, or that are not finite.
_NO_SOLUTION = ("not positive definite", "did not converge", "ingular")


def _growth(step: float) -> float:
    """Return the factor of the damping after a step of this fraction of the direction."""
    if step >= 0.5:
        return 0.1
    if step >= 0.2:
        return 1.0
    return 3.0 if step > 0 else 10.0


def _sketch(rank: int, blocks: Blocks) -> Parameter:
    """Orthonormal rows in random directions, [rank, P], the same for every solver of that size."""
    random = np.random.default_rng(0).standard_normal((blocks.size, rank))
    return Parameter(Tensor(np.linalg.qr(random)[0].T.copy(), blocks.dtype))


def _both(damping: Tensor) -> list[Tensor]:
    """Return the damping as a tensor, with the factor that raises it."""
    return [_ops.reshape(_ops.slice(damping, [k], [1], [1]), []) for k in (0, 1)]


def _number(x: float) -> Tensor:
    return _ops.full([], x, float64)


def _square_sum(x: Tensor) -> Tensor:
    """The sum of all squares, in float64."""
    return _ops.reduce_sum(_ops.square(wide(x)), list(range(x.ndim)), False)


explain(globals())
