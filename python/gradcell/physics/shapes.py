"""Shapes of any dimension, with points inside and points and normals on their boundaries.

A boundary is drawn from candidates, which lie evenly on a larger surface: those of a union are on the
boundaries of both its parts. A candidate stays if a small step along its normal leaves the shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell.base import bad_value
from gradcell.physics.points import Array, Random, _center, _directions, _ends, _pairs, _unit

__all__ = ["Ball", "Box", "Shape"]

Where = Callable[[Array], Array] | None

#: The step along a normal that tells inside from outside, in lengths of the box around the shape.
_STEP = 1e-7

#: How many candidates in a row may all be left out.
_MOST_MISSED = 1_000_000


class Shape:
    """A bounded set of points of d coordinates: `Box`, `Ball`, `Polygon`, `Mesh`, and what is made of them:
    `a | b` is their union, `a & b` what they share, `a - b` the first without the second, and `a * b` the
    points whose first coordinates are in a and the others in b: a polygon times an interval is a prism, or
    the polygon over a time.

    `low` and `high` are the ends of a box around it.
    """

    low: Array
    high: Array
    #: The measure of the surface that candidates lie on, and of how many numbers each is made.
    _measure: float
    _numbers: int

    def _lies_between(self, low: Array, high: Array) -> None:
        self.low, self.high = low, high

    @property
    def dimensions(self) -> int:
        """The number of coordinates."""
        return int(self.low.size)

    def inside(self, points: Any) -> Array:
        """Return for each point whether it is inside, [n] of bool. Within roundings of the boundary the
        answer may be either.

        points: an array [n, d]. Raises ValueError for points of other dimensions.
        """
        at = np.asarray(points, np.float64)
        if at.ndim != 2 or at.shape[1] != self.dimensions:
            bad_value(
                f"{type(self).__name__}.inside: expected points [n, {self.dimensions}], got shape "
                f"{list(at.shape)}"
            )
        return self._inside(at)

    def interior(
        self, n: int, seed: Random = None, method: str = "halton", *, where: Where = None
    ) -> Array:
        """Return n points inside, spread evenly, [n, d].

        seed: a seed or a generator of NumPy's. method: how they are spread, as for `box`. where: a
        function of points [m, d] that says which may be taken, [m] of bool; all without it. Raises
        ValueError if no point is found, ImportError without SciPy for all methods but "uniform".
        """

        def found(unit: Array) -> tuple[Array, ...]:
            points = self.low + unit * (self.high - self.low)
            return (points[_allowed(points, self._inside(points), where)],)

        return _until("interior", n, self.dimensions, seed, method, found)[0]

    def boundary(
        self, n: int, seed: Random = None, method: str = "halton", *, where: Where = None
    ) -> tuple[Array, Array]:
        """Return n points on the boundary, spread evenly, and the unit vectors that point outwards there,
        both [n, d].

        where: a function of points [m, d] that says which may be taken, such as `lambda p: p[:, 0] == 0`;
        all without it. Other arguments and errors are those of `interior`.
        """

        def found(unit: Array) -> tuple[Array, ...]:
            points, normals, kept = self._surface(unit)
            kept = _allowed(points, kept, where)
            return points[kept], normals[kept]

        points, normals = _until("boundary", n, self._numbers, seed, method, found)
        return points, normals

    def __or__(self, other: Shape) -> Shape:
        return _Joined(self, other, np.logical_or)

    def __and__(self, other: Shape) -> Shape:
        return _Joined(self, other, np.logical_and)

    def __sub__(self, other: Shape) -> Shape:
        return _Joined(self, other, np.greater)

    def __mul__(self, other: Shape) -> Shape:
        return _Product(self, other)

    def _inside(self, points: Array) -> Array:
        raise NotImplementedError

    def _surface(self, unit: Array) -> tuple[Array, Array, Array]:
        """Candidates for points of a unit cube: points, normals, and which are on the boundary."""
        raise NotImplementedError

    def _sides(self, points: Array, normals: Array) -> tuple[Array, Array]:
        """Return whether the points a small step against and along the normals are inside."""
        step = _STEP * np.max(self.high - self.low) * normals
        return self._inside(points - step), self._inside(points + step)


class Box(Shape):
    """The points between two ends along each axis: an interval, a rectangle, a box.

    low, high: the ends, one number for each axis. Raises ValueError if low is not below high.
    """

    def __init__(self, low: Sequence[float], high: Sequence[float]) -> None:
        self._lies_between(*_ends("Box", low, high))
        size = self.high - self.low
        self._areas = np.repeat(np.prod(size) / size, 2)
        self._measure, self._numbers = float(self._areas.sum()), self.dimensions

    def _inside(self, points: Array) -> Array:
        return np.asarray(((points >= self.low) & (points <= self.high)).all(1))

    def _surface(self, unit: Array) -> tuple[Array, Array, Array]:
        face, unit = _picked(unit, self._areas)
        rows, axis, end = np.arange(len(unit)), face // 2, face % 2
        share = np.zeros_like(unit)
        others = np.arange(self.dimensions - 1)
        share[rows[:, None], others + (others >= axis[:, None])] = unit[:, : self.dimensions - 1]
        points, normals = self.low + share * (self.high - self.low), np.zeros_like(share)
        points[rows, axis] = np.where(end, self.high[axis], self.low[axis])
        normals[rows, axis] = 2 * end - 1
        return points, normals, np.full(len(unit), True)


class Ball(Shape):
    """The points whose distance from a centre is at most the radius: in two dimensions a disk.

    center: the centre's coordinates. radius: a positive number. Raises ValueError for another one.
    """

    def __init__(self, center: Sequence[float], radius: float) -> None:
        self.center: Array = _center("Ball", center, radius)
        self.radius: float = float(radius)
        self._lies_between(self.center - radius, self.center + radius)
        d = self.center.size
        self._measure = 2 * math.pi ** (d / 2) / math.gamma(d / 2) * self.radius ** (d - 1)
        self._numbers = _pairs(d)

    def interior(
        self, n: int, seed: Random = None, method: str = "halton", *, where: Where = None
    ) -> Array:
        """Return n points inside, spread evenly, [n, d].

        Arguments and errors are those of `Shape.interior`.
        """
        d = self.dimensions

        def found(unit: Array) -> tuple[Array, ...]:
            points = self.radius * unit[:, :1] ** (1 / d) * _directions(unit[:, 1:], d)
            points += self.center
            return (points[_allowed(points, np.full(len(unit), True), where)],)

        return _until("interior", n, 1 + _pairs(d), seed, method, found)[0]

    def _inside(self, points: Array) -> Array:
        return np.asarray(np.linalg.norm(points - self.center, axis=1) <= self.radius)

    def _surface(self, unit: Array) -> tuple[Array, Array, Array]:
        normals = _directions(unit, self.dimensions)
        return self.center + self.radius * normals, normals, np.full(len(unit), True)


class _Joined(Shape):
    """Two shapes, and for each point the rule that says from being inside each whether it is inside."""

    def __init__(self, first: Shape, second: Shape, rule: np.ufunc) -> None:
        if not isinstance(second, Shape) or first.dimensions != second.dimensions:
            of = getattr(second, "dimensions", type(second).__name__)
            bad_value(
                f"Shape: both must be shapes of equally many dimensions, got {first.dimensions} and {of}"
            )
        self.first, self.second, self.rule = first, second, rule
        self.low, self.high = first.low, first.high
        if rule is np.logical_or:
            self.low = np.minimum(self.low, second.low)
            self.high = np.maximum(self.high, second.high)
        elif rule is np.logical_and:
            self.low, self.high = (
                np.maximum(self.low, second.low),
                np.minimum(self.high, second.high),
            )
            if not np.all(self.low < self.high):
                bad_value("Shape: the two shapes have no points in common")
        self._measures = [first._measure, second._measure]
        self._measure = sum(self._measures)
        self._numbers = max(first._numbers, second._numbers)

    def _inside(self, points: Array) -> Array:
        return np.asarray(self.rule(self.first._inside(points), self.second._inside(points)))

    def _surface(self, unit: Array) -> tuple[Array, Array, Array]:
        which, unit = _picked(unit, self._measures)
        points = np.empty((len(unit), self.dimensions))
        normals, kept = np.empty_like(points), np.empty(len(unit), bool)
        for k, shape in enumerate((self.first, self.second)):
            rows = which == k
            points[rows], normals[rows], kept[rows] = shape._surface(unit[rows, : shape._numbers])
        second = which == 1
        if self.rule is np.greater:
            normals[second] *= -1
        before, behind = self.first._sides(points[second], normals[second])
        kept[second] &= before == behind  # where both have a boundary, the first one's is taken
        before, behind = self._sides(points, normals)
        return points, normals, kept & before & ~behind


class _Product(Shape):
    """The points whose first coordinates are in one shape and whose others are in another."""

    def __init__(self, first: Shape, second: Shape) -> None:
        if not isinstance(second, Shape):
            bad_value(f"Shape: a shape is multiplied by a shape, got {type(second).__name__}")
        self.parts = first, second
        self.low = np.concatenate([first.low, second.low])
        self.high = np.concatenate([first.high, second.high])
        around = [float(np.prod(s.high - s.low)) for s in self.parts]
        self._measures = [first._measure * around[1], second._measure * around[0]]
        self._measure = sum(self._measures)
        self._numbers = max(first._numbers + second.dimensions, second._numbers + first.dimensions)

    def _inside(self, points: Array) -> Array:
        d = self.parts[0].dimensions
        return np.asarray(
            self.parts[0]._inside(points[:, :d]) & self.parts[1]._inside(points[:, d:])
        )

    def _surface(self, unit: Array) -> tuple[Array, Array, Array]:
        which, unit = _picked(unit, self._measures)
        points = np.empty((len(unit), self.dimensions))
        normals, kept = np.zeros_like(points), np.empty(len(unit), bool)
        d = self.parts[0].dimensions
        columns = [slice(0, d), slice(d, None)]
        for k, (shape, other) in enumerate((self.parts, self.parts[::-1])):
            rows = np.flatnonzero(which == k)
            begin, stop = shape._numbers, shape._numbers + other.dimensions
            on, normals[rows, columns[k]], held = shape._surface(unit[rows, :begin])
            along = other.low + unit[rows, begin:stop] * (other.high - other.low)
            points[rows, columns[k]], points[rows, columns[1 - k]] = on, along
            kept[rows] = held & other._inside(along)
        return points, normals, kept


def _picked(unit: Array, measures: Any) -> tuple[Array, Array]:
    """For each row which part its first number falls in, where parts are as long as their measures, and the
    rows with the place in that part instead."""
    ends = np.cumsum(measures) / np.sum(measures)
    which = np.minimum(np.searchsorted(ends, unit[:, 0], "right"), len(ends) - 1)
    begins = np.concatenate([[0.0], ends[:-1]])
    first = (unit[:, 0] - begins[which]) / (ends - begins)[which]
    return which, np.column_stack([np.clip(first, 0, 1), unit[:, 1:]])


def _allowed(points: Array, kept: Array, where: Where) -> Array:
    if where is None:
        return kept
    allowed = np.asarray(where(points))
    if allowed.dtype != bool or allowed.shape != kept.shape:
        bad_value(
            f"Shape: where must give a bool for each of the {len(points)} points, [{len(points)}], got "
            f"{allowed.dtype} {list(allowed.shape)}"
        )
    return np.asarray(kept & allowed)


def _until(
    name: str, n: int, numbers: int, seed: Random, method: str,
    found: Callable[[Array], tuple[Array, ...]],
) -> tuple[Array, ...]:  # fmt: skip
    """The first n rows of what is found for points of a unit cube, of which so many are drawn as it takes."""
    generator, parts = np.random.default_rng(seed), []
    have, drawn, asked = 0, 0, n
    while have < n:
        parts.append(found(_unit(f"Shape.{name}", asked, numbers, generator, method)))
        have, drawn = have + len(parts[-1][0]), drawn + asked
        if have == 0 and drawn >= _MOST_MISSED:
            bad_value(f"Shape.{name}: none of {drawn} points is on it, or where `where` is true")
        asked = min(max(64, math.ceil(1.2 * (n - have) * drawn / max(have, 1))), _MOST_MISSED)
    return tuple(np.concatenate(p)[:n] for p in zip(*parts, strict=True))
