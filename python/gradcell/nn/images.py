"""Comparisons of images, and crops and slopes of them: (N, C, H, W)."""

from __future__ import annotations

import math
from dataclasses import InitVar
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, fields, publish
from gradcell.nn.cell import Cell
from gradcell.nn.containers import CellList
from gradcell.nn.convolution import Conv2d
from gradcell.ops.networks import pooling, windows


def _largest(dtype: _core.DType) -> float:
    """Return the largest value of a pixel of a dtype: 1 for floats."""
    return 1.0 if dtype.is_floating else float(np.iinfo(dtype.name).max)


def _pair(owner: str, img1: Any, img2: Any, max_val: float) -> tuple[Tensor, Tensor, float]:
    """Both images and their largest value, scaled so that their dtype's largest is 1."""
    for name, image in (("img1", img1), ("img2", img2)):
        image = arguments.tensor(image, owner, name)
        if image.ndim != 4:
            bad_value(
                f"For '{owner}', the '{name}' must be (N, C, H, W), but got shape {list(image.shape)}."
            )
    if img1.shape != img2.shape or img1.dtype != img2.dtype:
        bad_value(
            f"For '{owner}', the images must be of one shape and dtype, but got {list(img1.shape)} "
            f"{img1.dtype} and {list(img2.shape)} {img2.dtype}."
        )
    scale = 1 / _largest(img1.dtype)
    if img1.dtype.itemsize < 4 or not img1.dtype.is_floating:
        img1, img2 = (_ops.cast(image, _core.float32) for image in (img1, img2))
    if scale != 1:
        img1, img2 = _ops.mul(img1, scale), _ops.mul(img2, scale)
    return img1, img2, max_val * scale


