"""Covariances of fitted parameters, estimates of solutions' errors, and pictures of bands."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops, physics

X = np.linspace(0, 2, 30)


def network(inputs: int, width: int, outputs: int = 1, seed: int = 0) -> nn.SequentialCell:
    gc.set_seed(seed)
    options = {"dtype": gc.float64, "weight_init": "xavier_uniform"}
    return nn.SequentialCell(
        nn.Dense(inputs, width, **options), nn.Tanh(),
        nn.Dense(width, width, **options), nn.Tanh(),
        nn.Dense(width, outputs, **options),
    )  # fmt: skip


def decay(noise: float, seed: int, dtype: Any = np.float64) -> Any:
    """Parameters a, b of a exp(-b x), fitted to data with noise, the residuals, and NumPy's Jacobian."""
    p = Parameter(Tensor(np.array([1.0, 1.0], dtype)), name="p")
    y = 2 * np.exp(-0.7 * X) + noise * np.random.default_rng(seed).normal(size=X.size)

    def misfit(x: Tensor, y: Tensor) -> Tensor:
        return p[0] * ops.exp(-p[1] * x) - y

    def jacobian(v: Any, x: Any = X) -> Any:
        return np.stack([np.exp(-v[1] * x), -v[0] * x * np.exp(-v[1] * x)], 1)

    return p, misfit, y, jacobian


# Covariances ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, digits", [(np.float64, 1e-9), (np.float32, 1e-4)])
@pytest.mark.parametrize("noise", [None, 0.3])
def test_of_measurements_alone_it_is_that_of_least_squares(
    noise: Any, dtype: Any, digits: float
) -> None:
    p, misfit, y, jacobian = decay(0.05, 0, dtype)
    solver = gc.GaussNewton(misfit, p, weights=[3.0])
    solver.run(50, X, y)
    found = solver.covariance(p, noise=noise)
    v = p.asnumpy().astype(np.float64)
    j, r = jacobian(v), v[0] * np.exp(-v[1] * X) - y
    s = noise or np.sqrt(r @ r / (30 - 2))
    want = s**2 * np.linalg.inv(j.T @ j)
    np.testing.assert_allclose(found.matrix, want, rtol=digits)
    np.testing.assert_allclose(found.noise, [s], rtol=digits)
    np.testing.assert_allclose(found.freedom, [28], rtol=digits)
    np.testing.assert_allclose(found.deviations, np.sqrt(np.diag(want)), rtol=digits)
    there = np.array([[0.0], [1.0], [5.0]])
    bars = found.of(lambda x: p[0] * ops.exp(-p[1] * x), there)
    at = jacobian(v, there[:, 0])
    assert bars.shape == (3, 1) and bars.dtype == np.float64
    np.testing.assert_allclose(bars[:, 0] ** 2, np.diag(at @ want @ at.T), rtol=10 * digits)


def test_true_values_are_inside_two_deviations_in_95_of_100() -> None:
    inside, bias = np.zeros(2), np.zeros(2)
    p, misfit, _, _ = decay(0, 0)
    solver = gc.GaussNewton(misfit, p)
    for seed in range(100):
        p.set_data(Tensor(np.array([1.5, 1.0])))
        solver.run(7, X, decay(0.05, seed)[2])
        off = (p.asnumpy() - [2, 0.7]) / solver.covariance(p).deviations
        inside, bias = inside + (np.abs(off) < 2), bias + off / 100
    assert (90 <= inside).all() and (inside <= 99).all() and np.abs(bias).max() < 0.3


