"""Another library's arrays on the made-up GPU (tests/fake_cuda.cpp), as CuPy's are.

Each array has a stream of its own, on which its bytes arrive when somebody waits for it. What is freed
is overwritten on that stream, as a pool that hands memory on would do.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

cuda = ctypes.CDLL(os.environ["GRADCELL_CUDA_DRIVER"])
Address = ctypes.c_ulonglong


def call(name: str, *arguments: Any) -> None:
    """As the CUDA runtime does it: a thread that has no device current gets the first."""
    before = ctypes.c_void_p()
    cuda.cuCtxGetCurrent(ctypes.byref(before))
    if not before.value and not name.startswith(("cuDevice", "cuCtx")):
        enter(0)
    code = getattr(cuda, name)(*arguments)
    assert code == 0, f"{name}: {code}"


def enter(device: int) -> None:
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)


class DLTensor(ctypes.Structure):
    _fields_ = [  # noqa: RUF012
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}

capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype = ctypes.py_object
capsule_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

alive = 0  # arrays whose memory has not been freed
exported: dict[int, Any] = {}


class Array:
    def __init__(self, values: Any, device: int = 0, offset: int = 0, version: int = 3) -> None:
        global alive
        alive += 1
        values = np.ascontiguousarray(values)
        self.shape, self.dtype, self.version = values.shape, values.dtype, version
        self.device, self.strides, self.nbytes = device, None, values.nbytes
        enter(device)
        self.base, stream = Address(), ctypes.c_void_p()
        call("cuMemAlloc_v2", ctypes.byref(self.base), max(1, values.nbytes) + offset)
        call("cuStreamCreate", ctypes.byref(stream), 1)
        self.pointer, self.stream = self.base.value + offset, stream.value
        self.set(values)

    def set(self, values: Any) -> None:
        values = np.ascontiguousarray(values, self.dtype)
        enter(self.device)
        call("cuMemcpyHtoDAsync_v2", Address(self.pointer), ctypes.c_void_p(values.ctypes.data),
             ctypes.c_size_t(self.nbytes), ctypes.c_void_p(self.stream))  # fmt: skip

    def get(self) -> np.ndarray:
        return read(self.pointer, self.shape, self.dtype, self.stream, self.device)

    def __del__(self) -> None:
        global alive
        alive -= 1
        enter(self.device)
        call("cuMemsetD8Async", Address(self.pointer), 0xFF, ctypes.c_size_t(self.nbytes),
             ctypes.c_void_p(self.stream))  # fmt: skip
        call("cuStreamSynchronize", ctypes.c_void_p(self.stream))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.pointer, False),
            "strides": self.strides, "version": self.version,
        }  # fmt: skip
        return {**interface, "stream": self.stream} if self.version >= 3 else interface

    def copy(self) -> Array:
        return Array(np.lib.stride_tricks.as_strided(self.get(), self.shape, self.strides).copy())

    def __float__(self) -> float:
        return float(self.get())

    __mul__ = __add__ = lambda self, other: NotImplemented  # as CuPy for what it does not know

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device)

    def __dlpack__(self, stream: int | None = None) -> Any:
        enter(self.device)
        event = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(event), 2)
        call("cuEventRecord", event, ctypes.c_void_p(self.stream))
        call("cuStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        tensor = DLTensor(self.pointer, 2, self.device, len(self.shape), CODES[self.dtype.kind],
                          self.dtype.itemsize * 8, 1, shape, None, 0)  # fmt: skip
        key = id(tensor)
        deleter = DELETER(lambda _: exported.pop(key) and None)
        managed = Managed(tensor, None, deleter)
        exported[key] = (self, shape, tensor, deleter, managed)
        return capsule_new(ctypes.addressof(managed), b"dltensor", None)


def read(pointer: int, shape: Any, dtype: Any, stream: int, device: int = 0) -> np.ndarray:
    """Bytes of the GPU by way of a stream."""
    values = np.empty(shape, dtype)
    enter(device)
    call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(values.ctypes.data), Address(pointer),
         ctypes.c_size_t(values.nbytes), ctypes.c_void_p(stream))  # fmt: skip
    call("cuStreamSynchronize", ctypes.c_void_p(stream))
    return values


class Taken:
    """Another library's array over the memory in a DLPack capsule."""

    def __init__(self, source: Any, stream: int) -> None:
        capsule = source.__dlpack__(stream=stream)
        self.managed = Managed.from_address(capsule_pointer(capsule, b"dltensor"))
        ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), b"used_dltensor")
        self.stream = stream

    def enqueue_copy(self) -> np.ndarray:
        """The elements, once the stream has been waited for."""
        t = self.managed.tensor
        shape = [t.shape[k] for k in range(t.ndim)]
        values = np.full(shape, -1, f"{'iuf'[t.code]}{t.bits // 8}")
        call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(values.ctypes.data), Address(t.data),
             ctypes.c_size_t(values.nbytes), ctypes.c_void_p(self.stream))  # fmt: skip
        return values

    def __del__(self) -> None:
        self.managed.deleter(ctypes.byref(self.managed))


def new_stream() -> int:
    stream = ctypes.c_void_p()
    call("cuStreamCreate", ctypes.byref(stream), 1)
    return stream.value or 0
