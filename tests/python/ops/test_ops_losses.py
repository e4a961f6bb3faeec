"""Losses against NumPy in float64, derivatives against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy_functions import huber, reduced, sigmoid, softmax, softplus
from ops_checks import T, check_derivatives, close

import gradcell as ms
from gradcell import Tensor, ops

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
LABELS = np.array([0, 2, 1, 2])
PROBABILITIES = softmax(RNG.normal(size=(4, 3)))
WEIGHT = np.array([0.5, 1.0, 2.0])


LOSSES: list[tuple[str, Callable[..., Tensor], Callable[[np.ndarray], np.ndarray], np.ndarray]] = [
    ("mse", lambda x, r: ops.mse_loss(x, T(Y), r), lambda x: (x - Y) ** 2, X),
    ("l1", lambda x, r: ops.l1_loss(x, T(Y), r), lambda x: np.abs(x - Y), X),
    (
        "smooth_l1",
        lambda x, r: ops.smooth_l1_loss(x, T(Y), 0.5, r),
        lambda x: huber(x - Y, 0.5) / 0.5,
        X,
    ),
    ("huber", lambda x, r: ops.huber_loss(x, T(Y), r, 0.7), lambda x: huber(x - Y, 0.7), X),
    (
        "bce",
        lambda x, r: ops.binary_cross_entropy(x, T(PROBABILITIES), None, r),
        lambda x: -(PROBABILITIES * np.log(x) + (1 - PROBABILITIES) * np.log(1 - x)),
        sigmoid(X),
    ),
    (
        "bce-logits",
        lambda x, r: ops.binary_cross_entropy_with_logits(x, T(PROBABILITIES), reduction=r),
        lambda x: softplus(x) - x * PROBABILITIES,
        X,
    ),
    (
        "bce-logits-weights",
        lambda x, r: ops.binary_cross_entropy_with_logits(
            x, T(PROBABILITIES), T(WEIGHT), T(WEIGHT + 1), r
        ),
        lambda x: WEIGHT
        * ((WEIGHT + 1) * PROBABILITIES * softplus(-x) + (1 - PROBABILITIES) * softplus(x)),
        X,
    ),
    (
        "kl_div",
        lambda x, r: ops.kl_div(x, T(PROBABILITIES), r),
        lambda x: PROBABILITIES * (np.log(PROBABILITIES) - x),
        X,
    ),
    (
        "cross_entropy-soft",
        lambda x, r: ops.cross_entropy(x, T(PROBABILITIES), T(WEIGHT), reduction=r),
        lambda x: -(PROBABILITIES * np.log(softmax(x)) * WEIGHT).sum(1),
        X,
    ),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "loss", "reference", "x"), LOSSES, ids=[c[0] for c in LOSSES])
def test_loss(name: str, loss: Any, reference: Any, x: np.ndarray, reduction: str) -> None:
    close(loss(T(x), reduction), reduced(reference(x), reduction), 1e-9, 1e-10)
    check_derivatives(lambda t: loss(t, reduction), x, order=3)


def np_nll(logp: np.ndarray, labels: np.ndarray, weight: Any, ignore: int, reduction: str,
           smoothing: float = 0.0) -> Any:  # fmt: skip
    """Row by row. logp: [N, C]."""
    w = np.ones(logp.shape[1]) if weight is None else weight
    rows, total = [], 0.0
    for p, label in zip(logp, labels, strict=True):
        if label == ignore:
            rows.append(0.0)
            continue
        even = -(w * p).sum() * smoothing / len(p)
        rows.append(-w[label] * p[label] * (1 - smoothing) + even)
        total += w[label]
    if reduction == "none":
        return np.array(rows)
    return sum(rows) / total if reduction == "mean" else sum(rows)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("ignore", [-100, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_by_index(reduction: str, weight: Any, ignore: int, smoothing: float) -> None:
    w = None if weight is None else T(weight)
    labels = T(LABELS.astype(np.int32))

    def loss(x: Tensor) -> Tensor:
        return ops.cross_entropy(x, labels, w, ignore, reduction, smoothing)

    expected = np_nll(np.log(softmax(X)), LABELS, weight, ignore, reduction, smoothing)
    close(loss(T(X)), expected)
    close(ops.nll_loss(T(X), labels, w, ignore, reduction, smoothing),
          np_nll(X, LABELS, weight, ignore, reduction, smoothing))  # fmt: skip
    check_derivatives(loss, X)


@pytest.mark.parametrize("classes", [2, 512, 513, 600])
def test_cross_entropy_of_many_classes(classes: int) -> None:
    x = RNG.normal(size=(5, classes))
    labels = np.array([0, classes - 1, 1, classes // 2, -100])

    def loss(x: Tensor) -> Tensor:
        return ops.cross_entropy(x, T(labels))

    close(loss(T(x)), np_nll(np.log(softmax(x)), labels, None, -100, "mean"))
    gradient = softmax(x) - np.eye(classes)[labels % classes]
    gradient[4] = 0
    close(ms.grad(loss)(T(x)), gradient / 4)


def test_cross_entropy_shapes() -> None:
    x = RNG.normal(size=(2, 3, 4))
    labels = RNG.integers(0, 3, (2, 4))
    flat = np.log(softmax(x, 1)).transpose(0, 2, 1).reshape(8, 3)
    expected = np_nll(flat, labels.ravel(), WEIGHT, -100, "mean")
    close(ops.cross_entropy(T(x), T(labels), T(WEIGHT)), expected)
    assert ops.cross_entropy(T(x), T(labels), reduction="none").shape == (2, 4)
    close(ops.cross_entropy(T(X[0]), T(1)), -np.log(softmax(X[0])[1]))
    with pytest.raises(ValueError, match="target of shape"):
        ops.cross_entropy(T(X), T(LABELS[:3]))
    with pytest.raises(ValueError, match="reduction"):
        ops.cross_entropy(T(X), T(LABELS), reduction="xx")
    with pytest.raises(ValueError, match="weight"):
        ops.cross_entropy(T(X), T(LABELS), T(WEIGHT[:2]))


def test_softmax_cross_entropy_with_logits() -> None:
    p = softmax(X)
    loss, residual = ops.SoftmaxCrossEntropyWithLogits()(T(X), T(PROBABILITIES))
    close(loss, -(PROBABILITIES * np.log(p)).sum(1))
    close(residual, p - PROBABILITIES)
    close(ops.softmax_cross_entropy_with_logits(T(X), T(PROBABILITIES)), loss.asnumpy())
    sparse = ops.SparseSoftmaxCrossEntropyWithLogits()
    close(sparse(T(X), T(LABELS)), -np.log(p[range(4), LABELS]).mean())
    gradient = ops.SparseSoftmaxCrossEntropyWithLogits(is_grad=True)(T(X), T(LABELS))
    close(gradient, ms.grad(lambda x: sparse(x, T(LABELS)))(T(X)).asnumpy())


def test_certain_and_impossible_probabilities() -> None:
    p, y = T(np.array([0.0, 1.0, 0.5])), T(np.array([1.0, 0.0, 1.0]))
    close(ops.binary_cross_entropy(p, y, reduction="none"),
          [27.631021, 27.631021, 0.6931472], 1e-6)  # fmt: skip
    logits = T(np.array([1e4, -1e4]), ms.float32)
    loss = ops.binary_cross_entropy_with_logits(logits, T(np.array([1.0, 0.0], np.float32)))
    assert float(loss) == 0.0
    labels = T(np.array([[0.0, 1.0]]))
    assert np.isfinite(ms.grad(lambda t: ops.kl_div(t, labels))(T(np.ones((1, 2)))).asnumpy()).all()


@pytest.mark.parametrize("label", [-1, 3, 700, -100, 2**31 - 1])
@pytest.mark.parametrize("classes", [3, 600])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_label_that_is_no_class_is_named(label: int, classes: int, dtype: Any) -> None:
    scores = T(np.ones((2, classes), np.float32))
    target = T(np.array([0, label], dtype))
    for loss in (ops.cross_entropy, ops.nll_loss):
        if label == -100 or 0 <= label < classes:
            loss(scores, target)
            continue
        text = rf"^the label {label} is none of the {classes} classes, 0 to {classes - 1}"
        for transform in (lambda f: f, ms.jit, ms.grad, lambda f: ms.jit(ms.value_and_grad(f))):
            with pytest.raises(IndexError, match=text):
                transform(loss)(scores, target)
        each = ms.vmap(lambda x, y, loss=loss: loss(x[None], y[None]))
        with pytest.raises(IndexError, match=text):
            each(scores, target)
        if label > 0:
            loss(scores, target, ignore_index=label)


def test_slope_of_kl_div_by_labels_that_are_zero():
    """By the labels it is 0 there, so that it is right by what a softmax makes them of."""
    logits, z = np.log([0.2, 0.3, 0.5]), np.array([-2000.0, 0.0, 1.0])
    p = np.exp(z) / np.exp(z).sum()
    by_p = ms.grad(lambda p: ops.kl_div(T(logits), p, "sum"))(T(p)).asnumpy()
    np.testing.assert_allclose(by_p[1:], np.log(p[1:]) + 1 - logits[1:], rtol=1e-12)
    assert p[0] == 0 and by_p[0] == 0
    by_z = ms.grad(lambda z: ops.kl_div(T(logits), ops.softmax(z), "sum"))(T(z)).asnumpy()
    slope = np.append(0, np.log(p[1:]) - logits[1:])
    np.testing.assert_allclose(by_z, p * (slope - p @ slope), rtol=1e-12)
