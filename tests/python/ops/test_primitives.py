"""Primitives: how they print, their arguments."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from numpy_functions import softmax
from ops_checks import close, ramp

import gradcell as ms
from gradcell import ops
from gradcell.ops.primitives import table


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


def defined() -> dict[str, Any]:
    """The primitives that are rows."""
    found = {n: getattr(ops, n) for n in ops.__all__ if n[0].isupper()}
    found |= {n: getattr(table, n) for n in table.ROWS}
    return {n: cls for n, cls in found.items() if hasattr(vars(cls).get("__call__"), "inputs")}


def test_what_a_primitive_has_is_its_functions() -> None:
    """Each input is the parameter of its place, each attribute and constant another one, and what is
    left has a default."""
    classes = defined()
    assert len(classes) > 320
    for name, cls in classes.items():
        call = cls.__call__
        parameters = inspect.signature(call.function).parameters
        any_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        placed = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert placed[: len(call.inputs)] == list(call.inputs.values()), name
        given = {*call.others.values(), *call.fixed}
        assert any_name or given <= {*parameters}, name
        assert not given & {*call.inputs.values()}, name
        assert call.others.keys() <= cls.__signature__.parameters.keys(), name
        for parameter in parameters.values():
            known = parameter.name in given or parameter.name in call.inputs.values()
            star = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            assert known or star or parameter.default is not parameter.empty, (name, parameter)


def test_primitives_by_place_name_and_default_are_the_same() -> None:
    """Each, made of its defaults as they are, all of them in order, and all of them by name."""
    for name, cls in defined().items():
        attributes = cls.__signature__.parameters
        required = {n: 1 for n, p in attributes.items() if p.default is p.empty}
        values = {n: required.get(n, p.default) for n, p in attributes.items()}
        made = [cls(**required), cls(*values.values()), cls(**values)]
        assert made[0].attributes == made[1].attributes == made[2].attributes, name
        assert [*map(str, made)] == [str(made[0])] * 3
        with pytest.raises(TypeError, match=rf"ops\.{name}\(.*no_such.*test_primitives.py:\d+"):
            cls(**required, no_such=1)
        if call_takes_no_more(cls):
            many = [None] * (len(cls.__call__.inputs) + 1)
            with pytest.raises(TypeError, match=rf"ops\.{name}\(.*too many"):
                made[0](*many)
        with pytest.raises(TypeError, match=rf"ops\.{name}: there is no input 'no_such'"):
            made[0](no_such=1)


def call_takes_no_more(cls: Any) -> bool:
    function = inspect.signature(cls.__call__.function).parameters.values()
    return not any(p.kind is p.VAR_POSITIONAL for p in function)


def test_a_default_that_is_an_axis_is_a_number() -> None:
    """What ops keep of a call is found again for such a number alone."""
    assert [type(ops.Softmax().attributes["axis"]), type(ops.L2Normalize().attributes["axis"])] == [
        int
    ] * 2
