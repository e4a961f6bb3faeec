"""A round inclusion that conducts heat ten times as well as the plate around it.

    k (u_xx + u_yy) = 0,   k = 10 in the disk, 1 around it;   u and k du/dn the same on both sides of its edge

There are two networks, one for each material, and what they share is two residuals on the edge between
them. On the outer edge the temperature is that of the exact solution in a field of slope 1, known since
Maxwell: 2 / 11 of the slope inside, a dipole outside.

    python examples/problems/interface.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import physics

Solution = Callable[[gc.Tensor], gc.Tensor]
INSIDE, OUTSIDE, RADIUS = 10.0, 1.0, 0.5
DISK = physics.Ball([0, 0], RADIUS)
PLATE = physics.Box([-1, -1], [1, 1])


def exact(x: Any) -> Any:
    """The temperature, [n, 1], of arrays and tensors."""
    share, squared = (OUTSIDE - INSIDE) / (OUTSIDE + INSIDE), x[:, :1] ** 2 + x[:, 1:] ** 2
    within = squared <= RADIUS**2
    return x[:, :1] * (1 + share * (within + (1 - within) * RADIUS**2 / (squared + within)))


def solve(steps: int = 60) -> tuple[Solution, Solution]:
    """The temperature in the disk and around it."""
    disk, plate = physics.network([2, 8, 1], seed=0), physics.network([2, 16, 16, 1])
    residuals = [
        gc.laplacian(disk),
        gc.laplacian(plate),
        physics.dirichlet(plate, exact),
        physics.interface(disk, plate, flux=(INSIDE, OUTSIDE)),
    ]
    parameters = [*disk.trainable_params(), *plate.trainable_params()]
    solver = gc.GaussNewton(residuals, parameters, weights=[1, 1, 100, 100])
    edge = PLATE.boundary(160, 0)[0]
    points = DISK.interior(100, 0), (PLATE - DISK).interior(500, 0), edge, DISK.boundary(80, 0)
    solver.run(steps, *points)
    return disk, plate


def values(parts: tuple[Solution, Solution], x: Any) -> Any:
    """The temperature at points, [n], by the network of the material there."""
    disk, plate = (u(gc.Tensor(x)).asnumpy()[:, 0] for u in parts)
    return np.where(DISK.inside(x), disk, plate)


def largest_error(parts: tuple[Solution, Solution]) -> float:
    """The largest error; the values go from -1 to 1."""
    x = PLATE.interior(4000, 7)
    return float(np.abs(values(parts, x) - exact(x)[:, 0]).max())


def plot(parts: tuple[Solution, Solution]) -> Any:
    """The temperature with its level lines, and the error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    physics.plot(PLATE, lambda x: values(parts, x.asnumpy()), left, label="temperature")
    line = np.linspace(-1, 1, 201)
    grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    levels = values(parts, grid).reshape(201, 201)
    left.contour(line, line, levels, 20, colors="white", linewidths=0.6, linestyles="solid")

    def difference(x: gc.Tensor) -> Any:
        return values(parts, x.asnumpy()) - exact(x.asnumpy())[:, 0]

    physics.plot(PLATE, difference, right, label="error", signed=True)
    angle = np.linspace(0, 2 * np.pi, 200)
    for axes in (left, right):
        axes.plot(RADIUS * np.cos(angle), RADIUS * np.sin(angle), color="black", linewidth=0.8)
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    print(f"largest error {largest_error(solution):.1e} after {seconds:.1f} s")
    plot(solution).savefig("interface.png", dpi=120)
