"""Metrics of values, vectors, masks and sequences of words."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, fail, fields
from gradcell.nn.cell import Cell
from gradcell.nn.metrics.metric import Mean, Metric, array, none_seen, rearrange_inputs, same_shape

__all__ = [
    "MAE", "MSE", "BleuScore", "CosineSimilarity", "Dice", "Loss", "OcclusionSensitivity",
    "Perplexity",
]  # fmt: skip


def _differences(owner: str, y_pred: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, int]:
    if y.size == y_pred.size and y.shape[:1] == y_pred.shape[:1]:
        y = y.reshape(y_pred.shape)  # [N] against [N, 1]
    same_shape(owner, y_pred, y)
    return y_pred.astype(np.float64) - y.astype(np.float64), len(y) if y.ndim else 1


class MSE(Mean):
    """The sum of squared differences, divided by the number of samples (rows of the first axis)."""

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        difference, count = _differences("MSE", y_pred, y)
        self._add(float((difference**2).sum()), count)


class MAE(Mean):
    """The sum of absolute differences, divided by the number of samples (rows of the first axis)."""

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        difference, count = _differences("MAE", y_pred, y)
        self._add(float(np.abs(difference).sum()), count)


class Loss(Mean):
    """The mean of the losses of all batches."""

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Adds the loss of a batch."""
        if len(inputs) != 1:
            bad_value(f"Loss.update: expected the loss, got {len(inputs)} values")
        self._add(float(array(inputs[0]).astype(np.float64).mean()), 1)


@fields.declared
class Dice(Mean):
    """2 <p, y> / (<p, p> + <y, y> + smooth) of each batch, summed over batches and divided by the
    number of samples, as in MindSpore. Inputs of one shape. Raises ValueError unless smooth > 0.
    """

    smooth: float = fields.number(above=0, default=1e-5)

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        same_shape("Dice", y_pred, y)
        p, t = y_pred.ravel().astype(np.float64), y.ravel().astype(np.float64)
        self._add(float(2 * (p @ t) / (p @ p + t @ t + self.smooth)), len(y))


