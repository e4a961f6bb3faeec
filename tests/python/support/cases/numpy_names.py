"""NumPy under MindSpore's names: the text of a case, evaluated with these, gives what NumPy says it is.

A name that NumPy or SciPy has is theirs; FUNCTIONS has those of other names or parameters. What is in
none of them raises Missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import linalg, special


class Missing(Exception):
    """NumPy and SciPy have no such function."""


class Array(np.ndarray):
    """An array with the methods of tensors."""

    def __getattribute__(self, name: str) -> Any:
        if name in METHODS or not (name.startswith("_") or hasattr(np.ndarray, name)):
            return method(np.ndarray.view(self, np.ndarray), name)
        return super().__getattribute__(name)


#: Methods that arrays have with other parameters.
METHODS = frozenset(
    "max min argmax argmin sort var std sum mean prod cumsum cumprod all any repeat take diagonal trace "
    "round argsort searchsorted flatten clip choose view real imag nonzero fill".split()
)


def method(x: np.ndarray, name: str) -> Any:
    in_place = name.endswith("_")
    f = SPECIAL_METHODS.get(name) or find(name.removesuffix("_"))

    def call(*args: Any, **named: Any) -> Any:
        out = f(x, *args, **named)
        if not in_place:
            return out
        if not np.can_cast(out.dtype, x.dtype, "same_kind"):
            raise TypeError(f"{out.dtype} does not fit {x.dtype}")
        return np.broadcast_to(out, x.shape).astype(x.dtype)

    return called(f)(x) if name in ("mH", "H", "mT") else called(call)


def bare(x: Any) -> Any:
    """Arrays as NumPy has them, and arrays with the methods of tensors as `shown` gives them back."""
    if isinstance(x, (tuple, list)):
        return type(x)(map(bare, x)) if type(x) in (tuple, list) else tuple(map(bare, x))
    return np.ndarray.view(x, np.ndarray) if isinstance(x, Array) else x


def shown(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return tuple(map(shown, x))
    return np.asarray(x).view(Array) if isinstance(x, (np.ndarray, np.generic)) else x


def called(f: Callable[..., Any]) -> Callable[..., Any]:
    def of(*args: Any, **named: Any) -> Any:
        return shown(f(*map(bare, args), **{k: bare(v) for k, v in named.items()}))

    return of


def along(f: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction with the axis under any of its names."""

    def of(x: Any, axis: Any = None, keepdims: Any = False, *rest: Any, **named: Any) -> Any:
        for key in ("dim",):
            axis = named.pop(key, axis)
        for key in ("keepdim", "keep_dims"):
            keepdims = named.pop(key, keepdims)
        if isinstance(keepdims, str) or not isinstance(keepdims, bool):
            raise Missing("other parameters")
        axis = tuple(axis) if isinstance(axis, list) else axis
        return f(x, *rest, axis=axis, keepdims=keepdims, **named)

    return of


def with_places(best: Callable[..., Any], place: Callable[..., Any]) -> Callable[..., Any]:
    """The largest or smallest elements along an axis with their places; alone without an axis."""

    def of(x: Any, dim: Any = None, keepdim: bool = False, axis: Any = None) -> Any:
        dim = axis if dim is None else dim
        if dim is None:
            return best(x)
        return best(x, axis=dim, keepdims=keepdim), place(x, axis=dim, keepdims=keepdim)

    return of


def scanned(step: Any, x: Any, axis: int) -> Any:
    """The largest or smallest so far, and the last place where it was seen."""
    values = step.accumulate(x, axis=axis)
    count = np.arange(x.shape[axis]).reshape(
        [-1 if k == axis % x.ndim else 1 for k in range(x.ndim)]
    )
    places = np.maximum.accumulate(np.where(x == values, count, 0), axis=axis)
    return values, places


def sorts(x: Any, dim: int = -1, descending: bool = False, **_: Any) -> Any:
    dim = _.get("axis", dim)
    at = argsort(x, dim, descending)
    return np.take_along_axis(x, at, dim), at


