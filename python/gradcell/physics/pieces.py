"""Pieces of solutions: sums of waves whose amplitudes solve equations and conditions by least squares."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcell import nn
from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value
from gradcell.compilation.compiled import jit
from gradcell.physics.points import Array
from gradcell.physics.shapes import Box, Shape
from gradcell.physics.waves import Coordinates, Waves, least_squares
from gradcell.solvers.jacobian import Blocks

Where = Callable[[Array], Array] | None
Guess = Callable[[Array], Array] | None

#: Residuals of the equation, and of all conditions together, for each unknown.
ROWS, EDGES = 2.0, 0.7
#: The most coordinates that are looked at one by one.
APART = 3
#: The most Newton steps, and the multiples of one that are tried.
_NEWTON, _SHARES = 12, (1.0, 0.5, 0.2, 0.05)
#: The points at which a solution's size is seen.
_SOME = 400
#: The ridge of a fit to values that Newton's steps begin with, in roundings.
_SMOOTH = 1e6


@dataclass(frozen=True)
class Piece:
    """A solution in a box, by the numbers of its network. misfit: the root of the mean square of residuals at
    points that it was not fitted to, each as the error of u by its waves that would cause it, and beside it
    the change of u that fitting noise of this size would make: the first sees waves that are missing, the
    second faster ones than the points determine. Relative to u; gap: not relative to it."""

    coordinates: Coordinates
    frequencies: Array
    phases: Array
    amplitudes: Array
    misfit: float
    gap: float

    def beats(self, other: Piece) -> bool:
        """Return whether its residuals are clearly smaller, as they are and relative to u: what is wrong is
        often far too small or far too large."""
        return self.misfit < 0.8 * other.misfit and self.gap < 0.8 * other.gap

    @property
    def count(self) -> int:
        """The number of waves."""
        return int(self.frequencies.shape[1])

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return int(self.amplitudes.size)

    def values(self, x: Array) -> Array:
        """[n, d] to [n, m]."""
        z = self.coordinates.of(x)
        return np.asarray(np.sin(z @ self.frequencies + self.phases) @ self.amplitudes)

    def later(self, axis: int) -> Callable[[Array], Array]:
        """The values at its end of an axis, a function of points."""

        def values(x: Array) -> Array:
            x = x.copy()
            x[:, axis] = self.coordinates.high[axis]
            return self.values(x)

        return values

    def fill(self, cell: Waves) -> Waves:
        """Makes a network of this size this one."""
        cell.place(self.coordinates, self.frequencies, self.phases)
        cell.amplitudes.set_data(Tensor(self.amplitudes))
        return cell

    def cell(self) -> Waves:
        """The network."""
        size, count = self.frequencies.shape
        return self.fill(Waves(size, count, self.amplitudes.shape[1], self.coordinates.most))


class Asked:
    """The problem: the arguments of `solve`, checked."""

    def __init__(
        self, equation: Any, shape: Any, conditions: Any, outputs: int, time: int | None,
        periodic: Sequence[int], ansatz: Any,
    ) -> None:  # fmt: skip
        if not isinstance(shape, Shape):
            bad_type(f"solve: shape must be a Shape such as Box, got {type(shape).__name__}")
        self.equation: Callable[..., Any] = equation
        self.shape: Shape = shape
        self.size: int = shape.dimensions
        pairs = all(
            isinstance(c, (tuple, list)) and len(c) == 2 and callable(c[0]) for c in conditions
        )
        if not callable(equation) or not pairs or not (ansatz is None or callable(ansatz)):
            bad_type(
                "solve: equation must be a function of u that gives a residual function, conditions pairs "
                "of such a function and of where it holds, a function of points, or None for all of the "
                "boundary, and ansatz a function of the network that gives u"
            )
        self.conditions: list[tuple[Callable[..., Any], Where]] = [(c, at) for c, at in conditions]
        axes = [*periodic, *([] if time is None else [time])]
        if outputs < 1 or len(set(axes)) < len(axes) or not all(0 <= k < self.size for k in axes):
            bad_value(
                f"solve: outputs must be at least 1, time and periodic different axes from 0 to "
                f"{self.size - 1}, got {outputs}, {time} and {list(periodic)}"
            )
        self.boxed: bool = isinstance(shape, Box)
        if axes and not self.boxed:
            bad_value("solve: time and periodic are axes of a Box, but the shape is another one")
        self.outputs: int = outputs
        self.ansatz: Callable[[Any], Callable[[Tensor], Tensor]] | None = ansatz
        self.time: int | None = time
        self.periodic: tuple[int, ...] = tuple(periodic)

    def solution(self, cell: nn.Cell) -> Callable[[Tensor], Tensor]:
        """Return the solution that a network gives."""
        return cell if self.ansatz is None else self.ansatz(cell)

    def values(self, part: Any, x: Array) -> Array:
        """Return the solution by a network, [n, d] to [n, m]."""
        if self.ansatz is None:
            return np.asarray(part.values(x))
        return np.asarray(self.solution(part.cell())(Tensor(x)).asnumpy())

    def stretched(self, k: int) -> bool:
        """Return whether an axis may have sites."""
        few = self.size <= APART
        return few and self.boxed and k != self.time and k not in self.periodic

    def inside(self, n: int, of: Coordinates, seed: int, method: str = "") -> Array:
        """n points, evenly in the mapped coordinates."""
        if not self.boxed:
            return self.shape.interior(n, seed, method or _spread())
        return of.back(
            Box([-1] * self.size, [1] * self.size).interior(n, seed, method or _spread())
        )

    def edge(
        self, n: int, of: Coordinates, where: Where, seed: int, method: str = ""
    ) -> tuple[Array, Array, Array]:
        """n points where a condition holds, the normals, and which points are at the beginning of a time that
        is not the first one."""
        if not self.boxed:
            points, normals = self.shape.boundary(n, seed, method or _spread(), where=where)
            return points, normals, np.full(n, False)
        axis, low, high = self.time, self.shape.low, self.shape.high

        def real(z: Array) -> Array:
            return np.where(z == 1, of.high, np.where(z == -1, of.low, of.back(z)))

        def taken(z: Array) -> Array:
            x, there = real(z), np.full(len(z), True)
            if axis is not None:
                there = (z[:, axis] < 1) | (of.high[axis] == high[axis])
                x[z[:, axis] == -1, axis] = low[axis]  # a later piece begins like the first one
            return there if where is None else there & np.asarray(where(x))

        z, normals = Box([-1] * self.size, [1] * self.size).boundary(
            n, seed, method or _spread(), where=taken
        )
        later = axis is not None and of.low[axis] > low[axis]
        return real(z), normals, (z[:, axis or 0] == -1) & later


def _spread() -> str:
    """Halton's points where SciPy is there."""
    return "halton" if importlib.util.find_spec("scipy") else "uniform"


