"""The standard's functions. Those that are ops of the same meaning are imported, the others are said here:
their order, names and defaults of parameters, and what the standard has otherwise."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.array_api.data_types import (
    KINDS,
    astype,
    default_complex,
    finfo,
    int64,
    isdtype,
    on_device,
    result_type,
    uint64,
)
from gradcell.base import arguments, bad_type, bad_value
from gradcell.base.spelling import named, spelling
from gradcell.numpy.functions import flip as _flip, take_along_axis as _take_along_axis
from gradcell.numpy.making import arange as _arange, linspace as _linspace

from gradcell.ops import (  # isort: skip
    acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_left_shift, bitwise_or,
    bitwise_right_shift, bitwise_xor, broadcast_to, ceil, conj, copysign, cos, cosh, divide, equal,
    exp, expm1, floor, floor_divide, greater, greater_equal, hypot, imag, isfinite, isinf, isnan,
    less, less_equal, log, log1p, log2, log10, logaddexp, logical_and, logical_not, logical_or,
    logical_xor, maximum, minimum, multiply, not_equal, positive, pow, real, reciprocal, remainder,
    sign, signbit, sin, sinh, sqrt, square, subtract, tan, tanh, trunc, vecdot, where,
)  # fmt: skip
from gradcell.ops.arrays.creation import filled
from gradcell.tensors.indexing import tensor_of_list
from gradcell.tensors.tensor import from_dlpack as _from_dlpack

__all__ = [
    "abs", "acos", "acosh", "add", "all", "any", "arange", "argmax", "argmin", "argsort", "asarray",
    "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "broadcast_arrays",
    "broadcast_to", "ceil", "clip", "concat", "conj", "copysign", "cos", "cosh", "count_nonzero",
    "cumulative_prod", "cumulative_sum", "diff", "divide", "empty", "empty_like", "equal", "exp",
    "expand_dims", "expm1", "eye", "flip", "floor", "floor_divide", "from_dlpack", "full",
    "full_like", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan", "less",
    "less_equal", "linspace", "log", "log1p", "log2", "log10", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "matmul", "matrix_transpose", "max", "maximum",
    "mean", "meshgrid", "min", "minimum", "moveaxis", "multiply", "negative", "nextafter",
    "nonzero", "not_equal", "ones", "ones_like", "permute_dims", "positive", "pow", "prod", "real",
    "reciprocal", "remainder", "repeat", "reshape", "roll", "round", "searchsorted", "sign",
    "signbit", "sin", "sinh", "sort", "sqrt", "square", "squeeze", "stack", "std", "subtract",
    "sum", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "tril", "triu", "trunc",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "var", "vecdot",
    "where", "zeros", "zeros_like",
]  # fmt: skip


# Making -------------------------------------------------------------------------------------------


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Tensor:
    """A tensor of a tensor, an array, a number or nested lists of them, which derivatives go through.

    Python's floats are of the default dtype, its integers int64. copy: True for a new tensor in any case,
    False for the memory of obj. Raises ValueError where copy=False cannot be.
    """
    if isinstance(obj, Tensor):
        made = obj if dtype is None else astype(obj, dtype, copy=False)
        if copy is False and made is not obj:
            bad_value(f"asarray: copy=False, but {obj.dtype} has to be made {dtype}")
        return on_device(made.copy() if copy and made is obj else made, device)
    if copy is False and not hasattr(obj, "__dlpack__"):
        bad_value(f"asarray: copy=False, but {type(obj).__name__} has no memory that can be shared")
    if _core.holds_tensors(obj):
        return on_device(tensor_of_list(obj, dtype), device)
    if copy is False:
        made = _from_dlpack(obj)
        return asarray(made, dtype=dtype, device=device, copy=False)
    made = Tensor(obj, dtype)
    if dtype is None and made.dtype.is_complex and not hasattr(obj, "dtype"):
        made = made.astype(default_complex())
    return on_device(made, device)


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """All broadcast to one shape."""
    return ops.broadcast_tensors(*arrays)


def typed(x: Tensor, dtype: Any) -> Tensor:
    """x in a dtype, if one is named."""
    return x if dtype is None else x.astype(dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Tensor:
    """A tensor over the memory of another library's array; with copy in memory of its own."""
    made = _from_dlpack(x)
    return on_device(made.copy() if copy else made, device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of one number; by default bool, int64, or the default floating dtype, as the number is."""
    if dtype is None and isinstance(fill_value, complex):
        dtype = default_complex()
    return on_device(filled(shape, fill_value, dtype), device)


@spelling(full, fixed={"fill_value": 0.0})
def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of zeros, of the default floating dtype unless another is named."""


@spelling(full, fixed={"fill_value": 0.0})
def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor whose elements are still to be written: zeros."""


@spelling(full, fixed={"fill_value": 1.0})
def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of ones, of the default floating dtype unless another is named."""


@spelling(ops.full_like, then=on_device)
def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor: ...
@spelling(ops.zeros_like, then=on_device)
def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor: ...
@spelling(ops.zeros_like, then=on_device)
def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor: ...
@spelling(ops.ones_like, then=on_device)
def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor: ...


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """The numbers from start on, step apart, short of stop; of one number n those from 0 short of n.

    int64 of integers, else of the default floating dtype, unless dtype is given.
    """
    if dtype is None:
        whole = builtins.all(isinstance(v, int) for v in (start, stop, step) if v is not None)
        dtype = int64 if whole else _core.default_dtype()
    return on_device(_arange(start, stop, step, dtype), device)


def linspace(
    start: Any, stop: Any, /, num: Any, *, dtype: Any = None, device: Any = None,
    endpoint: builtins.bool = True,
) -> Tensor:  # fmt: skip
    """num numbers evenly spaced from start to stop, which is left out without endpoint; of the default
    floating dtype unless dtype is given."""
    if dtype is None:
        number = builtins.any(isinstance(v, complex) for v in (start, stop))
        dtype = default_complex() if number else _core.default_dtype()
    return on_device(_linspace(start, stop, num, endpoint, dtype=dtype), device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Ones on the k-th diagonal of a matrix of zeros, of the default floating dtype unless dtype is given."""
    columns = n_rows if n_cols is None else n_cols
    place = np.eye(n_rows, columns, k, np.int8)
    return on_device(Tensor(place).astype(dtype or _core.default_dtype()), device)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid, one tensor for each of the vectors.

    indexing: 'ij', or 'xy' with the first two dimensions exchanged.
    """
    return ops.meshgrid(*arrays, indexing=indexing) if arrays else ()


@spelling(ops.tril)
def tril(x: Any, /, *, k: int = 0) -> Tensor: ...
@spelling(ops.triu)
def triu(x: Any, /, *, k: int = 0) -> Tensor: ...


# Elements -----------------------------------------------------------------------------------------


@spelling(ops.bitwise_not)
def bitwise_invert(x: Any, /) -> Tensor: ...
@spelling(ops.neg)
def negative(x: Any, /) -> Tensor: ...


def abs(x: Any, /) -> Tensor:
    """The absolute values, real ones also of complex numbers."""
    return real(ops.abs(x))


def round(x: Any, /) -> Tensor:
    """To the nearest integer, halves to the even one; of complex numbers both parts."""
    if x.dtype.is_complex:
        return _core.ops.view_as_complex(ops.round(_core.ops.view_as_real(x)))
    return ops.round(x)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """No less than min, no more than max, which are numbers, tensors that broadcast, or None."""
    return ops.identity(x) if min is None and max is None else ops.clamp(x, min, max)


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The number next to x1 in the direction of x2, of float32 and float64. The derivative is that of x1.

    Found by rounding (Rump, Zimmermann, Boldo, Melquiond 2009, BIT 49, algorithm 2). Raises TypeError for
    other dtypes.
    """
    dtype = result_type(x1, x2)
    if dtype not in KINDS["real floating"]:
        bad_type(f"nextafter: float32 or float64 is needed, got {dtype}")
    x, y = (astype(v, dtype) if isinstance(v, Tensor) else Tensor(v, dtype) for v in (x1, x2))
    limits = finfo(dtype)
    unit, least = limits.eps / 2, limits.smallest_normal * limits.eps
    at, size = ops.stop_gradient(x), ops.stop_gradient(ops.abs(x))
    up = astype(where(greater(y, at), 1, -1), dtype)
    scale = where(less(size, least / unit / unit), unit, 1.0)
    moved = (at / scale + up * (size / scale * (unit * (1 + 2 * unit)))) * scale
    moved = where(less(size, least / unit), at + up * least, moved)
    moved = where(equal(moved, 0), at * 0, moved)
    moved = where(isinf(at), copysign(ops.full_like(at, limits.max), at), moved)
    moved = ops.stop_gradient(where(logical_or(equal(at, y), isnan(y)), y, moved))
    return where(isfinite(at - moved), copysign(x - at + moved, moved), moved)


# Indices, shapes ----------------------------------------------------------------------------------


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """The elements at indices along axis; negative ones count from the end. axis: may be left out for
    vectors."""
    place = _axis_of_vector(x, axis, "take")
    return x[(slice(None),) * place + (indices,)]  # type: ignore[no-any-return]


def _axis_of_vector(x: Tensor, axis: int | None, name: str) -> int:
    if axis is None and x.ndim != 1:
        bad_value(f"{name}: axis is needed for a tensor of {x.ndim} dimensions")
    return arguments.axis_in(x, axis or 0, name)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """The elements at indices along axis; the other dimensions of both broadcast."""
    a = arguments.axis_in(x, axis, "take_along_axis")
    ends = [[1 if i == a else n for i, n in enumerate(t.shape)] for t in (x, indices)]
    dims = np.broadcast_shapes(*map(tuple, ends))
    x, indices = (broadcast_to(t, (*dims[:a], t.shape[a], *dims[a + 1 :])) for t in (x, indices))
    return _take_along_axis(x, indices, a)


def _alike(tensors: Any) -> list[Tensor]:
    """Tensors in their common dtype."""
    dtype = result_type(*tensors)
    return [astype(x, dtype, copy=False) for x in tensors]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Tensors joined along axis; None: flattened first."""
    parts = _alike(arrays)
    return ops.concat(parts if axis is not None else [reshape(x, (-1,)) for x in parts], axis or 0)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
    return ops.stack(_alike(arrays), axis)


@spelling(ops.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]: ...
@spelling(ops.expand_dims)
def expand_dims(x: Any, /, axis: Any) -> Tensor: ...
@spelling(ops.movedim)
def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor: ...
@spelling(ops.permute)
def permute_dims(x: Any, /, axes: Any) -> Tensor: ...
@spelling(ops.repeat_interleave)
def repeat(x: Any, repeats: Any, /, *, axis: Any = None) -> Tensor: ...
@spelling(ops.roll)
def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Tensor: ...
@spelling(ops.tile)
def tile(x: Any, repetitions: Any, /) -> Tensor: ...
@spelling(_flip)
def flip(x: Any, /, *, axis: Any = None) -> Tensor: ...


def matrix_transpose(x: Any, /) -> Tensor:
    """The last two dimensions exchanged."""
    return x.mT  # type: ignore[no-any-return]


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Tensor:
    """The elements, in order, in another shape, where one size may be -1; copy=True: always in new memory."""
    return ops.reshape(x.copy() if copy else x, shape)


def squeeze(x: Any, /, axis: Any) -> Tensor:
    """Without the dimensions of axis. Raises ValueError for one that is not of size 1."""
    axes = arguments.axes_of(axis, x.ndim, "squeeze")
    if builtins.any(x.shape[a] != 1 for a in axes):
        bad_value(f"squeeze: axis {axis} of shape {list(x.shape)} is not of size 1")
    return reshape(x, [n for a, n in enumerate(x.shape) if a not in axes])


# Searching and sorting ----------------------------------------------------------------------------


def _index(x: Tensor, _: Any = None) -> Tensor:
    return x.astype(int64)


@spelling(ops.argmax)
def argmax(x: Any, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor: ...
@spelling(ops.argmin, then=_index)
def argmin(x: Any, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor: ...
@spelling(ops.count_nonzero, fixed={"dtype": int64})
def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor: ...


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The coordinates of the elements that are not zero, a vector for each dimension."""
    if x.ndim == 0:
        bad_value("nonzero: a tensor without dimensions has no coordinates")
    return ops.nonzero(x, as_tuple=True)


@spelling(ops.searchsorted)
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor: ...


def sort(
    x: Any, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """The elements in order along axis."""
    return ops.sort(x, axis, descending, stable)[0]


@spelling(ops.argsort, then=_index)
def argsort(
    x: Any, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor: ...


class UniqueAllResult(NamedTuple):
    """The different elements, where each is first, where each element is among them, and how many are
    equal."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """The different elements, and how many are equal to each."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """The different elements, and where each element is among them."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, /) -> UniqueAllResult:
    """(values, indices, inverse_indices, counts): the different elements in order, the place of the first of
    each in the flattened x, the place of each element of x among them, and how often each occurs.

    Each NaN is different from all others. Reads values, so a compiled function that calls it is retraced.
    """
    _, *places = np.unique(x.asnumpy(), True, True, True, equal_nan=False)
    first, inverse, counts = (Tensor(p.astype(np.int64)) for p in places)
    return UniqueAllResult(
        ops.gather(reshape(x, (-1,)), first, 0), first, reshape(inverse, x.shape), counts
    )


def unique_counts(x: Any, /) -> UniqueCountsResult:
    """(values, counts), as in unique_all."""
    found = unique_all(x)
    return UniqueCountsResult(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverseResult:
    """(values, inverse_indices), as in unique_all."""
    found = unique_all(x)
    return UniqueInverseResult(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Tensor:
    """The different elements in order, as in unique_all."""
    return unique_all(x).values


# Statistics ---------------------------------------------------------------------------------------


def _summed(x: Tensor, dtype: Any) -> Any:
    """The dtype of sums: integers become 64 bits wide."""
    if dtype is not None or x.dtype.is_floating:
        return dtype
    return uint64 if isdtype(x.dtype, "unsigned integer") else int64


@spelling(ops.all)
def all(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor: ...
@spelling(ops.any)
def any(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor: ...
@spelling(ops.amax)
def max(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor: ...
@spelling(ops.amin)
def min(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor: ...
@spelling(ops.mean, x=arguments.floating)
def mean(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor: ...
@spelling(ops.std)
def std(
    x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor: ...
@spelling(ops.var)
def var(
    x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor: ...


def sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False
) -> Tensor:
    """The sum. Integers are added up with 64 bits, unless dtype says otherwise."""
    return ops.sum(x, axis, keepdims, dtype=_summed(x, dtype))


def prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False
) -> Tensor:
    """The product. Integers are multiplied with 64 bits, unless dtype says otherwise."""
    return ops.prod(x, axis, keepdims, _summed(x, dtype))


def _cumulative(op: Any, first: int, name: str) -> Any:
    def function(
        x: Any, /, *, axis: int | None = None, dtype: Any = None,
        include_initial: builtins.bool = False,
    ) -> Tensor:  # fmt: skip
        place = _axis_of_vector(x, axis, name)
        out = op(typed(x, _summed(x, dtype)), place)
        if not include_initial:
            return out  # type: ignore[no-any-return]
        ends = [1 if a == place else n for a, n in enumerate(out.shape)]
        return ops.concat([ops.full(ends, first, dtype=out.dtype), out], place)

    function.__doc__ = f"""The {op.__doc__.split(" ")[1]} up to each element along axis, which may be left
    out for vectors; with include_initial, {first} comes first. Integers have 64 bits, unless dtype says
    otherwise."""
    return named(function, name)


cumulative_sum: Any = _cumulative(ops.cumsum, 0, "cumulative_sum")
cumulative_prod: Any = _cumulative(ops.cumprod, 1, "cumulative_prod")


@spelling(ops.diff)
def diff(
    x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Tensor: ...


# Products -----------------------------------------------------------------------------------------


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """Products of matrices, whose leading dimensions broadcast."""
    a, b = _alike([x1, x2])
    return ops.matmul(a, b)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over the last n dimensions of x1 and the first n of x2, or over two lists of
    dimensions.

    axes: n, or the two lists.
    """
    a, b = _alike([x1, x2])
    return ops.tensor_dot(a, b, axes)
