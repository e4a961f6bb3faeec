"""What is dear is computed once: the kinds of cost in csrc/plan/costs.h, as plans show them."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

X = Tensor(np.random.default_rng(0).uniform(0.5, 2, (1000, 1000)).astype(np.float32))


@pytest.mark.parametrize(
    ("name", "op", "times"),
    [
        ("pow", lambda x: x**2.3, 1),
        ("mod", lambda x: x % 0.7, 1),
        ("fmod", lambda x: ops.fmod(x, 0.7), 1),
        ("sin", ops.sin, 1),
        ("neg", lambda x: -x, 2),
    ],
)
def test_what_is_stored_and_what_is_computed_again(name, op, times) -> None:
    """A column's share of its sum: the sums are one pass over rows, the quotients another."""

    def share(x: Tensor) -> Tensor:
        y = op(x)
        return y / y.sum(0)

    text = gc.plan_text(share, X)
    assert text.count(f"= {name} ") == times, text
    expected = op(X).asnumpy()
    np.testing.assert_allclose(share(X).asnumpy(), expected / expected.sum(0), rtol=1e-4)
