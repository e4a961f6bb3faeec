"""The flow behind a grid: steady Navier-Stokes equations, whose exact solution L. Kovasznay found in 1948.

    u u_x + v u_y + p_x = (u_xx + u_yy) / 40,   u v_x + v v_y + p_y = (v_xx + v_yy) / 40,   u_x + v_y = 0

The network has three outputs, and the equation three residuals for each point. The velocities are given
on the edges, the pressure at one point, because the equations know its slopes alone.

    python examples/problems/kovasznay.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import ops, physics

Solution = Callable[[gc.Tensor], gc.Tensor]
REYNOLDS = 40.0
WINDOW = physics.Box([-0.5, -0.5], [1.0, 1.5])


def solve(steps: int = 100) -> Solution:
    """Velocities and pressure, [n, 3]."""
    flow = physics.network([2, 24, 24, 3], seed=0)
    slopes = gc.partials(flow, [(), (0,), (1,), (0, 0), (1, 1)])

    def equation(x: gc.Tensor) -> gc.Tensor:
        f, by_x, by_y, xx, yy = slopes(x)
        u, v = f[:, :1], f[:, 1:2]
        carried = (u * by_x + v * by_y - (xx + yy) / REYNOLDS)[:, :2]
        pushed = ops.concat((by_x[:, 2:], by_y[:, 2:]), 1)
        return ops.concat((carried + pushed, by_x[:, :1] + by_y[:, 1:2]), 1)

    velocities = physics.dirichlet(lambda x: flow(x)[:, :2])
    pressure = physics.dirichlet(lambda x: flow(x)[:, 2:])
    edge, point = WINDOW.boundary(300, 0)[0], np.array([[1.0, 0.5]])
    solver = gc.GaussNewton(
        [equation, velocities, pressure], flow.trainable_params(), weights=[1, 100, 10]
    )
    given = (edge, exact(edge)[:, :2]), (point, exact(point)[:, 2:])
    solver.run(steps, WINDOW.interior(800, 0), *given)
    return flow


def exact(x: Any) -> Any:
    """Velocities and pressure, [n, 3]."""
    decay = REYNOLDS / 2 - np.sqrt(REYNOLDS**2 / 4 + 4 * np.pi**2)
    falls, turn = np.exp(decay * x[:, 0]), 2 * np.pi * x[:, 1]
    v = decay / (2 * np.pi) * falls * np.sin(turn)
    return np.stack([1 - falls * np.cos(turn), v, (1 - falls**2) / 2], 1)


def largest_error(flow: Solution) -> float:
    """The largest error of the velocities; they are of order 1."""
    x = WINDOW.interior(4000, 7)
    return float(np.abs(flow(gc.Tensor(x)).asnumpy() - exact(x))[:, :2].max())


def plot(flow: Solution) -> Any:
    """Stream lines over the speed, and the pressure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    physics.plot(WINDOW, lambda x: ops.norm(flow(x)[:, :2], dim=1), left, label="speed")
    x, y = np.linspace(-0.5, 1, 60), np.linspace(-0.5, 1.5, 80)
    grid = gc.Tensor(np.stack(np.meshgrid(x, y), -1).reshape(-1, 2))
    u, v = flow(grid).asnumpy()[:, :2].T.reshape(2, 80, 60)
    left.streamplot(x, y, u, v, color="white", linewidth=0.6, arrowsize=0.7)
    left.set(xlim=(-0.5, 1), ylim=(-0.5, 1.5))
    physics.plot(WINDOW, lambda x: flow(x)[:, 2], right, label="pressure", signed=True)
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    print(f"largest error {largest_error(solution):.1e} after {seconds:.1f} s")
    plot(solution).savefig("kovasznay.png", dpi=120)
