"""What DeepXDE's models can do, on gradcell: optimisers, points that change, callbacks, files, networks."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("deepxde") is None:
    pytest.skip("needs DeepXDE", allow_module_level=True)

import gradcell as gc
from gradcell import ops
from gradcell.deepxde import dde, torch

LINE = dde.geometry.Interval(-1, 1)


@pytest.fixture(autouse=True)
def seeded() -> None:
    dde.config.set_random_seed(3)


def network(inputs: int = 1, outputs: int = 1) -> Any:
    return dde.nn.FNN([inputs, 8, 8, outputs], "tanh", "Glorot uniform")


def poisson(residual: Any = None, conditions: Any = None, net: Any = None, **options: Any) -> Any:
    """u'' = 1 with zero edges."""
    residual = residual or (lambda x, u: dde.grad.hessian(u, x) - 1)
    edges = dde.icbc.DirichletBC(LINE, lambda x: 0, lambda x, on: on)
    data = dde.data.PDE(LINE, residual, conditions or edges, 12, 2, **options)
    return dde.Model(data, net or network())


def weights(model: Any) -> list[np.ndarray]:
    return [p.asnumpy().copy() for p in model.net.parameters()]


def total(model: Any) -> float:
    """The training losses' sum at the weights now."""
    state = model.train_state
    return float(np.sum(model._outputs_losses(True, state.X_train, state.y_train, None)[1]))


# Derivatives ------------------------------------------------------------------------------------------


def test_derivatives_are_those_of_finite_differences() -> None:
    dde.config.set_default_float("float64")
    try:
        net = network(2, 3)
        model = dde.Model(dde.data.Function(LINE, np.sin, 4, 4), net)
        model.compile("adam", lr=1e-3)
        x = np.random.default_rng(0).uniform(-1, 1, (6, 2))
        h = 1e-4
        u = lambda dx, dy: model.predict(x + np.array([dx, dy]))  # noqa: E731
        slope = model.predict(x, operator=lambda x, u: dde.grad.jacobian(u, x, i=2, j=1))
        np.testing.assert_allclose(
            slope[:, 0], (u(0, h) - u(0, -h))[:, 2] / (2 * h), rtol=1e-6, atol=1e-8
        )
        mixed = model.predict(
            x, operator=lambda x, u: dde.grad.hessian(u, x, component=1, i=0, j=1)
        )
        want = (u(h, h) - u(h, -h) - u(-h, h) + u(-h, -h))[:, 1] / (4 * h * h)
        np.testing.assert_allclose(mixed[:, 0], want, rtol=1e-4, atol=1e-6)
    finally:
        dde.config.set_default_float("float32")


def test_forward_autodiff_has_the_losses_of_reverse() -> None:
    traced: list[int] = []

    def residual(x: Any, u: Any) -> Any:
        traced.append(1)
        second = dde.grad.hessian(u, x)
        return (second[0] if isinstance(second, tuple) else second) - 1

    model = poisson(residual)
    begin = weights(model)
    found = {}
    for kind in ("reverse", "forward"):
        dde.config.set_default_autodiff(kind)
        try:
            for p, w in zip(model.net.parameters(), begin, strict=True):
                p.set_data(gc.Tensor(w))
            model.compile("adam", lr=1e-2)
            model.train(iterations=20, display_every=20, verbose=0)
            found[kind] = total(model)
        finally:
            dde.config.set_default_autodiff("reverse")
    assert found["forward"] == pytest.approx(found["reverse"], rel=1e-4)
    assert len(traced) < 20  # not once a step


# Optimisers -------------------------------------------------------------------------------------------


def adam(p: Any, g: Any, s: Any, t: int, decay: float = 0.0, decoupled: bool = False) -> Any:
    p, g = (p - 1e-2 * decay * p, g) if decoupled else (p, g + decay * p)
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g * g
    return p - 1e-2 * s["m"] / (1 - 0.9**t) / (np.sqrt(s["v"] / (1 - 0.999**t)) + 1e-8)


