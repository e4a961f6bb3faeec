"""DeepXDE's scripts on gradcell and on its PyTorch and JAX backends: the same losses? How long is a step?

    python bench/deepxde_compare.py examples/deepxde/*.py
    python bench/deepxde_compare.py examples/deepxde/*.py --write bench/results/deepxde.md
    python bench/deepxde_compare.py examples/deepxde/*.py --record tests/python/golden/deepxde.json

Each script runs as it is, in a process of its own for each backend, up to its first training: that is cut
to 40 steps from weights that are the same for both, and then single steps are timed. Where the script
trains by L-BFGS too, evaluations of that are timed behind it, a first one aside. What counts is the
processor's time (one thread each, so that others on the machine disturb it little; with --threads above 1 the
wall clock's, for a quiet machine), the lowest 10 % quantile of steps, the best of rounds in turn. DeepXDE,
PyTorch, JAX, flax, optax and gradcell must be importable; a script that DeepXDE cannot run on JAX, or for
which it has another loss there, has a dash in its place, and a table of its own says the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STEPS, EVALUATIONS = 40, 100
#: Of one thread the processor's time, which others on the machine disturb little.
clock = time.process_time
HEAD = (
    "| script | loss, first and after 40 steps | relative difference | first step | a step "
    "| DeepXDE with PyTorch | ratio | with JAX | ratio | an L-BFGS evaluation | of loss and gradient "
    "| with PyTorch | ratio |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


MARK = "<!-- bench/deepxde_compare.py -->"
WITHOUT_JAX = "<!-- bench/deepxde_compare.py: not with JAX -->"


class Done(Exception):
    """The script has been seen."""


def set_weights(model: Any, torch: Any, seed: int = 0) -> None:
    """Weights drawn by NumPy, the same for every backend."""
    random = np.random.default_rng(seed)
    for p in model.net.parameters():
        shape = tuple(p.shape)
        scale = np.sqrt(2 / sum(shape)) if len(shape) > 1 else 0.1
        values = (random.normal(size=shape) * scale).astype(str(p.dtype).split(".")[-1].lower())
        if hasattr(p, "set_data"):
            p.set_data(torch.as_tensor(values))
        else:
            p.data.copy_(torch.as_tensor(values))


def timed(step: Any, budget: float) -> float:
    """Milliseconds: the lowest 10 % quantile."""
    found, begin = [], time.perf_counter()
    while len(found) < 10 or (len(found) < 300 and time.perf_counter() - begin < budget):
        start = clock()
        step()
        found.append(clock() - start)
    return float(np.quantile(found, 0.1) * 1e3)


class Evaluations:
    """How many evaluations L-BFGS has made, the time for them and for its own; milliseconds of an
    evaluation alone."""

    def __init__(self) -> None:
        self.made, self.seconds, self.alone = 0, 0.0, 0.0

    def ours(self, solver: Any) -> None:
        """Watches a class of gradcell's."""
        from gradcell import Tensor

        run = solver.run

        def watched(solver: Any, *args: Any, **kwargs: Any) -> Any:
            loss = solver.loss
            vector = Tensor(loss.vector, loss.dtype)
            loss.evaluate(vector, *loss.args)  # which compiles
            begin = clock()
            result = run(solver, *args, **kwargs)
            self.seconds += clock() - begin
            self.made += result.nfev
            begin = clock()
            for _ in range(result.nfev):
                loss.evaluate(vector, *loss.args)
            self.alone = (clock() - begin) / result.nfev * 1e3
            return result

        solver.run = watched

    def theirs(self, solver: Any) -> None:
        """Watches a class of PyTorch's."""
        step = solver.step

        def watched(optimizer: Any, closure: Any) -> Any:
            def counted() -> Any:
                self.made += 1
                return closure()

            begin = clock()
            found = step(optimizer, counted)
            self.seconds += clock() - begin
            return found

        solver.step = watched


def evaluation(model: Any, dde: Any, torch: Any, train: Any, evaluations: Evaluations) -> float:
    """Milliseconds an evaluation of L-BFGS."""
    set_weights(model, torch)
    external = model.external_trainable_variables
    dde.optimizers.set_LBFGS_options(maxiter=EVALUATIONS, maxfun=EVALUATIONS)
    model.compile("L-BFGS", external_trainable_variables=external)
    train(model, display_every=10**6)
    return evaluations.seconds / evaluations.made * 1e3


