"""check_grads, Gauss-Newton and Fisher products, per-sample gradients, L-BFGS."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops

RANDOM = np.random.default_rng(5)


def network(inputs: int = 3, outputs: int = 2) -> nn.SequentialCell:
    gc.set_seed(2)
    net = nn.SequentialCell(nn.Dense(inputs, 4), nn.Tanh(), nn.Dense(4, outputs))
    for p in net.get_parameters():
        p.set_data(Tensor(RANDOM.normal(size=p.shape) * 0.5, gc.float32))
    return net


class Wave(nn.Cell):
    """a tanh(b x + c), in float64: its Jacobian by hand below."""

    def __init__(self) -> None:
        super().__init__()
        self.a = Parameter(Tensor(np.array([0.7, -1.2])), name="a")
        self.b = Parameter(Tensor(np.array([1.5, 0.4])), name="b")

    def construct(self, x):
        return (self.a * ops.tanh(self.b * x)).sum(-1)


X = RANDOM.normal(size=(7, 1))


def jacobian(wave: Wave) -> np.ndarray:
    a, b = wave.a.asnumpy(), wave.b.asnumpy()
    t = np.tanh(b * X)
    return np.concatenate([t, a * (1 - t * t) * X], 1)  # [7, 4]


# check_grads ----------------------------------------------------------------------------------------


def test_check_grads_says_what_it_has_seen():
    lines = gc.check_grads(lambda x, y: (ops.sin(x) * y, {"z": ops.exp(y)}), (X, X[::-1] * 0.5), 3)
    assert len(lines) == 2 + 4 + 8 and all(line.agrees for line in lines)
    assert {line.modes for line in lines if line.order == 2} == {
        "rev rev", "rev fwd", "fwd rev", "fwd fwd",
    }  # fmt: skip
    assert all(line.difference < 1e-9 for line in lines)
    assert "order 1  rev" in str(lines[0]) and str(lines[0]).endswith("ok")
    gc.check_grads(ops.tanh, Tensor(X.astype(np.float32)), 2)


def test_check_grads_finds_what_is_wrong():
    f = gc.custom_vjp(lambda x: x**3)
    f.defvjp(lambda x: (x**3, x), lambda x, g: (g * 3.001 * x**2,))
    with pytest.raises(AssertionError, match="WRONG") as error:
        gc.check_grads(f, X, 1)
    assert re.search(r"test_second_order\.py:\d+", str(error.value))
    g = gc.custom_jvp(lambda x: x**3)  # right to first order, wrong to second
    g.defjvp(lambda p, t: (p[0] ** 3, t[0] * ops.stop_gradient(3 * p[0] ** 2)))
    gc.check_grads(g, X, 1)
    with pytest.raises(AssertionError, match=r"order 2  rev rev .*WRONG"):
        gc.check_grads(g, X, 2)


@pytest.mark.parametrize("unit", [2.0**-60, 1e-9, 1.0, 1e9, 2.0**60])
def test_check_grads_finds_what_is_wrong_in_any_unit(unit):
    @gc.custom_vjp
    def cube(x):
        return unit * x**3

    cube.defvjp(lambda x: (cube(x), x), lambda x, g: (unit * 3.01 * x**2 * g,))
    with pytest.raises(AssertionError, match="do not match"):
        gc.check_grads(cube, X, 1, modes=("rev",))
    gc.check_grads(lambda x: unit * x**3, X, 3)


def test_what_check_grads_refuses():
    with pytest.raises(TypeError, match="argument 0 of dtype Int64"):
        gc.check_grads(ops.square, Tensor([1, 2]))
    with pytest.raises(TypeError, match="no floating tensor"):
        gc.check_grads(lambda x: x > 0, X)
    with pytest.raises(ValueError, match="of 'rev' and 'fwd'"):
        gc.check_grads(ops.sin, X, modes=("back",))
    with pytest.raises(TypeError, match="expected a function, got int"):
        gc.check_grads(3, X)


# Products -------------------------------------------------------------------------------------------


def test_gauss_newton_of_least_squares(mode):
    wave, x = Wave(), Tensor(X)
    weights = wave.trainable_params()
    product = gc.gauss_newton_product(wave, weights=weights)
    j = jacobian(wave)
    v = RANDOM.normal(size=4)
    got = product(x, (Tensor(v[:2]), Tensor(v[2:])))
    np.testing.assert_allclose(np.concatenate([g.asnumpy() for g in got]), j.T @ j @ v, rtol=1e-12)
    compiled = gc.jit(lambda x, p, q: product(x, (p, q)))
    for _ in range(2):
        got = compiled(x, Tensor(v[:2]), Tensor(v[2:]))
    np.testing.assert_allclose(got[1].asnumpy(), (j.T @ j @ v)[2:], rtol=1e-12)
    one = gc.gauss_newton_product(wave, weights=wave.b)(x, Tensor(v[2:]))
    np.testing.assert_allclose(one.asnumpy(), j[:, 2:].T @ j[:, 2:] @ v[2:], rtol=1e-12)


def test_gauss_newton_with_a_loss_is_the_hessian_without_the_network_s(mode):
    w = RANDOM.normal(size=(3, 4))
    labels, x = np.array([0, 2, 1, 3, 3]), RANDOM.normal(size=(5, 3))

    def cross_entropy(z):
        return -(ops.log_softmax(z, -1) * Tensor(np.eye(4)[labels])).sum()

    # A linear network has no curvature: the product is the loss's Hessian by w, X' (diag p - p p') X.
    product = gc.gauss_newton_product(lambda w: Tensor(x) @ w, 0, loss=cross_entropy)
    v = RANDOM.normal(size=(3, 4))
    z = x @ w
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    u = x @ v
    want = x.T @ (p * u - p * (p * u).sum(1, keepdims=True))
    got = product(Tensor(w), Tensor(v))
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-12)
    hessian = gc.jvp(gc.grad(lambda w: cross_entropy(Tensor(x) @ w)), Tensor(w), Tensor(v))[1]
    np.testing.assert_allclose(got.asnumpy(), hessian.asnumpy(), rtol=1e-12)


def test_the_empirical_fisher_product(mode):
    wave, x = Wave(), Tensor(X)
    j, v = jacobian(wave), RANDOM.normal(size=4)
    product = gc.fisher_product(wave, weights=wave.trainable_params())
    got = product(x, (Tensor(v[:2]), Tensor(v[2:])))
    np.testing.assert_allclose(
        np.concatenate([g.asnumpy() for g in got]), j.T @ j @ v / 7, rtol=1e-12
    )


def test_per_sample_gradients(mode):
    wave = Wave()
    gradients = gc.per_sample_gradients(wave, wave.trainable_params())(Tensor(X))
    got = np.concatenate([g.asnumpy() for g in gradients], 1)
    np.testing.assert_allclose(got, jacobian(wave), rtol=1e-12)
    one = gc.per_sample_gradients(wave, wave.a)(Tensor(X))
    np.testing.assert_allclose(one.asnumpy(), jacobian(wave)[:, :2], rtol=1e-12)


def test_what_products_refuse(mode):
    wave, x = Wave(), Tensor(X)
    product = gc.gauss_newton_product(wave, weights=wave.trainable_params())
    with pytest.raises(ValueError, match=r"\[\[2\], \[2\]\], but got \[\[3\]\]") as error:
        product(x, (Tensor(np.ones(3)),))
    assert re.search(r"test_second_order\.py:\d+", str(error.value))
    with pytest.raises(ValueError, match="one of grad_position and weights"):
        gc.gauss_newton_product(wave)
    with pytest.raises(
        TypeError, match="cannot differentiate with respect to argument 0 of dtype Int64"
    ):
        gc.gauss_newton_product(ops.square, 0)(Tensor([1, 2]), Tensor([1, 2]))
    with pytest.raises(TypeError, match="loss must give one number"):
        gc.gauss_newton_product(ops.sin, 0, loss=ops.square)(x, x)


# L-BFGS ---------------------------------------------------------------------------------------------


def rosenbrock(p: Parameter):
    return lambda: (100 * ops.square(p[1:] - ops.square(p[:-1])) + ops.square(1 - p[:-1])).sum()


def test_lbfgs_finds_a_minimum():
    p = Parameter(Tensor(np.array([-1.2, 1.0, -0.5, 2.0])), name="p")
    seen = []
    result = gc.lbfgs(rosenbrock(p), p, callback=lambda state: seen.append(state.loss))
    np.testing.assert_allclose(p.asnumpy(), np.ones(4), atol=1e-7)
    assert result.nit == len(seen) < 100 and seen[-1] <= seen[0]


def test_a_flat_loss_is_one_compiled_call():
    net = network()
    x, y = (Tensor(RANDOM.normal(size=s).astype(np.float32)) for s in ((20, 3), (20, 2)))
    calls = []

    def loss(x, y):
        calls.append(1)
        return ops.square(net(x) - y).mean()

    f = gc.FlatLoss(loss, net.trainable_params(), x, y)
    v = f.vector
    assert f.size == v.size == 3 * 4 + 4 + 4 * 2 + 2 and v.dtype == np.float64
    want, gradients = gc.value_and_grad(loss, None, net.trainable_params())(x, y)
    calls.clear()
    for _ in range(3):
        value, gradient = f(v)
    assert len(calls) == 1
    np.testing.assert_allclose(value, float(want), rtol=1e-6)
    flat = np.concatenate([g.asnumpy().reshape(-1) for g in gradients])
    np.testing.assert_allclose(gradient, flat, rtol=1e-5, atol=1e-7)
    f(v + 1)
    np.testing.assert_allclose(f.vector, (v + 1).astype(np.float32), rtol=1e-6)
    f.assign(v)
    np.testing.assert_allclose(f.vector, v)
    with pytest.raises(ValueError, match=r"expected a vector of 26 elements, got shape \[3\]"):
        f(np.ones(3))
    with pytest.raises(TypeError, match="the loss must give one number"):
        gc.FlatLoss(lambda: net(x), net.trainable_params())(v)
    with pytest.raises(TypeError, match="one floating dtype"):
        gc.FlatLoss(loss, [])


def test_lbfgs_leaves_the_best_point():
    net = network()
    x = Tensor(RANDOM.normal(size=(20, 3)).astype(np.float32))
    y = Tensor(np.sin(x.asnumpy()[:, :2]))
    loss = lambda x, y: ops.square(net(x) - y).mean()  # noqa: E731
    before = float(loss(x, y))
    result = gc.lbfgs(loss, net.trainable_params(), x, y, max_steps=60)
    after = float(loss(x, y))
    assert after < 0.02 * before and abs(after - result.fun) <= 1e-5 * before


def test_minimize_traces_its_function_once():
    calls = []

    def f(x, k):
        calls.append(1)
        return (k * ops.square(x - 2)).sum()

    result = gc.scipy.optimize.minimize(f, Tensor([0.0, 5.0]), (3.0,), method="BFGS")
    np.testing.assert_allclose(result.x.asnumpy(), [2, 2], atol=1e-4)
    assert len(calls) == 1 and int(result.nfev) > 1
