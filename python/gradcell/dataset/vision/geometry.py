"""Transforms that move pixels: sizes, crops, flips, rotations, patches."""

from __future__ import annotations

import enum
import math
from functools import partial
from typing import Any

import numpy as np

from gradcell.base import arguments, bad_type, bad_value, fields, publish
from gradcell.dataset.transforms import _made
from gradcell.dataset.vision.convert import Decode
from gradcell.dataset.workers import generator

from gradcell.dataset.vision.image import (  # isort: skip
    Border, ImageOperation, Inter, Sometimes, interval, is_pil, pair, part, pillow, resize, size_of,
)  # fmt: skip

# Sizes --------------------------------------------------------------------------------------------


def _size(value: Any, owner: str, name: str) -> Any:
    """(height, width), or one number."""
    found = pair(value, owner, name)
    return found if isinstance(value, (list, tuple)) else found[0]


class Resize(ImageOperation):
    """Resizes an image to (height, width), or so that its shorter side has the given length."""

    size: Any = fields.checked(_size)
    how: Inter = fields.checked(_made(Inter), alias="interpolation", default=Inter.LINEAR)

    def _target(self, height: int, width: int) -> tuple[int, int]:
        if isinstance(self.size, tuple):
            return self.size
        short = self.size
        if height < width:
            return short, max(1, int(short * width / height))
        return max(1, int(short * height / width)), short

    def _one(self, value: Any) -> Any:
        if not is_pil(value):
            return super()._one(value)
        filters = pillow().Resampling
        name = {Inter.NEAREST: "NEAREST", Inter.BILINEAR: "BILINEAR", Inter.ANTIALIAS: "LANCZOS"}
        height, width = self._target(value.height, value.width)
        return value.resize((width, height), filters[name.get(self.how, "BICUBIC")])

    def _image(self, image: np.ndarray) -> np.ndarray:
        return resize(image, *self._target(*size_of(image)), self.how)


class RandomResize(ImageOperation):
    """Resizes the image, with an interpolation drawn at random from nearest, linear, cubic and area."""

    size: Any = fields.checked(_size)

    def _image(self, image: np.ndarray) -> np.ndarray:
        how = (Inter.NEAREST, Inter.LINEAR, Inter.CUBIC, Inter.AREA)[generator().integers(4)]
        return Resize(self.size, how)._image(image)


# Padding ------------------------------------------------------------------------------------------


