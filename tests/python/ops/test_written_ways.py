"""How a derivative is written does not matter: the same numbers, and as few products.

The loss of a small physics-informed network by nested grad, by Jacobians of sums over the batch with
columns picked by number, by vmap of jacfwd of grad, and by jvp.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import ParameterTuple, Tensor, nn, ops

POINTS = 40


class Network(nn.Cell):
    """tanh with skips, as such networks have."""

    def __init__(self) -> None:
        super().__init__()
        wide = {"dtype": gc.float64}
        self.first, self.last = nn.Dense(2, 16, **wide), nn.Dense(16, 1, **wide)
        self.between = nn.CellList([nn.Dense(16, 16, **wide) for _ in range(4)])

    def construct(self, x: Tensor) -> Tensor:
        h = ops.tanh(self.first(x))
        for layer in self.between:
            h = h + ops.tanh(layer(h))
        return self.last(h)


def network() -> nn.Cell:
    gc.set_seed(7)
    return Network()


def nested(net: Any, x: Tensor) -> tuple[Tensor, ...]:
    slope = gc.grad(lambda x: ops.sum(net(x)))
    g = slope(x)
    return g[:, 0:1], g[:, 1:2], gc.grad(lambda x: ops.sum(slope(x)[:, 0:1]))(x)[:, 0:1]


def jacobians(net: Any, x: Tensor) -> tuple[Tensor, ...]:
    jacobian = gc.jacrev(lambda x: ops.sum(net(x), 0))
    hessian = gc.jacrev(lambda x: ops.sum(jacobian(x), 1))
    j, h = jacobian(x), hessian(x)
    return j[0, :, 0:1], j[0, :, 1:2], h[0, 0, :, 0:1]


def each_point(net: Any, x: Tensor) -> tuple[Tensor, ...]:
    def u(p: Tensor) -> Tensor:
        return net(p)[0]

    g, h = gc.vmap(gc.grad(u))(x), gc.vmap(gc.jacfwd(gc.grad(u)))(x)
    return g[:, 0:1], g[:, 1:2], h[:, 0, 0:1]


def directions(net: Any, x: Tensor) -> tuple[Tensor, ...]:
    ones = np.ones((x.shape[0], 1))
    e_x, e_t = Tensor(ones * [1.0, 0.0]), Tensor(ones * [0.0, 1.0])
    u_x, u_xx = gc.jvp(lambda x: gc.jvp(net, x, e_x)[1], x, e_x)
    return u_x, gc.jvp(net, x, e_t)[1], u_xx


WAYS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "nested": nested, "jacobians": jacobians, "each point": each_point, "directions": directions,
}  # fmt: skip


def products(fn: Callable[..., Any], *args: Tensor) -> int:
    return len(re.findall(r"= matmul|weight_grad|call MatMul", gc.plan_text(fn, *args)))


def steps(way: str) -> tuple[Callable[..., Any], Tensor]:
    net = network()
    x = Tensor(np.random.default_rng(0).uniform(-1, 1, (POINTS, 2)))

    def loss(x: Tensor) -> Tensor:
        u_x, u_t, u_xx = WAYS[way](net, x)
        return ops.mean(ops.square(u_t + net(x) * u_x - 0.1 * u_xx))

    return gc.value_and_grad(loss, None, ParameterTuple(net.trainable_params())), x


@pytest.mark.parametrize("way", [w for w in WAYS if w != "nested"])
def test_the_same_numbers(way: str, mode: int) -> None:
    step, x = steps(way)
    other, _ = steps("nested")
    value, gradients = step(x)
    expected, expected_gradients = other(x)
    np.testing.assert_allclose(float(value), float(expected), rtol=1e-12)
    for g, e in zip(gradients, expected_gradients, strict=True):
        scale = np.abs(e.asnumpy()).max()
        np.testing.assert_allclose(g.asnumpy(), e.asnumpy(), rtol=1e-10, atol=1e-12 * scale)


@pytest.mark.parametrize("way", [w for w in WAYS if w != "nested"])
def test_no_more_products(way: str) -> None:
    """But for the first and last layers': never another walk through the network."""
    step, x = steps(way)
    other, _ = steps("nested")
    assert products(step, x) <= 1.3 * products(other, x)
    text = gc.plan_text(step, x)
    assert text.count("  call ") == 0
    assert text.count(f"region rows={POINTS} ") == 1


