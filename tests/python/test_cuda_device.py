"""The CUDA engine on a made-up GPU (tests/fake_cuda.cpp): loading, running, graphs, memory, errors."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from made_up_gpu import PACKAGE, Process

GPU = "ms.set_context(device_target='GPU')\n"

STEP = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w1 = Parameter(tensor(3, 8), name="w1")
        self.w2 = Parameter(tensor(8, 2), name="w2")
        self.m = Parameter(Tensor(np.zeros((3, 8), np.float32)), name="m", requires_grad=False)
    def construct(self, x):
        return ops.matmul(ops.tanh(ops.matmul(x, self.w1)), self.w2)

def train(target, steps):
    global rng
    rng = np.random.default_rng(3)
    ms.set_context(device_target=target, mode=ms.GRAPH_MODE)
    net = Net()
    x, y = tensor(16, 3), tensor(16, 2)
    def loss(x, y): return ((net(x) - y) ** 2).mean()
    slope = ms.value_and_grad(loss, None, [net.w1, net.w2])
    @ms.jit
    def step(x, y):
        value, (g1, g2) = slope(x, y)
        m = 0.9 * net.m + g1
        net.m.set_data(m)
        net.w1.set_data(net.w1 - 0.1 * m)
        net.w2.set_data(net.w2 - 0.1 * g2)
        return value
    losses = [step(x, y) for _ in range(steps)]
    return [float(v) for v in losses], net.w1.asnumpy(), net.w2.asnumpy()
"""


def test_a_training_step_gives_what_the_cpu_gives(process: Process) -> None:
    process.good(
        STEP
        + """
on_gpu, on_cpu = train("GPU", 8), train("CPU", 8)
for a, b in zip(on_gpu, on_cpu):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
assert on_gpu[0][-1] < on_gpu[0][0]
"""
    )


def test_repeated_steps_are_graph_launches(process: Process) -> None:
    process.good(STEP + "train('GPU', 60)")
    counts = process.counts()
    assert counts["captures"] <= 8
    assert counts["graphs"] >= 45


def test_steps_move_nothing_between_host_and_gpu(process: Process) -> None:
    process.good(STEP + "train('GPU', 20)")
    few = process.counts()
    process.good(STEP + "train('GPU', 40)")
    many = process.counts()
    assert many["uploads"] == few["uploads"]
    assert many["downloads"] == few["downloads"] + 20  # the losses that are looked at


def test_memory_does_not_grow(process: Process) -> None:
    process.good(
        STEP
        + """
used = []
for steps in (20, 60):
    train("GPU", steps)
    used.append(ms._core.cuda_driver_info()["devices"][0])
assert used[1]["cached"] + used[1]["in_use"] <= 1.2 * (used[0]["cached"] + used[0]["in_use"])
"""
    )


def test_ops_outside_transforms_run_there_too(process: Process) -> None:
    process.good(
        GPU
        + """
x = tensor(4, 5)
a = x.asnumpy()
np.testing.assert_allclose((x * 2.0 + 1.0).asnumpy(), a * 2 + 1, rtol=1e-6)
np.testing.assert_allclose(ops.matmul(x, x.T).asnumpy(), a @ a.T, rtol=1e-5)
y = x * 2.0
z = y.asnumpy()
assert not z.flags.writeable
ms.set_context(device_target="CPU")
np.testing.assert_allclose((y + 1.0).asnumpy(), a * 2 + 1, rtol=1e-6)
"""
    )


def test_constants_of_later_calls_are_not_those_of_the_first(process: Process) -> None:
    process.good(
        GPU
        + """
x = tensor(7)
f = ms.grad(lambda v, k: (v * v * k).sum())
for k in (1.0, 2.0, 3.0, 2.0, 2.0, 2.0, 5.0):
    got = ms.grad(lambda v: (v * v * k).sum())(x)
    np.testing.assert_allclose(got.asnumpy(), 2 * k * x.asnumpy(), rtol=1e-6)
"""
    )


def test_numpy_arrays_that_change_are_sent_again(process: Process) -> None:
    process.good(
        GPU
        + """
a = np.ones(5, np.float32)
x = Tensor.from_numpy(a)
assert float((x * 2.0).sum()) == 10
a[:] = 3
assert float((x * 2.0).sum()) == 30
"""
    )


def test_empty_tensors_and_products_over_nothing(process: Process) -> None:
    process.good(
        GPU
        + """
empty = Tensor(np.zeros((0, 3), np.float32))
assert (empty * 2.0).asnumpy().shape == (0, 3)
product = ops.matmul(Tensor(np.zeros((2, 0), np.float32)), empty)
np.testing.assert_array_equal(product.asnumpy(), np.zeros((2, 3)))
"""
    )


# The kernel cache


CHAIN = GPU + "print(float((ops.sin(tensor(9)) * 2.0).sum()))\n"


def test_kernels_are_compiled_once(process: Process) -> None:
    first = process.good(CHAIN)
    assert process.counts()["compiles"] > 0
    assert process.good(CHAIN) == first
    assert process.counts()["compiles"] == 0
    assert not list((process.folder / "cache").glob("**/*.cubin.*"))  # nothing half-written


def test_a_corrupted_cache_entry_is_compiled_again(process: Process) -> None:
    first = process.good(CHAIN)
    compiles = process.counts()["compiles"]
    entries = sorted((process.folder / "cache").glob("**/*.cubin"))
    assert len(entries) == compiles
    entries[0].write_bytes(entries[0].read_bytes()[:-100])
    if len(entries) > 1:
        entries[1].write_bytes(b"rubbish")
    assert process.good(CHAIN) == first
    assert process.counts()["compiles"] == min(2, compiles)
    process.good(CHAIN)
    assert process.counts()["compiles"] == 0


