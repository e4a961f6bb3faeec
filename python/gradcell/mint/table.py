"""mindspore.mint's functions: (signature, expression, names). name=op: over an op of another name."""

from __future__ import annotations

from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.convert import to_dtype
from gradcell.base.forms import Forms
from gradcell.ops.arrays.creation import filled  # noqa: F401 (of the rows)
from gradcell.ops.arrays.shaping import diagonal_or_matrix  # noqa: F401 (of the rows)

_ops = _core.ops


def scaled(other: Any, alpha: Any) -> Any:
    """alpha times other."""
    return other if alpha == 1 else _ops.mul(other, alpha)


def typed(x: Any, dtype: Any) -> Any:
    """x in another dtype; as it is for None."""
    return x if dtype is None else _ops.cast(x, to_dtype(dtype))


def sizes(size: Any) -> tuple[int, ...]:
    """Integers given one by one, or as one tuple or list."""
    given = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return tuple(arguments.integers(given, "mint", "size"))


def extremum(name: str, input: Any, other: Any, dim: Any, keepdim: bool) -> Any:
    """max and min: of all elements, along dim with indices, or of two tensors elementwise."""
    if isinstance(dim, Tensor) or other is not None:
        return getattr(_ops, f"{name}imum")(input, other if other is not None else dim)
    if dim is None:
        return getattr(ops, f"a{name}")(input)
    return getattr(ops, name)(input, dim, keepdim)


def nonzero_where(condition: Any, input: Any, other: Any) -> Any:
    """input where condition is true, else other; the places where it is true without them."""
    if input is None:
        return ops.nonzero(condition, as_tuple=True)
    return _ops.where(condition, input, other)


def median(input: Any, dim: Any, keepdim: bool) -> Any:
    """(median, index) along dim; of all elements the median alone."""
    if dim is None:
        return ops.median(input.reshape(-1), 0)[0]
    return ops.median(input, dim, keepdim)


def split(tensor: Any, split_size_or_sections: Any, dim: int) -> Any:
    """Cut along dim, into pieces of one size or of given sizes."""
    return ops.split(tensor, split_size_or_sections, dim)


def repeat(input: Any, repeats: Any, dim: Any) -> Any:
    """Each element repeated along dim."""
    return ops.repeat_interleave(input, repeats, dim)


def counts(input: Any, weights: Any, minlength: int) -> Any:
    """How often each number is there, int64; with weights, their sums."""
    out = ops.bincount(input, weights, minlength)
    return _ops.cast(out, _core.int64) if weights is None else out


