"""How much memory of a GPU is held, and whose work it waits for, on the made-up GPU (tests/fake_cuda.cpp)."""

from __future__ import annotations

import json

import pytest
from made_up_gpu import Process

pytestmark = pytest.mark.one_in(8)  # each has a process of its own, and compiles kernels

GPU = """
ms.set_context(device_target="GPU")
import gc
import made_up_cupy as cp
def values(*shape): return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
def held(): return ms._core.cuda_driver_info()["devices"][0]
"""

GOES_OUT = """
v = values(1000)
t = Tensor(v).move_to("GPU")
taken = []
for k in range(20):  # a result of each step goes out, is read late, and is forgotten
    x = t * float(k)
    stream = cp.new_stream()
    out = cp.Taken(x, stream)
    taken.append((out.enqueue_copy(), stream))
    del out, x
    gc.collect()
ms.cuda.synchronize()  # all of this engine's work is done before the others' streams move on
for k, (got, stream) in enumerate(taken):
    cp.call("cuStreamSynchronize", cp.ctypes.c_void_p(stream))
    np.testing.assert_array_equal(got, k * v)
"""


def test_nobody_waits_for_memory_that_went_out(process: Process) -> None:
    """It used to take a wait for all streams of the device, other libraries' too, for each of them."""
    process.good(GPU + GOES_OUT)
    assert process.counts()["waits"] == 0 and process.counts()["allocations"] < 10


def test_memory_that_went_out_under_an_older_driver(process: Process) -> None:
    """It is not used again before a wait for all streams, which comes when memory is short."""
    ready = """
class Ready:  # a tensor whose memory no plan keeps
    def __mul__(self, k): return Tensor(v * k).move_to("GPU")
"""
    script = GPU + ready + GOES_OUT.replace("x = t * float(k)", "x = Ready() * float(k)")
    process.good(script, FAKE_CUDA_REFUSE_CONTEXT_EVENTS="1")
    assert process.counts()["waits"] == 0 and process.counts()["allocations"] >= 20
    process.good(script, FAKE_CUDA_REFUSE_CONTEXT_EVENTS="1", FAKE_CUDA_MEMORY="50000")
    assert 0 < process.counts()["waits"] < 10
    process.good(GPU + GOES_OUT, FAKE_CUDA_REFUSE_CONTEXT_EVENTS="1")


def test_memory_that_went_out_while_another_stream_is_captured(process: Process) -> None:
    process.good(
        GPU
        + """
import ctypes
v = values(1000)
t = Tensor(v).move_to("GPU")
x = t * 2.0
stream, other = cp.new_stream(), cp.new_stream()
out = cp.Taken(x, stream)
got = out.enqueue_copy()
pointer = out.managed.tensor.data
cp.call("cuStreamBeginCapture_v2", ctypes.c_void_p(other), 1)
del out, x
gc.collect()
graph = ctypes.c_void_p()
cp.cuda.cuStreamEndCapture(ctypes.c_void_p(other), ctypes.byref(graph))
y = t * 3.0  # somewhere else: nobody can say yet when the block is free
assert y.__cuda_array_interface__["data"][0] != pointer
np.testing.assert_array_equal(y.asnumpy(), 3 * v)
cp.call("cuStreamSynchronize", ctypes.c_void_p(stream))
np.testing.assert_array_equal(got, 2 * v)
"""
    )


def test_a_stream_that_its_owner_captures_is_refused(process: Process) -> None:
    """Work of ours that waited for it would become a part of its graph."""
    process.good(
        GPU
        + """
import ctypes
v = values(8)
a, x = cp.Array(v), Tensor(v) * 2.0
stream = cp.new_stream()
x.asnumpy()
cp.call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), 1)
a.stream, own = stream, a.stream
for take in (lambda: Tensor(a), lambda: ms.from_numpy(a), lambda: x.__dlpack__(stream=stream)):
    try:
        take()
    except RuntimeError as error:
        assert "is being captured (by torch.cuda.graph" in str(error), error
    else:
        raise AssertionError(take)
graph = ctypes.c_void_p()
cp.call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))  # it is whole
a.stream = own
np.testing.assert_array_equal((Tensor(a) * 3.0).asnumpy(), 3 * v)
"""
    )


def test_exact_memory(process: Process) -> None:
    """Each buffer is an allocation of its size, given back when nobody holds it; what is computed stays
    the same, loops and products of several buffers included."""
    script = (
        GPU
        + """
import json
w = [tensor(16, 24), tensor(24, 16)]
ms.set_seed(3)
lstm = nn.LSTM(3, 5)
x, s = tensor(7, 16), tensor(9, 2, 3)

@ms.jit
def f(x, a, b, s):
    h = ops.tanh(ops.matmul(x, a))
    y = ops.matmul(h, b)
    loss = lambda a, b: (ops.softmax(ops.matmul(ops.sin(ops.matmul(x, a)), b), -1) ** 2).sum()
    slopes = ms.grad(loss, (0, 1))(a, b)
    return ops.softmax(y, -1), lstm(s)[0], (h * 2.0).sum(), *slopes

for _ in range(4):
    y = [v.asnumpy() for v in f(x, *w, s)]
print(json.dumps([[v.tolist() for v in y], held()["cached"]]))
"""
    )
    usual = json.loads(process.good(script))
    before = process.counts()
    sizes = process.folder / "sizes"
    exact = json.loads(
        process.good(script, GRADCELL_CUDA_EXACT_MEMORY="1", FAKE_CUDA_SIZES=str(sizes))
    )
    after = process.counts()
    assert usual[0] == exact[0] and exact[1] == 0
    assert after["graphs"] == 0 < before["graphs"]
    assert after["allocations"] > before["allocations"] + 20
    # The products' results, the recurrent layer's and the loss: none is rounded up.
    assert {7 * 24 * 4, 7 * 16 * 4, 9 * 2 * 5 * 4, 4} <= {int(n) for n in sizes.read_text().split()}
