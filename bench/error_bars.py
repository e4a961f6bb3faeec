"""Whether error bars hold: covariances of fitted parameters, and estimates of solutions' errors.

    python bench/error_bars.py                           # 100 seeds, six equations (some minutes)
    python bench/error_bars.py --seeds 20 --problems poisson heat

Out: error_bars.md and error_bars.png (needs Matplotlib) in bench/results. How often do intervals of two
standard deviations hold the true values, over fits to data with new noise (a network for a pendulum, whose
stiffness and friction are unknown, and a curve of growth)? And how near do estimates of the error, from
residuals alone, come to the true error of solutions of solve_problems.py?
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import ops, physics
from solve_problems import PROBLEMS, network

RESULTS = Path(__file__).parent / "results"
#: Gauss-Newton steps of the training, by problem.
STEPS = {
    "poisson": 40, "poisson-5": 40, "heat": 40, "helmholtz-1": 40, "kovasznay": 60, "wave": 60,
    "burgers": 150,
}  # fmt: skip
Fit = Callable[[np.random.Generator], tuple[Any, Any]]


# Parameters ---------------------------------------------------------------------------------------------


def pendulum(random: np.random.Generator) -> tuple[Any, Any]:
    """log c, log k of y'' + c y' + k y = 0 beside a network's weights, from 40 measurements: how far they
    are from the truth, in standard deviations, and the noise found over the true one."""
    times = np.sort(random.uniform(0, 5, (40, 1)))
    w = np.sqrt(4 - 0.2**2)
    exact = np.exp(-0.2 * times) * (np.cos(w * times) + 0.2 / w * np.sin(w * times))
    data = times, exact + 0.02 * random.normal(size=times.shape)
    net = network(1, 16, 2, 0)
    unknown = [gc.Parameter(gc.Tensor(np.zeros(1)), name=name) for name in ("log_c", "log_k")]
    velocity = gc.grad(net)
    acceleration = gc.grad(velocity)

    def equation(t: gc.Tensor) -> gc.Tensor:
        c, k = (ops.exp(p) for p in unknown)
        return acceleration(t) + c * velocity(t) + k * net(t)

    def misfit(t: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
        return net(t) - y

    gc.GaussNewton(misfit, net.trainable_params()).run(30, *data)
    solver = gc.GaussNewton([equation, misfit], [*net.trainable_params(), *unknown])
    solver.run(150, np.linspace(0, 5, 150)[:, None], data)
    found = solver.covariance(unknown, data=misfit)
    off = np.array([float(p) for p in unknown]) - np.log([0.4, 4.0])
    return off / found.deviations, found.noise[0] / 0.02


def growth(random: np.random.Generator) -> tuple[Any, Any]:
    """Rate, limit and beginning of a logistic curve, from 25 measurements: the same."""
    true = np.array([0.9, 12.0, 0.15])
    p = gc.Parameter(gc.Tensor(np.array([0.5, 10.0, 0.5])), name="p")

    def curve(v: Any, t: Any, exp: Any) -> Any:
        return v[1] / (1 + (v[1] / v[2] - 1) * exp(-v[0] * t))

    t = np.linspace(0, 12, 25)
    y = curve(true, t, np.exp) + 0.3 * random.normal(size=25)
    solver = gc.GaussNewton(lambda t, y: curve(p, t, ops.exp) - y, p)
    solver.run(60, t, y)
    found = solver.covariance(p)
    return (p.asnumpy() - true) / found.deviations, found.noise[0] / 0.3


def coverage(name: str, fit: Fit, names: list[str], seeds: int) -> Iterator[str]:
    """Rows: of each parameter, how often the truth is inside one and two standard deviations."""
    fits = [fit(np.random.default_rng(seed)) for seed in range(seeds)]
    off, noise = np.array([f[0] for f in fits]), np.array([f[1] for f in fits])
    for k, parameter in enumerate(names):
        one, two = (int(np.sum(np.abs(off[:, k]) < n)) for n in (1, 2))
        yield (
            f"| {name} | {parameter} | {one} | {two} | {off[:, k].mean():+.2f} | {off[:, k].std():.2f} | "
            f"{np.median(noise):.2f} |"
        )


# Errors -------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """True and estimated error of one solution at the points of its test."""

    name: str
    error: Any
    estimate: Any
    left: float
    seconds: tuple[float, float]

    def row(self) -> str:
        """Return a row of the table."""
        sizes = [(np.abs(e).max(), np.sqrt(np.mean(e**2))) for e in (self.error, self.estimate)]
        apart = np.linalg.norm(self.estimate - self.error) / np.linalg.norm(self.error)
        cells = [
            f"{a:.3g} | {b:.3g} | {100 * (b / a - 1):+.1f} %" for a, b in zip(*sizes, strict=True)
        ]
        trained, estimated = self.seconds
        return (
            f"| {self.name} | {' | '.join(cells)} | {100 * apart:.1f} % | {self.left:.3f} | "
            f"{trained:.1f} s | {estimated:.1f} s |"
        )


def solution_and_estimate(name: str) -> Found:
    """A solution after a few steps, and the estimate of its error from twice as many new points."""
    random, problem = np.random.default_rng(0), PROBLEMS[name](0)
    solver = gc.GaussNewton(problem.residuals, problem.parameters, weights=problem.weights)
    begun = time.perf_counter()
    solver.run(STEPS[name], *problem.points(random))
    trained = time.perf_counter()
    pair = [problem.points(random) for _ in range(2)]
    points = [
        tuple(np.concatenate([a.asnumpy(), b.asnumpy()]) for a, b in zip(*blocks, strict=True))
        for blocks in zip(*pair, strict=True)
    ]
    second = network(2, 24, 3, 5) if name == "burgers" else None  # for the front
    estimate = physics.error_estimate(
        problem.residuals, problem.network, *points, weights=problem.weights, of=problem.solution,
        second=second,
    )  # fmt: skip
    ended = time.perf_counter()
    where, want = problem.test
    solution = problem.solution or problem.network
    error = want - solution(gc.Tensor(where)).asnumpy()[:, : want.shape[1]]
    found = estimate(where)[:, : want.shape[1]]
    return Found(name, error, found, estimate.left, (trained - begun, ended - trained))


def picture(found: list[Found]) -> None:
    from matplotlib.figure import Figure

    rows = (len(found) + 2) // 3
    figure = Figure(figsize=(9, 2.9 * rows), layout="constrained")
    panels = figure.subplots(rows, 3).ravel()
    for axes in panels[len(found) :]:
        axes.set_axis_off()
    for axes, one in zip(panels, found, strict=False):
        true, guess = one.error.ravel(), one.estimate.ravel()
        reach = np.abs(true).max() * 1.1
        axes.plot([-reach, reach], [-reach, reach], color="0.6", lw=0.8)
        axes.plot(true, guess, ".", ms=1, alpha=0.4)
        axes.set(title=one.name, xlabel="true error", ylabel="estimate", aspect="equal")
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
        axes.locator_params(nbins=4)
        axes.ticklabel_format(style="sci", scilimits=(-2, 2))
    figure.savefig(RESULTS / "error_bars.png", dpi=110)


TEXT = """# Whether error bars hold

