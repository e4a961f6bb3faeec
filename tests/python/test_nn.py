"""Layers, losses and initialisers: values against NumPy in float64 (loops where they are plain),
gradients against central differences, in both modes."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

import gradcell as ms
from gradcell import Parameter, Tensor, nn, ops

F64 = ms.float64
RNG = np.random.default_rng(7)


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request):
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def total(cell, weights):
    """A scalar function of a cell's inputs: its output times fixed weights."""

    def f(*inputs):
        return (cell(*inputs) * weights).sum()

    return f


def check_gradients(cell, inputs, by=None, second=False, tolerance=2e-6):
    """Gradients by inputs and parameters, along random directions, against central differences."""
    tensors = [Tensor(x) for x in inputs]
    out = cell(*tensors)
    weights = Tensor(RNG.standard_normal(out.shape))
    f = total(cell, weights)
    by = tuple(range(len(inputs))) if by is None else by
    parameters = cell.trainable_params()
    by_input, by_parameter = ms.grad(f, by, parameters)(*tensors)
    by_input = by_input if isinstance(by_input, tuple) else (by_input,)

    def moved(direction, step):
        moved_inputs = list(inputs)
        for p, d in zip(by, direction, strict=True):
            moved_inputs[p] = inputs[p] + step * d
        return [Tensor(x) for x in moved_inputs]

    direction = [RNG.standard_normal(inputs[p].shape) for p in by]
    h = 1e-5
    difference = float(f(*moved(direction, h))) - float(f(*moved(direction, -h)))
    expected = sum((g.asnumpy() * d).sum() for g, d in zip(by_input, direction, strict=True))
    np.testing.assert_allclose(expected, difference / (2 * h), rtol=tolerance, atol=tolerance)
    for p, g in zip(parameters, by_parameter, strict=True):
        assert g.shape == p.shape and g.dtype == p.dtype
        value, d = p.asnumpy().copy(), RNG.standard_normal(p.shape)
        sides = []
        for sign in (1, -1):
            p.set_data(Tensor(value + sign * h * d))
            sides.append(float(f(*tensors)))
        p.set_data(Tensor(value))
        slope = (sides[0] - sides[1]) / (2 * h)
        np.testing.assert_allclose((g.asnumpy() * d).sum(), slope, rtol=tolerance, atol=tolerance)
    if second:
        check_second(f, inputs, by, direction, moved, tolerance)


def check_second(f, inputs, by, direction, moved, tolerance):
    fixed = [Tensor(d) for d in direction]

    def slope(*tensors):
        gradients = ms.grad(f, by)(*tensors)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        return sum((g * d).sum() for g, d in zip(gradients, fixed, strict=True))

    second = ms.grad(slope, by)(*[Tensor(x) for x in inputs])
    second = second if isinstance(second, tuple) else (second,)
    other = [RNG.standard_normal(d.shape) for d in direction]
    h = 1e-5
    difference = float(slope(*moved(other, h))) - float(slope(*moved(other, -h)))
    expected = sum((g.asnumpy() * d).sum() for g, d in zip(second, other, strict=True))
    np.testing.assert_allclose(expected, difference / (2 * h), rtol=10 * tolerance, atol=1e-5)


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
    with pytest.raises(ValueError, match=r"in_channels 3.*\[2, 4\].*test_nn.py"):
        cell(Tensor(normal(2, 4).astype(np.float32)))
    with pytest.raises(TypeError, match="Float16"):
        cell(Tensor(normal(2, 3), ms.float16))
    with pytest.raises(TypeError, match="must be Tensor"):
        cell(3)


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
    assert nn.Identity()(x) is x
    with pytest.raises(ValueError, match="dimension"):
        nn.Flatten(5)(x)
    with pytest.raises(TypeError):
        nn.Flatten("a")


# Convolutions ------------------------------------------------------------------------------------


def same_padding(size, kernel, stride, dilation):
    missing = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return missing // 2, missing - missing // 2


