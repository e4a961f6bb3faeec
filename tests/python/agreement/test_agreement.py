"""Layers, losses, optimisers and metrics beside MindSpore 2.10: values, shapes, dtypes, parameters
and first gradients.

The numbers were written by tools/agreement.py, in an environment with MindSpore.
"""

from __future__ import annotations

from pathlib import Path

import agreement
import layer_cases
import metric_cases
import name_cases
import numpy as np
import optimizer_cases
import pytest

import gradcell

GOLDEN = Path(__file__).parents[1] / "golden"
STORE = agreement.load(GOLDEN / "layers.npz")
METRICS = agreement.load(GOLDEN / "metrics.npz")
METRIC_CASES = {f"{i} {e}": (e, inputs) for i, (e, inputs) in enumerate(metric_cases.CASES)}
NAMES = agreement.load(GOLDEN / "names.npz")
NAME_CASES = {
    f"{expression} of {inputs}": (expression, inputs) for expression, inputs in name_cases.NAMES
}
OPTIMIZERS = agreement.load(GOLDEN / "optimizers.npz")
CASES = {
    f"{expression} of {inputs}": (expression, inputs) for expression, inputs in layer_cases.LAYERS
}


def test_store_holds_each_case_and_no_other():
    assert list(STORE) == list(CASES)
    assert list(METRICS) == list(METRIC_CASES)
    assert list(NAMES) == list(NAME_CASES)
    assert list(OPTIMIZERS) == optimizer_cases.OPTIMIZERS


@pytest.mark.parametrize("name", CASES)
def test_as_in_mindspore(name):
    expected = STORE[name]
    gradients = any(key.startswith("by ") for key in expected)
    found = agreement.run(gradcell, *CASES[name], gradients=gradients)
    assert list(found) == list(expected)
    tolerance = layer_cases.TOLERANCES.get(CASES[name][0], 2e-4)
    for key, value in expected.items():
        if key == layer_cases.WRONG_THERE.get(CASES[name][0]):
            assert not np.allclose(found[key], value, rtol=0.1)
            continue
        assert found[key].dtype == value.dtype and found[key].shape == value.shape, key
        np.testing.assert_allclose(
            found[key], value, rtol=tolerance, atol=tolerance / 10, err_msg=key
        )


@pytest.mark.parametrize("name", NAME_CASES)
def test_name_as_in_mindspore(name):
    expected = NAMES[name]
    gradients = any(key.startswith("by ") for key in expected)
    found = agreement.run(gradcell, *NAME_CASES[name], gradients=gradients)
    assert list(found) == list(expected)
    for key, value in expected.items():
        assert found[key].dtype == value.dtype and found[key].shape == value.shape, key
        np.testing.assert_allclose(found[key], value, rtol=2e-4, atol=2e-5, err_msg=key)


@pytest.mark.parametrize("expression", optimizer_cases.OPTIMIZERS)
def test_optimizer_as_in_mindspore(expression):
    found, expected = agreement.run_optimizer(gradcell, expression), OPTIMIZERS[expression]
    expected = {
        key: x for key, x in expected.items() if "$" not in key
    }  # what it made up a name for
    assert set(found) == set(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=3e-4, atol=2e-5, err_msg=key)


@pytest.mark.parametrize("name", METRIC_CASES)
def test_metric_as_in_mindspore(name):
    found, expected = metric_cases.run(gradcell, *METRIC_CASES[name]), METRICS[name]
    assert list(found) == list(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-6, atol=1e-9, err_msg=key)
