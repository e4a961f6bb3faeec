"""Loops on a GPU that are one kernel (csrc/cuda/tiles/loop_kernel.h): their text run as C++, beside the same
steps one by one and NumPy, to third order; which loops are such, and what NVRTC makes of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cuda_cases import compare
from cuda_emulation import Batch, Kernels, Nvrtc, Plans, chosen
from cuda_loop_cases import (
    CASES as LOOPS,
    TRAINING,
    every_step,
    expected,
    kinds,
    loops_of,
    recurrent_plan,
)
from loop_cases import normal, scalar, unrolled
from made_up_gpu import Process
from random_bodies import Loop, random_loop

import gradcell as ms
from gradcell import Tensor, _core, cuda, ops
from gradcell.base import tree
from gradcell.ops.control.loops import loop

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

#: By name: the body, how many of what it is given are states and slices, all of it, the steps.
BODIES: dict[str, tuple[Callable[..., Any], int, int, list[np.ndarray], int]] = {}


def add(name: str, body: Callable[..., Any], states: int, slices: int, *xs: Any, steps: int = 3):
    BODIES[name] = (body, states, slices, list(xs), steps)


def memory(s: Any, x: Any, w: Tensor, b: Tensor) -> Any:
    i, f, g, o = ops.split(x[0] + ops.matmul(s[0], w.T) + b, w.shape[1], 1)
    c = ops.sigmoid(f) * s[1] + ops.sigmoid(i) * ops.tanh(g)
    h = ops.sigmoid(o) * ops.tanh(c)
    return [h, c], [h]


def cells(rows: int, width: int, scale: float = 1.0) -> list[np.ndarray]:
    shapes = (rows, width), (rows, width), (3, rows, 4 * width), (4 * width, width), (4 * width,)
    return [scale * normal(*s) for s in shapes]


add("several rows a block", memory, 2, 1, *cells(37, 6))
add("a matrix in registers too", memory, 2, 1, *(x.astype(np.float32) for x in cells(3, 120, 0.3)))
add("halves", memory, 2, 1, *(x.astype(np.float16) for x in cells(5, 4, 0.5)))


def shifted_operand(s: Any, x: Any, u: Tensor, v: Tensor, w: Tensor) -> Any:
    """Products whose sizes four does not divide, of a part of a row; two of them added up."""
    y = ops.matmul(s[0][:, 1:6], u) + ops.matmul(x[0], v)
    h = ops.tanh(y)
    return [ops.matmul(h, w) * 0.5], [y, h[:, :2]]


add("parts of rows", shifted_operand, 1, 1,
    normal(5, 7), normal(3, 5, 2), normal(5, 3), normal(2, 3), normal(3, 7))  # fmt: skip


def normed(s: Any, x: Any, a: Tensor) -> Any:
    """Sums along rows, of few terms and of many."""
    y = s[0] * a + x[0]
    y = y - y.mean(-1, keep_dims=True)
    return [y / (1 + (y * y).sum(-1, keepdims=True))], [ops.reduce_max(y, -1)]


add("sums along rows", normed, 1, 1, normal(3, 90), normal(3, 3, 90), normal(90))
add("sums along short rows", normed, 1, 1, normal(40, 5), normal(3, 40, 5), normal(5))


def springs(s: Any, x: Any, k: Tensor, m: Tensor) -> Any:
    """Shifts and zeros around, and a number of each step."""
    at, speed = s
    pull = k * (at[1:] - at[:-1])
    force = ops.pad(pull, (0, 1)) - ops.pad(pull, (1, 0)) + x[0] * ops.roll(at, 2)
    speed = speed + 0.1 * force / m
    at = at + 0.1 * speed
    return [at, speed], [(speed * speed * m).sum(), at[3:70]]


add(
    "one row",
    springs,
    2,
    1,
    0.1 * normal(90),
    0.1 * normal(90),
    normal(3),
    0.3 * normal(89),
    2 + normal(90) ** 2,
)


add("sums of all", normed, 1, 1, normal(1, 300), normal(3, 1, 300), normal(300))
add("numbers and rows", lambda s, x, a: (
    [s[0] * 0.5 + ops.softmax(s[1] * a + s[0], -1).max(),
     ops.tanh(s[1] + (s[1] * a).sum()) - x[0].reshape(-1)],
    [s[0] + x[0].sum()]), 2, 1, normal(), normal(70), normal(3, 7, 10), normal(70))  # fmt: skip
add("a number and a bias of each step", lambda s, x, w: (
    [ops.tanh(s[0] * x[0] + x[1]) @ w], [s[0].sum(-1)]), 1, 2,
    normal(6, 4), normal(3), normal(3, 4), normal(4, 4))  # fmt: skip
add("many elements", lambda s, x, a: ([ops.sin(s[0] * a + x[0])], []), 1, 1,
    normal(900, 5), normal(3, 900, 5), normal(900, 5))  # fmt: skip
add("views of what stays", lambda s, x, a, b: (
    [ops.tanh(s[0] + a.T * b.expand_dims(0)) + x[0][:, ::-1]], [s[0][:, 1]]), 1, 1,
    normal(6, 4), normal(3, 6, 4), normal(4, 6), normal(4))  # fmt: skip
add("backwards in columns", lambda s, x, w: (
    [s[0] + ops.sigmoid(ops.concat([s[0], x[0]], 1)) @ w], [ops.stack([s[0], s[0] * 2.0], 2)]), 1, 1,
    normal(6, 4), normal(3, 6, 3), normal(7, 4))  # fmt: skip
add("one row and matrices", lambda s, x, w, v: (
    [ops.tanh(s[0] @ w + x[0]) + 0.1 * ops.roll(s[0] @ v.T, 1, 1)], [s[0].sum()]), 1, 1,
    normal(1, 9), normal(3, 1, 9), normal(9, 9), normal(9, 9))  # fmt: skip


def attracted(s: Any, x: Any, m: Tensor) -> Any:
    """All pairs of 9 bodies: places that are no few runs of neighbours."""
    at, speed = s
    apart = at.expand_dims(0) - at.expand_dims(1)
    squares = (apart * apart).sum(-1) + 0.5
    pull = (apart * (m / (squares * ops.sqrt(squares))).expand_dims(-1)).sum(1)
    speed = speed + 0.1 * pull
    return [at + 0.1 * speed, speed], [squares.T.sum(0), ops.transpose(apart, (2, 1, 0))[:, 3]]


add("pairs of bodies", attracted, 2, 0, normal(9, 3), normal(9, 3), 1 + normal(9) ** 2)

WAYS = {"": 0, ", derivative 1": 1, ", derivative 2": 2}


def made(name: str, how: Callable[..., Any], reverse: bool = False) -> Callable[..., Any]:
    body, states, slices, _, steps = BODIES[name]

    def f(*xs: Tensor) -> tuple[Tensor, ...]:
        one = lambda s, x: body(list(s), list(x), *xs[states + slices :])  # noqa: E731
        last, kept = how(one, xs[:states], xs[states : states + slices], steps, reverse=reverse)
        return (*last, *kept)

    return f


def derived(f: Callable[..., Any], order: int, count: int) -> Callable[..., Any]:
    every = tuple(range(count))
    if order == 0:
        return f
    for _ in range(order - 1):
        inner = ms.grad(scalar(f) if f.__name__ == "f" else f, every)
        f = lambda *xs, g=inner: sum((ops.sin(d) * d).sum() for d in g(*xs))  # noqa: E731
    return ms.grad(scalar(f) if f.__name__ == "f" else f, every)


CASES = {
    f"{name}{way}{', reverse' if reverse else ''}": (name, order, reverse)
    for name in BODIES
    for way, order in WAYS.items()
    for reverse in ([False, True] if order == 0 else [False])
    if order < 2 or name not in ("a matrix in registers too", "halves")
}
#: Loops of test_cuda_loops.py that stay launches: their bodies have sums over rows, scans, gathers or loops.
LAUNCHED = {name for name in LOOPS if re.match("sums|gathers|a network|one step", name)}


WAYS_TO_RUN: list[dict[str, Any]] = [
    {}, {"aligned": False, "grid": 3, "threads": (4, 2)}, {"threads": None, "grid": 3}
]  # fmt: skip


@pytest.fixture(autouse=True)
def few_multiprocessors() -> Iterator[None]:
    """So that blocks have several rows where there are but 37."""
    _core.plan_for_cuda(multiprocessors=4)
    yield
    _core.plan_for_cuda()


def arrays(name: str) -> list[Tensor]:
    return [Tensor(x) for x in BODIES[name][3]]


def program(case: str) -> tuple[Callable[..., Any], list[Tensor]]:
    if case in LOOPS:
        f, _, xs = LOOPS[case]
        return f, xs
    name, order, reverse = CASES[case]
    return derived(made(name, loop, reverse), order, len(arrays(name))), arrays(name)


def wanted(case: str) -> list[Tensor]:
    """Of the same steps one by one, in float64."""
    if case in LOOPS:
        return expected(case)
    name, order, reverse = CASES[case]
    exact = [x.astype(ms.float64) for x in arrays(name)]
    return tree.leaves(derived(made(name, unrolled, reverse), order, len(exact))(*exact))


def agrees(case: str, got: list[np.ndarray], want: list[Tensor]) -> None:
    dtype = np.float64 if case in LOOPS else BODIES[CASES[case][0]][3][0].dtype.type
    if dtype == np.float64:
        return compare(case, got, want)
    bound = {np.float32: 2e-6, np.float16: 2e-2}[dtype]
    for a, b in zip(got, want, strict=True):
        scale = np.abs(b.asnumpy()).max()
        assert np.abs(a.astype(np.float64) - b.asnumpy()).max() <= bound * scale


def planned(case: str) -> Any:
    _core.plan_for_cuda(multiprocessors=4)
    f, xs = program(case)
    plan = cuda.plan_of(f, *xs)
    _core.plan_for_cuda()
    return plan


@pytest.fixture(scope="module")
def plans() -> Plans:
    return Plans([*CASES, *LOOPS], planned)


@pytest.fixture(scope="module")
def batch(
    plans: Plans, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Batch:
    return Batch(chosen(request, plans), tmp_path_factory.mktemp("loop_kernels"))


def loop_kernels(plan: Any) -> list[dict[str, Any]]:
    return [s for s in every_step(plan.steps) if str(s.get("kernel")).startswith("gc_loop")]


@pytest.mark.one_in(64)
@pytest.mark.parametrize("name", [*CASES, *LOOPS])
def test_the_text_as_cpp_agrees_with_the_same_steps(name: str, plans: Plans, batch: Batch) -> None:
    assert bool(loop_kernels(plans[name])) == (name not in LAUNCHED)
    number, want = list(plans).index(name), wanted(name)
    for how in WAYS_TO_RUN:
        agrees(name, batch.run(number, **how), want)


def run(of: Loop, how: Callable[..., Any], *xs: Tensor) -> tuple[Tensor, ...]:
    n, m = of.states, of.states + of.slices
    one = lambda s, x: of.body(list(s), list(x), *xs[m:])  # noqa: E731
    last, kept = how(one, list(xs[:n]), list(xs[n:m]), of.steps, reverse=of.reverse)
    return (*last, *kept)


@pytest.mark.parametrize(
    "first", [pytest.param(k, marks=pytest.mark.slow) for k in range(0, 400, 50)]
)
def test_random_bodies(first: int, tmp_path: Any) -> None:
    """Fifty loops and their gradients; most are kernels."""
    plans, wants = [], []
    for seed in range(first, first + 50):
        of = random_loop(seed)
        xs = [Tensor(x) for x in of.arrays]
        every = tuple(range(len(xs)))
        for order in (0, 1):
            forms = [functools.partial(run, of, how) for how in (loop, unrolled)]
            if order == 1:
                forms = [ms.grad(scalar(f), every) for f in forms]
            plans.append(cuda.plan_of(forms[0], *xs))
            wants.append(tree.leaves(forms[1](*xs)))
    batch = Batch(plans, tmp_path)
    for number, want in enumerate(wants):
        for how in WAYS_TO_RUN:
            for a, b in zip(batch.run(number, **how), want, strict=True):
                scale = max(1.0, np.abs(b.asnumpy()).max(initial=0))
                np.testing.assert_allclose(
                    a, b.asnumpy(), rtol=1e-9, atol=1e-10 * scale, err_msg=f"{first + number // 2}"
                )
    assert sum(bool(loop_kernels(plan)) for plan in plans) > 70


def test_64_bit_indices(plans: Plans, tmp_path: Any) -> None:
    some = ["several rows a block, derivative 1", "one row", "a number and a bias of each step"]
    wide = Batch([plans[name] for name in some], tmp_path, wide=True)
    for number, name in enumerate(some):
        agrees(name, wide.run(number, threads=None), wanted(name))


# Plans -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_training_is_a_few_launches_however_many_steps(kind: str) -> None:
    """4,013 of an LSTM, before."""
    few, many, most = (recurrent_plan(kind, n, True) for n in (100, 1000, 50_000))
    assert many.launches + many.products == len(many.steps) <= 16 and not loops_of(many)
    assert few.kernels == many.kernels == most.kernels and kinds(few.steps) == kinds(most.steps)
    assert len(loop_kernels(many)) == 2
    # Gradients of weights are products of all steps' rows, outside.
    rows = [s["matmul"]["k"] for s in many.steps if "matmul" in s and s["matmul"]["transpose_a"]]
    assert rows == [32 * 1000] * 2


def test_what_it_counts() -> None:
    _core.plan_for_cuda()
    plan = recurrent_plan("LSTM", 1000, False)
    (step,) = loop_kernels(plan)
    assert step["flops"] == 2 * 1000 * 32 * 128 * 512
    assert sum(s["flops"] for s in plan.steps) == 2 * 1000 * 32 * 512 * (64 + 128)
    # What is sliced and the first states, the matrix and its bias; the states of all steps.
    states = 4 * 32 * 128
    assert step["bytes_read"] == 1000 * 4 * states + 2 * states + 4 * 512 * (128 + 1)
    assert step["bytes_written"] == 1000 * states
    assert step["grid"] == 32  # rows, of which no two have to wait for each other


def test_what_does_not_fit_is_launched() -> None:
    """Matrices of 4 MB, on a multiprocessor with a quarter of one; or a GPU with little memory."""
    x, h, w = (Tensor(np.zeros(s, np.float32)) for s in ((4, 8, 1024), (8, 1024), (1024, 1024)))

    def f(x: Tensor, h: Tensor, w: Tensor) -> Tensor:
        return loop(lambda s, x: ([ops.tanh(s[0] @ w + x[0])], []), [h], [x], 4)[0][0]

    assert loops_of(cuda.plan_of(f, x, h, w))
    small = [Tensor(np.zeros(s, np.float32)) for s in ((4, 8, 192), (8, 192), (192, 192))]
    assert not loops_of(cuda.plan_of(f, *small))
    _core.plan_for_cuda(75, 64 << 10, multiprocessors=40)
    for step in loop_kernels(cuda.plan_of(f, *small)):
        assert step["shared"][0] <= 63 << 10


def test_the_quicker_way_is_taken() -> None:
    """Many rows of large products: the library's are quicker than rows that each block takes by itself."""
    _core.plan_for_cuda()
    x, h, w = (Tensor(np.zeros(s, np.float32)) for s in ((9, 65536, 192), (65536, 192), (192, 192)))
    f = lambda x, h, w: loop(lambda s, x: ([ops.tanh(s[0] @ w + x[0])], []), [h], [x], 9)[0][0]  # noqa: E731
    assert loops_of(cuda.plan_of(f, x, h, w))


