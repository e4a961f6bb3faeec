"""Derivatives of a tanh network along its inputs, as residuals of differential equations need them,
to the fourth order, against truncated Taylor series in NumPy; and the gradients of what is made of
them with respect to the weights, against differences of the same reference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, nn, ops

POINTS, WIDTHS, ORDER = 21, (2, 7, 5, 6, 1), 4

rng = np.random.default_rng(4)
X, T = rng.uniform(-1, 1, (2, POINTS, 1))
WEIGHTS = [rng.normal(size=s) / math.sqrt(s[0]) for s in itertools.pairwise(WIDTHS)]
BIASES = [rng.normal(size=n) * 0.3 for n in WIDTHS[1:]]

Array = np.ndarray


def tanh_series(z: list[Array]) -> list[Array]:
    """y' = (1 - y^2) z', coefficient by coefficient."""
    y = [np.tanh(z[0])]
    for k in range(1, len(z)):
        s = [float(j == 0) - sum(y[i] * y[j - i] for i in range(j + 1)) for j in range(k)]
        y.append(sum((j + 1) * z[j + 1] * s[k - 1 - j] for j in range(k)) / k)
    return y


def along(direction: tuple[float, float], weights: list[Array]) -> list[Array]:
    """u and its derivatives to ORDER along a direction of (x, t)."""
    h = [np.hstack((X, T)), np.broadcast_to(direction, (POINTS, 2))]
    h += [np.zeros((POINTS, 2))] * (ORDER - 1)
    for i, (w, b) in enumerate(zip(weights, BIASES, strict=True)):
        z = [c @ w + (b if k == 0 else 0) for k, c in enumerate(h)]
        h = tanh_series(z) if i + 1 < len(weights) else z
    return [c * math.factorial(k) for k, c in enumerate(h)]


def reference(weights: list[Array]) -> dict[str, Array]:
    u, u_x, u_xx, u_xxx, u_xxxx = along((1, 0), weights)
    _, u_t, u_tt, _, u_tttt = along((0, 1), weights)
    # (d/dx + d/dt)^2 and the same to the fourth, with (d/dx - d/dt)^4, give the mixed ones.
    plus, minus = along((1, 1), weights), along((1, -1), weights)
    mixed4 = (plus[4] + minus[4] - 2 * u_xxxx - 2 * u_tttt) / 12
    return {
        "burgers": u_t + u * u_x - 0.1 * u_xx,
        "korteweg_de_vries": u_t + 6 * u * u_x + u_xxx,
        "laplacian": u_xx + u_tt,
        "mixed": u_xx - (plus[2] - minus[2]) / 4,
        "biharmonic": u_xxxx + 2 * mixed4 + u_tttt,
    }


class Network(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        cells: list[Any] = []
        for i, (w, b) in enumerate(zip(WEIGHTS, BIASES, strict=True)):
            cells.append(
                nn.Dense(*w.shape, weight_init=Tensor(w.T), bias_init=Tensor(b), dtype=ms.float64)
            )
            if i + 2 < len(WIDTHS):
                cells.append(nn.Tanh())
        self.net = nn.SequentialCell(*cells)

    def construct(self, x: Any, t: Any) -> Any:
        return self.net(ops.concat((x, t), 1))


def of_columns(net: Network) -> dict[str, Callable[..., Any]]:
    """x and t are arguments of their own."""

    def d(f: Callable[..., Any], position: int) -> Callable[..., Any]:
        return lambda x, t: ms.grad(f, position)(x, t)

    u, u_x, u_t = net, d(net, 0), d(net, 1)
    u_xx, u_tt = d(u_x, 0), d(u_t, 1)

    def laplacian(x: Any, t: Any) -> Any:
        return u_xx(x, t) + u_tt(x, t)

    def mixed(x: Any, t: Any) -> Any:
        u_xx, u_xt = ms.grad(u_x, (0, 1))(x, t)
        return u_xx - u_xt

    return {
        "burgers": lambda x, t: u_t(x, t) + u(x, t) * u_x(x, t) - 0.1 * u_xx(x, t),
        "korteweg_de_vries": lambda x, t: (u_t(x, t) + 6 * u(x, t) * u_x(x, t) + d(u_xx, 0)(x, t)),
        "laplacian": laplacian,
        "mixed": mixed,
        "biharmonic": lambda x, t: (d(d(laplacian, 0), 0)(x, t) + d(d(laplacian, 1), 1)(x, t)),
    }


def of_one_tensor(net: Network) -> dict[str, Callable[..., Any]]:
    """x and t are columns of one argument, and derivatives are columns of a gradient."""

    def columns(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, t: f(ops.concat((x, t), 1))

    def u(p: Any) -> Any:
        return net(p[:, 0:1], p[:, 1:2])

    def d(f: Callable[..., Any], column: int) -> Callable[..., Any]:
        return lambda p: ms.grad(f)(p)[:, column : column + 1]

    u_x, u_t = d(u, 0), d(u, 1)
    u_xx, u_tt = d(u_x, 0), d(u_t, 1)

    def mixed(p: Any) -> Any:
        gradient = ms.grad(u_x)(p)
        return gradient[:, :1] - gradient[:, 1:]

    return {
        "burgers": columns(lambda p: u_t(p) + u(p) * u_x(p) - 0.1 * u_xx(p)),
        "laplacian": columns(lambda p: u_xx(p) + u_tt(p)),
        "mixed": columns(mixed),
    }


FORMS = {"columns": of_columns, "one tensor": of_one_tensor}
CASES = [(form, name) for form, make in FORMS.items() for name in make(Network())]


@pytest.mark.parametrize("form,name", CASES)
def test_derivatives_and_gradients(form: str, name: str, mode: Any) -> None:
    net = Network()
    residual = FORMS[form](net)[name]

    def loss(x: Any, t: Any) -> Any:
        r = residual(x, t)
        return (r * r).mean(), r

    weights = [p for p in net.trainable_params() if p.name.endswith("weight")]
    step = ms.jit(ms.value_and_grad(loss, None, weights, has_aux=True))
    (value, r), gradients = step(Tensor(X), Tensor(T))

    expected = reference(WEIGHTS)[name]
    np.testing.assert_allclose(r.asnumpy(), expected, rtol=1e-11, atol=1e-11)

    directions = [rng.normal(size=w.shape) for w in WEIGHTS]

    def moved(by: float) -> float:
        at = [w + by * v for w, v in zip(WEIGHTS, directions, strict=True)]
        return float((reference(at)[name] ** 2).mean())

    h = 1e-3  # five points: the error is of the fourth order
    slope = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
    got = sum(float((g.asnumpy().T * v).sum()) for g, v in zip(gradients, directions, strict=True))
    assert got == pytest.approx(slope, rel=1e-6)
    assert float(value.asnumpy()) == pytest.approx(float((expected**2).mean()), rel=1e-11)


class TwoScales(nn.Cell):
    """The sum of two small networks of x and 2 x, added to a 0 as loops over networks do."""

    def __init__(self, shapes: dict[str, Array]) -> None:
        super().__init__()
        p = {k: ms.Parameter(Tensor(v), name=k) for k, v in shapes.items()}
        self.a, self.a2 = self.dense(p["a"], p["c"]), self.dense(p["a2"], p["c2"])
        self.b, self.b2 = self.dense(p["b"], p["d"]), self.dense(p["b2"], p["d2"])

    @staticmethod
    def dense(weight: Any, bias: Any) -> Any:
        return nn.Dense(
            *weight.shape, weight_init=weight.T, bias_init=bias.reshape(-1), dtype=ms.float64
        )

    def construct(self, x: Any) -> Any:
        return 0 + (self.b(ops.sin(self.a(x))) + self.b2(ops.sin(self.a2(x * 2.0))))


def test_a_sum_that_begins_with_nothing(mode: Any) -> None:
    p = {k: rng.normal(size=(1, 5)) for k in ("a", "a2", "c", "c2")}
    p |= {k: rng.normal(size=(5, 1)) for k in ("b", "b2")} | {"d": X[:1], "d2": T[:1]}
    net = TwoScales(p)
    u_xx = ms.grad(ms.grad(net))

    def loss(x: Any) -> Any:
        return (u_xx(x) ** 2).mean() + (net(x) ** 2).mean()

    weights = [net.b.weight, net.b2.weight, net.b2.bias]
    value, gradients = ms.value_and_grad(loss, None, net.trainable_params())(Tensor(X))
    found = {q.name: g.asnumpy() for q, g in zip(net.trainable_params(), gradients, strict=True)}

    s1, s2 = np.sin(X @ p["a"] + p["c"]), np.sin(2 * X @ p["a2"] + p["c2"])
    u = s1 @ p["b"] + p["d"] + s2 @ p["b2"] + p["d2"]
    curves1, curves2 = -(p["a"] ** 2) * s1, -((2 * p["a2"]) ** 2) * s2
    v = curves1 @ p["b"] + curves2 @ p["b2"]
    assert float(value.asnumpy()) == pytest.approx(float((v**2 + u**2).mean()), rel=1e-12)
    expected = [curves1.T @ v + s1.T @ u, curves2.T @ v + s2.T @ u, u.sum(0)]
    for q, e in zip(weights, expected, strict=True):
        np.testing.assert_allclose(found[q.name].ravel(), 2 / POINTS * e.ravel(), rtol=1e-10)


@pytest.mark.parametrize("first,second", [(1.0, 0.0), (1.0, 2.0), (3.0, -4.0), (0.0, -1.0)])
def test_a_plan_holds_for_other_constants(first: float, second: float) -> None:
    x = Tensor(X)

    def products(x: Any) -> Any:
        return ops.matmul(x, ops.full((1, 4), first, dtype=ms.float64)) + ops.matmul(
            x, ops.full((1, 4), second, dtype=ms.float64)
        )

    got = ms.jit(products)(x).asnumpy()
    np.testing.assert_allclose(got, X @ np.full((1, 4), first + second), rtol=1e-14)
