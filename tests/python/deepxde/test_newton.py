"""NNCG on gradcell: Newton's steps as NumPy takes them, with second derivatives from differences."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("deepxde") is None:
    pytest.skip("needs DeepXDE", allow_module_level=True)

import gradcell as gc
from gradcell.deepxde import dde, torch
from gradcell.deepxde.newton import NNCG

X = np.linspace(-0.8, 1, 9)[:, None]
Y = np.sin(3 * X)


@pytest.fixture(autouse=True)
def in_float64() -> Any:
    dde.config.set_default_float("float64")
    dde.config.set_random_seed(3)
    yield
    dde.config.set_default_float("float32")
    dde.optimizers.set_NNCG_options()


def fit(**options: Any) -> Any:
    """A network of 16 parameters that learns nine values, compiled with NNCG."""
    data = dde.data.DataSet(X_train=X, y_train=Y, X_test=X, y_test=Y)
    model = dde.Model(data, dde.nn.FNN([1, 5, 1], "tanh", "Glorot uniform"))
    dde.optimizers.set_NNCG_options(**{"rank": 4, "mu": 1.0, "cgtol": 1e-10, **options})
    model.compile("NNCG", verbose=0)
    return model


def weights(model: Any) -> Any:
    return np.concatenate([p.asnumpy().reshape(-1) for p in model.net.parameters()])


def loss_and_slope(w: Any) -> tuple[float, Any]:
    """By hand."""
    a, b, c, d = w[:5, None], w[5:10], w[None, 10:15], w[15:]
    h = np.tanh(X @ a.T + b)
    error = h @ c.T + d - Y
    forth = 2 * error / len(X)
    back = (forth @ c) * (1 - h * h)
    parts = [back.T @ X, back.sum(0), forth.T @ h, forth.sum(0)]
    return float(np.mean(error**2)), np.concatenate([p.reshape(-1) for p in parts])


def curvature(w: Any) -> Any:
    step = 1e-5
    rows = [
        loss_and_slope(w + step * e)[1] - loss_and_slope(w - step * e)[1] for e in np.eye(w.size)
    ]
    return np.stack(rows) / (2 * step)


def newton(w: Any, mu: float, length: float, searches: bool) -> Any:
    loss, slope = loss_and_slope(w)
    direction = np.linalg.solve(curvature(w) + mu * np.eye(w.size), slope)
    while searches and loss_and_slope(w - length * direction)[0] > (
        loss - 0.1 * length * direction @ slope
    ):
        length /= 2
    return w - length * direction


@pytest.mark.parametrize(("search", "lr"), [("armijo", 1), ("armijo", 64), (None, 0.5)])
def test_steps_are_newtons(search: str | None, lr: float) -> None:
    model = fit(lsfun=search, lr=lr, updatefreq=2)
    want = weights(model)
    assert np.linalg.eigvalsh(curvature(want)).min() > -1  # with mu it is positive
    for _ in range(5):
        want = newton(want, 1.0, lr, search is not None)
    model.train(iterations=5, display_every=5, verbose=0)
    np.testing.assert_allclose(weights(model), want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_in_units_of_the_loss(dtype: str) -> None:
    """mu and cg_tol are H's and the gradient's: with them in the loss's unit, the path is the same."""

    def run(k: int) -> Any:
        dde.config.set_default_float(dtype)
        start = np.linspace(-1, 2, 6)
        w, unit = torch.nn.Parameter(gc.Tensor(start.astype(dtype))), 2.0**k
        options = {"mu": 0.1 * unit, "cg_tol": 1e-3 * unit, "line_search_fn": "armijo"}
        dde.config.set_random_seed(3)
        solver = NNCG([w], rank=3, cg_max_iters=20, **options)
        solver.minimise(lambda: unit * ((w[1:] - w[:-1] ** 2) ** 2).sum() + unit * (w**2).sum())
        losses = [np.ldexp(solver.step(), -k) for _ in range(4)]
        return [*losses, *w.asnumpy()]

    want = run(0)
    assert want[3] < 0.1 * want[0]
    for k in (-60, -31, -1, 1, 20, 45, 60):
        np.testing.assert_allclose(run(k), want, rtol=1e-4 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize(("rank", "enough"), [(6, True), (1, False)])
def test_what_the_sketch_sees_spares_iterations(
    rank: int, enough: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a quadratic function with six different curvatures: one iteration where all are known."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    matrix = turn @ np.diag([1.0, 3, 10, 30, 100, 300]) @ turn.T
    w = torch.nn.Parameter(gc.Tensor(np.ones(6)))
    solver = NNCG([w], rank=rank, cg_tol=1e-6, cg_max_iters=1)
    solver.minimise(lambda: (w * (gc.Tensor(matrix) @ w)).sum() / 2)
    assert solver.step() == pytest.approx(matrix.sum() / 2)
    assert ("conjugate gradients ended after 1 iterations" in capsys.readouterr().out) is not enough
    if enough:
        want = np.ones(6) - np.linalg.solve(matrix + 1e-4 * np.eye(6), matrix.sum(1))
        np.testing.assert_allclose(w.asnumpy(), want, atol=1e-6)


def test_a_direction_upwards_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    model = fit(mu=-10.0, lsfun=None, lr=0.0)
    model.train(iterations=1, display_every=1, verbose=0)
    assert "does not lead downwards" in capsys.readouterr().out


def test_float32_and_unknown_coefficients() -> None:
    dde.config.set_default_float("float32")
    factor = dde.Variable(0.5)
    line = dde.geometry.Interval(-1, 1)
    edges = dde.icbc.DirichletBC(line, lambda x: 0, lambda x, on: on)
    inside = dde.icbc.PointSetBC(np.array([[0.0]]), np.array([[-0.5]]))
    data = dde.data.PDE(line, lambda x, u: dde.grad.hessian(u, x) - factor, [edges, inside], 12, 2)
    model = dde.Model(data, dde.nn.FNN([1, 8, 8, 1], "tanh", "Glorot uniform"))
    model.compile("adam", lr=1e-2, external_trainable_variables=factor, verbose=0)
    model.train(iterations=300, display_every=300, verbose=0)
    before = np.sum(model.losshistory.loss_train[-1])
    dde.optimizers.set_NNCG_options(mu=0.1, cgtol=1e-4)
    model.compile("NNCG", external_trainable_variables=factor, verbose=0)
    model.train(iterations=30, display_every=30, verbose=0)
    assert np.sum(model.losshistory.loss_train[-1]) < 0.2 * before
    assert float(factor) == pytest.approx(1, abs=0.1)  # u = (x^2 - 1) / 2


def test_what_is_saved_goes_on(tmp_path: Path) -> None:
    model = fit()
    model.train(iterations=3, display_every=3, verbose=0)
    path = model.save(str(tmp_path / "model"))
    model.train(iterations=3, display_every=3, verbose=0)
    other = fit()
    other.restore(path)
    other.train(iterations=3, display_every=3, verbose=0)
    np.testing.assert_array_equal(weights(other), weights(model))
    with pytest.raises(ValueError, match="another optimizer, rank or network"):
        fit(rank=3).restore(path)


def test_a_line_search_that_is_not_there() -> None:
    w = torch.nn.Parameter(gc.Tensor([1.0]))
    with pytest.raises(ValueError, match=r"the line search is \"armijo\" or None, got 'wolfe'"):
        NNCG([w], line_search_fn="wolfe")