def naive_convolution(x, weight, bias, stride, padding, dilation, group):
    n, _, h, w = x.shape
    outputs, inputs, kh, kw = weight.shape
    top, bottom, left, right = padding
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    rows = (h + top + bottom - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    columns = (w + left + right - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    out = np.zeros((n, outputs, rows, columns))
    for o, i, j in itertools.product(range(outputs), range(rows), range(columns)):
        first = o // (outputs // group) * inputs
        for c, u, v in itertools.product(range(inputs), range(kh), range(kw)):
            y, z = i * stride[0] + u * dilation[0], j * stride[1] + v * dilation[1]
            out[:, o, i, j] += weight[o, c, u, v] * padded[:, first + c, y, z]
    return out + (0 if bias is None else bias[:, None, None])


CONVOLUTIONS = {
    "same": ((2, 3, 5, 6), {"in_channels": 3, "out_channels": 2, "kernel_size": 3}),
    "same even kernel": (
        (2, 1, 5, 6),
        {"in_channels": 1, "out_channels": 2, "kernel_size": (2, 4), "has_bias": True},
    ),
    "same stride": (
        (1, 2, 7, 6),
        {"in_channels": 2, "out_channels": 3, "kernel_size": 3, "stride": (2, 3)},
    ),
    "same dilation": (
        (1, 1, 6, 7),
        {"in_channels": 1, "out_channels": 1, "kernel_size": 3, "dilation": 2},
    ),
    "valid": (
        (2, 2, 5, 6),
        {"in_channels": 2, "out_channels": 2, "kernel_size": (3, 2), "pad_mode": "valid"},
    ),
    "pad": (
        (1, 2, 4, 5),
        {
            "in_channels": 2,
            "out_channels": 2,
            "kernel_size": 3,
            "stride": 2,
            "pad_mode": "pad",
            "padding": (2, 1, 0, 3),
            "has_bias": True,
        },
    ),
    "groups": (
        (2, 4, 4, 4),
        {"in_channels": 4, "out_channels": 6, "kernel_size": 2, "group": 2, "has_bias": True},
    ),
    "depthwise": (
        (1, 3, 4, 4),
        {"in_channels": 3, "out_channels": 3, "kernel_size": 3, "group": 3},
    ),
    "pointwise": ((2, 3, 2, 2), {"in_channels": 3, "out_channels": 4, "kernel_size": 1}),
    "skipping input": (
        (1, 1, 5, 5),
        {"in_channels": 1, "out_channels": 1, "kernel_size": 1, "stride": 3, "pad_mode": "valid"},
    ),
}


def two(value):
    return value if isinstance(value, tuple) else (value, value)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_conv2d(mode, name):
    shape, arguments = CONVOLUTIONS[name]
    cell = nn.Conv2d(**arguments, dtype=F64)
    x = normal(*shape)
    kernel, stride = two(arguments["kernel_size"]), two(arguments.get("stride", 1))
    dilation = two(arguments.get("dilation", 1))
    padding = arguments.get("padding", (0,) * 4)
    if arguments.get("pad_mode", "same") == "same":
        padding = sum(
            (same_padding(shape[2 + i], kernel[i], stride[i], dilation[i]) for i in (0, 1)), ()
        )
    bias = cell.bias.asnumpy() if cell.has_bias else None
    group = arguments.get("group", 1)
    expected = naive_convolution(x, cell.weight.asnumpy(), bias, stride, padding, dilation, group)
    np.testing.assert_allclose(cell(Tensor(x)).asnumpy(), expected, rtol=1e-11, atol=1e-12)
    check_gradients(cell, [x], second=name in ("same", "groups"))


def test_conv1d(mode):
    cell = nn.Conv1d(
        2, 4, 3, stride=2, pad_mode="pad", padding=1, group=2, has_bias=True, dtype=F64
    )
    assert cell.weight.shape == (4, 1, 1, 3)
    x = normal(2, 2, 7)
    expected = naive_convolution(
        x[:, :, None], cell.weight.asnumpy(), cell.bias.asnumpy(), (1, 2), (0, 0, 1, 1), (1, 1), 2
    )
    np.testing.assert_allclose(cell(Tensor(x)).asnumpy(), expected[:, :, 0], rtol=1e-11, atol=1e-12)
    check_gradients(cell, [x], second=True)


def test_convolution_of_a_known_image():
    image = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4) / 10
    cell = nn.Conv2d(2, 1, 3, weight_init="ones")
    out = cell(Tensor(image)).asnumpy()[0, 0]
    for i, j in itertools.product(range(4), range(4)):
        window = image[0, :, max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
        np.testing.assert_allclose(out[i, j], window.sum(), rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((0, 3, 3), ValueError, "in_channels"),
        (("a", 3, 3), TypeError, "in_channels"),
        ((2, 3, 0), ValueError, "kernel_size"),
        ((2, 3, 3, 0), ValueError, "stride"),
        ((2, 3, 3, 1, "xx"), ValueError, "pad_mode"),
        ((2, 3, 3, 1, "same", 1), ValueError, "padding"),
        ((2, 3, 3, 1, "pad", -1), ValueError, "padding"),
        ((3, 3, 3, 1, "same", 0, 1, 2), ValueError, "group"),
        ((2, 3, 3, 1, "same", 0, 0), ValueError, "dilation"),
    ],
)
def test_conv2d_refuses(arguments, error, text):
    with pytest.raises(error, match=text):
        nn.Conv2d(*arguments)


def test_conv2d_refuses_inputs():
    x = Tensor(np.ones((1, 2, 4, 4), np.float32))
    with pytest.raises(ValueError, match="4 dimensions"):
        nn.Conv2d(2, 3, 3)(x[0])
    with pytest.raises(ValueError, match="in_channels 3"):
        nn.Conv2d(3, 3, 3)(x)
    with pytest.raises(ValueError, match="kernel_size"):
        nn.Conv2d(2, 3, 5, pad_mode="valid")(x)
    with pytest.raises(TypeError, match="Float16"):
        nn.Conv2d(2, 3, 3)(x.astype(ms.float16))


# Poolings ----------------------------------------------------------------------------------------


def naive_pool(x, kernel, stride, padding, count, of):
    """of(window of the elements that lie in the image) for each window."""
    out = np.zeros((*x.shape[:2], *count))
    for i, j in itertools.product(*map(range, count)):
        y, z = i * stride[0] - padding[0], j * stride[1] - padding[1]
        window = x[:, :, max(y, 0) : y + kernel[0], max(z, 0) : z + kernel[1]]
        out[:, :, i, j] = of(window.reshape(*x.shape[:2], -1))
    return out


POOLS = {
    "valid": ({"kernel_size": 2, "stride": 2}, (2, 2), (0, 0), (2, 3)),
    "overlapping": ({"kernel_size": (3, 2), "stride": (1, 2)}, None, (0, 0), (3, 3)),
    "same": ({"kernel_size": 3, "stride": 2, "pad_mode": "same"}, None, (1, 0), (3, 3)),
    "pad": ({"kernel_size": 3, "stride": 2, "pad_mode": "pad", "padding": 1}, None, (1, 1), (3, 3)),
    "ceil": ({"kernel_size": 3, "stride": 2, "ceil_mode": True}, None, (0, 0), (2, 3)),
}


@pytest.mark.parametrize("name", POOLS)
def test_max_pool(mode, name):
    arguments, _, padding, count = POOLS[name]
    x = normal(2, 2, 5, 6)
    cell = nn.MaxPool2d(**arguments)
    kernel, stride = two(arguments["kernel_size"]), two(arguments["stride"])
    expected = naive_pool(x, kernel, stride, padding, count, lambda w: w.max(-1))
    np.testing.assert_array_equal(cell(Tensor(x)).asnumpy(), expected)
    np.testing.assert_array_equal(cell(Tensor(x[0])).asnumpy(), expected[0])
    check_gradients(cell, [x])


@pytest.mark.parametrize("name", POOLS)
def test_avg_pool(mode, name):
    arguments, _, padding, count = POOLS[name]
    x = normal(2, 2, 5, 6)
    cell = nn.AvgPool2d(**arguments, **({"count_include_pad": False} if name == "pad" else {}))
    kernel, stride = two(arguments["kernel_size"]), two(arguments["stride"])
    expected = naive_pool(x, kernel, stride, padding, count, lambda w: w.mean(-1))
    np.testing.assert_allclose(cell(Tensor(x)).asnumpy(), expected, rtol=1e-12)
    check_gradients(cell, [x], second=True)


def test_avg_pool_divisors():
    x = np.ones((1, 1, 4, 4))
    including = nn.AvgPool2d(2, 2, "pad", 1)(Tensor(x)).asnumpy()[0, 0]
    np.testing.assert_allclose(including, np.outer([0.5, 1, 0.5], [0.5, 1, 0.5]))
    overridden = nn.AvgPool2d(2, 2, divisor_override=3)(Tensor(x)).asnumpy()
    np.testing.assert_allclose(overridden, np.full((1, 1, 2, 2), 4 / 3))


def test_max_pool_indices_ties_and_nan():
    x = np.zeros((1, 1, 2, 4))
    x[0, 0, 1, 3] = np.nan
    out, index = nn.MaxPool2d(2, 2, return_indices=True)(Tensor(x))
    np.testing.assert_array_equal(out.asnumpy(), [[[[0, np.nan]]]])
    np.testing.assert_array_equal(index.asnumpy(), [[[[0, 7]]]])
    assert index.dtype == ms.int64
    gradient = ms.grad(lambda t: nn.MaxPool2d(2, 2)(t).sum())(Tensor(np.zeros((1, 1, 2, 2))))
    np.testing.assert_array_equal(gradient.asnumpy(), [[[[1, 0], [0, 0]]]])


def test_one_dimensional_pools():
    x = normal(2, 3, 6)
    expected = x.reshape(2, 3, 3, 2)
    np.testing.assert_array_equal(nn.MaxPool1d(2, 2)(Tensor(x)).asnumpy(), expected.max(-1))
    np.testing.assert_allclose(nn.AvgPool1d(2, 2)(Tensor(x)).asnumpy(), expected.mean(-1))


def test_pools_refuse():
    for pool in (nn.MaxPool2d, nn.AvgPool2d):
        with pytest.raises(TypeError, match="kernel_size"):
            pool("a")
        with pytest.raises(ValueError, match="kernel_size"):
            pool(0)
        with pytest.raises(ValueError, match="pad_mode"):
            pool(2, pad_mode="xx")
        with pytest.raises(ValueError, match="padding"):
            pool(2, 2, "valid", 1)
        with pytest.raises(ValueError, match="half"):
            pool(2, 2, "pad", 2)
        with pytest.raises(ValueError, match="dimensions"):
            pool(2)(Tensor([1.0]))


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


# Activations -------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


erf = np.vectorize(math.erf)

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
    slopes = cell.a.asnumpy()[:, None]
    out = cell(Tensor(x.astype(np.float32)))
    np.testing.assert_allclose(out.asnumpy(), np.where(x > 0, x, slopes * x), rtol=1e-5)
    (gradient,) = ms.grad(lambda t: cell(t).sum(), None, [cell.a])(Tensor(x.astype(np.float32)))
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


# Losses ------------------------------------------------------------------------------------------


def reduced(loss, reduction):
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](loss)


