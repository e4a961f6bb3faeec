"""The base of the transforms of images: options, conversion of images, resampling.

An image is an array of [height, width, channels] or [height, width], other axes before them; or an
image of Pillow, which comes back as one.
"""

from __future__ import annotations

import enum
import functools
import importlib
from typing import Any

import numpy as np

from gradcell.base import arguments, bad_type, bad_value, fields, unsupported
from gradcell.dataset.rows import as_array
from gradcell.dataset.transforms import TensorOperation
from gradcell.dataset.workers import generator

__all__ = ["Border", "Inter"]


class Inter(enum.IntEnum):
    """The methods of interpolation."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, enum.Enum):
    """The ways to pad an image."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


def pillow(module: str = "Image") -> Any:
    """A module of Pillow's. Raises ImportError that says how to get it."""
    try:
        return importlib.import_module(f"PIL.{module}")
    except ImportError as error:
        text = "this transform needs the package Pillow: pip install gradcell[vision]"
        raise ImportError(text) from error


def is_pil(value: Any) -> bool:
    """Return whether a value is an image of Pillow's."""
    return str(type(value).__module__).startswith("PIL.")


def rounded(image: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Values as a dtype: integers rounded and kept within their range."""
    if dtype.kind not in "iu":
        return image.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(image), limits.min, limits.max).astype(dtype)  # type: ignore[no-any-return]


class ImageOperation(TensorOperation):
    """The base of the transforms of images: define _image, from array to array.

    Raises TypeError for anything that is not an image, ValueError for one of the wrong shape.
    """

    def _one(self, value: Any) -> Any:
        if is_pil(value):
            made = self._image(np.asarray(value))
            if isinstance(made, tuple):
                return tuple(map(pillow().fromarray, made))
            return pillow().fromarray(made)
        image = as_array(value)
        if image.ndim < 2 or image.dtype.kind not in "uifb":
            bad_type(
                f"{type(self).__name__}: an image must be an array of [height, width, channels] or [height, "
                f"width], got {image.dtype} of shape {list(image.shape)}; see Decode"
            )
        return self._image(image)

    def _image(self, image: np.ndarray) -> Any:
        unsupported(f"{type(self).__name__}: _image is not defined")


class Sometimes(ImageOperation):
    """The operation that is the next base class, with a probability."""

    prob: float = fields.number(least=0, most=1, default=0.5)

    def _image(self, image: np.ndarray) -> Any:
        return super()._image(image) if generator().random() < self.prob else image


def size_of(image: np.ndarray) -> tuple[int, int]:
    """(height, width)"""
    height, width = image.shape[:2] if image.ndim < 3 else image.shape[-3:-1]
    return height, width


def part(image: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """A rectangle of an image."""
    rows, columns = slice(top, top + height), slice(left, left + width)
    return image[rows, columns] if image.ndim < 3 else image[..., rows, columns, :]


def pair(value: Any, owner: str, name: str) -> tuple[int, int]:
    """(height, width) of one number or two."""
    listed = list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value, value]
    if len(listed) != 2:
        bad_value(f"{owner}: '{name}' must be one number or two, got {value}")
    height, width = (arguments.integer(n, owner, name, 1) for n in listed)
    return height, width


def interval(value: Any, owner: str, name: str, least: float | None = None) -> tuple[float, float]:
    """(lowest, highest) of two numbers in order."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        bad_type(f"{owner}: '{name}' must be two numbers, got {value!r}")
    low, high = (arguments.number(v, owner, name) for v in value)
    if low > high or (least is not None and low < least):
        bad_value(
            f"{owner}: '{name}' must be two numbers in "
            f"order{'' if least is None else f', at least {least:g}'}, got {value}"
        )
    return low, high


# Resampling ---------------------------------------------------------------------------------------


def _cubic(t: np.ndarray, a: float) -> np.ndarray:
    """Keys' kernel (IEEE Trans. ASSP 29, 1981, 1153, eq. 15 for a = -1/2)."""
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t < 1, near, np.where(t < 2, far, 0))


