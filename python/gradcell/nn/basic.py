"""Fully connected layers, embeddings, dropout and shape cells."""

from __future__ import annotations

import math
from dataclasses import InitVar
from typing import Any, ClassVar

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, fields, publish
from gradcell.common.initializer import HeUniform, Uniform, initializer
from gradcell.nn.activations import _activation_of
from gradcell.nn.cell import Cell, Layer
from gradcell.ops.arrays.scatters import unsorted_segment_max, unsorted_segment_sum
from gradcell.ops.random.draws import dropout
from gradcell.tensors.parameter import Parameter


def _as_rows(x: Tensor, features: int) -> str:
    """Return advice on giving numbers a dimension of features."""
    if x.ndim > 1 or x.size % features:
        return ""
    return f"; a row for each sample is x.reshape(-1, {features})"


@fields.declared
class Dense(Layer):
    """A fully connected layer: activation(x Wᵀ + b).

    in_channels: features of the input. out_channels: features of the output. weight_init,
    bias_init: anything that `initializer` takes; by default uniform within ±1/sqrt(in_channels) (He
    et al. 2015 with slope sqrt(5)). has_bias: whether there is a bias b. activation: the name of an
    activation, a Cell, or None.

    Input (..., in_channels), output (..., out_channels), both of the parameters' dtype. Parameters:
    weight (out_channels, in_channels), bias (out_channels,).

    Raises TypeError for arguments of a wrong type or an input of another dtype, ValueError for
    sizes < 1, initial tensors of a wrong shape, or an input of a wrong shape.
    """

    in_channels: int = fields.integer(1)
    out_channels: int = fields.integer(1)
    weight_init: InitVar[Any] = fields.anything(default=None)
    bias_init: InitVar[Any] = fields.anything(default=None)
    has_bias: bool = fields.boolean(default=True)
    activation: Any = fields.checked(_activation_of, default=None)
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)

    def _build(self, weight_init: Any, bias_init: Any, dtype: _core.DType | None) -> None:
        self._check_given(weight_init, bias_init)
        if weight_init is None:
            weight_init = HeUniform(math.sqrt(5))
        shape = (self.out_channels, self.in_channels)
        self.weight: Parameter = Parameter(initializer(weight_init, shape, dtype), name="weight")
        self.bias: Any = None
        if self.has_bias:
            if bias_init is None:
                bias_init = Uniform(1 / math.sqrt(self.in_channels))
            self.bias = Parameter(initializer(bias_init, (self.out_channels,), dtype), name="bias")
        self.activation_flag: bool = self.activation is not None

    def _check_given(self, weight: Any, bias: Any) -> None:
        n, m = self.out_channels, self.in_channels
        if isinstance(weight, Tensor) and tuple(weight.shape) != (n, m):
            bad_value(
                "For 'Dense', weight init shape error. The ndim of 'weight_init' must be equal to 2, and "
                "the first dim must be equal to 'out_channels', and the second dim must be equal to "
                f"'in_channels'. But got 'weight_init': {weight.shape}, 'out_channels': {n}, 'in_channels': "
                f"{m}."
            )
        if self.has_bias and isinstance(bias, Tensor) and tuple(bias.shape) != (n,):
            bad_value(
                "For 'Dense', bias init shape error. The ndim of 'bias_init' must be equal to 1, and the "
                f"first dim must be equal to 'out_channels'. But got 'bias_init': {bias.shape}, "
                f"'out_channels': {n}."
            )

    def construct(self, x: Tensor) -> Tensor:
        x = arguments.tensor(x, "Dense", "x")
        if x.ndim == 0 or x.shape[-1] != self.in_channels:
            bad_value(
                f"For 'Dense', the last dimension of the input must be in_channels {self.in_channels}, but "
                f"got shape {list(x.shape)}{_as_rows(x, self.in_channels)}."
            )
        weight = self.weight
        arguments.same_dtype(x, weight, "MatMul")
        rows = x if x.ndim <= 2 else _ops.reshape(x, [-1, self.in_channels])
        out = (
            _ops.matmul(rows, weight, transpose_b=x.ndim > 1)
            if x.ndim > 1
            else _ops.matmul(weight, rows)
        )
        if self.has_bias:
            out = _ops.add(out, self.bias)
        if x.ndim > 2:
            out = _ops.reshape(out, [*x.shape[:-1], self.out_channels])
        return self.activation(out) if self.activation_flag else out

    def extend_repr(self) -> str:
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        if self.has_bias:
            text += ", has_bias=True"
        if self.activation_flag:
            text += f", activation={self.activation}"
        return text


