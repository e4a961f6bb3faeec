"""What a step costs the host and the GPU's memory, counted by a driver that does nothing else."""

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
def per_call(call, calls=64, before=20):
    '''What a call costs in the long run, without what is 0.'''
    for _ in range(before): call()
    start = counts()
    for _ in range(calls): call()
    found = {n: (b - a) / calls for n, a, b in zip(NAMES, start, counts())}
    return {n: v for n, v in found.items() if v}
def held(): return ms._core.cuda_driver_info()["devices"][0]
ms.set_context(device_target="GPU", mode=ms.GRAPH_MODE)
"""

SCALED = """
net = nn.SequentialCell(nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 4))
optimizer = nn.Adam(net.trainable_params(), 1e-3)
loss = nn.WithLossCell(net, nn.MSELoss())
"""


def counted(process: Process, script: str) -> str:
    return process.good(COUNTING + script, FAKE_CUDA_IDLE="1")


@pytest.mark.parametrize(
    "step",
    [
        "nn.TrainOneStepWithLossScaleCell(loss, optimizer, nn.DynamicLossScaleUpdateCell(4, 2, 9))",
        "ms.gc_step(loss, optimizer)",
    ],
    ids=["cell", "by hand"],
)
def test_a_step_with_a_dynamic_loss_scale_waits_for_nothing(process: Process, step: str) -> None:
    """It read a number of the GPU's at each call. A copy in 32 goes unwaited for."""
    by_hand = """
scaler = ms.amp.DynamicLossScaler(4.0, 2, 9)
slope = ms.value_and_grad(lambda x, y: scaler.scale(loss(x, y)), None, net.trainable_params())
@ms.jit
def step(x, y):
    value, grads = slope(x, y)
    finite = ms.amp.all_finite(grads)
    scaler.adjust(finite)
    optimizer(scaler.unscale(grads))
    return value
def call(*args):
    scaler._guard.look()
    return step(*args)
"""
    script = SCALED + (f"call = {step}\n" if step.startswith("nn.") else by_hand)
    script += """
x, y = tensor(16, 32), tensor(16, 4)
cost = per_call(lambda: call(x, y))
assert cost.pop("downloads", 0) <= 1 / 32 and cost == {"graphs": 1.0}, cost
"""
    counted(process, script)


def test_an_overflow_at_the_smallest_scale_is_told_in_time(process: Process) -> None:
    """At the latest 64 steps after it, on a GPU whose work is always late."""
    process.good(
        """
import warnings
ms.set_context(device_target="GPU", mode=ms.GRAPH_MODE)
w = Parameter(np.float32([2.0]), name="w")
class Loss(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = w
    def construct(self, x): return (self.w * x).sum()
step = nn.TrainOneStepWithLossScaleCell(
    Loss(), nn.SGD([w], 0.0), nn.DynamicLossScaleUpdateCell(1, 2, 1000))
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
