"""How the time of each pass grows with the size of a program: at n, 2 n and 4 n.

    python bench/growth.py                      every line
    python bench/growth.py views adam cuda      parts of a line's name
    python bench/growth.py --times 4            everything four times as large

A line is a kind of program of n like parts: recorded, differentiated, planned and run, once, with
nothing kept from before. Its exponent is the slope of log(time) over log(size): 1 is linear. The
time is the processor's, on one thread, the least of several. The exit status is 1 if an exponent is
above 1.2.
"""

from __future__ import annotations

import argparse
import gc as garbage
import io
import itertools
import math
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops

#: What an exponent may be.
MOST = 1.2

Run = Callable[[], Any]
#: By name: how large n is, and what makes a run of a size. What it does beforehand is not timed.
LINES: dict[str, tuple[int, Callable[[int], Run]]] = {}


def line(n: int, name: str) -> Callable[[Callable[[int], Run]], Callable[[int], Run]]:
    def add(make: Callable[[int], Run]) -> Callable[[int], Run]:
        LINES[name] = n, make
        return make

    return add


def row(n: int, of: int = 1) -> Tensor:
    values = np.random.default_rng(n).uniform(0.5, 1.5, (n, of) if of > 1 else n)
    return Tensor(values.astype(np.float32))


def compiled(fn: Callable[..., Any], *args: Any) -> Run:
    """The first call of a compiled function."""
    return lambda: gc.jit(fn)(*args)


def on_gpu(fn: Callable[..., Any], *args: Any) -> Run:
    """What a GPU would run of it."""
    return lambda: gc.cuda.plan_of(fn, *args)