class Identity(Cell):
    """Returns a copy of its input.

    args and kwargs have no effect.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        return _core.copy(arguments.tensor(input, "Identity", "x"))


@fields.declared
class Flatten(Cell):
    """The dimensions from start_dim to end_dim as one, in row-major order.

    Raises TypeError for arguments that are not ints, ValueError for dimensions out of range.
    """

    start_dim: int = fields.integer(-(2**31) + 1, default=1)
    end_dim: int = fields.integer(-(2**31) + 1, default=-1)

    def construct(self, x: Tensor) -> Tensor:
        x = arguments.tensor(x, "Flatten", "x")
        if x.ndim == 0:
            return _ops.reshape(x, [1])
        if x.ndim == 1 and self.start_dim == 1:
            return _ops.reshape(x, [x.shape[0], 1])
        first, last = self._axis(x, self.start_dim), self._axis(x, self.end_dim)
        if first > last:
            bad_value(
                f"For 'flatten', the 'start_dim' must be at most 'end_dim', but got {first} and {last}."
            )
        merged = math.prod(x.shape[first : last + 1])
        return _ops.reshape(x, [*x.shape[:first], merged, *x.shape[last + 1 :]])

    def _axis(self, x: Tensor, axis: int) -> int:
        if not -x.ndim <= axis < x.ndim:
            bad_value(
                f"For 'flatten', a dimension must be in [{-x.ndim}, {x.ndim}), but got {axis}."
            )
        return axis % x.ndim


class _Dropping(Cell):
    """Base class of dropouts: `p` is the probability of zero."""

    p: float

    def _check_p(self, p: Any) -> None:
        self.p = arguments.number(p, type(self).__name__, "p", least=0, below=1)

    def extend_repr(self) -> str:
        return f"p={self.p}"


@fields.declared
class Dropout(_Dropping):
    """In training each element becomes 0 with probability p, and the others are divided by 1 - p.

    Srivastava et al., Dropout: a simple way to prevent neural networks from overfitting (2014).
    Outside training (the default, see set_train) it returns its input. keep_prob: 1 - p, used if p
    is None. dtype: accepted for compatibility with MindSpore.

    Input: floating, of any shape; output of the same shape and dtype.

    Raises TypeError for arguments that are not numbers, ValueError unless 0 <= p < 1 or 0 <
    keep_prob <= 1.
    """

    keep_prob: float = fields.anything(default=0.5)
    p: InitVar[float | None] = fields.anything(default=None)
    dtype: InitVar[_core.DType | None] = fields.anything(default=None)

    def _build(self, p: float | None) -> None:
        self._by_p = p is not None
        if p is not None:
            self._check_p(p)
            return
        if not isinstance(self.keep_prob, float):  # an int is likely to be meant for p
            bad_type(
                "For 'Dropout', the type of 'keep_prob' should be 'float', but got type "
                f"'{type(self.keep_prob).__name__}'."
            )
        self.p = 1 - arguments.number(self.keep_prob, "Dropout", "keep_prob", above=0, most=1)

    def construct(self, x: Tensor) -> Tensor:
        return dropout(arguments.tensor(x, "Dropout", "x"), self.p, self.training)

    def extend_repr(self) -> str:
        return f"p={self.p}" if self._by_p else f"keep_prob={self.keep_prob}"


@fields.declared
class _ChannelDropout(_Dropping):
    ranks: ClassVar[tuple[int, ...]] = ()

    p: InitVar[float] = fields.anything(default=0.5)

    def _build(self, p: float) -> None:
        self._check_p(p)

    def construct(self, x: Tensor) -> Tensor:
        x = arguments.of_rank(x, self.ranks, type(self).__name__)
        if not self.training or self.p == 0:
            return _core.copy(x)
        inner = self.ranks[0] - 1
        outer = list(x.shape[: x.ndim - inner])
        mask = dropout(_ops.full([*outer, *[1] * inner], 1.0, x.dtype), self.p)
        return _ops.mul(x, mask)


class Dropout1d(_ChannelDropout):
    """Dropout of whole channels of (N, C, L) or (C, L). p: the probability of zero, in [0, 1)."""

    ranks: ClassVar[tuple[int, ...]] = (2, 3)


class Dropout2d(_ChannelDropout):
    """Dropout of whole channels of (N, C, H, W) or (C, H, W). p: the probability of zero."""

    ranks: ClassVar[tuple[int, ...]] = (3, 4)


class Dropout3d(_ChannelDropout):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W). p: the probability of zero."""

    ranks: ClassVar[tuple[int, ...]] = (4, 5)


