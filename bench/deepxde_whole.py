"""DeepXDE's Burgers script from its beginning to its end, on gradcell and on DeepXDE's PyTorch backend: how
long does it take, and how good is what it finds?

    python bench/deepxde_whole.py --seeds 0 1 2 --write

`examples/deepxde/burgers.py` runs as it is, 15,000 steps of Adam and L-BFGS until that ends, in a process of
its own for each run, from the same points and weights, in float32 (as the script has it) and in float64,
which is set before it. One thread; what counts is the processor's time, so that others on the machine disturb
it little. The error is the relative L2 norm, on 256 x 100 points, of the difference from the Cole-Hopf
solution. --write puts the runs into bench/results/deepxde_whole.json, beside those that are there, and the
table of all into bench/results/deepxde.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from deepxde_compare import set_weights, write

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "examples/deepxde/burgers.py"
RESULTS = ROOT / "bench/results/deepxde_whole.json"
PAGE = ROOT / "bench/results/deepxde.md"
MARK = "<!-- bench/deepxde_whole.py -->"
HEAD = (
    "| run | Adam | L-BFGS | its evaluations | an evaluation | in all | ratio | loss | L2 error |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def cole_hopf(x: Any, t: Any, viscosity: float = 0.01 / np.pi) -> Any:
    """The solution that begins as -sin(pi x): E. Hopf, Comm. Pure Appl. Math. 3, 1950; the integrals by
    Gauss and Hermite."""
    nodes, weights = np.polynomial.hermite.hermgauss(120)
    at = x[..., None] - np.sqrt(4 * viscosity * t[..., None]) * nodes
    exponent = -np.cos(np.pi * at) / (2 * np.pi * viscosity)
    density = weights * np.exp(exponent - exponent.max(-1, keepdims=True))
    return -(np.sin(np.pi * at) * density).sum(-1) / density.sum(-1)


class Watch:
    """In the place of Model.train: the same weights before the first training, the time of each."""

    def __init__(self, dde: Any, torch: Any, seed: int) -> None:
        self.torch, self.seed, self.plain = torch, seed, dde.Model.train
        self.evaluations = 0
        self.model: Any = None
        self.found: dict[str, Any] = {}
        dde.Model.train = lambda *args, **kwargs: self.train(*args, **kwargs)

    def train(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        if self.model is None:
            set_weights(model, self.torch, self.seed)
        self.model = model
        begin = time.process_time()
        history, state = self.plain(model, *args, **kwargs)
        self.found[model.opt_name] = time.process_time() - begin
        self.found["loss"] = float(np.sum(state.loss_train))
        self.found[f"{model.opt_name} steps"] = int(state.step)
        return history, state

    def ours(self, solver: Any) -> None:
        run = solver.run

        def counted(*args: Any, **kwargs: Any) -> Any:
            result = run(*args, **kwargs)
            self.evaluations += result.nfev
            return result

        solver.run = counted

    def theirs(self, solver: Any) -> None:
        step = solver.step

        def counting(optimizer: Any, closure: Any) -> Any:
            def counted() -> Any:
                self.evaluations += 1
                return closure()

            return step(optimizer, counted)

        solver.step = counting


def child(backend: str, dtype: str, seed: int) -> dict[str, Any]:
    """One run, in this process."""
    scope: Any = contextlib.nullcontext()
    if backend == "gradcell":
        import gradcell as gc
        import gradcell.deepxde as ours
        from gradcell.deepxde import importing

        dde, torch = ours.dde, ours.torch
        scope = importing.script_imports(str(SCRIPT.parent))
    else:
        os.environ["DDE_BACKEND"] = "pytorch"
        import deepxde as dde
        import torch

        torch.set_num_threads(1)
    dde.config.set_default_float(dtype)
    watch = Watch(dde, torch, seed)
    if backend == "gradcell":
        watch.ours(gc.LBFGS)
    else:
        watch.theirs(torch.optim.LBFGS)
    begin = time.process_time()
    with scope, contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    seconds = time.process_time() - begin
    x, t = np.meshgrid(np.linspace(-1, 1, 256), np.linspace(0.0, 0.99, 100))
    u = watch.model.predict(np.stack([x.ravel(), t.ravel()], 1).astype(dtype)).reshape(x.shape)
    want = cole_hopf(x, t)
    error = float(np.linalg.norm(u - want) / np.linalg.norm(want))
    return watch.found | {"evaluations": watch.evaluations, "seconds": seconds, "error": error}


def measured(backend: str, dtype: str, seed: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", backend, "--dtypes", dtype]
    one = {"OMP_NUM_THREADS": "1", "GRADCELL_NUM_THREADS": "1"}
    command += ["--seeds", str(seed)]
    out = subprocess.run(command, env={**os.environ, **one}, capture_output=True, text=True)
    if out.returncode:
        raise RuntimeError(f"{backend}, {dtype}, seed {seed}:\n{out.stderr[-3000:]}")
    return json.loads(out.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def row(name: str, run: dict[str, Any], peer: dict[str, Any] | None) -> str:
    """A run's line of the table; its time beside the peer's."""
    evaluation = run["L-BFGS"] / max(run["evaluations"], 1) * 1e3
    ratio = f"{run['seconds'] / peer['seconds']:.2f}" if peer else ""
    cells = [name, f"{run['adam']:.1f} s", f"{run['L-BFGS']:.1f} s", f"{run['evaluations']:,.0f}"]
    cells += [f"{evaluation:.2g} ms", f"{run['seconds']:.1f} s", ratio]
    cells += [f"{run['loss']:.1e}", f"{run['error']:.1e}"]
    return f"| {' | '.join(cells)} |"


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each number of the runs the median."""
    return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}


def table(runs: dict[str, dict[str, Any]]) -> list[str]:
    """A line for each run, and medians over the seeds that both have run."""
    lines = [HEAD]
    titles = {"gradcell": "gradcell", "pytorch": "PyTorch"}
    pairs: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for name in sorted(runs):
        dtype, seed, backend = name.split()
        peer = runs.get(f"{dtype} {seed} pytorch") if backend == "gradcell" else None
        lines.append(row(f"{dtype}, seed {seed}, {titles[backend]}", runs[name], peer))
        if peer:
            pairs.setdefault(dtype, []).append((runs[name], peer))
    for dtype, both in pairs.items():
        ours, theirs = (median(list(side)) for side in zip(*both, strict=True))
        for title, found, peer in (("gradcell", ours, theirs), ("PyTorch", theirs, None)):
            lines.append(row(f"{dtype}, median of {len(both)}, {title}", found, peer))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--backends", nargs="+", default=["gradcell", "pytorch"])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--child", choices=["gradcell", "pytorch"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child, options.dtypes[0], options.seeds[0])))
        return
    for seed in options.seeds:
        for dtype in options.dtypes:
            for backend in options.backends:
                run = measured(backend, dtype, seed)
                print(row(f"{dtype}, seed {seed}, {backend}", run, None), flush=True)
                if not options.write:
                    continue
                runs = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
                runs[f"{dtype} {seed} {backend}"] = run
                RESULTS.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")
                write(PAGE, MARK, table(runs))


if __name__ == "__main__":
    main()
