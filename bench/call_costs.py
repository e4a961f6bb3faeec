"""What one call costs around its arithmetic: Python functions that are entered, and microseconds, of ops,
methods, primitives, cells, transforms and optimisers on small tensors.

    python bench/call_costs.py
    python bench/call_costs.py --before OTHER_TREE/python    processes of both trees in turn

Out: a table. Microseconds are the least of all rounds, without a profiler.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
Call = Callable[[], Any]


def calls() -> dict[str, Call]:
    """Each made once, to be called again and again with the same arguments."""
    import numpy as np

    import gradcell as gc
    from gradcell import Parameter, Tensor, mint, nn, numpy as mnp, ops

    x = Tensor(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8))
    weights = [Parameter(x * k, name=f"w{k}") for k in range(1, 5)]
    gradients = tuple(w * 0.1 for w in weights)
    dense, layer, primitive = nn.Dense(8, 8), nn.Softmax(), ops.Softmax(-1)
    compiled = gc.jit(lambda a: ops.sin(a) * a)
    slope, both = gc.grad(lambda a: ops.sin(a).sum()), gc.value_and_grad(lambda a: (a * a).sum())
    adam, momentum = nn.Adam(weights, 1e-9), nn.Momentum(weights, 1e-9, 0.9)
    return {
        "x + x": lambda: x + x,
        "x[1]": lambda: x[1],
        "ops.sin(x)": lambda: ops.sin(x),
        "ops.softmax(x, -1)": lambda: ops.softmax(x, -1),
        "x.mean(-1)": lambda: x.mean(-1),
        "x.reshape(64)": lambda: x.reshape(64),
        "ops.Softmax(-1)(x)": lambda: primitive(x),
        "nn.Softmax()(x)": lambda: layer(x),
        "nn.Dense(8, 8)(x)": lambda: dense(x),
        "mint.nn.functional.softmax(x, -1)": lambda: mint.nn.functional.softmax(x, -1),
        "numpy.mean(x)": lambda: mnp.mean(x),
        "jit(f)(x)": lambda: compiled(x),
        "grad(f)(x)": lambda: slope(x),
        "value_and_grad(f)(x)": lambda: both(x),
        "jvp(f, x, x)": lambda: gc.jvp(ops.sin, x, x),
        "vjp(f, x)": lambda: gc.vjp(ops.sin, x),
        "Momentum's step, 4 parameters": lambda: momentum(gradients),
        "Adam's step, 4 parameters": lambda: adam(gradients),
    }


def entered(call: Call) -> int:
    """Python functions that a call enters, itself left out."""
    count = 0

    def look(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(look)
    call()
    sys.setprofile(None)
    return count - 1


def microseconds(call: Call, rounds: int = 40, each: int = 50) -> float:
    least = math.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(each):
            call()
        least = min(least, (time.perf_counter() - begin) / each)
    return least * 1e6


def measured() -> dict[str, tuple[int, float]]:
    found = {}
    for name, call in calls().items():
        for _ in range(3):
            call()
        found[name] = entered(call), microseconds(call)
    return found


def in_process(tree: Path) -> dict[str, tuple[int, float]]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "GRADCELL_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--raw"]
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return {name: (int(n), float(us)) for name, (n, us) in json.loads(output.stdout).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--before", type=Path, help="a folder that has the package of another tree")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each tree")
    parser.add_argument("--raw", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.raw:
        print(json.dumps(measured()))
        return
    trees = [*([options.before] if options.before else []), ROOT / "python"]
    runs = [[in_process(tree) for tree in trees] for _ in range(options.rounds)]
    titles = ["before", "now"][-len(trees) :]
    print("| call |", *(f"functions {t} | us {t} |" for t in titles), sep=" ")
    print("|---|" + "---:|---:|" * len(trees))
    for name in runs[0][-1]:
        cells = []
        for k in range(len(trees)):
            least = min(run[k][name][1] for run in runs)
            cells.append(f"{runs[0][k][name][0]} | {least:.2f} |")
        print(f"| `{name}` |", *cells)


if __name__ == "__main__":
    main()
