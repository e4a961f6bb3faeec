"""What training steps are predicted to take on an H200: a table from their plans.

A step of a plan takes as long as its bytes or its products, whichever is longer, and a launch between; the
kernel of a narrow network as many cycles as its tiles do. RATES and what is beside them are all that is
assumed. Nothing is measured, and no GPU is needed:

    python tools/predict_gpu.py [--only resnet]
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gradcell as gc
from gradcell import Tensor, cuda, nn, ops

#: Bytes a second of a copy, and the time of a node of a CUDA graph with the start of its kernel.
MEMORY, LAUNCH = 4.3e12, 2e-6
#: Operations a second that large products reach: (cuBLASLt, kernels of gradcell's own). Of the data
#: sheet's dense 67 (float32), 495 (TF32) and 990 (bfloat16) 10^12, the library reaches 0.75; own kernels,
#: whose mma is that of sm_80, are taken to reach a quarter of what tensor cores can, and a third of that
#: by three products.
RATES = {
    "float32": (50e12, 41e12),
    "TF32": (370e12, 124e12),
    "bfloat16": (740e12, 248e12),
}
#: The clock, and the cycles of a tile of a narrow network's kernel by tools/sass_cycles.py: with all that it
#: reads in the L1 cache but sums, and with weights in the L2 cache too.
CLOCK = 1.98e9
TILES = {"8 x 20": (72_183, 81_203), "4 x 64": (72_649, 96_220)}


class Found(NamedTuple):
    launches: int
    gigabytes: float
    operations: float
    least: float  # seconds
    most: float


class Case(NamedTuple):
    make: Callable[[], tuple[Callable[..., Any], list[Tensor]]]
    dtype: str = "float32"
    tiles: str = ""  # of TILES


def zeros(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, np.float32))


def training(net: nn.Cell, loss: Callable[..., Tensor]) -> Callable[..., Any]:
    """A step of Adam, with the loss of the network and its arguments."""
    weights = net.trainable_params()
    optimizer = nn.Adam(weights, 1e-3)
    value = gc.value_and_grad(loss, None, weights)

    def step(*arguments: Tensor) -> Tensor:
        found, slopes = value(*arguments)
        optimizer(slopes)
        return found

    return step


# Networks ---------------------------------------------------------------------------------------------


class Block(nn.Cell):
    """Two convolutions beside what came in."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, "pad", 1)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, "pad", 1)
        self.norms = nn.CellList([nn.BatchNorm2d(outputs) for _ in range(2)])
        self.beside = (
            nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
            if stride > 1
            else nn.Identity()
        )

    def construct(self, x: Tensor) -> Tensor:
        y = ops.relu(self.norms[0](self.first(x)))
        return ops.relu(self.norms[1](self.second(y)) + self.beside(x))


def resnet(dtype: str) -> tuple[Callable[..., Any], list[Tensor]]:
    """ResNet-18 for 128 images of 32 x 32."""
    widths = [64, 64, 128, 128, 256, 256, 512, 512]
    strides = [1, 1, 2, 1, 2, 1, 2, 1]
    blocks = [Block(a, b, s) for a, b, s in zip([64, *widths], widths, strides, strict=False)]
    net = nn.SequentialCell(
        nn.Conv2d(3, 64, 3, 1, "pad", 1), nn.BatchNorm2d(64), nn.ReLU(), *blocks
    )
    head = nn.Dense(512, 10)
    both = nn.CellList([net, head]).set_train()
    kind = getattr(gc, dtype)
    both.to_float(kind)

    def loss(x: Tensor, y: Tensor) -> Tensor:
        scores = head(net(x).mean((2, 3)))
        return ops.cross_entropy(scores.astype(gc.float32), y)

    return training(both, loss), [
        zeros(128, 3, 32, 32).astype(kind), Tensor(np.zeros(128, np.int32))
    ]  # fmt: skip


class Layer(nn.Cell):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.CellList([nn.LayerNorm((width,)) for _ in range(2)])
        self.inward, self.outward = nn.Dense(width, 3 * width), nn.Dense(width, width)
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)

    def construct(self, x: Tensor) -> Tensor:
        q, k, v = ops.split(self.inward(self.norms[0](x)), x.shape[-1], -1)
        y = ops.flash_attention_score(
            q, k, v, self.heads, input_layout="BSH", sparse_mode=2,
            scalar_value=(x.shape[-1] / self.heads) ** -0.5,
            attn_mask=Tensor(np.triu(np.ones((x.shape[1], x.shape[1]), bool), 1)),
        )  # fmt: skip
        x = x + self.outward(y)
        return x + self.down(ops.gelu(self.up(self.norms[1](x))))


