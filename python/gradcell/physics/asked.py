"""The problem that `solve` is asked for: an equation, where it holds, conditions, and points for them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell import nn
from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value
from gradcell.physics.points import Array
from gradcell.physics.shapes import Box, Shape
from gradcell.physics.waves import Coordinates

Where = Callable[[Array], Array] | None
Guess = Callable[[Array], Array] | None

#: The most coordinates that are looked at one by one.
APART = 3
#: How many points tell whether any lie on a part of a boundary or in a part of a shape.
_TRIED = 2000
#: How many points give an integral.
_MEAN = 400


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
        self._edge: Array | None = None  # points on the boundary, of shapes that are no boxes
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
            return self._within(of).interior(n, seed, method or _spread())
        return of.back(_unit_box(self.size).interior(n, seed, method or _spread()))

    def mean(self, of: Coordinates) -> tuple[Array, Array]:
        """Points [n, d], and weights by which values there have their integral over a part of the shape, of a
        box beside the whole one: Gauss's, or equal ones."""
        share = float(np.prod((of.high - of.low) / (self.shape.high - self.shape.low)))
        each = int(_MEAN ** (1 / self.size))
        if not self.boxed or each < 5:
            x = self.inside(_MEAN, of, 0)
            return x, np.full(len(x), share / len(x))
        z, w = np.polynomial.legendre.leggauss(each)
        at = np.stack(np.meshgrid(*[z] * self.size, indexing="ij"), -1).reshape(-1, self.size)
        weights = np.prod(np.stack(np.meshgrid(*[w / 2] * self.size), -1), -1).reshape(-1)
        return of.low + (at + 1) / 2 * (of.high - of.low), share * weights

    def _within(self, of: Coordinates) -> Shape:
        """The part of the shape that is in a box."""
        low, high = self.shape.low, self.shape.high
        whole = (of.low <= low).all() and (of.high >= high).all()
        return self.shape if whole else self.shape & Box([*of.low], [*of.high])

    def inhabited(self, low: Array, high: Array) -> bool:
        """Return whether any of the shape is in a box."""
        x = Box([*low], [*high]).interior(_TRIED, 0, _spread())
        return self.boxed or bool(self.shape.inside(x).any())

    def met(self, n: int, first: Coordinates, second: Coordinates, axis: int, seed: int) -> Array:
        """n points where two boxes meet across an axis, none if they do not."""
        low, high = np.maximum(first.low, second.low), np.minimum(first.high, second.high)
        others = [k for k in range(self.size) if k != axis]
        if first.high[axis] != second.low[axis] or not (low < high)[others].all():
            return np.empty((0, self.size))
        x = np.broadcast_to(low, (_TRIED, self.size)).copy()
        if others:
            face = Box([*low[others]], [*high[others]])
            x[:, others] = face.interior(_TRIED, seed, _spread())
        x = x if self.boxed else x[self.shape.inside(x)]
        return np.resize(x, (n, self.size)) if len(x) else x

    def whole(self, of: Coordinates) -> bool:
        """Return whether a box has all of the shape, at its times."""
        less = (of.low > self.shape.low) | (of.high < self.shape.high)
        return not less[np.arange(self.size) != self.time].any()

    def touches(self, of: Coordinates, where: Where) -> bool:
        """Return whether a condition holds anywhere in a box."""
        if self.whole(of):
            return True
        if self.boxed:
            z, _ = _unit_box(self.size).boundary(_TRIED, 0, "uniform")
            return bool(self._on_edge(of, where, z)[1].any())
        if self._edge is None:
            self._edge = self.shape.boundary(10 * _TRIED, 0, "uniform")[0]
        return bool(self._here(of, where, self._edge).any())

    def _here(self, of: Coordinates, where: Where, x: Array) -> Array:
        """Return which points are in a box and where a condition holds."""
        there = np.full(len(x), True) if self.whole(of) else ((x >= of.low) & (x <= of.high)).all(1)
        return np.asarray(there if where is None else there & np.asarray(where(x)))

    def _on_edge(self, of: Coordinates, where: Where, z: Array) -> tuple[Array, Array]:
        """The points of a box on whose faces these mapped ones are, and on which a condition holds; a
        piece of time that is not the first begins like the first one."""
        axis, low, high = self.time, self.shape.low, self.shape.high
        real = np.where(z == 1, of.high, np.where(z == -1, of.low, of.back(z)))
        x, there = real.copy(), np.full(len(z), True)
        for k in range(self.size):
            there &= (z[:, k] < 1) | (of.high[k] == high[k])
            if k == axis:
                x[z[:, k] == -1, k] = low[k]
            else:
                there &= (z[:, k] > -1) | (of.low[k] == low[k])
        return real, there if where is None else there & np.asarray(where(x))

    def edge(
        self, n: int, of: Coordinates, where: Where, seed: int, method: str = ""
    ) -> tuple[Array, Array, Array]:
        """n points where a condition holds, the normals, and which points are at the beginning of a time that
        is not the first one."""
        spread = method or _spread()
        if not self.boxed:
            points, normals = self.shape.boundary(
                n, seed, spread, where=lambda x: self._here(of, where, x)
            )
            return points, normals, np.full(n, False)
        z, normals = _unit_box(self.size).boundary(
            n, seed, spread, where=lambda z: self._on_edge(of, where, z)[1]
        )
        axis = self.time
        later = axis is not None and of.low[axis] > self.shape.low[axis]
        return self._on_edge(of, where, z)[0], normals, (z[:, axis or 0] == -1) & later


def _unit_box(size: int) -> Box:
    """The box of mapped coordinates."""
    return Box([-1] * size, [1] * size)


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


def takes_normals(residual: Any, x: Tensor) -> bool:
    """Return whether a condition's residual takes normals behind the points."""
    try:
        residual(x)
    except TypeError as error:
        if "positional argument" not in str(error):
            raise
        return True
    return False
