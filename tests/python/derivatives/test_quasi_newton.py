"""BFGS, SSBFGS and SSBroyden: the updates beside matrices in NumPy, the search, equations, saved states."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from rosenbrock import recorded_rosenbrock, rosenbrock, start_of_rosenbrock

import gradcell as gc
from gradcell import Parameter, Tensor, _core, nn, ops

UPDATES = ["bfgs", "ssbfgs", "ssbroyden"]
CLASSES = {"bfgs": gc.BFGS, "ssbfgs": gc.SSBFGS, "ssbroyden": gc.SSBroyden}


def broyden(b, s, y, update):
    """The next matrix B of second derivatives: Broyden's family with tau B and theta, written for B, as
    Al-Baali and Khalfan (2005) have it, equations 1, 2, 11 to 14."""
    n, sy, sbs = len(s), s @ y, s @ b @ s
    h = np.linalg.inv(b)
    tau, theta = 1.0, 0.0
    if update != "bfgs":
        tau = min(1, sy / sbs)
    if update == "ssbroyden":
        big_b, big_h = sbs / sy, y @ h @ y / sy
        a = big_h * big_b - 1
        rho = min(1, big_h * (1 - np.sqrt(a / (a + 1))))
        theta = max((rho - 1) / a, min(1 / rho, (1 - big_b) / big_b))
        sigma = 1 + theta * a
        root = abs(sigma) ** (1 / (1 - n))
        tau = tau * min(root, 1 / theta) if theta > 0 else min(tau * root, sigma)
    w = np.sqrt(sbs) * (y / sy - b @ s / sbs)
    scaled = b - np.outer(b @ s, b @ s) / sbs + theta * np.outer(w, w)
    return tau * scaled + np.outer(y, y) / sy


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("n", [2, 6])
def test_directions_are_those_of_the_updated_matrix(update, n):
    m = _core.DenseQuasiNewton(start_of_rosenbrock(n), update, 50, 0.0, 0.0)
    matrix, seen = None, 0
    point, (_, gradient) = m.point, rosenbrock(m.point)
    while seen < 15:
        if m.advance(*rosenbrock(m.wanted)) != "stepped":
            continue
        seen += 1
        after, new = m.point, rosenbrock(m.point)[1]
        s, y = after - point, new - gradient
        point, gradient = after, new
        if matrix is None:
            matrix = np.eye(n) * (y @ y) / (s @ y)
        matrix = broyden(matrix, s, y, update)
        np.testing.assert_allclose(matrix @ s, y, rtol=1e-8, atol=1e-8)
        assert np.linalg.eigvalsh(matrix).min() > 0
        want = -np.linalg.solve(matrix, gradient)
        np.testing.assert_allclose(m.wanted - point, want, rtol=1e-5, atol=1e-11)
        inverse = m.saved().reshape(n, n)
        np.testing.assert_allclose(inverse, inverse.T, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("n", [2, 10, 50])
def test_every_step_meets_the_strong_wolfe_conditions(update, n):
    m = _core.DenseQuasiNewton(start_of_rosenbrock(n), update, 50, 1e-7, 0.0)
    state, points = "search", [m.point]
    while state in ("search", "stepped") and len(points) < 2000:
        state = m.advance(*rosenbrock(m.wanted))
        if state == "stepped":
            points.append(m.point)
    assert state == "small gradient"
    np.testing.assert_allclose(m.point, 1, atol=1e-6)
    for before, after in pairwise(points[:-3]):
        (f0, g0), (f1, g1), s = rosenbrock(before), rosenbrock(after), after - before
        assert f1 <= f0 + 1e-4 * (g0 @ s) + 1e-15 * f0
        assert abs(g1 @ s) <= 0.9 * abs(g0 @ s) * (1 + 1e-9)


def test_bfgs_takes_no_more_evaluations_than_scipy():
    optimize = pytest.importorskip("scipy.optimize")
    start = start_of_rosenbrock(20)
    p = Parameter(Tensor(start), name="p")
    result = gc.BFGS(recorded_rosenbrock(p), p, gradient_tolerance=1e-6).run()
    theirs = optimize.minimize(rosenbrock, start, jac=True, method="BFGS", options={"gtol": 1e-6})
    assert result.reason == "small gradient" and result.nfev <= 1.25 * theirs.nfev + 5


@pytest.mark.parametrize("update", UPDATES)
def test_a_badly_scaled_quadratic(update):
    random = np.random.default_rng(1)
    n = 30
    q, _ = np.linalg.qr(random.normal(size=(n, n)))
    a, b = (q * np.geomspace(1e-3, 1e3, n)) @ q.T, random.normal(size=n)
    p = Parameter(Tensor(np.zeros(n)), name="p")
    matrix, right = Tensor(a), Tensor(b)

    def loss():
        return 0.5 * (p * ops.matmul(matrix, p)).sum() - (right * p).sum()

    result = CLASSES[update](loss, p).run(3000)
    want = np.linalg.solve(a, b)
    assert result.finished
    np.testing.assert_allclose(p.asnumpy(), want, atol=1e-4 * np.abs(want).max())


def poisson(width=10):
    gc.set_seed(0)
    options = {"dtype": gc.float64, "weight_init": "xavier_uniform", "bias_init": "zeros"}
    net = nn.SequentialCell(
        nn.Dense(1, width, **options), nn.Tanh(),
        nn.Dense(width, width, **options), nn.Tanh(),
        nn.Dense(width, 1, **options),
    )  # fmt: skip
    laplacian = gc.laplacian(net)
    x, ends = Tensor(np.linspace(0, 1, 60)[:, None]), Tensor(np.array([[0.0], [1.0]]))

    def loss(x):
        inside = laplacian(x) + np.pi**2 * ops.sin(np.pi * x)
        return ops.square(inside).mean() + 100 * ops.square(net(ends)).mean()

    def error():
        return float(np.abs(net(x).asnumpy() - np.sin(np.pi * x.asnumpy())).max())

    return net, loss, x, error


@pytest.mark.parametrize("update", ["ssbfgs", "ssbroyden"])
def test_scaled_updates_solve_an_equation_to_six_digits(update):
    net, loss, x, error = poisson()
    CLASSES[update](loss, net.trainable_params(), x).run(1500)
    assert error() < 1e-6


@pytest.mark.parametrize("method", ["lbfgs", *UPDATES])
def test_a_saved_state_goes_on_bit_by_bit(method):
    cls = CLASSES.get(method, gc.LBFGS)

    def run(stops):
        net, loss, x, _ = poisson(5)
        weights = net.trainable_params()
        solver = cls(loss, weights, x)
        for k in (20, 20):
            result = solver.run(k)
            state = solver.state_dict()
            if stops:
                for p in weights:
                    p.set_data(p * 0 + 0.5)
                solver = cls(loss, weights, x)
                solver.load_state_dict(state)
        return result.fun, result.x, state["steps"]

    (a, x, steps), (b, y, again) = run(False), run(True)
    assert a == b and steps == again == 40
    np.testing.assert_array_equal(x, y)


def test_matrices_of_any_number_of_threads_are_the_same():
    random = np.random.default_rng(0)
    n = 500
    q = random.normal(size=(n, n)) / n
    a = q @ q.T + np.diag(np.linspace(1, 50, n))
    found = []
    for threads in (1, 2, 3):
        gc.set_context(max_threads=threads)
        try:
            m = _core.DenseQuasiNewton(np.ones(n), "ssbroyden", 50, 0.0, 0.0)
            while m.steps < 8:
                x = m.wanted
                m.advance(float(x @ a @ x / 2), a @ x)
        finally:
            gc.set_context(max_threads=None)
        found.append(m.point)
    for point in found[1:]:
        np.testing.assert_array_equal(point, found[0])


def test_what_does_not_fit_is_refused():
    p = Parameter(Tensor(np.ones(3)), name="p")
    single = Parameter(Tensor(np.ones(3, np.float32)), name="p")
    with pytest.raises(ValueError, match="SSBFGS: the parameters must be float64, not float32"):
        gc.SSBFGS(lambda: ops.square(single).sum(), single)
    with pytest.raises(ValueError, match="SSBroyden: the tolerances must not be negative"):
        gc.SSBroyden(lambda: ops.square(p).sum(), p, value_tolerance=-1)
    solver = gc.BFGS(lambda: ops.square(p).sum(), p)
    solver.run(2)
    with pytest.raises(ValueError, match="the state must be one of SSBFGS for 3 elements"):
        gc.SSBFGS(lambda: ops.square(p).sum(), p).load_state_dict(solver.state_dict())
    with pytest.raises(ValueError, match="saved state is of another method, or of other sizes"):
        solver.load_state_dict({**solver.state_dict(), "curvature": np.zeros(4)})


def test_a_loss_that_is_not_finite_keeps_the_parameters():
    p = Parameter(Tensor(np.array([2.0, 3.0])), name="p")
    solver = gc.SSBroyden(lambda s: s * ops.square(p).sum(), p, Tensor(1.0, gc.float64))
    assert solver.run(1).nit == 1
    kept = p.asnumpy().copy()
    result = solver.run(5, Tensor(float("nan"), gc.float64))
    assert result.reason == "not finite"
    np.testing.assert_array_equal(p.asnumpy(), kept)


@pytest.mark.parametrize("method", ["lbfgs", "ssbroyden"])
def test_interruptions_and_errors_leave_the_best_point(method):
    p = Parameter(Tensor(start_of_rosenbrock(6)), name="p")
    evaluate = recorded_rosenbrock(p)
    solver = CLASSES.get(method, gc.LBFGS)(evaluate, p)
    solver.run(5)

    def fails(error):
        evaluate = solver.loss.evaluate

        def once(vector):
            evaluate(vector)  # the parameters are a trial point now
            solver.loss.evaluate = evaluate
            raise error

        return once

    best = p.asnumpy().copy()
    solver.loss.evaluate = fails(KeyboardInterrupt())
    result = solver.run(5)
    assert result.reason == "interrupted" and "best point" in result.message
    np.testing.assert_array_equal(p.asnumpy(), best)
    solver.loss.evaluate = fails(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        solver.run(5)
    np.testing.assert_array_equal(p.asnumpy(), best)
    # It goes on as if nothing had been.
    q = Parameter(Tensor(start_of_rosenbrock(6)), name="q")
    other = CLASSES.get(method, gc.LBFGS)(recorded_rosenbrock(q), q)
    other.run(5)
    assert solver.run(7).fun == other.run(7).fun


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float32", "complex64"])
def test_a_gradient_of_another_dtype_is_no_gradient_of_the_point(dtype):
    """int64 has the size of float64's elements, and is no float64."""
    m = _core.DenseQuasiNewton(np.ones(3), "bfgs", 50, 0.0, 0.0)
    with pytest.raises(TypeError, match=f"The gradient is of {dtype}, the point of float64"):
        m.run(lambda x: (Tensor(1.0), Tensor(np.ones(3, dtype))), (), 5, 0)
