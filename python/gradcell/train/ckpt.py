"""MindSpore's own checkpoint files (.ckpt), read and written without MindSpore.

A file is a protobuf message that holds a parameter in each field 1: its name (field 1) and a tensor
(field 2) of dims (1), the dtype's name (2) and the values in little-endian order (3). A large tensor
comes in parts that follow each other under one name. A string is a tensor of dtype `str`, four bytes
a character. Behind the message there may be `crc_num` and its CRC-32 in ten bytes.

Files of gradcell begin with a field that other readers pass over: metadata as JSON, with a checksum
of each tensor, so that damage is found and what is not a parameter (the generators' state) has a
place.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_value
from gradcell.base.convert import little_endian
from gradcell.files.protobuf import WireError, field, fields, signed

_METADATA = 1000  # the number of the field that holds gradcell's metadata
_PART = 512 * 2**20  # bytes of a tensor in one field; a field's length must stay below 2^31
_TRAILER = b"crc_num"

_DTYPES = {
    "Bool": "bool",
    "BFloat16": "bfloat16",
    "Complex64": "complex64",
    "Complex128": "complex128",
    **{
        f"{kind}{bits}": f"{kind.lower()}{bits}"
        for kind in ("Int", "UInt", "Float")
        for bits in (8, 16, 32, 64)
    },
}
_NAMES = {name: label for label, name in _DTYPES.items()}


def is_ckpt(data: bytes) -> bool:
    """Return whether a file's bytes begin like a .ckpt file, not like safetensors."""
    if data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data) - 8:
        return False
    return data[:1] == b"\n" or data[:2] == field(_METADATA, b"")[:2]


# Writing ------------------------------------------------------------------------------------------


def checksum(name: str, label: str, dims: Iterable[int], content: Any) -> int:
    """The CRC-32 of a tensor: its name, dtype, shape and bytes."""
    return zlib.crc32(content, zlib.crc32(f"{name}\0{label}\0{list(dims)}".encode()))


def checksum_of(metadata: dict[str, Any]) -> int:
    """The CRC-32 of metadata."""
    return zlib.crc32(json.dumps(metadata, sort_keys=True).encode())


def _parts(name: str, label: str, dims: list[int], content: memoryview) -> Iterable[bytes]:
    head = b"".join(field(1, n) for n in dims) + field(2, label)
    for at in range(0, max(len(content), 1), _PART):
        tensor = head + field(3, bytes(content[at : at + _PART]))
        yield field(1, field(1, name) + field(2, tensor))


def serialize(
    arrays: dict[str, tuple[str, list[int], np.ndarray]], texts: dict[str, str],
    metadata: dict[str, str], crc_check: bool = False,
) -> bytes:  # fmt: skip
    """The bytes of a file.

    arrays: from name to (dtype's name, shape, values). texts: strings by name. metadata: what
    gradcell wants to read again. crc_check: put the CRC-32 behind the message.
    """
    body: list[bytes] = []
    sums = {}
    entries: list[tuple[str, str, list[int], np.ndarray]] = []
    entries += [(n, _NAMES[d], shape, a.reshape(-1)) for n, (d, shape, a) in arrays.items()]
    for name, text in texts.items():
        entries.append((name, "str", [0], np.frombuffer(text.encode("utf-32-le"), np.uint8)))
    for name, label, dims, array in entries:
        content = array.view(np.uint8).data
        sums[name] = checksum(name, label, dims, content)
        body.extend(_parts(name, label, dims, content))
    about: dict[str, Any] = {**metadata, "checksums": sums}
    about["checksum"] = checksum_of(about)
    data = field(_METADATA, json.dumps(about)) + b"".join(body)
    return data + _TRAILER + zlib.crc32(data).to_bytes(10, "big") if crc_check else data


# Reading ------------------------------------------------------------------------------------------


class _Entry:
    """A parameter as it is read: parts are put together when it is complete."""

    def __init__(self, name: str, label: str, dims: list[int], at: int) -> None:
        self.name, self.label, self.dims, self.at = name, label, dims, at
        self.parts: list[memoryview] = []


def _text(value: int | memoryview, what: str, at: int) -> str:
    if isinstance(value, int):
        raise WireError(f"{what} is a number", at)
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError as error:
        raise WireError(f"{what} is not valid text ({error.reason})", at) from None


def _bytes(value: int | memoryview, what: str, at: int) -> memoryview:
    if isinstance(value, int):
        raise WireError(f"{what} is a number", at)
    return value


