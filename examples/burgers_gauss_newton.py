"""Burgers' equation to an error below 1e-4: Gauss-Newton steps in float64, with new points now and then.

u_t + u u_x = 0.01 / pi u_xx from u(0, x) = -sin(pi x), with u(t, -1) = u(t, 1) = 0. The start and the edges
hold by construction, so that there is one residual for each point; half of the points are near x = 0, where
the solution becomes steep. The exact solution is the demo's (python -m gradcell demo burgers).

    python examples/burgers_gauss_newton.py --plot burgers_gauss_newton.png
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import gradcell as gc
from gradcell import nn, ops
from gradcell.demo.burgers import NU, exact

Course = list[tuple[float, float, float]]  # (seconds, loss, relative error)


def network(width: int, depth: int, seed: int = 0) -> nn.SequentialCell:
    """Points [n, 2] to values [n, 1] by `depth` layers of tanh, in float64."""
    gc.set_seed(seed)
    cells: list[nn.Cell] = []
    for k in range(depth + 1):
        sizes = (2 if k == 0 else width), (1 if k == depth else width)
        cells.append(
            nn.Dense(*sizes, weight_init="xavier_uniform", bias_init="zeros", dtype=gc.float64)
        )
        if k < depth:
            cells.append(nn.Tanh())
    return nn.SequentialCell(*cells)


def solution(net: nn.Cell) -> Callable[[gc.Tensor], gc.Tensor]:
    """u of points (t, x)."""

    def u(p: gc.Tensor) -> gc.Tensor:
        t, x = p[:, :1], p[:, 1:]
        return t * (1 - x * x) * net(p) - ops.sin(np.pi * x)

    return u


def points(n: int, random: np.random.Generator) -> gc.Tensor:
    """Half of them evenly spread, half with a density that peaks at x = 0."""
    t, x = random.random(n), random.uniform(-1, 1, n)
    x[: n // 2] = np.tan(1.48 * x[: n // 2]) / np.tan(1.48)
    return gc.Tensor(np.stack([t, x], 1))


def solve(
    steps: int, n: int = 2048, width: int = 20, seconds: float | None = None, seed: int = 0
) -> tuple[Callable[[gc.Tensor], gc.Tensor], Course]:
    """The solution, and how it was reached."""
    net, random = network(width, 3, seed), np.random.default_rng(seed)
    u = solution(net)
    derivatives = gc.partials(u, [(0,), (1,), (1, 1)])

    def residuals(p: gc.Tensor) -> gc.Tensor:
        u_t, u_x, u_xx = derivatives(p)
        return u_t + u(p) * u_x - NU * u_xx

    begun, course = time.perf_counter(), Course()

    def note(state: gc.GaussNewtonState) -> None:
        course.append((time.perf_counter() - begun, state.loss, error(u)))

    solver = gc.GaussNewton(residuals, net.trainable_params())
    state = solver.run(
        steps, resample=lambda _: points(n, random), every=20, callback=note, max_seconds=seconds,
        progress=50,
    )  # fmt: skip
    print(state.message)
    return u, course


def grid(rows: int = 50, columns: int = 129) -> tuple[np.ndarray, np.ndarray]:
    t, x = np.meshgrid(np.linspace(0.02, 1, rows), np.linspace(-1, 1, columns), indexing="ij")
    return t, x


def values(u: Callable[[gc.Tensor], gc.Tensor], t: np.ndarray, x: np.ndarray) -> np.ndarray:
    return u(gc.Tensor(np.stack([t.ravel(), x.ravel()], 1))).asnumpy().reshape(t.shape)


def error(u: Callable[[gc.Tensor], gc.Tensor]) -> float:
    """The relative L2 error."""
    t, x = grid()
    want = exact(t, x)
    return float(np.linalg.norm(values(u, t, x) - want) / np.linalg.norm(want))


def plot(u: Callable[[gc.Tensor], gc.Tensor], course: Course, path: str) -> None:
    """Loss and error over time, and where the error is."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    seconds, losses, errors = np.array(course).T
    left.loglog(seconds, losses, lw=0.8, label="mean square residual")
    left.loglog(seconds, errors, label="relative error")
    left.set(xlabel="seconds")
    left.legend(frameon=False)
    t, x = grid(200, 401)
    size = np.log10(np.abs(values(u, t, x) - exact(t, x)) + 1e-12)
    image = right.pcolormesh(t, x, size, cmap="Purples", vmin=-9, rasterized=True)
    figure.colorbar(image, ax=right, label="log10 |network - exact|")
    right.set(xlabel="t", ylabel="x", title=f"relative L2 error {errors[-1]:.1e}")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--points", type=int, default=2048)
    parser.add_argument("--plot", default="burgers_gauss_newton.png")
    given = parser.parse_args()
    u, course = solve(given.steps, given.points)
    print(f"relative L2 error {course[-1][2]:.1e} after {course[-1][0]:.0f} s")
    plot(u, course, given.plot)
    print(f"saved {given.plot}")


if __name__ == "__main__":
    main()