def _kernel(before: int, after: int, reach: float, kernel: Any, widen: bool) -> np.ndarray:
    """Weights of a filter around the pixels' centres; widen: over all pixels that shrink into
    one."""
    scale = before / after
    wide = max(scale, 1.0) if widen else 1.0
    centres = (np.arange(after) + 0.5) * scale - 0.5
    first = np.floor(centres - reach * wide).astype(int)
    taps = first[:, None] + np.arange(int(np.ceil(2 * reach * wide)) + 2)
    weights = kernel((taps - centres[:, None]) / wide)
    if widen:  # Pillow leaves out what lies outside, OpenCV repeats the edge
        weights = np.where((taps >= 0) & (taps < before), weights, 0)
    weights = weights / weights.sum(axis=1, keepdims=True)
    made = np.zeros((after, before))
    np.add.at(made, (np.arange(after)[:, None], np.clip(taps, 0, before - 1)), weights)
    return made


def _area(before: int, after: int) -> np.ndarray:
    """Shares of the pixels that shrink into one; where an image grows, as OpenCV has it."""
    scale = before / after
    if scale >= 1:
        low = np.arange(after)[:, None] * scale
        pixel = np.arange(before)
        shares = np.clip(np.minimum(low + scale, pixel + 1) - np.maximum(low, pixel), 0, None)
        return np.asarray(shares / scale)
    left = np.floor(np.arange(after) * scale + 1e-12).astype(int)
    share = np.clip(np.arange(after) + 1 - (left + 1) / scale, 0, None)
    share = np.where(share <= 0, 0, share - np.floor(share))
    made = np.zeros((after, before))
    np.add.at(made, (np.arange(after), left), 1 - share)
    np.add.at(made, (np.arange(after), np.minimum(left + 1, before - 1)), share)
    return made


