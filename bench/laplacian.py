"""Laplacians and high derivatives beside JAX's three ways (jvp of jvp, jet, the folx package).

    python bench/laplacian.py                 all cases, interleaved (5 minutes)
    python bench/laplacian.py --cases d=3     those with these words in their names
    python bench/laplacian.py --rounds 3

Out: a table on the screen and laplacian.md in bench/results. The exit status is 1 if a contender's
numbers are wrong. What a row of the table says is in docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import report
from cases import GRADCELL, Case, Target
from compare import Run, asked, say

JAX = ("jax/jvp", "jax/jet", "jax/folx")
OUT = Path(__file__).parent / "results" / "laplacian.md"


def _case(name: str, kind: str, step: str, params: dict[str, object], *targets: Target) -> Case:
    peers = () if kind == "memory" else ("jax/jet",) if step == "tanh_log" else JAX
    return Case(name, kind, step, params, (GRADCELL, *peers), targets, 5e-4, peers=peers)


def cases() -> list[Case]:
    made = []
    for d, points, limit in ((3, 1024, 0.25), (10, 1024, 0.15), (30, 256, 0.15)):
        net = {"depth": 4, "width": 64, "dimensions": d, "points": points, "dtype": "float32"}
        name = f"mean square Laplacian and gradient, d={d}, {points:,} points"
        made.append(_case(name, "steady", "laplacian", net, Target(limit)))
        made.append(_case(f"{name}, first call", "first", "laplacian", net, Target(1 / 40)))
    twelfth = {"order": 12, "elements": 10_000}
    name = "12th derivative of tanh(x) log(1 + x^2), 10^4 elements"
    made.append(_case(name, "steady", "tanh_log", twelfth, Target(0.7)))
    made.append(_case(f"{name}, first call", "first", "tanh_log", twelfth, Target(0.010, "")))
    many = {"depth": 4, "width": 64, "dimensions": 30, "points": 100_000, "dtype": "float32"}
    for what, gradient in (("Laplacian", False), ("mean square Laplacian and gradient", True)):
        name = f"{what}, d=30, 100,000 points, peak memory"
        params = {**many, "gradient": gradient}
        made.append(_case(name, "memory", "laplacian", params, Target(200e6, "")))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="+", default=[], help="parts of names")
    parser.add_argument("--kinds", nargs="+", default=["steady", "first", "memory"])
    parser.add_argument("--threads", type=int, default=2, help="CPUs for each contender")
    parser.add_argument("--rounds", type=int, default=11, help="turns that each contender gets")
    parser.add_argument("--turn", type=float, default=0.1, help="seconds a turn")
    parser.add_argument("--out", type=Path, default=OUT, help="the table's file")
    options = parser.parse_args(arguments)
    options.threads = min(options.threads, len(os.sched_getaffinity(0)))
    chosen = [c for c in asked(cases(), options.cases) if c.kind in options.kinds]
    results = []
    with tempfile.TemporaryDirectory(prefix="gradcell-bench-") as folder:
        run = Run((GRADCELL, *JAX), options.threads, options.rounds, options.turn, Path(folder))
        try:
            for case in chosen:
                say(case.name)
                results.append(run.measure(case))
        finally:
            run.stop()
    names = (GRADCELL, *JAX)
    print(report.text_table(results, names))
    print("", *report.notes(results), sep="\n")
    options.out.write_text(report.markdown_table(results, names))
    return int(any(not e <= r.case.tolerance for r in results for e in r.errors.values()))


if __name__ == "__main__":
    sys.exit(main())
