"""Figures of one run as a table (text and Markdown), JSON and a plot."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from cases import GRADCELL, PYNATIVE, Case, Target

LABELS = {
    "gradcell": "gradcell",
    "gradcell/before": "gradcell before",
    "gradcell/pynative": "gradcell pynative",
    "gradcell/bfloat16": "gradcell bfloat16",
    "jax": "JAX",
    "torch/eager": "torch eager",
    "torch/compile": "torch compile",
    "mindspore": "MindSpore",
    "numexpr": "NumExpr",
    "deepxde": "DeepXDE",
    "jax/jvp": "JAX, jvp of jvp",
    "jax/jet": "JAX jet",
    "jax/folx": "folx",
}


@dataclass
class Result:
    """samples: by contender, a list of figures (of a steady case: each turn's median). errors: the
    largest relative error by contender. notes: why a contender is missing. waited: the share of each
    turn in which other processes had the CPU. first: seconds of a steady case's first call, by contender."""

    case: Case
    samples: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    waited: list[float] = field(default_factory=list)
    first: dict[str, float] = field(default_factory=dict)

    def figure(self, contender: str, best: bool = False) -> float | None:
        samples = self.samples.get(contender)
        if not samples:
            return None
        return min(samples) if best else median(samples)

    def best_peer(self, best: bool = False) -> tuple[str, float] | None:
        found = [(p, f) for p in self.case.peers if (f := self.figure(p, best)) is not None]
        return min(found, key=lambda item: item[1]) if found else None

    def ratio(self, target: Target, best: bool = False) -> float | None:
        """The subject's figure over what the target compares it with."""
        subject = self.figure(target.subject, best)
        if subject is None:
            return None
        if target.of == "":
            return subject
        if target.of == "peers":
            peer = self.best_peer(best)
            other = peer[1] if peer else None
        else:
            other = self.figure(target.of, best)
        return subject / other if other else None

    def holds(self, target: Target) -> bool | None:
        ratio = self.ratio(target)
        return None if ratio is None else ratio <= target.limit


def amount(case: Case, value: float | None) -> str:
    """A figure with its unit, three digits."""
    if value is None:
        return ""
    if case.kind == "memory":
        return f"{value / 1e6:,.0f} MB"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"


def target_text(case: Case, target: Target) -> str:
    if target.of == "":
        return f"≤ {amount(case, target.limit)}"
    of = "the best peer" if target.of == "peers" else LABELS[target.of]
    subject = "" if target.subject == GRADCELL else "pynative "
    return f"{subject}≤ {target.limit:g} of {of}"


def header(contenders: Sequence[str]) -> list[str]:
    return ["case", *(LABELS[c] for c in contenders), "ratio", "of minima", "target", "holds"]


def rows(results: Sequence[Result], contenders: Sequence[str]) -> list[list[str]]:
    """One row a case; a case's second target has a row of its own below."""
    table = []
    for r in results:
        figures = [amount(r.case, r.figure(c)) for c in contenders]
        targets: Sequence[Target | None] = r.case.targets or [None]
        for i, target in enumerate(targets):
            head = [r.case.name, *figures] if i == 0 else ["", *[""] * len(figures)]
            table.append(head + _verdict(r, target))
    return table


def _verdict(r: Result, target: Target | None) -> list[str]:
    if target is None:
        peer = Target(1.0)
        return [_number(r.ratio(peer)), _number(r.ratio(peer, best=True)), "", ""]
    ratio, best = r.ratio(target), r.ratio(target, best=True)
    absolute = target.of == ""
    texts = [amount(r.case, v) if absolute else _number(v) for v in (ratio, best)]
    holds = {None: "not measured", True: "yes", False: "no"}[r.holds(target)]
    return [*texts, target_text(r.case, target), holds]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def text_table(results: Sequence[Result], contenders: Sequence[str]) -> str:
    table = [header(contenders), *rows(results, contenders)]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in table]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(line.rstrip() for line in lines)


