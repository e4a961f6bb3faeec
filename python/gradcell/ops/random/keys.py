"""Keys of random numbers: 64 bits, from which all that is drawn follows.

The numbers of a key are those of Philox 4x32-10 (J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC 2011) with counters whose upper half is zero, which the core's generator
gives. Where keys differ between the examples of a vmap, the same words are made of integer ops. New keys have
other counters, so that no key's numbers are another's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcell._core import Tensor, float32, int64, ops as _ops, uint64
from gradcell.derivatives.batching import differs
from gradcell.ops.elements.integers import bitwise_left_shift, bitwise_right_shift

_FACTORS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF
_ROUNDS = 10

#: The third words of counters: of numbers, of keys that are split off, folded in and begun.
NUMBERS, SPLIT, FOLDED, BEGUN = range(4)


def is_key(x: Any) -> bool:
    """Return whether x is a key: one 64-bit integer without a sign."""
    return isinstance(x, Tensor) and x.dtype == uint64 and x.ndim == 0


def _number(value: int) -> Tensor:
    return Tensor(np.uint64(value))


def _low(x: Tensor) -> Tensor:
    return _ops.bitwise_and(x, _number(_WORD))


def _high(x: Tensor) -> Tensor:
    return bitwise_right_shift(x, _number(32))


def philox(key: Tensor, counter: Sequence[Tensor]) -> list[Tensor]:
    """Return the four words that belong to a counter of four words, all in uint64."""
    c0, c1, c2, c3 = counter
    k0, k1 = _low(key), _high(key)
    for _ in range(_ROUNDS):
        p0, p1 = _ops.mul(c0, _number(_FACTORS[0])), _ops.mul(c2, _number(_FACTORS[1]))
        c0 = _ops.bitwise_xor(_ops.bitwise_xor(_high(p1), c1), k0)
        c2 = _ops.bitwise_xor(_ops.bitwise_xor(_high(p0), c3), k1)
        c1, c3 = _low(p1), _low(p0)
        k0, k1 = (_low(_ops.add(k, _number(w))) for k, w in zip((k0, k1), _WEYL, strict=True))
    return [c0, c1, c2, c3]


def keys_at(key: Tensor, counters: Tensor, purpose: int) -> Tensor:
    """Return a new key for each counter."""
    zero = _ops.mul(counters, _number(0))
    third = _ops.add(zero, _number(purpose))
    words = philox(key, [_low(counters), _high(counters), third, zero])
    return _ops.bitwise_or(words[0], bitwise_left_shift(words[1], _number(32)))


def words(shape: Sequence[int], key: Tensor, part: int) -> Tensor:
    """Return words of 32 bits, in uint64."""
    count = math.prod(shape)
    blocks = -(-count // 4)
    counters = _ops.cast(_ops.iota([blocks], int64, 0), uint64)
    counters = _ops.add(counters, _number(part << 48))
    zero = _ops.full([blocks], 0, uint64)
    found = philox(key, [_low(counters), _high(counters), zero, zero])
    flat = _ops.concat([_ops.reshape(w, [blocks, 1]) for w in found], 1)
    flat = _ops.slice(_ops.reshape(flat, [4 * blocks]), [0], [count], [1])
    return _ops.reshape(flat, list(shape))


def drawn(shape: list[int], key: Tensor, part: int) -> Tensor:
    """Return float32 numbers in [0, 1), multiples of 2^-24. part: the numbers of each are others."""
    if not differs(key):
        offset = Tensor([part << 48], int64)
        state = _ops.concat([_ops.reshape(_ops.cast(key, int64), [1]), offset], 0)
        return _ops.random_uniform(state, shape)
    bits = bitwise_right_shift(words(shape, key, part), _number(8))
    return _ops.mul(_ops.cast(bits, float32), 2.0**-24)
