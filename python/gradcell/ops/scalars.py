"""Python's numbers and tuples where MindSpore has ops for them, and small conveniences."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core, arguments, tree
from gradcell._convert import to_dtype
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.ops import indexing, reductions, shaping
from gradcell.ops.one_plan import one_plan

_ops = _core.ops


def tuple_to_array(input_x: Any) -> Tensor:
    """A tuple of numbers as a vector: int32, or float32 if the first is a float."""
    if not isinstance(input_x, (tuple, list)) or not input_x:
        raise TypeError(f"tuple_to_array: a tuple of numbers is needed, got {input_x!r}{where()}")
    dtype = _core.float32 if isinstance(input_x[0], float) else _core.int32
    return Tensor(list(input_x), dtype)


def scalar_to_array(input_x: Any) -> Tensor:
    """A number as a tensor of no dimensions: int64 or float32."""
    return Tensor(input_x)


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A number as Python's number of a dtype's kind."""
    dtype = to_dtype(input_y)
    value = input_x.item() if isinstance(input_x, Tensor) else input_x
    if dtype.is_floating:
        return float(value)
    return bool(value) if dtype == _core.bool else int(value)


def make_range(start: int, limit: int | None = None, delta: int = 1) -> tuple[int, ...]:
    """The integers from start (0) on below limit, delta apart, as a tuple."""
    return tuple(range(start) if limit is None else range(start, limit, delta))


def tuple_len(x: Any) -> int:
    """The number of members."""
    return len(x)


list_len = tuple_len


def tuple_getitem(x: Any, index: Any) -> Any:
    """A member."""
    return x[index]


def tuple_setitem(x: Any, index: int, value: Any) -> tuple[Any, ...]:
    """The tuple with another member."""
    return (*x[:index], value, *x[index:][1:])


def tuple_reversed(x: Any) -> tuple[Any, ...]:
    """The members in reverse order."""
    return tuple(reversed(x))


def make_tuple(*args: Any) -> tuple[Any, ...]:
    """A tuple."""
    return args


def make_list(*args: Any) -> list[Any]:
    """A list."""
    return list(args)


def tensor_shape(x: Any) -> Tensor:
    """The shape as a tensor, int64."""
    return Tensor(np.array(arguments.tensor(x, "TensorShape", "x").shape, np.int64))


def mixed_precision_cast(dst_dtype: Any, x: Any) -> Any:
    """The floating tensors of a tree in another dtype."""
    dtype = to_dtype(dst_dtype)
    return tree.map_leaves(lambda t: _ops.cast(t, dtype) if t.dtype.is_floating else t, x)


def add_flags(fn: Any = None, **flags: Any) -> Any:
    """The function or cell with flags, which get_flags lists."""
    if fn is None:
        return lambda function: add_flags(function, **flags)
    known = {**getattr(fn, "_func_graph_flags", {}), **flags}
    if hasattr(fn, "add_flags"):
        fn.add_flags(**flags)
    else:
        fn._func_graph_flags = known
    return fn


def pows(input: Any, exponent: Any) -> Tensor:
    """input to the power of exponent."""
    return _ops.pow(input, exponent)


def inv(x: Any) -> Tensor:
    """1 / x."""
    return _ops.reciprocal(x)


def reduce_mean(x: Any, axis: Any = ()) -> Tensor:
    """The mean, in the dtype of x."""
    return _ops.mean(x, axis)


def reduce_max(x: Any, axis: Any = ()) -> Tensor:
    """The largest element."""
    return reductions.amax(x, axis)


def reduce_min(x: Any, axis: Any = ()) -> Tensor:
    """The smallest element."""
    return reductions.amin(x, axis)


def eps(x: Any) -> Tensor:
    """The gap between 1 and the next number of x's dtype, in x's shape."""
    t = arguments.tensor(x, "Eps", "x")
    size = {"bfloat16": 2.0**-7}.get(t.dtype.name) or float(np.finfo(t.dtype.name).eps)
    return _ops.full(list(t.shape), size, t.dtype)


def float_status(x: Any) -> Tensor:
    """[1.0] if an element is infinite or NaN, else [0.0]."""
    t = arguments.tensor(x, "FloatStatus", "x")
    bad = reductions.any(_ops.logical_not(_ops.isfinite(t)))
    return _ops.reshape(_ops.cast(bad, _core.float32), [1])


def approximate_equal(x: Any, y: Any, tolerance: float = 1e-05) -> Tensor:
    """Whether |x - y| is below tolerance."""
    return _ops.less(_ops.abs(_ops.sub(x, y)), tolerance)


def isreal(input: Any) -> Tensor:
    """True everywhere: all tensors are real."""
    return _ops.full(list(arguments.tensor(input, "isreal").shape), True, _core.bool)


def is_complex(input: Any) -> bool:
    """False: all tensors are real."""
    arguments.tensor(input, "is_complex")
    return False