def huber(delta):
    def loss(x, y):
        d = np.abs(x - y)
        return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))

    return loss


ELEMENTWISE = {
    "MSELoss": (nn.MSELoss, lambda x, y: (x - y) ** 2),
    "L1Loss": (nn.L1Loss, lambda x, y: np.abs(x - y)),
    "SmoothL1Loss": (
        lambda reduction: nn.SmoothL1Loss(0.5, reduction),
        lambda x, y: np.where(np.abs(x - y) < 0.5, (x - y) ** 2, np.abs(x - y) - 0.25),
    ),
    "HuberLoss": (lambda reduction: nn.HuberLoss(reduction, 0.7), huber(0.7)),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, lambda x, y: np.log1p(np.exp(x)) - x * y),
    "BCELoss": (
        lambda reduction: nn.BCELoss(reduction=reduction),
        lambda x, y: -(y * np.log(x) + (1 - y) * np.log(1 - x)),
    ),
    "KLDivLoss": (nn.KLDivLoss, lambda x, y: y * (np.log(y) - x)),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_loss(mode, name, reduction):
    factory, reference = ELEMENTWISE[name]
    x, y = RNG.uniform(0.05, 0.95, (4, 3)), RNG.uniform(0.05, 0.95, (4, 3))
    if name != "BCELoss":
        x = 2 * normal(4, 3)
    cell = factory(reduction=reduction)
    out = cell(Tensor(x), Tensor(y)).asnumpy()
    np.testing.assert_allclose(out, reduced(reference(x, y), reduction), rtol=1e-8)
    check_gradients(cell, [x, y], by=(0,), second=True, tolerance=1e-5)


