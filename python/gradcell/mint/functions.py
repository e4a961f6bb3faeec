"""mindspore.mint's functions: the ops themselves where PyTorch's arguments are theirs, else functions over
them."""

from __future__ import annotations

from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.convert import to_dtype
from gradcell.base.naming import with_names
from gradcell.ops.arrays.creation import filled
from gradcell.ops.arrays.shaping import diagonal_or_matrix

from gradcell.ops import (  # isort: skip
    abs, acos, acos as arccos, acosh, acosh as arccosh, addbmm, addmm, addmv, arange, arcsin,
    asin, asinh, asinh as arcsinh, atan, atan as arctan, atan2, atan2 as arctan2, atanh,
    atanh as arctanh, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, broadcast_to, ceil, clamp,
    clamp as clip, cos, cosh, cross, cumprod, div, div as divide, dot, dstack, einsum, equal as eq, erf,
    erfc, erfinv, exp, exp2, expm1, eye, fix, flip, float_power, floor, floor_divide, fmod,
    full_like, gather_elements as gather, gcd, greater, greater as gt, greater_equal, greater_equal as ge,
    hstack, imag, inverse, is_complex, isclose, isfinite, isinf, lerp, less, less as lt, less_equal,
    less_equal as le, log, log1p, log2, log10, logaddexp, logaddexp2, logical_and, logical_not,
    logical_or, logical_xor, masked_select, matmul, maximum, minimum, mm, mod as remainder, mul,
    nan_to_num, neg, neg as negative, nonzero, not_equal, not_equal as ne, ones_like, outer, pow, ravel,
    real, reciprocal, relu, reshape, roll, round, rsqrt, searchsorted, sigmoid, sign, sin, sinc, sinh,
    square, sum, swapaxes, t, tan, tanh, tile, tril, triu, trunc, unbind, unique_consecutive,
    unsqueeze, xlogy, zeros_like,
)  # fmt: skip

__all__ = [
    "abs", "acos", "acosh", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "all", "allclose",
    "amax", "amin", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "argmax", "argmin", "argsort", "asin", "asinh", "atan", "atan2", "atanh", "baddbmm",
    "bincount", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "bmm", "broadcast_to", "cat",
    "ceil", "chunk", "clamp", "clip", "clone", "concat", "cos", "cosh", "count_nonzero", "cross",
    "cummax", "cummin", "cumprod", "cumsum", "diag", "diff", "div", "divide", "dot", "dstack", "einsum",
    "empty", "empty_like", "eq", "equal", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "eye", "fix",
    "flatten", "flip", "float_power", "floor", "floor_divide", "fmod", "frac", "full", "full_like",
    "gather", "gcd", "ge", "greater", "greater_equal", "gt", "histc", "hstack", "imag", "index_add",
    "index_select", "inverse", "is_complex", "isclose", "isfinite", "isinf", "isnan", "isneginf", "item",
    "le", "lerp", "less", "less_equal", "linspace", "log", "log1p", "log2", "log10", "logaddexp",
    "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "lt",
    "masked_select", "matmul", "max", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mm",
    "mul", "multinomial", "mv", "nan_to_num", "nansum", "narrow", "ne", "neg", "negative", "nonzero",
    "norm", "not_equal", "ones", "ones_like", "outer", "permute", "pow", "prod", "rand", "rand_like",
    "randn", "randn_like", "randperm", "ravel", "real", "reciprocal", "relu", "remainder",
    "repeat_interleave", "reshape", "roll", "round", "rsqrt", "scatter", "scatter_add", "searchsorted",
    "select", "sigmoid", "sign", "sin", "sinc", "sinh", "softmax", "sort", "split", "sqrt", "square",
    "squeeze", "stack", "std", "std_mean", "sub", "sum", "swapaxes", "t", "take", "tan", "tanh", "tile",
    "topk", "trace", "transpose", "tril", "triu", "trunc", "unbind", "unique_consecutive", "unsqueeze",
    "var", "var_mean", "vdot", "vstack", "where", "xlogy", "zeros", "zeros_like",
]  # fmt: skip

_ops = _core.ops

sqrt = with_names(ops.sqrt, "input")


def _extremum(name: str, input: Any, other: Any, dim: Any, keepdim: bool) -> Any:
    if isinstance(dim, Tensor) or other is not None:
        return getattr(_ops, f"{name}imum")(input, other if other is not None else dim)
    if dim is None:
        return getattr(ops, f"a{name}")(input)
    return getattr(ops, name)(input, dim, keepdim)


