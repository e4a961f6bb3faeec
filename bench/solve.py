"""Seconds until a differential equation is solved to a relative error: gradcell's second-order solvers, and
the recipe `physics.solve` (solve_recipe.py, solve_hard.py).

    python bench/solve.py                                # all problems, seeds 0 to 4, until their targets
    python bench/solve.py --problems burgers --seeds 1 --methods gauss-newton ssbroyden lbfgs --full
    python bench/solve.py --methods solve --full         # the recipe on its problems, to 1e-8 or 300 seconds
    python bench/solve.py --report                       # tables and pictures from bench/results/solve.json
    python bench/solve.py --picture                      # draws solutions: docs/pictures/solve.png
    GRADCELL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python bench/solve.py  # one thread: the processor's time

Every run adds to bench/results/solve.json. Errors are relative L2 errors against exact or spectral
references (solve_problems.py), on points that no solver has seen; the time that they take is not counted.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import gradcell as gc
import solve_peers
import solve_pictures
from gradcell import nn, ops
from solve_fields import FIELDS
from solve_hard import HARD
from solve_problems import PROBLEMS as KNOWN, Problem
from solve_recipe import RECIPES as EASY

RESULTS = Path(__file__).parent / "results"
PROBLEMS = {**KNOWN, **FIELDS}
RECIPES = {**EASY, **HARD}
LEVELS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
NAMES = [*PROBLEMS, *(name for name in RECIPES if name not in PROBLEMS)]
Watch = Callable[[], bool]  # notes the error; whether the run is over


def clock() -> Callable[[], float]:
    """Seconds: on one thread those of the processor, which others on the machine disturb little."""
    return time.process_time if gc._core.max_threads() == 1 else time.perf_counter


class Course:
    """(seconds, error) on the way, and when it is over."""

    def __init__(self, problem: Problem, full: bool, every: float = 0.05) -> None:
        self.problem, self.full, self.every = problem, full, every
        self.clock = clock()
        self.begun, self.aside, self.next = self.clock(), 0.0, 0.0
        self.points: list[tuple[float, float]] = []

    def watch(self) -> bool:
        now = self.clock() - self.begun - self.aside
        if now >= self.next:
            before = self.clock()
            self.points.append((now, self.problem.error()))
            self.aside += self.clock() - before
            self.next = now + max(self.every, now / 100)
        reached = bool(self.points) and self.points[-1][1] <= self.problem.target
        return now > self.problem.seconds or (reached and not self.full)

    def reached(self) -> dict[str, float]:
        """The seconds at which each level was first met."""
        return {
            f"{level:g}": next(t for t, e in self.points if e <= level)
            for level in LEVELS
            if any(e <= level for _, e in self.points)
        }

    def record(self, name: str, method: str, seed: int, size: int, target: float) -> dict[str, Any]:
        """A run's entry of solve.json."""
        best, at = min((e, t) for t, e in self.points)
        return {
            "problem": name, "method": method, "seed": seed, "parameters": size, "target": target,
            "reached": self.reached(), "best": best, "best_at": at, "seconds": self.points[-1][0],
            "course": self.points[:: max(1, len(self.points) // 200)] + self.points[-1:],
            "full": self.full, "whole": self.points[-1][0] <= self.problem.seconds,
            "threads": gc._core.max_threads(), "machine": platform.machine(),
        }  # fmt: skip


def gauss_newton(problem: Problem, random: np.random.Generator, course: Course) -> None:
    solver = gc.GaussNewton(problem.residuals, problem.parameters, weights=problem.weights)
    solver.run(
        10**9,
        *problem.points(random),
        resample=(lambda _: problem.points(random)) if problem.every else None,
        every=problem.every or 1,
        callback=lambda _: course.watch(),
    )


def loss_of(problem: Problem) -> Callable[..., gc.Tensor]:
    """The weighted sum of mean squares."""

    def loss(*points: Any) -> gc.Tensor:
        terms = [
            ops.square(f(*p)).mean() * w
            for f, p, w in zip(problem.residuals, points, problem.weights, strict=True)
        ]
        return sum(terms[1:], terms[0])

    return loss


def quasi_newton(cls: Any, steps: int) -> Callable[..., None]:
    """Runs of a method of gradcell.solvers.quasi_newton, with new points after so many steps."""

    def run(problem: Problem, random: np.random.Generator, course: Course) -> None:
        solver = cls(loss_of(problem), problem.parameters, *problem.points(random))

        def seen(state: gc.SolverState) -> bool:
            return state.nit % 10 == 0 and course.watch()

        result = solver.run(steps, callback=seen)
        while result.reason == "steps":
            result = solver.run(steps, *problem.points(random), callback=seen)

    return run


def adam(problem: Problem, random: np.random.Generator, course: Course) -> None:
    loss = loss_of(problem)
    optimizer = nn.Adam(problem.parameters, learning_rate=1e-3)
    gradients = gc.value_and_grad(loss, None, optimizer.parameters)

    @gc.jit
    def step(points: Any) -> gc.Tensor:
        value, found = gradients(*points)
        optimizer(found)
        return value

    points = problem.points(random)
    while not course.watch():
        if problem.every:
            points = problem.points(random)
        for _ in range(20):
            step(points)


METHODS: dict[str, Callable[[Problem, np.random.Generator, Course], None]] = {
    "gauss-newton": gauss_newton,
    "ssbroyden": quasi_newton(gc.SSBroyden, 500),
    "ssbfgs": quasi_newton(gc.SSBFGS, 500),
    "lbfgs": quasi_newton(gc.LBFGS, 500),
    "adam": adam,
}


def recipe(name: str, seed: int, full: bool, seconds: float | None) -> dict[str, Any] | None:
    """A run's entry of `physics.solve`, to the target or, in full, to 1e-8; None without this problem or a
    whole pass."""
    if name not in RECIPES:
        return None
    asked = RECIPES[name]()
    found: list[Any] = []
    target = LEVELS[-1] if full else asked.target
    stand = Problem(
        [], [], lambda _: [], lambda: asked.error(found[-1]), [], seconds or 300, target=target
    )
    course = Course(stand, full=False, every=0)

    def passed(solution: Any) -> bool:
        found.append(solution)
        return course.watch()

    try:
        last = asked.solved(passed, stand.seconds, seed)
    except ValueError as error:
        if "no pass ended" not in str(error):
            raise
        print(f"{name} solve {seed}: {error}", flush=True)
        return None
    size = sum(p.size for net in last.networks for p in net.trainable_params())
    entry = course.record(name, "solve", seed, size, asked.target)
    beside = asked.beside(last) if hasattr(asked, "beside") else ""
    return {**entry, "estimated": last.error, "why": last.why, "beside": beside}


def run(
    name: str, method: str, seed: int, full: bool, seconds: float | None
) -> dict[str, Any] | None:
    """A run's entry, or None where a peer has not this problem."""
    if method in solve_peers.PEERS:
        return solve_peers.measured(method, name, seed, seconds)
    if method == "solve":
        return recipe(name, seed, full, seconds)
    if name not in PROBLEMS:
        return None
    problem = PROBLEMS[name](seed)
    if seconds is not None:
        problem.seconds = seconds
    course = Course(problem, full)
    METHODS[method](problem, np.random.default_rng(seed), course)
    size = sum(p.size for p in problem.parameters)
    return course.record(name, method, seed, size, problem.target)


def table(runs: list[dict[str, Any]]) -> str:
    """A line for each problem and method: the median seconds to each level, and at the target the
    worst."""
    lines = [
        "| problem | method | parameters | threads | seeds | " + " | ".join(f"{x:g}" for x in LEVELS)
        + " | worst to its target | best error, median |",
        "|---|---|---|---|---|" + "---|" * (len(LEVELS) + 2),
    ]  # fmt: skip
    order = NAMES
    keys = sorted(
        {(r["problem"], r["method"]) for r in runs}, key=lambda k: (order.index(k[0]), k[1])
    )
    for problem, method in keys:
        some = [r for r in runs if (r["problem"], r["method"]) == (problem, method)]

        def cell(level: float, worst: bool = False, some: Any = some) -> str:
            found = [r["reached"].get(f"{level:g}") for r in some]
            there = sorted(t for t in found if t is not None)
            if len(there) * 2 <= len(found) or (worst and len(there) < len(found)):
                return f"{len(there)} of {len(found)}" if there else "-"
            return f"{there[-1] if worst else median(there):.1f} s"

        target = some[0]["target"]
        lines.append(
            f"| {problem} | {method} | {some[0]['parameters']} | {some[0]['threads']} "
            f"| {len(some)} | "
            + " | ".join(cell(level) for level in LEVELS)
            + f" | {target:g}: {cell(target, True)} | {median(r['best'] for r in some):.1e} |"
        )
    return "\n".join(lines)


def best_whole() -> dict[str, Any]:
    """The best of the runs of bench/deepxde_whole.py on PyTorch: Burgers' equation."""
    runs = json.loads((RESULTS / "deepxde_whole.json").read_text())
    error, seconds, name = min(
        (r["error"], r["seconds"], n) for n, r in runs.items() if n.endswith("pytorch")
    )
    note = f" (the best of {len(runs) // 2}: {name.removesuffix(' pytorch')})"
    return {"problem": "burgers", "best": error, "best_at": seconds, "note": note}


def last(ours: list[dict[str, Any]]) -> str:
    """The target of some runs and the median of their seconds to it, where all reach it."""
    target = ours[0]["target"]
    times = [next((t for t, e in r["course"] if e <= target), None) for r in ours]
    reached = [t for t in times if t is not None]
    return f"{target:g}: {median(reached):.1f} s" if len(reached) == len(ours) else "-"


def beside(runs: list[dict[str, Any]]) -> str:
    """For each problem that DeepXDE was given: its own best error and the seconds to it, and the seconds
    that gradcell's solvers take to the same error and to their target, the median over seeds."""
    lines = [
        "| problem | DeepXDE's best error | its seconds | method | seconds to the same error | ratio "
        "| to the target |",
        "|---|---|---|---|---|---|---|",
    ]
    peers = [r for r in runs if r["method"] == "deepxde"] + [best_whole()]
    for name in PROBLEMS:
        for peer in (r for r in peers if r["problem"] == name):
            ended = peer.get("note", "") if peer.get("whole", True) else " (stopped)"
            for method in ("gauss-newton", "ssbroyden"):
                ours = [r for r in runs if r["problem"] == name and r["method"] == method]
                times = [next(t for t, e in r["course"] if e <= peer["best"]) for r in ours]
                if times:
                    lines.append(
                        f"| {name} | {peer['best']:.1e}{ended} | {peer['best_at']:.0f} s | {method} "
                        f"| {median(times):.1f} s | {median(times) / peer['best_at']:.2g} | {last(ours)} |"
                    )
    return "\n".join(lines)


def pictures(runs: list[dict[str, Any]], path: Path) -> None:
    """Error over seconds: a panel a problem, a line a seed, a colour a method."""
    from matplotlib.figure import Figure

    names = [n for n in NAMES if any(r["problem"] == n for r in runs)]
    figure = Figure(figsize=(12, 3 * -(-len(names) // 3)), layout="constrained")
    axes = np.atleast_1d(figure.subplots(-(-len(names) // 3), 3)).reshape(-1)
    for axis, name in zip(axes, names, strict=False):
        for k, method in enumerate([*METHODS, *solve_peers.PEERS, "solve"]):
            for i, r in enumerate(
                r for r in runs if r["problem"] == name and r["method"] == method
            ):
                t, e = np.array(r["course"]).T
                few = "." if len(t) < 20 else None
                label = None if i else method
                axis.loglog(t, e, color=f"C{k}", lw=0.9, marker=few, ms=4, label=label)
        axis.set(title=name, xlabel="seconds", ylabel="relative error", xlim=(0.05, None))
        axis.legend(frameon=False, fontsize=7)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    figure.savefig(path, dpi=100)


def report(runs: list[dict[str, Any]]) -> None:
    text = "\n".join(
        [
            "# Seconds until an equation is solved",
            "",
            "Written by bench/solve.py, on machines that other work shared. The median over seeds of the "
            "seconds to a relative L2 error (for inverse-heat the coefficient's relative error), with one "
            "thread those of the processor; the time for measuring the error is not counted. Where no more "
            "than half of the seeds got there, how many did. Runs end at the problem's target. "
            "solve: `physics.solve`, some of it beyond the target; its parameters are those of all pieces; "
            "all on a later machine, where seed 0 of gauss-newton took burgers to 1e-5 in 20 s, with "
            "one or two programs a core. cylinder: the larger error of its drag and of its pressures. "
            "jax: the same steps from the same weights, compilation included; deepxde: on PyTorch, with "
            "the settings of its example of such an equation.",
            "",
            table(runs),
            "",
            "## Beside DeepXDE at its own best error",
            "",
            "One seed of DeepXDE, float32 as in its examples; for Burgers' equation also the best of all "
            "seeds and dtypes of results/deepxde_whole.json. Stopped: the run would have gone on, and this "
            "is what it had reached by then; its best comes later. Of gradcell's runs the median over seeds. "
            "Those of DeepXDE but heat's and the best of Burgers' are of a later machine; there seed 0 of "
            "gauss-newton took 11.5 s for helmholtz-4 and 1.1 s for kovasznay.",
            "",
            beside(runs),
            "",
        ]
    )
    (RESULTS / "solve.md").write_text(text)
    pictures(runs, RESULTS / "solve.png")
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["gauss-newton", "solve"],
        choices=[*METHODS, "solve", *solve_peers.PEERS],
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--seconds", type=float, help="at most so many a run")
    parser.add_argument("--full", action="store_true", help="go on after the target")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument(
        "--picture", action="store_true", help="draw solutions: docs/pictures/solve.png"
    )
    given = parser.parse_args()
    if given.picture:
        solve_pictures.draw(RESULTS.parent.parent / "docs/pictures/solve.png")
        return
    path = RESULTS / "solve.json"
    runs = json.loads(path.read_text()) if path.exists() else []
    if not given.report:
        for name in given.problems:
            for method in given.methods:
                for seed in given.seeds:
                    found = run(name, method, seed, given.full, given.seconds)
                    if found is None:
                        continue
                    same = ("problem", "method", "seed")
                    runs = [r for r in runs if any(r[k] != found[k] for k in same)] + [found]
                    times = ", ".join(f"{k} {t:.1f} s" for k, t in found["reached"].items())
                    print(
                        f"{name} {method} {seed}: {times}; best {found['best']:.1e}, "
                        f"{found['seconds']:.1f} s; {found.get('beside', '')}",
                        flush=True,
                    )
                    path.write_text(json.dumps(runs, indent=None, separators=(",", ":")) + "\n")
    report(runs)


if __name__ == "__main__":
    main()
