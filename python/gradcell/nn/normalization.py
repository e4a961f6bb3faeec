"""Normalisations: of a batch by feature, of a sample by its own statistics."""

from __future__ import annotations

import math
from dataclasses import InitVar
from typing import Any, ClassVar

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, fields, publish
from gradcell.common.initializer import initializer
from gradcell.communication import collectives
from gradcell.communication.management import (
    GlobalComm,
    create_group,
    get_group_size,
    get_rank,
    has_group,
)
from gradcell.nn.cell import Layer
from gradcell.ops.networks.normalization import moments, scaled
from gradcell.tensors.parameter import Parameter


def _widened(x: Tensor) -> Tensor:
    """Half types as float32: statistics need the digits."""
    return _ops.cast(x, _core.float32) if x.dtype.itemsize < 4 else x


@fields.declared
class _BatchNorm(Layer):
    """Base class of BatchNorm1d, 2d and 3d: feature axis 1, statistics over all the others."""

    ranks: ClassVar[tuple[int, ...]] = ()

    num_features: int = fields.integer(1)
    eps: float = fields.number(default=1e-5)
    momentum: float = fields.number(least=0, most=1, default=0.9)
    affine: InitVar[bool] = fields.boolean(default=True)
    gamma_init: InitVar[Any] = fields.anything(default="ones")
    beta_init: InitVar[Any] = fields.anything(default="zeros")
    moving_mean_init: InitVar[Any] = fields.anything(default="zeros")
    moving_var_init: InitVar[Any] = fields.anything(default="ones")
    use_batch_statistics: bool | None = fields.boolean(default=None)

    def _build(
        self,
        affine: bool,
        gamma_init: Any,
        beta_init: Any,
        moving_mean_init: Any,
        moving_var_init: Any,
        dtype: _core.DType | None,
    ) -> None:
        size = (self.num_features,)
        self.moving_mean: Parameter = Parameter(
            initializer(moving_mean_init, size, dtype), "mean", False
        )
        self.moving_variance: Parameter = Parameter(
            initializer(moving_var_init, size, dtype), "variance", False
        )
        self.gamma: Parameter = Parameter(initializer(gamma_init, size, dtype), "gamma", affine)
        self.beta: Parameter = Parameter(initializer(beta_init, size, dtype), "beta", affine)

    def _check(self, x: Tensor) -> None:
        owner = type(self).__name__
        x = arguments.tensor(x, owner, "x")
        if x.ndim not in self.ranks:
            ranks = " or ".join(map(str, self.ranks))
            bad_value(f"For '{owner}', the in_shape must have {ranks} dims, but got {x.ndim}.")
        if x.shape[1] != self.num_features:
            bad_value(
                f"For '{owner}', the input must have num_features {self.num_features} channels, but got "
                f"shape {list(x.shape)}."
            )

    def construct(self, x: Tensor) -> Tensor:
        self._check(x)
        batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        wide = _widened(x)
        centred, variance = self._of_batch(wide) if batch else self._of_past(wide)
        return self._scaled(x, centred, variance)

    def _scaled(self, x: Tensor, centred: Tensor, variance: Tensor) -> Tensor:
        scale = _ops.mul(self._row(x, "gamma"), _ops.rsqrt(_ops.add(variance, self.eps)))
        out = _ops.add(_ops.mul(centred, scale), self._row(x, "beta"))
        return _ops.cast(out, x.dtype)

    def _row(self, x: Tensor, name: str) -> Tensor:
        # The parameter itself: a cell that computes in a half type keeps its statistics whole.
        return _ops.reshape(self._params[name], [-1] + [1] * (x.ndim - 2))

    def _of_past(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return _ops.sub(x, self._row(x, "moving_mean")), self._row(x, "moving_variance")

    def _of_batch(self, x: Tensor) -> tuple[Tensor, Tensor]:
        axes = [0, *range(2, x.ndim)]
        mean, centred, variance = moments(x, axes)
        count = x.size // self.num_features
        unbiased = _ops.mul(variance, count / max(count - 1, 1))
        if count:
            self._keep("moving_mean", mean)
            self._keep("moving_variance", unbiased)
        return centred, variance

    def _keep(self, name: str, new: Tensor) -> None:
        p = self._params[name]
        new = _ops.reshape(_ops.stop_gradient(new), [self.num_features])
        past = _ops.mul(p, self.momentum)
        p.set_data(_ops.add(past, _ops.mul(new, 1 - self.momentum)))

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"gamma={self.gamma!r}, beta={self.beta!r}, "
            f"moving_mean={self.moving_mean!r}, moving_variance={self.moving_variance!r}"
        )


@fields.declared
class _Plain(_BatchNorm):
    """Base class of BatchNorm1d and BatchNorm2d."""

    data_format: InitVar[str] = fields.one_of("NCHW", default="NCHW")
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)


