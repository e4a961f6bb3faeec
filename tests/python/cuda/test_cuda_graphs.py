"""Training loops as users write them, on the made-up GPU: from the first few steps on each step is one
launch of a graph, whatever varies from step to step."""

from __future__ import annotations

import pytest
from made_up_gpu import Process

pytestmark = pytest.mark.one_in(8)  # each has a process of its own, and compiles kernels

TRAINING = """
def network():
    net = nn.SequentialCell(nn.Dense(3, 8), nn.Tanh(), nn.Dense(8, 2))
    for p in net.get_parameters(): p.set_data(tensor(*p.shape))
    return net

def loop(target, steps, batches, mode=ms.GRAPH_MODE):
    global rng
    rng = np.random.default_rng(3)
    ms.set_context(device_target=target, mode=mode)
    net = network()
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    losses = [step(*batch) for batch in batches(steps)]
    return [float(v) for v in losses], *[p.asnumpy() for p in net.get_parameters()]

def same(one, other):
    for a, b in zip(one, other): np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6)
"""

#: Where the steps' batches come from.
BATCHES = {
    "one": """
def batches(steps):
    x, y = tensor(16, 3), tensor(16, 2)
    return ((x, y) for _ in range(steps))
""",
    "ten in turn": """
def batches(steps):
    all_of = [(tensor(16, 3), tensor(16, 2)) for _ in range(10)]
    return (all_of[k % 10] for k in range(steps))
""",
    "three in turn": """
def batches(steps):
    all_of = [(tensor(16, 3), tensor(16, 2)) for _ in range(3)]
    return (all_of[k % 3] for k in range(steps))
""",
    "slices": """
def batches(steps):
    x, y = tensor(160, 3), tensor(160, 2)
    starts = [16 * (k % 10) for k in range(steps)]
    return ((x[s : s + 16], y[s : s + 16]) for s in starts)
""",
    "arrays": """
def batches(steps):
    return ((tensor(16, 3), tensor(16, 2)) for _ in range(steps))
""",
}


@pytest.mark.one_in(24)
@pytest.mark.parametrize("batches", BATCHES)
def test_each_step_is_one_launch(process: Process, batches: str) -> None:
    script = TRAINING + BATCHES[batches] + "got = loop('GPU', 40, batches)\n"
    process.good(script + "same(got, loop('CPU', 40, batches))")
    counts = process.counts()
    assert counts["graphs"] >= 28, counts
    assert counts["captures"] <= 4, counts


RATES = (
    TRAINING
    + """
def train(target, steps):
    global rng
    rng = np.random.default_rng(3)
    ms.set_context(device_target=target)
    net = network()
    weights = net.trainable_params()
    x, y = tensor(16, 3), tensor(16, 2)
    slope = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, weights)
    @ms.jit
    def step(x, y, rate):
        value, grads = slope(x, y)
        for p, g in zip(weights, grads): p.set_data(p - rate * g)
        return value
    losses = [step(x, y, 0.1 / (1 + k)) for k in range(steps)]
    return [float(v) for v in losses], *[p.asnumpy() for p in weights]
same(train('GPU', 40), train('CPU', 40))
"""
)


def test_a_learning_rate_that_changes(process: Process) -> None:
    """A Python number: the graph's launches get the new one."""
    process.good(RATES)
    counts = process.counts()
    assert counts["graphs"] >= 30 and counts["captures"] <= 4, counts
    assert counts["updates"] >= counts["graphs"] - 2  # one kernel updates all weights


def test_a_driver_that_refuses_to_update_graphs(process: Process) -> None:
    process.good(RATES, FAKE_CUDA_REFUSE_UPDATES="1")


def test_what_was_launched_keeps_its_constants(process: Process) -> None:
    """A graph's constants change while launches of it wait."""
    process.good(
        """
ms.set_context(device_target="GPU")
f = ms.jit(lambda x, k: ops.matmul(x, x) * k)
x = tensor(5, 5)
got = [f(x, float(k)) for k in range(20)]
for k, y in enumerate(got):
    np.testing.assert_allclose(y.asnumpy(), x.asnumpy() @ x.asnumpy() * k, rtol=1e-5, atol=1e-6)
"""
    )
    counts = process.counts()
    assert counts["graphs"] > 0 and counts["updates"] > 0, counts


def test_inputs_are_copied_where_it_pays(process: Process) -> None:
    """The copy of a large input would take longer than the launch that a graph saves."""
    script = """
ms.set_context(device_target="GPU")
f = ms.jit(lambda x: ops.cumsum(ops.sin(x), 0) * 2.0)
xs = [tensor(*SIZE) for _ in range(10)]
for x in xs: x.move_to("GPU")
for k in range(30):
    got = f(xs[k % 10])
    want = 2 * np.sin(xs[k % 10].asnumpy()).cumsum(0)
    if k % 7 == 0: np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=1e-4)
"""
    process.good(script.replace("SIZE", "(2, 500)"))
    assert process.counts()["copies"] >= 20 and process.counts()["graphs"] >= 15
    process.good(script.replace("SIZE", "(2, 500000)"))
    assert process.counts()["copies"] == 0


def test_training_and_evaluation_in_turn(process: Process) -> None:
    """Two functions that read the same parameters; one updates them."""
    process.good(
        TRAINING
        + """
def both(target):
    global rng
    rng = np.random.default_rng(3)
    ms.set_context(device_target=target, mode=ms.GRAPH_MODE)
    net = network()
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    x, y = tensor(16, 3), tensor(16, 2)
    found = []
    for _ in range(20):
        found.append(float(step(x, y)))
        found.append(net(x).asnumpy().copy())
    return found
same(both("GPU"), both("CPU"))
"""
    )
    counts = process.counts()
    # The network's value alone is one launch, which is not captured.
    assert counts["graphs"] >= 16 and counts["captures"] <= 8, counts


def test_plans_share_memory_for_temporaries(process: Process) -> None:
    """The largest plan's memory does for all, and goes with the last of them."""
    process.good(
        """
ms.set_context(device_target="GPU")
x = tensor(300, 300)
device = lambda: ms._core.cuda_driver_info()["devices"][0]["in_use"]
def make(k): return ms.jit(lambda x: ops.matmul(ops.matmul(x, x) * k, ops.matmul(x, x + k)).sum())
used = []
for k in range(6):
    f = make(k) if k % 2 else ms.jit(lambda x, k=k: ops.matmul(ops.matmul(x, x + k), x).sum() * k)
    before = device()
    want = None
    for _ in range(5):
        got = f(x).asnumpy()
        assert want is None or want == got
        want = got
    used.append(device() - before)
arena = 300 * 300 * 4
assert used[0] + used[1] >= arena and max(used[2:]) < arena, used
"""
    )
