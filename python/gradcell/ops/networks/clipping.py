"""Gradients of a limited norm."""

from __future__ import annotations

import functools
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.errors import fail
from gradcell.ops.matrices.norms import norm
from gradcell.ops.one_plan import one_plan
from gradcell.ops.reductions.reductions import length

__all__ = ["clip_by_global_norm", "clip_by_norm"]

_ops = _core.ops


@one_plan
def clip_by_global_norm(x: Any, clip_norm: Any = 1.0, use_norm: Any = None) -> Any:
    """All tensors of a tuple or list, scaled together so that their joint 2-norm is at most
    clip_norm.

    x * clip_norm / max(norm, clip_norm), each in its own dtype; a tuple, or a tensor for a tensor.
    use_norm: taken for the norm. x: a tuple or list of tensors, or one tensor. Raises ValueError
    unless clip_norm is positive, TypeError for anything but tensors. Pascanu et al., "On the
    difficulty of training recurrent neural networks" (ICML 2013), algorithm 1.
    """
    if not isinstance(clip_norm, Tensor):
        arguments.number(clip_norm, "clip_by_global_norm", "clip_norm", above=0)
    xs = [x] if isinstance(x, Tensor) else arguments.tensors(x, "clip_by_global_norm", "x")
    if not xs:
        return ()
    total = (
        use_norm
        if use_norm is None
        else arguments.operand(use_norm, "clip_by_global_norm", "use_norm", arguments.single(xs[0]))
    )
    if total is None:
        squares = [_ops.reduce_sum(_ops.square(arguments.single(v))) for v in xs]
        total = length(functools.reduce(_ops.add, squares))
    scale = _ops.div(clip_norm, _ops.maximum(total, clip_norm))
    out = tuple(_ops.cast(_ops.mul(arguments.single(v), scale), v.dtype) for v in xs)
    return out[0] if isinstance(x, Tensor) else out


def _length(x: Tensor, order: float) -> Tensor:
    """The norm of a vector, with derivative 0 at 0."""
    if order == 2:
        return length(_ops.reduce_sum(_ops.square(x)))
    zero = (
        _ops.equal(_ops.reduce_max(_ops.abs(x)), 0) if x.size else _ops.full([], True, _core.bool)
    )
    return _ops.where(zero, 0, norm(_ops.where(zero, 1, x), order, 0))


@one_plan
def clip_by_norm(
    x: Any, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    """The tensors of a tuple or list (or one tensor), scaled together so that their joint norm is
    at most max_norm: x * min(max_norm / (norm + 1e-6), 1).

    x: a tensor, or a tuple or list of them. error_if_nonfinite: whether a norm that is infinite or
    NaN is an error. Raises RuntimeError, with error_if_nonfinite, if the norm is infinite or NaN.
    """
    xs = [x] if isinstance(x, Tensor) else arguments.tensors(x, "clip_by_norm", "x")
    norms = [_length(_ops.reshape(arguments.single(v), [v.size]), norm_type) for v in xs]
    total = _length(_ops.concat([_ops.reshape(n, [1]) for n in norms], 0), norm_type)
    if error_if_nonfinite and not bool(_ops.isfinite(total)):
        fail(f"clip_by_norm: the norm of order {norm_type} is not finite")
    scale = _ops.minimum(_ops.div(max_norm, _ops.add(total, 1e-6)), 1.0)
    out = [_ops.cast(_ops.mul(arguments.single(v), scale), v.dtype) for v in xs]
    return out[0] if isinstance(x, Tensor) else tuple(out)
