"""A narrow network as one kernel or as products: which of the two a plan has, on which GPU, and that both
come to the same values."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_emulation import Batch
from made_up_gpu import Process
from network_cases import applied, burgers_step, network, tensor

import gradcell as ms
from gradcell import Tensor, _core, cuda, ops

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

#: (compute capability, bytes of shared memory, multiprocessors)
H200, A100, T4 = (90, 227 << 10, 132), (80, 163 << 10, 108), (75, 64 << 10, 40)
SMALL = (90, 227 << 10, 8)  # a slice of an H200


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    _core.plan_for_cuda()
    _core.weigh_cuda_plans()


def planned(gpu: tuple[int, int, int], fn: Any, *arguments: Any) -> Any:
    capability, shared, multiprocessors = gpu
    _core.plan_for_cuda(capability, shared, multiprocessors=multiprocessors)
    return cuda.plan_of(fn, *arguments)


def tiles(plan: Any) -> list[dict[str, Any]]:
    return [s for s in plan.steps if "tile" in s]


def is_one_kernel(layers: list[int], points: int, gpu: tuple[int, int, int] = H200) -> bool:
    fn, arguments = burgers_step(layers, points)
    plan = planned(gpu, fn, *arguments)
    assert bool(tiles(plan)) != (plan.products > 0)
    return bool(tiles(plan))


@pytest.mark.parametrize(
    ("layers", "points", "one"),
    [
        ([20] * 8, 1_000, True),
        ([20] * 8, 10_000, True),
        ([20] * 8, 1_000_000, True),
        ([64] * 4, 1_000, True),
        ([64] * 4, 10_000, False),  # as good as equal
        ([64] * 4, 1_000_000, False),
        ([128] * 4, 10_000, False),
        ([128] * 4, 1_000_000, False),
    ],
)
def test_the_quicker_way_is_taken(layers: list[int], points: int, one: bool) -> None:
    assert is_one_kernel(layers, points) == one


@pytest.mark.parametrize("gpu", [H200, A100, SMALL])
@pytest.mark.parametrize("width", [20, 64])
def test_more_points_than_a_gpu_has_room_for_turn_to_products_at_most(
    gpu: tuple[int, int, int], width: int
) -> None:
    """A few points are tiles side by side; products gain with many."""
    found = [is_one_kernel([width] * 4, n, gpu) for n in (200, 2_000, 20_000, 200_000)]
    assert found[0] and found == sorted(found, reverse=True)


def test_a_smaller_gpu_has_fewer_tiles_at_once() -> None:
    fn, arguments = burgers_step([48] * 4, 3_000)
    large, small = (planned(gpu, fn, *arguments) for gpu in (H200, SMALL))
    assert tiles(large) and not tiles(small)
    fn, arguments = burgers_step([20] * 4, 3_000)
    rounds = [tiles(planned(gpu, fn, *arguments))[0]["tile"][0] for gpu in (H200, A100, SMALL)]
    assert rounds == [1, 1, -(-3_000 // 32 // 8)]
    fn, arguments = burgers_step([20] * 8, 1_000)  # with shared memory for 8 rows
    assert tiles(planned(T4, fn, *arguments))[0]["tile"][0] == -(-1_000 // 8 // 40)


def test_all_blocks_run_at_once() -> None:
    """8 layers of 20 with 10^6 points were 342 blocks: 2.6 waves of 132, 276 tiles after each other."""
    fn, arguments = burgers_step([20] * 8, 1_000_000)
    (step,) = tiles(planned(H200, fn, *arguments))
    assert (step["grid"], step["tile"][0]) == (132, -(-1_000_000 // 32 // 132))
    fn, arguments = burgers_step([20] * 8, 1_000)  # a tile each
    assert tiles(planned(H200, fn, *arguments))[0]["grid"] == -(-1_000 // 32)


def test_it_can_be_left_out() -> None:
    fn, arguments = burgers_step([20] * 8, 10_000)
    _core.weigh_cuda_plans(tiles=False)
    plan = cuda.plan_of(fn, *arguments)
    assert not tiles(plan) and plan.products > 20
    _core.weigh_cuda_plans()
    assert tiles(cuda.plan_of(fn, *arguments))


def test_it_can_be_asked_for() -> None:
    fn, arguments = burgers_step([64] * 4, 1_000_000)
    _core.weigh_cuda_plans(tiles=True)
    assert tiles(cuda.plan_of(fn, *arguments))[0]["tile"][0] == -(-1_000_000 // 16 // 132)


def test_sets_of_points_choose_by_themselves() -> None:
    """Many points inside, few on the edge, of one network."""
    weights = network([2, 64, 64, 64, 64, 1])
    inside, edge = tensor(200_000, 2), tensor(500, 2)

    def loss(*w: Tensor) -> Tensor:
        slope = ms.grad(lambda x: applied(x, w, ops.tanh).sum())
        second = ms.grad(lambda x: slope(x)[:, :1].sum())(inside)
        return ops.square(second).mean() + ops.square(applied(edge, w, ops.tanh)).mean()

    plan = planned(H200, ms.value_and_grad(loss, tuple(range(len(weights)))), *weights)
    assert len(tiles(plan)) == 1 and tiles(plan)[0]["grid"] <= -(-500 // 32)
    assert plan.products > 5


# Values -----------------------------------------------------------------------------------------------


def burgers(x: Tensor, t: Tensor, *weights: Tensor) -> Any:
    def loss(*w: Tensor) -> Tensor:
        u = lambda x, t: applied(ops.concat((x, t), 1), w, ops.tanh)  # noqa: E731
        slopes = ms.grad(lambda x, t: u(x, t).sum(), (0, 1))
        second = ms.grad(lambda x, t: slopes(x, t)[0].sum())
        u_x, u_t = slopes(x, t)
        return ops.square(u_t + u(x, t) * u_x - 0.003 * second(x, t)).mean()

    return ms.value_and_grad(loss, tuple(range(len(weights))))(*weights)


def residual(x: np.ndarray, t: np.ndarray, weights: list[np.ndarray]) -> float:
    """The same loss, with the network's derivatives by the chain rule, layer by layer."""
    a = np.concatenate((x, t), 1)
    a_x, a_t, a_xx = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a)
    a_x[:, 0], a_t[:, 1] = 1, 1
    for k, (w, b) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        a, a_x, a_t, a_xx = a @ w + b, a_x @ w, a_t @ w, a_xx @ w
        if 2 * k + 2 < len(weights):
            a = np.tanh(a)
            slope = 1 - a**2
            a_xx = slope * a_xx - 2 * a * slope * a_x**2
            a_x, a_t = slope * a_x, slope * a_t
    return float(np.mean((a_t + a * a_x - 0.003 * a_xx) ** 2))


