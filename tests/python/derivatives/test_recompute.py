"""recompute and Cell.recompute: the same numbers, from less memory, which the plan shows."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, nn, ops

WIDTH, ROWS = (
    600,
    128,
)  # weights too large to stay in the cache: products are calls, what they give is kept


def arena(text: str) -> int:
    found = re.search(r"arena (\d+) bytes", text)
    assert found
    return int(found[1])


class Block(nn.Cell):
    def __init__(self, layers: int = 3, width: int = WIDTH) -> None:
        super().__init__()
        cells = [c for _ in range(layers) for c in (nn.Dense(width, width), nn.Tanh())]
        self.layers = nn.SequentialCell(*cells)

    def construct(self, x):
        return self.layers(x)


def deep(blocks: int = 4) -> nn.SequentialCell:
    ms.set_seed(3)
    return nn.SequentialCell(*[Block() for _ in range(blocks)])


def gradients(net):
    weights = net.trainable_params()
    return ms.value_and_grad(lambda x: ops.square(net(x)).sum(), None, weights)


def test_the_same_gradients_from_less_memory(mode):
    x = Tensor(np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32))
    kept, again = deep(), deep()
    for block in again:
        assert block.recompute() is None
    before, after = (ms.plan_text(gradients(net), x) for net in (kept, again))
    # Twelve layers' outputs are kept, or four blocks' and three layers' of one block.
    assert arena(after) < 0.75 * arena(before), (arena(before), arena(after))
    calls = [text.count("call MatMul") for text in (before, after)]
    assert calls == [35, 47] or calls[1] - calls[0] in range(8, 13), calls
    (value, want), (value_again, got) = gradients(kept)(x), gradients(again)(x)
    assert float(value) == float(value_again)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), rtol=1e-5, atol=1e-6)


def test_recompute_as_mindspore_has_it(mode):
    class MyCell(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self.conv = nn.Conv2d(2, 2, 2, has_bias=False, weight_init="ones")
            self.relu = ops.ReLU()

        def construct(self, x):
            y = ms.recompute(self.conv, x)
            return self.relu(y)

    x = Tensor(np.ones([2, 2, 2, 2]).astype(np.float32) * 2)
    want = [[[[2, 4], [4, 8]]] * 2] * 2
    np.testing.assert_array_equal(ms.grad(MyCell())(x).asnumpy(), want)


def test_any_function_any_order_any_mode(mode):
    x = np.array([0.3, -0.5, 0.9])
    t = Tensor(x)
    f = lambda a: ms.recompute(lambda c: ops.tanh(c) * c, a)  # noqa: E731
    plain = lambda a: ops.tanh(a) * a  # noqa: E731
    one = ops.ones_like(t)

    def push(g):
        return lambda a: ms.jvp(g, a, one)[1]

    for transforms in (
        [ms.grad],
        [push],
        [ms.grad] * 3,
        [push, ms.grad],
        [ms.grad, push],
        [push] * 2,
    ):
        got, want = f, plain
        for transform in transforms:
            got, want = transform(got), transform(want)
        np.testing.assert_allclose(got(t).asnumpy(), want(t).asnumpy(), rtol=1e-13)
    np.testing.assert_allclose(f(t).asnumpy(), np.tanh(x) * x, rtol=1e-15)
    nested = lambda a: ms.recompute(lambda c: ms.recompute(ops.sin, c) * ops.exp(c), a)  # noqa: E731
    np.testing.assert_allclose(
        ms.grad(ms.grad(nested))(t).asnumpy(), 2 * np.cos(x) * np.exp(x), rtol=1e-13
    )
    # Of a derivative, and through it.
    u = lambda a: ms.recompute(ms.grad(lambda c: c**4), a)  # noqa: E731
    np.testing.assert_allclose(ms.grad(u)(t).asnumpy(), 12 * x**2, rtol=1e-13)


def test_several_outputs_keywords_and_closures(mode):
    w = ms.Parameter(Tensor(np.array([2.0, 3.0])), name="w")

    def block(a, parts, k=1.0):
        return a * a * k, {"other": [a * 3 * w * parts[0]]}, a, 7

    def f(a):
        p, q, same, seven = ms.recompute(block, a, (a, 1), k=3.0)
        return (p * q["other"][0] * same).sum() * seven

    a = np.array([0.5, 2.0])
    x_grad, w_grad = ms.grad(f, 0, w)(Tensor(a))
    np.testing.assert_allclose(x_grad.asnumpy(), 7 * 9 * w.asnumpy() * 5 * a**4, rtol=1e-13)
    np.testing.assert_allclose(w_grad.asnumpy(), 7 * 9 * a**5, rtol=1e-13)


def test_random_numbers_are_the_same_again(mode):
    drop = nn.Dropout(p=0.5)
    drop.set_train()
    value, gradient = ms.value_and_grad(lambda a: ms.recompute(drop, a))(ops.ones((50,)))
    np.testing.assert_array_equal(value.asnumpy(), gradient.asnumpy())
    assert 0 < np.count_nonzero(value.asnumpy()) < 50


def test_running_statistics_move_once(mode):
    def steps(recomputes):
        norm = nn.BatchNorm1d(2, momentum=0.5)
        norm.set_train()
        if recomputes:
            norm.recompute()
        x = Tensor(np.array([[1.0, 2.0], [3.0, 6.0]], np.float32))
        gradient = ms.grad(lambda a: ops.square(norm(a) + a).sum())(x)
        return norm.moving_mean.asnumpy(), gradient.asnumpy()

    for got, want in zip(steps(True), steps(False), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_step_compiles_and_trains():
    net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1))
    net[0].recompute()
    optimizer = nn.Adam(net.trainable_params(), 0.05)
    loss = ms.value_and_grad(lambda x: ops.square(net(x) - 1).mean(), None, optimizer.parameters)

    @ms.jit
    def step(x):
        value, gradient = loss(x)
        optimizer(gradient)
        return value

    x = Tensor(np.random.default_rng(1).normal(size=(16, 4)).astype(np.float32))
    values = [float(step(x)) for _ in range(60)]
    assert values[-1] < 0.01 * values[0]


def test_outside_of_a_transform_it_is_a_call():
    assert float(ms.recompute(lambda a: a * 2, Tensor(3.0))) == 6


def test_what_recompute_refuses():
    x = Tensor([1.0])
    with pytest.raises(
        TypeError, match=r"expected a Cell or a function, got int.*test_recompute\.py"
    ):
        ms.recompute(3, x)
    with pytest.raises(ValueError, match="For 'recompute', keyword 'foo' is not recognized"):
        Block(1, 2).recompute(foo=1)
    with pytest.raises(ValueError, match="context_fn is only supported when use_reentrant=False"):
        ms.recompute(ops.sin, x, context_fn=lambda: None)
    Block(1, 2).recompute(mp_comm_recompute=False, use_reentrant=False)
