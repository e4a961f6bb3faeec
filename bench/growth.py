"""How the time of each pass grows with the size of a program: at n, 2 n and 4 n.

    python bench/growth.py [views adam cuda]    every line, or those with such parts in their names
    python bench/growth.py --times 4            everything four times as large

A line is a kind of program of n like parts: recorded, differentiated, planned and run, once, with
nothing kept from before. Its exponent is the slope of log(time) over log(size): 1 is linear. The
time is the processor's, on one thread, the least of several. A line whose exponent is above 1.2 is
measured again at four times the size, which decides: where a cache ends there is a step, which is no
growth. The exit status is 1 if an exponent is above 1.2.
"""

from __future__ import annotations

import argparse
import functools
import gc as garbage
import io
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
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
Make = Callable[[int], Run]
Function = Callable[..., Any]
#: By size.
Program = Callable[[int], Function]
#: What a program is given: tensors of these shapes, or itself a tensor.
Arguments = Sequence["int | tuple[int, ...] | Tensor"]


def row(*shape: int) -> Tensor:
    values = np.random.default_rng(shape[0]).uniform(0.5, 1.5, shape)
    return Tensor(values.astype(np.float32))


def tensors(of: Arguments) -> list[Tensor]:
    return [a if isinstance(a, Tensor) else row(*(a if isinstance(a, tuple) else (a,))) for a in of]


def many(n: int, shape: Any = 64) -> list[Tensor]:
    return tensors([shape] * n)


def sum_of(values: Any) -> Tensor:
    """All elements of all, added one after the other."""
    if isinstance(values, Tensor):
        return values.sum()
    total = values[0].sum()
    for v in values[1:]:
        total = total + v.sum()
    return total


# What is timed --------------------------------------------------------------------------------------


def compiled(fn: Function, *args: Any) -> Run:
    """The first call of a compiled function."""
    return lambda: gc.jit(fn)(*args)


def on_gpu(fn: Function, *args: Any) -> Run:
    """What a GPU would run of it."""
    return lambda: gc.cuda.plan_of(fn, *args)


called = functools.partial


def gradient(fn: Function) -> Function:
    """That of the sum of what it returns, by all arguments."""
    return lambda *args: gc.grad(lambda *a: sum_of(fn(*a)), tuple(range(len(args))))(*args)


# Programs -------------------------------------------------------------------------------------------


def steps(step: Function) -> Program:
    """A program whose first argument becomes step(it, k, the others)."""

    def program(n: int) -> Function:
        def fn(x: Any, *others: Any) -> Any:
            for k in range(n):
                x = step(x, k, *others)
            return x

        return fn

    return program


def over(term: Function, first: Function, among: Callable[[int], Any]) -> Program:
    """A total that becomes term(it, the argument, k, the others) for each k."""

    def program(n: int) -> Function:
        def fn(x: Tensor, *others: Tensor) -> Tensor:
            total = first(x, *others)
            for k in among(n):
                total = term(total, x, k, *others)
            return total

        return fn

    return program


def factors(n: int) -> list[float]:
    return [1.0 + k / n for k in range(n)]


def terms(term: Function, first: Function = lambda x, *_: x) -> Program:
    """A sum of terms, of which each has a factor of its own from 1 to 2."""
    return over(lambda total, x, c, *others: total + term(x, c, *others), first, factors)


def written(write: Function) -> Program:
    """A copy of the argument that is written to, place by place."""
    return lambda n: lambda x: steps(lambda y, k: write(y, k) or y)(n)(x * 1.0)


def updates(n: int) -> Function:
    def fn(*xs: Tensor) -> list[Tensor]:
        s = sum_of(xs)
        return [x - 0.1 * s for x in xs]

    return fn


def sums_of_one(n: int) -> Function:
    """A value that n others need, which are summed."""

    def fn(x: Tensor) -> Tensor:
        m = x.mean()
        return ops.stack([(x * (1.0 + k / n) - m).square().sum() for k in range(n)]).sum()

    return fn


def loop(x: Tensor, factor: float) -> Any:
    return ops.ForiLoop()(0, 3, lambda i, y: ops.sin(y) * 1.1, x * factor, unroll=False)


def each(of: Function) -> Program:
    """A list of of(the argument, a factor), or of what becomes of each argument."""

    def program(n: int) -> Function:
        def fn(*xs: Tensor) -> list[Tensor]:
            if len(xs) == 1:
                return [of(xs[0], 1.0 + k / n) for k in range(n)]
            return [of(x, 2.0) for x in xs]

        return fn

    return program


