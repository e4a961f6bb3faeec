"""Routines between kernels on a GPU: computed on the host, what goes in and comes out is on the device."""

from __future__ import annotations

import pytest
from made_up_gpu import Process

PROGRAM = """
import numpy as np
import gradcell as ms
from gradcell import Tensor, ops

rng = np.random.default_rng(0)
a = rng.standard_normal((3, 4, 4)).astype("f") + 4 * np.eye(4, dtype="f")
b, x = rng.standard_normal((3, 4, 2)).astype("f"), rng.standard_normal((5, 9)).astype("f")


def linear(a, b):
    y = ops.matrix_solve(a * 2.0, ops.sin(b))
    turned = a.swapaxes(-1, -2)
    return (y * y).sum() + ops.logdet(a @ turned).sum() + ops.eigh(a + turned)[0].sum()


def ordered(x):
    return (ops.sort(x * 2.0)[0] * ops.arange(9.0)).sum() + (ops.topk(ops.exp(x), 3)[0] ** 2).sum()


def all_of_it():
    given = Tensor(a), Tensor(b)
    return [
        linear(*given), *ms.grad(linear, (0, 1))(*given), ordered(Tensor(x)), ms.grad(ordered)(Tensor(x)),
        ms.jit(ops.argsort)(Tensor(x)), ms.vmap(ops.inverse)(given[0]), ms.hessian(ordered)(Tensor(x)),
        ops.unsorted_segment_max(Tensor(x), Tensor([0, 1, 0, 3, 1]), 4),
        ops.gcd(Tensor([12, 18]), Tensor([8, 27])),
    ]


on_host = [t.asnumpy() for t in all_of_it()]
ms.set_context(device_target="GPU")
for _ in range(2):  # the second time what was captured runs
    for got, want in zip(all_of_it(), on_host, strict=True):
        np.testing.assert_allclose(got.asnumpy(), want, rtol=3e-5, atol=3e-5)

step = ms.jit(lambda a: ops.inverse(ops.inverse(a) + 1.0).sum())
first = [float(step(Tensor(a * s))) for s in (1.0, 2.0, 3.0, 1.0)]
assert first[0] == first[3] != first[1], first
try:
    ops.inverse(Tensor(np.zeros((2, 2), "f")))
except ValueError as error:
    assert "Singular matrix" in str(error), error
else:
    raise AssertionError("no error")
"""


@pytest.mark.one_in(6)
def test_routines_between_kernels(process: Process) -> None:
    process.good(PROGRAM)
