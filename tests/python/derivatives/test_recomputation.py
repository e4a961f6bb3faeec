"""Values that later stages compute again instead of loading them: what plans store, and results
against NumPy's float64."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, nn, ops

RNG = np.random.default_rng(7)


def regions(text: str) -> list[str]:
    return re.split(r"\n  (?=region|call)", text)[1:]


def layer(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    h = ops.matmul(x, w)
    return ops.square(ops.matmul(h * ops.sigmoid(1.702 * h), v)).sum()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_an_activation_is_computed_again(dtype: str) -> None:
    """Between products of whole matrices, of h and y = h sigmoid(c h) both are there: the sigmoid of
    float32 is not stored besides."""
    kind = getattr(ms, dtype)
    x, w, v = (
        Tensor(RNG.standard_normal(s) / 25).astype(kind)
        for s in ((64, 600), (600, 620), (620, 610))
    )
    text = ms.plan_text(ms.grad(layer, (1, 2)), x, w, v)
    parts = [r for r in regions(text) if r.startswith("region")]
    forward = next(r for r in parts if "sigmoid" in r)
    if dtype != "float64":
        assert forward.count("store") == 1
        assert sum("sigmoid" in r for r in parts) == 2
    got = [g.astype(ms.float64).asnumpy() for g in ms.grad(layer, (1, 2))(x, w, v)]
    x64, w64, v64 = (t.astype(ms.float64).asnumpy() for t in (x, w, v))
    h = x64 @ w64
    s = 1 / (1 + np.exp(-1.702 * h))
    dz = 2 * (h * s) @ v64
    dh = dz @ v64.T * (s + h * 1.702 * s * (1 - s))
    for g, exact in zip(got, (x64.T @ dh, (h * s).T @ dz), strict=True):
        bound = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 3e-2}[dtype]
        assert np.abs(g - exact).max() <= bound * np.abs(exact).max()


def test_a_scale_of_channels_is_not_spread_in_memory() -> None:
    net = nn.SequentialCell(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3))
    net.set_train()
    x = Tensor(RNG.standard_normal((4, 3, 32, 32)).astype(np.float32))
    text = ms.plan_text(ms.grad(lambda x: net(x).sum(), None, net.trainable_params()), x)
    assert not re.search(r"rows=4096 .*\n(?:    .*\n)*    v\d+ = copy u", text)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_table_of_places_does_not_break_up_what_follows(dtype: type) -> None:
    """x + table, the table being the same for all of a batch; then a normalisation by rows."""
    x, table = (
        RNG.standard_normal((8, 128, 64)).astype(dtype),
        RNG.standard_normal((128, 64)).astype(dtype),
    )

    def f(x: Tensor, table: Tensor) -> Tensor:
        y = x + table
        y = y - y.mean(2, keep_dims=True)
        return ops.exp(y * ops.rsqrt(ops.square(y).mean(2, keep_dims=True) + 1e-5))

    text = ms.plan_text(f, Tensor(x), Tensor(table))
    assert sum("store" in r for r in regions(text) if r.startswith("region")) <= 2
    y = x.astype(float) + table
    y -= y.mean(2, keepdims=True)
    exact = np.exp(y / np.sqrt((y * y).mean(2, keepdims=True) + 1e-5))
    got = f(Tensor(x), Tensor(table)).asnumpy()
    np.testing.assert_allclose(got, exact, rtol=3e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("rows", [256, 250])
def test_tiles_between_regions(rows: int) -> None:
    """What regions with products pass on lies in blocks of rows, or, where they do not divide, by
    features."""
    w = [RNG.standard_normal(s) / 8 for s in ((70, 90), (90, 40), (40, 8))]
    x = RNG.standard_normal((rows, 70))

    def f(x: Tensor, *w: Tensor) -> Tensor:
        h = ops.tanh(ops.matmul(x, w[0]))
        h = h - h.mean(0)
        h = ops.tanh(ops.matmul(h, w[1]))
        return (ops.matmul(h - h.mean(0), w[2]) ** 2).sum()

    def exact(x: np.ndarray, *w: np.ndarray) -> float:
        h = np.tanh(x @ w[0])
        h = np.tanh((h - h.mean(0)) @ w[1])
        return float((((h - h.mean(0)) @ w[2]) ** 2).sum())

    arguments = [Tensor(a) for a in (x, *w)]
    np.testing.assert_allclose(f(*arguments).asnumpy(), exact(x, *w), rtol=1e-12)
    for k, gradient in enumerate(ms.grad(f, (0, 1, 2, 3))(*arguments)):
        direction = RNG.standard_normal(gradient.shape)
        moved = [[*(x, *w)], [*(x, *w)]]
        for sign, m in zip((1, -1), moved, strict=True):
            m[k] = m[k] + sign * 1e-5 * direction
        slope = (exact(*moved[0]) - exact(*moved[1])) / 2e-5
        np.testing.assert_allclose((gradient.asnumpy() * direction).sum(), slope, rtol=1e-6)
    single = [Tensor(a.astype(np.float32)) for a in (x, *w)]
    for g, wide in zip(
        ms.grad(f, (0, 1, 2, 3))(*single), ms.grad(f, (0, 1, 2, 3))(*arguments), strict=True
    ):
        scale = np.abs(wide.asnumpy()).max()
        np.testing.assert_allclose(g.asnumpy(), wide.asnumpy(), rtol=0, atol=2e-5 * scale)


@pytest.mark.parametrize("size", [32, 8, 7])
def test_rounded_numbers_of_images_that_are_stored_wide(size: int) -> None:
    """Channels of images lie apart in memory: their roundings stay in tiles."""
    x = Tensor(RNG.standard_normal((4, 8, size, size)).astype(np.float32))
    shift = Tensor(np.arange(8, dtype=np.float32).reshape(8, 1, 1))

    def f(x: Tensor) -> Tensor:
        y = ops.exp(x + shift).astype(ms.bfloat16).astype(ms.float32)
        return y - y.sum((0, 2, 3), keepdims=True)

    y = ops.exp(x + shift).astype(ms.bfloat16).astype(ms.float64).asnumpy()
    exact = y - y.sum((0, 2, 3), keepdims=True)
    scale = np.abs(exact).max((0, 2, 3), keepdims=True)
    assert (np.abs(f(x).asnumpy() - exact) / scale).max() < 1e-5


@pytest.mark.parametrize("rows", [256, 250, 4096])
@pytest.mark.parametrize("kind", [ms.bfloat16, ms.float16])
def test_rounded_tiles_between_regions(rows: int, kind: ms.DType) -> None:
    """What is rounded on the way to a later stage is rounded in all its features."""
    x, w = (Tensor((RNG.standard_normal(s) / 3).astype(np.float32)) for s in ((rows, 70), (70, 90)))

    def rounded(x: Tensor, w: Tensor) -> Tensor:
        return ops.tanh(ops.matmul(x, w)).astype(kind).astype(ms.float32)

    def f(x: Tensor, w: Tensor) -> Tensor:
        h = rounded(x, w)
        return ops.exp(h - h.mean(0))

    y = rounded(x, w).asnumpy().astype(float)
    exact = np.exp(y - y.mean(0))
    np.testing.assert_allclose(f(x, w).asnumpy(), exact, rtol=2e-6)


@pytest.mark.parametrize("rows", [1024, 4096, 16384])
@pytest.mark.parametrize("features", [2, 3, 16])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounded_values_that_a_later_stage_reads(rows: int, features: int, dtype: str) -> None:
    """x w rounded to a half type, of which a later stage takes the mean away: a tile's features lie
    apart in what is stored between the stages, and each of them is rounded."""
    half = getattr(ms, dtype)

    def centred(x: Tensor, w: Tensor) -> Tensor:
        y = (x * w).astype(half).astype(ms.float32)
        return y - y.sum(0) / rows

    x, w = (RNG.standard_normal((rows, features)).astype(np.float32) for _ in range(2))
    y = x * w
    if dtype == "float16":
        y = y.astype(np.float16)
    else:  # to nearest even
        bits = y.view(np.uint32)
        y = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)
    rounded = y.astype(np.float64)
    got = ms.jit(centred)(Tensor(x), Tensor(w)).asnumpy()
    np.testing.assert_allclose(got, rounded - rounded.mean(0), rtol=0, atol=2e-6)