class _Structure(Cell):
    """Base class of SSIM and MSSSIM: a Gaussian window and the comparison under it."""

    max_val: float
    filter_size: int
    filter_sigma: float
    k1: float
    k2: float

    def _window(self) -> Conv2d:
        """The convolution with the window, which is not trained."""
        n = self.filter_size
        at = np.arange(-n // 2 + 1, n // 2 + 1, dtype=np.float64)
        bell = np.exp(-(at**2) / (2 * self.filter_sigma**2))
        window = np.multiply.outer(bell, bell)
        start = Tensor((window / window.sum())[None, None].astype(np.float32))
        conv = Conv2d(1, 1, n, pad_mode="valid", weight_init=start)
        conv.weight.requires_grad = False
        return conv

    def _compare(
        self, conv: Cell, img1: Tensor, img2: Tensor, largest: float
    ) -> tuple[Tensor, Tensor]:
        """(similarity, contrast and structure) of each channel, (N, C)."""
        n, channels, h, w = img1.shape
        if min(h, w) < self.filter_size:
            bad_value(
                f"For '{type(self).__name__}', the images must be at least of the filter's size "
                f"{self.filter_size}, but got shape {list(img1.shape)}."
            )
        c1, c2 = (self.k1 * largest) ** 2, (self.k2 * largest) ** 2
        x, y = (_ops.reshape(image, [n * channels, 1, h, w]) for image in (img1, img2))
        mean_x, mean_y = conv(x), conv(y)
        product, squares = mean_x * mean_y, mean_x * mean_x + mean_y * mean_y
        covariance = conv(x * y) - product
        variances = conv(x * x) + conv(y * y) - squares
        structure = (2 * covariance + c2) / (variances + c2)
        similarity = (2 * product + c1) / (squares + c1) * structure
        means = [_ops.mean(part, [1, 2, 3]) for part in (similarity, structure)]
        return _ops.reshape(means[0], [n, channels]), _ops.reshape(means[1], [n, channels])


@fields.declared
class SSIM(_Structure):
    """Structural similarity of two batches of images: (N,), 1 where they are equal.

    Wang et al., Image quality assessment (2004), equation 13, under a Gaussian window of
    filter_size and filter_sigma. max_val: the largest value that a pixel can have. k1, k2: the
    constants. Images of half types and integers are compared in float32. Parameter: conv.weight,
    the window.

    Raises TypeError, ValueError for images that differ in shape or are smaller than the window.
    """

    max_val: float = fields.number(above=0, default=1.0)
    filter_size: int = fields.integer(1, default=11)
    filter_sigma: float = fields.number(above=0, default=1.5)
    k1: float = fields.number(default=0.01)
    k2: float = fields.number(default=0.03)

    def _build(self) -> None:
        self.conv: Conv2d = self._window()

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        x, y, largest = _pair("SSIM", img1, img2, self.max_val)
        return _ops.mean(self._compare(self.conv, x, y, largest)[0], -1)


def _numbers(value: Any, owner: str, name: str) -> Any:
    if not isinstance(value, (tuple, list)) or not value:
        bad_type(f"For '{owner}', the '{name}' must be numbers, but got {value!r}")
    return value


@fields.declared
class MSSSIM(_Structure):
    """Structural similarity over several scales, each half the one before: (N,).

    filter_size: the width of the window. filter_sigma: the standard deviation of the window.

    Wang et al., Multiscale structural similarity (2003), equation 7; power_factors: the exponents,
    one for each scale. Otherwise like SSIM. Parameters: multi_convs_list.0.weight, ...
    """

    max_val: float = fields.number(above=0, default=1.0)
    power_factors: InitVar[Any] = fields.checked(
        _numbers, default=(0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
    )
    filter_size: int = fields.integer(1, default=11)
    filter_sigma: float = fields.number(above=0, default=1.5)
    k1: float = fields.number(default=0.01)
    k2: float = fields.number(default=0.03)

    def _build(self, power_factors: Any) -> None:
        self._powers = [float(p) for p in power_factors]
        self.multi_convs_list: CellList = CellList([self._window() for _ in self._powers])

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        x, y, largest = _pair("MSSSIM", img1, img2, self.max_val)
        product: Any = 1.0
        for k, (conv, power) in enumerate(zip(self.multi_convs_list, self._powers, strict=True)):
            if k:
                x, y = self._half(x), self._half(y)
            similarity, structure = self._compare(conv, x, y, largest)
            part = similarity if k == len(self._powers) - 1 else structure
            product = product * _ops.pow(_ops.relu(part), power)
        return _ops.mean(product, -1)

    @staticmethod
    def _half(x: Tensor) -> Tensor:
        axes = [windows.axis("MSSSIM", n, 2, 2, 1, "valid", (0, 0)) for n in x.shape[2:]]
        return pooling.avg_pool(x, axes, False)


@fields.declared
class PSNR(Cell):
    """The peak signal-to-noise ratio 10 log10(max_val² / mean squared difference) in decibels: (N,).

    max_val: the largest value of a pixel.

    Images of one shape and dtype. Raises TypeError, ValueError.
    """

    max_val: float = fields.number(above=0, default=1.0)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        x, y, largest = _pair("PSNR", img1, img2, self.max_val)
        error = _ops.mean(_ops.square(_ops.sub(x, y)), [1, 2, 3])
        return _ops.mul(_ops.log(_ops.div(largest**2, error)), 10 / math.log(10))


@fields.declared
class CentralCrop(Cell):
    """The middle of images (C, H, W) or (N, C, H, W): central_fraction of height and width.

    central_fraction: above 0, at most 1. Raises TypeError, ValueError unless 0 < central_fraction
    <= 1.
    """

    central_fraction: float = fields.number(above=0, most=1)

    def construct(self, image: Tensor) -> Tensor:
        image = arguments.of_rank(image, [3, 4], "CentralCrop")
        outer, sizes = list(image.shape[:-2]), image.shape[-2:]
        starts = [int((n - n * self.central_fraction) / 2) for n in sizes]
        kept = [n - 2 * start for n, start in zip(sizes, starts, strict=True)]
        begin = [0] * len(outer) + starts
        return _ops.slice(image, begin, [*outer, *kept], [1] * image.ndim)


class ImageGradients(Cell):
    """(differences down, differences across) of images (N, C, H, W), 0 in the last row or column."""

    def construct(self, images: Tensor) -> tuple[Tensor, Tensor]:
        images = arguments.of_rank(images, [4], "ImageGradients")
        return self._along(images, 2), self._along(images, 3)

    @staticmethod
    def _along(x: Tensor, axis: int) -> Tensor:
        dims, begin, zeros = list(x.shape), [0] * 4, [0] * 4
        dims[axis], begin[axis] = max(x.shape[axis] - 1, 0), 1
        later = _ops.slice(x, begin if dims[axis] else zeros, dims, [1] * 4)
        step = _ops.sub(later, _ops.slice(x, zeros, dims, [1] * 4))
        return _ops.slice_scatter(step, list(x.shape), zeros, [1] * 4)


publish(globals())
