"""Transforms between files, pictures and arrays, and of the values of all pixels alike."""

from __future__ import annotations

import enum
import io
from typing import Any

import numpy as np

from gradcell.base import bad_type, bad_value, fields
from gradcell.dataset.rows import as_array
from gradcell.dataset.transforms import TensorOperation, TypeCast, _made, _numpy_dtype
from gradcell.dataset.vision.image import ImageOperation, is_pil, pillow, rounded

__all__ = [
    "HWC2CHW", "ConvertColor", "ConvertMode", "Decode", "HsvToRgb", "LinearTransformation",
    "Normalize", "NormalizePad", "Rescale", "RgbToHsv", "ToNumpy", "ToPIL", "ToTensor", "ToType",
]  # fmt: skip


def decoded(data: np.ndarray, name: str = "", to_pil: bool = False) -> Any:
    """The picture in a file's bytes: uint8 of [height, width, 3]. Raises ValueError for bytes that
    are not a picture, or one that is cut short."""
    image = pillow()
    try:
        with image.open(io.BytesIO(data.tobytes())) as found:
            made = found.convert("RGB")
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        what = f"{name}: " if name else ""
        bad_value(f"Decode: {what}not a picture, or a damaged one: {error}")
    return made if to_pil else np.asarray(made)


class Decode(TensorOperation):
    """Decodes a file's bytes (uint8 of one axis) to an image, uint8 of [height, width, 3].

    to_pil: whether the result is an image of Pillow instead of an array.
    """

    to_pil: bool = fields.boolean(default=False)

    def _one(self, value: Any) -> Any:
        data = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else as_array(value)
        if data.dtype.kind == "S":
            data = np.frombuffer(data.tobytes(), np.uint8)
        if data.dtype != np.uint8 or data.ndim != 1:
            bad_type(
                f"Decode: expected a file's bytes, uint8 of one axis, got {data.dtype} of shape "
                f"{list(data.shape)}"
            )
        return decoded(data, to_pil=self.to_pil)


class ToPIL(TensorOperation):
    """Converts an array to an image of Pillow."""

    def _one(self, value: Any) -> Any:
        if is_pil(value):
            return value
        image = as_array(value)
        if image.ndim == 3 and image.shape[-1] == 1:
            image = image[..., 0]
        try:
            return pillow().fromarray(image)
        except (TypeError, KeyError):
            bad_type(f"ToPIL: {image.dtype} of shape {list(image.shape)} is not an image")


class ToNumpy(TensorOperation):
    """Converts an image of Pillow to an array."""

    def _one(self, value: Any) -> np.ndarray:
        return np.array(value)


class ToTensor(TensorOperation):
    """Converts an image to [channels, height, width] and divides it by 255.

    output_type: the dtype of the result.
    """

    dtype: Any = fields.checked(_numpy_dtype, alias="output_type", default=np.float32)

    def _one(self, value: Any) -> np.ndarray:
        image = np.asarray(value)
        if image.ndim not in (2, 3):
            self._fail(f"expected [height, width, channels], got the shape {list(image.shape)}")
        planes = image[..., None] if image.ndim == 2 else image
        scaled: np.ndarray = planes.transpose(2, 0, 1) * np.float32(1 / 255)
        return scaled.astype(self.dtype)


class ToType(TypeCast):
    """Converts an image to another dtype."""


class HWC2CHW(TensorOperation):
    """Converts [height, width, channels] to [channels, height, width]."""

    def _one(self, value: Any) -> np.ndarray:
        image = np.asarray(value)
        if image.ndim < 2:
            self._fail(f"expected [height, width, channels], got the shape {list(image.shape)}")
        return image if image.ndim == 2 else np.ascontiguousarray(np.moveaxis(image, -1, -3))


class Rescale(TensorOperation):
    """Computes value * rescale + shift in float32."""

    scale: float = fields.number(alias="rescale")
    shift: float = fields.number()

    def _one(self, value: Any) -> np.ndarray:
        image = np.asarray(value).astype(np.float32)
        return np.asarray(image * np.float32(self.scale) + np.float32(self.shift))


def _numbers(value: Any, owner: str, name: str) -> np.ndarray:
    found = np.asarray(value)
    if found.dtype.kind not in "biuf":
        bad_type(f"{owner}: '{name}' must be numbers, got {value!r}")
    return found


class _Normalizes(TensorOperation):
    is_hwc = True
    mean: Any = fields.checked(_numbers)
    std: Any = fields.checked(_numbers)

    def _build(self) -> None:
        self.mean, self.std = (np.atleast_1d(v).astype(np.float32) for v in (self.mean, self.std))
        if self.mean.ndim != 1 or self.mean.shape != self.std.shape:
            self._fail("'mean' and 'std' need as many numbers")
        if not (self.std > 0).all():
            self._fail(f"'std' must be positive, got {self.std}")

    def _one(self, value: Any) -> np.ndarray:
        image = np.asarray(value).astype(np.float32)
        axis = -1 if self.is_hwc else -3
        channels = image.shape[axis] if image.ndim > 2 else 1
        if len(self.mean) not in (1, channels):
            self._fail(f"{len(self.mean)} means for {channels} channels")
        shape = (-1,) if self.is_hwc or image.ndim < 3 else (-1, 1, 1)
        return np.asarray((image - self.mean.reshape(shape)) / self.std.reshape(shape))


