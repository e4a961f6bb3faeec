"""NumPy's questions about arrays and dtypes, and arrays of what Python's functions and iterators give."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments, bad_type, publish, to_dtype
from gradcell.numpy import making
from gradcell.numpy.conversion import array, tensor, typed, vector
from gradcell.numpy.functions import broadcast_arrays, stack


def ndim(a: Any) -> int:
    """The number of dimensions."""
    return tensor(a).ndim


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the dimensions."""
    return tuple(tensor(a).shape)


def astype(x: Any, dtype: Any, copy: bool = True) -> Tensor:
    """The tensor in another dtype. copy has no effect."""
    return typed(tensor(x), dtype)  # type: ignore[no-any-return]


def asanyarray(a: Any, dtype: Any = None) -> Tensor:
    """A tensor of it, which a tensor of that dtype already is."""
    return array(a, dtype, False)


def ascontiguousarray(a: Any, dtype: Any = None) -> Tensor:
    """A tensor of it, with at least one dimension."""
    return ops.atleast_1d(array(a, dtype, False))


def iscomplexobj(x: Any) -> bool:
    """Return whether the dtype is complex."""
    return tensor(x).dtype.is_complex


def isrealobj(x: Any) -> bool:
    """Return whether the dtype is not complex."""
    return not iscomplexobj(x)


def fromfunction(function: Any, shape: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    """function of the coordinates of a grid's points, a tensor for each dimension.

    function: of as many tensors as shape has sizes. kwargs: its further arguments. dtype: the
    coordinates'; the default dtype for None.
    """
    kind = arguments.dtype_or(dtype, _core.default_dtype())
    return function(*making.indices(shape, kind), **kwargs)


def fromiter(iter: Any, dtype: Any, count: int = -1) -> Tensor:
    """A vector of the numbers that an iterable gives.

    iter: an iterable of numbers. count: how many of them, -1 for all.
    """
    return array(list(itertools.islice(iter, None if count < 0 else count)), dtype)


def diag_indices_from(arr: Any) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of a tensor with equal dimensions."""
    t = tensor(arr)
    return making.diag_indices(t.shape[0], t.ndim)


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """The coordinates of each element, and the element."""
    t = tensor(arr)
    return ((index, t[index]) for index in np.ndindex(tuple(t.shape)))


class vectorize:
    """A function of numbers as one of tensors, which broadcast: it is called once for each element.

    pyfunc: the function.
    """

    def __init__(self, pyfunc: Callable[..., Any]) -> None:
        self.pyfunc = pyfunc

    def __call__(self, *args: Any) -> Tensor:
        xs = broadcast_arrays(*args)
        rows = zip(*(ops.unstack(vector(x), 0) for x in xs), strict=True)
        return ops.reshape(stack([self.pyfunc(*row) for row in rows]), tuple(xs[0].shape))


def _name_of(dtype: Any, owner: str) -> str:
    known = None
    with suppress(TypeError):
        known = to_dtype(dtype)
    if known is None:
        bad_type(f"For '{owner}', a dtype is needed, but got {dtype!r}")
    return known.name


class finfo:
    """The limits of floats of a dtype.

    dtype: a floating dtype. eps, max, min, tiny, smallest_normal, resolution: NumPy's.
    """

    def __new__(cls, dtype: Any) -> Any:
        return np.finfo(_name_of(dtype, "finfo"))


class iinfo:
    """The limits of integers of a dtype.

    type: a dtype of integers. max, min, bits: NumPy's.
    """

    def __new__(cls, type: Any) -> Any:
        return np.iinfo(_name_of(type, "iinfo"))


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Return whether a dtype is another, or of a kind: numpy.floating, numpy.integer...

    arg1: a dtype. arg2: a dtype or a kind.
    """
    kind = arg2 if isinstance(arg2, type) else to_dtype(arg2).name
    return bool(np.issubdtype(to_dtype(arg1).name, kind))


publish(globals())
