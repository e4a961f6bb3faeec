"""How near gradcell's training steps are to what the machine can do.

    python bench/limits.py                   all steady cases of compare, networks, laplacian, transforms
    python bench/limits.py --cases mlp gpt   parts of a case's name

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
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
import laplacian
import steps
from cases import Case, all_cases
from networks import network_cases
from transforms import transform_cases

#: Elements of the arrays that functions are measured with: they stay in the second-level cache.
ELEMENTS = 1 << 15
#: A plan that moves less may do so within the caches.
CACHED = 32 << 20
#: By the names of the op table; others are worth nothing.
FUNCTIONS = ("Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid", "Erf", "Sqrt", "Rsqrt", "Pow", "Div")


def best(run: Callable[[], Any], seconds: float = 0.3) -> float:
    """Seconds of the fastest run."""
    run()
    found, end = [], time.perf_counter() + seconds
    while len(found) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
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
    found = [c for c in every if c.kind == "steady"]
    return [c for c in found if not words or any(w.lower() in c.name.lower() for w in words)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="*", default=[], help="parts of their names")
    options = parser.parse_args()
    machine = Machine()
    rates = [f"{d} {machine.operations(d) / 1e9:.0f}" for d in ("float32", "float64", "bfloat16")]
    print(f"products: {', '.join(rates)} GFLOPS; memory: {machine.bandwidth / 1e9:.1f} GB/s")
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
