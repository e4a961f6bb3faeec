"""Every norm and every loss in half precision, by all its names in nn, ops and mint: one number, that of
float64 rounded once. A name that is in no row fails the last test."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, mint, nn, ops

RNG = np.random.default_rng(31)
F = mint.nn.functional
X, Y, Z = RNG.standard_normal((3, 16, 6)) * 200
SMALL, OTHER = RNG.standard_normal((2, 16, 6))
P = 1 / (1 + np.exp(-SMALL))
T = (OTHER > 0).astype(float)
SIGNS = 2 * T - 1
SHARES = np.exp(OTHER) / np.exp(OTHER).sum(1, keepdims=True)
LOGS = SMALL - np.log(np.exp(SMALL).sum(1, keepdims=True))
IMAGE = RNG.standard_normal((4, 6, 3, 3)) * 1000
VOLUME = RNG.standard_normal((2, 6, 2, 3, 2)) * 1000
ONES, ZEROS = np.ones(6), np.zeros(6)
CLASSES, SIGN = Tensor(RNG.integers(0, 6, 16), gc.int32), Tensor([1, -1] * 8, gc.int32)
ORDERED = Tensor(np.argsort(RNG.standard_normal((16, 6)), 1) - (np.arange(6) == 3) * 9, gc.int32)
STEPS = np.log(np.full((6, 2, 3), 1 / 3))
LINES, LENGTHS, ENDS = (
    Tensor(v, gc.int32) for v in ([[1, 2], [2, 1]], [2, 2], [6, 6])
)  # fmt: skip
PLACES = Tensor([[0, 0], [0, 1], [1, 0], [1, 1]], gc.int64)
FOUND = Tensor([0, 1, 1, 0], gc.int32)

Name = Callable[..., Any]


def cell(make: Callable[[], nn.Cell]) -> Name:
    """A cell with parameters, in the numbers' dtype."""
    return lambda x: make().to_float(x.dtype).set_train()(x)


def minted(make: Callable[..., nn.Cell]) -> Name:
    return lambda x: make(dtype=x.dtype).set_train()(x)


def like(x: Tensor, *values: np.ndarray) -> list[Tensor]:
    return [Tensor(v, x.dtype) for v in values]


def no_reduction(loss: Callable[..., Any]) -> Name:
    return lambda *a: loss(*a).mean()


