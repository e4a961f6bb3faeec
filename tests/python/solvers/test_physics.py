"""gradcell.physics: points, inputs, weights, the course of a run; Adam before a solver."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import nn, ops, physics


@pytest.mark.parametrize("method", ["halton", "sobol", "latin", "uniform"])
def test_points_of_a_box(method: str) -> None:
    if method != "uniform":
        pytest.importorskip("scipy")
    low, high = np.array([-1.0, 2.0, 0.0]), np.array([1.0, 5.0, 0.1])
    points = physics.box(4096, low, high, 0, method)
    assert points.shape == (4096, 3) and points.dtype == np.float64
    assert (points >= low).all() and (points <= high).all()
    unit = (points - low) / (high - low)
    np.testing.assert_allclose(unit.mean(0), 0.5, atol=0.03)
    np.testing.assert_allclose(unit.var(0), 1 / 12, atol=0.01)
    np.testing.assert_array_equal(points, physics.box(4096, low, high, 0, method))


def test_points_on_faces() -> None:
    pytest.importorskip("scipy")
    low, high = [0, -1], [1, 1]
    points = physics.faces(300, low, high, 0)
    counts = [np.sum(points[:, k] == end[k]) for k in (0, 1) for end in (low, high)]
    assert counts == [100, 100, 50, 50]  # by their lengths: 2, 2, 1, 1
    start = physics.faces(31, low, high, 0, sides=[(0, 0)])
    assert start.shape == (31, 2) and (start[:, 0] == 0).all() and np.ptp(start[:, 1]) > 1.7


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
def test_points_of_balls_and_spheres(d: int) -> None:
    pytest.importorskip("scipy")
    center, radius = np.arange(1.0, d + 1), 2.0
    on = (physics.sphere(20_000, center, radius, 0) - center) / radius
    np.testing.assert_allclose(np.linalg.norm(on, axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(on.mean(0), 0, atol=0.02)
    np.testing.assert_allclose(on.T @ on / len(on), np.eye(d) / d, atol=0.02)
    inside = (physics.ball(20_000, center, radius, 0) - center) / radius
    np.testing.assert_allclose(inside.mean(0), 0, atol=0.02)
    share = np.mean(np.linalg.norm(inside, axis=1) < 0.7)
    assert abs(share - 0.7**d) < 0.01 and np.linalg.norm(inside, axis=1).max() <= 1


def test_points_by_size() -> None:
    candidates = np.arange(20_000.0)[:, None]
    size = np.where(candidates < 10_000, 3.0, 1.0)  # with the floor, shares of 2.5 and 1.5
    picked = physics.by_size(candidates, -size, 2000, 0)
    assert len(np.unique(picked)) == 2000
    assert abs(np.mean(picked < 10_000) - 2.5 / 4) < 0.03
    assert physics.by_size(candidates, 0 * size, 5, 0).shape == (5, 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: physics.box(5, [0, 1], [1, 1]), "each low end below its high one"),
        (lambda: physics.box(0, [0], [1]), "n must be at least 1"),
        (lambda: physics.box(5, [0], [1], method="grid"), "'grid'"),
        (lambda: physics.faces(5, [0], [1], sides=[(1, 0)]), "axis below 1"),
        (lambda: physics.ball(5, [0, 0], -1), "radius positive"),
        (lambda: physics.by_size(np.zeros((3, 1)), np.zeros(3), 4), "n from 1 to m"),
        (lambda: physics.by_size(np.zeros((3, 1)), [1, np.nan, 1], 2), "finite"),
        (lambda: physics.periodic(gc.Tensor(np.zeros((2, 1))), 0.0), "period must be positive"),
        (lambda: physics.fourier(gc.Tensor(np.zeros((2, 1))), np.zeros((2, 3))), "frequencies"),
        (lambda: physics.vanishing(gc.Tensor(np.zeros((2, 1))), [0, 0], [1, 1]), r"\[n, 2\]"),
        (lambda: physics.Course(target=1e-3), "a target needs an error"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_without_scipy_the_way_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(ImportError, match='method="uniform"'):
        physics.box(5, [0], [1])
    assert physics.box(5, [0], [1], 0, "uniform").shape == (5, 1)


def test_inputs_are_those_of_numpy() -> None:
    x = np.random.default_rng(0).normal(size=(6, 2))
    found = physics.periodic(gc.Tensor(x), 3.0, 2).asnumpy()
    angle = 2 * np.pi * x / 3
    want = np.hstack([np.cos(angle), np.cos(2 * angle), np.sin(angle), np.sin(2 * angle)])
    np.testing.assert_allclose(found, want, atol=1e-14)
    b = np.random.default_rng(1).normal(size=(2, 5))
    found = physics.fourier(gc.Tensor(x), b).asnumpy()
    np.testing.assert_allclose(found, np.hstack([np.cos(x @ b), np.sin(x @ b)]), atol=1e-14)


def test_conditions_hold_by_construction() -> None:
    low, high = [0.0, -1.0], [1.0, 1.0]
    x = np.array([[0.0, 0.3], [0.4, -1.0], [0.4, 1.0], [1.0, 0.2], [0.25, 0.5]])
    all_sides = physics.vanishing(gc.Tensor(x), low, high).asnumpy()
    np.testing.assert_allclose(all_sides[:, 0], [0, 0, 0, 0, 0.25 * 0.75 * 0.75 * 0.25])
    some = [(0, 0), (1, 0), (1, 1)]
    u = physics.constrained(
        lambda p: ops.exp(p[:, :1]),
        lambda p: ops.sin(p[:, 1:]),
        lambda p: physics.vanishing(p, low, high, some),
    )
    want = np.sin(x[:, 1]) + x[:, 0] * (x[:, 1] + 1) / 2 * (1 - x[:, 1]) / 2 * np.exp(x[:, 0])
    np.testing.assert_allclose(u(gc.Tensor(x)).asnumpy()[:, 0], want, rtol=1e-14)


def test_given_functions_are_added_with_smooth_factors() -> None:
    x = np.random.default_rng(0).uniform(0.1, 1, (5, 2))
    u = physics.enriched(
        lambda p: ops.concat((p, p * p, ops.exp(p)), 1), lambda p: ops.sqrt(p[:, :2])
    )
    root = np.sqrt(x)
    want = x + root[:, :1] * x**2 + root[:, 1:] * np.exp(x)
    np.testing.assert_allclose(u(gc.Tensor(x)).asnumpy(), want, rtol=1e-14)
    (slope,) = gc.partials(u, [(0,)])(gc.Tensor(x))
    want_x = 1 + 2.5 * x[:, 0] ** 1.5 + root[:, 1] * np.exp(x[:, 0])  # of the first number
    np.testing.assert_allclose(slope.asnumpy()[:, 0], want_x, rtol=1e-13)
    with pytest.raises(ValueError, match="a multiple of 3 numbers"):
        physics.enriched(lambda p: p, lambda p: p)(gc.Tensor(x))


def linear() -> tuple[list[Any], gc.Parameter, tuple[Any, Any], list[Any]]:
    """Residuals a w - b and 10 c w, whose gradients are known."""
    random = np.random.default_rng(2)
    a, b, c = random.normal(size=(7, 3)), random.normal(size=7), random.normal(size=(4, 3))
    w = gc.Parameter(gc.Tensor(np.array([0.3, -0.2, 0.5])), name="w")
    residuals = [
        lambda a, b: ops.matmul(a, ops.reshape(w, (3, 1)))[:, 0] - b,
        lambda c: 10 * ops.matmul(c, ops.reshape(w, (3, 1)))[:, 0],
    ]
    return residuals, w, ((a, b), c), [a, a @ w.asnumpy() - b, 10 * c, 10 * c @ w.asnumpy()]


def test_weights_by_ntk() -> None:
    residuals, w, points, (j1, _, j2, _) = linear()
    traces = np.array([np.mean(np.sum(j**2, 1)) for j in (j1, j2)])
    found = physics.weights_by_ntk(residuals, [w], *points)
    np.testing.assert_allclose(found, traces.sum() / traces, rtol=1e-12)


def test_weights_by_variance() -> None:
    residuals, w, points, (j1, r1, j2, r2) = linear()
    spread = np.array([np.std(2 * j.T @ r / len(r)) for j, r in ((j1, r1), (j2, r2))])
    found = physics.weights_by_variance(residuals, [w], *points)
    np.testing.assert_allclose(found, spread.max() / spread, rtol=1e-12)


def test_weights_of_a_function_without_gradient() -> None:
    residuals, w, points, _ = linear()
    with pytest.raises(ValueError, match="not all zero"):
        physics.weights_by_ntk([residuals[0], lambda c: c[:, 0]], [w], *points)


def wave() -> tuple[nn.Cell, Any, gc.Tensor]:
    gc.set_seed(3)
    net = nn.SequentialCell(
        nn.Dense(1, 8, dtype=gc.float64), nn.Tanh(), nn.Dense(8, 1, dtype=gc.float64)
    )
    x = gc.Tensor(np.linspace(0, 1, 30)[:, None])
    return net, (lambda x: net(x) - ops.sin(3 * x)), x


def test_the_course_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net, residuals, x = wave()
    want = np.sin(3 * x.asnumpy())

    def error() -> float:
        return float(np.linalg.norm(net(x).asnumpy() - want) / np.linalg.norm(want))

    course = physics.Course(error, every=0.0, steps=200, target=1e-3)
    state = gc.GaussNewton(residuals, net.trainable_params()).run(200, x, callback=course)
    assert state.reason == "stopped" and course.points[-1][2] <= 1e-3 < course.points[-2][2]
    assert course.points[-1][1] == state.loss
    told = capsys.readouterr().out.splitlines()
    assert len(told) == len(course.points) and "error" in told[0] and "s left" in told[0]
    pytest.importorskip("matplotlib")
    course.plot(tmp_path / "course.png", "sin 3x")
    assert (tmp_path / "course.png").stat().st_size > 5_000
    with pytest.raises(ValueError, match="no step"):
        physics.Course().plot(tmp_path / "none.png")


def test_callbacks_of_quasi_newton_runs_see_the_point() -> None:
    net, residuals, x = wave()

    def loss(x: gc.Tensor) -> gc.Tensor:
        return ops.square(residuals(x)).mean()

    seen = []

    def noted(state: gc.SolverState) -> None:
        seen.append((state.loss, float(loss(x))))

    gc.SSBroyden(loss, net.trainable_params(), x).run(20, callback=noted)
    np.testing.assert_allclose(*np.array(seen).T, rtol=1e-12)


def by_hand(values: np.ndarray, gradient: Any, rates: Any) -> np.ndarray:
    """Adam in NumPy, with MindSpore's epsilon outside of the correction."""
    m, v = np.zeros_like(values), np.zeros_like(values)
    for t, rate in enumerate(rates, 1):
        g = gradient(values)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        scale = rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        values = values - scale * m / (np.sqrt(v) + 1e-8)
    return values