@fields.declared
class Embedding(Cell):
    """A table of vectors, which are looked up by their row numbers.

    vocab_size, embedding_size: rows and columns of the table. use_one_hot: looks up by a product
    with one-hot rows instead; the result is the same. embedding_table: anything that `initializer`
    takes. padding_idx: this row starts as zeros.

    Input: integers of any shape, negative ones counted from the end; output: that shape +
    (embedding_size,), of the table's dtype.
    Parameter: embedding_table (vocab_size, embedding_size).

    Raises TypeError for arguments of a wrong type or an input that is not of integers, ValueError
    for sizes < 1 or a padding_idx out of range, IndexError for an input out of range.
    """

    vocab_size: int = fields.integer(1)
    embedding_size: int = fields.integer(1)
    use_one_hot: bool = fields.boolean(default=False)
    embedding_table: InitVar[Any] = fields.anything(default="normal")
    dtype: _core.DType | None = fields.floating_dtype(default=None)
    padding_idx: int | None = fields.integer(-(2**63) + 1, default=None)

    def _build(self, embedding_table: Any) -> None:
        table = initializer(embedding_table, (self.vocab_size, self.embedding_size), self.dtype)
        if self.padding_idx is not None:
            if not 0 <= self.padding_idx < self.vocab_size:
                bad_value(
                    "For 'Embedding', the 'padding_idx' must be in range of "
                    f"[0, {self.vocab_size}), but got {self.padding_idx} with type 'int'."
                )
            table.asnumpy()[self.padding_idx] = 0
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids: Tensor) -> Tensor:
        ids = arguments.tensor(ids, "Embedding", "ids")
        if ids.dtype.is_floating or ids.dtype == _core.bool:
            bad_type(f"For 'Embedding', the 'ids' must be of integers, but got {ids.dtype}.")
        return _ops.gather(self.embedding_table, ids, 0)

    def extend_repr(self) -> str:
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, "
            f"use_one_hot={self.use_one_hot}, embedding_table={self.embedding_table!r}, "
            f"dtype={self.dtype}, padding_idx={self.padding_idx}"
        )


@fields.declared
class EmbeddingLookup(Cell):
    """Rows of a table, looked up by number, as Embedding does. Rows of numbers out of range are 0.

    vocab_size, embedding_size: rows and columns of the table. param_init: anything that
    `initializer` takes. max_norm: longer rows are scaled to this norm. target, slice_mode,
    manual_shapes and sparse have no effect: they say where MindSpore keeps the table.

    Parameter: embedding_table (vocab_size, embedding_size). Raises TypeError, ValueError.
    """

    BATCH_SLICE = "batch_slice"  #: values of slice_mode
    FIELD_SLICE = "field_slice"
    TABLE_ROW_SLICE = "table_row_slice"
    TABLE_COLUMN_SLICE = "table_column_slice"

    vocab_size: int = fields.integer(1)
    embedding_size: int = fields.integer(1)
    param_init: InitVar[Any] = fields.anything(default="normal")
    target: str = fields.one_of("CPU", "DEVICE", default="CPU")
    slice_mode: InitVar[str] = fields.one_of(
        BATCH_SLICE, FIELD_SLICE, TABLE_ROW_SLICE, TABLE_COLUMN_SLICE, default=BATCH_SLICE
    )
    manual_shapes: InitVar[Any] = fields.anything(default=None)
    max_norm: float | None = fields.number(above=0, default=None)
    sparse: bool = fields.boolean(default=True)
    dtype: InitVar[_core.DType | None] = fields.anything(default=None)

    def _build(self, param_init: Any, dtype: _core.DType | None) -> None:
        if not self.sparse and self.target == "CPU":
            bad_value("For 'EmbeddingLookup', 'sparse' must be True when 'target' is \"CPU\".")
        table = initializer(param_init, (self.vocab_size, self.embedding_size), dtype)
        self.embedding_table: Parameter = Parameter(table, name="embedding_table")

    def construct(self, indices: Tensor) -> Tensor:
        indices = arguments.tensor(indices, "EmbeddingLookup", "indices")
        if indices.dtype.is_floating or indices.dtype == _core.bool:
            bad_type(
                f"For 'EmbeddingLookup', the 'indices' must be of integers, but got {indices.dtype}."
            )
        below = _ops.less(indices, self.vocab_size)
        known = _ops.logical_and(_ops.greater_equal(indices, 0), below)
        rows = _ops.gather(self.embedding_table, _ops.where(known, indices, 0), 0)
        rows = _ops.where(_ops.reshape(known, [*indices.shape, 1]), rows, 0)
        if self.max_norm is None:
            return rows
        squares = _ops.reduce_sum(_ops.square(rows), -1, True)
        long = _ops.greater(squares, self.max_norm**2)
        factor = _ops.mul(_ops.rsqrt(_ops.where(long, squares, 1)), self.max_norm)
        return _ops.mul(rows, _ops.where(long, factor, 1))


