"""Loops on a GPU are loops: a body's kernels are written once and launched once a step. Their text run as
C++, and the engine on the made-up GPU, beside the same steps one by one and NumPy, to third order."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_cases import compare
from cuda_emulation import Batch, Kernels, Nvrtc, Plans, chosen
from loop_cases import BODIES, arrays, counted, function, normal, reference, scalar, unrolled
from made_up_gpu import Process

import gradcell as ms
from gradcell import Tensor, cuda, nn, ops
from gradcell.base import tree
from gradcell.ops.control.loops import loop

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

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

PLANS = [name for name in CASES if name != "one step"]


@pytest.fixture(scope="module")
def plans() -> Plans:
    return Plans(CASES, lambda name: cuda.plan_of(CASES[name][0], *CASES[name][2]))


@pytest.fixture(scope="module")
def batch(
    plans: Plans, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Batch:
    return Batch(chosen(request, plans), tmp_path_factory.mktemp("loops"))


def loops_of(plan: Any, times: int = 1) -> list[dict[str, Any]]:
    return [s["loop"] for s in plan.steps if "loop" in s]


def expected(name: str) -> list[Tensor]:
    _, want, xs = CASES[name]
    if callable(want):
        return tree.leaves(want(*xs))
    return [Tensor(w) for w in want]


@pytest.mark.one_in(64)
@pytest.mark.parametrize("name", CASES)
def test_the_text_as_cpp_agrees_with_the_same_steps(name: str, plans: Plans, batch: Batch) -> None:
    want, number = expected(name), list(CASES).index(name)
    assert bool(loops_of(plans[name])) == (name != "one step")
    compare(name, batch.run(number), want)
    compare(name, batch.run(number, aligned=False, grid=3, threads=(4, 2)), want)
    compare(name, batch.run(number, threads=None, grid=3), want)


ARCHITECTURES = ("sm_75", "sm_80", "sm_100", "sm_90")
SOME = ["lstm, derivative 2", "loops in loops", "gathers", "a network"]


@pytest.mark.one_in(32)
@pytest.mark.parametrize(
    "arch",
    [*(pytest.param(a, marks=pytest.mark.slow) for a in ARCHITECTURES[:-1]), ARCHITECTURES[-1]],
)
def test_kernels_compile(arch: str, plans: Plans) -> None:
    kernels = Kernels([plans[name] for name in SOME])
    assert Nvrtc().compile(kernels.source(), arch, quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_kernel_spills_registers(arch: str, plans: Plans) -> None:
    kernels = Kernels(list(plans.values()))
    usage = Nvrtc().usage(kernels.source(), arch)
    assert len(usage) == len(kernels.texts)
    assert {name: of for name, of in usage.items() if of.spilled} == {}


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


@pytest.mark.parametrize(("kind", "launches"), [("LSTM", 5), ("GRU", 6)])
def test_plans_do_not_grow_with_the_steps(kind: str, launches: int) -> None:
    short, long = (recurrent_plan(kind, n, False) for n in (10, 1000))
    assert short.kernels == long.kernels and kinds(short.steps) == kinds(long.steps)
    assert len(every_step(long.steps)) <= 6 and (long.launches, long.products) == (1001, 1001)
    few, many, most = (recurrent_plan(kind, n, True) for n in (100, 1000, 50_000))
    assert many.kernels == most.kernels and kinds(many.steps) == kinds(most.steps)
    for one, other in zip(loops_of(few), loops_of(many), strict=True):
        assert kinds(one["body"]["steps"]) == kinds(other["body"]["steps"])
        assert one["steps"] == 100 and other["steps"] == 1000
    assert many.launches + many.products <= launches * 1000 + 20
    assert len(every_step(many.steps)) <= 30 and len(many.source) < 100_000
    # Gradients of weights are products of all steps' rows, outside.
    rows = [s["matmul"]["k"] for s in many.steps if "matmul" in s and s["matmul"]["transpose_a"]]
    assert rows == [32 * 1000] * 2


def test_the_table_has_bodies() -> None:
    plan = recurrent_plan("LSTM", 1000, False)
    lines = plan.table().splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.startswith("loop"))
    assert "1000 times" in lines[at] and lines[at + 1].startswith("  matmul float32")
    assert re.match(r"  gc_\w+", lines[at + 2])
    assert ": 1001 launches of 2 kernels, 1001 matrix products" in lines[-1]
    assert sum(s["flops"] for s in plan.steps) == 2 * 1000 * 32 * 512 * (64 + 128)


def test_loops_of_one_step_and_of_none_are_none() -> None:
    for steps in (0, 1):
        xs = arrays("lstm", steps)
        plan = cuda.plan_of(function("lstm", loop, steps, False), *map(Tensor, xs))
        assert loops_of(plan) == []


def test_more_elements_in_a_body_than_32_bits_can_count() -> None:
    """Sizes inside decide, for the whole module."""

    def f(h: Tensor, places: Tensor) -> Tensor:
        def step(s: Any, x: Any) -> Any:
            far = ops.broadcast_to(s[0].expand_dims(1), (1 << 17, 1 << 17)) * x[0]
            return [ops.sin(far).sum(1)], []

        return loop(step, [h], [places], 3)[0][0]

    h, places = Tensor(np.zeros(1 << 17, np.float32)), Tensor(np.zeros((3, 1 << 17), np.float32))
    plan = cuda.plan_of(f, h, places)
    assert loops_of(plan) and "typedef long long gc_index" in plan.raw["prelude"]


# Other numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float16", 2e-3), ("bfloat16", 2e-2), ("float32", 1e-6)]
)
def test_smaller_numbers(dtype: str, tolerance: float, tmp_path: Any) -> None:
    """Beside the same steps in float64."""
    xs = [Tensor(x).astype(getattr(ms, dtype)) for x in arrays("lstm", 4)]
    every = tuple(range(len(xs)))
    slope = ms.grad(scalar(function("lstm", loop, 4, False)), every)
    exact = ms.grad(scalar(function("lstm", unrolled, 4, False)), every)(
        *(x.astype(ms.float64) for x in xs)
    )
    plan = cuda.plan_of(slope, *xs)
    assert loops_of(plan)
    got = Batch([plan], tmp_path).run(0)
    for a, b in zip(got, exact, strict=True):
        scale = np.abs(b.asnumpy()).max()
        assert np.abs(a.astype(np.float64) - b.asnumpy()).max() <= 8 * tolerance * scale


def test_64_bit_indices(plans: Plans, tmp_path: Any) -> None:
    wide = Batch([plans[n] for n in SOME], tmp_path, wide=True)
    for number, name in enumerate(SOME):
        compare(name, wide.run(number), expected(name))


@pytest.mark.one_in(1)
def test_an_index_out_of_range_in_a_step(tmp_path: Any) -> None:
    def f(h: Tensor, places: Tensor) -> Tensor:
        return loop(lambda s, x: ([ops.gather(s[0], x[0], 0)], []), [h], [places], 2)[0][0]

    h = Tensor(normal(3))
    good, bad = ([[0, 1, 2], last] for last in ([2, 1, 1], [0, 3, 1]))
    runs = Batch([cuda.plan_of(f, h, Tensor(np.array(p))) for p in (good, bad)], tmp_path)
    np.testing.assert_array_equal(runs.run(0)[0], h.asnumpy()[[2, 1, 1]])
    with pytest.raises(IndexError):
        runs.run(1)


# The engine --------------------------------------------------------------------------------------

ALL_BODIES = """
import loop_cases as cases
from gradcell.ops.control.loops import loop
def of(how, reverse):
    def f(*xs):
        at, results = 0, []
        for name in sorted(cases.BODIES):
            _, first, sliced, same = cases.BODIES[name]
            count = len(first) + len(sliced) + len(same)
            results += cases.function(name, how, 5, reverse)(*xs[at : at + count])
            at += count
        return results
    return f
