"""Counts what a step puts on a GPU's stream, on a machine without one: launches, products, graphs, copies and
downloads of each case of gpu_bench.py and gpu_compare.py in the long run, and the host's time for them.

    python bench/gpu_counts.py [--scale 0.05] [--cases MLP PINN]

The driver is the one of the tests (tests/fake_cuda.cpp), which only counts here; it needs g++.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NAMES = ("graphs", "nodes", "enqueued", "products", "copies", "downloads", "waits")


def start_again() -> None:
    """Start this program again with the made-up driver, in an environment that has its libraries."""
    sys.path.insert(0, str(HERE.parent / "tests" / "python" / "support"))
    from made_up_gpu import build

    folder = Path(tempfile.mkdtemp())
    library = str(build(folder / "driver"))
    libraries = ("CUDA_DRIVER", "NVRTC", "CUBLASLT", "NCCL", "CUDNN")
    made_up = {f"GRADCELL_{name}": library for name in libraries}
    usual = {"GRADCELL_CACHE_DIR": str(folder / "cache"), "GRADCELL_CUDA_TUNE": "0"}
    idle = {"FAKE_CUDA_IDLE": "1", "FAKE_CUDA_MEMORY": str(141 << 30)}
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | made_up | usual | idle)


def counted(call: Callable[[], Any], steps: int = 128) -> tuple[list[float], float]:
    """The counts of NAMES in a step, and the host's microseconds: the least of some rounds."""
    driver = ctypes.CDLL(os.environ["GRADCELL_CUDA_DRIVER"])
    driver.fake_count.restype = ctypes.c_long

    def counts() -> list[int]:
        return [driver.fake_count(name.encode()) for name in NAMES]

    for _ in range(48):
        call()
    before = counts()
    least = float("inf")
    for _ in range(8):
        began = time.perf_counter()
        for _ in range(steps // 8):
            call()
        least = min(least, (time.perf_counter() - began) / (steps // 8))
    return [(b - a) / steps for a, b in zip(before, counts(), strict=True)], 1e6 * least


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--cases", nargs="*", default=[])
    args = parser.parse_args()
    if "FAKE_CUDA_IDLE" not in os.environ:
        start_again()
    import gpu_bench
    import gpu_compare
    import gradcell as gc

    gc.set_context(mode=gc.GRAPH_MODE, device_target="GPU")
    print("| step | us of the host | " + " | ".join(NAMES) + " |")
    print("|---|---|" + "---|" * len(NAMES))

    def line(name: str, make: Callable[[], Callable[[], Any]]) -> None:
        if args.cases and not any(part in name for part in args.cases):
            return
        found, us = counted(make())
        print(f"| {name} | {us:.1f} | " + " | ".join(f"{v:.4g}" for v in found) + " |", flush=True)

    def compiled(fn: Callable[..., Any], data: list[Any]) -> Callable[[], Any]:
        step = gc.jit(lambda *a: fn(*a))
        return lambda: step(*data)

    for name, (fn, data) in gpu_bench.cases(args.scale).items():
        line(name, lambda fn=fn, data=data: compiled(fn, data))
    for name, case in gpu_compare.cases(args.scale).items():
        if "bfloat16" not in name:
            line(name, lambda case=case: gpu_compare.gradcell_work("gpu", case).call)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
