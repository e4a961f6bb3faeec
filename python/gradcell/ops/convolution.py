"""Convolutions of any number of dimensions, and their adjoints: the one place of their mathematics.

The windows are laid out as the columns of one matrix, which the weights multiply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.ops import windows
from gradcell.ops.one_plan import one_plan
from gradcell.ops.shaping import split

__all__ = ["conv1d", "conv2d", "conv3d"]

_ops = _core.ops


def convolve(
    x: Tensor, weight: Tensor, bias: Any, axes: Sequence[windows.Axis], groups: int
) -> Tensor:
    """(N, C, ...) times (O, C / groups, ...): (N, O, ...), cross-correlated; bias None or (O,)."""
    # Channels first, so that the windows of all images are columns of one matrix and the weights'
    # gradient is one product too.
    x = windows.pad(x, axes, 0)
    n, channels, *sizes = x.shape
    rank, outputs, count = len(axes), weight.shape[0], math.prod(a.kernel for a in axes)
    features, numbers = channels // groups, [a.number for a in axes]
    x = _ops.reshape(_channels_first(x, rank), [groups, features, n, *sizes])
    parts = windows.taps(x, axes)
    matrix = _ops.concat(parts, 1) if count > 1 else parts[0]
    matrix = _ops.reshape(matrix, [groups, count * features, n * math.prod(numbers)])
    kernel = _by_taps(weight, groups, outputs // groups, features, count)
    product = _ops.reshape(_product(kernel, matrix), [outputs, n, *numbers])
    return _channels_first(_with_bias(product, bias, rank), rank)


def convolve_back(
    x: Tensor, weight: Tensor, bias: Any, axes: Sequence[windows.Axis], groups: int
) -> Tensor:
    """The adjoint of `convolve` in its input: (N, C, ...) and (C, O / groups, ...) to (N, O, ...).

    axes: of the convolution whose adjoint this is, so that `size` is the result's and `number` x's.
    """
    n, channels, *numbers = x.shape
    rank, count = len(axes), math.prod(a.kernel for a in axes)
    outputs, columns = weight.shape[1], n * math.prod(numbers)
    matrix = _ops.reshape(_channels_first(x, rank), [groups, channels // groups, columns])
    kernel = _by_taps(weight, groups, channels // groups, outputs, count)
    product = _product(kernel, matrix, transpose=True)
    product = _ops.reshape(product, [groups, count, outputs, n, *numbers])
    parts = split(product, 1, 1)
    shape = [groups * outputs, n, *numbers]
    out = windows.put_back([_ops.reshape(part, shape) for part in parts], axes)
    return _channels_first(_with_bias(out, bias, rank), rank)


def _channels_first(x: Tensor, rank: int) -> Tensor:
    return _ops.transpose(x, [1, 0, *range(2, rank + 2)])


def _by_taps(weight: Tensor, groups: int, rows: int, features: int, count: int) -> Tensor:
    """The weights as a matrix for each group, a column for each kernel position and feature."""
    kernel = _ops.reshape(weight, [groups, rows, features, count])
    return _ops.reshape(_ops.transpose(kernel, [0, 1, 3, 2]), [groups, rows, count * features])


def _product(kernel: Tensor, matrix: Tensor, transpose: bool = False) -> Tensor:
    if kernel.shape[0] == 1:
        matrix = _ops.reshape(matrix, list(matrix.shape[1:]))
        kernel = _ops.reshape(kernel, list(kernel.shape[1:]))
    return _ops.matmul(kernel, matrix, transpose_a=transpose)


def _with_bias(out: Tensor, bias: Any, rank: int) -> Tensor:
    return out if bias is None else _ops.add(out, _ops.reshape(bias, [-1] + [1] * (rank + 1)))


def _check(owner: str, x: Any, weight: Any, rank: int, groups: int) -> None:
    for name, value in (("input", x), ("weight", weight)):
        arguments.tensor(value, owner, name)
        if value.ndim != rank + 2:
            raise ValueError(
                f"For '{owner}', the {name} must have {rank + 2} dimensions, but got shape "
                f"{list(value.shape)}.{where()}"
            )
    if arguments.integer(groups, owner, "groups") < 1 or weight.shape[0] % groups:
        raise ValueError(
            f"For '{owner}', 'groups' must be positive and divide the output channels "
            f"{weight.shape[0]}, but got {groups}.{where()}"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise ValueError(
            f"For '{owner}', the input has {x.shape[1]} channels, but a weight of shape "
            f"{list(weight.shape)} and {groups} groups take {weight.shape[1] * groups}.{where()}"
        )
    if x.dtype != weight.dtype:
        raise TypeError(
            f"For '{owner}', the input is {x.dtype} and the weight {weight.dtype}; they must be of "
            f"one type.{where()}"
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
        _check(owner, input, weight, rank, groups)
        arguments.one_of(pad_mode, ("valid", "same", "pad"), owner, "pad_mode")
        around = windows.margins(padding, rank, owner)
        if pad_mode != "pad" and any(map(any, around)):
            raise ValueError(
                f"For '{owner}', 'padding' must be 0 when 'pad_mode' is {pad_mode!r}, but got "
                f"{padding}.{where()}"
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
        return convolve(input, weight, bias, axes, groups)

    function.__name__ = function.__qualname__ = owner
    function.__doc__ = f"""A convolution (cross-correlation) over the last {rank} dimensions.

    input (N, C, ...), weight (O, C / groups, ...), bias None or (O,), of one floating dtype; result
    (N, O, ...). stride, dilation: an int or {rank}. pad_mode: 'same' (output ceil(size / stride)),
    'valid' or 'pad', with `padding` an int, one for each dimension, or (before, after) of each.

    Raises TypeError for dtypes that differ, ValueError for shapes that do not fit.
    """
    return function


conv1d, conv2d, conv3d = (_function(rank) for rank in (1, 2, 3))
