"""How well a rod conducts heat and how fast it loses it, from thermometers: a file of noisy numbers.

    T_t = D T_xx - b (T - 20 C)

D and b are unknown. The ends are held at 100 and 20 C, and the temperature falls evenly between them
until a fan starts. rod.csv has 180 readings of three thermometers, in seconds, millimetres and degrees;
their noise is 0.5 C. The file was written by write() below, with D = 110 mm^2/s and b = 0.005 / s, from
the exact series. The reference is what fits the readings best if that series is known, which has an
uncertainty of 1.9 mm^2/s.

    python examples/problems/inverse_rod.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import ops, physics

Solution = Callable[[gc.Tensor], gc.Tensor]
FILE = Path(__file__).with_name("rod.csv")
LENGTH, DURATION, ROOM, RISE = 400.0, 300.0, 20.0, 80.0  # mm, s, C, C
DIFFUSIVITY, LOSS, NOISE = 110.0, 0.005, 0.5  # mm^2/s, 1/s, C
ROD = physics.Box([0, 0], [DURATION, LENGTH])


def solve(steps: int = 80) -> tuple[Solution, float, float]:
    """The temperature of points (t, x) in s and mm, the diffusivity in mm^2/s and the loss in 1/s."""
    data = physics.columns(FILE)
    readings = np.hstack([data["time_s"], data["position_mm"]])

    net = physics.network([2, 16, 16, 1], seed=0)
    unknown = gc.Parameter(gc.Tensor(np.log([50.0, 0.01])), name="log of the unknown")
    unit = gc.Tensor(np.array([DURATION, LENGTH]))

    def temperature(p: gc.Tensor) -> gc.Tensor:
        return ROOM + RISE * net(p / unit)

    slopes = gc.partials(temperature, [(), (0,), (1, 1)])

    def equation(p: gc.Tensor) -> gc.Tensor:
        """In degrees over the duration, and those over the rise."""
        (value, by_t, by_xx), (diffusivity, loss) = slopes(p), ops.exp(unknown)
        return (by_t - diffusivity * by_xx + loss * (value - ROOM)) * (DURATION / RISE)

    known = physics.dirichlet(lambda p: temperature(p) / RISE, lambda p: begin(p) / RISE)
    measured = physics.dirichlet(lambda p: temperature(p) / RISE)
    edge = ROD.boundary(150, 0, where=lambda p: p[:, 0] < DURATION)[0]
    points = ROD.interior(500, 0), edge, (readings, data["temperature_C"] / RISE)
    solver = gc.GaussNewton(
        [equation, known, measured], [*net.trainable_params(), unknown], weights=[1, 100, 1]
    )
    solver.run(steps, *points)
    diffusivity, loss = np.exp(unknown.asnumpy()).tolist()
    return temperature, diffusivity, loss


def begin(p: Any) -> Any:
    """The temperature at the beginning and at the ends."""
    return ROOM + RISE * (1 - p[:, 1:] / LENGTH)


def exact(p: Any, diffusivity: float = DIFFUSIVITY, loss: float = LOSS) -> Any:
    """The temperature at (t, x), [n]: what it comes to, and a series of sines that die out."""
    k, m = np.arange(1, 200) * np.pi, LENGTH * np.sqrt(loss / diffusivity)
    t, share = p[:, :1], p[:, 1:] / LENGTH
    falls = np.exp(-(diffusivity * (k / LENGTH) ** 2 + loss) * t)
    series = 2 * m**2 / (k * (k**2 + m**2)) * np.sin(k * share) * falls
    return ROOM + RISE * (np.sinh(m * (1 - share[:, 0])) / np.sinh(m) + series.sum(1))


def fit() -> tuple[Any, Any]:
    """D and b of the series that is closest to the readings, and their standard deviations."""
    data = physics.columns(FILE)
    p, read = np.hstack([data["time_s"], data["position_mm"]]), data["temperature_C"][:, 0]
    found, small = np.array([DIFFUSIVITY, LOSS]), np.diag([1e-2, 1e-6])
    for _ in range(10):
        ends = [exact(p, *(found + h)) - exact(p, *(found - h)) for h in small]
        jacobian = np.stack(ends, 1) / (2 * small.sum(0))
        found = found + np.linalg.lstsq(jacobian, read - exact(p, *found), rcond=None)[0]
    return found, NOISE * np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian)))


def error(temperature: Solution, diffusivity: float, loss: float) -> float:
    """How far the diffusivity is from that of the best fit, as a share."""
    return float(abs(diffusivity / fit()[0][0] - 1))


def write(file: Path) -> None:
    """Makes the file of readings."""
    random = np.random.default_rng(5)
    times, places = np.linspace(5, DURATION, 60), (100.0, 200.0, 300.0)
    p = np.stack(np.meshgrid(times, places, indexing="ij"), -1).reshape(-1, 2)
    read = exact(p) + NOISE * random.standard_normal(len(p))
    lines = [f"{t:.1f},{x:.0f},{value:.2f}" for (t, x), value in zip(p, read, strict=True)]
    file.write_text("\n".join(["time_s,position_mm,temperature_C", *lines]) + "\n")


def plot(temperature: Solution, diffusivity: float, loss: float) -> Any:
    """The readings, the network's temperature and the exact one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes, data = figure.subplots(), physics.columns(FILE)
    times = np.linspace(0, DURATION, 200)
    for k, place in enumerate(np.unique(data["position_mm"])):
        here = data["position_mm"] == place
        p = np.stack([times, np.full(200, place)], 1)
        axes.plot(times, exact(p), color="0.8", linewidth=6)
        axes.plot(
            times, temperature(gc.Tensor(p)).asnumpy(), color=f"C{k}", label=f"{place:.0f} mm"
        )
        axes.plot(
            data["time_s"][here], data["temperature_C"][here], ".", color=f"C{k}", markersize=4
        )
    axes.set(xlabel="t [s]", ylabel="T [C]; exact in grey")
    axes.set_title(f"D = {diffusivity:.1f} mm²/s (110), b = {loss:.5f} / s (0.005)", fontsize=10)
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    best, deviation = fit()
    for name, found, want, margin in zip(("D", "b"), solution[1:], best, deviation, strict=True):
        print(f"{name} = {found:.4g}, the best fit of the exact series {want:.4g} +- {margin:.2g}")
    print(f"D is {error(*solution):.1e} from that fit, after {seconds:.1f} s")
    plot(*solution).savefig("inverse_rod.png", dpi=120)
