"""Every op that takes indices or class numbers refuses those that are none: at the first call, at one
like others before it, and compiled; good ones go on working afterwards.

A call that came before runs what was kept of it, and a compiled one does not look at indices in Python,
so that each of the three finds the mistake in another place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as ms
import gradcell.numpy as mnp
from gradcell import Parameter, Tensor, nn, ops

X = Tensor(np.random.default_rng(3).uniform(0.1, 1, (4, 5)).astype(np.float32))
ROWS, PAIRS, CLASSES = [0, 1, 3], [[0, 1], [2, 3]], [0, 1, 2, 4]
EVERYWHERE = np.zeros((4, 5), int)


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def parameter(*shape: int) -> Parameter:
    return Parameter(Tensor(np.zeros(shape, np.float32)))


def put(key: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    def write(i: Tensor) -> Tensor:
        y = X * 1
        y[key(i)] = 1.0
        return y

    return write


#: The function of an index, a good index, bad ones.
CASES: dict[str, tuple[Callable[[Tensor], Any], Any, list[Any]]] = {
    "gather": (lambda i: ops.gather(X, i, 0), ROWS, [[0, 9, 3], [0, -9, 3]]),
    "gather axis 1": (lambda i: ops.gather(X, i, 1), ROWS, [[0, 9, 3], [0, -9, 3]]),
    "gather batch_dims": (lambda i: ops.gather(X, i, 1, 1), [[0], [1], [2], [3]], [[[0], [1], [2], [33]]]),
    "gather_d": (lambda i: ops.gather_d(X, 1, i), EVERYWHERE, [EVERYWHERE + 7, EVERYWHERE - 7]),
    "gather_nd": (lambda i: ops.gather_nd(X, i), PAIRS, [[[0, 1], [2, 33]], [[0, 1], [-22, 3]]]),
    "index_select": (lambda i: ops.index_select(X, 0, i), ROWS, [[0, 9, 3], [0, -9, 3]]),
    "take": (lambda i: ops.take(X, i, 0, "raise"), ROWS, [[0, 9, 3], [0, -9, 3]]),
    "mnp.take": (lambda i: mnp.take(X, i, 0, mode="raise"), ROWS, [[0, 9, 3]]),
    "mnp.take_along_axis": (lambda i: mnp.take_along_axis(X, i, 1), EVERYWHERE, [EVERYWHERE + 7]),
    "nll_loss": (lambda i: ops.nll_loss(X, i), CLASSES, [[0, 1, 2, 44], [0, 1, 2, -44]]),
    "cross_entropy": (lambda i: ops.cross_entropy(X, i), CLASSES, [[0, 1, 2, 44], [0, 1, 2, -44]]),
    "cross_entropy, smooth": (
        lambda i: ops.cross_entropy(X, i, label_smoothing=0.1), CLASSES, [[0, 1, 2, 44]],
    ),
    "SoftmaxCrossEntropyWithLogits": (
        lambda i: nn.SoftmaxCrossEntropyWithLogits(sparse=True)(X, i), CLASSES, [[0, 1, 2, 44]],
    ),
    "multi_margin_loss": (lambda i: ops.multi_margin_loss(X, i), CLASSES, [[0, 1, 2, 44]]),
    "multilabel_margin_loss": (
        lambda i: ops.multilabel_margin_loss(X, i), EVERYWHERE - 1, [EVERYWHERE + 9],
    ),
    "scatter_nd": (lambda i: ops.scatter_nd(i, ones(2), (4, 5)), PAIRS, [[[0, 1], [2, 33]]]),
    "tensor_scatter_add": (lambda i: ops.tensor_scatter_add(X, i, ones(2)), PAIRS, [[[0, 1], [2, 33]]]),
    "tensor_scatter_update": (
        lambda i: ops.tensor_scatter_update(X, i, ones(2)), PAIRS, [[[0, 1], [2, 33]]],
    ),
    "tensor_scatter_elements": (
        lambda i: ops.tensor_scatter_elements(X, i, ones(4, 5), 1, "add"), EVERYWHERE, [EVERYWHERE + 7],
    ),
    "scatter": (lambda i: ops.scatter(X, 1, i, ones(4, 5)), EVERYWHERE, [EVERYWHERE + 7]),
    "index_add": (lambda i: ops.index_add(X, i, ones(3, 5), 0), ROWS, [[0, 9, 3], [0, -9, 3]]),
    "index_fill": (lambda i: ops.index_fill(X, 0, i, 1.0), ROWS, [[0, 9, 3], [0, -9, 3]]),
    "unsorted_segment_sum": (lambda i: ops.unsorted_segment_sum(ones(3, 2), i, 4), ROWS, [[0, 9, 3]]),
    "unsorted_segment_max": (lambda i: ops.unsorted_segment_max(ones(3, 2), i, 4), ROWS, [[0, 9, 3]]),
    "x[i]": (lambda i: X[i], ROWS, [[0, 9, 3], [0, -9, 3]]),
    "x[:, i]": (lambda i: X[:, i], ROWS, [[0, 9, 3], [0, -9, 3]]),
    "x[i, i]": (lambda i: X[i, i], ROWS, [[0, 9, 3], [0, -9, 3]]),
    "x[i] = 1": (put(lambda i: i), ROWS, [[0, 9, 3], [0, -9, 3]]),
    "x[:, i] = 1": (put(lambda i: (slice(None), i)), ROWS, [[0, 9, 3], [0, -9, 3]]),
    "Embedding": (nn.Embedding(4, 3), ROWS, [[0, 9, 3], [0, -9, 3]]),
    "scatter_update": (lambda i: ops.scatter_update(parameter(4, 2), i, ones(3, 2)), ROWS, [[0, 9, 3]]),
    "scatter_add": (lambda i: ops.scatter_add(parameter(4, 2), i, ones(3, 2) * 0), ROWS, [[0, 9, 3]]),
    "scatter_max": (lambda i: ops.scatter_max(parameter(4, 2), i, ones(3, 2)), ROWS, [[0, 9, 3]]),
    "scatter_nd_update": (
        lambda i: ops.scatter_nd_update(parameter(4, 5), i, ones(2)), PAIRS, [[[0, 1], [2, 33]]],
    ),
    "select_scatter": (lambda i: ops.select_scatter(X, ones(5), 0, int(i)), 1, [9, -5]),
}  # fmt: skip


def value(result: Any) -> np.ndarray:
    return np.asarray(result.asnumpy())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    function, good, bad = CASES[name]
    wanted = None
    for fn in (function, ms.jit(lambda i: function(i))):
        for wrong in bad:
            with pytest.raises((IndexError, ValueError)):
                value(fn(Tensor(wrong)))
            for _ in range(3):
                found = value(fn(Tensor(good)))
                wanted = found if wanted is None else wanted
                np.testing.assert_allclose(found, wanted, rtol=1e-6)
            with pytest.raises((IndexError, ValueError)):
                value(fn(Tensor(wrong)))
