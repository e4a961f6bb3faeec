"""On a GPU: every case of cuda_cases.py against the CPU engine, the reference documents, training,
memory, threads, streams, and arrays of CuPy and PyTorch. Skipped where there is no GPU; bench/gpu.sh
runs it with GRADCELL_TEST_NEEDS_GPU, where that is a failure.
"""

from __future__ import annotations

import ctypes
import os

import pytest

if not os.environ.get("GRADCELL_TEST_NEEDS_GPU"):
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as missing:  # so that over a thousand cases need not be made to be skipped
        pytest.skip(f"no NVIDIA driver: {missing}", allow_module_level=True)

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cuda_cases import CASES, compare
from cuda_op_cases import tensor
from product_cases import CASES as PRODUCTS, STRANGE, agrees, strange, two_products

import gradcell as ms
from gradcell import Tensor, _core, nn, ops
from gradcell.base import gpu as gpus, tree

sys.path.append(str(Path(__file__).parent))
import test_cuda_loop_kernels as loops
import test_cuda_orders as orders
import test_cuda_rows as rows

pytestmark = pytest.mark.cuda


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    """Plans run on the GPU inside a test."""
    try:
        gpus.use(0)
    except RuntimeError as error:
        if os.environ.get("GRADCELL_TEST_NEEDS_GPU"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    yield
    gpus.leave()


@pytest.mark.parametrize("name", CASES)
def test_the_gpu_agrees_with_the_cpu(name: str) -> None:
    """Op by op, and as one plan."""
    fn, arguments = CASES[name]
    got = [t.asnumpy() for t in tree.leaves(fn(*arguments))]
    whole = [t.asnumpy() for t in tree.leaves(ms.jit(fn)(*arguments))]
    gpus.leave()
    want = tree.leaves(fn(*arguments))
    compare(name, got, want)
    compare(name, whole, want)


@pytest.mark.parametrize("name", orders.CASES)
def test_what_orders_elements_agrees_with_numpy(name: str) -> None:
    fn, arguments, reference = orders.CASES[name]
    (want,) = reference(*arguments)
    for way in (fn, ms.jit(fn)):
        orders.agrees(way(*map(Tensor, arguments)).asnumpy(), want)


@pytest.mark.parametrize("name", rows.CASES)
def test_rows_agree_with_numpy(name: str) -> None:
    fn, arguments, *_ = rows.CASES[name]
    found = tree.leaves(ms.jit(fn)(*arguments))
    rows.agrees(name, [t.astype(ms.float64).asnumpy() for t in found])


@pytest.mark.parametrize("name", [*loops.CASES, *loops.LOOPS])
@pytest.mark.parametrize("as_kernels", [True, False])
def test_loops_agree_with_the_same_steps(name: str, as_kernels: bool) -> None:
    _core.weigh_cuda_plans(loop_kernels=as_kernels)
    fn, arguments = loops.program(name)
    got = [t.asnumpy() for t in tree.leaves(ms.jit(fn)(*arguments))]
    _core.weigh_cuda_plans()
    gpus.leave()
    loops.agrees(name, got, loops.wanted(name))


@pytest.fixture
def tf32(request: pytest.FixtureRequest) -> Iterator[None]:
    ms.set_context(gpu_config={"matmul_allow_tf32": request.param})
    yield
    ms.set_context(gpu_config={"matmul_allow_tf32": False})


@pytest.mark.parametrize(
    ("name", "tf32"),
    [(n, c[1]) for n, c in PRODUCTS.items() if "Burgers" not in n],  # whose step changes weights
    indirect=["tf32"],
)
def test_tensor_cores_agree_with_the_cpu(name: str, tf32: None) -> None:
    fn, arguments = PRODUCTS[name][0]
    got = [t.asnumpy() for t in tree.leaves(ms.jit(fn)(*arguments))]
    gpus.leave()
    agrees(name, got, tree.leaves(fn(*arguments)))


@pytest.mark.parametrize(
    ("name", "tf32"), [(n, s[1]) for n, s in STRANGE.items()], indirect=["tf32"]
)
def test_infinities_are_where_they_belong(name: str, tf32: None) -> None:
    arguments = strange(STRANGE[name][0])
    got = [t.astype(ms.float32).asnumpy() for t in ms.jit(two_products)(*arguments)]
    gpus.leave()
    for g, w in zip(got, two_products(*arguments), strict=True):
        expected = w.astype(ms.float32).asnumpy()
        np.testing.assert_array_equal(np.isnan(g), np.isnan(expected))
        places = np.isinf(expected)
        np.testing.assert_array_equal(np.isinf(g), places)
        np.testing.assert_array_equal(np.sign(g[places]), np.sign(expected[places]))


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


HERE = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "tests",
    [
        "reference",
        "nn/test_training.py",
        "derivatives/test_loss_scale.py",
        "nn/test_train_cells.py",
        "ops/test_structured.py",
        "derivatives/test_loops.py",
    ],
)
def test_other_tests_with_the_gpu_as_device(tests: str) -> None:
    """The examples of the reference documents, training, loss scaling, with device_target='GPU'."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / tests)]
    # An index out of range is an error when a value is read, not when the op is called; a first call
    # compiles kernels.
    command += ["-k", "not out_of_range and not takes_no_longer"]
    environment = {**os.environ, "GRADCELL_TEST_DEVICE": "GPU"}
    done = subprocess.run(
        command, env=environment, cwd=HERE.parents[1], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.parametrize(
    "name", ["PINN step", "MLP step", "loss-scale step", "loss-scaled training cell"]
)
def test_captured_steps_give_what_first_steps_give(name: str) -> None:
    fn, arguments = CASES[name]
    step = ms.jit(fn)
    first = [t.asnumpy() for t in tree.leaves(step(*arguments))]
    for _ in range(6):  # from the third on it is a CUDA graph
        for a, b in zip(first, tree.leaves(step(*arguments)), strict=True):
            np.testing.assert_array_equal(a, b.asnumpy())


def test_training_follows_the_cpu() -> None:
    def losses() -> list[float]:
        own = np.random.default_rng(5)
        net = nn.SequentialCell(nn.Dense(8, 32), nn.Tanh(), nn.Dense(32, 1))
        for p in net.get_parameters():
            p.set_data(Tensor(own.normal(0, 0.3, p.shape).astype(np.float32)))
        x = Tensor(own.standard_normal((256, 8)).astype(np.float32))
        optimiser = nn.Adam(net.trainable_params(), 0.01)
        slope = ms.value_and_grad(
            lambda: ops.square(net(x) - 1.0).mean(), None, optimiser.parameters
        )

        @ms.jit
        def step() -> Tensor:
            loss, gradients = slope()
            optimiser(gradients)
            return loss

        return [float(step()) for _ in range(100)]

    on_gpu = losses()
    gpus.leave()
    np.testing.assert_allclose(on_gpu, losses(), rtol=1e-3)
    assert on_gpu[-1] < 0.1 * on_gpu[0]


# Threads and streams -----------------------------------------------------------------------------


def test_two_threads() -> None:
    @ms.jit
    def step(x: Tensor, y: Tensor) -> Tensor:
        return (ops.tanh(ops.matmul(x, y)) * 2.0).sum(0)

    wrong: list[int] = []

    def work(seed: int) -> None:
        own = np.random.default_rng(seed)
        a, b = (own.standard_normal(s).astype(np.float32) for s in ((300, 40), (40, 50)))
        x, y = Tensor(a), Tensor(b)
        want = 2 * np.tanh(a.astype(np.float64) @ b).sum(0)
        for k in range(300):
            fresh = own.standard_normal(1000 + k).astype(np.float32)
            doubled = (Tensor(fresh) * 2.0).asnumpy()  # a transfer while the other thread captures
            ok = np.allclose(step(x, y).asnumpy(), want, rtol=1e-3, atol=1e-3)
            if not ok or not np.array_equal(doubled, 2 * fresh):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def busy(xp: Any, n: int = 1 << 23) -> Any:
    """An array of ones whose making takes some milliseconds of GPU time."""
    a = xp.zeros(n, "float32")
    for _ in range(100):
        a = a + 0.01
    return xp.round(a)


def test_cupy_on_a_stream_of_its_own() -> None:
    cp = pytest.importorskip("cupy")
    with cp.cuda.Stream(non_blocking=True):
        for make in (Tensor, ms.from_numpy, ms.from_dlpack):
            a = busy(cp)
            y = make(a) * 3.0
            a[:] = 7  # on the same stream, behind the copy; what is shared sees either
            del a
            if make is Tensor:
                assert float(y.sum()) == 3.0 * y.size
            for back in (
                cp.asarray(ms.ops.ones_like(y) * 5.0),
                cp.from_dlpack(ms.ops.ones_like(y) * 5.0),
            ):
                assert float((back * 2).sum()) == 10.0 * y.size
        x = Tensor(np.arange(6, dtype=np.float32))
        np.testing.assert_array_equal((x * cp.arange(6, dtype="f4")).asnumpy(), np.arange(6.0) ** 2)
        shared = cp.from_dlpack(x)
        assert shared.data.ptr == x.__cuda_array_interface__["data"][0] == cp.asarray(x).data.ptr


def test_pytorch_on_a_stream_of_its_own() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    with torch.cuda.stream(torch.cuda.Stream()):
        a = torch.zeros(1 << 23, device="cuda")
        for _ in range(100):
            a = a + 0.01
        a = torch.round(a)
        y = ms.from_dlpack(a) * 3.0
        assert float(y.sum()) == 3.0 * y.size
        back = torch.from_dlpack(y * 2.0)
        assert float(back.sum()) == 6.0 * y.size
        assert float(torch.as_tensor(y, device="cuda").sum()) == 3.0 * y.size
        half = torch.ones(5, dtype=torch.bfloat16, device="cuda")
        assert ms.from_dlpack(half).astype(ms.float32).asnumpy().tolist() == [1.0] * 5
        assert torch.from_dlpack(ms.from_dlpack(half)).data_ptr() == half.data_ptr()


def test_memory_of_another_library_is_freed() -> None:
    cp = pytest.importorskip("cupy")
    pool = cp.get_default_memory_pool()
    for k in range(200):
        a = cp.full(1 << 20, k, "f4")
        assert float(ms.from_dlpack(a)[0]) == k
    del a
    assert pool.used_bytes() < 16 << 20