def is_floating_point(input: Any) -> bool:
    """Whether the dtype is floating."""
    return arguments.tensor(input, "is_floating_point").dtype.is_floating


def real(input: Any) -> Tensor:
    """The real part: the tensor itself."""
    return arguments.tensor(input, "real")


def imag(input: Any) -> Tensor:
    """The imaginary part: zeros."""
    x = arguments.tensor(input, "imag")
    return _ops.full(list(x.shape), 0, x.dtype)


conj = real


@one_plan
def batch_dot(x1: Any, x2: Any, axes: Any = None) -> Tensor:
    """Sums of products along one dimension of each, matrix by matrix of a batch.

    axes: an integer for both, or one for each; by default x1's last and x2's last but one (its last, if
    it has two dimensions). Raises ValueError if the sizes differ.
    """
    a, b = arguments.tensor(x1, "batch_dot", "x1"), arguments.tensor(x2, "batch_dot", "x2")
    if axes is None:
        axes = (a.ndim - 1, max(b.ndim - 2, 1))
    i, j = (axes, axes) if isinstance(axes, int) else axes
    i, j = i % a.ndim, j % b.ndim
    if (
        a.ndim < 2
        or b.ndim < 2
        or 0 in (i, j)
        or a.shape[i] != b.shape[j]
        or a.shape[0] != b.shape[0]
    ):
        raise ValueError(
            f"batch_dot: axes {axes} do not fit shapes {list(a.shape)} and {list(b.shape)}{where()}"
        )
    left, right = shaping.movedim(a, i, -1), shaping.movedim(b, j, 1)
    n, k = left.shape[0], left.shape[-1]
    rest_a, rest_b = list(left.shape[1:-1]), list(right.shape[2:])
    product = _ops.matmul(_ops.reshape(left, [n, -1, k]), _ops.reshape(right, [n, k, -1]))
    dims = [n, *rest_a, *rest_b]
    return _ops.reshape(product, dims if len(dims) > 1 else [n, 1])


def sequence_mask(lengths: Any, maxlen: Any = None) -> Tensor:
    """For each length, that many times True, then False, up to maxlen (the largest length)."""
    x = arguments.tensor(lengths, "sequence_mask", "lengths")
    largest = int(x.asnumpy().max(initial=0)) if maxlen is None else maxlen
    count = arguments.integer(largest, "sequence_mask", "maxlen")
    return _ops.less(_ops.iota([count], _core.int64, 0), _ops.reshape(x, [*x.shape, 1]))


@one_plan
def reverse_sequence(x: Any, seq_lengths: Any, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """The first seq_lengths[b] elements along seq_dim in reverse order, for each b along batch_dim."""
    t = arguments.tensor(x, "ReverseSequence", "x")
    s, b = (
        arguments.axis_of(d, t.ndim, "ReverseSequence", "seq_dim") for d in (seq_dim, batch_dim)
    )
    lengths = arguments.tensor(seq_lengths, "ReverseSequence", "seq_lengths")
    shape = [1] * t.ndim
    shape[b] = t.shape[b]
    length = _ops.reshape(_ops.cast(lengths, _core.int64), shape)
    place = _ops.iota(list(t.shape), _core.int64, s)
    index = _ops.where(_ops.less(place, length), _ops.sub(_ops.sub(length, 1), place), place)
    return indexing.gather_elements(t, s, index)


@one_plan
def mirror_pad(input_x: Any, paddings: Any, mode: str = "REFLECT") -> Tensor:
    """Mirrored at both ends of each dimension: 'REFLECT' without the edge, 'SYMMETRIC' with it.

    paddings: [rank, 2], before and after.
    """
    t = arguments.tensor(input_x, "MirrorPad", "input_x")
    arguments.one_of(mode, ("REFLECT", "SYMMETRIC"), "MirrorPad", "mode")
    pairs = paddings.tolist() if isinstance(paddings, Tensor) else paddings
    for a, (before, after) in enumerate(pairs):
        index = np.pad(np.arange(t.shape[a]), (before, after), mode.lower())  # type: ignore[call-overload]
        t = _ops.gather(t, Tensor(index), a)
    return t


@one_plan
def lrn(
    x: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> Tensor:  # fmt: skip
    """x over (bias + alpha times the sum of squares of the channels within depth_radius)^beta
    (Krizhevsky et al. 2012, section 3.3); x [n, c, h, w]."""
    t = arguments.of_rank(x, (4,), "LRN")
    c = t.shape[1]
    near = np.abs(np.arange(c)[:, None] - np.arange(c)) <= depth_radius
    squares = _ops.reshape(_ops.square(t), [t.shape[0], c, -1])
    total = _ops.matmul(Tensor(near.astype(np.float32), t.dtype), squares)
    scale = _ops.add(_ops.mul(_ops.reshape(total, list(t.shape)), alpha), bias)
    return _ops.mul(t, _ops.pow(scale, -beta))
