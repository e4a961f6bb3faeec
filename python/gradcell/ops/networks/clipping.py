"""Gradients of a limited norm."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, overload

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, fail
from gradcell.ops.decorators import one_plan
from gradcell.ops.matrices.norms import norm
from gradcell.ops.reductions.reductions import length

__all__ = ["clip_by_global_norm", "clip_by_norm"]


@one_plan
def clip_by_global_norm(x: Any, clip_norm: Any = 1.0, use_norm: Any = None) -> Any:
    """All tensors of a tuple or list, scaled together so that their joint 2-norm is at most
    clip_norm.

    x * clip_norm / max(norm, clip_norm), each in its own dtype (integers in float32);
    a tuple, or a tensor for a tensor.
    use_norm: taken for the norm. x: a tuple or list of tensors, or one tensor. Raises ValueError
    unless clip_norm is positive, TypeError for anything but tensors. Pascanu et al., "On the
    difficulty of training recurrent neural networks" (ICML 2013), algorithm 1.
    """
    if not isinstance(clip_norm, Tensor):
        arguments.number(clip_norm, "clip_by_global_norm", "clip_norm", above=0)
    given = [x] if isinstance(x, Tensor) else arguments.tensors(x, "clip_by_global_norm", "x")
    xs = [arguments.floating(v) for v in given]
    if not xs:
        return ()
    total = (
        use_norm
        if use_norm is None
        else arguments.operand(use_norm, "clip_by_global_norm", "use_norm", arguments.single(xs[0]))
    )
    if total is None:
        total, unit = _joint_length([arguments.single(v) for v in xs])
    else:
        unit = _ops.full([], 1.0, total.dtype)
    scale = _ops.div(clip_norm, _ops.maximum(total, _ops.mul(unit, clip_norm)))
    out = tuple(
        _ops.cast(_ops.mul(_ops.mul(arguments.single(v), unit), scale), v.dtype) for v in xs
    )
    return out[0] if isinstance(x, Tensor) else out


def _joint_length(xs: list[Tensor]) -> tuple[Tensor, Tensor]:
    """(the 2-norm of all elements times unit, unit): 1, or a power of two where the norm is beyond the
    dtype, or squares would be."""

    def total(parts: list[Tensor]) -> Tensor:
        squares = [_ops.reduce_sum(_ops.square(x)) for x in parts]
        return length(functools.reduce(_ops.add, squares))

    double = _core.float64
    dtype = double if any(x.dtype == double for x in xs) else _core.float32
    if dtype == double:
        low = 2.0**-600
        whole = total(xs)
        fits = _ops.isfinite(whole)
        scaled = _ops.where(fits, whole, total([_ops.mul(_ops.cast(x, dtype), low) for x in xs]))
    else:
        low = 2.0**-70
        whole = total([_ops.cast(x, double) for x in xs])
        fits = _ops.less(whole, 2.0**100)
        scaled = _ops.cast(_ops.where(fits, whole, _ops.mul(whole, low)), dtype)
    return scaled, _ops.where(fits, _ops.full([], 1.0, dtype), low)


def _length(x: Tensor, order: float) -> Tensor:
    """The norm of a vector, with derivative 0 at 0."""
    zero = (
        _ops.equal(_ops.reduce_max(_ops.abs(x)), 0) if x.size else _ops.full([], True, _core.bool)
    )
    return _ops.where(zero, 0, norm(_ops.where(zero, 1, x), order, 0))


@overload
def clip_by_norm(
    x: Tensor, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor: ...
@overload
def clip_by_norm(
    x: Sequence[Tensor], max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> tuple[Tensor, ...]: ...
@one_plan
def clip_by_norm(
    x: Any, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    """The tensors of a tuple or list (or one tensor), scaled together so that their joint norm is
    at most max_norm: x * min(max_norm / (norm + 1e-6), 1).

    x: a tensor, or a tuple or list of them. error_if_nonfinite: whether a norm that is infinite or
    NaN is an error. norm_type: the power of the norm. Raises RuntimeError, with error_if_nonfinite,
    if the norm is infinite or NaN, ValueError for no tensors.
    """
    given = [x] if isinstance(x, Tensor) else arguments.tensors(x, "clip_by_norm", "x")
    xs = [arguments.floating(v) for v in given]
    if not xs:
        bad_value("clip_by_norm: 'x' is empty, but at least one tensor is needed")
    wide = [arguments.single(v) for v in xs]
    if norm_type == 2:
        total, unit = _joint_length(wide)
    else:
        norms = [_length(_ops.reshape(v, [v.size]), norm_type) for v in wide]
        total = _length(_ops.concat([_ops.reshape(n, [1]) for n in norms], 0), norm_type)
        unit = _ops.full([], 1.0, total.dtype)
    if error_if_nonfinite and not bool(_ops.isfinite(total)):
        fail(f"clip_by_norm: the norm of order {norm_type} is not finite")
    share = _ops.div(max_norm, _ops.add(total, _ops.mul(unit, 1e-6)))
    scale = _ops.minimum(share, _ops.div(1.0, unit))
    out = [
        _ops.cast(_ops.mul(_ops.mul(w, unit), scale), v.dtype)
        for w, v in zip(wide, xs, strict=True)
    ]
    return out[0] if isinstance(x, Tensor) else tuple(out)