class BatchNorm1d(_Plain, ranks=(2, 3)):
    """Batch normalisation: $gamma (x - mean) / sqrt(variance + eps) + beta$, by feature.

    Ioffe & Szegedy, Batch normalization (2015), algorithm 1. In training mean and variance are the
    batch's, and moving = momentum * moving + (1 - momentum) * batch (with the unbiased variance) is
    kept; otherwise they are the moving ones. use_batch_statistics: True or False fixes that, None
    goes by set_train. affine: whether gamma and beta are trained. gamma_init, beta_init,
    moving_mean_init, moving_var_init: anything that `initializer` takes.

    Input (N, num_features) or (N, num_features, L), any floating dtype (half types are normalised
    in float32); output of the same shape and dtype. Parameters, all (num_features,): moving_mean,
    moving_variance, gamma, beta.

    Raises TypeError for arguments of a wrong type, ValueError for invalid values or incompatible shapes.
    """


class BatchNorm2d(_Plain, ranks=(4,)):
    """Batch normalisation of images: (N, num_features, H, W). Otherwise like BatchNorm1d."""


@fields.declared
class BatchNorm3d(Layer):
    """Batch normalisation of volumes: (N, num_features, D, H, W). Otherwise like BatchNorm1d.

    The parameters are those of bn2d, a BatchNorm2d, as in MindSpore.
    """

    num_features: InitVar[int] = fields.anything()
    eps: InitVar[float] = fields.anything(default=1e-5)
    momentum: InitVar[float] = fields.anything(default=0.9)
    affine: InitVar[bool] = fields.anything(default=True)
    gamma_init: InitVar[Any] = fields.anything(default="ones")
    beta_init: InitVar[Any] = fields.anything(default="zeros")
    moving_mean_init: InitVar[Any] = fields.anything(default="zeros")
    moving_var_init: InitVar[Any] = fields.anything(default="ones")
    use_batch_statistics: InitVar[bool | None] = fields.anything(default=None)
    dtype: InitVar[_core.DType | None] = fields.anything(default=None)

    def _build(self, **given: Any) -> None:
        self.bn2d: BatchNorm2d = BatchNorm2d(**given)

    def construct(self, input_x: Tensor) -> Tensor:
        input_x = arguments.of_rank(input_x, [5], "BatchNorm3d")
        n, channels, depth, h, w = input_x.shape
        flat = self.bn2d(_ops.reshape(input_x, [n, channels, depth * h, w]))
        return _ops.reshape(flat, list(input_x.shape))


