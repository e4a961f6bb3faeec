"""A cooling fin: heat comes in at its base and leaves to the air, in proportion to the temperature.

    u_xx + u_yy = 0;   -u_x = 1 at the base x = 0;   n . grad u + 2 u = 0 on the three other sides

The factor is the heat transfer coefficient over the conductivity (Robin's condition; for the temperature
above that of the air, and a fin 1 high). The exact solution is a series of products of cosines across and
exponentials along the fin.

    python examples/problems/robin.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import physics

Solution = Callable[[gc.Tensor], gc.Tensor]
TRANSFER, LENGTH = 2.0, 2.0
FIN = physics.Box([0, -0.5], [LENGTH, 0.5])


def base(p: Any) -> Any:
    """Whether points are where the heat comes in."""
    return p[:, 0] == 0


def solve(steps: int = 80) -> Solution:
    """The temperature."""
    u = physics.network([2, 20, 20, 1], seed=0)
    residuals = [gc.laplacian(u), physics.neumann(u, 1.0), physics.robin(u, TRANSFER, 1.0, 0.0)]
    solver = gc.GaussNewton(residuals, u.trainable_params())
    heated = FIN.boundary(200, 0, where=base)
    cooled = FIN.boundary(600, 0, where=lambda p: ~base(p))
    solver.run(steps, FIN.interior(1500, 0), heated, cooled)
    return u


def exact(x: Any, terms: int = 60) -> Any:
    """The series, [n]: the n-th wave number q across the fin solves q tan(q / 2) = TRANSFER."""
    low = 2 * np.pi * np.arange(terms)[:, None]
    ends = np.concatenate([low, low + np.pi], 1)
    for _ in range(60):  # halves the interval in which it is
        q = ends.mean(1)
        above = q * np.abs(np.sin(q / 2)) > TRANSFER * np.abs(np.cos(q / 2))
        ends[above, 1], ends[~above, 0] = q[above], q[~above]
    # 1 = sum of c cos(q y), by orthogonality; along the fin it falls, but for what comes back from the tip
    c = 2 * np.sin(q / 2) / q / (0.5 + np.sin(q) / (2 * q))
    back = (q - TRANSFER) / (q + TRANSFER)
    along = x[:, :1]
    wave = np.exp(-q * along) + back * np.exp(-q * (2 * LENGTH - along))
    factor = c / (q * (1 - back * np.exp(-2 * q * LENGTH)))
    return np.sum(factor * wave * np.cos(q * x[:, 1:]), 1)


def largest_error(u: Solution) -> float:
    """The largest error over the largest temperature."""
    x = FIN.interior(4000, 7)
    want = exact(x, 400)
    return float(np.abs(u(gc.Tensor(x)).asnumpy()[:, 0] - want).max() / want.max())


def plot(u: Solution) -> Any:
    """The temperature, and the error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    physics.plot(FIN, u, left, label="temperature", cmap="inferno")

    def difference(x: gc.Tensor) -> Any:
        return u(x).asnumpy()[:, 0] - exact(x.asnumpy())

    physics.plot(FIN, difference, right, label="error", signed=True)
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    print(f"largest error {largest_error(solution):.1e} after {seconds:.1f} s")
    plot(solution).savefig("robin.png", dpi=120)
