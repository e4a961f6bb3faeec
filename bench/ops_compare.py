"""Every public op beside PyTorch's, forward and gradient, in one interleaved run.

    python bench/ops_compare.py                        all cases (10 minutes)
    python bench/ops_compare.py --only unary casts     groups, or parts of a case's name
    python bench/ops_compare.py --uncovered            the public ops that no case is about
    python bench/ops_compare.py --before TREE/python   beside the gradcell of another tree

Both run eagerly on the same threads: gradcell in PYNATIVE_MODE, its gradients by `grad`, which records
and plans at every call; PyTorch's by `autograd.grad`. Values come first: gradcell's float32 results are
compared with PyTorch's in float64, and a case with wrong numbers is not timed. A figure is the median
within a turn, of the best turn: what else the machine does takes time from single turns.

Out: ops.json and ops.md in --out, in which results of other cases stay; the exit status is 1 if
numbers are wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compare import asked, relative_error, say
from contender import Contender, ContenderError
from op_cases import CASES, NO_COUNTERPART, OpCase

GRADCELL, TORCH = "gradcell/pynative", "torch/eager"
LIMIT = 1.5


class Comparison:
    """Two processes, of which one works at a time; before: the folder of another gradcell, which then
    stands in PyTorch's place."""

    def __init__(
        self, threads: int, rounds: int, turn: float, log: Path, before: Path | None
    ) -> None:
        self.rounds, self.turn, self.alike = rounds, turn, before is not None
        other = GRADCELL if before else TORCH
        self.contenders = {
            GRADCELL: Contender(GRADCELL, threads, log / "gradcell.log"),
            TORCH: Contender(other, threads, log / "other.log", before),
        }

    def measure(self, case: OpCase, gradient: bool) -> dict[str, Any]:
        """Seconds, of each the best turn's median, and their ratio, or what went wrong."""
        params = {"case": case.name, "group": case.group, "gradient": gradient}
        entry: dict[str, Any] = {"group": case.group, "name": case.name, "gradient": gradient}
        try:
            if case.tolerance is not None and not self.alike:
                wanted = self.contenders[TORCH].values("op", {**params, "exact": True})
                error = relative_error(self.contenders[GRADCELL].values("op", params), wanted)
                if not error <= case.tolerance:
                    return {**entry, "note": f"wrong, error {error:.1e} over {case.tolerance:.0e}"}
            for contender in self.contenders.values():
                contender.prepare("op", params)
            samples: dict[str, list[float]] = {name: [] for name in self.contenders}
            for k in range(self.rounds):
                for name in (GRADCELL, TORCH) if k % 2 else (TORCH, GRADCELL):
                    turn, _ = self.contenders[name].time(self.turn)
                    samples[name].append(float(np.median(turn)))
        except ContenderError as e:
            return {**entry, "note": str(e)}
        ours, theirs = (min(samples[n]) for n in (GRADCELL, TORCH))
        return {**entry, "gradcell": ours, "torch": theirs, "ratio": ours / theirs}

    def stop(self) -> None:
        for contender in self.contenders.values():
            contender.stop()


def uncovered() -> list[str]:
    """Public functions of gradcell.ops that no case is about and that PyTorch may have too."""
    from gradcell import ops

    covered = {op for case in CASES for op in case.covers} | NO_COUNTERPART
    public = {n for n in ops.__all__ if n[0].islower() and callable(getattr(ops, n))}
    functions = {id(getattr(ops, n)) for n in covered & public}  # also by other names
    return sorted(n for n in public - covered if id(getattr(ops, n)) not in functions)


def key(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["group"], entry["name"], entry["gradient"]


def write(folder: Path, entries: list[dict[str, Any]], versions: dict[str, str]) -> None:
    """Joins what was measured with what is there of other cases, in the order of the table."""
    file = folder / "ops.json"
    kept = {key(e): e for e in json.loads(file.read_text())["cases"]} if file.exists() else {}
    kept.update((key(e), e) for e in entries)
    every = [kept[k] for c in CASES for g in (False, True) if (k := (c.group, c.name, g)) in kept]
    file.write_text(json.dumps({"versions": versions, "cases": every}, indent=1) + "\n")
    (folder / "ops.md").write_text(markdown(every))


def duration(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def cells(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return " | | "
    if "note" in entry:
        return f"{entry['note']} | | "
    ratio = f"{entry['ratio']:.2f}"
    ratio = f"**{ratio}**" if entry["ratio"] > LIMIT else ratio
    return f"{duration(entry['gradcell'])} | {duration(entry['torch'])} | {ratio}"


def markdown(entries: list[dict[str, Any]]) -> str:
    found = {key(e): e for e in entries}
    lines = [
        "| op | gradcell | PyTorch | ratio | gradient: gradcell | PyTorch | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    group = ""
    for case in CASES:
        both = [found.get((case.group, case.name, g)) for g in (False, True)]
        if not any(both):
            continue
        if case.group != group:
            group = case.group
            lines.append(f"| **{group}** | | | | | | |")
        lines.append(f"| {case.name} | {cells(both[0])} | {cells(both[1])} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], help="groups, or parts of names")
    parser.add_argument("--part", default="1/1", help="K/N: every N-th of these, from the K-th on")
    parser.add_argument("--uncovered", action="store_true", help="list ops without a case")
    parser.add_argument("--threads", type=int, default=2, help="CPUs for each")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each gets")
    parser.add_argument(
        "--turn", type=float, default=0.01, help="seconds a turn, one call at least"
    )
    parser.add_argument(
        "--before", type=Path, help="folder that has the package gradcell of another source tree"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    if options.uncovered:
        print("\n".join(uncovered()))
        return 0
    part, parts = (int(k) for k in options.part.split("/"))
    cases = asked(CASES, options.only)[part - 1 :: parts]
    options.out.mkdir(parents=True, exist_ok=True)
    entries: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="gradcell-bench-") as folder:
        comparison = Comparison(
            min(options.threads, len(os.sched_getaffinity(0))), options.rounds, options.turn,
            Path(folder), options.before,
        )  # fmt: skip
        versions = {n.partition("/")[0]: c.version for n, c in comparison.contenders.items()}
        try:
            for case in cases:
                for gradient in (False, True) if case.by else (False,):
                    entry = comparison.measure(case, gradient)
                    entries.append(entry)
                    name = f"{case.group}: {case.name}{' (gradient)' if gradient else ''}"
                    ratio = entry.get("ratio")
                    mark = "  <--" if ratio is None or ratio > LIMIT else ""
                    say(f"{name:50} {cells(entry)}{mark}")
        finally:
            comparison.stop()
            write(options.out, entries, versions)
    return int(any("wrong" in e.get("note", "") for e in entries))


if __name__ == "__main__":
    sys.exit(main())