@fields.declared
class CosineSimilarity(Metric):
    """The similarity of each row to each other one: cosines, or with similarity 'dot' products.

    reduction: 'none', or 'sum' or 'mean' over the last axis. zero_diagonal: no row is compared with
    itself. Only the last batch counts, as in MindSpore. Input [N, features]. similarity: 'cosine'
    or 'dot'.
    """

    similarity: str = fields.one_of("dot", "cosine", default="cosine")
    reduction: str = fields.one_of("none", "sum", "mean", default="none")
    zero_diagonal: bool = fields.boolean(default=True)

    def _build(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all batches."""
        self.sqr_mtx_res: Any = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Adds a batch of rows."""
        rows = array(inputs[0])
        if rows.ndim != 2:
            bad_value(f"CosineSimilarity: expected [N, features], got shape {rows.shape}")
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self.sqr_mtx_res = rows @ rows.T

    def eval(self) -> np.ndarray:
        """The similarities. Raises RuntimeError if there was no batch."""
        if self.sqr_mtx_res is None:
            raise none_seen("CosineSimilarity")
        found = np.array(self.sqr_mtx_res)
        if self.zero_diagonal:
            np.fill_diagonal(found, 0)
        if self.reduction == "none":
            return found
        return found.mean(axis=-1) if self.reduction == "mean" else found.sum(axis=-1)  # type: ignore[no-any-return]


@fields.declared
class OcclusionSensitivity(Metric):
    """The fall of a network's score of a class if a part of the image is hidden: for each place,
    the score of the whole image less that with `pad_val` within `margin` of the place.

    margin: a number, or one for each axis. n_batch: images that the network gets at a time. b_box:
    [first, last, ...] of each axis but the batch's, a negative number for the edge; only places
    inside count. pad_val: the value that hides.
    """

    pad_val: float = fields.anything(default=0.0)
    margin: int | list[int] = fields.anything(default=2)
    n_batch: int = fields.integer(1, default=128)
    b_box: list[int] | None = fields.anything(default=None)

    def _build(self) -> None:
        owner = "OcclusionSensitivity"
        for name, value, kind in (
            ("pad_val", self.pad_val, float),
            ("margin", self.margin, (int, list)),
            ("b_box", self.b_box, (list, type(None))),
        ):
            if not isinstance(value, kind):
                bad_type(f"{owner}: {name} cannot be {value!r}")
        self.clear()

    def clear(self) -> None:
        """Forgets the image."""
        self._found: np.ndarray | None = None

    def _box(self, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and last places. Raises ValueError for a box that is not in the image."""
        if self.b_box is None:
            return np.zeros_like(shape), shape - 1
        if len(self.b_box) != 2 * len(shape):
            bad_value(
                f"OcclusionSensitivity: b_box needs {2 * len(shape)} numbers, got {self.b_box}"
            )
        first, last = np.array(self.b_box[::2]), np.array(self.b_box[1::2])
        first, last = np.where(first < 0, 0, first), np.where(last < 0, shape - 1, last)
        if (last >= shape).any() or (first > last).any():
            bad_value(
                f"OcclusionSensitivity: b_box {self.b_box} is not inside an image of shape {tuple(shape)}"
            )
        return first, last

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Takes in (a Cell that gives scores [N, classes], one image [1, ...], the number of its class)."""
        if len(inputs) != 3 or not isinstance(inputs[0], Cell):
            bad_value("OcclusionSensitivity.update: expected a Cell, an image and a label")
        model, image, label = inputs[0], array(inputs[1]), array(inputs[2])
        if image.shape[0] != 1 or label.size != 1:
            fail(
                f"OcclusionSensitivity: expected one image and one label, got {image.shape[0]} and "
                f"{label.size}"
            )
        shape, margin = np.array(image.shape[1:]), np.asarray(self.margin)
        first, last = self._box(shape)
        kind = int(label.item())
        places = np.stack(
            np.unravel_index(np.arange(np.prod(last - first + 1)), last - first + 1), -1
        )
        hidden = []
        for place in places + first:
            masked = image.copy()
            low, high = np.maximum(place - margin, 0), np.minimum(place + margin, shape)
            masked[0][tuple(slice(i, j) for i, j in zip(low, high, strict=True))] = self.pad_val
            hidden.append(masked)
        scores = [
            model(Tensor(np.concatenate(hidden[i : i + self.n_batch]))).asnumpy()[:, kind]
            for i in range(0, len(hidden), self.n_batch)
        ]
        whole = model(Tensor(image)).asnumpy()[0, kind]
        self._found = whole - np.concatenate(scores).reshape(last - first + 1)

    def eval(self) -> np.ndarray:
        """The differences. Raises RuntimeError if there was no image."""
        if self._found is None:
            raise none_seen("OcclusionSensitivity")
        return np.squeeze(self._found)


@fields.declared
class Perplexity(Mean):
    """exp of the mean of -log p(label), p at least 1e-10. ignore_label: a label that does not count.

    Predictions [..., classes] of probabilities, labels [...]. Raises ValueError for incompatible
    shapes.
    """

    ignore_label: int | None = fields.integer(default=None)

    def _take(self, y_pred: np.ndarray, y: np.ndarray) -> None:
        if y_pred.ndim == 0 or y.size * y_pred.shape[-1] != y_pred.size:
            bad_value(
                f"Perplexity: predictions of shape {y_pred.shape} and labels of shape {y.shape}"
            )
        rows, labels = y_pred.reshape(-1, y_pred.shape[-1]), y.reshape(-1).astype(np.int64)
        kept = (
            np.ones(len(labels), bool) if self.ignore_label is None else labels != self.ignore_label
        )
        rows, labels = rows[kept], labels[kept]
        if labels.size and not (0 <= labels.min() and labels.max() < rows.shape[1]):
            bad_value(f"Perplexity: a label is out of [0, {rows.shape[1]})")
        picked = rows[np.arange(len(labels)), labels].astype(np.float64)
        self._add(float(-np.log(np.maximum(picked, 1e-10)).sum()), len(labels))

    def eval(self) -> float:
        """The perplexity. Raises RuntimeError if there were no batches."""
        return math.exp(super().eval())


def _grams(words: Any, longest: int) -> Counter[tuple[Any, ...]]:
    return Counter(
        tuple(words[j : j + n]) for n in range(1, longest + 1) for j in range(len(words) - n + 1)
    )


@fields.declared
class BleuScore(Metric):
    """The likeness of sequences of words to references.

    Papineni et al., BLEU (2002), section 2.3, over all sequences at once. n_gram: the longest
    sequences that are compared, 1 to 4. smooth: one is added to every count. Called with candidates
    (a list of lists of words) and references (for each candidate, a list of such lists).
    """

    n_gram: int = fields.integer(1, default=4)
    smooth: bool = fields.boolean(default=False)

    def _build(self) -> None:
        if self.n_gram > 4:
            bad_value(f"BleuScore: n_gram must be from 1 to 4, but got {self.n_gram}")
        self.clear()

    def clear(self) -> None:
        """Forgets all batches."""
        self._found, self._of = np.zeros(self.n_gram), np.zeros(self.n_gram)
        self._candidates = self._references = 0
        self._is_update = False

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Adds a batch of (candidates, references)."""
        if len(inputs) != 2 or len(inputs[0]) != len(inputs[1]):
            bad_value("BleuScore.update: expected candidates and as many lists of references")
        for words, references in zip(*inputs, strict=True):
            self._candidates += len(words)
            self._references += min((len(r) for r in references), key=lambda n: abs(len(words) - n))
            grams, known = _grams(words, self.n_gram), Counter[tuple[Any, ...]]()
            for reference in references:
                known |= _grams(reference, self.n_gram)
            for gram, count in (grams & known).items():
                self._found[len(gram) - 1] += count
            for gram, count in grams.items():
                self._of[len(gram) - 1] += count
        self._is_update = True

    def eval(self) -> np.ndarray:
        """The score. Raises RuntimeError if there were no batches."""
        if not self._is_update:
            raise none_seen("BleuScore")
        if self._found.min() == 0:
            return np.array(0.0)
        more = 1 if self.smooth else 0
        mean = np.log((self._found + more) / (self._of + more)).mean()
        if self._candidates > self._references:
            return np.exp(mean)  # type: ignore[no-any-return]
        return np.exp(mean + 1 - self._references / self._candidates)  # type: ignore[no-any-return]
