"""Loops whose bodies move elements about: all of a step is one row of each tensor, in one region."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

STEPS = 7


def springs(x, v, k):
    """A chain of masses after a few steps."""

    def step(c, _):
        x, v = c
        force = k * (x[1:] - x[:-1])
        v = v + 0.01 * (ops.pad(force, (0, 1)) - ops.pad(force, (1, 0)))
        return (x + 0.01 * v, v), None

    (x, v), _ = ops.scan(step, (x, v), None, length=STEPS)
    return x, v


def chain(n, dtype=np.float64):
    rng = np.random.default_rng(n)
    return (
        rng.normal(size=n).astype(dtype),
        np.zeros(n, dtype),
        rng.uniform(1, 2, n - 1).astype(dtype),
    )


def agree(found, wanted):
    for ours, theirs in zip(found, wanted, strict=True):
        near = 1e-6 if ours.dtype == gc.float32 else 1e-14
        np.testing.assert_allclose(
            ours.asnumpy(), theirs, atol=near * np.abs(theirs).max(), rtol=near
        )


def in_numpy(x, v, k):
    x, v, k = (a.astype(np.float64) for a in (x, v, k))
    for _ in range(STEPS):
        force = k * (x[1:] - x[:-1])
        v = v + 0.01 * (np.append(force, 0) - np.append(0, force))
        x = x + 0.01 * v
    return x, v


@pytest.mark.parametrize("n", [2, 3, 16, 17, 64, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(n, dtype):
    arrays = chain(n, dtype)
    found = gc.jit(springs)(*map(Tensor, arrays))
    agree(found, in_numpy(*arrays))


@pytest.mark.parametrize("n", [3, 16, 70])
def test_gradients_are_slopes(n):
    arrays, h = chain(n), 1e-4
    gradient = gc.grad(lambda *a: (springs(*a)[0] ** 2).sum(), (0, 1, 2))(*map(Tensor, arrays))
    rng = np.random.default_rng(1)
    for i, (x, g) in enumerate(zip(arrays, gradient, strict=True)):
        along = rng.normal(size=x.shape)
        ends = []
        for side in (h, -h):
            moved = (a + side * along if j == i else a for j, a in enumerate(arrays))
            ends.append((in_numpy(*moved)[0] ** 2).sum())
        np.testing.assert_allclose(
            (g.asnumpy() * along).sum(), (ends[0] - ends[1]) / (2 * h), rtol=1e-6
        )


def bodies(text):
    """The plans within a plan's text: regions' rows and calls of each."""
    found = []
    for part in text.split("    plan: ")[1:]:
        lines = [line.strip() for line in part.split("\n") if line.startswith("      ")]
        found.append(
            [" ".join(line.split()[:2]) for line in lines if line.startswith(("region", "call"))]
        )
    return found


def test_a_step_is_one_region():
    inputs = [Tensor(a) for a in chain(64)]
    assert bodies(gc.plan_text(springs, *inputs)) == [["region rows=1"]]
    gradient = gc.grad(lambda *a: springs(*a)[0].sum(), (0, 1, 2))
    assert bodies(gc.plan_text(gradient, *inputs)) == [["region rows=1"]] * 2


def test_what_is_placed_negated_is_taken_away():
    def f(x):
        return ((x[1:] - x[:-1]) ** 3).sum()

    x = np.random.default_rng(5).normal(size=9)
    assert "Neg" not in gc.graph_text(gc.grad(f), Tensor(x))
    apart = 3 * np.diff(x) ** 2
    agree([gc.grad(f)(Tensor(x))], [np.append(0, apart) - np.append(apart, 0)])


def test_rows_that_never_meet_stay_rows():
    def layer(x, w):
        return ops.scan(lambda c, _: (ops.tanh(c @ w), None), x, None, length=STEPS)[0]

    text = gc.plan_text(layer, Tensor(np.ones((64, 8))), Tensor(np.ones((8, 8))))
    assert bodies(text) == [["region rows=64"]]


def test_long_tensors_have_rows():
    text = gc.plan_text(springs, *[Tensor(a) for a in chain(5000)])
    assert all("rows=1" not in step for step in bodies(text)[0])


def ending_at_a_page(array):
    """The array behind which no memory can be read."""
    page = mmap.PAGESIZE
    pages = mmap.mmap(-1, 2 * page)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(begin + page), page, 0) == 0
    placed = np.frombuffer(pages, array.dtype, array.size, page - array.nbytes)
    placed[...] = array
    return placed


@pytest.mark.parametrize("n", [16, 63, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_behind_an_input_is_read(n, dtype):
    arrays = chain(n, dtype)
    found = springs(*[Tensor.from_numpy(ending_at_a_page(a)) for a in arrays])
    agree(found, in_numpy(*arrays))


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 6, 7, 20])
@pytest.mark.parametrize("reverse", [False, True])
def test_places_of_every_step(steps, reverse):
    """What is carried, kept and read by steps lies elsewhere in each."""
    xs = np.random.default_rng(2).normal(size=(steps, 5))

    def body(c, x):
        a, b = c
        return (ops.roll(b, 1, 0) + x, a * 0.5), (a, b - x, c[0])

    found = gc.jit(lambda a, b, xs: ops.scan(body, (a, b), xs, reverse=reverse))(
        Tensor(np.ones(5)), Tensor(np.arange(5.0)), Tensor(xs)
    )
    a, b, kept = np.ones(5), np.arange(5.0), [None] * steps
    for t in range(steps)[:: -1 if reverse else 1]:
        kept[t] = a, b - xs[t], a
        a, b = np.roll(b, 1) + xs[t], a * 0.5
    agree(found[0], (a, b))
    agree(found[1], [np.stack(of) for of in zip(*kept, strict=True)])


#: Moves of a matrix and a vector, and a new matrix of them, as NumPy and gradcell.numpy write it.
MOVES = {
    "rolls along both axes": lambda np, x, r: (
        np.roll(x, 1, 0) + np.roll(x, -1, 1) - np.roll(x, (2, 1), (0, 1)) * x
    ),
    "parts of a roll": lambda np, x, r: np.roll(x, 3, 1)[:, ::-1] - np.roll(x, 2, 0)[::-1],
    "zeros around in many ways": lambda np, x, r: (
        np.pad(np.tanh(x)[1:], ((0, 1), (0, 0)))
        - np.pad(np.tanh(x)[1:], ((1, 0), (0, 0)))
        + np.pad(np.sin(x)[:, 1:], ((0, 0), (1, 0)))
    ),
    "zeros around one value": lambda np, x, r: (
        np.pad((r * r)[:-2], (1, 1)) + np.pad((r * r)[:-2], (0, 2)) * x
    ),
    "a part of what has zeros around it": lambda np, x, r: (
        np.pad(r * 2, (3, 2))[1:-4] + np.pad(r * 2, (3, 2))[-1 - len(r) : -1] + x
    ),
    "columns and rows": lambda np, x, r: np.tanh(x + r[:, None]) - r * np.maximum(r[:, None], x),
    "chains of rows": lambda np, x, r: (r + 0 * x) * x - (r + 0 * x) + np.tanh(r)[:, None] * x,
    "sums of what is turned round": lambda np, x, r: (
        x * 0.1 + np.tanh((np.maximum(r[:, None], x)[::-1] ** 2).mean())
    ),
    "choices by rows": lambda np, x, r: np.where(r[:, None] > x, np.sin(r), r[:, None] * x),
    "both ends": lambda np, x, r: np.concatenate([x[1:], x[:1] * r]) - np.stack([r] * len(r)),
}


@pytest.mark.parametrize("n", [3, 16, 17, 32])
@pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)
def test_moves_of_a_row(moves, n):
    rng = np.random.default_rng(n)
    x, r = rng.normal(size=(n, n)), rng.normal(size=n)
    across_x, across_r = rng.normal(size=(n, n)), rng.normal(size=n)

    def step(np, x, r):
        moved = moves(np, x, r)
        return 0.5 * np.sin(moved) + 0.1 * x, 0.5 * r + np.cos(moved).mean(0)

    def ours(x, r):
        return ops.scan(lambda c, _: (step(gc.numpy, *c), c[0][1]), (x, r), None, length=3)

    def theirs(x, r):
        rows = []
        for _ in range(3):
            rows.append(x[1])
            x, r = step(np, x, r)
        return x, r, np.stack(rows)

    given = Tensor(x), Tensor(r)
    (last, row), rows = gc.jit(ours)(*given)
    agree((last, row, rows), theirs(x, r))

    h = 1e-5
    ends = [theirs(x + s * across_x, r + s * across_r) for s in (h, -h)]
    slopes = [(a - b) / (2 * h) for a, b in zip(*ends, strict=True)]
    found = gc.jvp(ours, given, (Tensor(across_x), Tensor(across_r)))[1]
    for got, want in zip((*found[0], found[1]), slopes, strict=True):
        np.testing.assert_allclose(got.asnumpy(), want, atol=1e-6 * max(1, np.abs(want).max()))
    total = gc.grad(lambda x, r: sum((y * y).sum() for y in gc.tree.leaves(ours(x, r))), (0, 1))
    wanted = sum((2 * y * s).sum() for y, s in zip(theirs(x, r), slopes, strict=True))
    by_x, by_r = total(*given)
    along = (by_x.asnumpy() * across_x).sum() + (by_r.asnumpy() * across_r).sum()
    np.testing.assert_allclose(along, wanted, rtol=1e-5)
