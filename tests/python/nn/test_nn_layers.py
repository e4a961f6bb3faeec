"""Dense, Embedding, Flatten, normalisations and dropout: values against NumPy in float64,
gradients against central differences, in both modes."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from nn_checks import check_gradients, normal

import gradcell as ms
from gradcell import Tensor, nn, ops

F64 = ms.float64


# Dense, Embedding, shapes -----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 4, 3), (0, 3)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_dense(mode, shape, bias):
    cell = nn.Dense(3, 2, has_bias=bias, activation="tanh", dtype=F64)
    x = normal(*shape)
    expected = x @ cell.weight.asnumpy().T + (cell.bias.asnumpy() if bias else 0)
    out = cell(Tensor(x))
    assert out.shape == (*shape[:-1], 2)
    np.testing.assert_allclose(out.asnumpy(), np.tanh(expected), rtol=1e-12)
    check_gradients(cell, [x], second=True)


def test_dense_activation_may_be_a_cell_or_a_primitive():
    x = Tensor(normal(2, 3).astype(np.float32))
    plain = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")(x).asnumpy()
    for activation in ("relu", nn.ReLU(), ops.ReLU()):
        cell = nn.Dense(3, 2, "ones", "zeros", activation=activation)
        np.testing.assert_allclose(cell(x).asnumpy(), np.maximum(plain, 0), rtol=1e-6)
    with pytest.raises(KeyError, match="must be in"):
        nn.Dense(3, 2, activation="nothing")
    with pytest.raises(TypeError, match="activation"):
        nn.Dense(3, 2, activation=3)


def test_dense_refuses_inputs():
    cell = nn.Dense(3, 2)
    with pytest.raises(ValueError, match=r"in_channels 3.*\[2, 4\].*test_nn_layers.py"):
        cell(Tensor(normal(2, 4).astype(np.float32)))
    with pytest.raises(TypeError, match="Float16"):
        cell(Tensor(normal(2, 3), ms.float16))
    with pytest.raises(TypeError, match="must be Tensor"):
        cell(3)


def test_mlp(mode):
    net = nn.MLP(3, 5, 4, 2, activation=ops.sin, init="normal", bias_init="ones", dtype=ms.float64)
    names = [f"{k}.{n}" for k in (0, 2, 4) for n in ("weight", "bias")]
    assert [p.name for p in net.trainable_params()] == names
    x = np.random.default_rng(0).normal(size=(7, 3))
    w0, b0, w1, b1, w2, b2 = (p.asnumpy() for p in net.trainable_params())
    hidden = np.sin(np.sin(x @ w0.T + b0) @ w1.T + b1)
    np.testing.assert_allclose(net(Tensor(x)).asnumpy(), hidden @ w2.T + b2, rtol=1e-13)
    part = net[:2]
    assert type(part) is nn.SequentialCell
    np.testing.assert_allclose(part(Tensor(x)).asnumpy(), np.sin(x @ w0.T + b0), rtol=1e-13)


def test_activations_of_an_mlp():
    default = nn.MLP(2, 3, 3, 1)
    assert [type(c).__name__ for c in default] == ["Dense", "Tanh", "Dense", "Tanh", "Dense"]
    limit = math.sqrt(6 / 5)  # Glorot and Bengio 2010, eq. 16
    assert 0 < np.abs(default[0].weight.asnumpy()).max() <= limit
    for activation, slopes in [("prelu", 2), (nn.PReLU, 2), (nn.PReLU(), 1)]:
        net = nn.MLP(2, 3, 3, 1, activation=activation)
        assert len(net.trainable_params()) == 6 + slopes
    assert len(nn.MLP(4, 1)) == 1


@pytest.mark.parametrize(
    ("widths", "options", "error", "text"),
    [
        ((), {}, ValueError, "MLP(2, 32, 32, 1), got none"),
        ((3,), {}, ValueError, "got 3"),
        (([1, 8, 1],), {}, TypeError, "one by one: MLP(1, 8, 1)"),
        ((1, 0), {}, ValueError, "at least 1"),
        ((1, 2.0), {}, TypeError, "must be int"),
        ((1, 2, 1), {"activation": 3}, TypeError, "a function such as ops.sin"),
        ((1, 2, 1), {"activation": "tan"}, KeyError, "did you mean tanh"),
        ((1, 2, 1), {"init": "glorot"}, ValueError, "xavier_uniform"),
    ],
)
def test_mlp_refuses(widths, options, error, text):
    with pytest.raises(error, match=re.escape(text)):
        nn.MLP(*widths, **options)


def test_embedding(mode):
    cell = nn.Embedding(5, 3, dtype=F64, padding_idx=1)
    table = cell.embedding_table.asnumpy()
    assert not table[1].any() and np.abs(table[0]).max() < 0.1
    ids = np.array([[1, 4], [4, 0]])
    for dtype in (np.int32, np.int64):
        np.testing.assert_array_equal(cell(Tensor(ids.astype(dtype))).asnumpy(), table[ids])
    (gradient,) = ms.grad(lambda i: (cell(i) ** 2).sum(), None, cell.trainable_params())(
        Tensor(ids)
    )
    counts = np.array([1, 1, 0, 0, 2])[:, None]
    np.testing.assert_allclose(gradient.asnumpy(), 2 * table * counts)


def test_embedding_refuses():
    cell = nn.Embedding(5, 3)
    with pytest.raises(IndexError):
        cell(Tensor([5]))
    with pytest.raises(TypeError, match="integers"):
        cell(Tensor([1.0]))
    with pytest.raises(ValueError, match="vocab_size"):
        nn.Embedding(0, 3)
    with pytest.raises(ValueError, match=r"\[0, 5\)"):
        nn.Embedding(5, 3, padding_idx=7)


def test_flatten_and_identity():
    x = Tensor(normal(2, 3, 4, 5))
    assert nn.Flatten()(x).shape == (2, 60)
    assert nn.Flatten(0)(x).shape == (120,)
    assert nn.Flatten(1, 2)(x).shape == (2, 12, 5)
    np.testing.assert_array_equal(nn.Flatten()(x).asnumpy(), x.asnumpy().reshape(2, 60))
    np.testing.assert_array_equal(nn.Identity()(x).asnumpy(), x.asnumpy())
    with pytest.raises(ValueError, match="dimension"):
        nn.Flatten(5)(x)
    with pytest.raises(TypeError):
        nn.Flatten("a")


# Normalisations -----------------------------------------------------------------------------------


def normalised(x, axes, eps):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [(nn.BatchNorm1d, (6, 3)), (nn.BatchNorm1d, (4, 3, 5)), (nn.BatchNorm2d, (3, 3, 2, 4))],
)
def test_batch_norm(mode, kind, shape):
    x = 2 * normal(*shape) + 1
    cell = kind(3, gamma_init=Tensor(normal(3)), beta_init=Tensor(normal(3)), dtype=F64)
    gamma, beta = (p.asnumpy().reshape(3, *[1] * (x.ndim - 2)) for p in (cell.gamma, cell.beta))
    untrained = cell(Tensor(x)).asnumpy()
    np.testing.assert_allclose(untrained, gamma * x / math.sqrt(1 + 1e-5) + beta, rtol=1e-12)
    check_gradients(cell, [x])

    axes = tuple(i for i in range(x.ndim) if i != 1)
    cell.set_train()
    mean, variance = np.zeros(3), np.ones(3)
    for _ in range(3):
        out = cell(Tensor(x)).asnumpy()
        np.testing.assert_allclose(out, gamma * normalised(x, axes, 1e-5) + beta, rtol=1e-11)
        mean = 0.9 * mean + 0.1 * x.mean(axes)
        variance = 0.9 * variance + 0.1 * x.var(axes, ddof=1)
        np.testing.assert_allclose(cell.moving_mean.asnumpy(), mean, rtol=1e-12)
        np.testing.assert_allclose(cell.moving_variance.asnumpy(), variance, rtol=1e-12)
    check_gradients(cell, [x], second=True)


def test_batch_norm_statistics_in_a_gradient(mode):
    cell = nn.BatchNorm1d(2, momentum=0.8)
    cell.set_train()
    x = normal(5, 2).astype(np.float32)
    gradient = ms.value_and_grad(lambda t: (cell(t) ** 3).sum(), 0, cell.trainable_params())
    for step in range(1, 4):
        gradient(Tensor(x))
        expected = x.mean(0) * (1 - 0.8**step)
        np.testing.assert_allclose(cell.moving_mean.asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("fixed", [True, False])
def test_batch_norm_use_batch_statistics(fixed):
    x = normal(6, 3)
    cell = nn.BatchNorm1d(3, use_batch_statistics=fixed, dtype=F64)
    cell.set_train(not fixed)
    out = cell(Tensor(x)).asnumpy()
    expected = normalised(x, (0,), 1e-5) if fixed else x / math.sqrt(1 + 1e-5)
    np.testing.assert_allclose(out, expected, rtol=1e-11)
    assert (cell.moving_mean.asnumpy() != 0).any() == fixed


def test_batch_norm_of_an_empty_batch():
    cell = nn.BatchNorm1d(3).set_train()
    assert cell(Tensor(np.zeros((0, 3), np.float32))).shape == (0, 3)
    np.testing.assert_array_equal(cell.moving_mean.asnumpy(), 0)
    np.testing.assert_array_equal(cell.moving_variance.asnumpy(), 1)


def test_batch_norm_parameters():
    cell = nn.BatchNorm2d(3)
    names = [(p.name, p.requires_grad) for p in cell.get_parameters()]
    assert names == [("mean", False), ("variance", False), ("gamma", True), ("beta", True)]
    net = nn.SequentialCell(cell)
    assert [p.name for p in net.get_parameters()] == [
        "0.moving_mean",
        "0.moving_variance",
        "0.gamma",
        "0.beta",
    ]
    assert not nn.BatchNorm1d(3, affine=False).trainable_params()
    with pytest.raises(ValueError, match="at least 1, but got 0"):
        nn.BatchNorm2d(0)
    with pytest.raises(ValueError, match=r"range \[0, 1\], but got 1.5"):
        nn.BatchNorm2d(3, momentum=1.5)
    with pytest.raises(ValueError, match="must have 4 dims, but got 2"):
        cell(Tensor([[1.0, 2.0, 3.0]]))
    with pytest.raises(ValueError, match="3 channels"):
        cell(Tensor(np.ones((1, 2, 4, 4), np.float32)))


def test_layer_norm(mode):
    x = normal(2, 3, 4)
    for shape, axis in (((4,), -1), ((3, 4), 1)):
        gamma, beta = normal(*shape), normal(*shape)
        cell = nn.LayerNorm(shape, axis, axis, Tensor(gamma), Tensor(beta), dtype=F64)
        axes = tuple(range(axis % 3, 3))
        expected = gamma * normalised(x, axes, 1e-7) + beta
        np.testing.assert_allclose(cell(Tensor(x)).asnumpy(), expected, rtol=1e-11, atol=1e-12)
        check_gradients(cell, [x], second=True)
    with pytest.raises(ValueError, match="gamma or beta shape"):
        nn.LayerNorm((3,))(Tensor(x))
    with pytest.raises(TypeError, match="normalized_shape"):
        nn.LayerNorm(3)


def test_rms_norm(mode):
    x = normal(2, 3, 4)
    for shape in ((4,), (3, 4)):
        gamma = normal(*shape)
        cell = nn.RMSNorm(shape, Tensor(gamma), 1e-3, F64)
        axes = tuple(range(3 - len(shape), 3))
        expected = gamma * x / np.sqrt((x * x).mean(axes, keepdims=True) + 1e-3)
        np.testing.assert_allclose(cell(Tensor(x)).asnumpy(), expected, rtol=1e-12)
        check_gradients(cell, [x], second=True)
    half = nn.RMSNorm((4,))(Tensor(x, ms.float16))
    assert half.dtype == ms.float16 and nn.RMSNorm((4,)).parameters_dict()["gamma"].size == 4
    with pytest.raises(ValueError, match=r"shape must end with \[3\], but got shape \[2, 3, 4\]"):
        nn.RMSNorm((3,))(Tensor(x))
    with pytest.raises(TypeError, match="normalized_shape"):
        nn.RMSNorm(3)


def test_group_norm(mode):
    x = normal(2, 4, 3)
    cell = nn.GroupNorm(2, 4, gamma_init=Tensor(normal(4)), dtype=F64)
    grouped = normalised(x.reshape(2, 2, 6), (2,), 1e-5).reshape(x.shape)
    expected = grouped * cell.gamma.asnumpy()[:, None]
    np.testing.assert_allclose(cell(Tensor(x)).asnumpy(), expected, rtol=1e-11)
    check_gradients(cell, [x], second=True)
    with pytest.raises(ValueError, match="divided"):
        nn.GroupNorm(3, 4)


# Dropout -----------------------------------------------------------------------------------------


def test_dropout(mode):
    ms.set_seed(3)
    x = Tensor(np.ones((200, 200), np.float32))
    for cell, p in ((nn.Dropout(p=0.3), 0.3), (nn.Dropout(0.8), 0.2)):
        np.testing.assert_array_equal(cell(x).asnumpy(), 1)
        cell.set_train()
        out = cell(x).asnumpy()
        np.testing.assert_allclose(np.unique(out), [0, 1 / (1 - p)], rtol=1e-6)
        assert abs((out == 0).mean() - p) < 0.02
        assert abs((out[:-1] * out[1:]).mean() - 1) < 0.05
        assert (cell(x).asnumpy() != out).any()
        cell.set_train(False)
        np.testing.assert_array_equal(cell(x).asnumpy(), 1)


def test_dropout_drops_the_gradient_of_what_it_drops(mode):
    cell = nn.Dropout(p=0.5)
    cell.set_train()
    x = Tensor(np.ones((64,), np.float32))
    out, gradient = ms.value_and_grad(lambda t: cell(t))(x)
    np.testing.assert_array_equal(gradient.asnumpy(), out.asnumpy())


def test_dropout_is_the_same_after_the_same_seed():
    cell = nn.Dropout(p=0.5)
    cell.set_train()
    x = Tensor(np.ones((64,), np.float32))
    ms.set_seed(5)
    first = cell(x).asnumpy()
    ms.set_seed(5)
    np.testing.assert_array_equal(cell(x).asnumpy(), first)


def test_dropout_of_channels():
    cell = nn.Dropout2d(0.5)
    cell.set_train()
    out = cell(Tensor(np.ones((20, 30, 2, 2), np.float32))).asnumpy()
    assert set(np.unique(out)) == {0, 2}
    assert (out == out[:, :, :1, :1]).all()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"p": 1.0}, ValueError),
        ({"p": -0.1}, ValueError),
        ({"p": "a"}, TypeError),
        ({"keep_prob": 0}, TypeError),
        ({"keep_prob": 1.5}, ValueError),
    ],
)
def test_dropout_refuses(arguments, error):
    with pytest.raises(error, match="For 'Dropout'"):
        nn.Dropout(**arguments)
