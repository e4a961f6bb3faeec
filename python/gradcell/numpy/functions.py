"""NumPy's functions over ops: those that are not elementwise, of tensors, numbers or lists."""

from __future__ import annotations

import builtins
import math
import string
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments, bad_value, publish
from gradcell.base.spelling import spelling
from gradcell.numpy import making
from gradcell.numpy.making import tri_indices, window
from gradcell.numpy.mathematics import histogram, without_nan
from gradcell.numpy.shaping import concatenate, split
from gradcell.ops.arrays.shaping import diagonal_or_matrix

from gradcell.numpy.conversion import (  # isort: skip
    all_tensors, along, array, floating, floats, full, joined, like, operand, operands, optional,
    shape_of, tensor, tensors, typed, vector,
)  # fmt: skip


@spelling(ops.neg, a=tensor, then=typed)
def negative(a: Any, dtype: Any = None) -> Tensor: ...
@spelling(ops.positive, a=tensor, then=typed)
def positive(a: Any, dtype: Any = None) -> Tensor:
    """A copy."""


@spelling(ops.logical_not, a=tensor, then=typed)
def logical_not(a: Any, dtype: Any = None) -> Tensor: ...


def divmod(x1: Any, x2: Any, dtype: Any = None) -> Any:
    """The quotient rounded down and the remainder, elementwise: (x1 // x2, x1 % x2)."""
    return typed((ops.floor_div(*operands(x1, x2)), ops.mod(*operands(x1, x2))), dtype)


@spelling(ops.fix, x=floating)
def fix(x: Any) -> Tensor: ...
@spelling(ops.isneginf, x=tensor)
def isneginf(x: Any) -> Tensor: ...
@spelling(ops.isposinf, x=tensor)
def isposinf(x: Any) -> Tensor: ...
@spelling(ops.round, a=tensor)
def around(a: Any, decimals: Any = 0) -> Tensor: ...
@spelling(ops.round, a=tensor)
def round(a: Any, decimals: Any = 0) -> Tensor: ...


def clip(x: Any, xmin: Any = None, xmax: Any = None, dtype: Any = None) -> Tensor:
    """No less than xmin, no more than xmax, where they are not None."""
    t = x if isinstance(x, Tensor) else optional(x, xmin, xmax)[0]
    return typed(ops.clamp(t, *operands(t, xmin, xmax)[1:]), dtype)  # type: ignore[no-any-return]


def isclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether |a - b| <= atol + rtol |b|, elementwise; NaN are close with equal_nan."""
    x, y = tensors(a, b)
    return ops.isclose(x, y, rtol, atol, equal_nan)


def where(condition: Any, x: Any = None, y: Any = None) -> Tensor:
    """x where condition is true, else y; tensors, lists or numbers, all broadcast."""
    return ops.where(operand(condition), *operands(x, y))


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


@spelling(ops.trace, a=tensor, then=typed)
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None) -> Tensor: ...


def trapz(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Tensor:
    """The integral of y along axis by the trapezoidal rule; x: the places of the values y; by
    default they are dx apart.
    """
    values, *places = floats(*(v for v in (y, x) if v is not None))
    return ops.trapz(values, *places, dx=dx, dim=axis)


def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """The n-th differences along axis, after prepend and append have been joined to the ends."""
    x, first, last = operands(tensor(a), prepend, append)
    return ops.diff(x, n, axis, first, last)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """The differences of neighbours in the flattened array, preceded by to_begin and followed by to_end."""
    first, x, last = optional(to_begin, ary, to_end)
    return joined(first, ops.diff(x.ravel()), last)


@spelling(ops.expand_dims, a=tensor)
def expand_dims(a: Any, axis: Any) -> Tensor: ...
@spelling(ops.squeeze, a=tensor)
def squeeze(a: Any, axis: Any = None) -> Tensor: ...


def transpose(a: Any, axes: Any = None) -> Any:
    """The dimensions in the order of axes; None: reversed."""
    return tensor(a).transpose(axes) if axes is not None else tensor(a).T


def reshape(x: Any, new_shape: Any, order: Any = "C") -> Tensor:
    """The elements, in order, in another shape; at most one dimension may be -1.

    order: 'C', the last dimension counts fastest, or 'F', the first.
    """
    if arguments.one_of(order, ("C", "A", "F"), "reshape", "order") != "F":
        return ops.reshape(tensor(x), new_shape)
    dims = arguments.integers(new_shape, "reshape", "new_shape")
    return ops.reshape(tensor(x).T, tuple(dims[::-1])).T


def ravel(x: Any, order: Any = "C") -> Tensor:
    """All elements as a vector, the last dimension counting fastest; the first with order 'F'."""
    return reshape(x, (-1,), "C" if order == "K" else order)


@spelling(ops.swapaxes, axis1="axis0", x=tensor)
def swapaxes(x: Any, axis1: Any, axis2: Any) -> Tensor: ...
@spelling(ops.movedim, a=tensor)
def moveaxis(a: Any, source: Any, destination: Any) -> Tensor: ...


def rollaxis(x: Any, axis: Any, start: Any = 0) -> Any:
    """With the dimension axis moved before that of start."""
    t = tensor(x)
    a = arguments.axis_in(t, axis, "rollaxis")
    return ops.movedim(t, a, arguments.integer(start, "rollaxis", "start") - (a < start))


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


@spelling(ops.stack, arrays=all_tensors)
def stack(arrays: Any, axis: Any = 0) -> Tensor: ...
@spelling(ops.vstack, tup=all_tensors)
def vstack(tup: Any) -> Tensor: ...
@spelling(ops.hstack, tup=all_tensors)
def hstack(tup: Any) -> Tensor: ...
@spelling(ops.dstack, tup=all_tensors)
def dstack(tup: Any) -> Tensor: ...
@spelling(ops.column_stack, tup=all_tensors)
def column_stack(tup: Any) -> Tensor: ...


def append(arr: Any, values: Any, axis: Any = None) -> Tensor:
    """Joins two arrays along an axis; None: both are flattened first.

    values: a tensor, or what becomes one.
    """
    return concatenate((arr, values), axis)


@spelling(split, fixed={"axis": 0})
def vsplit(x: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Cut along the first dimension, into that many equal parts or before the given indices."""


