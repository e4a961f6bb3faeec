"""Solvers take the same path whatever the units of loss and point: with powers of two, to the bit."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import numpy as np
import pytest
from rosenbrock import rosenbrock, start_of_rosenbrock

import gradcell as gc
from gradcell import Parameter, Tensor, _core, nn, ops
from gradcell.nn import optim

EVERY = range(-60, 61)
SOME = [-60, -37, -13, -1, 1, 20, 41, 60]
METHODS = {"lbfgs": gc.LBFGS, "bfgs": gc.BFGS, "ssbfgs": gc.SSBFGS, "ssbroyden": gc.SSBroyden}


def quadratic(x):
    """Curvatures from 1e-3 to 1e3."""
    a = np.geomspace(1e-3, 1e3, len(x))
    return float(x @ (a * x) / 2 - x.sum()), a * x - 1


def minimiser(method, start):
    if method == "lbfgs":
        return {4: _core.LbfgsFloat32, 8: _core.LbfgsFloat64}[start.itemsize](start, 5, 50, 0, 0)
    return _core.DenseQuasiNewton(start, method, 50, 0.0, 0.0)


def path(method, f, start, loss=0, point=0, steps=25):
    """The points of each step, of a loss in units of 2^-loss and a point in those of 2^-point."""
    unit, dtype = 2.0**loss, start.dtype
    m = minimiser(method, np.ldexp(start, point))
    seen, state = [], "search"
    while state in ("search", "stepped") and len(seen) < steps:
        value, gradient = f(np.ldexp(m.wanted.astype(np.float64), -point))
        state = m.advance(value * unit, np.ldexp((gradient * unit).astype(dtype), -point))
        if m.steps > len(seen):
            seen.append(np.ldexp(m.point, -point))
    return state, m.evaluations, m.skipped, np.stack(seen)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("f", [rosenbrock, quadratic])
@pytest.mark.parametrize(
    "method, dtype", [("lbfgs", np.float32), *((m, np.float64) for m in METHODS)]
)
def test_quasi_newton_methods_in_every_unit_of_the_loss(method, dtype, f):
    start = start_of_rosenbrock(6, dtype)
    state, evaluations, skipped, points = path(method, f, start)
    assert len(points) >= 20 and skipped == 0
    for k in EVERY:
        again = path(method, f, start, loss=k)
        assert again[:3] == (state, evaluations, skipped), k
        np.testing.assert_array_equal(again[3], points)


@pytest.mark.parametrize(
    "method, dtype", [("lbfgs", np.float32), *((m, np.float64) for m in METHODS)]
)
def test_quasi_newton_methods_in_units_of_the_point(method, dtype):
    start = start_of_rosenbrock(4, dtype)
    *_, points = path(method, rosenbrock, start)
    for k in SOME:
        # In float32 the gradient's own range ends at 2^127.
        loss = 0 if dtype is np.float32 else -k
        np.testing.assert_array_equal(path(method, rosenbrock, start, loss, k)[3], points)


@pytest.mark.parametrize("value", [0.0, 3.0])
@pytest.mark.parametrize("method", METHODS)
def test_they_begin_at_zero(method, value):
    """A point without a size; with a value of zero too there is no unit at all, and it still arrives."""
    units = SOME if value else [0]
    found = []
    for k in units:

        def f(x):
            return value + float(np.sum((x - 7) ** 2)) - 49 * len(x), 2 * (x - 7)

        found.append(path(method, f, np.zeros(3), loss=k, steps=9)[3])
    np.testing.assert_allclose(found[0][-1], 7, rtol=1e-6)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def steep_network(dtype=np.float64, weight=1.0):
    """Poisson's equation on a line, its loss times a weight: 60 points, 40 parameters."""
    gc.set_seed(3)
    kind = gc.float64 if dtype is np.float64 else gc.float32
    options = {"dtype": kind, "weight_init": "xavier_uniform", "bias_init": "zeros"}
    cells = [nn.Dense(1, 13, **options), nn.Tanh(), nn.Dense(13, 1, **options)]
    net = nn.SequentialCell(*cells)
    second = gc.laplacian(net)
    x = Tensor(np.linspace(0, 1, 60)[:, None].astype(dtype))
    ends = Tensor(np.array([[0.0], [1.0]], dtype))

    def residual(x, unit):
        return (second(x) + np.pi**2 * ops.sin(np.pi * x)) * unit

    def loss(unit):
        inside = ops.square(residual(x, 1.0)).mean()
        return unit * weight * (inside + 100 * ops.square(net(ends)).mean())

    return net.trainable_params(), loss, residual, x


