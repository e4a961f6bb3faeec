"""What kernels between products keep in memory for each other, and which of them take rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_cases import compare
from cuda_emulation import WHERE_NONE_SPILLS, Batch, Kernels, that_spill
from network_cases import Case, burgers_step, norms, residual, tensor

from gradcell import Tensor, cuda, ops
from gradcell.base import tree

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

# Long enough for what moves to count for more than launches do; and a row of 133, which fours do
# not divide.
CASES: dict[str, Case] = {
    "Burgers": burgers_step([132] * 3, 4000),
    "third order, sines, float64": residual(3, [3, 133, 133, 2], 2000, ops.sin, np.float64),
    "norms": norms(4000, 133, 1),
    "norms, second order": norms(2000, 136, 2),
    "norms, third order, short": norms(40, 5, 3),
}


@pytest.fixture(scope="module")
def plans() -> dict[str, Any]:
    return {name: cuda.plan_of(fn, *args) for name, (fn, args) in CASES.items()}


@pytest.fixture(scope="module")
def batch(plans: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return Batch(list(plans.values()), tmp_path_factory.mktemp("stores"))


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_cpu_engine(name: str, plans: dict[str, Any], batch: Batch) -> None:
    fn, arguments = CASES[name]
    want = tree.leaves(fn(*arguments))
    number = list(CASES).index(name)
    compare(name, batch.run(number)[: len(want)], want)
    if name.endswith("short"):  # each barrier of the emulation costs as many switches as threads
        compare(name, batch.run(number, threads=(4, 2), grid=3)[: len(want)], want)
        compare(name, batch.run(number, threads=None, grid=3)[: len(want)], want)


@pytest.mark.one_in(40)
@pytest.mark.parametrize(("arch", "every"), WHERE_NONE_SPILLS)
def test_none_spills(arch: str, every: int, plans: dict[str, Any]) -> None:
    assert that_spill(Kernels(list(plans.values())), arch, every) == {}


@pytest.mark.parametrize(
    ("case", "before", "now"),
    [
        (burgers_step([128] * 4, 10_000), 1001, 725),
        (burgers_step([256] * 8, 1000), 456.3, 346),
        (burgers_step([128] * 4, 1_000_000), 99_456, 77_489),
        (norms(4096, 256, 1), 212, 195),
        (norms(4096, 256, 2), 512, 378),
    ],
    ids=["4 x 128", "8 x 256", "4 x 128, a million", "norms", "norms, second order"],
)
def test_a_step_moves_fewer_bytes(case: Case, before: float, now: float) -> None:
    """Megabytes: where all was stored as early as can be, and now."""
    plan = cuda.plan_of(case[0], *case[1])
    assert plan.bytes_moved < now * 1e6 < before * 1e6


def test_only_what_reduces_rows_takes_rows() -> None:
    """And what has a few columns, of several numbers, which one launch does."""
    fn, arguments = burgers_step([128] * 4, 10_000)
    plan = cuda.plan_of(fn, *arguments)
    text = dict(plan.kernels)
    rows = [s for s in plan.steps if "kernel" in s and "for (gc_index r0" in text[s["kernel"]]]
    assert sum("gc_across" in text[s["kernel"]] for s in rows) == 2  # the value; the slopes
    for s in rows:
        moved = s["bytes_read"] + s["bytes_written"]
        assert "gc_across" in text[s["kernel"]] or moved < plan.bytes_moved / 1000


def test_gradients_of_biases_are_one_launch() -> None:
    """They wait for the last, unless that keeps much for long."""
    for layers, rows, segments in (([256] * 4, 1000, [5]), ([128] * 4, 1_000_000, [2])):
        fn, arguments = burgers_step(layers, rows)
        plan = cuda.plan_of(fn, *arguments)
        sums = [s for s in plan.steps if "reduce_sum" in s.get("kernel", "") and s["segments"] > 1]
        found = [s["segments"] for s in sums if "finish" not in s["kernel"]]
        assert sorted(found, reverse=True) == segments, plan.table()
        assert sum(s["nodes"] for s in sums) == sum(segments)


def test_few_terms_and_differences_do_not_multiply() -> None:
    """What is computed again at several places, step after step, is stored in between."""
    w = tensor(4, 4)

    def recurrent(x: Tensor) -> Tensor:
        for _ in range(16):
            x = ops.tanh(ops.matmul(x, w))
        return x

    def differences(x: Tensor) -> Tensor:
        for _ in range(16):
            x = ops.sin(x[1:] * 2.0 - x[:-1])
        return x

    for fn, x in ((recurrent, tensor(5, 4)), (differences, tensor(100))):
        assert len(cuda.plan_of(fn, x).source) < 150_000
