"""NNCG, as DeepXDE calls it: damped Newton steps by conjugate gradients on products with the second
derivatives, preconditioned by what a random sketch shows of their largest eigenvalues (P. Rathore et al.,
ICML 2024; Z. Frangella, J. Tropp, M. Udell, SIAM J. Matrix Anal. Appl. 44, 2023).

The loss's graph and its gradient's are one plan with 32 iterations of conjugate gradients; the sketch's
decomposition, each update_freq steps, is NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import bad_value
from gradcell.deepxde.names import random
from gradcell.deepxde.optimizers import Optimizer
from gradcell.derivatives.differentiating import differentiating
from gradcell.ops.control.loops import loop
from gradcell.solvers.iterative import dot
from gradcell.solvers.jacobian import joined, split
from gradcell.solvers.quasi_newton import FlatLoss

_ITERATIONS = 32


class NNCG(Optimizer):
    """Newton's direction d of (H + mu I) d = g, from that of the step before, and a step against it.

    lr: the first step's length, which "armijo" for line_search_fn halves until the loss falls. rank: the
    sketch's size; a new one is drawn every update_freq steps. cg_tol: conjugate gradients end when the
    residual's norm is at most that, or after cg_max_iters iterations. chunk_size has no effect: products
    are taken one after the other. verbose: prints the eigenvalues found.

    Raises ValueError for another line search.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rank: int = 10,
        mu: float = 1e-4,
        update_freq: int = 20,
        chunk_size: int = 1,
        cg_tol: float = 1e-16,
        cg_max_iters: int = 1000,
        line_search_fn: str | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(params, lr)
        if line_search_fn not in (None, "armijo"):
            bad_value(f'NNCG: the line search is "armijo" or None, got {line_search_fn!r}')
        size = sum(p.size for p in self.parameters)
        self.lr: float = lr
        self.mu: float = mu
        self.rank: int = min(rank, size)
        self.update_freq: int = update_freq
        self.verbose: bool = verbose
        self.tolerance: float = cg_tol
        self.most: int = cg_max_iters
        self.searches: bool = line_search_fn is not None
        self.taken: int = 0
        self._direction = np.zeros(size)
        self._values, self._vectors = np.zeros(self.rank), np.zeros((self.rank, size))

    def minimise(self, loss: Callable[..., Tensor]) -> None:
        """Set the function that steps minimise; they are given its arguments."""
        self._flat = FlatLoss(loss, self.parameters)
        self._products = gc.jit(self._record_products)
        self._begin = gc.jit(self._record_beginning)
        self._go_on = gc.jit(self._record_iterations)

    def step(self, *args: Any) -> float:
        """Takes one step; the loss before it."""
        if self.taken % self.update_freq == 0:
            self._look_at_curvature(args)
        loss, slope, direction = self._solve(args)
        descent = float(direction @ slope)
        if descent <= 0:
            print("Warning: NNCG's direction does not lead downwards.")
        self._move(loss, direction, descent, args)
        self._direction = direction
        self.taken += 1
        return loss

    # The sketch -------------------------------------------------------------------------------------

    def _look_at_curvature(self, args: tuple[Any, ...]) -> None:
        """The largest eigenvalues of H, falling, and their vectors as rows, from `rank` products."""
        size = len(self._direction)
        basis = np.linalg.qr(random().standard_normal((size, self.rank)))[0].T
        rows = self._products(self._tensor(basis), *args).asnumpy().astype(np.float64)
        shift = float(np.finfo(self._numbers).eps * np.linalg.norm(rows)) or 1.0
        rows += shift * basis
        core = rows @ basis.T
        values, turn = np.linalg.eigh((core + core.T) / 2)
        if values[0] <= 0:  # H is not positive there
            values, shift = values - values[0] + shift, shift - values[0]
        half = (turn / np.sqrt(values)).T @ rows
        _, found, self._vectors = np.linalg.svd(half, full_matrices=False)
        self._values = np.maximum(found**2 - shift, 0)
        if self.verbose:
            print(f"NNCG's largest eigenvalues: {self._values}")

    # Newton's direction -----------------------------------------------------------------------------

    def _solve(self, args: tuple[Any, ...]) -> tuple[float, Any, Any]:
        """(The loss, its gradient, the direction)."""
        # Divided by the smallest curvature, directions have the point's unit, not the gradient's.
        least = self._values[-1] + self.mu or 1.0
        shares = ((self._values[-1] + self.mu) / (self._values + self.mu) - 1) / least
        factors = np.append(shares, 1 / least)[:, None]
        curvature = self._tensor(self._vectors), self._tensor(factors)
        loss, slope, *state = self._begin(self._tensor(self._direction), *curvature, *args)
        done = 0
        while True:
            norm = float(ops.norm(state[1]))
            if not norm > self.tolerance or done >= self.most:
                break
            most = Tensor(np.int32(min(self.most - done, _ITERATIONS)))
            *state, made = self._go_on(most, *state, *curvature, *args)
            done += int(made)
        if norm > self.tolerance:
            print(
                f"Warning: NNCG's conjugate gradients ended after {done} iterations with a residual of "
                f"{norm:.1e}, above cg_tol, which is {self.tolerance:.1e}."
            )
        wide = [t.asnumpy().astype(np.float64) for t in (slope, state[0])]
        return float(loss), wide[0], wide[1]

    def _record_products(self, rows: Tensor, *args: Any) -> Tensor:
        """H times each row."""
        with self._derivatives(args) as (_, _, product):
            _, (found,) = loop(lambda s, x: (s, [product(x[0])]), [], [rows], self.rank)
        return found

    def _record_beginning(
        self, x: Tensor, vectors: Tensor, shares: Tensor, *args: Any
    ) -> tuple[Tensor, ...]:
        """The loss, its gradient, and the state of conjugate gradients that begin at x."""
        with self._derivatives(args) as (loss, slope, product):
            rest = slope - product(x) - self.mu * x
        ahead = _preconditioned(rest, vectors, shares)
        return loss, slope, x, rest, ahead, dot(rest, ahead)

    def _record_iterations(
        self,
        most: Tensor,
        x: Tensor,
        rest: Tensor,
        along: Tensor,
        size: Tensor,
        vectors: Tensor,
        shares: Tensor,
        *args: Any,
    ) -> tuple[Tensor, ...]:
        """The state after so many iterations, or fewer where the residual is small enough, and how many."""
        with self._derivatives(args) as (_, _, product):

            def iteration(
                state: list[Tensor], _: list[Tensor]
            ) -> tuple[list[Tensor], list[Tensor]]:
                x, rest, along, size, made = state
                goes_on = ops.logical_and(ops.norm(rest) > self.tolerance, made < most)
                moved = product(along) + self.mu * along
                by = ops.cast(size / dot(along, moved), x.dtype)
                left = rest - by * moved
                ahead = _preconditioned(left, vectors, shares)
                now = dot(left, ahead)
                turned = ahead + ops.cast(now / size, x.dtype) * along
                after = [x + by * along, left, turned, now, made + 1]
                return [
                    ops.where(goes_on, new, old) for new, old in zip(after, state, strict=True)
                ], []

            first = [x, rest, along, size, ops.zeros((), gc.int32)]
            return tuple(loop(iteration, first, [], _ITERATIONS)[0])

    @contextmanager
    def _derivatives(self, args: tuple[Any, ...]) -> Iterator[tuple[Tensor, Tensor, Any]]:
        """(The loss, its gradient as a vector, a function that multiplies one by H), recorded."""
        with differentiating(parameters=self.parameters) as (_, weights):
            loss = self._flat.loss(*args)
            slopes = _core.adjoint([loss], [ops.ones((), loss.dtype)], weights)

            def product(vector: Tensor) -> Tensor:
                return joined(_core.tangent(slopes, weights, split(vector, self.parameters)))

            yield loss, joined(slopes), product

    # The step ---------------------------------------------------------------------------------------

    def _move(self, loss: float, direction: Any, descent: float, args: tuple[Any, ...]) -> None:
        """Move the parameters along the direction, by Armijo's rule if lines are searched."""
        begin, length, number = self._flat.vector, self.lr, self._numbers.type
        while self.searches:
            there = self._tensor(begin - length * direction)
            reached = float(self._flat.evaluate(there, *args)[0])
            # In the loss's own digits: where no shorter step can lower it any more, this ends.
            if not number(reached) > number(loss - 0.1 * length * descent):
                break
            length /= 2
        self._flat.assign(begin - length * direction)

    @property
    def _numbers(self) -> Any:
        return np.dtype(self._flat.dtype.name.lower())

    def _tensor(self, array: Any) -> Tensor:
        return Tensor(array, self._flat.dtype)

    # Between processes ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state that is kept between steps, as arrays by name."""
        return {
            "taken": self.taken,
            "direction": self._direction.copy(),
            "values": self._values.copy(),
            "vectors": self._vectors.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets what is kept. Raises ValueError for the state of another optimiser or other parameters."""
        own = self.state_dict()
        fits = set(own) == set(state) and all(np.shape(own[n]) == np.shape(state[n]) for n in own)
        if not fits:
            bad_value("NNCG: the state is that of another optimizer, rank or network")
        self.taken = int(state["taken"])
        self._direction, self._values, self._vectors = (
            np.asarray(state[n], np.float64) for n in ("direction", "values", "vectors")
        )


def _preconditioned(x: Tensor, vectors: Tensor, shares: Tensor) -> Tensor:
    """x divided by the smallest eigenvalue known, its parts along the vectors by their own. shares: what
    that adds to each part, and last what x is multiplied by."""
    parts = ops.matmul(vectors, ops.reshape(x, (-1, 1)))
    change = ops.matmul(ops.transpose(vectors, (1, 0)), parts * shares[:-1])
    return x * shares[-1] + ops.reshape(change, x.shape)
