"""Primitives: how they print, their arguments."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_functions import softmax
from ops_checks import close, ramp

import gradcell as ms
from gradcell import ops


def test_printing_primitives() -> None:
    assert str(ops.MatMul()) == "Prim[MatMul]<transpose_a=False, transpose_b=False>"
    assert str(ops.Sin()) == "Prim[Sin]" and str(ops.Cast()) == "Prim[Cast]"
    assert str(ops.ReduceSum(True)) == "Prim[ReduceSum]<keep_dims=True, skip_mode=False>"
    assert str(ops.Split(0, 2)) == "Prim[Split]<axis=0, output_num=2>"
    assert str(ops.BroadcastTo((2,))) == "Prim[BroadcastTo]<shape=(2,)>"
    assert repr(ops.Gather()) == "Prim[Gather]<batch_dims=0>"


def test_primitive_arguments() -> None:
    x = ramp(2, 3)
    close(ops.MatMul(transpose_b=True)(x, x), x.asnumpy() @ x.asnumpy().T)
    close(ops.ReduceSum(keep_dims=True)(x, 1), [[3], [12]])
    close(ops.ReduceSum(skip_mode=True)(x, ()), x.asnumpy())
    close(
        ops.L2Normalize(1)(x),
        x.asnumpy() / np.linalg.norm(x.asnumpy(), axis=1, keepdims=True),
        1e-6,
    )
    close(ops.L2Loss()(x), 27.5)
    close(ops.CumSum(exclusive=True, reverse=True)(ramp(3), 0), [3, 2, 0])
    close(ops.AddN()([x, x]), 2 * x.asnumpy())
    assert ops.Shape()(x) == (2, 3) and ops.Rank()(x) == 2 and ops.Size()(x) == 6
    assert ops.DType()(x) == ms.float32 and ops.Depend()(x, None) is x
    close(ops.Softmax(0)(x), softmax(x.asnumpy(), 0), 1e-6)
    close(ops.GeLU()(x), ops.gelu(x, "tanh").asnumpy())
    close(ops.Fill()(ms.float32, (2,), 1.5), [1.5, 1.5])
    for bad in ({"transpose_a": 1}, {"transpose_c": True}):
        with pytest.raises(TypeError):
            ops.MatMul(**bad)
    with pytest.raises(TypeError, match="BroadcastTo"):
        ops.BroadcastTo()


def test_print_primitive(capsys: pytest.CaptureFixture[str]) -> None:
    x = ramp(2)
    assert ops.Print()(x) is x
    assert "Tensor(shape=[2], dtype=Float32" in capsys.readouterr().out


def test_composites_run_as_one_plan() -> None:
    from gradcell import _core

    x = ramp(4, 5)
    ops.softmax(x)
    before = _core.plan_cache_info()["runs"]
    ops.softmax(x)
    assert _core.plan_cache_info()["runs"] - before == 1