ROWS = (
    # Elementwise
    ("input",
     "ops.{}(input)",
     "abs acos acosh arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctanh=atanh"
     " asin asinh atan atanh bitwise_not ceil cos cosh erf erfc erfinv exp exp2 expm1 fix floor "
     "frac isfinite isinf log log10 log1p log2 logical_not neg negative=neg reciprocal rsqrt "
     "sigmoid sign sin sinc sinh sqrt square tan tanh trunc relu real imag inverse ravel "
     "is_complex"),
    ("tensor", "ops.isnan(tensor)", "isnan"),
    ("input", "ops.logical_and(ops.isinf(input), ops.less(input, 0))", "isneginf"),
    ("input, other",
     "ops.{}(input, other)",
     "atan2 arctan2=atan2 maximum minimum remainder=mod fmod floor_divide=floor_div eq=equal "
     "ne=not_equal not_equal lt=less less le=less_equal less_equal gt=greater greater "
     "ge=greater_equal greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or "
     "bitwise_xor gcd logaddexp logaddexp2 mul xlogy matmul dot"),
    ("input, other",
     "bool(ops.all(ops.equal(input, other))) if tuple(input.shape) == tuple(other.shape) else "
     "False",
     "equal"),
    ("input, exponent", "ops.{}(input, exponent)", "pow float_power"),
    ("input, other, *, alpha=1", "ops.{}(input, scaled(other, alpha))", "add sub"),
    ("input, other, *, rounding_mode=None",
     "ops.div(input, other, rounding_mode=rounding_mode)",
     "div divide"),
    ("input, min=None, max=None", "ops.clamp(input, min, max)", "clamp clip"),
    ("input, *, decimals=0", "ops.round(input, decimals=decimals)", "round"),
    ("input, end, weight", "ops.lerp(input, end, weight)", "lerp"),
    ("input, tensor1, tensor2, *, value=1",
     "ops.{}(input, tensor1, tensor2, value)",
     "addcdiv addcmul"),
    ("input, nan=None, posinf=None, neginf=None",
     "ops.nan_to_num(input, nan, posinf, neginf)",
     "nan_to_num"),
    ("input, other, rtol=1e-05, atol=1e-08, equal_nan=False",
     "ops.isclose(input, other, rtol, atol, equal_nan)",
     "isclose"),
    ("input, other, rtol=1e-05, atol=1e-08, equal_nan=False",
     "bool(ops.all(ops.isclose(input, other, rtol, atol, equal_nan)))", "allclose"),
    ("condition, input=None, other=None", "nonzero_where(condition, input, other)", "where"),
    # Reductions
    ("input, dim=None, keepdim=False, *, dtype=None",
     "ops.{}(input, dim, keepdim, dtype=dtype)",
     "sum mean nansum"),
    ("input, dim=None, keepdim=False, *, dtype=None",
     "ops.prod(input, dim, keepdim, dtype)",
     "prod"),
    ("input, dim=None, keepdim=False", "ops.{}(input, dim, keepdim)", "all any"),
    ("input, dim=(), keepdim=False", "ops.{}(input, dim, keepdim)", "amax amin"),
    ("input, dim=None, keepdim=False, *, other=None",
     "extremum('{}', input, other, dim, keepdim)",
     "max min"),
    ("input, dim=None, keepdim=False",
     "ops.cast(ops.argmax(input, dim, keepdim), _core.int64)",
     "argmax"),
    ("input, dim=None, keepdim=False",
     "ops.cast(ops.argmin(input, dim, keepdim), _core.int64)",
     "argmin"),
    ("input, dim=None, *, correction=1, keepdim=False", "ops.{}(input, dim, correction, keepdim)",
     "std var std_mean var_mean"),
    ("input, dim, keepdim=False", "ops.logsumexp(input, dim, keepdim)", "logsumexp"),
    ("input, dim=None", "ops.count_nonzero(input, dim)", "count_nonzero"),
    ("input, dim=None, keepdim=False", "median(input, dim, keepdim)", "median"),
    ("input, p='fro', dim=None, keepdim=False, *, dtype=None",
     "ops.norm(input, None if p == 'fro' and not isinstance(dim, (tuple, list)) else p, dim, keepdim, "
     "dtype=dtype)",
     "norm"),
    ("input, dim, dtype=None", "ops.{}(input, dim, dtype)", "cumsum cumprod"),
    ("input, dim", "ops.{}(input, dim)", "cummax cummin"),
    ("input, n=1, dim=-1, prepend=None, append=None",
     "ops.diff(input, n, dim, prepend, append)",
     "diff"),
    ("input, weights=None, minlength=0", "counts(input, weights, minlength)", "bincount"),
    ("input, bins=100, min=0, max=0", "ops.histc(input, bins, min, max)", "histc"),
    ("input, dim, *, dtype=None", "ops.softmax(typed(input, dtype), dim)", "softmax"),
    ("input", "ops.trace(input)", "trace"),
    # Shapes
    ("input, shape", "ops.{}(input, shape)", "reshape broadcast_to"),
    ("input, dims", "ops.{}(input, dims)", "permute flip tile"),
    ("input, dim0, dim1", "ops.swapaxes(input, dim0, dim1)", "transpose"),
    ("input, axis0, axis1", "ops.swapaxes(input, axis0, axis1)", "swapaxes"),
    ("input", "ops.t(input)", "t"),
    ("input, start_dim=0, end_dim=-1",
     "input.flatten(start_dim, end_dim)",
     "flatten"),
    ("input, dim=None", "ops.squeeze(input, dim)", "squeeze"),
    ("input, dim", "ops.unsqueeze(input, dim)", "unsqueeze"),
    ("input, shifts, dims=None", "ops.roll(input, shifts, dims)", "roll"),
    ("input, dim, start, length", "ops.narrow(input, dim, start, length)", "narrow"),
    ("input, dim, index", "ops.squeeze(ops.narrow(input, dim, index, 1), dim)", "select"),
    ("tensors, dim=0", "ops.concat(tensors, dim)", "cat concat"),
    ("tensors, dim=0", "ops.stack(tensors, dim)", "stack"),
    ("tensors", "ops.{}(tensors)", "hstack dstack vstack"),
    ("tensor, split_size_or_sections, dim=0",
     "split(tensor, split_size_or_sections, dim)",
     "split"),
    ("input, chunks, dim=0", "ops.chunk(input, chunks, dim)", "chunk"),
    ("input, dim=0", "ops.unbind(input, dim)", "unbind"),
    ("input, repeats, dim=None", "repeat(input, repeats, dim)", "repeat_interleave"),
    ("*tensors, indexing='ij'", "ops.meshgrid(*tensors, indexing=indexing)", "meshgrid"),
    ("input, diagonal=0", "ops.{}(input, diagonal)", "tril triu"),
    ("input, diagonal=0", "diagonal_or_matrix(input, diagonal)", "diag"),
    ("input", "input.copy()", "clone"),
    ("input", "input.item()", "item"),
    # Making
    ("*size, dtype=None", "ops.{}(sizes(size), dtype)", "zeros ones"),
    ("*size, dtype=None, device=None", "ops.zeros(sizes(size), dtype)", "empty"),
    ("input, *, dtype=None", "ops.{}(input, dtype=dtype)", "zeros_like ones_like"),
    ("input, *, dtype=None, device=None", "ops.zeros_like(input, dtype=dtype)", "empty_like"),
    ("size, fill_value, *, dtype=None", "filled(size, fill_value, dtype)", "full"),
    ("input, fill_value, *, dtype=None",
     "ops.full_like(input, fill_value, dtype=dtype)",
     "full_like"),
    ("n, m=None, dtype=None", "ops.eye(n, m, dtype)", "eye"),
    ("start=0, end=None, step=1, *, dtype=None",
     "ops.arange(start, end, step, dtype=dtype)",
     "arange"),
    ("start, end, steps, *, dtype=None",
     "typed(ops.linspace(start, end, steps), dtype)",
     "linspace"),
    ("*size, generator=None, dtype=None, device=None",
     "ops.{}(*sizes(size), dtype=dtype)",
     "rand randn"),
    ("input, *, dtype=None, device=None", "ops.{}(input, dtype=dtype)", "rand_like randn_like"),
    ("n, *, generator=None, dtype=_core.int64", "ops.randperm(n, dtype=dtype)", "randperm"),
    ("input, num_samples, replacement=False, *, generator=None",
     "ops.cast(ops.multinomial(input, num_samples, replacement), _core.int64)", "multinomial"),
    # Elements
    ("input, dim, index", "ops.{}(input, dim, index)", "gather=gather_elements"),
    ("input, dim, index", "ops.index_select(input, dim, index)", "index_select"),
    ("input, dim, index, src", "ops.scatter(input, dim, index, src)", "scatter"),
    ("input, dim, index, src",
     "ops.tensor_scatter_elements(input, index, src, dim, 'add')",
     "scatter_add"),
    ("input, dim, index, source, *, alpha=1",
     "ops.index_add(input, index, scaled(source, alpha), dim)",
     "index_add"),
    ("input, mask", "ops.masked_select(input, mask)", "masked_select"),
    ("input, *, as_tuple=False", "ops.nonzero(input, as_tuple=as_tuple)", "nonzero"),
    ("input, index", "ops.take(input, index)", "take"),
    ("input, dim=-1, descending=False, stable=False",
     "ops.argsort(input, dim, descending)",
     "argsort"),
    ("input, *, dim=-1, descending=False, stable=False",
     "ops.sort(input, dim, descending)",
     "sort"),
    ("input, k, dim=-1, largest=True, sorted=True",
     "ops.topk(input, k, dim, largest, sorted)",
     "topk"),
    ("sorted_sequence, values, *, out_int32=False, right=False, side=None, sorter=None",
     "ops.searchsorted(sorted_sequence, values, out_int32=out_int32, right=right, side=side, "
     "sorter=sorter)",
     "searchsorted"),
    ("input, return_inverse=False, return_counts=False, dim=None",
     "ops.unique_consecutive(input, return_inverse, return_counts, dim)", "unique_consecutive"),
    # Products
    ("input, mat2", "ops.{}(input, mat2)", "bmm mm"),
    ("input, vec", "ops.mv(input, vec)", "mv"),
    ("input, vec2", "ops.outer(input, vec2)", "outer"),
    ("input, other", "ops.reduce_sum(ops.mul(input, other))", "vdot"),
    ("input, other, dim=None", "ops.cross(input, other, dim)", "cross"),
    ("equation, *operands", "ops.einsum(equation, *operands)", "einsum"),
    ("input, mat1, mat2, *, beta=1, alpha=1",
     "ops.addmm(input, mat1, mat2, beta=beta, alpha=alpha)",
     "addmm"),
    ("input, batch1, batch2, *, beta=1, alpha=1",
     "ops.{}(input, batch1, batch2, beta=beta, alpha=alpha)",
     "addbmm baddbmm"),
    ("input, mat, vec, *, beta=1, alpha=1",
     "ops.addmv(input, mat, vec, beta=beta, alpha=alpha)",
     "addmv"),
)  # fmt: skip

FORMS = Forms("gradcell.mint", ROWS, globals())

LINALG = Forms(
    "gradcell.mint.linalg",
    (
        ("input", "ops.inverse(input)", "inv"),
        ("A, mode='reduced'", "ops.qr(A, mode)", "qr"),
        ("A, ord=None, dim=None, keepdim=False, *, dtype=None",
         "ops.norm(A, ord, dim, keepdim, dtype=dtype)",
         "norm"),
        ("A, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None",
         "ops.norm(A, ord, dim, keepdim, dtype=dtype)", "matrix_norm"),
        ("x, ord=2, dim=None, keepdim=False, *, dtype=None",
         "ops.vector_norm(x, ord, dim, keepdim, dtype=dtype)", "vector_norm"),
    ),
    globals(),
)  # fmt: skip

SPECIAL = Forms(
    "gradcell.mint.special",
    (
        ("input", "ops.{}(input)", "erfc exp2 expm1 log1p sinc"),
        ("input, *, decimals=0", "ops.round(input, decimals=decimals)", "round"),
        (
            "input, dim=None, *, dtype=None",
            "ops.log_softmax(typed(input, dtype), dim)",
            "log_softmax",
        ),
    ),
    globals(),
)
