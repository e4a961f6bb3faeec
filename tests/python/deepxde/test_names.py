"""DeepXDE's public names, each in a program of a few lines: the numbers that its PyTorch backend gives."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("deepxde") is None:
    pytest.skip("needs DeepXDE", allow_module_level=True)

from gradcell.deepxde import dde, torch

ROOT = Path(__file__).parents[3]
#: bench/deepxde_names.py --record: of DeepXDE 1.15 on PyTorch.
WANTED = json.loads((ROOT / "tests" / "python" / "golden" / "deepxde_names.json").read_text())
#: What DeepXDE 1.13 cannot do on PyTorch either.
NOT_IN_1_13 = """data.MfDataSet data.PDEOperatorCartesianProd losses.mean_absolute_error zcs.LazyGrad
    zcs.Model zcs.PDEOperatorCartesianProd""".split()


@pytest.fixture(scope="module")
def cases() -> Any:
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return importlib.import_module("deepxde_names")
    finally:
        sys.path.pop(0)


def test_all_names_have_a_case(cases: Any) -> None:
    assert not cases.missing(dde)
    assert set(cases.CASES) == set(WANTED)


@pytest.mark.filterwarnings("ignore:The balance properties of Sobol")  # of DeepXDE's own points
@pytest.mark.parametrize("name", [n for n, want in WANTED.items() if not isinstance(want, str)])
def test_numbers_are_those_of_pytorch(cases: Any, name: str) -> None:
    if dde.__version__.startswith("1.13.") and name in NOT_IN_1_13:
        pytest.skip("DeepXDE 1.13 cannot do it on PyTorch either")
    found, want = cases.result(name, dde, torch), WANTED[name]
    assert not isinstance(found, str), found
    assert cases.apart(found, want) < 1e-5
