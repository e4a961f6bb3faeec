"""Half types compute in float32: norms and losses, by all the names that mean the same, of numbers whose
squares a half type does not hold, against float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, mint, nn, ops

RNG = np.random.default_rng(29)
WIDE = RNG.standard_normal((64, 6)) * 1000
IMAGE = RNG.standard_normal((4, 6, 3, 3)) * 1000
ONES, ZEROS = np.ones(6), np.zeros(6)


def normalised(x: np.ndarray, axes: Any, eps: float = 1e-5) -> np.ndarray:
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + eps)


def of(*arrays: np.ndarray, dtype: Any) -> list[Tensor]:
    return [Tensor(a, dtype) for a in arrays]


def cell(make: Callable[[], nn.Cell]) -> Callable[[Tensor], Tensor]:
    return lambda x: make().to_float(x.dtype).set_train()(x)


functional = mint.nn.functional
#: What is meant: (numbers, what float64 gives, the names for it).
NORMS: dict[str, tuple[np.ndarray, np.ndarray, dict[str, Callable[[Tensor], Any]]]] = {
    "batch norm": (
        WIDE, normalised(WIDE, 0),
        {
            "ops.batch_norm": lambda x: ops.batch_norm(
                x, *of(ZEROS, ONES, ONES, ZEROS, dtype=x.dtype), True
            ),
            "ops.BatchNorm": lambda x: ops.BatchNorm(True)(
                x, *of(ONES, ZEROS, ZEROS, ONES, dtype=x.dtype)
            )[0],
            "nn.BatchNorm1d": cell(lambda: nn.BatchNorm1d(6)),
            "mint.nn.BatchNorm1d": lambda x: mint.nn.BatchNorm1d(6, dtype=x.dtype).set_train()(x),
            "mint.nn.functional.batch_norm": lambda x: functional.batch_norm(
                x, *of(ZEROS, ONES, dtype=x.dtype), training=True
            ),
        },
    ),
    "batch norm of images": (
        IMAGE, normalised(IMAGE, (0, 2, 3)),
        {
            "ops.batch_norm": lambda x: ops.batch_norm(
                x, *of(ZEROS, ONES, ONES, ZEROS, dtype=x.dtype), True
            ),
            "nn.BatchNorm2d": cell(lambda: nn.BatchNorm2d(6)),
            "mint.nn.BatchNorm2d": lambda x: mint.nn.BatchNorm2d(6, dtype=x.dtype).set_train()(x),
        },
    ),
    "layer norm": (
        WIDE, normalised(WIDE, 1),
        {
            "nn.LayerNorm": cell(lambda: nn.LayerNorm((6,), epsilon=1e-5)),
            "mint.nn.LayerNorm": lambda x: mint.nn.LayerNorm(6, dtype=x.dtype)(x),
            "mint.nn.functional.layer_norm": lambda x: functional.layer_norm(x, (6,)),
            "ops.LayerNorm": lambda x: ops.LayerNorm(epsilon=1e-5)(
                x, *of(ONES, ZEROS, dtype=x.dtype)
            )[0],
        },
    ),
    "group norm": (
        IMAGE, normalised(IMAGE.reshape(4, 2, -1), 2).reshape(IMAGE.shape),
        {
            "nn.GroupNorm": cell(lambda: nn.GroupNorm(2, 6)),
            "mint.nn.GroupNorm": lambda x: mint.nn.GroupNorm(2, 6, dtype=x.dtype)(x),
            "mint.nn.functional.group_norm": lambda x: functional.group_norm(x, 2),
        },
    ),
    "instance norm": (
        IMAGE, normalised(IMAGE, (2, 3)), {"nn.InstanceNorm2d": cell(lambda: nn.InstanceNorm2d(6))},
    ),
    "length one": (
        WIDE, WIDE / np.sqrt((WIDE**2).sum(0)),
        {
            "ops.L2Normalize": lambda x: ops.L2Normalize()(x),
            "mint.nn.functional.normalize": lambda x: functional.normalize(x, dim=0),
        },
    ),
    "local response": (
        IMAGE, IMAGE / np.sqrt(1 + (IMAGE**2).sum(1, keepdims=True)),
        {"ops.LRN": lambda x: ops.LRN(6)(x), "nn.LRN": lambda x: ops.lrn(x, 6)},
    ),
    "length": (
        WIDE, np.sqrt((WIDE**2).sum(1)),
        {
            "nn.Norm": lambda x: nn.Norm(1)(x),
            "ops.norm": lambda x: ops.norm(x, dim=1),
            "Tensor.norm": lambda x: x.norm(dim=1),
            "mint.norm": lambda x: mint.norm(x, dim=1),
        },
    ),
    "spread": (
        WIDE, WIDE.std(0, ddof=1),
        {
            "ops.std": lambda x: ops.std(x, 0, 1),
            "Tensor.std": lambda x: x.std(0, 1),
            "mint.std": lambda x: mint.std(x, 0, correction=1),
        },
    ),
    "mean of squares": (
        WIDE / 100, ((WIDE / 100) ** 2).mean(),
        {
            "nn.MSELoss": lambda x: nn.MSELoss()(x, ops.zeros_like(x)),
            "ops.mse_loss": lambda x: ops.mse_loss(x, ops.zeros_like(x)),
            "mint.nn.MSELoss": lambda x: mint.nn.MSELoss()(x, ops.zeros_like(x)),
            "mint.nn.functional.mse_loss": lambda x: functional.mse_loss(x, ops.zeros_like(x)),
            "nn.RMSELoss": lambda x: nn.RMSELoss()(x, ops.zeros_like(x)) ** 2,
        },
    ),
}  # fmt: skip
CASES = [(kind, name) for kind, (_, _, names) in NORMS.items() for name in names]


@pytest.mark.parametrize("dtype", [gc.float16, gc.bfloat16], ids=str)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_norms_and_losses(kind: str, name: str, dtype: Any) -> None:
    numbers, wanted, names = NORMS[kind]
    ulp = 2.0**-10 if dtype == gc.float16 else 2.0**-7
    got = names[name](Tensor(numbers, dtype))
    found = got.asnumpy() if got.dtype != gc.bfloat16 else got.float().asnumpy()
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found / scale, wanted / scale, atol=4 * ulp)
