"""The text of tensors and parameters, as MindSpore 2.10 prints them on Linux.

In: a numpy array and the printed name of the tensor's dtype ("Float32", "Int64", "Bool", ...).
Out: `tensor_str` gives what `print(tensor)` shows, `tensor_repr` what a tuple or a list shows,
`parameter_repr` the one line of a Parameter. The functions are pure; only numpy is imported.

numpy has no bfloat16: such a tensor comes as float32 values, as raw uint16 bits, or as an array of
any dtype that numpy can cast to float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

_BFLOAT16 = "BFloat16"
_EDGE = 3  # elements shown at each end of a shortened axis
_LONGEST_VECTOR = 1000  # a longer vector is shortened; in a matrix, an axis longer than 2 * _EDGE


def tensor_str(array: Array, dtype_name: str) -> str:
    """Return the text of `print(tensor)`: numpy's, with six decimals for bfloat16.

    Args:
        array: the values, of any shape.
        dtype_name: the tensor's dtype as it prints, for instance "Float32".
    """
    if dtype_name != _BFLOAT16:
        return str(array)
    values = _bfloat16_values(array)
    return np.array2string(values, formatter={"float_kind": lambda value: f"{value:f}"})


def tensor_repr(array: Array, dtype_name: str, sizes: Sequence[int] | None = None) -> str:
    """Return the text of a tensor inside a tuple or a list: shape, dtype and full-precision values.

    Args:
        array: the values, of any shape.
        dtype_name: the tensor's dtype as it prints, for instance "Float32".
        sizes: the shape to print, if it is not the array's.
    """
    shape = ", ".join(map(str, sizes or array.shape))
    start = "\n" if array.ndim > 1 else " "
    return f"Tensor(shape=[{shape}], dtype={dtype_name}, value={start}{_values(array, dtype_name)})"


def parameter_repr(name: str, shape: Sequence[int], dtype_name: str, requires_grad: bool) -> str:
    """Return the one line that a Parameter prints, alone and inside lists; it shows no values."""
    return (
        f"Parameter (name={name}, shape={tuple(shape)}, dtype={dtype_name}, "
        f"requires_grad={requires_grad})"
    )


parameter_str = parameter_repr


def _values(array: Array, dtype_name: str) -> str:
    if dtype_name == _BFLOAT16:
        array = _bfloat16_values(array)
    if array.size == 0:
        return ""
    if array.ndim == 0:
        return _general(array[()])
    shown = _shown(array)
    texts = np.empty(shown.shape, dtype=object)
    texts.ravel()[:] = _element_texts(shown.ravel(), dtype_name)
    if array.ndim == 1:
        return _vector(texts, len(array) > _LONGEST_VECTOR, _per_line(dtype_name))
    return _nested(texts, array.shape, 1)


def _bfloat16_values(array: Array) -> Array:
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32).reshape(array.shape)
    return array.astype(np.float32)


def _shown(array: Array) -> Array:
    """The elements that appear: both ends of every axis that is too long, all of the others."""
    longest = _LONGEST_VECTOR if array.ndim == 1 else 2 * _EDGE
    for axis, length in enumerate(array.shape):
        if length > longest:
            ends = np.r_[0:_EDGE, length - _EDGE : length]
            array = array.take(ends, axis=axis)
    return array


def _element_texts(values: Array, dtype_name: str) -> list[str]:
    """The elements as text of one width: fixed for bool and floats, the widest for integers.

    Complex numbers are as wide as they are."""
    if dtype_name == "Bool":
        return [f"{bool(value)!s:>5}" for value in values]
    if dtype_name in ("Float32", "Float64"):
        return [_signed_nan(value, "%.8e").rjust(15) for value in values]
    if dtype_name == "Float16":
        return [_signed_nan(value, "%.4e").rjust(11) for value in values]
    texts = [_general(value) for value in values]
    if dtype_name.startswith("Complex"):
        return texts
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts]


def _general(value: Any) -> str:
    """One number alone: six significant digits for a float, as it is otherwise."""
    if isinstance(value, np.complexfloating):
        return f"{value.real:g}{value.imag:+g}j"
    if isinstance(value, np.floating):
        return _signed_nan(value, "%g")
    return str(value)


def _signed_nan(value: Any, form: str) -> str:
    if np.isnan(value):
        return "-nan" if np.signbit(value) else "nan"
    return form % float(value)


def _per_line(dtype_name: str) -> int:
    return 12 if dtype_name in ("Bool", "Float16", "Float32", "Float64") else 24


def _vector(texts: Array, shortened: bool, per_line: int) -> str:
    if shortened:
        return f"[{', '.join(texts[:_EDGE])} ... {', '.join(texts[_EDGE:])}]"
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    end = "" if len(texts) % per_line else "\n "  # a full last line is broken like the others
    return "[" + ", \n ".join(lines) + end + "]"


def _nested(texts: Array, shape: Sequence[int], depth: int) -> str:
    """Rows one below the other; `shape` is the full tensor's, `depth` the brackets open by now."""
    shortened = shape[0] > 2 * _EDGE
    if texts.ndim == 1:
        return _vector(texts, shortened, len(texts) + 1)
    indent = "\n" + " " * depth
    rows = [_nested(part, shape[1:], depth + 1) for part in texts]
    if not shortened:
        return "[" + ("," + indent).join(rows) + "]"
    first, last = (("," + indent).join(half) for half in (rows[:_EDGE], rows[_EDGE:]))
    return f"[{first},{indent}...{indent}{last}]"
