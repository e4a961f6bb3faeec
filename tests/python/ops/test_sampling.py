"""Sums of elements at places that channels share: all numbers of channels, places at zeros, dtypes;
and grid_sample, which is made of them, against plain loops."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, _core, ops

core = _core.ops
RNG = np.random.default_rng(7)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("places", [1, 3, 4])
@pytest.mark.parametrize("channels", [1, 2, 5, 6, 7, 13])
def test_the_three_parts(channels: int, places: int, dtype: str) -> None:
    """By each of the form's tensors: they are each other's adjoints, and the first is as written."""
    batch, size, results = 2, 40, 300
    at = RNG.integers(0, size, (batch, places, results)).astype(np.int32)
    at[0, :, RNG.integers(0, results, 9)] = -1  # whole results, and single places
    at[1, 0, RNG.integers(0, results, 30)] = -1
    x, w, y = (
        RNG.normal(size=s).astype(dtype)
        for s in ((batch, channels, size), at.shape, (batch, channels, results))
    )
    wide = [a.astype(np.float64) for a in (x, w, y)]
    padded = np.concatenate([wide[0], np.zeros((batch, channels, 1))], 2)
    taken = np.stack([padded[b][:, at[b]] for b in range(batch)])  # [b, c, k, i]
    onto = np.zeros((batch, channels, size + 1))
    for b, k in itertools.product(range(batch), range(places)):
        np.add.at(onto[b], (slice(None), at[b, k]), wide[2][b] * wide[1][b, k])
    wanted = (
        np.einsum("bcki,bki->bci", taken, wide[1]),
        onto[..., :size],
        np.einsum("bcki,bci->bki", taken, wide[2]),
    )
    tx, ta, tw, ty = map(Tensor, (x, at, w, y))
    found = (
        core.sample(tx, ta, tw),
        core.sample_source(ty, ta, tw, size),
        core.sample_weight(tx, ta, ty),
    )
    bound = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
    for f, t in zip(found, wanted, strict=True):
        assert str(f.dtype).lower() == dtype
        assert np.abs(f.asnumpy().astype(np.float64) - t).max() <= bound * max(1, np.abs(t).max())


def test_a_place_at_a_zero_reads_no_element() -> None:
    x = Tensor(np.array([[[np.inf, 2.0]]]))
    at = Tensor(np.array([[[-1, 1], [1, -1]]], np.int32))
    w = Tensor(np.array([[[3.0, 5.0], [7.0, 11.0]]]))
    np.testing.assert_array_equal(core.sample(x, at, w).asnumpy(), [[[14.0, 10.0]]])
    y = Tensor(np.array([[[1.0, 1.0]]]))
    np.testing.assert_array_equal(core.sample_source(y, at, w, 2).asnumpy(), [[[0.0, 12.0]]])
    np.testing.assert_array_equal(
        core.sample_weight(x, at, y).asnumpy(), [[[0.0, 2.0], [2.0, 0.0]]]
    )


def reflected(v: float, low: float, span: float) -> float:
    v = abs(v - low) % (2 * span) if span else 0.0
    return low + (2 * span - v if v > span else v)


def plain(x: np.ndarray, grid: np.ndarray, mode: str, padding: str, corners: bool) -> np.ndarray:
    """What grid_sample's docstring says, pixel by pixel."""
    n, c, h, w = x.shape
    out = np.zeros((n, c, *grid.shape[1:3]))
    for b, i, j in np.ndindex(n, *grid.shape[1:3]):
        place = []
        for g, size in ((grid[b, i, j, 1], h), (grid[b, i, j, 0], w)):
            v = (g + 1) / 2 * (size - 1) if corners else ((g + 1) * size - 1) / 2
            if padding == "reflection":
                v = reflected(v, 0, size - 1) if corners else reflected(v, -0.5, size)
            if padding != "zeros":
                v = min(max(v, 0), size - 1)
            place.append(v)
        for dy, dx in itertools.product((0, 1), (0, 1)):
            if mode == "nearest":
                r, q, weight = round(place[0]), round(place[1]), float(dy == dx == 0)
            else:
                r, q = math.floor(place[0]) + dy, math.floor(place[1]) + dx
                weight = (1 - abs(place[0] - r)) * (1 - abs(place[1] - q))
            if 0 <= r < h and 0 <= q < w:
                out[b, :, i, j] += weight * x[b, :, r, q]
    return out


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample(mode: str, padding: str, corners: bool) -> None:
    x, grid = RNG.normal(size=(2, 7, 4, 5)), RNG.uniform(-2.5, 2.5, (2, 6, 3, 2))
    grid[0, 0, 0], grid[1, 2, 1] = (1e9, -1e9), (-1.0, 1.0)
    if padding == "reflection":
        grid[0, 0, 0] = (7.3, -6.1)
    found = ops.grid_sample(Tensor(x), Tensor(grid), mode, padding, corners).asnumpy()
    np.testing.assert_allclose(found, plain(x, grid, mode, padding, corners), atol=1e-12)


@pytest.mark.parametrize("padding", ["zeros", "border"])
def test_grid_sample_of_mixed_dtypes_and_no_number(padding: str) -> None:
    x = Tensor(RNG.normal(size=(1, 2, 3, 3)).astype(np.float32))
    grid = np.array([[[[0.2, 0.1], [np.nan, 0.0], [0.3, np.nan]]]])
    found = ops.grid_sample(x, Tensor(grid), "bilinear", padding)
    assert found.dtype == ms.float64
    assert np.isnan(found.asnumpy())[0, 0, 0].tolist() == [False, True, True]


def test_derivatives_of_grid_sample_beyond_the_image() -> None:
    """Out there nothing depends on the grid."""
    x = Tensor(RNG.normal(size=(1, 2, 3, 3)))
    grid = Tensor(np.array([[[[5.0, 0.1], [0.2, -9.0], [0.2, 0.1]]]]))

    def by_grid(padding: str) -> Any:
        return ms.grad(lambda g: ops.grid_sample(x, g, "bilinear", padding).sum())(grid).asnumpy()[
            0, 0
        ]

    zeros, border = by_grid("zeros"), by_grid("border")
    assert zeros[:2].tolist() == [[0, 0], [0, 0]]
    assert border[0, 0] == 0
    assert border[1, 1] == 0
    assert (zeros[2] != 0).all()
