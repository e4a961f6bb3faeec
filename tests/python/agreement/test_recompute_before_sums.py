"""Blocks computed again whose own value nothing needs: before a sum or a mean, the derivative reads at
most the block's inputs. Every structured case and every layer of the tables is such a block once."""

from __future__ import annotations

from typing import Any

import agreement
import layer_cases
import numpy as np
import pytest
from structured_rows import CASES, Case

import gradcell as ms
from gradcell import Tensor, ops
from gradcell.base import tree

DIFFERENTIABLE = [c for c in CASES if c.order > 0 and c.shapes and "big" not in c.label]
CELLS = {f"{e} of {i}": (e, i) for e, i in layer_cases.LAYERS if e.startswith("nn.")}


def added(outputs: Any, mean: bool = False) -> Any:
    """The sum of all floating outputs, or of their means."""
    floats = [ops.real(y) if y.dtype in (ms.complex64, ms.complex128) else y
              for y in agreement.flat(outputs) if agreement.is_float(ms, y)]  # fmt: skip
    return sum((y.mean() if mean else y.sum()) for y in floats) if floats else None


@pytest.mark.one_in(32)
@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda c: f"{c.op}-{c.label}")
def test_structured_ops_before_a_sum(case: Case) -> None:
    arrays = [Tensor(x) for x in case.operands()]
    every = tuple(range(len(arrays)))
    plain = ms.grad(lambda *xs: added(case.run(*xs)), every)
    again = ms.grad(lambda *xs: added(ms.recompute(case.run, *xs)), every)
    for _ in range(2):  # the second time the plan is there
        found = [tree.leaves(f(*arrays)) for f in (again, plain)]
        for got, want in zip(*found, strict=True):
            np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.one_in(32)
@pytest.mark.parametrize("name", CELLS)
def test_cells_before_a_sum(name: str) -> None:
    expression, inputs = CELLS[name]
    found = []
    for again in (False, True):
        ms.set_seed(1)
        rng = np.random.default_rng(3)
        cell = agreement.made(ms, expression)
        agreement.set_parameters(ms, cell, rng)
        given = agreement.tensors(ms, inputs, rng)
        if again:
            cell.recompute()
        if added(cell(*given)) is None:
            return  # integers
        at = tuple(k for k, x in enumerate(given) if agreement.is_float(ms, x))
        params = cell.trainable_params()
        if not at and not params:
            return  # nothing to differentiate by
        for mean in (False, True):
            f = ms.grad(lambda *xs, c=cell, m=mean: added(c(*xs), m), at or None, params or None)
            found.append([np.asarray(g.asnumpy()) for g in tree.leaves(f(*given))])
    for plain, again in zip(found[:2], found[2:], strict=True):
        for got, want in zip(again, plain, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_what_is_waited_for_in_vain_is_not_computed() -> None:
    """A plan that needs the gradient alone does not run the block forward."""
    rng = np.random.default_rng(0)
    x, w = (Tensor(rng.normal(size=s).astype(np.float32)) for s in [(2, 3, 8, 8), (4, 3, 3, 3)])
    again = ms.grad(lambda x: ms.recompute(ops.conv2d, x, w).sum())
    assert ms.plan_text(again, x).count("call ") == ms.plan_text(
        ms.grad(lambda x: ops.conv2d(x, w).sum()), x
    ).count("call ")