@fields.declared
class SyncBatchNorm(_BatchNorm, ranks=(2, 3, 4, 5)):
    """Batch normalisation over the batches of all processes together, which may be of different
    sizes. Inputs as BatchNorm1d, 2d or 3d take them, by their rank; otherwise like BatchNorm1d.

    process_groups: lists of processes that share their statistics, each process in one list at most
    (the others use their own); None: all. num_features: the number of channels. Raises ValueError
    for a process in two lists.
    """

    _only_computes = False  # it also waits for other processes

    process_groups: Any = fields.anything(default=None)
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)

    def _build(self, **given: Any) -> None:  # type: ignore[override]
        super()._build(**given)
        self.group: str | None = _group_of_mine(self.process_groups)

    def _of_batch(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.group is None or get_group_size(self.group) == 1:
            return super()._of_batch(x)
        axes, features = [0, *range(2, x.ndim)], self.num_features
        count = _ops.full([1], x.size // features, x.dtype)
        sums = _ops.concat([_ops.reduce_sum(x, axes), count], 0)
        sums = collectives.all_reduce(sums, "sum", self.group)
        total = _ops.slice(sums, [features], [1], [1])
        mean = self._spread(_ops.div(_ops.slice(sums, [0], [features], [1]), total), x)
        centred = _ops.sub(x, mean)
        squares = _ops.reduce_sum(_ops.square(centred), axes)
        variance = _ops.div(collectives.all_reduce(squares, "sum", self.group), total)
        unbiased = _ops.mul(variance, _ops.div(total, _ops.maximum(_ops.sub(total, 1.0), 1.0)))
        self._keep("moving_mean", mean)
        self._keep("moving_variance", unbiased)
        return centred, self._spread(variance, x)

    @staticmethod
    def _spread(v: Tensor, x: Tensor) -> Tensor:
        return _ops.reshape(v, [1, -1] + [1] * (x.ndim - 2))


def _group_of_mine(process_groups: Any) -> str | None:
    """The group that this process shares its statistics with; None: nobody."""
    if process_groups is None:
        return GlobalComm.WORLD_COMM_GROUP
    lists = [list(ranks) for ranks in process_groups]
    ranks = [r for listed in lists for r in listed]
    if len(set(ranks)) < len(ranks):
        bad_value(f"SyncBatchNorm: a process is in two of the groups {lists}")
    for listed in lists:
        if get_rank() in listed:
            name = "sync_batch_norm_" + "_".join(map(str, listed))
            if not has_group(name):
                create_group(name, listed)
            return name
    return None


@fields.declared
class _InstanceNorm(_BatchNorm):
    """Base class of InstanceNorm1d, 2d and 3d: statistics of each sample and feature."""

    momentum: float = fields.number(least=0, most=1, default=0.1)
    moving_mean_init: InitVar[Any] = fields.fixed("zeros")
    moving_var_init: InitVar[Any] = fields.fixed("ones")
    use_batch_statistics: bool | None = fields.fixed(None)
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)

    def construct(self, x: Tensor) -> Tensor:
        self._check(x)
        _, centred, variance = moments(_widened(x), list(range(2, x.ndim)))
        return self._scaled(x, centred, variance)


class InstanceNorm1d(_InstanceNorm, ranks=(3,)):
    """Instance normalisation: $gamma (x - mean) / sqrt(variance + eps) + beta$, with statistics for
    each sample and feature.

    Ulyanov et al., Instance normalization (2016), equation 2. affine: whether gamma and beta are
    trained. momentum and the parameters moving_mean and moving_variance are there for compatibility
    with MindSpore, and not used. Input (N, num_features, L). Otherwise like BatchNorm1d.
    """


class InstanceNorm2d(_InstanceNorm, ranks=(4,)):
    """Instance normalisation of images: (N, num_features, H, W). Otherwise like InstanceNorm1d.

    momentum: the share of old statistics that a step keeps; none in InstanceNorm.
    """


class InstanceNorm3d(_InstanceNorm, ranks=(5,)):
    """Instance normalisation of volumes: (N, num_features, D, H, W). Otherwise like InstanceNorm1d.

    momentum: the share of old statistics that a step keeps; none in InstanceNorm.
    """


def _sizes(value: Any, owner: str, name: str) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)):
        bad_type(
            f"For '{owner}', the type of '{name}' must be tuple[int] or list[int], but got {value} and the "
            f"type is {type(value)}."
        )
    if not value:
        bad_value(f"For '{owner}', the '{name}' must not be empty.")
    return tuple(arguments.integer(n, owner, f"{name} item", 1) for n in value)


@fields.declared
class LayerNorm(Layer):
    """$gamma (x - mean) / sqrt(variance + epsilon) + beta$, over the last dimensions of each sample.

    Ba, Kiros & Hinton, Layer normalization (2016), equation 3 with the layer's own statistics.
    normalized_shape: the shape of gamma and beta. begin_norm_axis: the first dimension of the mean.
    begin_params_axis: the first dimension of gamma and beta. gamma_init, beta_init: anything that
    `initializer` takes.

    Input: any floating tensor whose dimensions from begin_params_axis on are normalized_shape (half
    types are normalised in float32); output of the same shape and dtype. Parameters: gamma, beta.

    Raises TypeError for arguments of a wrong type, ValueError for incompatible shapes.
    """

    normalized_shape: tuple[int, ...] | list[int] = fields.checked(_sizes)
    begin_norm_axis: int = fields.integer(default=-1)
    begin_params_axis: int = fields.integer(default=-1)
    gamma_init: InitVar[Any] = fields.anything(default="ones")
    beta_init: InitVar[Any] = fields.anything(default="zeros")
    epsilon: float = fields.number(default=1e-7)
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)

    def _build(self, gamma_init: Any, beta_init: Any, dtype: _core.DType | None) -> None:
        shape = tuple(self.normalized_shape)
        self.gamma: Parameter = Parameter(initializer(gamma_init, shape, dtype), "gamma")
        self.beta: Parameter = Parameter(initializer(beta_init, shape, dtype), "beta")

    def construct(self, input_x: Tensor) -> Tensor:
        input_x = arguments.tensor(input_x, "LayerNorm", "input_x")
        first = self._axis(input_x, "begin_norm_axis", self.begin_norm_axis)
        params = self._axis(input_x, "begin_params_axis", self.begin_params_axis)
        if tuple(input_x.shape[params:]) != self.normalized_shape:
            bad_value(
                "For 'LayerNorm', gamma or beta shape must match input shape, but got input shape: "
                f"{list(input_x.shape)}, gamma shape: {list(self.normalized_shape)}."
            )
        _, centred, variance = moments(_widened(input_x), list(range(first, input_x.ndim)))
        normal = scaled(centred, variance, self.epsilon)
        out = _ops.add(_ops.mul(normal, self._params["gamma"]), self._params["beta"])
        return _ops.cast(out, input_x.dtype)

    def _axis(self, x: Tensor, name: str, axis: int) -> int:
        if not -x.ndim <= axis < x.ndim:
            bad_value(
                f"For 'LayerNorm', the '{name}' must be in range [{-x.ndim}, {x.ndim}), but got {axis}."
            )
        return axis % x.ndim

    def extend_repr(self) -> str:
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, gamma={self.gamma!r}, beta={self.beta!r}"
        )


