"""The programs of examples/problems: their references are solutions, short runs approach them, whole ones
come as close as docs/problems.md says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import physics

pytest.importorskip("scipy")
PROBLEMS = Path(__file__).parents[3] / "examples" / "problems"

#: A short run's arguments, the error that it comes to at most, and that of a whole run.
RUNS: dict[str, tuple[dict[str, int], float, float]] = {
    "l_plate": ({"steps": 20}, 0.02, 1e-4),
    "robin": ({"steps": 20}, 0.05, 1e-3),
    "interface": ({"steps": 20}, 0.05, 5e-4),
    "elasticity": ({"steps": 40}, 60.0, 1.5),
    "kovasznay": ({"steps": 15}, 0.5, 1e-4),
    "cavity": ({"steps": 60}, 0.3, 5e-3),
    "wave": ({"steps": 60}, 0.6, 5e-3),
    "schroedinger": ({"steps": 40, "count": 1}, 1e-3, 1e-5),
    "bratu": ({"steps": 20, "count": 4}, 1e-3, 1e-5),
    "moving_boundary": ({"steps": 25}, 1e-2, 1e-4),
    "inverse_rod": ({"steps": 30}, 0.1, 0.02),
}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"problem_{name}", PROBLEMS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, **short: int) -> tuple[float, Any]:
    """The error and the picture."""
    problem = load(name)
    solution = problem.solve(**short)
    parts = solution if name in ("schroedinger", "bratu", "inverse_rod") else (solution,)
    error = problem.error if name == "inverse_rod" else problem.largest_error
    return error(*parts), problem.plot(*parts)


def test_every_problem_is_run() -> None:
    assert {path.stem for path in PROBLEMS.glob("*.py")} == set(RUNS)
    page = (PROBLEMS.parents[1] / "docs" / "problems.md").read_text()
    for name in RUNS:
        assert f"../examples/problems/{name}.py" in page and f"pictures/{name}.png" in page


@pytest.mark.one_in(22)
@pytest.mark.parametrize("name", RUNS)
def test_short_runs_approach_the_solution(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    short, most, _ = RUNS[name]
    error, picture = run(name, **short)
    assert error < most
    picture.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_whole_runs_find_the_solution(name: str) -> None:
    pytest.importorskip("matplotlib")
    assert run(name)[0] < RUNS[name][2]


def second(f: Any, x: Any, a: int, b: int, h: float = 1e-3) -> Any:
    """The second derivative of a function of points by the coordinates a and b."""
    e, d = h * np.eye(2)[a], h * np.eye(2)[b]
    return (f(x + e + d) - f(x + e - d) - f(x - e + d) + f(x - e - d)) / (4 * h * h)


def first(f: Any, x: Any, a: int, h: float = 1e-4) -> Any:
    e = h * np.eye(2)[a]
    return (f(x + e) - f(x - e)) / (2 * h)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["l_plate", "robin", "interface", "wave", "inverse_rod"])
def test_references_solve_the_equation(name: str) -> None:
    problem = load(name)
    shape, f, scale = {
        "l_plate": lambda: (problem.PLATE - physics.Ball([0, 0], 0.2), problem.reference, 1.0),
        "robin": lambda: (physics.Box([0.1, -0.5], [2, 0.5]), problem.exact, 1.0),
        "interface": lambda: (problem.PLATE - physics.Ball([0, 0], 0.51), problem.exact, 1.0),
        "wave": lambda: (problem.STRING, problem.exact, 30.0),
        "inverse_rod": lambda: (physics.Box([20, 5], [300, 395]), problem.exact, 0.1),
    }[name]()
    x = shape.interior(50, 0)
    xx, yy = second(f, x, 0, 0), second(f, x, 1, 1)
    if name == "wave":
        xx = -xx
    if name == "inverse_rod":  # not by time, but by place in millimetres
        xx = problem.LOSS * (f(x) - problem.ROOM) + first(f, x, 0, 0.1)
        yy = -problem.DIFFUSIVITY * second(f, x, 1, 1, 0.5)
    np.testing.assert_allclose(xx + yy, 0, atol=1e-3 * scale)


def test_references_meet_the_conditions() -> None:
    fin = load("robin")
    x, n = fin.FIN.boundary(200, 0)
    x = x - 1e-4 * n  # the series is one inside
    slope = n[:, 0] * first(fin.exact, x, 0) + n[:, 1] * first(fin.exact, x, 1)
    away = np.minimum(x[:, 0], 0.5 - np.abs(x[:, 1])) > -1
    base = fin.base(x + 1e-4 * n)
    np.testing.assert_allclose((slope + fin.TRANSFER * fin.exact(x))[~base & away], 0, atol=0.02)
    plate = load("interface")
    x, n = plate.DISK.boundary(50, 0)
    h = 1e-6
    inside, outside = ((plate.exact(x + s * h * n) - plate.exact(x)) / h for s in (-1, 1))
    np.testing.assert_allclose(10 * -inside, outside, atol=1e-4)
    string = load("wave")
    t = np.linspace(0.1, 1.9, 30)[:, None]
    ends = [np.hstack([t, np.full_like(t, end)]) for end in (0.0, 1.0)]
    np.testing.assert_allclose(string.exact(ends[0]), 0, atol=1e-12)
    slope = string.exact(ends[1] - [0, 1e-4]) - string.exact(ends[1])
    np.testing.assert_allclose(slope / 1e-4, 0, atol=0.02)


def test_the_stresses_of_the_plate() -> None:
    plate = load("elasticity")
    x = plate.PLATE.interior(50, 0)
    xx, yy, xy = (lambda x, k=k: plate.exact(x)[:, k] for k in range(3))
    np.testing.assert_allclose(first(xx, x, 0) + first(xy, x, 1), 0, atol=1e-5)
    np.testing.assert_allclose(first(xy, x, 0) + first(yy, x, 1), 0, atol=1e-5)
    trace = lambda x: xx(x) + yy(x)  # noqa: E731
    np.testing.assert_allclose(second(trace, x, 0, 0) + second(trace, x, 1, 1), 0, atol=1e-3)
    at, n = plate.PLATE.boundary(50, 0, where=lambda p: np.hypot(*p.T) < plate.RADIUS + 1e-6)
    np.testing.assert_allclose(plate.force(plate.exact(at), n), 0, atol=1e-9)
    np.testing.assert_allclose(
        plate.exact(np.array([[0, plate.RADIUS]]))[0], [300, 0, 0], atol=1e-9
    )
    # of a linear displacement by Hooke's law
    u = lambda x: gc.ops.concat((x[:, :1] * 1e-3, x[:, 1:] * -0.3e-3), 1)  # noqa: E731
    found = plate.stress(u)(gc.Tensor(x)).asnumpy()
    np.testing.assert_allclose(found, np.tile([210.0, 0, 0], (50, 1)), atol=1e-9)


def test_the_other_references() -> None:
    assert np.allclose(
        load("schroedinger").reference(4), [1.06036209, 3.79967303, 7.45569794, 11.64474551]
    )  # S. Banerjee and others, Proc. R. Soc. Lond. A 360, 1978
    bratu = load("bratu")
    c, u = bratu.exact(np.array([0.5, 3.0]))
    h = bratu.LINE[1, 0]
    u_xx = (u[:, 2:] - 2 * u[:, 1:-1] + u[:, :-2]) / h**2
    np.testing.assert_allclose(u_xx, -c[:, None] * np.exp(u[:, 1:-1]), rtol=2e-3)
    np.testing.assert_allclose(u[:, [0, 50, 100]], [[0, 0.5, 0], [0, 3, 0]], atol=1e-12)
    ice = load("moving_boundary")
    t, y = np.full((9, 1), 0.5), np.linspace(0.1, 0.9, 9)[:, None]

    def temperature(t: Any, x: Any) -> Any:
        return ice.temperature(np.hstack([t, x / ice.reach(t)]))

    x, h = y * ice.reach(t), 1e-4
    u_t = (temperature(t + h, x) - temperature(t - h, x)) / (2 * h)
    u_xx = (temperature(t, x + h) - 2 * temperature(t, x) + temperature(t, x - h)) / h**2
    np.testing.assert_allclose(u_t, u_xx, atol=1e-5)
    edge, before = ice.reach(t), temperature(t, ice.reach(t) - h)
    speed = (ice.reach(t + h) - ice.reach(t - h)) / (2 * h)
    np.testing.assert_allclose(speed, before / h, rtol=1e-3)
    np.testing.assert_allclose(temperature(t, edge), 0, atol=1e-12)
    flow = load("kovasznay")
    x = flow.WINDOW.interior(40, 0)
    f = flow.exact
    u, v = f(x)[:, 0], f(x)[:, 1]
    by = [first(f, x, 0), first(f, x, 1)]
    viscous = (second(f, x, 0, 0) + second(f, x, 1, 1)) / flow.REYNOLDS
    carried = u[:, None] * by[0] + v[:, None] * by[1] - viscous
    np.testing.assert_allclose(carried[:, 0] + by[0][:, 2], 0, atol=1e-4)
    np.testing.assert_allclose(carried[:, 1] + by[1][:, 2], 0, atol=1e-4)
    np.testing.assert_allclose(by[0][:, 0] + by[1][:, 1], 0, atol=1e-6)


def test_the_flow_in_the_corners_of_the_cavity() -> None:
    """Stokes' equations, the lid's speed and none on the walls."""
    cavity = load("cavity")
    x = cavity.CAVITY.interior(40, 0)
    ends = np.array([[0.3, 1.0], [0.0, 0.4], [1.0, 0.4]])
    for side, wall in ((0, 1), (1, 2)):
        f = lambda x, side=side: cavity.scraped(gc.Tensor(x), side).asnumpy()  # noqa: E731
        by = [first(f, x, 0, 1e-5), first(f, x, 1, 1e-5)]
        viscous = (second(f, x, 0, 0) + second(f, x, 1, 1)) / cavity.REYNOLDS
        size = np.abs(viscous).max()
        np.testing.assert_allclose(viscous[:, 0], by[0][:, 2], atol=1e-3 * size)
        np.testing.assert_allclose(viscous[:, 1], by[1][:, 2], atol=1e-3 * size)
        np.testing.assert_allclose(by[0][:, 0] + by[1][:, 1], 0, atol=1e-6)
        found = f(ends)[:, :2]
        np.testing.assert_allclose(found[[0, wall]], [[1, 0], [0, 0]], atol=1e-14)


def test_the_file_of_readings_is_what_the_program_writes(tmp_path: Path) -> None:
    rod = load("inverse_rod")
    rod.write(tmp_path / "rod.csv")
    made, kept = (physics.columns(file) for file in (tmp_path / "rod.csv", rod.FILE))
    for name in kept:
        np.testing.assert_allclose(made[name], kept[name], atol=0.011)
    found, deviation = rod.fit()
    assert (np.abs(found - [rod.DIFFUSIVITY, rod.LOSS]) < 3 * deviation).all()