def test_noises_of_two_instruments_are_told_apart() -> None:
    """Of two functions with a parameter in common; NumPy's sums of squares for the expected ones."""
    p = Parameter(Tensor(np.array([0.0, 0.0, 0.0])), name="p")
    random = np.random.default_rng(3)
    a, b = random.normal(size=(400, 3)), random.normal(size=(300, 3))
    y, z = a @ [1, 2, 3] + 0.1 * random.normal(size=400), b @ [1, 2, 3] + random.normal(size=300)
    row = lambda m, y: ops.matmul(m, ops.reshape(p, (3, 1))) - y  # noqa: E731
    fine, coarse = (lambda m, y: row(m, y)), (lambda m, y: row(m, y))
    solver = gc.GaussNewton([fine, coarse], p, weights=[4.0, 0.03])
    solver.run(20, (a, y[:, None]), (b, z[:, None]))
    found = solver.covariance([p], data=[fine, coarse])
    np.testing.assert_allclose(found.noise, [0.1, 1.0], rtol=0.1)
    # The fit is linear: how data with these noises spread it.
    w = np.concatenate([np.full(400, 4 / 400), np.full(300, 0.03 / 300)])
    m = np.concatenate([a, b])
    inverse = np.linalg.inv(m.T @ (w[:, None] * m)) @ m.T * w
    s = np.repeat(found.noise, [400, 300])
    np.testing.assert_allclose(found.matrix, inverse * s**2 @ inverse.T, rtol=1e-9)
    rest = np.eye(700) - m @ inverse
    left = rest @ np.concatenate([y, z])
    for part in (slice(400), slice(400, 700)):
        assert np.sum(left[part] ** 2) == pytest.approx(np.sum(rest[part] ** 2 * s**2), rel=1e-9)


def pendulum(times: Any, measured: Any) -> Any:
    """A network for y'' + c y' + k y = 0 and log c, log k, fitted to measurements."""
    net = network(1, 8)
    unknown = [
        Parameter(Tensor(np.array([v])), name=n) for n, v in (("log_c", -0.8), ("log_k", 1.3))
    ]
    velocity = gc.grad(net)
    acceleration = gc.grad(velocity)

    def equation(t: Tensor) -> Tensor:
        c, k = (ops.exp(p) for p in unknown)
        return acceleration(t) + c * velocity(t) + k * net(t)

    def misfit(t: Tensor, y: Tensor) -> Tensor:
        return net(t) - y

    weights = [*net.trainable_params(), *unknown]
    solver = gc.GaussNewton([equation, misfit], weights, weights=[100, 1])
    data = times[:, None], measured[:, None]
    gc.GaussNewton(misfit, net.trainable_params()).run(15, *data)
    solver.run(60, np.linspace(0, 5, 60)[:, None], data)
    return solver, unknown, net, misfit


@pytest.mark.one_in(2)
def test_beside_a_network_it_is_that_of_the_equations_solutions() -> None:
    """SciPy fits the equation's exact solutions, with the two initial values unknown too."""
    optimize = pytest.importorskip("scipy.optimize")
    times = np.linspace(0, 5, 40)
    w = np.sqrt(4 - 0.2**2)
    true = np.exp(-0.2 * times) * (np.cos(w * times) + 0.2 / w * np.sin(w * times))
    measured = true + 0.02 * np.random.default_rng(1).normal(size=40)

    def curve(v: Any, t: Any) -> Any:
        c, k = np.exp(v[:2])
        w = np.sqrt(k - c * c / 4)
        return np.exp(-c / 2 * t) * (v[2] * np.cos(w * t) + v[3] * np.sin(w * t))

    start = [np.log(0.4), np.log(4), 1, 0.1]
    fit = optimize.least_squares(
        lambda v: curve(v, times) - measured, start, xtol=1e-14, ftol=1e-14
    )
    noise = np.sqrt(2 * fit.cost / (40 - 4))
    whole = noise**2 * np.linalg.inv(fit.jac.T @ fit.jac)

    solver, unknown, net, misfit = pendulum(times, measured)
    found = solver.covariance(unknown, data=misfit)
    np.testing.assert_allclose(found.noise, [noise], rtol=1e-3)
    np.testing.assert_allclose(found.freedom, [36], rtol=1e-2)
    np.testing.assert_allclose(found.matrix, whole[:2, :2], rtol=2e-2, atol=2e-3 * whole[0, 0])
    line = np.array([0.0, 1.3, 2.2, 5.0])
    slopes = optimize.approx_fprime(fit.x, lambda v: curve(v, line), 1e-7)
    want = np.sqrt(np.diag(slopes @ whole @ slopes.T))
    np.testing.assert_allclose(found.of(net, line[:, None])[:, 0], want, rtol=2e-2)
    assert np.isnan(found.of(net, np.array([[60.0]]))).all()  # where nothing is known


