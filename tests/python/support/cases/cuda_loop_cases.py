"""Loops that tests plan for a GPU, with what is expected of them; recurrent layers' plans and training."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from loop_cases import BODIES, arrays, counted, function, normal, reference, scalar, unrolled

import gradcell as ms
from gradcell import Tensor, cuda, nn, ops
from gradcell.base import tree
from gradcell.ops.control.loops import loop

#: By name: what is run, the same without loops (or its values), the arguments.
CASES: dict[str, tuple[Callable[..., Any], Any, list[Tensor]]] = {}


def add(name: str, how: Callable[..., Any], *xs: Any) -> None:
    """how(loop) and how(unrolled) are functions of xs."""
    CASES[name] = (how(loop), how(unrolled), [Tensor(x) for x in xs])


def cubed(gradient: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: sum((d * d * d).sum() for d in gradient(*xs))


def derivative(f: Callable[..., Any], order: int, count: int) -> Callable[..., Any]:
    every = tuple(range(count))
    for _ in range(order - 1):
        f = cubed(ms.grad(f, every))
    return ms.grad(f, every)


for _name in BODIES:
    _xs = arrays(_name, 4)
    _count = len(_xs)
    for _reverse in (False, True):
        _way = " backwards" if _reverse else ""
        add(_name + _way, lambda how, n=_name, r=_reverse: function(n, how, 4, r), *_xs)
    for _order in (1, 2, 3):
        if _order < 3 or _name in ("dense", "lstm", "elements"):
            add(
                f"{_name}, derivative {_order}",
                lambda how, n=_name, o=_order, c=_count: derivative(
                    scalar(function(n, how, 4, o == 1)), o, c
                ),
                *_xs,
            )


def of_one_step(how: Any) -> Any:
    return function("lstm", how, 1, False)


add("one step", of_one_step, *arrays("lstm", 1))


def nested(how: Any) -> Any:
    """A loop whose body is a loop, with numbers from Python inside."""

    def f(h: Tensor, xs: Tensor, w: Tensor) -> Any:
        def inner(state: Any, slices: Any) -> Any:
            last, kept = how(
                lambda s, x: ([ops.tanh(s[0] * w + x[0] * 0.5)], [s[0]]), state, [slices[0]], 3
            )
            return last, [kept[0].sum(0), last[0] * 2.0]

        last, kept = how(inner, [h], [xs], 2)
        return (*last, *kept)

    return f


_nested = [normal(4), normal(2, 3, 4), normal(4)]
add("loops in loops", nested, *_nested)
for _order in (1, 2):
    add(
        f"loops in loops, derivative {_order}",
        lambda how, o=_order: derivative(scalar(nested(how)), o, 3),
        *_nested,
    )


def integers(how: Any) -> Any:
    def f(n: Tensor, h: Tensor, xs: Tensor, w: Tensor) -> Any:
        last, kept = how(lambda s, x: counted(s, x, w), [n, h], [xs], 5)
        return (*last, *kept)

    return f


add("integers", integers, np.array(3, np.int32), normal(4), normal(5, 4), normal(4))


def at_places(how: Any) -> Any:
    """Rows of a table at places that differ from step to step, and their gradient."""

    def f(h: Tensor, places: Tensor, table: Tensor) -> Any:
        last, kept = how(
            lambda s, x: ([ops.tanh(s[0] + ops.gather(table, x[0], 0))], [s[0]]), [h], [places], 4
        )
        return last[0].sum() + (kept[0] ** 2).sum()

    return lambda *xs: ms.value_and_grad(f, (0, 2))(*xs)


add("gathers", at_places, normal(2, 3), np.array([[0, 4], [1, 1], [2, 0], [4, 4]]), normal(5, 3))


def wide_rows(how: Any) -> Any:
    """A body that is one kernel of a narrow network; softmax beside a scan of its rows."""

    def f(h: Tensor, xs: Tensor, u: Tensor, v: Tensor) -> Any:
        def step(s: Any, x: Any) -> Any:
            y = ops.tanh(ops.matmul(ops.tanh(ops.matmul(s[0], u) + x[0]), v))
            return [y], [ops.softmax(y, -1), ops.cumsum(y, 1)]

        last, kept = how(step, [h], [xs], 3)
        return (*last, *kept)

    return f


add("a network", wide_rows, normal(40, 4), normal(3, 40, 8), normal(4, 8), normal(8, 4))


def empty(how: Any) -> Any:
    """Results without elements among others."""

    def f(h: Tensor, e: Tensor, xs: Tensor) -> Any:
        last, kept = how(lambda s, x: ([s[0] + x[0], s[1] * 2.0], [s[1], s[0]]), [h, e], [xs], 3)
        return (*last, *kept)

    return f


add("nothing", empty, normal(2), np.zeros((0, 3)), normal(3, 2))


def layer(kind: str) -> tuple[nn.Cell, list[np.ndarray], list[np.ndarray]]:
    """A layer, what it is given, and what comes out by NumPy: outputs and last states."""
    net = getattr(nn, kind)(3, 5, bidirectional=True, dtype=ms.float64)
    parameters = [
        [p.asnumpy() for p in part]
        for part in (net.w_ih_list, net.w_hh_list, net.b_ih_list, net.b_hh_list)
    ]
    x, h, c = normal(6, 4, 3), normal(2, 4, 5), normal(2, 4, 5)
    outs, last = [], []
    for k in (0, 1):
        order = slice(None, None, -1 if k else 1)
        out, *end = reference(kind, x[order], h[k], c[k], *(p[k] for p in parameters))
        outs.append(out[order]), last.append(end)
    states = [np.stack([e[i] for e in last]) for i in range(2 if kind == "LSTM" else 1)]
    return net, [x, h, c], [np.concatenate(outs, 2), *states]


def add_layer(kind: str) -> None:
    net, xs, expected = layer(kind)

    def f(x: Tensor, h: Tensor, c: Tensor) -> Any:
        out, state = net(x, (h, c) if kind == "LSTM" else h)
        return out, state

    CASES[f"layer {kind}"] = (f, expected, [Tensor(x) for x in xs])


for _kind in ("RNN", "LSTM", "GRU"):
    add_layer(_kind)

_xs = [Tensor(normal(3)) for _ in range(4)]


def scanned(first: Tensor, *xs: Tensor) -> Any:
    total, kept = ops.Scan()(lambda c, x: (c * 0.5 + x, c * c), first, list(xs), unroll=False)
    return (total, *kept)


def scan_by_numpy(first: np.ndarray, *xs: np.ndarray) -> list[np.ndarray]:
    kept = []
    for x in xs:
        kept.append(first * first)
        first = first * 0.5 + x
    return [first, *kept]


CASES["Scan"] = (scanned, scan_by_numpy(*(x.asnumpy() for x in _xs)), _xs[:1] + _xs[1:])
CASES["ForiLoop"] = (
    lambda x: ops.ForiLoop()(1, 6, lambda i, v: v * i + x, x, unroll=False),
    # ((((x 1 + x) 2 + x) 3 + x) 4 + x) 5 + x
    [_xs[0].asnumpy() * (120 + 120 + 60 + 20 + 5 + 1)],
    _xs[:1],
)


def loops_of(plan: Any, times: int = 1) -> list[dict[str, Any]]:
    return [s["loop"] for s in plan.steps if "loop" in s]


def expected(name: str) -> list[Tensor]:
    _, want, xs = CASES[name]
    if callable(want):
        return tree.leaves(want(*xs))
    return [Tensor(w) for w in want]


# Plans -------------------------------------------------------------------------------------------


def every_step(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Steps and those of loops' bodies."""
    return [
        e
        for s in steps
        for e in [s, *(every_step(s["loop"]["body"]["steps"]) if "loop" in s else [])]
    ]


