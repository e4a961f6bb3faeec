"""On a GPU: every case of test_cuda_codegen.py, and training, against the CPU engine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from cuda_cases import CASES, compare, loss_scale_step, pinn_step, tensor

import gradcell as ms
from gradcell import Tensor, _gpu

pytestmark = pytest.mark.cuda


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    """Plans run on the GPU inside a test."""
    try:
        _gpu.use(0)
    except RuntimeError as error:
        pytest.skip(str(error))
    yield
    _gpu.leave()


@pytest.mark.parametrize("name", CASES)
def test_the_gpu_agrees_with_the_cpu(name: str) -> None:
    fn, arguments = CASES[name]
    got = [t.asnumpy() for t in ms.tree.leaves(fn(*arguments))]
    _gpu.leave()
    compare(name, got, ms.tree.leaves(fn(*arguments)))


def test_results_do_not_change_from_run_to_run() -> None:
    x = tensor(100000, 3)

    @ms.jit
    def sums(v: Tensor) -> list[Tensor]:
        return [v.sum(), (v * v).sum(0), ms.ops.softmax(v, 0)]

    first = [t.asnumpy() for t in sums(x)]
    for _ in range(5):
        for a, b in zip(first, sums(x), strict=True):
            np.testing.assert_array_equal(a, b.asnumpy())


def test_memory_does_not_grow_in_ten_thousand_steps() -> None:
    fn, arguments = CASES["PINN step"]
    step = ms.jit(fn)
    x, *weights = arguments

    def held() -> int:
        device = ms._core.cuda_driver_info()["devices"][0]
        return int(device["in_use"] + device["cached"])

    for i in range(10_000):
        _, weights = step(x, *weights)
        if i == 100:
            before = held()
    assert held() <= before * 1.01
    assert np.isfinite(weights[0].asnumpy()).all()


def test_an_index_out_of_range() -> None:
    y = ms.ops.gather(tensor(4), Tensor(np.array([1, 9], np.int32)), 0)
    with pytest.raises(IndexError):
        y.asnumpy()


def test_more_memory_than_there_is() -> None:
    x = Tensor(np.ones((1, 1), np.float32))
    with pytest.raises(MemoryError, match="out of memory on GPU 0"):
        ms.ops.broadcast_to(x, (1 << 20, 1 << 20)).asnumpy()


def test_steps_of_both_kinds_train() -> None:
    for name, fn in (("PINN step", pinn_step), ("loss-scale step", loss_scale_step)):
        arguments = CASES[name][1]
        loss = ms.jit(fn)(*arguments)[0]
        assert np.isfinite(float(loss))
