"""How near gradcell's training steps are to what the machine can do.

    python bench/limits.py                   all steady cases of compare, networks, laplacian, transforms
    python bench/limits.py --cases mlp gpt   parts of a case's name
    python bench/limits.py --gauss-newton    a step of least squares in float64, and its parts

First the limits are measured: multiplications and additions a second in large products (the best of
gradcell's and NumPy's, which is OpenBLAS), bytes a second between memory and processor, and
nanoseconds an element of the functions that tiles compute. Then each step runs: its products, and its
functions, would take so long at these rates, one behind the other; what moves through memory so long
beside. The larger of both is the limit; its share of the measured time is what was reached. A step whose
arrays stay in the caches may move faster than memory does: bytes count where a plan's are more than
32 MiB. Single additions and products of elements, and copies, are not counted: no share is 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
import laplacian
import steps
from cases import Case, all_cases
from compare import asked
from networks import network_cases
from solve import clock
from solve_problems import PROBLEMS
from transforms import transform_cases

#: Elements of the arrays that functions are measured with: they stay in the second-level cache.
ELEMENTS = 1 << 15
#: A plan that moves less may do so within the caches.
CACHED = 32 << 20
#: By the names of the op table; others are worth nothing.
FUNCTIONS = ("Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid", "Erf", "Sqrt", "Rsqrt", "Pow", "Div")


def best(run: Callable[[], Any], seconds: float = 0.3) -> float:
    """Seconds of the fastest run; on one thread those of the processor."""
    run()
    now = clock()
    found, end = [], now() + seconds
    while len(found) < 3 or now() < end:
        begin = now()
        run()
        found.append(now() - begin)
    return min(found)


class Machine:
    """What it can do, measured when it is first asked for."""

    def __init__(self) -> None:
        self._found: dict[Any, float] = {}
        self.bandwidth = gc._core.machine_peaks()[1]

    def _measured(self, key: Any, measure: Callable[[], float]) -> float:
        if key not in self._found:
            self._found[key] = measure()
        return self._found[key]

    def operations(self, dtype: str) -> float:
        """Multiplications and additions a second, in products."""

        def measure() -> float:
            rates = []
            for n in (1024, 2048):
                a = np.random.default_rng(0).normal(size=(n, n)).astype(np.float32)
                x = gc.Tensor(a).astype(getattr(gc, dtype))
                rates.append(2 * n**3 / best(lambda x=x: gc.ops.matmul(x, x)[0, 0].asnumpy()))
                if dtype != "bfloat16":
                    b = a.astype(dtype)
                    rates.append(2 * n**3 / best(lambda b=b: b @ b))
            return max(rates)

        return self._measured(dtype, measure)

    def seconds(self, function: str, dtype: str) -> float:
        """An element of a function, on all threads."""
        wide = "float64" if dtype == "float64" else "float32"  # half types compute in float32

        def measure() -> float:
            x = gc.Tensor(np.random.default_rng(0).uniform(0.5, 2, ELEMENTS).astype(wide))
            op = getattr(gc.ops, function.lower())
            many = 2 if function in ("Pow", "Div") else 1
            passes = 16

            def f(x: Any) -> Any:
                y = x
                for _ in range(passes):
                    y = op(*([y, x][:many]))
                return y

            run = gc.jit(f)
            return best(lambda: run(x).asnumpy(), 0.1) / passes / ELEMENTS

        return self._measured((function, wide), measure)


class Count:
    """What a run of a step does, as its plans say."""

    def __init__(self, step: Callable[[], Any], machine: Machine, dtype: str) -> None:
        report = gc.profile(step, repeat=1)
        self.products = self.functions = self.moved = 0.0
        for plan in report.plans:
            moved = 0.0
            for part in plan["steps"]:
                for op in part["ops"]:
                    self.products += plan["runs"] * op["operations"] / machine.operations(dtype)
                    moved += op["bytes"]
                    if op["name"] in FUNCTIONS:
                        each = machine.seconds(op["name"], dtype)
                        self.functions += plan["runs"] * op["elements"] * each
            if moved > CACHED:
                self.moved += plan["runs"] * moved / machine.bandwidth

    @property
    def limit(self) -> float:
        return max(self.products + self.functions, self.moved)


def steps_of(words: list[str]) -> list[Case]:
    every = (*all_cases(), *network_cases(), *laplacian.cases(), *transform_cases())
    return asked([c for c in every if c.kind == "steady"], words)


def gauss_newton(machine: Machine) -> list[str]:
    """Milliseconds of a step for Helmholtz's equation and of its parts by themselves, beside half of the
    multiplications of J'J and those of Cholesky's factor at the machine's rate."""
    problem = PROBLEMS["helmholtz-4"](0)
    points = problem.points(np.random.default_rng(0))
    solver = gc.GaussNewton(problem.residuals, problem.parameters, weights=problem.weights)
    blocks, given = solver.blocks, solver.blocks.given(points)
    apart = blocks.rows_apart(given)
    nodes = gc._core.ops
    make = gc.jit(lambda p: nodes.concat(blocks.jacobian(p, apart), 0))
    square = gc.jit(lambda j: nodes.matmul(j, j, True))
    factor = gc.jit(lambda a: nodes.cholesky_factor(a, False))
    bend = gc.jit(lambda d, p: blocks.second(d, p))
    losses = gc.jit(lambda p: blocks.vector(p))
    jacobian = make(given)
    n, size = jacobian.shape
    matrix = square(jacobian).asnumpy()
    damped = gc.Tensor(matrix + 1e-3 * matrix.max() * np.eye(size))
    direction = gc.Tensor(np.full(size, 1e-3))
    parts = {
        "whole step": lambda: solver.step(*points),
        "Jacobian": lambda: make(given),
        "J'J": lambda: square(jacobian),
        "Cholesky's factor": lambda: factor(damped),
        "second derivative along the direction": lambda: bend(direction, given),
        "residuals at a trial step": lambda: losses(given),
    }
    # In turns: what else the machine does takes time from single turns.
    turns = [{name: best(run, 1.0) for name, run in parts.items()} for _ in range(4)]
    found = {name: min(turn[name] for turn in turns) for name in parts}
    rate = machine.operations("float64")
    limits = {"J'J": n * size**2 / rate, "Cholesky's factor": size**3 / 3 / rate}
    limits["whole step"] = sum(limits.values())
    lines = [
        f"A Gauss-Newton step, {n:,} residuals, {size:,} parameters",
        "",
        "| part | ms | at the limit | ratio |",
        "|---|---|---|---|",
    ]
    for name, seconds in found.items():
        limit = limits.get(name)
        beside = f"{1e3 * limit:.1f} | {seconds / limit:.2f}" if limit else "| "
        lines.append(f"| {name} | {1e3 * seconds:.2f} | {beside} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="*", default=[], help="parts of their names")
    parser.add_argument("--gauss-newton", action="store_true", help="a step of it alone")
    options = parser.parse_args()
    machine = Machine()
    rates = [f"{d} {machine.operations(d) / 1e9:.0f}" for d in ("float32", "float64", "bfloat16")]
    print(f"products: {', '.join(rates)} GFLOPS; memory: {machine.bandwidth / 1e9:.1f} GB/s")
    if options.gauss_newton:
        print("\n".join(gauss_newton(machine)))
        return 0
    print("| step | ms | at the limit | products | functions | memory | share |")
    print("|---|---|---|---|---|---|---|")
    for case in steps_of(options.cases):
        step = steps.build("gradcell", case.step, case.params, "")
        if step is None:
            continue
        dtype = str(case.params.get("dtype", "float32"))
        count = Count(step.call, machine, dtype)
        seconds = best(step.call, 1.0)
        numbers = (seconds, count.limit, count.products, count.functions, count.moved)
        print(
            f"| {case.name} | {' | '.join(f'{1e3 * x:.3g}' for x in numbers)} "
            f"| {count.limit / seconds:.2f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
