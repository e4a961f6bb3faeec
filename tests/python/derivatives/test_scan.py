"""ops.scan: values, derivatives of three orders, modes and batches against the same steps one by one;
lengths, parts and groups of steps; what derivatives keep."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops

RNG = np.random.default_rng(5)


@dataclasses.dataclass
class Pair:
    mean: Tensor
    spread: Tensor


def spd(x):
    return x @ x.T + 2 * ops.eye(x.shape[0], dtype=x.dtype)


def kalman(c, x, w):
    """Mean and covariance after a step and an observation."""
    mean, spread = w @ c.mean, w @ c.spread @ w.T + 0.1 * ops.eye(3, dtype=w.dtype)
    gain = spread @ gc.ops.inverse(spread + ops.eye(3, dtype=w.dtype))
    mean = mean + gain @ (x - mean)
    return Pair(mean, spread - gain @ spread), {"mean": mean}


def hidden_states(c, x, w):
    """The forward pass of a hidden Markov model, in logarithms."""
    c = ops.logsumexp(c.expand_dims(1) + ops.log_softmax(w, 1), 0) + x
    return c, c


def runge_kutta(c, x, w):
    def slope(t, y):
        return ops.tanh(w @ y) + ops.sin(t)

    return c + 0.1 * slope(x + 0.05, c + 0.05 * slope(x, c)), None


def exchanged(c, x, w):
    return {"a": c["b"] * w, "b": ops.sin(c["a"]) + x}, (None, [c["a"]])


def convolved(c, x, w):
    return ops.tanh(ops.conv2d(c, w, pad_mode="pad", padding=1)) + x, None


def inner_loop(c, x, w):
    last, ys = ops.scan(lambda d, v: (ops.tanh(d * v + w), d), c, x)
    return last, ys.sum(0)


def attention(c, x, w):
    scores = ops.softmax(x @ w @ c.T, -1)
    return c + 0.1 * (scores.T @ x), scores.mean()


def gathered(c, x, w):
    n, h = c
    return (n + 1, h * 0.5 + w[n % 3]), h[::2]


def spectrum(c, x, w):
    y = ops.rfft(c + x)
    return ops.tanh(y.real().sum() * w + c), y.imag()


def solved(c, x, w):
    return ops.tanh(ops.matrix_solve(spd(w), c.reshape(3, 1)).reshape(3)) + x, c.sum()


@gc.custom_vjp
def cube(x, w):
    return x**3 * w


cube.defvjp(
    lambda x, w: (x**3 * w, (x, w)),
    lambda kept, dy: (3 * kept[0] ** 2 * kept[1] * dy, kept[0] ** 3 * dy),
)


def own_rule(c, x, w):
    return ops.tanh(cube(c, ops.sin(w)) + x), cube(x, c)


def again(c, x, w):
    return gc.recompute(lambda c: ops.tanh(ops.sin(c * w) + x), c), c


def over_a_batch(c, x, w):
    return gc.vmap(lambda row: ops.matrix_solve(spd(w), row.reshape(3, 1)).reshape(3))(c) + x, None


#: f(carry, x, w), the first carry, x, w: of arrays.
BODIES = {
    "elements": (lambda c, x, w: (ops.tanh(c * w + x), c), (3,), (3,), (3,)),
    "dense": (lambda c, x, w: (ops.tanh(c @ w + x),) * 2, (2, 3), (2, 3), (3, 3)),
    "dict": (exchanged, {"a": (2,), "b": (2,)}, (2,), (2,)),
    "two of x": (lambda c, x, w: (c * x[0] + x[1] * w, x[0]), (3,), ((3,), ()), ()),
    "solve": (solved, (3,), (3,), (3, 3)),
    "cholesky": (lambda c, x, w: (ops.cholesky(spd(c)) * 0.3 + x * w, None), (3, 3), (3, 3), ()),
    "inverse": (lambda c, x, w: (ops.inverse(spd(c)) + x * w, c), (3, 3), (3, 3), (3, 3)),
    "determinant": (lambda c, x, w: (c * 0.5 + x * w, ops.det(spd(c))), (3, 3), (3, 3), (3, 3)),
    "qr": (lambda c, x, w: (ops.qr(spd(c) + w)[0] + x, None), (3, 3), (3, 3), (3, 3)),
    "sort": (lambda c, x, w: (ops.sort(c * w)[0] * 0.7 + x, ops.cumsum(c, 0)), (4,), (4,), (4,)),
    "kalman": (kalman, Pair((3,), (3, 3)), (3,), (3, 3)),
    "hidden states": (hidden_states, (3,), (3,), (3, 3)),
    "runge-kutta": (runge_kutta, (3,), (), (3, 3)),
    "loop": (inner_loop, (2,), (4, 2), (2,)),
    "attention": (attention, (2, 3), (4, 3), (3, 3)),
    "shifted": (lambda c, x, w: (ops.roll(c, 1, 0) * w + x, c[1:]), (4,), (4,), (4,)),
    "convolution": (convolved, (1, 1, 3, 3), (1, 1, 3, 3), (1, 1, 3, 3)),
    "spectrum": (spectrum, (4,), (4,), (4,)),
    "own rule": (own_rule, (3,), (3,), (3,)),
    "recompute": (again, (3,), (3,), (3,)),
    "batch of solves": (over_a_batch, (2, 3), (2, 3), (3, 3)),
    "choice": (lambda c, x, w: (ops.where(c > 0, c * w, c - x), c.max()), (3,), (3,), (3,)),
}  # fmt: skip


def array(shape, *front):
    if isinstance(shape, dict):
        return {k: array(s, *front) for k, s in shape.items()}
    if isinstance(shape, Pair):
        return Pair(array(shape.mean), array(shape.spread))
    if shape and isinstance(shape[0], tuple):
        return tuple(array(s, *front) for s in shape)
    return Tensor(0.6 * RNG.standard_normal((*front, *shape)))


def steps(f, init, xs, length, reverse=False):
    """The same in Python."""
    ys = [None] * length
    for t in range(length)[:: -1 if reverse else 1]:
        x = tuple(v[t] for v in xs) if isinstance(xs, tuple) else xs[t]
        init, ys[t] = f(init, x)
    return init, gc.base.tree.refill(
        gc.base.tree.outline(ys[0]),
        [ops.stack(list(y)) for y in zip(*map(gc.base.tree.leaves, ys), strict=True)],
    )


def of(name, length, how):
    f, first, x, w = BODIES[name]
    given = array(first), array(x, length), array(w)

    def function(init, xs, w):
        out = how(lambda c, x: f(c, x, w), init, xs, length)
        return gc.base.tree.leaves(out)

    return function, given


def loss(function):
    return lambda *given: sum(
        (ops.sin(y) * (k + 1.5)).sum() for k, y in enumerate(function(*given))
    )


def close(found, expected, tolerance=1e-11):
    found, expected = gc.base.tree.leaves(found), gc.base.tree.leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        scale = max(1, float(np.abs(b.asnumpy()).max(initial=0)))
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=tolerance, atol=tolerance * scale)


WAYS = {
    "plain": {},
    "backwards": {"reverse": True},
    "by two": {"unroll": 2},
    "parts": {"checkpoint": True},
    "each step": {"checkpoint": 1, "unroll": 2, "reverse": True},
    "parts, backwards": {"checkpoint": 3, "unroll": 2, "reverse": True},
}


def scanned(**options):
    return lambda f, init, xs, length: ops.scan(f, init, xs, length, **options)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BODIES)
def test_values_and_gradients(name, way):
    options = WAYS[way]
    found, given = of(name, 5, scanned(**options))
    backwards = options.get("reverse", False)
    expected, _ = of(name, 5, lambda *a: steps(*a, reverse=backwards))
    close(found(*given), expected(*given))
    floats = (0, 1, 2)
    close(gc.grad(loss(found), floats)(*given), gc.grad(loss(expected), floats)(*given), 1e-9)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("way", ["plain", "parts, backwards"])
@pytest.mark.parametrize("name", BODIES)
def test_higher_orders_and_other_modes(name, way):
    options = WAYS[way]
    found, given = of(name, 4, scanned(**options))
    expected, _ = of(name, 4, lambda *a: steps(*a, reverse=options.get("reverse", False)))
    init, xs, w = given

    def by_w(function):
        return lambda w: loss(function)(init, xs, w)

    def squared(gradient):
        return lambda w: (gradient(w) ** 2).sum()

    def third(function):
        return gc.grad(squared(gc.grad(squared(gc.grad(by_w(function))))))(w)

    close(third(found), third(expected), 1e-7)
    along = Tensor(RNG.standard_normal(w.shape))
    close(gc.jvp(by_w(found), w, along)[1], gc.jvp(by_w(expected), w, along)[1], 1e-9)
    batch = ops.stack([w, w * 0.5, along])
    close(
        gc.vmap(gc.grad(by_w(found)))(batch),
        ops.stack([gc.grad(by_w(expected))(v) for v in batch]),
        1e-9,
    )
    close(gc.jit(found)(*given), expected(*given))


def test_lengths_of_zero_and_one():
    def f(c, x):
        return {"sum": c["sum"] + x}, (x * 2.0, None)

    last, (ys, none) = ops.scan(f, {"sum": Tensor(1.0)}, Tensor(np.zeros((0,), np.float32)))
    assert float(last["sum"]) == 1 and ys.shape == (0,) and ys.dtype == gc.float32 and none is None
    last, (ys, _) = ops.scan(f, {"sum": Tensor(1.0)}, Tensor([3.0]), unroll=4, checkpoint=True)
    assert float(last["sum"]) == 4 and ys.asnumpy().tolist() == [6]
    last, ys = ops.scan(lambda c, x: (c * 0.5 + x, c), 0.0, Tensor(np.ones(3)))
    assert last.dtype == ys.dtype == gc.float64 and float(last) == 1.75
    last, ys = ops.scan(lambda n, _: (n + 1, n), 0, length=4)
    assert int(last) == 4 and ys.asnumpy().tolist() == [0, 1, 2, 3]


def test_parameters_learn():
    net = nn.Dense(2, 2)
    x = Tensor(RNG.standard_normal((6, 1, 2)).astype(np.float32))

    def forward(how):
        return lambda x: (how(lambda h, v: (ops.tanh(net(h) + v),) * 2, x[0], x, 6)[1] ** 2).sum()

    found, expected = (
        gc.value_and_grad(forward(how), None, net.trainable_params())(x)
        for how in (scanned(), steps)
    )
    close(found, expected, 1e-5)


def test_a_part_is_computed_again_from_its_carry():
    """The plan of a gradient keeps about sqrt(T) states and the insides of sqrt(T) steps."""
    x, w = Tensor(RNG.standard_normal((900, 1, 64))), Tensor(RNG.standard_normal((64, 64)) * 0.1)

    def gradient(**options):
        def loss(w):
            def step(c, x):
                return ops.tanh(ops.sin(ops.tanh(c @ w + x)) @ w), None

            return ops.scan(step, ops.zeros((1, 64), gc.float64), x, **options)[0].sum()

        return gc.grad(loss)

    def memory(**options):
        text = gc.plan_text(gradient(**options), w)
        return int(re.search(r"arena (\d+) bytes", text)[1])

    most, parts = memory(), memory(checkpoint=True)
    assert parts < most / 5
    close(gradient(checkpoint=True)(w), gradient()(w), 1e-9)


def test_refusals():
    x = Tensor(np.ones((3, 2)))
    p = Parameter(Tensor(1.0), name="p")

    def assigns(c, x):
        p.set_data(p + 1)
        return c, x

    for error, text, call in (
        (TypeError, "'f' must be a function", lambda: ops.scan(1, x)),
        (TypeError, "pair", lambda: ops.scan(lambda c, x: c, x[0], x)),
        (ValueError, "'length' is needed", lambda: ops.scan(lambda c, x: (c, x), x)),
        (ValueError, r"\[3, 2\], \[2\]", lambda: ops.scan(lambda c, x: (c, x), x, (x, x[0]))),
        (ValueError, r"\[3, 2\] and 'length' 4", lambda: ops.scan(lambda c, x: (c, x), x, x, 4)),
        (ValueError, r"\[\]", lambda: ops.scan(lambda c, x: (c, x), x, Tensor(1.0))),
        (ValueError, "length", lambda: ops.scan(lambda c, x: (c, x), x, None, -1)),
        (ValueError, "unroll", lambda: ops.scan(lambda c, x: (c, x), x, x, unroll=0)),
        (ValueError, "tuple of 2", lambda: ops.scan(lambda c, x: (c[0], x), (x, x), x)),
        (ValueError, "shape", lambda: ops.scan(lambda c, x: (c[0], x), x, x)),
        (ValueError, "draw outside", lambda: ops.scan(assigns, x, x)),
    ):
        with pytest.raises(error, match=text):
            call()