SPILLS = ["a matrix in registers too, derivative 1", "several rows a block, derivative 2",
          "one row, derivative 2", "sums along rows, derivative 1"]  # fmt: skip


@pytest.mark.parametrize(
    "arch",
    [*(pytest.param(a, marks=pytest.mark.slow) for a in ("sm_75", "sm_80", "sm_100")), "sm_90"],
)
def test_no_kernel_spills_registers(arch: str, plans: Plans) -> None:
    networks = []
    for kind, width, rows in (("LSTM", 128, 32), ("GRU", 128, 300), ("RNN", 200, 5)):
        net = getattr(ms.nn, kind)(16, width)
        slope = ms.value_and_grad(
            lambda x, net=net: (net(x)[0] ** 2).sum(), None, net.trainable_params()
        )
        networks.append(cuda.plan_of(slope, Tensor(np.zeros((9, rows, 16), np.float32))))
    kernels = Kernels([*(plans[name] for name in SPILLS), *networks])
    usage = Nvrtc().usage(kernels.source(), arch)
    assert {name: of for name, of in usage.items() if of.spilled} == {}


# The engine --------------------------------------------------------------------------------------


def test_training_is_a_graph_launch_a_step(process: Process) -> None:
    process.good(
        TRAINING
        + """
for a, b in zip(train("GPU", 40), train("CPU", 40)):
    np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6)
"""
    )
    counts = process.counts()
    assert counts["graphs"] >= 28 and counts["captures"] <= 4, counts


def test_loops_of_many_steps_are_graphs(process: Process) -> None:
    """Launched one by one, they were none above 65,536 launches."""
    process.good("""
ms.set_context(device_target="GPU")
f = ms.jit(lambda x: ops.ForiLoop()(0, 70000, lambda i, v: v + 1.0, x, unroll=False))
for _ in range(4): assert f(tensor(1) * 0.0).asnumpy() == 70000
""")
    assert process.counts()["graphs"] >= 1
