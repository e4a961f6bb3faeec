"""A fluid in a square box whose lid moves: steady Navier-Stokes equations at a Reynolds number of 100.

    u u_x + v u_y + p_x = (u_xx + u_yy) / 100,   u v_x + v v_y + p_y = (v_xx + v_yy) / 100,   u_x + v_y = 0

The lid moves at speed 1 and the walls do not, so that the velocity jumps at both upper corners, where no
smooth network can follow. Close to a corner the fluid moves as G. I. Taylor found (1962) for a blade that
scrapes along a plate. The solution is a network plus his for both corners, and the equation is multiplied
by the distances from them, because it grows there as one over the distance. The reference is the table of
U. Ghia, K. Ghia and C. Shin, J. Comput. Phys. 48, 1982: u along the middle line.

    python examples/problems/cavity.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import ops, physics

Solution = Callable[[gc.Tensor], gc.Tensor]
REYNOLDS = 100.0
CAVITY = physics.Box([0, 0], [1, 1])

HEIGHTS = [
    1.0, 0.9766, 0.9688, 0.9609, 0.9531, 0.8516, 0.7344, 0.6172, 0.5, 0.4531, 0.2813, 0.1719, 0.1016, 0.0703,
    0.0625, 0.0547, 0.0,
]  # fmt: skip
SPEEDS = [
    1.0, 0.84123, 0.78871, 0.73722, 0.68717, 0.23151, 0.00332, -0.13641, -0.20581, -0.2109, -0.15662, -0.1015,
    -0.06434, -0.04775, -0.04192, -0.03717, 0.0,
]  # fmt: skip


def scraped(x: gc.Tensor, side: int) -> gc.Tensor:
    """Velocities and pressure below a lid that scrapes along the wall x = 0 or 1, [n, 3]: the stream
    function is r (b sin t + c t cos t + d t sin t), with r from the corner and the angle t from the lid."""
    along, below = (1 - x[:, :1] if side else x[:, :1]), 1 - x[:, 1:]
    r, t = ops.sqrt(along**2 + below**2), ops.atan2(below, along)
    sin, cos = ops.sin(t), ops.cos(t)
    c = 1 / (1 - np.pi**2 / 4)
    b, d = 1 - c, c * np.pi / 2
    outwards = b * cos + c * (cos - t * sin) + d * (sin + t * cos)
    around = -(b * sin + c * t * cos + d * t * sin)
    pressure = 2 / REYNOLDS / r * (c * cos + d * sin)
    sign = -1.0 if side else 1.0
    u, down = outwards * cos - around * sin, outwards * sin + around * cos
    return ops.concat((u, -sign * down, sign * pressure), 1)


def solve(steps: int = 200) -> Solution:
    """Velocities and pressure, [n, 3]."""
    net = physics.network([2, 20, 20, 3], seed=0)

    def flow(x: gc.Tensor) -> gc.Tensor:
        return net(x) + scraped(x, 0) + scraped(x, 1)

    slopes = gc.partials(flow, [(), (0,), (1,), (0, 0), (1, 1)])

    def equation(x: gc.Tensor) -> gc.Tensor:
        f, by_x, by_y, xx, yy = slopes(x)
        u, v = f[:, :1], f[:, 1:2]
        carried = (u * by_x + v * by_y - (xx + yy) / REYNOLDS)[:, :2]
        pushed = ops.concat((by_x[:, 2:], by_y[:, 2:]), 1)
        below = (1 - x[:, 1:]) ** 2
        away = ops.sqrt((x[:, :1] ** 2 + below) * ((1 - x[:, :1]) ** 2 + below))
        return ops.concat((carried + pushed, by_x[:, :1] + by_y[:, 1:2]), 1) * away

    walls = physics.dirichlet(lambda x: flow(x)[:, :2])
    pressure = physics.dirichlet(lambda x: flow(x)[:, 2:], 0.0)
    edge, _ = CAVITY.boundary(400, 0)
    moves = np.hstack([edge[:, 1:] == 1, edge[:, 1:] < 0]) * 1.0
    corners = [(CAVITY & physics.Ball([k, 1], 0.2)).interior(125, 1 + k) for k in (0, 1)]
    inside = np.concatenate([CAVITY.interior(1000, 0), *corners])
    solver = gc.GaussNewton([equation, walls, pressure], net.trainable_params(), weights=[1, 10, 1])
    solver.run(steps, inside, (edge, moves), np.array([[0.5, 0.0]]))
    return flow


def middle(flow: Solution, y: Any) -> Any:
    """u on the vertical line through the middle, at heights y."""
    return flow(gc.Tensor(np.stack([np.full(len(y), 0.5), y], 1))).asnumpy()[:, 0]


def largest_error(flow: Solution) -> float:
    """The largest difference from the table."""
    return float(np.abs(middle(flow, HEIGHTS) - SPEEDS).max())


def plot(flow: Solution) -> Any:
    """Stream lines over the speed, and u along the middle line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    inner = physics.Box([0.001, 0.001], [0.999, 0.999])
    physics.plot(inner, lambda x: ops.norm(flow(x)[:, :2], dim=1), left, label="speed")
    line = np.linspace(0.001, 0.999, 80)
    grid = gc.Tensor(np.stack(np.meshgrid(line, line), -1).reshape(-1, 2))
    u, v = flow(grid).asnumpy()[:, :2].T.reshape(2, 80, 80)
    left.streamplot(line, line, u, v, color="white", linewidth=0.6, arrowsize=0.7)
    left.set(xlim=(0, 1), ylim=(0, 1))
    line = np.linspace(0, 1, 200)
    right.plot(middle(flow, line), line, label="network")
    right.plot(SPEEDS, HEIGHTS, "o", color="black", markersize=4, label="Ghia and others")
    right.set(xlabel="u(1/2, y)", ylabel="y")
    right.legend(frameon=False)
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    print(f"largest difference from the table {largest_error(solution):.1e} after {seconds:.1f} s")
    plot(solution).savefig("cavity.png", dpi=120)
