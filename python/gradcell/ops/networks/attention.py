"""Attention of heads: softmax(q kᵀ + mask) v, in tiles, so that the scores are never whole in memory.

Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness" (2022); the
adjoints are sums of the same kind, csrc/ops/combining/attention.h.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, where
from gradcell.ops.decorators import one_plan
from gradcell.ops.random.draws import _draw, _stream

__all__ = ["flash_attention_score"]

_composed: ContextVar[bool] = ContextVar("composed", default=False)


@contextmanager
def composed() -> Iterator[None]:
    """A context in which attention is recorded as products and a softmax of whole tensors, for
    exporters of graphs."""
    token = _composed.set(True)
    try:
        yield
    finally:
        _composed.reset(token)


#: Of a band that hides nothing.
EVERY = 1 << 62


def _scores(q: Tensor, k: Tensor, mask: Tensor | None, behind: int, ahead: int) -> Tensor:
    s = _ops.matmul(q, k, transpose_b=True)
    if mask is not None:
        hides = mask.dtype == _core.bool
        s = _ops.where(_ops.broadcast_to(mask, list(s.shape)), -math.inf, s) if hides else s + mask
    length, size = s.shape[-2:]
    if ahead < size or behind < length:
        at = _ops.sub(Tensor(np.arange(size)), Tensor(np.arange(length).reshape(-1, 1)))
        outside = _ops.logical_or(_ops.greater(at, ahead), _ops.less(at, -behind))
        s = _ops.where(_ops.broadcast_to(outside, list(s.shape)), -math.inf, s)
    return s


def weights(
    q: Tensor, k: Tensor, mask: Tensor | None = None, behind: int = EVERY, ahead: int = EVERY
) -> Tensor:
    """softmax(q kᵀ + mask) [..., L, S], whole: the arguments are attend's. A query that sees no key
    has weights 0."""
    s = _scores(q, k, mask, behind, ahead)
    top = _ops.stop_gradient(_ops.reduce_max(s, [-1], True))
    top = _ops.where(_ops.equal(top, -math.inf), 0, top)
    hidden = _ops.equal(s, -math.inf)
    e = _ops.where(hidden, 0, _ops.exp(_ops.where(hidden, 0, _ops.sub(s, top))))
    total = _ops.reduce_sum(e, [-1], True)
    return _ops.div(e, _ops.where(_ops.equal(total, 0), 1, total))


def _swapped(x: Tensor) -> Tensor:
    """Rows and heads exchanged."""
    n = x.ndim
    return _ops.transpose(x, [*range(n - 3), n - 2, n - 3, n - 1])


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    keep: float = 1.0,
    behind: int = EVERY,
    ahead: int = EVERY,
    inside: bool = False,
) -> Tensor:
    """softmax(q kᵀ + mask) v [..., L, E] for queries [..., L, D], keys [..., S, D], values
    [..., S, E]; inside: heads stand inside, [..., L, heads, D] and so on.

    mask: bool, True hides, or numbers to add; its shape is [..., L, S] with 1 for any dimension but
    the last. Query m sees the keys m - behind, ..., m + ahead. keep: the probability with which
    dropout leaves a weight, which it divides by that. A query that sees no key gives 0, and no
    gradient. Raises TypeError or ValueError if shapes or dtypes do not fit.
    """
    if _composed.get():
        if inside:
            q, k, v = (_swapped(x) for x in (q, k, v))
        w = weights(q, k, mask, behind, ahead)
        if keep < 1.0:
            kept = _ops.less(_draw(list(w.shape)), keep)
            w = _ops.where(kept, _ops.mul(w, 1.0 / keep), 0)
        y = _ops.matmul(w, v)
        return _swapped(y) if inside else y
    tensors = [q, k, v]
    if mask is not None:
        tensors.append(mask)
    rows = -3 if inside else -2
    heads = math.prod(q.shape[:-1]) // max(1, q.shape[rows])
    if keep < 1.0:
        state = _stream(None)
        tensors.append(_ops.add(state, 0))
        blocks = -(-heads * q.shape[rows] * k.shape[rows] // 4)
        state._set_array(_ops.add(state, Tensor([0, blocks], _core.int64)))
    bits = [struct.unpack("q", struct.pack("d", x))[0] for x in (keep, 1.0, -math.inf)]
    return _ops.attention(
        tensors,
        masked=mask is not None,
        dropped=keep < 1.0,
        shifted=False,
        keep=bits[0],
        period=heads,
        behind=behind,
        ahead=ahead,
        inside=inside,
        scale=bits[1],
        fill=bits[2],
    )


# MindSpore's function ---------------------------------------------------------------------------

_OWNER = "flash_attention_score"
#: Where batch, sequence and heads stand; H is heads and features in one.
_LAYOUTS = ("BSH", "SBH", "BNSD", "BSND", "TND")


def _fail(text: str) -> ValueError:
    return ValueError(f"For '{_OWNER}', {text}.{where()}")


def _by_heads(x: Tensor, layout: str, heads: int) -> Tensor:
    """[B, S, N, D], or [B, N, S, D] where that is how it lies."""
    if "H" in layout:
        if x.shape[2] % heads:
            raise _fail(f"{x.shape[2]} features do not divide by {heads} heads")
        x = _ops.reshape(x, [*x.shape[:2], heads, x.shape[2] // heads])
        return _ops.transpose(x, [1, 0, 2, 3]) if layout == "SBH" else x
    return x


def _as_given(x: Tensor, layout: str) -> Tensor:
    if "H" not in layout:
        return x
    _, _, n, d = x.shape
    x = _ops.transpose(x, [1, 0, 2, 3]) if layout == "SBH" else x
    return _ops.reshape(x, [*x.shape[:2], n * d])


def _for_each_head(x: Tensor, heads: int, inside: bool) -> Tensor:
    """Keys or values of fewer heads, each for as many neighbouring heads of queries."""
    at = 2 if inside else 1
    n = x.shape[at]
    if n == heads:
        return x
    if n == 0 or heads % n:
        raise _fail(f"the {heads} heads of the queries do not divide by the {n} of the keys")
    before, after = list(x.shape[: at + 1]), list(x.shape[at + 1 :])
    x = _ops.reshape(x, [*before, 1, *after])
    x = _ops.broadcast_to(x, [*before, heads // n, *after])
    return _ops.reshape(x, [*before[:-1], heads, *after])


def _hiding(mask: Any, shape: list[int]) -> Tensor:
    """A mask of bools in 4 dimensions."""
    mask = arguments.tensor(mask, _OWNER, "attn_mask")
    if mask.dtype.name not in ("bool", "uint8"):
        bad_type(f"For '{_OWNER}', the 'attn_mask' must be bool or uint8, but got {mask.dtype}.")
    b, n, length, size = shape
    allowed = [[b, n, length, size], [b, 1, length, size], [length, size]]
    if list(mask.shape) not in allowed:
        raise _fail(
            f"the 'attn_mask' must have shape {', '.join(map(str, allowed))}, "
            f"but got {list(mask.shape)}"
        )
    mask = mask if mask.ndim == 4 else _ops.reshape(mask, [1, 1, length, size])
    return _ops.cast(mask, _core.bool)


def _prefixes(prefix: Any, shape: list[int]) -> Tensor:
    """Return the mask of causal attention from the lower right, but for each example's first keys."""
    b, _, length, size = shape
    if prefix is None:
        raise _fail("'sparse_mode' 5 takes a 'prefix' or an 'attn_mask'")
    first = prefix if isinstance(prefix, Tensor) else Tensor(np.asarray(prefix, np.int64))
    if list(first.shape) != [b]:
        raise _fail(f"the 'prefix' must have one number for each of {b} examples")
    key = Tensor(np.arange(size))
    later = np.arange(size) > np.arange(length).reshape(-1, 1) + (size - length)
    behind = _ops.greater_equal(key, _ops.reshape(_ops.cast(first, _core.int64), [b, 1, 1, 1]))
    return _ops.logical_and(behind, Tensor(later.reshape(1, 1, length, size)))


