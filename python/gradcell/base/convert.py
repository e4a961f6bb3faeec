"""Makes arrays of whatever a Tensor can be constructed from."""

from __future__ import annotations

import difflib
import functools
import math
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcell import _core
from gradcell.base import dlpack

_NUMPY_CODES = {dtype.name: dtype.numpy_code for dtype in _core.dtypes()}


def _to_odd(array: np.ndarray) -> np.ndarray:
    """float64 values as float32, rounded to odd: narrower dtypes round these as the values."""
    narrow = array.astype(np.float32)
    back = narrow.astype(np.float64)
    bits = narrow.view(np.uint32) - (np.abs(back) > np.abs(array)).astype(np.uint32)
    inexact = (back != array) & ~np.isnan(array)
    return np.where(inexact, bits | np.uint32(1), narrow.view(np.uint32)).view(np.float32)


def to_bfloat16_bits(array: np.ndarray) -> np.ndarray:
    """Numbers as bfloat16 bit patterns, rounded once, to nearest even; NaN stays NaN."""
    if array.dtype != np.float32:
        array = _to_odd(np.asarray(array, np.float64))
    bits = np.asarray(array, order="C").view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.asarray(np.where(nan, quiet, rounded).astype(np.uint16))


def from_bfloat16_bits(bits: np.ndarray) -> np.ndarray:
    """bfloat16 bit patterns as float32 values."""
    return np.asarray(bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


class _Bits(NamedTuple):
    """A float that NumPy does not have: its arrays hold bit patterns."""

    of: Callable[[np.ndarray], np.ndarray]  #: float32 values, or wider numbers, rounded once
    values: Callable[[np.ndarray], np.ndarray]  #: of bit patterns, float32
    largest: float
    gap: float  #: between 1 and the next number


_NOT_OF_NUMPY = {
    "bfloat16": _Bits(
        to_bfloat16_bits, from_bfloat16_bits, (2.0 - 2.0**-7) * 2.0**127, gap=2.0**-7
    ),
}
_BY_NUMPY_NAME = {d.name: d for d in _core.dtypes() if d.name not in _NOT_OF_NUMPY}


def has_numpy_dtype(dtype: _core.DType) -> bool:
    """Return whether NumPy has the dtype, too."""
    return dtype.name not in _NOT_OF_NUMPY


def values_of(array: np.ndarray, dtype: _core.DType) -> np.ndarray:
    """An array of a tensor's elements as numbers: as it is, or a float32 copy of bit patterns."""
    kind = _NOT_OF_NUMPY.get(dtype.name)
    return array if kind is None else kind.values(array)


def gap_at_one(dtype: _core.DType) -> float:
    """The distance between 1 and the next number of a floating dtype."""
    kind = _NOT_OF_NUMPY.get(dtype.name)
    return float(np.finfo(dtype.name).eps) if kind is None else kind.gap


def little_endian(dtype: _core.DType) -> np.dtype:
    """NumPy's dtype of elements in a file, bit patterns where it has no such numbers."""
    found: np.dtype = np.dtype(dtype.numpy_code).newbyteorder("<")
    return found


@functools.cache  # NumPy puts the name of a dtype together each time
def dtype_of_numpy(dtype: np.dtype) -> _core.DType:
    """gradcell's dtype for a NumPy one. Raises TypeError where there is none."""
    found = _BY_NUMPY_NAME.get(dtype.newbyteorder("=").name)
    if found is None:
        text = f"Tensor: the NumPy dtype {dtype} is not supported"
        if dtype.kind in "OUSfc":
            text += "; where the array holds numbers, astype('float64') makes one of them"
        raise TypeError(_core.located(text))
    return found  # type: ignore[no-any-return]


def _array_of(data: Any) -> tuple[np.ndarray, _core.DType]:
    """NumPy's array of another library's, and the dtype; of bfloat16 the bits."""
    bfloat = False
    try:
        if not hasattr(data, "__dlpack__") or hasattr(data, "__array__"):
            array = np.asarray(data)
        else:
            array, bfloat = dlpack.array_of(data)
    except Exception as error:
        try:  # (PyTorch has no NumPy array for its bfloat16)
            array, bfloat = dlpack.array_of(data)
        except Exception:
            kind = type(data)
            raise TypeError(
                _core.located(
                    f"Tensor: a {kind.__module__}.{kind.__name__} gives no array: {error}"
                )
            ) from error
    if array.dtype.name == "bfloat16":  # (of ml_dtypes, which JAX has)
        array, bfloat = array.view(np.uint16), True
    return array, _core.bfloat16 if bfloat else dtype_of_numpy(array.dtype)


def to_dtype(dtype: Any) -> _core.DType:
    """A gradcell dtype from one, from its name, from a NumPy dtype or from int, float and bool."""
    if isinstance(dtype, _core.DType):
        return dtype
    if isinstance(dtype, str):
        if dtype.lower() not in _NUMPY_CODES:
            near = difflib.get_close_matches(dtype.lower(), _NUMPY_CODES, 1)
            hint = (
                f"; did you mean {near[0]}?"
                if near
                else f": it is one of {', '.join(_NUMPY_CODES)}"
            )
            raise TypeError(f"no dtype is called {dtype}{hint} ({_core.user_location()})")
        return _core.dtype_named(dtype.lower())
    try:
        if isinstance(dtype, (tuple, list)):  # NumPy makes records of them
            raise TypeError("several values")
        if hasattr(dtype, "dtype") and not isinstance(dtype, (np.dtype, type)):
            raise TypeError("an array, not its dtype")  # NumPy takes that of anything that has one
        return dtype_of_numpy(np.dtype(dtype))
    except TypeError as error:
        sizes = isinstance(dtype, int) and not isinstance(dtype, bool)
        hint = "; several sizes come as one tuple, as in ones((2, 3))" if sizes else ""
        raise TypeError(_core.located(f"{dtype!r} is not a dtype{hint}")) from error


_KINDS: dict[type, str] = {
    bool: "bool", np.bool_: "bool", int: "int64", float: "float32", complex: "complex128"
}  # fmt: skip


def _kinds(data: Any) -> set[str]:
    """The kinds of Python numbers in nested sequences: bool, int64, float32, complex128; and "array"
    if there are tensors or arrays among them."""
    kind = _KINDS.get(type(data))
    if kind is not None:
        return {kind}
    if isinstance(data, (list, tuple)):
        types = set(map(type, data))
        if types <= _KINDS.keys():
            return {_KINDS[t] for t in types} or {"float32"}
        return set().union(*map(_kinds, data))
    if isinstance(data, numbers.Integral):
        return {"int64"}
    if isinstance(data, numbers.Real):
        return {"float32"}
    if isinstance(data, numbers.Complex):
        return {"complex128"}
    if isinstance(data, _core.Tensor) or _core.is_array(data):
        return {"array"}
    raise TypeError(_core.located(f"Tensor: cannot make a tensor of {type(data).__name__}"))


_WIDEST = ("array", "complex128", "float32", "int64", "bool")


def _widest(kinds: set[str]) -> str:
    return next(name for name in _WIDEST if name in kinds)


def _dtype_of(kinds: set[str]) -> _core.DType | None:
    name = _widest(kinds)
    if name == "float32":
        return _core.default_dtype()
    return None if name == "array" else getattr(_core, name)


def dtype_of_numbers(data: Any) -> _core.DType | None:
    """The dtype of nested sequences of Python numbers alone; None if there are arrays in them."""
    return _dtype_of(_kinds(data))


#: From here on a float64 does not hold every integer.
_EXACT = 2.0**53


def _sticky(value: Any) -> float:
    """The number as a double, rounded to odd: floats narrower than it round this as the number."""
    near = float(value)
    if near == value or not math.isfinite(near):
        return near
    other = math.nextafter(near, math.inf if near < value else -math.inf)
    return near if int(np.float64(near).view(np.int64)) & 1 else other


def _integers(data: Any, kinds: set[str], name: str) -> np.ndarray:
    """Python numbers in an integer dtype, without fractions. Raises OverflowError if one does not fit,
    NaN and infinities among them."""
    limits = np.iinfo(name)
    if "float32" not in kinds:
        try:
            array = np.array(data, np.int64)
        except OverflowError:
            array = np.array(data, object)
        outside = np.asarray((array < limits.min) | (array > limits.max), bool)
    else:
        array = np.array(data, np.float64)
        outside = ~((np.trunc(array) >= float(limits.min)) & (array < float(limits.max) + 1.0))
    if outside.any():
        value = np.array(data, object)[outside].flat[0] if array.ndim else data
        raise OverflowError(f"Tensor: {value} does not fit into {name} ({_core.user_location()})")
    if len(kinds) > 1 and (np.abs(array) >= _EXACT).any():
        exact = [int(v) for v in np.array(data, object).flat]
        return np.array(exact, name).reshape(array.shape)
    return array.astype(name)


def _rounded(data: Any, kinds: set[str], want: _core.DType) -> np.ndarray:
    """Python numbers in a dtype, each rounded once."""
    name = want.name
    if want.is_complex:
        return np.array(data, np.complex128).astype(name)
    if "complex128" in kinds:
        raise TypeError(f"Tensor: complex numbers do not go into {name} ({_core.user_location()})")
    if name == "bool":
        return np.array(data, "?" if kinds == {"bool"} else "f8") != 0  # type: ignore[no-any-return]
    if not want.is_floating:
        return _integers(data, kinds, name)
    # NumPy rounds Python's floats once; integers that a double does not hold need more.
    if kinds <= {"float32", "bool"} and name not in _NOT_OF_NUMPY:
        return np.array(data, name)
    try:
        array = np.array(data, np.float64)
    except OverflowError as error:
        raise OverflowError(
            f"Tensor: an integer does not fit into {name} ({_core.user_location()})"
        ) from error
    if name == "float64":
        return array
    if "int64" in kinds and (np.abs(array) >= _EXACT).any():
        values = [_sticky(v) for v in np.array(data, object).flat]
        array = np.array(values, np.float64).reshape(array.shape)
    kind = _NOT_OF_NUMPY.get(name)
    return array.astype(name) if kind is None else kind.of(array)


def _from_numbers(data: Any, want: _core.DType | None) -> tuple[np.ndarray, _core.DType]:
    kinds = _kinds(data)
    wanted = _dtype_of(kinds) if want is None else want
    assert wanted is not None
    try:
        with np.errstate(over="ignore", under="ignore"):
            return _rounded(data, kinds, wanted), wanted
    except OverflowError:
        if want is not None or wanted != _core.int64:
            raise
        return _from_numbers(data, _core.uint64)  # as in MindSpore and NumPy
    except ValueError as error:
        if "inhomogeneous" not in str(error) and "setting an array element" not in str(error):
            raise
        raise TypeError(
            f"Tensor: the nested lists have different lengths ({_core.user_location()})"
        ) from error


def _in_dtype(array: np.ndarray, have: _core.DType, want: _core.DType) -> np.ndarray:
    """An array's elements, cast."""
    if have.name == want.name:
        return array
    array = values_of(array, have)
    if have.is_complex and not want.is_complex and want.name != "bool":
        array = array.real  # as a cast of a tensor does
    with np.errstate(all="ignore"):
        kind = _NOT_OF_NUMPY.get(want.name)
        return kind.of(array) if kind else array.astype(_NUMPY_CODES[want.name], copy=False)


def _converted(data: Any, want: _core.DType | None) -> tuple[np.ndarray, _core.DType]:
    """(array, dtype) of anything; want None: its own dtype."""
    if type(data) in _KINDS:
        return _from_numbers(data, want)
    if want is not None and isinstance(data, np.number):
        return _from_numbers(data.item(), want)  # refused if it does not fit, as a number is
    if isinstance(data, _core.Tensor):
        array, have = data._numpy(), data.dtype
    elif _core.is_array(data) or isinstance(data, np.generic):
        array, have = _array_of(data)
    elif isinstance(data, (list, tuple)) and "array" in _kinds(data):
        if want is None:
            found = [_converted(item, None)[1] for item in data]
            want = functools.reduce(_core.promote, found)
        try:
            return np.stack([_converted(item, want)[0] for item in data]), want
        except ValueError as error:
            if "same shape" not in str(error):
                raise
            raise TypeError(
                f"Tensor: the nested lists have different lengths ({_core.user_location()})"
            ) from error
    else:
        return _from_numbers(data, want)
    want = have if want is None else want
    return _in_dtype(array, have, want), want


def _row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[k + 1 :]) for k in range(len(shape)))


