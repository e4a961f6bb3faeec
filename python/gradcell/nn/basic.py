"""Fully connected layers, embeddings, dropout and shape cells."""

from __future__ import annotations

import math
from typing import Any

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell._core import ops as _ops
from gradcell._location import where
from gradcell.common.initializer import HeUniform, Uniform, initializer
from gradcell.nn.activations import activation_of
from gradcell.nn.cell import Cell
from gradcell.ops.random import dropout
from gradcell.parameter import Parameter

__all__ = [
    "Dense",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Embedding",
    "Flatten",
    "Identity",
]


class Dense(Cell):
    """A fully connected layer: activation(x Wᵀ + b).

    in_channels, out_channels: features of input and output. weight_init, bias_init: anything that
    `initializer` takes; by default uniform within ±1/sqrt(in_channels) (He et al. 2015 with slope
    sqrt(5)). has_bias: whether b is there. activation: a name, a Cell or None. dtype: of the
    parameters.

    Input (..., in_channels), output (..., out_channels), of the parameters' dtype. Parameters:
    weight (out_channels, in_channels), bias (out_channels,).

    Raises TypeError for arguments of a wrong type or an input of another dtype, ValueError for
    sizes < 1, initial tensors of a wrong shape, or an input of a wrong shape.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        activation: Any = None,
        dtype: _core.DType = _core.float32,
    ) -> None:
        super().__init__()
        self.in_channels = arguments.integer(in_channels, "Dense", "in_channels", 1)
        self.out_channels = arguments.integer(out_channels, "Dense", "out_channels", 1)
        self.has_bias = arguments.boolean(has_bias, "Dense", "has_bias")
        arguments.floating_dtype(dtype, "Dense")
        self._check_given(weight_init, bias_init)
        if weight_init is None:
            weight_init = HeUniform(math.sqrt(5))
        shape = (out_channels, in_channels)
        self.weight = Parameter(initializer(weight_init, shape, dtype), name="weight")
        self.bias: Any = None
        if has_bias:
            if bias_init is None:
                bias_init = Uniform(1 / math.sqrt(in_channels))
            self.bias = Parameter(initializer(bias_init, (out_channels,), dtype), name="bias")
        self.activation = activation_of("Dense", activation)
        self.activation_flag = self.activation is not None

    def _check_given(self, weight: Any, bias: Any) -> None:
        n, m = self.out_channels, self.in_channels
        if isinstance(weight, Tensor) and tuple(weight.shape) != (n, m):
            raise ValueError(
                "For 'Dense', weight init shape error. The ndim of 'weight_init' must be equal to "
                "2, and the first dim must be equal to 'out_channels', and the second dim must be "
                f"equal to 'in_channels'. But got 'weight_init': {weight.shape}, 'out_channels': "
                f"{n}, 'in_channels': {m}.{where()}"
            )
        if self.has_bias and isinstance(bias, Tensor) and tuple(bias.shape) != (n,):
            raise ValueError(
                "For 'Dense', bias init shape error. The ndim of 'bias_init' must be equal to 1, "
                "and the first dim must be equal to 'out_channels'. But got 'bias_init': "
                f"{bias.shape}, 'out_channels': {n}.{where()}"
            )

    def construct(self, x: Tensor) -> Tensor:
        arguments.tensor(x, "Dense", "x")
        if x.ndim == 0 or x.shape[-1] != self.in_channels:
            raise ValueError(
                "For 'Dense', the last dimension of the input must be in_channels "
                f"{self.in_channels}, but got shape {list(x.shape)}.{where()}"
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
        return self.activation(out) if self.activation_flag else out  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        if self.has_bias:
            text += ", has_bias=True"
        if self.activation_flag:
            text += f", activation={self.activation}"
        return text


class Identity(Cell):
    """Returns its input."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def construct(self, x: Tensor) -> Tensor:
        return arguments.tensor(x, "Identity", "x")


