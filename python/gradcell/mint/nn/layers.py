"""Layers of mint.nn whose parameters are named or shaped otherwise than nn's: normalisations, Embedding,
PReLU and two convolutions. Checkpoints of MindSpore's load into them."""

from __future__ import annotations

import math
from dataclasses import InitVar
from typing import Any, ClassVar

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, fields, publish, unsupported
from gradcell.common.initializer import Uniform, initializer
from gradcell.communication import GlobalComm, get_group_size
from gradcell.mint.nn import functional
from gradcell.nn.cell import Cell
from gradcell.ops.networks import windows
from gradcell.tensors.parameter import Parameter


def _weights(cell: Cell, shape: tuple[int, ...], learns: bool, bias: bool, dtype: Any) -> None:
    """weight, ones, and bias, zeros."""
    kind = _core.default_dtype() if dtype is None else dtype
    cell.weight = Parameter(initializer("ones", shape, kind), "weight", learns)
    cell.bias = Parameter(initializer("zeros", shape, kind), "bias", learns) if bias else None


@fields.declared
class _BatchNorm(Cell):
    """Base class of BatchNorm1d, 2d and 3d. Ioffe and Szegedy 2015, algorithm 1.

    num_features: the channels C. momentum: how far the running moments go to a batch's; None: they are
    means over all batches so far. affine: with weight and bias. track_running_stats: with running_mean,
    running_var and num_batches_tracked, which count outside of training; else the batch's own do.

    Input (N, C, ...), output the same. Raises TypeError and ValueError for incompatible arguments.
    """

    ranks: ClassVar[tuple[int, ...]] = ()

    num_features: int = fields.integer(1)
    eps: float = fields.number(default=1e-5)
    momentum: float | None = fields.anything(default=0.1)
    affine: bool = fields.boolean(default=True)
    track_running_stats: bool = fields.anything(default=True)
    dtype: InitVar[Any] = fields.anything(default=None)

    def _build(self, dtype: Any) -> None:
        shape, kind = (self.num_features,), _core.default_dtype() if dtype is None else dtype
        self.weight: Parameter | None = None
        self.bias: Parameter | None = None
        if self.affine:
            _weights(self, shape, True, True, dtype)
        self.running_mean: Parameter | None = None
        self.running_var: Parameter | None = None
        self.num_batches_tracked: Parameter | None = None
        if self.track_running_stats:
            self.running_mean = Parameter(initializer("zeros", shape, kind), "running_mean", False)
            self.running_var = Parameter(initializer("ones", shape, kind), "running_var", False)
            count = Tensor(np.zeros((), np.int64))
            self.num_batches_tracked = Parameter(count, "num_batches_tracked", False)

    def construct(self, input: Tensor) -> Tensor:
        x = arguments.of_rank(input, self.ranks, type(self).__name__)
        if x.shape[1] != self.num_features:
            bad_value(
                f"For '{type(self).__name__}', the input must have {self.num_features} channels, but got "
                f"shape {list(x.shape)}"
            )
        own = self.training or not self.track_running_stats
        share: Any = self.momentum
        if self.training and self.num_batches_tracked is not None:
            count = self.num_batches_tracked + 1
            ops.assign(self.num_batches_tracked, count)
            share = _ops.reciprocal(_ops.cast(count, x.dtype)) if share is None else share
        held = self.running_mean, self.running_var, self.weight, self.bias
        return functional.batch_norm(x, *held, own, share, self.eps)


class BatchNorm1d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ranks: ClassVar[tuple[int, ...]] = (2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ranks: ClassVar[tuple[int, ...]] = (4,)


class BatchNorm3d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ranks: ClassVar[tuple[int, ...]] = (5,)


class SyncBatchNorm(_BatchNorm):
    __doc__ = f"""{_BatchNorm.__doc__}
    Of one process, that is. Raises NotImplementedError where several train together: nn.SyncBatchNorm has
    their common statistics."""
    ranks: ClassVar[tuple[int, ...]] = (2, 3, 4, 5)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)
        self.process_group: str = process_group or GlobalComm.WORLD_COMM_GROUP

    def construct(self, input: Tensor) -> Tensor:
        if self.training and get_group_size(self.process_group) > 1:
            unsupported("mint.nn.SyncBatchNorm works in one process; nn.SyncBatchNorm for several")
        return super().construct(input)


