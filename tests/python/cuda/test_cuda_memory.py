"""How much memory of a GPU is held, whose work it waits for, and which variables a step writes where they
are, on the made-up GPU (tests/fake_cuda.cpp), whose streams are late and whose threads take turns."""

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


# Updates in place ---------------------------------------------------------------------------------

BOTH = """
def place(p): return ms._core.device_pointer(p._stored())
def on_both(program):
    found = []
    for target in ("CPU", "GPU"):
        ms.set_context(device_target=target, mode=ms.GRAPH_MODE)
        global rng
        rng = np.random.default_rng(3)
        found.append([np.asarray(v) for v in program()])
    for a, b in zip(*found): np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
"""

#: Programs that return what is compared with the CPU's.
PROGRAMS = {
    "a tensor that is held": """
p = Parameter(tensor(40, 30), name="p")
step = ms.jit(lambda x: p.set_data(p * 0.5 + x.sum()))
held = []
for k in range(8):
    if k % 3 == 0: held.append(p.value())
    step(tensor(3))
return [*(t.asnumpy() for t in held), p.asnumpy()]
""",
    "an array that NumPy sees": """
p = Parameter(tensor(40, 30), name="p")
step = ms.jit(lambda: p.set_data(p * 0.5 + 1.0))
held = []
for k in range(8):
    held.append(p.asnumpy())
    copies = [a.copy() for a in held]
    step()
    for a, b in zip(held, copies): np.testing.assert_array_equal(a, b)
return [p.asnumpy()]
""",
    "the old value as a result": """
p = Parameter(tensor(40, 30), name="p")
@ms.jit
def step():
    old = p.value()
    p.set_data(p * 0.5 + 1.0)
    return old, p.value(), old + p.value()
return [v.asnumpy() for _ in range(6) for v in step()]
""",
    "two that exchange values": """
a, b = Parameter(tensor(40), name="a"), Parameter(tensor(40), name="b")
@ms.jit
def step():
    x, y = a.value(), b.value()
    a.set_data(y + 1.0)
    b.set_data(x * 0.5)
for _ in range(6): step()
return [a.asnumpy(), b.asnumpy()]
""",
    "elements from elsewhere": """
a, b = Parameter(tensor(9, 9), name="a"), Parameter(tensor(9, 9), name="b")
@ms.jit
def step(x):
    a.set_data(a * 0.5 + ops.transpose(a, (1, 0)))
    b.set_data(b * 0.5 + b[0] + ops.cumsum(b, 0) * 0.1 + x)
for _ in range(6): step(tensor(9))
return [a.asnumpy(), b.asnumpy()]
""",
    "one that products read": """
w, n = Parameter(tensor(9, 9), name="w"), Parameter(Tensor(0), name="n")
@ms.jit
def step(x):
    y = ops.tanh(x @ w)
    w.set_data(w - 0.1 * (x.T @ y) / (n + 1))
    n.set_data(n + 1)
    return (y @ w).sum()
return [*(step(tensor(9, 9)).asnumpy() for _ in range(6)), w.asnumpy(), n.asnumpy()]
""",
    "a value that two have": """
a, b = Parameter(tensor(40), name="a"), Parameter(tensor(40), name="b")
step = ms.jit(lambda: a.set_data(a * 0.5 + 1.0))
found = []
for _ in range(4):
    b.set_data(a)
    step()
    found += [a.asnumpy().copy(), b.asnumpy().copy()]
return found
""",
    "one that an argument is": """
a = Parameter(tensor(40), name="a")
@ms.jit
def step(x):
    a.set_data(a * 0.5 + 1.0)
    return x * 2.0
return [*(step(a.value()).asnumpy() for _ in range(5)), a.asnumpy()]
""",
    "part of a graph, after a copy": """
w = [Parameter(tensor(9, 9), name=f"w{k}") for k in range(3)]
@ms.jit
def step(x):
    y = x
    for p in w: y = ops.tanh(y @ p)
    for p in w: p.set_data(p * 0.9 + y.mean())
    return y.sum()
found, held = [], None
for k in range(30):
    held = w[1].value() if k % 7 == 0 else held if k % 7 < 3 else None
    found.append(step(tensor(9, 9)).asnumpy())
return [*found, *(p.asnumpy() for p in w)]
""",
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_are_the_cpus(process: Process, program: str) -> None:
    body = PROGRAMS[program].strip().replace("\n", "\n    ")
    process.good(BOTH + f"def program():\n    {body}\non_both(program)\n")


def test_variables_stay_where_they_are(process: Process) -> None:
    process.good(
        BOTH
        + """
ms.set_context(device_target="GPU")
net = nn.SequentialCell(nn.Dense(3, 8), nn.Tanh(), nn.Dense(8, 2))
optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
x, y = tensor(16, 3), tensor(16, 2)
for _ in range(4): step(x, y)
state = [*net.trainable_params(), *optimizer.get_parameters()]
before = [place(p) for p in state]
for _ in range(4): step(x, y)
assert [place(p) for p in state] == before
held = [p.value() for p in state]
step(x, y)
assert not {place(p) for p in net.trainable_params()} & set(before)
"""
    )


def test_a_run_that_fails_changes_nothing(process: Process) -> None:
    """What the host computes may fail after a kernel has run: what that writes is not in place."""
    process.good(
        """
ms.set_context(device_target="GPU")
p = Parameter(tensor(5), name="p")
@ms.jit
def step(a):
    p.set_data(p + 1.0)
    return ops.cholesky(a) if hasattr(ops, "cholesky") else ms.scipy.linalg.cholesky(a)
good, bad = Tensor(np.eye(3, dtype=np.float32)), Tensor(-np.eye(3, dtype=np.float32))
for _ in range(3): step(good)
before = p.asnumpy().copy()
try:
    r = step(bad)
except Exception:
    np.testing.assert_array_equal(p.asnumpy(), before)
else:
    assert np.isnan(r.asnumpy()).any()
    np.testing.assert_array_equal(p.asnumpy(), before + 1)
"""
    )


def test_memory_that_another_library_has_seen(process: Process) -> None:
    """It is written again only after all that any stream has to do by then."""
    process.good(
        BOTH
        + """
import gc
import made_up_cupy as cp
ms.set_context(device_target="GPU")
p = Parameter(Tensor(np.arange(1000, dtype=np.float32)), name="p")
step = ms.jit(lambda: p.set_data(p * 2.0 + 1.0))
want = np.arange(1000, dtype=np.float32)
for _ in range(3): step(); want = want * 2 + 1
stream = cp.new_stream()
out = cp.Taken(p._stored(), stream)
got = out.enqueue_copy()  # runs late
del out
gc.collect()
for _ in range(3): step()
ms.cuda.synchronize()
cp.call("cuStreamSynchronize", cp.ctypes.c_void_p(stream))
np.testing.assert_array_equal(got, want)
"""
    )