def test_of_what_cannot_be_known() -> None:
    p, misfit, y, _ = decay(0.05, 0)
    q = Parameter(Tensor(np.array([0.5, 0.5])), name="q")

    def both(x: Tensor, y: Tensor) -> Tensor:
        return misfit(x, y) + (q[0] + q[1]) * x  # only the sum of q's elements

    solver = gc.GaussNewton([both], [p, q])
    with pytest.raises(ValueError, match="no step has been taken"):
        solver.covariance(p)
    solver.run(60, X, y)
    with pytest.raises(ValueError, match="do not determine 'q'"):
        solver.covariance(q)
    known = solver.covariance(p)
    assert known.freedom[0] == pytest.approx(30 - 3)
    sums = known.of(lambda x: (q[0] + q[1]) * x, np.ones(1))
    assert np.isfinite(sums).all() and np.isnan(known.of(lambda x: q[0] * x, np.ones(1))).all()
    with pytest.raises(ValueError, match="'other' is not among"):
        solver.covariance(Parameter(Tensor(np.ones(1)), name="other"))
    with pytest.raises(ValueError, match="data must be residual functions of this solver"):
        solver.covariance(p, data=misfit)
    with pytest.raises(ValueError, match="positive standard deviation"):
        solver.covariance(p, noise=[1.0, 2.0])
    pair = gc.GaussNewton([both, misfit], [p, q])
    pair.run(1, (X, y), (X, y))
    with pytest.raises(ValueError, match="say which compare with measurements"):
        pair.covariance(p)
    close = gc.GaussNewton(misfit, p)
    close.run(20, X[::20], y[::20])
    with pytest.raises(ValueError, match=r"2 measurements .*misfit so closely.*Give noise"):
        close.covariance(p)
    assert close.covariance(p, noise=0.05).freedom[0] == pytest.approx(0, abs=1e-12)


def test_a_run_that_has_not_ended_is_told() -> None:
    p, misfit, y, _ = decay(0.05, 0)
    solver = gc.GaussNewton(misfit, p)
    solver.run(1, X, y)
    with pytest.warns(RuntimeWarning, match="would still change 'p' by"):
        solver.covariance(p)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver.run(30, X, y)
        solver.covariance(p)


def test_one_function_takes_its_points_in_a_tuple_too() -> None:
    found = []
    for listed, points in ((False, (X,)), (False, ((X,),)), (True, (X,)), (True, ((X,),))):
        p, misfit, y, _ = decay(0.05, 0)
        solver = gc.GaussNewton([misfit] if listed else misfit, p)
        solver.run(
            3, *[(*a, y) if isinstance(a, tuple) else a for a in points], *[y] * (points[0] is X)
        )
        found.append(p.asnumpy().tolist())
    assert all(f == found[0] for f in found)


# Errors of solutions --------------------------------------------------------------------------------------


def relative(found: float, true: float) -> float:
    return abs(found / true - 1)


def check(estimate: physics.ErrorEstimate, error: Any, *points: Any) -> None:
    """The estimate is within a fifth of the true error."""
    assert relative(estimate.max(*points), np.abs(error).max()) < 0.2
    assert relative(estimate.rms(*points), np.sqrt(np.mean(error**2))) < 0.2
    assert np.linalg.norm(estimate(*points) - error) < 0.2 * np.linalg.norm(error)


def bratu() -> Any:
    """u'' + exp(u) = 0 with u(0) = u(1) = 0 and its solution; t is sqrt(2) cosh(t / 4)."""
    t, net = 1.5171645990507543, network(1, 8)
    second = gc.laplacian(net)

    def exact(x: Any) -> Any:
        return -2 * np.log(np.cosh((x - 0.5) * t / 2) / np.cosh(t / 4))

    residuals = [lambda x: second(x) + ops.exp(net(x)), lambda x: net(x)]
    return net, residuals, exact


