"""mindspore.numpy's functions: (signature, expression, names). name=op: over an op of another name."""

from __future__ import annotations

from typing import Any

from gradcell.base.forms import Forms
from gradcell.numpy import conversion, making, mathematics, shaping
from gradcell.ops.arrays.shaping import diagonal_or_matrix

_FLOAT32 = "dtype=_core.float32"

ROWS = (
    # Elementwise
    ("x, dtype=None", "typed(ops.{}(floating(x)), dtype)",
     "sin cos tan sinh cosh tanh arcsin=asin arccos=acos arctan=atan arcsinh=asinh "
     "arccosh=acosh arctanh=atanh exp expm1 log log2 log10 log1p sqrt reciprocal ceil floor "
     "exp2 cbrt deg2rad rad2deg radians=deg2rad rint=round"),
    ("x, dtype=None", "typed(ops.{}(tensor(x)), dtype)",
     "abs absolute=abs fabs=abs square sign trunc isnan isinf isfinite signbit "
     "invert=bitwise_not bitwise_not"),
    ("a, dtype=None", "typed(ops.{}(tensor(a)), dtype)", "negative=neg positive logical_not"),
    ("x1, x2, dtype=None", "typed(ops.{}(*pair(x1, x2)), dtype)",
     "add subtract=sub multiply=mul divide=div true_divide=div power=pow mod remainder=mod "
     "fmod floor_divide=floor_div maximum minimum arctan2=atan2 hypot logaddexp logaddexp2 "
     "copysign heaviside float_power greater greater_equal less less_equal equal not_equal "
     "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor gcd lcm"),
    ("x1, x2, dtype=None", "typed((ops.floor_div(*pair(x1, x2)), ops.mod(*pair(x1, x2))), dtype)",
     "divmod"),
    ("x", "ops.fix(floating(x))", "fix"),
    ("x", "ops.logical_and(ops.isinf(tensor(x)), ops.less(tensor(x), 0))", "isneginf"),
    ("x", "ops.logical_and(ops.isinf(tensor(x)), ops.greater(tensor(x), 0))", "isposinf"),
    ("a, decimals=0", "ops.round(tensor(a), decimals=decimals)", "around round"),
    ("x, xmin, xmax, dtype=None",
     "typed(ops.clamp(tensor(x), operand(xmin), operand(xmax)), dtype)",
     "clip"),
    ("a, b, rtol=1e-05, atol=1e-08, equal_nan=False",
     "ops.isclose(tensor(a), tensor(b), rtol, atol, equal_nan)",
     "isclose"),
    ("condition, x=None, y=None", "ops.where(operand(condition), operand(x), operand(y))", "where"),
    # Reductions
    ("a, axis=None, keepdims=False, initial=None, where=True",
     "ops.{}(tensor(a), axis, keepdims, initial=initial, where=None if where is True else where)",
     "max=amax amin min=amin amax"),
    ("a, axis=None, dtype=None, keepdims=False, initial=None",
     "total(a, axis, dtype, keepdims, initial)",
     "sum"),
    ("a, axis=None, keepdims=False, dtype=None", "ops.mean(tensor(a), axis, keepdims, dtype=dtype)",
     "mean"),
    ("x, axis=None, ddof=0, keepdims=False", "ops.{}(floating(x), axis, ddof, keepdims)",
     "std var"),
    ("a, axis=None, keepdims=False", "ops.any(tensor(a), axis, keepdims)", "sometrue"),
    ("x, axis=None, keepdims=False",
     "typed(ops.count_nonzero(tensor(x), axis, keepdims), _core.int32)",
     "count_nonzero"),
    ("a, axis=None", "ops.{}(tensor(a), axis)", "argmax argmin"),
    ("a, axis=None, dtype=None", "typed(tensor(a), dtype).cumsum(axis)", "cumsum"),
    ("a, axis=None, dtype=None", "ops.cumprod(*along(a, axis), dtype)", "cumprod"),
    ("a, axis=None, dtype=None", "without_nan(a, dtype).cumsum(axis)", "nancumsum"),
    ("a, axis=None, dtype=None, keepdims=False", "ops.{}(floating(a), axis, keepdims, dtype=dtype)",
     "nansum nanmean"),
    ("a, axis=None, dtype=None, ddof=0, keepdims=False",
     "ops.sqrt(nanvar(a, axis, dtype, ddof, keepdims))",
     "nanstd"),
    ("a, offset=0, axis1=0, axis2=1, dtype=None",
     "typed(ops.trace(tensor(a), offset, axis1, axis2), dtype)",
     "trace"),
    ("y, x=None, dx=1.0, axis=-1", "ops.trapz(floating(y), *optional(x), dx=dx, dim=axis)",
     "trapz"),
    ("a, n=1, axis=-1, prepend=None, append=None",
     "ops.diff(tensor(a), n, axis, *optional(prepend, append))",
     "diff"),
    ("ary, to_end=None, to_begin=None", "joined(to_begin, ops.diff(vector(ary)), to_end)",
     "ediff1d"),
    # Shapes
    ("a, axis", "ops.expand_dims(tensor(a), axis)", "expand_dims"),
    ("a, axis=None", "ops.squeeze(tensor(a), axis)", "squeeze"),
    ("a, axes=None", "tensor(a).transpose(axes) if axes is not None else tensor(a).T", "transpose"),
    ("x, new_shape", "ops.reshape(tensor(x), new_shape)", "reshape"),
    ("x", "vector(x)", "ravel"),
    ("x, axis1, axis2", "ops.swapaxes(tensor(x), axis1, axis2)", "swapaxes"),
    ("a, source, destination", "ops.movedim(tensor(a), source, destination)", "moveaxis"),
    ("x, axis, start=0", "ops.movedim(tensor(x), axis, start - (axis % tensor(x).ndim < start))",
     "rollaxis"),
    ("a, shift, axis=None", "ops.roll(tensor(a), shift, axis)", "roll"),
    ("m, axis=None", "ops.flip(tensor(m), tuple(range(tensor(m).ndim)) if axis is None else axis)",
     "flip"),
    ("m", "ops.flip(tensor(m), 0)", "flipud"),
    ("m", "ops.flip(tensor(m), 1)", "fliplr"),
    ("a, k=1, axes=(0, 1)", "ops.rot90(tensor(a), k, axes)", "rot90"),
    ("a, reps", "ops.tile(tensor(a), (reps,) if isinstance(reps, int) else reps)", "tile"),
    ("a, repeats, axis=None", "ops.repeat_interleave(tensor(a), repeats, axis)", "repeat"),
    ("array, shape", "ops.broadcast_to(tensor(array), shape)", "broadcast_to"),
    ("*args", "ops.broadcast_tensors(*[tensor(x) for x in args])", "broadcast_arrays"),
    ("*arys", "ops.{}(*[tensor(x) for x in arys])", "atleast_1d atleast_2d atleast_3d"),
    ("*xi, sparse=False, indexing='xy'", "_grids([tensor(x) for x in xi], sparse, indexing)",
     "meshgrid"),
    ("arrays, axis=0", "ops.stack([tensor(x) for x in arrays], axis)", "stack"),
    ("tup", "ops.{}([tensor(x) for x in tup])", "vstack hstack dstack column_stack"),
    ("arr, values, axis=None", "concatenate((arr, values), axis)", "append"),
    ("x, indices_or_sections", "split(x, indices_or_sections, 0)", "vsplit"),
    ("x, indices_or_sections",
     "split(x, indices_or_sections, 0 if tensor(x).ndim == 1 else 1)",
     "hsplit"),
    ("x, indices_or_sections", "split(x, indices_or_sections, 2)", "dsplit"),
    ("v, k=0", "diagonal_or_matrix(tensor(v), k)", "diag"),
    ("v, k=0", "diagonal_or_matrix(vector(v), k)", "diagflat"),
    ("a, offset=0, axis1=0, axis2=1", "ops.diagonal(tensor(a), offset, axis1, axis2)", "diagonal"),
    ("m, k=0", "ops.{}(tensor(m), k)", "tril triu"),
    # Making
    ("a, dtype=None", "array(a, dtype, False)", "asarray"),
    ("a, " + _FLOAT32, "array(a, dtype, False)", "asfarray"),
    ("a", "tensor(a).copy()", "copy"),
    ("shape, " + _FLOAT32, "full(shape, 0, dtype)", "zeros empty"),
    ("shape, " + _FLOAT32, "full(shape, 1, dtype)", "ones"),
    ("a, dtype=None, shape=None", "like(a, {}, dtype, shape)", "zeros_like=0 ones_like=1"),
    ("prototype, dtype=None, shape=None", "like(prototype, 0, dtype, shape)", "empty_like"),
    ("a, fill_value, dtype=None, shape=None", "like(a, fill_value, dtype, shape)",
     "full_like"),
    ("N, M=None, k=0, " + _FLOAT32, "eye(N, N if M is None else M, k, dtype)", "eye"),
    ("n, " + _FLOAT32, "ops.eye(n, n, to_dtype(dtype))", "identity"),
    ("N, M=None, k=0, " + _FLOAT32,
     "ops.tril(full((N, N if M is None else M), 1, dtype), k)",
     "tri"),
    ("n, k=0, m=None", "tri_indices(n, m, k, False)", "tril_indices"),
    ("n, k=0, m=None", "tri_indices(n, m, k, True)", "triu_indices"),
    ("arr, k=0", "tri_indices(arr.shape[0], arr.shape[1], k, False)", "tril_indices_from"),
    ("arr, k=0", "tri_indices(arr.shape[0], arr.shape[1], k, True)", "triu_indices_from"),
    ("x, N=None, increasing=False",
     "ops.flip(ops.vander(tensor(x), N), (1,) if increasing else ())",
     "vander"),
    ("M", "window(M, '{}')", "bartlett blackman hamming hanning"),
    ("*shape, " + _FLOAT32, "typed(ops.{}(*shape), dtype)", "rand randn"),
    # Products
    ("a, b", "ops.{}(tensor(a), tensor(b))", "dot inner kron"),
    ("a, b", "ops.outer(vector(a), vector(b))", "outer"),
    ("a, b, axes=2", "ops.tensor_dot(tensor(a), tensor(b), axes)", "tensordot"),
    ("arrays", "ops.multi_dot([tensor(x) for x in arrays])", "multi_dot"),
    ("a, n", "ops.matrix_power(tensor(a), n)", "matrix_power"),
    # Statistics
    ("x, weights=None, minlength=0, length=None",
     "typed(ops.bincount(tensor(x), weights, length or minlength), _core.float32)",
     "bincount"),
    ("a, bins=10, range=None, weights=None", "histogram(a, bins, range, weights)[1]",
     "histogram_bin_edges"),
    ("x, bins, right=False", "ops.bucketize(tensor(x), tensor(bins), right=right)", "digitize"),
    # Elements
    ("a, indices, axis=None, mode='clip'", "ops.take(tensor(a), tensor(indices), axis, mode)",
     "take"),
    ("arr, indices, axis", "ops.gather_elements(*along(arr, axis), tensor(indices))",
     "take_along_axis"),
    ("a", "ops.nonzero(tensor(a))", "argwhere"),
    ("a, v, side='left', sorter=None",
     "ops.searchsorted(tensor(a), operand(v), side=side, sorter=sorter, out_int32=True)",
     "searchsorted"),
    ("x, return_inverse=False",
     "ops.unique(vector(x)) if return_inverse else ops.unique(vector(x))[0]",
     "unique"),
    ("element, test_elements, invert=False", "ops.isin(tensor(element), test_elements, invert)",
     "isin"),
    ("ar1, ar2, invert=False", "ops.isin(vector(ar1), ar2, invert)", "in1d"),
    # Polynomials
    ("a1, a2", "polysum(a1, a2, 1)", "polyadd"),
    ("a1, a2", "polysum(a1, a2, -1)", "polysub"),
    ("a", "str(tensor(a))", "array_str"),
)  # fmt: skip


_NAMES = {
    "diagonal_or_matrix": diagonal_or_matrix,
    **vars(conversion), **vars(making), **vars(shaping), **vars(mathematics), "_grids": making._grids,
}  # fmt: skip
FORMS = Forms("gradcell.numpy", ROWS, _NAMES)

#: Functions that are no rows: the signatures are their own.
OWN = """
apply_along_axis apply_over_axes arange array array_equal array_equiv array_split average choose
concatenate convolve corrcoef correlate cov cross diag_indices full geomspace gradient histogram
histogram2d histogramdd indices interp intersect1d isscalar ix_ linspace logspace matmul mgrid
nanmax nanmin nanvar norm ogrid pad piecewise polyder polyint polymul polyval promote_types ptp
randint ravel_multi_index result_type select setdiff1d size split unravel_index unwrap
""".split()


def own(name: str) -> Any:
    """One of OWN. Raises KeyError for other names."""
    return _NAMES[name]
