"""gradcell beside JAX, PyTorch, MindSpore and NumExpr, in one interleaved run.

    python bench/compare.py                    all cases (30 minutes and more)
    python bench/compare.py --quick            fewer rounds, no memory cases
    python bench/compare.py --cases pinn mlp   groups, or parts of a case's name
    python bench/compare.py --before ../old/python    with the gradcell in that folder too

Out: a table on the screen; compare.json, compare.md and compare.png in --out. The exit status is 1
if a contender's numbers are wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

import inputs
import report
from cases import BEFORE, CONTENDERS, GRADCELL, Case, all_cases
from contender import Contender, ContenderError
from report import LABELS, Result

#: Who gives the float64 reference of a PINN step, the first that is there.
REFERENCES = ("torch/eager", "jax", "jax/jvp", "mindspore", GRADCELL)


def relative_error(got: Sequence[inputs.Array], wanted: Sequence[inputs.Array]) -> float:
    """The largest difference in an array over the array's largest magnitude; the worst array's."""
    if len(got) != len(wanted):
        return float("inf")
    worst = 0.0
    for a, b in zip(got, wanted, strict=True):
        a64, b64 = np.asarray(a, np.float64).ravel(), np.asarray(b, np.float64).ravel()
        if a64.shape != b64.shape or not np.isfinite(a64).all():
            return float("inf")
        worst = max(worst, float(np.abs(a64 - b64).max() / max(np.abs(b64).max(), 1e-30)))
    return worst


class Run:
    """The contenders' processes and the way a case goes through them."""

    def __init__(
        self,
        names: Sequence[str],
        threads: int,
        rounds: int,
        turn: float,
        log: Path,
        before: Path | None = None,
    ) -> None:
        self.threads, self.rounds, self.turn, self.log = threads, rounds, turn, log
        self.before = before
        self.versions: dict[str, str] = {}
        self.contenders: dict[str, Contender] = {}
        for name in names:
            try:
                self.contenders[name] = self._start(name)
                self.versions[name.partition("/")[0]] = self.contenders[name].version
            except ContenderError as e:
                say(f"{LABELS[name]} is left out: {e}")

    def _start(self, name: str) -> Contender:
        say(f"starting {LABELS[name]}", passing=True)
        log = self.log / (name.replace("/", "-") + ".log")
        return Contender(name, self.threads, log, self.before if name == BEFORE else None)

    def measure(self, case: Case) -> Result:
        result = Result(case)
        present = [c for c in contenders(case) if c in self.contenders]
        getattr(self, "_" + case.kind)(result, present)
        return result

    def _again(self, name: str) -> None:
        """A new process in the place of one that failed."""
        self.contenders[name].stop()
        self.contenders[name] = self._start(name)

    # Steady state ---------------------------------------------------------------------------------

    def _steady(self, result: Result, names: list[str]) -> None:
        case = result.case
        wanted = self._reference(case)
        ready = []
        for name in names:
            say(f"{case.name}: {LABELS[name]} compiles and is checked", passing=True)
            try:
                got = self.contenders[name].values(case.step, case.params)
                error = result.errors[name] = relative_error(got, wanted)
                if not error <= case.tolerance:
                    result.notes[name] = f"wrong, error {error:.1e} over {case.tolerance:.0e}"
                    continue
                result.first[name] = self.contenders[name].prepare(case.step, case.params)
                ready.append(name)
            except ContenderError as e:
                result.notes[name] = str(e)
                self._again(name)
        for k in range(self.rounds):
            for name in ready[k % len(ready) :] + ready[: k % len(ready)]:
                if k >= 3 and (result.figure(name, best=True) or 0.0) > 5 * self.turn:
                    continue  # three long calls tell enough
                say(f"{case.name}: round {k + 1} of {self.rounds}, {LABELS[name]}", passing=True)
                turn, waited = self.contenders[name].time(self.turn)
                result.samples.setdefault(name, []).append(float(np.median(turn)))
                result.waited.append(waited)

    def _reference(self, case: Case) -> list[inputs.Array]:
        p = case.params
        if case.step == "elementwise":
            x = inputs.points_on_line(p["elements"])
            return [inputs.elementwise_derivative(x, p["order"])]
        if case.step == "tanh_sin":
            return [inputs.tanh_sin_derivative(inputs.points_on_line(p["elements"]), p["order"])]
        if case.step == "scalar":
            return [np.array(6.0)]
        if case.step == "tanh_log":
            return [inputs.tanh_log_derivative(inputs.points_on_line(p["elements"]), p["order"])]
        if case.step in ("pinn", "laplacian", "field"):
            p = {**p, "dtype": "float64"}
        if case.step == "network":
            p = {**p, "dtype": "float32"}
        for name in REFERENCES:
            if name in self.contenders:
                return self.contenders[name].values(case.step, p)
        raise SystemExit("no contender is there to compute a reference")

    # A new process for each figure ----------------------------------------------------------------

    def _each_alone(self, result: Result, names: list[str], ask: str, rounds: int) -> None:
        case = result.case
        for k in range(rounds):
            for name in names:
                if name in result.notes:
                    continue
                say(f"{case.name}: round {k + 1} of {rounds}, {LABELS[name]}", passing=True)
                try:
                    contender = self._start(name)
                    figure = getattr(contender, ask)(case.step, case.params)
                    result.samples.setdefault(name, []).append(figure)
                    contender.stop()
                except ContenderError as e:
                    result.notes[name] = str(e)

    def _first(self, result: Result, names: list[str]) -> None:
        self._each_alone(result, names, "prepare", min(self.rounds, 5))

    def _plan(self, result: Result, names: list[str]) -> None:
        self._each_alone(result, names, "planning", min(self.rounds, 5))

    def _memory(self, result: Result, names: list[str]) -> None:
        self._each_alone(result, names, "peak_memory", 1)

    def stop(self) -> None:
        for contender in self.contenders.values():
            contender.stop()


