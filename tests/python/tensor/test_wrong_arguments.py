"""Arguments of a kind that an op does not take: the error names the op, the argument and the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, nn, ops

X = Tensor(np.ones((2, 3), np.float32))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: X.amin(0, {}), TypeError, "ReduceMin: keep_dims must be a bool, got {}"),
        (
            lambda: ms.mint.amin(X, 0, []),
            TypeError,
            r"ReduceMin: keep_dims must be a bool, got \[\]",
        ),
        (
            lambda: ops.argsort(X, 1, X),
            TypeError,
            r"Order: descending must be a bool, got a Tensor",
        ),
        (
            lambda: nn.ReLU()(x=X, input_data=X),
            TypeError,
            r"construct\(\) got the same input twice, as 'x' and as 'input_data': give one",
        ),
        (lambda: ms.numpy.ix_(X), ValueError, r"ix_: vectors are needed, got shapes \[\[2, 3\]\]"),
    ],
)
def test_names_the_argument(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=rf"{text}[^(]*\(.*test_wrong_arguments\.py:\d+\)"):
        call()
