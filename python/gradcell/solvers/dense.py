"""Damped least squares by a Cholesky factorisation in the smaller of two spaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell._core import DType, Tensor, float64, ops as _ops


def wide(x: Tensor) -> Tensor:
    """In float64."""
    return _ops.cast(x, float64)


def relative_rounding(dtype: Any) -> float:
    """The relative size of a dtype's last digit."""
    return float(np.finfo(np.dtype(dtype.name.lower())).eps)


def damping_of(asked: Tensor, raised: Tensor, largest: Tensor, dtype: Any) -> Tensor:
    """The damping that is asked for, at first a thousandth of the matrix's largest element, at least a few
    roundings of it; raised by a factor. Of a matrix of zeros any is as good."""
    begun = _ops.where(_ops.greater(asked, 0.0), asked, _ops.mul(largest, 1e-3))
    least = _ops.mul(largest, 16 * relative_rounding(dtype))
    found = _ops.mul(_ops.maximum(begun, least), raised)
    return _ops.where(_ops.greater(found, 0.0), found, 1.0)


class DenseSystem:
    """Damped least squares with one Jacobian, by Cholesky's factor in the smaller of its two spaces; in that
    of the parameters if other processes have more rows, over which `summed` adds."""

    def __init__(
        self, residual: Tensor, parts: Sequence[Tensor], damping: Tensor, raised: Tensor,
        summed: Callable[[Tensor], Tensor], alone: bool,
    ) -> None:  # fmt: skip
        self.residual = residual
        self._summed = summed
        self.jacobian: Tensor = parts[0] if len(parts) == 1 else _ops.concat(parts, 0)
        count, size = self.jacobian.shape
        self.dtype: DType = self.jacobian.dtype
        self.wide: bool = alone and count < size
        self.n: int = count if self.wide else size
        self.slope: Tensor = self._back(residual)
        matrix = summed(wide(_ops.matmul(self.jacobian, self.jacobian, not self.wide, self.wide)))
        elements = _ops.reshape(matrix, [self.n * self.n])
        diagonal = _ops.slice(elements, [0], [self.n], [self.n + 1])
        largest = _ops.reduce_max(diagonal, [0], False)
        self.damping: Tensor = damping_of(damping, raised, largest, self.dtype)
        damped = _ops.reshape(self.damping, [1, 1])
        self.factor: Tensor = _ops.damped_cholesky_factor(matrix, damped, False)

    def _back(self, x: Tensor) -> Tensor:
        """J' x, [P]."""
        found = _ops.matmul(self.jacobian, _ops.reshape(x, [x.size, 1]), True)
        return self._summed(_ops.reshape(found, [found.size]))

    def moved(self, x: Tensor) -> Tensor:
        """J x, [N]."""
        found = _ops.matmul(self.jacobian, _ops.reshape(x, [x.size, 1]))
        return _ops.reshape(found, [found.size])

    def _solved(self, right: Tensor) -> Tensor:
        column = _ops.reshape(wide(right), [self.n, 1])
        found = _ops.cast(_ops.cholesky_solve(self.factor, column, False), self.dtype)
        return _ops.reshape(found, [self.n])

    def least_squares(self, right: Tensor) -> Tensor:
        """(J' J + d I)^-1 J' right = J' (J J' + d I)^-1 right."""
        return self._back(self._solved(right)) if self.wide else self._solved(self._back(right))

    def direction(self, last: Tensor | None) -> Tensor:
        """Return the s that minimises |J s + r|^2 + d |s - last|^2."""
        if last is None:
            return _ops.neg(self.least_squares(self.residual))
        return _ops.sub(last, self.least_squares(_ops.add(self.residual, self.moved(last))))
