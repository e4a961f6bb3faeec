"""Arrays of other libraries in the host's memory by DLPack, also of bfloat16, which NumPy does not have: its
bits go through NumPy as those of uint16."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_UINT, _BFLOAT = 1, 4
#: By a capsule's name: where its structure says the kind of its elements.
_KIND_AT = {b"dltensor": 20, b"dltensor_versioned": 32 + 20}


def _kind(capsule: Any) -> Any:
    """The byte of a capsule that says the kind of its elements, to be read or set."""
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype, python.PyCapsule_GetName.argtypes = (
        ctypes.c_char_p,
        [ctypes.py_object],
    )
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = python.PyCapsule_GetName(capsule)
    start = python.PyCapsule_GetPointer(capsule, name)
    return ctypes.c_uint8.from_address(start + _KIND_AT[name])


def mark_as_bfloat(capsule: Any) -> None:
    """Says of a capsule of 16-bit elements that they are bfloat16."""
    _kind(capsule).value = _BFLOAT


class _Bits:
    """Another library's array of bfloat16, as one of uint16."""

    def __init__(self, source: Any) -> None:
        self.source, self.is_bfloat = source, False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.source.__dlpack__(**options)
        kind = _kind(capsule)
        if kind.value == _BFLOAT:
            kind.value, self.is_bfloat = _UINT, True
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.source.__dlpack_device__()


def array_of(source: Any) -> tuple[np.ndarray, bool]:
    """Return an array over the memory of an object that speaks DLPack, and whether it holds the bits of
    bfloat16."""
    bits = _Bits(source)
    array = np.from_dlpack(bits)
    return array, bits.is_bfloat
