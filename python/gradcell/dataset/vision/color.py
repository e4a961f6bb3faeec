"""Transforms of colours: brightness, contrast, saturation, hue, sharpness, curves of values."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from gradcell.base import arguments, fields, publish
from gradcell.dataset.transforms import TensorOperation
from gradcell.dataset.vision.convert import gray, hsv_to_rgb, rgb_to_hsv
from gradcell.dataset.workers import generator

from gradcell.dataset.vision.image import (  # isort: skip
    ImageOperation, Sometimes, interval, is_pil, pair, pillow, rounded,
)  # fmt: skip


def _most(image: np.ndarray) -> float:
    """White: the greatest value of an integer dtype, 1 of others."""
    return float(np.iinfo(image.dtype).max) if image.dtype.kind in "iu" else 1.0


def _blend(image: np.ndarray, other: np.ndarray | float, factor: float) -> np.ndarray:
    """From other (factor 0) to image (factor 1) and beyond, within the dtype's range."""
    made = np.asarray(other + factor * (image.astype(np.float64) - other))
    if image.dtype.kind == "f":
        made = np.clip(made, 0, 1)
    return rounded(made, image.dtype)


class _Factor(ImageOperation):
    """A blend of an image with what has none of the property, for an image of Pillow's by Pillow."""

    enhancer = ""  #: the class of ImageEnhance that does the same, if MindSpore uses one
    factor: float = fields.number(least=0)

    def _one(self, value: Any) -> Any:
        if self.enhancer and is_pil(value):
            return getattr(pillow("ImageEnhance"), self.enhancer)(value).enhance(self.factor)
        return super()._one(value)

    def _image(self, image: np.ndarray) -> np.ndarray:
        return _blend(image, self._without(image), self.factor)

    @staticmethod
    def _without(image: np.ndarray) -> np.ndarray | float:
        raise NotImplementedError


class AdjustBrightness(_Factor):
    """Changes the brightness: factor 0 gives black, 1 leaves the image as it is.

    brightness_factor: the factor.
    """

    enhancer = "Brightness"
    factor: float = fields.number(alias="brightness_factor", least=0)

    @staticmethod
    def _without(image: np.ndarray) -> float:
        return 0.0


class AdjustContrast(_Factor):
    """Changes the contrast: factor 0 gives the mean gray, 1 leaves the image as it is.

    contrast_factor: the factor.
    """

    enhancer = "Contrast"
    factor: float = fields.number(alias="contrast_factor", least=0)

    @staticmethod
    def _without(image: np.ndarray) -> float:
        colours = image.ndim > 2 and image.shape[-1] > 2
        shades = rounded(gray(image) if colours else image, image.dtype)
        mean = float(shades.mean(dtype=np.float64))
        return float(int(mean + 0.5)) if image.dtype.kind in "iu" else mean


class AdjustSaturation(_Factor):
    """Changes the saturation: factor 0 gives a gray image, 1 leaves it as it is.

    saturation_factor: the factor.
    """

    enhancer = "Color"
    factor: float = fields.number(alias="saturation_factor", least=0)

    @staticmethod
    def _without(image: np.ndarray) -> np.ndarray:
        if image.ndim < 3 or image.shape[-1] < 3:
            return image
        return rounded(gray(image), image.dtype).astype(np.float64)


class AdjustSharpness(_Factor):
    """Changes the sharpness: factor 0 smooths the image with a 3 x 3 kernel, 1 leaves it as it is.

    sharpness_factor: the factor.
    """

    factor: float = fields.number(alias="sharpness_factor", least=0)

    @staticmethod
    def _without(image: np.ndarray) -> np.ndarray:
        planes = image[..., None] if image.ndim < 3 else image
        values = planes.astype(np.float64)
        inner = 4 * values[..., 1:-1, 1:-1, :]
        rows, columns = values.shape[-3] - 2, values.shape[-2] - 2
        if rows > 0 and columns > 0:
            for i in range(3):
                for j in range(3):
                    inner = inner + values[..., i : i + rows, j : j + columns, :]
            values[..., 1:-1, 1:-1, :] = rounded(inner / 13, image.dtype)
        return values[..., 0] if image.ndim < 3 else values