def test_weighted_binary_losses(mode):
    x, y = normal(4, 3), RNG.uniform(0, 1, (4, 3))
    w, positive = RNG.uniform(0.5, 2, (4, 3)), RNG.uniform(0.5, 2, 3)
    p = sigmoid(x)
    expected = -w * (positive * y * np.log(p) + (1 - y) * np.log(1 - p))
    cell = nn.BCEWithLogitsLoss("none", Tensor(w), Tensor(positive))
    np.testing.assert_allclose(cell(Tensor(x), Tensor(y)).asnumpy(), expected, rtol=1e-9)
    expected = -w * (y * np.log(p) + (1 - y) * np.log(1 - p))
    cell = nn.BCELoss(Tensor(w), "none")
    np.testing.assert_allclose(cell(Tensor(p), Tensor(y)).asnumpy(), expected, rtol=1e-8)


@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3)], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_of_indices(mode, shape, reduction, weighted, smoothing):
    x = normal(*shape)
    labels = RNG.integers(0, 4, (shape[0], *shape[2:]))
    labels.flat[1] = -100
    w = RNG.uniform(0.5, 2, 4) if weighted else np.ones(4)
    logp = np.moveaxis(np.log(softmax(x, 1)), 1, -1)
    valid = labels != -100
    safe = np.where(valid, labels, 0)
    picked = np.take_along_axis(logp, safe[..., None], -1)[..., 0] * w[safe]
    loss = -((1 - smoothing) * picked + smoothing / 4 * (logp * w).sum(-1)) * valid
    if reduction == "mean":
        expected = loss.sum() / (w[safe] * valid).sum()
    else:
        expected = loss.sum() if reduction == "sum" else loss
    weight = Tensor(w) if weighted else None
    cell = nn.CrossEntropyLoss(weight, reduction=reduction, label_smoothing=smoothing)
    target = Tensor(labels.astype(np.int32))
    np.testing.assert_allclose(cell(Tensor(x), target).asnumpy(), expected, rtol=1e-10, atol=1e-12)
    check_gradients(cell, [x, labels.astype(np.int32)], by=(0,), second=smoothing == 0)
    if not smoothing:
        nll = nn.NLLLoss(weight, reduction=reduction)
        out = nll(Tensor(np.log(softmax(x, 1))), target)
        np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-10, atol=1e-12)


def test_cross_entropy_of_probabilities(mode):
    x, y = normal(5, 4), softmax(normal(5, 4))
    w = RNG.uniform(0.5, 2, 4)
    loss = -(np.log(softmax(x)) * y * w).sum(1)
    cell = nn.CrossEntropyLoss(Tensor(w))
    np.testing.assert_allclose(float(cell(Tensor(x), Tensor(y))), loss.mean(), rtol=1e-12)
    check_gradients(cell, [x, y], by=(0,), second=True)


def test_softmax_cross_entropy_with_logits(mode):
    x, labels = normal(5, 4), np.array([0, 3, 2, 1, 1], np.int32)
    one_hot = np.eye(4)[labels]
    expected = -np.log(softmax(x))[np.arange(5), labels]
    dense = nn.SoftmaxCrossEntropyWithLogits()
    np.testing.assert_allclose(dense(Tensor(x), Tensor(one_hot)).asnumpy(), expected, rtol=1e-12)
    sparse = nn.SoftmaxCrossEntropyWithLogits(sparse=True)
    np.testing.assert_allclose(sparse(Tensor(x), Tensor(labels)).asnumpy(), expected, rtol=1e-12)
    mean = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    np.testing.assert_allclose(float(mean(Tensor(x), Tensor(labels))), expected.mean())
    check_gradients(mean, [x, labels], by=(0,), second=True)
    with pytest.raises(TypeError, match="probabilities"):
        dense(Tensor(x), Tensor(labels))
    with pytest.raises(TypeError, match="class indices"):
        sparse(Tensor(x), Tensor(one_hot))


#: Results of MindSpore 2.10.0 on these inputs.
LOGITS = np.array([[1.0, 2.0, 0.5], [0.1, -1.0, 3.0]], np.float32)
LABELS = np.array([1, 2], np.int32)
ONE_HOT = np.array([[0, 1, 0], [0, 0, 1]], np.float32)
WEIGHT = np.array([1.0, 2.0, 0.5], np.float32)
RECORDED = [
    (lambda: nn.CrossEntropyLoss(), LABELS, 0.26757121),
    (lambda: nn.CrossEntropyLoss(Tensor(WEIGHT)), LABELS, 0.38564950),
    (lambda: nn.CrossEntropyLoss(Tensor(WEIGHT), reduction="sum"), LABELS, 0.96412373),
    (lambda: nn.CrossEntropyLoss(reduction="none"), LABELS, [0.46436834, 0.07077408]),
    (lambda: nn.CrossEntropyLoss(ignore_index=2), LABELS, 0.46436834),
    (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), LABELS, 0.42423791),
    (lambda: nn.CrossEntropyLoss(Tensor(WEIGHT), label_smoothing=0.1), LABELS, 0.54072452),
    (lambda: nn.CrossEntropyLoss(Tensor(WEIGHT)), ONE_HOT, 0.48206186),
    (lambda: nn.CrossEntropyLoss(Tensor(WEIGHT), label_smoothing=0.1), ONE_HOT, 0.67590570),
    (lambda: nn.NLLLoss(Tensor(WEIGHT)), LABELS, -2.2),
    (lambda: nn.BCEWithLogitsLoss(), ONE_HOT, 0.58675200),
    (lambda: nn.L1Loss(), ONE_HOT, 0.93333334),
    (lambda: nn.SmoothL1Loss(), ONE_HOT, [[0.5, 0.5, 0.125], [0.005, 0.5, 1.5]]),
    (lambda: nn.SmoothL1Loss(0.5, "mean"), ONE_HOT, 0.71000004),
    (lambda: nn.HuberLoss(), ONE_HOT, 0.52166671),
    (lambda: nn.HuberLoss("sum", 0.5), ONE_HOT, 2.13000011),
    (lambda: nn.MAELoss(), ONE_HOT, 0.93333334),
    (lambda: nn.RMSELoss(), ONE_HOT, 1.10000002),
]


