"""Random programs under vmap and Jacobians: against loops over examples and directions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from random_programs import Program, decode
from tapes import TOLERANCE, GradcellTape, random_bytes

import gradcell as gc
from gradcell import Tensor

#: Together with the slow ones 2,000; a default run takes the first.
PROGRAMS, BY_DEFAULT = 2000, 200
EXAMPLES = 3


def close(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    scale = float(np.abs(expected).max(initial=1.0))
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * scale)


def small_program(seed: int) -> Program:
    """With inputs of at most 12 elements together, so that Hessians are small."""
    for k in itertools.count():
        program = decode(random_bytes(100_000 * k + seed))
        if sum(int(np.prod(s)) for s in program.shapes) <= 12:
            return program
    raise AssertionError


def examples_of(program: Program) -> list[np.ndarray]:
    """Inputs near the program's own, where it has no kinks; the last is the same for all."""
    rng = np.random.default_rng(program.seed + 7)
    found = []
    for x in program.inputs():
        found.append(x + 1e-6 * rng.uniform(-1, 1, (EXAMPLES, *x.shape)))
    return found


def stacked(results: list[Any]) -> list[np.ndarray]:
    rows = [r if isinstance(r, tuple) else (r,) for r in results]
    return [np.stack([t.asnumpy() for t in column]) for column in zip(*rows, strict=True)]


def check_batches(program: Program) -> None:
    """vmap of the program, vmap of its gradient, the gradient of vmap, some inputs unbatched."""

    def fn(*xs: Tensor) -> Tensor:
        return program(GradcellTape(), *xs)

    batches = examples_of(program)
    count = len(batches)
    shared = count - 1 if count > 1 and program.seed % 2 else None
    in_axes = tuple(None if k == shared else 0 for k in range(count))
    if shared is not None:
        batches[shared] = batches[shared][:1]
    singles = [
        [Tensor(x[0 if k == shared else i]) for k, x in enumerate(batches)] for i in range(EXAMPLES)
    ]
    given = [Tensor(x[0] if k == shared else x) for k, x in enumerate(batches)]
    close(gc.vmap(fn, in_axes)(*given).asnumpy(), np.array([float(fn(*xs)) for xs in singles]))
    positions = tuple(range(count))
    gradient = gc.grad(fn, positions)
    expected = stacked([gradient(*xs) for xs in singles])
    found = gc.vmap(gradient, in_axes)(*given)
    for f, e in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        close(f.asnumpy(), e)
    outer = gc.grad(lambda *xs: gc.vmap(fn, in_axes)(*xs).sum(), positions)(*given)
    for k, f in enumerate(outer if isinstance(outer, tuple) else (outer,)):
        close(f.asnumpy(), expected[k].sum(0) if k == shared else expected[k])


def check_hessian(program: Program) -> None:
    """jacfwd of jacrev, column by column against jvp of the gradient; and under vmap."""
    xs = [Tensor(x) for x in program.inputs()]
    sizes = [int(x.size) for x in xs]
    ends = np.cumsum([0, *sizes])

    def flat(v: Tensor) -> Tensor:
        parts = [v[int(a) : int(b)].reshape(x.shape) for a, b, x in zip(ends, ends[1:], xs)]  # noqa: B905
        return program(GradcellTape(), *parts)

    point = np.concatenate([x.asnumpy().ravel() for x in xs])
    gradient = gc.grad(flat)
    columns = [gc.jvp(gradient, Tensor(point), Tensor(e))[1].asnumpy() for e in np.eye(len(point))]
    expected = np.stack(columns, 1)
    close(gc.jacfwd(gc.jacrev(flat))(Tensor(point)).asnumpy(), expected)
    close(gc.jacrev(gc.jacrev(flat))(Tensor(point)).asnumpy(), expected)
    twice = gc.vmap(gc.hessian(flat))(Tensor(np.stack([point, point])))
    close(twice.asnumpy(), np.stack([expected, expected]))


@pytest.mark.one_in(10)
@pytest.mark.parametrize("block", range(BY_DEFAULT // 20))
def test_batches(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        check_batches(decode(random_bytes(seed)))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("block", range(BY_DEFAULT // 50))
def test_hessians(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        check_hessian(small_program(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(PROGRAMS // 100))
def test_many(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        check_batches(decode(random_bytes(seed)))
        check_hessian(small_program(seed))
