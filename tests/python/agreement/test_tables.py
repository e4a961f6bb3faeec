"""Names held, as tests/python/cases asks for them, beside MindSpore 2.10: values, shapes, dtypes and first
gradients; and that every name that is held is asked for somewhere.

The numbers, and what MindSpore says where it has no kernel, were written by tools/agreement.py.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import agreement
import numpy as np
import pytest

import gradcell

for place in (
    "numpy",
    "scipy.linalg",
    "scipy.optimize",
    "nn.probability.distribution",
    "common.initializer",
):
    importlib.import_module(f"gradcell.{place}")

HERE = Path(__file__).parents[1]
ROWS = {row.name: row for t in sorted(HERE.glob("cases/*.txt")) for row in agreement.rows(t)}
STORE = agreement.load(HERE / "golden" / "tables.npz")
REFUSED = json.loads((HERE / "golden" / "refused.json").read_text())

sys.path.insert(0, str(HERE.parents[1] / "tools"))
import names  # noqa: E402


def test_store_holds_each_row_and_no_other() -> None:
    assert set(STORE) | set(REFUSED) == set(ROWS)
    assert {
        n for n, row in ROWS.items() if n in STORE and n in REFUSED and not row.stands_in
    } == set()


@pytest.mark.filterwarnings("ignore:ops.full")
@pytest.mark.parametrize("name", STORE)
def test_as_in_mindspore(name: str) -> None:
    row, expected = ROWS[name], STORE[name]
    gradients = any(key.startswith("by ") for key in expected)
    found = agreement.run(gradcell, row.expression, row.inputs, gradients)
    other = name in REFUSED  # of another spelling, with dtypes and parameters of its own
    if not other:
        assert list(found) == list(expected)
    compared = 0
    for key, value in expected.items():
        if other and not key.startswith(("output", "by input")):
            continue
        assert found[key].shape == value.shape, key
        assert other or found[key].dtype == value.dtype, key
        np.testing.assert_allclose(found[key], value, rtol=3e-4, atol=3e-5, err_msg=key)
        compared += 1
    assert compared or not expected


@pytest.mark.parametrize("name", [n for n in REFUSED if n not in STORE])
def test_runs_where_mindspore_refuses(name: str) -> None:
    """Without a kernel there it runs here, and gives numbers."""
    row = ROWS[name]
    found = agreement.run(gradcell, row.expression, row.inputs)
    assert found
    for key, value in found.items():
        assert value.dtype.kind in "biu" or np.isfinite(value).all(), key


@pytest.mark.parametrize("space", names.FORMS)
def test_every_name_held_is_asked_for(space: str) -> None:
    """A name that is held has a case, or a reason in tools/names.py why it has none."""
    held, asked, excused = names.held(space), names.compared()[space], names.not_asked(space)
    assert sorted(held - asked - set(excused)) == []
    assert sorted(set(excused) & asked) == [], "a case is there, the reason can go"
    assert sorted(set(excused) - held) == []