@fields.declared
class RMSNorm(Layer):
    """$gamma x / sqrt(mean(x^2) + epsilon)$, over the last dimensions of each sample, without a mean or beta.

    Zhang & Sennrich, Root mean square layer normalization (2019), equation 4. normalized_shape: the
    shape of gamma. gamma_init: anything that `initializer` takes. epsilon: added to the mean square.

    Input: any floating tensor whose last dimensions are normalized_shape (half types are normalised in
    float32); output of the same shape and dtype. Parameters: gamma.

    Raises TypeError for arguments of a wrong type, ValueError for incompatible shapes.
    """

    normalized_shape: tuple[int, ...] | list[int] = fields.checked(_sizes, shown=True)
    gamma_init: InitVar[Any] = fields.anything(default="ones")
    epsilon: float = fields.number(default=1e-6, shown=True)
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)

    def _build(self, gamma_init: Any, dtype: _core.DType | None) -> None:
        shape = tuple(self.normalized_shape)
        self.gamma: Parameter = Parameter(initializer(gamma_init, shape, dtype), "gamma")

    def construct(self, input_x: Tensor) -> Tensor:
        input_x = arguments.tensor(input_x, "RMSNorm", "input_x")
        first = input_x.ndim - len(self.normalized_shape)
        if tuple(input_x.shape[max(first, 0) :]) != tuple(self.normalized_shape):
            bad_value(
                f"For 'RMSNorm', the input's shape must end with {list(self.normalized_shape)}, but got "
                f"shape {list(input_x.shape)}."
            )
        x = _widened(input_x)
        mean = _ops.mean(_ops.square(x), list(range(first, x.ndim)), True)
        normal = _ops.mul(x, _ops.rsqrt(_ops.add(mean, self.epsilon)))
        return _ops.cast(_ops.mul(normal, self._params["gamma"]), input_x.dtype)


@fields.declared
class GroupNorm(Layer):
    """Normalisation of each sample over groups of channels, then gamma and beta by channel.

    affine: whether gamma and beta are used. gamma_init, beta_init: anything that `initializer`
    takes.

    Wu & He, Group normalization (2018), equations 1 to 3. num_channels must be divisible by
    num_groups.

    Input (N, num_channels, ...), any floating dtype (half types are normalised in float32); output
    of the same shape and dtype. Parameters: gamma, beta (num_channels,).

    Raises TypeError for arguments of a wrong type, ValueError for invalid values or incompatible shapes.
    """

    num_groups: int = fields.integer(1, shown=True)
    num_channels: int = fields.integer(1, shown=True)
    eps: float = fields.number(default=1e-5)
    affine: bool = fields.boolean(default=True)
    gamma_init: InitVar[Any] = fields.anything(default="ones")
    beta_init: InitVar[Any] = fields.anything(default="zeros")
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)

    def _build(self, gamma_init: Any, beta_init: Any, dtype: _core.DType | None) -> None:
        if self.num_channels % self.num_groups:
            bad_value(
                "For 'GroupNorm', the 'num_channels' must be divided by 'num_groups', but got "
                f"'num_channels': {self.num_channels}, 'num_groups': {self.num_groups}."
            )
        size = (self.num_channels,)
        self.gamma: Parameter = Parameter(
            initializer(gamma_init, size, dtype), "gamma", self.affine
        )
        self.beta: Parameter = Parameter(initializer(beta_init, size, dtype), "beta", self.affine)

    def construct(self, x: Tensor) -> Tensor:
        x = arguments.of_rank(x, range(2, 9), "GroupNorm")
        if x.shape[1] != self.num_channels:
            bad_value(
                f"For 'GroupNorm', the input must have num_channels {self.num_channels} channels, but got "
                f"shape {list(x.shape)}."
            )
        group = math.prod(x.shape[1:]) // self.num_groups
        grouped = _ops.reshape(_widened(x), [x.shape[0], self.num_groups, group])
        _, centred, variance = moments(grouped, [2])
        normal = _ops.reshape(scaled(centred, variance, self.eps), list(x.shape))
        row = [-1] + [1] * (x.ndim - 2)
        out = _ops.mul(normal, _ops.reshape(self._params["gamma"], row))
        return _ops.cast(_ops.add(out, _ops.reshape(self._params["beta"], row)), x.dtype)


publish(globals())
