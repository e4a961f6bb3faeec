"""gradcell's solvers as optimisers that model.compile takes by their names: Gauss-Newton steps for the
residuals whose mean squares DeepXDE's losses are, and quasi-Newton methods for their sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import unsupported
from gradcell.deepxde.optimizers import Optimizer
from gradcell.derivatives.batching import over_examples
from gradcell.derivatives.differentiating import differentiating
from gradcell.solvers.jacobian import Blocks, joined, split

#: The names that model.compile takes besides DeepXDE's.
SOLVERS = ("Gauss-Newton", "SSBroyden", "SSBFGS", "BFGS")

#: The most parameters for which Gauss-Newton steps factor a matrix.
_DENSE = 3000


class Solver(Optimizer):
    """A solver that takes a step in each iteration of model.train.

    What it has found out of the curvature is not among what model.save keeps. Raises an error for losses
    that are not mean squares, which Gauss-Newton steps need, and what the solver itself raises.
    """

    def __init__(self, name: str, params: Any) -> None:
        super().__init__(params)
        self.name: str = name
        self._solver: Any = None
        self._ended: tuple[Any, ...] = ()

    def minimise(self, program: Any) -> None:
        """Set the model's program, whose losses the steps minimise."""
        self.program: Any = program
        self._solver, self._ended = None, ()

    def step(self, *args: Any) -> None:
        """Takes one step; none where the last one with the same arguments was the end, which is printed."""
        if len(args) == len(self._ended) and all(map(_same, args, self._ended)):
            return
        if self.name == "Gauss-Newton":
            self._solver = self._solver or self._gauss_newton(args)
            state = self._solver.step(*args)
        else:
            if self._solver is None:
                self._solver = getattr(gc, self.name)(self.program.total, self.parameters, *args)
            state = self._solver.run(1, *args)
        self._ended = args if state.finished else ()
        if state.finished:
            print(f"{self.name} has ended: {state.message}.")

    def _gauss_newton(self, args: tuple[Any, ...]) -> Any:
        blocks = ModelBlocks(self.program, self.parameters)

        @gc.jit
        def both(*args: Any) -> tuple[Tensor, Tensor]:
            return self.program.total(*args), ops.square(blocks.residuals(*args)).mean()

        total, mean = map(float, both(*args))
        if not abs(total - mean) <= 1e-4 * abs(total):
            unsupported(
                "Gauss-Newton minimises mean squares of residuals, but this model's loss is "
                f"{total:.6g} and the mean squares are {mean:.6g}: compile with loss='MSE', without "
                "regularization, and where data averages several losses take SSBroyden"
            )
        dense = blocks.size <= _DENSE and blocks.starts(blocks.given(args)[0]) is not None
        how: dict[str, Any] = {} if dense else {"method": "cg", "rank": 60, "iterations": 60}
        solver = gc.GaussNewton(blocks.residuals, self.parameters, **how)
        solver.blocks = blocks
        return solver


