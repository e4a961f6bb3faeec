"""Activation layers against NumPy in float64, gradients against central differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from nn_checks import check_gradients, normal
from numpy_functions import erf, sigmoid, softmax

import gradcell as ms
from gradcell import Tensor, nn

ACTIVATIONS = {
    "relu": (nn.ReLU, lambda x: np.maximum(x, 0)),
    "relu6": (nn.ReLU6, lambda x: np.clip(x, 0, 6)),
    "tanh": (nn.Tanh, np.tanh),
    "sigmoid": (nn.Sigmoid, sigmoid),
    "silu": (nn.SiLU, lambda x: x * sigmoid(x)),
    "mish": (nn.Mish, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "gelu": (
        nn.GELU,
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "gelu by erf": (lambda: nn.GELU(False), lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))),
    "fast_gelu": (nn.FastGelu, lambda x: x * sigmoid(1.702 * x)),
    "leakyrelu": (nn.LeakyReLU, lambda x: np.where(x > 0, x, 0.2 * x)),
    "elu": (lambda: nn.ELU(1.5), lambda x: np.where(x > 0, x, 1.5 * np.expm1(x))),
    "celu": (lambda: nn.CELU(2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    "selu": (
        nn.SeLU,
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    ),
    "softplus": (nn.Softplus, lambda x: np.log1p(np.exp(x))),
    "logsigmoid": (nn.LogSigmoid, lambda x: -np.log1p(np.exp(-x))),
    "softsign": (nn.Softsign, lambda x: x / (1 + np.abs(x))),
    "hsigmoid": (nn.HSigmoid, lambda x: np.clip(x + 3, 0, 6) / 6),
    "hswish": (nn.HSwish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "hardtanh": (nn.Hardtanh, lambda x: np.clip(x, -1, 1)),
    "hshrink": (nn.HShrink, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    "softshrink": (nn.SoftShrink, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    "tanhshrink": (nn.Tanhshrink, lambda x: x - np.tanh(x)),
    "threshold": (lambda: nn.Threshold(0.1, 2.0), lambda x: np.where(x > 0.1, x, 2.0)),
    "softmax": (nn.Softmax, softmax),
    "softmax over rows": (lambda: nn.Softmax(0), lambda x: softmax(x, 0)),
    "softmin": (nn.Softmin, lambda x: softmax(-x)),
    "logsoftmax": (nn.LogSoftmax, lambda x: np.log(softmax(x))),
    "glu": (nn.GLU, lambda x: x[:, :3] * sigmoid(x[:, 3:])),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(mode, name):
    factory, reference = ACTIVATIONS[name]
    x = 2 * normal(4, 6)
    cell = factory()
    np.testing.assert_allclose(cell(Tensor(x)).asnumpy(), reference(x), rtol=1e-9, atol=1e-12)
    check_gradients(cell, [x], second=True)
    single = cell(Tensor(x.astype(np.float32)))
    assert single.dtype == ms.float32
    np.testing.assert_allclose(single.asnumpy(), reference(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "logsigmoid", "softmax", "logsoftmax"])
def test_activations_do_not_overflow(name):
    x = Tensor(np.array([[-1e4, 0.0, 1e4]], np.float32))
    cell = ACTIVATIONS[name][0]()
    value, gradient = ms.value_and_grad(lambda t: cell(t))(x)
    assert np.isfinite(value.asnumpy()).all()
    assert np.isfinite(gradient.asnumpy()).all()


def test_prelu(mode):
    x = normal(2, 3, 4)
    cell = nn.PReLU(3, Tensor(np.array([0.1, 0.2, 0.3], np.float32)))
    slopes = cell.w.asnumpy()[:, None]
    out = cell(Tensor(x.astype(np.float32)))
    np.testing.assert_allclose(out.asnumpy(), np.where(x > 0, x, slopes * x), rtol=1e-5)
    (gradient,) = ms.grad(lambda t: cell(t).sum(), None, [cell.w])(Tensor(x.astype(np.float32)))
    np.testing.assert_allclose(gradient.asnumpy(), np.minimum(x, 0).sum((0, 2)), rtol=1e-5)


def test_rrelu():
    cell = nn.RReLU()
    x = Tensor(-np.ones((1000,), np.float32))
    np.testing.assert_allclose(cell(x).asnumpy(), -(1 / 8 + 1 / 3) / 2, rtol=1e-6)
    cell.set_train()
    slopes = -cell(x).asnumpy()
    assert slopes.min() >= 1 / 8 and slopes.max() <= 1 / 3 and slopes.std() > 0.04


def test_get_activation():
    assert isinstance(nn.get_activation("gelu"), nn.GELU)
    assert nn.get_activation(None) is None
    with pytest.raises(KeyError, match="must be in"):
        nn.get_activation("zz")
    with pytest.raises(TypeError):
        nn.Softmax("a")
