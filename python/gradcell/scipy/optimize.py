"""mindspore.scipy.optimize.minimize: quasi-Newton minimisation of a function of one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.errors import unsupported
from gradcell.compilation.compiled import jit
from gradcell.derivatives.transform import value_and_grad

__all__ = ["OptimizeResults", "minimize"]


def __dir__() -> list[str]:
    return sorted(__all__)


class OptimizeResults(NamedTuple):
    """What minimize found: the point, whether its gradient is small enough, how the search ended
    (0: the gradient is small, 1: too many steps, 3: no step lowers the value), the value, the
    gradient, the inverse Hessian's estimate, and
    how often value, gradient and step were computed.

    x: the point, a vector. success: whether the gradient is small enough. status: 0, 1 or 3. fun:
    the value. jac: the gradient. hess_inv: the estimate of the inverse Hessian, [n, n]. nfev, njev:
    evaluations of value and gradient. nit: steps.
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


_Pair = tuple[float, np.ndarray]


def _step_length(
    f: Callable[[np.ndarray], _Pair], x: np.ndarray, now: _Pair, p: np.ndarray, most: int
) -> tuple[float, _Pair] | None:
    """A step along p that fulfils the strong Wolfe conditions with 1e-4 and 0.9, by bisection (Nocedal and
    Wright 2006, section 3.1); None if there is none."""
    slope = float(now[1] @ p)
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(most):
        new = f(x + length * p)
        if not np.isfinite(new[0]) or new[0] > now[0] + 1e-4 * length * slope:
            high = length
        elif float(new[1] @ p) < 0.9 * slope:
            low = length
        else:
            return length, new
        length = 2 * low if high == np.inf else (low + high) / 2
    return None


def minimize(
    func: Callable[..., Tensor], x0: Any, args: Any = (), method: Any = None, jac: Any = None,
    hess: Any = None, hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None,
    callback: Any = None, options: Any = None,
) -> OptimizeResults:  # fmt: skip
    """Minimises func(x, *args), a scalar, from the vector x0 on.

    method: 'BFGS', None for it, or 'LBFGS' (Nocedal and Wright 2006, algorithm 6.1; both with the full
    matrix).
    options: maxiter, gtol (the largest component of the gradient at the end, 1e-5 by default, or
    tol), line_search_maxiter. callback(x) is called after each step. jac has no effect: the
    gradient is func's. tol: as gtol. callback: a function of the vector x. Raises
    NotImplementedError for other methods, and for bounds and constraints; TypeError unless x0 is a
    vector.
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
    small = settings.get("gtol") or settings.get("norm_tol") or tol or 1e-5
    most = settings.get("line_search_maxiter") or 30
    both = jit(value_and_grad(func))  # traced once: args are the same in every call
    calls = 0

    def f(point: np.ndarray) -> _Pair:
        nonlocal calls
        calls += 1
        value, slope = both(Tensor(point, start.dtype), *args)
        return float(value), slope.asnumpy().astype(np.float64)

    x = start.asnumpy().astype(np.float64)
    now, inverse = f(x), np.eye(start.size)
    steps, status = 0, 1
    while steps < limit:
        if np.abs(now[1]).max(initial=0) <= small:
            status = 0
            break
        found = _step_length(f, x, now, -inverse @ now[1], most)
        if found is None:
            status = 3
            break
        length, new = found
        s, y = -length * inverse @ now[1], new[1] - now[1]
        x, now = x + s, new
        steps += 1
        if callback is not None:
            callback(Tensor(x, start.dtype))
        curvature = float(s @ y)
        if curvature > 0:
            if steps == 1:
                inverse *= curvature / float(y @ y)
            left = np.eye(start.size) - np.outer(s, y) / curvature
            inverse = left @ inverse @ left.T + np.outer(s, s) / curvature
    if status == 1 and np.abs(now[1]).max(initial=0) <= small:
        status = 0
    made = (Tensor(np.asarray(a), start.dtype) for a in (x, now[0], now[1], inverse))
    point, value, slope, matrix = made
    return OptimizeResults(point, status == 0, status, value, slope, matrix, calls, calls, steps)