@fields.declared
class GroupNorm(Cell):
    """Mean 0 and variance 1 over groups of channels of each sample, times weight, plus bias. Wu and He
    2018, equations 1 to 3. affine: weight and bias are learned. Raises ValueError for channels that do not
    fall into the groups."""

    num_groups: int = fields.integer(1)
    num_channels: int = fields.integer(1)
    eps: float = fields.number(default=1e-5)
    affine: InitVar[bool] = fields.anything(default=True)
    dtype: InitVar[Any] = fields.anything(default=None)

    def _build(self, affine: bool, dtype: Any) -> None:
        if self.num_channels % self.num_groups:
            bad_value(
                "For 'GroupNorm', the 'num_channels' must be divided by 'num_groups', but got "
                f"{self.num_channels} and {self.num_groups}"
            )
        _weights(self, (self.num_channels,), affine, True, dtype)

    def construct(self, input: Tensor) -> Tensor:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)  # type: ignore[no-any-return]


@fields.declared
class LayerNorm(Cell):
    """Mean 0 and variance 1 over the last dimensions, normalized_shape, times weight, plus bias; without
    elementwise_affine neither, without bias not that. Ba, Kiros and Hinton 2016, equation 4."""

    normalized_shape: Any = fields.checked(arguments.integers)
    eps: float = fields.number(default=1e-5)
    elementwise_affine: InitVar[bool] = fields.boolean(default=True)
    bias: InitVar[bool] = fields.anything(default=True)
    dtype: InitVar[Any] = fields.anything(default=None)

    def _build(self, elementwise_affine: bool, bias: bool, dtype: Any) -> None:
        self.normalized_shape = tuple(self.normalized_shape)
        self.weight = self.bias = None
        if elementwise_affine:
            _weights(self, self.normalized_shape, True, bias, dtype)

    def construct(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


@fields.declared
class Embedding(Cell):
    """Rows of a table, looked up by number. weight (num_embeddings, embedding_dim): normal numbers, zeros
    in the row padding_idx, which is not learned. Input: integers of any shape. Raises TypeError and
    ValueError for incompatible arguments."""

    num_embeddings: InitVar[int] = fields.integer(1)
    embedding_dim: InitVar[int] = fields.integer(1)
    padding_idx: int | None = fields.anything(default=None)
    dtype: InitVar[Any] = fields.anything(default=None)

    def _build(self, num_embeddings: int, embedding_dim: int, dtype: Any) -> None:
        padding_idx = self.padding_idx
        kind = _core.default_dtype() if dtype is None else dtype
        table = initializer("normal", (num_embeddings, embedding_dim), kind)
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                bad_value(
                    f"For 'Embedding', padding_idx must be within [-{num_embeddings}, {num_embeddings}), but "
                    f"got {padding_idx}"
                )
            table.asnumpy()[padding_idx] = 0
        self.weight: Parameter = Parameter(table, "weight")

    def construct(self, input: Tensor) -> Tensor:
        return functional.embedding(input, self.weight, self.padding_idx)  # type: ignore[no-any-return]


class Conv1d(Cell):
    """A one-dimensional convolution. weight (out_channels, in_channels / groups, kernel_size) and bias
    (out_channels,) start uniform within 1/sqrt(fan_in). padding: a number, 'valid' or 'same'. Input
    (N, in_channels, L). Raises ValueError for incompatible arguments."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if padding_mode != "zeros":
            unsupported(f"mint.nn: padding_mode {padding_mode!r} is not supported")
        for size, name in ((in_channels, "in_channels"), (out_channels, "out_channels")):
            if arguments.integer(size, "Conv1d", name, 1) % groups:
                bad_value(f"For 'Conv1d', {name} {size} do not fall into {groups} groups")
        reach = arguments.integers(kernel_size, "Conv1d", "kernel_size")
        self.given: tuple[Any, Any, Any, int] = (stride, padding, dilation, groups)
        kind = _core.default_dtype() if dtype is None else dtype
        shape = (out_channels, in_channels // groups, *reach)
        near = 1 / math.sqrt(math.prod(shape[1:]))
        self.weight: Parameter = Parameter(_uniform(near, shape, kind), "weight")
        added = Parameter(_uniform(near, shape[:1], kind), "bias") if bias else None
        self.bias: Parameter | None = added

    def construct(self, input: Tensor) -> Tensor:
        return functional.conv1d(input, self.weight, self.bias, *self.given)  # type: ignore[no-any-return]


class ConvTranspose2d(Cell):
    """The adjoint of a two-dimensional convolution in its input. weight (in_channels, out_channels
    / groups, rows, columns) and bias (out_channels,) start uniform within 1/sqrt(fan_in). stride,
    padding, output_padding, dilation: numbers or pairs. Input (N, in_channels, H, W); output of
    size (H - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1, or
    output_size, up to a stride longer than without output_padding.

    in_channels: channels of the input. out_channels: channels of the output. bias: whether one is
    added. padding_mode: 'zeros', the only one there is. Raises ValueError for incompatible
    arguments.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
        padding_mode: str = "zeros", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError(f"ConvTranspose2d: padding_mode must be 'zeros', got {padding_mode!r}")
        for size, name in ((in_channels, "in_channels"), (out_channels, "out_channels")):
            if arguments.integer(size, "ConvTranspose2d", name, 1) % groups:
                bad_value(f"For 'ConvTranspose2d', {name} {size} do not fall into {groups} groups")
        reach = windows.sizes(kernel_size, 2, "ConvTranspose2d", "kernel_size")
        self.reach: tuple[int, ...] = reach
        self.stride: Any = stride
        self.padding: Any = padding
        self.dilation: Any = dilation
        self.output_padding: Any = output_padding
        self.groups: int = groups
        kind = _core.default_dtype() if dtype is None else dtype
        shape = (in_channels, out_channels // groups, *self.reach)
        near = 1 / math.sqrt(math.prod(shape[1:]))
        self.weight: Parameter = Parameter(_uniform(near, shape, kind), "weight")
        added = Parameter(_uniform(near, (out_channels,), kind), "bias") if bias else None
        self.bias: Parameter | None = added

    def construct(self, input: Tensor, output_size: Any = None) -> Tensor:
        added = self.output_padding
        if output_size is not None:
            x = arguments.of_rank(input, [3, 4], "ConvTranspose2d")
            how = self.reach, self.stride, self.padding, 0, self.dilation
            least = functional.transposed_sizes(x, *how)
            wanted = arguments.integers(output_size, "ConvTranspose2d", "output_size")[-2:]
            added = [n - m for n, m in zip(wanted, least, strict=True)]
            steps = windows.sizes(self.stride, 2, "ConvTranspose2d", "stride")
            if not all(0 <= n < s for n, s in zip(added, steps, strict=True)):
                bad_value(
                    f"ConvTranspose2d: an output of size {wanted} is not within a stride, {list(steps)}, of "
                    f"the least, {least}"
                )
        how = (self.stride, self.padding, added, self.groups, self.dilation)
        return functional.conv_transpose2d(input, self.weight, self.bias, *how)  # type: ignore[no-any-return]


@fields.declared
class PReLU(Cell):
    """x where x > 0, weight x elsewhere; weight (num_parameters,), one or one for each channel, starts as
    init. He et al. 2015, equation 1."""

    num_parameters: InitVar[int] = fields.integer(1, default=1)
    init: InitVar[float] = fields.number(default=0.25)
    dtype: InitVar[Any] = fields.anything(default=None)

    def _build(self, num_parameters: int, init: float, dtype: Any) -> None:
        kind = _core.default_dtype() if dtype is None else dtype
        self.weight: Parameter = Parameter(initializer(init, (num_parameters,), kind), "weight")

    def construct(self, input: Tensor) -> Tensor:
        return functional.prelu(input, self.weight)


def _uniform(near: float, shape: tuple[int, ...], dtype: Any) -> Any:
    return initializer(Uniform(near), shape, dtype)


publish(globals())
