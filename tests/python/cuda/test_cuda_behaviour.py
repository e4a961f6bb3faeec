"""The CUDA engine among others in a process, on the made-up GPU: contexts, threads, forks, lost devices."""

from __future__ import annotations

import re

import numpy as np
import pytest
from made_up_gpu import Process

import gradcell as ms
from gradcell import cuda, ops

pytestmark = pytest.mark.one_in(8)  # each has a process of its own, and compiles kernels

GPU = "ms.set_context(device_target='GPU')\n"

#: The driver as another library of the process calls it.
DRIVER = """
import ctypes, os
driver = ctypes.CDLL(os.environ["GRADCELL_CUDA_DRIVER"])
def current():
    context = ctypes.c_void_p()
    assert driver.cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value
def context_of(device):
    context = ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    return context.value
"""


def test_contexts_of_others_stay_current(process: Process) -> None:
    """Another library has its device, or none, as before, whatever is done on GPU 1."""
    process.good(
        DRIVER
        + """
for mine in (None, context_of(0)):
    driver.cuCtxSetCurrent(ctypes.c_void_p(mine))
    def check(what):
        assert current() == mine, (what, current(), mine)
    ms.set_context(device_target="GPU", device_id=1)
    check("set_context")
    x = tensor(4, 4)
    f = ms.jit(lambda x: (ops.matmul(x, x) * 2.0).sum(0))
    for _ in range(5):
        y = f(x)
        check("a run")
    a = x.asnumpy()
    np.testing.assert_allclose(y.asnumpy(), 2 * (a @ a).sum(0), rtol=1e-5)
    check("a value")
    z = x.move_to("GPU")
    z.__cuda_array_interface__
    check("an exchange")
    ms.cuda.synchronize()
    check("synchronize")
    ms._core.release_cached_device_memory(1)
    check("release")
    del f, y, z
    __import__("gc").collect()
    check("destruction")
    try:
        ops.gather(tensor(4), Tensor(np.array([9], np.int32)), 0).asnumpy()
    except IndexError:
        check("an error")
""",
        FAKE_CUDA_DEVICES="2",
    )


def test_an_index_error_is_seen_by_one_thread(process: Process) -> None:
    """Each flag that is raised is seen once, however many threads read values."""
    process.good(
        GPU
        + """
import threading
good = tensor(64)
bad = Tensor(np.array([70], np.int32))
seen, rounds = [], 40
start = threading.Barrier(4)
def reads(raises):
    start.wait()
    for k in range(rounds):
        try:
            if raises:
                ops.gather(good, bad, 0).asnumpy()
            else:
                (good * float(k)).asnumpy()
        except IndexError:
            seen.append(raises)
threads = [threading.Thread(target=reads, args=(k == 0,)) for k in range(4)]
for t in threads: t.start()
for t in threads: t.join()
assert len(seen) == rounds, len(seen)
assert float((good * 0.0).sum()) == 0
"""
    )


LOST = (
    GPU
    + DRIVER
    + """
x = tensor(1000).move_to("GPU")
y = tensor(1000).move_to("GPU")
assert driver.cuCtxSetCurrent(ctypes.c_void_p(context_of(0))) == 0
address = x.__cuda_array_interface__["data"][0]
assert driver.cuMemFree_v2(ctypes.c_ulonglong(address)) == 0
def says(what):
    try:
        what()
    except RuntimeError as error:
        print(str(error).replace("\\n", " "))
    else:
        raise AssertionError("no error")
f = ms.jit(lambda x: ops.sin(x) * 3.0)
says(lambda: f(x).asnumpy())
says(lambda: (y + 1.0).asnumpy())
says(lambda: tensor(3).move_to("GPU"))
says(lambda: ms.cuda.synchronize())
ms.set_context(device_target="CPU")
assert float((tensor(3) * 0.0).sum()) == 0
"""
)


def test_a_lost_device_says_what_was_running(process: Process) -> None:
    first, *later = process.good(LOST).splitlines()
    assert "failed: a made-up error (CUDA error 700), in work since a value was last read" in first
    assert re.search(r"read: gc_\w+_0 \(<string>:\d+\)", first), first
    assert "CUDA_LAUNCH_BLOCKING=1" in first
    assert "GPU 0 (Fake GPU) cannot be used any more in this process" in first
    assert len(later) == 3
    for text in later:
        assert text.startswith("GPU 0 (Fake GPU) cannot be used any more in this process: cu")
        assert re.search(r"gc_\w+_0 \(<string>:", text), text


