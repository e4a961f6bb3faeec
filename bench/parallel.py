"""Data parallel training: two processes of one thread against one process of two threads.

    python bench/parallel.py                          all programs, with the mpirun beside this Python
    mpirun -n 2 python bench/parallel.py digits 48    one program, one way
    mpirun -n 2 python bench/parallel.py latency      what a collective alone takes, by its bytes

A program's batch is the same whatever the number of processes: each has its part. Printed: the median
of a step's milliseconds, and of each step bytes given to collectives, milliseconds in flight, waited
for, and of coming to an agreement on what is exchanged.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import Tensor, _core, nn, ops
from gradcell.communication import get_group_size, get_rank, init
from gradcell.communication.launch import find_mpirun

PROGRAMS = {"digits": 1024, "pinn": 20000, "mlp": 512}


def dense(sizes: list[int], activation: Any) -> nn.Cell:
    layers: list[nn.Cell] = []
    for k, (a, b) in enumerate(itertools.pairwise(sizes)):
        layers += [nn.Dense(a, b)] + ([activation()] if k < len(sizes) - 2 else [])
    return nn.SequentialCell(*layers)


class Residual(nn.Cell):
    """u_t + u u_x = 0.003 u_xx, in the mean over all points."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net = net

    def construct(self, x: Any) -> Any:
        u = self.net
        first = gc.grad(lambda x: u(x).sum())
        second = gc.grad(lambda x: first(x)[:, 0:1].sum())(x)
        slope = first(x)
        return ((slope[:, 1:2] + u(x) * slope[:, 0:1] - 0.003 * second[:, 0:1]) ** 2).mean()


def program(name: str, batch: int) -> tuple[Any, list[Tensor]]:
    """(the training cell, this process's part of the data)."""
    random = np.random.default_rng(1)
    rank, size = get_rank(), get_group_size()
    mine = slice(rank * batch // size, (rank + 1) * batch // size)
    if name == "pinn":
        net = dense([2, *[20] * 8, 1], nn.Tanh)
        data = [random.uniform(-1, 1, (batch, 2)).astype(np.float32)]
        loss: nn.Cell = Residual(net)
    else:
        sizes = [64, 256, 256, 10] if name == "digits" else [784, 2048, 2048, 2048, 10]
        net = dense(sizes, nn.ReLU)
        data = [
            random.standard_normal((batch, sizes[0])).astype(np.float32),
            random.integers(0, 10, batch).astype(np.int32),
        ]
        loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
    step = nn.TrainOneStepCell(loss, nn.Adam(net.trainable_params(), 1e-3))
    step.set_train()
    return step, [Tensor(d[mine]) for d in data]


def measure(name: str, batch: int, seconds: float) -> dict[str, float]:
    """What one process finds; rank 0's numbers are printed."""
    init()
    gc.set_context(mode=gc.GRAPH_MODE)
    gc.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    gc.set_seed(3)
    step, data = program(name, batch)
    for _ in range(3):
        float(step(*data).asnumpy())
    before = _core.communication.traffic()
    times: list[float] = []
    begin = time.perf_counter()
    while True:
        at = time.perf_counter()
        float(step(*data).asnumpy())
        times.append(1000 * (time.perf_counter() - at))
        # All processes make the same number of steps.
        if len(times) % 5 == 0 and len(times) >= 10:
            over = Tensor(int(time.perf_counter() - begin > seconds), gc.int32)
            if int(ops.AllReduce("max")(over).asnumpy()):
                break
    after = _core.communication.traffic()
    found = {"ms": statistics.median(times), "steps": len(times)}
    for key, unit in (("bytes", 1), ("in_flight", 1000), ("waited", 1000), ("agreeing", 1000)):
        found[key] = unit * (after[key] - before[key]) / len(times)
    return found


def started(name: str, batch: int, ranks: int, threads: int, seconds: float) -> dict[str, float]:
    command = [sys.executable, os.path.abspath(__file__), name, str(batch), str(seconds)]
    if ranks > 1:
        command = [str(find_mpirun()), "-n", str(ranks), *command]
    environment = {**os.environ, "GRADCELL_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=85)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def latencies() -> None:
    """What a collective alone takes, by its bytes: `mpirun -n 2 python bench/parallel.py latency`."""
    init()
    for count in (1, 256, 4096, 65536, 1 << 20, 1 << 23):
        x = Tensor(np.ones(count, np.float32))
        f = gc.jit(lambda x: ops.AllReduce()(x))
        times = []
        for _ in range(30 if count > 1 << 18 else 300):
            begin = time.perf_counter()
            f(x)
            times.append(time.perf_counter() - begin)
        if get_rank() == 0:
            micro = 1e6 * statistics.median(times)
            print(f"{4 * count:>10} bytes {micro:10.1f} us {4 * count / micro / 1e3:7.2f} GB/s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="?", choices=[*PROGRAMS, "latency"], help="one program")
    parser.add_argument("batch", nargs="?", type=int, help="its batch, of all processes together")
    parser.add_argument("seconds", nargs="?", type=float, default=3.0, help="how long to measure")
    options = parser.parse_args()
    if options.program == "latency":
        return latencies()
    if options.program:
        batch = options.batch or PROGRAMS[options.program]
        found = measure(options.program, batch, options.seconds)
        if get_rank() == 0:
            print(json.dumps(found))
        return None
    for name, batch in PROGRAMS.items():
        runs: dict[int, list[float]] = {1: [], 2: []}
        more: dict[str, float] = {}
        for _ in range(3):  # one after the other, so that what disturbs disturbs both
            for ranks in (1, 2):
                more = started(name, batch, ranks, 2 // ranks, 3)
                runs[ranks].append(more["ms"])
        one, two = min(runs[1]), min(runs[2])
        print(
            f"{name:8} batch {batch:6}: 1 x 2 threads {one:8.3f} ms, 2 x 1 thread {two:8.3f} ms, "
            f"ratio {one / two:.2f}; a step gives {more['bytes']:.0f} bytes, in flight "
            f"{more['in_flight']:.3f} ms, waited {more['waited']:.3f} ms, agreeing "
            f"{more['agreeing']:.3f} ms",
            flush=True,
        )
    return None


if __name__ == "__main__":
    main()
