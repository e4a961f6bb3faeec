"""Random programs of all dtypes over what engines run in ways of their own: rows, lines so wide that a region
computes them alone, blocks of images, bands, loops, windows, orders, moves, several products in a sum.

A program is a function of tensors that draws its steps as it runs, by shapes and dtypes alone, so that it is
the same program for numbers, records and examples. What it ought to give is what graph_interpreter.py makes
of its graph; whether a derivative is right, what finite differences of the graph that it is of say.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from graph_interpreter import Graph, Value, difference, numbers_of, record

import gradcell as gc
from gradcell import Tensor, _core, ops
from gradcell.ops.control.loops import loop
from gradcell.ops.networks.attention import attend

core = _core.ops
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
LARGEST = 3000  # elements of a result
ROWS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65, 130, 257)
FEATURES = (1, 2, 3, 4, 5, 8, 9, 16, 17, 33)

Step = Callable[["Run"], Any]
STEPS: dict[str, Step] = {}


def step(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function of a run a step; of several names, one for each, which it is told."""

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            STEPS[name] = (lambda run, name=name: fn(run, name)) if len(names) > 1 else fn
        return fn

    return add


class Run:
    """One execution: what was computed so far, and the same draws each time."""

    def __init__(self, seed: int, tensors: list[Tensor]) -> None:
        self.draw = random.Random(seed)
        self.floats = list(tensors)
        self.integers: list[Tensor] = []
        self.read: set[int] = set()  # ids of what a step has taken
        self.dtype = tensors[0].dtype

    def chance(self, p: float) -> bool:
        return self.draw.random() < p

    def x(self, rank: int = 0, fits: Callable[[Tensor], bool] = lambda t: True) -> Tensor:
        """A float tensor, rather a new one, of at least so many dimensions."""
        found = [t for t in self.floats if t.ndim >= rank and fits(t)]
        if not found:
            t = self.taken(self.floats[-1])
            return t.reshape((1,) * max(0, rank - t.ndim) + tuple(t.shape)) if rank else t
        return self.taken(found[-1] if self.chance(0.6) else self.draw.choice(found))

    def taken(self, t: Tensor) -> Tensor:
        self.read.add(id(t))
        return t

    def unread(self) -> list[Tensor]:
        """What a program gives: whatever no step has taken."""
        return [t for t in self.floats + self.integers if id(t) not in self.read]

    def like(self, t: Tensor) -> Tensor:
        """One that broadcasts with t."""

        def fits(o: Tensor) -> bool:
            try:
                return math.prod(np.broadcast_shapes(tuple(t.shape), tuple(o.shape))) <= LARGEST
            except ValueError:
                return False

        found = [o for o in self.floats if fits(o) and o is not t]
        return (
            self.taken(self.draw.choice(found)) if found else self.constant((t.shape or (1,))[-1:])
        )

    def constant(self, shape: Any, dtype: Any = None, size: float = 1.0) -> Tensor:
        rng = np.random.default_rng(self.draw.getrandbits(30))
        numbers = Tensor(rng.uniform(-size, size, tuple(shape)).astype(np.float32))
        return numbers.astype(dtype or self.dtype)

    def axis(self, t: Tensor) -> int:
        return self.draw.randrange(t.ndim)

    def axes(self, t: Tensor) -> tuple[int, ...]:
        chosen = [i for i in range(t.ndim) if self.chance(0.5)]
        return tuple(chosen or [self.axis(t)]) if t.ndim else ()

    def keep(self, y: Any) -> None:
        for t in y if isinstance(y, (tuple, list)) else (y,):
            if math.prod(t.shape) > LARGEST or math.prod(t.shape) == 0:
                continue
            (self.floats if t.dtype.is_floating else self.integers).append(t)


# Elementwise -------------------------------------------------------------------------------------

SMOOTH: dict[str, Callable[[Any], Any]] = {
    "sin": ops.sin, "cos": ops.cos, "tanh": ops.tanh, "sigmoid": ops.sigmoid, "erf": ops.erf,
    "atan": ops.atan, "asinh": ops.asinh, "softplus": ops.softplus, "silu": ops.silu, "gelu": ops.gelu,
    "exp": lambda x: ops.exp(-x * x), "expm1": lambda x: ops.expm1(0.3 * ops.sin(x)),
    "sqrt": lambda x: ops.sqrt(x * x + 0.5), "rsqrt": lambda x: ops.rsqrt(x * x + 0.5),
    "log": lambda x: ops.log(x * x + 0.5), "log1p": lambda x: ops.log1p(x * x),
    "reciprocal": lambda x: 1 / (1 + x * x), "square": lambda x: 0.25 * x * x,
    "scale": lambda x: x * 0.75 - 0.25,
    "cube": lambda x: (0.5 * x) ** 3, "power": lambda x: (ops.abs(x) + 0.5) ** 1.7, "neg": lambda x: -x,
    "xlogy": lambda x: ops.xlogy(x * x + 0.1, x * x + 0.2), "mish": ops.mish,
}  # fmt: skip
KINKED: dict[str, Callable[[Any], Any]] = {
    "abs": ops.abs, "relu": ops.relu, "hswish": ops.hardswish, "sign": lambda x: ops.sign(x) * 0.5,
    "floor": lambda x: ops.floor(1.5 * x), "round": lambda x: ops.round(1.5 * x),
    "trunc": lambda x: ops.trunc(2 * x),
    "clip": lambda x: ops.clamp(x, -0.7, 0.8), "leaky": lambda x: ops.leaky_relu(x, 0.1), "elu": ops.elu,
    "mod": lambda x: x % 0.75, "fraction": lambda x: x - ops.floor(x),
}  # fmt: skip


