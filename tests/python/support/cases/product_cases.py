"""Networks whose products tensor cores compute, with what computes them, and products of strange numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from cuda_cases import compare
from network_cases import (
    Case,
    applied,
    burgers_step,
    first_order,
    gradients,
    network,
    residual,
    rng,
    tensor,
)

import gradcell as ms
from gradcell import Tensor, ops


def in_halves(case: Case, dtype: Any) -> Case:
    return case[0], tuple(a.astype(dtype) for a in case[1])


def mixed(x: Tensor, *weights: Tensor) -> Any:
    """Layers in float16, the loss in float32 and scaled, as O2 has it."""

    def loss(x: Tensor, *weights: Tensor) -> Tensor:
        halves = tuple(w.astype(ms.float16) for w in weights)
        y = applied(x.astype(ms.float16), halves, ops.relu).astype(ms.float32)
        return ops.square(y).mean() * 64.0

    return gradients(loss, x, weights)


#: By name: a case, whether TF32 is allowed, and what products and gradients are computed by.
CASES: dict[str, tuple[Case, bool, set[str], set[str]]] = {
    "64 wide": (first_order([3, 64, 64, 1], 70, ops.tanh), False, {"gc_tf32x3"}, {"gc_tf32x3"}),
    "128 wide": (
        first_order([9, 128, 100, 3], 45, ops.tanh), False, {"gc_tf32x3"}, {"gc_tf32x3"},
    ),
    "a width that nothing divides": (
        first_order([71, 101, 83, 5], 45, ops.sin), False, {"gc_tf32x3"}, {"gc_tf32x3"},
    ),
    "64 wide, TF32": (first_order([3, 64, 64, 1], 70, ops.tanh), True, {"gc_tf32"}, {"gc_tf32"}),
    "Burgers 4 x 64": (
        burgers_step([64] * 4, 37), False, {"gc_tf32x3"}, {"gc_tf32x3"},
    ),
    "second order, 2 x 128": (
        residual(2, [2, 128, 128, 1], 33, ops.tanh, np.float32), False, {"gc_tf32x3"}, {"gc_tf32x3"},
    ),
    "float16": (
        in_halves(first_order([8, 64, 64, 2], 70, ops.tanh), ms.float16),
        False, {"gc_half"}, {"gc_half"},
    ),
    "bfloat16": (
        in_halves(first_order([8, 128, 64, 2], 45, ops.sigmoid), ms.bfloat16),
        False, {"gc_bfloat"}, {"gc_bfloat"},
    ),
    "bfloat16 to second order": (
        in_halves(residual(2, [2, 64, 64, 1], 40, ops.tanh, np.float32), ms.bfloat16),
        False, {"gc_bfloat"}, {"gc_bfloat"},
    ),
    "float16 and float32": (
        (mixed, (tensor(45, 6), *network([6, 64, 64, 3]))), False, {"gc_half"}, {"gc_half"},
    ),
    "a few bfloat16 columns": (
        in_halves(first_order([3, 5, 6, 1], 70, ops.tanh), ms.bfloat16), False, set(), set(),
    ),
}  # fmt: skip

#: Whose float32 results are less exact, and by how much of the largest.
ROUGH = {"64 wide, TF32": 0.02, "float16 and float32": 0.004}


def agrees(name: str, got: list[np.ndarray], want: list[Tensor]) -> None:
    if name not in ROUGH:
        return compare(name, got, want)
    for g, w in zip(got, want, strict=True):
        expected = w.asnumpy()
        atol = ROUGH[name] * np.abs(expected).max()
        np.testing.assert_allclose(g, expected, rtol=0, atol=atol)


def two_products(x: Tensor, w1: Tensor, w2: Tensor, c: Tensor, same: Tensor) -> Any:
    """A product, and a gradient of weights whose rows are there when the product is."""
    h = ops.matmul(x, w1)
    factor = ops.select(h == 0.5, same, c)
    slope = ms.grad(lambda w: (ops.matmul(x, w) * ms.ops.stop_gradient(factor)).sum())(w2)
    return h * 1.0, slope


STRANGE: dict[str, tuple[str, bool]] = {
    "float32": ("float32", False),
    "TF32": ("float32", True),
    "float16": ("float16", False),
    "bfloat16": ("bfloat16", False),
}


def strange(dtype: str) -> tuple[Tensor, ...]:
    """An infinite, a large and an undefined element in the input, infinite ones in weights."""
    x, w, v, c = (
        rng.uniform(-1, 1, s).astype(np.float32) for s in ((40, 64), (64, 64), (64, 64), (40, 64))
    )
    most = 65504.0 if dtype == "float16" else 3.38e38
    x[3, 5], x[7, 9], x[11, 2], x[12, 60], x[20] = np.inf, -np.inf, np.nan, most, 0
    x[30:, 33] = 0
    w[8, 17], w[33, 3] = np.inf, -np.inf  # 0 inf is NaN in rows 20 and from 30 on
    x[15], w[:, 40] = 2.0**-10, 2.0**-11  # what is lost beside nothing large
    c[7, 5], c[39, 63] = np.inf, np.nan
    kind = getattr(ms, dtype)
    return tuple(Tensor(a).astype(kind) for a in (x, w, v, c, c))
