"""Gradients of the programs of bench/field against differences of their values, in float64."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import gradcell as gc

sys.path.append(str(Path(__file__).parents[3] / "bench"))

from field import PROGRAMS, drawn
from field.libraries import build, gradcell_library


@pytest.mark.parametrize("name", [name for name, p in PROGRAMS.items() if p.wrt])
def test_a_program_of_the_field_has_the_slope_of_its_values(name: str) -> None:
    f, arrays = drawn(name, gradcell_library(), "float64")
    wrt = PROGRAMS[name].wrt
    rng = np.random.default_rng(1)
    along = {k: rng.standard_normal(arrays[k].shape) for k in wrt}

    def value(step: float) -> float:
        moved = [a + step * along[k] if k in along else a for k, a in enumerate(arrays)]
        return float(compiled(*map(gc.Tensor, moved)))

    compiled = gc.jit(f)
    far, near = ((value(h) - value(-h)) / (2 * h) for h in (2e-5, 1e-5))
    params = {"program": name, "gradient": True, "dtype": "float64"}
    found, *slopes = build("gradcell", params, "").check_values()
    assert float(found) == pytest.approx(value(0.0), rel=1e-12)
    slope = sum(float((s * along[k]).sum()) for s, k in zip(slopes, wrt, strict=True))
    assert slope == pytest.approx((4 * near - far) / 3, rel=1e-6, abs=1e-9 * abs(float(found)))


@pytest.mark.parametrize("name", [name for name, p in PROGRAMS.items() if not p.wrt])
def test_other_programs_of_the_field_are_the_same_compiled_and_plain(name: str) -> None:
    f, arrays = drawn(name, gradcell_library(), "float64")
    params = {"program": name, "gradient": False, "dtype": "float64"}
    (compiled,) = build("gradcell", params, "").check_values()
    plain = f(*map(gc.Tensor, arrays)).asnumpy()
    np.testing.assert_allclose(compiled, plain, rtol=1e-9, atol=1e-9 * np.abs(plain).max())
