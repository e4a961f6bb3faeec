"""NumPy's functions over ops: those that are not elementwise, of tensors, numbers or lists."""

from __future__ import annotations

from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.convert import to_dtype
from gradcell.base.spelling import spelling
from gradcell.numpy import making
from gradcell.numpy.conversion import (
    along,
    array,
    floating,
    full,
    joined,
    like,
    operand,
    optional,
    pair,
    tensor,
    typed,
    vector,
)
from gradcell.numpy.making import tri_indices, window
from gradcell.numpy.mathematics import histogram, nanvar, polysum, total, without_nan
from gradcell.numpy.shaping import concatenate, split
from gradcell.ops.arrays.shaping import diagonal_or_matrix
from gradcell.ops.one_plan import in_float32
from gradcell.ops.reductions.reductions import length

__all__ = [
    "amax", "amin", "append", "argmax", "argmin", "argwhere", "around", "array_str", "asarray",
    "asfarray", "atleast_1d", "atleast_2d", "atleast_3d", "bartlett", "bincount", "blackman",
    "broadcast_arrays", "broadcast_to", "clip", "column_stack", "copy", "count_nonzero", "cumprod",
    "cumsum", "diag", "diagflat", "diagonal", "diff", "divmod", "dot", "dsplit", "dstack",
    "ediff1d", "empty", "empty_like", "expand_dims", "eye", "fix", "flip", "fliplr", "flipud",
    "full_like", "hamming", "hanning", "histogram_bin_edges", "hsplit", "hstack", "identity", "in1d",
    "inner", "isclose", "isin", "isneginf", "isposinf", "kron", "logical_not", "matrix_power", "max",
    "mean", "meshgrid", "min", "moveaxis", "multi_dot", "nancumsum", "nanmean", "nanstd", "nansum",
    "negative", "ones", "ones_like", "outer", "polyadd", "polysub", "positive", "rand", "randn", "ravel",
    "repeat", "reshape", "roll", "rollaxis", "rot90", "round", "searchsorted", "sometrue", "squeeze",
    "stack", "std", "sum", "swapaxes", "take", "take_along_axis", "tensordot", "tile", "trace",
    "transpose", "trapz", "tri", "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices",
    "triu_indices_from", "unique", "vander", "var", "vsplit", "vstack", "where", "zeros", "zeros_like",
]  # fmt: skip


@spelling(ops.neg, a=tensor, then=typed)
def negative(a: Any, dtype: Any = None) -> Tensor: ...
@spelling(ops.positive, a=tensor, then=typed)
def positive(a: Any, dtype: Any = None) -> Tensor:
    """A copy."""


@spelling(ops.logical_not, a=tensor, then=typed)
def logical_not(a: Any, dtype: Any = None) -> Tensor: ...


def divmod(x1: Any, x2: Any, dtype: Any = None) -> Any:
    """The quotient rounded down and the remainder, elementwise: (x1 // x2, x1 % x2)."""
    return typed((ops.floor_div(*pair(x1, x2)), ops.mod(*pair(x1, x2))), dtype)


@spelling(ops.fix, x=floating)
def fix(x: Any) -> Tensor: ...


def isneginf(x: Any) -> Tensor:
    """Return whether each element is -inf."""
    return ops.logical_and(ops.isinf(tensor(x)), ops.less(tensor(x), 0))


def isposinf(x: Any) -> Tensor:
    """Return whether each element is inf."""
    return ops.logical_and(ops.isinf(tensor(x)), ops.greater(tensor(x), 0))


@spelling(ops.round, a=tensor)
def around(a: Any, decimals: Any = 0) -> Tensor: ...
@spelling(ops.round, a=tensor)
def round(a: Any, decimals: Any = 0) -> Tensor: ...


def clip(x: Any, xmin: Any, xmax: Any, dtype: Any = None) -> Tensor:
    """No less than xmin, no more than xmax, where they are not None."""
    return typed(ops.clamp(tensor(x), operand(xmin), operand(xmax)), dtype)  # type: ignore[no-any-return]


@spelling(ops.isclose, a=tensor, b=tensor)
def isclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tensor: ...