`python bench/error_bars.py --seeds {seeds}`, on one or two cores of a machine that did other things too.

## Parameters

`GaussNewton.covariance`, over {seeds} fits, each to data with new noise: how many times the true value is
inside one and two standard deviations (68 and 95 of 100 are expected of a normal distribution); mean and
standard deviation of the error divided by the standard deviation found (0 and 1 are expected); the median of
the noise found, divided by the true one.

| fit | parameter | inside one | inside two | mean | spread | noise |
|---|---|---|---|---|---|---|
{parameters}

## Errors of solutions

`physics.error_estimate` of solutions after a few Gauss-Newton steps, from residuals at new points alone,
against the true errors. "apart": the norm of the estimate minus the true error, over that of the true error.
"left": the share of the residuals that the second network left; above 0.05 there is a warning that the
estimate is a guess, and in Burgers' front it is one. Seconds of the training and of the estimate.

| equation | largest error | estimate | off | rms | estimate | off | apart | left | training | estimate |
|---|---|---|---|---|---|---|---|---|---|---|
{errors}

![estimated over true errors, point by point](error_bars.png)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=100, help="fits with new noise")
    parser.add_argument("--problems", nargs="*", default=list(STEPS), choices=list(STEPS))
    options = parser.parse_args()
    print("Parameters", flush=True)
    rows = [
        *coverage("pendulum, with a network", pendulum, ["log c", "log k"], options.seeds),
        *coverage("logistic curve", growth, ["rate", "limit", "beginning"], options.seeds),
    ]
    print(*rows, sep="\n", flush=True)
    found = []
    for name in options.problems:
        found.append(solution_and_estimate(name))
        print(found[-1].row(), flush=True)
    text = TEXT.format(
        seeds=options.seeds, parameters="\n".join(rows), errors="\n".join(f.row() for f in found)
    )
    (RESULTS / "error_bars.md").write_text(text)
    picture(found)


if __name__ == "__main__":
    main()
