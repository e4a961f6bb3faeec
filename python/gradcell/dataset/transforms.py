"""Transforms of any data: for the operations of a dataset's map."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell._core import DType, Tensor
from gradcell.base import bad_type, bad_value, fields, publish, unsupported
from gradcell.dataset.rows import as_array, called
from gradcell.dataset.workers import generator


def _numpy_dtype(value: Any, owner: str, name: str) -> np.dtype[Any]:
    """A dtype of gradcell's or NumPy's as NumPy's. Raises TypeError for anything else."""
    try:
        if isinstance(value, DType):
            return np.dtype("bool" if value.name == "bool" else value.name)
        if isinstance(value, Tensor):  # (whose dtype older versions of NumPy take)
            raise TypeError
        return np.dtype(value)  # type: ignore[no-any-return]
    except TypeError:
        bad_type(f"{owner}: '{name}': {value!r} is not a dtype")


def _made(kind: type[enum.Enum]) -> fields.Check:
    """The check of a field that is a member of an enumeration, or the value of one."""

    def check(value: Any, owner: str, name: str) -> Any:
        try:
            return kind(value)
        except ValueError:
            members = ", ".join(f"{kind.__name__}.{m.name}" for m in kind)
            bad_value(f"For '{owner}', the '{name}' must be one of {members}, but got {value!r}.")

    return check


class TensorOperation(fields.Declares):
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


def _functions_of(transforms: Any, owner: str, name: str) -> list[Callable[..., Any]]:
    """Functions in a list. Raises TypeError for anything else."""
    given = transforms if isinstance(transforms, (list, tuple)) else []
    if not given or not all(map(callable, given)):
        bad_type(f"{owner}: '{name}' must be a list of functions, got {transforms!r}")
    return list(transforms)


def _in_turn(functions: Sequence[Callable[..., Any]], values: tuple[Any, ...]) -> Any:
    for function in functions:
        values = called("Compose", function, values)
    return values[0] if len(values) == 1 else values


class _OfFunctions(fields.Declares):
    """A transform that calls others."""

    transforms: Any = fields.checked(_functions_of)


class Compose(_OfFunctions):
    """Applies several functions one after the other."""

    def __call__(self, *values: Any) -> Any:
        return _in_turn(self.transforms, values)


class RandomApply(_OfFunctions):
    """Functions, one after the other, with probability prob; else the values as they are."""

    prob: float = fields.number(least=0, most=1, default=0.5)

    def __call__(self, *values: Any) -> Any:
        return _in_turn(self.transforms if generator().random() < self.prob else [], values)


class RandomChoice(_OfFunctions):
    """Applies one of the functions, chosen at random."""

    def __call__(self, *values: Any) -> Any:
        return _in_turn([self.transforms[generator().integers(len(self.transforms))]], values)


class RandomOrder(_OfFunctions):
    """Applies the functions in a random order."""

    def __call__(self, *values: Any) -> Any:
        order = generator().permutation(len(self.transforms))
        return _in_turn([self.transforms[i] for i in order], values)


class TypeCast(TensorOperation):
    """Converts a column to another dtype."""

    dtype: Any = fields.checked(_numpy_dtype, alias="data_type")

    def _one(self, value: Any) -> np.ndarray:
        return as_array(value).astype(self.dtype)


class OneHot(TensorOperation):
    """A label as a vector with 1 - smoothing_rate at its place, and the rest shared by all.

    smoothing_rate: from 0 to 1. num_classes: the number of classes.
    """

    count: int = fields.integer(1, alias="num_classes")
    rate: float = fields.number(alias="smoothing_rate", least=0, most=1, default=0.0)

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

    value: Any = fields.anything(alias="fill_value")

    def _one(self, value: Any) -> np.ndarray:
        array = as_array(value)
        return np.full(array.shape, self.value, array.dtype)


class PadEnd(TensorOperation):
    """Padded behind each axis, or cut there, to a shape; None in it: as long as it is.

    pad_shape: an int or None for each axis. pad_value: what is filled in; by default 0, or an empty
    string.
    """

    shape: Sequence[int | None] = fields.anything(alias="pad_shape")
    value: Any = fields.anything(alias="pad_value", default=None)

    def _one(self, value: Any) -> np.ndarray:
        array = as_array(value)
        if array.ndim != len(self.shape):
            self._fail(f"an array of shape {array.shape} cannot become {list(self.shape)}")
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

    axis: int = fields.anything(default=0)
    prepend: Any = fields.anything(default=None)
    append: Any = fields.anything(default=None)

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
        _, first, inverse, counts = np.unique(flat, True, True, True)
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

    operator: Relational = fields.checked(_made(Relational))
    constant: Any = fields.anything()
    dtype: Any = fields.checked(_numpy_dtype, default=np.bool_)

    def _one(self, value: Any) -> np.ndarray:
        compare: Any = _COMPARE[self.operator]
        return np.asarray(compare(as_array(value), self.constant)).astype(self.dtype)


publish(globals(), "PyTensorOperation")
