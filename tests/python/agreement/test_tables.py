"""Names held, as tests/python/cases asks for them, beside MindSpore 2.10: values, shapes, dtypes and first
gradients; and that every name that is held is asked for somewhere.

The numbers, and what MindSpore says where it has no kernel, were written by tools/agreement.py.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
import sys
from pathlib import Path

import agreement
import numpy as np
import pytest
import refused_references

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


@pytest.mark.filterwarnings("ignore:ops.full", "ignore:.* has no effect")
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


RNG = np.random.default_rng(7)
ALONE = [n for n in REFUSED if n not in STORE]


@pytest.mark.parametrize("name", ALONE)
def test_against_numpy_where_mindspore_refuses(name: str) -> None:
    """Without a kernel there: values beside NumPy's in float64, gradients beside differences."""
    row = ROWS[name]
    text = re.sub(r"^lambda[ \w,]*: ", "", row.expression)
    gradcell.set_seed(5)
    found = agreement.run(gradcell, row.expression, row.inputs)
    if text in refused_references.CELLS:
        inputs, parameters = agreement.given(gradcell, row)
        reference = functools.partial(refused_references.CELLS[text], parameters)
    else:
        inputs, _ = agreement.given(gradcell, row)
        reference = refused_references.FUNCTIONS.get(text)
        if reference is None:
            gradcell.set_seed(5)
            zero = text.endswith("'zeros'))")
            bias = np.zeros(2) if zero else gradcell.nn.Dense(3, 2, "ones").bias.asnumpy()
            step = refused_references.STEPS[text]
            reference = lambda x, y: step(x, y, bias.astype(np.float64))  # noqa: E731
    wanted = reference(*inputs)
    wanted = wanted if isinstance(wanted, list) else [wanted]
    outputs = [value for key, value in found.items() if key.startswith("output")]
    assert len(outputs) == len(wanted)
    for got, want in zip(outputs, wanted, strict=True):
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-5, atol=2e-6)
    slopes = [key for key in found if key.startswith("by input")]
    if text in refused_references.VALUES or text in refused_references.STEPS:
        return
    for key in slopes:
        at = int(key.split()[-1])
        for _ in range(4):
            direction = RNG.standard_normal(inputs[at].shape)
            parts = found[key] * direction
            want = agreement.along(row, outputs, reference, inputs, at, direction)
            assert abs(parts.sum() - want) <= 2e-5 * np.abs(parts).sum() + 1e-5, key


def test_each_of_them_has_a_reference() -> None:
    texts = {re.sub(r"^lambda[ \w,]*: ", "", ROWS[name].expression) for name in ALONE}
    tables = (refused_references.FUNCTIONS, refused_references.STEPS, refused_references.CELLS)
    assert texts == {text for table in tables for text in table}
    assert texts >= refused_references.VALUES


@pytest.mark.parametrize("space", names.FORMS)
def test_every_name_held_is_asked_for(space: str) -> None:
    """A name that is held has a case, or a reason in tools/names.py why it has none."""
    held, asked, excused = names.held(space), names.compared()[space], names.not_asked(space)
    assert sorted(held - asked - set(excused)) == []
    assert sorted(set(excused) & asked) == [], "a case is there, the reason can go"
    assert sorted(set(excused) - held) == []
