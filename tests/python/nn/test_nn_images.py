"""Convolutions' transposes, poolings, resizing, paddings and image comparisons against NumPy, their
derivatives, bad input. Their values are compared with MindSpore's in test_agreement.py too.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from check_grads import check_grads
from image_references import halved, ssim
from nn_checks import check_gradients

import gradcell as gc
from gradcell import Tensor, nn, ops

F64 = gc.float64
RNG = np.random.default_rng(3)


def normal(*shape):
    return RNG.standard_normal(shape)


# Convolutions ---------------------------------------------------------------------------------------

PAIRS = [
    (nn.Conv1d, nn.Conv1dTranspose, (7,), {"kernel_size": 3, "stride": 2}),
    (nn.Conv1d, nn.Conv1dTranspose, (8,), {"kernel_size": 4, "pad_mode": "pad", "padding": 1}),
    (
        nn.Conv2d,
        nn.Conv2dTranspose,
        (6, 8),
        {"kernel_size": (3, 2), "stride": 2, "dilation": (1, 2)},
    ),
    (nn.Conv2d, nn.Conv2dTranspose, (5, 6), {"kernel_size": 2, "pad_mode": "valid", "group": 2}),
    (nn.Conv3d, nn.Conv3dTranspose, (4, 3, 4), {"kernel_size": 2, "stride": 2, "pad_mode": "same"}),
]


@pytest.mark.parametrize("k", range(len(PAIRS)))
def test_transposed_is_the_adjoint(mode, k):
    """<conv(x), y> = <x, transpose(y)> for the same weights."""
    forward, backward, sizes, options = PAIRS[k]
    conv = forward(2, 4, dtype=F64, **options)
    back = backward(4, 2, dtype=F64, **options)
    back.weight.set_data(conv.weight)
    x = normal(2, 2, *sizes)
    out = conv(Tensor(x))
    y = normal(*out.shape)
    returned = back(Tensor(y)).asnumpy()
    kept = tuple(slice(0, min(n, m)) for n, m in zip(returned.shape[2:], sizes, strict=True))
    if options.get("stride", 1) == 1 or all(n % 2 == 0 for n in sizes):
        assert returned.shape == x.shape
    inner = (x[(..., *kept)] * returned[(..., *kept)]).sum()
    if returned.shape == x.shape:
        np.testing.assert_allclose((out.asnumpy() * y).sum(), inner, rtol=1e-10)


TRANSPOSED = [
    (nn.Conv1dTranspose(2, 3, 3, 2, has_bias=True, dtype=F64), (2, 2, 4)),
    (nn.Conv2dTranspose(4, 2, (3, 2), (1, 2), group=2, has_bias=True, dtype=F64), (1, 4, 3, 2)),
    (nn.Conv2dTranspose(2, 2, 3, 2, "pad", 1, 1, dtype=F64), (1, 2, 3, 3)),
    (nn.Conv3d(2, 2, 2, has_bias=True, dtype=F64), (1, 2, 3, 2, 3)),
    (nn.Conv3dTranspose(2, 2, 2, 2, dtype=F64), (1, 2, 2, 1, 2)),
]


@pytest.mark.parametrize("k", range(len(TRANSPOSED)))
def test_convolution_gradients(k):
    cell, shape = TRANSPOSED[k]
    check_gradients(cell, [normal(*shape)], second=True)


def test_functions_are_the_layers(mode):
    x = normal(2, 4, 6, 5)
    layer = nn.Conv2d(4, 6, 3, 2, "pad", (1, 1, 2, 2), group=2, has_bias=True, dtype=F64)
    out = ops.conv2d(Tensor(x), layer.weight, layer.bias, 2, "pad", (1, 2), 1, 2)
    np.testing.assert_array_equal(out.asnumpy(), layer(Tensor(x)).asnumpy())
    w = normal(3, 4, 2)
    found = ops.conv1d(Tensor(x[:, :, 0]), Tensor(w)).asnumpy()
    expected = sum(np.einsum("ncl,oc->nol", x[:, :, 0, i : i + 4], w[:, :, i]) for i in range(2))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# Poolings -------------------------------------------------------------------------------------------


def adaptive(x, numbers, reduce):
    out = np.zeros((*x.shape[:2], *numbers))
    for at in itertools.product(*map(range, numbers)):
        window = tuple(
            slice(i * n // m, -(-(i + 1) * n // m))
            for i, m, n in zip(at, numbers, x.shape[2:], strict=True)
        )
        out[(..., *at)] = reduce(x[(..., *window)], axis=tuple(range(2, x.ndim)))
    return out


ADAPTIVE = [((7,), (3,)), ((5, 8), (2, 8)), ((4, 3, 5), (3, 2, 1)), ((2, 3), (5, 4))]


@pytest.mark.parametrize(("sizes", "numbers"), ADAPTIVE)
def test_adaptive_poolings(mode, sizes, numbers):
    x = normal(2, 3, *sizes)
    for kind, reduce in (("Avg", np.mean), ("Max", np.max)):
        cell = getattr(nn, f"Adaptive{kind}Pool{len(sizes)}d")(numbers)
        out = cell(Tensor(x)).asnumpy()
        np.testing.assert_allclose(out, adaptive(x, numbers, reduce), rtol=1e-12)
        check_grads(cell, [x], order=2, step=1e-5, tolerance=1e-6)
    if len(sizes) > 1:
        values, at = getattr(nn, f"AdaptiveMaxPool{len(sizes)}d")(numbers, True)(Tensor(x))
        flat = x.reshape(2, 3, -1)
        picked = np.take_along_axis(flat, at.asnumpy().reshape(2, 3, -1).astype(int), 2)
        np.testing.assert_array_equal(picked.reshape(values.shape), values.asnumpy())


def test_pooling_and_unpooling(mode):
    x = normal(2, 3, 4, 6)
    values, at = nn.MaxPool2d(2, 2, return_indices=True)(Tensor(x))
    back = nn.MaxUnpool2d(2)(values, at).asnumpy()
    kept = x == np.repeat(np.repeat(values.asnumpy(), 2, 2), 2, 3)
    np.testing.assert_array_equal(back, np.where(kept, x, 0))
    check_grads(lambda v: nn.MaxUnpool2d(2)(v, at), [values.asnumpy()], order=1)
    with pytest.raises(IndexError):
        nn.MaxUnpool2d(2)(values, at + 1000)


def test_equal_elements_share_nothing():
    """Of equal elements the first takes the gradient, as behind a ReLU."""
    x = Tensor(np.zeros((1, 1, 4, 4)))
    for cell in (nn.MaxPool2d(2, 2), nn.AdaptiveMaxPool2d(2)):
        slope = gc.grad(lambda v, cell=cell: cell(v).sum())(x).asnumpy()[0, 0]
        assert slope[::2, ::2].sum() == slope.sum() == 4


def test_power_means(mode):
    x = RNG.uniform(0.5, 2, (2, 3, 6))
    expected = (x.reshape(2, 3, 3, 2) ** 3).sum(-1) ** (1 / 3)
    np.testing.assert_allclose(nn.LPPool1d(3, 2)(Tensor(x)).asnumpy(), expected, rtol=1e-12)
    check_grads(nn.LPPool1d(3, 2), [x], order=2)


# Resizing and padding -------------------------------------------------------------------------------


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode_name", ["linear", "bilinear", "trilinear", "bicubic"])
def test_resizing_keeps_what_it_can(mode, mode_name, align):
    """Linear interpolation keeps linear functions; all of them keep constants and their own size."""
    rank = {"linear": 1, "trilinear": 3}.get(mode_name, 2)
    sizes = (5, 4, 6)[:rank]
    x = normal(1, 2, *sizes)
    same = ops.interpolate(Tensor(x), sizes, mode=mode_name, align_corners=align)
    np.testing.assert_allclose(same.asnumpy(), x, rtol=1e-12, atol=1e-12)
    ones = ops.interpolate(
        Tensor(np.ones_like(x)), (7,) * rank, mode=mode_name, align_corners=align
    )
    np.testing.assert_allclose(ones.asnumpy(), 1, rtol=1e-12)
    if align and mode_name != "bicubic":
        ramp = np.broadcast_to(np.linspace(0, 1, sizes[-1]), x.shape)
        finer = ops.interpolate(Tensor(np.array(ramp)), (9,) * rank, None, mode_name, True)
        expected = np.broadcast_to(np.linspace(0, 1, 9), finer.shape)
        np.testing.assert_allclose(finer.asnumpy(), expected, atol=1e-12)
    check_grads(lambda v: ops.interpolate(v, (7,) * rank, None, mode_name, align), [x], order=1)


def test_nearest(mode):
    x = normal(1, 2, 3, 4)
    up = ops.interpolate(Tensor(x), scale_factor=2.0, recompute_scale_factor=True)
    np.testing.assert_array_equal(up.asnumpy(), x.repeat(2, 2).repeat(2, 3))
    for n, m in ((7, 3), (3, 7), (10, 9), (1, 4)):
        row = np.arange(n, dtype=float).reshape(1, 1, n)
        found = ops.interpolate(Tensor(row), m).asnumpy()[0, 0]
        assert found.tolist() == [i * n // m for i in range(m)]
        exact = ops.interpolate(Tensor(row), m, mode="nearest-exact").asnumpy()[0, 0]
        assert exact.tolist() == [int((i + 0.5) * n / m) for i in range(m)]


def test_paddings_against_numpy(mode):
    x = normal(2, 3, 4, 5)
    found = nn.Pad(((0, 1), (1, 0), (2, 1), (0, 3)), "SYMMETRIC")(Tensor(x)).asnumpy()
    np.testing.assert_array_equal(found, np.pad(x, ((0, 1), (1, 0), (2, 1), (0, 3)), "symmetric"))
    for cell, name in ((nn.ReflectionPad2d, "reflect"), (nn.ReplicationPad2d, "edge")):
        expected = np.pad(x, ((0, 0), (0, 0), (3, 1), (1, 2)), name)
        np.testing.assert_array_equal(cell((1, 2, 3, 1))(Tensor(x)).asnumpy(), expected)
        check_grads(cell((1, 2, 3, 1)), [x], order=1)


def test_unfold(mode):
    x = normal(1, 2, 5, 6)
    out = nn.Unfold([1, 2, 3, 1], [1, 2, 1, 1], [1, 2, 1, 1])(Tensor(x)).asnumpy()
    assert out.shape == (1, 12, 2, 4)
    for i, j in itertools.product(range(2), range(4)):
        patch = x[0, :, 2 * i : 2 * i + 3 : 2, j : j + 3]  # [channels, rows, columns]
        np.testing.assert_array_equal(out[0, :, i, j], patch.transpose(1, 2, 0).ravel())


# Comparisons ----------------------------------------------------------------------------------------


def test_structural_similarity(mode):
    x, y = RNG.uniform(size=(2, 3, 9, 8)), RNG.uniform(size=(2, 3, 9, 8))
    for size in (5, 4):
        expected = [
            np.mean([ssim(x[i, c], y[i, c], size, 1.2)[0] for c in range(3)]) for i in range(2)
        ]
        found = nn.SSIM(filter_size=size, filter_sigma=1.2)(
            Tensor(x.astype(np.float32)), Tensor(y.astype(np.float32))
        )
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=2e-4, atol=1e-6)
    bytes_x, bytes_y = (np.round(v * 255).astype(np.uint8) for v in (x, y))
    expected = np.mean(
        [ssim(bytes_x[0, c] / 255, bytes_y[0, c] / 255, 5, 1.5)[0] for c in range(3)]
    )
    found = nn.SSIM(255.0, 5)(Tensor(bytes_x), Tensor(bytes_y))
    np.testing.assert_allclose(found.asnumpy()[0], expected, rtol=1e-3, atol=1e-6)
    assert nn.SSIM(filter_size=5)(
        Tensor(x.astype("f")), Tensor(x.astype("f"))
    ).asnumpy() == pytest.approx(1)


def test_similarity_of_scales(mode):
    x = RNG.uniform(size=(1, 1, 12, 12))
    y = np.clip(x + 0.1 * normal(*x.shape), 0, 1)
    small = ssim(halved(x[0, 0]), halved(y[0, 0]), 3, 1.5)[0]
    expected = ssim(x[0, 0], y[0, 0], 3, 1.5)[1] ** 0.3 * small**0.7
    cell = nn.MSSSIM(power_factors=(0.3, 0.7), filter_size=3)
    found = cell(Tensor(x.astype(np.float32)), Tensor(y.astype(np.float32))).asnumpy()
    np.testing.assert_allclose(found[0], expected, rtol=1e-4)


def test_signal_to_noise(mode):
    x, y = RNG.uniform(size=(2, 3, 4, 5)), RNG.uniform(size=(2, 3, 4, 5))
    expected = 10 * np.log10(4.0 / ((x - y) ** 2).mean((1, 2, 3)))
    np.testing.assert_allclose(nn.PSNR(2.0)(Tensor(x), Tensor(y)).asnumpy(), expected, rtol=1e-12)


# Others that MindSpore does not run on a CPU ---------------------------------------------------------


def test_instance_normalisation(mode):
    x = normal(2, 3, 4, 5)
    cell = nn.InstanceNorm2d(3, eps=1e-3, dtype=F64)
    gamma, beta = normal(3), normal(3)
    cell.gamma.set_data(Tensor(gamma))
    cell.beta.set_data(Tensor(beta))
    mean, var = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    expected = (x - mean) / np.sqrt(var + 1e-3) * gamma[:, None, None] + beta[:, None, None]
    for train in (False, True):
        found = cell.set_train(train)(Tensor(x)).asnumpy()
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert [p.name for p in cell.get_parameters()] == ["mean", "variance", "gamma", "beta"]
    check_gradients(cell, [x], second=True)


def test_clipping_and_rolling(mode):
    x = normal(3, 4)
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    expected = x / np.maximum(norms / 1.5, 1)
    np.testing.assert_allclose(
        nn.ClipByNorm(1)(Tensor(x), Tensor(1.5)).asnumpy(), expected, rtol=1e-6
    )
    slope = gc.grad(lambda v: nn.ClipByNorm()(v, 1.0).sum())(Tensor(np.zeros(3)))
    assert slope.asnumpy().tolist() == [1, 1, 1]
    rolled = nn.Roll((1, -2), (0, 1))(Tensor(x)).asnumpy()
    np.testing.assert_array_equal(rolled, np.roll(x, (1, -2), (0, 1)))
    table = nn.EmbeddingLookup(5, 4, "ones", max_norm=1.0)
    np.testing.assert_allclose(table(Tensor([1, 7])).asnumpy(), [[0.5] * 4, [0] * 4], rtol=1e-6)


X = Tensor(np.zeros((1, 2, 4, 4), np.float32))
BAD = [
    (lambda: nn.Conv3d(2, 3, 3)(X), ValueError, "5 dimensions"),
    (lambda: nn.Conv2dTranspose(2, 3, 3, group=2), ValueError, "group"),
    (lambda: nn.Conv2dTranspose(2, 3, 3, 2, "pad", 1, 2), ValueError, "output_padding"),
    (lambda: nn.Conv2dTranspose(2, 3, 3, 2, "same", 0, 1), ValueError, "pad_mode"),
    (lambda: nn.Conv2dTranspose(2, 3, 1, 1, "pad", 3)(X), ValueError, "no output"),
    (lambda: nn.Conv2dTranspose(3, 2, 3)(X), ValueError, "in_channels 3"),
    (lambda: nn.Conv2d(2, 3, 7, pad_mode="valid")(X), ValueError, "reaches over 7"),
    (lambda: nn.Conv3d(2, 3, (1, 2)), ValueError, "tuple of 3"),
    (lambda: nn.Conv3d(2, 3, 1, pad_mode="pad", padding=(1, 2, 3)), ValueError, "6 elements"),
    (lambda: ops.conv2d(X, Tensor(np.zeros((4, 3, 1, 1), "f"))), ValueError, "channels"),
    (lambda: ops.conv2d(X, Tensor(np.zeros((4, 2, 1, 1)))), TypeError, "one type"),
    (lambda: ops.conv2d(X, Tensor(np.zeros((3, 1, 1, 1), "f")), groups=2), ValueError, "groups"),
    (lambda: nn.MaxPool3d(5)(X), ValueError, "reaches over 5"),
    (lambda: nn.AvgPool2d(2, padding=1), ValueError, "pad_mode"),
    (lambda: nn.AdaptiveAvgPool2d((2, 3, 4)), ValueError, "output_size"),
    (lambda: nn.AdaptiveMaxPool2d(0), ValueError, "output_size"),
    (lambda: nn.AdaptiveAvgPool2d(2)(X[..., :0]), ValueError, "no element"),
    (lambda: nn.MaxUnpool2d(2)(X, X), TypeError, "integers"),
    (lambda: nn.LPPool2d(0, 2), ValueError, "norm_type"),
    (lambda: nn.Pad([(0, 1)]), TypeError, "paddings"),
    (lambda: nn.Pad(((0, 0), (0, 0), (9, 0), (0, 0)), "SYMMETRIC")(X), ValueError, "mirrored"),
    (lambda: nn.ReflectionPad2d(4)(X), ValueError, "reflect"),
    (lambda: nn.ReplicationPad2d(-1), ValueError, "padding"),
    (lambda: nn.ConstantPad2d((-3, -3), 0)(X), ValueError, "nothing is left"),
    (lambda: nn.ConstantPad2d((1, 1, 1), 0), ValueError, "padding"),
    (lambda: ops.interpolate(X), ValueError, "exactly one"),
    (lambda: ops.interpolate(X, 3, mode="linear"), ValueError, "3 dimensions"),
    (lambda: ops.interpolate(X, 3, align_corners=True), ValueError, "align_corners"),
    (lambda: ops.interpolate(X, (3, 0)), ValueError, "positive"),
    (lambda: ops.interpolate(X, scale_factor=0.1), ValueError, "no element"),
    (lambda: nn.PixelShuffle(2)(X), ValueError, "divisible by 4"),
    (lambda: nn.PixelUnshuffle(3)(X), ValueError, "divisible by 3"),
    (lambda: nn.ChannelShuffle(3)(X), ValueError, "divisible by 3"),
    (lambda: nn.SSIM()(X, X), ValueError, "filter"),
    (lambda: nn.PSNR()(X, X[:, :1]), ValueError, "one shape"),
    (lambda: nn.CentralCrop(0.0), ValueError, "central_fraction"),
    (lambda: nn.InstanceNorm1d(2)(X), ValueError, "3"),
    (lambda: nn.BiDense(2, 3, 4)(X, X), ValueError, "BiDense"),
    (lambda: nn.Roll((1, 2), 0), ValueError, "Roll"),
    (lambda: nn.Range(0, 3, 0), ValueError, "delta"),
]


@pytest.mark.parametrize("k", range(len(BAD)))
def test_layers_refuse_sizes_that_do_not_fit(k):
    run, error, text = BAD[k]
    with pytest.raises(error, match=text):
        run()
