"""Pieces of solutions: sums of waves whose amplitudes solve equations and conditions by least squares."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import bad_value
from gradcell.compilation.compiled import jit
from gradcell.physics.asked import Asked, Guess, compared, takes_normals
from gradcell.physics.fits import SOME, Fit, Joint, Place, Plans
from gradcell.physics.orthogonal import LeastSquares, Rows
from gradcell.physics.points import Array
from gradcell.physics.waves import Coordinates, Waves
from gradcell.solvers.jacobian import Blocks

#: Residuals of the equation, and of all conditions together, for each unknown.
ROWS, EDGES = 2.0, 0.7
#: The share of another's misfit that says by itself which one is right.
_RIGHT = 0.01
#: The relative error to which waves make what they need not be multiplied by.
_MADE = 1e-6
#: How many times as much as all residuals a change of u is that they leave free.
_FREE = 1e8


@dataclass(frozen=True)
class Piece:
    """A solution in a box, by the numbers of its network. misfit: the root of the mean square of residuals at
    points that it was not fitted to, each as the error of u by its waves that would cause it, and beside it
    the change of u that fitting noise of this size would make: the first sees waves that are missing, the
    second faster ones than the points determine. Relative to u; gap: not relative to it. In a piece of
    time in which u grows, early residuals count by as much more."""

    coordinates: Coordinates
    frequencies: Array
    phases: Array
    amplitudes: Array
    misfit: float
    gap: float

    def beats(self, other: Piece) -> bool:
        """Return whether its residuals are clearly smaller, as they are and relative to u: what is wrong is
        often far too small or far too large. Where u itself is nearly free, as beside an eigenvalue, what is
        right is far larger."""
        both = self.misfit < 0.8 * other.misfit and self.gap < 0.8 * other.gap
        return both or self.misfit < _RIGHT * min(other.misfit, 1.0)

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

    def fill(self, cell: Waves) -> Waves:
        """Makes a network of this size this one."""
        cell.place(self.coordinates, self.frequencies, self.phases)
        cell.amplitudes.set_data(Tensor(self.amplitudes))
        return cell

    def cell(self) -> Waves:
        """The network."""
        size, count = self.frequencies.shape
        return self.fill(Waves(size, count, self.amplitudes.shape[1], self.coordinates.most))


class Fitter:
    """Fits pieces: Newton steps, each a least-squares problem for the amplitudes."""

    def __init__(self, asked: Asked, seed: int) -> None:
        self.asked: Asked = asked
        self.seed: int = seed
        self.linear: bool | None = None  # not known before the first fit
        #: Whether residuals leave the solution free, as its slopes alone do; not known before a fit.
        self.free: bool | None = None
        #: Whether the last Newton steps ended: residuals became as small as their linear parts can be.
        self.ended: bool = True
        self._orders: dict[int, int] = {}  # of axes across which pieces meet
        self._plans: dict[tuple[int, int], Plans] = {}
        cell, n = Waves(asked.size, 1, asked.outputs, 0), 7
        cell.amplitudes.set_data(Tensor(np.ones((1, asked.outputs))))
        of = Coordinates(asked.shape.low, asked.shape.high, ((),) * asked.size)
        self._all, self._some = of, Tensor(asked.inside(n, of, seed))
        x, zero = self._some, Tensor(np.zeros((n, 1)))
        u = asked.solution(cell)
        #: How many numbers the solution has at a point.
        self.numbers: int = int(u(self._some).shape[1])
        self.normals: list[bool] = [takes_normals(make(u), x) for make, _ in asked.conditions]
        blocks = Blocks("solve", compared(asked, cell, self.normals), [cell.amplitudes], None)
        given = [(x,), *[(x, x, zero)] * len(asked.conditions)]
        if not all(blocks.rows_apart(given)):
            bad_value(
                "solve: a residual must depend on its own point alone, as those of equations do"
            )
        #: How many residuals each function has at a point.
        self.widths: list[int] = [v.size // n for v in blocks.vectors(given)]

    def _plans_for(self, count: int, sites: int) -> Plans:
        """The compiled functions for so many waves and sites."""
        key = count, sites
        if key not in self._plans:
            self._plans[key] = Plans(self.asked, count, sites, self.normals)
        return self._plans[key]

    def fit(
        self, of: Coordinates, reach: Array, count: int, before: Piece | None, guess: Guess
    ) -> Piece:
        """A piece in these coordinates with frequencies up to reach [d]. before: the piece of the time
        before. guess: the u with which Newton's steps begin; zero without it."""
        return self.together([of], [reach], count, before, guess)[0]

    def together(
        self, boxes: Sequence[Coordinates], reaches: Sequence[Array], count: int,
        before: Piece | None, guess: Guess,
    ) -> list[Piece]:  # fmt: skip
        """Pieces side by side, whose values and derivatives below the equation's order agree where they meet.
        The arguments of `fit`, coordinates and frequencies for each."""
        plans = self._plans_for(count, max(of.most for of in boxes))
        random = np.random.default_rng([self.seed, count])
        drawn = [
            self._place(plans, *box, before, random) for box in zip(boxes, reaches, strict=True)
        ]
        plans.free = bool(self.free)
        fits = [Fit(plans, drawn, self._joints(boxes, count))]
        if self.linear is None:
            self.linear = fits[0].is_linear(random)
        if guess is not None and not self.linear:
            fits[0].begin(guess, self.asked.ansatz is None)
        self.ended = fits[0].newton(self.linear)
        if not self.ended and guess is not None and before is None:
            fits.append(Fit(plans, drawn, fits[0].joints))
            self.ended = fits[1].newton(self.linear)
        gaps = [f.gaps() for f in fits]
        best = int(np.argmin(np.linalg.norm(gaps, axis=1)))
        fit, level = fits[best], fits[best].level()
        found = [
            Piece(p.of, p.frequencies, p.phases, amplitudes, gap / level, gap)
            for p, amplitudes, gap in zip(drawn, fit.amplitudes, gaps[best], strict=True)
        ]
        if self.free is None and self.ended and len(boxes) == 1:
            self.free = self._is_free(plans, found[0])
            if self.free:
                return self.together(boxes, reaches, count, before, guess)
        return found

    def _is_free(self, plans: Plans, piece: Piece) -> bool:
        """Return whether slow waves change u where a piece is, and leave all residuals as they are."""
        random, slow = np.random.default_rng(self.seed), np.ones(self.asked.size)
        fit = Fit(plans, [self._place(plans, piece.coordinates, slow, None, random)], [])
        if not self.linear:
            fit.begin(lambda x: self.asked.values(piece, x), self.asked.ansatz is None)
        return fit.spread() > _FREE

    def _place(
        self, plans: Plans, of: Coordinates, reach: Array, before: Piece | None, random: np.random.Generator
    ) -> Place:  # fmt: skip
        asked, (count, outputs) = self.asked, plans.cell.amplitudes.shape
        unknowns = count * outputs
        frequencies = random.uniform(-1, 1, (asked.size, count)) * reach[:, None]
        for k in asked.periodic:
            frequencies[k] = np.pi * np.rint(frequencies[k] / np.pi)
        phases = random.uniform(0, 2 * np.pi, (1, count))
        there = [True, *(asked.touches(of, where) for _, where in asked.conditions)]
        points = [
            plans.blocks.given(
                self.drawn(
                    of,
                    int(ROWS * unknowns),
                    int(EDGES * unknowns),
                    before,
                    2 * self.seed + k,
                    there=there,
                )
            )
            for k in (0, 1)
        ]
        place = Place(of, frequencies, phases, points, there, np.full(unknowns, True), 1.0)
        if asked.whole(of):
            return place
        share = np.prod((of.high - of.low) / (asked.shape.high - asked.shape.low))
        power = max(map(self._order, range(asked.size))) / (2 * asked.size)
        return replace(place, unknown=self._needed(plans, place), weight=float(share**-power))

    def _needed(self, plans: Plans, place: Place) -> Array:
        """Return which amplitudes are needed in a part of the shape: those of an output whose change of the
        solution where it is constant is no sum of waves of the outputs before it."""
        (count, outputs), x = plans.cell.amplitudes.shape, place.points[1][0][0]
        place.fill(plans.cell, np.zeros((count, outputs)))
        rows = plans.solution(x)[1].asnumpy()
        plans.cell.place(place.of, place.frequencies * 0, place.phases * 0 + np.pi / 2)
        alone = plans.solution(x)[1].asnumpy()[:, :outputs]
        needed = np.full((count, outputs), False)
        for k in range(outputs):
            some = rows[:, needed.reshape(-1)]
            rest = alone[:, k]
            if k:
                rest = (
                    rest - some @ LeastSquares([Rows((0,), some, rest)], [some.shape[1]]).parts[0]
                )
            needed[:, k] = np.linalg.norm(rest) > _MADE * np.linalg.norm(alone[:, k])
        return needed.reshape(-1)

    def _joints(self, boxes: Sequence[Coordinates], count: int) -> list[Joint]:
        """The faces at which boxes meet; each has twice as many points along it as waves along an axis."""
        n = int(np.ceil(ROWS * count ** (1 - 1 / self.asked.size)))
        found = []
        for axis in range(self.asked.size):
            for i, j in itertools.permutations(range(len(boxes)), 2):
                x = [self.asked.met(n, boxes[i], boxes[j], axis, 2 * self.seed + k) for k in (0, 1)]
                if len(x[0]) and len(x[1]):
                    found.append(Joint((i, j), axis, self._order(axis), [*map(Tensor, x)]))
        return found

    def _order(self, axis: int) -> int:
        """The order of the equation along an axis: how residuals by a fast wave grow with its frequency."""
        if axis not in self._orders:
            asked, fast, faster = self.asked, 1e6, 1e9
            # A sine and a cosine: together they are as large at each point, whichever counts most.
            cell, phases = Waves(asked.size, 3, asked.outputs, 0), np.array([[1.0, 0.0, np.pi / 2]])
            slow = np.zeros((3, asked.outputs))
            slow[0] = 1
            cell.amplitudes.set_data(Tensor(slow))
            blocks = Blocks(
                "solve", [asked.equation(asked.solution(cell))], [cell.amplitudes], None
            )
            changes = jit(lambda x: blocks.jacobian([(x,)], [True])[0])
            x, sizes = Tensor(asked.inside(SOME, self._all, self.seed)), []
            for w in (fast, faster):
                frequencies = np.ones((asked.size, 3))
                frequencies[axis, 1:] = w
                cell.place(self._all, frequencies, phases)
                sizes.append(np.linalg.norm(changes(x).asnumpy()[:, asked.outputs :]))
            grown = sizes[1] / sizes[0] if sizes[0] > 0 else faster / fast
            self._orders[axis] = max(1, round(float(np.log(grown) / np.log(faster / fast))))
        return self._orders[axis]

    def drawn(
        self, of: Coordinates, rows: int, edges: int, before: Piece | None, seed: int, method: str = "",
        there: Sequence[bool] = (),
    ) -> list[Any]:  # fmt: skip
        """Points for so many residuals of the equation and so many of all conditions: the arguments of
        `compared`. At the beginning of a piece of time the conditions are to have the values that they have
        for the piece before."""
        asked, widths = self.asked, self.widths
        given: list[Any] = [(asked.inside(-(-rows // widths[0]), of, seed, method),)]
        n = max(40, edges // max(1, sum(widths[1:])))
        drawn = [
            asked.edge(n, of, where, seed, method)
            if k >= len(there) or there[k]
            else (asked.inside(n, of, seed, method), np.zeros((n, asked.size)), np.full(n, False))
            for k, (_, where) in enumerate(asked.conditions, 1)
        ]
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
        unit = _mean(plans.solution(given[0][0][:SOME])[1].asnumpy())
        return [float(np.linalg.norm(p.asnumpy()) / unit) for p in parts]


def _mean(rows: Array) -> float:
    """The root of the mean square of rows' lengths."""
    return float(np.linalg.norm(rows) / np.sqrt(len(rows)))