class ModelBlocks(Blocks):
    """A model's errors as residuals whose mean square is the loss, and their Jacobian, where each depends on
    the outputs at one point: with weights of its own for each point, the sum of all errors of a kind has the
    rows as its gradient.

    Rows begin at a point that depends on the kind (`starts`), as DeepXDE puts boundary points first.
    """

    def __init__(self, program: Any, parameters: Sequence[Any]) -> None:
        super().__init__("Gauss-Newton", self.residuals, parameters, None)
        self.program: Any = program
        inside = {id(p) for p in program.model.net.parameters()}
        self.inner: list[Any] = [p for p in self.parameters if id(p) in inside]
        self.others: list[Any] = [p for p in self.parameters if id(p) not in inside]
        self._starts: dict[Any, list[int] | None] = {}

    def _errors(self, leaves: tuple[Tensor, ...], net: Any = None) -> list[Tensor]:
        """Each kind's errors [n, k], times the roots of weight over count."""
        program = self.program
        _, found = program.errors(
            program.model.data.losses_train, lambda target, out: out - target, leaves, net
        )
        weights = program.model.loss_weights
        weights = [1.0] * len(found) if weights is None else weights
        return [
            ops.reshape(f, (f.shape[0] if f.ndim else 1, -1)) * float(np.sqrt(w / f.size))
            for f, w in zip(found, weights, strict=True)
        ]

    def residuals(self, number: int, *leaves: Tensor) -> Tensor:
        """Return all errors, recorded, scaled so that their mean square is the loss."""
        found = ops.concat([ops.reshape(f, (-1,)) for f in self._errors(leaves)], 0)
        return found * float(np.sqrt(found.size))

    def rows_apart(self, points: Any) -> Any:
        """Return where the rows of each kind of error begin."""
        found = self.starts(points[0])
        if found is None:
            unsupported("Gauss-Newton: errors at new points depend on several points each")
        return found

    def jacobian(self, points: Any, apart: Any) -> list[Tensor]:
        """d vector / d parameters, [N, size], by kinds of error."""
        rows, counts, columns = self._gradients(points[0])
        parts, at = [], 0
        for start, of_kind, count in zip(apart, rows, counts, strict=True):
            # [count, k, P]: the gradient of each component at each of its points
            whole = ops.stack([r[start : start + count] for r in of_kind], 1)
            whole = ops.reshape(whole, (count * len(of_kind), -1))
            mine = [c[at : at + whole.shape[0]] for c in columns]
            parts.append(ops.concat([whole, *mine], 1) if mine else whole)
            at += whole.shape[0]
        return parts

    def _gradients(self, args: Any) -> tuple[list[list[Tensor]], list[int], list[Tensor]]:
        """(For each kind and component of errors their gradient by each point's own weights, [points, P];
        how many points they are at; columns of the Jacobian for the other parameters)."""
        size = sum(p.size for p in self.inner)

        def apart(x: Tensor) -> Tensor:
            def one(example: list[Tensor]) -> list[Tensor]:
                before = [ops.add(p, 0.0) for p in self.inner]
                for p, own in zip(self.inner, split(example[1], self.inner), strict=True):
                    p.set_data(own)
                out = self.program.model.net(example[0])
                for p, old in zip(self.inner, before, strict=True):
                    p.set_data(old)
                return [out]

            each = ops.reshape(x, (x.shape[0], 1, x.shape[1]))
            weights = ops.broadcast_to(own[0], (x.shape[0], size))
            out = over_examples(one, [each, weights])[0]
            return ops.reshape(out, (x.shape[0], -1))

        count = next(a.shape[0] for a in args if isinstance(a, Tensor))
        start = ops.broadcast_to(ops.reshape(joined(self.inner), (1, size)), (count, size))
        with differentiating((start,), self.others) as (own, variables):
            found = self._errors(args[1:], apart)
            rows = [
                [
                    _core.adjoint([ops.sum(f[:, k])], [Tensor(1.0, self.dtype)], variables[:1])[0]
                    for k in range(f.shape[1])
                ]
                for f in found
            ]
            vector = ops.concat([ops.reshape(f, (-1,)) for f in found], 0)
            columns = []
            for k, p in enumerate(self.others):
                for unit in np.eye(p.size):
                    along = [ops.zeros_like(v) for v in variables[1:]]
                    along[k] = Tensor(unit.reshape(p.shape), self.dtype)
                    moved = _core.tangent([vector], variables[1:], along)[0]
                    columns.append(ops.reshape(moved, (-1, 1)))
            return rows, [f.shape[0] for f in found], columns

    def starts(self, args: tuple[Any, ...]) -> list[int] | None:
        """Return the first point of each kind of error; None where an error depends on several points."""
        key = tuple(getattr(a, "shape", a) for a in args)
        if key not in self._starts:
            self._starts[key] = self._find(args)
        return self._starts[key]

    def _find(self, args: tuple[Any, ...]) -> list[int] | None:
        inputs = [a for a in args if isinstance(a, Tensor)]
        ordered = [*self.inner, *self.others]
        if isinstance(self.program.model.train_state.X_train, tuple) or inputs[0].ndim != 2:
            return None
        if any(a is not b for a, b in zip(ordered, self.parameters, strict=True)):
            return None
        counts: list[int] = []

        def sizes(args: Any) -> list[Tensor]:
            rows, found, _ = self._gradients(args)
            counts.extend(found)
            return [ops.reduce_max(ops.abs(ops.concat(of_kind, 1)), 1) for of_kind in rows]

        felt = [t.asnumpy() > 0 for t in gc.jit(sizes)(args)]
        starts = [int(np.argmax(f)) for f in felt]
        for f, start, count in zip(felt, starts, counts, strict=True):
            if f[:start].any() or f[start + count :].any() or start + count > len(f):
                return None
        random = np.random.default_rng(0).standard_normal(self.size)

        @gc.jit
        def both(direction: Tensor, args: Any) -> tuple[Tensor, Tensor]:
            whole = ops.concat(self.jacobian((args,), starts), 0)
            with differentiating((), self.parameters) as (_, weights):
                moved = _core.tangent([self.vector((args,))], weights, self.split(direction))[0]
            return ops.reshape(ops.matmul(whole, ops.reshape(direction, (-1, 1))), (-1,)), moved

        mine, true = (t.asnumpy() for t in both(Tensor(random, self.dtype), args))
        digits = 1e-3 if true.dtype == np.float32 else 1e-8
        return starts if np.allclose(mine, true, digits, digits * np.abs(true).max()) else None


def _same(a: Any, b: Any) -> bool:
    return a is b or (not isinstance(a, Tensor) and a == b)
