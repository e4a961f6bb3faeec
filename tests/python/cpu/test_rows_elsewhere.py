"""Broadcasts along any axis, and parts of axes: rows are read where they lie, not copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


@pytest.mark.parametrize("n", [5, 32, 80])
def test_forces_between_pairs_are_one_region(n: int) -> None:
    """Rows are one point of each pair, sums over the other points are sums of features."""
    a, b = RNG.normal(size=(n, 3)), RNG.random(n)

    def f(lib: Any, x: Any, m: Any) -> Any:
        apart = x[None] - x[:, None]
        far = (apart * apart).sum(-1) + 0.01
        return ((m / (far * lib.sqrt(far)))[:, :, None] * apart).sum(1)

    x, m = Tensor(a), Tensor(b)
    text = gc.plan_text(lambda x, m: f(ops, x, m), x, m)
    assert text.count("region") == 1 and "call" not in text and "arena 0 bytes" in text
    np.testing.assert_allclose(f(ops, x, m).asnumpy(), f(np, a, b), rtol=1e-10, atol=1e-10)
    doubled = gc.jit(gc.vmap(lambda x: f(ops, x, m)))(ops.stack([x, 2 * x])).asnumpy()
    np.testing.assert_allclose(doubled, [f(np, a, b), f(np, 2 * a, b)], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rows", [3, 16, 17, 33, 130])
@pytest.mark.parametrize("period", [1, 2, 8, 16, 64])
def test_rows_that_come_again_in_a_last_tile_of_fewer_rows(rows: int, period: int) -> None:
    a, b = RNG.normal(size=(rows, period, 1)), RNG.normal(size=(1, period, 3))
    found, total = gc.jit(lambda x, y: ((x * y).sum(-1), (x * y).sum((0, 1, 2))))(
        Tensor(a), Tensor(b)
    )
    np.testing.assert_allclose(found.asnumpy(), (a * b).sum(-1), atol=1e-12)
    np.testing.assert_allclose(total.asnumpy(), (a * b).sum(), rtol=1e-9)


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


def any_sum(rng: np.random.Generator) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """Return sums over any axes of tensors that are spread over any axes, as a function of (what computes,
    tensors), and the tensors."""
    full = [int(rng.choice([1, 2, 3, 5, 8, 17, 40])) for _ in range(rng.integers(2, 6))]
    while np.prod(full) > 1e5:
        full[int(np.argmax(full))] = 2
    arrays = [rng.normal(size=[n if rng.random() < 0.55 else 1 for n in full]) for _ in range(3)]
    chosen = rng.choice(len(full), rng.integers(1, len(full) + 1), replace=False)
    axes = tuple(sorted(int(a) for a in chosen))
    kind = rng.integers(5)

    def f(lib: Any, x: Any, y: Any, z: Any) -> list[Any]:
        if kind == 0:
            return [(x * y).sum(axes)]
        if kind == 1:
            return [(x * y + z * y).sum(axes)]
        if kind == 2:
            return [(x * y * z).sum(axes)]
        if kind == 3:
            return [lib.tanh((x * y).sum(axes)), (x * y).sum(axes)]
        return [(lib.tanh(x) * y).sum(axes)]

    return f, arrays


@pytest.mark.one_in(10)
@pytest.mark.parametrize("seed", range(200))
def test_sums_of_what_is_spread(seed: int) -> None:
    rng = np.random.default_rng(seed)
    f, arrays = any_sum(rng)
    x, y, z = (Tensor(a) for a in arrays)
    wanted = f(np, *arrays)
    for got, want in zip(gc.jit(lambda *t: f(ops, *t))(x, y, z), wanted, strict=True):
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-9, atol=1e-9)
    doubled = f(np, 2 * arrays[0], *arrays[1:])
    both = gc.jit(gc.vmap(lambda x: f(ops, x, y, z)))(ops.stack([x, 2 * x]))
    for got, *want in zip(both, wanted, doubled, strict=True):
        np.testing.assert_allclose(got.asnumpy(), np.stack(want), rtol=1e-9, atol=1e-9)
    slopes = gc.jit(gc.grad(lambda *t: sum(ops.square(r).sum() for r in f(ops, *t)), (0, 1, 2)))
    ways = [rng.normal(size=a.shape) for a in arrays]

    def along(step: float) -> float:
        return sum(
            (r * r).sum() for r in f(np, *(a + step * w for a, w in zip(arrays, ways, strict=True)))
        )

    parts = [s.asnumpy() * w for s, w in zip(slopes(x, y, z), ways, strict=True)]
    size = sum(np.abs(p).sum() for p in parts)
    np.testing.assert_allclose(
        sum(p.sum() for p in parts), (along(1e-5) - along(-1e-5)) / 2e-5, atol=1e-5 * size + 1e-12
    )
