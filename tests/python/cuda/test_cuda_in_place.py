"""Variables that a step on a GPU writes where they are, and who must not see that: on the made-up GPU,
whose streams are late and whose threads run one after the other."""

from __future__ import annotations

import pytest
from made_up_gpu import Process

pytestmark = pytest.mark.one_in(4)  # each has a process of its own, and compiles kernels

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
