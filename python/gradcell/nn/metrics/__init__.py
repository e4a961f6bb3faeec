"""Metrics over the batches of an evaluation. Arrays are read on the host."""

from __future__ import annotations

from typing import Any

from gradcell.base import errors as _errors
from gradcell.nn.metrics import classification, confusion, values
from gradcell.nn.metrics.classification import *  # noqa: F403
from gradcell.nn.metrics.confusion import *  # noqa: F403
from gradcell.nn.metrics.metric import Metric, rearrange_inputs
from gradcell.nn.metrics.values import *  # noqa: F403

_BY_NAME: dict[str, Any] = {
    "F1": classification.F1, "acc": classification.Accuracy, "accuracy": classification.Accuracy,
    "auc": confusion.auc, "bleu_score": values.BleuScore,
    "confusion_matrix": confusion.ConfusionMatrix,
    "confusion_matrix_metric": confusion.ConfusionMatrixMetric,
    "cosine_similarity": values.CosineSimilarity, "dice": values.Dice, "loss": values.Loss,
    "mae": values.MAE, "mse": values.MSE, "occlusion_sensitivity": values.OcclusionSensitivity,
    "perplexity": values.Perplexity, "precision": classification.Precision,
    "recall": classification.Recall, "roc": confusion.ROC,
    "top_1_accuracy": classification.Top1CategoricalAccuracy,
    "top_5_accuracy": classification.Top5CategoricalAccuracy,
    "topk": classification.TopKCategoricalAccuracy,
}  # fmt: skip


def names() -> list[str]:
    """The names of metrics that get_metric_fn knows."""
    return list(_BY_NAME)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Any:
    """Makes a metric by its name.

    name: such as 'accuracy' or 'mse'. args, kwargs: arguments of the metric's class. Raises
    KeyError for an unknown one.
    """
    if name not in _BY_NAME:
        _errors.bad_key(f"{name!r} is not a metric; the metrics are {', '.join(_BY_NAME)}")
    return _BY_NAME[name](*args, **kwargs)


def get_metrics(metrics: Any) -> dict[str, Metric]:
    """Metrics by name, from a set or list of names or a dict from name to Metric.

    metrics: a set or list of names, or a dict from name to Metric; or None.
    """
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                _errors.bad_type(
                    f"Model: metrics must map names to Metrics, got {type(metric).__name__} for {name!r}"
                )
        return dict(metrics)
    if isinstance(metrics, (set, list, tuple)):
        ordered = sorted(metrics) if isinstance(metrics, set) else metrics
        return {name: get_metric_fn(name) for name in ordered}
    _errors.bad_type(
        f"Model: metrics must be a dict or a set of names, got {type(metrics).__name__}"
    )


__all__ = [
    *classification.__all__, *confusion.__all__, *values.__all__, "Metric", "get_metric_fn",
    "get_metrics", "names", "rearrange_inputs",
]  # fmt: skip
