"""Measures what csrc/plan/costs.h says of the CPU: nanoseconds an element of each kind of op takes.

    python bench/op_costs.py

Chains of 20 ops on 200,000 float32 elements, on one thread; of each op the best of several rounds, less what
a chain of one takes to load and to store. Then a product inside a tile, for each multiplication and addition,
and what loading or storing a row of one feature takes.
"""

from __future__ import annotations

import argparse
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


def values(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32))


def best_of(function: Callable[..., object], *args: object) -> float:
    compiled, best = gc.jit(function), float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        compiled(*args)
        best = min(best, time.perf_counter() - start)
    return best


def seconds(op: Callable[[Tensor], Tensor], length: int, x: Tensor) -> float:
    def chain(x: Tensor) -> Tensor:
        for _ in range(length):
            x = op(x)
        return x

    return best_of(chain, x)


def multiply_add(width: int = 32, rows: int = 20_000) -> float:
    """Of products of a few features in a chain, which is one region."""
    w = Tensor(np.eye(width, dtype=np.float32) * 0.9)
    took = [seconds(lambda x: ops.tanh(ops.matmul(x, w)), n, values(rows, width)) for n in (9, 1)]
    tanh = [seconds(ops.tanh, n, values(rows, width)) for n in (9, 1)]
    return (took[0] - took[1] - tanh[0] + tanh[1]) / 8 / rows / width / width


def transferred_row(rows: int = 20_000) -> float:
    """Of several tensors that one region reads and writes: one more is a load and a store."""
    took = [
        best_of(lambda *xs: tuple(x + 1.0 for x in xs), *(values(rows) for _ in range(n)))
        for n in (16, 1)
    ]
    return (took[0] - took[1]) / 15 / 2 / rows


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    for kind, ops_of in KINDS.items():
        for name, op in ops_of.items():
            took = seconds(op, LENGTH + 1, values(ELEMENTS)) - seconds(op, 1, values(ELEMENTS))
            print(f"{kind:12s} {name:8s} {took / LENGTH / ELEMENTS * 1e9:6.3f} ns")
    print(f"{'kMultiplyAddNs':21s} {multiply_add() * 1e9:6.3f} ns")
    print(f"{'kTransferredRowNs':21s} {transferred_row() * 1e9:6.3f} ns")


if __name__ == "__main__":
    main()