def elements(parameters):
    return np.concatenate([p.asnumpy().reshape(-1) for p in parameters])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "units", [SOME[::2], pytest.param(EVERY, marks=pytest.mark.slow)], ids=["some", "every"]
)
def test_an_equation_in_units_of_its_loss(method, dtype, units):
    """Compiled losses, with steps of Adam before."""
    if dtype is np.float32 and method != "lbfgs":
        pytest.skip("the matrix is float64's")

    def run(k):
        parameters, loss, *_ = steep_network(dtype)
        solver = METHODS[method](loss, parameters, Tensor(dtype(2.0**k)))
        result = solver.run(12, adam=5, rate=1e-2)
        assert result.skipped == 0
        return result.nit, result.nfev, np.ldexp(result.fun, -k), result.x

    want = run(0)
    for k in units:
        found = run(k)
        assert found[:3] == want[:3], k
        np.testing.assert_array_equal(found[3], want[3])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["dense", "cg"])
def test_gauss_newton_in_units_of_its_residuals(method, dtype):
    """A residual times 2^k is a loss times 4^k."""
    parameters, _, residual, x = steep_network(dtype)
    solver = gc.GaussNewton(residual, parameters, method=method, rank=10, iterations=15)
    start, fresh = [p.asnumpy().copy() for p in parameters], solver.state_dict()

    def run(k):
        for p, value in zip(parameters, start, strict=True):
            p.set_data(Tensor(value))
        solver.load_state_dict(fresh)
        states = [solver.step(x, Tensor(dtype(2.0**k))) for _ in range(3)]
        assert {s.reason for s in states} == {"stepped"}, k
        return [np.ldexp(s.loss, -2 * k) for s in states], elements(parameters)

    losses, want = run(0)
    assert losses[-1] < losses[0]
    for k in range(-30, 31):
        found = run(k)
        np.testing.assert_allclose(found[0], losses, rtol=1e-5 if dtype is np.float32 else 1e-12)
        np.testing.assert_allclose(found[1], want, rtol=1e-5 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "units", [SOME, pytest.param(EVERY, marks=pytest.mark.slow)], ids=["some", "every"]
)
def test_minimize_in_units_of_its_function(dtype, units):
    def run(k):
        def f(x):
            deep = 100 * ops.square(x[1:] - ops.square(x[:-1])) + ops.square(1 - x[:-1])
            return dtype(2.0**k) * deep.sum()

        start = Tensor(start_of_rosenbrock(3, dtype))
        return gc.scipy.optimize.minimize(f, start, method="BFGS")

    want = run(0)
    assert want.success and want.nit > 10
    np.testing.assert_allclose(want.x.asnumpy(), 1, atol=1e-3 if dtype is np.float32 else 1e-7)
    for k in units:
        found = run(k)
        assert (found.success, found.nit, found.nfev) == (True, want.nit, want.nfev), k
        np.testing.assert_array_equal(found.x.asnumpy(), want.x.asnumpy())


# Thresholds -------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[3]
SOURCES = [
    *(ROOT / "csrc/runtime/minimisers").glob("*.*"),
    ROOT / "csrc/bind/quasi_newton.cpp",
    *(ROOT / "python/gradcell/solvers").glob("*.py"),
    *(ROOT / "python/gradcell/physics").glob("*.py"),
    ROOT / "python/gradcell/scipy/optimize.py",
    ROOT / "python/gradcell/deepxde/newton.py",
]
SMALL = re.compile(
    r"\b\d[\d.]*e[+-]?\d+\b|\b0\.0*1\b|\b0x[\da-f.]+p-\d+|(?:epsilon|denorm_min|min)\(\)|finfo\(.*?\)\.\w+"
)
#: The small numbers in each source, and what each is a share of.
SHARES = {
    "curvature.cpp": {"1e-12": "of y'Hy s'Bs / (s'y)^2, a pure number"},
    "line_search.cpp": {"1e-4": "of the slope at 0", "0.1": "of a bracket", "1e-9": "of a step"},
    "quasi_newton.cpp": {
        "0.01": "of the point's largest element", "epsilon()": "of |s| |y|; of a value (its digits)",
        "0x1p-10": "of a value",
    },
    "dense.py": {"1e-3": "of the largest diagonal element", "finfo(np.dtype(dtype.name.lower())).eps":
        "of the largest diagonal element, of a loss, of a parameter"},
    "fits.py": {
        "1e-3": "of the mean length of rows", "1e-9": "of the largest residual", "1e6": "of a rounding",
        "finfo(np.float64).eps": "of the solution at all times", "1e-5": "of a row of length 1",
        "1e4": "of a rounding",
    },
    "gauss_newton.py": {
        "0.01": "of a direction", "1e-3": "of a direction", "0.1": "of the damping",
        "finfo(np.float64).tiny": "no share: keeps a quotient from dividing by zero",
    },
    "jacobian.py": {"1e-3": "of the largest residual", "1e-8": "of the largest residual"},
    "covariance.py": {"1e-6": "of the square of a gradient's length"},
    "solver.py": {"1e-3": "Adam's rate, the parameters' own unit"},
    "newton.py": {
        "1e-4": "mu, DeepXDE's option", "1e-16": "cg_tol, DeepXDE's option", "0.1": "of the slope",
        "finfo(self._numbers).eps": "of the norm of H's products",
    },
    "points.py": {"1e-12": "of the mean size"},
    "shapes.py": {"1e-7": "of the box around a shape"},
    "outlines.py": {
        "1e-7": "of an edge", "1e-9": "in radians",
        "finfo(np.float64).tiny": "no share: keeps a quotient from dividing by zero",
    },
    "pictures.py": {"0.1": "of the box around a shape"},
    "orthogonal.py": {"finfo(np.float64).eps": "of columns of length 1"},
    "pieces.py": {
        "0.01": "of another's misfit", "1e-6": "of what an output makes",
        "1e6": "radians from the middle of an axis to its end", "1e8": "of all residuals",
        "1e9": "radians from the middle of an axis to its end",
    },
    "recipe.py": {
        "0.1": "of all misfits", "1e-2": "of the solution", "1e-6": "of the solution, of the time",
        "1e-9": "of the time",
        "finfo(np.float64).tiny": "no share: keeps a quotient from dividing by zero",
    },
}  # fmt: skip


