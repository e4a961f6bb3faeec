"""gradcell in a process that ends, in subinterpreters, and under Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


def run(script: str, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


WORK = """
import sys, threading, time
import numpy as np
import gradcell as ms
from gradcell import nn, ops

x = ms.Tensor(np.ones((200, 200), np.float32))
few = ms.Tensor(np.ones((1, 3), np.float32))
net = nn.Dense(3, 1)
optimizer = nn.Adam(net.trainable_params())
gradients = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, optimizer.parameters)
long = ms.jit(lambda x: ops.sin(ops.matmul(x, x)).sum())
tree = ms.jit(lambda x: {"a": [x * 2], "b": (ops.matmul(x, x),)})
number = ms.jit(lambda x, s: (x * s).sum())
count = 0

def fresh():
    global count
    count += 1
    number(few, float(count))

work = {
    "long plans": lambda: long(x),
    "trees": lambda: tree(x),
    "new forms": fresh,
    "traces": lambda: optimizer(gradients(few)[1]),
    "arrays": lambda: ops.matmul(x, x).asnumpy(),
    "lists": lambda: ms.Tensor([[1.0, 2.0], [3.0, 4.0]]),
}[sys.argv[1]]
work()

def forever():
    while True:
        work()

for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
"""


@pytest.mark.one_in(6)
@pytest.mark.parametrize("work", ["long plans", "trees", "new forms", "traces", "arrays", "lists"])
def test_daemon_threads_at_exit(work: str) -> None:
    for _ in range(3):
        done = run(WORK, work)
        assert done.returncode == 0, done.stderr[-2000:]
        assert not done.stderr


@pytest.mark.parametrize("before", ["", "import gradcell"], ids=["fresh", "in use already"])
@pytest.mark.parametrize("shared_lock", [False, True])
def test_a_subinterpreter_is_refused(before: str, shared_lock: bool) -> None:
    done = run(
        before
        + f"""
import sys
code = '''
import sys
sys.path[:] = {sys.path!r}
try:
    import gradcell
except ImportError as error:
    print(error, flush=True)
'''
if sys.version_info >= (3, 13):
    import _interpreters
    _interpreters.exec(_interpreters.create(*{["legacy"] if shared_lock else []}), code)
else:
    import _xxsubinterpreters
    new = _xxsubinterpreters.create(isolated={not shared_lock})
    _xxsubinterpreters.run_string(new, code)
""",
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    # (Some Pythons refuse by themselves: "does not support loading in subinterpreters".)
    assert "in a subinterpreter" in done.stdout or "in subinterpreters" in done.stdout, done


LONG = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
import os, subprocess, sys, time
import numpy as np
import gradcell as ms
from gradcell import ops

delay, length = float(sys.argv[1]), int(sys.argv[2])
begin = None

def long(x):
    global begin, killer
    y = x
    for _ in range(length):
        y = ops.sin(y) * x
    if begin is None:
        begin = time.perf_counter()
        shell = f"PATH=/usr/bin:/bin; sleep {delay}; kill -INT {os.getpid()}"
        killer = subprocess.Popen(["/bin/sh", "-c", shell])
    return y

x = ms.Tensor(np.ones((4, 3), np.float32))
try:
    ms.grad(ms.grad(long))(x)
except KeyboardInterrupt:
    print(time.perf_counter() - begin - delay)
    length = 3
    ms.grad(ms.grad(long))(x)  # all as before
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("delay", [0.1, 0.5, 1.5])
def test_an_interrupt_is_answered_in_a_second(delay: float) -> None:
    """While a graph of a million nodes is differentiated (at first) or planned."""
    waits = []
    while len(waits) < 3 and min(waits, default=9) > 1:  # the machine may be busy with other things
        done = run(LONG, str(delay), "60000")
        assert done.returncode == 0, done.stderr
        waits.append(float(done.stdout))
    assert min(waits) < 1
