"""L-BFGS: the core's minimiser by itself and over Parameters, beside SciPy's and PyTorch's."""

from __future__ import annotations

import re
import signal
from itertools import pairwise

import numpy as np
import pytest
from rosenbrock import recorded_rosenbrock, rosenbrock, start_of_rosenbrock

import gradcell as gc
from gradcell import Parameter, Tensor, _core, ops

DTYPES = [np.float32, np.float64]


def minimise(f, start, steps=1000, history=10, gradient=0.0, value=0.0):
    """(minimiser, the state at the end, points by step, evaluations)."""
    cls = {np.dtype("f4"): _core.LbfgsFloat32, np.dtype("f8"): _core.LbfgsFloat64}[start.dtype]
    m = cls(start, history, 50, gradient, value)
    points, state, evaluations = [m.point], "search", 0
    while state in ("search", "stepped") and len(points) <= steps:
        state = m.advance(*f(m.wanted))
        evaluations += 1
        if state not in ("search", "not finite", "no lower point"):
            points.append(m.point)
    return m, state, points, evaluations


def test_every_step_meets_the_strong_wolfe_conditions():
    _, state, points, _ = minimise(rosenbrock, start_of_rosenbrock(10), gradient=1e-8)
    assert state == "small gradient" and len(points) > 20
    for before, after in pairwise(points[:-3]):
        (f0, g0), (f1, g1), s = rosenbrock(before), rosenbrock(after), after - before
        assert g0 @ s < 0
        assert f1 <= f0 + 1e-4 * (g0 @ s) + 1e-15 * f0
        assert abs(g1 @ s) <= 0.9 * abs(g0 @ s) * (1 + 1e-9)


@pytest.mark.parametrize("history", [1, 3, 10])
def test_directions_are_those_of_the_dense_inverse_hessian(history):
    m = _core.LbfgsFloat64(start_of_rosenbrock(6), history, 50, 0.0, 0.0)
    pairs, seen = [], 0
    (point, (_, gradient)) = m.point, rosenbrock(m.point)
    while seen < 15:
        if m.advance(*rosenbrock(m.wanted)) != "stepped":
            continue
        seen += 1
        after, new = m.point, rosenbrock(m.point)[1]
        pairs = [*pairs, (after - point, new - gradient)][-history:]
        point, gradient = after, new
        s, y = pairs[-1]
        inverse = np.eye(6) * (s @ y) / (y @ y)
        for s, y in pairs:
            v = np.eye(6) - np.outer(y, s) / (s @ y)
            inverse = v.T @ inverse @ v + np.outer(s, s) / (s @ y)
        np.testing.assert_allclose(m.wanted - point, -inverse @ gradient, rtol=1e-7, atol=1e-12)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("n", [2, 10, 100])
def test_it_takes_no_more_evaluations_than_scipy(n):
    optimize = pytest.importorskip("scipy.optimize")
    start = start_of_rosenbrock(n)
    m, state, _, evaluations = minimise(rosenbrock, start, gradient=1e-6)
    options = {"maxcor": 10, "ftol": 0, "gtol": 1e-6, "maxiter": 2000}
    theirs = optimize.minimize(rosenbrock, start, jac=True, method="L-BFGS-B", options=options)
    assert state == "small gradient"
    np.testing.assert_allclose(m.point, theirs.x, atol=1e-5)
    assert evaluations <= 1.25 * theirs.nfev + 5


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_quadratic(dtype):
    random = np.random.default_rng(1)
    n = 30
    q, _ = np.linalg.qr(random.normal(size=(n, n)))
    a = (q * np.geomspace(1, 100, n)) @ q.T
    b = random.normal(size=n)

    def f(x):
        x = x.astype(np.float64)
        return x @ a @ x / 2 - b @ x, (a @ x - b).astype(dtype)

    want = np.linalg.solve(a, b)
    m, state, points, _ = minimise(f, np.zeros(n, dtype), history=n, steps=200)
    assert state == "no lower point" or len(points) == 201
    # (the value does not show smaller changes: the square root of its rounding)
    np.testing.assert_allclose(m.point, want, atol=3e-8 if dtype is np.float64 else 3e-6)


