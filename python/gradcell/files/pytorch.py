"""Files of torch.save, read without PyTorch: dicts and lists of numbers and tensors, which become arrays.

Such a file is a zip archive of a pickle, in which tensors are places in further members. Nothing but the
names below is looked up for the pickle, so that a file cannot run code. Numbers of bfloat16 come as those of
float32, which holds them.
"""

from __future__ import annotations

import collections
import io
import pickle
import struct
import zipfile
import zlib
from typing import Any

import numpy as np

from gradcell.base import bad_value, where

#: What a file begins with that PyTorch wrote before its version 1.6.
OLD = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."

_STORAGES = {
    "FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "LongStorage": "<i8",
    "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "<i1", "ByteStorage": "<u1",
    "BoolStorage": "?", "ComplexFloatStorage": "<c8", "ComplexDoubleStorage": "<c16",
    "BFloat16Storage": "bfloat16",
}  # fmt: skip

#: What a damaged file makes of the reading.
_DAMAGED = (
    pickle.UnpicklingError, zipfile.BadZipFile, zlib.error, struct.error, KeyError, EOFError, TypeError,
    IndexError, AttributeError, OverflowError, MemoryError, NotImplementedError, UnicodeDecodeError,
)  # fmt: skip


def is_pytorchs(path: Any) -> bool:
    """Return whether torch.save wrote a file."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/data.pkl") for name in archive.namelist())


def read(path: Any) -> Any:
    """Return the contents of a file of torch.save. Raises ValueError for a file with other things
    than numbers and tensors."""
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/data.pkl"))
        folder = name[: -len("data.pkl")]
        order = f"{folder}byteorder"
        if order in archive.namelist() and archive.read(order) != b"little":
            bad_value(f"{path} was written on a machine of another byte order")
        try:
            return _Reader(archive, folder, path).load()
        except _DAMAGED as error:
            raise ValueError(f"{path} cannot be read: {error}{where()}") from error


class _Reader(pickle.Unpickler):
    def __init__(self, archive: zipfile.ZipFile, folder: str, path: Any) -> None:
        super().__init__(io.BytesIO(archive.read(f"{folder}data.pkl")))
        self.archive, self.folder, self.path = archive, folder, path

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        known = {
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
        }
        if (module, name) not in known:
            bad_value(
                f"{self.path} has a {module}.{name}, but only numbers and tensors are read. With PyTorch: "
                'torch.save(model.state_dict(), "weights.pt")'
            )
        return known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        _, dtype, key, *_ = pid
        data = self.archive.read(f"{self.folder}data/{key}")
        if dtype == "bfloat16":  # the upper half of a float32
            return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        return np.frombuffer(data, dtype)


def _tensor(storage: Any, offset: int, size: Any, stride: Any, *_: Any) -> Any:
    """A copy of the elements at offset + i * stride."""
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    empty = any(n == 0 for n in size)
    if not empty and (offset < 0 or min(stride, default=0) < 0 or last >= storage.size):
        raise IndexError("a tensor lies outside its storage")
    if empty:
        return np.zeros(size, storage.dtype)
    bytes_apart = [s * storage.itemsize for s in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, bytes_apart).copy()