def _band(mode: int, length: int, size: int, before: int, after: int, masked: bool) -> Any:
    """Return how many keys a query sees before its own place and behind it."""
    by = size - length  # from the upper left corner to the lower right one
    if mode == 0:
        return (before, after) if masked else (EVERY, EVERY)
    return {2: (EVERY, 0), 3: (EVERY, by), 4: (before - by, after + by)}.get(mode, (EVERY, EVERY))


def _lengths(given: Any, name: str, total: int) -> list[int]:
    if given is None:
        raise _fail(f"'input_layout' TND takes '{name}'")
    ends = [int(n) for n in (given.asnumpy() if isinstance(given, Tensor) else given)]
    starts = [0, *ends[:-1]]
    if not ends or ends[-1] != total or any(a > b for a, b in zip(starts, ends, strict=True)):
        raise _fail(f"'{name}' must ascend to {total}, but is {ends}")
    return [b - a for a, b in zip(starts, ends, strict=True)]


def _of_sequences(
    q: Tensor, k: Tensor, v: Tensor, queries: list[int], keys: list[int], more: dict[str, Any]
) -> Tensor:
    """Sequences that stand one after the other, [T, N, D]."""
    if len(queries) != len(keys):
        raise _fail("'actual_seq_qlen' and 'actual_seq_kvlen' must be of one length")

    def part(x: Tensor, at: int, n: int) -> Tensor:
        x = _ops.slice(x, [at, 0, 0], [n, *x.shape[1:]], [1, 1, 1])
        return _ops.reshape(x, [1, *x.shape])

    found, at_q, at_k = [], 0, 0
    for length, size in zip(queries, keys, strict=True):
        query, key, value = part(q, at_q, length), part(k, at_k, size), part(v, at_k, size)
        y = flash_attention_score(query, key, value, input_layout="BSND", **more)
        found.append(_ops.reshape(y, list(y.shape[1:])))
        at_q, at_k = at_q + length, at_k + size
    return found[0] if len(found) == 1 else _ops.concat(found, 0)