class MultiFieldEmbeddingLookup(EmbeddingLookup):
    """Rows of a table, each times a weight, combined by fields: (batch, field_size, embedding_size).

    Called with numbers of rows, their weights and the fields they are of, all (batch, n). operator:
    'SUM', 'MAX' (of those with a weight other than 0), or 'MEAN', the sum divided by the sum of the
    absolute weights. A field whose weights are all 0 is 0; fields out of range do not
    count. field_size: the number of fields. feature_num_list has no effect. Other arguments are
    those of EmbeddingLookup.
    """

    OPERATOR_SUM, OPERATOR_MEAN, OPERATOR_MAX = "SUM", "MEAN", "MAX"  #: values of operator

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        field_size: int,
        param_init: Any = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        feature_num_list: Any = None,
        max_norm: float | None = None,
        sparse: bool = True,
        operator: str = "SUM",
        dtype: _core.DType | None = None,
    ) -> None:
        how = (slice_mode, feature_num_list, max_norm, sparse, dtype)
        super().__init__(vocab_size, embedding_size, param_init, target, *how)
        owner = "MultiFieldEmbeddingLookup"
        self.field_size: int = arguments.integer(field_size, owner, "field_size", 1)
        self.operator: Any = arguments.one_of(operator, ("SUM", "MAX", "MEAN"), owner, "operator")

    def construct(  # type: ignore[override]
        self, input_indices: Tensor, input_values: Tensor, field_ids: Tensor
    ) -> Tensor:
        given = {
            "input_indices": input_indices,
            "input_values": input_values,
            "field_ids": field_ids,
        }
        for name, value in given.items():
            if len(arguments.tensor(value, "MultiFieldEmbeddingLookup", name).shape) != 2:
                bad_value(
                    f"For 'MultiFieldEmbeddingLookup', the '{name}' must have 2 dimensions, but got shape "
                    f"{tuple(value.shape)}."
                )
        rows, size = super().construct(input_indices), self.field_size
        batch, n = input_indices.shape
        known = _ops.logical_and(_ops.greater_equal(field_ids, 0), _ops.less(field_ids, size))
        starts = Tensor([[i * size] for i in range(batch)], field_ids.dtype)
        places = _ops.reshape(_ops.where(known, _ops.add(field_ids, starts), -1), [batch * n])
        weights = _ops.reshape(input_values, [batch * n, 1])
        weighted = _ops.mul(_ops.reshape(rows, [batch * n, self.embedding_size]), weights)
        total = unsorted_segment_sum(_ops.abs(weights), places, batch * size)
        used = _ops.greater(total, 0)
        if self.operator == "MAX":
            least = _ops.where(_ops.equal(weights, 0), -math.inf, weighted)
            found = _ops.where(used, unsorted_segment_max(least, places, batch * size), 0)
        else:
            found = unsorted_segment_sum(weighted, places, batch * size)
        if self.operator == "MEAN":
            found = _ops.where(used, _ops.div(found, _ops.where(used, total, 1)), 0)
        return _ops.reshape(found, [batch, size, self.embedding_size])