def rmsprop(p: Any, g: Any, s: Any, t: int) -> Any:
    s["v"] = 0.99 * s.get("v", 0) + 0.01 * g * g
    return p - 1e-2 * g / (np.sqrt(s["v"]) + 1e-8)


RULES = {
    "adam": (None, adam),
    "sgd": (None, lambda p, g, s, t: p - 1e-2 * g),
    "rmsprop": (None, rmsprop),
    "adamw": (["l2", 0.1], lambda p, g, s, t: adam(p, g, s, t, 0.1, True)),
    "adam with l2": (["l2", 0.1], lambda p, g, s, t: adam(p, g, s, t, 0.1)),
}


@pytest.mark.parametrize("name", RULES)
def test_optimisers_take_the_steps_of_their_formulas(name: str) -> None:
    regularization, rule = RULES[name]
    net = dde.nn.FNN([1, 5, 1], "tanh", "Glorot uniform", regularization=regularization)
    x = np.linspace(-0.8, 1, 9)[:, None]
    model = dde.Model(dde.data.DataSet(X_train=x, y_train=np.sin(3 * x), X_test=x, y_test=x), net)
    model.compile(name.split()[0], lr=1e-2)
    w = [p.asnumpy().astype(np.float64) for p in net.parameters()]
    states: list[dict[str, Any]] = [{} for _ in w]
    for t in range(1, 6):
        h = np.tanh(x @ w[0].T + w[1])
        error = 2 * (h @ w[2].T + w[3] - np.sin(3 * x)) / len(x)
        back = (error @ w[2]) * (1 - h * h)
        gradients = [back.T @ x, back.sum(0), error.T @ h, error.sum(0)]
        w = [rule(p, g, s, t) for p, g, s in zip(w, gradients, states, strict=True)]
    model.train(iterations=5, display_every=5, verbose=0)
    for p, want in zip(net.parameters(), w, strict=True):
        np.testing.assert_allclose(p.asnumpy(), want, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize(
    ("decay", "rate"),
    [
        (("step", 3, 0.5), lambda n: 0.5 ** (n // 3)),
        (("exponential", 0.9), lambda n: 0.9**n),
        (("inverse time", 4, 0.3), lambda n: 1 / (1 + 0.3 * n / 4)),
        (("cosine", 10, 0.0), lambda n: (1 + np.cos(np.pi * n / 10)) / 2),
        (("lambda", lambda n: 1 / (n + 1)), lambda n: 1 / (n + 1)),
    ],
    ids=lambda v: v[0] if isinstance(v, tuple) else "",
)
def test_schedules_of_the_rate(decay: Any, rate: Any) -> None:
    model = poisson()
    model.compile("sgd", lr=1e-3, decay=decay)
    rates = []
    for n in range(7):
        rates.append(float(model.opt.rate))
        model.train(iterations=1, display_every=1, verbose=0)
        assert rates[-1] == pytest.approx(1e-3 * rate(n), rel=1e-6)


def test_an_optimiser_of_ones_own() -> None:
    model = poisson()
    optimizer = torch.optim.Adam(model.net.parameters(), lr=1e-2, betas=(0.8, 0.99))
    model.compile(optimizer)
    model.train(iterations=2, display_every=2, verbose=0)
    before = total(model)
    model.train(iterations=50, display_every=50, verbose=0)
    assert total(model) < 0.5 * before


def test_lbfgs_stops_by_itself_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    model = poisson()
    dde.optimizers.set_LBFGS_options(maxiter=700, gtol=1e-4)
    try:
        model.compile("L-BFGS")
        model.train(display_every=100)
    finally:
        dde.optimizers.set_LBFGS_options()
    said = capsys.readouterr().out
    assert "L-BFGS stopped after" in said and "gradient_tolerance" in said
    assert 3 < model.train_state.step < 700 and total(model) < 1e-3


def test_refused_by_name() -> None:
    net = dde.nn.FNN([1, 5, 1], "tanh", "Glorot uniform", regularization=["l1+l2", 1e-3, 1e-3])
    with pytest.raises(NotImplementedError, match=r"l1\+l2 regularization") as error:
        poisson(net=net).compile("adam", lr=1e-3)
    assert "test_models.py:" in str(error.value)  # not DeepXDE's line that called
    with pytest.raises(NotImplementedError, match="one learning rate"):
        torch.optim.Adam([{"params": network().parameters(), "lr": 0.1}], lr=0.2)


# What residuals read ----------------------------------------------------------------------------------

FORCE = 1.0


def test_a_global_that_changes_is_seen() -> None:
    global FORCE
    traced: list[float] = []

    def residual(x: Any, u: Any) -> Any:
        traced.append(FORCE)
        return dde.grad.hessian(u, x) - FORCE

    FORCE = 1.0
    model = poisson(residual)
    model.compile("adam", lr=0.0)
    model.train(iterations=3, display_every=3, verbose=0)
    first = total(model)
    FORCE = 30.0
    try:
        assert total(model) > 100 * first
        assert len(traced) < 8
    finally:
        FORCE = 1.0


def test_resampling_traces_nothing_again() -> None:
    traced: list[int] = []

    def residual(x: Any, u: Any) -> Any:
        traced.append(1)
        return dde.grad.hessian(u, x) - 1

    model = poisson(residual, train_distribution="pseudo")
    model.compile("adam", lr=1e-3)
    model.train(iterations=2, display_every=2, verbose=0)
    before, points = len(traced), model.data.train_x.copy()
    resample = dde.callbacks.PDEPointResampler(period=1)
    model.train(iterations=30, display_every=30, verbose=0, callbacks=[resample])
    assert not np.array_equal(points, model.data.train_x)
    assert len(traced) <= before + 2
    # the losses are those of the points now: by the network's own values at the edges
    at_edges = model.predict(np.array([[-1.0], [1.0]], np.float32))
    losses = model._outputs_losses(True, model.data.train_x, None, None)[1]
    assert losses[1] == pytest.approx(float(np.mean(at_edges**2)), rel=1e-3)


def test_minibatches_of_points_that_were_measured() -> None:
    places = np.linspace(-1, 1, 50)[:, None]
    measured = dde.icbc.PointSetBC(places, places**2, batch_size=8)
    model = poisson(conditions=[measured])
    model.compile("adam", lr=1e-2)
    traced = total_traces(model)
    model.train(
        iterations=30,
        display_every=30,
        verbose=0,
        callbacks=[dde.callbacks.PDEPointResampler(1, True, True)],
    )
    assert traced() <= 3


def total_traces(model: Any) -> Any:
    """How often the network is called since: once for each compiled form."""
    calls, plain = [], model.net.forward

    def forward(x: Any) -> Any:
        calls.append(1)
        return plain(x)

    model.net.forward = forward
    return lambda: len(calls)


def test_anchors_that_are_added() -> None:
    model = poisson()
    model.compile("adam", lr=1e-3)
    model.train(iterations=2, display_every=2, verbose=0)
    before = len(model.data.train_x)
    model.data.add_anchors(np.array([[0.1], [0.2], [0.3]]))
    model.compile("adam", lr=1e-3)
    model.train(iterations=2, display_every=2, verbose=0)
    assert len(model.data.train_x) == before + 3


# Callbacks, files -------------------------------------------------------------------------------------


def test_callbacks_of_ones_own_take_gradients() -> None:
    found: list[Any] = []

    class Slope(dde.callbacks.Callback):  # type: ignore[misc]
        def on_train_end(self) -> None:
            x = torch.tensor([[0.25]], requires_grad=True)
            u = self.model.net(x)
            found.append(dde.grad.jacobian(u, x).asnumpy())
            dde.grad.clear()

    model = poisson()
    model.compile("adam", lr=1e-3)
    model.train(iterations=2, display_every=2, verbose=0, callbacks=[Slope()])
    h = 1e-2
    u = model.predict(np.array([[0.25 - h], [0.25 + h]], np.float32))
    np.testing.assert_allclose(
        found[0].item(), (u[1] - u[0]).item() / (2 * h), rtol=1e-2, atol=1e-3
    )


def test_predictors_variables_and_early_stopping(tmp_path: Path) -> None:
    factor = dde.Variable(0.5)
    model = poisson(lambda x, u: dde.grad.hessian(u, x) - factor)
    model.compile("adam", lr=1e-2, external_trainable_variables=factor)
    x = np.linspace(-1, 1, 5)[:, None].astype(np.float32)
    slope = dde.callbacks.OperatorPredictor(x, lambda x, u: dde.grad.jacobian(u, x), period=5)
    watch = dde.callbacks.VariableValue(factor, period=5, filename=str(tmp_path / "factor.dat"))
    stop = dde.callbacks.EarlyStopping(patience=20, min_delta=1e9)
    model.train(iterations=1000, display_every=5, verbose=0, callbacks=[slope, watch, stop])
    assert model.train_state.step < 100  # nothing is better by 1e9
    want = model.predict(x, operator=lambda x, u: dde.grad.jacobian(u, x))
    np.testing.assert_allclose(slope.get_value(), want, rtol=1e-4, atol=1e-5)
    assert watch.get_value()[0] == pytest.approx(float(factor), abs=1e-2) and float(factor) != 0.5
    assert len((tmp_path / "factor.dat").read_text().splitlines()) > 2
    watch.file.close()  # DeepXDE keeps it open


def test_what_is_saved_goes_on(tmp_path: Path) -> None:
    model = poisson()
    model.compile("adam", lr=1e-2)
    model.train(iterations=10, display_every=10, verbose=0)
    path = model.save(str(tmp_path / "model"))
    model.train(iterations=10, display_every=10, verbose=0)
    want = weights(model)
    other = poisson(net=network())
    other.compile("adam", lr=1e-2)
    other.restore(path)
    other.train(iterations=10, display_every=10, verbose=0)
    for a, b in zip(weights(other), want, strict=True):
        np.testing.assert_array_equal(a, b)
    (tmp_path / "wrong.pt").write_bytes(b"PK\x03\x04 a file of another program")
    with pytest.raises(ValueError, match="was not written by"):
        other.restore(str(tmp_path / "wrong.pt"))


# Networks ---------------------------------------------------------------------------------------------


def branches() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.normal(size=(12, 6)).astype(np.float32), np.linspace(0, 1, 7)[:, None].astype(
        "f4"
    )


def operator_nets() -> dict[str, Any]:
    f, x = branches()
    basis = np.stack([np.sin(k * x[:, 0]) for k in range(1, 5)], 1)
    branch, trunk, how = [6, 8, 8], [1, 8, 8], ("tanh", "Glorot normal")
    return {
        "DeepONetCartesianProd": (dde.nn.DeepONetCartesianProd(branch, trunk, *how), (f, x)),
        "PODDeepONet": (dde.nn.PODDeepONet(basis, [6, 8, 4], *how), (f, x)),
        "MIONetCartesianProd": (
            dde.nn.MIONetCartesianProd(branch, branch, trunk, *how),
            (f, f * f, x),
        ),
    }


@pytest.mark.parametrize("name", ["DeepONetCartesianProd", "PODDeepONet", "MIONetCartesianProd"])
def test_operator_networks_learn(name: str) -> None:
    net, inputs = operator_nets()[name]
    y = np.outer(inputs[0].sum(1), inputs[-1][:, 0]).astype(np.float32)
    kind = dde.data.QuadrupleCartesianProd if len(inputs) == 3 else dde.data.TripleCartesianProd
    model = dde.Model(kind(inputs, y, inputs, y), net)
    model.compile("adam", lr=1e-2)
    model.train(iterations=1, display_every=1, verbose=0)
    first = model.losshistory.loss_train[0][0]
    model.train(iterations=200, display_every=200, verbose=0)
    assert model.losshistory.loss_train[-1][0] < 0.3 * first
    assert model.predict(inputs).shape == y.shape


def test_networks_that_take_pairs_of_points() -> None:
    f, x = branches()
    inputs = np.repeat(f, 7, 0), np.tile(x, (12, 1))
    y = (inputs[0].sum(1, keepdims=True) * inputs[1]).astype(np.float32)
    net = dde.nn.DeepONet([6, 8, 8], [1, 8, 8], "tanh", "Glorot normal")
    model = dde.Model(dde.data.Triple(inputs, y, inputs, y), net)
    model.compile("adam", lr=1e-2)
    model.train(iterations=200, display_every=200, verbose=0)
    assert model.losshistory.loss_train[-1][0] < 0.3 * model.losshistory.loss_train[0][0]


def test_parallel_networks_and_networks_of_ones_own() -> None:
    class Own(dde.nn.NN):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(1, 8), torch.nn.Linear(8, 2)])
            self.scale = torch.nn.Parameter(torch.tensor([2.0]))

        def forward(self, inputs: Any) -> Any:
            x = inputs if self._input_transform is None else self._input_transform(inputs)
            return self.scale * self.layers[1](torch.tanh(self.layers[0](x)))

    parallel = dde.nn.PFNN([1, [6, 6], [6, 6], 2], "tanh", "Glorot uniform")

    def residual(x: Any, y: Any) -> list[Any]:
        return [
            dde.grad.jacobian(y, x, i=0) - y[:, 1:2],
            dde.grad.jacobian(y, x, i=1) + y[:, 0:1],
        ]

    start = dde.icbc.PointSetBC(np.array([[-1.0]]), np.array([[1.0]]), component=0)
    for net in (parallel, Own()):
        model = dde.Model(dde.data.PDE(LINE, residual, [start], 12, 2), net)
        model.compile("adam", lr=1e-2)
        model.train(iterations=200, display_every=200, verbose=0)
        history = model.losshistory.loss_train
        assert np.sum(history[-1]) < 0.3 * np.sum(history[0])


def test_dropout_is_on_in_training_alone() -> None:
    class Own(dde.nn.NN):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(1, 64),
                torch.nn.Tanh(),
                torch.nn.Dropout(0.5),
                torch.nn.Linear(64, 1),
            )

        def forward(self, x: Any) -> Any:
            return self.layers(x)

    x = np.linspace(-1, 1, 9)[:, None].astype(np.float32)
    model = dde.Model(dde.data.DataSet(X_train=x, y_train=x, X_test=x, y_test=x), Own())
    model.compile("adam", lr=0.0)
    np.testing.assert_array_equal(model.predict(x), model.predict(x))
    outputs = [model._outputs(True, x) for _ in range(2)]
    assert not np.array_equal(*outputs)
    losses = []
    for _ in range(2):
        model.train(iterations=1, display_every=1, verbose=0)
        losses.append(model.losshistory.loss_train[-1][0])
    assert losses[0] != losses[1]


def test_sparse_products() -> None:
    places, values = [(0, 1), (1, 0), (1, 2)], [2.0, 3.0, -1.0]
    dense = gc.Tensor(np.arange(6.0).reshape(3, 2))
    matrix = np.array([[0, 2.0, 0], [3, 0, -1]])
    found = dde.backend.sparse_dense_matmul(
        dde.backend.sparse_tensor(places, values, (2, 3)), dense
    )
    np.testing.assert_allclose(found.asnumpy(), matrix @ dense.asnumpy())
    by_dense = gc.grad(
        lambda d: ops.square(
            dde.backend.sparse_dense_matmul(dde.backend.sparse_tensor(places, values, (2, 3)), d)
        ).sum()
    )(dense)
    np.testing.assert_allclose(
        by_dense.asnumpy(), 2 * matrix.T @ matrix @ dense.asnumpy(), rtol=1e-6
    )