def compared(asked: Asked, cell: nn.Cell, normals: Sequence[bool]) -> list[Callable[..., Any]]:
    """The residual functions of an equation, of points, and of its conditions, of points, normals and what is
    subtracted."""

    def of(residual: Any, takes: bool) -> Callable[..., Any]:
        if takes:
            return lambda x, n, past: residual(x, n) - past
        return lambda x, n, past: residual(x) - past

    u = asked.solution(cell)
    made = [make(u) for make, _ in asked.conditions]
    return [asked.equation(u), *map(of, made, normals)]


class _Plans:
    """The equation and conditions for networks of one size, compiled once."""

    def __init__(self, asked: Asked, count: int, sites: int, normals: Sequence[bool]) -> None:
        self.cell = cell = Waves(asked.size, count, asked.outputs, sites)
        functions = compared(asked, cell, normals)
        self.blocks = blocks = Blocks("solve", functions, [cell.amplitudes], None)
        apart = [True] * len(functions)
        self.vector = jit(blocks.vector)
        self.system = jit(lambda given: (blocks.vectors(given), blocks.jacobian(given, apart)))
        self.bent = jit(blocks.second)
        solution = Blocks("solve", [asked.solution(cell)], [cell.amplitudes], None)
        self.solution = jit(lambda x: (solution.vector([(x,)]), solution.jacobian([(x,)], [True])))
        self.conditions = jit(
            lambda given: [fn(*p) for fn, p in zip(functions[1:], given, strict=True)]
        )


