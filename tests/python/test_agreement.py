"""Layers and losses beside MindSpore 2.10: values, shapes, dtypes, parameters and first gradients.

The numbers were written by tools/agreement.py, in an environment with MindSpore.
"""

from __future__ import annotations

from pathlib import Path

import agreement
import layer_cases
import numpy as np
import pytest

import gradcell

STORE = agreement.load(Path(__file__).parent / "golden" / "layers.npz")
CASES = {
    f"{expression} of {inputs}": (expression, inputs) for expression, inputs in layer_cases.LAYERS
}


def test_store_holds_each_case_and_no_other():
    assert list(STORE) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_as_in_mindspore(name):
    expected = STORE[name]
    gradients = any(key.startswith("by ") for key in expected)
    found = agreement.run(gradcell, *CASES[name], gradients=gradients)
    assert list(found) == list(expected)
    tolerance = layer_cases.TOLERANCES.get(CASES[name][0], 2e-4)
    for key, value in expected.items():
        assert found[key].dtype == value.dtype and found[key].shape == value.shape, key
        np.testing.assert_allclose(
            found[key], value, rtol=tolerance, atol=tolerance / 10, err_msg=key
        )
