"""Losses against NumPy in float64 and against results of MindSpore, gradients against central
differences."""

from __future__ import annotations

import numpy as np
import pytest
from nn_checks import RNG, check_gradients, normal
from numpy_functions import huber, reduced, sigmoid, softmax

import gradcell as ms
from gradcell import Tensor, nn

ELEMENTWISE = {
    "MSELoss": (nn.MSELoss, lambda x, y: (x - y) ** 2),
    "L1Loss": (nn.L1Loss, lambda x, y: np.abs(x - y)),
    "SmoothL1Loss": (
        lambda reduction: nn.SmoothL1Loss(0.5, reduction),
        lambda x, y: np.where(np.abs(x - y) < 0.5, (x - y) ** 2, np.abs(x - y) - 0.25),
    ),
    "HuberLoss": (lambda reduction: nn.HuberLoss(reduction, 0.7), lambda x, y: huber(x - y, 0.7)),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, lambda x, y: np.log1p(np.exp(x)) - x * y),
    "BCELoss": (
        lambda reduction: nn.BCELoss(reduction=reduction),
        lambda x, y: -(y * np.log(x) + (1 - y) * np.log(1 - x)),
    ),
    "KLDivLoss": (nn.KLDivLoss, lambda x, y: y * (np.log(y) - x)),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_loss(mode, name, reduction):
    factory, reference = ELEMENTWISE[name]
    x, y = RNG.uniform(0.05, 0.95, (4, 3)), RNG.uniform(0.05, 0.95, (4, 3))
    if name != "BCELoss":
        x = 2 * normal(4, 3)
    cell = factory(reduction=reduction)
    out = cell(Tensor(x), Tensor(y)).asnumpy()
    np.testing.assert_allclose(out, reduced(reference(x, y), reduction), rtol=1e-8)
    check_gradients(cell, [x, y], by=(0,), second=True, tolerance=1e-5)


def test_weighted_binary_losses(mode):
    x, y = normal(4, 3), RNG.uniform(0, 1, (4, 3))
    w, positive = RNG.uniform(0.5, 2, (4, 3)), RNG.uniform(0.5, 2, 3)
    p = sigmoid(x)
    expected = -w * (positive * y * np.log(p) + (1 - y) * np.log(1 - p))
    cell = nn.BCEWithLogitsLoss("none", Tensor(w), Tensor(positive))
    np.testing.assert_allclose(cell(Tensor(x), Tensor(y)).asnumpy(), expected, rtol=1e-9)
    expected = -w * (y * np.log(p) + (1 - y) * np.log(1 - p))
    cell = nn.BCELoss(Tensor(w), "none")
    np.testing.assert_allclose(cell(Tensor(p), Tensor(y)).asnumpy(), expected, rtol=1e-8)


@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3)], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_of_indices(mode, shape, reduction, weighted, smoothing):
    x = normal(*shape)
    labels = RNG.integers(0, 4, (shape[0], *shape[2:]))
    labels.flat[1] = -100
    w = RNG.uniform(0.5, 2, 4) if weighted else np.ones(4)
    logp = np.moveaxis(np.log(softmax(x, 1)), 1, -1)
    valid = labels != -100
    safe = np.where(valid, labels, 0)
    picked = np.take_along_axis(logp, safe[..., None], -1)[..., 0] * w[safe]
    loss = -((1 - smoothing) * picked + smoothing / 4 * (logp * w).sum(-1)) * valid
    if reduction == "mean":
        expected = loss.sum() / (w[safe] * valid).sum()
    else:
        expected = loss.sum() if reduction == "sum" else loss
    weight = Tensor(w) if weighted else None
    cell = nn.CrossEntropyLoss(weight, reduction=reduction, label_smoothing=smoothing)
    target = Tensor(labels.astype(np.int32))
    np.testing.assert_allclose(cell(Tensor(x), target).asnumpy(), expected, rtol=1e-10, atol=1e-12)
    check_gradients(cell, [x, labels.astype(np.int32)], by=(0,), second=smoothing == 0)
    if not smoothing:
        nll = nn.NLLLoss(weight, reduction=reduction)
        out = nll(Tensor(np.log(softmax(x, 1))), target)
        np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-10, atol=1e-12)


def test_cross_entropy_of_probabilities(mode):
    x, y = normal(5, 4), softmax(normal(5, 4))
    w = RNG.uniform(0.5, 2, 4)
    loss = -(np.log(softmax(x)) * y * w).sum(1)
    cell = nn.CrossEntropyLoss(Tensor(w))
    np.testing.assert_allclose(float(cell(Tensor(x), Tensor(y))), loss.mean(), rtol=1e-12)
    check_gradients(cell, [x, y], by=(0,), second=True)