#: What is computed: the numbers, and its names. All give the same.
ROWS: dict[str, tuple[tuple[np.ndarray, ...], dict[str, Name]]] = {
    "l1": ((X, Y), {
        "nn.L1Loss": lambda x, y: nn.L1Loss()(x, y), "nn.MAELoss": lambda x, y: nn.MAELoss()(x, y),
        "ops.l1_loss": ops.l1_loss, "mint.nn.L1Loss": lambda x, y: mint.nn.L1Loss()(x, y),
        "mint.nn.functional.l1_loss": F.l1_loss}),
    "mse": ((X, Y), {
        "nn.MSELoss": lambda x, y: nn.MSELoss()(x, y), "ops.mse_loss": ops.mse_loss,
        "mint.nn.MSELoss": lambda x, y: mint.nn.MSELoss()(x, y),
        "mint.nn.functional.mse_loss": F.mse_loss}),
    "rmse": ((X, Y), {"nn.RMSELoss": lambda x, y: nn.RMSELoss()(x, y)}),
    "half of the squares": ((SMALL,), {"ops.L2Loss": lambda x: ops.L2Loss()(x)}),
    "smooth l1": ((X, Y), {
        "nn.SmoothL1Loss": no_reduction(lambda x, y: nn.SmoothL1Loss()(x, y)),
        "ops.smooth_l1_loss": no_reduction(ops.smooth_l1_loss),
        "ops.SmoothL1Loss": no_reduction(lambda x, y: ops.SmoothL1Loss()(x, y)),
        "mint.nn.SmoothL1Loss": lambda x, y: mint.nn.SmoothL1Loss()(x, y),
        "mint.nn.functional.smooth_l1_loss": F.smooth_l1_loss}),
    "huber": ((X, Y), {
        "nn.HuberLoss": lambda x, y: nn.HuberLoss()(x, y), "ops.huber_loss": ops.huber_loss}),
    "bce": ((P, T), {
        "nn.BCELoss": lambda x, y: nn.BCELoss(reduction="mean")(x, y),
        "ops.binary_cross_entropy": ops.binary_cross_entropy,
        "ops.BinaryCrossEntropy": lambda x, y: ops.BinaryCrossEntropy()(x, y),
        "mint.nn.BCELoss": lambda x, y: mint.nn.BCELoss()(x, y),
        "mint.nn.functional.binary_cross_entropy": F.binary_cross_entropy}),
    "bce of logits": ((X, T), {
        "nn.BCEWithLogitsLoss": lambda x, y: nn.BCEWithLogitsLoss()(x, y),
        "ops.binary_cross_entropy_with_logits": lambda x, y: (
            ops.binary_cross_entropy_with_logits(x, y)),
        "ops.BCEWithLogitsLoss": lambda x, y: ops.BCEWithLogitsLoss()(
            x, y, *[ops.ones_like(x)] * 2),
        "ops.SigmoidCrossEntropyWithLogits": no_reduction(
            lambda x, y: ops.SigmoidCrossEntropyWithLogits()(x, y)),
        "mint.nn.BCEWithLogitsLoss": lambda x, y: mint.nn.BCEWithLogitsLoss()(x, y),
        "mint.nn.functional.binary_cross_entropy_with_logits": (
            F.binary_cross_entropy_with_logits)}),
    "cross entropy": ((X / 10,), {
        "nn.CrossEntropyLoss": lambda x: nn.CrossEntropyLoss()(x, CLASSES),
        "ops.cross_entropy": lambda x: ops.cross_entropy(x, CLASSES),
        "nn.SoftmaxCrossEntropyWithLogits": lambda x: nn.SoftmaxCrossEntropyWithLogits(
            sparse=True, reduction="mean")(x, CLASSES),
        "ops.sparse_softmax_cross_entropy_with_logits": lambda x: (
            ops.sparse_softmax_cross_entropy_with_logits(x, CLASSES)),
        "ops.SparseSoftmaxCrossEntropyWithLogits": lambda x: (
            ops.SparseSoftmaxCrossEntropyWithLogits()(x, CLASSES)),
        "mint.nn.CrossEntropyLoss": lambda x: mint.nn.CrossEntropyLoss()(x, CLASSES),
        "mint.nn.functional.cross_entropy": lambda x: F.cross_entropy(x, CLASSES)}),
    "cross entropy of shares": ((X / 10, SHARES), {
        "ops.softmax_cross_entropy_with_logits": no_reduction(
            ops.softmax_cross_entropy_with_logits),
        "ops.SoftmaxCrossEntropyWithLogits": no_reduction(
            lambda x, y: ops.SoftmaxCrossEntropyWithLogits()(x, y)[0])}),
    "nll": ((LOGS,), {
        "nn.NLLLoss": lambda x: nn.NLLLoss()(x, CLASSES),
        "ops.nll_loss": lambda x: ops.nll_loss(x, CLASSES),
        "ops.NLLLoss": lambda x: ops.NLLLoss()(x, CLASSES, *like(x, ONES))[0],
        "mint.nn.NLLLoss": lambda x: mint.nn.NLLLoss()(x, CLASSES),
        "mint.nn.functional.nll_loss": lambda x: F.nll_loss(x, CLASSES)}),
    "kl": ((LOGS, SHARES), {
        "nn.KLDivLoss": lambda x, y: nn.KLDivLoss()(x, y), "ops.kl_div": ops.kl_div,
        "ops.KLDivLoss": lambda x, y: ops.KLDivLoss("mean")(x, y),
        "mint.nn.KLDivLoss": lambda x, y: mint.nn.KLDivLoss()(x, y),
        "mint.nn.functional.kl_div": F.kl_div}),
    "cosine": ((X, Y), {
        "nn.CosineEmbeddingLoss": lambda x, y: nn.CosineEmbeddingLoss()(x, y, SIGN),
        "ops.cosine_embedding_loss": lambda x, y: ops.cosine_embedding_loss(x, y, SIGN),
        "mint.nn.CosineEmbeddingLoss": lambda x, y: mint.nn.CosineEmbeddingLoss()(x, y, SIGN),
        "mint.nn.functional.cosine_embedding_loss": lambda x, y: (
            F.cosine_embedding_loss(x, y, SIGN))}),
    "gaussian nll": ((SMALL, OTHER, P + 0.5), {
        "nn.GaussianNLLLoss": lambda x, y, v: nn.GaussianNLLLoss()(x, y, v),
        "ops.gaussian_nll_loss": ops.gaussian_nll_loss}),
    "hinge embedding": ((X / 100, SIGNS), {
        "nn.HingeEmbeddingLoss": lambda x, y: nn.HingeEmbeddingLoss()(x, y),
        "ops.hinge_embedding_loss": ops.hinge_embedding_loss}),
    "margin ranking": ((X, Y, SIGNS), {
        "nn.MarginRankingLoss": lambda x, y, t: nn.MarginRankingLoss()(x, y, t),
        "ops.margin_ranking_loss": ops.margin_ranking_loss}),
    "multi margin": ((X,), {
        "nn.MultiMarginLoss": lambda x: nn.MultiMarginLoss()(x, CLASSES.astype(gc.int64)),
        "ops.multi_margin_loss": lambda x: ops.multi_margin_loss(x, CLASSES.astype(gc.int64))}),
    "multi-label margin": ((X,), {
        "nn.MultilabelMarginLoss": lambda x: nn.MultilabelMarginLoss()(x, ORDERED),
        "ops.multilabel_margin_loss": lambda x: ops.multilabel_margin_loss(x, ORDERED)}),
    "multi-label soft margin": ((X, T), {
        "nn.MultiLabelSoftMarginLoss": lambda x, y: nn.MultiLabelSoftMarginLoss()(x, y),
        "ops.multilabel_soft_margin_loss": ops.multilabel_soft_margin_loss}),
    "poisson nll": ((SMALL, P), {
        "nn.PoissonNLLLoss": lambda x, y: nn.PoissonNLLLoss()(x, y),
        "ops.poisson_nll_loss": ops.poisson_nll_loss}),
    "soft margin": ((X, SIGNS), {
        "nn.SoftMarginLoss": lambda x, y: nn.SoftMarginLoss()(x, y),
        "ops.soft_margin_loss": ops.soft_margin_loss,
        "mint.nn.SoftMarginLoss": lambda x, y: mint.nn.SoftMarginLoss()(x, y),
        "mint.nn.functional.soft_margin_loss": F.soft_margin_loss}),
    "triplet": ((X, Y, Z), {
        "nn.TripletMarginLoss": lambda x, y, z: nn.TripletMarginLoss()(x, y, z),
        "nn.TripletMarginWithDistanceLoss": lambda x, y, z: (
            nn.TripletMarginWithDistanceLoss()(x, y, z)),
        "ops.triplet_margin_loss": ops.triplet_margin_loss}),
    "ctc": ((STEPS,), {
        "ops.ctc_loss": lambda x: ops.ctc_loss(x, LINES, ENDS, LENGTHS)[0],
        "nn.CTCLoss": lambda x: nn.CTCLoss()(x, LINES, ENDS, LENGTHS)}),
    "ctc, the blank last": ((STEPS,), {
        "ops.CTCLoss": lambda x: ops.CTCLoss()(x, PLACES, FOUND, ENDS)[0]}),
    "dice": ((X / 100, Y / 100), {"nn.DiceLoss": lambda x, y: nn.DiceLoss()(x, y)}),
    "dice of classes": ((P, SHARES), {
        "nn.MultiClassDiceLoss": lambda x, y: nn.MultiClassDiceLoss(activation="softmax")(x, y)}),
    "focal": ((SMALL, SHARES), {"nn.FocalLoss": lambda x, y: nn.FocalLoss()(x, y)}),
    "batch norm": ((X * 5,), {
        "nn.BatchNorm1d": cell(lambda: nn.BatchNorm1d(6)),
        "nn.SyncBatchNorm": cell(lambda: nn.SyncBatchNorm(6)),
        "ops.batch_norm": lambda x: ops.batch_norm(x, *like(x, ZEROS, ONES, ONES, ZEROS), True),
        "ops.BatchNorm": lambda x: ops.BatchNorm(True)(x, *like(x, ONES, ZEROS, ZEROS, ONES))[0],
        "mint.nn.BatchNorm1d": minted(lambda **k: mint.nn.BatchNorm1d(6, **k)),
        "mint.nn.SyncBatchNorm": minted(lambda **k: mint.nn.SyncBatchNorm(6, **k)),
        "mint.nn.functional.batch_norm": lambda x: F.batch_norm(
            x, *like(x, ZEROS, ONES), training=True)}),
    "batch norm of images": ((IMAGE,), {
        "nn.BatchNorm2d": cell(lambda: nn.BatchNorm2d(6)),
        "mint.nn.BatchNorm2d": minted(lambda **k: mint.nn.BatchNorm2d(6, **k))}),
    "batch norm of volumes": ((VOLUME,), {
        "nn.BatchNorm3d": cell(lambda: nn.BatchNorm3d(6)),
        "mint.nn.BatchNorm3d": minted(lambda **k: mint.nn.BatchNorm3d(6, **k))}),
    "layer norm": ((X * 5,), {
        "nn.LayerNorm": cell(lambda: nn.LayerNorm((6,), epsilon=1e-5)),
        "ops.layer_norm": lambda x: ops.layer_norm(x, (6,)),
        "ops.LayerNorm": lambda x: ops.LayerNorm(epsilon=1e-5)(x, *like(x, ONES, ZEROS))[0],
        "mint.nn.LayerNorm": minted(lambda **k: mint.nn.LayerNorm(6, **k)),
        "mint.nn.functional.layer_norm": lambda x: F.layer_norm(x, (6,))}),
    "group norm": ((IMAGE,), {
        "nn.GroupNorm": cell(lambda: nn.GroupNorm(2, 6)),
        "mint.nn.GroupNorm": minted(lambda **k: mint.nn.GroupNorm(2, 6, **k)),
        "mint.nn.functional.group_norm": lambda x: F.group_norm(x, 2)}),
    "instance norm of lines": ((IMAGE[..., 0],), {
        "nn.InstanceNorm1d": cell(lambda: nn.InstanceNorm1d(6))}),
    "instance norm of images": ((IMAGE,), {
        "nn.InstanceNorm2d": cell(lambda: nn.InstanceNorm2d(6))}),
    "instance norm of volumes": ((VOLUME,), {
        "nn.InstanceNorm3d": cell(lambda: nn.InstanceNorm3d(6))}),
    "root mean square": ((X * 5,), {
        "nn.RMSNorm": cell(lambda: nn.RMSNorm((6,))),
        "ops.rms_norm": lambda x: ops.rms_norm(x, *like(x, ONES))[0]}),
    "length": ((X,), {
        "nn.Norm": lambda x: nn.Norm(1)(x), "ops.norm": lambda x: ops.norm(x, dim=1),
        "ops.vector_norm": lambda x: ops.vector_norm(x, 2, 1),
        "ops.LpNorm": lambda x: ops.LpNorm(1)(x), "mint.norm": lambda x: mint.norm(x, dim=1)}),
    "length one": ((X,), {
        "ops.L2Normalize": lambda x: ops.L2Normalize(1)(x),
        "mint.nn.functional.normalize": lambda x: F.normalize(x, dim=1)}),
    "bounded length": ((X,), {
        "nn.ClipByNorm": lambda x: nn.ClipByNorm()(x, Tensor(1.0, x.dtype)),
        "ops.clip_by_norm": lambda x: ops.clip_by_norm(x, 1.0),
        "ops.clip_by_global_norm": lambda x: ops.clip_by_global_norm([x], 1.0)[0]}),
    "bounded lengths": ((X,), {
        "ops.renorm": lambda x: ops.renorm(x, 2, 0, 1.0),
        "ops.Renorm": lambda x: ops.Renorm(2, 0, 1.0)(x)}),
}  # fmt: skip
CASES = [(kind, name) for kind, (_, names) in ROWS.items() for name in names]


