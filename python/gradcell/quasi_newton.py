"""L-BFGS over SciPy: a loss of Parameters as a function of one vector, whose value and gradient are one
compiled call."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.compiled import jit
from gradcell.parameter import Parameter
from gradcell.transform import _check_weights, value_and_grad

__all__ = ["FlatLoss", "lbfgs"]

_ops = _core.ops
_Vector = np.ndarray[Any, Any]


class FlatLoss:
    """loss(*args) as a function of all elements of the parameters, one behind the other.

    Called with a vector of float64 it gives (value, gradient), and the parameters are what the vector
    says from then on: one compiled call. `vector` is where they are now. What minimises functions of
    vectors (scipy.optimize.minimize(f, f.vector, jac=True)) can be given it. Raises TypeError for what
    are no Parameters of one floating dtype, ValueError for a vector of another size.
    """

    def __init__(self, loss: Callable[..., Tensor], parameters: Any, *args: Any) -> None:
        arguments.function(loss, "FlatLoss")
        self.parameters: list[Parameter] = _check_weights(parameters)
        dtypes = {p.dtype for p in self.parameters}
        if len(dtypes) != 1 or not next(iter(dtypes)).is_floating:
            raise TypeError(
                "FlatLoss: the parameters must have one floating dtype, but they are of "
                f"{', '.join(sorted(d.name for d in dtypes)) or 'no dtype: there are none'}{where()}"
            )
        self.dtype = dtypes.pop()
        self.args = args
        self.calls = 0
        value_and_gradient = value_and_grad(loss, None, self.parameters)

        def step(vector: Tensor, *given: Any) -> tuple[Tensor, Tensor]:
            _assign(self.parameters, vector)
            value, gradients = value_and_gradient(*given)
            if not isinstance(value, Tensor) or value.size != 1:
                raise TypeError(
                    f"FlatLoss: the loss must give one number, got "
                    f"{list(value.shape) if isinstance(value, Tensor) else type(value).__name__}{where()}"
                )
            return value, _ops.concat([_ops.reshape(g, [g.size]) for g in gradients], 0)

        self._step = jit(step)

    @property
    def size(self) -> int:
        """The number of elements."""
        return sum(p.size for p in self.parameters)

    @property
    def vector(self) -> _Vector:
        """The parameters' elements, as float64."""
        parts = [p.asnumpy().astype(np.float64).reshape(-1) for p in self.parameters]
        return np.concatenate(parts)

    def assign(self, vector: _Vector) -> None:
        """Gives the parameters these elements."""
        _assign(self.parameters, Tensor(self._checked(vector), self.dtype))

    def _checked(self, vector: Any) -> _Vector:
        found = np.asarray(vector, np.float64)
        if found.shape != (self.size,):
            raise ValueError(
                f"FlatLoss: expected a vector of {self.size} elements, got shape {list(found.shape)}"
                f"{where()}"
            )
        return found

    def __call__(self, vector: _Vector) -> tuple[float, _Vector]:
        """The loss and its gradient, at a vector that the parameters take over."""
        self.calls += 1
        value, gradient = self._step(Tensor(self._checked(vector), self.dtype), *self.args)
        return float(value), gradient.asnumpy().astype(np.float64)


def _assign(parameters: Sequence[Parameter], vector: Tensor) -> None:
    at = 0
    for p in parameters:
        p.set_data(_ops.reshape(_ops.slice(vector, [at], [p.size], [1]), list(p.shape)))
        at += p.size


def lbfgs(
    loss: Callable[..., Tensor],
    parameters: Any,
    *args: Any,
    max_steps: int = 1000,
    history: int = 50,
    gradient_tolerance: float = 0.0,
    value_tolerance: float = 0.0,
    callback: Callable[[int, float], Any] | None = None,
) -> Any:
    """Minimises loss(*args) over Parameters by SciPy's L-BFGS, and leaves them at the best point.

    history: how many pairs of steps the inverse Hessian is made of. It ends after max_steps, when the
    largest component of the gradient is at most gradient_tolerance, when a step lowers the loss by less
    than value_tolerance times it, or when no step lowers it (in float32 that comes at about 1e-7 of the
    loss: compute in float64 for more). callback(step, loss) is called after each step. Returns SciPy's
    result: fun, nit, nfev, message, x and others (D. C. Liu, J. Nocedal, Math. Programming 45, 1989).

    Raises ImportError without SciPy, TypeError and ValueError as FlatLoss does.
    """
    try:
        minimize = importlib.import_module("scipy.optimize").minimize
    except ImportError as error:
        raise ImportError(f"lbfgs needs SciPy: pip install scipy{where()}") from error
    f = FlatLoss(loss, parameters, *args)
    best: list[Any] = [np.inf, f.vector]
    steps = 0

    def watched(vector: _Vector) -> tuple[float, _Vector]:
        value, gradient = f(vector)
        if value < best[0]:
            best[:] = [value, vector.copy()]
        return value, gradient

    def after(_: Any) -> None:
        nonlocal steps
        steps += 1
        if callback is not None:
            callback(steps, best[0])

    options = {
        "maxiter": max_steps, "maxfun": 20 * max_steps, "maxcor": history, "maxls": 50,
        "ftol": value_tolerance, "gtol": gradient_tolerance,
    }  # fmt: skip
    result = minimize(
        watched, f.vector, jac=True, method="L-BFGS-B", callback=after, options=options
    )
    f.assign(best[1])
    return result