def test_launches_that_are_waited_for_are_named(process: Process) -> None:
    first = process.good(LOST, CUDA_LAUNCH_BLOCKING="1").splitlines()[0]
    assert re.match(r"gc_\w+_0 \(<string>:\d+\) failed", first), first
    assert "failed: a made-up error (CUDA error 700)" in first


def test_waiting_for_each_launch_changes_no_results(process: Process) -> None:
    process.good(
        GPU
        + """
x = tensor(4, 4)
f = ms.jit(lambda x: ops.matmul(ops.sin(x), x).sum(0))
a = x.asnumpy()
for _ in range(6): np.testing.assert_allclose(f(x).asnumpy(), (np.sin(a) @ a).sum(0), rtol=1e-5)
""",
        CUDA_LAUNCH_BLOCKING="1",
    )
    assert process.counts()["graphs"] == 0


def test_a_forked_child_is_told(process: Process) -> None:
    process.good(
        """
import os
def child(work):
    read, write = os.pipe()
    if (number := os.fork()) == 0:
        try:
            text = repr(work())
        except RuntimeError as error:
            text = "RuntimeError: " + str(error)
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file: text = file.read()
    assert os.waitpid(number, 0)[1] == 0
    return text

def first_use():
    ms.set_context(device_target="GPU")
    return float((tensor(3) * 0.0).sum())
assert child(first_use) == "0.0"  # nobody had used it before the fork

ms.set_context(device_target="GPU")
x = tensor(5)
y = x * 2.0
for work in (lambda: y.asnumpy(), lambda: y + 1.0, lambda: ms.cuda.synchronize()):
    text = child(work)
    assert "forked from one that had begun to use a GPU" in text and "spawn" in text, text
def on_the_cpu():
    ms.set_context(device_target="CPU")
    return float((tensor(3) * 0.0).sum())
assert child(on_the_cpu) == "0.0"
np.testing.assert_allclose(y.asnumpy(), 2 * x.asnumpy())
"""
    )


def test_very_deep_graphs_are_planned() -> None:
    """20,000 ops in a row, differentiated: kernels are written by recursion, but of so many ops only."""

    def f(x: ms.Tensor) -> ms.Tensor:
        y = x
        for _ in range(20000):
            y = ops.sin(y) + x
        return y.sum()

    plan = cuda.plan_of(ms.grad(f), ms.Tensor(np.array([0.1, 0.2])))
    assert plan.launches < 2000
    assert max(len(text) for _, text in plan.kernels) < 200_000


def test_the_device_is_a_setting(process: Process) -> None:
    """Forms and plans for the CPU and for the GPU stand beside each other; a trace has the device that it
    began with, whatever the function or another thread sets meanwhile."""
    process.good(
        """
import threading
def use(target): ms.set_context(device_target=target)
def devices(tensors): return {ms._core.device_of(t) for t in tensors}
def planned(): return ms._core.plan_cache_info()["misses"]
x = tensor(64, 64)
f, g = ms.jit(lambda x: ops.matmul(x, x).sum(0)), ms.grad(lambda x: ops.sin(x).sum())
def settle():
    for _ in range(3):
        found = [f(x), g(x), ops.gelu(x), ops.exp(x)]
    return found
cpu = settle()
assert devices(cpu) == {-1}
use("GPU")
gpu = settle()
assert devices(gpu) == {0}
before = planned()
for target, device in (("CPU", -1), ("GPU", 0)) * 2:
    use(target)
    assert devices(settle()) == {device}
assert planned() == before
for a, b in zip(cpu, gpu):
    np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-4)

def by_itself(x):
    y = ops.exp(x)
    use("GPU")
    return y.sum()
def by_another(x):
    y = ops.exp(x)
    other = threading.Thread(target=use, args=("GPU",))
    other.start()
    other.join()
    return y.sum()
for changing in by_itself, by_another:
    use("CPU")
    compiled = ms.jit(changing)
    assert devices([compiled(x)]) == {-1}
    assert devices([ops.exp(x)]) == {0}
    use("CPU")
    assert devices([compiled(x)]) == {-1}  # the form of before
    assert devices([ops.exp(x)]) == {-1}
    assert devices([ms.value_and_grad(changing)(x)[0]]) == {-1}
"""
    )
