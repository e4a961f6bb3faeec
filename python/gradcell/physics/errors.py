"""Error of a trained solution, estimated by defect correction: a second network solves the
linearised equation with the first one's residuals as source (V. Pereyra, Numer. Math. 11, 1968; H. Stetter,
Numer. Math. 29, 1978)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcell import nn, ops
from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, where
from gradcell.compilation.compiled import function_name, jit
from gradcell.derivatives.transform import jvp
from gradcell.solvers.gauss_newton import GaussNewton
from gradcell.solvers.jacobian import Blocks

__all__ = ["ErrorEstimate", "error_estimate"]

Array = np.ndarray[Any, Any]

#: The share of the residuals that may be left for an estimate to be taken at its word.
_TRUSTED = 0.05


class ErrorEstimate:
    """Estimate of the error of a solution, as `error_estimate` finds it: a function of points that gives the
    exact solution minus the trained one, to first order, as an array of the solution's shape.

    value: the function of points. left: the share of the residuals (root of the weighted mean squares)
    that is left of the linearised problem: the smaller, the better the estimate. steps: how many steps it
    took. reason: why they ended, as in SolverState.
    """

    def __init__(self, value: Callable[..., Tensor], left: float, steps: int, reason: str) -> None:
        self._value = value
        self.left: float = left
        self.steps: int = steps
        self.reason: str = reason

    def __call__(self, *points: Any) -> Array:
        """Return the exact solution minus the trained one at points: the solution's arguments."""
        return np.asarray(self._value(*points).asnumpy())

    def max(self, *points: Any) -> float:
        """Return the largest estimated error at points."""
        return float(np.abs(self(*points)).max())

    def rms(self, *points: Any) -> float:
        """Return the root of the mean square of the estimated error at points."""
        return float(np.sqrt(np.mean(np.square(self(*points), dtype=np.float64))))

    def __repr__(self) -> str:
        return f"ErrorEstimate(left={self.left:.2g}, steps={self.steps}, reason={self.reason!r})"


def error_estimate(
    residuals: Any,
    network: nn.Cell,
    *points: Any,
    of: Callable[..., Tensor] | None = None,
    weights: Sequence[float] | None = None,
    second: nn.Cell | None = None,
    steps: int = 200,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
) -> ErrorEstimate:
    """Return an estimate of the error of a trained solution u, from nothing but its residuals.

    The exact solution makes the residuals R vanish, so that to first order its difference e from u fulfils
    $R'(u) e = -R(u)$, equation and conditions alike. A second network is trained on this linear problem by
    Gauss-Newton steps (H. Stetter, Numer. Math. 29, 1978: the defect correction principle).

    residuals: the functions that the solution was trained with, one or a list, as GaussNewton takes them;
    all that determine the solution must be among them, unless conditions hold by construction. network:
    the cell whose output is to be corrected: the network that was trained; where conditions hold by
    construction, the one inside of what makes them hold. points: as the solver's `step` takes them, but
    other and more points than those of the training, where the residuals are smaller than elsewhere. of:
    the solution, a function that uses the network, if it is not the network itself. weights: a positive
    number for each residual function, as in GaussNewton. second: a network for the error, which takes
    what `network` takes; by default two layers of 24 with tanh, of inputs brought to -1 to 1 by the range
    of the points. steps: the most Gauss-Newton steps. tolerance: the share of the residuals at which they
    end. max_seconds: when they end at the latest.

    Warns if more than 0.05 of the residuals is left: the estimate is then no more than a guess. Raises what
    GaussNewton raises, ValueError for a network that the residuals do not read and for residuals that are
    zero or not finite, TypeError for a network that is no Cell.
    """
    if not isinstance(network, nn.Cell):
        bad_type(
            "error_estimate: network must be the cell that was trained, got "
            f"{type(network).__name__}; a function made of it is the argument of=..."
        )
    if not 0 <= tolerance < 1:
        bad_value(f"error_estimate: tolerance must be from 0 to less than 1, got {tolerance}")
    blocks = Blocks("error_estimate", residuals, list(network.get_parameters()), weights)
    given = blocks.given(points)
    size = float(np.linalg.norm(jit(blocks.vector)(given).asnumpy().astype(np.float64)))
    if not 0 < size < np.inf:
        bad_value(
            f"error_estimate: the residuals must be finite and not all zero, their size is {size}"
        )
    error = _second(blocks, network, given) if second is None else second

    def linearised(function: Callable[..., Any]) -> Callable[..., Any]:
        def residual(*points: Any) -> Tensor:
            value, change = _along(network, error, function, points)
            return change + value * (1 / size)

        return residual

    solver = GaussNewton(
        [linearised(fn) for fn in blocks.functions],
        error.trainable_params(),
        weights=blocks.weights,
        loss_tolerance=tolerance**2,
    )
    state = solver.run(steps, *given, max_seconds=max_seconds)
    left = float(np.sqrt(state.loss))
    if not left <= _TRUSTED:
        warnings.warn(
            f"error_estimate: the second network leaves {left:.2g} of the residuals ({state.message}), so "
            "the estimate is a guess. Allow more steps, or give a larger network as second=..."
            f"{where()}",
            RuntimeWarning,
            stacklevel=2,
        )

    def value(*points: Any) -> Tensor:
        change: Tensor = error(*points) if of is None else _along(network, error, of, points)[1]
        return change * size

    return ErrorEstimate(jit(value), left, state.steps, state.reason)


