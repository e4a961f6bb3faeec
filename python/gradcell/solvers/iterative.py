"""Damped least squares without a matrix: conjugate gradients on products with the Jacobian, preconditioned by
what a random sketch of J'J shows of its largest eigenvalues (Z. Frangella, J. Tropp, M. Udell, SIAM J. Matrix
Anal. Appl. 44, 2023: randomized Nystroem preconditioning, algorithms 2.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcell._core import DType, Tensor, adjoint, ops as _ops, tangent
from gradcell.derivatives.differentiating import differentiating
from gradcell.ops.control.loops import loop
from gradcell.ops.matrices import factorisations
from gradcell.solvers.dense import damping_of, relative_rounding, wide
from gradcell.solvers.jacobian import Blocks, joined


@contextmanager
def linearised(blocks: Blocks, points: Sequence[tuple[Any, ...]]) -> Iterator[Linear]:
    """The residuals around the parameters as they are, for as long as the context is open."""
    with differentiating(parameters=blocks.parameters) as (_, weights):
        yield Linear(blocks, blocks.vector(points), weights)


class Linear:
    """Products with the Jacobian of the residual vector, none of which makes it."""

    def __init__(self, blocks: Blocks, vector: Tensor, weights: list[Tensor]) -> None:
        self.blocks: Blocks = blocks
        self.vector: Tensor = vector
        self.weights: list[Tensor] = weights
        self.gram: Callable[[bool], Tensor] | None = None  # J' J, where it is known

    def moved(self, x: Tensor) -> Tensor:
        """J x, [N]."""
        return tangent([self.vector], self.weights, self.blocks.split(x))[0]

    def own(self, y: Tensor) -> Tensor:
        """J' y, [P], by this process's rows."""
        return joined(adjoint([self.vector], [y], self.weights))

    def back(self, y: Tensor) -> Tensor:
        """J' y, [P]."""
        return self.blocks.summed(self.own(y))


class IterativeSystem:
    """(J'J + d I) x = J' b by conjugate gradients. sketch: orthonormal rows, [rank, P]."""

    def __init__(
        self, linear: Linear, residual: Tensor, damping: Tensor, raised: Tensor, sketch: Tensor,
        iterations: int,
    ) -> None:  # fmt: skip
        self.linear: Linear = linear
        self.residual: Tensor = residual
        self.iterations: int = iterations
        self.dtype: DType = residual.dtype
        self.slope: Tensor = linear.back(residual)
        values, self._vectors = self._sketched(sketch)
        rank = sketch.shape[0]
        largest = _ops.reshape(_ops.slice(values, [0], [1], [1]), [])
        smallest = _ops.reshape(_ops.slice(values, [rank - 1], [1], [1]), [])
        self.damping: Tensor = damping_of(damping, raised, largest, self.dtype)
        self._narrow = _ops.cast(self.damping, self.dtype)
        kept = _ops.div(_ops.add(smallest, self.damping), _ops.add(values, self.damping))
        self._shares = _ops.cast(_ops.sub(kept, 1.0), self.dtype)

    def _product(self, x: Tensor) -> Tensor:
        """J' J x."""
        return self.linear.back(self.linear.moved(x))

    def _sketched(self, sketch: Tensor) -> tuple[Tensor, Tensor]:
        """(The largest eigenvalues of J'J, falling, in float64; their vectors as rows [rank, P])."""
        rank, size = sketch.shape
        linear = self.linear
        _, (rows,) = loop(lambda s, x: (s, [linear.own(linear.moved(x[0]))]), [], [sketch], rank)
        products, basis = wide(linear.blocks.summed(rows)), wide(sketch)
        norm = _ops.sqrt(_ops.reduce_sum(_ops.square(products), [0, 1], False))
        shift = _ops.mul(norm, relative_rounding(self.dtype) * float(np.sqrt(size)))
        shift = _ops.where(_ops.greater(shift, 0.0), shift, 1.0)
        shifted = _ops.add(products, _ops.mul(basis, shift))
        core = _ops.matmul(shifted, basis, False, True)
        core = _ops.mul(_ops.add(core, _ops.transpose(core, [1, 0])), 0.5)
        factor = _ops.cholesky_factor(core, False)
        half = _ops.matmul(factorisations.inverse(factor), shifted)
        values, left, _ = factorisations.svd(_ops.transpose(half, [1, 0]))
        eigenvalues = _ops.maximum(_ops.sub(_ops.square(values), shift), 0.0)
        return eigenvalues, _ops.cast(_ops.transpose(left, [1, 0]), self.dtype)

    def _preconditioned(self, x: Tensor) -> Tensor:
        """x, where parts along the vectors are divided by how much larger their eigenvalues are than the
        smallest one known."""
        column = _ops.reshape(x, [x.size, 1])
        parts = _ops.matmul(self._vectors, column)
        shares = _ops.reshape(self._shares, list(parts.shape))
        change = _ops.matmul(self._vectors, _ops.mul(parts, shares), True)
        return _ops.add(x, _ops.reshape(change, [x.size]))

    def moved(self, x: Tensor) -> Tensor:
        """J x, [N]."""
        return self.linear.moved(x)

    def least_squares(self, right: Tensor) -> Tensor:
        """(J' J + d I)^-1 J' right, after `iterations` steps."""
        rest = self.linear.back(right)
        # Relative to its largest element: with units, squares and products soon leave float32.
        unit = _ops.reduce_max(_ops.abs(rest), [0], False)
        unit = _ops.where(_ops.greater(unit, 0.0), unit, 1.0)
        rest = _ops.div(rest, unit)
        ahead = self._preconditioned(rest)

        def step(state: list[Tensor], _: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            x, rest, along, size = state
            moved = _ops.add(self._product(along), _ops.mul(along, self._narrow))
            by = share(size, dot(along, moved), self.dtype)
            x = _ops.add(x, _ops.mul(along, by))
            rest = _ops.sub(rest, _ops.mul(moved, by))
            turned = self._preconditioned(rest)
            now = dot(rest, turned)
            along = _ops.add(turned, _ops.mul(along, share(now, size, self.dtype)))
            return [x, rest, along, now], []

        first = [_ops.full([rest.size], 0, self.dtype), rest, ahead, dot(rest, ahead)]
        if self.linear.blocks.processes == 1:
            return _ops.mul(loop(step, first, [], self.iterations)[0][0], unit)
        for _ in range(self.iterations):  # a loop's body cannot talk to other processes
            first, _ = step(first, [])
        return _ops.mul(first[0], unit)

    def direction(self, last: Tensor | None) -> Tensor:
        """Return the s that minimises |J s + r|^2 + d |s - last|^2."""
        if last is None:
            return _ops.neg(self.least_squares(self.residual))
        return _ops.sub(last, self.least_squares(_ops.add(self.residual, self.moved(last))))


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The sum of products, in float64."""
    return _ops.reduce_sum(_ops.mul(wide(a), wide(b)), [0], False)


def share(a: Tensor, b: Tensor, dtype: Any) -> Tensor:
    """a / b in a dtype, 0 where nothing is left."""
    there = _ops.greater(b, 0.0)
    found = _ops.where(there, _ops.div(a, _ops.where(there, b, 1.0)), 0.0)
    return _ops.cast(found, dtype)
