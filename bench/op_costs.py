"""Measures what csrc/plan/costs.h says of the CPU: nanoseconds an element of each kind of op takes.

    python bench/op_costs.py

Chains of 20 ops on 200,000 float32 elements, on one thread; of each op the best of several rounds, less what
a chain of a maximum takes to load and to store.
"""

from __future__ import annotations

import os

os.environ["GRADCELL_NUM_THREADS"] = "1"

import time
from collections.abc import Callable

import numpy as np

import gradcell as gc
from gradcell import Tensor, ops

ELEMENTS, LENGTH, ROUNDS = 200_000, 20, 30

#: Kind of cost: ops, each of a number near 1 that stays near 1.
KINDS: dict[str, dict[str, Callable[[Tensor], Tensor]]] = {
    "Arithmetic": {"maximum": lambda x: ops.maximum(x, 0.5), "add": lambda x: x + 1e-3},
    "Division": {"div": lambda x: 1.01 / x, "sqrt": lambda x: ops.sqrt(x + 0.01)},
    "InverseRoot": {"rsqrt": ops.rsqrt},
    "Short": {"exp": lambda x: ops.exp(-x), "tanh": ops.tanh, "sigmoid": ops.sigmoid},
    "Function": {"sin": ops.sin, "erf": ops.erf, "log": lambda x: ops.log(x + 1.1)},
    "Long": {"pow": lambda x: x**1.1, "fmod": lambda x: ops.fmod(x + 1.0, 1.3)},
}


def seconds(op: Callable[[Tensor], Tensor], length: int) -> float:
    @gc.jit
    def chain(x: Tensor) -> Tensor:
        for _ in range(length):
            x = op(x)
        return x

    x = Tensor(np.random.default_rng(0).uniform(0.5, 1.5, ELEMENTS).astype(np.float32))
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        chain(x).asnumpy()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    for kind, ops_of in KINDS.items():
        for name, op in ops_of.items():
            took = seconds(op, LENGTH + 1) - seconds(op, 1)
            print(f"{kind:12s} {name:8s} {took / LENGTH / ELEMENTS * 1e9:6.3f} ns")


if __name__ == "__main__":
    main()
