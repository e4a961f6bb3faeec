"""Quasi-Newton methods: a loss of Parameters as a function of one vector, whose value and gradient are one
compiled call, and the core's minimisers of such functions: L-BFGS, and those that keep a whole matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcell._core import DenseQuasiNewton, DType, LbfgsFloat32, LbfgsFloat64, Tensor
from gradcell.base import arguments, bad_type, bad_value, explain
from gradcell.compilation.compiled import jit
from gradcell.derivatives.checks import check_weights
from gradcell.derivatives.transform import value_and_grad
from gradcell.solvers.jacobian import joined, split
from gradcell.solvers.solver import Solver, SolverState, Vector
from gradcell.tensors.parameter import Parameter

__all__ = ["BFGS", "LBFGS", "SSBFGS", "FlatLoss", "QuasiNewtonState", "SSBroyden", "lbfgs"]


class FlatLoss:
    """loss(*args) as a function of all elements of the parameters, one after the other.

    Called with a vector of float64 it sets the parameters to the vector's elements and returns
    (value, gradient), in one compiled call. `vector` holds the parameters' present values. Any
    minimiser of functions of a vector takes it, such as scipy.optimize.minimize(f, f.vector,
    jac=True). Raises TypeError unless all are Parameters of one floating dtype, ValueError for a
    vector of another size.
    """

    def __init__(self, loss: Callable[..., Tensor], parameters: Any, *args: Any) -> None:
        arguments.function(loss, "FlatLoss")
        self.parameters: list[Parameter] = check_weights(parameters)
        dtypes = {p.dtype for p in self.parameters}
        if len(dtypes) != 1 or not next(iter(dtypes)).is_floating:
            bad_type(
                "FlatLoss: the parameters must have one floating dtype, but they are of "
                f"{', '.join(sorted(d.name for d in dtypes)) or 'no dtype: there are none'}"
            )
        self.dtype: DType = dtypes.pop()
        self.loss: Callable[..., Tensor] = loss
        self.args: tuple[Any, ...] = args
        self._value_and_grad: Callable[..., Any] = value_and_grad(loss, None, self.parameters)
        #: (value, gradient) as tensors, at a tensor of the parameters' dtype and the loss's arguments.
        self.evaluate: Callable[..., tuple[Tensor, Tensor]] = jit(self._step)

    def _step(self, vector: Tensor, *given: Any) -> tuple[Tensor, Tensor]:
        _assign(self.parameters, vector)
        value, gradients = self._value_and_grad(*given)
        if not isinstance(value, Tensor) or value.size != 1:
            bad_type(
                "FlatLoss: the loss must give one number, got "
                f"{list(value.shape) if isinstance(value, Tensor) else type(value).__name__}"
            )
        return value, joined(gradients)

    @property
    def size(self) -> int:
        """The number of elements."""
        return sum(p.size for p in self.parameters)

    @property
    def vector(self) -> Vector:
        """The parameters' elements, as float64."""
        parts = [p.asnumpy().astype(np.float64).reshape(-1) for p in self.parameters]
        return np.concatenate(parts)

    def assign(self, vector: Vector) -> None:
        """Gives the parameters these elements."""
        _assign(self.parameters, Tensor(self._checked(vector), self.dtype))

    def _checked(self, vector: Any) -> Vector:
        found = np.asarray(vector, np.float64)
        if found.shape != (self.size,):
            bad_value(
                f"FlatLoss: expected a vector of {self.size} elements, got shape {list(found.shape)}"
            )
        return found

    def __call__(self, vector: Vector) -> tuple[float, Vector]:
        """The loss and its gradient, at a vector that the parameters take over."""
        value, gradient = self.evaluate(Tensor(self._checked(vector), self.dtype), *self.args)
        return float(value), gradient.asnumpy().astype(np.float64)


def _assign(parameters: Sequence[Parameter], vector: Tensor) -> None:
    for p, part in zip(parameters, split(vector, parameters), strict=True):
        p.set_data(part)


@dataclass(frozen=True)
class QuasiNewtonState(SolverState):
    """Describes a step of a quasi-Newton method, or how a run ended: a SolverState with one more number.

    loss, steps, nit, nfev, reason: as in SolverState. skipped: after how many of the run's steps nothing was
    learnt of the curvature; the message says it where it is half of them or more.
    """

    skipped: int = field(default=0, compare=False)

    @property
    def message(self) -> str:
        """The reason in a sentence."""
        if not self.skipped or 2 * self.skipped < self.nit:
            return super().message
        return (
            f"{super().message}; after {self.skipped} of {self.nit} steps the gradient's change showed no "
            "curvature, so that directions are those of the gradient, or of older steps"
        )