@step(*SMOOTH)
def smooth(run: Run, name: str) -> Any:
    return SMOOTH[name](run.x())


@step(*KINKED)
def kinked(run: Run, name: str) -> Any:
    return KINKED[name](run.x())


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - 0.5 * y, "mul": lambda x, y: 0.5 * x * y,
    "div": lambda x, y: x / (1 + y * y), "maximum": ops.maximum, "minimum": ops.minimum,
    "atan2": lambda x, y: ops.atan2(x, y * y + 0.5), "hypot": lambda x, y: ops.sqrt(x * x + y * y + 0.1),
    "where": lambda x, y: ops.where(x > y, x, 0.5 * y), "pow": lambda x, y: (ops.abs(x) + 0.5) ** ops.sin(y),
    "chain": lambda x, y: (x * y + y) * 0.5 - x * 0.25, "logaddexp": ops.logaddexp,
    "choice": lambda x, y: ops.where(ops.logical_and(x > 0, y < 0.3), x * y, x),
}  # fmt: skip


@step(*BINARY)
def binary(run: Run, name: str) -> Any:
    x = run.x()
    y = run.like(x)
    return BINARY[name](x, y) if run.chance(0.5) else BINARY[name](y, x)


@step("mixed")
def mixed(run: Run) -> Any:
    """Through another dtype and back."""
    x = run.x()
    other = getattr(gc, run.draw.choice(FLOATS))
    return ops.tanh(x.astype(other) * 0.7).astype(run.dtype)


# Sums --------------------------------------------------------------------------------------------


@step("sum", "mean", "max", "min", "prod", "logsumexp", "var")
def reduction(run: Run, name: str) -> Any:
    x = run.x(1)
    axes, keep = run.axes(x), run.chance(0.5)
    if name == "sum":
        return ops.sum(x, axes, keep) * (1 / math.sqrt(math.prod(x.shape[a] for a in axes)))
    if name == "mean":
        return ops.mean(x, axes, keep)
    if name == "max":
        return ops.amax(x, axes, keep)
    if name == "min":
        return ops.amin(x, axes, keep)
    if name == "prod":
        return ops.prod(1 + 0.1 * ops.sin(x), axes[0], keep)
    if name == "logsumexp":
        return ops.logsumexp(x, axes, keep)
    center = x - ops.mean(x, axes, True)
    return ops.mean(center * center, axes, keep)


@step("softmax", "log_softmax", "layer_norm", "center", "divide")
def normed(run: Run, name: str) -> Any:
    x = run.x(1)
    axis = run.axis(x) if run.chance(0.4) else -1
    if name == "softmax":
        return ops.softmax(x, axis)
    if name == "log_softmax":
        return ops.log_softmax(x, axis)
    if name == "center":
        return x - ops.mean(x, axis, True)
    if name == "divide":
        return x / (1 + ops.sum(ops.abs(x), axis, True))
    center = x - ops.mean(x, axis, True)
    return center * ops.rsqrt(ops.mean(center * center, axis, True) + 0.1)


@step("cumsum", "cumprod", "cummax", "recur")
def scanned(run: Run, name: str) -> Any:
    x = run.x(1)
    axis = run.axis(x)
    if name == "cumsum":
        return ops.cumsum(x, axis) * (1 / math.sqrt(x.shape[axis]))
    if name == "cumprod":
        return ops.cumprod(1 + 0.05 * ops.sin(x), axis)
    if name == "cummax":
        return ops.cummax(x, axis)[0]
    return ops.linear_recurrence(0.8 * ops.sin(x), x * 0.3, axis)


# Products ----------------------------------------------------------------------------------------


