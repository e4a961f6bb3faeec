"""The CUDA plan of a function: its kernels as text, what they launch and what they must move.

Needs no GPU: the plan is what one would run. `synchronize` waits for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell import _core, tree

__all__ = ["Plan", "inspect", "plan_of", "synchronize"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Plan:
    """What the CUDA planner makes of a function's graph.

    Attributes:
        kernels: (name, text) of each kernel; kernels with the same text are one.
        steps: dicts, in order: a launch (kernel, grid, block, segments, arguments) or a matrix product
            (matmul), with the graph nodes it computes and the bytes it must read and write. More
            than one segment: the arguments are those of one after another. A product with a bias
            that cuBLASLt cannot add is followed by its "add_bias", a launch.
        node_count: nodes of the graph, constants and inputs included.
        source: the whole module, as the compiler gets it.
    """

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.kernels: list[tuple[str, str]] = raw["kernels"]
        self.steps: list[dict[str, Any]] = raw["steps"]
        self.node_count: int = raw["node_count"]
        self.source: str = raw["source"]

    @property
    def bytes_moved(self) -> int:
        """Bytes that all steps must read and write, each buffer counted once a step."""
        return sum(s["bytes_read"] + s["bytes_written"] for s in self.steps)

    def table(self) -> str:
        """One line for each step, in order: what it is, its size (a launch's blocks and threads, or a
        product's m, n and k), the graph's nodes that it computes, the bytes that it must read and
        write. In the last line, all of it beside the graph's nodes."""
        head = ("kernel or product", "size", "nodes", "bytes read", "written")
        lines = ["{:44} {:>20} {:>5} {:>12} {:>12}".format(*head)]
        for s in self.steps:
            if "kernel" in s:
                several = f" ({s['segments']} arrays)" if s["segments"] > 1 else ""
                what = s["kernel"] + several
                how = f"{s['grid']} x {s['block'][0]}x{s['block'][1]}"
            else:
                m = s["matmul"]
                what = f"matmul {'tf32' if m['tf32'] else m['dtype']}{' + bias' if 'bias' in m else ''}"
                batch = f"{m['batch']} x " if m["batch"] != 1 else ""
                how = f"{batch}{m['m']}x{m['n']}x{m['k']}"
            lines.append(
                f"{what:44} {how:>20} {s['nodes']:5} {s['bytes_read']:12} {s['bytes_written']:12}"
            )
        products = sum("matmul" in s for s in self.steps)
        kernels = len({s["kernel"] for s in self.steps if "kernel" in s})
        lines.append(
            f"{self.node_count} nodes of the graph: {len(self.steps) - products} launches of "
            f"{kernels} kernels, {products} matrix products, {self.bytes_moved} bytes moved"
        )
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join(text for _, text in self.kernels) + "\n" + self.table()


def plan_of(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Plan:
    """The CUDA plan of `fn(*args, **kwargs)`, which is recorded and not run.

    The plan holds what fn returns and the parameters it assigns. Where fn asks for a value, the
    value is computed on the CPU, as anywhere in a function that records.
    """
    trace = _core.begin_trace()
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