def _sides(padding: Any, owner: str, name: str) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of one number, two (left and right, top and bottom) or four."""
    listed = list(padding) if isinstance(padding, (list, tuple)) else [padding]
    for n in listed:
        arguments.integer(n, owner, name, 0)
    if len(listed) == 1:
        return (listed[0],) * 4
    if len(listed) == 2:
        return listed[0], listed[1], listed[0], listed[1]
    if len(listed) == 4:
        return tuple(listed)
    bad_value(f"{owner}: 'padding' must be 1, 2 or 4 numbers, got {padding}")


def _padded(
    image: np.ndarray, sides: tuple[int, int, int, int], fill: Any, mode: Border
) -> np.ndarray:
    """An image with (left, top, right, bottom) more pixels."""
    left, top, right, bottom = sides
    widths = [(0, 0)] * image.ndim
    at = 0 if image.ndim < 3 else image.ndim - 3
    widths[at], widths[at + 1] = (top, bottom), (left, right)
    if mode != Border.CONSTANT:
        return np.pad(image, widths, mode.value)
    made = np.pad(image, widths)
    height, width = size_of(image)
    outside = np.ones(size_of(made), bool)
    outside[top : top + height, left : left + width] = False
    if image.ndim < 3:
        made[outside] = np.ravel(fill)[0]
    else:
        made[..., outside, :] = fill
    return made


class Pad(ImageOperation):
    """Adds pixels around the image: the same number on all sides, (left and right, top and bottom),
    or (left, top, right, bottom).

    padding: pixels to add: a number, a pair, or one for each side.
    """

    sides: Any = fields.checked(_sides, alias="padding")
    fill: Any = fields.anything(alias="fill_value", default=0)
    mode: Border = fields.checked(_made(Border), alias="padding_mode", default=Border.CONSTANT)

    def _image(self, image: np.ndarray) -> np.ndarray:
        return _padded(image, self.sides, self.fill, self.mode)


class PadToSize(ImageOperation):
    """Adds pixels around the image until it has the given size. offset: the number of pixels at the
    top and left, by default half of those added."""

    size: Any = fields.checked(pair)
    offset: Any = fields.anything(default=None)
    fill: Any = fields.anything(alias="fill_value", default=0)
    mode: Border = fields.checked(_made(Border), alias="padding_mode", default=Border.CONSTANT)

    def _image(self, image: np.ndarray) -> np.ndarray:
        height, width = (t - n for t, n in zip(self.size, size_of(image), strict=True))
        if height < 0 or width < 0:
            self._fail(f"the image of {size_of(image)} is larger than {self.size}")
        top, left = height // 2, width // 2
        if self.offset is not None:
            listed = np.ravel(self.offset).tolist()
            top, left = listed[0], listed[-1]
        if not (0 <= top <= height and 0 <= left <= width):
            self._fail(f"an offset of {self.offset} leaves the image outside of {self.size}")
        sides = (left, top, width - left, height - top)
        return _padded(image, sides, self.fill, self.mode)


# Crops --------------------------------------------------------------------------------------------


def _corner(value: Any, owner: str, name: str) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        bad_type(f"{owner}: '{name}' must be (top, left), got {value}")
    return tuple(arguments.integer(n, owner, name, 0) for n in value)


class Crop(ImageOperation):
    """Crops the rectangle of the given size whose upper left corner is at coordinates.

    coordinates: (top, left), in pixels.
    """

    corner: Any = fields.checked(_corner, alias="coordinates")
    size: Any = fields.checked(pair)

    def _image(self, image: np.ndarray) -> np.ndarray:
        (top, left), (height, width) = self.corner, self.size
        if top + height > size_of(image)[0] or left + width > size_of(image)[1]:
            self._fail(f"{self.size} at {self.corner} is not within an image of {size_of(image)}")
        return part(image, top, left, height, width)


class CenterCrop(ImageOperation):
    """Crops the middle of the image; if the image is smaller, black pixels are added around it."""

    size: Any = fields.checked(pair)

    def _image(self, image: np.ndarray) -> np.ndarray:
        height, width = self.size
        high, wide = max(height - size_of(image)[0], 0), max(width - size_of(image)[1], 0)
        if high or wide:
            sides = (wide - wide // 2, high - high // 2, wide // 2, high // 2)
            image = _padded(image, sides, 0, Border.CONSTANT)
        top, left = (n - t for n, t in zip(size_of(image), self.size, strict=True))
        return part(image, top // 2, left // 2, height, width)


class RandomCrop(ImageOperation):
    """Crops a random rectangle of the given size, after padding the image if asked to.

    pad_if_needed: whether an image that is smaller than size is padded to it; otherwise that is an
    error.
    """

    size: Any = fields.checked(pair)
    sides: Any = fields.checked(_sides, alias="padding", default=None)
    needed: bool = fields.boolean(alias="pad_if_needed", default=False)
    fill: Any = fields.anything(alias="fill_value", default=0)
    mode: Border = fields.checked(_made(Border), alias="padding_mode", default=Border.CONSTANT)

    def _image(self, image: np.ndarray) -> np.ndarray:
        if self.sides is not None:
            image = _padded(image, self.sides, self.fill, self.mode)
        high, wide = (t - n for t, n in zip(self.size, size_of(image), strict=True))
        if self.needed:
            more = (max(wide, 0), max(high, 0)) * 2
            image = _padded(image, more, self.fill, self.mode)
        elif high > 0 or wide > 0:
            self._fail(f"an image of {size_of(image)} has no part of {self.size}")
        (rows, columns), (height, width) = size_of(image), self.size
        top = int(generator().integers(rows - height + 1))
        left = int(generator().integers(columns - width + 1))
        return part(image, top, left, height, width)


class _OfBox(ImageOperation):
    """A transform of a rectangle."""

    top: int = fields.integer(0)
    left: int = fields.integer(0)
    height: int = fields.integer(1)
    width: int = fields.integer(1)


def _rectangle(
    rows: int, columns: int, scale: Any, ratio: Any, attempts: int
) -> tuple[int, int, int, int]:
    """A part of an image of random size and shape: (top, left, height, width)."""
    random = generator()
    for _ in range(attempts):
        area = rows * columns * random.uniform(*scale)
        shape = math.exp(random.uniform(*np.log(ratio)))
        height, width = round(math.sqrt(area / shape)), round(math.sqrt(area * shape))
        if 0 < height <= rows and 0 < width <= columns:
            top = int(random.integers(rows - height + 1))
            return top, int(random.integers(columns - width + 1)), height, width
    shape = min(max(columns / rows, ratio[0]), ratio[1])
    height, width = min(rows, round(columns / shape)), min(columns, round(rows * shape))
    return (rows - height) // 2, (columns - width) // 2, max(height, 1), max(width, 1)


class RandomResizedCrop(ImageOperation):
    """Crops a part of random size and shape, and resizes it.

    scale: the part's fraction of the image. ratio: its width over its height. Where max_attempts
    find none that fits, the middle is taken (Szegedy et al., CVPR 2015, 1, section 6).
    """

    size: Any = fields.checked(pair)
    scale: Any = fields.checked(partial(interval, least=0), default=(0.08, 1.0))
    ratio: Any = fields.checked(partial(interval, least=1e-6), default=(3 / 4, 4 / 3))
    how: Inter = fields.checked(_made(Inter), alias="interpolation", default=Inter.BILINEAR)
    attempts: int = fields.integer(1, alias="max_attempts", default=10)

    def _image(self, image: np.ndarray) -> np.ndarray:
        height, width = self.size
        box = _rectangle(*size_of(image), self.scale, self.ratio, self.attempts)
        return resize(part(image, *box), height, width, self.how)


class RandomCropDecodeResize(RandomResizedCrop):
    """Decodes an image file's bytes, crops a random part and resizes it, as RandomResizedCrop."""

    def _one(self, value: Any) -> Any:
        return super()._one(Decode()._one(value))


