"""What a step costs the host, and how much memory of a GPU it holds, counted by a made-up driver that does
nothing else (FAKE_CUDA_IDLE)."""

from __future__ import annotations

import pytest
from made_up_gpu import Process

pytestmark = pytest.mark.one_in(2)  # each has a process of its own

COUNTING = """
import ctypes, os
driver = ctypes.CDLL(os.environ["GRADCELL_CUDA_DRIVER"])
driver.fake_count.restype = ctypes.c_long
NAMES = "graphs enqueued products copies downloads waits captures".split()
def counts(): return [driver.fake_count(name.encode()) for name in NAMES]
def per_call(call, calls=64, before=48):
    '''What a call costs in the long run, without what is 0.'''
    for _ in range(before): call()
    start = counts()
    for _ in range(calls): call()
    found = {n: (b - a) / calls for n, a, b in zip(NAMES, start, counts())}
    return {n: v for n, v in found.items() if v}
def held(): return ms._core.cuda_driver_info()["devices"][0]
def network(width): return nn.SequentialCell(nn.Dense(32, width), nn.ReLU(), nn.Dense(width, 4))
def training(width=64):
    net = network(width)
    return nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-3))
x, y = tensor(16, 32), tensor(16, 4)
ms.set_context(device_target="GPU")
"""


def counted(process: Process, script: str) -> str:
    return process.good(COUNTING + script, FAKE_CUDA_IDLE="1")


SCALED = {
    "a cell": """
call = nn.TrainOneStepWithLossScaleCell(loss, optimizer, nn.DynamicLossScaleUpdateCell(4, 2, 9))
""",
    "a function": """
scaler = ms.amp.DynamicLossScaler(4.0, 2, 9)
slope = ms.value_and_grad(lambda x, y: scaler.scale(loss(x, y)), None, net.trainable_params())
def call(x, y):
    value, grads = slope(x, y)
    scaler.adjust(ms.amp.all_finite(grads))
    optimizer(scaler.unscale(grads))
    return value
""",
}


@pytest.mark.parametrize("step", SCALED)
def test_a_step_with_a_dynamic_loss_scale_waits_for_nothing(process: Process, step: str) -> None:
    """It read a number of the GPU's at each call. Now some copies go, for which nobody waits."""
    counted(
        process,
        "net = network(64)\noptimizer = nn.Adam(net.trainable_params(), 1e-3)\n"
        + "loss = nn.WithLossCell(net, nn.MSELoss())\n"
        + SCALED[step]
        + """
cost = per_call(lambda: call(x, y))
downloads = cost.pop("downloads", 0)
assert downloads <= 1 / 16 and "waits" not in cost, (downloads, cost)
"""
        + ("assert cost == {'graphs': 1.0}, cost\n" if step == "a cell" else ""),
    )


WHOLE = {
    "the largest of rows": "lambda x: ops.topk(ops.sin(x), 3)[0].sum()",
    "long rows in order": "lambda x: (ops.sort(x)[0] * ops.arange(5000.0)).sum()",
    "a median": "lambda x: ops.median(x, 1)[0].sum()",
    "places and their bits": "lambda x: (x * (ops.argsort(x) & 7)).sum()",
    "quotients of integers": "lambda x: (x * (ops.argsort(x) // (ops.argsort(-x) + 1))).sum()",
    "the largest so far": "lambda x: (ops.cummax(x, 1)[0] * x).sum()",
    "the largest of segments": "lambda x: ops.unsorted_segment_max(x.T, places, 9).sum()",
    "membership": "lambda x: (x * ops.isin(ops.argsort(x), places)).sum()",
    "counts in intervals": "lambda x: (ops.histc(x, 30, -2, 2) ** 2 * x.sum()).sum()",
    "draws by weights": "lambda x: (ops.gather(x.sum(0), ops.multinomial(x[0] ** 2, 9), 0)).sum()",
}


@pytest.mark.parametrize("what", WHOLE)
def test_what_orders_and_divides_is_part_of_a_graph(process: Process, what: str) -> None:
    """The host computed it, and waited twice a step."""
    counted(
        process,
        f"""
x = tensor(4, 5000)
places = Tensor(np.arange(5000) % 9)
call = ms.jit(ms.value_and_grad({WHOLE[what]}))
cost = per_call(lambda: call(x))
assert cost == {{"graphs": 1.0}}, cost
""",
    )


def test_an_overflow_at_the_smallest_scale_is_told_in_time(process: Process) -> None:
    """At the latest 64 steps after it, on a GPU whose work is always late."""
    process.good(
        """
import warnings
ms.set_context(device_target="GPU", mode=ms.GRAPH_MODE)
class Loss(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(np.float32([2.0]), name="w")
    def construct(self, x): return (self.w * x).sum()
loss = Loss()
step = nn.TrainOneStepWithLossScaleCell(
    loss, nn.SGD([loss.w], 0.1), nn.DynamicLossScaleUpdateCell(1, 2, 1000))
good, bad = Tensor(np.float32([1.0])), Tensor(np.float32([np.inf]))
told = []
for k in range(200):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        step(bad if k == 70 else good)
    told += [k for w in found if "smallest loss scale" in str(w.message)]
assert len(told) == 1 and 70 < told[0] <= 70 + 64, told
"""
    )


