"""Loops whose rows, or whose only row, stay in registers and tiles from step to step, beside NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

#: Features of what is carried.
N = 19


def one(lib, c, w):
    return (lib.tanh(c[0] @ w + c[1]), c[1])


def both(lib, c, w):
    a, b = c
    return lib.tanh(a @ w + b), 0.5 * b - a


def exchanged(lib, c, w):
    return c[1], lib.tanh(c[0] @ w)


def twice(lib, c, w):
    made = lib.tanh((c[0] - c[1]) @ w + 0.1)
    return made, made


def one_read_as_the_other_is_made(lib, c, w):
    a, b = c
    a = lib.tanh(a @ w)
    return a, b + a[:, :1] * b


def spread(lib, c, w):
    a, b = c
    return 0.5 * (a[:, :1] * b) + lib.tanh(a), lib.tanh(b[:, 2:3] - a) + 0 * w[:1]


def moved(lib, c, w):
    a, b = c
    joined = [lib.tanh(b @ w)[:, 3:], a[:, :3]]
    return (lib.cat(joined, 1) if lib is ops else np.concatenate(joined, 1)), a


BODIES = [one, both, exchanged, twice, one_read_as_the_other_is_made, spread, moved]
NEAR = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-12}


def drawn(rows, dtype):
    rng = np.random.default_rng(rows)
    arrays = (rng.normal(size=(rows, N)), rng.normal(size=(rows, N)), rng.normal(size=(N, N)) / 9)
    return [a.astype(dtype) for a in arrays]


def in_numpy(body, steps, a, b, w):
    a, b, w = (x.astype(np.float64) for x in (a, b, w))
    befores, afters = [], []
    for _ in range(steps):
        befores.append(a)
        a, b = body(np, (a, b), w)
        afters.append(b)
    return a, b, np.array(befores), np.array(afters)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("rows", [1, 16, 32, 40, 130])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_what_rows_carry(body, dtype, rows, steps):
    arrays = drawn(rows, dtype)

    @gc.jit
    def last(a, b, w):
        return ops.scan(lambda c, _: (body(ops, c, w), None), (a, b), None, length=steps)[0]

    @gc.jit
    def kept(a, b, w):
        def step(c, _):
            after = body(ops, c, w)
            return after, (c[0], after[1])

        return ops.scan(step, (a, b), None, length=steps)

    wanted = in_numpy(body, steps, *arrays)
    (a, b), (befores, afters) = kept(*map(Tensor, arrays))
    for found in ((*last(*map(Tensor, arrays)), befores, afters), (a, b, befores, afters)):
        for ours, theirs in zip(found, wanted, strict=True):
            assert str(ours.dtype).lower().endswith(dtype)
            scale = max(1, np.abs(theirs).max())
            np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=0, atol=NEAR[dtype] * scale)


@pytest.mark.parametrize("terms", [1, 2, 3, 31, 32, 33, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("rows", [5, 32, 50])
def test_sums_of_products_that_are_not_stored(terms, dtype, rows):
    rng = np.random.default_rng(terms)
    x = rng.integers(-9, 9, (rows, terms)) if dtype == "int32" else rng.normal(size=(rows, terms))
    x = x.astype(dtype)
    y = x[:5, :]

    @gc.jit
    def sums(x, y):
        apart = y[None] - x[:, None]
        return (apart**2).sum(-1), (apart * (apart + 1)).sum(-1), (apart * x[:, :1, None]).sum(1)

    apart = (y[None] - x[:, None]).astype(np.float64)
    wanted = (apart**2).sum(-1), (apart * (apart + 1)).sum(-1), (apart * x[:, :1, None]).sum(1)
    for ours, theirs in zip(sums(Tensor(x), Tensor(y)), wanted, strict=True):
        near = 0 if dtype == "int32" else 1e-6 if dtype == "float32" else 1e-14
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=0, atol=near * max(1, scale))


@pytest.mark.parametrize("width", [1, 7, 8, 16, 17, 40, 300])
@pytest.mark.parametrize("height", [1, 4, 9, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("reduced", ["max", "min", "sum", "prod"])
def test_columns_of_the_only_row(width, height, dtype, reduced):
    rng = np.random.default_rng(width)
    m = rng.integers(-2, 3, (height, width)) + (0 if dtype == "int32" else 0.3)
    m = (m if dtype == "int32" else m / 4).astype(dtype)

    def step(lib, state, m):
        made = getattr((state[None] + m), reduced)(axis=0)
        return (
            lib.tanh(made)
            if dtype != "int32"
            else (made % 5).astype(gc.int32 if lib is ops else np.int32)
        )

    @gc.jit
    def last(state, m):
        return ops.scan(lambda s, _: (step(ops, s, m), None), state, None, length=3)[0]

    state = np.zeros(width, dtype)
    found = last(Tensor(state), Tensor(m)).asnumpy()
    wide = np.int64 if dtype == "int32" else np.float64
    for _ in range(3):
        state = step(np, state.astype(wide), m.astype(wide))
    near = {"float32": 2e-5, "float64": 1e-10, "int32": 0}[dtype]
    np.testing.assert_allclose(found, state, rtol=near, atol=near)


@pytest.mark.parametrize("width", [1, 8, 17, 33])
@pytest.mark.parametrize("height", [1, 3, 16, 17, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_of_columns_with_nan_and_infinity(width, height, dtype):
    x = np.random.default_rng(height * width).normal(size=(height, width)).astype(dtype)
    x[height // 2, ::3], x[0, 1::5], x[-1, 2::5] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(ops.amax(Tensor(x), 0).asnumpy(), x.max(0))
    np.testing.assert_array_equal(ops.amin(Tensor(x), 0).asnumpy(), x.min(0))


@pytest.mark.parametrize(
    "shape", [(1, 40), (3, 1, 40), (17, 1, 5, 16), (2, 2, 2, 2, 2, 40)], ids=str
)
def test_extremes_over_axes_of_one_and_some(shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            np.testing.assert_array_equal(ops.amax(Tensor(x), axes).asnumpy(), x.max(axes))
            np.testing.assert_array_equal(ops.amin(Tensor(x), axes).asnumpy(), x.min(axes))
