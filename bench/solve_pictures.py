"""Solutions of bench/solve_hard.py and solve_fields.py, each solved until its error is 1e-3: a picture with a
panel for each. `python bench/solve.py --picture` calls this."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import gradcell as gc
from solve_fields import conductivity, cosines
from solve_hard import HARD, States
from solve_problems import grid

#: The problems and what is drawn.
PANELS = {
    "l-shape": "u, whose slope is infinite at the corner",
    "slit": "u, the tip of the slit is at (0, 0)",
    "plate-with-hole": "displacement along the tension",
    "cavity-100": "speed",
    "double-well": "states at their energies",
    "conductivity": "k, and 50 measurements of u",
}
ENOUGH = 1e-3


def solved(name: str) -> tuple[Any, Any, float, float]:
    """The problem, its solution, the error and the seconds of the processor."""
    asked, begun, found = HARD[name](), time.process_time(), [None, 1.0]

    def passed(solution: Any) -> bool:
        found[:] = solution, asked.error(solution)
        return found[1] <= ENOUGH  # type: ignore[operator]

    asked.solved(passed, 300.0, 0)
    return asked, found[0], float(found[1]), time.process_time() - begun  # type: ignore[arg-type]


def draw(path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7.5), layout="constrained")
    for axes, (name, what) in zip(figure.subplots(2, 3).flat, PANELS.items(), strict=True):
        if name == "conductivity":
            error, seconds = _conductivity(figure, axes)
        else:
            asked, solution, error, seconds = solved(name)
            if isinstance(asked, States):
                _states(axes, asked, solution)
            else:
                values = asked.values(solution)
                shown = np.linalg.norm(values, axis=1) if name == "cavity-100" else values[:, 0]
                _dots(figure, axes, asked.test, shown)
        axes.set_title(f"{name}: {what}\nerror {error:.0e} after {seconds:.1f} s", fontsize=10)
        print(f"{name}: error {error:.1e}, {seconds:.1f} s", flush=True)
    figure.savefig(path, dpi=100)


def _states(axes: Any, asked: Any, solution: Any) -> None:
    x = np.linspace(-3.2, 3.2, 400)[:, None]
    axes.plot(x, asked.potential(x), color="0.3")
    for energy, net in zip(solution.energies, solution.networks, strict=True):
        f = net(gc.Tensor(x)).asnumpy()
        axes.plot(x, energy + f / np.abs(f).max())
    axes.set(ylim=(0, 19))


def _conductivity(figure: Any, axes: Any) -> tuple[float, float]:
    problem, begun = conductivity(0), time.process_time()
    solver = gc.GaussNewton(
        problem.residuals, problem.parameters, weights=problem.weights, value_tolerance=1e-7
    )
    points = problem.points(np.random.default_rng(0))
    solver.run(2000, *points)
    seconds, x = time.process_time() - begun, grid([0, 0], [1, 1], 71)
    k = np.exp(cosines(x, np) @ problem.network.field.asnumpy())  # type: ignore[union-attr]
    _dots(figure, axes, x, k)
    axes.plot(*points[1][0].asnumpy().T, ".", color="white", markersize=3)
    return problem.error(), seconds


def _dots(figure: Any, axes: Any, x: Any, values: Any) -> None:
    dots = axes.scatter(*x.T, c=values, s=12, marker="s", linewidths=0)
    axes.set_aspect("equal")
    figure.colorbar(dots, ax=axes, shrink=0.8)