class ResizedCrop(_OfBox):
    """Crops a given part of the image and resizes it."""

    size: Any = fields.checked(_size)
    how: Inter = fields.checked(_made(Inter), alias="interpolation", default=Inter.BILINEAR)

    def _image(self, image: np.ndarray) -> np.ndarray:
        crop = Crop((self.top, self.left), (self.height, self.width))
        return Resize(self.size, self.how)._image(crop._image(image))


class FiveCrop(ImageOperation):
    """The four corners (top left, top right, bottom left, bottom right) and the middle."""

    size: Any = fields.checked(pair)

    def _image(self, image: np.ndarray) -> tuple[np.ndarray, ...]:
        (height, width), (rows, columns) = self.size, size_of(image)
        if height > rows or width > columns:
            self._fail(f"an image of {(rows, columns)} has no part of {self.size}")
        corners = [(t, s) for t in (0, rows - height) for s in (0, columns - width)]
        middle = (round((rows - height) / 2), round((columns - width) / 2))
        return tuple(part(image, *corner, height, width) for corner in (*corners, middle))


class SliceMode(enum.IntEnum):
    """Ways of SlicePatches to treat a size that is not a multiple: pad, or leave out the rest."""

    PAD = 0
    DROP = 1


class SlicePatches(ImageOperation):
    """Cuts the image into num_height times num_width patches, row by row.

    num_height: the number of rows of patches. num_width: the number of columns. slice_mode: a
    SliceMode: PAD fills the image up to multiples of these numbers, DROP leaves the rest out.
    """

    rows: int = fields.integer(1, alias="num_height", default=1)
    columns: int = fields.integer(1, alias="num_width", default=1)
    mode: SliceMode = fields.checked(_made(SliceMode), alias="slice_mode", default=SliceMode.PAD)
    fill: int = fields.anything(alias="fill_value", default=0)

    def _image(self, image: np.ndarray) -> tuple[np.ndarray, ...]:
        height, width = size_of(image)
        if self.mode == SliceMode.PAD:
            more = (0, 0, -width % self.columns, -height % self.rows)
            image = _padded(image, more, self.fill, Border.CONSTANT)
        height, width = size_of(image)[0] // self.rows, size_of(image)[1] // self.columns
        return tuple(
            part(image, i * height, j * width, height, width)
            for i in range(self.rows)
            for j in range(self.columns)
        )


# Flips and rotations ------------------------------------------------------------------------------


class HorizontalFlip(ImageOperation):
    """Flips the image horizontally."""

    def _image(self, image: np.ndarray) -> np.ndarray:
        return np.flip(image, axis=1 if image.ndim < 3 else -2)


class VerticalFlip(ImageOperation):
    """Flips the image vertically."""

    def _image(self, image: np.ndarray) -> np.ndarray:
        return np.flip(image, axis=0 if image.ndim < 3 else -3)


class RandomHorizontalFlip(Sometimes, HorizontalFlip):
    """Flips the image horizontally with a given probability."""


class RandomVerticalFlip(Sometimes, VerticalFlip):
    """Flips the image vertically with a given probability."""


