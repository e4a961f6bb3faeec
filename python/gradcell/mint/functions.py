"""mindspore.mint's functions: the ops themselves where PyTorch's arguments are theirs, else functions over
them."""

from __future__ import annotations

from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, to_dtype
from gradcell.base.spelling import spelling
from gradcell.ops.arrays.creation import filled, spaced
from gradcell.ops.arrays.shaping import diagonal_or_matrix
from gradcell.ops.elements.complex_numbers import real_valued

from gradcell.ops import (  # isort: skip
    acos, acos as arccos, acosh, acosh as arccosh, addbmm, addmm, addmv, arange, arcsin,
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
    "cdist", "ceil", "chunk", "clamp", "clip", "clone", "concat", "cos", "cosh", "count_nonzero", "cross",
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


@spelling(ops.sqrt)
def sqrt(input: Any) -> Tensor: ...


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


def in_int64(index: Tensor) -> Tensor:
    """Indices as int64, which all of mint's are."""
    return _ops.cast(index, _core.int64)


def with_int64(found: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """(values, indices), the indices as int64."""
    return found[0], in_int64(found[1])


def sizes(size: Any, owner: str) -> tuple[int, ...]:
    """Integers given one by one, or as one tuple or list."""
    given = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return tuple(arguments.shape(given, owner, "size"))


@spelling(ops.frac)
def frac(input: Any) -> Tensor: ...
@spelling(ops.isnan)
def isnan(tensor: Any) -> Tensor: ...
@spelling(ops.isneginf)
def isneginf(input: Any) -> Tensor: ...


def equal(input: Any, other: Any) -> Any:
    """Return whether the shapes and all elements are the same: a bool."""
    return tuple(input.shape) == tuple(other.shape) and bool(ops.all(ops.equal(input, other)))


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input + alpha other, elementwise."""
    return ops.add(input, scaled(other, alpha))


@spelling(ops.subtract)
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor: ...
@spelling(ops.addcdiv)
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor: ...
@spelling(ops.addcmul)
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor: ...


def allclose(
    input: Any, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Any:
    """Return whether all elements are close, as isclose has it: a bool.

    rtol: the relative tolerance. atol: the absolute tolerance. equal_nan: whether NaN equals NaN.
    """
    return bool(ops.all(ops.isclose(input, other, rtol, atol, equal_nan)))


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """input where condition is true, else other; the positions where it is true without them."""
    if input is None:
        return ops.nonzero(condition, as_tuple=True)
    return _ops.where(condition, input, other)


@spelling(ops.mean)
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor: ...
@spelling(ops.nansum)
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor: ...
@spelling(ops.prod)
def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor: ...
@spelling(ops.all)
def all(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor: ...
@spelling(ops.any)
def any(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor: ...
@spelling(ops.amax)
def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Tensor: ...
@spelling(ops.amin)
def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Tensor: ...


def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The largest element of all; along dim (values, indices); of two tensors elementwise."""
    return _extremum("max", input, other, dim, keepdim)


def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The smallest element of all; along dim (values, indices); of two tensors elementwise."""
    return _extremum("min", input, other, dim, keepdim)


@spelling(ops.argmax, then=in_int64)
def argmax(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The index of the first largest element, of all or along dim, int64."""


@spelling(ops.argmin, then=in_int64)
def argmin(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The index of the first smallest element, of all or along dim, int64."""


@real_valued
@spelling(ops.abs)
def abs(input: Any) -> Tensor:
    """The absolute value of each element, real for complex numbers too."""


@spelling(ops.std)
def std(input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor: ...
@spelling(ops.var)
def var(input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor: ...
@spelling(ops.std_mean)
def std_mean(
    input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False
) -> tuple[Tensor, Tensor]: ...
@spelling(ops.var_mean)
def var_mean(
    input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False
) -> tuple[Tensor, Tensor]: ...
@spelling(ops.logsumexp)
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Tensor: ...
@spelling(ops.count_nonzero)
def count_nonzero(input: Any, dim: Any = None) -> Tensor:
    """The number of elements that are not zero, int32."""


def median(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """(median, index) along dim; of all elements the median alone."""
    if dim is None:
        return ops.median(ops.reshape(input, -1), 0)[0]
    return ops.median(input, dim, keepdim)


@real_valued
def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm (sum |x|^p)^(1/p) of all elements over dim (all of them for None); inf, -inf and 0 as usual.

    'fro': the 2-norm. 'nuc': the sum of the singular values of matrices, over two dims.
    """
    if isinstance(p, str):
        order = p if p != "fro" or isinstance(dim, (tuple, list)) else None
        return ops.norm(input, order, dim, keepdim, dtype=dtype)
    return ops.vector_norm(input, p, dim, keepdim, dtype=dtype)


@spelling(ops.cumsum)
def cumsum(input: Any, dim: Any, dtype: Any = None) -> Tensor: ...
@spelling(ops.cdist, ignored="compute_mode")
def cdist(
    x1: Any, x2: Any, p: Any = 2.0, compute_mode: Any = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor: ...
@spelling(ops.cummax)
def cummax(input: Any, dim: Any) -> tuple[Tensor, Tensor]: ...
@spelling(ops.cummin, then=with_int64)
def cummin(input: Any, dim: Any) -> tuple[Tensor, Tensor]:
    """(the smallest elements up to each place along dim, their indices as int64)."""


@spelling(ops.diff)
def diff(
    input: Any, n: Any = 1, dim: Any = -1, prepend: Any = None, append: Any = None
) -> Tensor: ...


def bincount(input: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """Count each number, int64; with weights, sum these."""
    out = ops.bincount(input, weights, minlength)
    return in_int64(out) if weights is None else out


@spelling(ops.histc)
def histc(input: Any, bins: Any = 100, min: Any = 0, max: Any = 0) -> Tensor: ...
@spelling(ops.softmax)
def softmax(input: Any, dim: Any, *, dtype: Any = None) -> Tensor: ...
@spelling(ops.trace)
def trace(input: Any) -> Tensor: ...
@spelling(ops.permute)
def permute(input: Any, dims: Any) -> Tensor: ...
@spelling(ops.swapaxes)
def transpose(input: Any, dim0: Any, dim1: Any) -> Tensor: ...


def flatten(input: Any, start_dim: Any = 0, end_dim: Any = -1) -> Any:
    """flatten: input.flatten(start_dim, end_dim)."""
    return arguments.tensor(input, "flatten").flatten(start_dim, end_dim)


@spelling(ops.squeeze)
def squeeze(input: Any, dim: Any = None) -> Tensor: ...
@spelling(ops.narrow)
def narrow(input: Any, dim: Any, start: Any, length: Any) -> Tensor: ...


def select(input: Any, dim: Any, index: Any) -> Tensor:
    """The slice of a tensor at one index of a dimension, which the result does not have.

    index: an int, counted from the end where negative. dim: the dimension, counted from the end
    where negative.
    """
    return ops.squeeze(ops.narrow(input, dim, index, 1), dim)


@spelling(ops.concat)
def cat(tensors: Any, dim: Any = 0) -> Tensor: ...
@spelling(ops.concat)
def concat(tensors: Any, dim: Any = 0) -> Tensor: ...
@spelling(ops.stack)
def stack(tensors: Any, dim: Any = 0) -> Tensor: ...
@spelling(ops.vstack)
def vstack(tensors: Any) -> Tensor: ...
@spelling(ops.split)
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]: ...
@spelling(ops.chunk)
def chunk(input: Any, chunks: Any, dim: Any = 0) -> tuple[Tensor, ...]: ...
@spelling(ops.repeat_interleave)
def repeat_interleave(
    input: Any, repeats: Any, dim: Any = None, *, output_size: Any = None
) -> Any: ...


def meshgrid(*tensors: Any, indexing: Any = None) -> tuple[Tensor, ...]:
    """The coordinate grids of vectors; indexing 'xy': the first two dimensions exchanged; 'ij' or None:
    not."""
    return ops.meshgrid(*tensors, indexing=indexing or "ij")


@spelling(diagonal_or_matrix)
def diag(input: Any, diagonal: Any = 0) -> Tensor: ...


def clone(input: Any) -> Any:
    """A copy of a tensor, through which derivatives pass."""
    return arguments.tensor(input, "clone").copy()


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


@spelling(ops.zeros_like, ignored="device pin_memory")
def empty_like(
    input: Any, *, dtype: Any = None, device: Any = None, pin_memory: bool = False
) -> Tensor: ...


def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """As full; by default int64, float32 or bool after the number's type."""
    return filled(size, fill_value, dtype)


@spelling(spaced)
def linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None) -> Tensor:
    """`steps` numbers, evenly spaced from start to end, both included, in a dtype: by default float32,
    or that of tensors."""


def rand(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform random numbers in [0, 1), float32 by default."""
    return ops.rand(*sizes(size, "rand"), dtype=dtype)


def randn(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Standard normal numbers, float32 by default."""
    return ops.randn(*sizes(size, "randn"), dtype=dtype)


@spelling(ops.rand_like, ignored="device")
def rand_like(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor: ...
@spelling(ops.randn_like, ignored="device")
def randn_like(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor: ...
@spelling(ops.randperm, ignored="generator")
def randperm(n: Any, *, generator: Any = None, dtype: Any = _core.int64) -> Tensor:
    """The integers from 0 to n - 1 in random order."""


def multinomial(
    input: Any, num_samples: Any, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Indices drawn by the weights in a vector, or each row of a matrix: int64 [..., num_samples]."""
    return in_int64(ops.multinomial(input, num_samples, replacement))


@spelling(ops.index_select)
def index_select(input: Any, dim: Any, index: Any) -> Tensor: ...
@spelling(ops.scatter)
def scatter(input: Any, dim: Any, index: Any, src: Any) -> Tensor: ...
@spelling(ops.tensor_scatter_elements, index="indices", src="updates", fixed={"reduction": "add"})
def scatter_add(input: Any, dim: Any, index: Any, src: Any) -> Tensor: ...


def index_add(input: Any, dim: Any, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """input with alpha times the slices of source added along dim at index, a vector of integers."""
    return ops.index_add(input, index, scaled(source, alpha), dim)


@spelling(ops.take, fixed={"mode": "raise"})
def take(input: Any, index: Any) -> Tensor:
    """The elements of the flattened tensor at index, which counts from the end where it is negative."""


@spelling(ops.argsort, ignored="stable", then=in_int64)
def argsort(input: Any, dim: Any = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort along dim, int64; equal elements keep their order, stable or not."""


@spelling(ops.sort, ignored="stable", then=with_int64)
def sort(
    input: Any, *, dim: Any = -1, descending: bool = False, stable: bool = False
) -> tuple[Tensor, Tensor]:
    """(the elements in order along dim, their indices as int64). Equal elements keep their order, stable or
    not; the order is a constant of the derivative."""


@spelling(ops.topk, then=with_int64)
def topk(
    input: Any, k: Any, dim: Any = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """(the k largest or smallest elements along dim, their indices as int64).

    sorted: in order, of equal elements the first first; if not, in the order in which they are selected.
    NaN counts as larger than any number. Raises ValueError if there are fewer than k.
    """


@spelling(ops.bmm)
def bmm(input: Any, mat2: Any) -> Tensor: ...
@spelling(ops.mv)
def mv(input: Any, vec: Any) -> Tensor: ...


def vdot(input: Any, other: Any) -> Tensor:
    """The sum of the products of elements, in their dtype, those of input conjugated."""
    return ops.vecdot(input, other)


@spelling(ops.baddbmm)
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor: ...
