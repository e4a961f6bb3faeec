"""Recording, differentiating and planning take time in proportion to a program's size: the lines of
bench/growth.py, which prints the exponents."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gradcell
from gradcell import Tensor, ops


def _bench() -> ModuleType:
    path = Path(__file__).parents[3] / "bench" / "growth.py"
    spec = importlib.util.spec_from_file_location("growth", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["growth"] = module
    spec.loader.exec_module(module)
    return module


growth = _bench()

#: Where times of a busy machine come out; passes that look at all pairs have 2, at all triples 3.
MOST = 1.6
#: Of each pass that looked at pairs, or worse, one program in which it did.
BY_DEFAULT = (
    "Adam, first step",
    "SGD, first step",
    "arguments",
    "lines of many",
    "transposes, eager",
    "writes through a view of views",
    "transforms inside, gradient",
    "values read behind values that are not",
)


def exponent(name: str, times: float, repeats: int) -> float:
    n, make = growth.LINES[name]
    return growth.measured(make, max(8, round(n * times)), repeats, 20)[-1]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", BY_DEFAULT)
def test_growth(name: str) -> None:
    assert any(exponent(name, 0.25, 1) < MOST for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", growth.LINES)
def test_every_line(name: str) -> None:
    assert exponent(name, 1, 3) < MOST


DEPTHS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "elementwise": lambda x, k: ops.sin(x) if k % 2 else x * 1.0001,
    "additions": lambda x, k: x + 0.001,
    "views": lambda x, k: x.T,
    "reshapes": lambda x, k: x.reshape((2, 8) if k % 2 else (4, 4)),
    "movements": lambda x, k: ops.sin(x.T),
    "choices": lambda x, k: ops.where(x > 0.5, x * 0.9, x + 0.1),
    "stages": lambda x, k: x - x.mean(),
}


def _deep(step: Callable[[Tensor, int], Tensor], depth: int) -> None:
    """Records, differentiates, plans and runs a chain, on a thread whose stack has 256 KB; for a GPU
    a part of it is planned, too."""

    def fn(x: Tensor, count: int = depth) -> Tensor:
        for k in range(count):
            x = step(x, k)
        return (x * 2.0).sum()

    x = Tensor(np.linspace(0.5, 1.5, 16, dtype=np.float32).reshape(4, 4))
    values: list[Tensor] = []
    plans = []

    def run() -> None:
        values.extend(gradcell.jit(gradcell.value_and_grad(fn))(x))
        plans.append(gradcell.cuda.plan_of(gradcell.value_and_grad(lambda x: fn(x, 1_000)), x))

    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    value, gradient = values
    assert len(plans[0].raw["outputs"]) == 2
    plain = fn(x)  # op by op
    np.testing.assert_allclose(value.asnumpy(), plain.asnumpy(), rtol=1e-3, atol=1e-5)
    assert gradient.shape == x.shape and np.isfinite(gradient.asnumpy()).all()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", DEPTHS)
def test_depth(name: str) -> None:
    _deep(DEPTHS[name], 4_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEPTHS)
def test_depth_of_100_000(name: str) -> None:
    _deep(DEPTHS[name], 100_000)
