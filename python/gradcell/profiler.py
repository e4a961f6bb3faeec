"""Profiles of runs: profile() and Report by region, op and line, Profiler by function too.

It measures plans on the CPU only; for a GPU use NVIDIA's profilers.
"""

from __future__ import annotations

import cProfile
import html
import io
import json
import os
import pstats
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradcell import _core
from gradcell.base import arguments, bad_type, fail, publish
from gradcell.base.whole_file import write_whole


@dataclass
class Line:
    """The work of one op, at one line of the user's program, in a run of the step.

    op: its name. location: the user's file and line. seconds: the time of a run. operations: of
    floating-point numbers. bytes: read and written.
    """

    op: str
    location: str  #: "file.py:12"; empty: of no line
    seconds: float = 0.0
    operations: float = 0.0  #: multiplications and additions of products
    bytes: float = 0.0  #: of tensors, read and written

    @property
    def place(self) -> str:
        """The location without its folders."""
        return os.path.basename(self.location)


class Report:
    """The measurements of plans while the step ran `repeat` times in `seconds`.

    plans: as the core gives them: for each plan its runs, seconds and steps, of each step its ops.
    peaks: what the machine can do, measured: operations of float32 products, and bytes, a second.
    seconds: the time of all runs.
    """

    def __init__(
        self, plans: list[dict[str, Any]], seconds: float, repeat: int, peaks: tuple[float, float]
    ) -> None:
        self.plans: list[dict[str, Any]] = plans
        self.seconds: float = seconds
        self.repeat: int = repeat
        self.peaks: tuple[float, float] = peaks

    def _by(self, key: Callable[[dict[str, Any]], tuple[str, str]]) -> list[Line]:
        """The time of all ops that a line's name and location stand for, the longest first."""
        found: dict[tuple[str, str], Line] = {}
        for plan in self.plans:
            for op in (op for step in plan["steps"] for op in step["ops"]):
                self._add(found.setdefault(key(op), Line(*key(op))), plan, op)
        return sorted(found.values(), key=lambda line: -line.seconds)

    def ops(self, by_line: bool = True) -> list[Line]:
        """The time of each op, by the user's lines or over all of them, the longest first."""
        return self._by(lambda op: (op["name"], op["location"] if by_line else ""))

    def lines(self) -> list[Line]:
        """The time of each of the user's lines, the longest first."""
        return self._by(lambda op: ("", op["location"]))

    def steps(self) -> list[Line]:
        """The time of each region and call, in the order in which they run."""
        found = []
        for number, plan in enumerate(self.plans):
            for step in plan["steps"]:
                name = step["name"]
                if name == "call":
                    name = f"call {step['ops'][0]['name']}"
                elif name == "region":
                    name = f"region of {step['rows']} rows, {len(step['ops']) - 1} instructions"
                line = Line(f"plan {number}, stage {step['stage']}: {name}", "")
                for op in step["ops"]:
                    self._add(line, plan, op)
                found.append(line)
        return found

    def _add(self, line: Line, plan: dict[str, Any], op: dict[str, Any]) -> None:
        line.seconds += op["seconds"] / self.repeat
        line.operations += op["operations"] * plan["runs"] / self.repeat
        line.bytes += op["bytes"] * plan["runs"] / self.repeat

    @property
    def measured(self) -> float:
        """Seconds of a run of the step that its plans took."""
        return sum(plan["seconds"] for plan in self.plans) / self.repeat  # type: ignore[no-any-return]

    def _row(self, line: Line, what: str) -> str:
        def share(amount: float, peak: float) -> str:
            return f"{100 * amount / line.seconds / peak:4.0f} %" if amount and line.seconds else ""

        part = 100 * line.seconds / self.measured if self.measured else 0.0
        return (
            f"{1e3 * line.seconds:9.3f} ms {part:4.0f} % {share(line.operations, self.peaks[0]):>7}"
            f" {share(line.bytes, self.peaks[1]):>7}  {what}".rstrip()
        )

    def table(self, rows: int = 20) -> str:
        """The report as text: the `rows` longest ops, lines and steps."""
        total = self.seconds / self.repeat
        text = [
            f"{1e3 * total:.3f} ms a run, {1e3 * self.measured:.3f} ms of them in "
            f"{sum(p['runs'] for p in self.plans) / self.repeat:g} plans. The machine: "
            f"{self.peaks[0] / 1e9:.0f} GFLOPS in products, {self.peaks[1] / 1e9:.0f} GB/s."
        ]
        name: Callable[[Any], str]
        head = f"{'time':>12} {'':>6} {'FLOPS':>7} {'bytes':>7}"
        for title, lines, name in (
            ("op, line", self.ops(), lambda line: f"{line.op}  {line.place}"),
            ("line", self.lines(), lambda line: line.place or "(of no line)"),
            ("step", sorted(self.steps(), key=lambda s: -s.seconds), lambda line: line.op),
        ):
            text += ["", f"{head}  {title}"]
            shown = [line for line in lines[:rows] if line.seconds > 0]
            text += [self._row(line, name(line)) for line in shown]
        return "\n".join(text)

    def __str__(self) -> str:
        return self.table()

    def picture(self, path: str | os.PathLike[str], rows: int = 25) -> None:
        """Writes the longest ops by line as bars, an SVG picture. Raises OSError."""
        lines = [line for line in self.ops()[:rows] if line.seconds > 0]
        longest = max((line.seconds for line in lines), default=1.0)
        height, left, width = 22, 330, 480
        bars = []
        for k, line in enumerate(lines):
            y, long = 40 + k * height, width * line.seconds / longest
            part = line.operations / line.seconds / self.peaks[0]
            reached = long * min(1.0, part)
            label = html.escape(f"{line.op}  {line.place}")
            bars.append(
                f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{label}</text>'
                f'<rect x="{left}" y="{y}" width="{long:.1f}" height="16" fill="#9db8d9"/>'
                f'<rect x="{left}" y="{y}" width="{reached:.1f}" height="16" fill="#3b6ea5"/>'
                f'<text x="{left + long + 6:.1f}" y="{y + 13}">{1e3 * line.seconds:.3f} ms'
                f"{f', {100 * part:.0f} % of peak' if line.operations else ''}</text>"
            )
        text = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 190}" '
            f'height="{60 + len(lines) * height}" font-family="sans-serif" font-size="12">'
            f'<rect width="100%" height="100%" fill="white"/><text x="10" y="22" font-size="14">'
            f"{1e3 * self.measured:.3f} ms a run; dark: what it would take at the peak of "
            f"{self.peaks[0] / 1e9:.0f} GFLOPS</text>{''.join(bars)}</svg>\n"
        )
        write_whole(path, text)

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Writes when each step ran on which thread, for chrome://tracing or ui.perfetto.dev. Raises
        OSError."""
        events: list[dict[str, Any]] = []
        for number, plan in enumerate(self.plans):
            steps = plan["steps"]
            for step, thread, begin, end in plan["spans"]:
                ops = steps[step]["ops"]
                longest = max(ops, key=lambda op: op["seconds"])
                name = steps[step]["name"]
                events.append(
                    {
                        "name": longest["name"] if name == "call" else name,
                        "ph": "X",
                        "ts": 1e6 * begin,
                        "dur": 1e6 * (end - begin),
                        "pid": number,
                        "tid": thread,
                        "args": {"stage": steps[step]["stage"], "line": longest["location"]},
                    }
                )
        write_whole(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))


def profile(step: Callable[..., Any], *args: Any, repeat: int = 10, **kwargs: Any) -> Report:
    """Measure the time of step(*args, **kwargs) by region, op and line.

    The step runs once before, which plans it, and then `repeat` times. Without a profile going on,
    runs measure nothing; with one, each instruction of each tile is timed, which makes small ones
    look longer than they are.

    step: a function or a Cell. Raises TypeError if step cannot be called, ValueError if repeat is
    below 1, RuntimeError with device_target='GPU', whose work is not measured.
    """
    arguments.function(step, "profile", "step")
    arguments.integer(repeat, "profile", "repeat", 1)
    _refuse_gpu("profile")
    _done(step(*args, **kwargs))
    _core.start_profile()
    begin = time.perf_counter()
    try:
        for _ in range(repeat):
            _done(step(*args, **kwargs))
    finally:
        seconds = time.perf_counter() - begin
        plans = _core.stop_profile()
    return Report(plans, seconds, repeat, _core.machine_peaks())


def _done(result: Any) -> None:
    """Waits for what is not computed yet."""
    for x in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(x, _core.Tensor):
            x.asnumpy()


def _refuse_gpu(name: str) -> None:
    from gradcell.context import get_context

    if get_context("device_target") == "GPU":
        fail(
            f"{name}: the plans of a GPU do not measure themselves; see gradcell.cuda.inspect, or NVIDIA's "
            "profilers"
        )


class Profiler:
    """Measures from start (or from the beginning) to stop, and writes a report.

    start_profile: whether to begin at once. output_path: the folder for profile.txt (the times of
    ops, lines and functions, the number of plans that were compiled and run, memory), profile.svg,
    a picture of it, trace.json (when each step ran, for the viewers of browsers) and profile.pstats
    (for Python's pstats and its viewers). On a GPU functions alone are measured. The other
    arguments, of MindSpore's devices, have no effect. unused: options of MindSpore that have no
    effect in gradcell.

    Python functions take longer while they are measured; the plans, gradcell's own code, do not.
    """

    def __init__(
        self, start_profile: bool = True, output_path: str = "./data", **unused: Any
    ) -> None:
        if not isinstance(output_path, (str, os.PathLike)):
            bad_type("Profiler: 'output_path' must be a string")
        self._folder = os.path.abspath(os.fspath(output_path))
        self._profile = cProfile.Profile()
        self._running = False
        self._seconds = 0.0
        self._plans = {"compiled": 0, "run": 0}
        self._ops: list[dict[str, Any]] = []
        if arguments.boolean(start_profile, "Profiler", "start_profile"):
            self.start()

    def __enter__(self) -> Profiler:
        if not self._running:
            self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.analyse()

    def _counts(self) -> dict[str, int]:
        info = _core.plan_cache_info()
        return {"compiled": info["misses"], "run": info["runs"]}

    def start(self) -> None:
        """Begins, or goes on, measuring. Raises RuntimeError if it has begun."""
        if self._running:
            fail("Profiler.start: it is measuring already")
        self._running, self._since = True, time.perf_counter()
        self._before = self._counts()
        _core.start_profile()
        self._profile.enable()

    def stop(self) -> None:
        """Ends measuring. Raises RuntimeError if it has not begun."""
        if not self._running:
            fail("Profiler.stop: it is not measuring")
        self._profile.disable()
        self._ops += _core.stop_profile()
        self._running = False
        self._seconds += time.perf_counter() - self._since
        for name, count in self._counts().items():
            self._plans[name] += count - self._before[name]

    def ops(self) -> Report:
        """Report the time by region, op and line; all of it counts as one run."""
        return Report(self._ops, self._seconds, 1, _core.machine_peaks())

    def report(self, lines: int = 40) -> str:
        """The report as text, with the `lines` functions that took longest."""
        text = io.StringIO()
        if self._ops:
            print(self.ops().table(lines), end="\n\n", file=text)
        memory = _core.memory_info()
        print(
            f"{self._seconds:.3f} s; plans: {self._plans['compiled']} compiled, "
            f"{self._plans['run']} run; memory: {memory['in_use'] / 1e6:.1f} MB in use, "
            f"{memory['cached'] / 1e6:.1f} MB kept",
            file=text,
        )
        if self._profile.getstats():
            pstats.Stats(self._profile, stream=text).sort_stats("cumulative").print_stats(lines)
        return text.getvalue()

    def analyse(self, *unused: Any, **more: Any) -> None:
        """Ends measuring and writes the report. Raises OSError if it cannot be written."""
        if self._running:
            self.stop()
        os.makedirs(self._folder, exist_ok=True)
        write_whole(os.path.join(self._folder, "profile.txt"), self.report())
        if self._ops:
            self.ops().picture(os.path.join(self._folder, "profile.svg"))
            self.ops().trace(os.path.join(self._folder, "trace.json"))
        if self._profile.getstats():
            self._profile.dump_stats(os.path.join(self._folder, "profile.pstats"))


publish(globals())
