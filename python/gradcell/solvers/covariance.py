"""Certainty of fitted numbers: noise of measurements, carried through the linearised least-squares fit
to the parameters and to what is computed from them.

With the residuals' Jacobian J at the fit, a change e of the residuals moves the parameters by -J^+ e,
where J^+ is the pseudo-inverse: measurements with noise of standard deviation s give the covariance s^2
J_d^+ J_d^+', of J^+ the columns of the measurements (G. Seber, C. Wild, Nonlinear Regression, 1989,
chapter 2). Without other residuals than measurements this is s^2 (J' J)^-1. Beside measurements,
residuals of an equation have no noise: they are what the parameters, a network's weights among them, must
fulfil.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcell.base import bad_value, where
from gradcell.compilation.compiled import function_name, jit
from gradcell.derivatives.checks import check_weights
from gradcell.solvers.dense import relative_rounding
from gradcell.solvers.jacobian import Blocks

Array = np.ndarray[Any, Any]

#: The largest share of a parameter's or a value's gradient, squared, in directions that no residual feels.
_UNFELT = 1e-6

#: How many deviations a full step may still change a parameter by at the end of a fit.
_NOT_THERE = 0.5


@dataclass(frozen=True)
class Covariance:
    """Certainty of parameters that a solver has fitted to measurements, as `GaussNewton.covariance` finds it.

    matrix: the covariance of the parameters' elements, one after the other, [n, n], float64. noise: the
    standard deviation of the measurements, given or estimated, one for each function of `data`. freedom:
    how many degrees of freedom each has left: the number of measurements without those that the fit has
    used up. moved: how far a deviation of each measurement moves each element that the solver fits, [P, N].
    fit: the linearised fit.
    """

    matrix: Array
    noise: tuple[float, ...]
    freedom: tuple[float, ...]
    moved: Array = field(repr=False, compare=False)
    fit: Fit = field(repr=False, compare=False)

    @property
    def deviations(self) -> Array:
        """Return the standard deviation of each element, [n]."""
        return np.asarray(np.sqrt(np.diag(self.matrix)))

    def of(self, function: Callable[..., Any], *points: Any) -> Array:
        """Return the standard deviation of each value of function(*points), an array of its shape, float64.

        function: any function of the fitted Parameters, as the network itself or an expression of it,
        which gives one number for each point, [N], or k, [N, k]. points: its arguments, tensors or
        arrays. A value is nan where no residual determines it: far from measurements and from points of
        the equation. Raises what GaussNewton raises for residuals that are not vectors.
        """
        blocks = Blocks("Covariance.of", function, self.fit.blocks.parameters, None)
        given = blocks.given(points)
        rows, shape = blocks.rows_apart(given), list[int]()

        def gradients(points: Any) -> Any:
            shape.extend(function(*points[0]).shape)
            return blocks.jacobian(points, rows)[0]

        found = jit(gradients)(given).asnumpy().astype(np.float64)
        found *= np.sqrt(len(found))  # Blocks divides rows by the root of their number
        values: Array = np.linalg.norm(found @ self.moved, axis=1)
        values[self.fit.unfelt(found) > _UNFELT] = np.nan
        return values.reshape(shape)


class Fit:
    """Linearised least-squares fit: the Jacobian's singular vectors, of columns divided by their lengths,
    without those whose singular values are below the square root of the rounding."""

    def __init__(self, blocks: Blocks, points: Sequence[tuple[Any, ...]]) -> None:
        self.blocks: Blocks = blocks
        apart, sizes = blocks.rows_apart(points), list[int]()

        def both(points: Any) -> Any:
            rows = blocks.jacobian(points, apart)
            sizes.extend(r.shape[0] for r in rows)
            return blocks.vector(points), rows

        vector, rows = jit(both)(points)
        self.residual: Array = vector.asnumpy().astype(np.float64)
        jacobian = np.concatenate([r.asnumpy().astype(np.float64) for r in rows])
        if not np.isfinite(jacobian).all() or not np.isfinite(self.residual).all():
            bad_value("covariance: the residuals or their Jacobian are not finite")
        ends = np.cumsum([0, *sizes])
        self.places: list[slice] = [slice(a, b) for a, b in itertools.pairwise(ends)]
        length = np.linalg.norm(jacobian, axis=0)
        self.length: Array = np.where(length > 0, length, 1.0)
        left, values, right = np.linalg.svd(jacobian / self.length, full_matrices=False)
        kept = values > values[0] * np.sqrt(relative_rounding(blocks.dtype))
        self.left: Array = left[:, kept]
        self.right: Array = right[kept]
        self.inverse: Array = (self.right.T / values[kept]) @ self.left.T / self.length[:, None]

    def unfelt(self, rows: Array) -> Array:
        """Return the share of each row, a gradient by the parameters, that no residual feels, squared."""
        scaled = rows / self.length
        whole = np.sum(scaled**2, 1)
        rest = np.sum((scaled - scaled @ self.right.T @ self.right) ** 2, 1)
        return np.asarray(rest / np.where(whole > 0, whole, 1.0))

    def noises(self, data: Sequence[int], given: Array | None) -> tuple[Array, Array]:
        """Return (the noise of each block of measurements, the degrees of freedom that it has left).

        With the fit's projector H, a block's sum of squares is expected to be the sum over blocks of
        noise^2 times the sum of squares of that part of 1 - H, all of scaled residuals."""
        rest = np.empty((len(data), len(data)))
        for i, a in enumerate(data):
            for j, b in enumerate(data):
                part = self.left[self.places[a]] @ self.left[self.places[b]].T
                rest[i, j] = np.sum(((np.eye(len(part)) if i == j else 0.0) - part) ** 2)
        freedom = rest.sum(1)
        if given is not None:
            return given, freedom
        if min(freedom) < 1:
            k = int(np.argmin(freedom))
            name = function_name(self.blocks.functions[data[k]])
            bad_value(
                f"covariance: the fit follows the {self.count(data[k])} measurements of {name} so closely "
                f"that only {freedom[k]:.2g} degrees of freedom are left to estimate their noise from. Give "
                "noise, their standard deviation, or fit fewer parameters"
            )
        squares = [np.sum(self.residual[self.places[k]] ** 2) for k in data]
        variances = np.linalg.solve(rest, squares) / [self.scale(k) ** 2 for k in data]
        if min(variances) < 0:
            bad_value(
                "covariance: the residuals do not tell the noises of the functions of data apart: give "
                "noise, a standard deviation for each"
            )
        return np.sqrt(variances), freedom

    def count(self, block: int) -> int:
        """The number of a block's residuals."""
        return int(self.places[block].stop - self.places[block].start)

    def scale(self, block: int) -> float:
        """The number that a block's residuals are multiplied by."""
        return self.blocks._scale(block, self.count(block))


