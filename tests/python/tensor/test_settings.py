"""Settings are a value: a trace has those that it began with, and forms and plans are kept by them.

All of them: the fields of csrc/ir/settings.h. The device in use is tried on the made-up GPU
(cuda/test_cuda_behaviour.py).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, _core, cuda, nn, ops

SETTINGS_H = Path(__file__).parents[3] / "csrc" / "ir" / "settings.h"


def numbers(*shape: int) -> Tensor:
    return Tensor(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))


class Setting(NamedTuple):
    change: Callable[[], None]
    back: Callable[[], None]
    #: What the setting decides: of a function, as it is recorded and planned.
    shows: Callable[[Callable[[], Any]], Any]
    function: Callable[[], Any]


def steps(fn: Callable[[], Any]) -> Any:
    plan = cuda.plan_of(fn)
    kinds = [
        sorted(k for k in s if k in ("kernel", "matmul", "convolution", "loop")) for s in plan.steps
    ]
    return (
        plan.source,
        kinds,
        [s.get("tile") for s in plan.steps],
        [
            (s[k]["dtype"], s[k]["tf32"])
            for s in plan.steps
            for k in ("matmul", "convolution")
            if k in s
        ],
    )


def dtype(fn: Callable[[], Any]) -> Any:
    return fn().dtype


A, IMAGES, KERNELS = numbers(256, 256), numbers(32, 64, 32, 32), numbers(128, 64, 3, 3)
NET = [numbers(2, 16), numbers(16, 16), numbers(16, 1)]


def narrow_network() -> Any:
    x = numbers(4096, 2)
    for w in NET:
        x = ops.tanh(ops.matmul(x, w))
    return x


def attention() -> Any:
    q = numbers(1, 2, 256, 32)
    return ops.flash_attention_score(q, q, q, 2, input_layout="BNSD")


def convolution() -> Any:
    return ops.conv2d(IMAGES, KERNELS)


def product() -> Any:
    return ops.matmul(A, A)


def small_products() -> Any:
    return [
        ops.matmul(ops.tanh(numbers(32, 48) * k), numbers(48, 40)) for k in (1.5, 2.5, 3.5, 4.5)
    ]


def normalised() -> Any:
    def f(x: Tensor, gain: Tensor) -> Tensor:
        away = x - x.mean(1, keep_dims=True)
        return ops.square(
            away * ops.rsqrt(ops.square(away).mean(1, keep_dims=True) + 1e-5) * gain
        ).sum()

    return gc.grad(f, (0, 1))(numbers(4096, 256), numbers(256))


def narrow_products() -> Any:
    x = ops.sin(numbers(4096, 256))
    return ops.matmul(x, numbers(256, 1)), ops.matmul(numbers(1, 4096) * 2, x), ops.exp(x).sum(0)


def steps_of_a_loop() -> Any:
    return ops.scan(lambda s, x: (ops.sin(s * x), s), numbers(8), numbers(20, 8))[1]


def target(name: str, value: Any, function: Callable[[], Any]) -> Setting:
    return Setting(
        lambda: _core.plan_for_cuda(**{name: value}), _core.plan_for_cuda, steps, function
    )


def weight(name: str, value: Any, function: Callable[[], Any]) -> Setting:
    return Setting(
        lambda: _core.weigh_cuda_plans(**{name: value}), _core.weigh_cuda_plans, steps, function
    )


SETTINGS = {
    "default_float": Setting(
        lambda: gc.set_default_dtype(gc.float64),
        lambda: gc.set_default_dtype(gc.float32),
        dtype,
        lambda: ops.sin(Tensor([1, 2])) + ops.ones(2),
    ),
    "capability": target("capability", 75, attention),
    "shared_bytes": target("shared_bytes", 48 << 10, convolution),
    "cudnn": target("cudnn", True, convolution),
    "multiprocessors": target("multiprocessors", 8, narrow_network),
    "tf32": Setting(
        lambda: _core.allow_tf32(True), lambda: _core.allow_tf32(False), steps, product
    ),
    "launch": weight("launch", 1e13, narrow_products),
    "instructions": weight("instructions", 1.0, normalised),
    "tiles": weight("tiles", False, narrow_network),
    "groups": weight("groups", False, small_products),
    "loop_kernels": weight("loop_kernels", False, steps_of_a_loop),
}

#: Not set by themselves.
OTHERS = {
    "device",  # cuda/test_cuda_behaviour.py
    "written_attention",  # with the device, and where a function is looked at as on a GPU
    "target", "weights",  # have the others
    "number",
}  # fmt: skip


@pytest.fixture(autouse=True)
def back() -> Iterator[None]:
    yield
    for setting in SETTINGS.values():
        setting.back()


def misses() -> int:
    return int(_core.plan_cache_info()["misses"])


def looked() -> int:
    info = _core.plan_cache_info()
    return int(info["misses"] + info["hits"])


def test_these_are_all() -> None:
    if not SETTINGS_H.exists():
        pytest.skip("needs the sources")
    text = re.sub(r" *//.*", "", SETTINGS_H.read_text())
    bodies = re.findall(r"^struct \w+ \{(.*?)^\};", text, re.M | re.S)
    fields = {m for b in bodies for m in re.findall(r"^  [\w:]+ (\w+)(?: = .*|\{\});$", b, re.M)}
    assert fields == set(SETTINGS) | OTHERS


@pytest.mark.parametrize("name", SETTINGS)
def test_the_new_one_counts_from_the_next_trace_on(name: str) -> None:
    change, back, shows, function = SETTINGS[name]
    before = shows(function)
    change()
    assert shows(function) != before
    back()
    assert shows(function) == before


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("kind", ["jit", "traced", "composed op", "op"])
def test_forms_and_plans_of_both_stay(name: str, kind: str) -> None:
    """A change plans anew; once both have been seen, neither is planned again, nor traced by jit."""
    change, back, *_ = SETTINGS[name]
    traces = []

    def f(x: Tensor) -> Tensor:
        traces.append(1)
        return ops.sin(x) * ops.ones(3)

    x = numbers(3)
    call = {
        "jit": gc.jit(f),
        "traced": gc.grad(f),
        "composed op": ops.gelu,
        "op": lambda x: ops.sin(x) + 1,
    }[kind]
    kept = kind in ("jit", "composed op")

    def settle() -> Any:
        for _ in range(3):  # of an op's second call a form is kept
            y = call(x)
        return y

    first = settle()
    planned = misses()
    change()
    settle()
    assert misses() > planned
    back()
    planned, searched, traced = misses(), looked(), len(traces)
    for _ in range(3):
        back()
        again = call(x)
        change()
        call(x)
    assert misses() == planned
    if kept:
        assert looked() == searched
        assert len(traces) == traced
    assert again.dtype == first.dtype
    np.testing.assert_array_equal(again.asnumpy(), first.asnumpy())


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - {"default_float"}))
def test_a_change_inside_is_for_later_traces(name: str) -> None:
    change, back, shows, function = SETTINGS[name]

    def changing() -> Any:
        change()
        return function()

    before = shows(function)
    assert shows(changing) == before
    after = shows(function)
    assert after != before
    back()
    assert shows(function) == before


def test_a_change_of_the_default_dtype_inside_counts_as_it_would_untraced() -> None:
    """A function that sets it for a part of itself gives the same dtypes, traced or not."""

    def f(x: Tensor) -> tuple[Tensor, ...]:
        a = ops.sin(x)
        gc.set_default_dtype(gc.float64)
        b = ops.sin(x)
        gc.set_default_dtype(gc.float32)
        return a, b, ops.ones(2)

    x = Tensor([1, 2])
    found = [[t.dtype for t in g(x)] for g in (f, gc.jit(f), gc.jit(f), gc.vmap(f))]
    assert found == [[gc.float32, gc.float64, gc.float32]] * 4
    jitted = gc.jit(f)
    jitted(x)
    searched = looked()
    assert [t.dtype for t in jitted(x)] == found[0]
    assert looked() == searched  # the form is that of the settings it began with


class Other:
    """Another thread, which does what it is told while this one waits."""

    def __init__(self) -> None:
        self.go, self.done = threading.Event(), threading.Event()

    def __call__(self, work: Callable[[], None]) -> None:
        def run() -> None:
            self.go.wait()
            work()
            self.done.set()

        thread = threading.Thread(target=run)
        thread.start()
        self.go.set()
        assert self.done.wait(60)
        thread.join()


@pytest.mark.parametrize("name", SETTINGS)
def test_a_change_in_another_thread_is_for_later_traces(name: str) -> None:
    change, back, shows, function = SETTINGS[name]

    def changed_meanwhile() -> Any:
        Other()(change)
        return function()

    before = shows(function)
    traced = gc.jit(changed_meanwhile) if shows is dtype else changed_meanwhile
    assert shows(traced) == before
    assert shows(function) != before
    back()
    assert shows(function) == before
    if shows is dtype:  # the form was kept by the settings that its trace had, not by those after
        assert shows(traced) == before


def steps_of_training() -> Callable[[], np.ndarray[Any, Any]]:
    """One step of a network of its own, traced, and its loss by a compiled function."""
    gc.set_seed(1)
    net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 1))
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    x = numbers(64, 8)
    loss = gc.value_and_grad(lambda: ops.square(net(x)).mean(), None, net.trainable_params())
    compiled = gc.jit(lambda x: ops.square(net(x)).mean())

    def step() -> np.ndarray[Any, Any]:
        value, gradients = loss()
        optimizer(gradients)
        return np.stack([value.asnumpy(), compiled(x).asnumpy()])

    return step


def test_while_all_change_in_another_thread() -> None:
    """Steps of training give what they give alone, to the bit."""
    step, alone = steps_of_training(), steps_of_training()
    stop = threading.Event()
    rounds = 0

    def change_all() -> None:
        nonlocal rounds
        while not stop.is_set():
            for setting in SETTINGS.values():
                setting.change()
                setting.back()
            rounds += 1

    thread = threading.Thread(target=change_all)
    thread.start()
    found = []
    try:
        while rounds < 50 or len(found) < 30:
            found.append(step())
    finally:
        stop.set()
        thread.join()
    for a in found:
        np.testing.assert_array_equal(a, alone())