ENDS = np.array([[0.0], [1.0]])
LINE = np.linspace(0, 1, 301)[:, None]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("steps", [4, 25])
def test_a_nonlinear_equation_with_conditions(steps: int) -> None:
    net, residuals, exact = bratu()
    t = 1.5171645990507543
    assert t == pytest.approx(np.sqrt(2) * np.cosh(t / 4), rel=1e-14)
    weights = [1, 100]
    solver = gc.GaussNewton(residuals, net.trainable_params(), weights=weights)
    solver.run(steps, np.linspace(0, 1, 40)[:, None], ENDS)
    before = net(Tensor(LINE)).asnumpy()
    points = np.linspace(0, 1, 90)[:, None], ENDS
    estimate = physics.error_estimate(residuals, net, *points, weights=weights)
    assert estimate.left < 0.02 and "left=" in repr(estimate)
    check(estimate, exact(LINE) - before, LINE)
    np.testing.assert_array_equal(net(Tensor(LINE)).asnumpy(), before)


class Wave(nn.Cell):
    """Two functions of t that begin at 1 and 0 by construction."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network(1, 10, 2)

    def construct(self, t: Tensor) -> Tensor:
        return t * self.net(t) + Tensor(np.array([[1.0, 0.0]]))


def test_conditions_by_construction_and_two_functions() -> None:
    """u' = v, v' = -u, by functions that are compiled before."""
    wave = Wave()

    @gc.jit
    def equation(t: Tensor) -> Tensor:
        value, slope = gc.jvp(wave, (t,), (ops.ones_like(t),))
        return slope - ops.concat((value[:, 1:], -value[:, :1]), 1)

    gc.GaussNewton(equation, wave.trainable_params()).run(12, 3 * np.linspace(0, 1, 40)[:, None])
    t = 3 * LINE
    error = np.concatenate([np.cos(t), -np.sin(t)], 1) - wave(Tensor(t)).asnumpy()
    estimate = physics.error_estimate(equation, wave.net, 3 * LINE[::3], of=wave)
    check(estimate, error, t)
    assert estimate(t).shape == (301, 2) and np.abs(estimate(np.zeros((1, 1)))).max() == 0


def test_estimates_that_are_none_are_told() -> None:
    net, residuals, _ = bratu()
    points = LINE[::10], ENDS
    with pytest.warns(
        RuntimeWarning, match="leaves .* of the residuals .*so the estimate is a guess"
    ):
        physics.error_estimate(residuals, net, *points, second=nn.Dense(1, 1, dtype=gc.float64))
    other = network(1, 4)
    with pytest.raises(ValueError, match="do not call this network, a SequentialCell"):
        physics.error_estimate(residuals, other, *points)
    with pytest.raises(TypeError, match="must be the cell that was trained"):
        physics.error_estimate(residuals, lambda x: net(x), *points)
    with pytest.raises(ValueError, match="tolerance must be"):
        physics.error_estimate(residuals, net, *points, tolerance=1.5)
    with pytest.raises(ValueError, match="not all zero"):
        physics.error_estimate(lambda x: 0 * net(x), net, LINE)
    with pytest.raises(ValueError, match="give one as second"):
        physics.error_estimate(lambda x: net(ops.reshape(x, (1, -1, 1)))[0], net, LINE)


def test_a_band(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    half = np.where(LINE > 0.9, np.nan, 0.1)
    path = tmp_path / "band.png"
    measured = np.ones(3), np.zeros(3)
    physics.band(path, LINE, Tensor(LINE**2), half, exact=LINE[:, 0] ** 2, measured=measured)
    assert path.stat().st_size > 5_000
    with pytest.raises(ValueError, match=r"one number for each point.*\[301, 1\], \[2\]"):
        physics.band(path, LINE, LINE, [1.0, 2.0])
    with pytest.raises(ValueError, match="not be negative"):
        physics.band(path, LINE, LINE, -half)
