"""Each expression that a tile program computes in one pass is what some function of the package writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

ROWS = Path(__file__).parents[3] / "csrc" / "plan" / "region" / "formulas.def"
FORMULAS = dict(re.findall(r"^FORMULA\((\w+), (.*)\)$", ROWS.read_text(), re.M))


def numbers(count: int) -> list[Tensor]:
    rng = np.random.default_rng(0)
    return [Tensor(rng.uniform(1.5, 2.5, 5003).astype(np.float32)) for _ in range(count)]


def slope(fn: Callable[..., Tensor]) -> Callable[..., Any]:
    return gc.grad(lambda *xs: ops.sum(fn(*xs)))


#: And of how many tensors it is a function.
WRITTEN: dict[str, tuple[Callable[..., Any], int]] = {
    "AdamDescent": (lambda p, m, v: p - m * 0.01 / (ops.sqrt(v) + 1e-8), 3),
    "SmoothDistance": (ops.smooth_l1_loss, 2),
    "InverseLength": (slope(ops.hypot), 2),
    "InverseSquares": (slope(ops.atan2), 2),
    "InverseSize": (slope(ops.atan2), 2),
    "SlopeOfAsinh": (slope(ops.asinh), 1),
    "SlopeOfAcosh": (slope(ops.acosh), 1),
    "Numbers": (ops.nan_to_num, 1),
    "Shrunk": (ops.softshrink, 1),
    "Sloped": (lambda x, w: ops.prelu(x.reshape(1, -1), w), 2),
    "SlopedByNumber": (lambda x: ops.prelu(x, Tensor([0.1])), 1),
    "ScaledSquareSum": (lambda v, g: 0.9 * v + 0.1 * ops.square(g), 2),
    "ScaledSum": (lambda m, g: 0.9 * m + 0.1 * g, 2),
    "ScaledAdd": (lambda m, g: 0.9 * m + g, 2),
    "ScaledSub": (lambda p, g: p - 0.1 * g, 2),
    "SigmoidGate": (ops.silu, 1),
    "NormalGate": (ops.gelu, 1),
    "TanhGate": (ops.mish, 1),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_what_a_function_writes(name: str) -> None:
    fn, count = WRITTEN[name]
    assert f"[{FORMULAS[name]}]" in str(gc.plan_text(fn, *numbers(count)))