def where(condition: Any, x: Any = None, y: Any = None) -> Tensor:
    """x where condition is true, else y; tensors, lists or numbers, all broadcast."""
    return ops.where(operand(condition), operand(x), operand(y))


def max(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor:
    """The largest element."""
    return ops.amax(
        tensor(a), axis, keepdims, initial=initial, where=None if where is True else where
    )


def amin(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor:
    """The smallest element."""
    return ops.amin(
        tensor(a), axis, keepdims, initial=initial, where=None if where is True else where
    )


def min(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor:
    """The smallest element."""
    return ops.amin(
        tensor(a), axis, keepdims, initial=initial, where=None if where is True else where
    )


def amax(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor:
    """The largest element."""
    return ops.amax(
        tensor(a), axis, keepdims, initial=initial, where=None if where is True else where
    )


def sum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None
) -> Tensor:
    """The sum, with initial added."""
    return total(a, axis, dtype, keepdims, initial)


@spelling(ops.mean, a=floating)
def mean(a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor: ...
@spelling(ops.std, x=floating)
def std(x: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Tensor: ...
@spelling(ops.var, x=floating)
def var(x: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Tensor: ...
@spelling(ops.any, a=tensor)
def sometrue(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor: ...


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The number of elements that are not zero, int32."""
    return typed(ops.count_nonzero(tensor(x), axis, keepdims), _core.int32)  # type: ignore[no-any-return]


@spelling(ops.argmax, a=tensor)
def argmax(a: Any, axis: Any = None) -> Tensor: ...
@spelling(ops.argmin, a=tensor)
def argmin(a: Any, axis: Any = None) -> Tensor: ...


def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """The sums of all elements up to each along axis; None: of the flattened tensor."""
    return typed(tensor(a), dtype).cumsum(axis)


def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    """The products of all elements up to each along axis; None: of the flattened tensor.

    Without a dtype, integers below int64 are multiplied as int32, uint8 as uint32, those from uint16 on
    as uint64.
    """
    x, k = along(a, axis)
    if dtype is None and not x.dtype.is_floating and x.dtype != _core.int64:
        wide = {"uint8": _core.uint32, "uint16": _core.uint64, "uint32": _core.uint64}
        dtype = wide.get(x.dtype.name, x.dtype if x.dtype == _core.uint64 else _core.int32)
    return ops.cumprod(x, k, dtype)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """The cumulative sum, with 0 in place of NaN."""
    return without_nan(a, dtype).cumsum(axis)


@spelling(ops.nansum, a=floating)
def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor: ...
@spelling(ops.nanmean, a=floating)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor: ...


@in_float32
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: bool = False
) -> Tensor:
    """The standard deviation of the elements that are not NaN."""
    return length(nanvar(a, axis, dtype, ddof, keepdims))


@spelling(ops.trace, a=tensor, then=typed)
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None) -> Tensor: ...


def trapz(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Tensor:
    """The integral of y along axis by the trapezoidal rule; x: the places of the values y; by
    default they are dx apart.
    """
    return ops.trapz(floating(y), *optional(x), dx=dx, dim=axis)


def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """The n-th differences along axis, after prepend and append have been joined to the ends."""
    return ops.diff(tensor(a), n, axis, operand(prepend), operand(append))


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """The differences of neighbours in the flattened array, preceded by to_begin and followed by to_end."""
    return joined(to_begin, ops.diff(vector(ary)), to_end)


@spelling(ops.expand_dims, a=tensor)
def expand_dims(a: Any, axis: Any) -> Tensor: ...
@spelling(ops.squeeze, a=tensor)
def squeeze(a: Any, axis: Any = None) -> Tensor: ...


def transpose(a: Any, axes: Any = None) -> Any:
    """The dimensions in the order of axes; None: reversed."""
    return tensor(a).transpose(axes) if axes is not None else tensor(a).T


@spelling(ops.reshape, x=tensor)
def reshape(x: Any, new_shape: Any) -> Tensor:
    """The elements, in order, in another shape; at most one dimension may be -1."""


def ravel(x: Any) -> Tensor:
    """All elements as a vector."""
    return vector(x)


@spelling(ops.swapaxes, axis1="axis0", x=tensor)
def swapaxes(x: Any, axis1: Any, axis2: Any) -> Tensor: ...
@spelling(ops.movedim, a=tensor)
def moveaxis(a: Any, source: Any, destination: Any) -> Tensor: ...


def rollaxis(x: Any, axis: Any, start: Any = 0) -> Any:
    """With the dimension axis moved before that of start."""
    t = tensor(x)
    a = arguments.axis_in(t, axis, "rollaxis")
    return ops.movedim(t, a, start - (a < start))


@spelling(ops.roll, a=tensor)
def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """With elements moved on by shift along axis, the last ones coming first again."""


def flip(m: Any, axis: Any = None) -> Any:
    """With the order of elements reversed along axis; None: along all."""
    return ops.flip(tensor(m), tuple(range(tensor(m).ndim)) if axis is None else axis)


@spelling(ops.flip, m=tensor, fixed={"dims": 0})
def flipud(m: Any) -> Tensor:
    """With the rows in reverse order."""


@spelling(ops.flip, m=tensor, fixed={"dims": 1})
def fliplr(m: Any) -> Tensor:
    """With the columns in reverse order."""


@spelling(ops.rot90, a=tensor)
def rot90(a: Any, k: Any = 1, axes: Any = (0, 1)) -> Tensor: ...


def tile(a: Any, reps: Any) -> Any:
    """Repeated as a whole reps[i] times along each dimension; shorter ones count from the last."""
    return ops.tile(tensor(a), (reps,) if isinstance(reps, int) else reps)


@spelling(ops.repeat_interleave, a=tensor)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tensor: ...
@spelling(ops.broadcast_to, array=tensor)
def broadcast_to(array: Any, shape: Any) -> Tensor: ...


def broadcast_arrays(*args: Any) -> tuple[Tensor, ...]:
    """All broadcast to one shape."""
    return ops.broadcast_tensors(*[tensor(x) for x in args])


def atleast_1d(*arys: Any) -> Any:
    """Tensors with at least one dimension: a scalar becomes a vector."""
    return ops.atleast_1d(*[tensor(x) for x in arys])


def atleast_2d(*arys: Any) -> Any:
    """Tensors with at least two dimensions: a vector becomes a row."""
    return ops.atleast_2d(*[tensor(x) for x in arys])


def atleast_3d(*arys: Any) -> Any:
    """Tensors with at least three dimensions: a vector [n] becomes [1, n, 1], a matrix [m, n, 1]."""
    return ops.atleast_3d(*[tensor(x) for x in arys])


def meshgrid(*xi: Any, sparse: bool = False, indexing: Any = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid over vectors, one each; sparse: with size 1 in other dimensions."""
    return making._grids([tensor(x) for x in xi], sparse, indexing)


def stack(arrays: Any, axis: Any = 0) -> Tensor:
    """Tensors of one shape, joined along a new axis."""
    return ops.stack([tensor(x) for x in arrays], axis)


def vstack(tup: Any) -> Tensor:
    """Stacks tensors along the first dimension; vectors become rows."""
    return ops.vstack([tensor(x) for x in tup])


def hstack(tup: Any) -> Tensor:
    """Joined along the second dimension; vectors along their only one."""
    return ops.hstack([tensor(x) for x in tup])


def dstack(tup: Any) -> Tensor:
    """Joins tensors along the third dimension; vectors and matrices get one first."""
    return ops.dstack([tensor(x) for x in tup])


def column_stack(tup: Any) -> Tensor:
    """Vectors as columns, matrices beside each other."""
    return ops.column_stack([tensor(x) for x in tup])


def append(arr: Any, values: Any, axis: Any = None) -> Tensor:
    """Joins two arrays along an axis; None: both are flattened first.

    values: a tensor, or what becomes one.
    """
    return concatenate((arr, values), axis)


def vsplit(x: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Cut along the first dimension, into that many equal parts or before the given indices."""
    return split(x, indices_or_sections, 0)


def hsplit(x: Any, indices_or_sections: Any) -> Any:
    """Cut along the second dimension (of a vector: the only one), into equal parts or before indices."""
    return split(x, indices_or_sections, 0 if tensor(x).ndim == 1 else 1)


def dsplit(x: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Cut along the third dimension, into that many equal parts or before the given indices."""
    return split(x, indices_or_sections, 2)


def diag(v: Any, k: Any = 0) -> Tensor:
    """A vector as a diagonal of a matrix of zeros; of a matrix, a diagonal (as NumPy's diag)."""
    return diagonal_or_matrix(tensor(v), k)


def diagflat(v: Any, k: Any = 0) -> Tensor:
    """Whatever it is, flattened, as the k-th diagonal of a matrix of zeros."""
    return diagonal_or_matrix(vector(v), k)


@spelling(ops.diagonal, a=tensor)
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Tensor: ...
@spelling(ops.tril, m=tensor)
def tril(m: Any, k: Any = 0) -> Tensor:
    """Zero above the k-th diagonal of the last two dimensions."""


@spelling(ops.triu, m=tensor)
def triu(m: Any, k: Any = 0) -> Tensor:
    """Zero below the k-th diagonal of the last two dimensions."""


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """A tensor of it, which a tensor of that dtype already is."""
    return array(a, dtype, False)


def asfarray(a: Any, dtype: Any = _core.float32) -> Tensor:
    """The argument as a tensor, float32 unless dtype says otherwise."""
    return array(a, dtype, False)


def copy(a: Any) -> Any:
    """A copy of the argument as a tensor."""
    return tensor(a).copy()


def zeros(shape: Any, dtype: Any = _core.float32) -> Tensor:
    """A tensor of zeros, float32 by default."""
    return full(shape, 0, dtype)


def empty(shape: Any, dtype: Any = _core.float32) -> Tensor:
    """A tensor of zeros, float32 by default."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = _core.float32) -> Tensor:
    """A tensor of ones, float32 by default."""
    return full(shape, 1, dtype)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Zeros, in a's shape and dtype unless others are given."""
    return like(a, 0, dtype, shape)


def ones_like(a: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Ones, in a's shape and dtype unless others are given."""
    return like(a, 1, dtype, shape)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """A tensor of zeros, in prototype's shape and dtype unless others are given.

    prototype: a tensor, or what becomes one.
    """
    return like(prototype, 0, dtype, shape)


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """A tensor of one number, with a's shape and dtype unless others are given."""
    return like(a, fill_value, dtype, shape)


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = _core.float32) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere."""
    return making.eye(N, N if M is None else M, k, dtype)


def identity(n: Any, dtype: Any = _core.float32) -> Tensor:
    """An n by n matrix with ones on the diagonal, float32 by default."""
    return ops.eye(n, n, to_dtype(dtype))


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = _core.float32) -> Tensor:
    """Ones on and below the k-th diagonal of an N by M matrix, zeros above.

    N: the number of rows.
    """
    return ops.tril(full((N, N if M is None else M), 1, dtype), k)


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Tensor, Tensor]:
    """(rows, columns) of the elements of an n by m matrix on and below the k-th diagonal, int32."""
    return tri_indices(n, m, k, False)


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Tensor, Tensor]:
    """(rows, columns) of the elements of an n by m matrix on and above the k-th diagonal, int32."""
    return tri_indices(n, m, k, True)


def tril_indices_from(arr: Any, k: Any = 0) -> tuple[Tensor, Tensor]:
    """(rows, columns) of the elements of a matrix on and below the k-th diagonal, int32."""
    rows, columns = arguments.of_rank(arr, (2,), "tril_indices_from").shape
    return tri_indices(rows, columns, k, False)


def triu_indices_from(arr: Any, k: Any = 0) -> tuple[Tensor, Tensor]:
    """(rows, columns) of the elements of a matrix on and above the k-th diagonal, int32."""
    rows, columns = arguments.of_rank(arr, (2,), "triu_indices_from").shape
    return tri_indices(rows, columns, k, True)


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """The powers of a vector as columns, the highest first, unless increasing."""
    return ops.flip(ops.vander(tensor(x), N), (1,) if increasing else ())


def bartlett(M: Any) -> Tensor:
    """Bartlett's triangular window of M numbers, float32."""
    return window(M, "bartlett")


def blackman(M: Any) -> Tensor:
    """Blackman's window of M numbers, float32."""
    return window(M, "blackman")


def hamming(M: Any) -> Tensor:
    """The Hamming window of M numbers, float32."""
    return window(M, "hamming")


def hanning(M: Any) -> Tensor:
    """The Hann window of M numbers, float32."""
    return window(M, "hanning")


def rand(*shape: Any, dtype: Any = _core.float32) -> Tensor:
    """Uniform random numbers in [0, 1), float32 by default."""
    return typed(ops.rand(*shape), dtype)  # type: ignore[no-any-return]


def randn(*shape: Any, dtype: Any = _core.float32) -> Tensor:
    """Standard normal numbers, float32 by default."""
    return typed(ops.randn(*shape), dtype)  # type: ignore[no-any-return]


@spelling(ops.dot, a=tensor, b=tensor)
def dot(a: Any, b: Any) -> Tensor: ...
@spelling(ops.inner, a=tensor, b=tensor)
def inner(a: Any, b: Any) -> Tensor: ...
@spelling(ops.kron, a=tensor, b=tensor)
def kron(a: Any, b: Any) -> Tensor: ...
@spelling(ops.outer, a=vector, b=vector)
def outer(a: Any, b: Any) -> Tensor:
    """The outer product of both, flattened."""


@spelling(ops.tensor_dot, a=tensor, b=tensor)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor: ...


def multi_dot(arrays: Any) -> Tensor:
    """The product of several matrices, from left to right; a first or last vector as row or column."""
    return ops.multi_dot([tensor(x) for x in arrays])


@spelling(ops.matrix_power, a=tensor)
def matrix_power(a: Any, n: Any) -> Tensor: ...


def bincount(x: Any, weights: Any = None, minlength: Any = 0, length: Any = None) -> Tensor:
    """Count each integer from 0 on in a vector, as float32; with weights, sum these."""
    return typed(ops.bincount(tensor(x), weights, length or minlength), _core.float32)  # type: ignore[no-any-return]


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of the bins that histogram would use."""
    return histogram(a, bins, range, weights)[1]


@spelling(ops.take, a=tensor, indices=tensor)
def take(a: Any, indices: Any, axis: Any = None, mode: Any = "clip") -> Tensor: ...


def take_along_axis(arr: Any, indices: Any, axis: Any) -> Tensor:
    """The elements at indices along axis, the other coordinates being those of the index's own place."""
    return ops.gather_elements(*along(arr, axis), tensor(indices))


@spelling(ops.nonzero, a=tensor)
def argwhere(a: Any) -> Any:
    """The coordinates of the elements that are not zero, [count, rank]."""


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Tensor:
    """Return the places of v in a sorted vector, int32: before equal elements; behind them for side
    "right"."""
    return ops.searchsorted(tensor(a), operand(v), side=side, sorter=sorter, out_int32=True)


def unique(x: Any, return_inverse: bool = False) -> Any:
    """The different elements, in the order of their first occurrence; with return_inverse the place of each
    of the elements among them too."""
    return ops.unique(vector(x)) if return_inverse else ops.unique(vector(x))[0]


@spelling(ops.isin, element=tensor)
def isin(element: Any, test_elements: Any, invert: bool = False) -> Tensor: ...
@spelling(ops.isin, ar1=vector)
def in1d(ar1: Any, ar2: Any, invert: bool = False) -> Tensor:
    """Return whether each of the flattened elements is among ar2 (is not, if invert)."""


def polyadd(a1: Any, a2: Any) -> Tensor:
    """The sum of two polynomials, coefficients with the highest power first."""
    return polysum(a1, a2, 1)


def polysub(a1: Any, a2: Any) -> Tensor:
    """The difference of two polynomials, coefficients with the highest power first."""
    return polysum(a1, a2, -1)


def array_str(a: Any) -> Any:
    """The text of a tensor, as print shows it."""
    return str(tensor(a))
