"""gradcell.debug: why functions are traced."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, debug, nn, ops


def reasons(seen):
    return [t.why for t in seen]


def test_why_a_function_is_traced_again():
    @gc.jit
    def f(x, n=1):
        return x * n if x.sum() > 0 else -x

    x = Tensor([1.0, 2.0])
    with debug.traces() as seen:
        f(x), f(x)
        f(-x)
        f(Tensor([[1.0]]))
        f(x, 3), f(x, 4)
        f(x, n=4)
        f(Parameter(x), n=4)
        gc.set_default_dtype(gc.float64)
        try:
            f(x, n=4)
        finally:
            gc.set_default_dtype(gc.float32)
    assert reasons(seen) == [
        "the first call",
        "an answer that has not come before",
        "argument 0: float32[1, 1], before float32[2]",
        "another number of arguments",
        "argument 1: 4, before 3",
        "another number of arguments",
        "argument 0: a Parameter, before float32[2]",
        "a setting has changed, as set_context changes them",
    ]
    assert [t.answers for t in seen[:2]] == [[True], [False]]
    assert all(t.function.endswith(".f") and t.seconds > 0 for t in seen)
    here = f"test_debug.py:{f.__wrapped__.__code__.co_firstlineno + 6}"
    assert seen[0].location.endswith(here) and here in str(seen)
    assert str(seen).splitlines()[0].endswith("8 traces")


def test_attributes_of_cells_and_values_that_are_asked_for():
    net, dropout = nn.Dense(3, 2), nn.Dropout(p=0.5)
    called = gc.jit(lambda x: dropout(net(x)))
    number = gc.jit(lambda x: x * float(x.sum()))
    x = Tensor(np.ones((1, 3), np.float32))
    with debug.traces() as seen, pytest.warns(RuntimeWarning, match="asked for a tensor's value"):
        called(x)
        dropout.set_train(True)
        called(x)
        dropout.set_train(False)
        called(x)  # as it was
        number(x), number(x)
    assert reasons(seen[:2]) == [
        "the first call", "an attribute of a cell, or what is trained, has changed"
    ]  # fmt: skip
    assert [("asked for a tensor's value" in t.why) for t in seen[2:]] == [True, True]


def test_transforms_in_graph_mode():
    net = nn.Dense(3, 2)
    gc.set_context(mode=gc.GRAPH_MODE)
    try:
        with debug.traces() as seen:
            for rows in (1, 1, 2):
                gc.grad(net)(Tensor(np.ones((rows, 3), np.float32)))
    finally:
        gc.set_context(mode=gc.PYNATIVE_MODE)
    assert reasons(seen) == ["the first call", "argument 0: float32[2, 3], before float32[1, 3]"]


def test_a_limit():
    f = gc.jit(lambda x: ops.exp(x))
    with (
        pytest.raises(
            RuntimeError, match=r"more than 2 times; the last time: argument 0: float32\[3\]"
        ),
        debug.traces(limit=2),
    ):
        for n in range(1, 9):
            f(Tensor(np.ones(n, np.float32)))
    with pytest.raises((TypeError, ValueError), match="limit"), debug.traces(limit=-1):
        pass
    with debug.traces(limit=2):
        f(Tensor(np.ones(3, np.float32)))  # it has a form
