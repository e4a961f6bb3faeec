"""What people write by hand beside the library's function of the same: in turns, in one process.

    python bench/written.py                     attention, norms, activations, rotary embeddings
    python bench/written.py --cases attention   parts of a case's name

Both are traced once. A figure is the median of a turn, of the best of several turns; memory is what a
new process's resident set grew by at its highest, after the inputs were there. Numbers are compared first.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import nn, ops

Function = Callable[..., Any]


@dataclass(frozen=True)
class Written:
    name: str
    by_hand: Function
    library: Function
    shapes: tuple[tuple[int, ...], ...]

    def inputs(self) -> list[Any]:
        rng = np.random.default_rng(0)
        return [gc.Tensor(rng.standard_normal(s).astype(np.float32)) for s in self.shapes]


def attention(q: Any, k: Any, v: Any) -> Any:
    s = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) / math.sqrt(q.shape[-1])
    return ops.matmul(ops.softmax(s, -1), v)


def flash(q: Any, k: Any, v: Any) -> Any:
    scale = 1 / math.sqrt(q.shape[-1])
    return ops.flash_attention_score(q, k, v, q.shape[1], scalar_value=scale, input_layout="BNSD")


def later(q: Any) -> Any:
    at = gc.Tensor(np.arange(q.shape[-2]))
    return ops.expand_dims(at, 0) > ops.expand_dims(at, 1)


def causal(q: Any, k: Any, v: Any) -> Any:
    s = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) / math.sqrt(q.shape[-1])
    return ops.matmul(ops.softmax(ops.masked_fill(s, later(q), -1e9), -1), v)


def causal_flash(q: Any, k: Any, v: Any) -> Any:
    scale = 1 / math.sqrt(q.shape[-1])
    return ops.flash_attention_score(
        q, k, v, q.shape[1], scalar_value=scale, input_layout="BNSD", attn_mask=later(q)
    )


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    mean = ops.mean(x, -1, True)
    variance = ops.mean(ops.square(x - mean), -1, True)
    return (x - mean) / ops.sqrt(variance + 1e-5) * weight + bias


def rms_norm(x: Any, weight: Any) -> Any:
    return x * ops.rsqrt(ops.mean(ops.square(x), -1, True) + 1e-6) * weight


def gelu_of_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + ops.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def gelu_of_erf(x: Any) -> Any:
    return 0.5 * x * (1 + ops.erf(x / math.sqrt(2)))


def rotary(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    turned = ops.concat((-x[..., half:], x[..., :half]), -1)
    return x * cos + turned * sin


def rotary_by_halves(x: Any, cos: Any, sin: Any) -> Any:
    """No library's function: the same without a tensor that is turned."""
    (x1, x2), (c1, c2), (s1, s2) = (ops.split(y, y.shape[-1] // 2, -1) for y in (x, cos, sin))
    return ops.concat((x1 * c1 - x2 * s1, x2 * c2 + x1 * s2), -1)


SIZES = {128: (8, 8, 128, 64), 1024: (1, 8, 1024, 64), 8192: (1, 1, 8192, 64)}
CASES = [
    *(Written(f"attention, {n:,} tokens", attention, flash, (s,) * 3) for n, s in SIZES.items()),
    *(
        Written(f"causal attention, {n:,} tokens", causal, causal_flash, (s,) * 3)
        for n, s in SIZES.items()
    ),
    Written(
        "layer norm, 4,096 x 512",
        layer_norm,
        lambda x, w, b: ops.layer_norm(x, (512,), w, b),
        ((4096, 512), (512,), (512,)),
    ),
    Written(
        "RMS norm, 4,096 x 512",
        rms_norm,
        lambda x, w: ops.rms_norm(x, w)[0],
        ((4096, 512), (512,)),
    ),
    Written("GELU by tanh, 10^6", gelu_of_tanh, lambda x: nn.GELU(True)(x), ((10**6,),)),
    Written("GELU by erf, 10^6", gelu_of_erf, lambda x: nn.GELU(False)(x), ((10**6,),)),
    Written(
        "rotary embedding, 2 x 1,024 x 8 x 64",
        rotary,
        rotary_by_halves,
        ((2, 1024, 8, 64), (1, 1024, 1, 64), (1, 1024, 1, 64)),
    ),
]


def training(fn: Function, count: int) -> Function:
    """The value and the gradients of a loss that is not linear."""
    loss = lambda *args: ops.reduce_sum(ops.square(fn(*args)))  # noqa: E731
    return gc.value_and_grad(loss, tuple(range(count)))


def forms(case: Written) -> dict[str, tuple[Function, Function]]:
    n = len(case.shapes)
    return {
        "forward": (gc.jit(case.by_hand), gc.jit(case.library)),
        "training": (gc.jit(training(case.by_hand, n)), gc.jit(training(case.library, n))),
    }


def leaves(x: Any) -> list[np.ndarray]:
    return [a for y in x for a in leaves(y)] if isinstance(x, tuple) else [x.asnumpy()]


def check(a: Any, b: Any, name: str) -> None:
    for x, y in zip(leaves(a), leaves(b), strict=True):
        off = np.abs(x - y).max() / np.abs(y).max()
        if not off < 1e-4:
            raise SystemExit(f"{name}: written by hand and the library's differ by {off:.1e}")


def turn(fn: Function, args: list[Any], seconds: float) -> float:
    found, end = [], time.perf_counter() + seconds
    while not found or time.perf_counter() < end:
        begin = time.perf_counter()
        leaves(fn(*args))
        found.append(time.perf_counter() - begin)
    return median(found)


def memory(case: int, form: str, which: int) -> float:
    """Bytes."""
    call = [sys.executable, __file__, "--memory", str(case), form, str(which)]
    return float(subprocess.run(call, check=True, capture_output=True, text=True).stdout)


def resident(what: str) -> int:
    """Bytes that the system says this process has, or had at most. (What a child's rusage says begins
    with its parent's.)"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return 1024 * int(line.split()[1])
    raise SystemExit("memory is measured on Linux")


def print_memory(case: int, form: str, which: int) -> None:
    fn, args = forms(CASES[case])[form][which], CASES[case].inputs()
    leaves(ops.matmul(gc.Tensor(np.ones((64, 64), np.float32)), args[0].reshape(-1, 1)[:64]))
    before = resident("VmRSS")
    for _ in range(3):
        leaves(fn(*args))
    print(resident("VmHWM") - before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="*", default=[], help="parts of their names")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--memory", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        case, form, which = options.memory
        print_memory(int(case), form, int(which))
        return 0
    print("| case | pass | by hand, ms | library, ms | ratio | by hand, MB | library, MB |")
    print("|---|---|---|---|---|---|---|")
    for number, case in enumerate(CASES):
        if options.cases and not any(w.lower() in case.name.lower() for w in options.cases):
            continue
        args = case.inputs()
        for form, pair in forms(case).items():
            check(pair[0](*args), pair[1](*args), f"{case.name}, {form}")
            turns = [[turn(fn, args, 0.1) for fn in pair] for _ in range(options.turns)]
            hand, library = (min(t[k] for t in turns) for k in (0, 1))
            ratio = median(t[0] / t[1] for t in turns)
            used = [memory(number, form, which) / 1e6 for which in (0, 1)]
            print(
                f"| {case.name} | {form} | {1e3 * hand:.3g} | {1e3 * library:.3g} | {ratio:.2f} "
                f"| {used[0]:.0f} | {used[1]:.0f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