@spelling(split, fixed={"axis": 2})
def dsplit(x: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Cut along the third dimension, into that many equal parts or before the given indices."""


def hsplit(x: Any, indices_or_sections: Any) -> Any:
    """Cut along the second dimension (of a vector: the only one), into equal parts or before indices."""
    return split(x, indices_or_sections, 0 if tensor(x).ndim == 1 else 1)


@spelling(diagonal_or_matrix, v=tensor)
def diag(v: Any, k: Any = 0) -> Tensor: ...
@spelling(diagonal_or_matrix, v=vector)
def diagflat(v: Any, k: Any = 0) -> Tensor: ...
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


def asfarray(a: Any, dtype: Any = None) -> Tensor:
    """The argument as a tensor, in the default dtype unless another is given."""
    return array(a, arguments.dtype_or(dtype, _core.default_dtype()), False)


def copy(a: Any) -> Any:
    """A copy of the argument as a tensor."""
    return tensor(a).copy()


def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """A tensor of zeros, in the default dtype unless another is given."""
    return full(shape, 0, arguments.dtype_or(dtype, _core.default_dtype()))


def empty(shape: Any, dtype: Any = None) -> Tensor:
    """A tensor of zeros, in the default dtype unless another is given."""
    return full(shape, 0, arguments.dtype_or(dtype, _core.default_dtype()))


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """A tensor of ones, in the default dtype unless another is given."""
    return full(shape, 1, arguments.dtype_or(dtype, _core.default_dtype()))


@spelling(like, fixed={"value": 0})
def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Zeros, with the shape and dtype of the prototype unless others are given.

    prototype: a tensor, or what becomes one.
    """


@spelling(like, fixed={"value": 0})
def zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> Tensor: ...
@spelling(like, fixed={"value": 1})
def ones_like(a: Any, dtype: Any = None, shape: Any = None) -> Tensor: ...
@spelling(like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor: ...


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere."""
    return making.eye(N, N if M is None else M, k, arguments.dtype_or(dtype, _core.default_dtype()))


def identity(n: Any, dtype: Any = None) -> Tensor:
    """An n by n matrix with ones on the diagonal."""
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Tensor:
    """Ones on and below the k-th diagonal of an N by M matrix, zeros above.

    N: the number of rows. dtype: the dtype of the result.
    """
    return ops.tril(ones((N, N if M is None else M), dtype), k)


@spelling(tri_indices, n="rows", m="columns", fixed={"upper": False})
def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Tensor, Tensor]: ...
@spelling(tri_indices, n="rows", m="columns", fixed={"upper": True})
def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Tensor, Tensor]: ...


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


@spelling(window, fixed={"kind": "bartlett"})
def bartlett(M: Any) -> Tensor: ...
@spelling(window, fixed={"kind": "blackman"})
def blackman(M: Any) -> Tensor: ...
@spelling(window, fixed={"kind": "hamming"})
def hamming(M: Any) -> Tensor: ...
@spelling(window, fixed={"kind": "hanning"})
def hanning(M: Any) -> Tensor: ...


def rand(*shape: Any, dtype: Any = None) -> Tensor:
    """Uniform random numbers in [0, 1)."""
    return typed(ops.rand(*shape), dtype)  # type: ignore[no-any-return]


def randn(*shape: Any, dtype: Any = None) -> Tensor:
    """Standard normal numbers."""
    return typed(ops.randn(*shape), dtype)  # type: ignore[no-any-return]


@spelling(ops.dot, together=tensors)
def dot(a: Any, b: Any) -> Tensor: ...
@spelling(ops.inner, together=tensors)
def inner(a: Any, b: Any) -> Tensor: ...
@spelling(ops.kron, together=tensors)
def kron(a: Any, b: Any) -> Tensor: ...


def outer(a: Any, b: Any) -> Tensor:
    """The outer product of both, flattened."""
    return ops.outer(*(x.ravel() for x in tensors(a, b)))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """The sum of products over the last `axes` dimensions of a and the first of b, or over pairs of
    dimensions, (those of a, those of b)."""
    x, y = tensors(a, b)
    return ops.tensor_dot(x, y, axes)


@spelling(ops.multi_dot, arrays=all_tensors)
def multi_dot(arrays: Any) -> Tensor: ...
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
    """The elements at indices along axis, the other coordinates being those of the index's own place; both
    broadcast in the other dimensions."""
    x, a = along(arr, axis)
    at, n = tensor(indices), arguments.axis_in(x, a, "take_along_axis")
    if at.ndim != x.ndim:
        bad_value(f"take_along_axis: indices of {at.ndim} dimensions for a tensor of {x.ndim}")
    dims = [j if i == 1 else i for i, j in zip(x.shape, at.shape, strict=True)]
    fitted = [ops.broadcast_to(t, (*dims[:n], t.shape[n], *dims[n + 1 :])) for t in (x, at)]
    return ops.gather_elements(fitted[0], n, fitted[1])


@spelling(ops.nonzero, a=tensor)
def argwhere(a: Any) -> Any:
    """The coordinates of the elements that are not zero, [count, rank]."""


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Tensor:
    """Return the places of v in a sorted vector, int32: before equal elements; behind them for side
    "right"."""
    return ops.searchsorted(*operands(a, v), side=side, sorter=sorter, out_int32=True)


@spelling(ops.isin, together=tensors)
def isin(element: Any, test_elements: Any, invert: bool = False) -> Tensor: ...


def in1d(ar1: Any, ar2: Any, invert: bool = False) -> Tensor:
    """Return whether each of the flattened elements is among ar2.

    invert: whether those are meant that are not. ar1: tensors, taken as vectors.
    """
    return isin(ar1, ar2, invert).ravel()


def array_str(a: Any) -> Any:
    """The text of a tensor, as print shows it."""
    return str(tensor(a))


def array_repr(arr: Any) -> str:
    """The text of a tensor with its shape and dtype."""
    return repr(tensor(arr))


# Beyond MindSpore's ---------------------------------------------------------------------------------


def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """The tensor with nan, posinf and neginf in place of NaN and infinities; integers as they are."""
    t = tensor(x)
    return ops.nan_to_num(t, nan, posinf, neginf) if t.dtype.is_floating else ops.identity(t)


def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether all elements are close: |a - b| <= atol + rtol |b|."""
    return ops.all(isclose(a, b, rtol, atol, equal_nan))


def angle(z: Any, deg: bool = False) -> Tensor:
    """The angles of complex numbers in radians, in (-pi, pi]; of real ones 0, or pi where negative.

    z: a tensor. deg: whether they are given in degrees.
    """
    found = ops.angle(tensor(z))
    return ops.rad2deg(found) if deg else found


def vdot(a: Any, b: Any) -> Tensor:
    """The sum of products of all elements, those of a conjugated."""
    return ops.vecdot(*(x.ravel() for x in tensors(a, b)))


def vecdot(x1: Any, x2: Any, axis: int = -1) -> Tensor:
    """The sums of products along axis, those of x1 conjugated."""
    a, b = tensors(x1, x2)
    return ops.vecdot(a, b, axis=axis)


def matvec(x1: Any, x2: Any) -> Tensor:
    """Matrices times vectors, both over leading dimensions that broadcast."""
    matrices, vectors = tensors(x1, x2)
    return ops.matmul(matrices, ops.expand_dims(vectors, -1))[..., 0]


def vecmat(x1: Any, x2: Any) -> Tensor:
    """Vectors, conjugated, times matrices, both over leading dimensions that broadcast."""
    row, matrices = tensors(x1, x2)
    row = ops.conj(row) if row.dtype.is_complex else row
    return ops.matmul(ops.expand_dims(row, -2), matrices)[..., 0, :]


def einsum(*operands: Any) -> Tensor:
    """Sums of products by Einstein's convention: 'ij,jk->ik' is the matrix product.

    operands: the equation and the tensors; or tensors that are each followed by a list of integers, which
    name its dimensions, and at the end the list of the result.
    """
    if isinstance(operands[0], str):
        return ops.einsum(operands[0], *tensors(*operands[1:]))
    *lists, end = [*operands[1::2], None if len(operands) % 2 == 0 else operands[-1]]

    def letters(places: Any) -> str:
        return "".join("..." if i is ... else string.ascii_letters[i] for i in places)

    equation = ",".join(map(letters, lists)) + ("" if end is None else "->" + letters(end))
    return ops.einsum(equation, *tensors(*operands[: 2 * len(lists) : 2]))


concat = concatenate
permute_dims = transpose
row_stack = vstack
trapezoid = trapz


@spelling(ops.swapaxes, x=tensor, fixed={"axis0": -1, "axis1": -2})
def matrix_transpose(x: Any) -> Tensor:
    """Matrices, the last two dimensions, with rows and columns exchanged."""


@spelling(ops.unbind, x=tensor)
def unstack(x: Any, *, axis: int = 0) -> tuple[Tensor, ...]: ...


def block(arrays: Any) -> Tensor:
    """Nested lists of tensors put together: the innermost along the last dimension, those around them
    along the one before."""
    if not isinstance(arrays, list):
        return tensor(arrays).copy()
    depth, inner = 0, arrays
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]

    def joined_at(part: Any, axis: int) -> Tensor:
        if isinstance(part, list):
            return concatenate([joined_at(p, axis + 1) for p in part], axis)
        t = tensor(part)
        rank = builtins.max(depth, t.ndim)
        return ops.reshape(t, (*[1] * (rank - t.ndim), *t.shape))

    return joined_at(arrays, -depth)


def resize(a: Any, new_shape: Any) -> Tensor:
    """The elements, in order and repeated as often as needed, in another shape."""
    dims, line = shape_of(new_shape), vector(a)
    count = math.prod(dims)
    return ops.reshape(line[Tensor(np.arange(count) % builtins.max(line.size, 1))], tuple(dims))


def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    """The cumulative product, with 1 in place of NaN."""
    t = tensor(a)
    return cumprod(ops.where(ops.isnan(t), 1, t), axis, dtype)


@spelling(window, fixed={"kind": "kaiser"})
def kaiser(M: Any, beta: float) -> Tensor: ...


publish(globals(), "concat", "permute_dims", "row_stack", "trapezoid")