class AdjustHue(ImageOperation):
    """Rotates the hue by a fraction, in [-0.5, 0.5], of the colour circle.

    hue_factor: the factor.
    """

    factor: float = fields.number(alias="hue_factor", least=-0.5, most=0.5)

    def _image(self, image: np.ndarray) -> np.ndarray:
        if image.ndim < 3 or image.shape[-1] != 3:
            self._fail(f"expected 3 channels, got the shape {list(image.shape)}")
        hsv = rgb_to_hsv(image)
        hsv[..., 0] = (hsv[..., 0] + self.factor) % 1
        return rounded(hsv_to_rgb(hsv), image.dtype)


class AdjustGamma(ImageOperation):
    """Gamma correction: gain * value^gamma, of values in [0, 1].

    gamma: the exponent. gain: the factor.
    """

    gamma: float = fields.number(least=0)
    gain: float = fields.number(default=1)

    def _image(self, image: np.ndarray) -> np.ndarray:
        most = _most(image)
        made = self.gain * (image.astype(np.float64) / most) ** self.gamma
        if most == 1:
            return rounded(np.clip(made, 0, 1), image.dtype)
        return np.clip(np.floor(made * (most + 1 - 1e-3)), 0, most).astype(image.dtype)


_ADJUST: tuple[Any, ...] = (AdjustBrightness, AdjustContrast, AdjustSaturation, AdjustHue)


def _range(value: Any, owner: str, name: str, least: float | None = 0) -> tuple[float, float]:
    """(lowest, highest) factor: of two numbers, or of one, v: 1 - v to 1 + v."""
    if isinstance(value, (list, tuple)):
        return interval(value, owner, name, least)
    v = arguments.number(value, owner, name, least=0)
    return (max(0.0, 1 - v), 1 + v) if least == 0 else (-v, v)


class RandomColorAdjust(ImageOperation):
    """Changes brightness, contrast, saturation and hue by random factors from ranges, in random order.

    A number v stands for the range (1 - v, 1 + v), of hue for (-v, v).
    """

    brightness: Any = fields.checked(_range, default=(1, 1))
    contrast: Any = fields.checked(_range, default=(1, 1))
    saturation: Any = fields.checked(_range, default=(1, 1))
    hue: Any = fields.checked(partial(_range, least=-0.5), default=(0, 0))

    def _image(self, image: np.ndarray) -> np.ndarray:
        ranges = self.brightness, self.contrast, self.saturation, self.hue
        for k in generator().permutation(4):
            if ranges[k] != ((0, 0) if k == 3 else (1, 1)):
                image = _ADJUST[k](generator().uniform(*ranges[k]))._image(image)
        return image


class RandomColor(ImageOperation):
    """Applies AdjustSaturation with a random factor from a range."""

    range: Any = fields.checked(partial(interval, least=0), alias="degrees", default=(0.1, 1.9))
    adjust: ClassVar[Any] = AdjustSaturation

    def _image(self, image: np.ndarray) -> np.ndarray:
        made: np.ndarray = self.adjust(generator().uniform(*self.range))._image(image)
        return made


class RandomSharpness(RandomColor):
    """Applies AdjustSharpness with a random factor from a range."""

    adjust: ClassVar[Any] = AdjustSharpness


class RandomAdjustSharpness(Sometimes, AdjustSharpness):
    """Applies AdjustSharpness with a given probability.

    degree: the factor of AdjustSharpness.
    """

    factor: float = fields.number(alias="degree", least=0)


# Curves -------------------------------------------------------------------------------------------


class Invert(ImageOperation):
    """Inverts the colours: white becomes black."""

    def _image(self, image: np.ndarray) -> np.ndarray:
        return (_most(image) - image).astype(image.dtype)


