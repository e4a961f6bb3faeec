"""One kernel for a narrow network: the text run as C++ by several threads a block beside the CPU engine, to
second and third order, beside float64 within the stated bound, and what it saves."""

from __future__ import annotations

import itertools
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_cases import compare
from cuda_emulation import WHERE_NONE_SPILLS, Batch, Kernels, Nvrtc, that_spill
from made_up_gpu import Process
from network_cases import (
    Case,
    applied,
    burgers_step,
    first_order,
    gradients,
    network,
    residual,
    tensor,
)

import gradcell as ms
from gradcell import Tensor, _core, cuda, ops
from gradcell.base import tree

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

CASES: dict[str, Case] = {}

CASES["tanh"] = first_order([3, 20, 20, 1], 45, ops.tanh)
CASES["several activations"] = first_order(
    [4, 9, 33, 17, 10, 3], 77, ops.sin, ops.sigmoid, ops.gelu, ops.softplus
)
CASES["relu and silu"] = first_order([2, 16, 16, 2], 64, ops.relu, ops.silu)
CASES["float64"] = first_order([3, 12, 12, 1], 50, ops.tanh, ops.erf, dtype=np.float64)
CASES["weights that stay in memory"] = first_order([64, 64, 64, 64, 64], 40, ops.tanh)
CASES["widest"] = first_order([128, 128, 5], 33, ops.tanh)
CASES["more tiles than chunks"] = first_order([2, 3, 1], 512 * 32 + 70, ops.tanh)
for order, dtype in ((1, np.float32), (2, np.float32), (2, np.float64), (3, np.float32)):
    CASES[f"residual of order {order}, {np.dtype(dtype)}"] = residual(
        order, [2, 8, 8, 1], 45, ops.tanh, dtype
    )
CASES["residual with sines"] = residual(2, [2, 20, 20, 1], 70, ops.sin, np.float32)


def classifier(x: Tensor, *weights: Tensor) -> Any:
    """Reductions along features, a maximum and a count over rows, results for each row."""

    def loss(x: Tensor, *weights: Tensor) -> Tensor:
        y = ops.log_softmax(applied(x, weights, ops.tanh), -1)
        return -(y[:, 1:2] * x[:, :1]).mean()

    y = ops.softmax(applied(x, weights, ops.tanh), -1)
    worst = ops.reduce_max(y, 0)
    many = ops.reduce_sum((y > 0.3).astype(ms.int32), 0)
    return gradients(loss, x, weights), y, worst, many, y[:, ::-1]


CASES["classifier"] = (classifier, (tensor(61, 5), *network([5, 16, 7])))


def normalised(x: Tensor, *weights: Tensor) -> Any:
    def loss(x: Tensor, *weights: Tensor) -> Tensor:
        h = ops.matmul(x, weights[0]) + weights[1]
        h = (h - h.mean(-1, keep_dims=True)) * ops.rsqrt(h.var(-1, keepdims=True) + 1e-3)
        return ops.square(ops.matmul(ops.tanh(h), weights[2]) + weights[3]).mean()

    return gradients(loss, x, weights)


CASES["layer norm"] = (normalised, (tensor(40, 6), *network([6, 12, 2])))


def two_sets(inside: Tensor, edge: Tensor, *weights: Tensor) -> Any:
    """Points inside and on the edge: a region each, gradients added up."""

    def loss(*weights: Tensor) -> Tensor:
        u = applied(edge, weights, ops.tanh)
        slope = ms.grad(lambda x: applied(x, weights, ops.tanh).sum())(inside)
        return ops.square(slope).mean() + ops.square(u).mean()

    return ms.value_and_grad(loss, tuple(range(len(weights))))(*weights)


CASES["two sets of points"] = (two_sets, (tensor(70, 2), tensor(34, 2), *network([2, 10, 1])))


def joined(x: Tensor, t: Tensor, *weights: Tensor) -> Any:
    """Inputs that are put together, outputs that are taken apart."""

    def u(x: Tensor, t: Tensor, *weights: Tensor) -> Tensor:
        y = applied(ops.concat((x, t, x * t), 1), weights, ops.tanh)
        return ops.square(y[:, :2] * y[:, 2:4] - y[:, 1:3]).mean()

    return ms.value_and_grad(u, tuple(range(len(weights) + 2)))(x, t, *weights)


CASES["joined"] = (joined, (tensor(45, 1), tensor(45, 2), *network([5, 8, 4])))


CASES["Burgers"] = burgers_step([6, 6, 6], 45)


@pytest.fixture(scope="module", autouse=True)
def networks_are_kernels() -> Iterator[None]:
    """Also where products would be quicker."""
    _core.weigh_cuda_plans(tiles=True)
    yield
    _core.weigh_cuda_plans()


@pytest.fixture(scope="module")
def plans() -> dict[str, Any]:
    return {name: cuda.plan_of(fn, *args) for name, (fn, args) in CASES.items()}