def kinds(steps: list[dict[str, Any]]) -> list[str]:
    """What steps are, kernels without their numbers."""
    return [re.sub(r"_\d+$", "", s.get("kernel", next(iter(s)))) for s in steps]


def recurrent_plan(kind: str, steps: int, trains: bool) -> Any:
    net = getattr(nn, kind)(64, 128)
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), 0.001)
    slope = ms.value_and_grad(lambda x: (net(x)[0] ** 2).sum(), None, net.trainable_params())

    def step(x: Tensor) -> Tensor:
        loss, gradients = slope(x)
        optimizer(gradients)
        return loss

    x = Tensor(np.zeros((steps, 32, 64), np.float32))
    return cuda.plan_of(step if trains else lambda x: net(x)[0], x)


TRAINING = """
def train(target, steps):
    global rng
    rng = np.random.default_rng(3)
    ms.set_context(device_target=target, mode=ms.GRAPH_MODE)
    net = nn.LSTM(3, 4)
    for p in net.get_parameters(): p.set_data(tensor(*p.shape))
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
    slope = ms.value_and_grad(lambda x, y: ((net(x)[0] - y) ** 2).mean(), None, net.trainable_params())
    @ms.jit
    def step(x, y, rate):
        loss, gradients = slope(x, y)
        optimizer(gradients)
        return loss * rate
    data = [(tensor(7, 2, 3), tensor(7, 2, 4)) for _ in range(10)]
    losses = [step(*data[k % 10], 1.0 + k) for k in range(steps)]
    return [float(v) for v in losses], *[p.asnumpy() for p in net.get_parameters()]
"""
