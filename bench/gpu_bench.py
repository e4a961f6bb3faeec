"""Times of whole steps on a GPU, with the bytes and the products of their plans.

Prints a table; with --json writes everything, after each case. A case that fails is a line.
--cpu runs the same on the CPU engine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gradcell as ms
from gradcell import Tensor, _core, cuda, nn, ops
from gradcell.base import tree

rng = np.random.default_rng(1)


def tensor(*shape: int) -> Tensor:
    return Tensor((rng.standard_normal(shape) * 0.3).astype(np.float32))


def network(x: Tensor, weights: list[Tensor]) -> Tensor:
    for w, b in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        x = ops.tanh(ops.matmul(x, w) + b)
    return ops.matmul(x, weights[-2]) + weights[-1]


def layers(*widths: int) -> list[Tensor]:
    out = []
    for a, b in itertools.pairwise(widths):
        out += [tensor(a, b), tensor(b)]
    return out


def chain(x: Tensor) -> Tensor:
    return ops.sin(x) * ops.exp(-x * x) + x * ops.tanh(x)


def second_derivative(x: Tensor) -> Tensor:
    return ms.grad(lambda z: ms.grad(lambda y: chain(y).sum())(z).sum())(x)


def mlp_step(x: Tensor, y: Tensor, *weights: Tensor) -> Any:
    def loss(*w: Tensor) -> Tensor:
        difference = network(x, list(w)) - y
        return (difference * difference).mean()

    value, slopes = ms.value_and_grad(loss, tuple(range(len(weights))))(*weights)
    return value, [w - 0.001 * g for w, g in zip(weights, slopes, strict=True)]


def pinn_step(points: Tensor, *weights: Tensor) -> Any:
    def loss(*w: Tensor) -> Tensor:
        first = ms.grad(lambda p: network(p, list(w)).sum())
        second = ms.grad(lambda p: first(p).sum())(points)
        residual = second.sum(1) + ops.sin(network(points, list(w)))[:, 0]
        return (residual * residual).mean()

    value, slopes = ms.value_and_grad(loss, tuple(range(len(weights))))(*weights)
    return value, [w - 0.001 * g for w, g in zip(weights, slopes, strict=True)]


class Burgers(nn.Cell):
    """u_t + u u_x = 0.003 u_xx, in the mean over all points, as users write it."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net = net

    def construct(self, points: Tensor) -> Tensor:
        u = self.net
        slope = ms.grad(lambda p: u(p).sum())
        second = ms.grad(lambda p: slope(p)[:, 0:1].sum())(points)[:, 0:1]
        first = slope(points)
        return ((first[:, 1:2] + u(points) * first[:, 0:1] - 0.003 * second) ** 2).mean()


def narrow_step(x: Tensor, y: Tensor, *weights: Tensor) -> Any:
    """A loss and its gradients: one kernel, see docs/cuda-kernels.md. The data in the weights' type."""

    def loss(*w: Tensor) -> Tensor:
        return ops.square((network(x, list(w)) - y).astype(ms.float32)).mean()

    return ms.value_and_grad(loss, tuple(range(len(weights))))(*weights)


def cell_step(loss: Callable[[nn.Cell], nn.Cell], widths: list[int]) -> nn.Cell:
    """A training cell with Adam for a network of nn.Dense layers."""
    parts: list[nn.Cell] = []
    for k, (a, b) in enumerate(itertools.pairwise(widths)):
        parts += [nn.Dense(a, b), *([nn.Tanh()] if k < len(widths) - 2 else [])]
    net = nn.SequentialCell(*parts)
    step = nn.TrainOneStepCell(loss(net), nn.Adam(net.trainable_params(), 1e-3))
    return step.set_train()


