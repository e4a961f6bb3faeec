"""No op without a test, no number without a derivative: the op table against the test tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_rows import ROWS
from structured_rows import CASES, TESTED_APART, TESTED_THROUGH

from gradcell import _core, ops

ELEMENTWISE = {row.name: row for row in ROWS}
STRUCTURED = {case.op for case in CASES} | TESTED_APART

#: Ops whose output is no number, or whose derivative is cut off on purpose.
NONDIFF = {row.name for row in ROWS if not row.differentiable} | {
    "StopGradient", "ArgMax", "ArgMin", "RandomUniform", "LastWriter", "WindowArgMax", "Barrier",
    # Routines, around which rules of derivatives are calls.
    "LUFactors", "LUSolve", "LUInverse", "LUDeterminant", "CholeskyFactor", "CholeskySolve",
    "CholeskyInverse", "DampedCholeskyFactor", "TriangularSolve", "QRFactors", "EigenFactors",
    "SingularFactors", "Order", "FirstInOrder", "RunningBest", "SegmentBest", "PlaceInLine", "Among",
    "CountBetween", "DrawByWeights", "OfIntegers", "Permitted",
}  # fmt: skip

#: What users may call, by MindSpore's names (the rest of it is in op_rows.py).
STRUCTURED_OBJECTS = """MatMul BatchMatMul ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd
    ReduceAll ReduceAny Argmax Argmin CumSum CumProd Reshape Squeeze ExpandDims Transpose BroadcastTo Tile
    Concat Stack Split StridedSlice Gather ScatterAdd OneHot Cast Assign UniformReal StandardNormal
    Select""".split()


def field(row: Any, key: str) -> Any:
    return row[key] if isinstance(row, dict) else getattr(row, key)


def table() -> list[dict[str, Any]]:
    keys = ("name", "kind", "differentiable")
    return [{key: field(row, key) for key in keys} for row in _core.op_table()]


TABLE = table()


def test_the_table_is_there() -> None:
    names = [row["name"] for row in TABLE]
    assert len(names) == len(set(names))
    assert len(names) > 50


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_every_op_has_a_test_row(row: dict[str, Any]) -> None:
    name = row["name"]
    tested_as = TESTED_THROUGH.get(name, name)
    assert tested_as in ELEMENTWISE or tested_as in STRUCTURED, (
        f"{name} has no row in tests/python/support/cases/op_rows.py and no case in structured_rows.py"
    )


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_every_op_has_a_derivative(row: dict[str, Any]) -> None:
    """Or is NONDIFF in both tables: an op without a derivative is one by intention."""
    name = row["name"]
    assert row["differentiable"] == (name not in NONDIFF), (
        f"{name}: the op table and the tests disagree on whether it has a derivative"
    )


@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_every_test_row_is_an_op(name: str) -> None:
    assert name in {row["name"] for row in TABLE}


@pytest.mark.parametrize("name", STRUCTURED_OBJECTS)
def test_structured_objects(name: str) -> None:
    assert callable(getattr(ops, name))


def test_no_rule_gives_a_single_point_a_value() -> None:
    """Which would be right in the first order only: choices in adjoints are between sides. (Functions that
    need another are in csrc/ops/value_of.cpp.)"""
    text = (Path(__file__).parents[3] / "csrc" / "ir" / "ops.def").read_text()
    rows = re.findall(r"^(?:UNARY|BINARY)\((\w+),(.*?)\)$(?=\n\S|\n\n|\Z)", text, re.M | re.S)
    assert len(rows) > 50
    chosen = {name: re.findall(r"where\((.*?),", body) for name, body in rows}
    sides = {"ReLU", "HSigmoid", "HSwish"}
    assert {name for name, found in chosen.items() if found} == sides | {"Maximum", "Minimum"}
    for name in sides:
        assert not any("==" in condition for condition in chosen[name]), name
    for name in ("Maximum", "Minimum"):  # a kink, where both have half of the slope
        assert {c for c in chosen[name] if "==" in c} == {"a == b"}


def test_defaults_are_those_of_the_signature() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3))
    whole = _core.ops.qr_factors(x).asnumpy()
    assert np.array_equal(whole, _core.ops.qr_factors(x, False, False, True).asnumpy())
    assert np.array_equal(whole[12:], _core.ops.qr_factors(x, vectors=False).asnumpy())
    assert _core.ops.singular_factors(x).size == 3 + 12 + 9
    first = _core.ops.first_in_order(x, 2).asnumpy()
    assert np.array_equal(first, np.argsort(-x, axis=1)[:, :2])