def contenders(case: Case) -> tuple[str, ...]:
    """The case's own; gradcell before the change runs what gradcell runs."""
    return (*case.contenders, BEFORE) if GRADCELL in case.contenders else case.contenders


def say(text: str, passing: bool = False) -> None:
    """A line on stderr; a passing one is overwritten by the next, and only shown on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:110]}", end="" if passing else "\n", file=sys.stderr, flush=True)
    elif not passing:
        print(text, file=sys.stderr, flush=True)


class Named(Protocol):
    @property
    def group(self) -> str: ...
    @property
    def name(self) -> str: ...


C = TypeVar("C", bound=Named)


def asked(cases: Sequence[C], words: Sequence[str]) -> list[C]:
    """The cases whose group is one of these words, or that have one in their name; without words all.
    A word that means none ends the program, before anything is measured or written."""

    def meant(word: str, case: C) -> bool:
        return word == case.group or word.lower() in case.name.lower()

    for word in words:
        if not any(meant(word, case) for case in cases):
            groups = ", ".join(dict.fromkeys(case.group for case in cases if case.group))
            what = f", and no group; the groups are {groups}" if groups else ""
            raise SystemExit(f"{word!r} is in no case's name{what}")
    return [case for case in cases if not words or any(meant(w, case) for w in words)]


def chosen(cases: Sequence[Case], words: Sequence[str], quick: bool) -> list[Case]:
    return [case for case in asked(cases, words) if words or case.quick or not quick]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", default=[], help="groups, or parts of names")
    parser.add_argument("--list", action="store_true", help="only list the cases")
    parser.add_argument("--quick", action="store_true", help="3 rounds, no memory cases")
    parser.add_argument("--threads", type=int, default=2, help="CPUs for each contender")
    parser.add_argument("--rounds", type=int, default=11, help="turns that each contender gets")
    parser.add_argument("--turn", type=float, default=0.1, help="seconds a turn, one call at least")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results"
    )
    parser.add_argument(
        "--add", action="store_true", help="keep the cases of an earlier run that --out has"
    )
    parser.add_argument("--log", type=Path, help="folder that keeps what the frameworks print")
    parser.add_argument(
        "--before", type=Path, help="folder that has the package gradcell of another source tree"
    )
    for name in CONTENDERS:
        if name not in (GRADCELL, BEFORE):
            flag = name.replace("/", "-")
            parser.add_argument(f"--no-{flag}", dest="without", action="append_const", const=name)
    options = parser.parse_args(arguments)
    options.without = options.without or []
    if options.before is None:
        options.without.append(BEFORE)
    elif not (options.before / "gradcell" / "__init__.py").exists():
        parser.error(f"--before: there is no gradcell/__init__.py in {options.before}")
    if options.quick:
        options.rounds = min(options.rounds, 3)
    return options


def main(
    arguments: Sequence[str] | None = None,
    among: Sequence[Case] | None = None,
    name: str = "compare",
) -> int:
    """among: the cases to choose from; name: of the files of results."""
    options = parse(arguments)
    options.name = name
    every = all_cases() if among is None else among
    cases = chosen(every, options.cases, options.quick)
    if options.list:
        print("\n".join(f"{case.group:12} {case.name}" for case in cases))
        return 0
    options.threads = min(options.threads, len(os.sched_getaffinity(0)))
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gradcell-bench-") as folder:
        results = measure_all(cases, options, options.log or Path(folder), every)
    wrong = any(not e <= r.case.tolerance for r in results for e in r.errors.values())
    return int(wrong)


def measure_all(
    cases: Sequence[Case], options: argparse.Namespace, log: Path, every: Sequence[Case]
) -> list[Result]:
    """Measures; saves after each case, so that an interrupted run leaves what it has. every: what
    an earlier run may have measured, in the order of the table."""
    wanted = [c for c in CONTENDERS if c not in options.without]
    names = [n for n in wanted if any(n in contenders(case) for case in cases)]
    run = Run(names, options.threads, options.rounds, options.turn, log, options.before)
    earlier = report.read_json(options.out / f"{options.name}.json", every) if options.add else []
    done = {r.case.name: r for r in earlier}
    results = earlier
    try:
        for i, case in enumerate(cases):
            start = time.perf_counter()
            done[case.name] = run.measure(case)
            results = [done[c.name] for c in every if c.name in done]
            seconds = time.perf_counter() - start
            say(f"[{i + 1}/{len(cases)}] {case.name}: {seconds:.0f} s")
            save(results, run, options)
    except KeyboardInterrupt:
        say("interrupted: reporting what there is")
    finally:
        run.stop()
    print(report.text_table(results, shown(results)))
    print("", *report.notes(results), sep="\n")
    if not report.plot(options.out / f"{options.name}.png", results, shown(results)):
        say("no plot: matplotlib is missing, or nothing was compared")
    return results


def save(results: Sequence[Result], run: Run, options: argparse.Namespace) -> None:
    kept = {"threads": options.threads, "rounds": options.rounds, "turn": options.turn}
    report.write_json(options.out / f"{options.name}.json", results, run.versions, kept)
    table = report.markdown_table(results, shown(results))
    (options.out / f"{options.name}.md").write_text(table)


def shown(results: Sequence[Result]) -> list[str]:
    """The contenders with a figure anywhere."""
    return [c for c in CONTENDERS if any(c in r.samples for r in results)]


if __name__ == "__main__":
    sys.exit(main())
