"""Sizes that must agree: another size is refused, where it is not spread as NumPy spreads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import agreement
import edges
import numpy as np
import pytest
from function_cases import CASES

import gradcell as gc
from gradcell import Parameter, Tensor, mint, nn, ops


def zeros(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, np.float32))


def parameters(count: int) -> list[Parameter]:
    return [Parameter(zeros(2, 3), name=f"p{i}") for i in range(count)]


IMAGES, BOXES, INDICES = zeros(1, 5, 5, 2), zeros(2, 4), Tensor([0, 2], gc.int32)
#: What was spread without a word, and is refused.
REFUSED: dict[str, Callable[[], Any]] = {
    "LayerNorm, one feature": lambda: ops.LayerNorm(1, 1)(zeros(4, 1), zeros(2), zeros(2)),
    "LayerNorm, beta": lambda: ops.LayerNorm(1, 1)(zeros(4, 2), zeros(2), zeros(1)),
    "layer_norm": lambda: ops.layer_norm(zeros(4, 1), (1,), zeros(2), None),
    "layer_norm of mint": lambda: mint.nn.functional.layer_norm(zeros(4, 2), (2,), None, zeros(1)),
    "cdist": lambda: ops.cdist(zeros(4, 3), zeros(5, 1)),
    "cdist of mint": lambda: mint.cdist(zeros(4, 1), zeros(5, 3)),
    "dense, bias": lambda: ops.dense(zeros(3, 4), zeros(1, 4), zeros(5)),
    "linear, bias": lambda: mint.nn.functional.linear(zeros(3, 4), zeros(5, 4), zeros(1)),
    "conv2d, bias": lambda: mint.nn.functional.conv2d(
        zeros(1, 2, 5, 5), zeros(1, 2, 3, 3), zeros(3)
    ),
    "conv_transpose2d, bias": lambda: mint.nn.functional.conv_transpose2d(
        zeros(1, 2, 5, 5), zeros(2, 3, 3, 3), zeros(1)
    ),
    "index_add": lambda: ops.index_add(zeros(3, 4), INDICES, zeros(2, 1), 0),
    "index_add, slices": lambda: ops.index_add(zeros(3, 4), INDICES, zeros(1, 4), 0),
    "inplace_index_add": lambda: ops.inplace_index_add(parameters(1)[0], INDICES, zeros(2, 1), 0),
    "crop_and_resize": lambda: ops.crop_and_resize(IMAGES, BOXES, [0], (2, 2)),
    "ApplyMomentum": lambda: ops.ApplyMomentum()(*parameters(2), 0.1, zeros(1, 3), 0.9),
    "Adam": lambda: ops.Adam()(*parameters(3), 0.9, 0.99, 0.1, 0.9, 0.99, 1e-8, zeros(2, 1)),
    "AdamWeightDecay": lambda: ops.AdamWeightDecay()(
        *parameters(3), 0.1, 0.9, 0.99, 1e-8, 0.1, zeros(1, 3)
    ),
    "ApplyAdamWithAmsgrad": lambda: ops.ApplyAdamWithAmsgrad()(
        *parameters(4), *map(Tensor, (0.9, 0.9, 0.1)), zeros(1, 3)
    ),
    "ApplyFtrl": lambda: ops.ApplyFtrl()(*parameters(3), zeros(1, 3), 0.1, 0.1, 0.1, -0.5),
    "ApplyAdadelta": lambda: ops.ApplyAdadelta()(*parameters(3), 0.1, 0.9, 1e-6, zeros(1, 3)),
    **{
        f"nn.{name}": lambda name=name: getattr(nn, name)(parameters(1), 0.1)([zeros(1, 3)])
        for name in "Adam SGD RMSProp Adagrad AdaMax ASGD Rprop AdamWeightDecay LazyAdam Lamb".split()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"shape|boxes"):
        REFUSED[name]()


# Beside NumPy -------------------------------------------------------------------------------------


def altered(name: str) -> Iterator[tuple[str, list[np.ndarray]]]:
    """A case's arrays with one size of one of them changed."""
    rng = np.random.default_rng(0)
    arrays = [agreement.array(i, rng) for i in CASES[name][1]]
    for i, a in enumerate(arrays):
        for axis, n in enumerate(a.shape):
            for size in {n + 1, 1} - {n}:
                shape = [size if k == axis else m for k, m in enumerate(a.shape)]
                other = np.resize(a, shape)
                yield f"{i}.{axis}: {size}", [other if k == i else b for k, b in enumerate(arrays)]


def outcome(run: Callable[[], Any]) -> list[np.ndarray] | None:
    """What it gives; None if it refuses."""
    try:
        return edges.arrays_of(run())
    except (ValueError, IndexError, TypeError, RuntimeError):
        return None


NUMPY = [
    name
    for name, (expression, inputs) in CASES.items()
    if "ms.numpy." in expression
    and len(inputs) > 1
    and all(isinstance(i, str) for i in inputs)
    and not re.search(r"\b(ops|nn|mint)\.", expression)
]


@pytest.mark.parametrize("name", NUMPY)
def test_as_in_numpy(name: str) -> None:
    """Numbers where NumPy has numbers, the same ones, and refusals where it refuses."""
    expression = CASES[name][0]
    call = eval(expression, {"ms": edges._Reference, "np": np, "Tensor": lambda v, *_: np.array(v)})
    cell = agreement.made(gc, expression)
    for where, arrays in altered(name):
        wanted = outcome(lambda arrays=arrays: call(*[a.copy() for a in arrays]))
        found = outcome(lambda arrays=arrays: cell(*map(Tensor, arrays)))
        assert (found is None) == (wanted is None), (where, found, wanted)
        if found is not None and wanted is not None:
            assert [a.shape for a in found] == [np.shape(a) for a in wanted], where
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6, err_msg=where)
