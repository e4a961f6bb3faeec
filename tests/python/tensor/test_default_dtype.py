"""gc.set_default_dtype: one line makes a program compute in float64; and nothing that was made before
changes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, context, mint, nn, ops
from gradcell.common.initializer import initializer


@pytest.fixture(autouse=True)
def back() -> Iterator[None]:
    before = gc.get_default_dtype()
    assert before == gc.float32
    yield
    gc.set_default_dtype(before)


MAKERS = {
    "Tensor of a float": lambda: Tensor(0.1),
    "Tensor of a list": lambda: Tensor([0.1, 1]),
    "Tensor of nothing": lambda: Tensor([]),
    "Parameter": lambda: Parameter(0.1, name="p"),
    "zeros": lambda: ops.zeros((2,)),
    "ones": lambda: ops.ones((2,)),
    "eye": lambda: ops.eye(2),
    "linspace": lambda: ops.linspace(0, 1, 3),
    "linspace of one": lambda: ops.linspace(0.0, 1, 1),
    "arange": lambda: ops.arange(0.0, 1.0, 0.5),
    "scalar_to_tensor": lambda: ops.scalar_to_tensor(1),
    "rand": lambda: ops.rand(2),
    "randn": lambda: ops.randn(2),
    "mint.zeros": lambda: mint.zeros((2,)),
    "mint.rand": lambda: mint.rand(2),
    "sin of integers": lambda: ops.sin(Tensor([1, 2])),
    "integers by a float": lambda: Tensor([1, 2]) * 0.5,
    "integers divided": lambda: Tensor([1, 2]) / Tensor([3, 4]),
    "mean of integers": lambda: ops.sin(Tensor([1, 2])).mean(),
    "initializer": lambda: initializer("normal", (2,)),
}
LAYERS = {
    "Dense": lambda: nn.Dense(2, 3, activation="tanh"),
    "Embedding": lambda: nn.Embedding(4, 3),
    "Conv2d": lambda: nn.Conv2d(1, 2, 3),
    "Conv1dTranspose": lambda: nn.Conv1dTranspose(1, 2, 3),
    "BatchNorm1d": lambda: nn.BatchNorm1d(3),
    "LayerNorm": lambda: nn.LayerNorm((3,)),
    "GroupNorm": lambda: nn.GroupNorm(1, 3),
    "LSTM": lambda: nn.LSTM(2, 3),
    "GRUCell": lambda: nn.GRUCell(2, 3),
    "BiDense": lambda: nn.BiDense(2, 3, 4),
    "PReLU": lambda: nn.PReLU(),
    "MultiheadAttention": lambda: nn.MultiheadAttention(4, 2),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2),
    "mint.nn.Linear": lambda: mint.nn.Linear(2, 3),
    "mint.nn.LayerNorm": lambda: mint.nn.LayerNorm(3),
    "mint.nn.Conv2d": lambda: mint.nn.Conv2d(1, 2, 3),
}


@pytest.mark.parametrize("dtype", [gc.float64, gc.float16, gc.bfloat16])
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_made(name, dtype):
    make = MAKERS[name]
    assert make().dtype == gc.float32
    compiled = gc.jit(make) if name != "Parameter" else make
    assert compiled().dtype == gc.float32
    gc.set_default_dtype(dtype)
    assert make().dtype == dtype
    assert compiled().dtype == dtype  # the form of before does not run
    gc.set_default_dtype(gc.float32)
    assert compiled().dtype == gc.float32


def test_digits_of_a_python_float():
    gc.set_default_dtype(gc.float64)
    assert Tensor(0.1).asnumpy() == 0.1
    assert float(ops.linspace(0, 1, 11)[1]) == 0.1
    assert float(ops.sin(Tensor([1]))[0]) == np.sin(1.0)
    assert ops.mul(Tensor([1, 2]), 1j).dtype == gc.complex128


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    assert {p.dtype for p in LAYERS[name]().get_parameters()} == {gc.float32}
    gc.set_default_dtype(gc.float64)
    made = LAYERS[name]()
    assert {p.dtype for p in made.get_parameters()} == {gc.float64}


def test_what_says_its_dtype_keeps_it():
    gc.set_default_dtype(gc.float64)
    assert Tensor(np.ones(2, np.float32)).dtype == gc.float32
    assert Tensor([1, 2]).dtype == gc.int64
    assert Tensor([0.5], gc.float32).dtype == gc.float32
    assert (Tensor(np.ones(2, np.float32)) * 0.5).dtype == gc.float32
    assert nn.Dense(2, 3, dtype=gc.float32).weight.dtype == gc.float32


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_a_network_in_one_line(mode):
    """Second derivatives of a network and a step of its training, beside NumPy, to 1e-12."""
    gc.set_default_dtype(gc.float64)
    before = context.get_context("mode")
    context.set_context(mode=mode)
    try:
        net = nn.SequentialCell(nn.Dense(1, 8, activation="tanh"), nn.Dense(8, 1))
        x = Tensor(np.linspace(-1, 1, 7)[:, None])
        w1, b1, w2, b2 = (p.asnumpy() for p in net.get_parameters())
        t = np.tanh(x.asnumpy() @ w1.T + b1)
        np.testing.assert_allclose(net(x).asnumpy(), t @ w2.T + b2, rtol=1e-13, atol=1e-15)
        slope = gc.grad(lambda x: net(x).sum())(x)
        np.testing.assert_allclose(slope.asnumpy(), ((1 - t * t) * w1.T) @ w2.T, rtol=1e-12)
        optimiser = nn.Adam(net.trainable_params(), 1e-3)
        loss = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimiser)
        value = loss(x, ops.sin(x))
        assert value.dtype == gc.float64
        want = np.mean((t @ w2.T + b2 - np.sin(x.asnumpy())) ** 2)
        np.testing.assert_allclose(value.asnumpy(), want, rtol=1e-12)
        assert net[0].weight.dtype == gc.float64
    finally:
        context.set_context(mode=before)


@pytest.mark.parametrize("wrong", [gc.int32, gc.bool_, gc.complex64, "int32", int, None])
def test_refused(wrong):
    with pytest.raises(TypeError, match="set_default_dtype: a floating dtype is needed"):
        gc.set_default_dtype(wrong)
    assert gc.get_default_dtype() == gc.float32