def test_memory_is_flat_over_batch_shapes(process: Process) -> None:
    """Each shape is a plan. Each kept two sets of all weights and moments: 22 times these."""
    counted(
        process,
        """
net = nn.SequentialCell(nn.Dense(1024, 1024), nn.ReLU(), nn.Dense(1024, 1024), nn.ReLU(),
                        nn.Dense(1024, 1024))
step = nn.TrainOneStepCell(
    nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-3))
weights = sum(p.nbytes for p in net.trainable_params())
x = Tensor(np.zeros((32, 1024), np.float32)).move_to("GPU")
(x @ x.T).move_to("GPU")  # with the workspace of products
workspace = held()["in_use"]
for k in range(9):
    x = Tensor(np.zeros((32 + 8 * k, 1024), np.float32))
    for _ in range(6): step(x, x)
now = held()
# Weights, two moments, and gradients of the weights as temporaries.
assert now["in_use"] + now["cached"] - workspace < 1.3 * 4 * weights, (now, weights)
""",
    )


TURNS = """
steps = [training() for _ in range(MODELS)]
results = [None] * MODELS
def each():
    for k, step in enumerate(steps):
        loss = step(x, y)
        if HELD: results[k] = loss
"""


@pytest.mark.parametrize("held", ["dropped", "until the next call"])
@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
@pytest.mark.parametrize("models", [2, 4])
def test_models_of_one_structure_have_graphs(
    process: Process, models: int, mode: str, held: str
) -> None:
    """The second one's state was copied at each step, or had no graph, for good."""
    script = TURNS.replace("MODELS", str(models)).replace("HELD", str(held != "dropped"))
    counted(
        process,
        f"ms.set_context(mode=ms.{mode})\n"
        + script
        + f"""
cost = per_call(each)
assert cost == {{"graphs": {models}.0}}, cost
del steps[1:]
cost = per_call(each)
assert cost == {{"graphs": 1.0}}, cost
""",
    )


RESULTS = {
    # Another's outputs are free by the next call.
    "held until the next call": ("out = None", "out = f(x)", {"graphs": 1.0}),
    "dropped": ("", "f(x)", {"graphs": 1.0}),
    # Small ones are copied out as long as they are kept.
    "kept": ("out = []", "out.append(f(x))", {"graphs": 1.0, "copies": 2.0}),
}


@pytest.mark.parametrize("results", RESULTS)
def test_results_need_no_copies(process: Process, results: str) -> None:
    first, call, want = RESULTS[results]
    counted(
        process,
        f"""
@ms.jit
def f(x):
    z = ops.cumsum(ops.tanh(x @ x.T), 0)
    return z, z.sum(0)
x = tensor(16, 32)
{first}
def run():
    global out
    {call}
cost = per_call(run)
assert cost == {want}, cost
""",
    )


def test_copies_end_when_results_are_no_longer_kept(process: Process) -> None:
    counted(
        process,
        """
f = ms.jit(lambda x: ops.cumsum(ops.tanh(x @ x.T), 0))
x = tensor(16, 32)
kept = [f(x) for _ in range(50)]
assert per_call(lambda: kept.append(f(x))) == {"graphs": 1.0, "copies": 1.0}
assert per_call(lambda: f(x)) == {"graphs": 1.0}
""",
    )


def test_large_results_that_are_held_until_the_next_call_have_graphs(process: Process) -> None:
    """Above a MB they are never copied; there was no graph."""
    counted(
        process,
        """
f = ms.jit(lambda x: ops.cumsum(ops.tanh(x @ x.T), 0))
x = tensor(1024, 32)
out = None
def run():
    global out
    out = f(x)
assert per_call(run) == {"graphs": 1.0}
""",
    )


def test_plans_let_go_of_memory_that_is_short(process: Process) -> None:
    """What idle plans keep for their next runs goes to the one that needs it."""
    script = """
def make(n): return ms.jit(lambda x: ops.cumsum(ops.tanh(x), 0) * float(n))
x = tensor(1 << 20)  # 4 MB
for n in range(20):
    f = make(n)
    for _ in range(4): f(x)
    fs = globals().setdefault("fs", []); fs.append(f)
for f in fs: f(x)
now = held()
assert now["in_use"] + now["cached"] <= 40_000_000
ms.runtime.empty_cache()
assert held()["in_use"] <= 9_000_000 and held()["cached"] == 0, held()
"""
    process.good(COUNTING + script, FAKE_CUDA_IDLE="1", FAKE_CUDA_MEMORY="40000000")


def test_calls_that_see_the_memory_of_the_gpu(process: Process) -> None:
    counted(
        process,
        """
before = ms.runtime.memory_allocated()
x = tensor(1 << 20).move_to("GPU")
assert ms.runtime.memory_allocated() - before == 4 << 20
del x
import gc; gc.collect()
assert ms.runtime.memory_allocated() == before
assert ms.runtime.memory_reserved() >= before + (4 << 20)
assert ms.runtime.memory_stats()["cached"] >= 4 << 20
assert "in_use" in ms.runtime.memory_summary()
ms.runtime.empty_cache()
assert ms.runtime.memory_reserved() == ms.runtime.memory_allocated()
""",
    )