class Gpt(nn.Cell):
    def __init__(self, words: int, length: int, width: int, heads: int, depth: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.SequentialCell([Layer(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm((width,))

    def construct(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places.embedding_table
        return ops.matmul(self.norm(self.layers(x)), self.words.embedding_table.T)


def gpt(dtype: str) -> tuple[Callable[..., Any], list[Tensor]]:
    """GPT small: 12 layers of 768, 12 heads, 50,257 words, 8 sequences of 1,024; gradients of all weights."""
    net = Gpt(50257, 1024, 768, 12, 12)
    for p in net.trainable_params():
        p.set_dtype(getattr(gc, dtype))
    weights = net.trainable_params()

    def loss(tokens: Tensor, next: Tensor) -> Tensor:
        scores = net(tokens).astype(gc.float32)
        return ops.cross_entropy(ops.reshape(scores, (-1, scores.shape[-1])), next)

    words = Tensor(np.zeros((8, 1024), np.int32))
    return gc.value_and_grad(loss, None, weights), [words, Tensor(np.zeros(8192, np.int32))]


def mlp(batch: int) -> tuple[Callable[..., Any], list[Tensor]]:
    net = nn.SequentialCell(
        nn.Dense(784, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10)
    )
    return training(net, lambda x, y: ops.cross_entropy(net(x), y)), [
        zeros(batch, 784), Tensor(np.zeros(batch, np.int32))
    ]  # fmt: skip


def lstm() -> tuple[Callable[..., Any], list[Tensor]]:
    layer = nn.LSTM(64, 128)
    loss = lambda x, y: ((layer(x)[0] - y) ** 2).mean()  # noqa: E731
    return training(layer, loss), [zeros(1000, 32, 64), zeros(1000, 32, 128)]


def burgers(layers: list[int], points: int) -> tuple[Callable[..., Any], list[Tensor]]:
    """u_t + u u_x = 0.003 u_xx in the mean over all points."""
    widths = [2, *layers, 1]
    cells = [c for a, b in itertools.pairwise(widths) for c in (nn.Dense(a, b), nn.Tanh())][:-1]
    net = nn.SequentialCell(*cells)
    u = lambda x, t: net(ops.concat((x, t), 1))  # noqa: E731
    slopes = gc.grad(lambda x, t: u(x, t).sum(), (0, 1))
    second = gc.grad(lambda x, t: slopes(x, t)[0].sum())

    def loss(x: Tensor, t: Tensor) -> Tensor:
        u_x, u_t = slopes(x, t)
        return ops.square(u_t + u(x, t) * u_x - 0.003 * second(x, t)).mean()

    return training(net, loss), [zeros(points, 1), zeros(points, 1)]


CASES = {
    f"ResNet-18, 128 images of 32 x 32, {dtype}": Case(
        lambda d=dtype: resnet("bfloat16" if d == "bfloat16" else "float32"), dtype
    )
    for dtype in RATES
}
CASES |= {
    f"GPT small, 8 x 1,024, forward and backward, {dtype}": Case(
        lambda d=dtype: gpt("bfloat16" if d == "bfloat16" else "float32"), dtype
    )
    for dtype in RATES
}
CASES |= {
    f"MLP 784-512-512-10, batch {batch:,}": Case(lambda b=batch: mlp(b))
    for batch in (32, 256, 2048, 8192)
}
CASES["LSTM 64 to 128, batch 32, 1,000 steps"] = Case(lstm)
for _name, _layers in (("8 x 20", [20] * 8), ("4 x 64", [64] * 4), ("4 x 128", [128] * 4)):
    for _points in (10_000, 1_000_000):
        CASES[f"Burgers' equation, {_name}, {_points:,} points"] = Case(
            lambda w=_layers, p=_points: burgers(w, p), tiles=_name
        )


# Prediction ---------------------------------------------------------------------------------------------


def seconds(steps: list[dict[str, Any]], case: Case) -> tuple[float, float, float]:
    """Of some steps, at least and at most, and their operations."""
    least = most = operations = 0.0
    for step in steps:
        if "loop" in step:
            times = step["loop"]["steps"]
            inside = seconds(step["loop"]["body"]["steps"], case)
            least, most = least + times * inside[0], most + times * inside[1]
            operations += times * inside[2]
            continue
        rate = RATES[case.dtype][0 if "matmul" in step else 1]
        bytes_moved = (step["bytes_read"] + step["bytes_written"]) / MEMORY
        low = high = max(bytes_moved, step["flops"] / rate)
        if (
            "tile" in step
        ):  # a narrow network's: tiles after each other, and the planner's own guess
            rounds, cycles = step["tile"]
            each = TILES.get(case.tiles, (cycles / rounds,) * 2)
            low, high = (max(low, rounds * cycles / CLOCK) for cycles in each)
        least, most = least + low + LAUNCH, most + high + LAUNCH
        operations += step["flops"]
    return least, most, operations


def predicted(case: Case) -> Found:
    gc.set_context(gpu_config={"matmul_allow_tf32": case.dtype == "TF32"})
    try:
        plan = cuda.plan_of(*(lambda fn, arguments: (fn, *arguments))(*case.make()))
    finally:
        gc.set_context(gpu_config={"matmul_allow_tf32": False})
    least, most, operations = seconds(plan.raw["steps"], case)
    count = plan.launches + plan.products
    return Found(count, plan.bytes_moved / 1e9, operations, least, most)


def row(name: str, found: Found) -> str:
    time = f"{found.least * 1e3:.3g}"
    if found.most > 1.01 * found.least:
        time += f" to {found.most * 1e3:.3g}"
    return (
        f"| {name} | {found.launches:,} | {found.gigabytes:.3g} | {found.operations / 1e9:,.3g} "
        f"| {time} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of a case's name, in small letters")
    only = parser.parse_args().only
    print("| step | launches and products | GB moved | 10^9 operations of products | ms |")
    print("|---|---|---|---|---|")
    for name, case in CASES.items():
        if only in name.lower():
            print(row(name, predicted(case)), flush=True)


if __name__ == "__main__":
    main()