def argsort(x: Any, axis: int = -1, descending: bool = False, **_: Any) -> Any:
    axis = _.get("dim", axis)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def top(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    at = np.take(argsort(x, dim, largest), range(k), dim)
    return np.take_along_axis(x, at, dim), at


def placed(x: Any, at: Any, values: Any, how: Callable[..., Any]) -> Any:
    x = np.array(x)
    how(x, at, values)
    return x


def assign(x: Any, at: Any, values: Any) -> None:
    x[at] = values


def rows_of(at: Any) -> tuple[Any, ...]:
    return tuple(np.moveaxis(np.asarray(at), -1, 0))


def along_axis(x: Any, axis: int, at: Any) -> tuple[Any, ...]:
    places = list(np.indices(np.shape(at), sparse=True))
    places[axis] = at
    return tuple(places)


def scatter_rows(how: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, at, values: placed(x, rows_of(at), values, how)


def in_axis(x: Any, axis: int, at: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * (axis % max(x.ndim, 1)), at)


def quotient(x: Any, y: Any, rounding_mode: Any = None) -> Any:
    if rounding_mode == "floor":
        return np.floor_divide(x, y)
    if rounding_mode == "trunc":
        return truncated(x, y)
    return np.divide(x, y)


def truncated(x: Any, y: Any) -> Any:
    kind = np.result_type(x, y).kind
    if kind in "iu":
        return (x - np.fmod(x, y)) // y
    return np.trunc(np.divide(x, y))


def segments(how: Any, first: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    def of(x: Any, ids: Any, n: int) -> Any:
        out = np.full((n, *x.shape[ids.ndim :]), first(x.dtype), x.dtype)
        how.at(out, ids, x)
        return out

    return of


def lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def highest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def moments(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis=None, ddof=0, keepdims=False, **n: f(
        x, axis=axis, ddof=ddof, keepdims=n.get("keep_dims", keepdims)
    )


def corrected(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim=None, correction=1, keepdim=False: f(
        x, axis=dim, ddof=correction, keepdims=keepdim
    )


def splits(x: Any, size: Any, axis: int = 0, dim: Any = None) -> Any:
    axis = axis if dim is None else dim
    at = (
        np.cumsum(size[:-1])
        if isinstance(size, (list, tuple))
        else range(size, x.shape[axis], size)
    )
    return np.split(x, at, axis)


def chunks(x: Any, n: int, axis: int = 0) -> Any:
    return splits(x, -(-x.shape[axis] // n), axis)


def unstacked(x: Any, axis: int = 0) -> Any:
    return [y[()] for y in np.moveaxis(x, axis, 0)]


def matrices(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda base, a, b, beta=1, alpha=1: beta * base + alpha * f(a, b)


def permuted(x: Any, *axes: Any) -> Any:
    return np.transpose(x, axes[0] if axes and isinstance(axes[0], (tuple, list)) else axes or None)


def swapped(x: Any, a: int, b: int) -> Any:
    return np.swapaxes(x, a, b)


def tiled(x: Any, *times: Any) -> Any:
    return np.tile(x, times[0] if isinstance(times[0], (tuple, list)) else times)


def floating(x: Any) -> Any:
    """Integers as floats: unsigned ones have no negative numbers."""
    return x * 1.0 if x.dtype.kind in "biu" else x


def softmax(x: Any, axis: int = -1, dim: Any = None) -> Any:
    return special.softmax(floating(x), axis if dim is None else dim)


def log_softmax(x: Any, axis: int = -1, dim: Any = None) -> Any:
    return special.log_softmax(floating(x), axis if dim is None else dim)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-floating(x)))


def crossed(x: Any, y: Any, dim: Any = None, axis: Any = None) -> Any:
    """By default along the first axis of size 3, as MindSpore documents."""
    axis = dim if axis is None else axis
    if axis is None:
        axis = np.broadcast_shapes(x.shape, y.shape).index(3)
    return np.cross(x, y, axis=axis)


def relu(x: Any) -> Any:
    return np.maximum(x, np.zeros((), x.dtype))


def signs(x: Any) -> Any:
    return np.sign(x)


def softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    return np.logaddexp(x * beta, 0) / beta


def elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def transform(f: Callable[..., Any]) -> Callable[..., Any]:
    """A Fourier transform with its axes under the name of dim."""
    word = "axes" if f.__name__[-1] in "2n" else "axis"
    return lambda x, *a, dim=None, **k: f(x, *a, **k, **({} if dim is None else {word: dim}))


def reduced(f: Callable[..., Any]) -> Callable[..., Any]:
    """A primitive that reduces: the second input is the axis."""
    return lambda keep=False: lambda x, axis=None: f(x, axis=axis, keepdims=keep)


def gather(x: Any, at: Any, axis: int) -> Any:
    return np.take(x, at, axis)


def none(*_: Any, **__: Any) -> Any:
    raise Missing


FLOATS = {"float16": np.float16, "float32": np.float32, "float64": np.float64}

#: By the names of ops and mint, in the order of their positional parameters.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        n: along(getattr(np, n))
        for n in (
            "all",
            "any",
            "amax",
            "amin",
            "sum",
            "prod",
            "mean",
            "nansum",
            "nanmean",
            "count_nonzero",
        )
    },
    **{
        f"reduce_{n}": along(getattr(np, n))
        for n in ("all", "any", "max", "min", "sum", "prod", "mean")
    },
    "argmax": along(np.argmax),
    "argmin": along(np.argmin),
    "max": with_places(np.max, np.argmax),
    "min": with_places(np.min, np.argmin),
    "argmax_with_value": lambda x, axis=0, keep_dims=False: (
        np.max(x, axis, keepdims=keep_dims),
        np.argmax(x, axis, keepdims=keep_dims),
    ),
    "argmin_with_value": lambda x, axis=0, keep_dims=False: (
        np.min(x, axis, keepdims=keep_dims),
        np.argmin(x, axis, keepdims=keep_dims),
    ),
    "aminmax": lambda x, axis=0: (np.min(x, axis), np.max(x, axis)),
    "cummax": lambda x, axis: scanned(np.maximum, x, axis),
    "cummin": lambda x, axis: scanned(np.minimum, x, axis),
    "cum_sum": np.cumsum,
    "cum_prod": np.cumprod,
    "logcumsumexp": lambda x, axis: np.logaddexp.accumulate(x, axis),
    "logsumexp": lambda x, axis, keep_dims=False: np.log(
        np.sum(np.exp(x), axis=axis, keepdims=keep_dims)
    ),
    "sort": sorts,
    "argsort": argsort,
    "topk": top,
    "top_k": top,
    "quantile": along(lambda x, *a, axis, keepdims: none()),
    "var": moments(np.var),
    "std": moments(np.std),
    "ptp": np.ptp,
    # Elements
    **{n: getattr(np, "arc" + n[1:]) for n in ("acos", "asin", "atan", "acosh", "asinh", "atanh")},
    "atan2": np.arctan2,
    "neg": np.negative,
    "inv": np.reciprocal,
    **dict.fromkeys(("mT",), np.matrix_transpose),
    "mH": lambda x: np.conj(np.matrix_transpose(x)),
    "H": lambda x: np.conj(np.matrix_transpose(x)),
    "adjoint": lambda x: np.conj(np.matrix_transpose(x)),
    **dict.fromkeys(("eq",), np.equal),
    "equal": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    **{
        f"tensor_{n}": f
        for n, f in {
            "lt": np.less,
            "le": np.less_equal,
            "gt": np.greater,
            "ge": np.greater_equal,
            "add": np.add,
            "sub": np.subtract,
            "mul": np.multiply,
            "div": np.divide,
            "floordiv": np.floor_divide,
            "mod": np.mod,
            "pow": np.power,
            "exp": np.exp,
            "dot": lambda x, y, n: np.tensordot(x, y, n),
        }.items()
    },
    "add": lambda x, y, alpha=None: np.add(x, y if alpha is None else y * alpha),
    "sub": lambda x, y, alpha=None: np.subtract(x, y if alpha is None else y * alpha),
    "mul": np.multiply,
    "div": quotient,
    "divide": quotient,
    "real_div": np.divide,
    "floor_div": np.floor_divide,
    "floor_mod": np.mod,
    "truncate_div": truncated,
    "truncate_mod": np.fmod,
    "remainder": np.remainder,
    "pow": np.power,
    "pows": np.power,
    "div_no_nan": lambda x, y: np.divide(x, y, where=y != 0, out=np.zeros_like(np.divide(x, y))),
    "squared_difference": lambda x, y: np.square(x - y),
    "float_power": np.float_power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "frac": lambda x: x - np.trunc(x),
    "round": lambda x, decimals=0: np.round(x, decimals),
    "sgn": np.sign,
    "sigmoid": sigmoid,
    "logsigmoid": lambda x: -np.logaddexp(0, -floating(x)),
    "relu": relu,
    "relu6": lambda x: np.clip(x, x.dtype.type(0), x.dtype.type(6)),
    "silu": lambda x: x * sigmoid(x),
    "softmax": softmax,
    "softmin": lambda x, axis=-1: softmax(-floating(x), axis),
    "softplus": softplus,
    "elu": elu,
    "tanhshrink": lambda x: x - np.tanh(x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "lerp": lambda x, y, w: x * 1.0 + w * (y * 1.0 - x * 1.0),
    "addcmul": lambda x, a, b, value=1: x + value * a * b,
    "addcdiv": lambda x, a, b, value=1: x + value * a / b,
    "addn": lambda xs: sum(xs[1:], start=xs[0]),
    "add_n": lambda xs: sum(xs[1:], start=xs[0]),
    "clamp": lambda x, min=None, max=None: np.clip(x, min, max),
    "clip_by_value": np.clip,
    "clip": np.clip,
    "log_softmax": log_softmax,
    "square": np.square,
    "cast": lambda x, dtype: np.asarray(x).astype(dtype),
    "type_as": lambda x, y: x.astype(y.dtype),
    "positive": np.positive,
    "conj": np.conj,
    "is_nan": np.isnan,
    "is_inf": np.isinf,
    "is_finite": np.isfinite,
    "complex_abs": np.abs,
    "complex": lambda x, y: x + 1j * y,
    "bessel_j0": special.j0,
    "bessel_j1": special.j1,
    "bessel_y0": special.y0,
    "bessel_y1": special.y1,
    **{
        f"bessel_{n}": getattr(special, n)
        for n in ("i0", "i0e", "i1", "i1e", "k0", "k0e", "k1", "k1e")
    },
    "erfinv": special.erfinv,
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "igammac": special.gammaincc,
    "igamma": special.gammainc,
    "xdivy": lambda x, y: np.where(x == 0, 0, x / y),
    "polar": lambda r, a: r * np.exp(1j * a),
    "zeta": special.zeta,
    "xlogy": special.xlogy,
    "hypot": np.hypot,
    "polygamma": special.polygamma,
    "logit": special.logit,
    "isclose": lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: np.isclose(
        x, y, rtol, atol, equal_nan
    ),
    "allclose": lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: np.allclose(
        x, y, rtol, atol, equal_nan
    ),
    "logical_not": np.logical_not,
    "bitwise_not": np.invert,
    # Places
    "cat": lambda xs, dim=0: np.concatenate(xs, dim),
    "concat": lambda xs, dim=0: np.concatenate(xs, dim),
    "pack": np.stack,
    "stack": lambda xs, dim=0: np.stack(xs, dim),
    "unbind": unstacked,
    "unstack": unstacked,
    "unpack": unstacked,
    "split": splits,
    "chunk": chunks,
    "tensor_split": np.array_split,
    "narrow": lambda x, axis, at, n: np.take(x, range(at, at + n), axis),
    "movedim": np.moveaxis,
    "swapdims": swapped,
    "swapaxes": swapped,
    "t": np.transpose,
    "permute": permuted,
    "numel": np.size,
    "transpose": permuted,
    "flip": np.flip,
    "fliplr": np.fliplr,
    "reverse": np.flip,
    "reverse_v2": np.flip,
    "unsqueeze": np.expand_dims,
    "expand_dims": np.expand_dims,
    "squeeze": lambda x, axis=None: np.squeeze(x, axis),
    "reshape": lambda x, *s: np.reshape(x, s[0] if isinstance(s[0], (tuple, list)) else s),
    "expand": lambda x, *s: np.broadcast_to(x, s[0] if isinstance(s[0], tuple) else s),
    "expand_as": lambda x, y: np.broadcast_to(x, y.shape),
    "view_as": lambda x, y: np.reshape(x, y.shape),
    "reshape_as": lambda x, y: np.reshape(x, y.shape),
    "tile": tiled,
    "tile_method": tiled,
    "flatten": lambda x: np.ravel(x),
    "repeat_interleave": lambda x, n, axis=None, **k: np.repeat(x, n, k.get("dim", axis)),
    "repeat_elements": lambda x, n, axis: np.repeat(x, n, axis),
    "gather": gather,
    "index_select": lambda x, axis, at: np.take(x, at, axis),
    "gather_nd": lambda x, at: x[rows_of(at)],
    "gather_d": lambda x, axis, at: x[along_axis(x, axis, at)],
    "gather_elements": lambda x, axis, at: x[along_axis(x, axis, at)],
    "masked_fill": lambda x, m, v: np.where(m, np.asarray(v).astype(x.dtype), x),
    "masked_select": lambda x, m: x[m],
    "nonzero": np.argwhere,
    "where": np.where,
    "take": lambda x, at: np.take(x, at),
    "scatter": lambda x, axis, at, v: placed(x, along_axis(x, axis, at), v, assign),
    "scatter_add": lambda x, axis, at, v: placed(x, along_axis(x, axis, at), v, np.add.at),
    "index_fill": lambda x, axis, at, v: placed(x, in_axis(x, axis, at), v, assign),
    "tensor_scatter_add": scatter_rows(np.add.at),
    "tensor_scatter_sub": scatter_rows(np.subtract.at),
    "tensor_scatter_mul": scatter_rows(np.multiply.at),
    "tensor_scatter_max": scatter_rows(np.maximum.at),
    "tensor_scatter_min": scatter_rows(np.minimum.at),
    "tensor_scatter_update": scatter_rows(assign),
    "scatter_nd": lambda at, v, shape: placed(np.zeros(shape, v.dtype), rows_of(at), v, np.add.at),
    "unsorted_segment_sum": segments(np.add, lambda d: 0),
    "unsorted_segment_max": segments(np.maximum, lowest),
    "unsorted_segment_min": segments(np.minimum, highest),
    "range": np.arange,
    "real": np.real,
    "imag": np.imag,
    "angle": np.angle,
    "full": np.full,
    "full_like": np.full_like,
    "ones_like": np.ones_like,
    "zeros_like": np.zeros_like,
    "diag": lambda x: np.diag(x.ravel()).reshape(x.shape * 2),
    "diagflat": np.diagflat,
    "row_stack": np.vstack,
    "eye": np.eye,
    # Matrices
    "mm": np.matmul,
    "bmm": np.matmul,
    "batch_mat_mul": np.matmul,
    "mv": np.matmul,
    "ger": np.outer,
    "dot": np.dot,
    "outer": np.outer,
    "addmm": matrices(np.matmul),
    "baddbmm": matrices(np.matmul),
    "addmv": matrices(np.matmul),
    "addr": matrices(np.outer),
    "addbmm": matrices(lambda a, b: np.matmul(a, b).sum(0)),
    "inverse": np.linalg.inv,
    "matrix_inverse": np.linalg.inv,
    "matrix_determinant": np.linalg.det,
    "matrix_power": np.linalg.matrix_power,
    "matrix_exp": linalg.expm,
    "det": np.linalg.det,
    # (Of complex matrices, that of earlier versions is complex by some norms.)
    "cond": lambda x, p=None: np.real(np.linalg.cond(x, p)),
    "slogdet": np.linalg.slogdet,
    "logdet": lambda x: np.log(np.linalg.det(x)),
    "pinv": np.linalg.pinv,
    "matrix_solve": np.linalg.solve,
    "cholesky": lambda x, upper=False: none() if upper else np.linalg.cholesky(x),
    "cross": crossed,
    "vecdot": lambda x, y: np.vecdot(x, y),
    "kron": np.kron,
    "cov": np.cov,
    "inner": np.inner,
    "lcm": np.lcm,
    # Fourier transforms
    **{n: getattr(np.fft, n) for n in ("fftshift", "ifftshift", "fftfreq", "rfftfreq")},
    **{
        n: transform(getattr(np.fft, n))
        for n in (
            "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split()
        )
    },
    **dict.fromkeys(("hfft2", "hfftn", "ihfft2", "ihfftn"), none),
    "identity": lambda x: x,
    "clone": np.copy,
    "trapz": lambda y, x=None, dx=1.0, dim=-1: np.trapezoid(y, x, dx, dim),
    "copy": np.copy,
    "fmod": np.fmod,
    "sometrue": np.any,
    "repeat": tiled,
    "roll": lambda x, n, axis=None, **k: np.roll(x, n, k.get("dims", axis)),
    "vander": np.vander,
    "diff": lambda x, n=1, axis=-1: np.diff(x, n, axis),
    "block_diag": linalg.block_diag,
    "tril": np.tril,
    "triu": np.triu,
    "cumprod": np.cumprod,
    "cumsum": np.cumsum,
    "nan_to_num": np.nan_to_num,
    "rot90": np.rot90,
    "bincount": np.bincount,
}
FUNCTIONS["acos"], FUNCTIONS["asin"], FUNCTIONS["atan"] = np.arccos, np.arcsin, np.arctan

#: Those of mint whose parameters differ.
MINT = {
    "diag": np.diag,
    "var": corrected(np.var),
    "std": corrected(np.std),
    "gather": lambda x, axis, at: x[along_axis(x, axis, at)],
    "transpose": np.swapaxes,
    "median": none,
    "dot": np.dot,
    "norm": none,
    "argmax": along(np.argmax),
    "argmin": along(np.argmin),
    "equal": none,
    "inv": np.linalg.inv,
    "flatten": lambda x: np.ravel(x),
    "roll": lambda x, n, dims=None: np.roll(x, n, dims),
    "select": lambda x, axis, at: np.take(x, at, axis),
    "count_nonzero": along(np.count_nonzero),
    "repeat_interleave": lambda x, n, dim=None: np.repeat(x, n, dim),
    "softplus": softplus,
}
#: Methods whose parameters differ from the function's.
SPECIAL_METHODS: dict[str, Callable[..., Any]] = {
    "gather": lambda x, axis, at: none(),
    "max": along(np.max),
    "min": along(np.min),
    "transpose": permuted,
    "var": moments(np.var),
    "std": moments(np.std),
    "equal": np.equal,
    "inv": np.reciprocal,
    "where": lambda x, m, y: np.where(m, x, y),
    "index_add": none,
    "new_ones": lambda x, s: np.ones(s, x.dtype),
    "new_zeros": lambda x, s: np.zeros(s, x.dtype),
    "new_full": lambda x, s, v: np.full(s, v, x.dtype),
    "select": lambda x, axis, at: np.take(x, at, axis),
    "fill_": lambda x, v: np.full_like(x, v),
    "zero_": np.zeros_like,
    "view": FUNCTIONS["reshape"],
    "fill": none,
    "nonzero": np.argwhere,
    "add_": FUNCTIONS["add"],
    "sub_": FUNCTIONS["sub"],
}


#: Names that NumPy or SciPy has for another function.
UNLIKE = frozenset(
    "nanquantile norm vector_norm matrix_norm select searchsorted pad unique choose meshgrid svd qr median "
    "nanmedian kl_div size save load test matrix_rank info double half long short byte bool "
    "char shape".split()
)


def find(name: str) -> Callable[..., Any]:
    if name in UNLIKE:
        raise Missing(name)
    f = FUNCTIONS.get(name) or getattr(np, name, None) or getattr(special, name, None)
    f = f or getattr(np.linalg, name, None)
    if f is None or not callable(f):
        raise Missing(name)
    return f


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


#: Primitives whose attributes are not what follows the inputs.
PRIMITIVES: dict[str, Callable[..., Any]] = {
    **{
        f"Reduce{n}": reduced(getattr(np, n.lower()))
        for n in ("Sum", "Mean", "Prod", "Max", "Min", "All", "Any")
    },
    "CumSum": lambda: np.cumsum,
    "CumProd": lambda *a: np.cumprod if not a else none(),
    "Split": lambda axis, n: lambda x: np.split(x, n, axis),
    "ArgMaxWithValue": lambda axis=0, keep=False: lambda x: FUNCTIONS["argmax_with_value"](
        x, axis, keep
    )[::-1],
    "ArgMinWithValue": lambda axis=0, keep=False: lambda x: FUNCTIONS["argmin_with_value"](
        x, axis, keep
    )[::-1],
    "Einsum": lambda text: lambda xs: np.einsum(text, *xs),
    "MatMul": lambda transpose_b=False: lambda x, y: np.matmul(
        x, np.swapaxes(y, -1, -2) if transpose_b else y
    ),
    "Transpose": lambda: np.transpose,
    "Softmax": lambda axis=-1: lambda x: softmax(x, axis),
    "Inv": lambda: np.reciprocal,
    "Invert": lambda: np.invert,
    "Sort": lambda axis=-1, descending=False: lambda x: sorts(x, axis, descending),
    "TopK": lambda s=True: top,
    "ReLU": lambda: relu,
    "ReLU6": lambda: FUNCTIONS["relu6"],
    "BesselI0e": lambda: special.i0e,
    "BesselI1e": lambda: special.i1e,
    "BesselK0e": lambda: special.k0e,
    "BesselK1e": lambda: special.k1e,
    "Roll": lambda n, axis: lambda x: np.roll(x, n, axis),
    "LogSoftmax": lambda axis=-1: lambda x: log_softmax(x, axis),
    "Round": lambda: np.round,
    "Identity": lambda: lambda x: x,
    "GatherV2": lambda: gather,
    "Div": lambda: np.divide,
}

#: Primitives that have no function of NumPy's.
UNLIKE_PRIMITIVES = frozenset(
    "Meshgrid MirrorPad Pad Slice Size Rank Fill DType Eps L2Normalize Shape TensorShape Unique GeLU Gelu "
    "Flatten DiagPart".split()
)


class Names:
    """The functions of a namespace."""

    def __init__(self, own: dict[str, Callable[..., Any]] | None = None) -> None:
        self._own = own or {}

    def __getattr__(self, name: str) -> Any:
        if name in self._own:
            own = self._own[name]
            return own if isinstance(own, Names) else called(own)
        if name in PRIMITIVES:
            return lambda *attributes, **named: called(PRIMITIVES[name](*attributes, **named))
        if name in UNLIKE_PRIMITIVES:
            raise Missing(name)
        if name[0].isupper():
            f = called(find(snake(name)))
            return lambda *attributes, **named: lambda *inputs: f(*inputs, *attributes, **named)
        return called(find(name))


class _NumPy:
    """NumPy itself, for gradcell.numpy."""

    def __getattr__(self, name: str) -> Any:
        if name == "fft":
            return np.fft
        f = getattr(np, name, None) or getattr(np.linalg, name, None)
        if f is None:
            raise Missing(name)
        return called(f)


def tensor(value: Any, dtype: Any = None) -> Any:
    """Python's floats are float32, as in a tensor."""
    if dtype is None and not isinstance(value, np.ndarray):
        dtype = np.float32 if np.asarray(value).dtype == np.float64 else None
    return np.array(value, dtype).view(Array)


def package() -> tuple[Any, dict[str, Any]]:
    """(`ms`, the other names) that an expression is evaluated with."""
    mint = Names(MINT)
    mint._own.update(special=Names(), linalg=Names({"inv": np.linalg.inv}))
    names = "int8 int16 int32 int64 uint8 complex64 complex128 bool_ float16 float32 float64"
    dtypes = {n: getattr(np, n) for n in names.split()}
    ms = SimpleNamespace(numpy=_NumPy(), mint=mint, Tensor=tensor, **dtypes)
    return ms, {"ops": Names(), "ms": ms, "np": np, "Tensor": tensor}


NAMES = package()[1]


def evaluate(expression: str, *arrays: Any) -> Any:
    """What NumPy gives for a case. Raises Missing if it has no such functions, and what it raises."""
    if "mint.nn" in expression:
        raise Missing(expression)
    given = [a.view(Array) if isinstance(a, np.ndarray) else a for a in arrays]
    return eval(expression, dict(NAMES))(*given)