class _QuasiNewton(Solver[QuasiNewtonState]):
    """Base class of all methods, around one of the core's minimisers."""

    _state_kind = QuasiNewtonState

    def __init__(
        self,
        loss: Callable[..., Tensor],
        parameters: Any,
        *args: Any,
        loss_tolerance: float | None = None,
        gradient_tolerance: float = 0.0,
        value_tolerance: float = 0.0,
        search: int = 50,
    ) -> None:
        self.loss: FlatLoss = FlatLoss(loss, parameters, *args)
        tolerances = gradient_tolerance, value_tolerance
        super().__init__(self.loss.parameters, loss_tolerance, *tolerances)
        if search < 1:
            bad_value(f"{self._name}: search must be at least 1, got {search}")
        name = self.loss.dtype.name.lower()
        if name not in ("float32", "float64"):
            bad_value(f"{self._name}: the parameters must be float32 or float64, not {name}")
        self._numbers: Any = np.dtype(name)
        self._options = (search, *tolerances)
        self._minimiser: Any = self._begun(self.loss.vector.astype(self._numbers))

    def _begun(self, start: Vector) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        m = self._minimiser
        return {**self.__dict__, "_minimiser": (m.point, m.saved(), m.steps, m.length)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._minimiser = self._begun(state["_minimiser"][0])
        self._minimiser.load(*state["_minimiser"])

    @property
    def steps(self) -> int:  # type: ignore[override]
        """The number of steps that it has taken, in all runs."""
        return self._minimiser.steps  # type: ignore[no-any-return]

    @property
    def evaluations(self) -> int:  # type: ignore[override]
        """The number of times that the loss and its gradient were computed, in all runs."""
        return self._minimiser.evaluations  # type: ignore[no-any-return]

    def _counts(self) -> tuple[int, ...]:
        return self.steps, self.evaluations, self._minimiser.skipped

    def _arguments(self, points: tuple[Any, ...]) -> tuple[Any, ...]:
        return points or self.loss.args

    def _objective(self, *args: Any) -> Tensor:
        return self.loss.loss(*args)

    def _begin(self, points: tuple[Any, ...]) -> None:
        """The loss, or what the parameters are, has changed since the last step."""
        if points:
            self.loss.args = points
            self._minimiser.renew()
        vector = self.loss.vector.astype(self._numbers)
        if np.any(vector != self._minimiser.point):
            self._minimiser.restart(vector)

    def _advance(self, most: int, evaluations: int) -> QuasiNewtonState:
        m = self._minimiser
        ended = m.run(self.loss.evaluate, self.loss.args, most, evaluations)
        return self._now("stepped" if ended in ("steps", "evaluations") else ended, m.value)

    def _now(self, reason: str, loss: float) -> QuasiNewtonState:
        return self._state(reason, loss, skipped=self._minimiser.skipped - self._mark[2])

    def _ended(self, state: QuasiNewtonState | None, reason: str) -> QuasiNewtonState:
        return super()._ended(self._now(reason, self._value()), reason)

    def _settle(self) -> None:
        self.loss.assign(self._minimiser.point)

    def _value(self) -> float:
        m = self._minimiser
        return m.value if self._made() else self.loss(m.point)[0]

    def state_dict(self) -> dict[str, Any]:
        """Return the point and the estimate of the curvature: point, curvature (an array), steps,
        and the last step's length."""
        m = self._minimiser
        state = {"method": self._name, "point": m.point, "curvature": m.saved()}
        return {**state, "steps": m.steps, "length": m.length}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what state_dict gave, the parameters included. Raises ValueError for the state of
        another method or of other parameters."""
        missing = {"method", "point", "curvature", "steps"} - set(state)
        if missing or state["method"] != self._name or len(state["point"]) != self.loss.size:
            bad_value(
                f"{self._name}: the state must be one of {self._name} for {self.loss.size} elements, with "
                f"method, point, curvature and steps; got {state.get('method')} with {sorted(state)}, "
                f"{len(state.get('point', ()))} elements"
            )
        self._minimiser.load(
            np.asarray(state["point"]), np.asarray(state["curvature"]), int(state["steps"]),
            float(state.get("length", 0.0)),
        )  # fmt: skip
        self.loss.assign(self._minimiser.point)


class LBFGS(_QuasiNewton):
    """L-BFGS for loss(*args) over Parameters of one dtype, float32 or float64; a run continues
    where the previous one ended. Each evaluation of the loss and its gradient is one compiled
    call; the direction (two loops over the latest `history` pairs) and the search for a step that
    meets the strong Wolfe conditions are the core's. (D. C. Liu, J. Nocedal, Math. Programming 45, 1989.)

    history: how many pairs of steps and changes of the gradient are kept. A run ends by itself when no step
    lowers the loss (in float32 at about 1e-7 of it: compute in float64 for more), or at a tolerance. The
    points do not depend on the loss's unit: a loss times a power of two has the same ones, to the bit.

    Raises what FlatLoss raises, and ValueError for parameters of another dtype or negative options.
    """

    _name = "L-BFGS"

    def __init__(
        self,
        loss: Callable[..., Tensor],
        parameters: Any,
        *args: Any,
        history: int = 50,
        loss_tolerance: float | None = None,
        gradient_tolerance: float = 0.0,
        value_tolerance: float = 0.0,
        search: int = 50,
    ) -> None:
        if history < 0:
            bad_value(f"LBFGS: history must not be negative, got {history}")
        self._history = history
        super().__init__(
            loss, parameters, *args, loss_tolerance=loss_tolerance, search=search,
            gradient_tolerance=gradient_tolerance, value_tolerance=value_tolerance,
        )  # fmt: skip

    def _begun(self, start: Vector) -> Any:
        kinds = {"float32": LbfgsFloat32, "float64": LbfgsFloat64}
        return kinds[self._numbers.name](start, self._history, *self._options)


class BFGS(_QuasiNewton):
    """BFGS for loss(*args) over float64 Parameters, with a dense approximation of the inverse Hessian:
    8 bytes for each pair of elements, so up to some thousand elements. A
    run continues where the previous one ended. Steps, tolerances, options and errors are those of
    LBFGS; parameters of float32 are refused.
    """

    _name, _update = "BFGS", "bfgs"

    def _begun(self, start: Vector) -> Any:
        if self._numbers != np.float64:
            bad_value(
                f"{self._name}: the parameters must be float64, not float32, whose rounding soon spoils the "
                "matrix; LBFGS takes both"
            )
        return DenseQuasiNewton(start, self._update, *self._options)


class SSBFGS(BFGS):
    """BFGS that scales its matrix before each update, so that errors in its scale do not persist.
    For badly scaled losses, such as those of differential equations, it often needs far fewer
    steps.

    loss: a function of *args that gives a scalar. parameters: the Parameters to train. args: what
    loss is called with.

    The scale is the smaller one of 1 and y's / s'Bs, with s the step and y the change of the gradient (M.
    Al-Baali, H. Khalfan, Optimization 54, 2005). Everything else is as in BFGS.
    """

    _name, _update = "SSBFGS", "ssbfgs"


class SSBroyden(BFGS):
    """SSBFGS with an update of Broyden's family between BFGS and DFP, or beyond, that is chosen at each
    step from the matrix (J. F. Urban, P. Stefanou, J. A. Pons, J. Comput. Phys. 523, 2025).

    loss: a function of *args that gives a scalar. parameters: the Parameters to train. args: what
    loss is called with.
    """

    _name, _update = "SSBroyden", "ssbroyden"


def lbfgs(
    loss: Callable[..., Tensor],
    parameters: Any,
    *args: Any,
    max_steps: int = 1000,
    callback: Callable[[QuasiNewtonState], Any] | None = None,
    progress: int = 0,
    **options: Any,
) -> QuasiNewtonState:
    """Minimises loss(*args) over Parameters by L-BFGS, and leaves them at the best point.

    parameters: the Parameters to train. max_steps: the largest number of steps. callback: a
    function of each step's state. progress: prints a line after so many steps; 0 for none. options:
    those of `LBFGS`, whose runs can be continued. Returns how it ended, as its `run` does.
    """
    solver = LBFGS(loss, parameters, *args, **options)
    return solver.run(max_steps, callback=callback, progress=progress)


explain(globals())