def both(make, *xs):
    ms.set_context(device_target="CPU")
    want = [w.asnumpy() for w in make(cases.unrolled)(*xs)]
    ms.set_context(device_target="GPU")
    f = ms.jit(make(loop))
    for _ in range(4):
        for got, w in zip(f(*xs), want, strict=True):
            np.testing.assert_allclose(got.asnumpy(), w, rtol=1e-9, atol=1e-11)
xs = [Tensor(x) for name in sorted(cases.BODIES) for x in cases.arrays(name, 5)]
"""


@pytest.mark.one_in(16)
@pytest.mark.parametrize("reverse", [True, False])
def test_where_steps_find_their_arrays(process: Process, reverse: bool) -> None:
    """What is carried and kept in all ways, on a GPU that does everything late; replayed as a graph."""
    process.good(ALL_BODIES + f"both(lambda how: of(how, {reverse}), *xs)")
    counts = process.counts()
    assert counts["graphs"] >= 1 and counts["captures"] >= 1, counts


def test_derivatives_there(process: Process) -> None:
    process.good(
        ALL_BODIES
        + """
def slopes(how):
    f = cases.scalar(of(how, False))
    return ms.grad(f, tuple(range(len(xs))))
both(slopes, *xs)
"""
    )
    assert process.counts()["graphs"] >= 1


def test_what_a_step_need_not_copy(process: Process) -> None:
    """States lie where they are kept; those before each step are copied at once, or a step on."""

    def copies(kept: str) -> int:
        script = """
