"""Transforms of any data: for the operations of a dataset's map."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell._core import DType, Tensor
from gradcell.base import arguments, bad_type, bad_value, explain, unsupported
from gradcell.dataset.rows import as_array, called
from gradcell.dataset.workers import generator


def numpy_dtype(owner: str, value: Any) -> np.dtype[Any]:
    """A dtype of gradcell's or NumPy's as NumPy's. Raises TypeError for anything else."""
    try:
        if isinstance(value, DType):
            return np.dtype("bool" if value.name == "bool" else value.name)
        return np.dtype(value)  # type: ignore[no-any-return]
    except TypeError:
        bad_type(f"{owner}: {value!r} is not a dtype")


class TensorOperation:
    """The base of transforms: define _one, which is called with each of the values."""

    def __call__(self, *values: Any) -> Any:
        made = tuple(self._one(v.asnumpy() if isinstance(v, Tensor) else v) for v in values)
        return made[0] if len(made) == 1 else made

    def _one(self, value: Any) -> Any:
        unsupported(f"{type(self).__name__}: _one is not defined")

    def _fail(self, what: str) -> None:
        bad_value(f"{type(self).__name__}: {what}")


#: MindSpore's name of the transforms written in Python.
PyTensorOperation = TensorOperation


def _functions(owner: str, transforms: Any) -> list[Callable[..., Any]]:
    if not isinstance(transforms, (list, tuple)) or not transforms:
        bad_type(f"{owner}: expected a list of functions")
    for function in transforms:
        if not callable(function):
            bad_type(f"{owner}: {function!r} is not a function")
    return list(transforms)


def _in_turn(functions: Sequence[Callable[..., Any]], values: tuple[Any, ...]) -> Any:
    for function in functions:
        values = called("Compose", function, values)
    return values[0] if len(values) == 1 else values


class Compose:
    """Applies several functions one after the other."""

    def __init__(self, transforms: Any) -> None:
        self.transforms: list[Callable[..., Any]] = _functions("Compose", transforms)

    def __call__(self, *values: Any) -> Any:
        return _in_turn(self.transforms, values)


class RandomApply:
    """Functions, one after the other, with probability prob; else the values as they are."""

    def __init__(self, transforms: Any, prob: float = 0.5) -> None:
        self.transforms: list[Callable[..., Any]] = _functions("RandomApply", transforms)
        self.prob: float = arguments.number(prob, "RandomApply", "prob", least=0, most=1)

    def __call__(self, *values: Any) -> Any:
        return _in_turn(self.transforms if generator().random() < self.prob else [], values)


class RandomChoice:
    """Applies one of the functions, chosen at random."""

    def __init__(self, transforms: Any) -> None:
        self.transforms: list[Callable[..., Any]] = _functions("RandomChoice", transforms)

    def __call__(self, *values: Any) -> Any:
        return _in_turn([self.transforms[generator().integers(len(self.transforms))]], values)


class RandomOrder:
    """Applies the functions in a random order."""

    def __init__(self, transforms: Any) -> None:
        self.transforms: list[Callable[..., Any]] = _functions("RandomOrder", transforms)

    def __call__(self, *values: Any) -> Any:
        order = generator().permutation(len(self.transforms))
        return _in_turn([self.transforms[i] for i in order], values)


class TypeCast(TensorOperation):
    """Converts a column to another dtype."""

    def __init__(self, data_type: Any) -> None:
        self.dtype: np.dtype[Any] = numpy_dtype("TypeCast", data_type)

    def _one(self, value: Any) -> np.ndarray:
        return as_array(value).astype(self.dtype)