@step("dense", "layer", "outer", "gram", "pairs", "batched", "vector", "einsum", "transposed")
def product(run: Run, name: str) -> Any:
    x = run.x(2, lambda t: t.ndim <= 3)
    k = x.shape[-1]
    n = run.draw.choice(FEATURES)
    scale = 1 / math.sqrt(k)
    if name == "dense":
        return ops.matmul(x, run.constant((k, n))) * scale
    if name == "layer":
        return ops.tanh(ops.matmul(x, run.constant((k, n), size=scale)) + run.constant((n,)))
    if name == "outer":
        return ops.matmul(x, x.swapaxes(-1, -2)) * scale
    if name == "gram":
        return ops.matmul(x.swapaxes(-1, -2), x) * (1 / math.sqrt(x.shape[-2]))
    if name == "pairs":
        y = run.like(x)
        y = ops.broadcast_to(y, tuple(x.shape)) if y.ndim <= x.ndim and same(y, x) else x * x
        w = run.constant((k, n))
        return (
            ops.matmul(x, w) + ops.matmul(y, run.constant((k, n))) - ops.matmul(ops.sin(x), w)
        ) * scale
    if name == "batched":
        b = ops.stack([x, ops.sin(x)])
        return ops.matmul(b, run.constant((k, n))) * scale
    if name == "vector":
        return ops.matmul(x, run.constant((k,))) * scale
    if name == "einsum":
        return ops.einsum("...ij,kj->...ki", x, run.constant((n, k))) * scale
    return ops.matmul(x.swapaxes(-1, -2), run.constant((x.shape[-2], n))) * (
        1 / math.sqrt(x.shape[-2])
    )


def same(y: Tensor, x: Tensor) -> bool:
    try:
        return np.broadcast_shapes(tuple(y.shape), tuple(x.shape)) == tuple(x.shape)
    except ValueError:
        return False


# Moves -------------------------------------------------------------------------------------------


@step("roll", "pad", "flip", "transpose", "reshape", "slice", "reverse", "concat", "stack", "halves", "tile",
      "spread", "triangle", "diagonal", "swap", "one row", "interleave")  # fmt: skip
def move(run: Run, name: str) -> Any:
    x = run.x(2 if name in ("triangle", "diagonal", "swap") else 1)
    axis = run.axis(x)
    n = x.shape[axis]
    if name == "roll":
        return ops.roll(x, run.draw.randrange(-n, n + 1), axis)
    if name == "pad":
        wide = [(0, 0)] * x.ndim
        wide[axis] = (run.draw.randrange(3), run.draw.randrange(3))
        return ops.pad(
            x, [w for pair in wide[::-1] for w in pair], "constant", 0.5 if run.chance(0.5) else 0
        )
    if name == "flip":
        return ops.flip(x, (axis,))
    if name == "transpose":
        order = list(range(x.ndim))
        run.draw.shuffle(order)
        return ops.transpose(x, tuple(order))
    if name == "reshape":
        size = math.prod(x.shape)
        parts = [d for d in (2, 3, 4, 5, 8, 16, 64) if size % d == 0 and d < size]
        return (
            x.reshape((-1, run.draw.choice(parts))) if parts and run.chance(0.7) else x.reshape(-1)
        )
    if name in ("slice", "reverse"):
        start, stop, stride = run.draw.randrange(n), n, run.draw.choice((1, 1, 2, 3))
        index: list[Any] = [slice(None)] * x.ndim
        index[axis] = slice(start, stop, stride) if name == "slice" else slice(None, None, -stride)
        return x[tuple(index)]
    if name == "concat":
        rest = tuple(x.shape[:axis]) + tuple(x.shape[axis + 1 :])

        def fits(t: Tensor) -> bool:
            return t.ndim == x.ndim and tuple(t.shape[:axis]) + tuple(t.shape[axis + 1 :]) == rest

        return ops.concat([x, run.x(1, fits), 0.5 * x], axis)
    if name == "stack":
        return ops.stack([x, ops.sin(x)], run.draw.randrange(x.ndim + 1))
    if name == "halves":
        at = n // 2
        if not at:
            return -x
        a, b = ops.narrow(x, axis, 0, at), ops.narrow(x, axis, n - at, at)
        return a * b * 0.5 + ops.sin(a)
    if name == "tile":
        return ops.tile(x, tuple(2 if i == axis else 1 for i in range(x.ndim)))
    if name == "spread":
        return ops.broadcast_to(ops.narrow(x, axis, 0, 1), tuple(x.shape)) * x
    if name == "triangle":
        return ops.tril(x) + 0.5 * ops.triu(x, 1)
    if name == "diagonal":
        return ops.diagonal(x, 0, 0, 1)
    if name == "swap":
        return x.swapaxes(0, 1) * 1.5
    if name == "one row":
        return ops.narrow(x, axis, run.draw.randrange(n), 1).squeeze(axis)
    return ops.repeat_interleave(x, 2, axis)


