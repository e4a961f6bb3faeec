"""The CUDA engine on a made-up GPU (tests/fake_cuda.cpp): loading, running, graphs, memory, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from made_up_gpu import TESTS, Process

pytestmark = pytest.mark.one_in(8)  # each has a process of its own, and compiles kernels

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


def test_parameters_of_all_sizes_are_updated_by_one_launch(process: Process) -> None:
    process.good(
        """
SHAPES = [(1,), (3,), (4,), (1023,), (5, 7)]
def train(target, steps):
    global rng
    rng = np.random.default_rng(3)
    parameters = [Parameter(tensor(*s), name=f"p{i}") for i, s in enumerate(SHAPES)]
    optimiser = nn.Adam(parameters, 0.01)
    ms.set_context(device_target=target, mode=ms.GRAPH_MODE)
    @ms.jit
    def step(*gradients): optimiser(gradients)
    gradients = [tensor(*s) for s in SHAPES]
    for _ in range(steps): step(*gradients)
    result = [p.asnumpy() for p in [*parameters, *optimiser.get_parameters()]]
    ms.set_context(device_target="CPU")
    return result
for a, b in zip(train("GPU", 6), train("CPU", 6)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
"""
    )
    # What the step's number makes of the learning rate, and all updates.
    assert process.counts()["launches"] == 2 * 6
    assert process.counts()["graphs"] > 0


BIASES = """
def layers(x, w, b, v, c): return ops.matmul(ops.matmul(x, w) + b, v) + c
values = [rng.standard_normal(s) for s in ((5, 7), (7, 6), (6,), (6, 3), (3,))]
for dtype, tolerance in ((np.float32, 1e-6), (np.float64, 1e-14), (np.float16, 5e-3)):
    a = [v.astype(dtype) for v in values]
    x = [Tensor(v) for v in a]
    f = ms.jit(layers)
    for _ in range(4): got = f(*x).asnumpy()
    ms.set_context(device_target="CPU")
    np.testing.assert_allclose(got, layers(*x).asnumpy(), rtol=tolerance, atol=10 * tolerance)
    ms.set_context(device_target="GPU")
"""


def test_products_add_the_bias(process: Process) -> None:
    process.good(GPU + BIASES)
    counts = process.counts()
    assert counts["products"] == counts["biases"] == 3 * 4 * 2 and counts["launches"] == 0
    assert counts["graphs"] > 0


@pytest.mark.parametrize("answer", ["0", "-1"])
def test_where_cublaslt_adds_no_bias_a_kernel_does(process: Process, answer: str) -> None:
    process.good(GPU + BIASES, FAKE_CUBLASLT_BIAS=answer)
    counts = process.counts()
    assert counts["products"] == counts["launches"] == 3 * 4 * 2 and counts["biases"] == 0
    assert counts["graphs"] > 0


# What can go wrong


def test_where_a_gpu_is_required_a_skip_is_a_failure(process: Process) -> None:
    tests = Path(__file__).with_name("test_cuda_gpu.py")
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", str(tests)]
    for required, outcome in (("", "1 skipped"), ("1", "no NVIDIA driver was found")):
        environment = {
            **process.environment,
            "GRADCELL_CUDA_DRIVER": "/nowhere.so",
            "GRADCELL_TEST_NEEDS_GPU": required,
        }
        one = ["-k", "test_results_do_not_change_from_run_to_run"]
        done = subprocess.run([*command, *one], env=environment, capture_output=True, text=True)
        # Without a driver the file's tests are not made at all, which pytest ends with 5.
        assert done.returncode in ((1,) if required else (0, 5)), done.stdout
        assert outcome in done.stdout


@pytest.mark.one_in(1)
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


@pytest.mark.one_in(1)
def test_an_index_out_of_range_is_an_error_when_a_value_is_read(process: Process) -> None:
    error = process.error(
        GPU + "y = ops.gather(tensor(4), Tensor(np.array([1, 9], np.int32)), 0)\ny.asnumpy()"
    )
    assert error.startswith("IndexError: an index was out of range")


@pytest.mark.parametrize("what", ["x // y", "x % y", "ops.fmod(x, y)", "x ** (y - 1)"])
def test_integers_that_are_not_permitted_are_an_error_when_a_value_is_read(
    what: str, process: Process
) -> None:
    """The second time what was captured runs, with a divisor that is 0; then all goes on."""
    process.good(
        GPU
        + f"""
f = ms.jit(lambda x, y: ({what}) + 1)
good = Tensor(np.array([7, -7, 9], np.int32)), Tensor(np.array([2, 2, 4], np.int32))
bad = Tensor(np.array([2, 0, 4], np.int32))
want = f(*good).asnumpy()
for _ in range(2):
    y = f(good[0], bad)
    try:
        y.asnumpy()
    except ValueError as error:
        text = str(error)
        assert ("by zero" in text or "negative powers" in text) and "in work on GPU" in text, text
    else:
        raise AssertionError("no error")
    np.testing.assert_array_equal(f(*good).asnumpy(), want)
"""
    )


NOT_TO_BE_DONE = {
    "histogram: the edges must be finite": "lambda x: ops.histc(x, 4)",
    "multinomial: weights must be finite": "lambda x: ops.multinomial(x, 5, True, 1) < 3",
    "an index was out of range": "lambda x: ops.unsorted_segment_max(x, x.astype(ms.int32), 3)",
}


@pytest.mark.parametrize("message", NOT_TO_BE_DONE)
def test_what_cannot_be_counted_is_an_error_when_a_value_is_read(
    message: str, process: Process
) -> None:
    """The second time what was captured runs; then all goes on."""
    process.good(
        GPU
        + f"""
f = ms.jit({NOT_TO_BE_DONE[message]})
good, bad = (Tensor(np.array([1, 0, x], np.float32)) for x in (2, np.inf))
want = f(good).asnumpy()
for _ in range(2):
    y = f(bad)
    try:
        y.asnumpy()
    except (ValueError, IndexError) as error:
        text = str(error)
        assert "{message}" in text and "in work on GPU" in text, text
    else:
        raise AssertionError("no error")
    np.testing.assert_array_equal(f(good).asnumpy(), want)
"""
    )


# Threads, devices, drivers -----------------------------------------------------------------------


def test_transfers_of_other_threads_are_no_part_of_a_capture(process: Process) -> None:
    process.good(
        STEP
        + """
import threading
stop, wrong, rounds = threading.Event(), [], []
ms.set_context(device_target="GPU")

def transfers(seed):
    own = np.random.default_rng(seed)
    while not stop.is_set():
        a = own.standard_normal(1000).astype(np.float32)
        got = (Tensor(a) * 2.0).asnumpy()
        rounds.append(seed)
        if not np.array_equal(got, 2 * a):
            wrong.append(seed)

threads = [threading.Thread(target=transfers, args=(s,)) for s in (1, 2)]
for t in threads: t.start()
results = [train("GPU", 30) for _ in range(4)]
stop.set()
for t in threads: t.join()
assert not wrong and len(set(rounds)) == 2
want = train("CPU", 30)
for got in results:
    for a, b in zip(got, want): np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
"""
    )
    assert process.counts()["graphs"] > 0


def test_one_compiled_function_in_two_threads(process: Process) -> None:
    process.good(
        GPU
        + """
import threading
@ms.jit
def f(x, y): return ops.matmul(x, y).sum(0) * 2.0
wrong = []
def work(seed):
    own = np.random.default_rng(seed)
    pairs = [(own.standard_normal((4, 5)), own.standard_normal((5, 3))) for _ in range(3)]
    tensors = [(Tensor(a.astype(np.float32)), Tensor(b.astype(np.float32))) for a, b in pairs]
    for k in range(60):
        (a, b), (x, y) = pairs[k % 3], tensors[k % 3]
        if not np.allclose(f(x, y).asnumpy(), 2 * (a @ b).sum(0), rtol=1e-4, atol=1e-4):
            wrong.append(k)
threads = [threading.Thread(target=work, args=(s,)) for s in range(3)]
for t in threads: t.start()
for t in threads: t.join()
assert not wrong
"""
    )


def test_the_second_gpu(process: Process) -> None:
    process.good(
        """
import threading
ms.set_context(device_target="GPU", device_id=0)
x = tensor(8, 8)  # its product is the library's, which keeps memory
y = x * 2.0  # on the first
a = x.asnumpy()
done = []
def on_second():  # a thread in which no GPU has been current
    ms.set_context(device_id=1)
    got = ops.matmul(y, x).asnumpy()
    done.append(np.allclose(got, 2 * a @ a, rtol=1e-5))
t = threading.Thread(target=on_second)
t.start(); t.join()
assert done == [True]
np.testing.assert_allclose((y + x).asnumpy(), 3 * a, rtol=1e-6)
ms.set_context(device_id=0)
np.testing.assert_allclose(ops.matmul(y, x).asnumpy(), 2 * a @ a, rtol=1e-5)
held = ms._core.cuda_driver_info()["devices"]
assert held[0]["in_use"] > 0 and held[1]["in_use"] > 0
""",
        FAKE_CUDA_DEVICES="2",
    )


def test_a_compiled_function_follows_the_device(process: Process) -> None:
    process.good(
        """
@ms.jit
def f(x): return ops.sin(x) * 2.0
x = tensor(5)
first = f(x)
assert ms._core.device_of(first) == -1
ms.set_context(device_target="GPU")
for _ in range(4): second = f(x)
assert ms._core.device_of(second) == 0
ms.set_context(device_target="CPU")
assert ms._core.device_of(f(x)) == -1
np.testing.assert_allclose(second.asnumpy(), first.asnumpy(), rtol=1e-6)
"""
    )


def test_a_driver_that_refuses_to_capture(process: Process) -> None:
    process.good(
        STEP
        + """
on_gpu, on_cpu = train("GPU", 12), train("CPU", 12)
for a, b in zip(on_gpu, on_cpu):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
""",
        FAKE_CUDA_REFUSE_CAPTURE="1",
    )
    assert process.counts()["graphs"] == 0


def test_out_of_memory_in_the_middle_of_training(process: Process) -> None:
    """Parameters and optimiser state hold the last finished step, and training goes on from it."""
    process.good(
        """
import os
def train(target, fail):
    global rng
    rng = np.random.default_rng(3)
    ms.set_context(device_target=target, mode=ms.GRAPH_MODE)
    net = nn.SequentialCell(nn.Dense(3, 8), nn.Tanh(), nn.Dense(8, 1))
    for p in net.get_parameters(): p.set_data(tensor(*p.shape))
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
    slope = ms.value_and_grad(lambda x: ops.square(net(x)).mean(), None, optimizer.parameters)
    @ms.jit
    def step(x):
        loss, gradients = slope(x)
        optimizer(gradients)
        return loss
    x, wide = tensor(16, 3), tensor(4096, 3)
    state = lambda: [p.asnumpy().copy() for p in [*net.get_parameters(), *optimizer.get_parameters()]]
    for k in range(9):
        step(x)
        if fail and k in (0, 1, 5):
            before = state()
            os.environ["FAKE_CUDA_MEMORY"] = "1000000"
            ms._core.release_cached_device_memory(0)
            try:
                step(wide)
            except MemoryError as error:
                assert "out of memory on GPU 0" in str(error) and "are free" in str(error)
            else:
                raise AssertionError("no error")
            finally:
                del os.environ["FAKE_CUDA_MEMORY"]
            for a, b in zip(before, state()): np.testing.assert_array_equal(a, b)
    return state()
for a, b in zip(train("GPU", True), train("CPU", False)):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
""",
        FAKE_CUDA_MEMORY=str(1 << 30),
    )


def test_large_transfers_go_in_pieces(process: Process) -> None:
    process.good(
        GPU
        + """
a = rng.standard_normal((3, 1 << 20)).astype(np.float32)[:, : (1 << 20) - 77].copy()
x = Tensor(a).move_to("GPU")
a2 = a.copy(); a[:] = 0
np.testing.assert_array_equal((x * 2.0).asnumpy(), 2 * a2)
np.testing.assert_array_equal(x.asnumpy(), a2)
"""
    )


@pytest.mark.one_in(1)
def test_tf32_only_when_asked(process: Process) -> None:
    process.good(
        GPU
        + """
x = tensor(8, 8)
def kinds(): return [s["matmul"]["tf32"] for s in ms.cuda.plan_of(lambda: ops.matmul(x, x)).steps]
f = ms.jit(lambda a: ops.matmul(a, a))
f(x)
assert kinds() == [False]
ms.set_context(gpu_config={"matmul_allow_tf32": True})
assert kinds() == [True] and "matmul tf32" in str(ms.cuda.plan_of(lambda: ops.matmul(x, x)))
np.testing.assert_allclose(f(x).asnumpy(), x.asnumpy() @ x.asnumpy(), rtol=1e-2, atol=1e-2)
ms.set_context(gpu_config={"matmul_allow_tf32": False})
assert kinds() == [False]
"""
    )
    error = process.error("ms.set_context(gpu_config={'matmul_allow_tf32': 1})")
    assert error.startswith("TypeError: gpu_config must be a dict of options")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_benchmarks(process: Process, every: bool) -> None:
    """bench/gpu_bench.py at a small size: a table, and everything as JSON."""
    bench = TESTS.parent / "bench" / "gpu_bench.py"
    junit, results = process.folder / "tests.xml", process.folder / "gpu.json"
    junit.write_text(
        '<testsuites><testsuite tests="2" failures="1" errors="0" skipped="0">'
        '<testcase name="good"/><testcase name="bad"><failure/></testcase></testsuite></testsuites>'
    )
    options = [
        "--scale",
        "0.00005",
        "--repeats",
        "1",
        "--tests",
        str(junit),
        "--json",
        str(results),
    ]
    if not every:
        options += ["--cases", "copy", "32 product", "batches", "convolution, float32"]
    done = subprocess.run(
        [sys.executable, str(bench), *options],
        env={**process.environment, "GRADCELL_CUDNN": "0"},  # then four cases cannot run
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr[-2000:]
    record = json.loads(results.read_text())
    failed = {name for name, row in record["cases"].items() if "error" in row}
    # Their kernels need whole warps.
    others = {"convolution, float16", "attention, float32", "attention, bfloat16"}
    others.add("LSTM of 128, sequences")
    assert failed == {"convolution, float32", *(others if every else ())}
    assert record["gpu"] == "Fake GPU" and record["driver"] == 13000
    assert record["tests"]["tests"] == 2 and record["failed"] == ["bad"]
    steps = ("MLP training step", "PINN training step", "Burgers, nn.Dense 8x20")
    steps += ("narrow MLP, bfloat16", "narrow MLP, TF32", "Burgers, nn.Dense 4x64, TF32")
    some = ("copy", "float32 product", "TF32 product", "MLP, batches in turn")
    for name in (*some, *(steps if every else ())):
        assert record["cases"][name]["ms"] > 0 and name in done.stdout


@pytest.mark.one_in(6)
def test_the_comparison(process: Process) -> None:
    """bench/gpu_compare.py, of gradcell alone, at a small size."""
    bench, results = TESTS.parent / "bench" / "gpu_compare.py", process.folder / "compare.json"
    options = ["--frameworks", "gradcell", "--scale", "0.001", "--rounds", "1"]
    chosen = ["--cases", "8x20, 10,000", "4x64", "--json", str(results)]
    done = subprocess.run(
        [sys.executable, str(bench), *options, *chosen],
        env=process.environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    record = json.loads(results.read_text())["cases"]
    assert len(record) == 2 and all(row["gradcell"]["ms"] > 0 for row in record.values())