class Fitter:
    """Fits pieces: Newton steps, each a least-squares problem for the amplitudes."""

    def __init__(self, asked: Asked, seed: int) -> None:
        self.asked: Asked = asked
        self.seed: int = seed
        self.linear: bool | None = None  # not known before the first fit
        self._plans: dict[tuple[int, int], _Plans] = {}
        cell, n = Waves(asked.size, 1, asked.outputs, 0), 7
        cell.amplitudes.set_data(Tensor(np.ones((1, asked.outputs))))
        of = Coordinates(asked.shape.low, asked.shape.high, ((),) * asked.size)
        x, zero = Tensor(asked.inside(n, of, seed)), Tensor(np.zeros((n, 1)))
        u = asked.solution(cell)
        self.normals: list[bool] = [_takes_normals(make(u), x) for make, _ in asked.conditions]
        blocks = Blocks("solve", compared(asked, cell, self.normals), [cell.amplitudes], None)
        given = [(x,), *[(x, x, zero)] * len(asked.conditions)]
        if not all(blocks.rows_apart(given)):
            bad_value(
                "solve: a residual must depend on its own point alone, as those of equations do"
            )
        #: How many residuals each function has at a point.
        self.widths: list[int] = [v.size // n for v in blocks.vectors(given)]

    def _plans_for(self, count: int, sites: int) -> _Plans:
        """The compiled functions for so many waves and sites."""
        key = count, sites
        if key not in self._plans:
            self._plans[key] = _Plans(self.asked, count, sites, self.normals)
        return self._plans[key]

    def fit(
        self, of: Coordinates, reach: Array, count: int, before: Piece | None, guess: Guess
    ) -> Piece:
        """A piece in these coordinates with frequencies up to reach [d]. before: the piece of the time
        before. guess: where Newton's steps begin; zero without it."""
        asked, plans = self.asked, self._plans_for(count, of.most)
        random = np.random.default_rng([self.seed, count])
        frequencies = random.uniform(-1, 1, (asked.size, count)) * reach[:, None]
        for k in asked.periodic:
            frequencies[k] = np.pi * np.rint(frequencies[k] / np.pi)
        phases = random.uniform(0, 2 * np.pi, (1, count))
        unknowns = count * asked.outputs
        given, fresh = (
            plans.blocks.given(
                self.drawn(
                    of, int(ROWS * unknowns), int(EDGES * unknowns), before, 2 * self.seed + k
                )
            )
            for k in (0, 1)
        )
        cell = plans.cell
        cell.place(of, frequencies, phases)
        amplitudes: Array = np.zeros((count, asked.outputs))
        if self.linear is None:
            self.linear = self._is_linear(plans, given, random)
        if guess is not None and not self.linear:
            x = given[0][0].asnumpy()[: 3 * count]
            waves = np.sin(of.of(x) @ frequencies + phases)
            near, _ = least_squares(waves, guess(x), ridge=_SMOOTH)
            amplitudes = self._better(plans, given, near, amplitudes)
        last = np.inf
        changes = self._changes(plans, fresh[0][0])
        for _ in range(_NEWTON):
            cell.amplitudes.set_data(Tensor(amplitudes))
            right, rows, weights = self._system(plans, given)
            step, noise = least_squares(rows, -right, changes)
            foretold = np.linalg.norm(right + rows @ step)
            shares, there, tried = iter(_SHARES), np.inf, amplitudes
            while not there < np.linalg.norm(right) and (share := next(shares, 0.0)):
                tried = amplitudes + share * step.reshape(amplitudes.shape)
                cell.amplitudes.set_data(Tensor(tried))
                there = float(np.linalg.norm(plans.vector(given).asnumpy() * weights))
                if self.linear:
                    break
            if not (there < np.linalg.norm(right) or self.linear):
                cell.amplitudes.set_data(Tensor(amplitudes))
                break
            amplitudes = tried
            if self.linear or there < 1.5 * foretold or there > 0.9 * last:
                break
            last = there
        right, _, _ = self._system(plans, fresh)
        level = _mean(plans.solution(fresh[0][0][:_SOME])[0].asnumpy()) or 1.0
        unit = np.hypot(_mean(changes) / np.sqrt(len(fresh)), noise / np.sqrt(right.size))
        gap = float(unit * np.linalg.norm(right))
        gap = gap if np.isfinite(gap) else np.inf
        return Piece(of, frequencies, phases, amplitudes, gap / level, gap)

    def drawn(
        self, of: Coordinates, rows: int, edges: int, before: Piece | None, seed: int, method: str = ""
    ) -> list[Any]:  # fmt: skip
        """Points for so many residuals of the equation and so many of all conditions: the arguments of
        `compared`. At the beginning of a piece of time the conditions are to have the values that they have
        for the piece before."""
        asked, widths = self.asked, self.widths
        given: list[Any] = [(asked.inside(-(-rows // widths[0]), of, seed, method),)]
        n = max(40, edges // max(1, sum(widths[1:])))
        drawn = [asked.edge(n, of, where, seed, method) for _, where in asked.conditions]
        targets = [np.zeros((n, width)) for width in widths[1:]]
        at = [
            (Tensor(x), Tensor(normals), Tensor(t))
            for (x, normals, _), t in zip(drawn, targets, strict=True)
        ]
        if before is not None and drawn:
            then = self._plans_for(before.count, before.coordinates.most)
            before.fill(then.cell)
            for target, values, (_, _, later) in zip(
                targets, then.conditions(at), drawn, strict=True
            ):
                target[later] = values.asnumpy().reshape(target.shape)[later]
        return given + [(*a[:2], t) for a, t in zip(at, targets, strict=True)]

    def causes(self, piece: Piece) -> list[float]:
        """For each function the size of the residual that an error of u of size 1 causes, by the waves of a
        piece: a root of mean squares."""
        plans = self._plans_for(piece.count, piece.coordinates.most)
        piece.fill(plans.cell)
        unknowns = piece.size
        points = self.drawn(
            piece.coordinates, int(ROWS * unknowns), int(EDGES * unknowns), None, self.seed
        )
        given = plans.blocks.given(points)
        _, parts = plans.system(given)
        unit = _mean(self._changes(plans, given[0][0]))
        return [float(np.linalg.norm(p.asnumpy()) / unit) for p in parts]

    def _better(self, plans: _Plans, given: Any, guess: Array, zero: Array) -> Array:
        """A guess, or zero where that has the smaller residuals, as for parts that cancel one another."""

        def size(amplitudes: Array, weights: Array) -> float:
            plans.cell.amplitudes.set_data(Tensor(amplitudes))
            return float(np.linalg.norm(plans.vector(given).asnumpy() * weights))

        plans.cell.amplitudes.set_data(Tensor(guess))
        weights = self._system(plans, given)[2]
        return guess if size(guess, weights) < size(zero, weights) else zero

    def _changes(self, plans: _Plans, x: Tensor) -> Array:
        """Rows of a Jacobian: the changes of the solution by amplitudes, at some of these points."""
        (rows,) = plans.solution(x[:_SOME])[1]
        return np.asarray(rows.asnumpy())

    def _is_linear(self, plans: _Plans, given: Any, random: np.random.Generator) -> bool:
        """Return whether the residuals' second derivative by u vanishes."""
        amplitudes = plans.cell.amplitudes
        amplitudes.set_data(Tensor(random.normal(size=amplitudes.shape)))
        along = Tensor(random.normal(size=amplitudes.size))
        bent = np.abs(plans.bent(along, given).asnumpy()).max()
        return bool(bent <= 1e-9 * np.abs(plans.vector(given).asnumpy()).max())

    def _system(self, plans: _Plans, given: Any) -> tuple[Array, Array, Array]:
        """Residuals and rows of the Jacobian, each row of length 1 over the root of its function's number of
        rows, and what they were multiplied by."""
        vectors, parts = plans.system(given)
        weights = []
        for part in parts:
            rows = part.asnumpy()
            length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            floor = 1e-3 * np.sqrt(np.mean(np.square(length))) or 1.0
            weights.append(1 / np.maximum(length, floor) / np.sqrt(len(rows)))
        whole = np.concatenate(weights)
        matrix = np.concatenate([p.asnumpy() for p in parts])
        matrix *= whole[:, None]
        return np.concatenate([v.asnumpy() for v in vectors]) * whole, matrix, whole


def _mean(rows: Array) -> float:
    """The root of the mean square of rows' lengths."""
    return float(np.linalg.norm(rows) / np.sqrt(len(rows)))


def _takes_normals(residual: Any, x: Tensor) -> bool:
    """Return whether a condition's residual takes normals behind the points."""
    try:
        residual(x)
    except TypeError as error:
        if "positional argument" not in str(error):
            raise
        return True
    return False
