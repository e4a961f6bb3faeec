"""Convolutions and poolings against plain loops, gradients against central differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from nn_checks import check_gradients, normal

import gradcell as ms
from gradcell import Tensor, nn, ops

F64 = ms.float64


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


def test_means_over_windows_have_no_indices() -> None:
    image = Tensor(np.ones((1, 1, 4, 4), np.float32))
    for pool in (ops.adaptive_avg_pool2d, ops.adaptive_avg_pool1d, ops.adaptive_avg_pool3d):
        with pytest.raises(TypeError, match="return_indices"):
            pool(image, 2, return_indices=True)
