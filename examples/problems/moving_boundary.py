"""Ice melts from a warm side: how far the water reaches is unknown too (J. Stefan's problem).

    u_t = u_xx for 0 < x < s(t),   u(t, 0) = 1,   u(t, s) = 0,   s' = -u_x(t, s)

from t = 0.1 to 1. The edge s(t) is a network of its own. The equation is written in y = x / s(t), in
which the region does not move: u_x = u_y / s, and at fixed x u_t gets the term -y s' / s u_y. Exact (F.
Neumann): s = 2 a sqrt(t), u = 1 - erf(a y) / erf(a), where sqrt(pi) a exp(a^2) erf(a) = 1.

    python examples/problems/moving_boundary.py
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import ops, physics

Solution = Callable[[gc.Tensor], gc.Tensor]
FIXED = physics.Box([0.1, 0], [1, 1])  # t and y
GROWTH = 0.6200626333135955
ERF = np.vectorize(math.erf)


def solve(steps: int = 60) -> tuple[Solution, Solution]:
    """u of points (t, y), and s of times."""
    u, s = physics.network([2, 16, 16, 1], seed=0), physics.network([1, 8, 1])
    by, speed = gc.partials(u, [(0,), (1,), (1, 1)]), gc.partials(s, [(0,)])

    def equation(p: gc.Tensor) -> gc.Tensor:
        (u_t, u_y, u_yy), (s_t,), there = by(p), speed(p[:, :1]), s(p[:, :1])
        return u_t - p[:, 1:] * s_t / there * u_y - u_yy / ops.square(there)

    def front(p: gc.Tensor) -> gc.Tensor:
        (s_t,), u_y = speed(p[:, :1]), by(p)[1]
        return ops.concat((s_t + u_y / s(p[:, :1]), u(p)), 1)

    start, warm, edge = (
        FIXED.boundary(60, 0, where=lambda p, k=k, end=end: p[:, k] == end)[0]
        for k, end in ((0, 0.1), (1, 0), (1, 1))
    )
    residuals = [
        equation, physics.dirichlet(u), physics.dirichlet(u, 1.0), front, physics.dirichlet(s),
    ]  # fmt: skip
    begin = np.array([[0.1]])
    solver = gc.GaussNewton(
        residuals, [*u.trainable_params(), *s.trainable_params()], weights=[1, 100, 100, 10, 100]
    )
    given = (start, temperature(start)), warm, edge, (begin, reach(begin))
    solver.run(steps, FIXED.interior(500, 0), *given)
    return u, s


def temperature(p: Any) -> Any:
    """The exact temperature at (t, y), [n, 1]."""
    return 1 - ERF(GROWTH * p[:, 1:]) / math.erf(GROWTH)


def reach(t: Any) -> Any:
    """How far the water reaches, exactly."""
    return 2 * GROWTH * np.sqrt(t)


def largest_error(solution: tuple[Solution, Solution]) -> float:
    """The largest error of the temperature and of the edge's place."""
    p = FIXED.interior(4000, 7)
    u, s = (f.asnumpy() for f in (solution[0](gc.Tensor(p)), solution[1](gc.Tensor(p[:, :1]))))
    return float(max(np.abs(u - temperature(p)).max(), np.abs(s - reach(p[:, :1])).max()))


def plot(solution: tuple[Solution, Solution]) -> Any:
    """The temperature where there is water, and the edge."""
    from matplotlib.figure import Figure

    u, s = solution
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.subplots()
    t, y = np.meshgrid(np.linspace(0.1, 1, 120), np.linspace(0, 1, 80))
    p = gc.Tensor(np.stack([t.ravel(), y.ravel()], 1))
    x = y * s(p[:, :1]).asnumpy().reshape(t.shape)
    image = axes.pcolormesh(t, x, u(p).asnumpy().reshape(t.shape), cmap="inferno", rasterized=True)
    figure.colorbar(image, ax=axes, label="temperature")
    axes.plot(t[-1], x[-1], color="C0", linewidth=4, label="edge")
    axes.plot(t[0], reach(t[0]), "--", color="black", label="exact edge")
    axes.set(xlabel="t", ylabel="x")
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    print(f"largest error {largest_error(solution):.1e} after {seconds:.1f} s")
    plot(solution).savefig("moving_boundary.png", dpi=120)