@pytest.mark.parametrize("dtype", [gc.float16, gc.bfloat16], ids=str)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_by_all_names(kind: str, name: str, dtype: Any) -> None:
    numbers, names = ROWS[kind]
    half = [Tensor(a, dtype) for a in numbers]
    exact = next(iter(names.values()))(*[t.astype(gc.float64) for t in half]).asnumpy()
    got = names[name](*half)
    scale = np.abs(exact).max()
    assert 1e-4 < scale < 6e4
    ulp = 2.0**-10 if dtype == gc.float16 else 2.0**-7
    found = got.astype(gc.float64).asnumpy()
    assert found.shape == exact.shape and got.dtype == dtype
    np.testing.assert_allclose(found / scale, exact / scale, atol=2 * ulp)


#: Names that are no norm and no loss of numbers.
NO_LOSS = """
    LossBase Loss Dice DynamicLossScaleUpdateCell FixedLossScaleUpdateCell
    TrainOneStepWithLossScaleCell WithLossCell StandardNormal normal standard_normal tril_indices
    triu_indices
""".split()


def test_every_name_is_in_a_row() -> None:
    named = re.compile(r"loss|norm|entropy|kl_?div", re.IGNORECASE)
    modules: dict[str, ModuleType] = {
        "nn": nn, "ops": ops, "mint": mint, "mint.nn": mint.nn, "mint.nn.functional": F,
    }  # fmt: skip
    names = [
        f"{path}.{name}"
        for path, module in modules.items()
        for name in module.__all__
        if named.search(name) and name not in NO_LOSS
    ]
    assert sorted(names) == sorted(name for _, name in CASES)