@pytest.mark.parametrize("i", range(len(RECORDED)))
def test_recorded_losses(i):
    factory, labels, expected = RECORDED[i]
    out = factory()(Tensor(LOGITS), Tensor(labels))
    assert out.dtype == ms.float32
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=5e-6)


LOSSES = (
    "MSELoss L1Loss SmoothL1Loss HuberLoss CrossEntropyLoss SoftmaxCrossEntropyWithLogits BCELoss "
    "BCEWithLogitsLoss NLLLoss KLDivLoss MAELoss"
).split()


@pytest.mark.parametrize("name", LOSSES)
def test_losses_refuse(name):
    text = f"For '{name}', the 'reduction' must be in .*, but got x."
    with pytest.raises(ValueError, match=text):
        getattr(nn, name)(reduction="x")
    with pytest.raises(TypeError, match="must be Tensor"):
        getattr(nn, name)()(Tensor([[1.0]]), 3)


def test_labels_out_of_range():
    with pytest.raises(IndexError):
        nn.CrossEntropyLoss()(Tensor(LOGITS), Tensor([1, 7]))
    with pytest.raises(ValueError):
        nn.CrossEntropyLoss()(Tensor(LOGITS), Tensor([1]))
    with pytest.raises(ValueError, match="delta"):
        nn.HuberLoss(delta=-1.0)


# Initialisers ------------------------------------------------------------------------------------


def draw(init, *shape):
    return ms.common.initializer.initializer(init, shape).asnumpy()


def test_initialiser_distributions():
    init = ms.common.initializer
    ms.set_seed(11)
    shape = (30, 20, 3, 3)
    fan_in, fan_out = 180, 270
    for name, limit in (
        ("uniform", 0.07),
        ("xavier_uniform", math.sqrt(6 / (fan_in + fan_out))),
        ("he_uniform", math.sqrt(6 / fan_in)),
    ):
        values = draw(name, *shape)
        assert 0.99 * limit < np.abs(values).max() <= limit * (1 + 1e-6)
        np.testing.assert_allclose(values.std(), limit / math.sqrt(3), rtol=0.05)
    for name, deviation in (
        ("normal", 0.01),
        ("xavier_normal", math.sqrt(2 / (fan_in + fan_out))),
        ("he_normal", math.sqrt(2 / fan_in)),
        (init.HeNormal(0.5, "fan_out"), math.sqrt(2 / 1.25 / fan_out)),
        (init.VarianceScaling(2.0, "fan_avg"), math.sqrt(4 / (fan_in + fan_out))),
    ):
        values = draw(name, *shape)
        np.testing.assert_allclose(values.std(), deviation, rtol=0.05)
        assert abs(values.mean()) < 0.1 * deviation
    np.testing.assert_array_equal(draw("zeros", 2, 3), 0)
    np.testing.assert_array_equal(draw("ones", 2, 3), 1)
    np.testing.assert_array_equal(draw(init.Constant(2.5), 2), 2.5)
    np.testing.assert_array_equal(draw(1.5, 2), 1.5)


@pytest.mark.parametrize(
    "arguments", [(1.0, 0.0, -1.0, 2.0), (1.0, 3.0, -2.0, 2.0), (1.0, 0.0, 5.0, 6.0)]
)
def test_truncated_normal(arguments):
    sigma, mean, a, b = arguments
    values = draw(ms.common.initializer.TruncatedNormal(*arguments), 20000)
    assert values.min() >= a and values.max() <= b

    def density(z):
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    low, high = (a - mean) / sigma, (b - mean) / sigma
    mass = (math.erfc(low / math.sqrt(2)) - math.erfc(high / math.sqrt(2))) / 2
    expected = mean + sigma * (density(low) - density(high)) / mass
    np.testing.assert_allclose(values.mean(), expected, atol=0.03)


def test_other_initialisers():
    init = ms.common.initializer
    q = draw(init.Orthogonal(2.0), 4, 6).astype(np.float64)
    np.testing.assert_allclose(q @ q.T, 4 * np.eye(4), atol=1e-5)
    np.testing.assert_array_equal(draw("identity", 2, 3), np.eye(2, 3))
    sparse = draw(init.Sparse(0.3, 1.0), 10, 5)
    np.testing.assert_array_equal((sparse == 0).sum(0), 3)
    x = normal(1, 3, 4, 4).astype(np.float32)
    same = nn.Conv2d(3, 3, 3, weight_init="dirac")(Tensor(x))
    np.testing.assert_allclose(same.asnumpy(), x, rtol=1e-6)


