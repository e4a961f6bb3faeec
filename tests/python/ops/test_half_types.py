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


#: Losses and other composites: numbers, and a function of them, of any dtype.
LARGE, SMALL = RNG.standard_normal((2, 64, 3)) * 300, RNG.standard_normal((2, 64, 3))
SHARES = np.exp(SMALL[0]) / np.exp(SMALL[0]).sum(1, keepdims=True)
TARGETS, LENGTHS = Tensor([[1, 2], [2, 1]], gc.int32), Tensor([2, 2], gc.int32)
STEPS = np.log(np.full((6, 2, 3), 1 / 3))
COMPOSITES: dict[str, tuple[tuple[np.ndarray, ...], Callable[..., Any]]] = {
    "cosine_embedding_loss": (
        (LARGE[0], LARGE[1]),
        lambda x, y: ops.cosine_embedding_loss(x, y, Tensor([1, -1] * 32, gc.int32)),
    ),
    "triplet_margin_loss": (
        (LARGE[0], LARGE[1], LARGE[0, ::-1]),
        lambda x, y, z: ops.triplet_margin_loss(x, y, z),
    ),
    "margin_ranking_loss": (
        (SMALL[0], SMALL[1]),
        lambda x, y: ops.margin_ranking_loss(x, y, ops.sign(y), reduction="sum") / 64,
    ),
    "soft_margin_loss": (
        (SMALL[0] * 1000, SMALL[1]),
        lambda x, y: ops.soft_margin_loss(x, ops.sign(y), reduction="sum") / 1000,
    ),
    "multilabel_soft_margin_loss": (
        (SMALL[0], np.abs(np.sign(SMALL[1]))),
        lambda x, y: ops.multilabel_soft_margin_loss(x, y),
    ),
    "gaussian_nll_loss": (
        (SMALL[0], SMALL[1], np.abs(SMALL[0]) + 0.5),
        lambda x, y, v: ops.gaussian_nll_loss(x, y, v),
    ),
    "poisson_nll_loss": (
        (SMALL[0], np.abs(SMALL[1])),
        lambda x, y: ops.poisson_nll_loss(x, y),
    ),
    "ctc_loss": (
        (STEPS,),
        lambda x: ops.ctc_loss(x, TARGETS, Tensor([6, 6], gc.int32), LENGTHS)[0],
    ),
    "DiceLoss": ((LARGE[0] / 100, LARGE[1] / 100), lambda x, y: nn.DiceLoss()(x, y)),
    "FocalLoss": ((SMALL[0], SHARES), lambda x, y: nn.FocalLoss()(x, y)),
    "iou": (
        (np.array([[0.0, 0, 600, 500]]), np.array([[100.0, 50, 700, 400]])),
        lambda x, y: ops.iou(x, y),
    ),
    "cross": (
        (np.array([300.0, 200, 1]), np.array([301.0, 200, 2])),
        lambda x, y: ops.cross(x, y),
    ),
    "det": ((np.array([[300.0, 299], [301, 300]]),), lambda x: ops.det(x)),
    "nanstd": ((LARGE[0],), lambda x: gc.numpy.nanstd(x)),
}


@pytest.mark.parametrize("dtype", [gc.float16, gc.bfloat16], ids=str)
@pytest.mark.parametrize("name", COMPOSITES)
def test_composites(name: str, dtype: Any) -> None:
    """The value and the gradient of numbers that the half type holds are those of float64, rounded once."""
    numbers, function = COMPOSITES[name]
    ulp = 2.0**-10 if dtype == gc.float16 else 2.0**-7
    half = [Tensor(a, dtype) for a in numbers]
    wide = [t.astype(gc.float64) for t in half]
    weight = 1000.0  # so that gradients are no subnormal numbers
    for f in (
        function,
        gc.grad(lambda *xs: (function(*xs) * weight).sum(), tuple(range(len(half)))),
    ):
        found, wanted = f(*half), f(*wide)
        pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
        for a, b in pairs:
            exact = b.asnumpy()
            assert a.dtype == dtype
            if np.abs(exact).max() < 6e4:
                scale = max(np.abs(exact).max(), 1e-3)
                np.testing.assert_allclose(
                    a.astype(gc.float64).asnumpy() / scale, exact / scale, atol=4 * ulp
                )
