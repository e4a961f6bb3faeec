"""Layers that pad, resize and rearrange pixels: paddings, Upsample, shuffles, Unfold."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, fields, publish
from gradcell.nn.cell import Layer
from gradcell.nn.of_functions import OfX, cell_of
from gradcell.ops.arrays import shaping
from gradcell.ops.networks import windows
from gradcell.ops.networks.interpolation import interpolate


def _pairs(value: Any, owner: str, name: str) -> Any:
    if not isinstance(value, tuple):
        bad_type(
            f"For '{owner}', the '{name}' must be a tuple of pairs, but got {type(value).__name__}."
        )
    for pair in value:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            bad_value(
                f"For '{owner}', the '{name}' must hold (before, after) for each dimension, but got {value}."
            )
        for n in pair:
            arguments.integer(n, owner, name, 0)
    return value


@fields.declared
class Pad(Layer):
    """Pads each dimension at both ends.

    paddings: (before, after) for each dimension. mode: 'CONSTANT' (zeros), 'REFLECT' (mirrored, the
    outermost element once) or 'SYMMETRIC' (mirrored, the outermost element too).

    Raises TypeError for paddings that are not a tuple, ValueError for ones that do not fit or are too
    large to mirror.
    """

    paddings: Any = fields.checked(_pairs)
    mode: str = fields.one_of("CONSTANT", "REFLECT", "SYMMETRIC", default="CONSTANT")

    def construct(self, x: Tensor) -> Tensor:
        x = arguments.of_rank(x, [len(self.paddings)], "Pad")
        flat = [n for pair in reversed(self.paddings) for n in pair]
        if self.mode != "SYMMETRIC":
            return shaping.pad(x, flat, self.mode.lower())
        for axis, (before, after) in enumerate(self.paddings):
            n = x.shape[axis]
            if max(before, after) > n:
                bad_value(
                    f"For 'Pad', {(before, after)} elements of an axis of size {n} cannot be mirrored."
                )
            if before or after:
                i = np.arange(-before, n + after)
                x = _ops.gather(
                    x, Tensor(np.where(i < 0, -1 - i, np.minimum(i, 2 * n - 1 - i))), axis
                )
        return x


@fields.declared
class _Padding(Layer):
    """Base class of paddings of the last dimensions."""

    rank: ClassVar[int]
    mode: ClassVar[str] = "constant"
    value: ClassVar[Any] = 0

    padding: Any = fields.anything(shown=True)

    def _build(self) -> None:
        owner, padding = type(self).__name__, self.padding
        if isinstance(padding, int) and not isinstance(padding, bool):
            padding = (padding,) * (2 * self.rank)
        if not isinstance(padding, (tuple, list)):
            bad_type(
                f"For '{owner}', the 'padding' must be an int or a tuple, but got {type(padding).__name__}."
            )
        if len(padding) % 2 or not 2 <= len(padding) <= 2 * self.rank:
            bad_value(
                f"For '{owner}', the 'padding' must be an int or {2 * self.rank} of them, but got {padding}."
            )
        least = None if self.mode == "constant" else 0
        for n in padding:
            arguments.integer(n, owner, "padding", least)
        self.padding = tuple(padding)

    def construct(self, x: Tensor) -> Tensor:
        owner = type(self).__name__
        x = arguments.tensor(x, owner, "x")
        if self.mode != "constant":
            x = arguments.of_rank(x, [self.rank + 1, self.rank + 2], owner)
        elif 2 * x.ndim < len(self.padding):
            bad_value(
                f"For '{owner}', the padding {self.padding} does not fit an input of shape {list(x.shape)}."
            )
        for k in range(0, len(self.padding), 2):
            before, after = self.padding[k : k + 2]
            n = x.shape[x.ndim - 1 - k // 2]
            if n + before + after < 1 or -min(before, after) > n:
                bad_value(
                    f"For '{owner}', nothing is left of size {n} with padding {(before, after)}."
                )
        return shaping.pad(x, self.padding, self.mode, self.value)


def _number(value: Any, owner: str, name: str) -> Any:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        bad_type(f"For '{owner}', the '{name}' must be a number, but got {type(value).__name__}.")
    return value


@fields.declared
class _ConstantPad(_Padding):
    value: Any = fields.checked(_number)  # type: ignore[misc]


class ConstantPad1d(_ConstantPad, rank=1):
    """Pads the last dimension at both ends with a value.

    padding: an int or (left, right); negative ones cut off. Raises TypeError, ValueError.
    """


class ConstantPad2d(_ConstantPad, rank=2):
    """Pads the last two dimensions at all sides with a value.

    padding: an int or (left, right, top, bottom); negative ones cut off. Raises TypeError,
    ValueError.
    """


class ConstantPad3d(_ConstantPad, rank=3):
    """Pads the last three dimensions at all sides with a value.

    padding: an int or (left, right, top, bottom, front, back). Raises TypeError, ValueError.
    """


class ZeroPad2d(_Padding, rank=2):
    """Pads the last two dimensions with zeros.

    padding: an int or (left, right, top, bottom). Raises TypeError, ValueError.
    """


class ReflectionPad1d(_Padding, rank=1, mode="reflect"):
    """(N, C, L) or (C, L) padded at both ends by mirroring, without repeating the outermost element.

    padding: an int or (left, right), less than the size. Raises TypeError, ValueError.
    """


class ReflectionPad2d(_Padding, rank=2, mode="reflect"):
    """(N, C, H, W) or (C, H, W) padded at all sides by mirroring. padding: an int or (left, right,
    top, bottom)."""


class ReflectionPad3d(_Padding, rank=3, mode="reflect"):
    """(N, C, D, H, W) or (C, D, H, W) padded at all sides by mirroring.

    padding: an int or (left, right, top, bottom, front, back).
    """


class ReplicationPad1d(_Padding, rank=1, mode="replicate"):
    """(N, C, L) or (C, L) padded at both ends with the outermost element.

    padding: an int or (left, right). Raises TypeError, ValueError.
    """


class ReplicationPad2d(_Padding, rank=2, mode="replicate"):
    """(N, C, H, W) or (C, H, W) padded at all sides with the outermost elements.

    padding: an int or (left, right, top, bottom).
    """


class ReplicationPad3d(_Padding, rank=3, mode="replicate"):
    """(N, C, D, H, W) or (C, D, H, W) padded at all sides with the outermost elements.

    padding: an int or (left, right, top, bottom, front, back).
    """


@cell_of(interpolate)
class Upsample(OfX):
    """Resizes images and volumes: ops.interpolate as a layer. Arguments are those of interpolate."""

    size: Any = fields.anything(default=None)
    scale_factor: Any = fields.anything(default=None)
    mode: str = fields.anything(default="nearest")
    align_corners: bool | None = fields.anything(default=None)
    recompute_scale_factor: bool | None = fields.anything(default=None)


def _divisible(owner: str, what: str, size: int, by: int) -> int:
    if size % by:
        bad_value(f"For '{owner}', the {what} {size} must be divisible by {by}.")
    return size // by


@fields.declared
class PixelShuffle(Layer):
    """(..., C r², H, W) to (..., C, H r, W r), r = upscale_factor: channels become pixels.

    Shi et al., Real-time single image super-resolution (2016), equation 4. Raises ValueError for
    channels not divisible by r².
    """

    upscale_factor: int = fields.integer(1)

    def construct(self, input: Tensor) -> Tensor:
        r = self.upscale_factor
        input = arguments.of_rank(input, range(3, 9), "PixelShuffle")
        *outer, channels, h, w = input.shape
        c, n = _divisible("PixelShuffle", "number of channels", channels, r * r), math.prod(outer)
        input = _ops.transpose(_ops.reshape(input, [n, c, r, r, h, w]), [0, 1, 4, 2, 5, 3])
        return _ops.reshape(input, [*outer, c, h * r, w * r])


@fields.declared
class PixelUnshuffle(Layer):
    """(..., C, H r, W r) to (..., C r², H, W), r = downscale_factor: the inverse of PixelShuffle.

    Raises ValueError for sizes not divisible by r.
    """

    downscale_factor: int = fields.integer(1)

    def construct(self, input: Tensor) -> Tensor:
        r = self.downscale_factor
        input = arguments.of_rank(input, range(3, 9), "PixelUnshuffle")
        *outer, c, rows, columns = input.shape
        h = _divisible("PixelUnshuffle", "height", rows, r)
        w = _divisible("PixelUnshuffle", "width", columns, r)
        input = _ops.transpose(
            _ops.reshape(input, [math.prod(outer), c, h, r, w, r]), [0, 1, 3, 5, 2, 4]
        )
        return _ops.reshape(input, [*outer, c * r * r, h, w])


@fields.declared
class ChannelShuffle(Layer):
    """The channels of `groups` groups interleaved: (N, C, ...), C divisible by groups.

    Zhang et al., ShuffleNet (2018), section 3.1. groups: the number of groups. Raises ValueError.
    """

    groups: int = fields.integer(1)

    def construct(self, x: Tensor) -> Tensor:
        x = arguments.of_rank(x, range(3, 9), "ChannelShuffle")
        n, channels, *rest = x.shape
        each = _divisible("ChannelShuffle", "number of channels", channels, self.groups)
        x = _ops.reshape(x, [n, self.groups, each, math.prod(rest)])
        return _ops.reshape(_ops.transpose(x, [0, 2, 1, 3]), [n, channels, *rest])


def _grid(value: Any, owner: str, name: str) -> Any:
    if not isinstance(value, (tuple, list)):
        bad_type(
            f"For '{owner}', the '{name}' must be a tuple or list, but got {type(value).__name__}."
        )
    if len(value) != 4 or value[0] != 1 or value[3] != 1:
        bad_value(f"For '{owner}', the '{name}' must be [1, rows, columns, 1], but got {value}.")
    return windows.sizes(value[1:3], 2, owner, name)


@fields.declared
class Unfold(Layer):
    """The patches of an image, one below another in the channels.

    ksizes, strides, rates (of dilation): [1, rows, columns, 1]. padding: 'valid' or 'same'. Input
    (N, C, H, W), output (N, rows * columns * C, patches down, patches across). Raises TypeError,
    ValueError.
    """

    _ksizes: Any = fields.checked(_grid, alias="ksizes")
    _strides: Any = fields.checked(_grid, alias="strides")
    _rates: Any = fields.checked(_grid, alias="rates")
    padding: str = fields.anything(default="valid")

    def _build(self) -> None:
        lower = self.padding.lower() if isinstance(self.padding, str) else self.padding
        self.padding = arguments.one_of(lower, ["valid", "same"], "Unfold", "padding")

    def construct(self, input_x: Tensor) -> Tensor:
        input_x = arguments.of_rank(input_x, [4], "Unfold")
        steps = zip(input_x.shape[2:], self._ksizes, self._strides, self._rates, strict=True)
        axes = [windows.axis("Unfold", n, k, s, d, self.padding, (0, 0)) for n, k, s, d in steps]
        return _ops.concat(windows.taps(windows.pad(input_x, axes, 0), axes), 1)


publish(globals())