class RandomInvert(Sometimes, Invert):
    """Inverts the colours with a given probability."""


class Posterize(ImageOperation):
    """Keeps only the highest bits of each value."""

    bits: int = fields.integer(0)

    def _build(self) -> None:
        if self.bits > 8:
            self._fail(f"'bits' must be at most 8, got {self.bits}")

    def _image(self, image: np.ndarray) -> np.ndarray:
        _bytes(self, image)
        return image & np.uint8(256 - 2 ** (8 - self.bits))


class RandomPosterize(ImageOperation):
    """Applies Posterize with a random number of bits from a range."""

    bits: Any = fields.checked(pair, default=(8, 8))

    def _image(self, image: np.ndarray) -> np.ndarray:
        least, most = self.bits
        return Posterize(int(generator().integers(least, most + 1)))._image(image)


class Solarize(ImageOperation):
    """Inverts the values within the thresholds (lowest, highest), or from one threshold on."""

    threshold: Any = fields.anything()

    def _build(self) -> None:
        given = self.threshold
        listed = tuple(given) if isinstance(given, (list, tuple)) else (given, 255)
        low, high = interval(listed, "Solarize", "threshold")
        self.threshold = low, 255 if low == high else high

    def _image(self, image: np.ndarray) -> np.ndarray:
        inside = (image >= self.threshold[0]) & (image <= self.threshold[1])
        return np.where(inside, (_most(image) - image).astype(image.dtype), image)


class RandomSolarize(ImageOperation):
    """Applies Solarize between two random thresholds from a range.

    threshold: the range of values.
    """

    threshold: Any = fields.checked(partial(interval, least=0), default=(0, 255))

    def _image(self, image: np.ndarray) -> np.ndarray:
        low, high = map(int, self.threshold)
        drawn = sorted(generator().integers(low, high + 1, size=2).tolist())
        return Solarize(tuple(drawn))._image(image)


def _bytes(operation: TensorOperation, image: np.ndarray) -> None:
    if image.dtype != np.uint8:
        operation._fail(f"the image must be uint8, got {image.dtype}")


