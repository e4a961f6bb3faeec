"""Makes arrays of whatever a Tensor can be constructed from."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from gradcell import _core

_NUMPY_CODES = {
    "bool": "?",
    "uint8": "u1",
    "int8": "i1",
    "int16": "i2",
    "int32": "i4",
    "int64": "i8",
    "float16": "f2",
    "bfloat16": "u2",  # as bit patterns
    "float32": "f4",
    "float64": "f8",
}
_BY_NUMPY_NAME = {name: getattr(_core, name) for name in _NUMPY_CODES if name != "bfloat16"}


def to_bfloat16_bits(array: np.ndarray) -> np.ndarray:
    """float32 values as bfloat16 bit patterns, rounded to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(nan, (bits >> np.uint32(16)) | np.uint32(0x40), rounded).astype(np.uint16)


def from_bfloat16_bits(bits: np.ndarray) -> np.ndarray:
    """bfloat16 bit patterns as float32 values."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def dtype_of_numpy(dtype: np.dtype) -> _core.DType:
    """gradcell's dtype for a NumPy one. Raises TypeError where there is none."""
    found = _BY_NUMPY_NAME.get(dtype.newbyteorder("=").name)
    if found is None:
        raise TypeError(
            f"Tensor: the NumPy dtype {dtype} is not supported ({_core.user_location()})"
        )
    return found


def to_dtype(dtype: Any) -> _core.DType:
    """A gradcell dtype from one, from its name, from a NumPy dtype or from int, float and bool."""
    if isinstance(dtype, _core.DType):
        return dtype
    if isinstance(dtype, str):
        return _core.dtype_named(dtype.lower())
    try:
        return dtype_of_numpy(np.dtype(dtype))
    except TypeError as error:
        raise TypeError(f"{dtype!r} is not a dtype ({_core.user_location()})") from error


def _plain_dtype(data: Any) -> str:
    """The dtype of Python numbers in nested sequences: bool, int64 or float32, the widest found."""
    if isinstance(data, (bool, np.bool_)):
        return "bool"
    if isinstance(data, (numbers.Integral,)):
        return "int64"
    if isinstance(data, (numbers.Real,)):
        return "float32"
    if isinstance(data, (list, tuple)):
        found = {_plain_dtype(item) for item in data} or {"float32"}
        for name in ("float32", "int64", "bool"):
            if name in found:
                return name
    if isinstance(data, (np.ndarray, _core.Tensor)):
        return "array"
    raise TypeError(
        f"Tensor: cannot make a tensor of {type(data).__name__} ({_core.user_location()})"
    )


def _to_numpy(data: Any) -> tuple[np.ndarray, _core.DType]:
    if isinstance(data, _core.Tensor):
        return data._numpy(), data.dtype
    if isinstance(data, (np.ndarray, np.generic)):
        return np.asarray(data), dtype_of_numpy(np.asarray(data).dtype)
    if isinstance(data, (list, tuple)):
        if any(isinstance(item, (_core.Tensor, np.ndarray)) for item in data):
            parts = [_to_numpy(item) for item in data]
            return np.stack([a for a, _ in parts]), parts[0][1]
        name = _plain_dtype(data)
        if name == "array":
            parts = [_to_numpy(list(item)) for item in data]
            return np.stack([a for a, _ in parts]), parts[0][1]
        try:
            return np.array(data, _NUMPY_CODES[name]), getattr(_core, name)
        except ValueError as error:
            raise TypeError(
                f"Tensor: the nested lists have different lengths ({_core.user_location()})"
            ) from error
        except OverflowError as error:
            raise ValueError(f"Tensor: {error} ({_core.user_location()})") from error
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        array = np.asarray(data)
        return array, dtype_of_numpy(array.dtype)
    name = _plain_dtype(data)
    try:
        return np.array(data, _NUMPY_CODES[name]), getattr(_core, name)
    except OverflowError as error:
        raise ValueError(
            f"Tensor: the integer {data} does not fit into 64 bits ({_core.user_location()})"
        ) from error


def _row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[k + 1 :]) for k in range(len(shape)))


def from_gpu(data: Any, share: bool) -> _core.Tensor:
    """A tensor over the memory of an object with __cuda_array_interface__ (or with a copy of it).

    The engine's stream waits for the stream that the object names, for the default stream if its
    interface is older than version 3 and names none. Raises RuntimeError if device_target is 'CPU',
    ValueError if the object is on another GPU, TypeError for dtypes that there are not.
    """
    interface = data.__cuda_array_interface__
    numpy_dtype = np.dtype(interface["typestr"])
    dtype = dtype_of_numpy(numpy_dtype)
    shape = tuple(int(n) for n in interface["shape"])
    if numpy_dtype.byteorder == ">":
        raise TypeError(f"Tensor: the GPU array is big-endian ({_core.user_location()})")
    if interface.get("mask") is not None:
        raise TypeError(f"Tensor: the GPU array has a mask ({_core.user_location()})")
    strides = interface.get("strides")
    dense = (
        strides is None
        or 0 in shape
        or all(
            n == 1 or a == b
            for n, a, b in zip(shape, strides, _row_major(shape, numpy_dtype.itemsize), strict=True)
        )
    )
    if not dense:
        copy = getattr(data, "contiguous", None) or getattr(data, "copy", None)
        if copy is None:
            raise ValueError(f"Tensor: the GPU array is not contiguous ({_core.user_location()})")
        return from_gpu(copy(), share)
    stream = interface.get("stream", None if interface["version"] >= 3 else 1)
    if stream == 0:
        raise ValueError(f"Tensor: the GPU array names no valid stream ({_core.user_location()})")
    pointer = interface["data"][0] or 0
    return _core.from_device_pointer(pointer, dtype, shape, stream, data, share)


def to_array(data: Any, dtype: _core.DType | None) -> tuple[np.ndarray, _core.DType] | _core.Tensor:
    """What the constructor of Tensor takes: (contiguous native array, dtype), or a tensor."""
    if dtype is not None and not isinstance(dtype, _core.DType):
        raise TypeError(
            f"Tensor: dtype must be a gradcell dtype such as gradcell.float32, got {dtype!r} "
            f"({_core.user_location()})"
        )
    if hasattr(data, "__cuda_array_interface__") and not isinstance(data, _core.Tensor):
        made = from_gpu(data, False)
        return made if dtype is None else _core.ops.cast(made, dtype)
    array, have = _to_numpy(data)
    want = have if dtype is None else dtype
    if have.name == "bfloat16" and want.name != "bfloat16":
        array = from_bfloat16_bits(array)
    elif want.name == "bfloat16" and have.name != "bfloat16":
        array = to_bfloat16_bits(array.astype(np.float32))
    with np.errstate(all="ignore"):
        array = np.asarray(array).astype(_NUMPY_CODES[want.name], copy=False)
    return np.ascontiguousarray(array).reshape(array.shape), want
