"""gradcell's solvers behind model.compile: equations with exact solutions, unknown variables, refusals."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("deepxde") is None:
    pytest.skip("needs DeepXDE", allow_module_level=True)

import gradcell as gc
from gradcell.deepxde import dde, torch


@pytest.fixture(autouse=True)
def in_float64() -> Any:
    dde.config.set_default_float("float64")
    dde.config.set_random_seed(3)
    yield
    dde.config.set_default_float("float32")


def oscillator(**options: Any) -> Any:
    """u'' = -pi^2 sin(pi x) with u(0) = 0 and u'(1) = -pi: u = sin(pi x)."""

    def equation(x: Any, u: Any) -> Any:
        return dde.grad.hessian(u, x) + np.pi**2 * torch.sin(np.pi * x)

    line = dde.geometry.Interval(0, 1)
    conditions = [
        dde.icbc.DirichletBC(line, lambda x: 0, lambda x, on: on and x[0] < 0.5),
        dde.icbc.NeumannBC(line, lambda x: -np.pi, lambda x, on: on and x[0] > 0.5),
    ]
    data = dde.data.PDE(
        line, equation, conditions, 24, 2, solution=lambda x: np.sin(np.pi * x), num_test=50
    )
    model = dde.Model(data, dde.nn.FNN([1, 10, 1], "tanh", "Glorot normal", **options))
    return model


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name, steps", [("Gauss-Newton", 40), ("SSBroyden", 200), ("SSBFGS", 300)])
def test_an_equation_to_its_exact_solution(name: str, steps: int) -> None:
    model = oscillator()
    model.compile(name, loss_weights=[1, 10, 10], metrics=["l2 relative error"], verbose=0)
    losses, state = model.train(iterations=steps, display_every=steps, verbose=0)
    assert state.metrics_test[0] < 1e-4 and losses.steps == [0, steps]
    x = np.linspace(0, 1, 40)[:, None]
    assert np.abs(model.predict(x) - np.sin(np.pi * x)).max() < 5e-4


def test_steps_are_those_of_the_same_residuals_written_here() -> None:
    x = np.linspace(-1, 1, 20)[:, None]
    y = np.concatenate([np.exp(x), np.sin(2 * x)], 1)  # two components of one kind of error
    data = dde.data.DataSet(X_train=x, y_train=y, X_test=x, y_test=y)
    model = dde.Model(data, dde.nn.FNN([1, 4, 2], "tanh", "Glorot uniform"))
    model.compile("Gauss-Newton", loss_weights=[3.0], verbose=0)
    layers = [p.asnumpy().copy() for p in model.net.parameters()]
    a, b, c, d = (gc.Parameter(gc.Tensor(v)) for v in layers)

    def misfit(x: Any, y: Any) -> Any:
        inner = gc.ops.tanh(gc.ops.matmul(x, a.T) + b)
        return gc.ops.matmul(inner, c.T) + d - y

    solver = gc.GaussNewton(misfit, [a, b, c, d], weights=[3.0])
    for _ in range(3):
        model.train(iterations=1, verbose=0)
        solver.step(x, y)
    for ours, theirs in zip((a, b, c, d), model.net.parameters(), strict=True):
        np.testing.assert_allclose(theirs.asnumpy(), ours.asnumpy(), rtol=1e-9)


@pytest.mark.one_in(2)
def test_errors_that_depend_on_two_points_are_solved_without_rows() -> None:
    """u'' = -4 pi^2 sin(2 pi x) with u(0) = u(1), and a value."""
    line = dde.geometry.Interval(0, 1)

    def equation(x: Any, u: Any) -> Any:
        return dde.grad.hessian(u, x) + 4 * np.pi**2 * torch.sin(2 * np.pi * x)

    conditions = [
        dde.icbc.PeriodicBC(line, 0, lambda x, on: on),
        dde.icbc.PointSetBC(np.array([[0.25]]), np.array([[1.0]])),
    ]
    data = dde.data.PDE(line, equation, conditions, 24, 2, num_test=10)
    model = dde.Model(data, dde.nn.FNN([1, 8, 1], "tanh", "Glorot normal"))
    model.compile("Gauss-Newton", loss_weights=[1, 100, 100], verbose=0)
    model.train(iterations=40, verbose=0)
    assert model.opt._solver.method == "cg"
    x = np.linspace(0, 1, 40)[:, None]
    assert np.abs(model.predict(x) - np.sin(2 * np.pi * x)).max() < 1e-2


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["Gauss-Newton", "BFGS"])
def test_an_unknown_variable_of_the_equation(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """u' = -k u with u known at points: k = 1.7; the end is told once."""
    k = dde.Variable(1.0)
    line = dde.geometry.TimeDomain(0, 1)
    t = np.linspace(0, 1, 15)[:, None]
    seen = dde.icbc.PointSetBC(t, np.exp(-1.7 * t))
    data = dde.data.PDE(line, lambda x, u: dde.grad.jacobian(u, x) + k * u, [seen], 20, 2)
    model = dde.Model(data, dde.nn.FNN([1, 6, 1], "tanh", "Glorot normal"))
    model.compile(name, lr=1e-3, external_trainable_variables=k, verbose=0)
    assert f"learning rate is ignored for {name}" in capsys.readouterr().out
    model.train(iterations=60 if name == "Gauss-Newton" else 300, verbose=0)
    assert abs(float(k) - 1.7) < (1e-3 if name == "Gauss-Newton" else 0.05)


def test_an_end_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.linspace(-1, 1, 20)[:, None]
    data = dde.data.DataSet(X_train=x, y_train=2 * x, X_test=x, y_test=2 * x)
    model = dde.Model(data, dde.nn.FNN([1, 1], None, "Glorot uniform"))
    model.compile("Gauss-Newton", verbose=0)
    model.train(iterations=80, verbose=0)
    said = capsys.readouterr().out
    assert said.count("Gauss-Newton has ended: ") == 1
    assert np.abs(model.predict(x) - 2 * x).max() < 1e-12


def test_losses_that_are_no_mean_squares_are_refused() -> None:
    model = oscillator()
    model.compile("Gauss-Newton", loss=lambda y, found: (y - found).abs().mean(), verbose=0)
    with pytest.raises(NotImplementedError, match="minimises mean squares of residuals"):
        model.train(iterations=1, verbose=0)
    model = oscillator(regularization=["l2", 1e-3])
    with pytest.raises(ValueError, match="Gauss-Newton doesn't support weight_decay"):
        model.compile("Gauss-Newton", verbose=0)
