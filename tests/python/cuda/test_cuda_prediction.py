"""The table of docs/cuda.md is what tools/predict_gpu.py makes."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.one_in(8)  # each has a process of its own, and compiles kernels

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("predict_gpu", ROOT / "tools" / "predict_gpu.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_case_has_a_row(tool: Any) -> None:
    table = (ROOT / "docs" / "cuda.md").read_text()
    assert [name for name in tool.CASES if f"| {name} | " not in table] == []


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


def test_a_step_takes_its_bytes_or_its_products(tool: Any) -> None:
    case = tool.Case(tool.lstm)
    step = {"bytes_read": 8.6e9, "bytes_written": 0, "flops": 0, "matmul": {}}
    least, most, operations = tool.seconds([step], case)
    assert least == most == pytest.approx(2e-3 + tool.LAUNCH) and operations == 0
    step["flops"] = 500e9
    assert tool.seconds([step], case)[0] == pytest.approx(10e-3 + tool.LAUNCH)
    loop = {"loop": {"steps": 7, "body": {"steps": [step]}}}
    assert tool.seconds([loop], case)[2] == 7 * 500e9