class OneHot(TensorOperation):
    """A label as a vector with 1 - smoothing_rate at its place, and the rest shared by all.

    smoothing_rate: from 0 to 1. num_classes: the number of classes.
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        self.count: int = arguments.integer(num_classes, "OneHot", "num_classes", 1)
        self.rate: float = arguments.number(
            smoothing_rate, "OneHot", "smoothing_rate", least=0, most=1
        )

    def _one(self, value: Any) -> np.ndarray:
        labels = as_array(value)
        if labels.dtype.kind not in "iu":
            bad_type(f"OneHot: labels must be integers, got {labels.dtype}")
        if labels.size and not 0 <= int(labels.min()) <= int(labels.max()) < self.count:
            self._fail(f"a label of {labels.max()} or {labels.min()} for {self.count} classes")
        made = (labels[..., None] == np.arange(self.count)).astype(labels.dtype)
        if self.rate == 0:
            return made  # type: ignore[no-any-return]
        return np.asarray((1 - self.rate) * made + self.rate / self.count)


class Fill(TensorOperation):
    """Arrays of the same shape and dtype, full of one value.

    fill_value: the value to fill in.
    """

    def __init__(self, fill_value: Any) -> None:
        self.value = fill_value

    def _one(self, value: Any) -> np.ndarray:
        array = as_array(value)
        return np.full(array.shape, self.value, array.dtype)


class PadEnd(TensorOperation):
    """Padded behind each axis, or cut there, to a shape; None in it: as long as it is.

    pad_shape: an int or None for each axis. pad_value: what is filled in; by default 0, or an empty
    string.
    """

    def __init__(self, pad_shape: Sequence[int | None], pad_value: Any = None) -> None:
        self.shape: list[int | None] = list(pad_shape)
        self.value: Any = pad_value

    def _one(self, value: Any) -> np.ndarray:
        array = as_array(value)
        if array.ndim != len(self.shape):
            self._fail(f"an array of shape {array.shape} cannot become {self.shape}")
        target = [n if w is None else w for n, w in zip(array.shape, self.shape, strict=True)]
        fill = self.value
        if fill is None:
            fill = "" if array.dtype.kind == "U" else b"" if array.dtype.kind == "S" else 0
        made = np.full(target, fill, array.dtype)
        kept = tuple(slice(min(n, t)) for n, t in zip(array.shape, target, strict=True))
        made[kept] = array[kept]
        return made


class Slice(TensorOperation):
    """Parts of each axis: an int, a list of ints, a slice, None (all) or ... for the rest.

    slices: one for each axis.
    """

    def __init__(self, *slices: Any) -> None:
        self.slices = slices

    def _one(self, value: Any) -> np.ndarray:
        array = as_array(value)
        for axis, part in enumerate(self.slices):
            if part is Ellipsis:
                break
            if part is None:
                continue
            index = part if isinstance(part, slice) else np.atleast_1d(part)
            array = array[(slice(None),) * axis + (index,)]
        return array


class Concatenate(TensorOperation):
    """Columns, with what is to stand before and behind, along an axis.

    prepend: an array that comes first, or None. append: an array that comes last, or None.
    """

    def __init__(self, axis: int = 0, prepend: Any = None, append: Any = None) -> None:
        self.axis: int = axis
        self.prepend: Any = prepend
        self.append: Any = append

    def __call__(self, *values: Any) -> np.ndarray:
        parts = [v for v in (self.prepend, *values, self.append) if v is not None]
        return np.concatenate([as_array(v) for v in parts], self.axis)


class Duplicate(TensorOperation):
    """Repeats a column: one input, two outputs."""

    def __call__(self, *values: Any) -> tuple[Any, Any]:
        if len(values) != 1:
            self._fail(f"one column is expected, not {len(values)}")
        return values[0], values[0]


class Unique(TensorOperation):
    """The values that differ in the order they come in, where each came from, how often each is."""

    def __call__(self, *values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if len(values) != 1:
            self._fail(f"one column is expected, not {len(values)}")
        flat = as_array(values[0]).reshape(-1)
        _, first, inverse, counts = np.unique(
            flat, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return flat[first[order]], places[inverse].astype(np.int32), counts[order].astype(np.int32)


class Relational(enum.IntEnum):
    """The comparisons that Mask can make."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5


_COMPARE = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]


class Mask(TensorOperation):
    """Compares each value with a constant; the result is True or False.

    operator: a Relational, such as Relational.GT. constant: a number or a string. dtype: of the
    result.
    """

    def __init__(self, operator: Relational, constant: Any, dtype: Any = np.bool_) -> None:
        self.compare: Callable[..., Any] = _COMPARE[Relational(operator)]
        self.constant: Any = constant
        self.dtype: np.dtype[Any] = numpy_dtype("Mask", dtype)

    def _one(self, value: Any) -> np.ndarray:
        return np.asarray(self.compare(as_array(value), self.constant)).astype(self.dtype)


__all__ = [
    "Compose", "Concatenate", "Duplicate", "Fill", "Mask", "OneHot", "PadEnd",
    "PyTensorOperation", "RandomApply", "RandomChoice", "RandomOrder", "Relational", "Slice",
    "TensorOperation", "TypeCast", "Unique",
]  # fmt: skip
__dir__ = sorted(__all__).copy
explain(globals())