class Training:
    """In the place of Model.train: looks at the first training of a script, and ends it."""

    def __init__(
        self,
        dde: Any,
        torch: Any,
        budget: float,
        evaluations: Evaluations | None,
        weights: Callable[[Any], None],
    ) -> None:
        self.dde, self.torch, self.evaluations, self.budget = dde, torch, evaluations, budget
        self.set_weights = weights
        self.plain, self.found = dde.Model.train, {}

    def __call__(self, model: Any, *args: Any, **kwargs: Any) -> None:
        self.set_weights(model)
        step, first = model._train_step, []

        def noted(*given: Any) -> None:
            begin = time.perf_counter()
            step(*given)
            first.append((time.perf_counter() - begin) * 1e3)

        model._train_step = noted
        kwargs = {**kwargs, "iterations": STEPS, "display_every": STEPS}
        history, state = self.plain(model, *args, **kwargs)
        model._train_step = step
        self.found["losses"] = [float(np.sum(history.loss_train[i])) for i in (0, -1)]
        self.found["first"] = first[0]
        if self.budget:
            batch = state.X_train, state.y_train, state.train_aux_vars
            self.found["ms"] = timed(lambda: step(*batch), self.budget)
            if self.evaluations:
                self.found["lbfgs"] = evaluation(
                    model, self.dde, self.torch, self.plain, self.evaluations
                )
                self.found["alone"] = self.evaluations.alone
        raise Done


def observe(
    script: str,
    dde: Any,
    torch: Any,
    scope: Any,
    budget: float = 0.0,
    evaluations: Evaluations | None = None,
    weights: Callable[[Any], None] | None = None,
) -> dict[str, Any]:
    """Runs a script up to its first training, in this process: its losses, and times if there is a
    budget of seconds."""
    by_lbfgs = '"L-BFGS"' in Path(script).read_text()
    set_them = weights or (lambda model: set_weights(model, torch))
    training = Training(dde, torch, budget, evaluations if by_lbfgs else None, set_them)
    dde.Model.train = lambda *args, **kwargs: training(*args, **kwargs)
    try:
        with scope, contextlib.suppress(Done), contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(script, run_name="__main__")
    finally:
        dde.Model.train = training.plain
    return training.found


def child(script: str, backend: str, budget: float, threads: int) -> dict[str, Any]:
    """One script on one backend."""
    evaluations = Evaluations()
    if backend == "gradcell":
        import gradcell as gc
        import gradcell.deepxde as ours
        from gradcell.deepxde import importing

        evaluations.ours(gc.LBFGS)
        scope = importing.script_imports(os.path.dirname(script))
        return observe(script, ours.dde, ours.torch, scope, budget, evaluations)
    os.environ["DDE_BACKEND"] = backend
    if backend == "jax":
        import deepxde_jax

        dde = deepxde_jax.prepare()
        scope = contextlib.nullcontext()
        return observe(script, dde, None, scope, budget, weights=deepxde_jax.set_weights)
    import deepxde as dde
    import torch

    torch.set_num_threads(threads)
    evaluations.theirs(torch.optim.LBFGS)
    return observe(script, dde, torch, contextlib.nullcontext(), budget, evaluations)


def measured(script: str, backend: str, budget: float, threads: int = 1) -> dict[str, Any]:
    command = [sys.executable, __file__, script, "--child", backend, "--budget", str(budget)]
    command += ["--threads", str(threads)]
    environment = {"OMP_NUM_THREADS": str(threads), "GRADCELL_NUM_THREADS": str(threads)}
    environment["JAX_TRACEBACK_FILTERING"] = "off"  # the error is the last line
    if threads == 1:
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        environment["XLA_FLAGS"] = flags
    out = subprocess.run(
        command, env={**environment, **os.environ}, capture_output=True, text=True, timeout=600
    )
    if out.returncode:
        raise RuntimeError(f"{script} on {backend}:\n{out.stderr[-3000:]}")
    return json.loads(out.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def best(rounds: list[dict[str, Any]], name: str) -> float:
    return min(r[name] for r in rounds)


def difference(ours: list[float], theirs: list[float]) -> float:
    """The largest relative difference of losses."""
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))