from gradcell.ops.control.loops import loop
ms.set_context(device_target="GPU")
def step(s, x):
    y = ops.tanh(s[0] + x[0])
    return [y], KEPT
got = loop(step, [tensor(3)], [tensor(20, 3)], 20)
[v.asnumpy() for v in (*got[0], *got[1])]
"""
        process.good(script.replace("KEPT", kept))
        return process.counts()["copies"]

    assert copies("[]") == 1  # the last state
    assert copies("[y]") == 1
    assert copies("[s[0]]") == 2  # and the first one
    assert copies("[y, s[0]]") == 3  # and the others
    assert copies("[y, y.reshape(3, 1)]") == 2


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


def test_training_is_a_graph_launch_a_step(process: Process) -> None:
    """Batches from ever other places and a number that changes: as with any plan."""
    process.good(
        TRAINING
        + """
for a, b in zip(train("GPU", 40), train("CPU", 40)):
    np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6)
"""
    )
    counts = process.counts()
    assert counts["graphs"] >= 28 and counts["captures"] <= 4, counts
    assert counts["compiles"] <= 4, counts


def test_very_long_loops_are_no_graphs(process: Process) -> None:
    script = """
ms.set_context(device_target="GPU")
f = ms.jit(lambda x: ops.ForiLoop()(0, STEPS, lambda i, v: v + 1.0, x, unroll=False))
for _ in range(4): assert f(tensor(1) * 0.0).asnumpy() == STEPS
"""
    process.good(script.replace("STEPS", "3000"))
    assert process.counts()["graphs"] >= 1
    process.good(script.replace("STEPS", "70000"))
    assert process.counts()["graphs"] == 0


def test_launches_of_a_body_are_named(process: Process) -> None:
    script = """
from gradcell.ops.control.loops import loop
ms.set_context(device_target="GPU")
x, h = tensor(3, 4), tensor(4)
f = ms.jit(lambda h, x: loop(lambda s, t: ([ops.tanh(s[0] + t[0])], []), [h], [x], 3)[0][0])
a = h.asnumpy()
for row in x.asnumpy(): a = np.tanh(a + row)
for _ in range(4): np.testing.assert_allclose(f(h, x).asnumpy(), a, rtol=1e-5)
"""
    process.good(script, CUDA_LAUNCH_BLOCKING="1")
    assert process.counts()["graphs"] == 0
