"""Programs of the field beside JAX and PyTorch: simulations, filters, force fields, operators, flows.

    python bench/field                           all: a table and a picture in bench/results, 15 minutes
    python bench/field --programs springs lstm   some, by their functions' names; --add: into the results
    python bench/field --float64                 only compares values and gradients, in float64
    python bench/field --compile                 with torch.compile, where there is no loop to unroll
    python bench/field --docs                    the table of docs/performance.md too

Each library works in a process of its own, on the same float32 inputs; gradcell's and JAX's functions are
compiled. Results are compared with PyTorch's in float64 before anything is timed. The exit status is 1 if a
result is wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
sys.path[0] = str(BENCH)  # it was this file's folder

import report  # noqa: E402
from cases import GRADCELL, Case, Target  # noqa: E402
from compare import Run, relative_error, say  # noqa: E402
from field import PROGRAMS  # noqa: E402
from report import LABELS, Result, amount  # noqa: E402

PEERS = ("jax", "torch/eager")
COMPILED = "torch/compile"
TABLE = BENCH / "results" / "field.md"
DOCUMENT = BENCH.parent / "docs" / "performance.md"
#: Seconds of a turn. Figures are those of a library's fastest turn, so other programs do little to them.
TURN = 0.004
HEADING = "## Programs of the field"


def cases(compiled: bool) -> list[Case]:
    """Each program, and its gradient if it has one."""
    made = []
    for key, program in PROGRAMS.items():
        peers = (*PEERS, COMPILED) if compiled and not program.loop else PEERS
        for gradient in (False, True) if program.wrt else (False,):
            params = {"program": key, "gradient": gradient, "dtype": "float32"}
            name = program.name + ", gradient" * gradient
            contenders, targets = (GRADCELL, *peers), (Target(1.0),)
            made.append(
                Case(name, "steady", "field", params, contenders, targets, program.tolerance)
            )
    return made


def check(run: Run, chosen: Sequence[Case]) -> bool:
    """Compares values and gradients in float64; whether all agree."""
    worst = 0.0
    for case in chosen:
        params = {**case.params, "dtype": "float64"}
        values = {n: run.contenders[n].values("field", params) for n in (GRADCELL, *PEERS)}
        wanted = values.pop("torch/eager")
        errors = {n: relative_error(v, wanted) for n, v in values.items()}
        worst = max(worst, *errors.values())
        print(f"{case.name}: " + ", ".join(f"{n} {e:.0e}" for n, e in errors.items()), flush=True)
    print(f"the largest difference from PyTorch: {worst:.0e}")
    return worst < 1e-8


def ratio(result: Result) -> float | None:
    """gradcell's figure over the best peer's."""
    return result.ratio(Target(1.0), best=True)


def table(results: Sequence[Result], names: Sequence[str], whole: bool) -> str:
    """Times and ratios; of the whole also first calls and gradcell's error in float32."""
    head = ["program", *(LABELS[n] for n in names), "ratio"]
    if whole:
        head += [*(f"first call, {LABELS[n]}" for n in names), "error"]
    rows = [head, ["---"] * len(head)]
    for r in results:
        found = ratio(r)
        row = [r.case.name, *(amount(r.case, r.figure(n, best=True)) for n in names)]
        row.append("" if found is None else f"{found:.2g}")
        if whole:
            row += [amount(r.case, r.first.get(n)) for n in names]
            row.append(f"{r.errors.get(GRADCELL, float('nan')):.0e}")
        rows.append(row)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def of_kinds(results: Sequence[Result]) -> list[Result]:
    """One result of each program: its gradient's, if it has one."""
    return list({r.case.params["program"]: r for r in results}.values())