def _filter(how: Inter) -> Any:
    name = {Inter.NEAREST: "NEAREST", Inter.BILINEAR: "BILINEAR", Inter.BICUBIC: "BICUBIC"}
    if how not in name:
        bad_value(f"a rotation cannot interpolate by {how!r}")
    return pillow().Resampling[name[how]]


def _fill(image: Any, fill: Any) -> Any:
    listed = np.ravel(fill).tolist()
    bands = len(image.getbands())
    return tuple(listed * bands)[:bands] if bands > 1 else listed[0]


def _angles(degrees: Any, owner: str, name: str) -> tuple[float, float]:
    if isinstance(degrees, (list, tuple)):
        return interval(degrees, owner, name)
    most = arguments.number(degrees, owner, name, least=0)
    return -most, most


def _numbers(value: Any, owner: str, name: str) -> tuple[float, ...]:
    """Numbers along x and y; one alone is along x."""
    along = value if np.ndim(value) else (value, 0)
    return tuple(arguments.number(v, owner, name) for v in along)


class Rotate(ImageOperation):
    """Rotates the image counterclockwise by an angle in degrees, around its middle or around center."""

    degrees: float = fields.number()
    how: Inter = fields.checked(_made(Inter), alias="resample", default=Inter.NEAREST)
    expand: bool = fields.anything(default=False)
    center: Any = fields.anything(default=None)
    fill: Any = fields.anything(alias="fill_value", default=0)

    def _image(self, image: np.ndarray) -> np.ndarray:
        return self._turned(image, self.degrees)

    def _turned(self, image: np.ndarray, degrees: float) -> np.ndarray:
        height, width = size_of(image)
        angle = math.radians(degrees)
        cosine, sine = math.cos(angle), math.sin(angle)
        inverse = np.array([[cosine, -sine], [sine, cosine]])
        size = (height, width)
        goal = centre = np.array([width / 2, height / 2])
        if self.center is not None:
            goal = centre = np.asarray(self.center, float)
        if self.expand:
            bounds = np.abs(inverse) @ [width, height]
            size = (int(bounds[1] + 0.5), int(bounds[0] + 0.5))
            goal = bounds / 2
        return _warped(image, inverse, centre - inverse @ goal, size, self.how, self.fill)


def _warped(
    image: np.ndarray, inverse: np.ndarray, offset: np.ndarray, size: tuple[int, int], how: Inter,
    fill: Any,
) -> np.ndarray:  # fmt: skip
    """The image whose point p was at inverse p + offset, (x, y) from the corner at the top left."""
    rows = np.concatenate([inverse, offset[:, None]], axis=1).ravel().tolist()
    planes = image[..., 0] if image.ndim == 3 and image.shape[-1] == 1 else image
    picture = pillow().fromarray(np.ascontiguousarray(planes))
    affine = pillow().Transform.AFFINE, rows, _filter(how)
    made = picture.transform(size[::-1], *affine, fillcolor=_fill(picture, fill))
    return np.asarray(made).reshape(*size, *image.shape[2:])


class RandomRotation(Rotate):
    """Rotates the image by a random angle from a range, or from (-degrees, degrees).

    center: the point (x, y) that stays in place.
    """

    degrees: Any = fields.checked(_angles)

    def _image(self, image: np.ndarray) -> np.ndarray:
        return self._turned(image, generator().uniform(*self.degrees))


class Affine(ImageOperation):
    """Rotates, moves, scales and shears the image around its middle.

    translate: fractions of the width and the height, a pair. shear: an angle in degrees along x, or
    a pair of angles along x and y.
    """

    degrees: float = fields.number()
    translate: Any = fields.checked(_numbers)
    scale: float = fields.number(above=0)
    shear: Any = fields.checked(_numbers)
    how: Inter = fields.checked(_made(Inter), alias="resample", default=Inter.NEAREST)
    fill: Any = fields.anything(alias="fill_value", default=0)

    def _image(self, image: np.ndarray) -> np.ndarray:
        height, width = size_of(image)
        shift = self.translate[0] * width, self.translate[1] * height
        return _affine(image, self.degrees, shift, self.scale, self.shear, self.how, self.fill)


def _affine(
    image: np.ndarray, degrees: float, shift: Any, scale: float, shear: Any, how: Inter, fill: Any
) -> np.ndarray:
    """An image under scale * rotation * shear, then a shift in pixels, around its middle."""
    height, width = size_of(image)
    angle, sx, sy = (math.radians(v) for v in (degrees, *shear))
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    sheared = np.array([[1, -math.tan(sx)], [-math.tan(sy), 1 + math.tan(sx) * math.tan(sy)]])
    inverse = np.linalg.inv(scale * turn @ sheared)
    centre = np.array([width / 2, height / 2])
    offset = centre - inverse @ (centre + np.asarray(shift, float))
    return _warped(image, inverse, offset, (height, width), how, fill)


