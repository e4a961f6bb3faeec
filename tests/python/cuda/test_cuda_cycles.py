"""The critical path of the narrow networks' kernel, by the model of tools/sass_cycles.py."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from cuda_emulation import Nvrtc
from disassembly import disassembler
from network_cases import burgers_step

from gradcell import _core, cuda

TOOL = pathlib.Path(__file__).resolve().parents[3] / "tools" / "sass_cycles.py"
#: The kernel's first parameter in the constant bank of sm_90.
PARAMETERS = 0x210


def model(layers: list[int], rows: int, tmp_path: pathlib.Path) -> Any:
    """One tile of Burgers' equation, its sums in the L2 cache and what it reads in the L1."""
    spec = importlib.util.spec_from_file_location("sass_cycles", TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tool
    spec.loader.exec_module(tool)
    fn, arguments = burgers_step(layers, 2_000)
    plan = cuda.plan_of(fn, *arguments)
    step = next(s for s in plan.raw["steps"] if s.get("shared", (0, 0))[1])
    text = dict(plan.kernels)[step["kernel"]]
    file = tmp_path / "kernel.cubin"
    kernel = plan.raw["prelude"] + "\nnamespace gradcell {\nnamespace scalar {\n" + text + "}\n}\n"
    file.write_bytes(Nvrtc().compile(kernel, "sm_90"))
    sass = subprocess.run(
        [disassembler(), "-c", "-hex", str(file)], capture_output=True, text=True, check=True
    ).stdout
    given = [["size", rows] if a == ["size", 2_000] else a for a in map(list, step["arguments"])]
    bank = tool.constants_of(text, given, (rows, 8), PARAMETERS)
    sums = next(a[1] for a in given if a[0] == "buffer")  # the first parameter that is written

    def latency(place: int | None) -> int:
        return int(tool.L2 if place is None or (place >> 24) - 1 == sums else tool.L1)

    found = tool.Model(tool.parse(sass.splitlines()), bank, (rows, 8), latency)
    found.run(step["kernel"])
    return found


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


def test_plans_can_be_without_these_kernels() -> None:
    fn, arguments = burgers_step([20] * 3, 100)
    assert cuda.plan_of(fn, *arguments).products == 0
    _core.weigh_cuda_plans(tiles=False)
    try:
        assert cuda.plan_of(fn, *arguments).products >= 10
    finally:
        _core.weigh_cuda_plans()
