"""Fits: Newton steps, each a least-squares problem for the amplitudes of waves in one box or several side by
side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcell import ops
from gradcell._core import Tensor
from gradcell.compilation.compiled import jit
from gradcell.derivatives.taylor import partials
from gradcell.physics.asked import Asked, Guess, compared
from gradcell.physics.orthogonal import LeastSquares, Rows
from gradcell.physics.points import Array
from gradcell.physics.waves import Coordinates, Waves
from gradcell.solvers.jacobian import Blocks

#: The most Newton steps, and the multiples of one that are tried.
_STEPS, _SHARES = 12, (1.0, 0.5, 0.2, 0.05)
#: How many of them in a row may leave the residuals as large as they are: what rows weigh changes with u.
_IDLE = 1
#: The points at which a solution's size is seen.
SOME = 400
#: Of those, in a solution of many pieces, every 20th or so shows how noise spreads.
_THIN = 20
#: In so many pieces of a time it is seen how a solution grows, and by how much it may.
_TIMES, _GROWN = 20, 2.0
#: What values weigh beside residuals where these leave a solution free, and the ridge of such a fit, in
#: roundings: columns that only values determine are as long as they weigh.
_WEAK, _HELD = 1e-5, 1e4
#: The ridge of a fit to values that Newton's steps begin with, in roundings.
_SMOOTH = 1e6


class Plans:
    """The equation and conditions for networks of one size, compiled once."""

    def __init__(self, asked: Asked, count: int, sites: int, normals: Sequence[bool]) -> None:
        self.cell: Waves = Waves(asked.size, count, asked.outputs, sites)
        cell, functions = self.cell, compared(asked, self.cell, normals)
        self.blocks: Blocks = Blocks("solve", functions, [cell.amplitudes], None)
        blocks = self.blocks
        apart = [True] * len(functions)
        system = jit(lambda given: (blocks.vectors(given), blocks.jacobian(given, apart)))
        conditions = jit(lambda given: [fn(*p) for fn, p in zip(functions[1:], given, strict=True)])
        self.vector: Any = jit(blocks.vector)
        self.system: Any = system
        self.bent: Any = jit(blocks.second)
        self.solution: Any = self._along(asked.solution(cell))
        self.conditions: Any = conditions
        self.asked: Asked = asked
        self.free: bool = False  # whether residuals leave the solution free
        self._joints: dict[tuple[int, int], Any] = {}

    def _along(self, u: Any) -> Any:
        """The values of a function of points and their changes by amplitudes, compiled."""
        blocks = Blocks("solve", [u], [self.cell.amplitudes], None)

        def both(x: Tensor) -> tuple[Tensor, Tensor]:
            return blocks.vector([(x,)]), blocks.jacobian([(x,)], [True])[0]

        return jit(both)

    def joint(self, axis: int, order: int) -> Any:
        """The solution and its derivatives along an axis below an order, and their changes by amplitudes."""
        if (axis, order) not in self._joints:
            u = self.asked.solution(self.cell)
            slopes = partials(u, [(axis,) * k for k in range(1, order)]) if order > 1 else None

            def all_of(x: Tensor) -> Tensor:
                return ops.concat([u(x), *slopes(x)], 1) if slopes else u(x)

            self._joints[axis, order] = self._along(all_of)
        return self._joints[axis, order]


@dataclass(frozen=True)
class Place:
    """A piece that is being fitted: its waves, the points at which its residuals are made small, fresh ones,
    which of its functions have any, which amplitudes are unknown, and what its rows count for."""

    of: Coordinates
    frequencies: Array
    phases: Array
    points: list[Any]
    there: list[bool]
    unknown: Array
    weight: float

    def fill(self, cell: Waves, amplitudes: Array) -> None:
        """Make a network this piece with these amplitudes."""
        cell.place(self.of, self.frequencies, self.phases)
        cell.amplitudes.set_data(Tensor(amplitudes))


@dataclass(frozen=True)
class Joint:
    """A face at which two pieces meet across an axis: its points, fresh ones, and the equation's order."""

    parts: tuple[int, int]
    axis: int
    order: int
    points: list[Tensor]