def lines_of_one(n: int) -> Function:
    """n reductions of an argument as it is."""
    return lambda x: [
        *(x.sum((k % 3,)) * (1.0 + k / n) for k in range(n)),
        *(ops.ReduceMax()(x, 2 - k % 3) * (1.0 + k / n) for k in range(n)),
    ]


def joined(join: Function, part: Function) -> Program:
    return lambda n: lambda x: join([part(x, k, n) for k in range(n)])


chain = steps(lambda x, k: ops.sin(x) if k % 2 else x * 1.01)
slices = over(lambda total, x, k: total + ops.sin(x[k]), lambda x: x[0], lambda n: range(1, n))
image = Tensor(np.ones((1, 2, 4, 4), np.float32))
weight = Tensor(np.ones((2, 2, 3, 3), np.float32))

#: A function of tensors by size, and what it is given: each is measured as a value and as a gradient, for a
#: CPU and for a GPU.
GRAPHS: list[tuple[int, str, Program, Callable[[int], Arguments]]] = [
    (4000, "chain", chain, lambda n: [64]),
    (2000, "sum of terms", terms(lambda x, c: ops.sin(x * c)), lambda n: [64]),
    (1000, "sum of products", terms(lambda x, c, w: ops.sin(x * c) @ w, lambda x, w: x @ w),
     lambda n: [(4, 4), (4, 4)]),
    # A recurrent network: n products with one weight, one after the other.
    (2000, "products of one", steps(lambda x, k, w: ops.tanh(x @ w)), lambda n: [(4, 4), (4, 4)]),
    # A deep network: a weight for each product.
    (1000, "products of many", lambda n: lambda x, *ws: steps(lambda x, k: ops.tanh(x @ ws[k]))(n)(x),
     lambda n: [(4, 4), *many(n, (4, 4))]),
    # Products that run whole, side by side.
    (500, "wide products", terms(lambda x, c, w: ops.sin((x * c) @ w)), lambda n: [(1, 8), (8, 8)]),
    (2000, "slices", slices, lambda n: [n]),
    (1000, "rows", over(lambda total, x, k: total * 0.5 + x[k], lambda x: x[0], lambda n: range(1, n)),
     lambda n: [(n, 3)]),
    (1000, "pieces", joined(ops.concat, lambda x, k, n: ops.sin(x * (1.0 + k / n))), lambda n: [3]),
    (1000, "stacked", joined(ops.stack, lambda x, k, n: x.sum() * k), lambda n: [3]),
    (1000, "stages", steps(lambda x, k: x - x.mean()), lambda n: [64]),
    # Sums over one large tensor that do not need each other.
    (1000, "reductions", each(lambda x, c: (x * c).sum()), lambda n: [4096]),
    (1000, "lines of one", lines_of_one, lambda n: [(4, 8, 64)]),
    (1000, "lines of many", each(lambda x, c: x.sum(1)), lambda n: many(n, (4, 64))),
    (2000, "outputs", each(lambda x, c: ops.sin(x * c)), lambda n: [64]),
    (1000, "arguments", each(lambda x, c: ops.sin(x * c)), lambda n: many(n)),
    (1000, "updates", updates, lambda n: many(n)),
    (500, "shapes", each(lambda x, c: ops.sin(x * c)), lambda n: range(2, n + 2)),
    (500, "sums of shapes", each(lambda x, c: ops.sin(x * c).sum()), lambda n: range(2, n + 2)),
    (500, "assignments", written(lambda y, k: y.__setitem__(k % 8, ops.sin(y[(k + 1) % 8]))),
     lambda n: [8]),
    (4000, "transposes", lambda n: lambda x: steps(lambda y, k: y.T)(n)(x) * 2.0, lambda n: [(4, 4)]),
    (4000, "reshapes",
     lambda n: lambda x: steps(lambda y, k: y.reshape((2, 8) if k % 2 else (4, 4)))(n)(x) * 2.0,
     lambda n: [(4, 4)]),
    (1000, "shrinking", lambda n: lambda x: steps(lambda y, k: y[1:])(n)(x) * 2.0, lambda n: [n + 2]),
    # Movements that no other takes in.
    (4000, "moved", steps(lambda x, k: ops.sin(x.T)), lambda n: [(4, 4)]),
    (500, "rolls", steps(lambda x, k: ops.concat([x[1:], x[:1]])), lambda n: [8]),
    (500, "gathers", terms(lambda x, c, at: ops.gather(x * c, at, 0).sum(0), lambda x, at: x[0]),
     lambda n: [(16, 4), Tensor(np.arange(3))]),
    (500, "orders", steps(lambda x, k: ops.sort(ops.sin(x))[0] + 1.0), lambda n: [8]),
    (500, "softmaxes", steps(lambda x, k: ops.softmax(x * 1.1, -1)), lambda n: [(4, 4)]),
    (250, "attentions", steps(lambda q, _, k, v: ops.softmax(q @ k.T * 0.5, -1) @ v),
     lambda n: [(8, 4)] * 3),
    (250, "convolutions", steps(lambda x, k, w: ops.tanh(ops.conv2d(x, w, pad_mode="same"))),
     lambda n: [image, weight]),
    (250, "norms", steps(lambda x, k, s, b: ops.layer_norm(x, (8,), s, b)), lambda n: [(4, 8), 8, 8]),
    (500, "complexes", lambda n: lambda x: ops.abs(steps(lambda z, k: z * z + 0.1j)(n)(x + 1j * x)),
     lambda n: [row(8) * 0.1]),
    (1000, "choices", lambda n: steps(lambda x, k: ops.where(x > k / n, x * 0.9, x + 0.1))(n),
     lambda n: [64]),
    (100, "loops", lambda n: steps(lambda x, k: loop(x, 1.0 + k / n))(n), lambda n: [8]),
    (500, "sums of one", sums_of_one, lambda n: [64]),
    # Losses of many conditions, each with points of its own.
    (250, "mixed rows",
     over(lambda total, w, k, *xs: total + ops.tanh(xs[k] @ w).square().mean(),
          lambda w, *xs: w.sum(), range),
     lambda n: [(2, 2), *((3 + k // 4, 2) for k in range(n))]),
    # One network over all points, of which each condition takes some.
    (250, "parts of points",
     lambda n: lambda x, w: over(lambda total, u, k: total + u[k * 8 : (k + 1) * 8].square().mean(),
                                 lambda u: w.sum(), range)(n)(ops.tanh(x @ w)),
     lambda n: [(8 * n, 2), (2, 2)]),
]  # fmt: skip


# Views and writes -----------------------------------------------------------------------------------


def written_views(n: int) -> Tensor:
    x = ops.zeros((4, 4))
    y = steps(lambda y, k: y.T)(n)(x)
    for k in range(8):
        y[0, k % 4] = 1.0
    return x


def written_views_compiled(n: int) -> Function:
    def fn(x: Tensor) -> Tensor:
        x = x * 1.0
        y = steps(lambda y, k: y.T)(n)(x)
        for k in range(8):
            y[0, k % 4] = 1.0
            x = x * 2.0
        return x.sum() + y.sum()

    return fn


def kept_views(n: int) -> float:
    x = ops.zeros((n,))
    views = [x[k] for k in range(n)]
    for k in range(n):
        views[k][...] = 1.0
    return float(views[0])


def kept_views_compiled(n: int) -> Function:
    def fn(x: Tensor) -> Tensor:
        x = x * 1.0
        views = [x[k] for k in range(8)]
        for k in range(n):
            views[k % 8][...] = x[(k + 1) % 8] * 2.0
        return x

    return fn


# Values that are read while a function is traced -----------------------------------------------------


def read_behind(n: int) -> Function:
    """Of each value one reads what is made of it, and never the value."""

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.sin(x) * (1.01 if float(x.sum()) > 0 else 1.02)
        return x.sum()

    return fn


def read_afterwards(n: int) -> Function:
    """All are recorded before the first is read, from the last to the first."""

    def fn(x: Tensor) -> Tensor:
        sums = []
        for _ in range(n):
            x = ops.sin(x)
            sums.append(x.sum())
        return x.sum() * sum(float(ops.stop_gradient(s)) for s in reversed(sums))

    return fn


def read_constants(n: int) -> Function:
    """They do not depend on what is differentiated by, and on each other."""

    def fn(x: Tensor) -> Tensor:
        y = ops.zeros((4,))
        for _ in range(n):
            y = ops.sin(y) + 1.0
            x = x * (1.01 if float(y.sum()) > 0 else 1.02)
        return x.sum()

    return fn


# Transforms -----------------------------------------------------------------------------------------

SIN = gc.grad(lambda x: ops.sin(x).sum())


def watched_each(xs: list[Tensor]) -> Any:
    with gc.watch(*xs) as watched:
        return [gc.gradients(ops.sin(x), x) for x in watched]


def watched_all(xs: list[Tensor]) -> Any:
    with gc.watch(*xs) as watched:
        return gc.gradients([ops.sin(x) for x in watched], list(watched))


def scope_of_watch(x: Tensor, k: int) -> Tensor:
    with gc.watch(x) as y:
        return x + gc.gradients(ops.sin(y).sum(), y)


def parameter_inside(n: int) -> Function:
    w = Parameter(row(4), name="w")
    inner = gc.grad(lambda x: ops.sin(x * w).sum(), None, [w])
    return steps(lambda x, k: x + inner(x)[0] * 0.1)(n)


def with_vjp() -> Any:
    rule = gc.custom_vjp(lambda x: ops.sin(x))
    rule.defvjp(lambda x: (ops.sin(x), x), lambda x, dy: (dy * ops.cos(x),))
    return rule


def with_jvp() -> Any:
    rule = gc.custom_jvp(lambda x: ops.sin(x))
    rule.defjvp(lambda p, t: (ops.sin(p[0]), t[0] * ops.cos(p[0])))
    return rule


def hooked(x: Tensor, k: int) -> Tensor:
    x = ops.sin(x)
    x.register_hook(lambda g: g * 1.01)
    return x


def printed(x: Tensor, k: int) -> Tensor:
    x = x * 1.01
    ops.Print()(x)
    return x


def silently(run: Run) -> None:
    with redirect_stdout(io.StringIO()):
        run()


def outlived(n: int) -> list[Tensor]:
    kept: list[Tensor] = []

    def fn(x: Tensor) -> Tensor:
        for _ in range(n):
            x = ops.sin(x)
            kept.append(x)
        return x.sum()

    gc.grad(fn)(row(4))
    return kept


def tree(n: int) -> Any:
    return {f"w{k}": {"a": row(4), "b": [row(4)]} for k in range(n)}


def sum_of_tree(t: Any) -> Tensor:
    total = t["w0"]["a"].sum()
    for v in t.values():
        total = total + (v["a"] * v["b"][0]).sum()
    return total


def second_calls(n: int) -> Run:
    xs = many(n, 4)
    fn = gc.jit(lambda xs: [x * 2.0 for x in xs])
    fn(xs)
    return lambda: [fn(xs) for _ in range(3)]


def sum_of_chain(n: int, program: Program = chain) -> Function:
    fn = program(n)
    return lambda x: fn(x).sum()


def slope(fn: Function) -> Function:
    """The sum of a gradient."""
    return lambda x: gc.grad(fn)(x).sum()


def with_one(fn: Function, n: int) -> Function:
    """The sum of what becomes of four numbers by one function n times."""
    return sum_of_chain(n, steps(lambda x, k: fn(x)))


def reading(ws: list[Tensor]) -> Run:
    return compiled(steps(lambda x, k: x * ws[k])(len(ws)), row(4))


def differentiated(step: Function) -> Make:
    """The gradient of the sum of what n steps make of four numbers, compiled."""
    return lambda n: compiled(gc.grad(sum_of_chain(n, steps(step))), row(4))


# Training -------------------------------------------------------------------------------------------

_APART = ("LARS", "Optimizer", "AdamOffload", "AdaFactor", "Lamb", "Momentum")
OPTIMISERS = [
    name
    for name in nn.optim.__all__  # type: ignore[attr-defined]
    if name not in _APART and issubclass(getattr(nn, name), nn.Optimizer)
]

Optimiser = Callable[[Any], Any]


def parameters(n: int) -> list[Parameter]:
    return [Parameter(row(4), name=f"w{k}") for k in range(n)]


def first_step(make: Optimiser, weights: Callable[[int], list[Parameter]] = parameters) -> Make:
    def made(n: int) -> Run:
        of = weights(n)
        optimizer = make(of)
        gradients = tuple(row(*w.shape) for w in of)
        return lambda: optimizer(gradients)

    return made


def groups(weights: list[Parameter]) -> Any:
    return nn.Adam([{"params": [w], "lr": 0.1 + k / len(weights)} for k, w in enumerate(weights)])


def training(n: int, change: Function = lambda gradients: gradients) -> tuple[Function, Tensor]:
    weights = parameters(n)
    optimizer = nn.Adam(weights)
    loss = sum_of_chain(n, steps(lambda x, k: ops.tanh(x * weights[k])))
    step = gc.value_and_grad(loss, None, weights)

    def train(x: Tensor) -> Tensor:
        value, gradients = step(x)
        optimizer(change(gradients))
        return value

    return train, row(4)


def second_step(n: int) -> Run:
    train, x = training(n)
    step = gc.jit(train)
    step(x)
    return lambda: [step(x) for _ in range(20)]


# Cells ----------------------------------------------------------------------------------------------


def dense(n: int, width: int = 4) -> Any:
    return nn.SequentialCell([nn.Dense(width, width) for _ in range(n)])


def trained(n: int) -> Run:
    cells = dense(n)
    optimizer = nn.Adam(cells.trainable_params())
    step = nn.TrainOneStepCell(nn.WithLossCell(cells, nn.MSELoss()), optimizer)
    return lambda: step(row(4, 4), row(4, 4))


def saved(net: Any) -> None:
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "net.ckpt")
        gc.save_checkpoint(net, path)
        gc.load_param_into_net(net, gc.load_checkpoint(path))


# The table ------------------------------------------------------------------------------------------

#: How large n is, a name, and what makes a run of a size. What that does beforehand is not timed.
OTHERS: list[tuple[int, str, Make]] = [
    (1000, "slices, eager", lambda n: called(slices(n), row(n))),
    (1000, "slices, gradient, eager", lambda n: called(gc.grad(slices(n)), row(n))),
    (2000, "assignments, eager",
     lambda n: called(written(lambda y, k: y.__setitem__(k, float(k)))(n), ops.zeros((n,)))),
    (500, "assignments to places of their own",
     lambda n: compiled(
         gc.grad(sum_of_chain(n, written(lambda y, k: y.__setitem__(k, y[k] * 2.0)))), row(n))),
    (4000, "transposes, eager", lambda n: called(lambda x: steps(lambda y, k: y.T)(n)(x) * 2.0, row(4, 4))),
    (4000, "reshapes and slices, eager",
     lambda n: called(lambda x: steps(lambda y, k: y.reshape((2, 8) if k % 2 else (4, 4))[:])(n)(x) * 2.0,
                      row(4, 4))),
    (1000, "shrinking slices, eager",
     lambda n: called(lambda x: steps(lambda y, k: y[1:])(n)(x) * 2.0, row(n + 2))),
    (1000, "writes through a view of views", lambda n: called(written_views, n)),
    (1000, "writes through a view of views, compiled",
     lambda n: compiled(written_views_compiled(n), row(4, 4))),
    (1000, "views kept while their base is written", lambda n: called(kept_views, n)),
    (500, "views kept while their base is written, compiled",
     lambda n: compiled(kept_views_compiled(n), row(8))),
    (250, "values read in a trace",
     lambda n: called(gc.grad(steps(lambda x, k: x * (1.01 if float(x) > 0 else 1.02))(n)), Tensor(0.5))),
    (250, "values read behind values that are not", lambda n: called(gc.grad(read_behind(n)), row(4))),
    (250, "values read after all are recorded", lambda n: called(gc.grad(read_afterwards(n)), row(4))),
    (250, "constants read in a trace", lambda n: called(gc.grad(read_constants(n)), row(4))),
    (1000, "gradients by n tensors", lambda n: called(watched_all, many(n, 4))),
    (100, "n gradients of one tensor each", lambda n: called(watched_each, many(n, 4))),
    (500, "scopes of watch", lambda n: compiled(steps(scope_of_watch)(n), row(4))),
    (500, "transforms inside", lambda n: compiled(steps(lambda x, k: x + SIN(x) * 0.1)(n), row(4))),
    (250, "transforms inside, gradient", differentiated(lambda x, k: x + SIN(x) * 0.1)),
    (250, "forward transforms inside, gradient",
     differentiated(lambda x, k: x + gc.jvp(ops.sin, x, x)[1] * 0.1)),
    (250, "transforms of parameters inside", lambda n: compiled(parameter_inside(n), row(4))),
    (250, "vmaps inside",
     lambda n: compiled(steps(lambda x, k: gc.vmap(lambda a: ops.sin(a) * 2.0)(x))(n), row(4))),
    (250, "compiled functions inside",
     lambda n: compiled(gc.grad(with_one(gc.jit(lambda x: ops.sin(x) * 2.0), n)), row(4))),
    (250, "custom_vjp", lambda n: compiled(gc.grad(with_one(with_vjp(), n)), row(4))),
    (250, "custom_vjp, second order",
     lambda n: compiled(gc.grad(slope(with_one(with_vjp(), n))), row(4))),
    (250, "custom_jvp", lambda n: compiled(gc.grad(with_one(with_jvp(), n)), row(4))),
    (250, "hooks", differentiated(hooked)),
    (250, "recomputed segments",
     differentiated(lambda x, k: gc.recompute(lambda y: ops.sin(y) * ops.cos(y), x))),
    (500, "prints", lambda n: called(silently, compiled(steps(printed)(n), row(2)))),
    (500, "random draws",
     lambda n: compiled(steps(lambda x, k: x + ops.standard_normal((8,)) * 0.1)(n), row(8))),
    (500, "dropouts, gradient",
     lambda n: compiled(gc.grad(sum_of_chain(n, steps(lambda x, k: ops.dropout(ops.sin(x), 0.5)))), row(8))),
    (1000, "tensors that outlive their function", lambda n: called(outlived, n)),
    (1000, "a tree of n leaves", lambda n: compiled(gc.grad(sum_of_tree), tree(n))),
    (1000, "a tree of n leaves, jvp",
     lambda n: called(lambda xs: gc.jvp(lambda *xs: sum_of([x * x for x in xs]), xs, xs), (*many(n, 4),))),
    (1000, "globals read by a compiled function",
     lambda n: reading(many(n, 4))),
    (2000, "second calls of a tree of n leaves", second_calls),
    (500, "n compiled functions",
     lambda n: lambda: [gc.jit(lambda x, k=k: x * k)(row(2)) for k in range(n)] and None),
    (200, "n signatures of one compiled function",
     lambda n: called(lambda xs, fn: [fn(x) for x in xs] and None,
                      tensors(range(2, n + 2)), gc.jit(lambda x: ops.sin(x)))),
    (2000, "vmap of a chain", lambda n: compiled(gc.vmap(chain(n)), row(8, 4))),
    (1000, "vmap of a gradient of a chain",
     lambda n: compiled(gc.vmap(gc.grad(sum_of_chain(n))), row(8, 4))),
    (2000, "jvp of a chain", lambda n: compiled(lambda x: gc.jvp(chain(n), x, x), row(8))),
    (1000, "jvp of a gradient of a chain",
     lambda n: compiled(lambda x: gc.jvp(gc.grad(sum_of_chain(n)), x, x), row(8))),
    (500, "gradient of a gradient of a chain",
     lambda n: compiled(gc.grad(slope(sum_of_chain(n))), row(8))),
    (250, "jet of a chain", lambda n: compiled(lambda x: ops.jet(chain(n), x, ops.stack([x, x, x])), row(8))),
    (250, "laplacian of a chain", lambda n: compiled(lambda x: gc.laplacian(sum_of_chain(n))(x), row(3))),
    (1000, "linearize of a chain", lambda n: lambda: gc.linearize(chain(n), row(8))[1](row(8))),
    (1000, "vjp of a chain", lambda n: lambda: gc.vjp(chain(n), row(8))[1](row(8))),
    (500, "jacrev of n outputs", lambda n: lambda: gc.jacrev(lambda x: ops.sin(x) * 2.0)(row(n))),
    (250, "text of a graph and a plan",
     lambda n: lambda: (gc.graph_text(chain(n), row(8)), gc.plan_text(chain(n), row(8)))),
    *((250, f"{name}, first step", first_step(lambda w, name=name: getattr(nn, name)(w, learning_rate=0.01)))
      for name in [*OPTIMISERS, "Lamb"]),
    (250, "AdaFactor, first step", first_step(nn.AdaFactor)),
    (250, "LARS, first step", first_step(lambda w: nn.LARS(nn.SGD(w, learning_rate=0.01)))),
    (250, "Momentum, first step", first_step(lambda w: nn.Momentum(w, 0.01, 0.9))),
    (250, "a training step with Adam", lambda n: called(*training(n))),
    (250, "a training step with Adam, compiled", lambda n: compiled(*training(n))),
    (250, "a second training step with Adam, compiled", second_step),
    (100, "a training step with Adam, cuda", lambda n: on_gpu(*training(n))),
    (250, "a training step with clipped gradients",
     lambda n: compiled(*training(n, lambda g: ops.clip_by_global_norm(g, 1.0)))),
    (250, "parameters of n shapes with Adam",
     first_step(nn.Adam, lambda n: [Parameter(row(k + 2), name=f"w{k}") for k in range(n)])),
    (250, "parameter groups with Adam", first_step(groups)),
    (250, "making Adam", lambda n: called(nn.Adam, parameters(n))),
    (250, "making a sequence of cells", lambda n: called(dense, n)),
    (250, "a list of cells, appended to",
     lambda n: called(steps(lambda cells, k: cells.append(nn.Dense(4, 4)) or cells)(n), nn.CellList([]))),
    (250, "a sequence of cells", lambda n: compiled(dense(n), row(4, 4))),
    (100, "training a sequence of cells", trained),
    (1000, "parameters of a cell",
     lambda n: called(lambda net: (net.trainable_params(), net.parameters_dict(),
                                   list(net.cells_and_names())), dense(n, 2))),
    (500, "saving and loading", lambda n: called(saved, dense(n, 2))),
]  # fmt: skip


def of_graph(how: Function, change: Function, program: Program, arguments: Any) -> Make:
    return lambda n: how(change(program(n)), *tensors(arguments(n)))


def lines() -> Iterator[tuple[str, tuple[int, Make]]]:
    for n, name, program, arguments in GRAPHS:
        for of, change in (("", lambda fn: fn), (", gradient", gradient)):
            yield name + of, (n, of_graph(compiled, change, program, arguments))
            yield f"{name}{of}, cuda", (n, of_graph(on_gpu, change, program, arguments))
    for n, name, make in OTHERS:
        yield name, (n, make)


LINES = dict(lines())
_launches = itertools.count(1 << 21)


# Running --------------------------------------------------------------------------------------------


def seconds(make: Make, n: int) -> float:
    """Of the processor, for one run."""
    run = make(n)
    garbage.collect()
    gc._core.weigh_cuda_plans(launch=next(_launches))  # settings that no plan is kept by
    begin = time.process_time()
    run()
    return time.process_time() - begin


def exponent_of(least: Sequence[float]) -> float:
    """inf: of one size alone."""
    last = sum(t < math.inf for t in least) - 1
    return math.log2(least[last] / least[0]) / last if last else math.inf


def measured(make: Make, n: int, repeats: int, limit: float) -> tuple[int, list[float], float]:
    """n, the least seconds at n, 2 n and 4 n, and the exponent; sizes that take too long are left out.
    n is a quarter where 4 n would be one of them. Where the exponent is too much, other work may have
    been in the way: as often again, and once more."""
    if seconds(make, n) * 16 > limit:
        n = max(1, n // 4)
    least = [math.inf] * 3
    for turn in range(3 * repeats):
        if turn and turn % repeats == 0 and exponent_of(least) <= MOST:
            break
        for k in range(3):
            if k > 0 and least[k - 1] * 4 > limit:
                break
            least[k] = min(least[k], seconds(make, n << k))
    return n, [t for t in least if t < math.inf], exponent_of(least)


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
    line = "| {:52} | {:>5} | {:>8} | {:>8} | {:>8} | {:>8} |"
    print(
        line.format("", "n", "n", "2 n", "4 n", "exponent"),
        "|---|---:|---:|---:|---:|---:|",
        sep="\n",
    )
    for name, (n, make) in LINES.items():
        wanted = options.lines
        if wanted and not any(w == name if options.exact else w in name for w in wanted):
            continue
        n = max(1, round(n * options.times))
        try:
            n, found, exponent = measured(make, n, options.repeats, options.limit)
            if exponent > MOST and found[-1] * 16 < options.limit:
                n, found, exponent = measured(make, 4 * n, options.repeats, options.limit)
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {e}", flush=True)
            above += 1
            continue
        times = [f"{t:.3f}" for t in found] + [""] * (3 - len(found))
        mark = " *" if exponent > MOST else ""
        above += exponent > MOST
        print(line.format(name, n, *times, f"{exponent:.2f}{mark}"), flush=True)
    print(f"{above} above {MOST}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
