"""gradcell.GaussNewton: its steps beside NumPy's arithmetic, equations solved by it, bad input."""

from __future__ import annotations

import signal
import warnings

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops

X = np.linspace(0, 1, 12)
Y = 2 * np.exp(-1.3 * X) + 0.1 * np.cos(7 * X)


def curve(dtype=np.float64, size=3):
    """Residuals p0 exp(p1 x) + sum of p_k x^k - y, the parameter, and NumPy's residuals and Jacobian
    and second derivative along a direction."""
    p = Parameter(Tensor(np.linspace(1.0, -0.4, size).astype(dtype)), name="p")

    def residuals(x, y):
        powers = sum(p[k] * x ** (k - 1) for k in range(2, size))
        return p[0] * ops.exp(p[1] * x) + powers - y

    def numbers(v, x, y):
        e = np.exp(v[1] * x)
        rest = [x ** (k - 1) for k in range(2, size)]
        r = v[0] * e + sum(v[k + 2] * c for k, c in enumerate(rest)) - y
        return r, np.stack([e, v[0] * x * e, *rest], 1)

    def second(v, s, x):
        e = np.exp(v[1] * x)
        return 2 * s[0] * s[1] * x * e + v[0] * s[1] ** 2 * x**2 * e

    return p, residuals, numbers, second


@pytest.mark.parametrize("count, size", [(12, 3), (2, 5), (5, 5)])
@pytest.mark.parametrize("acceleration", [False, True])
def test_a_step_is_the_damped_least_squares_solution(count, size, acceleration):
    p, residuals, numbers, second = curve(size=size)
    x, y = X[:count], Y[:count]
    solver = gc.GaussNewton(residuals, p, damping=0.3, steps=[0.5], acceleration=acceleration)
    v = p.asnumpy().copy()
    state = solver.step(Tensor(x), Tensor(y))
    r, j = (a / np.sqrt(count) for a in numbers(v, x, y))
    matrix = j.T @ j + 0.3 * np.eye(size)
    s = -np.linalg.solve(matrix, j.T @ r)
    want = v + 0.5 * s
    if acceleration:
        bend = -np.linalg.solve(matrix, j.T @ (second(v, s, x) / np.sqrt(count)))
        want = want + 0.5 * 0.25 * bend
    assert state.reason == "stepped" and state.step == 0.5 and state.damping == 0.3
    np.testing.assert_allclose(p.asnumpy(), want, rtol=1e-11)
    np.testing.assert_allclose(state.before, r @ r, rtol=1e-13)
    np.testing.assert_allclose(state.loss, np.mean(numbers(want, x, y)[0] ** 2), rtol=1e-12)
    np.testing.assert_allclose(state.gradient, np.abs(2 * j.T @ r).max(), rtol=1e-12)
    foretold = r @ r - np.sum((r + 0.5 * j @ s) ** 2)
    np.testing.assert_allclose(state.ratio, (state.before - state.loss) / foretold, rtol=1e-9)


@pytest.mark.parametrize("count, size", [(12, 3), (3, 6)])
def test_momentum_stays_close_to_the_last_direction(count, size):
    p, residuals, numbers, _ = curve(size=size)
    solver = gc.GaussNewton(
        residuals, p, damping=0.5, momentum=0.8, steps=[0.5], acceleration=False
    )
    last = np.zeros(size)
    for k in range(4):
        x, y = X[:count] ** (1 + k / 10), Y[:count]
        v, d = p.asnumpy().copy(), solver.damping
        state = solver.step(Tensor(x), Tensor(y))
        r, j = (a / np.sqrt(count) for a in numbers(v, x, y))
        matrix = j.T @ j + d * np.eye(size)
        s = np.linalg.solve(matrix, d * 0.8 * last - j.T @ r)
        last = s if state.step else 0 * s
        np.testing.assert_allclose(p.asnumpy(), v + state.step * s, rtol=1e-9)


