"""An L-shaped plate with a re-entrant corner, at which the slope is infinite.

    u_xx + u_yy = 0,   u = 0 at one end, u = 1 at the other, n . grad u = 0 on all other edges

is the voltage of a current that flows around the corner. There u is a constant plus r^(2/3) cos(2 t / 3),
which no smooth network is: the solution is a network plus two singular functions times unknown numbers.
The reference is a series of such functions, which NumPy fits to the outer edges (L. Fox, P. Henrici, C.
Moler, SIAM J. Numer. Anal. 4, 1967).

    python examples/problems/l_plate.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import physics

Solution = Callable[[gc.Tensor], gc.Tensor]
PLATE = physics.Polygon([[0, 0], [1, 0], [1, 1], [-1, 1], [-1, -1], [0, -1]])


def end(p: Any) -> Any:
    """Whether points of the boundary are at an end."""
    return (p[:, 0] == 1) | (p[:, 1] == -1)


def solve(steps: int = 60) -> Solution:
    """A network plus two singular functions."""
    (corner,) = PLATE.corners()
    net = physics.network([2, 16, 16, 1], seed=0)
    factors = gc.Parameter(gc.Tensor(np.zeros(2)), name="factors")

    def u(x: gc.Tensor) -> gc.Tensor:
        first, second = (physics.singular(x, corner, k, "slope") for k in (1, 2))
        return net(x) + factors[0] * first + factors[1] * second

    equation = gc.laplacian(net)  # that of the singular functions is 0
    ends = physics.dirichlet(u, lambda x: x[:, 1:] < -0.5)
    sides = physics.neumann(u, 0.0)

    points = PLATE.interior(600, 0), PLATE.boundary(80, 0, where=end)[0]
    edge = PLATE.boundary(240, 1, where=lambda p: ~end(p))
    parameters = [*net.trainable_params(), factors]
    solver = gc.GaussNewton([equation, ends, sides], parameters, weights=[1, 100, 10])
    solver.run(steps, *points, edge)
    return u


def reference(x: Any, terms: int = 40) -> Any:
    """A series of harmonic functions whose slope is 0 on the two edges at the corner."""
    power = np.arange(terms) * 2 / 3

    def series(p: Any, turn: float = 0.0, times: Any = 1.0, less: int = 0) -> Any:
        r, t = np.hypot(*p.T)[:, None], np.arctan2(p[:, 1], p[:, 0])[:, None] % (2 * np.pi)
        return times * r ** (power - less) * np.cos((power - less) * t + turn)

    outer = PLATE.boundary(2000, 1, where=lambda p: np.abs(p).max(1) == 1)
    at = end(outer[0])
    p, n = (a[~at] for a in outer)
    # the derivatives of Re z^a by x and y are a Re z^(a - 1) and -a Im z^(a - 1)
    slope = n[:, :1] * series(p, 0, power, 1) + n[:, 1:] * series(p, np.pi / 2, power, 1)
    rows = np.concatenate([series(outer[0][at]), slope])
    values = np.concatenate([outer[0][at][:, 1] == -1, np.zeros(len(p))])
    return series(np.asarray(x)) @ np.linalg.lstsq(rows, values, rcond=1e-14)[0]


def largest_error(u: Solution) -> float:
    """The largest error, also near the corner; the values go from 0 to 1."""
    near = (PLATE & physics.Ball([0, 0], 0.05)).interior(1000, 7)
    x = np.concatenate([PLATE.interior(4000, 7), near])
    return float(np.abs(u(gc.Tensor(x)).asnumpy()[:, 0] - reference(x)).max())


def plot(u: Solution) -> Any:
    """The voltage, and the error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    physics.plot(PLATE, u, left, label="u")

    def difference(x: gc.Tensor) -> Any:
        return u(x).asnumpy()[:, 0] - reference(x.asnumpy())

    physics.plot(PLATE, difference, right, label="error", signed=True)
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    print(f"largest error {largest_error(solution):.1e} after {seconds:.1f} s")
    plot(solution).savefig("l_plate.png", dpi=120)