def test_a_function_that_is_not_finite_everywhere():
    def f(x):  # the first steps of size 1 lead to logarithms of negative numbers
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sum(1e3 * x - np.log(x)), 1e3 - 1 / x

    m, state, _, _ = minimise(f, np.array([1e-4, 2e-3, 5e-4]), gradient=1e-7)
    assert state in ("small gradient", "no lower point")
    np.testing.assert_allclose(m.point, 1e-3, rtol=1e-7)


# Over Parameters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_rosenbrock_over_a_parameter(dtype):
    p = Parameter(Tensor(start_of_rosenbrock(8, dtype)), name="p")
    seen = []
    result = gc.lbfgs(recorded_rosenbrock(p), p, callback=lambda state: seen.append(state.loss))
    np.testing.assert_allclose(p.asnumpy(), 1, atol=1e-7 if dtype is np.float64 else 2e-3)
    assert seen == sorted(seen, reverse=True) and result.finished
    assert len(seen) == result.nit
    np.testing.assert_array_equal(result.x, p.asnumpy().astype(np.float64))
    assert result.fun == pytest.approx(float(recorded_rosenbrock(p)()), rel=1e-5, abs=1e-30)


def regression(dtype=np.float64, seed=3):
    """The parameters of a network, and a loss of it on sin(3 x)."""
    random = np.random.default_rng(seed)
    shapes = (1, 10), (10,), (10, 10), (10,), (10, 1), (1,)
    weights = [
        Parameter(Tensor((random.normal(size=s) * 0.5).astype(dtype)), name=f"w{i}")
        for i, s in enumerate(shapes)
    ]

    def loss(x):
        y = x
        for w, b in zip(weights[::2], weights[1::2], strict=True):
            y = ops.matmul(y if y is x else ops.tanh(y), w) + b
        return ops.square(y - ops.sin(3 * x)).mean()

    return weights, loss, Tensor(np.linspace(-1, 1, 40).reshape(-1, 1).astype(dtype))


def ratio(pairs):
    """The geometric mean of a / b: after some hundred evaluations, one start says little."""
    a, b = np.log(np.array(pairs)).T
    return np.exp(np.mean(a - b))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_network_is_fitted_as_well_as_by_scipy(dtype):
    optimize = pytest.importorskip("scipy.optimize")
    ends = []
    for seed in range(6):
        weights, loss, x = regression(dtype, seed)
        ours = gc.LBFGS(loss, weights, x, history=10)
        mine = ours.run(max_evaluations=300)
        weights, loss, x = regression(dtype, seed)
        flat = gc.FlatLoss(loss, weights, x)
        options = {"maxcor": 10, "ftol": 0, "gtol": 0, "maxfun": 300}
        theirs = optimize.minimize(flat, flat.vector, jac=True, method="L-BFGS-B", options=options)
        assert mine.nfev <= 300 and mine.fun < 1e-4
        ends.append((mine.fun, theirs.fun))
    assert ratio(ends) < 3


def test_a_network_is_fitted_as_well_as_by_torch():
    torch = pytest.importorskip("torch")
    ends = []
    for seed in range(6):
        weights, loss, x = regression(seed=seed)
        begin = [w.asnumpy().T for w in weights]
        mine = gc.LBFGS(loss, weights, x, history=10).run(max_evaluations=300)
        ends.append((mine.fun, fitted_by_torch(torch, begin, x.asnumpy())))
    assert ratio(ends) < 3


