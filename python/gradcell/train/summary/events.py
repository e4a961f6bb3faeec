"""Values as TensorBoard's event files have them: protobuf messages Event and Summary of
github.com/tensorflow/tensorboard, compat/proto/event.proto and summary.proto."""

from __future__ import annotations

import struct
import time
import zlib
from typing import Any

import numpy as np

from gradcell.files.protobuf import field, float_field
from gradcell.files.records import framed


def scalar(value: Any) -> bytes:
    """A number."""
    return float_field(2, float(np.asarray(value).reshape(())))


def _png(image: np.ndarray) -> bytes:
    """A picture as PNG (RFC 2083), without filters."""
    height, width, channels = image.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    lines = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)),
            chunk(b"IDAT", zlib.compress(lines.tobytes())),
            chunk(b"IEND", b""),
        )
    )


def image(value: Any) -> bytes:
    """The first picture of a batch [N, C, H, W]: values in [0, 1] or [0, 255], others stretched."""
    array = np.asarray(value)
    if array.ndim != 4 or array.shape[1] not in (1, 2, 3, 4):
        raise ValueError(f"an image must be of shape [N, C, H, W], got {list(array.shape)}")
    picture = array[0].transpose(1, 2, 0).astype(np.float64)
    if array.dtype != np.uint8:
        low, high = float(picture.min()), float(picture.max())
        if low < 0 or high > 255:
            picture = (picture - low) / ((high - low) or 1.0) * 255
        elif high <= 1:
            picture = picture * 255
    pixels = np.rint(picture).astype(np.uint8)
    height, width, channels = pixels.shape
    message = field(1, height) + field(2, width) + field(3, channels) + field(4, _png(pixels))
    return field(4, message)


def histogram(value: Any) -> bytes:
    """Encode a histogram of values in at most 50 ranges, without those that are not finite."""
    flat = np.asarray(value, np.float64).reshape(-1)
    flat = flat[np.isfinite(flat)]
    if len(flat) == 0:
        flat = np.zeros(1)
    counts, edges = np.histogram(flat, bins=50)
    message = b"".join(
        field(k, float(v))
        for k, v in enumerate((flat.min(), flat.max(), len(flat), flat.sum(), (flat**2).sum()), 1)
    )
    for number, numbers in ((6, edges[1:]), (7, counts)):
        message += field(number, np.asarray(numbers, "<f8").tobytes())
    return field(5, message)


#: TensorFlow's numbers of the dtypes.
_DTYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9,
           "bool": 10, "float16": 19}  # fmt: skip


def tensor(value: Any) -> bytes:
    """An array as it is."""
    array = np.asarray(value)
    if array.dtype.name not in _DTYPES:
        raise ValueError(f"a tensor of {array.dtype} cannot be recorded")
    shape = b"".join(field(2, field(1, n)) for n in array.shape)
    content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
    return field(8, field(1, _DTYPES[array.dtype.name]) + field(2, shape) + field(4, content))


def event(step: int, values: list[tuple[str, bytes]]) -> bytes:
    """A record of a step's values: (tag, one of the messages above)."""
    summary = b"".join(field(1, field(1, tag) + message) for tag, message in values)
    return framed(field(1, time.time()) + field(2, step) + field(5, summary))


def version() -> bytes:
    """The record that a file begins with."""
    return framed(field(1, time.time()) + field(3, "brain.Event:2"))