def scaled(other: Any, alpha: Any) -> Any:
    """alpha times other."""
    return other if alpha == 1 else _ops.mul(other, alpha)


def typed(x: Any, dtype: Any) -> Any:
    """x in another dtype; as it is for None."""
    return x if dtype is None else _ops.cast(x, to_dtype(dtype))


def sizes(size: Any, owner: str) -> tuple[int, ...]:
    """Integers given one by one, or as one tuple or list."""
    given = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return tuple(arguments.shape(given, owner, "size"))


def frac(input: Any) -> Tensor:
    """The fraction, with x's sign."""
    return ops.frac(input)


def isnan(tensor: Any) -> Tensor:
    """Whether each element is not a number."""
    return ops.isnan(tensor)


def isneginf(input: Any) -> Tensor:
    """Whether each element is -inf."""
    return ops.logical_and(ops.isinf(input), ops.less(input, 0))


def equal(input: Any, other: Any) -> Any:
    """Whether the shapes and all elements are the same: a bool."""
    return (
        bool(ops.all(ops.equal(input, other)))
        if tuple(input.shape) == tuple(other.shape)
        else False
    )


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input + alpha other, elementwise."""
    return ops.add(input, scaled(other, alpha))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input - alpha other, elementwise."""
    return ops.sub(input, scaled(other, alpha))


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """input + value tensor1 / tensor2."""
    return ops.addcdiv(input, tensor1, tensor2, value)


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """input + value tensor1 tensor2."""
    return ops.addcmul(input, tensor1, tensor2, value)