@pytest.mark.parametrize("rate", [0.1, [0.1, 0.05, 0.02, 0.01, 0.01, 0.3]])
def test_adam_comes_first(rate: Any) -> None:
    residuals, w, points, (a, _, c, _) = linear()
    b = points[0][1]

    def gradient(w: np.ndarray) -> np.ndarray:
        return 2 * a.T @ (a @ w - b) / 7 + 2 * c.T @ (c @ w) / 4

    rates = [0.1 * (0.505 + 0.495 * np.cos(np.pi * k / 5)) for k in range(6)]
    want = by_hand(w.asnumpy(), gradient, rates if rate == 0.1 else rate)
    states: list[Any] = []

    def watch(state: Any) -> bool:
        states.append(state)
        return len(states) == 6

    solver = gc.GaussNewton(residuals, [w])
    assert solver.run(5, *points, adam=6, rate=rate, callback=watch).reason == "stopped"
    assert [s.reason for s in states] == ["adam"] * 6 and solver.steps == 0
    np.testing.assert_allclose(w.asnumpy(), want, rtol=1e-5)
    assert solver.run(5, *points, adam=2).loss < states[-1].loss and solver.steps > 0


def test_adam_before_a_quasi_newton_method() -> None:
    net, residuals, x = wave()

    def loss(x: gc.Tensor) -> gc.Tensor:
        return ops.square(residuals(x)).mean()

    solver = gc.SSBroyden(loss, net.trainable_params(), x)
    before = float(loss(x))
    assert solver.run(0, adam=50, rate=1e-2).reason == "steps"
    between = float(loss(x))
    assert between < before and solver.run(30).fun < 0.1 * between


def test_adam_keeps_the_last_good_parameters() -> None:
    w = gc.Parameter(gc.Tensor(np.array([0.02])), name="w")

    def residuals(x: gc.Tensor) -> gc.Tensor:
        return ops.sqrt(w) * x  # no number below 0

    state = gc.GaussNewton(residuals, [w]).run(5, np.ones((3, 1)), adam=50, rate=0.015)
    assert state.reason == "not finite" and "last good step" in state.message
    assert np.isnan(state.loss)
    kept = w.asnumpy().copy()
    solver = gc.LBFGS(lambda x: ops.square(residuals(x)).mean(), [w], gc.Tensor(np.ones((3, 1))))
    assert solver.run(5, adam=5).reason == "not finite"
    np.testing.assert_array_equal(w.asnumpy(), kept)


@pytest.mark.parametrize(("adam", "rate"), [(-1, 0.1), (3, 0.0), (3, [0.1, 0.1])])
def test_schedules_that_do_not_fit(adam: int, rate: Any) -> None:
    residuals, w, points, _ = linear()
    with pytest.raises(ValueError, match="one for each of Adam's steps"):
        gc.GaussNewton(residuals, [w]).run(5, *points, adam=adam, rate=rate)
