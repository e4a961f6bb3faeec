"""Rows of a MindRecord file as bytes.

A row has two parts. Numbers and strings are a MessagePack map (https://github.com/msgpack/msgpack).
Arrays and bytes, the blob fields, follow each other in the schema's order; where there are several,
each has its length before it (64 bits, big-endian). Arrays of integers are packed: their number (32
bits, big-endian), two bits for the width of each (1, 2, 4 or 8 bytes, four to a byte, the first in
the highest bits), then the integers themselves, little-endian.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

SCALARS = ("int32", "int64", "float32", "float64", "string")
ARRAYS = ("int32", "int64", "float32", "float64")
_WIDTHS = np.array([1, 2, 4, 8])

Schema = dict[str, dict[str, Any]]


def is_blob(field: dict[str, Any]) -> bool:
    """Return whether a field of the schema is among the blobs."""
    return field["type"] == "bytes" or "shape" in field


def pack_integers(values: np.ndarray) -> bytes:
    """Integers, each as wide as it needs."""
    flat = values.reshape(-1).astype(np.int64)
    wide = np.zeros(len(flat), np.int64)
    for code, bits in enumerate((7, 15, 31), 1):
        wide[(flat < -(2**bits)) | (flat >= 2**bits)] = code
    codes = np.zeros(-(-len(flat) // 4) * 4, np.uint8)
    codes[: len(flat)] = wide
    heads = (codes.reshape(-1, 4) << np.array([6, 4, 2, 0], np.uint8)).sum(axis=1, dtype=np.uint8)
    bytes_of = flat.astype("<i8").view(np.uint8).reshape(-1, 8)
    kept = bytes_of[np.arange(8) < _WIDTHS[wide][:, None]]
    return struct.pack(">I", len(flat)) + heads.tobytes() + kept.tobytes()  # type: ignore[no-any-return]


def unpack_integers(data: memoryview, dtype: str) -> np.ndarray:
    """The integers again. Raises ValueError for bytes of another length, or too wide ones."""
    if len(data) < 4:
        raise ValueError("packed integers without their number")
    (count,) = struct.unpack(">I", data[:4])
    start = 4 + (count + 3) // 4
    if count > len(data) or start > len(data):
        raise ValueError(f"{count} packed integers in {len(data)} bytes")
    heads = np.frombuffer(data[4:start], np.uint8)
    codes = (heads[:, None] >> np.array([6, 4, 2, 0], np.uint8) & 3).reshape(-1)[:count]
    widths = _WIDTHS[codes]
    if start + int(widths.sum()) != len(data):
        raise ValueError(f"packed integers of {start + int(widths.sum())} bytes in {len(data)}")
    bytes_of = np.zeros((count, 8), np.uint8)
    bytes_of[np.arange(8) < widths[:, None]] = np.frombuffer(data[start:], np.uint8)
    made = bytes_of.view("<i8").reshape(-1)
    for code, width in enumerate(_WIDTHS[:3]):  # the sign of the narrow ones
        narrow = codes == code
        shift = 64 - 8 * int(width)
        made[narrow] = made[narrow] << shift >> shift
    if dtype == "int32" and count and not -(2**31) <= made.min() <= made.max() < 2**31:
        raise ValueError("a packed integer that is not an int32")
    return made.astype(dtype)


def pack_blobs(schema: Schema, names: list[str], row: dict[str, Any]) -> bytes:
    """The blob fields of a row."""
    parts = []
    for name in names:
        kind, value = schema[name]["type"], row[name]
        if kind == "bytes":
            part = bytes(value)
        elif kind in ("int32", "int64"):
            part = pack_integers(value)
        else:
            part = np.ascontiguousarray(value, "<" + np.dtype(kind).str[1:]).tobytes()
        parts.append(part)
    if not parts:
        return bytes(4)
    if len(parts) == 1:
        return parts[0]
    return b"".join(struct.pack(">Q", len(part)) + part for part in parts)


def unpack_blobs(schema: Schema, names: list[str], data: memoryview) -> dict[str, Any]:
    """The blob fields of a row, arrays in their shape. Raises ValueError."""
    if not names:
        return {}
    parts, at = [], 0
    for _ in names:
        if len(names) == 1:
            parts.append(data)
            at = len(data)
            break
        if len(data) - at < 8:
            raise ValueError("a row's fields end too early")
        (size,) = struct.unpack(">Q", data[at : at + 8])
        if size > len(data) - at - 8:
            raise ValueError(f"a field of {size} bytes where {len(data) - at - 8} are left")
        parts.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes too many")
    return {n: _array(schema[n], part) for n, part in zip(names, parts, strict=True)}


def _array(field: dict[str, Any], data: memoryview) -> Any:
    kind = field["type"]
    if kind == "bytes":
        return bytes(data)
    if kind in ("int32", "int64"):
        return unpack_integers(data, kind).reshape(field["shape"])
    return np.frombuffer(bytes(data), np.dtype(kind).newbyteorder("<")).reshape(field["shape"])


# MessagePack, as far as a flat map of numbers and strings needs it -------------------------------

_FIXED = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}


def _pack(value: Any) -> bytes:
    if isinstance(value, str):
        data = value.encode()
        if len(data) < 32:
            return bytes([0xA0 | len(data)]) + data
        return b"\xdb" + struct.pack(">I", len(data)) + data
    if isinstance(value, (float, np.floating)):
        return b"\xcb" + struct.pack(">d", value)
    value = int(value)
    if 0 <= value < 128:
        return bytes([value])
    return b"\xd3" + struct.pack(">q", value)


def pack_scalars(row: dict[str, Any]) -> bytes:
    """A map of numbers and strings."""
    size = len(row)
    head = bytes([0x80 | size]) if size < 16 else b"\xde" + struct.pack(">H", size)
    return head + b"".join(_pack(name) + _pack(value) for name, value in row.items())


class _Message:
    def __init__(self, data: memoryview) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> memoryview:
        if size > len(self.data) - self.at:
            raise ValueError("a row's numbers end too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, code: str) -> Any:
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def value(self) -> Any:
        head = self.take(1)[0]
        if head < 0x80:
            return head
        if head >= 0xE0:
            return head - 256
        if head in _FIXED:
            return self.number(_FIXED[head])
        if 0xA0 <= head < 0xC0:
            return str(self.take(head & 31), "utf-8")
        if head in _LENGTHS:
            return str(self.take(self.number(_LENGTHS[head])), "utf-8")
        raise ValueError(f"a value of the kind {head:#x} among a row's numbers")


def unpack_scalars(schema: Schema, data: memoryview) -> dict[str, Any]:
    """The numbers and strings of a row, of the schema's types. Raises ValueError."""
    message = _Message(data)
    head = message.take(1)[0]
    size = head & 15 if 0x80 <= head < 0x90 else message.number(">H") if head == 0xDE else -1
    if size < 0:
        raise ValueError("a row's numbers are not a map")
    found = {message.value(): message.value() for _ in range(size)}
    if message.at != len(data):
        raise ValueError(f"{len(data) - message.at} extra bytes after a row's numbers")
    made: dict[str, Any] = {}
    for name, field in schema.items():
        if is_blob(field):
            continue
        value, kind = found.get(name), field["type"]
        if kind == "string" and isinstance(value, str):
            made[name] = value
        elif kind.startswith("int") and isinstance(value, int):
            if not -(2 ** (int(kind[3:]) - 1)) <= value < 2 ** (int(kind[3:]) - 1):
                raise ValueError(f"{name!r} is {value}, which is not a {kind}")
            made[name] = value
        elif kind.startswith("float") and isinstance(value, (int, float)):
            made[name] = float(value)
        else:
            raise ValueError(f"{name!r} is not a {kind}")
    return made