def test_softmax_cross_entropy_with_logits(mode):
    x, labels = normal(5, 4), np.array([0, 3, 2, 1, 1], np.int32)
    one_hot = np.eye(4)[labels]
    expected = -np.log(softmax(x))[np.arange(5), labels]
    dense = nn.SoftmaxCrossEntropyWithLogits()
    np.testing.assert_allclose(dense(Tensor(x), Tensor(one_hot)).asnumpy(), expected, rtol=1e-12)
    sparse = nn.SoftmaxCrossEntropyWithLogits(sparse=True)
    np.testing.assert_allclose(sparse(Tensor(x), Tensor(labels)).asnumpy(), expected, rtol=1e-12)
    mean = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    np.testing.assert_allclose(float(mean(Tensor(x), Tensor(labels))), expected.mean())
    check_gradients(mean, [x, labels], by=(0,), second=True)
    with pytest.raises(TypeError, match="probabilities"):
        dense(Tensor(x), Tensor(labels))
    with pytest.raises(TypeError, match="class indices"):
        sparse(Tensor(x), Tensor(one_hot))


#: Results of MindSpore 2.10.0 on these inputs.
LOGITS = np.array([[1.0, 2.0, 0.5], [0.1, -1.0, 3.0]], np.float32)
LABELS = np.array([1, 2], np.int32)
ONE_HOT = np.array([[0, 1, 0], [0, 0, 1]], np.float32)
WEIGHT = np.array([1.0, 2.0, 0.5], np.float32)
RECORDED = [
    (lambda: nn.CrossEntropyLoss(), LABELS, 0.26757121),
    (lambda: nn.CrossEntropyLoss(Tensor(WEIGHT)), LABELS, 0.38564950),
    (lambda: nn.CrossEntropyLoss(Tensor(WEIGHT), reduction="sum"), LABELS, 0.96412373),
    (lambda: nn.CrossEntropyLoss(reduction="none"), LABELS, [0.46436834, 0.07077408]),
    (lambda: nn.CrossEntropyLoss(ignore_index=2), LABELS, 0.46436834),
    (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), LABELS, 0.42423791),
    (lambda: nn.CrossEntropyLoss(Tensor(WEIGHT), label_smoothing=0.1), LABELS, 0.54072452),
    (lambda: nn.CrossEntropyLoss(Tensor(WEIGHT)), ONE_HOT, 0.48206186),
    (lambda: nn.CrossEntropyLoss(Tensor(WEIGHT), label_smoothing=0.1), ONE_HOT, 0.67590570),
    (lambda: nn.NLLLoss(Tensor(WEIGHT)), LABELS, -2.2),
    (lambda: nn.BCEWithLogitsLoss(), ONE_HOT, 0.58675200),
    (lambda: nn.L1Loss(), ONE_HOT, 0.93333334),
    (lambda: nn.SmoothL1Loss(), ONE_HOT, [[0.5, 0.5, 0.125], [0.005, 0.5, 1.5]]),
    (lambda: nn.SmoothL1Loss(0.5, "mean"), ONE_HOT, 0.71000004),
    (lambda: nn.HuberLoss(), ONE_HOT, 0.52166671),
    (lambda: nn.HuberLoss("sum", 0.5), ONE_HOT, 2.13000011),
    (lambda: nn.MAELoss(), ONE_HOT, 0.93333334),
    (lambda: nn.RMSELoss(), ONE_HOT, 1.10000002),
]


@pytest.mark.parametrize("i", range(len(RECORDED)))
def test_recorded_losses(i):
    factory, labels, expected = RECORDED[i]
    out = factory()(Tensor(LOGITS), Tensor(labels))
    assert out.dtype == ms.float32
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=5e-6)


LOSSES = (
    "MSELoss L1Loss SmoothL1Loss HuberLoss CrossEntropyLoss SoftmaxCrossEntropyWithLogits BCELoss "
    "BCEWithLogitsLoss NLLLoss KLDivLoss MAELoss"
).split()


@pytest.mark.parametrize("name", LOSSES)
def test_losses_refuse(name):
    text = f"For '{name}', the 'reduction' must be in .*, but got x."
    with pytest.raises(ValueError, match=text):
        getattr(nn, name)(reduction="x")
    with pytest.raises(TypeError, match="must be Tensor"):
        getattr(nn, name)()(Tensor([[1.0]]), 3)


def test_labels_out_of_range():
    with pytest.raises(IndexError):
        nn.CrossEntropyLoss()(Tensor(LOGITS), Tensor([1, 7]))
    with pytest.raises(ValueError):
        nn.CrossEntropyLoss()(Tensor(LOGITS), Tensor([1]))
    with pytest.raises(ValueError, match="delta"):
        nn.HuberLoss(delta=-1.0)
