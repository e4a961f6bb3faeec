"""cond, and WhileLoop in vmap: against NumPy and formulas, in every transform."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, ops, vmap

X = np.array([-2.0, -0.5, 0.0, 0.3, 1.7])


def side(x):
    """log(x) x where x > 0, whose derivatives are infinite or NaN elsewhere; else x^3."""
    return ops.cond(x > 0, lambda x: ops.log(x) * x, lambda x: x**3, x)


def wanted(x, order):
    with np.errstate(all="ignore"):
        above = [np.log(x) * x, np.log(x) + 1, 1 / x, -1 / x**2][order]
    return np.where(x > 0, above, [x**3, 3 * x**2, 6 * x, 6 + 0 * x][order])


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("mode", ["reverse", "forward", "mixed"])
def test_derivatives(order, mode, jitted):
    f = side
    for k in range(order):
        forward = mode == "forward" or (mode == "mixed" and k % 2)
        f = (lambda f: lambda x: gc.jvp(f, x, ops.ones_like(x))[1])(f) if forward else gc.grad(f)
    made = gc.jit if jitted else lambda f: f
    found = made(vmap(f))(Tensor(X)).asnumpy()
    np.testing.assert_allclose(found, wanted(X, order), rtol=1e-12)
    one = made(f)
    np.testing.assert_allclose([float(one(Tensor(x))) for x in X], wanted(X, order), rtol=1e-12)


def test_only_the_one_that_is_chosen_runs():
    ran = []

    def noted(name):
        return lambda x: (ran.append(name), x)[1]

    assert ops.cond(True, noted("yes"), noted("no"), 3) == 3.0
    ops.cond(Tensor([0]), noted("yes"), noted("no"), Tensor(1.0))
    assert ran == ["yes", "no"]


def test_trees_and_loops():
    """A step of a scan chooses; carries are trees."""

    def step(carry, x):
        grown = ops.cond(
            x > 0, lambda c: {"n": c["n"] + 1, "s": c["s"] * x}, lambda c: {**c, "n": c["n"]}, carry
        )
        return grown, grown["s"]

    xs = np.array([2.0, -1.0, 3.0, -4.0, 0.5])
    start = {"n": Tensor(np.int64(0)), "s": Tensor(np.float64(1.0))}
    last, kept = ops.scan(step, start, Tensor(xs))
    assert int(last["n"]) == 3 and float(last["s"]) == 3.0
    np.testing.assert_allclose(kept.asnumpy(), [2, 2, 6, 6, 3])
    slope = gc.grad(lambda xs: ops.scan(step, start, xs)[0]["s"])(Tensor(xs)).asnumpy()
    np.testing.assert_allclose(slope, [1.5, 0, 1, 0, 6])


def newton(a):
    """The square root by Newton's method: how many steps it needs depends on a."""

    def goes_on(state):
        x, _ = state
        return ops.abs(x * x - a) > 1e-13 * a

    def better(state):
        x, n = state
        return (x + a / x) / 2, n + 1

    return ops.WhileLoop()(goes_on, better, (a, 0.0 * a))


def test_while_loops_of_different_lengths_in_vmap():
    a = np.array([1.0, 2.0, 100.0, 1e-4, 9e6])
    alone = [newton(Tensor(v)) for v in a]
    x, n = vmap(newton)(Tensor(a))
    np.testing.assert_allclose(x.asnumpy(), np.sqrt(a), rtol=1e-13)
    np.testing.assert_array_equal(n.asnumpy(), [float(v[1]) for v in alone])
    assert len(set(n.asnumpy())) > 3
    traces = []
    jitted = gc.jit(vmap(lambda a: (traces.append(1), newton(a))[1]))
    for _ in range(3):
        np.testing.assert_allclose(jitted(Tensor(a))[0].asnumpy(), np.sqrt(a), rtol=1e-13)
    assert len(traces) == 1
    np.testing.assert_allclose(
        vmap(vmap(newton))(Tensor(a.reshape(5, 1)))[0].asnumpy().ravel(), np.sqrt(a), rtol=1e-13
    )
    slope = vmap(gc.grad(lambda a: newton(a)[0]))(Tensor(a)).asnumpy()
    # (Of 1 there is no step, so the function is the identity there.)
    np.testing.assert_allclose(slope, [1.0, *(0.5 / np.sqrt(a[1:]))], rtol=1e-9)


def test_no_derivative_passes_where_a_loop_has_ended():
    """The step after the last would have a slope that is not a number."""

    def f(x):
        step = ops.WhileLoop()
        return step(lambda v: v > 1, lambda v: ops.sqrt(v - 1) + v * 0, x)

    x = np.array([0.5, 1.0, 1.5, 4.0])
    with np.errstate(all="ignore"):
        first = np.sqrt(x - 1)
        second = np.sqrt(first - 1)
    slope = [1.0, 1.0, 0.5 / first[2], 0.5 / first[3] * 0.5 / second[3]]
    np.testing.assert_allclose(vmap(gc.grad(f))(Tensor(x)).asnumpy(), slope, rtol=1e-12)
    one = Tensor(np.ones(4))
    np.testing.assert_allclose(gc.jvp(vmap(f), Tensor(x), one)[1].asnumpy(), slope, rtol=1e-12)


@pytest.mark.parametrize("p", [None, "fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2])
def test_the_condition_number(p):
    a = np.array([[2.0, 0, -1], [0, 1, 0], [1, 0, 3]])
    assert float(ops.cond(Tensor(a), p)) == pytest.approx(np.linalg.cond(a, p), rel=1e-12)
    both = ops.cond(Tensor(np.stack([a, a + np.eye(3)])), p).asnumpy()
    np.testing.assert_allclose(both[1], np.linalg.cond(a + np.eye(3), p), rtol=1e-12)
    assert math.isfinite(float(gc.grad(lambda a: ops.cond(a, p).sum())(Tensor(a)).sum()))


def assigned(x):
    p = Parameter(Tensor(1.0))
    return ops.cond(x > 0, lambda: p.set_data(p * 2), lambda: p * 1)


WRONG = [
    (
        lambda x: ops.cond(x > 0, lambda: x, 3),
        TypeError,
        "'false_fun' must be a function, but got 'int'",
    ),
    (lambda x: ops.cond(x > 0, 3.0, lambda: x), TypeError, "'true_fun' must be a function"),
    (lambda x: ops.cond(Tensor([1.0, 2.0]), lambda: x, lambda: x), ValueError, "one element"),
    (
        lambda x: ops.cond(x > 0, lambda: x, lambda: ops.stack([x, x])),
        ValueError,
        r"one shape and dtype, but got Float32\[\] and Float32\[2\]",
    ),
    (lambda x: ops.cond(x > 0, lambda: (x, x), lambda: (x,)), ValueError, "tuple of 2 is needed"),
    (assigned, ValueError, "cannot assign Parameters"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_what_is_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        vmap(call)(Tensor([1.0, -1.0]))
