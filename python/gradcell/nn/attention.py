"""Attention and transformers (Vaswani et al., Attention is all you need, 2017)."""

from __future__ import annotations

import copy
import math
from dataclasses import InitVar
from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, fields, publish
from gradcell.common.initializer import HeUniform, Uniform, XavierNormal, XavierUniform, initializer
from gradcell.nn.activations import GELU, ReLU
from gradcell.nn.basic import Dense, Dropout
from gradcell.nn.cell import Cell
from gradcell.nn.containers import CellList
from gradcell.nn.normalization import LayerNorm
from gradcell.ops.networks.attention import attend, weights
from gradcell.ops.random.draws import dropout as drop
from gradcell.tensors.parameter import Parameter


def _linear(x: Tensor, weight: Tensor, bias: Any) -> Tensor:
    """x Wᵀ + b for x (length, batch, features)."""
    rows = _ops.reshape(x, [x.shape[0] * x.shape[1], x.shape[2]])
    out = _ops.matmul(rows, _ops.cast(weight, x.dtype), transpose_b=True)
    out = out if bias is None else _ops.add(out, _ops.cast(bias, x.dtype))
    return _ops.reshape(out, [*x.shape[:2], weight.shape[0]])


def _rows(x: Tensor, start: int, count: int) -> Tensor:
    return _ops.slice(x, [start] + [0] * (x.ndim - 1), [count, *x.shape[1:]], [1] * x.ndim)