def test_rows_that_nobody_picks() -> None:
    """are not computed: one row of a Jacobian of three takes what its gradient takes."""
    net = nn.SequentialCell(nn.Dense(2, 8), nn.Tanh(), nn.Dense(8, 3))
    x = Tensor(np.ones((5, 2), np.float32))
    picked = products(lambda x: gc.jacrev(lambda x: ops.sum(net(x), 0))(x)[1, :, 0:1], x)
    whole = products(gc.jacrev(lambda x: ops.sum(net(x), 0)), x)
    alone = products(lambda x: gc.grad(lambda x: ops.sum(net(x)[:, 1:2]))(x)[:, 0:1], x)
    assert picked <= alone
    assert whole > picked


# The rules by themselves ----------------------------------------------------------------------------

A, B = np.arange(12.0).reshape(3, 4), -np.arange(8.0).reshape(2, 4)


@pytest.mark.parametrize(
    ("fn", "reference", "gone"),
    [
        (lambda a, b: ops.concat([a, b])[3:5, 1:3], lambda a, b: b[:, 1:3], "Concat"),
        (lambda a, b: ops.concat([a, b])[2::-1], lambda a, b: a[::-1], "Concat"),
        (lambda a, b: ops.concat([a, b])[2:4], lambda a, b: np.concatenate([a, b])[2:4], ""),
        (lambda a, b: a.T[1:3, ::2], lambda a, b: a.T[1:3, ::2], ""),
        (lambda a, b: ops.stack([a, a * 2])[1, 2:, 1], lambda a, b: 2 * a[2:, 1], "Concat"),
        (lambda a, b: ops.broadcast_to(a[:1], (5, 4))[2:4, 1:], lambda a, b: np.tile(a[:1, 1:], (2, 1)), ""),
        (lambda a, b: ops.broadcast_to(a[0], (2, 5, 4))[1, 4, 2:], lambda a, b: a[0, 2:], "BroadcastTo"),
        (lambda a, b: ops.reshape(a, (3, 1, 4))[1:, 0, ::-1], lambda a, b: a[1:, ::-1], ""),
        (lambda a, b: ops.reshape(a, (1, 3, 4, 1))[0, 1, 2:], lambda a, b: a[1, 2:, None], ""),
        (lambda a, b: ops.reshape(ops.broadcast_to(a[:1], (5, 4)), (5, 1, 4)),
         lambda a, b: np.tile(a[:1], (5, 1))[:, None], ""),
        (lambda a, b: ops.ones((5, 4), gc.float64) @ a.T, lambda a, b: np.ones((5, 4)) @ a.T, ""),
        (lambda a, b: ops.broadcast_to(a[:1], (5, 4)) @ a.T, lambda a, b: np.tile(a[:1], (5, 1)) @ a.T, ""),
        (lambda a, b: ops.broadcast_to(a[:, :1], (3, 4)) @ b.T,
         lambda a, b: np.tile(a[:, :1], (1, 4)) @ b.T, ""),
        (lambda a, b: ops.broadcast_to(a[0, 0], (3, 4)) @ b.T,
         lambda a, b: np.full((3, 4), a[0, 0]) @ b.T, ""),
        (lambda a, b: ops.ones((1, 1), gc.float64) @ a[:1], lambda a, b: a[:1], "MatMul"),
        (lambda a, b: a[:, :1] @ ops.ones((1, 1), gc.float64), lambda a, b: a[:, :1], "MatMul"),
        (lambda a, b: a @ gc.grad(lambda c: c[2])(ops.ones(4, gc.float64)),
         lambda a, b: a[:, 2], "MatMul"),
        (lambda a, b: gc.grad(lambda c: ops.sum(c[:, 1:3]))(a) @ b.T,
         lambda a, b: np.tile([0, 1, 1, 0], (3, 1)) @ b.T, "SliceScatter"),
    ],
)  # fmt: skip
def test_rules(fn, reference, gone, mode: int) -> None:
    """Values against NumPy, derivatives against differences of its values."""
    np.testing.assert_allclose(fn(Tensor(A), Tensor(B)).asnumpy(), reference(A, B))
    compiled = gc.jit(fn)(Tensor(A), Tensor(B)).asnumpy()
    np.testing.assert_allclose(compiled, reference(A, B))
    if gone:
        assert gone not in gc.graph_text(fn, Tensor(A), Tensor(B))
    gradient = gc.jit(gc.grad(lambda a, b: ops.sum(ops.square(fn(a, b))), (0, 1)))
    step = 1e-6
    found = gradient(Tensor(A), Tensor(B))
    for k, x in enumerate((A, B)):
        at = (1, 2) if k else (0, 0)
        moved = []
        for sign in (1, -1):
            near = [A.copy(), B.copy()]
            near[k][at] += sign * step
            moved.append(np.square(reference(*near)).sum())
        expected = (moved[0] - moved[1]) / (2 * step)
        np.testing.assert_allclose(found[k].asnumpy()[at], expected, rtol=1e-6, atol=1e-7)
        assert x.shape == found[k].shape