@pytest.mark.parametrize("layers", [[16, 16], [40, 40, 40]])
def test_both_ways_come_to_the_same(layers: list[int], tmp_path: pathlib.Path) -> None:
    """The loss, and its slope along a direction for each weight, against differences in float64."""
    x, t = tensor(70, 1), tensor(70, 1)
    weights = tuple(w * w.shape[0] ** -0.5 for w in network([2, *layers, 1]))
    plans = []
    for wanted in (True, False):
        _core.weigh_cuda_plans(tiles=wanted)
        plans.append(cuda.plan_of(burgers, x, t, *weights))
    assert tiles(plans[0]) and not tiles(plans[1])
    batch = Batch(plans, tmp_path)
    points = [v.asnumpy().astype(np.float64) for v in (x, t)]
    values = [w.asnumpy().astype(np.float64) for w in weights]
    loss = residual(points[0], points[1], values)
    rng = np.random.default_rng(4)
    directions = [rng.standard_normal(w.shape) for w in values]
    slopes = []
    for k, d in enumerate(directions):
        step = 1e-5 / np.linalg.norm(d)
        there = [
            residual(
                points[0],
                points[1],
                [v + s * step * d if i == k else v for i, v in enumerate(values)],
            )
            for s in (1, -1)
        ]
        slopes.append((there[0] - there[1]) / (2 * step))
    for number in range(2):
        got, *gradients = batch.run(number, threads=None, grid=3)[: 1 + len(weights)]
        np.testing.assert_allclose(got, loss, rtol=1e-5)
        lengths = [
            np.linalg.norm(g) * np.linalg.norm(d)
            for g, d in zip(gradients, directions, strict=True)
        ]
        found = [(g * d).sum() for g, d in zip(gradients, directions, strict=True)]
        np.testing.assert_allclose(found, slopes, rtol=0, atol=1e-5 * max(lengths))


def test_a_gpu_says_how_large_it_is(process: Process) -> None:
    """What is planned in use is what is planned for a device of its size."""
    script = """
from network_cases import burgers_step
from gradcell import cuda
ms.set_context(device_target="GPU")
fn, arguments = burgers_step([48] * 4, 3_000)
print(sum("tile" in s for s in cuda.plan_of(fn, *arguments).steps))
"""
    for multiprocessors, want in ((132, "1"), (8, "0")):
        out = process.good(script, FAKE_CUDA_MULTIPROCESSORS=str(multiprocessors))
        assert out.split() == [want]
