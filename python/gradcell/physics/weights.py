"""Weights that make residual functions learn at one pace, for `GaussNewton(weights=...)` or a loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_value
from gradcell.compilation.compiled import jit
from gradcell.derivatives.differentiating import differentiating
from gradcell.solvers.dense import wide
from gradcell.solvers.jacobian import Blocks

__all__ = ["weights_by_ntk", "weights_by_variance"]

_ops = _core.ops


def weights_by_ntk(residuals: Any, parameters: Any, *points: Any) -> list[float]:
    """A weight for each residual function, by the traces of their parts of the neural tangent kernel: the sum
    of all traces over one's own, where a trace is the mean square of a residual's gradient (S. Wang, X. Yu,
    P. Perdikaris, J. Comput. Phys. 449, 2022, algorithm 1).

    residuals: a list of functions of points. parameters: Parameters of one dtype. points: for each
    residual function its points [n, d], or a tuple of its arguments. Raises what GaussNewton raises, and
    ValueError where a trace is not positive.
    """
    blocks = Blocks("weights_by_ntk", residuals, parameters, None)
    given = blocks.given(points)
    apart = blocks.rows_apart(given)

    def traces(points: Any) -> Tensor:
        rows = blocks.jacobian(points, apart)
        return _ops.concat(
            [_ops.reshape(_ops.reduce_sum(_ops.square(wide(r)), [0, 1], False), [1]) for r in rows],
            0,
        )

    found = jit(traces)(given).asnumpy().astype(np.float64)
    return _floats(found.sum() / _positive("weights_by_ntk", found))


def weights_by_variance(residuals: Any, parameters: Any, *points: Any) -> list[float]:
    """A weight for each residual function, by how far the components of its gradient spread: the largest
    standard deviation over one's own, where a gradient is that of the mean square (S. Maddu, D. Sturm, C.
    Mueller, I. Sbalzarini, Mach. Learn.: Sci. Technol. 3, 2022: inverse Dirichlet weights).

    parameters: the Parameters of the network.

    Arguments are those of `weights_by_ntk`; it raises the same errors.
    """
    blocks = Blocks("weights_by_variance", residuals, parameters, None)
    given = blocks.given(points)

    def spreads(points: Any) -> Tensor:
        found = []
        with differentiating(parameters=blocks.parameters) as (_, weights):
            losses = [_ops.reduce_sum(_ops.square(v), [0], False) for v in blocks.vectors(points)]
            for loss in losses:
                parts = _core.adjoint([loss], [_ops.full([], 1, blocks.dtype)], weights)
                g = wide(_ops.concat([_ops.reshape(p, [p.size]) for p in parts], 0))
                mean = _ops.div(_ops.reduce_sum(g, [0], False), float(g.size))
                square = _ops.reduce_sum(_ops.square(_ops.sub(g, mean)), [0], False)
                found.append(_ops.reshape(_ops.sqrt(_ops.div(square, float(g.size))), [1]))
        return _ops.concat(found, 0)

    found = jit(spreads)(given).asnumpy().astype(np.float64)
    return _floats(found.max() / _positive("weights_by_variance", found))


def _positive(name: str, found: Any) -> Any:
    if not np.isfinite(found).all() or not np.all(found > 0):
        bad_value(
            f"{name}: each function's gradients must be finite and not all zero, but the functions' measures "
            f"are {[float(f'{f:.3g}') for f in found]}"
        )
    return found


def _floats(weights: Any) -> list[float]:
    return [float(w) for w in weights]