@contextmanager
def _hooked(network: nn.Cell, hook: Callable[..., Any]) -> Iterator[None]:
    handle = network.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def _along(
    network: nn.Cell, error: nn.Cell, function: Callable[..., Any], points: tuple[Any, ...]
) -> tuple[Tensor, Tensor]:
    """(function(*points), its derivative along the network's change by the second one's output)."""

    def moved(share: Tensor) -> Any:
        with _hooked(network, lambda _, inputs, output: output + share * error(*inputs)):
            return function(*points)

    dtype = network.trainable_params()[0].dtype
    value, change = jvp(moved, (Tensor(0.0, dtype),), (Tensor(1.0, dtype),))
    return value, change


class _Error(nn.Cell):
    """A network of inputs that a range brings to -1 to 1: several are columns side by side."""

    def __init__(self, low: Array, high: Array, outputs: int, dtype: Any) -> None:
        super().__init__()
        width, options = 24, {"dtype": dtype, "weight_init": "xavier_uniform"}
        self.net = nn.SequentialCell(
            nn.Dense(low.size, width, **options), nn.Tanh(),
            nn.Dense(width, width, **options), nn.Tanh(),
            nn.Dense(width, outputs, **options),
        )  # fmt: skip
        half = np.where(high > low, (high - low) / 2, 1.0)
        self.scale = Tensor(1 / half, dtype)
        self.shift = Tensor(-(high + low) / 2 / half, dtype)

    def construct(self, *inputs: Tensor) -> Tensor:
        x = inputs[0] if len(inputs) == 1 else ops.concat(inputs, 1)
        return self.net(x * self.scale + self.shift)  # type: ignore[no-any-return]


def _second(blocks: Blocks, network: nn.Cell, given: Sequence[tuple[Any, ...]]) -> nn.Cell:
    """A network for the error, for what the residual functions give to the first one."""
    outputs: list[tuple[int, ...]] = []

    def inputs(given: Sequence[tuple[Any, ...]]) -> list[tuple[Tensor, ...]]:
        seen: list[tuple[Tensor, ...]] = []

        def see(_: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            seen.append(inputs)
            outputs.append(output.shape)

        with _hooked(network, see):
            for fn, points in zip(blocks.functions, given, strict=True):
                fn(*points)
        return seen

    found = jit(inputs)(given)
    if not found:
        names = ", ".join(function_name(fn) for fn in blocks.functions)
        bad_value(
            f"error_estimate: the residuals ({names}) do not call this network, a "
            f"{type(network).__name__}: give the cell that they call"
        )
    shapes = {x.ndim for call in found for x in call} | {len(s) for s in outputs}
    if shapes != {2}:
        bad_value(
            "error_estimate: a network for the error can be made where the first one takes and gives "
            "matrices, [n, d] to [n, m], or columns [n, 1]; for others give one as second=..."
        )
    rows = [np.concatenate([x.asnumpy() for x in call], 1) for call in found]
    low, high = (of([of(r, 0) for r in rows], 0) for of in (np.min, np.max))
    return _Error(low, high, outputs[0][1], blocks.dtype)
