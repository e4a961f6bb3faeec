"""What metrics are asked in both packages: an expression and its inputs, taken in forwards and, a
second batch, backwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(0)
SCORES = RNG.standard_normal((12, 5)).astype(np.float32)
CLASSES = RNG.integers(0, 5, 12).astype(np.int32)
ONE_HOT = np.eye(5, dtype=np.float32)[CLASSES]
SHARES = RNG.dirichlet(np.ones(5), 12).astype(np.float32)
BITS, OTHER_BITS = (RNG.integers(0, 2, (8, 4)).astype(np.float32) for _ in range(2))
MASKS, OTHER_MASKS = (RNG.integers(0, 2, (3, 2, 4)).astype(np.float32) for _ in range(2))
ONE_SCORE, ONE_CLASS = RNG.random(12).astype(np.float32), RNG.integers(0, 2, 12).astype(np.int32)
PIXELS = RNG.standard_normal((3, 4, 5)).astype(np.float32)
PIXEL_CLASSES = RNG.integers(0, 4, (3, 5)).astype(np.int32)
LOSS = np.float32(2.5)

RATES = (
    "sensitivity, specificity, precision, negative predictive value, miss rate, fall out, "
    "false discovery rate, false omission rate, prevalence threshold, threat score, accuracy, "
    "balanced accuracy, f1 score, matthews correlation coefficient, fowlkes mallows index, "
    "informedness, markedness"
).split(", ")

CASES: list[tuple[str, list[Any]]] = [
    ("nn.Accuracy()", [SCORES, CLASSES]),
    ("nn.Accuracy()", [SCORES, ONE_HOT]),
    ("nn.Accuracy()", [PIXELS, PIXEL_CLASSES]),
    ("nn.Accuracy('multilabel')", [BITS, OTHER_BITS]),
    ("nn.Accuracy('multilabel')", [MASKS, OTHER_MASKS]),
    ("nn.Precision()", [SCORES, CLASSES]),
    ("nn.Precision('multilabel')", [BITS, OTHER_BITS]),
    ("nn.Recall()", [SCORES, ONE_HOT]),
    ("nn.Recall('multilabel')", [BITS, OTHER_BITS]),
    ("nn.F1()", [SCORES, CLASSES]),
    ("nn.Fbeta(0.5)", [SCORES, CLASSES]),
    ("nn.Top1CategoricalAccuracy()", [SCORES, CLASSES]),
    ("nn.TopKCategoricalAccuracy(3)", [SCORES, ONE_HOT]),
    ("nn.MAE()", [SCORES, SCORES[::-1]]),
    ("nn.MAE()", [SCORES[:, :1], SCORES[:, 1]]),
    ("nn.MSE()", [SCORES, SCORES[::-1]]),
    ("nn.Loss()", [LOSS]),
    ("nn.ConfusionMatrix(5)", [SCORES, CLASSES]),
    ("nn.ConfusionMatrix(5, 'target')", [SCORES, CLASSES]),
    ("nn.ConfusionMatrix(5, 'prediction')", [SCORES, CLASSES]),
    ("nn.ConfusionMatrix(5, 'all')", [SCORES, CLASSES]),
    ("nn.ConfusionMatrix(2)", [ONE_SCORE, ONE_CLASS]),
    ("nn.Dice()", [ONE_SCORE, ONE_CLASS.astype(np.float32)]),
    ("nn.CosineSimilarity()", [SCORES]),
    ("nn.CosineSimilarity('dot', 'mean', False)", [SCORES]),
    ("nn.Perplexity()", [SHARES, CLASSES]),
    ("nn.Perplexity(2)", [SHARES, CLASSES]),
    ("nn.ROC(pos_label=1)", [ONE_SCORE, ONE_CLASS]),
    *[(f"nn.ConfusionMatrixMetric(metric_name={r!r})", [BITS, OTHER_BITS]) for r in RATES],
    *[(f"nn.ConfusionMatrixMetric(False, {r!r}, True)", [MASKS, OTHER_MASKS]) for r in RATES],
    *[(f"nn.ConfusionMatrixMetric(True, {r!r}, True, 'sum')", [MASKS, OTHER_MASKS]) for r in RATES],
]


def run(ms: Any, expression: str, inputs: list[Any]) -> dict[str, np.ndarray]:
    """What a metric gives, its parts by number; the mean over classes too, where there is one."""
    metric = eval(expression, {"nn": ms.nn})
    metric.clear()
    for batch in (inputs, [np.asarray(x)[..., ::-1] if np.ndim(x) == 1 else x for x in inputs]):
        metric.update(*(ms.Tensor(np.array(x)) for x in batch))
    result = metric.eval()
    parts = result if isinstance(result, tuple) else (result,)
    found = {str(i): np.asarray(x, np.float64) for i, x in enumerate(parts)}
    # Not of 'multilabel', which in MindSpore is no number where a sample has no label.
    if expression.startswith(("nn.Precision()", "nn.Recall()", "nn.F")):
        found["mean"] = np.asarray(metric.eval(True), np.float64)
    return found
