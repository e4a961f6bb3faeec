"""The CUDA plan of a function: its kernels as text, what they launch and what they must move.

Needs no GPU: the plan is what one would run. `synchronize` waits for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradcell import _core
from gradcell.base import publish, tree


class Plan:
    """The CUDA planner's plan of a function's graph.

    Attributes:
        kernels: (name, text) of each kernel; kernels with the same text are one.
        steps: dicts, in order: a launch (kernel, grid, block, segments, arguments), a matrix product
            (matmul), a convolution by cuDNN or a loop, with the graph nodes it computes and the bytes
            it must read and write. More than one segment: the arguments are those of one after
            another. A product with a bias that cuBLASLt cannot add is followed by its "add_bias", a
            launch; one with an "addend" is added to that buffer's matrix. A loop has a "body", with
            steps of its own, which it repeats.
        launches, products, convolutions: how many of each a run puts on the stream, those of a loop's
            body once for each of its steps.
        node_count: nodes of the graph, constants and inputs included.
        source: the whole module, as the compiler gets it.

    raw: the plan as the core gives it.
    """

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.kernels: list[tuple[str, str]] = raw["kernels"]
        self.steps: list[dict[str, Any]] = raw["steps"]
        self.node_count: int = raw["node_count"]
        self.source: str = raw["source"]
        times = dict.fromkeys(("matmul", "convolution", "loop", "launch"), 0)
        for s, _, n in _every(self.steps):
            times[next((kind for kind in times if kind in s), "launch")] += n
        self.products: int = times["matmul"]
        self.convolutions: int = times["convolution"]
        self.launches: int = times["launch"]

    @property
    def bytes_moved(self) -> int:
        """Bytes that all steps must read and write, each buffer counted once a step."""
        return sum(s["bytes_read"] + s["bytes_written"] for s in self.steps)

    def table(self) -> str:
        """One line for each step, in order: what it is, its size (a launch's blocks and threads, a
        product's m, n and k, how often a loop's body runs), the graph's nodes that it computes, the
        bytes that it must read and write. The steps of a loop's body stand below it, as one run of
        them is. In the last line, all of it beside the graph's nodes."""
        head = ("kernel or product", "size", "nodes", "bytes read", "written")
        lines = ["{:44} {:>20} {:>5} {:>12} {:>12}".format(*head)]
        for s, depth, _ in _every(self.steps):
            what, how = _named(s)
            lines.append(
                f"{'  ' * depth + what:44} {how:>20} {s['nodes']:5} {s['bytes_read']:12} "
                f"{s['bytes_written']:12}"
            )
        kernels = len({s["kernel"] for s, _, _ in _every(self.steps) if "kernel" in s})
        by_cudnn = f"{self.convolutions} convolutions by cuDNN, " if self.convolutions else ""
        lines.append(
            f"{self.node_count} nodes of the graph: {self.launches} launches of {kernels} kernels, "
            f"{self.products} matrix products, {by_cudnn}{self.bytes_moved} bytes moved"
        )
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join(text for _, text in self.kernels) + "\n" + self.table()


def _every(
    steps: list[dict[str, Any]], depth: int = 0, times: int = 1
) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Steps, with those of loops' bodies: how deep in loops they are, and how often they run."""
    for s in steps:
        yield s, depth, times
        if "loop" in s:
            yield from _every(s["loop"]["body"]["steps"], depth + 1, times * s["loop"]["steps"])


def _named(step: dict[str, Any]) -> tuple[str, str]:
    """Return the name and the size of a step."""
    if "kernel" in step:
        several = f" ({step['segments']} arrays)" if step["segments"] > 1 else ""
        return step["kernel"] + several, f"{step['grid']} x {step['block'][0]}x{step['block'][1]}"
    if "loop" in step:
        return "loop", f"{step['loop']['steps']} times"
    if "collective" in step:
        return step["collective"]["op"], ""
    if "routine" in step:
        return step["routine"]["op"], "on the host"
    if "convolution" in step:
        c = step["convolution"]
        places = "x".join(str(a["output"]) for a in c["axes"])
        size = f"{c['images']}x{c['groups'] * c['outputs']}x{places}"
        part = "" if c["part"] == "output" else f", gradient of {c['part']}"
        return f"cuDNN {'tf32' if c['tf32'] else c['dtype']}{part}", size
    m = step["matmul"]
    batch = f"{m['batch']} x " if m["batch"] != 1 else ""
    more = " + bias" if "bias" in m else " + matrix" if "addend" in m else ""
    what = f"matmul {'tf32' if m['tf32'] else m['dtype']}{more}"
    return what, f"{batch}{m['m']}x{m['n']}x{m['k']}"


def plan_of(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Plan:
    """The CUDA plan of `fn(*args, **kwargs)`, which is recorded and not run: for the GPU in use and the
    libraries that are there; with device_target="CPU" for an H200 without cuDNN.

    The plan holds what fn returns and the parameters it assigns. Where fn asks for a value, the
    value is computed on the CPU, as anywhere in a function that records.
    """
    trace = _core.begin_trace(for_gpu=True)
    try:
        out = fn(*args, **kwargs)
        tensors = [t if t._traced else _core.record(t) for t in tree.leaves(out)]
        return Plan(_core.cuda_plan(tensors))
    finally:
        trace.abandon()
        _core.end_trace()


def synchronize() -> None:
    """Waits until the GPU in use has done all its work; does nothing with device_target='CPU'."""
    number = _core.device_in_use()
    if number >= 0:
        _core.synchronize_device(number)


def inspect(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Plan:
    """Prints the kernels of `fn(*args, **kwargs)` and what steps must move; returns the plan."""
    plan = plan_of(fn, *args, **kwargs)
    print(plan)
    return plan


publish(globals())
