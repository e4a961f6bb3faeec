"""All solvers have the same runs, options, callbacks and results."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import nn, ops, physics
from gradcell.solvers.solver import Solver

X = np.linspace(0, 1, 12)
OTHER = np.linspace(0.1, 0.9, 9)


def residual(p: gc.Parameter, x: Any) -> gc.Tensor:
    return ops.exp(p[0] * x) + p[1] - 2 * ops.cos(x)


class Loss:
    """The mean square, which pickle takes along."""

    def __init__(self, p: gc.Parameter) -> None:
        self.p = p

    def __call__(self, x: Any) -> gc.Tensor:
        return ops.square(residual(self.p, x)).mean()


class Residuals(Loss):
    def __call__(self, x: Any) -> gc.Tensor:
        return residual(self.p, x)


def descent(p: gc.Parameter, **options: Any) -> gc.Descent:
    optimizer = nn.Adam([p], learning_rate=0.02)
    return gc.Descent(Loss(p), optimizer, gc.Tensor(X), **options)


def quasi_newton(name: str) -> Callable[..., Any]:
    return lambda p, **options: getattr(gc, name)(Loss(p), [p], gc.Tensor(X), **options)


MAKE: dict[str, Callable[..., Any]] = {
    "Descent": descent,
    "GaussNewton": lambda p, **options: gc.GaussNewton(Residuals(p), [p], **options),
    **{name: quasi_newton(name) for name in ("LBFGS", "BFGS", "SSBFGS", "SSBroyden")},
}
#: The points that a run needs, where the solver was not given them.
POINTS = {"GaussNewton": (X,)}
every = pytest.mark.parametrize("name", MAKE)


def made(name: str, **options: Any) -> tuple[Any, gc.Parameter, tuple[Any, ...]]:
    p = gc.Parameter(gc.Tensor(np.array([2.0, -1.5])), name="p")
    return MAKE[name](p, **options), p, POINTS.get(name, ())


def loss_at(p: gc.Parameter, x: Any = X) -> float:
    a, b = p.asnumpy()
    return float(np.mean(np.square(np.exp(a * x) + b - 2 * np.cos(x))))


def kinds(cls: type[Any] = Solver) -> Iterator[type[Any]]:
    for kind in cls.__subclasses__():
        if not kind.__name__.startswith("_"):
            yield kind
        yield from kinds(kind)


def test_every_solver_is_here() -> None:
    assert {k.__name__ for k in kinds()} == set(MAKE)
    assert all(getattr(gc, name).run is Solver.run for name in MAKE)


def test_options_of_one_name_are_the_same() -> None:
    seen: dict[str, set[Any]] = {}
    for kind in kinds():
        parameters = inspect.signature(kind).parameters
        assert {"loss_tolerance", "value_tolerance"} <= set(parameters), kind
        for name, p in parameters.items():
            seen.setdefault(name, set()).add((p.kind, p.annotation))
    assert {name: kinds for name, kinds in seen.items() if len(kinds) > 1} == {}


@every
def test_a_result_says_the_same_of_all(name: str) -> None:
    solver, p, points = made(name)
    result = solver.run(6, *points)
    assert isinstance(result, gc.SolverState) and result.nit == result.steps == solver.steps == 6
    assert (result.reason, result.finished, result.success) == ("steps", False, False)
    assert result.fun == result.loss == pytest.approx(loss_at(p), rel=1e-12)
    assert result.message == "the limit max_steps was reached" and result.nfev >= 6
    np.testing.assert_array_equal(result.x, p.asnumpy())
    again = solver.run(3)  # at the points of before
    assert (again.nit, again.steps) == (3, 9) and again.loss < result.loss
    assert solver.run(0).loss == pytest.approx(loss_at(p), rel=1e-12)
    other = solver.run(0, gc.Tensor(OTHER))
    assert other.loss == pytest.approx(loss_at(p, OTHER), rel=1e-12)


@every
def test_callbacks_get_the_state_of_each_step(name: str) -> None:
    solver, p, points = made(name)
    seen = []

    def callback(state: gc.SolverState) -> bool:
        with pytest.raises(ValueError, match="the end of a run has it"):
            _ = state.x
        if name != "Descent":  # its states have the loss before the step
            assert state.loss == pytest.approx(loss_at(p), rel=1e-12)
        seen.append(state.nit)
        return state.nit == 5

    result = solver.run(50, *points, callback=callback)
    assert (result.reason, result.nit, seen) == ("stopped", 5, [1, 2, 3, 4, 5])
    course = physics.Course(progress=False, every=0.0)
    solver.run(3, callback=course)
    assert len(course.points) == 3


@every
def test_runs_end_for_the_same_reasons(name: str) -> None:
    start = loss_at(made(name)[1])
    solver, p, points = made(name, loss_tolerance=start / 2)
    result = solver.run(1000, *points)
    assert (result.reason, result.success) == ("small loss", True) and loss_at(p) <= start / 2
    solver, _, points = made(name)
    assert solver.run(50, *points, max_seconds=0).reason == "seconds"
    few = solver.run(50, max_evaluations=3)
    assert few.reason == "evaluations" and few.nfev == 3
    assert made(name, value_tolerance=0.99)[0].run(500, *points).reason == "small decrease"

    def interrupts(state: gc.SolverState) -> None:
        raise KeyboardInterrupt

    solver, p, points = made(name)
    result = solver.run(50, *points, callback=interrupts)
    assert (result.reason, result.nit) == ("interrupted", 1)
    assert result.loss == pytest.approx(loss_at(p), rel=1e-12) and result.loss < start

    def fails(state: gc.SolverState) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        solver.run(50, callback=fails)
    assert loss_at(p) < result.loss
    for wrong in ({"max_steps": -1}, {"every": 0}, {"progress": -1}, {"adam": -1}):
        with pytest.raises(ValueError, match=r"negative|at least 1"):
            solver.run(**{"max_steps": 5, **wrong})
    for option in ("value_tolerance", "gradient_tolerance"):
        if option in inspect.signature(type(solver)).parameters:
            with pytest.raises(ValueError, match="must not be negative"):
                made(name, **{option: -1.0})


@every
def test_new_points_and_adam_and_lines(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    solver, p, _ = made(name)
    asked, reasons = [], []

    def resample(step: int) -> Any:
        asked.append(step)
        return gc.Tensor(X if step % 4 == 0 else OTHER)

    def callback(state: gc.SolverState) -> None:
        reasons.append(state.reason)

    start = loss_at(p)
    result = solver.run(
        10, resample=resample, every=2, adam=4, rate=0.05, callback=callback, progress=5
    )
    assert asked == [0, 2, 4, 6, 8, 10, 12] and reasons[:4] == ["adam"] * 4
    assert (result.nit, len(reasons)) == (10, 14) and loss_at(p) < start
    assert result.loss == pytest.approx(loss_at(p), rel=1e-12)
    lines = capsys.readouterr().out.splitlines()
    number = r"[\d.e+-]+"
    form = rf".+: step (\d+), loss {number}(, damping {number})?, \d+\.\d s, at most \d+ s left"
    found = [re.fullmatch(form, line) for line in lines[:-1]]
    assert [m and m[1] for m in found] == ["5", "10"]
    assert re.fullmatch(rf".+: 10 steps, \d+ evaluations, loss {number}: the limit .*", lines[-1])


@every
def test_saved_states_go_on_bit_by_bit(name: str) -> None:
    solver, p, points = made(name)
    solver.run(5, *points)
    copied = pickle.loads(pickle.dumps(solver))
    state, at = solver.state_dict(), p.asnumpy().copy()
    ahead = solver.run(4, *points).x
    np.testing.assert_array_equal(copied.run(4, *points).x, ahead)
    fresh, q, _ = made(name)
    q.set_data(gc.Tensor(at))
    fresh.load_state_dict(state)
    assert fresh.steps == 5
    np.testing.assert_array_equal(fresh.run(4, *points).x, ahead)
    with pytest.raises(ValueError, match="state must"):
        fresh.load_state_dict({})


def test_descent_is_for_optimisers() -> None:
    p = gc.Parameter(gc.Tensor(np.array([-1.0])), name="p")
    with pytest.raises(TypeError, match=r"expected an optimiser, .* got (a )?list"):
        gc.Descent(lambda: ops.sum(p), [p])
    result = gc.Descent(lambda: ops.sum(ops.log(p)), nn.SGD([p], 0.1)).run(5)
    assert (result.reason, result.nit) == ("not finite", 0) and p.asnumpy()[0] == -1.0
