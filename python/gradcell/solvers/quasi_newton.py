"""Quasi-Newton methods: a loss of Parameters as a function of one vector, whose value and gradient are one
compiled call, and the core's minimisers of such functions: L-BFGS, and those that keep a whole matrix."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import DType, Tensor
from gradcell.base import arguments, bad_type, bad_value
from gradcell.compilation.compiled import jit
from gradcell.derivatives.checks import check_weights
from gradcell.derivatives.transform import value_and_grad
from gradcell.solvers.first import AdamFirst
from gradcell.solvers.jacobian import joined, split
from gradcell.tensors.parameter import Parameter

__all__ = ["BFGS", "LBFGS", "SSBFGS", "FlatLoss", "LBFGSResult", "SSBroyden", "lbfgs"]

_ops = _core.ops
Vector = np.ndarray[Any, Any]


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


#: Why a run ended, by the core's word for it.
_REASONS = {
    "small gradient": "the gradient is at most gradient_tolerance",
    "small decrease": "a step lowered the loss by less than value_tolerance of it",
    "no lower point": "no step lowers the loss: it is at a minimum, or roundings hide the rest",
    "stalled": "no step was found that lowers the loss: too few points were tried (search), or "
    "its gradient is not that of its values, which rise where it leads down",
    "not finite": "the loss or its gradient is not finite; the parameters are those before it",
    "steps": "the limit max_steps was reached",
    "evaluations": "max_evaluations have been made",
    "stopped": "the callback returned True",
    "interrupted": "it was interrupted; the parameters are those of the best point",
}


@dataclass
class LBFGSResult:
    """The end of a run of a quasi-Newton method: the loss, the steps taken and the evaluations made
    in it, why it ended (`reason` in a word, `message` in a sentence), whether it may go on, and all
    parameters' elements.

    fun: the loss. nit: steps. nfev: evaluations of loss and gradient. reason: in a word. message:
    in a sentence. x: all parameters' elements, a NumPy vector. skipped: after how many of the steps
    nothing was learnt of the curvature; the message says it where it is half of them or more.
    """

    fun: float
    nit: int
    nfev: int
    reason: str
    message: str
    x: Vector
    skipped: int = 0

    @property
    def finished(self) -> bool:
        """Return whether a minimum is reached, within the tolerances and the precision of the
        dtype."""
        return self.reason in ("small gradient", "small decrease", "no lower point")


class _QuasiNewton:
    """Base class of all methods, around one of the core's minimisers."""

    _name = ""

    def __init__(
        self,
        loss: Callable[..., Tensor],
        parameters: Any,
        args: tuple[Any, ...],
        options: tuple[int, float, float],
    ) -> None:
        search, gradient_tolerance, value_tolerance = options
        if search < 1 or gradient_tolerance < 0 or value_tolerance < 0:
            bad_value(
                f"{self._name}: the tolerances must not be negative and search must be at least 1, got "
                f"{gradient_tolerance}, {value_tolerance} and {search}"
            )
        self.loss: FlatLoss = FlatLoss(loss, parameters, *args)
        name = self.loss.dtype.name.lower()
        if name not in ("float32", "float64"):
            bad_value(f"{self._name}: the parameters must be float32 or float64, not {name}")
        self._numbers: Any = np.dtype(name)
        self._options = options
        self._minimiser: Any = self._begun(self.loss.vector.astype(self._numbers), options)

    def _begun(self, start: Vector, options: tuple[int, float, float]) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        m = self._minimiser
        return {**self.__dict__, "_minimiser": (m.point, m.saved(), m.steps, m.length)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._minimiser = self._begun(state["_minimiser"][0], self._options)
        self._minimiser.load(*state["_minimiser"])

    def run(
        self,
        max_steps: int = 1000,
        *args: Any,
        max_evaluations: int | None = None,
        callback: Callable[[int, float], Any] | None = None,
        progress: int = 0,
        adam: int = 0,
        rate: float | Sequence[float] = 1e-3,
    ) -> LBFGSResult:
        """Takes up to max_steps steps, and leaves the parameters at the best point.

        args: other arguments of the loss from now on, such as new points; the curvature found so far
        is kept. callback(step, loss) is called after each step, with the parameters at its point, and
        ends the run by returning True. progress: prints a line after this many steps, and one at the end.
        adam: the number of Adam steps that come first, whose learning rate falls from `rate` to a
        hundredth of it along a cosine, or is one for each step. Ctrl-C ends it at the best point,
        "interrupted"; so does an error, which is raised then.
        """
        m = self._minimiser
        reason = self._by_adam(args or self.loss.args, adam, rate)
        self._begin_again(args)
        skipped = m.skipped
        begun, steps_before, evaluations_before = time.perf_counter(), m.steps, m.evaluations
        every = 1 if callback is not None else progress or max_steps
        steps = made = 0
        if not reason and max_steps < 1:
            reason = "steps"
        try:
            while not reason:  # each turn is many steps, where nobody wants to know between them
                most = min(every - steps % every, max_steps - steps)
                left = max_evaluations - made if max_evaluations else 0
                ended = m.run(self.loss.evaluate, self.loss.args, most, left)
                reason = "" if ended == "steps" else ended
                made = m.evaluations - evaluations_before
                if m.steps - steps_before > steps:
                    steps = m.steps - steps_before
                    if progress and steps % progress == 0:
                        seconds = time.perf_counter() - begun
                        print(f"{self._name}: step {steps}, loss {m.value:.6g}, {seconds:.1f} s")
                    if callback is not None:
                        self.loss.assign(m.point)
                        if callback(steps, m.value) is True:
                            reason = reason or "stopped"
                    if steps >= max_steps:
                        reason = reason or "steps"
                if max_evaluations and made >= max_evaluations:
                    reason = reason or "evaluations"
        except KeyboardInterrupt:
            reason = "interrupted"
        except BaseException:
            self.loss.assign(m.point)
            raise
        self.loss.assign(m.point)
        steps, made = m.steps - steps_before, m.evaluations - evaluations_before
        value = m.value
        if not made:  # all of it were steps of Adam, or none
            value = self.loss(m.point)[0]
        message, skipped = _REASONS[reason], m.skipped - skipped
        if skipped and 2 * skipped >= steps:
            message += (
                f"; after {skipped} of {steps} steps the gradient's change showed no curvature, so that "
                "directions are those of the gradient, or of older steps"
            )
        if progress:
            print(f"{self._name}: {steps} steps, {made} evaluations, loss {value:.6g}: {message}")
        point = m.point.astype(np.float64)
        return LBFGSResult(value, steps, made, reason, message, point, skipped)

    def _by_adam(self, args: tuple[Any, ...], adam: int, rate: Any) -> str:
        """Steps of Adam; why there is nothing after them, if so."""
        try:
            first = AdamFirst(self._name, self.loss.loss, self.loss.parameters, adam, rate)
            for _ in range(adam):
                if not np.isfinite(first.step(*args)):
                    return "not finite"
        except KeyboardInterrupt:
            return "interrupted"
        return ""

    def _begin_again(self, args: tuple[Any, ...]) -> None:
        """The loss, or what the parameters are, has changed since the last step."""
        if args:
            self.loss.args = args
            self._minimiser.renew()
        vector = self.loss.vector.astype(self._numbers)
        if np.any(vector != self._minimiser.point):
            self._minimiser.restart(vector)

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

    history: how many pairs of steps and changes of the gradient are kept. gradient_tolerance: it ends
    when the gradient's largest component is at most that; value_tolerance: when a step lowers the loss
    by less than that times the loss; and always when no step lowers it (in float32 that comes at about
    1e-7 of the loss: compute in float64 for more). search: the most evaluations for one step. The points
    do not depend on the loss's unit: a loss times a power of two has the same ones, to the bit.

    Raises what FlatLoss raises, and ValueError for parameters of another dtype or negative options.
    """

    _name = "L-BFGS"

    def __init__(
        self,
        loss: Callable[..., Tensor],
        parameters: Any,
        *args: Any,
        history: int = 50,
        gradient_tolerance: float = 0.0,
        value_tolerance: float = 0.0,
        search: int = 50,
    ) -> None:
        if history < 0:
            bad_value(f"LBFGS: history must not be negative, got {history}")
        self._history = history
        super().__init__(loss, parameters, args, (search, gradient_tolerance, value_tolerance))

    def _begun(self, start: Vector, options: tuple[int, float, float]) -> Any:
        kinds = {"float32": _core.LbfgsFloat32, "float64": _core.LbfgsFloat64}
        return kinds[self._numbers.name](start, self._history, *options)


class BFGS(_QuasiNewton):
    """BFGS for loss(*args) over float64 Parameters, with the whole matrix that stands for the inverse of
    the second derivatives: 8 bytes for each pair of elements, so up to some thousand elements. A
    run continues where the previous one ended. Steps, tolerances, options and errors are those of
    LBFGS; parameters of float32 are refused.
    """

    _name, _update = "BFGS", "bfgs"

    def __init__(
        self,
        loss: Callable[..., Tensor],
        parameters: Any,
        *args: Any,
        gradient_tolerance: float = 0.0,
        value_tolerance: float = 0.0,
        search: int = 50,
    ) -> None:
        super().__init__(loss, parameters, args, (search, gradient_tolerance, value_tolerance))

    def _begun(self, start: Vector, options: tuple[int, float, float]) -> Any:
        if self._numbers != np.float64:
            bad_value(
                f"{self._name}: the parameters must be float64, not float32, whose rounding soon spoils the "
                "matrix; LBFGS takes both"
            )
        return _core.DenseQuasiNewton(start, self._update, *options)


class SSBFGS(BFGS):
    """BFGS that scales its matrix before each update, so that errors in its scale do not persist.
    For badly scaled losses, such as those of differential equations, it often needs far fewer
    steps.

    loss: a function of *args that gives a scalar. parameters: the Parameters to train. args: what
    loss is called with. gradient_tolerance: it stops when no component of the gradient is larger.
    value_tolerance: it stops when a step lowers the loss by a smaller share. search: the most
    evaluations of a line search.

    The scale is the smaller one of 1 and y's / s'Bs, with s the step and y the change of the gradient (M.
    Al-Baali, H. Khalfan, Optimization 54, 2005). Everything else is as in BFGS.
    """

    _name, _update = "SSBFGS", "ssbfgs"


class SSBroyden(BFGS):
    """SSBFGS with an update of Broyden's family between BFGS and DFP, or beyond, that is chosen at each
    step from the matrix (J. F. Urban, P. Stefanou, J. A. Pons, J. Comput. Phys. 523, 2025).

    loss: a function of *args that gives a scalar. parameters: the Parameters to train. args: what
    loss is called with. gradient_tolerance: it stops when no component of the gradient is larger.
    value_tolerance: it stops when a step lowers the loss by a smaller share. search: the most
    evaluations of a line search.
    """

    _name, _update = "SSBroyden", "ssbroyden"


def lbfgs(
    loss: Callable[..., Tensor],
    parameters: Any,
    *args: Any,
    max_steps: int = 1000,
    history: int = 50,
    gradient_tolerance: float = 0.0,
    value_tolerance: float = 0.0,
    callback: Callable[[int, float], Any] | None = None,
    progress: int = 0,
) -> LBFGSResult:
    """Minimises loss(*args) over Parameters by L-BFGS, and leaves them at the best point.

    parameters: the Parameters to train. max_steps: the largest number of steps. callback: a
    function of (step, loss), called after each step. progress: prints a line after so many steps; 0
    for none.

    The options are those of `LBFGS`, whose runs can be continued, and of its `run`. Returns how it
    ended: fun, nit, nfev, reason, message, x.
    """
    solver = LBFGS(
        loss,
        parameters,
        *args,
        history=history,
        gradient_tolerance=gradient_tolerance,
        value_tolerance=value_tolerance,
    )
    return solver.run(max_steps, callback=callback, progress=progress)
