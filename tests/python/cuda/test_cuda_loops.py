"""Loops on a GPU whose bodies are launched: their kernels are written once and launched once a step. Their
text run as C++, and the engine on the made-up GPU, beside the same steps one by one and NumPy, to third
order. (Loops that are one kernel are those of test_cuda_loop_kernels.py.)"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_cases import compare
from cuda_emulation import Batch, Kernels, Nvrtc, Plans, chosen
from cuda_loop_cases import (
    CASES,
    TRAINING,
    every_step,
    expected,
    kinds,
    loops_of,
    recurrent_plan,
)
from loop_cases import arrays, function, normal, scalar, unrolled
from made_up_gpu import Process

import gradcell as ms
from gradcell import Tensor, _core, cuda, ops
from gradcell.ops.control.loops import loop

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC


PLANS = [name for name in CASES if name != "one step"]
LAUNCHED = "ms._core.weigh_cuda_plans(loop_kernels=False)\n"


@pytest.fixture(autouse=True, scope="module")
def launched() -> Iterator[None]:
    _core.weigh_cuda_plans(loop_kernels=False)
    yield
    _core.weigh_cuda_plans()


@pytest.fixture(scope="module")
def plans() -> Plans:
    return Plans(CASES, lambda name: cuda.plan_of(CASES[name][0], *CASES[name][2]))


@pytest.fixture(scope="module")
def batch(
    plans: Plans, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Batch:
    return Batch(chosen(request, plans), tmp_path_factory.mktemp("loops"))


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
    assert len(every_step(many.steps)) <= 30 and sum(len(text) for _, text in many.kernels) < 20_000
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

ALL_BODIES = (
    LAUNCHED
    + """
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
)


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
        process.good(LAUNCHED + script.replace("KEPT", kept))
        return process.counts()["copies"]

    assert copies("[]") == 1  # the last state
    assert copies("[y]") == 1
    assert copies("[s[0]]") == 2  # and the first one
    assert copies("[y, s[0]]") == 3  # and the others
    assert copies("[y, y.reshape(3, 1)]") == 2


def test_training_is_a_graph_launch_a_step(process: Process) -> None:
    """Batches from ever other places and a number that changes: as with any plan."""
    process.good(
        LAUNCHED
        + TRAINING
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
    process.good(LAUNCHED + script.replace("STEPS", "3000"))
    assert process.counts()["graphs"] >= 1
    process.good(LAUNCHED + script.replace("STEPS", "70000"))
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
    process.good(LAUNCHED + script, CUDA_LAUNCH_BLOCKING="1")
    assert process.counts()["graphs"] == 0
