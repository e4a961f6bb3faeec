"""Least squares by Householder's reflections, which keep the digits that a product with the transposed
matrix loses. Unknowns are in parts, of which each equation has few: one part after the other leaves the
equations (A. George, M. Heath, Linear Algebra Appl. 34, 1980)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcell._core import Tensor, ops as _ops
from gradcell.physics.points import Array

__all__ = ["LeastSquares", "Rows"]

#: The ridge beside columns of length 1, in roundings: it keeps the amplitudes of waves that others can
#: replace finite, and costs no digit that float64 has.
_RIDGE = 5.0


class Rows(NamedTuple):
    """Equations matrix x = right of some parts of the unknowns, whose columns lie one after the other.
    matrix: [n, m]. right: [n] or [n, k]."""

    parts: tuple[int, ...]
    matrix: Array
    right: Array


class _Factor(NamedTuple):
    """The equations of a part that it leaves with: upper (part, others) = right."""

    parts: tuple[int, ...]
    upper: Array
    right: Array


class LeastSquares:
    """The unknowns that make the sum of |matrix x - right|^2 smallest, beside a ridge of so many roundings.

    rows: the equations. sizes: how many unknowns each part has.

    parts: the unknowns, for each part [m] or [m, k].
    """

    def __init__(self, rows: Sequence[Rows], sizes: Sequence[int], ridge: float = _RIDGE) -> None:
        squares = [np.zeros(n) for n in sizes]
        for r in rows:
            for p, columns in zip(r.parts, _columns(r.matrix, r.parts, sizes), strict=True):
                squares[p] += np.einsum("ij,ij->j", columns, columns)
        self._lengths = [np.where(s > 0, np.sqrt(s), 1.0) for s in squares]
        self._sizes = sizes
        least = ridge * np.finfo(np.float64).eps * np.sqrt(sum(sizes))
        self._factors = _eliminated([self._scaled(r) for r in rows], sizes, least)
        found: list[Any] = [None] * len(sizes)
        for (p, *others), upper, right in reversed(self._factors):
            n = sizes[p]
            if others:
                right = right - upper[:, n:] @ np.concatenate([found[q] for q in others])
            found[p] = _solved(upper[:, :n], right, True)
        shape = rows[0].right.shape[1:]
        self.parts: list[Array] = [
            np.asarray((x / length[:, None]).reshape(-1, *shape))
            for x, length in zip(found, self._lengths, strict=True)
        ]

    def _scaled(self, r: Rows) -> Rows:
        """The equations of columns of length 1."""
        lengths = np.concatenate([self._lengths[p] for p in r.parts])
        return Rows(r.parts, r.matrix / lengths, r.right.reshape(len(r.right), -1))

    def spread(self, seen: Sequence[Array]) -> float:
        """Return how large products of rows with the unknowns are, a root of a mean over all rows, if the
        right sides are independent noise of size 1.

        seen: for each part its rows [l, m].
        """
        total, sizes = 0.0, self._sizes
        for part, rows in enumerate(seen):
            waiting: dict[int, Any] = {part: (rows / self._lengths[part]).T}
            for parts, upper, _ in self._factors:
                if parts[0] in waiting:
                    columns = _columns(upper, parts, sizes)
                    y = _solved(columns[0], waiting.pop(parts[0]), False)
                    total += float(np.sum(np.square(y)))
                    for q, c in zip(parts[1:], columns[1:], strict=True):
                        waiting[q] = waiting.get(q, 0.0) - c.T @ y
        return float(np.sqrt(total / sum(map(len, seen))))


def _eliminated(rows: Sequence[Rows], sizes: Sequence[int], ridge: float) -> list[_Factor]:
    """The factors of all parts beside a ridge, first the one whose equations reach the fewest unknowns. A
    part's own equations become a triangle before others come into it."""
    waiting, left, found = [r for r in rows if len(r.parts) > 1], set(range(len(sizes))), []
    for p, n in enumerate(sizes):
        own = Rows((p,), ridge * np.eye(n), np.zeros((n, rows[0].right.shape[1])))
        waiting.append(_merged((p,), [*(r for r in rows if r.parts == (p,)), own], sizes))

    def reached(p: int) -> list[int]:
        return sorted({q for r in waiting if p in r.parts for q in r.parts} - {p})

    while left:
        p = min(left, key=lambda p: sum(sizes[q] for q in reached(p)))
        left.remove(p)
        n, mine = sizes[p], [r for r in waiting if p in r.parts]
        parts, upper, right = _merged((p, *reached(p)), mine, sizes) if len(mine) > 1 else mine[0]
        found.append(_Factor(parts, upper[:n], right[:n]))
        waiting = [r for r in waiting if p not in r.parts]
        if len(parts) > 1:
            waiting.append(Rows(parts[1:], upper[n:, n:], right[n:]))
    return found


def _merged(parts: tuple[int, ...], rows: Sequence[Rows], sizes: Sequence[int]) -> Rows:
    """The equations of these parts that say what some rows do, their matrix an upper triangle."""
    ends = np.cumsum([sizes[q] for q in parts])
    begins, width = dict(zip(parts, [0, *ends], strict=False)), int(ends[-1])
    whole, at = np.zeros((sum(len(r.right) for r in rows), width + rows[0].right.shape[1])), 0
    for r in rows:
        to, at = whole[at : at + len(r.right)], at + len(r.right)
        for q, columns in zip(r.parts, _columns(r.matrix, r.parts, sizes), strict=True):
            to[:, begins[q] : begins[q] + sizes[q]] = columns
        to[:, width:] = r.right
    upper = _triangle(whole)[:width]
    return Rows(parts, upper[:, :width], upper[:, width:])


def _triangle(matrix: Array) -> Array:
    """R of Q R."""
    width = matrix.shape[1]
    return np.asarray(_ops.qr_factors(Tensor(matrix), False, False, False).asnumpy()).reshape(
        -1, width
    )


def _solved(upper: Array, right: Array, straight: bool) -> Array:
    """The x of upper x = right, or of upper' x = right."""
    lower = Tensor(np.ascontiguousarray(upper.T))
    return np.asarray(_ops.triangular_solve(lower, Tensor(right), False, straight).asnumpy())


def _columns(matrix: Array, parts: Sequence[int], sizes: Sequence[int]) -> list[Array]:
    """The columns of each part."""
    return np.split(matrix, np.cumsum([sizes[p] for p in parts])[:-1], axis=1)