def fitted_by_torch(torch, begin, x):
    layers = [torch.nn.Linear(a, b, dtype=torch.float64) for a, b in ((1, 10), (10, 10), (10, 1))]
    model = torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1], torch.nn.Tanh(), layers[2])
    for p, w in zip(model.parameters(), begin, strict=True):
        p.data.copy_(torch.as_tensor(w))
    points = torch.as_tensor(x)
    theirs = torch.optim.LBFGS(
        model.parameters(), max_iter=300, max_eval=300, history_size=10, tolerance_grad=0,
        tolerance_change=0, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure():
        theirs.zero_grad()
        value = torch.mean((model(points) - torch.sin(3 * points)) ** 2)
        value.backward()
        return value

    theirs.step(closure)
    return float(closure())


@pytest.mark.parametrize("parts", [(1,) * 40, (15, 25), (39, 1)])
def test_runs_go_on_where_the_last_one_ended(parts):
    weights, loss, x = regression()
    whole = gc.LBFGS(loss, weights, x).run(40)
    weights, loss, x = regression()
    solver = gc.LBFGS(loss, weights, x)
    results = [solver.run(n) for n in parts]
    assert sum(r.nit for r in results) == whole.nit == 40
    np.testing.assert_array_equal(results[-1].x, whole.x)
    # the first evaluation of a search is made once, whoever asks for it
    assert sum(r.nfev for r in results) == whole.nfev


@pytest.mark.parametrize("dtype", DTYPES)
def test_who_looks_on_changes_nothing(dtype, capsys):
    """Steps are the core's, many at a time, unless someone wants to know between them."""

    def run(**options):
        weights, loss, x = regression(dtype)
        result = gc.LBFGS(loss, weights, x).run(60, **options)
        return result.fun, result.nit, result.nfev, result.reason, result.x.tobytes()

    whole, seen = run(), []
    assert whole == run(callback=lambda state: seen.append(state.nit)) == run(progress=7)
    assert seen == list(range(1, 61))
    few = run(max_evaluations=33)
    assert few[2:4] == (33, "evaluations") and few == run(max_evaluations=33, progress=4)


def interrupted_after(seconds, run):
    """What run() returns, interrupted like by Ctrl-C."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_a_signal_ends_it_at_the_best_point():
    weights, loss, x = regression()
    solver = gc.LBFGS(lambda x: loss(x) + 1, weights, x)
    solver.run(2)

    def run():
        for _ in range(1000):
            result = solver.run(10**6)
            if result.reason == "interrupted":
                break
            for w in weights:  # it has ended before: from a little beside it
                w.set_data(w * 1.01)
        return result

    for _ in range(100):
        try:
            result = interrupted_after(0.01, run)
            break
        except KeyboardInterrupt:  # between two runs
            continue
    assert result.reason == "interrupted"
    assert float(loss(x)) + 1 == pytest.approx(result.fun, rel=1e-12)


def test_new_arguments_keep_the_curvature():
    weights, loss, x = regression()
    solver = gc.LBFGS(loss, weights, x)
    first = solver.run(100)
    other = Tensor(np.linspace(-0.97, 1, 55).reshape(-1, 1))
    second = solver.run(5, other)
    assert second.fun == pytest.approx(float(loss(other)), rel=1e-12)
    assert second.fun < 1.5 * first.fun
    # from there without what is known of the curvature: steps of another size
    weights, loss, x = regression()
    gc.FlatLoss(loss, weights, x).assign(first.x)
    fresh = gc.LBFGS(loss, weights, other).run(5)
    assert second.fun < fresh.fun


def test_parameters_that_were_set_between_runs():
    p = Parameter(Tensor(start_of_rosenbrock(4)), name="p")
    solver = gc.LBFGS(recorded_rosenbrock(p), p, gradient_tolerance=1e-9)
    assert solver.run().reason == "small gradient"
    p.set_data(Tensor(np.full(4, 3.0)))
    again = solver.run()
    assert again.reason == "small gradient" and again.nit > 5
    np.testing.assert_allclose(p.asnumpy(), 1, atol=1e-8)


def test_why_it_stops(capsys):
    def solver(above=0.0, **options):
        p = Parameter(Tensor(start_of_rosenbrock(4)), name="p")
        loss = recorded_rosenbrock(p)
        return gc.LBFGS(lambda: above + loss(), p, **options)

    assert solver(gradient_tolerance=1e-3).run().reason == "small gradient"
    assert solver(1.0, value_tolerance=1e-3).run().reason == "small decrease"
    # What is left to gain is less than float32 keeps beside 1e6.
    rounded = Parameter(Tensor(np.array([1.1, 0.95], np.float32)), name="p")
    result = gc.lbfgs(lambda: 1e6 + ops.square(rounded - 1).sum(), rounded)
    assert (result.reason, result.finished) == ("no lower point", True)
    ended = solver(gradient_tolerance=1e-3)
    first, second = ended.run(), ended.run()
    assert (second.reason, second.nit, second.nfev) == ("small gradient", 0, 1)
    assert first.nit > 20 and second.fun == first.fun
    steps = solver().run(7)
    assert (steps.reason, steps.nit, steps.finished) == ("steps", 7, False)
    few = solver().run(max_evaluations=9)
    assert (few.reason, few.nfev) == ("evaluations", 9)
    assert solver().run(0).nfev == 0
    stopped = solver().run(callback=lambda state: state.nit == 3)
    assert (stopped.reason, stopped.nit) == ("stopped", 3)
    p = Parameter(Tensor(np.array([-1.0, 2.0])), name="p")
    bad = gc.lbfgs(lambda: ops.log(p).sum(), p)
    assert (bad.reason, bad.nit, bad.nfev) == ("not finite", 0, 1)
    np.testing.assert_array_equal(p.asnumpy(), [-1, 2])
    capsys.readouterr()
    solver().run(20, progress=10)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:16] for line in lines[:2]] == ["L-BFGS: step 10,", "L-BFGS: step 20,"]
    assert re.fullmatch(
        r"L-BFGS: 20 steps, \d+ evaluations, loss \S+: the limit max_steps .*", lines[2]
    )


def test_what_it_refuses():
    p = Parameter(Tensor(np.ones(3, np.float16)), name="p")
    with pytest.raises(ValueError, match="must be float32 or float64, not float16") as error:
        gc.LBFGS(lambda: ops.square(p).sum(), p)
    assert re.search(r"test_lbfgs\.py:\d+", str(error.value))
    p = Parameter(Tensor(np.ones(3)), name="p")
    with pytest.raises(ValueError, match="must not be negative"):
        gc.LBFGS(lambda: ops.square(p).sum(), p, history=-1)
    with pytest.raises(TypeError, match="the loss must give one number"):
        gc.LBFGS(lambda: ops.square(p), p).run()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("method", [gc.LBFGS, gc.BFGS, gc.SSBroyden])
def test_ctrl_c_in_adams_steps_leaves_whole_parameters(method):
    weights, loss, x = regression()
    solver = method(loss, weights, x)
    start = float(loss(x))
    result = interrupted_after(0.3, lambda: solver.run(10, adam=50_000, rate=1e-3))
    assert (result.reason, result.nit) == ("interrupted", 0)
    assert result.fun == pytest.approx(float(loss(x)), rel=1e-12)
    assert result.fun < start
    np.testing.assert_array_equal(result.x, gc.FlatLoss(loss, weights, x).vector)
    assert solver.run(20).fun < result.fun


def test_a_loss_that_is_not_finite_in_adams_steps():
    w = Parameter(Tensor(np.array([0.5])), name="w")
    solver = gc.LBFGS(lambda: ops.log(w - 1).sum(), w)
    result = solver.run(10, adam=5)
    assert result.reason == "not finite" and np.isnan(result.fun)
    assert w.asnumpy()[0] == 0.5


def test_no_steps_at_all():
    weights, loss, x = regression()
    solver = gc.LBFGS(loss, weights, x)
    assert solver.run(0).fun == pytest.approx(float(loss(x)), rel=1e-12)
    other = Tensor(np.linspace(-0.9, 1, 30).reshape(-1, 1))
    assert solver.run(0, other).fun == pytest.approx(float(loss(other)), rel=1e-12)