def code_of(path):
    """A source without comments and strings."""
    text = path.read_text()
    if path.suffix != ".py":
        return re.sub(r"//.*|\"[^\"\n]*\"", "", text)
    kept = [
        t.string
        for t in tokenize.generate_tokens(io.StringIO(text).readline)
        if t.type not in (tokenize.COMMENT, tokenize.STRING)
    ]
    return re.sub(r" ?([.()]) ?", r"\1", " ".join(kept))


def test_every_threshold_is_a_share_of_something():
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        for match in SMALL.finditer(code_of(path)):
            found.setdefault(path.name, set()).add(match.group())
    assert found == {name: set(shares) for name, shares in SHARES.items()}


# What steep losses end at -----------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize("weight", [1e-20, 1.0, 1e6])
def test_a_steep_loss_ends_where_scipy_and_the_same_loss_without_its_weight_do(weight):
    optimize = pytest.importorskip("scipy.optimize")
    one = Tensor(np.float64(1))
    parameters, loss, *_ = steep_network(weight=weight)
    ours = gc.LBFGS(loss, parameters, one).run(10**6, max_evaluations=400)
    parameters, loss, *_ = steep_network()
    flat = gc.FlatLoss(loss, parameters, one)
    options = {"maxcor": 50, "ftol": 0, "gtol": 0, "maxfun": 400}
    theirs = optimize.minimize(flat, flat.vector, jac=True, method="L-BFGS-B", options=options)
    assert ours.skipped == 0
    assert ours.fun / weight < 10 * theirs.fun and theirs.fun < 1e-3


def test_conjugate_gradients_of_large_residuals():
    """In float32, where squares of 1e8 times a gradient of 1e8 overflow."""
    for unit in (1.0, 1e8, 1e-8):
        p = Parameter(Tensor(np.array([3.0, -2.0, 0.5], np.float32)))
        a = Tensor(np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32) * unit)
        b = ops.matmul(a, Tensor(np.ones(3, np.float32)))
        solver = gc.GaussNewton(lambda a, b, p=p: ops.matmul(a, p) - b, p, method="cg")
        solver.run(30, a, b)
        np.testing.assert_allclose(p.asnumpy(), 1, atol=1e-5)


# Why they end -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", METHODS)
def test_a_value_as_high_as_the_start_is_no_step(method, dtype):
    """The value has no digits for the last decreases: that ends a run, in few evaluations."""
    if dtype is np.float32 and method != "lbfgs":
        pytest.skip("the matrix is float64's")
    p = Parameter(Tensor(np.array([1.3, 0.8, -0.4, 2.0], dtype)))
    above = 1e3 if dtype is np.float32 else 1e8
    values = []
    solver = METHODS[method](lambda: above + ops.square(ops.square(p) - 1).sum(), p)
    result = solver.run(1000, callback=lambda state: values.append(state.loss))
    assert result.reason == "no lower point" and result.success
    assert np.all(np.diff(values) < 0)
    assert result.nfev <= 60 and result.nit <= 30


@pytest.mark.parametrize("method", METHODS)
def test_a_gradient_that_is_not_the_losss_is_no_minimum(method):
    p = Parameter(Tensor(np.array([3.0, -2.0])))

    def loss():  # its gradient is that of the second part alone, and leads up the first one
        shut = _core.ops.stop_gradient(ops.square(p).sum()) * 3.0
        return shut - ops.square(p).sum()

    result = METHODS[method](loss, p).run(50)
    assert (result.reason, result.success, result.nit) == ("stalled", False, 0)
    assert "gradient or Jacobian is not that of the values" in result.message


