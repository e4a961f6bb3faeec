"""Losses of margins, pairs and sequences against NumPy loops, their derivatives, bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from check_grads import check_grads

from gradcell import Tensor, nn, ops

RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.standard_normal(shape)


def triplet(a, p, n, margin=1.0, order=2, eps=1e-6, swap=False):
    def distance(x, y):
        return (np.abs(x - y + eps) ** order).sum(-1) ** (1 / order)

    far = distance(a, n)
    far = np.minimum(far, distance(p, n)) if swap else far
    return np.maximum(distance(a, p) - far + margin, 0)


def multi_margin(x, t, p, margin, weight):
    out = np.zeros(len(x))
    for i, row in enumerate(x):
        for k, value in enumerate(row):
            if k != t[i]:
                out[i] += weight[t[i]] * max(0, margin - row[t[i]] + value) ** p
    return out / x.shape[1]


def multilabel_margin(x, t):
    out = np.zeros(len(x))
    for i, row in enumerate(x):
        labels = list(itertools.takewhile(lambda k: k >= 0, t[i]))
        for j, k in itertools.product(labels, range(len(row))):
            if k not in labels:
                out[i] += max(0, 1 - row[j] + row[k])
    return out / x.shape[1]


A, B, C = normal(5, 3), normal(5, 3), normal(5, 3)
SIGNS = RNG.choice([-1.0, 1.0], (5, 3))
CLASSES = RNG.integers(0, 3, 5)
LABELS = np.array([[0, 2, -1], [1, -1, 0], [-1, 0, 1], [2, 1, 0], [2, -1, -1]])
WEIGHT = RNG.uniform(0.5, 2, 3)

REFERENCES = {
    "triplet": (nn.TripletMarginLoss(reduction="none"), (A, B, C), triplet(A, B, C)),
    "triplet, third powers, swapped": (
        nn.TripletMarginLoss(3, True, 1e-3, "none", 2.0),
        (A, B, C),
        triplet(A, B, C, 2.0, 3, 1e-3, True),
    ),
    "soft margin": (nn.SoftMarginLoss("none"), (A, SIGNS), np.log1p(np.exp(-SIGNS * A))),
    "multi margin": (
        nn.MultiMarginLoss(reduction="none"),
        (A, CLASSES),
        multi_margin(A, CLASSES, 1, 1, np.ones(3)),
    ),
    "multi margin, squared, weighted": (
        nn.MultiMarginLoss(2, 0.7, "none", Tensor(WEIGHT)),
        (A, CLASSES),
        multi_margin(A, CLASSES, 2, 0.7, WEIGHT),
    ),
    "multilabel margin": (
        nn.MultilabelMarginLoss("none"),
        (A, LABELS),
        multilabel_margin(A, LABELS),
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_reference(mode, name):
    loss, inputs, expected = REFERENCES[name]
    found = loss(*map(Tensor, inputs))
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-10, atol=1e-12)
    mean = type(loss)(**{"reduction": "mean"})(*map(Tensor, inputs))
    assert mean.shape == ()
    fixed = [Tensor(x) for x in inputs[1:]]
    check_grads(lambda x: loss(x, *fixed), [inputs[0]], order=2, tolerance=1e-6, step=1e-4)


def collapsed(path, blank):
    kept = [k for k, _ in itertools.groupby(path)]
    return [k for k in kept if k != blank]


def ctc(logp, labels, blank):
    """Minus the logarithm of the sum over all paths that collapse to the labels."""
    time, classes = logp.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=time):
        if collapsed(path, blank) == list(labels):
            total += np.exp(sum(logp[t, k] for t, k in enumerate(path)))
    return -np.log(total) if total else np.inf


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_sums_all_paths(mode, blank):
    other = [k for k in range(3) if k != blank]
    targets = np.array([[other[0], other[1]], [other[1], other[1]], [other[0], 0], [other[0]] * 2])
    steps, counts = np.array([4, 4, 3, 2]), np.array([2, 2, 0, 2])
    logits = normal(4, 4, 3)
    logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = [
        ctc(logp[: steps[i], i], targets[i, : counts[i]], blank) for i in range(len(targets))
    ]
    assert np.isinf(expected[3])  # a repeated label needs a blank between
    args = [Tensor(x) for x in (logp, targets, steps, counts)]
    found, alphas = ops.ctc_loss(*args, blank=blank, reduction="none")
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-10)
    assert alphas.shape == (4, 4, 5)
    finite, _ = ops.ctc_loss(*args, blank=blank, reduction="none", zero_infinity=True)
    assert finite.asnumpy()[3] == 0
    part = [Tensor(x[:3]) for x in (targets, steps, counts)]
    check_grads(
        lambda x: ops.ctc_loss(x, *part, blank=blank, reduction="sum")[0], [logp[:, :3]], order=3
    )


def test_infinity_has_no_derivative():
    import gradcell as gc

    logp = np.log(np.full((2, 1, 3), 1 / 3))
    args = [Tensor(np.array(x)) for x in ([[1, 1]], [2], [2])]
    slope = gc.grad(lambda x: ops.ctc_loss(x, *args, zero_infinity=True)[0])(Tensor(logp))
    assert np.isfinite(slope.asnumpy()).all() and not slope.asnumpy().any()


BAD = [
    (lambda: nn.CosineEmbeddingLoss(2.0), ValueError, "margin"),
    (lambda: nn.MultiMarginLoss(3), ValueError, "'p'"),
    (lambda: nn.GaussianNLLLoss(eps=0), ValueError, "eps"),
    (lambda: nn.DiceLoss(-1), ValueError, "smooth"),
    (lambda: nn.HingeEmbeddingLoss(reduction="most"), ValueError, "reduction"),
    (lambda: nn.MarginRankingLoss()(Tensor(A), Tensor(B), Tensor(A[0])), ValueError, "one shape"),
    (lambda: nn.MultiMarginLoss()(Tensor(A), Tensor(CLASSES[:2])), ValueError, r"\[2\]"),
    (lambda: nn.MultiMarginLoss()(Tensor(A), Tensor(CLASSES + 9)), IndexError, "out of"),
    (lambda: nn.FocalLoss()(Tensor(A), Tensor(CLASSES)), ValueError, "FocalLoss"),
    (lambda: nn.CTCLoss()(Tensor(A), Tensor([1, 1]), Tensor([9]), Tensor([2])), IndexError, "out"),
    (lambda: nn.CTCLoss()(Tensor(A), Tensor([1, 1]), Tensor([5]), Tensor([3])), IndexError, "out"),
    (lambda: nn.CTCLoss(3)(Tensor(A), Tensor([1]), Tensor([5]), Tensor([1])), ValueError, "blank"),
    (lambda: nn.TripletMarginLoss()(1.0, Tensor(A), Tensor(A)), TypeError, "anchor"),
]


@pytest.mark.parametrize("k", range(len(BAD)))
def test_losses_refuse_labels_that_do_not_fit(k):
    run, error, text = BAD[k]
    with pytest.raises(error, match=text):
        run()