def test_blocks_weigh_their_mean_squares():
    p, residuals, numbers, _ = curve()
    q = Parameter(Tensor(np.array([0.3, 0.1])), name="q")

    def pair(x):
        return ops.stack((q[0] * x - p[0], q[1] * x * x + q[0]), 1)

    solver = gc.GaussNewton(
        [residuals, pair], [p, q], weights=[2, 5], damping=0.1, steps=[1.0], acceleration=False
    )
    v, w, z = p.asnumpy().copy(), q.asnumpy().copy(), X[:7]
    state = solver.step((Tensor(X), Tensor(Y)), Tensor(z))
    r, j = numbers(v, X, Y)
    r2 = np.stack([w[0] * z - v[0], w[1] * z * z + w[0]], 1).reshape(-1)
    zero, one = np.zeros(7), np.ones(7)
    j2 = np.stack(
        [
            np.stack([-one, zero], 1).reshape(-1),
            np.zeros(14),
            np.zeros(14),
            np.stack([z, one], 1).reshape(-1),
            np.stack([zero, z * z], 1).reshape(-1),
        ],
        1,
    )
    a, b = np.sqrt(2 / 12), np.sqrt(5 / 14)
    r = np.concatenate([a * r, b * r2])
    j = np.concatenate([a * np.hstack([j, np.zeros((12, 2))]), b * j2])
    s = -np.linalg.solve(j.T @ j + 0.1 * np.eye(5), j.T @ r)
    np.testing.assert_allclose(state.before, r @ r, rtol=1e-13)
    np.testing.assert_allclose(
        np.concatenate([p.asnumpy(), q.asnumpy()]), np.concatenate([v, w]) + s, rtol=1e-10
    )


@pytest.mark.parametrize("dtype, least", [(np.float64, 1e-25), (np.float32, 1e-11)])
def test_residuals_that_can_be_zero_become_zero(dtype, least):
    p = Parameter(Tensor(np.array([-1.2, 1.0], dtype)), name="p")
    solver = gc.GaussNewton(
        lambda: ops.stack((10 * (p[1] - p[0] * p[0]), 1 - p[0]), 0), p, loss_tolerance=least
    )
    state = solver.run(100)
    assert state.reason == "small loss" and state.loss <= least
    np.testing.assert_allclose(p.asnumpy(), 1, rtol=np.sqrt(least) * 100)


def test_it_ends_at_a_minimum_that_is_not_zero():
    p, residuals, numbers, _ = curve()
    solver = gc.GaussNewton(residuals, p)
    state = solver.run(200, Tensor(X), Tensor(Y))
    assert state.reason == "no lower point" and state.finished and "minimum" in state.message
    optimize = pytest.importorskip("scipy.optimize")
    start = p.asnumpy() + 0.02  # there may be other minima
    best = optimize.least_squares(lambda v: numbers(v, X, Y)[0], start, xtol=1e-15, gtol=1e-15)
    np.testing.assert_allclose(state.loss, np.mean(best.fun**2), rtol=1e-10)
    assert state.gradient < 1e-7


def network(seed=0, width=8, dtype=gc.float64, inputs=2):
    gc.set_seed(seed)
    options = {"dtype": dtype, "weight_init": "xavier_uniform", "bias_init": "zeros"}
    return nn.SequentialCell(
        nn.Dense(inputs, width, **options), nn.Tanh(),
        nn.Dense(width, width, **options), nn.Tanh(),
        nn.Dense(width, 1, **options),
    )  # fmt: skip


def poisson(seed=0, width=12):
    """A network for -(u_xx + u_yy) = 2 pi^2 u, with u = sin(pi x) sin(pi y), residuals and points."""
    random = np.random.default_rng(seed)
    net = network(seed, width)
    laplacian = gc.laplacian(net)
    inside, along = random.random((300, 2)), np.linspace(0, 1, 24)

    def exact(x):
        return np.sin(np.pi * x[:, :1]) * np.sin(np.pi * x[:, 1:])

    sides = [
        np.stack(f, 1) for v in (0, 1) for f in ((along, 0 * along + v), (0 * along + v, along))
    ]
    points = [
        (Tensor(inside), Tensor(2 * np.pi**2 * exact(inside))),
        Tensor(np.concatenate(sides)),
    ]

    def error():
        x = random.random((2000, 2))
        return np.linalg.norm(net(Tensor(x)).asnumpy() - exact(x)) / np.linalg.norm(exact(x))

    return net, [lambda x, f: laplacian(x) + f, net], points, error


