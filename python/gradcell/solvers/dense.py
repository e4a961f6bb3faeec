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


class Stored:
    """A Jacobian's rows, by blocks."""

    def __init__(self, parts: Sequence[Tensor], summed: Callable[[Tensor], Tensor]) -> None:
        self.matrix: Tensor = parts[0] if len(parts) == 1 else _ops.concat(parts, 0)
        self._summed = summed

    def moved(self, x: Tensor) -> Tensor:
        """J x, [N]."""
        found = _ops.matmul(self.matrix, _ops.reshape(x, [x.size, 1]))
        return _ops.reshape(found, [found.size])

    def back(self, y: Tensor) -> Tensor:
        """J' y, [P]."""
        found = _ops.matmul(self.matrix, _ops.reshape(y, [y.size, 1]), True)
        return self._summed(_ops.reshape(found, [found.size]))

    def gram(self, of_rows: bool) -> Tensor:
        """J J', [N, N], or J' J, [P, P], in float64."""
        return self._summed(wide(_ops.matmul(self.matrix, self.matrix, not of_rows, of_rows)))


class DenseSystem:
    """Damped least squares with one Jacobian, by Cholesky's factor of the parameters' space, or of the rows'.
    jacobian: with `moved`, `back` and `gram`."""

    def __init__(
        self, residual: Tensor, jacobian: Any, of_rows: bool, damping: Tensor, raised: Tensor
    ) -> None:
        self.residual = residual
        self.jacobian: Any = jacobian
        self.of_rows: bool = of_rows
        self.dtype: DType = residual.dtype
        self.slope: Tensor = jacobian.back(residual)
        matrix = jacobian.gram(of_rows)
        self.n: int = matrix.shape[0]
        elements = _ops.reshape(matrix, [self.n * self.n])
        diagonal = _ops.slice(elements, [0], [self.n], [self.n + 1])
        largest = _ops.reduce_max(diagonal, [0], False)
        self.damping: Tensor = damping_of(damping, raised, largest, self.dtype)
        damped = _ops.reshape(self.damping, [1, 1])
        self.factor: Tensor = _ops.damped_cholesky_factor(matrix, damped, False)

    def moved(self, x: Tensor) -> Tensor:
        """J x, [N]."""
        return self.jacobian.moved(x)  # type: ignore[no-any-return]

    def _solved(self, right: Tensor) -> Tensor:
        column = _ops.reshape(wide(right), [self.n, 1])
        found = _ops.cast(_ops.cholesky_solve(self.factor, column, False), self.dtype)
        return _ops.reshape(found, [self.n])

    def least_squares(self, right: Tensor) -> Tensor:
        """(J' J + d I)^-1 J' right = J' (J J' + d I)^-1 right."""
        if self.of_rows:
            return self.jacobian.back(self._solved(right))  # type: ignore[no-any-return]
        return self._solved(self.jacobian.back(right))

    def direction(self, last: Tensor | None) -> Tensor:
        """Return the s that minimises |J s + r|^2 + d |s - last|^2."""
        if last is None:
            return _ops.neg(self.least_squares(self.residual))
        return _ops.sub(last, self.least_squares(_ops.add(self.residual, self.moved(last))))
