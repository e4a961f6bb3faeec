"""Profiler: where the time of a run goes, by function, and what gradcell's plans did meanwhile."""

from __future__ import annotations

import cProfile
import io
import os
import pstats
import time
from typing import Any

from gradcell import _core, arguments
from gradcell._location import where


class Profiler:
    """Measures from start (or from the beginning) to stop, and writes a report.

    start_profile: whether to begin at once. output_path: the folder for profile.txt (the times of
    functions, the number of plans that were compiled and run, memory) and profile.pstats (for
    Python's pstats and its viewers). The other arguments, of MindSpore's devices, have no effect.

    Python functions take longer while they are measured; the plans, gradcell's own code, do not.
    """

    def __init__(
        self, start_profile: bool = True, output_path: str = "./data", **unused: Any
    ) -> None:
        if not isinstance(output_path, (str, os.PathLike)):
            raise TypeError(f"Profiler: 'output_path' must be a string{where()}")
        self._folder = os.path.abspath(os.fspath(output_path))
        self._profile = cProfile.Profile()
        self._running = False
        self._seconds = 0.0
        self._plans = {"compiled": 0, "run": 0}
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
            raise RuntimeError(f"Profiler.start: it is measuring already{where()}")
        self._running, self._since = True, time.perf_counter()
        self._before = self._counts()
        self._profile.enable()

    def stop(self) -> None:
        """Ends measuring. Raises RuntimeError if it has not begun."""
        if not self._running:
            raise RuntimeError(f"Profiler.stop: it is not measuring{where()}")
        self._profile.disable()
        self._running = False
        self._seconds += time.perf_counter() - self._since
        for name, count in self._counts().items():
            self._plans[name] += count - self._before[name]

    def report(self, lines: int = 40) -> str:
        """The report as text, with the `lines` functions that took longest."""
        text = io.StringIO()
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
        with open(os.path.join(self._folder, "profile.txt"), "w") as file:
            file.write(self.report())
        if self._profile.getstats():
            self._profile.dump_stats(os.path.join(self._folder, "profile.pstats"))


__all__ = ["Profiler"]


def __dir__() -> list[str]:
    return sorted(__all__)