def from_gpu(data: Any, share: bool) -> _core.Tensor:
    """A tensor over the memory of an object with __cuda_array_interface__ (or with a copy of it).

    The engine's stream waits for the stream that the object names, for the default stream if its
    interface is older than version 3 and names none. Raises RuntimeError if device_target is 'CPU',
    ValueError if the object is on another GPU, TypeError for dtypes that do not exist here.
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


def to_array(data: Any, dtype: Any) -> tuple[np.ndarray, _core.DType] | _core.Tensor:
    """Convert data to what the core's constructor of Tensor takes: (contiguous native array,
    dtype), or a tensor."""
    if dtype is not None and not isinstance(dtype, _core.DType):
        dtype = to_dtype(dtype)
    if hasattr(data, "__cuda_array_interface__") and not isinstance(data, _core.Tensor):
        made = from_gpu(data, False)
        return made if dtype is None else _core.ops.cast(made, dtype)
    array, want = _converted(data, dtype)
    array = array.astype(_NUMPY_CODES[want.name], copy=False)  # native byte order
    return np.ascontiguousarray(array).reshape(array.shape), want


def limits(dtype: _core.DType) -> tuple[Any, Any]:
    """The least and the largest number of a real dtype that is not bool."""
    if dtype.is_floating:
        kind = _NOT_OF_NUMPY.get(dtype.name)
        top = float(np.finfo(dtype.name).max) if kind is None else kind.largest
        return -top, top
    return int(np.iinfo(dtype.name).min), int(np.iinfo(dtype.name).max)


def all_bits(dtype: _core.DType) -> int:
    """The number of an integer dtype all of whose bits are set."""
    low, high = limits(dtype)
    return -1 if low < 0 else int(high)