@step("differences", "stencil", "laplacian")
def stencil(run: Run, name: str) -> Any:
    """Bands: neighbours along an axis."""
    x = run.x(1, lambda t: t.ndim >= 1 and max(t.shape) >= 4)
    axis = max(range(x.ndim), key=lambda i: x.shape[i])
    n = x.shape[axis]
    if n < 4:
        return ops.sin(x)

    def part(begin: int, count: int) -> Any:
        return ops.narrow(x, axis, begin, count)

    if name == "differences":
        return part(1, n - 1) - part(0, n - 1)
    inner = part(2, n - 2) - 2 * part(1, n - 2) + part(0, n - 2)
    if name == "stencil":
        return ops.tanh(inner) * part(1, n - 2)
    wide = [0] * (2 * x.ndim)
    wide[2 * (x.ndim - 1 - axis)] = wide[2 * (x.ndim - 1 - axis) + 1] = 1
    return ops.pad(inner, wide) * 0.5 + x


# Indices -----------------------------------------------------------------------------------------


def indices(run: Run, count: int, size: int, shape: Any = None) -> Tensor:
    """Places below a size: made of the program's integers, or given."""
    if run.integers and run.chance(0.4):
        t = run.taken(run.draw.choice(run.integers))
        if t.dtype != gc.bool_:
            flat = ops.tile(t.reshape(-1).astype(gc.int32), (-(-count // math.prod(t.shape)),))[
                :count
            ]
            return ops.abs(flat % size).reshape(shape or (count,))
    rng = np.random.default_rng(run.draw.getrandbits(30))
    return Tensor(
        rng.integers(-size if run.chance(0.3) else 0, size, count).astype(np.int32)
    ).reshape(shape or (count,))


@step("gather", "along", "scatter", "segments", "embedding", "put")
def indexed(run: Run, name: str) -> Any:
    x = run.x(1)
    axis = run.axis(x)
    n = x.shape[axis]
    if name in ("gather", "embedding"):
        count = run.draw.choice((1, 2, 5, 9))
        return (
            ops.gather(x, indices(run, count, n), 0 if name == "embedding" else axis)
            if name == "gather"
            else (ops.gather(x, indices(run, count, x.shape[0]), 0))
        )
    if name == "along":
        at = indices(run, math.prod(x.shape), n, tuple(x.shape))
        return ops.gather_elements(x, axis, ops.where(at < 0, at + n, at))
    m = x.shape[0]
    at = indices(run, m, m)
    at = ops.where(at < 0, at + m, at)
    if name == "segments":
        return ops.unsorted_segment_sum(x, at, m) * 0.5
    if name == "put":
        return ops.tensor_scatter_update(x, at.reshape(-1, 1), ops.sin(x))
    return ops.tensor_scatter_add(x, at.reshape(-1, 1), 0.5 * ops.cos(x))


@step("sort", "argsort", "topk", "search", "median", "argmax")
def ordered(run: Run, name: str) -> Any:
    x = run.x(1)
    if name == "sort":
        return ops.sort(x, run.axis(x), run.chance(0.5))[0]
    if name == "argsort":
        return ops.argsort(x, -1)
    if name == "topk":
        return ops.topk(x, run.draw.randrange(1, x.shape[-1] + 1))[0]
    if name == "median":
        return ops.median(x, -1)[0]
    if name == "argmax":
        return ops.argmax(x, run.axis(x))
    y = run.x(1)
    return ops.searchsorted(ops.sort(x.reshape(-1))[0], y)


# Images ------------------------------------------------------------------------------------------


def image(run: Run, rank: int = 4) -> Tensor:
    def small(t: Tensor) -> bool:
        return t.ndim == rank and min(t.shape[2:]) >= 3

    found = [t for t in run.floats if small(t)]
    if found:
        return run.taken(found[-1])
    side = run.draw.choice((4, 5, 7, 9))
    shape = (
        run.draw.choice((1, 2)),
        run.draw.choice((1, 2, 4)),
        *(side + i for i in range(rank - 2)),
    )
    flat = run.taken(run.floats[-1]).reshape(-1)
    count = math.prod(shape)
    times = -(-count // flat.shape[0])
    if times * flat.shape[0] > 3 * LARGEST:
        return run.constant(shape)
    return ops.tile(flat, (times,))[:count].reshape(shape)


@step("conv2d", "conv1d", "up", "max pool", "mean pool", "depthwise", "batch norm", "channels")
def windows(run: Run, name: str) -> Any:
    x = image(run, 3 if name == "conv1d" else 4)
    c = x.shape[1]
    k = run.draw.choice((1, 2, 3))
    stride, dilation = run.draw.choice((1, 1, 2)), run.draw.choice((1, 1, 2)) if k < 3 else 1
    o = run.draw.choice((1, 2, 3, 8))
    scale = 1 / math.sqrt(c * k * k)
    if name == "conv2d":
        groups = 2 if c % 2 == 0 and run.chance(0.3) else 1
        w = run.constant((groups * o, c // groups, k, k), size=scale)
        return ops.conv2d(
            x, w, None, stride, run.draw.choice(("valid", "same")), 0, dilation, groups
        )
    if name == "depthwise":
        return ops.conv2d(x, run.constant((c, 1, k, k)), None, stride, "same", 0, 1, c)
    if name == "conv1d":
        return ops.conv1d(
            x, run.constant((o, c, k), size=scale), None, stride, "same", 0, dilation, 1
        )
    if name == "up":
        y = ops.conv2d(x, run.constant((o, c, 2, 2), size=scale), None, 1, "valid")
        return ops.mean(y, (2, 3), True) * ops.mean(x, 1, True)
    if name == "max pool":
        return ops.max_pool2d(x, k, stride)
    if name == "mean pool":
        return ops.avg_pool2d(x, k, stride)
    if name == "batch norm":
        center = x - ops.mean(x, (0, 2, 3), True)
        return center * ops.rsqrt(ops.mean(center * center, (0, 2, 3), True) + 0.1)
    return x * run.constant((1, c, 1, 1)) + run.constant((c, 1, 1))


@step("attention", "written attention", "dropped attention")
def attention(run: Run, name: str) -> Any:
    x = run.x(2, lambda t: 2 <= t.ndim <= 3 and t.shape[-2] <= 40)
    if x.shape[-2] > 40 or x.ndim > 3:
        return ops.cos(x)
    q, k, v = x * 0.5, ops.sin(x), run.like(x) * ops.ones_like(x)
    if v.shape != x.shape:
        v = ops.cos(x)
    n = x.shape[-2]
    if name == "attention":
        mask = None
        if run.chance(0.5):
            mask = run.constant((1,) * (x.ndim - 2) + (n, n)) > 0.5 if run.chance(0.5) else run.constant(
                (1,) * (x.ndim - 2) + (n, n))  # fmt: skip
        return attend(q, k, v, mask, ahead=0 if run.chance(0.4) else 1 << 60)
    s = ops.matmul(q, k.swapaxes(-1, -2))
    if name == "dropped attention":
        kept = random_numbers(run, tuple(s.shape)) < 0.7
        return ops.matmul(ops.where(kept, ops.softmax(s, -1) / 0.7, 0.0), v)
    return ops.matmul(ops.softmax(s, -1), v)


def random_numbers(run: Run, shape: tuple[int, ...]) -> Tensor:
    state = Tensor(np.array([run.draw.getrandbits(40), run.draw.getrandbits(20)], np.int64))
    return core.random_uniform(state, list(shape))


@step("dropout", "noise")
def drawn(run: Run, name: str) -> Any:
    x = run.x()
    u = random_numbers(run, tuple(x.shape))
    if name == "dropout":
        return ops.where(u < 0.8, x * 1.25, 0.0)
    return x + (u - 0.5).astype(x.dtype)


# Loops -------------------------------------------------------------------------------------------


@step(
    "dense loop",
    "elements loop",
    "scan loop",
    "count loop",
    "backward loop",
    "moves loop",
    "mesh loop",
)
def loops(run: Run, name: str) -> Any:
    if name in ("moves loop", "mesh loop"):
        return moved_in_steps(run, run.x(1 if name == "moves loop" else 2))
    x = run.x(2, lambda t: t.ndim == 2)
    if x.ndim != 2:
        x = x.reshape((-1, x.shape[-1]))
    rows, k = x.shape
    if name == "dense loop":
        w = run.constant((k, k), size=1 / math.sqrt(k))
        return loop(lambda s, _: ([ops.tanh(ops.matmul(s[0], w)) + 0.1 * x], [s[0]]), [x], [], 3)[
            0
        ][0]
    if name == "elements loop":
        a = run.like(x)
        a = a if same(a, x) else ops.sin(x)
        last, kept = loop(lambda s, _: ([s[0] * 0.5 + ops.sin(a)], [s[0] * a]), [x], [], 4)
        return [last[0], kept[0].reshape((-1, kept[0].shape[-1]))]
    if rows > 40:
        return ops.sin(x)
    if name == "count loop":
        return ops.ForiLoop()(
            0, 3, lambda i, c: ops.tanh(0.5 * c + x * 0.2) + 0.1 * x, x, unroll=run.chance(0.3)
        )
    first = run.constant((k,)) if run.chance(0.5) else x[0]
    last, kept = loop(
        lambda s, t: ([ops.sin(s[0] + t[0])], [s[0] * t[0]]),
        [first],
        [x],
        rows,
        reverse=name == "backward loop",
    )
    return [last[0], kept[0]]


def moved_in_steps(run: Run, x: Tensor) -> Any:
    """A loop whose body moves elements about, adds up and spreads: one row of each tensor."""
    axis = run.axis(x)
    n = x.shape[axis]

    def part(y: Tensor, begin: int, end: int, step: int = 1) -> Tensor:
        return y[(slice(None),) * axis + (slice(begin, end, step),)]

    def padded(y: Tensor, before: int, after: int) -> Tensor:
        wide = [(0, 0)] * y.ndim
        wide[axis] = (before, after)
        return ops.pad(y, [w for pair in wide[::-1] for w in pair])

    constant = run.constant((n,) + (1,) * (x.ndim - 1 - axis))
    moves: list[Callable[[Tensor], Tensor]] = [
        lambda y: ops.roll(y, 1, axis),
        lambda y: ops.flip(y, (axis,)),
        lambda y: padded(part(y, 1, n), 0, 1) - padded(part(y, 0, n - 1), 1, 0),
        lambda y: ops.concat([part(y, n // 2, n), part(y, 0, n // 2)], axis),
        lambda y: ops.concat([part(y, 0, n, 2), part(y, 1, n, 2)], axis) if n > 1 else y,
        lambda y: y - ops.mean(y, axis, True),
        lambda y: y * ops.sum(ops.sin(y)) * (1 / math.prod(x.shape)),
        lambda y: y + 0.3 * ops.max(y, axis, keepdims=True)[0],
        lambda y: ops.where(y > 0, y, 0.5 * ops.roll(y, -1, axis)),
        lambda y: y * constant,
        lambda y: y * part(y, 0, 1),
        lambda y: ops.transpose(y, tuple(range(y.ndim))[::-1]).reshape(tuple(y.shape)),
    ]
    chosen = [run.draw.choice(moves) for _ in range(run.draw.randrange(2, 5))]

    def body(s: list[Tensor], t: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        y = s[0] * t[0]
        for move in chosen:
            y = move(y)
        return [ops.tanh(0.7 * y + 0.2 * x)], [y]

    steps = run.draw.randrange(1, 8)
    each = run.constant((steps,))
    last, kept = loop(body, [x], [each], steps, reverse=run.chance(0.3))
    return [last[0], kept[0].reshape(-1)]


# Matrices, complex numbers ------------------------------------------------------------------------


@step("solve", "inverse", "determinant", "cholesky", "spectrum", "complex")
def matrices(run: Run, name: str) -> Any:
    wide = gc.float64 if run.dtype == gc.float64 else gc.float32
    if name in ("spectrum", "complex"):
        x = run.x(1).astype(wide)
        if name == "spectrum":
            z = ops.fft(x)
            return ops.real(ops.ifft(z * ops.conj(z) * (1 / x.shape[-1]))).astype(run.dtype)
        z = ops.Complex()(x, ops.sin(x))
        return (ops.real(z * z) + ops.imag(ops.exp(0.3 * z))).astype(run.dtype)
    flat = ops.tile(run.x().reshape(-1), (16,))[:16].reshape((4, 4)).astype(wide)
    a = 0.3 * ops.tanh(flat) + Tensor(np.eye(4) * 2.5).astype(wide)
    if name == "inverse":
        return ops.inverse(a).astype(run.dtype)
    if name == "determinant":
        return (0.05 * ops.det(a)).astype(run.dtype).reshape(1)
    if name == "solve":
        return ops.matrix_solve(a, ops.sin(flat)).astype(run.dtype)
    return ops.cholesky(0.2 * ops.matmul(a, a.T) + Tensor(np.eye(4)).astype(wide)).astype(run.dtype)


# Integers ----------------------------------------------------------------------------------------


def whole(run: Run) -> Tensor:
    """Integers of some dtype, of the program's floats if it has none."""
    if run.integers and run.chance(0.6):
        return run.taken(run.draw.choice(run.integers))
    dtype = run.draw.choice(INTEGERS)
    x = run.x()
    shifted = ops.abs(x) * 7 if dtype[0] == "u" else x * 7
    return ops.clamp(shifted, 0 if dtype[0] == "u" else -100, 100).astype(getattr(gc, dtype))


INTEGER_STEPS: dict[str, Callable[[Any], Any]] = {
    "int add": lambda t: t + t, "int mul": lambda t: t * t, "int neg": lambda t: 3 - t,
    "int mod": lambda t: t % 5,
    "int div": lambda t: t // 3, "int compare": lambda t: t > 2, "int equal": lambda t: t == t.flatten()[0],
    "int power": lambda t: t**3, "int max": lambda t: ops.maximum(t, 2 * t), "int abs": lambda t: ops.abs(t),
    "int sum": lambda t: ops.cumsum(t.reshape(-1), 0), "int and": lambda t: ops.bitwise_and(t, t + 3),
    "int where": lambda t: ops.where(t > 1, t, t + 7), "int flip": lambda t: ops.flip(t.reshape(-1), (0,)),
    "int best": lambda t: ops.amax(t.reshape(-1), 0),
    "int sort": lambda t: ops.sort(t.reshape(-1).astype(gc.int32))[0],
    "int square": lambda t: ops.square(t), "int fmod": lambda t: ops.fmod(t, 4),
    "int sign": lambda t: ops.sign(t),
}  # fmt: skip


@step(*INTEGER_STEPS)
def integers(run: Run, name: str) -> Any:
    t = whole(run)
    if t.dtype == gc.bool_:
        t = t.astype(getattr(gc, run.draw.choice(INTEGERS)))
    return INTEGER_STEPS[name](t)


@step("int cast", "int back", "logic", "int float")
def converted(run: Run, name: str) -> Any:
    t = whole(run)
    if name == "int cast":
        return t.astype(getattr(gc, run.draw.choice((*INTEGERS, "bool_"))))
    if name == "logic":
        b = t > 1
        return ops.logical_xor(b, ops.logical_not(b if run.chance(0.5) else t < 5))
    if name == "int back":
        return ops.sin(t.astype(run.dtype))
    return t.astype(gc.float32).astype(run.dtype) * 0.125


NAMES = list(STEPS)


class Program:
    """Called with tensors it gives a list of results, the float ones first; `loss` a number of them."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.seed = seed
        self.dtype = draw.choices(FLOATS, (0.3, 0.25, 0.3, 0.15))[0]
        self.names = [draw.choice(NAMES) for _ in range(draw.randrange(2, 8))]
        rows, features = draw.choice(ROWS), draw.choice(FEATURES)
        pool: list[list[tuple[int, ...]]] = [
            [(rows, features), (features,)],
            [(rows, features), (rows, 1), (rows, features)],
            [(draw.choice((2, 3, 5)), draw.choice((300, 517, 1100)))],
            [(draw.choice((1, 2)), draw.choice((1, 2, 4)), draw.choice((5, 8)), draw.choice((5, 9)))],
            [(3, draw.choice((7, 33, 70)), draw.choice((2, 5)))],
            [(draw.choice((2, 4)), 3, 4), (3, 4)],
            [(draw.choice((5, 64, 300)),)],
            [(rows, features), (features, features)],
        ]  # fmt: skip
        self.shapes = draw.choice(pool)
        rng = np.random.default_rng(seed)
        self.inputs = [rng.uniform(-1.5, 1.5, s) for s in self.shapes]
        self.direction = [rng.uniform(-1, 1, s) for s in self.shapes]

    def tensors(self, arrays: Any = None) -> list[Tensor]:
        dtype = getattr(gc, self.dtype)
        return [
            Tensor(np.asarray(a, np.float64)).astype(dtype)
            for a in (self.inputs if arrays is None else arrays)
        ]

    def __call__(self, *xs: Tensor) -> list[Tensor]:
        run = Run(self.seed, list(xs))
        for name in self.names:
            run.keep(STEPS[name](run))
        given = {id(x) for x in xs}
        return [y for y in run.unread() if id(y) not in given] or [xs[0] * 1.0]

    def loss(self, *xs: Tensor) -> Tensor:
        floats = [y for y in self(*xs) if y.dtype.is_floating] or [xs[0] * xs[0]]
        total = None
        for k, y in enumerate(floats):
            rng = np.random.default_rng(self.seed + k)
            weights = Tensor(rng.uniform(-1, 1, tuple(y.shape)).astype(np.float32)).astype(y.dtype)
            part = ops.mean(y * weights) if y.ndim else y * weights
            total = part if total is None else total + part
        assert total is not None
        return total

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.dtype} {self.shapes}: {', '.join(self.names)}"


# Checks ------------------------------------------------------------------------------------------


class Wrong(AssertionError):
    """An engine, or a derivative, is not what it has to be."""


def check(seed: int) -> Counter[str]:
    """Compares a program under its transforms; what was asked, and what could not be. Raises Wrong."""
    return Check(Program(seed)).run()


TURNS = ("values", "grad", "grad of grad", "jvp", "vmap", "vmap of grad")


class Check:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.counts: Counter[str] = Counter()
        self.xs = program.tensors()
        self.vs = program.tensors(program.direction)
        self.positions = tuple(range(len(self.xs)))

    def run(self) -> Counter[str]:
        p, seed = self.program, self.program.seed
        turn, jit = TURNS[seed % len(TURNS)], seed % 4 < 2
        if turn == "values":
            self.agree(turn, p, *self.xs)
            self.agree(turn, p, *self.xs, jit=True)
        elif turn == "grad":
            _, found = self.agree(turn, self.gradient, *self.xs, jit=jit)
            self.slope(turn, record(p.loss, *self.xs), found)
        elif turn == "grad of grad":
            _, found = self.agree(turn, self.second, *self.xs, jit=jit)
            self.slope(turn, record(self.along, *self.xs), found)
        elif turn == "jvp":
            _, found = self.agree(turn, self.tangent, *self.xs, jit=jit)
            self.slope(
                turn, record(self.floats, *self.xs), found, [np.ones(y.v.shape) for y in found]
            )
        elif turn == "vmap":
            self.batch(turn, p, jit)
        else:
            self.batch(turn, self.gradient, jit)
        return self.counts

    def gradient(self, *xs: Tensor) -> Any:
        found = gc.grad(self.program.loss, self.positions)(*xs)
        return list(found) if isinstance(found, tuple) else [found]

    def floats(self, *xs: Tensor) -> Any:
        return [y for y in self.program(*xs) if y.dtype.is_floating] or [xs[0] * xs[0]]

    def tangent(self, *xs: Tensor) -> Any:
        return list(gc.jvp(self.floats, xs, tuple(self.vs))[1])

    def along(self, *xs: Tensor) -> Tensor:
        """The slope along the direction."""
        parts = [ops.sum(g * v) for g, v in zip(self.gradient(*xs), self.vs, strict=True)]
        return parts[0] if len(parts) == 1 else sum(parts[1:], parts[0])

    def second(self, *xs: Tensor) -> Any:
        found = gc.grad(self.along, self.positions)(*xs)
        return list(found) if isinstance(found, tuple) else [found]

    def agree(
        self, what: str, fn: Callable[..., Any], *xs: Tensor, jit: bool = False
    ) -> tuple[Graph, list[Value]]:
        """An engine with the interpreter, which gives the graph and its values."""
        graph = record(fn, *xs)
        expected = graph.evaluate()
        results = (gc.jit(fn) if jit else fn)(*xs)
        results = results if isinstance(results, list) else [results]
        for k, (t, want) in enumerate(zip(results, expected, strict=True)):
            found = difference(numbers_of(t), want)
            if found:
                raise Wrong(f"{what}, result {k}: {found}\n{self.program}")
            self.counts[f"{what}: elements"] += want.v.size
            self.counts[f"{what}: undecided"] += int((~want.known).sum())
        return graph, expected

    def slope(
        self, what: str, of: Graph, found: list[Value], along: list[np.ndarray] | None = None
    ) -> None:
        """A derivative, summed along the direction, with finite differences of the graph that it is of."""
        inputs = [numbers_of(t).astype(float) for t in self.xs]
        towards = [numbers_of(t).astype(float) for t in self.vs]

        def at(h: float) -> float:
            moved = [x + h * v for x, v in zip(inputs, towards, strict=True)]
            return float(sum(y.sum() for y in of.numbers(moved)))

        pairs = list(zip(found, towards if along is None else along, strict=True))
        got = float(sum((y.v * v).sum() for y, v in pairs))
        bound = float(sum((y.e * np.abs(v)).sum() for y, v in pairs))
        here = at(0.0)
        right = [(at(h) - here) / h for h in (4e-4, 2e-4, 1e-4)]
        left = [(here - at(-h)) / h for h in (4e-4, 2e-4, 1e-4)]
        rough, fine, finer = ((a + b) / 2 for a, b in zip(right, left, strict=True))
        bends = [a - b for a, b in zip(right, left, strict=True)]  # shrinks with h, but at a kink
        first, best = (4 * fine - rough) / 3, (4 * finer - fine) / 3
        scale = max(1.0, abs(best))
        h = 2.7183e-4  # steps of a trunc may be even over the others
        between = (at(h) - at(-h)) / (2 * h)
        foretold = fine + (rough - fine) * ((h / 2e-4) ** 2 - 1) / 3
        kink = max(abs(best - first), abs(2 * bends[2] - bends[1]), abs(between - foretold))
        if not kink <= 1e-6 * scale or not math.isfinite(bound):
            self.counts[f"{what}: no slope"] += 1
            return
        self.counts[f"{what}: slopes"] += 1
        if not abs(got - best) <= 2 * bound + 1e-5 * scale:
            raise Wrong(f"{what}: the slope {got} is not {best} (within {bound})\n{self.program}")

    def batch(self, what: str, fn: Callable[..., Any], jit: bool) -> None:
        """vmap with each example alone."""
        one = record(fn, *self.xs)
        examples = [self.xs, [x * 0.875 for x in self.xs]]
        batches = [ops.stack(list(pair)) for pair in zip(*examples, strict=True)]
        _, together = self.agree(what, gc.vmap(fn), *batches, jit=jit)
        alone = [one.evaluate([numbers_of(t).astype(float) for t in xs]) for xs in examples]
        for k, y in enumerate(together):
            for i, results in enumerate(alone):
                want = results[k]
                bound = Value(want.v, want.e + y.e[i] + 1e-9 * np.abs(want.v))
                found = difference(y.v[i], bound)
                if found:
                    raise Wrong(f"{what}, example {i} of result {k}: {found}\n{self.program}")