class Normalize(_Normalizes):
    """(value - mean) / std of each channel, float32; is_hwc: the channels are the last axis."""

    is_hwc: bool = fields.boolean(default=True)


class NormalizePad(_Normalizes):
    """Like Normalize, with a channel of zeros added after the others.

    dtype: 'float32' or 'float16'. mean, std: a number for each channel.
    """

    dtype: Any = fields.one_of("float32", "float16", default="float32")
    is_hwc: bool = fields.boolean(default=True)

    def _one(self, value: Any) -> np.ndarray:
        image = super()._one(value)
        widths = [(0, 0)] * image.ndim
        widths[-1 if self.is_hwc else -3] = (0, 1)
        return np.pad(image, widths).astype(self.dtype)


class LinearTransformation(TensorOperation):
    """Multiplies (the image as a row, minus mean_vector) by a square matrix.

    transformation_matrix: square, of as many rows as an image has values. mean_vector: a number for
    each value of an image.
    """

    matrix: Any = fields.checked(_numbers, alias="transformation_matrix")
    mean: Any = fields.checked(_numbers, alias="mean_vector")

    def _build(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            self._fail(f"the matrix must be square, its shape is {list(self.matrix.shape)}")

    def _one(self, value: Any) -> np.ndarray:
        image = np.asarray(value)
        if image.size != len(self.matrix):
            self._fail(f"{image.size} values for a matrix of {len(self.matrix)} rows")
        return np.asarray((image.reshape(-1) - self.mean) @ self.matrix).reshape(image.shape)


# Colour spaces ------------------------------------------------------------------------------------


def gray(image: np.ndarray) -> np.ndarray:
    """Luma of red, green and blue (ITU-R BT.601), float64 with one channel."""
    return image[..., :3].astype(np.float64) @ np.array([[0.299], [0.587], [0.114]])  # type: ignore[no-any-return]


def rgb_to_hsv(image: np.ndarray) -> np.ndarray:
    """Hue, saturation and value in [0, 1] (A. R. Smith, SIGGRAPH 1978, 12)."""
    values = image.astype(np.float64)
    most, least = values.max(axis=-1), values.min(axis=-1)
    span = np.where(most > least, most - least, 1)
    r, g, b = (values[..., k] for k in range(3))
    sector = np.where(
        most == r, (g - b) / span % 6, np.where(most == g, (b - r) / span + 2, (r - g) / span + 4)
    )
    hue = np.where(most > least, sector / 6, 0)
    saturation = np.where(most > 0, (most - least) / np.where(most > 0, most, 1), 0)
    return np.stack([hue, saturation, most], axis=-1)


def hsv_to_rgb(image: np.ndarray) -> np.ndarray:
    """The inverse of rgb_to_hsv."""
    hue, saturation, value = (image[..., k : k + 1].astype(np.float64) for k in range(3))
    k = (np.array([5.0, 3.0, 1.0]) + hue * 6) % 6
    return value - value * saturation * np.clip(np.minimum(k, 4 - k), 0, 1)  # type: ignore[no-any-return]


class _ColorSpace(TensorOperation):
    is_hwc: bool = fields.boolean(default=False)

    def _one(self, value: Any) -> np.ndarray:
        image = np.asarray(value)
        axis = -1 if self.is_hwc else -3
        if image.ndim < 3 or image.shape[axis] != 3:
            self._fail(f"expected 3 channels, got the shape {list(image.shape)}")
        return np.moveaxis(self._convert(np.moveaxis(image, axis, -1)), -1, axis)

    def _convert(self, image: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class RgbToHsv(_ColorSpace):
    """Converts red, green and blue in [0, 1] to hue, saturation and value, float64."""

    def _convert(self, image: np.ndarray) -> np.ndarray:
        return rgb_to_hsv(image)


class HsvToRgb(_ColorSpace):
    """Converts hue, saturation and value to red, green and blue, float64."""

    def _convert(self, image: np.ndarray) -> np.ndarray:
        return hsv_to_rgb(image)


class ConvertMode(enum.IntEnum):
    """The conversions between colour spaces."""

    COLOR_BGR2BGRA = COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


#: Which channels a mode takes, 3: a full alpha channel.
_CHANNELS = {0: "0123", 1: "012", 2: "2103", 3: "210", 4: "210", 5: "2103", 8: "000", 9: "0003"}


class ConvertColor(ImageOperation):
    """Converts an image from one colour space to another.

    convert_mode: a ConvertMode, such as ConvertMode.COLOR_RGB2GRAY.
    """

    mode: ConvertMode = fields.checked(_made(ConvertMode), alias="convert_mode")

    def _image(self, image: np.ndarray) -> np.ndarray:
        planes = image if image.ndim > 2 else image[..., None]
        if self.mode in (6, 10):
            return rounded(gray(planes[..., [2, 1, 0]])[..., 0], image.dtype)
        if self.mode in (7, 11):
            return rounded(gray(planes)[..., 0], image.dtype)
        full = np.iinfo(image.dtype).max if image.dtype.kind in "iu" else 1
        have = planes.shape[-1]
        taken = [
            planes[..., int(c)] if int(c) < have else np.full(planes.shape[:-1], full, image.dtype)
            for c in _CHANNELS[self.mode]
        ]
        return np.stack(taken, axis=-1)
