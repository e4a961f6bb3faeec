"""A steel plate with a hole under tension, in millimetres and megapascals.

    div s = 0,   s = stress of the strain in u (plane stress);   s n given on the outer edges, 0 at the hole

A quarter of the plate is enough: on the two cuts the displacement across and the shear are 0. Lengths,
displacements and stresses have units outside the network and are of order 1 inside it: 100 MPa on 210,000
MPa move a plate of 50 mm by 0.02 mm. The exact solution is G. Kirsch's (1898) for an infinite plate,
which has three times the tension at the hole.

    python examples/problems/elasticity.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import ops, physics

Solution = Callable[[gc.Tensor], gc.Tensor]
YOUNG, POISSON = 210e3, 0.3  # MPa, 1
TENSION, RADIUS, SIDE = 100.0, 20.0, 50.0  # MPa, mm, mm
PLATE = physics.Box([0, 0], [SIDE, SIDE]) - physics.Ball([0, 0], RADIUS)


def stress(u: Solution) -> Solution:
    """The stresses xx, yy and xy in MPa at points in mm, [n, 3]."""
    slopes = gc.partials(u, [(0,), (1,)])

    def found(x: gc.Tensor) -> gc.Tensor:
        by_x, by_y = slopes(x)
        xx, yy, xy = by_x[:, :1], by_y[:, 1:], by_y[:, :1] + by_x[:, 1:]
        parts = xx + POISSON * yy, yy + POISSON * xx, (1 - POISSON) / 2 * xy
        return YOUNG / (1 - POISSON**2) * ops.concat(parts, 1)

    return found


def solve(steps: int = 80) -> Solution:
    """The displacement in mm at points in mm."""
    net = physics.network([2, 24, 24, 2], seed=0)

    def u(x: gc.Tensor) -> gc.Tensor:
        return net(x / SIDE) * (TENSION * SIDE / YOUNG)

    s, second = stress(u), gc.partials(u, [(0, 0), (0, 1), (1, 1)])
    less, more = (1 - POISSON) / 2, (1 + POISSON) / 2

    def balance(x: gc.Tensor) -> gc.Tensor:
        """div s over TENSION / SIDE."""
        xx, xy, yy = second(x)
        across = xx[:, :1] + less * yy[:, :1] + more * xy[:, 1:]
        along = yy[:, 1:] + less * xx[:, 1:] + more * xy[:, :1]
        unit = YOUNG / (1 - POISSON**2) * SIDE / TENSION
        return ops.concat((across, along), 1) * unit

    def traction(x: gc.Tensor, n: gc.Tensor, given: gc.Tensor) -> gc.Tensor:
        """s n - given over TENSION."""
        return (force(s(x), n) - given) / TENSION

    def cut(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
        """The displacement across over that of order 1, and the shear."""
        moved = (u(x) * n).sum(1).reshape(-1, 1) * (YOUNG / TENSION / SIDE)
        return ops.concat((moved, s(x)[:, 2:] / TENSION), 1)

    x, n = PLATE.boundary(400, 0, where=lambda p: p.min(1) > 0)
    outer = x.max(1) == SIDE
    given = np.where(outer[:, None], force(exact(x), n), 0.0)
    cuts = PLATE.boundary(120, 1, where=lambda p: p.min(1) == 0)
    solver = gc.GaussNewton([balance, traction, cut], net.trainable_params(), weights=[1, 10, 100])
    solver.run(steps, PLATE.interior(800, 0), (x, n, given), cuts)
    return u


def force(s: Any, n: Any) -> Any:
    """s n, [n, 2], of stresses [n, 3] and normals [n, 2]."""
    rows = s[:, :1] * n[:, :1] + s[:, 2:] * n[:, 1:], s[:, 2:] * n[:, :1] + s[:, 1:2] * n[:, 1:]
    return ops.concat(rows, 1) if isinstance(s, gc.Tensor) else np.hstack(rows)


def exact(x: Any) -> Any:
    """Kirsch's stresses xx, yy and xy in MPa, [n, 3]."""
    t, q = np.arctan2(x[:, 1], x[:, 0]), RADIUS**2 / (x**2).sum(1)
    radial = (1 - q) + (1 - 4 * q + 3 * q**2) * np.cos(2 * t)
    around = (1 + q) - (1 + 3 * q**2) * np.cos(2 * t)
    shear = -(1 + 2 * q - 3 * q**2) * np.sin(2 * t)
    mean, half = (radial + around) / 2, (radial - around) / 2
    turned = half * np.cos(2 * t) - shear * np.sin(2 * t)
    across = half * np.sin(2 * t) + shear * np.cos(2 * t)
    return TENSION / 2 * np.stack([mean + turned, mean - turned, across], 1)


def largest_error(u: Solution) -> float:
    """The largest error of the stresses in MPa, also at the hole."""
    x = np.concatenate([PLATE.interior(4000, 7), PLATE.boundary(1000, 7)[0]])
    return float(np.abs(stress(u)(gc.Tensor(x)).asnumpy() - exact(x)).max())


def plot(u: Solution) -> Any:
    """The stress along the tension, and its error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    s = stress(u)
    physics.plot(PLATE, lambda x: s(x)[:, 0], left, label="stress xx [MPa]", cmap="inferno")

    def difference(x: gc.Tensor) -> Any:
        return s(x).asnumpy()[:, 0] - exact(x.asnumpy())[:, 0]

    physics.plot(PLATE, difference, right, label="error [MPa]", signed=True)
    for axes in (left, right):
        axes.set(xlabel="x [mm]", ylabel="y [mm]")
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    top = stress(solution)(gc.Tensor(np.array([[0.0, RADIUS]]))).asnumpy()[0, 0]
    print(f"stress at the hole {top:.2f} MPa (exact {3 * TENSION:.0f})")
    print(f"largest error {largest_error(solution):.1e} MPa after {seconds:.1f} s")
    plot(solution).savefig("elasticity.png", dpi=120)