@pytest.mark.one_in(2)
def test_a_poisson_equation_to_six_digits():
    net, residuals, points, error = poisson()
    solver = gc.GaussNewton(
        residuals, net.trainable_params(), weights=[1, 100], loss_tolerance=1e-11
    )
    state = solver.run(400, *points)
    assert state.reason == "small loss"
    assert error() < 1e-6


@pytest.mark.parametrize("rows", [1, 5, 12, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_in_parts_take_the_same_steps(rows, dtype):
    """Of blocks whose points no part divides, that give two numbers for each, and that combine points."""
    found = []
    for option in (None, rows):
        p, residuals, *_ = curve(dtype, size=5)

        def pairs(x, residuals=residuals):
            r = residuals(x, x * 0 + 0.5)
            return ops.stack([r, r * x], 1)

        def whole(x, p=p):
            return ops.reshape(x.mean() * p[:1] - 1, (1,))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = gc.GaussNewton(
                [residuals, pairs, whole], p, weights=[1, 2, 3], rows=option, damping=0.1
            )
            end = solver.run(
                6, tuple(a.astype(dtype) for a in (X, Y)), X[:7].astype(dtype), X.astype(dtype)
            )
        found.append((p.asnumpy(), end.loss))
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=tolerance, atol=tolerance)
    assert found[1][1] == pytest.approx(found[0][1], rel=tolerance)
    with pytest.raises(ValueError, match="rows must be at least 1"):
        gc.GaussNewton(residuals, p, rows=0)
    with pytest.raises(ValueError, match='"cg" has no rows'):
        gc.GaussNewton(residuals, p, rows=4, method="cg")


def test_the_plan_is_one():
    net, residuals, points, _ = poisson()
    solver = gc.GaussNewton(residuals, net.trainable_params(), weights=[1, 100])
    solver.step(*points)
    before = gc._core.plan_cache_info()
    solver.step(*points)
    after = gc._core.plan_cache_info()
    # Nor is a plan looked for.
    assert after["runs"] > before["runs"]
    assert (after["misses"], after["hits"]) == (before["misses"], before["hits"])


def test_steps_are_the_same_for_any_number_of_threads():
    found = []
    for threads in (1, 2, 3):
        gc.set_context(max_threads=threads)
        try:
            net, residuals, points, _ = poisson(width=20)
            solver = gc.GaussNewton(residuals, net.trainable_params())
            losses = [solver.step(*points).loss for _ in range(5)]
        finally:
            gc.set_context(max_threads=None)
        found.append((losses, [p.asnumpy().copy() for p in net.trainable_params()]))
    for losses, parameters in found[1:]:
        assert losses == found[0][0]
        for a, b in zip(parameters, found[0][1], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_saved_state_goes_on_bit_by_bit(momentum):
    def run(stop):
        net, residuals, points, _ = poisson()
        weights = net.trainable_params()
        solver = gc.GaussNewton(residuals, weights, momentum=momentum)
        for k in range(12):
            if k == stop:
                state = solver.state_dict()
                solver = gc.GaussNewton(residuals, weights, momentum=momentum)
                solver.load_state_dict(state)
            last = solver.step(*points)
        return last, [p.asnumpy().copy() for p in weights]

    (whole, a), (resumed, b) = run(-1), run(6)
    assert whole == resumed and whole.steps == 12
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def test_new_points_and_other_counts_of_them():
    net = network(inputs=1)
    solver = gc.GaussNewton(lambda x: net(x) - ops.sin(3 * x), net.trainable_params())
    random = np.random.default_rng(0)

    def points(step):
        return Tensor(random.random((40 + step % 3, 1)))

    state = solver.run(150, resample=points)
    assert state.loss < 1e-7 and state.reason == "steps"


def test_residuals_that_combine_points():
    """An integral as one residual, and residuals that share a mean, which warn."""
    p = Parameter(Tensor(np.array([0.2, 0.5])), name="p")
    x = np.linspace(0, 1, 9)

    def integral(x):
        return ops.reshape((p[0] + p[1] * x * x).mean() - 1.0, [1])

    def centred(x):
        values = p[0] * ops.exp(p[1] * x)
        return values - values.mean() - x

    solver = gc.GaussNewton([integral, centred], p, damping=1e-2, steps=[1.0], acceleration=False)
    v = p.asnumpy().copy()
    with pytest.warns(RuntimeWarning, match=r"centred.*combine points"):
        solver.step(Tensor(x), Tensor(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.GaussNewton(integral, p).step(Tensor(x))
    e = np.exp(v[1] * x)
    r = np.concatenate([[v[0] + v[1] * np.mean(x**2) - 1], (v[0] * (e - e.mean()) - x) / 3])
    c = np.stack([e, v[0] * x * e], 1)
    j = np.concatenate([[[1, np.mean(x**2)]], (c - c.mean(0)) / 3])
    want = v - np.linalg.solve(j.T @ j + 0.01 * np.eye(2), j.T @ r)
    p.set_data(Tensor(v))
    again = gc.GaussNewton([integral, centred], p, damping=1e-2, steps=[1.0], acceleration=False)
    with pytest.warns(RuntimeWarning):
        again.step(Tensor(x), Tensor(x))
    np.testing.assert_allclose(p.asnumpy(), want, rtol=1e-10)


# Bad input ----------------------------------------------------------------------------------------------


def test_residuals_that_are_no_vectors():
    net = network()
    x = Tensor(np.zeros((5, 2)))
    for residuals, got in [
        (lambda x: ops.square(net(x)).mean(), r"Float64 \[\]"),
        (lambda x: (net(x), net(x)), "tuple"),
        (lambda x: net(x).astype(gc.float32), "Float32"),
    ]:
        with pytest.raises(ValueError, match=f"must give a vector of residuals.*{got}"):
            gc.GaussNewton(residuals, net.trainable_params()).step(x)


def test_options_and_points_that_do_not_fit():
    net = network()
    weights = net.trainable_params()
    for options, message in [
        ({"weights": [1, 2]}, "a positive number for each of the 1"),
        ({"weights": [-1]}, "positive"),
        ({"steps": []}, "steps must be positive"),
        ({"momentum": 1.0}, "momentum must be"),
        ({"damping": 0.0}, "damping positive"),
    ]:
        with pytest.raises(ValueError, match=message):
            gc.GaussNewton(net, weights, **options)
    with pytest.raises(ValueError, match="all be float32 or all float64"):
        gc.GaussNewton(net, [weights[0], Parameter(Tensor(np.zeros(2, np.float32)))])
    two = gc.GaussNewton([net, net], weights)
    with pytest.raises(ValueError, match=r"2 residual functions.*got 1"):
        two.step(Tensor(np.zeros((5, 2))))
    with pytest.raises(ValueError, match=r"the same number of points.*\[4, 2\], \[5, 1\]"):
        gc.GaussNewton(lambda x, f: net(x) - f, weights).step(
            Tensor(np.zeros((4, 2))), Tensor(np.zeros((5, 1)))
        )
    with pytest.raises(ValueError, match="one is a tuple"):
        gc.GaussNewton(net, weights).step(((Tensor(np.zeros((5, 2))),),))
    with pytest.raises(ValueError, match="no points"):
        gc.GaussNewton(net, weights).step(Tensor(np.zeros((0, 2))))
    with pytest.raises(ValueError, match="must have damping, steps"):
        gc.GaussNewton(net, weights).load_state_dict({"direction": np.zeros(3)})
    with pytest.raises(ValueError, match="max_steps"):
        gc.GaussNewton(net, weights).run(-1, Tensor(np.zeros((5, 2))))


def test_numbers_that_are_not_finite_keep_the_last_good_parameters():
    net = network(inputs=1)
    solver = gc.GaussNewton(lambda x: net(x) - x, net.trainable_params())
    good = Tensor(np.linspace(0, 1, 9)[:, None])
    solver.run(3, good)
    kept = [p.asnumpy().copy() for p in net.trainable_params()]
    bad = np.linspace(0, 1, 9)[:, None]
    bad[4] = np.nan
    state = solver.run(5, Tensor(bad))
    assert state.reason == "not finite" and state.finished and "last good" in state.message
    for p, k in zip(net.trainable_params(), kept, strict=True):
        np.testing.assert_array_equal(p.asnumpy(), k)
    assert solver.step(good).reason == "stepped"


def test_momentum_forgets_what_was_not_finite():
    p, residuals, _, _ = curve()
    solver = gc.GaussNewton(residuals, p, momentum=0.5)
    solver.step(Tensor(X), Tensor(Y))
    bad = Y.copy()
    bad[2] = np.nan  # the Jacobian is finite
    assert solver.step(Tensor(X), Tensor(bad)).reason == "not finite"
    assert np.isfinite(solver.state_dict()["direction"]).all()
    state = solver.step(Tensor(X), Tensor(Y))
    assert state.reason == "stepped" and np.isfinite(p.asnumpy()).all()


def test_trial_points_where_the_loss_is_not_finite_are_passed_over():
    p = Parameter(Tensor(np.array([0.1])), name="p")
    options = {"acceleration": False, "damping": 1e-12, "loss_tolerance": 1e-20}
    solver = gc.GaussNewton(lambda: ops.log(p) + 2.0, p, **options)
    # The whole step from 0.1 is inside; from 8 it leads to negative numbers.
    p.set_data(Tensor(np.array([8.0])))
    state = solver.step()
    assert state.reason == "stepped" and 0 < state.step < 1 and np.isfinite(state.loss)
    assert solver.run(50).reason == "small loss"
    np.testing.assert_allclose(p.asnumpy(), np.exp(-2), rtol=1e-9)


def test_a_jacobian_without_full_rank():
    p = Parameter(Tensor(np.array([1.0, 2.0, 3.0])), name="p")
    x = Tensor(np.linspace(0, 1, 20))
    options = {"damping": 1e-30, "loss_tolerance": 1e-25}
    state = gc.GaussNewton(lambda x: (p[0] + p[1] + p[2]) * x - x, p, **options).run(50, x)
    assert state.reason == "small loss"
    np.testing.assert_allclose(p.asnumpy().sum(), 1, rtol=1e-10)


def test_a_residual_that_does_not_depend_on_the_parameters():
    p = Parameter(Tensor(np.array([1.0])), name="p")
    state = gc.GaussNewton(lambda x: x + 0 * p[0], p).run(50, Tensor(np.ones(4)))
    assert state.reason == "no lower point" and p.asnumpy()[0] == 1.0


def test_ctrl_c_leaves_whole_parameters():
    net, residuals, points, _ = poisson(width=20)
    weights = net.trainable_params()
    solver = gc.GaussNewton(residuals, weights)
    seen = []

    def keep(state):
        seen.append((state.loss, [p.asnumpy().copy() for p in weights]))

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        solver.step(*points)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        state = solver.run(5_000, *points, callback=keep)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert state.reason == "interrupted" and seen
    loss = gc.GaussNewton(residuals, weights)._loss(solver.blocks.given(points))
    assert float(loss) <= seen[-1][0]  # that step, or the whole one that the interruption met
    assert solver.step(*points).loss <= float(loss)


def test_an_error_in_the_residuals_changes_nothing():
    p, residuals, _, _ = curve()
    solver = gc.GaussNewton(residuals, p)
    solver.step(Tensor(X), Tensor(Y))
    kept, state = p.asnumpy().copy(), solver.state_dict()

    def fails(x, y):
        raise RuntimeError("mine")

    solver.blocks.functions[0] = fails
    with pytest.raises(RuntimeError, match="mine"):
        solver.step(Tensor(X[:5]), Tensor(Y[:5]))
    np.testing.assert_array_equal(p.asnumpy(), kept)
    assert solver.state_dict()["damping"] == state["damping"]


def test_runs_end_as_asked():
    p, residuals, _, _ = curve()
    points = Tensor(X), Tensor(Y)
    assert gc.GaussNewton(residuals, p).run(2, *points).reason == "steps"
    stopped = gc.GaussNewton(residuals, p).run(9, *points, callback=lambda s: True)
    assert stopped.reason == "stopped" and stopped.steps == 1
    assert gc.GaussNewton(residuals, p).run(9, *points, max_seconds=0).reason == "seconds"
    found = gc.GaussNewton(residuals, p, value_tolerance=1e-3).run(200, *points)
    assert found.reason in ("small decrease", "no lower point")


def test_progress_is_printed(capsys):
    p, residuals, _, _ = curve()
    gc.GaussNewton(residuals, p).run(4, Tensor(X), Tensor(Y), progress=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and "step 2, loss" in lines[0] and "left" in lines[0]
    assert "the limit max_steps was reached" in lines[-1]


# Conjugate gradients --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-7), (np.float32, 2e-3)])
@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_conjugate_gradients_take_the_same_steps(momentum, dtype, tolerance):
    found = []
    kind = gc.float64 if dtype is np.float64 else gc.float32
    x = Tensor(np.linspace(-1, 1, 60)[:, None], kind)
    for method in ("dense", "cg"):
        net = network(width=6, dtype=kind, inputs=1)
        solver = gc.GaussNewton(
            lambda x, net=net: net(x) - ops.sin(3 * x), net.trainable_params(), damping=0.05,
            momentum=momentum, method=method, rank=10, iterations=60,
        )  # fmt: skip
        states = [solver.step(x) for _ in range(3)]
        found.append(
            (states, np.concatenate([p.asnumpy().ravel() for p in net.trainable_params()]))
        )
    for a, b in zip(found[0][0], found[1][0], strict=True):
        assert a.step == b.step and a.reason == b.reason == "stepped"
        np.testing.assert_allclose(a.loss, b.loss, rtol=10 * tolerance)
        np.testing.assert_allclose(a.gradient, b.gradient, rtol=10 * tolerance)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=tolerance)


def test_a_sketch_makes_few_iterations_enough():
    """Of the same problem after as many steps of Gauss-Newton, beside conjugate gradients with a sketch of
    one direction."""
    errors = {}
    for rank in (1, 60):
        p = Parameter(Tensor(np.zeros(80)), name="p")
        random = np.random.default_rng(0)
        q, _ = np.linalg.qr(random.normal(size=(80, 80)))
        matrix = q * np.geomspace(1, 1e-4, 80)
        want = random.normal(size=80)
        a, b = Tensor(matrix), Tensor(matrix @ want)
        solver = gc.GaussNewton(
            lambda a, b, p=p: ops.matmul(a, p) - b, p, damping=1e-9, method="cg", rank=rank,
            iterations=8, acceleration=False, steps=[1.0],
        )  # fmt: skip
        state = solver.step(a, b)
        errors[rank] = state.loss / state.before
    assert errors[60] < 1e-2 * errors[1]


@pytest.mark.one_in(3)
def test_conjugate_gradients_with_more_parameters_than_a_matrix_has_room_for():
    net = network(width=150, inputs=2)
    laplacian = gc.laplacian(net)
    x = np.random.default_rng(0).random((200, 2))
    solver = gc.GaussNewton(
        lambda x: laplacian(x) - x[:, :1],
        net.trainable_params(),
        method="cg",
        rank=10,
        iterations=20,
    )
    assert solver.blocks.size > 23_000
    state = solver.run(6, Tensor(x))
    assert state.loss < 1e-2 * np.mean(x[:, :1] ** 2)


def test_conjugate_gradients_meet_numbers_that_are_not_finite():
    net = network(inputs=1)
    x = np.linspace(0, 1, 9)[:, None]
    solver = gc.GaussNewton(lambda x: net(x) - x, net.trainable_params(), method="cg")
    solver.step(Tensor(x))
    x[3] = np.inf
    kept = [p.asnumpy().copy() for p in net.trainable_params()]
    assert solver.step(Tensor(x)).reason == "not finite"
    for p, k in zip(net.trainable_params(), kept, strict=True):
        np.testing.assert_array_equal(p.asnumpy(), k)
    with pytest.raises(ValueError, match="method must be"):
        gc.GaussNewton(net, net.trainable_params(), method="lu")
