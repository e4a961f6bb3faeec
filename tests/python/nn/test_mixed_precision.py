"""Mixed precision: dtypes by level, rounding, layers in half types."""

from __future__ import annotations

import numpy as np
import pytest
from nn_checks import normal

import gradcell as ms
from gradcell import Parameter, Tensor, nn, ops


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


@pytest.mark.parametrize(("dtype", "digits"), [(ms.float16, 5e-3), (ms.bfloat16, 4e-2)])
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
    x = Tensor(normal(*shape), dtype).astype(ms.float32)  # so that rounding makes no ties
    weights = Tensor(normal(*cell(x).shape).astype(np.float32))

    def f(t):
        return (cell(t).astype(ms.float32) * weights).sum()

    exact, slope = cell(x).asnumpy(), ms.grad(f)(x).asnumpy()
    cell.to_float(dtype)
    out = cell(x)
    assert out.dtype == dtype
    np.testing.assert_allclose(out.asnumpy().astype(np.float32), exact, atol=digits)
    rounded = ms.grad(f)(x).asnumpy()
    assert rounded.dtype == np.float32
    np.testing.assert_allclose(rounded, slope, atol=2 * digits)


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


def test_primitives_of_a_cell_compute_in_half_at_level_o1():
    """The numbers are MindSpore 2.10's: the product rounds its inputs, tanh does not."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = ms.Parameter(Tensor(np.full((3, 2), 1 + 2**-12, np.float32)), "w")
            self.product, self.relu, self.tanh = ops.MatMul(), ops.ReLU(), ops.Tanh()
            self.dense = nn.Dense(2, 2, "ones", "zeros")

        def construct(self, x):
            y = self.relu(self.product(x, self.w))
            t = self.tanh(x)
            return y, t, self.dense(t[:, :2])

    net = ms.amp.auto_mixed_precision(Net(), "O1")
    x = Tensor(np.array([[1 + 2**-12, 0.3, 1 + 2**-12]], np.float32))
    found = net(x)
    assert [y.dtype for y in found] == [ms.float32] * 3
    np.testing.assert_allclose([float(y[0, 0]) for y in found], [2.3007812, 0.7616967, 1.0527344])
    assert ops.MatMul in ms.amp.get_white_list()
    slope = ms.grad(lambda w: net(x)[0].sum(), None, net.w)(x)
    assert slope.dtype == ms.float32
    np.testing.assert_allclose(slope[:, 0], np.float16(x.asnumpy()[0]), rtol=1e-3)


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


ones = lambda *shape: Tensor(np.ones(shape, np.float32))  # noqa: E731
MODERN = {
    "convolutions": (
        lambda: nn.SequentialCell(nn.Conv3d(2, 3, 3), nn.BatchNorm3d(3)),
        [(1, 2, 4, 4, 2)],
    ),
    "transposed": (
        lambda: nn.SequentialCell(nn.Conv2dTranspose(2, 3, 3), nn.ReLU()),
        [(1, 2, 4, 4)],
    ),
    "recurrent": (lambda: nn.LSTM(3, 4), [(5, 2, 3)]),
    "cell": (lambda: nn.GRUCell(3, 4), [(2, 3), (2, 4)]),
    "attention": (lambda: nn.MultiheadAttention(4, 2), [(3, 2, 4)] * 3),
    "transformer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0), [(3, 2, 4)]),
}


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
@pytest.mark.parametrize("name", MODERN)
def test_layers_of_sequences_and_volumes(mode, name, level):
    """The output is float32, near to that without mixed precision, and so are the gradients."""
    make, shapes = MODERN[name]
    net = make()
    inputs = [ones(*s) for s in shapes]

    def out(*xs):
        y = net(*xs)
        return y[0] if isinstance(y, tuple) else y

    plain = out(*inputs).asnumpy()
    ms.amp.auto_mixed_precision(net, level)
    mixed = out(*inputs)
    assert mixed.dtype == ms.float32
    np.testing.assert_allclose(mixed.asnumpy(), plain, rtol=2e-2, atol=2e-3)
    for p, g in zip(
        net.trainable_params(),
        ms.grad(lambda *xs: out(*xs).sum(), None, net.trainable_params())(*inputs),
        strict=True,
    ):
        assert g.dtype == p.dtype == ms.float32
