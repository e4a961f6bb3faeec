"""Random programs that move, spread, combine and reduce tensors of any shapes, with sizes on both sides of
those of vectors and tiles: values, slopes by finite differences, forward mode, vmap and loops, beside NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

SIZES = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 40, 64, 65, 129)
MOST = 20_000  # elements of a tensor

Arrays = list[Any]
Step = Callable[[Any, Arrays], Any]  # of NumPy or gradcell.numpy, and all tensors so far


def axis_of(rng: np.random.Generator, x: np.ndarray) -> int:
    return int(rng.integers(x.ndim))


def axes_of(rng: np.random.Generator, x: np.ndarray) -> tuple[int, ...]:
    return tuple(sorted(rng.choice(x.ndim, rng.integers(1, x.ndim + 1), replace=False).tolist()))


def step_of(rng: np.random.Generator, known: list[np.ndarray]) -> Step | None:
    """Return a step from one of the tensors, most often the last one; None where what was drawn does not
    fit."""
    i = int(rng.integers(len(known))) if rng.random() < 0.4 else len(known) - 1
    x = known[i]
    kind = int(rng.choice([1, 7, *range(17)]))
    if kind < 4:
        near = [k for k, y in enumerate(known) if fits(x, y)]
        j = int(rng.choice(near))
        return [
            lambda np, v: v[i] + v[j],
            lambda np, v: v[i] * v[j],
            lambda np, v: np.maximum(v[i], v[j]),
            lambda np, v: np.where(v[i] > 0 * v[j], v[i] + 0 * v[j], v[j] + 0 * v[i]),
        ][kind]
    if kind == 4:
        return lambda np, v: np.tanh(v[i])
    if kind == 5:
        return lambda np, v: np.exp(-v[i] * v[i])
    if x.ndim == 0:
        return None
    a, axes, keep = axis_of(rng, x), axes_of(rng, x), bool(rng.random() < 0.6)
    n, few = x.shape[a], int(rng.integers(-3, 4))
    if kind == 6:
        order = tuple(rng.permutation(x.ndim).tolist())
        return lambda np, v: np.transpose(v[i], order)
    if kind == 7:
        return lambda np, v: np.sum(v[i], axes, keepdims=keep)
    if kind == 8:
        return lambda np, v: np.mean(v[i], axes, keepdims=keep)
    if kind == 9:
        return lambda np, v: np.max(v[i], axes, keepdims=keep)
    if kind == 10:
        first = int(rng.integers(n))
        part = (*[slice(None)] * a, slice(first, int(rng.integers(first + 1, n + 1)), 1 + keep))
        return lambda np, v: v[i][part]
    if kind == 11:
        return lambda np, v: np.flip(v[i], a)
    if kind == 12:
        return lambda np, v: np.roll(v[i], few, a)
    if kind == 13 and x.size <= MOST // 2:
        return lambda np, v: np.concatenate([v[i], np.tanh(v[i])], a)
    if kind == 14 and x.size <= MOST // 2:
        width = tuple((abs(few), 2 * keep) if k == a else (0, 0) for k in range(x.ndim))
        return lambda np, v: np.pad(v[i], width)
    if kind == 15 and x.ndim < 5:
        times = int(rng.choice([2, 3, 8, 16]))
        to = (*x.shape[:a], times, *x.shape[a:])
        if times * x.size <= 2 * MOST:
            return lambda np, v: np.broadcast_to(np.expand_dims(v[i], a), to)
    if kind == 16:
        return lambda np, v: np.cumsum(v[i], a)
    return None


def fits(x: np.ndarray, y: np.ndarray) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(x.shape, y.shape)) <= 2 * MOST)
    except ValueError:
        return False


class Program:
    """A few random steps; its results are the last tensor and up to two on the way."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        full = [int(rng.choice(SIZES)) for _ in range(rng.integers(1, 5))]
        while np.prod(full) > MOST:
            full[int(np.argmax(full))] = int(rng.choice([2, 3, 8]))
        shapes = [
            [n if rng.random() < 0.55 else 1 for n in full] for _ in range(rng.integers(1, 4))
        ]
        self.arrays: list[np.ndarray] = [rng.normal(size=s) for s in shapes]
        self.ways: list[np.ndarray] = [rng.normal(size=s) for s in shapes]
        known, self.steps = list(self.arrays), list[Step]()
        for _ in range(rng.integers(2, 9)):
            step = step_of(rng, known)
            if step is not None:
                self.steps.append(step)
                known.append(step(np, known))
        self.results: list[int] = [-1]
        if self.steps:
            self.results += rng.integers(-len(self.steps), 0, rng.integers(3)).tolist()

    def __call__(self, lib: Any, arrays: Any) -> Arrays:
        known = list(arrays)
        for step in self.steps:
            known.append(step(lib, known))
        return [known[k] for k in self.results]

    def steps_of_a_loop(self, lib: Any, arrays: Any) -> tuple[Arrays, Any]:
        """(what is carried on, the last result)"""
        results = self(lib, arrays)
        slope = lib.tanh(sum((r * r).mean() for r in results))
        return [0.9 * x + 0.1 * lib.tanh(x * slope) for x in arrays], results[0]


