"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, to_dtype
from gradcell.ops.decorators import in_float32, method, one_plan, spelled
from gradcell.ops.elements import complex_numbers
from gradcell.ops.elements.complex_numbers import size_of
from gradcell.ops.reductions import reductions

__all__ = ["cosine_similarity", "norm", "renorm", "vector_norm"]


@in_float32
def _vector_norm(x: Tensor, order: float, axes: Any, keepdim: bool) -> Tensor:
    if x.dtype.is_complex:  # of the absolute values, and complex as MindSpore's is
        return _ops.cast(_vector_norm(size_of(x), order, axes, keepdim), x.dtype)
    if order == 2:
        return reductions.length(_ops.reduce_sum(_ops.square(x), axes, keepdim))
    if order == 1:
        return _ops.reduce_sum(_ops.abs(x), axes, keepdim)
    if order == math.inf:
        axes = arguments.axes_of(axes, x.ndim, "norm")
        return reductions.largest(_ops.abs(x), axes, keepdim)
    if order == -math.inf:
        return _ops.reduce_min(_ops.abs(x), axes, keepdim)
    if order == 0:
        return _ops.cast(_ops.reduce_sum(_ops.not_equal(x, 0), axes, keepdim), x.dtype)
    if order % 2 == 0:
        powers = _ops.pow(x, float(order))
    else:  # at 0 a kink, where derivatives are taken to be 0
        zero = _ops.equal(x, 0)
        powers = _ops.pow(_ops.where(zero, 1, _ops.abs(x)), float(order))
        powers = _ops.where(zero, 0.0 if order > 0 else math.inf, powers)
    return reductions.length(_ops.reduce_sum(powers, axes, keepdim), float(order))


@in_float32
def _matrix_norm(x: Tensor, order: Any, axes: list[int], keepdim: bool) -> Tensor:
    if order == "fro":
        return _vector_norm(x, 2, axes, keepdim)
    if order in (2, -2, "nuc"):
        return _spectral_norm(x, order, axes, keepdim)
    along = {1: axes[0], -1: axes[0], math.inf: axes[1], -math.inf: axes[1]}.get(order)
    if along is None:
        bad_value(f"norm: order {order!r} of a matrix is not supported")
    if x.dtype.is_complex:
        return _ops.cast(_matrix_norm(size_of(x), order, axes, keepdim), x.dtype)
    sums = _ops.reduce_sum(_ops.abs(x), [along], True)
    y = (reductions.largest if order > 0 else _ops.reduce_min)(sums, axes, True)
    if keepdim:
        return y
    return _ops.reshape(y, [n for i, n in enumerate(x.shape) if i not in axes])


def _spectral_norm(x: Tensor, order: Any, axes: list[int], keepdim: bool) -> Tensor:
    """The largest singular value, for order 2; the smallest, -2; their sum, 'nuc'."""
    from gradcell.ops.matrices import factorisations

    rest = [i for i in range(x.ndim) if i not in axes]
    values = factorisations.svd(_core.views.transpose(x, [*rest, *axes]), compute_uv=False)
    values = complex_numbers.real(values)
    reduce: Any = {2: reductions.largest, -2: _ops.reduce_min, "nuc": _ops.reduce_sum}[order]
    y = reduce(values, [values.ndim - 1], False)
    y = _ops.cast(y, x.dtype) if x.dtype.is_complex else y
    return _ops.reshape(y, [1 if i in axes else n for i, n in enumerate(x.shape)]) if keepdim else y


@method(one_plan)
def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of vectors or matrices.

    ord None: the 2-norm over all of dim. A number: the vector norm (sum |x|^ord)^(1/ord) over one
    dim (or, without dim, of a 1-D tensor), inf, -inf and 0 as usual. Over two dims, of matrices:
    'fro', 1, -1 (columns' sums), inf, -inf (rows' sums), 2, -2 (the largest and smallest singular
    value), 'nuc' (their sum). At zero, where a norm has no derivative, 0 is taken for it; for 2, -2
    and 'nuc' of matrices a subgradient.

    Raises ValueError for an order that does not exist for that many dims, TypeError for one that is
    not a number.
    """
    x = arguments.floating(arguments.tensor(A, "norm"))
    if ord is not None and not isinstance(ord, str):  # a tensor could be differentiated
        ord = arguments.number(ord, "norm", "ord")
    if dtype is not None:
        x = _ops.cast(x, to_dtype(dtype))
    if dim is None and (ord is None or x.ndim not in (1, 2)):
        if ord not in (None, 2):
            bad_value(f"norm: ord {ord!r} needs dim for a tensor of {x.ndim} dimensions")
        return _vector_norm(x, 2, list(range(x.ndim)), keepdim)
    axes = arguments.axes_of(dim, x.ndim, "norm", "dim")
    if ord is None:
        return _vector_norm(x, 2, axes, keepdim)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdim)
    if isinstance(ord, str) or len(axes) > 2:
        bad_value(f"norm: ord {ord!r} is not supported over {len(axes)} dimensions")
    return _vector_norm(x, ord, axes, keepdim)


@spelled()
@one_plan
def vector_norm(
    x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm (sum |x|^ord)^(1/ord) of all elements over axis (all of them for None); inf, -inf and 0
    as usual."""
    t = arguments.floating(arguments.tensor(x, "vector_norm", "x"))
    t = t if dtype is None else _ops.cast(t, to_dtype(dtype))
    axes = arguments.axes_of(axis, t.ndim, "vector_norm")
    return _vector_norm(t, arguments.option(ord, "vector_norm", "ord"), axes, keepdims)


@method()
def renorm(input: Any, p: float, axis: int, maxnorm: float) -> Tensor:
    """input, with the slices along axis whose p-norm is above maxnorm scaled down to it.

    maxnorm: the largest norm that is left as it is, positive. Raises ValueError for a p or maxnorm
    that is not positive.
    """
    x = arguments.floating(arguments.tensor(input, "renorm"))
    order = arguments.number(p, "renorm", "p", above=0)
    limit = arguments.number(maxnorm, "renorm", "maxnorm", above=0)
    at = arguments.axis_of(axis, x.ndim, "renorm")
    size = vector_norm(x, order, [i for i in range(x.ndim) if i != at], True)
    above = _ops.greater(size, limit)
    return _ops.mul(x, _ops.where(above, _ops.div(limit, _ops.where(above, size, 1.0)), 1.0))


@one_plan
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along dim: their product over that of their lengths.

    x1, x2: tensors, which broadcast. eps: the least that is divided by.
    """
    a, b = (
        arguments.floating(arguments.tensor(t, "cosine_similarity", n))
        for t, n in ((x1, "x1"), (x2, "x2"))
    )
    axis = arguments.axis_of(dim, max(a.ndim, b.ndim), "cosine_similarity", "dim")
    lengths = _ops.mul(vector_norm(a, 2, axis, True), vector_norm(b, 2, axis, True))
    cosine = _ops.div(_ops.mul(a, b), _ops.maximum(lengths, eps))
    return _ops.reduce_sum(cosine, axis)