def _entry(message: memoryview, at: int) -> tuple[_Entry, memoryview]:
    """(a parameter without values, its values) of a field 1."""
    name: str | None = None
    tensor: memoryview | None = None
    for number, value, _ in fields(message):
        if number == 1:
            name = _text(value, "a parameter's name", at)
        elif number == 2:
            tensor = _bytes(value, "a parameter's tensor", at)
        else:
            raise WireError(
                f"the parameter {name!r} is of a kind (field {number}) that gradcell does not have",
                at,
            )
    if not name or tensor is None:
        raise WireError(f"a parameter without a {'tensor' if name else 'name'}", at)
    label, dims, content = "", list[int](), memoryview(b"")
    for number, value, _ in fields(tensor):
        if number == 1 and isinstance(value, int):
            dims.append(signed(value))
        elif number == 2:
            label = _text(value, f"the dtype of {name!r}", at)
        elif number == 3:
            content = _bytes(value, f"the values of {name!r}", at)
        else:
            raise WireError(f"an unknown field {number} in the tensor {name!r}", at)
    return _Entry(name, label, dims, at), content


def _entries(message: memoryview) -> tuple[list[_Entry], memoryview | None]:
    """(the parameters in the file's order, gradcell's metadata or None)."""
    found: list[_Entry] = []
    metadata = None
    for number, value, at in fields(message):
        if number == _METADATA:
            metadata = _bytes(value, "the metadata", at)
            continue
        if number != 1:
            raise WireError(f"an unknown field {number}", at)
        entry, content = _entry(_bytes(value, "a parameter", at), at)
        last = found[-1] if found else None
        if last is None or last.name != entry.name:
            found.append(entry)
        elif (last.label, last.dims) != (entry.label, entry.dims):
            raise WireError(f"the parts of {entry.name!r} differ in dtype or shape", at)
        found[-1].parts.append(content)
    return found, metadata


def _value(entry: _Entry, content: memoryview, fail: Callable[[str], NoReturn]) -> Tensor | str:
    name, label, dims, at = entry.name, entry.label, entry.dims, entry.at
    if label == "str":
        try:
            return str(content, "utf-32-le")
        except UnicodeDecodeError:
            fail(f"corrupted: the string {name!r} (byte {at}) is not valid text")
    what, dtype = f"the tensor {name!r} (byte {at})", getattr(_core, _DTYPES.get(label, ""), None)
    if not isinstance(dtype, _core.DType):
        fail(f"{what} has the dtype {label!r}, which gradcell does not have")
    if any(n < 0 for n in dims) or len(dims) > 64:
        fail(f"corrupted: {what} has the shape {dims[:64]}")
    if len(content) != math.prod(dims) * dtype.itemsize:
        fail(f"corrupted: {what} has {len(content)} bytes for {label} of shape {dims}")
    if dtype.name == "bool" and bytes(content).strip(b"\0\1"):
        fail(f"corrupted: {what} holds bools that are neither 0 nor 1")
    try:
        array = np.frombuffer(bytearray(content), little_endian(dtype)).reshape(dims)
    except ValueError as error:  # more axes, or longer ones, than NumPy has
        fail(f"{what} of shape {dims}: {error}")
    return _core.from_numpy(array, dtype)


def _metadata(part: memoryview, fail: Callable[[str], NoReturn]) -> dict[str, Any]:
    try:
        about = json.loads(bytes(part))
        expected = about.pop("checksum")
        if checksum_of(about) != expected or not isinstance(about["checksums"], dict):
            raise ValueError("its checksum does not match")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        fail(f"corrupted: the metadata: {error}")
    return about  # type: ignore[no-any-return]


def read(path: str, data: bytes) -> tuple[dict[str, Tensor], dict[str, str], dict[str, Any]]:
    """(tensors, strings, metadata) of a file's bytes; every length is checked, and of a file that
    gradcell wrote every byte. Raises ValueError that says what is wrong and where."""

    def fail(what: str) -> NoReturn:
        bad_value(f"load_checkpoint: {path}: {what}")

    message = memoryview(data)
    if data[-17:-10] == _TRAILER:
        message = message[:-17]
        if zlib.crc32(message) != int.from_bytes(data[-10:], "big"):
            fail("corrupted: the CRC-32 at its end does not match")
    try:
        entries, part = _entries(message)
    except WireError as error:
        fail(f"truncated or corrupted, or not a MindSpore checkpoint: {error}")
    about = _metadata(part, fail) if part is not None else {}
    values: dict[str, Tensor | str] = {}
    for entry in entries:
        if entry.name in values:
            fail(f"corrupted: the name {entry.name!r} appears twice (byte {entry.at})")
        joined = entry.parts[0] if len(entry.parts) == 1 else memoryview(b"".join(entry.parts))
        if about:
            found = checksum(entry.name, entry.label, entry.dims, joined)
            if about["checksums"].get(entry.name) != found:
                fail(
                    f"corrupted: the checksum of the tensor {entry.name!r} (byte {entry.at}) does "
                    "not fit"
                )
        values[entry.name] = _value(entry, joined, fail)
    for name in about.pop("checksums", ()):
        if name not in values:
            fail(f"truncated or corrupted: the tensor {name!r} is lost")
    tensors = {n: v for n, v in values.items() if isinstance(v, Tensor)}
    return tensors, {n: v for n, v in values.items() if isinstance(v, str)}, about
