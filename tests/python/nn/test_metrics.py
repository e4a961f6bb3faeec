"""Metrics against scikit-learn and NumPy; bad input."""

import numpy as np
import pytest

from gradcell import Tensor, nn, train

RNG = np.random.RandomState(1)
LABELS = RNG.randint(0, 4, 90)
SCORES = RNG.randn(90, 4).astype(np.float32) + 1.5 * np.eye(4, dtype=np.float32)[LABELS]


def over_batches(metric, predictions=SCORES, labels=LABELS):
    metric.clear()
    for part in (slice(0, 40), slice(40, 80), slice(80, 90)):  # the last one is short
        metric.update(Tensor(predictions[part]), Tensor(labels[part]))
    return metric.eval()


def test_classes_against_scikit_learn():
    sk = pytest.importorskip("sklearn.metrics")
    guess = SCORES.argmax(axis=1)
    assert over_batches(train.Accuracy()) == pytest.approx(sk.accuracy_score(LABELS, guess))
    options = {"average": None, "zero_division": 0}
    np.testing.assert_allclose(
        over_batches(train.Precision()), sk.precision_score(LABELS, guess, **options)
    )
    np.testing.assert_allclose(
        over_batches(train.Recall()), sk.recall_score(LABELS, guess, **options)
    )
    np.testing.assert_allclose(over_batches(train.F1()), sk.f1_score(LABELS, guess, **options))
    for k in (1, 2, 3):
        want = sk.top_k_accuracy_score(LABELS, SCORES, k=k, labels=range(4))
        assert over_batches(train.TopKCategoricalAccuracy(k)) == pytest.approx(want)


def test_differences():
    y = RNG.randn(90, 2).astype(np.float32)
    p = RNG.randn(90, 2).astype(np.float32)
    assert over_batches(train.MSE(), p, y) == pytest.approx(((p - y) ** 2).sum() / 90)
    assert over_batches(train.MAE(), p, y) == pytest.approx(np.abs(p - y).sum() / 90)
    loss = train.Loss()
    for value in (1.0, 2.0, 6.0):
        loss.update(Tensor(value))
    assert loss.eval() == 3


def test_one_hot_and_multilabel():
    assert over_batches(train.Accuracy(), SCORES, np.eye(4)[LABELS]) == over_batches(
        train.Accuracy()
    )
    many = train.Accuracy("multilabel")
    many.update(np.array([[1, 0], [1, 1]]), np.array([[1, 0], [1, 0]]))
    assert many.eval() == 0.5


@pytest.mark.parametrize("label", [-1, 4])
def test_a_label_out_of_range(label):
    labels = LABELS[:5].copy()
    labels[3] = label
    with pytest.raises(ValueError, match=rf"the label {label} at \[3\] is out of range"):
        train.Accuracy().update(SCORES[:5], labels)


def test_metrics_refuse_scores_that_do_not_fit():
    with pytest.raises(RuntimeError, match="number of samples is 0"):
        train.Accuracy().eval()
    with pytest.raises(ValueError, match="shape"):
        train.Accuracy().update(SCORES, LABELS[:3])
    with pytest.raises(ValueError, match="got 1 values"):
        train.MSE().update(SCORES)
    with pytest.raises(ValueError, match="shape"):
        train.MSE().update(SCORES, LABELS)
    with pytest.raises(KeyError, match="is not a metric"):
        train.get_metric_fn("best")
    with pytest.raises(ValueError, match="at least 1"):
        train.TopKCategoricalAccuracy(0)


def test_inputs_by_index():
    """set_indexes names what of (loss, prediction, label) update gets."""

    class Own(train.Metric):
        def clear(self):
            self.seen = []

        @nn.rearrange_inputs
        def update(self, *inputs):
            self.seen.append(inputs)

        def eval(self):
            return self.seen

    own = Own()
    own.clear()
    own.update(1, 2, 3)
    own.set_indexes([2, 0]).update(1, 2, 3)
    assert own.eval() == [(1, 2, 3), (3, 1)]
    metric = train.Accuracy().set_indexes([1, 2])
    metric.update(None, Tensor(SCORES), Tensor(LABELS))
    assert metric.eval() == train.Accuracy()(SCORES, LABELS)
    with pytest.raises(ValueError, match="list of ints"):
        metric.set_indexes((0, 1))


def test_words_and_areas():
    def bleu(candidate, reference, longest):
        score = 1.0
        for n in range(1, longest + 1):
            grams = [tuple(candidate[i : i + n]) for i in range(len(candidate) - n + 1)]
            known = [tuple(reference[i : i + n]) for i in range(len(reference) - n + 1)]
            kept = sum(min(grams.count(g), known.count(g)) for g in set(grams))
            score *= (kept / len(grams)) ** (1 / longest)
        return score * min(1, np.exp(1 - len(reference) / len(candidate)))

    one, two = "the cat sat on the mat".split(), "the cat is on the mat now".split()
    metric = nn.BleuScore(2)
    metric.update([one], [[two]])
    assert float(metric.eval()) == pytest.approx(bleu(one, two, 2))
    assert nn.auc(np.array([0.9, 0.4, 0.1]), np.array([0, 0.5, 0.7])) == pytest.approx(0.305)
    false, true, _ = nn.ROC(4)(SCORES, LABELS)
    sk = pytest.importorskip("sklearn.metrics")
    for c in range(4):
        want = sk.roc_auc_score(LABELS == c, SCORES[:, c])
        assert nn.auc(false[c], true[c]) == pytest.approx(want)


@pytest.mark.parametrize(
    ("run", "error"),
    [
        (lambda: nn.ConfusionMatrix(3)(SCORES, LABELS), ValueError),
        (lambda: nn.ConfusionMatrix(4, "rows"), ValueError),
        (lambda: nn.ConfusionMatrixMetric(metric_name="luck"), NotImplementedError),
        (lambda: nn.ConfusionMatrixMetric()(SCORES, SCORES), ValueError),
        (lambda: nn.ROC()(np.ones(3), np.ones(3)), ValueError),
        (lambda: nn.auc([1, 2], [1, 2]), TypeError),
        (lambda: nn.auc(np.array([0, 2, 1]), np.ones(3)), ValueError),
        (lambda: nn.Fbeta(0), ValueError),
        (lambda: nn.BleuScore(5), ValueError),
        (lambda: nn.Perplexity()(SCORES, LABELS[:3]), ValueError),
        (lambda: nn.Precision("both"), TypeError),
        (lambda: nn.CosineSimilarity().eval(), RuntimeError),
    ],
)
def test_more_bad_input(run, error):
    with pytest.raises(error):
        run()