def _with_drop_mask(w: Tensor, drop_mask: Tensor, keep: float) -> Tensor:
    """Weights of which the bits that are set are kept, 8 keys a byte, the lowest bit first."""
    b, n, length, size = w.shape
    if drop_mask.dtype.name != "uint8" or list(drop_mask.shape) != [b, n, length, size // 8]:
        raise _fail(
            f"the 'drop_mask' must be uint8 of shape {[b, n, length, size // 8]}, but got "
            f"{drop_mask.dtype} of shape {list(drop_mask.shape)}"
        )
    wide = _ops.cast(_ops.reshape(drop_mask, [b, n, length, size // 8, 1]), _core.float32)
    shifted = _ops.floor(_ops.div(wide, Tensor(2.0 ** np.arange(8), _core.float32)))
    odd = _ops.equal(_ops.sub(shifted, _ops.mul(_ops.floor(_ops.mul(shifted, 0.5)), 2.0)), 1.0)
    kept = _ops.reshape(odd, [b, n, length, size])
    return _ops.where(kept, _ops.mul(w, 1.0 / keep), 0)


@one_plan
def flash_attention_score(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    real_shift: Any = None,
    drop_mask: Any = None,
    padding_mask: Any = None,
    attn_mask: Any = None,
    prefix: Any = None,
    actual_seq_qlen: Sequence[int] | Tensor | None = None,
    actual_seq_kvlen: Sequence[int] | Tensor | None = None,
    keep_prob: float = 1.0,
    scalar_value: float = 1.0,
    pre_tokens: int = 2147483647,
    next_tokens: int = 2147483647,
    inner_precise: int = 0,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> Tensor:
    """dropout(softmax(scalar_value * query keyᵀ + real_shift, hidden by the masks)) value.

    query: of head_num heads, in the layout below, of any floating dtype. key, value: the same with S2
    in place of S1, and with N2 heads, where N2 divides head_num. head_num: the number of heads, N1.
    input_layout: 'BSH', (B, S1, H1); 'SBH', (S1, B, H1); 'BNSD', (B, N1, S1, D); 'BSND',
    (B, S1, N1, D); or 'TND', (T1, N1, D), sequences one after the other. actual_seq_qlen,
    actual_seq_kvlen: for 'TND', where each sequence of query, and of key, ends. The result is as query,
    with value's features.

    real_shift: (B or 1, N1, S1, S2), added to the scores. scalar_value: the factor of the scores.
    attn_mask: bool or uint8, 1 hides; (B, N1, S1, S2), (B, 1, S1, S2) or (S1, S2). padding_mask: must
    be None. sparse_mode: 0, attn_mask and, if there is one, the band of pre_tokens and next_tokens around
    each query's place; 1, attn_mask; 2, causal from the upper left; 3, causal from the lower right; 4, the
    band around the line to the lower right; 5, attn_mask, or causal from the lower right but for each
    example's first `prefix` keys. In modes 2, 3 and 4 the attn_mask, MindSpore's compressed one, is
    ignored. pre_tokens, next_tokens: how many keys before and after its place a query sees. prefix: an int
    for each example. keep_prob: the probability that dropout keeps a weight. drop_mask: the bits that are
    kept, uint8 (B, N1, S1, S2 / 8), drawn if there is none. inner_precise has no effect.

    A query that sees no key gives 0 and gets no gradient. The scores are never whole in memory, in
    derivatives either, but with a drop_mask, for the derivative by real_shift, and on a GPU.

    Raises TypeError for wrong dtypes, ValueError for incompatible arguments.
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        x = arguments.tensor(x, _OWNER, name)
        if not x.dtype.is_floating or x.dtype != query.dtype:
            bad_type(
                f"For '{_OWNER}', query, key and value must be floating and of one dtype, but the '{name}' "
                f"is {x.dtype}."
            )
    layout = arguments.one_of(input_layout, _LAYOUTS, _OWNER, "input_layout") or input_layout
    heads = arguments.integer(head_num, _OWNER, "head_num", 1)
    keep = arguments.number(keep_prob, _OWNER, "keep_prob", least=0, most=1)
    scale = arguments.number(scalar_value, _OWNER, "scalar_value")
    mode = arguments.integer(sparse_mode, _OWNER, "sparse_mode", 0)
    if keep == 0 or mode > 5:
        raise _fail(f"'keep_prob' {keep} must be above 0 and 'sparse_mode' {mode} one of 0 to 5")
    if padding_mask is not None:
        raise _fail("a 'padding_mask' is not supported: give an 'attn_mask'")
    rank = 3 if "H" in layout or layout == "TND" else 4
    if any(x.ndim != rank for x in (query, key, value)):
        shapes = [list(x.shape) for x in (query, key, value)]
        raise _fail(f"{layout} asks for {rank} dimensions, but the inputs have shapes {shapes}")
    if layout == "TND":
        if any(x is not None for x in (real_shift, drop_mask, prefix)) or mode not in (0, 2, 3):
            raise _fail("TND goes with 'sparse_mode' 0, 2 and 3, and with no shift or other mask")
        lengths = _lengths(actual_seq_qlen, "actual_seq_qlen", query.shape[0])
        sizes = _lengths(actual_seq_kvlen, "actual_seq_kvlen", key.shape[0])
        more = {"keep_prob": keep, "scalar_value": scale, "sparse_mode": mode, "head_num": heads}
        return _of_sequences(query, key, value, lengths, sizes, more)
    inside = layout != "BNSD"
    q = _by_heads(query, layout, heads)
    if q.shape[2 if inside else 1] != heads:
        raise _fail(f"the query has {q.shape[2 if inside else 1]} heads, not {heads}")
    fewer = heads
    if "H" in layout:
        if q.shape[3] == 0 or key.shape[2] % q.shape[3]:
            raise _fail(f"keys of {key.shape[2]} features do not fit heads of {q.shape[3]}")
        fewer = key.shape[2] // q.shape[3]
    k, v = (
        _for_each_head(_by_heads(x, layout, max(1, fewer)), heads, inside) for x in (key, value)
    )
    if k.shape[:3] != v.shape[:3] or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        shapes = [list(x.shape) for x in (query, key, value)]
        raise _fail(f"query, key and value of shapes {shapes} do not fit")
    row = 1 if inside else 2
    shape = [q.shape[0], heads, q.shape[row], k.shape[row]]
    mask: Any = None
    if attn_mask is not None and mode not in (2, 3, 4):
        mask = _hiding(attn_mask, shape)
    elif mode == 5:
        mask = _prefixes(prefix, shape)
    if real_shift is not None:
        real_shift = arguments.tensor(real_shift, _OWNER, "real_shift")
        if real_shift.dtype != q.dtype or list(real_shift.shape) not in (shape, [1, *shape[1:]]):
            raise _fail(
                f"the 'real_shift' must be {q.dtype} of shape {shape} or {[1, *shape[1:]]}, but got "
                f"{real_shift.dtype} of shape {list(real_shift.shape)}"
            )
        mask = real_shift if mask is None else _ops.where(mask, -math.inf, real_shift)
    before = arguments.integer(pre_tokens, _OWNER, "pre_tokens")
    after = arguments.integer(next_tokens, _OWNER, "next_tokens")
    behind, ahead = _band(mode, shape[2], shape[3], before, after, attn_mask is not None)
    q = q if scale == 1 else _ops.mul(q, scale)
    if drop_mask is not None and keep < 1:
        drop_mask = arguments.tensor(drop_mask, _OWNER, "drop_mask")
        if inside:
            q, k, v = (_swapped(x) for x in (q, k, v))
        w = _with_drop_mask(weights(q, k, mask, behind, ahead), drop_mask, keep)
        y = _ops.matmul(w, v)
        return _as_given(_swapped(y) if inside else y, layout)
    return _as_given(attend(q, k, v, mask, keep, behind, ahead, inside), layout)