def test_initialisers_repeat_after_set_seed():
    ms.set_seed(4)
    first = [nn.Dense(5, 4).weight.asnumpy().copy() for _ in range(2)]
    ms.set_seed(4)
    again = [nn.Dense(5, 4).weight.asnumpy() for _ in range(2)]
    np.testing.assert_array_equal(first, again)
    assert (first[0] != first[1]).any()


def test_initializer_refuses():
    initializer = ms.common.initializer.initializer
    with pytest.raises(ValueError, match="foo"):
        initializer("foo", [2])
    with pytest.raises(ValueError, match="shape"):
        initializer("normal", (2, -1))
    with pytest.raises(ValueError, match="2 dimensions"):
        initializer("he_uniform", (2,))
    with pytest.raises(ValueError, match=r"\[1\]"):
        initializer(Tensor([1.0]), (2,))
    with pytest.raises(TypeError):
        initializer(None, (2,))
    with pytest.raises(ValueError, match="nonlinearity"):
        initializer(ms.common.initializer.HeUniform(nonlinearity="x"), (2, 2))
    assert initializer("ones", 3, ms.float16).dtype == ms.float16


def test_an_initialiser_of_one_s_own():
    class Ramp(ms.common.initializer.Initializer):
        def _initialize(self, arr):
            arr[...] = np.arange(arr.size).reshape(arr.shape)

    np.testing.assert_array_equal(draw(Ramp(), 2, 2), [[0, 1], [2, 3]])


# Containers --------------------------------------------------------------------------------------