def test_a_search_of_one_point_is_no_minimum():
    p = Parameter(Tensor(np.array([1.0, 2.0])))
    result = gc.LBFGS(lambda: ops.exp(50 * p).sum(), p, search=1).run(50)
    assert result.reason != "no lower point"
    start = Parameter(Tensor(np.array([1e4])))
    result = gc.LBFGS(lambda: ops.square(start - 9999.99).sum(), start, search=1).run(5)
    assert (result.reason, result.success) == ("stalled", False)


def test_steps_that_teach_nothing_are_told():
    """Of a concave function each step is one of the gradient."""
    p = Parameter(Tensor(np.array([3.0, 2.0])))
    result = gc.LBFGS(lambda: -ops.square(p).sum(), p, search=2).run(6)
    assert result.reason == "steps" and result.skipped == result.nit == 6
    assert "after 6 of 6 steps the gradient's change showed no curvature" in result.message
    p.set_data(Tensor(np.array([3.0, 2.0])))
    result = gc.LBFGS(lambda: ops.square(ops.square(p)).sum(), p).run(6)
    assert result.skipped == 0 and "curvature" not in result.message


def test_gauss_newton_of_a_wrong_jacobian_is_no_minimum():
    p = Parameter(Tensor(np.array([3.0, -2.0])))

    def residuals():
        return 4 + _core.ops.stop_gradient(2 * ops.abs(p)) - ops.abs(p)

    state = gc.GaussNewton(residuals, p).run(50)
    assert (state.reason, state.finished, state.success) == ("stalled", True, False)
    assert "gradient or Jacobian is not that of the values" in state.message


# Optimisers -------------------------------------------------------------------------------------------

#: What a loss times u changes, so that an optimiser's steps are the same: options with the loss's unit,
#: as powers of u. None: no option alone has it (Adadelta's epsilon is added to squares of steps too,
#: RMSProp's mean square begins at 1).
UNITS = {
    optim.SGD: {"learning_rate": -1}, optim.Momentum: {"learning_rate": -1, "momentum": 0},
    optim.ASGD: {"learning_rate": -1, "lambd": 1}, optim.Rprop: {}, optim.Adam: {"eps": 1},
    optim.AdamOffload: {"eps": 1}, optim.LazyAdam: {"eps": 1}, optim.AdaMax: {"eps": 1},
    optim.AdamWeightDecay: {"eps": 1}, optim.Lamb: {"eps": 1, "learning_rate": 0}, optim.RMSProp: None,
    optim.Adagrad: {"accum": 2}, optim.ProximalAdagrad: {"accum": 2},
    optim.FTRL: {"initial_accum": 2}, optim.AdaFactor: {"eps": 2}, optim.LARS: {"epsilon": 1},
    optim.Adadelta: None,
}  # fmt: skip
VALUES = {
    "learning_rate": 0.02, "momentum": 0.9, "lambd": 1e-3, "eps": 1e-3, "epsilon": 1e-3, "accum": 0.1,
    "initial_accum": 0.1,
}  # fmt: skip


def test_each_optimiser_is_in_the_table():
    every = {getattr(optim, name) for name in optim.__all__}
    assert {c for c in every if isinstance(c, type) and issubclass(c, optim.Optimizer)} - {
        optim.Optimizer
    } == set(UNITS)


@pytest.mark.parametrize("cls", [c for c, powers in UNITS.items() if powers is not None])
def test_optimisers_in_units_of_the_loss(cls):
    powers = UNITS[cls]

    def run(k):
        p = Parameter(Tensor(np.array([[1.5, -2.0], [0.5, 3.0]], np.float32)), name="p")
        options = {n: VALUES[n] * 2.0 ** (k * power) for n, power in powers.items()}
        if cls is optim.AdaFactor:
            options = {"eps": (1e-6 * 4.0**k, 1e-3)}
        if cls is optim.LARS:
            optimizer = cls(optim.Momentum([p], 0.02, 0.9), **options)
        else:
            optimizer = cls([p], **options)
        for _ in range(6):
            g = (p.asnumpy() - 1) * np.array([[1, 10], [3, 1]]) * 2.0**k
            optimizer((Tensor(g.astype(np.float32)),))
        return p.asnumpy()

    want = run(0)
    assert np.abs(want - [[1.5, -2.0], [0.5, 3.0]]).min() > 0
    for k in range(-100, 101) if not powers else (-30, -7, 11, 30):
        np.testing.assert_allclose(run(k), want, rtol=1e-5)
