"""TFRecord's framing of records, as event files and TFRecord data sets have it.

A record is its length (8 bytes), a checksum of these, the bytes, a checksum of them; CRC-32C, turned
and shifted (tensorflow.org/tutorials/load_data/tfrecord).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator


def _table() -> list[int]:
    made = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        made.append(value)
    return made


_CRC = _table()


def crc32c(data: bytes | memoryview) -> int:
    """The cyclic redundancy check of RFC 3720, appendix B.4."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _CRC[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def masked(data: bytes | memoryview) -> int:
    """The checksum as records hold it."""
    value = crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(data: bytes) -> bytes:
    """A record."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        (length, struct.pack("<I", masked(length)), data, struct.pack("<I", masked(data)))
    )


def places(data: memoryview) -> Iterator[tuple[int, int]]:
    """Where each record's bytes begin and end. Raises ValueError for a file that is cut short or no
    such file; the checksums of the lengths are looked at, those of the bytes are not."""
    at = 0
    while at < len(data):
        head = data[at : at + 12]
        if len(head) < 12:
            raise ValueError(f"truncated: a record at byte {at}")
        length, check = struct.unpack("<QI", head)
        if masked(head[:8]) != check:
            raise ValueError(f"corrupted or no records: the length at byte {at}")
        if length > len(data) - at - 16:
            raise ValueError(f"truncated: a record of {length} bytes at byte {at}")
        yield at + 12, at + 12 + length
        at += 16 + length