def test_no_place_for_a_cache(process: Process) -> None:
    file = process.folder / "file"
    file.write_text("")
    first = process.good(CHAIN)
    assert process.good(CHAIN, GRADCELL_CACHE_DIR=str(file / "below")) == first


# What can go wrong


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"GRADCELL_CUDA_DRIVER": "/nowhere.so"}, "no NVIDIA driver was found"),
        ({"FAKE_CUDA_VERSION": "11080"}, "too old: it supports CUDA 11.8"),
        ({"FAKE_CUDA_VERSION": "12040"}, "NVRTC 13.0 is newer than the NVIDIA driver"),
        ({"FAKE_CUDA_DEVICES": "0"}, "reports no usable GPU"),
    ],
)
def test_what_is_missing_is_said(
    process: Process, environment: dict[str, str], message: str
) -> None:
    error = process.error(GPU, **environment)
    assert error.startswith("RuntimeError: device_target='GPU'")
    assert message in error


def test_a_missing_library_names_its_extra(process: Process) -> None:
    # An empty library stands for one that cannot be opened: the system's are not there either.
    for variable, name in (("GRADCELL_NVRTC", "NVRTC"), ("GRADCELL_CUBLASLT", "cuBLASLt")):
        broken = process.folder / "broken.so"
        broken.write_text("")
        error = process.error(GPU, **{variable: str(broken)})
        if name not in error:
            pytest.skip(f"the system has {name}")
        assert "gradcell[cuda13]" in error


def test_a_device_that_is_not_there(process: Process) -> None:
    script = "ms.set_context(device_target='GPU', device_id=2)"
    error = process.error(script, FAKE_CUDA_DEVICES="2")
    assert "device_id 2 is not there: this machine has 2 GPUs" in error


def test_a_failed_set_context_changes_nothing(process: Process) -> None:
    process.good(
        """
try:
    ms.set_context(device_target="GPU", device_id=5)
except RuntimeError:
    pass
assert ms.get_context("device_target") == "CPU" and ms.get_context("device_id") == 0
assert float((tensor(3) * 0.0).sum()) == 0
"""
    )


def test_out_of_memory_leaves_parameters_as_they_were(process: Process) -> None:
    process.good(
        GPU
        + """
p = Parameter(tensor(4), name="p")
before = p.asnumpy().copy()
def step(x):
    p.set_data(p + 1.0)
    big = ops.matmul(x, x.T)
    return ops.matmul(big, big).sum()
try:
    ms.grad(step)(tensor(3000, 2))
except MemoryError as error:
    text = str(error)
    assert "out of memory on GPU 0" in text and "asked for" in text and "hold" in text
else:
    raise AssertionError("no error")
np.testing.assert_array_equal(p.asnumpy(), before)
assert float((tensor(3) * 0.0).sum()) == 0
""",
        FAKE_CUDA_MEMORY=str(64 << 20),
    )


def test_an_index_out_of_range_is_an_error_when_a_value_is_read(process: Process) -> None:
    error = process.error(
        GPU + "y = ops.gather(tensor(4), Tensor(np.array([1, 9], np.int32)), 0)\ny.asnumpy()"
    )
    assert error.startswith("IndexError: an index was out of range")


# The command line


def test_nothing_of_cuda_is_linked() -> None:
    readelf = shutil.which("readelf")
    if not readelf:
        pytest.skip("no readelf")
    library = next(PACKAGE.glob("_core*.so"))
    dynamic = subprocess.run([readelf, "-d", str(library)], capture_output=True, text=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    assert needed
    assert not [n for n in needed if re.search("cuda|nvrtc|cublas", n, re.I)]


def test_info(process: Process) -> None:
    command = [sys.executable, "-m", "gradcell", "info"]
    out = subprocess.run(command, env=process.environment, capture_output=True, text=True).stdout
    assert "Fake GPU (sm_90)" in out
    assert str(process.folder / "cache") in out
    missing = {**process.environment, "GRADCELL_CUDA_DRIVER": "/nowhere.so"}
    done = subprocess.run(command, env=missing, capture_output=True, text=True)
    assert done.returncode == 0
    for line in ("version", "instruction set", "threads", "BLAS", "kernel cache"):
        assert line in done.stdout


def test_run_gives_a_script_mindspore_by_name(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("value = 5\n")
    script.write_text(
        "import sys\n"
        "import mindspore as ms\n"
        "import mindspore.nn as nn\n"
        "import mindspore.ops.operations as P\n"
        "import mindspore.common.dtype as mstype\n"
        "from mindspore.common.initializer import initializer\n"
        "from mindspore.common.parameter import Parameter\n"
        "from mindspore import Tensor, context, dataset, amp\n"
        "from mindspore.train import Model\n"
        "from mindspore.train.callback import LossMonitor\n"
        "from beside import value\n"
        "import gradcell\n"
        "assert ms is gradcell and nn is gradcell.nn and context is gradcell.context\n"
        "assert __name__ == '__main__' and sys.argv[1:] == ['--flag', '3']\n"
        "print(float(ms.grad(lambda x: x * x)(Tensor(3.0))), value)\n"
    )
    command = [sys.executable, "-m", "gradcell", "run", str(script), "--flag", "3"]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "6.0 5\n"


def test_run_says_what_is_not_there(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import mindspore.no_such_part\n")
    command = [sys.executable, "-m", "gradcell", "run"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([*command, str(script)], env=environment, capture_output=True, text=True)
    assert "gradcell has no part called 'mindspore.no_such_part'" in done.stderr
    done = subprocess.run([*command, "nowhere.py"], env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no such file: nowhere.py" in done.stderr