class Flatten(Cell):
    """The dimensions from start_dim to end_dim as one, in row-major order.

    Raises TypeError for arguments that are no ints, ValueError for dimensions out of range.
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = arguments.integer(start_dim, "Flatten", "start_dim", -(2**31) + 1)
        self.end_dim = arguments.integer(end_dim, "Flatten", "end_dim", -(2**31) + 1)

    def construct(self, x: Tensor) -> Tensor:
        arguments.tensor(x, "Flatten", "x")
        if x.ndim == 0:
            return _ops.reshape(x, [1])
        if x.ndim == 1 and self.start_dim == 1:
            return _ops.reshape(x, [x.shape[0], 1])
        first, last = self._axis(x, self.start_dim), self._axis(x, self.end_dim)
        if first > last:
            raise ValueError(
                f"For 'flatten', the 'start_dim' must be at most 'end_dim', but got {first} and "
                f"{last}.{where()}"
            )
        merged = math.prod(x.shape[first : last + 1])
        return _ops.reshape(x, [*x.shape[:first], merged, *x.shape[last + 1 :]])

    def _axis(self, x: Tensor, axis: int) -> int:
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(
                f"For 'flatten', a dimension must be in [{-x.ndim}, {x.ndim}), but got {axis}."
                f"{where()}"
            )
        return axis % x.ndim


class _Dropping(Cell):
    """What dropouts share: `p` is the probability of zero."""

    p: float

    def _check_p(self, p: Any) -> None:
        self.p = arguments.number(p, type(self).__name__, "p", least=0, below=1)

    def extend_repr(self) -> str:
        return f"p={self.p}"


class Dropout(_Dropping):
    """In training each element becomes 0 with probability p, and the others are divided by 1 - p.

    Srivastava et al., Dropout: a simple way to prevent neural networks from overfitting (2014).
    Outside training (the default, see set_train) it returns its input. keep_prob: 1 - p, used if p
    is None. dtype: accepted for MindSpore's sake.

    Input: floating, of any shape; output of the same shape and dtype.

    Raises TypeError for arguments that are no numbers, ValueError unless 0 <= p < 1 or 0 <
    keep_prob <= 1.
    """

    def __init__(
        self,
        keep_prob: float = 0.5,
        p: float | None = None,
        dtype: _core.DType = _core.float32,
    ) -> None:
        super().__init__()
        self.keep_prob = keep_prob
        self._by_p = p is not None
        if p is not None:
            self._check_p(p)
            return
        if not isinstance(keep_prob, float):  # an int is likely to be meant for p
            raise TypeError(
                "For 'Dropout', the type of 'keep_prob' should be 'float', but got type "
                f"'{type(keep_prob).__name__}'.{where()}"
            )
        self.p = 1 - arguments.number(keep_prob, "Dropout", "keep_prob", above=0, most=1)

    def construct(self, x: Tensor) -> Tensor:
        return dropout(arguments.tensor(x, "Dropout", "x"), self.p, self.training)

    def extend_repr(self) -> str:
        return f"p={self.p}" if self._by_p else f"keep_prob={self.keep_prob}"


class _ChannelDropout(_Dropping):
    ranks: tuple[int, ...] = ()

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self._check_p(p)

    def construct(self, x: Tensor) -> Tensor:
        arguments.of_rank(x, self.ranks, type(self).__name__)
        if not self.training or self.p == 0:
            return x
        inner = self.ranks[0] - 1
        outer = list(x.shape[: x.ndim - inner])
        mask = dropout(_ops.full([*outer, *[1] * inner], 1.0, x.dtype), self.p)
        return _ops.mul(x, mask)


class Dropout1d(_ChannelDropout):
    """Dropout of whole channels of (N, C, L) or (C, L). p: the probability of zero, in [0, 1)."""

    ranks = (2, 3)


class Dropout2d(_ChannelDropout):
    """Dropout of whole channels of (N, C, H, W) or (C, H, W). p: the probability of zero."""

    ranks = (3, 4)


class Embedding(Cell):
    """Rows of a table, looked up by number.

    vocab_size, embedding_size: rows and columns of the table. use_one_hot: looks up by a product
    with one-hot rows instead; the result is the same. embedding_table: anything that `initializer`
    takes. padding_idx: this row starts as zeros.

    Input: integers of any shape, negative ones counted from the end; output: that shape +
    (embedding_size,), of the table's dtype.
    Parameter: embedding_table (vocab_size, embedding_size).

    Raises TypeError for arguments of a wrong type or an input that is not of integers, ValueError
    for sizes < 1 or a padding_idx out of range, IndexError for an input out of range.
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: Any = "normal",
        dtype: _core.DType = _core.float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = arguments.integer(vocab_size, "Embedding", "vocab_size", 1)
        self.embedding_size = arguments.integer(embedding_size, "Embedding", "embedding_size", 1)
        self.use_one_hot = arguments.boolean(use_one_hot, "Embedding", "use_one_hot")
        self.dtype = arguments.floating_dtype(dtype, "Embedding")
        self.padding_idx = padding_idx
        table = initializer(embedding_table, (vocab_size, embedding_size), dtype)
        if padding_idx is not None:
            arguments.integer(padding_idx, "Embedding", "padding_idx", -(2**63) + 1)
            if not 0 <= padding_idx < vocab_size:
                raise ValueError(
                    f"For 'Embedding', the 'padding_idx' must be in range of [0, {vocab_size}), "
                    f"but got {padding_idx} with type 'int'.{where()}"
                )
            table._numpy()[padding_idx] = 0
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids: Tensor) -> Tensor:
        arguments.tensor(ids, "Embedding", "ids")
        if ids.dtype.is_floating or ids.dtype == _core.bool:
            raise TypeError(
                f"For 'Embedding', the 'ids' must be of integers, but got {ids.dtype}.{where()}"
            )
        return _ops.gather(self.embedding_table, ids, 0)

    def extend_repr(self) -> str:
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, "
            f"use_one_hot={self.use_one_hot}, embedding_table={self.embedding_table!r}, "
            f"dtype={self.dtype}, padding_idx={self.padding_idx}"
        )