class RandomAffine(ImageOperation):
    """Applies Affine with random degrees, translation, scale and shear from ranges.

    translate: (most along x, most along y) as shares, or (least x, most x, least y, most y). shear:
    a number, (least, most) along x, or of both.
    """

    degrees: Any = fields.checked(_angles)
    moves: Any = fields.anything(alias="translate", default=None)
    scale: Any = fields.checked(partial(interval, least=1e-6), default=None)
    shears: Any = fields.anything(alias="shear", default=None)
    how: Inter = fields.checked(_made(Inter), alias="resample", default=Inter.NEAREST)
    fill: Any = fields.anything(alias="fill_value", default=0)

    def _build(self) -> None:
        moves, shear = list(self.moves or (0, 0)), self.shears
        if len(moves) == 2:
            moves = [-moves[0], moves[0], -moves[1], moves[1]]
        self.moves = [interval(moves[k : k + 2], "RandomAffine", "translate") for k in (0, 2)]
        self.scale = self.scale or (1, 1)
        shears = [shear or 0] if not isinstance(shear, (list, tuple)) else list(shear)
        shears = [-shears[0], shears[0]] if len(shears) == 1 else shears
        shears = [*shears, 0, 0][:4]
        self.shears = [interval(shears[k : k + 2], "RandomAffine", "shear") for k in (0, 2)]

    def _image(self, image: np.ndarray) -> np.ndarray:
        random, (height, width) = generator(), size_of(image)
        x, y = (random.uniform(*m) for m in self.moves)
        return _affine(
            image, random.uniform(*self.degrees), (round(x * width), round(y * height)),
            random.uniform(*self.scale), [random.uniform(*s) for s in self.shears],
            self.how, self.fill,
        )  # fmt: skip


# What is taken out --------------------------------------------------------------------------------


class CutOut(ImageOperation):
    """Sets num_patches random squares to zero (DeVries and Taylor, arXiv:1708.04552).

    length: the side of a square, in pixels. num_patches: the number of squares.
    """

    length: int = fields.integer(1)
    patches: int = fields.integer(1, alias="num_patches", default=1)
    is_hwc: bool = fields.boolean(default=True)

    def _image(self, image: np.ndarray) -> np.ndarray:
        made = np.array(image)
        view = made if self.is_hwc else np.moveaxis(made, -3, -1)
        rows, columns = size_of(view)
        for _ in range(self.patches):
            top = int(generator().integers(rows)) - self.length // 2
            left = int(generator().integers(columns)) - self.length // 2
            high, wide = top + self.length, left + self.length
            part(view, max(top, 0), max(left, 0), high - max(top, 0), wide - max(left, 0))[...] = 0
        return made


class Erase(_OfBox):
    """Fills a rectangle of the image with one value.

    value: the value to fill in, a number or one for each channel.
    """

    value: Any = fields.anything(default=0.0)
    inplace: bool = fields.anything(default=False)

    def _image(self, image: np.ndarray) -> np.ndarray:
        made = image if self.inplace else np.array(image)
        part(made, self.top, self.left, self.height, self.width)[...] = self.value
        return made


class RandomErasing(ImageOperation):
    """Fills a random rectangle of an image [channels, height, width] with one value, a value for
    each channel, or random values (Zhong et al., AAAI 2020, 13001).

    value: a number, one for each channel, or 'random' for normal random numbers.
    """

    prob: float = fields.number(least=0, most=1, default=0.5)
    scale: Any = fields.checked(partial(interval, least=0), default=(0.02, 0.33))
    ratio: Any = fields.checked(partial(interval, least=1e-6), default=(0.3, 3.3))
    value: Any = fields.anything(default=0)
    inplace: bool = fields.anything(default=False)
    attempts: int = fields.integer(1, alias="max_attempts", default=10)

    def _image(self, image: np.ndarray) -> np.ndarray:
        if generator().random() >= self.prob:
            return image
        made = image if self.inplace else np.array(image)
        rows, columns = made.shape[-2:]
        top, left, height, width = _rectangle(rows, columns, self.scale, self.ratio, self.attempts)
        hole = made[..., top : top + height, left : left + width]
        if isinstance(self.value, str):
            hole[...] = generator().normal(size=hole.shape)
        else:
            hole[...] = np.reshape(self.value, (-1, 1, 1))
        return made


publish(globals())