def plot(path: Path, results: Sequence[Result]) -> None:
    """Ratios to the better peer on a logarithmic axis, sorted: dots for gradients, rings for functions."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    results = [r for r in results if ratio(r)]
    kinds = sorted(of_kinds(results), key=ratio, reverse=True)
    places = {r.case.params["program"]: i for i, r in enumerate(kinds)}
    fig, ax = plt.subplots(figsize=(9, 1.3 + 0.24 * len(kinds)), layout="constrained")
    for gradient, label in ((True, "with its gradient"), (False, "the function")):
        shown = [r for r in results if r.case.params["gradient"] is gradient]
        at = [places[r.case.params["program"]] for r in shown]
        face = "tab:blue" if gradient else "none"
        ax.scatter([ratio(r) for r in shown], at, s=32, fc=face, ec="tab:blue", label=label)
    ax.axvspan(1, 100, color="tab:red", alpha=0.07, lw=0)
    ax.axvline(1, color="black", lw=0.8)
    ax.set_xscale("log")
    ratios = [ratio(r) for r in results]
    ends = min(ratios) / 1.3, max(2.0, 1.3 * max(ratios))
    ax.set_xlim(*ends)
    ax.set_xticks(
        [t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10) if ends[0] < t < ends[1]]
    )
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_yticks(range(len(kinds)))
    ax.set_yticklabels([PROGRAMS[key].name for key in places], fontsize=8)
    ax.set_ylim(-0.7, len(kinds) - 0.3)
    ax.grid(alpha=0.3)
    ax.set_axisbelow(True)
    ax.set_xlabel("gradcell's time over the best peer's; left of 1 gradcell is faster")
    fig.legend(loc="outside upper center", ncols=2, fontsize=8, frameon=False)
    fig.savefig(path, dpi=120)
    plt.close(fig)


def write(results: Sequence[Result], names: Sequence[str], run: Run, docs: bool) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    machine = report.machine()
    text = f"""# Programs of the field beside JAX and PyTorch

`python bench/field`: float32, {run.threads} thread{"s" * (run.threads > 1)} of {machine["architecture"]} with
{", ".join(machine["vectors"])}, {run.rounds} turns of {run.turn:g} s each in the last run; {versions}.
Other processes used the CPU for {report.waiting(results):.0%} of the time.

Medians of the fastest turn. The ratio is to the best peer; the error is gradcell's in float32, from PyTorch's
results in float64.

"""
    TABLE.write_text(text + table(results, names, True))
    kept = {"threads": run.threads, "rounds": run.rounds, "turn": run.turn}
    fastest = [replace(r, samples={n: [min(s)] for n, s in r.samples.items()}) for r in results]
    report.write_json(TABLE.with_suffix(".json"), fastest, run.versions, kept)
    plot(TABLE.with_suffix(".png"), results)
    if docs:
        before, heading, after = DOCUMENT.read_text().partition(HEADING)
        made = table(of_kinds(results), names, False)
        after = re.sub(r"(^\|.*\n)+", lambda _: made, after, count=1, flags=re.M)
        DOCUMENT.write_text(before + heading + after)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, metavar="NAME", default=[])
    parser.add_argument("--seconds", type=float, default=1, help="of turns for each library")
    parser.add_argument("--threads", type=int, default=2, help="CPUs for each library")
    parser.add_argument("--add", action="store_true", help="put them into an earlier run's results")
    parser.add_argument("--float64", action="store_true", help="only compare, in float64")
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    parser.add_argument("--docs", action="store_true", help="write docs/performance.md's table")
    options = parser.parse_args()
    threads = min(options.threads, len(os.sched_getaffinity(0)))
    names = (GRADCELL, *PEERS, COMPILED) if options.compile else (GRADCELL, *PEERS)
    every = cases(options.compile)
    wanted = options.programs or list(PROGRAMS)
    chosen = [case for case in every if case.params["program"] in wanted]
    earlier = report.read_json(TABLE.with_suffix(".json"), every) if options.add else []
    done = {r.case.name: r for r in earlier}
    with tempfile.TemporaryDirectory(prefix="gradcell-bench-") as folder:
        run = Run(names, threads, max(1, round(options.seconds / TURN)), TURN, Path(folder))
        try:
            if options.float64:
                return int(not check(run, chosen))
            for i, case in enumerate(chosen):
                result = done[case.name] = run.measure(case)
                say(f"[{i + 1}/{len(chosen)}] {case.name}: {ratio(result) or 0.0:.2g}")
        except KeyboardInterrupt:
            say("interrupted: reporting what there is")
        finally:
            run.stop()
    results = [done[case.name] for case in every if case.name in done]
    print(table(results, names, True))
    print(*report.notes(results), sep="\n")
    if options.add or not options.programs:
        write(results, names, run, options.docs)
    return int(any(not e <= r.case.tolerance for r in results for e in r.errors.values()))


if __name__ == "__main__":
    sys.exit(main())
