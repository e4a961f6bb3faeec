"""CTC with its targets given as a sparse matrix, as MindSpore's older primitive takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, unsupported
from gradcell.derivatives.transform import value_and_grad
from gradcell.ops.elements import activations
from gradcell.ops.networks import ctc


def sparse_ctc_loss(
    x: Any, labels_indices: Any, labels_values: Any, sequence_length: Any, *,
    preprocess_collapse_repeated: bool, ctc_merge_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(the loss of each sequence [N], its gradient by x): ops.ctc_loss of the log softmax of scores x [T, N,
    C], whose last class is the blank.

    labels_indices [n, 2], labels_values [n]: the targets as a sparse matrix, whose numbers are asked for;
    sequence_length [N]. Raises NotImplementedError for the first flag set or the second not set.
    """
    if preprocess_collapse_repeated or not ctc_merge_repeated:
        unsupported(
            "ops.CTCLoss: preprocess_collapse_repeated and ctc_merge_repeated=False are not supported; "
            "leave them as they are by default"
        )
    scores = arguments.floating(arguments.of_rank(x, (3,), "CTCLoss"))
    _, n, classes = scores.shape
    places = arguments.tensor(labels_indices, "CTCLoss", "labels_indices").asnumpy()
    values = arguments.tensor(labels_values, "CTCLoss", "labels_values").asnumpy()
    counts = np.bincount(places[:, 0], minlength=n)
    targets = np.zeros((n, max(int(counts.max(initial=0)), 1)), np.int64)
    targets[places[:, 0], places[:, 1]] = values

    def total(s: Tensor) -> tuple[Tensor, Tensor]:
        logs = activations.log_softmax(s, 2)
        losses, _ = ctc.ctc_loss(
            logs, Tensor(targets), sequence_length, Tensor(counts), classes - 1, "none",
            ignore_longer_outputs_than_inputs,
        )  # fmt: skip
        return _ops.reduce_sum(losses), losses

    (_, losses), gradient = value_and_grad(total, has_aux=True)(scores)
    return losses, gradient
