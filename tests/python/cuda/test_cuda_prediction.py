"""What kernels are thought to take: the critical path of those of regions, by the model of
tools/sass_cycles.py; and the table of docs/cuda.md, which is what tools/predict_gpu.py makes."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import Any

import pytest
from cuda_loop_cases import recurrent_plan
from disassembly import followed
from network_cases import burgers_step

from gradcell import _core, cuda

ROOT = pathlib.Path(__file__).resolve().parents[3]


def model(layers: list[int], rows: int, tmp_path: pathlib.Path) -> Any:
    """One tile of Burgers' equation, its sums in the L2 cache and what it reads in the L1."""
    fn, arguments = burgers_step(layers, 2_000)
    plan = cuda.plan_of(fn, *arguments)
    step = next(s for s in plan.raw["steps"] if s.get("shared", (0, 0))[1])
    given = [["size", rows] if a == ["size", 2_000] else a for a in map(list, step["arguments"])]
    sums = next(a[1] for a in given if a[0] == "buffer")  # the first parameter that is written

    def is_near(place: int | None) -> bool:
        return place is not None and (place >> 24) - 1 != sums

    return followed(plan, step, given, (rows, 8), is_near, tmp_path)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("layers", "rows", "tile", "gradient", "measured"),
    [([20] * 8, 32, 58_000, 900, 78_000), ([64] * 4, 16, 76_000, 2_700, 124_000)],
)
def test_a_tile_takes_few_cycles(
    layers: list[int], rows: int, tile: int, gradient: int, measured: int, tmp_path: pathlib.Path
) -> None:
    """It took 252,000 and 184,000 cycles when sums were added one by one, in the L1 cache
    or not; of these a gradient of weights 8,026 and 11,072. `measured`: on an H200, 10,000 rows."""
    found = model(layers, rows, tmp_path)
    fn, arguments = burgers_step(layers, 32)  # a tile for each block
    (step,) = [s for s in cuda.plan_of(fn, *arguments).steps if "tile" in s]
    rounds, guess = step["tile"]
    assert rounds == 1 and abs(guess / measured - 1) < 0.2  # what the planner goes by
    outer = {n: t // k for n, (k, t) in found.calls.items() if "gc_add_outer" in n}
    assert outer and max(outer.values()) <= gradient, outer
    assert found.time <= tile


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("kind", "back", "cycles", "instructions"),
    [
        ("LSTM", False, 2200, 1000),
        ("LSTM", True, 1750, 1000),
        ("GRU", False, 2300, 1000),
        ("GRU", True, 1450, 1000),
    ],
)
def test_a_step_of_a_loop_takes_few_cycles(
    kind: str, back: bool, cycles: int, instructions: int, tmp_path: pathlib.Path
) -> None:
    """From 64 to 128, of one row: what ten steps more take, with all that is read in the L2 cache. A launch
    of the two that a step took before takes 4,000."""
    time, issued = [], []
    for steps in (10, 20):
        plan = recurrent_plan(kind, steps, True)
        step = [s for s in plan.raw["steps"] if str(s.get("kernel")).startswith("gc_loop")][back]
        found = followed(
            plan, step, list(map(list, step["arguments"])), step["block"], lambda _: False, tmp_path
        )
        time.append(found.time), issued.append(found.issued)
    assert (time[1] - time[0]) / 10 <= cycles
    assert (issued[1] - issued[0]) / 10 <= instructions
    rounds, guess = step["tile"]
    assert rounds == 20 and 0.9 <= guess / rounds * 10 / (time[1] - time[0]) <= 1.8


def test_plans_can_be_without_these_kernels() -> None:
    fn, arguments = burgers_step([20] * 3, 100)
    assert cuda.plan_of(fn, *arguments).products == 0
    _core.weigh_cuda_plans(tiles=False)
    try:
        assert cuda.plan_of(fn, *arguments).products >= 10
    finally:
        _core.weigh_cuda_plans()


# The table of docs/cuda.md ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("predict_gpu", ROOT / "tools" / "predict_gpu.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.one_in(8)
def test_each_case_has_a_row(tool: Any) -> None:
    table = (ROOT / "docs" / "cuda.md").read_text()
    assert [name for name in tool.CASES if f"| {name} | " not in table] == []


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "name",
    [
        "ResNet-18, 128 images of 32 x 32, TF32",
        "MLP 784-512-512-10, batch 32",
        "LSTM 64 to 128, batch 32, 1,000 steps",
        "Burgers' equation, 8 x 20, 1,000,000 points",
        "Burgers' equation, 4 x 128, 10,000 points",
    ],
)
def test_rows_are_what_plans_give(name: str, tool: Any) -> None:
    assert (
        tool.row(name, tool.predicted(tool.CASES[name])) in (ROOT / "docs" / "cuda.md").read_text()
    )


@pytest.mark.one_in(8)
def test_a_step_takes_its_bytes_or_its_products(tool: Any) -> None:
    case = tool.Case(tool.lstm)
    step = {"bytes_read": 8.6e9, "bytes_written": 0, "flops": 0, "matmul": {}}
    least, most, operations = tool.seconds([step], case)
    assert least == most == pytest.approx(2e-3 + tool.LAUNCH) and operations == 0
    step["flops"] = 500e9
    assert tool.seconds([step], case)[0] == pytest.approx(10e-3 + tool.LAUNCH)
    loop = {"loop": {"steps": 7, "body": {"steps": [step]}}}
    assert tool.seconds([loop], case)[2] == 7 * 500e9
