"""Convolutions of any number of dimensions, and transposed ones: what is said to the core's op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value
from gradcell.ops.decorators import one_plan
from gradcell.ops.networks import windows

__all__ = ["conv1d", "conv2d", "conv3d"]


def convolve(
    x: Tensor, weight: Tensor, bias: Any, axes: Sequence[windows.Axis], groups: int
) -> Tensor:
    """(N, C, ...) times (O, C / groups, ...): (N, O, ...), cross-correlated; bias None or (O,)."""
    sizes = [a.number for a in axes]
    out = _ops.convolution(x, weight, *windows.steps(axes), sizes, groups)
    return _with_bias(out, bias)


def convolve_back(
    x: Tensor, weight: Tensor, bias: Any, axes: Sequence[windows.Axis], groups: int
) -> Tensor:
    """The adjoint of `convolve` in its input: (N, C, ...) and (C, O / groups, ...) to (N, O, ...).

    axes: of the convolution whose adjoint this is, so that `size` is the result's and `number` x's.
    """
    sizes = [a.size for a in axes]
    out = _ops.convolution_input(x, weight, *windows.steps(axes), sizes, groups)
    return _with_bias(out, bias)


def _with_bias(out: Tensor, bias: Any) -> Tensor:
    if bias is None:
        return out
    outputs = out.shape[1]
    bias = arguments.of_shape(bias, [outputs], "conv", "bias", "the outputs'")
    return _ops.add(out, _ops.reshape(bias, [outputs] + [1] * (out.ndim - 2)))


def _check(owner: str, x: Any, weight: Any, rank: int, groups: int) -> None:
    for name, value in (("input", x), ("weight", weight)):
        arguments.tensor(value, owner, name)
        if value.ndim != rank + 2:
            bad_value(
                f"For '{owner}', the {name} must have {rank + 2} dimensions, but got shape "
                f"{list(value.shape)}."
            )
    if arguments.integer(groups, owner, "groups") < 1 or weight.shape[0] % groups:
        bad_value(
            f"For '{owner}', 'groups' must be positive and divide the output channels {weight.shape[0]}, but "
            f"got {groups}."
        )
    if x.shape[1] != weight.shape[1] * groups:
        bad_value(
            f"For '{owner}', the input has {x.shape[1]} channels, but a weight of shape {list(weight.shape)} "
            f"and {groups} groups take {weight.shape[1] * groups}."
        )
    if x.dtype != weight.dtype:
        bad_type(
            f"For '{owner}', the input is {x.dtype} and the weight {weight.dtype}; they must be of one type."
        )


def _function(rank: int) -> Any:
    owner = f"conv{rank}d"

    @one_plan
    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        alone = arguments.tensor(input, owner).ndim == rank + 1  # an image without a batch
        if alone:
            input = _ops.reshape(input, [1, *input.shape])
        _check(owner, input, weight, rank, groups)
        arguments.one_of(pad_mode, ("valid", "same", "pad"), owner, "pad_mode")
        around = windows.margins(padding, rank, owner)
        if pad_mode != "pad" and any(map(any, around)):
            bad_value(
                f"For '{owner}', 'padding' must be 0 when 'pad_mode' is {pad_mode!r}, but got {padding}."
            )
        steps = zip(
            input.shape[2:],
            weight.shape[2:],
            windows.sizes(stride, rank, owner, "stride"),
            windows.sizes(dilation, rank, owner, "dilation"),
            around,
            strict=True,
        )
        axes = [windows.axis(owner, n, k, s, d, pad_mode, p) for n, k, s, d, p in steps]
        out = convolve(input, weight, bias, axes, groups)
        return _ops.reshape(out, list(out.shape[1:])) if alone else out

    function.__name__ = function.__qualname__ = owner
    function.__doc__ = f"""A convolution (cross-correlation) over the last {windows.DIMENSIONS[rank]}.

    input (N, C, ...) or (C, ...), weight (O, C / groups, ...), bias None or (O,), of one floating dtype;
    result (N, O, ...) or (O, ...). stride, dilation: an int, or one for each dimension. pad_mode: 'same'
    (output ceil(size / stride)), 'valid' or 'pad', with `padding` an int, one for each dimension, or
    (before, after) of each.

    Raises TypeError for dtypes that differ, ValueError for incompatible shapes.
    """
    return function


conv1d: Callable[..., Tensor]
conv2d: Callable[..., Tensor]
conv3d: Callable[..., Tensor]
conv1d, conv2d, conv3d = (_function(rank) for rank in (1, 2, 3))
