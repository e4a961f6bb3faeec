"""Normalisation."""

from __future__ import annotations

from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.location import where
from gradcell.ops.one_plan import one_plan

__all__ = ["layer_norm"]

_ops = _core.ops


def _normalized(x: Tensor, axes: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """((x - mean) / sqrt(variance + eps), the mean, the variance), over axes, which are kept.

    Half types are computed in float32.
    """
    if x.dtype.is_narrow_float:
        return tuple(  # type: ignore[return-value]
            _ops.cast(y, x.dtype) for y in _normalized(_ops.cast(x, _core.float32), axes, eps)
        )
    mean = _ops.mean(x, axes, True)
    centred = _ops.sub(x, mean)
    variance = _ops.mean(_ops.square(centred), axes, True)
    return _ops.mul(centred, _ops.rsqrt(_ops.add(variance, eps))), mean, variance


@one_plan
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05
) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions, then times weight, plus bias.

    normalized_shape: the sizes of those dimensions, which are also weight's and bias's shape; an
    integer for the last one alone. Raises ValueError if they are not input's. Ba, Kiros and Hinton,
    "Layer normalization" (2016), equation 4.
    """
    x = arguments.floating(arguments.tensor(input, "LayerNorm"))
    dims = arguments.integers(normalized_shape, "LayerNorm", "normalized_shape")
    if not dims or list(x.shape[-len(dims) :]) != dims:
        raise ValueError(
            f"LayerNorm: normalized_shape {dims} is not the end of the input's shape "
            f"{list(x.shape)}{where()}"
        )
    y = _normalized(x, list(range(x.ndim - len(dims), x.ndim)), eps)[0]
    y = y if weight is None else _ops.mul(y, weight)
    return y if bias is None else _ops.add(y, bias)