@fields.declared
class MultiheadAttention(Cell):
    """softmax(Q Kᵀ / sqrt(d) + mask) V for each of num_heads parts of the features, projected.

    embed_dim: features of query and output, divisible by num_heads. dropout: of the weights, in
    training. has_bias: for the projections. add_bias_kv: one more, learned, key and value;
    add_zero_attn: one more of zeros. kdim, vdim: features of key and value. batch_first: inputs are
    (batch, length, features), else (length, batch, features); a single sequence has no batch.

    Called with query (L, N, embed_dim), key (S, N, kdim), value (S, N, vdim); key_padding_mask
    (N, S) and attn_mask (L, S) or (N * num_heads, L, S): bool, True is ignored, or numbers to
    add; a query that sees no key gives 0 before the last projection. Returns (output (L, N,
    embed_dim), weights (N, L, S), or (N, num_heads, L, S) unless average_attn_weights); without
    need_weights, which takes no memory for them, (output,).

    Parameters: in_proj_weight (3 embed_dim, embed_dim), or q_proj_weight, k_proj_weight and
    v_proj_weight where kdim or vdim differ; in_proj_bias, out_proj, bias_k, bias_v.

    Raises TypeError for wrong types, ValueError for incompatible shapes.
    """

    embed_dim: int = fields.integer(1)
    num_heads: int = fields.integer(1)
    dropout: float = fields.number(default=0.0)
    has_bias: InitVar[bool] = fields.boolean(default=True)
    add_bias_kv: InitVar[bool] = fields.boolean(default=False)
    add_zero_attn: bool = fields.boolean(default=False)
    kdim: Any = fields.integer(1, default=None)
    vdim: Any = fields.integer(1, default=None)
    batch_first: bool = fields.boolean(default=False)
    dtype: _core.DType | None = fields.floating_dtype(default=None)

    def _build(self, has_bias: bool, add_bias_kv: bool) -> None:
        e = self.embed_dim
        self.kdim, self.vdim = self.kdim or e, self.vdim or e
        if e % self.num_heads:
            bad_value(
                f"For 'MultiheadAttention', the 'embed_dim' {e} must be divisible by 'num_heads' "
                f"{self.num_heads}."
            )
        self.head_dim: int = e // self.num_heads
        self._one_weight = self.kdim == e and self.vdim == e
        self.in_proj_weight: Any = None
        self.in_proj_bias: Any = None
        self.bias_k: Any = None
        self.bias_v: Any = None
        if self._one_weight:
            self._add("in_proj_weight", XavierUniform(), (3 * e, e))
        else:
            self._add("q_proj_weight", XavierUniform(), (e, e))
            self._add("k_proj_weight", XavierUniform(), (e, self.kdim))
            self._add("v_proj_weight", XavierUniform(), (e, self.vdim))
        if has_bias:
            self._add("in_proj_bias", "zeros", (3 * e,))
        self.out_proj: Dense = Dense(
            e, e, HeUniform(math.sqrt(5)), None, has_bias, dtype=self.dtype
        )
        if add_bias_kv:
            self._add("bias_k", XavierNormal(), (1, 1, e))
            self._add("bias_v", XavierNormal(), (1, 1, e))

    def _add(self, name: str, init: Any, shape: tuple[int, ...]) -> None:
        setattr(self, name, Parameter(initializer(init, shape, self.dtype), name=name))

    def construct(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
    ) -> tuple[Tensor, ...]:
        batched = self._check(query, key, value)
        q, k, v = query, key, value
        if not batched:
            q, k, v = (_ops.reshape(x, [x.shape[0], 1, x.shape[1]]) for x in (q, k, v))
            if key_padding_mask is not None and key_padding_mask.ndim == 1:
                key_padding_mask = _ops.reshape(key_padding_mask, [1, -1])
        elif self.batch_first:
            q, k, v = (_ops.transpose(x, [1, 0, 2]) for x in (q, k, v))
        length, _, e = q.shape
        q, k, v = self._project(q, k, v)
        mask = self._mask(key_padding_mask, attn_mask, q, k.shape[0])
        k, v = self._extended(k, self.bias_k), self._extended(v, self.bias_v)
        if mask is not None and k.shape[0] > mask.shape[3]:
            dims = [*mask.shape[:3], k.shape[0]]
            mask = _ops.slice_scatter(mask, dims, [0] * 4, [1] * 4)
        out, found = self._attend(q, k, v, mask, need_weights)
        # Not as a cell: mixed precision by kinds of cells leaves attention whole, as in MindSpore.
        bias = self.out_proj.bias if self.out_proj.has_bias else None
        out = _linear(out, self.out_proj.weight, bias)
        if not batched:
            out = _ops.reshape(out, [length, e])
        elif self.batch_first:
            out = _ops.transpose(out, [1, 0, 2])
        if not need_weights:
            return (out,)
        if average_attn_weights:
            found = _ops.mean(found, 1)
        return out, found if batched else _ops.reshape(found, list(found.shape[1:]))

    def _check(self, query: Any, key: Any, value: Any) -> bool:
        """Check the inputs' shapes; returns whether there is a batch."""
        sizes = (self.embed_dim, self.kdim, self.vdim)
        for name, x, size in zip(
            ("query", "key", "value"), (query, key, value), sizes, strict=True
        ):
            arguments.tensor(x, "MultiheadAttention", name)
            if x.ndim not in (2, 3) or x.ndim != query.ndim or x.shape[-1] != size:
                bad_value(
                    f"For 'MultiheadAttention', the '{name}' must have {query.ndim} dimensions (3, or 2 "
                    f"without a batch), the last of size {size}, but got {list(x.shape)}."
                )
            weight = self.in_proj_weight if self._one_weight else self.q_proj_weight
            if x.dtype != weight.dtype:
                bad_type(
                    f"For 'MultiheadAttention', the parameters are {weight.dtype} and the '{name}' "
                    f"{x.dtype}; they must be of one type."
                )
        batch = 0 if self.batch_first else 1
        if key.shape[:-1] != value.shape[:-1] or (
            query.ndim == 3 and query.shape[batch] != key.shape[batch]
        ):
            bad_value(
                f"For 'MultiheadAttention', query, key and value of shapes {list(query.shape)}, "
                f"{list(key.shape)} and {list(value.shape)} do not fit."
            )
        return bool(query.ndim == 3)

    def _project(self, *inputs: Tensor) -> list[Tensor]:
        e, bias = self.embed_dim, self.in_proj_bias
        if self._one_weight:
            weights = [_rows(self.in_proj_weight, k * e, e) for k in range(3)]
        else:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        biases = [None if bias is None else _rows(bias, k * e, e) for k in range(3)]
        return [_linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]

    def _extended(self, x: Tensor, bias: Any) -> Tensor:
        """Keys or values (S, N, embed_dim) with the learned one and the zeros behind."""
        last = [1, *x.shape[1:]]
        if bias is not None:
            x = _ops.concat([x, _ops.broadcast_to(bias, last)], 0)
        return _ops.concat([x, _ops.full(last, 0.0, x.dtype)], 0) if self.add_zero_attn else x

    def _mask(self, padding: Any, mask: Any, q: Tensor, size: int) -> Any:
        """Return the mask to add to the scores, (N or 1, heads or 1, L or 1, S), or None."""
        length, n, _ = q.shape
        total: Any = None
        shapes: list[Any] = []
        if mask is not None:
            shapes.append(("attn_mask", mask, [[length, size], [n * self.num_heads, length, size]]))
        if padding is not None:
            shapes.append(("key_padding_mask", padding, [[n, size]]))
        for name, part, allowed in shapes:
            arguments.tensor(part, "MultiheadAttention", name)
            if list(part.shape) not in allowed:
                bad_value(
                    f"For 'MultiheadAttention', the '{name}' must have shape "
                    f"{' or '.join(map(str, allowed))}, but got {list(part.shape)}."
                )
            if part.dtype.name == "uint8":
                part = _ops.cast(part, _core.bool)
            if part.dtype == _core.bool:
                part = _ops.where(part, -math.inf, _ops.full(list(part.shape), 0.0, q.dtype))
            elif not part.dtype.is_floating:
                bad_type(
                    f"For 'MultiheadAttention', the '{name}' must be bool or floating, but got {part.dtype}."
                )
            part = _ops.cast(part, q.dtype)
            if name == "key_padding_mask":
                part = _ops.reshape(part, [n, 1, 1, size])
            elif part.ndim == 2:
                part = _ops.reshape(part, [1, 1, length, size])
            else:
                part = _ops.reshape(part, [n, self.num_heads, length, size])
            total = part if total is None else _ops.add(total, part)
        return total

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Any, need_weights: bool
    ) -> tuple[Tensor, Any]:
        """(sums of values (L, N, embed_dim), weights (N, heads, L, S) if they are needed)."""
        heads, d, n = self.num_heads, self.head_dim, q.shape[1]
        q = _ops.mul(q, 1 / math.sqrt(d))
        p = self.dropout if self.training else 0.0
        masks = 1 if mask is None else math.prod(mask.shape[:2])
        small = masks in (1, n * heads) or mask.shape[2] == 1
        if not need_weights and p < 1 and small:
            # All heads of all examples stand inside: nothing is transposed.
            if mask is not None:
                rows = list(mask.shape[2:])
                if masks > 1:
                    masks, mask = n * heads, _ops.broadcast_to(mask, [n, heads, *rows])
                mask = _ops.reshape(mask, [masks, *rows])
            q, k, v = (_ops.reshape(x, [x.shape[0], n * heads, d]) for x in (q, k, v))
            y = attend(q, k, v, mask, 1.0 - p, inside=True)
            return _ops.reshape(y, [y.shape[0], n, heads * d]), None

        def split(x: Tensor) -> Tensor:
            x = _ops.reshape(x, [x.shape[0], n, heads, d])
            return _ops.transpose(x, [1, 2, 0, 3])

        q, k, v = split(q), split(k), split(v)
        found = None
        if need_weights or p == 1:
            found = weights(q, k, mask)
            found = drop(found, p) if p else found
            y = _ops.matmul(found, v)
        else:
            y = attend(q, k, v, mask, 1.0 - p)
        y = _ops.transpose(y, [2, 0, 1, 3])
        return _ops.reshape(y, [y.shape[0], n, heads * d]), found


