"""Bratu's equation, which has two solutions, one, or none.

    u'' + c exp(u) = 0,   u(0) = u(1) = 0

Below c = 3.5138 there are two solutions, which meet there. The program finds all of them, beyond the fold
too: it fixes the height u(1/2) and looks for c, an unknown number beside the weights, and each solution
begins from the one before. Exact: c = t^2 / 2 / cosh(t / 4)^2 for the height 2 log cosh(t / 4).

    python examples/problems/bratu.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import ops, physics

HEIGHTS = np.linspace(0.25, 5.0, 20)
LINE = np.linspace(0, 1, 101)[:, None]


def solve(steps: int = 30, count: int = len(HEIGHTS)) -> tuple[list[float], list[Any]]:
    """For the first heights the number c, and the solution at the points of LINE."""
    u = physics.network([1, 16, 16, 1], seed=0)
    c = gc.Parameter(gc.Tensor(np.array([1.0])), name="c")
    second = gc.laplacian(u)

    def equation(x: gc.Tensor) -> gc.Tensor:
        return second(x) + c * ops.exp(u(x))

    parameters = [*u.trainable_params(), c]
    residuals = [equation, physics.dirichlet(u)]
    solver = gc.GaussNewton(residuals, parameters, weights=[1, 1000], loss_tolerance=1e-16)
    inside, known = np.linspace(0, 1, 80)[:, None], np.array([[0.0], [0.5], [1.0]])
    found, solutions = [], []
    for height in HEIGHTS[:count]:
        solver.run(steps, inside, (known, np.array([[0.0], [height], [0.0]])))
        found.append(float(c.asnumpy()[0]))
        solutions.append(u(gc.Tensor(LINE)).asnumpy()[:, 0])
    return found, solutions


def exact(height: Any) -> tuple[Any, Any]:
    """The number c, and the solution at the points of LINE."""
    t = 4 * np.arccosh(np.exp(np.asarray(height) / 2))
    inner = np.cosh((LINE[:, 0] - 0.5) * t[..., None] / 2)
    return t**2 / 2 / np.cosh(t / 4) ** 2, -2 * np.log(inner / np.cosh(t / 4)[..., None])


def largest_error(found: list[float], solutions: list[Any]) -> float:
    """The largest error of c and of the solutions, for the first of HEIGHTS."""
    c, u = exact(HEIGHTS[: len(found)])
    return max(float(np.abs(found - c).max()), float(np.abs(solutions - u).max()))


def plot(found: list[float], solutions: list[Any]) -> Any:
    """The heights over c, and the solutions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    line = np.linspace(0.01, HEIGHTS[-1], 300)
    left.plot(exact(line)[0], line, color="0.8", linewidth=6, label="exact")
    left.plot(found, HEIGHTS[: len(found)], "o", label="networks")
    left.set(xlabel="c", ylabel="u(1/2)")
    left.legend(frameon=False)
    for solution in solutions:
        right.plot(LINE, solution, color="C0", linewidth=1)
    right.set(xlabel="x", ylabel="u")
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    print(f"largest error {largest_error(*solution):.1e} after {seconds:.1f} s")
    plot(*solution).savefig("bratu.png", dpi=120)