def test_sequential_cell():
    net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU())
    net.append(nn.Dense(3, 1))
    assert len(net) == 3 and isinstance(net[-1], nn.Dense)
    assert [p.name for p in net.get_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert net(Tensor([[1.0, 2.0]])).shape == (1, 1)
    assert isinstance(net[:2], nn.SequentialCell) and len(net[:2]) == 2
    del net[0]
    assert list(net.name_cells()) == ["0", "1"]
    assert [p.name for p in net.get_parameters()] == ["1.weight", "1.bias"]
    with pytest.raises(IndexError):
        net[5]
    assert nn.SequentialCell({"first": nn.ReLU()}).first is not None


def test_containers_inside_a_cell():
    class Outer(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net

    for kind in (nn.SequentialCell, nn.CellList):
        outer = Outer(kind([nn.Dense(1, 1, has_bias=False)]))
        outer.net.append(nn.Dense(1, 1, has_bias=False))
        names = ["net.0.weight", "net.1.weight"]
        assert [p.name for p in outer.get_parameters()] == names
        assert [p.name for p in outer.net[1:].get_parameters()] == names[1:]
        assert [p.name for p in outer.get_parameters()] == names
        outer.net[0] = nn.Dense(1, 1, has_bias=False)
        assert [p.name for p in outer.get_parameters()] == names


def test_cell_list():
    cells = nn.CellList([nn.Dense(1, 1)])
    cells.extend([nn.Dense(1, 1), nn.ReLU()])
    cells.insert(0, nn.Tanh())
    assert [type(c).__name__ for c in cells] == ["Tanh", "Dense", "Dense", "ReLU"]
    assert [p.name for p in cells.get_parameters()][:2] == ["1.weight", "1.bias"]
    with pytest.raises(NotImplementedError):
        cells(Tensor([1.0]))


def test_cell_dict():
    cells = nn.CellDict({"a": nn.Dense(1, 1), "b": nn.ReLU()})
    assert list(cells) == ["a", "b"] and "a" in cells and len(cells) == 2
    assert [p.name for p in cells.get_parameters()] == ["a.weight", "a.bias"]
    assert str(nn.CellDict({"a": nn.ReLU()})) == "CellDict(\n  (a): ReLU()\n)"
    assert isinstance(cells.pop("b"), nn.ReLU)
    with pytest.raises(TypeError):
        cells["c"] = 3
    with pytest.raises(KeyError):
        cells["x.y"] = nn.ReLU()


# Printing ----------------------------------------------------------------------------------------


def test_printed_layers():
    gamma = "Parameter (name={}, shape=(3,), dtype=Float32, requires_grad={})"
    statistics = (
        f"gamma={gamma.format('gamma', True)}, beta={gamma.format('beta', True)}, "
        f"moving_mean={gamma.format('mean', False)}, "
        f"moving_variance={gamma.format('variance', False)}"
    )
    expected = {
        nn.MaxPool2d(2, 2): "MaxPool2d(kernel_size=2, stride=2, pad_mode=VALID)",
        nn.AvgPool2d((2, 3), 2, "same"): ("AvgPool2d(kernel_size=(2, 3), stride=2, pad_mode=SAME)"),
        nn.BatchNorm1d(3): f"BatchNorm1d(num_features=3, eps=1e-05, momentum=0.9, {statistics})",
        nn.GroupNorm(1, 2): "GroupNorm(num_groups=1, num_channels=2)",
        nn.Embedding(5, 3): (
            "Embedding(vocab_size=5, embedding_size=3, use_one_hot=False, "
            "embedding_table=Parameter (name=embedding_table, shape=(5, 3), dtype=Float32, "
            "requires_grad=True), dtype=Float32, padding_idx=None)"
        ),
        nn.Dropout(p=0.3): "Dropout(p=0.3)",
        nn.Dropout(0.8): "Dropout(keep_prob=0.8)",
        nn.Softmax(): "Softmax()",
        nn.CrossEntropyLoss(): "CrossEntropyLoss()",
    }
    for cell, text in expected.items():
        assert str(cell) == text
    text = str(nn.Conv2d(2, 3, 3))
    assert text.startswith(
        "Conv2d(input_channels=2, output_channels=3, kernel_size=(3, 3), stride=(1, 1), "
        "pad_mode=same, padding=0, dilation=(1, 1), group=1, has_bias=False, weight_init="
    )
    assert text.endswith(", bias_init=None, format=NCHW)")


# Mixed precision ---------------------------------------------------------------------------------


class Watched(nn.Cell):
    """Notes the dtypes that pass between its layers."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.bn = nn.BatchNorm2d(3)
        self.fc = nn.Dense(48, 4)
        self.ln = nn.LayerNorm((4,))
        self.scale = Parameter(Tensor(np.ones((4,), np.float32)), name="scale")
        self.flat = nn.Flatten()

    def construct(self, x):
        conv = self.conv(x)
        bn = self.bn(conv)
        fc = self.fc(self.flat(bn))
        ln = self.ln(fc)
        scaled = ln * self.scale
        self.__dict__["seen"] = [str(t.dtype) for t in (conv, bn, fc, ln, scaled)]
        return scaled


HALF, SINGLE = "Float16", "Float32"


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("O0", [SINGLE] * 5),
        ("O1", [SINGLE] * 5),
        ("O2", [HALF] * 5),
        ("O3", [HALF] * 5),
        ("auto", [HALF, SINGLE, HALF, SINGLE, SINGLE]),
    ],
)
def test_dtypes_of_a_level(mode, level, expected):
    net = ms.amp.auto_mixed_precision(Watched(), level)
    x = Tensor(normal(2, 2, 4, 4).astype(np.float32))
    assert net(x).dtype == ms.float32
    assert net.seen == expected
    gradients = ms.grad(lambda t: net(t).sum(), 0, net.trainable_params())(x)
    assert gradients[0].dtype == ms.float32
    assert {g.dtype for g in gradients[1]} == {ms.float32}
    assert {p.dtype for p in net.get_parameters()} == {ms.float32}


def test_a_level_rounds_what_it_computes():
    x = normal(8, 30).astype(np.float32)
    net = nn.Dense(30, 5)
    exact = net(Tensor(x)).asnumpy()
    ms.amp.auto_mixed_precision(net, "O1")
    rounded = net(Tensor(x)).asnumpy()
    assert rounded.dtype == np.float32
    assert 0 < np.abs(rounded - exact).max() < 1e-2
    np.testing.assert_array_equal(rounded, rounded.astype(np.float16))


@pytest.mark.parametrize(("dtype", "overflows"), [(ms.float16, True), (ms.bfloat16, False)])
def test_half_types_overflow_as_stored(mode, dtype, overflows):
    net = nn.Dense(1, 1, weight_init=Tensor([[300.0]]), has_bias=False).to_float(dtype)
    out = net(Tensor([[300.0]]))
    assert out.dtype == dtype
    assert np.isinf(out.asnumpy().astype(np.float32)).all() == overflows


def test_half_gradients_underflow_as_stored(mode):
    net = nn.Dense(1, 1, weight_init=Tensor([[1e-3]]), has_bias=False).to_float(ms.float16)
    small = ms.grad(lambda x: net(x).astype(ms.float32) * 1e-6)(Tensor([[1.0]]))
    np.testing.assert_array_equal(small.asnumpy(), 0)
    scaled = ms.grad(lambda x: net(x).astype(ms.float32) * 1e-6 * 1024)(Tensor([[1.0]]))
    np.testing.assert_allclose(scaled.asnumpy() / 1024, 1e-9, rtol=0.05)


@pytest.mark.parametrize(("dtype", "digits"), [(ms.float16, 2e-2), (ms.bfloat16, 1e-1)])
@pytest.mark.parametrize(
    ("factory", "shape"),
    [
        (lambda: nn.Dense(6, 4, activation="gelu"), (5, 6)),
        (lambda: nn.Conv2d(3, 4, 3, has_bias=True), (2, 3, 5, 5)),
        (lambda: nn.MaxPool2d(2, 2), (2, 3, 4, 4)),
        (lambda: nn.AvgPool2d(3, 2, "same"), (2, 3, 5, 5)),
        (lambda: nn.BatchNorm1d(6).set_train(), (8, 6)),
        (lambda: nn.LayerNorm((6,)), (5, 6)),
        (lambda: nn.GroupNorm(2, 4), (3, 4, 5)),
        (lambda: nn.LogSoftmax(), (5, 6)),
    ],
    ids=[
        "Dense",
        "Conv2d",
        "MaxPool2d",
        "AvgPool2d",
        "BatchNorm",
        "LayerNorm",
        "GroupNorm",
        "soft",
    ],
)
def test_layers_in_half_types(factory, shape, dtype, digits):
    cell = factory()
    x = Tensor(normal(*shape).astype(np.float32))
    weights = Tensor(normal(*cell(x).shape).astype(np.float32))

    def f(t):
        return (cell(t).astype(ms.float32) * weights).sum()

    exact, slope = cell(x).asnumpy(), ms.grad(f)(x).asnumpy()
    cell.to_float(dtype)
    out = cell(x)
    assert out.dtype == dtype
    np.testing.assert_allclose(out.asnumpy().astype(np.float32), exact, atol=digits * 2)
    rounded = ms.grad(f)(x).asnumpy()
    assert rounded.dtype == np.float32
    np.testing.assert_allclose(rounded, slope, atol=digits * 5)


def test_to_float_of_one_cell(mode):
    net = Watched()
    net.fc.to_float(ms.float16)
    net(Tensor(normal(2, 2, 4, 4).astype(np.float32)))
    assert net.seen == [SINGLE, SINGLE, HALF, HALF, SINGLE]
    net.to_float(ms.float32)
    net(Tensor(normal(2, 2, 4, 4).astype(np.float32)))
    assert net.seen == [SINGLE] * 5


def test_batch_norm_keeps_whole_statistics_in_half_precision():
    cell = nn.BatchNorm1d(1).to_float(ms.float16)
    cell.set_train()
    x = np.full((4, 1), 1 / 3, np.float16)
    cell(Tensor(x))
    np.testing.assert_allclose(cell.moving_mean.asnumpy(), 0.1 * x[0].astype(np.float64), rtol=1e-6)


def test_custom_mixed_precision():
    x = Tensor(normal(2, 2, 4, 4).astype(np.float32))
    net = ms.amp.custom_mixed_precision(Watched(), white_list=[nn.Dense])
    assert net(x).dtype == ms.float32
    net = ms.amp.custom_mixed_precision(Watched(), black_list=[nn.Dense], dtype=ms.bfloat16)
    assert net(x).dtype == ms.float32
    assert net.seen == ["BFloat16"] * 5
    assert nn.Dense in ms.amp.get_white_list() and nn.BatchNorm2d in ms.amp.get_black_list()


def test_mixed_precision_refuses():
    net = nn.Dense(1, 1)
    with pytest.raises(ValueError, match="O5 is not supported"):
        ms.amp.auto_mixed_precision(net, "O5")
    with pytest.raises(TypeError, match="should be Cell"):
        ms.amp.auto_mixed_precision(3, "O1")
    with pytest.raises(ValueError, match="float16"):
        ms.amp.auto_mixed_precision(net, "O1", ms.int32)
    with pytest.raises(ValueError, match="one of white_list and black_list"):
        ms.amp.custom_mixed_precision(net)
    with pytest.raises(ValueError, match="at the same time"):
        ms.amp.custom_mixed_precision(net, white_list=[nn.Dense], black_list=[nn.ReLU])
    with pytest.raises(TypeError, match="should be list"):
        ms.amp.custom_mixed_precision(net, white_list=nn.Dense)
    with pytest.raises(TypeError, match="should be a class"):
        ms.amp.custom_mixed_precision(net, white_list=["a"])


# What every cell can do ---------------------------------------------------------------------------


def test_hooks(mode):
    net = nn.SequentialCell(nn.Dense(2, 1, "ones", "zeros"))
    x = Tensor([[1.0, 2.0]])
    after = net[0].register_forward_hook(lambda cell, inputs, out: out * 10)
    assert float(net(x)) == 30
    before = net[0].register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 0,))
    assert float(net(x)) == 0
    before.remove()
    assert float(net(x)) == 30
    np.testing.assert_array_equal(ms.grad(net)(x).asnumpy(), [[10, 10]])
    after.remove()
    assert float(net(x)) == 3
    with pytest.raises(TypeError):
        net.register_forward_hook(3)


def test_a_parameter_in_a_text():
    bias = nn.Dense(2, 1).bias
    text = "Parameter (name=bias, shape=(1,), dtype=Float32, requires_grad=True)"
    assert f"{bias}" == str(bias) == text


def test_flags_and_names():
    net = nn.SequentialCell(nn.Dense(2, 1))
    assert net.add_flags(a=True) is net and net.a and net.get_flags() == {"a": True}
    assert net.add_flags_recursive(b=2)[0].b == 2
    net.update_cell_prefix()
    assert net[0].param_prefix == "0"
    assert list(net.state_dict()) == ["0.weight", "0.bias"]
    net.check_names()
    net[0].bias.name = "0.weight"
    with pytest.raises(ValueError, match=r"0\.weight"):
        net.check_names()


def test_what_may_replace_an_attribute():
    net = nn.SequentialCell(nn.Dense(2, 1))
    dense = net[0]
    with pytest.raises(TypeError, match="Parameter 'weight' already exists in network"):
        dense.weight = 3
    with pytest.raises(TypeError, match="Sub cell 'inner' already exists in network"):
        dense.inner = nn.ReLU()
        dense.inner = 3
    dense.weight = Tensor([[5.0, 6.0]])
    np.testing.assert_array_equal(dense.weight.asnumpy(), [[5, 6]])
    with pytest.raises(KeyError):
        dense.insert_child_to_cell("a.b", nn.ReLU())
    with pytest.raises(KeyError):
        dense.insert_param_to_cell("inner", Parameter(Tensor([1.0]), name="q"))


def test_a_derivative_of_one_s_own_is_refused():
    class Own(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, dout):
            return (dout,)

    with pytest.raises(NotImplementedError, match="bprop"):
        Own()(Tensor([1.0]))


def test_pickled_cells_give_the_same():
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Dense(32, 3))
    x = Tensor(normal(2, 1, 4, 4).astype(np.float32))
    twin = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(twin(x).asnumpy(), net(x).asnumpy())
    assert [p.name for p in twin.get_parameters()] == [p.name for p in net.get_parameters()]


def test_training_and_evaluation_are_compiled_apart(mode):
    net = nn.SequentialCell(nn.BatchNorm1d(2), nn.Dropout(p=0.5))
    x = Tensor(normal(50, 2).astype(np.float32))
    first = net(x).asnumpy()
    net.set_train()
    assert (net(x).asnumpy() == 0).any()
    net.set_train(False)
    assert not (net(x).asnumpy() == 0).any()
    assert (net(x).asnumpy() != first).any()  # the statistics have moved