class _ByHistogram(ImageOperation):
    """Each channel through a curve that its histogram gives."""

    def _image(self, image: np.ndarray) -> np.ndarray:
        _bytes(self, image)
        planes = image[..., None] if image.ndim < 3 else image
        made = np.empty_like(planes)
        for k in range(planes.shape[-1]):
            curve = self._curve(np.bincount(planes[..., k].reshape(-1), minlength=256))
            made[..., k] = curve[planes[..., k]]
        return made[..., 0] if image.ndim < 3 else made

    def _curve(self, histogram: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class Equalize(_ByHistogram):
    """Equalises the histogram of each channel, so that all values are about equally frequent
    (Gonzalez and Woods, Digital Image Processing, section 3.3).
    """

    def _curve(self, histogram: np.ndarray) -> np.ndarray:
        below = np.cumsum(histogram)
        first, count = below[np.flatnonzero(histogram)[0]], below[-1]
        if first == count:
            return np.arange(256, dtype=np.uint8)
        return rounded((below - first) * 255 / (count - first), np.dtype(np.uint8))


class RandomEqualize(Sometimes, Equalize):
    """Applies Equalize with a given probability."""


class AutoContrast(_ByHistogram):
    """Stretches the values of each channel to the whole range, leaving out cutoff percent at each
    end and the values to ignore.
    """

    cutoff: float = fields.number(least=0, below=50, default=0.0)
    ignore: Any = fields.anything(default=None)

    def _curve(self, histogram: np.ndarray) -> np.ndarray:
        counts = histogram.copy()
        counts[[] if self.ignore is None else np.ravel(self.ignore).tolist()] = 0
        cut = int(counts.sum() * self.cutoff // 100)
        low = np.flatnonzero(np.cumsum(counts) > cut)
        high = np.flatnonzero(np.cumsum(counts[::-1]) > cut)
        if len(low) == 0 or len(high) == 0 or low[0] >= 255 - high[0]:
            return np.arange(256, dtype=np.uint8)
        first, last = int(low[0]), int(255 - high[0])
        scale = 255.0 / (last - first)
        line = np.arange(256) * scale - first * scale
        return np.clip(np.floor(line + 1e-9), 0, 255).astype(np.uint8)  # type: ignore[no-any-return]


class RandomAutoContrast(Sometimes, AutoContrast):
    """Applies AutoContrast with a given probability.

    cutoff: the percentage of the darkest and lightest pixels to ignore. ignore: values of pixels to
    ignore.
    """


class Grayscale(ImageOperation):
    """Converts an image to gray, with one channel or three equal ones.

    num_output_channels: 1 or 3.
    """

    count: Any = fields.one_of(1, 3, alias="num_output_channels", default=1)

    def _image(self, image: np.ndarray) -> np.ndarray:
        if image.ndim < 3 or image.shape[-1] < 3:
            shades = image if image.ndim < 3 else image[..., 0]
        else:
            shades = rounded(gray(image)[..., 0], image.dtype)
        return shades if self.count == 1 else np.stack([shades] * 3, axis=-1)


class RandomGrayscale(ImageOperation):
    """Converts the image to gray with a given probability; the number of channels does not change."""

    prob: float = fields.number(least=0, most=1, default=0.1)

    def _image(self, image: np.ndarray) -> np.ndarray:
        if image.ndim < 3 or generator().random() >= self.prob:
            return image
        return np.repeat(rounded(gray(image), image.dtype), image.shape[-1], axis=-1)


class RandomLighting(ImageOperation):
    """Adds noise of standard deviation alpha along the principal components of ImageNet's colours
    (Krizhevsky et al., NIPS 2012, section 4.1).

    alpha: the standard deviation.
    """

    _vectors = np.array(
        [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
    )
    _values = np.array([55.46, 4.794, 1.148])

    alpha: float = fields.number(least=0, default=0.05)

    def _image(self, image: np.ndarray) -> np.ndarray:
        noise = self._vectors @ (generator().normal(0, self.alpha, 3) * self._values)
        return rounded(image + noise, image.dtype)


class GaussianBlur(ImageOperation):
    """Smooths the image with a Gaussian kernel; the image is mirrored at its edges.

    kernel_size: an odd int, or a pair (width, height). sigma: the standard deviation, or a pair; by
    default 0.3 ((kernel_size - 1) / 2 - 1) + 0.8.
    """

    sizes: Any = fields.checked(pair, alias="kernel_size")
    sigmas: Any = fields.anything(alias="sigma", default=None)

    def _build(self) -> None:
        if any(n % 2 == 0 for n in self.sizes):
            self._fail(f"'kernel_size' must be odd, got {self.sizes}")
        given = self.sigmas if isinstance(self.sigmas, (list, tuple)) else [self.sigmas] * 2
        usual = 0.3 * ((self.sizes[0] - 1) * 0.5 - 1) + 0.8
        self.sigmas = [
            usual if s is None else arguments.number(s, "GaussianBlur", "sigma", above=0)
            for s in given
        ]

    def _image(self, image: np.ndarray) -> np.ndarray:
        made = (image[..., None] if image.ndim < 3 else image).astype(np.float64)
        for axis, size, sigma in zip((-2, -3), self.sizes, self.sigmas, strict=True):
            half = size // 2
            taps = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * sigma * sigma))
            taps /= taps.sum()
            count = made.shape[axis]
            places = np.abs(np.arange(-half, count + half))
            places = np.where(places >= count, 2 * (count - 1) - places, places) % max(count, 1)
            wide = np.take(made, places, axis=axis)
            parts = (np.take(wide, range(k, k + count), axis) for k in range(len(taps)))
            made = sum(t * part for t, part in zip(taps, parts, strict=True))
        return rounded(made[..., 0] if image.ndim < 3 else made, image.dtype)


publish(globals())
