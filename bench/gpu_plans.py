"""Writes plans into a folder, for gpu_replay.py to run where gradcell is not. Needs no GPU.

    python bench/gpu_plans.py FOLDER [--scale 1] [--checks 40]

The plans are for sm_90. Timed ones are the steps of gpu_bench.py; those with a kernel for a narrow
network, for groups of products or for a loop, also with it and without it. The checks are cases of the
tests: few that call as many of the kernels' functions as so few can. A case is NAME.json: the kernels'
text and what to do with it. NAME.npz has what goes in and what the CPU engine makes of it, where that
is not large; other inputs are made up by whoever runs the plan.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gpu_bench
import gradcell as ms
from gradcell import Tensor, _core, cuda, ops
from gradcell.base import tree

TESTS = Path(__file__).resolve().parents[1] / "tests" / "python" / "support"
Case = tuple[Callable[..., Any], tuple[Tensor, ...]]
#: Bytes of inputs and results that are written.
LARGE = 2 << 20
#: Beside the largest result: what the tests allow.
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-12}


def runs_anywhere(steps: list[dict[str, Any]]) -> bool:
    """Whether a plan needs neither the host nor other processes."""
    return all(
        runs_anywhere(s["loop"]["body"]["steps"])
        if "loop" in s
        else not {"collective", "routine"} & s.keys()
        for s in steps
    )


def as_plain(value: Tensor) -> np.ndarray:
    wide = value.dtype in (ms.bfloat16, ms.float16)
    return np.asarray((value.astype(ms.float32) if wide else value).asnumpy())


def write(folder: Path, group: str, name: str, case: Case, rough: float | None = None) -> None:
    """`rough`: how far results may be from the CPU's where their dtypes do not say so."""
    fn, arguments = case
    raw = cuda.plan_of(fn, *arguments).raw
    if not runs_anywhere(raw["steps"]):
        return
    inputs = [np.array(v) for v in raw.pop("input_values")]
    kept = {k: v for k, v in raw.items() if k not in ("kernels", "prelude")}
    numbers = [
        float(c) if isinstance(c, (float, np.floating)) else int(c) for c in raw["constants"]
    ]
    kept |= {"constants": numbers, "name": name, "group": group, "capability": 90}
    file = folder / (re.sub(r"\W+", "-", f"{group} {name}") + ".json")
    beside = file.with_suffix(".npz")
    beside.unlink(missing_ok=True)
    if sum(v.nbytes for v in inputs) <= LARGE:
        results = [as_plain(t) for t in tree.leaves(fn(*arguments))]
        # A step that assigns parameters has more results than it returns, behind those.
        shapes = [list(o["shape"]) for o in raw["outputs"]]
        if [list(r.shape) for r in results] == shapes[: len(results)]:
            kinds = [o["dtype"] for o in raw["outputs"]]
            kept["tolerance"] = [rough or TOLERANCE.get(kind, 0.0) for kind in kinds]
            named = {f"in{i}": v for i, v in enumerate(inputs)}
            np.savez_compressed(
                beside, allow_pickle=False, **named, **{f"out{i}": v for i, v in enumerate(results)}
            )
    file.write_text(json.dumps(kept))


def timed(folder: Path, scale: float) -> None:
    """Each case as it is planned, and otherwise where there is a choice."""
    small = [name for name in gpu_bench.cases(scale) if name.startswith("small products")]
    loops = [name for name in gpu_bench.cases(scale) if name.startswith("LSTM")]
    choices: list[tuple[str, dict[str, bool], Sequence[str] | None]] = [
        ("", {}, None),
        (", tiles", {"tiles": True}, gpu_bench.NARROW),
        (", no tiles", {"tiles": False}, gpu_bench.NARROW),
        (", no groups", {"groups": False}, small),
        (", launches", {"loop_kernels": False}, loops),
    ]
    for words, choice, names in choices:
        _core.weigh_cuda_plans(**choice)
        for name, (fn, arguments) in gpu_bench.cases(scale).items():
            if names is None or name in names:
                write(folder, "time", name + words, (fn, tuple(arguments)))
    _core.weigh_cuda_plans()


def calls(case: Case) -> set[str]:
    """The functions that the kernels' text calls; of those of tensor cores, with which numbers."""
    plan = cuda.plan_of(case[0], *case[1])
    if not runs_anywhere(plan.steps):
        return set()
    found = re.findall(r"\bgc_\w+", " ".join(text for _, text in plan.kernels))
    return set(found) - {name for name, _ in plan.kernels}


def covering(cases: dict[str, Case], count: int) -> list[str]:
    """So many names: each case adds the most functions that none before it calls, then again from none."""
    of = {name: found for name, case in cases.items() if (found := calls(case))}
    chosen: list[str] = []
    while of and len(chosen) < count:
        left = set().union(*of.values())
        while left and len(chosen) < count:
            best = max(of, key=lambda name: len(of[name] & left))
            left -= of.pop(best)
            chosen.append(best)
    return chosen


def taken(x: Tensor) -> Tensor:
    """The gradient of elements that are taken several times: sums at places, sorted first."""
    places = Tensor(np.arange(5000) ** 2 % 400)
    return ms.grad(lambda v: ops.square(ops.gather(v, places, 0)).sum())(x)


def checks(folder: Path, count: int) -> None:
    sys.path[:0] = [str(TESTS), str(TESTS / "cases")]
    import cuda_cases
    import product_cases

    cases: dict[str, Case] = dict(cuda_cases.CASES)
    tf32 = {name for name, (_, allowed, *_) in product_cases.CASES.items() if allowed}
    cases |= {name: case for name, (case, *_) in product_cases.CASES.items() if name not in tf32}
    steps = gpu_bench.cases(0.002)
    steps["recurrent"] = gpu_bench.recurrent(12)
    steps["taken"] = taken, [gpu_bench.tensor(400, 4)]
    for name, (fn, arguments) in steps.items():
        kinds = ("attention", "convolution", "PINN", "recurrent", "small products", "taken")
        if name.startswith(kinds):
            count -= 1
            write(folder, "check", name, (fn, tuple(arguments)))
    _core.weigh_cuda_plans(loop_kernels=False)
    write(folder, "check", "recurrent, launches", gpu_bench.recurrent(12))
    _core.weigh_cuda_plans()
    count -= 1
    rough = product_cases.ROUGH
    for name in covering(cases, count - len(tf32)):
        write(folder, "check", name, cases[name], rough.get(name))
    _core.allow_tf32(True)
    for name in tf32:
        write(folder, "check", name, product_cases.CASES[name][0], rough[name])
    _core.allow_tf32(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="of the timed steps' sizes")
    parser.add_argument("--checks", type=int, default=40, help="how many")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    checks(options.folder, options.checks)
    timed(options.folder, options.scale)


if __name__ == "__main__":
    main()