def markdown_table(results: Sequence[Result], contenders: Sequence[str]) -> str:
    head = header(contenders)
    lines = [head, ["---"] * len(head), *rows(results, contenders)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def notes(results: Sequence[Result]) -> list[str]:
    """One line for each thing that is missing or wrong, and for how busy the machine was."""
    lines = [f"{r.case.name}: {LABELS[c]}: {text}" for r in results for c, text in r.notes.items()]
    if (share := waiting(results)) > 0.02:
        lines.append(
            f"The machine was busy: {share:.0%} of the time measured was spent waiting for a CPU. "
            "Minima say more than medians then."
        )
    return lines


def waiting(results: Sequence[Result]) -> float:
    """Mean share of the turns in which the measured thread had to wait for other processes."""
    shares = [w for r in results for w in r.waited]
    return sum(shares) / len(shares) if shares else 0.0


def machine() -> dict[str, Any]:
    """In general terms: architecture, vector extensions, processors."""
    flags: set[str] = set()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith(("flags", "Features")):
                flags |= set(line.split(":", 1)[1].split())
    vectors = [f for f in ("avx2", "avx512f", "amx_bf16", "asimd") if f in flags]
    return {"architecture": platform.machine(), "vectors": vectors, "cpus": os.cpu_count()}


def write_json(
    path: Path, results: Sequence[Result], versions: Mapping[str, str], options: Mapping[str, Any]
) -> None:
    """Figures in seconds or bytes."""
    data = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "waiting": waiting(results),
        "versions": dict(versions),
        "options": dict(options),
        "cases": [
            {
                **asdict(r.case),
                "median": {c: r.figure(c) for c in r.samples},
                "minimum": {c: r.figure(c, best=True) for c in r.samples},
                "samples": r.samples,
                "errors": r.errors,
                "first": r.first,
                "notes": r.notes,
                "waiting": waiting([r]),
                "ratios": [r.ratio(t) for t in r.case.targets],
                "holds": [r.holds(t) for t in r.case.targets],
            }
            for r in results
        ],
    }
    path.write_text(json.dumps(data, indent=1) + "\n")


def read_json(path: Path, cases: Sequence[Case]) -> list[Result]:
    """The results of an earlier run, of the cases that it had; none if there is no such file."""
    if not path.exists():
        return []
    earlier = {row["name"]: row for row in json.loads(path.read_text())["cases"]}
    return [
        Result(
            case,
            row["samples"],
            row["errors"],
            row["notes"],
            [row["waiting"]],
            row.get("first", {}),
        )
        for case in cases
        if (row := earlier.get(case.name)) is not None
    ]


def plot(path: Path, results: Sequence[Result], contenders: Sequence[str]) -> bool:
    """Bars of each contender's figure over gradcell's, on a logarithmic axis. False without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = [r for r in results if r.figure(GRADCELL) and r.best_peer()]
    if not shown:
        return False
    bars = [c for c in contenders if c != PYNATIVE and any(r.figure(c) for r in shown)]
    fig, ax = plt.subplots(figsize=(10, 1.2 + 0.62 * len(shown)), layout="constrained")
    height, start = 0.84 / len(bars), 0.6
    for k, contender in enumerate(bars):
        at, values = [], []
        for i, r in enumerate(shown):
            theirs, ours = r.figure(contender), r.figure(GRADCELL)
            if theirs and ours:
                at.append(i + (k - (len(bars) - 1) / 2) * height)
                values.append(theirs / ours)
        ax.barh(at, [v - start for v in values], height, left=start, label=LABELS[contender])
    ax.axvline(1, color="black", lw=0.8)
    ax.set_xscale("log")
    ax.set_xlim(left=start)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_yticks(range(len(shown)))
    ax.set_yticklabels([f"{r.case.name}\n{amount(r.case, r.figure(GRADCELL))}" for r in shown])
    ax.tick_params(axis="y", labelsize=8)
    ax.invert_yaxis()
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)
    ax.set_xlabel(
        "time (or memory) divided by gradcell's, whose own is under each name; shorter is better"
    )
    fig.legend(loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    fig.savefig(path, dpi=120)
    plt.close(fig)
    return True
