"""TFRecord's framing of records, as event files and TFRecord data sets have it.

A record is its length (8 bytes), a checksum of these, the bytes, a checksum of them; CRC-32C, turned
and shifted (tensorflow.org/tutorials/load_data/tfrecord).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from gradcell import _core


def masked(data: bytes | memoryview) -> int:
    """The checksum as records hold it."""
    value = _core.crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(data: bytes) -> bytes:
    """A record."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        (length, struct.pack("<I", masked(length)), data, struct.pack("<I", masked(data)))
    )


def places(data: memoryview) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each record's bytes. Raises ValueError for a file that is
    cut short or of another format. The checksums of the lengths are checked; those of the bytes by
    `intact`."""
    at = 0
    while at < len(data):
        head = data[at : at + 12]
        if len(head) < 12:
            raise ValueError(f"truncated: a record at byte {at}")
        length, check = struct.unpack("<QI", head)
        if masked(head[:8]) != check:
            raise ValueError(f"corrupted, or not a file of records: the length at byte {at}")
        if length > len(data) - at - 16:
            raise ValueError(f"truncated: a record of {length} bytes at byte {at}")
        yield at + 12, at + 12 + length
        at += 16 + length


def intact(data: memoryview, begin: int, end: int) -> bool:
    """Return whether a record's bytes match its checksum."""
    (check,) = struct.unpack("<I", data[end : end + 4])
    return masked(data[begin:end]) == check  # type: ignore[no-any-return]
