"""Protobuf's wire format, as far as MindSpore's checkpoints, TensorBoard's event files and TFRecord
need it: fields of a message to bytes and back, strictly. A reader here trusts no length that it has
not compared with the bytes there are.

The format: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are not a message; `at` is where, counted from the message's first byte."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(f"{what} at byte {at}")
        self.at = at


def varint(value: int) -> bytes:
    """A whole number, negative ones as 64 bits in two's complement."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | float | str | bytes) -> bytes:
    """A field: an int as varint, a float as float64, a string or bytes with its length."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | FIXED64) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | BYTES) + varint(len(data)) + data


def float_field(number: int, value: float) -> bytes:
    """A field of 32 bits."""
    return varint(number << 3 | FIXED32) + struct.pack("<f", value)


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """(an unsigned number, where it ends)."""
    value = shift = 0
    for end in range(at, min(at + 10, len(data))):
        byte = data[end]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 2**64:
                break
            return value, end + 1
        shift += 7
    raise WireError("a number that does not end" if at + 10 > len(data) else "a bad number", at)


def signed(value: int) -> int:
    """Return a varint's value as a signed number of 64 bits."""
    return value - 2**64 if value >= 2**63 else value


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview, int]]:
    """(number, value, where the field begins) of each field of a message; a value is an int, or the
    bytes of a string, a message or a number of fixed size. Raises WireError."""
    at = 0
    while at < len(data):
        start = at
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0 or number >= 2**29:
            raise WireError(f"a field with the number {number}", start)
        if wire == VARINT:
            value, at = read_varint(data, at)
            yield number, value, start
            continue
        if wire == BYTES:
            size, at = read_varint(data, at)
        elif wire in (FIXED32, FIXED64):
            size = 4 if wire == FIXED32 else 8
        else:
            raise WireError(f"a field of the wire type {wire}", start)
        if size > len(data) - at:
            raise WireError(f"a field of {size} bytes where {len(data) - at} are left", start)
        yield number, data[at : at + size], start
        at += size