def allclose(
    input: Any, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Any:
    """Whether all elements are close, as isclose has it: a bool."""
    return bool(ops.all(ops.isclose(input, other, rtol, atol, equal_nan)))


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """input where condition is true, else other; the positions where it is true without them."""
    if input is None:
        return ops.nonzero(condition, as_tuple=True)
    return _ops.where(condition, input, other)


def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean, in the dtype of x; for integers it is rounded down."""
    return ops.mean(input, dim, keepdim, dtype=dtype)


def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of the elements that are not NaN."""
    return ops.nansum(input, dim, keepdim, dtype=dtype)


def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product."""
    return ops.prod(input, dim, keepdim, dtype)


def all(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are true (not zero); true for none."""
    return ops.all(input, dim, keepdim)


def any(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether any element is true (not zero); false for none."""
    return ops.any(input, dim, keepdim)


def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The largest element."""
    return ops.amax(input, dim, keepdim)


def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The smallest element."""
    return ops.amin(input, dim, keepdim)


def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The largest element of all; along dim (values, indices); of two tensors elementwise."""
    return _extremum("max", input, other, dim, keepdim)


def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The smallest element of all; along dim (values, indices); of two tensors elementwise."""
    return _extremum("min", input, other, dim, keepdim)


def argmax(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The index of the first largest element, of all or along dim, int64."""
    return ops.cast(ops.argmax(input, dim, keepdim), _core.int64)


def argmin(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The index of the first smallest element, of all or along dim, int64."""
    return ops.cast(ops.argmin(input, dim, keepdim), _core.int64)


def std(input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor:
    """The standard deviation, the square root of var."""
    return ops.std(input, dim, correction, keepdim)


def var(input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor:
    """The variance: the sum of squared deviations from the mean, divided by (count - ddof)."""
    return ops.var(input, dim, correction, keepdim)


def std_mean(
    input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """(the standard deviation, the mean): ops.std and ops.mean."""
    return ops.std_mean(input, dim, correction, keepdim)


def var_mean(
    input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """(the variance, the mean): ops.var and ops.mean."""
    return ops.var_mean(input, dim, correction, keepdim)


def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Tensor:
    """log(sum(exp(input))), without overflow: the largest element is taken out first."""
    return ops.logsumexp(input, dim, keepdim)


def count_nonzero(input: Any, dim: Any = None) -> Tensor:
    """The number of elements that are not zero: int32 unless dtype says otherwise."""
    return ops.count_nonzero(input, dim)


def median(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """(median, index) along dim; of all elements the median alone."""
    if dim is None:
        return ops.median(input.reshape(-1), 0)[0]
    return ops.median(input, dim, keepdim)


def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of vectors or matrices."""
    return ops.norm(
        input,
        None if p == "fro" and not isinstance(dim, (tuple, list)) else p,
        dim,
        keepdim,
        dtype=dtype,
    )


def cumsum(input: Any, dim: Any, dtype: Any = None) -> Tensor:
    """The sums of all elements up to each along axis, in x's dtype unless dtype says otherwise."""
    return ops.cumsum(input, dim, dtype)


def cummax(input: Any, dim: Any) -> tuple[Tensor, Tensor]:
    """(the largest element up to each along axis, its index; the last one of equal elements)."""
    return ops.cummax(input, dim)


def cummin(input: Any, dim: Any) -> tuple[Tensor, Tensor]:
    """(the smallest element up to each along axis, its index; the last one of equal elements)."""
    return ops.cummin(input, dim)


def diff(input: Any, n: Any = 1, dim: Any = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """The n-th differences along axis, after prepend and append have been joined to the ends."""
    return ops.diff(input, n, dim, prepend, append)


def bincount(input: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """How often each number occurs, int64; with weights, their sums."""
    out = ops.bincount(input, weights, minlength)
    return _ops.cast(out, _core.int64) if weights is None else out


def histc(input: Any, bins: Any = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """How many elements lie in each of `bins` equal intervals from min to max (by default the range
    of the elements), in input's dtype.
    """
    return ops.histc(input, bins, min, max)


def softmax(input: Any, dim: Any, *, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along axis."""
    return ops.softmax(typed(input, dtype), dim)


def trace(input: Any) -> Tensor:
    """The sum of the diagonal."""
    return ops.trace(input)


def permute(input: Any, dims: Any) -> Tensor:
    """With the dimensions in the order of axis."""
    return ops.permute(input, dims)


def transpose(input: Any, dim0: Any, dim1: Any) -> Tensor:
    """The tensor with two of its dimensions exchanged."""
    return ops.swapaxes(input, dim0, dim1)


def flatten(input: Any, start_dim: Any = 0, end_dim: Any = -1) -> Any:
    """flatten: input.flatten(start_dim, end_dim)."""
    return input.flatten(start_dim, end_dim)


def squeeze(input: Any, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1, or without those of `dim` that have size 1."""
    return ops.squeeze(input, dim)


def narrow(input: Any, dim: Any, start: Any, length: Any) -> Tensor:
    """`length` elements along axis from `start` on. Raises ValueError if they reach beyond the end."""
    return ops.narrow(input, dim, start, length)


def select(input: Any, dim: Any, index: Any) -> Tensor:
    """The slice of a tensor at one index of a dimension, which the result does not have.

    index: an int, counted from the end where negative.
    """
    return ops.squeeze(ops.narrow(input, dim, index, 1), dim)


def cat(tensors: Any, dim: Any = 0) -> Tensor:
    """A tuple or list of tensors, joined along an axis."""
    return ops.concat(tensors, dim)


def concat(tensors: Any, dim: Any = 0) -> Tensor:
    """A tuple or list of tensors, joined along an axis."""
    return ops.concat(tensors, dim)


def stack(tensors: Any, dim: Any = 0) -> Tensor:
    """Tensors of one shape, joined along a new axis."""
    return ops.stack(tensors, dim)


def vstack(tensors: Any) -> Tensor:
    """Stacks tensors along the first dimension; vectors become rows."""
    return ops.vstack(tensors)


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Cut along dim, into pieces of one size or of given sizes."""
    return ops.split(tensor, split_size_or_sections, dim)


def chunk(input: Any, chunks: Any, dim: Any = 0) -> tuple[Tensor, ...]:
    """Splits a tensor along an axis into at most `chunks` pieces, all but the last of one size."""
    return ops.chunk(input, chunks, dim)


def repeat_interleave(input: Any, repeats: Any, dim: Any = None, *, output_size: Any = None) -> Any:
    """Each element repeated along dim."""
    return ops.repeat_interleave(input, repeats, dim, output_size=output_size)


def meshgrid(*tensors: Any, indexing: Any = None) -> tuple[Tensor, ...]:
    """The coordinate grids of vectors; indexing 'xy': the first two dimensions exchanged; 'ij' or None:
    not."""
    return ops.meshgrid(*tensors, indexing=indexing or "ij")


def diag(input: Any, diagonal: Any = 0) -> Tensor:
    """A vector as a diagonal of a matrix of zeros; of a matrix, a diagonal (as NumPy's diag)."""
    return diagonal_or_matrix(input, diagonal)


def clone(input: Any) -> Any:
    """A copy of a tensor, through which derivatives pass."""
    return input.copy()


def item(input: Any) -> Any:
    """The value of a tensor of one element, as a Python number."""
    return input.item()


def zeros(*size: Any, dtype: Any = None) -> Tensor:
    """Zeros, float32 by default."""
    return ops.zeros(sizes(size, "zeros"), dtype)


def ones(*size: Any, dtype: Any = None) -> Tensor:
    """Ones, float32 by default."""
    return ops.ones(sizes(size, "ones"), dtype)


def empty(*size: Any, dtype: Any = None, device: Any = None, pin_memory: bool = False) -> Tensor:
    """Zeros, float32 by default."""
    return ops.zeros(sizes(size, "empty"), dtype)


def empty_like(
    input: Any, *, dtype: Any = None, device: Any = None, pin_memory: bool = False
) -> Tensor:
    """Zeros with input's shape and, by default, its dtype."""
    return ops.zeros_like(input, dtype=dtype)


def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """As full; by default int64, float32 or bool after the number's type."""
    return filled(size, fill_value, dtype)


def linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None) -> Tensor:
    """`steps` numbers, evenly spaced from start to end, both included; float32 for numbers."""
    return typed(ops.linspace(start, end, steps), dtype)


def rand(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform random numbers in [0, 1), float32 by default."""
    return ops.rand(*sizes(size, "rand"), dtype=dtype)


def randn(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Standard normal numbers, float32 by default."""
    return ops.randn(*sizes(size, "randn"), dtype=dtype)


def rand_like(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """As rand, with input's shape and dtype."""
    return ops.rand_like(input, dtype=dtype)


def randn_like(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """As randn, with input's shape and dtype."""
    return ops.randn_like(input, dtype=dtype)


def randperm(n: Any, *, generator: Any = None, dtype: Any = _core.int64) -> Tensor:
    """The integers from 0 to n - 1 in random order."""
    return ops.randperm(n, dtype=dtype)


def multinomial(
    input: Any, num_samples: Any, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Indices drawn by the weights in a vector, or each row of a matrix: int64 [..., num_samples]."""
    return ops.cast(ops.multinomial(input, num_samples, replacement), _core.int64)


def index_select(input: Any, dim: Any, index: Any) -> Tensor:
    """The slices of input along axis at index, a vector of integers."""
    return ops.index_select(input, dim, index)


def scatter(input: Any, dim: Any, index: Any, src: Any) -> Tensor:
    """input with src placed at index along axis, at the index's own other coordinates; if positions
    repeat, the last one stays.
    """
    return ops.scatter(input, dim, index, src)


def scatter_add(input: Any, dim: Any, index: Any, src: Any) -> Tensor:
    """input_x with updates placed at indices along axis, at the index's own other coordinates."""
    return ops.tensor_scatter_elements(input, index, src, dim, "add")


def index_add(input: Any, dim: Any, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """x with the slices of y added along axis at indices, a vector of integers."""
    return ops.index_add(input, index, scaled(source, alpha), dim)


def take(input: Any, index: Any) -> Tensor:
    """Elements along axis by index; None: of the flattened tensor."""
    return ops.take(input, index)


def argsort(input: Any, dim: Any = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort along axis, int32; equal elements keep their order."""
    return ops.argsort(input, dim, descending)


def sort(
    input: Any, *, dim: Any = -1, descending: bool = False, stable: bool = False
) -> tuple[Tensor, Tensor]:
    """(the elements in order along axis, their indices as int32)."""
    return ops.sort(input, dim, descending)


def topk(
    input: Any, k: Any, dim: Any = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """(the k largest or smallest elements along dim, their indices as int32)."""
    return ops.topk(input, k, dim, largest, sorted)


def bmm(input: Any, mat2: Any) -> Tensor:
    """The matrix products of two batches: [..., M, K] by [..., K, N], leading dimensions broadcast."""
    return ops.bmm(input, mat2)


def mv(input: Any, vec: Any) -> Tensor:
    """The product of a matrix [m, n] and a vector [n]."""
    return ops.mv(input, vec)


def vdot(input: Any, other: Any) -> Tensor:
    """The sum, in the dtype of x."""
    return ops.reduce_sum(ops.mul(input, other))


def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta input + alpha batch1 batch2, matrix by matrix."""
    return ops.baddbmm(input, batch1, batch2, beta=beta, alpha=alpha)
