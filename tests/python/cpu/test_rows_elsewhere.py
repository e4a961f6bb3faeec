"""Broadcasts along any axis, and parts of axes: rows are read where they lie, not copied."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

RNG = np.random.default_rng(12)
SHAPES = [
    (5, 7, 2),
    (5, 37, 3),
    (3, 130, 16),
    (1, 40, 5),
    (40, 1, 5),
    (9, 33, 64),
    (4, 70, 100),
    (6, 20, 300),
]


def near(dtype):
    return {np.float16: 2e-2, np.float32: 1e-5, np.float64: 1e-12}.get(dtype, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_pairs(shape, dtype):
    n, m, k = shape
    a, b = (RNG.integers(-4, 5, s).astype(dtype) for s in ((n, k), (m, k)))

    def apart(x, y):
        return ((x[:, None] - y) * y).sum(-1), ops.amax(x[:, None] * y, -1), ops.abs(x[:, None] - y)

    found = gc.jit(apart)(Tensor(a), Tensor(b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    wanted = ((a[:, None] - b) * b).sum(-1), (a[:, None] * b).max(-1), abs(a[:, None] - b)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=near(dtype), atol=40 * near(dtype))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_parts_and_middle_axes(shape):
    n, m, k = shape
    a, b, c = RNG.normal(size=(n + 3, 2, m, k)), RNG.normal(size=(n, m, k)), RNG.normal(size=(m, k))

    def f(x, y, z):
        part = x[2 : n + 2, 1]
        return ops.tanh(part * y + z).sum(-1), part[::-1] + z, (y[:, ::-1] - z) * part

    found = gc.jit(f)(Tensor(a), Tensor(b), Tensor(c))
    part = a[2 : n + 2, 1]
    wanted = np.tanh(part * b + c).sum(-1), part[::-1] + c, (b[:, ::-1] - c) * part
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("shape", [(5, 7, 3), (4, 33, 70)], ids=str)
def test_gradients(shape):
    n, m, k = shape
    a, b = RNG.normal(size=(n, k)), RNG.normal(size=(m, k))
    of_a, of_b = gc.grad(lambda x, y: ops.exp(-((x[:, None] - y) ** 2).sum(-1) / k).sum(), (0, 1))(
        Tensor(a), Tensor(b)
    )
    apart = a[:, None] - b
    slope = -2 / k * apart * np.exp(-(apart**2).sum(-1) / k)[..., None]
    np.testing.assert_allclose(of_a.asnumpy(), slope.sum(1), atol=1e-12)
    np.testing.assert_allclose(of_b.asnumpy(), -slope.sum(0), atol=1e-12)


@pytest.mark.parametrize("k", [2, 16, 100])
def test_nothing_is_copied(k):
    x, y = Tensor(np.ones((50, k), np.float32)), Tensor(np.ones((300, k), np.float32))
    for f in (
        lambda x, y: ops.tanh(x[:, None] * y).sum(-1),
        lambda x, y: ops.sqrt(((x[:, None] - y) ** 2).sum(-1) + 1e-9),
    ):
        text = gc.plan_text(f, x, y)
        assert text.count("region") == 1 and "call" not in text and "arena 0 bytes" in text
        assert (
            f"x{k} view [50, 300] by [{k}, 0]" in text
            and f"x{k} view [50, 300] by [0, {k}]" in text
        )


def test_what_is_spread_over_rows_and_features_is_not_copied():
    """The Jacobian of a network of one layer is one region, which reads all tensors where they lie."""

    def f(t, x, c, p):
        return (t[:, None] * x[:, None] * c * p).sum(-1)

    arrays = [RNG.normal(size=s) for s in ((50, 25), (200,), (200, 25), (25,))]
    given = [Tensor(a) for a in arrays]
    text = gc.plan_text(f, *given)
    assert text.count("region") == 1 and "call" not in text and "arena 0 bytes" in text
    t, x, c, p = arrays
    np.testing.assert_allclose(f(*given).asnumpy(), np.einsum("ij,k,kj,j->ik", t, x, c, p))


PRODUCTS = {
    "rows of two": ("(x[:, None] * y).sum(-1)", (50, 16), (70, 16)),
    "the other first": ("(x * y[:, None]).sum(-1)", (50, 16), (70, 16)),
    "columns of two": ("(x[:, :, None] * y[:, None]).sum(0)", (50, 16), (50, 20)),
    "a batch": ("(x[:, :, None] * y[:, None]).sum(-1)", (5, 30, 16), (5, 20, 16)),
    "two axes of rows": ("(x[:, :, None] * y).sum((-1,))", (5, 30, 16), (20, 16)),
    "two summed": ("(x[:, :, :, None] * y[:, :, None]).sum((0, 1))", (5, 30, 16), (5, 30, 20)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_of_products_are_products_of_matrices(name):
    text, *shapes = PRODUCTS[name]
    f = eval(f"lambda x, y: {text}")
    a, b = (RNG.normal(size=s) for s in shapes)
    x, y = Tensor(a), Tensor(b)
    plan = gc.plan_text(f, x, y)
    assert "matmul" in plan or "MatMul" in plan or "weight_grad" in plan, plan
    np.testing.assert_allclose(gc.jit(f)(x, y).asnumpy(), f(a, b), atol=1e-12)
    # f is linear in each: by directions u and v the second derivative of its sum of squares / 2
    # is f(u, y) f(x, v) + f(u, v) f(x, y).
    u, v = (RNG.normal(size=s) for s in shapes)
    slope = gc.grad(lambda x, y: (ops.square(f(x, y)) / 2).sum())
    second = gc.jvp(lambda y: slope(x, y), (y,), (Tensor(v),))[1]
    wanted = (f(u, b) * f(a, v) + f(u, v) * f(a, b)).sum()
    np.testing.assert_allclose((second.asnumpy() * u).sum(), wanted, rtol=1e-10)