class Fit:
    """Places that are fitted together. amplitudes: for each its [count, outputs]."""

    def __init__(self, plans: Plans, places: Sequence[Place], joints: Sequence[Joint]) -> None:
        self.plans: Plans = plans
        self.places: list[Place] = list(places)
        self.joints: list[Joint] = list(joints)
        self._sizes = [int(p.unknown.sum()) for p in self.places]
        shape = plans.cell.amplitudes.shape
        self.amplitudes: list[Array] = [np.zeros(shape) for _ in self.places]
        self._seen = [_of(p, self.changes(k)) for k, p in enumerate(self.places)]
        self._solved: LeastSquares | None = None  # the last step

    def changes(self, k: int) -> Array:
        """Rows of a Jacobian: the changes of the solution by amplitudes, at some points of a place."""
        self.places[k].fill(self.plans.cell, self.amplitudes[k])
        return np.asarray(self.plans.solution(self.places[k].points[1][0][0][:SOME])[1].asnumpy())

    def is_linear(self, random: np.random.Generator) -> bool:
        """Return whether the residuals' second derivative by u vanishes."""
        shape: Any = self.amplitudes[0].shape
        given = self.places[0].points[0]
        self.places[0].fill(self.plans.cell, random.normal(size=shape))
        along = Tensor(random.normal(size=int(np.prod(shape))))
        bent = np.abs(self.plans.bent(along, given).asnumpy()).max()
        return bool(bent <= 1e-9 * np.abs(self.plans.vector(given).asnumpy()).max())

    def begin(self, guess: Guess, affine: bool) -> None:
        """Takes the amplitudes whose solution is nearest to a guess, or 0 where that has the smaller
        residuals, as for parts that cancel one another. affine: whether the solution is the sum of waves
        itself."""
        zeros, found = self.amplitudes, []
        assert guess is not None
        for k, place in enumerate(self.places):
            count, outputs = zeros[k].shape
            some = place.points[0][0][0][: 3 * count]
            x, near = some.asnumpy(), np.zeros(count * outputs)
            if affine:
                rows = np.sin(place.of.of(x) @ place.frequencies + place.phases)
                near = LeastSquares([Rows((0,), rows, guess(x))], [count], _SMOOTH).parts[0]
            else:
                place.fill(self.plans.cell, zeros[k])
                values, changes = (t.asnumpy() for t in self.plans.solution(some))
                right = guess(x).reshape(-1) / np.sqrt(values.size) - values
                rows = Rows((0,), changes[:, place.unknown], right)
                near[place.unknown] = LeastSquares([rows], [self._sizes[k]], _SMOOTH).parts[0]
            found.append(near.reshape(count, outputs))
        self.amplitudes = found
        weights = self._system(0)[1]
        if self._size(found, weights) >= self._size(zeros, weights):
            self.amplitudes = zeros

    def newton(self, linear: bool) -> bool:
        """Newton's steps. Returns whether the residuals became as small as their linear parts can be."""
        last, idle = np.inf, 0
        for _ in range(_STEPS):
            rows, weights = self._system(0)
            size = _norm([r.right for r in rows])
            ridge = [_HELD] if self.plans.free else []
            self._solved = LeastSquares([*rows, *self._least()], self._sizes, *ridge)
            steps = self._solved.parts
            foretold = _norm(
                [r.right - r.matrix @ np.concatenate([steps[p] for p in r.parts]) for r in rows]
            )
            for share in _SHARES:
                tried = [self._moved(k, share * step) for k, step in enumerate(steps)]
                there = self._size(tried, weights)
                if linear or there < size:
                    break
            else:
                return foretold > size / 3
            self.amplitudes = tried
            if linear or there < 1.5 * foretold:
                return True
            idle = idle + 1 if there > 0.9 * last else 0
            if idle > _IDLE:
                break
            last = min(there, last)
        return False

    def _moved(self, k: int, step: Array) -> Array:
        found: Array = self.amplitudes[k].copy()
        found[self.places[k].unknown.reshape(found.shape)] += step
        return found

    def gaps(self) -> list[float]:
        """The misfit of each place, by fresh points; of residuals where places meet each has a half."""
        rows, _ = self._system(1)
        squares, count = np.zeros(len(self.places)), sum(len(r.right) for r in rows)
        for r in rows:
            small = self._early(len(r.right)) if len(self.places) == 1 else 1.0
            squares[[*r.parts]] += np.sum(np.square(r.right / small)) / len(r.parts)
        functions = len(self.places[0].there)
        change = np.sqrt(np.mean([np.sum(np.square(s)) / len(s) for s in self._seen]) / functions)
        assert self._solved is not None
        some = [s[:: min(len(self.places), _THIN)] for s in self._seen]
        unit = np.hypot(change, self._solved.spread(some) * np.sqrt(len(self.places) / count))
        found = unit * np.sqrt(squares)
        return [float(g) if np.isfinite(g) else np.inf for g in found]

    def spread(self) -> float:
        """Return how much noise of size 1 in all residuals changes the solution."""
        return LeastSquares(self._system(0)[0], self._sizes).spread(self._seen)

    def _least(self) -> list[Rows]:
        """Rows that make the integral of the solution's square small, where residuals leave it free."""
        found: list[Rows] = []
        if not self.plans.free:
            return found
        for p, (place, amplitudes) in enumerate(zip(self.places, self.amplitudes, strict=True)):
            x, weights = self.plans.asked.mean(place.of)
            place.fill(self.plans.cell, amplitudes)
            values, rows = (t.asnumpy() for t in self.plans.solution(Tensor(x)))
            scale = _WEAK * np.repeat(np.sqrt(weights * len(x)), len(values) // len(x))
            found.append(Rows((p,), _of(place, rows) * scale[:, None], -values * scale))
        return found

    def _early(self, count: int) -> Any:
        """The size of a piece of time's solution up to when each of so many residuals is, relative to that
        over all of its time, at most 1: where the solution grows, early errors grow too. 1 without time."""
        axis, place = self.plans.asked.time, self.places[0]
        if axis is None:
            return 1.0
        place.fill(self.plans.cell, self.amplitudes[0])
        given = [points[0].asnumpy()[:, axis] for points in place.points[1]]
        times = given[0][:SOME]
        values = self.plans.solution(place.points[1][0][0][:SOME])[0].asnumpy()
        order = np.array_split(np.argsort(times), _TIMES)
        squares = np.square(values).reshape(len(times), -1).sum(1)
        sizes = np.sqrt([squares[k].mean() for k in order])
        so_far = np.maximum.accumulate(np.append(sizes[1:], sizes[-1]))
        level = np.sqrt(np.mean(np.square(sizes)))
        if level == 0:
            return 1.0
        share = np.clip(_GROWN * so_far / level, np.finfo(np.float64).eps, 1.0)
        ends = [times[k].max() for k in order[:-1]]
        at = [share[np.searchsorted(ends, t)] for t in given]
        widths = [points[2].shape[1] for points in place.points[1][1:]]
        others = sum(len(t) * w for t, w in zip(given[1:], widths, strict=True))
        widths.insert(0, (count - others) // len(given[0]))
        return np.concatenate([np.repeat(a, w) for a, w in zip(at, widths, strict=True)])

    def level(self) -> float:
        """The size of the solution, a root of mean squares, in the units of `changes`."""
        found = []
        for place, amplitudes in zip(self.places, self.amplitudes, strict=True):
            place.fill(self.plans.cell, amplitudes)
            x = place.points[1][0][0][:SOME]
            found.append(np.mean(np.square(self.plans.solution(x)[0].asnumpy())))
        return float(np.sqrt(np.mean(found))) or 1.0

    def _meeting(self, joint: Joint, amplitudes: Sequence[Array], k: int) -> list[Any]:
        """For both sides of a joint the values and derivatives there, and their rows of the Jacobian."""
        found, compiled = [], self.plans.joint(joint.axis, joint.order)
        for p in joint.parts:
            self.places[p].fill(self.plans.cell, amplitudes[p])
            values, rows = (t.asnumpy() for t in compiled(joint.points[k]))
            found.append((values, _of(self.places[p], rows)))
        return found

    def _system(self, k: int) -> tuple[list[Rows], list[Array]]:
        """The equations of a step, by points, 0, or fresh ones, 1, and what they were multiplied by. A row of
        the Jacobian becomes as long as its place's weight over the root of its function's number of rows."""
        found, weights = [], []
        for p, (place, amplitudes) in enumerate(zip(self.places, self.amplitudes, strict=True)):
            place.fill(self.plans.cell, amplitudes)
            vectors, parts = self.plans.system(place.points[k])
            rows = [_of(place, part.asnumpy()) for part in parts]
            scales = [_scales(r) * there for r, there in zip(rows, place.there, strict=True)]
            scale, matrix = place.weight * np.concatenate(scales), np.concatenate(rows)
            matrix *= scale[:, None]
            right = np.concatenate([v.asnumpy() for v in vectors]) * -scale
            found.append(Rows((p,), matrix, right))
            weights.append(scale)
        for joint in self.joints:
            (one, left), (other, behind) = self._meeting(joint, self.amplitudes, k)
            matrix = np.concatenate([left, -behind], 1)
            scale = _scales(matrix) * max(self.places[p].weight for p in joint.parts)
            matrix *= scale[:, None]
            found.append(Rows(joint.parts, matrix, (other - one) * scale))
            weights.append(scale)
        return found, weights

    def _size(self, amplitudes: Sequence[Array], weights: Sequence[Array]) -> float:
        """The root of the sum of squares of residuals with these weights."""
        found = []
        for place, a in zip(self.places, amplitudes, strict=True):
            place.fill(self.plans.cell, a)
            found.append(self.plans.vector(place.points[0]).asnumpy())
        for joint in self.joints:
            (one, _), (other, _) = self._meeting(joint, amplitudes, 0)
            found.append(one - other)
        return _norm([w * f for w, f in zip(weights, found, strict=True)])


def _of(place: Place, rows: Array) -> Array:
    """The columns of unknown amplitudes."""
    return rows if place.unknown.all() else rows[:, place.unknown]


def _norm(parts: Sequence[Array]) -> float:
    return float(np.linalg.norm(np.concatenate(parts)))


def _scales(rows: Array) -> Array:
    """Factors that make rows 1 over the root of their number long, but those that are nearly 0."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    floor = 1e-3 * np.sqrt(np.mean(np.square(length))) or 1.0
    return np.asarray(1 / np.maximum(length, floor) / np.sqrt(len(rows)))