_ACTIVATIONS = {"relu": ops.relu, "gelu": ops.gelu}


def _function(value: Any, owner: str, name: str) -> Any:
    if isinstance(value, str) and value in _ACTIVATIONS:
        return _ACTIVATIONS[value]
    if not isinstance(value, (ReLU, GELU)) and not any(value is f for f in _ACTIVATIONS.values()):
        bad_value(
            f"For '{owner}', the '{name}' must be 'relu', 'gelu', ops.relu, ops.gelu, nn.ReLU() or "
            f"nn.GELU(), but got {value!r}."
        )
    return value


@fields.declared
class _Layer(Cell):
    """Base class of encoder and decoder layers: the feed-forward part and the arguments."""

    norms = 2

    d_model: int = fields.anything()
    nhead: int = fields.anything()
    dim_feedforward: int = fields.anything(default=2048)
    dropout: InitVar[float] = fields.anything(default=0.1)
    activation: Any = fields.checked(_function, default="relu")
    layernorm_eps: float = fields.anything(default=1e-5, alias="layer_norm_eps")
    batch_first: bool = fields.anything(default=False)
    norm_first: bool = fields.boolean(default=False)
    dtype: InitVar[_core.DType | None] = fields.anything(default=None)

    def _build(self, dropout: float, dtype: _core.DType | None) -> None:
        self.self_attn: MultiheadAttention = self._attention(dropout, dtype)
        if self.norms == 3:
            self.multihead_attn: MultiheadAttention = self._attention(dropout, dtype)
        he = HeUniform(math.sqrt(5))
        bounds = [1 / math.sqrt(self.d_model), 1 / math.sqrt(self.dim_feedforward)]
        self.dense1: Dense = Dense(
            self.d_model, self.dim_feedforward, he, Uniform(bounds[0]), dtype=dtype
        )
        self.dropout = Dropout(p=dropout)
        self.dense2: Dense = Dense(
            self.dim_feedforward, self.d_model, he, Uniform(bounds[1]), dtype=dtype
        )
        for k in range(1, self.norms + 1):
            norm = LayerNorm((self.d_model,), epsilon=self.layernorm_eps, dtype=dtype)
            setattr(self, f"norm{k}", norm)
        for k in range(1, self.norms + 1):
            setattr(self, f"dropout{k}", Dropout(p=dropout))

    def _attention(self, dropout: float, dtype: _core.DType | None) -> MultiheadAttention:
        return MultiheadAttention(
            self.d_model, self.nhead, dropout, batch_first=self.batch_first, dtype=dtype
        )

    def _attended(
        self, attention: Cell, x: Tensor, memory: Tensor, mask: Any, padding: Any
    ) -> Tensor:
        found = attention(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False
        )
        return found[0]  # type: ignore[no-any-return]

    def _forward(self, x: Tensor) -> Tensor:
        return self.dense2(self.dropout(self.activation(self.dense1(x))))

    def _through(self, x: Tensor, blocks: list[Any]) -> Tensor:
        """x plus what each block gives, normalised in front of it or behind."""
        for k, block in enumerate(blocks, 1):
            norm, dropped = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
            if self.norm_first:
                x = _ops.add(x, dropped(block(norm(x))))
            else:
                x = norm(_ops.add(x, dropped(block(x))))
        return x


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network of one hidden layer, each added to its input.

    d_model: features. nhead: heads. dim_feedforward: hidden features. activation: 'relu', 'gelu' or
    that function or Cell. norm_first: normalises before each part, not after. batch_first: (batch,
    length, features), else (length, batch, features). layer_norm_eps: keeps the denominators of the
    layer norms from zero.

    Called with src, src_mask (L, L) or (N * nhead, L, L), src_key_padding_mask (N, L): see
    MultiheadAttention. Returns what has src's shape. Parameters: self_attn, dense1, dense2, norm1,
    norm2. Raises TypeError, ValueError.
    """

    def construct(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._attended(self.self_attn, x, x, src_mask, src_key_padding_mask)

        return self._through(src, [attend, self._forward])


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output and a feed-forward network, each added to its
    input. Arguments are those of TransformerEncoderLayer.

    layer_norm_eps: keeps the denominators of the layer norms from zero.

    Called with tgt, memory (the encoder's output) and the masks tgt_mask, memory_mask,
    tgt_key_padding_mask, memory_key_padding_mask. Returns what has tgt's shape. Parameters:
    self_attn, multihead_attn, dense1, dense2, norm1, norm2, norm3. Raises TypeError, ValueError.
    """

    norms = 3

    def construct(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._attended(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask)

        def look(x: Tensor) -> Tensor:
            attention = self.multihead_attn
            return self._attended(attention, x, memory, memory_mask, memory_key_padding_mask)

        return self._through(tgt, [attend, look, self._forward])


def _cell(value: Any, owner: str, name: str) -> Cell:
    if not isinstance(value, Cell):
        bad_type(f"For '{owner}', the {name} must be a Cell, got {value!r}")
    return value


@fields.declared
class _Stack(Cell):
    """Copies of a layer, one after another, and a norm at the end."""

    layer: InitVar[Cell] = fields.checked(_cell)
    num_layers: int = fields.integer(1)
    norm: InitVar[Cell | None] = fields.anything(default=None)

    def _build(self, layer: Cell, norm: Cell | None) -> None:
        self.layers: CellList = CellList([copy.deepcopy(layer) for _ in range(self.num_layers)])
        self.norm = norm  # after the layers, as its parameters come after theirs

    def _run_layers(self, x: Tensor, *args: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *args)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """num_layers copies of a TransformerEncoderLayer, one after another; then norm, if given.

    encoder_layer: a layer, which is copied.

    Called as the layer. Parameters: layers.0, layers.1, ..., norm.
    """

    def __init__(self, encoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def construct(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        return self._run_layers(src, src_mask, src_key_padding_mask)


class TransformerDecoder(_Stack):
    """num_layers copies of a TransformerDecoderLayer, one after another; then norm, if given.

    decoder_layer: a layer, which is copied.

    Called as the layer. Parameters: layers.0, layers.1, ..., norm.
    """

    def __init__(self, decoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def construct(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        return self._run_layers(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )


class Transformer(Cell):
    """An encoder and a decoder that attends to what it gives.

    d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first:
    of the layers. custom_encoder, custom_decoder: cells in their place. num_encoder_layers,
    num_decoder_layers: the number of layers.

    Called with src (S, N, d_model), tgt (T, N, d_model) and the masks src_mask, tgt_mask,
    memory_mask, src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask. Returns what
    has tgt's shape. Matrices start Xavier uniform. Raises TypeError, ValueError.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Cell | None = None,
        custom_decoder: Cell | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: _core.DType | None = None,
    ) -> None:
        super().__init__()
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        flags = (batch_first, norm_first, dtype)

        def norm() -> LayerNorm:
            return LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)

        self.encoder: Cell | TransformerEncoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*shared, *flags), num_encoder_layers, norm()
        )
        self.decoder: Cell | TransformerDecoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*shared, *flags), num_decoder_layers, norm()
        )
        for p in self.get_parameters():
            if p.ndim > 1:
                p.set_data(initializer(XavierUniform(), tuple(p.shape), p.dtype))
        self.d_model: int = d_model
        self.nhead: int = nhead
        self.batch_first: bool = batch_first

    def construct(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        for name, x in (("src", src), ("tgt", tgt)):
            arguments.tensor(x, "Transformer", name)
            if x.ndim not in (2, 3) or x.shape[-1] != self.d_model:
                bad_value(
                    f"For 'Transformer', the last dimension of '{name}' must be d_model {self.d_model}, but "
                    f"got shape {list(x.shape)}."
                )
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )


publish(globals())