def covariance(
    blocks: Blocks, points: Sequence[tuple[Any, ...]], parameters: Any, data: Any, noise: Any
) -> Covariance:
    """Return how certain parameters are: see GaussNewton.covariance."""
    chosen = check_weights(parameters)
    places = _places(blocks, chosen)
    measured = _data(blocks, data)
    given = None if noise is None else _noise(noise, len(measured))
    fit = Fit(blocks, points)
    unfelt = fit.unfelt(np.eye(blocks.size)[places])
    _check_determined(chosen, unfelt)
    noises, freedom = fit.noises(measured, given)
    moved = np.concatenate(
        [
            fit.inverse[:, fit.places[k]] * (s * fit.scale(k))
            for k, s in zip(measured, noises, strict=True)
        ],
        1,
    )
    matrix = moved[places] @ moved[places].T
    _check_ended(chosen, np.abs(fit.inverse[places] @ fit.residual), np.sqrt(np.diag(matrix)))
    return Covariance(matrix, tuple(map(float, noises)), tuple(map(float, freedom)), moved, fit)


def _places(blocks: Blocks, chosen: Sequence[Any]) -> Array:
    """The places of the chosen parameters' elements among all."""
    starts, at = {}, 0
    for p in blocks.parameters:
        starts[id(p)] = at
        at += p.size
    for p in chosen:
        if id(p) not in starts:
            bad_value(f"covariance: {p.name!r} is not among the parameters that this solver fits")
    return np.concatenate([starts[id(p)] + np.arange(p.size) for p in chosen])


def _data(blocks: Blocks, data: Any) -> list[int]:
    """The blocks that compare with measurements."""
    if data is None:
        if len(blocks.functions) > 1:
            bad_value(
                f"covariance: of the {len(blocks.functions)} residual functions, say which compare with "
                "measurements: covariance(parameters, data=misfit). The others are taken to be exact"
            )
        return [0]
    wanted = list(data) if isinstance(data, (tuple, list)) else [data]
    for fn in wanted:
        if fn not in blocks.functions:
            bad_value(
                "covariance: data must be residual functions of this solver, or one of them, got "
                f"{function_name(fn) if callable(fn) else repr(fn)}"
            )
    if not wanted:
        bad_value("covariance: data is empty: at least one residual function has measurements")
    return [blocks.functions.index(fn) for fn in wanted]


def _noise(noise: Any, count: int) -> Array:
    found = (
        np.broadcast_to(np.asarray(noise, np.float64), (count,)) if np.ndim(noise) == 0 else noise
    )
    found = np.asarray(found, np.float64)
    if found.shape != (count,) or not np.all(found > 0) or not np.isfinite(found).all():
        bad_value(
            "covariance: noise must be a positive standard deviation, or one for each function of data "
            f"({count}), got {noise}"
        )
    return found


def _check_determined(chosen: Sequence[Any], unfelt: Array) -> None:
    for p, part in _each(chosen, unfelt):
        if np.any(part > _UNFELT):
            bad_value(
                f"covariance: the residuals do not determine {p.name!r}: it can be changed, alone or with "
                "others, and no residual changes. Fit fewer parameters, or measure what depends on it"
            )


def _check_ended(chosen: Sequence[Any], steps: Array, deviations: Array) -> None:
    left = steps / np.where(deviations > 0, deviations, 1.0)
    for p, part in _each(chosen, left):
        if np.max(part) > _NOT_THERE:
            warnings.warn(
                f"covariance: the fit has not ended: a full step would still change {p.name!r} by "
                f"{np.max(part):.1f} of its standard deviations. Run more steps first{where()}",
                RuntimeWarning,
                stacklevel=4,
            )


def _each(chosen: Sequence[Any], values: Array) -> Iterator[tuple[Any, Array]]:
    """Each parameter with the values of its elements."""
    at = 0
    for p in chosen:
        yield p, values[at : at + p.size]
        at += p.size