class Linear(Dense):
    """A fully connected layer, x Wᵀ + b: Dense with PyTorch's names of arguments.

    in_features, out_features, bias: Dense's in_channels, out_channels, has_bias. Otherwise like Dense.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: _core.DType | None = None,
    ) -> None:
        super().__init__(in_features, out_features, weight_init, bias_init, bias, dtype=dtype)
        self.in_features: int = in_features
        self.out_features: int = out_features

    def extend_repr(self) -> str:
        text = f"input_features={self.in_features}, output_features={self.out_features}"
        return text + ", has_bias=True" if self.has_bias else text


@fields.declared
class BiDense(Layer):
    """A bilinear layer: out[..., o] = sum over i, j of x1[..., i] weight[o, i, j] x2[..., j] + b[o].

    in1_channels, in2_channels, out_channels: features of the inputs and the output. Initial values
    are uniform within ±1/sqrt(in1_channels) by default. weight_init, bias_init: anything that
    `initializer` takes. Inputs (..., in1_channels) and (..., in2_channels). Parameters: weight
    (out, in1, in2), bias (out,). Raises TypeError, ValueError.
    """

    in1_channels: int = fields.integer(1)
    in2_channels: int = fields.integer(1)
    out_channels: int = fields.integer(1)
    weight_init: InitVar[Any] = fields.anything(default=None)
    bias_init: InitVar[Any] = fields.anything(default=None)
    has_bias: bool = fields.boolean(default=True)
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)

    def _build(self, weight_init: Any, bias_init: Any, dtype: _core.DType | None) -> None:
        uniform = Uniform(1 / math.sqrt(self.in1_channels))
        start = uniform if weight_init is None else weight_init
        shape = (self.out_channels, self.in1_channels, self.in2_channels)
        self.weight: Parameter = Parameter(initializer(start, shape, dtype), name="weight")
        self.bias: Any = None
        if self.has_bias:
            start = uniform if bias_init is None else bias_init
            self.bias = Parameter(initializer(start, (self.out_channels,), dtype), name="bias")

    def construct(self, input1: Tensor, input2: Tensor) -> Tensor:
        sizes = (self.in1_channels, self.in2_channels)
        for name, x, n in zip(("input1", "input2"), (input1, input2), sizes, strict=True):
            arguments.tensor(x, "BiDense", name)
            if x.ndim < 2 or x.shape[-1] != n or x.shape[:-1] != input1.shape[:-1]:
                bad_value(
                    f"For 'BiDense', the inputs must be (..., {sizes[0]}) and (..., {sizes[1]}), but got "
                    f"{list(input1.shape)} and {list(x.shape)}."
                )
            arguments.same_dtype(x, self.weight, "BiDense")
        n, m, o = *sizes, self.out_channels
        rows = math.prod(input1.shape[:-1])
        left = _ops.matmul(_ops.reshape(input1, [rows, n]), self._by_first(n, m, o))
        left = _ops.reshape(left, [rows, o, m])
        out = _ops.reduce_sum(_ops.mul(left, _ops.reshape(input2, [rows, 1, m])), -1)
        out = _ops.add(out, self.bias) if self.has_bias else out
        return _ops.reshape(out, [*input1.shape[:-1], o])

    def _by_first(self, n: int, m: int, o: int) -> Tensor:
        return _ops.reshape(_ops.transpose(self.weight, [1, 0, 2]), [n, o * m])

    def extend_repr(self) -> str:
        text = f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, "
        text += f"output_channels={self.out_channels}"
        return text + ", has_bias=True" if self.has_bias else text


@fields.declared
class TimeDistributed(Cell):
    """A layer applied to each slice along time_axis, the results stacked along it.

    layer: a Cell or function of one tensor. reshape_with_axis: an axis that is joined with
    time_axis instead, so that the layer is called once. time_axis: the dimension along which the
    input is cut. Raises TypeError, ValueError.
    """

    layer: Any = fields.checked(arguments.function)
    time_axis: int = fields.integer()
    reshape_with_axis: int | None = fields.integer(default=None)

    def construct(self, inputs: Tensor) -> Tensor:
        x = arguments.tensor(inputs, "TimeDistributed", "inputs")
        time = arguments.axis_of(self.time_axis, x.ndim, "TimeDistributed")
        if self.reshape_with_axis is None:
            dims = [n for i, n in enumerate(x.shape) if i != time]
            outs = []
            for t in range(x.shape[time]):
                begin, size = [0] * x.ndim, list(x.shape)
                begin[time], size[time] = t, 1
                part = _ops.reshape(_ops.slice(x, begin, size, [1] * x.ndim), dims)
                out = self.layer(part)
                at = min(time, out.ndim)
                outs.append(_ops.reshape(out, [*out.shape[:at], 1, *out.shape[at:]]))
            return _ops.concat(outs, at)
        return self._joined(x, time)

    def _joined(self, x: Tensor, time: int) -> Tensor:
        other = arguments.axis_of(self.reshape_with_axis, x.ndim, "TimeDistributed")
        if other == time:
            bad_value(
                f"For 'TimeDistributed', 'reshape_with_axis' must not be the 'time_axis' {time}."
            )
        # time right behind the other axis, and both as one
        order = [i for i in range(x.ndim) if i != time]
        order.insert(order.index(other) + 1, time)
        at = order.index(other)
        moved = _ops.transpose(x, order)
        n, t = moved.shape[at], moved.shape[at + 1]
        out = self.layer(_ops.reshape(moved, [*moved.shape[:at], n * t, *moved.shape[at + 2 :]]))
        out = _ops.reshape(out, [*out.shape[:at], n, t, *out.shape[at + 1 :]])
        back = [i for i in range(out.ndim) if i != at + 1]
        back.insert(min(time, out.ndim - 1), at + 1)
        return _ops.transpose(out, back)


publish(globals())