def compare(script: str, rounds: int, budget: float, threads: int) -> tuple[str, float, str]:
    """A line of the table, how far the losses are apart, and why there is nothing of JAX."""
    backends = ["gradcell", "pytorch", "jax"]
    runs: dict[str, list[dict[str, Any]]] = {backend: [] for backend in backends}
    reason = ""
    for _ in range(rounds):
        for backend in backends.copy():
            try:
                runs[backend].append(measured(script, backend, budget, threads))
            except RuntimeError as error:
                if backend != "jax":
                    raise
                backends.remove(backend)  # DeepXDE has less on JAX
                reason = str(error).splitlines()[-1].partition(": ")[2]
    ours = runs["gradcell"]
    wanted = ours[0]["losses"]
    apart = difference(wanted, runs["pytorch"][0]["losses"])
    if runs["jax"] and (far := difference(wanted, runs["jax"][0]["losses"])) > 1e-4:
        runs["jax"] = []
        reason = f"its losses differ by {far:.0e}"
    cells = [Path(script).stem, f"{wanted[0]:.6g}, {wanted[1]:.6g}", f"{apart:.0e}"]
    step = best(ours, "ms")
    cells += [f"{best(ours, 'first'):.0f} ms", f"{step:.2g} ms"]
    for theirs in (runs["pytorch"], runs["jax"]):
        cells += (
            [f"{best(theirs, 'ms'):.2g} ms", f"{step / best(theirs, 'ms'):.2f}"]
            if theirs
            else ["-", "-"]
        )
    if "lbfgs" in ours[0]:
        a, b = best(ours, "lbfgs"), best(runs["pytorch"], "lbfgs")
        of_loss = a / best(ours, "alone")
        cells += [f"{a:.2g} ms", f"{of_loss:.2f}", f"{b:.2g} ms", f"{a / b:.2f}"]
    else:
        cells += ["-"] * 4
    return f"| {' | '.join(cells)} |", apart, reason


def write(path: Path, mark: str, lines: list[str], whole: bool = False) -> None:
    """Puts a table between its mark and the end; unless it is whole, rows of scripts that did not run stay
    as they are."""
    text = path.read_text()
    between = re.compile(f"{re.escape(mark)}\\n(.*?)<!-- end -->", re.DOTALL)
    found = between.search(text)
    assert found, f"{path} has no {mark}"
    rows = {line.split("|")[1]: line for line in lines[1:]}
    if found[1].startswith(lines[0]):  # the same columns
        rows = {line.split("|")[1]: line for line in found[1].splitlines()[2:]} | rows
    body = lines[1:] if whole else [rows[name] for name in sorted(rows)]
    table = "\n".join([mark, lines[0], *body, "<!-- end -->"])
    path.write_text(between.sub(lambda _: table, text))


def main() -> int:
    """Prints the table; returns 1 if losses differ by more than 1e-5."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="+")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of timed steps")
    parser.add_argument("--write", metavar="FILE", help="the table goes there, between its marks")
    parser.add_argument("--record", metavar="FILE", help="PyTorch's losses alone, for the tests")
    parser.add_argument("--child", choices=["gradcell", "pytorch", "jax"], help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help="above 1: by the wall clock")
    options = parser.parse_args()
    if options.threads > 1:
        global clock
        clock = time.perf_counter
    if options.child:
        print(json.dumps(child(options.scripts[0], options.child, options.budget, options.threads)))
        return 0
    if options.record:
        losses = {Path(s).stem: measured(s, "pytorch", 0)["losses"] for s in options.scripts}
        Path(options.record).write_text(json.dumps(losses, indent=1) + "\n")
        return 0
    lines, reasons, worst = [HEAD], ["| script | why not with JAX |\n|---|---|"], 0.0
    print(HEAD)
    for script in options.scripts:
        line, apart, reason = compare(script, options.rounds, options.budget, options.threads)
        lines, worst = [*lines, line], max(worst, apart)
        reasons += [f"| {Path(script).stem} | {reason} |"] if reason else []
        print(line, reason, flush=True)
        if options.write:
            write(Path(options.write), MARK, lines)
            write(Path(options.write), WITHOUT_JAX, reasons)
    return int(worst > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