@functools.lru_cache(256)
def _weights(before: int, after: int, how: Inter) -> np.ndarray:
    if how == Inter.NEAREST:
        made = np.zeros((after, before))
        source = np.minimum((np.arange(after) * before) // after, before - 1)
        made[np.arange(after), source] = 1
        return made
    if how == Inter.AREA:
        return _area(before, after)
    if how == Inter.BILINEAR:
        return _kernel(before, after, 1, lambda t: np.clip(1 - np.abs(t), 0, None), False)
    if how == Inter.BICUBIC:
        return _kernel(before, after, 2, lambda t: _cubic(t, -0.75), False)
    if how == Inter.PILCUBIC:
        return _kernel(before, after, 2, lambda t: _cubic(t, -0.5), True)
    lanczos = lambda t: np.where(np.abs(t) < 3, np.sinc(t) * np.sinc(t / 3), 0)  # noqa: E731
    return _kernel(before, after, 3, lanczos, True)


#: Weights of bytes are integers over 2^11 (OpenCV).
_BITS = 11


@functools.lru_cache(256)
def _whole_weights(
    before: int, after: int, how: Inter, of_rows: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(the pixels that each new one is made of, their weights as integers over 2^11). At the edges a
    column has one pixel, a row the same one twice."""
    scale = before / after
    if how == Inter.AREA:
        left = np.floor(np.arange(after) * scale).astype(int)
        share = (np.arange(after) + 1 - (left + 1) / scale).astype(np.float32)
        share = np.where(share <= 0, np.float32(0), share - np.floor(share))
    else:
        centres = ((np.arange(after) + 0.5) * scale - 0.5).astype(np.float32)
        left = np.floor(centres).astype(int)
        share = centres - left.astype(np.float32)
    one = np.float32(1)
    if how == Inter.BICUBIC:
        a, x = np.float32(-0.75), share
        first = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
        second = ((a + 2) * x - (a + 3)) * x * x + 1
        y = one - x
        third = ((a + 2) * y - (a + 3)) * y * y + 1
        weights, start = [first, second, third, one - first - second - third], -1
    else:
        if not of_rows:
            share = np.where((left < 0) | (left >= before - 1), np.float32(0), share)
            left = np.clip(left, 0, before - 1)
        weights, start = [one - share, share], 0
    pixels = left[:, None] + np.arange(start, start + len(weights))
    whole = np.rint(np.stack(weights, 1) * np.float32(1 << _BITS)).astype(np.int64)
    return np.clip(pixels, 0, before - 1), whole


def _by_blocks(before: tuple[int, int], height: int, width: int, how: Inter) -> bool:
    """Return whether each new pixel is the mean of a block."""
    whole = before[0] % height == 0 and before[1] % width == 0
    half = how == Inter.BILINEAR and before == (2 * height, 2 * width)
    return whole and (how == Inter.AREA or half)


def _resized_bytes(planes: np.ndarray, height: int, width: int, how: Inter) -> np.ndarray:
    """Bytes [..., rows, columns, channels] in another size, in integers as OpenCV computes them."""
    rows, columns = planes.shape[-3:-1]
    high, wide = rows // height, columns // width
    if _by_blocks((rows, columns), height, width, how):
        blocks = planes.astype(np.int64).reshape(*planes.shape[:-3], height, high, width, wide, -1)
        sums = blocks.sum(axis=(-4, -2))
        if (high, wide) == (2, 2):
            return ((sums + 2) >> 2).astype(np.uint8)  # type: ignore[no-any-return]
        return rounded(sums.astype(np.float32) * np.float32(1 / (high * wide)), planes.dtype)
    pixels, weights = _whole_weights(columns, width, how, False)
    across = (planes[..., pixels, :].astype(np.int64) * weights[..., None]).sum(-2)
    pixels, weights = _whole_weights(rows, height, how, True)
    lines, shares = across[..., pixels, :, :], weights[..., None, None]
    if how == Inter.BICUBIC:
        made = ((lines * shares).sum(-3) + (1 << (2 * _BITS - 1))) >> (2 * _BITS)
    else:
        made = ((((lines >> 4) * shares) >> 16).sum(-3) + 2) >> 2
    return np.clip(made, 0, 255).astype(np.uint8)  # type: ignore[no-any-return]


def resize(image: np.ndarray, height: int, width: int, how: Inter) -> np.ndarray:
    """An image in another size. As OpenCV has it, BILINEAR, BICUBIC and NEAREST take neighbours
    only, PILCUBIC and ANTIALIAS (Lanczos, order 3) all pixels that shrink into one."""
    before = size_of(image)
    if before == (height, width):
        return image
    rows, columns = _weights(before[0], height, how), _weights(before[1], width, how)
    if how == Inter.NEAREST:
        taken = np.ix_(rows.argmax(axis=1), columns.argmax(axis=1))
        return image[taken] if image.ndim < 3 else image[(..., *taken, slice(None))]
    planes = image[..., None] if image.ndim < 3 else image
    grows = before[0] < height or before[1] < width
    by_area = how == Inter.AREA and (grows or _by_blocks(before, height, width, how))
    in_integers = by_area or how in (Inter.BILINEAR, Inter.BICUBIC)
    if image.dtype == np.uint8 and in_integers:
        found = _resized_bytes(planes, height, width, how)
        return found[..., 0] if image.ndim < 3 else found
    if how == Inter.AREA and image.dtype == np.uint8:  # OpenCV adds up in float32
        columns, rows = columns.astype(np.float32), rows.astype(np.float32)
    made = np.matmul(columns, planes.astype(columns.dtype))
    if how in (Inter.PILCUBIC, Inter.ANTIALIAS):  # Pillow rounds between the two passes
        made = rounded(made, image.dtype).astype(np.float64)
    across = made.reshape(*made.shape[:-2], -1)  # the columns' channels side by side
    made = np.matmul(rows, across).reshape(*made.shape[:-3], height, *made.shape[-2:])
    return rounded(made[..., 0] if image.ndim < 3 else made, image.dtype)