def graph(n: int, name: str, program: Callable[[int], tuple[Any, ...]]) -> None:
    """A function of tensors, by size: as a value and as a gradient, for a CPU and for a GPU."""

    def gradient_of(fn: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: gc.grad(lambda *a: sum_of(fn(*a)), tuple(range(len(args))))(*args)

    def made(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        fn, *args = program(n)
        return fn, tuple(args)

    def value(n: int) -> Run:
        fn, args = made(n)
        return compiled(fn, *args)

    def gradient(n: int) -> Run:
        fn, args = made(n)
        return compiled(gradient_of(fn), *args)

    def gpu_value(n: int) -> Run:
        fn, args = made(n)
        return on_gpu(fn, *args)

    def gpu_gradient(n: int) -> Run:
        fn, args = made(n)
        return on_gpu(gradient_of(fn), *args)

    line(n, name)(value)
    line(n, f"{name}, gradient")(gradient)
    line(n, f"{name}, cuda")(gpu_value)
    line(n, f"{name}, gradient, cuda")(gpu_gradient)


def sum_of(values: Any) -> Tensor:
    """All elements of all, added one after the other."""
    if isinstance(values, Tensor):
        return values.sum()
    total = values[0].sum()
    for v in values[1:]:
        total = total + v.sum()
    return total


# Graphs ---------------------------------------------------------------------------------------------


def chain(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        for k in range(n):
            x = ops.sin(x) if k % 2 else x * 1.01
        return x

    return fn, row(64)


def sum_of_terms(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        y = x
        for k in range(n):
            y = y + ops.sin(x * (1.0 + k / n))
        return y

    return fn, row(64)


def sum_of_products(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor, w: Tensor) -> Tensor:
        y = x @ w
        for k in range(n):
            y = y + ops.sin(x * (1.0 + k / n)) @ w
        return y

    return fn, row(4, 4), row(4, 4)


def products_of_one(n: int) -> tuple[Any, ...]:
    """A recurrent network: n products with one weight, one after the other."""

    def fn(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.tanh(x @ w)
        return x

    return fn, row(4, 4), row(4, 4)


def products_of_many(n: int) -> tuple[Any, ...]:
    """A deep network: a weight for each product."""

    def fn(x: Tensor, *ws: Tensor) -> Tensor:
        for w in ws:
            x = ops.tanh(x @ w)
        return x

    return fn, row(4, 4), *(row(4, 4) for _ in range(n))


def wide_products(n: int) -> tuple[Any, ...]:
    """Products that run whole, side by side."""

    def fn(x: Tensor, w: Tensor) -> Tensor:
        y = x
        for k in range(n):
            y = y + ops.sin((x * (1.0 + k / n)) @ w)
        return y

    return fn, row(1, 8).reshape(1, 8), row(8, 8)


def slices(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        total = x[0]
        for k in range(1, n):
            total = total + ops.sin(x[k])
        return total

    return fn, row(n)


def rows(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        total = x[0]
        for k in range(1, n):
            total = total * 0.5 + x[k]
        return total

    return fn, row(n, 3)


def pieces(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        return ops.concat([ops.sin(x * (1.0 + k / n)) for k in range(n)])

    return fn, row(3)


def stacked(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        return ops.stack([x.sum() * k for k in range(n)])

    return fn, row(3)


def stages(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = x - x.mean()
        return x

    return fn, row(64)


def reductions(n: int) -> tuple[Any, ...]:
    """n sums over one large tensor that do not need each other."""

    def fn(x: Tensor) -> list[Tensor]:
        return [(x * (1.0 + k / n)).sum() for k in range(n)]

    return fn, row(4096)


def lines_of_one(n: int) -> tuple[Any, ...]:
    """n reductions of an argument as it is."""

    def fn(x: Tensor) -> list[Tensor]:
        return [x.sum((k % 3,)) * (1.0 + k / n) for k in range(n)] + [
            ops.ReduceMax()(x, 2 - k % 3) * (1.0 + k / n) for k in range(n)
        ]

    return fn, Tensor(np.ones((4, 8, 64), np.float32))


def lines_of_many(n: int) -> tuple[Any, ...]:
    def fn(*xs: Tensor) -> list[Tensor]:
        return [x.sum(1) for x in xs]

    return fn, *(row(4, 64) for _ in range(n))


def outputs(n: int) -> tuple[Any, ...]:
    return lambda x: [ops.sin(x * (1.0 + k / n)) for k in range(n)], row(64)


def arguments(n: int) -> tuple[Any, ...]:
    return lambda *xs: [ops.sin(x * 2.0) for x in xs], *(row(64) for _ in range(n))


def updates(n: int) -> tuple[Any, ...]:
    def fn(*xs: Tensor) -> list[Tensor]:
        s = sum_of(xs)
        return [x - 0.1 * s for x in xs]

    return fn, *(row(64) for _ in range(n))


def shapes(n: int) -> tuple[Any, ...]:
    def fn(*xs: Tensor) -> list[Tensor]:
        return [ops.sin(x * 2.0) for x in xs]

    return fn, *(row(k + 2) for k in range(n))


def sums_of_shapes(n: int) -> tuple[Any, ...]:
    def fn(*xs: Tensor) -> list[Tensor]:
        return [ops.sin(x * 2.0).sum() for x in xs]

    return fn, *(row(k + 2) for k in range(n))


def assignments(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        y = x * 1.0
        for k in range(n):
            y[k % 8] = ops.sin(y[(k + 1) % 8])
        return y

    return fn, row(8)


def transposes(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        y = x
        for _ in range(n):
            y = y.T
        return y * 2.0

    return fn, row(4, 4)


def reshapes(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        for k in range(n):
            x = x.reshape(2, 8) if k % 2 else x.reshape(4, 4)
        return x * 2.0

    return fn, row(4, 4)


def shrinking(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = x[1:]
        return x * 2.0

    return fn, row(n + 2)


def moved(n: int) -> tuple[Any, ...]:
    """Movements that no other takes in."""

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.sin(x.T)
        return x

    return fn, row(4, 4)


def rolls(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.concat([x[1:], x[:1]])
        return x

    return fn, row(8)


def gathers(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor, at: Tensor) -> Tensor:
        total = x[0]
        for k in range(n):
            total = total + ops.gather(x * (1.0 + k / n), at, 0).sum(0)
        return total

    return fn, row(16, 4), Tensor(np.arange(3))


def orders(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.sort(ops.sin(x))[0] + 1.0
        return x

    return fn, row(8)


def softmaxes(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.softmax(x * 1.1, -1)
        return x

    return fn, row(4, 4)


def attentions(n: int) -> tuple[Any, ...]:
    def fn(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        for _ in range(n):
            q = ops.softmax(q @ k.T * 0.5, -1) @ v
        return q

    return fn, row(8, 4), row(8, 4), row(8, 4)


def convolutions(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.tanh(ops.conv2d(x, w, pad_mode="same"))
        return x

    return fn, Tensor(np.ones((1, 2, 4, 4), np.float32)), Tensor(np.ones((2, 2, 3, 3), np.float32))


def norms(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor, s: Tensor, b: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.layer_norm(x, (8,), s, b)
        return x

    return fn, row(4, 8), row(8), row(8)


def complexes(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        z = x + 1j * x
        for _ in range(n):
            z = z * z + 0.1j
        return ops.abs(z)

    return fn, row(8) * 0.1


def choices(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        for k in range(n):
            x = ops.where(x > k / n, x * 0.9, x + 0.1)
        return x

    return fn, row(64)


def loops(n: int) -> tuple[Any, ...]:
    def fn(x: Tensor) -> Tensor:
        for k in range(n):
            x = ops.ForiLoop()(0, 3, lambda i, y: ops.sin(y) * 1.1, x * (1.0 + k / n), unroll=False)
        return x

    return fn, row(8)


def sums_of_one(n: int) -> tuple[Any, ...]:
    """A value that n others need, which are summed."""

    def fn(x: Tensor) -> Tensor:
        m = x.mean()
        return ops.stack([(x * (1.0 + k / n) - m).square().sum() for k in range(n)]).sum()

    return fn, row(64)


def mixed_rows(n: int) -> tuple[Any, ...]:
    """Losses of many conditions, each with points of its own."""

    def fn(w: Tensor, *xs: Tensor) -> Tensor:
        total = w.sum()
        for x in xs:
            total = total + ops.tanh(x @ w).square().mean()
        return total

    return fn, row(2, 2), *(row(3 + k, 2) for k in range(n))


def parts_of_points(n: int) -> tuple[Any, ...]:
    """One network over all points, of which each condition takes some."""

    def fn(x: Tensor, w: Tensor) -> Tensor:
        u = ops.tanh(x @ w)
        total = w.sum()
        for k in range(n):
            total = total + u[k * 8 : (k + 1) * 8].square().mean()
        return total

    return fn, row(8 * n, 2), row(2, 2)


for _n, _program in (
    (4000, chain),
    (2000, sum_of_terms),
    (1000, sum_of_products),
    (2000, products_of_one),
    (1000, products_of_many),
    (500, wide_products),
    (2000, slices),
    (1000, rows),
    (1000, pieces),
    (1000, stacked),
    (1000, stages),
    (1000, reductions),
    (1000, lines_of_one),
    (1000, lines_of_many),
    (2000, outputs),
    (1000, arguments),
    (1000, updates),
    (500, shapes),
    (500, sums_of_shapes),
    (500, assignments),
    (4000, transposes),
    (4000, reshapes),
    (1000, shrinking),
    (2000, moved),
    (500, rolls),
    (500, gathers),
    (500, orders),
    (500, softmaxes),
    (250, attentions),
    (250, convolutions),
    (250, norms),
    (500, complexes),
    (1000, choices),
    (100, loops),
    (500, sums_of_one),
    (250, mixed_rows),
    (250, parts_of_points),
):
    graph(_n, _program.__name__.replace("_", " "), _program)


# Programs -------------------------------------------------------------------------------------------


@line(1000, "slices, eager")
def _(n: int) -> Run:
    fn, x = slices(n)
    return lambda: fn(x)


@line(1000, "slices, gradient, eager")
def _(n: int) -> Run:
    fn, x = slices(n)
    return lambda: gc.grad(fn)(x)


@line(2000, "assignments, eager")
def _(n: int) -> Run:
    def run() -> Tensor:
        y = ops.zeros((n,))
        for k in range(n):
            y[k] = float(k)
        return y

    return run


@line(500, "assignments to places of their own")
def _(n: int) -> Run:
    def fn(x: Tensor) -> Tensor:
        y = x * 1.0
        for k in range(n):
            y[k] = y[k] * 2.0
        return y.sum()

    return compiled(gc.grad(fn), row(n))


@line(4000, "transposes, eager")
def _(n: int) -> Run:
    x = row(4, 4)

    def run() -> Tensor:
        y = x
        for _ in range(n):
            y = y.T
        return y * 2.0

    return run


@line(4000, "reshapes and slices, eager")
def _(n: int) -> Run:
    x = row(4, 4)

    def run() -> Tensor:
        y = x
        for k in range(n):
            y = (y.reshape(2, 8) if k % 2 else y.reshape(4, 4))[:]
        return y * 2.0

    return run


@line(1000, "shrinking slices, eager")
def _(n: int) -> Run:
    x = row(n + 2)

    def run() -> Tensor:
        y = x
        for _ in range(n):
            y = y[1:]
        return y * 2.0

    return run


@line(1000, "writes through a view of views")
def _(n: int) -> Run:
    def run() -> Tensor:
        x = ops.zeros((4, 4))
        y = x
        for _ in range(n):
            y = y.T
        for k in range(8):
            y[0, k % 4] = 1.0
        return x

    return run


@line(1000, "writes through a view of views, compiled")
def _(n: int) -> Run:
    def fn(x: Tensor) -> Tensor:
        x = x * 1.0
        y = x
        for _ in range(n):
            y = y.T
        for k in range(8):
            y[0, k % 4] = 1.0
            x = x * 2.0
        return x.sum() + y.sum()

    return compiled(fn, row(4, 4))


@line(1000, "views kept while their base is written")
def _(n: int) -> Run:
    def run() -> float:
        x = ops.zeros((n,))
        views = [x[k] for k in range(n)]
        for k in range(n):
            views[k][...] = 1.0
        return float(views[0])

    return run


@line(500, "views kept while their base is written, compiled")
def _(n: int) -> Run:
    def fn(x: Tensor) -> Tensor:
        x = x * 1.0
        views = [x[k] for k in range(8)]
        for k in range(n):
            views[k % 8][...] = x[(k + 1) % 8] * 2.0
        return x

    return compiled(fn, row(8))


@line(250, "values read in a trace")
def _(n: int) -> Run:
    """What is read is kept. (Other values are computed again for each that is read.)"""

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = x * (1.01 if float(x) > 0 else 1.02)
        return x

    return lambda: gc.grad(fn)(Tensor(0.5))


@line(1000, "gradients by n tensors")
def _(n: int) -> Run:
    xs = [row(4) for _ in range(n)]

    def run() -> Any:
        with gc.watch(*xs) as watched:
            ys = [ops.sin(x) for x in watched]
            return gc.gradients(ys, list(watched))

    return run


@line(100, "n gradients of one tensor each")
def _(n: int) -> Run:
    xs = [row(4) for _ in range(n)]

    def run() -> Any:
        with gc.watch(*xs) as watched:
            return [gc.gradients(ops.sin(x), x) for x in watched]

    return run


@line(500, "scopes of watch")
def _(n: int) -> Run:
    x = row(4)

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            with gc.watch(x) as y:
                x = x + gc.gradients(ops.sin(y).sum(), y)
        return x

    return compiled(fn, x)


@line(500, "transforms inside")
def _(n: int) -> Run:
    inner = gc.grad(lambda x: ops.sin(x).sum())

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = x + inner(x) * 0.1
        return x

    return compiled(fn, row(4))


@line(250, "transforms inside, gradient")
def _(n: int) -> Run:
    inner = gc.grad(lambda x: ops.sin(x).sum())

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = x + inner(x) * 0.1
        return x.sum()

    return compiled(gc.grad(fn), row(4))


@line(250, "forward transforms inside, gradient")
def _(n: int) -> Run:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = x + gc.jvp(ops.sin, x, x)[1] * 0.1
        return x.sum()

    return compiled(gc.grad(fn), row(4))


@line(250, "transforms of parameters inside")
def _(n: int) -> Run:
    w = Parameter(row(4), name="w")
    inner = gc.grad(lambda x: ops.sin(x * w).sum(), None, [w])

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = x + inner(x)[0] * 0.1
        return x

    return compiled(fn, row(4))


@line(250, "vmaps inside")
def _(n: int) -> Run:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = gc.vmap(lambda a: ops.sin(a) * 2.0)(x)
        return x

    return compiled(fn, row(4))


@line(250, "compiled functions inside")
def _(n: int) -> Run:
    inner = gc.jit(lambda x: ops.sin(x) * 2.0)

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = inner(x)
        return x

    return compiled(gc.grad(lambda x: fn(x).sum()), row(4))


@line(250, "custom_vjp")
def _(n: int) -> Run:
    rule = gc.custom_vjp(lambda x: ops.sin(x))
    rule.defvjp(lambda x: (ops.sin(x), x), lambda x, dy: (dy * ops.cos(x),))

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = rule(x)
        return x.sum()

    return compiled(gc.grad(fn), row(4))


@line(250, "custom_vjp, second order")
def _(n: int) -> Run:
    rule = gc.custom_vjp(lambda x: ops.sin(x))
    rule.defvjp(lambda x: (ops.sin(x), x), lambda x, dy: (dy * ops.cos(x),))

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = rule(x)
        return x.sum()

    return compiled(gc.grad(lambda x: gc.grad(fn)(x).sum()), row(4))


@line(250, "custom_jvp")
def _(n: int) -> Run:
    rule = gc.custom_jvp(lambda x: ops.sin(x))
    rule.defjvp(lambda p, t: (ops.sin(p[0]), t[0] * ops.cos(p[0])))

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = rule(x)
        return x.sum()

    return compiled(gc.grad(fn), row(4))


@line(250, "hooks")
def _(n: int) -> Run:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.sin(x)
            x.register_hook(lambda g: g * 1.01)
        return x.sum()

    return compiled(gc.grad(fn), row(4))


@line(250, "recomputed segments")
def _(n: int) -> Run:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = gc.recompute(lambda y: ops.sin(y) * ops.cos(y), x)
        return x.sum()

    return compiled(gc.grad(fn), row(4))


@line(500, "prints")
def _(n: int) -> Run:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = x * 1.01
            ops.Print()(x)
        return x

    def run() -> None:
        with redirect_stdout(io.StringIO()):
            gc.jit(fn)(row(2))

    return run


@line(500, "random draws")
def _(n: int) -> Run:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = x + ops.standard_normal((8,)) * 0.1
        return x

    return compiled(fn, row(8))


@line(500, "dropouts, gradient")
def _(n: int) -> Run:
    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.dropout(ops.sin(x), 0.5)
        return x.sum()

    return compiled(gc.grad(fn), row(8))


@line(1000, "tensors that outlive their function")
def _(n: int) -> Run:
    def run() -> list[Tensor]:
        kept: list[Tensor] = []

        def fn(x: Tensor) -> Tensor:
            for _ in range(n):
                x = ops.sin(x)
                kept.append(x)
            return x.sum()

        gc.grad(fn)(row(4))
        return kept

    return run


@line(1000, "a tree of n leaves")
def _(n: int) -> Run:
    tree = {f"w{k}": {"a": row(4), "b": [row(4)]} for k in range(n)}

    def fn(t: Any) -> Tensor:
        total = t["w0"]["a"].sum()
        for v in t.values():
            total = total + (v["a"] * v["b"][0]).sum()
        return total

    return compiled(gc.grad(fn), tree)


@line(1000, "a tree of n leaves, jvp")
def _(n: int) -> Run:
    xs = tuple(row(4) for _ in range(n))

    def fn(*xs: Tensor) -> Tensor:
        return sum_of([x * x for x in xs])

    return lambda: gc.jvp(fn, xs, xs)


@line(1000, "globals read by a compiled function")
def _(n: int) -> Run:
    ws = [row(4) for _ in range(n)]

    def fn(x: Tensor) -> Tensor:
        for w in ws:
            x = x * w
        return x

    return compiled(fn, row(4))


@line(2000, "second calls of a tree of n leaves")
def _(n: int) -> Run:
    xs = [row(4) for _ in range(n)]
    fn = gc.jit(lambda xs: [x * 2.0 for x in xs])
    fn(xs)
    return lambda: [fn(xs) for _ in range(3)]


@line(500, "n compiled functions")
def _(n: int) -> Run:
    def run() -> None:
        for k in range(n):
            gc.jit(lambda x, k=k: x * k)(row(2))

    return run


@line(200, "n signatures of one compiled function")
def _(n: int) -> Run:
    xs = [row(k + 2) for k in range(n)]

    def run() -> None:
        fn = gc.jit(lambda x: ops.sin(x))
        for x in xs:
            fn(x)

    return run


# Transforms of long graphs --------------------------------------------------------------------------


def long(n: int) -> Callable[[Tensor], Tensor]:
    fn, _ = chain(n)
    return fn


@line(2000, "vmap of a chain")
def _(n: int) -> Run:
    return compiled(gc.vmap(long(n)), row(8, 4))


@line(1000, "vmap of a gradient of a chain")
def _(n: int) -> Run:
    return compiled(gc.vmap(gc.grad(lambda x: long(n)(x).sum())), row(8, 4))


@line(2000, "jvp of a chain")
def _(n: int) -> Run:
    return compiled(lambda x: gc.jvp(long(n), x, x), row(8))


@line(1000, "jvp of a gradient of a chain")
def _(n: int) -> Run:
    return compiled(lambda x: gc.jvp(gc.grad(lambda x: long(n)(x).sum()), x, x), row(8))


@line(500, "gradient of a gradient of a chain")
def _(n: int) -> Run:
    return compiled(gc.grad(lambda x: gc.grad(lambda x: long(n)(x).sum())(x).sum()), row(8))


@line(250, "jet of a chain")
def _(n: int) -> Run:
    return compiled(lambda x: ops.jet(long(n), x, ops.stack([x, x, x])), row(8))


@line(250, "laplacian of a chain")
def _(n: int) -> Run:
    return compiled(lambda x: gc.laplacian(lambda y: long(n)(y).sum())(x), row(3))


@line(1000, "linearize of a chain")
def _(n: int) -> Run:
    return lambda: gc.linearize(long(n), row(8))[1](row(8))


@line(1000, "vjp of a chain")
def _(n: int) -> Run:
    return lambda: gc.vjp(long(n), row(8))[1](row(8))


@line(500, "jacrev of n outputs")
def _(n: int) -> Run:
    return lambda: gc.jacrev(lambda x: ops.sin(x) * 2.0)(row(n))


@line(250, "text of a graph and a plan")
def _(n: int) -> Run:
    return lambda: (gc.graph_text(long(n), row(8)), gc.plan_text(long(n), row(8)))


# Training -------------------------------------------------------------------------------------------

_ALONE = ("LARS", "Optimizer", "AdamOffload", "Lamb")
OPTIMISERS = [
    name
    for name in nn.optim.__all__  # type: ignore[attr-defined]
    if name not in _ALONE
]


def parameters(n: int, size: int = 4) -> list[Parameter]:
    return [Parameter(row(size), name=f"w{k}") for k in range(n)]


def first_step(make: Callable[[list[Parameter]], Any], n: int) -> Run:
    weights = parameters(n)
    optimizer = make(weights)
    gradients = tuple(row(4) for _ in weights)
    return lambda: optimizer(gradients)


for _name in [*OPTIMISERS, "Lamb"]:
    line(250, f"{_name}, first step")(
        lambda n, _name=_name: first_step(lambda w: getattr(nn, _name)(w, learning_rate=0.01), n)
    )
line(250, "LARS, first step")(
    lambda n: first_step(lambda w: nn.LARS(nn.SGD(w, learning_rate=0.01)), n)
)
line(250, "Momentum, first step")(lambda n: first_step(lambda w: nn.Momentum(w, 0.01, 0.9), n))


def training(make: Callable[[list[Parameter]], Any], n: int) -> tuple[Callable[..., Any], Tensor]:
    weights = parameters(n)
    optimizer = make(weights)

    def loss(x: Tensor) -> Tensor:
        for w in weights:
            x = ops.tanh(x * w)
        return x.sum()

    step = gc.value_and_grad(loss, None, weights)

    def train(x: Tensor) -> Tensor:
        value, gradients = step(x)
        optimizer(gradients)
        return value

    return train, row(4)


@line(250, "a training step with Adam")
def _(n: int) -> Run:
    train, x = training(lambda w: nn.Adam(w), n)
    return lambda: train(x)


@line(250, "a training step with Adam, compiled")
def _(n: int) -> Run:
    return compiled(*training(lambda w: nn.Adam(w), n))


@line(250, "a second training step with Adam, compiled")
def _(n: int) -> Run:
    train, x = training(lambda w: nn.Adam(w), n)
    step = gc.jit(train)
    step(x)
    return lambda: [step(x) for _ in range(20)]


@line(100, "a training step with Adam, cuda")
def _(n: int) -> Run:
    return on_gpu(*training(lambda w: nn.Adam(w), n))


@line(250, "a training step with clipped gradients")
def _(n: int) -> Run:
    weights = parameters(n)
    optimizer = nn.Adam(weights)

    def loss(x: Tensor) -> Tensor:
        for w in weights:
            x = ops.tanh(x * w)
        return x.sum()

    def train(x: Tensor) -> Tensor:
        value, gradients = gc.value_and_grad(loss, None, weights)(x)
        optimizer(ops.clip_by_global_norm(gradients, 1.0))
        return value

    return compiled(train, row(4))


@line(250, "parameters of n shapes with Adam")
def _(n: int) -> Run:
    weights = [Parameter(row(k + 2), name=f"w{k}") for k in range(n)]
    optimizer = nn.Adam(weights)
    gradients = tuple(row(k + 2) for k in range(n))
    return lambda: optimizer(gradients)


@line(250, "parameter groups with Adam")
def _(n: int) -> Run:
    weights = parameters(n)
    optimizer = nn.Adam([{"params": [w], "lr": 0.1 + k / n} for k, w in enumerate(weights)])
    gradients = tuple(row(4) for _ in weights)
    return lambda: optimizer(gradients)


@line(250, "making Adam")
def _(n: int) -> Run:
    weights = parameters(n)
    return lambda: nn.Adam(weights)


# Cells ----------------------------------------------------------------------------------------------


@line(250, "making a sequence of cells")
def _(n: int) -> Run:
    return lambda: nn.SequentialCell([nn.Dense(4, 4) for _ in range(n)])


@line(250, "a list of cells, appended to")
def _(n: int) -> Run:
    def run() -> None:
        cells = nn.CellList([])
        for _ in range(n):
            cells.append(nn.Dense(4, 4))

    return run


@line(250, "a sequence of cells")
def _(n: int) -> Run:
    return compiled(nn.SequentialCell([nn.Dense(4, 4) for _ in range(n)]), row(4, 4))


@line(100, "training a sequence of cells")
def _(n: int) -> Run:
    cells = nn.SequentialCell([nn.Dense(4, 4) for _ in range(n)])
    optimizer = nn.Adam(cells.trainable_params())
    step = nn.TrainOneStepCell(nn.WithLossCell(cells, nn.MSELoss()), optimizer)
    return lambda: step(row(4, 4), row(4, 4))


@line(1000, "parameters of a cell")
def _(n: int) -> Run:
    net = nn.SequentialCell([nn.Dense(2, 2) for _ in range(n)])
    return lambda: (net.trainable_params(), net.parameters_dict(), list(net.cells_and_names()))


@line(500, "saving and loading")
def _(n: int) -> Run:
    net = nn.SequentialCell([nn.Dense(2, 2) for _ in range(n)])

    def run() -> None:
        with TemporaryDirectory() as folder:
            path = str(Path(folder) / "net.ckpt")
            gc.save_checkpoint(net, path)
            gc.load_param_into_net(net, gc.load_checkpoint(path))

    return run


# Running --------------------------------------------------------------------------------------------


_launches = itertools.count(1 << 21)


def seconds(make: Callable[[int], Run], n: int) -> float:
    """Of the processor, for one run."""
    run = make(n)
    garbage.collect()
    gc._core.weigh_cuda_plans(launch=next(_launches))  # settings that no plan is kept by
    begin = time.process_time()
    run()
    return time.process_time() - begin


def measured(
    make: Callable[[int], Run], n: int, repeats: int, limit: float
) -> tuple[list[float], float]:
    """The least seconds at n, 2 n and 4 n, and the exponent; sizes that take too long are left out."""
    least = [math.inf] * 3
    for _ in range(repeats):
        for k in range(3):
            if k > 0 and least[k - 1] * 4 > limit:
                break
            least[k] = min(least[k], seconds(make, n << k))
    there = [t for t in least if t < math.inf]
    steps = len(there) - 1
    return there, math.log2(there[-1] / there[0]) / steps if steps else math.inf


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("lines", nargs="*", help="parts of lines' names")
    parser.add_argument("--exact", action="store_true", help="whole names")
    parser.add_argument("--times", type=float, default=1, help="how much larger than usual")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=20, help="seconds a run may take, about")
    options = parser.parse_args()
    gc.set_context(device_target="CPU")
    gc._core.set_max_threads(1)
    above = 0
    print(f"{'':52}{'n':>6}  {'n':>8} {'2 n':>8} {'4 n':>8}  exponent", flush=True)
    for name, (n, make) in LINES.items():
        wanted = options.lines
        if wanted and not any(w == name if options.exact else w in name for w in wanted):
            continue
        n = max(1, round(n * options.times))
        try:
            found, exponent = measured(make, n, options.repeats, options.limit)
        except Exception as e:
            print(f"{name:52}{n:6}  {type(e).__name__}: {e}", flush=True)
            above += 1
            continue
        times = " ".join(f"{t:8.3f}" for t in found).ljust(26)
        mark = " *" if exponent > MOST else ""
        above += exponent > MOST
        print(f"{name:52}{n:6}  {times}  {exponent:8.2f}{mark}", flush=True)
    print(f"{above} above {MOST}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