class Sequences(nn.Cell):
    """What a recurrent layer gives for each step, beside what it should."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.layer = nn.LSTM(width, hidden)

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return ((self.layer(x)[0] - y) ** 2).mean()


def attention(heads: int, rows: int, dtype: Any) -> tuple[Callable[..., Any], list[Tensor]]:
    """Attention and its gradients, heads of 64, each query before those that come later."""
    q, k, v = (tensor(1, heads, rows, 64).astype(dtype) for _ in range(3))
    later = Tensor(np.triu(np.ones((rows, rows), np.bool_), 1))

    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        y = ops.flash_attention_score(
            q, k, v, heads, attn_mask=later, scalar_value=0.125, input_layout="BNSD"
        )
        return ops.square(y.astype(ms.float32)).mean()

    return ms.value_and_grad(loss, (0, 1, 2)), [q, k, v]


def convolution(images: int, dtype: Any) -> tuple[Callable[..., Any], list[Tensor]]:
    """A layer of 64 to 64 channels on 32 x 32, with ReLU, and its gradients."""
    x, w = (tensor(*s).astype(dtype) for s in ((images, 64, 32, 32), (64, 64, 3, 3)))

    def loss(x: Tensor, w: Tensor) -> Tensor:
        y = ops.relu(ops.conv2d(x, w, pad_mode="pad", padding=1))
        return ops.square(y.astype(ms.float32)).mean()

    return ms.value_and_grad(loss, (0, 1)), [x, w]


def recurrent(steps: int) -> tuple[Callable[..., Any], list[Tensor]]:
    """A recurrent layer's loss and gradients."""
    layer = nn.LSTM(16, 32)

    def loss(x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        return ops.square(layer(x, (h, c))[0]).mean()

    return ms.value_and_grad(loss, (0, 1, 2)), [
        tensor(steps, 4, 16),
        tensor(1, 4, 32),
        tensor(1, 4, 32),
    ]


def experts(count: int, rows: int, width: int) -> tuple[Callable[..., Any], list[Tensor]]:
    """A layer for each of some experts, with rows of its own, and the gradients."""

    def loss(*all_: Tensor) -> Tensor:
        parts = zip(*(all_[k * count : (k + 1) * count] for k in range(3)), strict=True)
        return sum(ops.square(ops.tanh(ops.matmul(x, w) + b)).mean() for x, w, b in parts)  # type: ignore[return-value]

    shapes = [(rows, width), (width, width), (width,)]
    return ms.value_and_grad(loss, tuple(range(3 * count))), [
        tensor(*shape) for shape in shapes for _ in range(count)
    ]


def heads(count: int, length: int, width: int) -> tuple[Callable[..., Any], list[Tensor]]:
    """Attention written head by head, and its gradients."""

    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        total = 0.0
        for h in range(count):
            part = slice(h * width, (h + 1) * width)
            weights = ops.softmax(ops.matmul(q[:, part], k[:, part].T) * width**-0.5, -1)
            total += ops.square(ops.matmul(weights, v[:, part])).mean()
        return total

    return ms.value_and_grad(loss, (0, 1, 2)), [tensor(length, count * width) for _ in range(3)]


def equal_layers(depth: int, rows: int, width: int) -> tuple[Callable[..., Any], list[Tensor]]:
    """The gradients of a network too wide for one kernel, whose weights have the same shape."""
    weights = [tensor(width, width) for _ in range(depth)]
    x = tensor(rows, width)

    def loss(*ws: Tensor) -> Tensor:
        y = x
        for w in ws:
            y = ops.tanh(ops.matmul(y, w))
        return ops.square(y).mean()

    return ms.value_and_grad(loss, tuple(range(depth))), weights


#: Cases with a narrow network that can be one kernel.
NARROW = (
    "PINN training step", "narrow MLP", "Burgers, nn.Dense 8x20", "the same, 10^6 points",
    "Burgers, nn.Dense 4x64",
)  # fmt: skip


def cases(scale: float) -> dict[str, tuple[Callable[..., Any], list[Tensor]]]:
    def n(count: int) -> int:
        return max(16, int(count * scale))

    pinn = layers(2, *[20] * 8, 1)
    mlp = layers(784, 512, 512, 10)
    rows = n(4096)
    side = n(4096)
    a, b = tensor(side, side), tensor(side, side)
    narrow = [tensor(n(100_000), 128), tensor(n(100_000), 10), *layers(128, 128, 128, 10)]
    steps = n(1000)
    lstm = Sequences(64, 128)
    lstm_step = nn.TrainOneStepCell(lstm, nn.Adam(lstm.trainable_params(), 1e-3)).set_train()
    halves = [a.astype(ms.float16), b.astype(ms.float16)]
    edges = n(1_000_000)
    of = Tensor(np.random.default_rng(1).integers(0, edges // 16, edges))
    return {
        # What the memory and the multipliers reach: the other rows' limits.
        "copy": (lambda x: x * 2.0, [tensor(n(100_000_000))]),
        "float32 product": (ops.matmul, [a, b]),
        "float16 product": (ops.matmul, halves),
        "elementwise chain": (chain, [tensor(n(100_000_000))]),
        "its second derivative": (second_derivative, [tensor(n(100_000_000))]),
        "softmax": (lambda x: ops.softmax(x, 1), [tensor(n(16384), 1000)]),
        "layer norm": (
            lambda x, w: ops.layer_norm(x, (1024,), w, w),
            [tensor(n(16384), 1024), tensor(1024)],
        ),
        "Fourier transforms of 4,096": (lambda x: ops.real(ops.fft(x)), [tensor(n(1024), 4096)]),
        "sort": (lambda x: ops.sort(x)[0], [tensor(n(10_000_000))]),
        "largest of messages": (
            lambda x: ops.unsorted_segment_max(x, of, edges // 16),
            [tensor(edges, 64)],
        ),
        "MLP training step": (mlp_step, [tensor(rows, 784), tensor(rows, 10), *mlp]),
        "PINN training step": (pinn_step, [tensor(n(10_000), 2), *pinn]),
        "narrow MLP": (narrow_step, narrow),
        "narrow MLP, bfloat16": (narrow_step, [a.astype(ms.bfloat16) for a in narrow]),
        "narrow MLP, float16": (narrow_step, [a.astype(ms.float16) for a in narrow]),
        "small products: 8 experts": experts(8, n(128), 128),
        "small products: 12 heads": heads(12, n(128), 64),
        "small products: 8 layers": equal_layers(8, n(256), 192),
        "LSTM of 128, sequences": (lstm_step, [tensor(steps, 32, 64), tensor(steps, 32, 128)]),
        "Burgers, nn.Dense 8x20": (cell_step(Burgers, [2, *[20] * 8, 1]), [tensor(n(10_000), 2)]),
        "the same, 10^6 points": (cell_step(Burgers, [2, *[20] * 8, 1]), [tensor(n(1_000_000), 2)]),
        "Burgers, nn.Dense 4x64": (cell_step(Burgers, [2, *[64] * 4, 1]), [tensor(n(10_000), 2)]),
        "attention, float32": attention(16, n(2048), ms.float32),
        "attention, bfloat16": attention(16, n(2048), ms.bfloat16),
        "convolution, float32": convolution(max(2, int(128 * scale)), ms.float32),
        "convolution, float16": convolution(max(2, int(128 * scale)), ms.float16),
        "Burgers, nn.Dense 4x128": (cell_step(Burgers, [2, *[128] * 4, 1]), [tensor(n(10_000), 2)]),
    }


def batches(scale: float) -> tuple[nn.Cell, list[list[Tensor]]]:
    """A step whose data are in another place each time."""
    rows = max(16, int(4096 * scale))
    step = cell_step(lambda net: nn.WithLossCell(net, nn.MSELoss()), [784, 512, 512, 10])
    return step, [[tensor(rows, 784), tensor(rows, 10)] for _ in range(10)]


def copy_bandwidth(elements: int) -> float | None:
    """Gigabytes a second, read and written, of the driver's copy by device events; None: no CuPy."""
    try:
        import cupy
    except ImportError:
        return None
    source, target = (cupy.empty(elements, cupy.float32) for _ in range(2))
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    found = []
    for _ in range(9):
        begin.record()
        for _ in range(10):
            target.data.copy_from_device_async(source.data, source.nbytes, cupy.cuda.Stream.null)
        end.record()
        end.synchronize()
        found.append(10 * 2 * source.nbytes / cupy.cuda.get_elapsed_time(begin, end) / 1e6)
    return statistics.median(found[2:])


def wait(result: Any) -> None:
    leaf = tree.leaves(result)[0]
    (leaf.sum() if leaf.ndim else leaf).asnumpy()


def seconds(fn: Callable[..., Any], data: list[list[Tensor]], repeats: int) -> float:
    """The median time of a call, with the data in turn, in runs of as many as fit into a tenth of a
    second."""
    turns = itertools.cycle(data)
    for _ in range(4 if len(data) == 1 else 2 * len(data)):
        wait(fn(*next(turns)))
    start = time.perf_counter()
    wait(fn(*next(turns)))
    inner = max(1, min(100, int(0.1 / (time.perf_counter() - start))))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(inner):
            result = fn(*next(turns))
        wait(result)
        times.append((time.perf_counter() - start) / inner)
    return statistics.median(times)


def measured(fn: Callable[..., Any], data: list[list[Tensor]], repeats: int) -> dict[str, Any]:
    plan = cuda.plan_of(fn, *data[0])
    took = seconds(ms.jit(lambda *a: fn(*a)), data, repeats)
    return {
        "ms": took * 1e3,
        "launches": plan.launches,
        "products": plan.products,
        "convolutions": plan.convolutions,
        "gigabytes_per_second": plan.bytes_moved / took / 1e9,
        "gigaflops": sum(s["flops"] for s in plan.steps) / took / 1e9,
    }


def written(record: dict[str, Any], file: Path) -> None:
    """Whole at any time, whenever the process is ended."""
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps(record, indent=2) + "\n")
    beside.replace(file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write all results to this file")
    parser.add_argument("--tests", help="a JUnit file of the tests that were run")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--scale", type=float, default=1.0, help="of the problems' sizes")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--no-tiles", action="store_true", help="narrow networks by products")
    parser.add_argument("--no-groups", action="store_true", help="a call for each small product")
    parser.add_argument("--cases", nargs="*", default=[], help="parts of the names of cases")
    options = parser.parse_args()
    _core.weigh_cuda_plans(tiles=False if options.no_tiles else None, groups=not options.no_groups)
    if not options.cpu:
        ms.set_context(device_target="GPU")
    record: dict[str, Any] = {"machine": platform.machine(), "scale": options.scale}
    record |= {"tiles": not options.no_tiles, "groups": not options.no_groups}
    record |= {
        "tuned": os.environ.get("GRADCELL_CUDA_TUNE") != "0",
        "cudnn": os.environ.get("GRADCELL_CUDNN") != "0",
    }
    record["cases"] = {}
    if not options.cpu:
        driver = _core.cuda_driver_info()
        record["gpu"] = driver["devices"][0]["name"]
        record["driver"], record["nvrtc"] = driver["version"], _core.nvrtc_version()
    if options.tests:
        suite = ElementTree.parse(options.tests).getroot().find("testsuite")
        assert suite is not None
        counts = ("tests", "failures", "errors", "skipped")
        record["tests"] = {k: int(suite.attrib[k]) for k in counts}
        record["failed"] = [
            c.attrib["name"]
            for c in suite.iter("testcase")
            if c.find("failure") is not None or c.find("error") is not None
        ]
    print(f"{record.get('gpu', 'CPU')}: {record.get('tests', 'tests not run')}")
    if not options.cpu:
        record["copy_gigabytes_per_second"] = copy_bandwidth(max(16, int(1e8 * options.scale)))
        print(f"the driver's copy: {record['copy_gigabytes_per_second']} GB/s")
    head = ("case", "ms", "launches", "products", "convolutions", "GB/s", "GFLOP/s")
    print("{:26} {:>10} {:>9} {:>9} {:>13} {:>9} {:>9}".format(*head))
    rows = {name: (fn, [arguments]) for name, (fn, arguments) in cases(options.scale).items()}
    rows["MLP, batches in turn"] = batches(options.scale)
    if not options.cpu:
        rows["TF32 product"] = rows["float32 product"]
        for name in ("MLP training step", "narrow MLP", "Burgers, nn.Dense 4x64"):
            rows[f"{name}, TF32"] = rows[name]
    for name, (fn, data) in rows.items():
        if options.cases and not any(part in name for part in options.cases):
            continue
        if not options.cpu:
            ms.set_context(gpu_config={"matmul_allow_tf32": "TF32" in name})
        try:
            row = measured(fn, data, options.repeats)
            print(
                "{:26} {:10.3f} {:9} {:9} {:13} {:9.1f} {:9.1f}".format(name, *row.values()),
                flush=True,
            )
        except Exception as error:  # the next case may say more
            row = {"error": f"{type(error).__name__}: {error}"}
            print(f"{name:26} {row['error']}", flush=True)
        record["cases"][name] = row
        if options.json:
            written(record, Path(options.json))
    return int(any("error" in row for row in record["cases"].values()))


if __name__ == "__main__":
    sys.exit(main())