@pytest.fixture(scope="module")
def batch(plans: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return Batch(list(plans.values()), tmp_path_factory.mktemp("tiles"))


def tiles(plan: Any) -> list[dict[str, Any]]:
    return [s for s in plan.steps if "kernel" in s and s["shared"][1] > 0]


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_cpu_engine(name: str, plans: dict[str, Any], batch: Batch) -> None:
    assert tiles(plans[name]) and not any("matmul" in s for s in plans[name].steps)
    fn, arguments = CASES[name]
    want = tree.leaves(fn(*arguments))
    number = list(CASES).index(name)
    launches: list[Any] = [((1, 1), 1), ((4, 2), 3)]
    if name != "more tiles than chunks":
        launches += [((32, 8), 2), ((8, 16), 1), (None, 2)]
    for threads, grid in launches:
        got = batch.run(number, threads=threads, grid=grid)
        compare(name, got[: len(want)], want)


def test_two_runs_are_the_same_to_the_last_bit(batch: Batch) -> None:
    number = list(CASES).index("residual with sines")
    one, other = (batch.run(number, threads=(16, 4), grid=g) for g in (1, 3))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_error_is_within_the_bound(tmp_path: pathlib.Path) -> None:
    """docs/cuda-kernels.md: a product of K terms errs by at most K u sum |a b|, a gradient of weights by 33 u
    sum |a b|, u being 2^-24; what errors the operands have comes on top."""
    x, w1, w2, c = tensor(3000, 16), tensor(16, 24), tensor(24, 3), tensor(3000, 3)

    def fn(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
        return ms.grad(lambda w2: (ops.matmul(ops.matmul(x, w1), w2) * c).sum())(w2)

    def with_output(x: Tensor, w1: Tensor, w2: Tensor) -> Any:
        return fn(x, w1, w2), ops.matmul(ops.matmul(x, w1) * 1.0, w2)

    plan = cuda.plan_of(with_output, x, w1, w2)
    assert tiles(plan)
    slope, out = Batch([plan], tmp_path).run(0, threads=(8, 4), grid=2)
    a, b, d, e = (v.asnumpy().astype(np.float64) for v in (x, w1, w2, c))
    u = 2.0**-24
    hidden, hidden_error = a @ b, 16 * u * (np.abs(a) @ np.abs(b))
    slope_bound = hidden_error.T @ np.abs(e) + 33 * u * np.abs(hidden).T @ np.abs(e)
    assert np.all(np.abs(slope - hidden.T @ e) <= slope_bound * (1 + 1e-5))
    out_bound = hidden_error @ np.abs(d) + 24 * u * np.abs(hidden) @ np.abs(d)
    assert np.all(np.abs(out - hidden @ d) <= out_bound * (1 + 1e-5))
    assert np.abs(slope - hidden.T @ e).max() > 0  # it is float32


ARCHITECTURES = ("sm_75", "sm_80", "sm_100", "sm_90")


@pytest.mark.one_in(40)
@pytest.mark.parametrize(("arch", "every"), WHERE_NONE_SPILLS)
def test_compiles_without_spills(arch: str, every: int, plans: dict[str, Any]) -> None:
    kernels = Kernels(list(plans.values()))
    kernels.texts = [t for t in kernels.texts if "gc_in_tile" in t or "gc_down" in t]
    assert len(kernels.texts) > len(CASES) // 2
    assert that_spill(kernels, arch, every) == {}


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_whole_steps_compile_without_spills(arch: str) -> None:
    for fn, arguments in (
        burgers_step([20] * 8, 10_000),
        burgers_step([64] * 4, 2_000),
        residual(2, [2, 128, 128, 1], 1000, ops.tanh, np.float32),
    ):
        plan = cuda.plan_of(fn, *arguments)
        usage = Nvrtc().usage(plan.source, arch)
        assert {name: of for name, of in usage.items() if of.spilled} == {}


@pytest.mark.parametrize(
    ("layers", "rows", "launches", "megabytes"),
    [([20] * 8, 10_000, 7, 16), ([20] * 8, 1_000_000, 7, 28), ([64] * 4, 2_000, 7, 28)],
)
def test_a_training_step_is_a_few_launches(
    layers: list[int], rows: int, launches: int, megabytes: float
) -> None:
    """Burgers 8 x 20 with 10,000 points was 62 launches and 71 products that moved 340 MB."""
    fn, arguments = burgers_step(layers, rows)
    plan = cuda.plan_of(fn, *arguments)
    assert len(tiles(plan)) == 1
    assert not any("matmul" in s for s in plan.steps)
    assert len(plan.steps) <= launches, plan.table()
    assert plan.bytes_moved < megabytes * 1e6, plan.bytes_moved
    (tile,) = tiles(plan)
    fixed, row = tile["shared"]
    assert fixed + row * 17 < 227 << 10  # 16 rows at least, on an H100


def test_the_number_of_rows_is_an_argument() -> None:
    def plan(rows: int) -> Any:
        fn, arguments = burgers_step([5, 5], rows)
        return cuda.plan_of(fn, *arguments)

    assert plan(40).kernels == plan(4000).kernels


@pytest.mark.parametrize(
    ("widths", "rows"),
    [([3, 256, 256, 1], 64), ([3, 20, 1], 20)],
)
def test_others_are_left_to_the_library(widths: list[int], rows: int) -> None:
    fn, arguments = first_order(widths, rows, ops.tanh)
    plan = cuda.plan_of(fn, *arguments)
    assert not tiles(plan) and any("matmul" in s for s in plan.steps)


TRAINING = """
def train(target, steps):
    ms.set_context(device_target=target, mode=ms.GRAPH_MODE)
    ms.set_seed(3)
    net = nn.SequentialCell(nn.Dense(2, 20), nn.Tanh(), nn.Dense(20, 20), nn.Tanh(), nn.Dense(20, 1))
    own = np.random.default_rng(5)
    for p in net.get_parameters(): p.set_data(Tensor(own.uniform(-.5, .5, p.shape).astype(np.float32)))
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
    slope = ms.grad(lambda x: net(x).sum())
    def loss(x): return ((slope(x)[:, :1] + net(x)) ** 2).mean()
    vg = ms.value_and_grad(loss, None, optimizer.parameters)
    x = Tensor(own.uniform(-1, 1, (200, 2)).astype(np.float32))
    @ms.jit
    def step(x):
        value, grads = vg(x)
        optimizer(grads)
        return value
    losses = [step(x) for _ in range(steps)]
    return [float(v) for v in losses], *[p.asnumpy() for p in net.get_parameters()]
for a, b in zip(train('GPU', 12), train('CPU', 12)):
    np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
"""


@pytest.mark.parametrize("capability", ["75", "80", "90"])
def test_on_the_made_up_gpu(process: Process, capability: str) -> None:
    """Shared memory beyond 48 KB is asked for; where there is less, a block has fewer rows."""
    process.good(TRAINING, FAKE_CUDA_CAPABILITY=capability)
    counts = process.counts()
    assert counts["graphs"] >= 8 and counts["captures"] <= 2, counts
    assert counts["launches"] <= 12 * 7 + 2, counts


def test_the_products_inside_are_counted() -> None:
    """Forward 2 N K M, its gradients twice as much, but for those by the points."""
    rows, widths = 1000, [3, 20, 20, 1]
    fn, arguments = first_order(widths, rows, ops.tanh)
    plan = cuda.plan_of(fn, *arguments)
    assert tiles(plan)
    layers = [k * m for k, m in itertools.pairwise(widths)]
    found = sum(s["flops"] for s in plan.steps)
    assert 6 * rows * sum(layers) - 2 * rows * layers[0] <= found <= 6 * rows * sum(layers)
    x, w = tensor(5, 300), tensor(300, 7)
    assert sum(s["flops"] for s in cuda.plan_of(ops.matmul, x, w).steps) == 2 * 5 * 300 * 7


def test_a_cold_start_is_short() -> None:
    """How long NVRTC needs follows how much code there is: for a step of 8 layers of 20 it was 240 KB,
    and 3.4 s of a processor, where it is 163 KB, and 1.6 s."""
    fn, arguments = burgers_step([20] * 8, 10_000)
    assert len(Nvrtc().compile(cuda.plan_of(fn, *arguments).source, "sm_90")) < 200_000


def many_kinds_of_sums(x: Tensor, w1: Tensor, w2: Tensor) -> Any:
    """Sums of rows by all ways of combining, in several types."""
    y = ops.matmul(ops.tanh(ops.matmul(x, w1)), w2)
    ways = (_core.ops.reduce_sum, _core.ops.reduce_max, _core.ops.reduce_min)
    return [way(v, [0], False) for v in (y, y.astype(ms.int32), y.astype(ms.int64)) for way in ways]


def test_kinds_of_row_sums_share_their_shared_memory() -> None:
    """Launcher::fit_rows leaves 1 KB of what a block has for what is not the tile's."""
    plan = cuda.plan_of(many_kinds_of_sums, tensor(45, 5), tensor(5, 20), tensor(20, 7))
    assert tiles(plan)
    name = tiles(plan)[0]["kernel"]
    text = next(t for n, t in plan.kernels if n == name)
    kinds = set(re.findall(r"gc_add_rows_up<(.*?)>\(", text))
    assert len(kinds) > 4
    for arch in ("sm_75", "sm_90"):
        assert Nvrtc().usage(plan.source, arch)[name].shared <= 1024


def test_blocks_of_fewer_threads_than_a_warp(tmp_path: pathlib.Path) -> None:
    """What sm_75 has room for: a mask must not name lanes that are not there."""
    fn, arguments = CASES["Burgers"]
    plan, want = cuda.plan_of(fn, *arguments), tree.leaves(fn(*arguments))
    batch = Batch([plan], tmp_path)
    for rows in (1, 2):
        compare("Burgers", batch.run(0, threads=(rows, 8), grid=2)[: len(want)], want)
