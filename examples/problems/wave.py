"""A pulse on a string that is held at one end and free at the other.

    u_tt = u_xx,   u(0, x) = f(x),   u_t(0, x) = 0,   u(t, 0) = 0,   u_x(t, 1) = 0

The halves of the pulse come back from the held end upside down, from the free end as they were. Points
are (t, x), and where time begins is a side of their box: the condition on u_t is that on a slope. Exact
(d'Alembert): half the sum of f(x + t) and f(x - t), for f mirrored at both ends.

    python examples/problems/wave.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import ops, physics

Solution = Callable[[gc.Tensor], gc.Tensor]
STRING = physics.Box([0, 0], [2, 1])


def pulse(x: Any) -> Any:
    """The string at the beginning: numbers of arrays and tensors."""
    exp = ops.exp if isinstance(x, gc.Tensor) else np.exp
    return exp(-(((x - 0.5) / 0.15) ** 2))


def solve(steps: int = 200) -> Solution:
    """The deflection."""
    u = physics.network([2, 20, 20, 20, 1], seed=0)
    second = gc.partials(u, [(0, 0), (1, 1)])

    def equation(p: gc.Tensor) -> gc.Tensor:
        u_tt, u_xx = second(p)
        return u_tt - u_xx

    residuals = [
        equation,
        physics.dirichlet(u, lambda p: pulse(p[:, 1:])),
        physics.neumann(u, 0.0),
        physics.dirichlet(u, 0.0),
        physics.neumann(u, 0.0),
    ]
    start, held, free = (
        STRING.boundary(n, 0, where=lambda p, k=k, end=end: p[:, k] == end)
        for n, k, end in ((100, 0, 0), (60, 1, 0), (60, 1, 1))
    )
    solver = gc.GaussNewton(residuals, u.trainable_params(), weights=[1, 1000, 100, 1000, 100])
    solver.run(steps, STRING.interior(1500, 0), start[0], start, held[0], free)
    return u


def exact(p: Any) -> Any:
    """The deflection, [n], of points with t up to 2."""
    t, x = p.T

    def mirrored(x: Any) -> Any:
        y = np.abs((x + 1) % 4 - 2) - 1  # even about 1 and -1, odd about 0: falls from 1 to -1
        return np.sign(-y) * pulse(np.abs(y))

    return (mirrored(x + t) + mirrored(x - t)) / 2


def largest_error(u: Solution) -> float:
    """The largest error; the pulse is 1 high."""
    p = STRING.interior(4000, 7)
    return float(np.abs(u(gc.Tensor(p)).asnumpy()[:, 0] - exact(p)).max())


def plot(u: Solution) -> Any:
    """The deflection over time, and at four times."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    physics.plot(STRING, u, left, label="u", signed=True)
    left.set(xlabel="t", ylabel="x", aspect="auto")
    x = np.linspace(0, 1, 200)
    for k, t in enumerate((0.0, 0.5, 1.0, 2.0)):
        p = np.stack([np.full(200, t), x], 1)
        right.plot(x, exact(p), color="0.8", linewidth=6)
        right.plot(x, u(gc.Tensor(p)).asnumpy(), color=f"C{k}", label=f"t = {t}")
    right.set(xlabel="x", ylabel="u; exact in grey")
    right.legend(frameon=False)
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    print(f"largest error {largest_error(solution):.1e} after {seconds:.1f} s")
    plot(solution).savefig("wave.png", dpi=120)
