"""Damped least squares without a matrix: conjugate gradients on products with the Jacobian, preconditioned by
what a random sketch of J'J shows of its largest eigenvalues (Z. Frangella, J. Tropp, M. Udell, SIAM J. Matrix
Anal. Appl. 44, 2023: randomized Nystroem preconditioning, algorithms 2.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.ops.control.loops import loop
from gradcell.ops.matrices import factorisations
from gradcell.solvers.jacobian import Blocks

_ops = _core.ops


@contextmanager
def linearised(blocks: Blocks, points: Sequence[tuple[Any, ...]]) -> Iterator[Linear]:
    """The residuals around the parameters as they are, for as long as the context is open."""
    weights: list[Tensor] = []
    try:
        weights += [_core.push_alias(p) for p in blocks.parameters]
        yield Linear(blocks, blocks.vector(points), weights)
    finally:
        _core.dissolve(weights)


class Linear:
    """Products with the Jacobian of the residual vector, none of which makes it."""

    def __init__(self, blocks: Blocks, vector: Tensor, weights: list[Tensor]) -> None:
        self.blocks, self.vector, self.weights = blocks, vector, weights

    def moved(self, x: Tensor) -> Tensor:
        """J x, [N]."""
        return _core.tangent([self.vector], self.weights, self.blocks.split(x))[0]

    def back(self, y: Tensor) -> Tensor:
        """J' y, [P]."""
        found = _core.adjoint([self.vector], [y], self.weights)
        flat = [_ops.reshape(g, [g.size]) for g in found]
        return flat[0] if len(flat) == 1 else _ops.concat(flat, 0)


class IterativeSystem:
    """(J'J + d I) x = J' b by conjugate gradients. sketch: orthonormal rows, [rank, P]."""

    def __init__(
        self, linear: Linear, residual: Tensor, damping: Tensor, sketch: Tensor, iterations: int
    ) -> None:
        self.linear, self.residual, self.iterations = linear, residual, iterations
        self.dtype = residual.dtype
        self.slope = linear.back(residual)
        values, self._vectors = self._sketched(sketch)
        rank = sketch.shape[0]
        largest = _ops.reshape(_ops.slice(values, [0], [1], [1]), [])
        smallest = _ops.reshape(_ops.slice(values, [rank - 1], [1], [1]), [])
        epsilon = float(np.finfo(np.dtype(self.dtype.name.lower())).eps)
        begun = _ops.where(_ops.greater(damping, 0.0), damping, _ops.mul(largest, 1e-3))
        least = _ops.maximum(_ops.mul(largest, 16 * epsilon), 1e-300)
        self.damping = _ops.maximum(begun, least)
        self._narrow = _ops.cast(self.damping, self.dtype)
        kept = _ops.div(_ops.add(smallest, self.damping), _ops.add(values, self.damping))
        self._shares = _ops.cast(_ops.sub(kept, 1.0), self.dtype)

    def _product(self, x: Tensor) -> Tensor:
        """J' J x."""
        return self.linear.back(self.linear.moved(x))

    def _sketched(self, sketch: Tensor) -> tuple[Tensor, Tensor]:
        """(The largest eigenvalues of J'J, falling, in float64; their vectors as rows [rank, P])."""
        rank, size = sketch.shape
        _, (rows,) = loop(lambda s, x: (s, [self._product(x[0])]), [], [sketch], rank)
        wide, basis = _ops.cast(rows, _core.float64), _ops.cast(sketch, _core.float64)
        norm = _ops.sqrt(_ops.reduce_sum(_ops.square(wide), [0, 1], False))
        epsilon = float(np.finfo(np.dtype(self.dtype.name.lower())).eps)
        shift = _ops.maximum(_ops.mul(norm, epsilon * float(np.sqrt(size))), 1e-300)
        shifted = _ops.add(wide, _ops.mul(basis, shift))
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
        ahead = self._preconditioned(rest)

        def step(state: list[Tensor], _: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            x, rest, along, size = state
            moved = _ops.add(self._product(along), _ops.mul(along, self._narrow))
            by = _share(size, _dot(along, moved))
            x = _ops.add(x, _ops.mul(along, by))
            rest = _ops.sub(rest, _ops.mul(moved, by))
            turned = self._preconditioned(rest)
            now = _dot(rest, turned)
            return [x, rest, _ops.add(turned, _ops.mul(along, _share(now, size))), now], []

        first = [_ops.full([rest.size], 0, self.dtype), rest, ahead, _dot(rest, ahead)]
        return loop(step, first, [], self.iterations)[0][0]

    def direction(self, last: Tensor | None) -> Tensor:
        """What minimises |J s + r|^2 + d |s - last|^2."""
        if last is None:
            return _ops.neg(self.least_squares(self.residual))
        return _ops.sub(last, self.least_squares(_ops.add(self.residual, self.moved(last))))


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return _ops.reduce_sum(_ops.mul(a, b), [0], False)


def _share(a: Tensor, b: Tensor) -> Tensor:
    """a / b, 0 where nothing is left."""
    there = _ops.greater(b, 0.0)
    return _ops.where(there, _ops.div(a, _ops.where(there, b, 1.0)), 0.0)
