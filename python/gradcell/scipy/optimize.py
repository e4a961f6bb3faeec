"""mindspore.scipy.optimize.minimize: quasi-Newton minimisation of a function of one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcell._core import DenseQuasiNewton, Tensor, float64, ops as _ops
from gradcell.base import arguments, publish, unsupported
from gradcell.compilation.compiled import jit
from gradcell.derivatives.transform import value_and_grad


class OptimizeResults(NamedTuple):
    """The result of minimize.

    x: the point, a vector. success: whether status is 0. status: 0 (the gradient is at most gtol, or
    without gtol the value has no digits for what is left to gain), 1 (too many steps) or 3 (no step
    lowers the value). fun: the value. jac: the gradient. hess_inv: the estimate of the inverse
    Hessian, [n, n]. nfev, njev: evaluations of value and gradient. nit: steps.
    """

    x: Any
    success: bool
    status: int
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: int
    njev: int
    nit: int


def minimize(
    func: Callable[..., Tensor], x0: Any, args: Any = (), method: Any = None, jac: Any = None,
    hess: Any = None, hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None,
    callback: Any = None, options: Any = None,
) -> OptimizeResults:  # fmt: skip
    """Minimises func(x, *args), a scalar, from the vector x0 on.

    method: 'BFGS', None for it, or 'LBFGS' (gradcell.BFGS's matrix and search for both). options:
    maxiter, gtol (the largest component of the gradient at the end, or tol; without one it ends
    where the value has no digits for what is left to gain, whatever its unit), line_search_maxiter.
    callback(x) is called after each step. jac has no effect: the gradient is func's. tol: as gtol.
    callback: a function of the vector x. hess and hessp have no effect. Raises NotImplementedError
    for other methods, and for bounds and constraints; TypeError unless x0 is a vector.
    """
    method = method or "BFGS"
    if (
        str(method).upper() not in ("BFGS", "LBFGS", "L-BFGS-B")
        or bounds is not None
        or constraints
    ):
        unsupported(
            f"minimize: method {method!r} with bounds {bounds} and constraints {constraints} is not "
            "supported: 'BFGS' without them is"
        )
    start = arguments.of_rank(x0, (1,), "minimize")
    settings = dict(options or {})
    limit = settings.get("maxiter") or 200 * start.size
    small = settings.get("gtol") or settings.get("norm_tol") or tol or 0.0
    most = settings.get("line_search_maxiter") or 30
    value_and_gradient: Callable[..., Any] = value_and_grad(func)

    @jit  # traced once: args are the same in every call
    def evaluate(point: Tensor, *given: Any) -> tuple[Tensor, Tensor]:
        value, slope = value_and_gradient(_ops.cast(point, start.dtype), *given)
        return value, _ops.cast(slope, float64)

    solver = DenseQuasiNewton(start.asnumpy().astype(np.float64), "bfgs", most, small, 0.0)
    ended = "steps"
    while ended == "steps" and solver.steps < limit:
        before = solver.steps
        ended = solver.run(evaluate, tuple(args), limit if callback is None else 1, 0)
        if callback is not None and solver.steps > before:
            callback(Tensor(solver.point, start.dtype))
    inverse = solver.saved() if solver.saved().size else np.eye(start.size)
    parts = solver.point, solver.value, solver.gradient, inverse.reshape(start.size, start.size)
    point, value, slope, matrix = (Tensor(np.asarray(a), start.dtype) for a in parts)
    minimum = ended == "small gradient" or (ended == "no lower point" and not small)
    status = 0 if minimum else 1 if ended == "steps" else 3
    calls = solver.evaluations
    return OptimizeResults(
        point, status == 0, status, value, slope, matrix, calls, calls, solver.steps
    )


publish(globals())