def check(
    program: Program, theirs: Callable[..., Arrays], ours: Callable[..., Any], near: float
) -> None:
    """Check values, derivatives and batches of a function of tensors that is written twice."""
    arrays, ways = program.arrays, program.ways
    given = [Tensor(a) for a in arrays]
    wanted, doubled = theirs(*arrays), theirs(*(2 * a for a in arrays))
    for got, want in zip(gc.jit(ours)(*given), wanted, strict=True):
        np.testing.assert_allclose(got.asnumpy(), want, rtol=near, atol=near)
    both = gc.jit(gc.vmap(ours))(*(ops.stack([x, 2 * x]) for x in given))
    for got, *want in zip(both, wanted, doubled, strict=True):
        np.testing.assert_allclose(got.asnumpy(), np.stack(want), rtol=near, atol=near)

    def loss(*tensors: Tensor) -> Any:
        return sum((r * r).mean() for r in ours(*tensors))

    def along(step: float) -> float:
        moved = (a + step * w for a, w in zip(arrays, ways, strict=True))
        return float(sum((r * r).mean() for r in theirs(*moved)))

    slopes = gc.jit(gc.grad(lambda t: loss(*t)))(given)
    parts = [s.asnumpy() * w for s, w in zip(slopes, ways, strict=True)]
    size = 1 + sum(np.abs(p).sum() for p in parts)
    found = sum(p.sum() for p in parts)
    tangents = tuple(Tensor(w) for w in ways)
    forward = gc.jit(lambda *t: gc.jvp(loss, t, tangents)[1])(*given)
    assert abs(float(forward) - found) <= 1e-9 * size
    assert abs((along(1e-6) - along(-1e-6)) / 2e-6 - found) <= 1e-5 * size


@pytest.mark.one_in(50)
@pytest.mark.parametrize("seed", range(2000))
def test_random_programs(seed: int) -> None:
    program = Program(seed)
    check(program, lambda *a: program(np, a), lambda *t: program(gc.numpy, t), 1e-9)


@pytest.mark.one_in(50)
@pytest.mark.parametrize("seed", range(1000))
def test_random_loops(seed: int) -> None:
    program = Program(seed)
    count = int(program.rng.integers(1, 6))

    def theirs(*arrays: np.ndarray) -> Arrays:
        carried: Any = arrays
        results = []
        for _ in range(count):
            carried, result = program.steps_of_a_loop(np, carried)
            results.append(result)
        return [*carried, np.stack(results)]

    def ours(*tensors: Tensor) -> Any:
        carried, results = ops.scan(
            lambda c, _: program.steps_of_a_loop(gc.numpy, c), list(tensors), None, length=count
        )
        return [*carried, results]

    check(program, theirs, ours, 1e-8)
