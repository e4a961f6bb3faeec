"""A framework in a process of its own, which times its steps when asked.

One process a contender keeps thread pools, allocators and BLAS libraries apart; the asking process
lets only one of them work at a time.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import steps
from inputs import Array


class ContenderError(Exception):
    """What went wrong in the other process."""


class Contender:
    """name: "jax", "torch/eager", ...; threads: CPUs the process may use; log: the file that takes
    what the framework prints; path: a folder of packages that goes before all others there."""

    def __init__(self, name: str, threads: int, log: Path, path: Path | None = None) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, name, threads, str(log), path), daemon=True
        )
        environment = dict(os.environ)
        os.environ.update(
            {
                f"{library}_NUM_THREADS": str(threads)
                for library in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "GRADCELL")
            }
        )
        self._process.start()
        os.environ.clear()
        os.environ.update(environment)
        theirs.close()
        self.version = str(self._ask("start", timeout=300))

    def prepare(self, step: str, params: Mapping[str, Any]) -> float:
        """Makes the step current; seconds of its first call."""
        return float(self._ask("prepare", step, dict(params), timeout=1200))

    def values(self, step: str, params: Mapping[str, Any]) -> list[Array]:
        """The results of a step made anew."""
        values: list[Array] = self._ask("values", step, dict(params), timeout=1200)
        return values

    def time(self, seconds: float) -> tuple[list[float], float]:
        """Seconds a call, of as many samples as fit, one at least; the share of that time in which
        the calling thread could have run but other processes had the CPU."""
        samples, waited = self._ask("time", seconds)
        return samples, waited

    def peak_memory(self, step: str, params: Mapping[str, Any]) -> float:
        """Bytes that three steps add to the resident set at its highest; the inputs count."""
        return float(self._ask("peak_memory", step, dict(params), timeout=1200))

    def planning(self, step: str, params: Mapping[str, Any]) -> float:
        return float(self._ask("planning", step, dict(params)))

    def stop(self) -> None:
        if self._process.is_alive():
            self._process.terminate()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()

    def _ask(self, request: str, *arguments: Any, timeout: float = 300) -> Any:
        self._pipe.send((request, arguments))
        try:
            if not self._pipe.poll(timeout):
                self.stop()
                raise ContenderError(f"no answer in {timeout:.0f} s")
            ok, answer = self._pipe.recv()
        except (EOFError, ConnectionResetError) as e:
            raise ContenderError("the process ended") from e
        if not ok:
            raise ContenderError(answer)
        return answer


def _serve(pipe: Connection, name: str, threads: int, log: str, path: Path | None) -> None:
    if path is not None:
        sys.path.insert(0, str(path))
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    worker = _Worker(name)
    while True:
        try:
            request, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, getattr(worker, request)(*arguments)))
        except Exception as e:
            traceback.print_exc(file=sys.stderr)
            lines = str(e).strip().splitlines() or [""]
            pipe.send((False, f"{type(e).__name__}: {lines[0][:200]}"))


class _Worker:
    """The requests, in the contender's own process."""

    def __init__(self, name: str) -> None:
        self.framework, _, self.variant = name.partition("/")
        self.call: Any = None
        self.number = 1

    def start(self) -> str:
        steps.build(self.framework, "none", {}, self.variant)  # imports the framework
        return str(sys.modules[self.framework].__version__)

    def _build(self, step: str, params: dict[str, Any]) -> steps.Step:
        made = steps.build(self.framework, step, params, self.variant)
        if made is None:
            raise NotImplementedError(step)
        return made

    def values(self, step: str, params: dict[str, Any]) -> list[Array]:
        return self._build(step, params).check_values()

    def prepare(self, step: str, params: dict[str, Any]) -> float:
        """Later samples are runs of calls of about a millisecond."""
        self.call = None
        gc.collect()
        self.call = self._build(step, params).call
        first = _seconds(self.call, 1)
        self.call()
        self.number = 1
        while _seconds(self.call, self.number) < 1e-3:
            self.number *= 2
        return first

    def time(self, budget: float) -> tuple[list[float], float]:
        gc.disable()
        start, waited = time.perf_counter(), _seconds_waited()
        samples = [_seconds(self.call, self.number)]
        end = time.perf_counter() + budget
        if samples[0] < budget:  # that one warmed the caches and woke the threads
            samples = []
        while not samples or time.perf_counter() < end:
            samples.append(_seconds(self.call, self.number))
        gc.enable()
        waited = (_seconds_waited() - waited) / (time.perf_counter() - start)
        return [s / self.number for s in samples], waited

    def peak_memory(self, step: str, params: dict[str, Any]) -> float:
        """A small step first, for what the framework allocates once."""
        small = {"batch": 1} if "batch" in params else {"points": 64}
        self._build(step, {**params, **small}).call()
        gc.collect()
        base = _status_bytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        call = self._build(step, params).call
        for _ in range(3):
            call()
        return _status_bytes("VmHWM") - base

    def planning(self, step: str, params: dict[str, Any]) -> float:
        return float(sys.modules[f"steps.{self.framework}_steps"].planning_seconds(step, params))


def _seconds(call: Any, number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        call()
    return time.perf_counter() - start


def _seconds_waited() -> float:
    """How long this thread has been ready to run without a CPU (Linux counts it)."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) * 1e-9
    except OSError:
        return 0.0


def _status_bytes(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)
